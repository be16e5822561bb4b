//! The texts of litmus tests: Khronos `.test`, Dat3M `.litmus`.
//!
//! A text becomes a [`Test`]: a program, and what is asked of it. Whatever a text holds, reading ends with a test or an
//! [`Error`] with line and column.

mod condition;
mod dartagnan;
mod instruction;
mod khronos;
mod lex;
mod tokens;
mod write;

pub use condition::{Condition, Quantifier, Term};
pub use write::{Unwritable, write_khronos};

use crate::event::Agent;
use crate::program::{Place, Program};

/// Why a text is not a test.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Error {
    /// Where.
    pub place: Place,
    /// What is wrong.
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
    /// The format of a file with this ending.
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
    /// Where and why the text is none.
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

/// A program and what is asked of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The program.
    pub program: Program,
    /// The questions, in the text's order.
    pub questions: Vec<Question>,
    /// What is odd about the text, with places: an operation that breaks a rule leaves a program without executions.
    pub warnings: Vec<Error>,
}

/// A question about a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Where it stands.
    pub place: Place,
    /// Its text.
    pub text: String,
    /// What is asked.
    pub kind: QuestionKind,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionKind {
    /// Is there an execution for which every atom holds?
    Satisfiable {
        /// What the text expects.
        expected: bool,
        /// Whether chains have one element.
        no_chains: bool,
        /// What must hold.
        atoms: Vec<Atom>,
    },
    /// Does the condition on the final state hold, among executions that pass the filter?
    Final {
        /// For some execution, for all, for none.
        quantifier: Quantifier,
        /// Which executions count.
        filter: Option<Condition>,
        /// The condition; none if there is only a filter, which then asks whether something passes.
        condition: Condition,
    },
}

/// An atom of a Khronos question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atom {
    /// The execution is consistent.
    Consistent,
    /// The number of racing pairs, each counted in both directions.
    Races(crate::program::Comparison, i64),
    /// The number of pairs in release sequences.
    ReleaseSequences(crate::program::Comparison, i64),
}

/// The agent at these numbers of a litmus test: one device.
fn invocation(subgroup: u32, workgroup: u32, queue_family: u32) -> Agent {
    Agent::Device { subgroup, workgroup, queue_family, device: 0 }
}
