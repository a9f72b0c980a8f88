//! The labelled nodes that embeddings are scored on, and which row of a file belongs to which.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;
use std::path::Path;

use anyhow::{bail, ensure};
use blnn::data::own::ColumnNames;
use blnn::eval::row_fault;
use blnn::vectors::{self, Vectors};
use blnn::{Splits, data};
use blnn_kernels::Matrix;

use super::load_graph;
use crate::output::{grouped, note};
use crate::scoring::{called, take_rows};

/// The nodes' classes, as far as they have one, and the public splits of their data set.
pub(super) struct Nodes {
    pub(super) labels: Vec<Option<u32>>,
    pub(super) splits: Option<Splits>,
    ids: Ids,
    /// What the classes are called, if they have names.
    classes: Vec<String>,
}

/// What the nodes of the labels are called.
enum Ids {
    /// They have no names but their numbers: label `i` is that of node `i`.
    None,
    /// A table of labels, which is given to be matched by its ids.
    Table(Vec<String>),
    /// A graph with names of its own.
    Graph(Vec<String>),
    /// A graph whose nodes are merely counted, and may have names elsewhere.
    Counted(Vec<String>),
}

impl Ids {
    fn list(&self) -> Option<&[String]> {
        match self {
            Self::None => None,
            Self::Table(ids) | Self::Graph(ids) | Self::Counted(ids) => Some(ids),
        }
    }
}

impl Nodes {
    /// The classes in a column of a table of nodes.
    pub(super) fn of_table(path: &Path, columns: &ColumnNames) -> blnn::Result<Self> {
        let (ids, labels, classes) = data::own::labels(path, columns)?;
        Ok(Self { labels, splits: None, ids: Ids::Table(ids), classes })
    }

    /// The classes in a vector of integers or names.
    pub(super) fn of_vector(path: &Path) -> blnn::Result<Self> {
        let (labels, classes) = data::own::label_array(path)?;
        let labels = labels.into_iter().map(Some).collect();
        Ok(Self { labels, splits: None, ids: Ids::None, classes })
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
        let ids = match graph.node_ids() {
            Some(ids) => Ids::Graph(ids.to_vec()),
            None => Ids::Counted(numbers()),
        };
        let classes = graph.class_names().to_vec();
        Ok(Self { labels, splits: graph.splits().cloned(), ids, classes })
    }

    /// Whether the labels can belong to the rows of two files at once. Those of a vector know no ids
    /// but numbers: two files with other ids, or in another order, do not fit them both.
    pub(super) fn fit_both(&self, files: [(&Path, &Vectors); 2]) -> anyhow::Result<bool> {
        if !matches!(self.ids, Ids::None) {
            return Ok(true);
        }
        let [first, second] = files.map(|(path, vectors)| Found::of(path, vectors));
        let (Some(first), Some(second)) = (first?, second?) else {
            return Ok(true);
        };
        let are_numbers = |found: &Found<'_>| numbers_from_zero(&found.ids).is_some();
        Ok(first.ids == second.ids || are_numbers(&first) && are_numbers(&second))
    }

    /// What a labelled node and its class are called: the class comes first.
    pub(super) fn words(&self, node: usize) -> [String; 2] {
        let class = self.labels[node].unwrap_or_default() as usize;
        let id = match &self.ids {
            Ids::Table(ids) | Ids::Graph(ids) => Some(&ids[node]),
            Ids::None | Ids::Counted(_) => None,
        };
        [called(self.classes.get(class), class), called(id, node)]
    }

    /// Brings the embeddings of a file into the order of the labels, so that their scores do not
    /// depend on the order of their rows, and the same splits hold the same nodes of every file.
    pub(super) fn place(&self, path: &Path, vectors: Vectors) -> anyhow::Result<Placed> {
        let name = path.display();
        let (count, total) = (vectors.matrix.rows(), self.labels.len());
        let Some(rows) = self.rows_by_id(path, &vectors)? else {
            ensure!(count == total, "{name}: {count} embeddings but {total} labels");
            let rows: Vec<_> = (0..count).map(Some).collect();
            return self.labelled(path, vectors.matrix, &rows);
        };
        let missing = rows.iter().filter(|row| row.is_none()).count();
        ensure!(
            missing == 0 || self.splits.is_none(),
            "{name}: {missing} of the {total} nodes are missing, and the graph's own splits need \
             them all"
        );
        self.tell_missing(path, &rows);
        self.labelled(path, vectors.matrix, &rows)
    }

