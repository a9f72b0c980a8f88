//! Where the files of data sets are looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variable that names a folder with data sets.
pub const VARIABLE: &str = "BLNN_DATA_DIR";

/// The folders to search, in order: the one given, the one that [`VARIABLE`] names, and the user's
/// cache. Downloads go into the first.
///
/// The library reads no environment variables; `variable` looks one up (an empty one counts as
/// absent).
///
/// # Examples
/// ```
/// use blnn::data::folders;
/// use std::path::{Path, PathBuf};
/// let variable = |name: &str| (name == "BLNN_DATA_DIR").then(|| "/data".into());
/// let found = folders::search(Some(Path::new("here")), variable);
/// assert_eq!(found, [PathBuf::from("here"), PathBuf::from("/data")]);
/// ```
pub fn search(given: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = variable(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let given = given.map(Path::to_path_buf);
    given.into_iter().chain(named).chain(cache(variable)).collect()
}

/// The user's cache folder for this program, by the customs of the operating system.
pub fn cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Caches"))
    } else {
        path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")))
    };
    caches.map(|caches| caches.join("blnn"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn with(known: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        let known: Vec<(String, OsString)> =
            known.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        move |name| known.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone())
    }

    #[test]
    fn the_cache_follows_the_custom() {
        assert_eq!(cache(with(&[("HOME", "/h")])), Some("/h/.cache/blnn".into()));
        let xdg = with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]);
        assert_eq!(cache(xdg), Some("/c/blnn".into()));
        // A relative cache folder is invalid by the XDG rules.
        let relative = with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]);
        assert_eq!(cache(relative), Some("/h/.cache/blnn".into()));
        assert_eq!(cache(with(&[])), None);
    }

    #[test]
    fn an_empty_variable_is_no_folder() {
        let found = search(None, with(&[("BLNN_DATA_DIR", ""), ("HOME", "/h")]));
        assert_eq!(found, [PathBuf::from("/h/.cache/blnn")]);
    }
}
