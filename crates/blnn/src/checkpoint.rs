//! [`Checkpoint`]: all state of a training run in one safetensors file.
//!
//! Random draws are keyed by seed and epoch, so the tensors and the number of epochs done are all
//! that a run needs to go on as if it had never stopped. What the file holds besides tensors is
//! there to refuse a checkpoint that belongs to something else. `docs/RUN_FOLDER.md` lists the
//! names of tensors and metadata.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blnn_kernels::Matrix;
use safetensors::{Dtype, SafeTensors};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::atomic;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Fingerprints, Graph};

/// The layout of the file: raised whenever a tensor or a metadata entry changes its meaning.
/// Version 1 is read too: it has no checksum of the header.
const FORMAT_VERSION: u32 = 2;
/// The metadata entry with the checksum of the header, which is summed with this entry empty.
const HEADER_SUM: &str = "sha256_header";
/// Stands between the names in a list: metadata are text.
const BETWEEN: &str = ", ";

/// What a checkpoint says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of epochs done.
    pub epoch: usize,
    /// The seed every random draw derives from.
    pub seed: u64,
    /// The name of the graph.
    pub graph: String,
    /// The fingerprint of the graph.
    pub fingerprint: String,
    /// That of its edges and features alone, which early checkpoints lack.
    pub unlabelled: Option<String>,
    /// The resolved config, as TOML.
    pub config: String,
    /// The kernels it was trained by so far, oldest first: they decide the last bits. Early
    /// checkpoints do not say.
    pub kernels: Vec<String>,
}

impl Header {
    /// Whether a graph has the edges and the features of the one that was trained on. Its labels
    /// may be others, or there at last: all a model does without them, but for the training of
    /// `bgrl-clean`.
    pub fn fits(&self, graph: &Graph) -> bool {
        let Fingerprints { whole, unlabelled } = graph.fingerprints();
        let known = [Some(&self.fingerprint), self.unlabelled.as_ref()];
        known.contains(&Some(&unlabelled)) || self.fingerprint == whole
    }
}

/// A checkpoint in memory.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    header: Header,
    tensors: BTreeMap<String, Matrix>,
}

impl Checkpoint {
    /// Replaces the file at `path` with a checkpoint of the given tensors, all at once: whoever
    /// reads the file sees the old checkpoint or the new one, never a part.
    ///
    /// # Errors
    /// If the file cannot be written. The checkpoint that was there before is then untouched.
    pub fn write<M: Borrow<Matrix>>(
        path: &Path,
        header: &Header,
        tensors: &[(String, M)],
    ) -> Result<()> {
        atomic::replace(path, |file| encode(file, header, tensors))
    }

    /// Reads and verifies a checkpoint.
    ///
    /// # Errors
    /// If the file cannot be read, was cut off or altered, or has another format version.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
        Self::from_bytes(path, &bytes)
    }

    /// Verifies a checkpoint in memory; `path` is named in errors.
    ///
    /// # Errors
    /// As for [`Checkpoint::read`].
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let (header, tensors) = decode(bytes).map_err(|e| e.at(path.display()))?;
        Ok(Self { path: path.to_owned(), header, tensors })
    }

    /// What the checkpoint says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All tensors with their names, sorted by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Matrix)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Moves a tensor out of the checkpoint.
    ///
    /// # Errors
    /// If there is no such tensor (any more) or it has another shape.
    pub fn take(&mut self, name: &str, shape: (usize, usize)) -> Result<Matrix> {
        let refuse = |what: String| {
            let message = format!("tensor `{name}` {what}: it belongs to another model");
            Err(damaged(&message).at(self.path.display()))
        };
        match self.tensors.remove(name) {
            None => refuse("is missing".into()),
            Some(tensor) if tensor.shape() != shape => {
                let (got, want) = (tensor.shape(), shape);
                refuse(format!("is {}×{}, expected {}×{}", got.0, got.1, want.0, want.1))
            }
            Some(tensor) => Ok(tensor),
        }
    }
}

fn damaged(message: &str) -> Error {
    Error::new(ErrorKind::Checkpoint, message)
}

/// Writes length, header and data, as <https://github.com/huggingface/safetensors> lays them out.
/// The crate of that name keeps metadata in a hash map, whose order would change the bytes of
/// equal checkpoints from run to run; so only reading is left to it.
fn encode<M: Borrow<Matrix>>(
    out: &mut dyn Write,
    header: &Header,
    tensors: &[(String, M)],
) -> io::Result<()> {
    let mut json = header_json(header, tensors)?.to_string().into_bytes();
    json.resize(json.len().next_multiple_of(8), b' ');
    out.write_all(&(json.len() as u64).to_le_bytes())?;
    out.write_all(&json)?;
    tensors
        .iter()
        .try_for_each(|(_, tensor)| little_endian(tensor.borrow(), |bytes| out.write_all(bytes)))
}

