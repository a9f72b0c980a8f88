//! `blnn completions` and `blnn man`: from the same definitions as the command line itself.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::output::note;

/// Print a script that completes commands and flags in a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn completions bash > ~/.local/share/bash-completion/completions/blnn
  blnn completions zsh > ~/.zfunc/_blnn
  blnn completions fish > ~/.config/fish/completions/blnn.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Write the manual pages of all commands into a folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder; it is made if it is missing
    folder: PathBuf,
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "blnn", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let fault = || format!("cannot write manual pages to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(fault)?;
    clap_mangen::generate_to(Cli::command(), folder).with_context(fault)?;
    note(format_args!("manual pages are in {}", folder.display()));
    Ok(ExitCode::SUCCESS)
}
