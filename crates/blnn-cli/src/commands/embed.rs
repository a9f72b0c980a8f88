//! `blnn embed`: embeddings by a model that is trained already.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use blnn::export::{Embedding, Format, Provenance};
use blnn::{Graph, Matrix, Model, Statistics};
use blnn_kernels::Threads;
use clap::Args;
use serde_json::json;

use crate::args::{ExportFormatParser, MachineArgs, named};
use crate::output::{duration, grouped, note, shell_word};
use crate::own_graph::OwnGraphArgs;
use crate::run_graph::{Lost, Tell, TrainedOn};

/// Embed a graph with a trained run, without training again.
///
/// The graph is the one the run was trained on, the same with new nodes and edges, or another one
/// with the same features. Columns of a table are found by the names they had at training, in any
/// order, and scaled as they were; other columns are left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn embed runs/edges-blnn-seed1 --edges edges.csv --nodes nodes.csv
                                              the graph with what was added since
  blnn embed runs/edges-blnn-seed1 --edges new.csv --nodes people.csv -o new --format parquet
  blnn embed runs/cora-blnn-seed1             the graph of the training
  blnn embed runs/mine other-graph.npz --json")]
pub(crate) struct EmbedArgs {
    /// The run's folder
    pub(crate) run: PathBuf,

    /// A data set's name or a graph in one file [default: the graph of the training]
    ///
    /// For edges with a table of nodes see --edges.
    pub(crate) graph: Option<String>,

    #[command(flatten)]
    pub(crate) own: OwnGraphArgs,

    /// The folder for the embeddings [default: embed-<GRAPH> in the run's folder]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Batch norm's statistics: last-view or averaged [default: those of the run]
    ///
    /// The two readings of the published momentum (`docs/METHOD.md`). A run keeps both, and trains
    /// alike with either.
    #[arg(long, value_name = "NAME", value_parser = named(Statistics::ALL, Statistics::name))]
    pub(crate) statistics: Option<Statistics>,

    /// Formats of the embeddings, separated by commas
    ///
    /// npy, npz, parquet, csv, word2vec (gensim) or projector (`TensorBoard`). All carry the ids of
    /// the nodes; `docs/RUN_FOLDER.md` describes the files.
    #[arg(long, value_name = "FORMATS", value_delimiter = ',', default_value = "npy", value_parser = ExportFormatParser)]
    pub(crate) format: Vec<Format>,

    /// Replace embeddings that are in the folder, those of all formats
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<ExitCode> {
    let model = match (Model::read(&args.run)?, args.statistics) {
        (model, Some(statistics)) => model.with_statistics(statistics),
        (model, None) => model,
    };
    let threads = Threads::new(args.machine.threads.into());
    let graph = find_graph(args, &model, &threads)?;
    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| args.run.join(format!("embed-{}", graph.name())));
    check_free(args, &folder)?;
    args.format.iter().try_for_each(|format| format.check(&graph))?;
    if !model.is_finished() {
        note(format_args!("the run is not finished: this is its state {}", progress(&model)));
    }
    let began = Instant::now();
    let vectors = model.embed(&graph, &threads)?;
    let seconds = began.elapsed().as_secs_f64();
    let files = write(args, &model, &graph, &vectors, &folder)?;
    let done = Done { model: &model, graph: &graph, seconds, folder, files };
    done.print(args)?;
    Ok(ExitCode::SUCCESS)
}

/// The graph that was named, or else the one that the run was trained on.
fn find_graph(args: &EmbedArgs, model: &Model, threads: &Threads) -> anyhow::Result<Graph> {
    let data_dir = args.machine.data_dir.as_deref();
    if let Some(graph) = args.own.load_for(model, args.graph.as_deref(), data_dir, threads)? {
        return Ok(graph);
    }
    let header = model.header();
    let trained = TrainedOn { name: &header.graph, header: Some(header), files: model.own_graph() };
    trained.load(data_dir, Tell::Understood, threads).map_err(|lost| {
        let (why, remedy, words) = match lost {
            Lost::Elsewhere { why, words } => (why, "name the graph", words),
            Lost::Changed { why, words } => {
                (why, "to embed the graph as it is now, name it", words)
            }
        };
        anyhow!("{why}; {remedy}: blnn embed {} {words}", shell_word(&args.run))
    })
}

