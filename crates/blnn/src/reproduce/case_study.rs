//! Figure 3: do similar neighbours, and strongly weighted ones, share a class?
//!
//! (a) All node-neighbour pairs, sorted by the cosine of their embeddings, most similar first, in
//! intervals of 10,000: the share of same-class pairs in each. (b) The same for the neighbours of
//! one anchor, the node with 949 neighbours on Computers, sorted by the attention's weights, in
//! intervals of 50. Graphs too small for these sizes get about 20 intervals.

use blnn_kernels::Pattern;

use crate::error::Result;
use crate::eval::{
    NEIGHBOURS_PER_INTERVAL, PAIRS_PER_INTERVAL, attention_weights, homophily_by_similarity,
    homophily_by_weight,
};
use crate::graph::Graph;

use super::execute::Work;
use super::job::TrainingJob;
use super::report::{Aggregate, Report, Row, Series};
use super::rows::run_row_of;
use super::trained::{StoredEmbedding, Trained, labels_of};

/// Neighbours of the paper's anchor.
const ANCHOR_DEGREE: usize = 949;

/// A curve of fewer intervals than this says little; smaller intervals are taken then.
const LEAST_INTERVALS: usize = 10;
/// Intervals of a graph that is too small for the paper's.
const FEW_INTERVALS: usize = 20;

/// Adds curves and rows of one data set.
pub(super) fn add(
    work: &mut Work<'_>,
    report: &mut Report,
    dataset: &str,
    jobs: &[TrainingJob],
) -> Result<()> {
    let graph = work.graph(dataset)?;
    for seeds in jobs.chunk_by(|a, b| a.label() == b.label()) {
        let with_embedding = |job: &TrainingJob| {
            work.results.get(&job.key()).and_then(|run| Some((run, run.embedding.as_ref()?)))
        };
        let found: Vec<(&Trained, &StoredEmbedding)> =
            seeds.iter().filter_map(with_embedding).collect();
        let curves = found.iter().map(|(run, embedding)| curves(&graph, run, embedding));
        let curves = curves.collect::<Result<Vec<_>>>()?;
        let runs: Vec<&Trained> = found.iter().map(|(run, _)| *run).collect();
        let without = seeds.iter().filter(|job| with_embedding(job).is_none());
        let (scored, pending): (Vec<&TrainingJob>, Vec<&TrainingJob>) =
            without.partition(|job| work.results.contains_key(&job.key()));
        let pending: Vec<u64> = pending.iter().map(|job| job.plan().seed()).collect();
        let no_embedding = scored.iter().map(|job| {
            format!("seed {} is on record, its embedding is not here", job.plan().seed())
        });
        let no_embedding: Vec<String> = no_embedding.collect();
        for (part, name) in ["pairs", "anchor"].into_iter().enumerate() {
            let of_part: Vec<&Vec<f64>> = curves.iter().map(|c| &c[part]).collect();
            for mut row in rows(dataset, seeds[0].label(), name, &runs, &of_part) {
                row.pending.clone_from(&pending);
                row.remark = (!no_embedding.is_empty()).then(|| no_embedding.join("; "));
                report.rows.push(row);
            }
        }
        if let Some(first) = curves.first() {
            report.series.extend(series(&graph, seeds[0].label(), first));
        }
    }
    // Curves of one picture stand together.
    report.series.sort_by(|a, b| a.figure.cmp(&b.figure));
    Ok(())
}

/// Shares of same-class pairs by similarity, and of same-class neighbours of the anchor by weight.
fn curves(graph: &Graph, run: &Trained, embedding: &StoredEmbedding) -> Result<[Vec<f64>; 2]> {
    let (adjacency, labels) = (graph.adjacency(), labels_of(graph)?);
    let embeddings = embedding.read()?;
    let interval = interval(adjacency.entries(), PAIRS_PER_INTERVAL);
    let pairs = homophily_by_similarity(&embeddings, adjacency, labels, interval)?;
    let anchor = anchor(adjacency);
    let weights =
        attention_weights(&embeddings, adjacency, anchor, run.job.temperature().unwrap_or(1.0));
    let interval = self::interval(weights.len(), NEIGHBOURS_PER_INTERVAL);
    let neighbours = homophily_by_weight(adjacency, labels, anchor, &weights, interval)?;
    Ok([pairs, neighbours])
}

