//! Algebra on instructions: rules by example, and all of them on random expressions against what the operations
//! compute.

use std::collections::HashMap;

use proptest::prelude::*;
use spelter_shaders::ir::{InstData, Kernel, Op, Place, Type, Value, element, verify};
use spelter_shaders::opt::PEEPHOLE;

use crate::opt::expression::{self, UNKNOWN};

/// Holds what becomes of expressions against the expected ones. A bool is stored as an integer, so `true` is 1.
#[track_caller]
fn become_these(pairs: &[(&str, &str)]) {
    for (before, after) in pairs {
        let mut kernel = expression::parse(before);
        for _ in 0..2 {
            (PEEPHOLE.run)(&mut kernel);
        }
        assert_eq!(verify(&kernel), Ok(()), "{kernel}");
        assert_eq!(&expression::print(&kernel), after, "{before}\n{kernel}");
    }
}

#[test]
fn integers() {
    become_these(&[
        ("iadd(3, 4)", "7"),
        ("iadd(0, a)", "a"),
        ("iadd(7, iadd(a, 5))", "iadd(a, 12)"),
        ("iadd(isub(3, a), 5)", "isub(8, a)"),
        ("iadd(ineg(a), b)", "isub(b, a)"),
        ("iadd(isub(a, b), b)", "a"),
        ("isub(a, 5)", "iadd(a, -5)"),
        ("isub(a, a)", "0"),
        ("isub(0, a)", "ineg(a)"),
        ("isub(iadd(a, b), a)", "b"),
        ("isub(a, iadd(b, a))", "ineg(b)"),
        ("isub(5, iadd(a, 3))", "isub(2, a)"),
        ("imul(a, 1)", "a"),
        ("imul(8, a)", "shl(a, 3)"),
        ("imul(a, -1)", "ineg(a)"),
        ("imul(imul(a, 6), 7)", "imul(a, 42)"),
        ("imul(shl(a, 3), 5)", "imul(a, 40)"),
        ("umul_high(a, 16)", "lshr(a, 28)"),
        ("smul_high(a, 1)", "ashr(a, 31)"),
        ("sabs(ineg(a))", "sabs(a)"),
        ("udiv(a, 0)", "0"),
        ("udiv(a, 8)", "lshr(a, 3)"),
        ("udiv(udiv(a, 6), 7)", "udiv(a, 42)"),
        ("umod(a, 8)", "and(a, 7)"),
        ("smod(a, 8)", "and(a, 7)"),
        ("srem(a, 8)", "srem(a, 8)"),
        ("sdiv(a, -1)", "ineg(a)"),
        ("smod(a, -1)", "0"),
        ("umin(umin(a, 9), 7)", "umin(a, 7)"),
        ("umax(a, 0)", "a"),
        ("smin(a, 2147483647)", "a"),
        ("smax(smax(a, b), a)", "smax(a, b)"),
        ("uclamp(a, 0, 7)", "umin(a, 7)"),
        ("sclamp(a, 9, 7)", "7"),
        ("ucarry(a, 0)", "0"),
    ]);
}

