//! Loads that subgroups have in common, done once.

use spelter_shaders::simd::{licm, verify};

use super::widened_text;

/// Whether the load of a row of the tile stands in front of the loop over subgroups, where each of four stores `stored`
/// first and goes on with these instructions after a barrier.
fn is_hoisted(part: &str) -> bool {
    let source = format!(
        "kernel \"tile\" 64, 1, 1
binding0 = storage 0.0[1] 0
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 15
    v3 = and v0, v2
    v4 = element v1, v3 * 4
    v5 = element v1, v0 * 4
    v6 = buffer binding0[v1]
    store var0 + v5, v0
    barrier workgroup workgroup acq_rel|workgroup
{part}    return
"
    );
    let mut kernel = widened_text(&source);
    let place = |text: &str| text.find("load_row").map(|at| text[..at].matches(" begin ").count());
    let before = place(&kernel.to_string());
    licm(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()), "{kernel}");
    let after = place(&kernel.to_string());
    assert!(before == Some(2) && after.is_some(), "{kernel}");
    after == Some(1)
}

#[test]
fn rows_that_all_subgroups_load_are_loaded_once() {
    let store = "    store storage v6 + v5, v7\n";
    assert!(is_hoisted(&format!("    v7 = load.i32 var0 + v4\n{store}")));
}

#[test]
fn rows_stay_that_depend_on_the_subgroup_or_may_be_written() {
    let store = "    store storage v6 + v5, v7\n";
    assert!(!is_hoisted(&format!("    v7 = load.i32 var0 + v5\n{store}")));
    assert!(!is_hoisted(&format!("    v7 = load.i32 var0 + v4\n    store var0 + v5, v1\n{store}")));
    assert!(!is_hoisted(&format!("    v7 = load.i32 storage v6 + v4\n{store}")));
}
