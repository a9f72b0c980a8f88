//! Dense products in a chosen [`Arithmetic`]: operands are prepared once and multiplied often.
//!
//! With bfloat16 the operands are rounded and the products summed in `f32`, whatever the CPU: on a
//! matrix unit where there is one, by the instruction for pairs where that is quick, otherwise with
//! the `f32` kernels on rounded operands. Only the order of the sums differs.

use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use crate::bf16::{Panels16, View16, round_rows};
use crate::panels::{PANEL, Panels, RowsMut, RowsRef};
use crate::par::Threads;
use crate::product::{self, Store};
use crate::tiles::{Block, Packed};

/// Runs a function of `tiles` with the registers of an arithmetic.
macro_rules! with_tiles {
    ($arithmetic:expr, $function:ident($($argument:expr),*)) => {
        match $arithmetic.0 {
            // SAFETY: this arithmetic is chosen only where the matrix unit was found usable.
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Kind::Amx => unsafe { crate::tiles::$function::<crate::tiles::amx::Amx>($($argument),*) },
            // SAFETY: this arithmetic is chosen only where the CPU was found to have AVX-512 BF16.
            #[cfg(target_arch = "x86_64")]
            Kind::Dots => unsafe {
                use crate::tiles::dots::{InMemory, Instruction};
                crate::tiles::$function::<InMemory<Instruction>>($($argument),*)
            },
            // SAFETY: plain Rust needs no instructions.
            #[cfg(test)]
            Kind::Emulated => unsafe {
                crate::tiles::$function::<crate::tiles::emulated::Emulated>($($argument),*)
            },
            // SAFETY: as above.
            #[cfg(test)]
            Kind::PlainDots => unsafe {
                use crate::tiles::dots::{InMemory, Plain};
                crate::tiles::$function::<InMemory<Plain>>($($argument),*)
            },
            Kind::F32 | Kind::Rounded => {
                // On a target without tiles nothing else reads them.
                let _ = ($(&$argument,)*);
                unreachable!("these have no tiles")
            }
        }
    };
}

mod tiled;

pub use tiled::{TiledInputs, TiledWeights};

/// How dense products compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic(Kind);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    F32,
    /// bfloat16 operands, kept as floats.
    Rounded,
    /// bfloat16 operands on tile registers.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    Amx,
    /// bfloat16 operands in pairs.
    #[cfg(target_arch = "x86_64")]
    Dots,
    /// [`Kind::Amx`] in plain Rust.
    #[cfg(test)]
    Emulated,
    /// [`Kind::Dots`] in plain Rust.
    #[cfg(test)]
    PlainDots,
}

impl Arithmetic {
    /// Operands as they are.
    pub const F32: Self = Self(Kind::F32);

    /// Operands rounded to bfloat16, by the best means of this CPU.
    pub fn bf16() -> Self {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if has_matrix_unit() {
            return Self(Kind::Amx);
        }
        #[cfg(target_arch = "x86_64")]
        if multiplies_pairs() {
            return Self(Kind::Dots);
        }
        Self(Kind::Rounded)
    }

    /// Whether operands are rounded to bfloat16.
    pub fn is_bf16(self) -> bool {
        self.0 != Kind::F32
    }

    /// The name of the kernels for reports: `amx`, `avx512bf16` or `f32`.
    pub fn kernels(self) -> &'static str {
        match self.0 {
            Kind::F32 | Kind::Rounded => "f32",
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Kind::Amx => "amx",
            #[cfg(target_arch = "x86_64")]
            Kind::Dots => "avx512bf16",
            #[cfg(test)]
            Kind::Emulated | Kind::PlainDots => "emulated",
        }
    }

    /// The height of the blocks of output that the kernels work on.
    pub fn tile_rows(self) -> usize {
        if self.uses_tiles() { PANEL } else { 14 }
    }

    /// Whether operands are packed into tiles of bfloat16.
    pub fn uses_tiles(self) -> bool {
        !matches!(self.0, Kind::F32 | Kind::Rounded)
    }

    /// Whether products run on a matrix unit, so quick that zeros are better multiplied than left
    /// out.
    pub fn uses_matrix_unit(self) -> bool {
        match self.0 {
            #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
            Kind::Amx => true,
            #[cfg(test)]
            Kind::Emulated => true,
            _ => false,
        }
    }
}

