//! [`Report`]: one table or figure, ours beside the published numbers, as it is written to JSON.

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::published::{self, Value};

use super::target::Target;

/// A table or figure of the paper with our numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Which one.
    pub target: Target,
    /// Its place in the paper.
    pub place: String,
    /// What it shows.
    pub title: String,
    /// Where the published numbers come from.
    pub source: String,
    /// Version of the program that wrote the report.
    pub version: String,
    /// The commit that program was built from, if known.
    pub commit: Option<String>,
    /// What a reader must know to judge the numbers.
    pub notes: Vec<String>,
    /// The numbers.
    pub rows: Vec<Row>,
    /// Methods compared seed by seed.
    pub paired: Vec<Paired>,
    /// The curves of figures.
    pub series: Vec<Series>,
    /// Data sets that could not be used.
    pub missing: Vec<Missing>,
    /// Files of figures, beside the report.
    pub figures: Vec<String>,
}

impl Report {
    /// A report without numbers, by a program that was built from this commit.
    pub(super) fn new(target: Target, commit: Option<String>) -> Self {
        Self {
            target,
            place: target.place().to_owned(),
            title: target.title().to_owned(),
            source: published::source().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit,
            notes: Vec::new(),
            rows: Vec::new(),
            paired: Vec::new(),
            series: Vec::new(),
            missing: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// Whether any run of ours, or for Table 1 any graph, is behind it.
    pub(super) fn has_runs(&self) -> bool {
        let is_ours = |row: &Row| match self.target {
            Target::Datasets => row.last.is_some(),
            _ => !(row.runs.is_empty() && row.under_way.is_empty()),
        };
        self.rows.iter().any(is_ours)
    }
}

/// One number of the paper and ours for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The data set.
    pub dataset: String,
    /// The method as the table names it.
    pub method: String,
    /// What is measured.
    pub metric: String,
    /// τ, for the method that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The published number, if there is one.
    pub published: Option<Value>,
    /// The best of all evaluations of each run, as the paper reports.
    pub best: Option<Aggregate>,
    /// After the last epoch, by the published code's split protocol: the honest number.
    pub last: Option<Aggregate>,
    /// The best of all evaluations by the split protocol of the paper's text, where all evaluations of
    /// all runs were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_paper_split: Option<Aggregate>,
    /// After the last epoch, by the split protocol of the paper's text.
    pub paper_split: Option<Aggregate>,
    /// The runs behind the numbers, one a seed.
    pub runs: Vec<RunRow>,
    /// Seeds whose run was begun: none of its numbers is among those above.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under_way: Vec<UnderWay>,
    /// Seeds that are not trained yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<u64>,
    /// Why there is no number, or why it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

impl Row {
    /// A row without numbers of ours.
    pub(super) fn empty(dataset: &str, method: &str, metric: &str) -> Self {
        Self {
            dataset: dataset.to_owned(),
            method: method.to_owned(),
            metric: metric.to_owned(),
            temperature: None,
            published: None,
            best: None,
            last: None,
            best_paper_split: None,
            paper_split: None,
            runs: Vec::new(),
            under_way: Vec::new(),
            pending: Vec::new(),
            remark: None,
        }
    }

    /// The number that is compared with the published one: the best, where evaluations were
    /// compared, or the last.
    pub fn headline(&self) -> Option<&Aggregate> {
        self.best.as_ref().or(self.last.as_ref())
    }
}

/// A run that is not finished, as far as it was scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnderWay {
    /// The epoch of its last evaluation.
    pub epoch: usize,
    /// The run. The best of all its evaluations can only exceed its best so far.
    #[serde(flatten)]
    pub run: RunRow,
}

/// A score over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// Mean over seeds.
    pub mean: f64,
    /// Sample standard deviation over seeds, where there is more than one.
    pub std: Option<f64>,
    /// Ours minus the published number.
    pub difference: Option<f64>,
}

