//! k-means as scikit-learn runs it: greedy k-means++, Lloyd's iterations, the best of ten starts.
//!
//! The random numbers are those of `KMeans(n_init=10, random_state=seed)`, so the starts are
//! scikit-learn's up to rounding. Several starts run side by side: a block of rows is read once
//! for all of them, and centres are updated only by the rows that changed cluster.

use blnn_kernels::tall::{BLOCK, TallMatrix, nearest_into};
use blnn_kernels::{Matrix, Threads};

use super::classify::{Tick, report};
use super::splits::RandomState;

/// Starts of which the best is kept.
const STARTS: usize = 10;

/// Starts that run side by side: enough to share the reading of rows, few enough to leave work
/// for other threads.
const TOGETHER: usize = 5;

/// Pieces of work in each repetition.
pub(super) const PIECES_A_REPEAT: usize = STARTS / TOGETHER;

const MAX_ITERATIONS: usize = 300;

/// A start ends when the centres' squared movement falls below this share of the mean variance.
const TOLERANCE: f64 = 1e-4;

/// The data of all runs: centred rows, packed and plain.
pub(super) struct KMeans {
    x: Matrix,
    blocks: TallMatrix,
    square_norms: Vec<f32>,
    clusters: usize,
    tolerance: f64,
}

impl KMeans {
    /// Prepares `clusters` clusters of the rows of `x`.
    pub(super) fn new(x: &Matrix, clusters: usize) -> Self {
        let x = centred(x);
        let square_norms: Vec<f32> = (0..x.rows()).map(|i| square(x.row(i)) as f32).collect();
        let total: f64 = square_norms.iter().map(|&v| f64::from(v)).sum();
        Self {
            tolerance: TOLERANCE * total / (x.rows() * x.cols()) as f64,
            blocks: TallMatrix::new(&x),
            square_norms,
            x,
            clusters,
        }
    }

    /// The labels of the best of ten starts, for each of `repeats` seeds from `first_seed` on.
    pub(super) fn repeat(
        &self,
        first_seed: u32,
        repeats: usize,
        threads: &Threads,
        tick: Tick<'_>,
    ) -> Vec<Vec<u32>> {
        let batches = PIECES_A_REPEAT;
        let mut runs: Vec<Vec<Start>> = (0..repeats * batches).map(|_| Vec::new()).collect();
        threads.for_each_owned(&mut runs, |job, out| {
            let seed = first_seed.wrapping_add((job / batches) as u32);
            *out = self.run(seed, job % batches * TOGETHER);
            report(tick);
        });
        let mut runs = runs.into_iter();
        let best = |_| {
            let starts = runs.by_ref().take(batches).flatten();
            // `min_by` keeps the first of equals, as the reference does.
            let best = starts.min_by(|a, b| a.inertia.total_cmp(&b.inertia));
            best.map_or_else(Vec::new, |s| s.labels)
        };
        (0..repeats).map(best).collect()
    }

    /// Starts `first .. first + TOGETHER` of the run with this seed.
    fn run(&self, seed: u32, first: usize) -> Vec<Start> {
        let mut rng = RandomState::new(seed);
        // Each start before draws one row and then some candidates for every further centre.
        for _ in 0..first * self.draws_a_start() {
            rng.uniform();
        }
        let draws = (0..TOGETHER).map(|_| self.draws(&mut rng)).collect();
        let centres = Seeding::new(self, draws).centres();
        let mut starts: Vec<Start> = centres.into_iter().map(|c| Start::new(self, c)).collect();
        for _ in 0..MAX_ITERATIONS {
            if starts.iter().all(|s| s.stage == Stage::Done) {
                break;
            }
            self.sweep(&mut starts);
            for start in &mut starts {
                start.next(self);
            }
        }
        if starts.iter().any(|s| s.stage != Stage::Done) {
            // Out of iterations: the last centres still label the rows.
            for start in &mut starts {
                start.stage = start.stage.min(Stage::Labelling);
            }
            self.sweep(&mut starts);
        }
        starts
    }

    /// Candidates tried for each centre after the first.
    fn trials(&self) -> usize {
        2 + (self.clusters as f64).ln() as usize
    }

    fn draws_a_start(&self) -> usize {
        1 + (self.clusters - 1) * self.trials()
    }

