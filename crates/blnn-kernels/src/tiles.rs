//! Products of bfloat16 on a matrix unit: registers that hold 16 rows of 64 bytes, and one
//! instruction that multiplies two of them into a third.
//!
//! All packing and blocking is written over the trait [`BlockSums`]: what is done with a block of
//! sums. Tile registers are the trait [`Tiles`], of which `Emulated` is plain Rust and tested on any
//! machine. The six instructions of [`amx::Amx`] are tested on any x86-64
//! Linux: where the CPU has none, `trap` catches and emulates them, with the feature `emulated-amx`
//! also for the crates above this one. A CPU that has the AVX-512 instruction for pairs alone reads
//! the same packed tiles row by row ([`dots`]).
//!
//! Operands are packed into tiles of 256 words, each a pair of values whose indices `k` in the
//! summed dimension differ by 16 (see [`crate::bf16`]):
//! - *rows* ([`Panels16`]): word `j` of row `i` is `(x[i][j], x[i][j + 16])`, the left operand of
//!   `A · B`;
//! - *pairs*: word `n` of row `j` is `(x[j][n], x[j + 16][n])`, the right operand;
//! - *turned*: pairs transposed, word `j` of row `m` is `(x[j][m], x[j + 16][m])`: the left
//!   operand of `Aᵀ · B`.

#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "the parts of AMX are for x86-64 Linux")
)]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod amx;
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) mod dots;
#[cfg(any(test, feature = "emulated-amx"))]
pub(crate) mod emulated;
#[cfg(all(any(test, feature = "emulated-amx"), target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod trap;

use std::ops::Range;

use crate::bf16::{Panels16, View16, WORDS};
use crate::panels::{PANEL, Panels, RowsMut};
use crate::par::{Partition, SHARDS, Threads};
use crate::product::Store;
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::Wide;

/// Words in a tile.
const TILE: usize = 256;

/// Bytes from a row of a packed tile to the next.
const PACKED: usize = 64;

/// Bytes from a row of an output panel to the next.
const PANEL_BYTES: usize = PANEL * 4;

/// How many rows, of how many bytes, each tile register has: what `ldtilecfg` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Layout {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Layout {
    /// All eight registers with 16 rows of 64 bytes. Edges are padded in memory, so that no
    /// other layout is ever needed.
    pub(crate) const FULL: Self = Self::uniform(16, 64);

    /// All eight registers of one size.
    pub(crate) const fn uniform(rows: u8, row_bytes: u16) -> Self {
        let mut layout =
            Self { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        let mut register = 0;
        while register < 8 {
            layout.row_bytes[register] = row_bytes;
            layout.rows[register] = rows;
            register += 1;
        }
        layout
    }
}

/// The sums of a block of 32×32 in the making, wherever a CPU keeps them.
pub(crate) trait BlockSums {
    /// Sums of nothing yet; dropping gives back what they are kept in.
    ///
    /// # Safety
    /// The CPU must have the instructions, and the operating system must allow them.
    unsafe fn configure() -> Self;

    /// `sums = 0`
    fn zero(&mut self);

    /// `sums = block`, 32 rows of 32 floats.
    fn load(&mut self, block: &[f32]);

    /// `block = sums`
    fn store(&mut self, block: &mut [f32]);

    /// Asks for the sums of the block that comes next: they are read before its first product, with
    /// nothing to do meanwhile. Any address will do.
    fn prefetch(&mut self, _block: *const f32) {}

    /// `sums += Σ_k left(k) · right(k)` over `depth` steps, which both operands have.
    fn add_products(&mut self, depth: usize, left: Steps<'_>, right: Steps<'_>);
}

/// Eight tile registers.
pub(crate) trait Tiles {
    /// Takes the registers into use, laid out as [`Layout::FULL`] and zero; dropping gives them
    /// back.
    ///
    /// # Safety
    /// The CPU must have the instructions, and the operating system must allow them.
    unsafe fn configure() -> Self;

    /// `T = 0`
    fn clear<const T: u8>(&mut self);

    /// Reads a tile whose rows are `stride` bytes apart.
    ///
    /// # Safety
    /// All bytes of the tile must be readable.
    unsafe fn read<const T: u8>(&mut self, from: *const f32, stride: usize);

