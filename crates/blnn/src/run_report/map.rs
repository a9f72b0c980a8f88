//! The map of a run's nodes.

use blnn_kernels::{Matrix, Threads};

use crate::error::Result;
use crate::eval;
use crate::graph::Graph;
use crate::project::{TsneOptions, pca, tsne};
use crate::report::{Colouring, Map, Packed};
use crate::search::{Neighbour, Search};

use super::charts::class_name;
use super::{MapMethod, ReportOptions, grouped};

/// Neighbours listed for each node.
const NEIGHBOURS: usize = 10;

/// Clusters where no labels say how many to expect: as many as colours are easily told apart.
const CLUSTERS: usize = 10;

/// Seed of the clusters' ten starts.
const CLUSTER_SEED: u32 = 0;

/// The nodes of a run.
pub(super) struct Nodes<'a> {
    pub(super) matrix: &'a Matrix,
    pub(super) ids: &'a [String],
    pub(super) graph: Option<&'a Graph>,
}

/// Lays the nodes out.
pub(super) fn draw(
    nodes: &Nodes<'_>,
    options: &ReportOptions,
    threads: &Threads,
    progress: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Map> {
    let shown = evenly(nodes.matrix.rows(), options.most_nodes);
    let matrix = take_rows(nodes.matrix, &shown);
    let search = Search::new(&matrix)?;
    let points = match options.map {
        MapMethod::Tsne => tsne(&matrix, &TsneOptions::default(), threads, progress)?,
        MapMethod::Pca => pca(search.unit_rows(), threads)?,
    };
    let near = search.all(NEIGHBOURS, threads, &mut |_, _| ());
    let (x, y) = Map::positions(&points);
    Ok(Map {
        note: note(options.map, shown.len(), nodes.matrix.rows()),
        nodes: nodes.matrix.rows(),
        ids: shown_ids(nodes.ids, &shown),
        x,
        y,
        colourings: colourings(nodes.graph, &matrix, &shown, threads),
        neighbours: Packed::numbers(&near.iter().map(|n| n.node).collect::<Vec<_>>()),
        cosines: Packed::words(near.iter().copied().map(cosine_word)),
    })
}

fn cosine_word(neighbour: Neighbour) -> u16 {
    (f64::midpoint(f64::from(neighbour.cosine), 1.0) * 65_535.0).round() as u16
}

fn note(method: MapMethod, shown: usize, all: usize) -> String {
    let how = match method {
        MapMethod::Tsne => format!(
            "t-SNE of the embeddings (perplexity {:.0}, {} steps from PCA): near nodes \
             are alike; distances between far groups mean little.",
            TsneOptions::default().perplexity_of(shown),
            TsneOptions::default().iterations
        ),
        MapMethod::Pca => "PCA: the two directions in which the embeddings, scaled to length one, \
                           spread most. For a map that keeps neighbours together run `blnn report \
                           RUN --map tsne`."
            .to_owned(),
    };
    if shown == all {
        return how;
    }
    let (shown, all) = (grouped(shown), grouped(all));
    format!("{how} {shown} of {all} nodes are shown, and neighbours are sought among these.")
}

/// At most `most` of `n` rows, evenly spaced.
fn evenly(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    (0..count).map(|i| i * n / count).collect()
}

fn take_rows(matrix: &Matrix, rows: &[usize]) -> Matrix {
    let mut data = Vec::with_capacity(rows.len() * matrix.cols());
    for &i in rows {
        data.extend_from_slice(matrix.row(i));
    }
    Matrix::from_vec(rows.len(), matrix.cols(), data)
}

/// The ids of the rows shown, unless the page can count them itself.
fn shown_ids(ids: &[String], shown: &[usize]) -> Option<Vec<String>> {
    let counted = shown.iter().enumerate().all(|(at, &i)| ids[i] == at.to_string());
    (!counted).then(|| shown.iter().map(|&i| ids[i].clone()).collect())
}

fn colourings(
    graph: Option<&Graph>,
    matrix: &Matrix,
    shown: &[usize],
    threads: &Threads,
) -> Vec<Colouring> {
    let class = graph.and_then(|graph| classes(graph, shown));
    let degree = graph.map(|graph| degrees(graph, shown));
    let count = class.as_ref().and_then(|c| c.categories.as_ref()).map_or(CLUSTERS, Vec::len);
    // Nodes without a class are no class of their own.
    let count = count - usize::from(graph.is_some_and(|graph| graph.without_label() > 0));
    // As many clusters as nodes would say nothing, and take hours to find.
    let count = if 2 * count > matrix.rows() { CLUSTERS } else { count };
    let cluster = clusters(matrix, count.min(matrix.rows()), threads);
    [class, cluster, degree].into_iter().flatten().collect()
}

/// Classes without a single node get no colour; nodes without a class share one, the last.
fn classes(graph: &Graph, shown: &[usize]) -> Option<Colouring> {
    let labelled = graph.labelled()?;
    let of = |i: usize| graph.label_of(i).unwrap_or(u32::MAX);
    let labels: Vec<u32> = (0..graph.nodes()).map(of).collect();
    let used = eval::number_classes(&labels);
    let mut present = labelled.classes;
    present.sort_unstable();
    present.dedup();
    let mut names: Vec<String> = present.iter().map(|&c| class_name(graph, c as usize)).collect();
    if graph.without_label() > 0 {
        names.push("none".to_owned());
    }
    let values: Vec<u32> = shown.iter().map(|&i| used[i]).collect();
    Some(Colouring {
        name: "class".to_owned(),
        categories: Some(names),
        values: Packed::numbers(&values),
    })
}

fn degrees(graph: &Graph, shown: &[usize]) -> Colouring {
    let degree = |&i: &usize| graph.adjacency().row(i).len() as u32;
    let values: Vec<u32> = shown.iter().map(degree).collect();
    Colouring { name: "degree".to_owned(), categories: None, values: Packed::numbers(&values) }
}

/// None where the embeddings cannot be clustered: a row without direction, say.
fn clusters(matrix: &Matrix, count: usize, threads: &Threads) -> Option<Colouring> {
    if count < 2 {
        return None;
    }
    let values = eval::cluster(matrix, count, CLUSTER_SEED, threads).ok()?;
    let names = (1..=count).map(|c| format!("cluster {c}")).collect();
    Some(Colouring {
        name: "cluster".to_owned(),
        categories: Some(names),
        values: Packed::numbers(&values),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix() -> Matrix {
        Matrix::from_fn(30, 3, |i, j| if i % 3 == j { 1.0 } else { 0.01 * i as f32 })
    }

    fn drawn(ids: &[String], most_nodes: usize) -> Map {
        let matrix = matrix();
        let nodes = Nodes { matrix: &matrix, ids, graph: None };
        let options = ReportOptions { map: MapMethod::Pca, most_nodes };
        draw(&nodes, &options, &Threads::new(1), &mut |_, _| ()).unwrap()
    }

    #[test]
    fn a_map_without_a_graph_has_clusters_only() {
        let ids: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        let map = drawn(&ids, 100);
        assert_eq!((map.nodes, map.ids), (30, None));
        let names: Vec<&str> = map.colourings.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["cluster"]);
    }

    #[test]
    fn a_large_graph_is_thinned_and_says_so() {
        let ids: Vec<String> = (0..30).map(|i| i.to_string()).collect();
        let map = drawn(&ids, 12);
        let shown = map.ids.unwrap();
        assert_eq!((shown.len(), shown[1].as_str(), map.nodes), (12, "2", 30));
        assert!(map.note.contains("12 of 30 nodes"), "{}", map.note);
    }

    #[test]
    fn cosines_keep_four_digits() {
        let word = |cosine| f64::from(cosine_word(Neighbour { node: 0, cosine }));
        for cosine in [-1.0_f32, 0.0, 0.123_45, 1.0] {
            let back = word(cosine) / 65_535.0 * 2.0 - 1.0;
            assert!((back - f64::from(cosine)).abs() < 2e-5, "{cosine} {back}");
        }
    }
}
