//! A user's own graph, from files to embeddings.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::common::{TINY, blnn, finish, names, read, refusal};

/// Two rings of twenty, joined at one place; the ring is the topic.
fn put_tables(folder: &Path) {
    let mut edges = String::from("from,to\n");
    let mut nodes = String::from("node,size,topic\n");
    for i in 0..20 {
        for ring in ["a", "b"] {
            writeln!(edges, "{ring}{i},{ring}{}", (i + 1) % 20).unwrap();
            writeln!(nodes, "{ring}{i},{},{ring}", i % 7).unwrap();
        }
    }
    edges += "a0,b0\n";
    fs::write(folder.join("edges.csv"), edges).unwrap();
    fs::write(folder.join("nodes.csv"), nodes).unwrap();
}

const FILES: [&str; 6] = ["--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "topic"];

#[test]
fn tables_lead_to_embeddings_scores_and_other_formats() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let save = ["--format", "parquet,csv", "--epochs", "6", "--out", "run"];
    let (code, stdout, stderr) =
        finish(blnn(folder.path()).arg("train").args(FILES).args(save).args(TINY));
    assert_eq!(code, 0, "{stderr}");
    for part in ["`from` → `to`", "ids in `node`", "40, called by texts", "41 from 41 listed"] {
        assert!(stderr.contains(part), "{part} in {stderr}");
    }
    assert!(stdout.contains("accuracy"), "{stdout}");
    assert!(stdout.contains("--labels nodes.csv --label topic"), "{stdout}");
    assert!(stdout.contains("run/embeddings.parquet"), "{stdout}");
    let ids = String::from_utf8(read(folder.path().join("run/node_ids.txt"))).unwrap();
    assert_eq!(ids.lines().take(3).collect::<Vec<_>>(), ["a0", "b0", "a1"]);
    let csv = String::from_utf8(read(folder.path().join("run/embeddings.csv"))).unwrap();
    assert!(csv.starts_with("id,e0,e1,e2,e3\na0,"), "{csv}");
    let features = String::from_utf8(read(folder.path().join("run/features.json"))).unwrap();
    assert!(features.contains("\"name\": \"size\""), "{features}");
}

/// The table of labels is in another order than the embeddings: ids match them.
#[test]
fn labels_are_matched_by_id() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let short = ["--epochs", "6", "--out", "run", "--eval-every", "0"];
    let trained = finish(blnn(folder.path()).arg("train").args(FILES).args(short).args(TINY));
    assert_eq!(trained.0, 0, "{}", trained.2);
    let nodes = fs::read_to_string(folder.path().join("nodes.csv")).unwrap();
    let mut lines: Vec<&str> = nodes.lines().collect();
    lines[1..].reverse();
    fs::write(folder.path().join("turned.csv"), lines.join("\n")).unwrap();
    let score = |table: &str| {
        let eval = ["eval", "run/embeddings.npy", "--label", "topic", "--tasks", "similar"];
        finish(blnn(folder.path()).args(eval).args(["--format", "csv", "--labels", table]))
    };
    let (a, b) = (score("nodes.csv"), score("turned.csv"));
    assert_eq!((a.0, b.0), (0, 0), "{}{}", a.2, b.2);
    let scores = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(scores(&a.1), scores(&b.1));
    lines.truncate(30);
    fs::write(folder.path().join("short.csv"), lines.join("\n")).unwrap();
    let (code, _, stderr) = score("short.csv");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("11 of 40 nodes have no label and are not scored"), "{stderr}");
}

#[test]
fn a_stopped_run_is_resumed_by_the_command_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let whole = ["--epochs", "6", "--out", "run", "--eval-every", "0"];
    let resume = [&whole[..], &["--resume"]].concat();
    assert_eq!(finish(blnn(folder.path()).arg("train").args(FILES).args(whole).args(TINY)).0, 0);
    let before = read(folder.path().join("run/embeddings.npy"));
    let again = finish(blnn(folder.path()).arg("train").args(FILES).args(resume).args(TINY));
    assert_eq!(again.0, 0, "{}", again.2);
    assert_eq!(read(folder.path().join("run/embeddings.npy")), before);
}

