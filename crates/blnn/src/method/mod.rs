//! The objectives, one file a paper. Each says what every node's prediction is pulled towards.
//!
//! All of them have one form. Let `ẑ_i` be the normalised prediction of node `i` made from one
//! view's online representation, and `T_i` a constant vector made from target representations:
//!
//! `L = constant − (1/n) Σ_directions Σ_i ẑ_i · T_i`
//!
//! A method appends the operations that compute `T` and names the directions; predictor, loss and
//! gradients are the same for all ([`crate::nn::Predict`]).

mod bgrl;
mod blnn;
mod both_views;
mod neighbours;

use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::nn::{Direction, Tape, Var};
use crate::plan::{Method, Objective, Plan};

/// What the methods need to know of a step's representations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Representations {
    /// Online representations H of view 1 and view 2.
    pub(crate) online: [Var; 2],
    /// Target representations of view 1 and view 2, as directions (rows of norm one).
    pub(crate) target: [Var; 2],
    /// n
    pub(crate) nodes: usize,
    /// d
    pub(crate) width: usize,
    /// Whether what is gathered is rounded to bfloat16 before.
    pub(crate) narrow: bool,
}

/// Which views the online network predicts from.
pub(crate) fn predicting_views(plan: &Plan) -> [bool; 2] {
    // The paper's Algorithm 1 has one prediction, and its published code throws view 2's away.
    [true, !plan.predicts_once()]
}

/// The constant of the objective: it changes no gradient, and makes the reported loss that of
/// the published formula.
pub(crate) fn constant(plan: &Plan) -> f64 {
    match (plan.method, plan.objective) {
        (Method::Blnn, Objective::Paper | Objective::OneDirection) => 0.0,
        (Method::BgrlNoisy | Method::BgrlClean, Objective::OneDirection) => 1.0,
        _ => 2.0,
    }
}

/// Refuses a graph that lacks what the method needs of it.
pub(crate) fn check(method: Method, graph: &Graph) -> Result<()> {
    if graph.entries() == 0 {
        let message = "the graph has no edges, and every method here learns through them; check \
                       that the ids of its edges are those of its nodes";
        return Err(Error::new(ErrorKind::Shape, message).at(graph.name()));
    }
    if method == Method::BgrlClean {
        neighbours::all_labels(graph)?;
    }
    Ok(())
}

/// Appends the operations of the plan's method and names its directions.
///
/// # Errors
/// If the method needs labels that the graph does not have.
pub(crate) fn directions(
    tape: &mut Tape,
    plan: &Plan,
    graph: &Graph,
    h: Representations,
) -> Result<Vec<Direction>> {
    match (plan.method, plan.objective) {
        (Method::Bgrl, _) => Ok(bgrl::directions(h)),
        (Method::Blnn, Objective::Paper) => Ok(blnn::paper(tape, plan.temperature, h)),
        (Method::Blnn, Objective::OneDirection) => {
            Ok(blnn::one_direction(tape, plan.temperature, h))
        }
        (Method::Blnn, Objective::PublishedCode) => {
            Ok(blnn::published_code(tape, plan.temperature, h))
        }
        (Method::BgrlNoisy, form) => Ok(neighbours::noisy(tape, graph, form, h)),
        (Method::BgrlClean, form) => neighbours::clean(tape, graph, form, h),
    }
}
