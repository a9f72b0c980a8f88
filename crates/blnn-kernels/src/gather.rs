//! Sums of gathered rows: every sparse product of the project.
//!
//! A [`Selection`] names, for each output row, the input rows to add. Work is cut into cells of
//! one panel by one shard of rows (or two panels, where rows are stored as words); neighbouring
//! cells share a panel, so that a thread gathers from what fits its level-2 cache for as long as
//! possible.

use std::ops::Range;

use crate::bf16::{Panels16, View16};
use crate::csr::Pattern;
use crate::panels::Panels;
use crate::par::{Cell, Partition, STRIP_PANELS, Strip, StripParts, Threads};
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::{Floats, Stored, Words, sum_stored};

/// For each row a list of columns, drawn anew in place from the entries of a fixed pattern.
///
/// Invariant: every listed column is below `cols`: all come from a checked [`Pattern`], or from a
/// diagonal that was checked to fit.
///
/// The lists of a shard follow each other without gaps, so that a kernel can see which rows it will
/// need next.
#[derive(Clone, Debug)]
pub struct Selection {
    cols: usize,
    /// Where the list of each row starts. Where that of a shard's first row does, and the end, never
    /// change: from there is room for all that the shard could list.
    starts: Vec<usize>,
    lengths: Vec<u32>,
    indices: Vec<u32>,
    partition: Partition,
}

impl Selection {
    /// All entries of the pattern; with `diagonal`, also column `i` in row `i`, once.
    ///
    /// # Panics
    /// If there is to be a diagonal and the pattern has more rows than columns.
    #[track_caller]
    pub fn all(pattern: &Pattern, diagonal: bool, threads: &Threads) -> Self {
        let slack = |i: usize| if diagonal { i } else { 0 };
        let rows = pattern.rows();
        let mut selection = Self {
            cols: pattern.cols(),
            starts: (0..=rows).map(|i| pattern.offsets()[i] + slack(i)).collect(),
            lengths: vec![0; rows],
            indices: vec![0; pattern.entries() + slack(rows)],
            partition: Partition::balanced(pattern.offsets()),
        };
        selection.refill(pattern, diagonal, threads, |_| true);
        selection
    }

    /// Lists the entries `e` of `pattern` with `keep[e]`; with `diagonal`, row `i` lists column
    /// `i` once, whatever `keep` says. The pattern must be the one the selection was made from.
    ///
    /// # Panics
    /// If the pattern has another shape or `keep` another length.
    #[track_caller]
    pub fn select(&mut self, pattern: &Pattern, diagonal: bool, keep: &[bool], threads: &Threads) {
        assert_eq!(keep.len(), pattern.entries(), "one flag an entry");
        self.refill(pattern, diagonal, threads, |e| keep[e]);
    }

    /// Like [`Selection::select`], with the flag of entry `e` at `keep[origin[e]]`: the
    /// selection of a transposed pattern.
    ///
    /// # Panics
    /// If the pattern has another shape or the slices other lengths.
    #[track_caller]
    pub fn select_transposed(
        &mut self,
        pattern: &Pattern,
        diagonal: bool,
        keep: &[bool],
        origin: &[u32],
        threads: &Threads,
    ) {
        assert_eq!((keep.len(), origin.len()), (pattern.entries(), pattern.entries()), "flags");
        self.refill(pattern, diagonal, threads, |e| keep[origin[e] as usize]);
    }

