//! Embeddings in the formats that other tools read, always with the user's ids.
//!
//! | format | files | read by |
//! |---|---|---|
//! | `npy` | `embeddings.npy`, `node_ids.txt` | NumPy |
//! | `npz` | `embeddings.npz` with `embeddings`, `ids`, `provenance` | NumPy |
//! | `parquet` | `embeddings.parquet`: `id` (text), `embedding` (list of floats) | data frames, warehouses |
//! | `csv` | `embeddings.csv`: `id`, `e0`, `e1` and so on | everything |
//! | `word2vec` | `embeddings.w2v.txt` | gensim |
//! | `projector` | `embeddings.vectors.tsv`, `embeddings.metadata.tsv` | TensorBoard's projector |

mod parquet_file;
mod text;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blnn_kernels::Matrix;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::atomic;
use crate::checkpoint::Header;
use crate::data::npy;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::plan::Plan;

/// A format of embeddings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's array, with the ids in a text file beside it.
    Npy,
    /// NumPy's archive of vectors and ids.
    Npz,
    /// A parquet table: id and list of floats.
    Parquet,
    /// Comma-separated text: id, then a column a dimension.
    Csv,
    /// The text format of word2vec.
    Word2vec,
    /// The two files of `TensorBoard`'s embedding projector.
    Projector,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Npy, Self::Npz, Self::Parquet, Self::Csv, Self::Word2vec, Self::Projector];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Word2vec => "word2vec",
            Self::Projector => "projector",
        }
    }

    /// The names of the files, the vectors first.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::Npy => &["embeddings.npy", "node_ids.txt"],
            Self::Npz => &["embeddings.npz"],
            Self::Parquet => &["embeddings.parquet"],
            Self::Csv => &["embeddings.csv"],
            Self::Word2vec => &["embeddings.w2v.txt"],
            Self::Projector => &["embeddings.vectors.tsv", "embeddings.metadata.tsv"],
        }
    }

    /// Whether the format can hold the ids of a graph's nodes: to be asked before there is
    /// something to lose.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(self, graph: &Graph) -> Result<()> {
        match self {
            Self::Word2vec => text::words(graph).map(drop),
            Self::Npy | Self::Npz | Self::Parquet | Self::Csv | Self::Projector => Ok(()),
        }
    }
}

/// Where embeddings come from: what a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// The graph's name.
    pub graph: String,
    /// The fingerprint of the graph.
    pub fingerprint: String,
    /// The seed every random draw derived from.
    pub seed: u64,
    /// The resolved settings, as TOML.
    pub config: String,
}

impl Provenance {
    /// The provenance of embeddings trained by `plan` on `graph`.
    pub fn new(graph: &Graph, plan: &Plan) -> Self {
        Self {
            graph: graph.name().to_owned(),
            fingerprint: graph.fingerprint(),
            seed: plan.seed(),
            config: plan.to_toml(),
        }
    }

    /// The provenance of embeddings by the model of a checkpoint.
    pub fn of_model(header: &Header) -> Self {
        Self {
            graph: header.graph.clone(),
            fingerprint: header.fingerprint.clone(),
            seed: header.seed,
            config: header.config.clone(),
        }
    }

    /// Names and values, as they are written into files.
    fn entries(&self) -> [(&'static str, Cow<'_, str>); 5] {
        [
            ("blnn_version", env!("CARGO_PKG_VERSION").into()),
            ("graph", self.graph.as_str().into()),
            ("fingerprint", self.fingerprint.as_str().into()),
            ("seed", self.seed.to_string().into()),
            ("config", self.config.as_str().into()),
        ]
    }

    fn to_json(&self) -> String {
        let entries =
            self.entries().into_iter().map(|(name, value)| (name.to_owned(), value.into()));
        serde_json::Value::Object(entries.collect()).to_string()
    }
}

/// Embeddings about to be written.
#[derive(Clone, Copy, Debug)]
pub struct Embedding<'a> {
    vectors: &'a Matrix,
    graph: &'a Graph,
    provenance: &'a Provenance,
}

