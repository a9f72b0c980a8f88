//! [`Plan`]: every setting of one training run, validated.

use blnn_kernels::Isa;
use blnn_kernels::mixed::Arithmetic;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

/// The arithmetic of training. Weights, optimiser, statistics and all sums are `f32` in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Everything is `f32`.
    F32,
    /// The operands of the dense products (second layer, predictor), and what the sparse products
    /// gather, are rounded to bfloat16.
    Bf16,
}

impl Precision {
    /// Both arithmetics, the default first.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// The name used in configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    /// The faster one on this machine: `bf16` where the CPU has a matrix unit that the operating
    /// system allows, or multiplies pairs of bfloat16 faster than floats; otherwise `f32`.
    pub fn auto() -> Self {
        if blnn_kernels::mixed::has_fast_bf16() { Self::Bf16 } else { Self::F32 }
    }

    /// How dense products compute on this machine.
    pub(crate) fn arithmetic(self) -> Arithmetic {
        match self {
            Self::F32 => Arithmetic::F32,
            Self::Bf16 => Arithmetic::bf16(),
        }
    }

    /// The kernels this arithmetic runs on, on this machine.
    ///
    /// ```
    /// assert_eq!(blnn::Precision::F32.kernels().dense, "f32");
    /// ```
    pub fn kernels(self) -> Kernels {
        Kernels { vectors: blnn_kernels::isa().name(), dense: self.arithmetic().kernels() }
    }

    /// What decides how a training rounds here: with the same input, settings and words here, it
    /// gives the same bits.
    pub(crate) fn rounding(self) -> String {
        match (self, blnn_kernels::isa()) {
            // Of f32 both have the same kernels.
            (Self::F32, Isa::Avx512Bf16) => Isa::Avx512.name().to_owned(),
            (Self::F32, isa) => isa.name().to_owned(),
            (Self::Bf16, isa) => format!("{}/{}", isa.name(), self.arithmetic().kernels()),
        }
    }
}

/// The names of the kernels that a training runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kernels {
    /// The vector instructions: `avx512bf16`, `avx512`, `avx2`, `neon` or `scalar`.
    pub vectors: &'static str,
    /// The dense products: `amx`, `avx512bf16`, or `f32` for vectors of floats.
    pub dense: &'static str,
}

impl std::fmt::Display for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} vectors, {} products", self.vectors, self.dense)
    }
}

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

impl Method {
    /// All methods, in the order a reader meets them.
    pub const ALL: [Self; 4] = [Self::Blnn, Self::Bgrl, Self::BgrlNoisy, Self::BgrlClean];

    /// The name used in configs and commands.
    ///
    /// ```
    /// assert_eq!(blnn::Method::BgrlNoisy.name(), "bgrl-noisy");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Bgrl => "bgrl",
            Self::Blnn => "blnn",
            Self::BgrlNoisy => "bgrl-noisy",
            Self::BgrlClean => "bgrl-clean",
        }
    }
}

/// Which form of BLNN's objective, or of its ablations', is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Equations 2 and 3 of the paper in both directions, as BGRL has them.
    Paper,
    /// The same to the letter of the paper's Algorithm 1: view 1 predicts view 2, and not the other
    /// way about.
    OneDirection,
    /// Exactly what the authors' published code computes.
    PublishedCode,
}

impl Objective {
    /// All forms, the default first.
    pub const ALL: [Self; 3] = [Self::Paper, Self::OneDirection, Self::PublishedCode];

    /// The name used in configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::OneDirection => "one-direction",
            Self::PublishedCode => "published-code",
        }
    }
}

/// Which batch-norm statistics turn a trained encoder into embeddings. Training itself always
/// normalises with the batch at hand, so this changes no weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistics {
    /// Momentum 0.99, as the published code runs: practically the last augmented view.
    LastView,
    /// Momentum 0.01, as was likely meant: an average over about fifty steps, of two views each.
    Averaged,
}

