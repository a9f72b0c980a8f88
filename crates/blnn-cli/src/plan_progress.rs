//! [`PlanProgress`]: what a person sees of many trainings, and how they stop them.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blnn::Step;
use blnn::reproduce::{Report, TrainingJob, Watcher};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{duration, note};
use crate::progress::stop_on_signal;

/// Plain lines a training writes when nobody watches a terminal.
const LINES: usize = 5;

/// No more time than this passes between two of them: a training may take hours.
const LONGEST_SILENCE: Duration = Duration::from_mins(2);

/// Shows the whole plan on stderr: a bar on a terminal, now and then a line elsewhere.
#[derive(Debug)]
pub(crate) struct PlanProgress {
    bar: ProgressBar,
    on_terminal: bool,
    stop: Arc<AtomicBool>,
    out: PathBuf,
    jobs: Vec<Planned>,
    began: Instant,
    spoke: Instant,
    /// Work done by this process, in the units of [`TrainingJob::epoch_cost`].
    work_done: f64,
}

#[derive(Debug)]
struct Planned {
    key: String,
    epochs: usize,
    done: usize,
    epoch_cost: f64,
}

impl Planned {
    fn work_left(&self) -> f64 {
        (self.epochs - self.done.min(self.epochs)) as f64 * self.epoch_cost
    }
}

impl PlanProgress {
    /// A display; from here on, Ctrl-C and a request to terminate let the step at hand finish.
    pub(crate) fn new(out: &Path) -> anyhow::Result<Self> {
        let on_terminal = io::stderr().is_terminal();
        let target =
            if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Ok(Self {
            bar,
            on_terminal,
            stop: stop_on_signal()?,
            out: out.to_owned(),
            jobs: Vec::new(),
            began: Instant::now(),
            spoke: Instant::now(),
            work_done: 0.0,
        })
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| note(line));
    }

    /// Seconds until all trainings are done, at the pace so far, scoring included.
    fn seconds_left(&self) -> Option<f64> {
        let left: f64 = self.jobs.iter().map(Planned::work_left).sum();
        (self.work_done > 0.0).then(|| self.began.elapsed().as_secs_f64() / self.work_done * left)
    }

    fn place(&self, job: usize) -> String {
        format!("model {} of {} · {}", job + 1, self.jobs.len(), self.jobs[job].key)
    }
}

impl Watcher for PlanProgress {
    fn planned(&mut self, jobs: &[TrainingJob], finished: &[bool]) {
        let planned = |(job, done): (&TrainingJob, &bool)| Planned {
            key: job.key(),
            epochs: job.plan().epochs(),
            done: if *done { job.plan().epochs() } else { 0 },
            epoch_cost: job.epoch_cost(),
        };
        self.jobs = jobs.iter().zip(finished).map(planned).collect();
        let done = finished.iter().filter(|done| **done).count();
        self.say(&format!("{} models in the plan, {done} of them trained before", jobs.len()));
        let work: f64 = jobs.iter().map(|j| j.plan().epochs() as f64 * j.epoch_cost()).sum();
        self.bar.set_length(work as u64);
        self.bar.enable_steady_tick(Duration::from_millis(250));
        self.began = Instant::now();
    }

    fn started(&mut self, job: usize, epoch: usize) {
        self.jobs[job].done = epoch;
        let resumed =
            if epoch > 0 { format!(", going on after epoch {epoch}") } else { String::new() };
        self.say(&format!("{}{resumed}", self.place(job)));
    }

    fn stepped(&mut self, job: usize, step: &Step) {
        self.work_done += self.jobs[job].epoch_cost;
        self.jobs[job].done = step.epoch;
        let epochs = self.jobs[job].epochs;
        let left =
            self.seconds_left().map_or(String::new(), |s| format!(" · {} left", duration(s)));
        let line_due = step.epoch == epochs
            || step.epoch.is_multiple_of(epochs.div_ceil(LINES).max(1))
            || self.spoke.elapsed() >= LONGEST_SILENCE;
        if !self.on_terminal && line_due {
            self.spoke = Instant::now();
            let place = self.place(job);
            note(format_args!(
                "{place} · epoch {}/{epochs} · loss {:.4}{left} in all",
                step.epoch, step.loss
            ));
        }
        let total: f64 = self.jobs.iter().map(|j| j.done as f64 * j.epoch_cost).sum();
        self.bar.set_position(total as u64);
        self.bar.set_message(format!("{} · epoch {}/{epochs}{left}", self.place(job), step.epoch));
    }

    fn busy(&mut self, with: &str) {
        self.bar.set_message(with.to_owned());
    }

    fn warned(&mut self, about: &str) {
        self.say(&format!("warning: {about}"));
    }

    fn reported(&mut self, report: &Report) {
        let file = self.out.join(format!("{}.md", report.target));
        self.say(&format!("{}: {}", report.place, file.display()));
        for missing in &report.missing {
            self.say(&format!("  without {}: {}", missing.dataset, missing.remark()));
        }
    }

    fn wants_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
