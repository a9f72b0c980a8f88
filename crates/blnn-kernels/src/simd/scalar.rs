//! Portable lanes: plain arithmetic on small arrays. The oracle of the other types.

use super::Simd;
use crate::bf16::UPPER_HALF;

/// Four floats without special instructions.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

fn zip(a: [f32; 4], b: [f32; 4], f: impl Fn(f32, f32) -> f32) -> [f32; 4] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Scalar {
    type V = [f32; 4];
    const LANES: usize = 4;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: the caller promises four readable floats; the read does not need alignment.
        unsafe { p.cast::<[f32; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: the caller promises four writable floats; the write does not need alignment.
        unsafe { p.cast::<[f32; 4]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // Not `mul_add`: without the instruction that is a slow library call.
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    unsafe fn if_positive(x: Self::V, a: Self::V, b: Self::V) -> Self::V {
        std::array::from_fn(|i| if x[i] > 0.0 { a[i] } else { b[i] })
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        (v[0] + v[1]) + (v[2] + v[3])
    }
    #[inline(always)]
    unsafe fn round16(v: Self::V) -> Self::V {
        v.map(crate::bf16::round)
    }
    #[inline(always)]
    unsafe fn pair16(low: Self::V, high: Self::V) -> Self::V {
        zip(low, high, |l, h| f32::from_bits(l.to_bits() >> 16 | h.to_bits()))
    }
    #[inline(always)]
    unsafe fn low16(words: Self::V) -> Self::V {
        words.map(|w| f32::from_bits(w.to_bits() << 16))
    }
    #[inline(always)]
    unsafe fn high16(words: Self::V) -> Self::V {
        words.map(|w| f32::from_bits(w.to_bits() & UPPER_HALF))
    }
}
