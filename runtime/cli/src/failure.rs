//! The failure of a command: one message, exit status 1.

use std::fmt;
use std::io;
use std::path::Path;

/// The message after `error: `.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// A file that cannot be read or written.
    pub(crate) fn file(path: &Path, error: impl fmt::Display) -> Self {
        Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A broken rule of Vulkan is reported without the name of the call, since users of the program make no calls.
impl From<spelter::Error> for Failure {
    fn from(error: spelter::Error) -> Self {
        match error {
            spelter::Error::Misuse(misuse) => Self(format!("{} ({})", misuse.problem, misuse.vuid)),
            error => Self(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(format!("output: {error}"))
    }
}
