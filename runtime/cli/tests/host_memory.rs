//! Shaders that take much memory to read, under small limits of address space: each run succeeds or ends with a
//! message, and none with a signal.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // what fails here fails the test

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use crate::common::Folder;

/// Constants of a short text that have a million parts, all written out.
fn many_parts() -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\nconst a0 = array<u32, 2>(1u, 2u);\n",
    );
    for at in 1..13 {
        writeln!(text, "const a{at} = array(a{0}, a{0});", at - 1).unwrap();
    }
    text += "@compute @workgroup_size(1) fn main() {\n";
    for at in 0..85 {
        writeln!(text, "let x{at} = a12; o[{at}] = x{at}[o[0]]{};", "[0]".repeat(12)).unwrap();
    }
    text + "}\n"
}

/// A long chain of products, as SPIR-V text.
fn long_text() -> String {
    let mut text = String::from(
        "OpCapability Shader\nOpMemoryModel Logical GLSL450\nOpEntryPoint GLCompute %main \"main\" %gid\n\
         OpExecutionMode %main LocalSize 64 1 1\nOpDecorate %gid BuiltIn GlobalInvocationId\n\
         OpDecorate %array ArrayStride 4\nOpDecorate %block Block\nOpMemberDecorate %block 0 Offset 0\n\
         OpDecorate %buffer DescriptorSet 0\nOpDecorate %buffer Binding 0\n%void = OpTypeVoid\n\
         %u32 = OpTypeInt 32 0\n%uvec3 = OpTypeVector %u32 3\n%to_input = OpTypePointer Input %uvec3\n\
         %gid = OpVariable %to_input Input\n%array = OpTypeRuntimeArray %u32\n%block = OpTypeStruct %array\n\
         %to_block = OpTypePointer StorageBuffer %block\n%to_word = OpTypePointer StorageBuffer %u32\n\
         %buffer = OpVariable %to_block StorageBuffer\n%unit = OpTypeFunction %void\n%c0 = OpConstant %u32 0\n\
         %main = OpFunction %void None %unit\n%entry = OpLabel\n%ids = OpLoad %uvec3 %gid\n\
         %id = OpCompositeExtract %u32 %ids 0\n%p = OpAccessChain %to_word %buffer %c0 %id\n%v0 = OpLoad %u32 %p\n",
    );
    for at in 1..60_000 {
        writeln!(text, "%v{at} = OpIMul %u32 %v{} %id", at - 1).unwrap();
    }
    text + "OpStore %p %v59999\nOpReturn\nOpFunctionEnd\n"
}

/// Runs `spelter` with a limit of address space, which the shell sets before it becomes the program.
fn limited(folder: &Folder, mebibytes: u32, line: &str) -> Output {
    let script = format!("ulimit -v {} && exec \"$0\" {line}", mebibytes << 10);
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_spelter")]).current_dir(folder.path());
    shell.env("SPELTER_WORKERS", "2").output().unwrap()
}

#[test]
fn shaders_that_do_not_fit_into_memory_end_with_a_message() {
    let folder = Folder::new("host-memory");
    folder.write("parts.wgsl", many_parts().as_bytes());
    folder.write("long.spvasm", long_text().as_bytes());
    let mut refused = 0;
    for line in ["run parts.wgsl --bind 0.0=zeros:1K --groups 1", "compile long.spvasm"] {
        for mebibytes in [80, 100, 150, 200] {
            let ended = limited(&folder, mebibytes, line);
            let said = String::from_utf8_lossy(&ended.stderr);
            let at = format!("{line} with {mebibytes} MiB: {said}");
            assert_eq!(ended.status.signal(), None, "{at}");
            assert!(ended.status.success() || said.contains("error: "), "{at}");
            refused += usize::from(said.contains("out of host memory"));
        }
    }
    assert!(refused > 0, "no limit was small enough");
}