/// Whether products of bfloat16 are much faster here than those of floats: on a matrix unit, or by
/// the instruction for pairs where the CPU runs it at twice the rate of floats.
pub fn has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    if has_fast_pairs() {
        return true;
    }
    has_matrix_unit()
}

/// Whether products of bfloat16 without a matrix unit run by the instruction for pairs: where that is
/// fast, and where `BLNN_KERNELS` names it.
#[cfg(target_arch = "x86_64")]
fn multiplies_pairs() -> bool {
    use crate::simd::{Isa, isa, wish};
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let is_named = wish() == Ok(Some(Isa::Avx512Bf16));
        has_fast_pairs() || (is_named && isa() == Isa::Avx512Bf16)
    })
}

/// CPUs by AMD run the instruction for pairs at twice the rate of floats, as measured on Zen 5. On the
/// one by Intel that it was measured on it has half that of floats.
#[cfg(target_arch = "x86_64")]
fn has_fast_pairs() -> bool {
    use crate::simd::{Isa, isa};
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| isa() == Isa::Avx512Bf16 && is_by_amd())
}

/// CPUID leaf 0: the twelve letters of the maker's name.
#[cfg(target_arch = "x86_64")]
fn is_by_amd() -> bool {
    let found = std::arch::x86_64::__cpuid(0);
    [found.ebx, found.edx, found.ecx].map(u32::to_le_bytes).as_flattened() == b"AuthenticAMD"
}

/// Whether products of bfloat16 run on a matrix unit here: the CPU has one, the operating system
/// allows it, and `BLNN_KERNELS` does not name lesser kernels.
pub fn has_matrix_unit() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            let is_forced = matches!(crate::simd::wish(), Ok(Some(_)));
            !is_forced && crate::tiles::amx::available()
        })
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

/// So many products of 32×32 by 32×32 on registers alone: what a matrix unit can do at most.
///
/// # Panics
/// Without a matrix unit.
pub(crate) fn multiply_registers(steps: usize) -> f32 {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if has_matrix_unit() {
        // SAFETY: the matrix unit was found usable.
        return unsafe { crate::tiles::repeat_products::<crate::tiles::amx::Amx>(steps) };
    }
    unreachable!("no matrix unit, asked for {steps} products")
}

/// The same of operands that are loaded each time, on whatever multiplies tiles.
///
/// # Panics
/// If nothing does.
pub(crate) fn multiply_loaded(steps: usize) -> f32 {
    let arithmetic = Arithmetic::bf16();
    with_tiles!(arithmetic, repeat_loaded_products(steps))
}

/// What an operand is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Left of `A · B`.
    rows: bool,
    /// Right of `A · B` or `Aᵀ · B`.
    right: bool,
    /// Left of `Aᵀ · B`.
    turned: bool,
}

impl Uses {
    /// Right of products: weights.
    pub const WEIGHTS: Self = Self { rows: false, right: true, turned: false };
    /// Left of `A · B`.
    pub const ROWS: Self = Self { rows: true, right: false, turned: false };
    /// Left of `Aᵀ · B`.
    pub const TURNED: Self = Self { rows: false, right: false, turned: true };
    /// Left of `A · B`, and of `Aᵀ · B` for the gradient of `B`.
    pub const INPUT: Self = Self { rows: true, right: false, turned: true };
    /// Left of `A · B`, and right of `Aᵀ · B`.
    pub const GRADIENT: Self = Self { rows: true, right: true, turned: false };
}

/// Buffers that an operand is prepared in. They grow when they must and are used again.
#[derive(Clone, Debug, Default)]
pub struct Operand {
    arithmetic: Arithmetic,
    rounded: Panels,
    rows: Panels16,
    pairs: Packed,
    turned: Packed,
    collected: Collected,
}

/// Blocks whose forms for sums over rows are kept together.
#[derive(Clone, Copy, Debug, Default)]
struct Collected {
    /// All rows, or 0 if every matrix is prepared by itself.
    rows: usize,
    /// Rows of the blocks so far.
    done: usize,
}

/// A matrix ready to be multiplied.
#[derive(Clone, Debug)]
pub struct Prepared<'a> {
    plain: RowsRef<'a>,
    buffers: &'a Operand,
}