impl Statistics {
    /// Both settings.
    pub const ALL: [Self; 2] = [Self::LastView, Self::Averaged];

    /// The name used in configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::LastView => "last-view",
            Self::Averaged => "averaged",
        }
    }

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

/// Every setting of one training run. A plan is made by validation only (see
/// [`Config::resolve`](crate::Config::resolve)), so code that holds one need not check it again.
///
/// ```
/// let plan = blnn::Config::new().resolve("photo")?;
/// assert_eq!(plan.epochs(), 10_000);
/// assert!(plan.to_toml().contains("temperature = 1.9"));
/// # Ok::<(), blnn::Error>(())
/// ```
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
    pub(crate) precision: Precision,
}

impl Plan {
    /// Which objective is trained.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The share of feature columns that one view alone keeps, on average.
    pub(crate) fn columns_of_one_view(&self) -> f64 {
        let [first, second] = self.feature_drop.map(f64::from);
        first * (1.0 - second) + second * (1.0 - first)
    }

    /// Whether the objective has the published code's form, which BGRL has not.
    pub(crate) fn follows_published_code(&self) -> bool {
        self.method != Method::Bgrl && self.objective == Objective::PublishedCode
    }

    /// Whether only view 1 predicts, which it never does alone in BGRL.
    pub(crate) fn predicts_once(&self) -> bool {
        self.method != Method::Bgrl && self.objective != Objective::Paper
    }

    /// Number of full-batch steps of the whole run.
    pub fn epochs(&self) -> usize {
        self.epochs
    }

    /// Peak learning rate.
    pub fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    /// The widths of the encoder's hidden layer, the embedding and the predictor's hidden layer.
    pub fn widths(&self) -> [usize; 3] {
        [self.hidden_width, self.embedding_width, self.predictor_width]
    }

    /// Number of values in one node's embedding.
    pub fn embedding_width(&self) -> usize {
        self.embedding_width
    }

    /// The seed every random draw derives from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A checkpoint is written each time this many epochs are done.
    pub fn checkpoint_every(&self) -> usize {
        self.checkpoint_every
    }

    /// Which batch-norm statistics embeddings are normalised by.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The arithmetic of training.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// All settings as a config file. Reading it back gives the same plan.
    pub fn to_toml(&self) -> String {
        // Serialising a flat struct of numbers and strings has no way to fail.
        toml::to_string(self).unwrap_or_default()
    }
}

/// The `f64` that prints like the `f32`: 0.1 stays 0.1 instead of 0.10000000149011612.
pub(crate) fn as_written(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// The keys of a config file, in the order a reader wants them.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Plan", crate::config::KEYS.len())?;
        out.serialize_field("method", &self.method)?;
        out.serialize_field("objective", &self.objective)?;
        out.serialize_field("temperature", &as_written(self.temperature))?;
        out.serialize_field("hidden_width", &self.hidden_width)?;
        out.serialize_field("embedding_width", &self.embedding_width)?;
        out.serialize_field("predictor_width", &self.predictor_width)?;
        out.serialize_field("edge_drop", &self.edge_drop.map(as_written))?;
        out.serialize_field("feature_drop", &self.feature_drop.map(as_written))?;
        out.serialize_field("learning_rate", &self.learning_rate)?;
        out.serialize_field("weight_decay", &self.weight_decay)?;
        out.serialize_field("epochs", &self.epochs)?;
        out.serialize_field("warmup_epochs", &self.warmup_epochs)?;
        out.serialize_field("ema_start", &self.ema_start)?;
        out.serialize_field("statistics", &self.statistics)?;
        out.serialize_field("seed", &self.seed)?;
        out.serialize_field("checkpoint_every", &self.checkpoint_every)?;
        out.serialize_field("precision", &self.precision)?;
        out.end()
    }
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
            precision: Precision::F32,
        }
    }
}
