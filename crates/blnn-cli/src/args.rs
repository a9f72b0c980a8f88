//! The command line, as clap reads it. Ranges of settings are the library's to check.

use std::ffi::OsStr;
use std::path::PathBuf;

use blnn::Method;
use blnn::export::Format as ExportFormat;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::datasets::DatasetsArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::embed::EmbedArgs;
use crate::commands::eval::EvalArgs;
use crate::commands::plan::PlanArgs;
use crate::commands::report::ReportArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::shell::{CompletionsArgs, ManArgs};
use crate::commands::similar::SimilarArgs;
use crate::own_graph::OwnGraphArgs;

/// Epochs between two lines of metrics, unless `--log-every` says otherwise.
pub(crate) const LOG_EVERY: u64 = 10;

/// Learn node embeddings of attributed graphs without labels, and score them.
#[derive(Debug, Parser)]
#[command(name = "blnn", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Train(TrainArgs),
    Plan(PlanArgs),
    Eval(EvalArgs),
    Embed(EmbedArgs),
    Report(ReportArgs),
    Similar(SimilarArgs),
    Bench(BenchArgs),
    Reproduce(ReproduceArgs),
    Datasets(DatasetsArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// How results are printed on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs: one object a line.
    Json,
}

/// Train embeddings and write them to a run folder.
///
/// The folder gets `embeddings.npy` (one row a node), `node_ids.txt` (the id of each row),
/// `config.toml` (every setting), `metrics.jsonl` (losses over time), `checkpoint.safetensors` (to
/// resume from) and `report.html` (a page to look at). Settings come from, each overriding those before it: built-in defaults, the
/// preset of method and data set, --config, --set, and the flags below.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(after_help = "\
Examples:
  blnn train                                  the embedded Cora graph, scored, in seconds
  blnn train --edges edges.csv --nodes nodes.csv --label topic
                                              your own graph, scored by its topics
  blnn train edges.csv --format parquet,csv   edges alone, embeddings in two more formats
  blnn train photo --method bgrl --seed 2     the published settings of BGRL on Photo
  blnn train photo --epochs 500               the same schedule, squeezed into 500 epochs
  blnn train photo --set temperature=0.5 --set edge_drop=[0.2,0.2]
  blnn train photo --out runs/mine --resume   continue a run that was stopped or killed")]
pub(crate) struct TrainArgs {
    /// A data set's name (see `blnn datasets list`) or a graph in one file [default: cora]
    ///
    /// A file may be an edge list (csv, tsv, parquet), an .npz archive or WikiCS's .json;
    /// docs/DATA.md shows each. For edges with a table of nodes see --edges.
    pub(crate) graph: Option<String>,

    #[command(flatten)]
    pub(crate) own: OwnGraphArgs,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    /// The run's folder [default: runs/<GRAPH>-<METHOD>-seed<SEED>]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// More formats of the embeddings beside embeddings.npy, separated by commas
    ///
    /// npz, parquet, csv, word2vec (gensim) or projector (`TensorBoard`). All carry the ids of the
    /// nodes; `docs/RUN_FOLDER.md` describes the files.
    #[arg(
        long,
        visible_alias = "save",
        value_name = "FORMATS",
        value_delimiter = ',',
        value_parser = ExportFormatParser
    )]
    pub(crate) format: Vec<ExportFormat>,

    /// Continue the run in the folder from its last checkpoint
    ///
    /// Settings are taken from the run's own config.toml; flags may repeat but not change them. A
    /// resumed run ends with the same bits as one that was never stopped.
    #[arg(long)]
    pub(crate) resume: bool,

    /// Replace the run that is in the folder
    #[arg(long, conflicts_with = "resume")]
    pub(crate) force: bool,

    /// Write a line of metrics every N epochs
    #[arg(long, value_name = "N", default_value_t = LOG_EVERY, value_parser = at_least_one())]
    pub(crate) log_every: u64,

    /// Score the embedding every N epochs, as the paper does, and after the last one
    ///
    /// Without this flag a graph with labels is scored once, after the last epoch; 0 turns that
    /// off too. Labels are used for scores only, never for training (but by `bgrl-clean`).
    #[arg(long, value_name = "N")]
    pub(crate) eval_every: Option<usize>,

    /// Do not write report.html, the page that shows the run
    #[arg(long)]
    pub(crate) no_report: bool,

    /// Write event files for `TensorBoard` to the folder's `tensorboard/`, to be watched live
    #[arg(long)]
    pub(crate) tensorboard: bool,

    /// Start even if the run seems to need more memory than there is; see `blnn plan`
    #[arg(long)]
    pub(crate) no_memory_check: bool,

    /// Bytes of memory to take for what is available: for tests.
    #[arg(long, hide = true, value_name = "BYTES", conflicts_with = "no_memory_check")]
    pub(crate) assume_memory: Option<u64>,

    /// Print the resolved settings as a config file and stop
    #[arg(long)]
    pub(crate) print_config: bool,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) machine: MachineArgs,
}

