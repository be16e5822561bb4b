//! Values of registers: expressions over the values of reads.
//!
//! Arithmetic wraps at 64 bits. A division by zero is undefined in SPIR-V; it gives 0 here.

use std::sync::Arc;

/// A register of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub Arc<str>);

/// A register, a number, or the value that the instruction itself reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A number.
    Constant(i64),
    /// The value of a register.
    Register(Register),
    /// In the value of a read-modify-write: the value that it reads.
    Read,
}

/// A binary operation on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Signed quotient.
    Div,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
}

impl Binary {
    /// The result.
    pub fn apply(self, a: i64, b: i64) -> i64 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Sub => a.wrapping_sub(b),
            Self::Mul => a.wrapping_mul(b),
            Self::Div => a.checked_div(b).unwrap_or(0),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Less, signed.
    Less,
    /// Greater, signed.
    Greater,
    /// Less or equal, signed.
    LessEqual,
    /// Greater or equal, signed.
    GreaterEqual,
}

impl Comparison {
    /// Whether it holds.
    pub fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Equal => a == b,
            Self::NotEqual => a != b,
            Self::Less => a < b,
            Self::Greater => a > b,
            Self::LessEqual => a <= b,
            Self::GreaterEqual => a >= b,
        }
    }
}

/// An operand, or a binary operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// One operand.
    Operand(Operand),
    /// A binary operation.
    Binary(Binary, Operand, Operand),
}

/// A value of a path: a number, the value that an event reads, or a binary operation on values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Constant(i64),
    /// The value that the event reads.
    Read(usize),
    /// A binary operation on values, with its size ([`Value::size`]).
    Binary(Binary, Arc<Value>, Arc<Value>, u32),
}

impl Value {
    /// Number of values in it, counting each occurrence.
    pub fn size(&self) -> u32 {
        if let Self::Binary(.., size) = self { *size } else { 1 }
    }

    /// The value with `by` added to the number of each event.
    pub(crate) fn shifted(&self, by: usize) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(*value),
            Self::Read(event) => Self::Read(event + by),
            Self::Binary(binary, a, b, size) => {
                Self::Binary(*binary, Arc::new(a.shifted(by)), Arc::new(b.shifted(by)), *size)
            }
        }
    }

    /// The number, if `read` knows the reads that the value depends on.
    pub fn evaluate(&self, read: &mut impl FnMut(usize) -> Option<i64>) -> Option<i64> {
        match self {
            Self::Constant(value) => Some(*value),
            Self::Read(event) => read(*event),
            Self::Binary(binary, a, b, _) => Some(binary.apply(a.evaluate(read)?, b.evaluate(read)?)),
        }
    }

    /// Calls `visit` with each event that the value depends on.
    pub fn reads(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Read(event) => visit(*event),
            Self::Binary(_, a, b, _) => {
                a.reads(visit);
                b.reads(visit);
            }
        }
    }

    /// A binary operation on values, folded if both are numbers.
    pub fn binary(binary: Binary, a: Self, b: Self) -> Self {
        match (&a, &b) {
            (Self::Constant(x), Self::Constant(y)) => Self::Constant(binary.apply(*x, *y)),
            _ => {
                let size = a.size().saturating_add(b.size()).saturating_add(1);
                Self::Binary(binary, Arc::new(a), Arc::new(b), size)
            }
        }
    }
}