impl Operand {
    /// Empty buffers.
    pub fn new(arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..Self::default() }
    }

    /// Collects the blocks that are prepared from now on, so many rows in all: on tiles one
    /// [`transposed_product`] then sums over all of them. All but the last must have a multiple of
    /// 32 rows. Elsewhere a block stands for itself, and there must be one only.
    pub fn collect(&mut self, rows: usize) {
        self.collected = Collected { rows, done: 0 };
    }

    /// Prepares rows of a matrix for the given uses. With [`Arithmetic::F32`] this does nothing.
    pub fn prepare<'a>(&'a mut self, x: RowsRef<'a>, uses: Uses) -> Prepared<'a> {
        if self.arithmetic.uses_tiles() {
            self.pack(&x, uses);
        } else if self.arithmetic.is_bf16() {
            self.round(&x);
        }
        self.prepared(x)
    }

    /// Prepares a matrix of so many rows that `write(panel, rows, values)` computes. On tiles
    /// it is written block by block and never stored as floats; otherwise `plain` holds it.
    ///
    /// # Panics
    /// If `plain` has fewer rows.
    #[track_caller]
    pub fn fill<'a>(
        &'a mut self,
        rows: usize,
        plain: &'a mut Panels,
        uses: Uses,
        mut write: impl FnMut(usize, Range<usize>, &mut [f32]),
    ) -> Prepared<'a> {
        if self.arithmetic.uses_tiles() {
            self.make_room(rows, plain.panels(), uses);
            let mut block = Block([0.0; PANEL * PANEL]);
            for p in 0..plain.panels() {
                for first in (0..rows).step_by(PANEL) {
                    let part = first..(first + PANEL).min(rows);
                    let values = &mut block.0[..part.len() * PANEL];
                    write(p, part, values);
                    self.pack_block(p, first, values, uses);
                }
            }
            self.collected.done += rows;
            return self.prepared(plain.rows_ref(0..rows));
        }
        for p in 0..plain.panels() {
            write(p, 0..rows, &mut plain.panel_mut(p)[..rows * PANEL]);
        }
        self.prepare(plain.rows_ref(0..rows), uses)
    }

    /// Prepares a matrix of bfloat16 as the right of products on tiles.
    pub fn prepare_words(&mut self, x: View16<'_>, threads: &Threads) {
        self.pairs.pair_words(x, threads);
    }

    /// The rows that were prepared last, to be used again; they must not have changed since.
    pub fn prepared<'a>(&'a self, x: RowsRef<'a>) -> Prepared<'a> {
        Prepared { plain: x, buffers: self }
    }

    fn round(&mut self, x: &RowsRef<'_>) {
        let cols = x.panels() * PANEL;
        if self.rounded.rows() < x.rows() || self.rounded.cols() != cols {
            self.rounded = Panels::zeros(x.rows(), cols);
        }
        for p in 0..x.panels() {
            round_rows(x.panel(p), &mut self.rounded.panel_mut(p)[..x.rows() * PANEL]);
        }
    }

    fn pack(&mut self, x: &RowsRef<'_>, uses: Uses) {
        self.make_room(x.rows(), x.panels(), uses);
        for p in 0..x.panels() {
            for (block, rows) in x.panel(p).chunks(PANEL * PANEL).enumerate() {
                self.pack_block(p, block * PANEL, rows, uses);
            }
        }
        self.collected.done += x.rows();
    }

    /// Gives the packed forms room for a block, and those that are summed over rows for all that
    /// are collected with it.
    fn make_room(&mut self, rows: usize, panels: usize, uses: Uses) {
        if uses.rows {
            let (rows, cols) = (rows.next_multiple_of(PANEL), panels * PANEL);
            if self.rows.rows() < rows || self.rows.cols() != cols {
                self.rows = Panels16::zeros(rows, cols);
            }
        }
        if self.collected.rows == 0 {
            self.collected.done = 0;
        }
        assert!(self.collected.done.is_multiple_of(PANEL), "only the last block may end in a tile");
        let summed = self.collected.rows.max(rows);
        assert!(self.collected.done + rows <= summed, "more rows than are collected");
        if uses.right {
            self.pairs.shape(summed, panels);
        }
        if uses.turned {
            self.turned.shape(summed, panels);
        }
    }

    /// Packs at most 32 rows of a panel from row `first` on, a multiple of 32.
    fn pack_block(&mut self, p: usize, first: usize, rows: &[f32], uses: Uses) {
        if uses.rows {
            self.rows.copy_block(p, first, rows);
        }
        let group = (self.collected.done + first) / PANEL;
        if uses.right {
            self.pairs.pair_group(p, group, rows);
        }
        if uses.turned {
            self.turned.turn_group(p, group, rows);
        }
    }
}

