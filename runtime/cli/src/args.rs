//! The command line. Clap reports wrong usage and exits with status 2.

mod bench;
mod check;
mod check_command;
mod derive;
mod litmus;
mod manual;
mod merge;
mod profile;
mod reflect;
mod run;
mod sweep;
mod test;
mod trace;

pub(crate) use bench::BenchArgs;
pub(crate) use check::{CheckArgs, ReportFiles};
pub(crate) use check_command::CheckCommandArgs;
pub(crate) use derive::DeriveArgs;
pub(crate) use litmus::{KindName, LitmusArgs, ScopeName};
pub(crate) use manual::{CompletionsArgs, ManArgs};
pub(crate) use merge::MergeArgs;
pub(crate) use profile::ProfileArgs;
pub(crate) use reflect::ReflectArgs;
pub(crate) use run::ImageArgs;
pub(crate) use sweep::{BaselineName, GroupSweep, Sweep, push_bytes};
pub(crate) use test::TestArgs;
pub(crate) use trace::{TraceArgs, TraceCommand};

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use spelter::{Backend, Schedule};
pub(crate) use spelter_jobs::{JobArgs, Shard, output_file};
use spelter_shaders::back::x86::Isa;
use vulkan_spelter::options::seconds;

use crate::output::Color;
use crate::structured::{Bind, Groups, Print, Push, Save, Spec};

/// Runs Vulkan compute programs on CPU workers.
#[derive(Debug, Parser)]
#[command(name = "spelter", version, max_term_width = 100)]
#[command(after_help = "\
Exit status:
  0   success
  1   a failure without a status of its own, such as a file that cannot be read
  2   wrong usage of the command line, or an invalid environment variable
  3   litmus --deny-races: a test races; merge: a job failed, and none is missing
  4   the shader is rejected
  5   a rule of Vulkan is broken, or an option exceeds a limit or does not fit the shader
  6   the device is lost: a kernel exceeds its time limit
  66  run --check, test --check, check: an error, such as a data race
  67  the same: no error, but a part was not checked; exec --require-device: no device
exec and check end with the status of their program: 126 or 127 if it cannot be started, 128 + N after signal N.")]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colours in the output; `auto` uses them on terminals, unless the variable NO_COLOR is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Color::Auto, global = true)]
    pub(crate) color: Color,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a compute shader with buffers from the command line and show the results.
    Run(RunArgs),
    /// Measure a compute shader over a sweep of workgroups, buffer sizes and workers, and compare with earlier runs.
    Bench(BenchArgs),
    /// Measure each dispatch of a compute shader, or of any Vulkan program, and show the time by program.
    Profile(ProfileArgs),
    /// Compile a compute shader and show its intermediate forms, machine code and compile times.
    Compile(CompileArgs),
    /// Show what a compute shader needs: bindings, layouts of their data, push constants, workgroup size.
    Reflect(ReflectArgs),
    /// Run a gallery of programs, check each against a reference and measure it.
    Demo(DemoArgs),
    /// Run AmberScript files: shaders with buffers and expected results. Check a corpus of scripts and shaders.
    Test(TestArgs),
    /// Show the device: workers, SIMD, limits, memory, versions.
    Info(InfoArgs),
    /// Decide litmus tests of the Vulkan memory model: outcomes, races, repairs.
    Litmus(LitmusArgs),
    /// Run any Vulkan program on Spelter, through the Vulkan loader.
    Exec(ExecArgs),
    /// Run any Vulkan program on Spelter and find its data races and missing barriers.
    Check(CheckCommandArgs),
    /// Put the results of the shards of a job array together, and say what is missing.
    Merge(MergeArgs),
    /// Add up timelines that run and exec wrote.
    Trace(TraceArgs),
    /// Install Spelter for the Vulkan loader.
    Icd(IcdArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder.
    Man(ManArgs),
}

/// `spelter run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
VALUE is one of
  zeros:BYTES         BYTES bytes, all 0; 2K is 2048, and M and G are 2²⁰ and 2³⁰
  TYPE:a,b,c          values of TYPE: u8 to u64, i8 to i64 or f16 to f64; 0x… gives the bits of an integer in
                      hexadecimal
  TYPE:range:N        0, 1, 2 … N-1
  TYPE:random:N:SEED  N random values, the same for the same seed; floats are from 0 up to 1
  @FILE               the bytes of a file; @- is standard input
  null                no buffer: reads give 0, writes are dropped
  G.B                 the buffer of that binding, which has a VALUE of its own: two descriptors of the same memory

G.B is a descriptor set (WGSL: group) and a binding; before = it may be the name of a variable. G.B[I] is element I of
an array of descriptors.

