//! Checked mode of kernels whose accesses make their values available and visible themselves (`coherent` with the
//! Vulkan memory model), so that their barriers need not: right ones have no suspicion, and races of others are found
//! among many barriers.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use serde_json::Value as Json;

use crate::check_limits::json;
use crate::common::{Folder, has_glsl};

/// A bitonic sort of 256 numbers by one workgroup, whose buffer has this qualifier, with this text after each exchange.
fn sort(qualifier: &str, after: &str) -> String {
    format!(
        "#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#define BARE gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease
#define FULL BARE | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 256) in;
layout(binding = 0) {qualifier} buffer A {{ uint a[]; }};
void main() {{
    uint l = gl_LocalInvocationIndex;
    a[l] = l * 40503u & 1023u;
    controlBarrier(FULL);
    for (uint k = 2; k <= 256; k *= 2) {{
        for (uint j = k / 2; j > 0; j /= 2) {{
            uint other = l ^ j;
            if (other > l) {{
                uint x = a[l];
                uint y = a[other];
                if ((x > y) == ((l & k) == 0)) {{
                    a[l] = y;
                    a[other] = x;
                }}
            }}
            {after}
        }}
    }}
}}
"
    )
}

fn checked(name: &str, text: &str, status: i32) -> Json {
    let folder = Folder::with(name, "sort.comp", text);
    let found = json(&folder, "run sort.comp --bind 0.0=zeros:1024 --check --time-limit 60", status);
    found["checked"].clone()
}

#[test]
fn exchanges_at_bare_barriers_are_no_suspicions() {
    if !has_glsl() {
        return;
    }
    for qualifier in ["workgroupcoherent", "devicecoherent"] {
        let name = format!("coherent-{qualifier}");
        let stats = checked(&name, &sort(qualifier, "controlBarrier(BARE);"), 0);
        assert_eq!(stats["suspicions"], 0, "{stats}");
    }
    // Not coherent at all: the barrier must do it.
    let stats = checked("coherent-not", &sort("nonprivate", "controlBarrier(FULL);"), 0);
    assert_eq!(stats["suspicions"], 0, "{stats}");
    checked("coherent-not-bare", &sort("nonprivate", "controlBarrier(BARE);").replace("256", "64"), 66);
}

/// Beside a buffer that is not coherent, bare barriers order what only the axioms see. Suspicions that are refuted are
/// compared at hundreds of places, and the summary counts those that were at more.
#[test]
fn suspicions_of_thousands_of_exchanges_are_refuted_in_part() {
    if !has_glsl() {
        return;
    }
    let text = |rounds: u32| {
        format!(
            "#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#define BARE gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease
layout(local_size_x = 64) in;
layout(binding = 0) workgroupcoherent buffer A {{ uint a[]; }};
layout(binding = 1) nonprivate buffer B {{ uint b[64]; }};
void main() {{
    uint l = gl_LocalInvocationIndex;
    b[l] = l;
    for (uint k = 0; k < {rounds}; k++) {{
        a[l] = k;
        controlBarrier(BARE);
        b[l] += a[(l + 1u) % 64u];
        controlBarrier(BARE);
    }}
}}
"
        )
    };
    let counts = |rounds, status| {
        let folder = Folder::with("coherent-beside", "beside.comp", &text(rounds));
        let line = "run beside.comp --bind 0.0=zeros:256 --bind 0.1=zeros:256 --check=spec";
        let ended = folder.spelter(line);
        assert_eq!(ended.status, status, "{}", ended.stderr);
        let stats = json(&folder, line, status)["checked"].clone();
        (ended.stderr, ["suspicions", "refuted", "refuted_in_part"].map(|name| stats[name].as_u64().unwrap()))
    };
    // 64 or 256 times each: more than are compared at once.
    assert_eq!([1, 4].map(|rounds| counts(rounds, 0).1[2]), [0, 0]);
    let (text, [suspicions, refuted, in_part]) = counts(40, 67);
    assert!(suspicions > 0 && (refuted, in_part) == (suspicions, suspicions), "{suspicions} {refuted} {in_part}");
    assert!(text.contains("were refuted wherever they were compared, and not compared at each word"), "{text}");
}

#[test]
fn a_race_among_bare_barriers_is_an_error() {
    if !has_glsl() {
        return;
    }
    let stats = checked("coherent-racy", &sort("workgroupcoherent", "if (j != 2) { controlBarrier(BARE); }"), 66);
    assert_eq!((&stats["undecided"], &stats["confirmed"]), (&Json::from(0), &stats["suspicions"]), "{stats}");
}