    /// Asks for the lines of a packed tile to be brought into the nearest cache; any address will
    /// do.
    fn ask_for(&mut self, _from: *const f32) {}

    /// Writes a tile whose rows are `stride` bytes apart.
    ///
    /// # Safety
    /// All bytes of the tile must be writable.
    unsafe fn write<const T: u8>(&mut self, to: *mut f32, stride: usize);

    /// `C += A · B`: `C` of floats, `A` and `B` of pairs of bfloat16.
    fn multiply<const C: u8, const A: u8, const B: u8>(&mut self);
}

/// A matrix packed for its rows to be summed over: *pairs* or *turned* tiles.
///
/// Panel `p`, rows `32 g..32 (g + 1)` is the two tiles of columns 0..16 and 16..32, at
/// `words[(p * groups + g) * 512..]`. Rows beyond the last are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    panels: usize,
    groups: usize,
    words: Panels,
}

impl Packed {
    /// Gives the matrix its shape within its allocation, which grows if it must.
    pub(crate) fn shape(&mut self, rows: usize, panels: usize) {
        (self.panels, self.groups) = (panels, rows.div_ceil(PANEL));
        let need = self.panels * self.groups * 2 * TILE / PANEL;
        if self.words.rows() < need {
            self.words = Panels::zeros(need, PANEL);
        }
    }

    /// Number of panels.
    pub(crate) fn panels(&self) -> usize {
        self.panels
    }

