//! Which loops get a copy for one lane after another, and what that copy is.

use super::widened_text;

/// The SIMD form of a loop that counts from `first` to each invocation's own limit, with these instructions before the words are put together.
fn widened(first: &str, test: &str, body: &str) -> String {
    let source = format!(
        "kernel \"serial\" 16, 1, 1
binding0 = storage 0.0[1] 0
binding1 = storage 0.1[1] 0
binding2 = storage 0.2[1] 0

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 1
    v3 = const.i32 37
    v4 = buffer binding0[v1]
    v5 = buffer binding1[v1]
    v6 = buffer binding2[v1]
    v7 = imul v0, v3
    v8 = element v1, v7 * 4
    v9 = load.i32 storage v4 + v8
    jump block1({first}, v1)

block1(v10: i32, v11: i32):
    v12 = {test}
    loop block3, block2
    branch v12, block2, block3

block2:
    v13 = element v1, v10 * 4
    v14 = load.i32 storage v4 + v13
{body}    v17 = iadd v11, v16
    v18 = iadd v10, v2
    jump block1(v18, v17)

block3:
    v19 = element v1, v0 * 4
    store storage v6 + v19, v11
    return
"
    );
    widened_text(&source).to_string()
}

const LOOK_UP: &str = "    v15 = element v1, v14 * 4\n    v16 = load.i32 storage v5 + v15\n";

fn has_copy(first: &str, test: &str, body: &str) -> bool {
    widened(first, test, body).contains("find_umsb")
}

#[test]
fn loops_that_look_words_up_have_a_copy() {
    assert!(has_copy("v7", "ult v10, v9", LOOK_UP));
    // From where all begin, and to where all end.
    assert!(has_copy("v1", "ult v10, v9", LOOK_UP));
    assert!(has_copy("v9", "ult v10, v3", LOOK_UP));
}

#[test]
fn others_have_none() {
    // All lanes have the same trip count.
    assert!(!has_copy("v1", "ult v10, v3", LOOK_UP));
    // The limit is no limit, or the loop's own.
    assert!(!has_copy("v7", "ine v10, v9", LOOK_UP));
    assert!(!has_copy("v7", "ult v10, v11", LOOK_UP));
    // Nothing is looked up.
    assert!(!has_copy("v7", "ult v10, v9", "    v16 = iadd v14, v14\n"));
    // It writes, meets others, or looks at what others change.
    let more = |more: &str| format!("{LOOK_UP}{more}");
    assert!(!has_copy("v7", "ult v10, v9", &more("    store storage v6 + v15, v16\n")));
    assert!(!has_copy("v7", "ult v10, v9", &more("    v20 = subgroup.reduce.iadd.16 v16\n")));
    assert!(!has_copy("v7", "ult v10, v9", &LOOK_UP.replace("v5 + v15", "v5 + v15 volatile")));
    assert!(!has_copy("v7", "ult v10, v9", &LOOK_UP.replace("v5 + v15", "v5 + v15 non_private")));
}

#[test]
fn a_copy_loads_single_words_and_asks_once_where_it_ends() {
    let text = widened("v7", "ult v10, v9", LOOK_UP);
    let walks = |line: &&str| line.contains("= load.s32") && line.contains("* 4 if");
    let loads: Vec<&str> = text.lines().filter(walks).collect();
    assert_eq!(loads.len(), 2, "{text}");
    // The first load's index is below what the loop's condition compares it with.
    let (_, check) = loads[0].split_once(" if ").expect("a check");
    assert!(text.contains(&format!("ult {}", check.replace(" <", ","))), "{text}");
    // The loop over lanes polls, and so does the old one; the copy does not.
    assert_eq!(text.matches("    poll ").count(), 2, "{text}");
}
