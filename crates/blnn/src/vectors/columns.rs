//! Embeddings in parquet files: a column of lists, or a column a dimension.

use blnn_kernels::Matrix;
use bytes::Bytes;
use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescPtr;

use super::names::{Candidate, Roles, told};
use super::{VECTOR_NAMES, Vectors, check_ids, parse};
use crate::error::Result;
use crate::guarded::guarded;
use crate::natural::{has_no_sign, widened, written};

/// Values or lists that are decoded at once.
const BATCH: usize = 1 << 12;

/// Reads the file in memory. The decoders panic over some damaged files: that is an error like any
/// other one.
pub(super) fn read(file: Bytes, label: Option<&str>) -> Result<Vectors> {
    let damaged = || Err(parse("is a damaged parquet file; write or copy it again"));
    guarded(|| read_file(file, label)).unwrap_or_else(damaged)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err takes")]
fn damaged(cause: ParquetError) -> crate::error::Error {
    parse(format!("is not a whole parquet file that can be read ({cause}); write it again"))
}

/// Which columns are what.
struct Layout {
    /// One column of lists, or a column a dimension.
    vectors: Vec<usize>,
    lists: bool,
    ids: Option<usize>,
    /// Columns that are neither, in words.
    left_out: Vec<String>,
}

fn is_flat(column: &ColumnDescPtr) -> bool {
    column.max_rep_level() == 0
}

fn is_text(column: &ColumnDescPtr) -> bool {
    is_flat(column) && column.physical_type() == Physical::BYTE_ARRAY
}

fn is_float(column: &ColumnDescPtr) -> bool {
    matches!(column.physical_type(), Physical::FLOAT | Physical::DOUBLE)
}

fn top_name(column: &ColumnDescPtr) -> &str {
    column.path().parts().first().map_or("", String::as_str)
}

impl Layout {
    fn find(columns: &[ColumnDescPtr], label: Option<&str>) -> Result<Self> {
        let roles = roles_of(columns, label);
        let free = |place: &usize| roles.is_free(*place);
        let texts = || (0..columns.len()).filter(free).find(|&place| is_text(&columns[place]));
        let ids = roles.ids.or_else(texts);
        let is_list = |c: &ColumnDescPtr| c.max_rep_level() == 1 && is_float(c);
        let lists = (0..columns.len()).filter(|&place| is_list(&columns[place]));
        if let Some((place, others)) = one_list(columns, &lists.collect::<Vec<_>>())? {
            // Nobody takes the columns beside a list for dimensions.
            let told = |place| told(place, top_name(&columns[place]), "another list");
            let left_out = others.into_iter().map(told).collect();
            return Ok(Self { vectors: vec![place], lists: true, ids, left_out });
        }
        let is_number = |place: &usize| is_flat(&columns[*place]) && is_float(&columns[*place]);
        let (vectors, others): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).filter(free).partition(is_number);
        if vectors.is_empty() {
            let names: Vec<&str> = columns.iter().map(top_name).collect();
            return Err(parse(format!(
                "has no column of floats or of lists of floats among {}",
                names.join(", ")
            )));
        }
        let others = others.into_iter().filter(|place| ids != Some(*place));
        let others = others.map(|place| told(place, top_name(&columns[place]), "not of floats"));
        let left_out = roles.told.iter().cloned().chain(others).collect();
        Ok(Self { vectors, lists: false, ids, left_out })
    }
}

/// Which of the columns of lists holds the vectors, and the others: the only one, or the only one
/// that is called so.
fn one_list(columns: &[ColumnDescPtr], lists: &[usize]) -> Result<Option<(usize, Vec<usize>)>> {
    let is_named = |place: &&usize| VECTOR_NAMES.contains(&top_name(&columns[**place]));
    let named: Vec<usize> = lists.iter().filter(is_named).copied().collect();
    match (lists, named.as_slice()) {
        ([], _) => Ok(None),
        ([only], _) | (_, [only]) => {
            let others = lists.iter().copied().filter(|place| place != only).collect();
            Ok(Some((*only, others)))
        }
        _ => {
            let names: Vec<&str> = lists.iter().map(|&place| top_name(&columns[place])).collect();
            Err(parse(format!(
                "has lists of floats in {}; call that of the vectors `embedding`, and no other",
                names.join(", ")
            )))
        }
    }
}

/// What the names of the columns tell. Floats are no ids, whatever they are called.
fn roles_of(columns: &[ColumnDescPtr], label: Option<&str>) -> Roles {
    let candidate = |column| Candidate {
        name: top_name(column),
        nameable: is_flat(column)
            && matches!(
                column.physical_type(),
                Physical::BYTE_ARRAY | Physical::INT32 | Physical::INT64
            ),
    };
    Roles::of(&columns.iter().map(candidate).collect::<Vec<_>>(), label)
}

type Source = SerializedFileReader<Bytes>;

