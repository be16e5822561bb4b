//! Programs: the code of each thread, with branches.
//!
//! A Khronos test is a list of operations per thread; a Dat3M test adds registers, arithmetic and branches. Both are
//! [`Program`]s. [`unroll`] turns a program into its [`Instance`]s: one path through each thread.

mod combine;
mod cut;
mod expression;
mod path;

pub(crate) use combine::combinations;
pub use combine::{Instance, unroll};
pub(crate) use cut::{cuts, may_depend_on_its_own_continuation};
pub use expression::{Binary, Comparison, Expression, Operand, Register, Value};
pub use path::Constraint;

use std::fmt;

use crate::event::{Agent, Operation, Site};

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
    /// The agent that executes it.
    pub agent: Agent,
    /// Its instructions.
    pub code: Vec<Instruction>,
    /// Registers that do not initially hold 0.
    pub registers: Vec<(Register, i64)>,
}

impl Thread {
    /// Whether it has branches.
    pub fn branches(&self) -> bool {
        self.code.iter().any(|instruction| matches!(instruction.kind, InstructionKind::Branch { .. }))
    }
}

/// An instruction and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Begin of its text.
    pub place: Place,
    /// Its kind.
    pub kind: InstructionKind,
}

/// What a conditional branch tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCondition {
    /// The comparison that must hold for the branch to be taken.
    pub comparison: Comparison,
    /// Its first operand.
    pub left: Operand,
    /// Its second operand.
    pub right: Operand,
}

/// The kinds of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// An operation of the memory model.
    Execute {
        /// The operation.
        operation: Operation,
        /// The register that receives the value that it reads.
        destination: Option<Register>,
        /// The value that it writes; for read-modify-writes an expression with [`Operand::Read`].
        value: Option<Expression>,
        /// The barrier, for control barriers.
        barrier: Option<Barrier>,
    },
    /// `destination = value`.
    Compute {
        /// The register that receives the value.
        destination: Register,
        /// The value.
        value: Expression,
    },
    /// Branches to `target` if the comparison holds, or always.
    Branch {
        /// The comparison; `None` for an unconditional branch.
        condition: Option<BranchCondition>,
        /// An index into the thread's code, or its length for the end.
        target: usize,
    },
}

/// Identifies a control barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// A dynamic instance, with its number.
    Dynamic(u32),
    /// A barrier of the code: the n-th arrivals of all invocations of a workgroup are one instance.
    Static {
        /// Its number.
        id: u32,
        /// Number of arrivals that open it; all if `None`.
        quorum: Option<u32>,
    },
}

impl Barrier {
    /// Whether both identify one barrier. The quorum of a static barrier does not matter.
    pub fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::Static { id, .. }, Self::Static { id: other, .. }) => id == other,
            _ => self == other,
        }
    }
}

/// A stated source of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The read: thread and index into its code.
    pub read: (usize, usize),
    /// Its source.
    pub source: PinnedSource,
}

/// The stated source of a read.
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
    /// Numbers of the text's questions: candidates for values out of thin air.
    pub numbers: Vec<i64>,
    /// If all threads execute one code, as those of a shader do: by thread, the number of each instruction in it. Empty
    /// if each thread has code of its own.
    pub sources: Vec<Vec<u32>>,
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

    /// The site of each instruction of each thread. The control barriers at which threads meet are one site, since
    /// they must stay alike; and so are the executions of an instruction of code that threads share.
    pub fn sites(&self) -> Vec<Vec<Site>> {
        if self.shares_code() {
            return self.sources.iter().map(|thread| thread.iter().map(|&number| Site(number)).collect()).collect();
        }
        let mut barriers: Vec<(Barrier, Site)> = Vec::new();
        let mut next = 0;
        let mut site = |instruction: &Instruction| {
            let own = Site(next);
            next += 1;
            let InstructionKind::Execute { barrier: Some(barrier), .. } = instruction.kind else { return own };
            let known = barriers.iter().find(|(other, _)| barrier.meets(*other));
            let site = known.map_or(own, |known| known.1);
            barriers.push((barrier, site));
            site
        };
        self.threads.iter().map(|thread| thread.code.iter().map(&mut site).collect()).collect()
    }

    /// Whether all threads execute one code.
    pub fn shares_code(&self) -> bool {
        !self.sources.is_empty()
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
    /// What exceeds the bound, with its number.
    pub what: String,
    /// The bound.
    pub bound: u64,
    /// Whether the bound can be raised.
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
    /// By the caller: the bound on the steps of a search.
    Steps,
    /// By the caller: the bound on executions of an instruction on one path.
    Unroll,
    /// It is fixed.
    Fixed,
}
