//! Atomics on buffers and on variables, in bounds and out.

use crate::ir::{check, parse, run};

/// Old value and new contents after `op` with operand 5 (and comparator 7) on a word, in a buffer and in a variable.
#[track_caller]
fn check_op(op: &str, word: u32, old: u32, new: u32) {
    let operands = match op {
        "load" => "",
        "compare_exchange" => ", v2, v3",
        _ => ", v2",
    };
    let (result, see) = if op == "store" { ("", "v0") } else { ("v7 = ", "v7") };
    let (result2, see2) = if op == "store" { ("", "v0") } else { ("v9 = ", "v9") };
    let body = format!(
        "var0 = workgroup 4 \"x\"
        block0:
            v0 = const.i32 0
            v1 = const.i32 4
            v2 = const.i32 5
            v3 = const.i32 7
            v4 = buffer binding0[v0]
            v5 = load.i32 storage v4 + v0
            store var0 + v0, v5
            {result}atomic.{op} storage v4 + v0{operands} device acq_rel|storage unequal acquire
            {result2}atomic.{op} var0 + v0{operands} workgroup acq_rel|workgroup
            v10 = const.i32 8
            v11 = const.i32 12
            store storage v4 + v1, {see}
            store storage v4 + v10, {see2}
            v12 = load.i32 var0 + v0
            store storage v4 + v11, v12
            return"
    );
    check(1, &body, &[word, 9, 9, 9], &[new, old, old, new]);
}

#[test]
fn every_operation_gives_the_old_value() {
    let minus = 3_u32.wrapping_neg();
    check_op("load", 4, 4, 4);
    check_op("store", 4, 0, 5);
    check_op("exchange", 4, 4, 5);
    check_op("compare_exchange", 7, 7, 5);
    check_op("compare_exchange", 8, 8, 8);
    check_op("iadd", u32::MAX, u32::MAX, 4);
    check_op("isub", 2, 2, minus);
    check_op("smin", minus, minus, minus);
    check_op("umin", minus, minus, 5);
    check_op("smax", minus, minus, 5);
    check_op("umax", minus, minus, minus);
    check_op("and", 6, 6, 4);
    check_op("or", 6, 6, 7);
    check_op("xor", 6, 6, 3);
}

#[test]
fn every_order_is_possible_for_every_operation() {
    for semantics in ["relaxed", "acquire", "release", "acq_rel", "seq_cst", "acquire|release|storage"] {
        for op in ["load", "compare_exchange", "store", "smin", "iadd"] {
            let (result, operands) = match op {
                "load" => ("v2 = ", ""),
                "store" => ("", ", v0"),
                "compare_exchange" => ("v2 = ", ", v0, v0"),
                _ => ("v2 = ", ", v0"),
            };
            let text = format!(
                "kernel \"k\" 1, 1, 1\nbinding0 = storage 0.0[1] 0\nblock0:\n v0 = const.i32 0\n v1 = buffer binding0[v0]
                {result}atomic.{op} storage v1 + v0{operands} device {semantics} unequal {semantics}
                fence device {semantics}\n fence workgroup {semantics}\n return"
            );
            assert_eq!(run(&parse(&text), &[0]), [0]);
        }
    }
}

#[test]
fn out_of_bounds_or_unaligned_nothing_happens_and_0_comes_back() {
    for offset in ["8", "-4", "2"] {
        let body = format!(
            "var0 = workgroup 8 \"x\"
            block0:
                v0 = const.i32 0
                v1 = const.i32 1
                v2 = const.i32 {offset}
                v3 = buffer binding0[v0]
                v4 = atomic.iadd storage v3 + v2, v1 device relaxed
                v5 = atomic.iadd var0 + v2, v1 workgroup relaxed
                v6 = or v4, v5
                v7 = load.i32 var0 + v0
                v8 = or v6, v7
                v9 = load.i32 storage v3 + v0
                v10 = iadd v9, v8
                store storage v3 + v0, v10
                return"
        );
        check(1, &body, &[0x0101_0101, 0x0202_0202], &[0x0101_0101, 0x0202_0202]);
    }
}
