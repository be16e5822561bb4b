//! Places in the frame that values share, and those that they must not.

use super::widened_text;

/// A loop of nine iterations that carries two sums over a barrier: what goes back to its header, after what the second
/// part computes.
fn carried(second: &str, back: [&str; 2]) -> String {
    let [first, other] = back;
    let source = format!(
        "kernel \"carried\" 64, 1, 1
binding0 = storage 0.0[1] 0
var0 = workgroup 256 \"tile\"

block0:
    v0 = builtin local_invocation_index.0
    v1 = const.i32 0
    v2 = const.i32 1
    v3 = const.i32 9
    v4 = element v1, v0 * 4
    v5 = buffer binding0[v1]
    jump block1(v1, v0, v3)

block1(v6: i32, v7: i32, v8: i32):
    v9 = atomic.iadd var0 + v4, v6 workgroup relaxed
    barrier workgroup workgroup acq_rel|workgroup
    v10 = load.i32 var0 + v4
    v11 = iadd v7, v10
    v12 = imul v8, v10
{second}    v20 = iadd v6, v2
    v21 = ult v20, v3
    branch v21, block2, block3

block2:
    barrier workgroup workgroup acq_rel|workgroup
    jump block1(v20, {first}, {other})

block3:
    v22 = iadd v7, v8
    store storage v5 + v4, v22
    return
"
    );
    widened_text(&source).to_string()
}

fn counts(text: &str) -> [usize; 3] {
    let frames = text.lines().find_map(|line| line.strip_prefix("frames ")).and_then(|bytes| bytes.parse().ok());
    let count = |word: &str| text.matches(word).count();
    // Four subgroups.
    [frames.unwrap_or(0) / 4, count("frame_store"), count("frame_load")]
}

#[test]
fn a_sum_and_what_it_becomes_share_a_place() {
    // Each is stored before the loop and before the barrier at the end; loaded after either barrier.
    let text = carried("", ["v11", "v12"]);
    assert_eq!(counts(&text), [128, 4, 4], "{text}");
}

#[test]
fn what_is_needed_after_the_barrier_keeps_its_place() {
    // The second sum is what the first was: both are needed where the first's next value is stored.
    let text = carried("", ["v11", "v7"]);
    let [bytes, ..] = counts(&text);
    assert_eq!(bytes, 192, "{text}");
}

#[test]
fn sums_that_change_places_do_not_share_them() {
    let text = carried("", ["v8", "v7"]);
    assert_eq!(counts(&text)[0], 128, "{text}");
}
