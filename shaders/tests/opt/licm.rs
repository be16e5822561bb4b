//! Loop-invariant code motion.

use spelter_shaders::opt::LICM;

use crate::check;

#[test]
fn what_does_not_change_goes_before_the_outermost_loop_that_does_not_change_it() {
    check(
        LICM,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            jump block1(v0)
        block1(v2: i32):
            v3 = ult v2, v1
            loop block6, block5
            branch v3, block2, block6
        block2:
            jump block3(v0)
        block3(v4: i32):
            v5 = const.i32 9
            v6 = imul v1, v5
            v7 = iadd v6, v2
            v8 = iadd v7, v4
            v9 = load.i32 push + v5
            v10 = ult v4, v9
            loop block5, block4
            branch v10, block4, block5
        block4:
            store var0 + v8, v7
            v11 = iadd v4, v1
            jump block3(v11)
        block5:
            v12 = iadd v2, v6
            jump block1(v12)
        block6:
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v5 = const.i32 9
            v6 = imul v1, v5
            v9 = load.i32 push + v5
            jump block1(v0)
        block1(v2: i32):
            v3 = ult v2, v1
            loop block6, block5
            branch v3, block2, block6
        block2:
            v7 = iadd v6, v2
            jump block3(v0)
        block3(v4: i32):
            v8 = iadd v7, v4
            v10 = ult v4, v9
            loop block5, block4
            branch v10, block4, block5
        block4:
            store var0 + v8, v7
            v11 = iadd v4, v1
            jump block3(v11)
        block5:
            v12 = iadd v2, v6
            jump block1(v12)
        block6:
            return",
    );
}

/// A loop that does `body`, and before it `before`.
fn around(before: &str, body: &str) -> String {
    format!(
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = buffer binding0[v0]
            v3 = buffer binding2[v0]
            {before}
            jump block1(v0)
        block1(v4: i32):
            v5 = ult v4, v1
            loop block3, block2
            branch v5, block2, block3
        block2:
            {body}
            v6 = iadd v4, v1
            jump block1(v6)
        block3:
            return"
    )
}

#[test]
fn loads_go_where_nothing_can_write_to_their_memory() {
    let moves = |load: &str, other: &str| {
        check(
            LICM,
            &around("", &format!("v7 = load.i32 {load}\n{other}")),
            &around(&format!("v7 = load.i32 {load}"), other),
        );
    };
    moves("storage v2 + v1", "store var0 + v4, v4");
    moves("var0 + v1", "store var1 + v4, v4\nstore storage v2 + v4, v4");
    moves("var1 + v1", "barrier workgroup workgroup acq_rel|workgroup");
    moves("uniform v3 + v1", "store storage v2 + v4, v4\nfence device acq_rel|storage");
    moves("storage v2 + v1", "v8 = atomic.iadd var0 + v4, v4 device relaxed");
}

#[test]
fn loads_stay_where_something_can() {
    for (load, other) in [
        ("storage v2 + v1", "store storage v2 + v4, v4"),
        ("storage v2 + v1", "barrier workgroup workgroup relaxed"),
        ("storage v2 + v1", "v8 = atomic.load var0 + v4 device acquire|workgroup"),
        ("storage v2 + v1 volatile", ""),
        ("storage v2 + v1 non_private", ""),
        ("var0 + v1", "v8 = atomic.iadd var0 + v4, v4 device relaxed"),
        ("var0 + v1", "fence workgroup acquire|workgroup"),
        ("var1 + v1", "store var1 + v4, v4"),
        ("storage v2 + v4", ""),
    ] {
        let text = around("", &format!("v7 = load.i32 {load}\n{other}"));
        check(LICM, &text, &text);
    }
}

#[test]
fn a_loop_with_two_ways_in_gets_a_preheader_which_ends_the_construct_before() {
    check(
        LICM,
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            selection block2
            branch v2, block1, block2(v1)
        block1:
            store var0 + v0, v0
            jump block2(v0)
        block2(v4: i32):
            v5 = imul v1, v1
            v6 = ult v4, v5
            loop block4, block3
            branch v6, block3, block4
        block3:
            v7 = iadd v4, v1
            jump block2(v7)
        block4:
            store var0 + v4, v1
            return",
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            selection block5
            branch v2, block1, block5(v1)
        block1:
            store var0 + v0, v0
            jump block5(v0)
        block5(v8: i32):
            v5 = imul v1, v1
            jump block2(v8)
        block2(v4: i32):
            v6 = ult v4, v5
            loop block4, block3
            branch v6, block3, block4
        block3:
            v7 = iadd v4, v1
            jump block2(v7)
        block4:
            store var0 + v4, v1
            return",
    );
}

#[test]
fn only_so_many_cheap_results_wait_in_registers() {
    let sums: String = (10..50).map(|n| format!("v{n} = iadd v1, v{}\n", if n == 10 { 1 } else { n - 1 })).collect();
    let roots: String = (60..100).map(|n| format!("v{n} = udiv v1, v{}\n", if n == 60 { 1 } else { n - 1 })).collect();
    let mut kernel = crate::parse(&around("", &format!("{sums}{roots}")));
    (LICM.run)(&mut kernel);
    let text = kernel.to_string();
    let inside = text.split("block2:").nth(1).expect("the loop's body");
    assert_eq!((inside.matches("= iadd").count(), inside.matches("= udiv").count()), (40 - 24 + 1, 0), "{text}");
}
