//! [`Scoring`]: the paper's tasks, scored while training goes on.

use std::collections::BTreeMap;

use blnn::eval::{
    EpochScores, EvalPlan, Protocol, SplitAccuracies, Summary, Task,
    VALIDATION_ACCURACY as VALIDATION, evaluate,
};
use blnn::{Graph, Labelled, Record, Splits};
use blnn_kernels::{Matrix, Threads};
use serde::Serialize;

use crate::output::note;

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
    /// Scoring as the user asked for: `every` is the flag as given. Tasks that the labels do not
    /// allow are told and left out. Without the flag, a graph whose labels cannot be scored at all
    /// is trained all the same.
    ///
    /// # Errors
    /// If scores were asked for and the graph has no labels, or none that can be scored.
    pub(crate) fn wanted(
        graph: &'g Graph,
        epochs: usize,
        every: Option<usize>,
        threads: &Threads,
    ) -> anyhow::Result<Wanted<'g>> {
        if every == Some(0) {
            return Ok(Wanted::Nothing);
        }
        let mut plan = EvalPlan {
            tasks: vec![Task::Classify, Task::Cluster, Task::Similar],
            // The paper's protocol sets nodes aside by which a split can choose its epoch honestly.
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
        let named = |place: usize| {
            let (node, class) = (labels.nodes[place], labels.classes[place] as usize);
            let id = graph.node_ids().map(|ids| &ids[node]);
            [called(graph.class_names().get(class), class), called(id, node)]
        };
        match keep_possible(&mut plan, &labels.classes, graph.splits(), &named) {
            Ok(faults) => faults.iter().for_each(|fault| note(format_args!("not scored: {fault}"))),
            Err(error) if every.is_some() => anyhow::bail!(error.at("--eval-every")),
            Err(error) => return Ok(Wanted::Impossible(error.to_string())),
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
    pub(crate) fn score(&self, embeddings: &Matrix) -> blnn::Result<EpochScores> {
        let Labelled { nodes, classes } = &self.labels;
        let some = (nodes.len() < self.nodes).then(|| take_rows(embeddings, nodes));
        let embeddings = some.as_ref().unwrap_or(embeddings);
        let (splits, threads) = (self.splits, &self.threads);
        let scores = evaluate(embeddings, classes, splits, &self.plan, threads, &mut |_| {})?;
        Ok(scores.of_an_epoch())
    }
}

/// Takes the tasks out of the plan that the labels do not allow, and gives the reason of each.
///
/// # Errors
/// If no task is left.
pub(crate) fn keep_possible(
    plan: &mut EvalPlan,
    labels: &[u32],
    splits: Option<&Splits>,
    named: &dyn Fn(usize) -> [String; 2],
) -> blnn::Result<Vec<blnn::Error>> {
    let (impossible, mut faults): (Vec<Task>, Vec<blnn::Error>) =
        plan.faults(labels, splits, named)?.into_iter().unzip();
    if impossible.len() == plan.tasks.len() {
        return Err(faults.swap_remove(0));
    }
    plan.tasks.retain(|task| !impossible.contains(task));
    Ok(faults)
}

/// What people call a class or a node: its name, or else its number.
pub(crate) fn called(name: Option<&String>, number: usize) -> String {
    name.map_or_else(|| number.to_string(), |name| format!("`{name}`"))
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
    /// The scores of the last evaluation: after the last epoch, the honest number.
    pub(crate) last: Named,
    /// The epoch of the last evaluation: the run's last, unless that was not scored.
    pub(crate) last_epoch: usize,
    /// The best of each score over all evaluations, each chosen on the test score itself: the
    /// paper's rule, which flatters.
    pub(crate) best_on_test: Named,
    /// The accuracy with an epoch that was chosen honestly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) best_on_validation: Option<Chosen>,
}

/// Test accuracy where every split chooses its epoch by its own validation nodes, the first of
/// equals. One epoch for all splits would be chosen by nodes that other splits test on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Chosen {
    /// Mean over splits.
    pub(crate) accuracy: f64,
    /// Population standard deviation over splits.
    pub(crate) accuracy_std: f64,
    /// The epoch each split chose.
    pub(crate) epochs: Vec<usize>,
}

