//! The `blnn` command.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Learn node embeddings of attributed graphs without labels.
#[derive(Debug, Parser)]
#[command(name = "blnn", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Datasets(commands::datasets::DatasetsArgs),
}

fn main() -> ExitCode {
    let Command::Datasets(args) = Cli::parse().command;
    match commands::datasets::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
