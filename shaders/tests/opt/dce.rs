//! Dead code elimination.

use spelter_shaders::opt::DCE;

use crate::check;

#[test]
fn unused_results_and_loads_go_but_volatile_loads_and_effects_stay() {
    check(
        DCE,
        "block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 storage v1 + v0
            v3 = iadd v2, v2
            v4 = load.i32 storage v1 + v0 volatile
            v5 = atomic.iadd storage v1 + v0, v0 device relaxed
            v6 = buffer_size v1
            v7 = const.i32 4
            store var0 + v0, v7
            barrier workgroup workgroup acq_rel|workgroup
            return",
        "block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v4 = load.i32 storage v1 + v0 volatile
            v5 = atomic.iadd storage v1 + v0, v0 device relaxed
            v7 = const.i32 4
            store var0 + v0, v7
            barrier workgroup workgroup acq_rel|workgroup
            return",
    );
}

#[test]
fn a_value_that_only_runs_around_a_loop_goes() {
    check(
        DCE,
        "block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 9
            jump block1(v0, v1, v0)
        block1(v3: i32, v4: i32, v5: i32):
            v6 = ult v3, v2
            loop block3, block2
            branch v6, block2, block3
        block2:
            v7 = iadd v4, v5
            v8 = iadd v3, v1
            jump block1(v8, v5, v7)
        block3:
            return",
        "block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 9
            jump block1(v0)
        block1(v3: i32):
            v6 = ult v3, v2
            loop block3, block2
            branch v6, block2, block3
        block2:
            v8 = iadd v3, v1
            jump block1(v8)
        block3:
            return",
    );
}

#[test]
fn arguments_go_with_their_parameters_on_every_edge() {
    check(
        DCE,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_index.0
            v9 = ieq v1, v0
            selection block1
            switch v1, block1(v0, v1, v9) [1: block1(v1, v0, v9), 2: block2(v1)]
        block2(v5: i32):
            jump block1(v5, v1, v9)
        block1(v2: i32, v3: i32, v4: bool):
            store var0 + v0, v3
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_index.0
            selection block1
            switch v1, block1(v1) [1: block1(v0), 2: block2]
        block2:
            jump block1(v1)
        block1(v3: i32):
            store var0 + v0, v3
            return",
    );
}
