//! [`StoredRun`]: a run as it lies on the disk, for those who read it.

use std::fs;
use std::path::{Path, PathBuf};

use blnn_kernels::Matrix;
use serde::Deserialize;

use crate::checkpoint::{Checkpoint, Header};
use crate::data::npy;
use crate::data::own::{Encoding, OwnGraph};
use crate::error::{Error, ErrorKind, Result};
use crate::export;
use crate::run::{Record, read_records};

/// What summary.json says of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Summary {
    /// The graph's name.
    pub graph: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The name of the method.
    pub method: String,
    /// The seed every random draw derives from.
    pub seed: u64,
    /// Number of epochs done.
    pub epochs: usize,
    /// Whether all planned epochs are done.
    pub finished: bool,
    /// Number of values in one node's embedding.
    pub embedding_width: usize,
    /// Seconds spent by the last process.
    pub seconds: f64,
}

/// The files of a run, read without locking them: a run may go on while it is looked at.
#[derive(Clone, Debug)]
pub struct StoredRun {
    root: PathBuf,
    summary: Summary,
    config: String,
    records: Vec<Record>,
    header: Option<Header>,
}

impl StoredRun {
    /// Reads all of a run but its tensors.
    ///
    /// # Errors
    /// If the folder holds no run that ended or was stopped, or a file cannot be read.
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join("summary.json");
        if !path.exists() {
            return Err(no_run(root));
        }
        let text = read_text(&path)?;
        let summary: Summary = serde_json::from_str(&text).map_err(|e| {
            let message = format!("is no summary of a run: {e}; resume the run to write it anew");
            Error::new(ErrorKind::Parse, message).at(path.display())
        })?;
        Ok(Self {
            header: header_of(root, &summary)?,
            summary,
            config: read_text(&root.join("config.toml"))?,
            records: read_records(&root.join("metrics.jsonl"))?,
            root: root.to_owned(),
        })
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What was trained and how it ended.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Every setting, as the text of config.toml.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// The records of metrics.jsonl.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What the checkpoint says about itself, if there is one.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The embeddings, one row a node, with the id of each row; `None` for a run that is not
    /// finished.
    ///
    /// # Errors
    /// If a file cannot be read, or the two disagree.
    pub fn embeddings(&self) -> Result<Option<(Matrix, Vec<String>)>> {
        let path = self.root.join("embeddings.npy");
        if !path.exists() {
            return Ok(None);
        }
        let matrix = npy::read_file(&path)?.into_matrix().map_err(|e| e.at(path.display()))?;
        let ids_path = self.root.join("node_ids.txt");
        let ids = export::ids_of_lines(&read_text(&ids_path)?);
        if ids.len() != matrix.rows() {
            let message = format!("{} ids for {} embeddings", ids.len(), matrix.rows());
            return Err(Error::new(ErrorKind::Shape, message).at(ids_path.display()));
        }
        Ok(Some((matrix, ids)))
    }

    /// Where the files of the user's own graph were, if the run was trained on one.
    ///
    /// # Errors
    /// If graph.json cannot be read or is not what it should be.
    pub fn own_graph(&self) -> Result<Option<OwnGraph>> {
        read_own_graph(&self.root)
    }

    /// As [`embeddings`](Self::embeddings), where they are needed.
    ///
    /// # Errors
    /// Also if the run is not finished.
    pub fn finished_embeddings(&self) -> Result<(Matrix, Vec<String>)> {
        self.embeddings()?
            .ok_or_else(|| Error::new(ErrorKind::Config, UNFINISHED).at(self.root.display()))
    }
}

/// What is said of a run that was stopped, killed or is still going on.
const UNFINISHED: &str = "holds no embeddings yet: the run has not ended; unless it is going on, \
                          finish it with the command that began it, and --resume";

