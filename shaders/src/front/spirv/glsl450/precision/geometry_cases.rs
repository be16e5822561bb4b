//! Vectors and matrices of GLSL.std.450, by formulas in double precision.

use crate::front::spirv::scalar::Scalar;
use spirv::GlslStd450Op as Glsl;

use super::error::{CorrectResult, near, sum};
use super::float_cases::float;
use super::{AnyInst, ArithmeticType, Case, InputSet};
use crate::front::spirv::arithmetic::testing::{FLOAT, VEC3};

const MAT2: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 2, rows: 2 };
const MAT3: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 3, rows: 3 };
const MAT4: ArithmeticType = ArithmeticType::Matrix { element: Scalar::F32, columns: 4, rows: 4 };
const ONE: &[(ArithmeticType, InputSet)] = &[(VEC3, InputSet::Moderate)];
const TWO: &[(ArithmeticType, InputSet)] = &[(VEC3, InputSet::Moderate), (VEC3, InputSet::Moderate)];
const THREE: &[(ArithmeticType, InputSet)] =
    &[(VEC3, InputSet::Moderate), (VEC3, InputSet::Moderate), (VEC3, InputSet::Moderate)];
const BEND: &[(ArithmeticType, InputSet)] =
    &[(VEC3, InputSet::Between(-0.5, 0.5)), (VEC3, InputSet::Between(-0.5, 0.5)), (FLOAT, InputSet::Between(0.3, 2.0))];

pub(super) fn cases() -> Vec<Case> {
    let case = |instruction, result, operands, bound, rule, reference| Case {
        which: AnyInst::Glsl(instruction),
        result,
        operands,
        reference,
        bound,
        rule,
    };
    vec![
        case(Glsl::Length, FLOAT, ONE, 3.0, "as `sqrt(dot(x, x))`", |bits| vec![near(length(vector(bits)))]),
        case(Glsl::Distance, FLOAT, TWO, 3.0, "as `length(x - y)`", distance),
        case(Glsl::Cross, VEC3, TWO, 2.0, "two products and a difference ¹", cross),
        case(Glsl::Normalize, VEC3, ONE, 4.0, "as `x / length(x)`", normalize),
        case(Glsl::FaceForward, VEC3, THREE, 0.0, "exact but for the sign of the product", face_forward),
        case(Glsl::Reflect, VEC3, TWO, 8.0, "`i - 2 * dot(n, i) * n` ¹", reflect),
        case(Glsl::Refract, VEC3, BEND, 32.0, "its formula, each step rounded ¹", refract),
        case(Glsl::Determinant, FLOAT, &[(MAT2, InputSet::Moderate)], 2.0, "products and sums ¹", determinant::<2>),
        case(Glsl::Determinant, FLOAT, &[(MAT3, InputSet::Moderate)], 4.0, "products and sums ¹", determinant::<3>),
        case(Glsl::Determinant, FLOAT, &[(MAT4, InputSet::Moderate)], 6.0, "products and sums ¹", determinant::<4>),
        case(Glsl::MatrixInverse, MAT2, &[(MAT2, InputSet::Dominant(2))], 16.0, "products and sums ²", inverse::<2>),
        case(Glsl::MatrixInverse, MAT3, &[(MAT3, InputSet::Dominant(3))], 16.0, "products and sums ²", inverse::<3>),
        case(Glsl::MatrixInverse, MAT4, &[(MAT4, InputSet::Dominant(4))], 16.0, "products and sums ²", inverse::<4>),
    ]
}

