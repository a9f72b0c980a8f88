//! The loops over a block, written once over [`Lanes`] and chosen for the processor at run time.

#![expect(
    clippy::inline_always,
    reason = "a loop must be compiled into its caller, which has the instruction set"
)]

use std::array::from_fn;

use super::lanes::Lanes;
use super::{BLOCK, GROUP, LANES};
#[cfg(target_arch = "x86_64")]
use crate::simd::{Isa, isa};

/// Defines a safe function that runs `$body::<L>` with the widest registers the processor has.
macro_rules! dispatch {
    ($(#[$doc:meta])* $vis:vis fn $name:ident $(<const $flag:ident: bool>)? ($($arg:ident: $ty:ty),*) = $body:ident) => {
        $(#[$doc])*
        $vis fn $name $(<const $flag: bool>)? ($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::x86_64::{__m256, __m512};
                #[target_feature(enable = "avx512f")]
                fn wide $(<const $flag: bool>)? ($($arg: $ty),*) {
                    // SAFETY: this function runs only where AVX-512F is present.
                    unsafe { $body::<__m512 $(, $flag)?>($($arg),*) }
                }
                #[target_feature(enable = "avx2,fma")]
                fn middle $(<const $flag: bool>)? ($($arg: $ty),*) {
                    // SAFETY: this function runs only where AVX2 and FMA are present.
                    unsafe { $body::<__m256 $(, $flag)?>($($arg),*) }
                }
                match isa() {
                    // SAFETY: `isa` names only what the processor has.
                    Isa::Avx512 | Isa::Avx512Bf16 => return unsafe { wide $(::<$flag>)? ($($arg),*) },
                    // SAFETY: the same.
                    Isa::Avx2 => return unsafe { middle $(::<$flag>)? ($($arg),*) },
                    _ => {}
                }
            }
            // SAFETY: the portable lanes need no instruction set.
            unsafe { $body::<[f32; 4] $(, $flag)?>($($arg),*) }
        }
    };
}

dispatch! {
    /// Product of the first `visited` rows of a block with the listed vectors; shapes are the
    /// caller's to check.
    pub(super) fn times(columns: &[f32], visited: usize, vectors: &[f32], which: &[u32], out: &mut [f32]) = times_in
}

dispatch! {
    /// Transposed product of a block, or of its squares, added to lanes of partial sums.
    pub(super) fn add_transposed<const SQUARE: bool>(columns: &[f32], visited: usize, values: &[f32], vectors: usize, sums: &mut [f32]) = add_transposed_in
}

/// # Safety
/// The processor must have the instruction set of `L`; `out` holds `which.len() * BLOCK` values
/// and `vectors` all the listed vectors.
#[inline(always)]
unsafe fn times_in<L: Lanes>(
    columns: &[f32],
    visited: usize,
    vectors: &[f32],
    which: &[u32],
    out: &mut [f32],
) {
    let cols = columns.len() / BLOCK;
    let size = tile_size(which.len(), MAX_VECTORS);
    // Few vectors need more rows at a time to keep all accumulators busy.
    let registers = if size <= NARROW { L::TILE } else { L::TILE / 2 };
    let step = registers * L::WIDTH;
    // Rows outside, vectors inside: the rows' values stay in the first-level cache.
    for row in (0..visited).step_by(step) {
        for (chosen, out) in which.chunks(size).zip(out.chunks_mut(size * BLOCK)) {
            let w = |v: usize| vectors[chosen[v] as usize * cols..][..cols].as_ptr();
            let x = columns[row..].as_ptr();
            let out = out[row..].as_mut_ptr();
            // SAFETY: rows row .. row + step lie in the block, because `visited` is a multiple
            // of GROUP, which every step divides; `w(v)` points to `cols` values and `out` to
            // the same rows of every vector of the tile.
            unsafe {
                match chosen.len() {
                    1 => tile::<L, 1>(x, cols, registers, from_fn(w), out),
                    2 => tile::<L, 2>(x, cols, registers, from_fn(w), out),
                    3 => tile::<L, 3>(x, cols, registers, from_fn(w), out),
                    4 => tile::<L, 4>(x, cols, registers, from_fn(w), out),
                    5 => tile::<L, 5>(x, cols, registers, from_fn(w), out),
                    6 => tile::<L, 6>(x, cols, registers, from_fn(w), out),
                    7 => tile::<L, 7>(x, cols, registers, from_fn(w), out),
                    _ => tile::<L, MAX_VECTORS>(x, cols, registers, from_fn(w), out),
                }
            }
        }
    }
}

/// Most vectors of a tile, and most for which a tile spans all of [`Lanes::TILE`] registers.
const MAX_VECTORS: usize = 8;
const NARROW: usize = 4;
const _: () = assert!(BLOCK.is_multiple_of(GROUP) && GROUP.is_multiple_of(4 * LANES));

/// Divides vectors into tiles of at most `most`, as evenly as possible.
fn tile_size(vectors: usize, most: usize) -> usize {
    vectors.div_ceil(vectors.div_ceil(most).max(1)).max(1)
}

/// Products of `V` vectors with 1, 2 or 4 registers of rows.
///
/// # Safety
/// The processor must have the instruction set of `L`; `x` and `out` point to a row with the
/// tile's rows of the block after it, `out` to `V` times BLOCK rows; each `w` to `cols` values.
#[inline(always)]
unsafe fn tile<L: Lanes, const V: usize>(
    x: *const f32,
    cols: usize,
    registers: usize,
    w: [*const f32; V],
    out: *mut f32,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match registers {
            1 => products::<L, V, 1>(x, cols, w, out),
            2 => products::<L, V, 2>(x, cols, w, out),
            _ => products::<L, V, 4>(x, cols, w, out),
        }
    }
}