    /// Says how many classes cannot be used, because their nodes have no embedding.
    fn tell_missing(&self, path: &Path, rows: &[Option<usize>]) {
        let known = self.labels.iter().flatten().count();
        let used = rows.iter().zip(&self.labels).filter(|(r, l)| r.is_some() && l.is_some());
        let missing = known - used.count();
        if missing > 0 {
            let (name, missing, known) = (path.display(), grouped(missing), grouped(known));
            note(format_args!("{name}: {missing} of {known} labelled nodes have no embedding"));
        }
    }

    /// The rows of those nodes that have both an embedding and a class; `rows` has one entry a node.
    fn labelled(
        &self,
        path: &Path,
        matrix: Matrix,
        rows: &[Option<usize>],
    ) -> anyhow::Result<Placed> {
        let (mut nodes, mut wanted, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for (node, row) in rows.iter().enumerate() {
            if let (Some(row), Some(label)) = (row, self.labels[node]) {
                self.check_row(path, &matrix, *row, node)?;
                nodes.push(node);
                wanted.push(*row);
                labels.push(label);
            }
        }
        // Their class is empty, or they are not in the table at all.
        let without = matrix.rows() - wanted.len();
        if without > 0 {
            let (without, count) = (grouped(without), grouped(matrix.rows()));
            note(format_args!("{without} of {count} nodes have no label and are not scored"));
        }
        let in_order = wanted.len() == matrix.rows() && wanted.is_sorted();
        let embeddings = if in_order { matrix } else { take_rows(&matrix, &wanted) };
        Ok(Placed { embeddings, labels, nodes })
    }

    /// Refuses a row that cannot be scored. Later it would have another number.
    fn check_row(
        &self,
        path: &Path,
        matrix: &Matrix,
        row: usize,
        node: usize,
    ) -> anyhow::Result<()> {
        let Some(fault) = row_fault(matrix.row(row)) else {
            return Ok(());
        };
        let ([_, id], row, count) = (self.words(node), row + 1, matrix.rows());
        bail!("{}: row {row} of {count} (node {id}) {fault}", path.display())
    }

    /// The row of each node, found by the ids in the file or beside it; none if rows are to be
    /// matched in order.
    fn rows_by_id(
        &self,
        path: &Path,
        vectors: &Vectors,
    ) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let Some(known) = self.ids.list() else {
            return self.rows_of_vector(path, vectors);
        };
        let Some(found) = Found::of(path, vectors)? else {
            return self.rows_without_ids(path, vectors);
        };
        let nodes = by_name(known);
        let places: Vec<Option<usize>> =
            found.ids.iter().map(|id| nodes.get(id.as_str()).copied()).collect();
        if self.are_mere_numbers(&found, &places) {
            note(format_args!(
                "{}: its ids are not those of the graph: rows are matched in order",
                path.display()
            ));
            return Ok(None);
        }
        self.check_strangers(&found, &places)?;
        found.rows_of(&places, known.len()).map(Some)
    }

