//! Edge cases of every core instruction, and shapes of invalid modules.

use spirv::Op as Spv;

use super::testing::{AnyInst, BOOL, FLOAT, INT, VEC2, VEC3, VEC4, apply, builder, evaluate};
use super::{ArithmeticType, OperandValues};
use crate::front::spirv::scalar::Scalar;
use crate::ir::Value;

const INT2: ArithmeticType = ArithmeticType::Vector(Scalar::I32, 2);
const BOOL2: ArithmeticType = ArithmeticType::Vector(Scalar::Bool, 2);
const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const ALL: u32 = u32::MAX;

fn run(op: Spv, result: ArithmeticType, shapes: &[ArithmeticType], bits: &[u32]) -> Result<Vec<u32>, String> {
    evaluate(&mut builder(), AnyInst::Core(op), result, shapes, bits)
}

/// Each row: an instruction, the bits of its scalar operands, the bits of the result.
fn check(result: ArithmeticType, shapes: &[ArithmeticType], lines: &[(Spv, &[u32], u32)]) {
    for &(op, bits, wanted) in lines {
        assert_eq!(run(op, result, shapes, bits), Ok(vec![wanted]), "Op{op:?} of {bits:x?}");
    }
}

fn neg(a: u32) -> u32 {
    a.wrapping_neg()
}

#[test]
fn integers_wrap_and_divide_by_zero_to_zero() {
    check(
        INT,
        &[INT],
        &[
            (Spv::SNegate, &[MIN], MIN),
            (Spv::SNegate, &[5], neg(5)),
            (Spv::Not, &[0xf0f0_f0f0], 0x0f0f_0f0f),
            (Spv::BitReverse, &[1], MIN),
            (Spv::BitCount, &[ALL], 32),
            (Spv::BitCount, &[0], 0),
        ],
    );
    check(
        INT,
        &[INT, INT],
        &[
            (Spv::IAdd, &[ALL, 2], 1),
            (Spv::ISub, &[1, 2], ALL),
            (Spv::IMul, &[0x10001, 0x10001], 0x20001),
            (Spv::UDiv, &[7, 2], 3),
            (Spv::UDiv, &[7, 0], 0),
            (Spv::SDiv, &[neg(7), 2], neg(3)),
            (Spv::SDiv, &[MIN, ALL], MIN),
            (Spv::SDiv, &[7, 0], 0),
            (Spv::UMod, &[7, 4], 3),
            (Spv::UMod, &[7, 0], 0),
            (Spv::SRem, &[neg(7), 4], neg(3)),
            (Spv::SRem, &[7, neg(4)], 3),
            (Spv::SRem, &[MIN, ALL], 0),
            (Spv::SMod, &[neg(7), 4], 1),
            (Spv::SMod, &[7, neg(4)], ALL),
            (Spv::SMod, &[neg(8), 4], 0),
            (Spv::SMod, &[MIN, ALL], 0),
            (Spv::SMod, &[7, 0], 0),
        ],
    );
}

#[test]
fn shifts_count_modulo_32() {
    check(
        INT,
        &[INT, INT],
        &[
            (Spv::ShiftLeftLogical, &[3, 31], MIN),
            (Spv::ShiftLeftLogical, &[3, 33], 6),
            (Spv::ShiftRightLogical, &[MIN, 31], 1),
            (Spv::ShiftRightLogical, &[MIN, 32], MIN),
            (Spv::ShiftRightArithmetic, &[MIN, 31], ALL),
            (Spv::ShiftRightArithmetic, &[MAX, 31], 0),
            (Spv::BitwiseAnd, &[0b1100, 0b1010], 0b1000),
            (Spv::BitwiseOr, &[0b1100, 0b1010], 0b1110),
            (Spv::BitwiseXor, &[0b1100, 0b1010], 0b0110),
        ],
    );
}

