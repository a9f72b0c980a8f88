//! [`Encoding`]: how the columns of a node table become features.
//!
//! It is learned from one table and can be applied to another one, as it must be when a trained
//! model meets new nodes: the same names, the same order, the same scales.

use blnn_kernels::{Csr, Matrix, Pattern};
use serde::{Deserialize, Serialize};

use super::known::{NOT_TRAINED_WITH, mismatch};
use super::node_table::{Cells, Column, Numbers};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Features;

/// A matrix with a larger share of values that are not zero is stored with all its values.
const DENSE_FROM: f64 = 0.25;

/// The squares of smaller differences lose their digits.
const LEAST_DEVIATION: f64 = 1e-150;

/// How each feature is made, in the order of the feature matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoding {
    /// One entry a feature.
    pub features: Vec<Feature>,
}

/// How one feature is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// What the feature is called: its column, or `column=text` for one text of it.
    pub name: String,
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
}

/// Where all features of an encoding come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the columns of a table of nodes.
    Columns,
    /// From a matrix.
    Matrix,
    /// From the edges.
    Structure(super::structural::Structural),
}

/// How a feature follows from a table or from the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Rule {
    /// `(value − mean) / scale` of a column of numbers.
    Number {
        /// The column.
        column: String,
        /// The mean, 0 for columns that are 0 or 1 or mostly 0.
        mean: f64,
        /// The standard deviation, 1 for columns that are 0 or 1.
        scale: f64,
    },
    /// 1 where a column holds this text, else 0.
    Text {
        /// The column.
        column: String,
        /// The text.
        text: String,
    },
    /// A value of a matrix, used as it is.
    Matrix,
    /// A value computed from the edges.
    Structure {
        /// Which computation.
        kind: super::structural::Structural,
        /// What is subtracted.
        mean: f32,
        /// What it is then divided by.
        scale: f32,
    },
}

/// What was made of one column, for the user to see.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnUse {
    /// The column's name.
    pub column: String,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// Numbers that are 0 or 1, used as they are.
    Flags,
    /// Numbers, scaled to mean 0 and deviation 1.
    Standardised,
    /// Numbers that are mostly 0, divided by their deviation.
    Scaled,
    /// So many different texts, each a feature of its own.
    OneHot(usize),
    /// No feature; the reason is told.
    LeftOut(String),
}

/// Mean, deviation and range of a column of numbers.
struct Moments {
    mean: f64,
    deviation: f64,
    constant: bool,
    flags: bool,
    /// The share of values that are not zero.
    density: f64,
}

impl Moments {
    /// The moments of a column of `nodes` rows, of which `values` are not zero.
    fn new(values: &[f64], nodes: usize) -> Self {
        let n = nodes.max(1) as f64;
        let has_zeros = values.len() < nodes;
        let first = values.first().copied().unwrap_or(0.0);
        // A sum of unix times in nanoseconds would round away what they differ by.
        let origin = if has_zeros { 0.0 } else { first };
        let mean = origin + values.iter().map(|v| v - origin).sum::<f64>() / n;
        let from_zeros = (nodes - values.len()) as f64 * mean * mean;
        let squares = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let all_equal = values.iter().all(|&v| v == first);
        Self {
            mean,
            deviation: ((squares + from_zeros) / n).sqrt(),
            constant: all_equal && (!has_zeros || values.is_empty()),
            flags: values.iter().all(|&v| v == 1.0),
            density: values.len() as f64 / n,
        }
    }
}

impl Encoding {
    /// The encoding that suits a table of `nodes` rows, and what it makes of each column.
    pub(crate) fn learn(columns: &[Column], nodes: usize) -> (Self, Vec<ColumnUse>) {
        let mut features = Vec::new();
        let mut uses = Vec::new();
        for column in columns {
            let fate = learn_column(column, nodes, &mut features);
            uses.push(ColumnUse { column: column.name.clone(), fate });
        }
        (Self { features }, uses)
    }

    /// What a saved encoding makes of each column.
    pub(crate) fn uses(&self, columns: &[Column]) -> Vec<ColumnUse> {
        let fate = |column: &Column| match &column.cells {
            Cells::Numbers(_) => self.fate_of_numbers(&column.name),
            Cells::Known { texts, .. } | Cells::Kinds { texts, .. } => Fate::OneHot(texts.len()),
            Cells::Skipped(why) => Fate::LeftOut((*why).into()),
            Cells::ManyTexts => Fate::LeftOut(NOT_TRAINED_WITH.into()),
        };
        columns.iter().map(|c| ColumnUse { column: c.name.clone(), fate: fate(c) }).collect()
    }

