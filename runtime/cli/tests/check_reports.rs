//! Reports of `spelter run --check` on kernels that many write: sums by halves, counters, the last workgroup that sums
//! up, two bindings of one buffer. Each in GLSL and WGSL, with the words of its language.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::{Ended, Folder, has_glsl};
use serde_json::Value as Json;

/// Runs a kernel, which must end with this status.
fn run(folder: &Folder, file: &str, text: &str, options: &str, status: i32) -> Ended {
    folder.write(file, text.as_bytes());
    let ended = folder.spelter(&format!("run {file} {options}"));
    assert_eq!(ended.status, status, "{file}\n{}{}", ended.stdout, ended.stderr);
    // Neither language has the words of SPIR-V.
    for word in ["WorkgroupMemory", "UniformMemory", "NonPrivate", "MakePointer", "MakeAvailable on", " semantics of "]
    {
        assert!(!ended.stderr.contains(word), "{word}\n{}", ended.stderr);
    }
    ended
}

/// Whether the report has each of these parts.
fn has(ended: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
}

/// A sum by halves whose second round may have no barrier.
const HALVES_GLSL: &str = "#version 450
layout(local_size_x = SIZE) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint t[SIZE];
void main() {
  uint l = gl_LocalInvocationID.x;
  t[l] = data[gl_GlobalInvocationID.x];
  memoryBarrierShared(); barrier();
  for (uint half_ = SIZE / 2; half_ > 0; half_ /= 2) {
    if (l < half_) t[l] = t[l] + t[l + half_];
    if (half_ != MISSING) { memoryBarrierShared(); barrier(); }
  }
  if (l == 0) data[gl_WorkGroupID.x] = t[0];
}
";

const HALVES_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> t: array<u32, SIZE>;
@compute @workgroup_size(SIZE)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3<u32>) {
  t[l] = data[w.x * SIZEu + l];
  storageBarrier(); workgroupBarrier();
  for (var h = SIZEu / 2u; h > 0u; h /= 2u) {
    if l < h { t[l] = t[l] + t[l + h]; }
    if h != MISSINGu { storageBarrier(); workgroupBarrier(); }
  }
  if l == 0u { data[w.x] = t[0]; }
}
";

#[test]
fn sums_by_halves_of_large_workgroups_are_decided() {
    let folder = Folder::new("check-halves");
    let kernels = [("halves.wgsl", HALVES_WGSL, 9), ("halves.comp", HALVES_GLSL, 10)];
    for (file, text, line) in kernels.into_iter().take(if has_glsl() { 2 } else { 1 }) {
        for size in [64, 256, 1024] {
            let options = format!("--bind 0.0=u32:range:{size} --check");
            let text = |missing: u32| text.replace("SIZE", &size.to_string()).replace("MISSING", &missing.to_string());
            let right = run(&folder, file, &text(0xffff), &options, 0);
            has(&right, &["no data race was observed"]);
            let racy = run(&folder, file, &text(size / 4), &options, 66);
            has(&racy, &["error[SPELTER-RACE-", " in workgroup variable `t`", "= repair: "]);
            has(&racy, &[&format!("{file}:{line}")]);
            assert!(!racy.stderr.contains("warning"), "{}", racy.stderr);
        }
    }
}

/// Invocations exchange values through a coherent buffer.
const EXCHANGE: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer Data { uint data[]; };
layout(binding = 1) buffer To { uint to[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  data[l] = l;
  memoryBarrierBuffer(); barrier(); AFTER
  to[l] = data[63 - l];
}
";

#[test]
fn what_profile_spec_finds_right_gets_no_note() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("check-notes");
    let note = "the memory barrier precedes the control barrier";
    for (after, noted) in [("memoryBarrierBuffer();", false), ("", true)] {
        let text = EXCHANGE.replace("AFTER", after);
        for repeat in [1, 3] {
            let options = format!("--bind 0.0=zeros:256 --bind 0.1=zeros:256 --repeat {repeat}");
            let common = run(&folder, "exchange.comp", &text, &format!("{options} --check"), 0);
            assert_eq!(common.stderr.contains(note), noted, "{after}\n{}", common.stderr);
            assert_eq!(common.stderr.contains("checked: 1 note"), noted, "{after}\n{}", common.stderr);
            run(&folder, "exchange.comp", &text, &format!("{options} --check=spec"), if noted { 66 } else { 0 });
        }
    }
    // Nothing depends on the barrier.
    let text = EXCHANGE.replace("AFTER", "").replace("63 - l", "l");
    let apart = run(&folder, "exchange.comp", &text, "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check", 0);
    has(&apart, &["no data race was observed"]);
}

