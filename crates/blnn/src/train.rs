//! [`train`]: the training loop, from a graph and a plan to a run folder with embeddings in it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use blnn_kernels::{Matrix, Threads};
use serde::Serialize;

use crate::checkpoint::{Checkpoint, Header};
use crate::collapse::{Health, possible_rank};
use crate::config::KEYS;
use crate::error::{Error, ErrorKind, Result};
use crate::eval::EpochScores;
use crate::graph::{Fingerprints, Graph};
use crate::method;
use crate::plan::{Kernels, Method, Plan, Precision};
use crate::run::{Metrics, Record, RunFolder};
use crate::trainer::{Step, Trainer};

/// What to train, on what, and where the files go.
#[derive(Debug)]
pub struct Job<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Every setting that changes a number.
    pub plan: &'a Plan,
    /// The worker threads; their number changes no number.
    pub threads: &'a Threads,
    /// Where the files of the run go.
    pub folder: &'a RunFolder,
    /// A record is written each time this many epochs are done (and at the first, the last and
    /// every checkpoint).
    pub log_every: usize,
}

/// Someone who watches a run. Every method has a default that does nothing.
pub trait Observer {
    /// Training begins after `epoch` epochs done by an earlier process (0 for a new run).
    fn started(&mut self, epoch: usize) {
        let _ = epoch;
    }

    /// The run goes on with other kernels than those that its checkpoint was trained by last: from
    /// here on it rounds otherwise than it would have.
    fn switched(&mut self, from: &str, to: &str) {
        let _ = (from, to);
    }

    /// A step is done. `Break` ends the run after a checkpoint.
    fn stepped(&mut self, step: &Step, seconds: f64) -> ControlFlow<()> {
        let _ = (step, seconds);
        ControlFlow::Continue(())
    }

    /// A checkpoint is on the disk, and the embedding was measured.
    fn saved(&mut self, epoch: usize, health: &Health) {
        let _ = (epoch, health);
    }

    /// A record was written to `metrics.jsonl`.
    ///
    /// # Errors
    /// Whatever the observer cannot do with it; it ends the run.
    fn recorded(&mut self, record: &Record) -> Result<()> {
        let _ = record;
        Ok(())
    }

    /// Whether [`score`](Self::score) should be called at this epoch.
    fn wants_score(&self, epoch: usize) -> bool {
        let _ = epoch;
        false
    }

    /// Scores the embedding; the result goes into the epoch's record.
    ///
    /// # Errors
    /// Whatever the evaluation reports; it ends the run.
    fn score(&mut self, epoch: usize, embeddings: &Matrix) -> Result<EpochScores> {
        let _ = (epoch, embeddings);
        Ok(EpochScores::default())
    }
}

/// An observer for those who only want the result.
impl Observer for () {}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The graph's name.
    pub graph: String,
    /// Number of nodes.
    pub nodes: usize,
    /// What was trained.
    pub method: Method,
    /// The seed every random draw derives from.
    pub seed: u64,
    /// The arithmetic.
    pub precision: Precision,
    /// The kernels it ran on.
    pub kernels: Kernels,
    /// Number of epochs done.
    pub epochs: usize,
    /// Whether all planned epochs are done and the embeddings are written. If not, an observer
    /// ended the run and it can be resumed.
    pub finished: bool,
    /// Number of values in one node's embedding.
    pub embedding_width: usize,
    /// The last record of the run.
    pub last: Option<Record>,
    /// Seconds spent by this process, all included.
    pub seconds: f64,
}

/// Refuses what [`train`] would refuse of a graph, before anything is written or removed for it.
///
/// # Errors
/// If the graph has no edges, or the method needs labels that it does not have.
pub fn check_graph(graph: &Graph, plan: &Plan) -> Result<()> {
    method::check(plan.method, graph)
}

