//! Memory: layouts of structs, arrays, pointers, bounds.

use crate::programs::{N, Program, each, word};

pub(crate) fn programs() -> Vec<Program> {
    let words: Vec<u32> = (0..N).map(word).collect();
    vec![
        Program {
            name: "a uniform struct with a vector of three",
            source: "struct S { a: u32, b: vec3<u32>, c: u32, d: mat2x2<f32> }
                @group(0) @binding(0) var<uniform> s: S;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(1)
                fn main() { to[0] = s.a; to[1] = s.b.x; to[2] = s.b.z; to[3] = s.c; to[4] = u32(s.d[1].y); }"
                .into(),
            // b begins at byte 16, c follows it at 28, d at 32.
            buffers: vec![vec![1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0, 7f32.to_bits()], vec![0; 5]],
            groups: [1, 1, 1],
            expected: vec![1, 2, 4, 5, 7],
        },
        Program {
            name: "the length of a runtime array after a header",
            source: "struct S { head: vec4<u32>, list: array<vec2<u32>> }
                @group(0) @binding(0) var<storage, read> s: S;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(1)
                fn main() { to[0] = arrayLength(&s.list); to[1] = s.list[2].y; }"
                .into(),
            buffers: vec![(0..14).collect(), vec![0; 2]],
            groups: [1, 1, 1],
            expected: vec![5, 9],
        },
        Program {
            name: "reads out of bounds are 0 and writes are dropped",
            source: "@group(0) @binding(0) var<storage, read> src: array<u32>;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) { to[i] = src[i] + 1u; }"
                .into(),
            buffers: vec![vec![10, 11], vec![0; 5]],
            groups: [1, 1, 1],
            expected: vec![11, 12, 1, 1, 1],
        },
        each("a private array with a dynamic index", ["u32", "u32"], "pick(x, i)", word, |i, x| x.wrapping_mul(i % 8))
            .with(
                "fn pick(x: u32, i: u32) -> u32 {
                var a: array<u32, 8>;
                for (var k = 0u; k < 8u; k++) { a[k] = x * k; }
                return a[i % 8u];
            }",
            ),
        each("a table of constants", ["u32", "u32"], "x + array<u32, 5>(3u, 1u, 4u, 1u, 5u)[i % 5u]", word, |i, x| {
            x.wrapping_add([3, 1, 4, 1, 5][i as usize % 5])
        }),
        each("pointers to variables of the caller", ["u32", "u32"], "twice(x)", word, |_, x| {
            x.wrapping_add(5).wrapping_mul(2)
        })
        .with(
            "fn add(p: ptr<function, u32>, q: ptr<private, u32>) { *p += 5u; *q = *p * 2u; }
            var<private> double: u32;
            fn twice(x: u32) -> u32 { var y = x; add(&y, &double); return double; }",
        ),
        Program {
            name: "structs are copied whole",
            source: "struct P { pos: vec3<f32>, id: u32, list: array<u32, 3> }
                @group(0) @binding(0) var<storage, read> src: array<P, 2>;
                @group(0) @binding(1) var<storage, read_write> to: array<P, 2>;
                @compute @workgroup_size(1)
                fn main() { var p = src[1]; p.id += 1u; to[0] = p; to[1] = src[0]; }"
                .into(),
            // Elements have 32 bytes: 28 and padding.
            buffers: vec![words[..16].to_vec(), vec![0; 16]],
            groups: [1, 1, 1],
            expected: {
                let (first, second) = (&words[..8], &words[8..16]);
                let mut all = [second, first].concat();
                all[3] = all[3].wrapping_add(1);
                (all[7], all[15]) = (0, 0);
                all
            },
        },
        Program {
            name: "an array of vectors in a uniform buffer",
            source: "@group(0) @binding(0) var<uniform> src: array<vec4<u32>, 16>;
                @group(0) @binding(1) var<storage, read_write> to: array<u32>;
                @compute @workgroup_size(64)
                fn main(@builtin(local_invocation_index) i: u32) { to[i] = src[15u - i / 4u][i % 4u]; }"
                .into(),
            expected: (0..N as usize).map(|i| words[(15 - i / 4) * 4 + i % 4]).collect(),
            buffers: vec![words, vec![0; N as usize]],
            groups: [1, 1, 1],
        },
    ]
}
