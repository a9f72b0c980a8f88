//! One row of a panel in registers, and sums of such rows.

use std::ops::Range;

use crate::panels::PANEL;
use crate::simd::Simd;

/// The registers that hold a panel's width: at most 8 (scalar and NEON), 2 with AVX-512.
#[derive(Clone, Copy)]
pub(crate) struct Wide<S: Simd>([S::V; 8]);

#[inline(always)]
pub(crate) const fn registers<S: Simd>() -> usize {
    PANEL / S::LANES
}

#[allow(clippy::needless_range_loop, reason = "indices run over the used part of the array only")]
impl<S: Simd> Wide<S> {
    #[inline(always)]
    pub(crate) unsafe fn zero() -> Self {
        // SAFETY: the caller promises a CPU with the instructions of `S`, here and below.
        Self(unsafe { [S::splat(0.0); 8] })
    }

    #[inline(always)]
    pub(crate) unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller promises a CPU with the instructions of `S`.
        let mut out = unsafe { Self::zero() };
        for v in 0..registers::<S>() {
            // SAFETY: the caller promises PANEL readable floats.
            out.0[v] = unsafe { S::load(p.add(v * S::LANES)) };
        }
        out
    }

    #[inline(always)]
    pub(crate) unsafe fn store(self, p: *mut f32) {
        for v in 0..registers::<S>() {
            // SAFETY: the caller promises PANEL writable floats.
            unsafe { S::store(p.add(v * S::LANES), self.0[v]) };
        }
    }

    /// A row stored as words: word `j` holds columns `j` and `j + 16` of the panel, so that
    /// half the registers are the lower halves and half the upper ones, without a shuffle.
    #[inline(always)]
    pub(crate) unsafe fn load16(p: *const f32) -> Self {
        let half = registers::<S>() / 2;
        // SAFETY: the caller promises a CPU with the instructions of `S`.
        let mut out = unsafe { Self::zero() };
        for v in 0..half {
            // SAFETY: the caller promises PANEL / 2 readable words.
            unsafe {
                let words = S::load(p.add(v * S::LANES));
                (out.0[v], out.0[v + half]) = (S::low16(words), S::high16(words));
            }
        }
        out
    }

    /// Rounds and stores as [`Wide::load16`] reads.
    #[inline(always)]
    pub(crate) unsafe fn store16(self, p: *mut f32) {
        let half = registers::<S>() / 2;
        for v in 0..half {
            // SAFETY: the caller promises PANEL / 2 writable words.
            unsafe {
                S::store(p.add(v * S::LANES), S::narrow16(self.0[v], self.0[v + half]));
            }
        }
    }

    /// Stores the two halves of the row apart.
    #[inline(always)]
    pub(crate) unsafe fn store_halves(self, left: *mut f32, right: *mut f32) {
        let half = registers::<S>() / 2;
        for v in 0..half {
            // SAFETY: the caller promises PANEL / 2 writable floats behind both.
            unsafe {
                S::store(left.add(v * S::LANES), self.0[v]);
                S::store(right.add(v * S::LANES), self.0[v + half]);
            }
        }
    }

    /// The nearest bfloat16 of each value. No closure like those of [`Wide::map`]: one of this size
    /// is not inlined, and then every instruction becomes a call.
    #[inline(always)]
    pub(crate) unsafe fn round(mut self) -> Self {
        for v in 0..registers::<S>() {
            // SAFETY: the caller promises a CPU with the instructions of `S`.
            self.0[v] = unsafe { S::round16(self.0[v]) };
        }
        self
    }

    /// Words of the values of two rows, rounded: those of this one below those of `high`.
    #[inline(always)]
    pub(crate) unsafe fn pair(mut self, high: Self) -> Self {
        for v in 0..registers::<S>() {
            // SAFETY: the caller promises a CPU with the instructions of `S`.
            self.0[v] = unsafe { S::narrow16(self.0[v], high.0[v]) };
        }
        self
    }

    #[inline(always)]
    pub(crate) unsafe fn store_scaled(self, scale: f32, p: *mut f32) {
        // SAFETY: as for `store`.
        unsafe { self.map(|v| S::mul(v, S::splat(scale))).store(p) };
    }

    #[inline(always)]
    pub(crate) unsafe fn map(mut self, f: impl Fn(S::V) -> S::V) -> Self {
        for v in 0..registers::<S>() {
            self.0[v] = f(self.0[v]);
        }
        self
    }

    #[inline(always)]
    pub(crate) unsafe fn zip(mut self, other: Self, f: impl Fn(S::V, S::V) -> S::V) -> Self {
        for v in 0..registers::<S>() {
            self.0[v] = f(self.0[v], other.0[v]);
        }
        self
    }

    #[inline(always)]
    pub(crate) unsafe fn add(self, other: Self) -> Self {
        // SAFETY: the caller promises a CPU with the instructions of `S`.
        unsafe { self.zip(other, |a, b| S::add(a, b)) }
    }

    /// `self + weight · other`
    #[inline(always)]
    pub(crate) unsafe fn add_scaled(self, weight: f32, other: Self) -> Self {
        // SAFETY: the caller promises a CPU with the instructions of `S`.
        unsafe {
            let weight = S::splat(weight);
            self.zip(other, |a, b| S::fma(weight, b, a))
        }
    }

    /// `self + a ∘ b`
    #[inline(always)]
    pub(crate) unsafe fn add_product(mut self, a: Self, b: Self) -> Self {
        for v in 0..registers::<S>() {
            // SAFETY: the caller promises a CPU with the instructions of `S`.
            self.0[v] = unsafe { S::fma(a.0[v], b.0[v], self.0[v]) };
        }
        self
    }

    /// The sum of all lanes, in a fixed order.
    #[inline(always)]
    pub(crate) unsafe fn sum(self) -> f32 {
        // SAFETY: the caller promises a CPU with the instructions of `S`.
        unsafe {
            let mut total = self.0[0];
            for v in 1..registers::<S>() {
                total = S::add(total, self.0[v]);
            }
            S::sum(total)
        }
    }
}

