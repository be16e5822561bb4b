//! `spelter run --check` of kernels that run for long: what is observed again costs far more than the run, and does not
//! count against the time limit of the device. Right kernels stay right, races between far workgroups are errors, and
//! the result is that of the dispatch.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::Folder;
use serde_json::Value as Json;

/// A kernel whose workgroups meet 400 times at two barriers, with statements before and after.
fn kernel(size: u32, before: &str, after: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
var<workgroup> s: array<u32, {size}>;
@compute @workgroup_size({size}) fn main(
    @builtin(local_invocation_index) l: u32,
    @builtin(workgroup_id) w: vec3<u32>,
    @builtin(num_workgroups) n: vec3<u32>
) {{
    var a = 0u;
    {before}
    for (var i = 0u; i < 400u; i++) {{
        s[l] = l + i;
        workgroupBarrier();
        a += s[(l + 1u) % {size}u];
        workgroupBarrier();
    }}
    {after}
}}
"
    )
}

const BIND: &str = "--bind 0.0=zeros:1M --out 0.0=u32:0..16384";

fn run(name: &str, text: &str, groups: u32, status: i32) -> Json {
    let folder = Folder::with(name, "kernel.wgsl", text);
    let ended = folder.spelter(&format!("run kernel.wgsl {BIND} --groups {groups} --check --time-limit 10 --json"));
    assert_eq!(ended.status, status, "{}{}", ended.stdout, ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_race_between_workgroups_that_run_for_long_is_an_error() {
    let far = "o[w.x * 1024u + l] = a;
    if w.x == n.x - 1u && l == 0u { o[0] = 7u; }";
    let found = run("check-bound-far", &kernel(1024, "", far), 128, 66);
    let findings = found["findings"].as_array().unwrap();
    assert_eq!((findings.len(), &findings[0]["id"]), (1, &"SPELTER-RACE-WAW".into()), "{found}");
    let groups = ["first", "second"].map(|access| findings[0][access]["workgroup"].clone());
    assert_eq!(groups, [serde_json::json!([0, 0, 0]), serde_json::json!([127, 0, 0])], "{found}");
    assert_eq!(found["checked"]["undecided"], 0);
}

#[test]
fn a_race_inside_of_a_workgroup_of_many_is_an_error() {
    let before = "if w.x == 0u { o[0] = l; }";
    let after = "if w.x == n.x - 1u && l == 0u { o[0] = a; }";
    let found = run("check-bound-erar", &kernel(1024, before, after), 128, 66);
    assert_eq!(found["checked"]["undecided"], 0, "{found}");
    let findings = found["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["severity"] == "error") && findings.len() == 2, "{found}");
}

#[test]
fn the_search_for_notes_ends_before_the_device_does() {
    // What orders these accesses is no barrier for the model: they are private.
    let after = "o[w.x * 256u + l] = a;
    storageBarrier();
    s[l] = o[w.x * 256u + (l ^ 1u)];";
    let found = run("check-bound-notes", &kernel(256, "", after), 512, 0);
    assert!(found["error"].is_null(), "{found}");
}

#[test]
fn what_a_replay_leaves_is_what_the_dispatch_left() {
    let far = "o[w.x * 256u + l] = o[w.x * 256u + l] + a + 1u;
    if w.x == n.x - 1u && l < 2u { o[l] = 7u; }";
    let text = kernel(256, "", far);
    let checked = run("check-bound-result", &text, 64, 66);
    let folder = Folder::with("check-bound-unchecked", "kernel.wgsl", &text);
    let line = format!("run kernel.wgsl {BIND} --groups 64 --json");
    let unchecked: Json = serde_json::from_str(&folder.spelter(&line).stdout).unwrap();
    assert_eq!(checked["outputs"], unchecked["outputs"]);
    assert!(checked["outputs"][0].is_object(), "{checked}");
}

#[test]
fn races_of_a_kernel_that_is_dispatched_many_times_are_counted_as_often() {
    let text = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) {
    o[g.x / 2u] = o[g.x / 2u] + g.x;
}
";
    let folder = Folder::with("check-bound-repeat", "kernel.wgsl", text);
    let findings = |repeat: u64| {
        let line = format!("run kernel.wgsl --bind 0.0=zeros:4K --groups 4 --check --repeat {repeat} --json");
        let ended = folder.spelter(&line);
        assert_eq!(ended.status, 66, "{}", ended.stderr);
        let found: Json = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(found["checked"]["confirmed"], found["checked"]["suspicions"]);
        found["findings"].as_array().unwrap().clone()
    };
    let (one, many) = (findings(1), findings(30));
    assert_eq!(one.len(), many.len());
    for (one, many) in one.iter().zip(&many) {
        assert_eq!((&one["first"], &one["second"]), (&many["first"], &many["second"]));
        assert!(many["count"].as_u64().unwrap() >= 10 * one["count"].as_u64().unwrap(), "{many}");
    }
}

/// The memory of the detector is for the words that are accessed, and not for those that access them.
#[test]
fn a_hundred_million_invocations_are_checked_in_little_memory() {
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(256) fn main(
    @builtin(local_invocation_index) l: u32,
    @builtin(workgroup_id) w: vec3<u32>,
    @builtin(num_workgroups) n: vec3<u32>
) {
    if a[l] == 7u || (all(w + 1u == n) && l == 255u) { a[256] = 1u; }
}
";
    let folder = Folder::with("check-bound-many", "kernel.wgsl", text);
    let ended =
        folder.spelter("run kernel.wgsl --bind 0.0=zeros:2K --groups 20000,20 --check --check-memory 1M --json");
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    let found: Json = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&found["checked"]["accesses_not_checked"], &found["findings"]), (&0.into(), &serde_json::json!([])));
}
