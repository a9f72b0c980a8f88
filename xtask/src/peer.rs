//! `cargo xtask bench-peer`: our epoch beside that of the tuned PyTorch program.
//!
//! Both sides run in turns, ours first, on the same machine with all its cores, so that a machine
//! that slows down slows both. Each run reports its own median; the medians over runs are shown.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Deserializer, Value, json};

use crate::args::Args;
use crate::python::{self, Python};
use crate::{large_graphs, workspace};

/// The published settings of a graph, in the order the PyTorch program takes them: widths, edge
/// and feature drop of view 1 and of view 2, temperature.
struct Settings {
    graph: &'static str,
    arguments: [&'static str; 7],
    /// How many times as fast as PyTorch we want to be, with vectors and with bf16 on a matrix unit.
    goals: [f64; 2],
}

impl Settings {
    fn goal(&self, sample: &Sample) -> f64 {
        self.goals[usize::from(sample.kernels.ends_with("amx products"))]
    }
}

const SETTINGS: [Settings; 4] = [
    Settings {
        graph: "photo",
        arguments: ["256", "128", "0.4", "0.1", "0.1", "0.2", "1.9"],
        goals: [4.0, 12.0],
    },
    Settings {
        graph: "computers",
        arguments: ["256", "128", "0.5", "0.2", "0.4", "0.1", "1.1"],
        goals: [4.0, 11.0],
    },
    Settings {
        graph: "cs",
        arguments: ["512", "256", "0.3", "0.3", "0.2", "0.4", "0.8"],
        goals: [3.7, 9.0],
    },
    Settings {
        graph: "physics",
        arguments: ["256", "128", "0.4", "0.1", "0.1", "0.4", "1.9"],
        goals: [5.0, 11.0],
    },
];

/// Runs both sides on each graph and prints the comparison.
pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let graphs = chosen_graphs(args.value("--datasets")?.as_deref())?;
    let epochs = args.count("--epochs", 10)?;
    let rounds = args.count("--rounds", 2)?;
    let precision = args.value("--precision")?.unwrap_or_else(|| "auto".into());
    let as_json = wants_json(args.value("--format")?.as_deref())?;
    let script = args.value("--peer")?;
    let given_python = args.value("--python")?;
    args.finish()?;
    warn_if_busy();
    let bench = Bench::prepare(epochs, precision, script, given_python.as_deref())?;
    let mut comparisons = Vec::new();
    for settings in graphs {
        comparisons.push(bench.compare(settings, rounds)?);
    }
    if as_json {
        println!("{}", as_value(&comparisons, epochs, rounds));
    } else {
        print!("{}", as_table(&comparisons));
    }
    Ok(ExitCode::SUCCESS)
}

/// Both sides want every core: with anything else running the numbers mean little.
fn warn_if_busy() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let last_minute: f64 = load.split(' ').next().and_then(|w| w.parse().ok()).unwrap_or(0.0);
    if last_minute > 0.5 {
        eprintln!("warning: the load average is {last_minute}; ratios need an idle machine");
    }
}

fn chosen_graphs(list: Option<&str>) -> Result<Vec<&'static Settings>> {
    let Some(list) = list else {
        return Ok(SETTINGS.iter().collect());
    };
    let find = |name: &str| {
        let known = SETTINGS.iter().find(|settings| settings.graph == name);
        known.with_context(|| {
            format!("--datasets: `{name}` is not one of photo, computers, cs, physics")
        })
    };
    list.split(',').map(|name| find(name.trim())).collect()
}

fn wants_json(format: Option<&str>) -> Result<bool> {
    match format {
        None | Some("table") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => bail!("--format: `{other}` is neither table nor json"),
    }
}

/// What one run measured.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// The arithmetic that ran, which `auto` leaves to the machine.
    precision: String,
    /// What ran it, in words.
    kernels: String,
    seconds_per_epoch: f64,
    peak_mb: f64,
}

/// Both sides on one graph.
struct Comparison {
    graph: &'static str,
    goal: f64,
    ours: Vec<Sample>,
    torch: Vec<Sample>,
}

impl Comparison {
    fn precision(&self) -> &str {
        self.ours.first().map_or("none", |sample| &sample.precision)
    }

    fn ratio(&self) -> f64 {
        median(&self.torch, seconds) / median(&self.ours, seconds)
    }
}

fn seconds(sample: &Sample) -> f64 {
    sample.seconds_per_epoch
}

