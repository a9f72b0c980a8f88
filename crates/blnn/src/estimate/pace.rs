//! [`Pace`]: seconds an epoch, measured on a few epochs.

use std::time::{Duration, Instant};

use blnn_kernels::Threads;
use serde::Serialize;

use crate::cost::{StageCost, step_cost_of};
use crate::data::resembling;
use crate::error::Result;
use crate::graph::Graph;
use crate::plan::Plan;
use crate::sizes::Sizes;
use crate::trainer::Trainer;

/// Rates that decide how large a graph may be measured in the time there is: below those of
/// today's machines, so that slow ones keep to it too.
const OPERATIONS_A_SECOND: f64 = 30e9;
const BYTES_A_SECOND: f64 = 10e9;
/// The part of the time that the first, slower step may take.
const FIRST_STEP: f64 = 0.25;
const MOST_EPOCHS: usize = 10;
const FEWEST_NODES: usize = 500;
/// A larger sample takes long to make and tells nothing new.
const MOST_NODES: usize = 50_000;
/// Classes of that sample.
const CLASSES: u32 = 10;

/// How fast a run will be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pace {
    /// Seconds an epoch.
    pub seconds_per_epoch: f64,
    /// Nodes of the graph that was measured: fewer than the run's where it was scaled.
    pub measured_nodes: usize,
    /// Epochs that were measured.
    pub measured_epochs: usize,
}

impl Pace {
    /// Measures a few epochs within about `time`: on `graph` if it is there and quick enough, else
    /// on a smaller one of the same degree, attributes and widths, scaled up stage by stage by
    /// the work that is counted for each.
    ///
    /// # Errors
    /// If the graph cannot be trained on, as one without edges.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blnn::estimate::Pace;
    /// use blnn::{Config, Sizes, data};
    /// use blnn_kernels::Threads;
    /// let mut config = Config::new();
    /// config.assign("hidden_width=8")?;
    /// let plan = config.resolve("mine")?;
    /// let sizes = Sizes::of(&data::load("cora", &[])?).scaled_to(50_000_000);
    /// let time = Duration::from_millis(50);
    /// let pace = Pace::measure(&sizes, None, &plan, &Threads::new(1), time)?;
    /// assert!(pace.measured_nodes < 50_000_000 && pace.seconds_per_epoch > 0.1);
    /// # Ok::<(), blnn::Error>(())
    /// ```
    pub fn measure(
        sizes: &Sizes,
        graph: Option<&Graph>,
        plan: &Plan,
        threads: &Threads,
        time: Duration,
    ) -> Result<Self> {
        let share = FIRST_STEP * time.as_secs_f64() / guess(sizes, plan);
        let first = Self::measure_share(share, sizes, graph, plan, threads, time)?;
        // Now that the machine's speed is known: more of the graph, whose rows then come from as
        // far as they will in the run.
        let affordable = FIRST_STEP * time.as_secs_f64() / first.seconds_per_epoch;
        if first.measured_nodes < sizes.nodes && affordable > 2.0 * share {
            return Self::measure_share(affordable, sizes, graph, plan, threads, time);
        }
        Ok(first)
    }

    /// The pace of a share of the graph: 1 is the graph itself, if it is there.
    fn measure_share(
        share: f64,
        sizes: &Sizes,
        graph: Option<&Graph>,
        plan: &Plan,
        threads: &Threads,
        time: Duration,
    ) -> Result<Self> {
        if let Some(graph) = graph.filter(|_| share >= 1.0) {
            let (stages, measured_epochs) = time_stages(graph, plan, threads, time)?;
            let seconds_per_epoch = stages.iter().map(|(_, seconds)| seconds).sum();
            return Ok(Self { seconds_per_epoch, measured_nodes: graph.nodes(), measured_epochs });
        }
        let part = (sizes.nodes as f64 * share.min(1.0)) as usize;
        let nodes = part.clamp(FEWEST_NODES, MOST_NODES).min(sizes.nodes);
        let sample = resembling(&sizes.scaled_to(nodes), plan.seed)?;
        // For the method that trains on them.
        let sample =
            sample.with_labels((0..nodes as u32).map(|i| i % CLASSES).collect(), vec![])?;
        let (stages, measured_epochs) = time_stages(&sample, plan, threads, time)?;
        let sampled = Sizes::of(&sample);
        let seconds_per_epoch = stages
            .iter()
            .map(|&(stage, seconds)| seconds * growth(stage, &sampled, sizes, plan))
            .sum();
        Ok(Self { seconds_per_epoch, measured_nodes: nodes, measured_epochs })
    }
}

