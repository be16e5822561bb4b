//! Conversions between numbers of all widths. Defined for every input: out-of-range values saturate, NaN becomes 0.

use spirv::Op as Spv;

use super::call::{expect, with_element};
use super::widths::{Doubles, Longs, cut, resized, select, sign_resized, signed};
use super::{ArithmeticResult, Call, Num};
use crate::front::spirv::scalar::Scalar;
use crate::ir::{Builder, Op, Value};

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    Some(match op {
        Spv::ConvertFToU => {
            each(call, Scalar::is_float, Scalar::is_int, |builder, a, to| to_integer(builder, a, to, false))
        }
        Spv::ConvertFToS => {
            each(call, Scalar::is_float, Scalar::is_int, |builder, a, to| to_integer(builder, a, to, true))
        }
        Spv::ConvertUToF => {
            each(call, Scalar::is_int, Scalar::is_float, |builder, a, to| to_float(builder, a, to, false))
        }
        Spv::ConvertSToF => {
            each(call, Scalar::is_int, Scalar::is_float, |builder, a, to| to_float(builder, a, to, true))
        }
        Spv::UConvert => different(call).and_then(|()| each(call, Scalar::is_int, Scalar::is_int, resized)),
        Spv::SConvert => different(call).and_then(|()| each(call, Scalar::is_int, Scalar::is_int, sign_resized)),
        // SPIR-V forbids equal widths, but `glslang` has produced such modules and other drivers accept them.
        Spv::FConvert => each(call, Scalar::is_float, Scalar::is_float, float_to_float),
        Spv::QuantizeToF16 => call.each(Op::QuantizeF16),
        Spv::Bitcast => super::bitcast::bitcast(call),
        _ => return None,
    })
}

/// `OpFConvert` with `FPRoundingMode RTZ`, which Vulkan allows only for results of 16 bits.
pub(super) fn towards_zero(call: &mut Call<'_>) -> ArithmeticResult {
    if call.result.element() != Scalar::F16 {
        return Err("rounds towards zero, but not to a half".into());
    }
    different(call)?;
    each(call, Scalar::is_float, Scalar::is_float, |builder, a, _| {
        let float = if a.ty == Scalar::F64 { odd_float(builder, a) } else { a.low };
        Num::new(Scalar::F16, half_towards_zero(builder, float))
    })
}

/// Rounds a float to a half towards zero.
pub(in super::super) fn half_towards_zero(builder: &mut Builder, float: Value) -> Value {
    let nearest = builder.pure(Op::RoundHalf, &[float]);
    let [rounded, exact] = [nearest, float].map(|value| builder.pure(Op::FAbs, &[value]));
    let is_beyond = builder.pure(Op::FOrdLt, &[exact, rounded]);
    let bits = builder.pure(Op::HalfBits, &[nearest]);
    let one = builder.constant(1u32);
    let before = builder.pure(Op::ISub, &[bits, one]);
    let before = builder.pure(Op::HalfFromBits, &[before]);
    builder.select(is_beyond, before, nearest)
}

/// SPIR-V requires different widths of operand and result.
fn different(call: &Call<'_>) -> Result<(), String> {
    let [operand] = call.operands()?;
    if operand.shape.element() == call.result.element() {
        return Err("converts between different widths, but both are the same".into());
    }
    Ok(())
}

fn each(
    call: &mut Call<'_>,
    from: fn(Scalar) -> bool,
    to: fn(Scalar) -> bool,
    convert: impl Fn(&mut Builder, Num, Scalar) -> Num,
) -> ArithmeticResult {
    let [operand] = call.operands()?;
    let (is, becomes) = (operand.shape.element(), call.result.element());
    if !from(is) || !to(becomes) {
        return Err(format!("does not convert {is} to {becomes}"));
    }
    expect(0, operand.shape, with_element(call.result, is)?)?;
    Ok(operand.values.iter().map(|&value| convert(call.builder, value, becomes)).collect())
}

/// Rounds towards zero, saturating.
fn to_integer(builder: &mut Builder, a: Num, to: Scalar, sign: bool) -> Num {
    match (a.ty, to) {
        (Scalar::F64, _) => double_to_integer(builder, a, to, sign),
        (_, Scalar::I64) => float_to_long(builder, a.low, sign),
        (_, to) => {
            let op = if sign { Op::FloatToSInt } else { Op::FloatToUInt };
            let word = builder.pure(op, &[a.low]);
            narrowed(builder, word, to, sign)
        }
    }
}

/// A 32-bit word, clamped to the range of a smaller integer.
fn narrowed(builder: &mut Builder, word: Value, to: Scalar, sign: bool) -> Num {
    if to.bits() == 32 {
        return Num::new(to, word);
    }
    let max = (1u32 << (to.bits() - u32::from(sign))) - 1;
    let high = builder.constant(max);
    let clamped = if sign {
        let low = builder.constant(!max);
        builder.pure(Op::SClamp, &[word, low, high])
    } else {
        builder.pure(Op::UMin, &[word, high])
    };
    let low = cut(builder, clamped, to);
    Num::new(to, low)
}

