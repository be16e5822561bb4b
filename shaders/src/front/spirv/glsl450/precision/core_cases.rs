//! Core float arithmetic and conversions.

use crate::front::spirv::scalar::Scalar;
use spirv::Op as Spv;

use super::error::{CorrectResult, near, sum};
use super::float_cases::float;
use super::integer_cases::{half, half_value};
use super::{AnyInst, ArithmeticType, Case, InputSet};
use crate::front::spirv::arithmetic::testing::{FLOAT, INT, VEC2, VEC3};

const MAT32: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 3, rows: 2 };
const MAT23: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 2, rows: 3 };
const MAT33: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 3, rows: 3 };
const ONE: &[(ArithmeticType, InputSet)] = &[(FLOAT, InputSet::Float)];
const TWO: &[(ArithmeticType, InputSet)] = &[(FLOAT, InputSet::Float), (FLOAT, InputSet::Float)];
const FROM_INT: &[(ArithmeticType, InputSet)] = &[(INT, InputSet::Int)];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = scalar();
    cases.extend(linear());
    cases
}

fn case(
    op: Spv,
    result: ArithmeticType,
    operands: &'static [(ArithmeticType, InputSet)],
    bound: f64,
    rule: &'static str,
    reference: fn(&[u32]) -> Vec<CorrectResult>,
) -> Case {
    Case { which: AnyInst::Core(op), result, operands, reference, bound, rule }
}

fn scalar() -> Vec<Case> {
    // Doubles have more than twice the digits of floats: rounding their result again gives the correctly rounded float.
    let rounded = "correctly rounded";
    vec![
        case(Spv::FAdd, FLOAT, TWO, 0.5, rounded, |bits| vec![near(float(bits[0]) + float(bits[1]))]),
        case(Spv::FSub, FLOAT, TWO, 0.5, rounded, |bits| vec![near(float(bits[0]) - float(bits[1]))]),
        case(Spv::FMul, FLOAT, TWO, 0.5, rounded, |bits| vec![near(float(bits[0]) * float(bits[1]))]),
        case(Spv::FDiv, FLOAT, TWO, 0.501, "2.5", |bits| vec![near(float(bits[0]) / float(bits[1]))]),
        case(Spv::FRem, FLOAT, TWO, 0.0, "as `x - y * trunc(x / y)`", |bits| {
            vec![near(float(bits[0]) % float(bits[1]))]
        }),
        case(Spv::FMod, FLOAT, TWO, 0.501, "as `x - y * floor(x / y)`", |bits| {
            let (a, b) = (float(bits[0]), float(bits[1]));
            let rem = a % b;
            vec![near(if rem * b.signum() < 0.0 { rem + b } else { rem })]
        }),
        case(Spv::QuantizeToF16, FLOAT, ONE, 0.0, "correctly rounded to 16 bits", |bits| {
            let denormal = float(bits[0]).abs() < half_value(0x03ff) + half_value(0x0001) / 2.0;
            vec![near(if denormal { 0.0 } else { half_value(half(float(bits[0]))) })]
        }),
        case(Spv::ConvertSToF, FLOAT, FROM_INT, 0.5, rounded, |bits| vec![near(f64::from(bits[0].cast_signed()))]),
        case(Spv::ConvertUToF, FLOAT, FROM_INT, 0.5, rounded, |bits| vec![near(f64::from(bits[0]))]),
        case(Spv::ConvertFToS, INT, ONE, 0.0, "exact; open out of range", |bits| {
            vec![CorrectResult::Bits(whole(bits[0], -2147483648.0, 2147483647.0) as u32)]
        }),
        case(Spv::ConvertFToU, INT, ONE, 0.0, "exact; open out of range", |bits| {
            vec![CorrectResult::Bits(whole(bits[0], 0.0, 4294967295.0) as u32)]
        }),
    ]
}

/// Truncates and clamps; 0 for NaN.
fn whole(bits: u32, low: f64, high: f64) -> i64 {
    let a = float(bits).clamp(low, high);
    if a.is_nan() { 0 } else { (a - a % 1.0) as i64 }
}

fn linear() -> Vec<Case> {
    let rule = "products and sums ¹";
    vec![
        case(Spv::Dot, FLOAT, &[(VEC3, InputSet::Moderate), (VEC3, InputSet::Moderate)], 3.0, rule, |bits| {
            product(bits, &bits[3..], [1, 3, 1])
        }),
        case(
            Spv::VectorTimesMatrix,
            VEC3,
            &[(VEC2, InputSet::Moderate), (MAT32, InputSet::Moderate)],
            2.0,
            rule,
            |bits| product(bits, &bits[2..], [1, 2, 3]),
        ),
        case(
            Spv::MatrixTimesVector,
            VEC2,
            &[(MAT32, InputSet::Moderate), (VEC3, InputSet::Moderate)],
            3.0,
            rule,
            |bits| product(bits, &bits[6..], [2, 3, 1]),
        ),
        case(
            Spv::MatrixTimesMatrix,
            MAT33,
            &[(MAT23, InputSet::Moderate), (MAT32, InputSet::Moderate)],
            2.0,
            rule,
            |bits| product(bits, &bits[6..], [3, 2, 3]),
        ),
        case(
            Spv::OuterProduct,
            MAT32,
            &[(VEC2, InputSet::Moderate), (VEC3, InputSet::Moderate)],
            0.5,
            "one product",
            |bits| product(bits, &bits[2..], [2, 1, 3]),
        ),
    ]
}

/// `rows × inner` times `inner × columns`, both column by column.
fn product(a: &[u32], b: &[u32], [rows, inner, columns]: [usize; 3]) -> Vec<CorrectResult> {
    let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
    places
        .map(|(column, row)| {
            let terms: Vec<f64> = (0..inner).map(|k| float(a[k * rows + row]) * float(b[column * inner + k])).collect();
            sum(&terms)
        })
        .collect()
}
