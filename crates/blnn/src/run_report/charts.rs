//! The charts of a run.

use std::fmt::Write as _;

use blnn_kernels::Matrix;

use crate::error::Result;
use crate::eval::{
    NEIGHBOURS_PER_INTERVAL, PAIRS_PER_INTERVAL, attention_weights, compactness_by_class,
    homophily_by_similarity, homophily_by_weight,
};
use crate::graph::Graph;
use crate::report::{Chart, Kind, Section, Series, Variant};
use crate::run::Record;

use super::SCORES;

/// Points of one curve; more would not show.
const MOST_POINTS: usize = 1500;

/// Intervals a small graph's pairs are cut into.
const FEWEST_INTERVALS: usize = 20;

/// Anchors the reader can choose from, and intervals of their neighbours.
const ANCHORS: usize = 8;
const ANCHOR_INTERVALS: usize = 8;

/// Curves over the epochs.
pub(super) fn training(records: &[Record]) -> Vec<Chart> {
    let losses = [
        curve("loss", records, |r| Some(r.loss)),
        curve("node term", records, |r| Some(r.node_loss)),
        curve("neighbour term", records, |r| Some(r.neighbour_loss)),
    ];
    let scores = SCORES.map(|(key, name)| curve(name, records, |r| r.scores.get(key).copied()));
    let rate = [curve("learning rate", records, |r| Some(r.learning_rate))];
    let decay = [curve("decay", records, |r| Some(r.ema_decay))];
    let rank = [curve("effective rank", records, |r| r.health.as_ref().map(|h| h.effective_rank))];
    let spread = [curve("spread", records, |r| r.health.as_ref().map(|h| h.spread))];
    let charts = [
        lines("loss", "Loss", "What was minimised, and its two terms.", "loss", losses.into()),
        scores_chart(scores.into()),
        lines("learning-rate", "Learning rate", "Warm-up, then a cosine.", "rate", rate.into()),
        lines(
            "ema",
            "Moving average",
            "How much of itself the target network keeps in a step.",
            "decay",
            decay.into(),
        ),
        lines(
            "rank",
            "Effective rank",
            "Dimensions the embedding makes use of; a fall towards 1 is a collapse.",
            "dimensions",
            rank.into(),
        ),
        lines(
            "spread",
            "Spread",
            "1 if embeddings point everywhere, 0 if all point one way.",
            "spread",
            spread.into(),
        ),
    ];
    charts.into_iter().flatten().collect()
}

fn curve(name: &str, records: &[Record], value: impl Fn(&Record) -> Option<f64>) -> Series {
    let all = records.iter().filter_map(|r| Some((r.epoch as f64, value(r)?)));
    let all: Vec<(f64, f64)> = all.filter(|p| p.1.is_finite()).collect();
    let stride = all.len().div_ceil(MOST_POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let kept = |(i, point): (usize, &(f64, f64))| {
        (i.is_multiple_of(stride) || i == last).then_some(*point)
    };
    Series { name: name.to_owned(), points: all.iter().enumerate().filter_map(kept).collect() }
}

/// A chart over epochs, unless nothing was recorded. Terms that are always zero are left out.
fn lines(id: &str, title: &str, note: &str, y_label: &str, series: Vec<Series>) -> Option<Chart> {
    let several = series.len() > 1;
    let silent = |s: &Series| s.points.is_empty() || several && s.points.iter().all(|p| p.1 == 0.0);
    let series: Vec<Series> = series.into_iter().filter(|s| !silent(s)).collect();
    (!series.is_empty()).then(|| Chart {
        id: id.to_owned(),
        section: Section::Training,
        kind: Kind::Lines,
        title: title.to_owned(),
        note: note.to_owned(),
        x_label: "epoch".to_owned(),
        y_label: y_label.to_owned(),
        percent: false,
        variants: vec![Variant { name: String::new(), categories: Vec::new(), series }],
    })
}

/// Curves of the scores, or bars where the embedding was scored once.
fn scores_chart(series: Vec<Series>) -> Option<Chart> {
    let once = series.iter().all(|s| s.points.len() < 2);
    let mut chart = lines("scores", "Scores", "On the paper's tasks.", "percent", series)?;
    let variant = &mut chart.variants[0];
    if once {
        chart.kind = Kind::Bars;
        chart.x_label = String::new();
        let epoch = variant.series[0].points[0].0;
        let _ = write!(chart.note, " After epoch {epoch}.");
        variant.categories = variant.series.iter().map(|s| s.name.clone()).collect();
        let bars = variant.series.iter().enumerate().map(|(i, s)| (i as f64, s.points[0].1));
        variant.series = vec![Series { name: "score".to_owned(), points: bars.collect() }];
    }
    Some(chart)
}

/// What the embeddings know of the classes: the paper's case study, and compactness.
pub(super) struct CaseStudy<'a> {
    pub(super) embeddings: &'a Matrix,
    pub(super) graph: &'a Graph,
    pub(super) labels: &'a [u32],
    pub(super) ids: &'a [String],
    pub(super) temperature: f64,
}

