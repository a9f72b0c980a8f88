//! The rows of tables: each number of the paper with our runs for it, and methods compared seed
//! by seed.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::{Counts, Dataset};
use crate::eval::Comparison;
use crate::graph::Graph;
use crate::published::{self, Metric, Value};

use super::job::{TrainingJob, label};
use super::record::{PAPER_SPLIT, RunRecord};
use super::report::{
    Aggregate, Missing, Paired, Row, RunRow, SeedDifference, UnderWay, mean_and_std,
};
use super::target::Target;
use super::trained::Trained;
use crate::plan::{Method, Objective};

/// The finished runs by their key.
pub(super) type Results = BTreeMap<String, Trained>;

/// The records of runs that are not finished, by the key of the run.
pub(super) type Begun = BTreeMap<String, RunRecord>;

/// Which of a run's scores is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Best,
    Last,
    BestPaperSplit,
    PaperSplit,
}

impl Rule {
    const ALL: [Self; 4] = [Self::Best, Self::Last, Self::BestPaperSplit, Self::PaperSplit];

    fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Last => "last",
            Self::BestPaperSplit => "best, paper split",
            Self::PaperSplit => "paper split",
        }
    }

    fn of(self, run: &RunRow) -> Option<f64> {
        match self {
            Self::Best => run.best,
            Self::Last => run.last,
            Self::BestPaperSplit => run.best_paper_split,
            Self::PaperSplit => run.paper_split,
        }
    }
}

/// The rows of a target on one data set: one for each variant and metric.
pub(super) fn rows(
    target: Target,
    jobs: &[TrainingJob],
    results: &Results,
    begun: &Begun,
) -> Vec<Row> {
    let same = |a: &TrainingJob, b: &TrainingJob| {
        (a.label(), a.temperature()) == (b.label(), b.temperature())
    };
    let mut rows = Vec::new();
    for seeds in jobs.chunk_by(same) {
        for metric in target.metrics() {
            let mut row = row(target, *metric, seeds, results);
            add_unfinished(&mut row, *metric, seeds, begun);
            rows.push(row);
        }
    }
    rows
}

/// One row from the runs of all seeds.
fn row(target: Target, metric: Metric, jobs: &[TrainingJob], results: &Results) -> Row {
    let first = &jobs[0];
    let mut row = Row::empty(first.dataset(), first.label(), metric.key());
    row.temperature = first.temperature();
    // The paper chose one temperature a data set; its number belongs to no other.
    row.published = published::value(metric, first.published_label(), first.dataset())
        .filter(|_| first.has_preset_temperature());
    let trained = jobs.iter().filter_map(|job| results.get(&job.key()));
    // Compactness is not what anybody chooses an epoch by.
    let choosing = target != Target::Map;
    row.runs = trained.map(|run| run_row(&run.job, &run.record, metric, choosing)).collect();
    let aggregate = |rule: Rule| {
        let values: Vec<f64> = row.runs.iter().filter_map(|run| rule.of(run)).collect();
        Aggregate::of(&values, row.published)
    };
    let [best, last, best_paper_split, paper_split] = Rule::ALL.map(aggregate);
    // A mean over some of the seeds would stand beside one over all of them.
    let all_have_it = row.runs.iter().all(|run| run.best_paper_split.is_some());
    let best_paper_split = best_paper_split.filter(|_| all_have_it);
    Row { best, last, best_paper_split, paper_split, ..row }
}

/// Notes the seeds that have no finished run, and how far those came that were begun.
fn add_unfinished(row: &mut Row, metric: Metric, jobs: &[TrainingJob], begun: &Begun) {
    let is_finished = |job: &&TrainingJob| row.runs.iter().any(|run| run.seed == job.plan().seed());
    let (mut under_way, mut pending) = (Vec::new(), Vec::new());
    for job in jobs.iter().filter(|job| !is_finished(job)) {
        let so_far = begun.get(&job.key());
        let so_far = so_far.and_then(|record| Some((record, record.over_time.last()?.0)));
        let Some((record, epoch)) = so_far else {
            pending.push(job.plan().seed());
            continue;
        };
        under_way.push(UnderWay { epoch, run: run_row(job, record, metric, true) });
    }
    (row.under_way, row.pending) = (under_way, pending);
}

