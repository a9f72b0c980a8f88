//! A [`Report`] in words: for a terminal and as Markdown, and its files.

use std::fmt::Write;

use crate::error::Result;
use crate::plan::Precision;
use crate::published::{self, Metric, Value};
use crate::text::grouped;

use super::Options;
use super::grid::Grid;
use super::provenance::Provenance;
use super::report::{Aggregate, Paired, Report, Row, RunRow, UnderWay};
use super::target::Target;
use super::trained::{write_json, write_text};

/// What stands where there is no number.
const NONE: &str = "–";

/// Writes `OUT/<target>.json` and `OUT/<target>.md`.
pub(super) fn write(options: &Options, report: &Report) -> Result<()> {
    let path = |ending: &str| options.out.join(format!("{}.{ending}", report.target));
    write_json(&path("json"), report)?;
    let link = |figure: &str| figure.to_owned();
    let runs = Provenance::of([report]).markdown(|_| None);
    write_text(&path("md"), &format!("# {}{runs}", &markdown(report, &link)[3..]))
}

/// The report for a terminal.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}: {} ({})\n\n", report.place, report.title, report.target);
    out.push_str(&numbers(report).plain());
    let pairs = pairs(report);
    if !pairs.is_empty() {
        let _ = write!(out, "\nDifferences seed by seed\n\n{}", pairs.plain());
    }
    if let Some(explained) = mark_explained(report) {
        let _ = write!(out, "\n{explained}\n");
    }
    for note in notes(report) {
        let _ = write!(out, "\nNote: {note}.");
    }
    if !report.figures.is_empty() {
        let _ = write!(out, "\nFigures: {}", report.figures.join(", "));
    }
    out.push('\n');
    out
}

/// The report as a section of Markdown; `link` gives the address of a figure's file. Its runs are
/// named; what trained them stands once, in a section of its own.
pub fn markdown(report: &Report, link: &dyn Fn(&str) -> String) -> String {
    let mut out = format!("## {}: {}\n\n", report.place, report.title);
    let notes = notes(report);
    for note in &notes {
        let _ = writeln!(out, "- {note}.");
    }
    if !notes.is_empty() {
        out.push('\n');
    }
    out.push_str(&numbers(report).markdown());
    add_section(&mut out, "Seed by seed", &pairs(report));
    if let Some(explained) = mark_explained(report) {
        let _ = write!(out, "\n{explained}\n");
    }
    for metric in report.target.metrics() {
        let title = format!("All published methods: {}", metric.label());
        add_folded(&mut out, &title, &all_methods(report, *metric));
    }
    add_folded(&mut out, "Run by run", &runs(report));
    for figure in &report.figures {
        let _ = write!(out, "\n![{}]({})\n", figure.trim_end_matches(".svg"), link(figure));
    }
    let commit = report.commit.as_ref().map_or(String::new(), |c| format!(", commit {c}"));
    let _ = write!(
        out,
        "\nPublished numbers: {}. Report of blnn {}{commit}.\n",
        report.source, report.version
    );
    out
}

fn add_section(out: &mut String, title: &str, grid: &Grid) {
    if !grid.is_empty() {
        let _ = write!(out, "\n**{title}**\n\n{}", grid.markdown());
    }
}

/// A table that most readers pass by: a page shows its title until it is clicked.
fn add_folded(out: &mut String, title: &str, grid: &Grid) {
    if !grid.is_empty() {
        let table = grid.markdown();
        let _ = write!(out, "\n<details><summary>{title}</summary>\n\n{table}\n</details>\n");
    }
}

/// What a reader must know: the report's notes, and the data sets that have no row to say that
/// they are missing.
fn notes(report: &Report) -> Vec<String> {
    let unsaid = |dataset: &str| !report.rows.iter().any(|row| row.dataset == dataset);
    let missing = report.missing.iter().filter(|missing| unsaid(&missing.dataset));
    let missing =
        missing.map(|missing| format!("without {}: {}", missing.dataset, missing.remark()));
    report.notes.iter().cloned().chain(missing).collect()
}

