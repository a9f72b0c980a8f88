//! [`RunRecord`]: what tables need of a run, in one small file that outlives its folder.
//!
//! The folder of a run holds weights and embeddings, tens of megabytes, and stays on the machine
//! that trained it. Its record, `RECORDS/<key>.json`, has some twenty kilobytes: it can be kept in version
//! control, and stands for the run wherever scores are all that is asked for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::plan::Precision;
use crate::published::Metric;
use crate::train::config_difference;

use super::Options;
use super::job::TrainingJob;
use super::trained::{OverTime, TrainedBy, write_json};

/// The name of the accuracy by the split protocol of the paper's text.
pub(super) const PAPER_SPLIT: &str = "accuracy_paper_split";

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
        let every = cadence(&trained_by, &over_time).unwrap_or(job.plan().epochs);
        let best = Metric::ALL.into_iter().filter_map(|metric| {
            Some((metric.key().to_owned(), best_of(&over_time, metric.key())?))
        });
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

    /// The best accuracy by the split protocol of the paper's text, where all evaluations were kept.
    pub(super) fn best_paper_split(&self) -> Option<Best> {
        best_of(&self.over_time, PAPER_SPLIT)
    }

    /// Epochs between evaluations, as far as that can be known.
    pub(super) fn eval_every(&self) -> Option<usize> {
        cadence(&self.trained_by, &self.over_time)
    }

    /// How far the run came: whether it is finished, and the epoch it was scored at last.
    fn progress(&self) -> (bool, usize) {
        (self.is_finished(), self.over_time.last().map_or(0, |last| last.0))
    }

    /// The precision of a record that stands for a job of another one.
    pub(super) fn other_precision(&self, job: &TrainingJob) -> Option<Precision> {
        let is_mine = |precision: &Precision| job.in_precision(*precision).key() == self.key;
        Precision::ALL.into_iter().find(is_mine).filter(|mine| *mine != job.plan().precision())
    }

    /// Whether the record stays where that of another run by the same name could take its place: a
    /// finished one always, or the tables would change with whoever trains the model again.
    fn stays_before(&self, other: &Self) -> bool {
        self.is_finished() || self.has_scores_of(other) || self.progress() > other.progress()
    }

    pub(super) fn has_scores_of(&self, other: &Self) -> bool {
        (&self.over_time, &self.last) == (&other.over_time, &other.last)
    }
}

/// Epochs between evaluations: as noted, or until the first, which is right unless that one failed.
fn cadence(trained_by: &TrainedBy, over_time: &OverTime) -> Option<usize> {
    trained_by.eval_every.or_else(|| Some(over_time.first()?.0))
}

/// The best evaluation by a score; none if some evaluation did not take it.
fn best_of(over_time: &OverTime, score: &str) -> Option<Best> {
    let spread = format!("{score}_std");
    let best = |(epoch, scores): &(usize, BTreeMap<String, f64>)| {
        let (score, split_std) = (*scores.get(score)?, scores.get(&spread).copied());
        Some(Best { epoch: *epoch, score, split_std })
    };
    let scored: Option<Vec<Best>> = over_time.iter().map(best).collect();
    // The first of equals.
    scored?.into_iter().reduce(|best, next| if next.score > best.score { next } else { best })
}

fn folder(options: &Options) -> PathBuf {
    options.records.clone().unwrap_or_else(|| options.out.join("records"))
}

/// The address of a run's record as seen from a page, if the record is there and lies below that page's
/// folder.
pub(super) fn link(options: &Options, page: &Path, key: &str) -> Option<String> {
    let record = folder(options).join(format!("{key}.json"));
    let below = record.strip_prefix(page.parent()?).ok()?;
    let steps: Option<Vec<&str>> = below.components().map(|c| c.as_os_str().to_str()).collect();
    record.exists().then_some(steps?.join("/"))
}

fn path_of(options: &Options, job: &TrainingJob) -> PathBuf {
    folder(options).join(format!("{}.json", job.key()))
}

/// The record that tables show for a job: that of its run or, where [`Options::any_precision`] allows
/// it and the run is not finished, that of the same run in another precision if it came further.
///
/// # Errors
/// As for [`of_run`].
pub(super) fn find(options: &Options, job: &TrainingJob) -> Result<Option<RunRecord>> {
    let own = of_run(options, job)?;
    if !options.any_precision || own.as_ref().is_some_and(RunRecord::is_finished) {
        return Ok(own);
    }
    let mut found = own;
    for precision in Precision::ALL.into_iter().filter(|p| *p != job.plan().precision()) {
        let other = of_run(options, &job.in_precision(precision))?;
        if other.as_ref().map(RunRecord::progress) > found.as_ref().map(RunRecord::progress) {
            found = other;
        }
    }
    Ok(found)
}

/// The record of a job's own run, if there is one.
///
/// # Errors
/// If the file holds something else, or the record of a run with other settings or evaluations.
pub(super) fn of_run(options: &Options, job: &TrainingJob) -> Result<Option<RunRecord>> {
    let path = path_of(options, job);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).map_err(|e| Error::io("read", &path, e))?;
    let fault = |kind, message: String| Err(Error::new(kind, message).at(path.display()));
    let record: RunRecord = match serde_json::from_str(&text) {
        Ok(record) => record,
        Err(e) => {
            let message = format!("{e}; mend the record, or train the run again without it");
            return fault(ErrorKind::Parse, message);
        }
    };
    if let Some(difference) = config_difference(&record.config, job.plan()) {
        let message = format!(
            "the record is of another run, {difference}; remove it, or choose other --records"
        );
        return fault(ErrorKind::Config, message);
    }
    same_cadence(options, job, &record).map_err(|e| e.at(path.display()))?;
    Ok(Some(record))
}

