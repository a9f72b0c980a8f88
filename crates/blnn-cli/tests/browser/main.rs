//! The report in a real browser.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod driver;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use blnn_kernels::Matrix;

/// A run of a tiny model on Cora, with its page. One node has an id that would break a page that
/// took ids for HTML.
struct Run {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

const HOSTILE: &str = "</script><script>document.title = 'owned'</script><b>\"'&amp;";

fn blnn(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blnn"));
    let command = command.current_dir(folder).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn run() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let tiny = ["--set", "hidden_width=16", "--set", "embedding_width=8"];
        let rest = ["--epochs", "30", "--eval-every", "0", "--out", "run", "--no-report"];
        let all: Vec<&str> = ["train"].into_iter().chain(tiny).chain(rest).collect();
        blnn(folder.path(), &all);
        let ids = folder.path().join("run/node_ids.txt");
        let text = fs::read_to_string(&ids).unwrap();
        let (_, others) = text.split_once('\n').unwrap();
        fs::write(&ids, format!("{HOSTILE}\n{others}")).unwrap();
        blnn(folder.path(), &["report", "run"]);
        Run { root: folder.path().join("run"), _folder: folder }
    })
}

/// The page of a run of 35,000 made-up nodes without a graph.
fn large_page(folder: &Path) -> PathBuf {
    const NODES: usize = 35_000;
    let root = folder.join("large");
    fs::create_dir(&root).unwrap();
    let wave = |i: usize, j: usize| ((i * (j + 3) + i % 11 * j) as f32 * 0.37).sin();
    let points = Matrix::from_fn(NODES, 8, |i, j| wave(i, j) + f32::from(i % 8 == j) * 2.0);
    let mut bytes = Vec::new();
    blnn::data::npy::write_f32_matrix(&mut bytes, &points).unwrap();
    fs::write(root.join("embeddings.npy"), bytes).unwrap();
    let ids: String = (0..NODES).map(|i| i.to_string() + "\n").collect();
    fs::write(root.join("node_ids.txt"), ids).unwrap();
    fs::write(root.join("config.toml"), "").unwrap();
    let summary = serde_json::json!({ "graph": "made-up", "nodes": NODES, "method": "blnn",
        "seed": 1, "epochs": 1, "finished": true, "embedding_width": 8, "seconds": 1.0 });
    fs::write(root.join("summary.json"), summary.to_string()).unwrap();
    blnn(folder, &["report", "large", "--map", "pca"]);
    root.join("report.html")
}

/// The test command finds tests that need a browser by the name of this module.
mod needs_browser {
    use super::driver::Browser;
    use super::{HOSTILE, large_page, run};

    /// How many different colours the map shows, besides its background, in how many pixels.
    const MAP_COLOURS: &str = "
        const { width, height } = document.getElementById('points');
        const copy = Object.assign(document.createElement('canvas'), { width, height });
        const pen = copy.getContext('2d');
        pen.drawImage(document.getElementById('points'), 0, 0);
        const { data } = pen.getImageData(0, 0, width, height);
        const pixels = new Uint32Array(data.buffer);
        const counts = new Map();
        pixels.forEach((pixel) => counts.set(pixel, (counts.get(pixel) ?? 0) + 1));
        const background = Math.max(...counts.values());
        return [counts.size - 1, pixels.length - background, pixels.length];";

    fn opened() -> Browser {
        let browser = Browser::open(1280, 900);
        browser.visit(&run().root.join("report.html"));
        browser
    }

    fn assert_drawn(browser: &Browser) {
        let counts = browser.run(MAP_COLOURS);
        let [colours, drawn, all] = [0, 1, 2].map(|at| counts[at].as_u64().unwrap());
        assert!(colours > 20, "{colours} colours");
        assert!(drawn > all / 200 && drawn < all / 2, "{drawn} of {all} pixels");
    }

    #[test]
    fn the_page_loads_without_a_word_and_without_the_network() {
        let browser = opened();
        assert_drawn(&browser);
        let charts = browser.run("return document.querySelectorAll('.chart svg path').length");
        assert!(charts.as_u64().unwrap() > 20, "{charts} paths");
        let sections = browser
            .run("return [...document.querySelectorAll('main > section')].every((s) => !s.hidden)");
        assert_eq!(sections, true);
        assert_eq!(browser.text("#title"), "BLNN on cora");
        assert!(browser.text("#config").contains("hidden_width = 16"));
        assert_eq!(browser.complaints(), Vec::<String>::new());
        assert_eq!(browser.requests(), Vec::<String>::new());
    }

