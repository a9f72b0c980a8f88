//! The public data sets known by name.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::data::fetch::{self, Download, Progress};
use crate::data::{cora, npz, wikics};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;

/// Sizes of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Nodes.
    pub nodes: usize,
    /// Directed entries: each edge twice, a self-loop once.
    pub entries: usize,
    /// Attributes of a node.
    pub features: usize,
    /// Classes.
    pub classes: usize,
}

impl Counts {
    /// The sizes of `graph`.
    pub fn of(graph: &Graph) -> Self {
        Self {
            nodes: graph.nodes(),
            entries: graph.entries(),
            features: graph.features().cols(),
            classes: graph.classes(),
        }
    }
}

/// A row of Table 1 of the BLNN paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperRow {
    /// The sizes.
    pub counts: Counts,
    /// Edge homophily in percent, two decimals.
    pub homophily: f64,
    /// Why a size of the graph as loaded differs from the paper's, if one does.
    pub remark: Option<&'static str>,
}

/// A public data set.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Dataset {
    /// The name by which it is loaded.
    pub name: &'static str,
    /// Other names that are understood.
    pub aliases: &'static [&'static str],
    /// What it is, in a line.
    pub about: &'static str,
    /// The sizes of the graph once loaded.
    pub counts: Counts,
    /// The paper's row, if the paper has one.
    pub paper: Option<PaperRow>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Embedded,
    File(Remote),
}

#[derive(Clone, Copy, Debug)]
struct Remote {
    /// The file's name on this machine.
    file: &'static str,
    url: &'static str,
    /// Absent where the publisher's sum is not known: the counts are then compared instead.
    sha256: Option<&'static str>,
    read: fn(&Path) -> Result<Graph>,
}

/// How a data set is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchOptions {
    /// An address that serves the same files by name, instead of the publisher's.
    pub mirror: Option<String>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long the server may be silent.
    pub stall_timeout: Duration,
}

impl Default for FetchOptions {
    fn default() -> Self {
        let stall_timeout = Duration::from_secs(30);
        Self { mirror: None, connect_timeout: Duration::from_secs(20), stall_timeout }
    }
}

