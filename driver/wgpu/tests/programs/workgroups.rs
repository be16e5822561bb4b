//! Workgroups: their ids, shared memory and barriers.

use crate::programs::{N, Program, word};

pub(crate) fn programs() -> Vec<Program> {
    let words: Vec<u32> = (0..N).map(word).collect();
    let one = |name, body: &str, expected| Program {
        name,
        source: format!(
            "@group(0) @binding(0) var<storage, read> src: array<u32>;
            @group(0) @binding(1) var<storage, read_write> to: array<u32>;
            var<workgroup> s: array<u32, {N}>;
            @compute @workgroup_size({N}) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        ),
        buffers: vec![words.clone(), vec![0; N as usize]],
        groups: [1, 1, 1],
        expected,
    };
    let sums: Vec<u32> = words
        .iter()
        .scan(0u32, |sum, x| {
            *sum = sum.wrapping_add(*x);
            Some(*sum)
        })
        .collect();
    let mut sorted = words.clone();
    sorted.sort_unstable();
    vec![
        Program {
            name: "ids and numbers of workgroups",
            source: "@group(0) @binding(0) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(2, 3, 2)
                fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
                    @builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) l: vec3<u32>) {
                    let at = (w.z * n.y + w.y) * n.x + w.x;
                    to[at * 12u + i] = at * 1000u + l.z * 100u + l.y * 10u + l.x;
                }"
            .into(),
            buffers: vec![vec![0; 12 * 24]],
            groups: [2, 3, 4],
            expected: (0..24)
                .flat_map(|at| (0..12).map(move |i| at * 1000 + i / 6 * 100 + i / 2 % 3 * 10 + i % 2))
                .collect(),
        },
        one(
            "shared memory, read by others after a barrier",
            "s[i] = src[i]; workgroupBarrier(); to[i] = s[63u - i];",
            words.iter().rev().copied().collect(),
        ),
        one("shared memory starts as zeros", "to[i] = s[i]; s[i] = src[i];", vec![0; N as usize]),
        one(
            "a tree of sums",
            "s[i] = src[i]; for (var n = 32u; n > 0u; n /= 2u) { workgroupBarrier(); if i < n { s[i] += s[i + n]; } }
            workgroupBarrier(); to[i] = s[0];",
            vec![sums[63]; N as usize],
        ),
        one(
            "running sums",
            "s[i] = src[i];
            for (var n = 1u; n < 64u; n *= 2u) {
                workgroupBarrier(); var x = 0u; if i >= n { x = s[i - n]; }
                workgroupBarrier(); s[i] += x;
            }
            to[i] = s[i];",
            sums,
        ),
        one(
            "a bitonic sort",
            "s[i] = src[i]; for (var k = 2u; k <= 64u; k *= 2u) { for (var j = k / 2u; j > 0u; j /= 2u) {
                workgroupBarrier(); let o = i ^ j; let a = s[i]; let b = s[o]; workgroupBarrier();
                if o > i && (a > b) == ((i & k) == 0u) { s[i] = b; s[o] = a; } } }
            workgroupBarrier(); to[i] = s[i];",
            sorted,
        ),
        one(
            "a uniform load",
            "if i == 7u { s[0] = src[i]; } let x = workgroupUniformLoad(&s[0]); to[i] = x + i;",
            (0..N).map(|i| words[7].wrapping_add(i)).collect(),
        ),
        Program {
            name: "tiles of a transposed matrix",
            source: "@group(0) @binding(0) var<storage, read> src: array<u32>;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                var<workgroup> tile: array<array<u32, 8>, 8>;
                @compute @workgroup_size(8, 8)
                fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
                    tile[l.y][l.x] = src[(w.y * 8u + l.y) * 32u + w.x * 8u + l.x];
                    workgroupBarrier();
                    to[(w.x * 8u + l.y) * 32u + w.y * 8u + l.x] = tile[l.x][l.y];
                }"
            .into(),
            buffers: vec![(0..1024).collect(), vec![0; 1024]],
            groups: [4, 4, 1],
            expected: (0..1024).map(|at| at % 32 * 32 + at / 32).collect(),
        },
    ]
}