/// Of several dispatches a finding has the first one in which it was made.
#[test]
fn a_finding_of_several_dispatches_has_its_dispatch() {
    let folder = Folder::new("check-dispatch");
    // The first five runs have no race if the counters begin at 0.
    let wgsl = "struct State { runs: array<u32, 2>, last: u32 }
@group(0) @binding(0) var<storage, read_write> state: State;
@compute @workgroup_size(2) fn main(@builtin(local_invocation_index) l: u32) {
  let runs = state.runs[l];
  state.runs[l] = runs + 1u;
  if runs >= 5u { state.last = l; }
}";
    let dispatch = |options: &str| {
        let ended = run(&folder, "count.wgsl", wgsl, &format!("{options} --check --json"), 66);
        let found: Json = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{found}");
        found["findings"][0]["dispatch"].clone()
    };
    let [first, sixth] = ["u32:5,5,0", "u32:0,0,0"].map(|state| {
        let found = dispatch(&format!("--bind 0.0={state} --repeat 12"));
        found["submission"].as_u64().unwrap()
    });
    assert!(first < sixth, "{first}, {sixth}");
    has(&run(&folder, "count.wgsl", wgsl, "--bind 0.0=u32:0,0,0 --repeat 12 --check", 66), &[" of submission "]);
    // That of the only one says nothing.
    assert_eq!(dispatch("--bind 0.0=u32:5,5,0"), Json::Null);
    let one = run(&folder, "count.wgsl", wgsl, "--bind 0.0=u32:5,5,0 --check", 66);
    assert!(!one.stderr.contains("submission"), "{}", one.stderr);
}

#[test]
fn lost_updates_are_repaired_by_atomics() {
    let folder = Folder::new("check-updates");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(64) fn main() {
  c[0] += 1u;
}";
    for groups in [1, 2] {
        let options = format!("--bind 0.0=zeros:64 --groups {groups} --check");
        let ended = run(&folder, "count.wgsl", wgsl, &options, 66);
        let call = "= repair: atomicAdd(&c[0], 1u) in place of the update at count.wgsl:3:3, with `atomic<u32>` \
                    for `u32` in the declaration of `c`, and atomicLoad or atomicStore in its other accesses: ";
        has(&ended, &[call]);
        assert!(!ended.stderr.contains("Barrier()") && !ended.stderr.contains("two dispatches"), "{}", ended.stderr);
    }
    let largest = wgsl.replace("c[0] += 1u;", "if c[0] < 7u { c[0] = 7u; }");
    let ended = run(&folder, "largest.wgsl", &largest, "--bind 0.0=zeros:64 --check", 66);
    has(&ended, &["= repair: atomicMax(&c[0], 7u) in place of the update at largest.wgsl:3:18, with `atomic<u32>`"]);
    // No update: each writes what it reads nowhere.
    let same = wgsl.replace("c[0] += 1u;", "c[0] = 1u;");
    let ended = run(&folder, "same.wgsl", &same, "--bind 0.0=zeros:64 --check", 66);
    assert!(!ended.stderr.contains("in place of the update"), "{}", ended.stderr);
    if !has_glsl() {
        return;
    }
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer C { uint c[]; };
void main() { if (gl_LocalInvocationID.x < 60) c[0] += 1u; }
";
    let ended = run(&folder, "count.comp", glsl, "--bind 0.0=zeros:64 --check", 66);
    has(&ended, &["= repair: atomicAdd(c[0], 1u) in place of the update at count.comp:4: "]);
    // Without a column, the whole line is meant.
    let line = "void main() { if (gl_LocalInvocationID.x < 60) c[0] += 1u; }";
    has(&ended, &[&format!("4 │ {line}"), &"^".repeat(line.len())]);
}

const LAST_GLSL: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Partial { uint partial[]; };
layout(binding = 1) buffer Counter { uint counter; };
layout(binding = 2) buffer Sum { uint sum; };
void main() {
  if (gl_LocalInvocationID.x == 0) {
    partial[gl_WorkGroupID.x] = gl_WorkGroupID.x;
    if (atomicAdd(counter, 1u) == gl_NumWorkGroups.x - 1) {
      uint all = 0;
      for (uint i = 0; i < gl_NumWorkGroups.x; i++) all += partial[i];
      sum = all;
    }
  }
}
";