/// The main table: ours beside the published number.
fn numbers(report: &Report) -> Grid {
    let sizes = report.target == Target::Datasets;
    let last = if sizes { "ours" } else { "last epoch" };
    let mut grid = Grid::new(&[
        "data set",
        "method",
        "metric",
        "τ",
        "best of evaluations",
        last,
        "best, 1:1:8 split",
        "last, 1:1:8 split",
        "published",
        "difference",
        "last − published",
        "last, 1:1:8 − published",
        "remark",
    ]);
    let many_metrics = report.target.metrics().len() != 1;
    for row in &report.rows {
        let difference = |ours: Option<&Aggregate>| {
            ours.and_then(|ours| ours.difference).map_or(String::new(), |d| signed(&row.metric, d))
        };
        let split = |ours: Option<&Aggregate>| {
            ours.map_or(String::new(), |ours| aggregate(&row.metric, ours))
        };
        let best = row.best.is_some();
        grid.push(vec![
            row.dataset.clone(),
            if sizes { String::new() } else { row.method.clone() },
            if many_metrics { metric_label(&row.metric) } else { String::new() },
            row.temperature.map_or(String::new(), |t| t.to_string()),
            best_cell(row),
            ours(row, row.last.as_ref()),
            split(row.best_paper_split.as_ref()),
            split(row.paper_split.as_ref()),
            row.published.map_or(NONE.into(), |value| published_cell(&row.metric, value)),
            difference(row.headline()),
            difference(row.last.as_ref().filter(|_| best)),
            difference(row.paper_split.as_ref()),
            remark(row),
        ]);
    }
    grid
}

fn metric_label(key: &str) -> String {
    let known = Metric::ALL.into_iter().find(|metric| metric.key() == key);
    known.map_or_else(|| key.to_owned(), |metric| metric.label().to_owned())
}

fn best_cell(row: &Row) -> String {
    let Some(best) = &row.best else {
        return String::new();
    };
    match row.runs.as_slice() {
        [RunRow { best_split_std: Some(std), .. }] => {
            format!("{} ± {std:.2} (splits)", number(&row.metric, best.mean))
        }
        _ => aggregate(&row.metric, best),
    }
}

fn ours(row: &Row, value: Option<&Aggregate>) -> String {
    value.map_or(NONE.into(), |value| aggregate(&row.metric, value))
}

fn aggregate(metric: &str, value: &Aggregate) -> String {
    let spread = value.std.map_or(String::new(), |std| format!(" ± {}", number(metric, std)));
    number(metric, value.mean) + &spread
}

fn published_cell(metric: &str, value: Value) -> String {
    let spread = value.std.map_or(String::new(), |std| format!(" ± {std:.2}"));
    number(metric, value.mean) + &spread
}

fn remark(row: &Row) -> String {
    let waiting = seeds(&row.pending).map(|seeds| format!("{seeds} not trained yet"));
    let begun = row.under_way.iter().map(|run| begun(&row.metric, run));
    let all = row.remark.iter().cloned().chain(stand_ins(row)).chain(begun).chain(waiting);
    all.collect::<Vec<_>>().join("; ")
}

/// Some seeds in words; nothing of none.
fn seeds(all: &[u64]) -> Option<String> {
    let list: Vec<String> = all.iter().map(ToString::to_string).collect();
    match all {
        [] => None,
        [one] => Some(format!("seed {one}")),
        _ => Some(format!("seeds {}", list.join(", "))),
    }
}

/// Which seeds are runs of another precision than the one asked for.
fn stand_ins(row: &Row) -> impl Iterator<Item = String> {
    Precision::ALL.into_iter().filter_map(|precision| {
        let name = Some(precision.name());
        let runs = row.runs.iter().filter(|run| run.precision.as_deref() == name);
        let seeds = seeds(&runs.map(|run| run.seed).collect::<Vec<_>>())?;
        Some(format!("{seeds} in {}", precision.name()))
    })
}

/// How far a run came, and what it scored.
fn begun(metric: &str, UnderWay { epoch, run }: &UnderWay) -> String {
    let (epoch, epochs) = (grouped(*epoch), grouped(run.epochs));
    let best = run.best.map_or(String::new(), |b| format!(", best so far {}", number(metric, b)));
    let precision = run.precision.as_ref().map_or(String::new(), |name| format!(" in {name}"));
    format!("seed {}{precision} at epoch {epoch} of {epochs}{best}", run.seed)
}

