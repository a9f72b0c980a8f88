//! What the tests of several files share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The folder with the large graphs: `BLNN_DATA_DIR`, else `shared/data` beside the repository.
/// Where it is absent, fails with how to get the graphs.
pub(crate) fn large_data_dir() -> PathBuf {
    let named = std::env::var_os("BLNN_DATA_DIR").map(PathBuf::from);
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let files = [
        "amazon_electronics_photo.npz",
        "amazon_electronics_computers.npz",
        "ms_academic_cs.npz",
        "ms_academic_phy.npz",
    ];
    named
        .into_iter()
        .chain([beside])
        .find(|folder| files.iter().all(|file| folder.join(file).is_file()))
        .expect("the graphs of `blnn datasets fetch photo computers cs physics`")
}

/// The bytes of a `.npy` file.
pub(crate) fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(data);
    bytes
}

/// A vector of `int32`, the width SciPy uses for small matrices.
pub(crate) fn ints(values: &[i32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy("<i4", &format!("({},)", values.len()), &data)
}

/// A vector of `float32`.
pub(crate) fn floats(values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    npy("<f4", &format!("({},)", values.len()), &data)
}

/// A vector of unicode texts.
pub(crate) fn texts(values: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    blnn::data::npy::write_text(&mut bytes, values).expect("writing to memory");
    bytes
}

/// The members of a `.npz` file.
pub(crate) struct Npz(Vec<(String, Vec<u8>)>);

impl Npz {
    /// Four nodes: 0 → 1 and 1 → 0, 0 → 2 twice, 2 → 2, and 3 alone; three attributes, counts
    /// among them, one row out of order, one explicit zero.
    pub(crate) fn tiny() -> Self {
        let mut npz = Self(Vec::new());
        npz.set("adj_data", floats(&[1.0; 5]));
        npz.set("adj_indices", ints(&[1, 2, 2, 0, 2]));
        npz.set("adj_indptr", ints(&[0, 3, 4, 5, 5]));
        npz.set("adj_shape", ints(&[4, 4]));
        npz.set("attr_data", floats(&[3.0, 1.0, 2.0, 0.0, 1.0]));
        npz.set("attr_indices", ints(&[2, 0, 1, 2, 1]));
        npz.set("attr_indptr", ints(&[0, 2, 3, 5, 5]));
        npz.set("attr_shape", ints(&[4, 3]));
        npz.set("labels", ints(&[0, 1, 1, 0]));
        npz.set("class_names", texts(&["red", "blue"]));
        npz.set("node_names", texts(&["a", "b", "ç", ""]));
        npz
    }

    /// Sets or replaces a member.
    pub(crate) fn set(&mut self, name: &str, bytes: Vec<u8>) {
        self.remove(name);
        self.0.push((name.to_owned(), bytes));
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(other, _)| other != name);
    }

    /// The file with its members stored, as `numpy.savez` writes it.
    pub(crate) fn stored(&self) -> Vec<u8> {
        self.pack(CompressionMethod::Stored)
    }

    /// The file with its members deflated, as `numpy.savez_compressed` writes it.
    pub(crate) fn deflated(&self) -> Vec<u8> {
        self.pack(CompressionMethod::Deflated)
    }

    fn pack(&self, method: CompressionMethod) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(method);
        for (name, bytes) in &self.0 {
            zip.start_file(format!("{name}.npy"), options).expect("writing to memory");
            zip.write_all(bytes).expect("writing to memory");
        }
        zip.finish().expect("writing to memory").into_inner()
    }
}

/// A small WikiCS file.
pub(crate) fn tiny_wikics() -> Vec<u8> {
    br#"{"features": [[0.5, -1.0], [0.25, 2.0], [1.5, 0.0]], "labels": [0, 1, 0],
        "links": [[1, 0], [], [1]], "train_masks": [[true, false, false]],
        "val_masks": [[false, true, false]], "stopping_masks": [[false, false, false]],
        "test_mask": [false, false, true]}"#
        .to_vec()
}
