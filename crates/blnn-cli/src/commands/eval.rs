//! `blnn eval`: score embeddings, ours or another tool's.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use blnn::data::own::ColumnNames;
use blnn::eval::{
    EvalPlan, Progress, Protocol, Scores, Task, check_labels, evaluate, number_classes,
};
use blnn::vectors::{self, Vectors};
use blnn::{Splits, data};
use blnn_kernels::Threads;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::eval_report::{self, Scored};
use super::load_graph;
use crate::output::{grouped, note};
use crate::scoring::take_rows;

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
    /// A table is matched by the ids in the file of the embeddings, or in the `node_ids.txt` or
    /// `….metadata.tsv` beside it, and row by row if there are none. A graph that comes with
    /// splits, as WikiCS does, is classified on those.
    #[arg(long, value_name = "LABELS.npy|TABLE|GRAPH")]
    labels: String,

    /// The column of the table of nodes that holds the classes
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,

    /// The column of the table of nodes that holds the ids [default: id, node, name, ... or the first]
    #[arg(long, value_name = "COLUMN", requires = "label")]
    id_column: Option<String>,

    /// The first line of the table is data; columns are told by their numbers, from 1
    #[arg(long, requires = "label")]
    no_header: bool,

    /// What to score, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "classify,cluster,similar,compactness")]
    tasks: Vec<Task>,

    /// Number of random splits of the classification
    #[arg(long, value_name = "N", default_value_t = 20)]
    splits: usize,

    /// Number of repetitions of the clustering
    #[arg(long, value_name = "N", default_value_t = 10)]
    repeats: usize,

    /// How to split and choose the penalty: published-code, paper or both
    ///
    /// published-code: 20 % of the nodes train, the penalty is chosen by five halvings of them, 80 %
    /// test; what the authors' code does. paper: 10 % train, 10 % choose the penalty, 80 % test;
    /// what the paper's text says.
    #[arg(long, default_value = "published-code")]
    protocol: Protocol,

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
    let plan = EvalPlan {
        tasks: args.tasks.clone(),
        splits: args.splits,
        repeats: args.repeats,
        protocol: args.protocol,
        seed: args.seed,
    };
    let nodes = Nodes::read(args)?;
    let known: Vec<u32> = nodes.labels.iter().copied().flatten().collect();
    check_labels(&known, nodes.splits.as_ref(), &plan).map_err(|e| e.at(&args.labels))?;
    let threads = Threads::new(args.threads.into());
    let mut scored = Vec::new();
    for path in [Some(&args.embeddings), args.other.as_ref()].into_iter().flatten() {
        scored.push(score(path, &nodes, &plan, &threads)?);
    }
    let out = &mut io::stdout().lock();
    match args.format {
        Format::Table => eval_report::table(out, &scored)?,
        Format::Json => eval_report::json(out, &scored)?,
        Format::Csv => eval_report::csv(out, &scored)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The nodes' classes, as far as they have one, and the public splits of their data set.
struct Nodes {
    labels: Vec<Option<u32>>,
    splits: Option<Splits>,
    /// The ids of a table, by which its rows are matched with those of the embeddings.
    ids: Option<Vec<String>>,
}

impl Nodes {
    fn read(args: &EvalArgs) -> anyhow::Result<Self> {
        let source = &args.labels;
        let path = Path::new(source);
        if args.label.is_some() {
            let columns = ColumnNames {
                id: args.id_column.clone(),
                label: args.label.clone(),
                no_header: args.no_header,
                ..ColumnNames::default()
            };
            let (ids, labels, _) = data::own::labels(path, &columns)?;
            return Ok(Self { labels, splits: None, ids: Some(ids) });
        }
        if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy")) {
            let labels = read_labels(path).map_err(|e| e.at(source))?;
            let labels = labels.into_iter().map(Some).collect();
            return Ok(Self { labels, splits: None, ids: None });
        }
        let graph = load_graph(source, args.data_dir.as_deref())?;
        if graph.classes() == 0 {
            bail!(
                "{source}: the graph has no labels; give --labels a .npy vector, or a table of \
                 nodes and the name of its column with --label"
            );
        }
        let labels = (0..graph.nodes()).map(|node| graph.label_of(node)).collect();
        Ok(Self { labels, splits: graph.splits().cloned(), ids: None })
    }

    /// The classes in the order of the embeddings in `path`.
    fn labels_for(&self, path: &Path, vectors: &Vectors) -> anyhow::Result<Cow<'_, [Option<u32>]>> {
        let Some(known) = &self.ids else {
            return Ok(Cow::Borrowed(&self.labels));
        };
        let beside = match &vectors.ids {
            Some(_) => None,
            None => vectors::ids_beside(path, vectors.matrix.rows())?,
        };
        let (place, ids) = match (&vectors.ids, &beside) {
            (Some(ids), _) => (format!("{}: row", path.display()), ids),
            (None, Some((list, ids))) => (format!("{}: line", list.display()), ids),
            (None, None) => {
                note(format_args!("{}: no ids: rows are matched in order", path.display()));
                return Ok(Cow::Borrowed(&self.labels));
            }
        };
        let mut rows: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for (row, id) in known.iter().enumerate() {
            // Some formats cannot hold blanks; a true name goes before one that was made so.
            if id.contains(char::is_whitespace) {
                rows.entry(id.replace(char::is_whitespace, "_").into()).or_insert(row);
            }
        }
        rows.extend(known.iter().enumerate().map(|(row, id)| (Cow::Borrowed(id.as_str()), row)));
        let label = |(row, id): (usize, &String)| {
            let found = rows.get(id.as_str()).with_context(|| {
                let row = row + 1;
                format!("{place} {row}: the id `{id}` is not in the table of labels; add it there")
            })?;
            Ok(self.labels[*found])
        };
        ids.iter().enumerate().map(label).collect::<anyhow::Result<Vec<_>>>().map(Cow::Owned)
    }
}

