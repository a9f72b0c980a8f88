//! [`Inputs`]: the node attributes in the form that products with them need.

use blnn_kernels::masked::{KeptBy, MaskedInputs};
use blnn_kernels::mixed::{Arithmetic, TiledInputs};
use blnn_kernels::{Panels, Threads};

use crate::augment::Views;
use crate::graph::Features;
use crate::sizes::{Attributes, Products};

/// The node attributes in the form the products need.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Stored as lists of columns, ordered anew for each pair of masks.
    Sparse(Box<MaskedInputs>),
    /// Stored in full; the masks go to rows of the weights.
    Dense {
        /// The attributes.
        x: Panels,
        /// One factor a node: all ones.
        ones: Vec<f32>,
    },
    /// Stored in full, as tiles; columns that one view alone keeps are taken out.
    Tiled(Box<TiledInputs>),
}

impl Inputs {
    /// Prepares the attributes of a graph.
    pub(crate) fn new(features: &Features, arithmetic: Arithmetic, threads: &Threads) -> Self {
        let (nodes, columns) = (features.rows(), features.cols());
        let products = Attributes::of(features).products(nodes, columns, arithmetic);
        match features {
            _ if products == Products::Tiled => Self::Tiled(Box::new(tiled(features, arithmetic))),
            Features::Sparse(x) => Self::Sparse(Box::new(MaskedInputs::new(x, threads))),
            Features::Dense(x) => Self::Dense { x: Panels::from_matrix(x), ones: vec![1.0; nodes] },
        }
    }

    /// Takes over the column masks of both views.
    pub(crate) fn set_masks(&mut self, views: &Views, threads: &Threads) {
        let [first, second] = [0, 1].map(|v| views.view(v).keep_features().iter());
        let classes = first.zip(second).map(|(&a, &b)| KeptBy::new(a, b));
        match self {
            Self::Sparse(inputs) => inputs.set_masks(classes, threads),
            Self::Tiled(inputs) => inputs.set_masks(classes, threads),
            Self::Dense { .. } => {}
        }
    }

    /// The factor that a gradient's rows are multiplied by before they come here: the rows of
    /// attributes whose values are all alike are stored as a factor and a pattern.
    pub(crate) fn row_scale(&self) -> &[f32] {
        match self {
            Self::Sparse(inputs) => inputs.row_scale(),
            Self::Dense { ones, .. } => ones,
            Self::Tiled(inputs) => inputs.row_scale(),
        }
    }
}

fn tiled(features: &Features, arithmetic: Arithmetic) -> TiledInputs {
    let (nodes, columns) = (features.rows(), features.cols());
    let ones = || vec![1.0; nodes];
    match features {
        Features::Dense(x) => {
            TiledInputs::new(arithmetic, ones(), columns, |i, row| row.copy_from_slice(x.row(i)))
        }
        Features::Sparse(x) => {
            let factors = x.row_factors();
            let is_pattern = factors.is_some();
            let row_scale = factors.unwrap_or_else(ones);
            TiledInputs::new(arithmetic, row_scale, columns, |i, row| {
                let (columns, values) = x.row(i);
                for (&column, &value) in columns.iter().zip(values) {
                    row[column as usize] = if is_pattern { 1.0 } else { value };
                }
            })
        }
    }
}
