//! Every reader over thousands of damaged files: an error or a graph, never a panic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use blnn::data::own::{ColumnNames, bytes as own};
use blnn::data::wikics::{self, RowNormalisation};
use blnn::data::{cora, npy, npz};
use blnn::{Checkpoint, Config, Header, Matrix, vectors};
use blnn_kernels::Threads;
use common::{Npz, floats, texts, tiny_wikics};

/// A small generator of our own, so that a failure is found again.
struct Draws(u64);

impl Draws {
    fn next(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below.max(1)
    }
}

/// `bytes` with one to four flips, overwrites, cuts, insertions or repetitions.
fn mutate(bytes: &[u8], draws: &mut Draws) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=draws.next(3) {
        let place = draws.next(out.len());
        match draws.next(6) {
            _ if out.is_empty() => out.push(draws.next(256) as u8),
            0 => out[place] ^= 1 << draws.next(8),
            1 => out[place] = [0, 0xff, 0x7f, 0x80, b'9', b'-'][draws.next(6)],
            2 => out.truncate(place),
            3 => out.insert(place, draws.next(256) as u8),
            4 => drop(out.drain(place..(place + draws.next(8)).min(out.len()))),
            _ => {
                let copy = out[place..(place + 8).min(out.len())].to_vec();
                let to = draws.next(out.len());
                out.splice(to..to, copy);
            }
        }
    }
    out
}

/// Runs `read` over `rounds` mutations and returns how many it accepted.
fn accepted(valid: &[u8], rounds: usize, read: impl Fn(&[u8]) -> bool) -> usize {
    assert!(read(valid), "the unharmed file is read");
    let mut draws = Draws(42);
    (0..rounds).filter(|_| read(&mutate(valid, &mut draws))).count()
}

#[test]
fn npz_never_panics() {
    let read = |bytes: &[u8]| npz::from_bytes("m", bytes).is_ok();
    for valid in [Npz::tiny().stored(), Npz::tiny().deflated()] {
        assert!(accepted(&valid, 4000, read) < 4000);
    }
}

/// Damage inside the members, behind checksums that fit.
#[test]
fn npz_members_never_panic() {
    let members = [
        ("adj_indices", common::ints(&[1, 2, 2, 0, 2])),
        ("adj_indptr", common::ints(&[0, 3, 4, 5, 5])),
        ("adj_shape", common::ints(&[4, 4])),
        ("attr_data", floats(&[3.0, 1.0, 2.0, 0.0, 1.0])),
        ("attr_indptr", common::ints(&[0, 2, 3, 5, 5])),
        ("attr_shape", common::ints(&[4, 3])),
        ("labels", common::ints(&[0, 1, 1, 0])),
        ("node_names", texts(&["a", "b", "ç", ""])),
    ];
    for (name, valid) in members {
        let read = |bytes: &[u8]| {
            let mut npz = Npz::tiny();
            npz.set(name, bytes.to_vec());
            npz::from_bytes("m", &npz.stored()).is_ok()
        };
        assert!(accepted(&valid, 500, read) < 500, "{name}");
    }
}

#[test]
fn npy_never_panics() {
    let read = |bytes: &[u8]| {
        let array = npy::from_bytes(bytes);
        if let Ok(array) = &array {
            let _ = array.clone().into_matrix();
            let _ = array.clone().into_int();
            let _ = array.clone().into_text();
        }
        array.is_ok()
    };
    for valid in [floats(&[0.5, -1.0, 3.0]), texts(&["one", "two"]), common::ints(&[1, 2])] {
        assert!(accepted(&valid, 3000, read) < 3000);
    }
}

#[test]
fn wikics_never_panics() {
    for rows in [RowNormalisation::Shifted, RowNormalisation::Unshifted] {
        let read = |bytes: &[u8]| wikics::from_bytes("m", bytes, rows).is_ok();
        assert!(accepted(&tiny_wikics(), 4000, read) < 4000);
    }
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("writing to memory");
    out.finish().expect("writing to memory")
}

