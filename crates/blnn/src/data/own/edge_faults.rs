//! What is said of an edge whose end is no node, or hardly one, with the place of the edge.

use super::doubts::{self, Doubt};
use super::endpoints::{EdgeEnd, EndPoints};
use super::node_table::is_missing;
use super::source::{Kind, Source};
use super::text_table::TextTable;
use super::{ColumnNames, edge_list};
use crate::error::{Error, ErrorKind, Result};

/// The file of the edges and how it is read.
#[derive(Clone, Copy)]
pub(super) struct EdgesIn<'a> {
    pub(super) source: &'a Source,
    pub(super) columns: &'a ColumnNames,
}

/// What the ends of edges must name.
pub(super) enum Nodes<'a> {
    /// The rows of an array, by their number from 0.
    Rows { array: &'a str, count: usize, remedy: &'static str },
    /// The ids of a table.
    Table { file: String, column: &'a str },
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

impl EdgesIn<'_> {
    /// What is said of an end that is no node.
    pub(super) fn unknown(self, end: &EdgeEnd, nodes: &Nodes<'_>) -> Error {
        let place = self.place(end.edge);
        let hint = if end.id.ends_with(".0") {
            "; ids with a fraction come from a table with empty cells, write them as whole numbers"
        } else if end.edge == 0 && place == "line 1" {
            "; if this line is a header, name its columns with --source-column and --target-column"
        } else {
            ""
        };
        self.fault(end, format!("{}{hint}", nodes.unknown(end)))
    }

    /// Refuses ids that are surely not meant; returns a remark on those that may not be.
    pub(super) fn doubt(self, ends: &EndPoints) -> Result<Option<String>> {
        let (end, message) = match doubts::find(ends) {
            None => return Ok(None),
            Some(Doubt::Few(end, count)) => return Ok(Some(self.remark(&end, count))),
            Some(Doubt::Missing(end)) => {
                let message = format!(
                    "{}; if a node is called so, list the nodes in a table, --nodes",
                    missing(&end)
                );
                (end, message)
            }
            Some(Doubt::Fraction(end)) => {
                let whole = end.id.split('.').next().unwrap_or_default();
                let message = format!(
                    "the {} is `{}` where other ids are whole numbers, as pandas writes a column \
                     with empty cells; write `{whole}`, or list the nodes in a table, --nodes, if \
                     it is another one",
                    end.name(),
                    end.id
                );
                (end, message)
            }
        };
        Err(self.fault(&end, message))
    }

    fn remark(self, end: &EdgeEnd, count: usize) -> String {
        let (id, place) = (&end.id, self.place(end.edge));
        match count {
            1 => format!(
                "all ids are whole numbers but `{id}` ({place}); if that is no edge, remove it"
            ),
            _ => format!(
                "all ids are whole numbers but {count}, the first of them `{id}` ({place}); if \
                 that is no edge, remove it"
            ),
        }
    }

    fn fault(self, end: &EdgeEnd, message: String) -> Error {
        parse(message).at(self.place(end.edge)).at(self.source.path().display())
    }

    /// Where an edge stands in its file, as people count.
    fn place(self, edge: usize) -> String {
        let line = || -> Result<usize> {
            let mut table = TextTable::open(self.source)?;
            edge_list::layout(&mut table, self.columns)?;
            let header = usize::from(table.header().is_some());
            TextTable::open(self.source)?.line_of_record(edge + header)
        };
        match self.source.kind() {
            Kind::Text => match line() {
                Ok(line) => format!("line {line}"),
                Err(_) => format!("edge {}", edge + 1),
            },
            Kind::Parquet => format!("row {}", edge + 1),
            Kind::Npz | Kind::Npy => format!("edge {}", edge + 1),
        }
    }
}

fn missing(end: &EdgeEnd) -> String {
    format!(
        "the {} is `{}`, which stands for an empty cell; fill it in or remove the edge",
        end.name(),
        end.id
    )
}

impl Nodes<'_> {
    fn unknown(&self, end: &EdgeEnd) -> String {
        let (name, id) = (end.name(), &end.id);
        match self {
            _ if is_missing(id) => missing(end),
            Self::Table { file, column } => format!(
                "the {name} `{id}` is not among the ids of {file} (its column `{column}`; \
                 --id-column tells another one); add it there or remove the edge"
            ),
            Self::Rows { array, count, remedy } => {
                let rows = match count {
                    0 => "no rows".to_owned(),
                    _ => format!("the rows 0 to {}", count - 1),
                };
                // Counting from 1 goes wrong at the last node first.
                let guess = if *id == count.to_string() { " (are they from 1?)" } else { "" };
                format!(
                    "{array} has {rows}, none for the {name} `{id}`; number the nodes from 0{guess}{remedy}"
                )
            }
        }
    }
}
