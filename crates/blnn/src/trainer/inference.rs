//! What training and a stored model share: the trained encoder on a whole graph.

use blnn_kernels::Matrix;

use crate::nn::{Encoder, Normalization, Run, RunningStatistics, Tape};
use crate::plan::Statistics;

/// The representations of all nodes, in the order of the run's views, which must keep everything:
/// the encoder without a gradient, normalised with its running statistics.
pub(crate) fn represent(encoder: &Encoder, statistics: Statistics, run: &mut Run<'_>) -> Matrix {
    let mut tape = Tape::default();
    let running = run.running.to_vec();
    let fixed = |layer: usize| Normalization::Fixed(running[layer].clone(), statistics);
    let [output, _] = encoder.encode(&mut tape, [false, false], fixed);
    tape.output(output);
    tape.forward(run);
    let representations = run.memory.value(output).to_matrix();
    tape.finish(run.memory);
    run.clock.skip();
    representations
}

/// One running statistic and its name in a checkpoint.
pub(crate) struct RunningName {
    pub(crate) name: String,
    layer: usize,
    kind: usize,
    is_mean: bool,
}

impl RunningName {
    pub(crate) fn values<'a>(&self, all: &'a [RunningStatistics]) -> &'a [f32] {
        let statistics = &all[self.layer];
        let moment = if self.is_mean { &statistics.mean } else { &statistics.variance };
        &moment[self.kind]
    }

    pub(crate) fn values_mut<'a>(&self, all: &'a mut [RunningStatistics]) -> &'a mut Vec<f32> {
        let statistics = &mut all[self.layer];
        let moment = if self.is_mean { &mut statistics.mean } else { &mut statistics.variance };
        &mut moment[self.kind]
    }
}

/// All running statistics of the trained encoder.
pub(crate) fn running_names() -> impl Iterator<Item = RunningName> {
    let each = |layer: usize| {
        [(0, "last_view"), (1, "averaged")].into_iter().flat_map(move |(kind, label)| {
            [("mean", true), ("variance", false)].map(|(moment, is_mean)| {
                let name = format!("online.norm{}.{label}.{moment}", layer + 1);
                RunningName { name, layer, kind, is_mean }
            })
        })
    };
    [0, 1].into_iter().flat_map(each)
}
