//! The options of `spelter merge`.

use std::path::PathBuf;

use clap::Args;
use spelter_jobs::output_file;

/// `spelter merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
The files are those of --results: of the shards of one job array, in any order; a file may be unfinished. Jobs that are in
several files must have the same result in each. The exit status is 1 if a job is missing; the file of --out is written
all the same, and a command continues it (--results) with the missing jobs. It is 3 if none is missing, and one failed:
a job because of which its command ends with another status than 0. Jobs that failed are listed by their numbers, and
what jobs found by its fingerprint: each finding once, with the number of jobs that have it.

Example:
  spelter litmus --generate --shard 1/2 --results a.jsonl; spelter litmus --generate --shard 2/2 --results b.jsonl
  spelter merge a.jsonl b.jsonl --out all.jsonl")]
pub(crate) struct MergeArgs {
    /// The files.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write all results to this file, in the order of the jobs: it is equal to that of a run without shards.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) out: Option<PathBuf>,
    /// Put results of different builds together, which may differ.
    #[arg(long)]
    pub(crate) any_build: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
