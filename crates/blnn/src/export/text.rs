//! Embeddings as text: csv, word2vec and the projector of `TensorBoard`.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Embedding, id_of};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;

/// `id,e0,e1,…`, numbers in the shortest form that reads back to the same bits.
pub(super) fn csv(embedding: &Embedding<'_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "id")?;
    for column in 0..embedding.vectors.cols() {
        write!(out, ",e{column}")?;
    }
    writeln!(out)?;
    for row in 0..embedding.vectors.rows() {
        let id = embedding.id(row);
        if id.contains([',', '"', '\n', '\r']) || id.trim() != id || id.is_empty() {
            write!(out, "\"{}\"", id.replace('"', "\"\""))?;
        } else {
            write!(out, "{id}")?;
        }
        numbers(embedding.vectors.row(row), ",", out)?;
    }
    Ok(())
}

/// The numbers of a row, each after a separator, and the end of the line.
fn numbers(row: &[f32], separator: &str, out: &mut dyn Write) -> io::Result<()> {
    for value in row {
        write!(out, "{separator}{value}")?;
    }
    writeln!(out)
}

/// The ids as words: blanks, which would end a word, become `_`.
///
/// # Errors
/// If two ids become one word, or one is empty.
pub(super) fn words(graph: &Graph) -> Result<Vec<String>> {
    let mut rows: HashMap<String, usize> = HashMap::new();
    let mut words = Vec::with_capacity(graph.nodes());
    for row in 0..graph.nodes() {
        let word = id_of(graph, row).replace(char::is_whitespace, "_");
        let refuse = |why: String| {
            let message = format!("{why}; choose another format, such as csv");
            Err(Error::new(ErrorKind::Shape, message))
        };
        if word.is_empty() {
            return refuse(format!("the id of row {row} is empty, which word2vec cannot hold"));
        }
        if let Some(other) = rows.insert(word.clone(), row) {
            let (a, b) = (id_of(graph, other), id_of(graph, row));
            return refuse(format!("word2vec would call both `{a}` and `{b}` `{word}`"));
        }
        words.push(word);
    }
    Ok(words)
}

/// Number of rows and columns on the first line, then a word and its vector a line.
pub(super) fn word2vec(
    embedding: &Embedding<'_>,
    words: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{} {}", embedding.vectors.rows(), embedding.vectors.cols())?;
    for (row, word) in words.iter().enumerate() {
        write!(out, "{word}")?;
        numbers(embedding.vectors.row(row), " ", out)?;
    }
    Ok(())
}

/// A vector a line.
pub(super) fn projector_vectors(embedding: &Embedding<'_>, out: &mut dyn Write) -> io::Result<()> {
    for row in 0..embedding.vectors.rows() {
        let [first, rest @ ..] = embedding.vectors.row(row) else {
            continue;
        };
        write!(out, "{first}")?;
        numbers(rest, "\t", out)?;
    }
    Ok(())
}

/// An id a line; with labels a second column and, as the projector demands then, a header.
pub(super) fn projector_metadata(embedding: &Embedding<'_>, out: &mut dyn Write) -> io::Result<()> {
    let graph = embedding.graph;
    let labelled = graph.classes() > 0;
    if labelled {
        writeln!(out, "id\tlabel")?;
    }
    for row in 0..embedding.vectors.rows() {
        write!(out, "{}", in_cell(&embedding.id(row)))?;
        if labelled {
            match graph.label_of(row).map(|class| (class, graph.class_names().get(class as usize)))
            {
                Some((_, Some(name))) => write!(out, "\t{}", in_cell(name))?,
                Some((class, None)) => write!(out, "\t{class}")?,
                None => write!(out, "\t")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Tabs and line ends would break the table.
fn in_cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{graph, provenance, written};
    use super::super::{Embedding, Format};
    use blnn_kernels::Matrix;

    fn texts(format: Format, ids: &[&str]) -> Vec<String> {
        written(format, ids).into_iter().map(|f| String::from_utf8(f).unwrap()).collect()
    }

    #[test]
    fn csv_quotes_what_it_must() {
        let text = &texts(Format::Csv, &["a,b", "say \"x\"", "c"])[0];
        assert_eq!(text, "id,e0,e1\n\"a,b\",0,0.5\n\"say \"\"x\"\"\",1,1.5\nc,2,2.5\n");
    }

    #[test]
    fn word2vec_has_one_word_an_id() {
        let text = &texts(Format::Word2vec, &["ann lee", "bob"])[0];
        assert_eq!(text, "2 2\nann_lee 0 0.5\nbob 1 1.5\n");
        let (graph, provenance) = (graph(&["a b", "a_b"]), provenance());
        assert!(Format::Word2vec.check(&graph).is_err() && Format::Csv.check(&graph).is_ok());
        let vectors = Matrix::zeros(2, 1);
        let embedding = Embedding::new(&vectors, &graph, &provenance).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let error = embedding.write(Format::Word2vec, folder.path()).unwrap_err().to_string();
        assert!(error.contains("both `a b` and `a_b`") && error.contains("csv"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_projector_gets_vectors_and_names() {
        let files = texts(Format::Projector, &["a\tb", "c"]);
        assert_eq!(files, ["0\t0.5\n1\t1.5\n", "a b\nc\n"]);
        let provenance = provenance();
        let graph = graph(&["a", "b"]).with_labels(vec![1, 0], vec!["x".into(), "y".into()]);
        let (graph, vectors) = (graph.unwrap(), Matrix::zeros(2, 1));
        let embedding = Embedding::new(&vectors, &graph, &provenance).unwrap();
        let mut out = Vec::new();
        super::projector_metadata(&embedding, &mut out).unwrap();
        assert_eq!(out, b"id\tlabel\na\ty\nb\tx\n");
    }
}
