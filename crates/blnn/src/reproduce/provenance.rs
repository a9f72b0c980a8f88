//! [`Provenance`]: where the numbers of reports come from. Each run once, however many tables show
//! it: the program that trained it and the command that trains it again.

use std::collections::BTreeMap;

use super::grid::Grid;
use super::report::{Report, RunRow};

/// What a page calls this part.
const HEADING: &str = "## Runs";

/// Runs by name, each with the rest of its line in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Provenance(BTreeMap<String, [String; 2]>);

impl Provenance {
    /// Of every run behind the reports, finished or not.
    pub(super) fn of<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        let rows = reports.into_iter().flat_map(|report| &report.rows);
        let runs = rows
            .flat_map(|row| row.runs.iter().chain(row.under_way.iter().map(|begun| &begun.run)));
        let mut latest: BTreeMap<&str, &RunRow> = BTreeMap::new();
        for run in runs {
            // Of a run that went on between two reports, the later one knows more.
            let known = latest.entry(&run.key).or_insert(run);
            let count = |run: &RunRow| (run.commits.len(), run.vectors.len());
            if count(run) > count(known) {
                *known = run;
            }
        }
        let line = |run: &RunRow| [trained_by(run), format!("`{}`", run.command)];
        Self(latest.into_iter().map(|(key, run)| (key.to_owned(), line(run))).collect())
    }

    /// What [`markdown`](Self::markdown) wrote into a page.
    pub(super) fn read(page: &str) -> Self {
        let part = page.split_once(HEADING).map_or("", |(_, part)| part);
        let cells = |line: &str| {
            let line = line.strip_prefix("| ")?.strip_suffix(" |")?;
            let [run, by, command] = line.split(" | ").collect::<Vec<_>>().try_into().ok()?;
            Some((unlinked(run).to_owned(), [by.to_owned(), command.to_owned()]))
        };
        Self(part.lines().skip_while(|line| !line.starts_with("|--")).filter_map(cells).collect())
    }

    /// Takes over the runs of `other` that `sections` name and that are not known here.
    pub(super) fn keep(&mut self, other: Self, sections: &[&str]) {
        let is_named = |run: &str| {
            let cell = format!("| {run} |");
            sections.iter().any(|section| section.contains(&cell))
        };
        for (run, line) in other.0.into_iter().filter(|(run, _)| is_named(run)) {
            self.0.entry(run).or_insert(line);
        }
    }

    /// A section of Markdown, empty if there are no runs; `link` gives the address of a run's record,
    /// if it has one.
    pub(super) fn markdown(&self, link: impl Fn(&str) -> Option<String>) -> String {
        let mut grid = Grid::new(&["run", "trained by", "command"]);
        for (run, [by, command]) in &self.0 {
            let name = link(run).map_or_else(|| run.clone(), |to| format!("[{run}]({to})"));
            grid.push(vec![name, by.clone(), command.clone()]);
        }
        if grid.is_empty() { String::new() } else { format!("\n{HEADING}\n\n{}", grid.markdown()) }
    }
}

/// The text of a link, or what is none.
fn unlinked(cell: &str) -> &str {
    let text = cell.strip_prefix('[').and_then(|rest| rest.split_once("]("));
    text.map_or(cell, |(text, _)| text)
}

fn trained_by(run: &RunRow) -> String {
    let program = match (run.version.as_str(), run.commits.as_slice()) {
        ("", _) => "unknown".to_owned(),
        (version, []) => version.to_owned(),
        (version, commits) => format!("{version}, {}", commits.join(" + ")),
    };
    if run.vectors.is_empty() {
        program
    } else {
        format!("{program} ({})", run.vectors.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Row, Target, UnderWay};

    fn report(keys: &[&str]) -> Report {
        let run = |key: &&str| RunRow {
            key: (*key).to_owned(),
            command: format!("blnn train {key}"),
            version: "0.1.0".into(),
            commits: vec!["abc".into()],
            vectors: vec!["avx2".into()],
            ..RunRow::default()
        };
        let mut row = Row::empty("photo", "BLNN", "accuracy");
        row.runs = keys.iter().map(run).collect();
        row.under_way = vec![UnderWay { epoch: 5, run: run(&"begun") }];
        let mut report = Report::new(Target::Classification, None);
        report.rows = vec![row.clone(), Row { metric: "nmi".into(), ..row }];
        report
    }

    #[test]
    fn a_run_stands_once_whatever_shows_it() {
        let (one, two) = (report(&["a"]), report(&["b", "a"]));
        let text = Provenance::of([&one, &two])
            .markdown(|run| (run == "a").then(|| "records/a.json".to_owned()));
        let wanted = "\n## Runs\n\n| run | trained by | command |\n|---|---|---|\n\
                      | [a](records/a.json) | 0.1.0, abc (avx2) | `blnn train a` |\n\
                      | b | 0.1.0, abc (avx2) | `blnn train b` |\n\
                      | begun | 0.1.0, abc (avx2) | `blnn train begun` |\n";
        assert_eq!(text, wanted);
        assert_eq!(Provenance::default().markdown(|_| None), "");
    }

    #[test]
    fn a_run_that_went_on_names_all_its_programs() {
        let (before, mut after) = (report(&["a"]), report(&["a"]));
        after.rows[0].runs[0].commits.push("def".into());
        for reports in [[&before, &after], [&after, &before]] {
            let text = Provenance::of(reports).markdown(|_| None);
            assert!(text.contains("| a | 0.1.0, abc + def (avx2) |"), "{text}");
        }
    }

    #[test]
    fn runs_that_a_kept_section_names_are_kept() {
        let before = Provenance::of([&report(&["old", "older"])]);
        let page = format!("## Table 2\n\n| x |\n|---|\n{}", before.markdown(|_| Some("y".into())));
        assert_eq!(Provenance::read(&page), before);
        let mut now = Provenance::of([&report(&["new"])]);
        now.keep(Provenance::read(&page), &["| run |\n|---|\n| old | 5 |\n"]);
        assert_eq!(now.0.keys().collect::<Vec<_>>(), ["begun", "new", "old"]);
        assert_eq!(Provenance::read("no runs"), Provenance::default());
    }
}
