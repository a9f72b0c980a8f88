//! `blnn datasets`: the public graphs, what is in them, and how to get them.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use blnn::Graph;
use blnn::data::{self, Counts, Dataset, FetchOptions, PaperRow, fetch, folders};
use blnn_kernels::Threads;
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::output::grouped;
use crate::own_graph::OwnGraphArgs;

/// List, describe and fetch the public graphs.
#[derive(Debug, Args)]
pub(crate) struct DatasetsArgs {
    /// Folder with the files of the data sets, searched first and downloaded to.
    ///
    /// Searched next are the folder that `BLNN_DATA_DIR` names and the user's cache.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the known graphs and where their files are.
    List {
        /// How to print the list.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the sizes of graphs beside the paper's.
    Info {
        /// Known graphs, or graphs in one file each.
        #[arg(value_name = "GRAPH")]
        graphs: Vec<String>,
        #[command(flatten)]
        own: Box<OwnGraphArgs>,
        /// Also check the file of a known graph against its published SHA-256.
        #[arg(long)]
        verify: bool,
        /// How to print the sizes; `json` is one object a line.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Download known graphs, continuing where an earlier download ended.
    Fetch(FetchArgs),
}

#[derive(Debug, Args)]
struct FetchArgs {
    /// Known graphs.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Download again even if a right file is there.
    #[arg(long)]
    force: bool,
    /// Address that serves the same files by name, instead of the publisher's.
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Seconds that the server may be silent.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    stall_timeout: u64,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// The folders in which files of data sets are looked for: `data_dir` if given, the one that
/// `BLNN_DATA_DIR` names, the user's cache.
pub(crate) fn search_folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    folders::search(data_dir, |name| std::env::var_os(name))
}

/// Runs `blnn datasets`.
pub(crate) fn run(args: &DatasetsArgs) -> Result<()> {
    let folders = search_folders(args.data_dir.as_deref());
    match &args.action {
        Action::List { format } => list(*format, &folders),
        Action::Info { graphs, own, verify, format } => {
            ensure!(
                !graphs.is_empty() || own.edges.is_some(),
                "name a graph, or the file of its edges with --edges; `blnn datasets list` shows \
                 the known graphs"
            );
            let named: Vec<Option<&str>> = match graphs.as_slice() {
                [] => vec![None],
                graphs => graphs.iter().map(|graph| Some(graph.as_str())).collect(),
            };
            let about = Inspect { own, verify: *verify, format: *format, folders: &folders };
            named.into_iter().try_for_each(|graph| about.info(graph, args.data_dir.as_deref()))
        }
        Action::Fetch(args) => {
            args.names.iter().try_for_each(|name| fetch_one(name, args, &folders))
        }
    }
}

/// Prints `text`. A reader that has seen enough, such as `head`, is no failure.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e).context("cannot print"),
        _ => Ok(()),
    }
}

#[derive(Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
    nodes: usize,
    entries: usize,
    features: usize,
    classes: usize,
    file: Option<&'static str>,
    url: Option<&'static str>,
    sha256: Option<&'static str>,
    path: Option<PathBuf>,
}

impl Listed {
    fn new(dataset: &Dataset, folders: &[PathBuf]) -> Self {
        let Counts { nodes, entries, features, classes } = dataset.counts;
        Self {
            name: dataset.name,
            about: dataset.about,
            nodes,
            entries,
            features,
            classes,
            file: dataset.file(),
            url: dataset.url(),
            sha256: dataset.sha256(),
            path: dataset.locate(folders),
        }
    }

    fn place(&self) -> String {
        match (&self.path, self.file) {
            (Some(path), _) => path.display().to_string(),
            (None, None) => "embedded".into(),
            (None, Some(_)) => format!("blnn datasets fetch {}", self.name),
        }
    }
}

fn list(format: Format, folders: &[PathBuf]) -> Result<()> {
    let rows: Vec<Listed> =
        data::registry().iter().map(|dataset| Listed::new(dataset, folders)).collect();
    if format == Format::Json {
        return print(&(serde_json::to_string_pretty(&rows)? + "\n"));
    }
    let mut text = format!(
        "{:<10} {:>7} {:>8} {:>8} {:>7}  FILE, OR HOW TO GET IT\n",
        "NAME", "NODES", "EDGES", "FEATURES", "CLASSES"
    );
    for row in rows {
        writeln!(
            text,
            "{:<10} {:>7} {:>8} {:>8} {:>7}  {}",
            row.name,
            grouped(row.nodes),
            grouped(row.entries),
            grouped(row.features),
            row.classes,
            row.place()
        )?;
    }
    print(&text)
}

