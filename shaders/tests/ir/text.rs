//! The text form: what is printed is parsed to the same, and mistakes are reported with their place.

use proptest::prelude::*;
use spelter_shaders::ir::{Kernel, Op, Type, verify};

use crate::ir::{parse, random};

/// One of everything, exactly as it is printed.
const EVERYTHING: &str = r#"kernel "all \u{e4}\n\"" 4, 2, 1
push 16
binding0 = storage 0.1[1] 16 read_only
binding1 = uniform 3.20[4] 0
var0 = workgroup 256 "tile"
var1 = private 8 ""

block0:
    v0 = const.i32 -7
    v1 = const.i32 2147483647
    v2 = const.bool true
    v3 = const.bool false
    v4 = const.f32 -0.0
    v5 = const.f32 1e-45
    v6 = const.f32 0x7fc00000
    v7 = const.f32 0xff800000
    v8 = const.f32 3.4028235e38
    v9 = iadd v0, v1
    v10 = select.f32 v2, v4, v5
    v11 = builtin global_invocation_id.2
    v12 = element v0, v11 * 16
    v13 = buffer binding0[v0]
    v14 = buffer binding1[v11]
    v15 = select.buffer v3, v13, v14
    v16 = buffer_size v15
    v17 = load.f32 storage v13 + v12
    v18 = load.i32 uniform v14 + v12 volatile non_private made queue_family
    v19 = load.i32 push + v0
    v20 = load.i32 var0 + v0 non_private
    store storage v13 + v12, v17 volatile
    store var1 + v0, v18
    v21 = atomic.load storage v13 + v0 device relaxed
    atomic.store storage v13 + v0, v21 device release|storage
    v22 = atomic.compare_exchange var0 + v0, v21, v0 workgroup acq_rel|workgroup|0x20 unequal acquire|workgroup
    v23 = atomic.iadd storage v13 + v0, v1 cross_device seq_cst|available|visible
    v30 = subgroup.ballot v2
    v31 = subgroup.shuffle.f32 v4, v0
    v32 = subgroup.reduce.iadd.4 v0
    v33 = subgroup.inclusive.fmin v4
    v34 = subgroup.exclusive.xor v0
    barrier workgroup subgroup acq_rel|workgroup
    fence invocation 0x1
    selection block3
    branch v2, block1, block3(v0, v4)

block1:
    jump block2(v0)

block2(v24: i32):
    loop block5, block4
    switch v24, block3(v24, v10) [4: block5, 4294967295: block4]

block4:
    jump block2(v0)

block5:
    unreachable

block3(v25: i32, v26: f32):
    switch v25, block6 []

block6:
    return
"#;

#[test]
fn everything_is_printed_as_it_was_written() {
    assert_eq!(parse(EVERYTHING).to_string(), EVERYTHING);
}

#[test]
fn comments_blank_lines_and_other_spellings_are_read() {
    let kernel = parse(
        "; a comment\n\nkernel \"a;b\" 1,1,1 ; here too\nblock0 :\n v0=const.i32 0xffffffff\n v1 = const.f32 2\n return",
    );
    assert_eq!(
        kernel.to_string(),
        "kernel \"a;b\" 1, 1, 1\n\nblock0:\n    v0 = const.i32 -1\n    v1 = const.f32 2.0\n    return\n"
    );
}

#[test]
fn a_merge_that_control_never_reaches_need_not_be_in_the_text() {
    let text = "kernel \"k\" 1, 1, 1\n\nblock0:\n    selection block9\n    return\n";
    assert_eq!(parse(text).to_string(), text);
}

