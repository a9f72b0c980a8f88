//! The ledger: one Markdown file with what a person found out, and below it all reports found in
//! the output folder. Sections of targets that have no report there, or one without a number of
//! ours, stay as they are.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

use super::provenance::Provenance;
use super::report::Report;
use super::target::Target;
use super::trained::{read_json, write_text};
use super::{Options, Watcher, record, render};

/// What stands above this line is a person's and is kept when the ledger is written again.
const KEPT_ABOVE: &str = "<!-- Written by `blnn reproduce`: what is above this line is kept, what is below is replaced. -->";

/// What a person finds where nobody has written yet.
const HAND: &str = "# Reproduction ledger

Every number of the paper beside ours.
";

const HEAD: &str = "## How to read the tables

- **best of evaluations**: the best of all evaluations of a run (every 250 epochs of 10,000), chosen
  on the test score itself, separately for each score. This is the paper's rule, and it flatters.
- **last epoch**: the score after the last epoch, by the split protocol of the published code (train
  20 %, test 80 %). This is the honest number.
- **best, 1:1:8 split** and **last, 1:1:8 split**: the same two by the protocol of the paper's text
  (train 10 %, validate 10 %, test 80 %); the best only where all evaluations of all runs were kept.
- **difference**: ours (best, where there is one) minus the published number.
- `±` is the sample standard deviation over seeds; `± … (splits)`, of a single run, is the population
  standard deviation over its 20 splits, as in the paper.
- *at epoch … of …, best so far*: a run that is not finished. It is in no other number; the best of
  all its evaluations can only be higher.
- `–`: no number.
- Each run has a name; [Runs](#runs), at the end, has the program that trained it and the command
  that trains it again.
";

fn path_of(options: &Options) -> PathBuf {
    options.ledger.clone().unwrap_or_else(|| options.out.join("REPRODUCTION.md"))
}

/// Makes sure, before hours of training, that the ledger can be written after them.
///
/// # Errors
/// If its folder cannot be made, or a file is there that is no ledger.
pub(super) fn check(options: &Options) -> Result<()> {
    let path = path_of(options);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
    }
    Before::read(&path).map(drop)
}

/// Writes the ledger from all reports in the output folder.
pub(super) fn write(options: &Options, watcher: &mut dyn Watcher) -> Result<()> {
    let path = path_of(options);
    let before = Before::read(&path)?;
    let (mut text, mut reports, mut kept) = (String::new(), Vec::new(), Vec::new());
    for target in Target::ALL {
        text.push('\n');
        let report = report_of(options, target, watcher);
        let says_something = report.as_ref().is_some_and(Report::has_runs);
        if let Some(section) = before.section(target).filter(|_| !says_something) {
            text.push_str(section);
            kept.push(section);
        } else if let Some(report) = report {
            let link = figure_links(options, &path, &report, watcher)?;
            text.push_str(&render::markdown(&report, &link));
            reports.push(report);
        } else {
            let heading = heading(target);
            let _ = write!(text, "{heading}\n\nNot run yet: `blnn reproduce {target}`.\n");
        }
    }
    let mut runs = Provenance::of(&reports);
    runs.keep(Provenance::read(&before.written), &kept);
    let runs = runs.markdown(|run| record::link(options, &path, run));
    let by_hand = before.by_hand.as_deref().unwrap_or(HAND);
    write_text(&path, &format!("{by_hand}\n{KEPT_ABOVE}\n\n{HEAD}{text}{runs}"))
}

/// The report of a target. One that cannot be read is none: it may be older than this program.
fn report_of(options: &Options, target: Target, watcher: &mut dyn Watcher) -> Option<Report> {
    let report = read_json(&options.out.join(format!("{target}.json")));
    report.unwrap_or_else(|error| {
        watcher.warned(&format!("left out of the ledger: {error}"));
        None
    })
}

/// The line that a target's section begins with.
fn heading(target: Target) -> String {
    format!("## {}: {}", target.place(), target.title())
}

/// The ledger as it was.
#[derive(Default)]
struct Before {
    /// What this program wrote.
    written: String,
    /// What a person wrote.
    by_hand: Option<String>,
}

