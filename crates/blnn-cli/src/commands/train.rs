//! `blnn train`: from a graph to embeddings in a run folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure};
use blnn::data::own::OwnGraph;
use blnn::estimate::{Extras, available_memory, check_memory};
use blnn::export::{Embedding, Format, Provenance};
use blnn::{Checkpoint, Config, ErrorKind, Graph, Job, Outcome, Plan, RunFolder, Sizes, data};
use blnn_kernels::Threads;

use super::train_summary::{self, Written};
use super::train_words::{named, resume_command};
use crate::args::{SettingArgs, TrainArgs};
use crate::commands::{dataset_name, load_graph, preset_name, report};
use crate::output::{INTERRUPTED, note};
use crate::own_graph::LoadedGraph;
use crate::progress::Progress;
use crate::scoring::Scoring;

pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let (plan, root) = resolve(args)?;
    if args.print_config {
        check_name(args)?;
        write!(io::stdout(), "{}", plan.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let threads = Threads::new(args.machine.threads.into());
    let loaded = load(args, &plan, &threads)?;
    let graph = &loaded.graph;
    // Whatever can be refused is refused before a run is replaced or begun.
    blnn::check_graph(graph, &plan)?;
    args.format.iter().try_for_each(|format| format.check(graph))?;
    let (scoring, unscored) =
        Scoring::wanted(graph, plan.epochs(), args.eval_every, &threads)?.or_reason();
    refuse_to_replace_inputs(args, &root, &loaded)?;
    let folder = open_folder(args, &root)?;
    let log_every = args.log_every as usize;
    let job = Job { graph, plan: &plan, threads: &threads, folder: &folder, log_every };
    let is_scored = scoring.is_some();
    let outcome = train(args, &job, scoring, &loaded)?;
    if !outcome.finished {
        return stopped(args, &job, &outcome);
    }
    if is_scored && outcome.last.as_ref().is_none_or(|last| last.scores.is_empty()) {
        note("the last epoch has no scores; `blnn eval` scores the embeddings as they are");
    }
    let saved = export(args, &folder, graph, &plan)?;
    let page = (!args.no_report).then(|| report::after_training(folder.root(), graph, &threads));
    let written = Written { saved, report: page.flatten(), unscored };
    train_summary::print(args, &folder, &outcome, &written)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a graph that nothing is known of, without reading one: settings of a misspelt name would
/// be those of no data set.
fn check_name(args: &TrainArgs) -> blnn::Result<()> {
    let name = named(args);
    if args.own.edges.is_none() && data::find(name).is_none() && !Path::new(name).exists() {
        load_graph(name, args.machine.data_dir.as_deref())?;
    }
    Ok(())
}

/// Trains to the end or to an interruption. The folder remembers where the graph came from.
fn train(
    args: &TrainArgs,
    job: &Job<'_>,
    scoring: Option<Scoring<'_>>,
    loaded: &LoadedGraph,
) -> anyhow::Result<Outcome> {
    let LoadedGraph { encoding, files, .. } = loaded;
    let mut progress = Progress::new(job.plan.epochs(), scoring)?;
    job.folder.remember(encoding.as_ref(), files.as_ref())?;
    if args.tensorboard {
        progress = progress.with_events(job.folder.tensorboard());
    }
    let done = blnn::train(job, &mut progress);
    progress.clear();
    let outcome = done.map_err(|error| with_hint(error, args, job.folder))?;
    if let Some(files) = files {
        // Those of a run that was resumed may have moved.
        job.folder.write_graph(files)?;
    }
    Ok(outcome)
}

/// Tells how to continue a run that was interrupted.
fn stopped(args: &TrainArgs, job: &Job<'_>, outcome: &Outcome) -> anyhow::Result<ExitCode> {
    note(format_args!(
        "stopped after epoch {} of {}; continue with: {}",
        outcome.epochs,
        job.plan.epochs(),
        resume_command(args, job.folder.root())
    ));
    if args.json {
        train_summary::print(args, job.folder, outcome, &Written::default())?;
    }
    Ok(ExitCode::from(INTERRUPTED))
}

/// The graph, unless training on it would take more memory than there is.
fn load(args: &TrainArgs, plan: &Plan, threads: &Threads) -> anyhow::Result<LoadedGraph> {
    if let (None, Some(sizes)) = (&args.own.edges, data::generated_sizes(named(args))) {
        // Before it is made: even that may be too much.
        refuse_too_large(args, &sizes?, plan)?;
    }
    let data_dir = args.machine.data_dir.as_deref();
    let loaded = args.own.load(args.graph.as_deref(), data_dir, threads)?;
    refuse_too_large(args, &Sizes::of(&loaded.graph), plan)?;
    Ok(loaded)
}

/// The settings and the folder of the run. A run that is resumed has its own settings beneath
/// what is given now, in the place of preset and default.
fn resolve(args: &TrainArgs) -> anyhow::Result<(Plan, PathBuf)> {
    let config = given(&args.settings, args.resume)?;
    let dataset = match &args.own.edges {
        Some(edges) => blnn::data::own::name_of(edges),
        None => dataset_name(named(args)),
    };
    let preset = preset_name(named(args), args.own.edges.as_deref());
    let plan = config.resolve_on_this_machine(preset)?;
    let root = args.out.clone().unwrap_or_else(|| {
        let (method, seed) = (plan.method().name(), plan.seed());
        PathBuf::from("runs").join(format!("{dataset}-{method}-seed{seed}"))
    });
    let saved = root.join("config.toml");
    if args.resume && saved.exists() {
        let mut base = Config::new();
        base.file(&saved)?;
        let saved = config.resolve_over(base)?;
        note_unused(&config, &saved);
        return Ok((saved, root));
    }
    if args.resume && RunFolder::holds_run(&root) {
        bail!(
            "{}: its settings are not there, and resuming would train with others; begin again with \
             --force and all flags",
            root.display()
        );
    }
    note_unused(&config, &plan);
    Ok((plan, root))
}

/// Tells of settings that were given and that the method does not read.
fn note_unused(config: &Config, plan: &Plan) {
    if let Some(unused) = config.unused(plan.method()) {
        note(format_args!("note: {unused}"));
    }
}

/// Refuses to begin a run whose folder holds what it is made of under a name of ours.
fn refuse_to_replace_inputs(
    args: &TrainArgs,
    root: &Path,
    loaded: &LoadedGraph,
) -> anyhow::Result<()> {
    if args.resume {
        return Ok(());
    }
    let own = loaded.files.iter().flat_map(OwnGraph::paths);
    let given = [Some(Path::new(named(args))), args.settings.config.as_deref()];
    for path in own.chain(given.into_iter().flatten()) {
        ensure!(
            !RunFolder::would_replace(root, path),
            "{}: a run in {} would replace this file; choose another folder with --out",
            path.display(),
            root.display()
        );
    }
    Ok(())
}

/// Refuses a run that the machine has too little memory for: the system would kill it somewhere
/// on the way, without a word.
fn refuse_too_large(args: &TrainArgs, sizes: &Sizes, plan: &Plan) -> anyhow::Result<()> {
    let available = args.assume_memory.or_else(|| Some(available_memory()?.bytes));
    let Some(available) = available.filter(|_| !args.no_memory_check) else {
        return Ok(());
    };
    let scored = sizes.labelled && args.eval_every != Some(0);
    let extras = Extras { scored, report: !args.no_report };
    check_memory(sizes, plan, extras, available, args.resume).map_err(|error| {
        anyhow::anyhow!("{error}, or start it all the same with --no-memory-check")
    })
}

/// What the command line says, lowest layer first.
pub(crate) fn given(args: &SettingArgs, resume: bool) -> anyhow::Result<Config> {
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
    // A run that is resumed keeps its precision; `auto` may mean another one on this machine.
    let keep = |name: &&str| !(resume && *name == "auto");
    if let Some(precision) = args.precision.as_deref().filter(keep) {
        config.flag("precision", precision);
    }
    Ok(config)
}

fn open_folder(args: &TrainArgs, root: &Path) -> anyhow::Result<RunFolder> {
    if args.resume {
        let folder = RunFolder::open(root)?;
        if !folder.checkpoint().exists() {
            note(format_args!("{}: no checkpoint yet: from the first epoch on", root.display()));
        }
        return Ok(folder);
    }
    RunFolder::create(root, args.force).map_err(|error| match error.kind() {
        ErrorKind::Io => anyhow::Error::new(error)
            .context("cannot start a run there; choose a folder you can write to with --out"),
        _ => error.into(),
    })
}

/// Adds to a failure what the folder still holds and how to go on. Training is deterministic, so
/// resuming a run that diverged would only diverge again.
fn with_hint(error: blnn::Error, args: &TrainArgs, folder: &RunFolder) -> anyhow::Error {
    let saved = Checkpoint::read(&folder.checkpoint());
    let hint = match (error.kind(), saved.map(|checkpoint| checkpoint.header().epoch)) {
        (ErrorKind::Diverged, Ok(epoch)) => {
            let path = folder.checkpoint();
            format!("the checkpoint of epoch {epoch} is intact: {}", path.display())
        }
        (ErrorKind::Io, Ok(epoch)) => {
            let command = resume_command(args, folder.root());
            format!(
                "the checkpoint of epoch {epoch} is intact; with the cause removed, continue with: {command}"
            )
        }
        (ErrorKind::Io, Err(_)) if !folder.checkpoint().exists() => {
            "there is no checkpoint yet; remove the cause or choose another folder with --out"
                .into()
        }
        _ => return error.into(),
    };
    let message = format!("{error}\n  {hint}");
    anyhow::Error::new(error).context(message)
}

/// Writes the embeddings in the other formats that were asked for.
fn export(
    args: &TrainArgs,
    folder: &RunFolder,
    graph: &Graph,
    plan: &Plan,
) -> anyhow::Result<Vec<PathBuf>> {
    // The array and its ids are always there.
    let formats: Vec<Format> = args.format.iter().copied().filter(|f| *f != Format::Npy).collect();
    if formats.is_empty() {
        return Ok(Vec::new());
    }
    let vectors = blnn::data::npy::read_file(&folder.embeddings())?.into_matrix()?;
    let provenance = Provenance::new(graph, plan);
    let embedding = Embedding::new(&vectors, graph, &provenance)?;
    let mut written = Vec::new();
    for format in formats {
        written.extend(embedding.write(format, folder.root())?);
    }
    Ok(written)
}
