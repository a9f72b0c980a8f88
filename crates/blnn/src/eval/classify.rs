//! Node classification: the reference's protocols around [`super::logistic`].

use std::sync::Mutex;

use blnn_kernels::tall::{BLOCK, TallMatrix};
use blnn_kernels::{Matrix, Threads};

use super::logistic::OneVsRest;
use super::splits::{TrainTest, shuffle_splits};
use crate::graph::Splits;

/// Exponents of the penalties tried: `C` from 2^-10 to 2^10.
const EXPONENTS: std::ops::RangeInclusive<i32> = -10..=10;

/// Shuffles of the training part by which the published code chooses `C`.
const FOLDS: usize = 5;

/// Accuracy of one split, and the exponent of the `C` chosen for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SplitScore {
    pub(super) accuracy: f64,
    pub(super) exponent: i32,
    /// Accuracy on the nodes `C` was chosen on, where the protocol sets such nodes aside.
    pub(super) validation: Option<f64>,
}

/// Features of all nodes, with intercept and rotated, and their classes.
pub(super) struct Probe<'a> {
    pub(super) x: &'a Matrix,
    pub(super) labels: &'a [u32],
    pub(super) classes: usize,
    pub(super) threads: &'a Threads,
}

/// Called after each piece of work.
pub(super) type Tick<'a> = &'a Mutex<dyn FnMut() + Send + 'a>;

/// Pieces of work the published protocol does for each split: its folds and the refit.
pub(super) const PIECES_A_SPLIT: usize = FOLDS + 1;

impl Probe<'_> {
    /// What the authors' code does: 20 % of the nodes train; `C` by the mean subset accuracy over
    /// five halvings of them, the smallest of the best; refitted on all; tested on the other 80 %.
    pub(super) fn published(
        &self,
        splits: &[TrainTest],
        fold_seed: u32,
        tick: Tick<'_>,
    ) -> Vec<SplitScore> {
        let mut folds: Vec<Option<FoldPath>> = (0..splits.len() * FOLDS).map(|_| None).collect();
        // Every training part has the same size, so all are halved by the same five shuffles.
        let halves =
            shuffle_splits(fold_seed, FOLDS, splits.first().map_or(0, |s| s.train.len()), 0.5);
        self.threads.for_each_owned(&mut folds, |job, out| {
            let train = &splits[job / FOLDS].train;
            let pick = |rows: &[u32]| rows.iter().map(|&r| train[r as usize]).collect();
            let half = &halves[job % FOLDS];
            *out = Some(self.fold(&TrainTest { train: pick(&half.train), test: pick(&half.test) }));
            report(tick);
        });
        let folds: Vec<FoldPath> = folds.into_iter().flatten().collect();
        let mut scores = vec![SplitScore::default(); splits.len()];
        self.threads.for_each_owned(&mut scores, |s, out| {
            *out = self.refit(&splits[s], &folds[s * FOLDS..(s + 1) * FOLDS]);
            report(tick);
        });
        scores
    }

    /// Fits the whole path on one half of a training part and scores it on the other.
    fn fold(&self, half: &TrainTest) -> FoldPath {
        let train = self.rows(&half.train);
        let held_out = self.rows(&half.test);
        let mut fits = OneVsRest::new(&train.x, &train.targets, self.classes);
        let mut path = FoldPath::default();
        for exponent in EXPONENTS {
            fits.fit(2.0_f64.powi(exponent));
            let right = held_out.right(&fits, Rule::EveryClass);
            path.scores.push(right as f64 / half.test.len() as f64);
            path.weights.push(fits.weights().to_vec());
        }

        path
    }

    fn refit(&self, split: &TrainTest, folds: &[FoldPath]) -> SplitScore {
        let mean = |c: usize| folds.iter().map(|f| f.scores[c]).sum::<f64>() / FOLDS as f64;
        let chosen = first_best(EXPONENTS.clone().enumerate().map(|(c, _)| mean(c)));
        let train = self.rows(&split.train);
        let mut fits = OneVsRest::new(&train.x, &train.targets, self.classes);
        let mut start = vec![0.0; fits.weights().len()];
        for fold in folds {
            for (s, w) in start.iter_mut().zip(&fold.weights[chosen]) {
                *s += w / FOLDS as f32;
            }
        }
        fits.start_from(&start);
        let exponent = EXPONENTS.start() + chosen as i32;
        fits.fit(2.0_f64.powi(exponent));
        let right = self.rows(&split.test).right(&fits, Rule::MostLikely);
        let accuracy = right as f64 / split.test.len() as f64;
        SplitScore { accuracy, exponent, validation: None }
    }

    /// The paper's text: of the 20 % half trains, half chooses `C` by its accuracy, no refit.
    pub(super) fn paper(&self, splits: &[TrainTest], tick: Tick<'_>) -> Vec<SplitScore> {
        let cut = |split: &TrainTest| {
            let (train, validation) = split.train.split_at(split.train.len() / 2);
            [train.to_vec(), validation.to_vec(), split.test.clone()]
        };
        self.by_validation(&splits.iter().map(cut).collect::<Vec<_>>(), tick)
    }

    /// Public splits: `C` by accuracy on the validation mask, no refit.
    pub(super) fn masks(&self, splits: &Splits, tick: Tick<'_>) -> Vec<SplitScore> {
        let rows = |mask: &[bool]| -> Vec<u32> {
            (0..mask.len() as u32).filter(|&i| mask[i as usize]).collect()
        };
        let parts = splits.train.iter().zip(&splits.validation).enumerate();
        let parts = parts.map(|(split, (train, validation))| {
            [rows(train), rows(validation), rows(splits.test_mask(split))]
        });
        self.by_validation(&parts.collect::<Vec<_>>(), tick)
    }

    /// Fits on the first part, chooses `C` by accuracy on the second, scores on the third.
    fn by_validation(&self, parts: &[[Vec<u32>; 3]], tick: Tick<'_>) -> Vec<SplitScore> {
        let mut scores = vec![SplitScore::default(); parts.len()];
        self.threads.for_each_owned(&mut scores, |s, out| {
            let [train, validation, test] = &parts[s];
            let (train, validation) = (self.rows(train), self.rows(validation));
            let mut fits = OneVsRest::new(&train.x, &train.targets, self.classes);
            let mut best: Option<(usize, i32, Vec<f32>)> = None;
            for exponent in EXPONENTS {
                fits.fit(2.0_f64.powi(exponent));
                let right = validation.right(&fits, Rule::MostLikely);
                if best.as_ref().is_none_or(|b| right > b.0) {
                    best = Some((right, exponent, fits.weights().to_vec()));
                }
            }
            if let Some((held_out, exponent, weights)) = best {
                fits.start_from(&weights);
                let right = self.rows(test).right(&fits, Rule::MostLikely);
                let accuracy = right as f64 / test.len() as f64;
                let validation = Some(held_out as f64 / parts[s][1].len() as f64);
                *out = SplitScore { accuracy, exponent, validation };
            }
            report(tick);
        });
        scores
    }

    fn rows(&self, rows: &[u32]) -> Rows {
        Rows {
            x: TallMatrix::gather(self.x, rows),
            targets: rows.iter().map(|&r| self.labels[r as usize]).collect(),
        }
    }
}

