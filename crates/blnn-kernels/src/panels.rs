//! [`Panels`]: a dense matrix cut into panels of 32 columns, the layout every hot loop works on.
//!
//! ```text
//!            columns 0..32      columns 32..64
//!  row 0   [ 128 bytes      ] [ 128 bytes      ]      memory: panel 0 row by row,
//!  row 1   [ 128 bytes      ] [ 128 bytes      ]              panel 1 row by row, …
//!  …
//! ```
//!
//! Why: a gather of rows (sparse products) touches one panel at a time, and one panel of ten
//! thousand rows fits the level-2 cache where the whole matrix does not; a dense product finds
//! both operands packed already; a column statistic lives in two registers.
//! The last panel is padded with zero columns, and every operation keeps them zero.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::Matrix;
use crate::pages;
use crate::par::{Cell, Partition, SHARDS, STRIP_PANELS, Strip};

/// Columns in a panel: two cache lines, two AVX-512 registers.
pub const PANEL: usize = 32;

/// One row of a panel, on a boundary of two cache lines: a vector load that straddles two lines
/// costs twice.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(C, align(128))]
struct Row([f32; PANEL]);

/// A dense matrix stored panel by panel. See the module's documentation.
#[derive(Clone, Default, PartialEq)]
pub struct Panels {
    rows: usize,
    cols: usize,
    /// Panel `p`, row `i` is `store[p * rows + i]`.
    store: Vec<Row>,
}

/// Length of the storage. Checked, because everything that is unchecked later relies on it.
fn rows_of_all_panels(rows: usize, cols: usize) -> usize {
    rows.checked_mul(cols.div_ceil(PANEL)).expect("a matrix that fits into memory")
}