/// What is known of a loaded graph, beside the paper's row.
#[derive(Serialize)]
struct Info {
    name: String,
    nodes: usize,
    entries: usize,
    features: usize,
    classes: usize,
    homophily_percent: Option<f64>,
    isolated_nodes: usize,
    self_loops: usize,
    edge_density: f64,
    feature_density: f64,
    public_splits: usize,
    fingerprint: String,
    paper: Option<PaperComparison>,
}

#[derive(Serialize)]
struct PaperComparison {
    nodes: usize,
    entries: usize,
    features: usize,
    classes: usize,
    homophily_percent: f64,
    /// The sizes that differ.
    differs: Vec<&'static str>,
    /// Why they do.
    remark: Option<&'static str>,
}

impl Info {
    fn new(graph: &Graph, paper: Option<&PaperRow>) -> Self {
        let counts = Counts::of(graph);
        let homophily_percent = graph.edge_homophily().map(|share| (share * 1e4).round() / 1e2);
        Self {
            name: graph.name().to_owned(),
            nodes: counts.nodes,
            entries: counts.entries,
            features: counts.features,
            classes: counts.classes,
            homophily_percent,
            isolated_nodes: graph.isolated_nodes(),
            self_loops: graph.self_loops(),
            edge_density: graph.density(),
            feature_density: graph.features().density(),
            public_splits: graph.splits().map_or(0, |splits| splits.train.len()),
            fingerprint: graph.fingerprint(),
            paper: paper.map(|row| PaperComparison::new(counts, homophily_percent, row)),
        }
    }

    fn table(&self) -> String {
        let paper = self.paper.as_ref();
        let mut rows = String::new();
        let mut count = |label: &str, ours: usize, theirs: Option<usize>| {
            let verdict = theirs.map_or(String::new(), |theirs| {
                format!("{:>9}   {}", grouped(theirs), self.verdict(ours, theirs))
            });
            let _ = writeln!(rows, "  {label:<18}{:>9}{verdict}", grouped(ours));
        };
        count("nodes", self.nodes, paper.map(|p| p.nodes));
        count("edges, directed", self.entries, paper.map(|p| p.entries));
        count("features", self.features, paper.map(|p| p.features));
        count("classes", self.classes, paper.map(|p| p.classes));
        rows.push_str(&self.homophily_row());
        let heading = paper.map_or("", |_| "    paper");
        let mut text = format!("{:<20}{:>9}{heading}\n{rows}", self.name, "loaded");
        text.push_str(&self.other_rows());
        text
    }

    fn homophily_row(&self) -> String {
        let Some(ours) = self.homophily_percent else {
            return format!("  {:<18}{:>9}\n", "edge homophily", "unknown");
        };
        let verdict = self.paper.as_ref().map_or(String::new(), |paper| {
            let same = !paper.differs.contains(&"homophily");
            let verdict = if same { "agrees" } else { "differs" };
            format!("{:>7.2} %   {verdict}", paper.homophily_percent)
        });
        format!("  {:<18}{ours:>7.2} %{verdict}\n", "edge homophily")
    }

    fn other_rows(&self) -> String {
        let percent = |share: f64| format!("{:.3} %", 100.0 * share);
        let mut rows = String::new();
        for (label, value) in [
            ("isolated nodes", grouped(self.isolated_nodes)),
            ("self-loops", grouped(self.self_loops)),
            ("edge density", percent(self.edge_density)),
            ("feature density", percent(self.feature_density)),
            ("public splits", self.public_splits.to_string()),
        ] {
            let _ = writeln!(rows, "  {label:<18}{value:>9}");
        }
        rows
    }

    fn verdict(&self, ours: usize, theirs: usize) -> String {
        if ours == theirs {
            return "agrees".into();
        }
        let remark = self.paper.as_ref().and_then(|paper| paper.remark);
        let remark = remark.map_or(String::new(), |remark| format!(": {remark}"));
        format!("differs by {}{remark}", grouped(ours.abs_diff(theirs)))
    }
}

