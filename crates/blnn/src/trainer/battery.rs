//! What every method must pass, whatever its mathematics.

use blnn_kernels::{Csr, Matrix, Pattern, Threads};
use proptest::prelude::{ProptestConfig, any, proptest};

use super::Trainer;
use crate::graph::{Features, Graph};
use crate::plan::{Method, Objective, Plan, Precision, Statistics};

/// A generated graph with two communities, sparse features, a hub and isolated nodes.
fn graph(nodes: usize, seed: u64, order: &[usize]) -> Graph {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut chance = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut edges = vec![Vec::new(); nodes];
    for i in 0..nodes - 2 {
        for j in 0..i {
            let likely = if i % 2 == j % 2 { 0.2 } else { 0.03 };
            if chance() < likely || (j == 0 && i % 3 == 0) {
                edges[order[i]].push(order[j] as u32);
                edges[order[j]].push(order[i] as u32);
            }
        }
    }
    let mut rows = vec![Vec::new(); nodes];
    for (i, &place) in order.iter().enumerate() {
        let words = (0..30).filter(|w| chance() < if w % 2 == i % 2 { 0.4 } else { 0.1 });
        rows[place] = words.map(|w| w as u32).collect();
    }
    let mut labels = vec![0; nodes];
    order.iter().enumerate().for_each(|(i, &place)| labels[place] = (i % 2) as u32);
    for row in &mut edges {
        row.sort_unstable();
    }
    let values: Vec<f32> =
        rows.iter().flat_map(|r| vec![1.0 / r.len().max(1) as f32; r.len()]).collect();
    let features = Csr::new(pattern(30, &rows), values).unwrap();
    Graph::new("generated", pattern(nodes, &edges), Features::Sparse(features))
        .unwrap()
        .with_labels(labels, vec![])
        .unwrap()
}

fn pattern(cols: usize, rows: &[Vec<u32>]) -> Pattern {
    let mut offsets = vec![0];
    for row in rows {
        offsets.push(offsets[offsets.len() - 1] + row.len());
    }
    Pattern::new(cols, offsets, rows.concat()).unwrap()
}

fn in_order(nodes: usize) -> Vec<usize> {
    (0..nodes).collect()
}

fn trained(graph: &Graph, plan: &Plan, threads: usize, steps: usize) -> (Trainer, Vec<f64>) {
    let mut trainer = Trainer::new(graph, plan, &Threads::new(threads)).unwrap();
    let losses = (0..steps).map(|_| trainer.step().loss).collect();
    (trainer, losses)
}

/// Trains a few steps at 1, 2 and 5 threads: all bits must be equal.
fn same_bits_at_any_thread_count(plan: &Plan) {
    let graph = graph(150, 3, &in_order(150));
    let (mut one, losses) = trained(&graph, plan, 1, 4);
    assert!(losses.iter().all(|l| l.is_finite()));
    for threads in [2, 5] {
        let (mut other, others) = trained(&graph, plan, threads, 4);
        assert_eq!(losses, others, "losses at {threads} threads");
        assert_eq!(one.tensors(), other.tensors(), "state at {threads} threads");
        assert_eq!(one.embed(), other.embed(), "embedding at {threads} threads");
    }
}

/// Saves and restores in the middle: the end must be that of the straight run, bit for bit.
fn resumes_with_the_same_bits(plan: &Plan) {
    let graph = graph(80, 5, &in_order(80));
    let (mut straight, _) = trained(&graph, plan, 2, 6);
    let (half, _) = trained(&graph, plan, 1, 3);
    let saved = half.tensors();
    let mut resumed = Trainer::new(&graph, plan, &Threads::new(2)).unwrap();
    resumed
        .restore(half.epoch(), &mut |name, shape| {
            let (_, tensor) = saved.iter().find(|(n, _)| n == name).expect("every tensor is saved");
            assert_eq!(tensor.shape(), shape, "{name}");
            Ok(tensor.clone())
        })
        .unwrap();
    (0..3).for_each(|_| _ = resumed.step());
    assert_eq!(straight.tensors(), resumed.tensors());
    assert_eq!(straight.embed(), resumed.embed());
}

/// An embedding in between does not disturb the training.
fn embedding_leaves_no_trace(plan: &Plan) {
    let graph = graph(80, 5, &in_order(80));
    let (straight, _) = trained(&graph, plan, 1, 4);
    let (mut observed, _) = trained(&graph, plan, 1, 2);
    observed.embed_with(Statistics::LastView);
    (0..2).for_each(|_| _ = observed.step());
    assert_eq!(straight.tensors(), observed.tensors());
}

/// The objective goes down when it is trained for a while.
fn learns(plan: &Plan) {
    let plan = Plan { epochs: 120, warmup_epochs: 10, learning_rate: 5e-3, ..plan.clone() };
    let graph = graph(150, 9, &in_order(150));
    let (_, losses) = trained(&graph, &plan, 1, 120);
    let (start, end) = (losses[0], losses[119]);
    assert!(end < start - 0.3, "loss went from {start} to {end}");
}

