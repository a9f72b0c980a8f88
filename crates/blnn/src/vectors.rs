//! Embeddings in files, ours or another program's: .npy, .npz, parquet, csv, word2vec text and the
//! projector's tsv, told apart by their contents.
//!
//! # Examples
//! ```
//! use blnn::vectors;
//! let csv = vectors::from_bytes(b"name,x,y\nann,0.5,1\nbob,-1,0.25\n")?;
//! assert_eq!(csv.matrix.row(1), [-1.0, 0.25]);
//! assert_eq!(csv.ids.unwrap(), ["ann", "bob"]);
//! let word2vec = vectors::from_bytes(b"2 2\nann 0.5 1\nbob -1 0.25\n")?;
//! assert_eq!(word2vec.matrix, csv.matrix);
//! # Ok::<(), blnn::Error>(())
//! ```

mod columns;
mod names;
mod text;

use std::fs;
use std::io::{Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use blnn_kernels::Matrix;

use crate::data::npy::{self, Array, Values};
use crate::data::npz::Archive;
use crate::error::{Error, ErrorKind, Result};
use crate::export;
use names::ID_NAMES;

/// The file of the ids beside an array.
const ID_LIST: &str = "node_ids.txt";
/// The names of the member of an archive that holds the vectors.
const VECTOR_NAMES: [&str; 6] = ["embeddings", "embedding", "vectors", "x", "z", "arr_0"];
/// Columns that are left out and told by their names; of more the number is told.
const MOST_TOLD: usize = 6;

/// Embeddings, one row a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Vectors {
    /// The vectors.
    pub matrix: Matrix,
    /// The name of each row, if the file says.
    pub ids: Option<Vec<String>>,
    /// Columns of the file that are neither, each with the reason: "`y` (called as the classes
    /// are)".
    pub left_out: Vec<String>,
}

impl Vectors {
    /// What to tell of the columns that are left out, if there are any.
    pub fn omissions(&self) -> Option<String> {
        let (shown, more) = self.left_out.split_at(self.left_out.len().min(MOST_TOLD));
        let more = (!more.is_empty()).then(|| format!(" and {} more columns", more.len()));
        (!shown.is_empty())
            .then(|| format!("left out {}{}", shown.join(", "), more.unwrap_or_default()))
    }
}

/// Reads the file at `path`. Where it holds no ids, [`ids_beside`] may find some. A column that is
/// called `label`, as that of the classes, is no part of the vectors.
///
/// # Errors
/// If the file cannot be read or holds no matrix.
pub fn read_file(path: &Path, label: Option<&str>) -> Result<Vectors> {
    if path.is_dir() {
        let message = format!("{} is a folder; name the file of embeddings in it", path.display());
        return Err(Error::new(ErrorKind::Dataset, message));
    }
    let bytes = fs::read(path).map_err(|e| Error::io("read", path, e))?;
    read_bytes(&bytes, label).map_err(|e| e.at(path.display()))
}

/// The ids of the `rows` embeddings in the file at `path`, from the file beside it if there is one,
/// which is named too: `….metadata.tsv` for the projector's `….vectors.tsv`, else `node_ids.txt`.
///
/// # Errors
/// If the file of ids cannot be read or holds another number of them.
pub fn ids_beside(path: &Path, rows: usize) -> Result<Option<(PathBuf, Vec<String>)>> {
    let Some(list) = list_beside(path) else {
        return Ok(None);
    };
    let text = fs::read_to_string(&list).map_err(|e| Error::io("read", &list, e))?;
    let is_list = list.ends_with(ID_LIST);
    let ids = if is_list { export::ids_of_lines(&text) } else { metadata_ids(&text, rows) };
    if ids.len() != rows {
        let (count, path) = (ids.len(), path.display());
        let message = format!(
            "{count} ids for {rows} embeddings in {path}; the ids belong to others, move their file \
             away"
        );
        return Err(Error::new(ErrorKind::Shape, message).at(list.display()));
    }
    Ok(Some((list, ids)))
}

/// The file of ids that belongs to a file of vectors, if it is there.
fn list_beside(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let list = if name.ends_with("vectors.tsv") {
        path.with_file_name(name.replace("vectors.tsv", "metadata.tsv"))
    } else {
        path.with_file_name(ID_LIST)
    };
    list.is_file().then_some(list)
}

/// The first column of the projector's metadata, which have a header if they have more columns.
fn metadata_ids(text: &str, rows: usize) -> Vec<String> {
    let has_columns = text.lines().next().is_some_and(|line| line.contains('\t'));
    let has_header = has_columns && text.lines().count() == rows + 1;
    let first = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    text.lines().skip(usize::from(has_header)).map(first).collect()
}

