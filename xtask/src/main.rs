//! Developer commands, run as `cargo xtask COMMAND`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "printing is what these commands are for"
)]

mod args;
mod browser;
mod checks;
mod fuzz;
mod golden;
mod large_graphs;
mod matrix_unit;
mod pairs;
mod peer;
mod python;
mod tally;
mod test_binaries;
#[cfg(test)]
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use args::Args;

const USAGE: &str = "\
Developer commands of the blnn workspace

Usage: cargo xtask COMMAND [OPTIONS]

  test          Check everything CI checks: formatting, lints, tests, scalar kernels, docs
  bench-peer    Time one epoch beside the tuned PyTorch program, in turns on this machine
                  --datasets photo,computers,cs,physics   which graphs
                  --epochs N     epochs of each run (10)
                  --rounds N     how often each side runs; medians are reported (2)
                  --precision P  our arithmetic: auto, f32 or bf16 (auto)
                  --python PATH  a Python with torch, numpy and scipy
                  --peer PATH    the PyTorch program (../shared/bench/torch_peer.py)
                  --format F     table or json
  fuzz          Run libFuzzer on the readers of foreign bytes: all of them, or TARGET…
                  --seconds N    how long each (60)
  golden        Write the golden arrays of the engine's tests anew with PyTorch
                  --check        only compare with the files on disk
                  --python PATH  a Python with torch and numpy";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_else(|| "help".into());
    let args = Args::new(words.collect());
    match command.as_str() {
        "test" => checks::run(args),
        "bench-peer" => peer::run(args),
        "fuzz" => fuzz::run(args),
        "golden" => golden::run(args),
        "help" | "-h" | "--help" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => bail!("there is no command `{other}`\n\n{USAGE}"),
    }
}
