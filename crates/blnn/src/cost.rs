//! What one step of training costs in arithmetic and in gathered memory, stage by stage, by
//! counting. Divided by measured seconds it gives rates to hold against the machine's peaks.

use crate::graph::Graph;
use crate::plan::{Method, Plan, Precision};
use crate::sizes::{Products, Sizes};

/// The work of one stage of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageCost {
    /// The stage's name, as in [`Trainer::stage_seconds`](crate::Trainer::stage_seconds).
    pub stage: &'static str,
    /// Floating-point operations, a multiply-add counting as two.
    pub operations: f64,
    /// Bytes of rows gathered by number, wherever they come from; 0 for dense stages.
    pub gathered_bytes: f64,
}

/// Passes over a layer in a step: both networks forwards, the online one backwards.
const PASSES: f64 = 3.0;

/// Bytes of a value that propagation or a product with the attributes gathers.
fn stored_bytes(plan: &Plan) -> f64 {
    match plan.precision {
        Precision::F32 => 4.0,
        Precision::Bf16 => 2.0,
    }
}

/// Bytes of a value that the attention gathers.
fn attended_bytes(plan: &Plan) -> f64 {
    if plan.follows_published_code() { 4.0 } else { stored_bytes(plan) }
}

/// The work of one step, for the stages whose work can be counted. Random draws enter by their
/// expectation.
///
/// ```
/// let graph = blnn::data::load("cora", &[])?;
/// let plan = blnn::Config::new().resolve("cora")?;
/// let cost = blnn::step_cost(&graph, &plan);
/// assert!(cost.iter().all(|stage| stage.operations > 0.0));
/// # Ok::<(), blnn::Error>(())
/// ```
pub fn step_cost(graph: &Graph, plan: &Plan) -> Vec<StageCost> {
    step_cost_of(&Sizes::of(graph), plan)
}

/// [`step_cost`] of a graph that is known by its sizes.
pub fn step_cost_of(sizes: &Sizes, plan: &Plan) -> Vec<StageCost> {
    let mut stages = vec![
        dense_stage("predict", predictor_operations(sizes, plan)),
        dense_stage("dense", hidden_operations(sizes, plan)),
        inputs(sizes, plan),
        gathering_stage("gather", propagated_floats(sizes, plan), 1.0, stored_bytes(plan)),
    ];
    if plan.method == Method::Blnn {
        let bytes = attended_bytes(plan);
        stages.push(gathering_stage("attention", attended_floats(sizes, plan), 2.0, bytes));
    }
    stages
}

fn dense_stage(stage: &'static str, operations: f64) -> StageCost {
    StageCost { stage, operations, gathered_bytes: 0.0 }
}

fn gathering_stage(
    stage: &'static str,
    values: f64,
    operations_a_value: f64,
    bytes_a_value: f64,
) -> StageCost {
    let (operations, gathered_bytes) = (values * operations_a_value, values * bytes_a_value);
    StageCost { stage, operations, gathered_bytes }
}

/// Two layers, each a product forwards and two backwards, for every prediction.
fn predictor_operations(sizes: &Sizes, plan: &Plan) -> f64 {
    let predictions = if plan.predicts_once() { 1.0 } else { 2.0 };
    let product = 2.0 * (sizes.nodes * plan.embedding_width * plan.predictor_width) as f64;
    predictions * 6.0 * product
}

/// A product forwards for each network and view, two backwards for each view of the online one.
fn hidden_operations(sizes: &Sizes, plan: &Plan) -> f64 {
    8.0 * 2.0 * (sizes.nodes * plan.hidden_width * plan.embedding_width) as f64
}

fn inputs(sizes: &Sizes, plan: &Plan) -> StageCost {
    let width = plan.hidden_width as f64;
    let full = 2.0 * (sizes.nodes * sizes.features) as f64 * width;
    match sizes.products(plan.precision.arithmetic()) {
        Products::Sparse => {
            // Columns that both views keep are summed once for both.
            let kept = 1.0 - f64::from(plan.feature_drop[0]) * f64::from(plan.feature_drop[1]);
            let values = PASSES * sizes.values() as f64 * kept * width;
            gathering_stage("inputs", values, 1.0, stored_bytes(plan))
        }
        Products::Dense => dense_stage("inputs", 2.0 * PASSES * full),
        Products::Tiled => {
            // The whole matrix once for both views, and the columns that one alone keeps.
            dense_stage("inputs", PASSES * full * (1.0 + plan.columns_of_one_view()))
        }
    }
}

/// Kept edges and self-loops of both views, at the width of both layers.
fn propagated_floats(sizes: &Sizes, plan: &Plan) -> f64 {
    let listed = |drop: f32| sizes.entries as f64 * (1.0 - f64::from(drop)) + sizes.nodes as f64;
    let widths = (plan.hidden_width + plan.embedding_width) as f64;
    PASSES * widths * plan.edge_drop.into_iter().map(listed).sum::<f64>()
}

/// Scores and weighted sums over all neighbours, for each direction.
fn attended_floats(sizes: &Sizes, plan: &Plan) -> f64 {
    let directions = if plan.predicts_once() { 1.0 } else { 2.0 };
    directions * 2.0 * (sizes.entries * plan.embedding_width) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generated;
    use crate::plan::Objective;

    fn costs(nodes: usize, change: impl Fn(&mut Plan)) -> Vec<StageCost> {
        let mut plan = Plan::sample();
        change(&mut plan);
        step_cost(&generated(nodes, 1).unwrap(), &plan)
    }

    fn of<'a>(costs: &'a [StageCost], stage: &str) -> &'a StageCost {
        costs.iter().find(|c| c.stage == stage).unwrap()
    }

    #[test]
    fn dense_work_is_counted_by_shapes() {
        let found = costs(1000, |_| ());
        // 2 predictions × 6 products of 1000 × 12 × 28, two operations each.
        assert_eq!(of(&found, "predict").operations, 2.0 * 6.0 * 2.0 * 1000.0 * 12.0 * 28.0);
        assert_eq!(of(&found, "dense").operations, 8.0 * 2.0 * 1000.0 * 20.0 * 12.0);
        let published = costs(1000, |plan| plan.objective = Objective::PublishedCode);
        let half = of(&found, "predict").operations / 2.0;
        assert_eq!(of(&published, "predict").operations, half);
    }

    #[test]
    fn gathered_bytes_follow_the_edges_that_are_kept() {
        let graph = generated(1000, 1).unwrap();
        let all = costs(1000, |plan| plan.edge_drop = [0.0, 0.0]);
        let listed = (graph.entries() + 1000) as f64;
        assert_eq!(of(&all, "gather").gathered_bytes, 3.0 * 4.0 * 32.0 * 2.0 * listed);
        let some = costs(1000, |plan| plan.edge_drop = [0.5, 0.5]);
        assert!(of(&some, "gather").gathered_bytes < of(&all, "gather").gathered_bytes);
        let halved = costs(1000, |plan| {
            (plan.edge_drop, plan.precision) = ([0.0, 0.0], Precision::Bf16);
        });
        assert_eq!(2.0 * of(&halved, "gather").gathered_bytes, of(&all, "gather").gathered_bytes);
        assert!(
            costs(1000, |plan| plan.method = Method::Bgrl).iter().all(|c| c.stage != "attention")
        );
    }
}
