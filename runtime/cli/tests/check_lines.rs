//! Lines in reports of `spelter run --check` about kernels that call functions: of returns, of places, of calls.

use crate::check_repairs::run;
use crate::common::{Folder, has_glsl};

const ONE: &str = "--bind 0.0=zeros:256 --check";

/// A function that returns early, which ends no invocation, and what it has before it reads.
fn early(between: &str) -> String {
    format!(
        "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A {{ uint a[]; }};
shared uint s[64];
uint f(uint i) {{
  if (i > 40) return 0;
  s[i] = i;
  {between}
  return s[i ^ 3];
}}
void main() {{
  uint l = gl_LocalInvocationID.x;
  uint x = f(l);
  a[l] = x;
}}
"
    )
}

#[test]
fn a_return_of_a_called_function_has_its_own_line() {
    let folder = Folder::new("lines-returns");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
var<workgroup> s: array<u32, 64>;
fn f(i: u32) -> u32 {
  s[i] = i;
  if (i & 1u) == 0u { return 0u; }
  return s[i ^ 3u];
}
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  var t = 0u;
  if i % 3u == 0u { t = f(i); }
  a[i] = t;
  for (var k = 0u; k < 3u; k++) {
    a[i] = k;
    storageBarrier();
  }
}
";
    let ended = run(&folder, "calls.wgsl", wgsl, ONE, 66);
    assert!(ended.stderr.contains("instead of the return at calls.wgsl:5:"), "{}", ended.stderr);
    if !has_glsl() {
        return;
    }
    let ended = run(&folder, "race.comp", &early(""), ONE, 66);
    assert!(ended.stderr.contains("instead of the return at race.comp:6, put the code"), "{}", ended.stderr);
    let ended = run(&folder, "barrier.comp", &early("barrier();"), ONE, 66);
    assert!(ended.stderr.contains("error[SPELTER-BARRIER]"), "{}", ended.stderr);
    assert!(ended.stderr.contains("instead of the return at barrier.comp:6, put the code"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("a return before the barrier"), "{}", ended.stderr);
}

#[test]
fn the_end_of_a_kernel_is_no_return_by_which_a_loop_goes_on() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("lines-loops");
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { uint a[]; };
shared uint s[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  for (uint i = 0; i < 2; i++) {
    if (l > 12) continue;
    s[l] = i;
    a[l] = s[12 - l];
  }
}
";
    let ended = run(&folder, "continue.comp", text, ONE, 66);
    assert!(!ended.stderr.contains("the return at"), "{}", ended.stderr);
}

#[test]
fn the_call_of_two_accesses_is_said_once() {
    let folder = Folder::new("lines-inlined");
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
fn put(i: u32) { a[0] = i; }
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
  put(i);
}
";
    let ended = run(&folder, "put.wgsl", text, ONE, 66);
    assert_eq!(ended.stderr.matches("was inlined from a call at put.wgsl:4:").count(), 1, "{}", ended.stderr);
}

#[test]
fn workgroup_memory_has_the_name_of_the_block_that_is_accessed() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("lines-blocks");
    let text = "#version 450
#extension GL_EXT_shared_memory_block : require
layout(local_size_x = 64) in;
shared First { uint a[64]; } A;
shared Second { layout(offset = 64) uint b[64]; } B;
layout(binding = 0) buffer O { uint o[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  A.a[l] = l;
  barrier();
  o[l] = A.a[63 - l];
  barrier();
  B.b[l] = 3;
  o[l] = B.b[63 - l];
}
";
    let ended = run(&folder, "blocks.comp", text, ONE, 66);
    assert!(ended.stderr.contains("in workgroup variable `B`, bytes "), "{}", ended.stderr);
    assert!(!ended.stderr.contains("workgroup variable `A`"), "{}", ended.stderr);
}

#[test]
fn a_store_to_an_image_is_no_branch() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("lines-images");
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0, r32f) uniform image2D im;
layout(binding = 2) buffer O { float o[]; };
void main() {
  int l = int(gl_LocalInvocationID.x);
  float v = imageLoad(im, ivec2((l + 1) & 7, l >> 3)).x;
  imageStore(im, ivec2(l & 7, l >> 3), vec4(v));
  o[l] = v;
}
";
    let options = "--image 0.0=r32float:8x8:zeros --bind 0.2=zeros:1024 --check";
    let ended = run(&folder, "store.comp", text, options, 66);
    let place = "after the read at store.comp:7 and before the write at store.comp:8, where all invocations";
    assert!(ended.stderr.contains(place), "{}", ended.stderr);
    assert!(!ended.stderr.contains("branch or loop"), "{}", ended.stderr);
}

