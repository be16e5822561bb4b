//! Subgroup loops as objects of a kernel: what the vectorizer and the passes record, and what the verifier refuses.

use std::collections::BTreeMap;

use spelter_shaders::back::x86::Isa;
use spelter_shaders::compile::{self, Floats, Module};
use spelter_shaders::simd::{Kernel, verify};

/// Two subgroups, each adding lane numbers to a buffer.
const GOOD: &str = "simd kernel \"loop\"
descriptors 1
subgroup_loop block0, block1, block1, index v2, step 1, count v1

block0:
    v0 = const.s32 0
    v1 = const.s32 2
    v3 = const.s32 1
    v4 = const.mask 0xffff
    jump block1(v0)

block1(v2: s32) begin v4:
    v5 = iadd v2, v3
    v6 = ult v5, v1
    branch v6, block1(v5), block2

block2:
    return
";

fn error_of(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let kernel = Kernel::parse(&GOOD.replacen(from, to, 1)).expect("the text follows the form");
    verify(&kernel).expect_err("the loop is wrong").message
}

#[test]
fn a_loop_is_printed_as_it_was_read() {
    let kernel = Kernel::parse(GOOD).unwrap();
    assert_eq!(verify(&kernel), Ok(()));
    assert_eq!(kernel.to_string(), GOOD);
    let [only] = kernel.subgroup_loops[..] else { panic!("one loop") };
    assert_eq!((only.preheader, only.header, only.latch), (kernel.layout[0], kernel.layout[1], kernel.layout[1]));
}

#[test]
fn the_verifier_holds_a_loop_against_its_blocks() {
    for (from, to, rule) in [
        ("block0, block1, block1", "block0, block1, block2", "the predecessors of the header are not"),
        ("block0, block1, block1", "block0, block2, block1", "is not the entry of a parallel region"),
        ("block0, block1, block1", "block0, block7, block1", "block7 of a subgroup loop is not in the layout"),
        ("index v2", "index v5", "the index v5 is not an s32 parameter of the header"),
        ("count v1", "count v5", "the count v5 is not a constant"),
        ("step 1", "step 0", "2 subgroups in steps of 0"),
        ("step 1", "step 2", "does not end with `branch (ult (iadd v2, 2), v1)"),
        ("jump block1(v0)", "jump block1(v3)", "the index does not start at 0"),
        ("ult v5, v1", "ult v5, v3", "does not end with"),
        ("begin v4", "exec v4", "is not the entry of a parallel region"),
    ] {
        let message = error_of(from, to);
        assert!(message.contains(rule), "{to}: {message}");
    }
    assert!(Kernel::parse(&GOOD.replace("count v1", "count v9")).is_err(), "v9 is defined nowhere");
}

#[test]
fn passes_keep_the_loops_true() {
    let tiles = "var<workgroup> tile: array<f32, 64>;
        @group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) at: u32) {
            tile[at] = data[at];
            workgroupBarrier();
            var sum = 0.0;
            for (var i = 0u; i < 8u; i++) { sum += tile[i] * tile[(at + i) % 64u]; }
            workgroupBarrier();
            data[at] = sum;
        }";
    let chain = "@group(0) @binding(0) var<storage, read_write> data: array<f32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            var x = data[id.x];
            for (var i = 0u; i < 300u; i++) { x = (x * x + 0.25) * x + 0.5; }
            data[id.x] = x;
        }";
    for (text, isa, loops, step) in
        [(tiles, Isa::Avx512, 3, 1), (tiles, Isa::Avx2, 3, 1), (chain, Isa::Avx512, 1, 2), (chain, Isa::Avx2, 1, 1)]
    {
        let module = Module::from_wgsl(text).expect("the text is a module");
        let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
        let lowered = compile::lower(&kernel, Floats::FAST, |_, _| {});
        let wide = compile::widen(&lowered, isa).expect("it can be vectorized");
        assert_eq!(verify(&wide), Ok(()), "{wide}");
        assert_eq!(wide.subgroup_loops.len(), loops, "{wide}");
        assert!(wide.subgroup_loops.iter().all(|subgroup_loop| subgroup_loop.step == step), "{wide}");
    }
}

#[test]
fn a_region_that_never_ends_is_in_no_loop() {
    let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(40) fn main(@builtin(local_invocation_index) at: u32) {
            for (var i = 0u; ; i++) { data[at] = i; }
        }";
    let module = Module::from_wgsl(text).expect("the text is a module");
    let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
    let wide = compile::widen(&compile::lower(&kernel, Floats::FAST, |_, _| {}), Isa::Avx512).expect("vectorized");
    assert_eq!(verify(&wide), Ok(()), "{wide}");
    assert!(wide.subgroup_loops.is_empty(), "{wide}");
}
