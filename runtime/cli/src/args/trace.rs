//! The options of `spelter trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `spelter trace`.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The action.
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// The actions of `spelter trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Print the time that each program took.
    Summary {
        /// A timeline that `spelter run --trace` or `spelter exec --trace` wrote.
        file: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}
