//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

mod error;
pub mod eval;
mod graph;
mod plan;

pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Splits};
pub use plan::{Method, Objective, Plan, Statistics};
