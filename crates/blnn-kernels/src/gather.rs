//! Sums of gathered rows: every sparse product of the project.
//!
//! A [`Selection`] names, for each output row, the input rows to add. Work is cut into cells of
//! one panel by one shard of rows; neighbouring cells share a panel, so that a thread gathers
//! from one panel, which fits its level-2 cache, for as long as possible.

use crate::bf16::{Panels16, View16};
use crate::csr::Pattern;
use crate::panels::Panels;
use crate::par::{Cell, Partition, Threads};
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::{Floats, Stored, Words, sum_listed};

/// For each row a list of columns, drawn anew in place from the entries of a fixed pattern.
///
/// Invariant: every listed column is below `cols`: all come from a checked [`Pattern`], or from a
/// diagonal that was checked to fit.
#[derive(Clone, Debug)]
pub struct Selection {
    cols: usize,
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
        let mut lengths = self.partition.split_rows(&mut self.lengths);
        let mut shards: [_; crate::SHARDS] = std::array::from_fn(|s| {
            (std::mem::take(&mut shards[s]), std::mem::take(&mut lengths[s]))
        });
        let (partition, starts) = (&self.partition, &self.starts);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, (indices, lengths)| {
            let range = partition.range(s);
            for (row, length) in range.clone().zip(lengths.iter_mut()) {
                let out = &mut indices[starts[row] - starts[range.start]..];
                *length = fill_row(pattern, row, diagonal, &keep, out);
            }
        });
    }

    /// The columns listed for row `i`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.indices[self.starts[i]..self.starts[i] + self.lengths[i] as usize]
    }

    fn lists(&self, cell: &Cell) -> Lists<'_> {
        Lists {
            starts: &self.starts[cell.rows.clone()],
            lengths: &self.lengths[cell.rows.clone()],
            indices: &self.indices,
        }
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
    sum_rows(list.lists(cell), x.panel(cell.panel), &scale[cell.rows.clone()], out);
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
    threads.for_each_cell(list.partition(), [out], |cell, [out]| {
        gather_cell16(list, &cell, x, scale, out);
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
    threads.for_each_cell16(list.partition(), [out], |cell, [out]| {
        gather_cell_round16(list, &cell, x, scale, out);
    });
}

/// One cell of [`gather_round16`], on the calling thread.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_cell_round16(
    list: &Selection,
    cell: &Cell,
    x: View16<'_>,
    scale: &[f32],
    out: &mut [f32],
) {
    assert_eq!(list.cols(), x.rows(), "gather: columns of the list, rows of the input");
    let scale = &scale[cell.rows.clone()];
    sum_words_to_words(list.lists(cell), x.panel(cell.panel), scale, out);
}

/// One cell of [`gather_sum16`], on the calling thread.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gather_cell16(list: &Selection, cell: &Cell, x: View16<'_>, scale: &[f32], out: &mut [f32]) {
    assert_eq!(list.cols(), x.rows(), "gather: columns of the list, rows of the input");
    let scale = &scale[cell.rows.clone()];
    sum_words(list.lists(cell), x.panel(cell.panel), scale, out);
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

dispatch! {
    fn sum_words(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) = sum_words_kernel
}

dispatch_rounding! {
    fn sum_words_to_words(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) = words_to_words_kernel
}

#[inline(always)]
unsafe fn sum_rows_kernel<S: Simd>(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { sum_stored::<S, Floats, Floats>(lists, x, scale, out) };
}

#[inline(always)]
unsafe fn sum_words_kernel<S: Simd>(lists: Lists<'_>, x: &[f32], scale: &[f32], out: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { sum_stored::<S, Words, Floats>(lists, x, scale, out) };
}

#[inline(always)]
unsafe fn words_to_words_kernel<S: Simd>(
    lists: Lists<'_>,
    x: &[f32],
    scale: &[f32],
    out: &mut [f32],
) {
    // SAFETY: as promised by the caller.
    unsafe { sum_stored::<S, Words, Words>(lists, x, scale, out) };
}

/// # Safety
/// The lists must name rows of `x` only; the CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn sum_stored<S: Simd, F: Stored, G: Stored>(
    lists: Lists<'_>,
    x: &[f32],
    scale: &[f32],
    out: &mut [f32],
) {
    let rows = lists.starts.iter().zip(lists.lengths).zip(scale).zip(out.chunks_exact_mut(G::ROW));
    for (((&start, &length), &scale), out) in rows {
        let list = &lists.indices[start..start + length as usize];
        // SAFETY: a `Selection` lists only rows of `x`, whose number the caller checked, and
        // `out` holds a row.
        unsafe {
            let factor = S::splat(scale);
            let sum = sum_listed::<S, F>(list, x.as_ptr()).map(|v| S::mul(v, factor));
            G::store(sum, out.as_mut_ptr());
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
