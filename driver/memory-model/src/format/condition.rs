//! Conditions on the final state: `exists (P0:r0 == 1 /\ x != 2)`.

use crate::program::{Comparison, Register};

/// How many executions must meet a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some.
    Exists,
    /// All.
    Forall,
    /// None.
    NotExists,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number.
    Constant(i64),
    /// A register of a thread, at its end.
    Register(usize, Register),
    /// A location, at the end of the program; an object.
    Location(u32),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always true.
    True,
    /// A comparison.
    Compare(Comparison, Term, Term),
    /// The opposite.
    Not(Box<Condition>),
    /// Both.
    And(Box<Condition>, Box<Condition>),
    /// One of them at least.
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    /// Whether it holds, if `value` knows enough.
    pub fn holds(&self, value: &mut dyn FnMut(&Term) -> Option<i64>) -> Option<bool> {
        match self {
            Self::True => Some(true),
            Self::Compare(comparison, a, b) => Some(comparison.holds(value(a)?, value(b)?)),
            Self::Not(inner) => inner.holds(value).map(|holds| !holds),
            Self::And(a, b) => match (a.holds(value), b.holds(value)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Self::Or(a, b) => match (a.holds(value), b.holds(value)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
        }
    }

    /// Calls `visit` with each term.
    pub fn terms(&self, visit: &mut dyn FnMut(&Term)) {
        match self {
            Self::True => {}
            Self::Compare(_, a, b) => {
                visit(a);
                visit(b);
            }
            Self::Not(inner) => inner.terms(visit),
            Self::And(a, b) | Self::Or(a, b) => {
                a.terms(visit);
                b.terms(visit);
            }
        }
    }
}