    fn fate_of_numbers(&self, name: &str) -> Fate {
        let found = self.features.iter().find_map(|feature| match &feature.rule {
            Rule::Number { column, mean, scale } if column == name => Some((*mean, *scale)),
            _ => None,
        });
        match found {
            Some((0.0, 1.0)) => Fate::Flags,
            Some((0.0, _)) => Fate::Scaled,
            Some(_) => Fate::Standardised,
            None => Fate::LeftOut(NOT_TRAINED_WITH.into()),
        }
    }

    /// Where the features come from; `None` for an encoding without any.
    pub fn origin(&self) -> Option<Origin> {
        Some(match &self.features.first()?.rule {
            Rule::Number { .. } | Rule::Text { .. } => Origin::Columns,
            Rule::Matrix => Origin::Matrix,
            Rule::Structure { kind, .. } => Origin::Structure(*kind),
        })
    }

    /// The names of the features.
    pub fn names(&self) -> Vec<String> {
        self.features.iter().map(|feature| feature.name.clone()).collect()
    }

    /// The features of the nodes of a table.
    ///
    /// # Errors
    /// If the table lacks a column of the encoding, or has another type of values in it.
    pub(crate) fn apply(&self, columns: &[Column], nodes: usize) -> Result<Features> {
        let mut parts = Vec::with_capacity(self.features.len());
        for feature in &self.features {
            parts.push(feature.values(columns)?);
        }
        let stored: usize = parts.iter().map(|part| part.stored(nodes)).sum();
        let cells = (nodes * parts.len()).max(1);
        if stored as f64 / cells as f64 > DENSE_FROM {
            Ok(Features::Dense(dense(&parts, nodes)))
        } else {
            sparse(&parts, nodes).map(Features::Sparse)
        }
    }
}

fn learn_column(column: &Column, nodes: usize, features: &mut Vec<Feature>) -> Fate {
    match &column.cells {
        Cells::Skipped(why) => Fate::LeftOut((*why).into()),
        Cells::Known { texts, .. } => Fate::OneHot(texts.len()),
        Cells::ManyTexts => {
            let most = super::node_table::MOST_KINDS;
            Fate::LeftOut(format!("text of more than {most} different values"))
        }
        Cells::Kinds { texts, .. } if texts.len() < 2 => {
            Fate::LeftOut("the same text in every row".into())
        }
        // Names of the nodes, not kinds of them.
        Cells::Kinds { texts, .. } if 2 * texts.len() > nodes => {
            Fate::LeftOut("text that differs in most rows".into())
        }
        Cells::Kinds { texts, .. } => {
            for text in texts.iter() {
                let (column, text) = (column.name.clone(), text.to_owned());
                let name = format!("{column}={text}");
                features.push(Feature { name, rule: Rule::Text { column, text } });
            }
            Fate::OneHot(texts.len())
        }
        Cells::Numbers(numbers) => learn_numbers(&column.name, numbers, nodes, features),
    }
}

fn learn_numbers(name: &str, numbers: &Numbers, nodes: usize, features: &mut Vec<Feature>) -> Fate {
    let moments = Moments::new(numbers.values(), nodes);
    if moments.constant {
        return Fate::LeftOut("the same number in every row".into());
    }
    if moments.deviation < LEAST_DEVIATION {
        return Fate::LeftOut("numbers that hardly differ from zero; scale the column".into());
    }
    let (mean, scale, fate) = if moments.flags {
        (0.0, 1.0, Fate::Flags)
    } else if moments.density <= DENSE_FROM {
        (0.0, moments.deviation, Fate::Scaled)
    } else {
        (moments.mean, moments.deviation, Fate::Standardised)
    };
    let rule = Rule::Number { column: name.to_owned(), mean, scale };
    features.push(Feature { name: name.to_owned(), rule });
    fate
}

