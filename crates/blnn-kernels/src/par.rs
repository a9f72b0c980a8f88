//! [`Threads`]: static partitions run on a pool, so that no result depends on the thread count.
//!
//! Work is cut into *shards* by sizes alone, never by the number of threads. A shard either
//! owns its outputs, or writes a partial result that is later summed in shard order. Which
//! thread runs a shard, and when, cannot change a bit.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;

use crate::bf16::{Panels16, WORDS};
use crate::panels::{PANEL, Panels};
use crate::pool::Pool;

/// How many shards a partition aims for: enough to balance and to feed many cores, few enough
/// that summing per-shard partial results stays cheap.
pub const SHARDS: usize = 16;

/// A pool of worker threads. Cloning shares the pool.
#[derive(Clone)]
pub struct Threads {
    pool: Arc<Pool>,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

impl Threads {
    /// A pool of `count` threads; 0 means one per available core.
    ///
    /// # Panics
    /// If the operating system refuses to start the threads.
    pub fn new(count: usize) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { pool: Arc::new(Pool::new(if count == 0 { cores() } else { count })) }
    }

    /// Number of threads in the pool.
    pub fn count(&self) -> usize {
        self.pool.count()
    }

    /// Calls `task(shard)` for every shard in `0..shards`, in any order, on any thread.
    pub fn for_each(&self, shards: usize, task: impl Fn(usize) + Sync) {
        self.pool.run(shards, task);
    }

    /// Calls `task(shard, item)` for every item of `items` with its index, items being owned
    /// (typically disjoint `&mut` slices), in any order, on any thread.
    pub fn for_each_owned<T: Send>(&self, items: &mut [T], task: impl Fn(usize, &mut T) + Sync) {
        let base = Shared(items.as_mut_ptr());
        self.pool.run(items.len(), |i| {
            // SAFETY: each item is visited once, so the borrows are disjoint, and `items` is
            // borrowed mutably until all are done.
            task(i, unsafe { &mut *base.at(i) });
        });
    }
}

/// One piece of work on a matrix of panels: one panel, one shard of rows.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The panel.
    pub panel: usize,
    /// The shard.
    pub shard: usize,
    /// The shard's rows.
    pub rows: Range<usize>,
}

/// Most panels of a [`Strip`].
pub const STRIP_PANELS: usize = 2;

/// The cells of neighbouring panels in one shard of rows, to be worked on together.
#[derive(Clone, Debug)]
pub struct Strip {
    /// One panel, or [`STRIP_PANELS`].
    pub panels: Range<usize>,
    /// The shard.
    pub shard: usize,
    /// The shard's rows.
    pub rows: Range<usize>,
}

impl Strip {
    /// The cells, panel by panel.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        let Self { panels, shard, rows } = self.clone();
        panels.map(move |panel| Cell { panel, shard, rows: rows.clone() })
    }

    /// The cell of the first panel.
    fn cell(self) -> Cell {
        Cell { panel: self.panels.start, shard: self.shard, rows: self.rows }
    }
}

/// A strip's part of an output, a panel each; that of a panel it does not have is empty.
pub type StripParts<'a> = [&'a mut [f32]; STRIP_PANELS];

/// A pointer that may cross threads because every part behind it is visited once.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: it is dereferenced for disjoint parts only, each on one thread, and they may be sent there.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// There must be a value that far behind the pointer.
    unsafe fn at(self, i: usize) -> *mut T {
        // SAFETY: as promised by the caller.
        unsafe { self.0.add(i) }
    }
}

/// Where the cells of a matrix lie, in floats or words.
#[derive(Clone, Copy)]
struct CellLayout {
    panels: usize,
    /// From one panel to the next.
    panel: usize,
    /// From one row to the next.
    row: usize,
}

