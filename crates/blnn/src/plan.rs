//! [`Plan`]: every setting of one training run, validated.

use serde::{Deserialize, Serialize};

/// Which objective is trained. See `method/` for the mathematics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Bootstrapped Graph Latents: a node predicts itself in the other view.
    Bgrl,
    /// Bootstrap Latents of Nodes and Neighbors: a node also predicts its neighbours.
    Blnn,
    /// Ablation: BGRL with all neighbours as equal positives.
    BgrlNoisy,
    /// Ablation and oracle: BGRL with the neighbours of the same class as equal positives.
    BgrlClean,
}

/// Which form of BLNN's objective is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Equations 2 and 3 of the paper, in both directions.
    Paper,
    /// Exactly what the authors' published code computes.
    PublishedCode,
}

/// Which batch-norm statistics turn a trained encoder into embeddings. Training itself always
/// normalises with the batch at hand, so this changes no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistics {
    /// Momentum 0.99, as the published code runs: practically the last augmented view.
    LastView,
    /// Momentum 0.01, as was likely meant: an average over about a hundred steps.
    Averaged,
}

impl Statistics {
    /// The weight of the newest batch in the running statistics (PyTorch's `momentum`).
    pub fn momentum(self) -> f64 {
        match self {
            Self::LastView => 0.99,
            Self::Averaged => 0.01,
        }
    }

    pub(crate) fn index(self) -> usize {
        match self {
            Self::LastView => 0,
            Self::Averaged => 1,
        }
    }
}

/// Every setting of one training run. A plan is made by validation only, so code that holds one
/// need not check it again.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub(crate) method: Method,
    pub(crate) objective: Objective,
    /// τ > 0: the attention's temperature.
    pub(crate) temperature: f32,
    /// Widths of the two encoder layers; the second is the embedding's.
    pub(crate) hidden_width: usize,
    pub(crate) embedding_width: usize,
    /// Width of the predictor's hidden layer.
    pub(crate) predictor_width: usize,
    /// Share of directed edges dropped in view 1 and view 2, each in [0, 1).
    pub(crate) edge_drop: [f32; 2],
    /// Share of feature columns masked in view 1 and view 2, each in [0, 1).
    pub(crate) feature_drop: [f32; 2],
    pub(crate) learning_rate: f64,
    pub(crate) weight_decay: f64,
    pub(crate) epochs: usize,
    pub(crate) warmup_epochs: usize,
    /// Decay of the target network's moving average at the first step, in [0, 1].
    pub(crate) ema_start: f64,
    pub(crate) statistics: Statistics,
    pub(crate) seed: u64,
    pub(crate) checkpoint_every: usize,
}

#[cfg(test)]
impl Plan {
    /// A small valid plan for tests.
    pub(crate) fn sample() -> Self {
        Self {
            method: Method::Blnn,
            objective: Objective::Paper,
            temperature: 1.0,
            hidden_width: 20,
            embedding_width: 12,
            predictor_width: 28,
            edge_drop: [0.3, 0.2],
            feature_drop: [0.2, 0.1],
            learning_rate: 1e-3,
            weight_decay: 1e-5,
            epochs: 20,
            warmup_epochs: 2,
            ema_start: 0.99,
            statistics: Statistics::Averaged,
            seed: 1,
            checkpoint_every: 10,
        }
    }
}
