//! t-SNE (van der Maaten, JMLR 2014): points that are neighbours attract each other in the map,
//! all points push each other away.

use blnn_kernels::{Matrix, Partition, SHARDS, Threads};

use super::affinity::Affinities;
use super::pca::pca;
use super::quadtree::Quadtree;
use crate::error::{Error, ErrorKind, Result};
use crate::search::Search;

/// How much stronger neighbours attract in the first iterations, while groups find together.
const EXAGGERATION: f32 = 12.0;

/// Share of the iterations with exaggeration.
const EXAGGERATED_SHARE: f64 = 1.0 / 3.0;

/// Spread of the map before the first iteration.
const START_SPREAD: f64 = 1e-4;

/// Neighbours that attract, for each unit of perplexity.
const NEIGHBOURS_PER_PERPLEXITY: f64 = 3.0;

/// Limits of a coordinate's own factor on its steps.
const LEAST_GAIN: f32 = 0.01;

/// Settings of [`tsne()`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TsneOptions {
    /// How many neighbours a point effectively has; lowered to a third of the points where there
    /// are few.
    pub perplexity: f64,
    /// Steps of gradient descent; the first third exaggerates the attraction.
    pub iterations: usize,
}

impl Default for TsneOptions {
    fn default() -> Self {
        Self { perplexity: 30.0, iterations: 750 }
    }
}

impl TsneOptions {
    /// The perplexity that a map of so many points has.
    pub fn perplexity_of(&self, points: usize) -> f64 {
        let most = points.saturating_sub(1) as f64 / NEIGHBOURS_PER_PERPLEXITY;
        self.perplexity.min(most).max(1.0)
    }

    fn check(&self) -> Result<()> {
        if self.perplexity.is_finite() && self.perplexity >= 1.0 {
            return Ok(());
        }
        let message =
            format!("the perplexity must be finite and at least 1, got {}", self.perplexity);
        Err(Error::new(ErrorKind::Config, message))
    }
}