/// Products of `V` vectors with exactly `R` registers of rows.
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn products<L: Lanes, const V: usize, const R: usize>(
    x: *const f32,
    cols: usize,
    w: [*const f32; V],
    out: *mut f32,
) {
    // SAFETY: as the caller promises; column j starts BLOCK rows after column j − 1.
    unsafe {
        let mut sums = [[L::splat(0.0); R]; V];
        for j in 0..cols {
            let mut rows = [L::splat(0.0); R];
            for (r, rows) in rows.iter_mut().enumerate() {
                *rows = L::load(x.add(j * BLOCK + r * L::WIDTH));
            }
            for (sums, w) in sums.iter_mut().zip(w) {
                let weight = L::splat(*w.add(j));
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = row.mul_add(weight, *sum);
                }
            }
        }
        for (v, sums) in sums.iter().enumerate() {
            for (r, sum) in sums.iter().enumerate() {
                sum.store(out.add(v * BLOCK + r * L::WIDTH));
            }
        }
    }
}

/// # Safety
/// The processor must have the instruction set of `L`; `values` holds `vectors * BLOCK` values
/// and `sums` `vectors * cols * LANES`.
#[inline(always)]
unsafe fn add_transposed_in<L: Lanes, const SQUARE: bool>(
    columns: &[f32],
    visited: usize,
    values: &[f32],
    vectors: usize,
    sums: &mut [f32],
) {
    let cols = columns.len() / BLOCK;
    let size = tile_size(vectors, NARROW);
    let x = columns.as_ptr();
    let mut j = 0;
    // Columns outside, vectors inside: a few columns stay in the first-level cache.
    while j < cols {
        let width = if j + L::TILE <= cols { L::TILE } else { 1 };
        for first in (0..vectors).step_by(size) {
            let values = values[first * BLOCK..].as_ptr();
            let sums = sums[first * cols * LANES..].as_mut_ptr();
            // SAFETY: columns j .. j + width and vectors first .. first + V exist, and `visited`
            // ≤ BLOCK rows of each.
            unsafe {
                match size.min(vectors - first) {
                    1 => corners::<L, SQUARE, 1>(x, visited, values, sums, cols, j, width),
                    2 => corners::<L, SQUARE, 2>(x, visited, values, sums, cols, j, width),
                    3 => corners::<L, SQUARE, 3>(x, visited, values, sums, cols, j, width),
                    _ => corners::<L, SQUARE, 4>(x, visited, values, sums, cols, j, width),
                }
            }
        }
        j += width;
    }
}

