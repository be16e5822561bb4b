//! Sums of what subgroups put together.

use spelter_shaders::opt::REDUCTIONS;

use crate::parse;

/// What a kernel has left of the reductions in it.
#[track_caller]
fn reductions(text: &str) -> usize {
    let mut kernel = parse(text);
    (REDUCTIONS.run)(&mut kernel);
    spelter_shaders::ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
    kernel.to_string().matches(" = subgroup.").count()
}

#[test]
fn others_are_put_together_for_themselves() {
    let text = |first: &str, second: &str, sum: &str, rest: &str| {
        format!(
            "block0:
                v0 = const.i32 0
                v1 = builtin local_invocation_id.0
                v2 = not v1
                v3 = subgroup.{first} v1
                v4 = subgroup.{second} v2
                v5 = {sum} v3, v4
                {rest}
                store var1 + v0, v5
                return"
        )
    };
    let group = "reduce.iadd.16";
    assert_eq!(reductions(&text(group, group, "iadd", "")), 1);
    for op in ["imul", "and", "or", "xor", "umin", "umax", "smin", "smax"] {
        for how in [format!("reduce.{op}.8"), format!("inclusive.{op}"), format!("exclusive.{op}")] {
            assert_eq!(reductions(&text(&how, &how, op, "")), 1, "{how}");
        }
    }
    assert_eq!(reductions(&text(group, group, "imul", "")), 2, "another operation");
    assert_eq!(reductions(&text("reduce.umin.16", "reduce.umax.16", "umax", "")), 2, "two operations");
    assert_eq!(reductions(&text(group, "reduce.iadd.8", "iadd", "")), 2, "other clusters");
    assert_eq!(reductions(&text(group, "inclusive.iadd", "iadd", "")), 2, "a scan");
    assert_eq!(reductions(&text(group, group, "iadd", "store var1 + v0, v3")), 2, "one is needed");
}

#[test]
fn floats_are_summed_up_as_they_are_written() {
    let text = "block0:
        v0 = const.i32 0
        v1 = load.f32 var1 + v0
        v2 = fadd v1, v1
        v3 = subgroup.reduce.fadd.16 v1
        v4 = subgroup.reduce.fadd.16 v2
        v5 = fadd v3, v4
        store var1 + v0, v5
        return";
    assert_eq!(reductions(text), 2);
}

/// Two reductions with what may part invocations between them: `way` ends the first one's block.
fn two_blocks(way: &str, between: &str, after: &str) -> String {
    format!(
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ult v0, v1
            v3 = subgroup.reduce.iadd.16 v1
            {way}
        {between}
        {after}
            v5 = not v1
            v6 = subgroup.reduce.iadd.16 v5
            v7 = iadd v3, v6
            store var1 + v0, v7
            return"
    )
}

#[test]
fn blocks_that_the_same_invocations_come_to_share_a_reduction() {
    let selection = "selection block2
            branch v2, block1, block2";
    let side = |end: &str| {
        format!(
            "block1:
            store var1 + v1, v1
            {end}"
        )
    };
    assert_eq!(reductions(&two_blocks(selection, &side("jump block2"), "block2:")), 1, "a selection between them");
    assert_eq!(reductions(&two_blocks(selection, &side("return"), "block2:")), 2, "some have returned");
    let inside = "selection block3
            branch v2, block1, block3";
    let (begin, end) = ("block1:\n            jump block2", "block2:");
    let text = two_blocks(inside, begin, end) + "\n        block3:\n            return";
    assert_eq!(reductions(&text), 2, "some alone");
    let around = "jump block1(v0)";
    let round = "block1(v10: i32):
            v11 = iadd v10, v1
            v12 = ult v11, v5
            loop block2, block4
            branch v12, block4, block2
        block4:
            jump block1(v11)";
    let text = two_blocks(around, round, "block2:").replace("v12 = ult v11, v5", "v12 = ult v11, v3");
    assert_eq!(reductions(&text.replace("v3\n            loop", "v1\n            loop")), 1, "a loop between them");
}

