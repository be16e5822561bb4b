//! AmberScript, the format of scripted shader tests: text in, a checked script out.
//!
//! The format is that of `docs/amber_script.md` of google/amber, for compute pipelines. A script that needs graphics,
//! ray tracing or an unsupported compiler ends with [`Stop::Skip`]; a mistake ends with [`Stop::Fail`], its line and
//! column. Where that document and its implementation differ, the file here says which one it follows and why.

pub(crate) mod layout;
pub(crate) mod number;
mod parse;
pub(crate) mod script;
pub(crate) mod texel;
mod text;
pub(crate) mod types;

pub(crate) use parse::parse;

/// Why a script ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The script is wrong, or its test fails.
    Fail(String),
    /// The script needs something that is missing, so its test has no result.
    Skip(String),
}
