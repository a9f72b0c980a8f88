//! AVX2 and AVX-512 lanes.

#[allow(clippy::wildcard_imports, reason = "dozens of intrinsics, all named after their type")]
use std::arch::x86_64::*;

use super::Simd;
use crate::bf16::{QUIET, UPPER_HALF};
use crate::pick::{Keys, pick_one_by_one};

/// Eight floats; needs AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Sixteen floats; needs AVX-512 F, BW, DQ and VL.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// [`Avx512`] that rounds to bfloat16 by an instruction; needs AVX-512 BF16 too. That instruction
/// takes numbers too small for their exponent for zero, as products on tiles do.
#[derive(Clone, Copy)]
pub(crate) struct Avx512Bf16;

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
        prefetch_near(p: *const f32) = _mm_prefetch::<_MM_HINT_T0>(p.cast());
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
        round16(v: __m256) -> __m256 = {
            let bits = _mm256_castps_si256(v);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
            let no_number = _mm256_or_si256(bits, _mm256_set1_epi32(QUIET as i32));
            let upper = _mm256_set1_epi32(UPPER_HALF as i32);
            let [up, no_number] = [_mm256_castsi256_ps(up), _mm256_castsi256_ps(no_number)];
            let nearest = _mm256_blendv_ps(up, no_number, _mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
            _mm256_and_ps(nearest, _mm256_castsi256_ps(upper))
        };
        pair16(low: __m256, high: __m256) -> __m256 = {
            let low = _mm256_srli_epi32::<16>(_mm256_castps_si256(low));
            _mm256_castsi256_ps(_mm256_or_si256(low, _mm256_castps_si256(high)))
        };
        low16(words: __m256) -> __m256 =
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(words)));
        high16(words: __m256) -> __m256 = {
            let upper = _mm256_set1_epi32(UPPER_HALF as i32);
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(words), upper))
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
        prefetch_near(p: *const f32) = _mm_prefetch::<_MM_HINT_T0>(p.cast());
        store(p: *mut f32, v: __m512) = _mm512_storeu_ps(p, v);
        add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
        sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
        mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
        if_positive(x: __m512, a: __m512, b: __m512) -> __m512 =
            _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, _mm512_setzero_ps()), b, a);
        sum(v: __m512) -> f32 =
            Avx2::sum(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v)));
        round16(v: __m512) -> __m512 = {
            let bits = _mm512_castps_si512(v);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
            let no_number = _mm512_or_si512(bits, _mm512_set1_epi32(QUIET as i32));
            let upper = _mm512_set1_epi32(UPPER_HALF as i32);
            let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(v, v);
            let nearest = _mm512_mask_mov_epi32(no_number, is_number, up);
            _mm512_castsi512_ps(_mm512_and_si512(nearest, upper))
        };
        pair16(low: __m512, high: __m512) -> __m512 = {
            let low = _mm512_srli_epi32::<16>(_mm512_castps_si512(low));
            _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_castps_si512(high)))
        };
        low16(words: __m512) -> __m512 =
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_castps_si512(words)));
        high16(words: __m512) -> __m512 = {
            let upper = _mm512_set1_epi32(UPPER_HALF as i32);
            _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), upper))
        };
        pick16(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize = {
            // Places are signed.
            let Ok(end) = i32::try_from(keys.all().len()) else {
                return pick_one_by_one(words, keys, key, out);
            };
            let lanes = first_lanes(words.len());
            let list = _mm512_maskz_loadu_epi32(lanes, words.as_ptr().cast());
            let known = _mm512_mask_cmplt_epu32_mask(lanes, list, _mm512_set1_epi32(end));
            assert!(known == lanes, "a word with a key");
            let zero = _mm512_setzero_si512();
            let found = _mm512_mask_i32gather_epi32::<1>(zero, lanes, list, keys.as_ptr().cast());
            let found = _mm512_and_si512(found, _mm512_set1_epi32(0xff));
            let wanted = _mm512_set1_epi32(i32::from(key));
            let picked = _mm512_mask_cmpeq_epi32_mask(lanes, found, wanted);
            let count = picked.count_ones() as usize;
            assert!(count <= out.len(), "no room for a word");
            let packed = _mm512_maskz_compress_epi32(picked, list);
            _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), first_lanes(count), packed);
            count
        };
        transpose_words(from: *const f32, to: *mut f32) = {
            let rows: [__m512; 16] = std::array::from_fn(|i| _mm512_loadu_ps(from.add(16 * i)));
            let columns = transposed(rows);
            for (i, &column) in columns.iter().enumerate() {
                _mm512_storeu_ps(to.add(16 * i), column);
            }
        };
    }
}

