//! Transfer functions of the value-range analysis: the range of an operation's result from those of its operands.

use super::range::Range;
use crate::abi::{MAX_WORKGROUPS, SUBGROUP_SIZE};
use crate::ir::{BuiltIn, Kernel, Op};

/// The range of a built-in's component.
pub(super) fn builtin(kernel: &Kernel, builtin: BuiltIn, component: u8) -> Range {
    let invocations = kernel.invocations();
    let below = |limit: u32| Range::up_to(limit.saturating_sub(1));
    let size = kernel.workgroup_size.get(usize::from(component)).copied();
    match builtin {
        BuiltIn::NumWorkgroups => Range::up_to(MAX_WORKGROUPS),
        BuiltIn::WorkgroupId => below(MAX_WORKGROUPS),
        BuiltIn::GlobalInvocationId => size.and_then(|size| size.checked_mul(MAX_WORKGROUPS)).map_or(Range::ANY, below),
        BuiltIn::LocalInvocationId => size.map_or(Range::ANY, below),
        BuiltIn::LocalInvocationIndex => below(invocations),
        BuiltIn::NumSubgroups => Range::exact(invocations.div_ceil(SUBGROUP_SIZE)),
        BuiltIn::SubgroupId => below(invocations.div_ceil(SUBGROUP_SIZE)),
        BuiltIn::SubgroupLocalInvocationId => below(invocations.min(SUBGROUP_SIZE)),
    }
}

/// `base + index * stride`, saturated to `u32::MAX`.
pub(super) fn element(base: Range, index: Range, stride: u32) -> Range {
    let at = |base: u32, index: u32| u64::from(base) + u64::from(index) * u64::from(stride);
    let clamped = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
    let (low, high) = (at(base.low, index.low), at(base.high, index.high));
    let step = u32::from(index.zeros) + stride.trailing_zeros();
    let range = Range::between(clamped(low), clamped(high));
    if high <= u64::from(u32::MAX) {
        range.with_zeros(step.min(base.zeros.into()))
    } else {
        let zeros = step.min(base.zeros_unless_max.into()).min(32) as u8;
        Range { zeros_unless_max: range.zeros_unless_max.max(zeros), ..range }
    }
}

/// A pure operation with an `i32` result.
pub(super) fn pure(op: Op, args: &[Range]) -> Range {
    match *args {
        [a] => unary(op, a),
        [a, b] => arithmetic(op, a, b).or_else(|| bits(op, a, b)).or_else(|| choice(op, a, b)).unwrap_or(Range::ANY),
        [a, b, c] => ternary(op, a, b, c),
        _ => Range::ANY,
    }
}

fn unary(op: Op, a: Range) -> Range {
    match op {
        Op::BoolToInt => Range::up_to(1),
        Op::BitCount => Range::up_to(32),
        Op::PackSnorm8 | Op::PackUnorm8 => Range::up_to(0xff),
        Op::HalfBits | Op::PackSnorm16 | Op::PackUnorm16 => Range::up_to(0xffff),
        Op::Not => Range::between(!a.high, !a.low),
        Op::SAbs if a.is_natural() => a,
        Op::SSign if a.is_natural() => Range::between(a.low.min(1), a.high.min(1)),
        Op::INeg => Range::ANY.with_zeros(a.zeros.into()),
        _ => Range::ANY,
    }
}

/// Integer arithmetic; `None` for other operations.
fn arithmetic(op: Op, a: Range, b: Range) -> Option<Range> {
    let zeros = u32::from(a.zeros.min(b.zeros));
    let natural = a.is_natural() && b.is_natural();
    Some(match op {
        Op::IAdd => checked(a.low.checked_add(b.low), a.high.checked_add(b.high)).with_zeros(zeros),
        Op::ISub => checked(a.low.checked_sub(b.high), a.high.checked_sub(b.low)).with_zeros(zeros),
        Op::IMul => {
            let zeros = u32::from(a.zeros) + u32::from(b.zeros);
            checked(a.low.checked_mul(b.low), a.high.checked_mul(b.high)).with_zeros(zeros)
        }
        Op::UMulHigh => {
            let high = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
            Range::between(high(a.low, b.low), high(a.high, b.high))
        }
        Op::UDiv => quotient(a, b),
        Op::SDiv if natural => quotient(a, b),
        Op::UMod => remainder(a, b),
        Op::SRem | Op::SMod if natural => remainder(a, b),
        Op::UCarry | Op::UBorrow => Range::up_to(1),
        _ => return None,
    })
}

/// The interval of two checked bounds; any value if one of them overflows.
fn checked(low: Option<u32>, high: Option<u32>) -> Range {
    low.zip(high).map_or(Range::ANY, |(low, high)| Range::between(low, high))
}

/// Unsigned division, where division by 0 yields 0.
fn quotient(a: Range, b: Range) -> Range {
    let low = a.low.checked_div(b.high).filter(|_| b.low > 0).unwrap_or(0);
    Range::between(low, a.high / b.low.max(1))
}

fn remainder(a: Range, b: Range) -> Range {
    if a.high < b.low { a } else { Range::up_to(a.high.min(b.high.saturating_sub(1))) }
}

