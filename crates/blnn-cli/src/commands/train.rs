//! `blnn train`: from a graph to embeddings in a run folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blnn::{Checkpoint, Config, Job, Outcome, Plan, RunFolder};
use blnn_kernels::Threads;
use serde_json::json;

use crate::args::{Format, SettingArgs, TrainArgs};
use crate::commands::{dataset_name, load_graph};
use crate::output::{duration, grouped, note, shell_word};
use crate::progress::Progress;

/// The exit code of a run that was interrupted: 128 plus the number of SIGINT, as shells expect.
const INTERRUPTED: u8 = 130;

pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let (plan, root) = resolve(args)?;
    if args.print_config {
        write!(io::stdout(), "{}", plan.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let graph = load_graph(&args.graph, args.machine.data_dir.as_deref())?;
    let folder = open_folder(args, &root)?;
    let threads = Threads::new(args.machine.threads.into());
    let job = Job {
        graph: &graph,
        plan: &plan,
        threads: &threads,
        folder: &folder,
        log_every: args.log_every as usize,
    };
    let mut progress = Progress::new(plan.epochs())?;
    let done = blnn::train(&job, &mut progress);
    progress.clear();
    let outcome = done.map_err(|error| {
        let hint = what_is_left(args, &folder);
        let message = format!("{error}\n  {hint}");
        anyhow::Error::new(error).context(message)
    })?;
    if !outcome.finished {
        note(format_args!(
            "stopped after epoch {} of {}; continue with: {}",
            outcome.epochs,
            plan.epochs(),
            resume_command(args, &root)
        ));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    print_summary(args, &folder, &outcome)?;
    Ok(ExitCode::SUCCESS)
}

/// The settings and the folder of the run. A run that is resumed has its own settings beneath
/// what is given now, in the place of preset and default.
fn resolve(args: &TrainArgs) -> anyhow::Result<(Plan, PathBuf)> {
    let config = given(&args.settings)?;
    let dataset = dataset_name(&args.graph);
    let plan = config.resolve(&dataset)?;
    let root = args.out.clone().unwrap_or_else(|| {
        let (method, seed) = (plan.method().name(), plan.seed());
        PathBuf::from("runs").join(format!("{dataset}-{method}-seed{seed}"))
    });
    let saved = root.join("config.toml");
    if args.resume && saved.exists() {
        let mut base = Config::new();
        base.file(&saved)?;
        return Ok((config.resolve_over(base)?, root));
    }
    Ok((plan, root))
}

/// What the command line says, lowest layer first.
fn given(args: &SettingArgs) -> anyhow::Result<Config> {
    let mut config = Config::new();
    if let Some(path) = &args.config {
        config.file(path)?;
    }
    for assignment in &args.set {
        config.assign(assignment)?;
    }
    if let Some(method) = args.method {
        config.flag("method", method.name());
    }
    if let Some(epochs) = args.epochs {
        config.flag("epochs", epochs);
    }
    if let Some(seed) = args.seed {
        config.flag("seed", seed);
    }
    if let Some(precision) = &args.precision {
        config.flag("precision", precision.as_str());
    }
    Ok(config)
}

fn open_folder(args: &TrainArgs, root: &Path) -> anyhow::Result<RunFolder> {
    if args.resume {
        return Ok(RunFolder::open(root)?);
    }
    RunFolder::create(root, args.force).map_err(|error| match error.kind() {
        blnn::ErrorKind::Io => anyhow::Error::new(error)
            .context("cannot start a run there; choose a folder you can write to with --out"),
        _ => error.into(),
    })
}

/// After a failure: what the folder still holds, and how to go on.
fn what_is_left(args: &TrainArgs, folder: &RunFolder) -> String {
    match Checkpoint::read(&folder.checkpoint()) {
        Ok(checkpoint) => format!(
            "the checkpoint of epoch {} is intact; once the cause is removed, continue with: {}",
            checkpoint.header().epoch,
            resume_command(args, folder.root())
        ),
        Err(_) => format!("{} holds no usable checkpoint", folder.root().display()),
    }
}

fn resume_command(args: &TrainArgs, root: &Path) -> String {
    let graph = shell_word(Path::new(&args.graph));
    let out = shell_word(root);
    let data = args.machine.data_dir.as_deref();
    let data = data.map_or_else(String::new, |d| format!(" --data-dir {}", shell_word(d)));
    format!("blnn train {graph}{data} --out {out} --resume")
}

fn print_summary(args: &TrainArgs, folder: &RunFolder, outcome: &Outcome) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => {
            let mut object = serde_json::to_value(outcome)?;
            object["folder"] = json!(folder.root());
            object["embeddings"] = json!(folder.embeddings());
            writeln!(out, "{object}")?;
        }
        Format::Table => {
            for (label, value) in summary(args, folder, outcome) {
                writeln!(out, "{label:<10} {value}")?;
            }
        }
    }
    Ok(())
}

fn summary(args: &TrainArgs, folder: &RunFolder, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let method = outcome.method.name();
    let trained = format!(
        "{method} on {}, seed {}, {} epochs, {}",
        outcome.graph,
        outcome.seed,
        grouped(outcome.epochs),
        duration(outcome.seconds)
    );
    let mut rows = vec![("trained", trained)];
    if let Some(last) = &outcome.last {
        let terms = format!(
            "node {:.4} + neighbour {:.4}",
            last.node_loss, last.neighbour_loss
        );
        rows.push(("loss", format!("{:.4} = {terms}", last.loss)));
        if let Some(health) = &last.health {
            let verdict = if health.collapsed { ": collapsed!" } else { "" };
            let rank = format!(
                "{:.1} of {}",
                health.effective_rank, outcome.embedding_width
            );
            rows.push((
                "rank",
                format!("{rank}, spread {:.2}{verdict}", health.spread),
            ));
        }
    }
    let shape = format!(
        "{} nodes × {}",
        grouped(outcome.nodes),
        outcome.embedding_width
    );
    let embeddings = shell_word(&folder.embeddings());
    let graph = shell_word(Path::new(&args.graph));
    let other = if method == "bgrl" { "blnn" } else { "bgrl" };
    rows.push((
        "embedding",
        format!("{embeddings} ({shape}, ids in node_ids.txt)"),
    ));
    rows.push(("next", format!("blnn eval {embeddings} --labels {graph}")));
    rows.push(("", format!("blnn train {graph} --method {other}")));
    rows
}
