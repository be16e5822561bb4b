//! If-conversion.

use spelter_shaders::opt::IF_CONVERSION;

use crate::check;

#[test]
fn cheap_sides_become_choices_inner_ones_first() {
    check(
        IF_CONVERSION,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = ult v0, v1
            selection block6
            branch v2, block1, block5
        block1:
            v4 = iadd v1, v1
            selection block4
            branch v3, block2, block4(v1)
        block2:
            v5 = imul v4, v4
            jump block4(v5)
        block4(v6: i32):
            jump block6(v6, v0)
        block5:
            jump block6(v1, v0)
        block6(v7: i32, v8: i32):
            store var0 + v7, v8
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = ult v0, v1
            v4 = iadd v1, v1
            v5 = imul v4, v4
            v9 = select.i32 v3, v5, v1
            v10 = select.i32 v2, v9, v1
            store var0 + v10, v0
            return",
    );
}

#[test]
fn memory_and_what_is_dear_stay_behind_the_branch() {
    for side in ["v4 = load.i32 var0 + v0", "v5 = sqrt v3\nv4 = float_bits v5", "v4 = udiv v1, v1"] {
        let text = format!(
            "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = float_from_bits v1
            selection block2
            branch v2, block1, block2(v1)
        block1:
            {side}
            jump block2(v4)
        block2(v7: i32):
            store var0 + v0, v7
            return"
        );
        check(IF_CONVERSION, &text, &text);
    }
}

#[test]
fn a_conditional_continue_is_flat_and_the_loop_keeps_its_blocks() {
    check(
        IF_CONVERSION,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            jump block1(v0, v0)
        block1(v2: i32, v3: i32):
            v4 = ult v2, v1
            loop block5, block4
            branch v4, block2, block5
        block2:
            v5 = ieq v2, v3
            branch v5, block4(v3), block3
        block3:
            v6 = iadd v3, v1
            jump block4(v6)
        block4(v7: i32):
            v8 = iadd v2, v1
            jump block1(v8, v7)
        block5:
            store var0 + v0, v3
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            jump block1(v0, v0)
        block1(v2: i32, v3: i32):
            v4 = ult v2, v1
            loop block5, block4
            branch v4, block2, block5
        block2:
            v5 = ieq v2, v3
            v6 = iadd v3, v1
            v9 = select.i32 v5, v3, v6
            jump block4(v9)
        block4(v7: i32):
            v8 = iadd v2, v1
            jump block1(v8, v7)
        block5:
            store var0 + v0, v3
            return",
    );
}

#[test]
fn two_arguments_lists_for_one_block_are_a_choice() {
    check(
        IF_CONVERSION,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = ult v0, v1
            selection block1
            branch v2, block1(v3, v2), block1(v2, v2)
        block1(v4: bool, v5: bool):
            selection block3
            branch v4, block2, block3
        block2:
            store var0 + v0, v1
            jump block3
        block3:
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = ult v0, v1
            v6 = select.bool v2, v3, v2
            selection block3
            branch v6, block2, block3
        block2:
            store var0 + v0, v1
            jump block3
        block3:
            return",
    );
}
