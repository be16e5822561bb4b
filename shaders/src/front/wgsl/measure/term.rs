//! Size estimate of an expression before naga sees it: the size of its value, and the size of what naga has written for
//! it.

use std::rc::Rc;

/// Parts of a matrix, its columns and itself: the maximum for results of operators.
pub(super) const SMALL: u64 = 21;

/// The type of a value, as far as it affects its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum SizedType {
    /// A scalar, vector or matrix.
    Small,
    /// A structure of the module, by index.
    Struct(usize),
    /// An array, with the number of elements if known.
    Array(Rc<SizedType>, Option<u64>),
    /// Not known from the text.
    #[default]
    Unknown,
}

/// A structure of the module.
#[derive(Debug, Default)]
pub(super) struct Struct<'a> {
    pub(super) members: Vec<(&'a str, SizedType)>,
    /// Number of parts of its values.
    pub(super) parts: u64,
    /// Nesting of arrays and structures, itself included.
    pub(super) depth: u32,
}

/// An expression or a type.
#[derive(Clone, Debug, Default)]
pub(super) struct Term {
    pub(super) shape: SizedType,
    /// Number of literals and compositions if all names are expanded; a zero value counts as one.
    pub(super) parts: u64,
    /// Whether it is a run-time value, so that naga evaluates and copies nothing of it.
    pub(super) at_run_time: bool,
    /// Whether it names a type.
    pub(super) is_type: bool,
    /// Whether a name stands for it or for a part of it, so that the text here does not have all of its parts.
    pub(super) is_named: bool,
    /// Whether its numbers have a concrete type, so that naga never converts it; false if unknown.
    pub(super) is_concrete: bool,
    /// Its value if it is a known integer.
    pub(super) number: Option<i128>,
}

impl Term {
    /// A value of this many parts.
    pub(super) fn small(parts: u64) -> Self {
        Self { shape: SizedType::Small, parts: parts.min(SMALL), ..Self::default() }
    }

    /// A type.
    pub(super) fn of_type(shape: SizedType) -> Self {
        Self { shape, is_type: true, ..Self::default() }
    }

    /// A run-time value in memory.
    pub(super) fn variable(shape: SizedType) -> Self {
        Self { shape, parts: 1, at_run_time: true, is_concrete: true, ..Self::default() }
    }

    /// An integer.
    pub(super) fn integer(number: Option<i128>) -> Self {
        Self { number, ..Self::small(1) }
    }

    /// Parts copied if the value is used in an evaluated expression.
    pub(super) fn copied(&self) -> u64 {
        if self.at_run_time || self.is_type { 0 } else { self.parts }
    }

    /// Parts created if the value gets a type, even in an expression that is not evaluated: a copy, and its conversion.
    pub(super) fn converted(&self) -> u64 {
        if self.is_concrete { 0 } else { self.copied().saturating_mul(2) }
    }
}

impl SizedType {
    /// Nesting of arrays and structures.
    pub(super) fn depth(&self, structs: &[Struct<'_>]) -> u32 {
        match self {
            Self::Small | Self::Unknown => 0,
            Self::Struct(index) => structs.get(*index).map_or(0, |found| found.depth),
            Self::Array(element, _) => element.depth(structs).saturating_add(1),
        }
    }

    /// Parts of a fully expanded value. Values of unknown type are in texts that naga refuses only.
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
