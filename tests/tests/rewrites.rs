//! Passes that rewrite expressions, on random ones: what a kernel stores stays the same, to the bit. Single rules have
//! their tests in `passes/**/*.expr`.

use std::collections::HashMap;

use proptest::prelude::*;
use spelter_shaders::ir::{Builder, InstData, Kernel, Op, Place, Type, Value, element, verify};
use spelter_shaders::opt::{CONTRACT, DCE, PEEPHOLE, Pass, RANGE_SIMPLIFY};
use spelter_tests::expression::{self, UNKNOWN};

/// What a kernel of one block stores, in order; `None` if the bits of a NaN get into an integer.
fn stored(kernel: &Kernel, inputs: &[u32]) -> Option<Vec<u64>> {
    let mut values: HashMap<Value, u64> = HashMap::new();
    let mut stored = Vec::new();
    for &inst in &kernel.blocks[kernel.layout[0]].insts {
        let get = |value: &Value| values[value];
        let bits = match &kernel.insts[inst] {
            InstData::Const { bits, .. } => *bits,
            InstData::Load { place: Place::Push { offset }, .. } => inputs[get(offset) as usize / 4].into(),
            InstData::Pure { op, args } => {
                let args: Vec<u64> = args.iter().map(get).collect();
                let is_nan = |bits: &u64| f32::from_bits(*bits as u32).is_nan();
                if matches!(op, Op::FloatBits | Op::HalfBits) && args.iter().any(is_nan) {
                    return None;
                }
                op.fold(&args)
            }
            InstData::Select { condition, then, otherwise } => get(if get(condition) != 0 { then } else { otherwise }),
            InstData::Element { base, index, stride } => element(get(base) as u32, get(index) as u32, *stride).into(),
            InstData::BuiltIn { .. } | InstData::Buffer { .. } => 3,
            InstData::Store { value, .. } => {
                let bits = get(value);
                let is_nan = kernel.ty(*value) == Type::F32 && f32::from_bits(bits as u32).is_nan();
                stored.push(if is_nan { u64::MAX } else { bits });
                continue;
            }
            _ => continue,
        };
        if let Some(result) = kernel.results[inst] {
            values.insert(result, bits);
        }
    }
    Some(stored)
}

/// Bits that rules look for or arithmetic gets wrong.
const SPECIAL: [u32; 24] = [
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    31,
    32,
    33,
    255,
    u32::MAX,
    u32::MAX - 1,
    i32::MAX.cast_unsigned(),
    i32::MIN.cast_unsigned(),
    i32::MIN.cast_unsigned() + 1,
    0x3f80_0000,
    0xbf80_0000,
    0x4080_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x0000_ffff,
    0xc049_0fdb,
];

/// Operations that rules know, some more than once; others come from the whole table.
const KNOWN: usize = 82;

/// A kernel with some random operations on unknown values and constants.
fn random(tape: &[u32]) -> Kernel {
    let mut tape = tape.iter().copied();
    expression::kernel(|builder, unknown| {
        let mut values = unknown.to_vec();
        let mut results = Vec::new();
        while let Some(number) = tape.next() {
            let mut pick = |ty: Type, builder: &mut Builder| {
                let choice = tape.next().unwrap_or(0);
                if choice % 3 == 0 {
                    let special = SPECIAL[choice as usize / 3 % SPECIAL.len()];
                    let bits = if ty == Type::Bool { special & 1 } else { special };
                    return builder.constant_bits(ty, bits.into());
                }
                let found: Vec<Value> = values.iter().rev().copied().filter(|&value| builder.ty(value) == ty).collect();
                // Mostly what was made last.
                found[(choice / 3 % (found.len() as u32).min(if choice % 3 == 1 { 2 } else { 99 })) as usize]
            };
            let value = match number % 11 {
                0 => {
                    let ty = [Type::Bool, Type::I32, Type::F32][number as usize / 11 % 3];
                    let (condition, then, otherwise) =
                        (pick(Type::Bool, builder), pick(ty, builder), pick(ty, builder));
                    builder.push_value(InstData::Select { condition, then, otherwise }, ty)
                }
                1 => {
                    let (base, index) = (pick(Type::I32, builder), pick(Type::I32, builder));
                    let stride = [1, 1, 4, 16, 0, u32::MAX][number as usize / 11 % 6];
                    builder.push_value(InstData::Element { base, index, stride }, Type::I32)
                }
                _ => {
                    let op = Op::ALL[number as usize / 11 % KNOWN];
                    let args = op.params().iter().map(|&ty| pick(ty, builder)).collect();
                    builder.push_value(InstData::Pure { op, args }, op.result())
                }
            };
            values.push(value);
            results.push(value);
        }
        results
    })
}

