//! Each operation on special and random values against [`Op::fold`].

use spelter_shaders::back::x86::Isa;
use spelter_shaders::ir::{Op, Type};

use super::{engines, head, run, run_on};

/// Values at which operations change their mind.
pub(super) const SPECIAL: [u32; 45] = [
    0,
    1,
    2,
    3,
    15,
    16,
    31,
    32,
    33,
    0x7f,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_fffe,
    0x0000_ffff,
    0x0080_0000, // the smallest normal float
    0x007f_ffff, // the largest denormal
    0x3f80_0000, // 1
    0xbf80_0000, // -1
    0x3f00_0000, // 0.5
    0x3fc0_0000, // 1.5
    0x4020_0000, // 2.5
    0xbfc0_0000, // -1.5
    0x4f00_0000, // 2^31
    0x4eff_ffff, // below 2^31
    0xcf00_0000, // -2^31
    0xcf00_0001, // below -2^31
    0x4f80_0000, // 2^32
    0x4f7f_ffff, // below 2^32
    0x7f7f_ffff, // the largest float
    0x7f80_0000, // infinity
    0xff80_0000,
    0x7fc0_0000, // NaN
    0xffc0_1234,
    0x7f80_0001, // a signalling NaN
    0x477f_f000, // above the largest half
    0x3380_0000, // half of the smallest half
    0x7ff0_0000, // of doubles: infinity, 1, 2^52, -0.5, a denormal
    0x3ff0_0000,
    0x4330_0000,
    0xbfe0_0000,
    0x000f_ffff,
];

/// Operations on lanes that the back end has.
pub(super) const LANE_OPS: &[&str] = &[
    "iadd",
    "isub",
    "imul",
    "umul_high",
    "smul_high",
    "ineg",
    "sabs",
    "umin",
    "umax",
    "smin",
    "smax",
    "ieq",
    "ine",
    "ult",
    "ule",
    "slt",
    "sle",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "lshr",
    "ashr",
    "bit_count",
    "find_umsb",
    "fadd",
    "fsub",
    "fmul",
    "fdiv",
    "fneg",
    "fma",
    "fabs",
    "fmin",
    "fmax",
    "sqrt",
    "ford_eq",
    "ford_ne",
    "ford_lt",
    "ford_le",
    "funord_eq",
    "funord_ne",
    "funord_lt",
    "funord_le",
    "is_nan",
    "is_inf",
    "round_even",
    "trunc",
    "floor",
    "ceil",
    "float_bits",
    "float_from_bits",
    "float_to_sint",
    "floor_to_sint",
    "round_to_sint",
    "float_to_uint",
    "sint_to_float",
    "uint_to_float",
    "half_bits",
    "half_from_bits",
    "dadd_low",
    "dadd_high",
    "dsub_low",
    "dsub_high",
    "dmul_low",
    "dmul_high",
    "ddiv_low",
    "ddiv_high",
    "dsqrt_low",
    "dsqrt_high",
    "dtrunc_low",
    "dtrunc_high",
    "dfloor_low",
    "dfloor_high",
    "dceil_low",
    "dceil_high",
    "dround_even_low",
    "dround_even_high",
    "deq",
    "dlt",
    "dle",
    "dfrom_float_low",
    "dfrom_float_high",
    "dto_float",
    "round_half",
    "bytes_even",
    "bytes_odd",
    "byte_products",
    "halves_scale",
    "halves_mul_high",
    "half_float",
    "halves_add",
    "halves_sub",
];

/// Those on scalars.
const SCALAR_OPS: &[&str] = &[
    "iadd",
    "isub",
    "imul",
    "umul_high",
    "smul_high",
    "ineg",
    "sabs",
    "umin",
    "umax",
    "smin",
    "smax",
    "ieq",
    "ine",
    "ult",
    "ule",
    "slt",
    "sle",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "lshr",
    "ashr",
    "bit_count",
    "find_umsb",
];

pub(super) fn op(name: &str) -> Op {
    Op::from_name(name).unwrap_or_else(|| panic!("{name} is no operation"))
}

/// Whether two results are the same, as NaN is one value.
fn same(op: Op, a: u32, b: u32) -> bool {
    let nan = |bits| f32::from_bits(bits).is_nan();
    a == b || op.result() == Type::F32 && !matches!(op, Op::FNeg | Op::FAbs | Op::FloatFromBits) && nan(a) && nan(b)
}

