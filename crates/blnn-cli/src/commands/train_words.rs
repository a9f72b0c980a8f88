//! A training's command line, put together again: what a user types to go on from here.

use std::path::Path;

use blnn::Outcome;

use crate::args::{LOG_EVERY, SettingArgs, TrainArgs};
use crate::output::shell_word;

/// The settings as words of a shell command, with a blank before each.
pub(crate) fn setting_words(args: &SettingArgs) -> String {
    let word = |flag: &str, value: Option<String>| {
        let quoted = value.map(|value| shell_word(Path::new(&value)));
        quoted.map_or_else(String::new, |value| format!(" {flag} {value}"))
    };
    let mut words = word("--method", args.method.map(|method| method.name().to_owned()))
        + &word("--config", args.config.as_ref().map(|path| path.display().to_string()));
    for assignment in &args.set {
        words += &word("--set", Some(assignment.clone()));
    }
    words
        + &word("--epochs", args.epochs.map(|epochs| epochs.to_string()))
        + &word("--seed", args.seed.map(|seed| seed.to_string()))
        + &word("--precision", args.precision.clone())
}

/// The graph's name where the command line has one.
pub(super) fn named(args: &TrainArgs) -> &str {
    args.graph.as_deref().unwrap_or("cora")
}

/// The words of the command line that name the graph.
pub(super) fn graph_words(args: &TrainArgs) -> String {
    let own = args.own.words();
    match (&args.graph, &args.own.edges) {
        (None, Some(_)) => own.trim_start().to_owned(),
        _ => shell_word(Path::new(named(args))) + &own,
    }
}

/// The command that continues a run.
pub(super) fn resume_command(args: &TrainArgs, root: &Path) -> String {
    let graph = graph_words(args);
    let out = shell_word(root);
    let data = args.machine.data_dir.as_deref();
    let data = data.map_or_else(String::new, |d| format!(" --data-dir {}", shell_word(d)));
    format!("blnn train {graph}{data} --out {out}{} --resume", output_words(args))
}

/// The flags about what a run writes and may take: its folder does not remember them.
fn output_words(args: &TrainArgs) -> String {
    let every = args.eval_every.map(|every| format!(" --eval-every {every}"));
    let log = (args.log_every != LOG_EVERY).then(|| format!(" --log-every {}", args.log_every));
    let names: Vec<&str> = args.format.iter().map(|format| format.name()).collect();
    let formats = (!names.is_empty()).then(|| format!(" --format {}", names.join(",")));
    let mut words: String = [every, log, formats].into_iter().flatten().collect();
    for (given, flag) in [
        (args.tensorboard, " --tensorboard"),
        (args.no_report, " --no-report"),
        (args.json, " --json"),
        (args.no_memory_check, " --no-memory-check"),
    ] {
        words += if given { flag } else { "" };
    }
    words
}

/// What `blnn eval --labels` takes for this graph, if it has labels.
pub(super) fn labels_words(args: &TrainArgs, outcome: &Outcome) -> Option<String> {
    let own = &args.own;
    match (&own.label, &own.nodes) {
        (Some(file), _) if is_npy(file) => Some(shell_word(Path::new(file))),
        (Some(column), Some(nodes)) => {
            let column = shell_word(Path::new(column));
            let id = own.id_column.as_deref().map_or_else(String::new, |id| {
                format!(" --id-column {}", shell_word(Path::new(id)))
            });
            Some(format!("{} --label {column}{id}", shell_word(nodes)))
        }
        _ => {
            let scored = outcome.last.as_ref().is_some_and(|last| !last.scores.is_empty());
            let known = blnn::data::find(named(args)).is_some() && own.edges.is_none();
            let source = own.edges.as_deref().unwrap_or(Path::new(named(args)));
            (scored || known).then(|| shell_word(source))
        }
    }
}

fn is_npy(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}
