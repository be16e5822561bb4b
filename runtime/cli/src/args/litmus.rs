//! The options of `spelter litmus`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use spelter_memory_model::Model;

use super::{DeriveArgs, JobArgs, output_file};

/// `spelter litmus`.
#[derive(Debug, Args)]
#[command(after_help = "\
A test ends in .test (the format of the Khronos memory model) or .litmus (Dat3M's). The exit status is 1 if an answer
differs from the expectation of the file or of a list, or something is undecided; else 3 if a test races and
--deny-races is given.

The invocations of a shader's launch become the threads of a test; a kernel that cannot be unrolled is refused, and so
is a launch with more than 128 accesses and barriers. Repairs name lines of the shader.

--profile is spec (today's appendix), khronos (its Alloy model), dartagnan or 1.1.90, and may be followed by switches:
  spec,chains=alloy,inclusion=joint
Switches (A1 to A5 are short names):
  overwrite (A1)=availability|api-visibility|visibility, chains (A2)=text|alloy|single,
  from-reads (A3)=khronos|dartagnan|modification-order, happens-before (A4)=appendix|transitive,
  inclusion (A5)=split|joint, coverage=directional|symmetric, coherence=acyclic|bullets,
  scoped-order=writes|all-atomics, scoped-order-is-location-order=no|yes, host-atomics=no|yes

Examples:
  spelter litmus mp.test --explain --repair
  spelter litmus kernel.wgsl --groups 2 --bind 0.0=zeros:8 --explain --deny-races")]
pub(crate) struct LitmusArgs {
    /// Tests, folders of tests, or shaders (.wgsl, .spv, .spvasm, .comp, .glsl).
    #[arg(value_name = "FILE|DIR", required_unless_present = "generate")]
    pub(crate) paths: Vec<PathBuf>,
    /// The launch from which the test of a shader is derived.
    #[command(flatten)]
    pub(crate) launch: DeriveArgs,
    /// The interpretation of the memory model.
    #[arg(long, value_name = "NAME[,SWITCH=VALUE…]", default_value = "spec")]
    pub(crate) profile: Model,
    /// Set one switch of the profile; A1 to A5 are names of switches as well.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) switch: Vec<String>,
    /// The largest number of executions of an instruction in a loop.
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) unroll: u32,
    /// The largest number of steps of a search; with --repair, of all its searches together.
    #[arg(long, value_name = "N", default_value = "50000000")]
    pub(crate) steps: u64,
    /// Explain why a race is one.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Find the smallest repair of a race.
    #[arg(long)]
    pub(crate) repair: bool,
    /// Write the repaired test to a file, in the format of the test; that of a shader in the format that the name
    /// tells. Only for one test.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) write_repair: Option<PathBuf>,
    /// Write the test that is derived from a shader to a file: .litmus, or .test for code without branches, registers
    /// and initial values.
    #[arg(long, value_name = "OUT.litmus", value_parser = output_file())]
    pub(crate) write_test: Option<PathBuf>,
    /// End with status 3 if a test races.
    #[arg(long)]
    pub(crate) deny_races: bool,
    /// Write a Graphviz picture of an execution of each test to this folder; a racing execution if there is one. Files
    /// with the same name get the names of their folders as prefix.
    #[arg(long, value_name = "DIR")]
    pub(crate) dot: Option<PathBuf>,
    /// Parts of the tests, and a file of their results. A test whose result is in the file is not decided again.
    #[command(flatten)]
    pub(crate) array: JobArgs,
    /// A list of expected answers to questions: lines `path,1` or `path,0`.
    #[arg(long, value_name = "FILE")]
    pub(crate) expected: Option<PathBuf>,
    /// A list of expected results of races: 1 for race-free.
    #[arg(long, value_name = "FILE")]
    pub(crate) expected_races: Option<PathBuf>,
    /// Print one JSON object for each test, and one for all.
    #[arg(long)]
    pub(crate) json: bool,
    /// Generate tests instead: every small program within the bounds below, up to symmetry.
    #[arg(long, conflicts_with_all = ["paths", "explain", "repair", "write_repair", "write_test", "deny_races",
        "dot", "expected", "expected_races"])]
    pub(crate) generate: bool,
    /// The largest number of threads of generated programs.
    #[arg(long, value_name = "N", default_value = "2", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) threads: u8,
    /// The largest number of operations of generated programs, of all threads together.
    #[arg(long, value_name = "N", default_value = "4", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) events: u8,
    /// The largest number of locations per storage class of generated programs.
    #[arg(long, value_name = "N", default_value = "2", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) locations: u8,
    /// The largest number of threads per subgroup of generated programs.
    #[arg(long, value_name = "N", default_value = "2", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) threads_per_subgroup: u8,
    /// The largest number of subgroups per workgroup of generated programs.
    #[arg(long, value_name = "N", default_value = "2", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) subgroups_per_workgroup: u8,
    /// The largest number of workgroups per queue family of generated programs.
    #[arg(long, value_name = "N", default_value = "2", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) workgroups_per_queue_family: u8,
    /// The largest number of queue families of generated programs.
    #[arg(long, value_name = "N", default_value = "1", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub(crate) queue_families: u8,
    /// Scopes of generated programs.
    #[arg(long, value_name = "NAME,…", value_enum, value_delimiter = ',', default_value = "workgroup,device")]
    #[arg(requires = "generate")]
    pub(crate) scopes: Vec<ScopeName>,
    /// The largest number of storage classes of generated programs.
    #[arg(long, value_name = "N", default_value = "1", requires = "generate")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) classes: u8,
    /// Kinds of operations of generated programs.
    #[arg(
        long,
        value_name = "KIND,…",
        value_enum,
        value_delimiter = ',',
        default_value = "plain,atomic,rmw,fence,barrier"
    )]
    #[arg(requires = "generate")]
    pub(crate) operations: Vec<KindName>,
    /// The largest number of generated programs; with --results, of all shards together: a job is 64 of them then.
    #[arg(long, value_name = "N", requires = "generate")]
    pub(crate) count: Option<usize>,
    /// Write each generated test to a file in this folder.
    #[arg(long, value_name = "DIR", requires = "generate")]
    pub(crate) out: Option<PathBuf>,
}

/// A memory scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// The invocations of a subgroup.
    Subgroup,
    /// The invocations of a workgroup.
    Workgroup,
    /// All invocations on queues of one family.
    QueueFamily,
    /// All invocations on the device.
    Device,
}

/// A kind of operation of generated programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindName {
    /// Non-atomic loads and stores.
    Plain,
    /// Atomic loads and stores.
    Atomic,
    /// Read-modify-writes.
    Rmw,
    /// Memory barriers.
    Fence,
    /// Control barriers, of the subgroup and workgroup scopes among --scopes.
    Barrier,
}
