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
//!
//! With `objective = "one-direction"` the second halves of both sums are left out. With
//! `objective = "published-code"` they stand beside that form of BLNN instead, which has one
//! prediction, the targets of both views and weights that sum to one for each neighbour ([`super::blnn`]):
//!
//! `L = 2 − (1/n) Σ_i u_i·c_i − (1/n) Σ_(s,e), e∈P_s (1/|{s : e∈P_s}|) u_s·c_e`, `c = a + b`

use blnn_kernels::rows::weighted_sum;

use super::Representations;
use super::both_views::sum_of_targets;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::nn::{Direction, Gradient, Op, Ports, Run, Tape, Var};
use crate::plan::Objective;

/// All neighbours as positives.
pub(super) fn noisy(
    tape: &mut Tape,
    graph: &Graph,
    form: Objective,
    h: Representations,
) -> Vec<Direction> {
    directions(tape, &weights(graph, form, |_, _| true), form, h)
}

/// The neighbours of the same class as positives.
pub(super) fn clean(
    tape: &mut Tape,
    graph: &Graph,
    form: Objective,
    h: Representations,
) -> Result<Vec<Direction>> {
    let labels = all_labels(graph)?;
    Ok(directions(tape, &weights(graph, form, |i, j| labels[i] == labels[j]), form, h))
}

/// The labels that the oracle needs.
pub(super) fn all_labels(graph: &Graph) -> Result<&[u32]> {
    graph.labels().ok_or_else(|| {
        let message = if graph.without_label() > 0 {
            "bgrl-clean is an oracle that needs a label of every node, and some have none; use \
             blnn or bgrl"
        } else {
            "bgrl-clean is an oracle that needs labels, and this graph has none; use blnn or bgrl"
        };
        Error::new(ErrorKind::Config, message).at(graph.name())
    })
}

/// A weight for each entry (i, j) with j in `P_i`, 0 for the others: `1/|P_i|`, or in the published
/// code's form `1/|P_j|`, which is the number of anchors of j because neighbours are mutual.
fn weights(graph: &Graph, form: Objective, positive: impl Fn(usize, usize) -> bool) -> Vec<f32> {
    let adjacency = graph.adjacency();
    let count = |i: usize| adjacency.row(i).iter().filter(|&&j| positive(i, j as usize)).count();
    let counts: Vec<usize> = (0..graph.nodes()).map(count).collect();
    let weight = |i: usize, j: usize| {
        let grouped_by = if form == Objective::PublishedCode { j } else { i };
        if positive(i, j) { 1.0 / counts[grouped_by] as f32 } else { 0.0 }
    };
    let of_row = |i: usize| adjacency.row(i).iter().map(move |&j| (i, j as usize));
    (0..graph.nodes()).flat_map(of_row).map(|(i, j)| weight(i, j)).collect()
}

fn directions(
    tape: &mut Tape,
    weights: &[f32],
    form: Objective,
    h: Representations,
) -> Vec<Direction> {
    let towards = |tape: &mut Tape, online: Var, own: Var| {
        let target = tape.matrix(h.nodes, h.width, false);
        tape.push(AddNeighbours { targets: own, output: target, weights: weights.to_vec() });
        Direction { online, target, own }
    };
    match form {
        Objective::Paper => {
            let pairs = [(h.online[0], h.target[1]), (h.online[1], h.target[0])];
            pairs.map(|(online, own)| towards(tape, online, own)).into()
        }
        Objective::OneDirection => vec![towards(tape, h.online[0], h.target[1])],
        Objective::PublishedCode => {
            let both = sum_of_targets(tape, h);
            vec![towards(tape, h.online[0], both)]
        }
    }
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
