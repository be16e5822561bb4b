//! What can go wrong in a call, and the code that Vulkan has for it.

use std::borrow::Cow;
use std::fmt;

use ash::vk;
use spelter_driver as driver;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum Error {
    /// The device says so.
    Driver(driver::Error),
    /// The caller broke a rule that is checked here: at, problem, valid-usage id.
    Misuse(String, String, Cow<'static, str>),
    /// Something that Vulkan has a code for, and the details.
    Code(vk::Result, String),
    /// An answer that is no fault of anybody's: no message.
    Quiet(vk::Result),
    /// A fault of ours.
    Ours(String),
}

impl Error {
    pub(crate) fn misuse(
        at: impl Into<String>,
        problem: impl Into<String>,
        vuid: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Misuse(at.into(), problem.into(), vuid.into())
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
            Self::Ours(_) => vk::Result::ERROR_UNKNOWN,
        }
    }

    /// The rule that was broken, if it was one.
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
            Self::Ours(what) => write!(f, "a fault of the driver: {what}"),
        }
    }
}

impl<E: Into<driver::Error>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::Driver(error.into())
    }
}

/// Whether a rule holds.
pub(crate) fn require(
    holds: bool,
    at: &str,
    vuid: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::misuse(at, problem(), vuid)) }
}
