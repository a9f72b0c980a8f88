//! Putting the parts of a user's graph together.

use std::path::Path;
use std::time::Instant;

use blnn_kernels::{Pattern, Threads};

use super::edge_faults::{EdgesIn, Nodes};
use super::encoding::{Encoding, Feature, Rule};
use super::endpoints::EndPoints;
use super::files::{self, EdgeFile, NodeFile};
use super::ids::NodeIds;
use super::known::{Known, Unseen};
use super::matrices::{LABELS, WholeGraph};
use super::node_table::LabelColumn;
use super::source::Source;
use super::structural::{self, Structural};
use super::understood::{FeatureSource, FileNote, IdKind, LabelNote, Understood};
use super::{Loaded, OwnGraph, Why, flags, is_label_file, name_of, saved};
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
    flags::check_edges(request, source.kind())?;
    let (file, note) = files::edges(&source, &request.columns, threads)?;
    let parts = match file {
        EdgeFile::Benchmark { graph, listed } => {
            flags::check_alone(request, "labels", graph.labelled().is_some())?;
            flags::check_features(request)?;
            if let Some(saved) = saved {
                saved::check_width(saved, graph.features())
                    .map_err(|e| e.at(request.edges.display()))?;
            }
            return benchmark(request, *graph, &listed, note);
        }
        EdgeFile::Whole(whole) => {
            flags::check_alone(request, LABELS, whole.labels.is_some())?;
            whole_parts((request, &source), whole, note, threads)?
        }
        EdgeFile::Edges { ends, nodes } => {
            edge_parts((request, &source), saved, ends, nodes, note, threads)?
        }
    };
    assemble(request, saved, parts, threads)
}

fn whole_parts(
    (request, source): (&OwnGraph, &Source),
    whole: WholeGraph,
    note: FileNote,
    threads: &Threads,
) -> Result<Parts> {
    let (count, array) = whole.nodes;
    let rows = counting(count)?;
    let mut ends = EndPoints::new();
    ends.push_numbers(whole.edges);
    let nodes = Nodes::Rows { array, count, remedy: "" };
    let edges = rows_of((request, source), ends, &rows, &nodes, threads)?;
    let ids = whole.ids.unwrap_or(rows);
    let mut notes = vec![note];
    let labels = match whole.labels {
        Some((classes, names)) => Some(LabelColumn {
            name: LABELS.into(),
            names,
            classes: classes.into_iter().map(Some).collect(),
        }),
        None => told_labels(request, count, &mut notes)?,
    };
    let given = whole.features.map_or(Given::None, |x| Given::Matrix(Features::Dense(x)));
    let name = name_of(&request.edges);
    Ok(Parts { name, notes, ids, edges, given, labels, splits: whole.splits })
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
    nodes: &Nodes<'_>,
    threads: &Threads,
) -> Result<Vec<(u32, u32)>> {
    let file = EdgesIn { source, columns: &request.columns };
    ends.into_rows(ids, threads).map_err(|unknown| file.unknown(&unknown, nodes))
}

fn edge_parts(
    (request, source): (&OwnGraph, &Source),
    saved: Option<&Encoding>,
    ends: EndPoints,
    count: Option<usize>,
    note: FileNote,
    threads: &Threads,
) -> Result<Parts> {
    let mut notes = vec![note];
    let found = match &request.nodes {
        None => edges_alone((request, source), ends, count, &mut notes[0], threads)?,
        Some(path) => {
            let (file, note) = node_file((request, source), path, saved, threads)?;
            notes.push(note);
            let rows = (file.rows(), path.as_path());
            count.map_or(Ok(()), |side| check_sides(side, rows, request))?;
            with_nodes((request, source), ends, path, file, threads)?
        }
    };
    let Found { ids, edges, given, mut labels } = found;
    if let Some(told) = told_labels(request, ids.len(), &mut notes)? {
        labels = Some(told);
    }
    if ids.len() == 0 {
        let message = "holds no edges";
        return Err(Error::new(ErrorKind::Parse, message).at(request.edges.display()));
    }
    let name = name_of(&request.edges);
    Ok(Parts { name, notes, ids, edges, given, labels, splits: None })
}

/// Nodes and edges once it is known which node is which row.
struct Found {
    ids: NodeIds,
    edges: Vec<(u32, u32)>,
    given: Given,
    labels: Option<LabelColumn>,
}