/// A map of the rows onto a plane in which near rows, by cosine, stay near.
///
/// The start is the map by [`pca()`], so the result is a function of `points` and `options`: the
/// same bits for any number of threads. `progress` hears how many of how many steps are done.
///
/// # Errors
/// If a value is not finite (the message names the row) or the perplexity is below 1.
pub fn tsne(
    points: &Matrix,
    options: &TsneOptions,
    threads: &Threads,
    progress: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Matrix> {
    options.check()?;
    let search = Search::new(points)?;
    let n = points.rows();
    let start = pca(search.unit_rows(), threads)?;
    if n < 2 {
        return Ok(start);
    }
    let perplexity = options.perplexity_of(n);
    let k = ((perplexity * NEIGHBOURS_PER_PERPLEXITY) as usize).min(n - 1);
    let neighbours = search.all(k, threads, &mut |_, _| ());
    let affinities = Affinities::new(&neighbours, n, k, perplexity, threads);
    drop((neighbours, search));
    let mut descent = Descent::new(&start, affinities);
    for step in 0..options.iterations {
        descent.step(Phase::of(step, options.iterations, n), threads);
        progress(step + 1, options.iterations);
    }
    Ok(descent.into_map())
}

/// What changes as the descent goes on.
#[derive(Clone, Copy)]
struct Phase {
    exaggeration: f32,
    momentum: f32,
    rate: f32,
}

impl Phase {
    fn of(step: usize, steps: usize, points: usize) -> Self {
        let early = (step as f64) < steps as f64 * EXAGGERATED_SHARE;
        Self {
            exaggeration: if early { EXAGGERATION } else { 1.0 },
            momentum: if early { 0.5 } else { 0.8 },
            // The step size of scikit-learn's `auto`: large maps need large steps.
            rate: (points as f32 / EXAGGERATION / 4.0).max(50.0),
        }
    }
}

/// One point of the map and its motion.
#[derive(Clone, Copy)]
struct Body {
    velocity: [f32; 2],
    gain: [f32; 2],
}

/// The map as it moves.
struct Descent {
    places: Vec<[f32; 2]>,
    moved: Vec<[f32; 2]>,
    bodies: Vec<Body>,
    affinities: Affinities,
    partition: Partition,
    tree: Quadtree,
}

impl Descent {
    fn new(start: &Matrix, affinities: Affinities) -> Self {
        let n = start.rows();
        let squares: f64 = (0..n).map(|i| f64::from(start.get(i, 0)).powi(2)).sum();
        let spread = (squares / n as f64).sqrt();
        let scale = if spread > 0.0 { START_SPREAD / spread } else { 0.0 };
        let scaled = |v: f32| (f64::from(v) * scale) as f32;
        let place = |i: usize| [scaled(start.get(i, 0)), scaled(start.get(i, 1))];
        let places: Vec<[f32; 2]> = (0..n).map(place).collect();
        Self {
            moved: places.clone(),
            places,
            bodies: vec![Body { velocity: [0.0; 2], gain: [1.0; 2] }; n],
            partition: Partition::balanced(&affinities.offsets),
            affinities,
            tree: Quadtree::default(),
        }
    }

    fn step(&mut self, phase: Phase, threads: &Threads) {
        let total = self.tree.update(&self.places, threads) as f32;
        let Self { places, moved, bodies, affinities, partition, tree } = self;
        let moved_shards = partition.split_rows(moved);
        let body_shards = partition.split_rows(bodies);
        let mut shards: Vec<_> = moved_shards.into_iter().zip(body_shards).collect();
        debug_assert_eq!(shards.len(), SHARDS);
        threads.for_each_owned(&mut shards[..partition.shards()], |shard, (moved, bodies)| {
            let both = moved.iter_mut().zip(bodies.iter_mut());
            for (i, (moved, body)) in partition.range(shard).zip(both) {
                let pull = pull(affinities, places, i);
                let push = tree.push(i);
                let gradient =
                    [0, 1].map(|axis| 4.0 * (phase.exaggeration * pull[axis] - push[axis] / total));
                *moved = body.moved(places[i], gradient, phase);
            }
        });
        std::mem::swap(places, moved);
        recentre(places);
    }

    fn into_map(self) -> Matrix {
        Matrix::from_vec(self.places.len(), 2, self.places.into_flattened())
    }
}

/// `Σ p_ij (y_i − y_j) / (1 + d²)` for one point.
fn pull(affinities: &Affinities, places: &[[f32; 2]], i: usize) -> [f32; 2] {
    let range = affinities.offsets[i]..affinities.offsets[i + 1];
    let [x, y] = places[i];
    let (mut pull_x, mut pull_y) = (0.0, 0.0);
    for (&j, &weight) in affinities.columns[range.clone()].iter().zip(&affinities.weights[range]) {
        let [other_x, other_y] = places[j as usize];
        let (dx, dy) = (x - other_x, y - other_y);
        let strength = weight / (1.0 + dx * dx + dy * dy);
        pull_x += strength * dx;
        pull_y += strength * dy;
    }
    [pull_x, pull_y]
}

impl Body {
    /// Where the point goes: momentum, and a step that grows while the direction holds.
    fn moved(&mut self, place: [f32; 2], gradient: [f32; 2], phase: Phase) -> [f32; 2] {
        std::array::from_fn(|axis| {
            let gain = &mut self.gain[axis];
            let onwards = (gradient[axis] > 0.0) != (self.velocity[axis] > 0.0);
            *gain = if onwards { *gain + 0.2 } else { (*gain * 0.8).max(LEAST_GAIN) };
            let step = phase.rate * *gain * gradient[axis];
            self.velocity[axis] = phase.momentum * self.velocity[axis] - step;
            place[axis] + self.velocity[axis]
        })
    }
}

fn recentre(places: &mut [[f32; 2]]) {
    let mut mean = [0.0_f64; 2];
    for place in places.iter() {
        mean[0] += f64::from(place[0]);
        mean[1] += f64::from(place[1]);
    }
    let mean = mean.map(|m| (m / places.len() as f64) as f32);
    for place in places {
        place[0] -= mean[0];
        place[1] -= mean[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOBS: usize = 5;

    /// Five directions, each with some noise around it.
    fn blobs(n: usize) -> Matrix {
        Matrix::from_fn(n, 12, |i, j| {
            let noise = ((i * 31 + j * 17 + i * j) as f32 * 0.77).sin() * 0.15;
            noise + if i % BLOBS == j { 1.0 } else { 0.0 }
        })
    }

    fn quick(points: &Matrix, threads: usize) -> Matrix {
        let options = TsneOptions { iterations: 300, ..TsneOptions::default() };
        tsne(points, &options, &Threads::new(threads), &mut |_, _| ()).unwrap()
    }

    #[test]
    fn blobs_stay_apart() {
        let map = quick(&blobs(600), 2);
        let distance = |a: usize, b: usize| {
            (map.get(a, 0) - map.get(b, 0)).hypot(map.get(a, 1) - map.get(b, 1))
        };
        for i in 0..map.rows() {
            let others = (0..map.rows()).filter(|&j| j != i);
            let nearest = others.min_by(|&a, &b| distance(i, a).total_cmp(&distance(i, b)));
            assert_eq!(nearest.unwrap() % BLOBS, i % BLOBS, "nearest of {i}");
        }
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let points = blobs(500);
        let one = quick(&points, 1);
        assert!(one == quick(&points, 2));
        assert!(one == quick(&points, 5));
    }

    #[test]
    fn few_and_equal_points() {
        assert_eq!(quick(&Matrix::zeros(0, 3), 1).shape(), (0, 2));
        assert_eq!(quick(&blobs(1), 1).data(), [0.0; 2]);
        for points in [blobs(2), blobs(3), blobs(7), Matrix::zeros(40, 3), Matrix::zeros(2, 0)] {
            let map = quick(&points, 2);
            assert_eq!(map.rows(), points.rows());
            assert!(map.data().iter().all(|v| v.is_finite()), "{points:?}");
        }
        let two = quick(&blobs(2), 1);
        assert!((two.get(0, 0) - two.get(1, 0)).abs() > 0.01, "different points stay apart");
    }

    #[test]
    fn bad_input_is_refused() {
        let threads = Threads::new(1);
        let with = |points: &Matrix, perplexity| {
            let options = TsneOptions { perplexity, iterations: 1 };
            tsne(points, &options, &threads, &mut |_, _| ()).unwrap_err().to_string()
        };
        assert!(with(&blobs(9), 0.5).contains("perplexity"));
        assert!(with(&blobs(9), f64::NAN).contains("perplexity"));
        assert!(with(&Matrix::from_vec(1, 1, vec![f32::NAN]), 5.0).contains("row 0"));
    }

    #[test]
    fn progress_counts_every_step() {
        let mut last = (0, 0);
        let options = TsneOptions { iterations: 7, ..TsneOptions::default() };
        let hear = &mut |done, total| last = (done, total);
        tsne(&blobs(20), &options, &Threads::new(1), hear).unwrap();
        assert_eq!(last, (7, 7));
    }
}
