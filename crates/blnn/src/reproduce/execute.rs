//! [`reproduce`]: trains what is not trained yet, and reports each target as its last run ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;

use blnn_kernels::{Matrix, Threads};

use crate::collapse::Health;
use crate::data::{self, Dataset};
use crate::error::{Error, ErrorKind, Result};
use crate::eval::{EpochScores, EvalPlan, Protocol, evaluate};
use crate::graph::Graph;
use crate::run::{Record, RunFolder};
use crate::train::{Job, Observer, train};
use crate::trainer::Step;

use super::job::{TrainingJob, check_settings, jobs_of, variants};
use super::report::{Missing, Report, Row};
use super::rows::{Begun, Results, dataset_rows, mark_missing, paired, remarks, rows};
use super::target::Target;
use super::trained::{self, labels_of};
use super::{Options, case_study, charts, ledger, map, record, render};

/// Epochs between lines of `metrics.jsonl`: what `blnn train` does by default.
const LOG_EVERY: usize = 10;

/// Someone who watches a reproduction. Jobs are known by their place in the list of
/// [`planned`](Watcher::planned).
pub trait Watcher {
    /// All jobs, and which of them were finished before.
    fn planned(&mut self, jobs: &[TrainingJob], finished: &[bool]) {
        let _ = (jobs, finished);
    }

    /// Training of a job begins after `epoch` epochs done by an earlier process.
    fn started(&mut self, job: usize, epoch: usize) {
        let _ = (job, epoch);
    }

    /// A training step is done.
    fn stepped(&mut self, job: usize, step: &Step) {
        let _ = (job, step);
    }

    /// Something other than a step is being done, such as scoring.
    fn busy(&mut self, with: &str) {
        let _ = with;
    }

    /// Something went wrong that does not end the work.
    fn warned(&mut self, about: &str) {
        let _ = about;
    }

    /// A report is made and its files are written.
    fn reported(&mut self, report: &Report) {
        let _ = report;
    }

    /// Whether to stop. Asked after each step and between jobs.
    fn wants_stop(&self) -> bool {
        false
    }
}

/// A watcher for those who only want the result.
impl Watcher for () {}

/// How a reproduction ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// All targets are reported.
    Done(Vec<Report>),
    /// All targets are reported, without some models; the same call tries those again.
    Incomplete {
        /// What there is.
        reports: Vec<Report>,
        /// What there is not.
        failed: Vec<Failure>,
    },
    /// The watcher wanted to stop; the same call goes on from here.
    Stopped {
        /// Jobs that are finished.
        finished: usize,
        /// All jobs.
        jobs: usize,
    },
}

/// A model that could not be trained or scored. The others are trained all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of its run.
    pub run: String,
    /// What went wrong.
    pub message: String,
}

/// Trains every model the targets need (each once, and none that is finished or whose record says
/// all that is asked for), and writes `OUT/<target>.json`, `OUT/<target>.md`, figures, records and
/// the ledger.
///
/// # Errors
/// - `Config` if a setting is refused;
/// - `Checkpoint` if a run's folder holds a run with other settings;
/// - `Io` if a report cannot be written. What is finished stays so.
///
/// # Examples
/// ```
/// use blnn::reproduce::{Ended, Options, Target, reproduce};
/// use blnn_kernels::Threads;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let out = tempfile::tempdir()?;
/// let mut options = Options::new(out.path());
/// options.targets = vec![Target::Datasets];
/// options.datasets = vec!["cora"];
/// let Ended::Done(reports) = reproduce(&options, &Threads::new(1), &mut ())? else {
///     unreachable!("nobody stops it");
/// };
/// assert_eq!(reports[0].rows[0].last.as_ref().unwrap().mean, 2708.0);
/// assert!(out.path().join("datasets.md").exists());
/// # Ok(())
/// # }
/// ```
pub fn reproduce(options: &Options, threads: &Threads, watcher: &mut dyn Watcher) -> Result<Ended> {
    check(options)?;
    let needs = needs(options)?;
    let jobs = schedule(&needs);
    ledger::check(options)?;
    let runs = options.out.join("runs");
    fs::create_dir_all(&runs).map_err(|e| Error::io("create", &runs, e))?;
    let graphs = Graphs { folders: options.folders.clone(), loaded: None };
    let mut work = Work { options, threads, watcher, graphs, results: BTreeMap::new() };
    let finished: Vec<bool> =
        jobs.iter().map(|job| is_trained(options, &needs, job)).collect::<Result<_>>()?;
    work.watcher.planned(&jobs, &finished);
    let mut left: Vec<&Need> = needs.iter().collect();
    let (mut reports, mut failed) = (Vec::new(), Vec::new());
    let stopped = |work: &Work<'_>, next: usize| {
        let ahead = finished[next..].iter().filter(|done| **done).count();
        Ended::Stopped { finished: work.results.len() + ahead, jobs: jobs.len() }
    };
    for (i, job) in jobs.iter().enumerate() {
        work.report_ready(&mut left, &mut reports)?;
        if work.watcher.wants_stop() {
            return Ok(stopped(&work, i));
        }
        match work.finish(i, job, &needs) {
            Ok(true) => {}
            Ok(false) => return Ok(stopped(&work, i)),
            Err(error) => {
                let failure = Failure { run: job.key(), message: error.to_string() };
                work.watcher.warned(&format!("{}: {}", failure.run, failure.message));
                failed.push(failure);
            }
        }
    }
    for need in left {
        if work.watcher.wants_stop() {
            return Ok(stopped(&work, jobs.len()));
        }
        reports.push(work.report(need.target)?);
    }
    ledger::write(options, work.watcher)?;
    reports.sort_by_key(|report| report.target);
    Ok(if failed.is_empty() { Ended::Done(reports) } else { Ended::Incomplete { reports, failed } })
}