fn peak(sample: &Sample) -> f64 {
    sample.peak_mb
}

/// The two programs and where the graphs are.
struct Bench {
    epochs: String,
    precision: String,
    data: PathBuf,
    ours: PathBuf,
    script: PathBuf,
    python: Python,
}

impl Bench {
    fn prepare(
        epochs: usize,
        precision: String,
        script: Option<String>,
        given_python: Option<&str>,
    ) -> Result<Self> {
        let data = large_graphs::find().with_context(|| {
            format!("the large graphs are not here; get them: {}", large_graphs::FETCH)
        })?;
        let script = script
            .map_or_else(|| workspace::root().join("../shared/bench/torch_peer.py"), PathBuf::from);
        if !script.is_file() {
            bail!("{}: no such file; name the PyTorch program with --peer", script.display());
        }
        Ok(Self {
            epochs: epochs.to_string(),
            precision,
            data,
            ours: build_release()?,
            script,
            python: python::with_modules(given_python, &["torch", "numpy", "scipy"])?,
        })
    }

    fn compare(&self, settings: &Settings, rounds: usize) -> Result<Comparison> {
        let (mut ours, mut torch) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("{} round {round} of {rounds}", settings.graph);
            ours.push(self.run_ours(settings.graph)?);
            torch.push(self.run_torch(settings)?);
        }
        let goal = settings.goal(&ours[0]);
        Ok(Comparison { graph: settings.graph, goal, ours, torch })
    }

    fn run_ours(&self, graph: &str) -> Result<Sample> {
        let mut command = Command::new(&self.ours);
        command.args(["bench", graph, "--epochs", &self.epochs, "--format", "json"]);
        command.args(["--precision", &self.precision]);
        let text = output_of(command.env("BLNN_DATA_DIR", &self.data))?;
        parse_ours(&text, graph).with_context(|| format!("`blnn bench` printed: {text}"))
    }

    fn run_torch(&self, settings: &Settings) -> Result<Sample> {
        let file = large_graphs::FILES.iter().find(|(graph, _)| *graph == settings.graph);
        let (_, file) = file.context("a graph without a file")?;
        let mut command = self.python.command();
        command.arg(&self.script).arg(self.data.join(file));
        let text = output_of(command.args(settings.arguments).arg(&self.epochs))?;
        parse_torch(&text).with_context(|| format!("the PyTorch program printed: {text}"))
    }
}

/// Builds what `cargo run --release` runs and returns its path.
fn build_release() -> Result<PathBuf> {
    let text = output_of(
        workspace::cargo(["build", "--release"]).arg("--message-format=json-render-diagnostics"),
    )?;
    let program = text.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = Path::new(message["executable"].as_str()?).to_owned();
        (message["target"]["name"] == "blnn").then_some(path)
    });
    program.context("cargo built no program called blnn")
}

fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().context("cannot start")?;
    if !output.status.success() {
        bail!("{}: {}", command.get_program().display(), output.status);
    }
    String::from_utf8(output.stdout).context("output is not text")
}

/// Reads the object of `graph` from the output of `blnn bench --format json`.
fn parse_ours(text: &str, graph: &str) -> Option<Sample> {
    let values = Deserializer::from_str(text).into_iter::<Value>();
    let object = values.filter_map(Result::ok).find(|value| value["graph"] == graph)?;
    // The PyTorch program trains BLNN; any other method would be an unfair comparison.
    (object["method"] == "blnn").then_some(())?;
    Some(Sample {
        precision: object["precision"].as_str()?.to_owned(),
        kernels: object["kernels"].as_str()?.to_owned(),
        seconds_per_epoch: object["seconds_per_epoch"].as_f64()?,
        peak_mb: object["peak_rss_mb"].as_f64()?,
    })
}

/// Reads the `name=value` words of the PyTorch program's one line.
fn parse_torch(text: &str) -> Option<Sample> {
    let value = |name: &str| {
        text.split_whitespace()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    };
    Some(Sample {
        precision: "f32".into(),
        kernels: String::new(),
        seconds_per_epoch: value("median_s_per_epoch")?,
        peak_mb: value("maxrss_mb")?,
    })
}