SOURCE of an image is one of
  FILE.png            a picture, in the format that the shader states, or rgba8unorm
  FORMAT@FILE.png     a picture in another format
  FORMAT:SIZE[:WORD]  SIZE is WIDTHxHEIGHT, and xDEPTH or xLAYERS; words are zeros, gradient, checker, @FILE (texels of
                      level 0) and levels=N
  null                no image
FORMAT is a name of WGSL or Vulkan, such as rgba8unorm, r32float or R8G8B8A8_UNORM. Words of a sampler are nearest,
linear, mag=F, min=F, mip=F, clamp, repeat, mirror, mirror-clamp, border, u=MODE, v=MODE, w=MODE, color=COLOR,
compare=OP, lod=MIN..MAX, bias=NUMBER, texels.

TYPE of --out is a scalar, a vector (vec3f, vec3<f32>), a matrix (mat4x3f), an array (u32[4]) or a struct
({position: vec3f, id: u32}), laid out as in a storage buffer.

Example:
  spelter run double.wgsl --bind 0.0=u32:range:1024 --groups 16 --out 0.0=u32:0..8
prints, for the shader in README.md that doubles an array<u32>:
  0.0 u32  0 2 4 6 8 10 12 14")]
pub(crate) struct RunArgs {
    /// The shader: .wgsl, .spv (SPIR-V words), .spvasm (SPIR-V text), .comp or .glsl; - is standard input.
    pub(crate) file: PathBuf,
    /// The entry point; not needed if the shader has only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// The number of workgroups in each direction; one workgroup by default.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true)]
    pub(crate) groups: Option<Groups>,
    /// Fill a storage buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) bind: Vec<Bind>,
    /// Fill a uniform buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) uniform: Vec<Bind>,
    /// The number of invocations in each direction, instead of --groups: enough workgroups for them.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true, conflicts_with = "groups")]
    pub(crate) invocations: Option<Groups>,
    /// Images, samplers and texel buffers.
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    /// Push constants; several options are concatenated. Trailing padding of a struct is allowed.
    #[arg(long, value_name = "TYPE:a,b,c", allow_hyphen_values = true)]
    pub(crate) push: Vec<Push>,
    /// Set a specialization constant, by its id or its name: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// Print a buffer or an image, or its elements from FIRST up to but not including LAST; with :hex the bits.
    #[arg(long, value_name = "G.B=TYPE[:hex][:FIRST..LAST]", allow_hyphen_values = true)]
    pub(crate) out: Vec<Print>,
    /// Write the bytes of a buffer, or the texels of an image, to a file; an image to a .png as a picture.
    #[arg(long, value_name = "G.B=FILE", allow_hyphen_values = true)]
    pub(crate) save: Vec<Save>,
    /// Run several times; the buffers keep their contents between runs.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print the time of a run: median, best, spread, and bound bytes per second. The first of several is a warm-up.
    #[arg(long)]
    pub(crate) time: bool,
    /// Write a timeline of contexts, queues and workers, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) trace: Option<PathBuf>,
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object, including messages of the kernel, an error, findings and the tracker's counters.
    #[arg(long)]
    pub(crate) json: bool,
    /// Checked mode.
    #[command(flatten)]
    pub(crate) check: CheckArgs,
}

/// `spelter compile`.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// The shader: .wgsl, .spv (SPIR-V words), .spvasm (SPIR-V text), .comp or .glsl; - is standard input.
    pub(crate) file: PathBuf,
    /// The entry point; not needed if the shader has only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Set a specialization constant, by its id or its name: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Emit::Ir)]
    pub(crate) emit: Emit,
    /// Skip the optimizer; with --emit ir also the lowering, to show the kernel as the reader produced it.
    #[arg(long)]
    pub(crate) no_opt: bool,
    /// The target instruction set of lowering and code generation; by default the best one of this machine.
    #[arg(long, value_name = "NAME", value_parser = isa_names().map(isa))]
    pub(crate) isa: Option<Isa>,
    /// Print the time of each stage, as comments after the text.
    #[arg(long)]
    pub(crate) time: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A form of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The scalar form, optimised and lowered.
    Ir,
    /// The form with 16 lanes.
    Simd,
    /// Machine code.
    Asm,
}

impl Emit {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ir => "ir",
            Self::Simd => "simd",
            Self::Asm => "asm",
        }
    }
}

fn isa_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Isa::ALL.map(Isa::name))
}

/// The instruction set of a name that clap has found in the list.
fn isa(name: String) -> Isa {
    Isa::ALL.into_iter().find(|isa| isa.name() == name).unwrap_or(Isa::Avx2)
}

