//! Products of one sparse input matrix with weights whose rows are masked in two ways at once.
//!
//! Two masks over the columns of `X` cut them into four classes: kept by both, by the first
//! only, by the second only, by neither. The product with the columns both keep is the same for
//! both masks, so it is summed once:
//!
//! `X∘m₁ · W = X_both · W + X_first · W`,  `X∘m₂ · W = X_both · W + X_second · W`
//!
//! At mask rates of 0.1 and 0.2 this is 0.98 products instead of 1.7. Backwards, each row of the
//! gradient of `W` needs one sum over one of `G₁ + G₂`, `G₁` or `G₂`.
//!
//! In `f32` each list of columns is cut into blocks, so that the rows of `W` (or `G`) that a block can
//! touch stay in a near cache while all lists are walked through that block. Rows of bfloat16 are
//! half as large and are asked for ahead of time instead. Products sum two panels in one walk.

use std::ops::Range;

use crate::bf16::{Panels16, View16, WORDS};
use crate::csr::{Csr, Pattern};
use crate::panels::{PANEL, Panels};
use crate::par::{Partition, SHARDS, STRIP_PANELS, StripParts, Threads};
use crate::pick::{Keys, pick};
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::{Floats, Stored, Wide, Words, sum_listed, sum_stored, sum_weighted};

/// Which of the two masks keep a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KeptBy {
    /// Both masks.
    Both = 0,
    /// The first mask only.
    First = 1,
    /// The second mask only.
    Second = 2,
    /// Neither mask.
    Neither = 3,
}

impl KeptBy {
    /// The class of a column from the two masks' flags.
    pub fn new(first: bool, second: bool) -> Self {
        match (first, second) {
            (true, true) => Self::Both,
            (true, false) => Self::First,
            (false, true) => Self::Second,
            (false, false) => Self::Neither,
        }
    }
}

/// A sparse matrix whose lists of columns are cut into blocks of columns.
#[derive(Clone, Debug)]
struct Blocked {
    pattern: Pattern,
    /// `None` if all values are one.
    values: Option<Vec<f32>>,
    blocks: usize,
    /// The part of row `i` that lies in block `b` starts at entry `starts[i * blocks + b]`.
    starts: Vec<usize>,
}

/// Rows of a block that fit the level-1 and level-2 caches at `PANEL` floats each, with room for
/// the outputs, and the list length below which a finer cut costs more than it saves.
const NEAR_ROWS: usize = 384;
const FAR_ROWS: usize = 8704;
const LIST_GOAL: usize = 64;

/// Pieces that a gradient is cut into: enough to balance and to feed many cores. Each walks through all
/// rows of its source, so more of them would read more.
const WORK_ITEMS: usize = 16;

impl Blocked {
    fn new(pattern: Pattern, values: Option<Vec<f32>>) -> Self {
        let average = (pattern.entries() / pattern.rows().max(1)).max(1);
        let block = (pattern.cols() * LIST_GOAL / average).clamp(NEAR_ROWS, FAR_ROWS);
        let blocks = pattern.cols().div_ceil(block).max(1);
        let mut starts = Vec::with_capacity(pattern.rows() * blocks + 1);
        for i in 0..pattern.rows() {
            let (row, range) = (pattern.row(i), pattern.range(i));
            let before = |b: usize| row.partition_point(|&c| (c as usize) < b * block);
            starts.extend((0..blocks).map(|b| range.start + before(b)));
        }
        starts.push(pattern.entries());
        Self { pattern, values, blocks, starts }
    }

    /// Shards of the rows, as few as leave enough work to hand out where each is done for so many
    /// panels (or strips): the lists of one shard share what they touch.
    fn shared_partition(&self, panels: usize) -> Partition {
        Partition::balanced_into(WORK_ITEMS / panels.max(1), self.pattern.offsets())
    }

    /// The entries of row `i` in block `b`.
    fn segment(&self, i: usize, b: usize) -> Range<usize> {
        self.starts[i * self.blocks + b]..self.starts[i * self.blocks + b + 1]
    }
}

