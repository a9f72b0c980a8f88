//! bfloat16: the upper half of an `f32`, stored two in a word.
//!
//! A word `j` of a panel's row holds column `j` below and column `j + 16` above. Vectors widen it
//! with a shift and a mask, without a shuffle; and as both operands of a product order their pairs
//! alike, the tiles of a matrix unit take rows as they are.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::panels::{PANEL, Panels, RowsRef};
use crate::par::{Cell, Partition, SHARDS, STRIP_PANELS, Strip, Threads};
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::Wide;

/// The bits of an `f32` that a bfloat16 keeps.
pub(crate) const UPPER_HALF: u32 = 0xffff_0000;

/// The bit that keeps the upper half of what is no number from reading as infinity.
pub(crate) const QUIET: u32 = 0x0040_0000;

/// Words in a panel's row.
pub(crate) const WORDS: usize = PANEL / 2;

/// The nearest bfloat16 as an `f32`, ties to even; what is no number stays so.
///
/// ```
/// assert_eq!(blnn_kernels::bf16::round(1.0 + 1.0 / 256.0), 1.0);
/// assert_eq!(blnn_kernels::bf16::round(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
/// ```
#[inline(always)]
pub fn round(x: f32) -> f32 {
    let bits = x.to_bits();
    if x.is_nan() {
        return f32::from_bits((bits | QUIET) & UPPER_HALF);
    }
    let odd = bits >> 16 & 1;
    f32::from_bits((bits + 0x7fff + odd) & UPPER_HALF)
}

/// A matrix of bfloat16 in panels of 32 columns: 64 bytes a row, one line of the cache.
///
/// It lives in the allocation of a [`Panels`] of half as many rows, so that both kinds of matrix
/// share one pool of buffers.
#[derive(Clone, Default)]
pub struct Panels16 {
    rows: usize,
    words: Panels,
}

impl Panels16 {
    /// The shape of the [`Panels`] that holds a matrix of bfloat16.
    pub fn buffer_shape(rows: usize, cols: usize) -> (usize, usize) {
        (rows.div_ceil(2), cols)
    }

    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let (half, cols) = Self::buffer_shape(rows, cols);
        Self { rows, words: Panels::zeros(half, cols) }
    }

    /// Gives the matrix another shape, with any contents, within its allocation if that is large
    /// enough.
    pub(crate) fn reshape(&mut self, rows: usize, cols: usize) {
        let (half, cols) = Self::buffer_shape(rows, cols);
        self.words.reshape(half, cols);
        self.rows = rows;
    }

    /// The same values, rounded.
    pub fn from_panels(x: &Panels) -> Self {
        let mut out = Self::zeros(x.rows(), x.cols());
        out.copy_from(0, &x.rows_ref(0..x.rows()));
        out
    }

    /// Takes over all values of a matrix of the same shape, rounded.
    ///
    /// # Panics
    /// If the shapes differ.
    #[track_caller]
    pub fn round_from(&mut self, x: &Panels, threads: &Threads) {
        assert_eq!((self.rows(), self.cols()), x.shape(), "rounding between shapes");
        threads.for_each_cell16(&Partition::even(x.rows()), [self], |cell, [words]| {
            pack_rows(x.cell(&cell), words);
        });
    }

    /// Takes over rows of another matrix as those from `first` on, rounded.
    pub(crate) fn copy_from(&mut self, first: usize, x: &RowsRef<'_>) {
        (0..x.panels()).for_each(|p| self.copy_block(p, first, x.panel(p)));
    }

    /// Takes over rows of a panel as those from `first` on, rounded.
    pub(crate) fn copy_block(&mut self, p: usize, first: usize, rows: &[f32]) {
        pack_rows(rows, self.rows_of_mut(p, first..first + rows.len() / PANEL));
    }

    /// The words of some rows of panel `p`.
    ///
    /// # Panics
    /// If there are no such rows.
    #[track_caller]
    pub fn rows_of_mut(&mut self, p: usize, rows: Range<usize>) -> &mut [f32] {
        assert!(rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        &mut self.words.panel_mut(p)[rows.start * WORDS..rows.end * WORDS]
    }

    /// The matrix whose contents are in `buffer`, which has the shape [`Panels16::buffer_shape`].
    ///
    /// # Panics
    /// If `buffer` has room for another number of rows.
    #[track_caller]
    pub fn in_buffer(buffer: Panels, rows: usize) -> Self {
        assert_eq!(buffer.rows(), rows.div_ceil(2), "a buffer of half as many rows");
        Self { rows, words: buffer }
    }

    /// The buffer with the contents.
    pub fn into_buffer(self) -> Panels {
        self.words
    }

    /// The matrix for reading.
    pub fn view(&self) -> View16<'_> {
        View16 { rows: self.rows, words: &self.words }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, without padding.
    pub fn cols(&self) -> usize {
        self.words.cols()
    }

    /// Words from one panel to the next.
    pub(crate) fn panel_words(&self) -> usize {
        self.words.rows() * PANEL
    }

    /// Everything, in storage order, for writing.
    pub(crate) fn words_mut(&mut self) -> &mut [f32] {
        self.words.data_mut()
    }
}

