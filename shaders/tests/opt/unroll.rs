//! Loops of few iterations are unrolled.

use proptest::prelude::*;
use spelter_shaders::analysis::{Dominators, Loops};
use spelter_shaders::ir::{Kernel, verify};
use spelter_shaders::opt::{Pass, UNROLL, optimize};

use crate::opt::{parse, run};

fn loops(kernel: &Kernel) -> usize {
    Loops::new(kernel, &Dominators::new(kernel)).all.len()
}

/// A loop with a counter: `first`, then `next` of the counter `v9` as `v10`, as long as `more` (`v11`) is true.
fn counting(first: i32, next: &str, more: &str) -> String {
    format!(
        "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 3
            v3 = const.i32 {first}
            v5 = buffer binding0[v0]
            jump block1(v3, v0)
        block1(v9: i32, v20: i32):
            v11 = {more}
            loop block3, block2
            branch v11, block2, block3
        block2:
            v10 = {next}
            v21 = iadd v20, v1
            jump block1(v10, v21)
        block3:
            store storage v5 + v0, v20
            return"
    )
}

/// Checks that the pass keeps the number of iterations, and whether the loop is gone afterwards.
#[track_caller]
fn iterations(first: i32, next: &str, more: &str, gone: bool) -> u32 {
    let mut kernel = parse(&counting(first, next, more));
    let expected = run(&kernel, &[0; 8]);
    (UNROLL.run)(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()));
    assert_eq!(run(&kernel, &[0; 8]), expected, "{kernel}");
    assert_eq!(loops(&kernel) == 0, gone, "{kernel}");
    expected[0]
}

#[test]
fn all_kinds_of_counters() {
    assert_eq!(iterations(0, "iadd v9, v1", "ult v9, v2", true), 3);
    assert_eq!(iterations(-2, "iadd v9, v2", "sle v9, v2", true), 2);
    assert_eq!(iterations(7, "isub v9, v2", "ine v9, v1", true), 2);
    assert_eq!(iterations(64, "lshr v9, v1", "slt v0, v9", true), 7);
    assert_eq!(iterations(1, "shl v9, v1", "ine v9, v0", true), 32);
    assert_eq!(iterations(3, "iadd v9, v1", "ult v9, v2", true), 0);
    // Four instructions in each of 200 iterations.
    assert_eq!(iterations(-197, "iadd v9, v1", "slt v9, v2", false), 200);
}

/// How many loops are left of one that has this number of iterations with two barriers.
fn left_with_barriers(iterations: u32) -> usize {
    let barrier = "barrier workgroup workgroup acq_rel|workgroup";
    let text = counting(-(iterations as i32), "iadd v9, v1", "slt v9, v0");
    let mut kernel = parse(&text.replace("v21 =", &format!("{barrier}\n{barrier}\nv21 =")));
    (UNROLL.run)(&mut kernel);
    loops(&kernel)
}

#[test]
fn loops_of_many_barriers_stay() {
    assert_eq!([1, 10, 16, 17, 100].map(left_with_barriers), [0, 0, 0, 1, 1]);
}

#[test]
fn an_array_that_counters_index_becomes_values() {
    // for i in 0..8 { for j in 0..8 { own[i][j] += 1 } }; own[3][5] out.
    let text = "kernel \"k\" 1, 1, 1
        binding0 = storage 0.0[1] 0
        var0 = private 256 \"own\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 8
            v3 = const.i32 116
            v4 = buffer binding0[v0]
            v5 = load.i32 storage v4 + v0
            jump block1(v0)
        block1(v6: i32):
            v7 = slt v6, v2
            v8 = element v0, v6 * 32
            loop block7, block6
            branch v7, block2, block7
        block2:
            jump block3(v0)
        block3(v9: i32):
            v10 = slt v9, v2
            loop block6, block4
            branch v10, block4, block6
        block4:
            v11 = element v8, v9 * 4
            v12 = load.i32 var0 + v11
            v13 = iadd v12, v5
            store var0 + v11, v13
            v14 = iadd v9, v1
            jump block3(v14)
        block6:
            v15 = iadd v6, v1
            jump block1(v15)
        block7:
            v16 = load.i32 var0 + v3
            store storage v4 + v0, v16
            return";
    let mut kernel = parse(text);
    assert_eq!(run(&kernel, &[7, 0]), [7, 0]);
    optimize(&mut kernel, |_, _| {});
    assert_eq!((loops(&kernel), kernel.layout.len(), kernel.private_bytes()), (0, 1, 0), "{kernel}");
    assert_eq!(run(&kernel, &[7, 0]), [7, 0]);
}

