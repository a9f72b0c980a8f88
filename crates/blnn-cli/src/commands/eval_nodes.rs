//! The labelled nodes that embeddings are scored on, and which row of a file belongs to which.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use blnn::data::own::ColumnNames;
use blnn::vectors::{self, Vectors};
use blnn::{Splits, data};
use blnn_kernels::Matrix;

use super::load_graph;
use crate::output::{grouped, note};
use crate::scoring::take_rows;

/// The nodes' classes, as far as they have one, and the public splits of their data set.
pub(super) struct Nodes {
    pub(super) labels: Vec<Option<u32>>,
    pub(super) splits: Option<Splits>,
    ids: Ids,
}

/// What the nodes of the labels are called.
enum Ids {
    /// They have no names: row `i` is node `i`.
    None,
    /// A table of labels, which is given to be matched by its ids.
    Table(Vec<String>),
    /// A graph, which other programs may have numbered otherwise.
    Graph(Vec<String>),
}

impl Nodes {
    /// The classes in a column of a table of nodes.
    pub(super) fn of_table(path: &Path, columns: &ColumnNames) -> blnn::Result<Self> {
        let (ids, labels, _) = data::own::labels(path, columns)?;
        Ok(Self { labels, splits: None, ids: Ids::Table(ids) })
    }

    /// The classes in a vector of integers or names.
    pub(super) fn of_vector(path: &Path) -> blnn::Result<Self> {
        let (labels, _) = data::own::label_array(path)?;
        Ok(Self { labels: labels.into_iter().map(Some).collect(), splits: None, ids: Ids::None })
    }

    /// The classes and public splits of a graph.
    pub(super) fn of_graph(source: &str, data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let graph = load_graph(source, data_dir)?;
        if graph.classes() == 0 {
            bail!(
                "{source}: the graph has no labels; give --labels a .npy vector, or a table of \
                 nodes and the name of its column with --label"
            );
        }
        let labels = (0..graph.nodes()).map(|node| graph.label_of(node)).collect();
        let numbers = || (0..graph.nodes()).map(|node| node.to_string()).collect();
        let ids = graph.node_ids().map_or_else(numbers, <[String]>::to_vec);
        Ok(Self { labels, splits: graph.splits().cloned(), ids: Ids::Graph(ids) })
    }

    /// Whether nothing but the order of the rows tells which embedding belongs to which label.
    pub(super) fn are_unnamed(&self) -> bool {
        matches!(self.ids, Ids::None)
    }

    /// The classes of the nodes that have one.
    pub(super) fn known_labels(&self) -> Vec<u32> {
        self.labels.iter().copied().flatten().collect()
    }

    /// Brings the embeddings of a file into the order of the labels, so that their scores do not
    /// depend on the order of their rows, and the same splits hold the same nodes of every file.
    pub(super) fn place(&self, path: &Path, vectors: Vectors) -> anyhow::Result<Placed> {
        let name = path.display();
        let (count, total) = (vectors.matrix.rows(), self.labels.len());
        let Some(rows) = self.rows_by_id(path, &vectors)? else {
            ensure!(count == total, "{name}: {count} embeddings but {total} labels");
            return Ok(self.labelled(vectors.matrix, &(0..count).map(Some).collect::<Vec<_>>()));
        };
        let missing = rows.iter().filter(|row| row.is_none()).count();
        ensure!(
            missing == 0 || self.splits.is_none(),
            "{name}: {missing} of the {total} nodes are missing, and the graph's own splits need \
             them all"
        );
        self.tell_missing(path, &rows);
        Ok(self.labelled(vectors.matrix, &rows))
    }

    /// Says how many classes cannot be used, because their nodes have no embedding.
    fn tell_missing(&self, path: &Path, rows: &[Option<usize>]) {
        let known = self.known_labels().len();
        let used = rows.iter().zip(&self.labels).filter(|(r, l)| r.is_some() && l.is_some());
        let missing = known - used.count();
        if missing > 0 {
            let (name, missing, known) = (path.display(), grouped(missing), grouped(known));
            note(format_args!("{name}: {missing} of {known} labelled nodes have no embedding"));
        }
    }