#[test]
fn bit_fields_are_cut_at_the_end_of_the_word() {
    check(
        INT,
        &[INT; 4],
        &[
            (Spv::BitFieldInsert, &[0, ALL, 4, 8], 0xff0),
            (Spv::BitFieldInsert, &[ALL, 0, 0, 32], 0),
            (Spv::BitFieldInsert, &[5, ALL, 3, 0], 5),
            (Spv::BitFieldInsert, &[0, ALL, 28, 8], 0xf000_0000),
            (Spv::BitFieldInsert, &[5, ALL, 32, 1], 5),
            (Spv::BitFieldInsert, &[5, ALL, ALL, ALL], 5),
            (Spv::BitFieldInsert, &[5, 7, 0, ALL], 7),
        ],
    );
    check(
        INT,
        &[INT; 3],
        &[
            (Spv::BitFieldUExtract, &[0x1234_5678, 8, 8], 0x56),
            (Spv::BitFieldUExtract, &[ALL, 0, 32], ALL),
            (Spv::BitFieldUExtract, &[ALL, 0, 0], 0),
            (Spv::BitFieldUExtract, &[ALL, 28, 8], 0xf),
            (Spv::BitFieldUExtract, &[ALL, 40, 8], 0),
            (Spv::BitFieldSExtract, &[0x1234_56f8, 0, 8], 0xffff_fff8),
            (Spv::BitFieldSExtract, &[0x1234_5678, 0, 8], 0x78),
            (Spv::BitFieldSExtract, &[MIN, 0, 32], MIN),
            (Spv::BitFieldSExtract, &[ALL, 4, 0], 0),
            (Spv::BitFieldSExtract, &[MIN, 28, 8], 0xffff_fff8),
            (Spv::BitFieldSExtract, &[MIN, ALL, ALL], ALL),
        ],
    );
    let shapes = [INT2, INT2, INT, INT];
    assert_eq!(run(Spv::BitFieldInsert, INT2, &shapes, &[0, 1, 2, 3, 4, 4]), Ok(vec![0x20, 0x31]));
}

#[test]
fn two_results_come_low_part_first() {
    let both = |op, a, b| run(op, INT, &[INT, INT], &[a, b]);
    assert_eq!(both(Spv::IAddCarry, ALL, 2), Ok(vec![1, 1]));
    assert_eq!(both(Spv::IAddCarry, 1, 2), Ok(vec![3, 0]));
    assert_eq!(both(Spv::ISubBorrow, 1, 2), Ok(vec![ALL, 1]));
    assert_eq!(both(Spv::ISubBorrow, 2, 2), Ok(vec![0, 0]));
    assert_eq!(both(Spv::UMulExtended, ALL, ALL), Ok(vec![1, ALL - 1]));
    assert_eq!(both(Spv::SMulExtended, ALL, ALL), Ok(vec![1, 0]));
    assert_eq!(both(Spv::SMulExtended, MIN, 2), Ok(vec![0, ALL]));
    assert_eq!(run(Spv::IAddCarry, INT2, &[INT2, INT2], &[ALL, 1, 1, 1]), Ok(vec![0, 2, 1, 0]));
}

#[test]
fn comparisons_know_signs_and_nan() {
    let ints: &[(Spv, [bool; 3])] = &[
        (Spv::IEqual, [false, true, false]),
        (Spv::INotEqual, [true, false, true]),
        (Spv::ULessThan, [true, false, false]),
        (Spv::ULessThanEqual, [true, true, false]),
        (Spv::UGreaterThan, [false, false, true]),
        (Spv::UGreaterThanEqual, [false, true, true]),
        (Spv::SLessThan, [false, false, true]),
        (Spv::SLessThanEqual, [false, true, true]),
        (Spv::SGreaterThan, [true, false, false]),
        (Spv::SGreaterThanEqual, [true, true, false]),
    ];
    for &(op, wanted) in ints {
        let found = [[1, ALL], [3, 3], [ALL, 1]].map(|bits| run(op, BOOL, &[INT, INT], &bits));
        assert_eq!(found, wanted.map(|wanted| Ok(vec![u32::from(wanted)])), "Op{op:?}");
    }
    let floats: &[(Spv, [bool; 5])] = &[
        (Spv::FOrdEqual, [false, true, false, false, true]),
        (Spv::FOrdNotEqual, [true, false, true, false, false]),
        (Spv::FOrdLessThan, [true, false, false, false, false]),
        (Spv::FOrdLessThanEqual, [true, true, false, false, true]),
        (Spv::FOrdGreaterThan, [false, false, true, false, false]),
        (Spv::FOrdGreaterThanEqual, [false, true, true, false, true]),
        (Spv::FUnordEqual, [false, true, false, true, true]),
        (Spv::FUnordNotEqual, [true, false, true, true, false]),
        (Spv::FUnordLessThan, [true, false, false, true, false]),
        (Spv::FUnordLessThanEqual, [true, true, false, true, true]),
        (Spv::FUnordGreaterThan, [false, false, true, true, false]),
        (Spv::FUnordGreaterThanEqual, [false, true, true, true, true]),
    ];
    let pairs = [[1.0, 2.0], [1.0, 1.0], [2.0, 1.0], [f32::NAN, 1.0], [0.0, -0.0]];
    for &(op, wanted) in floats {
        let found = pairs.map(|pair| run(op, BOOL, &[FLOAT, FLOAT], &pair.map(f32::to_bits)));
        assert_eq!(found, wanted.map(|wanted| Ok(vec![u32::from(wanted)])), "Op{op:?}");
    }
}

