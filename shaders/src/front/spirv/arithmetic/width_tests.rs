//! Every instruction at every width, compared with Rust's numbers of that width: constants fold, so no kernel is
//! needed.

use half::f16;
use proptest::prelude::*;
use spirv::{GlslStd450Op as Glsl, Op as Spv};

use super::ArithmeticType;
use super::testing::{AnyInst, BOOL, builder, evaluate};
use crate::front::spirv::scalar::Scalar;

/// The IR words of a number's bits.
fn values(ty: Scalar, bits: u64) -> Vec<u32> {
    match ty {
        Scalar::I64 | Scalar::F64 => vec![bits as u32, (bits >> 32) as u32],
        Scalar::F16 => vec![f16::from_bits(bits as u16).to_f32_const().to_bits()],
        _ => vec![bits as u32],
    }
}

/// The bits of a number from its IR words.
fn bits(ty: Scalar, values: &[u32]) -> u64 {
    match ty {
        Scalar::I64 | Scalar::F64 => u64::from(values[0]) | u64::from(values[1]) << 32,
        Scalar::F16 => f16::from_f32_const(f32::from_bits(values[0])).to_bits().into(),
        _ => values[0].into(),
    }
}

fn run(which: AnyInst, result: Scalar, operands: &[(Scalar, u64)]) -> u64 {
    let shapes: Vec<ArithmeticType> = operands.iter().map(|operand| ArithmeticType::Scalar(operand.0)).collect();
    let words: Vec<u32> = operands.iter().flat_map(|&(ty, bits)| values(ty, bits)).collect();
    let shape = if result == Scalar::Bool { BOOL } else { ArithmeticType::Scalar(result) };
    let found = evaluate(&mut builder(), which, shape, &shapes, &words);
    let found = found.unwrap_or_else(|problem| panic!("{which:?} of {operands:x?}: {problem}"));
    bits(result, &found)
}

