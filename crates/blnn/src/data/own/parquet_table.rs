//! Edge and node tables in parquet files, read a batch of rows at a time.

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::ColumnNames;
use super::columns::{find_ends, told};
use super::endpoints::EndPoints;
use super::known::{Found, Known};
use super::node_table::{Cells, Column, Filling, NodeTable, Roles};
use super::row_numbers::is_index;
use super::source::{PiecesOf, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::guarded::guarded;
use crate::natural::{has_no_sign, widened};

/// Rows that are decoded at once.
const BATCH: usize = 1 << 16;

/// What the values of a column are to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Integers,
    Numbers,
    Texts,
    /// A list of numbers in every row.
    Vectors,
    /// Anything else, by the name of its type.
    Other(&'static str),
}

/// A parquet file, opened.
pub(crate) struct ParquetTable<R: ChunkReader + 'static = PiecesOf> {
    file: SerializedFileReader<R>,
    names: Vec<String>,
    contents: Vec<Content>,
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err takes")]
fn damaged(cause: ParquetError) -> Error {
    let cause = cause.to_string();
    if cause.contains("Disabled feature") {
        return parse(format!(
            "is compressed in a way that is not read ({cause}); write it with snappy or zstd"
        ));
    }
    parse(format!("is not a whole parquet file ({cause}); write or copy it again"))
}

/// Runs a reader of parquet, whose decoders panic over some damaged files: that is an error like
/// any other one.
fn decoded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    let damaged = || Err(parse("is a damaged parquet file; write or copy it again"));
    guarded(read).unwrap_or_else(damaged)
}

impl ParquetTable {
    pub(crate) fn open(source: &Source) -> Result<Self> {
        Self::new(source.pieces()?)
    }
}