/// Reads embeddings from the bytes of a file.
///
/// # Errors
/// If they hold no matrix.
pub fn from_bytes(bytes: &[u8]) -> Result<Vectors> {
    read_bytes(bytes, None)
}

fn read_bytes(bytes: &[u8], label: Option<&str>) -> Result<Vectors> {
    if bytes.starts_with(b"\x93NUMPY") {
        let matrix = npy::from_bytes(bytes)?.into_matrix()?;
        return Ok(Vectors { matrix, ids: None, left_out: Vec::new() });
    }
    if bytes.starts_with(b"PK") {
        return archive(Archive::open(Cursor::new(bytes), bytes.len() as u64)?);
    }
    if bytes.starts_with(b"PAR1") {
        return columns::read(bytes::Bytes::copy_from_slice(bytes), label);
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(parse("is compressed by gzip; unpack it first, as with `gunzip`"));
    }
    text::read(bytes, label)
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

fn archive<R: Read + Seek>(mut archive: Archive<R>) -> Result<Vectors> {
    let members = archive.members();
    let known = VECTOR_NAMES.iter().find(|name| archive.has(name));
    let name = match (known, members.as_slice()) {
        (Some(name), _) => (*name).to_owned(),
        (None, [only]) => only.clone(),
        (None, _) => {
            return Err(parse(format!(
                "has no member `embeddings` among {}; save the matrix under that name",
                members.join(", ")
            )));
        }
    };
    let matrix = archive.required(&name)?.into_matrix().map_err(|e| e.at(&name))?;
    let ids = match ID_NAMES.iter().find(|id| archive.has(id)) {
        Some(name) => archive.member(name, true)?.map(texts).transpose()?,
        None => None,
    };
    check_ids(matrix.rows(), ids.as_ref())?;
    Ok(Vectors { matrix, ids, left_out: Vec::new() })
}

fn texts(array: Array) -> Result<Vec<String>> {
    match array.values() {
        Values::Int(values) => Ok(values.iter().map(ToString::to_string).collect()),
        _ => array.into_text(),
    }
}

fn check_ids(rows: usize, ids: Option<&Vec<String>>) -> Result<()> {
    match ids {
        Some(ids) if ids.len() != rows => {
            let message = format!("holds {} ids for {rows} embeddings", ids.len());
            Err(Error::new(ErrorKind::Shape, message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::{Embedding, Format, Provenance};
    use crate::graph::{Features, Graph};
    use blnn_kernels::Pattern;

    fn graph(ids: &[&str], labelled: bool) -> Graph {
        let n = ids.len();
        let adjacency = Pattern::new(n, vec![0; n + 1], vec![]).unwrap();
        let graph = Graph::new("toy", adjacency, Features::Dense(Matrix::zeros(n, 1))).unwrap();
        let graph = graph.with_node_ids(ids.iter().map(|&id| id.to_owned()).collect()).unwrap();
        if labelled { graph.with_labels(vec![0; n], Vec::new()).unwrap() } else { graph }
    }

    fn provenance() -> Provenance {
        Provenance { graph: "toy".into(), fingerprint: "ab".into(), seed: 1, config: String::new() }
    }

    /// Whatever we write we read, to the bit.
    #[test]
    fn our_own_formats_come_back() {
        let ids = ["ann, the first", "bo\"b", "3", "d_e"];
        let provenance = provenance();
        let vectors = Matrix::from_fn(4, 3, |i, j| (i as f32 - 1.3) / (j as f32 + 0.7));
        for format in Format::ALL {
            for labelled in [false, true] {
                let folder = tempfile::tempdir().unwrap();
                let graph = graph(&ids, labelled);
                let embedding = Embedding::new(&vectors, &graph, &provenance).unwrap();
                let paths = embedding.write(format, folder.path()).unwrap();
                let back = read_file(&paths[0], None).unwrap();
                assert_eq!(back.matrix, vectors, "{}", format.name());
                let beside = ids_beside(&paths[0], 4).unwrap().map(|(_, ids)| ids);
                let wanted = match format {
                    Format::Word2vec => ["ann,_the_first", "bo\"b", "3", "d_e"],
                    _ => ids,
                };
                assert_eq!(back.ids.or(beside).unwrap(), wanted, "{}", format.name());
            }
        }
    }

    #[test]
    fn a_list_of_ids_must_belong_to_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.npy");
        let mut bytes = Vec::new();
        npy::write_f32_matrix(&mut bytes, &Matrix::zeros(2, 2)).unwrap();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read_file(&path, None).unwrap().ids, None);
        assert_eq!(ids_beside(&path, 2).unwrap(), None);
        // Not even one line too many is taken for a header: the rows would be off by one.
        for (lines, count) in [("a\nb\nc\nd\n", 4), ("a\nb\nc\n", 3), ("a\n", 1)] {
            fs::write(folder.path().join("node_ids.txt"), lines).unwrap();
            let error = ids_beside(&path, 2).unwrap_err().to_string();
            let both = format!("node_ids.txt: {count} ids for 2 embeddings in {}", path.display());
            assert!(error.contains(&both), "{error}");
        }
        assert!(read_file(folder.path(), None).unwrap_err().to_string().contains("is a folder"));
        assert!(read_file(&folder.path().join("absent.csv"), None).is_err());
    }

    #[test]
    fn ids_beside_an_array_are_those_that_were_written() {
        let ids = ["a\tb", "c\nd\r", r"C:\new\run", r"e\", "", " f"];
        let (folder, graph) = (tempfile::tempdir().unwrap(), graph(&ids, false));
        let provenance = provenance();
        let matrix = Matrix::zeros(ids.len(), 2);
        let embedding = Embedding::new(&matrix, &graph, &provenance).unwrap();
        let paths = embedding.write(Format::Npy, folder.path()).unwrap();
        let (list, found) = ids_beside(&paths[0], ids.len()).unwrap().unwrap();
        assert_eq!((list, found), (paths[1].clone(), ids.map(str::to_owned).to_vec()));
    }

    #[test]
    fn metadata_may_have_a_header_and_more_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.vectors.tsv");
        let list = folder.path().join("my.metadata.tsv");
        for text in ["id\tlabel\na\tx\nb\ty\n", "a\tx\nb\ty\n", "a\nb\n"] {
            fs::write(&list, text).unwrap();
            let found = ids_beside(&path, 2).unwrap().unwrap();
            assert_eq!(found, (list.clone(), vec!["a".to_owned(), "b".to_owned()]));
        }
        // One column has no header, so these are the ids of others.
        fs::write(&list, "a\nb\nc\n").unwrap();
        assert!(ids_beside(&path, 2).unwrap_err().to_string().contains("3 ids for 2"));
    }

    fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
        use std::io::Write as _;
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in members {
            let options = zip::write::SimpleFileOptions::default();
            zip.start_file(format!("{name}.npy"), options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn archives_of_others_are_understood() {
        let mut matrix = Vec::new();
        npy::write_f32_matrix(&mut matrix, &Matrix::from_fn(2, 2, |i, j| (i + j) as f32)).unwrap();
        let mut numbers = Vec::new();
        npy::write_i64(&mut numbers, &[7, 9]).unwrap();
        let found = from_bytes(&npz(&[("arr_0", matrix.clone())])).unwrap();
        assert_eq!((found.matrix.row(1), found.ids), (&[1.0, 2.0][..], None));
        let found = from_bytes(&npz(&[("z", matrix.clone()), ("ids", numbers.clone())])).unwrap();
        assert_eq!(found.ids.unwrap(), ["7", "9"]);
        let other = npz(&[("weights", matrix.clone()), ("more", matrix.clone())]);
        let error = from_bytes(&other).unwrap_err().to_string();
        assert!(error.contains("no member `embeddings`") && error.contains("weights"), "{error}");
        let mut short = Vec::new();
        npy::write_i64(&mut short, &[7]).unwrap();
        let error = from_bytes(&npz(&[("x", matrix), ("ids", short)])).unwrap_err().to_string();
        assert!(error.contains("1 ids for 2 embeddings"), "{error}");
    }

    #[test]
    fn what_is_left_out_is_told_in_a_line() {
        let found = from_bytes(b"id,label,x\na,1,2\n").unwrap();
        assert_eq!(found.omissions().unwrap(), "left out `label` (called as the classes are)");
        let many = vec!["`c`".to_owned(); 9];
        let told = Vectors { left_out: many, ..found.clone() }.omissions().unwrap();
        assert_eq!(told, "left out `c`, `c`, `c`, `c`, `c`, `c` and 3 more columns");
        assert_eq!(Vectors { left_out: Vec::new(), ..found }.omissions(), None);
    }

    #[test]
    fn what_is_no_embedding_is_refused() {
        for (bytes, wanted) in [
            (&b"\x1f\x8b\x08"[..], "gunzip"),
            (b"", "empty"),
            (b"PK\x03\x04", "archive"),
            (b"PAR1xxxx", "parquet"),
        ] {
            let error = from_bytes(bytes).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
