//! Races of one cause in reports of `spelter run --check`: one report with one repair for all of them, which is applied
//! to the text as it says.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::check_limits::json;
use crate::check_repairs::run;
use crate::common::{Folder, has_glsl};

/// The last steps of a sum, written for a GPU whose subgroups run in lockstep.
const WARP: &str = "#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
shared uint s[64];
void main() {
  uint l = gl_LocalInvocationIndex;
  s[l] = d[l];
  barrier();
  if (l < 32u) {
    s[l] += s[l + 32u];
    s[l] += s[l + 16u];
    s[l] += s[l + 8u];
    s[l] += s[l + 4u];
  }
  if (l < 4u) d[l] = s[l];
}
";

/// The same with the barriers of the repair.
fn repaired() -> String {
    let step = |distance: u32| {
        format!(
            "uint r{distance} = l < 32u ? s[l + {distance}u] : 0u;\n  barrier();\n  if (l < 32u) s[l] += r{distance};"
        )
    };
    let steps: Vec<String> = [32, 16, 8, 4].map(step).into();
    let start = WARP.find("  if (l < 32u) {").unwrap();
    let end = WARP.find("  if (l < 4u)").unwrap();
    format!("{}  {}\n{}", &WARP[..start], steps.join("\n  barrier();\n  "), &WARP[end..])
}

#[test]
fn races_of_unrolled_steps_without_barriers_are_one_report_with_one_repair() {
    if !has_glsl() {
        return;
    }
    let folder = Folder::new("check-warp");
    let options = "--bind 0.0=u32:range:64 --check";
    let ended = run(&folder, "warp.comp", WARP, options, 66);
    let found = json(&folder, &format!("run warp.comp {options}"), 66);
    let findings = found["findings"].as_array().unwrap();
    let count = findings.len();
    assert!(count >= 8, "{count}\n{}", ended.stderr);
    for finding in findings {
        assert_eq!(finding["group"]["count"], count, "{finding}");
        assert_eq!(finding["severity"], "error", "{finding}");
        assert!(finding["repair"][0]["text"].as_str().unwrap().starts_with("barrier() "), "{finding}");
    }
    assert_eq!(ended.stderr.matches("error[").count(), 1, "{}", ended.stderr);
    for part in [
        &format!("]: {count} data races in workgroup variable `s`, from line 10 to line 13\n"),
        "= because no barrier is between the code at warp.comp:10 and the code at warp.comp:13: it takes the invocations to run in",
        "= repair: barrier() before each of the lines 11, 12 and 13, and between what is read and what is written in each of the lines",
        "the branch at warp.comp:9 ends before it, and begins again after it; together they order all",
        &format!("= this is the first of {count}: --json has each of them"),
        &format!("note: checked: {count} errors"),
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    run(&folder, "repaired.comp", &repaired(), options, 0);
}

/// A race for each of two barriers that are missing is a report of its own.
#[test]
fn races_at_different_barriers_are_no_group() {
    let text = "@group(0) @binding(0) var<storage, read_write> d: array<u32>;
var<workgroup> s: array<u32, 64>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
  s[l] = d[l];
  t[l] = s[63u - l];
  d[l] = t[63u - l];
}
";
    let folder = Folder::new("check-no-group");
    let ended = run(&folder, "two.wgsl", text, "--bind 0.0=u32:range:64 --check", 66);
    assert_eq!(ended.stderr.matches("error[").count(), 4, "each hazard: {}", ended.stderr);
    assert!(!ended.stderr.contains("this is the first of"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("do not suffice beside it"), "{}", ended.stderr);
}
