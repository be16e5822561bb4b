//! Errors of the driver in the terms of `wgpu-hal`, which has names for few of them: the text goes to the log,
//! or to standard error where a program has none.

use std::fmt::Display;
use std::io::Write as _;

use log::{Level, LevelFilter};
use spelter_driver::Error;
use wgpu_hal::DeviceError;

/// Says what wgpu has no place for. Tests seldom have a logger, and would see "device is lost" without a reason.
pub(crate) fn report(level: Level, text: impl Display) {
    if log::max_level() == LevelFilter::Off {
        // A closed standard error is ignored.
        let _ = writeln!(std::io::stderr(), "spelter: {text}");
    } else {
        log::log!(level, "spelter: {text}");
    }
}

/// The error that wgpu sees. The log gets what it cannot hold: the reason of a loss, or the rule that a call broke.
pub(crate) fn device_error(error: Error) -> DeviceError {
    match error {
        Error::OutOfMemory | Error::OutOfHostMemory(_) | Error::TooMuchPrivate(_) | Error::OutOfPoolMemory(_) => {
            report(Level::Warn, &error);
            DeviceError::OutOfMemory
        }
        Error::DeviceLost(_) => {
            report(Level::Error, &error);
            DeviceError::Lost
        }
        Error::Misuse(_) | Error::Options(_) | Error::Shader(_) => {
            report(Level::Error, &error);
            DeviceError::Unexpected
        }
    }
}

/// The error of a call that a compute device cannot run. wgpu's validation refuses such calls first, since the adapter
/// does not claim their features.
pub(crate) fn computes_only(call: &str) -> DeviceError {
    report(Level::Error, format_args!("{call}: Spelter computes only"));
    DeviceError::Unexpected
}