fn check(options: &Options) -> Result<()> {
    check_settings(&options.settings)?;
    let fault = |message: &str| Err(Error::new(ErrorKind::Config, message));
    if options.seeds == 0 {
        return fault("--seeds must be at least 1, got 0");
    }
    if options.objectives.is_empty() {
        return fault(
            "--objectives needs at least one of `paper`, `one-direction` and `published-code`",
        );
    }
    if let Some(bad) = options.temperatures.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
        return fault(&format!(
            "--temperatures: `temperature` must be above 0 and finite, got {bad}"
        ));
    }
    if options.eval_every == Some(0) {
        return fault("--eval-every must be at least 1, got 0");
    }
    if let Some(records) = options.records.as_ref().filter(|_| options.report_only)
        && !records.is_dir()
    {
        return fault(&format!("--records: there is no folder {}", records.display()));
    }
    if let Some(target) = options.targets.iter().find(|target| shows_none(options, **target)) {
        return fault(&format!(
            "--methods: `{target}` shows none of these; name the targets that do, or other methods"
        ));
    }
    Ok(())
}

/// Whether a target is made of models, and the methods chosen leave it none.
fn shows_none(options: &Options, target: Target) -> bool {
    target != Target::Datasets && variants(target, options).is_empty()
}

/// A target and the models that it is made of.
struct Need {
    target: Target,
    jobs: Vec<TrainingJob>,
}

fn needs(options: &Options) -> Result<Vec<Need>> {
    let of = |&target: &Target| Ok(Need { target, jobs: available(options, target)? });
    options.targets.iter().map(of).collect()
}

/// Every model that is needed, each once; the first seed of all before the second, so that a whole
/// picture comes early.
fn schedule(needs: &[Need]) -> Vec<TrainingJob> {
    let mut seen = BTreeSet::new();
    let all = needs.iter().flat_map(|need| &need.jobs);
    let mut jobs: Vec<TrainingJob> = all.filter(|job| seen.insert(job.key())).cloned().collect();
    jobs.sort_by_key(|job| job.plan().seed());
    jobs
}

/// The models of a target whose data are here, or whose records say all that it shows.
fn available(options: &Options, target: Target) -> Result<Vec<TrainingJob>> {
    let mut jobs = Vec::new();
    for dataset in options.datasets_of(target) {
        let here = missing(options, dataset).is_none();
        for job in jobs_of(options, target, dataset)? {
            if here || trained::is_known(options, &job, target.shows_embeddings())? {
                jobs.push(job);
            }
        }
    }
    Ok(jobs)
}

/// What is missing of a data set, if anything is.
fn missing(options: &Options, name: &str) -> Option<Missing> {
    let dataset = data::find(name)?;
    let here = dataset.file().is_none() || dataset.locate(&options.folders).is_some();
    (!here).then(|| Missing::new(dataset))
}

