//! Maps of many dimensions onto two, for pictures: [`pca()`] keeps the directions of largest spread
//! and takes a moment; [`tsne()`] keeps neighbours together and takes seconds to minutes.
//!
//! Both are deterministic: no random start, and the same bits at any number of threads.
//!
//! ```
//! use blnn::{Matrix, project};
//! use blnn_kernels::Threads;
//!
//! let points = Matrix::from_fn(40, 8, |i, j| if i % 4 == j { 1.0 } else { 0.01 * i as f32 });
//! let threads = Threads::new(1);
//! assert_eq!(project::pca(&points, &threads)?.shape(), (40, 2));
//! let options = project::TsneOptions { iterations: 300, ..Default::default() };
//! let map = project::tsne(&points, &options, &threads, &mut |_, _| ())?;
//! assert_eq!(map.shape(), (40, 2));
//! # Ok::<(), blnn::Error>(())
//! ```

mod affinity;
mod pca;
mod quadtree;
mod tsne;

pub use pca::pca;
pub use tsne::{TsneOptions, tsne};
