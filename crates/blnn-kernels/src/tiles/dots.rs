//! Tile registers in memory, multiplied by the instruction of AVX-512 BF16 that adds the dot product
//! of two pairs to a float: for CPUs that have it and no matrix unit. `Plain` is its twin.

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
        let tile = |f: &dyn Fn(usize) -> f32| {
            Tile(std::array::from_fn(|i| std::array::from_fn(|j| f(i * 23 + j * 5))))
        };
        let (a, b) = (tile(&word), tile(&|k| word(k * 3 + 1)));
        let [mut found, mut want] = [(); 2].map(|()| tile(&sum));
        // SAFETY: the CPU has the instructions, as asserted; plain Rust needs none.
        unsafe {
            Instruction::multiply(&mut found, &a, &b);
            Plain::multiply(&mut want, &a, &b);
        }
        assert_eq!(
            found.0.map(|row| row.map(f32::to_bits)),
            want.0.map(|row| row.map(f32::to_bits))
        );
    }
}
