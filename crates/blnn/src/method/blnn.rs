//! BLNN: Bootstrap Latents of Nodes and Neighbors (Liu et al., ECML-PKDD 2024).
//!
//! A node's prediction is pulled towards its own target representation and, weighted by an
//! attention that no gradient flows through, towards those of its neighbours `N_i` in the
//! undropped graph. Isolated nodes have no neighbour term, but count in `n`.
//!
//! **Paper** (Eq. 2 and 3, both directions). With `z^v` the prediction and `h^v` the online
//! representation of view `v`, `t^v` its target representation:
//!
//! `L = − (1/n) Σ_i [cos(z¹_i, t²_i) + Σ_{j∈N_i} w¹_ij cos(z¹_i, t²_j)] − (the same, views swapped)`
//! `w¹_ij = softmax over j∈N_i of cos(h¹_i, t²_j) / τ`
//!
//! **One direction.** The same without its second half: Algorithm 1 to the letter.
//!
//! **Published code.** With `u = z¹/‖z¹‖`, `a = t¹/‖t¹‖`, `b = t²/‖t²‖` and (s, e) over all
//! directed edges:
//!
//! `L = 2 − (1/n) Σ_i u_i·(a_i + b_i) − (1/n) Σ_(s,e) w_(s,e) u_s·(a_e + b_e)`
//! `w_(s,e) = softmax over the entries with the same e of a_s·b_e / τ`
//!
//! It differs from the paper in that view 2's prediction is never used (a slip in the line that
//! normalises it), that both ends of the attention are target representations, that the weights
//! sum to one for each neighbour instead of each anchor, and that one set of weights serves both
//! terms.
//!
//! Shapes: z, h, t n×d; w one value a directed edge.

use blnn_kernels::rows::{inverse_norms, softmax_weights, weighted_sum};
use blnn_kernels::rows16::{self, Rows16};
use blnn_kernels::{Panels, Pattern, RowsMut, SHARDS};

use super::Representations;
use super::both_views::sum_of_targets;
use crate::nn::{BufferShape, Direction, Gradient, Op, Ports, Run, Stage, Tape, Var};

/// The objective of the paper.
pub(super) fn paper(tape: &mut Tape, temperature: f32, h: Representations) -> Vec<Direction> {
    [0, 1].map(|v| towards_other(tape, temperature, h, v)).into()
}

/// The same from view 1 towards view 2 only.
pub(super) fn one_direction(
    tape: &mut Tape,
    temperature: f32,
    h: Representations,
) -> Vec<Direction> {
    vec![towards_other(tape, temperature, h, 0)]
}

/// From the prediction of view `v` towards the targets of the other view.
fn towards_other(tape: &mut Tape, temperature: f32, h: Representations, v: usize) -> Direction {
    let (anchors, own) = (h.online[v], h.target[1 - v]);
    let target = tape.matrix(h.nodes, h.width, false);
    tape.push(Attend::new([anchors, own, target], temperature, h.narrow));
    Direction { online: anchors, target, own }
}

/// The objective of the published code.
pub(super) fn published_code(
    tape: &mut Tape,
    temperature: f32,
    h: Representations,
) -> Vec<Direction> {
    let own = sum_of_targets(tape, h);
    let target = tape.matrix(h.nodes, h.width, false);
    tape.push(PublishedAttend {
        targets: h.target,
        both: own,
        output: target,
        temperature,
        weights: Vec::new(),
        by_anchor: Vec::new(),
    });
    vec![Direction { online: h.online[0], target, own }]
}

/// `T_i = y_i + Σ_{j∈N_i} w_ij y_j`, `w_ij = softmax_j(cos(h_i, y_j)/τ)`, y of norm one.
///
/// The neighbours' y are rounded to bfloat16 where `narrow` says so.
#[derive(Debug)]
struct Attend {
    anchors: Var,
    targets: Var,
    output: Var,
    temperature: f32,
    narrow: bool,
    /// Room for the weights of one row, one buffer a shard.
    scratch: [Vec<f32>; SHARDS],
}

/// The y that are gathered.
enum Neighbours<'a> {
    Floats(&'a Panels),
    Words(Rows16),
}

impl Attend {
    fn new([anchors, targets, output]: [Var; 3], temperature: f32, narrow: bool) -> Self {
        Self { anchors, targets, output, temperature, narrow, scratch: Default::default() }
    }

