//! How much memory this process may still take, as Linux tells it.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory that is there for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// Bytes that the process may hold in all, what it holds already included.
    pub bytes: u64,
    /// A limit of the container or service is what binds, not the machine's memory.
    pub limited: bool,
}

/// What this process may hold: the machine's available memory and the limits of all control
/// groups it runs in (version 2 or 1), whichever is least. `None` where the system does not tell.
pub fn available_memory() -> Option<Available> {
    available_below(Path::new("/"))
}

/// [`available_memory`] with the files of the system below another root.
fn available_below(root: &Path) -> Option<Available> {
    let machine = meminfo(&root.join("proc/meminfo"), "MemAvailable");
    let group = groups(root).iter().filter_map(|folder| left_in(folder)).min();
    let free = [machine, group].into_iter().flatten().min()?;
    let held = meminfo(&root.join("proc/self/status"), "VmRSS").unwrap_or(0);
    let limited = group.is_some_and(|group| machine.is_none_or(|machine| group < machine));
    Some(Available { bytes: free + held, limited })
}

/// A line `NAME:  123 kB` of a file, in bytes.
fn meminfo(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The folders of all control groups of this process that may limit its memory: its own and those
/// above it.
fn groups(root: &Path) -> Vec<PathBuf> {
    let list = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut folders = Vec::new();
    for line in list.lines() {
        // number:controllers:path
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) =
            (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let mount = if number == "0" && controllers.is_empty() {
            root.join("sys/fs/cgroup")
        } else if controllers.split(',').any(|name| name == "memory") {
            root.join("sys/fs/cgroup/memory")
        } else {
            continue;
        };
        // Inside a container the path may be the host's, of which only the root is visible.
        let within = Path::new(path.trim_start_matches('/'));
        folders.extend(within.ancestors().map(|above| mount.join(above)));
    }
    folders
}

/// What is left of a control group's limit. Cached files that nobody reads count as free.
fn left_in(folder: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
    };
    let statistic = |name: &str| {
        let text = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.and_then(|value| value.trim().parse::<u64>().ok())
    };
    // A group without limit says `max`, or in version 1 a number beyond all memory.
    let (limit, used, cached) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?, statistic("inactive_file")),
        None => (
            number("memory.limit_in_bytes")?,
            number("memory.usage_in_bytes")?,
            statistic("total_inactive_file"),
        ),
    };
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root folder with the given files.
    fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMORY: (&str, &str) = ("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    1000 kB\n");

    fn found(files: &[(&str, &str)]) -> Option<Available> {
        available_below(system(files).path())
    }

    #[test]
    fn the_machine_alone_and_what_is_held_already() {
        let bytes = |found: Option<Available>| found.map(|a| (a.bytes, a.limited));
        assert_eq!(bytes(found(&[MEMORY])), Some((1_024_000, false)));
        let held = ("proc/self/status", "Name:\tx\nVmRSS:\t   10 kB\n");
        assert_eq!(bytes(found(&[MEMORY, held])), Some((1_034_240, false)));
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn the_least_limit_of_all_groups_above_binds() {
        let group = |own: &str, above: &str| {
            found(&[
                MEMORY,
                ("proc/self/cgroup", "0::/user/job\n"),
                ("sys/fs/cgroup/user/job/memory.max", own),
                ("sys/fs/cgroup/user/job/memory.current", "300\n"),
                ("sys/fs/cgroup/user/job/memory.stat", "anon 5\ninactive_file 100\n"),
                ("sys/fs/cgroup/user/memory.max", above),
                ("sys/fs/cgroup/user/memory.current", "500\n"),
            ])
        };
        assert_eq!(group("max\n", "max\n").map(|a| a.limited), Some(false));
        assert_eq!(group("1000\n", "max\n"), Some(Available { bytes: 800, limited: true }));
        assert_eq!(group("1000\n", "600\n"), Some(Available { bytes: 100, limited: true }));
        assert_eq!(group("200\n", "max\n"), Some(Available { bytes: 0, limited: true }));
    }

    #[test]
    fn version_1_and_paths_of_the_host() {
        let files = [
            MEMORY,
            ("proc/self/cgroup", "5:cpu,memory:/docker/abc\n3:pids:/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
        ];
        assert_eq!(found(&files), Some(Available { bytes: 4200, limited: true }));
        let unlimited = [
            MEMORY,
            ("proc/self/cgroup", "5:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000\n"),
        ];
        assert_eq!(found(&unlimited), Some(Available { bytes: 1_024_000, limited: false }));
    }

    #[test]
    fn nonsense_is_as_good_as_nothing() {
        let files = [
            ("proc/meminfo", "MemAvailable: lots\n"),
            ("proc/self/cgroup", "0\n:::\n0::/\n"),
            ("sys/fs/cgroup/memory.max", "much"),
        ];
        assert_eq!(found(&files), None);
    }
}
