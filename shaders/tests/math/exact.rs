//! Operations whose expansion gives the same bits as their function.

use proptest::prelude::*;
use spelter_shaders::ir::{Op, Type};

use crate::math::input::{FLOATS, INTS, Random};
use crate::math::{Runner, lowered, parse, text_of};

/// Expanded operations that may differ; `errors` measures them.
pub(crate) fn is_rounded(op: Op) -> bool {
    use Op::*;
    matches!(op, FRem | FMod | FMix | SmoothStep | InverseSqrt | Exp | Exp2 | Log | Log2 | Pow)
        || matches!(op, Sin | Cos | Tan | Asin | Acos | Atan | Atan2 | Sinh | Cosh | Tanh | Asinh | Acosh | Atanh)
}

/// The operations that are expanded without an error.
fn exact() -> impl Iterator<Item = Op> {
    let basic = |op: &Op| spelter_shaders::ir::op::is_basic(*op);
    Op::ALL.iter().copied().filter(move |op| !basic(op) && !is_rounded(*op))
}

/// The bits, with one NaN for all: which one an operation gives is unspecified.
fn one_nan(op: Op, bits: u32) -> u32 {
    if op.result() == Type::F32 && f32::from_bits(bits).is_nan() { f32::NAN.to_bits() } else { bits }
}

#[track_caller]
fn check(op: Op, runner: &Runner, inputs: &[Vec<u32>]) {
    for (input, found) in inputs.iter().zip(runner.apply(inputs)) {
        let registers: Vec<u64> = input.iter().map(|&word| word.into()).collect();
        let wanted = one_nan(op, op.fold(&registers) as u32);
        assert_eq!(one_nan(op, found), wanted, "{} of {input:x?}: {found:#x}, not {wanted:#x}", op.name());
    }
}

/// Every way to pick an operand of each type.
fn specials(op: Op) -> Vec<Vec<u32>> {
    let floats: Vec<u32> = FLOATS.iter().map(|float| float.to_bits()).collect();
    op.params().iter().fold(vec![Vec::new()], |tuples, &ty| {
        let list = if ty == Type::F32 { &floats[..] } else { INTS };
        let longer = tuples.iter().flat_map(|tuple| list.iter().map(|&word| [&tuple[..], &[word]].concat()));
        // Four operands are too many for all.
        longer.enumerate().filter(|(place, _)| tuples.len() < 5000 || place % 7 == 0).map(|(_, tuple)| tuple).collect()
    })
}

#[test]
fn exact_operations_keep_their_bits() {
    for op in exact() {
        let runner = Runner::new(op);
        check(op, &runner, &specials(op));
        let mut random = Random(1);
        let inputs: Vec<Vec<u32>> =
            (0..8192).map(|_| op.params().iter().map(|&ty| random.operand(ty)).collect()).collect();
        check(op, &runner, &inputs);
    }
}

#[test]
fn whatever_is_unpacked_is_right() {
    for op in [Op::UnpackSnorm8, Op::UnpackUnorm8, Op::UnpackSnorm16, Op::UnpackUnorm16] {
        let inputs: Vec<Vec<u32>> = (0..=0xffff).map(|word| vec![word | 0x5a5a_0000]).collect();
        check(op, &Runner::new(op), &inputs);
    }
}

#[test]
fn remainders_are_exact_while_the_quotient_is_small() {
    for op in [Op::FRem, Op::FMod] {
        let mut random = Random(2);
        let draw = std::iter::repeat_with(|| vec![random.operand(Type::F32), random.operand(Type::F32)]);
        let small = |input: &Vec<u32>| {
            let [a, b] = [f32::from_bits(input[0]), f32::from_bits(input[1])];
            let quotient = a / b;
            quotient.abs() < 16_777_216.0 || quotient.is_nan() || b == 0.0 || a.is_infinite()
        };
        let inputs: Vec<_> = draw.filter(small).take(20_000).collect();
        check(op, &Runner::new(op), &inputs);
    }
}

#[test]
#[ignore = "long: every 61st float"]
fn sweep_of_exact_operations_on_one_float() {
    for op in exact().filter(|op| op.params() == [Type::F32]) {
        let runner = Runner::new(op);
        for part in (0..=u32::MAX).step_by(61).collect::<Vec<_>>().chunks(1 << 16) {
            check(op, &runner, &part.iter().map(|&bits| vec![bits]).collect::<Vec<_>>());
        }
    }
}

#[test]
#[ignore = "long: a hundred million divisions"]
fn sweep_of_divisions() {
    let mut random = Random(3);
    for op in [Op::UDiv, Op::UMod, Op::SDiv, Op::SRem, Op::SMod] {
        let runner = Runner::new(op);
        for _ in 0..320 {
            let mut draw = || vec![random.operand(Type::I32), random.operand(Type::I32)];
            check(op, &runner, &(0..1 << 16).map(|_| draw()).collect::<Vec<_>>());
        }
    }
}

/// Bits that arithmetic likes to get wrong, and any others.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        prop::sample::select(INTS.to_vec()),
        0u32..64,
        (any::<u32>(), 0u32..32).prop_map(|(a, b)| a >> b)
    ]
}

proptest! {
    #[test]
    fn integer_operations_are_exact(words in proptest::collection::vec(word(), 4)) {
        for op in exact().filter(|op| op.params().iter().all(|&ty| ty == Type::I32)) {
            let input = words[..op.params().len()].to_vec();
            check(op, &Runner::new(op), &[input]);
        }
    }

    /// Near multiples of the divisor, where a quotient is one off.
    #[test]
    fn divisions_near_multiples(divisor in word(), factor in word(), off in 0u32..3) {
        let divisor = divisor.max(1);
        let multiple = divisor.wrapping_mul(factor % (u32::MAX / divisor).max(1));
        for op in [Op::UDiv, Op::UMod, Op::SDiv, Op::SRem, Op::SMod] {
            check(op, &Runner::new(op), &[vec![multiple.wrapping_add(off).wrapping_sub(1), divisor]]);
        }
    }
}

#[test]
fn constant_places_of_a_bit_field_leave_no_checks() {
    let text = text_of(Op::BitUExtract).replace("bit_uextract v30, v31, v32", "bit_uextract v30, v50, v50");
    let text = text.replace("v0 = const.i32 0\n", "v0 = const.i32 0\nv50 = const.i32 8\n");
    let text = lowered(parse(&text), crate::math::EXACT).to_string();
    assert!(!text.contains("select") && text.contains("lshr") && text.contains("and"), "{text}");
}