/// Trains until all epochs of the plan are done or the observer ends the run. If the folder
/// holds a checkpoint, training goes on from there and ends with the same bits as if it had never
/// stopped, unless it was trained by other kernels ([`Observer::switched`]).
///
/// # Errors
/// - `Checkpoint` if the folder's checkpoint is damaged or belongs to another graph or config;
/// - `Diverged` if the loss or a tensor is no longer finite (the last good checkpoint stays);
/// - `Io` if a file cannot be written (the last checkpoint stays).
///
/// # Examples
/// ```
/// use blnn::{Config, Job, RunFolder, data, train};
/// use blnn_kernels::Threads;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = data::load("cora", &[])?;
/// let mut config = Config::new();
/// config.assign("epochs=2")?;
/// config.assign("hidden_width=8")?;
/// config.assign("embedding_width=4")?;
/// let place = tempfile::tempdir()?;
/// let folder = RunFolder::create(place.path(), false)?;
/// let job = Job {
///     graph: &graph,
///     plan: &config.resolve("cora")?,
///     threads: &Threads::new(1),
///     folder: &folder,
///     log_every: 1,
/// };
/// let outcome = train(&job, &mut ())?;
/// assert!(outcome.finished && folder.embeddings().exists());
/// # Ok(())
/// # }
/// ```
pub fn train(job: &Job<'_>, observer: &mut dyn Observer) -> Result<Outcome> {
    let began = Instant::now();
    let mut trainer = Trainer::new(job.graph, job.plan, job.threads)?;
    let trained_by = restore(job, &mut trainer)?;
    if trainer.epoch() == job.plan.epochs && job.folder.is_complete() {
        // Other instructions than those it was trained by would leave other last bits.
        observer.started(trainer.epoch());
        return outcome(job, trainer.epoch(), true, began.elapsed().as_secs_f64());
    }
    job.folder.write_config(job.plan, job.graph.name())?;
    let mut metrics = Metrics::resume(job.folder, trainer.epoch())?;
    let possible = possible_rank(job.graph);
    observer.started(trainer.epoch());
    let kernels = with_own(trained_by, &job.plan.precision.rounding(), observer);
    let mut stopped = false;
    while trainer.epoch() < job.plan.epochs && !stopped {
        let (step, seconds) = timed_step(&mut trainer, job.plan)?;
        stopped = observer.stepped(&step, seconds).is_break();
        let health = |embeddings: &Matrix| Health::given(embeddings, possible);
        let done = Done { step, seconds, kernels: &kernels };
        note(job, &mut trainer, observer, &mut metrics, &done, &health)?;
        if stopped && !job.checkpoint_due(step.epoch) {
            save(job, &trainer, &kernels)?;
        }
    }
    let finished = trainer.epoch() == job.plan.epochs;
    if finished {
        job.folder.write_embeddings(&trainer.embed(), job.graph)?;
    }
    let outcome = outcome(job, trainer.epoch(), finished, began.elapsed().as_secs_f64())?;
    job.folder.write_summary(&outcome)?;
    Ok(outcome)
}

impl Job<'_> {
    fn checkpoint_due(&self, epoch: usize) -> bool {
        epoch.is_multiple_of(self.plan.checkpoint_every) || epoch == self.plan.epochs
    }

    fn record_due(&self, epoch: usize) -> bool {
        epoch == 1 || epoch.is_multiple_of(self.log_every.max(1)) || self.checkpoint_due(epoch)
    }
}

/// What stands for kernels that an old checkpoint did not name.
const UNKNOWN_KERNELS: &str = "unknown";

/// The kernels that a run was trained by and those of this process, which the observer is told of if
/// they are others than the last.
fn with_own(mut kernels: Vec<String>, own: &str, observer: &mut dyn Observer) -> Vec<String> {
    match kernels.last() {
        Some(last) if last == own => return kernels,
        Some(last) if last != UNKNOWN_KERNELS => observer.switched(last, own),
        _ => {}
    }
    kernels.push(own.to_owned());
    kernels
}

/// A step, the time it took, and the kernels that the run was trained by.
struct Done<'a> {
    step: Step,
    seconds: f64,
    kernels: &'a [String],
}

fn timed_step(trainer: &mut Trainer, plan: &Plan) -> Result<(Step, f64)> {
    let began = Instant::now();
    let step = trainer.step();
    if !step.loss.is_finite() {
        return Err(diverged(plan, step.epoch, &format!("the loss is {}", step.loss)));
    }
    Ok((step, began.elapsed().as_secs_f64()))
}

