//! Packed tiles multiplied by the instruction of AVX-512 BF16 that adds the dot product of two pairs
//! to a float: for CPUs that have it and no matrix unit. `Plain` is its twin.

use std::marker::PhantomData;

use super::{Block, BlockSums, Steps};
use crate::bf16::WORDS;
use crate::panels::PANEL;

/// Floats in a block.
const BLOCK: usize = PANEL * PANEL;

/// How products are added to a block of sums in memory.
pub(crate) trait AddProducts {
    /// `sums += Σ_k left(k) · right(k)`, where both operands have so many steps.
    ///
    /// # Safety
    /// The CPU must have the instructions, and both operands `depth` steps.
    unsafe fn add_products(
        sums: &mut [f32; BLOCK],
        depth: usize,
        left: Steps<'_>,
        right: Steps<'_>,
    );
}

/// The sums of a block in memory.
#[derive(Debug)]
pub(crate) struct InMemory<M> {
    sums: Block,
    how: PhantomData<M>,
}

impl<M: AddProducts> BlockSums for InMemory<M> {
    unsafe fn configure() -> Self {
        Self { sums: Block([0.0; BLOCK]), how: PhantomData }
    }

    #[inline(always)]
    fn zero(&mut self) {
        self.sums.0.fill(0.0);
    }

    #[inline(always)]
    fn load(&mut self, block: &[f32]) {
        self.sums.0.copy_from_slice(block);
    }

    #[inline(always)]
    fn store(&mut self, block: &mut [f32]) {
        block.copy_from_slice(&self.sums.0);
    }

    #[inline(always)]
    fn add_products(&mut self, depth: usize, left: Steps<'_>, right: Steps<'_>) {
        let Some(last) = depth.checked_sub(1) else { return };
        assert!(left.reaches(last) && right.reaches(last), "tiles for every step");
        // SAFETY: `self` exists, so the CPU has the instructions; the steps are there, as asserted.
        unsafe { M::add_products(&mut self.sums.0, depth, left, right) };
    }
}

/// By the instruction, on registers of 16 floats.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub(crate) struct Instruction;

#[cfg(target_arch = "x86_64")]
impl AddProducts for Instruction {
    /// Three strips of rows, so that the sums of each stay in registers from the first step to the
    /// last: 22 sums that do not wait for each other, of two words of the right operand and one of the
    /// left at a time.
    #[inline(always)]
    unsafe fn add_products(
        sums: &mut [f32; BLOCK],
        depth: usize,
        left: Steps<'_>,
        right: Steps<'_>,
    ) {
        // SAFETY: the caller promises a CPU with the instructions, and steps that are there.
        unsafe {
            add_strip::<11>(sums, 0, depth, left, right);
            add_strip::<11>(sums, 11, depth, left, right);
            add_strip::<10>(sums, 22, depth, left, right);
        }
    }
}

/// `R` rows of a block from row `first` on.
///
/// # Safety
/// The CPU must have the instructions, and both operands `depth` steps.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn add_strip<const R: usize>(
    sums: &mut [f32; BLOCK],
    first: usize,
    depth: usize,
    left: Steps<'_>,
    right: Steps<'_>,
) {
    use std::arch::x86_64::{
        __m512, __m512bh, _mm512_dpbf16_ps, _mm512_load_ps, _mm512_set1_ps, _mm512_setzero_ps,
        _mm512_store_ps,
    };
    use std::mem::transmute;

    let rows = &mut sums[first * PANEL..][..R * PANEL];
    let mut strip = [[_mm512_setzero_ps(); 2]; R];
    // SAFETY: a row of a block is two registers, aligned to 64 bytes; a step of an operand is 32 rows
    // of 16 words, aligned likewise, of which `first + R` is at most all. Both types of registers are
    // 64 bytes without a form of their own.
    unsafe {
        for (sums, row) in strip.iter_mut().zip(rows.chunks_exact(PANEL)) {
            *sums = [_mm512_load_ps(row.as_ptr()), _mm512_load_ps(row[WORDS..].as_ptr())];
        }
        for k in 0..depth {
            let (left, right) = (left.at(k).add(first * WORDS), right.at(k));
            for j in 0..WORDS {
                let pairs = [0, WORDS].map(|tile| {
                    let pairs = _mm512_load_ps(right.add((tile + j) * WORDS));
                    transmute::<__m512, __m512bh>(pairs)
                });
                for (r, sums) in strip.iter_mut().enumerate() {
                    let pair = _mm512_set1_ps(*left.add(r * WORDS + j));
                    let pair = transmute::<__m512, __m512bh>(pair);
                    *sums = [0, 1].map(|tile| _mm512_dpbf16_ps(sums[tile], pair, pairs[tile]));
                }
            }
        }
        for (sums, row) in strip.iter().zip(rows.chunks_exact_mut(PANEL)) {
            _mm512_store_ps(row.as_mut_ptr(), sums[0]);
            _mm512_store_ps(row[WORDS..].as_mut_ptr(), sums[1]);
        }
    }
}

/// In plain Rust: the twin of the instruction, down to the order of the sums.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Plain;

#[cfg(test)]
impl AddProducts for Plain {
    unsafe fn add_products(
        sums: &mut [f32; BLOCK],
        depth: usize,
        left: Steps<'_>,
        right: Steps<'_>,
    ) {
        for (i, sums) in sums.chunks_exact_mut(PANEL).enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                for (k, j) in (0..depth).flat_map(|k| (0..WORDS).map(move |j| (k, j))) {
                    let x = left.tiles(k)[i * WORDS + j];
                    let y = right.tiles(k)[(n / WORDS * WORDS + j) * WORDS + n % WORDS];
                    *sum = plus_dot(*sum, x.to_bits(), y.to_bits());
                }
            }
        }
    }
}