pub(super) fn fold(op: Op, args: &[u32]) -> u32 {
    let args: Vec<u64> = args.iter().map(|&arg| u64::from(arg)).collect();
    op.fold(&args) as u32
}

/// Rows of operands: every pair of special values, and every third number beside them.
pub(super) fn operand_rows(arity: usize) -> Vec<Vec<u32>> {
    let mut rows = Vec::new();
    for (i, &a) in SPECIAL.iter().enumerate() {
        for (j, &b) in SPECIAL.iter().enumerate() {
            let c = SPECIAL[(i * 7 + j * 3) % SPECIAL.len()];
            let d = SPECIAL[(i * 3 + j * 11 + 5) % SPECIAL.len()];
            rows.push([a, b, c, d][..arity].to_vec());
            if arity == 1 {
                break;
            }
        }
    }
    rows.resize(rows.len().next_multiple_of(16), vec![0; arity]);
    rows
}

/// Statements that load `arity` rows of operands at word `v50` of buffer 0 on, number `i` as `v{10+i}`.
fn load_operands(arity: usize, count: usize) -> String {
    let mut text = String::new();
    for i in 0..arity {
        text += &format!(
            "    v{k} = const.s32 {}\n    v{at} = iadd v50, v{k}\n    v{} = load_row v0 + v{at} if < v1\n",
            i * count,
            10 + i,
            k = 60 + i,
            at = 70 + i,
        );
    }
    text
}

/// Runs `statement`, which makes `v20` of `v10` to `v13`, over all rows.
pub(super) fn over_rows(rows: &[Vec<u32>], statements: &str) -> Vec<u32> {
    let (text, operands) = kernel_over_rows(rows, statements);
    run(&text, &[&operands, &vec![0; rows.len()]]).swap_remove(1)
}

/// The kernel that does it, and its operands.
fn kernel_over_rows(rows: &[Vec<u32>], statements: &str) -> (String, Vec<u32>) {
    let arity = rows[0].len();
    let count = rows.len();
    let operands: Vec<u32> = (0..arity).flat_map(|i| rows.iter().map(move |row| row[i])).collect();
    let text = format!(
        "{}    v40 = const.s32 0\n    v41 = const.s32 16\n    v42 = const.s32 {count}\n    v43 = const.mask 0xffff\n    jump block1(v40)\n\nblock1(v50: s32):\n{}{statements}    store_row v2 + v50 if < v3, v20 mask v43\n    v51 = iadd v50, v41\n    v52 = ult v51, v42\n    branch v52, block1(v51), block2\n\nblock2:\n    return\n",
        head(2),
        load_operands(arity, count),
    );
    (text, operands)
}

fn call(op: Op) -> String {
    let args: Vec<String> = (0..op.params().len()).map(|i| format!("v{}", 10 + i)).collect();
    let args = args.join(", ");
    match op.result() {
        Type::Bool => format!("    v19 = {} {args}\n    v20 = bool_to_int v19\n", op.name()),
        _ => format!("    v20 = {} {args}\n", op.name()),
    }
}

fn check_rows(op: Op, rows: &[Vec<u32>], statements: &str) {
    if engines().is_empty() {
        return;
    }
    for (row, result) in rows.iter().zip(over_rows(rows, statements)) {
        let expected = fold(op, row);
        assert!(same(op, result, expected), "{} {row:x?} = {result:#x}, not {expected:#x}", op.name());
    }
}

#[test]
fn lanes_compute_what_fold_does() {
    let on_exponents = Isa::available().any(|isa| isa == Isa::Avx512).then_some(["significand", "exponent", "scale"]);
    for name in LANE_OPS.iter().copied().chain(on_exponents.into_iter().flatten()) {
        let op = op(name);
        let mut rows = operand_rows(op.params().len());
        if op == Op::Scale {
            let number = |bits| !f32::from_bits(bits).is_nan();
            rows.retain(|row| number(row[0]) || !f32::from_bits(row[1]).is_infinite());
        }
        check_rows(op, &rows, &call(op));
    }
}