    /// The row of each label of a vector, where the ids in the file are the numbers of the labels.
    fn rows_of_vector(
        &self,
        path: &Path,
        vectors: &Vectors,
    ) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let total = self.labels.len();
        if vectors.matrix.rows() != total {
            return Ok(None);
        }
        let Some(found) = Found::of(path, vectors)? else {
            return Ok(None);
        };
        let file = &found.file;
        let Some(numbers) = numbers_from_zero(&found.ids) else {
            note(format_args!(
                "{file}: its ids are not the numbers of the labels, 0, 1, 2 and so on: rows are \
                 matched in order"
            ));
            return Ok(None);
        };
        if !numbers.is_sorted() {
            note(format_args!("{file}: rows are matched by id: id 0 gets the first label"));
        }
        let places: Vec<Option<usize>> = numbers.into_iter().map(Some).collect();
        found.rows_of(&places, total).map(Some)
    }

    /// The row of each node in a file without ids, where those of the table of labels are the
    /// numbers of the rows. Refuses a file of which a column was left out that may have held ids.
    fn rows_without_ids(
        &self,
        path: &Path,
        vectors: &Vectors,
    ) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let Ids::Table(known) = &self.ids else {
            return Ok(None);
        };
        let path = path.display();
        if let Some(told) = vectors.omissions() {
            bail!(
                "{path}: no ids to match the table of labels by, and {told}; call the column of ids \
                 `id`, or take that column out to match rows in order"
            );
        }
        let numbers = numbers_from_zero(known).filter(|n| n.len() == vectors.matrix.rows());
        let Some(numbers) = numbers else {
            note(format_args!("{path}: no ids: rows are matched in order"));
            return Ok(None);
        };
        note(format_args!(
            "{path}: no ids: rows are matched by the ids of the table of labels: the first row is \
             id 0"
        ));
        Ok(Some(numbers.into_iter().map(Some).collect()))
    }

    /// Whether ids of which none is known tell no more of a graph's nodes than the order of the
    /// rows does: they count the rows, or the nodes have no names that they could be.
    fn are_mere_numbers(&self, found: &Found<'_>, places: &[Option<usize>]) -> bool {
        let fit = match self.ids {
            Ids::None | Ids::Table(_) => false,
            Ids::Graph(_) => found.count_rows_from(0) || found.count_rows_from(1),
            Ids::Counted(_) => true,
        };
        fit && places.iter().all(Option::is_none)
    }

    /// Refuses ids that belong to other nodes. A table may list the labelled nodes alone, as long
    /// as it lists some of them.
    fn check_strangers(&self, found: &Found<'_>, places: &[Option<usize>]) -> anyhow::Result<()> {
        let Some(stranger) = places.iter().position(Option::is_none) else {
            return Ok(());
        };
        let (file, id) = (&found.file, &found.ids[stranger]);
        let known = self.ids.list().unwrap_or_default();
        let first = known.first().map_or("", String::as_str);
        let is_table = matches!(self.ids, Ids::Table(_));
        let none = places.iter().all(Option::is_none);
        ensure!(
            !(none && is_table),
            "{file}: none of its ids is in the table of labels: they begin with `{id}`, those of \
             the table with `{first}`; name the table's column of ids with --id-column"
        );
        ensure!(
            !none,
            "{file}: none of its ids is that of a node of the graph: they begin with `{id}`, those \
             of the graph with `{first}`; rename them, or take them out of the file to match its \
             rows in order"
        );
        // Rows counted from 0 beside ids counted from 1, say: nearly all would match, each wrongly.
        let counts = found.count_rows_from(0) || found.count_rows_from(1);
        ensure!(
            !(is_table && counts && places.iter().flatten().count() < known.len()),
            "{file}: its ids count the rows, and not all of them are in the table of labels, nor all \
             of the table's here; give the nodes' own ids, or take the ids out of the file to match \
             its rows in order"
        );
        ensure!(
            is_table,
            "{}: the id `{id}` is not that of a node of the graph; rename it, or take the ids out \
             of the file to match its rows in order",
            found.at(stranger)
        );
        Ok(())
    }
}

/// Embeddings in the order of the labels.
pub(super) struct Placed {
    pub(super) embeddings: Matrix,
    pub(super) labels: Vec<u32>,
    /// Which nodes these are, by their place in the labels.
    pub(super) nodes: Vec<usize>,
}

/// The ids of a file of embeddings.
struct Found<'v> {
    /// The file that holds them, and what it has one id on.
    file: String,
    unit: &'static str,
    ids: Cow<'v, [String]>,
}

impl<'v> Found<'v> {
    fn of(path: &Path, vectors: &'v Vectors) -> anyhow::Result<Option<Self>> {
        if let Some(ids) = &vectors.ids {
            let file = path.display().to_string();
            return Ok(Some(Self { file, unit: "row", ids: Cow::Borrowed(ids) }));
        }
        let beside = vectors::ids_beside(path, vectors.matrix.rows())?;
        Ok(beside.map(|(list, ids)| Self {
            file: list.display().to_string(),
            unit: "line",
            ids: Cow::Owned(ids),
        }))
    }

    fn count_rows_from(&self, first: usize) -> bool {
        self.ids.iter().enumerate().all(|(row, id)| *id == (row + first).to_string())
    }

