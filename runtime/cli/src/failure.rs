//! Why the program ends with status 1: one message.

use std::fmt;
use std::io;
use std::path::Path;

/// What is printed after `error: `.
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

/// A rule of Vulkan's is told without the call that broke it: who uses the program made none.
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
