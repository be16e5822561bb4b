//! The failure of a command: one message, and the exit status of its cause.

use std::fmt;
use std::io;
use std::path::Path;

/// The exit status for wrong usage of the command line or the environment.
pub(crate) const USAGE: u8 = 2;

/// The message after `error: `, with its cause.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    cause: Cause,
}

/// Causes with exit statuses of their own, so that scripts tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The options cannot be meant together.
    Usage,
    /// The shader was rejected: it cannot be read, or has something that is not supported.
    Shader,
    /// The launch breaks a rule: options exceed a limit, or do not fit the shader.
    Misuse,
    /// The device was lost: a kernel exceeded its time limit.
    DeviceLost,
    /// Anything else: a file, memory, a result that is not the expected one.
    Other,
}

impl Failure {
    /// A failure without a status of its own.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Other }
    }

    /// Options that cannot be meant together.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Usage }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }

    /// A launch that breaks a rule of Vulkan, or an option that exceeds a limit or does not fit the shader.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: Cause::Misuse }
    }

    /// A shader that is rejected.
    pub(crate) fn shader(path: &Path, error: impl fmt::Display) -> Self {
        Self { cause: Cause::Shader, ..Self::file(path, error) }
    }

    /// An order that lost the device, by the message that a file of results keeps.
    pub(crate) fn device_lost(message: String) -> Self {
        Self { message, cause: Cause::DeviceLost }
    }

    pub(crate) fn is_device_lost(&self) -> bool {
        self.cause == Cause::DeviceLost
    }

    /// The failure, with the option or the file that it is about.
    pub(crate) fn of(self, what: impl fmt::Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// One failure for several, each on a line; none if there are none. The exit status is that of the first.
    pub(crate) fn all(failures: &[Self]) -> Result<(), Self> {
        let Some(first) = failures.first() else { return Ok(()) };
        let mut lines: Vec<_> = failures.iter().map(|failure| failure.message.as_str()).collect();
        lines.dedup();
        Err(Self { message: lines.join("\n"), cause: first.cause })
    }

    /// The failure, with the order in which it occurred.
    pub(crate) fn with_order(self, order: impl fmt::Display) -> Self {
        Self { message: format!("{}; with {order}", self.message), ..self }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        match self.cause {
            Cause::Other => 1,
            Cause::Usage => USAGE,
            Cause::Shader => 4,
            Cause::Misuse => 5,
            Cause::DeviceLost => 6,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A broken rule of Vulkan is reported without the name of the call, since users of the program make no calls.
impl From<spelter::Error> for Failure {
    fn from(error: spelter::Error) -> Self {
        use spelter::Error;
        let cause = match &error {
            Error::Shader(_) => Cause::Shader,
            Error::DeviceLost(_) => Cause::DeviceLost,
            Error::Options(_) | Error::OutOfMemory(_) => Cause::Other,
            _ => Cause::Misuse,
        };
        let message = match error {
            Error::Misuse(misuse) => format!("{} ({})", misuse.problem, misuse.vuid),
            error => error.to_string(),
        };
        Self { message, cause }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(format!("output: {error}"))
    }
}
