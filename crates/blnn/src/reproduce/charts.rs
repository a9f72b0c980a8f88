//! Which pictures a report gets, and the notes that go with it.

use crate::error::Result;
use crate::published::Metric;

use super::figure::{self, Dot, Line, Words};
use super::job::SHORT_EPOCHS;
use super::report::{Report, Row, Series};
use super::target::Target;
use super::trained::write_text;
use super::{Options, job};

/// Draws the pictures of a report, beside what its data sets have brought along, and adds notes.
pub(super) fn add(options: &Options, report: &mut Report) -> Result<()> {
    match report.target {
        Target::Motivation | Target::Ablation => add_dots(options, report)?,
        Target::Temperature => {
            report.series = sweep_series(&report.rows, &options.temperatures);
            add_lines(options, report)?;
        }
        Target::CaseStudy => add_lines(options, report)?,
        _ => {}
    }
    report.notes.append(&mut notes(options, report.target));
    Ok(())
}

fn notes(options: &Options, target: Target) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: String| notes.push(text);
    match target {
        Target::Datasets => return vec!["edges are directed entries: each edge twice".to_owned()],
        Target::Motivation => note(
            "the figure has no numbers in the text; published are those of Table 5, which shows the \
             same models"
                .to_owned(),
        ),
        Target::CaseStudy => note(
            "the figure has no numbers in the text; both ends of the attention are the final \
             embedding of the whole graph"
                .to_owned(),
        ),
        Target::Temperature => note(
            "the figure has no numbers in the text; published is Table 2's number at the authors' τ"
                .to_owned(),
        ),
        Target::Map => note(
            "compactness is that of the last epoch; the paper does not say how it chose the epoch"
                .to_owned(),
        ),
        _ => {}
    }
    if target == Target::Temperature && options.epochs.is_none() {
        note(format!(
            "shortened schedule: {SHORT_EPOCHS} epochs instead of the paper's 10,000; the whole \
             one takes --epochs 10000"
        ));
    }
    if let Some(epochs) = options.epochs.filter(|&epochs| epochs != job::PAPER_EPOCHS) {
        note(format!("{epochs} epochs instead of the paper's 10,000: no reproduction"));
    }
    if !options.settings.is_empty() {
        note(format!("settings changed: {}", options.settings.join(", ")));
    }
    notes
}

/// The data sets of some rows, each once, in their order.
fn datasets(rows: &[Row]) -> Vec<String> {
    let mut names: Vec<String> = rows.iter().map(|row| row.dataset.clone()).collect();
    names.dedup();
    names
}

/// One picture a data set: the methods that were trained, side by side. One alone is none.
fn add_dots(options: &Options, report: &mut Report) -> Result<()> {
    for dataset in datasets(&report.rows) {
        let shown = |row: &&Row| row.dataset == dataset && row.headline().is_some();
        let rows: Vec<&Row> = report.rows.iter().filter(shown).collect();
        if rows.len() < 2 {
            continue;
        }
        let dots: Vec<Dot> = rows.iter().copied().map(dot).collect();
        let title = title(report, &dataset, "accuracy, best of evaluations");
        let words = Words { title: &title, x: meaning_of_bars(&rows), y: "accuracy, %" };
        let svg = figure::dots(words, &dots)?;
        keep(options, report, &format!("{}-{dataset}", report.target), &svg)?;
    }
    Ok(())
}

/// What stands above a picture: place, data set, subject and how long was trained.
pub(super) fn title(report: &Report, dataset: &str, subject: &str) -> String {
    let runs = report.rows.iter().filter(|row| row.dataset == dataset).flat_map(|row| &row.runs);
    let epochs = runs.map(|run| run.epochs).max();
    let epochs = epochs.map_or(String::new(), |epochs| format!(" ({epochs} epochs)"));
    format!("{} on {dataset}: {subject}{epochs}", report.place)
}

/// What the bars of [`dot`]s are.
fn meaning_of_bars(rows: &[&Row]) -> &'static str {
    let count = |wanted: fn(usize) -> bool| rows.iter().filter(|r| wanted(r.runs.len())).count();
    match (count(|runs| runs > 1), count(|runs| runs == 1)) {
        (_, 0) => "bars: one standard deviation over seeds",
        (0, _) => "bars: one standard deviation over splits",
        _ => "bars: one standard deviation over seeds, or over splits where there is one seed",
    }
}

