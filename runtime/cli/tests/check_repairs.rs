//! Repairs in reports of `spelter run --check`: each is applied to the text as it says, and then there is no report.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common::{Ended, Folder, has_glsl};

/// A kernel with a race, and its repair.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    pub(crate) options: &'static str,
    /// Parts of the report.
    pub(crate) parts: &'static [&'static str],
    /// Texts of the kernel and what the repair makes of them.
    pub(crate) applied: &'static [(&'static str, &'static str)],
}

pub(crate) fn run(folder: &Folder, file: &str, text: &str, options: &str, status: i32) -> Ended {
    folder.write(file, text.as_bytes());
    let ended = folder.spelter(&format!("run {file} {options}"));
    assert_eq!(ended.status, status, "{file} {options}\n{text}\n{}{}", ended.stdout, ended.stderr);
    ended
}

pub(crate) fn decide(folder: &Folder, cases: &[Case]) {
    for Case { name, text, options, parts, applied } in cases {
        let racy = run(folder, name, text, options, 66);
        for part in *parts {
            assert!(racy.stderr.contains(part), "{name}: {part}\n{}", racy.stderr);
        }
        let mut repaired = text.clone();
        for (from, to) in *applied {
            assert!(repaired.contains(from), "{name}: {from}");
            repaired = repaired.replace(from, to);
        }
        let silent = run(folder, name, &repaired, options, 0);
        assert!(!silent.stderr.contains("[SPELTER-RACE"), "{name}\n{}", silent.stderr);
    }
}

const ONE: &str = "--bind 0.0=u32:range:64 --check";

/// Each round writes a word, and reads that of another invocation.
const LOOP_WGSL: &str = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  var s = 0u;
  for (var i = 0u; i < 4u; i++) {
    t[l] = d[l] + i;
    FIRST
    s += t[63u - l];
    SECOND
  }
  d[l] = s;
}
";

const AT_THE_END: &str = "= repair: workgroupBarrier() at the end of the loop, after line 8, before the next iteration, \
                          where all invocations of the workgroup execute it";