/// Some rows of a [`Panels16`], for writing. Several disjoint ones can exist at once.
pub struct RowsMut16<'a> {
    /// First word of the whole matrix.
    base: *mut f32,
    panel_words: usize,
    panels: usize,
    range: Range<usize>,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: it is a mutable borrow of its rows alone; `shards_mut` hands out disjoint rows, so it may
// move to another thread like `&mut [f32]`.
unsafe impl Send for RowsMut16<'_> {}

impl fmt::Debug for RowsMut16<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsMut16({:?})", self.range)
    }
}

impl RowsMut16<'_> {
    /// The rows, as a range of the whole matrix.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The words of rows `rows` of the whole matrix in panel `p`.
    ///
    /// # Panics
    /// If they are not among these rows.
    #[track_caller]
    pub fn words_mut(&mut self, p: usize, rows: Range<usize>) -> &mut [f32] {
        let inside = self.range.start <= rows.start && rows.end <= self.range.end;
        assert!(p < self.panels && rows.start <= rows.end && inside, "panel {p}, rows {rows:?}");
        // SAFETY: the panel and the rows exist, the rows of one panel are contiguous, and rows of
        // different `RowsMut16` are disjoint.
        unsafe {
            let start = self.base.add(p * self.panel_words + rows.start * WORDS);
            std::slice::from_raw_parts_mut(start, rows.len() * WORDS)
        }
    }
}

impl Panels16 {
    /// Cuts the matrix into the disjoint row ranges of a partition, one a shard. Shards the
    /// partition does not have are empty.
    ///
    /// # Panics
    /// If the partition is of another number of rows.
    #[track_caller]
    pub fn shards_mut(&mut self, partition: &Partition) -> [RowsMut16<'_>; SHARDS] {
        assert_eq!(partition.rows(), self.rows, "partition of another matrix");
        let (panel_words, panels) = (self.panel_words(), self.words.panels());
        let base = self.words_mut().as_mut_ptr();
        std::array::from_fn(|s| {
            let range = if s < partition.shards() { partition.range(s) } else { 0..0 };
            RowsMut16 { base, panel_words, panels, range, owner: PhantomData }
        })
    }
}

impl fmt::Debug for Panels16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panels16({}×{})", self.rows, self.cols())
    }
}

/// A [`Panels16`] for reading, wherever its buffer is.
#[derive(Clone, Copy, Debug)]
pub struct View16<'a> {
    rows: usize,
    words: &'a Panels,
}

impl<'a> View16<'a> {
    /// The matrix in a buffer of the shape [`Panels16::buffer_shape`].
    ///
    /// # Panics
    /// If `buffer` has room for another number of rows.
    #[track_caller]
    pub fn new(buffer: &'a Panels, rows: usize) -> Self {
        assert_eq!(buffer.rows(), rows.div_ceil(2), "a buffer of half as many rows");
        Self { rows, words: buffer }
    }

    /// Number of rows.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// Number of columns, without padding.
    pub fn cols(self) -> usize {
        self.words.cols()
    }

    /// Number of panels.
    pub fn panels(self) -> usize {
        self.words.panels()
    }

    /// Panel `p`: 16 words a row, in the bits of floats.
    pub fn panel(self, p: usize) -> &'a [f32] {
        &self.words.panel(p)[..self.rows * WORDS]
    }

    /// All rows of the panels of a strip; a panel it does not have is empty.
    pub(crate) fn panels_of(self, strip: &Strip) -> [&'a [f32]; STRIP_PANELS] {
        std::array::from_fn(|k| {
            let p = strip.panels.start + k;
            if strip.panels.contains(&p) { self.panel(p) } else { &[] }
        })
    }

    /// The part of the matrix that lies in a cell.
    pub fn cell(self, cell: &Cell) -> &'a [f32] {
        &self.panel(cell.panel)[cell.rows.start * WORDS..cell.rows.end * WORDS]
    }

    /// The same values as floats.
    ///
    /// # Panics
    /// If the shapes differ.
    #[track_caller]
    pub fn widen_into(self, out: &mut Panels, threads: &Threads) {
        assert_eq!((self.rows(), self.cols()), out.shape(), "widening between shapes");
        threads.for_each_cell(&Partition::even(self.rows()), [out], |cell, [out]| {
            unpack_rows(self.cell(&cell), out);
        });
    }

    /// Everything, panel by panel.
    pub(crate) fn all_words(self) -> &'a [f32] {
        self.words.data()
    }

    /// Words from one panel to the next.
    pub(crate) fn panel_words(self) -> usize {
        self.words.rows() * PANEL
    }

    /// Element `(i, j)`.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn get(self, i: usize, j: usize) -> f32 {
        assert!(i < self.rows && j < self.cols(), "element ({i}, {j})");
        let word = self.panel(j / PANEL)[i * WORDS + j % WORDS].to_bits();
        let low = j % PANEL < WORDS;
        f32::from_bits(if low { word << 16 } else { word & UPPER_HALF })
    }
}

