//! Private variables become values.

use spelter_shaders::ir::verify;
use spelter_shaders::opt::MEM2REG;

use crate::{check, parse};

/// Holds what becomes of a kernel with these variables against a text with those.
#[track_caller]
fn check_with(variables: &str, before: &str, left: &str, after: &str) {
    let head = |variables: &str| format!("kernel \"test\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\n{variables}\n");
    check(MEM2REG, &(head(variables) + before), &(head(left) + after));
}

#[test]
fn words_have_values_around_loops_and_begin_as_0() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 4
            v3 = buffer binding0[v0]
            v4 = load.i32 storage v3 + v0
            jump block1
        block1:
            v5 = load.i32 var0 + v0
            v6 = ult v5, v4
            loop block4, block3
            branch v6, block2, block4
        block2:
            v7 = load.i32 var0 + v2
            v8 = iadd v7, v5
            store var0 + v2, v8
            jump block3
        block3:
            v9 = load.i32 var0 + v0
            v10 = iadd v9, v1
            store var0 + v0, v10
            jump block1
        block4:
            v11 = load.i32 var0 + v2
            store storage v3 + v0, v11
            return";
    let after = "
        block0:
            v12 = const.i32 0
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 4
            v3 = buffer binding0[v0]
            v4 = load.i32 storage v3 + v0
            jump block1(v12, v12)
        block1(v13: i32, v14: i32):
            v6 = ult v13, v4
            loop block4, block3
            branch v6, block2, block4
        block2:
            v8 = iadd v14, v13
            jump block3
        block3:
            v10 = iadd v13, v1
            jump block1(v10, v8)
        block4:
            store storage v3 + v0, v14
            return";
    check_with("var0 = private 8 \"x\"", before, "", after);
}

#[test]
fn bits_change_their_type_and_words_out_of_bounds_are_0() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = buffer binding0[v0]
            v3 = load.f32 storage v2 + v0
            store var1 + v0, v3
            v4 = load.i32 var1 + v0
            v5 = load.f32 var1 + v0
            store var1 + v1, v4
            v6 = load.f32 var1 + v1
            store storage v2 + v0, v4
            store storage v2 + v0, v5
            store storage v2 + v1, v6
            v7 = load.i32 var0 + v0
            store storage v2 + v1, v7
            return";
    let after = "
        block0:
            v9 = const.f32 0.0
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = buffer binding0[v0]
            v3 = load.f32 storage v2 + v0
            v8 = float_bits v3
            store storage v2 + v0, v8
            store storage v2 + v0, v3
            store storage v2 + v1, v9
            v7 = load.i32 var0 + v0
            store storage v2 + v1, v7
            return";
    check_with("var0 = workgroup 4 \"w\"\nvar1 = private 4 \"x\"", before, "var0 = workgroup 4 \"w\"", after);
}

#[test]
fn unknown_offsets_keep_what_they_can_reach() {
    // The array begins at byte 4: byte 0 is out of its reach. The last variable is only stored to.
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = buffer binding0[v0]
            v3 = load.i32 storage v2 + v0
            v4 = element v1, v3 * 4
            store var0 + v0, v3
            store var0 + v1, v3
            store var0 + v4, v0
            v5 = load.i32 var0 + v0
            v6 = load.i32 var0 + v1
            store storage v2 + v0, v5
            store storage v2 + v0, v6
            store var1 + v3, v3 volatile
            v7 = atomic.iadd var2 + v0, v3 device relaxed
            store var3 + v3, v3
            return";
    let after = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = buffer binding0[v0]
            v3 = load.i32 storage v2 + v0
            v4 = element v1, v3 * 4
            store var0 + v1, v3
            store var0 + v4, v0
            v6 = load.i32 var0 + v1
            store storage v2 + v0, v3
            store storage v2 + v0, v6
            store var1 + v3, v3 volatile
            v7 = atomic.iadd var2 + v0, v3 device relaxed
            return";
    let three = "var0 = private 16 \"a\"\nvar1 = private 4 \"b\"\nvar2 = private 4 \"c\"";
    check_with(&format!("{three}\nvar3 = private 8 \"d\""), before, three, after);
}

#[test]
fn ways_that_come_together_get_a_parameter_only_where_the_word_is_wanted() {
    let before = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 storage v2 + v0
            v4 = ult v0, v3
            selection block2
            branch v4, block1, block2
        block1:
            store var0 + v0, v1
            store var1 + v0, v3
            v5 = load.i32 var1 + v0
            store storage v2 + v0, v5
            jump block2
        block2:
            v6 = load.i32 var0 + v0
            store storage v2 + v0, v6
            return";
    let after = "
        block0:
            v7 = const.i32 0
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = buffer binding0[v0]
            v3 = load.i32 storage v2 + v0
            v4 = ult v0, v3
            selection block2
            branch v4, block1, block2(v7)
        block1:
            store storage v2 + v0, v3
            jump block2(v1)
        block2(v8: i32):
            store storage v2 + v0, v8
            return";
    check_with("var0 = private 4 \"x\"\nvar1 = private 4 \"y\"", before, "", after);
}

#[test]
fn many_words_in_deep_nests_of_loops_stay_in_memory() {
    let (words, depth) = (5_000, 1_000);
    let name = |kind: u32, level: u32| format!("block{}", kind * 2 * depth + level);
    let (header, continuing, merge) = (|i| name(0, i), |i| name(1, i), |i| name(2, i));
    let mut text = format!("kernel \"k\" 1, 1, 1\nvar0 = private {} \"x\"\nblock0:\nv0 = const.bool true\n", words * 4);
    for word in 0..words {
        text += &format!("v{} = const.i32 {}\n", word + 1, word * 4);
    }
    text += "jump block1\n";
    for i in 1..=depth {
        text += &format!("{}:\nloop {}, {}\n", header(i), merge(i), continuing(i));
        text += &format!("branch v0, {}, {}\n", header(i + 1), merge(i));
    }
    text += &format!("{}:\n", header(depth + 1));
    for word in 1..=words {
        text += &format!("v{} = load.i32 var0 + v{word}\n", words + word);
        text += &format!("store var0 + v{}, v{}\n", words + 1 - word, words + word);
    }
    text += &format!("jump {}\n", continuing(depth));
    for i in (1..=depth).rev() {
        let next = if i == 1 { "return".into() } else { format!("jump {}", continuing(i - 1)) };
        text += &format!("{}:\njump {}\n{}:\n{next}\n", continuing(i), header(i), merge(i));
    }
    let mut kernel = parse(&text);
    (MEM2REG.run)(&mut kernel);
    assert_eq!(verify(&kernel), Ok(()));
    let params: usize = kernel.blocks.values().map(|block| block.params.len()).sum();
    assert!((10_000..500_000).contains(&params) && kernel.variables.len() == 1, "{params}");
}