#[test]
fn inner_loops_whose_ends_are_outer_counters_and_total_growth() {
    let mut text = String::from("kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:\n");
    text += "v0 = const.i32 0\nv1 = const.i32 1\nv2 = const.i32 100\nv3 = buffer binding0[v0]\njump block1(v0, v0)\n";
    let count = 2_000;
    for number in 0..count {
        let (block, value) = (number * 3 + 1, number * 5 + 4);
        let (i, sum, test, next, more) = (value, value + 1, value + 2, value + 3, value + 4);
        text += &format!("block{block}(v{i}: i32, v{sum}: i32):\nv{test} = ult v{i}, v2\n");
        text += &format!("loop block{}, block{}\n", block + 2, block + 1);
        text += &format!("branch v{test}, block{}, block{}\n", block + 1, block + 2);
        text += &format!("block{}:\nv{next} = iadd v{i}, v1\nv{more} = iadd v{sum}, v{i}\n", block + 1);
        text += &format!("jump block{block}(v{next}, v{more})\nblock{}:\n", block + 2);
        text += &(if number + 1 < count { format!("jump block{}(v0, v{sum})\n", block + 3) } else { String::new() });
    }
    text += &format!("store storage v3 + v0, v{}\nreturn\n", (count - 1) * 5 + 5);
    let mut kernel = parse(&text);
    let before = kernel.insts.len();
    (UNROLL.run)(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()));
    assert!(loops(&kernel) > 0 && loops(&kernel) < count && kernel.insts.len() < 4 * before, "{}", kernel.insts.len());
    assert_eq!(run(&kernel, &[0]), [count as u32 * 4950]);
}

/// Nested loops with triangular ends, a break and a value that leaves.
fn nest(ends: [i32; 3], steps: [i32; 2], stop: i32) -> String {
    let ([a, b, c], [s, t]) = (ends, steps);
    format!(
        "
        block0:
            v0 = const.i32 0
            v1 = const.i32 {s}
            v2 = const.i32 {t}
            v3 = const.i32 {a}
            v4 = const.i32 {b}
            v5 = const.i32 {c}
            v6 = const.i32 {stop}
            v7 = buffer binding0[v0]
            v8 = load.i32 storage v7 + v0
            jump block1(v3, v8)
        block1(v10: i32, v11: i32):
            v12 = slt v10, v4
            loop block7, block6
            branch v12, block2, block7
        block2:
            v13 = imul v10, v2
            jump block3(v5, v11)
        block3(v14: i32, v15: i32):
            v16 = iadd v15, v14
            v17 = sle v14, v13
            v18 = ieq v16, v6
            loop block5, block4
            branch v17, block4, block5
        block4:
            v19 = iadd v14, v1
            branch v18, block7(), block3(v19, v16)
        block5:
            v20 = iadd v16, v16
            jump block6
        block6:
            v21 = iadd v10, v1
            jump block1(v21, v20)
        block7:
            store storage v7 + v0, v11
            return"
    )
}

proptest! {
    #[test]
    fn nests_compute_the_same(ends in [-3..3, 0..6, -4..2], steps in [1..4, -2..3], stop in 0..40) {
        let mut kernel = parse(&nest(ends, steps, stop).replace("()", ""));
        let expected = run(&kernel, &[5; 4]);
        let pass: Pass = UNROLL;
        (pass.run)(&mut kernel);
        prop_assert_eq!(verify(&kernel), Ok(()));
        prop_assert_eq!(run(&kernel, &[5; 4]), &*expected, "{}", kernel);
        optimize(&mut kernel, |_, _| {});
        prop_assert_eq!(run(&kernel, &[5; 4]), expected, "{}", kernel);
    }
}