impl PaperComparison {
    fn new(ours: Counts, homophily: Option<f64>, row: &PaperRow) -> Self {
        let paper = row.counts;
        // Both are rounded to two decimals.
        let same_homophily = homophily.is_some_and(|ours| (ours - row.homophily).abs() < 5e-3);
        let checks = [
            ("nodes", ours.nodes == paper.nodes),
            ("entries", ours.entries == paper.entries),
            ("features", ours.features == paper.features),
            ("classes", ours.classes == paper.classes),
            ("homophily", same_homophily),
        ];
        let differs = checks.iter().filter(|(_, same)| !same);
        Self {
            nodes: paper.nodes,
            entries: paper.entries,
            features: paper.features,
            classes: paper.classes,
            homophily_percent: row.homophily,
            differs: differs.map(|&(name, _)| name).collect(),
            remark: row.remark,
        }
    }
}

/// How graphs are looked at.
struct Inspect<'a> {
    own: &'a OwnGraphArgs,
    verify: bool,
    format: Format,
    folders: &'a [PathBuf],
}

impl Inspect<'_> {
    fn info(&self, name: Option<&str>, data_dir: Option<&Path>) -> Result<()> {
        let graph = self.own.load(name, data_dir, &Threads::new(0))?.graph;
        let dataset = name.and_then(data::find);
        let file = dataset.and_then(|dataset| Some((dataset, dataset.locate(self.folders)?)));
        match file.filter(|_| self.verify) {
            Some((dataset, path)) => {
                dataset.verify(&path)?;
                progress_line(&format!("{}: {}", path.display(), checked(dataset)));
            }
            None if self.verify => {
                progress_line("nothing to verify: this graph has no published file");
            }
            None => {}
        }
        let info = Info::new(&graph, dataset.and_then(|dataset| dataset.paper.as_ref()));
        match self.format {
            Format::Json => print(&(serde_json::to_string(&info)? + "\n")),
            Format::Table => print(&info.table()),
        }
    }
}

/// What verification of a data set amounts to.
fn checked(dataset: &Dataset) -> &'static str {
    match dataset.sha256() {
        Some(_) => "matches the published SHA-256",
        None => "has the published sizes (no SHA-256 of this file is known)",
    }
}

fn fetch_one(name: &str, args: &FetchArgs, folders: &[PathBuf]) -> Result<()> {
    if data::find(name).is_none() && Path::new(name).exists() {
        bail!("{name} is a file, not a known graph; there is nothing to fetch");
    }
    let dataset = data::named(name)?;
    if dataset.file().is_none() {
        progress_line(&format!("{name} is part of the program; nothing to fetch"));
        return Ok(());
    }
    if let Some(path) = dataset.locate(folders).filter(|_| !args.force) {
        match dataset.verify(&path) {
            Ok(()) => return print(&format!("{}\n", path.display())),
            Err(error) => progress_line(&format!("{error}; fetching it again")),
        }
    }
    let folder = folders
        .first()
        .context("there is no cache folder (HOME is not set); give one with --data-dir")?;
    let path = download(dataset, folder, args)?;
    print(&format!("{}\n", path.display()))
}

fn download(dataset: &Dataset, folder: &Path, args: &FetchArgs) -> Result<PathBuf> {
    let mut options = FetchOptions::default();
    options.mirror.clone_from(&args.mirror);
    options.stall_timeout = Duration::from_secs(args.stall_timeout);
    let bar = ProgressBar::no_length().with_message(dataset.name);
    bar.set_style(bar_style());
    let path = dataset.fetch(folder, &options, &mut |progress: fetch::Progress| {
        if let Some(total) = progress.total {
            bar.set_length(total);
        }
        bar.set_position(progress.received);
    });
    bar.finish_and_clear();
    let path = path?;
    progress_line(&format!("{}: {}", dataset.name, checked(dataset)));
    Ok(path)
}

fn bar_style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Says something on stderr, where it does not mix with the results.
fn progress_line(text: &str) {
    // With stderr closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn the_table_says_where_the_paper_differs() {
        let graph = data::load("cora", &[]).unwrap();
        let counts = Counts::of(&graph);
        let row = PaperRow {
            counts: Counts { entries: counts.entries + 1, ..counts },
            homophily: 81.00,
            remark: Some("for a reason"),
        };
        let info = Info::new(&graph, Some(&row));
        let table = info.table();
        assert!(table.contains("10,556   10,557   differs by 1: for a reason"), "{table}");
        assert!(table.contains("81.00 %  81.00 %   agrees"), "{table}");
        assert_eq!(info.paper.unwrap().differs, ["entries"]);
    }
}