/// The values of one feature.
enum Part<'a> {
    Number { numbers: &'a Numbers, mean: f64, scale: f64 },
    Text { codes: &'a [u8], code: Option<u8> },
}

impl Part<'_> {
    /// About how many values are not zero.
    fn stored(&self, nodes: usize) -> usize {
        match self {
            Self::Number { numbers, mean, .. } if *mean == 0.0 => numbers.values().len(),
            Self::Number { .. } => nodes,
            // One text of a row is set, whatever the number of texts.
            Self::Text { codes, code } => codes.iter().filter(|&c| Some(*c) == *code).count(),
        }
    }

    /// Calls `see` with row and value where the value is not zero, rows increasing.
    fn for_each(&self, nodes: usize, mut see: impl FnMut(usize, f32)) {
        match *self {
            Self::Text { codes, code } => {
                let set = codes.iter().enumerate().filter(|&(_, c)| Some(*c) == code);
                set.for_each(|(row, _)| see(row, 1.0));
            }
            Self::Number { numbers, mean: 0.0, scale } => {
                numbers.iter().for_each(|(row, value)| see(row, (value / scale) as f32));
            }
            Self::Number { numbers, mean, scale } => {
                let mut stored = numbers.iter().peekable();
                for row in 0..nodes {
                    let value = stored.next_if(|&(r, _)| r == row).map_or(0.0, |(_, value)| value);
                    see(row, ((value - mean) / scale) as f32);
                }
            }
        }
    }
}

impl Feature {
    fn values<'a>(&self, columns: &'a [Column]) -> Result<Part<'a>> {
        let find = |name: &String| {
            columns.iter().find(|column| column.name == *name).ok_or_else(|| {
                mismatch(format!("there is no column `{name}`, which the model was trained with"))
            })
        };
        match &self.rule {
            Rule::Number { column, mean, scale } => match &find(column)?.cells {
                Cells::Numbers(numbers) => Ok(Part::Number { numbers, mean: *mean, scale: *scale }),
                _ => Err(mismatch(format!("column `{column}` was numbers and is not any more"))),
            },
            Rule::Text { column, text } => match &find(column)?.cells {
                Cells::Kinds { codes, texts } | Cells::Known { codes, texts, .. } => {
                    Ok(Part::Text { codes, code: texts.find(text).map(|code| code as u8) })
                }
                _ => Err(mismatch(format!("column `{column}` was texts and is not any more"))),
            },
            Rule::Matrix | Rule::Structure { .. } => {
                Err(mismatch(format!("feature `{}` comes from no column of a table", self.name)))
            }
        }
    }
}