/// Both words of a float's magnitude: the high one first, then the remainder.
fn float_to_long(builder: &mut Builder, a: Value, sign: bool) -> Num {
    let magnitude = if sign { builder.pure(Op::FAbs, &[a]) } else { a };
    let (down, up) = (builder.constant((-32f32).exp2()), builder.constant(32f32.exp2()));
    let high = builder.pure(Op::FMul, &[magnitude, down]);
    let high = builder.pure(Op::FloatToUInt, &[high]);
    let above = builder.pure(Op::UIntToFloat, &[high]);
    let above = builder.pure(Op::FMul, &[above, up]);
    let low = builder.pure(Op::FSub, &[magnitude, above]);
    let low = builder.pure(Op::FloatToUInt, &[low]);
    let limit = builder.constant(64f32.exp2());
    let too_large = builder.pure(Op::FOrdLe, &[limit, magnitude]);
    let zero = builder.constant(0f32);
    let negative = builder.pure(Op::FOrdLt, &[a, zero]);
    finish_long(builder, [low, high], too_large, sign.then_some(negative))
}

/// Applies the sign to a magnitude, saturating.
fn finish_long(builder: &mut Builder, pair: [Value; 2], too_large: Value, negative: Option<Value>) -> Num {
    let mut longs = Longs { builder };
    let all = longs.word(u32::MAX);
    let pair = longs.pick(too_large, [all, all], pair);
    let Some(negative) = negative else { return Num::wide(Scalar::I64, pair) };
    let zero = longs.word(0);
    let beyond = longs.op(Op::SLt, [pair[1], zero]);
    let (max, min) = (longs.word(u32::MAX >> 1), longs.word(1 << 31));
    let clamped = longs.pick(negative, [zero, min], [all, max]);
    let pair = longs.pick(beyond, clamped, pair);
    let negated = longs.neg(pair);
    Num::wide(Scalar::I64, longs.pick(negative, negated, pair))
}

/// Adds a constant that shifts the integer into the low word.
fn double_to_integer(builder: &mut Builder, a: Num, to: Scalar, sign: bool) -> Num {
    let mut doubles = Doubles { builder };
    let pair = a.words();
    let zero = doubles.constant(0.0);
    let number = doubles.compare(Op::DEq, pair, pair);
    let pair = doubles.pick(number, pair, zero);
    if to != Scalar::I64 {
        let (low, high, magic) = match sign {
            true => (f64::from(i32::MIN), f64::from(i32::MAX), 1.5 * 52f64.exp2()),
            false => (0.0, f64::from(u32::MAX), 52f64.exp2()),
        };
        let (low, high, magic) = (doubles.constant(low), doubles.constant(high), doubles.constant(magic));
        let below = doubles.compare(Op::DLt, pair, low);
        let clamped = doubles.pick(below, low, pair);
        let above = doubles.compare(Op::DLt, high, clamped);
        let clamped = doubles.pick(above, high, clamped);
        let whole = doubles.trunc(clamped);
        let [word, _] = doubles.add(whole, magic);
        return narrowed(builder, word, to, sign);
    }
    let magnitude = if sign { doubles.magnitude(pair) } else { pair };
    let below = doubles.compare(Op::DLt, magnitude, zero);
    let magnitude = doubles.pick(below, zero, magnitude);
    let whole = doubles.trunc(magnitude);
    let (down, up, magic) =
        (doubles.constant((-32f64).exp2()), doubles.constant(32f64.exp2()), doubles.constant(52f64.exp2()));
    let high = doubles.mul(whole, down);
    let high = doubles.floor(high);
    let above = doubles.mul(high, up);
    let low = doubles.sub(whole, above);
    let [low, _] = doubles.add(low, magic);
    let [high, _] = doubles.add(high, magic);
    let limit = doubles.constant(64f64.exp2());
    let too_large = doubles.compare(Op::DLe, limit, magnitude);
    let negative = doubles.compare(Op::DLt, pair, zero);
    finish_long(builder, [low, high], too_large, sign.then_some(negative))
}

/// The nearest float, ties to even.
fn to_float(builder: &mut Builder, a: Num, to: Scalar, sign: bool) -> Num {
    match to {
        Scalar::F64 => to_double(builder, a, sign),
        // Words above 2²⁴ are rounded, but all of those overflow a half anyway.
        Scalar::F16 => {
            let float = to_float(builder, a, Scalar::F32, sign);
            let half = builder.pure(Op::RoundHalf, &[float.low]);
            Num::new(to, half)
        }
        _ if a.ty == Scalar::I64 => long_to_float(builder, a, sign),
        _ => {
            let word = if sign { signed(builder, a) } else { a.low };
            let value = builder.pure(if sign { Op::SIntToFloat } else { Op::UIntToFloat }, &[word]);
            Num::new(Scalar::F32, value)
        }
    }
}

