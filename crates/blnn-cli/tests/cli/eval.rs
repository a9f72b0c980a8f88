//! `blnn eval`: what it prints, and what it says of bad files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

use blnn::data::npy;
use blnn_kernels::Matrix;
use serde_json::Value;

use crate::common::{blnn, finish, refusal};

/// Two classes on two axes with a little spread; `noise` mixes them.
fn embeddings(noise: f32) -> Matrix {
    Matrix::from_fn(80, 4, |i, j| {
        let spread = ((i * i * (j + 2)) as f32 * 1.7).sin();
        noise * spread + if i % 2 == j { 1.0 } else { 0.0 }
    })
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, noise) in [("good.npy", 0.2), ("poor.npy", 3.0)] {
        npy::write_f32_matrix(&mut File::create(path(name)).unwrap(), &embeddings(noise)).unwrap();
    }
    let numbers: Vec<i64> = (0..80).map(|i| i % 2).collect();
    npy::write_i64(&mut File::create(path("labels.npy")).unwrap(), &numbers).unwrap();
    let names: Vec<&str> = (0..80).map(|i| ["dog", "cat"][i % 2]).collect();
    npy::write_text(&mut File::create(path("names.npy")).unwrap(), &names).unwrap();
    folder
}

fn eval(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = blnn(folder);
    command.args(["eval", "--splits", "3", "--repeats", "2", "--threads", "2"]);
    command.args(arguments);
    command
}

fn printed(arguments: &[&str]) -> String {
    let folder = folder();
    let (code, stdout, stderr) = finish(&mut eval(folder.path(), arguments));
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout
}

