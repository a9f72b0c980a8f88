//! [`Known`]: the columns that a model was trained with, to be found again in another table.

use hashbrown::HashMap;

use super::encoding::{Encoding, Rule};
use super::node_table::{Cells, Column};
use crate::error::{Error, ErrorKind, Result};
use crate::nearest::nearest;

/// Why a column of a table is left out that no feature of the model comes from.
pub(crate) const NOT_TRAINED_WITH: &str = "the run was not trained with it";

/// The columns that a saved encoding needs, each with what it held.
pub(crate) struct Known<'e> {
    columns: HashMap<&'e str, Want<'e>>,
    /// Their names in the order of the features.
    names: Vec<&'e str>,
}

/// What a column must hold.
enum Want<'e> {
    Numbers,
    /// Texts, of which these have a feature.
    Texts(Vec<&'e str>),
}

/// What a column of another table holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'c> {
    Numbers,
    /// Texts, and one of them where it is known.
    Texts(Option<&'c str>),
    /// Values of another type, named here.
    Other(&'static str),
}

/// The names of another table's columns, by what they are read as.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'t> {
    pub(crate) id: &'t str,
    pub(crate) label: Option<&'t str>,
    pub(crate) skipped: &'t [&'t str],
    /// The columns that may become features.
    pub(crate) others: &'t [&'t str],
}

impl<'e> Known<'e> {
    pub(crate) fn of(encoding: &'e Encoding) -> Self {
        let mut known = Self { columns: HashMap::new(), names: Vec::new() };
        for feature in &encoding.features {
            match &feature.rule {
                Rule::Number { column, .. } => drop(known.entry(column, Want::Numbers)),
                Rule::Text { column, text } => {
                    if let Want::Texts(texts) = known.entry(column, Want::Texts(Vec::new())) {
                        texts.push(text);
                    }
                }
                Rule::Matrix | Rule::Structure { .. } => {}
            }
        }
        known
    }

    fn entry(&mut self, column: &'e str, want: Want<'e>) -> &mut Want<'e> {
        let Self { columns, names } = self;
        columns.entry(column).or_insert_with(|| {
            names.push(column);
            want
        })
    }

    /// The names of the columns, in the order of their features.
    pub(crate) fn names(&self) -> &[&'e str] {
        &self.names
    }

    /// Whether a feature comes from this column, or from a number of the lists in it.
    pub(crate) fn needs(&self, column: &str) -> bool {
        let of_list = |name: &&str| list_of(name) == Some(column);
        self.columns.contains_key(column) || self.names.iter().any(of_list)
    }

    /// Refuses a table that lacks a column, with all that are missing in one message.
    pub(crate) fn check(&self, table: Names<'_>) -> Result<()> {
        let there = |name: &str| {
            let list = list_of(name);
            table.others.iter().any(|other| *other == name || Some(*other) == list)
        };
        let missing: Vec<&str> = self.names.iter().copied().filter(|name| !there(name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let explained = |name: &&str| explain(name, table);
        let columns = if missing.len() == 1 { "a column" } else { "columns" };
        let has = if table.others.is_empty() {
            "it has no others".to_owned()
        } else {
            format!("it has {}", quoted(table.others))
        };
        let first: Vec<String> = missing.iter().take(SHOWN).map(explained).collect();
        Err(mismatch(format!(
            "lacks {columns} that the run was trained with: {}{}; {has}. Add what is missing, or \
             give it the name that it had",
            first.join(", "),
            more(missing.len())
        )))
    }

    /// An empty column for what a table holds under a name.
    ///
    /// # Errors
    /// If a column of the model holds something else.
    pub(crate) fn column(&self, name: String, found: Found<'_>) -> Result<Column> {
        let Some(want) = self.columns.get(name.as_str()) else {
            return Ok(Column::skipped(name, NOT_TRAINED_WITH));
        };
        match (want, found) {
            (Want::Numbers, Found::Numbers) => Ok(Column::numbers(name)),
            (Want::Texts(texts), Found::Texts(_)) => Ok(Column::known(name, texts)),
            (Want::Numbers, _) => Err(mismatch(format!(
                "column `{name}` holds {}, and the run was trained on numbers there; write numbers, \
                 as at training",
                shown(found)
            ))),
            (Want::Texts(texts), _) => Err(mismatch(format!(
                "column `{name}` holds {}, and the run was trained on texts there ({}); write those",
                shown(found),
                quoted(texts)
            ))),
        }
    }

    /// Whether a column must hold numbers.
    pub(crate) fn wants_numbers(&self, column: &str) -> bool {
        matches!(self.columns.get(column), Some(Want::Numbers))
    }

    /// Whether one of the texts of a column reads as a number, so that numbers may be meant as
    /// texts.
    pub(crate) fn has_number_among_texts(&self, column: &str) -> bool {
        let is_number = |text: &&str| super::node_table::number(text).is_some();
        matches!(self.columns.get(column), Some(Want::Texts(texts)) if texts.iter().any(is_number))
    }
}

/// Names shown of many.
const SHOWN: usize = 8;

fn more(count: usize) -> String {
    let more = count.saturating_sub(SHOWN);
    if more == 0 { String::new() } else { format!(" and {more} more") }
}

fn quoted(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    first.join(", ") + &more(names.len())
}

/// The column of lists that `vector[3]` is a number of.
fn list_of(name: &str) -> Option<&str> {
    let (list, number) = name.strip_suffix(']')?.rsplit_once('[')?;
    number.parse::<usize>().is_ok().then_some(list)
}

/// A missing column, with what it may have become.
fn explain(name: &str, table: Names<'_>) -> String {
    if name == table.id {
        return format!("`{name}` (read as the ids here; tell their column with --id-column)");
    }
    if Some(name) == table.label {
        return format!("`{name}` (read as the classes here; leave --label out)");
    }
    if table.skipped.contains(&name) {
        return format!("`{name}` (left out here by --skip-column)");
    }
    match nearest(name, table.others.iter().copied()) {
        Some(near) => format!("`{name}` (did you mean `{near}`?)"),
        None => format!("`{name}`"),
    }
}

fn shown(found: Found<'_>) -> String {
    match found {
        Found::Numbers => "numbers".into(),
        Found::Texts(Some(text)) => format!("texts such as `{text}`"),
        Found::Texts(None) => "texts".into(),
        Found::Other(kind) => kind.into(),
    }
}

pub(crate) fn mismatch(message: String) -> Error {
    Error::new(ErrorKind::Shape, message)
}

/// Texts of a column that training never saw.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unseen {
    /// The column.
    pub column: String,
    /// Number of nodes with such a text.
    pub nodes: usize,
    /// The first of these texts.
    pub example: String,
}

