//! Options of `spelter litmus` for shaders: the launch from which a test is derived.

use clap::Args;

use crate::structured::{Bind, Groups, Push, Spec};

/// The launch of a shader.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Launch of a shader")]
pub(crate) struct DeriveArgs {
    /// The entry point; not needed if the shader has only one.
    #[arg(long, value_name = "NAME", conflicts_with = "generate")]
    pub(crate) entry: Option<String>,
    /// The number of workgroups in each direction; one workgroup by default.
    #[arg(long, value_name = "X[,Y[,Z]]", allow_hyphen_values = true, conflicts_with = "generate")]
    pub(crate) groups: Option<Groups>,
    /// The initial contents of a storage buffer, as for `spelter run`; zeros if its size is known.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true, conflicts_with = "generate")]
    pub(crate) bind: Vec<Bind>,
    /// The contents of a uniform buffer.
    #[arg(long, value_name = "G.B=VALUE", allow_hyphen_values = true, conflicts_with = "generate")]
    pub(crate) uniform: Vec<Bind>,
    /// Push constants; several options are concatenated.
    #[arg(long, value_name = "TYPE:a,b,c", allow_hyphen_values = true, conflicts_with = "generate")]
    pub(crate) push: Vec<Push>,
    /// Set a specialization constant, by its id or its name.
    #[arg(long, value_name = "ID=VALUE", allow_hyphen_values = true, conflicts_with = "generate")]
    pub(crate) spec: Vec<Spec>,
    /// The number of invocations in a subgroup.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) subgroup_size: u32,
}