/// Numbering the nodes otherwise numbers the embeddings otherwise, and changes nothing else.
fn permuting_nodes_permutes_embeddings(plan: &Plan, order: &[usize], seed: u64) {
    // Edges are drawn by their place in the graph, so a dropped edge would be another one.
    let plan = Plan { edge_drop: [0.0; 2], ..plan.clone() };
    let nodes = order.len();
    let (mut a, losses) = trained(&graph(nodes, seed, &in_order(nodes)), &plan, 1, 3);
    let (mut b, others) = trained(&graph(nodes, seed, order), &plan, 1, 3);
    // Another order of the nodes is another order of sums; with bfloat16 what differs in the last
    // bit of a sum may be rounded to its neighbour, 2⁻⁸ away.
    let (loss_tolerance, tolerance) = match plan.precision {
        Precision::F32 => (1e-4, 2e-3),
        Precision::Bf16 => (2e-3, 5e-2),
    };
    for (l, o) in losses.iter().zip(&others) {
        assert!((l - o).abs() < loss_tolerance, "loss {l} and {o}");
    }
    let (a, b): (Matrix, Matrix) = (a.embed(), b.embed());
    let largest = a.data().iter().fold(0f32, |x, y| x.max(y.abs()));
    for (i, &place) in order.iter().enumerate() {
        for (x, y) in a.row(i).iter().zip(b.row(place)) {
            assert!((x - y).abs() < tolerance * largest, "node {i}: {x} and {y}");
        }
    }
}

/// A random order of `0..n`.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut keys: Vec<(u64, usize)> = (0..n as u64)
        .map(|i| ((i ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29), i as usize))
        .collect();
    keys.sort_unstable();
    keys.into_iter().map(|(_, i)| i).collect()
}

macro_rules! battery {
    ($name:ident, $method:expr, $objective:expr, $precision:expr) => {
        mod $name {
            use super::*;

            fn plan() -> Plan {
                let (method, objective, precision) = ($method, $objective, $precision);
                Plan { method, objective, precision, ..Plan::sample() }
            }

            #[test]
            fn same_bits_at_any_thread_count() {
                super::same_bits_at_any_thread_count(&plan());
            }

            #[test]
            fn resumes_with_the_same_bits() {
                super::resumes_with_the_same_bits(&plan());
            }

            #[test]
            fn embedding_leaves_no_trace() {
                super::embedding_leaves_no_trace(&plan());
            }

            #[test]
            fn learns() {
                super::learns(&plan());
            }

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(8))]
                #[test]
                fn permuting_nodes_permutes_embeddings(n in 12usize..60, seed in any::<u64>()) {
                    super::permuting_nodes_permutes_embeddings(&plan(), &shuffled(n, seed), seed);
                }
            }
        }
    };
}

battery!(bgrl, Method::Bgrl, Objective::Paper, Precision::F32);
battery!(blnn_paper, Method::Blnn, Objective::Paper, Precision::F32);
battery!(blnn_one_direction, Method::Blnn, Objective::OneDirection, Precision::F32);
battery!(blnn_published_code, Method::Blnn, Objective::PublishedCode, Precision::F32);
battery!(bgrl_noisy, Method::BgrlNoisy, Objective::Paper, Precision::F32);
battery!(bgrl_clean, Method::BgrlClean, Objective::Paper, Precision::F32);
battery!(bgrl_noisy_one_direction, Method::BgrlNoisy, Objective::OneDirection, Precision::F32);
battery!(bgrl_clean_one_direction, Method::BgrlClean, Objective::OneDirection, Precision::F32);
battery!(bgrl_noisy_published_code, Method::BgrlNoisy, Objective::PublishedCode, Precision::F32);
battery!(bgrl_clean_published_code, Method::BgrlClean, Objective::PublishedCode, Precision::F32);
battery!(bgrl_bf16, Method::Bgrl, Objective::Paper, Precision::Bf16);
battery!(blnn_paper_bf16, Method::Blnn, Objective::Paper, Precision::Bf16);
battery!(blnn_one_direction_bf16, Method::Blnn, Objective::OneDirection, Precision::Bf16);
battery!(blnn_published_code_bf16, Method::Blnn, Objective::PublishedCode, Precision::Bf16);
battery!(bgrl_noisy_bf16, Method::BgrlNoisy, Objective::Paper, Precision::Bf16);
battery!(bgrl_clean_bf16, Method::BgrlClean, Objective::Paper, Precision::Bf16);

#[test]
fn the_oracle_asks_for_labels() {
    let labelled = graph(20, 1, &in_order(20));
    let (adjacency, features) = (labelled.adjacency().clone(), labelled.features().clone());
    let unlabelled = Graph::new("bare", adjacency, features).unwrap();
    let plan = Plan { method: Method::BgrlClean, ..Plan::sample() };
    let error = Trainer::new(&unlabelled, &plan, &Threads::new(1)).unwrap_err();
    assert!(error.to_string().contains("bare: bgrl-clean is an oracle that needs labels"));
}