/// A sparse input matrix prepared for masked products. See the module's documentation.
#[derive(Clone, Debug)]
pub struct MaskedInputs {
    rows: Blocked,
    /// Shards of the rows.
    partition: Partition,
    columns: Blocked,
    /// Factor of each row: where a row's values are all alike, they are kept here alone.
    row_scale: Vec<f32>,
    /// The [`KeptBy`] of each column.
    classes: Keys,
    /// The columns of each block of each row, ordered by class; a copy of the pattern's indices.
    ordered: Vec<u32>,
    ordered_values: Vec<f32>,
    /// Numbers of columns kept by both, by the first only and by the second only, a block of a
    /// row each.
    counts: Vec<[u32; 3]>,
}

impl MaskedInputs {
    /// Prepares `x`; all columns start out kept by both masks.
    pub fn new(x: &Csr, threads: &Threads) -> Self {
        let factors = x.row_factors();
        let plain = factors.is_some();
        let (transposed, origin) = x.pattern().transpose();
        let values = |order: &mut dyn Iterator<Item = usize>| {
            (!plain).then(|| order.map(|e| x.values()[e]).collect::<Vec<_>>())
        };
        let columns = Blocked::new(transposed, values(&mut origin.iter().map(|&e| e as usize)));
        let rows = Blocked::new(x.pattern().clone(), values(&mut (0..x.values().len())));
        let mut inputs = Self {
            row_scale: factors.unwrap_or_else(|| vec![1.0; x.pattern().rows()]),
            classes: Keys::new(KeptBy::Both as u8, x.pattern().cols()),
            ordered: x.pattern().indices().to_vec(),
            ordered_values: rows.values.clone().unwrap_or_default(),
            counts: vec![[0; 3]; rows.pattern.rows() * rows.blocks],
            partition: Partition::balanced(rows.pattern.offsets()),
            rows,
            columns,
        };
        inputs.reorder(threads);
        inputs
    }

    /// Number of rows of the input matrix.
    pub fn rows(&self) -> usize {
        self.rows.pattern.rows()
    }

    /// Number of columns of the input matrix.
    pub fn cols(&self) -> usize {
        self.rows.pattern.cols()
    }

    /// The factor that each row of a gradient must be multiplied by before it is given to
    /// [`MaskedInputs::gradient`]; [`MaskedInputs::product`] applies it by itself.
    pub fn row_scale(&self) -> &[f32] {
        &self.row_scale
    }

    /// Sets both masks: for each column, which of them keep it.
    ///
    /// # Panics
    /// If there is not one class a column.
    #[track_caller]
    pub fn set_masks(&mut self, classes: impl Iterator<Item = KeptBy>, threads: &Threads) {
        let mut given = 0;
        for (slot, class) in self.classes.all_mut().iter_mut().zip(classes) {
            *slot = class as u8;
            given += 1;
        }
        assert_eq!(given, self.cols(), "one class a column");
        self.reorder(threads);
    }

    fn reorder(&mut self, threads: &Threads) {
        let (rows, classes) = (&self.rows, &self.classes);
        let (partition, offsets) = (&self.partition, rows.pattern.offsets());
        let mut order = partition.split_at(offsets, &mut self.ordered);
        let mut values = match rows.values {
            Some(_) => partition.split_at(offsets, &mut self.ordered_values),
            None => std::array::from_fn(|_| &mut [][..]),
        };
        let mut counts = partition.split_wide(&mut self.counts, rows.blocks);
        let mut shards: [_; SHARDS] = std::array::from_fn(|s| {
            (
                std::mem::take(&mut order[s]),
                std::mem::take(&mut values[s]),
                std::mem::take(&mut counts[s]),
            )
        });
        threads.for_each_owned(&mut shards[..partition.shards()], |s, (order, values, counts)| {
            let first = partition.range(s).start;
            for (row, counts) in counts.chunks_exact_mut(rows.blocks).enumerate() {
                for (block, count) in counts.iter_mut().enumerate() {
                    let entries = rows.segment(first + row, block);
                    let slots = entries.start - offsets[first]..entries.end - offsets[first];
                    let columns = &rows.pattern.indices()[entries.clone()];
                    *count = order_by_class(columns, classes, &mut order[slots.clone()]);
                    if let Some(all) = &rows.values {
                        order_by_class_values(columns, &all[entries], classes, &mut values[slots]);
                    }
                }
            }
        });
    }

