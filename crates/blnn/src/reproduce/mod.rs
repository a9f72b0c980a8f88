//! The paper's tables and figures, from training to the printed page.
//!
//! [`reproduce`] takes the [`Target`]s of a user and makes of them a list of [`TrainingJob`]s in
//! which every model stands once, however many targets need it. Each is trained in a folder of its
//! own, `OUT/runs/<key>`; what is finished is not trained again, what was interrupted goes on.
//! A [`RunRecord`] of each, small enough for version control, stands for a run whose folder is not
//! here.
//! When the last model of a target is trained, its [`Report`] is made and written as JSON,
//! Markdown and figures, and the ledger of all reports is brought up to date.

mod case_study;
mod charts;
mod execute;
mod figure;
mod grid;
mod job;
mod ledger;
mod map;
mod provenance;
mod record;
mod render;
mod report;
mod rows;
mod target;
mod trained;

use std::path::PathBuf;

use crate::plan::{Method, Objective};

pub use execute::{Ended, Failure, Watcher, reproduce};
pub use job::{SHORT_EPOCHS, TrainingJob, dataset_names};
pub use record::{Best, RunRecord};
pub use render::{markdown, text};
pub use report::{
    Aggregate, Missing, Paired, Report, Row, RunRow, SeedDifference, Series, UnderWay,
};
pub use target::Target;
pub use trained::{Evaluation, OverTime, PaperSplit, StoredEmbedding, Trained, TrainedBy};

/// What to reproduce, and where the files go.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The tables and figures; see [`Target::select`].
    pub targets: Vec<Target>,
    /// The data sets, see [`dataset_names`]; if empty, those the paper shows each target on.
    pub datasets: Vec<&'static str>,
    /// Seeds 1 to this number are trained.
    pub seeds: u64,
    /// Epochs of every training; if absent, the presets' (and [`SHORT_EPOCHS`] for the temperature).
    pub epochs: Option<usize>,
    /// The methods, of those a target shows; if empty, all of them.
    pub methods: Vec<Method>,
    /// The forms of BLNN's objective.
    pub objectives: Vec<Objective>,
    /// The temperatures of the sweep; the paper's 0.1, 0.2, … 2.0 by default.
    pub temperatures: Vec<f64>,
    /// Other settings of all trainings, as `key=value`.
    pub settings: Vec<String>,
    /// Epochs between evaluations; if absent, 250, or an eighth of a run shorter than 2,000.
    pub eval_every: Option<usize>,
    /// Where all files go.
    pub out: PathBuf,
    /// The ledger's file; if absent, `OUT/REPRODUCTION.md`.
    pub ledger: Option<PathBuf>,
    /// Where the records of runs are; if absent, `OUT/records`.
    pub records: Option<PathBuf>,
    /// Whether a run on record in another precision stands for one that is not.
    pub any_precision: bool,
    /// Where the data sets' files are looked for.
    pub folders: Vec<PathBuf>,
    /// Whether to report what is trained instead of training.
    pub report_only: bool,
    /// The commit this program was built from, to be noted with what it trains.
    pub commit: Option<String>,
}

impl Options {
    /// All targets on the paper's data sets with one seed, into the folder `out`.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            targets: Target::ALL.to_vec(),
            datasets: Vec::new(),
            seeds: 1,
            epochs: None,
            methods: Vec::new(),
            objectives: vec![Objective::Paper],
            temperatures: (1..=20).map(|tenth| f64::from(tenth) / 10.0).collect(),
            settings: Vec::new(),
            eval_every: None,
            out: out.into(),
            ledger: None,
            records: None,
            any_precision: false,
            folders: Vec::new(),
            report_only: false,
            commit: None,
        }
    }

    /// The data sets of a target.
    fn datasets_of(&self, target: Target) -> Vec<&'static str> {
        if self.datasets.is_empty() { target.datasets().to_vec() } else { self.datasets.clone() }
    }
}