#[test]
fn the_last_workgroup_needs_a_counter_that_orders() {
    let folder = Folder::new("check-last");
    // A file for each race: that of the first one.
    let atomics = |name: &str| {
        let text = String::from_utf8(folder.read(name)).unwrap();
        let decided = folder.spelter(&format!("litmus {name}"));
        assert!(decided.status == 0 && decided.stdout.contains("RACY"), "{}{}\n{text}", decided.stdout, decided.stderr);
        text.matches("\nrmw.").count()
    };
    let wgsl = include_str!("races/13-last-group.wgsl");
    // Of more workgroups the litmus test takes long.
    for groups in [4, 8] {
        let options = format!(
            "--bind 0.0=u32:range:{} --bind 0.1=zeros:{} --bind 0.2=zeros:4 --bind 0.3=zeros:256 --groups {groups} \
             --check --litmus last.test",
            64 * groups,
            4 * groups
        );
        let ended = run(&folder, "13.wgsl", wgsl, &options, 66);
        has(&ended, &["atomics of WGSL order no other memory", "= repair: two dispatches: nothing in WGSL orders"]);
        assert!(atomics("last.test") >= 2);
        if !has_glsl() {
            return;
        }
        let options =
            format!("--bind 0.0=zeros:{} --bind 0.1=zeros:4 --bind 0.2=zeros:4 --groups {groups}", 4 * groups);
        let ended = run(&folder, "last.comp", LAST_GLSL, &format!("{options} --check --litmus last.test"), 66);
        let arguments = "gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease";
        let repair = format!(
            "{arguments} as further arguments of the atomic update at last.comp:9, or memoryBarrierBuffer() before \
             and after it"
        );
        has(&ended, &[&repair, "`coherent` on `Partial` (set 0, binding 0)"]);
        has(&ended, &["orders no other memory: it is relaxed, and no memory barrier for its memory is before it"]);
        assert!(atomics("last.test") >= 2);
        let fixed = LAST_GLSL.replace("buffer Partial", "coherent buffer Partial");
        let fences = fixed.replace(
            "    if (atomicAdd(counter, 1u) ==",
            "    memoryBarrierBuffer(); uint n = atomicAdd(counter, 1u); memoryBarrierBuffer();\n    if (n ==",
        );
        let scoped = fixed
            .replace("450\n", "450\n#extension GL_KHR_memory_scope_semantics : enable\n")
            .replace("1u)", &format!("1u, {arguments})"));
        for text in [fences, scoped] {
            assert_ne!(text, fixed);
            let ended = run(&folder, "last.comp", &text, &format!("{options} --check"), 0);
            has(&ended, &["no data race was observed"]);
        }
    }
}

#[test]
fn a_barrier_for_other_memory_is_named_in_the_language() {
    let folder = Folder::new("check-class");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  data[l] = l;
  workgroupBarrier();
  data[64u + l] = data[63u - l];
}";
    let ended = run(&folder, "class.wgsl", wgsl, "--bind 0.0=zeros:512 --check", 66);
    has(
        &ended,
        &["because both invocations wait at the barrier at class.wgsl:4:3, but it does not cover storage buffers"],
    );
    has(&ended, &["= repair: storageBarrier() in addition to the barrier at class.wgsl:4:3"]);
    if !has_glsl() {
        return;
    }
    let text = EXCHANGE.replace("memoryBarrierBuffer(); barrier(); AFTER", "barrier();");
    let ended = run(&folder, "class.comp", &text, "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check", 66);
    has(&ended, &["because both invocations wait at the barrier at class.comp:8, but it does not cover buffers"]);
    has(&ended, &["= repair: memoryBarrierBuffer() before the barrier at class.comp:8\n"]);
    let text = text.replace("coherent ", "");
    let ended = run(&folder, "class.comp", &text, "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check", 66);
    has(&ended, &["= repair: memoryBarrierBuffer() before the barrier at class.comp:8\n"]);
}

#[test]
fn an_early_return_before_a_barrier_is_reported_with_its_line() {
    let folder = Folder::new("check-return");
    let wgsl = "var<workgroup> t: array<u32, 64>;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  if l >= data[1] + 10u { return; }
  t[l] = l;
  workgroupBarrier();
  data[l] = t[0];
}";
    folder.write("return.wgsl", wgsl.as_bytes());
    // WGSL requires uniform control flow; SPIR-V does not say so.
    let ended = folder.spelter("run return.wgsl --bind 0.0=u32:range:256 --check");
    assert_ne!(ended.status, 0, "{}", ended.stderr);
    if !has_glsl() {
        return;
    }
    let text = include_str!("races/11-divergent.comp");
    let ended = run(&folder, "11.comp", text, "--bind 0.0=u32:range:100 --push u32:100 --check", 66);
    has(&ended, &["error[SPELTER-BARRIER]: barrier that not all invocations of its scope reach", "barrier();"]);
    has(&ended, &["had ended; a return before the barrier is at 11.comp:8"]);
}

/// The pair of a note is no error: another one of the same dispatch is.
#[test]
fn a_note_is_not_about_the_accesses_of_an_error() {
    if !has_glsl() {
        return;
    }
    let text = "#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer B { uint a[]; };
void main() {
    uint l = gl_LocalInvocationIndex;
    a[l] = a[l + 1] + 1;
    memoryBarrierBuffer(); barrier();
    if (l == 0) a[40] = a[3];
}";
    let folder = Folder::with("check-note-error", "note.comp", text);
    let ended = folder.spelter("run note.comp --bind 0.0=zeros:1024 --check --json");
    let found: Json = serde_json::from_str(&ended.stdout).unwrap();
    let lines = |finding: &Json| [&finding["first"]["line"], &finding["second"]["line"]].map(Json::as_u64);
    let findings = found["findings"].as_array().unwrap();
    let of =
        |severity: &str| findings.iter().filter(|found| found["severity"] == *severity).map(lines).collect::<Vec<_>>();
    let (errors, notes) = (of("error"), of("note"));
    assert!(!errors.is_empty() && notes.iter().all(|note| !errors.contains(note)), "{errors:?} {notes:?}");
}