#[test]
fn a_barrier_is_named_by_its_place_in_the_text() {
    let folder = Folder::new("repair-places");
    let text = |first, second| LOOP_WGSL.replace("FIRST", first).replace("SECOND", second);
    let cases = [
        Case {
            name: "end.wgsl",
            text: text("workgroupBarrier();", ""),
            options: ONE,
            parts: &[AT_THE_END, "= because one of them is of the next iteration of the loop, which no barrier"],
            applied: &[("t[63u - l];\n", "t[63u - l]; workgroupBarrier();\n")],
        },
        Case {
            // In the text the read comes before the write, in the execution after it.
            name: "between.wgsl",
            text: text("", "workgroupBarrier();"),
            options: ONE,
            parts: &["= repair: workgroupBarrier() after the write at between.wgsl:6:5 and before the read at \
                between.wgsl:8:5, where all invocations of the workgroup execute it"],
            applied: &[("d[l] + i;\n", "d[l] + i; workgroupBarrier();\n")],
        },
        Case {
            name: "both.wgsl",
            text: text("", ""),
            options: ONE,
            parts: &[
                "= repair: workgroupBarrier() after the write at both.wgsl:6:5 and before the read at both.wgsl:8:5, \
                and at the end of the loop, after line 8, before the next iteration",
            ],
            applied: &[
                ("d[l] + i;\n", "d[l] + i; workgroupBarrier();\n"),
                ("t[63u - l];\n", "t[63u - l]; workgroupBarrier();\n"),
            ],
        },
        Case {
            // The read is first in the text, whichever was first in the execution.
            name: "swap.wgsl",
            text: LOOP_WGSL
                .replace("FIRST", "")
                .replace("SECOND", "")
                .replace("  for (var i = 0u; i < 4u; i++) {\n", "  {\n")
                .replace("t[l] = d[l] + i;", "s = t[63u - l];")
                .replace("s += t[63u - l];", "t[l] = s + 1u;"),
            options: ONE,
            parts: &[
                "= repair: workgroupBarrier() after the read at swap.wgsl:6:9 and before the write at swap.wgsl:8:5",
            ],
            applied: &[("s = t[63u - l];\n", "s = t[63u - l]; workgroupBarrier();\n")],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn no_barrier_is_offered_that_not_all_invocations_execute() {
    let folder = Folder::new("repair-divergent");
    let text = LOOP_WGSL
        .replace("FIRST", "")
        .replace("SECOND", "")
        .replace("i < 4u", "i < l % 3u")
        .replace("63u - l", "l ^ 1u");
    let racy = run(&folder, "branch.wgsl", &text, ONE, 66);
    assert!(racy.stderr.contains("= because no barrier can be between them as the code is"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("repair: workgroupBarrier()"), "{}", racy.stderr);
}

/// Invocations exchange values through a buffer.
const EXCHANGE: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(binding = 1) buffer To { uint to[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  data[l] = l;
  to[l] = data[63 - l];
}
";

const LOCK: &str = "#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Lock { uint lock; };
layout(binding = 1) buffer Count { uint count; };
void main() {
  while (atomicCompSwap(lock, 0u, 1u) != 0u) {}
  count += 1u;
  atomicExchange(lock, 0u);
}
";

#[test]
fn repairs_of_glsl_are_those_of_the_profile() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-profiles");
    let cases = [
        Case {
            name: "common.comp",
            text: EXCHANGE.to_owned(),
            options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check",
            parts: &[
                "= repair: memoryBarrierBuffer(); barrier(); after the write at common.comp:7 and before the read \
                at common.comp:8, where all invocations of the workgroup execute it\n",
            ],
            applied: &[("data[l] = l;\n", "data[l] = l; memoryBarrierBuffer(); barrier();\n")],
        },
        Case {
            name: "spec.comp",
            text: EXCHANGE.to_owned(),
            options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check=spec",
            parts: &[
                "= repair: memoryBarrierBuffer(); barrier(); memoryBarrierBuffer(); after the write at spec.comp:7 \
                and before the read at spec.comp:8, where all invocations of the workgroup execute it, with `coherent` \
                on `Data` (set 0, binding 0)\n",
            ],
            applied: &[
                ("data[l] = l;\n", "data[l] = l; memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();\n"),
                ("buffer Data", "coherent buffer Data"),
            ],
        },
        Case {
            name: "bare.comp",
            text: EXCHANGE.replace("data[l] = l;\n", "data[l] = l; barrier();\n"),
            options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check",
            parts: &["= repair: memoryBarrierBuffer() before the barrier at bare.comp:7\n"],
            applied: &[("barrier();\n", "memoryBarrierBuffer(); barrier();\n")],
        },
        Case {
            name: "half.comp",
            text: EXCHANGE.replace("data[l] = l;\n", "data[l] = l; memoryBarrierBuffer(); barrier();\n"),
            options: "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --check=spec",
            // One of the two memory barriers is there.
            parts: &[
                "= repair: memoryBarrierBuffer() after the barrier at half.comp:7, and `coherent` on `Data` (set \
                0, binding 0)\n",
            ],
            applied: &[
                ("barrier();\n", "barrier(); memoryBarrierBuffer();\n"),
                ("buffer Data", "coherent buffer Data"),
            ],
        },
        Case {
            name: "lock.comp",
            text: LOCK.to_owned(),
            options: "--bind 0.0=zeros:4 --bind 0.1=zeros:4 --groups 4 --check=spec",
            parts: &[
                "gl_SemanticsRelease as further arguments of the atomic update at lock.comp:8",
                "gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire, gl_StorageSemanticsBuffer, \
                    gl_SemanticsAcquire as further arguments of the atomic update at lock.comp:6",
                "`coherent` on `Count` (set 0, binding 1)",
                "; gl_Scope… needs `#extension GL_KHR_memory_scope_semantics : require`\n",
                "= repair: two dispatches: no control barrier waits for another workgroup",
                "= repair: atomicAdd(count, 1u) in place of the update at lock.comp:7",
            ],
            applied: &[
                ("#version 450\n", "#version 450\n#extension GL_KHR_memory_scope_semantics : require\n"),
                (
                    "0u, 1u)",
                    "0u, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire, gl_StorageSemanticsBuffer, \
                     gl_SemanticsAcquire)",
                ),
                ("(lock, 0u);", "(lock, 0u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);"),
                ("buffer Count", "coherent buffer Count"),
            ],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn a_note_names_the_memory_and_both_accesses() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-notes");
    let text = EXCHANGE.replace("data[l] = l;\n", "data[l] = l; memoryBarrierBuffer(); barrier();\n");
    let options = "--bind 0.0=zeros:256 --bind 0.1=zeros:256 --repeat 3 --check";
    let noted = run(&folder, "note.comp", &text, options, 0);
    for part in [
        "note[SPELTER-NOTE]: not a data race in this profile in `Data` (set 0, binding 0), bytes ",
        "- write by workgroup (0, 0, 0), invocation (",
        "^ read by workgroup (0, 0, 0), invocation (",
        "the control barrier at note.comp:7,",
        "checked: 1 note\n",
    ] {
        assert!(noted.stderr.contains(part), "{part}\n{}", noted.stderr);
    }
}

#[test]
fn atomics_are_named_where_the_language_has_them_for_the_type() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-atomics");
    let text = |statement: &str| {
        format!(
            "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer D {{ float f; vec2 v; uint n; }};\n\
             shared float s;\nvoid main() {{\n  uint l = gl_LocalInvocationID.x;\n{statement}\n}}\n"
        )
    };
    let float = "with `#extension GL_EXT_shader_atomic_float : require`";
    for (statement, parts) in [
        ("f *= 1.5;", &["a loop with atomicCompSwap on its bits, which are declared as a uint, in place of"][..]),
        ("v.xy += vec2(1.0);", &["an atomic operation for each component in place of the update at a.comp:7"]),
        ("n = l; s += 1.0;", &["atomicAdd(s, 1.0) in place of the update at a.comp:7", float]),
        ("n *= 3u;", &["= repair: a loop with atomicCompSwap in place of the update at a.comp:7"]),
        ("if (n < l) {\n  n = l;\n}", &["= repair: atomicMax(n, l) in place of the update at a.comp:8: "]),
        ("if (n < l) { n = l; }", &["= repair: atomicMax(n, l) in place of the update at a.comp:7: "]),
    ] {
        let ended = run(&folder, "a.comp", &text(statement), "--bind 0.0=zeros:64 --check", 66);
        for part in parts {
            assert!(ended.stderr.contains(part), "{statement}: {part}\n{}", ended.stderr);
        }
        assert!(!ended.stderr.contains("repair: memoryBarrier"), "{statement}\n{}", ended.stderr);
    }
}

#[test]
fn a_barrier_in_divergent_control_flow_names_invocations_by_their_ids() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-barriers");
    let text = "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n\
                layout(binding = 0) buffer D { uint d[]; };\nvoid main() {\n\
                uint l = gl_LocalInvocationIndex;\nif (l < 40u) {\nbarrier();\nd[l] = l;\n}\n}\n";
    let ended = run(&folder, "b.comp", text, "--bind 0.0=zeros:256 --check", 66);
    for part in [
        "= because invocation (0, 5, 0) of its scope had ended",
        "= repair: the barrier at b.comp:7 after the branch at b.comp:6 in place of within it, where all invocations of \
        the workgroup execute it",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
}

#[test]
fn a_lost_update_without_debug_lines_is_known_by_its_instructions() {
    let folder = Folder::new("repairs-spirv-update");
    let cases = [Case {
        name: "update.spvasm",
        text: include_str!("causes/lost-update.spvasm").to_owned(),
        options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:16 --check",
        parts: &["repair: one atomic operation, or a loop with OpAtomicCompareExchange, in place of the update"],
        applied: &[
            (";+ %device", "%device"),
            ("%count = OpLoad %u32 %place", ""),
            ("%more = OpIAdd %u32 %count %c1", ""),
            ("OpStore %place %more", ""),
            (";+ %count", "%count"),
        ],
    }];
    decide(&folder, &cases);
}

#[test]
fn modules_without_flags_of_accesses_have_a_decoration() {
    let folder = Folder::new("repairs-spirv-coherent");
    let text = include_str!("causes/other-memory.spvasm");
    let racy = run(&folder, "memory.spvasm", text, "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --check", 66);
    assert!(!racy.stderr.contains("NonPrivatePointer"), "{}", racy.stderr);
}

#[test]
fn each_of_hundreds_of_races_has_its_repair() {
    const LINES: usize = 24;
    let lines: String = (0..LINES).map(|line| format!("  d[0] = i + {line}u;\n")).collect();
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
{lines}}}
"
    );
    let folder = Folder::new("check-repairs-many");
    let ended = run(&folder, "many.wgsl", &text, "--bind 0.0=zeros:4 --check --json", 66);
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = found["findings"].as_array().unwrap();
    assert_eq!(findings.len(), LINES * LINES);
    for finding in findings {
        let [first, second] = ["first", "second"].map(|access| finding[access]["line"].as_u64().unwrap());
        let repairs = finding["repair"].as_array().unwrap();
        // A barrier between the two lines, which one line does not have.
        assert_eq!(repairs.len(), usize::from(first != second), "{first} {second} {repairs:?}");
    }
}

/// What a trial of a repair writes is gone after the dispatch, also where a search for notes ran after it.
#[test]
fn trials_leave_no_trace_in_memory() {
    if !has_glsl() {
        return;
    }
    let text = "#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer A { uint a[]; };
layout(set = 0, binding = 1) writeonly buffer O { uint o[]; };
layout(set = 0, binding = 2) buffer X { uint x[]; };
shared uint tile[64];
void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i] = 100u + i;
    barrier();
    a[i] = i;
    memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
    x[i] = a[i ^ 32u];
    tile[i] = i + 1u;
    o[tile[i ^ 32u]] = 1u;
}
";
    let folder = Folder::new("check-repairs-trace");
    let options = "--bind 0.0=zeros:256 --bind 0.1=zeros:1024 --bind 0.2=zeros:256 --out 0.1=u32";
    let unchecked = run(&folder, "trace.comp", text, &format!("{options} --workers 1"), 0);
    let checked = run(&folder, "trace.comp", text, &format!("{options} --check"), 66);
    assert!(checked.stderr.contains("SPELTER-NOTE") && checked.stderr.contains("repair:"), "{}", checked.stderr);
    assert_eq!(checked.stdout, unchecked.stdout);
}

