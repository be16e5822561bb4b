//! Control flow cleanup: what is decided, what is straight, and which constructs are left.

use spelter_shaders::ir::verify;
use spelter_shaders::opt::CFG;

use crate::{check, parse};

#[test]
fn decided_branches_become_jumps_and_what_is_out_of_reach_goes() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.bool true
            v2 = const.i32 5
            v3 = buffer binding0[v0]
            selection block3
            branch v1, block1, block2
        block1:
            store storage v3 + v0, v2
            jump block3(v0)
        block2:
            store storage v3 + v0, v0
            jump block3(v2)
        block3(v4: i32):
            switch v2, block4 [5: block5, 6: block4]
        block4:
            return
        block5:
            store storage v3 + v0, v4
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = const.bool true
            v2 = const.i32 5
            v3 = buffer binding0[v0]
            store storage v3 + v0, v2
            store storage v3 + v0, v0
            return";
    check(CFG, before, after);
}

#[test]
fn a_parameter_that_is_one_value_goes_even_around_loops() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            jump block1(v0, v2)
        block1(v3: i32, v4: i32):
            v5 = ult v3, v4
            loop block6, block5
            branch v5, block2, block6
        block2:
            v6 = ieq v3, v2
            selection block4
            branch v6, block3, block4(v4)
        block3:
            store storage v1 + v3, v4
            jump block4(v4)
        block4(v7: i32):
            jump block5
        block5:
            v8 = iadd v3, v7
            jump block1(v8, v7)
        block6:
            store storage v1 + v0, v4
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            jump block1(v0)
        block1(v3: i32):
            v5 = ult v3, v2
            loop block6, block5
            branch v5, block2, block6
        block2:
            v6 = ieq v3, v2
            selection block4
            branch v6, block3, block4
        block3:
            store storage v1 + v3, v2
            jump block4
        block4:
            jump block5
        block5:
            v8 = iadd v3, v2
            jump block1(v8)
        block6:
            store storage v1 + v0, v2
            return";
    check(CFG, before, after);
}

#[test]
fn a_break_written_as_a_selection_becomes_the_loops_exit() {
    // As naga writes `for`: the header only jumps, the test is a selection with two empty blocks.
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 push + v0
            jump block1(v0)
        block1(v4: i32):
            loop block7, block6
            jump block2
        block2:
            v5 = ult v4, v3
            selection block5
            branch v5, block3, block4
        block3:
            jump block5
        block4:
            jump block7
        block5:
            store storage v2 + v4, v4
            jump block6
        block6:
            v6 = iadd v4, v1
            jump block1(v6)
        block7:
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 push + v0
            jump block1(v0)
        block1(v4: i32):
            v5 = ult v4, v3
            loop block7, block5
            branch v5, block5, block7
        block5:
            store storage v2 + v4, v4
            v6 = iadd v4, v1
            jump block1(v6)
        block7:
            return";
    check(CFG, before, after);
}

#[test]
fn a_header_that_only_jumps_stays_a_header() {
    let text = |header: &str, continuing: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            jump block1
        block1:
            {header}
            v2 = load.i32 storage v1 + v0
            v3 = ult v0, v2
            {continuing}
        block4:
            return"
        )
    };
    let before = text(
        "loop block4, block3\njump block2\nblock2:",
        "branch v3, block5, block6\nblock5:\njump block3\nblock6:\njump block4\nblock3:\njump block1",
    );
    check(CFG, &before, &text("", "loop block4, block3\nbranch v3, block3, block4\nblock3:\njump block1"));
}

#[test]
fn a_loop_that_never_goes_round_is_none() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            jump block1(v0)
        block1(v3: i32):
            v4 = ult v3, v2
            loop block5, block4
            branch v4, block2, block3
        block2:
            store storage v1 + v3, v2
            jump block5
        block3:
            store storage v1 + v3, v0
            jump block5
        block4:
            jump block1(v3)
        block5:
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            v4 = ult v0, v2
            selection block5
            branch v4, block2, block3
        block2:
            store storage v1 + v0, v2
            jump block5
        block3:
            store storage v1 + v0, v0
            jump block5
        block5:
            return";
    check(CFG, before, after);
}

#[test]
fn empty_arms_become_selects() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 push + v0
            v4 = ult v3, v1
            selection block3
            branch v4, block1, block2
        block1:
            jump block3(v0, v3)
        block2:
            jump block3(v1, v3)
        block3(v5: i32, v6: i32):
            store storage v2 + v5, v6
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 push + v0
            v4 = ult v3, v1
            v7 = select.i32 v4, v0, v1
            store storage v2 + v7, v3
            return";
    check(CFG, before, after);
}