impl<R: ChunkReader + 'static> ParquetTable<R> {
    pub(crate) fn new(source: R) -> Result<Self> {
        decoded(|| Self::open_source(source))
    }

    fn open_source(source: R) -> Result<Self> {
        let file = SerializedFileReader::new(source).map_err(damaged)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let columns = schema.columns();
        let names = columns.iter().map(|column| name(column)).collect();
        let contents = columns.iter().map(|column| content(column)).collect();
        Ok(Self { file, names, contents })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Finds the columns of source and target and reads all edges.
    pub(crate) fn edges(&self, columns: &ColumnNames) -> Result<(EndPoints, [usize; 2])> {
        decoded(|| self.read_edges(columns))
    }

    fn read_edges(&self, columns: &ColumnNames) -> Result<(EndPoints, [usize; 2])> {
        let width = self.names.len();
        if width < 2 {
            return Err(parse("has fewer than two columns, an edge list needs two"));
        }
        let known = find_ends(&self.names).unwrap_or([0, 1]);
        let column = |wanted: Option<&String>, flag: &str, otherwise: usize| {
            wanted.map_or(Ok(otherwise), |wanted| told(&self.names, width, wanted, flag))
        };
        let source = column(columns.source.as_ref(), "--source-column", known[0])?;
        let target = column(columns.target.as_ref(), "--target-column", known[1])?;
        for (column, flag) in [(source, "--source-column"), (target, "--target-column")] {
            self.check_ids(column, flag)?;
        }
        let mut ends = EndPoints::new();
        let mut row = 0;
        for group in 0..self.file.num_row_groups() {
            let mut sources = self.column(group, source)?;
            let mut targets = self.column(group, target)?;
            loop {
                let from = sources.ids(row)?;
                let to = targets.ids(row)?;
                if from.len() != to.len() {
                    return Err(parse("its columns differ in length; write the file again"));
                }
                if from.len() == 0 {
                    break;
                }
                row += from.len();
                push_edges(&mut ends, &from, &to)?;
            }
        }
        Ok((ends, [source, target]))
    }

    fn check_ids(&self, column: usize, flag: &str) -> Result<()> {
        let found = match self.contents[column] {
            Content::Integers | Content::Texts => return Ok(()),
            Content::Numbers => "fractions or flags",
            Content::Vectors => "lists of numbers",
            Content::Other(name) => name,
        };
        let name = &self.names[column];
        Err(parse(format!(
            "column `{name}` holds {found}, ids are integers or texts; convert it, or tell another \
             column with {flag}"
        )))
    }

    /// Reads a node table; with `known`, only the columns that a model was trained with.
    pub(crate) fn nodes(
        &self,
        columns: &ColumnNames,
        known: Option<&Known<'_>>,
    ) -> Result<NodeTable> {
        decoded(|| self.read_nodes(columns, known))
    }

    fn read_nodes(&self, columns: &ColumnNames, known: Option<&Known<'_>>) -> Result<NodeTable> {
        let roles = Roles::find(&self.names, self.names.len(), columns, self.first_ids(columns))?;
        if let Some(known) = known {
            roles.check(known, &self.names)?;
        }
        self.check_ids(roles.id, "--id-column")?;
        let label = roles.label.map(|label| self.names[label].clone());
        if let Some(label) = roles.label {
            self.check_label(label)?;
        }
        let mut filling = Filling::new(self.names[roles.id].clone(), label);
        let mut row = 0;
        for group in 0..self.file.num_row_groups() {
            let mut ids = self.column(group, roles.id)?;
            loop {
                let batch = ids.ids(row)?;
                if batch.len() == 0 {
                    break;
                }
                batch.for_each(|id| {
                    row += 1;
                    filling.push_id(id).map_err(|e| at_row(e, row))
                })?;
            }
        }
        if let Some(label) = roles.label {
            self.labels(label, &mut filling)?;
        }
        let rest = (0..self.names.len()).filter(|&c| c != roles.id && Some(c) != roles.label);
        for place in rest.collect::<Vec<_>>() {
            let needed = known.is_none_or(|known| known.needs(&self.names[place]));
            let is_list = self.contents[place] == Content::Vectors;
            if is_list && needed && !roles.skipped.contains(&place) {
                filling.columns.extend(self.vectors(place, filling.rows())?);
            } else {
                let column = self.new_column(place, &roles, known)?;
                filling.columns.push(self.feature(place, column, filling.rows())?);
            }
        }
        filling.finish().map_err(|(row, fault)| at_row(fault, row + 1))
    }

    /// The column of the ids where none is called so: an index of texts, or else the first column
    /// that may be ids, or else an index of numbers.
    fn first_ids(&self, columns: &ColumnNames) -> usize {
        let index = self.names.iter().position(|name| is_index(name));
        let texts = index.filter(|&index| self.contents[index] == Content::Texts);
        let is_label = |column: usize| columns.label.as_ref() == Some(&self.names[column]);
        let may_be =
            |column: usize| matches!(self.contents[column], Content::Integers | Content::Texts);
        let first = (0..self.names.len()).find(|&column| !is_label(column)).filter(|&c| may_be(c));
        texts.or(first).or(index).unwrap_or(0)
    }

    fn check_label(&self, column: usize) -> Result<()> {
        let found = match self.contents[column] {
            Content::Other(found) => Some(found),
            Content::Vectors => Some("lists of numbers"),
            _ => None,
        };
        if let Some(found) = found {
            let name = &self.names[column];
            return Err(parse(format!(
                "column `{name}` (--label) holds {found}; labels are integers, texts or flags"
            )));
        }
        Ok(())
    }

    fn labels(&self, place: usize, filling: &mut Filling) -> Result<()> {
        let mut row = 0;
        for group in 0..self.file.num_row_groups() {
            let mut column = self.column(group, place)?;
            loop {
                let (batch, there) = column.values()?;
                if batch.len() == 0 && there.is_empty() {
                    break;
                }
                let mut texts = Vec::with_capacity(batch.len());
                batch.for_each(|label| {
                    texts.push(label.to_owned());
                    Ok(())
                })?;
                let (rows, mut texts) = (texts.len().max(there.len()), texts.into_iter());
                for place in 0..rows {
                    let is_there = there.get(place).copied().unwrap_or(true);
                    let label = if is_there { texts.next() } else { None };
                    filling.push_label(&label.unwrap_or_default());
                }
                row += rows;
            }
        }
        check_length(row, filling.rows())?;
        filling.check_labels()
    }

    /// An empty column for what the file holds at a place.
    fn new_column(&self, place: usize, roles: &Roles, known: Option<&Known<'_>>) -> Result<Column> {
        let name = self.names[place].clone();
        if roles.skipped.contains(&place) {
            return Ok(Column::skipped(name, "as told"));
        }
        if let Some(known) = known {
            let found = match self.contents[place] {
                Content::Texts => Found::Texts(None),
                Content::Integers | Content::Numbers => Found::Numbers,
                Content::Vectors => Found::Other("lists of numbers"),
                Content::Other(kind) => Found::Other(kind),
            };
            return known.column(name, found);
        }
        Ok(match self.contents[place] {
            // What pandas adds when it saves a table with its index.
            _ if is_index(&name) => Column::skipped(name, "the index of a data frame"),
            Content::Other(kind) => Column::skipped(name, kind),
            Content::Texts => Column::kinds(name),
            Content::Integers | Content::Numbers | Content::Vectors => Column::numbers(name),
        })
    }

    /// Fills a column with the cells at a place.
    fn feature(&self, place: usize, mut column: Column, rows: usize) -> Result<Column> {
        if matches!(column.cells, Cells::Skipped(_)) {
            return Ok(column);
        }
        let mut row = 0;
        for group in 0..self.file.num_row_groups() {
            let mut cells = self.column(group, place)?;
            loop {
                let batch = cells.next(row).map_err(|e| match e {
                    Fault::Null(row) => at_row(column.missing(""), row + 1),
                    Fault::Other(error) => error,
                })?;
                if batch.len() == 0 {
                    break;
                }
                batch.push_to(&mut column, &mut row)?;
            }
        }
        check_length(row, rows)?;
        Ok(column)
    }

    /// A column of lists, all of one length, as that many columns of numbers.
    fn vectors(&self, place: usize, rows: usize) -> Result<Vec<Column>> {
        let name = &self.names[place];
        let mut columns: Vec<Column> = Vec::new();
        let mut row = 0;
        for group in 0..self.file.num_row_groups() {
            let mut cells = self.column(group, place)?;
            loop {
                let lists = cells.lists(row)?;
                if lists.is_empty() {
                    break;
                }
                for list in lists {
                    if row == 0 {
                        let numbered = |k: usize| Column::numbers(format!("{name}[{k}]"));
                        columns = (0..list.len()).map(numbered).collect();
                    }
                    if list.len() != columns.len() {
                        let (found, wanted) = (list.len(), columns.len());
                        let message = format!(
                            "column `{name}` has {found} numbers, row 1 has {wanted}; make all \
                             lists of one length, or leave the column out with --skip-column"
                        );
                        return Err(at_row(parse(message), row + 1));
                    }
                    for (column, value) in columns.iter_mut().zip(list) {
                        column.push_number(row, value).map_err(|e| at_row(e, row + 1))?;
                    }
                    row += 1;
                }
            }
        }
        check_length(row, rows)?;
        Ok(columns)
    }

    fn column(&self, group: usize, column: usize) -> Result<Cursor> {
        let group = self.file.get_row_group(group).map_err(damaged)?;
        let reader = group.get_column_reader(column).map_err(damaged)?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let descriptor = schema.column(column);
        let (most, no_sign) = (descriptor.max_def_level(), has_no_sign(&descriptor));
        Ok(Cursor { reader, most, no_sign, name: self.names[column].clone() })
    }
}