impl Prepared<'_> {
    /// The operand as the `f32` kernels read it.
    fn floats(&self) -> RowsRef<'_> {
        if self.buffers.arithmetic.is_bf16() {
            self.buffers.rounded.rows_ref(0..self.plain.rows())
        } else {
            self.plain.clone()
        }
    }
}

/// `out = A · B` (or `+=`). `a` was prepared as rows and `b` as weights, in one arithmetic.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn product(a: &Prepared<'_>, b: &Prepared<'_>, out: &mut RowsMut<'_>, store: Store) {
    let arithmetic = same(a, b);
    assert_eq!(a.plain.rows(), out.rows(), "product: output shape");
    if arithmetic.uses_tiles() {
        with_tiles!(arithmetic, product(&a.buffers.rows, &b.buffers.pairs, out, store));
    } else {
        product::product_rows(&a.floats(), &b.floats(), out, store);
    }
}

/// Hands `A · B` to `each(panel, rows, values)`, which may change the values. On tiles that
/// is block by block, while a block is in the nearest cache; otherwise `plain` holds the product.
/// `a` was prepared as rows and `b` as weights, in one arithmetic.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn product_each(
    a: &Prepared<'_>,
    b: &Prepared<'_>,
    plain: &mut Panels,
    mut each: impl FnMut(usize, Range<usize>, &mut [f32]),
) {
    let (arithmetic, rows) = (same(a, b), a.plain.rows());
    if arithmetic.uses_tiles() {
        let whole = 0..rows.next_multiple_of(PANEL);
        let take = |p: usize, first: usize, sums: &mut [f32]| {
            let part = first..(first + PANEL).min(rows);
            let values = &mut sums[..part.len() * PANEL];
            each(p, part, values);
        };
        let (a, b) = (a.buffers.rows.view(), &b.buffers.pairs);
        with_tiles!(arithmetic, product_blocks(a, whole, b, take));
    } else {
        product::product_rows(
            &a.floats(),
            &b.floats(),
            &mut plain.rows_mut(0..rows),
            Store::Overwrite,
        );
        for p in 0..plain.panels() {
            each(p, 0..rows, &mut plain.panel_mut(p)[..rows * PANEL]);
        }
    }
}

/// Prepares `A · B` for the given uses, after `each` has changed it as in [`product_each`].
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn product_prepared<'a>(
    a: &Prepared<'_>,
    b: &Prepared<'_>,
    plain: &'a mut Panels,
    (out, uses): (&'a mut Operand, Uses),
    mut each: impl FnMut(usize, Range<usize>, &mut [f32]),
) -> Prepared<'a> {
    let (rows, panels) = (a.plain.rows(), plain.panels());
    if out.arithmetic.uses_tiles() {
        out.make_room(rows, panels, uses);
        product_each(a, b, plain, |p, part, values| {
            let first = part.start;
            each(p, part, values);
            out.pack_block(p, first, values, uses);
        });
        out.collected.done += rows;
        return out.prepared(plain.rows_ref(0..rows));
    }
    product_each(a, b, plain, each);
    out.prepare(plain.rows_ref(0..rows), uses)
}

/// `out = Aᵀ · B` (or `+=`). `a` was prepared as turned and `b` as a gradient, in one arithmetic.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn transposed_product(a: &Prepared<'_>, b: &Prepared<'_>, out: &mut Panels, store: Store) {
    let arithmetic = same(a, b);
    assert_eq!(a.plain.rows(), b.plain.rows(), "transposed product: rows");
    if arithmetic.uses_tiles() {
        assert_eq!(a.plain.panels(), out.rows().div_ceil(PANEL), "transposed product: columns");
        let out = &mut out.rows_mut(0..out.rows());
        with_tiles!(
            arithmetic,
            transposed_product(&a.buffers.turned, 0, &b.buffers.pairs, out, store)
        );
    } else {
        product::transposed_product(&a.floats(), &b.floats(), out, store);
    }
}

