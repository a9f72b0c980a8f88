//! Node embeddings of attributed graphs, learned without labels.

#![forbid(unsafe_code)]

pub mod atomic;
mod augment;
mod checkpoint;
mod collapse;
mod config;
mod cost;
pub mod data;
mod error;
pub mod estimate;
pub mod eval;
pub mod export;
mod graph;
mod guarded;
mod method;
mod model;
mod natural;
mod nearest;
mod nn;
mod optim;
mod order;
mod plan;
mod preset;
pub mod project;
pub mod published;
pub mod report;
pub mod reproduce;
mod rng;
mod run;
mod run_report;
pub mod search;
mod sizes;
mod stored_run;
pub mod tensorboard;
pub mod text;
mod train;
mod trainer;
pub mod vectors;

pub use blnn_kernels::{Csr, Matrix, Pattern};
pub use checkpoint::{Checkpoint, Header};
pub use collapse::Health;
pub use config::{Config, Setting};
pub use cost::{StageCost, step_cost, step_cost_of};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Features, Graph, Labelled, Splits};
pub use guarded::panic_becomes_error;
pub use model::Model;
pub use nearest::slip;
pub use plan::{Kernels, Method, Objective, Plan, Precision, Statistics};
pub use run::{Record, RunFolder};
pub use run_report::{MapMethod, ReportOptions, report_run};
pub use sizes::{Attributes, Sizes};
pub use stored_run::{StoredRun, Summary};
pub use train::{Job, Observer, Outcome, check_graph, train};
pub use trainer::{Step, TensorSource, Trainer};