impl Chosen {
    /// The choice among evaluations; none if one of them was not kept split by split.
    fn among(scored: &[&Record]) -> Option<Self> {
        let kept = scored.iter().map(|r| Some((r.epoch, r.splits.as_ref()?)));
        let kept: Vec<(usize, &SplitAccuracies)> = kept.collect::<Option<_>>()?;
        let splits = kept.iter().map(|(_, s)| s.validation.len().min(s.test.len())).min()?;
        let chosen = (0..splits).filter_map(|split| chosen_epoch(&kept, split));
        let (epochs, tested): (Vec<usize>, Vec<f64>) = chosen.unzip();
        let Summary { mean, std, .. } = Summary::of(&tested);
        (splits > 0).then_some(Self { accuracy: mean, accuracy_std: std, epochs })
    }
}

/// The epoch that one split chooses, and the split's test accuracy there.
fn chosen_epoch(kept: &[(usize, &SplitAccuracies)], split: usize) -> Option<(usize, f64)> {
    let mut best = kept.first()?;
    for next in kept {
        if next.1.validation[split] > best.1.validation[split] {
            best = next;
        }
    }
    Some((best.0, best.1.test[split]))
}

impl Verdict {
    /// The verdict over a run's records, if it was ever scored.
    pub(crate) fn of(records: &[Record]) -> Option<Self> {
        let scored: Vec<&Record> = records.iter().filter(|r| !r.scores.is_empty()).collect();
        let Record { epoch: last_epoch, scores: last, .. } = (*scored.last()?).clone();
        let best = |name: &String| {
            scored.iter().filter_map(|r| r.scores.get(name)).copied().fold(f64::MIN, f64::max)
        };
        // A spread is no score: its best would belong to no evaluation anybody chose.
        let names = last.keys().filter(|name| !name.ends_with("_std") && *name != VALIDATION);
        Some(Self {
            evaluations: scored.len(),
            best_on_test: names.map(|name| (name.clone(), best(name))).collect(),
            best_on_validation: Chosen::among(&scored),
            last,
            last_epoch,
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
            splits: None,
        }
    }

    #[test]
    fn the_last_and_the_best_are_told_apart() {
        let records =
            [record(1, Some(80.0)), record(2, Some(83.0)), record(3, None), record(4, Some(82.0))];
        let verdict = Verdict::of(&records).unwrap();
        assert_eq!(verdict.evaluations, 3);
        assert_eq!(verdict.last["accuracy"].to_bits(), 82.0_f64.to_bits());
        assert_eq!(verdict.last_epoch, 4);
        assert_eq!(verdict.best_on_test["accuracy"].to_bits(), 83.0_f64.to_bits());
        assert!(!verdict.best_on_test.contains_key("accuracy_std"));
        assert_eq!(Verdict::of(&[record(1, None)]), None);
    }

    #[test]
    fn every_split_chooses_its_epoch_by_its_own_validation_nodes() {
        let mut records = [record(1, Some(80.0)), record(2, Some(83.0)), record(3, Some(82.0))];
        assert_eq!(Verdict::of(&records).unwrap().best_on_validation, None);
        let accuracies = [
            ([70.0, 90.0], [60.0, 61.0]),
            ([72.0, 80.0], [62.0, 99.0]),
            ([72.0, 90.0], [98.0, 97.0]),
        ];
        for (record, (validation, test)) in records.iter_mut().zip(accuracies) {
            record.scores.insert(VALIDATION.to_owned(), validation[0]);
            record.splits =
                Some(SplitAccuracies { validation: validation.into(), test: test.into() });
        }
        let verdict = Verdict::of(&records).unwrap();
        let wanted = Chosen { accuracy: 61.5, accuracy_std: 0.5, epochs: vec![2, 1] };
        assert_eq!(verdict.best_on_validation, Some(wanted));
        assert!(!verdict.best_on_test.contains_key(VALIDATION));
        records[1].splits = None;
        assert_eq!(Verdict::of(&records).unwrap().best_on_validation, None);
    }
}