#[test]
fn constants_are_operands_at_each_place() {
    for name in LANE_OPS {
        let op = op(name);
        let arity = op.params().len();
        for place in 0..arity {
            for constant in [0, 1, 33, 0x8000_0000, 0x3fc0_0000, 0x7fc0_0000] {
                let rows: Vec<Vec<u32>> = operand_rows(arity)
                    .into_iter()
                    .map(|mut row| {
                        row[place] = constant;
                        row
                    })
                    .collect();
                let text = call(op).replace(&format!("v{}", 10 + place), "v30");
                check_rows(op, &rows, &format!("    v30 = const.v32 {constant:#x}\n{text}"));
            }
        }
    }
}

#[test]
fn scalars_compute_what_fold_does() {
    if engines().is_empty() {
        return;
    }
    for name in SCALAR_OPS {
        let op = op(name);
        let rows = operand_rows(op.params().len());
        let arity = op.params().len();
        let operands: Vec<u32> = rows.iter().flatten().copied().collect();
        let count = rows.len();
        let mut statements = String::new();
        for i in 0..arity {
            statements += &format!(
                "    v{k} = const.s32 {arity}\n    v{m} = imul v50, v{k}\n    v{} = load.s32 v0 + v{m} * 4 + {} if v{m} < v1\n",
                10 + i,
                i * 4,
                k = 60 + i,
                m = 70 + i,
            );
        }
        let mut call = call(op);
        if op.result() == Type::Bool {
            call = call.replace("v20 = bool_to_int v19", "v20 = select v19, v41, v40");
        }
        let text = format!(
            "{}    v40 = const.s32 0\n    v41 = const.s32 1\n    v42 = const.s32 {count}\n    v43 = const.mask 0xffff\n    jump block1(v40)\n\nblock1(v50: s32):\n{statements}{call}    store v2 + v50 * 4 if v50 < v3, v20 mask v43\n    v51 = iadd v50, v41\n    v52 = ult v51, v42\n    branch v52, block1(v51), block2\n\nblock2:\n    return\n",
            head(2),
        );
        let results = run(&text, &[&operands, &vec![0; count]]).swap_remove(1);
        for (row, result) in rows.iter().zip(results) {
            assert_eq!(result, fold(op, row), "{} {row:x?}", op.name());
        }
    }
}

#[test]
fn masks_compute_what_fold_does() {
    for name in ["land", "lor", "lxor"] {
        let rows = operand_rows(2);
        let text = format!(
            "    v30 = const.v32 1\n    v31 = ult v10, v11\n    v32 = ieq v10, v11\n    v33 = {name} v31, v32\n    v34 = lnot v32\n    v35 = land v33, v34\n    v36 = select v31, v35, v33\n    v20 = bool_to_int v36\n"
        );
        if engines().is_empty() {
            return;
        }
        for (row, result) in rows.iter().zip(over_rows(&rows, &text)) {
            let (less, equal) = (u64::from(row[0] < row[1]), u64::from(row[0] == row[1]));
            let both = op(name).fold(&[less, equal]) as u32;
            let expected = if less != 0 { both & !(equal as u32) } else { both };
            assert_eq!(result, expected, "{name} {row:x?}");
        }
    }
}

#[test]
fn inverse_square_roots_are_within_two_ulp() {
    let mut rows: Vec<Vec<u32>> = SPECIAL.iter().map(|&bits| vec![bits]).collect();
    rows.extend((0..2048u32).map(|i| vec![i.wrapping_mul(0x9e37_79b9) & 0x7fff_ffff]));
    rows.extend((0..512u32).map(|i| vec![i.wrapping_mul(0x9e37_79b9) & 0x007f_ffff]));
    rows.resize(rows.len().next_multiple_of(16), vec![0]);
    let (text, operands) = kernel_over_rows(&rows, "    v20 = inverse_sqrt v10\n");
    for isa in engines() {
        let results = run_on(isa, &text, &[&operands, &vec![0; rows.len()]]).swap_remove(1);
        for (row, result) in rows.iter().zip(results) {
            let (exact, found) = (f32::from_bits(fold(Op::InverseSqrt, row)), f32::from_bits(result));
            let distance = (exact.to_bits().cast_signed() - found.to_bits().cast_signed()).abs();
            assert!(
                exact.is_nan() && found.is_nan() || distance <= 2,
                "{}, {:e}: {found:e}, not {exact:e}",
                isa.name(),
                f32::from_bits(row[0])
            );
        }
    }
}
