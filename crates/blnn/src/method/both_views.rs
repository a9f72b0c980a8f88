//! `c = a + b`: the published code pulls its one prediction towards the target representations of
//! both views at once.

use blnn_kernels::norm::add_into;

use super::Representations;
use crate::nn::{Gradient, Op, Ports, Run, Tape, Var};

/// Appends the sum of the target representations of both views.
pub(super) fn sum_of_targets(tape: &mut Tape, h: Representations) -> Var {
    let output = tape.matrix(h.nodes, h.width, false);
    tape.push(Sum { views: h.target, output });
    output
}

#[derive(Debug)]
struct Sum {
    views: [Var; 2],
    output: Var,
}

impl Op for Sum {
    fn ports(&self) -> Ports {
        let (reads, writes) = (self.views.to_vec(), vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: false, gradient: Gradient::None }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let [a, b] = self.views.map(|var| run.memory.value(var));
        run.threads.for_each_cell(run.views.partition(), [&mut out], |cell, [out]| {
            add_into(a.cell(&cell), b.cell(&cell), out);
        });
        run.memory.put_value(self.output, out);
        run.clock.mark("attention");
    }
}
