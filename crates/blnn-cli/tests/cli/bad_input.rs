//! Everything that can be wrong with a command: each ends with exit code 2, a message that names
//! the remedy, and nothing lost.

use std::fs;
use std::process::Command;

use crate::common::{TINY, blnn, finish, metrics, names, read, refusal, signal_when, train};

#[test]
fn settings_out_of_range_name_key_value_and_range() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (["--epochs", "0"], "`epochs` must be a whole number from 1 to"),
        (["--epochs", "-3"], "got -3"),
        (["--set", "temperature=0"], "`temperature` must be 0.000001 or more, and finite, got 0"),
        (["--set", "temperature=-1"], "got -1"),
        (["--set", "temperature=nan"], "got nan"),
        (["--set", "edge_drop=[1.0, 0.1]"], "each at least 0 and below 1, got [1.0, 0.1]"),
        (["--set", "feature_drop=[0.1, 1]"], "below 1"),
        (["--set", "hidden_width=0"], "from 1 to 65536, got 0"),
        (["--set", "warmup_epochs=500"], "below epochs (500), got 500"),
        (["--precision", "f64"], "must be \"auto\" or \"f32\" or \"bf16\", got \"f64\""),
        (["--seed", "18446744073709551615"], "`seed` must be a whole number"),
    ] {
        let stderr = refusal(&mut train(folder.path(), &arguments));
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
        assert!(stderr.contains(arguments[0]), "{arguments:?}: {stderr}");
    }
    assert!(names(folder.path()).is_empty(), "no run was started");
}

#[test]
fn unknown_keys_and_methods_suggest_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let stderr = refusal(&mut train(folder.path(), &["--set", "temprature=1"]));
    assert!(stderr.contains("did you mean `temperature`?"), "{stderr}");
    fs::write(folder.path().join("a.toml"), "epochs = 3\nlearnin_rate = 0.1\n").unwrap();
    let stderr = refusal(&mut train(folder.path(), &["--config", "a.toml"]));
    assert!(stderr.contains("a.toml:2: unknown key `learnin_rate`"), "{stderr}");
    assert!(stderr.contains("did you mean `learning_rate`?"), "{stderr}");
    let (code, _, stderr) = finish(blnn(folder.path()).args(["train", "--method", "blmn"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("bgrl-noisy"), "{stderr}");
}

/// Else times, weights and kinds would be nodes of another graph, without a word.
#[test]
fn edges_whose_first_column_is_no_end_name_the_flags() {
    let folder = tempfile::tempdir().unwrap();
    let info = || {
        let mut command = blnn(folder.path());
        command.args(["datasets", "info", "--edges", "e.csv"]);
        command
    };
    for (text, wanted) in [
        ("0.5,1,2\n0.25,2,3\n", "e.csv: `column 1` holds fractions"),
        ("date,who,whom\n2020-01-31,a,b\n2020-02-01,b,c\n", "e.csv: `date` holds dates"),
        ("kind,who,whom\nlikes,ann,bob\nknows,bob,cy\n", "has no id in common with the two"),
    ] {
        fs::write(folder.path().join("e.csv"), text).unwrap();
        let stderr = refusal(&mut info());
        assert!(stderr.contains(wanted), "{stderr}");
        assert!(stderr.contains("--source-column 2 --target-column 3"), "{stderr}");
        let told = finish(info().args(["--source-column", "2", "--target-column", "3"]));
        assert_eq!(told.0, 0, "{}", told.2);
    }
    for text in [
        "timestamp,sender,receiver\n5,1,2\n6,2,3\n",
        "type,head,tail\nlikes,ann,bob\nknows,bob,cy\n",
        "who,whom,type,timestamp\n1,2,likes,5\n2,3,knows,6\n",
        "user,item,rating\n101,3,5\n102,5,3\n",
    ] {
        fs::write(folder.path().join("e.csv"), text).unwrap();
        let (code, _, stderr) = finish(&mut info());
        assert_eq!(code, 0, "{text}: {stderr}");
    }
}

#[test]
fn a_missing_or_broken_config_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let stderr = refusal(&mut train(folder.path(), &["--config", "none.toml"]));
    assert!(stderr.contains("cannot read none.toml"), "{stderr}");
    fs::write(folder.path().join("a.toml"), "epochs = = 3\n").unwrap();
    let stderr = refusal(&mut train(folder.path(), &["--config", "a.toml"]));
    assert!(stderr.contains("a.toml") && stderr.contains("line 1"), "{stderr}");
}

#[test]
fn a_folder_that_cannot_be_written_names_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "not a folder").unwrap();
    for out in ["file/run", "/dev/null/run", "/proc/run"] {
        let stderr = refusal(&mut train(folder.path(), &["--epochs", "3", "--out", out]));
        assert!(stderr.contains("--out"), "{stderr}");
        assert!(stderr.contains(out), "{stderr}");
    }
    assert_eq!(read(folder.path().join("file")), b"not a folder");
}

