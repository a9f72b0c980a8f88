//! `--help`: every promised flag is there, with examples.

use crate::common::finish;

fn help(command: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) =
        finish(crate::common::blnn(folder.path()).args(command).arg("--help"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout
}

#[test]
fn the_command_lists_its_commands() {
    let text = help(&[]);
    for command in ["train", "plan", "eval", "embed", "report", "similar", "bench", "datasets"] {
        assert!(text.contains(&format!("\n  {command} ")), "{text}");
    }
}

#[test]
fn train_explains_its_flags() {
    let text = help(&["train"]);
    for flag in [
        "--method",
        "--config",
        "--set",
        "--epochs",
        "--seed",
        "--threads",
        "--precision",
        "--out",
        "--resume",
        "--force",
        "--data-dir",
        "--print-config",
        "--log-every",
        "--eval-every",
        "--no-report",
        "--format",
        "--json",
        "--tensorboard",
        "--no-memory-check",
    ] {
        assert!(
            text.contains(&format!("{flag} ")) || text.contains(&format!("{flag}\n")),
            "{flag}"
        );
    }
    assert!(text.contains("Examples:"), "{text}");
    assert!(text.contains("blnn, bgrl, bgrl-noisy, bgrl-clean"), "{text}");
}

#[test]
fn bench_explains_its_flags() {
    let text = help(&["bench"]);
    for flag in ["--epochs", "--method", "--threads", "--format"] {
        assert!(text.contains(flag), "{flag}");
    }
    assert!(!text.contains("--here"), "an inner matter");
}

#[test]
fn the_version_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, _) = finish(crate::common::blnn(folder.path()).arg("--version"));
    assert_eq!(code, 0);
    assert_eq!(stdout.trim(), concat!("blnn ", env!("CARGO_PKG_VERSION")));
}
