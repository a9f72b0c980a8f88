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
        (["hole.npy", "labels.npy"], "hole.npy: row 6 of 80 (node 5) holds NaN"),
        (["text.npy", "labels.npy"], "text.npy: "),
        (["none.npy", "labels.npy"], "none.npy"),
        (["good.npy", "good.npy"], "good.npy: labels have 2 axes, a vector has 1"),
        (["good.npy", "lonely.npy"], "lonely.npy: classify: class `1` has one member (node 79)"),
        (["good.npy", "nowhere"], "nowhere"),
    ] {
        let [file, labels] = arguments;
        let tasks = ["--tasks", "classify,cluster"];
        let said =
            refusal(&mut eval(folder.path(), &[&[file, "--labels", labels][..], &tasks].concat()));
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
    let told = "its ids are not the numbers of the labels";
    for (file, text, told) in [
        ("plain.csv", rows.join("\n"), ""),
        ("named.csv", named.join("\n"), told),
        ("headed.csv", format!("name,0,1,2,3\n{}", named.join("\n")), told),
        ("tabs.tsv", rows.join("\n").replace(',', "\t"), ""),
    ] {
        fs::write(folder.path().join(file), text).unwrap();
        let arguments = [file, "--labels", "labels.npy", "--tasks", "similar", "--format", "csv"];
        let (code, stdout, stderr) = finish(&mut eval(folder.path(), &arguments));
        assert_eq!((code, stderr.is_empty()), (0, told.is_empty()), "{file}: {stderr}");
        assert!(stderr.contains(told), "{file}: {stderr}");
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
    assert!(said.contains("named.csv: none of its ids is in the table of labels"), "{said}");
    assert!(said.contains("`node0`") && said.contains("`k0`; name the table's"), "{said}");
}

/// Writes embeddings of `n0` to `n79` with a name, a class and the row's number before each row.
fn put_frame(folder: &Path, name: &str, header: &str, fields: fn(usize) -> String) {
    let good = embeddings(0.2);
    let line = |i: usize| {
        let numbers: Vec<String> = good.row(i).iter().map(f32::to_string).collect();
        format!("{}{}\n", fields(i), numbers.join(","))
    };
    let rows: String = (0..80).map(line).collect();
    fs::write(folder.join(name), format!("{header}e0,e1,e2,e3\n{rows}")).unwrap();
}

/// An index and the classes, which a data frame may hold too, are no dimensions.
#[test]
fn columns_that_are_no_vectors_are_left_out_and_told() {
    let folder = folder();
    put_frame(folder.path(), "plain.csv", "id,", |i| format!("n{i},"));
    put_frame(folder.path(), "index.csv", ",id,", |i| format!("{},n{i},", 79 - i));
    put_frame(folder.path(), "merged.csv", "id,kind,", |i| format!("n{i},{},", i % 2));
    let score = |file: &str| {
        let labels = ["--labels", "merged.csv", "--label", "kind", "--tasks", "compactness"];
        let (code, stdout, stderr) =
            finish(&mut eval(folder.path(), &[&[file][..], &labels].concat()));
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("80 nodes × 4, 2 classes"), "{stdout}");
        let line = stdout.lines().find(|line| line.starts_with("compactness")).unwrap().to_owned();
        (line[..45].to_owned(), stderr)
    };
    let (wanted, silence) = score("plain.csv");
    assert_eq!(silence, "");
    let told = "index.csv: left out column 1 (the index of a data frame)\n";
    assert_eq!(score("index.csv"), (wanted.clone(), told.to_owned()));
    let told = "merged.csv: left out `kind` (called as the classes are)\n";
    assert_eq!(score("merged.csv"), (wanted, told.to_owned()));
}

