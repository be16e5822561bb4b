//! Errors: either the caller broke a Vulkan rule, which the error names, or the system refused.

use std::fmt;

use spelter_shaders::front;

use crate::host_memory::OutOfHostMemory;

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller broke a rule of Vulkan. Nothing has changed: a corrected call may follow.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// Device memory could not be allocated (`VK_ERROR_OUT_OF_DEVICE_MEMORY`).
    #[error("out of memory")]
    OutOfMemory,
    /// Host memory could not be allocated (`VK_ERROR_OUT_OF_HOST_MEMORY`).
    #[error(transparent)]
    OutOfHostMemory(#[from] OutOfHostMemory),
    /// The private memory of a workgroup's invocations exceeds the limit (`VK_ERROR_OUT_OF_DEVICE_MEMORY`).
    #[error("out of memory: {0}")]
    TooMuchPrivate(TooMuchPrivate),
    /// The options are invalid (`VK_ERROR_INITIALIZATION_FAILED`).
    #[error("{0}")]
    Options(String),
    /// A descriptor pool is exhausted (`VK_ERROR_OUT_OF_POOL_MEMORY`).
    #[error("the descriptor pool is used up: {0}")]
    OutOfPoolMemory(String),
    /// The device is lost, with the reason (`VK_ERROR_DEVICE_LOST`). This is final; other devices are unaffected.
    #[error("device lost: {0}")]
    DeviceLost(String),
    /// A shader was rejected.
    #[error("shader: {0}")]
    Shader(#[from] front::Error),
}

/// The private memory that a workgroup of a kernel needs, and the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuchPrivate {
    /// Bytes per invocation.
    pub bytes: u64,
    /// Invocations per workgroup.
    pub invocations: u32,
    /// Maximum number of bytes per workgroup.
    pub limit: u64,
}

impl fmt::Display for TooMuchPrivate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, invocations, limit } = *self;
        let all = bytes.saturating_mul(invocations.into());
        let each = format!("{bytes} bytes for each of the {invocations} invocations of a workgroup");
        write!(f, "private memory, {each}: {all} bytes above the limit {limit}")
    }
}

/// A broken rule of Vulkan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The wrong call or field, in Vulkan's terms: `vkCmdDispatch`, `pBindInfos[0]`.
    pub at: String,
    /// The problem, with the numbers.
    pub problem: String,
    /// Valid usage ID (VUID) of the rule in the Vulkan specification.
    pub vuid: &'static str,
}

impl Misuse {
    /// A rule broken at this call or field.
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

/// Errors of internal layers, which no caller causes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Memory could not be allocated.
    #[error("out of memory")]
    OutOfMemory,
    /// The device is lost, with the reason.
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

/// `Ok` if the rule `holds`, else a misuse. `at` is only formatted and `problem` only evaluated then.
#[inline]
pub(crate) fn require(
    holds: bool,
    at: impl fmt::Display,
    vuid: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), Misuse> {
    if holds { Ok(()) } else { Err(broken(at, vuid, problem)) }
}

#[cold]
fn broken(at: impl fmt::Display, vuid: &'static str, problem: impl FnOnce() -> String) -> Misuse {
    Misuse::new(at.to_string(), problem(), vuid)
}
