//! Barriers: every invocation waits for all that have not ended.

use spelter_shaders::abi::Outcome;

use crate::ir::{buffer, check, parse, run_on, words};

#[test]
fn a_barrier_lets_every_invocation_read_what_the_others_wrote() {
    // Reversal through shared memory; v4 and v5 live across the barrier.
    let body = "
        var0 = workgroup 256 \"tile\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 63
            v2 = buffer binding0[v0]
            v3 = builtin local_invocation_index.0
            v4 = element v0, v3 * 4
            v5 = load.i32 storage v2 + v4
            store var0 + v4, v5
            barrier workgroup workgroup acq_rel|workgroup
            v6 = isub v1, v3
            v7 = element v0, v6 * 4
            v8 = load.i32 var0 + v7
            v9 = iadd v8, v5
            store storage v2 + v4, v9
            return";
    let input: Vec<u32> = (0..64).map(|i| i * i).collect();
    let expected: Vec<u32> = (0..64).map(|i| i * i + (63 - i) * (63 - i)).collect();
    check(64, body, &input, &expected);
}

/// A tree reduction: a barrier inside a loop, with 1024 invocations and many live values.
fn reduction(extra: usize) -> String {
    let mut text = String::from(
        "kernel \"k\" 1024, 1, 1\nbinding0 = storage 0.0[1] 0\nvar0 = workgroup 4096 \"sums\"\nvar1 = private 16 \"own\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 512
            v3 = buffer binding0[v0]
            v4 = builtin local_invocation_index.0
            v5 = element v0, v4 * 4
            v6 = load.i32 storage v3 + v5
            store var0 + v5, v6
            store var1 + v0, v6\n",
    );
    for value in 0..extra {
        text += &format!("v{} = iadd v{}, v4\n", 100 + value, if value == 0 { 1 } else { 99 + value });
    }
    text += "jump block1(v2)
        block1(v7: i32):
            barrier workgroup workgroup acq_rel|workgroup
            v8 = ine v7, v0
            loop block4, block3
            branch v8, block2, block4
        block2:
            v9 = ult v4, v7
            selection block3
            branch v9, block5, block3
        block5:
            v10 = iadd v4, v7
            v11 = element v0, v10 * 4
            v12 = load.i32 var0 + v11
            v13 = load.i32 var0 + v5
            v14 = iadd v12, v13
            store var0 + v5, v14
            jump block3
        block3:
            v15 = lshr v7, v1
            jump block1(v15)
        block4:
            v16 = load.i32 var0 + v0
            v17 = load.i32 var1 + v0
            jump block6(v16)
        block6(v18: i32):\n";
    let mut last = "v18".to_owned();
    for value in (0..extra).rev() {
        let sum = 100_000 + value;
        text += &format!("v{sum} = xor {last}, v{}\n", 100 + value);
        last = format!("v{sum}");
    }
    text + &format!("v20 = iadd {last}, v17\n store storage v3 + v5, v20\n return\n")
}

#[test]
fn a_thousand_invocations_keep_a_thousand_registers_over_barriers() {
    let extra = 1000;
    // Ids in the text reach far: the parser wants a text long enough for them.
    let kernel = parse(&(reduction(extra) + &" ".repeat(110_000)));
    let buffer = buffer(&(0..1024).collect::<Vec<u32>>());
    assert_eq!(run_on(&kernel, &[buffer], [0; 3], false), Outcome::Done);
    let expected: Vec<u32> = (0..1024)
        .map(|index| {
            let chain = (1..=extra as u32).map(|step| 1 + step * index);
            chain.fold(1023 * 512, |all, value| all ^ value) + index
        })
        .collect();
    assert_eq!(words(buffer), expected);
}

#[test]
fn invocations_that_ended_are_not_waited_for() {
    // Even ones return before the first barrier, invocation 1 before the second.
    let body = "
        var0 = workgroup 4 \"count\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = builtin local_invocation_index.0
            v4 = element v0, v3 * 4
            v5 = and v3, v1
            v6 = ieq v5, v1
            branch v6, block1, block4
        block1:
            v7 = atomic.iadd var0 + v0, v1 workgroup relaxed
            barrier workgroup workgroup acq_rel|workgroup
            v8 = ieq v3, v1
            branch v8, block4, block2
        block2:
            v9 = atomic.iadd var0 + v0, v1 workgroup relaxed
            barrier workgroup workgroup acq_rel|workgroup
            v10 = load.i32 var0 + v0
            store storage v2 + v4, v10
            jump block4
        block4:
            return";
    check(6, body, &[9; 6], &[9, 9, 9, 5, 9, 5]);
}

#[test]
fn divergent_barriers_neither_hang_nor_panic() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = builtin local_invocation_index.0
            v4 = element v0, v3 * 4
            v5 = ieq v3, v1
            branch v5, block1, block2
        block1:
            barrier workgroup workgroup acq_rel|workgroup
            barrier subgroup workgroup acq_rel|workgroup
            store storage v2 + v4, v1
            jump block3
        block2:
            barrier workgroup workgroup acq_rel|workgroup
            jump block3
        block3:
            barrier invocation workgroup acq_rel|workgroup
            return";
    check(3, body, &[9; 3], &[9, 1, 9]);
}

#[test]
fn a_subgroup_barrier_waits_for_its_subgroup_only() {
    // Subgroup 0 goes through a subgroup barrier that subgroup 1 never sees; the workgroup barrier after it still
    // separates all writes from all reads.
    let body = "
        var0 = workgroup 128 \"x\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 31
            v2 = buffer binding0[v0]
            v3 = builtin local_invocation_index.0
            v4 = element v0, v3 * 4
            v5 = builtin subgroup_id.0
            v6 = ieq v5, v0
            branch v6, block1, block2
        block1:
            barrier subgroup workgroup acq_rel|workgroup
            jump block2
        block2:
            store var0 + v4, v3
            barrier workgroup workgroup acq_rel|workgroup
            v7 = isub v1, v3
            v8 = element v0, v7 * 4
            v9 = load.i32 var0 + v8
            store storage v2 + v4, v9
            return";
    check(32, body, &[9; 32], &(0..32).rev().collect::<Vec<u32>>());
}
