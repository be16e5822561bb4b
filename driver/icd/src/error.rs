//! Errors of calls, with their Vulkan result codes.

use std::borrow::Cow;
use std::fmt;

use ash::vk;
use spelter_driver as driver;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    /// An error of the device.
    Driver(driver::Error),
    /// Broken valid usage that the ICD checks: place, problem, valid-usage ID.
    Misuse(String, String, Cow<'static, str>),
    /// A Vulkan result code with details.
    Code(vk::Result, String),
    /// A result code that is no fault: no message is sent.
    Quiet(vk::Result),
    /// A bug of the driver.
    Internal(String),
}

impl Error {
    pub(crate) fn misuse(
        at: impl Into<String>,
        problem: impl Into<String>,
        vuid: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Misuse(at.into(), problem.into(), vuid.into())
    }

    /// The error of a graphics command.
    pub(crate) fn graphics(command: &str) -> Self {
        let problem = "this device only computes, even if its queue claims graphics (SPELTER_ADVERTISE_GRAPHICS)";
        let command = command.trim_start_matches("PFN_");
        Self::Code(vk::Result::ERROR_FEATURE_NOT_PRESENT, format!("{command}: {problem}"))
    }

    pub(crate) fn code(&self) -> vk::Result {
        match self {
            Self::Driver(driver::Error::Misuse(_)) | Self::Misuse(..) => vk::Result::ERROR_VALIDATION_FAILED_EXT,
            Self::Driver(driver::Error::OutOfMemory | driver::Error::TooMuchPrivate(_)) => {
                vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
            }
            Self::Driver(driver::Error::Options(_)) => vk::Result::ERROR_INITIALIZATION_FAILED,
            Self::Driver(driver::Error::OutOfHostMemory(_)) => vk::Result::ERROR_OUT_OF_HOST_MEMORY,
            Self::Driver(driver::Error::OutOfPoolMemory(_)) => vk::Result::ERROR_OUT_OF_POOL_MEMORY,
            Self::Driver(driver::Error::DeviceLost(_)) => vk::Result::ERROR_DEVICE_LOST,
            Self::Driver(driver::Error::Shader(_)) => vk::Result::ERROR_INVALID_SHADER_NV,
            Self::Code(code, _) | Self::Quiet(code) => *code,
            Self::Internal(_) => vk::Result::ERROR_UNKNOWN,
        }
    }

    /// The valid-usage ID that was broken, if any.
    pub(crate) fn vuid(&self) -> Option<&str> {
        match self {
            Self::Driver(driver::Error::Misuse(misuse)) => Some(misuse.vuid),
            Self::Misuse(_, _, vuid) => Some(vuid),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver(error) => error.fmt(f),
            Self::Misuse(at, problem, vuid) => write!(f, "{at}: {problem} ({vuid})"),
            Self::Code(code, details) => write!(f, "{details} ({code:?})"),
            Self::Quiet(code) => write!(f, "{code:?}"),
            Self::Internal(what) => write!(f, "a fault of the driver: {what}"),
        }
    }
}

impl<E: Into<driver::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Driver(error.into())
    }
}

/// Checks valid usage: an error with the ID unless it holds.
pub(crate) fn require(
    holds: bool,
    at: &str,
    vuid: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::misuse(at, problem(), vuid)) }
}
