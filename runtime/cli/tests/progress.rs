//! Forward progress as in docs/shaders.md: waits that end, and waits that only the time limit ends.
#![allow(clippy::unwrap_used)]

use crate::common::Folder;

/// Counts the acquisitions of a lock in `count`; `BODY` acquires it, `SIZE` is the workgroup size.
const LOCK: &str = "
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> count: u32;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) { BODY }";

/// The critical section is after the loop.
const AFTER: &str = "
    loop { if atomicExchange(&lock, 1u) == 0u { break; } }
    count += 1u;
    atomicStore(&lock, 0u);";

/// The lock is acquired and released within an iteration.
const WITHIN: &str = "
    for (var done = false; !done; ) {
        if atomicExchange(&lock, 1u) == 0u { count += 1u; atomicStore(&lock, 0u); done = true; }
    }";

/// One invocation waits for a result of another.
const WAIT: &str = "
@group(0) @binding(0) var<storage, read_write> done: array<atomic<u32>>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) { BODY }";

fn with(folder: &Folder, text: &str, body: &str) {
    folder.write("wait.wgsl", text.replace("BODY", body).as_bytes());
}

fn backends(folder: &Folder) -> Vec<String> {
    let info = folder.json("info --json");
    info["backends"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// A time limit that only hanging kernels reach.
const LOST: &str = "--time-limit 0.5";
const GROUPS: u32 = 20;

#[test]
fn lanes_of_a_subgroup_wait_for_each_other_within_an_iteration_only() {
    let folder = Folder::new("lanes");
    let line = format!("run wait.wgsl --bind 0.0=zeros:4 --bind 0.1=zeros:4 --groups {GROUPS} --out 0.1=u32");
    let one_each = format!("if lane % 16u == 0u {{ {AFTER} }}");
    for backend in backends(&folder) {
        for (body, count) in [(WITHIN, GROUPS * 64), (&one_each, GROUPS * 4)] {
            with(&folder, LOCK, body);
            assert_eq!(folder.good(&format!("{line} --backend {backend}")), format!("0.1 u32  {count}\n"), "{body}");
        }
        if backend != "interpreter" {
            with(&folder, LOCK, AFTER);
            let error = folder.error(&format!("{line} --backend {backend} {LOST}"));
            assert!(error.contains("ran longer than the time limit"), "{error}");
        }
    }
}

#[test]
fn subgroups_and_workgroups_wait_for_those_before_them_only() {
    let folder = Folder::new("before");
    let line = "run wait.wgsl --bind 0.0=zeros:4000 --workers 2";
    let wait =
        |waits: &str, of: &str| format!("if {waits} {{ loop {{ if atomicLoad(&done[{of}]) != 0u {{ break; }} }} }}");
    let subgroups = |waits, other| {
        let (waits, other) = (wait(&format!("lane == {waits}u"), "0"), format!("lane == {other}u"));
        format!("{waits} if {other} {{ atomicStore(&done[0], 1u); }} if lane == 63u {{ atomicStore(&done[1], 7u); }}")
    };
    let groups = |waits, of| {
        let (wait, i) = (wait(waits, of), "group.x");
        format!("if lane == 0u {{ {wait} atomicStore(&done[{i}], {i} + 1u); }}")
    };
    let ends = |body: &str, options: &str, shown: &str| {
        with(&folder, WAIT, body);
        assert_eq!(folder.good(&format!("{line} {options}")), shown, "{body}");
    };
    let hangs = |body: &str, options: &str| {
        with(&folder, WAIT, body);
        let error = folder.error(&format!("{line} {options} {LOST}"));
        assert!(error.contains("ran longer than the time limit"), "{error}");
    };
    for backend in backends(&folder) {
        let options = |more: &str| format!("--backend {backend} {more}");
        ends(&subgroups(63, 0), &options("--groups 1 --out 0.0=u32:0..2"), "0.0 u32  1 7\n");
        hangs(&subgroups(0, 63), &options("--groups 1"));
        ends(
            &groups("group.x > 0u", "group.x - 1u"),
            &options("--groups 1000 --out 0.0=u32:998..1000"),
            "0.0 u32  999 1000\n",
        );
        hangs(&groups("group.x < 3u", "group.x + 1u"), &options("--groups 4"));
    }
}