fn read_file(file: Bytes, label: Option<&str>) -> Result<Vectors> {
    let file = SerializedFileReader::new(file).map_err(damaged)?;
    let columns = file.metadata().file_metadata().schema_descr().columns().to_vec();
    let layout = Layout::find(&columns, label)?;
    let matrix = if layout.lists {
        lists(&file, layout.vectors[0], &columns)?
    } else {
        dimensions(&file, &layout.vectors, &columns)?
    };
    let ids = layout.ids.map(|place| texts(&file, place, &columns)).transpose()?;
    check_ids(matrix.rows(), ids.as_ref())?;
    Ok(Vectors { matrix, ids, left_out: layout.left_out })
}

/// Calls `see` with the reader of a column in every row group.
fn each_group(
    file: &Source,
    place: usize,
    mut see: impl FnMut(ColumnReader) -> Result<()>,
) -> Result<()> {
    for group in 0..file.num_row_groups() {
        let group = file.get_row_group(group).map_err(damaged)?;
        see(group.get_column_reader(place).map_err(damaged)?)?;
    }
    Ok(())
}

/// All values of a column in a row group, and where lists begin (0) or go on (1). None may be
/// missing.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    column: &ColumnDescPtr,
) -> Result<(Vec<T::T>, Vec<i16>)> {
    let (mut all, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let before = all.len();
        let (records, ..) = reader
            .read_records(BATCH, Some(&mut defined), Some(&mut repeated), &mut all)
            .map_err(damaged)?;
        if records == 0 && all.len() == before {
            break;
        }
    }
    let most = column.max_def_level();
    if most > 0 && defined.iter().any(|&level| level < most) {
        let name = top_name(column);
        return Err(parse(format!("column `{name}` has an empty value; fill it in")));
    }
    Ok((all, repeated))
}

fn floats(reader: ColumnReader, column: &ColumnDescPtr) -> Result<(Vec<f32>, Vec<i16>)> {
    match reader {
        ColumnReader::FloatColumnReader(reader) => values(reader, column),
        ColumnReader::DoubleColumnReader(reader) => {
            let (all, repeated) = values(reader, column)?;
            Ok((all.into_iter().map(|v| v as f32).collect(), repeated))
        }
        _ => Err(parse("has a column of a type that is not read")),
    }
}

/// A row a list.
fn lists(file: &Source, place: usize, columns: &[ColumnDescPtr]) -> Result<Matrix> {
    let (mut all, mut starts): (Vec<f32>, Vec<usize>) = (Vec::new(), Vec::new());
    each_group(file, place, |reader| {
        let (values, repeated) = floats(reader, &columns[place])?;
        let from = all.len();
        let begins = repeated.iter().enumerate().filter(|(_, level)| **level == 0);
        starts.extend(begins.map(|(k, _)| from + k));
        all.extend(values);
        Ok(())
    })?;
    let width = starts.get(1).copied().unwrap_or(all.len());
    let even = |(row, start): (usize, &usize)| *start == row * width;
    if starts.is_empty() || width == 0 {
        return Err(parse("holds no rows"));
    }
    if all.len() != starts.len() * width || !starts.iter().enumerate().all(even) {
        return Err(parse("its lists differ in length; make all of one length"));
    }
    Ok(Matrix::from_vec(starts.len(), width, all))
}

/// A column of the matrix a column of the file.
fn dimensions(file: &Source, places: &[usize], columns: &[ColumnDescPtr]) -> Result<Matrix> {
    let mut read = Vec::with_capacity(places.len());
    for &place in places {
        let mut all = Vec::new();
        each_group(file, place, |reader| {
            all.extend(floats(reader, &columns[place])?.0);
            Ok(())
        })?;
        read.push(all);
    }
    let rows = read[0].len();
    if rows == 0 {
        return Err(parse("holds no rows"));
    }
    if read.iter().any(|column| column.len() != rows) {
        return Err(parse("its columns differ in length; write the file again"));
    }
    Ok(Matrix::from_fn(rows, read.len(), |i, j| read[j][i]))
}

