//! [`Trained`]: a finished run, and the files kept in its folder for it.
//!
//! | file | what it is |
//! |---|---|
//! | `provenance.json` | [`TrainedBy`]: which program trained the run |
//! | `evaluation.json` | [`Evaluation`]: the last embedding's scores under both protocols |

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use blnn_kernels::{Matrix, Threads};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::data::{fetch, npy};
use crate::error::{Error, ErrorKind, Result};
use crate::eval::{ClassifyScores, EvalPlan, Protocol, evaluate};
use crate::graph::Graph;
use crate::plan::Precision;
use crate::run::{Record, RunFolder, read_records};
use crate::train::same_config;

use super::Options;
use super::job::TrainingJob;
use super::record::{self, RunRecord};

const PROVENANCE: &str = "provenance.json";
const EMBEDDINGS: &str = "embeddings.npy";

/// What a reader is told of a record that is not that of the run in the folder.
const OTHER_SCORES: &str = "on record with other scores than those of the run in its folder, which \
    pictures are made of; without the record the latter are taken";

/// Scores over time: number of epochs, and scores by name.
pub type OverTime = Vec<(usize, BTreeMap<String, f64>)>;

/// Which program trained a run, and how often it scored it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainedBy {
    /// The version of blnn.
    pub version: String,
    /// The commits it was built from: more than one if the run was continued by another build.
    pub commits: Vec<String>,
    /// The instructions that decided how it rounded: the vectors, and of a run in bfloat16 the
    /// products after a slash. Only the same ones give the same bits. Older records of runs in
    /// bfloat16 name the vectors alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<String>,
    /// Epochs between evaluations, where they were noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_every: Option<usize>,
}

/// The scores of a run's last embedding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The embedding that was scored.
    pub embeddings_sha256: String,
    /// All scores by name; accuracy by the published code's protocol, or by public splits.
    pub scores: BTreeMap<String, f64>,
    /// How the nodes were split for [`Evaluation::scores`].
    pub protocol: String,
    /// Accuracy on each split.
    pub accuracies: Vec<f64>,
    /// Accuracy by the paper's words (train 10 %, validate 10 %, test 80 %), where the data set
    /// has no splits of its own.
    pub paper_split: Option<PaperSplit>,
}

/// Accuracy by the paper's split protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperSplit {
    /// Mean over the splits.
    pub accuracy: f64,
    /// Population standard deviation over the splits.
    pub accuracy_std: f64,
    /// Accuracy on each split.
    pub accuracies: Vec<f64>,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// What was trained.
    pub job: TrainingJob,
    /// Its scores.
    pub record: RunRecord,
    /// Its last embedding; none where nothing but the record is here.
    pub embedding: Option<StoredEmbedding>,
}

/// The file of an embedding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEmbedding {
    /// Where it is.
    pub path: PathBuf,
    /// Its checksum.
    pub sha256: String,
}

impl StoredEmbedding {
    /// The embedding.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn read(&self) -> Result<Matrix> {
        npy::read_file(&self.path)?.into_matrix()
    }
}

/// The folder of a job's run.
pub(super) fn root_of(options: &Options, job: &TrainingJob) -> PathBuf {
    options.out.join("runs").join(job.key())
}

/// Whether a job need not be trained: its folder holds the finished run, or its record does where
/// nobody asks for the embedding.
///
/// # Errors
/// If folder or record are those of another run, or of one that was scored at other epochs than
/// asked for.
pub(super) fn is_known(options: &Options, job: &TrainingJob, for_embedding: bool) -> Result<bool> {
    if is_finished(options, job)? {
        return Ok(true);
    }
    let recorded = record::find(options, job)?.is_some_and(|record| record.is_finished());
    Ok(recorded && !for_embedding)
}