    fn draws(&self, rng: &mut RandomState) -> Vec<f64> {
        (0..self.draws_a_start()).map(|_| rng.uniform()).collect()
    }

    /// Assigns every row to its nearest centre, in every start that is not done.
    fn sweep(&self, starts: &mut [Start]) {
        let all: Vec<u32> = (0..self.clusters as u32).collect();
        let mut dots = vec![0.0; self.clusters * BLOCK];
        let (mut best, mut label) = ([0.0; BLOCK], [0; BLOCK]);
        let running = |s: &&mut Start| s.stage != Stage::Done;
        for start in starts.iter_mut().filter(running) {
            (start.changed, start.inertia) = (0, 0.0);
        }
        for block in 0..self.blocks.count() {
            let rows = self.blocks.rows_in(block);
            let (best, label) = (&mut best[..rows], &mut label[..rows]);
            for start in starts.iter_mut().filter(running) {
                self.blocks.times(block, &start.centres, &all, &mut dots);
                nearest_into(&dots, &start.half_norms, best, label);
                start.take_labels(&self.x, block * BLOCK, label);
                let norms = &self.square_norms[block * BLOCK..];
                start.inertia += distance_sum(best, norms);
            }
        }
    }
}

/// `Σ ‖x‖² + 2 (½‖c‖² − x·c)`, the squared distances to the nearest centres.
fn distance_sum(best: &[f32], square_norms: &[f32]) -> f64 {
    let distance = |(b, n): (&f32, &f32)| f64::from((n + 2.0 * b).max(0.0));
    best.iter().zip(square_norms).map(distance).sum()
}

fn square(row: &[f32]) -> f64 {
    row.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

fn centred(x: &Matrix) -> Matrix {
    let mut mean = vec![0.0_f64; x.cols()];
    for i in 0..x.rows() {
        mean.iter_mut().zip(x.row(i)).for_each(|(m, &v)| *m += f64::from(v));
    }
    for m in &mut mean {
        *m /= x.rows() as f64;
    }
    Matrix::from_fn(x.rows(), x.cols(), |i, j| x.get(i, j) - mean[j] as f32)
}

/// What the next sweep of a start is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Labels, then centres.
    Moving,
    /// Labels for centres that no longer move.
    Labelling,
    Done,
}

/// One start: its centres and the cluster of every row.
struct Start {
    centres: Vec<f32>,
    half_norms: Vec<f32>,
    labels: Vec<u32>,
    /// Sum and number of the rows of each cluster, kept up to date row by row. Double precision,
    /// so that adding and taking away the same rows leaves nothing behind that matters.
    sums: Vec<f64>,
    counts: Vec<usize>,
    changed: usize,
    inertia: f64,
    stage: Stage,
}

/// Label of a row before its first assignment.
const NONE: u32 = u32::MAX;

impl Start {
    fn new(data: &KMeans, centres: Vec<f32>) -> Self {
        let mut start = Self {
            half_norms: Vec::new(),
            labels: vec![NONE; data.x.rows()],
            sums: vec![0.0; centres.len()],
            counts: vec![0; data.clusters],
            changed: 0,
            inertia: f64::INFINITY,
            stage: Stage::Moving,
            centres,
        };
        start.set_half_norms(data.x.cols());
        start
    }

    fn set_half_norms(&mut self, cols: usize) {
        self.half_norms.clear();
        let halves = self.centres.chunks(cols).map(|c| (square(c) / 2.0) as f32);
        self.half_norms.extend(halves);
    }

