//! [`Parameters`]: the named tensors of a model, with room for their gradients.

use blnn_kernels::Panels;

/// A parameter's place in [`Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParameterId(usize);

#[derive(Debug)]
struct Parameter {
    name: String,
    value: Panels,
    /// Empty for a parameter that is not trained.
    grad: Panels,
    /// No gradient has been written since the step began.
    fresh: bool,
}

/// The parameters of a model. Vectors are matrices of one row.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    all: Vec<Parameter>,
}

impl Parameters {
    /// Adds a parameter that gets gradients.
    pub(crate) fn add_trained(&mut self, name: impl Into<String>, value: Panels) -> ParameterId {
        let grad = Panels::zeros(value.rows(), value.cols());
        self.add(name.into(), value, grad)
    }

    /// Adds a parameter that gets none.
    pub(crate) fn add_fixed(&mut self, name: impl Into<String>, value: Panels) -> ParameterId {
        self.add(name.into(), value, Panels::default())
    }

    fn add(&mut self, name: String, value: Panels, grad: Panels) -> ParameterId {
        self.all.push(Parameter { name, value, grad, fresh: true });
        ParameterId(self.all.len() - 1)
    }

    /// All parameters in the order they were added.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ParameterId> + use<> {
        (0..self.all.len()).map(ParameterId)
    }

    /// The parameter's name, as in a checkpoint.
    pub(crate) fn name(&self, id: ParameterId) -> &str {
        &self.all[id.0].name
    }

    /// The parameter's value.
    pub(crate) fn value(&self, id: ParameterId) -> &Panels {
        &self.all[id.0].value
    }

    /// The parameter's value, for writing.
    pub(crate) fn value_mut(&mut self, id: ParameterId) -> &mut Panels {
        &mut self.all[id.0].value
    }

    /// The parameter's gradient.
    #[cfg(test)]
    pub(crate) fn grad(&self, id: ParameterId) -> &Panels {
        &self.all[id.0].grad
    }

    /// Takes value and gradient out, to use them while others are borrowed; put them back with
    /// [`Parameters::put`].
    pub(crate) fn take(&mut self, id: ParameterId) -> (Panels, Panels) {
        let parameter = &mut self.all[id.0];
        (std::mem::take(&mut parameter.value), std::mem::take(&mut parameter.grad))
    }

    /// Puts back what [`Parameters::take`] took out.
    pub(crate) fn put(&mut self, id: ParameterId, (value, grad): (Panels, Panels)) {
        self.all[id.0].value = value;
        self.all[id.0].grad = grad;
    }

    /// Forgets all gradients.
    pub(crate) fn begin_step(&mut self) {
        self.all.iter_mut().for_each(|p| p.fresh = true);
    }

    /// Hands the gradient to `write`, with whether this is the first share of the step (to be
    /// stored) or a further one (to be added).
    pub(crate) fn write_grad(&mut self, id: ParameterId, write: impl FnOnce(&mut Panels, bool)) {
        let parameter = &mut self.all[id.0];
        write(&mut parameter.grad, std::mem::replace(&mut parameter.fresh, false));
    }

    /// Adds a share to the gradient of a vector.
    pub(crate) fn add_grad(&mut self, id: ParameterId, share: impl Iterator<Item = f64>) {
        self.write_grad(id, |grad, fresh| {
            let cols = grad.cols();
            for (slot, value) in grad.data_mut()[..cols].iter_mut().zip(share) {
                *slot = if fresh { value as f32 } else { *slot + value as f32 };
            }
        });
    }
}
