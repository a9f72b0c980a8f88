//! `blnn embed`: embeddings by a run that is trained already.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{TINY, blnn, finish, names, read, refusal, signal_when, train};

const FILES: [&str; 6] = ["--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "topic"];

/// A ring of forty; the half of it is the topic.
fn put_tables(folder: &Path) {
    let mut edges = String::from("from,to\n");
    let mut nodes = String::from("node,size,country,topic\n");
    for i in 0..40 {
        writeln!(edges, "n{i},n{}", (i + 1) % 40).unwrap();
        writeln!(nodes, "n{i},{},{},{}", i % 7, ["de", "fr"][i % 2], i / 20).unwrap();
    }
    fs::write(folder.join("edges.csv"), edges).unwrap();
    fs::write(folder.join("nodes.csv"), nodes).unwrap();
}

/// A run on the tables, in `run`.
fn trained(folder: &Path, more: &[&str]) {
    put_tables(folder);
    let short = ["--epochs", "6", "--out", "run", "--eval-every", "0", "--no-report"];
    let mut command = blnn(folder);
    let (code, _, stderr) =
        finish(command.arg("train").args(FILES).args(short).args(TINY).args(more));
    assert_eq!(code, 0, "{stderr}");
}

/// `blnn embed run` with more arguments.
fn embed(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    finish(blnn(folder).args(["embed", "run"]).args(arguments))
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    refusal(blnn(folder).args(["embed", "run"]).args(arguments))
}

#[test]
fn the_training_graph_is_found_and_gets_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let before = names(&folder.path().join("run"));
    assert!(before.contains(&"graph.json".to_owned()), "{before:?}");
    let wanted = read(folder.path().join("run/embeddings.npy"));
    for threads in ["1", "5"] {
        let out = format!("out{threads}");
        let (code, stdout, stderr) =
            embed(folder.path(), &["--threads", threads, "--out", &out, "--json"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("40, called by texts"), "{stderr}");
        let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&told["training_graph"], &told["nodes"]), (&true.into(), &40.into()));
        assert_eq!((&told["epochs"], &told["finished"]), (&6.into(), &true.into()));
        assert_eq!(told["files"][0], format!("{out}/embeddings.npy"));
        assert_eq!(read(folder.path().join(&out).join("embeddings.npy")), wanted);
        let ids = read(folder.path().join(&out).join("node_ids.txt"));
        assert_eq!(ids, read(folder.path().join("run/node_ids.txt")));
    }
    // From another folder, too: the paths are absolute.
    let run = folder.path().join("run").display().to_string();
    let elsewhere = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = finish(blnn(elsewhere.path()).args(["embed", &run, "-o", "here"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("the graph of the training: 40 nodes × 4"), "{stdout}");
    assert_eq!(read(elsewhere.path().join("here/embeddings.npy")), wanted);
    assert_eq!(names(&folder.path().join("run")), before, "nothing is put there");
}

/// One training serves both readings of batch norm's momentum.
#[test]
fn the_statistics_may_be_those_of_the_other_momentum() {
    let folder = tempfile::tempdir().unwrap();
    let [last, averaged] = ["last-view", "averaged"].map(|statistics| {
        let set = format!("statistics={statistics}");
        let run = ["--epochs", "4", "--out", statistics, "--set", &set];
        let (code, _, stderr) = finish(&mut train(folder.path(), &run));
        assert_eq!(code, 0, "{stderr}");
        read(folder.path().join(statistics).join("embeddings.npy"))
    });
    assert!(last != averaged, "both statistics are the same");
    for (run, statistics, wanted) in
        [("last-view", "averaged", &averaged), ("averaged", "last-view", &last)]
    {
        let mut command = blnn(folder.path());
        let flags = ["--statistics", statistics, "--out", "other", "--format", "npy,npz", "--json"];
        let (code, stdout, stderr) = finish(command.args(["embed", run, "--force"]).args(flags));
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains(&format!("\"statistics\":\"{statistics}\"")), "{stdout}");
        assert!(read(folder.path().join("other/embeddings.npy")) == *wanted, "{statistics}");
    }
}

