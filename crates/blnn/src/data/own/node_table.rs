//! [`NodeTable`]: what a table says of every node, column by column, whatever file it came from.

use super::ColumnNames;
use super::columns::{find_id, told};
use super::ids::{IdColumn, Interner, NodeIds};
use super::known::{Known, Names};
use crate::error::{Error, ErrorKind, Result};

/// A column of more different texts than this holds names, not kinds: it is left out.
pub(crate) const MOST_KINDS: usize = 64;

/// The code of a text that a model does not know.
const UNSEEN: u8 = u8::MAX;

/// A table of nodes in memory.
#[derive(Debug)]
pub(crate) struct NodeTable {
    pub(crate) ids: NodeIds,
    pub(crate) id_name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) label: Option<LabelColumn>,
}

/// One column that is neither ids nor labels.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) cells: Cells,
}

/// The values of a column.
#[derive(Debug)]
pub(crate) enum Cells {
    Numbers(Numbers),
    /// The number of each row's text.
    Kinds {
        codes: Vec<u8>,
        texts: Interner,
    },
    /// The number of each row's text among those that a model knows, or [`UNSEEN`].
    Known {
        codes: Vec<u8>,
        texts: Interner,
        /// How many rows hold a text that the model does not know.
        unseen: usize,
        /// The first such text.
        example: Option<String>,
    },
    /// More than [`MOST_KINDS`] different texts.
    ManyTexts,
    /// Left out because the user said so, or because of its type, named here.
    Skipped(&'static str),
}

/// The numbers of a column that are not zero, in row order. Times and coordinates have more digits
/// than single precision holds: only the features that are made of them are cut to it.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// The row of each value; empty as long as value `k` is that of row `k`, so that a column
    /// without zeros takes eight bytes a row and no more.
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Numbers {
    /// Adds the number of a row behind all others.
    fn push(&mut self, row: usize, value: f64) {
        if value == 0.0 {
            return;
        }
        let without_gap = self.values.len();
        if row != without_gap {
            if self.rows.is_empty() {
                self.rows.extend(0..without_gap as u32);
            }
            self.rows.push(row as u32);
        }
        self.values.push(value);
    }

    /// Adds the numbers of a column whose first row is row `before` of this one.
    fn append(&mut self, piece: &Self, before: usize) {
        piece.iter().for_each(|(row, value)| self.push(before + row, value));
    }

    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The rows and their numbers, rows increasing.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, f64)> {
        let row = |k: usize| self.rows.get(k).map_or(k, |&row| row as usize);
        self.values.iter().enumerate().map(move |(k, &value)| (row(k), value))
    }
}

/// The class of each node that has one.
#[derive(Debug)]
pub(crate) struct LabelColumn {
    pub(crate) name: String,
    pub(crate) classes: Vec<Option<u32>>,
    pub(crate) names: Vec<String>,
}

/// What is to become of each column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roles {
    pub(crate) id: usize,
    pub(crate) label: Option<usize>,
    pub(crate) skipped: Vec<usize>,
}

impl Roles {
    /// The roles of columns called `names`; column `otherwise` holds the ids if none is called so.
    pub(crate) fn find(
        names: &[String],
        width: usize,
        columns: &ColumnNames,
        otherwise: usize,
    ) -> Result<Self> {
        let column = |wanted: &str, flag| told(names, width, wanted, flag);
        let label = columns.label.as_deref().map(|l| column(l, "--label")).transpose()?;
        let id = match columns.id.as_deref() {
            Some(wanted) => column(wanted, "--id-column")?,
            None => find_id(&without(names, label)).unwrap_or(otherwise),
        };
        if label == Some(id) {
            let message =
                "the ids cannot be the labels; tell the column of the ids with --id-column";
            return Err(parse(message));
        }
        let skip = |wanted: &String| column(wanted, "--skip-column");
        let skipped = columns.skip.iter().map(skip).collect::<Result<_>>()?;
        Ok(Self { id, label, skipped })
    }

    /// Refuses a table of columns called `names` that lacks one which a model needs.
    pub(crate) fn check(&self, known: &Known<'_>, names: &[String]) -> Result<()> {
        let skipped: Vec<&str> = self.skipped.iter().map(|&c| names[c].as_str()).collect();
        let is_other =
            |&c: &usize| c != self.id && Some(c) != self.label && !self.skipped.contains(&c);
        let others: Vec<&str> =
            (0..names.len()).filter(is_other).map(|c| names[c].as_str()).collect();
        known.check(Names {
            id: &names[self.id],
            label: self.label.map(|label| names[label].as_str()),
            skipped: &skipped,
            others: &others,
        })
    }
}