    /// The tiles of a panel from a group on.
    fn steps(&self, p: usize, group: usize) -> Steps<'_> {
        Steps {
            words: &self.words.data()[(p * self.groups + group) * 2 * TILE..],
            stride: 2 * TILE,
        }
    }

    /// The tiles of all panels and groups, panel by panel.
    fn tiles_mut(&mut self) -> &mut [f32] {
        let words = self.panels * self.groups * 2 * TILE;
        &mut self.words.data_mut()[..words]
    }

    /// Packs pairs from rows stored as words.
    pub(crate) fn pair_words(&mut self, x: View16<'_>, threads: &Threads) {
        self.each_group((x.rows(), x.panels()), threads, |p, rows, tiles| {
            pair_words(&x.panel(p)[rows.start * WORDS..rows.end * WORDS], tiles);
        });
    }

    /// Packs pairs with zeros in place of the rows that are not kept.
    pub(crate) fn pair_kept(&mut self, x: &Panels, keep: &[bool], threads: &Threads) {
        assert_eq!(keep.len(), x.rows(), "one flag a row");
        self.pair_read((x.rows(), x.panels()), threads, |p, rows, floats| {
            let from = &x.panel(p)[rows.start * PANEL..rows.end * PANEL];
            let rows = from.chunks_exact(PANEL).zip(&keep[rows]);
            for (to, (from, keep)) in floats.chunks_exact_mut(PANEL).zip(rows) {
                if *keep { to.copy_from_slice(from) } else { to.fill(0.0) }
            }
        });
    }

    /// Packs pairs of the listed rows.
    pub(crate) fn pair_listed(&mut self, x: &Panels, list: &[u32], threads: &Threads) {
        self.pair_read((list.len(), x.panels()), threads, |p, slots, floats| {
            for (to, &row) in floats.chunks_exact_mut(PANEL).zip(&list[slots]) {
                to.copy_from_slice(x.row_of(p, row as usize));
            }
        });
    }

    /// Takes over the listed columns of a matrix in turned tiles, of so many rows, as turned tiles
    /// and as rows. Columns beyond the last are zero.
    pub(crate) fn turn_listed(
        &mut self,
        x: &Self,
        (list, rows): (&[u32], usize),
        as_rows: &mut Panels16,
        threads: &Threads,
    ) {
        self.shape(rows, list.len().div_ceil(PANEL));
        assert_eq!(self.groups, x.groups, "columns of one height");
        let groups = self.groups.max(1);
        let partition = Partition::even(self.panels * self.groups);
        let mut turned = partition.split_wide(self.tiles_mut(), 2 * TILE);
        let words = &mut as_rows.words_mut()[..partition.rows() * 2 * TILE];
        let mut plain = partition.split_wide(words, 2 * TILE);
        let mut shards: [_; SHARDS] = std::array::from_fn(|s| {
            (std::mem::take(&mut turned[s]), std::mem::take(&mut plain[s]))
        });
        threads.for_each_owned(&mut shards[..partition.shards()], |s, (turned, plain)| {
            let tiles = turned.chunks_exact_mut(2 * TILE).zip(plain.chunks_exact_mut(2 * TILE));
            for (index, (turned, plain)) in partition.range(s).zip(tiles) {
                let (panel, group) = (index / groups, index % groups);
                turned.fill(0.0);
                for (slot, &column) in list[panel * PANEL..].iter().take(PANEL).enumerate() {
                    turned[slot * WORDS..][..WORDS].copy_from_slice(x.column(column, group));
                }
                unturn_tiles(turned, plain);
            }
        });
    }

    /// The words of a column in turned tiles, in a group of rows.
    fn column(&self, column: u32, group: usize) -> &[f32] {
        let (panel, slot) = (column as usize / PANEL, column as usize % PANEL);
        &self.words.data()[(panel * self.groups + group) * 2 * TILE + slot * WORDS..][..WORDS]
    }

    /// Packs pairs of so many rows and panels, where `read(panel, rows, floats)` writes at most
    /// 32 rows of a panel.
    fn pair_read(
        &mut self,
        shape: (usize, usize),
        threads: &Threads,
        read: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
    ) {
        self.each_group(shape, threads, |p, rows, tiles| {
            let mut floats = [0.0; PANEL * PANEL];
            let floats = &mut floats[..rows.len() * PANEL];
            read(p, rows, floats);
            pair_rows(floats, tiles);
        });
    }

    /// Gives the matrix so many rows and panels, and calls `pack(panel, rows, tiles)` for every 32
    /// rows or fewer of each panel, to write their two tiles.
    fn each_group(
        &mut self,
        (rows, panels): (usize, usize),
        threads: &Threads,
        pack: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
    ) {
        self.shape(rows, panels);
        let groups = self.groups.max(1);
        let partition = Partition::even(self.panels * self.groups);
        let mut shards = partition.split_wide(self.tiles_mut(), 2 * TILE);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, tiles| {
            for (index, tiles) in partition.range(s).zip(tiles.chunks_exact_mut(2 * TILE)) {
                let first = index % groups * PANEL;
                pack(index / groups, first..(first + PANEL).min(rows), tiles);
            }
        });
    }

    /// Packs pairs of at most 32 rows of a panel.
    pub(crate) fn pair_group(&mut self, p: usize, group: usize, rows: &[f32]) {
        let start = (p * self.groups + group) * 2 * TILE;
        pair_rows(rows, &mut self.tiles_mut()[start..][..2 * TILE]);
    }

    /// Packs the turned tiles of at most 32 rows of a panel.
    pub(crate) fn turn_group(&mut self, p: usize, group: usize, rows: &[f32]) {
        let mut pairs = [0.0; 2 * TILE];
        pair_rows(rows, &mut pairs);
        let start = (p * self.groups + group) * 2 * TILE;
        turn_tiles(&pairs, &mut self.tiles_mut()[start..][..2 * TILE]);
    }
}

/// The two tiles of an operand for each step of a sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'a> {
    words: &'a [f32],
    /// Words from one step to the next.
    stride: usize,
}

impl<'a> Steps<'a> {
    /// The tiles of 32 rows from `first` on, a step for each panel.
    fn of_rows(a: View16<'a>, first: usize) -> Self {
        Self { words: &a.all_words()[first * WORDS..], stride: a.panel_words() }
    }

    /// Whether there are two tiles at step `k`.
    fn reaches(self, k: usize) -> bool {
        k * self.stride + 2 * TILE <= self.words.len()
    }

    /// The words of both tiles of step `k`.
    #[cfg(test)]
    fn tiles(self, k: usize) -> &'a [f32] {
        &self.words[k * self.stride..][..2 * TILE]
    }

    /// The tiles of step `k`, if there are any.
    #[inline(always)]
    fn at(self, k: usize) -> *const f32 {
        self.words.as_ptr().wrapping_add(k * self.stride)
    }
}

