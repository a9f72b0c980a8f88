//! The engine against PyTorch: every number of `tests/golden/engine.npz`, which
//! `tests/golden/make_golden.py` computed in double precision.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use blnn_kernels::{Csr, Pattern};

use super::*;
use crate::data::npy::{self, Array, Values};
use crate::graph::Features;
use crate::plan::{Method, Objective, Precision};

struct Golden {
    arrays: BTreeMap<String, Array>,
    precision: Precision,
}

impl Golden {
    /// Largest allowed difference, relative to the largest value of the tensor. A bfloat16 is off
    /// by up to 2⁻⁹ of its value; representations and losses were seen to be off by up to 6e-3.
    fn tolerance(&self) -> f32 {
        match self.precision {
            Precision::F32 => 1e-4,
            Precision::Bf16 => 2e-2,
        }
    }

    fn read(precision: Precision) -> Self {
        let bytes = include_bytes!("../../tests/golden/engine.npz");
        let mut archive = zip::ZipArchive::new(Cursor::new(&bytes[..])).unwrap();
        let arrays = (0..archive.len()).map(|i| {
            let mut member = archive.by_index(i).unwrap();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).unwrap();
            (
                member.name().unwrap().trim_end_matches(".npy").to_owned(),
                npy::from_bytes(&bytes).unwrap(),
            )
        });
        Self { arrays: arrays.collect(), precision }
    }

    fn array(&self, name: &str) -> Array {
        self.arrays.get(name).unwrap_or_else(|| panic!("no golden array {name}")).clone()
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        self.array(name).into_f32().unwrap()
    }

    fn ints(&self, name: &str) -> Vec<usize> {
        self.array(name).into_int().unwrap().into_iter().map(|v| v as usize).collect()
    }

    fn scalar(&self, name: &str) -> f32 {
        self.floats(name)[0]
    }

    /// The flags of one step and view, from an array of shape steps × 2 × n.
    fn flags(&self, name: &str, step: usize, view: usize) -> Vec<bool> {
        let n = self.array(name).shape()[2];
        let array = self.array(name);
        let Values::Bool(all) = array.values() else { panic!("{name} holds flags") };
        all[(step * 2 + view) * n..][..n].to_vec()
    }

    fn graph(&self) -> Graph {
        let offsets = self.ints("adj_offsets");
        let n = offsets.len() - 1;
        let indices = self.ints("adj_indices").into_iter().map(|j| j as u32).collect();
        let x = self.array("x").into_matrix().unwrap();
        let labels = self.ints("labels").into_iter().map(|y| y as u32).collect();
        Graph::new(
            "golden",
            Pattern::new(n, offsets, indices).unwrap(),
            Features::Sparse(sparse(&x)),
        )
        .unwrap()
        .with_labels(labels, vec![])
        .unwrap()
    }

    fn plan(&self, method: Method, objective: Objective) -> Plan {
        Plan {
            method,
            objective,
            temperature: self.scalar("tau"),
            learning_rate: f64::from(self.scalar("lr")),
            weight_decay: f64::from(self.scalar("weight_decay")),
            ema_start: f64::from(self.scalar("ema_start")),
            warmup_epochs: self.ints("warmup")[0],
            epochs: self.ints("epochs")[0],
            precision: self.precision,
            ..Plan::sample()
        }
    }

    /// A trainer with the golden initial parameters.
    fn trainer(&self, graph: &Graph, method: Method, objective: Objective) -> Trainer {
        let plan = self.plan(method, objective);
        let order = Order::identity(graph.nodes());
        let mut trainer = Trainer::in_order(graph, &plan, &Threads::new(2), order).unwrap();
        for id in trainer.parameters.ids() {
            let name = format!("init.{}", trainer.parameters.name(id));
            let (rows, cols) = trainer.parameters.value(id).shape();
            let value = Matrix::from_vec(rows, cols, self.floats(&name));
            trainer.parameters.value_mut(id).copy_from(&value);
        }
        trainer
    }

    /// On a matrix unit the attributes are multiplied in full: that must be what is compared.
    fn assert_products(&self, trainer: &Trainer) {
        let on_unit = self.precision.arithmetic().uses_matrix_unit();
        assert_eq!(matches!(trainer.inputs, Inputs::Tiled(_)), on_unit);
    }

    fn set_views(&self, trainer: &mut Trainer, step: usize) {
        let edges = [0, 1].map(|v| self.flags("keep_edges", step, v));
        let features = [0, 1].map(|v| self.flags("keep_features", step, v));
        let threads = trainer.threads.clone();
        trainer.views.set([&edges[0], &edges[1]], [&features[0], &features[1]], &threads);
        trainer.inputs.set_masks(&trainer.views, &threads);
    }

    #[track_caller]
    fn assert_close(&self, name: &str, got: &[f32]) {
        let want = self.floats(name);
        assert_eq!(got.len(), want.len(), "{name}: length");
        // A slope's gradient is one number, left over from a sum whose terms cancel: the scalar
        // kernels' order of additions leaves 1.2e-7 of it.
        let least = if want.len() == 1 { 2e-3 } else { 1e-6 };
        let largest = want.iter().fold(least, |a: f32, b| a.max(b.abs()));
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            assert!((g - w).abs() <= self.tolerance() * largest, "{name}[{i}]: {g} instead of {w}");
        }
    }

    /// A coarser measure for the gradients in bfloat16: the length of the difference, relative to
    /// that of the tensor. The golden graph is so small that single values flip with the sign of an
    /// activation near zero; `precision.rs` compares them value by value on a real graph. A slope's
    /// gradient, one number left over from a cancelled sum, says nothing here.
    #[track_caller]
    fn assert_similar(&self, name: &str, got: &[f32]) {
        let want = self.floats(name);
        let length =
            |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>().sqrt();
        let off = length(&mut got.iter().zip(&want).map(|(g, w)| g - w));
        let whole = length(&mut want.iter().copied());
        assert!(got.len() == 1 || off < 0.15 * whole, "{name}: off by {off} of {whole}");
    }

    #[track_caller]
    fn assert_parameters(&self, trainer: &Trainer, prefix: &str) {
        for id in trainer.parameters.ids() {
            let name = format!("{prefix}.{}", trainer.parameters.name(id));
            self.assert_close(&name, trainer.parameters.value(id).to_matrix().data());
        }
    }
}