/// The names, but for that of the classes: it is not looked at for ids.
fn without(names: &[String], label: Option<usize>) -> Vec<String> {
    let mut names = names.to_vec();
    if let Some(name) = label.and_then(|label| names.get_mut(label)) {
        name.clear();
    }
    names
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// A [`NodeTable`] that is being filled, row by row.
#[derive(Debug)]
pub(crate) struct Filling {
    ids: IdColumn,
    id_name: String,
    rows: usize,
    pub(crate) columns: Vec<Column>,
    label: Option<LabelFilling>,
}

#[derive(Debug, Default)]
struct LabelFilling {
    name: String,
    codes: Vec<Option<u32>>,
    texts: Interner,
}

impl Filling {
    pub(crate) fn new(id_name: String, label_name: Option<String>) -> Self {
        let label = label_name.map(|name| LabelFilling { name, ..LabelFilling::default() });
        Self { ids: IdColumn::new(), id_name, rows: 0, columns: Vec::new(), label }
    }

    /// Number of whole rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn push_id(&mut self, id: &str) -> Result<()> {
        if id.is_empty() {
            return Err(parse(format!(
                "`{}` is empty; every node needs an id, fill it in or remove the line",
                self.id_name
            )));
        }
        if !self.ids.push(id) {
            return Err(self.duplicate(id));
        }
        self.rows += 1;
        Ok(())
    }

    fn duplicate(&self, id: &str) -> Error {
        parse(format!(
            "the id `{id}` stands in `{}` before; ids must be unique, remove one line or tell the \
             column of the ids with --id-column",
            self.id_name
        ))
    }

    /// Adds the label of a row; an empty one is that of a node without a class.
    pub(crate) fn push_label(&mut self, label: &str) {
        let Some(filling) = &mut self.label else { return };
        let code = (!is_missing(label)).then(|| filling.texts.intern(label).0);
        filling.codes.push(code);
    }

    /// A table without rows whose columns hold what those of this one do.
    pub(crate) fn empty(&self) -> Self {
        let label = self.label.as_ref();
        Self {
            ids: IdColumn::new(),
            id_name: self.id_name.clone(),
            rows: 0,
            columns: self.columns.iter().map(Column::empty).collect(),
            label: label.map(|l| LabelFilling { name: l.name.clone(), ..LabelFilling::default() }),
        }
    }

    /// Adds the rows of a table that began as [`empty`](Self::empty), as if they had been pushed
    /// one by one, or returns the row of an id that came before and what to say of it.
    pub(crate) fn append(&mut self, piece: Self) -> std::result::Result<(), (usize, Error)> {
        let before = self.rows;
        if let Err(row) = self.ids.append(&piece.ids) {
            return Err((before + row, self.duplicate(&piece.ids.text(row))));
        }
        self.rows += piece.rows;
        for (column, other) in self.columns.iter_mut().zip(piece.columns) {
            column.append(other.cells, before);
        }
        if let (Some(label), Some(other)) = (&mut self.label, piece.label) {
            let number: Vec<u32> = other.texts.iter().map(|t| label.texts.intern(t).0).collect();
            let code = |code: Option<u32>| code.map(|code| number[code as usize]);
            label.codes.extend(other.codes.into_iter().map(code));
        }
        Ok(())
    }

    /// Refuses labels that are all empty: the column is another one than was meant.
    pub(crate) fn check_labels(&self) -> Result<()> {
        let Some(label) = self.label.as_ref().filter(|label| label.texts.len() == 0) else {
            return Ok(());
        };
        let name = &label.name;
        Err(parse(format!(
            "the label `{name}` is empty in every row; name another column, or leave --label out \
             (labels are used for scores only)"
        )))
    }

    /// The table, or the row of the first id that came before and what to say of it.
    pub(crate) fn finish(self) -> std::result::Result<NodeTable, (usize, Error)> {
        let ids = match &self.ids {
            IdColumn::Numbers(ids) => ids.clone(),
            IdColumn::Texts(_) => Vec::new(),
        };
        let label = self.label.map(LabelFilling::finish);
        let (id_name, columns) = (self.id_name, self.columns);
        match self.ids.finish() {
            Ok(ids) => Ok(NodeTable { ids, id_name, columns, label }),
            Err(row) => {
                let empty = Self {
                    ids: IdColumn::new(),
                    id_name,
                    rows: 0,
                    columns: Vec::new(),
                    label: None,
                };
                Err((row, empty.duplicate(&ids[row].to_string())))
            }
        }
    }
}