#[test]
fn a_part_of_an_iteration_that_some_skip_shares_no_reduction() {
    // An invocation may go on from the first reduction in a loop to the next iteration, without the second.
    let text = |skip: &str| {
        format!(
            "block0:
                v0 = const.i32 0
                v1 = builtin local_invocation_id.0
                jump block1(v0)
            block1(v2: i32):
                v3 = subgroup.reduce.iadd.16 v2
                v4 = ult v2, v1
                v8 = iadd v2, v1
                loop block4, block3
                branch v4, block2, {skip}
            block2:
                v5 = subgroup.reduce.iadd.16 v1
                v6 = iadd v3, v5
                store var1 + v0, v6
                v7 = ult v6, v1
                branch v7, block3, block4
            block3:
                jump block1(v8)
            block4:
                return"
        )
    };
    assert_eq!(reductions(&text("block3")), 2);
    assert_eq!(reductions(&text("block4")), 2);
    assert_eq!(reductions(&text("block2").replace("branch v4, block2, block2", "jump block2")), 1);
}

/// A loop that carries a sum of reductions: its test, and what else it does.
fn carrying(limit: &str, test: &str, body: &str, value: &str) -> String {
    format!(
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v20 = builtin workgroup_id.0
            v21 = buffer binding0[v0]
            v2 = {limit}
            v3 = const.i32 1
            jump block1(v0, v0)
        block1(v5: i32, v6: i32):
            v7 = {test}
            loop block3, block4
            branch v7, block2, block3
        block2:
            {body}
            v9 = subgroup.reduce.iadd.16 {value}
            v10 = iadd v9, v6
            jump block4
        block4:
            v11 = iadd v5, v3
            jump block1(v11, v10)
        block3:
            store var1 + v0, v6
            v12 = subgroup.reduce.iadd.16 v1
            v13 = umin v12, v12
            store var1 + v0, v13
            return"
    )
}

#[test]
fn a_loop_that_invocations_leave_one_by_one_stays() {
    // Where the reduction still is: in the loop, or after it.
    let stays = |text: &str| {
        let mut kernel = parse(text);
        (REDUCTIONS.run)(&mut kernel);
        spelter_shaders::ir::verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
        let text = kernel.to_string();
        let (inside, _) = text.split_once("block3:").unwrap_or_else(|| panic!("{text}"));
        inside.contains("subgroup.reduce.iadd")
    };
    for (limit, agreed) in [
        ("const.i32 70", true),
        ("load.i32 push + v0", true),
        ("load.i32 push + v1", false),
        ("load.i32 storage v21 + v20", true),
        ("load.i32 storage v21 + v20 volatile", false),
        ("load.i32 storage v21 + v1", false),
        ("load.i32 var0 + v0", true),
        ("load.i32 var1 + v0", false),
        ("subgroup.reduce.umax.16 v1", true),
        ("subgroup.reduce.umax.8 v1", false),
        ("builtin subgroup_id.0", true),
        ("builtin subgroup_local_invocation_id.0", false),
    ] {
        assert_eq!(stays(&carrying(limit, "ult v5, v2", "", "v1")), !agreed, "{limit}");
    }
    let constant = "const.i32 70";
    assert!(stays(&carrying(constant, "ult v6, v2", "", "v1")), "the sum decides");
    assert!(stays(&carrying(constant, "ult v5, v2", "v8 = imul v6, v1", "v8")), "the sum is needed");
    assert!(stays(&carrying(constant, "ult v5, v2", "store var1 + v0, v6", "v1")), "the sum is stored");
    let some = "v8 = ult v1, v5
            branch v8, block4, block5
        block5:";
    let text = carrying(constant, "ult v5, v2", some, "v1").replace("v11 = iadd", "v11 = isub");
    let text = text.replace("jump block4", "jump block4(v10)").replace("block4, block5", "block4(v6), block5");
    let text = text.replace("block4:", "block4(v15: i32):").replace("block1(v11, v10)", "block1(v11, v15)");
    assert!(stays(&text), "only some have it");
}
