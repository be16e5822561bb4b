//! Loads of what is known, and stores that nobody sees.

use spelter_shaders::opt::FORWARD;

use crate::check;

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
fn a_second_load_is_the_first_unless_something_may_have_changed_it() {
    check_block(
        "v7 = load.i32 storage v2 + v5
        store storage v2 + v6, v7
        v8 = load.i32 storage v2 + v5
        store storage v3 + v0, v8
        v9 = load.i32 storage v2 + v5
        store var0 + v4, v9
        v10 = load.f32 storage v2 + v5
        store var0 + v4, v10",
        "v7 = load.i32 storage v2 + v5
        store storage v2 + v6, v7
        store storage v3 + v0, v7
        v9 = load.i32 storage v2 + v5
        v11 = float_from_bits v9
        store var0 + v4, v11",
    );
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
    // A relaxed atomic changes its own place only; private memory is nobody else's.
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

#[test]
fn what_was_stored_is_known_if_it_is_in_bounds() {
    check_block(
        "store var0 + v1, v4
        v7 = load.f32 var0 + v1
        store storage v2 + v5, v7
        store var0 + v5, v4
        v8 = load.i32 var0 + v5
        store storage v2 + v8, v4
        v9 = load.i32 storage v2 + v8
        v10 = load.i32 storage v2 + v8
        store var0 + v9, v10",
        "store var0 + v1, v4
        v11 = float_from_bits v4
        store storage v2 + v5, v11
        store var0 + v5, v4
        v12 = const.i32 61
        v13 = ult v5, v12
        v14 = const.i32 0
        v15 = select.i32 v13, v4, v14
        store storage v2 + v15, v4
        v16 = buffer_size v2
        v17 = const.i32 3
        v18 = umax v16, v17
        v19 = isub v18, v17
        v20 = ult v15, v19
        v21 = const.i32 0
        v22 = select.i32 v20, v4, v21
        store var0 + v22, v22",
    );
}

#[test]
fn stores_that_are_replaced_and_private_ones_before_the_end_go() {
    check_block(
        "store storage v2 + v5, v1
        store storage v2 + v6, v1
        v7 = load.i32 storage v2 + v6
        store storage v3 + v5, v0
        store storage v2 + v5, v4
        store var0 + v5, v1
        barrier workgroup workgroup acq_rel|workgroup
        store var0 + v5, v4
        store var1 + v5, v4
        v8 = load.i32 var1 + v7
        store var1 + v8, v4",
        "store storage v2 + v6, v1
        v9 = buffer_size v2
        v10 = const.i32 3
        v11 = umax v9, v10
        v12 = isub v11, v10
        v13 = ult v6, v12
        v14 = const.i32 0
        v15 = select.i32 v13, v1, v14
        store storage v3 + v5, v0
        store storage v2 + v5, v4
        store var0 + v5, v1
        barrier workgroup workgroup acq_rel|workgroup
        store var0 + v5, v4
        store var1 + v5, v4
        v8 = load.i32 var1 + v15",
    );
}

#[test]
fn ways_that_meet_keep_what_all_know_and_loops_what_they_do_not_change() {
    let text = |inside: &str, behind: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = buffer binding1[v0]
            v4 = load.i32 storage v2 + v0
            v5 = load.i32 var0 + v0
            v6 = ult v4, v1
            selection block3
            branch v6, block1, block2
        block1:
            store var0 + v0, v4
            jump block3
        block2:
            v7 = atomic.iadd var0 + v1, v1 workgroup relaxed
            jump block3
        block3:
            {behind}
            v9 = load.i32 var0 + v0
            v10 = load.i32 var1 + v0
            jump block4(v0)
        block4(v11: i32):
            loop block6, block5
            {inside}
            v13 = load.i32 var0 + v0
            store var1 + v11, v13
            v14 = ult v11, v13
            branch v14, block5, block6
        block5:
            v15 = iadd v11, v1
            jump block4(v15)
        block6:
            v16 = load.i32 var1 + v0
            store storage v3 + v0, v16
            return"
        )
    };
    let before = text(
        "v12 = load.i32 storage v2 + v0\nstore var1 + v0, v12",
        "v8 = load.i32 storage v2 + v0\nstore var1 + v8, v8",
    );
    let after = text("store var1 + v0, v4", "store var1 + v4, v4").replace("v13 = load.i32 var0 + v0\n", "");
    check(FORWARD, &before, &after.replace("v13", "v9"));
}

#[test]
fn switches_that_take_several_ways_to_one_block_are_counted_once() {
    let text = |load: &str, value: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 storage v1 + v0
            selection block2
            switch v2, block2 [1: block1, 2: block2, 3: block1]
        block1:
            jump block2
        block2:
            {load}
            store storage v1 + {value}, v2
            return"
        )
    };
    check(FORWARD, &text("v3 = load.i32 storage v1 + v0", "v3"), &text("", "v2"));
}
