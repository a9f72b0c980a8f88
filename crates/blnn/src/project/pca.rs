//! Principal components: the plane in which points spread most.

use blnn_kernels::gemm::{Operand, gemm};
use blnn_kernels::product::Store;
use blnn_kernels::{Matrix, Partition, Threads};

use crate::error::{Error, ErrorKind, Result};

/// Directions iterated together. The two kept ones converge at the rate of the spread along the
/// first direction left out, so a few more than two save many rounds.
const DIRECTIONS: usize = 8;

/// Rounds of subspace iteration. What has not separated after these is equal for a picture.
const ROUNDS: usize = 120;

/// Pieces the second moments are summed in; each takes a square matrix.
const PIECES: usize = 4;

/// The two coordinates of each row along the directions of largest spread, widest first.
///
/// The sign of a direction is chosen so that its largest component is positive. With fewer than
/// two directions of any spread the missing coordinates are zero.
///
/// # Errors
/// If a value is not finite. The message names the row.
pub fn pca(points: &Matrix, threads: &Threads) -> Result<Matrix> {
    let centred = centred(points)?;
    let (rows, d) = points.shape();
    let mut map = Matrix::zeros(rows, 2);
    if rows < 2 || d == 0 {
        return Ok(map);
    }
    let axes = widest_axes(&second_moments(&centred, threads), d);
    let partition = Partition::even(rows);
    let mut shards = partition.split_wide(map.data_mut(), 2);
    threads.for_each_owned(&mut shards[..partition.shards()], |shard, out| {
        for (i, out) in partition.range(shard).zip(out.chunks_exact_mut(2)) {
            out.copy_from_slice(&axes.each_ref().map(|axis| dot(axis, centred.row(i))));
        }
    });
    Ok(map)
}

fn dot(axis: &[f64], row: &[f32]) -> f32 {
    axis.iter().zip(row).map(|(&a, &v)| a * f64::from(v)).sum::<f64>() as f32
}

/// The rows without their mean.
fn centred(points: &Matrix) -> Result<Matrix> {
    let mut mean = vec![0.0_f64; points.cols()];
    for i in 0..points.rows() {
        for (sum, &v) in mean.iter_mut().zip(points.row(i)) {
            if !v.is_finite() {
                let message = format!("row {i} holds NaN or infinite values");
                return Err(Error::new(ErrorKind::Shape, message));
            }
            *sum += f64::from(v);
        }
    }
    for sum in &mut mean {
        *sum /= points.rows() as f64;
    }
    let value = |i: usize, j: usize| (f64::from(points.get(i, j)) - mean[j]) as f32;
    Ok(Matrix::from_fn(points.rows(), points.cols(), value))
}

/// `xᵀx`, summed over pieces in their order.
fn second_moments(x: &Matrix, threads: &Threads) -> Vec<f64> {
    let (rows, d) = x.shape();
    let mut partial = vec![vec![0.0_f32; d * d]; PIECES];
    threads.for_each_owned(&mut partial, |piece, out| {
        let (first, end) = (piece * rows / PIECES, (piece + 1) * rows / PIECES);
        let part = Operand::new(&x.data()[first * d..end * d], end - first, d);
        gemm(part.transposed(), part, out, Store::Overwrite);
    });
    (0..d * d).map(|e| partial.iter().map(|p| f64::from(p[e])).sum()).collect()
}

/// The two eigenvectors of largest eigenvalue, by subspace iteration.
fn widest_axes(moments: &[f64], d: usize) -> [Vec<f64>; 2] {
    let count = DIRECTIONS.min(d);
    let mut axes: Vec<Vec<f64>> = (0..count).map(|k| start(k, d)).collect();
    orthonormalise(&mut axes);
    for _ in 0..ROUNDS {
        axes = axes.iter().map(|axis| times(moments, axis)).collect();
        orthonormalise(&mut axes);
    }
    // Each round makes the first axis the most and the last the least stretched one.
    let mut kept = axes.into_iter().map(with_sign);
    std::array::from_fn(|_| kept.next().unwrap_or_else(|| vec![0.0; d]))
}

