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

#[test]
fn an_append_in_two_statements_is_an_update() {
    let folder = Folder::new("updates-append");
    let options = "--bind 0.0=zeros:256 --bind 0.1=zeros:4 --check";
    let wgsl = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
@group(0) @binding(1) var<storage, read_write> n: u32;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  let i = n;
  n = i + 1u;
  d[i] = l;
}
";
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
layout(binding = 1) buffer N { uint n; };
void main() {
  uint l = gl_LocalInvocationID.x;
  uint i = n;
  n = i + 1;
  d[i] = l;
}
";
    let append = Case {
        name: "append.wgsl",
        text: wgsl.to_owned(),
        options,
        parts: &[
            "= repair: atomicAdd(&n, 1u) in place of the read at append.wgsl:4:11 and the write at append.wgsl:5:3, \
                  with `atomic<u32>` for `u32` in the declaration of `n`, and atomicLoad or atomicStore in its other \
                  accesses: updates between",
        ],
        applied: &[
            ("let i = n;\n", "let i = atomicAdd(&n, 1u);\n"),
            ("  n = i + 1u;\n", ""),
            ("n: u32", "n: atomic<u32>"),
        ],
    };
    decide(&folder, &[append]);
    let racy = run(&folder, "append.wgsl", wgsl, options, 66);
    assert!(!racy.stderr.contains("storageBarrier"), "{}", racy.stderr);
    if !has_glsl() {
        return;
    }
    let append = Case {
        name: "append.comp",
        text: glsl.to_owned(),
        options,
        parts: &[
            "= repair: atomicAdd(n, 1) in place of the read at append.comp:7 and the write at append.comp:8: updates",
        ],
        applied: &[("uint i = n;", "uint i = atomicAdd(n, 1);"), ("  n = i + 1;\n", "")],
    };
    decide(&folder, &[append]);
    // What the statements compute is not in two lines.
    let other = glsl.replace("  n = i + 1;\n  d[i] = l;", "  d[i] = l;\n  i++;\n  n = i;");
    let racy = run(&folder, "append.comp", &other, options, 66);
    let general = "= repair: one atomic operation, or a loop with atomicCompSwap, in place of the read at \
                   append.comp:7 and the write at append.comp:10: updates";
    assert!(racy.stderr.contains(general), "{}", racy.stderr);
    assert!(!racy.stderr.contains("barrier()"), "{}", racy.stderr);
}

/// A line may update the step of a loop or a variable of the invocation beside the memory that races.
#[test]
fn an_atomic_function_is_for_the_memory_that_races() {
    let folder = Folder::new("updates-others");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  STATEMENT
}
";
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer B { uint c[]; }INSTANCE;
void main() {
  STATEMENT
}
";
    let general = "= repair: one atomic operation, or a loop with atomicComp";
    let wgsl_cases = [
        ("var t: u32 = c[0]; t += 1u; c[0] = t;", general),
        ("for (var k = 0u; k < 4u; k += 2u) { c[0] += 1u; }", "= repair: atomicAdd(&c[0], 1u) in place of"),
        ("for (var k = 0u; k < 4u; k++) { var t = c[0]; t += k; c[0] = t; }", general),
    ];
    let glsl_cases = [
        ("", "uint t = c[0]; t += 1u; c[0] = t;", general),
        ("", "for (uint i = 0u; i < 4u; i += 2u) c[0] += 1u;", "= repair: atomicAdd(c[0], 1u) in place of"),
        (" b", "for (uint c = 0u; c < 4u; c++) b.c[0] |= c;", "= repair: atomicOr(b.c[0], c) in place of"),
        (" b", "uint c = b.c[0]; c++; b.c[0] = c;", general),
    ];
    let check = |file: &str, text: &str, part: &str| {
        let racy = run(&folder, file, text, ONE, 66);
        assert!(racy.stderr.contains(part), "{part}\n{text}{}", racy.stderr);
    };
    for (statement, part) in wgsl_cases {
        check("others.wgsl", &wgsl.replace("STATEMENT", statement), part);
    }
    if has_glsl() {
        for (instance, statement, part) in glsl_cases {
            check("others.comp", &glsl.replace("INSTANCE", instance).replace("STATEMENT", statement), part);
        }
    }
}

