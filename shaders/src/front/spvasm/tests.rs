//! Words encoded by hand from the specification; the comparison with `spirv-as` is in the workspace's tests.

use super::{assemble, assemble_with_positions};
use crate::front::Error;

fn body(text: &str) -> Vec<u32> {
    assemble(text).unwrap()[5..].to_vec()
}

fn refused(text: &str) -> String {
    assemble(text).unwrap_err().to_string()
}

#[test]
fn header() {
    assert_eq!(assemble("").unwrap(), [0x0723_0203, 0x0001_0300, 0, 1, 0]);
    assert_eq!(assemble("; SPIR-V\n; Version: 1.5\n%v = OpTypeVoid").unwrap()[1..4], [0x0001_0500, 0, 2]);
}

#[test]
fn ids_in_order_of_appearance() {
    assert_eq!(body("%7 = OpTypeVoid %f = OpTypeFunction %7"), [0x2_0013, 1, 0x3_0021, 2, 1]);
    // In the words, the result type precedes the result.
    assert_eq!(body("%x = OpUndef %t"), [0x3_0001, 1, 2]);
}

#[test]
fn strings() {
    assert_eq!(body(r#"OpName %a "a\"b\\""#), [0x4_0005, 1, u32::from_le_bytes(*b"a\"b\\"), 0]);
    assert_eq!(body(r#"OpSourceExtension "x y;z""#), [0x3_0004, u32::from_le_bytes(*b"x y;"), u32::from(b'z')]);
}

#[test]
fn masks_bring_operands() {
    assert_eq!(body("OpStore %p %v Volatile|Aligned 16"), [0x5_003e, 1, 2, 3, 16]);
    assert_eq!(body("OpStore %p %v Aligned|MakePointerAvailable 4 %s"), [0x6_003e, 1, 2, 2 | 8, 4, 3]);
    assert_eq!(body("OpLoopMerge %a %b DontUnroll"), [0x4_00f6, 1, 2, 2]);
    assert_eq!(body("OpExecutionMode %m LocalSize 8 4 1"), [0x6_0010, 1, 17, 8, 4, 1]);
}

#[test]
fn literals_by_type() {
    let types = "%i = OpTypeInt 32 1 %u = OpTypeInt 32 0 %h = OpTypeInt 16 1 %l = OpTypeInt 64 1 %f = OpTypeFloat 32 \
                 %d = OpTypeFloat 64 %s = OpTypeFloat 16 ";
    let prefix = body(types).len();
    let literal = |ty: &str, text: &str| body(&format!("{types} %c = OpConstant %{ty} {text}"))[prefix + 3..].to_vec();
    assert_eq!(literal("i", "-5"), [0xffff_fffb]);
    assert_eq!(literal("i", "0xffffffff"), [0xffff_ffff]);
    assert_eq!(literal("u", "4294967295"), [u32::MAX]);
    assert_eq!(literal("h", "-1"), [u32::MAX]);
    assert_eq!(literal("l", "-2"), [0xffff_fffe, 0xffff_ffff]);
    assert_eq!(literal("f", "1e-3"), [1e-3f32.to_bits()]);
    assert_eq!(literal("f", "-0x1.8p+128"), [0xffc0_0000]);
    assert_eq!(literal("f", "0x1p+128"), [f32::INFINITY.to_bits()]);
    assert_eq!(literal("f", "0x1p-149"), [1]);
    assert_eq!(literal("f", "0x1.fffffcp-127"), [0x007f_ffff]);
    assert_eq!(literal("f", "!0x7fc00001"), [0x7fc0_0001]);
    assert_eq!(literal("d", "0.5"), [0, 0x3fe0_0000]);
    assert_eq!(literal("s", "1.5"), [0x3e00]);
    for (ty, text) in [
        ("u", "-1"),
        ("i", "2147483648"),
        ("f", "1e99"),
        ("f", "0x1p-2147483648"),
        ("f", "0x1.0000001p0"),
        ("h", "0x1ffff"),
    ] {
        let message = refused(&format!("{types}\n%c = OpConstant %{ty} {text}"));
        assert!(message.contains(text) && message.contains("spvasm:2:20"), "{message}");
    }
}

#[test]
fn switch_literals_have_the_selector_type() {
    let text = "%l = OpTypeInt 64 0 %c = OpConstant %l 1 OpSwitch %c %d 2 %a 3 %b";
    assert_eq!(body(text)[9..], [0x9_00fb, 2, 3, 2, 0, 4, 3, 0, 5]);
}

#[test]
fn operations_by_name() {
    assert_eq!(body("%r = OpSpecConstantOp %t IAdd %a %b"), [0x6_0034, 1, 2, 128, 3, 4]);
    assert_eq!(body("%r = OpSpecConstantOp %t CompositeExtract %a 1 2")[3..], [81, 3, 1, 2]);
    let text = "%g = OpExtInstImport \"GLSL.std.450\" %r = OpExtInst %t %g FMin %a %b";
    assert_eq!(body(text)[6..], [0x7_000c, 2, 3, 1, 37, 4, 5]);
}

#[test]
fn errors_have_a_place() {
    for (text, message) in [
        ("\n  OpNonsense", "no instruction is called OpNonsense at spvasm:2:3"),
        ("OpTypeVoid", "OpTypeVoid needs a result: `%id =` at spvasm:1:1"),
        ("%a = OpReturn", "OpReturn has no result at spvasm:1:1"),
        ("OpReturn 5", "OpReturn takes no operand `5` here at spvasm:1:10"),
        ("OpBranch\nOpReturn", "an operand is missing: IdRef at spvasm:2:1"),
        ("OpBranch", "an operand is missing: IdRef at spvasm:1:9"),
        ("OpCapability Shade", "`Shade` is not a value of Capability at spvasm:1:14"),
        ("OpName %a \"x", "a string without an end at spvasm:1:11"),
        ("%a", "expected `=`, found the end at spvasm:1:3"),
        ("%a = %b", "expected an instruction, found `%b` at spvasm:1:6"),
        ("%r = OpExtInst %t %g FMin %a", "the set was not imported by OpExtInstImport at spvasm:1:22"),
    ] {
        assert_eq!(refused(text), message);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_words_or_an_error(text in "(Op(Name|TypeInt|TypeFloat|Constant|Switch|ExtInst|Store|Nop)|%[ab1]|[0-9x.p+-]{1,9}|[!\"|=;\\\\\n ]){0,20}") {
        let _ = assemble(&text);
    }
}

#[test]
fn errors_of_words_are_reported_in_terms_of_the_text() {
    let (words, positions) = assemble_with_positions("%void = OpTypeVoid\n%f = OpTypeFunction\n    %void").unwrap();
    let reported = |message: &str, word| {
        let error = Error { message: message.into(), word, line: None };
        positions.in_terms_of_the_text(error).to_string()
    };
    assert_eq!(
        reported("%1 and %2, %3, 100% of %12, 5%", Some(words.len() - 1)),
        "%void and %f, %3, 100% of %12, 5% at spvasm:2"
    );
    assert_eq!(reported("%2 is odd", None), "%f is odd");
}
