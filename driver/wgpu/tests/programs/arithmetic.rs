//! Arithmetic and conversions of 32 bits.

use crate::programs::{Program, each, word};

/// Floats that are quarters of small numbers: sums and products of them are exact.
fn quarter(i: u32) -> u32 {
    ((i as f32 - 31.0) * 0.25).to_bits()
}

fn float(of: impl Fn(f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |_, x| of(f32::from_bits(x)).to_bits()
}

fn signed(of: impl Fn(i32) -> i32) -> impl Fn(u32, u32) -> u32 {
    move |_, x| of(x.cast_signed()).cast_unsigned()
}

pub(crate) fn programs() -> Vec<Program> {
    const U: [&str; 2] = ["u32", "u32"];
    const I: [&str; 2] = ["i32", "i32"];
    const F: [&str; 2] = ["f32", "f32"];
    vec![
        each("add wraps", U, "x + 0xfffffff0u", word, |_, x| x.wrapping_add(0xffff_fff0)),
        each("multiply wraps", U, "x * x", word, |_, x| x.wrapping_mul(x)),
        each("x / 0 is x", U, "x / (i % 3u)", word, |i, x| x.checked_div(i % 3).unwrap_or(x)),
        each("x % 0 is 0", U, "x % (i % 3u)", word, |i, x| x.checked_rem(i % 3).unwrap_or(0)),
        each("the least integer divided by -1", I, "x / -1", |i| word(i) | 1 << 31, signed(|x| x.wrapping_div(-1))),
        each("remainders have the sign of the dividend", I, "x % 7", word, signed(|x| x % 7)),
        each("shift left", U, "x << (i % 32u)", word, |i, x| x << (i % 32)),
        each("shift right of signed numbers", I, "x >> (i % 32u)", word, |i, x| {
            (x.cast_signed() >> (i % 32)).cast_unsigned()
        }),
        each("count of one bits", U, "countOneBits(x)", word, |_, x| x.count_ones()),
        each("reversed bits", U, "reverseBits(x)", word, |_, x| x.reverse_bits()),
        each("leading zeros", U, "countLeadingZeros(x)", word, |_, x| x.leading_zeros()),
        each("trailing zeros", U, "countTrailingZeros(x)", word, |_, x| x.trailing_zeros()),
        each("first leading bit", U, "firstLeadingBit(x)", word, |_, x| x.checked_ilog2().unwrap_or(u32::MAX)),
        each("bits extracted", U, "extractBits(x, 4u, 9u)", word, |_, x| x >> 4 & 0x1ff),
        each("bits inserted", U, "insertBits(x, i, 8u, 5u)", word, |i, x| x & !0x1f00 | (i & 0x1f) << 8),
        each("clamp", I, "clamp(x, -5, 9)", |i| i.wrapping_sub(20), signed(|x| x.clamp(-5, 9))),
        each("absolute value", I, "abs(x)", |i| i.wrapping_sub(20), signed(i32::abs)),
        each("negation and complement", I, "-x + ~x", word, signed(|x| x.wrapping_neg().wrapping_add(!x))),
        each("multiply and add floats", F, "x * 2.5 + 1.25", quarter, float(|x| x * 2.5 + 1.25)),
        each("divide floats by powers of two", F, "x / 8.0", quarter, float(|x| x / 8.0)),
        each("floor", F, "floor(x)", quarter, float(f32::floor)),
        each("ceil", F, "ceil(x)", quarter, float(f32::ceil)),
        each("trunc", F, "trunc(x)", quarter, float(f32::trunc)),
        each("round to even", F, "round(x)", quarter, float(f32::round_ties_even)),
        each("square roots of squares", F, "sqrt(x)", |i| ((i * i) as f32).to_bits(), float(f32::sqrt)),
        each(
            "select by a comparison",
            F,
            "select(x, -1.0, x > 2.0)",
            quarter,
            float(|x| if x > 2.0 { -1.0 } else { x }),
        ),
        each("step", F, "step(1.0, x)", quarter, float(|x| if x >= 1.0 { 1.0 } else { 0.0 })),
        each("mix", F, "mix(x, 4.0, 0.5)", quarter, float(|x| x * 0.5 + 2.0)),
        each("powers of two", F, "ldexp(x, 3)", quarter, float(|x| x * 8.0)),
        each("float to integer", ["f32", "i32"], "i32(x)", quarter, |_, x| (f32::from_bits(x) as i32).cast_unsigned()),
        each("integer to float", ["i32", "f32"], "f32(x)", word, |_, x| (x.cast_signed() as f32).to_bits()),
        each("bits of floats", ["f32", "u32"], "bitcast<u32>(x) ^ 1u", quarter, |_, x| x ^ 1),
        each("packed bytes", U, "pack4x8unorm(unpack4x8unorm(x))", word, |_, x| x),
        each(
            "packed halves",
            ["u32", "f32"],
            "unpack2x16float(x).y",
            |i| (0x3c00 + i * 4) << 16,
            |_, x| {
                // 0x3c00 is 1; ten bits of mantissa follow.
                (1.0 + ((x >> 16) - 0x3c00) as f32 / 1024.0).to_bits()
            },
        ),
        each("dot products of bytes", U, "dot4U8Packed(x, 0x01020304u)", word, |_, x| {
            let [a, b, c, d] = x.to_le_bytes().map(u32::from);
            4 * a + 3 * b + 2 * c + d
        }),
        each(
            "vectors",
            F,
            "dot(vec3(x, 1.0, 2.0).zxy, vec3(0.5, 2.0, 4.0)) + length(vec2(3.0, 4.0))",
            quarter,
            float(|x| 2.0 * 0.5 + x * 2.0 + 4.0 + 5.0),
        ),
        each(
            "matrices",
            F,
            "(mat2x2(x, 2.0, 3.0, 4.0) * vec2(1.0, 2.0)).x + determinant(mat2x2(x, 1.0, 2.0, 3.0))",
            quarter,
            float(|x| (x + 6.0) + (x * 3.0 - 2.0)),
        ),
        each(
            "any and all",
            U,
            "u32(any(vec3(x, i, 0u) > vec3(9u))) + 2u * u32(all(vec2(x, i) < vec2(12u)))",
            word,
            |i, x| u32::from(x > 9 || i > 9) + 2 * u32::from(x < 12 && i < 12),
        ),
    ]
}
