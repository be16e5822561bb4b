//! AmberScript, the format of scripted shader tests: text in, a checked script out.
//!
//! The format is that of `docs/amber_script.md` of google/amber, as far as compute pipelines go. What is for graphics or
//! ray tracing, or for compilers that nobody here calls, ends the reading with [`Stop::Skip`]; what is wrong ends it with
//! [`Stop::Fail`] and its line and column. Where the document and its implementation differ, the file says which is
//! followed and why.

pub(crate) mod layout;
pub(crate) mod number;
mod parse;
pub(crate) mod script;
pub(crate) mod texel;
mod text;
pub(crate) mod types;

pub(crate) use parse::parse;

/// Why a script does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is wrong, or what it tests is.
    Fail(String),
    /// It asks for something that is not here; nothing is said about what it tests.
    Skip(String),
}