fn dot(row: &Row) -> Dot {
    let spread = |row: &Row| {
        let over_splits = row.runs.first().and_then(|run| run.best_split_std);
        row.best.as_ref().and_then(|best| best.std).or(over_splits)
    };
    Dot {
        name: row.method.clone(),
        ours: row.headline().map(|ours| (ours.mean, spread(row))),
        published: row.published.map(|value| value.mean),
    }
}

/// One picture for each name that series carry.
fn add_lines(options: &Options, report: &mut Report) -> Result<()> {
    let mut names: Vec<String> = report.series.iter().map(|s| s.figure.clone()).collect();
    names.dedup();
    for name in names {
        let group: Vec<&Series> = report.series.iter().filter(|s| s.figure == name).collect();
        let title = title(report, &group[0].dataset, &group[0].title);
        let words = Words { title: &title, x: &group[0].x_label, y: &group[0].y_label };
        let line = |s: &&Series| Line { name: s.name.clone(), points: s.points.clone() };
        let svg = figure::lines(words, &group.iter().map(line).collect::<Vec<_>>())?;
        keep(options, report, &name, &svg)?;
    }
    Ok(())
}

/// Writes a picture and adds it to the report.
pub(super) fn keep(options: &Options, report: &mut Report, stem: &str, svg: &str) -> Result<()> {
    let name = format!("{stem}.svg");
    write_text(&options.out.join(&name), svg)?;
    report.figures.push(name);
    Ok(())
}

/// Accuracy over τ for each data set and objective, and BGRL's level.
fn sweep_series(rows: &[Row], temperatures: &[f64]) -> Vec<Series> {
    let mut all = Vec::new();
    for dataset in datasets(rows) {
        let of_dataset: Vec<&Row> =
            rows.iter().filter(|row| row.dataset == dataset && row.headline().is_some()).collect();
        let mut methods: Vec<&str> = of_dataset.iter().map(|row| row.method.as_str()).collect();
        methods.sort_unstable_by_key(|name| std::cmp::Reverse(*name));
        methods.dedup();
        for method in methods {
            let rows: Vec<&&Row> = of_dataset.iter().filter(|row| row.method == method).collect();
            all.push(Series {
                figure: format!("temperature-{dataset}"),
                dataset: dataset.clone(),
                title: "accuracy over the temperature".to_owned(),
                name: method.to_owned(),
                x_label: "temperature τ".to_owned(),
                y_label: format!("{}, %, best of evaluations", Metric::Accuracy.label()),
                points: curve(&rows, temperatures),
            });
        }
    }
    all
}

/// The points of one method: its accuracy at each τ, or one level for a method without any.
fn curve(rows: &[&&Row], temperatures: &[f64]) -> Vec<(f64, f64)> {
    let accuracy = |row: &Row| row.headline().map_or(f64::NAN, |ours| ours.mean);
    match rows {
        [level] if level.temperature.is_none() => {
            let low = temperatures.iter().copied().fold(f64::MAX, f64::min);
            let high = temperatures.iter().copied().fold(f64::MIN, f64::max);
            vec![(low, accuracy(level)), (high, accuracy(level))]
        }
        _ => rows.iter().filter_map(|row| Some((row.temperature?, accuracy(row)))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{Aggregate, RunRow};
    use super::*;

    #[test]
    fn a_picture_compares_at_least_two_methods() {
        let folder = tempfile::tempdir().unwrap();
        let row = |dataset: &str, method: &str| {
            let mut row = Row::empty(dataset, method, "accuracy");
            row.best = Aggregate::of(&[93.0], None);
            row
        };
        let mut report = Report::new(Target::Ablation, None);
        report.rows = vec![row("cs", "BGRL"), row("photo", "BGRL"), row("photo", "BLNN")];
        add_dots(&Options::new(folder.path()), &mut report).unwrap();
        assert_eq!(report.figures, ["ablation-photo.svg"]);
    }

    #[test]
    fn a_picture_says_what_its_bars_are() {
        let of_runs = |runs: usize| {
            let mut row = Row::empty("cora", "BGRL", "accuracy");
            row.runs = vec![RunRow::default(); runs];
            row
        };
        let meaning = |runs: &[usize]| {
            let rows: Vec<Row> = runs.iter().map(|&runs| of_runs(runs)).collect();
            meaning_of_bars(&rows.iter().collect::<Vec<_>>())
        };
        assert_eq!(meaning(&[3, 0, 2]), "bars: one standard deviation over seeds");
        assert_eq!(meaning(&[1, 0, 1]), "bars: one standard deviation over splits");
        assert!(meaning(&[3, 1]).ends_with("over seeds, or over splits where there is one seed"));
    }
}
