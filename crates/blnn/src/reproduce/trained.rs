//! [`Trained`]: what the folder of a finished run says, and the files kept there for it.
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
use crate::published::Metric;
use crate::run::{Record, RunFolder};
use crate::train::same_config;

use super::Options;
use super::job::TrainingJob;

/// Scores over time: number of epochs, and scores by name.
pub type OverTime = Vec<(usize, BTreeMap<String, f64>)>;

/// Which program trained a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainedBy {
    /// The version of blnn.
    pub version: String,
    /// The commits it was built from: more than one if the run was continued by another build.
    pub commits: Vec<String>,
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
    /// Its folder.
    pub root: PathBuf,
    /// By which program.
    pub provenance: TrainedBy,
    /// Its scores over time.
    pub over_time: OverTime,
    /// The last embedding's scores.
    pub last: Evaluation,
}

impl Trained {
    /// The best of all evaluations, chosen on the test score itself as in the paper, and its
    /// epoch; none if some evaluation did not take this score.
    pub fn best(&self, metric: Metric) -> Option<(usize, f64)> {
        best_of(&self.over_time, metric)
    }

    /// The score of the last embedding.
    pub fn last(&self, metric: Metric) -> Option<f64> {
        self.last.scores.get(metric.key()).copied()
    }

    /// The spread of the accuracy over the splits of the evaluation at `epoch`.
    pub fn split_std(&self, metric: Metric, epoch: usize) -> Option<f64> {
        let of = |(e, scores): &(usize, BTreeMap<String, f64>)| {
            (*e == epoch).then(|| scores.get("accuracy_std").copied()).flatten()
        };
        (metric == Metric::Accuracy).then(|| self.over_time.iter().find_map(of)).flatten()
    }

    /// Epochs between evaluations.
    pub fn cadence(&self) -> usize {
        self.over_time.first().map_or(self.job.plan().epochs, |first| first.0)
    }

    /// The last embedding.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn embeddings(&self) -> Result<Matrix> {
        npy::read_file(&self.root.join("embeddings.npy"))?.into_matrix()
    }
}

/// See [`Trained::best`].
pub(super) fn best_of(over_time: &OverTime, metric: Metric) -> Option<(usize, f64)> {
    let scored = over_time.iter();
    let scored: Option<Vec<(usize, f64)>> =
        scored.map(|(epoch, s)| Some((*epoch, *s.get(metric.key())?))).collect();
    // The first of equals.
    scored?.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The folder of a job's run.
pub(super) fn root_of(options: &Options, job: &TrainingJob) -> PathBuf {
    options.out.join("runs").join(job.key())
}

/// Whether the folder holds this very run, trained to its end.
///
/// # Errors
/// If it holds another run, or one that was scored at other epochs than asked for.
pub(super) fn is_finished(options: &Options, job: &TrainingJob) -> Result<bool> {
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
    Ok(finished && root.join("embeddings.npy").exists())
}

/// The epochs at which a run in progress is scored: as asked, as before, or by default.
pub(super) fn cadence(root: &Path, options: &Options, job: &TrainingJob) -> Result<usize> {
    let before = records(root)?.iter().find(|r| !r.scores.is_empty()).map(|r| r.epoch);
    Ok(options.eval_every.or(before).unwrap_or_else(|| job.default_cadence()))
}

/// A best of 40 evaluations is not a best of 20: what is in the folder must be what was asked for.
fn check_cadence(root: &Path, options: &Options, job: &TrainingJob) -> Result<()> {
    let Some(every) = options.eval_every else {
        return Ok(());
    };
    let records = records(root)?;
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

fn records(root: &Path) -> Result<Vec<Record>> {
    let path = root.join("metrics.jsonl");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, e))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Notes which program trains the run in `folder`.
pub(super) fn note_provenance(folder: &RunFolder, options: &Options) -> Result<()> {
    let path = folder.root().join("provenance.json");
    let mut provenance: TrainedBy = read_json(&path)?.unwrap_or_default();
    provenance.version = env!("CARGO_PKG_VERSION").into();
    if let Some(commit) = options.commit.as_ref().filter(|c| !provenance.commits.contains(c)) {
        provenance.commits.push(commit.clone());
    }
    write_json(&path, &provenance)
}

/// Reads a finished run; scores its last embedding unless that was done before.
pub(super) fn read(
    options: &Options,
    job: &TrainingJob,
    graph: impl FnOnce() -> Result<Rc<Graph>>,
    threads: &Threads,
) -> Result<Trained> {
    let root = root_of(options, job);
    Ok(Trained {
        job: job.clone(),
        provenance: read_json(&root.join("provenance.json"))?.unwrap_or_default(),
        over_time: over_time(options, job)?,
        last: evaluation(&root, graph, threads)?,
        root,
    })
}

/// The scores of a job's run so far, finished or not; none if there is no such run.
pub(super) fn over_time(options: &Options, job: &TrainingJob) -> Result<OverTime> {
    let scored = records(&root_of(options, job))?.into_iter().filter(|r| !r.scores.is_empty());
    Ok(scored.map(|r| (r.epoch, r.scores)).collect())
}

/// The run's evaluation: from its file if that belongs to the embedding, else computed and kept.
fn evaluation(
    root: &Path,
    graph: impl FnOnce() -> Result<Rc<Graph>>,
    threads: &Threads,
) -> Result<Evaluation> {
    let embeddings = root.join("embeddings.npy");
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