#[test]
fn a_public_data_set_is_found_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = finish(&mut train(folder.path(), &["--epochs", "2", "--out", "run"]));
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = embed(folder.path(), &[]);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.contains("run/embed-cora/embeddings.npy"), "{stdout}");
    let found = read(folder.path().join("run/embed-cora/embeddings.npy"));
    assert_eq!(found, read(folder.path().join("run/embeddings.npy")));
    // A table has names, and this run has none to find them by.
    put_tables(folder.path());
    let stderr = refused(folder.path(), &["--edges", "edges.csv", "--nodes", "nodes.csv"]);
    assert!(stderr.contains("no features.json") && stderr.contains("1433"), "{stderr}");
    let stderr = refused(folder.path(), &["generated-100"]);
    assert!(stderr.contains("have 500 features") && stderr.contains("1,433"), "{stderr}");
}

/// Columns in another order, one too many, a text that is new, and nodes that are.
#[test]
fn new_nodes_are_embedded_by_the_names_of_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let mut edges = fs::read_to_string(folder.path().join("edges.csv")).unwrap();
    edges += "new1,n0\nnew2,n1\n";
    fs::write(folder.path().join("grown.csv"), edges).unwrap();
    let mut nodes = String::from("country,shoes,node,size\n");
    for i in 0..40 {
        writeln!(nodes, "{},,n{i},{}", ["de", "fr"][i % 2], i % 7).unwrap();
    }
    nodes += "it,7,new1,3\nde,,new2,1\n";
    fs::write(folder.path().join("people.csv"), nodes).unwrap();
    let (code, stdout, stderr) = embed(
        folder.path(),
        &["--edges", "grown.csv", "--nodes", "people.csv", "--format", "npy,csv,parquet"],
    );
    assert_eq!(code, 0, "{stderr}");
    for part in [
        "left out  shoes (the run was not trained with it)",
        "unseen    country: 1 node has a text that training never saw, such as `it`",
    ] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    assert!(stdout.contains("grown: 42 nodes × 4"), "{stdout}");
    assert!(stdout.contains("run/embed-grown/embeddings.parquet"), "{stdout}");
    let out = folder.path().join("run/embed-grown");
    let csv = String::from_utf8(read(out.join("embeddings.csv"))).unwrap();
    assert!(csv.lines().last().unwrap().starts_with("new2,"), "{csv}");
    // Provenance is that of the run.
    let parquet = read(out.join("embeddings.parquet"));
    let parquet = String::from_utf8_lossy(&parquet);
    assert!(parquet.contains("blnn.fingerprint") && parquet.contains("hidden_width = 8"));
    // Nodes far from the new ones stay what they were, up to rounding.
    let row = |path: &Path| {
        let all = blnn::data::npy::read_file(path).unwrap().into_matrix().unwrap();
        all.row(20).to_vec()
    };
    let (new, old) =
        (row(&out.join("embeddings.npy")), row(&folder.path().join("run/embeddings.npy")));
    assert!(new.iter().zip(&old).all(|(a, b)| (a - b).abs() < 1e-5), "{new:?} {old:?}");
}

#[test]
fn features_that_differ_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let nodes = fs::read_to_string(folder.path().join("nodes.csv")).unwrap();
    let other = ["--edges", "edges.csv", "--nodes", "other.csv"];
    let text = |table: String, n| table.replace(&format!(",{n},"), &format!(",s{n},"));
    let sizes = (0..7).fold(nodes.clone(), text);
    let cases = [
        (nodes.replace("size", "Size"), vec!["other.csv: lacks a column", "did you mean `Size`?"]),
        (nodes.replace(",de,", ",1,").replace(",fr,", ",2,"), vec!["`country` holds numbers"]),
        (sizes, vec!["`size` holds texts such as `s0`"]),
        (nodes.replace("n0,0,", "n0,zero,"), vec!["other.csv: line 2: column `size`: `zero`"]),
        (nodes.replace("n3,3,", "n3,three,"), vec!["other.csv: line 5: column `size`: `three`"]),
        (nodes.replace("n3,3,", "n3,,"), vec!["other.csv: line 5: the cell of `size` is empty"]),
    ];
    for (table, wanted) in cases {
        fs::write(folder.path().join("other.csv"), table).unwrap();
        let stderr = refused(folder.path(), &other);
        for part in wanted {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
    }
    let stderr = refused(folder.path(), &["edges.csv"]);
    assert!(stderr.contains("`size`, `country` of a table of nodes"), "{stderr}");
    assert!(stderr.contains("--nodes"), "{stderr}");
    let stderr = refused(folder.path(), &["cora"]);
    assert!(stderr.contains("cora: the run was trained with the columns"), "{stderr}");
    let stderr = refused(folder.path(), &["--label", "topic"]);
    assert!(stderr.contains("--label") && stderr.contains("--edges"), "{stderr}");
    let stderr = refused(folder.path(), &[&other[..2], &["--features", "degree"]].concat());
    assert!(stderr.contains("--features degree"), "{stderr}");
    assert!(!folder.path().join("run/embed-edges").exists(), "nothing was begun");
}