fn is_nan(ty: Scalar, bits: u64) -> bool {
    match ty {
        Scalar::F16 => f16::from_bits(bits as u16).is_nan(),
        Scalar::F32 => f32::from_bits(bits as u32).is_nan(),
        Scalar::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

#[track_caller]
fn check(which: AnyInst, result: Scalar, operands: &[(Scalar, u64)], wanted: u64) {
    let found = run(which, result, operands);
    let same = found == wanted || is_nan(result, found) && is_nan(result, wanted);
    assert!(same, "{which:?} of {operands:x?}: {found:#x} instead of {wanted:#x}");
}

/// Integer instructions at one width, compared with Rust's integers.
macro_rules! integers {
    ($name:ident $scalar:expr, $unsigned:ty, $signed:ty, $wide:ty) => {
        fn $name(a: u64, b: u64, amount: u32) {
            let (ty, bits) = ($scalar, <$unsigned>::BITS);
            let (ua, ub) = (a as $unsigned, b as $unsigned);
            let (sa, sb) = (ua as $signed, ub as $signed);
            let two = [(ty, ua.into()), (ty, ub.into())];
            let core = |op, wanted: $unsigned| check(AnyInst::Core(op), ty, &two, wanted.into());
            let glsl = |op, wanted: $unsigned| check(AnyInst::Glsl(op), ty, &two, wanted.into());
            let test = |op, wanted: bool| check(AnyInst::Core(op), Scalar::Bool, &two, wanted.into());
            core(Spv::IAdd, ua.wrapping_add(ub));
            core(Spv::ISub, ua.wrapping_sub(ub));
            core(Spv::IMul, ua.wrapping_mul(ub));
            core(Spv::UDiv, ua.checked_div(ub).unwrap_or(0));
            core(Spv::UMod, ua.checked_rem(ub).unwrap_or(0));
            core(Spv::SDiv, if sb == 0 { 0 } else { sa.wrapping_div(sb) } as $unsigned);
            let rem = if sb == 0 { 0 } else { sa.wrapping_rem(sb) };
            core(Spv::SRem, rem as $unsigned);
            core(Spv::SMod, if rem != 0 && (rem < 0) != (sb < 0) { rem.wrapping_add(sb) } else { rem } as $unsigned);
            core(Spv::BitwiseAnd, ua & ub);
            core(Spv::BitwiseOr, ua | ub);
            core(Spv::BitwiseXor, ua ^ ub);
            glsl(Glsl::UMin, ua.min(ub));
            glsl(Glsl::UMax, ua.max(ub));
            glsl(Glsl::SMin, sa.min(sb) as $unsigned);
            glsl(Glsl::SMax, sa.max(sb) as $unsigned);
            test(Spv::IEqual, ua == ub);
            test(Spv::INotEqual, ua != ub);
            test(Spv::ULessThan, ua < ub);
            test(Spv::ULessThanEqual, ua <= ub);
            test(Spv::UGreaterThan, ua > ub);
            test(Spv::UGreaterThanEqual, ua >= ub);
            test(Spv::SLessThan, sa < sb);
            test(Spv::SLessThanEqual, sa <= sb);
            test(Spv::SGreaterThan, sa > sb);
            test(Spv::SGreaterThanEqual, sa >= sb);
            let one = [(ty, ua.into())];
            let unary = |which, wanted: $unsigned| check(which, ty, &one, wanted.into());
            unary(AnyInst::Core(Spv::SNegate), ua.wrapping_neg());
            unary(AnyInst::Core(Spv::Not), !ua);
            unary(AnyInst::Core(Spv::BitReverse), ua.reverse_bits());
            unary(AnyInst::Glsl(Glsl::SAbs), sa.wrapping_abs() as $unsigned);
            unary(AnyInst::Glsl(Glsl::SSign), sa.signum() as $unsigned);
            let none = <$unsigned>::MAX;
            unary(AnyInst::Glsl(Glsl::FindILsb), if ua == 0 { none } else { ua.trailing_zeros() as $unsigned });
            unary(AnyInst::Glsl(Glsl::FindUMsb), if ua == 0 { none } else { ua.ilog2() as $unsigned });
            let differs = if sa < 0 { !ua } else { ua };
            unary(AnyInst::Glsl(Glsl::FindSMsb), if differs == 0 { none } else { differs.ilog2() as $unsigned });
            for count in [ty, Scalar::I32] {
                check(AnyInst::Core(Spv::BitCount), count, &one, ua.count_ones().into());
            }
            let by = [(ty, ua.into()), (Scalar::I32, amount.into())];
            let shift = |op, wanted: $unsigned| check(AnyInst::Core(op), ty, &by, wanted.into());
            shift(Spv::ShiftLeftLogical, ua.wrapping_shl(amount));
            shift(Spv::ShiftRightLogical, ua.wrapping_shr(amount));
            shift(Spv::ShiftRightArithmetic, sa.wrapping_shr(amount) as $unsigned);
            // A bit field inside the number.
            let offset = amount % bits;
            let count = (b as u32) % (bits - offset + 1);
            let ones = if count == 0 { 0 } else { <$unsigned>::MAX >> (bits - count) };
            let field = [(ty, ua.into()), (Scalar::I32, offset.into()), (Scalar::I32, count.into())];
            let extracted = (ua >> offset) & ones;
            check(AnyInst::Core(Spv::BitFieldUExtract), ty, &field, extracted.into());
            let negative = count > 0 && extracted >> (count - 1) & 1 == 1;
            let signed = if negative { extracted | !ones } else { extracted };
            check(AnyInst::Core(Spv::BitFieldSExtract), ty, &field, signed.into());
            let insert = [(ty, ua.into()), (ty, ub.into()), (Scalar::I32, offset.into()), (Scalar::I32, count.into())];
            let inserted = ua & !(ones << offset) | (ub & ones) << offset;
            check(AnyInst::Core(Spv::BitFieldInsert), ty, &insert, inserted.into());
            // Instructions with two results.
            let pair = |op, low: $unsigned, high: $unsigned| {
                let shapes = [ArithmeticType::Scalar(ty); 2];
                let words: Vec<u32> = two.iter().flat_map(|&(ty, bits)| values(ty, bits)).collect();
                let found =
                    evaluate(&mut builder(), AnyInst::Core(op), ArithmeticType::Scalar(ty), &shapes, &words).unwrap();
                let (first, second) = found.split_at(found.len() / 2);
                let found = [self::bits(ty, first), self::bits(ty, second)];
                assert_eq!(found, [u64::from(low), u64::from(high)], "{op:?} of {two:x?}");
            };
            pair(Spv::IAddCarry, ua.wrapping_add(ub), ua.overflowing_add(ub).1.into());
            pair(Spv::ISubBorrow, ua.wrapping_sub(ub), (ua < ub).into());
            let product = <$wide>::from(ua) * <$wide>::from(ub);
            pair(Spv::UMulExtended, product as $unsigned, (product >> bits) as $unsigned);
            let product = i128::from(sa) * i128::from(sb);
            pair(Spv::SMulExtended, product as $unsigned, (product >> bits) as $unsigned);
        }
    };
}
integers!(bytes Scalar::I8, u8, i8, u128);
integers!(shorts Scalar::I16, u16, i16, u128);
integers!(words Scalar::I32, u32, i32, u128);
integers!(longs Scalar::I64, u64, i64, u128);

/// Numbers near the ends of ranges, near powers of 2, and arbitrary ones.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u64>().prop_map(|bits| bits >> (bits % 64)),
        (0u32..64, -2i64..3).prop_map(|(position, off)| (1u64 << position).wrapping_add_signed(off)),
        (-3i64..4).prop_map(i64::cast_unsigned),
    ]
}