fn check_length(found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(parse(format!("its columns have {found} and {wanted} rows; write the file again")))
}

fn at_row(error: Error, row: usize) -> Error {
    error.at(format_args!("row {row}"))
}

/// The name of a column; that of a list is the name of the whole, not of its elements.
fn name(column: &ColumnDescriptor) -> String {
    let parts = column.path().parts();
    match parts.first() {
        Some(first) if content(column) == Content::Vectors => first.clone(),
        _ => column.path().string(),
    }
}

fn content(column: &ColumnDescriptor) -> Content {
    let is_float = matches!(column.physical_type(), Physical::FLOAT | Physical::DOUBLE);
    if column.max_rep_level() == 1 && is_float && column.path().parts().len() <= 3 {
        return Content::Vectors;
    }
    if column.max_rep_level() > 0 || column.path().parts().len() > 1 {
        return Content::Other("lists or groups of values");
    }
    let plain_number = matches!(column.logical_type_ref(), None | Some(LogicalType::Integer(_)));
    let is_date = matches!(
        column.converted_type(),
        ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
    );
    match column.physical_type() {
        _ if column.converted_type() == ConvertedType::DECIMAL => Content::Other("decimals"),
        Physical::INT32 | Physical::INT64 if is_date || !plain_number => {
            Content::Other("dates or times")
        }
        Physical::INT32 | Physical::INT64 => Content::Integers,
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => Content::Numbers,
        Physical::BYTE_ARRAY => Content::Texts,
        Physical::INT96 => Content::Other("dates or times"),
        Physical::FIXED_LEN_BYTE_ARRAY => Content::Other("bytes of fixed length"),
    }
}

