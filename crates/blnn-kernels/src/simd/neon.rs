//! NEON lanes.

use std::arch::aarch64::{
    float32x4_t, vaddq_f32, vaddq_u32, vaddvq_f32, vandq_u32, vbslq_f32, vceqq_f32, vcgtzq_f32,
    vdupq_n_f32, vdupq_n_u32, vfmaq_f32, vld1q_f32, vmulq_f32, vorrq_u32, vreinterpretq_f32_u32,
    vreinterpretq_u32_f32, vshlq_n_u32, vshrq_n_u32, vst1q_f32, vsubq_f32,
};

use super::Simd;
use crate::bf16::{QUIET, UPPER_HALF};

/// Four floats of a 64-bit ARM CPU.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;
    // 6 × 4 accumulators, 4 registers of B and 1 of A fill 29 of the 32 registers.
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vdupq_n_f32(x) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: the caller promises four readable floats.
        unsafe { vld1q_f32(p) }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: the caller promises four writable floats.
        unsafe { vst1q_f32(p, v) }
    }
    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vsubq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    unsafe fn fma(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    unsafe fn if_positive(x: Self::V, a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vbslq_f32(vcgtzq_f32(x), a, b) }
    }
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        // SAFETY: NEON is part of this target.
        unsafe { vaddvq_f32(v) }
    }
    #[inline(always)]
    unsafe fn round16(v: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe {
            let bits = vreinterpretq_u32_f32(v);
            let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
            let up = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
            let no_number = vorrq_u32(bits, vdupq_n_u32(QUIET));
            let [up, no_number] = [up, no_number]
                .map(|bits| vreinterpretq_f32_u32(vandq_u32(bits, vdupq_n_u32(UPPER_HALF))));
            vbslq_f32(vceqq_f32(v, v), up, no_number)
        }
    }
    #[inline(always)]
    unsafe fn pair16(low: Self::V, high: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe {
            let low = vshrq_n_u32::<16>(vreinterpretq_u32_f32(low));
            vreinterpretq_f32_u32(vorrq_u32(low, vreinterpretq_u32_f32(high)))
        }
    }
    #[inline(always)]
    unsafe fn low16(words: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe { vreinterpretq_f32_u32(vshlq_n_u32::<16>(vreinterpretq_u32_f32(words))) }
    }
    #[inline(always)]
    unsafe fn high16(words: Self::V) -> Self::V {
        // SAFETY: NEON is part of this target.
        unsafe {
            let upper = vdupq_n_u32(UPPER_HALF);
            vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(words), upper))
        }
    }
}
