//! A stored model gives the bits that training gave.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use blnn_kernels::{Matrix, Pattern, Threads};

use super::Model;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::data::{generated, npy};
use crate::error::ErrorKind;
use crate::graph::{Features, Graph};
use crate::plan::Plan;
use crate::run::RunFolder;
use crate::train::{Job, Observer, train};
use crate::trainer::Step;

fn plan(settings: &[&str]) -> Plan {
    let mut config = Config::new();
    for setting in ["epochs=4", "hidden_width=40", "embedding_width=33", "predictor_width=8"] {
        config.assign(setting).unwrap();
    }
    for setting in settings {
        config.assign(setting).unwrap();
    }
    config.resolve("generated").unwrap()
}

/// Trains into `root` and returns the embeddings if the run was finished.
fn trained(root: &Path, graph: &Graph, plan: &Plan, observer: &mut dyn Observer) -> Option<Matrix> {
    let threads = Threads::new(2);
    let folder = RunFolder::create(root, true).unwrap();
    let job = Job { graph, plan, threads: &threads, folder: &folder, log_every: 1 };
    let outcome = train(&job, observer).unwrap();
    outcome.finished.then(|| npy::read_file(&folder.embeddings()).unwrap().into_matrix().unwrap())
}

fn sparse() -> Graph {
    generated(150, 3).unwrap()
}

/// The same nodes and edges with attributes stored in full, isolated nodes among them.
fn dense() -> Graph {
    let graph = sparse();
    let rows = graph.nodes() + 2;
    let mut offsets = graph.adjacency().offsets().to_vec();
    offsets.extend([graph.entries(); 2]);
    let adjacency = Pattern::new(rows, offsets, graph.adjacency().indices().to_vec()).unwrap();
    let features = Matrix::from_fn(rows, 7, |i, j| ((i * 13 + j * 5) % 11) as f32 - 5.0);
    Graph::new("dense", adjacency, Features::Dense(features)).unwrap()
}

#[test]
fn the_training_graph_gets_the_bits_of_the_training() {
    let root = tempfile::tempdir().unwrap();
    for graph in [sparse(), dense()] {
        for precision in ["precision=f32", "precision=bf16"] {
            for statistics in ["statistics=last-view", "statistics=averaged"] {
                let plan = plan(&[precision, statistics]);
                let wanted = trained(root.path(), &graph, &plan, &mut ()).unwrap();
                let model = Model::read(root.path()).unwrap();
                assert!(model.is_finished() && model.was_trained_on(&graph));
                for threads in [1, 2, 5] {
                    let found = model.embed(&graph, &Threads::new(threads)).unwrap();
                    let place = format!("{} {precision} {statistics} {threads}", graph.name());
                    assert_eq!(found, wanted, "{place}");
                }
            }
        }
    }
}

/// Labels are needed to train this method, not to embed by it.
#[test]
fn a_method_that_needs_labels_embeds_without_them() {
    let (root, graph) = (tempfile::tempdir().unwrap(), sparse());
    let wanted = trained(root.path(), &graph, &plan(&["method=bgrl-clean"]), &mut ()).unwrap();
    let bare = Graph::new("bare", graph.adjacency().clone(), graph.features().clone()).unwrap();
    let model = Model::read(root.path()).unwrap();
    assert_eq!(model.embed(&bare, &Threads::new(1)).unwrap(), wanted);
    assert!(model.was_trained_on(&bare), "labels make no other graph");
}

/// Old nodes far from the new ones keep their embedding up to rounding; new ones get one.
#[test]
fn new_nodes_are_embedded_beside_the_old_ones() {
    let (root, graph) = (tempfile::tempdir().unwrap(), dense());
    let wanted = trained(root.path(), &graph, &plan(&["precision=f32"]), &mut ()).unwrap();
    // One more node, joined to the last one, which is isolated.
    let (old, nodes) = (graph.nodes(), graph.nodes() + 1);
    let mut offsets = graph.adjacency().offsets().to_vec();
    let mut indices = graph.adjacency().indices().to_vec();
    offsets[old] += 1;
    indices.push(old as u32);
    offsets.push(indices.len() + 1);
    indices.push(old as u32 - 1);
    let adjacency = Pattern::new(nodes, offsets, indices).unwrap();
    let Features::Dense(x) = graph.features() else { panic!("dense") };
    let features = Matrix::from_fn(nodes, 7, |i, j| if i < old { x.get(i, j) } else { 1.0 });
    let grown = Graph::new("grown", adjacency, Features::Dense(features)).unwrap();
    let found = Model::read(root.path()).unwrap().embed(&grown, &Threads::new(2)).unwrap();
    assert_eq!(found.shape(), (nodes, 33));
    for node in 0..old - 1 {
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * (1.0 + a.abs());
        assert!(found.row(node).iter().zip(wanted.row(node)).all(near), "node {node}");
    }
    assert_ne!(found.row(old - 1), wanted.row(old - 1), "its neighbourhood changed");
    assert!(found.row(old).iter().any(|&v| v != 0.0));
}

/// Ends a run after two steps.
struct Stop;

impl Observer for Stop {
    fn stepped(&mut self, step: &Step, _seconds: f64) -> ControlFlow<()> {
        if step.epoch == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn an_interrupted_run_embeds_as_it_stands() {
    let (root, graph) = (tempfile::tempdir().unwrap(), sparse());
    assert!(trained(root.path(), &graph, &plan(&[]), &mut Stop).is_none());
    let model = Model::read(root.path()).unwrap();
    assert_eq!((model.header().epoch, model.is_finished()), (2, false));
    assert_eq!(model.embed(&graph, &Threads::new(1)).unwrap().shape(), (150, 33));
}

#[test]
fn what_does_not_fit_is_explained() {
    let root = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| Model::read(path).unwrap_err().to_string();
    assert!(refusal(root.path()).contains("holds no run"));
    trained(root.path(), &sparse(), &plan(&[]), &mut ()).unwrap();
    let model = Model::read(root.path()).unwrap();
    let error = model.embed(&dense(), &Threads::new(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    let text = error.to_string();
    assert!(text.contains("have 7 features") && text.contains("with 500"), "{text}");

    fs::write(root.path().join("features.json"), r#"{"features": []}"#).unwrap();
    let text = refusal(root.path());
    assert!(text.contains("lists 0 features") && text.contains("has 500"), "{text}");
    fs::write(root.path().join("features.json"), "[]").unwrap();
    assert!(refusal(root.path()).contains("features.json"));

    let path = root.path().join("checkpoint.safetensors");
    let checkpoint = Checkpoint::read(&path).unwrap();
    let header = checkpoint.header().clone();
    let kept = checkpoint.tensors().filter(|(name, _)| !name.starts_with("online.norm2"));
    let kept: Vec<_> = kept.map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    Checkpoint::write(&path, &header, &kept).unwrap();
    let text = refusal(root.path());
    assert!(text.contains("`online.norm2.weight` is missing"), "{text}");
    fs::remove_file(&path).unwrap();
    let text = refusal(root.path());
    assert!(text.contains("holds no checkpoint.safetensors"), "{text}");
}
