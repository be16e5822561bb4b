//! Control flow: branches, loops, switches, arguments that exchange places, the stop flag.

use spelter_shaders::abi::Outcome;

use crate::ir::{check, parse, run_on};

/// Offset 4 times the local index, buffer, index.
const START: &str = "
block0:
    v0 = const.i32 0
    v1 = const.i32 1
    v2 = const.i32 4
    v3 = builtin local_invocation_index.0
    v4 = imul v3, v2
    v5 = buffer binding0[v0]
";

fn with_start(rest: &str) -> String {
    format!("{START}{rest}")
}

#[test]
fn a_branch_takes_one_side_for_each_invocation() {
    let body = with_start(
        "   v6 = and v3, v1
            v7 = ieq v6, v1
            selection block3
            branch v7, block1, block2
        block1:
            v8 = const.i32 100
            jump block3(v8)
        block2:
            jump block3(v3)
        block3(v9: i32):
            store storage v5 + v4, v9
            return",
    );
    check(4, &body, &[9; 4], &[0, 100, 2, 100]);
}

#[test]
fn a_branch_passes_different_arguments_to_one_block() {
    let body = with_start(
        "   v6 = ieq v3, v1
            branch v6, block1(v2, v3), block1(v3, v2)
        block1(v7: i32, v8: i32):
            v9 = isub v7, v8
            store storage v5 + v4, v9
            return",
    );
    check(3, &body, &[9; 3], &[4_u32.wrapping_neg(), 3, 2_u32.wrapping_sub(4)]);
}

#[test]
fn a_loop_ends_in_a_different_iteration_for_each_invocation() {
    // The sum of 0 .. index; the counter is used after the loop too.
    let body = with_start(
        "   jump block1(v0, v0)
        block1(v6: i32, v7: i32):
            v8 = ult v6, v3
            loop block3, block2
            branch v8, block2, block3
        block2:
            v9 = iadd v7, v6
            v10 = iadd v6, v1
            jump block1(v10, v9)
        block3:
            v11 = const.i32 1000
            v12 = imul v6, v11
            v13 = iadd v12, v7
            store storage v5 + v4, v13
            return",
    );
    check(5, &body, &[0; 5], &[0, 1000, 2001, 3003, 4006]);
}

#[test]
fn a_loop_exchanges_and_rotates_its_values() {
    let body = with_start(
        "   v20 = const.i32 10
            v21 = const.i32 20
            v22 = const.i32 30
            jump block1(v0, v20, v21, v22, v1, v2)
        block1(v6: i32, v7: i32, v8: i32, v9: i32, v10: i32, v11: i32):
            v12 = ult v6, v3
            branch v12, block2, block3
        block2:
            v13 = iadd v6, v1
            jump block1(v13, v8, v9, v7, v11, v10)
        block3:
            v14 = imul v7, v20
            v15 = iadd v14, v8
            v16 = imul v10, v21
            v17 = iadd v15, v16
            store storage v5 + v4, v17
            return",
    );
    // a*10 + b + d*20 for (a, b, c) rotated and (d, e) = (1, 4) exchanged as often as the index says.
    check(4, &body, &[0; 4], &[100 + 20 + 20, 200 + 30 + 80, 300 + 10 + 20, 100 + 20 + 80]);
}

#[test]
fn nested_loops_keep_what_the_outer_one_needs() {
    let body = with_start(
        "   v6 = const.i32 3
            jump block1(v0, v0)
        block1(v7: i32, v8: i32):
            v9 = ult v7, v3
            loop block6, block5
            branch v9, block2, block6
        block2:
            v10 = iadd v7, v2
            jump block3(v0, v8)
        block3(v11: i32, v12: i32):
            v13 = ult v11, v6
            loop block5, block4
            branch v13, block4, block5
        block4:
            v14 = iadd v12, v10
            v15 = iadd v11, v1
            jump block3(v15, v14)
        block5:
            v16 = iadd v7, v1
            jump block1(v16, v12)
        block6:
            store storage v5 + v4, v8
            return",
    );
    check(4, &body, &[0; 4], &[0, 12, 27, 45]);
}

