//! [`NormalizeRows`]: target representations as directions.

use blnn_kernels::Partition;
use blnn_kernels::rows::normalize;

use super::{Gradient, Op, Ports, Run, Var};

/// `Y_i = H_i / ‖H_i‖`, in the buffer of H. A constant: targets pass no gradient.
#[derive(Debug)]
pub(crate) struct NormalizeRows {
    /// H
    pub(crate) input: Var,
    /// Y
    pub(crate) output: Var,
}

impl Op for NormalizeRows {
    fn ports(&self) -> Ports {
        let (reads, writes) = (vec![self.input], vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: true, gradient: Gradient::None }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut y = run.memory.take_value(self.input);
        let partition = Partition::even(y.rows());
        let mut shards = y.shards_mut(&partition);
        run.threads.for_each_owned(&mut shards[..partition.shards()], |_, rows| normalize(rows));
        run.memory.put_value(self.output, y);
        run.clock.mark("targets");
    }
}
