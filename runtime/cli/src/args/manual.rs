//! The options of `spelter completions` and `spelter man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// `spelter completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  spelter completions bash > ~/.local/share/bash-completion/completions/spelter")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `spelter man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  spelter man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder; it is created if it does not exist.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