fn sparse(x: &Matrix) -> Csr {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..x.rows() {
        for (j, &value) in x.row(i).iter().enumerate().filter(|(_, v)| **v != 0.0) {
            indices.push(j as u32);
            values.push(value);
        }
        offsets.push(indices.len());
    }
    Csr::new(Pattern::new(x.cols(), offsets, indices).unwrap(), values).unwrap()
}

const METHODS: [(&str, Method, Objective); 10] = [
    ("bgrl", Method::Bgrl, Objective::Paper),
    ("blnn_paper", Method::Blnn, Objective::Paper),
    ("blnn_one", Method::Blnn, Objective::OneDirection),
    ("blnn_code", Method::Blnn, Objective::PublishedCode),
    ("bgrl_noisy", Method::BgrlNoisy, Objective::Paper),
    ("bgrl_clean", Method::BgrlClean, Objective::Paper),
    ("bgrl_noisy_one", Method::BgrlNoisy, Objective::OneDirection),
    ("bgrl_clean_one", Method::BgrlClean, Objective::OneDirection),
    ("bgrl_noisy_code", Method::BgrlNoisy, Objective::PublishedCode),
    ("bgrl_clean_code", Method::BgrlClean, Objective::PublishedCode),
];

/// Encoder outputs of both views in training mode, from the parameters called `name.*`.
fn representations(golden: &Golden, trainer: &mut Trainer, name: &str) -> [Matrix; 2] {
    for id in trainer.online.parameters() {
        let own = trainer.parameters.name(id).replace("online", name);
        let (rows, cols) = trainer.parameters.value(id).shape();
        let value = Matrix::from_vec(rows, cols, golden.floats(&format!("init.{own}")));
        trainer.parameters.value_mut(id).copy_from(&value);
    }
    let mut tape = Tape::default();
    let outputs =
        trainer.online.encode(&mut tape, [false; 2], |_| Normalization::Batch { running: None });
    for &var in &outputs {
        tape.output(var);
    }
    tape.forward(&mut trainer.parts().1);
    outputs.map(|var| trainer.memory.value(var).to_matrix())
}