impl Aggregate {
    /// Of one value a seed; `None` without values.
    pub(super) fn of(values: &[f64], published: Option<Value>) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let (mean, std) = mean_and_std(values);
        Some(Self { mean, std, difference: published.map(|p| mean - p.mean) })
    }
}

/// Mean, and sample standard deviation of more than one value.
pub(super) fn mean_and_std(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()))
}

/// One run behind a number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its seed.
    pub seed: u64,
    /// Epochs it is trained for.
    pub epochs: usize,
    /// Its folder below `runs/`.
    pub key: String,
    /// The command that trains it.
    pub command: String,
    /// Version of the program that trained it; empty if it left no note.
    pub version: String,
    /// Commits that program was built from.
    pub commits: Vec<String>,
    /// Its precision, where that is not the one asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
    /// Vector instructions that it ran on, where they were noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<String>,
    /// How often it was scored.
    pub evaluations: usize,
    /// The best of its evaluations.
    pub best: Option<f64>,
    /// The epoch of that one.
    pub best_epoch: Option<usize>,
    /// Spread over the splits at that epoch: what the paper prints after its ±.
    pub best_split_std: Option<f64>,
    /// After the last epoch.
    pub last: Option<f64>,
    /// The best of its evaluations by the split protocol of the paper's text, where they were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_paper_split: Option<f64>,
    /// After the last epoch, by the split protocol of the paper's text.
    pub paper_split: Option<f64>,
    /// What a reader must know of its numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

/// Two methods compared seed by seed; differences are first minus second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paired {
    /// The data set.
    pub dataset: String,
    /// What is measured.
    pub metric: String,
    /// Which score of a run: `best`, `last`, and of the paper's split protocol `best, paper split` and
    /// `paper split`.
    pub rule: String,
    /// The first method.
    pub first: String,
    /// The second method.
    pub second: String,
    /// The difference at each seed that both were trained with.
    pub differences: Vec<SeedDifference>,
    /// Mean difference.
    pub mean: f64,
    /// Sample standard deviation of the differences, where there is more than one.
    pub std: Option<f64>,
    /// Seeds at which the first is better.
    pub wins: usize,
    /// Two-sided p-value of the paired t-test over seeds, where there is more than one.
    pub p_value: Option<f64>,
    /// The difference of the published numbers.
    pub published: Option<f64>,
}

/// The difference of two methods at one seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedDifference {
    /// The seed.
    pub seed: u64,
    /// The first method's score.
    pub first: f64,
    /// The second method's score.
    pub second: f64,
    /// First minus second.
    pub difference: f64,
    /// Whether one of the two was trained in another precision.
    #[serde(default, skip_serializing_if = "is_false")]
    pub across_precisions: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A curve of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The picture it belongs to: the name of its file, without the ending.
    pub figure: String,
    /// The data set.
    pub dataset: String,
    /// What the picture shows.
    pub title: String,
    /// The curve's name in it.
    pub name: String,
    /// What the horizontal axis counts.
    pub x_label: String,
    /// What the vertical axis shows.
    pub y_label: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A data set whose file is not here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The data set.
    pub dataset: String,
    /// Its file.
    pub file: String,
    /// The command that fetches it.
    pub command: String,
}

impl Missing {
    pub(super) fn new(dataset: &Dataset) -> Self {
        Self {
            dataset: dataset.name.to_owned(),
            file: dataset.file().unwrap_or_default().to_owned(),
            command: format!("blnn datasets fetch {}", dataset.name),
        }
    }

    /// What is missing and how to get it.
    pub fn remark(&self) -> String {
        format!("{} is not here; fetch it with `{}`", self.file, self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_that_of_a_sample() {
        let value = Value { mean: 90.0, std: None };
        let two = Aggregate::of(&[91.0, 93.0], Some(value)).unwrap();
        assert_eq!((two.mean, two.difference), (92.0, Some(2.0)));
        assert!((two.std.unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        let one = Aggregate::of(&[91.0], None).unwrap();
        assert_eq!((one.std, one.difference), (None, None));
        assert_eq!(Aggregate::of(&[], None), None);
    }
}
