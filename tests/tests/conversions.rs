//! WGSL conversions between all scalar types, evaluated by naga for constants and by each engine otherwise: both must
//! give WGSL's result, which is that of Rust's arithmetic.

use std::path::Path;

use spelter_shaders::compile::Module;
use spelter_tests::case::Case;
use spelter_tests::check;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scalar {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

use Scalar::{Bool, F32, F64, I32, I64, U32, U64};

const ALL: [Scalar; 7] = [Bool, I32, U32, I64, U64, F32, F64];

#[derive(Clone, Copy)]
enum Value {
    Int(i128),
    Float(f64),
}

impl Scalar {
    fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I32 => "i32",
            U32 => "u32",
            I64 => "i64",
            U64 => "u64",
            F32 => "f32",
            F64 => "f64",
        }
    }

    fn words(self) -> usize {
        if matches!(self, I64 | U64 | F64) { 2 } else { 1 }
    }

    /// Least and greatest integers.
    fn range(self) -> (i128, i128) {
        match self {
            I32 => (i32::MIN.into(), i32::MAX.into()),
            U32 => (0, u32::MAX.into()),
            I64 => (i64::MIN.into(), i64::MAX.into()),
            _ => (0, u64::MAX.into()),
        }
    }

    fn values(self) -> Vec<Value> {
        let ints = |list: &[i128]| list.iter().map(|&value| Value::Int(value)).collect();
        let floats = |list: &[f64]| list.iter().map(|&value| Value::Float(value)).collect();
        match self {
            Bool => ints(&[0, 1]),
            I32 => ints(&[0, 1, -1, -77_777, 16_777_217, i32::MAX.into(), -i128::from(i32::MAX)]),
            U32 => ints(&[0, 1, 77_777, 16_777_217, 3_000_000_000, u32::MAX.into()]),
            I64 => {
                ints(&[0, 1, -1, -3_000_000_000, 1 << 40 | 3, -(1 << 52) - 1, i64::MAX.into(), -i128::from(i64::MAX)])
            }
            U64 => ints(&[0, 1, 3_000_000_000, 1 << 40 | 3, 1 << 63 | 1 << 39 | 1, u64::MAX.into()]),
            F32 => floats(&[
                0.0,
                0.75,
                -0.75,
                1.5,
                -1.5,
                f64::from(3e9f32),
                f64::from(-3e9f32),
                f64::from(1e15f32),
                f64::from(1e25f32),
                f64::from(-1e25f32),
            ]),
            F64 => floats(&[0.0, 0.75, -0.75, 1.5, -1.5, 4_294_967_295.5, -3e9, 1e15 + 1.0, 1e25, -1e25]),
        }
    }

    fn literal(self, value: Value) -> String {
        match (value, self) {
            (Value::Int(value), Bool) => (value != 0).to_string(),
            (Value::Int(value), U32) => format!("{value}u"),
            (Value::Int(value), U64) => format!("{value}lu"),
            (Value::Int(value), I64) => format!("({value}li)"),
            (Value::Int(value), _) => format!("({value}i)"),
            (Value::Float(value), F32) => format!("({value:?}f)"),
            (Value::Float(value), _) => format!("({value:?}lf)"),
        }
    }

    fn bits(self, value: Value) -> Vec<u32> {
        let long = |bits: u64| vec![bits as u32, (bits >> 32) as u32];
        match (value, self.words()) {
            (Value::Int(value), 1) => vec![value as u32],
            (Value::Int(value), _) => long(value as u64),
            (Value::Float(value), 1) => vec![(value as f32).to_bits()],
            (Value::Float(value), _) => long(value.to_bits()),
        }
    }
}

