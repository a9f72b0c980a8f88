//! [`Progress`]: what a person sees of a training run, and how they stop it.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use blnn::eval::EpochScores;
use blnn::tensorboard::EventWriter;
use blnn::{Health, Observer, Record, Step};
use blnn_kernels::Matrix;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{duration, note};
use crate::scoring::Scoring;

/// Plain lines a run writes when nobody watches a terminal.
const LINES: usize = 20;
/// Weight of the newest epoch in the shown seconds per epoch.
const FRESHNESS: f64 = 0.1;

/// Shows a run on stderr: a bar on a terminal, now and then a line elsewhere.
#[derive(Debug)]
pub(crate) struct Progress<'g> {
    scoring: Option<Scoring<'g>>,
    bar: ProgressBar,
    on_terminal: bool,
    epochs: usize,
    seconds_per_epoch: Option<f64>,
    stop: Arc<AtomicBool>,
    warned: bool,
    events: Events,
}

/// Event files for `TensorBoard`.
#[derive(Debug, Default)]
struct Events {
    /// Where they go, if they are wanted.
    folder: Option<PathBuf>,
    /// Epochs done before this process.
    before: usize,
    /// The file of this process, once there is something in it.
    writer: Option<EventWriter>,
}

impl Events {
    fn write(&mut self, record: &Record) -> blnn::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(EventWriter::create(folder, self.before)?),
        };
        writer.write(record)
    }
}

impl<'g> Progress<'g> {
    /// A display for a run of `epochs`, scored now and then; from here on, Ctrl-C and a request
    /// to terminate let the step at hand finish first.
    pub(crate) fn new(epochs: usize, scoring: Option<Scoring<'g>>) -> anyhow::Result<Self> {
        let on_terminal = io::stderr().is_terminal();
        let target =
            if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(epochs as u64), target);
        let template = "{bar:24} {pos}/{len} epochs · {msg} · {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Ok(Self {
            scoring,
            bar,
            on_terminal,
            epochs,
            seconds_per_epoch: None,
            stop: stop_on_signal()?,
            warned: false,
            events: Events::default(),
        })
    }

    /// Writes event files for `TensorBoard` to a folder too.
    #[must_use]
    pub(crate) fn with_events(mut self, folder: PathBuf) -> Self {
        self.events.folder = Some(folder);
        self
    }

    /// Takes the bar off the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Writes a line above the bar.
    fn say(&self, line: &str) {
        self.bar.suspend(|| note(line));
    }

    fn line_due(&self, epoch: usize) -> bool {
        epoch == 1
            || epoch == self.epochs
            || epoch.is_multiple_of(self.epochs.div_ceil(LINES).max(1))
    }

    fn message(&self, step: &Step) -> String {
        let pace = self.seconds_per_epoch.unwrap_or_default();
        format!(
            "node {:.4} · neighbour {:.4} · {}/epoch",
            step.node_loss,
            step.neighbour_loss,
            duration(pace)
        )
    }
}

impl Observer for Progress<'_> {
    fn started(&mut self, epoch: usize) {
        if epoch > 0 {
            self.say(&format!("resuming after epoch {epoch} of {}", self.epochs));
        }
        self.events.before = epoch;
        self.bar.set_position(epoch as u64);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }

    fn switched(&mut self, from: &str, to: &str) {
        self.say(&format!(
            "note: the checkpoint was trained by {from} kernels and this machine has {to}: the result is as \
             good, but not the bits that it would have been there"
        ));
    }

    fn stepped(&mut self, step: &Step, seconds: f64) -> ControlFlow<()> {
        let pace = self.seconds_per_epoch.unwrap_or(seconds);
        let pace = pace + FRESHNESS * (seconds - pace);
        self.seconds_per_epoch = Some(pace);
        let message = self.message(step);
        if !self.on_terminal && self.line_due(step.epoch) {
            let left = duration(pace * (self.epochs - step.epoch) as f64);
            let (epoch, epochs) = (step.epoch, self.epochs);
            note(format_args!("epoch {epoch}/{epochs} · {message} · {left} left"));
        }
        self.bar.set_message(message);
        self.bar.set_position(step.epoch as u64);
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn saved(&mut self, epoch: usize, health: &Health) {
        if health.collapsed && !self.warned {
            self.warned = true;
            self.say(&format!(
                "warning: the embedding has collapsed at epoch {epoch}: effective rank {:.1}, \
                 spread {:.3}; try a smaller learning_rate, less edge_drop and feature_drop, or a \
                 larger ema_start",
                health.effective_rank, health.spread
            ));
        }
    }

    fn recorded(&mut self, record: &Record) -> blnn::Result<()> {
        self.events.write(record)
    }

    fn wants_score(&self, epoch: usize) -> bool {
        self.scoring.as_ref().is_some_and(|s| s.due(epoch))
    }

    /// An embedding that cannot be scored is no reason to lose the training.
    fn score(&mut self, epoch: usize, embeddings: &Matrix) -> blnn::Result<EpochScores> {
        let Some(scoring) = &self.scoring else {
            return Ok(EpochScores::default());
        };
        self.bar.set_message("scoring the embedding");
        let scores = scoring.score(embeddings);
        if let Err(error) = &scores {
            self.say(&format!("warning: no scores at epoch {epoch}: {error}"));
        }
        self.bar.reset_eta();
        Ok(scores.unwrap_or_default())
    }
}

/// A flag that the first Ctrl-C (or SIGTERM) raises. The second one ends the process at once, for
/// those who cannot wait for the step.
pub(crate) fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let handler = move || {
        if raised.swap(true, Ordering::Relaxed) {
            #[expect(clippy::exit, reason = "the user asked twice")]
            std::process::exit(130);
        }
        note("stopping after this epoch; once more to stop at once, back to the last checkpoint");
    };
    ctrlc::set_handler(handler).context("cannot listen for Ctrl-C")?;
    Ok(stop)
}
