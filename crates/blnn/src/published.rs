//! The numbers that the BLNN paper reports, from one table file (`data/published.toml`).
//!
//! ```
//! use blnn::published::{Metric, methods, value};
//!
//! let blnn = value(Metric::Accuracy, "BLNN", "photo").unwrap();
//! assert_eq!((blnn.mean, blnn.std), (93.54, Some(0.23)));
//! assert!(value(Metric::Accuracy, "BLNN", "cora").is_none());
//! assert!(methods(Metric::Nmi).contains(&"AFGRL"));
//! ```

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// What is measured of an embedding. Percent, but for compactness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Test accuracy of logistic regression.
    Accuracy,
    /// Normalised mutual information of k-means clusters and classes.
    Nmi,
    /// Homogeneity of k-means clusters.
    Homogeneity,
    /// Same-class share of the 5 nearest nodes.
    #[serde(rename = "s_at_5")]
    SAt5,
    /// Same-class share of the 10 nearest nodes.
    #[serde(rename = "s_at_10")]
    SAt10,
    /// Mean cosine within classes, from −1 to 1.
    Compactness,
}

impl Metric {
    /// All metrics, in the paper's order.
    pub const ALL: [Self; 6] =
        [Self::Accuracy, Self::Nmi, Self::Homogeneity, Self::SAt5, Self::SAt10, Self::Compactness];

    /// The name used in files: that of the scores in `metrics.jsonl`.
    pub fn key(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Nmi => "nmi",
            Self::Homogeneity => "homogeneity",
            Self::SAt5 => "s_at_5",
            Self::SAt10 => "s_at_10",
            Self::Compactness => "compactness",
        }
    }

    /// The name people read.
    pub fn label(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Nmi => "NMI",
            Self::Homogeneity => "homogeneity",
            Self::SAt5 => "S@5",
            Self::SAt10 => "S@10",
            Self::Compactness => "compactness",
        }
    }
}

/// One cell of a table: a number and, where given, its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    pub mean: f64,
    /// Its standard deviation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
}

/// Where the numbers come from.
pub fn source() -> &'static str {
    &TABLES.source
}

/// What the paper reports for a method on a data set, if it does.
pub fn value(metric: Metric, method: &str, dataset: &str) -> Option<Value> {
    let cell = TABLES.metrics.get(metric.key())?.get(method)?.get(dataset)?;
    Some(Value { mean: *cell.first()?, std: cell.get(1).copied() })
}

/// The methods the paper reports for a metric, in its order.
pub fn methods(metric: Metric) -> Vec<&'static str> {
    let known = |name: &&String| {
        TABLES.metrics.get(metric.key()).is_some_and(|table| table.contains_key(*name))
    };
    TABLES.methods.iter().filter(known).map(String::as_str).collect()
}

type Table = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

#[derive(Debug, Deserialize)]
struct Tables {
    source: String,
    methods: Vec<String>,
    #[serde(flatten)]
    metrics: BTreeMap<String, Table>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/published.toml"))
        .expect("the file is compiled in, and a test reads it")
});

#[cfg(test)]
mod tests {
    use super::*;

    const DATASETS: [&str; 5] = ["wikics", "photo", "computers", "cs", "physics"];

    /// Rows as they stand in the paper's source, without bold face.
    const TABLE_2: [&str; 5] = [
        "MLP & 71.98±0.00 & 78.53±0.00 & 73.81±0.00 & 90.37±0.00 & 93.58±0.00",
        "ProGCL & 78.68±0.12 & 93.30±0.09 & 89.28±0.15 & 93.51±0.06 & -",
        "AFGRL & 77.62±0.49 & 93.22±0.28 & 89.88±0.33 & 93.27±0.17 & 95.69±0.10",
        "BGRL & 79.98±0.10 & 93.17±0.30 & 90.34±0.19 & 93.31±0.13 & 95.73±0.05",
        "BLNN & 80.48±0.52 & 93.54±0.23 & 91.02±0.23 & 93.61±0.15 & 95.86±0.10",
    ];
    const TABLE_3: [&str; 2] = [
        "BGRL & 39.69 & 41.56 & 68.41 & 70.04 & 53.64 & 58.69 & 77.32 & 80.41 & 55.68 & 60.18",
        "BLNN & 47.17 & 49.11 & 71.05 & 72.18 & 58.79 & 64.33 & 78.97 & 82.08 & 62.41 & 67.39",
    ];
    const TABLE_4: [&str; 2] = [
        "GCA & 77.86 & 76.73 & 91.12 & 90.52 & 88.26 & 87.42 & 91.26 & 91.00 & - & -",
        "BLNN & 80.27 & 79.04 & 92.61 & 91.96 & 89.91 & 89.12 & 91.90 & 91.59 & 95.39 & 95.01",
    ];

    fn parse(cell: &str) -> Option<Value> {
        let mut numbers = cell.trim().split('±').map(|number| number.parse().ok());
        Some(Value { mean: numbers.next()??, std: numbers.next().flatten() })
    }

    fn check(rows: &[&str], metrics: &[Metric]) {
        for row in rows {
            let mut cells = row.split('&');
            let method = cells.next().unwrap().trim();
            for dataset in DATASETS {
                for metric in metrics {
                    let want = parse(cells.next().unwrap());
                    assert_eq!(value(*metric, method, dataset), want, "{method} {dataset}");
                }
            }
        }
    }

    #[test]
    fn the_table_file_agrees_with_the_papers_text() {
        check(&TABLE_2, &[Metric::Accuracy]);
        check(&TABLE_3, &[Metric::Nmi, Metric::Homogeneity]);
        check(&TABLE_4, &[Metric::SAt5, Metric::SAt10]);
        let clean = DATASETS.map(|d| value(Metric::Accuracy, "BGRL, clean", d).unwrap().mean);
        assert_eq!(clean, [81.51, 93.66, 91.31, 93.92, 95.98]);
        let raw = value(Metric::Compactness, "raw features", "computers").unwrap();
        assert_eq!((raw.mean, raw.std), (0.4046, None));
    }

    #[test]
    fn every_method_of_every_table_has_its_place_in_the_order() {
        assert_eq!(TABLES.metrics.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            assert_eq!(methods(metric).len(), TABLES.metrics[metric.key()].len(), "{metric:?}");
        }
        assert_eq!(methods(Metric::Nmi), ["GRACE", "GCA", "AFGRL", "BGRL", "BLNN"]);
    }

    #[test]
    fn keys_are_those_of_the_files() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.key());
        }
    }
}