fn texts(file: &Source, place: usize, columns: &[ColumnDescPtr]) -> Result<Vec<String>> {
    let column = &columns[place];
    let no_sign = has_no_sign(column);
    let mut all = Vec::new();
    each_group(file, place, |reader| {
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) => {
                for bytes in values(reader, column)?.0 {
                    let text = bytes.as_utf8().map_err(|_| {
                        parse(format!("column `{}` holds bytes, not texts", top_name(column)))
                    })?;
                    all.push(text.to_owned());
                }
            }
            ColumnReader::Int32ColumnReader(reader) => {
                let ids = values(reader, column)?.0;
                all.extend(ids.iter().map(|&stored| widened(stored, no_sign).to_string()));
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let ids = values(reader, column)?.0;
                all.extend(ids.iter().map(|&stored| written(stored, no_sign)));
            }
            _ => return Err(parse("has ids of a type that is not read")),
        }
        Ok(())
    })?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use parquet::schema::types::SchemaDescriptor;
    use std::sync::Arc;

    /// A file with integers, texts `t` and numbers `x`, `y`, as a data frame is saved.
    fn frame(integers: &str) -> Bytes {
        columns(integers, "t")
    }

    fn columns(integers: &str, texts: &str) -> Bytes {
        let schema = format!(
            "message m {{ required double x; optional int64 {integers}; required double y; \
             optional binary {texts} (STRING); }}"
        );
        let schema = Arc::new(parse_message_type(&schema).unwrap());
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        for place in 0..4 {
            let mut column = group.next_column().unwrap().unwrap();
            let level = Some(&[1, 1][..]);
            match place {
                0 => column.typed::<DoubleType>().write_batch(&[0.5, 1.5], None, None),
                1 => column.typed::<Int64Type>().write_batch(&[7, 9], level, None),
                2 => column.typed::<DoubleType>().write_batch(&[2.0, -1.0], None, None),
                _ => {
                    let texts = ["a", "b"].map(ByteArray::from);
                    column.typed::<ByteArrayType>().write_batch(&texts, level, None)
                }
            }
            .unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        file.close().unwrap();
        Bytes::from(bytes)
    }

    #[test]
    fn a_column_a_dimension_with_the_ids_that_are_called_so() {
        let found = read(frame("n"), None).unwrap();
        assert_eq!(found.matrix.data(), [0.5, 2.0, 1.5, -1.0]);
        assert_eq!(found.ids.as_deref().unwrap(), ["a", "b"]);
        assert_eq!(read(frame("node_id"), None).unwrap().ids.unwrap(), ["7", "9"]);
        let index = read(frame("__index_level_0__"), None).unwrap();
        assert_eq!(index.ids.unwrap(), ["7", "9"]);
        assert_eq!(found.left_out, ["`n` (not of floats)"]);
        assert_eq!(index.left_out, ["`t` (not of floats)"]);
    }

    /// A hash of 64 bits is a number without a sign.
    #[test]
    fn ids_without_a_sign_are_not_negative() {
        let file = |integers: &str, stored: i64| {
            let schema = format!(
                "message m {{ required double x; required {integers}; required double y; }}"
            );
            let schema = Arc::new(parse_message_type(&schema).unwrap());
            let mut bytes = Vec::new();
            let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
            let mut group = file.next_row_group().unwrap();
            for place in 0..3 {
                let mut column = group.next_column().unwrap().unwrap();
                match place {
                    1 if integers.starts_with("int32") => {
                        column.typed::<Int32Type>().write_batch(&[stored as i32], None, None)
                    }
                    1 => column.typed::<Int64Type>().write_batch(&[stored], None, None),
                    _ => column.typed::<DoubleType>().write_batch(&[0.5], None, None),
                }
                .unwrap();
                column.close().unwrap();
            }
            group.close().unwrap();
            file.close().unwrap();
            Bytes::from(bytes)
        };
        let id = |integers, stored| read(file(integers, stored), None).unwrap().ids.unwrap();
        assert_eq!(id("int64 id (UINT_64)", -1), ["18446744073709551615"]);
        assert_eq!(id("int64 id (INTEGER(64,false))", -2), ["18446744073709551614"]);
        assert_eq!(id("int32 id (UINT_32)", -1), ["4294967295"]);
        assert_eq!(id("int64 id", -1), ["-1"]);
        assert_eq!(id("int32 id", -1), ["-1"]);
    }

    /// As in tables of text.
    #[test]
    fn ids_go_before_an_index_and_classes_are_no_dimension() {
        let found = read(columns("__index_level_0__", "id"), None).unwrap();
        assert_eq!(found.ids.unwrap(), ["a", "b"]);
        assert_eq!(found.left_out, ["`__index_level_0__` (the index of a data frame)"]);
        let found = read(columns("kind", "id"), Some("kind")).unwrap();
        assert_eq!(found.left_out, ["`kind` (called as the classes are)"]);
        let found = read(columns("n", "label"), Some("x")).unwrap();
        assert_eq!((found.matrix.data(), found.ids), (&[2.0, -1.0][..], None));
        let told = ["`x` (called as the classes are)", "`label` (called as the classes are)"];
        assert_eq!(found.left_out, [&told[..], &["`n` (not of floats)"]].concat());
    }

    #[test]
    fn of_several_lists_the_one_that_is_called_so_is_taken() {
        let layout = |[a, b]: [&str; 2]| {
            let schema = format!("message m {{ repeated float {a}; repeated double {b}; }}");
            let schema = SchemaDescriptor::new(Arc::new(parse_message_type(&schema).unwrap()));
            Layout::find(schema.columns(), None)
        };
        let found = layout(["features", "embedding"]).unwrap();
        assert_eq!((found.vectors, found.lists), (vec![1], true));
        assert_eq!(found.left_out, ["`features` (another list)"]);
        for names in [["a", "b"], ["x", "z"]] {
            let error = layout(names).err().unwrap().to_string();
            assert!(error.contains(&names.join(", ")) && error.contains("embedding"), "{error}");
        }
    }

    #[test]
    fn a_table_without_floats_is_refused() {
        let schema = Arc::new(parse_message_type("message m { required int64 a; }").unwrap());
        let mut bytes = Vec::new();
        let file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
        file.close().unwrap();
        let error = read(Bytes::from(bytes), None).unwrap_err().to_string();
        assert!(error.contains("no column of floats") && error.contains("among a"), "{error}");
    }
}