impl Threads {
    /// Calls `task(cell, parts)` for every panel and shard of the outputs, all of one shape,
    /// with the cell's part of each. Cells of one panel run next to each other, so a thread
    /// stays with what it has in its cache.
    ///
    /// # Panics
    /// If the outputs differ in shape or the partition is of another number of rows.
    #[track_caller]
    pub fn for_each_cell<const N: usize>(
        &self,
        partition: &Partition,
        outputs: [&mut Panels; N],
        task: impl Fn(Cell, [&mut [f32]; N]) + Sync,
    ) {
        let (layout, bases) = of_floats(partition, outputs);
        // SAFETY: the layout is that of the outputs, which are borrowed mutably.
        unsafe {
            self.for_each_part(partition, layout, bases, |strip, parts| {
                task(strip.cell(), parts.map(|[part]| part));
            });
        }
    }

    /// [`Threads::for_each_cell`] for outputs of bfloat16, with 16 words a row.
    ///
    /// # Panics
    /// If the outputs differ in shape or the partition is of another number of rows.
    #[track_caller]
    pub fn for_each_cell16<const N: usize>(
        &self,
        partition: &Partition,
        outputs: [&mut Panels16; N],
        task: impl Fn(Cell, [&mut [f32]; N]) + Sync,
    ) {
        let (layout, bases) = of_words(partition, outputs);
        // SAFETY: the layout is that of the outputs, which are borrowed mutably.
        unsafe {
            self.for_each_part(partition, layout, bases, |strip, parts| {
                task(strip.cell(), parts.map(|[part]| part));
            });
        }
    }