/// One run; the best of its evaluations only where an epoch is chosen by them.
fn run_row(job: &TrainingJob, record: &RunRecord, metric: Metric, choosing: bool) -> RunRow {
    let best = record.best.get(metric.key()).filter(|_| choosing);
    let last = |name: &str| record.last.as_ref().and_then(|scores| scores.get(name).copied());
    let is_split = metric == Metric::Accuracy;
    let best_paper_split = record.best_paper_split().filter(|_| is_split && choosing);
    RunRow {
        seed: job.plan().seed(),
        epochs: job.plan().epochs(),
        key: record.key.clone(),
        command: record.command.clone(),
        version: record.trained_by.version.clone(),
        commits: record.trained_by.commits.clone(),
        precision: record.other_precision(job).map(|precision| precision.name().to_owned()),
        vectors: record.trained_by.vectors.clone(),
        evaluations: record.evaluations,
        best: best.map(|best| best.score),
        best_epoch: best.map(|best| best.epoch),
        best_split_std: best.and_then(|best| best.split_std),
        last: last(metric.key()),
        best_paper_split: best_paper_split.map(|best| best.score),
        paper_split: last(PAPER_SPLIT).filter(|_| is_split),
        remark: record.remark.clone(),
    }
}

/// A run as one with a single score of its last embedding.
pub(super) fn run_row_of(run: &Trained, score: f64) -> RunRow {
    let row = run_row(&run.job, &run.record, Metric::Compactness, false);
    RunRow { last: Some(score), ..row }
}

/// What must be known of the runs behind the rows, each remark once.
pub(super) fn remarks(rows: &[Row]) -> Vec<String> {
    let (mut all, mut by_remark) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<_>>::new());
    for row in rows {
        for run in row.runs.iter().chain(row.under_way.iter().map(|begun| &begun.run)) {
            let name = (&row.dataset, &row.method, run.seed);
            all.insert((name, &run.key));
            if let Some(remark) = &run.remark {
                by_remark.entry(remark).or_default().insert((name, &run.key));
            }
        }
    }
    let in_words = |(remark, runs): (&str, BTreeSet<_>)| {
        let only = runs.first().filter(|_| runs.len() == 1);
        match only {
            Some(((dataset, method, seed), _)) => {
                format!("{dataset}, {method}, seed {seed}: {remark}")
            }
            None => format!("{} of {} runs: {remark}", runs.len(), all.len()),
        }
    };
    by_remark.into_iter().map(in_words).collect()
}

/// Marks the rows of a data set that is not here, of which not all seeds are on record.
pub(super) fn mark_missing(rows: &mut [Row], missing: &Missing) {
    for row in rows.iter_mut().filter(|row| row.runs.is_empty() || !row.pending.is_empty()) {
        row.pending.clear();
        row.remark = Some(missing.remark());
    }
}

/// The comparisons a target is about.
fn contests(target: Target) -> &'static [(Method, Method)] {
    use Method::{Bgrl, BgrlClean, BgrlNoisy, Blnn};
    match target {
        Target::Classification | Target::Clustering | Target::Similarity | Target::Map => {
            &[(Blnn, Bgrl)]
        }
        Target::Ablation => &[(Blnn, Bgrl), (BgrlClean, Blnn), (Blnn, BgrlNoisy)],
        Target::Motivation => &[(BgrlNoisy, Bgrl), (BgrlClean, Bgrl)],
        Target::Datasets | Target::CaseStudy | Target::Temperature => &[],
    }
}

/// The labels of the comparisons of a target, each within every form of the objective.
fn contests_by_label(target: Target) -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_form = |(first, second): (Method, Method)| {
        Objective::ALL.map(|form| (label(first, form), label(second, form)))
    };
    contests(target).iter().copied().flat_map(of_form)
}