/// One column of one row group, while it is read.
struct Cursor {
    reader: ColumnReader,
    /// The definition level of a value that is there.
    most: i16,
    /// Whether its whole numbers have no sign.
    no_sign: bool,
    name: String,
}

enum Fault {
    /// There is no value in this row.
    Null(usize),
    Other(Error),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Null(row) => at_row(parse("is empty; fill it in or remove the row"), row + 1),
            Fault::Other(error) => error,
        }
    }
}

/// Decoded values of consecutive rows.
enum Batch {
    Integers(Vec<i64>),
    /// Whole numbers of which at least one is too large for the above.
    Naturals(Vec<u64>),
    /// Apart from the doubles, because their texts differ: 0.1 as a double is 0.10000000149011612.
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl Cursor {
    /// The next rows, of which the first is row `row` of the file; none at the end of the group.
    fn next(&mut self, row: usize) -> Result<Batch, Fault> {
        let (batch, there) = self.values().map_err(Fault::Other)?;
        match there.iter().position(|there| !there) {
            Some(empty) => Err(Fault::Null(row + empty)),
            None => Ok(batch),
        }
    }

    /// The values of the next rows, and which of these rows have one: all of them if nothing is
    /// said.
    fn values(&mut self) -> Result<(Batch, Vec<bool>)> {
        let (most, no_sign) = (self.most, self.no_sign);
        Ok(match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                let values = values.into_iter().map(|stored| widened(stored, no_sign));
                (Batch::Integers(values.collect()), there)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                (Batch::of_integers(values, no_sign), there)
            }
            ColumnReader::FloatColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                (Batch::Singles(values), there)
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                (Batch::Doubles(values), there)
            }
            ColumnReader::BoolColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                let values = values.into_iter().map(|flag| f32::from(u8::from(flag)));
                (Batch::Singles(values.collect()), there)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (values, there) = read(reader, most)?;
                (Batch::Texts(values), there)
            }
            _ => return Err(parse("has a column of a type that is not read")),
        })
    }

    /// The lists of the next rows, of which the first is row `row` of the file.
    fn lists(&mut self, row: usize) -> Result<Vec<Vec<f64>>> {
        let (values, defined, repeated) = match &mut self.reader {
            ColumnReader::FloatColumnReader(reader) => {
                let (values, defined, repeated) = read_lists(reader)?;
                (values.into_iter().map(f64::from).collect(), defined, repeated)
            }
            ColumnReader::DoubleColumnReader(reader) => read_lists(reader)?,
            _ => return Err(parse("has a column of a type that is not read")),
        };
        let mut lists: Vec<Vec<f64>> = Vec::new();
        let mut values = values.into_iter();
        for (defined, repeated) in defined.into_iter().zip(repeated) {
            if repeated == 0 {
                lists.push(Vec::new());
            }
            let place = row + lists.len();
            let value = if defined == self.most { values.next() } else { None };
            let (Some(list), Some(value)) = (lists.last_mut(), value) else {
                let message = format!(
                    "column `{}` has an empty list or value; fill it in, or leave the column out \
                     with --skip-column",
                    self.name
                );
                return Err(at_row(parse(message), place));
            };
            list.push(value);
        }
        Ok(lists)
    }

    /// As [`Cursor::next`] for a column of ids, where an empty value is told with the column's name.
    fn ids(&mut self, row: usize) -> Result<Batch> {
        self.next(row).map_err(|fault| {
            let name = &self.name;
            match fault {
                Fault::Null(_) => Error::from(fault).at(format_args!("column `{name}`")),
                Fault::Other(error) => error,
            }
        })
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    most: i16,
) -> Result<(Vec<T::T>, Vec<bool>)> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(BATCH, Some(&mut levels), None, &mut values).map_err(damaged)?;
    let there = levels.iter().take_while(|_| most > 0).map(|&level| level >= most);
    Ok((values, there.collect()))
}

