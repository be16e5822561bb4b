//! The text form: what is printed is parsed to the same, and mistakes are reported with their place.

use proptest::prelude::*;
use spelter_shaders::ir::{AtomicOp, Op};
use spelter_shaders::simd::{
    Block, BlockCall, ContextField, InstData, Kernel, LaneAddress, Type, Value, ValueDef, WideOp, verify,
};

/// One of everything, exactly as it is printed.
pub(crate) const EVERYTHING: &str = r#"simd kernel "all \u{e4}\n\""
descriptors 3
shared 1024
private 64
frames 256

block0:
    v0 = const.s32 -7
    v1 = const.s1 true
    v2 = const.s1 false
    v3 = const.s64 18446744073709551615
    v4 = const.v32 1.5
    v5 = const.v32 -65535
    v6 = const.v32 0x7fc00000
    v7 = const.v32 0x3eaaaaab
    v8 = const.mask 0xffff
    v9 = lanes [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, 2.0, 0x12345678, 65535]
    v10 = undef.v32
    v11 = iadd v0, v0
    v12 = fma v4, v4, v10
    v13 = ult v5, v9
    v14 = ult v0, v11
    v15 = select v14, v3, v3
    v16 = select v13, v4, v5
    v17 = wide.extend v0
    v18 = wide.sub_sat v17, v3
    v19 = wide.truncate v18
    v20 = wide.lt v17, v18
    v21 = splat v0
    v22 = splat v20
    v23 = extract v9, v11
    v24 = first_lane v13
    v25 = any v13
    v95 = mask_bits v13
    v96 = permute v9, v9
    v26 = context workgroup_id.2
    v27 = context num_workgroups.0
    v28 = context push
    v29 = context shared
    v30 = context private
    v31 = context frames
    v32 = buffer_base v11
    v33 = buffer_len v11
    v34 = load.s32 v32
    v35 = load.s32 v32 + -8
    v36 = load.v32 v32 + v17 * 8 if v17 < v33
    v37 = load.s32 v32 + v0 * 4 + 8 if v0 < v19
    store v28 + 4, v0 mask v8
    store v32 + v0 * 1 if v0 < v19, v9 mask v13
    v38 = load_row v32 + v0 if < v19
    store_row v32 + v0 if < v19, v38 mask v13
    v54 = pick v38, v9, [0, 31, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16]
    v39, v40 = load_elements v32 + v0 if < [v19, v0]
    store_elements v32 + v0 if < [v19, v0], [v39, v40] mask v13
    v97, v98 = load_elements.u8 v32 + v0 by 3 if < [v19, v0]
    v99, v100 = load_elements.u16 v32 + v0 * 8 if < [v19, v0]
    v101 = load_elements v32 + v0 segments 4 v11 if < [v19]
    store_elements v32 + v0 * 32 if < [v19, v0], [v97, v98] mask v13
    store_elements v32 + v0 segments 8 v11 * 16 if < [v19], [v101] mask v13
    store_elements.u16 v32 + v0 by 4 if < [v19, v19], [v99, v100] mask v13
    v41 = gather v32 + v9 * 4 mask v13
    v52, v53 = gather_elements v32 + v9 masks [v13, v8]
    v42 = gather v32 + v9 * 4 + -2147483648 mask v13
    scatter v32 + v9 * 2 + 16, v41 mask v22
    v43 = atomic.load v32 + v9 * 4 mask v13
    atomic.store v32 + v9 * 4, v43 lock sequential mask v13
    v44 = atomic.compare_exchange v32 + v9 * 4 + 4, v43, v9 lock mask v13
    v45 = atomic.iadd v32 + v9 * 1, v43 mask v13
    fence
    v46 = frame_load.mask v31 + 0
    frame_store v31 + 64, v12
    zero v29, 1024
    poll
    branch v1, block1, block3(v0, v4)

block1 exec v8:
    jump block2(v0, v13)

block2(v47: s32, v48: mask) exec v48:
    switch v47, block3(v47, v10) [4: block5, 4294967295: block4]

block4 exec v49:
    v49 = land v48, v13
    jump block2(v0, v49)

block5:
    return

block3(v50: s32, v51: v32):
    switch v50, block6 []

block6:
    return
"#;

