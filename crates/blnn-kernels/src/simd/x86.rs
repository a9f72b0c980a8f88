//! AVX2 and AVX-512 lanes.

use std::arch::x86_64::{
    __m256, __m512, _CMP_GT_OQ, _MM_HINT_T1, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_movehl_ps,
    _mm_prefetch, _mm_shuffle_ps, _mm256_add_ps, _mm256_blendv_ps, _mm256_castps256_ps128,
    _mm256_cmp_ps, _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps, _mm256_sub_ps, _mm512_add_ps,
    _mm512_castps512_ps256, _mm512_cmp_ps_mask, _mm512_extractf32x8_ps, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_mask_blend_ps, _mm512_mul_ps, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_storeu_ps, _mm512_sub_ps,
};

use super::Simd;

/// Eight floats; needs AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Sixteen floats; needs AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Wraps intrinsics in the trait's methods. All of them are `unsafe` for one and the same
/// reason: the CPU must have the instruction, which the trait demands of its caller.
macro_rules! methods {
    ($($name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $body:expr;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller promises a CPU with the instructions of this type, and for
                // `load` and `store` enough floats behind the pointer.
                unsafe { $body }
            }
        )*
    };
}

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    // 6 × 2 accumulators, 2 registers of B and 1 of A fill 15 of the 16 registers.
    const TILE_ROWS: usize = 6;
    const TILE_VECTORS: usize = 2;

    methods! {
        splat(x: f32) -> __m256 = _mm256_set1_ps(x);
        load(p: *const f32) -> __m256 = _mm256_loadu_ps(p);
        prefetch(p: *const f32) = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        store(p: *mut f32, v: __m256) = _mm256_storeu_ps(p, v);
        add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
        sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
        mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
        fma(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
        if_positive(x: __m256, a: __m256, b: __m256) -> __m256 =
            _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_GT_OQ>(x, _mm256_setzero_ps()));
        sum(v: __m256) -> f32 = {
            let four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        };
    }
}

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    // 14 × 2 accumulators, 2 registers of B and 1 of A fill 31 of the 32 registers.
    const TILE_ROWS: usize = 14;
    const TILE_VECTORS: usize = 2;

    methods! {
        splat(x: f32) -> __m512 = _mm512_set1_ps(x);
        load(p: *const f32) -> __m512 = _mm512_loadu_ps(p);
        prefetch(p: *const f32) = _mm_prefetch::<_MM_HINT_T1>(p.cast());
        store(p: *mut f32, v: __m512) = _mm512_storeu_ps(p, v);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        if_positive(x: __m512, a: __m512, b: __m512) -> __m512 =
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, _mm512_setzero_ps()), b, a);
        sum(v: __m512) -> f32 =
            Avx2::sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v)));
    }
}