fn header_json<M: Borrow<Matrix>>(
    header: &Header,
    tensors: &[(String, M)],
) -> io::Result<serde_json::Value> {
    let mut entries = serde_json::Map::new();
    let mut offset = 0;
    for (name, tensor) in tensors {
        let tensor: &Matrix = tensor.borrow();
        let end = offset + 4 * tensor.data().len();
        let entry = json!({
            "dtype": "F32",
            "shape": [tensor.rows(), tensor.cols()],
            "data_offsets": [offset, end],
        });
        entries.insert(name.clone(), entry);
        offset = end;
    }
    let mut digest = Sha256::new();
    for (_, tensor) in tensors {
        little_endian(tensor.borrow(), |bytes| {
            digest.update(bytes);
            Ok(())
        })?;
    }
    let mut metadata = json!({
        "format": "blnn-checkpoint",
        "format_version": FORMAT_VERSION.to_string(),
        "blnn_version": env!("CARGO_PKG_VERSION"),
        "epoch": header.epoch.to_string(),
        "seed": header.seed.to_string(),
        "graph": header.graph,
        "fingerprint": header.fingerprint,
        "config": header.config,
        "sha256": hex(&digest.finalize()),
        HEADER_SUM: "",
    });
    if let Some(unlabelled) = &header.unlabelled {
        metadata["fingerprint_unlabelled"] = json!(unlabelled);
    }
    if !header.kernels.is_empty() {
        metadata["kernels"] = json!(header.kernels.join(BETWEEN));
    }
    entries.insert("__metadata__".into(), metadata);
    let mut header = serde_json::Value::from(entries);
    header["__metadata__"][HEADER_SUM] = header_sum(&header).into();
    Ok(header)
}

/// The checksum of a header without one.
fn header_sum(header: &serde_json::Value) -> String {
    hex(&Sha256::digest(header.to_string()))
}

/// Whether a header is as it was written.
fn is_unharmed(header: &[u8]) -> bool {
    let Ok(mut header) = serde_json::from_slice::<serde_json::Value>(header) else {
        return false;
    };
    let sum = header.get_mut("__metadata__").and_then(|metadata| metadata.get_mut(HEADER_SUM));
    let Some(told) = sum.map(|sum| std::mem::replace(sum, "".into())) else {
        return false;
    };
    told == header_sum(&header)
}

/// Hands out the bytes of a tensor piece by piece, so that saving needs no copy of the model.
fn little_endian(tensor: &Matrix, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 * 4096);
    for values in tensor.data().chunks(4096) {
        bytes.clear();
        bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        take(&bytes)?;
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decode(bytes: &[u8]) -> Result<(Header, BTreeMap<String, Matrix>)> {
    let unreadable = |e: safetensors::SafeTensorError| {
        damaged("the checkpoint is cut off or damaged; start again without it").with_source(e)
    };
    let (length, layout) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
    let (json, data) = bytes[8..].split_at(length);
    let header = decode_header(layout.metadata().as_ref(), json, data)?;
    let file = SafeTensors::deserialize(bytes).map_err(unreadable)?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let (Dtype::F32, &[rows, cols]) = (view.dtype(), view.shape()) else {
            return Err(damaged(&format!("tensor `{name}` is no matrix of f32")));
        };
        let number = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let values = view.data().chunks_exact(4).map(number).collect();
        tensors.insert(name.to_owned(), Matrix::from_vec(rows, cols, values));
    }
    Ok((header, tensors))
}

