//! `blnn eval`: score embeddings, ours or another tool's.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::ensure;
use blnn::data::own::{ColumnNames, Encoding, Rule};
use blnn::eval::{EvalPlan, Progress, Protocol, Scores, Task, evaluate};
use blnn::vectors::{self, Vectors};
use blnn::{ErrorKind, Splits};
use blnn_kernels::Threads;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::eval_nodes::{Nodes, Placed};
use super::eval_report::{self, Scored};
use crate::output::{note, shell_word};
use crate::scoring::keep_possible;

/// Score embeddings on the paper's tasks.
///
/// classify: accuracy of logistic regression over random splits. cluster: agreement of k-means
/// clusters with the classes. similar: share of same-class nodes among the 5 and 10 nearest by
/// cosine. compactness: mean cosine within classes. With two files of embeddings, both are scored
/// on the same splits and compared split by split.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn eval runs/photo-blnn-seed1/embeddings.npy --labels photo
  blnn eval runs/edges-blnn-seed1/embeddings.npy --labels nodes.csv --label topic
  blnn eval mine.npy --labels classes.npy --tasks classify,similar --format json
  blnn eval vectors.csv --labels nodes.csv --label topic
  blnn eval mine.npy theirs.npy --labels photo --protocol both")]
pub(crate) struct EvalArgs {
    /// Embeddings, one row a node: .npy, .npz, parquet, csv or tsv, word2vec text
    ///
    /// A file may hold ids too. Tables may come with or without a header and a column of ids;
    /// `docs/RUN_FOLDER.md` says how both are found.
    #[arg(value_name = "EMBEDDINGS")]
    embeddings: PathBuf,

    /// Other embeddings of the same nodes, to compare with
    #[arg(value_name = "OTHER")]
    other: Option<PathBuf>,

    /// The nodes' classes: a .npy vector of integers or names, a table of nodes (csv, tsv, parquet;
    /// name its column with --label), or a graph (a name or a file)
    ///
    /// A table or a graph is matched by the ids in the file of the embeddings, or in the
    /// `node_ids.txt` or `….metadata.tsv` beside it, and row by row if there are none, or the graph
    /// has none. Nodes that the table does not list are not scored. A graph that comes with splits,
    /// as WikiCS does, is classified on those.
    #[arg(long, value_name = "LABELS.npy|TABLE|GRAPH")]
    labels: String,

    /// The column of the table of nodes that holds the classes
    ///
    /// A column of that name beside the embeddings is no part of them.
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// The column of the table of nodes that holds the ids [default: id, node, name, ... or the first]
    #[arg(long, value_name = "COLUMN", requires = "label")]
    id_column: Option<String>,

    /// The first line of the table is data; columns are told by their numbers, from 1
    #[arg(long, requires = "label")]
    no_header: bool,

    /// What to score, separated by commas [default: of classify, cluster, similar and compactness
    /// whatever the labels allow]
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<Task>,

    /// Number of random splits of the classification [default: 20]
    #[arg(long, value_name = "N")]
    splits: Option<usize>,

    /// Number of repetitions of the clustering
    #[arg(long, value_name = "N", default_value_t = 10)]
    repeats: usize,

    /// How to split and choose the penalty: published-code, paper or both [default: published-code]
    ///
    /// published-code: 20 % of the nodes train, the penalty is chosen by five halvings of them, 80 %
    /// test; what the authors' code does. paper: 10 % train, 10 % choose the penalty, 80 % test;
    /// what the paper's text says.
    #[arg(long)]
    protocol: Option<Protocol>,

    /// Where all random numbers come from; 1 gives the reference's splits
    #[arg(long, default_value_t = 1)]
    seed: u32,

    /// Number of threads, 0 for one per core; the result is the same bits for any number
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    threads: u16,

    /// Where data sets are looked for and kept [default: `$BLNN_DATA_DIR`, else the user's cache]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// How to print the scores
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// How scores are printed on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// For programs: one object.
    Json,
    /// One value a line: embeddings, task, measure, value.
    Csv,
}

