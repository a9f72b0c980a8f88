//! Scores embeddings on the paper's downstream tasks: classification, clustering, similarity
//! search and intra-class compactness, and its case study of homophily.
//!
//! The module takes matrices and labels and knows nothing of models: it scores anybody's
//! embeddings. What each task does, and every choice the protocols leave open, is in its README.
//!
//! ```
//! use blnn::eval::{EvalPlan, evaluate};
//! use blnn_kernels::{Matrix, Threads};
//!
//! // Two classes on two axes, a little spread.
//! let x = Matrix::from_fn(60, 2, |i, j| if i % 2 == j { 1.0 } else { 0.002 * i as f32 });
//! let labels: Vec<u32> = (0..60).map(|i| i % 2).collect();
//! let plan = EvalPlan { splits: 3, repeats: 2, ..EvalPlan::default() };
//! let scores = evaluate(&x, &labels, None, &plan, &Threads::new(1), &mut |_| ())?;
//! assert_eq!(scores.classify.unwrap().summary.mean, 100.0);
//! assert_eq!(scores.similar.unwrap().s_at_5, 100.0);
//! # Ok::<(), blnn::Error>(())
//! ```

mod classify;
mod compactness;
mod compare;
mod homophily;
mod input;
mod kmeans;
mod logistic;
mod metrics;
mod plan;
mod rotation;
mod scores;
mod similarity;
mod splits;

use std::sync::Mutex;

use blnn_kernels::{Matrix, Threads};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::Splits;
use classify::{Probe, SplitScore};
use input::Classes;

pub use compare::{Comparison, Summary};
pub(crate) use homophily::attention_weights;
pub use homophily::{
    NEIGHBOURS_PER_INTERVAL, PAIRS_PER_INTERVAL, edge_homophily, homophily_by_similarity,
    homophily_by_weight,
};
pub use input::{check_labels, number_classes, row_fault};
pub use metrics::{homogeneity, normalized_mutual_information};
pub use plan::{EvalPlan, Protocol, Seeds, Task};
pub use scores::{
    ClassifyScores, ClusterScores, EpochScores, RepeatScores, Scores, SimilarScores,
    SplitAccuracies, VALIDATION_ACCURACY,
};
pub use splits::{RandomState, TrainTest, shuffle_splits};

/// Numbers of nearest nodes the similarity search reports.
const NEIGHBOURS: [usize; 2] = [5, 10];

/// Share of the nodes that random splits keep for testing.
const TEST_SHARE: f64 = 0.8;

/// How far an evaluation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The task at work.
    pub task: Task,
    /// Pieces done: 0 when the task starts, `total` when it ends.
    pub done: usize,
    /// Pieces of the task.
    pub total: usize,
}