/// Atomics on one word synchronize in the order in which they ran, whatever else the invocations do.
#[test]
fn atomics_that_order_by_chance_are_no_repair() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-chance");
    let one = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { uint a[]; };
shared uint s[64];
shared uint m;
void main() {
  uint l = gl_LocalInvocationID.x;
  if (l == 0) s[0] = 17;
  atomicMax(m, l);
  a[l] = s[0] + l;
}
";
    let cases = [Case {
        name: "one.comp",
        text: one.to_owned(),
        options: "--bind 0.0=zeros:256 --check",
        parts: &["= repair: barrier() after the write at one.comp:8 and before the read at one.comp:10"],
        applied: &[("  atomicMax(m, l);", "  barrier(); atomicMax(m, l);")],
    }];
    decide(&folder, &cases);
    let racy = run(&folder, "one.comp", one, "--bind 0.0=zeros:256 --check", 66);
    assert!(racy.stderr.contains("in the opposite order of the invocations they race all the same"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("gl_SemanticsAcquireRelease"), "{}", racy.stderr);
    let all = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer A { uint a[]; };
layout(binding = 1) buffer C { uint n; };
void main() {
  uint l = gl_GlobalInvocationID.x;
  if (l == 0) a[0] = 17;
  uint k = atomicAdd(n, 1);
  a[l + 1] = a[0] + k;
}
";
    let racy = run(&folder, "all.comp", all, "--bind 0.0=zeros:4096 --bind 0.1=zeros:4 --groups 4 --check", 66);
    assert!(racy.stderr.contains("= repair: two dispatches: "), "{}", racy.stderr);
    assert!(!racy.stderr.contains("gl_SemanticsAcquireRelease"), "{}", racy.stderr);
}

