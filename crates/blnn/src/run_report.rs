//! [`report_run`]: what a stored run has to show, gathered into a [`Report`].

mod charts;
mod map;

use blnn_kernels::{Matrix, Threads};

use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::report::{Figure, Report};
use crate::run::Record;
use crate::stored_run::StoredRun;
use crate::text::grouped;

/// How nodes are laid out on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMethod {
    /// Neighbours stay together; seconds to minutes.
    Tsne,
    /// The plane of largest spread; at once.
    Pca,
}

impl MapMethod {
    /// Up to this many nodes t-SNE takes seconds.
    pub const QUICK_TSNE_NODES: usize = 10_000;

    /// The layout that does not delay the end of a training.
    pub fn after_training(nodes: usize) -> Self {
        if nodes <= Self::QUICK_TSNE_NODES { Self::Tsne } else { Self::Pca }
    }
}

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// How nodes are laid out.
    pub map: MapMethod,
    /// The map shows at most so many nodes, evenly taken from all.
    pub most_nodes: usize,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { map: MapMethod::Tsne, most_nodes: 50_000 }
    }
}

/// Gathers what a run has to show. Degrees, classes and what is computed from them need the graph
/// the run was trained on. `progress` hears how many of how many steps of the map are done.
///
/// # Errors
/// If a file of the run cannot be read, or the graph is not the one that was trained on.
pub fn report_run(
    run: &StoredRun,
    graph: Option<&Graph>,
    options: &ReportOptions,
    threads: &Threads,
    progress: &mut (dyn FnMut(usize, usize) + Send),
) -> Result<Report> {
    let embeddings = run.embeddings()?;
    let rows = embeddings.as_ref().map(|(matrix, _)| matrix.rows());
    if let Some(graph) = graph {
        check_graph(run, graph, rows)?;
    }
    let mut report = overview(run, graph);
    report.charts = charts::training(run.records());
    if let Some((matrix, ids)) = &embeddings {
        let nodes = map::Nodes { matrix, ids, graph };
        report.map = Some(map::draw(&nodes, options, threads, progress)?);
        if let Some(graph) = graph {
            add_case_study(&mut report, matrix, graph, ids, temperature(run.config()))?;
        }
    }
    Ok(report)
}

fn check_graph(run: &StoredRun, graph: &Graph, rows: Option<usize>) -> Result<()> {
    let refuse = |what: String| {
        let message =
            format!("{what}; give the graph that {} was trained on", run.root().display());
        Err(Error::new(ErrorKind::Shape, message).at(graph.name()))
    };
    let nodes = rows.unwrap_or(run.summary().nodes);
    if graph.nodes() != nodes {
        return refuse(format!("{} nodes, but the run has {nodes}", graph.nodes()));
    }
    if run.header().is_some_and(|header| !header.fits(graph)) {
        return refuse("the edges or features differ from those of the run".into());
    }
    Ok(())
}

