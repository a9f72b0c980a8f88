//! [`Scores`]: the results of an evaluation. All in percent but compactness.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::{Comparison, Summary};
use super::plan::Seeds;

/// The name of the score an epoch may be chosen by: its nodes are in no test set.
pub const VALIDATION_ACCURACY: &str = "validation_accuracy";

/// The scores of one embedding matrix; a task that was not asked for is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scores {
    /// Number of nodes.
    pub nodes: usize,
    /// Width of the embeddings.
    pub dimensions: usize,
    /// Number of classes.
    pub classes: usize,
    /// Seeds of all random choices.
    pub seeds: Seeds,
    /// Classification by the plan's protocol (the published code's, if both were asked for).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classify: Option<ClassifyScores>,
    /// Classification by the paper's protocol, if both were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classify_paper: Option<ClassifyScores>,
    /// Clustering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterScores>,
    /// Similarity search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub similar: Option<SimilarScores>,
    /// Mean cosine within classes, from −1 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compactness: Option<f64>,
}

impl Scores {
    /// The scores that were taken, by the names `metrics.jsonl` has for them.
    pub fn by_name(&self) -> BTreeMap<String, f64> {
        let mut all = BTreeMap::new();
        let mut add = |name: &str, value: f64| all.insert(name.to_owned(), value);
        if let Some(classify) = &self.classify {
            add("accuracy", classify.summary.mean);
            add("accuracy_std", classify.summary.std);
        }
        if let Some(paper) = &self.classify_paper {
            add("accuracy_paper_split", paper.summary.mean);
            add("accuracy_paper_split_std", paper.summary.std);
        }
        // Public splits have a validation part of their own.
        let mut found = [&self.classify, &self.classify_paper].into_iter().flatten();
        if let Some(validation) = found.find_map(|c| c.validation) {
            add(VALIDATION_ACCURACY, validation);
        }
        if let Some(cluster) = &self.cluster {
            add("nmi", cluster.nmi.summary.mean);
            add("homogeneity", cluster.homogeneity.summary.mean);
        }
        if let Some(similar) = &self.similar {
            add("s_at_5", similar.s_at_5);
            add("s_at_10", similar.s_at_10);
        }
        if let Some(compactness) = self.compactness {
            add("compactness", compactness);
        }
        all
    }
}

/// Test accuracy of logistic regression over splits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassifyScores {
    /// `published-code`, `paper` or `public-splits`.
    pub protocol: &'static str,
    /// Mean and spread over splits.
    #[serde(flatten)]
    pub summary: Summary,
    /// Accuracy on each split.
    pub per_split: Vec<f64>,
    /// Mean accuracy on the nodes `C` was chosen on, where the protocol sets such nodes aside. It
    /// may choose between embeddings; the test accuracy may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// The penalty `C` chosen on each split.
    pub penalties: Vec<f64>,
    /// Test nodes for each training node.
    pub test_to_train: f64,
}

impl ClassifyScores {
    /// Compares two embeddings of the same nodes, scored by the same plan, split by split.
    pub fn compare(&self, other: &Self) -> Comparison {
        Comparison::of(&self.per_split, &other.per_split, self.test_to_train)
    }
}

/// Agreement of k-means clusters with classes over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterScores {
    /// Normalised mutual information.
    pub nmi: RepeatScores,
    /// Homogeneity.
    pub homogeneity: RepeatScores,
}

/// One score over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatScores {
    /// Mean and spread over repetitions.
    #[serde(flatten)]
    pub summary: Summary,
    /// The score of each repetition.
    pub per_repeat: Vec<f64>,
}

impl RepeatScores {
    pub(super) fn new(per_repeat: Vec<f64>) -> Self {
        Self { summary: Summary::of(&per_repeat), per_repeat }
    }
}

/// Share of same-class nodes among the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SimilarScores {
    /// Among the 5 nearest.
    pub s_at_5: f64,
    /// Among the 10 nearest.
    pub s_at_10: f64,
}