/// WGSL's result of a conversion.
fn converted(value: Value, from: Scalar, to: Scalar) -> Value {
    match (value, to) {
        (Value::Int(value), Bool) => Value::Int((value != 0).into()),
        (Value::Float(value), Bool) => Value::Int((value != 0.0).into()),
        (Value::Float(value), F32) => Value::Float((value as f32).into()),
        (Value::Int(value), F32) => Value::Float((value as f32).into()),
        (Value::Float(value), F64) => Value::Float(value),
        (Value::Int(value), F64) => Value::Float(value as f64),
        // The low bits.
        (Value::Int(value), _) => Value::Int(value),
        // The nearest integer that the float type can represent, too.
        (Value::Float(value), _) => {
            let (least, most) = to.range();
            let digits = if from == F32 { 24 } else { 53 };
            let most = most >> (128 - most.leading_zeros()).saturating_sub(digits)
                << (128 - most.leading_zeros()).saturating_sub(digits);
            Value::Int((value.trunc() as i128).clamp(least, most))
        }
    }
}

/// naga does not evaluate these: constants of such conversions are rejected.
fn is_refused(from: Scalar, to: Scalar) -> bool {
    match to {
        Bool | I32 | U32 | F32 => matches!(from, I64 | U64 | F64),
        F64 => matches!(from, I64 | U64),
        I64 | U64 => false,
    }
}

/// A kernel that converts each value twice, with the expected results.
fn text(from: Scalar, to: Scalar, lanes: usize) -> String {
    let values = from.values();
    let results: Vec<u32> = values.iter().flat_map(|&value| to.bits(converted(value, from, to))).collect();
    let inputs: Vec<u32> = values.iter().flat_map(|&value| from.bits(value)).collect();
    let list = |words: &[u32]| words.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let stored = if to == Bool { "u32" } else { to.name() };
    let has = |value: String| if to == Bool { format!("select(0u, 1u, {value})") } else { value };
    let read = |i: usize| if from == Bool { format!("(a[{i}] != 0u)") } else { format!("a[{i}]") };
    let held = if from == Bool { "u32" } else { from.name() };
    let convert = |value: String| match lanes {
        1 => format!("{}({value})", to.name()),
        _ => format!("vec{lanes}<{}>(vec{lanes}<{}>({value})).y", to.name(), from.name()),
    };
    let mut body = String::new();
    for (i, &value) in values.iter().enumerate() {
        body += &format!("o[{i}] = {};\n", has(convert(read(i))));
        if !is_refused(from, to) {
            body += &format!("const c{i} = {}; k[{i}] = {};\n", convert(from.literal(value)), has(format!("c{i}")));
        }
    }
    let constants = if is_refused(from, to) { vec![0; results.len()] } else { results.clone() };
    format!(
        "// bind 0.0: u32 {}\n// bind 0.1: u32 {zeros}\n// bind 0.2: u32 {zeros}\n// expect 0.1: u32 {}\n// expect 0.2: u32 {}
@group(0) @binding(0) var<storage, read> a: array<{held}>;
@group(0) @binding(1) var<storage, read_write> o: array<{stored}>;
@group(0) @binding(2) var<storage, read_write> k: array<{stored}>;
@compute @workgroup_size(1) fn main() {{\n{body}}}\n",
        list(&inputs),
        list(&results),
        list(&constants),
        zeros = list(&vec![0; results.len()]),
    )
}

#[test]
fn constants_and_values_are_converted_alike() {
    let mut wrong = Vec::new();
    for (from, to) in ALL.into_iter().flat_map(|from| ALL.map(|to| (from, to))) {
        for lanes in [1, 3] {
            let text = text(from, to, lanes);
            let case =
                Case::parse(Path::new("conversion.wgsl"), text.clone()).unwrap_or_else(|error| panic!("{error}"));
            if let Err(error) = check::check(&case) {
                wrong.push(format!("{} to {}: {error}\n{text}", from.name(), to.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn constants_that_naga_does_not_convert_are_reported() {
    for (from, to) in
        ALL.into_iter().flat_map(|from| ALL.map(|to| (from, to))).filter(|(from, to)| is_refused(*from, *to))
    {
        let text = format!("const a = {}({});", to.name(), from.literal(from.values()[1]));
        let error = Module::from_wgsl(&text).unwrap_err().to_string();
        assert!(error.contains("cast") && error.contains("wgsl:1:"), "{text}: {error}");
    }
}
