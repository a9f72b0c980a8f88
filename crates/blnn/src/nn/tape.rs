//! [`Tape`]: a list of operations planned once and run at every step.
//!
//! An [`Op`] is one fused piece of mathematics with its forward pass and its vector-Jacobian
//! product. It names the matrices it reads, writes and keeps for its backward pass; from that the
//! tape knows when each buffer is first needed and last used. Buffers come from a pool that is
//! filled during the first run; after it, nothing is allocated.
//!
//! A matrix feeds at most one operation that passes a gradient back, so gradients are stored,
//! never added up. Weights are the exception, and they live in [`Parameters`].

use blnn_kernels::bf16::Panels16;
use blnn_kernels::{Panels, Threads};

use super::{BufferShape, Clock, Inputs, Parameters, RunningStatistics, Stage};
use crate::augment::Views;

/// A matrix on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Var(usize);

impl Var {
    /// Its place among the tape's matrices.
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// How an operation takes part in the backward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gradient {
    /// Not at all: its results are constants.
    None,
    /// Through [`Op::backward`].
    Backward,
    /// Its forward pass leaves the gradients of what it reads: the end of the tape, a loss.
    Eager,
}

/// What an operation touches.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Matrices whose values the forward pass reads.
    pub(crate) reads: Vec<Var>,
    /// Matrices whose values the forward pass writes.
    pub(crate) writes: Vec<Var>,
    /// Matrices whose values the backward pass reads.
    pub(crate) keeps: Vec<Var>,
    /// The operation turns the buffer of what it reads into what it writes: none is provided.
    pub(crate) in_place: bool,
    /// How it takes part in the backward pass.
    pub(crate) gradient: Gradient,
}

/// One fused operation.
pub(crate) trait Op: Send {
    /// What the operation touches; asked once.
    fn ports(&self) -> Ports;

    /// Computes the values of what it writes.
    fn forward(&mut self, run: &mut Run<'_>);

    /// Turns the gradients of what it writes into those of what it reads and of its parameters.
    fn backward(&mut self, _run: &mut Run<'_>) {}

    /// The buffers that the forward and the backward pass borrow from the pool for themselves, in
    /// the order they do: what [`super::Rehearsal`] cannot know from the ports.
    fn borrows(&self, _stage: &Stage<'_>) -> [Vec<BufferShape>; 2] {
        [Vec::new(), Vec::new()]
    }
}

/// Everything an operation works with.
pub(crate) struct Run<'a> {
    /// Values and gradients of the tape's matrices.
    pub(crate) memory: &'a mut Memory,
    /// The model's parameters.
    pub(crate) parameters: &'a mut Parameters,
    /// Running statistics of the normalised layers of the trained encoder.
    pub(crate) running: &'a mut [RunningStatistics],
    /// The two views of the graph.
    pub(crate) views: &'a Views,
    /// The node attributes, masked for both views.
    pub(crate) inputs: &'a Inputs,
    /// The worker threads.
    pub(crate) threads: &'a Threads,
    /// The stopwatch.
    pub(crate) clock: &'a mut Clock,
}

/// Values and gradients of a tape's matrices, and the pool their buffers come from.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    values: Vec<Panels>,
    grads: Vec<Panels>,
    pool: Vec<Panels>,
}

impl Memory {
    /// The value of a matrix.
    pub(crate) fn value(&self, var: Var) -> &Panels {
        &self.values[var.0]
    }

    /// The gradient of a matrix.
    pub(crate) fn grad(&self, var: Var) -> &Panels {
        &self.grads[var.0]
    }

    /// Takes a value out to write it; give it back with [`Memory::put_value`].
    pub(crate) fn take_value(&mut self, var: Var) -> Panels {
        std::mem::take(&mut self.values[var.0])
    }

    /// Sets a value.
    pub(crate) fn put_value(&mut self, var: Var, value: Panels) {
        self.values[var.0] = value;
    }

    /// Takes a gradient out; give it back with [`Memory::put_grad`].
    pub(crate) fn take_grad(&mut self, var: Var) -> Panels {
        std::mem::take(&mut self.grads[var.0])
    }

    /// Sets a gradient.
    pub(crate) fn put_grad(&mut self, var: Var, grad: Panels) {
        self.grads[var.0] = grad;
    }

    /// A buffer of the given shape with unspecified contents; give it back with
    /// [`Memory::release`]. The smallest one in the pool that is large enough is taken.
    pub(crate) fn scratch(&mut self, rows: usize, cols: usize) -> Panels {
        let size = Panels::capacity;
        let need = rows * cols.next_multiple_of(blnn_kernels::PANEL);
        let fits = (0..self.pool.len()).filter(|&i| size(&self.pool[i]) >= need);
        let mut buffer = match fits.min_by_key(|&i| size(&self.pool[i])) {
            // Far larger buffers are left for what needs them.
            Some(i) if size(&self.pool[i]) <= 2 * need => self.pool.swap_remove(i),
            _ => Panels::zeros(rows, cols),
        };
        buffer.reshape(rows, cols);
        buffer
    }

    /// Bytes of all buffers.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        let all = self.values.iter().chain(&self.grads).chain(&self.pool);
        all.map(|buffer| 4 * buffer.capacity() as u64).sum()
    }

    /// Gives a buffer back to the pool.
    pub(crate) fn release(&mut self, buffer: Panels) {
        if buffer.capacity() > 0 {
            self.pool.push(buffer);
        }
    }
}

/// Shapes of a matrix's buffers, and whether it has a gradient.
pub(super) struct Matrix {
    pub(super) value: BufferShape,
    pub(super) grad: BufferShape,
    pub(super) wants_grad: bool,
}