/// Doubles of all kinds.
fn real() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (any::<i64>(), 0u32..64).prop_map(|(bits, by)| (bits >> by) as f64),
        (any::<i64>(), 0u32..64).prop_map(|(bits, by)| (bits >> by) as f64 / 4.0),
        any::<f32>().prop_map(f64::from),
        any::<u16>().prop_map(|bits| f16::from_bits(bits).to_f64()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn integers_of_all_widths(a in number(), b in number(), amount in 0u32..70) {
        bytes(a, b, amount);
        shorts(a, b, amount);
        words(a, b, amount);
        longs(a, b, amount);
    }

    #[test]
    fn halves(a: u16, b: u16) {
        let (ha, hb) = (f16::from_bits(a), f16::from_bits(b));
        let (fa, fb) = (ha.to_f64(), hb.to_f64());
        let two = [(Scalar::F16, a.into()), (Scalar::F16, b.into())];
        // Sums and products of halves are exact in doubles; quotients are rounded far beyond a half's digits.
        let round = |value: f64| u64::from(f16::from_f64(value).to_bits());
        for (op, wanted) in [(Spv::FAdd, fa + fb), (Spv::FSub, fa - fb), (Spv::FMul, fa * fb), (Spv::FDiv, fa / fb)] {
            check(AnyInst::Core(op), Scalar::F16, &two, round(wanted));
        }
        check(AnyInst::Core(Spv::FOrdLessThan), Scalar::Bool, &two, (ha < hb).into());
        let is_ge = ha.partial_cmp(&hb).is_none_or(|order| order.is_ge());
        check(AnyInst::Core(Spv::FUnordGreaterThanEqual), Scalar::Bool, &two, is_ge.into());
        let one = [two[0]];
        check(AnyInst::Glsl(Glsl::Sqrt), Scalar::F16, &one, round(fa.sqrt()));
        check(AnyInst::Glsl(Glsl::Floor), Scalar::F16, &one, round(fa.floor()));
        check(AnyInst::Glsl(Glsl::Fract), Scalar::F16, &one, round(fa - fa.floor()));
        check(AnyInst::Core(Spv::FNegate), Scalar::F16, &one, u64::from(a ^ 0x8000));
    }

    #[test]
    fn doubles(a in real(), b in real()) {
        let two = [(Scalar::F64, a.to_bits()), (Scalar::F64, b.to_bits())];
        for (op, wanted) in [(Spv::FAdd, a + b), (Spv::FSub, a - b), (Spv::FMul, a * b), (Spv::FDiv, a / b)] {
            check(AnyInst::Core(op), Scalar::F64, &two, wanted.to_bits());
        }
        let unordered = a.is_nan() || b.is_nan();
        for (ordered, unordered_op, wanted) in [
            (Spv::FOrdEqual, Spv::FUnordEqual, a == b),
            (Spv::FOrdLessThan, Spv::FUnordLessThan, a < b),
            (Spv::FOrdGreaterThanEqual, Spv::FUnordGreaterThanEqual, a >= b),
            (Spv::FOrdNotEqual, Spv::FUnordNotEqual, !unordered && a != b),
        ] {
            check(AnyInst::Core(ordered), Scalar::Bool, &two, wanted.into());
            check(AnyInst::Core(unordered_op), Scalar::Bool, &two, (wanted || unordered).into());
        }
        let one = [two[0]];
        for (op, wanted) in [
            (Glsl::Sqrt, a.sqrt()),
            (Glsl::Floor, a.floor()),
            (Glsl::Ceil, a.ceil()),
            (Glsl::Trunc, a.trunc()),
            (Glsl::RoundEven, a.round_ties_even()),
            (Glsl::FAbs, a.abs()),
            (Glsl::FSign, if a == 0.0 || a.is_nan() { a } else { a.signum() }),
        ] {
            check(AnyInst::Glsl(op), Scalar::F64, &one, wanted.to_bits());
        }
        if !unordered && a != b {
            check(AnyInst::Glsl(Glsl::FMin), Scalar::F64, &two, a.min(b).to_bits());
            check(AnyInst::Glsl(Glsl::NMax), Scalar::F64, &two, a.max(b).to_bits());
        }
        check(AnyInst::Core(Spv::IsNan), Scalar::Bool, &one, a.is_nan().into());
        check(AnyInst::Core(Spv::IsInf), Scalar::Bool, &one, a.is_infinite().into());
    }

    #[test]
    fn exponents_of_any_width(a in -4096f32..4096.0, by in any::<i64>(), small in -140i64..140) {
        for (ty, number) in [
            (Scalar::I8, i64::from(small as i8)),
            (Scalar::I16, i64::from(by as i16)),
            (Scalar::I16, small),
            (Scalar::I64, small),
            (Scalar::I64, by),
        ] {
            let bits = number.cast_unsigned() & u64::MAX >> (64 - ty.bits());
            let by = number.clamp(-100_000, 100_000) as i32;
            let scaled = [(Scalar::F32, u64::from(a.to_bits())), (ty, bits)];
            check(AnyInst::Glsl(Glsl::Ldexp), Scalar::F32, &scaled, u64::from(libm::scalbnf(a, by).to_bits()));
            let scaled = [(Scalar::F64, f64::from(a).to_bits()), (ty, bits)];
            check(AnyInst::Glsl(Glsl::Ldexp), Scalar::F64, &scaled, libm::scalbn(f64::from(a), by).to_bits());
        }
    }

    #[test]
    fn doubles_at_their_exponent(a in real(), by in -2200i32..2200) {
        let scaled = [(Scalar::F64, a.to_bits()), (Scalar::I32, u64::from(by.cast_unsigned()))];
        check(AnyInst::Glsl(Glsl::Ldexp), Scalar::F64, &scaled, libm::scalbn(a, by).to_bits());
        if a.is_finite() && a != 0.0 {
            let found = evaluate(
                &mut builder(),
                AnyInst::Glsl(Glsl::FrexpStruct),
                ArithmeticType::Scalar(Scalar::F64),
                &[ArithmeticType::Scalar(Scalar::F64)],
                &values(Scalar::F64, a.to_bits()),
            )
            .unwrap();
            let (significand, exponent) = libm::frexp(a);
            prop_assert_eq!(bits(Scalar::F64, &found), significand.to_bits());
            prop_assert_eq!(found[2].cast_signed(), exponent);
        }
    }

    #[test]
    fn conversions_of_integers(a in number()) {
        let all = [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64];
        let cut = |ty: Scalar, bits: u64| if ty.bits() == 64 { bits } else { bits & ((1 << ty.bits()) - 1) };
        let signed = |ty: Scalar, bits: u64| (bits << (64 - ty.bits())).cast_signed() >> (64 - ty.bits());
        for from in all {
            let own = cut(from, a);
            let one = [(from, own)];
            let number = signed(from, own);
            for to in all.into_iter().filter(|&to| to != from) {
                check(AnyInst::Core(Spv::UConvert), to, &one, cut(to, own));
                check(AnyInst::Core(Spv::SConvert), to, &one, cut(to, number.cast_unsigned()));
            }
            check(AnyInst::Core(Spv::ConvertUToF), Scalar::F32, &one, (own as f32).to_bits().into());
            check(AnyInst::Core(Spv::ConvertSToF), Scalar::F32, &one, (number as f32).to_bits().into());
            check(AnyInst::Core(Spv::ConvertUToF), Scalar::F64, &one, (own as f64).to_bits());
            check(AnyInst::Core(Spv::ConvertSToF), Scalar::F64, &one, (number as f64).to_bits());
            // Integers that are inexact in a double are far out of a half's range.
            check(AnyInst::Core(Spv::ConvertUToF), Scalar::F16, &one, f16::from_f64(own as f64).to_bits().into());
            check(AnyInst::Core(Spv::ConvertSToF), Scalar::F16, &one, f16::from_f64(number as f64).to_bits().into());
        }
    }

    #[test]
    fn conversions_of_floats(a in real()) {
        let single = a as f32;
        let half = f16::from_f64(a);
        let forms = [
            (Scalar::F16, u64::from(half.to_bits()), half.to_f64()),
            (Scalar::F32, single.to_bits().into(), single.into()),
            (Scalar::F64, a.to_bits(), a),
        ];
        for (from, bits, value) in forms {
            let one = [(from, bits)];
            let to = |op, ty, wanted| check(AnyInst::Core(op), ty, &one, wanted);
            to(Spv::ConvertFToU, Scalar::I8, (value as u8).into());
            to(Spv::ConvertFToU, Scalar::I16, (value as u16).into());
            to(Spv::ConvertFToU, Scalar::I32, (value as u32).into());
            to(Spv::ConvertFToU, Scalar::I64, value as u64);
            to(Spv::ConvertFToS, Scalar::I8, (value as i8).cast_unsigned().into());
            to(Spv::ConvertFToS, Scalar::I16, (value as i16).cast_unsigned().into());
            to(Spv::ConvertFToS, Scalar::I32, (value as i32).cast_unsigned().into());
            to(Spv::ConvertFToS, Scalar::I64, (value as i64).cast_unsigned());
            for (ty, wanted) in [
                (Scalar::F16, u64::from(f16::from_f64(value).to_bits())),
                (Scalar::F32, (value as f32).to_bits().into()),
                (Scalar::F64, value.to_bits()),
            ] {
                to(Spv::FConvert, ty, wanted);
            }
        }
    }

    #[test]
    fn bits_stay_whatever_they_are_split_into(words in proptest::array::uniform4(any::<u32>())) {
        let shapes = |bits: u32| {
            [Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64].into_iter().filter_map(move |ty| {
                let count = bits / ty.bits();
                match count {
                    1 => Some(ArithmeticType::Scalar(ty)),
                    2..=4 => Some(ArithmeticType::Vector(ty, count)),
                    _ => None,
                }
            })
        };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let split = |shape: ArithmeticType| -> Vec<u32> {
            let width = (shape.element().bits() / 8).min(4) as usize;
            let total = shape.scalars() * shape.element().bits() as usize / 8;
            let number = |part: &[u8]| part.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
            bytes[..total].chunks(width).map(number).collect()
        };
        for bits in [16, 32, 64, 128] {
            for from in shapes(bits) {
                for to in shapes(bits) {
                    let found = evaluate(&mut builder(), AnyInst::Core(Spv::Bitcast), to, &[from], &split(from));
                    prop_assert_eq!(found, Ok(split(to)), "{:?} to {:?}", from, to);
                }
            }
        }
    }

    #[test]
    fn dot_products(a: [i8; 4], b: [i8; 4], before: i32) {
        let packed = |bytes: [i8; 4]| u32::from_le_bytes(bytes.map(i8::cast_unsigned));
        let vector = ArithmeticType::Vector(Scalar::I8, 4);
        let spread = |bytes: [i8; 4]| bytes.map(|byte| u32::from(byte.cast_unsigned())).to_vec();
        let sum = |first: bool, second: bool| -> i64 {
            let number = |sign: bool, byte: i8| if sign { i64::from(byte) } else { i64::from(byte.cast_unsigned()) };
            a.iter().zip(&b).map(|(&a, &b)| number(first, a) * number(second, b)).sum()
        };
        for (op, sat, signs) in [
            (Spv::SDot, Spv::SDotAccSat, (true, true)),
            (Spv::UDot, Spv::UDotAccSat, (false, false)),
            (Spv::SUDot, Spv::SUDotAccSat, (true, false)),
        ] {
            let wanted = sum(signs.0, signs.1);
            let int = ArithmeticType::Scalar(Scalar::I32);
            let run = |op, shapes: &[ArithmeticType], words: &[u32]| {
                evaluate(&mut builder(), AnyInst::Core(op), int, shapes, words).unwrap()[0]
            };
            prop_assert_eq!(run(op, &[int, int], &[packed(a), packed(b)]), wanted as u32);
            prop_assert_eq!(run(op, &[vector, vector], &[spread(a), spread(b)].concat()), wanted as u32);
            let all = if signs.0 {
                (wanted + i64::from(before)).clamp(i32::MIN.into(), i32::MAX.into()) as u32
            } else {
                (wanted + i64::from(before.cast_unsigned())).clamp(0, u32::MAX.into()) as u32
            };
            let found = run(sat, &[int, int, int], &[packed(a), packed(b), before.cast_unsigned()]);
            prop_assert_eq!(found, all);
        }
    }
}