impl LabelFilling {
    /// Numbers the classes by their names: whole numbers by value, texts by letters.
    fn finish(self) -> LabelColumn {
        let texts: Vec<&str> = self.texts.iter().collect();
        let mut order: Vec<usize> = (0..texts.len()).collect();
        let value = |&code: &usize| texts[code].parse::<i64>().ok();
        if order.iter().all(|code| value(code).is_some()) {
            order.sort_by_key(value);
        } else {
            order.sort_by_key(|&code| texts[code]);
        }
        let mut class_of = vec![0; texts.len()];
        for (class, &code) in order.iter().enumerate() {
            class_of[code] = class as u32;
        }
        let names = order.iter().map(|&code| texts[code].to_owned()).collect();
        let class = |code: &Option<u32>| code.map(|code| class_of[code as usize]);
        let classes = self.codes.iter().map(class).collect();
        LabelColumn { name: self.name, classes, names }
    }
}

impl Column {
    pub(crate) fn numbers(name: String) -> Self {
        Self { name, cells: Cells::Numbers(Numbers::default()) }
    }

    pub(crate) fn kinds(name: String) -> Self {
        let cells = Cells::Kinds { codes: Vec::new(), texts: Interner::default() };
        Self { name, cells }
    }

    /// A column of texts, of which those of `texts` are known.
    pub(crate) fn known(name: String, texts: &[&str]) -> Self {
        let mut known = Interner::default();
        for text in texts {
            known.intern(text);
        }
        let cells = Cells::Known { codes: Vec::new(), texts: known, unseen: 0, example: None };
        Self { name, cells }
    }

    pub(crate) fn skipped(name: String, why: &'static str) -> Self {
        Self { name, cells: Cells::Skipped(why) }
    }

    /// A column of the same kind without cells.
    fn empty(&self) -> Self {
        let name = self.name.clone();
        match &self.cells {
            Cells::Numbers(_) => Self::numbers(name),
            Cells::Kinds { .. } => Self::kinds(name),
            Cells::Known { texts, .. } => Self::known(name, &texts.iter().collect::<Vec<_>>()),
            Cells::ManyTexts => Self { name, cells: Cells::ManyTexts },
            Cells::Skipped(why) => Self::skipped(name, why),
        }
    }

    /// Adds the cells of a column of the same kind; its first row is row `before` of this one.
    fn append(&mut self, piece: Cells, before: usize) {
        match (&mut self.cells, piece) {
            (Cells::Numbers(numbers), Cells::Numbers(more)) => numbers.append(&more, before),
            (Cells::Kinds { codes, texts }, Cells::Kinds { codes: more, texts: new }) => {
                let number: Vec<u32> = new.iter().map(|text| texts.intern(text).0).collect();
                if texts.len() > MOST_KINDS {
                    self.cells = Cells::ManyTexts;
                } else {
                    codes.extend(more.into_iter().map(|code| number[usize::from(code)] as u8));
                }
            }
            (
                Cells::Known { codes, unseen, example, .. },
                Cells::Known { codes: more, unseen: also, example: first, .. },
            ) => {
                codes.extend(more);
                *unseen += also;
                *example = example.take().or(first);
            }
            (cells @ Cells::Kinds { .. }, Cells::ManyTexts) => *cells = Cells::ManyTexts,
            // Columns that hold nothing get nothing.
            _ => {}
        }
    }