/// A class of one node makes two of the tasks impossible, not all.
#[test]
fn what_the_labels_allow_is_scored() {
    let folder = folder();
    put_frame(folder.path(), "good.csv", "id,", |i| format!("n{i},"));
    let kind = |i: usize| if i == 5 { "rare" } else { ["dog", "cat"][i % 2] };
    let kinds: Vec<String> = (0..80).map(|i| format!("n{i},{}", kind(i))).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{}", kinds.join("\n"))).unwrap();
    let arguments = ["good.csv", "--labels", "kinds.csv", "--label", "kind", "--format", "json"];
    let (code, stdout, stderr) = finish(&mut eval(folder.path(), &arguments));
    assert_eq!(code, 0, "{stderr}");
    let scores: Value = serde_json::from_str(&stdout).unwrap();
    let has = |task: &str| scores.get(task).is_some_and(Value::is_object);
    assert_eq!([has("classify"), has("cluster"), has("similar")], [false, true, true], "{stdout}");
    for task in ["classify", "compactness"] {
        let told =
            format!("kinds.csv: not scored: {task}: class `rare` has one member (node `n5`)");
        assert!(stderr.contains(&told), "{stderr}");
    }
    let asked = [&arguments[..], &["--tasks", "classify,similar"]].concat();
    let said = refusal(&mut eval(folder.path(), &asked));
    assert!(said.contains("kinds.csv: classify: class `rare` has one member"), "{said}");
    // Where nothing can be scored, the first reason is told.
    let same: Vec<String> = (0..8).map(|i| format!("n{i},dog")).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{}", same.join("\n"))).unwrap();
    let arguments = ["good.csv", "--labels", "kinds.csv", "--label", "kind", "--tasks", "similar"];
    let said = refusal(&mut eval(folder.path(), &arguments));
    assert!(said.contains("similar: 8 nodes have no 10 nearest others"), "{said}");
}

/// Scores by a column that the model saw are told to be worth nothing.
#[test]
fn a_feature_that_is_scored_by_is_warned_of() {
    let folder = folder();
    let kinds: Vec<String> = (0..80).map(|i| format!("n{i},{}", ["x", "y"][i % 2])).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{}", kinds.join("\n"))).unwrap();
    let ids: Vec<String> = (0..80).map(|i| format!("n{i}")).collect();
    fs::write(folder.path().join("node_ids.txt"), ids.join("\n")).unwrap();
    let warned = |column: &str| {
        let features = format!(
            r#"{{"features": [{{"name": "f", "from": "text", "column": "{column}", "text": "x"}}]}}"#
        );
        fs::write(folder.path().join("features.json"), features).unwrap();
        let labels = ["--labels", "kinds.csv", "--label", "kind", "--tasks", "compactness"];
        let (code, _, stderr) =
            finish(&mut eval(folder.path(), &[&["good.npy"][..], &labels].concat()));
        assert_eq!(code, 0, "{stderr}");
        stderr
    };
    assert_eq!(warned("size"), "");
    let stderr = warned("kind");
    assert!(
        stderr.contains("warning: good.npy: the run was trained with the column `kind`"),
        "{stderr}"
    );
    assert!(stderr.contains("train with --label kind"), "{stderr}");
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
    // Nor are those that the table does not list.
    write("short.csv", format!("id,kind\n{}\n", kinds[..50].join("\n")));
    let (code, stdout, stderr) =
        run(&["turned.csv"], &["--labels", "short.csv", "--label", "kind"]);
    assert_eq!((code, stderr.as_str()), (0, "30 of 80 nodes have no label and are not scored\n"));
    assert!(stdout.contains("\"nodes\": 50"), "{stdout}");
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

/// The numbers of the nodes in an order that is not theirs, nor keeps their classes.
fn shuffled() -> impl Iterator<Item = usize> {
    (0..80).step_by(2).chain((1..80).step_by(2))
}

/// What is said of embeddings whose similarity is perfect if each row has found its label.
fn note_of_perfect_match(folder: &Path, arguments: &[&str]) -> String {
    let similar = ["--tasks", "similar", "--format", "csv"];
    let (code, stdout, stderr) = finish(&mut eval(folder, &[arguments, &similar].concat()));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("similar,s_at_5,100\n"), "{arguments:?}: {stdout}");
    stderr
}

