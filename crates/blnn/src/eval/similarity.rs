//! Similarity search: do a node's nearest neighbours by cosine share its class?
//!
//! Blocks of nodes are compared with all nodes; only the few best of each are kept, so no `n × n`
//! matrix exists.

use blnn_kernels::{Matrix, Threads};

use super::classify::{Tick, report};
use crate::search::{BLOCK, Neighbour, block_of_nearest};

/// Pieces of work for `n` nodes.
pub(super) fn pieces(n: usize) -> usize {
    n.div_ceil(BLOCK)
}

/// For each `k` of `ks`, the mean share of nodes of the same class among the `k` nearest others by
/// cosine; of several equally near the lower index counts as nearer. `x` has rows of length one.
pub(super) fn same_class_share(
    x: &Matrix,
    labels: &[u32],
    ks: &[usize],
    threads: &Threads,
    tick: Tick<'_>,
) -> Vec<f64> {
    let blocks = pieces(x.rows());
    let mut hits: Vec<Vec<usize>> = vec![Vec::new(); blocks];
    threads.for_each_owned(&mut hits, |block, out| {
        *out = block_hits(x, labels, ks, block * BLOCK);
        report(tick);
    });
    let share = |(slot, &k): (usize, &usize)| {
        let total: usize = hits.iter().map(|h| h[slot]).sum();
        total as f64 / (k * x.rows()) as f64
    };
    ks.iter().enumerate().map(share).collect()
}

/// How many of the `k` nearest share the class, summed over one block of nodes, for each `k`.
fn block_hits(x: &Matrix, labels: &[u32], ks: &[usize], first: usize) -> Vec<usize> {
    let most = ks.iter().copied().max().unwrap_or(0);
    let nearest = block_of_nearest(x, first, most);
    let same = |(at, best): (usize, &Vec<Neighbour>), k: usize| {
        let class = labels[first + at];
        best.iter().take(k).filter(|b| labels[b.node as usize] == class).count()
    };
    let total = |&k: &usize| nearest.iter().enumerate().map(|n| same(n, k)).sum();
    ks.iter().map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blnn_kernels::gemm::{Operand, gemm};
    use blnn_kernels::product::Store;
    use std::sync::Mutex;

    #[test]
    fn agrees_with_sorting_everything_whatever_the_block() {
        let n = 1100;
        let mut x = Matrix::from_fn(n, 3, |i, j| ((i * 7 + j * 3) as f32 * 0.73).sin() + 0.01);
        for i in 0..n {
            let norm = x.row(i).iter().map(|v| v * v).sum::<f32>().sqrt();
            x.row_mut(i).iter_mut().for_each(|v| *v /= norm);
        }
        let labels: Vec<u32> = (0..n as u32).map(|i| i * i % 5).collect();
        let tick = Mutex::new(|| {});
        let got = same_class_share(&x, &labels, &[5, 10], &Threads::new(2), &tick);
        let mut products = vec![0.0; n * n];
        let all = Operand::new(x.data(), n, 3);
        gemm(all, all.transposed(), &mut products, Store::Overwrite);
        let want = [5, 10].map(|k| sorted_share(&products, &labels, k));
        assert!(
            (got[0] - want[0]).abs() < 1e-3 && (got[1] - want[1]).abs() < 1e-3,
            "{got:?} {want:?}"
        );
    }

    fn sorted_share(products: &[f32], labels: &[u32], k: usize) -> f64 {
        let n = labels.len();
        let mut hits = 0;
        for i in 0..n {
            let mut others: Vec<usize> = (0..n).filter(|&j| j != i).collect();
            others.sort_by(|&a, &b| products[i * n + b].total_cmp(&products[i * n + a]));
            hits += others[..k].iter().filter(|&&j| labels[j] == labels[i]).count();
        }
        hits as f64 / (k * n) as f64
    }

    #[test]
    fn equally_near_nodes_count_in_index_order() {
        let x = Matrix::from_fn(6, 1, |_, _| 1.0);
        let labels = [0, 0, 1, 1, 1, 1];
        let tick = Mutex::new(|| {});
        // Node 0 sees 1; node 1 sees 0; all others see 0, of the other class.
        let share = same_class_share(&x, &labels, &[1], &Threads::new(1), &tick);
        assert!((share[0] - 2.0 / 6.0).abs() < 1e-12);
    }
}
