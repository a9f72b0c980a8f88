//! [`Health`]: has the representation collapsed? Two numbers that need no labels.
//!
//! A bootstrapped method has no negative pairs that would push nodes apart, so it can end with
//! all nodes in one point or on one line, at a perfect loss. Neither shows in the loss; both show
//! here.

use blnn_kernels::{Csr, Matrix, Pattern};
use serde::{Deserialize, Serialize};

use crate::graph::{Features, Graph};
use crate::rng::{Draws, Stream};

/// Rows looked at: enough to estimate a covariance of a few hundred columns, few enough that the
/// check costs less than a training step. They are spread evenly, so no random draw is needed.
pub(crate) const MAX_ROWS: usize = 4096;
/// Collapsed below this share of the width …
const RANK_FLOOR: f64 = 0.05;
/// … or below this many dimensions, which is what counts for narrow embeddings.
const FEWEST_DIMENSIONS: f64 = 1.5;
/// … and never with this many: a graph of fifteen classes needs a dozen dimensions, however wide the
/// embedding is that they lie in. (BLNN on CS, 256 wide, goes through 11.9 on the way to its best.)
const ENOUGH_DIMENSIONS: f64 = 6.4;
/// … unless the graph allows no more: then below this share of the dimensions beyond the first
/// that its attributes have.
const POSSIBLE_FLOOR: f64 = 0.25;
/// Collapsed below this spread; healthy embeddings have 0.3 to 1.
const SPREAD_FLOOR: f64 = 0.02;
/// What rounding may take from a rank: a rank of one, where one is possible, is no collapse.
const ROUNDING: f64 = 1e-6;

/// Columns that the attributes of a graph are drawn together into before their rank is measured.
const SKETCH_COLUMNS: usize = 64;

/// How well an embedding fills its space.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Number of dimensions in use: `exp(−Σ p ln p)` with `p` the covariance's eigenvalues as
    /// shares of their sum. From 1 (all nodes on a line) to the width; 0 if all nodes are equal.
    pub effective_rank: f64,
    /// Standard deviation of a column after scaling every row to length 1, averaged over the
    /// columns, times the square root of the width: 1 for directions spread over the whole
    /// sphere, 0 if all nodes point the same way.
    pub spread: f64,
    /// Whether either number is below its floor.
    pub collapsed: bool,
}

impl Health {
    /// Measures an embedding, one row a node.
    ///
    /// ```
    /// use blnn::Health;
    /// use blnn_kernels::Matrix;
    ///
    /// let all_directions = Matrix::from_fn(64, 8, |i, j| if i % 8 == j { 1.0 } else { 0.0 });
    /// assert!(!Health::of(&all_directions).collapsed);
    ///
    /// let one_direction = Matrix::from_fn(64, 8, |_, j| j as f32);
    /// assert!(Health::of(&one_direction).collapsed);
    /// ```
    pub fn of(embeddings: &Matrix) -> Self {
        Self::given(embeddings, f64::INFINITY)
    }

    /// Measures the embedding of a graph whose attributes have `possible` dimensions, see
    /// [`possible_rank`]. Few attributes cannot make many dimensions: that is no collapse.
    pub(crate) fn given(embeddings: &Matrix, possible: f64) -> Self {
        let width = embeddings.cols();
        let rows = sample(embeddings);
        let effective_rank = effective_rank(covariance(&rows, width), width);
        let spread = spread(&rows, width);
        let usual = (RANK_FLOOR * width as f64).clamp(FEWEST_DIMENSIONS, ENOUGH_DIMENSIONS);
        let floor = usual.min(1.0 + POSSIBLE_FLOOR * (possible - 1.0).max(0.0));
        // A single column or a single node has nothing to collapse.
        let judged = width > 1 && embeddings.rows() > 1;
        let healthy = effective_rank >= floor - ROUNDING && spread >= SPREAD_FLOOR;
        Self { effective_rank, spread, collapsed: judged && !healthy }
    }
}

