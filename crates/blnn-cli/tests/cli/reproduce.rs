//! `blnn reproduce`, end to end: all targets, and how a plan goes on after being stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{TINY, blnn, finish, names, read, refusal, signal_when, told};

/// `blnn reproduce` of tiny models on Cora, with more arguments.
fn reproduce(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = blnn(folder);
    command.arg("reproduce").args(arguments).args(TINY).args(["--out", "out"]);
    // No data set of the machine may slip in.
    command.env("BLNN_DATA_DIR", folder).env("XDG_CACHE_HOME", folder);
    command
}

/// A plan of two models that can be caught in the middle.
const LONG: [&str; 7] =
    ["classification", "--datasets", "cora", "--epochs", "60", "--eval-every", "30"];
const SUFFIX: &str =
    "60epochs-hidden_width=8-embedding_width=4-predictor_width=8-checkpoint_every=3";

fn second_run(folder: &Path) -> PathBuf {
    folder.join(format!("out/runs/cora-blnn-t1-seed1-{SUFFIX}"))
}

fn json(folder: &Path, target: &str) -> Value {
    serde_json::from_slice(&read(folder.join(format!("out/{target}.json")))).unwrap()
}

fn succeed(command: &mut Command) -> (String, String) {
    let (code, stdout, stderr) = finish(command);
    assert_eq!(code, 0, "{stderr}");
    (stdout, stderr)
}

#[test]
fn every_target_runs_and_a_finished_plan_trains_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--datasets", "cora", "--epochs", "2", "--eval-every", "2", "--temperatures", "0.5,1,2"];
    let (stdout, stderr) = succeed(&mut reproduce(folder.path(), &arguments));
    assert!(stderr.contains("6 models in the plan, 0 of them trained before"), "{stderr}");
    for place in ["Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Figure 2", "Figure 5"] {
        assert!(stdout.contains(&format!("{place}: ")), "{stdout}");
    }
    let out = folder.path().join("out");
    let files = names(&out);
    for target in [
        "datasets",
        "classification",
        "clustering",
        "similarity",
        "ablation",
        "motivation",
        "case-study",
        "temperature",
        "map",
    ] {
        for file in [format!("{target}.json"), format!("{target}.md")] {
            assert!(files.contains(&file), "{file} in {files:?}");
        }
        let report = json(folder.path(), target);
        assert!(!report["rows"].as_array().unwrap().is_empty(), "{target}");
        for figure in report["figures"].as_array().unwrap() {
            let svg = read(out.join(figure.as_str().unwrap()));
            assert!(svg.starts_with(b"<svg") && svg.ends_with(b"</svg>\n"), "{figure}");
        }
    }
    let ledger = String::from_utf8(read(out.join("REPRODUCTION.md"))).unwrap();
    assert_eq!(ledger.matches("\n## ").count(), 11, "how to read it, nine targets, runs");
    let lines: Vec<&str> =
        ledger.lines().filter(|line| line.starts_with("| [cora-bgrl-seed1-2epochs")).collect();
    let [line] = lines[..] else { panic!("a run that many tables show stands once: {lines:?}") };
    let (_, record) = line.split_once("](").unwrap();
    assert!(out.join(record.split_once(')').unwrap().0).exists(), "{line}");
    assert!(!ledger.contains("Not run yet"), "{ledger}");

    let before = read(out.join("temperature.json"));
    let (again, stderr) = succeed(&mut reproduce(folder.path(), &arguments));
    assert!(stderr.contains("6 of them trained before"), "{stderr}");
    assert!(!stderr.contains("epoch "), "nothing was trained: {stderr}");
    assert_eq!(again, stdout);
    assert!(read(out.join("temperature.json")) == before);
}

