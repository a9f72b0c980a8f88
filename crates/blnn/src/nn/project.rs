//! [`Project`]: the product of hidden representations with a layer's weights.

use blnn_kernels::product::{Store, product_all, transposed_product_all};

use super::{Gradient, Op, ParameterId, Ports, Run, Var};

/// `U = D H W`, stored with row `i` multiplied by the view's `1/√d_i`, ready to be gathered.
/// Its gradient arrives as that of `H W`, without the factor.
///
/// Shapes: H n×h, W h×d, U n×d.
#[derive(Debug)]
pub(crate) struct Project {
    /// H
    pub(crate) input: Var,
    /// W
    pub(crate) weight: ParameterId,
    /// U
    pub(crate) output: Var,
    /// The view whose degrees scale the rows.
    pub(crate) view: usize,
    /// Whether a gradient is passed back.
    pub(crate) gradient: bool,
}

impl Op for Project {
    fn ports(&self) -> Ports {
        let (gradient, keeps) = match self.gradient {
            true => (Gradient::Backward, vec![self.input]),
            false => (Gradient::None, vec![]),
        };
        let (reads, writes) = (vec![self.input], vec![self.output]);
        Ports {
            reads,
            writes,
            keeps,
            in_place: false,
            gradient,
        }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let (input, weight) = (
            run.memory.value(self.input),
            run.parameters.value(self.weight),
        );
        let scale = run.views.view(self.view).scale();
        product_all(input, weight, Some(scale), &mut out, run.threads);
        run.memory.put_value(self.output, out);
        run.clock.mark("dense");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let mut transposed = run.memory.scratch(cols, rows);
        run.parameters
            .value(self.weight)
            .transpose_into(&mut transposed);
        let mut input_grad = run.memory.take_grad(self.input);
        let grad = run.memory.grad(self.output);
        product_all(grad, &transposed, None, &mut input_grad, run.threads);
        let (input, threads) = (run.memory.value(self.input), run.threads);
        run.parameters.write_grad(self.weight, |out, fresh| {
            let store = if fresh { Store::Overwrite } else { Store::Add };
            transposed_product_all(input, grad, out, store, threads);
        });
        run.memory.put_grad(self.input, input_grad);
        run.memory.release(transposed);
        run.clock.mark("dense");
    }
}