fn add_case_study(
    report: &mut Report,
    embeddings: &Matrix,
    graph: &Graph,
    ids: &[String],
    temperature: f64,
) -> Result<()> {
    let Some(labels) = graph.labels() else {
        let without = graph.without_label();
        if without > 0 {
            let (without, nodes) = (grouped(without), grouped(graph.nodes()));
            report.warnings.push(format!(
                "{without} of {nodes} nodes have no class: they are not scored, and the paper's \
                 case study, which needs all classes, is left out."
            ));
        }
        return Ok(());
    };
    let study = charts::CaseStudy { embeddings, graph, labels, ids, temperature };
    match study.charts() {
        Ok(charts) => report.charts.extend(charts),
        // A row without direction has no cosine: the rest of the page still stands.
        Err(error) if error.kind() == ErrorKind::Shape => {
            report.warnings.push(format!("No case study: {error}."));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The temperature of the attention, as the run's settings have it.
fn temperature(config: &str) -> f64 {
    let table: toml::Table = config.parse().unwrap_or_default();
    let value = table.get("temperature");
    let whole = || value.and_then(toml::Value::as_integer).map(|whole| whole as f64);
    value.and_then(toml::Value::as_float).or_else(whole).unwrap_or(1.0)
}

fn overview(run: &StoredRun, graph: Option<&Graph>) -> Report {
    let summary = run.summary();
    let unfinished = if summary.finished { "" } else { ", not finished" };
    let mut report = Report {
        title: format!("{} on {}", method_name(&summary.method), summary.graph),
        subtitle: format!(
            "{} epoch{}{unfinished}, seed {}, {} values a node",
            grouped(summary.epochs),
            if summary.epochs == 1 { "" } else { "s" },
            summary.seed,
            summary.embedding_width
        ),
        config: run.config().to_owned(),
        provenance: provenance(run),
        ..Report::default()
    };
    if let Some(last) = run.records().last() {
        report.figures.extend(score_figures(run.records()));
        let loss = format!("{:.4}", last.loss).replace('-', "\u{2212}");
        report.figures.push(figure("Loss", loss, "after the last epoch"));
    }
    report.figures.extend(health_figures(run.records(), summary.embedding_width));
    report.figures.extend(graph_figures(summary.nodes, graph));
    report.warnings = warnings(run);
    report
}

fn method_name(name: &str) -> String {
    let (first, rest) = name.split_once('-').unwrap_or((name, ""));
    if rest.is_empty() {
        first.to_uppercase()
    } else {
        format!("{} ({rest})", first.to_uppercase())
    }
}

fn figure(label: &str, value: String, note: &str) -> Figure {
    Figure { label: label.to_owned(), value, note: note.to_owned() }
}

/// Names of the scores in the records, and for people.
const SCORES: [(&str, &str); 5] = [
    ("accuracy", "Accuracy"),
    ("nmi", "NMI"),
    ("homogeneity", "Homogeneity"),
    ("s_at_5", "S@5"),
    ("s_at_10", "S@10"),
];

/// The scores of the last evaluation: after the last epoch, the honest number; after an earlier
/// one, that is said.
fn score_figures(records: &[Record]) -> Vec<Figure> {
    let Some(scored) = records.iter().rev().find(|r| !r.scores.is_empty()) else {
        return Vec::new();
    };
    let earlier =
        (records.last() != Some(scored)).then(|| format!("at epoch {}", grouped(scored.epoch)));
    let note = |key: &str| {
        let spread = scored.scores.get(&format!("{key}_std"));
        let spread = spread.map(|s| format!("± {s:.2} over splits"));
        [spread, earlier.clone()].into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let shown = SCORES.iter().filter_map(|(key, label)| {
        let value = scored.scores.get(*key)?;
        Some(figure(label, format!("{value:.2} %"), &note(key)))
    });
    shown.collect()
}

fn health_figures(records: &[Record], width: usize) -> Vec<Figure> {
    let Some(health) = records.iter().rev().find_map(|r| r.health.as_ref()) else {
        return Vec::new();
    };
    let rank = format!("{:.1}", health.effective_rank);
    vec![figure("Effective rank", rank, &format!("of {width}, spread {:.2}", health.spread))]
}

/// A number of things, of which there may be one.
fn counted(count: usize, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", grouped(count))
}

fn graph_figures(nodes: usize, graph: Option<&Graph>) -> Vec<Figure> {
    let Some(graph) = graph else {
        return vec![figure("Nodes", grouped(nodes), "")];
    };
    // A self-loop is stored once, any other edge twice.
    let edges = grouped(usize::midpoint(graph.entries(), graph.self_loops()));
    let mut figures = vec![
        figure("Nodes", grouped(nodes), &counted(graph.features().cols(), "feature")),
        figure("Edges", edges, &counted(graph.isolated_nodes(), "isolated node")),
    ];
    if let Some(share) = graph.edge_homophily() {
        let note = format!("of edges stay within one of {} classes", graph.classes());
        figures.push(figure("Homophily", format!("{:.1} %", 100.0 * share), &note));
    }
    figures
}

fn warnings(run: &StoredRun) -> Vec<String> {
    let mut warnings = Vec::new();
    if !run.summary().finished {
        warnings.push(
            "This run was stopped before its last epoch: there are no embeddings to show yet."
                .to_owned(),
        );
    }
    let health = run.records().iter().rev().find_map(|r| r.health.as_ref());
    if health.is_some_and(|h| h.collapsed) {
        warnings.push(
            "The embedding has collapsed to few dimensions: neighbours and clusters mean little."
                .to_owned(),
        );
    }
    warnings
}

fn provenance(run: &StoredRun) -> Vec<(String, String)> {
    let summary = run.summary();
    let mut rows = vec![
        ("Graph".to_owned(), summary.graph.clone()),
        ("Method".to_owned(), summary.method.clone()),
        ("Seed".to_owned(), summary.seed.to_string()),
        ("Epochs".to_owned(), grouped(summary.epochs)),
        ("Seconds of the last process".to_owned(), format!("{:.1}", summary.seconds)),
    ];
    if let Some(header) = run.header() {
        rows.push(("Fingerprint of the graph".to_owned(), header.fingerprint.clone()));
    }
    rows.push(("Page written by".to_owned(), format!("blnn {}", env!("CARGO_PKG_VERSION"))));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Checkpoint, Header};
    use crate::graph::Features;
    use blnn_kernels::Pattern;

    #[test]
    fn names_and_numbers_are_for_people() {
        assert_eq!(method_name("blnn"), "BLNN");
        assert_eq!(method_name("bgrl-noisy"), "BGRL (noisy)");
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_score_of_an_earlier_epoch_names_it() {
        let record = |epoch: usize, scores: &str| -> Record {
            let text = format!(
                r#"{{"epoch":{epoch},"loss":0,"node_loss":0,"neighbour_loss":0,"learning_rate":0,
                    "ema_decay":0,"seconds":0,"scores":{scores}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let scored = record(4, r#"{"accuracy":81.25,"accuracy_std":0.5,"nmi":60}"#);
        let notes = |records: &[Record]| -> Vec<String> {
            score_figures(records).into_iter().map(|figure| figure.note).collect()
        };
        assert_eq!(notes(std::slice::from_ref(&scored)), ["± 0.50 over splits", ""]);
        let wanted = ["± 0.50 over splits, at epoch 4", "at epoch 4"];
        assert_eq!(notes(&[scored, record(20, "{}")]), wanted);
        assert!(notes(&[record(20, "{}")]).is_empty());
    }

    #[test]
    fn another_graph_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let summary = r#"{"graph":"g","nodes":3,"method":"blnn","seed":1,"epochs":3,
            "finished":false,"embedding_width":1,"seconds":0.5}"#;
        std::fs::write(root.path().join("summary.json"), summary).unwrap();
        std::fs::write(root.path().join("config.toml"), "").unwrap();
        let graph = |nodes: usize| {
            let adjacency = Pattern::new(nodes, vec![0; nodes + 1], vec![]).unwrap();
            let features = Features::Dense(Matrix::zeros(nodes, 1));
            Graph::new("mine", adjacency, features).unwrap()
        };
        let report = |graph: &Graph| {
            let run = StoredRun::read(root.path()).unwrap();
            let options = ReportOptions::default();
            report_run(&run, Some(graph), &options, &Threads::new(1), &mut |_, _| ())
        };
        let error = report(&graph(2)).unwrap_err().to_string();
        assert!(error.starts_with("mine: 2 nodes, but the run has 3"), "{error}");
        let page = report(&graph(3)).unwrap();
        assert!(page.map.is_none() && page.warnings[0].contains("stopped"), "{page:?}");

        let header = Header {
            epoch: 1,
            seed: 1,
            graph: "g".into(),
            fingerprint: "another".into(),
            unlabelled: None,
            config: String::new(),
            kernels: Vec::new(),
        };
        let none: [(String, Matrix); 0] = [];
        Checkpoint::write(&root.path().join("checkpoint.safetensors"), &header, &none).unwrap();
        let error = report(&graph(3)).unwrap_err().to_string();
        assert!(error.contains("differ from those of the run"), "{error}");
    }

    #[test]
    fn the_temperature_is_read_from_the_settings() {
        assert_eq!(temperature("epochs = 3\ntemperature = 0.5\n"), 0.5);
        assert_eq!(temperature("temperature = 2\n"), 2.0);
        assert_eq!(temperature("epochs = 3\n"), 1.0);
        assert_eq!(temperature("not toml ["), 1.0);
    }
}
