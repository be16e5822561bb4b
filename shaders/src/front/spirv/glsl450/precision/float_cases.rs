//! GLSL.std.450 on floats, one component at a time.

use spirv::GlslStd450Op as Glsl;

use super::error::{CorrectResult, near, sum};
use super::{AnyInst, ArithmeticType, Case, InputSet};
use crate::front::spirv::arithmetic::testing::{FLOAT, INT};

const EXACT: f64 = 0.0;
const ROUNDED: f64 = 0.5;
/// Rounded to double precision first.
const TWICE: f64 = 0.501;

const ONE: &[(ArithmeticType, InputSet)] = &[(FLOAT, InputSet::Float)];
const TWO: &[(ArithmeticType, InputSet)] = &[(FLOAT, InputSet::Float), (FLOAT, InputSet::Float)];
const THREE: &[(ArithmeticType, InputSet)] =
    &[(FLOAT, InputSet::Float), (FLOAT, InputSet::Float), (FLOAT, InputSet::Float)];
const MIX: &[(ArithmeticType, InputSet)] =
    &[(FLOAT, InputSet::Moderate), (FLOAT, InputSet::Moderate), (FLOAT, InputSet::Moderate)];
const BLEND: &[(ArithmeticType, InputSet)] = &[
    (FLOAT, InputSet::Between(-1.0, 0.0)),
    (FLOAT, InputSet::Between(0.5, 2.0)),
    (FLOAT, InputSet::Between(-2.0, 3.0)),
];

pub(super) fn float(bits: u32) -> f64 {
    f64::from(f32::from_bits(bits))
}

fn case(
    instruction: Glsl,
    operands: &'static [(ArithmeticType, InputSet)],
    bound: f64,
    rule: &'static str,
    reference: fn(&[u32]) -> Vec<CorrectResult>,
) -> Case {
    Case { which: AnyInst::Glsl(instruction), result: FLOAT, operands, reference, bound, rule }
}

macro_rules! of {
    ($instruction:ident, $bound:expr, $rule:literal, |$a:ident| $value:expr) => {
        case(Glsl::$instruction, ONE, $bound, $rule, |bits| {
            let $a = float(bits[0]);
            vec![near($value)]
        })
    };
    ($instruction:ident, $bound:expr, $rule:literal, |$a:ident, $b:ident| $value:expr) => {
        case(Glsl::$instruction, TWO, $bound, $rule, |bits| {
            let ($a, $b) = (float(bits[0]), float(bits[1]));
            vec![near($value)]
        })
    };
    ($instruction:ident, $bound:expr, $rule:literal, |$a:ident, $b:ident, $c:ident| $value:expr) => {
        case(Glsl::$instruction, THREE, $bound, $rule, |bits| {
            let ($a, $b, $c) = (float(bits[0]), float(bits[1]), float(bits[2]));
            vec![near($value)]
        })
    };
}

pub(super) fn cases() -> Vec<Case> {
    [rounding(), choosing(), blending(), trigonometry(), exponentials(), parts()].into_iter().flatten().collect()
}

fn rounding() -> Vec<Case> {
    // Adding a half and going down breaks ties upwards; an odd result of a tie is one too many.
    fn even(a: f64) -> f64 {
        let up = (a + 0.5).floor();
        if up - a == 0.5 && up % 2.0 != 0.0 { up - 1.0 } else { up }
    }
    vec![
        of!(Round, EXACT, "exact, ties either way", |a| even(a)),
        of!(RoundEven, EXACT, "exact", |a| even(a)),
        of!(Trunc, EXACT, "exact", |a| if a < 0.0 { a.ceil() } else { a.floor() }),
        of!(Floor, EXACT, "exact", |a| -(-a).ceil()),
        of!(Ceil, EXACT, "exact", |a| -(-a).floor()),
        of!(Fract, ROUNDED, "`x - floor(x)`", |a| if a.is_infinite() { f64::NAN } else { a.rem_euclid(1.0) }),
        of!(FAbs, EXACT, "exact", |a| if a < 0.0 { -a } else { a }),
        of!(FSign, EXACT, "exact", |a| if a == 0.0 { a } else { a.signum() }),
        of!(Radians, 2.0, "`x * (π / 180)`, two roundings", |a| a.to_radians()),
        of!(Degrees, 2.0, "`x * (180 / π)`, two roundings", |a| a.to_degrees()),
    ]
}

fn choosing() -> Vec<Case> {
    fn clamp(a: f64, low: f64, high: f64) -> f64 {
        a.max(low).min(high)
    }
    vec![
        of!(FMin, EXACT, "exact; either of a number and NaN", |a, b| a.min(b)),
        of!(FMax, EXACT, "exact; either of a number and NaN", |a, b| a.max(b)),
        of!(FClamp, EXACT, "exact", |a, b, c| clamp(a, b, c)),
        of!(NMin, EXACT, "exact; the number, not NaN", |a, b| a.min(b)),
        of!(NMax, EXACT, "exact; the number, not NaN", |a, b| a.max(b)),
        of!(NClamp, EXACT, "exact", |a, b, c| clamp(a, b, c)),
        of!(Step, EXACT, "exact", |a, b| if b < a { 0.0 } else { 1.0 }),
    ]
}

