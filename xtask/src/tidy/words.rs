//! Paths of one machine and hosts of package registries have no place in a repository.

use super::File;
use super::source::is_word;

/// Split in two, or this file would break its own rule.
const PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tm", "p/")];
const HOSTS: [&str; 5] = [
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js.org"),
    concat!("deb.", "debian"),
];

/// One complaint for each line with such a word. Lock files name their registry by design.
pub(super) fn check(files: &[File]) -> Vec<String> {
    files.iter().filter(|file| !file.is_a("lock")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if let Some(word) = forbidden_word(line) {
            complaints.push(format!("{}:{}: contains `{word}`", file.path, number + 1));
        }
    }
    complaints
}

fn forbidden_word(line: &str) -> Option<&'static str> {
    let host = HOSTS.into_iter().find(|host| line.contains(host));
    host.or_else(|| PATHS.into_iter().find(|path| has_absolute(line, path)))
}

/// Whether `path` stands in `line` at the start of a path, not in the middle of a longer one.
fn has_absolute(line: &str, path: &str) -> bool {
    let starts_path = |(at, _): (usize, &str)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || ".-~})>".contains(c))
    };
    line.match_indices(path).any(starts_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_and_hosts_are_found() {
        assert!(forbidden_word(&format!("cd {}main", PATHS[0])).is_some());
        assert!(forbidden_word(&format!("\"{}run\"", PATHS[2])).is_some());
        assert!(forbidden_word(&format!("https://{}/simple", HOSTS[1])).is_some());
    }

    #[test]
    fn relative_paths_are_fine() {
        assert!(forbidden_word(&format!("target{}x", PATHS[2])).is_none());
        assert!(forbidden_word("../shared/data and crates/blnn").is_none());
    }
}