impl<'a> Embedding<'a> {
    /// The embeddings of a graph's nodes, row by row.
    ///
    /// # Errors
    /// If there is not one row a node.
    pub fn new(vectors: &'a Matrix, graph: &'a Graph, provenance: &'a Provenance) -> Result<Self> {
        if vectors.rows() != graph.nodes() {
            let (rows, nodes) = (vectors.rows(), graph.nodes());
            let message = format!("{rows} embeddings for {nodes} nodes");
            return Err(Error::new(ErrorKind::Shape, message));
        }
        Ok(Self { vectors, graph, provenance })
    }

    /// Writes the files of a format into `folder`, each replaced in one step, and returns their
    /// paths.
    ///
    /// # Errors
    /// If a file cannot be written, or the format cannot hold these ids.
    ///
    /// # Examples
    /// ```
    /// use blnn::export::{Embedding, Format, Provenance};
    /// use blnn::{Config, Features, Graph, Matrix, Pattern};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adjacency = Pattern::new(2, vec![0, 1, 2], vec![1, 0])?;
    /// let graph = Graph::new("pair", adjacency, Features::Dense(Matrix::zeros(2, 1)))?
    ///     .with_node_ids(vec!["ann".into(), "bob".into()])?;
    /// let provenance = Provenance::new(&graph, &Config::new().resolve("pair")?);
    /// let vectors = Matrix::from_vec(2, 2, vec![0.5, 1.0, -1.0, 0.25]);
    /// let folder = tempfile::tempdir()?;
    /// let files = Embedding::new(&vectors, &graph, &provenance)?.write(Format::Csv, folder.path())?;
    /// assert_eq!(std::fs::read_to_string(&files[0])?, "id,e0,e1\nann,0.5,1\nbob,-1,0.25\n");
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, format: Format, folder: &Path) -> Result<Vec<PathBuf>> {
        let paths: Vec<PathBuf> = format.files().iter().map(|name| folder.join(name)).collect();
        let vectors = &paths[0];
        match format {
            Format::Npy => {
                write_ids(&paths[1], self.graph)?;
                atomic::replace(vectors, |out| npy::write_f32_matrix(out, self.vectors))?;
            }
            Format::Npz => atomic::replace(vectors, |out| self.npz(out))?,
            Format::Parquet => atomic::replace(vectors, |out| parquet_file::write(self, out))?,
            Format::Csv => atomic::replace(vectors, |out| text::csv(self, out))?,
            Format::Word2vec => {
                let words = text::words(self.graph).map_err(|e| e.at(vectors.display()))?;
                atomic::replace(vectors, |out| text::word2vec(self, &words, out))?;
            }
            Format::Projector => {
                atomic::replace(&paths[1], |out| text::projector_metadata(self, out))?;
                atomic::replace(vectors, |out| text::projector_vectors(self, out))?;
            }
        }
        Ok(paths)
    }

    /// The user's name of a row, or its number.
    fn id(&self, row: usize) -> Cow<'a, str> {
        id_of(self.graph, row)
    }

    fn npz(&self, out: &mut dyn Write) -> io::Result<()> {
        let ids: Vec<Cow<'_, str>> = (0..self.vectors.rows()).map(|row| self.id(row)).collect();
        let mut zip = ZipWriter::new_stream(out);
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            // Sizes are not known before: room for more than four gigabytes.
            .large_file(true);
        zip.start_file("embeddings.npy", options)?;
        npy::write_f32_matrix(&mut zip, self.vectors)?;
        zip.start_file("ids.npy", options)?;
        npy::write_text(&mut zip, &ids)?;
        zip.start_file("provenance.npy", options)?;
        npy::write_text(&mut zip, &[self.provenance.to_json()])?;
        zip.finish()?;
        Ok(())
    }
}

fn id_of(graph: &Graph, row: usize) -> Cow<'_, str> {
    match graph.node_ids() {
        Some(ids) => Cow::Borrowed(&ids[row]),
        None => Cow::Owned(row.to_string()),
    }
}

/// Writes the id of each row to a file, one a line; [`ids_of_lines`] reads them back.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_ids(path: &Path, graph: &Graph) -> Result<()> {
    atomic::replace(path, |out| {
        for row in 0..graph.nodes() {
            writeln!(out, "{}", one_line(&id_of(graph, row)))?;
        }
        Ok(())
    })
}