/// The transposed product of `V` vectors with the columns `j .. j + width`, `width` 1, 2 or 4.
///
/// # Safety
/// As [`corner`] with `C = width`.
#[inline(always)]
unsafe fn corners<L: Lanes, const SQUARE: bool, const V: usize>(
    x: *const f32,
    visited: usize,
    values: *const f32,
    sums: *mut f32,
    cols: usize,
    j: usize,
    width: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match width {
            4 => corner::<L, SQUARE, V, 4>(x, visited, values, sums, cols, j),
            2 => corner::<L, SQUARE, V, 2>(x, visited, values, sums, cols, j),
            _ => corner::<L, SQUARE, V, 1>(x, visited, values, sums, cols, j),
        }
    }
}

/// The transposed product of `V` vectors with the columns `j .. j + C`.
///
/// # Safety
/// `x` points to `cols` columns of BLOCK rows, `values` to `V` vectors of BLOCK rows and `sums`
/// to `V * cols * LANES` values; `j + C ≤ cols`; `visited ≤ BLOCK` is a multiple of `WIDTH`.
#[inline(always)]
unsafe fn corner<L: Lanes, const SQUARE: bool, const V: usize, const C: usize>(
    x: *const f32,
    visited: usize,
    values: *const f32,
    sums: *mut f32,
    cols: usize,
    j: usize,
) {
    // SAFETY: every offset stays within the lengths the caller promises.
    unsafe {
        let at = |v: usize, c: usize| sums.add((v * cols + j + c) * LANES);
        let mut acc = [[L::splat(0.0); C]; V];
        for (v, acc) in acc.iter_mut().enumerate() {
            for (c, acc) in acc.iter_mut().enumerate() {
                *acc = L::load(at(v, c));
            }
        }
        for row in (0..visited).step_by(L::WIDTH) {
            let column: [L; C] = from_fn(|c| {
                let value = L::load(x.add((j + c) * BLOCK + row));
                if SQUARE { value.mul(value) } else { value }
            });
            for (v, acc) in acc.iter_mut().enumerate() {
                let value = L::load(values.add(v * BLOCK + row));
                for (acc, column) in acc.iter_mut().zip(column) {
                    *acc = value.mul_add(column, *acc);
                }
            }
        }
        for (v, acc) in acc.iter().enumerate() {
            for (c, acc) in acc.iter().enumerate() {
                acc.store(at(v, c));
            }
        }
    }
}