/// The number of dimensions that the attributes of the nodes and of their surroundings have: the
/// effective rank of the attributes averaged twice over each node and its neighbours, as the
/// encoder does. Many attributes are drawn together at random first; infinite where that leaves
/// nothing to tell.
pub(crate) fn possible_rank(graph: &Graph) -> f64 {
    let columns = graph.features().cols().min(SKETCH_COLUMNS);
    let mut sketch = sketch(graph.features(), columns);
    for _ in 0..2 {
        sketch = averaged(graph.adjacency(), &sketch);
    }
    let found = effective_rank(covariance(&sample(&sketch), columns), columns);
    if columns == graph.features().cols() {
        return found;
    }
    behind_sketch(found, columns as f64)
}

/// The rank behind a sketch of `columns` that shows the rank `found`: of r equal dimensions, c
/// random columns show about r c / (r + c). A rank of one, which every column shows, stays one.
fn behind_sketch(found: f64, columns: f64) -> f64 {
    if found >= columns {
        return f64::INFINITY;
    }
    1.0 + (found - 1.0).max(0.0) * columns / (columns - found)
}

/// The attributes themselves if they are few, else sums of them with random signs.
fn sketch(features: &Features, columns: usize) -> Matrix {
    let count = features.cols();
    let draws = Draws::new(0, Stream::Generated { part: 4 }, 0);
    let sign = |feature: usize, column: usize| match count <= columns {
        true => f32::from(feature == column),
        false if draws.uniform(feature * columns + column) < 0.5 => -1.0,
        false => 1.0,
    };
    let signs = Matrix::from_fn(count, columns, sign);
    let mut out = Matrix::zeros(features.rows(), columns);
    for i in 0..features.rows() {
        let row = out.row_mut(i);
        let mut add = |feature: usize, value: f32| {
            row.iter_mut().zip(signs.row(feature)).for_each(|(o, s)| *o += value * s);
        };
        match features {
            Features::Dense(x) => x.row(i).iter().enumerate().for_each(|(j, &v)| add(j, v)),
            Features::Sparse(x) => listed(x, i).for_each(|(j, v)| add(j, v)),
        }
    }
    out
}

/// Columns and values of a row.
fn listed(x: &Csr, row: usize) -> impl Iterator<Item = (usize, f32)> {
    let (columns, values) = x.row(row);
    columns.iter().map(|&j| j as usize).zip(values.iter().copied())
}

/// The mean over each node and its neighbours.
fn averaged(adjacency: &Pattern, x: &Matrix) -> Matrix {
    let mut out = x.clone();
    for i in 0..x.rows() {
        let row = out.row_mut(i);
        for &j in adjacency.row(i) {
            row.iter_mut().zip(x.row(j as usize)).for_each(|(o, v)| *o += v);
        }
        let share = 1.0 / (adjacency.row(i).len() + 1) as f32;
        for value in row {
            *value *= share;
        }
    }
    out
}

fn sample(embeddings: &Matrix) -> Vec<Vec<f64>> {
    let n = embeddings.rows();
    let taken = n.min(MAX_ROWS);
    let row = |s: usize| embeddings.row(s * n / taken);
    (0..taken).map(|s| row(s).iter().map(|v| f64::from(*v)).collect()).collect()
}

fn column_means(rows: &[Vec<f64>], width: usize) -> Vec<f64> {
    let mut means = vec![0.0; width];
    for row in rows {
        means.iter_mut().zip(row).for_each(|(m, v)| *m += v);
    }
    for mean in &mut means {
        *mean /= rows.len() as f64;
    }
    means
}

/// The `width × width` covariance, row by row.
fn covariance(rows: &[Vec<f64>], width: usize) -> Vec<f64> {
    let means = column_means(rows, width);
    let mut sums = vec![0.0; width * width];
    let mut centred = vec![0.0; width];
    for row in rows {
        for ((c, v), m) in centred.iter_mut().zip(row).zip(&means) {
            *c = v - m;
        }
        for (i, &c) in centred.iter().enumerate() {
            let sum = &mut sums[i * width..(i + 1) * width];
            sum.iter_mut().zip(&centred).for_each(|(s, d)| *s += c * d);
        }
    }
    for sum in &mut sums {
        *sum /= rows.len() as f64;
    }
    sums
}