/// Whether the folder holds this very run, trained to its end.
fn is_finished(options: &Options, job: &TrainingJob) -> Result<bool> {
    let root = root_of(options, job);
    let config = root.join("config.toml");
    if !config.exists() {
        return Ok(false);
    }
    let text = fs::read_to_string(&config).map_err(|e| Error::io("read", &config, e))?;
    same_config(&text, job.plan()).map_err(|e| e.at(root.display()))?;
    check_cadence(&root, options, job)?;
    let summary: Option<serde_json::Value> = read_json(&root.join("summary.json"))?;
    let finished = summary.is_some_and(|s| s["finished"] == true);
    Ok(finished && root.join(EMBEDDINGS).exists())
}

/// The epochs at which a run in progress is scored: as asked, as before, or by default.
pub(super) fn cadence(root: &Path, options: &Options, job: &TrainingJob) -> Result<usize> {
    let noted = provenance(root)?.eval_every;
    let first_scored = metrics(root)?.iter().find(|r| !r.scores.is_empty()).map(|r| r.epoch);
    let recorded = record::of_run(options, job)?.and_then(|record| record.eval_every());
    let before = noted.or(first_scored).or(recorded);
    Ok(options.eval_every.or(before).unwrap_or_else(|| job.default_cadence()))
}

/// A best of 40 evaluations is not a best of 20: what is in the folder must be what was asked for.
fn check_cadence(root: &Path, options: &Options, job: &TrainingJob) -> Result<()> {
    let Some(every) = options.eval_every else {
        return Ok(());
    };
    if provenance(root)?.eval_every == Some(every) {
        return Ok(());
    }
    let records = metrics(root)?;
    let done = records.last().map_or(0, |r| r.epoch);
    let scored: BTreeSet<usize> =
        records.iter().filter(|r| !r.scores.is_empty()).map(|r| r.epoch).collect();
    let due = |epoch: usize| epoch.is_multiple_of(every) || epoch == job.plan().epochs;
    let Some(epoch) = (1..=done).find(|epoch| due(*epoch) != scored.contains(epoch)) else {
        return Ok(());
    };
    let (is, should) = if due(epoch) { ("not scored", "is") } else { ("scored", "is not") };
    let message = format!(
        "the run was {is} after epoch {epoch}, which {should} due with --eval-every {every}; leave \
         that flag out, or choose another --out"
    );
    Err(Error::new(ErrorKind::Config, message).at(root.display()))
}

fn metrics(root: &Path) -> Result<Vec<Record>> {
    read_records(&root.join("metrics.jsonl"))
}

fn provenance(root: &Path) -> Result<TrainedBy> {
    Ok(read_json(&root.join(PROVENANCE))?.unwrap_or_default())
}

/// Notes which program trains the run in `folder`, and how often it scores it.
pub(super) fn note_provenance(
    folder: &RunFolder,
    precision: Precision,
    options: &Options,
    every: usize,
) -> Result<()> {
    let path = folder.root().join(PROVENANCE);
    let mut provenance = provenance(folder.root())?;
    provenance.version = env!("CARGO_PKG_VERSION").into();
    provenance.eval_every = Some(every);
    let note = |noted: &mut Vec<String>, new: String| {
        if !noted.contains(&new) {
            noted.push(new);
        }
    };
    note(&mut provenance.vectors, precision.rounding());
    if let Some(commit) = &options.commit {
        note(&mut provenance.commits, commit.clone());
    }
    write_json(&path, &provenance)
}

/// Reads a finished run, of which the folder or at least the record is here, and keeps its record;
/// scores its last embedding unless that was done before. `None` if it is not finished.
pub(super) fn read(
    options: &Options,
    job: &TrainingJob,
    graph: impl FnOnce() -> Result<Rc<Graph>>,
    threads: &Threads,
) -> Result<Option<Trained>> {
    if !is_finished(options, job)? {
        let recorded = record::find(options, job)?.filter(RunRecord::is_finished);
        return Ok(recorded.map(|record| Trained { job: job.clone(), record, embedding: None }));
    }
    let root = root_of(options, job);
    let last = evaluation(&root, graph, threads)?;
    let embedding = StoredEmbedding { path: root.join(EMBEDDINGS), sha256: last.embeddings_sha256 };
    let here = record_of(&root, job, Some(last.scores))?;
    let mut record = record::keep(options, job, here.clone())?;
    if !record.has_scores_of(&here) {
        let remarks = record.remark.iter().map(String::as_str).chain([OTHER_SCORES]);
        record.remark = Some(remarks.collect::<Vec<_>>().join("; "));
    }
    Ok(Some(Trained { job: job.clone(), record, embedding: Some(embedding) }))
}

