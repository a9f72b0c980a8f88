//! [`Project`]: the product of hidden representations with a layer's weights.

use blnn_kernels::norm::add_to;
use blnn_kernels::product::{Store, product, product_all, transposed_product};
use blnn_kernels::{Panels, Partition, SHARDS, Threads};

use super::{Gradient, Op, ParameterId, Ports, Run, Var};

/// `U = D H W`, stored with row `i` multiplied by the view's `1/√d_i`, ready to be gathered.
/// Its gradient arrives as that of `H W`, without the factor.
///
/// Shapes: H n×h, W h×d, U n×d.
#[derive(Debug)]
pub(crate) struct Project {
    /// H
    input: Var,
    /// W
    weight: ParameterId,
    /// U
    output: Var,
    /// The view whose degrees scale the rows.
    view: usize,
    /// Whether a gradient is passed back.
    gradient: bool,
    shares: Vec<Panels>,
}

/// Rows whose inputs and gradients stay in the level-2 cache for two products.
const BLOCK_ROWS: usize = 126;

impl Project {
    /// The operation `output = D input weight` of a view.
    pub(crate) fn new(
        input: Var,
        weight: ParameterId,
        output: Var,
        view: usize,
        gradient: bool,
    ) -> Self {
        Self { input, weight, output, view, gradient, shares: Vec::new() }
    }
}

impl Op for Project {
    fn ports(&self) -> Ports {
        let (gradient, keeps) = if self.gradient {
            (Gradient::Backward, vec![self.input])
        } else {
            (Gradient::None, vec![])
        };
        let (reads, writes) = (vec![self.input], vec![self.output]);
        Ports { reads, writes, keeps, in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let (input, weight) = (run.memory.value(self.input), run.parameters.value(self.weight));
        let scale = run.views.view(self.view).scale();
        product_all(input, weight, Some(scale), &mut out, run.threads);
        run.memory.put_value(self.output, out);
        run.clock.mark("dense");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let mut transposed = run.memory.scratch(cols, rows);
        run.parameters.value(self.weight).transpose_into(&mut transposed);
        let mut input_grad = run.memory.take_grad(self.input);
        self.shares.resize_with(SHARDS, || Panels::zeros(rows, cols));
        let (input, grad) = (run.memory.value(self.input), run.memory.grad(self.output));
        let partition = Partition::even(grad.rows());
        let mut parts = input_grad.shards_mut(&partition).map(Some);
        let mut shares = self.shares.iter_mut();
        let mut shards: [_; SHARDS] =
            std::array::from_fn(|s| parts[s].take().zip(shares.next()).expect("SHARDS shards"));
        // Both products of a block run while its rows are in the cache.
        run.threads.for_each_owned(&mut shards, |_, (part, share)| {
            share.data_mut().fill(0.0);
            let range = part.range();
            for start in range.clone().step_by(BLOCK_ROWS) {
                let rows = start..(start + BLOCK_ROWS).min(range.end);
                let (h, g) = (input.rows_ref(rows.clone()), grad.rows_ref(rows.clone()));
                let mut block = part.part(rows.start - range.start..rows.end - range.start);
                product(&g, &transposed, &mut block, Store::Overwrite);
                transposed_product(&h, &g, share, Store::Add);
            }
        });
        let (shares, threads) = (&self.shares, run.threads);
        run.parameters.write_grad(self.weight, |out, fresh| {
            sum_shares(&|s| &shares[s], out, fresh, threads);
        });
        run.memory.put_grad(self.input, input_grad);
        run.memory.release(transposed);
        run.clock.mark("dense");
    }
}

/// Adds up the shards' shares of a gradient in shard order; with `fresh`, in place of what was
/// there.
pub(super) fn sum_shares<'a>(
    share: &(dyn Fn(usize) -> &'a Panels + Sync),
    out: &mut Panels,
    fresh: bool,
    threads: &Threads,
) {
    let pieces = Partition::even(out.rows());
    threads.for_each_cell(&pieces, [out], |cell, [out]| {
        if fresh {
            out.fill(0.0);
        }
        for shard in 0..SHARDS {
            add_to(share(shard).cell(&cell), out);
        }
    });
}
