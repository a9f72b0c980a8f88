//! Every operation of the tape against finite differences.

use std::sync::{Arc, Mutex};

use blnn_kernels::mixed::Arithmetic;
use blnn_kernels::{Csr, Matrix, Panels, Pattern, Threads};

use super::*;
use crate::augment::Views;
use crate::graph::Features;

const NODES: usize = 23;
const FEATURES: usize = 9;
const WIDTH: usize = 5;
const OUT: usize = 4;

const INPUTS: Source = Source { from_inputs: true, narrow: false };
const HIDDEN: Source = Source { from_inputs: false, narrow: false };

/// A matrix that is given, not computed. Its gradient is left in `grad`.
struct Leaf {
    output: Var,
    value: Arc<Mutex<Matrix>>,
    grad: Arc<Mutex<Matrix>>,
}

impl Op for Leaf {
    fn ports(&self) -> Ports {
        let writes = vec![self.output];
        let gradient = Gradient::Backward;
        Ports { reads: vec![], writes, keeps: vec![], in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut value = run.memory.take_value(self.output);
        value.data_mut().fill(0.0);
        value.copy_from(&self.value.lock().unwrap());
        run.memory.put_value(self.output, value);
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        *self.grad.lock().unwrap() = run.memory.grad(self.output).to_matrix();
    }
}

/// The loss `Σ weights ∘ input`.
struct Dot {
    input: Var,
    weights: Matrix,
    loss: Arc<Mutex<Loss>>,
}

impl Op for Dot {
    fn ports(&self) -> Ports {
        let gradient = Gradient::Eager;
        Ports { reads: vec![self.input], writes: vec![], keeps: vec![], in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let value = run.memory.value(self.input).to_matrix();
        let products = value.data().iter().zip(self.weights.data());
        let nodes = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        *self.loss.lock().unwrap() = Loss { nodes, neighbours: 0.0 };
        let mut grad = run.memory.take_grad(self.input);
        grad.data_mut().fill(0.0);
        grad.copy_from(&self.weights);
        run.memory.put_grad(self.input, grad);
    }
}

fn sample(rows: usize, cols: usize, seed: f32) -> Matrix {
    Matrix::from_fn(rows, cols, |i, j| ((i * 37 + j * 11) as f32 * 0.7 + seed).sin())
}

fn ring() -> Pattern {
    let neighbours = |i: usize| {
        let mut all = [i + 1, i + NODES - 1, i + 5, i + NODES - 5].map(|j| (j % NODES) as u32);
        all.sort_unstable();
        all
    };
    let indices: Vec<u32> = (0..NODES).flat_map(neighbours).collect();
    Pattern::new(NODES, (0..=NODES).map(|i| 4 * i).collect(), indices).unwrap()
}

/// Everything a tape runs on, with two different views.
struct Bench {
    parameters: Parameters,
    running: Vec<RunningStatistics>,
    views: Views,
    inputs: Inputs,
    threads: Threads,
    tape: Tape,
    memory: Memory,
    loss: Arc<Mutex<Loss>>,
}

impl Bench {
    fn new(features: &Features) -> Self {
        let threads = Threads::new(1);
        let mut views = Views::whole(&ring(), FEATURES, &threads);
        let edges = [2, 3].map(|k| (0..4 * NODES).map(|e| e % 5 != k).collect::<Vec<_>>());
        let columns = [0, 1].map(|k| (0..FEATURES).map(|c| c % 4 != k).collect::<Vec<_>>());
        views.set([&edges[0], &edges[1]], [&columns[0], &columns[1]], &threads);
        let mut inputs = Inputs::new(features, Arithmetic::F32, &threads);
        inputs.set_masks(&views, &threads);
        Self {
            parameters: Parameters::default(),
            running: vec![],
            views,
            inputs,
            threads,
            tape: Tape::default(),
            memory: Memory::default(),
            loss: Arc::default(),
        }
    }

    fn parameter(&mut self, name: &str, value: &Matrix) -> ParameterId {
        self.parameters.add_trained(name, Panels::from_matrix(value))
    }

    fn layer(&mut self, width: usize) -> LayerParameters {
        LayerParameters {
            weight: self
                .parameter("weight", &Matrix::from_fn(1, width, |_, j| 0.7 + j as f32 * 0.1)),
            bias: self.parameter("bias", &sample(1, width, 0.4)),
            slope: self.parameter("slope", &Matrix::from_fn(1, 1, |_, _| 0.3)),
        }
    }