    /// T for some rows.
    fn rows(
        &self,
        run: &Run<'_>,
        neighbours: &Neighbours<'_>,
        rows: &mut RowsMut<'_>,
        scratch: &mut Vec<f32>,
    ) {
        let [h, y] = [self.anchors, self.targets].map(|var| run.memory.value(var));
        let adjacency = run.views.adjacency();
        let inverse_temperature = 1.0 / self.temperature;
        scratch.resize(longest_row(adjacency), 0.0);
        for (slot, i) in rows.range().enumerate() {
            let weights = &mut scratch[..adjacency.row(i).len()];
            let mut inverse = [0.0];
            inverse_norms(h, i, &mut inverse);
            let factor = inverse[0] * inverse_temperature;
            match neighbours {
                Neighbours::Floats(y) => {
                    softmax_weights(adjacency, i, h, y, factor, weights);
                    weighted_sum(adjacency, i, weights, y, rows, slot);
                }
                Neighbours::Words(words) => {
                    rows16::softmax_weights(adjacency, i, h, words, factor, weights);
                    rows16::weighted_sum(adjacency, i, weights, (y, words), rows, slot);
                }
            }
        }
    }
}

impl Op for Attend {
    fn ports(&self) -> Ports {
        let (reads, writes) = (vec![self.anchors, self.targets], vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: false, gradient: Gradient::None }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let mut scratch = std::mem::take(&mut self.scratch);
        let words = self.narrow.then(|| {
            let (rows, cols) = Rows16::buffer_shape(out.rows(), out.cols());
            let buffer = run.memory.scratch(rows, cols);
            Rows16::round(run.memory.value(self.targets), buffer, run.threads)
        });
        let neighbours = words
            .map_or_else(|| Neighbours::Floats(run.memory.value(self.targets)), Neighbours::Words);
        let partition = run.views.partition();
        let mut parts = out.shards_mut(partition).map(Some);
        let mut room = scratch.iter_mut();
        let mut shards: [_; SHARDS] =
            std::array::from_fn(|s| parts[s].take().zip(room.next()).expect("SHARDS shards"));
        let whole: &Run<'_> = run;
        run.threads.for_each_owned(&mut shards[..partition.shards()], |_, (rows, scratch)| {
            self.rows(whole, &neighbours, rows, scratch);
        });
        if let Neighbours::Words(words) = neighbours {
            run.memory.release(words.into_buffer());
        }
        self.scratch = scratch;
        run.memory.put_value(self.output, out);
        run.clock.mark("attention");
    }

    fn borrows(&self, stage: &Stage<'_>) -> [Vec<BufferShape>; 2] {
        let (rows, cols) = stage.value(self.output);
        [self.narrow.then(|| Rows16::buffer_shape(rows, cols)).into_iter().collect(), vec![]]
    }
}

fn longest_row(adjacency: &Pattern) -> usize {
    adjacency.offsets().windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
}

/// `T_s = c_s + Σ_e w_(s,e) c_e`, `c = a + b`, with the published code's weights.
#[derive(Debug)]
struct PublishedAttend {
    /// a and b.
    targets: [Var; 2],
    /// c
    both: Var,
    /// T
    output: Var,
    temperature: f32,
    /// At the entry (e, s): the weight of the edge from anchor s to neighbour e.
    weights: Vec<f32>,
    /// The same at the entry (s, e).
    by_anchor: Vec<f32>,
}

impl PublishedAttend {
    /// Fills the weights, a softmax over each neighbour's anchors.
    fn weigh(&mut self, run: &Run<'_>) {
        let [a, b] = self.targets.map(|var| run.memory.value(var));
        let (adjacency, partition) = (run.views.adjacency(), run.views.partition());
        self.weights.resize(adjacency.entries(), 0.0);
        let mut shards = partition.split_at(adjacency.offsets(), &mut self.weights);
        let factor = 1.0 / self.temperature;
        run.threads.for_each_owned(&mut shards[..partition.shards()], |s, weights| {
            let mut rest = &mut **weights;
            for e in partition.range(s) {
                let (row, tail) = rest.split_at_mut(adjacency.row(e).len());
                softmax_weights(adjacency, e, b, a, factor, row);
                rest = tail;
            }
        });
    }
}

impl Op for PublishedAttend {
    fn ports(&self) -> Ports {
        let (reads, writes) = ([&self.targets[..], &[self.both]].concat(), vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: false, gradient: Gradient::None }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        self.weigh(run);
        let (c, partition) = (run.memory.value(self.both), run.views.partition());
        let (adjacency, reverse) = (run.views.adjacency(), run.views.reverse());
        let weights = &self.weights;
        self.by_anchor.clear();
        self.by_anchor.extend(reverse.iter().map(|&k| weights[k as usize]));
        let by_anchor = &self.by_anchor;
        let mut shards = out.shards_mut(partition);
        run.threads.for_each_owned(&mut shards[..partition.shards()], |_, rows| {
            for (slot, s) in rows.range().enumerate() {
                weighted_sum(adjacency, s, &by_anchor[adjacency.range(s)], c, rows, slot);
            }
        });
        run.memory.put_value(self.output, out);
        run.clock.mark("attention");
    }
}
