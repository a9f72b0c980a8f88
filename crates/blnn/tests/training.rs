//! A run from graph to folder: resumed, refused, diverged, collapsed, on any number of threads.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use blnn::eval::EpochScores;
use blnn::{Config, ErrorKind, Features, Graph, Health, Job, Observer, Outcome, Plan};
use blnn::{Record, Result, RunFolder, Step, train};
use blnn_kernels::{Matrix, Pattern, Threads};

/// A ring of `n` nodes with chords, whose features repeat with the given period.
fn ring(n: usize, period: usize) -> Graph {
    let neighbours = |i: usize| {
        let mut row = [(i + 1) % n, (i + n - 1) % n, (i + n / 2) % n];
        row.sort_unstable();
        row.map(|j| j as u32)
    };
    let offsets = (0..=n).map(|i| 3 * i).collect();
    let pattern = Pattern::new(n, offsets, (0..n).flat_map(neighbours).collect()).unwrap();
    let feature = |i: usize, j: usize| ((i % period) as f32 * (j + 1) as f32 * 0.7).sin();
    let features = Features::Dense(Matrix::from_fn(n, 12, feature));
    Graph::new("ring", pattern, features).unwrap()
}

fn plan(settings: &[&str]) -> Plan {
    let mut config = Config::new();
    let small = [
        "hidden_width=8",
        "embedding_width=6",
        "predictor_width=8",
        "learning_rate=0.01",
        "epochs=30",
        "warmup_epochs=3",
        "checkpoint_every=7",
    ];
    for setting in small.iter().chain(settings) {
        config.assign(setting).unwrap();
    }
    config.resolve("ring").unwrap()
}

fn run_in(root: &Path, graph: &Graph, plan: &Plan, observer: &mut dyn Observer) -> Result<Outcome> {
    let folder = if RunFolder::holds_run(root) {
        RunFolder::open(root)?
    } else {
        RunFolder::create(root, false)?
    };
    let job = Job { graph, plan, threads: &Threads::new(1), folder: &folder, log_every: 5 };
    train(&job, observer)
}

fn embeddings(root: &Path) -> Vec<u8> {
    fs::read(root.join("embeddings.npy")).unwrap()
}

/// The records of a run without their timing.
fn records(root: &Path) -> Vec<Record> {
    let text = fs::read_to_string(root.join("metrics.jsonl")).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
    records.map(|record| Record { seconds: 0.0, ..record }).collect()
}

/// Ends a run after a number of epochs.
struct StopAt(usize);

impl Observer for StopAt {
    fn stepped(&mut self, step: &Step, _: f64) -> ControlFlow<()> {
        if step.epoch == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn a_run_leaves_all_its_files() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(40, 40);
    let outcome = run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap();
    assert!(outcome.finished);
    assert_eq!((outcome.epochs, outcome.nodes, outcome.embedding_width), (30, 40, 6));
    let epochs: Vec<usize> = records(root.path()).iter().map(|r| r.epoch).collect();
    assert_eq!(epochs, [1, 5, 7, 10, 14, 15, 20, 21, 25, 28, 30]);
    assert!(records(root.path()).iter().all(|r| r.loss.is_finite()));
    let measured = records(root.path()).into_iter().filter(|r| r.health.is_some());
    assert_eq!(measured.map(|r| r.epoch).collect::<Vec<_>>(), [7, 14, 21, 28, 30]);
    let ids = fs::read_to_string(root.path().join("node_ids.txt")).unwrap();
    assert_eq!(ids.lines().count(), 40);
    assert_eq!(ids.lines().nth(39), Some("39"));
    let config = fs::read_to_string(root.path().join("config.toml")).unwrap();
    assert!(config.contains("embedding_width = 6"), "{config}");
    let litter = fs::read_dir(root.path()).unwrap().count();
    assert_eq!(litter, 7, "six files and the lock");
}

#[test]
fn the_users_ids_are_kept() {
    let root = tempfile::tempdir().unwrap();
    let ids = (0..10).map(|i| format!("paper {i}")).collect();
    let graph = ring(10, 10).with_node_ids(ids).unwrap();
    run_in(root.path(), &graph, &plan(&["epochs=4"]), &mut ()).unwrap();
    let written = fs::read_to_string(root.path().join("node_ids.txt")).unwrap();
    assert_eq!(written.lines().nth(9), Some("paper 9"));
}

#[test]
fn a_resumed_run_equals_a_straight_one() {
    let graph = ring(40, 40);
    let straight = tempfile::tempdir().unwrap();
    run_in(straight.path(), &graph, &plan(&[]), &mut ()).unwrap();
    for stop in [1, 7, 12, 29] {
        let resumed = tempfile::tempdir().unwrap();
        let stopped = run_in(resumed.path(), &graph, &plan(&[]), &mut StopAt(stop)).unwrap();
        assert!(!stopped.finished && stopped.epochs == stop);
        assert!(!resumed.path().join("embeddings.npy").exists());
        let outcome = run_in(resumed.path(), &graph, &plan(&[]), &mut ()).unwrap();
        assert!(outcome.finished);
        assert_eq!(embeddings(resumed.path()), embeddings(straight.path()));
        assert_eq!(records(resumed.path()), records(straight.path()));
        let checkpoint = |root: &Path| fs::read(root.join("checkpoint.safetensors")).unwrap();
        assert_eq!(checkpoint(resumed.path()), checkpoint(straight.path()));
    }
}

#[test]
fn a_finished_run_resumes_to_itself() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(20, 20);
    run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap();
    let before = embeddings(root.path());
    fs::remove_file(root.path().join("embeddings.npy")).unwrap();
    let outcome = run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap();
    assert!(outcome.finished && outcome.last.is_some());
    assert_eq!(embeddings(root.path()), before);
}