/// Bitwise operations and shifts; `None` for other operations.
fn bits(op: Op, a: Range, b: Range) -> Option<Range> {
    // Upper bound of `or` and `xor`: all bits up to the highest that can be set, and at most the sum.
    let mask = u32::MAX.checked_shr((a.high | b.high).leading_zeros()).unwrap_or(0).min(a.high.saturating_add(b.high));
    Some(match op {
        Op::And => Range::up_to(a.high.min(b.high)).with_zeros(a.zeros.max(b.zeros).into()),
        Op::Or => Range::between(a.low.max(b.low), mask).with_zeros(a.zeros.min(b.zeros).into()),
        Op::Xor => Range::up_to(mask).with_zeros(a.zeros.min(b.zeros).into()),
        Op::Shl => match b.value() {
            Some(by) => {
                let by = by % 32;
                let shifted = |bound: u32| bound.checked_mul(1 << by);
                checked(shifted(a.low), shifted(a.high)).with_zeros(u32::from(a.zeros) + by)
            }
            None => Range::ANY.with_zeros(a.zeros.into()),
        },
        Op::LShr => shifted_right(a, b),
        Op::AShr if a.is_natural() => shifted_right(a, b),
        Op::AShr => Range::ANY.with_zeros(b.value().map_or(0, |by| u32::from(a.zeros).saturating_sub(by % 32))),
        _ => return None,
    })
}

fn shifted_right(a: Range, b: Range) -> Range {
    match b.value() {
        Some(by) => {
            let by = by % 32;
            Range::between(a.low >> by, a.high >> by).with_zeros(u32::from(a.zeros).saturating_sub(by))
        }
        None => Range::up_to(a.high),
    }
}

/// Minimum and maximum; `None` for other operations.
fn choice(op: Op, a: Range, b: Range) -> Option<Range> {
    let natural = a.is_natural() && b.is_natural();
    let either = a.join(b);
    Some(match op {
        Op::UMin => Range { low: either.low, high: a.high.min(b.high), ..either },
        Op::SMin if natural => Range { low: either.low, high: a.high.min(b.high), ..either },
        Op::UMax => Range { low: a.low.max(b.low), high: either.high, ..either },
        Op::SMax if natural => Range { low: a.low.max(b.low), high: either.high, ..either },
        // The maximum is not negative if one operand is not.
        Op::SMax if a.is_natural() || b.is_natural() => {
            let low = if a.is_natural() { a.low } else { b.low };
            Range { low, high: i32::MAX.cast_unsigned(), ..either }
        }
        _ => return None,
    })
}

fn ternary(op: Op, a: Range, b: Range, c: Range) -> Range {
    match op {
        Op::UClamp => choice(Op::UMax, a, b).and_then(|raised| choice(Op::UMin, raised, c)).unwrap_or(Range::ANY),
        Op::SClamp => choice(Op::SMax, a, b).and_then(|raised| choice(Op::SMin, raised, c)).unwrap_or(Range::ANY),
        Op::BitUExtract => match (b.value(), c.value()) {
            (_, Some(count)) if count < 32 => Range::up_to(((1 << count) - 1).min(a.high)),
            _ => Range::up_to(a.high),
        },
        _ => Range::ANY,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ir::Type;

    /// Words at the ends of intervals, small ones, multiples of powers of two, and any others.
    fn word() -> impl Strategy<Value = u32> {
        let ends = [0, 1, 31, 32, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX];
        let multiple = (any::<u32>(), 0u32..32).prop_map(|(word, by)| word << by);
        let bits = (any::<u32>(), 0u32..32).prop_map(|(word, by)| word >> by);
        prop_oneof![prop::sample::select(ends.to_vec()), 0u32..64, multiple, bits, any::<u32>()]
    }

    /// A word, and a range that has it.
    fn member() -> impl Strategy<Value = (u32, Range)> {
        (word(), word(), word(), 0u32..6).prop_map(|(word, other, third, kind)| {
            let joined = Range::exact(word).join(Range::exact(other));
            let range = match kind {
                0 => Range::exact(word),
                1 => joined,
                2 => joined.join(Range::exact(third)),
                3 => Range::between(word.min(other), word.max(other)),
                4 => Range::ANY.with_zeros(word.trailing_zeros()),
                // Of elements whose offsets may saturate.
                _ => joined.join(Range::exact(u32::MAX)),
            };
            (word, range)
        })
    }

    fn has(range: Range, word: u32) -> bool {
        let zeros = word.trailing_zeros();
        (range.low..=range.high).contains(&word)
            && zeros >= range.zeros.into()
            && (word == u32::MAX || zeros >= range.zeros_unless_max.into())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]

        /// Operations on floats have words as operands, too: vectors have no types.
        #[test]
        fn the_range_of_each_operation_has_what_it_folds_to(args in prop::collection::vec(member(), 4)) {
            prop_assert!(args.iter().all(|&(word, range)| has(range, word)), "{:x?}", args);
            for &op in Op::ALL.iter().filter(|op| op.result() != Type::Bool) {
                let operand = |(&ty, &(word, range)): (&Type, &(u32, Range))| match ty {
                    Type::Bool => (u64::from(word & 1), Range::ANY),
                    _ => (u64::from(word), range),
                };
                let (words, ranges): (Vec<u64>, Vec<Range>) = op.params().iter().zip(&args).map(operand).unzip();
                let (result, range) = (op.fold(&words) as u32, pure(op, &ranges));
                prop_assert!(has(range, result), "{} {:x?}: {:x} in {:x?}", op.name(), ranges, result, range);
            }
        }

        #[test]
        fn the_range_of_an_element_has_its_offset(base in member(), index in member(), stride in word()) {
            let (offset, range) = (crate::ir::element(base.0, index.0, stride), element(base.1, index.1, stride));
            prop_assert!(has(range, offset), "{:x?} + {:x?} * {:x}: {:x} in {:x?}", base, index, stride, offset, range);
        }
    }
}