/// Class numbers from a vector of integers or names.
fn read_labels(path: &Path) -> blnn::Result<Vec<u32>> {
    use data::npy::Values;
    let array = data::npy::read_file(path)?;
    if array.shape().len() != 1 {
        let message = format!("labels have {} axes, a vector has 1", array.shape().len());
        return Err(blnn::Error::new(blnn::ErrorKind::Shape, message));
    }
    match array.values() {
        Values::Int(values) => Ok(number_classes(values)),
        Values::Text(names) => Ok(number_classes(names)),
        Values::Bool(values) => Ok(number_classes(values)),
        _ => Err(blnn::Error::new(
            blnn::ErrorKind::Parse,
            "labels are not integers or names; convert them, as with labels.astype(int)",
        )),
    }
}

fn score(path: &Path, nodes: &Nodes, plan: &EvalPlan, threads: &Threads) -> anyhow::Result<Scored> {
    let name = path.display().to_string();
    let vectors = vectors::read_file(path)?;
    let all = nodes.labels_for(path, &vectors)?;
    let mut embeddings = vectors.matrix;
    let labels: Vec<u32> = all.iter().copied().flatten().collect();
    if labels.len() < all.len() {
        let (rows, count) = (embeddings.rows(), all.len());
        ensure!(rows == count, "{name}: {rows} embeddings for {count} nodes of the labels");
        let (without, count) = (grouped(all.len() - labels.len()), grouped(all.len()));
        note(format_args!("{without} of {count} nodes have no label and are not scored"));
        let rows: Vec<usize> = (0..all.len()).filter(|&row| all[row].is_some()).collect();
        embeddings = take_rows(&embeddings, &rows);
    }
    let mut watch = Watch::new();
    let mut listen = |progress| watch.see(progress);
    let splits = nodes.splits.as_ref();
    let scores: blnn::Result<Scores> =
        evaluate(&embeddings, &labels, splits, plan, threads, &mut listen);
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