    fn loss(&mut self) -> f64 {
        self.parameters.begin_step();
        let mut run = Run {
            memory: &mut self.memory,
            parameters: &mut self.parameters,
            running: &mut self.running,
            views: &self.views,
            inputs: &self.inputs,
            threads: &self.threads,
            clock: &mut Clock::new(),
        };
        self.tape.forward(&mut run);
        self.tape.backward(&mut run);
        let loss = *self.loss.lock().unwrap();
        loss.nodes + loss.neighbours
    }

    /// Compares a gradient with differences, `shift` adding to one element. Where a step crosses
    /// the kink of an activation, the gradient is that of one side.
    fn compare(&mut self, what: &str, grad: &Matrix, mut shift: impl FnMut(&mut Self, usize, f32)) {
        let step = 1e-3;
        let largest = grad.data().iter().fold(1e-3f32, |a, b| a.max(b.abs()));
        let middle = self.loss();
        for k in 0..grad.data().len() {
            shift(self, k, step);
            let up = self.loss();
            shift(self, k, -2.0 * step);
            let down = self.loss();
            shift(self, k, step);
            let got = grad.data()[k];
            let want = [(up - down) / 2.0, up - middle, middle - down]
                .map(|difference| (difference / f64::from(step)) as f32);
            let close = want.iter().any(|w| (got - w).abs() < 0.02 * largest);
            assert!(close, "{what}[{k}]: {got}, differences {want:?}");
        }
    }

    fn check_parameters(&mut self) {
        self.loss();
        for id in self.parameters.ids() {
            let grad = self.parameters.grad(id).to_matrix();
            let what = self.parameters.name(id).to_owned();
            self.compare(&what, &grad, |bench, k, by| {
                let value = bench.parameters.value_mut(id);
                let (i, j) = (k / value.cols(), k % value.cols());
                value.set(i, j, value.get(i, j) + by);
            });
        }
    }