#[test]
fn numbers_name_seed_command_epochs_and_rules() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "classification",
        "--datasets",
        "cora",
        "--epochs",
        "4",
        "--eval-every",
        "2",
        "--seeds",
        "2",
        "--objectives",
        "paper,published-code",
        "--format",
        "json",
    ];
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &arguments));
    let report: Value = serde_json::from_str(stdout.trim()).unwrap();
    assert_eq!(report, json(folder.path(), "classification"));
    let rows = report["rows"].as_array().unwrap();
    let methods: Vec<&str> = rows.iter().map(|r| r["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["BGRL", "BLNN", "BLNN (published code)"]);
    for row in rows {
        assert_eq!(row["published"], Value::Null);
        assert!(row["best"]["std"].is_number() && row["last"]["mean"].is_number(), "{row}");
        assert!(row["paper_split"]["mean"].is_number(), "{row}");
        let best = row["best"]["mean"].as_f64().unwrap();
        assert!(best >= row["last"]["mean"].as_f64().unwrap(), "{row}");
        for (run, seed) in row["runs"].as_array().unwrap().iter().zip(1..) {
            assert_eq!(
                (&run["seed"], &run["epochs"], &run["evaluations"]),
                (&seed.into(), &4.into(), &2.into())
            );
            let command = run["command"].as_str().unwrap();
            assert!(command.contains(&format!("--seed {seed} --eval-every 2")), "{command}");
        }
    }
    let differences = report["paired"][0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 2, "a difference a seed");
    // The command of a run trains that very run.
    let run = &rows[1]["runs"][0];
    let words: Vec<&str> = run["command"].as_str().unwrap().split(' ').skip(1).collect();
    succeed(blnn(folder.path()).args(words).args(["--out", "alone"]));
    let key = run["key"].as_str().unwrap();
    let together = read(folder.path().join("out/runs").join(key).join("embeddings.npy"));
    assert!(read(folder.path().join("alone/embeddings.npy")) == together);
}

#[test]
fn a_plan_that_was_stopped_ends_with_the_same_json() {
    let straight = tempfile::tempdir().unwrap();
    succeed(&mut reproduce(straight.path(), &LONG));
    for signal in ["KILL", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = second_run(folder.path()).join("checkpoint.safetensors");
        let output = signal_when(&mut reproduce(folder.path(), &LONG), &checkpoint, signal);
        assert!(!second_run(folder.path()).join("embeddings.npy").exists());
        if signal == "INT" {
            let (code, stdout, stderr) = told(&output);
            assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
            let command = "continue with: blnn reproduce classification --datasets cora";
            assert!(stderr.contains("1 of 2 models trained"), "{stderr}");
            assert!(stderr.contains(command), "{stderr}");
        }
        let (_, stderr) = succeed(&mut reproduce(folder.path(), &LONG));
        assert!(stderr.contains("1 of them trained before"), "{stderr}");
        assert!(stderr.contains("going on after epoch"), "{stderr}");
        assert_eq!(json(folder.path(), "classification"), json(straight.path(), "classification"));
    }
}

#[test]
fn what_is_trained_so_far_is_reported_without_training() {
    let folder = tempfile::tempdir().unwrap();
    let one = ["motivation", "--datasets", "cora", "--epochs", "2"];
    succeed(&mut reproduce(folder.path(), &one));
    let all = ["ablation", "--datasets", "cora", "--epochs", "2", "--report-only"];
    let (stdout, stderr) = succeed(&mut reproduce(folder.path(), &all));
    assert!(stdout.contains("seed 1 not trained yet"), "{stdout}");
    assert!(stderr.contains("4 models in the plan, 3 of them trained before"), "{stderr}");
    assert!(!stderr.contains("epoch "), "{stderr}");
    // A run without its embedding is one that was stopped before its end.
    let runs = folder.path().join("out/runs");
    let keys = names(&runs);
    let run = keys.iter().find(|key| key.starts_with("cora-bgrl-seed1-")).unwrap();
    fs::remove_file(runs.join(run).join("embeddings.npy")).unwrap();
    fs::remove_file(folder.path().join(format!("out/records/{run}.json"))).unwrap();
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &all));
    assert!(stdout.contains("seed 1 at epoch 2 of 2, best so far "), "{stdout}");
    let row = &json(folder.path(), "ablation")["rows"][0];
    assert_eq!((&row["method"], &row["last"]), (&"BGRL".into(), &Value::Null), "{row}");
    assert!(row["under_way"][0]["best"].is_number(), "{row}");
}

#[test]
fn records_stand_for_runs_whose_folders_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["classification", "--datasets", "cora", "--epochs", "2", "--records", "kept"];
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &arguments));
    assert_eq!(names(&folder.path().join("kept")).len(), 2);
    let before = json(folder.path(), "classification");
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    let (again, stderr) = succeed(&mut reproduce(folder.path(), &arguments));
    assert!(stderr.contains("2 models in the plan, 2 of them trained before"), "{stderr}");
    assert!(!stderr.contains("epoch "), "nothing was trained: {stderr}");
    assert_eq!((again, json(folder.path(), "classification")), (stdout, before));
    // Figure 3 is made of an embedding, and no record has one.
    let figure = [&["case-study", "--methods", "blnn"], &arguments[1..]].concat();
    let only = [&figure[..], &["--report-only"]].concat();
    let (stdout, stderr) = succeed(&mut reproduce(folder.path(), &only));
    assert!(stdout.contains("seed 1 is on record, its embedding is not here"), "{stdout}");
    assert!(stderr.contains("in the plan, 0 of them trained before"), "{stderr}");
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &figure));
    assert!(!stdout.contains("not trained yet"), "{stdout}");
}

