//! [`RunRecord`]: what tables need of a run, in one small file that outlives its folder.
//!
//! The folder of a run holds weights and embeddings, tens of megabytes, and stays on the machine
//! that trained it. Its record, `RECORDS/<key>.json`, has a few kilobytes: it can be kept in version
//! control, and stands for the run wherever scores are all that is asked for.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::published::Metric;
use crate::train::same_config;

use super::Options;
use super::job::TrainingJob;
use super::trained::{OverTime, TrainedBy, read_json, write_json};

/// The scores of one run, finished or not, with all it takes to train it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The name of the run: that of its folder.
    pub key: String,
    /// The command that trains it.
    pub command: String,
    /// Which program trained it.
    pub trained_by: TrainedBy,
    /// How often it was scored.
    pub evaluations: usize,
    /// The best of all evaluations, chosen on the test score itself as in the paper; only of
    /// scores that every evaluation took.
    pub best: BTreeMap<String, Best>,
    /// The scores after the last epoch; none if the run is not finished.
    pub last: Option<BTreeMap<String, f64>>,
    /// What a reader must know of these numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// Every setting, as in the run's `config.toml`.
    pub config: String,
    /// All evaluations, where they were kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: OverTime,
}

/// The best of a run's evaluations by one score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The number of epochs done then.
    pub epoch: usize,
    /// The score.
    pub score: f64,
    /// Of the accuracy, its spread over the splits at that epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_std: Option<f64>,
}

impl RunRecord {
    /// The record of a run that was scored `over_time`; `last` if it is finished.
    pub(super) fn new(
        job: &TrainingJob,
        trained_by: TrainedBy,
        over_time: OverTime,
        last: Option<BTreeMap<String, f64>>,
    ) -> Self {
        let every = over_time.first().map_or(job.plan().epochs, |first| first.0);
        let best = Metric::ALL
            .into_iter()
            .filter_map(|metric| Some((metric.key().to_owned(), best_of(&over_time, metric)?)));
        Self {
            key: job.key(),
            command: job.command(every),
            trained_by,
            evaluations: over_time.len(),
            best: best.collect(),
            last,
            remark: None,
            config: job.plan().to_toml(),
            over_time,
        }
    }

    /// Whether the run was trained to its end.
    pub fn is_finished(&self) -> bool {
        self.last.is_some()
    }

    /// Whether nothing of `other` is lost when this record takes its place.
    fn is_as_far_as(&self, other: &Self) -> bool {
        (self.is_finished(), self.evaluations) >= (other.is_finished(), other.evaluations)
    }
}

/// The best evaluation by a score; none if some evaluation did not take it.
fn best_of(over_time: &OverTime, metric: Metric) -> Option<Best> {
    let best = |(epoch, scores): &(usize, BTreeMap<String, f64>)| {
        let spread = scores.get("accuracy_std").filter(|_| metric == Metric::Accuracy);
        let score = *scores.get(metric.key())?;
        Some(Best { epoch: *epoch, score, split_std: spread.copied() })
    };
    let scored: Option<Vec<Best>> = over_time.iter().map(best).collect();
    // The first of equals.
    scored?.into_iter().reduce(|best, next| if next.score > best.score { next } else { best })
}

fn path_of(options: &Options, job: &TrainingJob) -> PathBuf {
    let folder = options.records.clone().unwrap_or_else(|| options.out.join("records"));
    folder.join(format!("{}.json", job.key()))
}

/// The record of a job's run, if there is one.
///
/// # Errors
/// If the file holds something else, or the record of a run with other settings or evaluations.
pub(super) fn find(options: &Options, job: &TrainingJob) -> Result<Option<RunRecord>> {
    let path = path_of(options, job);
    let found: Option<RunRecord> = read_json(&path)?;
    if let Some(record) = &found {
        let same = same_config(&record.config, job.plan());
        same.and_then(|()| same_cadence(options, record)).map_err(|e| e.at(path.display()))?;
    }
    Ok(found)
}

