//! A program: what each thread may do, before it is known which way it branches.
//!
//! A Khronos test is a list of operations per thread; a Dat3M test adds registers, arithmetic and branches. Both are
//! [`Program`]s. [`unroll`] turns a program into its [`Instance`]s: one path through each thread.

mod combine;
mod cut;
mod expression;
mod path;

pub(crate) use combine::combinations;
pub use combine::{Instance, unroll};
pub(crate) use cut::{cuts, feeds_itself};
pub use expression::{Binary, Comparison, Expression, Operand, Register, Value};
pub use path::Constraint;

use std::fmt;

use crate::event::{Agent, Operation};

/// A place in a text: line and column, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The code of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name in reports.
    pub name: String,
    /// Who executes it.
    pub agent: Agent,
    /// What it executes.
    pub code: Vec<Instruction>,
    /// Registers that hold something else than 0 at the start.
    pub registers: Vec<(Register, i64)>,
}

impl Thread {
    /// Whether it may take more than one way.
    pub fn branches(&self) -> bool {
        self.code.iter().any(|instruction| matches!(instruction.kind, InstructionKind::Branch { .. }))
    }
}

/// An instruction and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where its text begins.
    pub place: Place,
    /// What it does.
    pub kind: InstructionKind,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// An operation of the memory model.
    Execute {
        /// The operation.
        operation: Operation,
        /// Where what it reads goes.
        destination: Option<Register>,
        /// What it writes; for read-modify-writes an expression of [`Operand::Read`].
        value: Option<Expression>,
        /// For control barriers, which one.
        barrier: Option<Barrier>,
    },
    /// `destination = value`.
    Compute {
        /// Where the value goes.
        destination: Register,
        /// The value.
        value: Expression,
    },
    /// Goes to the instruction `target` if the comparison holds, or always.
    Branch {
        /// When.
        condition: Option<(Comparison, Operand, Operand)>,
        /// An index into the thread's code, or its length for the end.
        target: usize,
    },
}

/// Which control barrier an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// A dynamic instance, with its number.
    Dynamic(u32),
    /// A barrier of the code: the n-th time that each invocation of a workgroup meets it is one instance.
    Static {
        /// Its number.
        id: u32,
        /// How many arrivals open it; all if `None`.
        quorum: Option<u32>,
    },
}

/// A stated source of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The read: thread and index into its code.
    pub read: (usize, usize),
    /// What it reads.
    pub source: PinnedSource,
}

/// What a pinned read reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinnedSource {
    /// The initial value.
    Initial,
    /// A write: thread and index into its code.
    Write((usize, usize)),
}

/// Threads over shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Names of references; an access holds an index.
    pub references: Vec<String>,
    /// Locations with their names and initial values; the object of a location is an index.
    pub locations: Vec<(String, i64)>,
    /// Pairs of threads where every operation of the first system-synchronizes-with every one of the second.
    pub system: Vec<(usize, usize)>,
    /// Reads whose source the text states.
    pub pins: Vec<Pin>,
    /// Numbers of the text's questions: what a value out of thin air may be.
    pub numbers: Vec<i64>,
}

impl Program {
    /// The operations with their threads and indices.
    pub fn operations(&self) -> impl Iterator<Item = ((usize, usize), &Operation)> {
        self.threads.iter().enumerate().flat_map(|(thread, code)| {
            code.code.iter().enumerate().filter_map(move |(at, instruction)| match &instruction.kind {
                InstructionKind::Execute { operation, .. } => Some(((thread, at), operation)),
                _ => None,
            })
        })
    }

    /// The operation at `at`, if an instruction there executes one.
    pub fn operation_mut(&mut self, at: (usize, usize)) -> Option<&mut Operation> {
        match &mut self.threads.get_mut(at.0)?.code.get_mut(at.1)?.kind {
            InstructionKind::Execute { operation, .. } => Some(operation),
            _ => None,
        }
    }

    /// Whether no thread branches.
    pub fn is_straight(&self) -> bool {
        !self.threads.iter().any(Thread::branches)
    }
}

/// A bound that a program exceeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program is too large: {what}, and the bound is {bound}")]
pub struct TooLarge {
    /// What there is too much of, with the number.
    pub what: String,
    /// The bound.
    pub bound: u64,
    /// What the bound is on.
    pub on: Bound,
}

impl TooLarge {
    pub(crate) fn new(what: impl Into<String>, bound: u64) -> Self {
        Self { what: what.into(), bound, on: Bound::Fixed }
    }

    pub(crate) fn steps(what: impl Into<String>, bound: u64) -> Self {
        Self { on: Bound::Steps, ..Self::new(what, bound) }
    }

    pub(crate) fn unroll(what: impl Into<String>, bound: u64) -> Self {
        Self { on: Bound::Unroll, ..Self::new(what, bound) }
    }
}

/// Whether a bound can be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// By the caller: steps of a search.
    Steps,
    /// By the caller: how often an instruction runs on one path.
    Unroll,
    /// It cannot.
    Fixed,
}