/// Scores embeddings, one row a node, against the nodes' classes.
///
/// Classification uses `splits` if given, else the plan's random ones. The result is the same,
/// bit for bit, for any number of threads. `progress` hears of the start of each task and of each
/// piece of work done, from whichever thread did it.
///
/// # Errors
/// As [`check_labels`]; also if the number of embeddings is not that of labels, or an embedding
/// is zero or not finite. The message names the row.
pub fn evaluate(
    embeddings: &Matrix,
    labels: &[u32],
    splits: Option<&Splits>,
    plan: &EvalPlan,
    threads: &Threads,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Scores> {
    let unit = input::matching_unit_rows(embeddings, labels)?;
    check_labels(labels, splits, plan)?;
    let classes = Classes::new(labels);
    let mut scores = Scores {
        nodes: unit.rows(),
        dimensions: unit.cols(),
        classes: classes.count,
        seeds: plan.seeds(),
        classify: None,
        classify_paper: None,
        cluster: None,
        similar: None,
        compactness: None,
    };
    let job = Job { unit: &unit, classes: &classes, plan, threads };
    for task in Task::ALL.into_iter().filter(|t| plan.tasks.contains(t)) {
        job.run(task, splits, &mut scores, progress);
    }
    Ok(scores)
}

/// Clusters the directions of the rows by k-means, the best of ten starts: a cluster number below
/// `clusters` for each row.
///
/// # Errors
/// If a row is zero or not finite, or there are fewer rows than clusters.
pub fn cluster(
    embeddings: &Matrix,
    clusters: usize,
    seed: u32,
    threads: &Threads,
) -> Result<Vec<u32>> {
    if clusters == 0 || embeddings.rows() < clusters {
        let message = format!("{} rows do not make {clusters} clusters", embeddings.rows());
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let unit = input::unit_rows(embeddings)?;
    let found = kmeans::KMeans::new(&unit, clusters).repeat(seed, 1, threads, &Mutex::new(|| {}));
    Ok(found.into_iter().flatten().collect())
}

/// The intra-class compactness of each class number from 0 on, or `None` for a class with fewer
/// than two nodes: the mean cosine over its pairs of nodes.
///
/// # Errors
/// If there is not one label a row, or a row is zero or not finite.
pub fn compactness_by_class(embeddings: &Matrix, labels: &[u32]) -> Result<Vec<Option<f64>>> {
    let unit = input::matching_unit_rows(embeddings, labels)?;
    let classes = labels.iter().max().map_or(0, |&most| most as usize + 1);
    let values = compactness::by_class(&unit, labels, classes);
    Ok(values.into_iter().map(|v| v.is_finite().then_some(v)).collect())
}

/// Checked input of all tasks.
struct Job<'a> {
    unit: &'a Matrix,
    classes: &'a Classes,
    plan: &'a EvalPlan,
    threads: &'a Threads,
}

impl Job<'_> {
    fn run(
        &self,
        task: Task,
        splits: Option<&Splits>,
        scores: &mut Scores,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) {
        let (mut done, total) = (0, self.pieces(task, splits));
        progress(Progress { task, done, total });
        let tick = Mutex::new(|| {
            done += 1;
            progress(Progress { task, done, total });
        });
        match task {
            Task::Classify => self.classify(splits, scores, &tick),
            Task::Cluster => scores.cluster = Some(self.cluster(&tick)),
            Task::Similar => scores.similar = Some(self.similar(&tick)),
            Task::Compactness => {
                let Classes { labels, count } = self.classes;
                scores.compactness = Some(compactness::compactness(self.unit, labels, *count));
                classify::report(&tick);
            }
        }
    }

    fn pieces(&self, task: Task, splits: Option<&Splits>) -> usize {
        match task {
            Task::Classify => match (splits, self.plan.protocol) {
                (Some(public), _) => public.train.len(),
                (None, Protocol::PublishedCode) => self.plan.splits * classify::PIECES_A_SPLIT,
                (None, Protocol::Paper) => self.plan.splits,
                (None, Protocol::Both) => self.plan.splits * (classify::PIECES_A_SPLIT + 1),
            },
            Task::Cluster => self.plan.repeats * kmeans::PIECES_A_REPEAT,
            Task::Similar => similarity::pieces(self.unit.rows()),
            Task::Compactness => 1,
        }
    }

    fn classify(&self, splits: Option<&Splits>, scores: &mut Scores, tick: classify::Tick<'_>) {
        let x = rotation::with_intercept_on_axes(self.unit, self.threads);
        let probe = Probe {
            x: &x,
            labels: &self.classes.labels,
            classes: self.classes.count,
            threads: self.threads,
        };
        if let Some(public) = splits {
            let ratio = count(public.test_mask(0)) as f64 / count(&public.train[0]) as f64;
            let found = probe.masks(public, tick);
            scores.classify = Some(classify_scores("public-splits", &found, ratio));
            return;
        }
        let seeds = self.plan.seeds();
        let random = shuffle_splits(seeds.splits, self.plan.splits, x.rows(), TEST_SHARE);
        let ratio = random[0].test.len() as f64 / random[0].train.len() as f64;
        let published = || {
            let found = probe.published(&random, seeds.folds, tick);
            classify_scores("published-code", &found, ratio)
        };
        let paper = || {
            let train = random[0].train.len() / 2;
            let ratio = random[0].test.len() as f64 / train as f64;
            classify_scores("paper", &probe.paper(&random, tick), ratio)
        };
        match self.plan.protocol {
            Protocol::PublishedCode => scores.classify = Some(published()),
            Protocol::Paper => scores.classify = Some(paper()),
            Protocol::Both => {
                scores.classify = Some(published());
                scores.classify_paper = Some(paper());
            }
        }
    }

    fn cluster(&self, tick: classify::Tick<'_>) -> ClusterScores {
        let data = kmeans::KMeans::new(self.unit, self.classes.count);
        let seed = self.plan.seeds().kmeans;
        let found = data.repeat(seed, self.plan.repeats, self.threads, tick);
        let score = |f: fn(&[u32], &[u32]) -> f64| {
            let percent = |clusters: &Vec<u32>| 100.0 * f(&self.classes.labels, clusters);
            RepeatScores::new(found.iter().map(percent).collect())
        };
        ClusterScores { nmi: score(normalized_mutual_information), homogeneity: score(homogeneity) }
    }

    fn similar(&self, tick: classify::Tick<'_>) -> SimilarScores {
        let labels = &self.classes.labels;
        let shares =
            similarity::same_class_share(self.unit, labels, &NEIGHBOURS, self.threads, tick);
        SimilarScores { s_at_5: 100.0 * shares[0], s_at_10: 100.0 * shares[1] }
    }
}

fn count(mask: &[bool]) -> usize {
    mask.iter().filter(|&&m| m).count()
}

fn classify_scores(
    protocol: &'static str,
    found: &[SplitScore],
    test_to_train: f64,
) -> ClassifyScores {
    let per_split: Vec<f64> = found.iter().map(|s| 100.0 * s.accuracy).collect();
    ClassifyScores {
        protocol,
        per_split_validation: found.iter().map(|s| Some(100.0 * s.validation?)).collect(),
        summary: Summary::of(&per_split),
        penalties: found.iter().map(|s| 2.0_f64.powi(s.exponent)).collect(),
        per_split,
        test_to_train,
    }
}