/// How the rows that a kernel reads or writes are stored.
pub(crate) trait Stored {
    /// Floats (or words) a row takes.
    const ROW: usize;

    /// # Safety
    /// `ROW` floats must be readable; the CPU must have the instructions of `S`.
    unsafe fn load<S: Simd>(p: *const f32) -> Wide<S>;

    /// # Safety
    /// `ROW` floats must be writable; the CPU must have the instructions of `S`.
    unsafe fn store<S: Simd>(row: Wide<S>, p: *mut f32);
}

/// Rows of floats.
pub(crate) struct Floats;

/// Rows of bfloat16, two in a word.
pub(crate) struct Words;

impl Stored for Floats {
    const ROW: usize = PANEL;

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const f32) -> Wide<S> {
        // SAFETY: as promised by the caller.
        unsafe { Wide::load(p) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(row: Wide<S>, p: *mut f32) {
        // SAFETY: as promised by the caller.
        unsafe { row.store(p) }
    }
}

impl Stored for Words {
    const ROW: usize = PANEL / 2;

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const f32) -> Wide<S> {
        // SAFETY: as promised by the caller.
        unsafe { Wide::load16(p) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(row: Wide<S>, p: *mut f32) {
        // SAFETY: as promised by the caller.
        unsafe { row.store16(p) }
    }
}

/// `Σ_{j in list} x[j]`, row by row.
///
/// Lists are short and of random length, so the end of one is mispredicted: with one row at a time
/// that happens once. Several sums in flight, and a tail for what they leave over, were slower;
/// the sums of the next lists run ahead meanwhile.
///
/// # Safety
/// Every listed row must exist behind `x`; the CPU must have the instructions of `S`.
#[inline(always)]
pub(crate) unsafe fn sum_listed<S: Simd>(list: &[u32], x: *const f32) -> Wide<S> {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = Wide::<S>::zero();
        for &j in list {
            sum = sum.add(Wide::load(x.add(j as usize * PANEL)));
        }
        sum
    }
}

/// `Σ_{(j, v)} v · x[j]` over a list of rows and their values.
///
/// # Safety
/// As for [`sum_listed`]; the slices must be of one length.
#[inline(always)]
pub(crate) unsafe fn sum_weighted<S: Simd>(list: &[u32], values: &[f32], x: *const f32) -> Wide<S> {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = Wide::<S>::zero();
        for (&j, &weight) in list.iter().zip(values) {
            sum = sum.add_scaled(weight, Wide::load(x.add(j as usize * PANEL)));
        }
        sum
    }
}

/// How many entries before it is added a row is asked for.
const AHEAD: usize = 32;

/// Floats in a line of the cache.
const LINE: usize = 16;

/// [`sum_listed`], or [`sum_weighted`] if there are values, in the same order, of rows that are stored
/// as `G` does, for several panels at once. The list is `indices[list]`; the rows of those behind it are
/// asked for ahead of time.
///
/// Several panels pay where all their rows stay near: the end of each list, which is mispredicted, and
/// the latency of a sum are then paid once. Rows of floats gathered from afar are quicker one panel at a
/// time.
///
/// # Safety
/// The list must lie within `indices` (and `values`), its rows must exist behind each of `x`; the CPU
/// must have the instructions of `S`.
#[inline(always)]
pub(crate) unsafe fn sum_stored<S: Simd, G: Stored, const P: usize>(
    (indices, values): (&[u32], Option<&[f32]>),
    list: Range<usize>,
    x: [*const f32; P],
) -> [Wide<S>; P] {
    // SAFETY: as promised by the caller; asking for a row reads nothing.
    unsafe {
        let mut sums = [Wide::<S>::zero(); P];
        for k in list {
            let row = *indices.get_unchecked(k) as usize * G::ROW;
            let later = *indices.get_unchecked((k + AHEAD).min(indices.len() - 1));
            let weight = values.map(|values| *values.get_unchecked(k));
            for (sum, x) in sums.iter_mut().zip(x) {
                for line in (0..G::ROW).step_by(LINE) {
                    S::prefetch_near(x.wrapping_add(later as usize * G::ROW + line));
                }
                let row = G::load(x.add(row));
                *sum = match weight {
                    None => sum.add(row),
                    Some(weight) => sum.add_scaled(weight, row),
                };
            }
        }
        sums
    }
}
