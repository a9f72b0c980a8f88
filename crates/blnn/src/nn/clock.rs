//! [`Clock`]: how the time of a run is shared between its stages.

use std::time::{Duration, Instant};

/// Adds up time by stage. A stage's time is what passed since the mark before.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Instant,
    stages: Vec<(&'static str, Duration)>,
}

impl Clock {
    /// A clock at zero.
    pub(crate) fn new() -> Self {
        Self { last: Instant::now(), stages: Vec::with_capacity(16) }
    }

    /// Forgets the time since the last mark: it belongs to no stage.
    pub(crate) fn skip(&mut self) {
        self.last = Instant::now();
    }

    /// Books the time since the last mark on `stage`.
    pub(crate) fn mark(&mut self, stage: &'static str) {
        let now = Instant::now();
        let passed = now - self.last;
        self.last = now;
        match self.stages.iter_mut().find(|(name, _)| *name == stage) {
            Some((_, total)) => *total += passed,
            None => self.stages.push((stage, passed)),
        }
    }

    /// Seconds of each stage so far.
    pub(crate) fn seconds(&self) -> Vec<(&'static str, f64)> {
        self.stages.iter().map(|(name, time)| (*name, time.as_secs_f64())).collect()
    }
}