/// Converts the highest 32 bits, with the lowest one set if any lower bit is (sticky bit): one rounding.
fn long_to_float(builder: &mut Builder, a: Num, sign: bool) -> Num {
    let mut longs = Longs { builder };
    let zero = longs.word(0);
    let negative = longs.op(Op::SLt, [a.high, zero]);
    let magnitude = if sign { longs.magnitude(a.words()) } else { a.words() };
    let (thirty_one, sixty_four) = (longs.word(31), longs.word(64));
    let top = longs.op(Op::FindUMsb, [magnitude[1]]);
    // 32 if the high word is 0: this shifts the low word into its place.
    let up = longs.op(Op::ISub, [thirty_one, top]);
    let [rest, word] = longs.shift(Op::Shl, magnitude, up);
    let more = longs.op(Op::INe, [rest, zero]);
    let more = longs.op(Op::BoolToInt, [more]);
    let word = longs.op(Op::Or, [word, more]);
    let float = longs.op(Op::UIntToFloat, [word]);
    // Multiplies by 2 to the power of 32 minus the shift.
    let (bias, place) = (longs.word(127 - 32), longs.word(23));
    let exponent = longs.op(Op::ISub, [sixty_four, up]);
    let exponent = longs.op(Op::IAdd, [exponent, bias]);
    let bits = longs.op(Op::Shl, [exponent, place]);
    let factor = longs.op(Op::FloatFromBits, [bits]);
    let value = longs.op(Op::FMul, [float, factor]);
    let value = Num::new(Scalar::F32, value);
    if !sign {
        return value;
    }
    let negated = builder.pure(Op::FNeg, &[value.low]);
    select(builder, negative, Num::new(Scalar::F32, negated), value)
}

/// Places words into the low bits of large doubles, then subtracts the offsets.
fn to_double(builder: &mut Builder, a: Num, sign: bool) -> Num {
    let small = if sign { signed(builder, a) } else { a.low };
    let mut doubles = Doubles { builder };
    let (low_mark, high_mark) = (doubles.word(0x4330_0000), doubles.word(0x4530_0000));
    let flip = doubles.word(1 << 31);
    let pair = if a.ty == Scalar::I64 {
        let (high, less) = match sign {
            true => (doubles.op(Op::Xor, [a.high, flip]), 84f64.exp2() + 63f64.exp2() + 52f64.exp2()),
            false => (a.high, 84f64.exp2() + 52f64.exp2()),
        };
        let less = doubles.constant(less);
        let high = doubles.sub([high, high_mark], less);
        doubles.add(high, [a.low, low_mark])
    } else {
        let (word, less) = match sign {
            true => (doubles.op(Op::Xor, [small, flip]), 52f64.exp2() + 31f64.exp2()),
            false => (small, 52f64.exp2()),
        };
        let less = doubles.constant(less);
        doubles.sub([word, low_mark], less)
    };
    Num::wide(Scalar::F64, pair)
}

fn float_to_float(builder: &mut Builder, a: Num, to: Scalar) -> Num {
    match (a.ty, to) {
        (from, to) if from == to => a,
        (Scalar::F64, Scalar::F32) => {
            let value = builder.pure(Op::DToFloat, &a.words());
            Num::new(to, value)
        }
        (Scalar::F64, _) => double_to_half(builder, a),
        (_, Scalar::F64) => {
            let pair = [Op::DFromFloatLow, Op::DFromFloatHigh].map(|op| builder.pure(op, &[a.low]));
            Num::wide(to, pair)
        }
        (Scalar::F32, _) => {
            let value = builder.pure(Op::RoundHalf, &[a.low]);
            Num::new(Scalar::F16, value)
        }
        // Halves are kept as 32-bit floats.
        (_, to) => Num::new(to, a.low),
    }
}

/// Rounds to a float (to odd) first, then to a half: together one correct rounding.
fn double_to_half(builder: &mut Builder, a: Num) -> Num {
    let float = odd_float(builder, a);
    let half = builder.pure(Op::RoundHalf, &[float]);
    Num::new(Scalar::F16, half)
}

/// A double as a float, rounded to odd: towards zero, with the last bit set if inexact.
fn odd_float(builder: &mut Builder, a: Num) -> Value {
    let nearest = builder.pure(Op::DToFloat, &a.words());
    let back = [Op::DFromFloatLow, Op::DFromFloatHigh].map(|op| builder.pure(op, &[nearest]));
    let mut doubles = Doubles { builder };
    let exact = doubles.compare(Op::DEq, back, a.words());
    let number = doubles.compare(Op::DEq, a.words(), a.words());
    let [there, here] = [doubles.magnitude(back), doubles.magnitude(a.words())];
    let above = doubles.compare(Op::DLt, here, there);
    let bits = builder.pure(Op::FloatBits, &[nearest]);
    let down = builder.pure(Op::BoolToInt, &[above]);
    let bits = builder.pure(Op::ISub, &[bits, down]);
    let one = builder.constant(1u32);
    let odd = builder.pure(Op::Or, &[bits, one]);
    let odd = builder.pure(Op::FloatFromBits, &[odd]);
    let inexact = builder.pure(Op::LNot, &[exact]);
    let inexact = builder.pure(Op::LAnd, &[inexact, number]);
    builder.select(inexact, odd, nearest)
}