fn input() -> impl Strategy<Value = u32> {
    prop_oneof![prop::sample::select(SPECIAL.to_vec()), any::<u32>(), 0u32..40, any::<f32>().prop_map(f32::to_bits)]
}

/// Divisors that are likely to be special.
fn divisor() -> impl Strategy<Value = u32> {
    let near_powers = (0u32..32, 0u32..3).prop_map(|(power, more)| (1u32 << power).wrapping_add(more).wrapping_sub(1));
    let negative = (0u32..32, 0u32..3).prop_map(|(power, more)| (1u32 << power).wrapping_add(more).wrapping_neg());
    prop_oneof![any::<u32>(), 0u32..1000, near_powers, negative]
}

/// Runs the passes on a random kernel, and compares what it stores.
fn keep_every_bit(passes: &[Pass], tape: &[u32], inputs: &[Vec<u32>]) -> Result<(), TestCaseError> {
    let kernel = random(tape);
    let mut simple = kernel.clone();
    for pass in passes {
        (pass.run)(&mut simple);
    }
    prop_assert_eq!(verify(&simple), Ok(()));
    for input in inputs {
        let mut input = input.clone();
        // The words for bools: half of them true.
        input[7..].iter_mut().for_each(|word| *word = if *word % 2 == 0 { 0 } else { 0x7fc0_0000 });
        // Which NaN an operation gives is open, so nothing is said about what looks at its bits.
        let Some(expected) = stored(&kernel, &input) else { continue };
        prop_assert_eq!(stored(&simple, &input), Some(expected), "{:x?}\n{}\n{}", input, kernel, simple);
    }
    Ok(())
}

fn tape() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..40)
}

fn inputs() -> impl Strategy<Value = Vec<Vec<u32>>> {
    proptest::collection::vec(proptest::collection::vec(input(), UNKNOWN.len()), 8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(ProptestConfig::default().cases * 4)
    })]

    #[test]
    fn peephole_keeps_every_bit(tape in tape(), inputs in inputs()) {
        keep_every_bit(&[PEEPHOLE], &tape, &inputs)?;
    }

    #[test]
    fn range_simplify_keeps_every_bit(tape in tape(), inputs in inputs()) {
        keep_every_bit(&[PEEPHOLE, RANGE_SIMPLIFY, DCE], &tape, &inputs)?;
    }

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
                let inputs = [dividend; UNKNOWN.len()];
                let expected = stored(&kernel, &inputs);
                prop_assert_eq!(stored(&product, &inputs), expected, "{} {}\n{}", op.name(), dividend, product);
            }
        }
    }

    /// Where nothing needs rounding, it does not matter how often it is done.
    #[test]
    fn exact_sums_stay_the_same(
        steps in proptest::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..12),
        inputs in proptest::collection::vec(-2i32..=2, UNKNOWN.len()),
    ) {
        let kernel = expression::kernel(|builder, unknown| {
            let mut values = unknown[4..7].to_vec();
            for (which, a, b) in &steps {
                let (a, b) = (values[a.index(values.len())], values[b.index(values.len())]);
                let value = match which {
                    0 => builder.pure(Op::FNeg, &[a]),
                    1 => builder.pure(Op::FAdd, &[a, b]),
                    2 => builder.pure(Op::FSub, &[a, b]),
                    _ => builder.pure(Op::FMul, &[a, unknown[4 + values.len() % 3]]),
                };
                values.push(value);
            }
            // Not all, so that some products are used by sums only.
            values.split_off(values.len() / 2)
        });
        let mut contracted = kernel.clone();
        (CONTRACT.run)(&mut contracted);
        prop_assert_eq!(verify(&contracted), Ok(()));
        let inputs: Vec<u32> = inputs.iter().map(|&number| (number as f32).to_bits()).collect();
        prop_assert_eq!(stored(&contracted, &inputs), stored(&kernel, &inputs), "{}\n{}", kernel, contracted);
    }
}
