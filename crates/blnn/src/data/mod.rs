//! Where graphs come from: the [registry](registry()) of public data sets, and readers for files.
//!
//! [`load`] takes what a user types: a name of the registry, or a path to a file. Files of the
//! registry are looked for in [`folders`] and fetched by [`Dataset::fetch`], never by [`load`].
//!
//! # Examples
//! ```
//! let cora = blnn::data::load("cora", &[])?;
//! assert_eq!(cora.nodes(), 2708);
//! let error = blnn::data::load("phtoo", &[]).unwrap_err();
//! assert!(error.to_string().contains("did you mean `photo`?"));
//! # Ok::<(), blnn::Error>(())
//! ```

pub mod cora;
mod edges;
pub mod fetch;
pub mod folders;
mod generate;
pub mod npy;
mod npy_header;
pub mod npz;
pub mod own;
mod registry;
pub mod wikics;

use std::path::{Path, PathBuf};

use blnn_kernels::Threads;

pub use edges::{SelfLoops, undirected};
pub use generate::{generated, generated_sizes, resembling};
pub use registry::{Counts, Dataset, FetchOptions, PaperRow, find, registry};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::nearest::nearest;

/// The graph that a user names: a data set of the registry, `generated-N` (see [`generated`]), or
/// the path of a file, see [`read_file`]. A registry name wins over a file of the same name;
/// `./photo` means the file.
///
/// `folders` are searched in order for the file of a data set.
///
/// # Errors
/// If the name is unknown, the file is missing or cannot be read, or a data set's file does not
/// hold the graph it should.
pub fn load(graph: &str, folders: &[PathBuf]) -> Result<Graph> {
    if let Some(dataset) = find(graph) {
        return dataset.load(folders);
    }
    if let Some(made) = generate::named(graph) {
        return made;
    }
    let path = Path::new(graph);
    if looks_like_path(graph, path) {
        return read_file(path);
    }
    Err(unknown(graph))
}

/// Reads a graph in one file: WikiCS's `.json` (see [`wikics`]), or anything that [`own`] reads,
/// edge lists and archives among them, told apart by their contents.
///
/// # Errors
/// If the file cannot be read, or the contents are not those of a known format.
pub fn read_file(path: &Path) -> Result<Graph> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ending == "json" {
        return wikics::read_file(path, wikics::RowNormalisation::default());
    }
    let threads = Threads::new(0);
    own::read(&own::OwnGraph::new(path), &threads).map(|loaded| loaded.graph)
}

fn looks_like_path(graph: &str, path: &Path) -> bool {
    graph.contains(['/', '\\']) || path.extension().is_some() || path.exists()
}

fn unknown(graph: &str) -> Error {
    let hint = suggestion(graph);
    let message = format!("unknown graph `{graph}`; {hint} A file needs its ending or a `/`");
    Error::new(ErrorKind::Dataset, message)
}

/// The data set called `name`.
///
/// # Errors
/// If there is none; the message has the nearest name, or all of them.
///
/// # Examples
/// ```
/// assert_eq!(blnn::data::named("photo")?.name, "photo");
/// let error = blnn::data::named("phtoo").unwrap_err();
/// assert_eq!(error.to_string(), "unknown data set `phtoo`; did you mean `photo`?");
/// # Ok::<(), blnn::Error>(())
/// ```
pub fn named(name: &str) -> Result<&'static Dataset> {
    let message = || format!("unknown data set `{name}`; {}", suggestion(name));
    find(name).ok_or_else(|| Error::new(ErrorKind::Dataset, message()))
}

fn suggestion(name: &str) -> String {
    let names = registry().iter().map(|dataset| dataset.name);
    match nearest(name, names.clone()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known are {}.", names.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(graph: &str) -> Error {
        load(graph, &[]).unwrap_err()
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_or_all() {
        assert!(error("Computrs").to_string().contains("did you mean `computers`?"));
        let text = error("zachary").to_string();
        assert!(text.contains("cora, photo, computers, cs, physics, wikics. A file"), "{text}");
        assert_eq!(error("zachary").kind(), ErrorKind::Dataset);
    }

    #[test]
    fn a_missing_file_is_named() {
        for path in ["absent/mine.npz", "absent.json", "absent.csv"] {
            let error = error(path);
            assert_eq!(error.kind(), ErrorKind::Io);
            assert!(error.to_string().contains(path), "{error}");
        }
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.bin");
        std::fs::write(&path, b"\x00\x01\x02").unwrap();
        let text = error(&path.display().to_string()).to_string();
        assert!(text.contains("mine.bin") && text.contains("one column only"), "{text}");
        let text = error(&format!("{}/", folder.path().display())).to_string();
        assert!(text.contains("is a folder"), "{text}");
    }
}