/// The paper's interval, or a smaller one where that would leave too few.
fn interval(total: usize, paper: usize) -> usize {
    if total >= LEAST_INTERVALS * paper { paper } else { total.div_ceil(FEW_INTERVALS).max(1) }
}

/// The first node with as many neighbours as the paper's anchor, or else the one with most.
fn anchor(adjacency: &Pattern) -> usize {
    let degree = |i: &usize| adjacency.row(*i).len();
    let nodes = || 0..adjacency.rows();
    let paper = nodes().find(|i| degree(i) == ANCHOR_DEGREE);
    paper.or_else(|| nodes().rev().max_by_key(degree)).unwrap_or(0)
}

/// The ends of a curve as rows: how much the first interval differs from the last.
fn rows(
    dataset: &str,
    method: &str,
    part: &str,
    runs: &[&Trained],
    curves: &[&Vec<f64>],
) -> Vec<Row> {
    let end = |which: &str, pick: fn(&[f64]) -> Option<&f64>| {
        let mut row = Row::empty(dataset, method, &format!("{part}, {which} interval"));
        let values: Vec<f64> = curves.iter().filter_map(|c| pick(c)).map(|v| 100.0 * v).collect();
        row.last = Aggregate::of(&values, None);
        row.runs = runs.iter().zip(&values).map(|(run, v)| run_row_of(run, *v)).collect();
        row
    };
    vec![end("first", <[f64]>::first), end("last", <[f64]>::last)]
}

/// The curves of one run, with the level of all pairs to compare with.
fn series(graph: &Graph, method: &str, curves: &[Vec<f64>; 2]) -> Vec<Series> {
    let adjacency = graph.adjacency();
    let anchor = anchor(adjacency);
    let degree = adjacency.row(anchor).len();
    let pairs = interval(adjacency.entries(), PAIRS_PER_INTERVAL);
    let neighbours = interval(degree, NEIGHBOURS_PER_INTERVAL);
    let labels = [
        ("pairs", "all pairs", format!("interval of {pairs} pairs, most similar first")),
        (
            "anchor",
            "one anchor",
            format!("interval of {neighbours} of {degree} neighbours, heaviest first"),
        ),
    ];
    let one = |(shares, (part, title, x_label)): (&Vec<f64>, (&str, &str, String))| Series {
        figure: format!("case-study-{}-{part}", graph.name()),
        dataset: graph.name().to_owned(),
        title: title.to_owned(),
        name: method.to_owned(),
        x_label,
        y_label: "same-class share, %".to_owned(),
        points: shares.iter().enumerate().map(|(i, s)| ((i + 1) as f64, 100.0 * s)).collect(),
    };
    curves.iter().zip(labels).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_the_papers_where_the_graph_is_large_enough() {
        assert_eq!(interval(491_722, PAIRS_PER_INTERVAL), 10_000);
        assert_eq!(interval(949, NEIGHBOURS_PER_INTERVAL), 50);
        assert_eq!(interval(10_556, PAIRS_PER_INTERVAL), 528);
        assert_eq!(interval(3, NEIGHBOURS_PER_INTERVAL), 1);
    }

    #[test]
    fn without_the_papers_anchor_it_is_the_node_with_most_neighbours() {
        let star = Pattern::new(4, vec![0, 3, 4, 5, 6], vec![1, 2, 3, 0, 0, 0]).unwrap();
        assert_eq!(anchor(&star), 0);
    }
}