dispatch_rounding! {
    /// Packs at most 32 rows of a panel as pairs; missing rows count as zero.
    fn pair_rows(rows: &[f32], tiles: &mut [f32]) = pair_kernel
}

#[inline(always)]
unsafe fn pair_kernel<S: Simd>(rows: &[f32], tiles: &mut [f32]) {
    assert!(rows.len() <= PANEL * PANEL && tiles.len() == 2 * TILE);
    let (left, right) = tiles.split_at_mut(TILE);
    let slots = left.chunks_exact_mut(WORDS).zip(right.chunks_exact_mut(WORDS));
    for (j, (left, right)) in slots.enumerate() {
        // SAFETY: a row holds PANEL floats, `left` and `right` WORDS words each.
        unsafe {
            let (low, high) = (row_or_zeros::<S>(rows, j), row_or_zeros::<S>(rows, j + WORDS));
            low.pair(high).store_halves(left.as_mut_ptr(), right.as_mut_ptr());
        }
    }
}

dispatch! {
    /// [`pair_rows`] of rows stored as words.
    fn pair_words(words: &[f32], tiles: &mut [f32]) = pair_words_kernel
}

#[inline(always)]
unsafe fn pair_words_kernel<S: Simd>(words: &[f32], tiles: &mut [f32]) {
    assert!(words.len() <= PANEL * WORDS && tiles.len() == 2 * TILE);
    let mut zeros = [0.0; PANEL * WORDS];
    // Missing rows count as zero.
    let words = if words.len() == zeros.len() {
        words
    } else {
        zeros[..words.len()].copy_from_slice(words);
        &zeros
    };
    let (upper, lower) = words.split_at(TILE);
    let (left, right) = tiles.split_at_mut(TILE);
    for k in (0..TILE).step_by(S::LANES) {
        // SAFETY: all four hold as many words, a multiple of the lanes.
        unsafe {
            let (a, b) = (S::load(upper.as_ptr().add(k)), S::load(lower.as_ptr().add(k)));
            S::store(left.as_mut_ptr().add(k), S::pair16(S::low16(a), S::low16(b)));
            S::store(right.as_mut_ptr().add(k), S::pair16(S::high16(a), S::high16(b)));
        }
    }
}

/// Row `i` of a panel, or zeros beyond the last.
#[inline(always)]
unsafe fn row_or_zeros<S: Simd>(rows: &[f32], i: usize) -> Wide<S> {
    // SAFETY: the caller promises a CPU with the instructions of `S`; a row holds PANEL floats.
    unsafe {
        match rows.get(i * PANEL..(i + 1) * PANEL) {
            Some(row) => Wide::<S>::load(row.as_ptr()),
            None => Wide::zero(),
        }
    }
}

dispatch! {
    /// Transposes two tiles.
    fn turn_tiles(pairs: &[f32; 2 * TILE], tiles: &mut [f32]) = turn_kernel
}

#[inline(always)]
unsafe fn turn_kernel<S: Simd>(pairs: &[f32; 2 * TILE], tiles: &mut [f32]) {
    assert!(tiles.len() == 2 * TILE);
    for (from, to) in pairs.chunks_exact(TILE).zip(tiles.chunks_exact_mut(TILE)) {
        // SAFETY: both are tiles of their own.
        unsafe { S::transpose_words(from.as_ptr(), to.as_mut_ptr()) };
    }
}

dispatch! {
    /// 32 rows of a panel as words, from their turned tiles.
    fn unturn_tiles(turned: &[f32], rows: &mut [f32]) = unturn_kernel
}