    #[track_caller]
    fn refill(
        &mut self,
        pattern: &Pattern,
        diagonal: bool,
        threads: &Threads,
        keep: impl Fn(usize) -> bool + Sync,
    ) {
        let slots = pattern.entries() + if diagonal { pattern.rows() } else { 0 };
        assert!(
            !diagonal || pattern.rows() <= pattern.cols(),
            "a row has no column for a diagonal"
        );
        assert_eq!((self.rows(), self.cols), (pattern.rows(), pattern.cols()), "pattern");
        assert_eq!(self.indices.len(), slots, "pattern");
        let mut shards = self.partition.split_at(&self.starts, &mut self.indices);
        let rows = self.lengths.len();
        let mut starts = self.partition.split_rows(&mut self.starts[..rows]);
        let mut lengths = self.partition.split_rows(&mut self.lengths);
        let mut shards: [_; crate::SHARDS] = std::array::from_fn(|s| {
            let (starts, lengths) = (&mut starts[s], &mut lengths[s]);
            (std::mem::take(&mut shards[s]), std::mem::take(starts), std::mem::take(lengths))
        });
        let partition = &self.partition;
        threads.for_each_owned(&mut shards[..partition.shards()], |s, (room, starts, lengths)| {
            let mut taken = 0;
            let Some(&first) = starts.first() else { return };
            let slots = starts.iter_mut().zip(lengths.iter_mut());
            for (row, (start, length)) in partition.range(s).zip(slots) {
                *start = first + taken;
                *length = fill_row(pattern, row, diagonal, &keep, &mut room[taken..]);
                taken += *length as usize;
            }
        });
    }

    /// The columns listed for row `i`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.indices[self.starts[i]..self.starts[i] + self.lengths[i] as usize]
    }

    fn lists(&self, rows: Range<usize>) -> Lists<'_> {
        Lists {
            starts: &self.starts[rows.clone()],
            lengths: &self.lengths[rows],
            indices: &self.indices,
        }
    }

    /// The lists of a strip, checked to name rows of `x`.
    #[track_caller]
    fn lists_of(&self, strip: &Strip, x: View16<'_>) -> Lists<'_> {
        assert_eq!(self.cols(), x.rows(), "gather: columns of the list, rows of the input");
        self.lists(strip.rows.clone())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.lengths.len()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The cut of the rows into shards of nearly equal numbers of entries.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }
}

/// Writes the kept columns of one row without branching on a random flag; returns their number.
fn fill_row(
    pattern: &Pattern,
    row: usize,
    diagonal: bool,
    keep: &impl Fn(usize) -> bool,
    out: &mut [u32],
) -> u32 {
    let mut n = 0;
    for (entry, &column) in pattern.range(row).zip(pattern.row(row)) {
        out[n] = column;
        n += usize::from(keep(entry) && !(diagonal && column as usize == row));
    }
    if diagonal {
        out[n] = row as u32;
        n += 1;
    }
    n as u32
}

/// `out[i] = scale[i] · Σ_{j listed in row i} x[j]`.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_sum(
    list: &Selection,
    x: &Panels,
    scale: &[f32],
    out: &mut Panels,
    threads: &Threads,
) {
    assert_eq!(list.cols(), x.rows(), "gather: columns of the list, rows of the input");
    assert_eq!((list.rows(), x.cols()), out.shape(), "gather: output shape");
    assert_eq!(list.rows(), scale.len(), "gather: one scale a row");
    threads.for_each_cell(list.partition(), [out], |cell, [out]| {
        gather_cell(list, &cell, x, scale, out);
    });
}

/// One cell of [`gather_sum`], on the calling thread.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_cell(list: &Selection, cell: &Cell, x: &Panels, scale: &[f32], out: &mut [f32]) {
    assert_eq!(list.cols(), x.rows(), "gather: columns of the list, rows of the input");
    sum_rows(list.lists(cell.rows.clone()), x.panel(cell.panel), &scale[cell.rows.clone()], out);
}

/// [`gather_sum`] of rows stored as bfloat16; the sums are `f32`.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_sum16(
    list: &Selection,
    x: View16<'_>,
    scale: &[f32],
    out: &mut Panels,
    threads: &Threads,
) {
    assert_eq!((list.rows(), x.cols()), out.shape(), "gather: output shape");
    assert_eq!(list.rows(), scale.len(), "gather: one scale a row");
    threads.for_each_strip(list.partition(), [out], |strip, [out]| {
        gather_strip16(list, &strip, x, scale, out);
    });
}

