//! `blnn completions` and `blnn man`, end to end.

use crate::common::{blnn, finish, names};

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, stdout, stderr) = finish(blnn(folder.path()).args(["completions", shell]));
        assert_eq!(code, 0, "{stderr}");
        for word in ["train", "eval-every", "similar"] {
            assert!(stdout.contains(word), "{shell} does not know {word}");
        }
    }
    let (code, _, stderr) = finish(blnn(folder.path()).args(["completions", "tcsh"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("bash") && stderr.contains("fish"), "{stderr}");
}

#[test]
fn every_command_gets_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = finish(blnn(folder.path()).args(["man", "pages/man1"]));
    assert_eq!(code, 0, "{stderr}");
    let pages = names(&folder.path().join("pages/man1"));
    for page in ["blnn.1", "blnn-train.1", "blnn-eval.1", "blnn-datasets-fetch.1"] {
        assert!(pages.iter().any(|name| name == page), "no {page} among {pages:?}");
    }
    let text = std::fs::read_to_string(folder.path().join("pages/man1/blnn-train.1")).unwrap();
    assert!(text.contains("eval\\-every"), "flags are explained");
}
