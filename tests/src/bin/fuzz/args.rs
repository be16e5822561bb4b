//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};
use serde_json::json;
use spelter_jobs::{JobArgs, JobArray};
use spelter_tests::engine::{Engine, engines};
use spelter_tests::fuzz::{Bench, Generated, Options, Tape, generate};

/// Runs random kernels on every engine and compares all memory.
#[derive(Clone, Debug, Parser)]
#[command(name = "fuzz")]
pub(crate) struct Args {
    /// Ends after this many seconds: by default after 60, and with --results when all is done.
    #[arg(long)]
    seconds: Option<u64>,
    /// Ends after this many programs of this shard, if that is earlier; with --results, of all shards together.
    #[arg(long)]
    pub(crate) programs: Option<u64>,
    /// Parts of the programs, and a file of results, which needs --programs: a job is a block of them then.
    #[command(flatten)]
    pub(crate) array: JobArgs,
    /// Selects the programs: another seed gives other ones.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Processes; by default as many as the machine has threads.
    #[arg(long)]
    pub(crate) threads: Option<u64>,
    /// Runs only the reference interpreter and engines whose name contains this.
    #[arg(long)]
    pub(crate) engine: Option<String>,
    /// Lets another thread write to the buffers meanwhile, and checks only that programs end and stay in bounds.
    #[arg(long)]
    pub(crate) race: bool,
    /// Generates no atomics.
    #[arg(long)]
    pub(crate) no_atomics: bool,
    /// Generates no barriers after some invocations have returned.
    #[arg(long)]
    pub(crate) strict_returns: bool,
    /// The folder for findings.
    #[arg(long, default_value = "fuzz-findings")]
    pub(crate) out: PathBuf,
    /// Prints findings and the report as JSON, one object in each line.
    #[arg(long)]
    pub(crate) json: bool,
    /// With files: prints the lowered and optimised kernel and its SIMD form too.
    #[arg(long)]
    pub(crate) show: bool,
    /// Runs these findings instead.
    pub(crate) files: Vec<PathBuf>,
    /// The number of this child.
    #[arg(long, hide = true)]
    child: Option<u64>,
    /// Checks the program of a tape in a file.
    #[arg(long, hide = true)]
    check: Option<PathBuf>,
    /// The first program of a child.
    #[arg(long, hide = true, default_value_t = 0)]
    pub(crate) first: u64,
    /// Lets a child run the blocks that standard input names.
    #[arg(long, hide = true)]
    pub(crate) blocks: bool,
}

/// The time that it takes by default.
const SECONDS: u64 = 60;

/// Programs of a block.
pub(crate) const BLOCK: u64 = 64;

/// The role of this process.
pub(crate) enum Mode {
    Parent,
    Child { job: u64 },
    Check { tape: PathBuf },
    Files,
}

impl Args {
    /// The arguments of the process. Ends it if they are wrong.
    pub(crate) fn of_process() -> Self {
        let args = Self::parse();
        if args.array.results.is_some() && args.programs.is_none() {
            let problem = "--results needs --programs: a job array has a number of jobs";
            Self::command().error(ErrorKind::MissingRequiredArgument, problem).exit();
        }
        args
    }

    pub(crate) fn mode(&self) -> Mode {
        match (self.child, &self.check) {
            (Some(job), _) => Mode::Child { job },
            (_, Some(tape)) => Mode::Check { tape: tape.clone() },
            _ if self.files.is_empty() => Mode::Parent,
            _ => Mode::Files,
        }
    }

    fn engines(&self) -> Vec<Engine> {
        let wanted = |engine: &Engine| self.engine.as_ref().is_none_or(|name| engine.name.contains(name.as_str()));
        engines().into_iter().enumerate().filter(|(at, engine)| *at == 0 || wanted(engine)).map(|(_, e)| e).collect()
    }

    pub(crate) fn bench(&self) -> Bench {
        let mut bench = Bench::new(self.engines());
        if self.race {
            bench.race();
        }
        bench
    }

    /// When it ends, if it is not done earlier. A job array is done when all of its jobs are.
    pub(crate) fn limit(&self) -> Option<Duration> {
        let default = if self.blocks || self.array.results.is_some() { None } else { Some(SECONDS) };
        self.seconds.or(default).map(Duration::from_secs)
    }

    pub(crate) fn threads(&self) -> u64 {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u64)).max(1)
    }

    /// The blocks as jobs.
    pub(crate) fn job_array(&self) -> JobArray {
        let programs = self.programs.unwrap_or(0);
        let settings = json!({ "programs": programs, "seed": self.seed, "race": self.race, "engine": self.engine,
            "no_atomics": self.no_atomics, "strict_returns": self.strict_returns });
        JobArray { name: "fuzz".to_owned(), settings, jobs: programs.div_ceil(BLOCK) }
    }

    /// The programs of a block from `first` on.
    pub(crate) fn block(&self, number: u64, first: u64) -> std::ops::Range<u64> {
        first..((number + 1) * BLOCK).min(self.programs.unwrap_or(u64::MAX))
    }

    /// The tape of a program by its number.
    pub(crate) fn tape(&self, number: u64) -> Tape {
        Tape::random(self.seed.wrapping_mul(0x1_0000_0000_0000).wrapping_add(number))
    }

    /// A program by its number, with its tape.
    pub(crate) fn program(&self, number: u64, options: Options) -> (Generated, Vec<u32>) {
        let (generated, tape) = generate(self.tape(number), options);
        (generated, tape.into_words())
    }

    /// Options of the generator.
    pub(crate) fn options(&self) -> Options {
        let (atomics, loose_returns) = (!self.no_atomics, !self.strict_returns);
        Options { atomics, loose_returns, ..Options::ALL }
    }

    /// The file in which a child records the number of its current program.
    pub(crate) fn note(&self, job: u64) -> PathBuf {
        self.out.join(format!(".at-{}-{job}", self.array.shard.numbers().0))
    }
}