/// The nodes are those that the edges name, or the rows of their matrix.
fn edges_alone(
    (request, source): (&OwnGraph, &Source),
    ends: EndPoints,
    count: Option<usize>,
    note: &mut FileNote,
    threads: &Threads,
) -> Result<Found> {
    flags::check_no_table(request)?;
    flags::check_header(request, &[source.kind()])?;
    let (ids, edges) = match count {
        None => {
            note.remarks.extend(EdgesIn { source, columns: &request.columns }.doubt(&ends)?);
            ends.into_graph(threads)
        }
        Some(count) => {
            let ids = counting(count)?;
            let nodes = Nodes::Rows { array: "the matrix", count, remedy: "" };
            let edges = rows_of((request, source), ends, &ids, &nodes, threads)?;
            (ids, edges)
        }
    };
    Ok(Found { ids, edges, given: Given::None, labels: None })
}

fn node_file(
    (request, edges): (&OwnGraph, &Source),
    path: &Path,
    saved: Option<&Encoding>,
    threads: &Threads,
) -> Result<(NodeFile, FileNote)> {
    let source = Source::open(path)?;
    flags::check_nodes(request, path, source.kind())?;
    flags::check_header(request, &[edges.kind(), source.kind()])?;
    let mut columns = request.columns.clone();
    // A file of labels is no column of the table.
    columns.label = columns.label.filter(|label| !is_label_file(label));
    files::nodes(&source, &columns, saved.map(Known::of).as_ref(), threads)
}

/// Refuses an adjacency that has not the rows of the nodes: those that are left over would be
/// taken for nodes without edges, or be passed over.
fn check_sides(side: usize, (rows, nodes): (usize, &Path), request: &OwnGraph) -> Result<()> {
    if side == rows {
        return Ok(());
    }
    let message = format!(
        "the adjacency is {side}×{side}, and {} has {rows} rows; give both with a row for every \
         node, or the edges as pairs of ids",
        nodes.display()
    );
    Err(Error::new(ErrorKind::Shape, message).at(request.edges.display()))
}

fn with_nodes(
    from: (&OwnGraph, &Source),
    ends: EndPoints,
    path: &Path,
    file: NodeFile,
    threads: &Threads,
) -> Result<Found> {
    let shown = path.display().to_string();
    match file {
        NodeFile::Matrix(features) => {
            let count = features.rows();
            let ids = counting(count)?;
            let remedy = ", or give the nodes as a table with their ids";
            let nodes = Nodes::Rows { array: &shown, count, remedy };
            let edges = rows_of(from, ends, &ids, &nodes, threads)?;
            Ok(Found { ids, edges, given: Given::Matrix(features), labels: None })
        }
        NodeFile::Table(table) => {
            let nodes = Nodes::Table { file: shown, column: &table.id_name };
            let edges = rows_of(from, ends, &table.ids, &nodes, threads)?;
            let given = Given::Table(table.columns);
            Ok(Found { ids: table.ids, edges, given, labels: table.label })
        }
    }
}

/// The labels of the file that `--label` names, if it names one.
fn told_labels(
    request: &OwnGraph,
    nodes: usize,
    notes: &mut Vec<FileNote>,
) -> Result<Option<LabelColumn>> {
    let path = request.columns.label.as_deref().filter(|label| is_label_file(label));
    path.map(|path| label_file(Path::new(path), nodes, notes)).transpose()
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

/// A gnn-benchmark graph is whole already, but for labels that come in a file of their own.
fn benchmark(
    request: &OwnGraph,
    mut graph: Graph,
    listed: &[(u32, u32)],
    note: FileNote,
) -> Result<Loaded> {
    let (mut notes, mut label_name) = (vec![note], "labels".to_owned());
    if let Some(labels) = told_labels(request, graph.nodes(), &mut notes)? {
        label_name = labels.name;
        graph = graph.with_some_labels(labels.classes, labels.names)?;
    }
    let counts = Counts::new(listed, graph.adjacency());
    let ids = if graph.node_ids().is_some() { IdKind::Texts } else { IdKind::Rows };
    let source = FeatureSource::Matrix("positive values as 1, rows divided by their sums");
    let encoding = matrix_encoding(graph.features().cols());
    let understood = understand(&graph, notes, ids, counts, source, &label_name);
    Ok(Loaded { graph, understood, encoding })
}
