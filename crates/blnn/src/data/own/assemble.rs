//! Putting the parts of a user's graph together.

use std::path::Path;
use std::time::Instant;

use blnn_kernels::{Pattern, Threads};

use super::encoding::{Encoding, Feature, Rule};
use super::endpoints::EndPoints;
use super::files::{self, EdgeFile, NodeFile};
use super::ids::NodeIds;
use super::known::{Known, Unseen};
use super::matrices::WholeGraph;
use super::node_table::LabelColumn;
use super::source::Source;
use super::structural::{self, Structural};
use super::understood::{FeatureSource, FileNote, IdKind, LabelNote, Understood};
use super::{Loaded, OwnGraph, Why, name_of, saved};
use crate::data::{SelfLoops, undirected};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph, Splits};

/// What is computed where a graph has no features and the user says nothing.
const DEFAULT_FEATURES: Structural = Structural::RandomWalk;

/// Everything about a graph but its adjacency, on the way to one.
struct Parts {
    name: String,
    notes: Vec<FileNote>,
    ids: NodeIds,
    edges: Vec<(u32, u32)>,
    given: Given,
    labels: Option<LabelColumn>,
    splits: Option<Splits>,
}

/// The features that the files hold.
pub(super) enum Given {
    None,
    Matrix(Features),
    Table(Vec<super::node_table::Column>),
}

/// Features and how they came about.
pub(super) struct Made {
    pub(super) features: Features,
    pub(super) encoding: Encoding,
    pub(super) source: FeatureSource,
    pub(super) unseen: Vec<Unseen>,
}

/// Reads a graph; its features are made as `saved` says, or else as suits them best.
pub(super) fn graph(
    request: &OwnGraph,
    saved: Option<&Encoding>,
    threads: &Threads,
) -> Result<Loaded> {
    if let Some(saved) = saved {
        saved::check_request(request, saved)?;
    }
    let source = Source::open(&request.edges)?;
    let (file, note) = files::edges(&source, &request.columns, threads)?;
    let parts = match file {
        EdgeFile::Benchmark { graph, listed } => {
            check_alone(request)?;
            check_features(request)?;
            if let Some(saved) = saved {
                saved::check_width(saved, graph.features())
                    .map_err(|e| e.at(request.edges.display()))?;
            }
            return Ok(benchmark(*graph, &listed, note));
        }
        EdgeFile::Whole(whole) => {
            check_alone(request)?;
            whole_parts((request, &source), whole, note, threads)?
        }
        EdgeFile::Edges { ends, nodes } => {
            edge_parts((request, &source), saved, ends, nodes, note, threads)?
        }
    };
    assemble(request, saved, parts, threads)
}

/// Refuses tables beside a file that holds everything.
fn check_alone(request: &OwnGraph) -> Result<()> {
    let columns = &request.columns;
    let extra = [
        ("--nodes", request.nodes.is_some()),
        ("--label", columns.label.is_some()),
        ("--id-column", columns.id.is_some()),
    ];
    let Some((flag, _)) = extra.iter().find(|(_, given)| *given) else {
        return Ok(());
    };
    let message = format!("holds the nodes and their labels too; leave {flag} out");
    Err(Error::new(ErrorKind::Config, message).at(request.edges.display()))
}

/// Refuses to replace the features of a file that is read as a whole.
fn check_features(request: &OwnGraph) -> Result<()> {
    let Some(kind) = request.features else {
        return Ok(());
    };
    let message = format!("holds features of its own; leave --features {} out", kind.name());
    Err(Error::new(ErrorKind::Config, message).at(request.edges.display()))
}

fn whole_parts(
    (request, source): (&OwnGraph, &Source),
    whole: WholeGraph,
    note: FileNote,
    threads: &Threads,
) -> Result<Parts> {
    let (nodes, member) = whole.nodes;
    let ids = counting(nodes)?;
    let mut ends = EndPoints::new();
    ends.push_numbers(whole.edges);
    let edges = rows_of((request, source), ends, &ids, member, threads)?;
    let labels = whole.labels.map(|(classes, names)| LabelColumn {
        name: "node_labels".into(),
        names,
        classes: classes.into_iter().map(Some).collect(),
    });
    let given = whole.features.map_or(Given::None, |x| Given::Matrix(Features::Dense(x)));
    let name = name_of(&request.edges);
    Ok(Parts { name, notes: vec![note], ids, edges, given, labels, splits: whole.splits })
}

/// Ids 0, 1, 2 and so on.
fn counting(nodes: usize) -> Result<NodeIds> {
    let too_many = |_| Error::new(ErrorKind::Shape, "there are too many nodes");
    NodeIds::of_numbers((0..nodes as i64).collect()).map_err(too_many)
}

