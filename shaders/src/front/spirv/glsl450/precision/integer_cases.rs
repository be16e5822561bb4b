//! Integers and packed components of GLSL.std.450.

use spirv::GlslStd450Op as Glsl;

use super::error::{CorrectResult, near};
use super::float_cases::float;
use super::{AnyInst, ArithmeticType, Case, InputSet};
use crate::front::spirv::arithmetic::testing::{INT, VEC2, VEC4};

const ONE: &[(ArithmeticType, InputSet)] = &[(INT, InputSet::Int)];
const TWO: &[(ArithmeticType, InputSet)] = &[(INT, InputSet::Int), (INT, InputSet::Int)];
const THREE: &[(ArithmeticType, InputSet)] = &[(INT, InputSet::Int), (INT, InputSet::Int), (INT, InputSet::Int)];
const PAIR: &[(ArithmeticType, InputSet)] = &[(VEC2, InputSet::Between(-1.5, 1.5))];
const FOUR: &[(ArithmeticType, InputSet)] = &[(VEC4, InputSet::Between(-1.5, 1.5))];
const HALVES: &[(ArithmeticType, InputSet)] = &[(VEC2, InputSet::Float)];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = integers();
    cases.extend(packing());
    cases
}

fn case(
    instruction: Glsl,
    result: ArithmeticType,
    operands: &'static [(ArithmeticType, InputSet)],
    bound: f64,
    reference: fn(&[u32]) -> Vec<CorrectResult>,
) -> Case {
    let rule = if bound == 0.0 { "exact" } else { "correctly rounded" };
    Case { which: AnyInst::Glsl(instruction), result, operands, reference, bound, rule }
}

macro_rules! signed {
    ($instruction:ident, $operands:ident, |$a:ident $(, $rest:ident)*| $value:expr) => {
        case(Glsl::$instruction, INT, $operands, 0.0, |bits| {
            let mut wide = bits.iter().map(|&bits| i64::from(bits.cast_signed()));
            let $a = wide.next().unwrap();
            $(let $rest = wide.next().unwrap();)*
            vec![CorrectResult::Bits($value as u32)]
        })
    };
}

macro_rules! unsigned {
    ($instruction:ident, $operands:ident, |$a:ident $(, $rest:ident)*| $value:expr) => {
        case(Glsl::$instruction, INT, $operands, 0.0, |bits| {
            let mut wide = bits.iter().map(|&bits| i64::from(bits));
            let $a = wide.next().unwrap();
            $(let $rest = wide.next().unwrap();)*
            vec![CorrectResult::Bits($value as u32)]
        })
    };
}

fn integers() -> Vec<Case> {
    vec![
        signed!(SAbs, ONE, |a| if a < 0 { -a } else { a }),
        signed!(SSign, ONE, |a| i64::from(a > 0) - i64::from(a < 0)),
        unsigned!(UMin, TWO, |a, b| a.min(b)),
        signed!(SMin, TWO, |a, b| a.min(b)),
        unsigned!(UMax, TWO, |a, b| a.max(b)),
        signed!(SMax, TWO, |a, b| a.max(b)),
        unsigned!(UClamp, THREE, |a, low, high| a.max(low).min(high)),
        signed!(SClamp, THREE, |a, low, high| a.max(low).min(high)),
        unsigned!(FindILsb, ONE, |a| (0..32).find(|bit| a >> bit & 1 == 1).unwrap_or(-1)),
        unsigned!(FindUMsb, ONE, |a| (0..32).rev().find(|bit| a >> bit & 1 == 1).unwrap_or(-1)),
        signed!(FindSMsb, ONE, |a| (0..32).rev().find(|bit| (a >> bit & 1 == 1) != (a < 0)).unwrap_or(-1)),
    ]
}

fn packing() -> Vec<Case> {
    vec![
        case(Glsl::PackSnorm4x8, INT, FOUR, 0.0, |bits| packed(bits, 8, -1.0, 127.0)),
        case(Glsl::PackUnorm4x8, INT, FOUR, 0.0, |bits| packed(bits, 8, 0.0, 255.0)),
        case(Glsl::PackSnorm2x16, INT, PAIR, 0.0, |bits| packed(bits, 16, -1.0, 32767.0)),
        case(Glsl::PackUnorm2x16, INT, PAIR, 0.0, |bits| packed(bits, 16, 0.0, 65535.0)),
        case(Glsl::PackHalf2x16, INT, HALVES, 0.0, |bits| {
            let halves = [half(float(bits[0])), half(float(bits[1]))];
            if bits.iter().any(|&bits| float(bits).is_nan()) {
                return vec![CorrectResult::Open];
            }
            vec![CorrectResult::Bits(halves[0] | (halves[1] << 16))]
        }),
        case(Glsl::UnpackSnorm4x8, VEC4, ONE, 0.5, |bits| unpacked(bits[0], 8, true)),
        case(Glsl::UnpackUnorm4x8, VEC4, ONE, 0.5, |bits| unpacked(bits[0], 8, false)),
        case(Glsl::UnpackSnorm2x16, VEC2, ONE, 0.5, |bits| unpacked(bits[0], 16, true)),
        case(Glsl::UnpackUnorm2x16, VEC2, ONE, 0.5, |bits| unpacked(bits[0], 16, false)),
        case(Glsl::UnpackHalf2x16, VEC2, ONE, 0.0, |bits| {
            vec![near(half_value(bits[0] & 0xffff)), near(half_value(bits[0] >> 16))]
        }),
    ]
}

fn packed(bits: &[u32], width: u32, low: f64, scale: f64) -> Vec<CorrectResult> {
    let fields = bits.iter().zip(0u32..).map(|(&bits, number)| {
        // The product is a float; it is rounded to an integer after that.
        let product = f64::from((float(bits).clamp(low, 1.0) * scale) as f32);
        let field = nearest_even(product) as i64 as u32 & ((1u32 << width) - 1);
        field << (number * width)
    });
    vec![CorrectResult::Bits(fields.sum())]
}

fn unpacked(word: u32, width: u32, signed: bool) -> Vec<CorrectResult> {
    (0..32 / width)
        .map(|number| {
            let field = f64::from((word >> (number * width)) & ((1 << width) - 1));
            let (whole, half) = (2f64.powi(width as i32), 2f64.powi(width as i32 - 1));
            let value = if signed && field >= half { field - whole } else { field };
            near(if signed { (value / (half - 1.0)).max(-1.0) } else { value / (whole - 1.0) })
        })
        .collect()
}

fn nearest_even(a: f64) -> f64 {
    // Adding a number whose last place is 1 leaves no room for a fraction.
    let magic = 1.5 * 2f64.powi(52);
    a + magic - magic
}

/// The bits of the half nearest to `a`.
pub(super) fn half(a: f64) -> u32 {
    let sign = if a.is_sign_negative() { 0x8000 } else { 0 };
    let exponent = (((a.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(-14);
    if a.is_nan() || exponent > 15 {
        return sign | if a.is_nan() { 0x7e00 } else { 0x7c00 };
    }
    // Units of the last place, with the implicit bit; a carry goes into the exponent as it should.
    let units = nearest_even(a.abs() * 2f64.powi(10 - exponent)) as u32;
    sign | (units + ((exponent + 14) as u32 * 0x400))
}

/// The number that the bits of a half stand for.
pub(super) fn half_value(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 0x1f) as i32, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}
