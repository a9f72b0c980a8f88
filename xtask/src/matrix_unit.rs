//! The matrix unit some CPUs have, and the tests that need one.

use std::process::Command;

use crate::test_binaries::TestBinary;
use crate::workspace;

/// A test with this in its path is ignored but for CPUs with AMX.
pub(crate) const TEST_MARK: &str = "needs_amx";

/// What the tests need, for the list of those not run.
pub(crate) const REMEDY: &str = "a CPU with amx_tile and amx_bf16 among its flags, on Linux";

/// Whether Linux reports the matrix unit of this CPU.
pub(crate) fn is_here() -> bool {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    reports_unit(&cpu)
}

fn reports_unit(cpu: &str) -> bool {
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["amx_tile", "amx_bf16"].iter().all(|flag| flags.split_whitespace().any(|f| f == *flag))
}

/// A call of the library's tests in bf16, among them the battery of every method, and of what a
/// run allocates, with the unit's instructions emulated; `None` where they cannot be. The longest
/// are left out: a step on Cora takes most of a minute this way.
pub(crate) fn emulated() -> Option<Command> {
    let can_be = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    can_be.then(|| {
        let mut command = workspace::cargo(["test", "-p", "blnn", "--lib"]);
        command.args(["--features", "blnn-kernels/emulated-amx", "--", "bf16"]);
        command.args(["rehearsal", "matrix_unit", "--skip", "on_a_real_graph", "--skip", "learns"]);
        command
    })
}

/// A call of a program's tests that need the unit.
pub(crate) fn command(test: &TestBinary) -> Command {
    let mut command = test.command();
    command.args(["--ignored", TEST_MARK]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flags_are_needed() {
        assert!(reports_unit("vendor_id\t: x\nflags\t\t: avx512f amx_bf16 amx_tile amx_int8\n"));
        assert!(!reports_unit("flags\t\t: avx512f amx_tile amx_int8\n"));
        assert!(!reports_unit("flags\t\t: avx512f\nbugs\t\t: amx_tile amx_bf16\n"));
        assert!(!reports_unit(""));
    }
}
