//! `blnn train`, end to end: what a run leaves behind, and how it goes on after being stopped.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{
    blnn, finish, metrics, names, read, refusal, scored_train, signal_when, told, train,
};

/// Long enough to be caught in the middle, since every third epoch is saved to the disk.
const LONG: [&str; 6] = ["--epochs", "90", "--seed", "7", "--out", "run"];
const CHECKPOINT: &str = "run/checkpoint.safetensors";

type Result = (Vec<u8>, Vec<serde_json::Value>);

/// The embeddings and metrics of the long run, never stopped, on two threads.
fn straight_run() -> &'static Result {
    static RESULT: OnceLock<Result> = OnceLock::new();
    RESULT.get_or_init(|| long_run("2"))
}

fn long_run(threads: &str) -> Result {
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
    assert!(!stderr.contains("kernels"), "{stderr}");
    let (embeddings, records) = straight_run();
    let run = folder.join("run");
    assert!(read(run.join("embeddings.npy")) == *embeddings, "embeddings differ");
    assert_eq!(metrics(&run), *records);
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
    assert!(stdout.contains("blnn on cora, seed 1, 12 epochs"), "{stdout}");
    assert!(stdout.contains("runs/cora-blnn-seed1/embeddings.npy (2,708 nodes × 4"), "{stdout}");
    assert!(stdout.contains("blnn eval runs/cora-blnn-seed1/embeddings.npy"), "{stdout}");
    assert!(stderr.contains("epoch 12/12 · node "), "{stderr}");
    assert!(stderr.contains(" s/epoch · "), "{stderr}");
    assert!(read(run.join("embeddings.npy")).starts_with(b"\x93NUMPY"));
    assert_eq!(String::from_utf8(read(run.join("node_ids.txt"))).unwrap().lines().count(), 2708);
    let last = metrics(&run).pop().unwrap();
    for key in ["loss", "node_loss", "neighbour_loss", "learning_rate", "ema_decay"] {
        assert!(last[key].is_number(), "{key}: {last}");
    }
    assert!(last["effective_rank"].is_number() && last["collapsed"].is_boolean(), "{last}");
}

#[test]
fn the_summary_comes_as_json_too() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--epochs", "3", "--json", "--method", "bgrl"];
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
    assert!(long_run("1") == *straight_run());
}

#[test]
fn ctrl_c_saves_and_says_how_to_resume() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join(CHECKPOINT);
        let output = signal_when(&mut train(folder.path(), &LONG), &checkpoint, signal);
        let (code, stdout, stderr) = told(&output);
        assert_eq!((code, stdout.as_str()), (130, ""), "{stderr}");
        let command = "blnn train cora --out run --eval-every 0 --no-report --resume";
        assert!(stderr.contains(command), "{stderr}");
        assert!(!folder.path().join("run/embeddings.npy").exists());
        if signal == "INT" {
            resume_equals_straight(folder.path());
        }
    }
}

/// As under `nohup`, when the terminal is closed.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_that_is_to_be_ignored_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join(CHECKPOINT);
    let deaf = |command: &Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(folder.path());
        shell
    };
    let output = signal_when(&mut deaf(&train(folder.path(), &LONG)), &checkpoint, "HUP");
    let (code, _, stderr) = told(&output);
    assert_eq!(code, 0, "{stderr}");
    assert!(folder.path().join("run/embeddings.npy").exists());
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

/// Other kernels round otherwise: the run goes on, and says that its bits are others.
#[test]
fn a_run_that_goes_on_with_other_kernels_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(CHECKPOINT);
    signal_when(train(folder.path(), &LONG).env("BLNN_KERNELS", "scalar"), &path, "KILL");
    let mut resumed = train(folder.path(), &LONG);
    let (code, _, stderr) = finish(resumed.arg("--resume").env_remove("BLNN_KERNELS"));
    assert_eq!(code, 0, "{stderr}");
    let kernels = blnn::Checkpoint::read(&path).unwrap().header().kernels.clone();
    // Every CPU of the kinds that are tested has more than the scalar kernels.
    assert_eq!((kernels.len(), kernels[0].as_str()), (2, "scalar"), "{kernels:?}");
    let told = format!("trained by scalar kernels and this machine has {}", kernels[1]);
    assert!(stderr.contains(&told), "{stderr}");
}

