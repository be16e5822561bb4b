//! Which loops load words before the iterations that use them.

use super::widened_text;

/// Loads of four words in a loop of each invocation's own length, whose body has `more`. `index` is made of the counter
/// `v7`.
fn loads(index: &str, more: &str) -> usize {
    let source = format!(
        "kernel \"walk\" 16, 1, 1
binding0 = storage 0.0[1] 0
binding1 = storage 0.1[1] 0
var0 = workgroup 64 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 1
    v3 = const.i32 37
    v4 = buffer binding0[v1]
    v5 = buffer binding1[v1]
    v6 = imul v0, v3
    jump block1(v6, v1)

block1(v7: i32, v8: i32):
    v9 = iadd v6, v0
    v10 = ult v7, v9
    loop block3, block2
    branch v10, block2, block3

block2:
    v11 = {index}
    v12 = element v1, v11 * 4
    v13 = load.i32 storage v4 + v12
{more}    v14 = iadd v8, v13
    v15 = iadd v7, v2
    jump block1(v15, v14)

block3:
    v16 = element v1, v0 * 4
    store storage v5 + v16, v8
    return
"
    );
    widened_text(&source).to_string().matches("gather_elements").count()
}

const COUNTER: &str = "iadd v7, v1";

#[test]
fn lanes_that_walk_over_words_of_their_own_load_four() {
    assert_eq!(loads(COUNTER, ""), 1);
    assert_eq!(loads("iadd v3, v7", ""), 1);
    assert_eq!(loads(COUNTER, "    v20 = element v1, v0 * 4\n    store var0 + v20, v13\n"), 1);
}

#[test]
fn other_steps_are_loaded_when_they_come() {
    assert_eq!(loads("imul v7, v3", ""), 0);
    assert_eq!(loads("isub v6, v7", ""), 0);
    // What all lanes load, they load for themselves.
    assert_eq!(loads("isub v7, v6", ""), 0);
}

#[test]
fn nothing_is_loaded_before_others_may_have_written_it() {
    for more in [
        "    v20 = element v1, v0 * 4\n    store storage v5 + v20, v13\n",
        "    v20 = element v1, v0 * 4\n    v21 = atomic.iadd storage v5 + v20, v13 device relaxed\n",
        "    v20 = element v1, v0 * 4\n    v21 = atomic.load var0 + v20 workgroup acquire|workgroup\n",
        "    fence device acq_rel|storage\n",
    ] {
        assert_eq!(loads(COUNTER, more), 0, "{more}");
    }
}