impl CaseStudy<'_> {
    pub(super) fn charts(&self) -> Result<Vec<Chart>> {
        let charts = [self.by_cosine()?, self.by_attention()?, self.compactness()?];
        Ok(charts.into_iter().flatten().collect())
    }

    fn by_cosine(&self) -> Result<Option<Chart>> {
        let pairs = self.graph.entries();
        if pairs == 0 {
            return Ok(None);
        }
        let interval = pairs.div_ceil(FEWEST_INTERVALS).min(PAIRS_PER_INTERVAL);
        let (adjacency, labels) = (self.graph.adjacency(), self.labels);
        let shares = homophily_by_similarity(self.embeddings, adjacency, labels, interval)?;
        let note = format!(
            "All node-neighbour pairs, sorted by the cosine of their embeddings, most similar \
             first, in intervals of {}: the share of pairs of one class. A fall from left to right \
             says that similar neighbours are like ones.",
            super::grouped(interval)
        );
        Ok(Some(Chart {
            id: "homophily".to_owned(),
            section: Section::Classes,
            kind: Kind::Bars,
            title: "Similar neighbours share a class".to_owned(),
            note,
            x_label: "pairs, most similar first".to_owned(),
            y_label: "same class".to_owned(),
            percent: true,
            variants: vec![intervals(String::new(), &shares, interval, pairs)],
        }))
    }

    /// The neighbours of the nodes with most of them.
    fn by_attention(&self) -> Result<Option<Chart>> {
        let adjacency = self.graph.adjacency();
        let mut anchors: Vec<usize> = (0..self.graph.nodes()).collect();
        anchors.sort_by_key(|&i| std::cmp::Reverse(adjacency.row(i).len()));
        anchors.truncate(ANCHORS);
        anchors.retain(|&i| !adjacency.row(i).is_empty());
        let variants: Result<Vec<Variant>> = anchors.iter().map(|&i| self.anchor(i)).collect();
        let variants = variants?;
        let note = format!(
            "The neighbours of one well-connected node, sorted by their attention weight (softmax \
             of the cosines of the final embeddings, temperature {}), heaviest first: the share \
             that has the node's class.",
            self.temperature
        );
        Ok((!variants.is_empty()).then(|| Chart {
            id: "anchor".to_owned(),
            section: Section::Classes,
            kind: Kind::Bars,
            title: "Attention finds neighbours of one's class".to_owned(),
            note,
            x_label: "neighbours, heaviest first".to_owned(),
            y_label: "same class".to_owned(),
            percent: true,
            variants,
        }))
    }

    fn anchor(&self, anchor: usize) -> Result<Variant> {
        let adjacency = self.graph.adjacency();
        let count = adjacency.row(anchor).len();
        let interval = count.div_ceil(ANCHOR_INTERVALS).clamp(1, NEIGHBOURS_PER_INTERVAL);
        let weights = attention_weights(self.embeddings, adjacency, anchor, self.temperature);
        let shares = homophily_by_weight(adjacency, self.labels, anchor, &weights, interval)?;
        let name = format!("{} ({} neighbours)", self.ids[anchor], super::grouped(count));
        Ok(intervals(name, &shares, interval, count))
    }

    fn compactness(&self) -> Result<Option<Chart>> {
        let values = compactness_by_class(self.embeddings, self.labels)?;
        let known = values.iter().enumerate().filter_map(|(class, v)| Some((class, (*v)?)));
        let (classes, values): (Vec<usize>, Vec<f64>) = known.unzip();
        if classes.is_empty() {
            return Ok(None);
        }
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let categories = classes.iter().map(|&c| class_name(self.graph, c)).collect();
        let points = values.iter().enumerate().map(|(i, &v)| (i as f64, v)).collect();
        let series = vec![Series { name: "compactness".to_owned(), points }];
        let note = format!(
            "The mean cosine of two nodes of one class; {mean:.3} on average over the classes."
        );
        Ok(Some(Chart {
            id: "compactness".to_owned(),
            section: Section::Classes,
            kind: Kind::Bars,
            title: "Intra-class compactness".to_owned(),
            note,
            x_label: "class".to_owned(),
            y_label: "mean cosine".to_owned(),
            percent: false,
            variants: vec![Variant { name: String::new(), categories, series }],
        }))
    }
}