fn dense(parts: &[Part<'_>], nodes: usize) -> Matrix {
    let mut matrix = Matrix::zeros(nodes, parts.len());
    let width = parts.len();
    for (column, part) in parts.iter().enumerate() {
        let data = matrix.data_mut();
        part.for_each(nodes, |row, value| data[row * width + column] = value);
    }
    matrix
}

fn sparse(parts: &[Part<'_>], nodes: usize) -> Result<Csr> {
    let mut offsets = vec![0; nodes + 1];
    for part in parts {
        part.for_each(nodes, |row, _| offsets[row + 1] += 1);
    }
    for row in 0..nodes {
        offsets[row + 1] += offsets[row];
    }
    let entries = offsets[nodes];
    let (mut next, mut indices, mut values) =
        (offsets.clone(), vec![0; entries], vec![0.0; entries]);
    for (column, part) in parts.iter().enumerate() {
        part.for_each(nodes, |row, value| {
            indices[next[row]] = column as u32;
            values[next[row]] = value;
            next[row] += 1;
        });
    }
    let invalid = |e: blnn_kernels::CsrError| Error::new(ErrorKind::Shape, e.to_string());
    let pattern = Pattern::new(parts.len(), offsets, indices).map_err(invalid)?;
    Csr::new(pattern, values).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(name: &str, cells: &[f64]) -> Column {
        let mut column = Column::numbers(name.into());
        cells.iter().enumerate().for_each(|(row, &v)| column.push_number(row, v).unwrap());
        column
    }

    fn kinds(name: &str, cells: &[&str]) -> Column {
        let mut column = Column::kinds(name.into());
        cells.iter().enumerate().for_each(|(row, v)| column.push(row, v).unwrap());
        column
    }

    #[test]
    fn every_type_of_column_has_its_fate() {
        let columns = [
            numbers("age", &[10.0, 20.0, 30.0, 0.0, 40.0]),
            numbers("flag", &[1.0, 0.0, 0.0, 1.0, 0.0]),
            numbers("count", &[0.0, 0.0, 0.0, 0.0, 7.0]),
            numbers("same", &[3.0; 5]),
            numbers("zero", &[0.0; 5]),
            kinds("land", &["de", "fr", "de", "de", "fr"]),
            kinds("one", &["x"; 5]),
            kinds("name", &["a", "b", "c", "d", "a"]),
            Column::skipped("no".into(), "as told"),
        ];
        let (encoding, uses) = Encoding::learn(&columns, 5);
        let fates: Vec<&Fate> = uses.iter().map(|u| &u.fate).collect();
        let same = Fate::LeftOut("the same number in every row".into());
        assert_eq!(
            fates,
            [
                &Fate::Standardised,
                &Fate::Flags,
                &Fate::Scaled,
                &same,
                &same,
                &Fate::OneHot(2),
                &Fate::LeftOut("the same text in every row".into()),
                &Fate::LeftOut("text that differs in most rows".into()),
                &Fate::LeftOut("as told".into()),
            ]
        );
        assert_eq!(encoding.names(), ["age", "flag", "count", "land=de", "land=fr"]);
        let Features::Dense(x) = encoding.apply(&columns, 5).unwrap() else { panic!("dense") };
        let column = |j: usize| (0..5).map(|i| x.get(i, j)).collect::<Vec<_>>();
        let age = column(0);
        assert!(age.iter().sum::<f32>().abs() < 1e-6);
        assert!((age.iter().map(|v| v * v).sum::<f32>() / 5.0 - 1.0).abs() < 1e-6);
        assert_eq!(column(1), [1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(column(3), [1.0, 0.0, 1.0, 1.0, 0.0]);
        assert_eq!(column(4), [0.0, 1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn numbers_of_many_digits_keep_what_they_differ_by() {
        let column = |name, first: f64, step: f64| {
            let cells: Vec<f64> = (0..100).map(|i| first + f64::from(i) * step).collect();
            numbers(name, &cells)
        };
        let columns = [
            column("plain", 1.0, 1.0),
            column("seconds", 1.7e9, 1.0),
            column("nanoseconds", 1.7e18, 1e6),
            column("latitude", 52.52, 1e-7),
            column("tiny", 1e-60, 1e-60),
        ];
        let (encoding, uses) = Encoding::learn(&columns, 100);
        assert!(uses.iter().all(|u| u.fate == Fate::Standardised), "{uses:?}");
        let Features::Dense(x) = encoding.apply(&columns, 100).unwrap() else { panic!("dense") };
        for row in 0..100 {
            let plain = x.get(row, 0);
            let differs = x.row(row).iter().any(|value| (value - plain).abs() > 1e-5);
            assert!(!differs, "{:?}", x.row(row));
        }
    }

    #[test]
    fn numbers_too_close_to_zero_are_not_called_equal() {
        let (encoding, uses) = Encoding::learn(&[numbers("x", &[1e-200, 2e-200])], 2);
        let fate = &uses[0].fate;
        assert!(matches!(fate, Fate::LeftOut(why) if why.contains("hardly differ from zero")));
        assert!(encoding.features.is_empty());
    }

    #[test]
    fn mostly_zeros_stay_sparse() {
        let mut columns = Vec::new();
        for word in 0..6 {
            let cells: Vec<f64> = (0..6).map(|row| f64::from(u8::from(row == word))).collect();
            columns.push(numbers(&format!("w{word}"), &cells));
        }
        let (encoding, _) = Encoding::learn(&columns, 6);
        let Features::Sparse(x) = encoding.apply(&columns, 6).unwrap() else { panic!("sparse") };
        assert_eq!((x.pattern().cols(), x.values()), (6, &[1.0; 6][..]));
        assert_eq!(x.pattern().row(4), [4]);
    }

    /// New nodes are scaled as the old ones were; a text never seen has no feature.
    #[test]
    fn an_encoding_is_applied_to_another_table() {
        let ages = numbers("age", &[0.0, 10.0, 10.0, 0.0]);
        let old = [ages, kinds("land", &["de", "fr", "fr", "fr"])];
        let (encoding, _) = Encoding::learn(&old, 4);
        let json = serde_json::to_string(&encoding).unwrap();
        assert_eq!(serde_json::from_str::<Encoding>(&json).unwrap(), encoding);
        let new = [kinds("land", &["it"]), numbers("age", &[15.0])];
        let Features::Dense(x) = encoding.apply(&new, 1).unwrap() else { panic!("dense") };
        assert_eq!(x.row(0), [2.0, 0.0, 0.0]);
        let text = encoding.apply(&new[..1], 1).unwrap_err().to_string();
        assert!(text.contains("no column `age`"), "{text}");
        let text = encoding.apply(&[kinds("age", &["x"])], 1).unwrap_err().to_string();
        assert!(text.contains("was numbers"), "{text}");
    }
}
