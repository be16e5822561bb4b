//! Control-flow melding.

use spelter_shaders::opt::MELD;

#[test]
fn loads_come_before_the_branch_unless_something_stands_before_them() {
    let text = |before: &str| {
        format!(
            "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = buffer binding0[v0]
            selection block3
            branch v2, block1, block2
        block1:
            v4 = load.i32 storage v3 + v1
            v5 = load.i32 var0 + v4
            jump block3(v5)
        block2:
            {before}
            v7 = load.i32 storage v3 + v1
            v8 = load.i32 var0 + v7
            v9 = iadd v8, v1
            jump block3(v9)
        block3(v10: i32):
            store var1 + v0, v10
            return"
        )
    };
    for (before, loads) in [
        ("v6 = imul v1, v1", 2),
        ("v6 = load.i32 storage v3 + v0", 3),
        ("store var1 + v0, v1", 4),
        ("fence device acq_rel|storage", 4),
        ("v6 = load.i32 storage v3 + v0 volatile", 5),
    ] {
        let mut kernel = crate::opt::parse(&text(before));
        (MELD.run)(&mut kernel);
        assert_eq!(kernel.to_string().matches("load.i32").count(), loads, "{kernel}");
    }
}

/// A branch whose sides have a loop each: the first value of the second loop, what its body does, and what comes
/// before it.
fn two_loops(start: &str, body: &str, before: &str) -> String {
    format!(
        "block0:
            v0 = const.i32 0
            v1 = builtin local_invocation_id.0
            v2 = ieq v1, v0
            v3 = const.i32 3
            selection block9
            branch v2, block1, block5
        block1:
            v10 = imul v1, v3
            jump block2(v1, v10)
        block2(v11: i32, v12: i32):
            v13 = ult v12, v3
            loop block4, block3
            branch v13, block3, block4
        block3:
            v14 = iadd v11, v12
            v15 = lshr v12, v3
            jump block2(v14, v15)
        block4:
            v16 = imul v11, v11
            jump block9(v16)
        block5:
            {before}
            v20 = imul v1, v3
            jump block6({start}, v20)
        block6(v21: i32, v22: i32):
            v23 = ult v22, v3
            loop block8, block7
            branch v23, block7, block8
        block7:
            v24 = iadd v21, v22
            {body}
            jump block6(v24, v25)
        block8:
            v26 = iadd v21, v22
            jump block9(v26)
        block9(v30: i32):
            store var1 + v0, v30
            return"
    )
}

const SHIFT: &str = "v25 = lshr v22, v3";

#[test]
fn loops_that_differ_or_can_be_distinguished_stay() {
    for (start, body, before) in [
        // Another operation, another operand, more operations, another first value.
        ("v1", "v25 = ashr v22, v3", ""),
        ("v1", "v25 = lshr v22, v0", ""),
        ("v1", "v25 = lshr v22, v3\nv41 = iadd v25, v3", ""),
        ("v3", SHIFT, ""),
        // What comes before the loop cannot come after it.
        ("v1", SHIFT, "store var0 + v0, v1"),
        ("v1", SHIFT, "v40 = subgroup.ballot v2"),
        ("v1", SHIFT, "v40 = load.i32 var0 + v0 volatile"),
    ] {
        let text = two_loops(start, body, before);
        let mut kernel = crate::opt::parse(&text);
        (MELD.run)(&mut kernel);
        assert_eq!(kernel.to_string().matches("loop ").count(), 2, "{text}");
    }
    // Effects in the loop itself, though the same in both.
    for effect in
        ["store var0 + v0, v1", "v41 = atomic.iadd var0 + v0, v1 device relaxed", "v41 = load.i32 var0 + v0 volatile"]
    {
        let text = two_loops("v1", &format!("{SHIFT}\n{effect}"), "")
            .replace("v15 = lshr v12, v3", &format!("v15 = lshr v12, v3\n{}", effect.replace("v41", "v42")));
        let mut kernel = crate::opt::parse(&text);
        (MELD.run)(&mut kernel);
        assert_eq!(kernel.to_string().matches("loop ").count(), 2, "{text}");
    }
}