/// Whether a job need not be trained for any of the targets.
fn is_trained(options: &Options, needs: &[Need], job: &TrainingJob) -> Result<bool> {
    let shows_it = |need: &Need| need.target.shows_embeddings() && need.jobs.contains(job);
    trained::is_known(options, job, needs.iter().any(shows_it))
}

/// The graph at hand: one, because large ones need not fit together. Neighbours in the plan mostly
/// share it.
struct Graphs {
    folders: Vec<PathBuf>,
    loaded: Option<Rc<Graph>>,
}

impl Graphs {
    fn get(&mut self, name: &str) -> Result<Rc<Graph>> {
        if let Some(graph) = self.loaded.as_ref().filter(|graph| graph.name() == name) {
            return Ok(Rc::clone(graph));
        }
        // Free the old one first.
        self.loaded = None;
        let graph = Rc::new(data::load(name, &self.folders)?);
        self.loaded = Some(Rc::clone(&graph));
        Ok(graph)
    }
}

/// Everything at hand while jobs are worked off.
pub(super) struct Work<'a> {
    pub(super) options: &'a Options,
    pub(super) threads: &'a Threads,
    pub(super) watcher: &'a mut dyn Watcher,
    graphs: Graphs,
    pub(super) results: Results,
}

impl Work<'_> {
    pub(super) fn graph(&mut self, name: &str) -> Result<Rc<Graph>> {
        self.graphs.get(name)
    }

    /// Trains a job unless it is trained, and reads it; `false` if the watcher stopped it.
    fn finish(&mut self, index: usize, job: &TrainingJob, needs: &[Need]) -> Result<bool> {
        // Another process may have trained it since the plan was made.
        let untrained = !self.options.report_only && !is_trained(self.options, needs, job)?;
        if untrained && !self.train(index, job)? {
            return Ok(false);
        }
        self.read(job)?;
        Ok(true)
    }

    /// Trains a job to its end; `false` if the watcher stopped it.
    fn train(&mut self, index: usize, job: &TrainingJob) -> Result<bool> {
        let graph = self.graphs.get(job.dataset())?;
        let root = trained::root_of(self.options, job);
        let every = trained::cadence(&root, self.options, job)?;
        let folder = if RunFolder::holds_run(&root) {
            RunFolder::open(&root)?
        } else {
            RunFolder::create(&root, false)?
        };
        trained::note_provenance(&folder, job.plan().precision(), self.options, every)?;
        let training = Job {
            graph: &graph,
            plan: job.plan(),
            threads: self.threads,
            folder: &folder,
            log_every: LOG_EVERY,
        };
        let mut inner = Inner {
            options: self.options,
            watcher: &mut *self.watcher,
            index,
            job,
            every,
            graph: &graph,
            threads: self.threads,
            collapsed: false,
        };
        let outcome = train(&training, &mut inner).map_err(|e| e.at(root.display()))?;
        Ok(outcome.finished)
    }

    /// Reads a run if it is finished, and scores its last embedding if that was not done yet.
    fn read(&mut self, job: &TrainingJob) -> Result<()> {
        self.watcher.busy(&format!("scoring {}", job.key()));
        let graphs = &mut self.graphs;
        let graph = || graphs.get(job.dataset());
        if let Some(run) = trained::read(self.options, job, graph, self.threads)? {
            self.results.insert(job.key(), run);
        }
        Ok(())
    }

    /// Reports the targets that need no further run.
    fn report_ready(&mut self, left: &mut Vec<&Need>, reports: &mut Vec<Report>) -> Result<()> {
        let is_read = |job: &TrainingJob| self.results.contains_key(&job.key());
        let ready: Vec<&Need> = left.extract_if(.., |need| need.jobs.iter().all(is_read)).collect();
        for need in ready {
            reports.push(self.report(need.target)?);
        }
        Ok(())
    }

    /// Makes the report of a target, writes its files and brings the ledger up to date.
    fn report(&mut self, target: Target) -> Result<Report> {
        let mut report = Report::new(target, self.options.commit.clone());
        for dataset in self.options.datasets_of(target) {
            self.add_dataset(&mut report, dataset)?;
        }
        report.paired = paired(target, &report.rows);
        report.notes = remarks(&report.rows);
        charts::add(self.options, &mut report)?;
        render::write(self.options, &report)?;
        ledger::write(self.options, self.watcher)?;
        self.watcher.reported(&report);
        Ok(report)
    }

    /// The records of the jobs that are begun and not finished, as far as they came.
    fn begun(&self, jobs: &[TrainingJob]) -> Result<Begun> {
        let mut begun = Begun::new();
        for job in jobs.iter().filter(|job| !self.results.contains_key(&job.key())) {
            trained::keep_record(self.options, job)?;
            begun.extend(record::find(self.options, job)?.map(|record| (job.key(), record)));
        }
        Ok(begun)
    }

    fn add_dataset(&mut self, report: &mut Report, name: &'static str) -> Result<()> {
        let target = report.target;
        let Some(dataset) = data::find(name) else {
            return Ok(());
        };
        let jobs = jobs_of(self.options, target, name)?;
        let missing = missing(self.options, name);
        let needs_graph = target.shows_embeddings() || target == Target::Datasets;
        match (target, &missing) {
            (_, Some(missing)) if needs_graph => {
                let mut rows = published_rows(dataset, target, &jobs);
                mark_missing(&mut rows, missing);
                report.rows.append(&mut rows);
            }
            (Target::Datasets, _) => {
                let graph = self.graph(name)?;
                report.rows.append(&mut dataset_rows(dataset, Some(&graph)));
            }
            (Target::CaseStudy, _) => case_study::add(self, report, name, &jobs)?,
            (Target::Map, _) => map::add(self, report, name, &jobs)?,
            (_, missing) => {
                let mut rows = rows(target, &jobs, &self.results, &self.begun(&jobs)?);
                if let Some(missing) = missing {
                    mark_missing(&mut rows, missing);
                }
                report.rows.append(&mut rows);
            }
        }
        // Where every run is on record, nobody misses the data.
        let is_missed = |missing: &Missing| {
            let mut rows = report.rows.iter().filter(|row| row.dataset == name).peekable();
            rows.peek().is_none() || rows.any(|row| row.remark == Some(missing.remark()))
        };
        report.missing.extend(missing.filter(is_missed));
        Ok(())
    }
}

