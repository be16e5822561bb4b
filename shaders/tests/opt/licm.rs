//! Loop-invariant code motion.

use spelter_shaders::opt::LICM;

use crate::opt::check;

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
fn only_so_many_cheap_results_wait_in_registers() {
    let sums: String = (10..50).map(|n| format!("v{n} = iadd v1, v{}\n", if n == 10 { 1 } else { n - 1 })).collect();
    let roots: String = (60..100).map(|n| format!("v{n} = udiv v1, v{}\n", if n == 60 { 1 } else { n - 1 })).collect();
    let mut kernel = crate::opt::parse(&around("", &format!("{sums}{roots}")));
    (LICM.run)(&mut kernel);
    let text = kernel.to_string();
    let inside = text.split("block2:").nth(1).expect("the loop's body");
    assert_eq!((inside.matches("= iadd").count(), inside.matches("= udiv").count()), (40 - 24 + 1, 0), "{text}");
}
