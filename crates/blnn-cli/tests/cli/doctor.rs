//! `blnn doctor`, end to end.

use crate::common::{blnn, finish};

#[test]
fn findings_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = finish(blnn(folder.path()).arg("doctor"));
    assert_eq!(code, 0, "{stderr}");
    for label in ["cpu", "kernels", "threads", "memory", "data", "cache"] {
        assert!(stdout.lines().any(|line| line.starts_with(label)), "{label}: {stdout}");
    }
    let command = &mut blnn(folder.path());
    let (code, stdout, stderr) =
        finish(command.args(["doctor", "--format", "json"]).env("BLNN_KERNELS", "scalar"));
    assert_eq!(code, 0, "{stderr}");
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(found["kernels"], "scalar");
    assert!(found["datasets"].as_array().unwrap().contains(&"cora".into()), "{stdout}");
    assert!(found.get("peaks").is_none(), "peaks are measured on demand only");
}