/// Runs a plain loop with the widest registers the compiler can use for it on this processor.
macro_rules! vectorise {
    ($(#[$doc:meta])* pub fn $name:ident ($($arg:ident: $ty:ty),*) = $body:ident) => {
        $(#[$doc])*
        pub fn $name($($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn wide($($arg: $ty),*) {
                    $body::<true>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn middle($($arg: $ty),*) {
                    $body::<true>($($arg),*);
                }
                match isa() {
                    // SAFETY: `isa` names only what the processor has.
                    Isa::Avx512 | Isa::Avx512Bf16 => return unsafe { wide($($arg),*) },
                    // SAFETY: the same.
                    Isa::Avx2 => return unsafe { middle($($arg),*) },
                    _ => {}
                }
            }
            $body::<false>($($arg),*);
        }
    };
}

vectorise! {
    /// `out[i] = 1 / (1 + exp(-z[i]))`, to about one unit in the last place.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn logistic_into(z: &[f32], out: &mut [f32]) = logistic_in
}

vectorise! {
    /// For each row of a block the vector `v` with the least `offsets[v] - dots[v * BLOCK + row]`
    /// (the nearest centre, if `dots` are products and `offsets` half squared norms), the first
    /// of several equals, and that least value.
    ///
    /// # Panics
    /// If `best` or `label` is longer than a block or `dots` is too short.
    pub fn nearest_into(dots: &[f32], offsets: &[f32], best: &mut [f32], label: &mut [u32]) = nearest_in
}

#[inline(always)]
fn multiply_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// `exp(x)` for `|x| ≤ 87`: `2^n · exp(r)` with `|r| ≤ ln 2 / 2` and a polynomial for `exp(r)`.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first exact in few bits, so that r keeps full precision.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    const TAYLOR: [f32; 6] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0];
    let shifted = multiply_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = multiply_add::<FMA>(n, -LN2_LOW, multiply_add::<FMA>(n, -LN2_HIGH, x));
    let mut p = TAYLOR[0];
    for c in &TAYLOR[1..] {
        p = multiply_add::<FMA>(p, r, *c);
    }
    p = multiply_add::<FMA>(p, r, 1.0);
    let exponent = (shifted.to_bits() as i32).wrapping_shl(23);
    f32::from_bits((p.to_bits() as i32).wrapping_add(exponent) as u32)
}

#[inline(always)]
fn logistic_in<const FMA: bool>(z: &[f32], out: &mut [f32]) {
    assert_eq!(z.len(), out.len(), "logistic: lengths");
    for (out, &z) in out.iter_mut().zip(z) {
        *out = 1.0 / (1.0 + exp::<FMA>(-z.clamp(-87.0, 87.0)));
    }
}

#[inline(always)]
fn nearest_in<const FMA: bool>(dots: &[f32], offsets: &[f32], best: &mut [f32], label: &mut [u32]) {
    let rows = best.len();
    assert!(rows <= BLOCK && label.len() == rows, "nearest: rows");
    best.fill(f32::INFINITY);
    label.fill(0);
    for (v, (dots, &offset)) in dots.chunks(BLOCK).zip(offsets).enumerate() {
        for ((best, label), &dot) in best.iter_mut().zip(label.iter_mut()).zip(&dots[..rows]) {
            let distance = offset - dot;
            *label = if distance < *best { v as u32 } else { *label };
            *best = if distance < *best { distance } else { *best };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_agrees_with_the_portable_lanes() {
        let columns: Vec<f32> = (0..9 * BLOCK).map(|i| (i as f32 * 0.13).sin()).collect();
        let w: Vec<f32> = (0..7 * 9).map(|i| (i as f32 * 0.7).cos()).collect();
        let which = [0, 2, 3, 5, 6];
        let (mut a, mut b) = (vec![0.0; 5 * BLOCK], vec![0.0; 5 * BLOCK]);
        times(&columns, BLOCK, &w, &which, &mut a);
        // SAFETY: the portable lanes need no instruction set, and the slices fit.
        unsafe { times_in::<[f32; 4]>(&columns, BLOCK, &w, &which, &mut b) };
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5));

        let (mut s, mut t) = (vec![0.5; 5 * 9 * LANES], vec![0.5; 5 * 9 * LANES]);
        add_transposed::<true>(&columns, GROUP, &a, 5, &mut s);
        // SAFETY: as above.
        unsafe { add_transposed_in::<[f32; 4], true>(&columns, GROUP, &a, 5, &mut t) };
        for (s, t) in s.chunks(LANES).zip(t.chunks(LANES)) {
            let (s, t): (f32, f32) = (s.iter().sum(), t.iter().sum());
            assert!((s - t).abs() < 1e-3, "{s} {t}");
        }
    }

    #[test]
    fn logistic_is_accurate_and_saturates() {
        let z: Vec<f32> = (-4000..4000).map(|i| i as f32 * 0.03).collect();
        let mut fast = vec![0.0; z.len()];
        let mut plain = vec![0.0; z.len()];
        logistic_into(&z, &mut fast);
        logistic_in::<false>(&z, &mut plain);
        for ((z, f), p) in z.iter().zip(&fast).zip(&plain) {
            let want = 1.0 / (1.0 + (-f64::from(*z).clamp(-87.0, 87.0)).exp());
            assert!((f64::from(*f) / want - 1.0).abs() < 5e-7, "σ({z}) = {f}");
            assert!((f64::from(*p) / want - 1.0).abs() < 5e-7, "σ({z}) = {p}");
        }
    }

    #[test]
    fn nearest_takes_the_first_of_equals() {
        let mut dots = vec![0.0; 3 * BLOCK];
        dots[0] = 1.0;
        dots[2 * BLOCK + 1] = 2.0;
        let (mut best, mut label) = ([0.0; 3], [9; 3]);
        nearest_into(&dots, &[0.5; 3], &mut best, &mut label);
        assert_eq!((label, best), ([0, 2, 0], [-0.5, -1.5, 0.5]));
    }
}