#[test]
fn encoder_forward_agrees_with_torch() {
    encoder_agrees(&Golden::read(Precision::F32));
}

#[test]
fn encoder_forward_agrees_with_torch_in_bf16() {
    encoder_agrees(&Golden::read(Precision::Bf16));
}

fn encoder_agrees(golden: &Golden) {
    let graph = golden.graph();
    for name in ["online", "target"] {
        let mut trainer = golden.trainer(&graph, Method::Bgrl, Objective::Paper);
        golden.set_views(&mut trainer, 0);
        for (v, h) in representations(golden, &mut trainer, name).iter().enumerate() {
            golden.assert_close(&format!("h.{name}.view{}", v + 1), h.data());
        }
    }
}

#[test]
fn losses_and_all_gradients_agree_with_torch() {
    gradients_agree(&Golden::read(Precision::F32));
}

#[test]
fn losses_and_all_gradients_agree_with_torch_in_bf16() {
    gradients_agree(&Golden::read(Precision::Bf16));
}

fn gradients_agree(golden: &Golden) {
    let graph = golden.graph();
    for (key, method, objective) in METHODS {
        let mut trainer = golden.trainer(&graph, method, objective);
        golden.assert_products(&trainer);
        golden.set_views(&mut trainer, 0);
        trainer.run_tape();
        let step = trainer.report(0);
        let got = [step.loss, step.node_loss, step.neighbour_loss].map(|l| l as f32);
        golden.assert_close(&format!("loss.{key}"), &got);
        for slot in trainer.optimizer.slots() {
            let name = format!("grad.{key}.{}", trainer.parameters.name(slot.parameter));
            let grad = trainer.parameters.grad(slot.parameter).to_matrix();
            match golden.precision {
                Precision::F32 => golden.assert_close(&name, grad.data()),
                Precision::Bf16 => golden.assert_similar(&name, grad.data()),
            }
        }
    }
}

#[test]
fn running_statistics_agree_with_torch_under_both_momenta() {
    let golden = Golden::read(Precision::F32);
    let graph = golden.graph();
    // The published code's objective uses view 1 only, but both views must fill the buffers.
    let mut trainer = golden.trainer(&graph, Method::Blnn, Objective::PublishedCode);
    golden.set_views(&mut trainer, 0);
    trainer.run_tape();
    for (layer, statistics) in trainer.running.iter().enumerate() {
        for (kind, label) in [(0, "last_view"), (1, "averaged")] {
            let prefix = format!("buffers.{label}.norm{}", layer + 1);
            golden.assert_close(&format!("{prefix}.mean"), &statistics.mean[kind]);
            golden.assert_close(&format!("{prefix}.var"), &statistics.variance[kind]);
        }
    }
}

#[test]
fn five_steps_of_training_agree_with_torch() {
    let golden = Golden::read(Precision::F32);
    let graph = golden.graph();
    for (key, method, objective) in &METHODS[..4] {
        let mut trainer = golden.trainer(&graph, *method, *objective);
        let mut losses = Vec::new();
        for step in 0..5 {
            golden.set_views(&mut trainer, step);
            let report = trainer.advance();
            losses.extend([report.loss, report.node_loss, report.neighbour_loss].map(|l| l as f32));
            if [0, 1, 4].contains(&step) {
                golden.assert_parameters(&trainer, &format!("traj.{key}.step{}", step + 1));
            }
        }
        golden.assert_close(&format!("traj.{key}.loss"), &losses);
        for (kind, label) in
            [(Statistics::LastView, "last_view"), (Statistics::Averaged, "averaged")]
        {
            let embedding = trainer.embed_with(kind);
            golden.assert_close(&format!("traj.{key}.embedding.{label}"), embedding.data());
        }
    }
}