impl Dataset {
    /// The name of its file, or `None` for the embedded graph.
    pub fn file(&self) -> Option<&'static str> {
        self.remote().map(|remote| remote.file)
    }

    /// The publisher's address of its file.
    pub fn url(&self) -> Option<&'static str> {
        self.remote().map(|remote| remote.url)
    }

    /// The SHA-256 of its file, where known.
    pub fn sha256(&self) -> Option<&'static str> {
        self.remote().and_then(|remote| remote.sha256)
    }

    fn remote(&self) -> Option<&Remote> {
        match &self.source {
            Source::Embedded => None,
            Source::File(remote) => Some(remote),
        }
    }

    /// Its file in the first of `folders` that has it.
    pub fn locate(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        let file = self.file()?;
        folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file())
    }

    /// Loads the graph from the first of `folders` that has its file, and compares its sizes with
    /// those of the registry.
    ///
    /// # Errors
    /// If no folder has the file, it cannot be read, or it holds another graph.
    pub fn load(&self, folders: &[PathBuf]) -> Result<Graph> {
        let Some(remote) = self.remote() else {
            return cora::graph();
        };
        let path = self.locate(folders).ok_or_else(|| self.missing(remote, folders))?;
        self.read(remote, &path)
    }

    fn read(&self, remote: &Remote, path: &Path) -> Result<Graph> {
        let graph = (remote.read)(path)?;
        let counts = Counts::of(&graph);
        if counts != self.counts {
            let message = format!(
                "holds {counts:?}, but {} has {:?}; fetch it again with \
                 `blnn datasets fetch --force {}`",
                self.name, self.counts, self.name
            );
            return Err(Error::new(ErrorKind::Dataset, message).at(path.display()));
        }
        Ok(graph.with_name(self.name))
    }

    fn missing(&self, remote: &Remote, folders: &[PathBuf]) -> Error {
        let mut places = String::new();
        for folder in folders {
            let _ = write!(places, " {}", folder.display());
        }
        if places.is_empty() {
            places.push_str(" no folder at all");
        }
        let (name, file) = (self.name, remote.file);
        let message = format!(
            "{name}: {file} is not here (looked in{places}); fetch it with \
             `blnn datasets fetch {name}`"
        );
        Error::new(ErrorKind::Dataset, message)
    }

    /// Checks the file at `path`: its SHA-256 where that is known, else the sizes of its graph.
    ///
    /// # Errors
    /// If the file cannot be read or is not the published one.
    pub fn verify(&self, path: &Path) -> Result<()> {
        let Some(remote) = self.remote() else {
            return Ok(());
        };
        let Some(expected) = remote.sha256 else {
            return self.read(remote, path).map(drop);
        };
        let found = fetch::sha256_of(path)?;
        if found == expected {
            return Ok(());
        }
        let message = format!("has SHA-256 {found}, the published file has {expected}");
        Err(Error::new(ErrorKind::Dataset, message).at(path.display()))
    }

    /// Downloads its file into `folder` (made if need be), telling `on_progress` how far it is,
    /// and returns its path. A download that was cut short is taken up where it ended. What
    /// arrives is verified before it takes its name; a file that was there is replaced.
    ///
    /// # Errors
    /// If the data set is embedded, the folder cannot be written to, the server cannot be reached,
    /// is silent for too long or breaks off, or the file is not the published one.
    pub fn fetch(
        &self,
        folder: &Path,
        options: &FetchOptions,
        on_progress: &mut dyn FnMut(Progress),
    ) -> Result<PathBuf> {
        let Some(remote) = self.remote() else {
            let message = format!("{} is part of the program; nothing to fetch", self.name);
            return Err(Error::new(ErrorKind::Dataset, message));
        };
        let url = match &options.mirror {
            Some(base) => format!("{}/{}", base.trim_end_matches('/'), remote.file),
            None => remote.url.to_owned(),
        };
        let target = folder.join(remote.file);
        let download = Download {
            url: &url,
            target: &target,
            connect_timeout: options.connect_timeout,
            stall_timeout: options.stall_timeout,
            verify: &|path| self.verify(path),
        };
        download.run(on_progress)?;
        Ok(target)
    }
}