pub(super) fn report(tick: Tick<'_>) {
    // A panic elsewhere must not hide behind a poisoned progress bar.
    let mut tick = tick.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    tick();
}

/// Held-out scores and weights for every `C`.
#[derive(Default)]
struct FoldPath {
    scores: Vec<f64>,
    weights: Vec<Vec<f32>>,
}

/// Index of the first of the largest values.
fn first_best(values: impl Iterator<Item = f64>) -> usize {
    let keep = |best: (usize, f64), (i, v): (usize, f64)| if v > best.1 { (i, v) } else { best };
    values.enumerate().fold((0, f64::NEG_INFINITY), keep).0
}

/// When a row counts as classified correctly.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Every one-vs-rest decision is right: scikit-learn's subset accuracy, which its grid search
    /// uses because the reference passes one-hot targets.
    EveryClass,
    /// The class with the largest probability is the right one.
    MostLikely,
}

/// Some nodes, packed, with their classes.
struct Rows {
    x: TallMatrix,
    targets: Vec<u32>,
}

impl Rows {
    /// How many rows the fits classify correctly.
    fn right(&self, fits: &OneVsRest<'_>, rule: Rule) -> usize {
        let constant = fits.constant();
        let all: Vec<u32> = (0..constant.len() as u32).collect();
        let mut decisions = vec![0.0; all.len() * BLOCK];
        let mut right = 0;
        for block in 0..self.x.count() {
            self.x.times(block, fits.weights(), &all, &mut decisions);
            let rows = self.x.rows_in(block);
            overwrite_constant(&mut decisions, constant, rule);
            let targets = &self.targets[block * BLOCK..block * BLOCK + rows];
            right += match rule {
                Rule::EveryClass => right_in_every_class(&decisions, targets, threshold(constant)),
                Rule::MostLikely => right_by_most_likely(&decisions, targets),
            };
        }
        right
    }
}

/// Classes without a fit answer as scikit-learn's constant predictor: decision and probability
/// are 0 or 1. Fits are compared by decisions instead of probabilities, which order alike, so
/// there a constant is beyond any of them.
fn overwrite_constant(decisions: &mut [f32], constant: &[Option<bool>], rule: Rule) {
    for (decisions, constant) in decisions.chunks_mut(BLOCK).zip(constant) {
        if let Some(answer) = constant {
            decisions.fill(match (rule, answer) {
                (Rule::EveryClass, true) => 1.0,
                (Rule::EveryClass, false) => 0.0,
                (Rule::MostLikely, true) => f32::INFINITY,
                (Rule::MostLikely, false) => f32::NEG_INFINITY,
            });
        }
    }
}

/// scikit-learn asks the first class alone whether decisions are compared with 0 or with ½: a
/// constant predictor says ½, for all classes.
fn threshold(constant: &[Option<bool>]) -> f32 {
    if constant.first().is_some_and(Option::is_some) { 0.5 } else { 0.0 }
}

fn right_in_every_class(decisions: &[f32], targets: &[u32], threshold: f32) -> usize {
    let mut wrong = [false; BLOCK];
    for (class, decisions) in decisions.chunks(BLOCK).enumerate() {
        for ((wrong, d), &target) in wrong.iter_mut().zip(decisions).zip(targets) {
            *wrong |= (*d > threshold) != (target == class as u32);
        }
    }
    wrong[..targets.len()].iter().filter(|&&w| !w).count()
}

fn right_by_most_likely(decisions: &[f32], targets: &[u32]) -> usize {
    let (mut best, mut label) = ([f32::NEG_INFINITY; BLOCK], [0; BLOCK]);
    for (class, decisions) in decisions.chunks(BLOCK).enumerate() {
        for ((best, label), &d) in best.iter_mut().zip(&mut label).zip(decisions) {
            if d > *best {
                (*best, *label) = (d, class as u32);
            }
        }
    }
    label.iter().zip(targets).filter(|(a, b)| a == b).count()
}