#[test]
fn flags_that_do_not_fit_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let cases: [(&[&str], &str); 6] = [
        (&["photo", "--edges", "edges.csv"], "are two graphs"),
        (&["cora", "--label", "topic"], "--label is for a graph of your own"),
        (&["edges.csv", "--label", "topic"], "--nodes"),
        (&["--edges", "none.csv"], "cannot read none.csv"),
        (
            &["--edges", "edges.csv", "--nodes", "nodes.csv", "--label", "topik"],
            "did you mean `topic`?",
        ),
        (&["--edges", "edges.csv", "--source-column", "frm"], "did you mean `from`?"),
    ];
    for (arguments, wanted) in cases {
        let stderr = refusal(blnn(folder.path()).arg("train").args(arguments));
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
    assert_eq!(names(folder.path()), ["edges.csv", "nodes.csv"]);
}

#[test]
fn information_takes_the_same_flags() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let (code, stdout, stderr) =
        finish(blnn(folder.path()).args(["datasets", "info", "--format", "json"]).args(FILES));
    assert_eq!(code, 0, "{stderr}");
    let info: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&info["nodes"], &info["entries"]), (&40.into(), &82.into()));
    assert_eq!(info["classes"], 2);
}

/// The reader of parquet panics over some damaged files: nobody should see that.
#[test]
fn damaged_parquet_is_an_error_without_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let save = ["--epochs", "2", "--save", "parquet", "--out", "run", "--eval-every", "0"];
    let trained = finish(blnn(folder.path()).arg("train").args(FILES).args(save).args(TINY));
    assert_eq!(trained.0, 0, "{}", trained.2);
    let good = read(folder.path().join("run/embeddings.parquet"));
    for place in (4..good.len()).step_by(good.len() / 40) {
        let mut bad = good.clone();
        bad[place] ^= 0x55;
        fs::write(folder.path().join("bad.parquet"), bad).unwrap();
        let info = ["datasets", "info", "--edges", "edges.csv", "--nodes", "bad.parquet"];
        // `finish` fails if the word "panicked" is printed.
        let (code, _, stderr) = finish(blnn(folder.path()).args(info));
        assert!(
            code == 0 || (code == 2 && stderr.contains(".parquet")),
            "{place}: {code} {stderr}"
        );
    }
}

/// What comes through a pipe is the whole table, its first bytes included.
#[cfg(unix)]
#[test]
fn pipes_are_read_as_files_are() {
    let folder = tempfile::tempdir().unwrap();
    put_tables(folder.path());
    let script = "mkfifo fifo; cat edges.csv > fifo & cat nodes.csv | \
                  \"$0\" datasets info --format json --edges fifo --nodes /dev/stdin --label topic";
    let mut piped = std::process::Command::new("sh");
    piped.args(["-c", script, env!("CARGO_BIN_EXE_blnn")]).current_dir(folder.path());
    let (code, piped, stderr) = finish(&mut piped);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("fifo: text separated by comma, with a header; `from` → `to`"));
    let info = ["datasets", "info", "--format", "json"];
    let (_, plain, _) = finish(blnn(folder.path()).args(info).args(FILES));
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    for key in ["nodes", "entries", "features", "classes"] {
        assert_eq!(parsed(&piped)[key], parsed(&plain)[key], "{key}");
    }
    // A wrong end is told with its line, for which the table is looked at again.
    let script =
        "printf 'a0,b0\na1,zz\n' | \"$0\" datasets info --edges /dev/stdin --nodes nodes.csv";
    let mut wrong = std::process::Command::new("sh");
    wrong.args(["-c", script, env!("CARGO_BIN_EXE_blnn")]).current_dir(folder.path());
    let stderr = refusal(&mut wrong);
    assert!(stderr.contains("/dev/stdin: line 2: the target `zz`"), "{stderr}");
}

