//! The matrix unit some CPUs have, and the tests that need one.

use std::process::Command;

use crate::workspace;

/// A test with this in its path is ignored but for CPUs with AMX.
pub(crate) const TEST_MARK: &str = "needs_amx";

/// What the tests need, for the list of those not run.
pub(crate) const REMEDY: &str =
    "a CPU with amx_tile and amx_bf16 among its flags, on a Linux that allows their use";

/// Whether the library finds the unit and may use it.
pub(crate) fn is_here() -> bool {
    blnn_kernels::mixed::has_matrix_unit()
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
