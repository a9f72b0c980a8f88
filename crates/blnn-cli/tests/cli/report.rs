//! `blnn report` and `blnn similar` on a trained run.

use std::fs;
use std::path::Path;

use crate::common::{TINY, blnn, finish, refusal, train};

/// A run on Cora in `run`, without its page.
fn trained(folder: &Path) {
    let (code, _, stderr) = finish(&mut train(folder, &["--epochs", "3", "--out", "run"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(!folder.join("run/report.html").exists(), "--no-report");
}

/// What a page holds as data.
fn data(page: &Path) -> serde_json::Value {
    let text = fs::read_to_string(page).unwrap();
    let (_, after) = text.split_once("type=\"application/json\">").unwrap();
    serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn training_ends_with_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = blnn(folder.path());
    command.arg("train").args(TINY).args(["--epochs", "2", "--eval-every", "0", "--out", "run"]);
    let (code, stdout, stderr) = finish(command.arg("--json"));
    assert_eq!(code, 0, "{stderr}");
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(told["report"], "run/report.html");
    let data = data(&folder.path().join("run/report.html"));
    assert_eq!(data["title"], "BLNN on cora");
    assert_eq!(data["map"]["nodes"], 2708);
    assert!(data["map"]["note"].as_str().unwrap().starts_with("t-SNE"), "{}", data["map"]["note"]);
}

#[test]
fn a_page_shows_classes_clusters_and_degrees() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path());
    let mut command = blnn(folder.path());
    let (code, stdout, stderr) =
        finish(command.args(["report", "run", "-o", "page.html", "--map", "pca"]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "page.html\n", ""));
    let data = data(&folder.path().join("page.html"));
    let names = |list: &serde_json::Value, key: &str| -> Vec<String> {
        let name = |v: &serde_json::Value| v[key].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(names(&data["map"]["colourings"], "name"), ["class", "cluster", "degree"]);
    let charts = names(&data["charts"], "id");
    for wanted in ["loss", "learning-rate", "ema", "rank", "homophily", "anchor", "compactness"] {
        assert!(charts.iter().any(|chart| chart == wanted), "{wanted} of {charts:?}");
    }
    assert!(data["map"]["note"].as_str().unwrap().starts_with("PCA"));
}

#[test]
fn a_page_needs_its_own_graph_or_none() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path());
    let summary = folder.path().join("run/summary.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replace("\"cora\"", "\"mine\"")).unwrap();
    let mut command = blnn(folder.path());
    let (code, _, stderr) = finish(command.args(["report", "run", "--map", "pca"]));
    assert_eq!(code, 0);
    assert!(stderr.contains("blnn report run GRAPH"), "{stderr}");
    let data = data(&folder.path().join("run/report.html"));
    assert_eq!(data["map"]["colourings"][0]["name"], "cluster");

    let checkpoint = folder.path().join("run/checkpoint.safetensors");
    fs::remove_file(&checkpoint).unwrap();
    fs::write(folder.path().join("run/embeddings.npy"), b"not numbers").unwrap();
    let stderr = refusal(blnn(folder.path()).args(["report", "run"]));
    assert!(stderr.contains("embeddings.npy"), "{stderr}");
    let stderr = refusal(blnn(folder.path()).args(["report", "nowhere"]));
    assert!(stderr.contains("nowhere: does not exist"), "{stderr}");
}

#[test]
fn similar_nodes_are_listed_by_id() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path());
    let similar = |arguments: &[&str]| {
        let mut command = blnn(folder.path());
        finish(command.args(["similar", "run"]).args(arguments))
    };
    let (code, stdout, _) = similar(&["35", "40", "-k", "3", "--format", "json"]);
    assert_eq!(code, 0);
    let lines: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["id"]), (2, &serde_json::json!("40")));
    let found = lines[0]["similar"].as_array().unwrap();
    let cosines: Vec<f64> = found.iter().map(|n| n["similarity"].as_f64().unwrap()).collect();
    assert!(cosines.len() == 3 && cosines.is_sorted_by(|a, b| a >= b), "{cosines:?}");
    let (_, stdout, _) = similar(&["35"]);
    assert_eq!(stdout.lines().count(), 11, "{stdout}");
    assert!(stdout.starts_with("similar to 35\n   1  "), "{stdout}");
}

#[test]
fn an_unknown_node_is_answered_with_its_likes() {
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path());
    let stderr = refusal(blnn(folder.path()).args(["similar", "run", "1061217"]));
    assert!(stderr.contains("there is no node `1061217`; did you mean `1061127`"), "{stderr}");
    assert!(stderr.contains("run/node_ids.txt"), "{stderr}");
    fs::remove_file(folder.path().join("run/embeddings.npy")).unwrap();
    let stderr = refusal(blnn(folder.path()).args(["similar", "run", "35"]));
    assert!(stderr.contains("--resume"), "{stderr}");
}

#[test]
fn similar_nodes_are_found_in_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "id,a,b\nann,1,0\nbob,0.9,0.1\ncy,0,1\n";
    fs::write(folder.path().join("vectors.csv"), rows).unwrap();
    fs::create_dir(folder.path().join("later")).unwrap();
    let matrix = blnn::Matrix::from_vec(2, 1, vec![1.0, -1.0]);
    let mut bytes = Vec::new();
    blnn::data::npy::write_f32_matrix(&mut bytes, &matrix).unwrap();
    fs::write(folder.path().join("later/embeddings.npy"), bytes).unwrap();
    let similar = |arguments: &[&str]| {
        let (code, stdout, stderr) =
            finish(blnn(folder.path()).arg("similar").args(arguments).args(["-k", "1"]));
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    assert_eq!(similar(&["vectors.csv", "ann"]), "similar to ann\n   1  bob       0.9939\n");
    // Without ids rows are called by their numbers, with them by their names.
    assert_eq!(similar(&["later", "0"]), "similar to 0\n   1  1         -1.0000\n");
    fs::write(folder.path().join("later/node_ids.txt"), "x\ny\n").unwrap();
    assert_eq!(similar(&["later", "y"]), "similar to y\n   1  x         -1.0000\n");
    // An index and classes are no part of the vectors.
    let frame = ",id,label,a,b\n0,ann,7,1,0\n1,bob,-7,0.9,0.1\n2,cy,7,0,1\n";
    fs::write(folder.path().join("frame.csv"), frame).unwrap();
    assert_eq!(similar(&["frame.csv", "ann"]), "similar to ann\n   1  bob       0.9939\n");
    let (_, _, stderr) = finish(blnn(folder.path()).args(["similar", "frame.csv", "ann"]));
    let told = "left out column 1 (the index of a data frame), `label` (called as the classes are)";
    assert_eq!(stderr, format!("frame.csv: {told}\n"));
    let stderr = refusal(blnn(folder.path()).args(["similar", "vectors.csv", "bov"]));
    assert!(stderr.contains("did you mean `bob`") && stderr.contains("vectors.csv"), "{stderr}");
}
