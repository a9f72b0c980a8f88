//! `blnn train`, end to end: what a run leaves behind, and how it goes on after being stopped.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::common::{finish, metrics, names, read, refusal, signal_when, told, train};

/// Long enough to be caught in the middle, since every third epoch is saved to the disk.
const LONG: [&str; 6] = ["--epochs", "150", "--seed", "7", "--out", "run"];
const CHECKPOINT: &str = "run/checkpoint.safetensors";

/// The embeddings and metrics of the long run, never stopped.
fn straight_run(threads: &str) -> (Vec<u8>, Vec<serde_json::Value>) {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = finish(train(folder.path(), &LONG).args(["--threads", threads]));
    assert_eq!(code, 0, "{stderr}");
    let run = folder.path().join("run");
    (read(run.join("embeddings.npy")), metrics(&run))
}

/// Resumes the run in `folder` and checks that it ends as if it had never been stopped.
fn resume_equals_straight(folder: &Path) {
    let (code, _, stderr) = finish(train(folder, &LONG).arg("--resume"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("resuming after epoch"), "{stderr}");
    let (embeddings, records) = straight_run("2");
    let run = folder.join("run");
    assert!(
        read(run.join("embeddings.npy")) == embeddings,
        "embeddings differ"
    );
    assert_eq!(metrics(&run), records);
}

#[test]
fn a_run_ends_in_a_folder_and_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = finish(&mut train(folder.path(), &["--epochs", "12"]));
    assert_eq!(code, 0, "{stderr}");
    let run = folder.path().join("runs/cora-blnn-seed1");
    let files = [
        ".lock",
        "checkpoint.safetensors",
        "config.toml",
        "embeddings.npy",
        "metrics.jsonl",
        "node_ids.txt",
        "summary.json",
    ];
    assert_eq!(names(&run), files);
    assert!(
        stdout.contains("blnn on cora, seed 1, 12 epochs"),
        "{stdout}"
    );
    assert!(
        stdout.contains("runs/cora-blnn-seed1/embeddings.npy (2,708 nodes × 4"),
        "{stdout}"
    );
    assert!(
        stdout.contains("blnn eval runs/cora-blnn-seed1/embeddings.npy"),
        "{stdout}"
    );
    assert!(stderr.contains("epoch 12/12 · node "), "{stderr}");
    assert!(stderr.contains(" s/epoch · "), "{stderr}");
    assert!(read(run.join("embeddings.npy")).starts_with(b"\x93NUMPY"));
    assert_eq!(
        String::from_utf8(read(run.join("node_ids.txt")))
            .unwrap()
            .lines()
            .count(),
        2708
    );
    let last = metrics(&run).pop().unwrap();
    for key in [
        "loss",
        "node_loss",
        "neighbour_loss",
        "learning_rate",
        "ema_decay",
    ] {
        assert!(last[key].is_number(), "{key}: {last}");
    }
    assert!(
        last["effective_rank"].is_number() && last["collapsed"].is_boolean(),
        "{last}"
    );
}

#[test]
fn the_summary_comes_as_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--epochs", "3", "--format", "json", "--method", "bgrl"];
    let (code, stdout, stderr) = finish(&mut train(folder.path(), &arguments));
    assert_eq!(code, 0, "{stderr}");
    let summary: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["method"], "bgrl");
    assert_eq!(summary["epochs"], 3);
    assert_eq!(summary["embeddings"], "runs/cora-bgrl-seed1/embeddings.npy");
    assert!(summary["last"]["loss"].is_number(), "{summary}");
}

#[test]
fn one_thread_and_two_give_the_same_bytes() {
    assert!(straight_run("1") == straight_run("2"));
}

#[test]
fn ctrl_c_saves_and_says_how_to_resume() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join(CHECKPOINT);
        let output = signal_when(&mut train(folder.path(), &LONG), &checkpoint, signal);
        let (code, stdout, stderr) = told(&output);
        assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
        assert!(
            stderr.contains("blnn train cora --out run --resume"),
            "{stderr}"
        );
        assert!(!folder.path().join("run/embeddings.npy").exists());
        if signal == "INT" {
            resume_equals_straight(folder.path());
        }
    }
}

#[test]
fn a_killed_run_resumes_from_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join(CHECKPOINT);
    let output = signal_when(&mut train(folder.path(), &LONG), &checkpoint, "KILL");
    assert_eq!(output.status.signal(), Some(9));
    assert!(!folder.path().join("run/embeddings.npy").exists());
    resume_equals_straight(folder.path());
}

#[test]
fn the_command_that_resumes_needs_no_settings() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join(CHECKPOINT);
    signal_when(&mut train(folder.path(), &LONG), &checkpoint, "INT");
    let command = ["train", "cora", "--out", "run", "--resume"];
    let (code, stdout, stderr) = finish(crate::common::blnn(folder.path()).args(command));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("seed 7, 150 epochs"), "{stdout}");
    assert!(stdout.contains("2,708 nodes × 4"), "{stdout}");
}

#[test]
fn an_existing_run_is_not_overwritten_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--epochs", "3", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &short)).0, 0);
    let before = read(folder.path().join("run/embeddings.npy"));
    let again = ["--epochs", "3", "--seed", "2", "--out", "run"];
    let stderr = refusal(&mut train(folder.path(), &again));
    for remedy in ["--resume", "--force", "--out"] {
        assert!(stderr.contains(remedy), "{stderr}");
    }
    assert!(read(folder.path().join("run/embeddings.npy")) == before);
    assert_eq!(finish(train(folder.path(), &again).arg("--force")).0, 0);
    assert!(read(folder.path().join("run/embeddings.npy")) != before);
}

#[test]
fn resuming_with_more_epochs_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--epochs", "3", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &short)).0, 0);
    let longer = ["--epochs", "6", "--out", "run", "--resume"];
    let stderr = refusal(&mut train(folder.path(), &longer));
    assert!(stderr.contains("epochs = 3, not 6"), "{stderr}");
    assert!(stderr.contains("schedule"), "{stderr}");
}

#[test]
fn resolved_settings_can_be_printed_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let (code, first, stderr) = finish(&mut train(
        folder.path(),
        &["photo", "--epochs", "500", "--print-config"],
    ));
    assert_eq!(code, 0, "{stderr}");
    assert!(first.contains("temperature = 1.9\n"), "{first}");
    assert!(first.contains("warmup_epochs = 50\n"), "{first}");
    std::fs::write(folder.path().join("mine.toml"), &first).unwrap();
    let command = ["train", "cora", "--config", "mine.toml", "--print-config"];
    let (_, second, stderr) = finish(crate::common::blnn(folder.path()).args(command));
    assert_eq!(first, second, "{stderr}");
    assert_eq!(names(folder.path()), ["mine.toml"], "nothing was trained");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    // stdout is a pipe whose reader is gone before anything is written.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = train(folder.path(), &["--print-config"]);
    let status = command.stdout(writer).status().unwrap();
    assert_eq!(status.code(), Some(0));
}