#[inline(always)]
unsafe fn unturn_kernel<S: Simd>(turned: &[f32], rows: &mut [f32]) {
    assert!(turned.len() == 2 * TILE && rows.len() == 2 * TILE);
    let mut pairs = [0.0; 2 * TILE];
    for (from, to) in turned.chunks_exact(TILE).zip(pairs.chunks_exact_mut(TILE)) {
        // SAFETY: both are tiles of their own.
        unsafe { S::transpose_words(from.as_ptr(), to.as_mut_ptr()) };
    }
    let (left, right) = pairs.split_at(TILE);
    let (low, high) = rows.split_at_mut(TILE);
    let words = left.iter().zip(right).zip(low.iter_mut().zip(high));
    for ((left, right), (low, high)) in words {
        let (left, right) = (left.to_bits(), right.to_bits());
        *low = f32::from_bits(left & 0xffff | right << 16);
        *high = f32::from_bits(left >> 16 | right & 0xffff_0000);
    }
}

/// `out = A · B` (or `+=`) for the first `out.rows()` rows of `a`, which has room for a multiple
/// of 32.
///
/// # Safety
/// As for [`BlockSums::configure`].
pub(crate) unsafe fn product<T: BlockSums>(
    a: &Panels16,
    b: &Packed,
    out: &mut RowsMut<'_>,
    store: Store,
) {
    assert!(a.rows().is_multiple_of(PANEL) && a.rows() >= out.rows(), "product: room for rows");
    assert_eq!((a.view().panels(), b.panels), (b.groups, out.panels()), "product: shapes");
    // SAFETY: as promised by the caller.
    let mut sums = unsafe { T::configure() };
    for p in 0..b.panels {
        for (block, out) in out.panel_mut(p).chunks_mut(PANEL * PANEL).enumerate() {
            let left = Steps::of_rows(a.view(), block * PANEL);
            multiply_block(&mut sums, b.groups, left, b.steps(p, 0), out, store);
        }
    }
}

/// At most 32 rows of a panel on their way to be rounded. Aligned like a panel's rows.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Block(pub(crate) [f32; PANEL * PANEL]);

/// `A · B` for some rows of `a`, the first and the number of which are multiples of 32: calls
/// `take(panel, first row, sums)` for each block of 32×32.
///
/// # Safety
/// As for [`BlockSums::configure`].
pub(crate) unsafe fn product_blocks<T: BlockSums>(
    a: View16<'_>,
    rows: Range<usize>,
    b: &Packed,
    mut take: impl FnMut(usize, usize, &mut [f32]),
) {
    assert!(rows.start.is_multiple_of(PANEL) && rows.len().is_multiple_of(PANEL), "whole blocks");
    assert!(rows.end <= a.rows() && a.panels() == b.groups, "product: shapes");
    // SAFETY: as promised by the caller.
    let mut sums = unsafe { T::configure() };
    let mut block = Block([0.0; PANEL * PANEL]);
    for p in 0..b.panels {
        for first in rows.clone().step_by(PANEL) {
            let (left, right) = (Steps::of_rows(a, first), b.steps(p, 0));
            multiply_full(&mut sums, b.groups, left, right, &mut block.0, Store::Overwrite);
            take(p, first, &mut block.0);
        }
    }
}