fn rows_of(
    (request, source): (&OwnGraph, &Source),
    ends: EndPoints,
    ids: &NodeIds,
    nodes: &str,
    threads: &Threads,
) -> Result<Vec<(u32, u32)>> {
    ends.into_rows(ids, threads)
        .map_err(|unknown| files::unknown_end(&unknown, source, &request.columns, nodes))
}

fn edge_parts(
    (request, source): (&OwnGraph, &Source),
    saved: Option<&Encoding>,
    ends: EndPoints,
    count: Option<usize>,
    note: FileNote,
    threads: &Threads,
) -> Result<Parts> {
    let columns = &request.columns;
    let mut notes = vec![note];
    let mut labels = None;
    let (ids, edges, given) = match &request.nodes {
        None => {
            check_no_table(request)?;
            let (ids, edges) = match count {
                None => ends.into_graph(threads),
                Some(nodes) => {
                    let ids = counting(nodes)?;
                    let edges = rows_of((request, source), ends, &ids, "the matrix", threads)?;
                    (ids, edges)
                }
            };
            (ids, edges, Given::None)
        }
        Some(path) => {
            let mut columns = columns.clone();
            // A file of labels is no column of the table.
            columns.label = columns.label.filter(|label| !is_label_file(label));
            let known = saved.map(Known::of);
            let (file, note) =
                files::nodes(&Source::open(path)?, &columns, known.as_ref(), threads)?;
            notes.push(note);
            let shown = path.display().to_string();
            match file {
                NodeFile::Matrix(features) => {
                    let ids = counting(features.rows())?;
                    let edges = rows_of((request, source), ends, &ids, &shown, threads)?;
                    (ids, edges, Given::Matrix(features))
                }
                NodeFile::Table(table) => {
                    let shown = format!(
                        "{shown} (its column `{}`; --id-column tells another one)",
                        table.id_name
                    );
                    let edges = rows_of((request, source), ends, &table.ids, &shown, threads)?;
                    labels = table.label;
                    (table.ids, edges, Given::Table(table.columns))
                }
            }
        }
    };
    if let Some(path) = columns.label.as_deref().filter(|label| is_label_file(label)) {
        labels = Some(label_file(Path::new(path), ids.len(), &mut notes)?);
    }
    if ids.len() == 0 {
        let message = "holds no edges";
        return Err(Error::new(ErrorKind::Parse, message).at(request.edges.display()));
    }
    let name = name_of(&request.edges);
    Ok(Parts { name, notes, ids, edges, given, labels, splits: None })
}

pub(super) fn is_label_file(label: &str) -> bool {
    Path::new(label).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}

/// Refuses flags about a node table that was not given.
fn check_no_table(request: &OwnGraph) -> Result<()> {
    let columns = &request.columns;
    let label = columns.label.as_deref().filter(|label| !is_label_file(label));
    let flags = [
        ("--label", label),
        ("--id-column", columns.id.as_deref()),
        ("--skip-column", columns.skip.first().map(String::as_str)),
    ];
    let Some((flag, value)) = flags.iter().find_map(|(flag, value)| Some((flag, (*value)?))) else {
        return Ok(());
    };
    let message = format!("{flag} {value} is about a table of nodes; name its file with --nodes");
    Err(Error::new(ErrorKind::Config, message))
}

fn label_file(path: &Path, nodes: usize, notes: &mut Vec<FileNote>) -> Result<LabelColumn> {
    let start = Instant::now();
    let (classes, names) = files::label_array(path)?;
    if classes.len() != nodes {
        let message = format!("has {} labels for {nodes} nodes", classes.len());
        return Err(Error::new(ErrorKind::Shape, message).at(path.display()));
    }
    notes.push(FileNote {
        path: path.to_owned(),
        read_as: "labels, entry i for node i".into(),
        remarks: Vec::new(),
        seconds: start.elapsed().as_secs_f64(),
    });
    let classes = classes.into_iter().map(Some).collect();
    Ok(LabelColumn { name: path.display().to_string(), classes, names })
}

