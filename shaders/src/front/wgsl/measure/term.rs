//! What is known of an expression before naga sees it: how large its value is, and how large naga has written it.

use std::rc::Rc;

/// Parts of a matrix, its columns and itself: the most that values have which operators give.
pub(super) const SMALL: u64 = 21;

/// The type of a value, as far as it matters for its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Shape {
    /// A scalar, vector or matrix.
    Small,
    /// One of the module's structures, by its number.
    Struct(usize),
    /// Elements, and how many if that is known.
    Array(Rc<Shape>, Option<u64>),
    /// What the text does not tell.
    #[default]
    Unknown,
}

/// A structure of the module.
#[derive(Debug, Default)]
pub(super) struct Struct<'a> {
    pub(super) members: Vec<(&'a str, Shape)>,
    /// Parts of its values.
    pub(super) parts: u64,
    /// Arrays and structures within each other, itself included.
    pub(super) depth: u32,
}

/// An expression, or a type.
#[derive(Clone, Debug, Default)]
pub(super) struct Term {
    pub(super) shape: Shape,
    /// Literals and compositions that it consists of when all names are written out; a zero value is one.
    pub(super) parts: u64,
    /// It has a value only when the kernel runs, so that nothing of it is evaluated or copied before.
    pub(super) at_run_time: bool,
    /// It names a type.
    pub(super) is_type: bool,
    /// Its numbers have a type of their own, so that naga never converts it; false where that is not known.
    pub(super) is_concrete: bool,
    /// The integer that it is.
    pub(super) number: Option<i128>,
}

impl Term {
    /// A value of few parts.
    pub(super) fn small(parts: u64) -> Self {
        Self { shape: Shape::Small, parts: parts.min(SMALL), ..Self::default() }
    }

    /// A type.
    pub(super) fn of_type(shape: Shape) -> Self {
        Self { shape, is_type: true, ..Self::default() }
    }

    /// What the memory of a running kernel holds.
    pub(super) fn variable(shape: Shape) -> Self {
        Self { shape, parts: 1, at_run_time: true, is_concrete: true, ..Self::default() }
    }

    /// An integer.
    pub(super) fn integer(number: Option<i128>) -> Self {
        Self { number, ..Self::small(1) }
    }

    /// Parts that are copied where the value is used by what is evaluated.
    pub(super) fn copied(&self) -> u64 {
        if self.at_run_time || self.is_type { 0 } else { self.parts }
    }

    /// Parts that are made where the value gets a type, also by what is not evaluated: a copy, and that copy converted.
    pub(super) fn converted(&self) -> u64 {
        if self.is_concrete { 0 } else { self.copied().saturating_mul(2) }
    }
}

impl Shape {
    /// Arrays and structures within each other.
    pub(super) fn depth(&self, structs: &[Struct<'_>]) -> u32 {
        match self {
            Self::Small | Self::Unknown => 0,
            Self::Struct(index) => structs.get(*index).map_or(0, |found| found.depth),
            Self::Array(element, _) => element.depth(structs).saturating_add(1),
        }
    }

    /// Parts of a value with everything written out; the most there are where that is not known.
    pub(super) fn parts(&self, structs: &[Struct<'_>]) -> u64 {
        match self {
            Self::Small => SMALL,
            Self::Struct(index) => structs.get(*index).map_or(1, |found| found.parts),
            Self::Array(element, length) => {
                length.map_or(u64::MAX, |length| element.parts(structs).saturating_mul(length).saturating_add(1))
            }
            Self::Unknown => 1,
        }
    }
}
