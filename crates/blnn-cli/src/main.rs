//! The `blnn` command: glue between the command line and the library.
//!
//! Results go to stdout, progress and errors to stderr. Exit code 0 is success, 1 a result below
//! a gate the user set, 2 an error, 130 an interrupted run that can be resumed.

mod args;
mod commands;
mod hangup;
mod output;
mod own_graph;
mod plan_progress;
mod progress;
mod run_graph;
mod scoring;

use std::io;
use std::panic;
use std::process::ExitCode;

use blnn_kernels::Isa;
use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    hangup::stay_deaf();
    hush_parquet();
    let cli = Cli::parse();
    mention_unknown_kernels();
    let done = match &cli.command {
        Command::Train(args) => commands::train::run(args),
        Command::Plan(args) => commands::plan::run(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Embed(args) => commands::embed::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Similar(args) => commands::similar::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Completions(args) => commands::shell::completions(args),
        Command::Man(args) => commands::shell::man(args),
        Command::Reproduce(args) => commands::reproduce::run(args),
        Command::Datasets(args) => commands::datasets::run(args).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::report(&error);
            ExitCode::from(2)
        }
    }
}

/// A name that means nothing here would else be passed over in silence.
fn mention_unknown_kernels() {
    if let Err(named) = blnn_kernels::wish() {
        let names: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
        let (names, best) = (names.join(", "), blnn_kernels::isa().name());
        output::note(format_args!(
            "BLNN_KERNELS is `{named}`, which this CPU does not have; it has {names}. {best} is used"
        ));
    }
}

/// The decoders of parquet panic over some damaged files, which the library turns into an error;
/// people need to read the latter only.
fn hush_parquet() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !blnn::panic_becomes_error() {
            usual(info);
        }
    }));
}

/// Whether our own stdout was closed, as by `| head`: the reader has seen enough, and that is no
/// failure. Files and sockets report through [`blnn::Error`] and are not meant here.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