    #[test]
    fn a_search_finds_a_node_and_its_neighbours() {
        let browser = opened();
        browser.run("document.getElementById('search').focus(); return 1");
        browser.type_keys("10611");
        browser.wait("return !document.getElementById('found').hidden");
        assert!(browser.text("#found li").starts_with("1061127"), "{}", browser.text("#found"));
        browser.type_keys("\u{e007}");
        assert_eq!(browser.text("#chosen h3"), "1061127");
        let count = browser.run("return document.querySelectorAll('.neighbours li').length");
        assert_eq!(count, 10);
        // A neighbour leads on to its own neighbours.
        let next = browser.text(".neighbours .name");
        browser.run("document.querySelector('.neighbours button').click(); return 1");
        assert_eq!(browser.text("#chosen h3"), next);
        browser.run("document.getElementById('search').value = ''; return 1");
        browser.run("document.getElementById('search').focus(); return 1");
        browser.type_keys("nowhere");
        assert_eq!(browser.text("#found"), "no such node");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn a_click_lists_the_nearest_nodes() {
        let browser = opened();
        browser.run("document.getElementById('map').scrollIntoView(); return 1");
        let place = browser.run("return window.blnn.place('1061127')");
        browser.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        // Another node may lie on top of it; whichever was hit lists its ten.
        let values = browser.run(
            "return [...document.querySelectorAll('.neighbours .value')].map((v) => Number(v.textContent))",
        );
        let values: Vec<f64> =
            values.as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).collect();
        assert_eq!(values.len(), 10);
        assert!(values.is_sorted_by(|a, b| a >= b) && values[0] <= 1.0, "{values:?}");
        browser.run("document.getElementById('points').focus(); return 1");
        browser.type_keys("\u{e00c}");
        assert!(browser.text("#chosen").starts_with("Choose a node"), "Escape lets go");
        browser.type_keys("++\u{e007}");
        assert_eq!(
            browser.run("return document.querySelectorAll('.neighbours li').length"),
            10,
            "Enter takes the node in the middle"
        );
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn both_themes_are_drawn() {
        let browser = Browser::open(1280, 900);
        let background = "return getComputedStyle(document.body).backgroundColor";
        let mut seen = Vec::new();
        for theme in ["light", "dark"] {
            browser.prefer(theme);
            browser.visit(&run().root.join("report.html"));
            assert_eq!(browser.run("return document.documentElement.dataset.theme"), theme);
            assert_drawn(&browser);
            seen.push(browser.run(background));
        }
        assert_ne!(seen[0], seen[1]);
        browser.run("document.getElementById('theme').click(); return 1");
        browser.settle();
        assert_eq!(browser.run(background), seen[0], "the button turns the light on");
        assert_drawn(&browser);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn a_phone_shows_everything_in_its_width() {
        let browser = Browser::open(500, 900);
        browser.be_a_phone();
        browser.visit(&run().root.join("report.html"));
        let width = browser.run("return document.documentElement.scrollWidth");
        assert_eq!(width, 390, "no sideways scrolling");
        assert_drawn(&browser);
        let small = browser.run(
            "return [...document.querySelectorAll('.tools button')].filter((b) => \
             b.offsetHeight > 0 && b.offsetHeight < 28).map((b) => b.textContent)",
        );
        assert_eq!(small, serde_json::json!([]), "fingers need room");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn ids_are_text_and_nothing_else() {
        let browser = opened();
        assert_eq!(browser.run("return document.title"), "BLNN on cora");
        browser.run("document.getElementById('search').focus(); return 1");
        browser.type_keys("</script");
        assert!(browser.text("#found li").starts_with(HOSTILE), "{}", browser.text("#found"));
        browser.type_keys("\u{e007}");
        assert_eq!(browser.text("#chosen h3"), HOSTILE);
        assert_eq!(browser.run("return document.title"), "BLNN on cora");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn pictures_can_be_saved() {
        let browser = opened();
        // Catches what would go to the reader's disk, and reads it as what it claims to be.
        browser.run(
            "window.saved = []; let caught; \
             URL.createObjectURL = (blob) => { caught = blob; return '#'; }; \
             HTMLAnchorElement.prototype.click = async function () { \
               const [blob, name] = [caught, this.download]; \
               if (blob.type === 'image/png') { \
                 const { width } = await createImageBitmap(blob); \
                 window.saved.push(name + (width > 500 ? '' : ' is small')); \
                 return; \
               } \
               const read = new DOMParser().parseFromString(await blob.text(), blob.type); \
               const good = read.documentElement.nodeName === 'svg' && \
                 !read.querySelector('parsererror') && read.querySelectorAll('*').length > 20; \
               window.saved.push(name + (good ? '' : ' is damaged')); \
             }; return 1",
        );
        for button in ["#map-svg", "#map-png", "#chart-loss .card-head button"] {
            browser.run(&format!("document.querySelector({button:?}).click(); return 1"));
        }
        browser
            .run("document.querySelectorAll('#chart-loss .card-head button')[1].click(); return 1");
        browser.wait("return window.saved.length === 4");
        let mut names: Vec<String> =
            serde_json::from_value(browser.run("return window.saved")).unwrap();
        names.sort();
        let want =
            ["loss.png", "loss.svg", "map.png", "map.svg"].map(|n| format!("blnn-on-cora-{n}"));
        assert_eq!(names, want);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }

    #[test]
    fn thirty_five_thousand_nodes_move_smoothly() {
        let folder = tempfile::tempdir().unwrap();
        let page = large_page(folder.path());
        let megabytes = page.metadata().unwrap().len() as f64 / 1e6;
        assert!(megabytes < 4.0, "{megabytes} MB");
        let browser = Browser::open(1280, 900);
        browser.visit(&page);
        assert_drawn(&browser);
        let frame = browser.run("return window.blnn.frameMilliseconds(30)").as_f64().unwrap();
        // Far below on an idle machine; tests share theirs.
        assert!(frame < 60.0, "{frame} ms a frame");
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}
