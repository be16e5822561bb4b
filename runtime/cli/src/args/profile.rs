//! The options of `spelter profile`.

use std::path::PathBuf;

use clap::Args;

use super::sweep::PushPart;
use super::{DeviceArgs, ExecArgs, ExecDeviceArgs, ImageArgs, output_file};
use crate::structured::{Bind, Groups, ImageOption, SamplerOption, Spec, TexelsOption};

/// `spelter profile`.
#[derive(Debug, Args)]
#[command(
    override_usage = "spelter profile [OPTIONS] FILE\n       spelter profile [OPTIONS] -- COMMAND...",
    after_help = "\
The dispatches of a round are one for each --entry and --groups, in this order; every program finds the same buffers.
Buffers without an option are those of `spelter bench`. Before COMMAND only --trace, --save, --json, --graphics and
options of the device are allowed: it is profiled as by `spelter exec --profile`.

Example:
  spelter profile double.wgsl --groups 64 --groups 4096 --trace double.json"
)]
pub(crate) struct ProfileArgs {
    /// The shader: .wgsl, .spv (SPIR-V words), .spvasm (SPIR-V text), .comp or .glsl; - is standard input.
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
    /// An entry point; may be given several times. Not needed if the shader has only one.
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub(crate) entry: Vec<String>,
    /// The number of workgroups in each direction; may be given several times. One workgroup by default.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) groups: Vec<Groups>,
    /// Fill a storage buffer; see `spelter run --help` for VALUE.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) bind: Vec<Bind>,
    /// Fill a uniform buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) uniform: Vec<Bind>,
    /// Fill an image; see `spelter run --help` for SOURCE.
    #[arg(long, value_name = "G.B=SOURCE", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) image: Vec<ImageOption>,
    /// Set a sampler.
    #[arg(long, value_name = "G.B=WORD,…", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) sampler: Vec<SamplerOption>,
    /// Fill a texel buffer.
    #[arg(long, value_name = "G.B=FORMAT:VALUE", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) texels: Vec<TexelsOption>,
    /// Push constants: TYPE:a,b,c, or u32:invocations or u32:width for the number of invocations of a dispatch, in all
    /// or in X; several options are concatenated. Programs without push constants get none.
    #[arg(long, value_name = "TYPE:a,b,c", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) push: Vec<PushPart>,
    /// Set a specialization constant, by its id or its name: 3, -1, 1.5 (a float needs the point) or true.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) spec: Vec<Spec>,
    /// The number of rounds that are measured.
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true, conflicts_with = "command")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// The number of rounds before these.
    #[arg(long, value_name = "N", default_value = "3", allow_hyphen_values = true, conflicts_with = "command")]
    pub(crate) warm_up: u32,
    /// Write a timeline of queues and workers, for Perfetto or chrome://tracing.
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub(crate) trace: Option<PathBuf>,
    /// Write the table of COMMAND to a file instead of standard error.
    #[arg(long, value_name = "FILE", conflicts_with = "file", value_parser = output_file())]
    pub(crate) save: Option<PathBuf>,
    /// Advertise a graphics queue to COMMAND, for compute programs that require one (wgpu, Dawn, taichi).
    #[arg(long, conflicts_with = "file")]
    pub(crate) graphics: bool,
    /// The device.
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print one JSON object, with the timestamps of the dispatches.
    #[arg(long)]
    pub(crate) json: bool,
    /// A Vulkan program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

impl ProfileArgs {
    /// The options for images, samplers and texel buffers.
    pub(crate) fn images(&self) -> ImageArgs {
        ImageArgs { image: self.image.clone(), sampler: self.sampler.clone(), texels: self.texels.clone() }
    }

    /// The options of `spelter exec --profile` that profile the command.
    pub(crate) fn exec(&self) -> ExecArgs {
        let DeviceArgs { workers, backend, time_limit, schedule } = self.device;
        ExecArgs {
            graphics: self.graphics,
            no_loader: false,
            require_device: false,
            stats: false,
            trace: self.trace.clone(),
            profile: Some(self.save.clone()),
            json: self.json,
            device: ExecDeviceArgs { workers, backend, time_limit, schedule },
            command: self.command.clone(),
        }
    }
}