/// Decimals of a metric: sizes have none.
fn decimals(metric: &str) -> usize {
    match metric {
        "nodes" | "edges" | "features" | "classes" => 0,
        "compactness" => 4,
        _ => 2,
    }
}

fn number(metric: &str, value: f64) -> String {
    match decimals(metric) {
        0 => grouped(value as usize),
        digits => format!("{value:.digits$}"),
    }
}

fn signed(metric: &str, value: f64) -> String {
    let digits = decimals(metric);
    let text = format!("{value:+.digits$}");
    // A difference that rounds to nothing has no sign.
    if text.trim_start_matches(['+', '-']).chars().all(|c| "0.".contains(c)) {
        text[1..].to_owned()
    } else {
        text
    }
}

/// What marks a difference between runs in two precisions.
const MARK: &str = "¹";

fn mark_explained(report: &Report) -> Option<String> {
    let is_marked = |pair: &Paired| pair.differences.iter().any(|d| d.across_precisions);
    report.paired.iter().any(is_marked).then(|| {
        format!(
            "{MARK} One of the two runs is in another precision than the other: see the remarks."
        )
    })
}

/// No p-value is zero.
fn p_value(p: f64) -> String {
    if p < 5e-4 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

/// Two methods compared seed by seed.
fn pairs(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "data set",
        "metric",
        "score",
        "compared",
        "by seed",
        "mean",
        "wins",
        "p",
        "published",
    ]);
    for pair in &report.paired {
        let Paired { dataset, metric, rule, first, second, differences, .. } = pair;
        let each = differences.iter().map(|d| {
            let mark = if d.across_precisions { MARK } else { "" };
            format!("{}: {}{mark}", d.seed, signed(metric, d.difference))
        });
        let spread = pair.std.map_or(String::new(), |std| format!(" ± {}", number(metric, std)));
        grid.push(vec![
            dataset.clone(),
            metric_label(metric),
            rule.clone(),
            format!("{first} − {second}"),
            each.collect::<Vec<_>>().join(", "),
            signed(metric, pair.mean) + &spread,
            format!("{} of {}", pair.wins, differences.len()),
            pair.p_value.map_or(String::new(), p_value),
            pair.published.map_or(NONE.into(), |d| signed(metric, d)),
        ]);
    }
    grid
}

/// The paper's table with our rows below it.
fn all_methods(report: &Report, metric: Metric) -> Grid {
    let tables = [Target::Classification, Target::Clustering, Target::Similarity];
    let mut datasets: Vec<&str> = report.rows.iter().map(|row| row.dataset.as_str()).collect();
    datasets.dedup();
    let header: Vec<&str> =
        ["method", "from"].into_iter().chain(datasets.iter().copied()).collect();
    let mut grid = Grid::new(&header);
    if !tables.contains(&report.target) {
        return grid;
    }
    for method in published::methods(metric).into_iter().filter(|name| !name.contains(", ")) {
        let cell = |name: &&str| match published::value(metric, method, name) {
            Some(value) => published_cell(metric.key(), value),
            None => NONE.to_owned(),
        };
        grid.push(row_of(method, "paper", datasets.iter().map(cell)));
    }
    let mut ours: Vec<&str> = report.rows.iter().map(|row| row.method.as_str()).collect();
    ours.sort_unstable();
    ours.dedup();
    for method in ours {
        let find = |name: &&str| {
            let wanted = |row: &&Row| {
                (row.dataset.as_str(), row.method.as_str(), row.metric.as_str())
                    == (name, method, metric.key())
            };
            report.rows.iter().find(wanted).and_then(Row::headline)
        };
        let cell =
            |name: &&str| find(name).map_or(NONE.to_owned(), |ours| aggregate(metric.key(), ours));
        grid.push(row_of(method, "ours, best", datasets.iter().map(cell)));
    }
    grid
}

fn row_of(method: &str, from: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [method.to_owned(), from.to_owned()].into_iter().chain(cells).collect()
}

