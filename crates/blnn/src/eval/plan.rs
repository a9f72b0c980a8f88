//! [`EvalPlan`]: what is scored, and how often.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// One of the paper's downstream tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Node classification by logistic regression.
    Classify,
    /// Node clustering by k-means.
    Cluster,
    /// Similarity search.
    Similar,
    /// Mean cosine within classes.
    Compactness,
}

impl Task {
    /// All tasks, in the order they run.
    pub const ALL: [Self; 4] = [Self::Classify, Self::Cluster, Self::Similar, Self::Compactness];

    /// The name used in flags and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::Cluster => "cluster",
            Self::Similar => "similar",
            Self::Compactness => "compactness",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|t| t.name() == name);
        found.ok_or_else(|| {
            let message =
                format!("unknown task '{name}'; use classify, cluster, similar or compactness");
            Error::new(ErrorKind::Config, message)
        })
    }
}

/// How classification splits the nodes and chooses `C`. See the module's README.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// What the authors' code does: 20 % train, `C` by five halvings of them, refit, 80 % test.
    PublishedCode,
    /// What the paper says: 10 % train, 10 % choose `C`, 80 % test.
    Paper,
    /// Both, reported side by side.
    Both,
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "published-code" => Ok(Self::PublishedCode),
            "paper" => Ok(Self::Paper),
            "both" => Ok(Self::Both),
            _ => Err(Error::new(
                ErrorKind::Config,
                format!("unknown protocol '{name}'; use published-code, paper or both"),
            )),
        }
    }
}

/// What is scored, and how often.
///
/// ```
/// use blnn::eval::{EvalPlan, Task};
///
/// let quick = EvalPlan { tasks: vec![Task::Classify], splits: 5, ..EvalPlan::default() };
/// assert_eq!((quick.repeats, quick.seed), (10, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvalPlan {
    /// The tasks to run.
    pub tasks: Vec<Task>,
    /// Random splits of the classification; public splits, where given, replace them.
    pub splits: usize,
    /// Repetitions of the clustering.
    pub repeats: usize,
    /// How classification splits the nodes and chooses `C`.
    pub protocol: Protocol,
    /// Where all random numbers come from. 1 gives the reference's splits; see [`Seeds`].
    pub seed: u32,
}

impl Default for EvalPlan {
    fn default() -> Self {
        Self {
            tasks: Task::ALL.to_vec(),
            splits: 20,
            repeats: 10,
            protocol: Protocol::PublishedCode,
            seed: 1,
        }
    }
}

impl EvalPlan {
    /// The seed of each random choice.
    pub fn seeds(&self) -> Seeds {
        Seeds {
            splits: self.seed,
            folds: self.seed.wrapping_sub(1),
            kmeans: self.seed.wrapping_sub(1),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        let fault = |message: &str| Err(Error::new(ErrorKind::Config, message));
        if self.tasks.is_empty() {
            return fault("no task to score; use classify, cluster, similar or compactness");
        }
        if self.splits == 0 {
            return fault("splits must be at least 1, got 0");
        }
        if self.repeats == 0 {
            return fault("repeats must be at least 1, got 0");
        }
        Ok(())
    }
}

/// The seeds of numpy's `RandomState` behind each random choice, shown with every result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Seeds {
    /// Of the 20 train/test splits: the plan's seed; the reference uses 1.
    pub splits: u32,
    /// Of the five halvings of each training part: the plan's seed minus 1; the oracle uses 0.
    pub folds: u32,
    /// Of the first k-means repetition, the next one's being one more: the plan's seed minus 1.
    pub kmeans: u32,
}
