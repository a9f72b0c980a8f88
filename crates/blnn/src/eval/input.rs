//! What scores are computed from, checked once.

use blnn_kernels::Matrix;

use super::plan::{EvalPlan, Task};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Splits;

/// Nodes of which 20 % still leave one for each half of a training part.
const FEWEST_TO_SPLIT: usize = 10;

/// Classes numbered without gaps.
pub(super) struct Classes {
    pub(super) labels: Vec<u32>,
    pub(super) count: usize,
}

impl Classes {
    /// Numbers the different labels in increasing order.
    pub(super) fn new(labels: &[u32]) -> Self {
        let labels = number_classes(labels);
        Self { count: labels.iter().max().map_or(0, |&m| m as usize + 1), labels }
    }
}

/// Numbers the different values in increasing order, as `numpy.unique(return_inverse=True)` does:
/// class numbers from names, or from integers with gaps.
///
/// ```
/// assert_eq!(blnn::eval::number_classes(&["cat", "ant", "cat"]), [1, 0, 1]);
/// assert_eq!(blnn::eval::number_classes(&[7, -1, 3]), [2, 0, 1]);
/// ```
pub fn number_classes<T: Ord>(values: &[T]) -> Vec<u32> {
    let mut used: Vec<&T> = values.iter().collect();
    used.sort_unstable();
    used.dedup();
    let number = |v: &T| used.partition_point(|u| *u < v) as u32;
    values.iter().map(number).collect()
}

fn shape<T>(message: String) -> Result<T> {
    Err(Error::new(ErrorKind::Shape, message))
}

const NOT_FINITE: &str = "holds NaN or infinite values; replace them or drop the node";
const ZERO: &str = "is all zeros, so it has no direction; drop the node";

/// Why an embedding cannot be scored, and what to do about it; none if it can.
///
/// ```
/// assert_eq!(blnn::eval::row_fault(&[0.5, -1.0]), None);
/// assert!(blnn::eval::row_fault(&[0.0, 0.0]).unwrap().contains("drop the node"));
/// ```
pub fn row_fault(row: &[f32]) -> Option<&'static str> {
    if row.iter().any(|v| !v.is_finite()) {
        return Some(NOT_FINITE);
    }
    row.iter().all(|&v| v == 0.0).then_some(ZERO)
}

/// The rows of `x` scaled to length one.
pub(super) fn unit_rows(x: &Matrix) -> Result<Matrix> {
    for fault in [NOT_FINITE, ZERO] {
        refuse_rows(x, |row| row_fault(row) == Some(fault), fault)?;
    }
    let mut unit = x.clone();
    for i in 0..x.rows() {
        let norm = x.row(i).iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt();
        unit.row_mut(i).iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
    }
    Ok(unit)
}

fn refuse_rows(x: &Matrix, bad: impl Fn(&[f32]) -> bool, fault: &str) -> Result<()> {
    let mut rows = (0..x.rows()).filter(|&i| bad(x.row(i)));
    let Some(first) = rows.next() else {
        return Ok(());
    };
    match rows.count() {
        0 => shape(format!("row {first} of the embeddings {fault}")),
        more => shape(format!("row {first} of the embeddings (and {more} more) {fault}")),
    }
}

/// Checks that the labels allow the plan's tasks. Training with evaluations calls this before its
/// first step, so that nothing fails hours later.
///
/// # Errors
/// If a setting is zero, there are too few nodes or classes, a class has a single member where
/// pairs or both sides of a split are needed, or public splits do not fit the nodes.
pub fn check_labels(labels: &[u32], splits: Option<&Splits>, plan: &EvalPlan) -> Result<()> {
    let numbers = |place: usize| [labels[place].to_string(), place.to_string()];
    let first = plan.faults(labels, splits, &numbers)?.into_iter().next();
    first.map_or(Ok(()), |(_, fault)| Err(fault))
}

impl EvalPlan {
    /// The tasks that the labels do not allow, each with what to say of it. `named` has the words
    /// for the class and for the node at a place of the labels.
    ///
    /// # Errors
    /// If no task could be scored: a setting is zero, there are no nodes, or public splits do not
    /// fit them.
    ///
    /// ```
    /// use blnn::eval::{EvalPlan, Task};
    ///
    /// let labels = [[0; 10], [1; 10]].concat().into_iter().chain([2]).collect::<Vec<u32>>();
    /// let named = |node: usize| ["`rare`".to_owned(), format!("`n{node}`")];
    /// let faults = EvalPlan::default().faults(&labels, None, &named)?;
    /// assert_eq!(faults.iter().map(|f| f.0).collect::<Vec<_>>(), [Task::Classify, Task::Compactness]);
    /// assert!(faults[0].1.to_string().contains("class `rare` has one member (node `n20`)"));
    /// # Ok::<(), blnn::Error>(())
    /// ```
    pub fn faults(
        &self,
        labels: &[u32],
        splits: Option<&Splits>,
        named: &dyn Fn(usize) -> [String; 2],
    ) -> Result<Vec<(Task, Error)>> {
        self.check()?;
        if labels.is_empty() {
            return shape("there are no nodes to score".into());
        }
        if let Some(splits) = splits {
            check_masks(splits, labels.len())?;
        }
        let fault = |&task: &Task| {
            let checked = check_task(task, labels, splits.is_some(), named);
            Some((task, checked.err()?.at(task)))
        };
        Ok(self.tasks.iter().filter_map(fault).collect())
    }
}

