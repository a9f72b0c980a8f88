//! `blnn plan`, and the refusal of runs that do not fit.

use std::path::Path;

use serde_json::Value;

use crate::common::{TINY, blnn, finish, names, refusal, train};

fn plan(arguments: &[&str]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = finish(blnn(folder.path()).arg("plan").args(arguments));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(names(folder.path()), [""; 0], "nothing is written");
    (stdout, stderr)
}

fn object(arguments: &[&str]) -> Value {
    serde_json::from_str(&plan(&[arguments, &["--json"]].concat()).0).unwrap()
}

#[test]
fn a_plan_names_memory_time_and_disk() {
    let arguments = ["--calibrate", "1", "--epochs", "50", "--set", "hidden_width=16"];
    let (stdout, _) = plan(&[&arguments[..], &["--set", "embedding_width=8"]].concat());
    for part in [
        "cora: 2,708 nodes, 5,278 edges, 1,433 features",
        "widths 16 (hidden), 8 (embedding)",
        "MB at the peak (preparing",
        "are available",
        "for 50 epochs (",
        "in the run folder",
        "blnn train cora --set hidden_width=16 --set embedding_width=8 --epochs 50",
    ] {
        assert!(stdout.contains(part), "no {part:?} in\n{stdout}");
    }
}

#[test]
fn a_graph_too_large_for_any_machine_is_planned_for_all_the_same() {
    let arguments = ["generated-100000000", "--calibrate", "0"];
    let found = object(&arguments);
    assert_eq!(found["nodes"], 100_000_000);
    assert!(found["peak_memory_bytes"].as_f64().unwrap() > 5e11, "{found}");
    assert_eq!((&found["fits"], &found["seconds"]), (&Value::Bool(false), &Value::Null));
    let (stdout, _) = plan(&arguments);
    assert!(stdout.contains("does not fit") && stdout.contains("hidden_width="), "{stdout}");
}

#[test]
fn what_does_not_fit_is_not_even_measured() {
    let (stdout, stderr) = plan(&["--sizes", "1000,2000,1000000000,5"]);
    assert!(stdout.contains("does not fit"), "{stdout}");
    assert!(stderr.contains("the time is not measured"), "{stderr}");
    assert!(!stdout.contains("an epoch"), "{stdout}");
}

#[test]
fn a_method_that_trains_on_labels_is_planned_for_a_sample() {
    let narrow = ["--set", "hidden_width=8", "--set", "embedding_width=4"];
    let arguments = ["generated-60000", "--method", "bgrl-clean", "--calibrate", "1"];
    let (stdout, _) = plan(&[&arguments[..], &narrow].concat());
    assert!(stdout.contains("were measured and scaled up"), "{stdout}");
}

#[test]
fn sizes_stand_for_a_graph() {
    let sizes = ["--sizes", "20000,100000,50", "--calibrate", "1"];
    let found = object(&[&sizes[..], &TINY].concat());
    assert_eq!((&found["entries"], &found["stored_values"]), (&200_000.into(), &1_000_000.into()));
    assert!(found["seconds_per_epoch"].as_f64().unwrap() > 0.0, "{found}");
    let few = object(&["--sizes", "20000,100000,50,3", "--calibrate", "0"]);
    assert_eq!(few["stored_values"], 60_000);
    // As large as sizes may be: more than any machine has, and still a number.
    let huge = object(&["--sizes", "4294967296,1099511627776,16777216", "--calibrate", "0"]);
    assert!(huge["memory_bytes"]["training"].as_f64().unwrap() > 4e17, "{huge}");
    let folder = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["--sizes", "10,20"][..], "NODES,EDGES,FEATURES"),
        (&["--sizes", "10,20,x"], "--sizes"),
        (&["--sizes", "1,1,1", "cora"], "cannot be used with"),
        (&["--sizes", "4294967297,1,1"], "4294967297 nodes; give 1 to 2^32"),
        (&["--sizes", "1,1,0"], "0 features; give 1 to 2^32"),
        (&["--sizes", "4294967296,1,4294967296"], "values in all; give 2^56 at most"),
        (&["nowhere"], "unknown graph"),
        (&["--set", "epochs=0"], "epochs"),
    ] {
        let stderr = refusal(blnn(folder.path()).arg("plan").args(arguments));
        assert!(stderr.contains(wanted), "{stderr}");
    }
}

/// The estimate is held against what the process really took.
#[test]
fn the_estimate_is_near_what_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let bench = ["bench", "generated-20000", "--epochs", "1", "--precision", "f32"];
    let (code, stdout, stderr) = finish(blnn(folder.path()).args(bench).args(["--format", "json"]));
    assert_eq!(code, 0, "{stderr}");
    let measured: Value = serde_json::from_str(&stdout).unwrap();
    let measured = 1e6 * measured["peak_rss_mb"].as_f64().unwrap();
    let planned = object(&["generated-20000", "--calibrate", "0", "--precision", "f32"]);
    let estimate = planned["memory_bytes"]["training"].as_f64().unwrap();
    let ratio = estimate / measured;
    assert!((0.9..1.15).contains(&ratio), "{estimate} against {measured}: {ratio}");
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    refusal(&mut train(folder, arguments))
}

#[test]
fn a_run_that_does_not_fit_is_refused_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let limited = ["--epochs", "2", "--assume-memory", "20000000", "--out", "run"];
    let stderr = refused(folder.path(), &limited);
    for part in ["this run takes about", "20 MB are available", "--no-memory-check", "_width="] {
        assert!(stderr.contains(part), "no {part:?} in {stderr}");
    }
    assert_eq!(names(folder.path()), [""; 0], "nothing was started");
    let enough = ["--epochs", "2", "--assume-memory", "900000000", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &enough)).0, 0);
    // The widths of a run that is there cannot change.
    let stderr = refused(folder.path(), &[&limited[..], &["--resume"]].concat());
    assert!(!stderr.contains("_width=") && stderr.contains("more memory"), "{stderr}");
    let anyway = ["--epochs", "2", "--no-memory-check", "--out", "other"];
    assert_eq!(finish(&mut train(folder.path(), &anyway)).0, 0);
}

/// Making it would take minutes and all memory.
#[test]
fn a_generated_graph_that_does_not_fit_is_not_even_made() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["generated-100000000", "--assume-memory", "1000000000"];
    let stderr = refused(folder.path(), &arguments);
    assert!(stderr.contains("1.0 GB are available"), "{stderr}");
}