#[test]
fn the_command_that_resumes_needs_no_settings() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join(CHECKPOINT);
    signal_when(&mut train(folder.path(), &LONG), &checkpoint, "INT");
    let command = ["train", "cora", "--out", "run", "--resume"];
    let (code, stdout, stderr) = finish(blnn(folder.path()).args(command));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("seed 7, 90 epochs"), "{stdout}");
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
    let (code, first, stderr) =
        finish(&mut train(folder.path(), &["photo", "--epochs", "500", "--print-config"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(first.contains("temperature = 1.9\n"), "{first}");
    assert!(first.contains("warmup_epochs = 50\n"), "{first}");
    std::fs::write(folder.path().join("mine.toml"), &first).unwrap();
    let command = ["train", "cora", "--config", "mine.toml", "--print-config"];
    let (_, second, stderr) = finish(blnn(folder.path()).args(command));
    assert_eq!(first, second, "{stderr}");
    assert_eq!(names(folder.path()), ["mine.toml"], "nothing was trained");
    let (code, stdout, stderr) = finish(&mut train(folder.path(), &["phtoo", "--print-config"]));
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("did you mean `photo`?"), "{stderr}");
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

#[test]
fn scores_are_recorded_and_both_rules_reported() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--epochs", "6", "--eval-every", "4", "--out", "run"];
    let (code, stdout, stderr) = finish(&mut scored_train(folder.path(), &arguments));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("(last epoch)"), "{stdout}");
    assert!(stdout.contains("(best of 2, chosen on the test score"), "{stdout}");
    let run = folder.path().join("run");
    let scored: Vec<u64> = metrics(&run)
        .iter()
        .filter(|r| r["scores"]["accuracy"].as_f64().is_some_and(|a| (0.0..=100.0).contains(&a)))
        .filter_map(|r| r["epoch"].as_u64())
        .collect();
    assert_eq!(scored, [4, 6]);
    // What was recorded is what `blnn eval` finds in the file.
    let eval = ["eval", "run/embeddings.npy", "--labels", "cora", "--tasks", "similar"];
    let (code, stdout, stderr) = finish(blnn(folder.path()).args(eval).args(["--format", "json"]));
    assert_eq!(code, 0, "{stderr}");
    let recorded = metrics(&run).pop().unwrap()["scores"]["s_at_5"].clone();
    assert!(stdout.contains(&recorded.to_string()), "{recorded} in {stdout}");
}

#[test]
fn asking_for_scores_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.json"), ring_of_equals(20)).unwrap();
    let arguments = ["ring.json", "--epochs", "3", "--eval-every", "1"];
    let stderr = refusal(&mut scored_train(folder.path(), &arguments));
    assert!(stderr.contains("--eval-every"), "{stderr}");
    let (code, stdout, stderr) = finish(&mut scored_train(folder.path(), &arguments[..3]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("scores     none: classify: all 20 nodes have one class"), "{stdout}");
}

/// The steps of all events in a file, without looking further: each is a length, four bytes, the
/// event (whose time takes nine bytes before the step) and four bytes.
fn steps(path: &Path) -> Vec<u8> {
    let bytes = read(path);
    let (mut at, mut steps) = (0, Vec::new());
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        assert_eq!(bytes[at + 12 + 9], 2 << 3, "the field of the step");
        steps.push(bytes[at + 12 + 10]);
        at += 16 + length;
    }
    steps
}