#[test]
fn atomics_of_64_bits_are_named_with_their_extensions() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-long");
    let text = |statement: &str| {
        format!(
            "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types : require\n\
             layout(local_size_x = 4) in;\nlayout(binding = 0) buffer A {{ uint64_t q; double d; uint64_t arr[4]; }};\n\
             void main() {{\n  uint l = gl_LocalInvocationID.x;\n  {statement}\n}}\n"
        )
    };
    for (statement, part) in [
        (
            "q += 3ul;",
            "= repair: atomicAdd(q, 3ul) in place of the update at a.comp:7, with `#extension \
            GL_EXT_shader_atomic_int64 : require`: ",
        ),
        ("arr[l & 1] = max(arr[l & 1], uint64_t(l));", "= repair: atomicMax(arr[l & 1], uint64_t(l)) in place of"),
        (
            "d -= 2.0;",
            "= repair: atomicAdd(d, -2.0) in place of the update at a.comp:7, with `#extension \
            GL_EXT_shader_atomic_float : require`: ",
        ),
        ("d *= 2.0;", "= repair: a loop with atomicCompSwap on its bits, which are declared as a uint64_t, with"),
    ] {
        let ended = run(&folder, "a.comp", &text(statement), "--bind 0.0=zeros:64 --check", 66);
        assert!(ended.stderr.contains(part), "{statement}: {part}\n{}", ended.stderr);
        assert!(!ended.stderr.contains("none changes a vector"), "{statement}\n{}", ended.stderr);
    }
}

