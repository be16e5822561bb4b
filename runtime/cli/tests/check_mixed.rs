//! Repairs of message passing in a workgroup where the flag is in other memory than the data: in `shared` memory and a
//! buffer. Each is applied to the text as it says, and then there is no report.

use crate::check_repairs::{Case, decide};
use crate::common::{Folder, has_glsl};

/// One invocation writes data and sets flags, and one of another subgroup waits for each.
const RING: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
DECLARED
void main() {
  uint l = gl_LocalInvocationIndex;
  if (l < 4u) flag[l] = 0u;
  memoryBarrierBuffer(); barrier();
  if (l == 0u) {
    for (uint i = 0u; i < 4u; i++) {
      WORD[i] = i * 3u;
      flag[i] = 1u;
    }
  } else if (l == 32u) {
    for (uint i = 0u; i < 4u; i++) {
      while (flag[i] == 0u) {}
      data[32u + i] = WORD[i];
    }
  }
}
";

const ONE: &str = "--bind 0.0=u32:range:64 --check";
const TWO: &str = "--bind 0.0=u32:range:64 --bind 0.1=zeros:16 --check";

const EXTENSION: (&str, &str) =
    ("#version 450\n", "#version 450\n#extension GL_KHR_memory_scope_semantics : require\n");

const BOTH: &str = "gl_StorageSemanticsBuffer | gl_StorageSemanticsShared";
const TURNED: &str = "gl_StorageSemanticsShared | gl_StorageSemanticsBuffer";

/// Memory barriers at atomics.
const BARRIERS: &[(&str, &str)] = &[
    ("atomicExchange(flag[i], 1u);", "memoryBarrier(); atomicExchange(flag[i], 1u);"),
    ("data[32u + i] =", "memoryBarrier(); data[32u + i] ="),
    ("buffer Data", "coherent buffer Data"),
];

/// Arguments of atomics.
const ARGUMENTS: &[(&str, &str)] = &[
    EXTENSION,
    ("(flag[i], 1u)", "(flag[i], 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease)"),
    ("(flag[i], 0u)", "(flag[i], 0u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire)"),
    ("buffer Data", "coherent buffer Data"),
];

/// The flags are shared, and the data in a buffer.
fn shared_flags() -> String {
    RING.replace("DECLARED", "shared uint flag[4];").replace("WORD", "data")
}

/// The flags are in a buffer, and the data shared.
fn shared_data() -> String {
    let declared = "layout(binding = 1) buffer Flag { uint flag[]; };\nshared uint t[4];";
    RING.replace("DECLARED", declared).replace("WORD", "t")
}

/// The flags are atomics already, and relaxed.
fn with_atomics(text: &str) -> String {
    text.replace("flag[i] = 1u;", "atomicExchange(flag[i], 1u);")
        .replace("while (flag[i] == 0u)", "while (atomicAdd(flag[i], 0u) == 0u)")
}

#[test]
fn a_flag_in_other_memory_than_the_data_orders_both() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("mixed-flags");
    let cases = [
        Case {
            name: "shared.comp",
            text: shared_flags(),
            options: ONE,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | \
                gl_StorageSemanticsShared, gl_SemanticsRelease) in place of the write at shared.comp:12, and \
                atomicLoad(…, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                gl_SemanticsAcquire) in place of the read at shared.comp:16; gl_Scope…"],
            applied: &[
                EXTENSION,
                ("flag[i] = 1u;", "atomicStore(flag[i], 1u, gl_ScopeWorkgroup, BOTH, gl_SemanticsRelease);"),
                ("(flag[i] == 0u)", "(atomicLoad(flag[i], gl_ScopeWorkgroup, BOTH, gl_SemanticsAcquire) == 0u)"),
                ("BOTH", BOTH),
            ],
        },
        Case {
            name: "buffer.comp",
            text: shared_data(),
            options: TWO,
            parts: &["= repair: all of these: atomicStore(…, …, gl_ScopeWorkgroup, gl_StorageSemanticsShared | \
                gl_StorageSemanticsBuffer, gl_SemanticsRelease) in place of the write at buffer.comp:13, and \
                atomicLoad(…, gl_ScopeWorkgroup, gl_StorageSemanticsShared | gl_StorageSemanticsBuffer, \
                gl_SemanticsAcquire) in place of the read at buffer.comp:17; gl_Scope…"],
            applied: &[
                EXTENSION,
                ("flag[i] = 1u;", "atomicStore(flag[i], 1u, gl_ScopeWorkgroup, BOTH, gl_SemanticsRelease);"),
                ("(flag[i] == 0u)", "(atomicLoad(flag[i], gl_ScopeWorkgroup, BOTH, gl_SemanticsAcquire) == 0u)"),
                ("BOTH", TURNED),
            ],
        },
    ];
    decide(&folder, &cases);
}

#[test]
fn a_memory_barrier_at_a_flag_in_other_memory_is_for_all_memory() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("mixed-barriers");
    let cases = [
        Case {
            name: "shared.comp",
            text: with_atomics(&shared_flags()),
            options: ONE,
            parts: &[
                "= repair: gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease as further arguments of \
                the atomic update at shared.comp:12, or memoryBarrier() before it, and gl_ScopeDevice, \
                gl_StorageSemanticsBuffer, gl_SemanticsAcquire as further arguments of the atomic update at \
                shared.comp:16, or memoryBarrier() after it",
            ],
            applied: BARRIERS,
        },
        Case {
            name: "arguments.comp",
            text: with_atomics(&shared_flags()),
            options: ONE,
            parts: &["gl_StorageSemanticsBuffer, gl_SemanticsRelease as further arguments"],
            applied: ARGUMENTS,
        },
        Case {
            name: "buffer.comp",
            text: with_atomics(&shared_data()),
            options: TWO,
            parts: &[
                "= repair: gl_ScopeDevice, gl_StorageSemanticsShared, gl_SemanticsRelease as further arguments of \
                the atomic update at buffer.comp:13, or memoryBarrier() before it, and ",
            ],
            applied: BARRIERS.split_at(2).0,
        },
    ];
    decide(&folder, &cases);
}
