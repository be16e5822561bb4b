//! Errors of the driver in the terms of `wgpu-hal`, which has names for few of them: the text goes to the log.

use spelter_driver::Error;
use wgpu_hal::DeviceError;

/// The error that wgpu sees. The log gets what it cannot hold: the reason of a loss, or the rule that a call broke.
pub(crate) fn device_error(error: Error) -> DeviceError {
    match error {
        Error::OutOfMemory | Error::OutOfHostMemory(_) | Error::TooMuchPrivate(_) | Error::OutOfPoolMemory(_) => {
            log::warn!("spelter: {error}");
            DeviceError::OutOfMemory
        }
        Error::DeviceLost(_) => {
            log::error!("spelter: {error}");
            DeviceError::Lost
        }
        Error::Misuse(_) | Error::Options(_) | Error::Shader(_) => {
            log::error!("spelter: {error}");
            DeviceError::Unexpected
        }
    }
}

/// The error of a call that a compute device cannot run. wgpu's validation refuses such calls first, since the adapter
/// does not claim their features.
pub(crate) fn computes_only(call: &str) -> DeviceError {
    log::error!("spelter: {call}: Spelter computes only");
    DeviceError::Unexpected
}