fn median(samples: &[Sample], of: fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

fn as_table(comparisons: &[Comparison]) -> String {
    let head = format!(
        "{:<10} {:>5} {:>10} {:>10} {:>7} {:>6} {:>9} {:>9}\n",
        "graph", "type", "ours s/ep", "torch s/ep", "ratio", "goal", "ours MB", "torch MB"
    );
    let row = |c: &Comparison| {
        let (ours, torch) = (median(&c.ours, seconds), median(&c.torch, seconds));
        let (ours_mb, torch_mb) = (median(&c.ours, peak), median(&c.torch, peak));
        let (graph, precision, ratio, goal) = (c.graph, c.precision(), c.ratio(), c.goal);
        format!(
            "{graph:<10} {precision:>5} {ours:>10.4} {torch:>10.4} {ratio:>6.2}x {goal:>5.1}x \
             {ours_mb:>9.0} {torch_mb:>9.0}\n"
        )
    };
    head + &comparisons.iter().map(row).collect::<String>()
}

fn as_value(comparisons: &[Comparison], epochs: usize, rounds: usize) -> Value {
    let side = |samples: &[Sample]| {
        json!({
            "seconds_per_epoch": median(samples, seconds),
            "seconds_per_epoch_of_rounds": samples.iter().map(seconds).collect::<Vec<_>>(),
            "peak_rss_mb": median(samples, peak),
        })
    };
    let graphs: Vec<Value> = comparisons
        .iter()
        .map(|c| {
            json!({
                "graph": c.graph,
                "precision": c.precision(),
                "ours": side(&c.ours),
                "torch": side(&c.torch),
                "ratio": c.ratio(),
                "goal": c.goal,
            })
        })
        .collect();
    json!({ "epochs": epochs, "rounds": rounds, "graphs": graphs })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TORCH: &str = "amazon_electronics_photo.npz epochs=6 median_s_per_epoch=0.5664 \
                         maxrss_mb=1493 loss=-1.2345\n";
    const OURS: &str = r#"{"graph":"cora","method":"blnn","precision":"f32","seconds_per_epoch":9.0,"peak_rss_mb":1}
        {"graph":"photo","method":"blnn","precision":"bf16","seconds_per_epoch":0.1416,
         "kernels":"avx512 vectors, f32 products","peak_rss_mb":182.5}"#;

    #[test]
    fn both_outputs_are_read() {
        let torch = parse_torch(TORCH).unwrap();
        assert_eq!((torch.seconds_per_epoch, torch.peak_mb), (0.5664, 1493.0));
        let ours = parse_ours(OURS, "photo").unwrap();
        assert_eq!((ours.seconds_per_epoch, ours.peak_mb), (0.1416, 182.5));
        assert_eq!(ours.precision, "bf16");
    }

    #[test]
    fn the_goal_is_that_of_the_products_that_ran() {
        let goals = |products: &str| {
            let text = OURS.replace("f32 products", products);
            let sample = parse_ours(&text, "photo").unwrap();
            SETTINGS.map(|settings| settings.goal(&sample))
        };
        assert_eq!(goals("f32 products"), [4.0, 4.0, 3.7, 5.0]);
        assert_eq!(goals("avx512bf16 products"), [4.0, 4.0, 3.7, 5.0]);
        assert_eq!(goals("amx products"), [12.0, 11.0, 9.0, 11.0]);
    }

    #[test]
    fn output_without_the_numbers_is_refused() {
        assert_eq!(parse_torch("Traceback (most recent call last):"), None);
        assert_eq!(parse_ours(OURS, "physics"), None);
        assert_eq!(parse_ours(&OURS.replace("blnn", "bgrl"), "photo"), None);
    }

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let sample = |seconds_per_epoch| Sample {
            precision: "f32".into(),
            kernels: String::new(),
            seconds_per_epoch,
            peak_mb: 1.0,
        };
        let comparison = Comparison {
            graph: "photo",
            goal: 3.8,
            ours: vec![sample(0.3), sample(0.1), sample(0.2)],
            torch: vec![sample(0.7), sample(0.9)],
        };
        assert!((comparison.ratio() - 4.0).abs() < 1e-12);
        let json = as_value(&[comparison], 6, 2);
        assert_eq!(json["graphs"][0]["ours"]["seconds_per_epoch"], 0.2);
    }

    #[test]
    fn unknown_graphs_are_refused() {
        assert_eq!(chosen_graphs(None).unwrap().len(), 4);
        assert_eq!(chosen_graphs(Some("cs, photo")).unwrap()[1].graph, "photo");
        assert!(chosen_graphs(Some("cora")).is_err());
        assert!(wants_json(Some("yaml")).is_err());
    }
}