fn blending() -> Vec<Case> {
    vec![
        case(Glsl::FMix, MIX, 3.0, "`x * (1 - a) + y * a`, each rounded", |bits| {
            let (a, b, t) = (float(bits[0]), float(bits[1]), float(bits[2]));
            // 1 - t is rounded too, by up to half a unit of the larger of its terms.
            vec![CorrectResult::Near { value: a + (b - a) * t, scale: a.abs() * (1.0 + t.abs()) + (b * t).abs() }]
        }),
        case(Glsl::SmoothStep, BLEND, 6.0, "`t * t * (3 - 2 * t)`, each rounded", |bits| {
            let (low, high, a) = (float(bits[0]), float(bits[1]), float(bits[2]));
            let t = ((a - low) / (high - low)).clamp(0.0, 1.0);
            vec![near(3.0 * t * t - 2.0 * t * t * t)]
        }),
        of!(Fma, TWICE, "`a * b + c`, one rounding or two", |a, b, c| a * b + c),
    ]
}

fn trigonometry() -> Vec<Case> {
    vec![
        of!(Sin, TWICE, "absolute error 2^-11 in [-π, π]", |a| a.sin()),
        of!(Cos, TWICE, "absolute error 2^-11 in [-π, π]", |a| a.cos()),
        of!(Tan, TWICE, "as `sin(x) / cos(x)`", |a| a.tan()),
        of!(Asin, TWICE, "as `atan2(x, sqrt(1 - x * x))`", |a| a.asin()),
        of!(Acos, TWICE, "as `atan2(sqrt(1 - x * x), x)`", |a| a.acos()),
        of!(Atan, TWICE, "4096", |a| a.atan()),
        of!(Atan2, TWICE, "4096", |a, b| a.atan2(b)),
        of!(Sinh, TWICE, "as `(exp(x) - exp(-x)) * 0.5`", |a| a.sinh()),
        of!(Cosh, TWICE, "as `(exp(x) + exp(-x)) * 0.5`", |a| a.cosh()),
        of!(Tanh, TWICE, "as `sinh(x) / cosh(x)`", |a| a.tanh()),
        of!(Asinh, TWICE, "as `log(x + sqrt(x * x + 1))`", |a| a.asinh()),
        of!(Acosh, TWICE, "as `log(x + sqrt(x * x - 1))`", |a| a.acosh()),
        of!(Atanh, TWICE, "as `log((1 + x) / (1 - x)) * 0.5`", |a| a.atanh()),
    ]
}

fn exponentials() -> Vec<Case> {
    vec![
        of!(Pow, TWICE, "as `exp2(y * log2(x))`", |a, b| a.powf(b)),
        of!(Exp, TWICE, "3 + 2 × \\|x\\|", |a| a.exp()),
        of!(Exp2, TWICE, "3 + 2 × \\|x\\|", |a| a.exp2()),
        of!(Log, TWICE, "3; absolute error 2^-21 in [0.5, 2]", |a| a.ln()),
        of!(Log2, TWICE, "3; absolute error 2^-21 in [0.5, 2]", |a| a.log2()),
        of!(Sqrt, ROUNDED, "as `1 / inversesqrt(x)`", |a| a.sqrt()),
        of!(InverseSqrt, TWICE, "2", |a| a.sqrt().recip()),
    ]
}

fn parts() -> Vec<Case> {
    fn modf(bits: &[u32]) -> Vec<CorrectResult> {
        let a = float(bits[0]);
        vec![near(if a.is_infinite() { 0.0 } else { a % 1.0 }), near(a - if a.is_infinite() { 0.0 } else { a % 1.0 })]
    }
    fn frexp(bits: &[u32]) -> Vec<CorrectResult> {
        let a = float(bits[0]);
        if a == 0.0 || !a.is_finite() {
            return vec![near(a), CorrectResult::Bits(0)];
        }
        // Every float is a normal double, whose exponent field says the answer.
        let exponent = ((a.to_bits() >> 52) & 0x7ff) as i32 - 1022;
        vec![near(a * 2f64.powi(-exponent)), CorrectResult::Bits(exponent.cast_unsigned())]
    }
    vec![
        case(Glsl::Modf, ONE, EXACT, "exact", modf),
        case(Glsl::ModfStruct, ONE, EXACT, "exact", modf),
        case(Glsl::Frexp, ONE, EXACT, "exact", frexp),
        case(Glsl::FrexpStruct, ONE, EXACT, "exact", frexp),
        case(
            Glsl::Ldexp,
            &[(FLOAT, InputSet::Float), (INT, InputSet::Exponent)],
            ROUNDED,
            "correctly rounded",
            |bits| vec![sum(&[float(bits[0]) * 2f64.powi(bits[1].cast_signed())])],
        ),
    ]
}