#[test]
fn one_binding_for_two_is_one_that_can_be_written() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-one-binding");
    let text = "#version 450
#extension GL_EXT_samplerless_texture_functions : require
layout(local_size_x = 64) in;
layout(binding = 0) uniform textureBuffer tb;
layout(binding = 1, rgba8) uniform writeonly imageBuffer ib;
layout(binding = 2) buffer A { vec4 a[]; };
void main() {
  int l = int(gl_LocalInvocationID.x);
  imageStore(ib, l, vec4(1));
  a[l] = texelFetch(tb, 63 - l);
}
";
    let options = "--texels 0.1=rgba8unorm:zeros:256 --texels 0.0=rgba8unorm:0.1 --bind 0.2=zeros:1024 --check";
    let racy = run(&folder, "one.comp", text, options, 66);
    assert!(racy.stderr.contains("one binding for both: `ib` (set 0, binding 1) in place of `tb`"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("one binding for both: `tb`"), "{}", racy.stderr);
}

#[test]
fn a_barrier_within_a_statement_says_that_it_must_be_two() {
    let folder = Folder::new("repair-statements");
    let places = "between the read at one.comp:6 and the write at one.comp:6, which must be two statements";
    let text = "#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer A { uint u[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  u[l] = u[3 - l] == 7 ? l : u[l];
}
";
    if has_glsl() {
        let racy = run(&folder, "one.comp", text, "--bind 0.0=zeros:16 --check", 66);
        assert!(racy.stderr.contains(places), "{}", racy.stderr);
        assert!(!racy.stderr.contains("after the read at one.comp:6 and before"), "{}", racy.stderr);
    }
    // Two statements of one line have columns.
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
var<workgroup> s: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) { s[l] = l; a[l] = s[63u - l]; }
";
    let racy = run(&folder, "two.wgsl", text, "--bind 0.0=zeros:256 --check", 66);
    assert!(racy.stderr.contains("= repair: workgroupBarrier() after the write at two.wgsl:3:81"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("must be two statements"), "{}", racy.stderr);
}