#[test]
fn one_bad_model_does_not_keep_the_others_from_their_reports() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["classification", "--datasets", "cora", "--epochs", "2"];
    succeed(&mut reproduce(folder.path(), &arguments));
    let bgrl = format!("cora-bgrl-seed1-{}", SUFFIX.replace("60epochs", "2epochs"));
    fs::write(folder.path().join("out/runs").join(bgrl).join("evaluation.json"), "{").unwrap();
    fs::remove_dir_all(folder.path().join("out/records")).unwrap();
    let (code, stdout, stderr) = finish(&mut reproduce(folder.path(), &arguments));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("one model is missing in these reports"), "{stderr}");
    assert!(stderr.contains("evaluation.json"), "{stderr}");
    assert!(stdout.contains("seed 1 at epoch 2 of 2, best so far"), "{stdout}");
    let rows = json(folder.path(), "classification")["rows"].clone();
    assert!(rows[1]["best"]["mean"].is_number(), "BLNN is there: {rows}");
}

#[test]
fn a_remark_stays_with_its_record_where_the_folder_is_here_too() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["classification", "--datasets", "cora", "--methods", "bgrl", "--epochs", "2"];
    succeed(&mut reproduce(folder.path(), &arguments));
    let records = folder.path().join("out/records");
    let path = records.join(&names(&records)[0]);
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["remark"] = "trained on a ferry".into();
    fs::write(&path, record.to_string()).unwrap();
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &arguments));
    assert!(stdout.contains("Note: cora, BGRL, seed 1: trained on a ferry."), "{stdout}");
    // Scores of another machine stay on record, and a reader is told.
    record["last"]["accuracy"] = 12.5.into();
    fs::write(&path, record.to_string()).unwrap();
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &arguments));
    assert!(stdout.contains("12.50") && stdout.contains("other scores"), "{stdout}");
}

#[test]
fn a_run_that_was_stopped_leaves_its_scores_on_record() {
    let folder = tempfile::tempdir().unwrap();
    let plan = ["classification", "--datasets", "cora", "--methods", "blnn", "--epochs", "2000"];
    let arguments = [&plan[..], &["--eval-every", "1"]].concat();
    let run = format!("cora-blnn-t1-seed1-{}", SUFFIX.replace("60epochs", "2000epochs"));
    let checkpoint = folder.path().join(format!("out/runs/{run}/checkpoint.safetensors"));
    signal_when(&mut reproduce(folder.path(), &arguments), &checkpoint, "INT");
    fs::remove_dir_all(folder.path().join("out/runs")).unwrap();
    let only = [&arguments[..], &["--report-only"]].concat();
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &only));
    assert!(stdout.contains(" of 2,000, best so far "), "{stdout}");
}

#[test]
fn a_missing_data_set_is_named_with_the_command_that_fetches_it() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["datasets", "classification", "case-study", "--datasets", "wikics"];
    let (stdout, _) = succeed(&mut reproduce(folder.path(), &arguments));
    let remark = "wikics.json is not here; fetch it with `blnn datasets fetch wikics`";
    assert!(stdout.contains(remark), "{stdout}");
    assert!(stdout.contains(&format!("Note: without wikics: {remark}.")), "{stdout}");
    assert!(stdout.contains("80.48 ± 0.52"), "the published number stands there: {stdout}");
    let report = json(folder.path(), "classification");
    assert_eq!(report["missing"][0]["file"], "wikics.json");
}

/// The record of a run on Photo that nobody trained.
fn write_record(folder: &Path, method: &str, precision: &str, key: &str) {
    // As `reproduce` trains, whatever this CPU would choose by itself.
    let command =
        ["train", "photo", "--method", method, "--precision", precision, "--print-config"];
    let (config, _) = succeed(blnn(folder).args(command));
    let record = serde_json::json!({
        "key": key,
        "command": "blnn train photo --eval-every 250",
        "trained_by": { "version": "0.1.0", "commits": ["abc"] },
        "evaluations": 40,
        "best": { "accuracy": { "epoch": 250, "score": 93.25 } },
        "last": { "accuracy": 92.75 },
        "remark": "made up",
        "config": config,
    });
    fs::create_dir_all(folder.join("kept")).unwrap();
    fs::write(folder.join(format!("kept/{key}.json")), record.to_string()).unwrap();
}

/// What is said of Photo by the records alone, without its data.
fn report_of_records(folder: &Path, arguments: &[&str]) -> String {
    let mut command = blnn(folder);
    command.arg("reproduce").args(arguments);
    command.args(["--out", "out", "--records", "kept", "--datasets", "photo"]);
    command.env("BLNN_DATA_DIR", folder).env("XDG_CACHE_HOME", folder);
    let (stdout, stderr) = succeed(&mut command);
    stdout + &stderr
}

