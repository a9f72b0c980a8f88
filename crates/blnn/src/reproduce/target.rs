//! [`Target`]: the tables and figures of the paper, by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};
use crate::nearest::nearest;
use crate::published::Metric;

/// A table or figure of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Table 1: sizes and homophily of the data sets.
    Datasets,
    /// Table 2: node classification.
    Classification,
    /// Table 3: node clustering.
    Clustering,
    /// Table 4: similarity search.
    Similarity,
    /// Table 5: the ablations.
    Ablation,
    /// Figure 2: what neighbours as positives do to BGRL.
    Motivation,
    /// Figure 3: do similar, and strongly weighted, neighbours share a class?
    CaseStudy,
    /// Figure 4: accuracy over the attention's temperature.
    Temperature,
    /// Figure 5: t-SNE maps and compactness.
    Map,
}

/// The word that asks for the ledger alone.
const LEDGER: &str = "ledger";

/// The paper's five data sets, in its order.
const ALL_FIVE: [&str; 5] = ["wikics", "photo", "computers", "cs", "physics"];

impl Target {
    /// All targets, in the paper's order.
    pub const ALL: [Self; 9] = [
        Self::Datasets,
        Self::Classification,
        Self::Clustering,
        Self::Similarity,
        Self::Ablation,
        Self::Motivation,
        Self::CaseStudy,
        Self::Temperature,
        Self::Map,
    ];

    /// The name used in commands and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Datasets => "datasets",
            Self::Classification => "classification",
            Self::Clustering => "clustering",
            Self::Similarity => "similarity",
            Self::Ablation => "ablation",
            Self::Motivation => "motivation",
            Self::CaseStudy => "case-study",
            Self::Temperature => "temperature",
            Self::Map => "map",
        }
    }

    /// Whether it is made of embeddings, so that the scores of a run are not enough.
    pub(super) fn shows_embeddings(self) -> bool {
        matches!(self, Self::CaseStudy | Self::Map)
    }

    /// The targets a user named; all of them if none was. `ledger` asks for no target: the ledger
    /// is written anyway.
    ///
    /// ```
    /// use blnn::reproduce::Target;
    /// assert_eq!(Target::select(&["map", "map"]).unwrap(), [Target::Map]);
    /// assert_eq!(Target::select::<&str>(&[]).unwrap().len(), 9);
    /// assert!(Target::select(&["ledger"]).unwrap().is_empty());
    /// ```
    ///
    /// # Errors
    /// If a name is unknown; the message has the nearest one, or all.
    pub fn select<S: AsRef<str>>(names: &[S]) -> Result<Vec<Self>> {
        if names.is_empty() {
            return Ok(Self::ALL.to_vec());
        }
        let mut chosen = Vec::new();
        for name in names.iter().map(AsRef::as_ref).filter(|name| *name != LEDGER) {
            let found = Self::ALL.into_iter().find(|target| target.name() == name);
            chosen.push(found.ok_or_else(|| unknown(name))?);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    /// Its place in the paper.
    pub fn place(self) -> &'static str {
        match self {
            Self::Datasets => "Table 1",
            Self::Classification => "Table 2",
            Self::Clustering => "Table 3",
            Self::Similarity => "Table 4",
            Self::Ablation => "Table 5",
            Self::Motivation => "Figure 2",
            Self::CaseStudy => "Figure 3",
            Self::Temperature => "Figure 4",
            Self::Map => "Figure 5",
        }
    }

    /// What it shows, in a line.
    pub fn title(self) -> &'static str {
        match self {
            Self::Datasets => "Sizes and edge homophily of the data sets",
            Self::Classification => "Node classification: accuracy, %",
            Self::Clustering => "Node clustering: NMI and homogeneity, %",
            Self::Similarity => "Similarity search: S@5 and S@10, %",
            Self::Ablation => "Ablation: accuracy, %",
            Self::Motivation => "Neighbours as positives of BGRL: accuracy, %",
            Self::CaseStudy => "Homophily of similar and of strongly weighted neighbours",
            Self::Temperature => "Accuracy over the temperature of the attention, %",
            Self::Map => "t-SNE maps and intra-class compactness",
        }
    }

    /// The data sets the paper shows it on.
    pub fn datasets(self) -> &'static [&'static str] {
        match self {
            Self::Datasets
            | Self::Classification
            | Self::Clustering
            | Self::Similarity
            | Self::Ablation => &ALL_FIVE,
            Self::Motivation => &["wikics", "computers", "cs"],
            Self::CaseStudy | Self::Map => &["computers"],
            Self::Temperature => &["photo", "computers", "cs"],
        }
    }

    /// What its rows measure.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Datasets | Self::CaseStudy => &[],
            Self::Classification | Self::Ablation | Self::Motivation | Self::Temperature => {
                &[Metric::Accuracy]
            }
            Self::Clustering => &[Metric::Nmi, Metric::Homogeneity],
            Self::Similarity => &[Metric::SAt5, Metric::SAt10],
            Self::Map => &[Metric::Compactness],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn unknown(name: &str) -> Error {
    let names = || Target::ALL.into_iter().map(Target::name).chain([LEDGER]);
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Error::new(ErrorKind::Config, format!("unknown target `{name}`; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_answered_with_the_nearest_or_all() {
        let text = Target::select(&["clasification"]).unwrap_err().to_string();
        assert!(text.contains("did you mean `classification`?"), "{text}");
        let text = Target::select(&["table-9"]).unwrap_err().to_string();
        assert!(text.contains("datasets, classification") && text.contains("ledger"), "{text}");
    }

    #[test]
    fn names_are_those_of_the_files() {
        for target in Target::ALL {
            assert_eq!(serde_json::to_value(target).unwrap(), target.name());
        }
    }

    #[test]
    fn targets_come_once_and_in_the_papers_order() {
        let chosen = Target::select(&["map", "ledger", "datasets", "map"]).unwrap();
        assert_eq!(chosen, [Target::Datasets, Target::Map]);
    }
}
