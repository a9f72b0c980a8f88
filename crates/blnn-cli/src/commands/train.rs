//! `blnn train`: from a graph to embeddings in a run folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blnn::estimate::{Extras, available_memory, check_memory};
use blnn::export::{Embedding, Format, Provenance};
use blnn::{
    Checkpoint, Config, ErrorKind, Graph, Job, Method, Outcome, Plan, RunFolder, Sizes, data,
};
use blnn_kernels::Threads;
use serde_json::json;

use crate::args::{SettingArgs, TrainArgs};
use crate::commands::{dataset_name, report};
use crate::output::{INTERRUPTED, duration, grouped, note, shell_word};
use crate::own_graph::LoadedGraph;
use crate::progress::Progress;
use crate::scoring::{Named, Scoring, Verdict, Wanted};

pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let (plan, root) = resolve(args)?;
    if args.print_config {
        write!(io::stdout(), "{}", plan.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let threads = Threads::new(args.machine.threads.into());
    let LoadedGraph { graph, encoding, files } = load(args, &plan, &threads)?;
    // Whatever can be refused is refused before a run is replaced or begun.
    blnn::check_graph(&graph, &plan)?;
    let scoring = Scoring::wanted(&graph, plan.epochs(), args.eval_every, &threads)?;
    let folder = open_folder(args, &root)?;
    let job = Job {
        graph: &graph,
        plan: &plan,
        threads: &threads,
        folder: &folder,
        log_every: args.log_every as usize,
    };
    let (scoring, unscored) = match scoring {
        Wanted::Scores(scoring) => (Some(scoring), None),
        Wanted::Nothing => (None, None),
        Wanted::Impossible(reason) => (None, Some(reason)),
    };
    let mut progress = Progress::new(plan.epochs(), scoring)?;
    folder.remember(encoding.as_ref(), files.as_ref())?;
    if args.tensorboard {
        progress = progress.with_events(folder.tensorboard());
    }
    let done = blnn::train(&job, &mut progress);
    progress.clear();
    let outcome = done.map_err(|error| with_hint(error, args, &folder))?;
    if let Some(files) = &files {
        // Those of a run that was resumed may have moved.
        folder.write_graph(files)?;
    }
    if !outcome.finished {
        note(format_args!(
            "stopped after epoch {} of {}; continue with: {}",
            outcome.epochs,
            plan.epochs(),
            resume_command(args, &root)
        ));
        if args.json {
            print_summary(args, &folder, &outcome, &Written::default())?;
        }
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let saved = export(args, &folder, &graph, &plan)?;
    let report =
        if args.no_report { None } else { report::after_training(folder.root(), &graph, &threads) };
    print_summary(args, &folder, &outcome, &Written { saved, report, unscored })?;
    Ok(ExitCode::SUCCESS)
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
    let plan = config.resolve_on_this_machine(&dataset)?;
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

/// The settings as words of a shell command, with a blank before each.
pub(crate) fn setting_words(args: &SettingArgs) -> String {
    let word = |flag: &str, value: Option<String>| {
        let quoted = value.map(|value| shell_word(Path::new(&value)));
        quoted.map_or_else(String::new, |value| format!(" {flag} {value}"))
    };
    let mut words = word("--method", args.method.map(|method| method.name().to_owned()))
        + &word("--config", args.config.as_ref().map(|path| path.display().to_string()));
    for assignment in &args.set {
        words += &word("--set", Some(assignment.clone()));
    }
    words
        + &word("--epochs", args.epochs.map(|epochs| epochs.to_string()))
        + &word("--seed", args.seed.map(|seed| seed.to_string()))
        + &word("--precision", args.precision.clone())
}

fn open_folder(args: &TrainArgs, root: &Path) -> anyhow::Result<RunFolder> {
    if args.resume {
        return Ok(RunFolder::open(root)?);
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
        (ErrorKind::Io, Err(_)) => {
            "there is no checkpoint yet; make room or choose another folder with --out".into()
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

/// The graph's name where the command line has one.
fn named(args: &TrainArgs) -> &str {
    args.graph.as_deref().unwrap_or("cora")
}

/// The words of the command line that name the graph.
fn graph_words(args: &TrainArgs) -> String {
    let own = args.own.words();
    match (&args.graph, &args.own.edges) {
        (None, Some(_)) => own.trim_start().to_owned(),
        _ => shell_word(Path::new(named(args))) + &own,
    }
}

fn resume_command(args: &TrainArgs, root: &Path) -> String {
    let graph = graph_words(args);
    let out = shell_word(root);
    let data = args.machine.data_dir.as_deref();
    let data = data.map_or_else(String::new, |d| format!(" --data-dir {}", shell_word(d)));
    format!("blnn train {graph}{data} --out {out}{} --resume", output_words(args))
}

/// The flags about what a run writes: its folder does not remember them.
fn output_words(args: &TrainArgs) -> String {
    let every = args.eval_every.map(|every| format!(" --eval-every {every}"));
    let names: Vec<&str> = args.format.iter().map(|format| format.name()).collect();
    let formats = (!names.is_empty()).then(|| format!(" --format {}", names.join(",")));
    let mut words: String = [every, formats].into_iter().flatten().collect();
    for (given, flag) in [
        (args.tensorboard, " --tensorboard"),
        (args.no_report, " --no-report"),
        (args.json, " --json"),
    ] {
        words += if given { flag } else { "" };
    }
    words
}

/// What was written beside the embeddings.
#[derive(Default)]
struct Written {
    /// Other formats of the embeddings.
    saved: Vec<PathBuf>,
    /// The page.
    report: Option<PathBuf>,
    /// Why there are no scores, where there are labels.
    unscored: Option<String>,
}

fn print_summary(
    args: &TrainArgs,
    folder: &RunFolder,
    outcome: &Outcome,
    written: &Written,
) -> anyhow::Result<()> {
    let verdict = Verdict::of(&folder.records()?);
    let mut out = io::stdout().lock();
    if args.json {
        let mut object = serde_json::to_value(outcome)?;
        object["scores"] = json!(verdict);
        object["folder"] = json!(folder.root());
        object["embeddings"] = json!(outcome.finished.then(|| folder.embeddings()));
        object["report"] = json!(written.report);
        object["saved"] = json!(written.saved);
        writeln!(out, "{object}")?;
        return Ok(());
    }
    let scores = verdict.iter().flat_map(verdict_rows);
    let unscored = written.unscored.iter().map(|reason| ("scores", format!("none: {reason}")));
    let rows = summary(outcome).into_iter().chain(scores).chain(unscored);
    for (label, value) in rows.chain(what_next(args, folder, outcome, written)) {
        writeln!(out, "{label:<10} {value}")?;
    }
    Ok(())
}

type Row = (&'static str, String);

fn summary(outcome: &Outcome) -> Vec<Row> {
    let trained = format!(
        "{} on {}, seed {}, {} epochs, {}",
        outcome.method.name(),
        outcome.graph,
        outcome.seed,
        grouped(outcome.epochs),
        duration(outcome.seconds)
    );
    let mut rows = vec![("trained", trained)];
    if let Some(last) = &outcome.last {
        let terms = format!("node {:.4} + neighbour {:.4}", last.node_loss, last.neighbour_loss);
        rows.push(("loss", format!("{:.4} = {terms}", last.loss)));
        if let Some(health) = &last.health {
            let verdict = if health.collapsed { ": collapsed!" } else { "" };
            let rank = format!("{:.1} of {}", health.effective_rank, outcome.embedding_width);
            rows.push(("rank", format!("{rank}, spread {:.2}{verdict}", health.spread)));
        }
    }
    rows
}

/// The scores, honest number first.
fn verdict_rows(verdict: &Verdict) -> Vec<Row> {
    let mut rows = vec![("scores", format!("{} (last epoch)", score_line(&verdict.last)))];
    if verdict.evaluations > 1 {
        if let Some(chosen) = &verdict.best_on_validation {
            let line = score_line(&chosen.scores);
            let epoch = grouped(chosen.epoch);
            rows.push(("", format!("{line} (epoch {epoch}, chosen by validation accuracy)")));
        }
        let best = score_line(&verdict.best_on_test);
        let count = verdict.evaluations;
        rows.push((
            "",
            format!("{best} (best of {count}, chosen on the test score as in the paper)"),
        ));
    }
    rows
}

fn score_line(scores: &Named) -> String {
    let shown = [
        ("accuracy", "accuracy"),
        ("accuracy_paper_split", "accuracy 10/10/80"),
        ("nmi", "NMI"),
        ("homogeneity", "homogeneity"),
        ("s_at_5", "S@5"),
        ("s_at_10", "S@10"),
    ];
    let parts = shown.iter().filter_map(|(key, label)| {
        let value = scores.get(*key)?;
        let spread = scores.get(&format!("{key}_std"));
        let spread = spread.map_or_else(String::new, |s| format!(" ± {s:.2}"));
        Some(format!("{label} {value:.2}{spread}"))
    });
    parts.collect::<Vec<_>>().join(" · ")
}

fn what_next(
    args: &TrainArgs,
    folder: &RunFolder,
    outcome: &Outcome,
    written: &Written,
) -> Vec<Row> {
    let shape = format!("{} nodes × {}", grouped(outcome.nodes), outcome.embedding_width);
    let embeddings = shell_word(&folder.embeddings());
    let graph = graph_words(args);
    let other = if outcome.method == Method::Bgrl { Method::Blnn } else { Method::Bgrl };
    let mut rows = vec![("embedding", format!("{embeddings} ({shape}, ids in node_ids.txt)"))];
    rows.extend(written.saved.iter().map(|path| ("", shell_word(path))));
    rows.extend(written.report.iter().map(|path| ("report", shell_word(path))));
    if args.tensorboard {
        let command = format!("tensorboard --logdir {}", shell_word(&folder.tensorboard()));
        rows.push(("curves", command));
    }
    let train = format!("blnn train {graph} --method {}", other.name());
    match labels_words(args, outcome).filter(|_| written.unscored.is_none()) {
        Some(labels) => {
            rows.push(("next", format!("blnn eval {embeddings} --labels {labels}")));
            rows.push(("", train));
        }
        None => rows.push(("next", train)),
    }
    rows
}

fn is_npy(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}

/// What `blnn eval --labels` takes for this graph, if it has labels.
fn labels_words(args: &TrainArgs, outcome: &Outcome) -> Option<String> {
    let own = &args.own;
    match (&own.label, &own.nodes) {
        (Some(file), _) if is_npy(file) => Some(shell_word(Path::new(file))),
        (Some(column), Some(nodes)) => {
            let column = shell_word(Path::new(column));
            let id = own.id_column.as_deref().map_or_else(String::new, |id| {
                format!(" --id-column {}", shell_word(Path::new(id)))
            });
            Some(format!("{} --label {column}{id}", shell_word(nodes)))
        }
        _ => {
            let scored = outcome.last.as_ref().is_some_and(|last| !last.scores.is_empty());
            let known = blnn::data::find(named(args)).is_some() && own.edges.is_none();
            let source = own.edges.as_deref().unwrap_or(Path::new(named(args)));
            (scored || known).then(|| shell_word(source))
        }
    }
}