#[test]
fn bits() {
    become_these(&[
        ("and(a, 0)", "0"),
        ("and(and(a, 12), 10)", "and(a, 8)"),
        ("and(a, not(a))", "0"),
        ("and(or(a, 8), 7)", "and(a, 7)"),
        ("and(lshr(a, 24), 255)", "lshr(a, 24)"),
        ("or(a, or(a, b))", "or(a, b)"),
        ("or(or(a, 1), 2)", "or(a, 3)"),
        ("or(and(a, 65535), and(a, -65536))", "a"),
        ("or(and(a, 12), and(b, 3))", "or(and(a, 12), and(b, 3))"),
        ("xor(a, a)", "0"),
        ("xor(xor(a, b), a)", "b"),
        ("xor(a, and(a, 7))", "and(a, -8)"),
        ("xor(and(a, 7), a)", "and(a, -8)"),
        ("isub(a, and(a, 7))", "and(a, -8)"),
        ("xor(not(a), 1)", "xor(a, -2)"),
        ("not(not(a))", "a"),
        ("shl(a, 0)", "a"),
        ("shl(shl(a, 3), 4)", "shl(a, 7)"),
        ("lshr(lshr(a, 20), 20)", "0"),
        ("ashr(ashr(a, 20), 20)", "ashr(a, 31)"),
        ("lshr(shl(a, 8), 8)", "and(a, 16777215)"),
        ("shl(ashr(a, 8), 8)", "and(a, -256)"),
        ("shl(imul(a, 3), 2)", "imul(a, 12)"),
        ("shl(a, and(b, 31))", "shl(a, b)"),
        ("shl(a, 33)", "shl(a, 1)"),
        ("bit_uextract(a, 4, 8)", "and(lshr(a, 4), 255)"),
        ("bit_uextract(a, 24, 8)", "lshr(a, 24)"),
        ("bit_sextract(a, 4, 8)", "ashr(shl(a, 20), 24)"),
        ("bit_insert(a, b, 8, 8)", "or(and(a, -65281), and(shl(b, 8), 65280))"),
        ("bit_reverse(bit_reverse(a))", "a"),
    ]);
}

#[test]
fn truth_values_and_choices() {
    become_these(&[
        ("lnot(lnot(p))", "p"),
        ("lnot(ult(a, b))", "ule(b, a)"),
        ("lnot(ford_lt(x, y))", "funord_le(y, x)"),
        ("land(p, lnot(p))", "0"),
        ("lor(p, lor(q, p))", "lor(q, p)"),
        ("lxor(p, true)", "lnot(p)"),
        ("select(p, a, a)", "a"),
        ("select(lnot(p), a, b)", "select(p, b, a)"),
        ("select(p, select(p, a, b), c)", "select(p, a, c)"),
        ("select(p, true, q)", "lor(p, q)"),
        ("select(p, q, false)", "land(p, q)"),
        ("select(p, false, q)", "land(lnot(p), q)"),
        ("select(p, q, p)", "land(p, q)"),
        ("select(p, 0, 1)", "lnot(p)"),
        ("ine(select(p, 1, 0), 0)", "p"),
        ("ine(select(p, bool_to_int(q), 0), 0)", "land(p, q)"),
        ("ine(select(p, bool_to_int(q), 1), 0)", "lor(lnot(p), q)"),
        ("ine(select(p, 1, bool_to_int(q)), 0)", "lor(p, q)"),
        ("ine(select(p, 0, bool_to_int(q)), 0)", "land(lnot(p), q)"),
        ("ieq(select(p, 7, 9), 9)", "lnot(p)"),
        ("ult(bool_to_int(p), 5)", "1"),
        ("slt(3, select(p, 7, 1))", "p"),
        ("select(ult(a, b), a, b)", "umin(a, b)"),
        ("select(slt(a, b), b, a)", "smax(a, b)"),
        ("select(ieq(a, b), a, b)", "b"),
    ]);
}

#[test]
fn comparisons() {
    become_these(&[
        ("ieq(a, a)", "1"),
        ("ieq(5, iadd(a, 3))", "ieq(a, 2)"),
        ("ine(isub(a, b), 0)", "ine(a, b)"),
        ("ieq(iadd(a, c), iadd(b, c))", "ieq(a, b)"),
        ("ult(a, 0)", "0"),
        ("ult(a, 1)", "ieq(a, 0)"),
        ("ult(0, a)", "ine(a, 0)"),
        ("ule(a, 7)", "ult(a, 8)"),
        ("ule(7, a)", "ult(6, a)"),
        ("sle(a, 2147483647)", "1"),
        ("slt(-2147483648, a)", "ine(a, -2147483648)"),
        ("sle(0, a)", "slt(-1, a)"),
    ]);
}