#[test]
fn a_race_without_a_repair_says_what_was_tried() {
    let folder = Folder::new("repair-none");
    let text = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) { d[0] = l; }
";
    let racy = run(&folder, "none.wgsl", text, "--bind 0.0=zeros:4 --check", 66);
    let why = "= because no repair was found: no barrier can be between two invocations at one instruction\n";
    assert!(racy.stderr.contains(why), "{}", racy.stderr);
}

#[test]
fn an_atomic_beside_coherent_data_needs_no_flags() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-flags");
    let text = "#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) devicecoherent buffer Data { uint data; };
layout(binding = 1) buffer Flag { uint flag; };
layout(binding = 2) buffer To { uint to; };
void main() {
  if (gl_WorkGroupID.x == 0) {
    data = 7;
    atomicStore(flag, 1u, gl_ScopeDevice, 0, gl_SemanticsRelaxed);
  } else if (atomicLoad(flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 1u) {
    to = data;
  }
}
";
    let cases = [Case {
        name: "bare.comp",
        text: text.to_owned(),
        options: "--bind 0.0=zeros:4 --bind 0.1=zeros:4 --bind 0.2=zeros:4 --groups 2 --check",
        parts: &[
            "gl_StorageSemanticsBuffer, gl_SemanticsRelease as further arguments of the atomic write at bare.comp:11",
        ],
        applied: &[("0, gl_SemanticsRelaxed", "gl_StorageSemanticsBuffer, gl_SemanticsRelease")],
    }];
    decide(&folder, &cases);
}

/// A barrier for other memory stands between the accesses, whichever of them writes.
#[test]
fn a_barrier_for_other_memory_is_the_cause_of_each_hazard() {
    let folder = Folder::new("repair-other-memory");
    let options = "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --check";
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  b[l] = FIRST;
  workgroupBarrier();
  SECOND;
}
";
    const CAUSE: &str =
        "= because both invocations wait at the barrier at other.wgsl:5:3, but it does not cover storage buffers\n";
    for (hazard, first, second) in [
        ("WAR", "a[l ^ 1u]", "a[l] = l"),
        ("RAW", "l; a[l] = l", "b[l] = a[l ^ 1u]"),
        ("WAW", "l; a[l] = l", "a[l ^ 1u] = l"),
    ] {
        let cases = [Case {
            name: "other.wgsl",
            text: text.replace("FIRST", first).replace("SECOND", second),
            options,
            parts: &[CAUSE, "= repair: storageBarrier() in addition to the barrier at other.wgsl:5:3\n"],
            applied: &[("workgroupBarrier();", "workgroupBarrier(); storageBarrier();")],
        }];
        decide(&folder, &cases);
        let racy = run(&folder, "other.wgsl", &cases[0].text, options, 66);
        assert!(racy.stderr.contains(&format!("error[SPELTER-RACE-{hazard}]")), "{hazard}\n{}", racy.stderr);
    }
    if !has_glsl() {
        return;
    }
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { uint a[]; };
layout(binding = 1) buffer B { uint b[]; };
void main() {
  uint l = gl_LocalInvocationID.x;
  b[l] = a[l ^ 1];
  barrier();
  a[l] = l;
}
";
    let cases = [Case {
        name: "other.comp",
        text: text.to_owned(),
        options,
        parts: &[
            "error[SPELTER-RACE-WAR]",
            "= because both invocations wait at the barrier at other.comp:8, but it does not cover buffers\n",
            "= repair: memoryBarrierBuffer() before the barrier at other.comp:8\n",
        ],
        applied: &[("  barrier();", "  memoryBarrierBuffer(); barrier();")],
    }];
    decide(&folder, &cases);
}

