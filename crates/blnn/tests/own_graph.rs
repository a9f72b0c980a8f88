//! Users' own graphs in every format, and everything that can be wrong with them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blnn::data::own::{
    ColumnNames, FeatureSource, IdKind, Loaded, OwnGraph, Structural, Why, labels, read, read_as,
};
use blnn::export::{Embedding, Format, Provenance};
use blnn::{ErrorKind, Features, Graph, Matrix};
use blnn_kernels::Threads;
use common::{Npz, floats, ints, npy};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use tempfile::TempDir;

/// Five people: a triangle, a pair, and Fay alone in the table of nodes.
const EDGES: &str = "source,target\nann,bob\nbob,cy\ncy,ann\nbob,ann\ndi,ed\ned,ed\n";
const NODES: &str = "id,age,country,topic\nann,31,de,ai\nbob,40,fr,ai\ncy,25,de,ai\ndi,60,fr,db\n\
                     ed,51,de,db\nfay,33,fr,db\n";

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

fn load(request: &OwnGraph) -> blnn::Result<Loaded> {
    read(request, &Threads::new(2))
}

fn with_nodes(edges: PathBuf, nodes: PathBuf) -> OwnGraph {
    OwnGraph { nodes: Some(nodes), ..OwnGraph::new(edges) }
}

fn labelled(edges: PathBuf, nodes: PathBuf) -> OwnGraph {
    let columns = ColumnNames { label: Some("topic".into()), ..ColumnNames::default() };
    OwnGraph { columns, ..with_nodes(edges, nodes) }
}

fn with_label(request: OwnGraph, label: &str) -> OwnGraph {
    let columns = ColumnNames { label: Some(label.into()), ..request.columns };
    OwnGraph { columns, ..request }
}

fn refusal(request: &OwnGraph) -> String {
    load(request).unwrap_err().to_string()
}

fn ids(graph: &Graph) -> Vec<&str> {
    graph.node_ids().unwrap().iter().map(String::as_str).collect()
}