/// `A · B + E · F` for two choices of `E` and `F`, where `A · B` is summed once: calls
/// `take(choice, panel, first row, sums)` for each block of 32×32. Rows as in [`product_blocks`].
///
/// # Safety
/// As for [`BlockSums::configure`].
pub(crate) unsafe fn product_branches<T: BlockSums>(
    (a, b): (View16<'_>, &Packed),
    branches: [(View16<'_>, &Packed); 2],
    rows: Range<usize>,
    mut take: impl FnMut(usize, usize, usize, &mut [f32]),
) {
    assert!(rows.start.is_multiple_of(PANEL) && rows.len().is_multiple_of(PANEL), "whole blocks");
    for (left, right) in [(a, b), branches[0], branches[1]] {
        let fits = left.panels() == right.groups && right.panels == b.panels;
        assert!(fits && (rows.end <= left.rows() || right.groups == 0), "product: shapes");
    }
    // SAFETY: as promised by the caller.
    let mut sums = unsafe { T::configure() };
    let [mut shared, mut block] = [(); 2].map(|()| Block([0.0; PANEL * PANEL]));
    for p in 0..b.panels {
        for first in rows.clone().step_by(PANEL) {
            sums.zero();
            sums.add_products(b.groups, Steps::of_rows(a, first), b.steps(p, 0));
            sums.store(&mut shared.0);
            for (choice, (e, f)) in branches.into_iter().enumerate() {
                if choice > 0 {
                    sums.load(&shared.0);
                }
                if f.groups > 0 {
                    sums.add_products(f.groups, Steps::of_rows(e, first), f.steps(p, 0));
                }
                sums.store(&mut block.0);
                take(choice, p, first, &mut block.0);
            }
        }
    }
}

/// Groups of rows whose tiles stay in the level-2 cache while all panels pass by.
const NEAR_GROUPS: usize = 32;

/// `out = Aᵀ · B` (or `+=`) with `a` turned and `b` in pairs, for the rows of the output that
/// belong to the panels of `a` from `first` on.
///
/// # Safety
/// As for [`BlockSums::configure`].
pub(crate) unsafe fn transposed_product<T: BlockSums>(
    a: &Packed,
    first: usize,
    b: &Packed,
    out: &mut RowsMut<'_>,
    store: Store,
) {
    assert_eq!(a.groups, b.groups, "transposed product: rows");
    assert!(first + out.rows().div_ceil(PANEL) <= a.panels, "transposed product: output rows");
    assert_eq!(b.panels, out.panels(), "transposed product: output columns");
    // SAFETY: as promised by the caller.
    let mut sums = unsafe { T::configure() };
    // At least once: the sum over no rows is written too.
    for start in (0..a.groups.max(1)).step_by(NEAR_GROUPS) {
        let depth = NEAR_GROUPS.min(a.groups - start);
        let store = if start == 0 { store } else { Store::Add };
        for p in 0..b.panels {
            for (q, out) in out.panel_mut(p).chunks_mut(PANEL * PANEL).enumerate() {
                let (left, right) = (a.steps(first + q, start), b.steps(p, start));
                if store == Store::Add {
                    sums.prefetch(out.as_ptr().wrapping_add(PANEL * PANEL));
                }
                multiply_block(&mut sums, depth, left, right, out, store);
            }
        }
    }
}

/// Up to 32 rows of an output panel: through a full block in memory if there are fewer.
fn multiply_block<T: BlockSums>(
    sums: &mut T,
    depth: usize,
    left: Steps<'_>,
    right: Steps<'_>,
    out: &mut [f32],
    store: Store,
) {
    if out.len() == PANEL * PANEL {
        return multiply_full(sums, depth, left, right, out, store);
    }
    let mut full = Block([0.0; PANEL * PANEL]);
    full.0[..out.len()].copy_from_slice(out);
    multiply_full(sums, depth, left, right, &mut full.0, store);
    out.copy_from_slice(&full.0[..out.len()]);
}

/// A block of 32×32.
fn multiply_full<T: BlockSums>(
    sums: &mut T,
    depth: usize,
    left: Steps<'_>,
    right: Steps<'_>,
    out: &mut [f32],
    store: Store,
) {
    match store {
        Store::Add => sums.load(out),
        Store::Overwrite => sums.zero(),
    }
    sums.add_products(depth, left, right);
    sums.store(out);
}

/// Where the four registers of sums lie in a block.
const CORNERS: [usize; 4] = [0, WORDS, WORDS * PANEL, WORDS * PANEL + WORDS];

/// Four of the registers hold the sums, two each operand.
impl<T: Tiles> BlockSums for T {
    #[inline(always)]
    unsafe fn configure() -> Self {
        // SAFETY: as promised by the caller.
        unsafe { <T as Tiles>::configure() }
    }

    #[inline(always)]
    fn zero(&mut self) {
        self.clear::<0>();
        self.clear::<1>();
        self.clear::<2>();
        self.clear::<3>();
    }

    #[inline(always)]
    fn load(&mut self, block: &[f32]) {
        assert_eq!(block.len(), PANEL * PANEL, "a full block");
        // SAFETY: each corner of a block has 16 rows of 16 floats, a panel's row apart.
        unsafe {
            self.read::<0>(block.as_ptr().add(CORNERS[0]), PANEL_BYTES);
            self.read::<1>(block.as_ptr().add(CORNERS[1]), PANEL_BYTES);
            self.read::<2>(block.as_ptr().add(CORNERS[2]), PANEL_BYTES);
            self.read::<3>(block.as_ptr().add(CORNERS[3]), PANEL_BYTES);
        }
    }

    #[inline(always)]
    fn store(&mut self, block: &mut [f32]) {
        assert_eq!(block.len(), PANEL * PANEL, "a full block");
        // SAFETY: each corner of a block has 16 rows of 16 floats, a panel's row apart.
        unsafe {
            self.write::<0>(block.as_mut_ptr().add(CORNERS[0]), PANEL_BYTES);
            self.write::<1>(block.as_mut_ptr().add(CORNERS[1]), PANEL_BYTES);
            self.write::<2>(block.as_mut_ptr().add(CORNERS[2]), PANEL_BYTES);
            self.write::<3>(block.as_mut_ptr().add(CORNERS[3]), PANEL_BYTES);
        }
    }

    #[inline(always)]
    fn prefetch(&mut self, block: *const f32) {
        (0..4).for_each(|tile| self.ask_for(block.wrapping_add(tile * TILE)));
    }

    /// Each register is loaded for the next `k` as soon as its last product of this one has begun,
    /// and the lines of the `k` after that are asked for: where two threads share a core, loads and
    /// products do not overlap by themselves.
    #[inline(always)]
    fn add_products(&mut self, depth: usize, left: Steps<'_>, right: Steps<'_>) {
        let Some(last) = depth.checked_sub(1) else { return };
        assert!(left.reaches(last) && right.reaches(last), "tiles for every step");
        let operands = |k: usize| (left.at(k), right.at(k));
        // SAFETY: both operands of a `k` up to the last are two packed tiles.
        unsafe {
            let (left, right) = operands(0);
            self.read::<4>(left, PACKED);
            self.read::<5>(left.add(TILE), PACKED);
            self.read::<6>(right, PACKED);
            self.read::<7>(right.add(TILE), PACKED);
            for k in 1..=last {
                let ((left, right), (far_left, far_right)) = (operands(k), operands(k + 1));
                self.multiply::<0, 4, 6>();
                self.ask_for(far_right);
                self.multiply::<2, 5, 6>();
                self.read::<6>(right, PACKED);
                self.ask_for(far_left);
                self.multiply::<3, 5, 7>();
                self.read::<5>(left.add(TILE), PACKED);
                self.ask_for(far_left.wrapping_add(TILE));
                self.multiply::<1, 4, 7>();
                self.read::<4>(left, PACKED);
                self.read::<7>(right.add(TILE), PACKED);
                self.ask_for(far_right.wrapping_add(TILE));
            }
            self.multiply::<0, 4, 6>();
            self.multiply::<2, 5, 6>();
            self.multiply::<3, 5, 7>();
            self.multiply::<1, 4, 7>();
        }
    }
}

/// So many products of 32×32 by 32×32, of zeros, on registers alone.
///
/// # Safety
/// As for [`Tiles::configure`].
pub(crate) unsafe fn repeat_products<T: Tiles>(steps: usize) -> f32 {
    // SAFETY: as promised by the caller.
    let mut tiles = unsafe { <T as Tiles>::configure() };
    for _ in 0..steps {
        tiles.multiply::<0, 4, 6>();
        tiles.multiply::<2, 5, 6>();
        tiles.multiply::<3, 5, 7>();
        tiles.multiply::<1, 4, 7>();
    }
    0.0
}

/// The same with operands that are loaded from memory each time, a few KiB of zeros.
///
/// # Safety
/// As for [`BlockSums::configure`].
pub(crate) unsafe fn repeat_loaded_products<T: BlockSums>(steps: usize) -> f32 {
    // SAFETY: as promised by the caller.
    let mut sums = unsafe { T::configure() };
    let zeros = [Block([0.0; PANEL * PANEL]), Block([0.0; PANEL * PANEL])];
    // The same tiles again and again.
    let [left, right] = zeros.each_ref().map(|zeros| Steps { words: &zeros.0, stride: 0 });
    sums.add_products(steps, left, right);
    zeros[0].0[0]
}
