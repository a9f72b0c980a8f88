//! What this machine can do at most: the peaks that measured rates are held against.
//!
//! Every probe runs the project's own inner loops on data that makes them as fast as they can be,
//! on all threads at once, several times; the best round counts, because whatever disturbs a
//! round only slows it.

use std::time::Instant;

use crate::mixed::{Arithmetic, has_matrix_unit, multiply_loaded, multiply_registers};
use crate::par::Threads;
use crate::simd::{Simd, dispatch};
use crate::wide::sum_listed;
use crate::{PANEL, Panels};

/// The peaks of a machine, over all threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// Fused multiply-adds on registers alone, in 10⁹ operations a second (two each).
    pub gflops: f64,
    /// Products of bfloat16 on tile registers alone, likewise; `None` without a matrix unit.
    pub tile_gflops: Option<f64>,
    /// The same of tiles that are loaded from a level-1 cache, as products do; by the instruction for
    /// pairs too. `None` where products of bfloat16 are those of floats.
    pub loaded_tile_gflops: Option<f64>,
    /// Random rows of one panel gathered from 1 MiB, about what a level-2 cache holds, in GB/s.
    pub near_gather: f64,
    /// The same from 64 MiB, in GB/s.
    pub far_gather: f64,
    /// Rows read in order from 64 MiB, in GB/s.
    pub stream: f64,
}

const ROUNDS: usize = 5;
const MIB: usize = 1 << 20;
const ROW_BYTES: usize = PANEL * size_of::<f32>();

impl Peaks {
    /// Measures for about a second.
    pub fn measure(threads: &Threads) -> Self {
        let far = 64 * MIB / ROW_BYTES;
        Self {
            gflops: multiply_adds(threads),
            tile_gflops: has_matrix_unit().then(|| tile_products(threads, multiply_registers)),
            loaded_tile_gflops: (Arithmetic::bf16().uses_tiles())
                .then(|| tile_products(threads, multiply_loaded)),
            near_gather: gather(MIB / ROW_BYTES, scattered, threads),
            far_gather: gather(far, scattered, threads),
            stream: gather(far, |k, _| k as u32, threads),
        }
    }
}

/// The best rate of several rounds: `work` done by each thread in each round.
fn best_rate(threads: &Threads, work: f64, round: impl Fn() -> f32 + Sync) -> f64 {
    let mut best = 0.0_f64;
    for _ in 0..ROUNDS {
        let mut results = vec![0.0_f32; threads.count()];
        let began = Instant::now();
        threads.for_each_owned(&mut results, |_, out| *out = round());
        let seconds = began.elapsed().as_secs_f64();
        std::hint::black_box(&results);
        best = best.max(work * threads.count() as f64 / seconds);
    }
    best / 1e9
}

fn multiply_adds(threads: &Threads) -> f64 {
    const STEPS: usize = 1_000_000;
    best_rate(threads, STEPS as f64 * operations_a_step() as f64, || chain(STEPS))
}

/// The rate of products of 32×32 by 32×32, of which `multiply` does so many.
fn tile_products(threads: &Threads, multiply: fn(usize) -> f32) -> f64 {
    const STEPS: usize = 100_000;
    let work = STEPS as f64 * 2.0 * (PANEL * PANEL * PANEL) as f64;
    best_rate(threads, work, || multiply(STEPS))
}

/// Rows of a list that are summed together, as many as a node has neighbours.
const LIST: usize = 16;

/// The rate at which listed rows of a panel are summed; `position` gives the k-th of `rows`.
fn gather(rows: usize, position: fn(usize, usize) -> u32, threads: &Threads) -> f64 {
    let panel = Panels::zeros(rows, PANEL);
    let list: Vec<u32> = (0..rows).map(|k| position(k, rows)).collect();
    let passes = (128 * MIB / (rows * ROW_BYTES)).max(1);
    best_rate(threads, (passes * rows * ROW_BYTES) as f64, || {
        (0..passes).map(|_| sum_rows_in(&list, panel.data())).sum()
    })
}

/// Every row once, far from the row before: a walk by a step that shares no factor with a power
/// of two.
fn scattered(k: usize, rows: usize) -> u32 {
    debug_assert!(rows.is_power_of_two(), "an odd step visits every row of a power of two");
    (k.wrapping_mul(0x9E37_79B1) % rows) as u32
}

/// Independent sums in flight: enough to hide the latency of a multiply-add on every CPU.
const CHAINS: usize = 12;

dispatch! {
    /// Runs `steps` multiply-adds on each of [`CHAINS`] registers.
    fn chain(steps: usize) -> f32 = chain_kernel
}

dispatch! {
    /// Operations of one step of [`chain`].
    fn operations_a_step() -> usize = operations_kernel
}

dispatch! {
    fn sum_rows_in(list: &[u32], x: &[f32]) -> f32 = sum_rows_kernel
}

#[inline(always)]
unsafe fn operations_kernel<S: Simd>() -> usize {
    2 * CHAINS * S::LANES
}

#[inline(always)]
unsafe fn chain_kernel<S: Simd>(steps: usize) -> f32 {
    // SAFETY: the wrapper has the instructions of `S`; no memory is touched.
    unsafe {
        let (factor, term) =
            (S::splat(std::hint::black_box(0.999)), S::splat(std::hint::black_box(1e-3)));
        let mut sums = [S::splat(1.0); CHAINS];
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = S::fma(*sum, factor, term);
            }
        }
        let mut total = sums[0];
        for &sum in &sums[1..] {
            total = S::add(total, sum);
        }
        S::sum(total)
    }
}

#[inline(always)]
unsafe fn sum_rows_kernel<S: Simd>(list: &[u32], x: &[f32]) -> f32 {
    let rows = x.len() / PANEL;
    assert!(list.iter().all(|&j| (j as usize) < rows), "listed rows lie in the panel");
    // SAFETY: checked above; the wrapper has the instructions of `S`.
    unsafe {
        let mut total = crate::wide::Wide::<S>::zero();
        for list in list.chunks(LIST) {
            total = total.add(sum_listed::<S>(list, x.as_ptr()));
        }
        total.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scattered_walk_visits_every_row_once() {
        let mut seen: Vec<u32> = (0..1024).map(|k| scattered(k, 1024)).collect();
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, &row)| i == row as usize));
    }

    #[test]
    fn chains_end_where_their_recurrence_does() {
        // x ← 0.999 x + 0.001 stays at its fixed point 1, on every lane of every register.
        let lanes = operations_a_step() as f32 / 2.0;
        assert!((chain(1000) - lanes).abs() < 1e-2 * lanes);
    }
}
