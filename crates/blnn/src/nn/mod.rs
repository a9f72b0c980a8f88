//! The compute core: a small tape of fused operations over panel matrices, the layers written
//! for it, and the parameters they own.

mod batch_norm;
mod clock;
mod convolve;
mod encoder;
mod hidden;
mod init;
mod input_project;
mod inputs;
mod normalize;
mod parameters;
mod predict;
mod rehearsal;
mod tape;

pub(crate) use batch_norm::{LayerParameters, Normalization, RunningStatistics, Source};
pub(crate) use clock::Clock;
pub(crate) use convolve::Convolve;
pub(crate) use encoder::{Encoder, INITIAL_SLOPE, Shape};
pub(crate) use hidden::HiddenLayer;
pub(crate) use init::{glorot_uniform, linear_default};
pub(crate) use input_project::InputProject;
pub(crate) use inputs::Inputs;
pub(crate) use normalize::NormalizeRows;
pub(crate) use parameters::{ParameterId, Parameters};
pub(crate) use predict::{Direction, Loss, Predict, PredictorParameters};
pub(crate) use rehearsal::{BufferShape, Rehearsal, Stage};
pub(crate) use tape::{Gradient, Memory, Op, Ports, Run, Tape, Var};

#[cfg(test)]
mod gradient_tests;