#[test]
fn floats() {
    become_these(&[
        ("fmul(x, 1.0)", "x"),
        ("fmul(x, 0.0)", "fmul(x, 0.0)"),
        ("fadd(x, -0.0)", "x"),
        ("fadd(x, 0.0)", "fadd(x, 0.0)"),
        ("fsub(x, 0.0)", "x"),
        ("fsub(-0.0, x)", "fneg(x)"),
        ("fadd(x, fneg(y))", "fsub(x, y)"),
        ("fadd(fneg(x), y)", "fsub(y, x)"),
        ("fmul(fneg(x), 3.0)", "fmul(x, -3.0)"),
        ("fmul(fneg(x), fneg(y))", "fmul(x, y)"),
        ("fdiv(x, 4.0)", "fmul(x, 0.25)"),
        ("fdiv(x, 3.0)", "fdiv(x, 3.0)"),
        ("fabs(fneg(x))", "fabs(x)"),
        ("fneg(fneg(x))", "x"),
        ("fmin(fmin(x, 2.0), 1.0)", "fmin(x, 1.0)"),
        ("float_bits(float_from_bits(a))", "a"),
        ("half_bits(half_from_bits(a))", "and(a, 65535)"),
        ("half_bits(round_half(x))", "half_bits(x)"),
        ("round_half(half_from_bits(a))", "half_from_bits(a)"),
        // Two halves of one word, copied.
        ("or(half_bits(half_from_bits(a)), shl(half_bits(half_from_bits(lshr(a, 16))), 16))", "a"),
        ("fma(x, y, -0.0)", "fmul(x, y)"),
        // A whole number times a power of two is exact.
        ("fmul(fmul(sint_to_float(a), 0.5), 3.0)", "fmul(sint_to_float(a), 1.5)"),
        ("fma(fmul(uint_to_float(a), 0.25), 2.0, x)", "fma(uint_to_float(a), 0.5, x)"),
        ("fmul(fmul(sint_to_float(a), 3.0), 0.5)", "fmul(fmul(sint_to_float(a), 3.0), 0.5)"),
        ("fmul(fmul(x, 0.5), 3.0)", "fmul(fmul(x, 0.5), 3.0)"),
    ]);
}

#[test]
fn offsets() {
    become_these(&[
        ("element(a, 0, 4)", "a"),
        ("element(0, a, 1)", "a"),
        ("element(16, 3, 4)", "28"),
        ("element(a, 3, 4)", "element(a, 12, 1)"),
        ("element(element(8, a, 16), 1, 4)", "element(12, a, 16)"),
        ("element(element(a, 3, 4), 2, 4)", "element(a, 20, 1)"),
        ("element(element(a, 12, 1), b, 16)", "element(element(a, b, 16), 12, 1)"),
        ("element(a, -1, 8)", "-1"),
    ]);
}

/// What a kernel of one block stores, in order; `None` if the bits of a NaN get into an integer.
pub(crate) fn stored(kernel: &Kernel, inputs: &[u32]) -> Option<Vec<u64>> {
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
pub(crate) fn random(tape: &[u32]) -> Kernel {
    let mut tape = tape.iter().copied();
    expression::kernel(|builder, unknown| {
        let mut values = unknown.to_vec();
        let mut results = Vec::new();
        while let Some(number) = tape.next() {
            let mut pick = |ty: Type, builder: &mut spelter_shaders::ir::Builder| {
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

pub(crate) fn input() -> impl Strategy<Value = u32> {
    prop_oneof![prop::sample::select(SPECIAL.to_vec()), any::<u32>(), 0u32..40, any::<f32>().prop_map(f32::to_bits)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 4))]
    #[test]
    fn rules_keep_every_bit(
        tape in proptest::collection::vec(any::<u32>(), 0..40),
        inputs in proptest::collection::vec(proptest::collection::vec(input(), UNKNOWN.len()), 8),
    ) {
        let kernel = random(&tape);
        let mut simple = kernel.clone();
        (PEEPHOLE.run)(&mut simple);
        prop_assert_eq!(verify(&simple), Ok(()));
        for mut input in inputs {
            // The words for bools: half of them true.
            input[7..].iter_mut().for_each(|word| *word = if *word % 2 == 0 { 0 } else { 0x7fc0_0000 });
            let input = &input[..];
            // Which NaN an operation gives is open, so nothing is said about what looks at its bits.
            let Some(expected) = stored(&kernel, input) else { continue };
            prop_assert_eq!(stored(&simple, input), Some(expected), "{:x?}\n{}\n{}", input, kernel, simple);
        }
    }
}
