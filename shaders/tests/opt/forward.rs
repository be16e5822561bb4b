//! Loads of known values, and stores that no load reads.

use spelter_shaders::opt::FORWARD;

use crate::opt::check;

/// Two buffers, an index that is not known, and what the test adds in one block.
fn block(lines: &str) -> String {
    format!(
        "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = buffer binding0[v0]
            v3 = buffer binding1[v0]
            v4 = load.i32 push + v0
            v5 = element v0, v4 * 8
            v6 = element v1, v4 * 8
            {lines}
            return"
    )
}

#[track_caller]
fn check_block(before: &str, after: &str) {
    check(FORWARD, &block(before), &block(after));
}

#[test]
fn barriers_fences_and_atomics_with_an_order_let_others_be_seen() {
    for between in [
        "barrier workgroup workgroup acq_rel|workgroup",
        "fence device acq_rel|storage",
        "v20 = atomic.iadd storage v3 + v4, v4 device acquire|storage",
        "v20 = atomic.iadd var0 + v4, v4 workgroup release|workgroup",
        "v20 = load.i32 storage v2 + v5 volatile",
        "v20 = load.i32 storage v2 + v5 non_private made device",
    ] {
        let text = format!(
            "v7 = load.i32 storage v2 + v5\n {between}\n v8 = load.i32 storage v2 + v5\n store storage v2 + v8, v7"
        );
        check_block(&text, &text);
    }
    // A relaxed atomic changes its own place only; private memory is the invocation's own.
    let rest = |load: &str, value: &str| {
        format!(
            "v7 = load.i32 storage v2 + v5
            v8 = load.i32 var1 + v4
            v9 = atomic.iadd var0 + v4, v4 device relaxed
            {load} store storage v2 + {value}, v7
            barrier workgroup workgroup acq_rel|workgroup
            v11 = load.i32 storage v2 + v5
            store storage v2 + v8, v11"
        )
    };
    let before = rest("v10 = load.i32 storage v2 + v5\n", "v10").replace("v2 + v8, v11", "v2 + v12, v11");
    let before = before.replace("store storage v2 + v12", "v12 = load.i32 var1 + v4\n store storage v2 + v12");
    check_block(&before, &rest("", "v7"));
}