/// Keeps the record of a job's run that is not finished, if it was begun and scored: its folder may
/// be lost at any time.
pub(super) fn keep_record(options: &Options, job: &TrainingJob) -> Result<()> {
    let record = record_of(&root_of(options, job), job, None)?;
    if record.evaluations > 0 { record::keep(options, job, record).map(drop) } else { Ok(()) }
}

/// The record of the run in a folder as far as it came.
fn record_of(
    root: &Path,
    job: &TrainingJob,
    last: Option<BTreeMap<String, f64>>,
) -> Result<RunRecord> {
    let trained_by = provenance(root)?;
    let scored = metrics(root)?.into_iter().filter(|r| !r.scores.is_empty());
    let over_time = scored.map(|r| (r.epoch, r.scores)).collect();
    Ok(RunRecord::new(job, trained_by, over_time, last))
}

/// The run's evaluation: from its file if that belongs to the embedding, else computed and kept.
fn evaluation(
    root: &Path,
    graph: impl FnOnce() -> Result<Rc<Graph>>,
    threads: &Threads,
) -> Result<Evaluation> {
    let embeddings = root.join(EMBEDDINGS);
    let sum = fetch::sha256_of(&embeddings)?;
    let path = root.join("evaluation.json");
    let kept: Option<Evaluation> = read_json(&path)?;
    if let Some(kept) = kept.filter(|kept| kept.embeddings_sha256 == sum) {
        return Ok(kept);
    }
    let matrix = npy::read_file(&embeddings)?.into_matrix()?;
    let graph = graph()?;
    let found = score(&matrix, &graph, sum, threads).map_err(|e| e.at(embeddings.display()))?;
    write_json(&path, &found)?;
    Ok(found)
}

fn score(embeddings: &Matrix, graph: &Graph, sum: String, threads: &Threads) -> Result<Evaluation> {
    let labels = labels_of(graph)?;
    let plan = EvalPlan { protocol: Protocol::Both, ..EvalPlan::default() };
    let scores = evaluate(embeddings, labels, graph.splits(), &plan, threads, &mut |_| ())?;
    let classify = scores.classify.as_ref();
    Ok(Evaluation {
        embeddings_sha256: sum,
        scores: scores.by_name(),
        protocol: classify.map_or("", |c| c.protocol).to_owned(),
        accuracies: classify.map(|c| c.per_split.clone()).unwrap_or_default(),
        paper_split: scores.classify_paper.as_ref().map(PaperSplit::of),
    })
}

impl PaperSplit {
    fn of(scores: &ClassifyScores) -> Self {
        Self {
            accuracy: scores.summary.mean,
            accuracy_std: scores.summary.std,
            accuracies: scores.per_split.clone(),
        }
    }
}

/// The classes, without which there is nothing to reproduce.
pub(super) fn labels_of(graph: &Graph) -> Result<&[u32]> {
    graph.labels().ok_or_else(|| {
        Error::new(ErrorKind::Dataset, "has no labels to score against").at(graph.name())
    })
}

/// What a JSON file holds; `None` if there is no such file.
///
/// # Errors
/// If the file cannot be read or holds something else.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    serde_json::from_str(&text).map(Some).map_err(|e| {
        let message = format!("{e}; remove the file, and it is made again");
        Error::new(ErrorKind::Parse, message).at(path.display())
    })
}

/// Replaces a JSON file as a whole.
pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    // Structs of numbers and strings have no way to fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
    write_text(path, &text)
}

/// Replaces a text file as a whole.
pub(super) fn write_text(path: &Path, text: &str) -> Result<()> {
    atomic::replace(path, |out| out.write_all(text.as_bytes()))
}
