//! The options of `spelter reflect`.

use std::path::PathBuf;

use clap::Args;

use crate::structured::Spec;

/// `spelter reflect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Offsets and strides are bytes. A binding that the entry point does not use is not listed.

Example:
  spelter reflect blur.wgsl
prints, for a shader with one storage buffer:
  main: workgroup 64x1x1
  0.0 data: storage buffer, read and written, 16 bytes for each element
        0  array<vec4<f32>>  stride 16")]
pub(crate) struct ReflectArgs {
    /// The shader: .wgsl, .spv (SPIR-V words), .spvasm (SPIR-V text), .comp or .glsl; - is standard input.
    pub(crate) file: PathBuf,
    /// Only this entry point; by default all.
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Set a specialization constant, by its id or its name; those without a default must be set.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true)]
    pub(crate) spec: Vec<Spec>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