#[test]
fn curves_are_written_and_taken_up_again_after_a_stop() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let long = [&LONG[..], &["--tensorboard"]].concat();
    let checkpoint = folder.path().join(CHECKPOINT);
    signal_when(&mut train(folder.path(), &long), &checkpoint, "INT");
    let (code, stdout, stderr) = finish(train(folder.path(), &long).arg("--resume"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("tensorboard --logdir run/tensorboard"), "{stdout}");
    let files = names(&run.join("tensorboard"));
    assert_eq!(files.len(), 2, "{files:?}");
    let [first, second] = [0, 1].map(|k| steps(&run.join("tensorboard").join(&files[k])));
    assert_eq!((first[0], second[0]), (0, 0), "the version");
    // The second file begins by taking back what came after the checkpoint.
    let resumed = second[1];
    assert!(second[2..].iter().all(|&step| step >= resumed), "{second:?}");
    let kept = first[1..].iter().filter(|&&step| step < resumed);
    let shown: Vec<u8> = kept.chain(&second[2..]).copied().collect();
    let recorded: Vec<u8> =
        metrics(&run).iter().map(|r| r["epoch"].as_u64().unwrap() as u8).collect();
    assert_eq!(shown, recorded);
    // Another run in its place begins anew.
    let short = ["--epochs", "2", "--out", "run", "--force"];
    assert_eq!(finish(&mut train(folder.path(), &short)).0, 0);
    assert!(!run.join("tensorboard").exists());
}

/// Two features cannot make many dimensions, and that is no collapse.
#[test]
fn few_features_are_not_called_a_collapse() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = 60;
    let links: Vec<[usize; 2]> =
        (0..nodes).map(|i| [(i + 1) % nodes, (i * 7 + 3) % nodes]).collect();
    let features: Vec<[f64; 2]> =
        (0..nodes).map(|i| [(i as f64 * 1.7).sin(), (i as f64 * 0.3).cos()]).collect();
    let third = |which: usize| (0..nodes).map(|i| i % 3 == which).collect::<Vec<bool>>();
    let graph = serde_json::json!({
        "features": features,
        "labels": vec![0; nodes],
        "links": links,
        "train_masks": [third(0)],
        "val_masks": [third(1)],
        "test_mask": third(2),
    });
    std::fs::write(folder.path().join("two.json"), graph.to_string()).unwrap();
    let command = ["train", "two.json", "--epochs", "60", "--out", "run", "--no-report"];
    let (code, stdout, stderr) = finish(blnn(folder.path()).args(command));
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains("collapsed") && !stdout.contains("collapsed"), "{stderr}{stdout}");
    let last = metrics(&folder.path().join("run")).pop().unwrap();
    assert!(last["effective_rank"].as_f64().unwrap() < 6.4, "few dimensions: {last}");
}

/// A ring whose nodes all look alike, so that they cannot but share one embedding.
fn ring_of_equals(nodes: usize) -> String {
    let links: Vec<[usize; 1]> = (0..nodes).map(|i| [(i + 1) % nodes]).collect();
    let third = |which: usize| (0..nodes).map(|i| i % 3 == which).collect::<Vec<bool>>();
    let graph = serde_json::json!({
        "features": vec![[1.0, 2.0, 3.0]; nodes],
        "labels": vec![0; nodes],
        "links": links,
        "train_masks": [third(0)],
        "val_masks": [third(1)],
        "test_mask": third(2),
    });
    graph.to_string()
}

#[test]
fn a_collapse_is_warned_about_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ring.json"), ring_of_equals(20)).unwrap();
    let arguments = ["ring.json", "--epochs", "9", "--out", "run"];
    let (code, stdout, stderr) = finish(&mut train(folder.path(), &arguments));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stderr.matches("warning: the embedding has collapsed").count(), 1, "{stderr}");
    assert!(stdout.contains("collapsed!"), "{stdout}");
    let last = metrics(&folder.path().join("run")).pop().unwrap();
    assert_eq!(last["collapsed"], true);
}

#[test]
fn a_run_on_another_graph_is_not_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring.json");
    std::fs::write(&path, ring_of_equals(20)).unwrap();
    let arguments = ["ring.json", "--epochs", "6", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &arguments)).0, 0);
    std::fs::write(&path, ring_of_equals(21)).unwrap();
    let stderr = refusal(train(folder.path(), &arguments).arg("--resume"));
    assert!(stderr.contains("trained on another graph: `ring`"), "{stderr}");
    assert!(stderr.contains("--out"), "{stderr}");
}