/// As gensim writes them, most frequent first.
#[test]
fn ids_that_number_the_labels_of_a_vector_are_matched() {
    let folder = folder();
    let good = embeddings(0.2);
    let line = |i: usize| {
        let numbers: Vec<String> = good.row(i).iter().map(f32::to_string).collect();
        format!("{i} {}\n", numbers.join(" "))
    };
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("shuffled.txt", format!("80 4\n{}", shuffled().map(line).collect::<String>()));
    write("straight.txt", format!("80 4\n{}", (0..80).map(line).collect::<String>()));
    let note = |file| note_of_perfect_match(folder.path(), &[file, "--labels", "labels.npy"]);
    assert_eq!(
        note("shuffled.txt"),
        "shuffled.txt: rows are matched by id: id 0 gets the first label\n"
    );
    assert_eq!(note("straight.txt"), "");
    // The ids beside an array count as those in a file do.
    let order: Vec<usize> = shuffled().collect();
    let rows = Matrix::from_fn(80, 4, |i, j| good.row(order[i])[j]);
    let array = folder.path().join("rows.npy");
    npy::write_f32_matrix(&mut File::create(array).unwrap(), &rows).unwrap();
    let lines: Vec<String> = order.iter().map(usize::to_string).collect();
    write("node_ids.txt", lines.join("\n"));
    assert!(note("rows.npy").contains("node_ids.txt: rows are matched by id"));
}

/// Ids beside two arrays say that one of them is not in the order of the labels.
#[test]
fn names_beside_two_arrays_must_agree_for_a_vector_of_labels() {
    let folder = folder();
    let names: Vec<String> = (0..80).map(|i| format!("n{i}")).collect();
    let turned: Vec<String> = names.iter().rev().cloned().collect();
    for (run, ids) in [("one", &names), ("two", &turned)] {
        let run = folder.path().join(run);
        fs::create_dir(&run).unwrap();
        let file = &mut File::create(run.join("embeddings.npy")).unwrap();
        npy::write_f32_matrix(file, &embeddings(0.2)).unwrap();
        fs::write(run.join("node_ids.txt"), ids.join("\n")).unwrap();
    }
    let files = ["one/embeddings.npy", "two/embeddings.npy", "--labels", "labels.npy"];
    let said = refusal(&mut eval(folder.path(), &files));
    assert!(said.contains("labels in a vector fit one order only"), "{said}");
    fs::write(folder.path().join("two/node_ids.txt"), names.join("\n")).unwrap();
    assert_eq!(finish(&mut eval(folder.path(), &files)).0, 0);
}

#[test]
fn rows_without_ids_are_the_ids_of_a_table_that_numbers_them() {
    let folder = folder();
    let line = |i| format!("{i},{}\n", i % 2);
    let kinds: String = shuffled().map(line).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{kinds}")).unwrap();
    let arguments = ["good.npy", "--labels", "kinds.csv", "--label", "kind"];
    let note = note_of_perfect_match(folder.path(), &arguments);
    let told = "good.npy: no ids: rows are matched by the ids of the table of labels";
    assert!(note.starts_with(told), "{note}");
}

/// An array that is a row short would be matched with its neighbours' ids.
#[test]
fn a_list_of_ids_has_no_header() {
    let folder = folder();
    let ids: Vec<String> = (0..81).map(|i| format!("n{i}")).collect();
    fs::write(folder.path().join("node_ids.txt"), ids.join("\n")).unwrap();
    let line = |(i, id)| format!("{id},{}\n", i % 2);
    let kinds: String = ids.iter().enumerate().map(line).collect();
    fs::write(folder.path().join("kinds.csv"), format!("id,kind\n{kinds}")).unwrap();
    let arguments = ["good.npy", "--labels", "kinds.csv", "--label", "kind"];
    let said = refusal(&mut eval(folder.path(), &arguments));
    assert!(said.contains("node_ids.txt: 81 ids for 80 embeddings in good.npy"), "{said}");
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
    let said = refusal(&mut eval(folder.path(), &[&["strange.csv"][..], &graph].concat()));
    assert!(said.contains("strange.csv: none of its ids is that of a node of the graph"), "{said}");
    let said = refusal(&mut eval(folder.path(), &[&["mixed.csv"][..], &graph].concat()));
    assert!(said.contains("row 2: the id `paper` is not that of a node of the graph"), "{said}");
}
