//! One vector register of `f32`, as three instruction sets offer it.

#![expect(
    clippy::inline_always,
    reason = "an operation must be compiled into its caller, which has the instruction set"
)]

/// A register of [`Lanes::WIDTH`] values. The kernels in [`super::sweep`] are written once over
/// this trait and instantiated for each instruction set.
///
/// # Safety
/// The methods may use instructions of the set the type is named after: call them only where a
/// run-time check has found it.
pub(super) trait Lanes: Copy {
    /// Values of one register.
    const WIDTH: usize;
    /// Registers of rows (or columns) a tile of up to four vectors spans: that many times four
    /// accumulators fit the register file.
    const TILE: usize;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * other + acc`
    unsafe fn mul_add(self, other: Self, acc: Self) -> Self;
}

/// Portable stand-in, and the oracle of the tests.
impl Lanes for [f32; 4] {
    const WIDTH: usize = 4;
    const TILE: usize = 2;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller passes a pointer to at least four values.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller passes a pointer to at least four writable values.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        std::array::from_fn(|l| self[l] * other[l])
    }

    #[inline(always)]
    unsafe fn mul_add(self, other: Self, acc: Self) -> Self {
        std::array::from_fn(|l| self[l] * other[l] + acc[l])
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::{
        __m256, __m512, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps,
        _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_mul_ps, _mm512_set1_ps,
        _mm512_storeu_ps,
    };

    impl Lanes for __m256 {
        const WIDTH: usize = 8;
        const TILE: usize = 2;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: the caller has found AVX2.
            unsafe { _mm256_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller has found AVX2 and points to at least eight values.
            unsafe { _mm256_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller has found AVX2 and points to at least eight writable values.
            unsafe { _mm256_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: the caller has found AVX2.
            unsafe { _mm256_mul_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul_add(self, other: Self, acc: Self) -> Self {
            // SAFETY: the caller has found FMA.
            unsafe { _mm256_fmadd_ps(self, other, acc) }
        }
    }

    impl Lanes for __m512 {
        const WIDTH: usize = 16;
        const TILE: usize = 4;

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self {
            // SAFETY: the caller has found AVX-512F.
            unsafe { _mm512_set1_ps(value) }
        }

        #[inline(always)]
        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller has found AVX-512F and points to at least sixteen values.
            unsafe { _mm512_loadu_ps(from) }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut f32) {
            // SAFETY: the caller has found AVX-512F and points to sixteen writable values.
            unsafe { _mm512_storeu_ps(to, self) }
        }

        #[inline(always)]
        unsafe fn mul(self, other: Self) -> Self {
            // SAFETY: the caller has found AVX-512F.
            unsafe { _mm512_mul_ps(self, other) }
        }

        #[inline(always)]
        unsafe fn mul_add(self, other: Self, acc: Self) -> Self {
            // SAFETY: the caller has found AVX-512F.
            unsafe { _mm512_fmadd_ps(self, other, acc) }
        }
    }
}
