//! What the program takes on its command line. Clap ends wrong usage with status 2.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use spelter::Backend;
use spelter_shaders::back::x86::Isa;

use crate::slot::{Bind, Groups, Print, Push, Save, Spec};

/// Runs Vulkan compute programs on CPU workers.
#[derive(Debug, Parser)]
#[command(name = "spelter", version, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a compute shader with buffers from the command line and show what it computes.
    Run(RunArgs),
    /// Show what a compute shader becomes: intermediate forms, machine code, times.
    Compile(CompileArgs),
    /// Compute a gallery of programs, check each against a reference and measure it.
    Demo(DemoArgs),
    /// Show the device: workers, SIMD, limits, memory, versions.
    Info(InfoArgs),
}

/// `spelter run`.
#[derive(Debug, Args)]
#[command(after_help = "\
VALUE is one of
  zeros:BYTES         that many bytes, all 0
  TYPE:a,b,c          values of TYPE: u32, i32 or f32; 0x… gives the bits of a u32 or i32 in hexadecimal
  TYPE:range:N        0, 1, 2 … N-1
  TYPE:random:N:SEED  N random values, the same for the same seed; f32 are from 0 up to 1
  @FILE               the bytes of a file

G.B is a descriptor set (WGSL: group) and a binding; G.B[I] is element I of an array of descriptors.

Example:
  spelter run double.wgsl --bind 0.0=u32:range:1024 --groups 16 --out 0.0=u32:0..8
prints, for the shader in README.md that doubles an array<u32>:
  0.0 u32  0 2 4 6 8 10 12 14")]
pub(crate) struct RunArgs {
    /// The shader: .wgsl, .spv (SPIR-V words) or .spvasm (SPIR-V text).
    pub(crate) file: PathBuf,
    /// The entry point; may be left out where the shader has only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Workgroups in each direction.
    #[arg(long, value_name = "X[,Y[,Z]]", default_value = "1", allow_hyphen_values = true)]
    pub(crate) groups: Groups,
    /// Fill a storage buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) bind: Vec<Bind>,
    /// Fill a uniform buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) uniform: Vec<Bind>,
    /// Push constants; several are joined. Padding up to a multiple of 16 bytes may follow.
    #[arg(long, value_name = "TYPE:a,b,c", allow_hyphen_values = true)]
    pub(crate) push: Vec<Push>,
    /// Set a specialization constant: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// Print a buffer, or the elements FIRST up to, not including, LAST.
    #[arg(long, value_name = "G.B=TYPE[:FIRST..LAST]", allow_hyphen_values = true)]
    pub(crate) out: Vec<Print>,
    /// Write the bytes of a buffer to a file.
    #[arg(long, value_name = "G.B=FILE", allow_hyphen_values = true)]
    pub(crate) save: Vec<Save>,
    /// Run several times; the buffers keep what the run before wrote.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print how long a run takes: median and best.
    #[arg(long)]
    pub(crate) time: bool,
    /// Write a timeline of contexts, queues and workers, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object, with the tracker's counters.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `spelter compile`.
#[derive(Debug, Args)]
pub(crate) struct CompileArgs {
    /// The shader: .wgsl, .spv (SPIR-V words) or .spvasm (SPIR-V text).
    pub(crate) file: PathBuf,
    /// The entry point; may be left out where the shader has only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Set a specialization constant: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Emit::Ir)]
    pub(crate) emit: Emit,
    /// Leave the optimiser out; of --emit ir the lowering, too, so that it shows what was read.
    #[arg(long)]
    pub(crate) no_opt: bool,
    /// The instructions of the machine code; the best that this machine has if not given.
    #[arg(long, value_name = "NAME", value_parser = isa_names().map(isa))]
    pub(crate) isa: Option<Isa>,
    /// Tell how long each stage took, in comments after the text.
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

/// `spelter demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Which programs; all if none is named.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(crate::demo::names()))]
    pub(crate) names: Vec<String>,
    /// Where pictures go.
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
}

/// How the device is made.
#[derive(Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Worker threads; as many as the machine runs at once if not given.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
    /// What runs kernels: avx512, avx2 or interpreter; the fastest that the machine has if not given.
    #[arg(long, value_name = "NAME", env = "SPELTER_BACKEND")]
    pub(crate) backend: Option<Backend>,
    /// How long one dispatch or transfer may run before the device is lost.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) time_limit: Duration,
}

/// A positive number of seconds, up to a year.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(seconds > 0.0 && seconds <= 31_536_000.0) {
        return Err("must be more than 0 and at most 31536000 (a year)".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}
