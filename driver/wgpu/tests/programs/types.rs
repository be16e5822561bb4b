//! Types of 16 and 64 bits.

use crate::programs::{N, Program, word};

/// A program over pairs of words: numbers of 64 bits.
fn wide(name: &'static str, [from, to]: [&str; 2], expression: &str, of: impl Fn(u64) -> u64) -> Program {
    let source = format!(
        "@group(0) @binding(0) var<storage, read> src: array<{from}>;
        @group(0) @binding(1) var<storage, read_write> to: array<{to}>;
        @compute @workgroup_size({N})
        fn main(@builtin(local_invocation_index) i: u32) {{ let x = src[i]; to[i] = {expression}; }}"
    );
    let input = |i: u32| u64::from(word(i)) << 32 | u64::from(word(N - 1 - i));
    let split = |x: u64| [x as u32, (x >> 32) as u32];
    let input = |i: u32| if from == "f64" { (f64::from(i) * 0.1 - 3.0).to_bits() } else { input(i) };
    Program {
        name,
        source,
        buffers: vec![(0..N).flat_map(|i| split(input(i))).collect(), vec![0; 2 * N as usize]],
        groups: [1, 1, 1],
        expected: (0..N).flat_map(|i| split(of(input(i)))).collect(),
    }
}

fn double(of: impl Fn(f64) -> f64) -> impl Fn(u64) -> u64 {
    move |x| of(f64::from_bits(x)).to_bits()
}

pub(crate) fn programs() -> Vec<Program> {
    const U: [&str; 2] = ["u64", "u64"];
    const I: [&str; 2] = ["i64", "i64"];
    const D: [&str; 2] = ["f64", "f64"];
    vec![
        wide("multiply 64 bits", U, "x * x + 1lu", |x| x.wrapping_mul(x).wrapping_add(1)),
        wide("divide 64 bits", U, "x / 1000000007lu + x % 97lu", |x| (x / 1_000_000_007).wrapping_add(x % 97)),
        wide("shift 64 bits", I, "(x >> 13u) ^ (x << 7u)", |x| (x.cast_signed() >> 13).cast_unsigned() ^ (x << 7)),
        wide("compare 64 bits", I, "select(x, -x, x < 0li)", |x| x.cast_signed().wrapping_abs().cast_unsigned()),
        wide("unsigned numbers stay positive in signed ones", ["u64", "i64"], "i64(u32(x))", |x| u64::from(x as u32)),
        wide("signed numbers stay negative in unsigned ones", ["u64", "u64"], "u64(bitcast<i32>(u32(x)))", |x| {
            i64::from((x as u32).cast_signed()).cast_unsigned()
        }),
        wide("doubles", D, "x * 1.1lf + 0.3lf", double(|x| x * 1.1 + 0.3)),
        wide("quotients and roots of doubles", D, "sqrt(abs(x)) / 3.0lf", double(|x| x.abs().sqrt() / 3.0)),
        wide("doubles to integers", ["f64", "i64"], "i64(x * 1000000.0lf)", |x| {
            ((f64::from_bits(x) * 1_000_000.0) as i64).cast_unsigned()
        }),
        Program {
            name: "halves",
            source: "enable f16;
                @group(0) @binding(0) var<storage, read> src: array<vec2<f16>>;
                @group(0) @binding(1) var<storage, read_write> to: array<vec2<f16>>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) {
                    let x = src[i]; to[i] = x * 2.0h + vec2(0.5h, x.x);
                }"
            .into(),
            // 0x3c00 is 1, 0x4000 is 2: 2 * 1 + 0.5 = 2.5, which is 0x4100; 2 * 2 + 1 = 5, which is 0x4500.
            buffers: vec![vec![0x4000_3c00; 64], vec![0; 64]],
            groups: [1, 1, 1],
            expected: vec![0x4500_4100; 64],
        },
        Program {
            name: "integers of 16 bits",
            source: "enable wgpu_int16;
                @group(0) @binding(0) var<storage, read> src: array<u32>;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) {
                    let x = u16(src[i] & 0xffffu); let y = i16(src[i] & 0x7fffu);
                    to[i] = u32(x * u16(3)) + u32(-y < i16(-9));
                }"
            .into(),
            buffers: vec![(0..N).map(word).collect(), vec![0; 64]],
            groups: [1, 1, 1],
            expected: (0..N)
                .map(|i| {
                    let x = word(i);
                    u32::from((x as u16).wrapping_mul(3)) + u32::from(-((x & 0x7fff) as i16) < -9)
                })
                .collect(),
        },
    ]
}
