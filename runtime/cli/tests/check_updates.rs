//! Repairs in reports of `spelter run --check` about updates: by a barrier that separates them, where one does, and by
//! an atomic operation.

use crate::check_repairs::{Case, decide, run};
use crate::common::{Folder, has_glsl};

const ONE: &str = "--bind 0.0=zeros:256 --check";

/// Whether a report has one repair before another one.
fn is_before(report: &str, first: &str, second: &str) -> bool {
    report.find(first).zip(report.find(second)).is_some_and(|(first, second)| first < second)
}

#[test]
fn a_barrier_that_separates_updates_comes_before_an_atomic() {
    let folder = Folder::new("updates-barriers");
    let rounds = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  for (var k = 0u; k < 64u; k++) {
    d[(l + k) % 64u] += 1u;
  }
}
";
    let calls = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
fn add(i: u32) { d[i] += 1u; }
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  add(l);
  add(l ^ 1u);
}
";
    const AT_THE_END: &str =
        "= repair: storageBarrier() at the end of the loop, after line 4, before the next iteration";
    const BETWEEN: &str =
        "= repair: storageBarrier() after the call at calls.wgsl:4:3 and before the call at calls.wgsl:5:3, where";
    let cases = [
        Case {
            name: "rounds.wgsl",
            text: rounds.to_owned(),
            options: ONE,
            parts: &[
                AT_THE_END,
                "= repair: atomicAdd(&d[(l + k) % 64u], 1u) in place of the update at rounds.wgsl:4:5",
            ],
            applied: &[("+= 1u;", "+= 1u; storageBarrier();")],
        },
        Case {
            name: "calls.wgsl",
            text: calls.to_owned(),
            options: ONE,
            parts: &[BETWEEN, "= repair: atomicAdd(&d[i], 1u) in place of the update at calls.wgsl:2:18"],
            applied: &[("add(l);", "add(l); storageBarrier();")],
        },
    ];
    decide(&folder, &cases);
    for (name, text, barrier) in [("rounds.wgsl", rounds, AT_THE_END), ("calls.wgsl", calls, BETWEEN)] {
        let racy = run(&folder, name, text, ONE, 66);
        assert!(is_before(&racy.stderr, barrier, "= repair: atomicAdd("), "{}", racy.stderr);
    }
}

#[test]
fn a_barrier_that_separates_conditions_comes_before_an_atomic() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("updates-conditions");
    let cases = [Case {
        name: "most.comp",
        text: "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  for (uint k = 0; k < 2; k++) {
    if (d[l ^ k] < 7)
      d[l ^ k] = 7;
  }
}
"
        .to_owned(),
        options: ONE,
        parts: &[
            "= repair: memoryBarrierBuffer(); barrier(); at the end of the loop, after line 8, before the next",
            "= repair: atomicMax(d[l ^ k], 7) in place of the update at most.comp:8",
        ],
        applied: &[("= 7;\n", "= 7;\n    memoryBarrierBuffer(); barrier();\n")],
    }];
    decide(&folder, &cases);
}

#[test]
fn no_barrier_is_within_an_update() {
    let folder = Folder::new("updates-within");
    let text = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  for (var k = 0u; k < 2u; k++) {
    d[l / 4u] += 1u;
  }
}
";
    let racy = run(&folder, "lost.wgsl", text, ONE, 66);
    assert!(racy.stderr.contains("= repair: atomicAdd(&d[l / 4u], 1u)"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("storageBarrier"), "{}", racy.stderr);
}