fn effective_rank(covariance: Vec<f64>, width: usize) -> f64 {
    if covariance.iter().any(|v| !v.is_finite()) {
        return 0.0;
    }
    // Rounding can push an eigenvalue of zero below it.
    let eigenvalues = eigenvalues(covariance, width).into_iter();
    let eigenvalues: Vec<f64> = eigenvalues.map(|v| v.max(0.0)).collect();
    let total: f64 = eigenvalues.iter().sum();
    if total <= f64::MIN_POSITIVE {
        return 0.0;
    }
    let shares = eigenvalues.iter().map(|v| v / total).filter(|p| *p > 0.0);
    shares.map(|p| -p * p.ln()).sum::<f64>().exp()
}

fn spread(rows: &[Vec<f64>], width: usize) -> f64 {
    let unit = |row: &Vec<f64>| {
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(1e-12);
        row.iter().map(|v| v / length).collect::<Vec<f64>>()
    };
    let units: Vec<Vec<f64>> = rows.iter().map(unit).collect();
    let means = column_means(&units, width);
    let mut squares = vec![0.0; width];
    for row in &units {
        for ((s, v), m) in squares.iter_mut().zip(row).zip(&means) {
            *s += (v - m).powi(2);
        }
    }
    let deviations = squares.iter().map(|s| (s / rows.len() as f64).sqrt());
    let spread = deviations.sum::<f64>() / (width as f64).sqrt();
    if spread.is_finite() { spread } else { 0.0 }
}

/// Eigenvalues of a symmetric matrix, in no particular order: Householder reflections to a
/// tridiagonal matrix, then QL steps with implicit shifts.
fn eigenvalues(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    let reflections = n.saturating_sub(2);
    let mut off_diagonal: Vec<f64> = (0..reflections).map(|k| reflect(&mut a, n, k)).collect();
    if n >= 2 {
        off_diagonal.push(a[(n - 1) * n + n - 2]);
    }
    off_diagonal.resize(n, 0.0);
    let diagonal = (0..n).map(|i| a[i * n + i]).collect();
    tridiagonal_eigenvalues(diagonal, off_diagonal)
}

/// Zeroes column `k` below the sub-diagonal by a reflection from both sides; returns the
/// sub-diagonal element.
fn reflect(a: &mut [f64], n: usize, k: usize) -> f64 {
    let mut v: Vec<f64> = (k + 1..n).map(|i| a[i * n + k]).collect();
    let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    if length == 0.0 {
        return 0.0;
    }
    let target = if v[0] > 0.0 { -length } else { length };
    v[0] -= target;
    let square: f64 = v.iter().map(|x| x * x).sum();
    let block = |i: usize| (k + 1 + i) * n + k + 1;
    let m = v.len();
    // With H = I − 2vvᵀ/|v|²: HAH = A − vwᵀ − wvᵀ, w = p − (vᵀp/|v|²) v, p = 2Av/|v|².
    let product = |i: usize| {
        let row = &a[block(i)..block(i) + m];
        2.0 / square * row.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>()
    };
    let mut w: Vec<f64> = (0..m).map(product).collect();
    let scale = w.iter().zip(&v).map(|(x, y)| x * y).sum::<f64>() / square;
    w.iter_mut().zip(&v).for_each(|(w, v)| *w -= scale * v);
    for i in 0..m {
        let row = &mut a[block(i)..block(i) + m];
        for (j, x) in row.iter_mut().enumerate() {
            *x -= v[i] * w[j] + w[i] * v[j];
        }
    }
    target
}

fn tridiagonal_eigenvalues(mut d: Vec<f64>, mut e: Vec<f64>) -> Vec<f64> {
    let n = d.len();
    for l in 0..n {
        // Thirty steps for one eigenvalue never happen on finite input; the bound only keeps a
        // diagnostic from ever hanging a training run.
        for _ in 0..30 {
            let negligible =
                |m: &usize| e[*m].abs() <= f64::EPSILON * (d[*m].abs() + d[*m + 1].abs());
            let m = (l..n - 1).find(negligible).unwrap_or(n - 1);
            if m == l {
                break;
            }
            ql_step(&mut d, &mut e, l, m);
        }
    }
    d
}

