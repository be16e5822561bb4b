//! What ranges decide, constant divisors, and the order of sums.

use proptest::prelude::*;
use spelter_shaders::ir::{InstData, Op, Type, verify};
use spelter_shaders::opt::{DCE, PEEPHOLE, RANGE_SIMPLIFY};

use crate::opt::expression;
use crate::opt::peephole::{input, random, stored};

/// Holds what becomes of expressions against the expected ones. `id` is below 16. A bool is stored as an integer.
#[track_caller]
fn become_these(pairs: &[(&str, &str)]) {
    for (before, after) in pairs {
        let mut kernel = expression::parse(before);
        for pass in [PEEPHOLE, RANGE_SIMPLIFY, PEEPHOLE] {
            (pass.run)(&mut kernel);
        }
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        assert_eq!(&expression::print(&kernel), after, "{before}\n{kernel}");
    }
}

#[test]
fn ranges_decide() {
    become_these(&[
        ("ult(id, 16)", "1"),
        ("ult(id, 15)", "ult(id, 15)"),
        ("slt(id, and(a, 7))", "slt(id, and(a, 7))"),
        ("sle(0, id)", "1"),
        ("slt(id, or(a, -2147483648))", "0"),
        ("ieq(shl(a, 2), 6)", "0"),
        ("and(id, 15)", "id"),
        ("and(shl(id, 4), 15)", "0"),
        ("umod(id, 16)", "id"),
        ("udiv(id, 16)", "0"),
        ("umin(id, 20)", "id"),
        ("sclamp(id, 0, 15)", "id"),
        ("sdiv(id, 4)", "lshr(id, 2)"),
        ("srem(id, 4)", "and(id, 3)"),
        ("ashr(id, 1)", "lshr(id, 1)"),
        ("uint_to_float(id)", "sint_to_float(id)"),
        ("ucarry(id, id)", "0"),
    ]);
}

#[test]
fn constant_divisors_become_products() {
    become_these(&[
        ("udiv(id, 3)", "lshr(imul(id, 11), 5)"),
        ("umod(id, 3)", "isub(id, imul(lshr(imul(id, 11), 5), 3))"),
        ("udiv(a, 3)", "lshr(umul_high(a, -1431655765), 1)"),
        ("udiv(a, 28)", "umul_high(lshr(a, 2), 613566757)"),
        ("sdiv(a, 4)", "ashr(iadd(a, lshr(ashr(a, 31), 30)), 2)"),
        ("srem(a, 4)", "isub(a, and(iadd(a, lshr(ashr(a, 31), 30)), -4))"),
        ("sdiv(a, 3)", "iadd(smul_high(a, 1431655766), lshr(a, 31))"),
    ]);
}

#[test]
fn offsets_take_what_does_not_wrap() {
    become_these(&[
        ("element(0, iadd(id, 3), 4)", "element(12, id, 4)"),
        ("element(a, iadd(id, 3), 4)", "element(element(a, id, 4), 12, 1)"),
        ("element(0, iadd(a, 3), 4)", "element(0, iadd(a, 3), 4)"),
        ("element(8, iadd(or(id, 1), -1), 4)", "element(4, or(id, 1), 4)"),
        ("element(0, shl(id, 2), 4)", "element(0, id, 16)"),
        ("element(0, iadd(imul(id, 12), 2), 4)", "element(8, id, 48)"),
        ("element(0, shl(a, 2), 4)", "element(0, shl(a, 2), 4)"),
    ]);
}

/// Divisors that are likely to be special.
fn divisor() -> impl Strategy<Value = u32> {
    let near_powers = (0u32..32, 0u32..3).prop_map(|(power, more)| (1u32 << power).wrapping_add(more).wrapping_sub(1));
    let negative = (0u32..32, 0u32..3).prop_map(|(power, more)| (1u32 << power).wrapping_add(more).wrapping_neg());
    prop_oneof![any::<u32>(), 0u32..1000, near_powers, negative]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]
    #[test]
    fn quotients_and_remainders_are_exact(by in divisor(), width in 0u32..32, times: u32, offset in 0u32..3) {
        for op in [Op::UDiv, Op::UMod, Op::SDiv, Op::SRem, Op::SMod] {
            let kernel = expression::kernel(|builder, unknown| {
                let mask = builder.constant(u32::MAX >> width);
                let dividend = builder.pure(Op::And, &[unknown[0], mask]);
                let divisor = builder.constant(by);
                let data = InstData::Pure { op, args: [dividend, divisor].into_iter().collect() };
                vec![builder.push_value(data, Type::I32)]
            });
            let mut product = kernel.clone();
            (RANGE_SIMPLIFY.run)(&mut product);
            // Around multiples of the divisor, where quotients change, and at the ends.
            let near = times.wrapping_mul(by).wrapping_add(offset).wrapping_sub(1);
            for dividend in [times, near, 0, 1, u32::MAX, 1 << 31, (1 << 31) - 1] {
                let inputs = [dividend; expression::UNKNOWN.len()];
                let expected = stored(&kernel, &inputs);
                prop_assert_eq!(stored(&product, &inputs), expected, "{} {}\n{}", op.name(), dividend, product);
            }
        }
    }

    #[test]
    fn rules_keep_every_bit(
        tape in proptest::collection::vec(any::<u32>(), 0..40),
        inputs in proptest::collection::vec(proptest::collection::vec(input(), expression::UNKNOWN.len()), 8),
    ) {
        let kernel = random(&tape);
        let mut simple = kernel.clone();
        for pass in [PEEPHOLE, RANGE_SIMPLIFY, DCE] {
            (pass.run)(&mut simple);
        }
        prop_assert_eq!(verify(&simple), Ok(()));
        for input in &inputs {
            let Some(expected) = stored(&kernel, input) else { continue };
            prop_assert_eq!(stored(&simple, input), Some(expected), "{:x?}\n{}\n{}", input, kernel, simple);
        }
    }
}