/// A function is named only where the statements of the text are the operation of the instructions, and nothing else.
#[test]
fn what_else_statements_compute_has_no_function() {
    let folder = Folder::new("updates-else");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  STATEMENT
}
";
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer B { uint c[]; };
void main() {
  STATEMENT
}
";
    const GENERAL: &str = "= repair: one atomic operation, or a loop with atomicComp";
    let check = |file: &str, text: &str, part: &str, other: &str| {
        let racy = run(&folder, file, text, ONE, 66);
        assert!(racy.stderr.contains(part), "{part}\n{text}{}", racy.stderr);
        assert!(!racy.stderr.contains(other), "{other}\n{text}{}", racy.stderr);
    };
    for (statement, part, other) in [
        ("var t = c[0]; t *= 3u; c[0] = t + 1u;", GENERAL, "atomicAdd("),
        ("var t = c[0];\n  t *= 3u;\n  c[0] = t + 1u;", GENERAL, "atomicAdd("),
        ("var t = c[0]; c[0] = t + 1u;", "= repair: atomicAdd(&c[0], 1u) in place of", GENERAL),
        ("let t = c[0];\n  c[0] = max(t, l);", "= repair: atomicMax(&c[0], l) in place of", GENERAL),
        ("if (c[0] < l) { c[0] = l; } else { c[0] = 5u; }", GENERAL, "atomicMax("),
        ("if (c[0] < 7u) { c[0] = 7u; } c[0] += 1u;", GENERAL, "atomicMax("),
    ] {
        check("else.wgsl", &wgsl.replace("STATEMENT", statement), part, other);
    }
    if !has_glsl() {
        return;
    }
    for (statement, part, other) in [
        ("c[0] += 1u, c[1] += 2u;", GENERAL, "atomicAdd("),
        ("c[0] += 1u /* one */;", GENERAL, "atomicAdd("),
        ("uint t = c[0]; t *= 3u; c[0] = t + 1u;", GENERAL, "atomicAdd("),
        ("uint t = c[0];\n  t--;\n  c[0] = t - 2u;", GENERAL, "atomicAdd("),
        ("uint t = c[0];\n  c[0] = t - 2u;", "= repair: atomicAdd(c[0], -2u) in place of", GENERAL),
    ] {
        check("else.comp", &glsl.replace("STATEMENT", statement), part, other);
    }
    // The members of the second one of two blocks at a binding are not known.
    let two = glsl.replace("void main", "layout(binding = 0) buffer D { uint d[]; };\nvoid main");
    for (statement, part, other) in [
        ("d[0] += 1u;", "= repair: atomicAdd(d[0], 1u) in place of", GENERAL),
        ("c[0] += 1u;", "= repair: atomicAdd(c[0], 1u) in place of", GENERAL),
        ("uint t = d[0]; t += 1u; d[0] = t;", GENERAL, "atomicAdd("),
    ] {
        check("two.comp", &two.replace("STATEMENT", statement), part, other);
    }
}

/// A barrier within an update is no repair where its write races with itself all the same.
#[test]
fn no_barrier_divides_an_update_that_races_with_itself() {
    let folder = Folder::new("updates-itself");
    let wgsl = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
fn other(l: u32) -> u32 { return d[l]; }
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  STATEMENT
}
";
    let declared = ("read_write> d: array<u32>", "read_write> d: array<atomic<u32>>");
    let function = ("return d[l];", "return atomicLoad(&d[l]);");
    const GENERAL: &str = "= repair: one atomic operation, or a loop with atomicComp";
    const OTHERS: &str = "; its other reads of this memory become atomicLoad(&…)";
    let cases = [
        ("d[0] += d[l];", "atomicAdd(&d[0], atomicLoad(&d[l]));", GENERAL),
        ("d[0] = d[0] + d[l] * 3u;", "atomicAdd(&d[0], atomicLoad(&d[l]) * 3u);", GENERAL),
        ("d[0] +=\n    d[l];", "atomicAdd(&d[0], atomicLoad(&d[l]));", GENERAL),
        ("for (var k = 0u; k < 2u; k++) { d[0] += d[l]; }", "atomicAdd(&d[0], atomicLoad(&d[l]));", GENERAL),
        ("d[0] += other(l);", "atomicAdd(&d[0], other(l));", "= repair: atomicAdd(&d[0], other(l)) in place of"),
    ];
    for (statement, repaired, part) in cases {
        let text = wgsl.replace("STATEMENT", statement);
        let racy = run(&folder, "itself.wgsl", &text, ONE, 66);
        assert!(racy.stderr.contains(part) && racy.stderr.contains(OTHERS), "{text}{}", racy.stderr);
        assert!(!racy.stderr.contains("Barrier(") && !racy.stderr.contains("two dispatches"), "{text}{}", racy.stderr);
        let text = wgsl.replace(declared.0, declared.1).replace(function.0, function.1);
        run(&folder, "itself.wgsl", &text.replace("STATEMENT", repaired), ONE, 0);
    }
    // Where the write does not, one is, and so it is in what is no update: there the write's own race is another error.
    for (statement, divided) in [
        ("d[l] += d[63u - l];", "let x = d[l] + d[63u - l]; storageBarrier(); d[l] = x;"),
        ("d[l] =\n    d[l] + d[63u - l];", "let x = d[l] + d[63u - l]; storageBarrier(); d[l] = x;"),
        ("d[0] = d[l];", "let x = d[l]; storageBarrier(); if l == 0u { d[0] = x; }"),
    ] {
        let text = wgsl.replace("STATEMENT", statement);
        let racy = run(&folder, "apart.wgsl", &text, ONE, 66);
        assert!(racy.stderr.contains("= repair: storageBarrier() "), "{text}{}", racy.stderr);
        run(&folder, "apart.wgsl", &wgsl.replace("STATEMENT", divided), ONE, 0);
    }
    if !has_glsl() {
        return;
    }
    let glsl = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
void main() {
  uint l = gl_LocalInvocationIndex;
  STATEMENT
}
";
    for (statement, is_divided) in [
        ("d[0] += 1u + d[0];", false),
        ("d[0] += d[l];", false),
        ("for (uint k = 0; k < 2; k++) d[0] += d[l];", false),
        ("d[0] +=\n    d[l];", false),
        ("d[l] += d[63 - l];", true),
    ] {
        let text = glsl.replace("STATEMENT", statement);
        let racy = run(&folder, "itself.comp", &text, ONE, 66);
        assert_eq!(racy.stderr.contains("barrier()"), is_divided, "{text}{}", racy.stderr);
        let advice = racy.stderr.contains("become atomicLoad(…, gl_ScopeDevice");
        assert_eq!((racy.stderr.contains(GENERAL), advice), (!is_divided, !is_divided), "{text}{}", racy.stderr);
    }
}