#[test]
fn switches_with_two_targets_become_branches() {
    let with = |cases: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            selection block2
            switch v2, block2 [{cases}]
        block1:
            store storage v1 + v0, v2
            jump block2
        block2:
            return"
        )
    };
    let becomes = |test: &str, condition: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            {test}
            selection block2
            branch {condition}, block1, block2
        block1:
            store storage v1 + v0, v2
            jump block2
        block2:
            return"
        )
    };
    check(CFG, &with("4: block1, 3: block2"), &becomes("v3 = const.i32 4\n v4 = ieq v2, v3", "v4"));
    let range = "v3 = const.i32 3\n v4 = const.i32 5\n v5 = isub v2, v3\n v6 = ult v5, v4";
    check(CFG, &with("7: block1, 3: block1, 5: block1, 4: block1, 6: block1"), &becomes(range, "v6"));
    let either = "v3 = const.i32 3\n v4 = ieq v2, v3\n v5 = const.i32 9\n v6 = ieq v2, v5\n v7 = lor v4, v6";
    check(CFG, &with("9: block1, 3: block1"), &becomes(either, "v7"));
    check(
        CFG,
        &with("9: block2, 3: block2"),
        "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            return",
    );
}

#[test]
fn a_selection_whose_ways_all_end_keeps_a_block_to_merge_in() {
    let text = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            v3 = ieq v0, v2
            selection block3
            branch v3, block1, block2
        block1:
            store storage v1 + v0, v2
            return
        block2:
            return
        block3:
            ";
    let unreachable = format!("{text} unreachable");
    check(CFG, &format!("{text} store storage v1 + v0, v0\n return"), &unreachable);
    check(CFG, &unreachable, &unreachable);
}

#[test]
fn merge_blocks_are_not_shared() {
    let text = "
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            v2 = load.i32 push + v0
            v3 = ieq v0, v2
            v4 = ult v0, v2
            selection block5
            branch v3, block1, block5
        block1:
            store storage v1 + v0, v2
            selection block3
            branch v4, block2, block3
        block2:
            store storage v1 + v2, v2
            jump block3
        block3:
            jump block5
        block5:
            return";
    check(CFG, text, text);
}

/// Who takes a ballot together is decided by the trips through the loops around it.
#[test]
fn a_decided_branch_that_keeps_a_ballot_in_its_loop_stays() {
    let text = |operation: &str, end: &str| {
        format!(
            "
        block0:
            v0 = const.i32 0
            v1 = const.bool false
            v2 = load.i32 push + v0
            v3 = buffer binding0[v0]
            jump block1
        block1:
            v4 = load.i32 storage v3 + v0
            v5 = ult v4, v2
            loop block4, block3
            branch v5, block2, block3
        block2:
            v6 = {operation}
            store storage v3 + v0, v6
            {end}
        block3:
            jump block1
        block4:
            return"
        )
    };
    let stays = text("subgroup.ballot v5", "branch v1, block3, block4");
    check(CFG, &stays, &stays);
    let after = "
        block0:
            v0 = const.i32 0
            v1 = const.bool false
            v2 = load.i32 push + v0
            v3 = buffer binding0[v0]
            jump block1
        block1:
            v4 = load.i32 storage v3 + v0
            v5 = ult v4, v2
            loop block2, block3
            branch v5, block2, block3
        block3:
            jump block1
        block2:
            v6 = bool_to_int v5
            store storage v3 + v0, v6
            return";
    check(CFG, &text("bool_to_int v5", "branch v1, block3, block4"), after);
}

/// The selection's merge block is in a loop that the selection is not in: control comes to it through the loop's header only.
#[test]
fn blocks_come_after_their_dominators_whatever_annotations_say() {
    let text = "
        block0:
            v0 = const.i32 0
            v1 = load.i32 push + v0
            v2 = ine v1, v0
            v3 = buffer binding0[v0]
            selection block4
            branch v2, block1, block9
        block1:
            store storage v3 + v0, v1
            jump block2(v0)
        block2(v4: i32):
            v5 = ult v4, v1
            loop block5, block4
            branch v5, block4, block5
        block4:
            store storage v3 + v4, v4
            jump block2(v1)
        block5:
            store storage v3 + v0, v0
            return
        block9:
            return";
    let mut kernel = parse(text);
    (CFG.run)(&mut kernel);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    let blocks: Vec<_> = kernel.layout.iter().map(|block| block.to_string()).collect();
    let place = |name: &str| blocks.iter().position(|block| block == name);
    // The loop is one run of blocks.
    assert_eq!(place("block2").map(|header| header + 1), place("block4"), "{kernel}");
}
