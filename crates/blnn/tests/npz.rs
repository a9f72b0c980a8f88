//! The gnn-benchmark reader on small files, good and bad.

mod common;

use std::io::Write as _;

use blnn::data::npz;
use blnn::{ErrorKind, Features, Graph};
use common::{Npz, floats, ints, npy, texts};

fn load(npz: &Npz) -> blnn::Result<Graph> {
    npz::from_bytes("tiny", &npz.stored())
}

/// The error of the tiny file with one member replaced.
fn error_with(member: &str, bytes: Vec<u8>) -> String {
    let mut npz = Npz::tiny();
    npz.set(member, bytes);
    load(&npz).expect_err("a broken file").to_string()
}

#[track_caller]
fn assert_refused(member: &str, bytes: Vec<u8>, because: &str) {
    let text = error_with(member, bytes);
    assert!(text.contains(because), "{text}");
}

#[test]
fn a_graph_is_read_as_pytorch_geometric_reads_it() {
    let graph = load(&Npz::tiny()).unwrap();
    let rows: Vec<&[u32]> = (0..4).map(|i| graph.adjacency().row(i)).collect();
    assert_eq!(rows, [&[1, 2][..], &[0], &[0], &[]]);
    let Features::Sparse(x) = graph.features() else {
        panic!("features stay sparse");
    };
    assert_eq!(x.row(0), (&[0, 2][..], &[0.5, 0.5][..]));
    assert_eq!(x.row(1), (&[1][..], &[1.0][..]));
    assert_eq!(x.row(2), (&[1][..], &[1.0][..]));
    assert_eq!(x.row(3), (&[][..], &[][..]));
    assert_eq!(graph.labels().unwrap(), [0, 1, 1, 0]);
    assert_eq!(graph.class_names(), ["red", "blue"]);
    assert_eq!(graph.node_ids().unwrap(), ["a", "b", "ç", ""]);
}

#[test]
fn deflated_members_give_the_same_graph() {
    let stored = load(&Npz::tiny()).unwrap();
    let deflated = npz::from_bytes("tiny", &Npz::tiny().deflated()).unwrap();
    assert_eq!(stored.fingerprint(), deflated.fingerprint());
}

#[test]
fn wider_numbers_give_the_same_graph() {
    let expected = load(&Npz::tiny()).unwrap().fingerprint();
    let mut npz = Npz::tiny();
    let wide = |values: &[i64]| {
        let mut bytes = Vec::new();
        blnn::data::npy::write_i64(&mut bytes, values).unwrap();
        bytes
    };
    npz.set("adj_indices", wide(&[1, 2, 2, 0, 2]));
    npz.set("adj_indptr", wide(&[0, 3, 4, 5, 5]));
    npz.set("labels", npy("|u1", "(4,)", &[0, 1, 1, 0]));
    let doubles = [3.0f64, 1.0, 2.0, 0.0, 1.0].map(f64::to_le_bytes).concat();
    npz.set("attr_data", npy("<f8", "(5,)", &doubles));
    assert_eq!(load(&npz).unwrap().fingerprint(), expected);
}

#[test]
fn labels_and_names_are_optional() {
    let mut npz = Npz::tiny();
    for member in ["labels", "class_names", "node_names"] {
        npz.remove(member);
    }
    let graph = load(&npz).unwrap();
    assert!(graph.labels().is_none() && graph.node_ids().is_none());
    assert!(graph.class_names().is_empty());
}

#[test]
fn the_graph_is_named_after_its_file_and_so_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.npz");
    std::fs::write(&path, Npz::tiny().deflated()).unwrap();
    assert_eq!(npz::read_file(&path).unwrap().name(), "mine");
    std::fs::write(&path, b"PK").unwrap();
    assert!(npz::read_file(&path).unwrap_err().to_string().contains("mine.npz"));
}

#[test]
fn no_edges_isolated_nodes_and_one_class_are_fine() {
    let mut npz = Npz::tiny();
    npz.set("adj_data", floats(&[]));
    npz.set("adj_indices", ints(&[]));
    npz.set("adj_indptr", ints(&[0; 5]));
    npz.set("labels", ints(&[0; 4]));
    let graph = load(&npz).unwrap();
    assert_eq!((graph.entries(), graph.isolated_nodes(), graph.classes()), (0, 4, 1));
}

#[test]
fn no_nodes_is_refused() {
    let mut npz = Npz::tiny();
    for prefix in ["adj", "attr"] {
        npz.set(&format!("{prefix}_data"), floats(&[]));
        npz.set(&format!("{prefix}_indices"), ints(&[]));
        npz.set(&format!("{prefix}_indptr"), ints(&[0]));
    }
    npz.set("adj_shape", ints(&[0, 0]));
    npz.set("attr_shape", ints(&[0, 3]));
    let error = load(&npz).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("no nodes"), "{error}");
}

#[test]
fn missing_members_are_named() {
    for member in ["adj_indices", "adj_indptr", "adj_shape", "attr_data", "attr_shape"] {
        let mut npz = Npz::tiny();
        npz.remove(member);
        let error = load(&npz).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parse);
        assert!(error.to_string().contains(&format!("no member `{member}`")), "{error}");
    }
}