/// [`gather_sum16`] with the sums rounded to bfloat16, to be gathered again.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_round16(
    list: &Selection,
    x: View16<'_>,
    scale: &[f32],
    out: &mut Panels16,
    threads: &Threads,
) {
    let shape = (out.rows(), out.cols());
    assert_eq!((list.rows(), x.cols()), shape, "gather: output shape");
    assert_eq!(list.rows(), scale.len(), "gather: one scale a row");
    threads.for_each_strip16(list.partition(), [out], |strip, [out]| {
        gather_strip_round16(list, &strip, x, scale, out);
    });
}

/// One strip of [`gather_sum16`], on the calling thread.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_strip16(
    list: &Selection,
    strip: &Strip,
    x: View16<'_>,
    scale: &[f32],
    out: StripParts<'_>,
) {
    add_words(list.lists_of(strip, x), x.panels_of(strip), &scale[strip.rows.clone()], out);
}

/// One strip of [`gather_round16`], on the calling thread.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_strip_round16(
    list: &Selection,
    strip: &Strip,
    x: View16<'_>,
    scale: &[f32],
    out: StripParts<'_>,
) {
    add_words_to_words(
        list.lists_of(strip, x),
        x.panels_of(strip),
        &scale[strip.rows.clone()],
        out,
    );
}

/// Row lists whose indices are known to lie within the gathered panel.
#[derive(Clone, Copy)]
struct Lists<'a> {
    starts: &'a [usize],
    lengths: &'a [u32],
    indices: &'a [u32],
}

dispatch! {
    fn sum_rows(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) = sum_rows_kernel
}

#[inline(always)]
unsafe fn sum_rows_kernel<S: Simd>(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) {
    let rows =
        lists.starts.iter().zip(lists.lengths).zip(scale).zip(out.chunks_exact_mut(Floats::ROW));
    for (((&start, &length), &scale), out) in rows {
        let list = start..start + length as usize;
        assert!(list.end <= lists.indices.len());
        // SAFETY: a `Selection` lists only rows of `x`, whose number the caller checked, and
        // `out` holds a row.
        unsafe {
            let [sum] = sum_stored::<S, Floats, 1>((lists.indices, None), list, [x.as_ptr()]);
            sum.store_scaled(scale, out.as_mut_ptr());
        }
    }
}

dispatch! {
    fn add_words(
        lists: Lists<'_>, x: [&[f32]; STRIP_PANELS], scale: &[f32], out: StripParts<'_>,
    ) = words_kernel
}

dispatch_rounding! {
    fn add_words_to_words(
        lists: Lists<'_>, x: [&[f32]; STRIP_PANELS], scale: &[f32], out: StripParts<'_>,
    ) = words_to_words_kernel
}

#[inline(always)]
unsafe fn words_kernel<S: Simd>(
    lists: Lists<'_>,
    x: [&[f32]; STRIP_PANELS],
    scale: &[f32],
    out: StripParts<'_>,
) {
    // SAFETY: as promised by the caller.
    unsafe { sum_strip::<S, Floats>(lists, x, scale, out) };
}

#[inline(always)]
unsafe fn words_to_words_kernel<S: Simd>(
    lists: Lists<'_>,
    x: [&[f32]; STRIP_PANELS],
    scale: &[f32],
    out: StripParts<'_>,
) {
    // SAFETY: as promised by the caller.
    unsafe { sum_strip::<S, Words>(lists, x, scale, out) };
}

/// # Safety
/// The lists must name rows of `x` only; the CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn sum_strip<S: Simd, G: Stored>(
    lists: Lists<'_>,
    x: [&[f32]; STRIP_PANELS],
    scale: &[f32],
    out: StripParts<'_>,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match out {
            [first, &mut []] => sum_panels::<S, G, 1>(lists, [x[0]], scale, [first]),
            both => sum_panels::<S, G, STRIP_PANELS>(lists, x, scale, both),
        }
    }
}

