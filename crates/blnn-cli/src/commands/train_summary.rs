//! What `blnn train` says at its end: what was trained, how good it is, where it lies, what next.

use std::io::{self, Write};
use std::path::PathBuf;

use blnn::{Method, Outcome, RunFolder};
use serde_json::json;

use super::train_words::{graph_words, labels_words};
use crate::args::TrainArgs;
use crate::output::{duration, grouped, shell_word};
use crate::scoring::{Chosen, Named, Verdict};

/// What was written beside the embeddings.
#[derive(Default)]
pub(super) struct Written {
    /// Other formats of the embeddings.
    pub(super) saved: Vec<PathBuf>,
    /// The page.
    pub(super) report: Option<PathBuf>,
    /// Why there are no scores, where there are labels.
    pub(super) unscored: Option<String>,
}

/// Prints the summary, as text or as JSON.
pub(super) fn print(
    args: &TrainArgs,
    folder: &RunFolder,
    outcome: &Outcome,
    written: &Written,
) -> anyhow::Result<()> {
    let verdict = Verdict::of(&folder.records()?);
    let mut out = io::stdout().lock();
    if args.json {
        let mut object = serde_json::to_value(outcome)?;
        object["scores"] = json!(verdict);
        object["folder"] = json!(folder.root());
        object["embeddings"] = json!(outcome.finished.then(|| folder.embeddings()));
        object["report"] = json!(written.report);
        object["saved"] = json!(written.saved);
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let scores = verdict.iter().flat_map(|verdict| verdict_rows(verdict, outcome.epochs));
    let unscored = written.unscored.iter().map(|reason| ("scores", format!("none: {reason}")));
    let rows = summary(outcome).into_iter().chain(scores).chain(unscored);
    for (label, value) in rows.chain(what_next(args, folder, outcome, written)) {
        writeln!(out, "{label:<10} {value}")?;
    }
    Ok(())
}

type Row = (&'static str, String);

fn summary(outcome: &Outcome) -> Vec<Row> {
    let trained = format!(
        "{} on {}, seed {}, {} epochs, {}",
        outcome.method.name(),
        outcome.graph,
        outcome.seed,
        grouped(outcome.epochs),
        duration(outcome.seconds)
    );
    let mut rows = vec![("trained", trained)];
    if let Some(last) = &outcome.last {
        let terms = format!("node {:.4} + neighbour {:.4}", last.node_loss, last.neighbour_loss);
        rows.push(("loss", format!("{:.4} = {terms}", last.loss)));
        if let Some(health) = &last.health {
            let verdict = if health.collapsed { ": collapsed!" } else { "" };
            let rank = format!("{:.1} of {}", health.effective_rank, outcome.embedding_width);
            rows.push(("rank", format!("{rank}, spread {:.2}{verdict}", health.spread)));
        }
    }
    rows
}

/// The scores, honest number first.
fn verdict_rows(verdict: &Verdict, epochs: usize) -> Vec<Row> {
    let when = match verdict.last_epoch {
        last if last == epochs => "last epoch".to_owned(),
        earlier => format!("epoch {}, the last that was scored", grouped(earlier)),
    };
    let mut rows = vec![("scores", format!("{} ({when})", score_line(&verdict.last)))];
    if verdict.evaluations > 1 {
        if let Some(chosen) = &verdict.best_on_validation {
            let by_paper = verdict.last.contains_key("accuracy_paper_split");
            rows.push(("", chosen_line(chosen, if by_paper { " 10/10/80" } else { "" })));
        }
        let best = score_line(&verdict.best_on_test);
        let count = verdict.evaluations;
        rows.push((
            "",
            format!("{best} (best of {count}, chosen on the test score as in the paper)"),
        ));
    }
    rows
}

fn chosen_line(chosen: &Chosen, protocol: &str) -> String {
    let Chosen { accuracy, accuracy_std, epochs } = chosen;
    let first = grouped(epochs.iter().copied().min().unwrap_or_default());
    let last = grouped(epochs.iter().copied().max().unwrap_or_default());
    format!(
        "accuracy{protocol} {accuracy:.2} ± {accuracy_std:.2} (each split at the epoch of its best \
         validation accuracy, {first} to {last})"
    )
}

fn score_line(scores: &Named) -> String {
    let shown = [
        ("accuracy", "accuracy"),
        ("accuracy_paper_split", "accuracy 10/10/80"),
        ("nmi", "NMI"),
        ("homogeneity", "homogeneity"),
        ("s_at_5", "S@5"),
        ("s_at_10", "S@10"),
    ];
    let parts = shown.iter().filter_map(|(key, label)| {
        let value = scores.get(*key)?;
        let spread = scores.get(&format!("{key}_std"));
        let spread = spread.map_or_else(String::new, |s| format!(" ± {s:.2}"));
        Some(format!("{label} {value:.2}{spread}"))
    });
    parts.collect::<Vec<_>>().join(" · ")
}

fn what_next(
    args: &TrainArgs,
    folder: &RunFolder,
    outcome: &Outcome,
    written: &Written,
) -> Vec<Row> {
    let shape = format!("{} nodes × {}", grouped(outcome.nodes), outcome.embedding_width);
    let embeddings = shell_word(&folder.embeddings());
    let graph = graph_words(args);
    let other = if outcome.method == Method::Bgrl { Method::Blnn } else { Method::Bgrl };
    let mut rows = vec![("embedding", format!("{embeddings} ({shape}, ids in node_ids.txt)"))];
    rows.extend(written.saved.iter().map(|path| ("", shell_word(path))));
    rows.extend(written.report.iter().map(|path| ("report", shell_word(path))));
    if args.tensorboard {
        let command = format!("tensorboard --logdir {}", shell_word(&folder.tensorboard()));
        rows.push(("curves", command));
    }
    let train = format!("blnn train {graph} --method {}", other.name());
    match labels_words(args, outcome).filter(|_| written.unscored.is_none()) {
        Some(labels) => {
            rows.push(("next", format!("blnn eval {embeddings} --labels {labels}")));
            rows.push(("", train));
        }
        None => rows.push(("next", train)),
    }
    rows
}
