//! Embeddings as a parquet table: `id` and a list of floats, with the provenance in the footer.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::Embedding;

/// Rows that are written, and held in memory, together; about 16 MB of vectors of usual width.
const ROWS_A_GROUP: usize = 1 << 14;

const SCHEMA: &str = "message embeddings {
    required binary id (STRING);
    required group embedding (LIST) {
        repeated group list {
            required float element;
        }
    }
}";

pub(super) fn write(embedding: &Embedding<'_>, out: &mut (dyn Write + Send)) -> io::Result<()> {
    write_file(embedding, out).map_err(|error| match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    })
}

fn write_file(embedding: &Embedding<'_>, out: &mut (dyn Write + Send)) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties(embedding)))?;
    let rows = embedding.vectors.rows();
    for start in (0..rows).step_by(ROWS_A_GROUP) {
        let mut group = file.next_row_group()?;
        write_group(embedding, start..(start + ROWS_A_GROUP).min(rows), &mut group)?;
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// Random mantissas do not shrink: neither compression nor a dictionary would pay for its time.
fn properties(embedding: &Embedding<'_>) -> WriterProperties {
    let entries = embedding.provenance.entries();
    let entries = entries
        .into_iter()
        .map(|(key, value)| KeyValue::new(format!("blnn.{key}"), value.into_owned()));
    let vectors = ColumnPath::new(vec!["embedding".into(), "list".into(), "element".into()]);
    WriterProperties::builder()
        .set_created_by(format!("blnn {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(entries.collect()))
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_dictionary_enabled(vectors.clone(), false)
        .set_column_encoding(vectors, Encoding::PLAIN)
        .build()
}

fn write_group<W: Write + Send>(
    embedding: &Embedding<'_>,
    rows: std::ops::Range<usize>,
    group: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<(), ParquetError> {
    let width = embedding.vectors.cols();
    if let Some(mut column) = group.next_column()? {
        let ids: Vec<ByteArray> = rows
            .clone()
            .map(|row| ByteArray::from(embedding.id(row).as_bytes().to_vec()))
            .collect();
        column.typed::<ByteArrayType>().write_batch(&ids, None, None)?;
        column.close()?;
    }
    if let Some(mut column) = group.next_column()? {
        let values = &embedding.vectors.data()[rows.start * width..rows.end * width];
        // Every value is there (level 1); the first of a row begins a new list (repetition 0).
        let defined = vec![1_i16; values.len()];
        let repeated: Vec<i16> = (0..values.len()).map(|k| i16::from(k % width != 0)).collect();
        column.typed::<FloatType>().write_batch(values, Some(&defined), Some(&repeated))?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::written;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    #[test]
    fn ids_vectors_and_provenance_come_back() {
        let bytes = written(Format::Parquet, &["ä", "b c"]).remove(0);
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let about = file.metadata().file_metadata();
        let entries = about.key_value_metadata().unwrap();
        let value = |key: &str| entries.iter().find(|e| e.key == key).unwrap().value.clone();
        assert_eq!(value("blnn.fingerprint").as_deref(), Some("ab12"));
        assert_eq!(value("blnn.seed").as_deref(), Some("7"));
        assert_eq!(value("blnn.config").as_deref(), Some("seed = 7\n"));
        assert_eq!(value("blnn.blnn_version").as_deref(), Some(env!("CARGO_PKG_VERSION")));
        let rows: Vec<String> =
            file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
        assert_eq!(
            rows,
            ["{id: \"ä\", embedding: [0E0, 0.5]}", "{id: \"b c\", embedding: [1.0, 1.5]}"]
        );
    }
}
