//! [`RunFolder`]: the files of one training run. `docs/RUN_FOLDER.md` describes each of them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use blnn_kernels::Matrix;
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::collapse::Health;
use crate::data::npy;
use crate::data::own::{Encoding, OwnGraph};
use crate::error::{Error, ErrorKind, Result};
use crate::eval::SplitAccuracies;
use crate::export;
use crate::graph::Graph;
use crate::plan::Plan;
use crate::tensorboard;

/// What metrics.jsonl says about one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of epochs done.
    pub epoch: usize,
    /// The loss that was minimised: the sum of the two terms.
    pub loss: f64,
    /// The term that pulls a node to itself in the other view.
    pub node_loss: f64,
    /// The term that pulls a node to its neighbours; 0 for BGRL.
    pub neighbour_loss: f64,
    /// Learning rate of this epoch.
    pub learning_rate: f64,
    /// Decay of the target network's moving average in this epoch.
    pub ema_decay: f64,
    /// Seconds this epoch took. The only field that differs between equal runs.
    pub seconds: f64,
    /// Effective rank and spread, where they were measured.
    #[serde(flatten)]
    pub health: Option<Health>,
    /// Scores of the embedding at this epoch, where it was evaluated.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, f64>,
    /// Accuracies of the same evaluation split by split, where its splits set nodes aside to
    /// choose by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub splits: Option<SplitAccuracies>,
}

/// The folder of one run, held by this process alone while the value lives.
#[derive(Debug)]
pub struct RunFolder {
    root: PathBuf,
    /// Held, not read: the operating system frees the lock however the process ends.
    _lock: File,
}

/// Files that say what is trained and how far it came.
const STATE: [&str; 5] =
    ["config.toml", "metrics.jsonl", "checkpoint.safetensors", "features.json", "graph.json"];

/// Files that a run leaves when it ends.
const RESULTS: [&str; 10] = [
    "embeddings.npy",
    "node_ids.txt",
    "summary.json",
    "report.html",
    "embeddings.npz",
    "embeddings.parquet",
    "embeddings.csv",
    "embeddings.w2v.txt",
    "embeddings.vectors.tsv",
    "embeddings.metadata.tsv",
];

/// Every file of ours but the lock. Nothing else in a run folder is ever touched.
fn files() -> impl Iterator<Item = &'static str> {
    STATE.into_iter().chain(RESULTS)
}

impl RunFolder {
    /// A folder for a new run; made if it does not exist.
    ///
    /// # Errors
    /// If the folder cannot be made or written to, another process is using it, or it holds a
    /// run already and `replace` is false. With `replace` the files of that run are removed.
    pub fn create(root: &Path, replace: bool) -> Result<Self> {
        fs::create_dir_all(root).map_err(|e| Error::io("create", root, e))?;
        let folder = Self::lock(root)?;
        if Self::holds_run(root) && !replace {
            let message = format!(
                "{} already holds a run; continue it with --resume, replace it with --force, or \
                 choose another folder with --out",
                root.display()
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        remove(root, files())?;
        tensorboard::remove(&folder.tensorboard())?;
        Ok(folder)
    }

    /// The folder of a run to be continued.
    ///
    /// # Errors
    /// If there is no run, or another process is using it.
    pub fn open(root: &Path) -> Result<Self> {
        if !Self::holds_run(root) {
            let message = format!(
                "{} holds no run to resume; name the run's folder with --out, or drop --resume to \
                 start one",
                root.display()
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        Self::lock(root)
    }

    /// Whether the folder holds a run, finished or not.
    pub fn holds_run(root: &Path) -> bool {
        files().any(|name| root.join(name).exists())
    }

    /// Whether a file is one that a new run in this folder would replace.
    pub fn would_replace(root: &Path, file: &Path) -> bool {
        let Ok(file) = file.canonicalize() else {
            return false;
        };
        files().any(|name| root.join(name).canonicalize().is_ok_and(|ours| ours == file))
    }

    /// Whether the run in it ended, and its result is there.
    pub(crate) fn is_complete(&self) -> bool {
        let summary = fs::read_to_string(self.summary()).unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap_or_default();
        summary["finished"] == true && self.embeddings().exists()
    }

    /// Removes what an earlier run left when it ended.
    pub(crate) fn remove_results(&self) -> Result<()> {
        remove(&self.root, RESULTS.into_iter())?;
        tensorboard::remove(&self.tensorboard())
    }

    fn lock(root: &Path) -> Result<Self> {
        let path = root.join(".lock");
        let file = File::create(&path).map_err(|e| Error::io("create", &path, e))?;
        match file.try_lock() {
            Ok(()) => {
                // Whoever left them behind does not hold the lock any more.
                atomic::remove_leftovers(root);
                Ok(Self { root: root.to_owned(), _lock: file })
            }
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process is writing to {}; wait for it or choose another folder with \
                     --out",
                    root.display()
                );
                Err(Error::new(ErrorKind::Io, message))
            }
            Err(TryLockError::Error(e)) => Err(Error::io("lock", &path, e)),
        }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The resolved config.
    pub fn config(&self) -> PathBuf {
        self.root.join("config.toml")
    }

    /// One JSON object for each recorded epoch.
    pub fn metrics(&self) -> PathBuf {
        self.root.join("metrics.jsonl")
    }

    /// All state of the training.
    pub fn checkpoint(&self) -> PathBuf {
        self.root.join("checkpoint.safetensors")
    }

    /// The result: one row a node.
    pub fn embeddings(&self) -> PathBuf {
        self.root.join("embeddings.npy")
    }

    /// The id of each row, one a line.
    pub fn node_ids(&self) -> PathBuf {
        self.root.join("node_ids.txt")
    }

    /// How the features of the nodes were made.
    pub fn features(&self) -> PathBuf {
        self.root.join("features.json")
    }

    /// Where the files of the user's own graph were.
    pub fn graph(&self) -> PathBuf {
        self.root.join("graph.json")
    }

    /// What was trained and how it ended, as one JSON object.
    pub fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }

    /// The page that shows the run.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// The folder of event files for `TensorBoard`.
    pub fn tensorboard(&self) -> PathBuf {
        self.root.join("tensorboard")
    }

    /// Writes config.toml.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_config(&self, plan: &Plan, graph: &str) -> Result<()> {
        let version = env!("CARGO_PKG_VERSION");
        let head = format!("# Resolved settings of a run on `{graph}`, blnn {version}.\n");
        write(&self.config(), &(head + &plan.to_toml()))
    }

    /// Writes the embeddings and the id of each row: the user's, or else the row's number.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_embeddings(&self, embeddings: &Matrix, graph: &Graph) -> Result<()> {
        export::write_ids(&self.node_ids(), graph)?;
        atomic::replace(&self.embeddings(), |file| npy::write_f32_matrix(file, embeddings))
    }

