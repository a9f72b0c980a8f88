//! Dense and sparse `f32` kernels with no word of graphs or learning in them.
//!
//! This is the only crate of the project with `unsafe` code. Every public function is safe,
//! checks its shapes once at entry, and gives the same bits at any thread count.

mod csr;
pub mod gemm;
mod matrix;
pub mod par;
pub mod tall;

pub use csr::{Csr, CsrError, Pattern};
pub use matrix::Matrix;
pub use par::{Partition, Threads};