/// A best of 40 evaluations is not a best of 20: what is on record must be what was asked for.
fn same_cadence(options: &Options, job: &TrainingJob, record: &RunRecord) -> Result<()> {
    // The last epoch is scored however far apart evaluations are.
    let Some(every) = options.eval_every.map(|every| every.min(job.plan().epochs)) else {
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

/// Writes a record, unless there is one that stays. Returns the one that is there now.
pub(super) fn keep(options: &Options, job: &TrainingJob, record: RunRecord) -> Result<RunRecord> {
    if let Some(before) = of_run(options, job)?.filter(|before| before.stays_before(&record)) {
        return Ok(before);
    }
    let folder = folder(options);
    fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    write_json(&path_of(options, job), &record)?;
    Ok(record)
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
    fn an_evaluation_that_failed_does_not_change_how_often_there_is_one() {
        let (job, _) = record(&Options::new("out"), vec![], false);
        let trained_by = TrainedBy { eval_every: Some(10), ..TrainedBy::default() };
        let late = RunRecord::new(&job, trained_by, vec![scored(20, 80.0)], None);
        assert_eq!(late.eval_every(), Some(10));
        assert!(late.command.ends_with("--eval-every 10"), "{}", late.command);
    }

    #[test]
    fn a_run_that_came_further_keeps_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        let (one, two) = (vec![scored(10, 80.0)], vec![scored(10, 80.0), scored(20, 81.0)]);
        let stages = [(one.clone(), false), (two.clone(), false), (two.clone(), true)];
        for (over_time, finished) in stages {
            let (job, record) = record(&options, over_time, finished);
            assert_eq!(keep(&options, &job, record.clone()).unwrap(), record);
            assert_eq!(find(&options, &job).unwrap(), Some(record));
        }
        let retrained = vec![scored(10, 80.0), scored(20, 99.0)];
        for (over_time, finished) in [(one, false), (two.clone(), false), (retrained, true)] {
            let (job, record) = record(&options, over_time, finished);
            let stands = keep(&options, &job, record).unwrap();
            assert_eq!(stands.over_time, two);
            assert_eq!(find(&options, &job).unwrap(), Some(stands));
        }
        let (job, again) = record(&options, two, true);
        let remark = Some("What a person wrote.".to_owned());
        let remarked = RunRecord { remark, ..again.clone() };
        write_json(&path_of(&options, &job), &remarked).unwrap();
        assert_eq!(keep(&options, &job, again).unwrap(), remarked);
        assert_eq!(find(&options, &job).unwrap(), Some(remarked));
    }

    #[test]
    fn another_precision_stands_for_a_run_that_is_not_finished_only_where_it_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let plain = Options::new(folder.path());
        let mut rounded = plain.clone();
        rounded.settings = vec!["precision=bf16".into()];
        let allowed = Options { any_precision: true, ..plain.clone() };
        let keep_scored = |options: &Options, accuracy, finished| {
            let (job, record) = record(options, vec![scored(10, accuracy)], finished);
            (job.clone(), keep(options, &job, record).unwrap())
        };
        let (_, bf16) = keep_scored(&rounded, 70.0, true);
        let (job, _) = record(&plain, vec![], false);
        assert_eq!(find(&plain, &job).unwrap(), None);
        assert_eq!(find(&allowed, &job).unwrap().as_ref(), Some(&bf16));
        assert_eq!(bf16.other_precision(&job), Some(Precision::Bf16));
        keep_scored(&plain, 80.0, false);
        assert_eq!(find(&allowed, &job).unwrap(), Some(bf16));
        let (job, own) = keep_scored(&plain, 80.0, true);
        assert_eq!(own.other_precision(&job), None);
        assert_eq!(find(&allowed, &job).unwrap(), Some(own));
    }

    #[test]
    fn a_record_of_other_settings_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        let (job, mut record) = record(&options, vec![scored(10, 80.0)], true);
        record.config = record.config.replace("learning_rate = ", "learning_rate = 1");
        keep(&options, &job, record).unwrap();
        let error = find(&options, &job).unwrap_err().to_string();
        assert!(error.contains("learning_rate") && error.contains(&job.key()), "{error}");
    }

    #[test]
    fn a_record_of_other_evaluations_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path());
        let (job, record) = record(&options, vec![scored(10, 80.0)], true);
        keep(&options, &job, record.clone()).unwrap();
        options.eval_every = Some(10);
        assert_eq!(find(&options, &job).unwrap().as_ref(), Some(&record));
        // Beyond the end of a run there is nothing to score.
        let (mut long, epochs) = (options.clone(), job.plan().epochs);
        long.records = Some(folder.path().join("long"));
        let scores = record.last.clone();
        let once = RunRecord::new(&job, TrainedBy::default(), vec![scored(epochs, 80.0)], scores);
        keep(&long, &job, once.clone()).unwrap();
        long.eval_every = Some(2 * epochs);
        assert_eq!(find(&long, &job).unwrap(), Some(once));
        options.eval_every = Some(5);
        let error = find(&options, &job).unwrap_err().to_string();
        assert!(error.contains("--eval-every 10`; leave that flag out"), "{error}");
    }
}
