//! Scores as a table a person reads, as JSON and as CSV.

use std::io::{self, Write};

use blnn::eval::{ClassifyScores, Comparison, Scores, Summary, Task};
use serde_json::{Map, Value, json};

use crate::output::{duration, grouped};

/// One file of embeddings and its scores.
pub(super) struct Scored {
    pub(super) name: String,
    pub(super) scores: Scores,
    pub(super) seconds: Vec<(Task, f64)>,
    pub(super) threads: usize,
}

impl Scored {
    fn seconds_of(&self, task: Task) -> f64 {
        let found = self.seconds.iter().find(|s| s.0 == task);
        found.map_or(0.0, |s| s.1)
    }

    fn to_json(&self) -> serde_json::Result<Value> {
        let mut object = Map::from_iter([("embeddings".to_owned(), json!(self.name))]);
        if let Value::Object(scores) = serde_json::to_value(&self.scores)? {
            object.extend(scores);
        }
        let times = self.seconds.iter().map(|(task, s)| (task.name().to_owned(), json!(s)));
        object.insert("seconds".into(), Value::Object(times.collect()));
        object.insert("threads".into(), json!(self.threads));
        Ok(Value::Object(object))
    }
}

/// The classification of two embeddings, compared split by split, for each protocol both have.
fn comparisons(scored: &[Scored]) -> Vec<(&'static str, Comparison)> {
    let [a, b] = scored else {
        return Vec::new();
    };
    let pairs = [
        ("classify", &a.scores.classify, &b.scores.classify),
        ("classify_paper", &a.scores.classify_paper, &b.scores.classify_paper),
    ];
    let compare = |(key, a, b): (_, &Option<ClassifyScores>, &Option<ClassifyScores>)| {
        Some((key, a.as_ref()?.compare(b.as_ref()?)))
    };
    pairs.into_iter().filter_map(compare).collect()
}

/// One object: the scores, or with two embeddings `first`, `second` and `comparison`.
pub(super) fn json(out: &mut impl Write, scored: &[Scored]) -> anyhow::Result<()> {
    let value = match scored {
        [a, b] => {
            let compared: Map<String, Value> = comparisons(scored)
                .into_iter()
                .map(|(key, c)| Ok((key.to_owned(), serde_json::to_value(c)?)))
                .collect::<serde_json::Result<_>>()?;
            json!({ "first": a.to_json()?, "second": b.to_json()?, "comparison": compared })
        }
        many => {
            json!(many.iter().map(Scored::to_json).collect::<serde_json::Result<Vec<_>>>()?.first())
        }
    };
    writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
    Ok(())
}

/// One value a line.
pub(super) fn csv(out: &mut impl Write, scored: &[Scored]) -> io::Result<()> {
    writeln!(out, "embeddings,task,measure,value")?;
    for one in scored {
        let name = csv_field(&one.name);
        for (task, measure, value) in values(&one.scores) {
            writeln!(out, "{name},{task},{measure},{value}")?;
        }
        for (task, seconds) in &one.seconds {
            writeln!(out, "{name},{task},seconds,{seconds}")?;
        }
    }
    for (task, c) in comparisons(scored) {
        for (split, difference) in c.differences.iter().enumerate() {
            writeln!(out, "first - second,{task},split {},{difference}", split + 1)?;
        }
        writeln!(out, "first - second,{task},mean,{}", c.summary.mean)?;
        writeln!(out, "first - second,{task},p_value,{}", c.p_value)?;
        writeln!(out, "first - second,{task},p_value_corrected,{}", c.p_value_corrected)?;
    }
    Ok(())
}

fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Every value of the scores: task, measure, value.
fn values(scores: &Scores) -> Vec<(&'static str, String, f64)> {
    let mut rows = Vec::new();
    let mut summary = |task, prefix: &str, s: &Summary| {
        let named = [
            ("mean", s.mean),
            ("std", s.std),
            ("low_95", s.confidence_95[0]),
            ("high_95", s.confidence_95[1]),
        ];
        rows.extend(named.map(|(measure, value)| (task, format!("{prefix}{measure}"), value)));
    };
    if let Some(c) = &scores.cluster {
        summary("cluster", "nmi_", &c.nmi.summary);
        summary("cluster", "homogeneity_", &c.homogeneity.summary);
    }
    let classified = [("classify", &scores.classify), ("classify_paper", &scores.classify_paper)];
    for (task, c) in classified.into_iter().filter_map(|(t, c)| Some((t, c.as_ref()?))) {
        summary(task, "", &c.summary);
    }
    for (task, c) in classified.into_iter().filter_map(|(t, c)| Some((t, c.as_ref()?))) {
        let split = |(i, v): (usize, &f64)| (task, format!("split {}", i + 1), *v);
        rows.extend(c.per_split.iter().enumerate().map(split));
    }
    if let Some(s) = scores.similar {
        rows.push(("similar", "s_at_5".into(), s.s_at_5));
        rows.push(("similar", "s_at_10".into(), s.s_at_10));
    }
    rows.extend(scores.compactness.map(|c| ("compactness", "mean cosine".into(), c)));
    rows
}