/// What is no longer needed after an operation's forward and backward pass.
#[derive(Default)]
pub(super) struct Dead {
    pub(super) after_forward: Vec<Var>,
    pub(super) after_backward: Vec<Var>,
}

/// A list of operations. See the module's documentation.
#[derive(Default)]
pub(crate) struct Tape {
    matrices: Vec<Matrix>,
    ops: Vec<(Box<dyn Op>, Ports)>,
    outputs: Vec<Var>,
    dead: Vec<Dead>,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tape({} operations)", self.ops.len())
    }
}

impl Tape {
    /// A new matrix, to be written by one operation.
    pub(crate) fn matrix(&mut self, rows: usize, cols: usize, wants_grad: bool) -> Var {
        self.stored(rows, cols, wants_grad, [false; 2])
    }

    /// A new matrix whose value and gradient are stored as bfloat16 where `narrow` says so: their
    /// buffers then are those of a [`Panels16`].
    pub(crate) fn stored(
        &mut self,
        rows: usize,
        cols: usize,
        wants_grad: bool,
        narrow: [bool; 2],
    ) -> Var {
        let shape = |narrow| if narrow { Panels16::buffer_shape(rows, cols) } else { (rows, cols) };
        let [value, grad] = narrow.map(shape);
        self.matrices.push(Matrix { value, grad, wants_grad });
        Var(self.matrices.len() - 1)
    }

    /// Appends an operation.
    pub(crate) fn push(&mut self, op: impl Op + 'static) {
        let ports = op.ports();
        self.ops.push((Box::new(op), ports));
        self.plan();
    }

    /// Keeps the value of `var` after a forward pass, for the caller to read.
    pub(crate) fn output(&mut self, var: Var) {
        self.outputs.push(var);
        self.plan();
    }

    /// Finds out after which operation each value is last used.
    fn plan(&mut self) {
        self.dead = self.ops.iter().map(|_| Dead::default()).collect();
        for var in (0..self.matrices.len()).map(Var) {
            let last = |of: fn(&Ports) -> &Vec<Var>| {
                self.ops.iter().rposition(|(_, ports)| of(ports).contains(&var))
            };
            // Backward passes run from the last operation to the first: the first that keeps a
            // value is the last to use it.
            let kept = self.ops.iter().position(|(_, ports)| ports.keeps.contains(&var));
            if self.outputs.contains(&var) {
            } else if let Some(op) = kept {
                self.dead[op].after_backward.push(var);
            } else if let Some(op) = last(|p| &p.reads).or(last(|p| &p.writes)) {
                self.dead[op].after_forward.push(var);
            }
        }
    }

    fn provide(&self, var: Var, memory: &mut Memory, grad: bool) {
        let Matrix { value, grad: of_grad, .. } = self.matrices[var.0];
        let (rows, cols) = if grad { of_grad } else { value };
        let buffer = memory.scratch(rows, cols);
        let slot = if grad { &mut memory.grads[var.0] } else { &mut memory.values[var.0] };
        let old = std::mem::replace(slot, buffer);
        memory.release(old);
    }

    fn provide_grads(&self, ports: &Ports, memory: &mut Memory) {
        for &var in ports.reads.iter().filter(|v| self.matrices[v.0].wants_grad) {
            self.provide(var, memory, true);
        }
    }

    /// Runs all operations forward.
    pub(crate) fn forward(&mut self, run: &mut Run<'_>) {
        run.memory.values.resize_with(self.matrices.len(), Panels::default);
        run.memory.grads.resize_with(self.matrices.len(), Panels::default);
        let mut ops = std::mem::take(&mut self.ops);
        for ((op, ports), dead) in ops.iter_mut().zip(&self.dead) {
            if !ports.in_place {
                ports.writes.iter().for_each(|&var| self.provide(var, run.memory, false));
            }
            if ports.gradient == Gradient::Eager {
                self.provide_grads(ports, run.memory);
            }
            op.forward(run);
            for &var in &dead.after_forward {
                let value = run.memory.take_value(var);
                run.memory.release(value);
            }
        }
        self.ops = ops;
    }

    /// Runs the backward passes, from the last operation to the first.
    pub(crate) fn backward(&mut self, run: &mut Run<'_>) {
        let mut ops = std::mem::take(&mut self.ops);
        for ((op, ports), dead) in ops.iter_mut().zip(&self.dead).rev() {
            if ports.gradient == Gradient::Backward {
                self.provide_grads(ports, run.memory);
                op.backward(run);
                for &var in &ports.writes {
                    let grad = run.memory.take_grad(var);
                    run.memory.release(grad);
                }
            }
            for &var in &dead.after_backward {
                let value = run.memory.take_value(var);
                run.memory.release(value);
            }
        }
        self.ops = ops;
    }

    /// All matrices, in the order of their numbers.
    pub(super) fn matrices(&self) -> &[Matrix] {
        &self.matrices
    }

    /// All operations in order, with what they touch and what is no longer needed after each.
    pub(super) fn steps(&self) -> impl DoubleEndedIterator<Item = (&dyn Op, &Ports, &Dead)> {
        let ops = self.ops.iter().zip(&self.dead);
        ops.map(|((op, ports), dead)| (op.as_ref(), ports, dead))
    }

    /// Gives all values that were kept for the caller back to the pool.
    pub(crate) fn finish(&self, memory: &mut Memory) {
        for &var in &self.outputs {
            let value = memory.take_value(var);
            memory.release(value);
        }
    }
}
