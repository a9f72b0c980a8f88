//! BGRL: Large-Scale Representation Learning on Graphs via Bootstrapping (Thakoor et al., 2022).
//!
//! `L = 2 − mean_i cos(z¹_i, h²_i) − mean_i cos(z²_i, h¹_i)`
//!
//! with `z^v` the prediction from the online representation of view `v` and `h^v` the target
//! representation of view `v`. Shapes: z, h n×d.
//!
//! As in the published code the two directions are summed, not averaged.

use super::Representations;
use crate::nn::Direction;

/// Each view's prediction is pulled towards the other view's target of the same node.
pub(super) fn directions(h: Representations) -> Vec<Direction> {
    let towards = |v: usize| {
        let target = h.target[1 - v];
        Direction { online: h.online[v], target, own: target }
    };
    vec![towards(0), towards(1)]
}
