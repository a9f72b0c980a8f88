//! Cora, compiled into the library: 2,708 machine-learning papers, their words and citations.
//!
//! The graph was collected by McCallum, Nigam, Rennie and Seymore ("Automating the construction of
//! internet portals with machine learning", 2000) and prepared with these words and classes by Sen,
//! Namata, Bilgic, Getoor, Gallagher and Eliassi-Rad ("Collective classification in network data",
//! AI Magazine 2008). The two text files `cora.content` and `cora.cites` were taken from
//! `pgl/data/cora` in the source archive of the Python package pgl 2.2.6 and packed by
//! `scripts/make_cora.py`.
//!
//! The packed file is a zlib stream of
//!
//! ```text
//! "blnn packed 1\n"
//! words, classes                             varints
//! name of each class                         length, UTF-8
//! ids of the papers, increasing              list
//! class of each paper                        a byte each
//! words of each paper, increasing            list each
//! later papers it is joined to, increasing   list each, counted from the paper's own row
//! ```
//!
//! where a varint is LEB128 and a list is its length and then the gap before each number. Features
//! are row-normalised like those of the other graphs: `1/k` at each of a paper's `k` words.

use std::io::Read;

use blnn_kernels::{Csr, Pattern};
use flate2::read::ZlibDecoder;

use crate::data::edges::{SelfLoops, undirected};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph};

const PACKED: &[u8] = include_bytes!("../../data/cora.bin");
const MAGIC: &[u8] = b"blnn packed 1\n";
/// The embedded file unpacks to a fiftieth of this; nothing of the sort is ever larger.
const MAX_UNPACKED: u64 = 8 << 20;

/// The embedded Cora graph.
///
/// # Errors
/// Never in practice: only if the bytes compiled into the library are damaged.
///
/// # Examples
/// ```
/// let cora = blnn::data::cora::graph()?;
/// assert_eq!((cora.nodes(), cora.entries(), cora.features().cols()), (2708, 10_556, 1433));
/// assert_eq!(cora.class_names()[2], "Neural_Networks");
/// # Ok::<(), blnn::Error>(())
/// ```
pub fn graph() -> Result<Graph> {
    from_bytes("cora", PACKED)
}

/// Reads a packed graph, as `scripts/make_cora.py` writes it.
///
/// # Errors
/// If the bytes are not a packed graph.
pub fn from_bytes(name: &str, packed: &[u8]) -> Result<Graph> {
    let mut bytes = Vec::new();
    let mut source = ZlibDecoder::new(packed).take(MAX_UNPACKED);
    source.read_to_end(&mut bytes).map_err(|e| damaged(&format!("cannot be unpacked ({e})")))?;
    let bytes = bytes.strip_prefix(MAGIC).ok_or_else(|| damaged("has another format"))?;
    Unpacker(bytes).graph(name).map_err(|e| e.at(name))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Parse, format!("the packed graph {what}; pack it again"))
}

/// The bytes not yet read.
struct Unpacker<'a>(&'a [u8]);

