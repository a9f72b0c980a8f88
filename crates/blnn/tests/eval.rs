//! The evaluator against scikit-learn's scores (`golden/make_eval_golden.py` made them), and against
//! itself at other thread counts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use blnn::Splits;
use blnn::data::npy;
use blnn::eval::{EvalPlan, Progress, Protocol, Scores, Task, evaluate};
use blnn_kernels::{Matrix, Threads};
use serde_json::Value;

struct Golden {
    embeddings: Matrix,
    labels: Vec<u32>,
    expected: Value,
}

impl Golden {
    fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/eval");
        let array = |file: String| npy::read_file(&folder.join(file)).unwrap();
        let labels = array(format!("{name}_labels.npy")).into_int().unwrap();
        let expected = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        Self {
            embeddings: array(format!("{name}.npy")).into_matrix().unwrap(),
            labels: labels.into_iter().map(|l| l as u32).collect(),
            expected: serde_json::from_str(&expected).unwrap(),
        }
    }

    fn values(&self, key: &str) -> Vec<f64> {
        let values = self.expected[key].as_array().unwrap();
        values.iter().map(|v| v.as_f64().unwrap()).collect()
    }

    fn mask(&self, rows: &Value) -> Vec<bool> {
        let mut mask = vec![false; self.labels.len()];
        for row in rows.as_array().unwrap() {
            mask[row.as_u64().unwrap() as usize] = true;
        }
        mask
    }

    fn splits(&self) -> Splits {
        let masks = |key: &str| {
            let rows = self.expected[key].as_array().unwrap();
            rows.iter().map(|r| self.mask(r)).collect()
        };
        Splits {
            train: masks("train"),
            validation: masks("validation"),
            test: vec![self.mask(&self.expected["test"])],
        }
    }

    fn score(&self, splits: Option<&Splits>, plan: &EvalPlan, threads: usize) -> Scores {
        let threads = Threads::new(threads);
        evaluate(&self.embeddings, &self.labels, splits, plan, &threads, &mut |_| ()).unwrap()
    }
}

fn plan(protocol: Protocol) -> EvalPlan {
    EvalPlan { splits: 6, repeats: 3, protocol, ..EvalPlan::default() }
}

#[track_caller]
fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= tolerance, "got {got:?}, want {want:?}");
    }
}

#[test]
fn scores_are_those_of_scikit_learn() {
    for name in ["plain", "rare"] {
        let golden = Golden::read(name);
        let scores = golden.score(None, &plan(Protocol::Both), 2);
        // One test node of the smaller set is half a point: these must be the same nodes.
        let classify = scores.classify.unwrap();
        close(&classify.per_split, &golden.values("published_code"), 1e-9);
        close(&classify.penalties, &golden.values("published_code_penalties"), 0.0);
        let paper = scores.classify_paper.unwrap();
        close(&paper.per_split, &golden.values("paper"), 1e-9);
        close(&paper.penalties, &golden.values("paper_penalties"), 0.0);

        let cluster = scores.cluster.unwrap();
        close(&cluster.nmi.per_repeat, &golden.values("nmi"), 0.5);
        close(&cluster.homogeneity.per_repeat, &golden.values("homogeneity"), 0.5);

        let similar = scores.similar.unwrap();
        close(&[similar.s_at_5], &[golden.expected["s_at_5"].as_f64().unwrap()], 0.01);
        close(&[similar.s_at_10], &[golden.expected["s_at_10"].as_f64().unwrap()], 0.01);
        close(
            &[scores.compactness.unwrap()],
            &[golden.expected["compactness"].as_f64().unwrap()],
            1e-6,
        );
    }
}

#[test]
fn public_splits_are_scored_as_scikit_learn_does() {
    let golden = Golden::read("plain");
    let one = EvalPlan { tasks: vec![Task::Classify], ..plan(Protocol::PublishedCode) };
    let scores = golden.score(Some(&golden.splits()), &one, 2).classify.unwrap();
    assert_eq!(scores.protocol, "public-splits");
    close(&scores.per_split, &golden.values("public"), 1e-9);
    close(&scores.penalties, &golden.values("public_penalties"), 0.0);
}