    /// Adds the cell of row `row`.
    pub(crate) fn push(&mut self, row: usize, text: &str) -> Result<()> {
        match &mut self.cells {
            Cells::Numbers(_) => match number(text) {
                Some(value) if is_in_range(value) => self.push_number(row, value),
                _ if is_missing(text) => Err(self.missing(text)),
                _ => Err(self.no_number(text)),
            },
            Cells::Kinds { .. } | Cells::Known { .. } if is_missing(text) => {
                Err(self.missing(text))
            }
            Cells::Known { codes, texts, unseen, example } => {
                let code = texts.find(text).and_then(|code| u8::try_from(code).ok());
                codes.push(code.unwrap_or(UNSEEN));
                if code.is_none() {
                    *unseen += 1;
                    example.get_or_insert_with(|| shortened(text));
                }
                Ok(())
            }
            Cells::Kinds { codes, texts } => {
                let code = texts.intern(text).0 as usize;
                if code >= MOST_KINDS {
                    self.cells = Cells::ManyTexts;
                } else {
                    codes.push(code as u8);
                }
                Ok(())
            }
            Cells::ManyTexts | Cells::Skipped(_) => Ok(()),
        }
    }

    /// Adds the number of row `row` to a column of numbers.
    pub(crate) fn push_number(&mut self, row: usize, value: f64) -> Result<()> {
        if !is_in_range(value) {
            return Err(parse(format!(
                "column `{}`: a number is not finite, or too large for 32 bits (beyond 3.4e38); \
                 replace it, or leave the column out with --skip-column",
                self.name
            )));
        }
        if let Cells::Numbers(numbers) = &mut self.cells {
            numbers.push(row, value);
        }
        Ok(())
    }

    /// What is said of a cell without a value.
    pub(crate) fn missing(&self, text: &str) -> Error {
        let what = if text.is_empty() {
            "is empty".to_owned()
        } else {
            format!("holds `{text}`, which is no value")
        };
        parse(format!(
            "the cell of `{}` {what}; fill it in, or leave the column out with --skip-column",
            self.name
        ))
    }

    /// What is said of a cell among numbers that is none, or none that can be computed with.
    fn no_number(&self, text: &str) -> Error {
        let why = match number(text) {
            Some(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                "is too large for 32 bits (beyond 3.4e38); scale the column"
            }
            Some(_) => "is not finite; replace it",
            None if has_decimal_comma(text) => {
                "is written with a comma; write numbers with a decimal point and nothing between \
                 the thousands, as 1234.5"
            }
            None => "is not a number, as nearly all others are; correct it",
        };
        let (name, text) = (&self.name, shortened(text));
        parse(format!(
            "column `{name}`: `{text}` {why}, or leave the column out with --skip-column"
        ))
    }
}

/// Whether a number is finite in single precision, as a feature that is only scaled must be. The
/// squares of such numbers are finite in double precision.
fn is_in_range(value: f64) -> bool {
    (value as f32).is_finite()
}

fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Whether a cell stands for no value, in the spellings of spreadsheets, databases and R.
pub(crate) fn is_missing(text: &str) -> bool {
    const SPELLINGS: [&str; 6] = ["", "na", "n/a", "nan", "null", "none"];
    text.len() <= 4 && SPELLINGS.iter().any(|missing| text.eq_ignore_ascii_case(missing))
}

/// A cell as a number; `true` and `false` count as 1 and 0.
pub(crate) fn number(text: &str) -> Option<f64> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => return Some(f64::from(digit - b'0')),
        [] => return None,
        _ => {}
    }
    match text.parse::<f64>() {
        // `nan` parses, but it is a spelling of nothing.
        Ok(value) if !value.is_nan() => Some(value),
        _ if text.eq_ignore_ascii_case("true") => Some(1.0),
        _ if text.eq_ignore_ascii_case("false") => Some(0.0),
        _ => None,
    }
}

