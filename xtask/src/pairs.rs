//! The instruction of AVX-512 that multiplies pairs of bfloat16, and the tests that need it.

use blnn_kernels::Isa;

/// A test with this in its path is ignored but for CPUs with AVX-512 BF16.
pub(crate) const TEST_MARK: &str = "needs_avx512bf16";

/// What the tests need, for the list of those not run.
pub(crate) const REMEDY: &str = "a CPU with avx512_bf16 among its flags";

/// Whether this CPU has the instruction.
pub(crate) fn are_here() -> bool {
    Isa::available().contains(&Isa::Avx512Bf16)
}
