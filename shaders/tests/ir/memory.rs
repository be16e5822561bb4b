//! Memory: buffers, push constants, variables, and what happens out of bounds.

use spelter_shaders::abi::Outcome;

use crate::ir::{buffer, check, parse, run_on, words};

#[test]
fn loads_out_of_bounds_give_0_and_stores_are_dropped() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = const.i32 8
            v3 = const.i32 -4
            v4 = const.i32 6
            v5 = const.i32 77
            v6 = buffer binding0[v0]
            v7 = load.i32 storage v6 + v2
            v8 = load.i32 storage v6 + v3
            v9 = load.i32 storage v6 + v4
            v10 = or v7, v8
            v11 = or v10, v9
            store storage v6 + v2, v5
            store storage v6 + v3, v5
            store storage v6 + v4, v5
            store storage v6 + v0, v11
            return";
    check(1, body, &[5, 6], &[0, 6]);
}

#[test]
fn a_descriptor_index_out_of_range_is_an_empty_buffer() {
    let text = "kernel \"k\" 1, 1, 1
        binding0 = storage 0.0[1] 0
        binding1 = storage 0.1[2] 0
        binding2 = storage 0.2[1] 0
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 2
            v3 = const.i32 -1
            v4 = const.i32 4
            v5 = buffer binding0[v0]
            v6 = buffer binding1[v1]
            v7 = buffer binding1[v2]
            v8 = buffer binding1[v3]
            v9 = load.i32 storage v6 + v0
            store storage v5 + v0, v9
            store storage v7 + v0, v3
            store storage v8 + v0, v3
            v10 = buffer_size v6
            v11 = buffer_size v7
            v12 = iadd v10, v11
            store storage v5 + v4, v12
            return";
    let buffers = [buffer(&[0, 0]), buffer(&[1]), buffer(&[2, 2, 2]), buffer(&[3])];
    assert_eq!(run_on(&parse(text), &buffers, [0; 3], false), Outcome::Done);
    assert_eq!(buffers.map(words), [vec![2, 12], vec![1], vec![2, 2, 2], vec![3]]);
}

#[test]
fn descriptors_that_the_driver_did_not_give_are_empty() {
    let text = "kernel \"k\" 1, 1, 1
        binding0 = storage 0.0[1] 0
        block0:
            v0 = const.i32 0
            v1 = buffer binding0[v0]
            store storage v1 + v0, v0
            return";
    assert_eq!(run_on(&parse(text), &[], [0; 3], false), Outcome::Done);
}

#[test]
fn an_element_out_of_range_does_not_come_back_by_wrapping_around() {
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 0x40000001
            v2 = const.i32 1
            v3 = const.i32 9
            v4 = buffer binding0[v0]
            v5 = element v0, v1 * 4
            store storage v4 + v5, v3
            v6 = element v0, v2 * 4
            store storage v4 + v6, v3
            return";
    check(1, body, &[1, 2], &[1, 9]);
}

#[test]
fn unaligned_words_are_their_bytes() {
    let body = "
        var0 = workgroup 8 \"x\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 4
            v3 = const.i32 5
            v4 = const.i32 8
            v5 = const.i32 0x44332211
            v6 = buffer binding0[v0]
            store storage v6 + v1, v5
            store var0 + v1, v5
            store var0 + v3, v5
            v7 = load.i32 var0 + v0
            store storage v6 + v4, v7
            v8 = load.i32 var0 + v1
            v9 = load.i32 var0 + v3
            v10 = const.i32 12
            v11 = iadd v8, v9
            store storage v6 + v10, v11
            return";
    check(1, body, &[0xff, 0xffff_ff00, 0, 0], &[0x3322_11ff, 0xffff_ff44, 0x3322_1100, 0x4433_2211]);
}

#[test]
fn push_constants_are_read_in_place() {
    // The test pushes the bytes 0, 1, 2, …
    let body = "
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = const.i32 252
            v3 = const.i32 253
            v4 = const.i32 -1
            v5 = const.i32 8
            v6 = buffer binding0[v0]
            v7 = load.i32 push + v1
            store storage v6 + v0, v7
            v8 = load.i32 push + v2
            store storage v6 + v1, v8
            v9 = load.i32 push + v3
            v10 = load.i32 push + v4
            v11 = or v9, v10
            store storage v6 + v5, v11
            return";
    check(1, body, &[9, 9, 9], &[0x0706_0504, 0xfffe_fdfc, 0]);
}

#[test]
fn variables_begin_as_0_and_do_not_overlap() {
    // Each invocation adds to private and shared variables; private ones begin anew, shared ones add up.
    let body = "
        var0 = workgroup 4 \"a\"
        var1 = private 8 \"b\"
        var2 = workgroup 20 \"c\"
        var3 = private 4 \"d\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 1
            v2 = const.i32 4
            v3 = const.i32 16
            v4 = const.i32 20
            v5 = load.i32 var0 + v0
            v6 = iadd v5, v1
            store var0 + v0, v6
            v7 = load.i32 var1 + v2
            v8 = iadd v7, v1
            store var1 + v2, v8
            v9 = load.i32 var2 + v3
            v10 = iadd v9, v2
            store var2 + v3, v10
            v11 = load.i32 var3 + v0
            v12 = iadd v11, v2
            store var3 + v0, v12
            store var0 + v2, v3
            store var1 + v3, v3
            v13 = load.i32 var2 + v4
            v14 = buffer binding0[v0]
            v15 = builtin local_invocation_index.0
            v16 = element v0, v15 * 20
            v17 = iadd v16, v2
            v18 = iadd v17, v2
            v19 = iadd v18, v2
            v20 = iadd v19, v2
            store storage v14 + v16, v6
            store storage v14 + v17, v8
            store storage v14 + v18, v10
            store storage v14 + v19, v12
            store storage v14 + v20, v13
            return";
    check(2, body, &[9; 10], &[1, 1, 4, 4, 0, 2, 1, 8, 4, 0]);
}