#[test]
fn no_operation_has_the_name_of_another_instruction() {
    let others =
        ["builtin", "element", "buffer", "buffer_size", "store", "barrier", "fence", "jump", "branch", "switch"];
    for op in Op::ALL {
        assert_eq!(Op::from_name(op.name()), Some(*op));
        assert!(!others.contains(&op.name()) && !["return", "unreachable", "selection", "loop"].contains(&op.name()));
        assert!(!op.name().contains('.') && Type::from_name(op.name()).is_none());
    }
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Kernel::parse(text).map(|kernel| kernel.to_string()).expect_err("must be refused");
    assert_eq!(error.to_string(), message);
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    refused("", "1:1: expected `kernel`");
    refused("kernal \"k\" 1, 1, 1", "1:1: expected `kernel`");
    refused("kernel \"k 1, 1, 1", "1:8: the text does not end");
    refused("kernel \"\\q\" 1, 1, 1", "1:8: no such escape");
    refused("kernel \"\\u{d800}\" 1, 1, 1", "1:8: no such character");
    refused("kernel \"ä\" 1, 1 1", "1:17: expected `,`");
    refused("kernel \"k\" 1, 1, 4294967296", "1:18: expected a number below 2^32");
    let start = "kernel \"k\" 1, 1, 1\n";
    refused(
        &format!("{start}binding1 = storage 0.0[1] 0"),
        "2:1: expected `push`, `memory_model`, `binding0`, `var0`, `message0`, `site0` or a block",
    );
    refused(&format!("{start}binding0 = storage 0[1] 0"), "2:20: expected set.binding");
    refused(
        &format!("{start}v0 = const.i32 1"),
        "2:1: expected `push`, `memory_model`, `binding0`, `var0`, `message0`, `site0` or a block",
    );
    refused(&format!("{start}memory_model java"), "2:14: expected a memory model");
    refused(&format!("{start}site0 = read texture"), "2:14: expected a storage class");
    refused(&format!("{start}site0 = watch uniform"), "2:9: expected `read`, `write`, `atomic`, `fence` or `barrier`");
    refused(&format!("{start}site0 = read uniform word 1 via"), "2:32: expected a number below 2^32");
    let start = "kernel \"k\" 1, 1, 1\nblock0:\n";
    refused(&format!("{start} v0 = frobnicate v1"), "3:7: no such instruction");
    refused(&format!("{start} v0 = load.i33 push + v0"), "3:7: no such instruction");
    refused(&format!("{start} v0 = const.i32 4294967296"), "3:17: expected a constant of the type");
    refused(&format!("{start} v0 = const.bool 1"), "3:18: expected a constant of the type");
    refused(&format!("{start} v0 = const.i32 1 1"), "3:19: expected the end of the line");
    refused(&format!("{start} v0 = const.i32 1\n v0 = const.i32 1"), "4:2: the value is defined twice");
    refused(&format!("{start} v0 = return"), "3:7: the instruction has no result");
    refused(&format!("{start} v0 = iadd v1,\n return"), "3:15: expected a value");
    refused(&format!("{start} v0 = iadd v0, v1\n return"), "3:16: v1 is defined nowhere");
    refused(&format!("{start} v0 = iadd v0, v01\n return"), "3:16: expected a value");
    refused(&format!("{start} v4294967295 = const.i32 1"), "3:2: expected a value");
    refused(&format!("{start} v4000000000 = const.i32 1"), "3:2: expected a value");
    refused(&format!("{start} jump block4000000000"), "3:7: expected a block");
    refused(&format!("{start} store var0 + v0, v0"), "3:8: expected a place in memory");
    refused(&format!("{start} v0 = buffer binding0[v0]"), "3:14: expected a binding declared above");
    refused(&format!("{start} fence device loud"), "3:15: expected memory semantics");
    refused(&format!("{start} sync site0"), "3:7: expected a site declared above");
    refused(&format!("{start} return\nblock0:\n return"), "4:1: the block is there already");
    refused(&format!("{start} selection block1\n selection block1"), "4:2: the block opens two constructs");
    refused(&format!("{start} return %"), "3:9: unexpected '%'");
}

proptest! {
    #[test]
    fn random_kernels_come_back_as_they_are(tape in proptest::collection::vec(any::<u32>(), 0..300)) {
        let kernel = random::kernel(&tape, true);
        prop_assert_eq!(verify(&kernel), Ok(()), "{}", &kernel);
        let text = kernel.to_string();
        let parsed = Kernel::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(verify(&parsed), Ok(()));
        prop_assert_eq!(parsed.to_string(), text);
    }

    #[test]
    fn no_text_makes_parser_or_verifier_panic(cuts in proptest::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,3}", 0usize..4), 1..6)) {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, with, without) in cuts {
            let at = at.index(text.len());
            let end = (at + without).min(text.len());
            text.splice(at..end, with.chars());
        }
        if let Ok(kernel) = Kernel::parse(&text.into_iter().collect::<String>()) {
            let _ = verify(&kernel);
            let text = kernel.to_string();
            prop_assert_eq!(Kernel::parse(&text).unwrap().to_string(), text);
        }
    }
}
