//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

pub mod atomic;
mod augment;
pub mod data;
mod error;
mod graph;
mod method;
mod nearest;
mod nn;
mod optim;
mod plan;
mod rng;
mod trainer;

pub use blnn_kernels::{Csr, Matrix, Pattern};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Splits};
pub use plan::{Method, Objective, Plan, Statistics};
pub use trainer::{Step, Trainer};