/// What people call a class.
pub(super) fn class_name(graph: &Graph, class: usize) -> String {
    graph.class_names().get(class).cloned().unwrap_or_else(|| format!("class {class}"))
}

/// Bars over consecutive intervals of `total` things.
fn intervals(name: String, shares: &[f64], interval: usize, total: usize) -> Variant {
    let range = |i: usize| {
        let end = ((i + 1) * interval).min(total);
        format!("{}–{}", super::grouped(i * interval + 1), super::grouped(end))
    };
    Variant {
        name,
        categories: (0..shares.len()).map(range).collect(),
        series: vec![Series {
            name: "same class".to_owned(),
            points: shares.iter().enumerate().map(|(i, &v)| (i as f64, v)).collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Features;
    use blnn_kernels::Pattern;
    use std::collections::BTreeMap;

    fn record(epoch: usize) -> Record {
        Record {
            epoch,
            loss: 1.0 / epoch as f64,
            node_loss: 1.0 / epoch as f64,
            neighbour_loss: 0.0,
            learning_rate: 0.1,
            ema_decay: 0.0,
            seconds: 0.0,
            health: None,
            scores: BTreeMap::new(),
            splits: None,
        }
    }

    #[test]
    fn only_what_was_recorded_is_drawn() {
        let charts = training(&[record(1), record(2)]);
        let ids: Vec<&str> = charts.iter().map(|c| c.id.as_str()).collect();
        assert_eq!(ids, ["loss", "learning-rate", "ema"]);
        let names: Vec<&str> =
            charts[0].variants[0].series.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["loss", "node term"], "BGRL has no neighbour term");
        assert!(training(&[]).is_empty());
    }

    #[test]
    fn a_single_evaluation_makes_bars() {
        let mut scored = record(2);
        scored.scores.insert("nmi".into(), 61.5);
        let charts = training(&[record(1), scored.clone()]);
        assert_eq!((charts[1].id.as_str(), charts[1].kind), ("scores", Kind::Bars));
        assert_eq!(charts[1].variants[0].categories, ["NMI"]);
        let mut later = scored.clone();
        later.epoch = 3;
        assert_eq!(training(&[scored, later])[1].kind, Kind::Lines);
    }

    #[test]
    fn long_curves_are_thinned_and_keep_their_ends() {
        let records: Vec<Record> = (1..=10_000).map(record).collect();
        let points = &training(&records)[0].variants[0].series[0].points;
        assert!(points.len() <= MOST_POINTS + 1, "{}", points.len());
        assert_eq!((points[0].0, points[points.len() - 1].0), (1.0, 10_000.0));
    }

    #[test]
    fn the_case_study_is_the_evaluators() {
        let star = Pattern::new(4, vec![0, 3, 4, 5, 6], vec![1, 2, 3, 0, 0, 0]).unwrap();
        let features = Features::Dense(Matrix::zeros(4, 1));
        let names = vec!["a".to_owned(), "b".to_owned()];
        let graph = Graph::new("star", star, features).unwrap();
        let graph = graph.with_labels(vec![0, 0, 1, 0], names).unwrap();
        let x = Matrix::from_vec(4, 2, vec![1.0, 0.0, 1.0, 0.1, 0.0, 1.0, 1.0, 0.3]);
        let ids: Vec<String> = (0..4).map(|i| format!("n{i}")).collect();
        let study = CaseStudy {
            embeddings: &x,
            graph: &graph,
            labels: graph.labels().unwrap(),
            ids: &ids,
            temperature: 0.5,
        };
        let charts = study.charts().unwrap();
        let shares = |at: usize| -> Vec<f64> {
            charts[at].variants[0].series[0].points.iter().map(|p| p.1).collect()
        };
        assert_eq!(shares(0), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0], "pairs by cosine");
        assert_eq!(shares(1), [1.0, 1.0, 0.0], "neighbours 1, 3, 2 of the hub");
        assert_eq!(charts[1].variants[0].name, "n0 (3 neighbours)");
        assert_eq!(charts[2].variants[0].categories, ["a"], "class b has one node");
    }
}