/// The data set called `name`, in any letter case.
///
/// ```
/// use blnn::data::find;
/// assert_eq!(find("Computer").map(|dataset| dataset.name), Some("computers"));
/// assert!(find("zachary").is_none());
/// ```
pub fn find(name: &str) -> Option<&'static Dataset> {
    REGISTRY.iter().find(|dataset| {
        let mut names = [dataset.name].into_iter().chain(dataset.aliases.iter().copied());
        names.any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// All known data sets.
pub fn registry() -> &'static [Dataset] {
    &REGISTRY
}

fn read_wikics(path: &Path) -> Result<Graph> {
    wikics::read_file(path, wikics::RowNormalisation::default())
}

const fn counts(nodes: usize, entries: usize, features: usize, classes: usize) -> Counts {
    Counts { nodes, entries, features, classes }
}

/// The paper's row of a data set whose sizes agree with ours.
const fn agreed(counts: Counts, homophily: f64) -> PaperRow {
    PaperRow { counts, homophily, remark: None }
}

const PHOTO: Counts = counts(7_650, 238_162, 745, 8);
const COMPUTERS: Counts = counts(13_752, 491_722, 767, 10);
const CS: Counts = counts(18_333, 163_788, 6_805, 15);
const PHYSICS: Counts = counts(34_493, 495_924, 8_415, 5);
const WIKICS: Counts = counts(11_701, 431_726, 300, 10);

static REGISTRY: [Dataset; 6] = [
    Dataset {
        name: "cora",
        aliases: &[],
        about: "papers on machine learning, joined by citations (embedded)",
        counts: counts(2_708, 10_556, 1_433, 7),
        paper: None,
        source: Source::Embedded,
    },
    Dataset {
        name: "photo",
        aliases: &["amazon-photo", "amazon_photo"],
        about: "photo goods, joined when often bought together",
        counts: PHOTO,
        paper: Some(PaperRow {
            counts: Counts { entries: 238_163, ..PHOTO },
            homophily: 82.72,
            remark: Some("the paper counts the file's one self-loop, which is dropped on loading"),
        }),
        source: Source::File(Remote {
            file: "amazon_electronics_photo.npz",
            url: "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/amazon_electronics_photo.npz",
            sha256: Some("bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a"),
            read: npz::read_file,
        }),
    },
    Dataset {
        name: "computers",
        aliases: &["computer", "amazon-computers", "amazon_computers"],
        about: "computer goods, joined when often bought together",
        counts: COMPUTERS,
        paper: Some(agreed(COMPUTERS, 77.72)),
        source: Source::File(Remote {
            file: "amazon_electronics_computers.npz",
            url: "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/amazon_electronics_computers.npz",
            sha256: Some("736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c"),
            read: npz::read_file,
        }),
    },
    Dataset {
        name: "cs",
        aliases: &["coauthor-cs", "coauthor_cs"],
        about: "authors in computer science, joined by joint papers",
        counts: CS,
        paper: Some(agreed(CS, 80.81)),
        source: Source::File(Remote {
            file: "ms_academic_cs.npz",
            url: "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/ms_academic_cs.npz",
            sha256: Some("933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3"),
            read: npz::read_file,
        }),
    },
    Dataset {
        name: "physics",
        aliases: &["coauthor-physics", "coauthor_physics"],
        about: "authors in physics, joined by joint papers",
        counts: PHYSICS,
        paper: Some(agreed(PHYSICS, 93.14)),
        source: Source::File(Remote {
            file: "ms_academic_phy.npz",
            url: "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/ms_academic_phy.npz",
            sha256: Some("e4d68468eba5fb8f6b280ffd406bd53e6e4295ba1dd2967d6fe99b978e4b3375"),
            read: npz::read_file,
        }),
    },
    Dataset {
        name: "wikics",
        aliases: &["wiki-cs", "wiki_cs"],
        about: "Wikipedia articles on computer science, joined by links",
        counts: WIKICS,
        paper: Some(agreed(WIKICS, 65.47)),
        source: Source::File(Remote {
            file: "wikics.json",
            url: "https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/data.json",
            // The publisher gives no sum and the file was not at hand to take it.
            sha256: None,
            read: read_wikics,
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique() {
        let names = registry().iter().flat_map(|d| d.aliases.iter().chain([&d.name]));
        let all: Vec<_> = names.collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
    }

    #[test]
    fn cora_needs_no_folder_and_cannot_be_fetched() {
        let cora = find("CORA").unwrap();
        assert_eq!(Counts::of(&cora.load(&[]).unwrap()), cora.counts);
        let error = cora.fetch(Path::new("."), &FetchOptions::default(), &mut |_| ()).unwrap_err();
        assert!(error.to_string().contains("nothing to fetch"), "{error}");
    }

    #[test]
    fn a_missing_file_says_where_it_was_looked_for_and_how_to_get_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = find("photo").unwrap().load(&[folder.path().into()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Dataset);
        let text = error.to_string();
        for part in [
            "amazon_electronics_photo.npz",
            &folder.path().display().to_string(),
            "`blnn datasets fetch photo`",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(find("cs").unwrap().load(&[]).unwrap_err().to_string().contains("no folder"));
    }

    /// A file in WikiCS's layout under WikiCS's name, but of another graph.
    #[test]
    fn another_graph_under_a_known_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let json = r#"{"features": [[1], [2]], "labels": [0, 1], "links": [[1], []],
            "train_masks": [], "val_masks": [], "test_mask": [true, true]}"#;
        let path = folder.path().join("wikics.json");
        std::fs::write(&path, json).unwrap();
        let wikics = find("wikics").unwrap();
        let folders = [folder.path().join("absent"), folder.path().to_path_buf()];
        assert_eq!(wikics.locate(&folders).as_ref(), Some(&path));
        let text = wikics.load(&folders).unwrap_err().to_string();
        assert!(text.contains("nodes: 2") && text.contains("--force wikics"), "{text}");
        assert!(wikics.verify(&path).is_err());
    }
}