#[test]
fn records_are_reported_where_the_data_are_not() {
    let folder = tempfile::tempdir().unwrap();
    write_record(folder.path(), "bgrl", "f32", "photo-bgrl-seed1-10000epochs");
    let report = |arguments: &[&str]| report_of_records(folder.path(), arguments);
    let stdout = report(&["classification", "--methods", "bgrl"]);
    assert!(stdout.contains("93.25") && stdout.contains("92.75"), "{stdout}");
    assert!(stdout.contains("Note: photo, BGRL, seed 1: made up."), "{stdout}");
    assert!(!stdout.contains("photo.npz is not here"), "{stdout}");
    // What is not on record cannot be trained, and neither table nor figure pretends otherwise.
    let stdout = report(&["classification", "map", "--seeds", "2"]);
    assert!(stdout.contains("93.25"), "{stdout}");
    assert!(stdout.contains("is not here; fetch it with `blnn datasets fetch photo`"), "{stdout}");
}

#[test]
fn a_record_in_another_precision_stands_in_where_it_is_let_and_is_named_so() {
    let folder = tempfile::tempdir().unwrap();
    let rounded = "photo-bgrl-seed1-10000epochs-precision=bf16";
    write_record(folder.path(), "bgrl", "bf16", rounded);
    let table = ["classification", "--methods", "bgrl"];
    let stdout = report_of_records(folder.path(), &table);
    assert!(!stdout.contains("93.25"), "{stdout}");
    let any = [&table[..], &["--any-precision"]].concat();
    let stdout = report_of_records(folder.path(), &any);
    assert!(stdout.contains("93.25") && stdout.contains("seed 1 in bf16"), "{stdout}");
    assert!(!stdout.contains("is not here"), "{stdout}");
}

#[test]
fn a_folder_with_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["case-study", "--datasets", "cora", "--epochs", "2"];
    succeed(&mut reproduce(folder.path(), &arguments));
    let runs = folder.path().join("out/runs");
    let config = runs.join(&names(&runs)[0]).join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("learning_rate = ", "learning_rate = 1")).unwrap();
    let stderr = refusal(&mut reproduce(folder.path(), &arguments));
    assert!(stderr.contains("learning_rate") && stderr.contains("another --out"), "{stderr}");
    assert!(stderr.contains("cora-blnn-t1-seed1-2epochs"), "{stderr}");
    fs::write(&config, text).unwrap();
    let other = [&arguments[..], &["--eval-every", "2"]].concat();
    let stderr = refusal(&mut reproduce(folder.path(), &other));
    assert!(stderr.contains("--eval-every 2") && stderr.contains("epoch 1"), "{stderr}");
}

#[test]
fn bad_names_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, answer) in [
        (vec!["clasification"], "did you mean `classification`?"),
        (vec!["tables"], "known are datasets, classification"),
        (vec!["--datasets", "phtoo"], "did you mean `photo`?"),
        (vec!["--datasets", "photo", "map"], "`map` is a target"),
        (vec!["--set", "seed=4"], "--seeds instead"),
        (vec!["--set", "temprature=4"], "did you mean `temperature`?"),
        (vec!["--seeds", "0"], "--seeds"),
        (vec!["--objectives", "both"], "published-code"),
        (vec!["--report-only", "--records", "kpet"], "there is no folder kpet"),
        (vec!["motivation", "--methods", "blnn"], "`motivation` shows none of these"),
        (vec!["temperature", "--temperatures", "0"], "`temperature` must be above 0"),
    ] {
        let (code, _, stderr) = finish(&mut reproduce(folder.path(), &arguments));
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(answer), "{answer} in {stderr}");
    }
    assert!(names(folder.path()).is_empty(), "nothing was begun");
}

#[test]
fn the_ledger_keeps_what_was_written_by_hand_and_has_copies_of_figures() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["motivation", "--datasets", "cora", "--epochs", "1", "--ledger", "docs/L.md"];
    fs::create_dir(folder.path().join("docs")).unwrap();
    succeed(&mut reproduce(folder.path(), &arguments));
    let ledger = folder.path().join("docs/L.md");
    let text = fs::read_to_string(&ledger).unwrap();
    assert!(text.contains("(figures/motivation-cora.svg)"), "{text}");
    assert!(folder.path().join("docs/figures/motivation-cora.svg").exists());
    fs::write(&ledger, format!("Learned by hand.\n{text}")).unwrap();
    succeed(&mut reproduce(folder.path(), &["ledger", "--ledger", "docs/L.md"]));
    let text = fs::read_to_string(&ledger).unwrap();
    assert!(text.starts_with("Learned by hand.\n"), "{text}");
    assert!(text.contains("BGRL, noisy"), "the report is still found: {text}");
}