/// Some rows of a panel, stored in one way or the other.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// [`PANEL`] floats a row.
    Floats(&'a [f32]),
    /// Two bfloat16 a word, as in [`Panels16`].
    Words(&'a [f32]),
}

impl Values<'_> {
    /// Number of rows.
    pub fn rows(self) -> usize {
        match self {
            Self::Floats(values) => values.len() / PANEL,
            Self::Words(values) => values.len() / WORDS,
        }
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// If there are no such rows.
    #[track_caller]
    #[must_use]
    pub fn part(self, rows: Range<usize>) -> Self {
        match self {
            Self::Floats(values) => Self::Floats(&values[rows.start * PANEL..rows.end * PANEL]),
            Self::Words(values) => Self::Words(&values[rows.start * WORDS..rows.end * WORDS]),
        }
    }

    /// Row `i` as floats.
    ///
    /// # Panics
    /// If there is no such row.
    #[track_caller]
    pub fn row(self, i: usize) -> [f32; PANEL] {
        let mut out = [0.0; PANEL];
        match self.part(i..i + 1) {
            Self::Floats(row) => out.copy_from_slice(row),
            Self::Words(row) => unpack_rows(row, &mut out),
        }
        out
    }
}

/// A matrix for reading, stored in one way or the other.
#[derive(Clone, Copy, Debug)]
pub enum AnyPanels<'a> {
    /// Floats.
    Floats(&'a Panels),
    /// bfloat16.
    Words(View16<'a>),
}

impl<'a> AnyPanels<'a> {
    /// Panel `p`.
    pub fn panel(self, p: usize) -> Values<'a> {
        match self {
            Self::Floats(x) => Values::Floats(x.panel(p)),
            Self::Words(x) => Values::Words(x.panel(p)),
        }
    }
}

dispatch_rounding! {
    /// Rounds rows of a panel to words.
    pub fn pack_rows(rows: &[f32], words: &mut [f32]) = pack_kernel
}

#[inline(always)]
unsafe fn pack_kernel<S: Simd>(rows: &[f32], words: &mut [f32]) {
    assert_eq!(rows.len(), words.len() * 2, "pack: lengths");
    for (row, words) in rows.chunks_exact(PANEL).zip(words.chunks_exact_mut(WORDS)) {
        // SAFETY: a row holds PANEL floats or WORDS words.
        unsafe { Wide::<S>::load(row.as_ptr()).store16(words.as_mut_ptr()) };
    }
}

dispatch! {
    /// Widens words to rows of a panel.
    pub(crate) fn unpack_rows(words: &[f32], rows: &mut [f32]) = unpack_kernel
}

#[inline(always)]
unsafe fn unpack_kernel<S: Simd>(words: &[f32], rows: &mut [f32]) {
    assert_eq!(rows.len(), words.len() * 2, "unpack: lengths");
    for (words, row) in words.chunks_exact(WORDS).zip(rows.chunks_exact_mut(PANEL)) {
        // SAFETY: a row holds WORDS words or PANEL floats.
        unsafe { Wide::<S>::load16(words.as_ptr()).store(row.as_mut_ptr()) };
    }
}

dispatch_rounding! {
    /// `words = scale ∘ rows`, rounded, with one factor a row.
    pub fn pack_scaled(rows: &[f32], scale: &[f32], words: &mut [f32]) = pack_scaled_kernel
}

#[inline(always)]
unsafe fn pack_scaled_kernel<S: Simd>(rows: &[f32], scale: &[f32], words: &mut [f32]) {
    assert!(rows.len() == words.len() * 2 && rows.len() == scale.len() * PANEL, "pack: lengths");
    let out = words.chunks_exact_mut(WORDS);
    for ((row, &factor), words) in rows.chunks_exact(PANEL).zip(scale).zip(out) {
        // SAFETY: a row holds PANEL floats or WORDS words.
        unsafe {
            let factor = S::splat(factor);
            Wide::<S>::load(row.as_ptr()).map(|v| S::mul(v, factor)).store16(words.as_mut_ptr());
        }
    }
}

dispatch_rounding! {
    /// `out = a + b` of rows stored as words, rounded.
    pub fn add_words(a: &[f32], b: &[f32], out: &mut [f32]) = add_words_kernel
}

#[inline(always)]
unsafe fn add_words_kernel<S: Simd>(a: &[f32], b: &[f32], out: &mut [f32]) {
    assert!(a.len() == b.len() && a.len() == out.len(), "add: lengths");
    let rows = a.chunks_exact(WORDS).zip(b.chunks_exact(WORDS)).zip(out.chunks_exact_mut(WORDS));
    for ((a, b), out) in rows {
        // SAFETY: a row holds WORDS words.
        unsafe {
            Wide::<S>::load16(a.as_ptr()).add(Wide::load16(b.as_ptr())).store16(out.as_mut_ptr());
        }
    }
}

dispatch! {
    /// Rounds rows of a panel, still as floats.
    pub(crate) fn round_rows(rows: &[f32], out: &mut [f32]) = round_kernel
}

#[inline(always)]
unsafe fn round_kernel<S: Simd>(rows: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len(), "round: lengths");
    for (row, out) in rows.chunks_exact(PANEL).zip(out.chunks_exact_mut(PANEL)) {
        // SAFETY: a row holds PANEL floats.
        unsafe { Wide::<S>::load(row.as_ptr()).round().store(out.as_mut_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    /// The definition: of the two neighbours the nearer one, and the even one of a tie.
    fn nearest(x: f32) -> f32 {
        let below = f32::from_bits(x.to_bits() & UPPER_HALF);
        let above = f32::from_bits((x.to_bits() & UPPER_HALF) + 0x1_0000);
        let (down, up) =
            ((f64::from(x) - f64::from(below)).abs(), (f64::from(above) - f64::from(x)).abs());
        let even = (below.to_bits() >> 16).is_multiple_of(2);
        if down < up || (down == up && even) { below } else { above }
    }

    fn awkward() -> Vec<f32> {
        let mut all = vec![0.0, -0.0, 1e-40, -1e-40, f32::MIN_POSITIVE, 3e38, 1.0, -1.0];
        all.extend((0..60_000u32).map(|i| f32::from_bits(0x3f7f_0000 + i * 3)));
        all.extend(
            (0..3_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x0019_660d) & 0xff7f_ffff)),
        );
        all.retain(|x| x.abs() < 3.3e38);
        all
    }

    #[test]
    fn rounding_goes_to_the_nearest_and_ties_to_even() {
        for x in awkward() {
            assert_eq!(round(x).to_bits(), nearest(x).to_bits(), "{x}");
        }
        assert_eq!(round(f32::MAX), f32::INFINITY);
        assert_eq!(round(f32::NEG_INFINITY), f32::NEG_INFINITY);
        for bits in [0x7f80_0001, 0x7fff_ffff, 0xffff_ffff, 0x7fc0_0000_u32] {
            assert!(round(f32::from_bits(bits)).is_nan());
        }
    }

    #[test]
    fn vectors_round_like_scalars() {
        let mut x = awkward();
        x.extend([f32::NAN, f32::from_bits(0x7fff_ffff), f32::INFINITY, f32::MAX]);
        x.resize(x.len().next_multiple_of(PANEL), 0.5);
        let mut out = vec![0.0; x.len()];
        round_rows(&x, &mut out);
        for (x, got) in x.iter().zip(&out) {
            assert_eq!(got.to_bits(), round(*x).to_bits(), "{x}");
        }
    }

    #[test]
    fn words_hold_the_rounded_matrix() {
        let value = |i: usize, j: usize| ((i * 71 + j) as f32 * 0.37).sin();
        for rows in [1, 2, 7] {
            let x = Panels::from_matrix(&Matrix::from_fn(rows, 70, value));
            let words = Panels16::from_panels(&x);
            assert_eq!((words.rows(), words.cols(), words.view().panels()), (rows, 70, 3));
            for i in 0..rows {
                for j in 0..70 {
                    assert_eq!(words.view().get(i, j), round(value(i, j)));
                }
            }
            let mut wide = Panels::zeros(rows, 70);
            words.view().widen_into(&mut wide, &Threads::new(2));
            assert_eq!(wide.get(rows - 1, 69), round(value(rows - 1, 69)));
            let (mut scaled, mut sum) = (words.clone(), words.clone());
            let factors: Vec<f32> = (0..rows).map(|i| 1.0 + i as f32).collect();
            for p in 0..3 {
                let at = p * words.panel_words()..p * words.panel_words() + rows * WORDS;
                pack_scaled(x.panel(p), &factors, &mut scaled.words_mut()[at.clone()]);
                let part = words.view().panel(p);
                add_words(part, part, &mut sum.words_mut()[at]);
            }
            for (i, factor) in factors.iter().enumerate() {
                assert_eq!(scaled.view().get(i, 40), round(factor * value(i, 40)));
                assert_eq!(sum.view().get(i, 69), 2.0 * round(value(i, 69)));
            }
        }
    }
}