impl Before {
    fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        // Some editors, and git on some systems, end lines otherwise.
        let text = text.replace("\r\n", "\n");
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        // The line may be the first.
        let text = format!("\n{text}");
        let Some((by_hand, written)) = text.split_once(&format!("\n{KEPT_ABOVE}\n")) else {
            let message = format!(
                "is no ledger of ours, and would be replaced: it has no line `{KEPT_ABOVE}`. Add \
                 that line below what is to be kept, or choose another --ledger"
            );
            return Err(Error::new(ErrorKind::Config, message).at(path.display()));
        };
        let by_hand = by_hand.trim_start_matches('\n').to_owned();
        Ok(Self { written: written.to_owned(), by_hand: Some(by_hand) })
    }

    /// The section of a target, if there is one: what was reported from runs on another machine.
    fn section(&self, target: Target) -> Option<&str> {
        let from = &self.written[self.written.find(&(heading(target) + "\n"))?..];
        let end = from.find("\n\n## ").map_or(from.len(), |at| at + 1);
        Some(&from[..end])
    }
}

/// Addresses of a report's figures as seen from the ledger. A ledger outside of the output folder
/// gets copies, in `figures/` beside it.
fn figure_links(
    options: &Options,
    ledger: &Path,
    report: &Report,
    watcher: &mut dyn Watcher,
) -> Result<impl Fn(&str) -> String + use<>> {
    let folder = ledger.parent().unwrap_or(Path::new(""));
    let beside = options.ledger.is_none() || folder == options.out;
    if !beside && !report.figures.is_empty() {
        copy_figures(&options.out, &folder.join("figures"), &report.figures, watcher)?;
    }
    let prefix = if beside { "" } else { "figures/" };
    Ok(move |figure: &str| format!("{prefix}{figure}"))
}

fn copy_figures(
    from: &Path,
    to: &Path,
    figures: &[String],
    watcher: &mut dyn Watcher,
) -> Result<()> {
    fs::create_dir_all(to).map_err(|e| Error::io("create", to, e))?;
    for name in figures {
        let source = from.join(name);
        if !source.exists() {
            watcher.warned(&format!("{} is gone; report its target again", source.display()));
            continue;
        }
        let text = fs::read_to_string(&source).map_err(|e| Error::io("read", &source, e))?;
        write_text(&to.join(name), &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_ledger_says_what_to_run_and_keeps_what_was_written_by_hand() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        write(&options, &mut ()).unwrap();
        let path = folder.path().join("REPRODUCTION.md");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("Not run yet: `blnn reproduce ").count(), 9);
        let found = text.replacen("beside ours.\n", "beside ours.\n\nWe learned this.\n", 1);
        fs::write(&path, &found).unwrap();
        write(&options, &mut ()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), found);
        assert_eq!((found.matches(KEPT_ABOVE).count(), found.matches("learned").count()), (1, 1));
        // Nothing by hand is fine too.
        fs::write(&path, &found[found.find(KEPT_ABOVE).unwrap()..]).unwrap();
        for _ in 0..2 {
            write(&options, &mut ()).unwrap();
            assert!(fs::read_to_string(&path).unwrap().starts_with(&format!("\n{KEPT_ABOVE}\n")));
        }
    }

    #[test]
    fn sections_of_reports_that_are_not_here_stay() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        write(&options, &mut ()).unwrap();
        let path = folder.path().join("REPRODUCTION.md");
        let text = fs::read_to_string(&path).unwrap();
        let ask = |target: Target| format!("Not run yet: `blnn reproduce {target}`.");
        let text = text.replace(&ask(Target::Clustering), "**Runs**\n\nNumbers of a lost machine.");
        let text = text.replace(&ask(Target::Map), "The last section.");
        for ends in ["\n", "\r\n"] {
            fs::write(&path, text.replace('\n', ends)).unwrap();
            write(&options, &mut ()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_that_is_no_ledger_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes/mine.md");
        let options = Options { ledger: Some(path.clone()), ..Options::new(folder.path()) };
        check(&options).unwrap();
        fs::write(&path, "What I think.\n").unwrap();
        for error in [check(&options), write(&options, &mut ())].map(Result::unwrap_err) {
            let error = error.to_string();
            assert!(error.contains("mine.md") && error.contains("another --ledger"), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "What I think.\n");
        fs::write(&path, "\n").unwrap();
        write(&options, &mut ()).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_said() {
        struct Warnings(Vec<String>);
        impl Watcher for Warnings {
            fn warned(&mut self, about: &str) {
                self.0.push(about.to_owned());
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path());
        fs::write(folder.path().join("similarity.json"), "{ old").unwrap();
        let mut warnings = Warnings(vec![]);
        write(&options, &mut warnings).unwrap();
        assert!(warnings.0.len() == 1 && warnings.0[0].contains("similarity.json"));
    }
}
