//! Conditions on the final state: `exists (P0:r0 == 1 /\ x != 2)`.

use crate::program::{Comparison, Register};

/// The quantifier of a condition over executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some execution meets it.
    Exists,
    /// All executions meet it.
    Forall,
    /// No execution meets it.
    NotExists,
}

/// An operand of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Term {
    /// A number.
    Constant(i64),
    /// The final value of a register of a thread.
    Register(usize, Register),
    /// The final value of an object.
    Location(u32),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Always true.
    True,
    /// A comparison.
    Compare(Comparison, Term, Term),
    /// Negation.
    Not(Box<Condition>),
    /// Conjunction.
    And(Box<Condition>, Box<Condition>),
    /// Disjunction.
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    /// Whether it holds, if `value` returns enough values to decide.
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
