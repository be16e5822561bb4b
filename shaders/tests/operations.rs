//! The operations of an invocation (`analysis::Operations`), of small kernels from WGSL.

use std::collections::BTreeMap;

use spelter_shaders::analysis::{Counts, Operations};
use spelter_shaders::compile::{Backend, Floats, Module, lower};

/// The operations of a lowered kernel with these words as push constants.
fn of(body: &str, push: &[u32]) -> Operations {
    let text = format!(
        "struct Push {{ n: u32, m: u32 }}
         var<immediate> push: Push;
         @group(0) @binding(0) var<storage, read_write> data: array<f32>;
         @group(0) @binding(1) var<storage, read_write> count: array<atomic<u32>>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
             _ = push.n;
             _ = &count;
             {body}
         }}"
    );
    let module = Module::from_wgsl(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let kernel = module.kernel("main", &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let lowered = lower(&kernel, Floats::FAST, |_, _| {});
    let bytes: Vec<u8> = push.iter().flat_map(|word| word.to_le_bytes()).collect();
    Operations::of(&lowered, &bytes)
}

/// The float operations: lower and upper bound.
fn flops(body: &str, push: &[u32]) -> (u64, Option<u64>) {
    let found = of(body, push);
    (found.min.flops, found.max.map(|max| max.flops))
}

#[test]
fn operations_of_a_straight_line_are_exact() {
    // A fused multiply-add is two; minima and conversions are none.
    let found = of("data[id.x] = min(data[id.x] * 2.0 + f32(id.x), 9.0);", &[0, 0]);
    let counts = Counts { flops: 2, loaded: 4, stored: 4, ..Counts::default() };
    assert_eq!((found.min, found.max), (counts, Some(counts)));
    assert_eq!(flops("data[id.x] = sqrt(data[id.x] / 3.0);", &[0, 0]), (2, Some(2)));
    let found = of("atomicStore(&count[id.x], atomicLoad(&count[0]));", &[0, 0]);
    assert_eq!(found.max, Some(Counts { loaded: 4, stored: 4, ..Counts::default() }));
    let found = of("atomicAdd(&count[id.x], 1u);", &[0, 0]);
    assert_eq!(found.max.map(|max| (max.atomics, max.loaded)), Some((1, 0)));
}

#[test]
fn a_branch_gives_bounds() {
    let guard = "if id.x < push.n { data[id.x] *= 3.0; }";
    assert_eq!(flops(guard, &[64, 0]), (0, Some(1)));
    // The sides store to different places, so that they stay branches.
    let sides = "if id.x < push.n { data[id.x] = data[id.x + 64u] / 3.0; }
                 else { data[id.x + 1u] = data[id.x + 70u] * data[id.x + 80u] / 3.0; data[9] = 1.0; }";
    assert_eq!(flops(sides, &[64, 0]), (1, Some(2)));
}

#[test]
fn loops_are_counted_by_push_constants_with_any_step() {
    let sum = |header: &str| format!("var s = 1.0; for ({header}) {{ s = s / data[i]; }} data[id.x] = s;");
    let exact = |header: &str, push: &[u32], trip_count: u64| {
        assert_eq!(flops(&sum(header), push), (trip_count, Some(trip_count)), "{header} {push:?}");
    };
    exact("var i = 0u; i < push.n; i++", &[1000, 0], 1000);
    exact("var i = 0u; i < push.n; i += 16u", &[1000, 0], 63);
    exact("var i = 0u; i < push.n; i++", &[0, 0], 0);
    exact("var i = push.n; i > 0u; i >>= 1u", &[128, 0], 8);
    exact("var i = 1u; i != push.n; i *= 2u", &[1024, 0], 10);
    exact("var i = 3u; i < push.m * push.n; i++", &[100, 7], 697);
    // Each invocation starts elsewhere, and all have the same number of iterations.
    exact("var i = id.x % 64u; i < push.n; i += 64u", &[6400, 0], 100);
    assert_eq!(flops(&sum("var i = 0u; i < push.n; i += 0u"), &[1, 0]).1, None, "a loop that does not end");
    assert_eq!(flops(&sum("var i = id.x; i < push.n; i++"), &[100, 0]), (0, None), "it depends on the invocation");
}

#[test]
fn nested_loops_multiply_and_early_exits_lower_the_least() {
    let nested = "var s = 1.0;
        for (var i = 0u; i < push.n; i++) { for (var j = 0u; j < push.m; j++) { s = s / data[j]; } s = s / data[i]; }
        data[id.x] = s;";
    assert_eq!(flops(nested, &[10, 100]), (1010, Some(1010)));
    let early = "var s = 1.0;
        for (var i = 0u; i < push.n; i++) { if data[i] == 0.0 { break; } s = s / data[i]; }
        data[id.x] = s;";
    assert_eq!(flops(early, &[100, 0]), (0, Some(100)));
}

#[test]
fn an_unknown_loop_without_counted_operations_does_no_harm() {
    let found = of("var n = id.x; while n > push.n { n = n / 3u; } data[n] = data[n] / 3.0;", &[0, 0]);
    assert_eq!((found.max.map(|max| max.flops), found.unknown.len()), (Some(1), 0));
    let found = of("var s = 1.0; for (var i = id.x; i < push.n; i++) { s = s / 3.0; } data[0] = s;", &[9, 0]);
    assert_eq!((found.max, found.unknown.len()), (None, 1));
}

#[test]
fn kernels_of_all_back_ends_are_counted_alike() {
    for backend in Backend::available() {
        let Backend::X86(isa) = backend else { continue };
        let text = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
            @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
                for (var i = 0u; i < 300u; i++) { a[id.x] = a[id.x] * 1.5 + 0.5; }
            }";
        let module = Module::from_wgsl(text).unwrap();
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
        let lowered = lower(&kernel, Floats::FAST.on(isa), |_, _| {});
        assert_eq!(Operations::of(&lowered, &[]).max.map(|max| max.flops), Some(600), "{backend}");
    }
}