/// The methods of a target compared seed by seed, wherever both were trained with a seed.
pub(super) fn paired(target: Target, rows: &[Row]) -> Vec<Paired> {
    let mut found = Vec::new();
    for first in rows {
        for (name, other) in contests_by_label(target) {
            let opposite = |row: &&Row| {
                (&row.dataset, &row.metric) == (&first.dataset, &first.metric)
                    && row.method == other
            };
            if first.method == name
                && let Some(second) = rows.iter().find(opposite)
            {
                found.extend(Rule::ALL.iter().filter_map(|rule| compare(first, second, *rule)));
            }
        }
    }
    found
}

fn compare(first: &Row, second: &Row, rule: Rule) -> Option<Paired> {
    if rule == Rule::Best && first.best.is_none() {
        return None;
    }
    let at_seed = |run: &RunRow| {
        let other = second.runs.iter().find(|other| other.seed == run.seed)?;
        let (a, b) = (rule.of(run)?, rule.of(other)?);
        let across_precisions = run.precision != other.precision;
        let seed = run.seed;
        Some(SeedDifference { seed, first: a, second: b, difference: a - b, across_precisions })
    };
    let differences: Vec<SeedDifference> = first.runs.iter().filter_map(at_seed).collect();
    if differences.is_empty() {
        return None;
    }
    let (mean, std) = mean_and_std(&differences.iter().map(|d| d.difference).collect::<Vec<_>>());
    let published = |row: &Row| row.published.map(|value| value.mean);
    Some(Paired {
        dataset: first.dataset.clone(),
        metric: first.metric.clone(),
        rule: rule.name().to_owned(),
        first: first.method.clone(),
        second: second.method.clone(),
        wins: differences.iter().filter(|d| d.difference > 0.0).count(),
        p_value: std.is_some().then(|| p_value(&differences)),
        published: published(first).zip(published(second)).map(|(a, b)| a - b),
        differences,
        mean,
        std,
    })
}

/// Of the paired t-test over seeds, which share no draws, so that nothing is to be corrected.
fn p_value(differences: &[SeedDifference]) -> f64 {
    let side = |f: fn(&SeedDifference) -> f64| differences.iter().map(f).collect::<Vec<_>>();
    Comparison::of(&side(|d| d.first), &side(|d| d.second), 0.0).p_value
}

/// The rows of Table 1 for one data set; without a graph, the published numbers alone.
pub(super) fn dataset_rows(dataset: &Dataset, graph: Option<&Graph>) -> Vec<Row> {
    let ours = graph.map(|graph| sizes(&Counts::of(graph), graph.edge_homophily()));
    let theirs = dataset.paper.map(|paper| sizes(&paper.counts, Some(paper.homophily / 100.0)));
    let value = |table: &Option<Sizes>, i: usize| table.as_ref().and_then(|t| t[i].1);
    let names = sizes(&dataset.counts, None).map(|(name, _)| name);
    let row = |(i, name): (usize, &&str)| {
        let mut row = Row::empty(dataset.name, "as loaded", name);
        row.published = value(&theirs, i).map(|mean| Value { mean, std: None });
        row.last = value(&ours, i).and_then(|ours| Aggregate::of(&[ours], row.published));
        let differs = row.last.as_ref().and_then(|last| last.difference);
        let remark = dataset.paper.and_then(|paper| paper.remark);
        // The published homophily is rounded to two decimals.
        row.remark = remark.filter(|_| differs.is_some_and(|d| d.abs() > 5e-3)).map(str::to_owned);
        row
    };
    names.iter().enumerate().map(row).collect()
}