/// One class "a", papers 5 and 7 with words {0} and {}, joined.
const PACKED: &[u8] = b"blnn packed 1\n\x02\x01\x01a\x02\x05\x01\x00\x00\x01\x00\x00\x01\x00\x00";

#[test]
fn packed_graphs_never_panic() {
    let inside = |bytes: &[u8]| cora::from_bytes("m", &deflate(bytes)).is_ok();
    assert!(accepted(PACKED, 4000, inside) < 4000);
    let outside = |bytes: &[u8]| cora::from_bytes("m", bytes).is_ok();
    assert!(accepted(&deflate(PACKED), 4000, outside) < 4000);
}

#[test]
fn checkpoints_never_panic() {
    let header = Header {
        epoch: 7,
        seed: 3,
        graph: "toy".into(),
        fingerprint: "ab".into(),
        unlabelled: Some("a".into()),
        config: "seed = 3\n".into(),
        kernels: vec!["scalar".into(), "neon".into()],
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let tensors = [("online.a".to_owned(), Matrix::from_fn(2, 3, |i, j| (i + j) as f32))];
    Checkpoint::write(&path, &header, &tensors).unwrap();
    let valid = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| Checkpoint::from_bytes(&path, bytes).is_ok();
    assert!(accepted(&valid, 6000, read) < 6000);
}

#[test]
fn settings_never_panic() {
    let valid =
        b"method = \"bgrl\"\nedge_drop = [0.1, 0.2]\ntemperature = 0.5\n# why\nepochs = 90\n";
    let read = |bytes: &[u8]| {
        let mut config = Config::new();
        let text = String::from_utf8_lossy(bytes);
        config.text(&text, "m.toml").and_then(|()| config.resolve("photo")).is_ok()
    };
    assert!(accepted(valid, 4000, read) < 4000);
}

#[test]
fn edge_lists_never_panic() {
    let threads = Threads::new(1);
    let none = ColumnNames::default();
    let read = |bytes: &[u8]| own::edge_list(bytes, &none, &threads).is_ok();
    for valid in [
        &b"source,target,w\n1,2,0.5\n3,\"4\",1\n"[..],
        b"# c\n1\t2\n-3\t4\n99999999999\t7\n",
        b"ann;bob\n\"c;d\";e\n",
    ] {
        assert!(accepted(valid, 4000, read) < 4000);
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, b"1,2\n3,4\n").unwrap();
    assert!(accepted(&packed.finish().unwrap(), 500, read) < 500);
}

#[test]
fn node_tables_never_panic() {
    let columns = ColumnNames { label: Some("t".into()), ..ColumnNames::default() };
    let threads = Threads::new(1);
    let read = |bytes: &[u8]| own::node_table(bytes, &columns, &threads).is_ok();
    let valid = b"id,t,x,k\na,1,0.5,\"u\"\nb,2,-1e3,v\nc,1,0,u\nd,2,7,v\n";
    assert!(accepted(valid, 6000, read) < 6000);
}

/// A parquet file of two text columns, an integer and a number.
fn tiny_parquet() -> Vec<u8> {
    use parquet::data_type::{ByteArrayType, DoubleType, Int64Type};
    let schema = parquet::schema::parser::parse_message_type(
        "message m { required binary source (STRING); required binary target (STRING); \
         optional int64 n; required double x; }",
    );
    let mut bytes = Vec::new();
    let schema = std::sync::Arc::new(schema.unwrap());
    let properties = std::sync::Arc::default();
    let mut file =
        parquet::file::writer::SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    for texts in [["a", "b", "c"], ["b", "c", "b"]] {
        let mut column = group.next_column().unwrap().unwrap();
        let texts = texts.map(parquet::data_type::ByteArray::from);
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
    }
    let mut column = group.next_column().unwrap().unwrap();
    let (values, levels) = ([1, 2, 3], [1, 1, 1]);
    column.typed::<Int64Type>().write_batch(&values, Some(&levels), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(&[0.5, 0.0, 2.0], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn parquet_never_panics() {
    let threads = Threads::new(1);
    let valid = tiny_parquet();
    let none = ColumnNames::default();
    let edges = |bytes: &[u8]| own::parquet_edges(bytes, &none, &threads).is_ok();
    assert!(accepted(&valid, 4000, edges) < 4000);
    let columns = ColumnNames { id: Some("source".into()), ..ColumnNames::default() };
    let nodes = |bytes: &[u8]| own::parquet_nodes(bytes, &columns).is_ok();
    assert!(accepted(&valid, 4000, nodes) < 4000);
}

#[test]
fn embeddings_never_panic() {
    let read = |bytes: &[u8]| vectors::from_bytes(bytes).is_ok();
    for valid in [
        &b"id,e0,e1\n\"a,\"\"b\"\"\",0.5,1\nb,-1,2e-3\n"[..],
        b"2 2\nann 0.5 1\nbob -1 0.25\n",
        b"0.5\t1\r\n-1\t0.25\r\n",
    ] {
        assert!(accepted(valid, 6000, read) < 6000);
    }
    assert!(accepted(&tiny_parquet(), 4000, read) < 4000);
    assert!(accepted(&parquet_lists(), 4000, read) < 4000);
    let mut npz = Npz::tiny();
    npz.set("embeddings", common::npy("<f4", "(2, 1)", &[0; 8]));
    npz.set("ids", texts(&["a", "b"]));
    assert!(accepted(&npz.stored(), 3000, read) < 3000);
}

/// A parquet file as embeddings are saved: texts and lists of floats.
fn parquet_lists() -> Vec<u8> {
    use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
    let schema = parquet::schema::parser::parse_message_type(
        "message m { required binary id (STRING); required group embedding (LIST) { \
         repeated group list { required float element; } } }",
    );
    let mut bytes = Vec::new();
    let (schema, properties) = (std::sync::Arc::new(schema.unwrap()), std::sync::Arc::default());
    let mut file =
        parquet::file::writer::SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let ids = ["a", "b"].map(ByteArray::from);
    column.typed::<ByteArrayType>().write_batch(&ids, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let (values, repeated) = ([0.5, 1.0, -1.0, 2.0], [0, 1, 0, 1]);
    column.typed::<FloatType>().write_batch(&values, Some(&[1; 4]), Some(&repeated)).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn matrices_never_panic() {
    let threads = Threads::new(1);
    let mut npz = Npz::tiny();
    npz.set("format", common::npy("|S3", "()", b"coo"));
    npz.set("shape", common::ints(&[3, 3]));
    npz.set("data", floats(&[1.0, 2.0]));
    npz.set("row", common::ints(&[0, 1]));
    npz.set("col", common::ints(&[1, 2]));
    npz.set("edges", common::npy("<i4", "(1, 2)", &[0, 0, 0, 0, 1, 0, 0, 0]));
    npz.set("node_features", common::npy("<f4", "(2, 1)", &[0; 8]));
    for name in ["train_masks", "val_masks", "test_masks"] {
        npz.set(name, common::npy("|b1", "(2,)", &[1, 0]));
    }
    let valid = npz.stored();
    let matrix = |bytes: &[u8]| own::scipy_matrix(bytes, &threads).is_ok();
    assert!(accepted(&valid, 2000, matrix) < 2000);
    assert!(accepted(&valid, 2000, |bytes| own::whole_graph(bytes).is_ok()) < 2000);
    for (name, member) in [
        ("shape", common::ints(&[3, 3])),
        ("row", common::ints(&[0, 1])),
        ("format", common::npy("|S3", "()", b"coo")),
    ] {
        let read = |bytes: &[u8]| {
            let mut npz = Npz::tiny();
            npz.set("format", common::npy("|S3", "()", b"coo"));
            npz.set("shape", common::ints(&[3, 3]));
            npz.set("data", floats(&[1.0, 2.0]));
            npz.set("row", common::ints(&[0, 1]));
            npz.set("col", common::ints(&[1, 2]));
            npz.set(name, bytes.to_vec());
            own::scipy_matrix(&npz.stored(), &threads).is_ok()
        };
        assert!(accepted(&member, 500, read) < 500, "{name}");
    }
}
