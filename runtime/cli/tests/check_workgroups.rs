//! Repairs of races in one workgroup that must hold in the others, too: the last one is often a part only, and others
//! take other branches.

use crate::check_repairs::{Case, decide, run};
use crate::common::{Folder, has_glsl};

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

/// Each invocation reads both neighbours in one statement, and writes its own element.
const NEIGHBOURS: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
    let n = arrayLength(&a);
    let i = g.x;
    RETURN
    a[i] = (a[max(i, 1u) - 1u] + a[i] + a[min(i + 1u, n - 1u)]) / 3.0;
}
";

const TWO_DISPATCHES: &[&str] = &[
    "= because a barrier between them orders the invocations of a workgroup, but they race between workgroups, too: \
     only two dispatches order these",
    "= repair: two dispatches: ",
];

/// Runs a racy kernel, and looks for parts of each error, of which there is at least one.
fn all_say(folder: &Folder, (name, text, options): (&str, &str, &str), parts: &[&str]) {
    let racy = run(folder, name, text, options, 66);
    let errors = racy.stderr.matches("error[SPELTER-RACE").count();
    for part in parts {
        assert!(errors > 0 && racy.stderr.matches(part).count() == errors, "{name}: {part}\n{}", racy.stderr);
    }
}

#[test]
fn few_races_between_workgroups_count_beside_many_of_one() {
    let folder = Folder::new("workgroups-neighbours");
    let text = NEIGHBOURS.replace("RETURN", "");
    let four = "--groups 4 --bind 0.0=f32:random:256:1 --check";
    all_say(&folder, ("four.wgsl", &text, four), TWO_DISPATCHES);
    // So they do beside a return, past which a barrier would have to be.
    let early = NEIGHBOURS.replace("RETURN", "if i == 0u || i + 1u >= n { return; }");
    all_say(&folder, ("early.wgsl", &early, four), TWO_DISPATCHES);
    if has_glsl() {
        let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { float a[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = uint(a.length());
    a[i] = (a[max(i, 1u) - 1u] + a[i] + a[min(i + 1u, n - 1u)]) / 3.0;
}
";
        all_say(&folder, ("four.comp", text, four), TWO_DISPATCHES);
    }
    let case = Case {
        name: "one.wgsl",
        text,
        options: "--bind 0.0=f32:random:64:1 --check",
        parts: &[
            "= repair: storageBarrier() between the read at one.wgsl:7:13 and the write at one.wgsl:7:5, which must",
        ],
        applied: &[("a[i] = (", "let v = ("), ("3.0;", "3.0; storageBarrier(); a[i] = v;")],
    };
    decide(&folder, &[case]);
}

#[test]
fn neighbours_through_two_bindings_of_one_buffer_need_two_dispatches() {
    let text = "@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
  let i = g.x; let n = arrayLength(&src);
  dst[i] = src[(i + 1u) % n] ^ src[(i + n - 1u) % n];
}
";
    let options = "--groups 4 --bind 0.0=u32:range:256 --bind 0.1=0.0 --check";
    let folder = Folder::new("workgroups-alias");
    all_say(&folder, ("alias.wgsl", text, options), &["= repair: two dispatches: "]);
    let racy = run(&folder, "alias.wgsl", text, options, 66).stderr;
    assert!(racy.contains("= because with one binding for both, a barrier between them orders"), "{racy}");
}

#[test]
fn a_flag_that_several_workgroups_set_is_atomic() {
    let folder = Folder::new("workgroups-flag");
    let text = "@group(0) @binding(0) var<storage, read_write> changed: u32;
@compute @workgroup_size(SIZE)
fn main() {
    changed = 1u;
}
";
    let case = |name, size, options| Case {
        name,
        text: text.replace("SIZE", size),
        options,
        parts: &["= repair: atomic operations in place of the write at "],
        applied: &[
            ("read_write> changed: u32", "read_write> changed: atomic<u32>"),
            ("changed = 1u", "atomicStore(&changed, 1u)"),
        ],
    };
    // The first race that is seen is one of a workgroup, or of two.
    let cases = [
        case("one.wgsl", "64", "--groups 1 --bind 0.0=zeros:4 --check"),
        case("two.wgsl", "64", "--groups 2 --bind 0.0=zeros:4 --check"),
        case("apart.wgsl", "1", "--groups 2 --bind 0.0=zeros:4 --check"),
    ];
    decide(&folder, &cases);
    if has_glsl() {
        let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer C { uint changed; };
layout(binding = 1) readonly buffer X { uint x[]; };
void main() {
    if (changed == 0u)
        if (x[gl_GlobalInvocationID.x] > 5u)
            changed = 1u;
}
";
        let options = "--groups 4 --bind 0.0=zeros:4 --bind 0.1=u32:range:256 --check";
        all_say(&folder, ("seen.comp", text, options), &["= repair: atomic operations in place of the "]);
    }
}

/// A loop that lacks its second barrier. In the last workgroup some invocations return before the first one.
const TAIL: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
layout(push_constant) uniform P { uint n; };
shared uint t[64];
void main() {
  uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationIndex;
  if (i >= n) return;
  uint s = 0u;
  for (uint k = 0u; k < 4u; ++k) {
    t[l] = d[i] + k;
    barrier();
    s += t[l ^ 1u];
  }
  d[i] = s;
}
";

#[test]
fn a_return_in_another_workgroup_hides_no_repair() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("workgroups-tail");
    let parts = [
        "= because one of them is of the next iteration of the loop, which no barrier separates from this one",
        "= repair: barrier() at the end of the loop, after line 13, before the next iteration",
    ];
    let whole = "--groups 2 --bind 0.0=u32:range:128 --push u32:128 --check";
    all_say(&folder, ("whole.comp", TAIL, whole), &parts);
    let tail = "--groups 2 --bind 0.0=u32:range:100 --push u32:100 --check";
    all_say(&folder, ("tail.comp", TAIL, tail), &parts);
    // What is left is the barrier that was there, and the new one, which the same invocations miss.
    let repaired = TAIL.replace("s += t[l ^ 1u];", "s += t[l ^ 1u]; barrier();");
    let ended = run(&folder, "repaired.comp", &repaired, tail, 66);
    assert!(ended.stderr.contains("SPELTER-BARRIER") && !ended.stderr.contains("SPELTER-RACE"), "{}", ended.stderr);
}

/// One binding in place of two is a repair only if both are buffers of like elements, and one is written through.
#[test]
fn one_binding_for_both_is_of_one_kind_and_writable() {
    let folder = Folder::new("workgroups-kinds");
    let wgsl = |element: &str, index: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<{element}>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
  let x = a[63u - l];
  b[{index}] = {element}(x);
}}
"
        )
    };
    let options = "--bind 0.0=u32:range:256 --bind 0.1=0.0 --check";
    let racy = run(&folder, "reads.wgsl", &wgsl("u32", "l"), options, 66).stderr;
    let has = |text: &str| racy.contains(text);
    assert!(has("`b` (set 0, binding 1) in place of `a`") && !has("`a` (set 0, binding 0) in place of"), "{racy}");
    let racy = run(&folder, "types.wgsl", &wgsl("vec2<u32>", "l / 2u"), options, 66).stderr;
    assert!(!racy.contains(") in place of `"), "{racy}");
}