impl Simd for Avx512Bf16 {
    type V = __m512;
    const LANES: usize = Avx512::LANES;
    const TILE_ROWS: usize = Avx512::TILE_ROWS;
    const TILE_VECTORS: usize = Avx512::TILE_VECTORS;

    methods! {
        splat(x: f32) -> __m512 = Avx512::splat(x);
        load(p: *const f32) -> __m512 = Avx512::load(p);
        prefetch(p: *const f32) = Avx512::prefetch(p);
        prefetch_near(p: *const f32) = Avx512::prefetch_near(p);
        store(p: *mut f32, v: __m512) = Avx512::store(p, v);
        add(a: __m512, b: __m512) -> __m512 = Avx512::add(a, b);
        sub(a: __m512, b: __m512) -> __m512 = Avx512::sub(a, b);
        mul(a: __m512, b: __m512) -> __m512 = Avx512::mul(a, b);
        fma(a: __m512, b: __m512, c: __m512) -> __m512 = Avx512::fma(a, b, c);
        if_positive(x: __m512, a: __m512, b: __m512) -> __m512 = Avx512::if_positive(x, a, b);
        sum(v: __m512) -> f32 = Avx512::sum(v);
        round16(v: __m512) -> __m512 = Avx512::round16(v);
        pair16(low: __m512, high: __m512) -> __m512 = Avx512::pair16(low, high);
        low16(words: __m512) -> __m512 = Avx512::low16(words);
        high16(words: __m512) -> __m512 = Avx512::high16(words);
        pick16(words: &[u32], keys: &Keys, key: u8, out: &mut [u32]) -> usize =
            Avx512::pick16(words, keys, key, out);
        transpose_words(from: *const f32, to: *mut f32) = Avx512::transpose_words(from, to);
        narrow16(low: __m512, high: __m512) -> __m512 = {
            // All of `low`, then all of `high`, shuffled into words of one each.
            let halves = _mm512_cvtne2ps_pbh(high, low);
            let order = _mm512_loadu_si512(IN_WORDS.as_ptr().cast());
            let words = _mm512_permutexvar_epi16(order, std::mem::transmute::<__m512bh, __m512i>(halves));
            _mm512_castsi512_ps(words)
        };
    }
}

/// The mask of the first `count` of 16 lanes.
#[inline(always)]
fn first_lanes(count: usize) -> u16 {
    debug_assert!(count <= 16);
    ((1_u32 << count) - 1) as u16
}

/// Where the halves of each word come from in [`Avx512Bf16`]: `0, 16, 1, 17, …`.
static IN_WORDS: [u16; 32] = {
    let mut order = [0; 32];
    let mut j = 0;
    while j < 16 {
        (order[2 * j], order[2 * j + 1]) = (j as u16, 16 + j as u16);
        j += 1;
    }
    order
};

/// The transpose of 16 rows of 16 words: first of each 4×4 block within the four quarters of the
/// registers, then of the 4×4 matrix of such quarters.
///
/// # Safety
/// The CPU must have AVX-512 F.
#[inline(always)]
unsafe fn transposed(rows: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: as promised by the caller.
    unsafe {
        let zero = _mm512_setzero_ps();
        let mut quarters = [zero; 16];
        for four in 0..4 {
            let r: [__m512; 4] = std::array::from_fn(|i| rows[4 * four + i]);
            let low = [_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpacklo_ps(r[2], r[3])]
                .map(|v| _mm512_castps_pd(v));
            let high = [_mm512_unpackhi_ps(r[0], r[1]), _mm512_unpackhi_ps(r[2], r[3])]
                .map(|v| _mm512_castps_pd(v));
            for (pair, [a, b]) in [low, high].into_iter().enumerate() {
                quarters[8 * pair + four] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
                quarters[8 * pair + 4 + four] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
            }
        }
        // Quarter `q` of `quarters[4 * c + four]` holds column `4 * q + c` of rows `4 * four..`.
        let mut columns = [zero; 16];
        for c in 0..4 {
            let v: [__m512; 4] = std::array::from_fn(|four| quarters[4 * c + four]);
            let even = [
                _mm512_shuffle_f32x4::<0x88>(v[0], v[1]),
                _mm512_shuffle_f32x4::<0x88>(v[2], v[3]),
            ];
            let odd = [
                _mm512_shuffle_f32x4::<0xdd>(v[0], v[1]),
                _mm512_shuffle_f32x4::<0xdd>(v[2], v[3]),
            ];
            columns[c] = _mm512_shuffle_f32x4::<0x88>(even[0], even[1]);
            columns[4 + c] = _mm512_shuffle_f32x4::<0x88>(odd[0], odd[1]);
            columns[8 + c] = _mm512_shuffle_f32x4::<0xdd>(even[0], even[1]);
            columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(odd[0], odd[1]);
        }
        columns
    }
}