    /// [`Threads::for_each_cell`] with the cells of two panels at a time.
    ///
    /// # Panics
    /// If the outputs differ in shape or the partition is of another number of rows.
    #[track_caller]
    pub fn for_each_strip<const N: usize>(
        &self,
        partition: &Partition,
        outputs: [&mut Panels; N],
        task: impl Fn(Strip, [StripParts<'_>; N]) + Sync,
    ) {
        let (layout, bases) = of_floats(partition, outputs);
        // SAFETY: the layout is that of the outputs, which are borrowed mutably.
        unsafe { self.for_each_part(partition, layout, bases, task) };
    }

    /// [`Threads::for_each_cell16`] with the cells of two panels at a time.
    ///
    /// # Panics
    /// If the outputs differ in shape or the partition is of another number of rows.
    #[track_caller]
    pub fn for_each_strip16<const N: usize>(
        &self,
        partition: &Partition,
        outputs: [&mut Panels16; N],
        task: impl Fn(Strip, [StripParts<'_>; N]) + Sync,
    ) {
        let (layout, bases) = of_words(partition, outputs);
        // SAFETY: the layout is that of the outputs, which are borrowed mutably.
        unsafe { self.for_each_part(partition, layout, bases, task) };
    }

    /// Calls `task` for every strip of at most `P` panels.
    ///
    /// # Safety
    /// The bases must be matrices of the layout with the rows of the partition, borrowed mutably.
    unsafe fn for_each_part<const N: usize, const P: usize>(
        &self,
        partition: &Partition,
        layout: CellLayout,
        bases: [Shared<f32>; N],
        task: impl Fn(Strip, [[&mut [f32]; P]; N]) + Sync,
    ) {
        let shards = partition.shards();
        self.for_each(layout.panels.div_ceil(P) * shards, |index| {
            let (first, shard) = (index / shards * P, index % shards);
            let panels = first..(first + P).min(layout.panels);
            let rows = partition.range(shard);
            let part = |base: Shared<f32>, panel: usize| {
                let start = panel * layout.panel + rows.start * layout.row;
                // SAFETY: the cell lies inside its output (the panel and the rows exist), each cell
                // is visited once and cells are disjoint, and the outputs are borrowed mutably.
                unsafe { std::slice::from_raw_parts_mut(base.at(start), rows.len() * layout.row) }
            };
            let parts = bases.map(|base| {
                std::array::from_fn(|k| {
                    if first + k < panels.end { part(base, first + k) } else { &mut [] }
                })
            });
            task(Strip { panels, shard, rows: rows.clone() }, parts);
        });
    }
}

#[track_caller]
fn of_floats<const N: usize>(
    partition: &Partition,
    outputs: [&mut Panels; N],
) -> (CellLayout, [Shared<f32>; N]) {
    let (shape, panels) = (outputs[0].shape(), outputs[0].panels());
    assert!(outputs.iter().all(|o| o.shape() == shape), "outputs of one shape");
    assert_eq!(partition.rows(), shape.0, "partition of another matrix");
    let layout = CellLayout { panels, panel: shape.0 * PANEL, row: PANEL };
    (layout, outputs.map(|o| Shared(o.data_mut().as_mut_ptr())))
}

#[track_caller]
fn of_words<const N: usize>(
    partition: &Partition,
    outputs: [&mut Panels16; N],
) -> (CellLayout, [Shared<f32>; N]) {
    let shape = (outputs[0].rows(), outputs[0].cols());
    assert!(outputs.iter().all(|o| (o.rows(), o.cols()) == shape), "outputs of one shape");
    assert_eq!(partition.rows(), shape.0, "partition of another matrix");
    let panels = shape.1.div_ceil(PANEL);
    let layout = CellLayout { panels, panel: outputs[0].panel_words(), row: WORDS };
    (layout, outputs.map(|o| Shared(o.words_mut().as_mut_ptr())))
}

/// A cut of `0..n` rows into at most [`SHARDS`] consecutive shards, fixed when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Shard `s` is `bounds[s]..bounds[s + 1]`.
    bounds: [usize; SHARDS + 1],
    shards: usize,
}

impl Partition {
    fn new(shards: usize, rows: usize, bound: impl Fn(usize) -> usize) -> Self {
        let inner = |s: usize| if s < shards { bound(s) } else { rows };
        let bounds: [usize; SHARDS + 1] = std::array::from_fn(inner);
        // Shards that overlapped would hand the same rows to two threads.
        assert!(bounds.is_sorted(), "costs that never fall");
        Self { bounds, shards }
    }

    /// Shards of nearly equal numbers of rows.
    pub fn even(rows: usize) -> Self {
        let shards = SHARDS.min(rows.max(1));
        Self::new(shards, rows, |s| s * rows / shards)
    }

    /// Shards of `panels` times [`PANEL`] rows each, or more of them where the matrix is tall.
    pub fn of_panels(rows: usize, panels: usize) -> Self {
        let pieces = Self::even(rows.div_ceil(PANEL * panels));
        Self::new(pieces.shards, rows, |s| (pieces.bounds[s] * PANEL * panels).min(rows))
    }

    /// Shards of nearly equal cost, where the cost of the rows before `i` is `cumulative[i]`
    /// (for a sparse matrix: its row offsets).
    ///
    /// # Panics
    /// If `cumulative` is empty, or falls so that shards would overlap.
    #[track_caller]
    pub fn balanced(cumulative: &[usize]) -> Self {
        Self::balanced_into(SHARDS, cumulative)
    }

    /// [`Partition::balanced`] with at most so many shards, where fewer have more to share.
    ///
    /// # Panics
    /// As [`Partition::balanced`].
    #[track_caller]
    pub fn balanced_into(most: usize, cumulative: &[usize]) -> Self {
        let rows = cumulative.len().checked_sub(1).expect("cumulative costs start with 0");
        let shards = most.clamp(1, SHARDS).min(rows.max(1));
        // A row costs a little even when it is empty: count every row as one more entry.
        let cost = |i: usize| cumulative[i] - cumulative[0] + i;
        let reaches = |goal: usize| {
            let (mut low, mut high) = (0, rows);
            while low < high {
                let middle = usize::midpoint(low, high);
                if cost(middle) < goal { low = middle + 1 } else { high = middle }
            }
            low
        };
        // Wide enough for any cost: a goal that wrapped around would let shards overlap.
        let goal = |s: usize| (s as u128 * cost(rows) as u128 / shards as u128) as usize;
        Self::new(shards, rows, |s| reaches(goal(s)))
    }

    /// Number of rows that are cut.
    pub fn rows(&self) -> usize {
        self.bounds[SHARDS]
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The rows of one shard.
    pub fn range(&self, shard: usize) -> Range<usize> {
        self.bounds[shard]..self.bounds[shard + 1]
    }

    /// Cuts `data`, one value a row, into one slice a shard. Shards the partition does not have
    /// get an empty slice.
    ///
    /// # Panics
    /// If `data` does not hold exactly the partition's rows.
    #[track_caller]
    pub fn split_rows<'a, T>(&self, data: &'a mut [T]) -> [&'a mut [T]; SHARDS] {
        assert_eq!(data.len(), self.rows(), "rows of the partition");
        self.split(data, |row| row)
    }

    /// Cuts `data`, `width` values a row, into one slice a shard.
    ///
    /// # Panics
    /// If `data` does not hold exactly the partition's rows.
    #[track_caller]
    pub fn split_wide<'a, T>(&self, data: &'a mut [T], width: usize) -> [&'a mut [T]; SHARDS] {
        assert_eq!(data.len(), self.rows() * width, "rows of the partition");
        self.split(data, |row| row * width)
    }

    /// Cuts `data`, whose values for row `i` start at `starts[i]`, into one slice a shard.
    ///
    /// # Panics
    /// If `starts` does not describe exactly the partition's rows and `data`.
    #[track_caller]
    pub fn split_at<'a, T>(&self, starts: &[usize], data: &'a mut [T]) -> [&'a mut [T]; SHARDS] {
        assert_eq!((starts.len(), starts[self.rows()]), (self.rows() + 1, data.len()), "starts");
        self.split(data, |row| starts[row])
    }

    fn split<'a, T>(
        &self,
        mut data: &'a mut [T],
        at: impl Fn(usize) -> usize,
    ) -> [&'a mut [T]; SHARDS] {
        std::array::from_fn(|s| {
            let length =
                if s < self.shards() { at(self.range(s).end) - at(self.range(s).start) } else { 0 };
            let (head, tail) = std::mem::take(&mut data).split_at_mut(length);
            data = tail;
            head
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn costs_of_any_size_make_shards_that_do_not_overlap() {
        let huge: Vec<usize> = (0..=16).map(|i| usize::MAX / 32 * i).collect();
        let partition = Partition::balanced(&huge);
        let bounds: Vec<usize> = (0..16).map(|s| partition.range(s).start).collect();
        assert!(bounds.is_sorted_by(|a, b| a < b), "{bounds:?}");
    }

    #[test]
    fn every_core_gets_a_thread_unless_told_otherwise() {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        assert_eq!([0, 1, 3].map(|count| Threads::new(count).count()), [cores, 1, 3]);
    }

    #[test]
    fn every_shard_runs_once() {
        for threads in [1, 2, 5] {
            let hits: Vec<AtomicUsize> = (0..37).map(|_| AtomicUsize::new(0)).collect();
            Threads::new(threads).for_each(37, |i| {
                hits[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn balanced_partition_covers_all_rows_and_splits_cost() {
        let offsets: Vec<usize> = (0..=1000).map(|i| i * i).collect();
        let p = Partition::balanced(&offsets);
        assert_eq!(p.range(0).start, 0);
        assert_eq!(p.range(p.shards() - 1).end, 1000);
        let fair = 1_001_000 / p.shards();
        for s in 0..p.shards() {
            let r = p.range(s);
            let cost = offsets[r.end] - offsets[r.start] + r.len();
            assert!(cost < fair * 3 / 2, "shard {s} costs {cost}, fair is {fair}");
        }
    }

    #[test]
    fn empty_partition_has_one_empty_shard() {
        assert_eq!(Partition::even(0).range(0), 0..0);
        assert_eq!(Partition::balanced(&[0]).range(0), 0..0);
    }
}