/// A folder with a small graph of people; `salary` tells two tables apart.
fn people(salary: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let person = |i: usize| format!("p{i},{},{}", (i * i + 1) * salary, ["red", "blue"][i % 2]);
    let nodes: Vec<String> = (0..6).map(person).collect();
    let edges: Vec<String> = (0..6).map(|i| format!("p{i},p{}", (i + 1) % 6)).collect();
    let write = |name: &str, head: &str, rows: &[String]| {
        std::fs::write(folder.path().join(name), format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    };
    write("nodes.csv", "id,salary,team", &nodes);
    write("edges.csv", "source,target", &edges);
    std::fs::write(folder.path().join("loops.csv"), "source,target\np1,p1\n").unwrap();
    folder
}

const PEOPLE: [&str; 8] =
    ["--edges", "edges.csv", "--nodes", "nodes.csv", "--epochs", "3", "--out", "run"];

#[test]
fn a_refused_command_leaves_the_run_that_it_would_replace() {
    let folder = people(1);
    let (code, _, stderr) = finish(&mut train(folder.path(), &PEOPLE));
    assert_eq!(code, 0, "{stderr}");
    let run = folder.path().join("run");
    let before = names(&run);
    let again = |more: &[&'static str]| [&PEOPLE[..], &["--force"], more].concat();
    for (arguments, fault) in [
        (again(&["--eval-every", "2"]), "--eval-every needs labels"),
        (again(&["--method", "bgrl-clean"]), "needs labels"),
        (vec!["--edges", "loops.csv", "--out", "run", "--force"], "neither features nor edges"),
    ] {
        let said = refusal(&mut scored_train(folder.path(), &arguments));
        assert!(said.contains(fault), "no {fault:?} in {said}");
        assert_eq!(names(&run), before, "{arguments:?}");
    }
}

#[test]
fn a_run_never_replaces_what_it_is_made_of() {
    let folder = people(1);
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let edges = own.join("embeddings.csv");
    std::fs::rename(folder.path().join("edges.csv"), &edges).unwrap();
    let before = read(&edges);
    for force in [&[][..], &["--force"]] {
        let command = ["--edges", "own/embeddings.csv", "--out", "own"];
        let said = refusal(&mut train(folder.path(), &[&command[..], force].concat()));
        assert!(said.contains("would replace this file"), "{said}");
    }
    assert_eq!(read(&edges), before);
}

#[test]
fn settings_that_are_lost_are_not_guessed() {
    let folder = people(1);
    assert_eq!(finish(&mut train(folder.path(), &PEOPLE)).0, 0);
    for gone in ["checkpoint.safetensors", "config.toml"] {
        std::fs::remove_file(folder.path().join("run").join(gone)).unwrap();
    }
    let said = refusal(train(folder.path(), &PEOPLE).arg("--resume"));
    assert!(said.contains("its settings are not there"), "{said}");
}

#[test]
fn a_refused_resume_adds_nothing_to_the_run() {
    let folder = people(1);
    let cora = ["cora", "--epochs", "3", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &cora)).0, 0);
    let before = names(&folder.path().join("run"));
    let said = refusal(train(folder.path(), &["edges.csv", "--out", "run"]).arg("--resume"));
    assert!(said.contains("trained on another graph"), "{said}");
    assert_eq!(names(&folder.path().join("run")), before);
}

