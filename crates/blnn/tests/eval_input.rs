//! Input the evaluator refuses, and what it says.

use blnn::eval::{EvalPlan, Task, check_labels, evaluate};
use blnn::{ErrorKind, Splits};
use blnn_kernels::{Matrix, Threads};

fn matrix(rows: usize) -> Matrix {
    Matrix::from_fn(rows, 3, |i, j| ((i * 5 + j * 3) as f32).sin())
}

fn labels(rows: usize) -> Vec<u32> {
    (0..rows as u32).map(|i| i % 2).collect()
}

fn only(task: Task) -> EvalPlan {
    EvalPlan { tasks: vec![task], splits: 2, repeats: 1, ..EvalPlan::default() }
}

fn refusal(x: &Matrix, labels: &[u32], splits: Option<&Splits>, plan: &EvalPlan) -> String {
    let error =
        evaluate(x, labels, splits, plan, &Threads::new(1), &mut |_| ()).expect_err("bad input");
    assert!(matches!(error.kind(), ErrorKind::Shape | ErrorKind::Config));
    error.to_string()
}

#[test]
fn lengths_that_differ() {
    assert_eq!(
        refusal(&matrix(30), &labels(29), None, &EvalPlan::default()),
        "30 embeddings but 29 labels; both must be of the same nodes in the same order"
    );
}

#[test]
fn rows_that_are_not_numbers() {
    let mut x = matrix(30);
    x.row_mut(4)[1] = f32::NAN;
    let plan = EvalPlan::default();
    assert_eq!(
        refusal(&x, &labels(30), None, &plan),
        "row 4 of the embeddings holds NaN or infinite values; replace them or drop the node"
    );
    x.row_mut(9)[0] = f32::INFINITY;
    assert!(
        refusal(&x, &labels(30), None, &plan).starts_with("row 4 of the embeddings (and 1 more)")
    );
}

#[test]
fn rows_of_zeros() {
    let mut x = matrix(30);
    x.row_mut(7).fill(0.0);
    assert_eq!(
        refusal(&x, &labels(30), None, &EvalPlan::default()),
        "row 7 of the embeddings is all zeros, so it has no direction; drop the node"
    );
}

#[test]
fn embeddings_without_dimensions() {
    let x = Matrix::zeros(30, 0);
    let message = refusal(&x, &labels(30), None, &EvalPlan::default());
    assert_eq!(message, "the embeddings have no dimensions");
}

#[test]
fn a_class_with_one_member() {
    let mut y = labels(30);
    y[12] = 9;
    for task in [Task::Classify, Task::Compactness] {
        let message = refusal(&matrix(30), &y, None, &only(task));
        let want =
            "class 9 has one member (node 12); merge the class with another or drop the node";
        assert_eq!(message, format!("{task}: {want}"));
    }
    // These do not need a second member.
    for task in [Task::Cluster, Task::Similar] {
        assert!(check_labels(&y, None, &only(task)).is_ok());
    }
}

#[test]
fn fewer_nodes_than_splits_need() {
    let message = refusal(&matrix(9), &labels(9), None, &only(Task::Classify));
    assert_eq!(message, "classify: 9 nodes are too few to split; at least 10 are needed");
    let message = refusal(&matrix(10), &labels(10), None, &only(Task::Similar));
    assert_eq!(message, "similar: 10 nodes have no 10 nearest others; at least 11 are needed");
    // The smallest that can be split is.
    let (x, y, plan) = (matrix(10), labels(10), only(Task::Classify));
    evaluate(&x, &y, None, &plan, &Threads::new(1), &mut |_| ()).unwrap();
}

#[test]
fn one_class_only() {
    let message = refusal(&matrix(20), &[3; 20], None, &only(Task::Cluster));
    assert_eq!(message, "cluster: all 20 nodes have one class; at least two are needed");
}

#[test]
fn no_nodes_tasks_splits_or_repeats() {
    let message = refusal(&matrix(0), &[], None, &EvalPlan::default());
    assert_eq!(message, "there are no nodes to score");
    let refused = |change: fn(&mut EvalPlan)| {
        let mut plan = EvalPlan::default();
        change(&mut plan);
        refusal(&matrix(30), &labels(30), None, &plan)
    };
    assert!(refused(|p| p.tasks.clear()).starts_with("no task to score"));
    assert_eq!(refused(|p| p.splits = 0), "splits must be at least 1, got 0");
    assert_eq!(refused(|p| p.repeats = 0), "repeats must be at least 1, got 0");
}

#[test]
fn public_splits_that_do_not_fit() {
    let refused =
        |splits: &Splits| refusal(&matrix(30), &labels(30), Some(splits), &EvalPlan::default());
    let mut splits =
        Splits { train: vec![vec![true; 30]], validation: vec![], test: vec![vec![true; 30]] };
    assert_eq!(refused(&splits), "public splits: 1 training masks and 0 validation masks");
    splits.validation = vec![vec![true; 30]];
    splits.test = vec![vec![true; 30]; 2];
    assert_eq!(refused(&splits), "public splits: 1 training masks and 2 test masks");
    splits.test.pop();
    splits.validation = vec![vec![true; 29]];
    assert_eq!(refused(&splits), "public splits: a mask of 29 flags for 30 nodes");
    splits.validation = vec![vec![false; 30]];
    assert_eq!(refused(&splits), "public splits: a mask selects no node");
}

#[test]
fn splits_that_learn_from_what_they_test_on() {
    let from = |start: usize, end: usize| (0..30).map(|i| (start..end).contains(&i)).collect();
    let mut splits = Splits {
        train: vec![from(0, 10), from(5, 10)],
        validation: vec![from(10, 15), from(10, 21)],
        test: vec![from(20, 30)],
    };
    let plan = EvalPlan::default();
    let refused = |splits: &Splits| refusal(&matrix(30), &labels(30), Some(splits), &plan);
    let message = refused(&splits);
    assert!(
        message.contains("node 20 is both a validation and a test node of split 1"),
        "{message}"
    );
    splits.train[0] = from(0, 30);
    let message = refused(&splits);
    assert!(message.contains("node 20 is both a training and a test node of split 0"), "{message}");
}

#[test]
fn labels_that_are_no_classes_are_not_clustered() {
    let ids: Vec<u32> = (0..30).collect();
    let plan = EvalPlan { tasks: vec![Task::Cluster], ..EvalPlan::default() };
    let message = refusal(&matrix(30), &ids, None, &plan);
    assert!(message.starts_with("cluster: 30 classes of 30 nodes are too many"), "{message}");
}