#[test]
fn a_matrix_is_matched_by_its_width() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let matrix = |name: &str, cols: usize| {
        let mut bytes = Vec::new();
        let x = blnn::Matrix::from_fn(6, cols, |i, j| (i * j) as f32 - 2.0);
        blnn::data::npy::write_f32_matrix(&mut bytes, &x).unwrap();
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    matrix("x.npy", 3);
    matrix("wide.npy", 5);
    fs::write(folder.path().join("pairs.csv"), "0,1\n1,2\n2,3\n3,4\n4,5\n").unwrap();
    let own = ["--edges", "pairs.csv", "--nodes", "x.npy", "--epochs", "2", "--out", "run"];
    let (code, _, stderr) = finish(blnn(folder.path()).arg("train").args(own).args(TINY));
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = embed(folder.path(), &["--edges", "pairs.csv", "--nodes", "x.npy"]);
    assert_eq!(code, 0, "{stderr}");
    let found = read(folder.path().join("run/embed-pairs/embeddings.npy"));
    assert_eq!(found, read(folder.path().join("run/embeddings.npy")));
    let stderr = refused(folder.path(), &["--edges", "pairs.csv", "--nodes", "wide.npy"]);
    assert!(stderr.contains("wide.npy: has 5 features"), "{stderr}");
    let stderr = refused(folder.path(), &["--edges", "edges.csv", "--nodes", "nodes.csv"]);
    assert!(stderr.contains("a matrix of 3 features"), "{stderr}");
}

#[test]
fn files_are_replaced_only_on_demand_and_never_those_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    assert_eq!(embed(folder.path(), &[]).0, 0);
    let stderr = refused(folder.path(), &[]);
    assert!(stderr.contains("run/embed-edges/embeddings.npy exists"), "{stderr}");
    assert!(stderr.contains("--force") && stderr.contains("--out"), "{stderr}");
    assert_eq!(embed(folder.path(), &["--force"]).0, 0);
    // All files in a folder are of one model.
    assert!(refused(folder.path(), &["--format", "csv"]).contains("embeddings.npy exists"));
    assert_eq!(embed(folder.path(), &["--format", "csv", "--force"]).0, 0);
    assert_eq!(names(&folder.path().join("run/embed-edges")), ["embeddings.csv"]);
    fs::create_dir(folder.path().join("other")).unwrap();
    let checkpoint = "checkpoint.safetensors";
    let [from, to] = ["run", "other"].map(|run| folder.path().join(run).join(checkpoint));
    fs::copy(from, to).unwrap();
    // One whose checkpoint was removed to save space.
    fs::create_dir(folder.path().join("bare")).unwrap();
    fs::write(folder.path().join("bare/summary.json"), "{}").unwrap();
    for out in ["run", "./run/", "other", "bare"] {
        let stderr = refused(folder.path(), &["--force", "--out", out]);
        assert!(stderr.contains("is the folder of a run"), "{stderr}");
    }
}

