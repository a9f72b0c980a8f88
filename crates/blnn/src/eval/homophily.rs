//! The paper's case study: do similar, or strongly weighted, neighbours share a class?

use blnn_kernels::{Matrix, Pattern};

use super::input::unit_rows;
use crate::error::{Error, ErrorKind, Result};

/// Pairs in one interval of the paper's first figure.
pub const PAIRS_PER_INTERVAL: usize = 10_000;

/// Neighbours in one interval of the paper's second figure.
pub const NEIGHBOURS_PER_INTERVAL: usize = 50;

/// The share of edges that join nodes of one class, or `None` without edges.
///
/// ```
/// use blnn_kernels::Pattern;
///
/// let path = Pattern::new(3, vec![0, 1, 3, 4], vec![1, 0, 2, 1]).unwrap();
/// let share = blnn::eval::edge_homophily(&path, &[0, 0, 1]).unwrap();
/// assert_eq!(share, Some(0.5));
/// ```
///
/// # Errors
/// If there is not one label a node.
pub fn edge_homophily(adjacency: &Pattern, labels: &[u32]) -> Result<Option<f64>> {
    one_label_a_node(adjacency, labels)?;
    let same = |i: usize| same_class(labels, i, adjacency.row(i));
    let total: usize = (0..adjacency.rows()).map(same).sum();
    Ok((adjacency.entries() > 0).then(|| total as f64 / adjacency.entries() as f64))
}

/// Sorts all node-neighbour pairs by the cosine of their embeddings, most similar first, and
/// gives the share of same-class pairs in each interval of `interval` pairs (the last may be
/// shorter). The paper uses [`PAIRS_PER_INTERVAL`].
///
/// # Errors
/// If the sizes disagree, an embedding row is zero or not finite, or `interval` is 0.
pub fn homophily_by_similarity(
    embeddings: &Matrix,
    adjacency: &Pattern,
    labels: &[u32],
    interval: usize,
) -> Result<Vec<f64>> {
    one_label_a_node(adjacency, labels)?;
    if embeddings.rows() != adjacency.rows() {
        let (e, n) = (embeddings.rows(), adjacency.rows());
        return Err(Error::new(ErrorKind::Shape, format!("{e} embeddings for {n} nodes")));
    }
    let x = unit_rows(embeddings)?;
    let mut pairs = Vec::with_capacity(adjacency.entries());
    for i in 0..adjacency.rows() {
        for &j in adjacency.row(i) {
            let products = x.row(i).iter().zip(x.row(j as usize));
            let cosine: f32 = products.map(|(a, b)| a * b).sum();
            pairs.push((cosine, labels[i] == labels[j as usize]));
        }
    }
    shares_by_weight(pairs, interval)
}

