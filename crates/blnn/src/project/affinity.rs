//! How strongly t-SNE ties each point to its neighbours.

use blnn_kernels::{Partition, Threads};

use crate::search::Neighbour;

/// Halvings when the width of a point's neighbourhood is sought.
const HALVINGS: usize = 60;

/// Symmetric weights between neighbours that sum to one: row `i` is
/// `offsets[i] .. offsets[i + 1]` of the other two.
pub(super) struct Affinities {
    pub(super) offsets: Vec<usize>,
    pub(super) columns: Vec<u32>,
    pub(super) weights: Vec<f32>,
}

impl Affinities {
    /// From the `k` nearest neighbours of each of `n` points: a Gaussian around each point, as
    /// wide as makes its neighbourhood count as `perplexity` points.
    pub(super) fn new(
        neighbours: &[Neighbour],
        n: usize,
        k: usize,
        perplexity: f64,
        threads: &Threads,
    ) -> Self {
        let mut directed = vec![0.0_f32; n * k];
        let partition = Partition::even(n);
        let mut shards = partition.split_wide(&mut directed, k);
        threads.for_each_owned(&mut shards[..partition.shards()], |shard, out| {
            for (i, out) in partition.range(shard).zip(out.chunks_exact_mut(k.max(1))) {
                gaussian(&neighbours[i * k..(i + 1) * k], perplexity, out);
            }
        });
        Self::symmetric(neighbours, &directed, n, k)
    }

    /// `(P + Pᵀ) / 2n`.
    fn symmetric(neighbours: &[Neighbour], directed: &[f32], n: usize, k: usize) -> Self {
        let mut entries = Vec::with_capacity(2 * n * k);
        let scale = 0.5 / n as f32;
        for (e, (neighbour, &weight)) in neighbours.iter().zip(directed).enumerate() {
            let (from, to) = ((e / k) as u32, neighbour.node);
            entries.push((from, to, weight * scale));
            entries.push((to, from, weight * scale));
        }
        // A pair comes at most once from either side; a sum of two does not depend on its order.
        entries.sort_unstable_by_key(|&(from, to, _)| (u64::from(from) << 32) | u64::from(to));
        entries.dedup_by(|later, first| {
            let same = (later.0, later.1) == (first.0, first.1);
            if same {
                first.2 += later.2;
            }
            same
        });
        let mut offsets = vec![0; n + 1];
        for entry in &entries {
            offsets[entry.0 as usize + 1] += 1;
        }
        for i in 0..n {
            offsets[i + 1] += offsets[i];
        }
        let columns = entries.iter().map(|e| e.1).collect();
        let weights = entries.iter().map(|e| e.2).collect();
        Self { offsets, columns, weights }
    }
}

/// Weights that sum to one and have the entropy of `perplexity` equal ones, by halving the range
/// of the Gaussian's precision.
fn gaussian(neighbours: &[Neighbour], perplexity: f64, out: &mut [f32]) {
    let distance = |n: &Neighbour| 2.0 - 2.0 * f64::from(n.cosine);
    let Some(nearest) = neighbours.first().map(distance) else {
        return;
    };
    // Only differences matter; without the nearest one's distance no exponent underflows at once.
    let distances: Vec<f64> = neighbours.iter().map(|n| distance(n) - nearest).collect();
    let (mut low, mut high, mut precision) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..HALVINGS {
        if entropy(&distances, precision) > perplexity.ln() {
            low = precision;
            precision = if high.is_finite() { f64::midpoint(low, high) } else { 2.0 * precision };
        } else {
            high = precision;
            precision = f64::midpoint(low, high);
        }
    }
    let total: f64 = distances.iter().map(|d| (-precision * d).exp()).sum();
    for (out, d) in out.iter_mut().zip(&distances) {
        *out = ((-precision * d).exp() / total) as f32;
    }
}

fn entropy(distances: &[f64], precision: f64) -> f64 {
    let (mut total, mut moment) = (0.0, 0.0);
    for &d in distances {
        let weight = (-precision * d).exp();
        total += weight;
        moment += weight * d;
    }
    total.ln() + precision * moment / total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours(cosines: &[f32]) -> Vec<Neighbour> {
        let number = |(i, &cosine): (usize, &f32)| Neighbour { node: i as u32 + 1, cosine };
        cosines.iter().enumerate().map(number).collect()
    }

    #[test]
    fn a_neighbourhood_counts_as_the_perplexity() {
        let near: Vec<f32> = (0..30).map(|i| 0.9 - 0.02 * i as f32).collect();
        let mut weights = vec![0.0; 30];
        gaussian(&neighbours(&near), 10.0, &mut weights);
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let entropy: f64 = weights.iter().map(|&w| -f64::from(w) * f64::from(w).ln()).sum();
        assert!((total - 1.0).abs() < 1e-6 && (entropy.exp() - 10.0).abs() < 1e-3);
        assert!(weights.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn equal_points_share_equally() {
        let mut weights = vec![0.0; 4];
        gaussian(&neighbours(&[1.0; 4]), 2.0, &mut weights);
        assert_eq!(weights, [0.25; 4]);
    }

    #[test]
    fn weights_are_symmetric_and_sum_to_one() {
        // Three points on a line, one neighbour each: 0 → 1, 1 → 0, 2 → 1.
        let near = |node| Neighbour { node, cosine: 0.5 };
        let p = Affinities::new(&[near(1), near(0), near(1)], 3, 1, 1.0, &Threads::new(1));
        assert_eq!(p.offsets, [0, 1, 3, 4]);
        assert_eq!(p.columns, [1, 0, 2, 1]);
        let (both, one) = (1.0 / 3.0, 1.0 / 6.0);
        for (got, want) in p.weights.iter().zip([both, both, one, one]) {
            assert!((got - want).abs() < 1e-6, "{:?}", p.weights);
        }
    }
}