type Lists<T> = (Vec<T>, Vec<i16>, Vec<i16>);

/// Values, definition levels and repetition levels of some whole rows.
fn read_lists<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<Lists<T::T>> {
    // Lists are wide: fewer rows at once.
    const ROWS: usize = 1 << 10;
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    reader
        .read_records(ROWS, Some(&mut defined), Some(&mut repeated), &mut values)
        .map_err(damaged)?;
    Ok((values, defined, repeated))
}

fn text(bytes: &ByteArray) -> Result<&str> {
    bytes.as_utf8().map_err(|_| parse("holds bytes that are not UTF-8 text; convert the column"))
}

impl Batch {
    fn of_integers(stored: Vec<i64>, no_sign: bool) -> Self {
        if no_sign && stored.iter().any(|&value| value < 0) {
            return Self::Naturals(stored.into_iter().map(i64::cast_unsigned).collect());
        }
        Self::Integers(stored)
    }

    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Naturals(values) => values.len(),
            Self::Singles(values) => values.len(),
            Self::Doubles(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// Calls `see` with every value as text.
    fn for_each(&self, mut see: impl FnMut(&str) -> Result<()>) -> Result<()> {
        match self {
            Self::Integers(values) => values.iter().try_for_each(|v| see(&v.to_string())),
            Self::Naturals(values) => values.iter().try_for_each(|v| see(&v.to_string())),
            Self::Singles(values) => values.iter().try_for_each(|v| see(&v.to_string())),
            Self::Doubles(values) => values.iter().try_for_each(|v| see(&v.to_string())),
            Self::Texts(values) => values.iter().try_for_each(|v| see(text(v)?)),
        }
    }

    fn push_to(&self, column: &mut Column, row: &mut usize) -> Result<()> {
        for place in 0..self.len() {
            let pushed = match self {
                Self::Integers(values) => column.push_number(*row, values[place] as f64),
                Self::Naturals(values) => column.push_number(*row, values[place] as f64),
                Self::Singles(values) => push_fraction(column, *row, f64::from(values[place])),
                Self::Doubles(values) => push_fraction(column, *row, values[place]),
                Self::Texts(values) => column.push(*row, text(&values[place])?),
            };
            *row += 1;
            pushed.map_err(|e| at_row(e, *row))?;
        }
        Ok(())
    }
}

/// Adds a number to a column, where data frames write NaN for no value.
fn push_fraction(column: &mut Column, row: usize, value: f64) -> Result<()> {
    if value.is_nan() {
        return Err(column.missing("NaN"));
    }
    column.push_number(row, value)
}

/// Adds edges; integers of nineteen digits go the way of texts, as they do elsewhere.
fn push_edges(ends: &mut EndPoints, from: &Batch, to: &Batch) -> Result<()> {
    const MOST: i64 = 999_999_999_999_999_999;
    let small = |values: &[i64]| values.iter().all(|value| (-MOST..=MOST).contains(value));
    if let (Batch::Integers(from), Batch::Integers(to)) = (from, to)
        && small(from)
        && small(to)
    {
        ends.push_numbers(from.iter().zip(to).map(|(&source, &target)| [source, target]).collect());
        return Ok(());
    }
    let mut sources = Vec::with_capacity(from.len());
    from.for_each(|source| {
        sources.push(source.to_owned());
        Ok(())
    })?;
    let mut sources = sources.iter();
    to.for_each(|target| {
        if let Some(source) = sources.next() {
            ends.push(source, target);
        }
        Ok(())
    })
}
