//! Errors say whose fault they are: the caller's, with the Vulkan rule that was broken, or the world's.

use std::fmt;

use spelter_shaders::front;

use crate::host_memory::OutOfHostMemory;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller broke a rule of Vulkan. Nothing has changed: the call can be made again, rightly.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// Device memory could not be had (`VK_ERROR_OUT_OF_DEVICE_MEMORY`).
    #[error("out of memory")]
    OutOfMemory,
    /// The host's memory could not be had (`VK_ERROR_OUT_OF_HOST_MEMORY`).
    #[error(transparent)]
    OutOfHostMemory(#[from] OutOfHostMemory),
    /// Private memory of a workgroup's invocations is more than any device has (`VK_ERROR_OUT_OF_DEVICE_MEMORY`).
    #[error("out of memory: {0}")]
    TooMuchPrivate(TooMuchPrivate),
    /// A device with such options there cannot be (`VK_ERROR_INITIALIZATION_FAILED`).
    #[error("{0}")]
    Options(String),
    /// A descriptor pool is used up (`VK_ERROR_OUT_OF_POOL_MEMORY`).
    #[error("the descriptor pool is used up: {0}")]
    OutOfPoolMemory(String),
    /// The device is gone, and why (`VK_ERROR_DEVICE_LOST`). It stays so; other devices go on.
    #[error("device lost: {0}")]
    DeviceLost(String),
    /// A shader was refused.
    #[error("shader: {0}")]
    Shader(#[from] front::Error),
}

/// The private memory that a workgroup of a kernel needs, and the most that it may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchPrivate {
    /// Bytes of an invocation.
    pub bytes: u64,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Bytes of a workgroup, at most.
    pub most: u64,
}

impl fmt::Display for TooMuchPrivate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, invocations, most } = *self;
        let all = bytes.saturating_mul(invocations.into());
        let each = format!("{bytes} bytes for each of the {invocations} invocations of a workgroup");
        write!(f, "private memory, {each}: {all} bytes above the limit {most}")
    }
}

/// A rule of Vulkan that the caller broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The call or the field that is wrong, in Vulkan's words: `vkCmdDispatch`, `pBindInfos[0]`.
    pub at: String,
    /// What is wrong, with the numbers.
    pub problem: String,
    /// Valid-usage id of the rule in the Vulkan specification.
    pub vuid: &'static str,
}

impl Misuse {
    /// A broken rule at a place.
    pub fn new(at: impl Into<String>, problem: impl Into<String>, vuid: &'static str) -> Self {
        Self { at: at.into(), problem: problem.into(), vuid }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.at, self.problem, self.vuid)
    }
}

impl std::error::Error for Misuse {}

/// What can go wrong below the calls, where there is no caller to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Memory could not be had.
    #[error("out of memory")]
    OutOfMemory,
    /// The device is gone, and why.
    #[error("device lost: {0}")]
    DeviceLost(String),
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory => Self::OutOfMemory,
            DeviceError::DeviceLost(why) => Self::DeviceLost(why),
        }
    }
}

/// Holds, or the rule is broken. The problem is put into words only then.
pub(crate) fn require(
    holds: bool,
    at: &str,
    vuid: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), Misuse> {
    if holds { Ok(()) } else { Err(Misuse::new(at, problem(), vuid)) }
}