/// Starting directions that no data is orthogonal to by design: a fixed irregular wave.
fn start(k: usize, d: usize) -> Vec<f64> {
    let golden = 0.618_033_988_749_894_9;
    let value = |j: usize| ((((k * d + j) as f64 + 1.0) * golden).fract() * 961.7).fract() - 0.5;
    (0..d).map(value).collect()
}

fn times(moments: &[f64], axis: &[f64]) -> Vec<f64> {
    moments.chunks_exact(axis.len()).map(|row| product(row, axis)).collect()
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gram–Schmidt, twice for accuracy. A direction that lies in the span of those before it, or that
/// the moments map to nothing, becomes zero.
fn orthonormalise(axes: &mut [Vec<f64>]) {
    let largest = axes.iter().map(|a| product(a, a)).fold(0.0, f64::max);
    for k in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(k);
        let axis = &mut rest[0];
        for other in before.iter().chain(before.iter()) {
            let along = product(axis, other);
            axis.iter_mut().zip(other).for_each(|(a, o)| *a -= along * o);
        }
        let norm = product(axis, axis);
        // Rounding in 32-bit moments leaves about this much of a direction without spread.
        let scale = if norm > 1e-24 * largest && norm > 0.0 { norm.sqrt().recip() } else { 0.0 };
        for a in axis.iter_mut() {
            *a *= scale;
        }
    }
}

fn with_sign(mut axis: Vec<f64>) -> Vec<f64> {
    let largest = axis.iter().fold(0.0_f64, |m, &a| if a.abs() > m.abs() { a } else { m });
    if largest < 0.0 {
        for a in &mut axis {
            *a = -*a;
        }
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spread 9 along one oblique direction, 3 along another, 0.1 elsewhere.
    fn cigar() -> Matrix {
        Matrix::from_fn(500, 6, |i, j| {
            let wave = |a: usize| ((i * a) as f32 * 0.37).sin();
            let (long, wide) = (9.0 * wave(3), 3.0 * wave(7));
            let small = 0.1 * wave(11 + j);
            small
                + [0.6, 0.8, 0.0, 0.0, 0.0, 0.0][j] * long
                + [0.0, 0.0, 0.0, 1.0, 0.0, 0.0][j] * wide
                + 5.0
        })
    }

    #[test]
    fn the_widest_directions_are_found() {
        let x = cigar();
        let map = pca(&x, &Threads::new(2)).unwrap();
        let spread = |j: usize| {
            let sum: f64 = (0..500).map(|i| f64::from(map.get(i, j)).powi(2)).sum();
            (sum / 500.0).sqrt()
        };
        assert!((spread(0) - 9.0 / 2.0_f64.sqrt()).abs() < 0.2, "{}", spread(0));
        assert!((spread(1) - 3.0 / 2.0_f64.sqrt()).abs() < 0.1, "{}", spread(1));
        let mean: f64 = (0..500).map(|i| f64::from(map.get(i, 0))).sum::<f64>() / 500.0;
        assert!(mean.abs() < 1e-4, "{mean}");
    }

    #[test]
    fn the_same_bits_on_any_number_of_threads() {
        let x = cigar();
        let one = pca(&x, &Threads::new(1)).unwrap();
        assert!(one == pca(&x, &Threads::new(2)).unwrap());
        assert!(one == pca(&x, &Threads::new(5)).unwrap());
    }

    #[test]
    fn odd_inputs() {
        let threads = Threads::new(1);
        assert_eq!(pca(&Matrix::zeros(0, 3), &threads).unwrap().shape(), (0, 2));
        assert_eq!(pca(&Matrix::zeros(3, 0), &threads).unwrap().data(), [0.0; 6]);
        let equal = Matrix::from_fn(9, 4, |_, j| j as f32);
        assert_eq!(pca(&equal, &threads).unwrap().data(), [0.0; 18]);
        let line = Matrix::from_fn(3, 1, |i, _| i as f32);
        assert_eq!(pca(&line, &threads).unwrap().data(), [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
        let bad = Matrix::from_vec(2, 1, vec![f32::INFINITY, 0.0]);
        assert!(pca(&bad, &threads).unwrap_err().to_string().contains("row 0"));
    }
}