/// Invocations exchange values by a barrier whose memory semantics are to be stated.
const EXCHANGE_SPIRV: &str = "OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %index
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpMemberDecorate %Block 0 Offset 0
OpDecorate %Block Block
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%ptr_index = OpTypePointer Input %u32
%index = OpVariable %ptr_index Input
%c0 = OpConstant %u32 0
%workgroup = OpConstant %u32 2
%c63 = OpConstant %u32 63
%c64 = OpConstant %u32 64
%semantics = OpConstant %u32 SEMANTICS
%words = OpTypeRuntimeArray %u32
%Block = OpTypeStruct %words
%ptr_Block = OpTypePointer StorageBuffer %Block
%ptr_word = OpTypePointer StorageBuffer %u32
%data = OpVariable %ptr_Block StorageBuffer
%array = OpTypeArray %u32 %c64
%ptr_array = OpTypePointer Workgroup %array
%ptr_element = OpTypePointer Workgroup %u32
%shared = OpVariable %ptr_array Workgroup
%main = OpFunction %void None %fn
%entry = OpLabel
%l = OpLoad %u32 %index
%from = OpAccessChain %ptr_word %data %c0 %l
%value = OpLoad %u32 %from
%own = OpAccessChain %ptr_element %shared %l
OpStore %own %value
OpControlBarrier %workgroup %workgroup %semantics
%mirrored = OpISub %u32 %c63 %l
%other = OpAccessChain %ptr_element %shared %mirrored
%read = OpLoad %u32 %other
OpStore %from %read
OpReturn
OpFunctionEnd
";

#[test]
fn the_semantics_of_a_barrier_have_one_memory_order() {
    let folder = Folder::new("repair-semantics");
    let case = |name, semantics, applied| Case {
        name,
        text: EXCHANGE_SPIRV.replace("SEMANTICS", semantics),
        options: ONE,
        parts: &["= repair: AcquireRelease|WorkgroupMemory on the barrier at "],
        applied,
    };
    decide(
        &folder,
        &[
            case("none.spvasm", "0x0", &[("%u32 0x0\n", "%u32 0x108\n")]),
            case("acquire.spvasm", "0x102", &[("%u32 0x102\n", "%u32 0x108\n")]),
            case("release.spvasm", "0x104", &[("%u32 0x104\n", "%u32 0x108\n")]),
        ],
    );
}

/// Each round passes values from one buffer to another and back.
const PING_PONG: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer A { uint a[]; };
layout(binding = 1) coherent buffer B { uint b[]; };
void main() {
  uint l = gl_LocalInvocationIndex;
  for (int k = 0; k < 4; ++k) {
    b[l] = a[63 - l];
    memoryBarrierBuffer(); barrier();
    a[l] = b[63 - l];
    memoryBarrierBuffer(); barrier();
  }
}
";