/// The scores of every run behind the numbers, and of those that are not finished.
fn runs(report: &Report) -> Grid {
    let mut grid = Grid::new(&[
        "run",
        "metric",
        "epochs",
        "evaluations",
        "best",
        "at epoch",
        "last",
        "best, 1:1:8",
        "last, 1:1:8",
    ]);
    let many_metrics = report.target.metrics().len() != 1;
    for row in &report.rows {
        let finished = row.runs.iter().map(|run| (run, run.epochs.to_string()));
        let so_far = |begun: &UnderWay| format!("{} of {}", begun.epoch, begun.run.epochs);
        let unfinished = row.under_way.iter().map(|begun| (&begun.run, so_far(begun)));
        for (run, epochs) in finished.chain(unfinished) {
            let cell = |value: Option<f64>| value.map_or(String::new(), |v| number(&row.metric, v));
            grid.push(vec![
                run.key.clone(),
                if many_metrics { metric_label(&row.metric) } else { String::new() },
                epochs,
                run.evaluations.to_string(),
                cell(run.best),
                run.best.and(run.best_epoch).map_or(String::new(), |epoch| epoch.to_string()),
                cell(run.last),
                cell(run.best_paper_split),
                cell(run.paper_split),
            ]);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::SeedDifference;

    #[test]
    fn pairs_across_precisions_are_marked_and_explained() {
        let difference = |seed, across_precisions| SeedDifference {
            seed,
            first: 90.5,
            second: 90.0,
            difference: 0.5,
            across_precisions,
        };
        let mut report = Report::new(Target::Classification, None);
        report.paired = vec![Paired {
            dataset: "photo".into(),
            metric: "accuracy".into(),
            rule: "last".into(),
            first: "BLNN".into(),
            second: "BGRL".into(),
            differences: vec![difference(1, false), difference(2, true)],
            mean: 0.5,
            std: Some(0.0),
            wins: 2,
            p_value: Some(0.0),
            published: None,
        }];
        for shown in [text(&report), markdown(&report, &str::to_owned)] {
            assert!(shown.contains("1: +0.50, 2: +0.50¹"), "{shown}");
            assert!(shown.contains("¹ One of the two runs"), "{shown}");
            assert!(shown.contains("< 0.001"), "{shown}");
        }
        report.paired[0].differences.pop();
        assert!(!text(&report).contains('¹'));
    }

    #[test]
    fn numbers_have_the_decimals_of_their_metric() {
        assert_eq!(number("edges", 238_162.0), "238,162");
        assert_eq!(number("compactness", 0.701_52), "0.7015");
        assert_eq!(number("accuracy", 93.5), "93.50");
        assert_eq!(signed("accuracy", -0.126), "-0.13");
        assert_eq!(signed("accuracy", 0.004), "0.00");
        assert_eq!(signed("nodes", -1.0), "-1");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut row = Row::empty("wikics", "BLNN", "accuracy");
        row.pending = vec![1, 2];
        assert_eq!(remark(&row), "seeds 1, 2 not trained yet");
        let so_far = |seed, best, precision: Option<&str>| {
            let precision = precision.map(str::to_owned);
            let run = RunRow { seed, epochs: 10_000, best, precision, ..RunRow::default() };
            UnderWay { epoch: 2_500, run }
        };
        row.under_way = vec![so_far(3, Some(93.5), None), so_far(4, None, Some("bf16"))];
        assert_eq!(
            remark(&row),
            "seed 3 at epoch 2,500 of 10,000, best so far 93.50; seed 4 in bf16 at epoch 2,500 of \
             10,000; seeds 1, 2 not trained yet"
        );
        (row.under_way, row.pending) = (vec![], vec![]);
        row.remark = Some("wikics.json is not here".into());
        assert_eq!(remark(&row), "wikics.json is not here");
        let run = |seed, precision: Option<&str>| RunRow {
            seed,
            precision: precision.map(str::to_owned),
            ..RunRow::default()
        };
        row.remark = None;
        row.runs = vec![run(1, None), run(2, Some("bf16")), run(3, Some("bf16"))];
        assert_eq!(remark(&row), "seeds 2, 3 in bf16");
    }
}