/// Seconds an epoch at the rates above.
fn guess(sizes: &Sizes, plan: &Plan) -> f64 {
    let seconds = |cost: &StageCost| {
        cost.operations / OPERATIONS_A_SECOND + cost.gathered_bytes / BYTES_A_SECOND
    };
    step_cost_of(sizes, plan).iter().map(seconds).sum()
}

/// Mean seconds of each stage after the first step, and the number of steps.
fn time_stages(
    graph: &Graph,
    plan: &Plan,
    threads: &Threads,
    time: Duration,
) -> Result<(Vec<(&'static str, f64)>, usize)> {
    let began = Instant::now();
    let mut trainer = Trainer::new(graph, plan, threads)?;
    trainer.step();
    let first = trainer.stage_seconds();
    let mut epochs = 0;
    while epochs == 0 || (epochs < MOST_EPOCHS && began.elapsed() < time) {
        trainer.step();
        epochs += 1;
    }
    let before = |stage: &str| first.iter().find(|(name, _)| *name == stage).map_or(0.0, |s| s.1);
    let stages = trainer.stage_seconds().into_iter();
    let mean =
        |(stage, seconds): (&'static str, f64)| (stage, (seconds - before(stage)) / epochs as f64);
    Ok((stages.map(mean).collect(), epochs))
}

/// How much more a stage has to do on the whole graph than on the sample.
fn growth(stage: &str, sample: &Sizes, whole: &Sizes, plan: &Plan) -> f64 {
    let ratio = |of: &dyn Fn(&Sizes) -> f64| of(whole) / of(sample).max(1.0);
    let work = |sizes: &Sizes| {
        let costs = step_cost_of(sizes, plan);
        costs.iter().find(|cost| cost.stage == stage).map(|cost| cost.operations)
    };
    match (stage, work(whole), work(sample)) {
        (_, Some(more), Some(less)) if less > 0.0 => more / less,
        // The optimiser goes over the weights, which are the same.
        ("update", ..) => 1.0,
        ("views", ..) => ratio(&|sizes| (sizes.entries + sizes.values()) as f64),
        _ => ratio(&|sizes| sizes.nodes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generated;

    fn measured(sizes: &Sizes, graph: Option<&Graph>, milliseconds: u64) -> Pace {
        let time = Duration::from_millis(milliseconds);
        Pace::measure(sizes, graph, &Plan::sample(), &Threads::new(1), time).unwrap()
    }

    #[test]
    fn a_small_graph_is_measured_as_it_is_and_a_large_one_by_a_sample() {
        let graph = generated(600, 1).unwrap();
        let sizes = Sizes::of(&graph);
        assert_eq!(measured(&sizes, Some(&graph), 200).measured_nodes, 600);
        let large = sizes.scaled_to(10_000_000);
        let pace = measured(&large, None, 200);
        assert!((FEWEST_NODES..1_000_000).contains(&pace.measured_nodes), "{pace:?}");
        assert!(pace.seconds_per_epoch > 0.0 && pace.measured_epochs >= 1, "{pace:?}");
    }

    #[test]
    fn work_grows_with_what_it_is_done_on() {
        let small = Sizes::of(&generated(600, 1).unwrap());
        let plan = Plan::sample();
        let doubled = small.scaled_to(1200);
        for stage in ["predict", "dense", "inputs", "gather", "attention", "views", "normalise"] {
            let growth = growth(stage, &small, &doubled, &plan);
            assert!((growth - 2.0).abs() < 0.01, "{stage}: {growth}");
        }
        assert_eq!(growth("update", &small, &doubled, &plan), 1.0);
        let denser = Sizes { entries: 2 * small.entries, ..small };
        assert_eq!(growth("predict", &small, &denser, &plan), 1.0);
        assert!(growth("attention", &small, &denser, &plan) > 1.9);
    }
}