/// The published numbers alone.
fn published_rows(dataset: &Dataset, target: Target, jobs: &[TrainingJob]) -> Vec<Row> {
    match target {
        Target::Datasets => dataset_rows(dataset, None),
        _ => rows(target, jobs, &BTreeMap::new(), &BTreeMap::new()),
    }
}

/// The observer of one training among many.
struct Inner<'a> {
    options: &'a Options,
    watcher: &'a mut dyn Watcher,
    index: usize,
    job: &'a TrainingJob,
    every: usize,
    graph: &'a Graph,
    threads: &'a Threads,
    collapsed: bool,
}

impl Observer for Inner<'_> {
    fn started(&mut self, epoch: usize) {
        self.watcher.started(self.index, epoch);
    }

    fn switched(&mut self, from: &str, to: &str) {
        let key = self.job.key();
        self.watcher.warned(&format!("{key}: trained by {from} kernels so far, from here by {to}"));
    }

    fn stepped(&mut self, step: &Step, _seconds: f64) -> ControlFlow<()> {
        self.watcher.stepped(self.index, step);
        if self.watcher.wants_stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn saved(&mut self, epoch: usize, health: &Health) {
        if health.collapsed && !self.collapsed {
            self.collapsed = true;
            let key = self.job.key();
            self.watcher.warned(&format!("{key}: the embedding has collapsed at epoch {epoch}"));
        }
    }

    fn recorded(&mut self, record: &Record) -> Result<()> {
        if record.scores.is_empty() { Ok(()) } else { trained::keep_record(self.options, self.job) }
    }

    fn wants_score(&self, epoch: usize) -> bool {
        epoch.is_multiple_of(self.every) || epoch == self.job.plan().epochs()
    }

    fn score(&mut self, epoch: usize, embeddings: &Matrix) -> Result<EpochScores> {
        let key = self.job.key();
        self.watcher.busy(&format!("scoring {key} at epoch {epoch}"));
        let (labels, splits) = (labels_of(self.graph)?, self.graph.splits());
        let plan = EvalPlan { protocol: Protocol::Both, ..EvalPlan::default() };
        match evaluate(embeddings, labels, splits, &plan, self.threads, &mut |_| ()) {
            Ok(scores) => Ok(scores.of_an_epoch()),
            // An embedding that cannot be scored is no reason to lose the training.
            Err(error) => {
                self.watcher.warned(&format!("{key}: no scores at epoch {epoch}: {error}"));
                Ok(EpochScores::default())
            }
        }
    }
}