fn assemble(
    request: &OwnGraph,
    saved: Option<&Encoding>,
    parts: Parts,
    threads: &Threads,
) -> Result<Loaded> {
    let nodes = parts.ids.len();
    let adjacency = undirected(nodes, &parts.edges, SelfLoops::Drop)?;
    let counts = Counts::new(&parts.edges, &adjacency);
    drop(parts.edges);
    let made = match saved {
        Some(saved) => saved::features(saved, parts.given, &adjacency, &parts.ids, threads),
        None => make_features(request.features, parts.given, &adjacency, &parts.ids, threads),
    };
    let place = request.nodes.as_ref().unwrap_or(&request.edges);
    // Here the file is known that the features come from; the graph knows its name only.
    let made = made.and_then(|made| made.features.check_finite().map(|()| made));
    let Made { features, encoding, source, unseen } = made.map_err(|e| e.at(place.display()))?;
    let id_names = parts.ids.names();
    let ids = match (&id_names, &parts.ids) {
        (None, _) => IdKind::Rows,
        (_, NodeIds::Numbers { .. }) => IdKind::Numbers,
        (_, NodeIds::Texts(_)) => IdKind::Texts,
    };
    let mut graph = Graph::new(parts.name, adjacency, features)?;
    graph = graph.with_feature_names(encoding.names())?;
    if let Some(ids) = id_names {
        graph = graph.with_node_ids(ids)?;
    }
    let mut label_name = String::new();
    if let Some(labels) = parts.labels {
        label_name = labels.name;
        graph = graph.with_some_labels(labels.classes, labels.names)?;
    }
    if let Some(splits) = parts.splits {
        graph = graph.with_splits(splits);
    }
    let mut understood = understand(&graph, parts.notes, ids, counts, source, &label_name);
    understood.unseen = unseen;
    Ok(Loaded { graph, understood, encoding })
}

/// What became of the edges that a file lists.
#[derive(Clone, Copy)]
struct Counts {
    listed: usize,
    self_loops: usize,
    edges: usize,
}

impl Counts {
    fn new(listed: &[(u32, u32)], adjacency: &Pattern) -> Self {
        let self_loops = listed.iter().filter(|(i, j)| i == j).count();
        Self { listed: listed.len(), self_loops, edges: adjacency.entries() / 2 }
    }
}

fn understand(
    graph: &Graph,
    files: Vec<FileNote>,
    ids: IdKind,
    counts: Counts,
    feature_source: FeatureSource,
    label_name: &str,
) -> Understood {
    Understood {
        files,
        nodes: graph.nodes(),
        ids,
        listed: counts.listed,
        edges: counts.edges,
        merged: counts.listed - counts.self_loops - counts.edges,
        self_loops: counts.self_loops,
        isolated: graph.isolated_nodes(),
        features: graph.features().cols(),
        feature_source,
        unseen: Vec::new(),
        labels: label_note(graph, label_name),
        splits: graph.splits().map_or(0, |splits| splits.train.len()),
    }
}

fn label_note(graph: &Graph, name: &str) -> Option<LabelNote> {
    let labelled = graph.labelled()?;
    let mut counts = vec![0; graph.classes()];
    for class in labelled.classes {
        counts[class as usize] += 1;
    }
    let name_of =
        |class: usize| graph.class_names().get(class).cloned().unwrap_or_else(|| class.to_string());
    let classes = counts.iter().enumerate().map(|(class, &count)| (name_of(class), count));
    let without = graph.without_label();
    Some(LabelNote { name: name.to_owned(), classes: classes.collect(), without })
}

fn make_features(
    wanted: Option<Structural>,
    given: Given,
    adjacency: &Pattern,
    ids: &NodeIds,
    threads: &Threads,
) -> Result<Made> {
    let mut unused = Vec::new();
    match (wanted, given) {
        (None, Given::Matrix(features)) => {
            let encoding = matrix_encoding(features.cols());
            let source = FeatureSource::Matrix("used as they are");
            return Ok(Made { features, encoding, source, unseen: Vec::new() });
        }
        (None, Given::Table(columns)) => {
            let (encoding, uses) = Encoding::learn(&columns, adjacency.rows());
            if !encoding.features.is_empty() {
                let features = encoding.apply(&columns, adjacency.rows())?;
                let source = FeatureSource::Columns(uses);
                return Ok(Made { features, encoding, source, unseen: Vec::new() });
            }
            unused = uses;
        }
        _ => {}
    }
    let kind = wanted.unwrap_or(DEFAULT_FEATURES);
    let (features, encoding) = structural::features(kind, adjacency, ids, None, threads)?;
    let why = if wanted.is_some() { Why::Told } else { Why::NoOthers };
    let source = FeatureSource::Edges { kind, why, columns: unused };
    Ok(Made { features, encoding, source, unseen: Vec::new() })
}

fn matrix_encoding(width: usize) -> Encoding {
    let feature = |k: usize| Feature { name: k.to_string(), rule: Rule::Matrix };
    Encoding { features: (0..width).map(feature).collect() }
}

/// A gnn-benchmark graph is whole already.
fn benchmark(graph: Graph, listed: &[(u32, u32)], note: FileNote) -> Loaded {
    let counts = Counts::new(listed, graph.adjacency());
    let ids = if graph.node_ids().is_some() { IdKind::Texts } else { IdKind::Rows };
    let source = FeatureSource::Matrix("positive values as 1, rows divided by their sums");
    let encoding = matrix_encoding(graph.features().cols());
    let understood = understand(&graph, vec![note], ids, counts, source, "labels");
    Loaded { graph, understood, encoding }
}