/// Sorts the neighbours of one anchor by weight, heaviest first, and gives the share that has the
/// anchor's class in each interval of `interval` neighbours (the last may be shorter). The paper
/// uses [`NEIGHBOURS_PER_INTERVAL`] and the attention weights.
///
/// `weights[k]` belongs to the `k`-th neighbour in `adjacency.row(anchor)`.
///
/// # Errors
/// If the sizes disagree, the anchor is no node, a weight is NaN, or `interval` is 0.
pub fn homophily_by_weight(
    adjacency: &Pattern,
    labels: &[u32],
    anchor: usize,
    weights: &[f32],
    interval: usize,
) -> Result<Vec<f64>> {
    one_label_a_node(adjacency, labels)?;
    if anchor >= adjacency.rows() {
        let message = format!("anchor {anchor} of a graph with {} nodes", adjacency.rows());
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let neighbours = adjacency.row(anchor);
    if weights.len() != neighbours.len() {
        let (w, n) = (weights.len(), neighbours.len());
        return Err(Error::new(
            ErrorKind::Shape,
            format!("{w} weights for {n} neighbours of node {anchor}"),
        ));
    }
    let same = |&j: &u32| labels[j as usize] == labels[anchor];
    let pairs = weights.iter().copied().zip(neighbours.iter().map(same));
    shares_by_weight(pairs.collect(), interval)
}

/// The weights that BLNN's attention gives the neighbours of one anchor if both ends are these
/// embeddings: the softmax of cosine over temperature, one for each of `adjacency.row(anchor)`.
pub(crate) fn attention_weights(
    embeddings: &Matrix,
    adjacency: &Pattern,
    anchor: usize,
    temperature: f64,
) -> Vec<f32> {
    let dot = |a: usize, b: usize| {
        let products = embeddings.row(a).iter().zip(embeddings.row(b));
        products.map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
    };
    let cosine = |j: usize| {
        let length = (dot(anchor, anchor) * dot(j, j)).sqrt();
        if length > 0.0 { dot(anchor, j) / length } else { 0.0 }
    };
    let neighbours = adjacency.row(anchor).iter();
    let logits: Vec<f64> = neighbours.map(|&j| cosine(j as usize) / temperature).collect();
    // Without the largest taken off, a low temperature overflows.
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scores: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
    let total: f64 = scores.iter().sum();
    scores.iter().map(|score| (score / total) as f32).collect()
}

fn one_label_a_node(adjacency: &Pattern, labels: &[u32]) -> Result<()> {
    if labels.len() == adjacency.rows() {
        return Ok(());
    }
    let (l, n) = (labels.len(), adjacency.rows());
    Err(Error::new(ErrorKind::Shape, format!("{l} labels for {n} nodes")))
}

fn same_class(labels: &[u32], node: usize, neighbours: &[u32]) -> usize {
    let same = |&&j: &&u32| labels[j as usize] == labels[node];
    neighbours.iter().filter(same).count()
}

/// Shares of `true` in consecutive intervals of the pairs, heaviest first; equals keep their order.
fn shares_by_weight(mut pairs: Vec<(f32, bool)>, interval: usize) -> Result<Vec<f64>> {
    if interval == 0 {
        return Err(Error::new(ErrorKind::Config, "an interval must hold at least one pair"));
    }
    if pairs.iter().any(|p| p.0.is_nan()) {
        return Err(Error::new(ErrorKind::Shape, "a weight is NaN"));
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share =
        |part: &[(f32, bool)]| part.iter().filter(|p| p.1).count() as f64 / part.len() as f64;
    Ok(pairs.chunks(interval).map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star() -> Pattern {
        Pattern::new(5, vec![0, 4, 5, 6, 7, 8], vec![1, 2, 3, 4, 0, 0, 0, 0]).unwrap()
    }

    #[test]
    fn similar_pairs_come_first() {
        let x = Matrix::from_vec(5, 2, vec![2.0, 0.0, 1.0, 0.1, 0.0, 1.0, 3.0, 0.0, -1.0, 0.0]);
        let shares = homophily_by_similarity(&x, &star(), &[0, 0, 1, 0, 1], 3).unwrap();
        // Pairs by cosine: with 3 (twice), with 1 (twice), with 2 (twice), with 4 (twice).
        assert_eq!(shares, [1.0, 1.0 / 3.0, 0.0]);
    }

    #[test]
    fn similar_neighbours_weigh_more_and_weights_sum_to_one() {
        let star = Pattern::new(4, vec![0, 3, 4, 5, 6], vec![1, 2, 3, 0, 0, 0]).unwrap();
        let x = Matrix::from_vec(4, 2, vec![1.0, 0.0, 0.0, 2.0, 3.0, 0.0, -1.0, 0.0]);
        let weights = attention_weights(&x, &star, 0, 0.5);
        assert!(weights[1] > weights[0] && weights[0] > weights[2]);
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        let want = (1.0_f64 / 0.5).exp() / ((2.0_f64).exp() + 1.0 + (-2.0_f64).exp());
        assert!((f64::from(weights[1]) - want).abs() < 1e-6);
        // A row of zeros points nowhere: it is like no other.
        let weights = attention_weights(&Matrix::zeros(4, 2), &star, 0, 0.01);
        assert_eq!(weights, [1.0 / 3.0; 3]);
    }

    #[test]
    fn heavy_neighbours_come_first() {
        let labels = [0, 0, 1, 0, 1];
        let shares = homophily_by_weight(&star(), &labels, 0, &[0.1, 0.4, 0.3, 0.2], 2).unwrap();
        assert_eq!(shares, [0.5, 0.5]);
        let shares = homophily_by_weight(&star(), &labels, 0, &[0.4, 0.1, 0.3, 0.2], 2).unwrap();
        assert_eq!(shares, [1.0, 0.0]);
    }

    #[test]
    fn bad_input_is_refused() {
        let message = |r: Result<Vec<f64>>| r.unwrap_err().to_string();
        let labels = [0, 0, 1, 0, 1];
        assert_eq!(
            message(homophily_by_weight(&star(), &labels[..3], 0, &[], 2)),
            "3 labels for 5 nodes"
        );
        assert_eq!(
            message(homophily_by_weight(&star(), &labels, 1, &[], 2)),
            "0 weights for 1 neighbours of node 1"
        );
        assert_eq!(
            message(homophily_by_weight(&star(), &labels, 9, &[], 2)),
            "anchor 9 of a graph with 5 nodes"
        );
        assert_eq!(
            message(homophily_by_weight(&star(), &labels, 1, &[f32::NAN], 2)),
            "a weight is NaN"
        );
        assert!(message(homophily_by_weight(&star(), &labels, 1, &[1.0], 0)).contains("interval"));
        let short = Matrix::zeros(3, 2);
        assert_eq!(
            message(homophily_by_similarity(&short, &star(), &labels, 2)),
            "3 embeddings for 5 nodes"
        );
    }
}