/// For people.
pub(super) fn table(out: &mut impl Write, scored: &[Scored]) -> io::Result<()> {
    for one in scored {
        heading(out, one)?;
        for row in rows(one) {
            writeln!(out, "{row}")?;
        }
        writeln!(out)?;
    }
    for (key, c) in comparisons(scored) {
        compared(out, key, &c)?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, one: &Scored) -> io::Result<()> {
    let s = &one.scores;
    writeln!(
        out,
        "{}: {} nodes × {}, {} classes; seeds: splits {}, folds {}, k-means from {}",
        one.name,
        grouped(s.nodes),
        s.dimensions,
        s.classes,
        s.seeds.splits,
        s.seeds.folds,
        s.seeds.kmeans
    )?;
    writeln!(
        out,
        "{:12} {:13} {:>15}  {:17} {:>8}",
        "task", "score", "mean ± std", "95 % interval", "time"
    )
}

/// The lines of the table, without the heading.
fn rows(one: &Scored) -> Vec<String> {
    let mut rows = Vec::new();
    let mut task = "";
    let mut row = |t: Task, score: &str, value: String, interval: String, rest: String| {
        let time = if t.name() == task { String::new() } else { duration(one.seconds_of(t)) };
        let shown = if t.name() == task { "" } else { t.name() };
        task = t.name();
        let line = format!("{shown:12} {score:13} {value:>15}  {interval:17} {time:>8}  {rest}");
        rows.push(line.trim_end().to_owned());
    };
    let s = &one.scores;
    for c in [&s.classify, &s.classify_paper].into_iter().flatten() {
        let rest = format!("{} splits, {}", c.per_split.len(), c.protocol);
        row(Task::Classify, "accuracy %", spread(&c.summary), interval(&c.summary), rest);
    }
    if let Some(c) = &s.cluster {
        let rest = format!("{} repeats", c.nmi.per_repeat.len());
        for (name, score) in [("NMI %", &c.nmi.summary), ("homogeneity %", &c.homogeneity.summary)]
        {
            row(Task::Cluster, name, spread(score), interval(score), rest.clone());
        }
    }
    if let Some(c) = s.similar {
        for (name, score) in [("S@5 %", c.s_at_5), ("S@10 %", c.s_at_10)] {
            row(Task::Similar, name, format!("{score:.2}       "), String::new(), String::new());
        }
    }
    if let Some(c) = s.compactness {
        row(Task::Compactness, "cosine", format!("{c:.4}       "), String::new(), String::new());
    }
    rows
}

fn spread(s: &Summary) -> String {
    format!("{:.2} ± {:>4.2}", s.mean, s.std)
}

fn interval(s: &Summary) -> String {
    format!("{:.2} to {:.2}", s.confidence_95[0], s.confidence_95[1])
}

fn compared(out: &mut impl Write, key: &str, c: &Comparison) -> io::Result<()> {
    let name = if key == "classify" { "classify" } else { "classify (paper)" };
    if let [difference] = c.differences[..] {
        return writeln!(
            out,
            "{name}, first minus second on one split: {difference:+.2} points; one split does not tell \
             whether that is chance"
        );
    }
    writeln!(
        out,
        "{name}, first minus second over {} splits: {:+.2} ± {:.2} points, 95 % interval {:+.2} to {:+.2}; \
         better on {}, equal on {}, worse on {}; p = {:.3} over these splits, {:.3} corrected for their overlap",
        c.differences.len(),
        c.summary.mean,
        c.summary.std,
        c.summary.confidence_95[0],
        c.summary.confidence_95[1],
        c.wins,
        c.ties,
        c.losses,
        c.p_value,
        c.p_value_corrected
    )
}