pub(crate) fn parse(text: &str) -> Kernel {
    Kernel::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn everything_is_printed_as_it_was_written() {
    assert_eq!(parse(EVERYTHING).to_string(), EVERYTHING);
}

#[test]
fn comments_blank_lines_and_other_spellings_are_read() {
    let kernel = parse(
        "; a comment\n\nsimd kernel \"a;b\" ; here too\nprivate 0\nblock0 :\n v0=const.s32 0xffffffff\n v1 = const.v32 65536.0\n \
         v2 = const.mask 3\n v7 = const.v32 1069547520\n v3 = const.s64 0x10\n v9 = load.s32 v3 + 0\n return",
    );
    assert_eq!(
        kernel.to_string(),
        "simd kernel \"a;b\"\n\nblock0:\n    v0 = const.s32 -1\n    v1 = const.v32 65536.0\n    v2 = const.mask 0x3\n    \
         v7 = const.v32 1.5\n    v3 = const.s64 16\n    v9 = load.s32 v3\n    return\n"
    );
}

#[test]
fn results_have_the_types_of_their_operands() {
    let kernel = parse(EVERYTHING);
    let types: Vec<Type> = kernel.values.values().map(|def| def.ty()).collect();
    let expect = [
        (11, Type::S32),
        (12, Type::V32),
        (13, Type::Mask),
        (14, Type::S1),
        (15, Type::S64),
        (16, Type::V32),
        (18, Type::S64),
        (21, Type::V32),
        (22, Type::Mask),
        (40, Type::V32),
        (49, Type::Mask),
    ];
    for (value, ty) in expect {
        assert_eq!(types[value], ty, "v{value}");
    }
}

#[test]
fn no_operation_has_the_name_of_another_instruction() {
    for op in Op::ALL {
        let text = format!("simd kernel \"k\"\nblock0:\n {}", op.name());
        let error = Kernel::parse(&text).expect_err("an operation has operands");
        assert_eq!(error.message, "expected a value", "{}", op.name());
    }
    for op in WideOp::ALL {
        assert_eq!(WideOp::from_name(op.name()), Some(op));
    }
    for field in
        [ContextField::NumWorkgroups(2), ContextField::WorkgroupId(0), ContextField::Push, ContextField::Frames]
    {
        assert_eq!(ContextField::from_name(&field.to_string()), Some(field));
    }
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = Kernel::parse(text).map(|kernel| kernel.to_string()).expect_err("must be refused");
    assert_eq!(error.to_string(), message);
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    refused("", "1:1: expected `simd kernel`");
    refused("kernel \"k\" 1, 1, 1", "1:1: expected `simd kernel`");
    refused("simd \"k\"", "1:1: expected `simd kernel`");
    refused("simd kernel \"k\" 1", "1:17: expected the end of the line");
    let start = "simd kernel \"k\"\n";
    refused(
        &format!("{start}v0 = const.s32 1"),
        "2:1: expected `descriptors`, `shared`, `private`, `frames`, `calls`, `subgroup_order`, `merged_workgroups`, `releases`, `tables`, `subgroup_loop` or a block",
    );
    refused(&format!("{start}shared x"), "2:8: expected a number below 2^32");
    refused(&format!("{start}block0(v0: i32):"), "2:12: expected a type");
    refused(&format!("{start}block0(v0: s32, v0: s32):"), "2:17: the value is defined twice");
    refused(&format!("{start}block0 exec v1:\n return"), "2:13: v1 is defined nowhere");
    refused(&format!("{start}block0:\n return\nblock0:\n return"), "4:1: the block is there already");
    let bad = |line: &str, message: &str| {
        refused(&format!("{start}block0(v0: s32, v1: v32, v2: mask, v3: s64):\n{line}\n return"), message);
    };
    bad("v9 = frobnicate v1", "3:6: no such instruction");
    bad("v9 = const.i32 1", "3:6: no such instruction");
    bad("v9 = wide.sub v3, v3", "3:6: no such instruction");
    bad("v9 = atomic.add v3 + v1 * 4, v1 mask v2", "3:6: no such instruction");
    bad("v9 = const.s32 4294967296", "3:16: expected a constant of the type");
    bad("v9 = const.v32 4294967296", "3:16: expected a constant of the type");
    bad("v9 = const.s1 1", "3:15: expected a constant of the type");
    bad("v9 = lanes [1, 2]", "3:17: expected `,`");
    bad(&format!("v9 = lanes [{}0x100000000]", "1, ".repeat(15)), "3:58: expected a constant of 32 bits");
    bad("v9 = iadd v0, v0\nv9 = iadd v0, v0", "4:1: the value is defined twice");
    bad("v9, v9 = load_elements v3 + v0 if < [v0, v0]", "3:5: the value is defined twice");
    bad("v9 = load_elements v3 + v0 if < [v0, v0]", "3:6: the instruction has 2 results");
    bad("v9, v8 = iadd v0, v0", "3:10: the instruction has one result");
    bad("v9 = fence", "3:6: the instruction has no result");
    bad("v9 = iadd v0, v9", "3:15: v9 is not defined above");
    bad("v9 = iadd v0, v00", "3:15: expected a value");
    bad("v4000000000 = iadd v0, v0", "3:1: expected a value");
    bad("jump block4000000000", "3:6: expected a block");
    bad("v9 = load.s32 v3 + v0 if v0 < v0", "3:23: expected `*`");
    bad("v9 = load.s32 v3 + v0 * 4", "3:26: expected `if`");
    bad("v9 = load.s32 v3 + v0 * 4 if v1 < v0", "3:30: expected v0");
    bad("v9 = load.s32 v3 + v0 * 256 if v0 < v0", "3:25: expected a scale");
    bad("v9 = load.s32 v3 + 2147483648", "3:20: expected an index or a signed number of 32 bits");
    bad("store v3 + 4, v0", "3:17: expected `mask`");
    bad("v9 = load_row v3 + v0 if v0", "3:26: expected `<`");
    bad("v9 = context workgroup_id.00", "3:14: expected a field of the context");
    bad("frame_store v3 + -4, v0", "3:18: expected a number below 2^32");
    bad("return %", "3:8: unexpected '%'");
}

/// A value that `EVERYTHING` has defined at its end.
fn value() -> impl Strategy<Value = Value> {
    (0u32..52).prop_map(Value::from_u32)
}

/// A constant of each type.
fn constant() -> impl Strategy<Value = InstData> {
    (0..Type::ALL.len(), any::<u64>(), 0u32..3).prop_map(|(ty, bits, shift)| {
        let ty = Type::ALL[ty];
        let width = match ty {
            Type::S1 => 1,
            Type::Mask => 16,
            Type::S32 | Type::V32 => 32,
            Type::S64 => 64,
        };
        InstData::Const { ty, bits: (bits >> (64 - width)) >> (shift * width / 3) }
    })
}

/// Instructions whose operands may be of any type.
fn data() -> impl Strategy<Value = InstData> {
    let jump = value().prop_map(|arg| {
        let to = BlockCall { block: Block::from_u32(1), args: smallvec::smallvec![arg] };
        InstData::Jump { to }
    });
    let atomic =
        (value(), value(), any::<[bool; 4]>(), any::<i32>()).prop_map(|(a, b, flags, disp)| InstData::Atomic {
            op: AtomicOp::Store,
            lanes: LaneAddress { base: a, index: b, scale: 4, disp },
            value: flags[0].then_some(a),
            comparator: (flags[0] && flags[1]).then_some(b),
            wide: (flags[0] && flags[3]).then_some([Some(b), flags[1].then_some(a)]),
            lock: flags[2],
            sequential: flags[3],
            mask: b,
        });
    let frame = (value(), any::<u32>()).prop_map(|(v, at)| InstData::FrameStore { frame: v, at, value: v });
    prop_oneof![constant(), jump, atomic, frame]
}

proptest! {
    #[test]
    fn kernels_come_back_as_they_are(insts in proptest::collection::vec(data(), 0..30)) {
        let mut kernel = parse(EVERYTHING);
        let block = kernel.layout[kernel.layout.len() - 1];
        for data in insts {
            let ty = data.result_types(|_| Type::V32).first().copied();
            let inst = kernel.insts.push(data);
            if let Some(ty) = ty {
                let value = kernel.values.push(ValueDef::Result { inst, index: 0, ty });
                kernel.results[inst].push(value);
            }
            kernel.blocks[block].insts.push(inst);
        }
        let text = kernel.to_string();
        let parsed = Kernel::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(parsed.to_string(), text);
        for (&ours, &theirs) in kernel.blocks[block].insts.iter().zip(&parsed.blocks[block].insts) {
            prop_assert_eq!(&kernel.insts[ours], &parsed.insts[theirs]);
        }
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