#[test]
fn float_classes_and_signed_zeros() {
    let class = |op, a: f32| run(op, BOOL, &[FLOAT], &[a.to_bits()]);
    assert_eq!([f32::NAN, f32::INFINITY, 0.0].map(|a| class(Spv::IsNan, a)), [1, 0, 0].map(|bit| Ok(vec![bit])));
    assert_eq!([f32::NAN, -f32::INFINITY, 0.0].map(|a| class(Spv::IsInf, a)), [0, 1, 0].map(|bit| Ok(vec![bit])));
    check(
        FLOAT,
        &[FLOAT],
        &[
            (Spv::FNegate, &[0f32.to_bits()], MIN),
            (Spv::FNegate, &[0x7fc0_0001], 0xffc0_0001),
            (Spv::QuantizeToF16, &[65520f32.to_bits()], f32::INFINITY.to_bits()),
            (Spv::QuantizeToF16, &[(-6.1e-5f32).to_bits()], MIN),
        ],
    );
    let pair = |a: f32, b: f32| vec![a.to_bits(), b.to_bits()];
    check(
        FLOAT,
        &[FLOAT, FLOAT],
        &[
            (Spv::FRem, &pair(-4.0, 2.0), MIN),
            (Spv::FMod, &pair(-4.0, 2.0), 0),
            (Spv::FMod, &pair(4.0, -2.0), MIN),
            (Spv::FMod, &pair(-1.0, 3.0), 2f32.to_bits()),
            (Spv::FRem, &pair(-1.0, 3.0), (-1f32).to_bits()),
            (Spv::FRem, &pair(5.0, f32::INFINITY), 5f32.to_bits()),
        ],
    );
}

#[test]
fn conversions_saturate_and_bits_stay() {
    let cases: &[(f32, i32, u32)] = &[
        (-1.9, -1, 0),
        (2.9, 2, 2),
        (3e9, i32::MAX, 3_000_000_000),
        (5e9, i32::MAX, ALL),
        (-3e9, i32::MIN, 0),
        (f32::NEG_INFINITY, i32::MIN, 0),
        (f32::NAN, 0, 0),
    ];
    for &(a, signed, unsigned) in cases {
        assert_eq!(run(Spv::ConvertFToS, INT, &[FLOAT], &[a.to_bits()]), Ok(vec![signed.cast_unsigned()]));
        assert_eq!(run(Spv::ConvertFToU, INT, &[FLOAT], &[a.to_bits()]), Ok(vec![unsigned]));
    }
    assert_eq!(run(Spv::Bitcast, INT2, &[VEC2], &[ALL, 1]), Ok(vec![ALL, 1]));
    assert_eq!(run(Spv::Bitcast, FLOAT, &[INT], &[0x7f80_0001]), Ok(vec![0x7f80_0001]));
    assert_eq!(run(Spv::Bitcast, INT, &[INT], &[9]), Ok(vec![9]));
    for (result, operand) in [(INT, VEC2), (BOOL, INT), (INT, BOOL)] {
        let bits = vec![0; operand.len()];
        assert!(run(Spv::Bitcast, result, &[operand], &bits).unwrap_err().starts_with("OpBitcast: "));
    }
    assert!(run(Spv::UConvert, INT, &[INT], &[1]).unwrap_err().starts_with("OpUConvert: "));
}

#[test]
fn booleans_and_choices() {
    let ops: &[(Spv, [u32; 4])] = &[
        (Spv::LogicalAnd, [0, 0, 0, 1]),
        (Spv::LogicalOr, [0, 1, 1, 1]),
        (Spv::LogicalEqual, [1, 0, 0, 1]),
        (Spv::LogicalNotEqual, [0, 1, 1, 0]),
    ];
    for &(op, wanted) in ops {
        let found = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|bits| run(op, BOOL, &[BOOL, BOOL], &bits));
        assert_eq!(found, wanted.map(|bit| Ok(vec![bit])), "Op{op:?}");
    }
    assert_eq!(run(Spv::LogicalNot, BOOL2, &[BOOL2], &[0, 1]), Ok(vec![1, 0]));
    assert_eq!([[0, 1], [0, 0]].map(|bits| run(Spv::Any, BOOL, &[BOOL2], &bits)), [Ok(vec![1]), Ok(vec![0])]);
    assert_eq!([[0, 1], [1, 1]].map(|bits| run(Spv::All, BOOL, &[BOOL2], &bits)), [Ok(vec![0]), Ok(vec![1])]);
    assert_eq!(run(Spv::Select, INT2, &[BOOL2, INT2, INT2], &[0, 1, 2, 3, 4, 5]), Ok(vec![4, 3]));
    assert_eq!(run(Spv::Select, INT2, &[BOOL, INT2, INT2], &[1, 2, 3, 4, 5]), Ok(vec![2, 3]));
    assert!(run(Spv::Select, INT2, &[INT, INT2, INT2], &[1, 2, 3, 4, 5]).is_err());
}