    /// The rows of those nodes that have both an embedding and a class; `rows` has one entry a node.
    fn labelled(&self, matrix: Matrix, rows: &[Option<usize>]) -> Placed {
        let (mut nodes, mut wanted, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        let mut without = 0;
        for (node, row) in rows.iter().enumerate() {
            match (row, self.labels[node]) {
                (Some(row), Some(label)) => {
                    nodes.push(node);
                    wanted.push(*row);
                    labels.push(label);
                }
                (Some(_), None) => without += 1,
                (None, _) => {}
            }
        }
        if without > 0 {
            let (without, count) = (grouped(without), grouped(matrix.rows()));
            note(format_args!("{without} of {count} nodes have no label and are not scored"));
        }
        let in_order = wanted.len() == matrix.rows() && wanted.is_sorted();
        let embeddings = if in_order { matrix } else { take_rows(&matrix, &wanted) };
        Placed { embeddings, labels, nodes }
    }

    /// The row of each node, found by the ids in the file or beside it; none if rows are to be
    /// matched in order.
    fn rows_by_id(
        &self,
        path: &Path,
        vectors: &Vectors,
    ) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let (known, is_table) = match &self.ids {
            Ids::None => return Ok(None),
            Ids::Table(ids) => (ids, true),
            Ids::Graph(ids) => (ids, false),
        };
        let Some((place, ids)) = ids_of(path, vectors)? else {
            if is_table {
                note(format_args!("{}: no ids: rows are matched in order", path.display()));
            }
            return Ok(None);
        };
        let nodes = by_name(known);
        if !is_table && !ids.iter().any(|id| nodes.contains_key(id.as_str())) {
            note(format_args!(
                "{}: its ids are not those of the graph: rows are matched in order",
                path.display()
            ));
            return Ok(None);
        }
        let mut rows: Vec<Option<usize>> = vec![None; known.len()];
        for (row, id) in ids.iter().enumerate() {
            let at = row + 1;
            let node = nodes.get(id.as_str()).with_context(|| unknown(&place, at, id, is_table))?;
            if let Some(first) = rows[*node].replace(row) {
                let first = first + 1;
                bail!("{place} {at}: the id `{id}` was there before, at {first}; keep one of them");
            }
        }
        Ok(Some(rows))
    }
}

/// Embeddings in the order of the labels.
pub(super) struct Placed {
    pub(super) embeddings: Matrix,
    pub(super) labels: Vec<u32>,
    /// Which nodes these are, by their place in the labels.
    pub(super) nodes: Vec<usize>,
}

fn unknown(place: &str, row: usize, id: &str, is_table: bool) -> String {
    if is_table {
        return format!("{place} {row}: the id `{id}` is not in the table of labels; add it there");
    }
    format!(
        "{place} {row}: the id `{id}` is not that of a node of the graph; rename it, or take the \
         ids out of the file to match its rows in order"
    )
}

/// The ids of a file of embeddings, and how a row of them is told in a message.
fn ids_of<'v>(
    path: &Path,
    vectors: &'v Vectors,
) -> anyhow::Result<Option<(String, Cow<'v, [String]>)>> {
    if let Some(ids) = &vectors.ids {
        return Ok(Some((format!("{}: row", path.display()), Cow::Borrowed(ids))));
    }
    let beside = vectors::ids_beside(path, vectors.matrix.rows())?;
    Ok(beside.map(|(list, ids)| (format!("{}: line", list.display()), Cow::Owned(ids))))
}

/// Finds a node by its id, also where a format that cannot hold blanks has changed it.
fn by_name(ids: &[String]) -> HashMap<Cow<'_, str>, usize> {
    let mut nodes: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for (node, id) in ids.iter().enumerate() {
        if id.contains(char::is_whitespace) {
            nodes.entry(id.replace(char::is_whitespace, "_").into()).or_insert(node);
        }
    }
    // A true name goes before one that was made so.
    nodes.extend(ids.iter().enumerate().map(|(node, id)| (Cow::Borrowed(id.as_str()), node)));
    nodes
}