#[test]
fn pickles_are_never_opened() {
    let pickle = || npy("|O", "(2,)", b"\x80\x04\x95.");
    let mut npz = Npz::tiny();
    npz.set("class_names", pickle());
    npz.set("node_names", pickle());
    let graph = load(&npz).unwrap();
    assert!(graph.class_names().is_empty() && graph.node_ids().is_none());
    assert_refused("labels", pickle(), "labels: is a pickled array");
    assert_refused("adj_indices", pickle(), "adj_indices: is a pickled array");
}

#[test]
fn wrong_dtypes_are_refused() {
    assert_refused("adj_indices", floats(&[1.0, 2.0, 2.0, 0.0, 2.0]), "holds float32");
    assert_refused("adj_indptr", floats(&[0.0; 5]), "adj_indptr: holds float32");
    assert_refused("labels", texts(&["a", "b", "c", "d"]), "labels: holds unicode text");
    assert_refused("labels", floats(&[0.0; 4]), "expected integers");
    assert_refused("attr_data", texts(&["a"; 5]), "attr_data: holds unicode text");
    assert_refused("attr_data", npy(">f4", "(5,)", &[0; 20]), "big-endian");
    assert_refused("attr_data", npy("<c8", "(5,)", &[0; 40]), "dtype <c8");
    assert_refused("class_names", ints(&[1, 2]), "class_names: holds integer");
}

#[test]
fn indices_out_of_range_are_located() {
    assert_refused("adj_indices", ints(&[1, 2, 4, 0, 2]), "entry 2 has column 4");
    assert_refused("adj_indices", ints(&[1, 2, -1, 0, 2]), "entry 2 has column -1");
    assert_refused("attr_indices", ints(&[2, 0, 1, 3, 1]), "attr: entry 3 has column 3");
}

#[test]
fn broken_offsets_are_refused() {
    assert_refused("adj_indptr", ints(&[0, 4, 3, 5, 5]), "adj: indptr falls at row 1");
    assert_refused("adj_indptr", ints(&[1, 3, 4, 5, 5]), "from 0 to the 5 entries");
    assert_refused("adj_indptr", ints(&[0, 3, 4, 5, 6]), "from 0 to the 5 entries");
    assert_refused("adj_indptr", ints(&[0, 9, 4, 5, 5]), "indptr falls");
    assert_refused("attr_indptr", ints(&[0, 2, 3, 5]), "4 numbers for 4 rows");
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    assert_refused("adj_shape", ints(&[4, 5]), "4×5, it must be square");
    assert_refused("adj_shape", ints(&[4]), "1 numbers, a matrix has 2");
    assert_refused("adj_shape", ints(&[-4, 4]), "-4×4");
    assert_refused("attr_shape", ints(&[4, i32::MAX]), "too many");
    assert_refused("attr_shape", ints(&[4, 0]), "column");
    assert_refused("attr_data", floats(&[1.0; 4]), "4 values for 5 entries");
    assert_refused("labels", ints(&[0; 3]), "3 labels for 4 nodes");
    assert_refused("labels", ints(&[0, 1, -1, 0]), "node 2 has class -1");
    assert_refused("class_names", texts(&["red"]), "1 class names for 2 classes");
    assert_refused("node_names", texts(&["a"]), "1 ids for 4 nodes");
    let mut npz = Npz::tiny();
    npz.set("attr_indptr", ints(&[0, 2, 3, 5]));
    npz.set("attr_shape", ints(&[3, 3]));
    assert!(load(&npz).unwrap_err().to_string().contains("3 feature rows for 4 nodes"));
}

#[test]
fn attributes_that_are_not_finite_or_negative_are_located() {
    for (value, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (-1.0, "-1")] {
        let bytes = floats(&[3.0, 1.0, value, 0.0, 1.0]);
        assert_refused("attr_data", bytes, &format!("attribute 1 of node 1 is {shown}"));
    }
}

#[test]
fn every_truncation_is_refused() {
    for bytes in [Npz::tiny().stored(), Npz::tiny().deflated()] {
        for length in 0..bytes.len() {
            let error = npz::from_bytes("cut", &bytes[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Parse, "{error}");
        }
    }
}

/// A flipped bit in the values fails the archive's own checksum.
#[test]
fn a_flipped_bit_is_noticed() {
    let mut bytes = Npz::tiny().stored();
    let values = floats(&[3.0, 1.0, 2.0, 0.0, 1.0]);
    let place = bytes.windows(values.len()).position(|w| w == values).unwrap();
    bytes[place + values.len() - 1] ^= 1;
    let text = npz::from_bytes("flipped", &bytes).unwrap_err().to_string();
    assert!(text.contains("attr_data") && text.contains("damaged"), "{text}");
}

/// 300 MiB of zeros in a third of a megabyte.
#[test]
fn an_archive_made_to_exhaust_the_memory_is_refused() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("adj_shape.npy", options).unwrap();
    zip.write_all(&npy("<i4", "(78643200,)", &[])).unwrap();
    let block = vec![0; 1 << 20];
    for _ in 0..300 {
        zip.write_all(&block).unwrap();
    }
    let packed = zip.finish().unwrap().into_inner();
    assert!(packed.len() < 1 << 20);
    let text = npz::from_bytes("bomb", &packed).unwrap_err().to_string();
    assert!(text.contains("out of proportion"), "{text}");
}