fn check_task(
    task: Task,
    labels: &[u32],
    masked: bool,
    named: &dyn Fn(usize) -> [String; 2],
) -> Result<()> {
    let n = labels.len();
    let most = super::NEIGHBOURS[1];
    if task == Task::Similar && n <= most {
        return shape(format!(
            "{n} nodes have no {most} nearest others; at least {} are needed",
            most + 1
        ));
    }
    let classes = Classes::new(labels);
    // Within one class all neighbours are right, whatever the embeddings are.
    if task != Task::Compactness && classes.count < 2 {
        return shape(format!("all {n} nodes have one class; at least two are needed"));
    }
    // As many clusters as nodes agree with any labels, and take k-means for ever.
    if task == Task::Cluster && 2 * classes.count > n {
        return shape(format!(
            "{} classes of {n} nodes are too many to be found again by clustering; are the labels \
             classes, or ids or measurements?",
            classes.count
        ));
    }
    if task == Task::Classify && !masked && n < FEWEST_TO_SPLIT {
        return shape(format!(
            "{n} nodes are too few to split; at least {FEWEST_TO_SPLIT} are needed"
        ));
    }
    if matches!(task, Task::Classify | Task::Compactness) {
        check_members(&classes, named)?;
    }
    Ok(())
}

fn check_members(classes: &Classes, named: &dyn Fn(usize) -> [String; 2]) -> Result<()> {
    let mut members = vec![0_usize; classes.count];
    classes.labels.iter().for_each(|&l| members[l as usize] += 1);
    let lonely = classes.labels.iter().position(|&l| members[l as usize] == 1);
    let Some([class, node]) = lonely.map(named) else {
        return Ok(());
    };
    shape(format!(
        "class {class} has one member (node {node}); merge the class with another or drop the node"
    ))
}

fn check_masks(splits: &Splits, nodes: usize) -> Result<()> {
    let fault = |message: String| Err(Error::new(ErrorKind::Shape, message).at("public splits"));
    if splits.train.is_empty() || splits.train.len() != splits.validation.len() {
        let (t, v) = (splits.train.len(), splits.validation.len());
        return fault(format!("{t} training masks and {v} validation masks"));
    }
    if splits.test.len() != 1 && splits.test.len() != splits.train.len() {
        let (t, s) = (splits.train.len(), splits.test.len());
        return fault(format!("{t} training masks and {s} test masks"));
    }
    let all = splits.train.iter().chain(&splits.validation).chain(&splits.test);
    for mask in all {
        if mask.len() != nodes {
            return fault(format!("a mask of {} flags for {nodes} nodes", mask.len()));
        }
        if !mask.contains(&true) {
            return fault("a mask selects no node".into());
        }
    }
    match leak(splits) {
        Some((node, split, role)) => fault(format!(
            "node {node} is both a {role} and a test node of split {split}, so that its score would \
             be no test; take it out of one of the masks"
        )),
        None => Ok(()),
    }
}

/// The first test node that a split learns from: the node, the split and what it is there.
fn leak(splits: &Splits) -> Option<(usize, usize, &'static str)> {
    let both = |a: &[bool], b: &[bool]| a.iter().zip(b).position(|(a, b)| *a && *b);
    (0..splits.train.len()).find_map(|split| {
        let test = &splits.test[if splits.test.len() == 1 { 0 } else { split }];
        let of = |role, mask: &[bool]| both(mask, test).map(|node| (node, split, role));
        of("training", &splits.train[split]).or_else(|| of("validation", &splits.validation[split]))
    })
}

/// Checks and scales the embeddings that belong to `labels`.
pub(super) fn matching_unit_rows(x: &Matrix, labels: &[u32]) -> Result<Matrix> {
    if x.rows() != labels.len() {
        return shape(format!(
            "{} embeddings but {} labels; both must be of the same nodes in the same order",
            x.rows(),
            labels.len()
        ));
    }
    if x.cols() == 0 {
        return shape("the embeddings have no dimensions".into());
    }
    unit_rows(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_says_nothing_of_neighbours() {
        let plan = EvalPlan::default();
        let named = |_: usize| [String::new(), String::new()];
        let faults = plan.faults(&[4; 20], None, &named).unwrap();
        let tasks: Vec<Task> = faults.iter().map(|(task, _)| *task).collect();
        assert_eq!(tasks, [Task::Classify, Task::Cluster, Task::Similar]);
        let said = faults[2].1.to_string();
        assert_eq!(said, "similar: all 20 nodes have one class; at least two are needed");
    }
}
