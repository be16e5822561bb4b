//! The options of `spelter bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use spelter::Backend;
use vulkan_spelter::options::seconds;

use super::sweep::{BaselineName, GroupSweep, PushPart, Sweep};
use super::{ImageArgs, output_file};
use crate::structured::{Bind, Spec};

/// `spelter bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
A sweep is a list, 1,2,8, or FIRST..LAST[*FACTOR]: FIRST, FIRST × FACTOR and so on, and LAST. Sizes may end in K, M or
G (KiB, MiB, GiB). Every combination of workgroups, bytes and workers is one point. --groups 1,2,8 is one point of
1 × 2 × 8 workgroups, as for `spelter run`: a list of them is --groups 1 --groups 2 --groups 8. All points are checked
before the first one is measured; what was measured before a failure is printed and saved.

Storage buffers without --bind hold random floats from 0 up to 1, and texel buffers without --texels a gradient. They
have one element for each invocation, or the size of --bytes. In uniform buffers without --uniform each float is such a
number, and each integer is the number of invocations. Images and samplers have no default: their options are those of
`spelter run`.

The limit of a point is what a kernel reaches that only moves the same bytes, only multiplies and adds, or only has
atomics, with the same workers: `memory 80 %` is a kernel that takes 1.25 times as long as that takes.

Example:
  spelter bench double.wgsl --groups 1..16384 --workers 1,2 --plot double.png --save-baseline before")]
pub(crate) struct BenchArgs {
    /// The shader: .wgsl, .spv (SPIR-V words), .spvasm (SPIR-V text), .comp or .glsl (by `glslc`).
    pub(crate) file: PathBuf,
    /// The entry point; not needed if the shader has only one.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Numbers of workgroups: `X[,Y[,Z]]`, where X may be `FIRST..LAST[*FACTOR]` with a factor of 4 by default. May be
    /// given several times. By default 1..4096.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true)]
    pub(crate) groups: Vec<GroupSweep>,
    /// Sizes of the storage and texel buffers that no option fills: a sweep with a factor of 4 by default.
    #[arg(long, value_name = "SWEEP", allow_hyphen_values = true, value_parser = Sweep::bytes)]
    pub(crate) bytes: Option<Sweep>,
    /// Numbers of workers: a sweep with a factor of 2 by default. Without it, SPELTER_WORKERS or as many as the machine
    /// runs at once.
    #[arg(long, value_name = "SWEEP", allow_hyphen_values = true, value_parser = Sweep::workers)]
    pub(crate) workers: Option<Sweep>,
    /// Fill a storage buffer; see `spelter run --help` for VALUE.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) bind: Vec<Bind>,
    /// Fill a uniform buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true)]
    pub(crate) uniform: Vec<Bind>,
    /// Images, samplers and texel buffers; see `spelter run --help` for SOURCE and the words.
    #[command(flatten)]
    pub(crate) images: ImageArgs,
    /// Push constants: TYPE:a,b,c, or u32:invocations or u32:width for the number of invocations of a point, in all or
    /// in X; several options are concatenated.
    #[arg(long, value_name = "TYPE:a,b,c", allow_hyphen_values = true)]
    pub(crate) push: Vec<PushPart>,
    /// Set a specialization constant, by its id or its name: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// The time to measure each point.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) seconds: Duration,
    /// The time to run each point before it is measured.
    #[arg(long, value_name = "SECONDS", default_value = "0.3", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) warm_up: Duration,
    /// Do not measure the limits of the machine.
    #[arg(long)]
    pub(crate) no_limits: bool,
    /// Write a picture of the sweep.
    #[arg(long, value_name = "FILE.png", value_parser = output_file())]
    pub(crate) plot: Option<PathBuf>,
    /// Save the samples under a name.
    #[arg(long, value_name = "NAME")]
    pub(crate) save_baseline: Option<BaselineName>,
    /// Compare with the samples that were saved under a name.
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<BaselineName>,
    /// Changes of fewer percent count as noise.
    #[arg(long, value_name = "PERCENT", default_value = "2", allow_hyphen_values = true)]
    #[arg(value_parser = percent)]
    pub(crate) noise: f64,
    /// The folder for saved samples.
    #[arg(long, value_name = "DIR", default_value = "bench-out")]
    pub(crate) out: PathBuf,
    /// The back end that runs kernels, or SPELTER_BACKEND; by default the fastest available.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<Backend>,
    /// The time that one dispatch may run before the device is lost, or SPELTER_TIME_LIMIT; 60 by default.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) time_limit: Option<Duration>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number of percent".to_owned())?;
    if (0.0..100.0).contains(&percent) { Ok(percent) } else { Err("must be from 0 up to 100".to_owned()) }
}
