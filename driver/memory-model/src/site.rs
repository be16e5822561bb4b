//! Where the events of a trace come from: instructions of a kernel, and commands of the API.
//!
//! A repair changes code, not one execution of it: an edit of a site changes all events of the site.

use std::fmt;

/// An instruction of a kernel, or a call of the API. The number has a meaning for the code that builds the trace only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "site {}", self.0)
    }
}

/// The part of a command that accesses memory: the pipeline stage that a dependency names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// `VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT`.
    ComputeShader,
    /// `VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT`: copies, fills, clears.
    Transfer,
    /// `VK_PIPELINE_STAGE_2_DRAW_INDIRECT_BIT`: the parameters of an indirect dispatch.
    DrawIndirect,
    /// `VK_PIPELINE_STAGE_2_HOST_BIT`: the host, which executes no command.
    Host,
}

impl Stage {
    /// The name without `VK_PIPELINE_STAGE_2_` and `_BIT` (Vulkan, "Pipeline Stages").
    pub fn name(self) -> &'static str {
        match self {
            Self::ComputeShader => "COMPUTE_SHADER",
            Self::Transfer => "ALL_TRANSFER",
            Self::DrawIndirect => "DRAW_INDIRECT",
            Self::Host => "HOST",
        }
    }

    /// The access flag of a read or write in this stage, without `VK_ACCESS_2_` and `_BIT` (Vulkan, "Access Types").
    /// The flag of a shader's read is that of storage buffers and images; a trace does not tell other descriptors.
    pub fn access(self, writes: bool) -> &'static str {
        match (self, writes) {
            (Self::ComputeShader, false) => "SHADER_STORAGE_READ",
            (Self::ComputeShader, true) => "SHADER_STORAGE_WRITE",
            (Self::Transfer, false) => "TRANSFER_READ",
            (Self::Transfer, true) => "TRANSFER_WRITE",
            (Self::DrawIndirect, _) => "INDIRECT_COMMAND_READ",
            (Self::Host, false) => "HOST_READ",
            (Self::Host, true) => "HOST_WRITE",
        }
    }
}

/// A command of the API, one of whose invocations or stages is a thread of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Command {
    /// Which one: threads with the same number are of one command. In the order of submission.
    pub number: u32,
    /// The stage that accesses memory.
    pub stage: Stage,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stage {
            Stage::Host => f.write_str("the host"),
            _ => write!(f, "command {}", self.number),
        }
    }
}