pub(crate) fn run(args: &EvalArgs) -> anyhow::Result<ExitCode> {
    let nodes = read_nodes(args)?;
    let files = read_embeddings(args, &nodes)?;
    // Two files are of the same nodes.
    let plan = plan(args, &nodes, &files[0].1)?;
    let threads = Threads::new(args.threads.into());
    let mut scored = Vec::new();
    for file in files {
        scored.push(score(file, nodes.splits.as_ref(), &plan, &threads)?);
    }
    let out = &mut io::stdout().lock();
    match args.format {
        Format::Table => eval_report::table(out, &scored)?,
        Format::Json => eval_report::json(out, &scored)?,
        Format::Csv => eval_report::csv(out, &scored)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is scored: the tasks that were asked for, or all that the labels allow.
fn plan(args: &EvalArgs, nodes: &Nodes, placed: &Placed) -> blnn::Result<EvalPlan> {
    let default = EvalPlan::default();
    let mut plan = EvalPlan {
        tasks: if args.tasks.is_empty() { Task::ALL.to_vec() } else { args.tasks.clone() },
        splits: args.splits.unwrap_or(default.splits),
        repeats: args.repeats,
        protocol: args.protocol.unwrap_or(default.protocol),
        seed: args.seed,
    };
    let (labels, splits) = (&placed.labels, nodes.splits.as_ref());
    if splits.is_some() && (args.splits.is_some() || args.protocol.is_some()) {
        note(format_args!(
            "{}: is classified on its own splits: --splits and --protocol are not used",
            args.labels
        ));
    }
    let named = |place: usize| nodes.words(placed.nodes[place]);
    let located = |error: blnn::Error| match error.kind() {
        // A setting is no fault of the labels.
        ErrorKind::Config => error,
        _ => error.at(&args.labels),
    };
    if args.tasks.is_empty() {
        for fault in keep_possible(&mut plan, labels, splits, &named).map_err(located)? {
            note(format_args!("{}: not scored: {fault}", args.labels));
        }
        return Ok(plan);
    }
    let faults = plan.faults(labels, splits, &named).map_err(located)?;
    faults.into_iter().next().map_or(Ok(plan), |(_, fault)| Err(located(fault)))
}

fn read_nodes(args: &EvalArgs) -> anyhow::Result<Nodes> {
    let path = Path::new(&args.labels);
    if args.label.is_some() {
        let columns = ColumnNames {
            id: args.id_column.clone(),
            label: args.label.clone(),
            no_header: args.no_header,
            ..ColumnNames::default()
        };
        return Ok(Nodes::of_table(path, &columns)?);
    }
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
        return Ok(Nodes::of_vector(path)?);
    }
    Nodes::of_graph(&args.labels, args.data_dir.as_deref())
}

/// Reads the one or two files of embeddings; two must be of the same nodes, to be compared.
fn read_embeddings(args: &EvalArgs, nodes: &Nodes) -> anyhow::Result<Vec<(String, Placed)>> {
    let label = args.label.as_deref();
    let read = |path: &PathBuf| Ok((path.display().to_string(), read_vectors(path, label)?));
    let place = |(name, vectors): (String, Vectors)| {
        let placed = nodes.place(Path::new(&name), vectors)?;
        Ok((name, placed))
    };
    let paths = [Some(&args.embeddings), args.other.as_ref()].into_iter().flatten();
    let files = paths.map(read).collect::<anyhow::Result<Vec<_>>>()?;
    if let [(first, a), (second, b)] = &files[..] {
        ensure!(
            nodes.fit_both([(Path::new(first), a), (Path::new(second), b)])?,
            "{first} and {second} have different ids, or in another order, and labels in a vector \
             fit one order only; give --labels a table with ids or a graph"
        );
    }
    let placed = files.into_iter().map(place).collect::<anyhow::Result<Vec<_>>>()?;
    if let [(first, a), (second, b)] = &placed[..] {
        let (m, n) = (a.nodes.len(), b.nodes.len());
        ensure!(
            a.nodes == b.nodes,
            "{first} and {second} hold embeddings of different nodes ({m} and {n} with a label); \
             give two files of the same nodes"
        );
    }
    Ok(placed)
}

/// Reads a file of embeddings and says on stderr what must be known of it.
fn read_vectors(path: &Path, label: Option<&str>) -> blnn::Result<Vectors> {
    let vectors = vectors::read_file(path, label)?;
    if let Some(told) = vectors.omissions() {
        note(format_args!("{}: {told}", path.display()));
    }
    if let Some(label) = label.filter(|label| was_feature(path, label)) {
        note(format_args!(
            "warning: {}: the run was trained with the column `{label}` as a feature, so the scores \
             say nothing; train with --label {}",
            path.display(),
            shell_word(Path::new(label))
        ));
    }
    Ok(vectors)
}

/// Whether the run that the embeddings lie in made a feature of the column.
fn was_feature(embeddings: &Path, label: &str) -> bool {
    let file = embeddings.with_file_name("features.json");
    // Other programs may have files of that name, which say nothing of a column.
    let text = fs::read_to_string(file).unwrap_or_default();
    let Ok(Encoding { features }) = serde_json::from_str(&text) else {
        return false;
    };
    features.iter().any(|feature| match &feature.rule {
        Rule::Number { column, .. } | Rule::Text { column, .. } => column == label,
        Rule::Matrix | Rule::Structure { .. } => false,
    })
}

fn score(
    (name, placed): (String, Placed),
    splits: Option<&Splits>,
    plan: &EvalPlan,
    threads: &Threads,
) -> anyhow::Result<Scored> {
    let mut watch = Watch::new();
    let mut listen = |progress| watch.see(progress);
    let scores: blnn::Result<Scores> =
        evaluate(&placed.embeddings, &placed.labels, splits, plan, threads, &mut listen);
    watch.bar.finish_and_clear();
    let scores = scores.map_err(|e| e.at(&name))?;
    let threads = threads.count();
    let seconds = watch.seconds;
    Ok(Scored { name, scores, seconds, threads })
}

/// Shows the progress on stderr and takes the time of each task.
struct Watch {
    bar: ProgressBar,
    started: Instant,
    seconds: Vec<(Task, f64)>,
}

impl Watch {
    fn new() -> Self {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) =
            ProgressStyle::with_template("{msg:11} {bar:24} {percent} % · {eta} left")
        {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self { bar, started: Instant::now(), seconds: Vec::new() }
    }

    fn see(&mut self, progress: Progress) {
        if progress.done == 0 {
            self.started = Instant::now();
            self.seconds.push((progress.task, 0.0));
            self.bar.set_message(progress.task.name());
            self.bar.set_length(progress.total as u64);
            self.bar.reset_eta();
        }
        self.bar.set_position(progress.done as u64);
        if let Some(last) = self.seconds.last_mut() {
            last.1 = self.started.elapsed().as_secs_f64();
        }
    }
}