#[test]
fn two_tables_make_a_graph_and_nothing_is_silent() {
    let place = Place::new();
    let loaded =
        load(&labelled(place.put("edges.csv", EDGES), place.put("nodes.csv", NODES))).unwrap();
    let (graph, understood) = (&loaded.graph, &loaded.understood);
    assert_eq!(graph.name(), "edges");
    assert_eq!(ids(graph), ["ann", "bob", "cy", "di", "ed", "fay"]);
    assert_eq!(graph.adjacency().row(0), [1, 2]);
    assert_eq!(graph.labels().unwrap(), [0, 0, 0, 1, 1, 1]);
    assert_eq!(graph.class_names(), ["ai", "db"]);
    assert_eq!(graph.feature_names().unwrap(), ["age", "country=de", "country=fr"]);
    assert_eq!((understood.nodes, understood.listed, understood.edges), (6, 6, 4));
    assert_eq!((understood.merged, understood.self_loops, understood.isolated), (1, 1, 1));
    assert_eq!(understood.ids, IdKind::Texts);
    let text = understood.to_string();
    for part in [
        "edges.csv: text separated by comma, with a header; `source` → `target`",
        "1 duplicate or reverse merged",
        "1 self-loop dropped",
        "1 isolated",
        "age (numbers, standardised), country (texts, one-hot)",
        "topic: 2 classes (ai ×3, db ×3)",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn gzip_tabs_and_quotes_change_nothing() {
    let place = Place::new();
    let plain = labelled(place.put("e.csv", EDGES), place.put("n.csv", NODES));
    let wanted = load(&plain).unwrap().graph.fingerprint();
    let packed = place.put("e.tsv.gz", gzip(EDGES.replace(',', "\t").as_bytes()));
    let quoted = NODES.replace("ann", "\"ann\"").replace('\n', "\r\n").replace(',', ";");
    let other = labelled(packed, place.put("n.txt", quoted));
    let loaded = load(&other).unwrap();
    assert_eq!(loaded.graph.fingerprint(), wanted);
    assert_eq!(loaded.graph.name(), "e");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn everything_may_be_packed_with_gzip() {
    let place = Place::new();
    let edges = place.put("e.csv", "3,7\n9,3\n");
    let plain = labelled(edges.clone(), place.put("n.parquet", parquet_nodes()));
    let packed = labelled(edges, place.put("n.gz", gzip(&parquet_nodes())));
    let wanted = load(&plain).unwrap().graph.fingerprint();
    assert_eq!(load(&packed).unwrap().graph.fingerprint(), wanted);
    let matrix = place.put("x.npz.gz", gzip(&scipy("csr").stored()));
    assert_eq!(load(&OwnGraph::new(matrix)).unwrap().graph.nodes(), 3);
    for (bytes, wanted) in [
        (&b"BZh91AY&SY\x01\x02"[..], "e.csv: is packed with bzip2, which is not read; unpack"),
        (&gzip(b"\x28\xb5\x2f\xfd\x04"), "e.csv: is packed with zstd"),
    ] {
        let text = refusal(&OwnGraph::new(place.put("e.csv", bytes)));
        assert!(text.contains(wanted), "{text}");
    }
}

/// Row groups of two rows.
fn parquet_file(schema: &str, groups: &[(Vec<&str>, Vec<i64>, Vec<f64>)]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    for (texts, integers, numbers) in groups {
        let mut group = file.next_row_group().unwrap();
        let texts: Vec<ByteArray> = texts.iter().map(|&text| text.into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
        if !integers.is_empty() {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(integers, None, None).unwrap();
            column.close().unwrap();
        }
        if !numbers.is_empty() {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<DoubleType>().write_batch(numbers, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    file.close().unwrap();
    bytes
}

fn parquet_nodes() -> Vec<u8> {
    parquet_file(
        "message nodes { required binary topic (STRING); required int64 node; \
         required double age; }",
        &[(vec!["b", "a"], vec![7, 3], vec![0.5, 1.5]), (vec!["a"], vec![9], vec![2.5])],
    )
}

#[test]
fn parquet_tables_are_read_over_row_groups() {
    let place = Place::new();
    let nodes = place.put("nodes.parquet", parquet_nodes());
    let edges = place.put("edges.csv", "3,7\n9,3\n");
    let loaded = load(&labelled(edges, nodes.clone())).unwrap();
    assert_eq!(ids(&loaded.graph), ["7", "3", "9"]);
    assert_eq!(loaded.graph.labels().unwrap(), [1, 0, 0]);
    assert_eq!(loaded.graph.feature_names().unwrap(), ["age"]);
    assert_eq!(loaded.graph.adjacency().row(1), [0, 2]);
    // The same table as edges: two of its columns are told.
    let columns = ColumnNames {
        source: Some("topic".into()),
        target: Some("node".into()),
        ..ColumnNames::default()
    };
    let loaded = load(&OwnGraph { columns, ..OwnGraph::new(nodes.clone()) }).unwrap();
    assert_eq!(ids(&loaded.graph), ["b", "7", "a", "3", "9"]);
    let text = refusal(&OwnGraph {
        columns: ColumnNames { source: Some("age".into()), ..ColumnNames::default() },
        ..OwnGraph::new(nodes.clone())
    });
    assert!(text.contains("nodes.parquet: column `age` holds fractions"), "{text}");
    assert!(text.contains("--source-column"), "{text}");
    let (names, classes, _) = labels(&nodes, &labelled("".into(), "".into()).columns).unwrap();
    assert_eq!((names.len(), classes), (3, vec![Some(1), Some(0), Some(0)]));
}

/// Hashes of 64 bits have no sign: as signed numbers they would name other nodes than a csv does.
#[test]
fn parquet_ids_without_a_sign_are_not_negative() {
    let place = Place::new();
    let schema = "message nodes { required binary topic (STRING); required int64 node (UINT_64); \
                  required double age; }";
    let groups = [(vec!["b", "a", "a"], vec![-1, 3, i64::MIN], vec![0.5, 1.5, 2.5])];
    let nodes = place.put("nodes.parquet", parquet_file(schema, &groups));
    let edges = place.put("edges.csv", "3,18446744073709551615\n9223372036854775808,3\n");
    let loaded = load(&labelled(edges, nodes)).unwrap();
    assert_eq!(ids(&loaded.graph), ["18446744073709551615", "3", "9223372036854775808"]);
    assert_eq!(loaded.graph.adjacency().row(1), [0, 2]);
    let schema = "message nodes { required binary node (STRING); required int64 n (UINT_64); }";
    let groups = [(vec!["x", "y"], vec![i64::MIN, 0], vec![])];
    let nodes = place.put("counts.parquet", parquet_file(schema, &groups));
    let told = OwnGraph { nodes: Some(nodes), ..OwnGraph::new(place.put("xy.csv", "x,y\n")) };
    let loaded = load(&told).unwrap();
    let Features::Dense(x) = loaded.graph.features() else { panic!("one column of numbers") };
    assert!(x.get(0, 0) > x.get(1, 0), "2⁶³ is more than nothing");
    let schema =
        "message edges { required binary source (STRING); required int64 target (UINT_64); }";
    let groups = [(vec!["3", "7"], vec![-1, 3], vec![])];
    let edges = place.put("edges.parquet", parquet_file(schema, &groups));
    let loaded = load(&OwnGraph::new(edges)).unwrap();
    assert_eq!(ids(&loaded.graph), ["3", "18446744073709551615", "7"]);
}

/// The index of a data frame is no feature, and holds the ids if nothing else can.
#[test]
fn the_index_of_a_data_frame_is_ids_for_want_of_others() {
    let place = Place::new();
    let edges = place.put("edges.csv", "3,7\n9,3\n");
    let groups = [(vec!["b", "a", "a"], vec![7, 3, 9], vec![0.5, 1.5, 2.5])];
    let frame = |id: &str, text: &str, number: &str| {
        let schema = format!(
            "message m {{ required binary {text} (STRING); required int64 {id}; \
             required double {number}; }}"
        );
        labelled(edges.clone(), place.put("n.parquet", parquet_file(&schema, &groups)))
    };
    let loaded = load(&frame("node", "topic", "__index_level_0__")).unwrap();
    assert!(loaded.understood.to_string().contains("left out  __index_level_0__"));
    // Behind the classes stands the index, and a column of fractions cannot be ids.
    let loaded = load(&frame("__index_level_0__", "topic", "age")).unwrap();
    assert_eq!(ids(&loaded.graph), ["7", "3", "9"]);
    assert_eq!(loaded.graph.feature_names().unwrap(), ["age"]);
}

#[test]
fn damaged_parquet_and_empty_values_are_told() {
    let place = Place::new();
    let bytes = parquet_nodes();
    let cut = place.put("cut.parquet", &bytes[..bytes.len() / 2]);
    let text = refusal(&OwnGraph::new(cut));
    assert!(text.contains("cut.parquet: is not a whole parquet file"), "{text}");
    let schema = Arc::new(
        parse_message_type("message m { optional int64 source; required int64 target; }").unwrap(),
    );
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1], Some(&[1, 0]), None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[2, 3], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let text = refusal(&OwnGraph::new(place.put("null.parquet", bytes)));
    assert!(text.contains("null.parquet: column `source`: row 2: is empty"), "{text}");
}

/// Nulls of a label are nodes without one, a group of nothing but nulls too.
#[test]
fn null_labels_are_no_labels() {
    let place = Place::new();
    let schema = "message m { required int64 id; optional binary topic (STRING); \
                  required double x; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let groups: [(&[i64], &[&str], &[i16]); 2] =
        [(&[1, 2, 3], &["b", "a"], &[1, 0, 1]), (&[4], &[], &[0])];
    for (ids, topics, levels) in groups {
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(ids, None, None).unwrap();
        column.close().unwrap();
        let topics: Vec<ByteArray> = topics.iter().map(|&topic| topic.into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&topics, Some(levels), None).unwrap();
        column.close().unwrap();
        let x: Vec<f64> = ids.iter().map(|&id| id as f64).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&x, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    file.close().unwrap();
    let nodes = place.put("nodes.parquet", bytes);
    let loaded = load(&labelled(place.put("e.csv", "1,2\n3,4\n"), nodes.clone())).unwrap();
    let labels_of = |graph: &Graph| (0..4).map(|node| graph.label_of(node)).collect::<Vec<_>>();
    assert_eq!(labels_of(&loaded.graph), [Some(1), None, Some(0), None]);
    assert_eq!(loaded.graph.class_names(), ["a", "b"]);
    assert!(loaded.understood.to_string().contains("2 of 4 nodes have none and are not scored"));
    let request = labelled("".into(), "".into());
    assert_eq!(labels(&nodes, &request.columns).unwrap().1[1], None);
}

/// A model trained from csv meets parquet: names and types are what counts.
#[test]
fn columns_are_found_in_another_kind_of_table() {
    let place = Place::new();
    let edges = place.put("e.csv", "3,7\n9,3\n");
    let text = "id,kind,age\n7,b,0.5\n3,a,1.5\n9,a,2.5\n1,b,2.5\n";
    let csv = OwnGraph { nodes: Some(place.put("n.csv", text)), ..OwnGraph::new(edges.clone()) };
    let encoding = load(&csv).unwrap().encoding;
    let table = |schema: &str| {
        let groups =
            [(vec!["b", "z"], vec![7, 3], vec![0.5, 1.5]), (vec!["a"], vec![9], vec![9.5])];
        let nodes = Some(place.put("n.parquet", parquet_file(schema, &groups)));
        let request = OwnGraph { nodes, ..OwnGraph::new(edges.clone()) };
        read_as(&request, &encoding, &Threads::new(2))
    };
    let schema = "message m { required binary kind (STRING); required int64 node; \
                  required double age; }";
    let loaded = table(schema).unwrap();
    let Features::Dense(x) = loaded.graph.features() else { panic!("dense") };
    let wanted = load(&csv).unwrap();
    let Features::Dense(old) = wanted.graph.features() else { panic!("dense") };
    assert_eq!(encoding.names(), ["kind=b", "kind=a", "age"]);
    assert_eq!(x.row(0), old.row(0));
    assert_eq!((x.row(1)[0], x.row(1)[1], x.row(1)[2]), (0.0, 0.0, old.row(1)[2]));
    assert_eq!(loaded.understood.unseen[0].example, "z");
    let text = table(&schema.replace("kind", "age1").replace("double age;", "double kind;"));
    let text = text.unwrap_err().to_string();
    assert!(text.contains("n.parquet: lacks a column") && text.contains("`age1`"), "{text}");
    let swapped = "message m { required binary age (STRING); required int64 node; \
                   required double kind; }";
    let text = table(swapped).unwrap_err().to_string();
    assert!(text.contains("column `age` holds texts"), "{text}");
}

/// A hundred nodes with a unix time and a latitude, as csv and as parquet.
fn times_and_places() -> (String, Vec<u8>) {
    let ids: Vec<String> = (0..100).map(|i| format!("n{i}")).collect();
    let times: Vec<i64> = (0..100).map(|i| 1_700_000_000 + i).collect();
    let latitudes: Vec<f64> = (0..100).map(|i| f64::from(525_200_001 + i) / 1e7).collect();
    let line = |i: usize| format!("{},{},{}\n", ids[i], times[i], latitudes[i]);
    let csv = String::from("id,ts,lat\n") + &(0..100).map(line).collect::<String>();
    let schema = "message m { required binary id (STRING); required int64 ts; \
                  required double lat; }";
    let ids = ids.iter().map(String::as_str).collect();
    (csv, parquet_file(schema, &[(ids, times, latitudes)]))
}

/// Unix times and coordinates have more digits than a feature: they are standardised before they
/// are cut, at training and when a model meets the table again.
#[test]
fn numbers_of_many_digits_are_standardised_before_they_are_cut() {
    let place = Place::new();
    let edges = place.put("e.csv", "n0,n1\nn1,n2\n");
    let (csv, parquet) = times_and_places();
    let tables = [place.put("n.csv", csv), place.put("n.parquet", parquet)]
        .map(|nodes| with_nodes(edges.clone(), nodes));
    let deviation = ((100.0_f64.powi(2) - 1.0) / 12.0).sqrt();
    let learned = tables.each_ref().map(|table| load(table).unwrap());
    for Loaded { graph, encoding, .. } in &learned {
        assert_eq!(encoding.names(), ["ts", "lat"]);
        let Features::Dense(x) = graph.features() else { panic!("dense") };
        for row in 0..100 {
            let wanted = (row as f64 - 49.5) / deviation;
            let far = |value: &f32| (f64::from(*value) - wanted).abs() > 1e-6;
            assert!(!x.row(row).iter().any(far), "row {row}: {:?}, not {wanted}", x.row(row));
        }
        let kept = serde_json::to_string(encoding).unwrap();
        let json: serde_json::Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(json["features"][0]["mean"], 1_700_000_049.5);
        let scale = json["features"][0]["scale"].as_f64().unwrap();
        assert!((scale - deviation).abs() < 1e-12, "{scale}");
        let kept = serde_json::from_str(&kept).unwrap();
        for table in &tables {
            let again = read_as(table, &kept, &Threads::new(2)).unwrap();
            assert_eq!(again.graph.features(), graph.features());
            assert_eq!(again.graph.fingerprint(), graph.fingerprint());
        }
    }
}

/// What we write ourselves is read again, lists of numbers and all.
#[test]
fn lists_of_numbers_are_features() {
    let place = Place::new();
    let graph = load(&OwnGraph::new(place.put("e.csv", EDGES))).unwrap().graph;
    let plan = blnn::Config::new().resolve("e").unwrap();
    let provenance = Provenance::new(&graph, &plan);
    let vectors = Matrix::from_fn(5, 2, |i, j| (i * i) as f32 - j as f32 * i as f32);
    let written = Embedding::new(&vectors, &graph, &provenance).unwrap();
    let path = written.write(Format::Parquet, place.0.path()).unwrap().remove(0);
    let loaded = load(&with_nodes(place.put("e.csv", EDGES), path)).unwrap();
    assert_eq!(ids(&loaded.graph), ids(&graph));
    assert_eq!(loaded.graph.feature_names().unwrap(), ["embedding[0]", "embedding[1]"]);
}

/// `scipy.sparse.save_npz` of a 3×3 matrix with entries (0,1), (1,2), (2,2) and a stored zero.
fn scipy(format: &str) -> Npz {
    let mut npz = Npz::tiny();
    for name in ["data", "indices", "indptr", "shape"] {
        npz.remove(&format!("adj_{name}"));
        npz.remove(&format!("attr_{name}"));
    }
    for name in ["labels", "class_names", "node_names"] {
        npz.remove(name);
    }
    npz.set("format", npy(&format!("|S{}", format.len()), "()", format.as_bytes()));
    npz.set("shape", ints(&[3, 3]));
    npz.set("data", floats(&[1.0, 2.0, 1.0, 0.0]));
    if format == "coo" {
        npz.set("row", ints(&[0, 1, 2, 2]));
        npz.set("col", ints(&[1, 2, 2, 0]));
    } else {
        npz.set("indptr", ints(&[0, 1, 2, 4]));
        npz.set("indices", ints(&[1, 2, 2, 0]));
    }
    npz
}

#[test]
fn scipy_matrices_are_edges_or_features() {
    let place = Place::new();
    for format in ["csr", "csc", "coo"] {
        let path = place.put(&format!("{format}.npz"), scipy(format).deflated());
        let data: Vec<u8> = [1.0f64, 2.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let nodes = place.put("x.npy", npy("<f8", "(3, 1)", &data));
        let loaded = load(&with_nodes(path.clone(), nodes)).unwrap();
        assert_eq!(loaded.graph.adjacency().indices(), [1, 0, 2, 1], "{format}");
        assert_eq!(loaded.understood.self_loops, 1);
        let Features::Dense(x) = loaded.graph.features() else { panic!("dense") };
        assert_eq!(x.data(), [1.0, 2.0, 3.0]);
        let both = load(&with_nodes(path.clone(), path)).unwrap();
        let Features::Sparse(x) = both.graph.features() else { panic!("sparse") };
        assert_eq!(x.pattern().cols(), 3);
    }
    let text = refusal(&OwnGraph::new(place.put("bsr.npz", scipy("bsr").stored())));
    assert!(text.contains("`bsr` matrix") && text.contains("tocsr"), "{text}");
}

/// A node that is left over would be isolated, or lost, without a word.
#[test]
fn an_adjacency_has_the_rows_of_its_nodes() {
    let place = Place::new();
    let edges = place.put("a.npz", scipy("csr").stored());
    for rows in [2, 4] {
        let zeros = vec![0; 8 * rows];
        let matrix = place.put("x.npy", npy("<f8", &format!("({rows}, 1)"), &zeros));
        let text = refusal(&with_nodes(edges.clone(), matrix));
        assert!(text.contains("a.npz: the adjacency is 3×3, and "), "{text}");
        assert!(text.contains(&format!("x.npy has {rows} rows; give both")), "{text}");
    }
    let table = place.put("n.csv", "id,age\n0,1\n1,2\n2,4\n3,3\n");
    let text = refusal(&with_nodes(edges.clone(), table));
    assert!(text.contains("n.csv has 4 rows") && text.contains("pairs of ids"), "{text}");
    let table = place.put("n.csv", "id,age\n0,1\n1,2\n2,4\n");
    assert_eq!(load(&with_nodes(edges, table)).unwrap().graph.nodes(), 3);
}

#[test]
fn no_header_needs_a_table_of_text() {
    let place = Place::new();
    let bare = |mut request: OwnGraph| {
        request.columns.no_header = true;
        request
    };
    let about = "--no-header is about a table of text, and there is none; leave the flag out";
    let matrix = place.put("a.npz", scipy("csr").stored());
    let x = place.put("x.npy", npy("<f8", "(3, 1)", &[0; 24]));
    assert!(refusal(&bare(OwnGraph::new(matrix.clone()))).ends_with(about));
    assert!(refusal(&bare(with_nodes(matrix.clone(), x))).ends_with(about));
    let table = place.put("n.csv", "0,1\n1,2\n2,4\n");
    assert_eq!(load(&bare(with_nodes(matrix, table))).unwrap().graph.nodes(), 3);
    let archive = place.put("w.npz", whole().stored());
    let text = refusal(&bare(OwnGraph::new(archive)));
    assert!(text.contains("leave --no-header out"), "{text}");
}

fn whole() -> Npz {
    let mut npz = scipy("csr");
    for name in ["format", "shape", "data", "indptr", "indices"] {
        npz.remove(name);
    }
    let pairs: Vec<u8> = [0i64, 1, 1, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
    npz.set("edges", npy("<i8", "(2, 2)", &pairs));
    let x: Vec<u8> = [0.5f32, 1.0, 1.5].iter().flat_map(|v| v.to_le_bytes()).collect();
    npz.set("node_features", npy("<f4", "(3, 1)", &x));
    npz.set("node_labels", ints(&[0, 1, 1]));
    npz
}

#[test]
fn one_archive_holds_everything_and_its_splits_are_kept() {
    let place = Place::new();
    let loaded = load(&OwnGraph::new(place.put("plain.npz", whole().stored()))).unwrap();
    assert!(loaded.graph.splits().is_none());
    assert_eq!(loaded.graph.adjacency().indices(), [1, 0, 2, 1], "pairs, not two rows");
    let mut npz = whole();
    npz.set("train_masks", npy("|b1", "(2, 3)", &[1, 0, 0, 0, 1, 0]));
    npz.set("val_masks", npy("|b1", "(2, 3)", &[0, 1, 0, 0, 0, 1]));
    npz.set("test_masks", npy("|b1", "(2, 3)", &[0, 0, 1, 1, 0, 0]));
    let loaded = load(&OwnGraph::new(place.put("split.npz", npz.stored()))).unwrap();
    let splits = loaded.graph.splits().unwrap();
    assert_eq!(
        (splits.test_mask(0), splits.test_mask(1)),
        (&[false, false, true][..], &[true, false, false][..])
    );
    assert_eq!(loaded.understood.splits, 2);
    npz.remove("val_masks");
    let text = refusal(&OwnGraph::new(place.put("two.npz", npz.stored())));
    assert!(text.contains("two.npz") && text.contains("not all of"), "{text}");
    let mut npz = whole();
    let far: Vec<u8> = [0i64, 1, 1, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
    npz.set("edges", npy("<i8", "(2, 2)", &far));
    let text = refusal(&OwnGraph::new(place.put("far.npz", npz.stored())));
    let wanted = "far.npz: edge 2: node_features has the rows 0 to 2, none for the target `7`";
    assert!(text.contains(wanted), "{text}");
    let extra = with_nodes(place.put("p.npz", whole().stored()), place.put("n.csv", NODES));
    assert!(refusal(&extra).contains("leave --nodes out"));
}

/// What an archive holds under other names is told, and its labels may come beside it.
#[test]
fn members_with_other_names_are_not_passed_over_in_silence() {
    let place = Place::new();
    let mut npz = whole();
    npz.remove("node_labels");
    npz.set("labels", ints(&[0, 1, 1]));
    npz.set("train_mask", npy("|b1", "(3,)", &[1, 0, 0]));
    let path = place.put("g.npz", npz.stored());
    let understood = load(&OwnGraph::new(&path)).unwrap().understood.to_string();
    let wanted = "g.npz: passed over: `labels`, `train_mask` (known are edges, node_features, \
                  node_labels, node_ids, train_masks, val_masks, test_masks)";
    assert!(understood.contains(wanted), "{understood}");
    assert!(understood.contains("none, so no scores (--label tells"), "{understood}");
    let text = refusal(&with_label(OwnGraph::new(&path), "labels"));
    assert!(text.contains("g.npz: holds no labels: call them `node_labels`"), "{text}");
    let classes = place.put("y.npy", ints(&[5, 5, 9])).display().to_string();
    let loaded = load(&with_label(OwnGraph::new(&path), &classes)).unwrap();
    assert_eq!(loaded.graph.class_names(), ["5", "9"]);
    let full = OwnGraph::new(place.put("full.npz", whole().stored()));
    assert_eq!(load(&full).unwrap().understood.files[0].remarks, [""; 0]);
    assert!(refusal(&with_label(full, &classes)).contains("leave --label out"));
}

/// Edges of an archive count rows; `node_ids` says how the rows are called.
#[test]
fn an_archive_may_name_its_nodes() {
    let place = Place::new();
    let with_ids = |ids: Vec<u8>| {
        let mut npz = whole();
        npz.set("node_ids", ids);
        OwnGraph::new(place.put("g.npz", npz.stored()))
    };
    let texts = |letters: &str| {
        let bytes: Vec<u8> = letters.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        npy("<U1", "(3,)", &bytes)
    };
    let loaded = load(&with_ids(texts("cab"))).unwrap();
    assert_eq!(ids(&loaded.graph), ["c", "a", "b"]);
    assert_eq!(loaded.graph.adjacency().row(0), [1], "rows 0 and 1");
    assert!(loaded.understood.files[0].remarks.is_empty());
    assert_eq!(ids(&load(&with_ids(ints(&[30, 10, 20]))).unwrap().graph), ["30", "10", "20"]);
    assert_eq!(load(&with_ids(ints(&[0, 1, 2]))).unwrap().graph.node_ids(), None);
    for (member, wanted) in [
        (texts("aba"), "g.npz: node_ids: the id `a` of row 2 stands before"),
        (ints(&[7, 9, 7]), "g.npz: node_ids: the id `7` of row 2 stands before"),
        (ints(&[7, 9]), "g.npz: node_ids: has 2 ids for 3 nodes"),
        (ints(&[2, 0, 1]), "g.npz: node_ids: are the numbers of the rows in another order"),
        (floats(&[1.0, 2.0, 3.0]), "g.npz: node_ids: are not integers or texts"),
    ] {
        let text = refusal(&with_ids(member));
        assert!(text.contains(wanted), "{text}");
    }
}

/// The same for the layout of gnn-benchmark and for SciPy's.
#[test]
fn other_archives_tell_what_they_pass_over_too() {
    let place = Place::new();
    let mut npz = Npz::tiny();
    npz.set("test_masks", npy("|b1", "(3,)", &[1, 0, 0]));
    let loaded = load(&OwnGraph::new(place.put("b.npz", npz.stored()))).unwrap();
    let remarks = &loaded.understood.files[0].remarks;
    assert!(remarks.len() == 1 && remarks[0].contains("passed over: `test_masks`"), "{remarks:?}");
    let mut npz = scipy("csr");
    npz.set("names", ints(&[1, 2, 3]));
    let loaded = load(&OwnGraph::new(place.put("s.npz", npz.stored()))).unwrap();
    assert!(loaded.understood.to_string().contains("s.npz: passed over: `names`"));
    let mut npz = Npz::tiny();
    npz.remove("labels");
    let bare = OwnGraph::new(place.put("n.npz", npz.stored()));
    let nodes = load(&bare).unwrap().graph.nodes();
    let classes: Vec<i32> = (0..nodes as i32).map(|node| node % 2).collect();
    let classes = place.put("y.npy", ints(&classes)).display().to_string();
    let loaded = load(&with_label(bare, &classes)).unwrap();
    assert_eq!(loaded.graph.class_names(), ["0", "1"]);
    assert!(loaded.understood.to_string().contains("y.npy: 2 classes"));
}

/// Labels alone tell the number of nodes; their features then come from the edges.
#[test]
fn an_archive_needs_no_features_and_takes_any_labels() {
    let place = Place::new();
    let mut npz = whole();
    npz.remove("node_features");
    let loaded = load(&OwnGraph::new(place.put("bare.npz", npz.stored()))).unwrap();
    assert_eq!((loaded.graph.nodes(), loaded.graph.labels().unwrap()), (3, &[0, 1, 1][..]));
    assert!(loaded.understood.to_string().contains("computed from the edges: random-walk"));
    let names: Vec<u8> = "baa".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    npz.set("node_labels", npy("<U1", "(3,)", &names));
    let loaded = load(&OwnGraph::new(place.put("texts.npz", npz.stored()))).unwrap();
    assert_eq!(loaded.graph.class_names(), ["a", "b"]);
    assert_eq!(loaded.graph.labels().unwrap(), [1, 0, 0]);
    npz.set("node_labels", ints(&[-1, 4, 4]));
    let loaded = load(&OwnGraph::new(place.put("minus.npz", npz.stored()))).unwrap();
    assert_eq!(loaded.graph.class_names(), ["-1", "4"]);
    npz.remove("node_labels");
    let text = refusal(&OwnGraph::new(place.put("edges.npz", npz.stored())));
    assert!(text.contains("edges.npz: holds edges, but neither node_features nor"), "{text}");
}

#[test]
fn values_of_a_matrix_that_cannot_be_used_name_its_file() {
    let place = Place::new();
    let edges = place.put("adj.csv", "0,1\n1,2\n");
    for (value, wanted) in [
        (f64::NAN, "x.npy: feature 0 of node 1 (both from 0) is NaN"),
        (1e200, "x.npy: feature 0 of node 1 (both from 0) is infinite, or too large for 32 bits"),
    ] {
        let data: Vec<u8> = [1.0, value, 3.0].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
        let nodes = place.put("x.npy", npy("<f8", "(3, 1)", &data));
        let text = refusal(&with_nodes(edges.clone(), nodes));
        assert!(text.contains(wanted) && !text.contains("adj"), "{text}");
    }
}

#[test]
fn arrays_of_pairs_are_edges() {
    let place = Place::new();
    let data: Vec<u8> = [5i64, 9, 9, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
    let path = place.put("edge_index.npy", npy("<i8", "(2, 2)", &data));
    let loaded = load(&OwnGraph::new(path)).unwrap();
    assert_eq!(ids(&loaded.graph), ["5", "7", "9"]);
    assert_eq!(loaded.graph.adjacency().row(0), [2], "5 – 9, 9 – 7");
}

#[test]
fn a_graph_without_features_gets_some_and_says_so() {
    let place = Place::new();
    let path = place.put("edges.csv", EDGES);
    let loaded = load(&OwnGraph::new(path.clone())).unwrap();
    let FeatureSource::Edges { kind, why, .. } = &loaded.understood.feature_source else {
        panic!("computed")
    };
    assert_eq!((*kind, *why), (Structural::RandomWalk, Why::NoOthers));
    assert!(loaded.understood.to_string().contains("random-walk (there are no others"));
    for kind in Structural::ALL {
        let loaded =
            load(&OwnGraph { features: Some(kind), ..OwnGraph::new(path.clone()) }).unwrap();
        let text = loaded.understood.to_string();
        assert!(text.contains(&format!("{} (as told)", kind.name())), "{text}");
        let names = loaded.graph.feature_names().unwrap().len();
        assert_eq!(names, loaded.graph.features().cols());
    }
    let bare = place.put("ids.csv", "id\nann\nbob\ncy\ndi\ned\nzoe\n");
    let loaded = load(&with_nodes(path, bare)).unwrap();
    assert_eq!((loaded.graph.nodes(), loaded.understood.isolated), (6, 1));
}

#[test]
fn ids_that_count_from_zero_are_the_rows() {
    let place = Place::new();
    let loaded = load(&OwnGraph::new(place.put("e.txt", "0 1\n2 1\n"))).unwrap();
    assert_eq!((loaded.graph.node_ids(), loaded.understood.ids), (None, IdKind::Rows));
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    let pair = |i: u64| format!("{},{}\n", i * 7919 % 5003, i * 104_729 % 4999);
    let text: String = (0..60_000).map(pair).collect();
    let request = OwnGraph::new(place.put("edges.csv", text));
    let prints = [1, 2, 5].map(|n| read(&request, &Threads::new(n)).unwrap().graph.fingerprint());
    assert!(prints[0] == prints[1] && prints[1] == prints[2]);
}

#[test]
fn faults_name_file_place_and_remedy() {
    let place = Place::new();
    let edges = || place.put("edges.csv", EDGES);
    let nodes = || place.put("nodes.csv", NODES);
    let cases: [(OwnGraph, &[&str]); 9] = [
        (
            with_nodes(place.put("z.csv", "source,target\n\nann,bob\nann,zoe\n"), nodes()),
            &["z.csv: line 4: the target `zoe`", "nodes.csv", "add it there"],
        ),
        (
            with_nodes(place.put("h.csv", "who,whom\nann,bob\n"), nodes()),
            &["h.csv: line 1: the source `who`", "--source-column"],
        ),
        (
            with_nodes(
                place.put("f.csv", "u,v\n1.0,2.0\n"),
                place.put("i.csv", "id,x\n1,2\n2,3\n"),
            ),
            &["f.csv: line 2: the source `1.0`", "whole numbers"],
        ),
        (
            with_nodes(edges(), place.put("d.csv", "id,x\nann,1\nbob,2\nann,3\n")),
            &["d.csv: line 4: the id `ann` stands in `id` before", "--id-column"],
        ),
        (
            with_nodes(edges(), place.put("r.csv", "id,x\nann,1\nbob\n")),
            &["r.csv: line 3: has 1 field, line 1 has 2"],
        ),
        (
            labelled(edges(), place.put("l.csv", "id,topik\nann,1\n")),
            &["l.csv: has no column `topic` (--label)", "did you mean `topik`?"],
        ),
        (
            with_nodes(edges(), place.put("latin.csv", b"id,x\nann,caf\xe9\nbob,b\n")),
            &["latin.csv: line 2: field 2 is not UTF-8", "iconv"],
        ),
        (
            OwnGraph::new(place.put("mixed.csv", "a,b\nc,d\ne;f\n")),
            &["mixed.csv: line 3", "semicolon"],
        ),
        (OwnGraph::new(place.put("empty.csv", "source,target\n")), &["empty.csv: holds no edges"]),
    ];
    for (request, parts) in cases {
        let text = refusal(&request);
        for part in parts {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn flags_about_a_table_need_the_table() {
    let place = Place::new();
    let columns = ColumnNames { label: Some("topic".into()), ..ColumnNames::default() };
    let error =
        load(&OwnGraph { columns, ..OwnGraph::new(place.put("e.csv", EDGES)) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("--nodes"), "{error}");
}

/// Columns of what has none: nothing could come of such a flag.
#[test]
fn flags_about_columns_are_refused_where_there_are_none() {
    let place = Place::new();
    let matrix = place.put("x.npy", npy("<f4", "(3, 1)", &[0; 12]));
    let pairs: Vec<u8> = [0i64, 1, 1, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
    let array = place.put("e.npy", npy("<i8", "(2, 2)", &pairs));
    let table = place.put("e.csv", "0,1\n1,2\n");
    let archive = place.put("g.npz", whole().stored());
    let none = ColumnNames::default;
    let foo = || Some("foo".to_owned());
    let nodes = || Some(matrix.clone());
    let cases = [
        (&table, nodes(), ColumnNames { label: foo(), ..none() }, "x.npy: --label foo", "FILE.npy"),
        (&table, nodes(), ColumnNames { id: foo(), ..none() }, "x.npy: --id-column foo", "out"),
        (&table, nodes(), ColumnNames { skip: vec!["foo".into()], ..none() }, "--skip-column", ""),
        (&array, None, ColumnNames { source: foo(), ..none() }, "e.npy: --source-column foo", ""),
        (&array, nodes(), ColumnNames { target: foo(), ..none() }, "--target-column foo", "out"),
        (&archive, None, ColumnNames { target: foo(), ..none() }, "g.npz: --target-column", ""),
        (&archive, None, ColumnNames { skip: vec!["foo".into()], ..none() }, "--skip-column", ""),
    ];
    for (edges, nodes, columns, wanted, remedy) in cases {
        let text = refusal(&OwnGraph { edges: edges.clone(), nodes, columns, features: None });
        assert!(text.contains(wanted) && text.contains(remedy), "{text}");
    }
}

/// Whoever adds the missing row trains with all features shifted by one.
#[test]
fn nodes_numbered_from_one_are_not_asked_for_another_row() {
    let place = Place::new();
    let matrix = place.put("x.npy", npy("<f4", "(3, 1)", &[0; 12]));
    let text = refusal(&with_nodes(place.put("e.csv", "1,2\n2,3\n"), matrix.clone()));
    let wanted = "e.csv: line 2: ";
    assert!(text.contains(wanted) && text.contains("has the rows 0 to 2, none for"), "{text}");
    assert!(text.contains("number the nodes from 0 (are they from 1?), or give"), "{text}");
    let text = refusal(&with_nodes(place.put("e.csv", "0,1\n1,9\n"), matrix));
    assert!(!text.contains("from 1?") && text.contains("from 0, or give the nodes as a"), "{text}");
}

/// Ids that other programs make of empty cells, and lines that are no edges.
#[test]
fn ids_that_are_hardly_meant_are_told() {
    let place = Place::new();
    for (text, parts) in [
        ("source,target\n1,2.0\n2,3.0\n3,1.0\n", ["line 2: the target is `2.0`", "write `2`"]),
        ("source,target\n1,2\n2,NaN\n3,NaN\n", ["line 3: the target is `NaN`", "remove the edge"]),
        ("a,0.5,b\nb,1,c\n", ["`column 2` holds numbers", "--source-column 1 --target-column 3"]),
        (
            "%%MatrixMarket matrix coordinate real general\n3 5 2\n1 4 0.5\n2 4 1\n",
            ["is a MatrixMarket file, which is not read", "mmread"],
        ),
    ] {
        let text = refusal(&OwnGraph::new(place.put("e.csv", text)));
        assert!(text.contains("e.csv: ") && parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let total = place.put("t.csv", "source,target\n1,2\n2,3\nTotal,5\n");
    let understood = load(&OwnGraph::new(total)).unwrap().understood.to_string();
    let wanted =
        "t.csv: all ids are whole numbers but `Total` (line 4); if that is no edge, remove";
    assert!(understood.contains(wanted), "{understood}");
    // A table of nodes says who is meant.
    let nodes = place.put("n.csv", "id,x\nNA,1\nDE,2\nFR,3\n");
    let countries = with_nodes(place.put("c.csv", "NA,DE\nDE,FR\n"), nodes.clone());
    assert_eq!(load(&countries).unwrap().graph.nodes(), 3);
    let text = refusal(&with_nodes(place.put("c.csv", "DE,FR\nDE,nan\n"), nodes));
    assert!(
        text.contains("c.csv: line 2: the target is `nan`, which stands for an empty"),
        "{text}"
    );
}

#[test]
fn features_of_a_whole_archive_are_not_replaced_in_silence() {
    let place = Place::new();
    let path = place.put("g.npz", Npz::tiny().stored());
    assert!(load(&OwnGraph::new(&path)).is_ok());
    let text = refusal(&OwnGraph { features: Some(Structural::Degree), ..OwnGraph::new(path) });
    assert!(text.contains("g.npz: holds features of its own"), "{text}");
    assert!(text.contains("leave --features degree out"), "{text}");
}

#[test]
fn labels_may_come_from_an_array() {
    let place = Place::new();
    let classes = place.put("y.npy", ints(&[5, 5, 9]));
    let columns =
        ColumnNames { label: Some(classes.display().to_string()), ..ColumnNames::default() };
    let edges = place.put("e.csv", "0,1\n1,2\n");
    let loaded = load(&OwnGraph { columns: columns.clone(), ..OwnGraph::new(edges) }).unwrap();
    assert_eq!(loaded.graph.labels().unwrap(), [0, 0, 1]);
    assert_eq!(loaded.graph.class_names(), ["5", "9"]);
    let short = place.put("s.csv", "0,1\n");
    let text = refusal(&OwnGraph { columns, ..OwnGraph::new(short) });
    assert!(text.contains("y.npy: has 3 labels for 2 nodes"), "{text}");
}

#[test]
fn a_missing_file_and_a_folder_are_told() {
    let place = Place::new();
    let error = load(&OwnGraph::new(place.0.path().join("none.csv"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("none.csv"), "{error}");
    let text = refusal(&OwnGraph::new(Path::new(place.0.path())));
    assert!(text.contains("is a folder"), "{text}");
}