/// A best of 40 evaluations is not a best of 20: what is on record must be what was asked for.
fn same_cadence(options: &Options, record: &RunRecord) -> Result<()> {
    let Some(every) = options.eval_every else {
        return Ok(());
    };
    if record.command.ends_with(&format!(" --eval-every {every}")) {
        return Ok(());
    }
    let command = &record.command;
    let message = format!(
        "the run was scored otherwise than with --eval-every {every}, by `{command}`; leave that \
         flag out, or choose another --records"
    );
    Err(Error::new(ErrorKind::Config, message))
}

/// Writes a record, unless there is one of a run that came further.
pub(super) fn keep(options: &Options, job: &TrainingJob, record: &RunRecord) -> Result<()> {
    let path = path_of(options, job);
    let before = find(options, job)?;
    if before.is_some_and(|before| before == *record || !record.is_as_far_as(&before)) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(&options.out);
    fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
    write_json(&path, record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Target;
    use crate::reproduce::job::jobs_of;

    fn scored(epoch: usize, accuracy: f64) -> (usize, BTreeMap<String, f64>) {
        let scores = [("accuracy", accuracy), ("accuracy_std", 0.5), ("nmi", 60.0)];
        (epoch, scores.map(|(name, score)| (name.to_owned(), score)).into())
    }

    fn record(options: &Options, over_time: OverTime, finished: bool) -> (TrainingJob, RunRecord) {
        let job = jobs_of(options, Target::CaseStudy, "cora").unwrap().remove(0);
        let last = over_time.last().filter(|_| finished).map(|(_, scores)| scores.clone());
        let record = RunRecord::new(&job, TrainedBy::default(), over_time, last);
        (job, record)
    }

    #[test]
    fn the_best_is_the_first_of_equals_and_of_scores_that_were_always_taken() {
        let mut over_time = vec![scored(10, 80.0), scored(20, 90.0), scored(30, 90.0)];
        let (_, all) = record(&Options::new("out"), over_time.clone(), true);
        let best = Best { epoch: 20, score: 90.0, split_std: Some(0.5) };
        assert_eq!(all.best["accuracy"], best);
        assert_eq!(all.best["nmi"], Best { epoch: 10, score: 60.0, split_std: None });
        over_time[1].1.remove("nmi");
        let (_, some) = record(&Options::new("out"), over_time, true);
        assert_eq!(some.best.keys().collect::<Vec<_>>(), ["accuracy"]);
        assert!(some.command.ends_with("--eval-every 10"), "{}", some.command);
    }

    #[test]
    fn a_run_that_came_further_keeps_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        let (one, two) = (vec![scored(10, 80.0)], vec![scored(10, 80.0), scored(20, 81.0)]);
        let stages = [(one.clone(), false), (two.clone(), false), (two.clone(), true)];
        for (over_time, finished) in stages {
            let (job, record) = record(&options, over_time, finished);
            keep(&options, &job, &record).unwrap();
            assert_eq!(find(&options, &job).unwrap(), Some(record));
        }
        for (over_time, finished) in [(one, false), (two, false)] {
            let (job, record) = record(&options, over_time, finished);
            keep(&options, &job, &record).unwrap();
            assert!(find(&options, &job).unwrap().unwrap().is_finished());
        }
    }

    #[test]
    fn a_record_of_other_settings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        let (job, mut record) = record(&options, vec![scored(10, 80.0)], true);
        record.config = record.config.replace("learning_rate = ", "learning_rate = 1");
        keep(&options, &job, &record).unwrap();
        let error = find(&options, &job).unwrap_err().to_string();
        assert!(error.contains("learning_rate") && error.contains(&job.key()), "{error}");
    }

    #[test]
    fn a_record_of_other_evaluations_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path());
        let (job, record) = record(&options, vec![scored(10, 80.0)], true);
        keep(&options, &job, &record).unwrap();
        options.eval_every = Some(10);
        assert_eq!(find(&options, &job).unwrap(), Some(record));
        options.eval_every = Some(5);
        let error = find(&options, &job).unwrap_err().to_string();
        assert!(error.contains("--eval-every 10`; leave that flag out"), "{error}");
    }
}