#[test]
fn json_has_the_promised_keys() {
    let text = printed(&["good.npy", "--labels", "labels.npy", "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["classify"]["mean"], 100.0);
    assert_eq!(json["classify"]["per_split"].as_array().unwrap().len(), 3);
    assert_eq!(json["cluster"]["nmi"]["mean"], 100.0);
    assert_eq!(json["cluster"]["homogeneity"]["std"], 0.0);
    assert_eq!(json["similar"]["s_at_5"], 100.0);
    assert!(json["similar"]["s_at_10"].is_f64() && json["compactness"].is_f64());
    assert_eq!(json["seeds"]["splits"], 1);
    for task in ["classify", "cluster", "similar", "compactness"] {
        assert!(json["seconds"][task].is_f64(), "{text}");
    }
}

#[test]
fn names_are_classes_too() {
    let scores = |labels: &str| -> Value {
        let text = printed(&["poor.npy", "--labels", labels, "--format", "json"]);
        serde_json::from_str(&text).unwrap()
    };
    let (numbers, names) = (scores("labels.npy"), scores("names.npy"));
    for task in ["similar", "compactness"] {
        assert_eq!(numbers[task], names[task]);
    }
}

#[test]
fn the_table_names_every_score() {
    let text = printed(&["good.npy", "--labels", "labels.npy", "--protocol", "both"]);
    for part in [
        "good.npy: 80 nodes × 4, 2 classes; seeds: splits 1, folds 0, k-means from 0",
        "accuracy %      100.00 ± 0.00",
        "3 splits, published-code",
        "3 splits, paper",
        "NMI %",
        "homogeneity %",
        "S@5 %",
        "S@10 %",
        "compactness",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn two_embeddings_are_compared() {
    let both = ["good.npy", "poor.npy", "--labels", "labels.npy", "--tasks", "classify"];
    let text = printed(&both);
    assert!(text.contains("first minus second over 3 splits: +"), "{text}");
    assert!(text.contains("better on 3, equal on 0, worse on 0"), "{text}");
    let json: Value =
        serde_json::from_str(&printed(&[&both[..], &["--format", "json"]].concat())).unwrap();
    assert_eq!(json["comparison"]["classify"]["wins"], 3);
    assert_eq!(json["first"]["classify"]["mean"], 100.0);
    assert!(json["second"]["classify"]["mean"].as_f64().unwrap() < 90.0);
    let csv = printed(&[&both[..], &["--format", "csv"]].concat());
    assert!(
        csv.starts_with("embeddings,task,measure,value\ngood.npy,classify,mean,100\n"),
        "{csv}"
    );
    assert!(csv.contains("\nfirst - second,classify,split 3,"), "{csv}");
}

#[test]
fn a_graph_gives_its_labels() {
    let folder = folder();
    let x = Matrix::from_fn(2708, 2, |i, j| ((i + 3 * j) as f32).sin() + 0.1);
    npy::write_f32_matrix(&mut File::create(folder.path().join("x.npy")).unwrap(), &x).unwrap();
    let arguments = ["x.npy", "--labels", "cora", "--tasks", "compactness"];
    let (code, stdout, stderr) = finish(&mut eval(folder.path(), &arguments));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("2,708 nodes × 2, 7 classes"), "{stdout}");
}

#[test]
fn bad_files_are_named_with_their_fault() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    npy::write_f32_matrix(&mut File::create(path("short.npy")).unwrap(), &Matrix::zeros(3, 2))
        .unwrap();
    let mut hole = embeddings(0.1);
    hole.row_mut(5)[0] = f32::NAN;
    npy::write_f32_matrix(&mut File::create(path("hole.npy")).unwrap(), &hole).unwrap();
    fs::write(path("text.npy"), "1 2 3").unwrap();
    npy::write_i64(
        &mut File::create(path("lonely.npy")).unwrap(),
        &[[0; 79].as_slice(), &[1]].concat(),
    )
    .unwrap();
    for (arguments, fault) in [
        (["short.npy", "labels.npy"], "short.npy: 3 embeddings but 80 labels"),
        (["hole.npy", "labels.npy"], "hole.npy: row 5 of the embeddings holds NaN"),
        (["text.npy", "labels.npy"], "text.npy: "),
        (["none.npy", "labels.npy"], "none.npy"),
        (["good.npy", "good.npy"], "good.npy: labels have 2 axes, a vector has 1"),
        (["good.npy", "lonely.npy"], "lonely.npy: classify: class 1 has one member (node 79)"),
        (["good.npy", "nowhere"], "nowhere"),
    ] {
        let [file, labels] = arguments;
        let said = refusal(&mut eval(folder.path(), &[file, "--labels", labels]));
        assert!(said.contains(fault), "no {fault:?} in {said}");
    }
}

#[test]
fn labels_that_are_not_integers_are_refused() {
    let folder = folder();
    let column = Matrix::from_fn(80, 1, |i, _| i as f32 / 2.0);
    let mut bytes = Vec::new();
    npy::write_f32_matrix(&mut bytes, &column).unwrap();
    // The same values as a vector: the header's shape, padded to its old length.
    let start = bytes.windows(7).position(|w| w == b"(80, 1)").unwrap();
    bytes[start..start + 7].copy_from_slice(b"(80,)  ");
    fs::write(folder.path().join("half.npy"), bytes).unwrap();
    let said = refusal(&mut eval(folder.path(), &["good.npy", "--labels", "half.npy"]));
    assert!(said.contains("half.npy: labels are not integers or names"), "{said}");
}

#[test]
fn unknown_tasks_and_protocols_are_refused_with_the_known_ones() {
    let folder = folder();
    for (flag, value, known) in [
        ("--tasks", "classify,sing", "classify, cluster, similar or compactness"),
        ("--protocol", "mine", "published-code, paper or both"),
    ] {
        let mut command = eval(folder.path(), &["good.npy", "--labels", "labels.npy", flag, value]);
        let said = refusal(&mut command);
        assert!(said.contains(known), "{said}");
    }
}

/// All formats that training writes score the same, matched by id with a table in another order.
#[test]
fn every_format_we_write_is_scored() {
    let folder = tempfile::tempdir().unwrap();
    let mut edges = String::from("source,target\n");
    let mut nodes = String::from("id,size,kind\n");
    for i in 0..40 {
        writeln!(edges, "n {i},n {}", (i + 2) % 40).unwrap();
        let turned = 39 - i;
        writeln!(nodes, "n {turned},{},{}", turned % 5, ["x", "y"][turned % 2]).unwrap();
    }
    fs::write(folder.path().join("edges.csv"), edges).unwrap();
    fs::write(folder.path().join("nodes.csv"), nodes).unwrap();
    let graph = ["train", "--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "kind"];
    let formats = ["--format", "npz,parquet,csv,word2vec,projector", "--epochs", "3"];
    let more = ["--out", "run", "--eval-every", "0", "--no-report"];
    let (code, _, stderr) =
        finish(blnn(folder.path()).args(graph).args(formats).args(more).args(crate::common::TINY));
    assert_eq!(code, 0, "{stderr}");
    let scores = |file: &str| {
        let path = format!("run/embeddings.{file}");
        let labels = ["--labels", "nodes.csv", "--label", "kind", "--tasks", "similar,compactness"];
        let arguments = [&[path.as_str()][..], &labels, &["--format", "json"]].concat();
        let (code, stdout, stderr) = finish(&mut eval(folder.path(), &arguments));
        assert_eq!((code, stderr.as_str()), (0, ""), "{file}");
        let json: Value = serde_json::from_str(&stdout).unwrap();
        (json["similar"]["s_at_5"].clone(), json["compactness"].clone())
    };
    let wanted = scores("npy");
    for file in ["npz", "parquet", "csv", "w2v.txt", "vectors.tsv"] {
        assert_eq!(scores(file), wanted, "{file}");
    }
}

#[test]
fn tables_of_other_programs_are_scored_with_or_without_names() {
    let folder = folder();
    let good = embeddings(0.2);
    let line = |i: usize| good.row(i).iter().map(f32::to_string).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..80).map(line).collect();
    let named: Vec<String> = (0..80).map(|i| format!("node{i},{}", line(i))).collect();
    for (file, text) in [
        ("plain.csv", rows.join("\n")),
        ("named.csv", named.join("\n")),
        ("headed.csv", format!("name,0,1,2,3\n{}", named.join("\n"))),
        ("tabs.tsv", rows.join("\n").replace(',', "\t")),
    ] {
        fs::write(folder.path().join(file), text).unwrap();
        let arguments = [file, "--labels", "labels.npy", "--tasks", "similar", "--format", "csv"];
        let (code, stdout, stderr) = finish(&mut eval(folder.path(), &arguments));
        assert_eq!((code, stderr.as_str()), (0, ""), "{file}");
        assert!(stdout.contains("similar,s_at_5,100\n"), "{file}: {stdout}");
    }
    fs::write(folder.path().join("ragged.csv"), "a,1,2\nb,1\n").unwrap();
    let said = refusal(&mut eval(folder.path(), &["ragged.csv", "--labels", "labels.npy"]));
    assert!(said.contains("ragged.csv: line 2: 2 fields, line 1 has 3"), "{said}");
    // Without ids a table of labels is matched in order, and that is said.
    let kinds: Vec<String> = (0..80).map(|i| format!("k{i},{}", i % 2)).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{}", kinds.join("\n"))).unwrap();
    let table = ["--labels", "kinds.csv", "--label", "kind", "--tasks", "similar"];
    let (code, _, stderr) =
        finish(&mut eval(folder.path(), &[&["plain.csv"][..], &table].concat()));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("plain.csv: no ids: rows are matched in order"), "{stderr}");
    let said = refusal(&mut eval(folder.path(), &[&["named.csv"][..], &table].concat()));
    assert!(said.contains("named.csv: row 1: the id `node0` is not in the table"), "{said}");
}

/// Scores belong to the nodes, not to the order in which a file lists them.
#[test]
fn the_order_of_the_rows_does_not_matter() {
    let folder = folder();
    let poor = embeddings(3.0);
    let line = |i: usize| {
        let numbers: Vec<String> = poor.row(i).iter().map(f32::to_string).collect();
        format!("n{i},{}\n", numbers.join(","))
    };
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("straight.csv", (0..80).map(line).collect());
    write("turned.csv", (0..80).rev().map(line).collect());
    write("fewer.csv", (0..60).map(line).collect());
    write("twice.csv", (0..80).chain([7]).map(line).collect());
    let kinds: Vec<String> = (0..80).map(|i| format!("n{i},{}", i % 2)).collect();
    write("kinds.csv", format!("id,kind\n{}\n", kinds.join("\n")));
    let run = |files: &[&str], labels: &[&str]| {
        finish(&mut eval(folder.path(), &[files, labels, &["--format", "json"]].concat()))
    };
    let table = ["--labels", "kinds.csv", "--label", "kind"];
    let (code, stdout, stderr) = run(&["straight.csv", "turned.csv"], &table);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["comparison"]["classify"]["ties"], 3, "{stdout}");
    assert_eq!(json["first"]["cluster"], json["second"]["cluster"]);

    let (code, _, stderr) = run(&["fewer.csv"], &table);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("fewer.csv: 20 of 80 labelled nodes have no embedding"), "{stderr}");
    // Nodes without a kind are no loss.
    write("partly.csv", format!("id,kind\n{}\n", kinds[..70].join("\n")) + "n70,\nn71,\n");
    let partly = ["--labels", "partly.csv", "--label", "kind"];
    let (code, _, stderr) = run(&["fewer.csv"], &partly);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("fewer.csv: 10 of 70 labelled nodes have no embedding"), "{stderr}");
    let refused = |files: &[&str], labels: &[&str], fault: &str| {
        let said = refusal(&mut eval(folder.path(), &[files, labels].concat()));
        assert!(said.contains(fault), "no {fault:?} in {said}");
    };
    refused(
        &["straight.csv", "fewer.csv"],
        &table,
        "hold embeddings of different nodes (80 and 60",
    );
    refused(&["twice.csv"], &table, "twice.csv: row 81: the id `n7` was there before, at 8");
    let vector = ["--labels", "labels.npy"];
    refused(&["straight.csv", "turned.csv"], &vector, "labels in a vector fit one order only");
}