    /// Writes features.json.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_features(&self, encoding: &Encoding) -> Result<()> {
        // Structs of numbers and strings have no way to fail.
        let json = serde_json::to_string_pretty(encoding).unwrap_or_default();
        write(&self.features(), &(json + "\n"))
    }

    /// Starts the files that say what the run is trained on; what a refused or killed attempt left
    /// is replaced. A folder with a checkpoint keeps its own, which belong to that checkpoint.
    ///
    /// # Errors
    /// If a file cannot be written or removed.
    pub fn remember(&self, encoding: Option<&Encoding>, files: Option<&OwnGraph>) -> Result<()> {
        if self.checkpoint().exists() {
            return Ok(());
        }
        remove(&self.root, ["features.json", "graph.json"].into_iter())?;
        if let Some(encoding) = encoding {
            self.write_features(encoding)?;
        }
        files.map_or(Ok(()), |files| self.write_graph(files))
    }

    /// Writes graph.json, with absolute paths, so that the graph is found again from any folder.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_graph(&self, files: &OwnGraph) -> Result<()> {
        // A path that is not UTF-8 cannot be written down, and no run should fail for that.
        match serde_json::to_string_pretty(&files.absolute()?) {
            Ok(json) => write(&self.graph(), &(json + "\n")),
            Err(_) => Ok(()),
        }
    }

    /// Writes summary.json.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_summary(&self, summary: &impl Serialize) -> Result<()> {
        // Structs of numbers and strings have no way to fail.
        let json = serde_json::to_string_pretty(summary).unwrap_or_default();
        write(&self.summary(), &(json + "\n"))
    }

    /// The records of the run so far. A last line that was cut off is left out.
    ///
    /// # Errors
    /// If the file is there and cannot be read.
    pub fn records(&self) -> Result<Vec<Record>> {
        read_records(&self.metrics())
    }
}

/// The records in a metrics.jsonl, none if there is no such file. A line that was cut off is left
/// out.
pub(crate) fn read_records(path: &Path) -> Result<Vec<Record>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    let parse = |line| serde_json::from_str(line).ok();
    Ok(text.lines().filter_map(parse).collect())
}