/// What an attempt without a checkpoint left behind belongs to no weights.
#[test]
fn a_run_begun_anew_forgets_how_an_earlier_attempt_made_features() {
    let [first, second] = [people(1), people(1000)];
    for folder in [&first, &second] {
        assert_eq!(finish(&mut train(folder.path(), &PEOPLE)).0, 0);
    }
    let run = first.path().join("run");
    for gone in ["checkpoint.safetensors", "embeddings.npy", "metrics.jsonl", "summary.json"] {
        std::fs::remove_file(run.join(gone)).unwrap();
    }
    let nodes = second.path().join("nodes.csv");
    std::fs::copy(nodes, first.path().join("nodes.csv")).unwrap();
    let (code, _, stderr) = finish(train(first.path(), &PEOPLE).arg("--resume"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(read(run.join("features.json")), read(second.path().join("run/features.json")));
}

#[test]
fn labels_that_cannot_be_scored_are_explained() {
    let folder = people(1);
    let labelled = [&PEOPLE[..], &["--label", "team"]].concat();
    let (code, stdout, stderr) = finish(&mut scored_train(folder.path(), &labelled));
    assert_eq!(code, 0, "{stderr}");
    // The others of the tasks are scored.
    assert!(stderr.contains("not scored: classify: 6 nodes are too few to split"), "{stderr}");
    assert!(stderr.contains("not scored: similar: 6 nodes have no 10 nearest"), "{stderr}");
    assert!(stdout.contains("scores     NMI "), "{stdout}");
    let nodes = folder.path().join("nodes.csv");
    let same = std::fs::read_to_string(&nodes).unwrap().replace("blue", "red");
    std::fs::write(nodes, same).unwrap();
    let again = [&labelled[..], &["--force"]].concat();
    let (code, stdout, stderr) = finish(&mut scored_train(folder.path(), &again));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("scores     none: classify: all 6 nodes have one class"), "{stdout}");
    assert!(!stdout.contains("blnn eval"), "{stdout}");
}

/// With `--eval-every` and without it.
#[test]
fn a_class_of_one_node_takes_no_other_score_away() {
    let folder = tempfile::tempdir().unwrap();
    let team = |i: usize| if i == 7 { "rare" } else { ["red", "blue"][i % 2] };
    let nodes = (0..30).map(|i| format!("p{i},{i},{}", team(i)));
    let edges = (0..30).map(|i| format!("p{i},p{}", (i + 2) % 30));
    let write = |name: &str, head: &str, rows: Vec<String>| {
        std::fs::write(folder.path().join(name), format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    };
    write("nodes.csv", "id,age,team", nodes.collect());
    write("edges.csv", "source,target", edges.collect());
    let labelled = [&PEOPLE[..], &["--label", "team", "--force"]].concat();
    for more in [&[][..], &["--eval-every", "2"]] {
        let arguments = [&labelled[..], more].concat();
        let (code, stdout, stderr) = finish(&mut scored_train(folder.path(), &arguments));
        assert_eq!(code, 0, "{stderr}");
        let told = "not scored: classify: class `rare` has one member (node `p7`); merge";
        assert!(stderr.contains(told), "{stderr}");
        assert!(stdout.contains("scores     NMI ") && stdout.contains("S@5 "), "{stdout}");
    }
}

#[test]
fn a_setting_that_the_method_does_not_have_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let told = "note: --set temperature=0.5: changes nothing";
    for (method, is_told) in [("bgrl", true), ("blnn", false)] {
        let run = ["cora", "--epochs", "2", "--out", method, "--method", method];
        let mut command = train(folder.path(), &run);
        let (code, _, stderr) = finish(command.args(["--set", "temperature=0.5"]));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stderr.contains(told), is_told, "{stderr}");
        // A run that goes on has its own method, named again or not.
        let mut again = train(folder.path(), &["cora", "--out", method, "--resume"]);
        let (code, _, stderr) = finish(again.args(["--set", "temperature=0.5"]));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stderr.contains(told), is_told, "{stderr}");
    }
}

#[test]
fn saved_settings_that_lack_a_key_are_told_with_their_file() {
    let folder = people(1);
    assert_eq!(finish(&mut train(folder.path(), &PEOPLE)).0, 0);
    let path = folder.path().join("run/config.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, settings.replace("ema_start", "# ema_start")).unwrap();
    let said = refusal(train(folder.path(), &PEOPLE).arg("--resume"));
    assert!(said.contains("run/config.toml: `ema_start` is missing; add a line for it"), "{said}");
}