/// Reads the metadata: first whether this is a checkpoint of this version at all, then whether
/// header and data are unharmed, then what it belongs to.
fn decode_header(
    metadata: Option<&HashMap<String, String>>,
    json: &[u8],
    data: &[u8],
) -> Result<Header> {
    let entry = |key: &str| metadata.and_then(|m| m.get(key)).cloned();
    if entry("format").as_deref() != Some("blnn-checkpoint") {
        return Err(damaged("this safetensors file is no blnn checkpoint"));
    }
    let version = entry("format_version").unwrap_or_default();
    let is_first = version == "1";
    if !is_first && version != FORMAT_VERSION.to_string() {
        let by = entry("blnn_version").unwrap_or_default();
        let message = format!(
            "the checkpoint has format version {version}, written by blnn {by}; this blnn reads \
             versions 1 to {FORMAT_VERSION}: use the version that wrote it, or start again"
        );
        return Err(damaged(&message));
    }
    let need = |key: &str| {
        let message = format!("the checkpoint lacks a valid `{key}`; start again without it");
        entry(key).ok_or_else(|| damaged(&message))
    };
    if need("sha256")? != hex(&Sha256::digest(data)) {
        let message = "the checkpoint's data do not match their checksum; start again without it";
        return Err(damaged(message));
    }
    if !is_first && !is_unharmed(json) {
        let message = "the checkpoint's header does not match its checksum; start again without it";
        return Err(damaged(message));
    }
    let number = |key: &str| {
        let message = format!("the checkpoint lacks a valid `{key}`; start again without it");
        need(key)?.parse::<u64>().map_err(|_| damaged(&message))
    };
    Ok(Header {
        epoch: number("epoch")? as usize,
        seed: number("seed")?,
        graph: need("graph")?,
        fingerprint: need("fingerprint")?,
        unlabelled: entry("fingerprint_unlabelled"),
        config: need("config")?,
        kernels: entry("kernels")
            .map_or_else(Vec::new, |names| names.split(BETWEEN).map(str::to_owned).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            epoch: 7,
            seed: 3,
            graph: "toy".into(),
            fingerprint: "abc".into(),
            unlabelled: Some("ab".into()),
            config: "epochs = 9\n".into(),
            kernels: vec!["avx512".into(), "avx2".into()],
        }
    }

    fn encoded() -> Vec<u8> {
        let weight = Matrix::from_fn(3, 4, |i, j| (i * 4 + j) as f32 + 0.1);
        let bias = Matrix::from_fn(1, 4, |_, j| -(j as f32));
        let mut bytes = Vec::new();
        let tensors = [("b.weight".to_owned(), &weight), ("a.bias".to_owned(), &bias)];
        encode(&mut bytes, &header(), &tensors).unwrap();
        bytes
    }

    /// The message a user reads when the file holds these bytes.
    fn refusal(bytes: &[u8]) -> String {
        let error = decode(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Checkpoint);
        error.to_string()
    }

    #[test]
    fn reads_back_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        std::fs::write(&path, encoded()).unwrap();
        let mut checkpoint = Checkpoint::read(&path).unwrap();
        assert_eq!(checkpoint.header(), &header());
        let names: Vec<&str> = checkpoint.tensors().map(|(name, _)| name).collect();
        assert_eq!(names, ["a.bias", "b.weight"]);
        let weight = checkpoint.take("b.weight", (3, 4)).unwrap();
        assert_eq!(weight.data()[11].to_bits(), 11.1_f32.to_bits());
        let again = checkpoint.take("b.weight", (3, 4)).unwrap_err().to_string();
        assert!(again.contains("`b.weight` is missing"), "{again}");
        let shape = checkpoint.take("a.bias", (4, 1)).unwrap_err().to_string();
        assert!(shape.contains("is 1×4, expected 4×1"), "{shape}");
    }

    #[test]
    fn equal_checkpoints_have_equal_bytes() {
        assert_eq!(encoded(), encoded());
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = encoded();
        for length in 0..bytes.len() {
            let message = refusal(&bytes[..length]);
            assert!(message.contains("cut off or damaged") || message.contains("checksum"));
        }
    }

    #[test]
    fn every_flipped_byte_of_the_data_is_refused() {
        let bytes = encoded();
        for i in bytes.len() - 64..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[i] ^= 0x10;
            assert!(refusal(&bytes).contains("checksum"));
        }
    }

    #[test]
    fn every_flipped_bit_of_the_header_is_refused() {
        let bytes = encoded();
        for i in 0..bytes.len() - 64 {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[i] ^= 1 << bit;
                refusal(&bytes);
            }
        }
    }

    /// A header that can be read and says something else.
    #[test]
    fn another_seed_in_the_header_is_refused() {
        let text = replaced(&encoded(), "\"seed\":\"3\"", "\"seed\":\"4\"");
        assert!(refusal(&text).contains("header does not match its checksum"));
    }

    #[test]
    fn the_first_version_is_read_without_a_checksum_of_its_header() {
        let first = replaced(&encoded(), "\"format_version\":\"2\"", "\"format_version\":\"1\"");
        assert_eq!(decode(&replaced(&first, HEADER_SUM, "sha256_hidden")).unwrap().0, header());
    }

    /// The same bytes with another text of the same length in the header.
    fn replaced(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
        let at = bytes.windows(old.len()).position(|window| window == old.as_bytes()).unwrap();
        let mut bytes = bytes.to_vec();
        bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
        bytes
    }

    #[test]
    fn another_version_is_named() {
        let (written, other) = ("\"format_version\":\"2\"", "\"format_version\":\"9\"");
        let message = refusal(&replaced(&encoded(), written, other));
        assert!(message.contains("format version 9"), "{message}");
        assert!(message.contains("reads versions 1 to 2"), "{message}");
    }

    #[test]
    fn foreign_safetensors_are_refused() {
        let mut bytes = Vec::new();
        bytes.extend(16_u64.to_le_bytes());
        bytes.extend(b"{\"__metadata__\":{}}".iter().take(16));
        assert!(refusal(&bytes).contains("damaged"));
        let json = br#"{"__metadata__":{"format":"pt"}}"#;
        let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
        bytes.extend(json);
        assert!(refusal(&bytes).contains("no blnn checkpoint"));
    }

    /// A disk that is full after a number of bytes.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_reported_wherever_it_strikes() {
        let weight = Matrix::zeros(3, 4);
        let tensors = [("w".to_owned(), &weight)];
        let mut room = Vec::new();
        encode(&mut room, &header(), &tensors).unwrap();
        for left in (0..room.len()).step_by(7) {
            let error = encode(&mut Full(left), &header(), &tensors).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        encode(&mut Full(room.len()), &header(), &tensors).unwrap();
    }
}