fn diverged(plan: &Plan, epoch: usize, what: &str) -> Error {
    let message = format!(
        "{what} at epoch {epoch}: training diverged; lower `learning_rate` (now {}) or raise \
         `warmup_epochs` (now {})",
        plan.learning_rate, plan.warmup_epochs
    );
    Error::new(ErrorKind::Diverged, message)
}

/// Writes the record of this epoch, if one is due, then the checkpoint, if one is due. In this
/// order: a checkpoint on the disk means that all records up to it are there too.
fn note(
    job: &Job<'_>,
    trainer: &mut Trainer,
    observer: &mut dyn Observer,
    metrics: &mut Metrics,
    &Done { ref step, seconds, kernels }: &Done<'_>,
    health: &dyn Fn(&Matrix) -> Health,
) -> Result<()> {
    let checkpoint = job.checkpoint_due(step.epoch);
    let score = observer.wants_score(step.epoch);
    if !score && !job.record_due(step.epoch) {
        return Ok(());
    }
    let embeddings = (checkpoint || score).then(|| trainer.embed());
    let measured = embeddings.as_ref().filter(|_| checkpoint);
    let mut record = record(step, seconds);
    record.health = measured.map(health);
    if let Some(embeddings) = embeddings.as_ref().filter(|_| score) {
        let found = observer.score(step.epoch, embeddings)?;
        (record.scores, record.splits) = (found.by_name, found.splits);
    }
    metrics.write(&record)?;
    observer.recorded(&record)?;
    if let Some(health) = &record.health {
        metrics.sync()?;
        save(job, trainer, kernels)?;
        observer.saved(step.epoch, health);
    }
    Ok(())
}

fn record(step: &Step, seconds: f64) -> Record {
    Record {
        epoch: step.epoch,
        loss: step.loss,
        node_loss: step.node_loss,
        neighbour_loss: step.neighbour_loss,
        learning_rate: step.learning_rate,
        ema_decay: step.ema_decay,
        seconds,
        health: None,
        scores: BTreeMap::new(),
        splits: None,
    }
}

/// Writes a checkpoint, unless that would replace a good one by one that cannot be trained on: a
/// step can have a finite loss and still leave weights that are not finite.
fn save(job: &Job<'_>, trainer: &Trainer, kernels: &[String]) -> Result<()> {
    let tensors = trainer.tensors();
    for (name, tensor) in &tensors {
        if tensor.data().iter().any(|v| !v.is_finite()) {
            let what = format!("`{name}` holds a value that is not finite");
            return Err(diverged(job.plan, trainer.epoch(), &what));
        }
    }
    let Fingerprints { whole, unlabelled } = job.graph.fingerprints();
    let header = Header {
        epoch: trainer.epoch(),
        seed: job.plan.seed,
        graph: job.graph.name().to_owned(),
        fingerprint: whole,
        unlabelled: Some(unlabelled),
        config: job.plan.to_toml(),
        kernels: kernels.to_vec(),
    };
    Checkpoint::write(&job.folder.checkpoint(), &header, &tensors)
}

/// Puts the trainer where the folder's checkpoint left off, if there is one, and names the kernels
/// that it was trained by.
fn restore(job: &Job<'_>, trainer: &mut Trainer) -> Result<Vec<String>> {
    let path = job.folder.checkpoint();
    if !path.exists() {
        return begin(job).map(|()| Vec::new());
    }
    let mut checkpoint = Checkpoint::read(&path)?;
    let header = checkpoint.header();
    same_graph(header, job).map_err(|e| e.at(path.display()))?;
    same_config(&header.config, job.plan).map_err(|e| e.at(path.display()))?;
    let (epoch, mut kernels) = (header.epoch, header.kernels.clone());
    if kernels.is_empty() {
        kernels.push(UNKNOWN_KERNELS.to_owned());
    }
    trainer.restore(epoch, &mut |name, shape| checkpoint.take(name, shape))?;
    Ok(kernels)
}