impl Panels {
    /// A matrix of zeros.
    ///
    /// # Panics
    /// If the matrix has more rows in all its panels together than there are addresses.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        let len = rows_of_all_panels(rows, cols);
        let mut store = pages::with_capacity(len);
        store.resize(len, Row::default());
        Self { rows, cols, store }
    }

    /// The same values in this layout.
    pub fn from_matrix(matrix: &Matrix) -> Self {
        let mut out = Self::zeros(matrix.rows(), matrix.cols());
        out.copy_from(matrix);
        out
    }

    /// Takes over the values of a matrix of the same shape.
    ///
    /// # Panics
    /// If the shapes differ.
    #[track_caller]
    pub fn copy_from(&mut self, matrix: &Matrix) {
        assert_eq!(self.shape(), matrix.shape(), "copy between shapes");
        for p in 0..self.panels() {
            let columns = self.columns(p);
            for i in 0..self.rows {
                self.row_of_mut(p, i)[..columns.len()]
                    .copy_from_slice(&matrix.row(i)[columns.clone()]);
            }
        }
    }

    /// The same values row by row.
    pub fn to_matrix(&self) -> Matrix {
        let mut out = Matrix::zeros(self.rows, self.cols);
        for p in 0..self.panels() {
            let columns = self.columns(p);
            for i in 0..self.rows {
                out.row_mut(i)[columns.clone()]
                    .copy_from_slice(&self.row_of(p, i)[..columns.len()]);
            }
        }
        out
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, without padding.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// `(rows, cols)`.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.cols.div_ceil(PANEL)
    }

    /// The columns held by panel `p`.
    pub fn columns(&self, p: usize) -> Range<usize> {
        p * PANEL..((p + 1) * PANEL).min(self.cols)
    }

    /// Panel `p`: `PANEL` floats a row.
    pub fn panel(&self, p: usize) -> &[f32] {
        &self.data()[p * self.rows * PANEL..(p + 1) * self.rows * PANEL]
    }

    /// Panel `p`, for writing.
    pub fn panel_mut(&mut self, p: usize) -> &mut [f32] {
        let range = p * self.rows * PANEL..(p + 1) * self.rows * PANEL;
        &mut self.data_mut()[range]
    }

    /// All rows of the panels of a strip; a panel it does not have is empty.
    pub(crate) fn panels_of(&self, strip: &Strip) -> [&[f32]; STRIP_PANELS] {
        std::array::from_fn(|k| {
            let p = strip.panels.start + k;
            if strip.panels.contains(&p) { self.panel(p) } else { &[] }
        })
    }

    /// The part of row `i` that lies in panel `p`, padding included.
    pub fn row_of(&self, p: usize, i: usize) -> &[f32] {
        &self.store[p * self.rows + i].0
    }

    fn row_of_mut(&mut self, p: usize, i: usize) -> &mut [f32] {
        &mut self.store[p * self.rows + i].0
    }

    /// Element `(i, j)`.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn get(&self, i: usize, j: usize) -> f32 {
        assert!(i < self.rows && j < self.cols, "element ({i}, {j}) of {:?}", self.shape());
        self.row_of(j / PANEL, i)[j % PANEL]
    }

    /// Sets element `(i, j)`.
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn set(&mut self, i: usize, j: usize, value: f32) {
        assert!(i < self.rows && j < self.cols, "element ({i}, {j}) of {:?}", self.shape());
        self.row_of_mut(j / PANEL, i)[j % PANEL] = value;
    }

    /// Everything, padding included, in storage order.
    pub fn data(&self) -> &[f32] {
        let floats = self.store.len() * PANEL;
        // SAFETY: a `Row` is PANEL floats without padding (32 × 4 bytes fill its alignment), so
        // the rows are that many floats in one piece.
        unsafe { std::slice::from_raw_parts(self.store.as_ptr().cast(), floats) }
    }

    /// Everything, padding included, in storage order, for writing. Padding must stay zero.
    pub fn data_mut(&mut self) -> &mut [f32] {
        let floats = self.store.len() * PANEL;
        // SAFETY: as for `data`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.store.as_mut_ptr().cast(), floats) }
    }

    /// Gives the matrix another shape within its allocation (it grows if it must). The contents
    /// afterwards are unspecified, the padding too.
    ///
    /// # Panics
    /// As for [`Panels::zeros`].
    pub fn reshape(&mut self, rows: usize, cols: usize) {
        self.store.resize(rows_of_all_panels(rows, cols), Row::default());
        (self.rows, self.cols) = (rows, cols);
    }

    /// Floats the allocation has room for.
    pub fn capacity(&self) -> usize {
        self.store.capacity() * PANEL
    }

    /// The part of the matrix that lies in a cell.
    pub fn cell(&self, cell: &Cell) -> &[f32] {
        &self.panel(cell.panel)[cell.rows.start * PANEL..cell.rows.end * PANEL]
    }

    /// Writes the transposed matrix to `out`.
    ///
    /// # Panics
    /// If `out` is not of the transposed shape.
    #[track_caller]
    pub fn transpose_into(&self, out: &mut Self) {
        assert_eq!(out.shape(), (self.cols, self.rows), "transpose: output shape");
        for q in 0..out.panels() {
            let sources = out.columns(q);
            for j in 0..self.cols {
                let row = out.row_of_mut(q, j);
                row.fill(0.0);
                for (slot, i) in row.iter_mut().zip(sources.clone()) {
                    *slot = self.row_of(j / PANEL, i)[j % PANEL];
                }
            }
        }
    }

    /// Rows `range` for reading.
    ///
    /// # Panics
    /// If the range does not lie within the matrix.
    #[track_caller]
    pub fn rows_ref(&self, range: Range<usize>) -> RowsRef<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?}");
        RowsRef { panels: self, range }
    }

    /// Rows `range` for writing.
    ///
    /// # Panics
    /// If the range does not lie within the matrix.
    #[track_caller]
    pub fn rows_mut(&mut self, range: Range<usize>) -> RowsMut<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?}");
        RowsMut {
            base: self.data_mut().as_mut_ptr(),
            stride: self.rows,
            panels: self.panels(),
            range,
            owner: PhantomData,
        }
    }

    /// Cuts the matrix into the disjoint row ranges of a partition, one a shard, so that shards
    /// can be written at the same time. Shards the partition does not have are empty.
    ///
    /// # Panics
    /// If the partition is of another number of rows.
    #[track_caller]
    pub fn shards_mut(&mut self, partition: &Partition) -> [RowsMut<'_>; SHARDS] {
        assert_eq!(partition.rows(), self.rows, "partition of another matrix");
        let (base, stride, panels) = (self.data_mut().as_mut_ptr(), self.rows, self.panels());
        std::array::from_fn(|s| {
            let range = if s < partition.shards() { partition.range(s) } else { 0..0 };
            RowsMut { base, stride, panels, range, owner: PhantomData }
        })
    }
}

impl fmt::Debug for Panels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Panels({}×{})", self.rows, self.cols)
    }
}

/// A range of rows of a [`Panels`].
#[derive(Clone, Debug)]
pub struct RowsRef<'a> {
    panels: &'a Panels,
    range: Range<usize>,
}