impl Unpacker<'_> {
    fn graph(mut self, name: &str) -> Result<Graph> {
        let words = self.varint()? as usize;
        let classes = self.varint()?;
        let class_names = (0..classes).map(|_| self.text()).collect::<Result<Vec<_>>>()?;
        let ids = self.list(0)?;
        let labels = self.take(ids.len())?.iter().map(|&b| b.into()).collect();
        let features = self.features(ids.len(), words)?;
        let mut edges = Vec::new();
        for i in 0..ids.len() as u32 {
            let later = self.list(i + 1)?;
            edges.extend(later.into_iter().map(|j| (i, j)));
        }
        if !self.0.is_empty() {
            return Err(damaged("has bytes left over"));
        }
        let adjacency = undirected(ids.len(), &edges, SelfLoops::Drop)?;
        Graph::new(name, adjacency, Features::Sparse(features))?
            .with_labels(labels, class_names)?
            .with_node_ids(ids.iter().map(u32::to_string).collect())
    }

    fn features(&mut self, rows: usize, words: usize) -> Result<Csr> {
        let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for _ in 0..rows {
            let row = self.list(0)?;
            indices.extend_from_slice(&row);
            values.resize(indices.len(), 1.0 / row.len() as f32);
            offsets.push(indices.len());
        }
        let invalid = |e: blnn_kernels::CsrError| damaged(&format!("has broken rows ({e})"));
        Csr::new(Pattern::new(words, offsets, indices).map_err(invalid)?, values).map_err(invalid)
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| damaged("ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u32> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = u64::from(self.take(1)?[0]);
            number |= (byte & 0x7f) << shift;
            if byte < 0x80 {
                return number.try_into().map_err(|_| damaged("has too large a number"));
            }
        }
        Err(damaged("has too long a number"))
    }

    fn text(&mut self) -> Result<String> {
        let length = self.varint()? as usize;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| damaged("has a name that is not text"))
    }

    /// Strictly increasing numbers, the first one at least `start`.
    fn list(&mut self, start: u32) -> Result<Vec<u32>> {
        let length = self.varint()? as usize;
        if length > self.0.len() {
            return Err(damaged("ends too early"));
        }
        let mut next = Some(start);
        let mut numbers = Vec::with_capacity(length);
        for _ in 0..length {
            let number = next.and_then(|start| start.checked_add(self.varint().ok()?));
            let number = number.ok_or_else(|| damaged("has a broken list"))?;
            numbers.push(number);
            next = number.checked_add(1);
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cora_is_the_published_graph() {
        let cora = graph().unwrap();
        assert_eq!((cora.nodes(), cora.entries(), cora.classes()), (2708, 10_556, 7));
        assert_eq!((cora.isolated_nodes(), cora.self_loops()), (0, 0));
        let homophily = cora.edge_homophily().unwrap();
        assert!((homophily - 0.8100).abs() < 5e-5, "{homophily}");
        let Features::Sparse(x) = cora.features() else {
            panic!("word flags are sparse");
        };
        assert_eq!((x.pattern().cols(), x.pattern().entries()), (1433, 49_216));
        let sums = (0..2708).map(|i| x.row(i).1.iter().sum::<f32>());
        assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-5));
    }

    /// Papers 35 and 1033: the first line of `cora.cites`.
    #[test]
    fn ids_classes_and_citations_belong_together() {
        let cora = graph().unwrap();
        let ids = cora.node_ids().unwrap();
        let row = |id: &str| ids.iter().position(|other| other == id).unwrap();
        assert_eq!(row("35"), 0);
        assert!(cora.adjacency().row(0).contains(&(row("1033") as u32)));
        let class = |id: &str| &cora.class_names()[cora.labels().unwrap()[row(id)] as usize];
        assert_eq!(class("35"), "Genetic_Algorithms");
        assert_eq!(class("31336"), "Neural_Networks");
    }

    #[test]
    fn the_embedded_file_stays_small() {
        assert!(PACKED.len() < 150_000, "{}", PACKED.len());
    }

    fn pack(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(MAGIC).unwrap();
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn broken_packings_are_refused() {
        // One class "a", papers 5 and 7 with words {0} and {}, joined.
        let valid = [2, 1, 1, b'a', 2, 5, 1, 0, 0, 1, 0, 0, 1, 0, 0];
        let tiny = from_bytes("tiny", &pack(&valid)).unwrap();
        assert_eq!(tiny.node_ids().unwrap(), ["5", "7"]);
        assert_eq!(tiny.adjacency().row(1), [0]);
        let error = |bytes: &[u8]| from_bytes("tiny", &pack(bytes)).unwrap_err().to_string();
        for cut in 0..valid.len() {
            from_bytes("tiny", &pack(&valid[..cut])).unwrap_err();
        }
        assert!(error(&[&valid[..], &[0]].concat()).contains("left over"));
        assert!(error(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).contains("too long"));
        assert!(error(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0]).contains("too large"));
        assert!(from_bytes("tiny", b"no zlib").unwrap_err().to_string().contains("unpacked"));
    }
}