#[test]
fn a_graph_is_matched_by_its_ids() {
    let folder = folder();
    let ids = blnn::data::cora::graph().unwrap().node_ids().unwrap().to_vec();
    let line = |i: usize| format!("{},{},{}\n", ids[i], (i as f32).sin(), (i as f32).cos());
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("straight.csv", (0..ids.len()).map(line).collect());
    write("turned.csv", (0..ids.len()).rev().map(line).collect());
    let strange: Vec<String> = (0..ids.len()).map(|i| format!("paper {i},1,{i}.5")).collect();
    write("strange.csv", strange.join("\n"));
    write("mixed.csv", line(0) + "paper,1,2\n");
    let graph = ["--labels", "cora", "--tasks", "similar,compactness", "--format", "csv"];
    let scores = |file: &str| {
        let (code, stdout, stderr) =
            finish(&mut eval(folder.path(), &[&[file][..], &graph].concat()));
        assert_eq!(code, 0, "{stderr}");
        let scores: Vec<&str> = stdout.lines().filter(|line| !line.contains("seconds")).collect();
        (scores.join("\n").replace(file, ""), stderr)
    };
    assert_eq!(scores("straight.csv"), scores("turned.csv"));
    assert!(scores("strange.csv").1.contains("its ids are not those of the graph"));
    let said = refusal(&mut eval(folder.path(), &[&["mixed.csv"][..], &graph].concat()));
    assert!(said.contains("row 2: the id `paper` is not that of a node of the graph"), "{said}");
}