    fn check_leaf(&mut self, value: &Arc<Mutex<Matrix>>, grad: &Arc<Mutex<Matrix>>) {
        self.loss();
        let grad = grad.lock().unwrap().clone();
        self.compare("input", &grad, |_, k, by| value.lock().unwrap().data_mut()[k] += by);
    }
}

fn dense_features() -> Features {
    Features::Dense(sample(NODES, FEATURES, 0.2))
}

fn sparse_features(alike: bool) -> Features {
    let entries = |i: usize| (0..FEATURES).filter(move |j| (i * 3 + j * 5).is_multiple_of(4));
    let (mut offsets, mut indices, mut values) = (vec![0], vec![], vec![]);
    for i in 0..NODES {
        for j in entries(i) {
            indices.push(j as u32);
            values.push(if alike { 1.0 / (1 + i % 3) as f32 } else { 0.5 + (i + j) as f32 * 0.05 });
        }
        offsets.push(indices.len());
    }
    let pattern = Pattern::new(FEATURES, offsets, indices).unwrap();
    Features::Sparse(Csr::new(pattern, values).unwrap())
}

fn batch() -> Normalization {
    Normalization::Batch { running: None }
}

/// Attributes → projection → convolution → loss, for the views that pass a gradient.
fn check_input_layer(features: &Features, gradient: [bool; 2]) {
    let mut bench = Bench::new(features);
    let weight = bench.parameter("conv", &sample(FEATURES, WIDTH, 0.1));
    let layer = bench.layer(WIDTH);
    let outputs = gradient.map(|g| bench.tape.matrix(NODES, WIDTH, g));
    bench.tape.push(InputProject::new(weight, outputs, gradient, Arithmetic::F32));
    let view = gradient.iter().position(|&g| g).unwrap();
    let [c, h] = [(); 2].map(|()| bench.tape.matrix(NODES, WIDTH, true));
    let op = Convolve::new([outputs[view], c, h], layer, view, batch(), true, INPUTS);
    bench.tape.push(op);
    if gradient == [true, true] {
        // The second view takes part with a convolution and a loss of its own.
        let [c2, h2] = [(); 2].map(|()| bench.tape.matrix(NODES, WIDTH, true));
        bench.tape.push(Convolve::new([outputs[1], c2, h2], layer, 1, batch(), true, INPUTS));
        let both = bench.tape.matrix(NODES, WIDTH, true);
        bench.tape.push(Sum { inputs: [h, h2], output: both });
        let weights = sample(NODES, WIDTH, 0.9);
        bench.tape.push(Dot { input: both, weights, loss: bench.loss.clone() });
    } else {
        let weights = sample(NODES, WIDTH, 0.9);
        bench.tape.push(Dot { input: h, weights, loss: bench.loss.clone() });
    }
    bench.check_parameters();
}

/// The sum of two matrices.
struct Sum {
    inputs: [Var; 2],
    output: Var,
}

impl Op for Sum {
    fn ports(&self) -> Ports {
        let (reads, writes) = (self.inputs.to_vec(), vec![self.output]);
        Ports { reads, writes, keeps: vec![], in_place: false, gradient: Gradient::Backward }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut out = run.memory.take_value(self.output);
        let [a, b] = self.inputs.map(|v| run.memory.value(v).data());
        out.data_mut().iter_mut().zip(a.iter().zip(b)).for_each(|(o, (a, b))| *o = a + b);
        run.memory.put_value(self.output, out);
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        for input in self.inputs {
            let mut grad = run.memory.take_grad(input);
            grad.data_mut().copy_from_slice(run.memory.grad(self.output).data());
            run.memory.put_grad(input, grad);
        }
    }
}

#[test]
fn input_projection_and_convolution() {
    for features in [sparse_features(true), sparse_features(false), dense_features()] {
        for gradient in [[true, true], [true, false], [false, true]] {
            check_input_layer(&features, gradient);
        }
    }
}

#[test]
fn hidden_layer_and_convolution() {
    for features in [sparse_features(true), dense_features()] {
        let mut bench = Bench::new(&features);
        let conv1 = bench.parameter("conv1", &sample(FEATURES, WIDTH, 0.1));
        let conv2 = bench.parameter("conv2", &sample(WIDTH, OUT, 0.6));
        let layers = [WIDTH, OUT].map(|width| bench.layer(width));
        let gradient = [false, true];
        let outputs = gradient.map(|g| bench.tape.matrix(NODES, WIDTH, g));
        bench.tape.push(InputProject::new(conv1, outputs, gradient, Arithmetic::F32));
        let c1 = bench.tape.matrix(NODES, WIDTH, true);
        let [u, c, h] = [(); 3].map(|()| bench.tape.matrix(NODES, OUT, true));
        let vars = [outputs[1], c1, u];
        bench.tape.push(HiddenLayer::new(
            vars,
            conv2,
            layers[0],
            1,
            batch(),
            true,
            Arithmetic::F32,
        ));
        bench.tape.push(Convolve::new([u, c, h], layers[1], 1, batch(), true, HIDDEN));
        let weights = sample(NODES, OUT, 0.9);
        bench.tape.push(Dot { input: h, weights, loss: bench.loss.clone() });
        bench.check_parameters();
    }
}

#[test]
fn prediction_and_loss() {
    let mut bench = Bench::new(&dense_features());
    let predictor = PredictorParameters {
        weight1: bench.parameter("weight1", &sample(OUT, 7, 0.1)),
        bias1: bench.parameter("bias1", &sample(1, 7, 0.2)),
        slope: bench.parameter("slope", &Matrix::from_fn(1, 1, |_, _| -0.2)),
        weight2: bench.parameter("weight2", &sample(7, OUT, 0.3)),
        bias2: bench.parameter("bias2", &sample(1, OUT, 0.4)),
    };
    let mut leaf = |seed: f32, wants_grad: bool| {
        let [value, grad] = [seed, 0.0].map(|s| Arc::new(Mutex::new(sample(NODES, OUT, s))));
        let output = bench.tape.matrix(NODES, OUT, wants_grad);
        bench.tape.push(Leaf { output, value: value.clone(), grad: grad.clone() });
        (output, value, grad)
    };
    let (first, second) = (leaf(0.5, true), leaf(0.6, true));
    let [(target, ..), (own, ..)] = [leaf(0.7, false), leaf(0.8, false)];
    let towards = |online: Var| Direction { online, target, own };
    let directions = vec![towards(first.0), towards(second.0)];
    bench.tape.push(Predict::new(directions, predictor, Arithmetic::F32, bench.loss.clone()));
    bench.check_parameters();
    bench.check_leaf(&first.1, &first.2);
    bench.check_leaf(&second.1, &second.2);
}
