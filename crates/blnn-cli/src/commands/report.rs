//! `blnn report`: a run as one page to look at.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blnn::{Graph, MapMethod, ReportOptions, StoredRun, atomic, report_run};
use blnn_kernels::Threads;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::args::MachineArgs;
use crate::output::{note, shell_word};
use crate::own_graph::OwnGraphArgs;
use crate::run_graph::{Lost, Tell, TrainedOn};

/// Write a page that shows a run: scores, curves, and a map of all nodes.
///
/// The page is one file that works offline. Nodes on the map can be coloured by class, cluster or
/// degree, searched by id, and clicked for their ten nearest neighbours. Classes and degrees need
/// the graph: that of a public data set is found by itself, and so are your own files where they
/// are still as they were.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn report runs/cora-blnn-seed1
  blnn report runs/mine my/graph.npz -o mine.html
  blnn report runs/mine --edges edges.csv --nodes nodes.csv --label topic
  blnn report runs/physics-blnn-seed1 --map pca     at once, instead of in a minute")]
pub(crate) struct ReportArgs {
    /// The run's folder
    pub(crate) run: PathBuf,

    /// The graph the run was trained on: a data set's name or a file [default: as the run says]
    pub(crate) graph: Option<String>,

    #[command(flatten)]
    pub(crate) own: OwnGraphArgs,

    /// Where to write the page [default: report.html in the run's folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// How to lay out the map
    #[arg(long, value_enum, default_value_t = MapChoice::Tsne)]
    pub(crate) map: MapChoice,

    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

/// How nodes are laid out on the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapChoice {
    /// Neighbours stay together; seconds for thousands of nodes, a minute for tens of thousands.
    Tsne,
    /// The plane of largest spread, at once.
    Pca,
}

impl MapChoice {
    fn method(self) -> MapMethod {
        match self {
            Self::Tsne => MapMethod::Tsne,
            Self::Pca => MapMethod::Pca,
        }
    }
}

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let run = StoredRun::read(&args.run)?;
    let threads = Threads::new(args.machine.threads.into());
    let graph = find_graph(args, &run, &threads)?;
    let path = args.output.clone().unwrap_or_else(|| args.run.join("report.html"));
    let options = ReportOptions { map: args.map.method(), ..ReportOptions::default() };
    let job = Page { run: &run, graph: graph.as_ref(), options, threads: &threads, path: &path };
    job.write()?;
    writeln!(io::stdout(), "{}", shell_word(&path))?;
    Ok(ExitCode::SUCCESS)
}

/// The graph that was named, or else the one that the run was trained on, if it can be had.
fn find_graph(
    args: &ReportArgs,
    run: &StoredRun,
    threads: &Threads,
) -> anyhow::Result<Option<Graph>> {
    let data_dir = args.machine.data_dir.as_deref();
    if let Some(graph) = args.own.load_named(args.graph.as_deref(), data_dir, threads)? {
        return Ok(Some(graph));
    }
    let files = run.own_graph()?;
    let trained =
        TrainedOn { name: &run.summary().graph, header: run.header(), files: files.as_ref() };
    let why = match trained.load(data_dir, Tell::Nothing, threads) {
        Ok(graph) => return Ok(Some(graph)),
        // A graph that is not that of the run says nothing about its embeddings.
        Err(Lost::Changed { why, .. }) => why,
        Err(Lost::Elsewhere { why, words }) => {
            let run = shell_word(&args.run);
            format!("{why}; name the graph with: blnn report {run} {words}")
        }
    };
    note(format_args!("without classes and degrees: {why}"));
    Ok(None)
}

/// Writes the page of a run that has just ended. Whatever goes wrong here must not look like a
/// failed training.
pub(crate) fn after_training(root: &Path, graph: &Graph, threads: &Threads) -> Option<PathBuf> {
    let path = root.join("report.html");
    let map = MapMethod::after_training(graph.nodes());
    let options = ReportOptions { map, ..ReportOptions::default() };
    let write = |run: StoredRun| {
        Page { run: &run, graph: Some(graph), options, threads, path: &path }.write()
    };
    match StoredRun::read(root).and_then(write) {
        Ok(()) => Some(path),
        Err(error) => {
            note(format_args!("warning: no report: {error}"));
            None
        }
    }
}

/// A page to be written.
struct Page<'a> {
    run: &'a StoredRun,
    graph: Option<&'a Graph>,
    options: ReportOptions,
    threads: &'a Threads,
    path: &'a Path,
}

impl Page<'_> {
    fn write(&self) -> blnn::Result<()> {
        let bar = bar();
        let mut progress = |done: usize, total: usize| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        };
        let made = report_run(self.run, self.graph, &self.options, self.threads, &mut progress);
        bar.finish_and_clear();
        let report = made?;
        atomic::replace(self.path, |out| report.write(out))
    }
}

fn bar() -> ProgressBar {
    let shown = io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(0), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:24} map of the nodes · {eta} left") {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar
}
