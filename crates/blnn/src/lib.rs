//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

mod augment;
mod error;
mod graph;
mod method;
mod nn;
mod optim;
mod plan;
mod rng;
mod trainer;

pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Splits};
pub use plan::{Method, Objective, Plan, Statistics};
pub use trainer::{Step, Trainer};