#[track_caller]
fn same(a: &Prepared<'_>, b: &Prepared<'_>) -> Arithmetic {
    assert_eq!(a.buffers.arithmetic, b.buffers.arithmetic, "operands of one arithmetic");
    a.buffers.arithmetic
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Matrix, bf16};

    const ROUNDED: Arithmetic = Arithmetic(Kind::Rounded);
    const EMULATED: Arithmetic = Arithmetic(Kind::Emulated);
    const PLAIN_DOTS: Arithmetic = Arithmetic(Kind::PlainDots);
    const ROUNDING: [(Arithmetic, &str); 3] =
        [(ROUNDED, "rounded"), (EMULATED, "emulated"), (PLAIN_DOTS, "dots")];

    fn sample(rows: usize, cols: usize, seed: f32) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 31 + j * 17) as f32 * 0.13 + seed).sin())
    }

    /// The sum of products of rounded operands in double precision.
    pub(super) fn naive(depth: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
        let term = |k| f64::from(bf16::round(a(k))) * f64::from(bf16::round(b(k)));
        (0..depth).map(term).sum::<f64>() as f32
    }

    /// Odd numbers of rows, columns and pairs, whole tiles, and more than one of each.
    const SHAPES: [(usize, usize, usize); 9] = [
        (1, 1, 1),
        (3, 5, 7),
        (17, 33, 9),
        (64, 128, 65),
        (32, 64, 32),
        (31, 15, 96),
        (33, 48, 31),
        (126, 200, 40),
        (15, 300, 33),
    ];

    fn forward(arithmetic: Arithmetic, (m, k, n): (usize, usize, usize), store: Store) -> Panels {
        let [a, b] = [sample(m, k, 0.1), sample(k, n, 0.7)].map(|x| Panels::from_matrix(&x));
        let mut buffers = [Operand::new(arithmetic), Operand::new(arithmetic)];
        // A larger block first: what it leaves in the buffers must not matter.
        let large = Panels::from_matrix(&Matrix::from_fn(m + 40, k, |_, _| f32::NAN));
        buffers[0].prepare(large.rows_ref(0..m + 40), Uses::INPUT);
        let [left, right] = &mut buffers;
        let a = left.prepare(a.rows_ref(0..m), Uses::INPUT);
        let b = right.prepare(b.rows_ref(0..k), Uses::WEIGHTS);
        let mut out = Panels::from_matrix(&Matrix::from_fn(m + 2, n, |_, _| 1.0));
        product(&a, &b, &mut out.rows_mut(1..m + 1), store);
        out
    }

    fn backward(arithmetic: Arithmetic, (k, m, n): (usize, usize, usize), store: Store) -> Panels {
        let [a, b] = [sample(k, m, 0.3), sample(k, n, 0.9)].map(|x| Panels::from_matrix(&x));
        let mut buffers = [Operand::new(arithmetic), Operand::new(arithmetic)];
        let [left, right] = &mut buffers;
        let large = [m, n].map(|c| Matrix::from_fn(k + 40, c, |_, _| f32::NAN));
        let large = large.map(|x| Panels::from_matrix(&x));
        left.prepare(large[0].rows_ref(0..k + 40), Uses::INPUT);
        right.prepare(large[1].rows_ref(0..k + 40), Uses::GRADIENT);
        let a = left.prepare(a.rows_ref(0..k), Uses::TURNED);
        let b = right.prepare(b.rows_ref(0..k), Uses::GRADIENT);
        let mut out = Panels::from_matrix(&Matrix::from_fn(m, n, |_, _| 1.0));
        transposed_product(&a, &b, &mut out, store);
        out
    }

    fn assert_close(got: f32, want: f32, depth: usize, place: &str) {
        let error = 1e-6 * depth as f32 + 1e-6;
        assert!((got - want).abs() < error, "{place}: {got} instead of {want}");
    }

    #[test]
    fn products_are_those_of_rounded_operands_on_all_remainders() {
        for (arithmetic, name) in ROUNDING {
            for (m, k, n) in SHAPES {
                for (store, before) in [(Store::Overwrite, 0.0), (Store::Add, 1.0)] {
                    let out = forward(arithmetic, (m, k, n), store);
                    let (a, b) = (sample(m, k, 0.1), sample(k, n, 0.7));
                    for j in 0..n {
                        assert_eq!((out.get(0, j), out.get(m + 1, j)), (1.0, 1.0), "neighbours");
                        for i in 0..m {
                            let want = before + naive(k, |k| a.get(i, k), |k| b.get(k, j));
                            let place = format!("{name} {m}×{k}×{n} ({i}, {j})");
                            assert_close(out.get(i + 1, j), want, k, &place);
                        }
                    }
                    let padding = out.row_of(out.panels() - 1, 1);
                    assert!(n % PANEL == 0 || padding[n % PANEL..].iter().all(|&v| v == 0.0));
                }
            }
        }
    }

    #[test]
    fn transposed_products_are_those_of_rounded_operands_on_all_remainders() {
        for (arithmetic, name) in ROUNDING {
            for (k, m, n) in SHAPES {
                for (store, before) in [(Store::Overwrite, 0.0), (Store::Add, 1.0)] {
                    let out = backward(arithmetic, (k, m, n), store);
                    let (a, b) = (sample(k, m, 0.3), sample(k, n, 0.9));
                    for i in 0..m {
                        for j in 0..n {
                            let want = before + naive(k, |k| a.get(k, i), |k| b.get(k, j));
                            let place = format!("{name} {k}×{m}×{n} ({i}, {j})");
                            assert_close(out.get(i, j), want, k, &place);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_that_are_collected_are_summed_over_together() {
        let (rows, m, n) = (32 + 64 + 17, 40, 33);
        let (a, b) = (sample(rows, m, 0.3), sample(rows, n, 0.9));
        let mut out = Panels::from_matrix(&Matrix::from_fn(m, n, |_, _| 1.0));
        let [mut left, mut right] = [(); 2].map(|()| Operand::new(EMULATED));
        left.collect(rows);
        right.collect(rows);
        let [a_panels, b_panels] = [&a, &b].map(Panels::from_matrix);
        for range in [0..32, 32..96, 96..rows] {
            left.prepare(a_panels.rows_ref(range.clone()), Uses::TURNED);
            let count = range.len();
            let mut plain = Panels::zeros(count, n);
            right.fill(count, &mut plain, Uses::GRADIENT, |p, at, values| {
                let from = b_panels.rows_ref(range.start + at.start..range.start + at.end);
                values.copy_from_slice(from.panel(p));
            });
        }
        let last = 96..rows;
        let a_last = left.prepared(a_panels.rows_ref(last.clone()));
        let b_last = right.prepared(b_panels.rows_ref(last));
        transposed_product(&a_last, &b_last, &mut out, Store::Overwrite);
        for i in 0..m {
            for j in 0..n {
                let want = naive(rows, |k| a.get(k, i), |k| b.get(k, j));
                assert_close(out.get(i, j), want, rows, &format!("({i}, {j})"));
            }
        }
    }

    /// What a product hands on, and what it is prepared as, is the product of rounded operands.
    #[test]
    fn products_are_handed_on_block_by_block() {
        for arithmetic in [Arithmetic::F32, ROUNDED, EMULATED, PLAIN_DOTS] {
            let (m, k, n) = (70, 64, 40);
            let [a, b] = [sample(m, k, 0.1), sample(k, n, 0.7)].map(|x| Panels::from_matrix(&x));
            let want = {
                let mut buffers = [Operand::new(arithmetic), Operand::new(arithmetic)];
                let [left, right] = &mut buffers;
                let a = left.prepare(a.rows_ref(0..m), Uses::ROWS);
                let b = right.prepare(b.rows_ref(0..k), Uses::WEIGHTS);
                let mut out = Panels::zeros(m, n);
                product(&a, &b, &mut out.rows_mut(0..m), Store::Overwrite);
                out
            };
            let mut buffers = [(); 3].map(|()| Operand::new(arithmetic));
            let [left, right, result] = &mut buffers;
            let a = left.prepare(a.rows_ref(0..m), Uses::ROWS);
            let b = right.prepare(b.rows_ref(0..k), Uses::WEIGHTS);
            let (mut seen, mut plain) = (Panels::zeros(m, n), Panels::zeros(m, n));
            let doubled = (result, Uses::ROWS);
            let doubled = product_prepared(&a, &b, &mut plain, doubled, |p, rows, values| {
                let at = rows.start * PANEL..rows.end * PANEL;
                seen.panel_mut(p)[at].copy_from_slice(values);
                for value in values.iter_mut() {
                    *value *= 2.0;
                }
            });
            assert_eq!(seen, want, "{arithmetic:?}");
            let unit =
                Panels::from_matrix(&Matrix::from_fn(n, n, |i, j| f32::from(u8::from(i == j))));
            let mut one = Operand::new(arithmetic);
            let one = one.prepare(unit.rows_ref(0..n), Uses::WEIGHTS);
            let mut out = Panels::zeros(m, n);
            product(&doubled, &one, &mut out.rows_mut(0..m), Store::Overwrite);
            let rounded =
                |v: f32| if arithmetic.is_bf16() { bf16::round(2.0 * v) } else { 2.0 * v };
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert_eq!(out.get(i, j), rounded(want.get(i, j)), "{arithmetic:?} ({i}, {j})");
            }
        }
    }

    #[test]
    fn operands_as_they_are_give_the_bits_of_the_f32_product() {
        let (m, k, n) = (29, 64, 33);
        let [a, b] = [sample(m, k, 0.1), sample(k, n, 0.7)].map(|x| Panels::from_matrix(&x));
        let mut want = Panels::zeros(m, n);
        let b = b.rows_ref(0..k);
        product::product_rows(&a.rows_ref(0..m), &b, &mut want.rows_mut(0..m), Store::Overwrite);
        let got = forward(Arithmetic::F32, (m, k, n), Store::Overwrite);
        assert!((0..m).all(|i| (0..n).all(|j| got.get(i + 1, j) == want.get(i, j))));
    }

    /// Products by instructions against those by their twin in plain Rust.
    #[cfg(target_arch = "x86_64")]
    fn assert_products_agree(instructions: Arithmetic, twin: Arithmetic) {
        for shape in SHAPES {
            for store in [Store::Overwrite, Store::Add] {
                assert_eq!(forward(instructions, shape, store), forward(twin, shape, store));
                assert_eq!(backward(instructions, shape, store), backward(twin, shape, store));
            }
        }
    }

    /// The instructions are those that were assembled; where the CPU has none, what they do is what
    /// the manual says, as `trap` reads it.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn products_by_tile_instructions_have_the_bits_of_their_twin() {
        if !crate::tiles::amx::available() {
            crate::tiles::trap::install();
        }
        assert_products_agree(Arithmetic(Kind::Amx), EMULATED);
    }

    /// What no machine without the instructions can show: that the CPU does what their twin does.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    #[ignore = "needs AMX"]
    fn needs_amx_products_have_the_bits_of_their_twin() {
        assert!(crate::tiles::amx::available(), "this CPU or system has no AMX");
        assert_products_agree(Arithmetic(Kind::Amx), EMULATED);
    }

    /// The same for the instruction of AVX-512 that multiplies pairs.
    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "needs AVX-512 BF16"]
    fn needs_avx512bf16_products_have_the_bits_of_their_twin() {
        assert!(std::arch::is_x86_feature_detected!("avx512bf16"), "this CPU has no AVX-512 BF16");
        assert_products_agree(Arithmetic(Kind::Dots), PLAIN_DOTS);
    }

    #[test]
    fn the_kernels_are_named() {
        assert_eq!(Arithmetic::F32.kernels(), "f32");
        assert_eq!(Arithmetic::bf16().uses_matrix_unit(), has_matrix_unit());
        let expected = match crate::simd::wish() {
            Ok(Some(Isa::Avx512Bf16)) => Some("avx512bf16"),
            Ok(Some(_)) => Some("f32"),
            _ if has_matrix_unit() => Some("amx"),
            // The maker of the CPU decides.
            _ => None,
        };
        assert!(expected.is_none_or(|name| name == Arithmetic::bf16().kernels()), "{expected:?}");
        assert!(Arithmetic::bf16().is_bf16() && !Arithmetic::F32.is_bf16());
        assert!(Arithmetic::bf16().uses_tiles() || !has_fast_bf16(), "fast products need tiles");
    }
}