#[test]
fn there_must_be_a_run_to_resume() {
    let folder = tempfile::tempdir().unwrap();
    let stderr = refusal(&mut train(folder.path(), &["--out", "none", "--resume"]));
    assert!(stderr.contains("none holds no run to resume"), "{stderr}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn damaged_and_foreign_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--epochs", "6", "--out", "run"];
    assert_eq!(finish(&mut train(folder.path(), &short)).0, 0);
    let path = folder.path().join("run/checkpoint.safetensors");
    let good = read(&path);
    let version = b"\"format_version\":\"2\"";
    let at = good.windows(version.len()).position(|w| w == version).unwrap();
    let mut newer = good.clone();
    newer[at + version.len() - 2] = b'9';
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (bytes, wanted) in [
        (&good[..good.len() / 2], "cut off or damaged"),
        (&good[..0], "cut off or damaged"),
        (&newer[..], "format version 9"),
        (&flipped[..], "checksum"),
    ] {
        fs::write(&path, bytes).unwrap();
        let stderr = refusal(train(folder.path(), &short).arg("--resume"));
        assert!(stderr.contains(wanted), "{stderr}");
        assert!(stderr.contains("run/checkpoint.safetensors"), "{stderr}");
        assert!(read(&path) == bytes, "a refused checkpoint is left as it is");
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(finish(train(folder.path(), &short).arg("--resume")).0, 0);
}

#[test]
fn a_diverging_run_stops_with_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let wild = ["--set", "learning_rate=1e38", "--epochs", "20"];
    let stderr = refusal(train(folder.path(), &wild).args(["--set", "warmup_epochs=0"]));
    assert!(stderr.contains("diverged"), "{stderr}");
    assert!(stderr.contains("learning_rate"), "{stderr}");
    // The first step of a warm-up moves nothing: what it saves is good.
    let saving = ["--set", "warmup_epochs=1", "--set", "checkpoint_every=1", "--out", "saving"];
    let stderr = refusal(train(folder.path(), &wild).args(saving));
    assert!(stderr.contains("the checkpoint of epoch 1 is intact"), "{stderr}");
}

/// Files may not grow beyond a few kilobytes, as on a disk that is almost full: the shell sets the
/// limit and turns off the signal that would come with it, so that writing fails with an error.
fn on_a_full_disk(folder: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" train \"$@\"";
    command.args(["-c", script, env!("CARGO_BIN_EXE_blnn")]);
    command.args(TINY).args(["--eval-every", "0"]);
    command.args(arguments).current_dir(folder);
    command
}

#[test]
fn a_full_disk_keeps_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let long = ["--epochs", "90", "--log-every", "90", "--out", "run"];
    let path = folder.path().join("run/checkpoint.safetensors");
    signal_when(&mut train(folder.path(), &long), &path, "INT");
    let (before, files) = (read(&path), names(&folder.path().join("run")));
    let resume = [&long[..], &["--resume"]].concat();
    let stderr = refusal(&mut on_a_full_disk(folder.path(), &resume));
    assert!(stderr.contains("cannot write run/checkpoint.safetensors"), "{stderr}");
    assert!(stderr.contains("is intact"), "{stderr}");
    let command = "blnn train cora --out run --eval-every 0 --log-every 90 --resume";
    assert!(stderr.contains(command), "{stderr}");
    assert!(read(&path) == before, "the old checkpoint is untouched");
    assert_eq!(names(&folder.path().join("run")), files, "no litter");
    let (code, _, stderr) = finish(&mut train(folder.path(), &resume));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(metrics(&folder.path().join("run")).last().unwrap()["epoch"], 90);
}

#[test]
fn a_full_disk_at_the_first_checkpoint_says_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--epochs", "6", "--out", "run"];
    let stderr = refusal(&mut on_a_full_disk(folder.path(), &arguments));
    assert!(stderr.contains("there is no checkpoint yet"), "{stderr}");
}

#[test]
fn too_many_threads_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = finish(&mut train(folder.path(), &["--threads", "5000"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("0..=1024"), "{stderr}");
}

/// Elsewhere `--format json` is how results are printed.
#[test]
fn a_summary_asked_for_by_the_wrong_flag_is_answered_with_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["json", "table"] {
        let stderr = refusal(&mut train(folder.path(), &["--format", wrong]));
        assert!(stderr.contains("--json") && stderr.contains("parquet"), "{stderr}");
    }
    let stderr = refusal(&mut train(folder.path(), &["--format", "parqet"]));
    assert!(stderr.contains("'parquet'"), "{stderr}");
    assert_eq!(names(folder.path()), [""; 0], "nothing was trained");
}
