//! The abstract domain of the value-range analysis: an unsigned interval with known trailing zeros.

use crate::ir::Op;

/// A set of `i32` values, read as unsigned: an interval, and a power of two that divides all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Lower bound, inclusive.
    pub low: u32,
    /// Upper bound, inclusive.
    pub high: u32,
    /// Known trailing zeros: all values are multiples of two to this power; 32 if the only value is 0.
    pub zeros: u8,
    /// As `zeros`, but ignores `u32::MAX`, the value of an `element` offset that saturates.
    pub zeros_unless_max: u8,
}

impl Range {
    /// Any value.
    pub const ANY: Self = Self { low: 0, high: u32::MAX, zeros: 0, zeros_unless_max: 0 };

    /// The single value.
    pub fn exact(value: u32) -> Self {
        let zeros = value.trailing_zeros() as u8;
        let zeros_unless_max = if value == u32::MAX { 32 } else { zeros };
        Self { low: value, high: value, zeros, zeros_unless_max }
    }

    /// From `low` to `high`.
    pub fn between(low: u32, high: u32) -> Self {
        if low == high { Self::exact(low) } else { Self { low, high, zeros: 0, zeros_unless_max: 0 } }
    }

    /// At most `high`.
    pub fn up_to(high: u32) -> Self {
        Self::between(0, high)
    }

    /// The values of this range that are multiples of two to the power of `zeros`.
    pub fn with_zeros(mut self, zeros: u32) -> Self {
        if zeros >= 32 || self.zeros >= 32 {
            return Self::exact(0);
        }
        self.zeros = self.zeros.max(zeros as u8);
        self.zeros_unless_max = self.zeros_unless_max.max(self.zeros);
        self.high &= !((1 << self.zeros) - 1);
        self.low = self.low.min(self.high);
        if self.high == 0 { Self::exact(0) } else { self }
    }

    /// The value, if the range has a single one.
    pub fn value(self) -> Option<u32> {
        (self.low == self.high).then_some(self.low)
    }

    /// The result of a comparison, if it is the same for all values of the two ranges.
    pub fn compare(op: Op, x: Self, y: Self) -> Option<bool> {
        let less = |x: Self, y: Self| if x.high < y.low { Some(true) } else { (y.high <= x.low).then_some(false) };
        let signed = |x: Self, y: Self| {
            let negative = |range: Self| range.low > i32::MAX.cast_unsigned();
            match (x.is_natural(), y.is_natural()) {
                (true, true) => less(x, y),
                (true, false) if negative(y) => Some(false),
                (false, true) if negative(x) => Some(true),
                _ => None,
            }
        };
        match op {
            Op::ULt => less(x, y),
            Op::ULe => less(y, x).map(|less| !less),
            Op::SLt => signed(x, y),
            Op::SLe => signed(y, x).map(|less| !less),
            Op::IEq => x.differs(y).then_some(false),
            Op::INe => x.differs(y).then_some(true),
            _ => None,
        }
    }

    /// Whether the two ranges are disjoint.
    pub fn differs(self, other: Self) -> bool {
        // A single value with fewer trailing zeros than all values of the other range is not in it.
        let indivisible = |x: Self, y: Self| y.value().is_some_and(|value| value.trailing_zeros() < u32::from(x.zeros));
        self.high < other.low || other.high < self.low || indivisible(self, other) || indivisible(other, self)
    }

    /// Whether all values are non-negative as signed integers.
    pub fn is_natural(self) -> bool {
        self.high <= i32::MAX.cast_unsigned()
    }

    /// Union (over-approximated): the least range that contains both.
    pub fn join(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            zeros: self.zeros.min(other.zeros),
            zeros_unless_max: self.zeros_unless_max.min(other.zeros_unless_max),
        }
    }

    /// Intersection (over-approximated). Disjoint intervals imply unreachable code, where any range is sound.
    pub fn meet(self, other: Self) -> Self {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        if low > high {
            return self;
        }
        if low == high {
            return Self::exact(low);
        }
        let zeros = self.zeros.max(other.zeros);
        let zeros_unless_max = self.zeros_unless_max.max(other.zeros_unless_max);
        let strict = if high < u32::MAX { zeros.max(zeros_unless_max) } else { zeros };
        Self { low, high, zeros, zeros_unless_max }.with_zeros(strict.into())
    }

    /// Whether the range contains all values of `other`.
    pub(super) fn contains(self, other: Self) -> bool {
        self.join(other) == self
    }

    /// Widening for loop-carried values: a superset of both with short ascending chains. The trailing zeros may
    /// decrease to any number the first time; later they drop to 0.
    pub(super) fn widen(self, other: Self, first: bool) -> Self {
        let mut both = self.join(other);
        if !first && (both.zeros < self.zeros || both.zeros_unless_max < self.zeros_unless_max) {
            (both.zeros, both.zeros_unless_max) = (0, 0);
        }
        let high = match both.high {
            high if high == self.high => high,
            high if high <= i32::MAX.cast_unsigned() => i32::MAX.cast_unsigned(),
            _ => u32::MAX,
        };
        Self { low: if both.low < self.low { 0 } else { both.low }, high, ..both }
    }
}
