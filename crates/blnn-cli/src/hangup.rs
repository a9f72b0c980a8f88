//! A run that `nohup` started goes on when its terminal is gone.
//!
//! The handler of Ctrl-C takes hangups too, even those that the process was started to ignore. A
//! signal that is blocked never reaches it.

/// Keeps hangups from this process if it was started to ignore them. To be called first of all:
/// threads that are there already would still hear them.
#[cfg(target_os = "linux")]
pub(crate) fn stay_deaf() {
    use nix::sys::signal::{SigSet, Signal};

    if is_ignored(Signal::SIGHUP as u32) {
        // Where that fails, a hangup stops the run, which can be resumed.
        let _ = SigSet::from(Signal::SIGHUP).thread_block();
    }
}

/// Elsewhere nobody can tell without unsafe code.
#[cfg(not(target_os = "linux"))]
pub(crate) fn stay_deaf() {}

/// Whether this process ignores a signal.
#[cfg(target_os = "linux")]
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
