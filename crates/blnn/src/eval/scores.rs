//! [`Scores`]: the results of an evaluation. All in percent but compactness.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::compare::{Comparison, Summary};
use super::plan::Seeds;

/// The name of the mean accuracy on the nodes that each split sets aside. It shows how a training
/// goes; it is no honest choice between embeddings, as other splits test on these nodes.
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
    /// What `metrics.jsonl` keeps of the scores.
    pub fn of_an_epoch(&self) -> EpochScores {
        EpochScores { by_name: self.by_name(), splits: self.split_accuracies() }
    }

    /// The accuracies split by split, by the protocol that sets nodes aside to choose by.
    fn split_accuracies(&self) -> Option<SplitAccuracies> {
        self.classified().find_map(|classified| {
            let validation = classified.per_split_validation.clone()?;
            Some(SplitAccuracies { validation, test: classified.per_split.clone() })
        })
    }

    fn classified(&self) -> impl Iterator<Item = &ClassifyScores> {
        [&self.classify, &self.classify_paper].into_iter().flatten()
    }

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
        if let Some(SplitAccuracies { validation, .. }) = self.split_accuracies() {
            add(VALIDATION_ACCURACY, Summary::of(&validation).mean);
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

/// What an evaluation leaves in the record of its epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EpochScores {
    /// The scores by name.
    pub by_name: BTreeMap<String, f64>,
    /// The accuracies split by split.
    pub splits: Option<SplitAccuracies>,
}

/// Accuracies on each split, in percent. A split may choose its epoch by its own validation nodes
/// and be tested on the others. The mean over all splits may not: what one split sets aside is
/// tested in another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitAccuracies {
    /// On the nodes set aside to choose by.
    pub validation: Vec<f64>,
    /// On the test nodes.
    pub test: Vec<f64>,
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
    /// Accuracy on the nodes that each split chose `C` by, where the protocol sets such nodes
    /// aside. A split may choose between embeddings by it; by the test accuracy it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_split_validation: Option<Vec<f64>>,
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
