//! Global value numbering.

use spelter_shaders::opt::GVN;

use crate::check;

#[test]
fn equal_computations_become_one_whatever_the_order_of_operands() {
    check(
        GVN,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = const.i32 0
            v3 = builtin local_invocation_id.0
            v4 = iadd v1, v0
            v5 = iadd v2, v3
            v6 = isub v1, v0
            v7 = isub v0, v1
            v8 = buffer binding0[v0]
            v9 = buffer binding0[v2]
            v10 = element v4, v5 * 4
            v11 = element v5, v4 * 4
            v12 = element v5, v4 * 8
            store storage v8 + v10, v6
            store storage v9 + v11, v7
            store storage v9 + v12, v5
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v4 = iadd v1, v0
            v6 = isub v1, v0
            v7 = isub v0, v1
            v8 = buffer binding0[v0]
            v10 = element v4, v4 * 4
            v12 = element v4, v4 * 8
            store storage v8 + v10, v6
            store storage v8 + v10, v7
            store storage v8 + v12, v4
            return",
    );
}

#[test]
fn a_computation_serves_the_blocks_below_it_only() {
    check(
        GVN,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            selection block3
            branch v2, block1, block2
        block1:
            v3 = imul v1, v1
            jump block3(v3)
        block2:
            v4 = imul v1, v1
            v5 = ieq v0, v1
            v6 = bool_to_int v5
            v7 = iadd v6, v4
            jump block3(v7)
        block3(v8: i32):
            v9 = imul v1, v1
            v10 = iadd v8, v9
            store var0 + v0, v10
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            selection block3
            branch v2, block1, block2
        block1:
            v3 = imul v1, v1
            jump block3(v3)
        block2:
            v4 = imul v1, v1
            v6 = bool_to_int v2
            v7 = iadd v6, v4
            jump block3(v7)
        block3(v8: i32):
            v9 = imul v1, v1
            v10 = iadd v8, v9
            store var0 + v0, v10
            return",
    );
}

#[test]
fn only_loads_of_what_never_changes_are_values() {
    check(
        GVN,
        "block0:
            v0 = const.i32 0
            v1 = buffer binding2[v0]
            v2 = load.i32 uniform v1 + v0
            v3 = load.i32 uniform v1 + v0
            v4 = load.f32 uniform v1 + v0
            v5 = load.i32 uniform v1 + v0 volatile
            v6 = load.i32 push + v0
            v7 = load.i32 push + v0
            v8 = load.i32 var0 + v0
            v9 = load.i32 var0 + v0
            v10 = iadd v2, v3
            v11 = iadd v6, v7
            v12 = iadd v8, v9
            return",
        "block0:
            v0 = const.i32 0
            v1 = buffer binding2[v0]
            v2 = load.i32 uniform v1 + v0
            v4 = load.f32 uniform v1 + v0
            v5 = load.i32 uniform v1 + v0 volatile
            v6 = load.i32 push + v0
            v8 = load.i32 var0 + v0
            v9 = load.i32 var0 + v0
            v10 = iadd v2, v2
            v11 = iadd v6, v6
            v12 = iadd v8, v9
            return",
    );
}

#[test]
fn what_may_not_be_contracted_stands_for_what_may_not_the_other_way_around() {
    check(
        GVN,
        "block0:
            v0 = const.f32 2.0
            v1 = fmul v0, v0
            v2 = fmul v0, v0 no_contraction
            v3 = fmul v0, v0
            v4 = fmul v0, v0 no_contraction
            v5 = fadd v1, v2
            v6 = fadd v3, v4
            return",
        "block0:
            v0 = const.f32 2.0
            v1 = fmul v0, v0
            v2 = fmul v0, v0 no_contraction
            v5 = fadd v1, v2
            v6 = fadd v2, v2
            return",
    );
}
