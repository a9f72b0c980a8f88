//! Dense and sparse kernels on `f32` and bfloat16 with no word of graphs or learning in them.
//!
//! This is the only crate of the project with `unsafe` code. Every public function is safe,
//! checks its shapes once at entry, and gives the same bits at any thread count.

#![expect(
    clippy::inline_always,
    reason = "a kernel must land in the wrapper that has the vector instructions"
)]

pub mod adamw;
pub mod bf16;
mod csr;
mod exp;
pub mod gather;
pub mod gemm;
pub mod masked;
mod matrix;
pub mod mixed;
pub mod norm;
mod pages;
mod panels;
pub mod par;
pub mod philox;
mod pick;
mod pool;
pub mod probe;
pub mod product;
pub mod rows;
pub mod rows16;
mod simd;
pub mod tall;
mod tiles;
mod wide;

pub use csr::{Csr, CsrError, Pattern};
pub use matrix::Matrix;
pub use panels::{PANEL, Panels, RowsMut, RowsRef};
pub use par::{Cell, Partition, SHARDS, Threads};
pub use simd::{Isa, isa, wish};
