//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

pub mod atomic;
mod augment;
mod checkpoint;
mod collapse;
mod config;
pub mod data;
mod error;
pub mod eval;
mod graph;
mod method;
mod nearest;
mod nn;
mod optim;
mod order;
mod plan;
mod preset;
mod rng;
mod run;
mod train;
mod trainer;

pub use blnn_kernels::{Csr, Matrix, Pattern};
pub use checkpoint::{Checkpoint, Header};
pub use collapse::Health;
pub use config::{Config, Setting};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Splits};
pub use plan::{Kernels, Method, Objective, Plan, Precision, Statistics};
pub use run::{Record, RunFolder};
pub use train::{Job, Observer, Outcome, train};
pub use trainer::{Step, TensorSource, Trainer};
