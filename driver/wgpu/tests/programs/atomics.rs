//! Atomics on integers and floats, in buffers and in shared memory.

use crate::programs::{Program, word};

pub(crate) fn programs() -> Vec<Program> {
    let words: Vec<u32> = (0..256).map(word).collect();
    let one = |name, declared: &str, ty: &str, body: &str, size: usize, expected| Program {
        name,
        source: format!(
            "@group(0) @binding(0) var<storage, read> src: array<u32>;
            @group(0) @binding(1) var<storage, read_write> to: array<{ty}>;
            {declared}
            @compute @workgroup_size(64)
            fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
                let i = id.x; let x = src[i]; {body}
            }}"
        ),
        buffers: vec![words.clone(), vec![0; size]],
        groups: [4, 1, 1],
        expected,
    };
    let signed = words.iter().map(|word| word.cast_signed());
    let mut histogram = vec![0; 16];
    words.iter().for_each(|word| histogram[(word % 16) as usize] += 1);
    vec![
        one(
            "atomic add",
            "",
            "atomic<u32>",
            "atomicAdd(&to[0], x);",
            1,
            vec![words.iter().fold(0, |sum, x| sum.wrapping_add(*x))],
        ),
        one(
            "atomic maximum and minimum",
            "",
            "atomic<i32>",
            "atomicMax(&to[0], bitcast<i32>(x)); atomicMin(&to[1], bitcast<i32>(x));",
            2,
            vec![signed.clone().max().unwrap().max(0).cast_unsigned(), signed.min().unwrap().min(0).cast_unsigned()],
        ),
        one(
            "atomic and, or, exclusive or",
            "",
            "atomic<u32>",
            "atomicAnd(&to[0], x); atomicOr(&to[1], x & 0xff0u); atomicXor(&to[2], x);",
            3,
            vec![0, words.iter().fold(0, |all, x| all | x & 0xff0), words.iter().fold(0, |all, x| all ^ x)],
        ),
        one(
            "atomic subtraction, load and store",
            "",
            "atomic<u32>",
            "atomicSub(&to[0], x); if i == 3u { atomicStore(&to[1], x + 1u); } storageBarrier(); workgroupBarrier();
            if i == 5u { atomicStore(&to[2], atomicLoad(&to[1])); }",
            3,
            vec![words.iter().fold(0u32, |sum, x| sum.wrapping_sub(*x)), words[3] + 1, words[3] + 1],
        ),
        one(
            "a sum by compare and exchange",
            "",
            "atomic<u32>",
            "var old = atomicLoad(&to[0]); loop { let r = atomicCompareExchangeWeak(&to[0], old, old + i);
                if r.exchanged { break; } old = r.old_value; }",
            1,
            vec![255 * 256 / 2],
        ),
        one(
            "each ticket is taken once",
            "",
            "atomic<u32>",
            "let at = atomicAdd(&to[0], 1u); atomicAdd(&to[1u + at], 1u);",
            257,
            [vec![256], vec![1; 256]].concat(),
        ),
        one(
            "a histogram in shared memory",
            "var<workgroup> bins: array<atomic<u32>, 16>;",
            "atomic<u32>",
            "atomicAdd(&bins[x % 16u], 1u); workgroupBarrier();
            if l < 16u { atomicAdd(&to[l], atomicLoad(&bins[l])); }",
            16,
            histogram,
        ),
        one("atomic exchange", "", "atomic<u32>", "atomicAdd(&to[1], atomicExchange(&to[0], 1u));", 2, vec![1, 255]),
        one(
            "atomic add of floats",
            "",
            "atomic<f32>",
            "atomicAdd(&to[0], f32(i) * 0.5);",
            1,
            vec![(255f32 * 256.0 / 4.0).to_bits()],
        ),
        one(
            "atomics of 64 bits",
            "",
            "atomic<u64>",
            "atomicAdd(&to[0], u64(x) << 8u); atomicMax(&to[1], u64(x) << 20u);",
            4,
            {
                let sum: u64 = words.iter().map(|x| u64::from(*x) << 8).sum();
                let max = words.iter().map(|x| u64::from(*x) << 20).max().unwrap();
                vec![sum as u32, (sum >> 32) as u32, max as u32, (max >> 32) as u32]
            },
        ),
    ]
}