/// `vdpbf16ps`: adds the product of the upper values, then that of the lower ones, rounding after
/// each, with tiny numbers for zero.
#[cfg(test)]
fn plus_dot(sum: f32, x: u32, y: u32) -> f32 {
    use super::emulated::{flush, half};
    let upper = flush(half(x).mul_add(half(y), flush(sum)));
    flush(half(x << 16).mul_add(half(y << 16), upper))
}

#[cfg(test)]
mod tests {
    use super::super::TILE;
    use super::*;
    use crate::Panels;

    /// Both values of a pair, which bfloat16 holds.
    fn pair(lower: f32, upper: f32) -> f32 {
        f32::from_bits(lower.to_bits() >> 16 | upper.to_bits())
    }

    /// Two steps of packed tiles whose words are told by their index.
    fn steps(word: impl Fn(usize) -> f32) -> Panels {
        let mut words = Panels::zeros(4 * TILE / PANEL, PANEL);
        words.data_mut().iter_mut().enumerate().for_each(|(index, slot)| *slot = word(index));
        words
    }

    fn as_steps(words: &Panels) -> Steps<'_> {
        Steps { words: words.data(), stride: 2 * TILE }
    }

    /// What `how` adds to a block.
    ///
    /// # Safety
    /// The CPU must have the instructions.
    unsafe fn added<M: AddProducts>(block: &Block, left: &Panels, right: &Panels) -> Vec<f32> {
        // SAFETY: as promised by the caller.
        let mut sums = unsafe { InMemory::<M>::configure() };
        sums.load(&block.0);
        sums.add_products(2, as_steps(left), as_steps(right));
        let mut out = vec![0.0; BLOCK];
        sums.store(&mut out);
        out
    }

    #[test]
    fn a_product_of_pairs_adds_to_what_is_there() {
        let mut block = Block([0.0; BLOCK]);
        block.0[2 * PANEL + 3] = 100.0;
        let (row, second_tile) = (2 * WORDS, TILE);
        let left = steps(|at| match at {
            at if at == row => pair(2.0, 3.0),
            at if at == row + 15 => pair(5.0, 7.0),
            at if at == 2 * TILE + row => pair(1.0, 0.0),
            _ => 0.0,
        });
        let right = steps(|at| match at {
            3 => pair(0.5, 1.0),
            at if at == 15 * WORDS + 3 => pair(-1.0, 4.0),
            at if at == 2 * TILE + second_tile + 1 => pair(9.0, 0.0),
            _ => 0.0,
        });
        let mut want = block.0;
        want[2 * PANEL + 3] = 100.0 + (2.0 * 0.5 + 3.0) + (-5.0 + 7.0 * 4.0);
        want[2 * PANEL + WORDS + 1] = 9.0;
        // SAFETY: plain Rust needs no instructions.
        assert_eq!(unsafe { added::<Plain>(&block, &left, &right) }, want);
    }

    /// The order tells where a sum is rounded: 2²⁴ + 1 is no float.
    #[test]
    fn upper_values_are_added_first() {
        let large = f32::from(1_u8 << 4) * f32::from(1_u8 << 4) * 65536.0;
        assert_eq!(large + 1.0, large);
        let sum =
            |lower, upper| plus_dot(-large, pair(1.0, 1.0).to_bits(), pair(lower, upper).to_bits());
        assert_eq!((sum(1.0, large), sum(large, 1.0)), (1.0, 1.0));
        assert_eq!(plus_dot(large, pair(1.0, 1.0).to_bits(), pair(-large, 1.0).to_bits()), 0.0);
        assert_eq!(plus_dot(large, pair(1.0, 1.0).to_bits(), pair(1.0, -large).to_bits()), 1.0);
    }

    #[test]
    fn tiny_numbers_count_as_zero() {
        let tiny = f32::from_bits(1 << 16);
        let huge = pair(2f32.powi(100), 2f32.powi(100)).to_bits();
        assert_eq!(plus_dot(0.0, pair(tiny, tiny).to_bits(), huge), 0.0);
        // A tiny sum does not count even where what comes of it is not tiny.
        let least = pair(0.0, f32::MIN_POSITIVE).to_bits();
        let one = pair(0.0, 1.0).to_bits();
        assert_eq!(plus_dot(tiny, one, least), f32::MIN_POSITIVE);
        assert_eq!(plus_dot(tiny, 0, 0).to_bits(), 0);
    }

    /// That the CPU takes tiny numbers for zero where its twin does, and rounds as often.
    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "needs AVX-512 BF16"]
    fn needs_avx512bf16_tiny_and_large_numbers_are_those_of_the_twin() {
        assert!(std::arch::is_x86_feature_detected!("avx512bf16"), "this CPU has no AVX-512 BF16");
        let tiny = f32::from_bits(1 << 16);
        let halves = [tiny, -tiny, f32::MIN_POSITIVE, -1.0, 2f32.powi(60), -2f32.powi(-60), 0.0];
        let value = |k: usize| halves[k % halves.len()];
        let word = |k: usize| pair(value(k), value(k / halves.len()));
        let sum = |k: usize| if k.is_multiple_of(3) { f32::from_bits(k as u32) } else { value(k) };
        let mixed = |at: usize| at / WORDS * 23 + at % WORDS * 5;
        let (left, right) = (steps(|at| word(mixed(at))), steps(|at| word(mixed(at) * 3 + 1)));
        let block = Block(std::array::from_fn(|at| sum(mixed(at))));
        // SAFETY: the CPU has the instructions, as asserted; plain Rust needs none.
        let (found, want) = unsafe {
            (added::<Instruction>(&block, &left, &right), added::<Plain>(&block, &left, &right))
        };
        let bits = |sums: Vec<f32>| sums.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(found), bits(want));
    }
}
