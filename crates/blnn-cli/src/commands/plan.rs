//! `blnn plan`: memory, time and disk space of a run before it is started.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use blnn::estimate::{self, Available, Extras, MemoryEstimate, Pace, bytes};
use blnn::{Attributes, Graph, Plan, Sizes, data};
use blnn_kernels::Threads;
use clap::Args;
use serde_json::json;

use crate::args::{MachineArgs, SettingArgs};
use crate::commands::{preset_name, train, train_words};
use crate::output::{duration, grouped, note, shell_word};
use crate::own_graph::OwnGraphArgs;

/// A generated graph of more nodes is not made: its sizes are known.
const MADE: usize = 50_000;

/// Estimate memory, time and disk space of a run before it is started.
///
/// Memory is counted from the sizes of graph and model; the time of an epoch is measured on a few
/// epochs, on a smaller graph of the same kind where the graph is large. Nothing is written.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn plan photo
  blnn plan --edges edges.csv --nodes nodes.csv --set embedding_width=64
  blnn plan generated-1000000                 a graph of any size, which is not made
  blnn plan --sizes 2000000,30000000,128      a graph you do not have yet
  blnn plan photo --json")]
pub(crate) struct PlanArgs {
    /// A data set's name (see `blnn datasets list`) or a graph in one file [default: cora]
    graph: Option<String>,

    #[command(flatten)]
    own: OwnGraphArgs,

    /// Sizes in place of a graph: NODES,EDGES,FEATURES[,VALUES]
    ///
    /// VALUES is the average number of features of a node that are not zero, where that is few
    /// of them; without it all features are stored.
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        num_args = 1,
        conflicts_with_all = ["graph", "edges", "nodes"]
    )]
    sizes: Vec<u64>,

    #[command(flatten)]
    settings: SettingArgs,

    /// Seconds to measure the time of an epoch for; 0 leaves it out
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(..=600))]
    calibrate: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    machine: MachineArgs,
}

/// What is planned for: sizes, and the graph where it is at hand.
struct Subject {
    name: String,
    sizes: Sizes,
    graph: Option<Graph>,
}

/// All that was found out.
struct Found {
    memory: MemoryEstimate,
    available: Option<Available>,
    pace: Option<Pace>,
    disk: u64,
}

pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<ExitCode> {
    let threads = Threads::new(args.machine.threads.into());
    let plan = train::given(&args.settings, false)?.resolve_on_this_machine(preset(args))?;
    let subject = subject(args, &threads)?;
    let extras = Extras { scored: subject.sizes.labelled, report: true };
    let available = estimate::available_memory();
    let found = Found {
        memory: MemoryEstimate::new(&subject.sizes, &plan, extras)?,
        available,
        pace: measure(args, &subject, &plan, &threads, available)?,
        disk: estimate::disk_bytes(&subject.sizes, &plan, extras)?,
    };
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", object(&subject, &plan, &found, &threads))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (label, value) in rows(args, &subject, &plan, extras, &found)? {
        writeln!(out, "{label:<10} {value}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn named(args: &PlanArgs) -> &str {
    args.graph.as_deref().unwrap_or("cora")
}

fn preset(args: &PlanArgs) -> &str {
    if args.sizes.is_empty() { preset_name(named(args), args.own.edges.as_deref()) } else { "" }
}

fn subject(args: &PlanArgs, threads: &Threads) -> anyhow::Result<Subject> {
    if !args.sizes.is_empty() {
        let sizes = read_sizes(&args.sizes)?;
        return Ok(Subject { name: "the given sizes".to_owned(), sizes, graph: None });
    }
    if let (None, Some(sizes)) = (&args.own.edges, data::generated_sizes(named(args))) {
        let sizes = sizes?;
        if sizes.nodes > MADE {
            return Ok(Subject { name: named(args).to_owned(), sizes, graph: None });
        }
    }
    let loaded = args.own.load(args.graph.as_deref(), args.machine.data_dir.as_deref(), threads)?;
    let graph = loaded.graph;
    Ok(Subject { name: graph.name().to_owned(), sizes: Sizes::of(&graph), graph: Some(graph) })
}

fn read_sizes(given: &[u64]) -> anyhow::Result<Sizes> {
    let (&[nodes, edges, features], values) = given.split_at_checked(3).map_or_else(
        || bail!("--sizes: give NODES,EDGES,FEATURES, such as 2000000,30000000,128"),
        |(three, rest)| Ok((<&[u64; 3]>::try_from(three)?, rest)),
    )?;
    // Nodes and features are numbered with 32 bits.
    let size = |what: &str, value: u64, bits: u32| {
        let known = usize::try_from(value).ok().filter(|&v| v >= 1 && value <= 1 << bits);
        known.with_context(|| format!("--sizes: {value} {what}; give 1 to 2^{bits}"))
    };
    let (nodes, features) = (size("nodes", nodes, 32)?, size("features", features, 32)?);
    let attributes = match values {
        [] => Attributes::Dense,
        [values] if *values <= features as u64 => {
            let values = size("values a node", *values, 32)?.saturating_mul(nodes);
            Attributes::Sparse { values, alike: false }
        }
        [values] => bail!("--sizes: {values} values of a node, which has {features} features"),
        _ => bail!("--sizes: at most four numbers, NODES,EDGES,FEATURES,VALUES"),
    };
    let entries = 2 * size("edges", edges, 40)?;
    let sizes = Sizes { nodes, entries, features, attributes, labelled: false, id_bytes: 0 };
    // Bytes are counted in 64 bits, and some things take a few of them for each value.
    let values = sizes.values();
    ensure!(
        values as u64 <= 1 << 56,
        "--sizes: {values} attribute values in all; give 2^56 at most"
    );
    Ok(sizes)
}

fn measure(
    args: &PlanArgs,
    subject: &Subject,
    plan: &Plan,
    threads: &Threads,
    available: Option<Available>,
) -> blnn::Result<Option<Pace>> {
    if args.calibrate == 0 {
        return Ok(None);
    }
    // What is measured is the graph at hand, or one of so many nodes at most.
    let measured = match subject.graph {
        Some(_) => subject.sizes,
        None => subject.sizes.scaled_to(subject.sizes.nodes.min(MADE)),
    };
    let alone = Extras { scored: false, report: false };
    let needs = MemoryEstimate::new(&measured, plan, alone)?.peak();
    if available.is_some_and(|available| needs > available.bytes) {
        note("the time is not measured: that alone would take more memory than there is");
        return Ok(None);
    }
    let time = Duration::from_secs(args.calibrate);
    Pace::measure(&subject.sizes, subject.graph.as_ref(), plan, threads, time).map(Some)
}

fn total_seconds(pace: &Pace, plan: &Plan) -> f64 {
    pace.seconds_per_epoch * plan.epochs() as f64
}

fn object(subject: &Subject, plan: &Plan, found: &Found, threads: &Threads) -> serde_json::Value {
    let Sizes { nodes, entries, features, .. } = subject.sizes;
    let available = found.available.map(|available| available.bytes);
    json!({
        "graph": subject.name,
        "nodes": nodes,
        "entries": entries,
        "features": features,
        "stored_values": subject.sizes.values(),
        "method": plan.method(),
        "precision": plan.precision(),
        "epochs": plan.epochs(),
        "threads": threads.count(),
        "memory_bytes": found.memory,
        "peak_memory_bytes": found.memory.peak(),
        "available_memory_bytes": available,
        "fits": available.map(|available| found.memory.peak() <= available),
        "seconds_per_epoch": found.pace.map(|pace| pace.seconds_per_epoch),
        "seconds": found.pace.map(|pace| total_seconds(&pace, plan)),
        "measured_nodes": found.pace.map(|pace| pace.measured_nodes),
        "measured_epochs": found.pace.map(|pace| pace.measured_epochs),
        "disk_bytes": found.disk,
    })
}

type Row = (&'static str, String);

fn rows(
    args: &PlanArgs,
    subject: &Subject,
    plan: &Plan,
    extras: Extras,
    found: &Found,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = vec![
        ("graph", graph_line(subject)),
        ("model", model_line(plan)),
        ("memory", memory_line(&found.memory)),
    ];
    let (peak, available) = (found.memory.peak(), found.available);
    rows.push(("", available_line(peak, available)));
    if let Some(available) = available.filter(|available| available.bytes < peak) {
        let narrower = estimate::narrower(&subject.sizes, plan, extras, available.bytes)?;
        let [hidden, embedding, predictor] = narrower.widths;
        let even = if narrower.peak > available.bytes { "even " } else { "" };
        let line = format!(
            "{even}with --set hidden_width={hidden} --set embedding_width={embedding} --set \
             predictor_width={predictor}: about {}",
            bytes(narrower.peak)
        );
        rows.push(("", line));
    }
    rows.extend(found.pace.iter().map(|pace| ("time", time_line(pace, subject, plan))));
    rows.push(("disk", format!("about {} in the run folder", bytes(found.disk))));
    let fits = available.is_none_or(|available| available.bytes >= peak);
    rows.extend(next_line(args).filter(|_| fits).map(|line| ("next", line)));
    Ok(rows)
}

fn graph_line(subject: &Subject) -> String {
    let Sizes { nodes, entries, features, attributes, .. } = subject.sizes;
    let stored = match attributes {
        Attributes::Sparse { values, .. } => {
            format!(", {:.1} of them not zero on average", values as f64 / nodes.max(1) as f64)
        }
        Attributes::Dense => String::new(),
    };
    let (name, nodes, edges) = (&subject.name, grouped(nodes), grouped(entries / 2));
    format!("{name}: {nodes} nodes, {edges} edges, {} features{stored}", grouped(features))
}

fn model_line(plan: &Plan) -> String {
    let [hidden, embedding, predictor] = plan.widths();
    format!(
        "{}, widths {hidden} (hidden), {embedding} (embedding), {predictor} (predictor), {}, {} epochs",
        plan.method().name(),
        plan.precision().name(),
        grouped(plan.epochs())
    )
}

fn memory_line(memory: &MemoryEstimate) -> String {
    let parts = [
        ("preparing", memory.preparing),
        ("training", memory.training),
        ("saving", memory.saving),
        ("scoring", memory.scoring),
        ("report", memory.reporting),
    ];
    let parts: Vec<String> =
        parts.iter().map(|(part, size)| format!("{part} {}", bytes(*size))).collect();
    format!("about {} at the peak ({})", bytes(memory.peak()), parts.join(", "))
}

fn available_line(peak: u64, available: Option<Available>) -> String {
    let Some(available) = available else {
        return "what this machine has available is unknown on this system".to_owned();
    };
    let by = if available.limited { " within the limit of this container" } else { "" };
    let size = bytes(available.bytes);
    if peak <= available.bytes {
        format!("fits: {size} are available{by}")
    } else {
        format!("does not fit: {size} are available{by}")
    }
}

fn time_line(pace: &Pace, subject: &Subject, plan: &Plan) -> String {
    let how = if pace.measured_nodes == subject.sizes.nodes {
        format!("{} epochs were measured", pace.measured_epochs)
    } else {
        let (epochs, nodes) = (pace.measured_epochs, grouped(pace.measured_nodes));
        format!("{epochs} epochs on {nodes} nodes were measured and scaled up")
    };
    format!(
        "about {} an epoch, {} for {} epochs ({how}; scores and report not included)",
        duration(pace.seconds_per_epoch),
        duration(total_seconds(pace, plan)),
        grouped(plan.epochs())
    )
}

/// The command that starts the run; there is none for sizes alone.
fn next_line(args: &PlanArgs) -> Option<String> {
    if !args.sizes.is_empty() {
        return None;
    }
    let own = args.own.words();
    let graph = match (&args.graph, &args.own.edges) {
        (None, Some(_)) => own.trim_start().to_owned(),
        _ => shell_word(Path::new(named(args))) + &own,
    };
    Some(format!("blnn train {graph}{}", train_words::setting_words(&args.settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_refused() {
        let sizes = read_sizes(&[10, 20, 30]).unwrap();
        assert_eq!((sizes.nodes, sizes.entries, sizes.values()), (10, 40, 300));
        assert_eq!(read_sizes(&[10, 20, 30, 4]).unwrap().values(), 40);
        for bad in
            [&[10, 20][..], &[0, 1, 1], &[10, 20, 30, 31], &[1, 1, 1, 1, 1], &[1 << 41, 1, 1]]
        {
            let text = read_sizes(bad).unwrap_err().to_string();
            assert!(text.starts_with("--sizes: "), "{text}");
        }
    }
}
