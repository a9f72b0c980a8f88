//! Intra-class compactness: how close the nodes of one class lie.

use blnn_kernels::Matrix;

/// Mean cosine over the ordered pairs of different nodes within a class, averaged over classes.
///
/// `(‖Σ ĥ‖² − Σ ‖ĥ‖²) / (n (n − 1))` for a class of `n` unit rows `ĥ`, so no pair is visited. The
/// paper's formula divides by the class size once; its reported values (0.40, 0.67, 0.70) need
/// the division by the number of pairs.
///
/// `x` has rows of length one; every class in `labels` has at least two of them.
pub(super) fn compactness(x: &Matrix, labels: &[u32], classes: usize) -> f64 {
    by_class(x, labels, classes).iter().sum::<f64>() / classes as f64
}

/// The compactness of each class on its own; NaN for a class of one.
pub(super) fn by_class(x: &Matrix, labels: &[u32], classes: usize) -> Vec<f64> {
    let d = x.cols();
    let mut sums = vec![0.0_f64; classes * d];
    let (mut lengths, mut counts) = (vec![0.0_f64; classes], vec![0.0_f64; classes]);
    for (i, &label) in labels.iter().enumerate() {
        let class = label as usize;
        for (sum, &v) in sums[class * d..(class + 1) * d].iter_mut().zip(x.row(i)) {
            *sum += f64::from(v);
            lengths[class] += f64::from(v) * f64::from(v);
        }
        counts[class] += 1.0;
    }
    let of_class = |class: usize| {
        let square: f64 = sums[class * d..(class + 1) * d].iter().map(|s| s * s).sum();
        (square - lengths[class]) / (counts[class] * (counts[class] - 1.0))
    };
    (0..classes).map(of_class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_visiting_every_pair() {
        let x = Matrix::from_vec(5, 2, vec![1.0, 0.0, 0.6, 0.8, 0.0, 1.0, -1.0, 0.0, 0.8, 0.6]);
        let labels = [0, 0, 1, 1, 0];
        let dot =
            |a: usize, b: usize| f64::from(x.get(a, 0) * x.get(b, 0) + x.get(a, 1) * x.get(b, 1));
        let first = (dot(0, 1) + dot(0, 4) + dot(1, 4)) / 3.0;
        let want = f64::midpoint(first, dot(2, 3));
        assert!((compactness(&x, &labels, 2) - want).abs() < 1e-7);
    }
}