/// It may have been trained elsewhere, by instructions that round otherwise.
#[test]
fn a_finished_run_that_is_resumed_is_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(20, 20);
    run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap();
    let summary = fs::read(root.path().join("summary.json")).unwrap();
    fs::write(root.path().join("embeddings.npy"), "of another machine").unwrap();
    assert!(run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap().finished);
    assert_eq!(embeddings(root.path()), b"of another machine");
    assert_eq!(fs::read(root.path().join("summary.json")).unwrap(), summary);
}

#[test]
fn a_run_without_its_checkpoint_begins_anew_with_its_own_settings() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(20, 20);
    run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap();
    fs::remove_file(root.path().join("checkpoint.safetensors")).unwrap();
    let error = run_in(root.path(), &graph, &plan(&["seed=2"]), &mut ()).unwrap_err().to_string();
    assert!(error.contains("seed = ") && error.contains("has no checkpoint"), "{error}");
    assert!(root.path().join("embeddings.npy").exists(), "a refusal changes nothing");
    run_in(root.path(), &graph, &plan(&[]), &mut StopAt(10)).unwrap();
    assert!(!root.path().join("embeddings.npy").exists(), "that was the earlier run's");
}

#[test]
fn the_seed_changes_the_embedding() {
    let graph = ring(20, 20);
    let results = ["seed=1", "seed=2"].map(|seed| {
        let root = tempfile::tempdir().unwrap();
        run_in(root.path(), &graph, &plan(&[seed]), &mut ()).unwrap();
        embeddings(root.path())
    });
    assert_ne!(results[0], results[1]);
}

/// Stops a run after ten epochs, then resumes it with another graph or plan.
fn refusal(graph: &Graph, settings: &[&str]) -> String {
    let root = tempfile::tempdir().unwrap();
    run_in(root.path(), &ring(40, 40), &plan(&[]), &mut StopAt(10)).unwrap();
    let read = |name: &str| fs::read(root.path().join(name)).unwrap();
    let files = ["checkpoint.safetensors", "metrics.jsonl", "config.toml"];
    let before = files.map(read);
    let error = run_in(root.path(), graph, &plan(settings), &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Checkpoint, "{error}");
    assert_eq!(files.map(read), before, "a refusal changes nothing");
    error.to_string()
}

#[test]
fn a_checkpoint_of_another_graph_is_refused() {
    let message = refusal(&ring(40, 20), &[]);
    assert!(message.contains("another graph"), "{message}");
    assert!(message.contains("--out"), "{message}");
}

#[test]
fn labels_may_come_later_unless_the_method_trains_on_them() {
    let bare = ring(20, 20);
    let labelled = |shift: u32| {
        let labels = (0..20).map(|i| (i / 5 + shift) % 2).collect();
        ring(20, 20).with_labels(labels, Vec::new()).unwrap()
    };
    let then = |settings: &[&str], first: &Graph, second: &Graph| {
        let (root, plan) = (tempfile::tempdir().unwrap(), plan(settings));
        run_in(root.path(), first, &plan, &mut StopAt(10)).unwrap();
        run_in(root.path(), second, &plan, &mut ())
    };
    assert!(then(&[], &bare, &labelled(0)).unwrap().finished);
    assert!(then(&[], &labelled(0), &labelled(1)).unwrap().finished);
    let error = then(&["method=bgrl-clean"], &labelled(0), &labelled(1)).unwrap_err();
    assert!(error.to_string().contains("another graph"), "{error}");
}