/// Tables of nothing but texts: the first line is guessed about, and the guess is told.
#[test]
fn a_guess_about_the_first_line_is_told_with_the_flag_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("likes.csv", "user,friend,stars\nann,bob,x\nbob,cy,y\n");
    put("people.csv", "person,country,team\nann,de,red\nbob,fr,blue\ncy,de,red\n");
    put("pairs.csv", "ann,bob\ncy,di\n");
    let info = |arguments: &[&str]| {
        let (code, stdout, stderr) = finish(
            blnn(folder.path()).args(["datasets", "info", "--format", "json"]).args(arguments),
        );
        assert_eq!(code, 0, "{stderr}");
        (serde_json::from_str::<serde_json::Value>(&stdout).unwrap()["nodes"].clone(), stderr)
    };
    let (nodes, told) = info(&["--edges", "likes.csv", "--nodes", "people.csv"]);
    assert_eq!(nodes, 3);
    for part in [
        "note      likes.csv: line 1 (`user`, `friend`, `stars`) is taken as the header",
        "note      people.csv: line 1 (`person`, `country`, `team`) is taken as the header",
        "--no-header",
        "passed over: `stars`",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert_eq!(info(&["--edges", "likes.csv", "--no-header"]).0, 5);
    let (nodes, told) = info(&["--edges", "pairs.csv"]);
    assert_eq!(nodes, 4, "no edge is lost");
    assert!(told.contains("taken as data; if it is the header, say so with --source-column 'ann'"));
    assert_eq!(info(&["--edges", "pairs.csv", "--source-column", "ann"]).0, 2);
    // One table with a header, one without.
    let apart = ["--no-header", "--id-column", "person", "--nodes", "people.csv"];
    put("known.csv", "ann,bob\ncy,ann\n");
    assert_eq!(info(&[&apart[..], &["--edges", "known.csv"]].concat()).0, 3);
}

/// What spreadsheets and data frames add to a table, and how it is told.
#[test]
fn tables_of_other_programs_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("frame.csv", ",id,x\n0,a,1.5\n1,b,2.5\n2,c,2.5\n");
    put("mac.csv", "source,target\ra,b\rb,c\r");
    put("edges.csv", "1,2\n2,3\n");
    put("users.csv", "key,name,age\nx1,1,31\nx2,2,40\nx3,3,25\n");
    let info = ["datasets", "info", "--edges"];
    let (code, _, told) =
        finish(blnn(folder.path()).args(info).args(["mac.csv", "--nodes", "frame.csv"]));
    assert_eq!(code, 0, "{told}");
    for part in ["`source` → `target`", "features  1: x", "left out  column 1 (row numbers"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let wrong = ["edges.csv", "--nodes", "users.csv"];
    let stderr = refusal(blnn(folder.path()).args(info).args(wrong));
    let wanted = "the source `1` is not among the ids of users.csv (its column `key`; --id-column";
    assert!(stderr.contains(wanted), "{stderr}");
    let told = [&wrong[..], &["--id-column", "name"]].concat();
    assert_eq!(finish(blnn(folder.path()).args(info).args(told)).0, 0);
}

/// A file that would be another graph than is meant, with what to do about it.
#[test]
fn files_that_would_be_misread_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (text, wanted) in [
        ("source,target\n1,2.0\n2,3.0\n", "e.csv: line 2: the target is `2.0`"),
        ("source,target\n1,2\n2,NaN\n", "e.csv: line 3: the target is `NaN`"),
        ("who,rating,whom\nann,5,bob\nbob,3,cy\n", "--source-column 1 --target-column 3"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "scipy.io.mmread"),
        ("<?xml version='1.0'?>\n<graphml></graphml>\n", "networkx.read_graphml"),
        ("{\"source\": 1, \"target\": 2}\n", "pandas.read_json"),
    ] {
        fs::write(folder.path().join("e.csv"), text).unwrap();
        let stderr = refusal(blnn(folder.path()).args(["datasets", "info", "e.csv"]));
        assert!(stderr.contains(wanted), "{text}: {stderr}");
    }
}
