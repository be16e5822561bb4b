//! Text formats of litmus tests: Khronos `.test`, Dat3M `.litmus`.
//!
//! A text becomes a [`Test`]: a program and questions about it. Any text gives a test or an [`Error`] with line and
//! column.

mod condition;
mod dartagnan;
mod instruction;
mod khronos;
mod lex;
mod replay;
mod tokens;
mod writable;
mod write;
mod write_dartagnan;

pub use condition::{Condition, Quantifier, Term};
pub use replay::write_slice;
pub use writable::Unwritable;
pub use write::write_khronos;
pub use write_dartagnan::write_dartagnan;

use crate::event::Agent;
use crate::program::{Place, Program};

/// An error in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Error {
    /// The place of the error.
    pub place: Place,
    /// The problem.
    pub message: String,
}

impl Error {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `.test`, of the Khronos Vulkan memory model.
    Khronos,
    /// `.litmus`, of Dat3M.
    Dartagnan,
}

impl Format {
    /// The format of a file with this extension.
    pub fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "test" => Some(Self::Khronos),
            "litmus" => Some(Self::Dartagnan),
            _ => None,
        }
    }

    /// Reads a test.
    ///
    /// # Errors
    ///
    /// If the text is not a test of this format: the place and the problem.
    pub fn read(self, name: &str, text: &str) -> Result<Test, Error> {
        const MAX_TEXT_BYTES: usize = 1 << 20;
        if text.len() > MAX_TEXT_BYTES {
            let place = Place { line: 1, column: 1 };
            return Err(Error::new(
                place,
                format!("the text has {} bytes, and the bound is {MAX_TEXT_BYTES}", text.len()),
            ));
        }
        match self {
            Self::Khronos => khronos::read(name, text),
            Self::Dartagnan => dartagnan::read(name, text),
        }
    }
}

/// A program and questions about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The program.
    pub program: Program,
    /// The questions, in the text's order.
    pub questions: Vec<Question>,
    /// Warnings with places, for example for an operation that breaks a rule, so that the program has no executions.
    pub warnings: Vec<Error>,
}

/// A question about a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Its place.
    pub place: Place,
    /// Its text.
    pub text: String,
    /// Its kind.
    pub kind: QuestionKind,
}

/// The kinds of questions.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionKind {
    /// Is there an execution for which every atom holds?
    Satisfiable {
        /// The expected answer.
        expected: bool,
        /// Whether chains have one element.
        no_chains: bool,
        /// The atoms that must hold.
        atoms: Vec<Atom>,
    },
    /// Does the condition on the final state hold, among executions that pass the filter?
    Final {
        /// The quantifier.
        quantifier: Quantifier,
        /// The condition for executions to count.
        filter: Option<Condition>,
        /// The condition; [`Condition::True`] if there is only a filter, which then asks whether any execution passes.
        condition: Condition,
    },
}

/// An atom of a Khronos question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atom {
    /// The execution is consistent.
    Consistent,
    /// Comparison of the number of racing pairs, each counted in both directions.
    Races(crate::program::Comparison, i64),
    /// Comparison of the number of pairs in release sequences.
    ReleaseSequences(crate::program::Comparison, i64),
}

/// The agent with these group numbers in a litmus test, which has one device.
fn invocation(subgroup: u32, workgroup: u32, queue_family: u32) -> Agent {
    Agent::Device { subgroup, workgroup, queue_family, device: 0 }
}