#[test]
fn a_checkpoint_of_another_config_is_refused() {
    let message = refusal(&ring(40, 40), &["hidden_width=9"]);
    assert!(message.contains("hidden_width = 8, not 9"), "{message}");
    let message = refusal(&ring(40, 40), &["epochs=60"]);
    assert!(message.contains("epochs = 30, not 60"), "{message}");
    assert!(message.contains("schedule"), "{message}");
}

#[test]
fn how_often_to_save_may_change() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(20, 20);
    run_in(root.path(), &graph, &plan(&[]), &mut StopAt(10)).unwrap();
    let other = plan(&["checkpoint_every=3"]);
    assert!(run_in(root.path(), &graph, &other, &mut ()).unwrap().finished);
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let graph = ring(20, 20);
    run_in(root.path(), &graph, &plan(&[]), &mut StopAt(10)).unwrap();
    let path = root.path().join("checkpoint.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = run_in(root.path(), &graph, &plan(&[]), &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Checkpoint, "{error}");
    assert!(error.to_string().contains("checkpoint.safetensors"), "{error}");
}

#[test]
fn divergence_is_reported_and_keeps_the_last_good_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    // The first step of a warm-up moves nothing: what it saves is good.
    let wild = plan(&["learning_rate=1e38", "warmup_epochs=1", "checkpoint_every=1"]);
    let error = run_in(root.path(), &ring(40, 40), &wild, &mut ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Diverged, "{error}");
    assert!(error.to_string().contains("learning_rate"), "{error}");
    let checkpoint = blnn::Checkpoint::read(&root.path().join("checkpoint.safetensors")).unwrap();
    assert_eq!(checkpoint.header().epoch, 1);
    for (name, tensor) in checkpoint.tensors() {
        assert!(tensor.data().iter().all(|v| v.is_finite()), "{name}");
    }
    assert!(!root.path().join("embeddings.npy").exists());
}

/// Collects what a run says about the embedding's health.
#[derive(Default)]
struct Watch(Vec<Health>);

impl Observer for Watch {
    fn saved(&mut self, _: usize, health: &Health) {
        self.0.push(*health);
    }
}

#[test]
fn a_collapse_is_noticed_and_recorded() {
    // Equal nodes with equal neighbourhoods cannot but share one embedding.
    let root = tempfile::tempdir().unwrap();
    let mut watch = Watch::default();
    run_in(root.path(), &ring(30, 1), &plan(&[]), &mut watch).unwrap();
    assert!(!watch.0.is_empty() && watch.0.iter().all(|h| h.collapsed));
    let last = records(root.path()).pop().unwrap();
    assert!(last.health.unwrap().collapsed);
}

/// Scores every tenth epoch.
struct Score;

impl Observer for Score {
    fn wants_score(&self, epoch: usize) -> bool {
        epoch.is_multiple_of(10)
    }

    fn score(&mut self, _: usize, z: &Matrix) -> Result<EpochScores> {
        let by_name = [("columns".to_owned(), z.cols() as f64)].into();
        Ok(EpochScores { by_name, splits: None })
    }
}

#[test]
fn scores_go_into_the_records() {
    let root = tempfile::tempdir().unwrap();
    run_in(root.path(), &ring(20, 20), &plan(&[]), &mut Score).unwrap();
    for record in records(root.path()) {
        let expected = record.epoch.is_multiple_of(10).then_some(6.0);
        assert_eq!(record.scores.get("columns").copied(), expected);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let graph = ring(200, 90);
    let results = [1, 2, 3].map(|threads| {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::create(root.path(), false).unwrap();
        let job = Job {
            graph: &graph,
            plan: &plan(&["epochs=8"]),
            threads: &Threads::new(threads),
            folder: &folder,
            log_every: 1,
        };
        train(&job, &mut ()).unwrap();
        (embeddings(root.path()), records(root.path()))
    });
    assert!(results[0] == results[1] && results[1] == results[2]);
}