    /// Records new labels of the rows from `first` on and moves changed rows between sums.
    fn take_labels(&mut self, x: &Matrix, first: usize, labels: &[u32]) {
        let d = x.cols();
        for (offset, &new) in labels.iter().enumerate() {
            let old = std::mem::replace(&mut self.labels[first + offset], new);
            if old == new {
                continue;
            }
            self.changed += 1;
            let row = x.row(first + offset);
            let sum = &mut self.sums[new as usize * d..(new as usize + 1) * d];
            sum.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v));
            self.counts[new as usize] += 1;
            if old != NONE {
                let sum = &mut self.sums[old as usize * d..(old as usize + 1) * d];
                sum.iter_mut().zip(row).for_each(|(s, &v)| *s -= f64::from(v));
                self.counts[old as usize] -= 1;
            }
        }
    }

    /// After a sweep: moves the centres and decides whether to go on.
    fn next(&mut self, data: &KMeans) {
        match self.stage {
            Stage::Done => {}
            Stage::Labelling => self.stage = Stage::Done,
            Stage::Moving if self.changed == 0 => self.stage = Stage::Done,
            Stage::Moving => {
                if self.move_centres(data) <= data.tolerance {
                    self.stage = Stage::Labelling;
                }
            }
        }
    }

    /// Puts each centre at the mean of its rows; the squared distance all centres moved.
    fn move_centres(&mut self, data: &KMeans) -> f64 {
        let d = data.x.cols();
        let (mut sums, mut counts) = (None, None);
        if self.counts.contains(&0) {
            let (mut s, mut c) = (self.sums.clone(), self.counts.clone());
            self.fill_empty(data, &mut s, &mut c);
            (sums, counts) = (Some(s), Some(c));
        }
        let (sums, counts) =
            (sums.as_ref().unwrap_or(&self.sums), counts.as_ref().unwrap_or(&self.counts));
        let mut moved = 0.0;
        for ((centre, sum), &count) in self.centres.chunks_mut(d).zip(sums.chunks(d)).zip(counts) {
            for (c, s) in centre.iter_mut().zip(sum).take_while(|_| count > 0) {
                let mean = (s / count as f64) as f32;
                moved += f64::from(mean - *c) * f64::from(mean - *c);
                *c = mean;
            }
        }
        self.set_half_norms(d);
        moved
    }

    /// Gives each empty cluster one of the rows farthest from their centres.
    fn fill_empty(&self, data: &KMeans, sums: &mut [f64], counts: &mut [usize]) {
        let d = data.x.cols();
        let distance = |i: usize| -> f64 {
            let centre = &self.centres[self.labels[i] as usize * d..][..d];
            let pairs = data.x.row(i).iter().zip(centre);
            pairs.map(|(x, c)| f64::from(x - c) * f64::from(x - c)).sum()
        };
        let mut farthest: Vec<(f64, usize)> =
            (0..data.x.rows()).map(|i| (distance(i), i)).collect();
        farthest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let empty: Vec<usize> = (0..data.clusters).filter(|&c| counts[c] == 0).collect();
        for (cluster, (far, row)) in empty.into_iter().zip(farthest) {
            let old = self.labels[row] as usize;
            if far == 0.0 || counts[old] < 2 {
                // More clusters than different rows: nothing is left to move.
                return;
            }
            for (j, &v) in data.x.row(row).iter().enumerate() {
                sums[old * d + j] -= f64::from(v);
                sums[cluster * d + j] = f64::from(v);
            }
            counts[old] -= 1;
            counts[cluster] = 1;
        }
    }
}

/// Greedy k-means++ for several starts: each new centre is the best of a few candidates, drawn
/// with probability proportional to the squared distance to the centres so far.
struct Seeding<'a> {
    data: &'a KMeans,
    /// Uniform numbers of each start, in the order scikit-learn draws them.
    draws: Vec<Vec<f64>>,
    /// Rows chosen as centres, by start.
    chosen: Vec<Vec<usize>>,
    /// Squared distance of each row to its start's nearest centre so far.
    closest: Vec<Vec<f32>>,
}

impl<'a> Seeding<'a> {
    fn new(data: &'a KMeans, draws: Vec<Vec<f64>>) -> Self {
        let n = data.x.rows();
        let first = |d: &Vec<f64>| vec![((d[0] * n as f64) as usize).min(n - 1)];
        Self {
            chosen: draws.iter().map(first).collect(),
            closest: vec![vec![f32::INFINITY; n]; draws.len()],
            data,
            draws,
        }
    }

    /// The centres of each start.
    fn centres(mut self) -> Vec<Vec<f32>> {
        let firsts: Vec<Vec<usize>> = self.chosen.clone();
        self.closest = self.distances(&firsts).into_iter().flatten().collect();
        for round in 0..self.data.clusters - 1 {
            let candidates: Vec<Vec<usize>> =
                (0..self.draws.len()).map(|s| self.candidates(s, round)).collect();
            let distances = self.distances(&candidates);
            for (start, distances) in distances.into_iter().enumerate() {
                self.take_best(start, &candidates[start], distances);
            }
        }
        let rows = |chosen: &Vec<usize>| -> Vec<f32> {
            chosen.iter().flat_map(|&i| self.data.x.row(i)).copied().collect()
        };
        self.chosen.iter().map(rows).collect()
    }