type Sizes = [(&'static str, Option<f64>); 5];

fn sizes(counts: &Counts, homophily: Option<f64>) -> Sizes {
    [
        ("nodes", Some(counts.nodes as f64)),
        ("edges", Some(counts.entries as f64)),
        ("features", Some(counts.features as f64)),
        ("classes", Some(counts.classes as f64)),
        ("homophily", homophily.map(|share| 100.0 * share)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data;

    fn run(seed: u64, best: f64) -> RunRow {
        RunRow { seed, key: seed.to_string(), best: Some(best), ..RunRow::default() }
    }

    fn scored(method: &str, runs: Vec<RunRow>) -> Row {
        let values: Vec<f64> = runs.iter().filter_map(|r| r.best).collect();
        let best = Aggregate::of(&values, None);
        Row { best, runs, ..Row::empty("photo", method, "accuracy") }
    }

    #[test]
    fn methods_are_paired_by_seed() {
        let blnn = scored("BLNN", vec![run(1, 93.0), run(2, 94.0), run(3, 95.0)]);
        let bgrl = scored("BGRL", vec![run(2, 93.5), run(1, 93.5)]);
        let pairs = paired(Target::Classification, &[bgrl, blnn]);
        assert_eq!(pairs.len(), 1, "nothing was scored by the other rules");
        let seeds: Vec<(u64, f64)> =
            pairs[0].differences.iter().map(|d| (d.seed, d.difference)).collect();
        assert_eq!(seeds, [(1, -0.5), (2, 0.5)]);
        assert_eq!((pairs[0].mean, pairs[0].wins, pairs[0].p_value), (0.0, 1, Some(1.0)));
    }

    #[test]
    fn pairs_across_two_precisions_are_marked() {
        let rounded = |seed| RunRow { precision: Some("bf16".into()), ..run(seed, 94.0) };
        let blnn = scored("BLNN", vec![rounded(1), run(2, 94.0), rounded(3)]);
        let bgrl = scored("BGRL", vec![run(1, 93.5), run(2, 93.5), rounded(3)]);
        let pairs = paired(Target::Classification, &[bgrl, blnn]);
        let marks: Vec<bool> = pairs[0].differences.iter().map(|d| d.across_precisions).collect();
        assert_eq!(marks, [true, false, false]);
    }

    #[test]
    fn a_remark_names_its_run_or_counts_its_runs() {
        let remarked =
            |seed, remark: &str| RunRow { remark: Some(remark.into()), ..run(seed, 1.0) };
        let mut row =
            scored("BLNN", vec![remarked(1, "odd"), remarked(2, "read back"), run(3, 1.0)]);
        row.under_way = vec![UnderWay { epoch: 5, run: remarked(4, "read back") }];
        let metrics = [row.clone(), Row { metric: "nmi".into(), ..row }];
        assert_eq!(remarks(&metrics), ["photo, BLNN, seed 1: odd", "2 of 4 runs: read back"]);
    }

    #[test]
    fn ablations_are_compared_within_their_form() {
        let row = |method: &str| scored(method, vec![run(1, 93.0)]);
        let methods = ["BGRL", "BLNN", "BGRL, noisy", "BGRL, clean"];
        let rows: Vec<Row> = methods.iter().map(|m| row(m)).collect();
        let forms = [" (one direction)", " (published code)"];
        let others = forms.iter().flat_map(|form| {
            methods[1..].iter().map(move |method| row(&format!("{method}{form}")))
        });
        let all: Vec<Row> = rows.iter().cloned().chain(others).collect();
        for (target, of_one_form) in
            [(Target::Classification, 1), (Target::Ablation, 3), (Target::Motivation, 2)]
        {
            assert_eq!(paired(target, &rows).len(), of_one_form);
            assert_eq!(paired(target, &all).len(), 3 * of_one_form);
        }
        let ablation = paired(Target::Ablation, &all);
        for form in forms {
            let of_form = |p: &&Paired| p.second.ends_with(form);
            assert!(ablation.iter().filter(of_form).all(|p| p.first.ends_with(form)));
            assert_eq!(ablation.iter().filter(of_form).count(), 2);
        }
    }

    #[test]
    fn sizes_stand_beside_the_papers() {
        let photo = data::find("photo").unwrap();
        let rows = dataset_rows(photo, None);
        assert_eq!(rows[1].published.unwrap().mean, 238_163.0);
        assert!(rows.iter().all(|row| row.last.is_none()));
        let cora = data::find("cora").unwrap();
        let rows = dataset_rows(cora, Some(&cora.load(&[]).unwrap()));
        assert_eq!(rows[0].last.as_ref().unwrap().mean, 2708.0);
        assert!(rows.iter().all(|row| row.published.is_none()));
    }
}
