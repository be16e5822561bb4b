//! Words that are fetched before they are needed: where the processor would not see them coming.

use std::collections::BTreeMap;

use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::compile::{Floats, Module, lower, widen};

/// The distances at which a kernel of 256 invocations fetches.
fn fetched(body: &str) -> Vec<String> {
    let text = format!(
        "var<immediate> count: u32;
        @group(0) @binding(0) var<storage, read> source: array<u32>;
        @group(0) @binding(1) var<storage, read_write> result: array<u32>;
        @compute @workgroup_size(256)
        fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{ {body} }}"
    );
    let module = Module::from_wgsl(&text).expect("a kernel");
    let kernel = lower(&module.kernel("main", &BTreeMap::new()).expect("an entry point"), Floats::FAST, |_, _| {});
    let [avx512, avx2] = [Isa::Avx512, Isa::Avx2].map(|isa| {
        let wide = widen(&kernel, isa).expect("a SIMD form");
        let assembly = x86::compile(&wide, isa).expect("machine code").assembly();
        let lines = assembly.lines().filter_map(|line| line.trim().strip_prefix("prefetcht1 "));
        // `[rax+rcx*4+2000h]`
        lines.map(|at| at.rsplit(['+', ']']).nth(1).unwrap_or_default().to_owned()).collect::<Vec<_>>()
    });
    assert_eq!(avx512, avx2);
    avx512
}

#[test]
fn rows_of_the_next_workgroup_are_fetched() {
    assert_eq!(fetched("result[group.x * 256 + lane] = source[group.x * 2048 + lane];"), ["2000h"]);
    assert_eq!(
        fetched("let at = group.x * 1024 + lane; result[at] = source[at] + source[at + 512];"),
        ["1000h", "1800h"]
    );
}

#[test]
fn rows_of_which_the_next_is_not_known_or_no_use_are_not() {
    assert_eq!(fetched("result[group.x] = source[lane];"), [""; 0], "the same row for all");
    assert_eq!(fetched("result[lane] = source[group.x * count + lane];"), [""; 0], "at an unknown distance");
    assert_eq!(fetched("result[lane] = source[group.x * 65536 + lane];"), [""; 0], "out of the cache until then");
    let looped = "var sum = 0u; for (var i = 0u; i < count; i++) { sum += source[group.x * 1024 + i * 16 + lane]; } result[lane] = sum;";
    assert_eq!(fetched(looped), [""; 0], "over and over");
}

#[test]
fn loops_in_long_strides_fetch_what_their_neighbours_read() {
    let strides = "var sum = 0u; for (var i = lane; i < count; i += 256) { sum += source[i]; } result[lane] = sum;";
    assert_eq!(fetched(strides), ["80h"]);
}