#[test]
fn matrices_go_column_by_column() {
    let floats = |values: &[u8]| values.iter().map(|&value| f32::from(value).to_bits()).collect::<Vec<_>>();
    let matrix = |columns, rows| ArithmeticType::Matrix { element: Scalar::F32, columns, rows };
    let run = |op, result, shapes: &[ArithmeticType], values: &[u8]| run(op, result, shapes, &floats(values));
    let m32 = matrix(3, 2);
    assert_eq!(run(Spv::Transpose, matrix(2, 3), &[m32], &[1, 2, 3, 4, 5, 6]), Ok(floats(&[1, 3, 5, 2, 4, 6])));
    assert_eq!(
        run(Spv::MatrixTimesScalar, m32, &[m32, FLOAT], &[1, 2, 3, 4, 5, 6, 2]),
        Ok(floats(&[2, 4, 6, 8, 10, 12]))
    );
    assert_eq!(run(Spv::VectorTimesScalar, VEC2, &[VEC2, FLOAT], &[1, 2, 3]), Ok(floats(&[3, 6])));
    assert_eq!(run(Spv::MatrixTimesVector, VEC2, &[m32, VEC3], &[1, 2, 3, 4, 5, 6, 1, 0, 2]), Ok(floats(&[11, 14])));
    assert_eq!(run(Spv::OuterProduct, m32, &[VEC2, VEC3], &[1, 2, 3, 4, 5]), Ok(floats(&[3, 6, 4, 8, 5, 10])));
    for result in [VEC2, VEC4, m32] {
        let refused = run(Spv::MatrixTimesVector, result, &[m32, VEC2], &[0; 8]).unwrap_err();
        assert!(refused.starts_with("OpMatrixTimesVector: "), "{refused}");
    }
}

const SHAPES: &[ArithmeticType] = &[
    BOOL,
    INT,
    FLOAT,
    ArithmeticType::Scalar(Scalar::F64),
    BOOL2,
    INT2,
    VEC2,
    VEC3,
    VEC4,
    ArithmeticType::Vector(Scalar::F32, 0),
    ArithmeticType::Vector(Scalar::Bool, 0),
    ArithmeticType::Matrix { element: Scalar::F32, columns: 2, rows: 2 },
    ArithmeticType::Matrix { element: Scalar::F32, columns: 3, rows: 2 },
    ArithmeticType::Matrix { element: Scalar::F32, columns: 2, rows: 0 },
    ArithmeticType::Matrix { element: Scalar::F32, columns: 5, rows: 5 },
];

/// Arbitrary shapes for every instruction give an error that names it or a result of the right shape.
#[test]
fn no_shape_is_trusted() {
    let core = (0..500).filter_map(Spv::from_u32).map(AnyInst::Core);
    let extended = (1..=81).filter_map(spirv::GlslStd450Op::from_u32).map(AnyInst::Glsl);
    let mut accepted = 0;
    for which in core.chain(extended) {
        for count in 0..=4u32 {
            for number in 0..if count < 2 { 15u32.pow(count + 1) } else { 900 } {
                // Two or more operands: a sample of the combinations, often with equal shapes.
                let number = if count < 2 { number } else { number.wrapping_mul(0x9e37_79b1) >> 4 };
                let pick = |place: u32| SHAPES[(number / 15u32.pow(place % 5) % 15) as usize];
                let shapes: Vec<_> = (1..=count).map(|place| pick(if number % 3 == 0 { 1 } else { place })).collect();
                accepted += usize::from(holds(which, pick(0), &shapes));
            }
        }
    }
    assert!(accepted > 500, "{accepted}");
}

fn holds(which: AnyInst, result: ArithmeticType, shapes: &[ArithmeticType]) -> bool {
    let builder = &mut builder();
    let block = builder.current();
    let values: Vec<Vec<Value>> = shapes
        .iter()
        .map(|shape| (0..shape.len()).map(|_| builder.add_param(block, shape.element().ty())).collect())
        .collect();
    let operands: Vec<_> = shapes.iter().zip(&values).map(|(&shape, values)| OperandValues { values, shape }).collect();
    match apply(builder, which, result, &operands) {
        None => false,
        Some(Ok(values)) => {
            // The exponents of doubles have 32 bits.
            let both = [2 * result.len(), result.len() + result.scalars()].contains(&values.len());
            assert!(values.len() == result.len() || both, "{which:?} {shapes:?}");
            assert!(values[..result.len()].iter().all(|&value| builder.ty(value) == result.element().ty()));
            true
        }
        Some(Err(problem)) => {
            let name = match which {
                AnyInst::Core(op) => format!("Op{op:?}: "),
                AnyInst::Glsl(instruction) => format!("GLSL.std.450 {instruction:?}: "),
            };
            assert!(problem.starts_with(&name), "{problem}");
            false
        }
    }
}
