//! Texel conversion as IR operations for known formats, equivalent to [`decode`](crate::image::decode) and
//! [`encode`](crate::image::encode).

use smallvec::SmallVec;

use crate::image::{ChannelBits, Class, Format, Numeric};
use crate::ir::{Builder, Op, Type, Value, Width};

/// Whether reads of the format become loads of words.
pub(super) fn reads(format: Format) -> bool {
    let numbers = [Numeric::Unorm, Numeric::Snorm, Numeric::Uint, Numeric::Sint, Numeric::Sfloat, Numeric::Ufloat];
    let whole = matches!(format.bytes(), 1 | 2) || format.bytes().is_multiple_of(4);
    whole && numbers.contains(&format.numeric())
}

/// Width of the loads and stores for a texel.
pub(super) fn width(format: Format) -> Width {
    match format.bytes() {
        1 => Width::Byte,
        2 => Width::Half,
        _ => Width::Word,
    }
}

/// Whether writes of the format become stores of words.
pub(super) fn writes(format: Format) -> bool {
    reads(format) && format.numeric() != Numeric::Ufloat
}

fn whole_words(format: Format) -> bool {
    format.channels().iter().all(|part| part.bits == 32)
}

/// Type of the loaded words.
pub(super) fn word_type(format: Format) -> Type {
    if whole_words(format) && format.class() == Class::Float { Type::F32 } else { Type::I32 }
}

/// Decodes a texel.
pub(super) fn decode(b: &mut Builder, format: Format, words: [Value; 4]) -> [Value; 4] {
    let float = format.class() == Class::Float;
    let (zero, one) = if float { (b.constant(0f32), b.constant(1f32)) } else { (b.constant(0u32), b.constant(1u32)) };
    let mut texel = [zero, zero, zero, one];
    for &part in format.channels().iter().filter(|part| part.channel < 4) {
        let word = words[usize::from(part.shift / 32)];
        texel[usize::from(part.channel)] =
            if part.bits == 32 { word } else { decode_channel(b, format.numeric(), part, word) };
    }
    texel
}

fn decode_channel(b: &mut Builder, numeric: Numeric, part: ChannelBits, word: Value) -> Value {
    match numeric {
        Numeric::Unorm => {
            let code = unsigned(b, part, word);
            let code = b.pure(Op::UIntToFloat, &[code]);
            quotient(b, code, ((1u32 << part.bits) - 1) as f32)
        }
        Numeric::Snorm => {
            let code = signed(b, part, word);
            let code = b.pure(Op::SIntToFloat, &[code]);
            let value = quotient(b, code, ((1u32 << (part.bits - 1)) - 1) as f32);
            let lowest = b.constant(-1f32);
            b.pure(Op::FMax, &[value, lowest])
        }
        Numeric::Sint => signed(b, part, word),
        Numeric::Sfloat => {
            let code = unsigned(b, part, word);
            b.pure(Op::HalfFromBits, &[code])
        }
        Numeric::Ufloat => {
            let code = unsigned(b, part, word);
            let shift = b.constant(u32::from(15 - part.bits));
            let half = b.pure(Op::Shl, &[code, shift]);
            b.pure(Op::HalfFromBits, &[half])
        }
        _ => unsigned(b, part, word),
    }
}

/// A code divided by the largest code, correctly rounded: the quotient's error is computed exactly and corrected.
fn quotient(b: &mut Builder, code: Value, max_code: f32) -> Value {
    let (reciprocal, divisor) = (b.constant(1.0 / max_code), b.constant(-max_code));
    let approximation = b.pure(Op::FMul, &[code, reciprocal]);
    let residual = b.pure(Op::Fma, &[approximation, divisor, code]);
    b.pure(Op::Fma, &[residual, reciprocal, approximation])
}

fn shifted(b: &mut Builder, op: Op, value: Value, by: u8) -> Value {
    if by == 0 {
        return value;
    }
    let by = b.constant(u32::from(by));
    b.pure(op, &[value, by])
}

fn unsigned(b: &mut Builder, part: ChannelBits, word: Value) -> Value {
    let shift = part.shift % 32;
    let low = shifted(b, Op::LShr, word, shift);
    if shift + part.bits == 32 {
        return low;
    }
    let mask = b.constant((1u32 << part.bits) - 1);
    b.pure(Op::And, &[low, mask])
}

fn signed(b: &mut Builder, part: ChannelBits, word: Value) -> Value {
    let top = shifted(b, Op::Shl, word, 32 - part.shift % 32 - part.bits);
    shifted(b, Op::AShr, top, 32 - part.bits)
}

/// Encodes a texel.
pub(super) fn encode(b: &mut Builder, format: Format, texel: [Value; 4]) -> SmallVec<[Value; 4]> {
    let mut words: SmallVec<[Option<Value>; 4]> = smallvec::smallvec![None; format.bytes().div_ceil(4) as usize];
    for &part in format.channels().iter().filter(|part| part.channel < 4) {
        let value = texel[usize::from(part.channel)];
        let code = if part.bits == 32 { value } else { encode_channel(b, format.numeric(), part, value) };
        let code = shifted(b, Op::Shl, code, part.shift % 32);
        let word = &mut words[usize::from(part.shift / 32)];
        *word = Some(match *word {
            None => code,
            Some(others) => b.pure(Op::Or, &[others, code]),
        });
    }
    words.into_iter().map(|word| word.unwrap_or_else(|| b.constant(0u32))).collect()
}

/// A code with zeros above it.
fn encode_channel(b: &mut Builder, numeric: Numeric, part: ChannelBits, value: Value) -> Value {
    let mask = b.constant((1u32 << part.bits) - 1);
    match numeric {
        Numeric::Unorm => {
            let code = scaled(b, value, 0.0, ((1u32 << part.bits) - 1) as f32);
            b.pure(Op::RoundToSInt, &[code])
        }
        Numeric::Snorm => {
            let code = scaled(b, value, -1.0, ((1u32 << (part.bits - 1)) - 1) as f32);
            let code = b.pure(Op::RoundToSInt, &[code]);
            b.pure(Op::And, &[code, mask])
        }
        Numeric::Sfloat => b.pure(Op::HalfBits, &[value]),
        // Vulkan leaves integers out of range undefined; WGSL clamps them (its chapter on texel formats).
        Numeric::Sint => {
            let max = (1u32 << (part.bits - 1)) - 1;
            let [min, max] = [!max, max].map(|number| b.constant(number));
            let clamped = b.pure(Op::SMin, &[value, max]);
            let clamped = b.pure(Op::SMax, &[clamped, min]);
            b.pure(Op::And, &[clamped, mask])
        }
        Numeric::Uint => b.pure(Op::UMin, &[value, mask]),
        _ => b.pure(Op::And, &[value, mask]),
    }
}

/// Clamps to `low` and 1, and multiplies by the largest code; 0 for NaN.
fn scaled(b: &mut Builder, mut value: Value, low: f32, max_code: f32) -> Value {
    // FMax(low, NaN) is `low`: 0 for Unorm, but -1 for Snorm, so there NaN is replaced first.
    if low != 0.0 {
        let zero = b.constant(0f32);
        let is_number = b.pure(Op::FOrdEq, &[value, value]);
        value = b.select(is_number, value, zero);
    }
    let [low, one, max_code] = [low, 1.0, max_code].map(|number: f32| b.constant(number));
    // A clamp, except that -0 may become 0: in this operand order machines have a single instruction for each.
    let clamped = b.pure(Op::FMax, &[low, value]);
    let clamped = b.pure(Op::FMin, &[clamped, one]);
    b.pure(Op::FMul, &[clamped, max_code])
}