    /// `out[m] = scale[m] ∘ (X ∘ mask_m) · w` for both masks `m`, where `scale` has one factor a
    /// row.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn product(
        &self,
        w: &Panels,
        scale: [&[f32]; 2],
        out: [&mut Panels; 2],
        threads: &Threads,
    ) {
        assert_eq!(w.rows(), self.cols(), "masked product: rows of the weights");
        assert_eq!(out[0].shape(), (self.rows(), w.cols()), "masked product: output shape");
        assert!(scale.iter().all(|s| s.len() == self.rows()), "masked product: one scale a row");
        threads.for_each_strip(&self.partition, out, |strip, [mut first, mut second]| {
            let w = w.panels_of(&strip);
            for block in 0..self.rows.blocks {
                let rows = strip.rows.clone();
                let parts =
                    [&mut first, &mut second].map(|out| out.each_mut().map(|out| &mut **out));
                masked_rows(self, rows, block..block + 1, w, scale, parts);
            }
        });
    }

    /// The gradient of the weights, `out = Σ_m (X ∘ mask_m)ᵀ · g_m`, from the sources a row of
    /// the weights takes its sum from by class: `[g₁ + g₂, g₁, g₂]`. A mask without a gradient is
    /// `None`. All must have been multiplied by [`MaskedInputs::row_scale`].
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn gradient(&self, sources: [Option<&Panels>; 3], out: &mut Panels, threads: &Threads) {
        let shape = (self.rows(), out.cols());
        assert!(
            sources.iter().flatten().all(|g| g.shape() == shape),
            "masked gradient: shapes of the gradients"
        );
        assert_eq!(out.rows(), self.cols(), "masked gradient: output shape");
        let partition = self.columns.shared_partition(out.panels());
        threads.for_each_cell(&partition, [out], |cell, [out]| {
            out.fill(0.0);
            let sources = sources.map(|g| g.map(|g| g.panel(cell.panel)));
            for block in 0..self.columns.blocks {
                gradient_rows(self, cell.rows.clone(), block, sources, out);
            }
        });
    }
}

impl MaskedInputs {
    /// [`MaskedInputs::product`] with weights and results of bfloat16; the sums are `f32`.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn product16(
        &self,
        w: View16<'_>,
        scale: [&[f32]; 2],
        out: [&mut Panels16; 2],
        threads: &Threads,
    ) {
        assert_eq!(w.rows(), self.cols(), "masked product: rows of the weights");
        let shape = (out[0].rows(), out[0].cols());
        assert_eq!(shape, (self.rows(), w.cols()), "masked product: output shape");
        assert!(scale.iter().all(|s| s.len() == self.rows()), "masked product: one scale a row");
        let blocks = 0..self.rows.blocks;
        threads.for_each_strip16(&self.partition, out, |strip, out| {
            let (rows, w) = (strip.rows.clone(), w.panels_of(&strip));
            masked_words(self, rows, blocks.clone(), w, scale, out);
        });
    }

    /// [`MaskedInputs::gradient`] from sources of bfloat16.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn gradient16(
        &self,
        sources: [Option<View16<'_>>; 3],
        out: &mut Panels,
        threads: &Threads,
    ) {
        let shape = (self.rows(), out.cols());
        assert!(
            sources.iter().flatten().all(|g| (g.rows(), g.cols()) == shape),
            "masked gradient: shapes of the gradients"
        );
        assert_eq!(out.rows(), self.cols(), "masked gradient: output shape");
        let partition = self.columns.shared_partition(out.panels().div_ceil(STRIP_PANELS));
        threads.for_each_strip(&partition, [out], |strip, [mut out]| {
            for out in &mut out {
                out.fill(0.0);
            }
            let sources = sources.map(|g| g.map(|g| g.panels_of(&strip)));
            gradient_words(self, strip.rows, sources, out);
        });
    }

    /// Where the columns that both masks keep, the first only and the second only are in the order of
    /// a block of a row.
    #[inline(always)]
    fn ordered_ranges(&self, row: usize, block: usize) -> [Range<usize>; 3] {
        let mut start = self.rows.segment(row, block).start;
        self.counts[row * self.rows.blocks + block].map(|count| {
            let range = start..start + count as usize;
            start = range.end;
            range
        })
    }
}

