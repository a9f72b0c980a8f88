//! The built command, started the way a user starts it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A model of a few thousand weights: the tests are about files and signals, not about quality.
pub(crate) const TINY: [&str; 8] = [
    "--set",
    "hidden_width=8",
    "--set",
    "embedding_width=4",
    "--set",
    "predictor_width=8",
    "--set",
    "checkpoint_every=3",
];

/// `blnn` in a folder of its own.
pub(crate) fn blnn(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blnn"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// `blnn train` of a tiny model on Cora, never scored, with more arguments.
pub(crate) fn train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = scored_train(folder, arguments);
    command.args(["--eval-every", "0"]);
    command
}

/// `blnn train` of a tiny model on Cora, without the page that shows it, with more arguments.
pub(crate) fn scored_train(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = blnn(folder);
    command.args(["train", "--no-report"]).args(TINY).args(arguments);
    command
}

/// Runs to the end and returns exit code, stdout and stderr.
pub(crate) fn finish(command: &mut Command) -> (i32, String, String) {
    told(&command.output().expect("the command starts"))
}

pub(crate) fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    (output.status.code().unwrap_or(-1), text(&output.stdout), stderr)
}

/// Runs a command that must fail with an error, and returns what it says on stderr.
pub(crate) fn refusal(command: &mut Command) -> String {
    let (code, stdout, stderr) = finish(command);
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(stdout, "", "results only on stdout");
    assert!(stderr.lines().any(|line| line.starts_with("error: ")), "{stderr}");
    stderr
}

/// Starts a command, waits until `path` exists and then sends it a signal, such as `KILL`.
pub(crate) fn signal_when(command: &mut Command, path: &Path, signal: &str) -> Output {
    let child = start(command);
    let deadline = Instant::now() + Duration::from_mins(1);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
    // The shell has its own `kill`; the program of that name is not everywhere.
    let kill = format!("kill -s {signal} {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.expect("a shell starts").success(), "the run ended too early");
    child.wait_with_output().expect("the run ends")
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command starts")
}

pub(crate) fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let path = path.as_ref();
    fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// metrics.jsonl without the one field that differs between equal runs.
pub(crate) fn metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = String::from_utf8(read(run.join("metrics.jsonl"))).expect("metrics are text");
    let parse = |line: &str| {
        let mut record: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        let seconds = record.as_object_mut().and_then(|o| o.remove("seconds"));
        assert!(seconds.is_some_and(|s| s.is_number()), "{line}");
        record
    };
    text.lines().map(parse).collect()
}

/// Every file below a folder, by name: to see that nothing was left behind.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder exists");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
