//! The paper's ablations: BGRL with all neighbours, or those of the same class, as equal
//! positives (section 4.1 and Table 5).
//!
//! `L = L_BGRL − (1/n) Σ_i (1/|P_i|) Σ_{j∈P_i} (cos(z¹_i, h²_j) + cos(z²_i, h¹_j))`
//!
//! - `bgrl-noisy`: `P_i = N_i`, which is BLNN at an infinite temperature;
//! - `bgrl-clean`: `P_i = {j ∈ N_i : y_j = y_i}`, an oracle that sees all labels.
//!
//! An empty `P_i` contributes nothing. The paper does not say how the pairs are weighted; equal
//! weights that sum to one a node are our reading of it.

use blnn_kernels::rows::weighted_sum;

use super::Representations;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::nn::{Direction, Gradient, Op, Ports, Run, Tape, Var};

/// All neighbours as positives.
pub(super) fn noisy(tape: &mut Tape, graph: &Graph, h: Representations) -> Vec<Direction> {
    directions(tape, &weights(graph, |_, _| true), h)
}

/// The neighbours of the same class as positives.
pub(super) fn clean(tape: &mut Tape, graph: &Graph, h: Representations) -> Result<Vec<Direction>> {
    let Some(labels) = graph.labels() else {
        let message = if graph.without_label() > 0 {
            "bgrl-clean is an oracle that needs a label of every node, and some have none; use \
             blnn or bgrl"
        } else {
            "bgrl-clean is an oracle that needs labels, and this graph has none; use blnn or bgrl"
        };
        return Err(Error::new(ErrorKind::Config, message).at(graph.name()));
    };
    Ok(directions(tape, &weights(graph, |i, j| labels[i] == labels[j]), h))
}

/// `1/|P_i|` for each entry (i, j) with j in `P_i`, 0 for the others.
fn weights(graph: &Graph, positive: impl Fn(usize, usize) -> bool) -> Vec<f32> {
    let adjacency = graph.adjacency();
    let of_row = |i: usize| {
        let is = |&j: &u32| positive(i, j as usize);
        let count = adjacency.row(i).iter().filter(|j| is(j)).count();
        let weight = 1.0 / count.max(1) as f32;
        adjacency.row(i).iter().map(move |j| if is(j) { weight } else { 0.0 }).collect::<Vec<_>>()
    };
    (0..graph.nodes()).flat_map(of_row).collect()
}

fn directions(tape: &mut Tape, weights: &[f32], h: Representations) -> Vec<Direction> {
    let mut towards = |v: usize| {
        let own = h.target[1 - v];
        let target = tape.matrix(h.nodes, h.width, false);
        tape.push(AddNeighbours { targets: own, output: target, weights: weights.to_vec() });
        Direction { online: h.online[v], target, own }
    };
    vec![towards(0), towards(1)]
}

/// `T_i = y_i + Σ_{j∈N_i} w_ij y_j` with fixed weights.
#[derive(Debug)]
struct AddNeighbours {
    targets: Var,
    output: Var,
    weights: Vec<f32>,
}

impl Op for AddNeighbours {
    fn ports(&self) -> Ports {
        let (reads, writes) = (vec![self.targets], vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: false, gradient: Gradient::None }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let (y, adjacency) = (run.memory.value(self.targets), run.views.adjacency());
        let partition = run.views.partition();
        let mut shards = out.shards_mut(partition);
        run.threads.for_each_owned(&mut shards[..partition.shards()], |_, rows| {
            for (slot, i) in rows.range().enumerate() {
                weighted_sum(adjacency, i, &self.weights[adjacency.range(i)], y, rows, slot);
            }
        });
        run.memory.put_value(self.output, out);
        run.clock.mark("attention");
    }
}