/// The programs of `spelter demo`.
pub(crate) const DEMOS: [&str; 8] =
    ["saxpy", "reduce", "scan", "histogram", "matmul", "nbody", "mandelbrot", "pathtracer"];

/// `spelter demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The programs to run; all by default.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(DEMOS))]
    pub(crate) names: Vec<String>,
    /// The folder for pictures.
    #[arg(long, value_name = "DIR", default_value = "demo-out")]
    pub(crate) out: PathBuf,
    /// Only list the programs.
    #[arg(long)]
    pub(crate) list: bool,
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object for each program.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spelter info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// List the environment variables, grouped by reader, with their values.
    #[arg(long)]
    pub(crate) env: bool,
}

/// `spelter exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
The exit status is that of the program. Other settings are environment variables: see `spelter info --env`.

Examples:
  spelter exec -- vulkaninfo --summary
  spelter exec --graphics -- python program.py
A cargo runner, in .cargo/config.toml, for `cargo run`, `cargo test` and `cargo bench`:
  target.'cfg(target_os = \"linux\")'.runner = \"spelter exec --graphics --\"")]
pub(crate) struct ExecArgs {
    /// Advertise a graphics queue and a conformance version, for compute programs that require them (wgpu, Dawn,
    /// taichi).
    #[arg(long)]
    pub(crate) graphics: bool,
    /// Put the driver in the place of the Vulkan loader, libvulkan.so.1; the default on machines without a loader.
    #[arg(long)]
    pub(crate) no_loader: bool,
    /// Fail, with status 67, if the program succeeds and no process of it has created a device of Spelter: for tests
    /// that skip themselves without a device. The program is then a child of this one.
    #[arg(long)]
    pub(crate) require_device: bool,
    /// Print statistics of the device when it is destroyed.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Write a timeline of queues and workers, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) trace: Option<PathBuf>,
    /// Print the time that each pipeline took when the program has ended: on standard error, or to a file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, value_parser = output_file())]
    pub(crate) profile: Option<Option<PathBuf>>,
    /// Print the profile as one JSON object.
    #[arg(long, requires = "profile")]
    pub(crate) json: bool,
    /// The device.
    #[command(flatten)]
    pub(crate) device: ExecDeviceArgs,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// The device of another program; defaults come from the environment.
#[derive(Debug, Args)]
pub(crate) struct ExecDeviceArgs {
    /// Worker threads.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// The back end that runs kernels: avx512, avx2 or interpreter.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<Backend>,
    /// The time that one dispatch or transfer may run before the device is lost.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) time_limit: Option<Duration>,
    /// The order of workgroups, subgroups and lanes: ascending, reverse or random:SEED.
    #[arg(long, value_name = "ORDER")]
    pub(crate) schedule: Option<Schedule>,
}

/// `spelter icd`.
#[derive(Debug, Args)]
pub(crate) struct IcdArgs {
    /// The action.
    #[command(subcommand)]
    pub(crate) command: IcdCommand,
}

/// The actions of `spelter icd`.
#[derive(Debug, Subcommand)]
pub(crate) enum IcdCommand {
    /// Install the manifest where the loader searches: every Vulkan program then finds Spelter next to other drivers.
    Install(InstallScope),
    /// Remove the manifest.
    Uninstall(InstallScope),
    /// Print the manifest.
    Manifest,
    /// Write the driver, its copy named libvulkan.so.1 for programs without a loader, and its manifest to a folder.
    Unpack {
        /// The folder.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// The users for whom the manifest is installed.
#[derive(Debug, Args)]
pub(crate) struct InstallScope {
    /// For this user; the default.
    #[arg(long)]
    pub(crate) user: bool,
    /// For all users.
    #[arg(long, conflicts_with = "user")]
    pub(crate) system: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl IcdCommand {
    /// Whether it prints an object.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Install(scope) | Self::Uninstall(scope) => scope.json,
            Self::Unpack { json, .. } => *json,
            // A manifest is one.
            Self::Manifest => false,
        }
    }
}

/// Options of the device; defaults come from the environment (`environment.rs`).
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArgs {
    /// The number of worker threads, or SPELTER_WORKERS; by default as many as the machine runs at once.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// The back end that runs kernels, or SPELTER_BACKEND: avx512, avx2 or interpreter; by default the fastest
    /// available.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<Backend>,
    /// The time that one dispatch or transfer may run before the device is lost, or SPELTER_TIME_LIMIT; 60 by default.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) time_limit: Option<Duration>,
    /// The order of workgroups, subgroups and lanes, or SPELTER_SCHEDULE: ascending (the default), reverse or
    /// random:SEED. A kernel whose results depend on it may lack a barrier.
    #[arg(long, value_name = "ORDER")]
    pub(crate) schedule: Option<Schedule>,
}