impl<'a> RowsRef<'a> {
    /// The part of these rows that lies in panel `p`: `PANEL` floats a row.
    pub fn panel(&self, p: usize) -> &'a [f32] {
        &self.panels.panel(p)[self.range.start * PANEL..self.range.end * PANEL]
    }

    /// The storage from the first of these rows on, and the floats between two panels.
    pub(crate) fn strided(&self) -> (&'a [f32], usize) {
        (&self.panels.data()[self.range.start * PANEL..], self.panels.rows * PANEL)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.range.len()
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.panels.panels()
    }
}

/// A range of rows of a [`Panels`], for writing. Several disjoint ones can exist at once.
pub struct RowsMut<'a> {
    /// First float of the whole matrix.
    base: *mut f32,
    /// Rows of the whole matrix: `stride * PANEL` floats lie between two panels.
    stride: usize,
    panels: usize,
    range: Range<usize>,
    owner: PhantomData<&'a mut [f32]>,
}

// SAFETY: a `RowsMut` is a mutable borrow of its rows alone; `rows_mut` and `shards_mut` hand out
// disjoint rows, so it may move to another thread like `&mut [f32]`.
unsafe impl Send for RowsMut<'_> {}
// SAFETY: through a shared reference the rows can only be read.
unsafe impl Sync for RowsMut<'_> {}

impl fmt::Debug for RowsMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowsMut({:?})", self.range)
    }
}

impl RowsMut<'_> {
    fn start(&self, p: usize) -> *mut f32 {
        assert!(p < self.panels, "panel {p} of {}", self.panels);
        // SAFETY: the range lies in the matrix and `p` is one of its panels, so the offset stays
        // inside the allocation.
        unsafe { self.base.add((p * self.stride + self.range.start) * PANEL) }
    }

    /// The part of these rows that lies in panel `p`: `PANEL` floats a row.
    pub fn panel(&self, p: usize) -> &[f32] {
        // SAFETY: `start` is inside the matrix and the rows of one panel are contiguous; the
        // borrow of `self` keeps writers out.
        unsafe { std::slice::from_raw_parts(self.start(p), self.range.len() * PANEL) }
    }

    /// The part of these rows that lies in panel `p`, for writing.
    pub fn panel_mut(&mut self, p: usize) -> &mut [f32] {
        // SAFETY: as for `panel`; rows of different `RowsMut` are disjoint.
        unsafe { std::slice::from_raw_parts_mut(self.start(p), self.range.len() * PANEL) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.range.len()
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// The rows, as a range of the whole matrix.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Cuts off a part, `rows` counting from the first of these rows.
    ///
    /// # Panics
    /// If `rows` is not within these rows.
    #[track_caller]
    pub fn part(&mut self, rows: Range<usize>) -> RowsMut<'_> {
        assert!(rows.start <= rows.end && rows.end <= self.rows(), "part {rows:?}");
        let range = self.range.start + rows.start..self.range.start + rows.end;
        RowsMut { range, owner: PhantomData, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a matrix that fits into memory")]
    fn a_size_that_wraps_around_is_refused() {
        drop(Panels::zeros(1 << 59, 1024));
    }

    #[test]
    fn matrix_round_trip_keeps_values_and_zero_padding() {
        let m = Matrix::from_fn(5, 70, |i, j| (i * 100 + j) as f32);
        let p = Panels::from_matrix(&m);
        assert_eq!(p.to_matrix(), m);
        assert_eq!(p.get(3, 69), 369.0);
        assert!(p.row_of(2, 4)[6..].iter().all(|&v| v == 0.0));
    }

    #[test]
    fn transposing_moves_every_element() {
        let m = Matrix::from_fn(40, 33, |i, j| (i * 100 + j) as f32);
        let mut out = Panels::zeros(33, 40);
        Panels::from_matrix(&m).transpose_into(&mut out);
        assert_eq!(out.to_matrix(), Matrix::from_fn(33, 40, |i, j| m.get(j, i)));
    }

    #[test]
    fn shards_are_disjoint_and_cover_all_rows() {
        let mut p = Panels::zeros(41, 40);
        let partition = Partition::even(41);
        for (s, rows) in p.shards_mut(&partition).iter_mut().enumerate() {
            for panel in 0..2 {
                for v in rows.panel_mut(panel) {
                    assert_eq!(*v, 0.0);
                    *v = (s + 1) as f32;
                }
            }
        }
        assert!(p.data().iter().all(|&v| v > 0.0));
        assert_eq!(p.get(40, 39), 16.0);
    }
}
