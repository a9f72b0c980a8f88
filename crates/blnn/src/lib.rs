//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

pub mod atomic;
pub mod data;
mod error;
mod graph;
mod nearest;
mod plan;

pub use blnn_kernels::{Csr, Matrix, Pattern};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Splits};
pub use plan::{Method, Objective, Plan, Statistics};
