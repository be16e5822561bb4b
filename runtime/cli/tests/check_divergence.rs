//! Repairs in reports of `spelter run --check` where not all invocations of a workgroup come to a place for a barrier:
//! each is applied to the text as it says, and then there is no report.

use crate::check_repairs::{Case, decide};
use crate::common::{Folder, has_glsl};

const HEAD: &str = "#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint t[64];
void main() {
  uint l = gl_LocalInvocationID.x;
";

const ONE: &str = "--bind 0.0=u32:range:64 --check";

fn kernel(body: &str) -> String {
    format!("{HEAD}{body}}}\n")
}

#[test]
fn a_barrier_moves_out_of_the_branch_that_only_some_invocations_take() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-branches");
    let cases = [
        Case {
            name: "subgroup.comp",
            text: kernel("  if (l == 5u) {\n    t[0] = l;\n    subgroupBarrier();\n  }\n  data[l] = t[0];\n"),
            options: ONE,
            parts: &[
                "= repair: barrier() after the write at subgroup.comp:9 and before the read at subgroup.comp:12, in place \
                of the subgroup barrier at subgroup.comp:10, where all invocations of the workgroup execute it\n",
                "= repair: the subgroup barrier at subgroup.comp:10 after the branch at subgroup.comp:8 in place of \
                within it, where all invocations of the workgroup execute it\n",
            ],
            applied: &[("    subgroupBarrier();\n", ""), ("  data[l]", "  barrier(); data[l]")],
        },
        Case {
            name: "moved.comp",
            text: kernel("  if (l < 5u) {\n    t[l] = l;\n    barrier();\n  }\n  data[l] = t[l % 5u];\n"),
            options: ONE,
            parts: &["= repair: barrier() after the write at moved.comp:9 and before the read at moved.comp:12, in \
                place of the barrier at moved.comp:10, where"],
            applied: &[("    barrier();\n", ""), ("  data[l]", "  barrier(); data[l]")],
        },
        Case {
            name: "two.comp",
            text: kernel(
                "  if (l < 32u) {\n    t[l] = l;\n    barrier();\n  } else {\n    barrier();\n    \
                          data[l] = t[63u - l];\n  }\n",
            ),
            options: ONE,
            parts: &[
                "= repair: barrier() directly after the write at two.comp:9, in place of the barrier at two.comp:10 \
                and the barrier at two.comp:12, where all invocations of the workgroup execute it: the branch at \
                two.comp:8 ends before it, and begins again after it\n",
            ],
            applied: &[("    barrier();\n  } else {\n    barrier();\n", "  }\n  barrier();\n  if (l >= 32u) {\n")],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn a_barrier_of_the_workgroup_takes_the_place_of_one_of_a_subgroup() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-subgroups");
    let cases = [Case {
        name: "wider.comp",
        text: kernel("  t[l] = data[l];\n  subgroupBarrier();\n  data[l] = t[63u - l];\n"),
        options: ONE,
        parts: &["= repair: barrier() in place of the subgroup barrier at wider.comp:9, where all invocations of the \
            workgroup execute it\n"],
        applied: &[("subgroupBarrier", "barrier")],
    }];
    decide(&folder, &cases);
}

#[test]
fn the_code_around_a_barrier_becomes_two_branches() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-halves");
    let cases = [
        Case {
            name: "halves.comp",
            text: kernel("  if (l < 8u) {\n    t[l] = data[l];\n    data[l] = t[7u - l];\n  }\n"),
            options: ONE,
            parts: &[
                "= repair: barrier() after the write at halves.comp:9 and before the read at halves.comp:10, where \
                all invocations of the workgroup execute it: the branch at halves.comp:8 ends before it, and begins \
                again after it\n",
            ],
            applied: &[("= data[l];\n", "= data[l];\n  }\n  barrier();\n  if (l < 8u) {\n")],
        },
        Case {
            name: "returns.comp",
            text: kernel("  if (l > 12u) return;\n  t[l] = data[l];\n  data[l] = t[12u - l];\n"),
            options: ONE,
            parts: &["where all invocations of the workgroup execute it: instead of the return at returns.comp:8, \
                put the code before the barrier and the code after it each into an `if`\n"],
            applied: &[
                ("if (l > 12u) return;", "if (l <= 12u) {"),
                ("= data[l];\n", "= data[l];\n  }\n  barrier();\n  if (l <= 12u) {\n"),
                ("t[12u - l];\n", "t[12u - l];\n  }\n"),
            ],
        },
        Case {
            name: "late.comp",
            text: kernel("  t[l] = data[l];\n  if (l > 12u) return;\n  barrier();\n  data[l] = t[63u - l];\n"),
            options: ONE,
            parts: &[
                "= repair: barrier() directly after the write at late.comp:8, in place of the barrier at late.comp:10, \
                where all invocations of the workgroup execute it\n",
                "= repair: the barrier at late.comp:10 where all invocations of the workgroup execute it: instead of \
                the return at late.comp:9, put the code before the barrier and the code after it each into an `if`\n",
            ],
            applied: &[("  barrier();\n", ""), ("t[l] = data[l];\n", "t[l] = data[l]; barrier();\n")],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn no_atomics_are_offered_for_data_that_a_subgroup_is_believed_to_order() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-steps");
    let steps = "  t[l] = data[l];\n  barrier();\n  if (l < 8u) {\n    uint a = t[l + 4u];\n    t[l] += a;\n    \
                 data[l] = t[l + 2u];\n  }\n";
    let cases = [Case {
        name: "steps.comp",
        text: kernel(steps),
        options: ONE,
        parts: &["the branch at steps.comp:10 ends before it, and begins again after it\n"],
        applied: &[
            ("    uint a = t[l + 4u];\n", "    a = t[l + 4u];\n  }\n  barrier();\n  if (l < 8u) {\n"),
            ("    data[l] = t[l + 2u];\n", "  }\n  barrier();\n  if (l < 8u) {\n    data[l] = t[l + 2u];\n"),
            ("  if (l < 8u) {\n    a =", "  uint a = 0u;\n  if (l < 8u) {\n    a ="),
        ],
    }];
    decide(&folder, &cases);
    let racy = crate::check_repairs::run(&folder, "steps.comp", &kernel(steps), ONE, 66);
    assert!(!racy.stderr.contains("repair: atomic"), "{}", racy.stderr);
}

#[test]
fn a_barrier_that_orders_other_memory_is_not_replaced() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-wider");
    // Of the two words that are read, a subgroup has one only.
    let text = kernel(
        "  t[l] = l;\n  data[l] = l;\n  subgroupBarrier();\n  uint a = t[63u - l];\n  data[64u + l] = a + data[l ^ 1u];\n",
    );
    let racy = crate::check_repairs::run(&folder, "wider.comp", &text, "--bind 0.0=u32:range:128 --check", 66);
    assert!(racy.stderr.contains("= repair: barrier() after the write at wider.comp:8"), "{}", racy.stderr);
    assert!(!racy.stderr.contains("in place of"), "{}", racy.stderr);
}

#[test]
fn a_barrier_does_not_move_away_from_what_it_orders() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-between");
    // The two instructions race already, in other words: after the branch the barrier would order none of them.
    let text = kernel(
        "  uint x = t[63u - l] & 1u;\n  t[l] = l;\n  if (l < 32u) {\n    barrier();\n    data[l] = x + t[(l & 1u) == 0u \
         ? 31u - l : 63u - l];\n  }\n",
    );
    let cases = [Case {
        name: "between.comp",
        text,
        options: ONE,
        parts: &[
            "= repair: the barrier at between.comp:11 where all invocations of the workgroup execute it: the branch at \
            between.comp:10 ends before it, and begins again after it\n",
        ],
        applied: &[(
            "  t[l] = l;\n  if (l < 32u) {\n    barrier();\n",
            "  barrier();\n  t[l] = l;\n  barrier();\n  if (l < 32u) {\n",
        )],
    }];
    decide(&folder, &cases);
}

#[test]
fn a_place_before_a_call_is_named_by_the_call() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("divergence-calls");
    let text = "#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint t[16];
uint get(int x) {
  if (x < 0) { return 0u; }
  if (x < 12) {
    return t[x];
  }
  return 1u;
}
void main() {
  int l = int(gl_LocalInvocationID.x);
  t[l] = data[l];
  data[l] = get(15 - l);
}
";
    let branch = text.replace("  data[l] = get(15 - l);", "  if (l != 3) { data[l] = get(15 - l); }");
    let cases = [
        Case {
            name: "call.comp",
            text: text.to_owned(),
            options: ONE,
            parts: &["before the call at call.comp:15, where all invocations of the workgroup execute it\n"],
            applied: &[("= data[l];\n", "= data[l]; barrier();\n")],
        },
        Case {
            name: "branch.comp",
            text: branch,
            options: ONE,
            parts: &[
                "before the branch or loop at branch.comp:15, where all invocations of the workgroup execute it\n",
            ],
            applied: &[("= data[l];\n", "= data[l]; barrier();\n")],
        },
    ];
    decide(&folder, &cases);
}