fn vector(bits: &[u32]) -> [f64; 3] {
    [0, 1, 2].map(|i| float(bits[i]))
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The sum of the magnitudes of a dot product's terms.
fn weight(a: [f64; 3], b: [f64; 3]) -> f64 {
    dot(a.map(f64::abs), b.map(f64::abs))
}

fn length(a: [f64; 3]) -> f64 {
    a[0].hypot(a[1]).hypot(a[2])
}

fn distance(bits: &[u32]) -> Vec<CorrectResult> {
    let (a, b) = (vector(bits), vector(&bits[3..]));
    vec![near(length([0, 1, 2].map(|i| a[i] - b[i])))]
}

fn cross(bits: &[u32]) -> Vec<CorrectResult> {
    let (a, b) = (vector(bits), vector(&bits[3..]));
    [(1, 2), (2, 0), (0, 1)].map(|(i, j)| sum(&[a[i] * b[j], -a[j] * b[i]])).into()
}

fn normalize(bits: &[u32]) -> Vec<CorrectResult> {
    let a = vector(bits);
    a.map(|component| near(component / length(a))).into()
}

fn face_forward(bits: &[u32]) -> Vec<CorrectResult> {
    let (incident, reference) = (vector(&bits[3..]), vector(&bits[6..]));
    let product = dot(incident, reference);
    if product.abs() < 1e-5 * weight(incident, reference) {
        return vec![CorrectResult::Open; 3];
    }
    let flip = if product < 0.0 { 0 } else { 1 << 31 };
    bits[..3].iter().map(|&n| CorrectResult::Bits(n ^ flip)).collect()
}

fn reflect(bits: &[u32]) -> Vec<CorrectResult> {
    let (i, n) = (vector(bits), vector(&bits[3..]));
    (0..3)
        .map(|k| CorrectResult::Near {
            value: i[k] - 2.0 * dot(n, i) * n[k],
            scale: i[k].abs() + 2.0 * weight(n, i) * n[k].abs(),
        })
        .collect()
}

fn refract(bits: &[u32]) -> Vec<CorrectResult> {
    let (i, n, eta) = (vector(bits), vector(&bits[3..]), float(bits[6]));
    let product = dot(n, i);
    let k = 1.0 - eta * eta * (1.0 - product * product);
    // The root's error grows without limit towards k = 0.
    if k.abs() < 0.05 {
        return vec![CorrectResult::Open; 3];
    }
    if k < 0.0 {
        return vec![CorrectResult::Bits(0); 3];
    }
    let bent = |c: usize| eta * i[c] - (eta * product + k.sqrt()) * n[c];
    let scale = |c: usize| (eta * i[c]).abs() + (eta * weight(n, i) + k.sqrt()) * n[c].abs();
    (0..3).map(|c| CorrectResult::Near { value: bent(c), scale: scale(c) }).collect()
}

fn square<const N: usize>(bits: &[u32]) -> [[f64; N]; N] {
    std::array::from_fn(|column| std::array::from_fn(|row| float(bits[column * N + row])))
}

/// By the formula of Leibniz: the sum over all permutations.
fn determinant<const N: usize>(bits: &[u32]) -> Vec<CorrectResult> {
    let matrix = square::<N>(bits);
    let mut terms = Vec::new();
    permute(&mut std::array::from_fn(|i| i), 0, 1.0, &mut |rows: &[usize; N], sign| {
        terms.push(rows.iter().zip(&matrix).map(|(&row, column)| column[row]).product::<f64>() * sign);
    });
    vec![sum(&terms)]
}

fn permute<const N: usize>(order: &mut [usize; N], from: usize, sign: f64, visit: &mut impl FnMut(&[usize; N], f64)) {
    if from == N {
        return visit(order, sign);
    }
    for other in from..N {
        order.swap(from, other);
        permute(order, from + 1, if other == from { sign } else { -sign }, visit);
        order.swap(from, other);
    }
}

/// By elimination, measured by the largest element.
fn inverse<const N: usize>(bits: &[u32]) -> Vec<CorrectResult> {
    let mut left = square::<N>(bits);
    let mut right: [[f64; N]; N] = std::array::from_fn(|i| std::array::from_fn(|j| f64::from(u8::from(i == j))));
    for pivot in 0..N {
        let factor = left[pivot][pivot].recip();
        left[pivot] = left[pivot].map(|value| value * factor);
        right[pivot] = right[pivot].map(|value| value * factor);
        for other in (0..N).filter(|&other| other != pivot) {
            let factor = left[other][pivot];
            for k in 0..N {
                left[other][k] -= factor * left[pivot][k];
                right[other][k] -= factor * right[pivot][k];
            }
        }
    }
    let scale = right.iter().flatten().fold(0f64, |largest, value| largest.max(value.abs()));
    right.iter().flatten().map(|&value| CorrectResult::Near { value, scale }).collect()
}