/// Refuses a folder with embeddings unless told to replace them, before anything is computed. Those
/// of a run are never replaced: they belong to its other files.
fn check_free(args: &EmbedArgs, folder: &Path) -> anyhow::Result<()> {
    let is_here = |name: &&str| folder.join(name).exists();
    if ["checkpoint.safetensors", "config.toml", "summary.json"].iter().any(is_here) {
        bail!(
            "{}: is the folder of a run, which keeps its own embeddings; choose another one with \
             --out",
            folder.display()
        );
    }
    if let Some(path) = embeddings_in(folder).first().filter(|_| !args.force) {
        bail!(
            "{} exists; replace what is there with --force or choose a folder with --out",
            path.display()
        );
    }
    Ok(())
}

/// The files of embeddings in a folder, of any format whose vectors are there.
fn embeddings_in(folder: &Path) -> Vec<PathBuf> {
    let here = |name: &&str| folder.join(name).exists();
    let formats = Format::ALL.iter().map(|format| format.files());
    let names = formats.filter(|files| here(&files[0])).flatten().filter(|name| here(name));
    names.map(|name| folder.join(name)).collect()
}

/// Removes the embeddings of formats that are not written now: they are of another model or graph.
fn remove_others(before: &[PathBuf], written: &[PathBuf]) -> anyhow::Result<()> {
    for path in before.iter().filter(|path| !written.contains(path)) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
        note(format_args!(
            "{}: removed, it was of the embeddings that are replaced",
            path.display()
        ));
    }
    Ok(())
}

fn write(
    args: &EmbedArgs,
    model: &Model,
    graph: &Graph,
    vectors: &Matrix,
    folder: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot create {}; choose another folder with --out", folder.display())
    })?;
    let before = embeddings_in(folder);
    let provenance = Provenance::of_model(model.header());
    let embedding = Embedding::new(vectors, graph, &provenance)?;
    let mut formats: Vec<Format> = Vec::new();
    let mut files = Vec::new();
    for &format in &args.format {
        if !formats.contains(&format) {
            formats.push(format);
            files.extend(embedding.write(format, folder)?);
        }
    }
    remove_others(&before, &files)?;
    Ok(files)
}

/// "after epoch 5 of 20".
fn progress(model: &Model) -> String {
    let (done, planned) = (model.header().epoch, model.plan().epochs());
    format!("after epoch {} of {}", grouped(done), grouped(planned))
}

/// What was done, for the summary.
struct Done<'a> {
    model: &'a Model,
    graph: &'a Graph,
    seconds: f64,
    folder: PathBuf,
    files: Vec<PathBuf>,
}

impl Done<'_> {
    fn print(&self, args: &EmbedArgs) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if args.json {
            return writeln!(out, "{}", self.object(args));
        }
        for (label, value) in self.rows(args) {
            writeln!(out, "{label:<10} {value}")?;
        }
        Ok(())
    }

    fn object(&self, args: &EmbedArgs) -> serde_json::Value {
        let (header, plan) = (self.model.header(), self.model.plan());
        json!({
            "run": args.run,
            "graph": self.graph.name(),
            "training_graph": self.model.was_trained_on(self.graph),
            "nodes": self.graph.nodes(),
            "embedding_width": plan.embedding_width(),
            "method": plan.method().name(),
            "seed": header.seed,
            "statistics": plan.statistics().name(),
            "epochs": header.epoch,
            "finished": self.model.is_finished(),
            "seconds": self.seconds,
            "folder": self.folder,
            "files": self.files,
        })
    }

    fn rows(&self, args: &EmbedArgs) -> Vec<(&'static str, String)> {
        let (header, plan) = (self.model.header(), self.model.plan());
        let trained = self.model.was_trained_on(self.graph);
        let graph = if trained { "the graph of the training" } else { self.graph.name() };
        let shape = format!("{} nodes × {}", grouped(self.graph.nodes()), plan.embedding_width());
        let by = format!(
            "{}: {} on {}, seed {}, {}, {} statistics",
            shell_word(&args.run),
            plan.method().name(),
            header.graph,
            header.seed,
            progress(self.model),
            plan.statistics().name()
        );
        let mut rows =
            vec![("embedded", format!("{graph}: {shape}, {}", duration(self.seconds))), ("by", by)];
        let labels = std::iter::once("files").chain(std::iter::repeat(""));
        rows.extend(labels.zip(self.files.iter().map(|path| shell_word(path))));
        rows
    }
}