#[test]
fn mean_and_deviation_are_those_of_the_splits() {
    let golden = Golden::read("rare");
    let scores = golden.score(None, &plan(Protocol::PublishedCode), 1).classify.unwrap();
    let n = scores.per_split.len() as f64;
    let mean = scores.per_split.iter().sum::<f64>() / n;
    let square = scores.per_split.iter().map(|s| (s - mean).powi(2)).sum::<f64>();
    close(&[scores.summary.mean, scores.summary.std], &[mean, (square / n).sqrt()], 1e-9);
    let [low, high] = scores.summary.confidence_95;
    assert!(low < mean && mean < high);
}

#[test]
fn thread_count_changes_no_bit() {
    let golden = Golden::read("plain");
    let one = golden.score(None, &plan(Protocol::Both), 1);
    for threads in [2, 3] {
        assert_eq!(one, golden.score(None, &plan(Protocol::Both), threads));
    }
}

#[test]
fn another_seed_draws_other_splits_and_is_shown() {
    let golden = Golden::read("plain");
    let other = EvalPlan { seed: 5, ..plan(Protocol::PublishedCode) };
    let (a, b) =
        (golden.score(None, &plan(Protocol::PublishedCode), 1), golden.score(None, &other, 1));
    assert_ne!(a.classify.unwrap().per_split, b.classify.unwrap().per_split);
    assert_eq!((b.seeds.splits, b.seeds.folds, b.seeds.kmeans), (5, 4, 4));
}

#[test]
fn progress_runs_from_zero_to_the_total_of_every_task() {
    let golden = Golden::read("rare");
    let mut seen: Vec<Progress> = Vec::new();
    let (threads, plan) = (Threads::new(2), plan(Protocol::Both));
    let mut listen = |p| seen.push(p);
    evaluate(&golden.embeddings, &golden.labels, None, &plan, &threads, &mut listen).unwrap();
    for task in Task::ALL {
        let steps: Vec<&Progress> = seen.iter().filter(|p| p.task == task).collect();
        assert_eq!(steps.len(), steps[0].total + 1, "{task}");
        assert!(steps.iter().enumerate().all(|(i, p)| p.done == i), "{task}");
    }
}

#[test]
fn results_have_the_keys_programs_read() {
    let golden = Golden::read("rare");
    let scores = golden.score(None, &plan(Protocol::PublishedCode), 1);
    let json = serde_json::to_value(&scores).unwrap();
    for (task, keys) in [
        ("classify", &["mean", "std", "confidence_95", "per_split", "protocol"][..]),
        ("cluster", &["nmi", "homogeneity"]),
        ("similar", &["s_at_5", "s_at_10"]),
        ("seeds", &["splits", "folds", "kmeans"]),
    ] {
        for key in keys {
            assert!(!json[task][key].is_null(), "{task}.{key} in {json}");
        }
    }
    assert!(json["cluster"]["nmi"]["mean"].is_f64() && json["cluster"]["nmi"]["std"].is_f64());
    assert!(json["compactness"].is_f64());
    let one = EvalPlan { tasks: vec![Task::Similar], ..EvalPlan::default() };
    let json = serde_json::to_value(golden.score(None, &one, 1)).unwrap();
    assert!(json.get("classify").is_none() && json.get("compactness").is_none());
}

#[test]
fn two_embeddings_are_compared_split_by_split() {
    let golden = Golden::read("plain");
    let good = golden.score(None, &plan(Protocol::PublishedCode), 2).classify.unwrap();
    let half = Matrix::from_fn(600, 4, |i, j| golden.embeddings.get(i, j));
    let plan = plan(Protocol::PublishedCode);
    let worse = evaluate(&half, &golden.labels, None, &plan, &Threads::new(2), &mut |_| ());
    let compared = good.compare(&worse.unwrap().classify.unwrap());
    assert_eq!((compared.wins, compared.losses), (6, 0));
    assert!(compared.summary.mean > 5.0 && compared.p_value < 0.01);
    assert!((compared.differences[0] + compared.differences[1]).is_finite());
}
