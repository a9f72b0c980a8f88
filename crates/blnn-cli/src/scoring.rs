//! [`Scoring`]: the paper's tasks, scored while training goes on.

use std::collections::BTreeMap;

use blnn::eval::{
    EvalPlan, Protocol, Task, VALIDATION_ACCURACY as VALIDATION, check_labels, evaluate,
};
use blnn::{Graph, Labelled, Record, Splits};
use blnn_kernels::{Matrix, Threads};
use serde::Serialize;

/// Scores by name, in percent, as `metrics.jsonl` holds them.
pub(crate) type Named = BTreeMap<String, f64>;

/// What becomes of scores in a run.
pub(crate) enum Wanted<'g> {
    /// They are taken.
    Scores(Scoring<'g>),
    /// There are no labels, or nobody wants scores.
    Nothing,
    /// There are labels, but they cannot be scored; the reason.
    Impossible(String),
}

impl<'g> Wanted<'g> {
    /// The scoring, or else the reason why there is none though there are labels.
    pub(crate) fn or_reason(self) -> (Option<Scoring<'g>>, Option<String>) {
        match self {
            Self::Scores(scoring) => (Some(scoring), None),
            Self::Nothing => (None, None),
            Self::Impossible(reason) => (None, Some(reason)),
        }
    }
}

/// When to score, and against what.
#[derive(Debug)]
pub(crate) struct Scoring<'g> {
    /// Every so many epochs; the last epoch alone if absent.
    every: Option<usize>,
    epochs: usize,
    labels: Labelled,
    /// Number of nodes, with a label or without.
    nodes: usize,
    splits: Option<&'g Splits>,
    plan: EvalPlan,
    threads: Threads,
}

impl<'g> Scoring<'g> {
    /// Scoring as the user asked for: `every` is the flag as given. Without the flag, a graph
    /// whose labels cannot be scored is trained all the same.
    ///
    /// # Errors
    /// If scores were asked for and the graph has no labels, or too few to score.
    pub(crate) fn wanted(
        graph: &'g Graph,
        epochs: usize,
        every: Option<usize>,
        threads: &Threads,
    ) -> anyhow::Result<Wanted<'g>> {
        if every == Some(0) {
            return Ok(Wanted::Nothing);
        }
        let plan = EvalPlan {
            tasks: vec![Task::Classify, Task::Cluster, Task::Similar],
            // The paper's protocol sets nodes aside by which an epoch can be chosen honestly.
            protocol: Protocol::Both,
            ..EvalPlan::default()
        };
        let Some(labels) = graph.labelled() else {
            anyhow::ensure!(
                every.is_none(),
                "--eval-every needs labels, and `{}` has none; leave the flag out",
                graph.name()
            );
            return Ok(Wanted::Nothing);
        };
        if let Err(error) = check_labels(&labels.classes, graph.splits(), &plan) {
            let refused = every.is_some();
            anyhow::ensure!(!refused, error.at("--eval-every"));
            return Ok(Wanted::Impossible(error.to_string()));
        }
        Ok(Wanted::Scores(Self {
            every,
            epochs,
            labels,
            nodes: graph.nodes(),
            splits: graph.splits(),
            plan,
            threads: threads.clone(),
        }))
    }

    /// Whether the embedding is scored at this epoch.
    pub(crate) fn due(&self, epoch: usize) -> bool {
        epoch == self.epochs || self.every.is_some_and(|n| epoch.is_multiple_of(n))
    }

    /// The scores of an embedding, of the nodes that have a label.
    ///
    /// # Errors
    /// If a row is zero or not finite.
    pub(crate) fn score(&self, embeddings: &Matrix) -> blnn::Result<Named> {
        let Labelled { nodes, classes } = &self.labels;
        let some = (nodes.len() < self.nodes).then(|| take_rows(embeddings, nodes));
        let embeddings = some.as_ref().unwrap_or(embeddings);
        let (splits, threads) = (self.splits, &self.threads);
        let scores = evaluate(embeddings, classes, splits, &self.plan, threads, &mut |_| {})?;
        Ok(scores.by_name())
    }
}