    /// How a row is told in a message.
    fn at(&self, row: usize) -> String {
        format!("{}: {} {}", self.file, self.unit, row + 1)
    }

    /// The row of each of the nodes, from the node of each row.
    fn rows_of(
        &self,
        places: &[Option<usize>],
        nodes: usize,
    ) -> anyhow::Result<Vec<Option<usize>>> {
        let mut rows: Vec<Option<usize>> = vec![None; nodes];
        let known = places.iter().enumerate().filter_map(|(row, node)| Some((row, (*node)?)));
        for (row, node) in known {
            if let Some(first) = rows[node].replace(row) {
                let (at, id, first) = (self.at(row), &self.ids[row], first + 1);
                bail!("{at}: the id `{id}` was there before, at {first}; keep one of them");
            }
        }
        Ok(rows)
    }
}

/// The number of each id, if they are the whole numbers from 0 on, in whatever order.
fn numbers_from_zero(ids: &[String]) -> Option<Vec<usize>> {
    let mut seen = vec![false; ids.len()];
    let number = |id: &String| {
        let number: usize = id.parse().ok()?;
        let again = mem::replace(seen.get_mut(number)?, true);
        (!again && *id == number.to_string()).then_some(number)
    };
    ids.iter().map(number).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that embeddings with these ids are matched to.
    fn rows(ids: Ids, found: &[&str]) -> anyhow::Result<Option<Vec<Option<usize>>>> {
        let labels = vec![Some(0); 2];
        let nodes = Nodes { labels, splits: None, ids, classes: Vec::new() };
        let ids = Some(found.iter().map(|&id| id.to_owned()).collect());
        let matrix = Matrix::zeros(found.len(), 1);
        nodes.rows_by_id(Path::new("x.csv"), &Vectors { matrix, ids, left_out: Vec::new() })
    }

    fn texts(ids: [&str; 2]) -> Vec<String> {
        ids.map(str::to_owned).to_vec()
    }

    #[test]
    fn ids_that_count_the_rows_are_no_names() {
        let graph = || Ids::Graph(texts(["ann", "bob"]));
        assert_eq!(rows(graph(), &["bob", "ann"]).unwrap(), Some(vec![Some(1), Some(0)]));
        for counted in [["0", "1"], ["1", "2"]] {
            assert_eq!(rows(graph(), &counted).unwrap(), None);
        }
        let error = rows(graph(), &["1", "0"]).unwrap_err().to_string();
        assert!(error.contains("begin with `1`, those of the graph with `ann`"), "{error}");
        // Numbers that are names may be those of other nodes.
        let error = rows(Ids::Graph(texts(["0", "7"])), &["0", "1"]).unwrap_err().to_string();
        assert!(error.contains("x.csv: row 2: the id `1` is not that of a node"), "{error}");
    }

    #[test]
    fn rows_that_are_counted_otherwise_than_the_table_are_refused() {
        let table = || Ids::Table(texts(["1", "2"]));
        let error = rows(table(), &["0", "1"]).unwrap_err().to_string();
        assert!(error.contains("its ids count the rows"), "{error}");
        let some = rows(table(), &["0", "1", "2"]).unwrap();
        assert_eq!(some, Some(vec![Some(1), Some(2)]), "a table of some nodes");
    }

    #[test]
    fn ids_that_number_the_labels_of_a_vector_tell_their_rows() {
        assert_eq!(rows(Ids::None, &["1", "0"]).unwrap(), Some(vec![Some(1), Some(0)]));
        for others in [["1", "2"], ["0", "0"], ["1", "00"], ["ann", "bob"]] {
            assert_eq!(rows(Ids::None, &others).unwrap(), None, "{others:?}");
        }
        assert_eq!(rows(Ids::None, &["2", "0", "1"]).unwrap(), None, "another number of labels");
    }

    #[test]
    fn names_of_counted_nodes_are_matched_in_order() {
        let graph = || Ids::Counted(texts(["0", "1"]));
        assert_eq!(rows(graph(), &["ann", "bob"]).unwrap(), None);
        assert_eq!(rows(graph(), &["1"]).unwrap(), Some(vec![None, Some(0)]));
    }
}