/// What the checkpoint says about itself. That of a finished run is needed no more, and a damaged
/// one does not make its results worse.
fn header_of(root: &Path, summary: &Summary) -> Result<Option<Header>> {
    let path = root.join("checkpoint.safetensors");
    if !path.exists() {
        return Ok(None);
    }
    match Checkpoint::read(&path) {
        Ok(checkpoint) => Ok(Some(checkpoint.header().clone())),
        Err(_) if summary.finished => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is said of a folder that holds no run, or one without its end.
pub(crate) fn no_run(root: &Path) -> Error {
    if root.join("config.toml").exists() {
        return Error::new(ErrorKind::Config, UNFINISHED).at(root.display());
    }
    let what = if root.exists() { "holds no run" } else { "does not exist" };
    let message =
        format!("{what}; name the folder that `blnn train` wrote, such as runs/cora-blnn-seed1");
    Error::new(ErrorKind::Config, message).at(root.display())
}

/// How the features of a run's nodes were made, if it was trained on a graph of the user's own.
///
/// # Errors
/// If features.json cannot be read or is not what it should be.
pub(crate) fn read_encoding(root: &Path) -> Result<Option<Encoding>> {
    read_json(&root.join("features.json"), "does not say how features are made")
}

/// Where the files of a run's graph were, if it is the user's own.
///
/// # Errors
/// If graph.json cannot be read or is not what it should be.
pub(crate) fn read_own_graph(root: &Path) -> Result<Option<OwnGraph>> {
    read_json(&root.join("graph.json"), "does not say where a graph is")
}

/// What a file of JSON holds, if it is there.
fn read_json<T: for<'a> Deserialize<'a>>(path: &Path, fault: &str) -> Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let parsed = serde_json::from_str(&read_text(path)?);
    parsed.map(Some).map_err(|e| {
        let message = format!("{fault}: {e}; bring the file of the run back");
        Error::new(ErrorKind::Parse, message).at(path.display())
    })
}

fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| Error::io("read", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let summary = r#"{"graph":"g","nodes":2,"method":"blnn","seed":1,"epochs":3,
            "finished":true,"embedding_width":1,"seconds":0.5,"last":null}"#;
        fs::write(root.path().join("summary.json"), summary).unwrap();
        fs::write(root.path().join("config.toml"), "epochs = 3\n").unwrap();
        root
    }

    fn add_embeddings(root: &Path, ids: &str) {
        let mut bytes = Vec::new();
        npy::write_f32_matrix(&mut bytes, &Matrix::from_vec(2, 1, vec![1.0, 2.0])).unwrap();
        fs::write(root.join("embeddings.npy"), bytes).unwrap();
        fs::write(root.join("node_ids.txt"), ids).unwrap();
    }

    #[test]
    fn a_run_that_was_killed_is_told_from_no_run() {
        let root = folder();
        let said = |root: &Path| StoredRun::read(root).unwrap_err().to_string();
        fs::remove_file(root.path().join("summary.json")).unwrap();
        assert!(said(root.path()).contains("has not ended"), "{}", said(root.path()));
        fs::remove_file(root.path().join("config.toml")).unwrap();
        assert!(said(root.path()).contains("holds no run; name"), "{}", said(root.path()));
    }

    #[test]
    fn a_stopped_run_has_no_embeddings() {
        let root = folder();
        let run = StoredRun::read(root.path()).unwrap();
        assert_eq!(run.summary().epochs, 3);
        assert!(run.embeddings().unwrap().is_none() && run.header().is_none());
        let error = run.finished_embeddings().unwrap_err().to_string();
        assert!(error.contains("--resume"), "{error}");
    }

    #[test]
    fn embeddings_come_with_their_ids() {
        let root = folder();
        add_embeddings(root.path(), "a\nb c\n");
        let run = StoredRun::read(root.path()).unwrap();
        let (matrix, ids) = run.finished_embeddings().unwrap();
        assert_eq!((matrix.data(), ids), (&[1.0, 2.0][..], vec!["a".to_owned(), "b c".into()]));
        add_embeddings(root.path(), "a\n");
        let error = run.embeddings().unwrap_err().to_string();
        assert!(error.contains("1 ids for 2 embeddings"), "{error}");
    }

    #[test]
    fn a_folder_without_a_run_is_explained() {
        let root = tempfile::tempdir().unwrap();
        let error = |path: &Path| StoredRun::read(path).unwrap_err().to_string();
        assert!(error(root.path()).contains("holds no run"));
        assert!(error(&root.path().join("nowhere")).contains("does not exist"));
        fs::write(root.path().join("summary.json"), "{}").unwrap();
        assert!(error(root.path()).contains("summary.json"));
    }
}