#[test]
fn a_switch_finds_its_case_falls_through_and_has_a_default() {
    let body = with_start(
        "   v6 = const.i32 7
            switch v3, block4(v6) [4294967295: block1, 3: block2(v2), 1: block3(v1), 0: block4(v3)]
        block1:
            jump block2(v3)
        block2(v7: i32):
            v8 = iadd v7, v2
            jump block3(v8)
        block3(v9: i32):
            v10 = iadd v9, v6
            jump block4(v10)
        block4(v11: i32):
            store storage v5 + v4, v11
            return",
    );
    check(5, &body, &[9; 5], &[0, 8, 7, 15, 7]);
}

#[test]
fn select_and_early_return_and_unreachable() {
    let body = with_start(
        "   v6 = ult v3, v2
            v7 = select.i32 v6, v1, v2
            store storage v5 + v4, v7
            v8 = ieq v3, v1
            branch v8, block1, block2
        block1:
            return
        block2:
            v9 = ieq v3, v0
            branch v9, block3, block4
        block3:
            unreachable
        block4:
            v10 = iadd v7, v2
            store storage v5 + v4, v10
            return",
    );
    check(6, &body, &[9; 6], &[1, 1, 5, 5, 8, 8]);
}

#[test]
fn built_ins_tell_where_an_invocation_is() {
    let names = [
        "num_workgroups.0",
        "num_workgroups.2",
        "workgroup_id.0",
        "workgroup_id.1",
        "local_invocation_id.0",
        "local_invocation_id.1",
        "local_invocation_id.2",
        "global_invocation_id.0",
        "global_invocation_id.1",
        "global_invocation_id.2",
        "num_subgroups.0",
        "subgroup_id.0",
        "subgroup_local_invocation_id.0",
    ];
    let mut body = String::from("block0:\n v0 = const.i32 0\n v1 = builtin local_invocation_index.0\n");
    body += &format!("v2 = const.i32 {}\n v3 = imul v1, v2\n v4 = buffer binding0[v0]\n", names.len() * 4);
    for (place, name) in names.iter().enumerate() {
        let at = 10 + place * 3;
        body += &format!("v{at} = builtin {name}\n v{} = const.i32 {}\n", at + 1, place * 4);
        body += &format!("v{0} = iadd v3, v{1}\n store storage v4 + v{0}, v{at}\n", at + 2, at + 1);
    }
    let kernel = parse(&format!("kernel \"k\" 3, 4, 2\nbinding0 = storage 0.0[1] 0\n{body} return"));
    let buffer = crate::ir::buffer(&vec![0; names.len() * 24]);
    assert_eq!(run_on(&kernel, &[buffer], [10, 20, 30], false), Outcome::Done);
    let words = crate::ir::words(buffer);
    // Invocation 17 of 3 × 4 × 2: x 2, y 1, z 1.
    let expected = [7, 9, 10, 20, 2, 1, 1, 32, 81, 61, 2, 1, 1];
    assert_eq!(words[17 * names.len()..18 * names.len()], expected);
}

#[test]
fn the_stop_flag_ends_endless_loops_and_long_dispatches() {
    let endless = "kernel \"k\" 1, 1, 1\nblock0:\n jump block1\nblock1:\n jump block1";
    let short = "kernel \"k\" 4, 1, 1\nblock0:\n return";
    let waiting =
        "kernel \"k\" 4, 1, 1\nblock0:\n jump block1\nblock1:\n barrier workgroup workgroup acq_rel\n jump block1";
    for text in [endless, short, waiting] {
        assert_eq!(run_on(&parse(text), &[], [0; 3], true), Outcome::Stopped);
    }
}

#[test]
fn the_stop_flag_is_seen_while_a_loop_runs() {
    // The kernel sets the flag itself: a buffer lies over it.
    let text = "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            jump block1
        block1:
            v3 = atomic.iadd storage v2 + v0, v1 device relaxed
            jump block1";
    let flag = crate::ir::buffer(&[0]);
    let args = spelter_shaders::abi::DispatchArgs {
        buffers: &[flag],
        push: &[0; spelter_shaders::abi::MAX_PUSH_BYTES],
        images: &[],
        num_workgroups: [1; 3],
        stop: flag.atomic_u32(0).unwrap(),
    };
    let program = spelter_shaders::back::interp::Program::new(&parse(text));
    let outcome = spelter_shaders::back::Code::run(&program, &args, [0; 3], &mut Default::default());
    assert_eq!(outcome, Outcome::Stopped);
}