/// Loops whose heads and updates read what other invocations wrote, and `continue`.
const LOOPS_WGSL: &str = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
var<workgroup> s: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  s[l] = l;
  for (var i = 0u;
       i < 2u + s[l ^ 3u] / 100u;
       i += 1u + s[l ^ 1u] / 100u) {
    if l > 12u { continue; }
    a[l] = s[l ^ 2u];
  }
  var k = 0u;
  loop {
    k++;
    if k == 2u { continue; }
    a[l] = k;
    continuing {
      k += s[l ^ 5u] / 100u;
      break if
        s[l ^ 4u] + k >= 30u;
    }
  }
}
";

const LOOPS_GLSL: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { uint a[]; };
shared uint s[64];
void main() {
  uint l = gl_LocalInvocationID.x;
  s[l] = l;
  for (uint i = 0;
       i < 2 + s[l ^ 3] / 100;
       i += 1 + s[l ^ 1] / 100) {
    if (l > 12) continue;
    a[l] = s[l ^ 2];
  }
  uint k = 0;
  a[l] = 0;
  while (
      s[l ^ 4] + k < 50) {
    k += 20;
    if (l == 7) continue;
    a[l] = s[l ^ 5];
  }
}
";

#[test]
fn a_loop_has_its_own_line_and_so_has_each_part_of_its_head() {
    let folder = Folder::new("lines-loop-heads");
    let ended = run(&folder, "loops.wgsl", LOOPS_WGSL, ONE, 66);
    for (read, of_loop) in [("6:17", "5:3"), ("7:18", "5:3"), ("9:12", "5:3"), ("17:12", "12:3"), ("19:9", "12:3")] {
        let because = format!("nothing orders the write at loops.wgsl:4:3 before the read at loops.wgsl:{read}\n");
        assert!(ended.stderr.contains(&because), "{read}\n{}", ended.stderr);
        let place = format!("before the read at loops.wgsl:{read}: before the branch or loop at loops.wgsl:{of_loop},");
        assert!(ended.stderr.contains(&place), "{place}\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("the condition first reads"), "{}", ended.stderr);
    if !has_glsl() {
        return;
    }
    let ended = run(&folder, "loops.comp", LOOPS_GLSL, ONE, 66);
    for (read, of_loop) in [(9, 8), (10, 8), (12, 8), (17, 16), (20, 16)] {
        let place = format!(
            "after the write at loops.comp:7 and before the read at loops.comp:{read}: before the branch or loop at \
             loops.comp:{of_loop}, where"
        );
        assert!(ended.stderr.contains(&place), "{place}\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("the condition first reads"), "{}", ended.stderr);
}

#[test]
fn a_load_through_a_name_has_the_line_of_the_load() {
    let folder = Folder::new("lines-names");
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  let p = &a[l ^ 1u];
  a[l] = l;
  let read = *p;
  if *p == 3u {
    a[l + 64u] = read;
  }
}
";
    let ended = run(&folder, "names.wgsl", text, "--bind 0.0=zeros:512 --check", 66);
    for read in ["5:15", "6:7"] {
        let because = format!("nothing orders the write at names.wgsl:4:3 before the read at names.wgsl:{read}\n");
        assert!(ended.stderr.contains(&because), "{because}\n{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("names.wgsl:3:"), "{}", ended.stderr);
}

/// Invocations that execute an instruction at once show one race of a word: the others there are findings, too, so that
/// one that is suppressed hides none.
#[test]
fn each_two_lines_that_race_are_a_finding_in_one_subgroup() {
    let folder = Folder::new("lines-of-a-subgroup");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(16) fn main(@builtin(local_invocation_index) l: u32) {
  a[l] = l;
  let x = a[(l + 1u) % 16u];
  a[l] = x + 1u;
}
";
    let suppressed = format!("{ONE} --suppress line:mask.wgsl:3");
    for backend in ["--backend interpreter", ""] {
        let all = run(&folder, "mask.wgsl", wgsl, &format!("{ONE} {backend}"), 66);
        assert!(all.stderr.contains("mask.wgsl:3:") && all.stderr.contains("mask.wgsl:5:"), "{}", all.stderr);
        let other = run(&folder, "mask.wgsl", wgsl, &format!("{suppressed} {backend}"), 66);
        assert!(other.stderr.contains("error[SPELTER-RACE-WAR]"), "{}", other.stderr);
    }
}