#[test]
fn a_graph_that_changed_or_went_is_told() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let nodes = folder.path().join("nodes.csv");
    let text = fs::read_to_string(&nodes).unwrap();
    fs::write(&nodes, text.replace("n3,3,", "n3,4,")).unwrap();
    let stderr = refused(folder.path(), &[]);
    for part in ["nodes.csv changed since the run was trained", "blnn embed run --edges /"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    let (code, _, stderr) = finish(blnn(folder.path()).args(["report", "run", "--map", "pca"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("without classes and degrees"), "{stderr}");
    assert!(stderr.contains("changed since") && !stderr.contains("name the graph"), "{stderr}");
    fs::remove_file(&nodes).unwrap();
    let stderr = refused(folder.path(), &[]);
    assert!(stderr.contains("nodes.csv, which is not there any more"), "{stderr}");
    assert!(stderr.contains("--edges FILE --nodes FILE --label topic"), "{stderr}");
    // A run from before files were remembered.
    fs::remove_file(folder.path().join("run/graph.json")).unwrap();
    let stderr = refused(folder.path(), &[]);
    assert!(stderr.contains("does not say where the graph `edges` is"), "{stderr}");
    fs::write(folder.path().join("run/graph.json"), "{\"edges\": 3}").unwrap();
    let stderr = refused(folder.path(), &[]);
    assert!(stderr.contains("graph.json: does not say where a graph is"), "{stderr}");
}

#[test]
fn a_report_finds_the_users_own_graph() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let page = |arguments: &[&str]| {
        let mut command = blnn(folder.path());
        let (code, _, stderr) =
            finish(command.args(["report", "run", "--map", "pca"]).args(arguments));
        assert_eq!((code, stderr.contains("without classes")), (0, false), "{stderr}");
        let text = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
        let (_, after) = text.split_once("type=\"application/json\">").unwrap();
        let data: serde_json::Value =
            serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap();
        data["map"]["colourings"][0]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(page(&[]), "class");
    fs::remove_file(folder.path().join("run/graph.json")).unwrap();
    assert_eq!(page(&FILES), "class");
}

#[test]
fn a_run_that_was_stopped_says_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let long = ["--epochs", "1000000", "--out", "run", "--eval-every", "0", "--no-report"];
    let mut command = blnn(folder.path());
    command.arg("train").args(FILES).args(long).args(TINY);
    // Killed: there is no summary either.
    signal_when(&mut command, &folder.path().join("run/checkpoint.safetensors"), "KILL");
    assert!(!folder.path().join("run/summary.json").exists());
    let (code, stdout, stderr) = embed(folder.path(), &[]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("not finished") && stderr.contains("of 1,000,000"), "{stderr}");
    assert!(stdout.contains("after epoch "), "{stdout}");
    fs::remove_file(folder.path().join("run/checkpoint.safetensors")).unwrap();
    let stderr = refused(folder.path(), &[]);
    assert!(stderr.contains("run: holds no checkpoint.safetensors"), "{stderr}");
    let stderr = refusal(blnn(folder.path()).args(["embed", "nowhere"]));
    assert!(stderr.contains("nowhere: does not exist"), "{stderr}");
}

/// A resumed run that is refused because its graph is another one keeps what it knows.
#[test]
fn a_refused_resume_leaves_the_features_alone() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path(), &[]);
    let kept =
        ["features.json", "graph.json"].map(|name| read(folder.path().join("run").join(name)));
    let resume = ["train", "edges.csv", "--out", "run", "--resume"];
    let stderr = refusal(blnn(folder.path()).args(resume));
    assert!(stderr.contains("another graph"), "{stderr}");
    let now =
        ["features.json", "graph.json"].map(|name| read(folder.path().join("run").join(name)));
    assert_eq!(now, kept);
}

/// Half of the topics are empty: trained on, not scored.
#[test]
fn nodes_without_a_label_are_left_out_of_scores() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let text = fs::read_to_string(folder.path().join("nodes.csv")).unwrap();
    let some = text.lines().enumerate().map(|(line, text)| match (line, text.rsplit_once(',')) {
        (1.., Some((rest, _))) if line % 4 == 0 => format!("{rest},\n"),
        _ => format!("{text}\n"),
    });
    fs::write(folder.path().join("nodes.csv"), some.collect::<String>()).unwrap();
    let short = ["--epochs", "4", "--out", "run", "--save", "projector"];
    let mut command = blnn(folder.path());
    let (code, stdout, stderr) = finish(command.arg("train").args(FILES).args(short).args(TINY));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("10 of 40 nodes have none and are not scored"), "{stderr}");
    assert!(stdout.contains("accuracy"), "{stdout}");
    let metadata = fs::read_to_string(folder.path().join("run/embeddings.metadata.tsv")).unwrap();
    assert!(metadata.contains("id\tlabel\n") && metadata.contains("n3\t\n"), "{metadata}");
    let page = fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("10 of 40 nodes have no class"), "the page says so");
    let eval = ["eval", "run/embeddings.npy", "--labels", "nodes.csv", "--label", "topic"];
    let (code, stdout, stderr) =
        finish(blnn(folder.path()).args(eval).args(["--tasks", "similar", "--format", "json"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("10 of 40 nodes have no label and are not scored"), "{stderr}");
    assert!(stdout.contains("\"nodes\": 30"), "{stdout}");
    let oracle = ["train", "--method", "bgrl-clean", "--out", "oracle"];
    let stderr = refusal(blnn(folder.path()).args(oracle).args(FILES));
    assert!(stderr.contains("needs a label of every node"), "{stderr}");
}