/// Whether a cell is a number as it is written in much of Europe (`1,5`, `1.234,5`), or one with
/// commas between its thousands. Which of both it is cannot be told from `1,234`.
pub(crate) fn has_decimal_comma(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let Some((whole, rest)) = digits.split_once(',') else {
        return false;
    };
    if is_digits(rest) {
        return whole.split('.').all(is_digits);
    }
    let (thousands, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let is_group = |part: &str| part.len() == 3 && is_digits(part);
    is_digits(whole) && thousands.split(',').all(is_group) && is_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_missing_values_are_told_apart() {
        for (text, wanted) in [
            ("7", Some(7.0)),
            ("-1.5e3", Some(-1500.0)),
            ("TRUE", Some(1.0)),
            ("false", Some(0.0)),
            ("nan", None),
            ("", None),
            ("1,5", None),
        ] {
            assert_eq!(number(text), wanted, "{text}");
        }
        assert!(["", "NA", "NaN", "null", "None", "n/a"].into_iter().all(is_missing));
        assert!(!["0", "nano", "no"].into_iter().any(is_missing));
    }

    #[test]
    fn numbers_keep_their_rows_whatever_pieces_they_come_in() {
        let column = |cells: &[f64]| {
            let mut numbers = Numbers::default();
            cells.iter().enumerate().for_each(|(row, &value)| numbers.push(row, value));
            numbers
        };
        let cells = [1_700_000_001.0, 52.520_000_1, 0.0, 3.0, -0.0, 5.0];
        for cells in [&cells[..], &cells[..2], &cells[..3], &cells[2..], &[0.0; 3], &[]] {
            let whole = column(cells);
            let wanted = cells.iter().copied().enumerate().filter(|&(_, value)| value != 0.0);
            assert!(whole.iter().eq(wanted), "{cells:?}");
            for before in 0..=cells.len() {
                let mut pieces = column(&cells[..before]);
                pieces.append(&column(&cells[before..]), before);
                assert_eq!(format!("{pieces:?}"), format!("{whole:?}"), "cut at {before}");
            }
        }
        assert!(column(&cells[..2]).rows.is_empty(), "no zero, no rows to keep");
    }

    #[test]
    fn numbers_beyond_single_precision_are_refused() {
        let mut column = Column::numbers("x".into());
        for value in [f64::INFINITY, f64::NAN, 1e39, -1e300] {
            let text = column.push_number(0, value).unwrap_err().to_string();
            assert!(text.contains("too large for 32 bits (beyond 3.4e38)"), "{text}");
        }
        let text = column.push(0, "1e39").unwrap_err().to_string();
        assert!(text.contains("`1e39` is too large for 32 bits"), "{text}");
        column.push(0, "-3.4e38").unwrap();
    }

    #[test]
    fn commas_in_numbers_are_seen() {
        for text in ["1,5", "-0,25", "1.234,5", "1,234", "1,234,567", "1,234.5"] {
            assert!(has_decimal_comma(text), "{text}");
        }
        for text in ["1.5", "1,2,3", ",5", "5,", "a,5", "1,5a", "", "1,23.4"] {
            assert!(!has_decimal_comma(text), "{text}");
        }
    }

    #[test]
    fn classes_are_ordered_by_value_or_name() {
        let label = |texts: &[&str]| {
            let mut filling = Filling::new("id".into(), Some("topic".into()));
            for text in texts {
                filling.push_label(text);
            }
            let label = filling.finish().map_err(|e| e.1).unwrap().label.unwrap();
            (label.classes, label.names)
        };
        let (classes, names) = label(&["10", "9", "10"]);
        assert_eq!(classes, [Some(1), Some(0), Some(1)]);
        assert_eq!(names, ["9", "10"]);
        let (classes, names) = label(&["b", "10", "NA", "a", ""]);
        assert_eq!(classes, [Some(2), Some(0), None, Some(1), None]);
        assert_eq!(names, ["10", "a", "b"]);
    }

    #[test]
    fn a_text_column_of_many_values_is_given_up() {
        let mut column = Column::kinds("title".into());
        for row in 0..=MOST_KINDS {
            column.push(row, &format!("t{row}")).unwrap();
        }
        assert!(matches!(column.cells, Cells::ManyTexts));
    }

    #[test]
    fn roles_are_found_or_told() {
        let names: Vec<String> = ["title", "node", "topic"].map(String::from).to_vec();
        let mut columns = ColumnNames { label: Some("topic".into()), ..ColumnNames::default() };
        let roles = Roles::find(&names, 3, &columns, 0).unwrap();
        assert_eq!(roles, Roles { id: 1, label: Some(2), skipped: vec![] });
        let other: Vec<String> = ["topic_id", "name"].map(String::from).to_vec();
        columns.label = Some("topic_id".into());
        assert_eq!(Roles::find(&other, 2, &columns, 0).unwrap().id, 1, "not the classes");
        columns.label = Some("topic".into());
        columns.id = Some("topic".into());
        assert!(Roles::find(&names, 3, &columns, 0).is_err());
        columns = ColumnNames { skip: vec!["tittle".into()], ..ColumnNames::default() };
        let text = Roles::find(&names, 3, &columns, 0).unwrap_err().to_string();
        assert!(text.contains("--skip-column") && text.contains("`title`"), "{text}");
    }
}
