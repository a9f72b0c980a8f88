//! Stand-in for the engine, to be replaced by it: moves one weight matrix by keyed noise.

use crate::error::Result;
use crate::graph::{Features, Graph};
use crate::plan::Plan;
use blnn_kernels::{Matrix, Threads};

/// What one training step reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Number of steps done.
    pub epoch: usize,
    /// Sum of both terms.
    pub loss: f64,
    /// First term.
    pub node_loss: f64,
    /// Second term.
    pub neighbour_loss: f64,
    /// Learning rate of this step.
    pub learning_rate: f64,
    /// Decay of this step.
    pub ema_decay: f64,
}

/// The engine.
#[derive(Debug)]
pub struct Trainer<'g> {
    graph: &'g Graph,
    plan: Plan,
    epoch: usize,
    weight: Matrix,
}

fn noise(seed: u64, epoch: usize, item: usize) -> f32 {
    let mut x = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((epoch as u64) << 32 | item as u64);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x >> 40) as f32) / 8_388_608.0 - 1.0
}

#[expect(missing_docs, reason = "stand-in")]
#[expect(clippy::missing_errors_doc, reason = "stand-in")]
impl<'g> Trainer<'g> {
    pub fn new(graph: &'g Graph, plan: &Plan, _: &Threads) -> Result<Self> {
        let shape = (graph.features().cols(), plan.embedding_width);
        let weight = Matrix::from_fn(shape.0, shape.1, |i, j| {
            noise(plan.seed, 0, i * shape.1 + j)
        });
        Ok(Self {
            graph,
            plan: plan.clone(),
            epoch: 0,
            weight,
        })
    }
    pub fn epoch(&self) -> usize {
        self.epoch
    }
    pub fn step(&mut self) -> Step {
        let (seed, rate) = (self.plan.seed, self.plan.learning_rate as f32);
        self.epoch += 1;
        let mut sum = 0.0;
        for (i, w) in self.weight.data_mut().iter_mut().enumerate() {
            *w += rate * (noise(seed, self.epoch, i) - *w);
            sum += f64::from(*w * *w);
        }
        let node_loss = sum / self.weight.data().len() as f64;
        Step {
            epoch: self.epoch,
            loss: node_loss * 1.5,
            node_loss,
            neighbour_loss: node_loss * 0.5,
            learning_rate: self.plan.learning_rate,
            ema_decay: self.plan.ema_start,
        }
    }
    pub fn embed(&mut self) -> Matrix {
        let mut out = Matrix::zeros(self.graph.nodes(), self.weight.cols());
        for i in 0..out.rows() {
            let mut add = |j: usize, v: f32| {
                let row = out.row_mut(i).iter_mut();
                row.zip(self.weight.row(j)).for_each(|(o, w)| *o += v * w);
            };
            match self.graph.features() {
                Features::Dense(x) => x.row(i).iter().enumerate().for_each(|(j, v)| add(j, *v)),
                Features::Sparse(x) => {
                    let range = x.pattern().offsets()[i]..x.pattern().offsets()[i + 1];
                    x.pattern()
                        .row(i)
                        .iter()
                        .zip(&x.values()[range])
                        .for_each(|(j, v)| add(*j as usize, *v));
                }
            }
        }
        out
    }
    pub fn tensors(&self) -> Vec<(String, &Matrix)> {
        vec![("online.weight".into(), &self.weight)]
    }
    pub fn restore(
        &mut self,
        epoch: usize,
        tensor: &mut dyn FnMut(&str, (usize, usize)) -> Result<Matrix>,
    ) -> Result<()> {
        self.weight = tensor("online.weight", self.weight.shape())?;
        self.epoch = epoch;
        Ok(())
    }
    pub fn stage_seconds(&self) -> Vec<(&'static str, f64)> {
        vec![("views", 1.0), ("gemm", 3.0)]
    }
}
