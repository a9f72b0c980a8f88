//! [`Rehearsal`]: how much memory a tape takes, found by going through its steps without running
//! them.
//!
//! When a buffer is needed and when it comes back to the pool depends on shapes alone. Walking
//! through that once with numbers in place of matrices gives what a real run will have allocated,
//! to the byte, for a graph of any size.

use blnn_kernels::PANEL;

use crate::sizes::Products;

use super::tape::{Gradient, Matrix, Ports, Tape, Var};

/// Rows and columns of a buffer.
pub(crate) type BufferShape = (usize, usize);

/// What operations need to know to say which buffers they borrow.
pub(crate) struct Stage<'a> {
    matrices: &'a [Matrix],
    /// n
    pub(crate) nodes: usize,
    /// F
    pub(crate) features: usize,
    /// How the attributes are multiplied.
    pub(crate) products: Products,
}

impl Stage<'_> {
    /// The shape of a matrix's buffer.
    pub(crate) fn value(&self, var: Var) -> BufferShape {
        self.matrices[var.index()].value
    }

    /// The shape of the buffer of a matrix's gradient.
    pub(crate) fn grad(&self, var: Var) -> BufferShape {
        self.matrices[var.index()].grad
    }
}

/// Sizes in floats of the buffers that a [`super::Memory`] would hold.
#[derive(Debug, Default)]
pub(crate) struct Rehearsal {
    values: Vec<usize>,
    grads: Vec<usize>,
    pool: Vec<usize>,
    allocated: usize,
}

impl Rehearsal {
    /// Bytes of all buffers that were allocated.
    pub(crate) fn bytes(&self) -> u64 {
        4 * self.allocated as u64
    }

    /// A forward pass, and with `backward` the pass back.
    pub(crate) fn run(
        &mut self,
        tape: &Tape,
        (nodes, features): (usize, usize),
        products: Products,
        backward: bool,
    ) {
        let stage = Stage { matrices: tape.matrices(), nodes, features, products };
        self.values.resize(stage.matrices.len(), 0);
        self.grads.resize(stage.matrices.len(), 0);
        for (op, ports, dead) in tape.steps() {
            self.forward(&stage, ports);
            self.borrow(&op.borrows(&stage)[0]);
            dead.after_forward.iter().for_each(|&var| self.release_value(var));
        }
        if backward {
            for (op, ports, dead) in tape.steps().rev() {
                if ports.gradient == Gradient::Backward {
                    self.provide_grads(&stage, ports);
                    self.borrow(&op.borrows(&stage)[1]);
                    for &var in &ports.writes {
                        let size = std::mem::take(&mut self.grads[var.index()]);
                        self.release(size);
                    }
                }
                dead.after_backward.iter().for_each(|&var| self.release_value(var));
            }
        }
    }

    fn forward(&mut self, stage: &Stage<'_>, ports: &Ports) {
        if ports.in_place {
            // The buffer of what is read becomes that of what is written.
            let size = std::mem::take(&mut self.values[ports.reads[0].index()]);
            self.values[ports.writes[0].index()] = size;
        } else {
            for &var in &ports.writes {
                let size = self.scratch(stage.value(var));
                let old = std::mem::replace(&mut self.values[var.index()], size);
                self.release(old);
            }
        }
        if ports.gradient == Gradient::Eager {
            self.provide_grads(stage, ports);
        }
    }

    fn provide_grads(&mut self, stage: &Stage<'_>, ports: &Ports) {
        for &var in ports.reads.iter().filter(|v| stage.matrices[v.index()].wants_grad) {
            let size = self.scratch(stage.grad(var));
            let old = std::mem::replace(&mut self.grads[var.index()], size);
            self.release(old);
        }
    }

    fn borrow(&mut self, shapes: &[BufferShape]) {
        let taken: Vec<usize> = shapes.iter().map(|&shape| self.scratch(shape)).collect();
        for size in taken {
            self.release(size);
        }
    }

    /// As [`super::Memory::scratch`] chooses.
    fn scratch(&mut self, (rows, cols): BufferShape) -> usize {
        let need = rows * cols.next_multiple_of(PANEL);
        let fits = (0..self.pool.len()).filter(|&i| self.pool[i] >= need);
        match fits.min_by_key(|&i| self.pool[i]) {
            Some(i) if self.pool[i] <= 2 * need => self.pool.swap_remove(i),
            _ => {
                self.allocated += need;
                need
            }
        }
    }

    fn release_value(&mut self, var: Var) {
        let size = std::mem::take(&mut self.values[var.index()]);
        self.release(size);
    }

    fn release(&mut self, size: usize) {
        if size > 0 {
            self.pool.push(size);
        }
    }
}
