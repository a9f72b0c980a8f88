//! The large graphs, which are not in the repository, and the tests that need them.

use std::path::{Path, PathBuf};

use crate::workspace;

/// A test with this in its path runs only where the large graphs are.
pub(crate) const TEST_MARK: &str = "large_data";

/// How to get the graphs.
pub(crate) const FETCH: &str = "cargo run --release -- datasets fetch photo computers cs physics";

/// A large graph: its name and the name of its file.
pub(crate) const FILES: [(&str, &str); 4] = [
    ("photo", "amazon_electronics_photo.npz"),
    ("computers", "amazon_electronics_computers.npz"),
    ("cs", "ms_academic_cs.npz"),
    ("physics", "ms_academic_phy.npz"),
];

/// The first folder that holds every large graph.
pub(crate) fn find() -> Option<PathBuf> {
    places().into_iter().find(|folder| is_complete(folder))
}

/// Where the graphs are looked for, in this order: as the library does, then beside the checkout.
pub(crate) fn places() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let given = variable("BLNN_DATA_DIR").map(PathBuf::from);
    let home = |folder: &str| Some(PathBuf::from(variable("HOME")?).join(folder));
    let cache = if cfg!(windows) {
        variable("LOCALAPPDATA").map(PathBuf::from)
    } else if cfg!(target_os = "macos") {
        home("Library/Caches")
    } else {
        variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home(".cache"))
    };
    let cache = cache.map(|folder| folder.join("blnn"));
    let shared = workspace::root().join("../shared/data");
    given.into_iter().chain(cache).chain([shared]).collect()
}

fn is_complete(folder: &Path) -> bool {
    FILES.iter().all(|(_, file)| folder.join(file).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_the_graphs_is_passed_over() {
        assert!(!is_complete(workspace::root()));
        assert!(places().len() >= 2);
    }
}