/// The texts that training never saw, column by column.
pub(crate) fn unseen(columns: &[Column]) -> Vec<Unseen> {
    let of = |column: &Column| match &column.cells {
        Cells::Known { unseen: nodes, example: Some(example), .. } => {
            Some(Unseen { column: column.name.clone(), nodes: *nodes, example: example.clone() })
        }
        _ => None,
    };
    columns.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::encoding::Feature;
    use super::*;

    fn encoding() -> Encoding {
        let number = |column: &str| Rule::Number { column: column.into(), mean: 1.0, scale: 2.0 };
        let text = |text: &str| Rule::Text { column: "land".into(), text: text.into() };
        let rules = [number("age"), text("de"), text("fr"), number("v[0]"), number("v[2]")];
        let features = rules.map(|rule| Feature { name: "any".into(), rule }).to_vec();
        Encoding { features }
    }

    #[test]
    fn all_missing_columns_are_told_at_once() {
        let encoding = encoding();
        let known = Known::of(&encoding);
        assert_eq!(known.names(), ["age", "land", "v[0]", "v[2]"]);
        let names = |others| Names { id: "id", label: Some("topic"), skipped: &["x"], others };
        known.check(names(&["v", "land", "more", "age"])).unwrap();
        let text = known.check(names(&["Age", "v[0]", "v[2]"])).unwrap_err().to_string();
        for part in ["`age` (did you mean `Age`?), `land`; it has `Age`, `v[0]`, `v[2]`", "Add"] {
            assert!(text.contains(part), "{text}");
        }
        let table = Names { id: "age", label: Some("land"), skipped: &["v[0]"], others: &["v[2]"] };
        let text = known.check(table).unwrap_err().to_string();
        for part in ["--id-column", "--label", "--skip-column"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn other_types_are_explained() {
        let encoding = encoding();
        let known = Known::of(&encoding);
        let refusal = |name: &str, found| known.column(name.into(), found).unwrap_err().to_string();
        let text = refusal("age", Found::Texts(Some("old")));
        assert!(text.contains("`age` holds texts such as `old`") && text.contains("numbers there"));
        let text = refusal("land", Found::Numbers);
        assert!(text.contains("`land` holds numbers") && text.contains("(`de`, `fr`)"), "{text}");
        let text = refusal("land", Found::Other("dates or times"));
        assert!(text.contains("dates or times"), "{text}");
        let extra = known.column("extra".into(), Found::Numbers).unwrap();
        assert!(matches!(extra.cells, Cells::Skipped(NOT_TRAINED_WITH)));
        assert!(known.needs("v") && known.needs("age") && !known.needs("extra"));
    }

    #[test]
    fn unseen_texts_are_counted() {
        let mut column = Column::known("land".into(), &["de", "fr"]);
        for (row, text) in ["fr", "it", "de", "es"].into_iter().enumerate() {
            column.push(row, text).unwrap();
        }
        let found = unseen(std::slice::from_ref(&column));
        assert_eq!(found, [Unseen { column: "land".into(), nodes: 2, example: "it".into() }]);
    }
}
