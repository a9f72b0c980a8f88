//! [`Encoder`]: the two-layer graph convolutional network, as operations on a tape.

use super::{
    Convolve, HiddenLayer, InputProject, LayerParameters, Normalization, ParameterId, Parameters,
    Source, Tape, Var, glorot_uniform,
};
use blnn_kernels::mixed::Arithmetic;
use blnn_kernels::{Matrix, Panels};

/// Nodes and widths of an encoder's matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// n
    pub(crate) nodes: usize,
    /// F
    pub(crate) features: usize,
    /// Width of the first layer.
    pub(crate) hidden: usize,
    /// Width of the second layer: the embedding's.
    pub(crate) embedding: usize,
    /// How its products compute.
    pub(crate) arithmetic: Arithmetic,
}

/// The parameters of an encoder: convolution, batch norm, `PReLU`, twice.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    shape: Shape,
    conv: [ParameterId; 2],
    layers: [LayerParameters; 2],
}

/// The initial slope of every `PReLU`.
pub(crate) const INITIAL_SLOPE: f32 = 0.25;

impl Encoder {
    /// Adds freshly drawn parameters named `<name>.conv1.weight` and so on; `trained` ones get
    /// gradients. Parameter streams are counted from `first_stream`.
    pub(crate) fn new(
        name: &str,
        shape: Shape,
        seed: u64,
        first_stream: u32,
        trained: bool,
        parameters: &mut Parameters,
    ) -> Self {
        let mut add = |suffix: &str, value: Panels| {
            let name = format!("{name}.{suffix}");
            if trained {
                parameters.add_trained(name, value)
            } else {
                parameters.add_fixed(name, value)
            }
        };
        let filled = |cols, value| Panels::from_matrix(&Matrix::from_fn(1, cols, |_, _| value));
        let widths = [(shape.features, shape.hidden), (shape.hidden, shape.embedding)];
        let mut parts = [1, 2].map(|k| {
            let (inputs, outputs) = widths[k as usize - 1];
            let draw = glorot_uniform(inputs, outputs, seed, first_stream + k - 1);
            let conv = add(&format!("conv{k}.weight"), draw);
            let layer = LayerParameters {
                weight: add(&format!("norm{k}.weight"), filled(outputs, 1.0)),
                bias: add(&format!("norm{k}.bias"), filled(outputs, 0.0)),
                slope: add(&format!("act{k}.slope"), filled(1, INITIAL_SLOPE)),
            };
            Some((conv, layer))
        });
        let [first, second] = [0, 1].map(|k| parts[k].take().expect("both layers were made"));
        Self { shape, conv: [first.0, second.0], layers: [first.1, second.1] }
    }

    /// An encoder of this shape whose parameters are single numbers: for a tape that is gone
    /// through but never run.
    pub(crate) fn outline(shape: Shape) -> Self {
        let tiny = Shape { features: 1, hidden: 1, embedding: 1, ..shape };
        Self { shape, ..Self::new("outline", tiny, 0, 0, false, &mut Parameters::default()) }
    }

    /// All parameters, in a fixed order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = ParameterId> + use<> {
        let each = |k: usize| {
            let LayerParameters { weight, bias, slope } = self.layers[k];
            [self.conv[k], weight, bias, slope]
        };
        [each(0), each(1)].into_iter().flatten()
    }

    /// Appends the encoder's passes over both views. `gradient` says which views pass a gradient
    /// back, `normalization` what normalises each layer. Returns the representations.
    pub(crate) fn encode(
        &self,
        tape: &mut Tape,
        gradient: [bool; 2],
        normalization: impl Fn(usize) -> Normalization,
    ) -> [Var; 2] {
        let Shape { nodes, hidden, arithmetic, .. } = self.shape;
        let narrow = arithmetic.is_bf16();
        let projected = gradient.map(|g| tape.stored(nodes, hidden, g, [narrow; 2]));
        tape.push(InputProject::new(self.conv[0], projected, gradient, arithmetic));
        [0, 1].map(|view| {
            self.encode_view(tape, view, projected[view], gradient[view], &normalization)
        })
    }

    /// Appends what follows the projection of the attributes for one view.
    fn encode_view(
        &self,
        tape: &mut Tape,
        view: usize,
        projected: Var,
        gradient: bool,
        normalization: &impl Fn(usize) -> Normalization,
    ) -> Var {
        let Shape { nodes, hidden, embedding, arithmetic, .. } = self.shape;
        // What is gathered is stored narrow, and so is what is widest; the gradient of u2 goes into
        // dense products only.
        let narrow = arithmetic.is_bf16();
        let c1 = tape.stored(nodes, hidden, gradient, [narrow; 2]);
        let u2 = tape.stored(nodes, embedding, gradient, [narrow, false]);
        let [c2, h2] = [(); 2].map(|()| tape.matrix(nodes, embedding, gradient));
        tape.push(HiddenLayer::new(
            [projected, c1, u2],
            self.conv[1],
            self.layers[0],
            view,
            normalization(0),
            gradient,
            arithmetic,
        ));
        let (vars, source) = ([u2, c2, h2], Source { from_inputs: false, narrow });
        tape.push(Convolve::new(vars, self.layers[1], view, normalization(1), gradient, source));
        h2
    }
}
