//! The commands of the guide in docs/, run as they stand there.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use blnn::Matrix;
use blnn::data::npy;
use parquet::data_type::{ByteArray, ByteArrayType, FloatType};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::common::told;

const PEOPLE: [&str; 6] = ["ann", "bob", "cy", "di", "ed", "fay"];
const PAIRS: [(i64, i64); 7] = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (2, 3)];

/// The contents of the fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = text.split(&fence).skip(1);
    starts.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

fn archive(path: &Path, members: &[(&str, Vec<u8>)]) {
    let mut zip = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
}

fn integers(values: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write_i64(&mut bytes, values).unwrap();
    bytes
}

fn matrix(matrix: &Matrix) -> Vec<u8> {
    let mut bytes = Vec::new();
    npy::write_f32_matrix(&mut bytes, matrix).unwrap();
    bytes
}

/// A vector of `count` pairs, its header saying so in place of the plain length.
fn pairs() -> Vec<u8> {
    let flat: Vec<u8> =
        PAIRS.iter().flat_map(|&(i, j)| [i, j]).flat_map(i64::to_le_bytes).collect();
    let dict = "{'descr': '<i8', 'fortran_order': False, 'shape': (7, 2), }\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(flat);
    bytes
}

fn text_scalar(text: &str) -> Vec<u8> {
    let dict = format!("{{'descr': '|S{}', 'fortran_order': False, 'shape': (), }}\n", text.len());
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

/// A parquet table of texts, with a column of floats behind them if there is one.
fn table(path: &Path, schema: &str, texts: &[Vec<&str>], numbers: &[f32]) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = File::create(path).unwrap();
    let mut file = SerializedFileWriter::new(file, schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for texts in texts {
        let texts: Vec<ByteArray> = texts.iter().map(|&text| text.into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
        column.close().unwrap();
    }
    if let Some(mut column) = group.next_column().unwrap() {
        column.typed::<FloatType>().write_batch(numbers, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    file.close().unwrap();
}

/// The files that the text says other programs made.
fn prepare(folder: &Path) {
    let ends = |end: fn(&(i64, i64)) -> i64| PAIRS.iter().map(end).collect::<Vec<_>>();
    let (sources, targets) = (ends(|pair| pair.0), ends(|pair| pair.1));
    let people = |rows: &[i64]| rows.iter().map(|&i| PEOPLE[i as usize]).collect::<Vec<_>>();
    table(
        &folder.join("edges.parquet"),
        "message edges { required binary source (STRING); required binary target (STRING); }",
        &[people(&sources), people(&targets)],
        &[],
    );
    table(
        &folder.join("nodes.parquet"),
        "message nodes { required binary id (STRING); required binary topic (STRING); \
         required float age; }",
        &[PEOPLE.to_vec(), vec!["ai", "ai", "ai", "db", "db", "db"]],
        &[31.0, 40.0, 25.0, 60.0, 51.0, 33.0],
    );
    let features = matrix(&Matrix::from_fn(6, 2, |i, j| (i * (j + 1)) as f32 - 2.0));
    let classes = integers(&[0, 0, 0, 1, 1, 1]);
    archive(
        &folder.join("adjacency.npz"),
        &[
            ("format", text_scalar("coo")),
            ("shape", integers(&[6, 6])),
            ("row", integers(&sources)),
            ("col", integers(&targets)),
            ("data", integers(&[1; 7])),
        ],
    );
    archive(
        &folder.join("graph.npz"),
        &[
            ("edges", pairs()),
            ("node_features", features.clone()),
            ("node_labels", classes.clone()),
        ],
    );
    fs::write(folder.join("features.npy"), features).unwrap();
    fs::write(folder.join("classes.npy"), classes).unwrap();
}

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Runs the commands of a page as they stand there, from top to bottom in one folder; returns all
/// that they printed.
fn run_page(name: &str, folder: &Path) -> String {
    let text = fs::read_to_string(docs().join(name)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_blnn")).parent().unwrap();
    let search = std::env::var("PATH").unwrap_or_default();
    let search = format!("{}:{search}", program.display());
    let scripts = blocks(&text, "sh");
    assert!(!scripts.is_empty(), "{name}: the examples are found");
    let mut all = String::new();
    for script in scripts {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &script]).current_dir(folder).env("PATH", &search);
        let (code, stdout, stderr) = told(&shell.output().unwrap());
        assert_eq!(code, 0, "{name}: {script}\n{stderr}");
        all = all + &stdout + &stderr;
    }
    // What the text says is printed is printed.
    for shown in blocks(&text, "text") {
        assert!(all.contains(&shown), "{name}: {shown}\nis not in\n{all}");
    }
    all
}

#[test]
fn the_graphs() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let all = run_page("DATA.md", folder.path());
    assert!(all.contains("`who` → `whom`") && all.contains("`column 1` → `column 3`"), "{all}");
    for name in ["csv", "npz", "parquet", "w2v.txt", "vectors.tsv", "metadata.tsv"] {
        assert!(folder.path().join("runs/saved").join(format!("embeddings.{name}")).exists());
    }
}

#[test]
fn quick_start() {
    let folder = tempfile::tempdir().unwrap();
    let all = run_page("QUICKSTART.md", folder.path());
    assert!(all.contains("similar to ann") && all.contains("similar to guy"), "{all}");
    assert!(folder.path().join("friends.html").exists());
    assert!(folder.path().join("runs/friends-blnn-seed1/embeddings.parquet").exists());
}

#[test]
fn the_method() {
    run_page("METHOD.md", tempfile::tempdir().unwrap().path());
}

#[test]
fn choosing_settings() {
    run_page("SETTINGS.md", tempfile::tempdir().unwrap().path());
}

#[test]
fn questions() {
    let folder = tempfile::tempdir().unwrap();
    run_page("FAQ.md", folder.path());
    assert!(folder.path().join("blnn.bash").exists() && folder.path().join("man1").exists());
}

/// The cells of all tables of a page, without those of remarks: what is missing differs between
/// machines with and without the data.
fn cells(page: &str) -> Vec<&str> {
    let mut has_remarks = false;
    let mut lines = Vec::new();
    for (line, next) in page.lines().zip(page.lines().skip(1).chain([""])) {
        if next.starts_with("|--") {
            has_remarks = line.ends_with("| remark |");
        }
        if let Some(row) = line.strip_suffix(" |").filter(|row| row.starts_with('|')) {
            lines.push(if has_remarks { row.rsplit_once(" |").unwrap().0 } else { row });
        }
    }
    lines
}

/// The ledger's tables are what its command makes of the records, and nothing else.
#[test]
fn the_reproduction() {
    let folder = tempfile::tempdir().unwrap();
    let copies = folder.path().join("docs");
    fs::create_dir_all(copies.join("records")).unwrap();
    fs::copy(docs().join("REPRODUCTION.md"), copies.join("REPRODUCTION.md")).unwrap();
    for record in fs::read_dir(docs().join("records")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&record, copies.join("records").join(record.file_name().unwrap())).unwrap();
    }
    run_page("REPRODUCTION.md", folder.path());
    let before = fs::read_to_string(docs().join("REPRODUCTION.md")).unwrap();
    let after = fs::read_to_string(copies.join("REPRODUCTION.md")).unwrap();
    let (before, after) = (cells(&before), cells(&after));
    assert!(before.len() > 300, "the tables are found");
    let differs = before.iter().zip(&after).find(|(before, after)| before != after);
    assert_eq!(differs, None, "write the ledger again, by its own command");
    assert_eq!(before.len(), after.len(), "write the ledger again, by its own command");
}

/// A page that nobody runs would go stale.
#[test]
fn every_page_with_commands_is_run() {
    let run = ["DATA.md", "QUICKSTART.md", "METHOD.md", "SETTINGS.md", "FAQ.md", "REPRODUCTION.md"];
    for page in fs::read_dir(docs()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = page.file_name().unwrap().to_str().unwrap();
        let commands = fs::read_to_string(&page).is_ok_and(|text| text.contains("```sh\n"));
        assert!(!commands || run.contains(&name), "{name} has commands");
    }
}