/// # Safety
/// As for [`sum_strip`].
#[inline(always)]
unsafe fn sum_panels<S: Simd, G: Stored, const P: usize>(
    lists: Lists<'_>,
    x: [&[f32]; P],
    scale: &[f32],
    out: [&mut [f32]; P],
) {
    assert!(out.iter().all(|out| out.len() == scale.len() * G::ROW), "gather: output shape");
    let (x, out) = (x.map(<[f32]>::as_ptr), out.map(<[f32]>::as_mut_ptr));
    let rows = lists.starts.iter().zip(lists.lengths).zip(scale);
    for (i, ((&start, &length), &scale)) in rows.enumerate() {
        let list = start..start + length as usize;
        assert!(list.end <= lists.indices.len());
        // SAFETY: a `Selection` lists only rows of `x`, whose number the caller checked, and
        // the outputs hold a row for each factor.
        unsafe {
            let factor = S::splat(scale);
            let sums = sum_stored::<S, Words, P>((lists.indices, None), list, x);
            for p in 0..P {
                G::store(sums[p].map(|v| S::mul(v, factor)), out[p].add(i * G::ROW));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    pub(crate) fn pattern() -> Pattern {
        Pattern::new(6, vec![0, 3, 3, 5, 11, 12, 13], vec![0, 2, 5, 1, 4, 0, 1, 2, 3, 4, 5, 2, 0])
            .unwrap()
    }

    fn flags() -> Vec<bool> {
        (0..13).map(|e| e % 3 != 1).collect()
    }

    #[test]
    fn selection_keeps_flagged_entries_and_the_diagonal_once() {
        let threads = Threads::new(2);
        let mut s = Selection::all(&pattern(), true, &threads);
        assert_eq!(s.row(0), [2, 5, 0]);
        assert_eq!(s.row(1), [1]);
        s.select(&pattern(), true, &flags(), &threads);
        assert_eq!(s.row(0), [5, 0]);
        assert_eq!(s.row(3), [0, 1, 4, 3]);
        let mut s = Selection::all(&pattern(), false, &threads);
        s.select(&pattern(), false, &flags(), &threads);
        assert_eq!(s.row(3), [0, 1, 3, 4]);
    }

    #[test]
    fn gather_agrees_with_naive_sum() {
        let threads = Threads::new(2);
        let s = Selection::all(&pattern(), true, &threads);
        let x = Matrix::from_fn(6, 45, |i, j| ((i * 7 + j) as f32 * 0.3).sin());
        let scale: Vec<f32> = (0..6).map(|i| 0.5 + i as f32).collect();
        let mut out = Panels::zeros(6, 45);
        gather_sum(&s, &Panels::from_matrix(&x), &scale, &mut out, &threads);
        for (i, factor) in scale.iter().enumerate() {
            for j in 0..45 {
                let want: f32 =
                    s.row(i).iter().map(|&r| x.get(r as usize, j)).sum::<f32>() * factor;
                assert!((out.get(i, j) - want).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn gathers_of_words_are_those_of_the_rounded_matrix() {
        use crate::bf16::round;
        let threads = Threads::new(2);
        let s = Selection::all(&pattern(), true, &threads);
        let x = Matrix::from_fn(6, 45, |i, j| ((i * 7 + j) as f32 * 0.3).sin());
        let rounded = Matrix::from_fn(6, 45, |i, j| round(x.get(i, j)));
        let scale: Vec<f32> = (0..6).map(|i| 0.5 + i as f32).collect();
        let [mut want, mut got] = [(); 2].map(|()| Panels::zeros(6, 45));
        gather_sum(&s, &Panels::from_matrix(&rounded), &scale, &mut want, &threads);
        let words = Panels16::from_panels(&Panels::from_matrix(&x));
        gather_sum16(&s, words.view(), &scale, &mut got, &threads);
        assert_eq!(got, want);
        let mut narrow = Panels16::zeros(6, 45);
        gather_round16(&s, words.view(), &scale, &mut narrow, &threads);
        let all = (0..6).flat_map(|i| (0..45).map(move |j| (i, j)));
        assert!(all.into_iter().all(|(i, j)| narrow.view().get(i, j) == round(want.get(i, j))));
    }
}
