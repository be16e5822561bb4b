//! Explains a race: the conditions of location order, each with what meets it or what is missing.
//!
//! The conditions are those of "Location-Ordered" in the appendix, in its order; the first that fails is the cause.

mod conditions;
mod reason;

pub use reason::{MissingRequirement, Outside, Reason, Step};

use crate::answer::Execution;
use crate::describe;
use crate::event::Trace;
use crate::model::Model;
use crate::names::Names;
use crate::program::Program;
use crate::relations::Choice;
use crate::slice::{Slice, TraceError};

/// A condition that two accesses of a location must meet not to race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocationOrderCondition {
    /// Two atomics: "Potentially-Mutually-Ordered". It alone prevents the race; the others do so together.
    MutuallyOrdered,
    /// "Happens-Before".
    Ordered,
    /// Through the domains of device and host: "Availability and Visibility", operations of the API.
    ByTheApi,
    /// "Non-Private": no barrier of a shader orders private accesses.
    NonPrivate,
    /// "Reference": no barrier of a shader orders accesses through different references.
    SameReference,
    /// "Availability and Visibility": the first write is available to a domain that both agents share.
    Available,
    /// "Availability and Visibility": that domain's values are visible to the second access, a read.
    Visible,
}

impl LocationOrderCondition {
    /// The condition as a phrase that may hold of the accesses: "ordered", "same reference".
    pub fn question(self) -> &'static str {
        match self {
            Self::MutuallyOrdered => "mutually ordered",
            Self::Ordered => "ordered",
            Self::ByTheApi => "by the API",
            Self::NonPrivate => "non-private",
            Self::SameReference => "same reference",
            Self::Available => "available",
            Self::Visible => "visible",
        }
    }
}

/// A condition, whether two accesses meet it, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conjunct {
    /// The condition.
    pub condition: LocationOrderCondition,
    /// The condition as a phrase: [`LocationOrderCondition::question`].
    pub question: &'static str,
    /// Whether it is met.
    pub holds: bool,
    /// What meets it, or what is missing.
    pub reason: Reason,
    /// The reason, as text.
    pub because: String,
}

/// A race and its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The events: the access that would have to come first, and the other.
    pub pair: (usize, usize),
    /// The access that would have to come first.
    pub first: String,
    /// The other access.
    pub second: String,
    /// Conditions that would prevent the race, in the order of the appendix. The first that does not hold is the cause.
    pub conjuncts: Vec<Conjunct>,
}

impl Explanation {
    /// The cause: the first condition that does not hold.
    pub fn cause(&self) -> Option<&Conjunct> {
        self.conjuncts.iter().find(|conjunct| !conjunct.holds)
    }
}

/// Explains the `race`-th race of an execution.
pub fn explain(program: &Program, execution: &Execution, model: Model, race: usize) -> Option<Explanation> {
    let &pair = execution.races.get(race)?;
    let (frame, choice, order) = execution.relations(model);
    let slice = Slice { trace: &execution.instance.trace, frame, choice, order };
    Some(of_slice(&slice, pair, &Instructions { program, execution }))
}

/// Explains why two accesses of a recorded run race: the first of [`Explanation::conjuncts`] that does not hold is the
/// cause. If they do not race, the conditions say what orders them, and there is no cause.
///
/// # Errors
///
/// If the trace has more than 128 events or is ill-formed, if `choice` does not fit, or if the pair does not conflict.
pub fn of_trace(
    trace: &Trace,
    choice: &Choice<u128>,
    pair: (usize, usize),
    model: Model,
    names: &dyn Names,
) -> Result<Explanation, TraceError> {
    let slice = Slice::new(trace, choice, model)?;
    let pair = slice.pair(pair)?;
    Ok(of_slice(&slice, pair, names))
}

/// As [`of_trace`], for a pair of a slice that conflicts.
pub(crate) fn of_slice(slice: &Slice<'_>, pair: (usize, usize), names: &dyn Names) -> Explanation {
    let (first, second) = slice.sorted(pair);
    let conjuncts = slice.conditions(first, second).into_iter().map(|(condition, holds, reason)| {
        let because = reason.text((first, second), slice.trace, names);
        Conjunct { condition, question: condition.question(), holds, reason, because }
    });
    let access = |event: usize| {
        let text = names.event(event);
        let Some(access) = slice.trace.operation(event).access() else { return text };
        let privacy = match (access.atomic, access.non_private) {
            (true, _) => "atomic",
            (false, true) => "non-private",
            (false, false) => "private",
        };
        format!("{text} ({privacy}, {:?})", access.class)
    };
    Explanation { pair: (first, second), first: access(first), second: access(second), conjuncts: conjuncts.collect() }
}

/// The names of a litmus test's threads and instructions.
struct Instructions<'a> {
    program: &'a Program,
    execution: &'a Execution,
}

impl Names for Instructions<'_> {
    fn place(&self, event: usize) -> String {
        describe::place(self.program, &self.execution.instance, event)
    }

    fn event(&self, event: usize) -> String {
        describe::event(self.program, &self.execution.instance, &self.execution.values, event)
    }

    fn reference(&self, event: usize) -> String {
        let access = self.execution.instance.trace.operation(event).access();
        access.map_or(String::new(), |access| self.program.references[access.reference as usize].clone())
    }
}