/// Makes way for a run that has no checkpoint: what else the folder holds is of one that did, or of
/// these very settings.
fn begin(job: &Job<'_>) -> Result<()> {
    let path = job.folder.config();
    if path.exists() {
        let saved = std::fs::read_to_string(&path).map_err(|e| Error::io("read", &path, e))?;
        if let Some(difference) = config_difference(&saved, job.plan) {
            let message = format!(
                "the run was {difference}, and has no checkpoint; start it anew with --force, or \
                 choose another folder with --out"
            );
            return Err(Error::new(ErrorKind::Checkpoint, message).at(path.display()));
        }
    }
    job.folder.remove_results()
}

/// Labels may have come or changed since, unless the method trains on them.
fn same_graph(header: &Header, &Job { graph, plan, .. }: &Job<'_>) -> Result<()> {
    let labels_count = plan.method == Method::BgrlClean;
    if header.fits(graph) && (!labels_count || header.fingerprint == graph.fingerprint()) {
        return Ok(());
    }
    let message = format!(
        "the checkpoint was trained on another graph: `{}` (fingerprint {}), not `{}` ({}); name \
         that graph, or start a new run with another --out",
        header.graph,
        header.fingerprint,
        graph.name(),
        graph.fingerprint()
    );
    Err(Error::new(ErrorKind::Checkpoint, message))
}

/// Refuses settings that would make the rest of the run another run.
pub(crate) fn same_config(saved: &str, plan: &Plan) -> Result<()> {
    let Some(difference) = config_difference(saved, plan) else {
        return Ok(());
    };
    let message = format!(
        "the checkpoint was {difference}; resume with the former, or start a new run with another \
         --out"
    );
    Err(Error::new(ErrorKind::Checkpoint, message))
}

/// The first setting in which a run that was saved differs from a plan. How often to save does not
/// make another run.
pub(crate) fn config_difference(saved: &str, plan: &Plan) -> Option<String> {
    let table = |text: &str| text.parse::<toml::Table>().unwrap_or_default();
    let (saved, wanted) = (table(saved), table(&plan.to_toml()));
    let differs = |key: &&str| *key != "checkpoint_every" && saved.get(*key) != wanted.get(*key);
    let key = KEYS.into_iter().find(differs)?;
    let show = |table: &toml::Table| table.get(key).map_or("nothing".into(), ToString::to_string);
    let why = if key == "epochs" {
        " (learning rate and moving average follow a schedule over all epochs, so a longer run \
         is another run from its first step on)"
    } else {
        ""
    };
    Some(format!("trained with {key} = {}, not {}{why}", show(&saved), show(&wanted)))
}

fn outcome(job: &Job<'_>, epochs: usize, finished: bool, seconds: f64) -> Result<Outcome> {
    Ok(Outcome {
        graph: job.graph.name().to_owned(),
        nodes: job.graph.nodes(),
        method: job.plan.method,
        seed: job.plan.seed,
        precision: job.plan.precision,
        kernels: job.plan.precision.kernels(),
        epochs,
        finished,
        embedding_width: job.plan.embedding_width,
        last: job.folder.records()?.pop(),
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kernels_are_told_of_and_unknown_ones_are_kept() {
        #[derive(Default)]
        struct Told(Vec<(String, String)>);
        impl Observer for Told {
            fn switched(&mut self, from: &str, to: &str) {
                self.0.push((from.to_owned(), to.to_owned()));
            }
        }
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let mut told = Told::default();
        for (before, after) in [
            (list(&[]), list(&["avx2"])),
            (list(&["avx2"]), list(&["avx2"])),
            (list(&[UNKNOWN_KERNELS]), list(&[UNKNOWN_KERNELS, "avx2"])),
        ] {
            assert_eq!(with_own(before, "avx2", &mut told), after);
            assert!(told.0.is_empty(), "{:?}", told.0);
        }
        let after = with_own(list(&["avx2", "neon"]), "avx2", &mut told);
        assert_eq!(after, list(&["avx2", "neon", "avx2"]));
        assert_eq!(told.0, [("neon".to_owned(), "avx2".to_owned())]);
    }
}
