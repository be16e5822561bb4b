//! Two subgroups at once: which kernels, and that what comes of it keeps the verifier's rules.

use std::collections::BTreeMap;

use spelter_shaders::compile::{self, Floats, Module};
use spelter_shaders::simd::{Interleave, Kernel, unroll_and_jam, verify};
use spelter_shaders::vectorize::{AccessCosts, widen};

const HEAD: &str = "var<immediate> limit: u32;
    @group(0) @binding(0) var<storage, read_write> data: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {";

/// The widened kernel, and whether it was made to run in pairs.
fn paired(body: &str, pairs: Interleave) -> (Kernel, bool) {
    let module = Module::from_wgsl(&format!("{HEAD}{body}}}")).expect("the text is a module");
    let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
    let mut wide =
        widen(&compile::lower(&kernel, Floats::FAST, |_, _| {}), &AccessCosts::AVX512).expect("it can be widened");
    let paired = unroll_and_jam(&mut wide, pairs);
    assert_eq!(verify(&wide), Ok(()), "{wide}");
    (wide, paired)
}

fn count(kernel: &Kernel, what: &str) -> usize {
    kernel.to_string().matches(what).count()
}

/// A chain of results from iteration to iteration, with lanes that leave one by one.
const CHAIN: &str = "
    var x = data[id.x];
    var count = 0u;
    while count < limit && x < 4.0 { x = (x * x + 0.25) * x + 0.5; count++; }
    data[id.x] = x;";

#[test]
fn a_chain_from_iteration_to_iteration_runs_in_pairs() {
    let (kernel, faster) = paired(CHAIN, Interleave::WhereProfitable);
    assert!(faster, "{kernel}");
    // What lanes do is there twice, what both share once.
    assert_eq!(count(&kernel, "fma"), 4, "{kernel}");
    assert_eq!(count(&kernel, "store_row"), 2, "{kernel}");
    assert_eq!(count(&kernel, "poll"), 1, "{kernel}");
    assert_eq!(count(&kernel, "load.s32"), 1, "{kernel}");
}

#[test]
fn what_keeps_the_machine_busy_does_not() {
    let body = "data[id.x] = data[id.x] * 2.0 + 1.0;";
    assert!(!paired(body, Interleave::WhereProfitable).1);
    assert!(paired(body, Interleave::WherePossible).1);
}

#[test]
fn subgroups_that_branch_for_themselves_cannot() {
    // The same in all lanes of a subgroup, but not in all subgroups.
    let body = "if id.x / 16u % 2u == 0u { data[id.x] = data[id.x] * 2.0; }";
    let (kernel, possible) = paired(body, Interleave::WherePossible);
    assert_eq!(possible, count(&kernel, "any v") > 0, "{kernel}");
    // Private memory is that of the subgroup that runs.
    let body = "var a: array<f32, 4>; a[limit] = 1.0; data[id.x] = a[limit + 1u];";
    assert!(!paired(body, Interleave::WherePossible).1);
}

#[test]
fn loops_with_a_constant_limit_do_not_poll() {
    let counted = "var x = data[id.x]; for (var i = 0u; i < 300u; i++) { x = sqrt(x) + 1.0; } data[id.x] = x;";
    let open = "var x = data[id.x]; for (var i = 0u; i < limit; i++) { x = sqrt(x) + 1.0; } data[id.x] = x;";
    let long = "var x = data[id.x]; for (var i = 0u; i < 300u; i++) { for (var j = 0i; j < 200; j++) {
        x = sqrt(x) + 1.0; } } data[id.x] = x;";
    for (body, polls) in [(counted, 0), (open, 1), (long, 1)] {
        let (kernel, _) = paired(body, Interleave::WhereProfitable);
        assert_eq!(count(&kernel, "poll"), polls, "{body}\n{kernel}");
    }
}
