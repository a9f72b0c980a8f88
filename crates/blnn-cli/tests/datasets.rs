//! `blnn datasets` as a user runs it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run of `blnn datasets` with no data but what is in `home`.
fn datasets(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blnn"))
        .arg("datasets")
        .args(args)
        .env_remove("BLNN_DATA_DIR")
        .env("XDG_CACHE_HOME", home)
        .env("LOCALAPPDATA", home)
        .env("HOME", home)
        .output()
        .expect("the command runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn assert_error(output: &Output, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    assert!(output.stdout.is_empty());
}

/// Serves `body` to every request, under any name.
fn serve(body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer(stream, &body);
        }
    });
    address
}

fn answer(mut stream: TcpStream, body: &[u8]) {
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    lines.take_while(|line| !line.is_empty()).for_each(drop);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

#[test]
fn list_names_every_graph_and_how_to_get_it() {
    let home = tempfile::tempdir().unwrap();
    let text = stdout(&datasets(home.path(), &["list"]));
    for part in ["cora", "embedded", "wikics", "blnn datasets fetch photo", "238,162"] {
        assert!(text.contains(part), "{text}");
    }
    let json = stdout(&datasets(home.path(), &["list", "--format", "json"]));
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 6);
    assert_eq!(rows[1]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn info_describes_the_embedded_graph() {
    let home = tempfile::tempdir().unwrap();
    let text = stdout(&datasets(home.path(), &["info", "cora"]));
    for part in ["2,708", "10,556", "1,433", "81.00 %"] {
        assert!(text.contains(part), "{text}");
    }
    let json = stdout(&datasets(home.path(), &["info", "cora", "--format", "json"]));
    let info: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((info["nodes"].as_u64(), info["classes"].as_u64()), (Some(2708), Some(7)));
    assert!(info["paper"].is_null());
}

#[test]
fn errors_name_the_remedy_and_exit_with_two() {
    let home = tempfile::tempdir().unwrap();
    let cache = home.path().display().to_string();
    let run = |args: &[&str]| datasets(home.path(), args);
    assert_error(
        &run(&["info", "photo"]),
        &["amazon_electronics_photo.npz", &cache, "`blnn datasets fetch photo`"],
    );
    assert_error(&run(&["info", "phtoo"]), &["did you mean `photo`?"]);
    assert_error(&run(&["fetch", "phtoo"]), &["did you mean `photo`?"]);
    assert_error(&run(&["info", "absent.npz"]), &["cannot read absent.npz"]);
    assert_error(&run(&["fetch"]), &["NAME"]);
}

#[test]
fn a_lying_mirror_leaves_no_file() {
    let home = tempfile::tempdir().unwrap();
    let mirror = serve(vec![7; 5000]);
    let output = datasets(home.path(), &["fetch", "photo", "--mirror", &mirror]);
    assert_error(&output, &["another file than the published one", "SHA-256", &mirror]);
    let left = std::fs::read_dir(home.path().join("blnn")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn a_folder_in_the_way_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("not-a-folder");
    std::fs::write(&file, "").unwrap();
    let folder = file.join("data").display().to_string();
    let output = datasets(home.path(), &["fetch", "cs", "--data-dir", &folder]);
    assert_error(&output, &["cannot make the folder", "not-a-folder"]);
}

#[test]
fn the_embedded_graph_needs_no_fetching() {
    let home = tempfile::tempdir().unwrap();
    let output = datasets(home.path(), &["fetch", "cora"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to fetch"));
}

mod large_data {
    use super::*;

    fn folder() -> PathBuf {
        let named = std::env::var_os("BLNN_DATA_DIR").map(PathBuf::from);
        let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let folder = named.into_iter().chain([beside]).find(|f| f.join(CS).is_file());
        folder.expect("the graphs of `blnn datasets fetch photo computers cs physics`")
    }

    const CS: &str = "ms_academic_cs.npz";

    #[test]
    #[ignore = "needs the large graphs"]
    fn the_table_agrees_with_the_paper() {
        let folder = folder().display().to_string();
        let home = tempfile::tempdir().unwrap();
        let names = ["photo", "computers", "cs", "physics"];
        let args = [&["info", "--verify", "--data-dir", &folder][..], &names].concat();
        let text = stdout(&datasets(home.path(), &args));
        assert_eq!(text.matches("agrees").count(), 19, "{text}");
        assert!(text.contains("238,162  238,163   differs by 1: the paper counts"), "{text}");
    }

    #[test]
    #[ignore = "needs the large graphs"]
    fn a_true_mirror_is_fetched_from_and_then_not_needed() {
        let home = tempfile::tempdir().unwrap();
        let mirror = serve(std::fs::read(folder().join(CS)).unwrap());
        let output = datasets(home.path(), &["fetch", "cs", "--mirror", &mirror]);
        assert!(output.status.success(), "{output:?}");
        let path = PathBuf::from(stdout(&output).trim());
        assert!(path.starts_with(home.path()) && path.ends_with(CS));
        assert!(stdout(&datasets(home.path(), &["info", "cs"])).contains("163,788"));
        let nowhere = ["fetch", "cs", "--mirror", "http://127.0.0.1:9"];
        assert_eq!(stdout(&datasets(home.path(), &nowhere)).trim(), path.display().to_string());
    }
}
