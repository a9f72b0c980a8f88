//! The browser that the report is tested in.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A test with this in its path needs a browser.
pub(crate) const TEST_MARK: &str = "needs_browser";

/// How to get one on Debian and its kin.
pub(crate) const INSTALL: &str = "apt-get install chromium chromium-driver";

/// Names a browser goes by that the driver finds.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const DRIVER: &str = "chromedriver";

/// Whether browser and driver are there, after installing them where that is possible: as root,
/// with apt.
pub(crate) fn is_ready() -> bool {
    is_there() || (may_install() && install() && is_there())
}

fn is_there() -> bool {
    find(DRIVER).is_some() && BROWSERS.iter().any(|name| find(name).is_some())
}

/// The program that a shell would start by this name.
fn find(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

fn may_install() -> bool {
    find("apt-get").is_some() && is_root()
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| String::from_utf8_lossy(&id.stdout).trim() == "0")
}

fn install() -> bool {
    println!("installing a browser for the tests: {INSTALL}");
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    apt(&["update", "-qq"])
        && apt(&["install", "-y", "-qq", "--no-install-recommends", "chromium", "chromium-driver"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        assert!(find("cargo").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}