/// The classes that lists are ordered by.
const ORDER: [KeptBy; 3] = [KeptBy::Both, KeptBy::First, KeptBy::Second];

/// Writes the columns of a segment class by class, leaving out those of neither mask; returns
/// how many there are of each class.
fn order_by_class(columns: &[u32], classes: &Keys, out: &mut [u32]) -> [u32; 3] {
    let mut n = 0;
    ORDER.map(|class| {
        let picked = pick(columns, classes, class as u8, &mut out[n..]);
        n += picked;
        picked as u32
    })
}

/// Like [`order_by_class`], for the values that belong to the columns.
fn order_by_class_values(columns: &[u32], values: &[f32], classes: &Keys, out: &mut [f32]) {
    let mut n = 0;
    for class in ORDER {
        for (&column, &value) in columns.iter().zip(values) {
            if let Some(slot) = out.get_mut(n) {
                *slot = value;
            }
            n += usize::from(classes.all()[column as usize] == class as u8);
        }
    }
}

dispatch! {
    /// Adds the shares of some blocks to the rows of a strip (the first block overwrites).
    fn masked_rows(
        inputs: &MaskedInputs, rows: Range<usize>, blocks: Range<usize>, w: [&[f32]; STRIP_PANELS],
        scale: [&[f32]; 2], out: [StripParts<'_>; 2],
    ) = masked_rows_kernel
}

dispatch_rounding! {
    /// [`masked_rows`] from weights of bfloat16. All blocks belong into one call, because the sums are
    /// rounded behind the last: words are small enough for all weights of two panels to stay near.
    fn masked_words(
        inputs: &MaskedInputs, rows: Range<usize>, blocks: Range<usize>, w: [&[f32]; STRIP_PANELS],
        scale: [&[f32]; 2], out: [StripParts<'_>; 2],
    ) = masked_words_kernel
}

#[inline(always)]
unsafe fn masked_rows_kernel<S: Simd>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    blocks: Range<usize>,
    w: [&[f32]; STRIP_PANELS],
    scale: [&[f32]; 2],
    out: [StripParts<'_>; 2],
) {
    // SAFETY: as promised by the caller.
    unsafe { masked_strip::<S, Floats>(inputs, rows, blocks, w, scale, out) };
}

#[inline(always)]
unsafe fn masked_words_kernel<S: Simd>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    blocks: Range<usize>,
    w: [&[f32]; STRIP_PANELS],
    scale: [&[f32]; 2],
    out: [StripParts<'_>; 2],
) {
    // SAFETY: as promised by the caller.
    unsafe { masked_strip::<S, Words>(inputs, rows, blocks, w, scale, out) };
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn masked_strip<S: Simd, G: Stored>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    blocks: Range<usize>,
    w: [&[f32]; STRIP_PANELS],
    scale: [&[f32]; 2],
    out: [StripParts<'_>; 2],
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match out {
            [[first, &mut []], [second, _]] => {
                masked_panels::<S, G, 1>(inputs, rows, blocks, [w[0]], scale, [[first], [second]]);
            }
            both => masked_panels::<S, G, STRIP_PANELS>(inputs, rows, blocks, w, scale, both),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn masked_panels<S: Simd, G: Stored, const P: usize>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    blocks: Range<usize>,
    w: [&[f32]; P],
    scale: [&[f32]; 2],
    out: [[&mut [f32]; P]; 2],
) {
    assert!(w.iter().all(|w| w.len() == inputs.cols() * G::ROW));
    assert!(out.as_flattened().iter().all(|out| out.len() == rows.len() * G::ROW));
    let (w, out) = (w.map(<[f32]>::as_ptr), out.map(|out| out.map(<[f32]>::as_mut_ptr)));
    let values = inputs.rows.values.is_some().then_some(&inputs.ordered_values[..]);
    let lists = (&inputs.ordered[..], values);
    for (slot, i) in rows.enumerate() {
        let factors = scale.map(|scale| inputs.row_scale[i] * scale[i]);
        // SAFETY: the ordered columns come from the checked pattern, so they are rows of `w`, and
        // the ranges lie within them; the outputs hold a row of `G` for each of the rows.
        unsafe {
            let mut totals = [[Wide::<S>::zero(); P]; 2];
            if blocks.start > 0 {
                for (totals, out) in totals.iter_mut().zip(out) {
                    for (total, out) in totals.iter_mut().zip(out) {
                        *total = G::load(out.add(slot * G::ROW));
                    }
                }
            }
            for block in blocks.clone() {
                let [both, one, two] = inputs.ordered_ranges(i, block);
                let shared = sum_stored::<S, G, P>(lists, both, w);
                for (m, only) in [one, two].into_iter().enumerate() {
                    let only = sum_stored::<S, G, P>(lists, only, w);
                    for p in 0..P {
                        let total = shared[p].add(only[p]);
                        totals[m][p] = totals[m][p].add_scaled(factors[m], total);
                    }
                }
            }
            for m in 0..2 {
                for p in 0..P {
                    G::store(totals[m][p], out[m][p].add(slot * G::ROW));
                }
            }
        }
    }
}

dispatch! {
    /// Adds one block's share to the weight rows of a cell, class by class, so that one source at a
    /// time is in the cache.
    fn gradient_rows(
        inputs: &MaskedInputs, rows: Range<usize>, block: usize, sources: [Option<&[f32]>; 3],
        out: &mut [f32],
    ) = gradient_rows_kernel
}

#[inline(always)]
unsafe fn gradient_rows_kernel<S: Simd>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    block: usize,
    sources: [Option<&[f32]>; 3],
    out: &mut [f32],
) {
    assert!(sources.iter().flatten().all(|g| g.len() == inputs.rows() * PANEL));
    let columns = &inputs.columns;
    for (class, source) in sources.into_iter().enumerate() {
        let Some(source) = source else { continue };
        let outputs = rows.clone().zip(out.chunks_exact_mut(PANEL));
        for (j, out) in outputs.filter(|(j, _)| usize::from(inputs.classes.all()[*j]) == class) {
            let range = columns.segment(j, block);
            let list = &columns.pattern.indices()[range.clone()];
            // SAFETY: the transposed pattern lists only rows of the gradients, and `out` holds
            // PANEL floats.
            unsafe {
                let sum = match &columns.values {
                    None => sum_listed::<S>(list, source.as_ptr()),
                    Some(values) => sum_weighted::<S>(list, &values[range], source.as_ptr()),
                };
                Wide::load(out.as_ptr()).add(sum).store(out.as_mut_ptr());
            }
        }
    }
}

/// A source of gradients of bfloat16 for each class of columns that has one.
type Sources<'a, const P: usize> = [Option<[&'a [f32]; P]>; 3];

dispatch! {
    /// The weight rows of a strip from gradients of bfloat16, where `out` is zero. Lists are walked
    /// whole: what is asked for ahead of time need not stay near, and a cut costs more than it saves.
    fn gradient_words(
        inputs: &MaskedInputs, rows: Range<usize>, sources: Sources<'_, STRIP_PANELS>,
        out: StripParts<'_>,
    ) = gradient_words_kernel
}

#[inline(always)]
unsafe fn gradient_words_kernel<S: Simd>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    sources: Sources<'_, STRIP_PANELS>,
    out: StripParts<'_>,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match out {
            [first, &mut []] => {
                let sources = sources.map(|g| g.map(|[g, _]| [g]));
                gradient_panels::<S, 1>(inputs, rows, sources, [first]);
            }
            both => gradient_panels::<S, STRIP_PANELS>(inputs, rows, sources, both),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn gradient_panels<S: Simd, const P: usize>(
    inputs: &MaskedInputs,
    rows: Range<usize>,
    sources: Sources<'_, P>,
    out: [&mut [f32]; P],
) {
    let length = inputs.rows() * WORDS;
    assert!(sources.iter().flatten().flatten().all(|g| g.len() == length));
    assert!(out.iter().all(|out| out.len() == rows.len() * PANEL));
    let out = out.map(<[f32]>::as_mut_ptr);
    let columns = &inputs.columns;
    let lists = (columns.pattern.indices(), columns.values.as_deref());
    for (class, source) in sources.into_iter().enumerate() {
        let Some(source) = source else { continue };
        let source = source.map(<[f32]>::as_ptr);
        let slots = rows.clone().enumerate();
        for (slot, j) in slots.filter(|(_, j)| usize::from(inputs.classes.all()[*j]) == class) {
            // SAFETY: the transposed pattern lists only rows of the gradients, and the outputs
            // hold PANEL floats a row.
            unsafe {
                let sums = sum_stored::<S, Words, P>(lists, columns.pattern.range(j), source);
                for p in 0..P {
                    sums[p].store(out[p].add(slot * PANEL));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    /// A sparse matrix with a few entries a row, plus the same matrix dense.
    fn sparse(rows: usize, cols: usize, plain: bool) -> (Csr, Matrix) {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut dense = Matrix::zeros(rows, cols);
        for i in 0..rows {
            for j in (0..cols).filter(|j| (i * 7 + j * 13) % 5 == 0) {
                let value = if plain { 1.0 / (i + 1) as f32 } else { ((i + j) as f32 * 0.1).cos() };
                indices.push(j as u32);
                values.push(value);
                dense.row_mut(i)[j] = value;
            }
            offsets.push(indices.len());
        }
        (Csr::new(Pattern::new(cols, offsets, indices).unwrap(), values).unwrap(), dense)
    }

    fn class(j: usize) -> KeptBy {
        KeptBy::new(!j.is_multiple_of(3), j % 4 != 1)
    }

    fn kept(class: KeptBy, mask: usize) -> f32 {
        let other = [KeptBy::First, KeptBy::Second][mask];
        f32::from(u8::from(class == KeptBy::Both || class == other))
    }

    fn rounded(x: &Panels) -> Panels {
        let x = x.to_matrix();
        let round = |i, j| crate::bf16::round(x.get(i, j));
        Panels::from_matrix(&Matrix::from_fn(x.rows(), x.cols(), round))
    }

    #[test]
    fn products_and_gradients_of_words_are_those_of_rounded_matrices() {
        let threads = Threads::new(2);
        for (rows, cols, width, plain) in
            [(9, 33, 7, true), (700, 40, 65, false), (30, 900, 33, true)]
        {
            let (x, _) = sparse(rows, cols, plain);
            let mut inputs = MaskedInputs::new(&x, &threads);
            inputs.set_masks((0..cols).map(class), &threads);
            let wave = |rows: usize, f: f32| {
                Panels::from_matrix(&Matrix::from_fn(rows, width, |i, j| {
                    ((i + 3 * j) as f32 * f).sin()
                }))
            };
            let (w, scale) = (wave(cols, 0.7), [vec![0.5; rows], vec![1.5; rows]]);
            let scale = [&scale[0][..], &scale[1][..]];
            let mut want = [(); 2].map(|()| Panels::zeros(rows, width));
            let mut got = [(); 2].map(|()| Panels16::zeros(rows, width));
            let [first, second] = &mut want;
            inputs.product(&rounded(&w), scale, [first, second], &threads);
            let [first, second] = &mut got;
            inputs.product16(Panels16::from_panels(&w).view(), scale, [first, second], &threads);
            for (want, got) in want.iter().zip(&got) {
                let want = Panels16::from_panels(want);
                for i in 0..rows {
                    assert!((0..width).all(|j| got.view().get(i, j) == want.view().get(i, j)));
                }
            }
            let sources = [0.3, 0.8, 0.1].map(|f| wave(rows, f));
            let [mut want, mut got] = [(); 2].map(|()| Panels::zeros(cols, width));
            let plain = sources.each_ref().map(rounded);
            inputs.gradient(plain.each_ref().map(Some), &mut want, &threads);
            let words = sources.each_ref().map(Panels16::from_panels);
            inputs.gradient16(words.each_ref().map(|g| Some(g.view())), &mut got, &threads);
            // Where lists are cut, the order of the sums differs.
            for k in 0..cols {
                let close = |j| (got.get(k, j) - want.get(k, j)).abs() < 1e-6 * rows as f32;
                assert!((0..width).all(close), "{rows}×{cols}, row {k}");
            }
        }
    }

    #[test]
    fn products_and_gradients_agree_with_dense_ones() {
        let threads = Threads::new(2);
        for (rows, cols, width, plain) in
            [(9, 13, 5, true), (40, 600, 70, true), (33, 41, 40, false)]
        {
            let (x, dense) = sparse(rows, cols, plain);
            let mut inputs = MaskedInputs::new(&x, &threads);
            inputs.set_masks((0..cols).map(class), &threads);
            let w = Matrix::from_fn(cols, width, |i, j| ((i * 3 + j) as f32 * 0.2).sin());
            let scale =
                [0.5, 2.0].map(|f| (0..rows).map(|i| f + i as f32 * 0.1).collect::<Vec<f32>>());
            let mut out = [Panels::zeros(rows, width), Panels::zeros(rows, width)];
            let [first, second] = &mut out;
            let panels = Panels::from_matrix(&w);
            inputs.product(&panels, [&scale[0], &scale[1]], [first, second], &threads);
            for (mask, out) in out.iter().enumerate() {
                for (i, factor) in scale[mask].iter().enumerate() {
                    for j in 0..width {
                        let term = |k| dense.get(i, k) * kept(class(k), mask) * w.get(k, j);
                        let want = factor * (0..cols).map(term).sum::<f32>();
                        assert!((out.get(i, j) - want).abs() < 1e-4 * want.abs().max(1.0));
                    }
                }
            }
            let g = [0.3, 0.8]
                .map(|s| Matrix::from_fn(rows, width, |i, j| ((i + j * 5) as f32 * s).cos()));
            let scaled = |g: &Matrix| {
                Matrix::from_fn(rows, width, |i, j| g.get(i, j) * inputs.row_scale()[i])
            };
            let both = Matrix::from_fn(rows, width, |i, j| {
                scaled(&g[0]).get(i, j) + scaled(&g[1]).get(i, j)
            });
            let [a, b, both] =
                [scaled(&g[0]), scaled(&g[1]), both].map(|m| Panels::from_matrix(&m));
            let mut gradient = Panels::zeros(cols, width);
            inputs.gradient([Some(&both), Some(&a), Some(&b)], &mut gradient, &threads);
            for k in 0..cols {
                for j in 0..width {
                    let term =
                        |m: usize, i: usize| dense.get(i, k) * kept(class(k), m) * g[m].get(i, j);
                    let want: f32 = (0..rows).map(|i| term(0, i) + term(1, i)).sum();
                    assert!((gradient.get(k, j) - want).abs() < 1e-4 * want.abs().max(1.0));
                }
            }
        }
    }
}