/// Some rows of a matrix.
pub(crate) fn take_rows(matrix: &Matrix, rows: &[usize]) -> Matrix {
    Matrix::from_fn(rows.len(), matrix.cols(), |i, j| matrix.get(rows[i], j))
}

/// What to report of all evaluations of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// Number of evaluations.
    pub(crate) evaluations: usize,
    /// The scores after the last epoch: the honest number.
    pub(crate) last: Named,
    /// The best of each score over all evaluations, each chosen on the test score itself: the
    /// paper's rule, which flatters.
    pub(crate) best_on_test: Named,
    /// All scores of the evaluation with the highest validation accuracy, the first of equals:
    /// an honest choice of the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_on_validation: Option<Chosen>,
}

/// The scores of a chosen epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Chosen {
    /// The epoch.
    pub(crate) epoch: usize,
    /// Its scores.
    pub(crate) scores: Named,
}

/// The evaluation with the highest validation accuracy.
fn chosen_on_validation(records: &[Record]) -> Option<Chosen> {
    let mut best: Option<(f64, &Record)> = None;
    for record in records {
        let Some(&found) = record.scores.get(VALIDATION) else { continue };
        if best.is_none_or(|(highest, _)| found > highest) {
            best = Some((found, record));
        }
    }
    best.map(|(_, record)| Chosen { epoch: record.epoch, scores: record.scores.clone() })
}

impl Verdict {
    /// The verdict over a run's records, if it was ever scored.
    pub(crate) fn of(records: &[Record]) -> Option<Self> {
        let scored: Vec<&Named> =
            records.iter().map(|r| &r.scores).filter(|s| !s.is_empty()).collect();
        let last = (*scored.last()?).clone();
        let best = |name: &String| {
            scored.iter().filter_map(|s| s.get(name)).copied().fold(f64::MIN, f64::max)
        };
        // A spread is no score: its best would belong to no evaluation anybody chose.
        let names = last.keys().filter(|name| !name.ends_with("_std") && *name != VALIDATION);
        Some(Self {
            evaluations: scored.len(),
            best_on_test: names.map(|name| (name.clone(), best(name))).collect(),
            best_on_validation: chosen_on_validation(records),
            last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(epoch: usize, accuracy: Option<f64>) -> Record {
        let scores = accuracy.map(|a| ("accuracy".to_owned(), a)).into_iter();
        let spread = accuracy.map(|a| ("accuracy_std".to_owned(), a / 100.0));
        Record {
            epoch,
            loss: 0.0,
            node_loss: 0.0,
            neighbour_loss: 0.0,
            learning_rate: 0.0,
            ema_decay: 0.0,
            seconds: 0.0,
            health: None,
            scores: scores.chain(spread).collect(),
        }
    }

    #[test]
    fn the_last_and_the_best_are_told_apart() {
        let records =
            [record(1, Some(80.0)), record(2, Some(83.0)), record(3, None), record(4, Some(82.0))];
        let verdict = Verdict::of(&records).unwrap();
        assert_eq!(verdict.evaluations, 3);
        assert_eq!(verdict.last["accuracy"].to_bits(), 82.0_f64.to_bits());
        assert_eq!(verdict.best_on_test["accuracy"].to_bits(), 83.0_f64.to_bits());
        assert!(!verdict.best_on_test.contains_key("accuracy_std"));
        assert_eq!(Verdict::of(&[record(1, None)]), None);
    }

    #[test]
    fn an_epoch_is_chosen_by_its_validation_accuracy_alone() {
        let mut records = [record(1, Some(80.0)), record(2, Some(83.0)), record(3, Some(82.0))];
        assert_eq!(Verdict::of(&records).unwrap().best_on_validation, None);
        for (record, validation) in records.iter_mut().zip([70.0, 71.0, 72.0]) {
            record.scores.insert(VALIDATION.to_owned(), validation);
        }
        let verdict = Verdict::of(&records).unwrap();
        let chosen = verdict.best_on_validation.unwrap();
        assert_eq!((chosen.epoch, chosen.scores["accuracy"]), (3, 82.0));
        assert!(!verdict.best_on_test.contains_key(VALIDATION));
    }
}