    /// The rows a start tries in one round. Single precision, as in scikit-learn.
    fn candidates(&self, start: usize, round: usize) -> Vec<usize> {
        let closest = &self.closest[start];
        let add = |sum: &mut f32, v: &f32| {
            *sum += v;
            Some(*sum)
        };
        let cumulative: Vec<f32> = closest.iter().scan(0.0, add).collect();
        let total = f64::from(potential(closest) as f32);
        let trials = self.data.trials();
        self.draws[start][1 + round * trials..][..trials]
            .iter()
            .map(|u| cumulative.partition_point(|&c| f64::from(c) < u * total))
            .map(|row| row.min(closest.len() - 1))
            .collect()
    }

    /// For each start and candidate, what `closest` would become with that row as a centre.
    fn distances(&self, candidates: &[Vec<usize>]) -> Vec<Vec<Vec<f32>>> {
        let (data, n) = (self.data, self.data.x.rows());
        let all: Vec<u32> = (0..candidates[0].len() as u32).collect();
        let rows = |c: &Vec<usize>| -> Vec<f32> {
            c.iter().flat_map(|&i| data.x.row(i)).copied().collect()
        };
        let vectors: Vec<Vec<f32>> = candidates.iter().map(rows).collect();
        let mut out = vec![vec![vec![0.0; n]; all.len()]; candidates.len()];
        let mut dots = vec![0.0; all.len() * BLOCK];
        for block in 0..data.blocks.count() {
            let range = block * BLOCK..block * BLOCK + data.blocks.rows_in(block);
            let norms = &data.square_norms[range.clone()];
            for (start, out) in out.iter_mut().enumerate() {
                data.blocks.times(block, &vectors[start], &all, &mut dots);
                let closest = &self.closest[start][range.clone()];
                for (c, dots) in dots.chunks(BLOCK).enumerate() {
                    let norm = data.square_norms[candidates[start][c]];
                    let out = &mut out[c][range.clone()];
                    for (((o, dot), n), old) in out.iter_mut().zip(dots).zip(norms).zip(closest) {
                        let distance = (norm + n - 2.0 * dot).max(0.0);
                        *o = if distance < *old { distance } else { *old };
                    }
                }
            }
        }
        out
    }

    fn take_best(&mut self, start: usize, candidates: &[usize], distances: Vec<Vec<f32>>) {
        let scored = distances.into_iter().map(|d| (potential(&d), d)).zip(candidates);
        let best = scored.min_by(|a, b| a.0.0.total_cmp(&b.0.0));
        if let Some(((_, distances), &row)) = best {
            self.closest[start] = distances;
            self.chosen[start].push(row);
        }
    }
}

/// Sum of squared distances, in eight interleaved parts.
fn potential(distances: &[f32]) -> f64 {
    let mut sums = [0.0_f64; 8];
    for chunk in distances.chunks(8) {
        sums.iter_mut().zip(chunk).for_each(|(s, &v)| *s += f64::from(v));
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn blobs() -> Matrix {
        let wobble = |i: usize, j: usize| ((i * 37 + j * 11) as f32 * 1.7).sin() * 0.1;
        Matrix::from_fn(90, 3, |i, j| if i % 3 == j { 1.0 + wobble(i, j) } else { wobble(i, j) })
    }

    fn labels(x: &Matrix, clusters: usize, threads: usize) -> Vec<Vec<u32>> {
        let tick = Mutex::new(|| {});
        KMeans::new(x, clusters).repeat(0, 2, &Threads::new(threads), &tick)
    }

    #[test]
    fn separate_blobs_are_found_by_any_number_of_threads() {
        let found = labels(&blobs(), 3, 1);
        for labels in &found {
            assert!((0..90).all(|i| labels[i] == labels[i % 3]));
            assert!(labels[0] != labels[1] && labels[1] != labels[2] && labels[0] != labels[2]);
        }
        assert_eq!(found, labels(&blobs(), 3, 3));
    }

    #[test]
    fn more_clusters_than_different_rows_is_no_trouble() {
        let x = Matrix::from_fn(12, 2, |i, _| (i % 2) as f32);
        for labels in labels(&x, 4, 1) {
            assert!((0..12).all(|i| labels[i] == labels[i % 2]));
            assert_ne!(labels[0], labels[1]);
        }
    }
}
