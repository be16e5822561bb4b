//! What widening makes of random kernels keeps the verifier's rules and comes back from its text.

use proptest::prelude::*;
use spelter_shaders::lower::math::{self, MathOptions};
use spelter_shaders::simd::{Kernel, verify};
use spelter_shaders::vectorize::{AccessCosts, widen};
use spelter_shaders::{ir, opt};

use crate::ir::random;

fn widened(kernel: &ir::Kernel) -> Result<(), TestCaseError> {
    let Ok(widened) = widen(kernel, &AccessCosts::AVX512) else { return Ok(()) };
    let text = widened.to_string();
    prop_assert_eq!(verify(&widened), Ok(()), "{}\n{}", kernel, text);
    let parsed = Kernel::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
    prop_assert_eq!(parsed.to_string(), text);
    Ok(())
}

fn text_of(source: &str) -> String {
    let kernel = ir::Kernel::parse(source).expect("the text is right");
    let widened = widen(&kernel, &AccessCosts::AVX512).expect("it has a SIMD form");
    assert_eq!(verify(&widened), Ok(()), "{widened}");
    widened.to_string()
}

fn count(text: &str, word: &str) -> usize {
    text.matches(word).count()
}

#[test]
fn barriers_in_a_line_split_the_subgroups_loop() {
    let text = text_of(
        "kernel \"line\" 64, 1, 1
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = element v1, v0 * 4
    store var0 + v2, v0
    barrier workgroup workgroup acq_rel|workgroup
    v3 = load.i32 var0 + v1
    barrier workgroup workgroup acq_rel|workgroup
    store var0 + v2, v3
    return
",
    );
    // Three loops. The load's value is one for the workgroup: nothing is kept in frames, and no subgroup has a state.
    assert_eq!([count(&text, " begin "), count(&text, "frame_"), count(&text, "switch")], [3, 0, 0], "{text}");
}

#[test]
fn a_loop_around_a_barrier_is_one_turn_with_its_beginning() {
    let text = text_of(
        "kernel \"loop\" 64, 1, 1
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 1
    v3 = const.i32 9
    v4 = element v1, v0 * 4
    jump block1(v1)

block1(v5: i32):
    v6 = atomic.iadd var0 + v4, v5 workgroup relaxed
    barrier workgroup workgroup acq_rel|workgroup
    v7 = iadd v5, v2
    v8 = ult v7, v3
    branch v8, block2, block3

block2:
    jump block1(v7)

block3:
    return
",
    );
    // The counter is carried for all of them; one switch tests for the first iteration, one for more.
    assert_eq!([count(&text, " begin "), count(&text, "frame_"), count(&text, "switch")], [1, 0, 2], "{text}");
}

#[test]
fn a_part_for_the_first_invocations_is_run_by_their_subgroups_only() {
    let text = text_of(
        "kernel \"tree\" 64, 1, 1
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 20
    v3 = element v1, v0 * 4
    store var0 + v3, v0
    barrier workgroup workgroup acq_rel|workgroup
    v4 = ult v0, v2
    branch v4, block1, block2

block1:
    v5 = load.i32 var0 + v1
    store var0 + v3, v5
    jump block2

block2:
    return
",
    );
    let number = |of: &str| {
        let line = text.lines().find(|line| line.ends_with(&format!("= const.s32 {of}"))).unwrap_or_default();
        line.split_whitespace().next().unwrap_or_default().to_owned()
    };
    // Four subgroups store, two have lanes below 20.
    let ends = [number("4"), number("2")].map(|limit| text.contains(&format!(", {limit}\n    branch")));
    assert_eq!(ends, [true, true], "{text}");
}

#[test]
fn subgroups_that_may_end_before_a_barrier_have_states() {
    let text = text_of(
        "kernel \"early\" 64, 1, 1
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 20
    v3 = element v1, v0 * 4
    v4 = ult v0, v2
    branch v4, block1, block2

block1:
    store var0 + v3, v0
    barrier workgroup workgroup acq_rel|workgroup
    v5 = load.i32 var0 + v1
    store var0 + v3, v5
    return

block2:
    return
",
    );
    assert_eq!(count(&text, " begin "), 1, "{text}");
    assert_eq!(count(&text, "switch"), 2, "{text}");
}

#[test]
fn kernels_of_many_barriers_that_some_do_not_come_to_have_one_choice_of_what_is_next() {
    let lines = |barriers: usize| {
        let text = text_of(&format!(
            "kernel \"early\" 64, 1, 1
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 4
    v2 = element v1, v0 * 4
    v3 = ult v0, v1
    branch v3, block1, block2

block1:
    {}return

block2:
    return
",
            "store var0 + v2, v0\n    barrier workgroup workgroup acq_rel|workgroup\n    ".repeat(barriers)
        ));
        // What leads anywhere, and how many places it leads to.
        count(&text, ": block")
    };
    let [few, many] = [20, 200].map(lines);
    assert!(many < few * 11, "{few} and {many}");
}

proptest! {
    #[test]
    fn widened_kernels_are_right_and_come_back(
        tape in proptest::collection::vec(any::<u32>(), 0..300),
        size in 0usize..3,
        barriers: bool,
    ) {
        let mut kernel = random::kernel(&tape, barriers);
        kernel.workgroup_size = [[5, 1, 1], [16, 3, 1], [7, 5, 1]][size];
        math::run(&mut kernel, MathOptions { fast_inverse_sqrt: true, exponents: true });
        widened(&kernel)?;
        opt::optimize(&mut kernel, |_, _| {});
        widened(&kernel)?;
    }
}

#[test]
fn rows_of_the_workgroups_memory_have_constant_limits_where_what_lanes_share_leaves_room() {
    let text = |iterations: u32| {
        text_of(&format!(
            "kernel \"tile\" 16, 4, 1
binding0 = storage 0.0[1] 0
var0 = workgroup 4096 \"tile\"

block0:
    v0 = builtin local_invocation_id.0
    v1 = const.i32 0
    v2 = const.i32 1
    v3 = const.i32 {iterations}
    v4 = buffer binding0[v1]
    jump block1(v1)

block1(v5: i32):
    v6 = ult v5, v3
    loop block3, block2
    branch v6, block2, block3

block2:
    v7 = element v1, v5 * 256
    v8 = element v7, v0 * 4
    v9 = load.i32 var0 + v8
    store storage v4 + v8, v9
    v10 = iadd v5, v2
    jump block1(v10)

block3:
    return
"
        ))
    };
    // 15 * 256 + 15 * 4 bytes and the word are inside, 16 * 256 and more are not.
    let limit = |text: &str| {
        let row = text.lines().find(|line| line.contains("load_row")).expect("a row").to_owned();
        let limit = row.split("if < ").nth(1).expect("a limit").to_owned();
        text.contains(&format!("{limit} = const.s32 64\n"))
    };
    assert!(limit(&text(16)), "{}", text(16));
    assert!(!limit(&text(17)), "{}", text(17));
}