/// Measure seconds per epoch and peak memory of training.
///
/// Each graph is measured in a process of its own, so that the peak memory is that graph's. The
/// time of an epoch is the median after a few epochs of warming up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn bench
  blnn bench photo computers cs physics --epochs 30 --format json
  blnn bench generated-10000 generated-100000   graphs of any size, to see how cost grows")]
pub(crate) struct BenchArgs {
    /// Names of data sets or files
    #[arg(default_value = "cora")]
    pub(crate) graphs: Vec<String>,

    /// Number of epochs to measure
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = at_least_one())]
    pub(crate) epochs: u64,

    /// Which objective to train
    #[arg(long, value_name = "METHOD", value_parser = method())]
    pub(crate) method: Option<Method>,

    /// Arithmetic of the training: auto, f32 or bf16
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    pub(crate) precision: String,

    /// How to print the results
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) machine: MachineArgs,

    /// Measure in this process: what the parent process passes to its children.
    #[arg(long, hide = true)]
    pub(crate) here: bool,
}

/// Settings of the training.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// Which objective to train
    #[arg(long, value_name = "METHOD", value_parser = method())]
    pub(crate) method: Option<Method>,

    /// A TOML file of settings; configs/default.toml lists every key
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// One setting, such as temperature=0.5; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Number of full-batch steps
    ///
    /// The warm-up keeps its share of the epochs unless `warmup_epochs` is given on its own.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) epochs: Option<i64>,

    /// Seed of all random draws
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,

    /// Arithmetic of the training: auto, f32 or bf16 [default: auto]
    ///
    /// bf16 rounds the operands of matrix products to 16 bits; weights and sums stay f32. auto is
    /// bf16 where the CPU has a matrix unit (AMX) or is AMD's with AVX-512 BF16, otherwise f32. The
    /// run's config.toml names the one that was chosen, and a resumed run keeps it. A config file or
    /// --set that names one comes before the default.
    #[arg(long, value_name = "TYPE")]
    pub(crate) precision: Option<String>,
}

/// What depends on the machine and changes no result.
#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// Number of threads, 0 for one per core; the result is the same bits for any number
    #[arg(long, value_name = "T", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=1024))]
    pub(crate) threads: u16,

    /// Where data sets are looked for and kept [default: `$BLNN_DATA_DIR`, then the user's cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

pub(crate) fn at_least_one() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

/// Reads the formats of `--format` where that names the embeddings' formats. Elsewhere `--format` says how results are printed,
/// so those who expect that here too are told the flag they want.
#[derive(Clone, Debug)]
pub(crate) struct ExportFormatParser;

impl ExportFormatParser {
    fn names() -> PossibleValuesParser {
        PossibleValuesParser::new(ExportFormat::ALL.map(ExportFormat::name))
    }
}

impl TypedValueParser for ExportFormatParser {
    type Value = ExportFormat;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ExportFormat, clap::Error> {
        if ["json", "table"].iter().any(|name| value.eq_ignore_ascii_case(name)) {
            let refuse = StringValueParser::new().try_map(|_| {
                Err::<ExportFormat, _>(
                    "these are the embeddings' formats (npz, parquet, csv, ...); the summary is \
                     printed as JSON by --json, as a table without it",
                )
            });
            return refuse.parse_ref(command, argument, value);
        }
        let format = Self::names().try_map(|name| {
            let known = ExportFormat::ALL.into_iter().find(|format| format.name() == name);
            known.ok_or("no such format")
        });
        format.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            ExportFormat::ALL.map(ExportFormat::name).into_iter().map(PossibleValue::new),
        ))
    }
}

pub(crate) fn method() -> impl TypedValueParser<Value = Method> {
    named(Method::ALL, Method::name)
}

/// One of `all`, by its name.
pub(crate) fn named<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(move |given| {
        let known = all.into_iter().find(|value| name(*value) == given);
        known.ok_or("no such name")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn methods_are_read_by_name() {
        let cli = Cli::parse_from(["blnn", "train", "--method", "bgrl-clean"]);
        let Command::Train(args) = cli.command else { panic!("not train") };
        assert_eq!(args.settings.method, Some(Method::BgrlClean));
        assert_eq!(args.graph, None);
    }
}