/// The ids in the text of a file that [`write_ids`] wrote.
pub(crate) fn ids_of_lines(text: &str) -> Vec<String> {
    text.lines().map(id_of_line).collect()
}

/// An id with its line breaks escaped, so that line `i` is always the id of row `i`.
fn one_line(id: &str) -> Cow<'_, str> {
    if id.contains(['\\', '\n', '\r']) {
        Cow::Owned(id.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r"))
    } else {
        Cow::Borrowed(id)
    }
}

/// The id that [`one_line`] made a line of.
fn id_of_line(line: &str) -> String {
    let mut id = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            id.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => id.push('\n'),
            Some('r') => id.push('\r'),
            Some('\\') => id.push('\\'),
            // We write no such thing, but other programs and older versions escape no backslash.
            other => id.extend(['\\'].into_iter().chain(other)),
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Features;
    use blnn_kernels::Pattern;

    pub(super) fn provenance() -> Provenance {
        Provenance {
            graph: "toy".into(),
            fingerprint: "ab12".into(),
            seed: 7,
            config: "seed = 7\n".into(),
        }
    }

    pub(super) fn graph(ids: &[&str]) -> Graph {
        let n = ids.len();
        let adjacency = Pattern::new(n, vec![0; n + 1], vec![]).unwrap();
        let graph = Graph::new("toy", adjacency, Features::Dense(Matrix::zeros(n, 1))).unwrap();
        graph.with_node_ids(ids.iter().map(|&id| id.to_owned()).collect()).unwrap()
    }

    pub(super) fn written(format: Format, ids: &[&str]) -> Vec<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let (graph, provenance) = (graph(ids), provenance());
        let vectors = Matrix::from_fn(ids.len(), 2, |i, j| i as f32 + 0.5 * j as f32);
        let embedding = Embedding::new(&vectors, &graph, &provenance).unwrap();
        let paths = embedding.write(format, folder.path()).unwrap();
        let names: Vec<_> = paths.iter().map(|p| p.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, format.files());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), paths.len(), "no litter");
        paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    #[test]
    fn an_id_never_breaks_its_line() {
        let files = written(Format::Npy, &["a\nb\r", "c"]);
        assert_eq!(files[1], b"a\\nb\\r\nc\n");
        let back = npy::from_bytes(&files[0]).unwrap().into_matrix().unwrap();
        assert_eq!(back.data(), [0.0, 0.5, 1.0, 1.5]);
    }

    #[test]
    fn ids_come_back_from_their_lines() {
        let ids = ["a\tb", "c\nd\r", r"C:\new\run", r"e\", r"\\n", "", " f ", "g\r\n", "ä"];
        let lines = String::from_utf8(written(Format::Npy, &ids).remove(1)).unwrap();
        assert_eq!(lines.lines().count(), ids.len());
        assert_eq!(ids_of_lines(&lines), ids);
        let others = ids_of_lines("plain id\r\nC:\\Temp\nend\\");
        assert_eq!(others, ["plain id", r"C:\Temp", r"end\"]);
    }

    #[test]
    fn archives_hold_vectors_ids_and_provenance() {
        let bytes = &written(Format::Npz, &["ä", "b c"])[0];
        let mut archive =
            crate::data::npz::Archive::open(io::Cursor::new(bytes), bytes.len() as u64).unwrap();
        let vectors = archive.required("embeddings").unwrap().into_matrix().unwrap();
        assert_eq!(vectors.data(), [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(archive.required("ids").unwrap().into_text().unwrap(), ["ä", "b c"]);
        let provenance = archive.required("provenance").unwrap().into_text().unwrap();
        let json: serde_json::Value = serde_json::from_str(&provenance[0]).unwrap();
        assert_eq!((&json["seed"], &json["fingerprint"]), (&"7".into(), &"ab12".into()));
        assert_eq!(json["config"], "seed = 7\n");
    }

    #[test]
    fn rows_and_nodes_must_agree() {
        let (graph, provenance) = (graph(&["a"]), provenance());
        let error = Embedding::new(&Matrix::zeros(2, 2), &graph, &provenance).unwrap_err();
        assert!(error.to_string().contains("2 embeddings for 1 nodes"), "{error}");
    }
}
