//! `blnn bench`, end to end.

use crate::common::finish;

#[test]
fn one_object_a_graph_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["bench", "cora", "cora", "--epochs", "2", "--threads", "1", "--precision", "f32"];
    let command = &mut crate::common::blnn(folder.path());
    let (code, stdout, stderr) = finish(command.args(arguments).args(["--format", "json"]));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    for line in stdout.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["graph"], "cora");
        assert_eq!((&object["method"], &object["precision"]), (&"blnn".into(), &"f32".into()));
        assert!(object["kernels"].as_str().unwrap().ends_with("vectors, f32 products"));
        assert_eq!(object["threads"], 1);
        assert!(object["seconds_per_epoch"].as_f64().unwrap() > 0.0);
        let peak = object["peak_rss_mb"].as_f64().unwrap();
        assert!((1.0..2000.0).contains(&peak), "{peak} MB");
        let stages = object["stages"].as_object().unwrap();
        let total: f64 = stages.values().map(|v| v.as_f64().unwrap()).sum();
        assert!((total - 1.0).abs() < 1e-9, "{stages:?}");
        let rates = object["rates"].as_object().unwrap();
        assert!(rates["predict"]["gflops"].as_f64().unwrap() > 0.0, "{rates:?}");
        assert!(rates["gather"]["gathered_gbs"].as_f64().unwrap() > 0.0, "{rates:?}");
    }
    assert!(crate::common::names(folder.path()).is_empty(), "a bench leaves no files");
}

#[test]
fn a_table_for_people() {
    let folder = tempfile::tempdir().unwrap();
    let command = &mut crate::common::blnn(folder.path());
    let (code, stdout, stderr) =
        finish(command.args(["bench", "--epochs", "1", "--method", "bgrl", "--precision", "bf16"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("bf16"), "{stdout}");
    assert!(stdout.contains("ms/epoch") && stdout.contains("cora"), "{stdout}");
    assert!(stdout.contains("bgrl"), "{stdout}");
}

#[test]
fn a_graph_that_cannot_be_measured_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let command = &mut crate::common::blnn(folder.path());
    let stderr =
        crate::common::refusal(command.args(["bench", "no/such/graph.npz", "--epochs", "1"]));
    assert!(stderr.contains("no/such/graph.npz"), "{stderr}");
}