/// One implicit QL step on rows `l..=m`, shifted by the eigenvalue of the leading 2 × 2 block.
fn ql_step(d: &mut [f64], e: &mut [f64], l: usize, m: usize) {
    let half = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (half + half.hypot(1.0).copysign(half));
    let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let f = sine * e[i];
        let b = cosine * e[i];
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= shift;
            e[m] = 0.0;
            return;
        }
        (sine, cosine) = (f / r, g / r);
        g = d[i + 1] - shift;
        let t = (d[i] - g) * sine + 2.0 * cosine * b;
        shift = sine * t;
        d[i + 1] = g + shift;
        g = cosine * t - b;
    }
    d[l] -= shift;
    e[l] = g;
    e[m] = 0.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible values in −1..1 without a random generator.
    fn wave(i: usize) -> f64 {
        ((i as f64 * 12.9898).sin() * 43_758.545).fract()
    }

    #[test]
    fn eigenvalues_of_known_matrices() {
        // The path graph's Laplacian has the eigenvalues 2 − 2 cos(πk/n).
        let n = 12;
        let mut a = vec![0.0; n * n];
        for i in 0..n - 1 {
            a[i * n + i] += 1.0;
            a[(i + 1) * n + i + 1] += 1.0;
            a[i * n + i + 1] = -1.0;
            a[(i + 1) * n + i] = -1.0;
        }
        let mut got = eigenvalues(a, n);
        got.sort_by(f64::total_cmp);
        for (k, value) in got.iter().enumerate() {
            let exact = 2.0 - 2.0 * (std::f64::consts::PI * k as f64 / n as f64).cos();
            assert!((value - exact).abs() < 1e-12, "{k}: {value} against {exact}");
        }
    }

    #[test]
    fn eigenvalues_keep_trace_and_squared_norm() {
        let n = 40;
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                a[i * n + j] = wave(i * n + j);
                a[j * n + i] = a[i * n + j];
            }
        }
        let trace: f64 = (0..n).map(|i| a[i * n + i]).sum();
        let square: f64 = a.iter().map(|x| x * x).sum();
        let values = eigenvalues(a, n);
        assert!((values.iter().sum::<f64>() - trace).abs() < 1e-10);
        assert!((values.iter().map(|v| v * v).sum::<f64>() - square).abs() < 1e-9);
    }

    #[test]
    fn effective_rank_counts_the_dimensions_in_use() {
        let three = Matrix::from_fn(600, 64, |i, j| if j == i % 3 { 1.0 } else { 0.0 });
        // Three equal corners span two centred dimensions.
        assert!((Health::of(&three).effective_rank - 2.0).abs() < 1e-9);
        assert!(Health::of(&three).collapsed, "2 of 64 dimensions");
        let full = Matrix::from_fn(600, 64, |i, j| wave(i * 64 + j * j) as f32);
        assert!(!Health::of(&full).collapsed, "{:?}", Health::of(&full));
    }

    #[test]
    fn a_sketch_hides_dimensions_but_not_the_only_one() {
        assert_eq!(behind_sketch(1.0, 64.0), 1.0);
        assert_eq!(behind_sketch(32.0, 64.0), 63.0);
        assert_eq!(behind_sketch(64.0, 64.0), f64::INFINITY);
    }

    fn noise(i: usize) -> f32 {
        Draws::new(1, Stream::Generated { part: 9 }, 0).uniform(i) - 0.5
    }

    /// A ring with the given features a node.
    fn ring(features: Matrix) -> Graph {
        let n = features.rows() as u32;
        let offsets = (0..=n as usize).map(|i| 2 * i).collect();
        let neighbours = |i: u32| {
            let mut both = [(i + 1) % n, (i + n - 1) % n];
            both.sort_unstable();
            both
        };
        let adjacency = Pattern::new(n as usize, offsets, (0..n).flat_map(neighbours).collect());
        Graph::new("ring", adjacency.unwrap(), Features::Dense(features)).unwrap()
    }

    #[test]
    fn what_the_attributes_allow_is_their_rank() {
        let rank = |cols: usize, value: fn(usize, usize) -> f32| {
            possible_rank(&ring(Matrix::from_fn(3000, cols, value)))
        };
        let two = rank(2, |i, j| noise(i * 2 + j));
        assert!((1.9..=2.0).contains(&two), "{two}");
        // Five columns, but all of them multiples of one.
        let one = rank(5, |i, j| noise(i) * (j + 1) as f32);
        assert!((one - 1.0).abs() < 1e-6, "{one}");
        assert_eq!(rank(5, |_, j| j as f32), 0.0);
        // More columns than are looked at: drawn together, and what that hides is added back.
        let thirty = rank(300, |i, j| noise(i * 30 + j % 30));
        assert!((22.0..=40.0).contains(&thirty), "{thirty}");
        let many = rank(300, |i, j| noise(i * 300 + j));
        assert!(many > 150.0, "{many}");
    }

    #[test]
    fn few_attributes_are_no_collapse_and_a_line_still_is() {
        let possible = possible_rank(&ring(Matrix::from_fn(600, 2, |i, j| noise(i * 2 + j))));
        // Two dimensions in 64 columns: all that there is.
        let plane = Matrix::from_fn(600, 64, |i, j| {
            (wave(2 * i) * (j as f64).sin() + wave(2 * i + 1) * (j as f64).cos()) as f32
        });
        assert!(Health::of(&plane).collapsed && !Health::given(&plane, possible).collapsed);
        let line = Matrix::from_fn(600, 64, |i, j| (wave(i) * (j as f64).sin()) as f32);
        assert!(Health::given(&line, possible).collapsed, "{:?}", Health::given(&line, possible));
        let point = Matrix::from_fn(600, 64, |_, j| j as f32 + 1.0);
        assert!(Health::given(&point, possible).collapsed);
        // Attributes that are rich demand what they always did.
        let three = Matrix::from_fn(600, 64, |i, j| if j == i % 3 { 1.0 } else { 0.0 });
        assert!(Health::given(&three, 100.0).collapsed);
    }

    #[test]
    fn a_dozen_dimensions_of_a_wide_embedding_are_no_collapse() {
        let lying_in =
            |dimensions: usize| {
                Matrix::from_fn(2000, 512, move |i, j| {
                    if j < dimensions { noise(i * dimensions + j) } else { 0.0 }
                })
            };
        let [dozen, four] = [12, 4].map(|dimensions| Health::of(&lying_in(dimensions)));
        assert!(dozen.effective_rank < 0.05 * 512.0 && !dozen.collapsed, "{dozen:?}");
        assert!(four.effective_rank > 3.0 && four.collapsed, "{four:?}");
    }

    #[test]
    fn one_point_is_a_collapse_and_has_rank_zero() {
        let health = Health::of(&Matrix::from_fn(50, 16, |_, j| j as f32 + 1.0));
        assert!(health.collapsed);
        assert!(health.effective_rank < 1.0 && health.spread < 1e-6, "{health:?}");
    }

    #[test]
    fn a_shared_offset_is_a_collapse_of_spread() {
        // Full rank, but every node points practically the same way.
        let m = Matrix::from_fn(200, 8, |i, j| 1000.0 + wave(i * 8 + j * j) as f32);
        let health = Health::of(&m);
        assert!(health.effective_rank > 4.0 && health.collapsed, "{health:?}");
    }

    #[test]
    fn values_that_are_not_finite_count_as_collapsed() {
        let health =
            Health::of(&Matrix::from_fn(10, 4, |i, _| if i == 3 { f32::NAN } else { 1.0 }));
        assert!(health.collapsed);
        assert!(health.effective_rank == 0.0 && health.spread == 0.0);
    }

    #[test]
    fn one_column_or_one_node_is_never_called_collapsed() {
        assert!(!Health::of(&Matrix::zeros(10, 1)).collapsed);
        assert!(!Health::of(&Matrix::zeros(1, 10)).collapsed);
    }
}
