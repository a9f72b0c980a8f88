//! `blnn reproduce`: the paper's tables and figures, ours beside the published numbers.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use blnn::reproduce::{Ended, Failure, Options, Report, Target, dataset_names, reproduce, text};
use blnn::{Method, Objective};
use blnn_kernels::Threads;
use clap::Args;

use crate::args::{Format, MachineArgs, at_least_one, method, named};
use crate::commands::datasets::search_folders;
use crate::output::{INTERRUPTED, note, shell_word};
use crate::plan_progress::PlanProgress;

/// Reproduce the paper's tables and figures.
///
/// Trains every model the targets need, each once, in `OUT/runs`; prints our numbers beside the
/// published ones; and writes `OUT/<TARGET>.json`, `OUT/<TARGET>.md`, figures as SVG and a ledger of
/// everything, `OUT/REPRODUCTION.md`. What is finished is not trained again: the same command goes
/// on after Ctrl-C, a crash or a kill. A small record of each run, `OUT/records/<RUN>.json`, stands
/// for the run in tables where its folder is not: keep it, and the folder may go.
#[derive(Debug, Args)]
#[command(after_help = "\
Targets:
  datasets        Table 1   sizes and homophily
  classification  Table 2   accuracy of BGRL and BLNN
  clustering      Table 3   NMI and homogeneity
  similarity      Table 4   S@5 and S@10
  ablation        Table 5   BGRL, BLNN, noisy and clean neighbours
  motivation      Figure 2  BGRL with noisy and clean neighbours
  case-study      Figure 3  homophily by similarity and by attention
  temperature     Figure 4  accuracy over τ from 0.1 to 2.0 (1,000 epochs unless --epochs is given)
  map             Figure 5  t-SNE and compactness
  ledger                    nothing but the ledger, from the reports in OUT

Examples:
  blnn reproduce                                            everything: days of work
  blnn reproduce datasets                                   Table 1, in seconds
  blnn reproduce classification clustering --datasets photo --seeds 3
  blnn reproduce ablation --datasets cora --epochs 50       a quick look
  blnn reproduce classification --report-only               what is trained so far")]
pub(crate) struct ReproduceArgs {
    /// Tables and figures, listed below; all of them if none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,

    /// Data sets by name [default: those the paper shows each target on]
    #[arg(long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    datasets: Vec<String>,

    /// Train each model with the seeds 1 to K
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,

    /// Epochs of every training [default: the published 10,000; 1,000 for `temperature`]
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    epochs: Option<u64>,

    /// Only these methods of a target [default: all that the paper shows]
    #[arg(long, value_name = "METHOD", num_args = 1.., value_delimiter = ',', value_parser = method())]
    methods: Vec<Method>,

    /// Forms of BLNN's objective: `paper`, `one-direction`, `published-code`, or several
    #[arg(long, value_name = "FORM", num_args = 1.., value_delimiter = ',', default_value = "paper", value_parser = named(Objective::ALL, Objective::name))]
    objectives: Vec<Objective>,

    /// Temperatures of the sweep [default: 0.1, 0.2, … 2.0]
    #[arg(long, value_name = "τ", num_args = 1.., value_delimiter = ',')]
    temperatures: Vec<f64>,

    /// One other setting of all trainings, such as statistics=last-view; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Score every N epochs [default: 250, or an eighth of a training shorter than 2,000 epochs]
    #[arg(long, value_name = "N", value_parser = at_least_one())]
    eval_every: Option<u64>,

    /// Where everything goes
    #[arg(long, value_name = "DIR", default_value = "reproduction")]
    out: PathBuf,

    /// The ledger's file; figures are copied beside it [default: `OUT/REPRODUCTION.md`]
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,

    /// Records of runs, read and written: what has one there is not trained for a table [default:
    /// `OUT/records`]
    #[arg(long, value_name = "DIR")]
    records: Option<PathBuf>,

    /// Let a run on record in another precision stand for one that is not; remarks name its seed
    #[arg(long)]
    any_precision: bool,

    /// Train nothing; report the runs that are finished
    #[arg(long)]
    report_only: bool,

    /// How to print the results; `json` is one object a line
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    machine: MachineArgs,
}

pub(crate) fn run(args: &ReproduceArgs) -> anyhow::Result<ExitCode> {
    let options = options(args)?;
    let threads = Threads::new(args.machine.threads.into());
    let mut progress = PlanProgress::new(&options.out)?;
    let done = reproduce(&options, &threads, &mut progress);
    progress.clear();
    match done? {
        Ended::Stopped { finished, jobs } => {
            note(format_args!(
                "stopped with {finished} of {jobs} models trained; continue with: {}",
                this_command()
            ));
            Ok(ExitCode::from(INTERRUPTED))
        }
        Ended::Done(reports) => {
            show(&options, &reports, args.format)?;
            Ok(ExitCode::SUCCESS)
        }
        Ended::Incomplete { reports, failed } => {
            show(&options, &reports, args.format)?;
            anyhow::bail!("{}", failures(&failed))
        }
    }
}

fn show(options: &Options, reports: &[Report], format: Format) -> anyhow::Result<()> {
    print(reports, format)?;
    let ledger = options.ledger.clone().unwrap_or_else(|| options.out.join("REPRODUCTION.md"));
    note(format_args!("ledger: {}", ledger.display()));
    Ok(())
}

/// Which models are missing in the reports, and how to get them.
fn failures(failed: &[Failure]) -> String {
    let each = failed.iter().map(|Failure { run, message }| format!("\n  {run}: {message}"));
    let count = match failed {
        [_] => "one model is missing".to_owned(),
        all => format!("{} models are missing", all.len()),
    };
    format!("{count} in these reports; the same command tries again:{}", each.collect::<String>())
}

fn options(args: &ReproduceArgs) -> anyhow::Result<Options> {
    let mut options = Options::new(&args.out);
    options.targets = Target::select(&args.targets)?;
    options.datasets = dataset_names(&args.datasets)?;
    options.seeds = args.seeds;
    options.epochs = args.epochs.map(|epochs| epochs as usize);
    options.methods.clone_from(&args.methods);
    options.objectives = Objective::ALL.to_vec();
    options.objectives.retain(|form| args.objectives.contains(form));
    if !args.temperatures.is_empty() {
        options.temperatures.clone_from(&args.temperatures);
        options.temperatures.sort_by(f64::total_cmp);
        options.temperatures.dedup();
    }
    options.settings.clone_from(&args.set);
    options.eval_every = args.eval_every.map(|every| every as usize);
    options.ledger.clone_from(&args.ledger);
    options.records.clone_from(&args.records);
    options.any_precision = args.any_precision;
    options.folders = search_folders(args.machine.data_dir.as_deref());
    options.report_only = args.report_only;
    options.commit = option_env!("BLNN_COMMIT").map(str::to_owned);
    Ok(options)
}

/// The command as it was given: all it takes to go on.
fn this_command() -> String {
    let words = std::env::args_os().skip(1).map(|word| shell_word(Path::new(&word)));
    std::iter::once("blnn".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn print(reports: &[Report], format: Format) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for (i, report) in reports.iter().enumerate() {
        match format {
            Format::Json => writeln!(out, "{}", serde_json::to_string(report)?)?,
            Format::Table if i == 0 => write!(out, "{}", text(report))?,
            Format::Table => write!(out, "\n{}", text(report))?,
        }
    }
    Ok(())
}