fn remove(root: &Path, names: impl Iterator<Item = &'static str>) -> Result<()> {
    for path in names.map(|name| root.join(name)).filter(|path| path.exists()) {
        fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    atomic::replace(path, |file| file.write_all(text.as_bytes()))
}

/// Refuses records that would be lost because they cannot be read. A last line without an end was
/// cut off, and its epoch is trained again.
fn check_records(path: &Path) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    for (number, line) in text.split_inclusive('\n').enumerate().filter(|(_, l)| l.ends_with('\n'))
    {
        if let Err(e) = serde_json::from_str::<Record>(line) {
            let message = format!("is no record of a run ({e}); mend the line or remove it");
            let place = format!("{}, line {}", path.display(), number + 1);
            return Err(Error::new(ErrorKind::Parse, message).at(place));
        }
    }
    Ok(())
}

/// The writer of metrics.jsonl.
#[derive(Debug)]
pub(crate) struct Metrics {
    path: PathBuf,
    file: File,
}

impl Metrics {
    /// Keeps the records up to `epoch`, drops those after it, and appends from there.
    pub(crate) fn resume(folder: &RunFolder, epoch: usize) -> Result<Self> {
        let path = folder.metrics();
        check_records(&path)?;
        let mut kept = folder.records()?;
        kept.retain(|record| record.epoch <= epoch);
        let text: String = kept.iter().map(line).collect();
        write(&path, &text)?;
        let opened = OpenOptions::new().append(true).open(&path);
        let file = opened.map_err(|e| Error::io("open", &path, e))?;
        Ok(Self { path, file })
    }

    /// Sees to it that all records are on the disk, so that no power cut leaves a checkpoint without
    /// them.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("write", &self.path, e))
    }

    /// Appends one record in a single write, so that a killed run leaves whole lines.
    pub(crate) fn write(&mut self, record: &Record) -> Result<()> {
        let written = self.file.write_all(line(record).as_bytes());
        written.map_err(|e| Error::io("write", &self.path, e))
    }
}

fn line(record: &Record) -> String {
    // Structs of numbers have no way to fail.
    serde_json::to_string(record).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(epoch: usize) -> Record {
        Record {
            epoch,
            loss: 0.1 + epoch as f64,
            node_loss: 0.1,
            neighbour_loss: epoch as f64,
            learning_rate: 1e-5,
            ema_decay: 0.99,
            seconds: 0.25,
            health: None,
            scores: BTreeMap::new(),
            splits: None,
        }
    }

    #[test]
    fn metrics_are_cut_back_and_continued() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), false).unwrap();
        let mut metrics = Metrics::resume(&folder, 0).unwrap();
        for epoch in 1..=6 {
            metrics.write(&record(epoch)).unwrap();
        }
        // A kill in the middle of a write.
        metrics.file.write_all(b"{\"epoch\": 7, \"lo").unwrap();
        let mut metrics = Metrics::resume(&folder, 4).unwrap();
        metrics.write(&record(5)).unwrap();
        let wanted: Vec<Record> = (1..=5).map(record).collect();
        assert_eq!(folder.records().unwrap(), wanted);
    }

    #[test]
    fn records_that_cannot_be_read_are_not_thrown_away() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), false).unwrap();
        let text = line(&record(1)) + "{\"epoch\": \"two\"}\n" + &line(&record(3));
        fs::write(folder.metrics(), &text).unwrap();
        let error = Metrics::resume(&folder, 3).unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl, line 2: "), "{error}");
        assert_eq!(fs::read_to_string(folder.metrics()).unwrap(), text);
    }

    #[test]
    fn records_keep_health_and_scores() {
        let mut record = record(3);
        record.health = Some(Health { effective_rank: 12.5, spread: 0.5, collapsed: false });
        record.scores.insert("accuracy".into(), 81.25);
        record.splits =
            Some(SplitAccuracies { validation: vec![80.5, 79.0], test: vec![81.0, 81.5] });
        let back: Record = serde_json::from_str(&line(&record)).unwrap();
        assert_eq!(back, record);
    }

    #[test]
    fn a_run_is_replaced_only_on_demand() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("notes.txt"), "mine").unwrap();
        drop(RunFolder::create(root.path(), false).unwrap());
        fs::write(root.path().join("metrics.jsonl"), "{}\n").unwrap();
        let error = RunFolder::create(root.path(), false).unwrap_err();
        for remedy in ["--resume", "--force", "--out"] {
            assert!(error.to_string().contains(remedy), "{error}");
        }
        drop(RunFolder::create(root.path(), true).unwrap());
        assert!(!RunFolder::holds_run(root.path()));
        assert!(root.path().join("notes.txt").exists(), "not ours to remove");
    }

    #[test]
    fn two_processes_cannot_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let _held = RunFolder::create(root.path(), false).unwrap();
        let error = RunFolder::create(root.path(), true).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
    }

    #[test]
    fn there_must_be_a_run_to_resume() {
        let root = tempfile::tempdir().unwrap();
        let error = RunFolder::open(root.path()).unwrap_err();
        assert!(error.to_string().contains("holds no run to resume"), "{error}");
    }
}
