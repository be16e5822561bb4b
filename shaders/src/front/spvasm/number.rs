//! Literals: integers and floats of any width that SPIR-V has, decimal and hexadecimal.

use std::fmt;

use super::lexer::SpvasmToken;
use crate::front::Error;

/// The type that determines how a literal is parsed and how many words it takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberType {
    /// `OpTypeInt`.
    Int { bits: u32, signed: bool },
    /// `OpTypeFloat`.
    Float { bits: u32 },
}

impl NumberType {
    /// Whether literals of the type can be encoded.
    fn is_known(self) -> bool {
        match self {
            Self::Int { bits, .. } => matches!(bits, 8 | 16 | 32 | 64),
            Self::Float { bits } => matches!(bits, 16 | 32 | 64),
        }
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int { bits, signed: true } => write!(f, "a signed {bits}-bit integer"),
            Self::Int { bits, signed: false } => write!(f, "an unsigned {bits}-bit integer"),
            Self::Float { bits } => write!(f, "a {bits}-bit float"),
        }
    }
}

/// A 32-bit word, decimal or hexadecimal.
pub(super) fn raw(text: &str) -> Option<u32> {
    match hexadecimal(text) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Appends the words of a literal: low word first, narrow integers extended by their sign.
pub(super) fn encode(ty: NumberType, token: SpvasmToken<'_>, words: &mut Vec<u32>) -> Result<(), Error> {
    if !ty.is_known() {
        return Err(token.error(format!("no literals of {ty} are known")));
    }
    let (value, bits) = match ty {
        NumberType::Int { bits, signed } => (integer(token.text, bits, signed), bits),
        NumberType::Float { bits } => (float(token.text, bits), bits),
    };
    let value = value.ok_or_else(|| token.error(format!("`{}` is not {ty}", token.text)))?;
    words.push(value as u32);
    if bits > 32 {
        words.push((value >> 32) as u32);
    }
    Ok(())
}

fn hexadecimal(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// An integer of `bits`, extended to 64. Hexadecimal digits are the bits, decimal digits a number in range.
fn integer(text: &str, bits: u32, signed: bool) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // The digit parsers would accept a second sign.
    if digits.starts_with(['+', '-']) || (negative && !signed) {
        return None;
    }
    let unused = 64 - bits;
    if let Some(digits) = hexadecimal(digits) {
        let value = u64::from_str_radix(digits, 16).ok().filter(|value| value << unused >> unused == *value)?;
        let value = if negative { value.wrapping_neg() } else { value };
        return Some(if signed { extend(value, unused) } else { value });
    }
    let magnitude: i128 = digits.parse().ok()?;
    let value = if negative { -magnitude } else { magnitude };
    let range = if signed { -(1 << (bits - 1))..1 << (bits - 1) } else { 0..1i128 << bits };
    range.contains(&value).then_some(value as u64)
}

fn extend(value: u64, unused: u32) -> u64 {
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}

/// The bits of a float: decimal in Rust's syntax, hexadecimal as `0x1.8p+3`.
fn float(text: &str, bits: u32) -> Option<u64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if let Some(digits) = hexadecimal(unsigned) {
        let magnitude = hexadecimal_float(digits, bits)?;
        return Some(magnitude | u64::from(text.starts_with('-')) << (bits - 1));
    }
    // Rust accepts `inf` and `nan`, too.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    match bits {
        16 => text.parse().ok().map(half::f16::from_f64).filter(|f| f.is_finite()).map(|f| u64::from(f.to_bits())),
        32 => text.parse().ok().filter(|f: &f32| f.is_finite()).map(|f| u64::from(f.to_bits())),
        _ => text.parse().ok().filter(|f: &f64| f.is_finite()).map(f64::to_bits),
    }
}

/// `1.8p+3`, exact: more digits than the format has are rejected. One more than the largest finite exponent stands for
/// infinity or, with a fraction, for a NaN with the fraction's bits.
fn hexadecimal_float(text: &str, bits: u32) -> Option<u64> {
    let fraction_bits: i32 = match bits {
        16 => 10,
        32 => 23,
        _ => 52,
    };
    let bias = (1 << (bits.cast_signed() - 2 - fraction_bits)) - 1;
    let (digits, exponent) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.unsigned_abs() < 100_000)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.len() > 16 || whole.starts_with('+') || fraction.starts_with('+') {
        return None;
    }
    let mantissa = u128::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    if mantissa == 0 {
        return Some(0);
    }
    // value = mantissa * 2^scale; its leading bit has the weight 2^(scale + top).
    let scale = exponent - 4 * fraction.len() as i32;
    let top = mantissa.ilog2().cast_signed();
    let leading = scale + top;
    if leading > bias + 1 {
        return None;
    }
    // The last bit of the result has the weight 2^last; subnormals share the smallest one.
    let last = leading.max(1 - bias) - fraction_bits;
    let significand = shift_exact(mantissa, scale - last)?;
    let hidden = 1u64 << fraction_bits;
    let biased = if significand < hidden { 0 } else { (leading + bias).cast_unsigned() };
    Some(significand & (hidden - 1) | u64::from(biased) << fraction_bits)
}

/// `value * 2^by` if that is a whole number of at most 64 bits.
fn shift_exact(value: u128, by: i32) -> Option<u64> {
    let distance = by.unsigned_abs();
    let shifted = if by >= 0 {
        value.checked_shl(distance).filter(|shifted| shifted >> distance == value)?
    } else {
        value.checked_shr(distance).filter(|shifted| shifted << distance == value)?
    };
    u64::try_from(shifted).ok()
}
