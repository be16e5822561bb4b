//! Repairs of races in one workgroup that must hold in the others, too: the last one is often a part only, and others
//! take other branches.

use crate::check_repairs::{Case, decide, run};
use crate::common::Folder;

/// A kernel with a bounds check, of which the last workgroup is a part only.
const PARTIAL: &str = "@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) l: u32, @builtin(global_invocation_id) g: vec3u) {
    tile[l] = src[g.x];
    if g.x >= arrayLength(&dst) { return; }
    dst[g.x] = tile[63u - l];
}
";

#[test]
fn a_barrier_is_where_all_invocations_of_a_partial_workgroup_come() {
    let case = Case {
        name: "part.wgsl",
        text: PARTIAL.to_owned(),
        options: "--invocations 100 --bind 0.0=u32:range:128 --bind 0.1=zeros:400 --check",
        parts: &["= repair: workgroupBarrier() directly after the write at part.wgsl:6"],
        applied: &[("src[g.x];\n", "src[g.x]; workgroupBarrier();\n")],
    };
    decide(&Folder::new("workgroups-partial"), &[case]);
}

/// The first workgroup writes in its second round, the second one in its first.
const ROUNDS: &str = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3u) {
    for (var i = 0u; i < 2u; i++) {
        let y = tile[(l + 1u) % 64u];
        if i + w.x == 1u {
            tile[l] = y + l;
        }
    }
    data[w.x * 64u + l] = 1u;
}
";

#[test]
fn workgroups_do_not_race_in_workgroup_memory() {
    let folder = Folder::new("workgroups-rounds");
    let options = "--groups 2 --bind 0.0=zeros:512 --check";
    let case = Case {
        name: "rounds.wgsl",
        text: ROUNDS.to_owned(),
        options,
        parts: &["= repair: workgroupBarrier()"],
        applied: &[
            ("        if i + w.x", "        workgroupBarrier();\n        if i + w.x"),
            ("        }\n    }", "        }\n        workgroupBarrier();\n    }"),
        ],
    };
    decide(&folder, &[case]);
    let racy = run(&folder, "rounds.wgsl", ROUNDS, options, 66);
    assert!(!racy.stderr.contains("between workgroups") && !racy.stderr.contains("two dispatches"), "{}", racy.stderr);
}
