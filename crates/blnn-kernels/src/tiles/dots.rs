//! Tile registers in memory, multiplied by the instruction of AVX-512 BF16 that adds the dot product
//! of two pairs to a float: for CPUs that have it and no matrix unit. [`Plain`] is its twin.

use std::marker::PhantomData;

use super::{TILE, Tiles};
use crate::bf16::WORDS;

/// A register: 16 rows of 16 words.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Tile([[f32; WORDS]; WORDS]);

const _: () = assert!(size_of::<Tile>() == TILE * size_of::<f32>());

/// How tiles in memory are multiplied.
pub(crate) trait Multiply {
    /// `C += A · B`, as [`Tiles::multiply`].
    ///
    /// # Safety
    /// The CPU must have the instructions.
    unsafe fn multiply(c: &mut Tile, a: &Tile, b: &Tile);
}

/// Eight registers. Memory holds them: the sums of a block are twice what the CPU's registers hold.
#[derive(Debug)]
pub(crate) struct InMemory<M> {
    registers: [Tile; 8],
    how: PhantomData<M>,
}

impl<M: Multiply> Tiles for InMemory<M> {
    unsafe fn configure() -> Self {
        Self { registers: [Tile([[0.0; WORDS]; WORDS]); 8], how: PhantomData }
    }

    #[inline(always)]
    fn zero<const T: u8>(&mut self) {
        self.registers[usize::from(T)] = Tile([[0.0; WORDS]; WORDS]);
    }

    #[inline(always)]
    unsafe fn load<const T: u8>(&mut self, from: *const f32, stride: usize) {
        for (i, row) in self.registers[usize::from(T)].0.iter_mut().enumerate() {
            // SAFETY: the caller promises that the tile's bytes are readable; no one else has the
            // registers.
            unsafe { from.byte_add(i * stride).copy_to_nonoverlapping(row.as_mut_ptr(), WORDS) };
        }
    }

    #[inline(always)]
    unsafe fn store<const T: u8>(&mut self, to: *mut f32, stride: usize) {
        for (i, row) in self.registers[usize::from(T)].0.iter().enumerate() {
            // SAFETY: the caller promises that the tile's bytes are writable; no one else has the
            // registers.
            unsafe { to.byte_add(i * stride).copy_from_nonoverlapping(row.as_ptr(), WORDS) };
        }
    }

    #[inline(always)]
    fn multiply<const C: u8, const A: u8, const B: u8>(&mut self) {
        let three = self.registers.get_disjoint_mut([C, A, B].map(usize::from));
        let [c, a, b] = three.expect("three registers");
        // SAFETY: `self` exists, so the CPU has the instructions.
        unsafe { M::multiply(c, a, b) };
    }
}

/// By the instruction, on registers of 16 floats.
#[cfg(target_arch = "x86_64")]
#[derive(Debug)]
pub(crate) struct Instruction;

#[cfg(target_arch = "x86_64")]
impl Multiply for Instruction {
    #[inline(always)]
    unsafe fn multiply(c: &mut Tile, a: &Tile, b: &Tile) {
        // SAFETY: the caller promises a CPU with the instructions.
        unsafe { add_dots(c, a, b) };
    }
}

/// A register for each row of `c`: 16 sums that do not wait for each other.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bf16")]
fn add_dots(c: &mut Tile, a: &Tile, b: &Tile) {
    use std::arch::x86_64::{
        __m512, __m512bh, _mm512_dpbf16_ps, _mm512_load_ps, _mm512_set1_ps, _mm512_setzero_ps,
        _mm512_store_ps,
    };
    use std::mem::transmute;

    let mut sums = [_mm512_setzero_ps(); WORDS];
    for (sum, row) in sums.iter_mut().zip(&c.0) {
        // SAFETY: a row of a tile is 16 floats, aligned to 64 bytes.
        *sum = unsafe { _mm512_load_ps(row.as_ptr()) };
    }
    for (k, pairs) in b.0.iter().enumerate() {
        // SAFETY: as above; both types are 64 bytes without a form of their own.
        let pairs = unsafe { transmute::<__m512, __m512bh>(_mm512_load_ps(pairs.as_ptr())) };
        for (sum, row) in sums.iter_mut().zip(&a.0) {
            // SAFETY: as above.
            let pair = unsafe { transmute::<__m512, __m512bh>(_mm512_set1_ps(row[k])) };
            *sum = _mm512_dpbf16_ps(*sum, pair, pairs);
        }
    }
    for (sum, row) in sums.into_iter().zip(&mut c.0) {
        // SAFETY: as above.
        unsafe { _mm512_store_ps(row.as_mut_ptr(), sum) };
    }
}

/// In plain Rust: the twin of the instruction, down to the order of the sums.
#[cfg(test)]
#[derive(Debug)]
pub(crate) struct Plain;

#[cfg(test)]
impl Multiply for Plain {
    unsafe fn multiply(c: &mut Tile, a: &Tile, b: &Tile) {
        for (sums, row) in c.0.iter_mut().zip(&a.0) {
            for (x, pairs) in row.iter().zip(&b.0) {
                for (sum, y) in sums.iter_mut().zip(pairs) {
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
    use super::*;

    /// Both values of a pair, which bfloat16 holds.
    fn pair(lower: f32, upper: f32) -> f32 {
        f32::from_bits(lower.to_bits() >> 16 | upper.to_bits())
    }

    #[test]
    fn a_product_of_pairs_adds_to_what_is_there() {
        // SAFETY: plain Rust needs no instructions.
        let mut tiles = unsafe { InMemory::<Plain>::configure() };
        tiles.registers[0].0[2][3] = 100.0;
        (tiles.registers[4].0[2][0], tiles.registers[4].0[2][15]) =
            (pair(2.0, 3.0), pair(5.0, 7.0));
        (tiles.registers[6].0[0][3], tiles.registers[6].0[15][3]) =
            (pair(0.5, 1.0), pair(-1.0, 4.0));
        tiles.multiply::<0, 4, 6>();
        let mut want = [[0.0; WORDS]; WORDS];
        want[2][3] = 100.0 + (2.0 * 0.5 + 3.0) + (-5.0 + 7.0 * 4.0);
        assert_eq!(tiles.registers[0].0, want);
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
        assert_eq!(plus_dot(tiny, 0, 0).to_bits(), 0);
    }
}