#[test]
fn the_barriers_of_a_loop_are_completed() {
    const WHOLE: &str = "memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();";
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-completed");
    let cases = [
        Case {
            name: "half.comp",
            text: PING_PONG.into(),
            options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --check=spec",
            parts: &["= repair: memoryBarrierBuffer() after the barrier at half.comp:9, and after the barrier at \
                half.comp:11\n"],
            applied: &[("memoryBarrierBuffer(); barrier();", WHOLE)],
        },
        Case {
            name: "private.comp",
            text: PING_PONG.replace("coherent ", ""),
            options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --check=spec",
            parts: &["= repair: memoryBarrierBuffer() after the barrier at private.comp:9, and after the barrier at \
                private.comp:11, with `coherent` on "],
            applied: &[("memoryBarrierBuffer(); barrier();", WHOLE), (" buffer", " coherent buffer")],
        },
        Case {
            name: "bare.comp",
            text: PING_PONG.replace("memoryBarrierBuffer(); ", ""),
            options: "--bind 0.0=u32:range:64 --bind 0.1=zeros:256 --check",
            parts: &["= repair: memoryBarrierBuffer() before the barrier at bare.comp:9, and before the barrier at \
                bare.comp:11\n"],
            applied: &[("barrier();", "memoryBarrierBuffer(); barrier();")],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn no_barrier_is_named_between_a_condition_and_the_next_iteration() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-condition");
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
shared uint round;
void main() {
  uint l = gl_LocalInvocationIndex;
  uint v = 0;
  if (l == 0) round = 0;
  barrier();
  do {
    v += d[l];
    barrier();
    if (l == 0) round = round + 1;
    barrier();
  } while (round < 3);
  d[l] = v;
}
";
    let cases = [Case {
        name: "until.comp",
        text: text.replace("    v += d[l];\n    barrier();\n", "    v += d[l];\n"),
        options: ONE,
        parts: &["= repair: barrier() at the end of the loop, between the read at until.comp:14 and the next \
            iteration: the condition first reads into a variable, where all invocations of the workgroup execute it"],
        applied: &[
            ("uint v = 0;", "uint v = 0; bool again;"),
            ("  } while (round < 3);", "    again = round < 3; barrier();\n  } while (again);"),
        ],
    }];
    decide(&folder, &cases);
}

#[test]
fn a_read_is_ordered_before_a_write_through_another_binding() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-in-place");
    let text = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer S { uint src[]; };
layout(binding = 1) buffer D { uint dst[]; };
void main() {
  uint l = gl_LocalInvocationIndex;
  uint v = src[63 - l];
  memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
  dst[l] = v;
}
";
    let case = |name, text: String, options, parts, applied| Case { name, text, options, parts, applied };
    let barrier = "  memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();\n";
    decide(
        &folder,
        &[
            case(
                "private.comp",
                text.into(),
                "--bind 0.0=u32:range:64 --bind 0.1=0.0 --check=spec",
                &[
                    "= because `S` (set 0, binding 0) and `D` (set 0, binding 1), the same memory, are not declared \
                        `coherent`",
                    "= repair: `coherent` on `S` (set 0, binding 0) and `D` (set 0, binding 1)\n",
                ],
                &[(" buffer", " coherent buffer")],
            ),
            case(
                "unordered.comp",
                text.replace(barrier, "").replace(" buffer", " coherent buffer"),
                "--bind 0.0=u32:range:64 --bind 0.1=0.0 --check",
                &[
                    "= because nothing orders the read at unordered.comp:7 before the write at unordered.comp:8",
                    "= repair: memoryBarrierBuffer(); barrier(); after the read at unordered.comp:7",
                ],
                &[("  dst[l]", "  memoryBarrierBuffer(); barrier();\n  dst[l]")],
            ),
        ],
    );
}

/// The least scope that includes both invocations of a race is too small for those of other workgroups.
#[test]
fn a_scope_is_wide_enough_for_all_that_race() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("repair-scope");
    let text = "#version 450
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 32) in;
layout(binding = 0) buffer A { uint a[]; };
void main() {
  atomicAdd(a[0], 1u, gl_ScopeSubgroup, 0, 0);
}
";
    for (groups, scope) in [(1, "gl_ScopeWorkgroup"), (2, "gl_ScopeDevice")] {
        let options = format!("--groups {groups} --bind 0.0=zeros:64 --check");
        let racy = run(&folder, "narrow.comp", text, &options, 66);
        assert!(racy.stderr.contains(&format!("= repair: {scope} for the atomic update at ")), "{}", racy.stderr);
        run(&folder, "wide.comp", &text.replace("gl_ScopeSubgroup", scope), &options, 0);
    }
}
