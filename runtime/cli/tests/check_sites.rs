//! `spelter run --check` of kernels with very many instructions: each is checked, or rejected with the limit.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fmt::Write as _;

use crate::check_limits::json;
use crate::common::Folder;

/// A kernel with this many stores, two of each word of which race.
pub(crate) fn many_sites(stores: usize) -> String {
    let mut text = "
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\" %local
        OpExecutionMode %main LocalSize 2 1 1
        OpDecorate %local BuiltIn LocalInvocationIndex
        OpDecorate %words ArrayStride 4
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
        OpDecorate %out DescriptorSet 0
        OpDecorate %out Binding 0
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %u32 = OpTypeInt 32 0
        %words = OpTypeRuntimeArray %u32
        %Block = OpTypeStruct %words
        %ptr_in = OpTypePointer Input %u32
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr_word = OpTypePointer StorageBuffer %u32
        %local = OpVariable %ptr_in Input
        %out = OpVariable %ptr_Block StorageBuffer
        %c0 = OpConstant %u32 0\n"
        .to_owned();
    (1..stores).for_each(|at| writeln!(text, "%c{at} = OpConstant %u32 {at}").unwrap());
    text.push_str("%main = OpFunction %void None %fn\n%entry = OpLabel\n%l = OpLoad %u32 %local\n");
    for at in 0..stores {
        writeln!(text, "%p{at} = OpAccessChain %ptr_word %out %c0 %c{at}\nOpStore %p{at} %l").unwrap();
    }
    text + "OpReturn\nOpFunctionEnd\n"
}

#[test]
fn of_very_many_instructions_with_races_all_are_counted() {
    let folder = Folder::with("check-sites", "sites.spvasm", &many_sites(5_000));
    let found = json(&folder, "run sites.spvasm --bind 0.0=zeros:20000 --check", 66);
    let (checked, findings) = (&found["checked"], found["findings"].as_array().unwrap());
    let kept = findings.len() as u64;
    assert!(kept >= 1000, "{checked}");
    assert_eq!(kept + checked["findings_dropped"].as_u64().unwrap(), 5_000, "{checked}");
    let decided = ["confirmed", "refuted", "undecided"].map(|name| checked[name].as_u64().unwrap());
    assert_eq!(decided.iter().sum::<u64>(), checked["suspicions"].as_u64().unwrap(), "{checked}");
    let ended = folder.spelter("run sites.spvasm --bind 0.0=zeros:20000 --check");
    assert!(ended.stderr.contains(" more findings were not kept"));
}

/// The words of a module.
#[derive(Default)]
struct Words(Vec<u32>);

impl Words {
    fn op(&mut self, opcode: u32, operands: &[u32]) {
        self.0.push((operands.len() as u32 + 1) << 16 | opcode);
        self.0.extend(operands);
    }
}

/// Pointers through which the stores of a function go.
const POINTERS: u32 = 1000;

/// A kernel whose function with this many stores, to words of the invocation's own, is called so often. Texts of so
/// many instructions are too long to be read.
fn many_stores(calls: u32, stores: u32) -> Vec<u8> {
    let [void, of_void, u32, array, block, input, buffer, pointer, local, out] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let [main, function, id, first, constants] = [11, 12, 13, 14, 20];
    // The constants 0 to POINTERS, then a sum and a pointer for each store's place, then labels and results of calls.
    let places = constants + POINTERS + 1;
    let labels = places + 2 * POINTERS;
    let mut words = Words(vec![0x0723_0203, 0x0001_0300, 0, labels + 2 + calls, 0]);
    words.op(17, &[1]); // Shader
    words.op(14, &[0, 1]); // Logical, GLSL450
    words.op(15, &[5, main, u32::from_le_bytes(*b"main"), 0, local]);
    words.op(16, &[main, 17, 2, 1, 1]); // LocalSize
    words.op(71, &[local, 11, 29]); // LocalInvocationIndex
    words.op(71, &[array, 6, 4]); // ArrayStride
    words.op(71, &[block, 2]); // Block
    words.op(72, &[block, 0, 35, 0]); // Offset
    words.op(71, &[out, 34, 0]); // DescriptorSet
    words.op(71, &[out, 33, 0]); // Binding
    words.op(19, &[void]);
    words.op(33, &[of_void, void]);
    words.op(21, &[u32, 32, 0]);
    words.op(29, &[array, u32]);
    words.op(30, &[block, array]);
    words.op(32, &[input, 1, u32]);
    words.op(32, &[buffer, 12, block]);
    words.op(32, &[pointer, 12, u32]);
    words.op(59, &[input, local, 1]);
    words.op(59, &[buffer, out, 12]);
    (0..=POINTERS).for_each(|value| words.op(43, &[u32, constants + value, value]));
    words.op(54, &[void, function, 0, of_void]);
    words.op(248, &[labels]);
    words.op(61, &[u32, id, local]);
    words.op(132, &[u32, first, id, constants + POINTERS]);
    for place in 0..POINTERS {
        words.op(128, &[u32, places + 2 * place, first, constants + place]);
        words.op(65, &[pointer, places + 2 * place + 1, out, constants, places + 2 * place]);
    }
    (0..stores).for_each(|store| words.op(62, &[places + 2 * (store % POINTERS) + 1, id]));
    words.op(253, &[]);
    words.op(56, &[]);
    words.op(54, &[void, main, 0, of_void]);
    words.op(248, &[labels + 1]);
    (0..calls).for_each(|call| words.op(57, &[void, labels + 2 + call, function]));
    words.op(253, &[]);
    words.op(56, &[]);
    words.0.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn a_kernel_with_a_million_stores_is_checked() {
    let folder = Folder::new("check-million");
    folder.write("million.spv", &many_stores(1, 1_000_000));
    let found = json(&folder, "run million.spv --bind 0.0=zeros:8000 --check", 0);
    assert_eq!(found["findings"], serde_json::json!([]), "{found}");
    assert_eq!((&found["checked"]["dispatches"], &found["checked"]["accesses_not_checked"]), (&1.into(), &0.into()));
}

#[test]
fn a_kernel_that_calls_make_too_large_is_rejected_with_the_limit() {
    let folder = Folder::new("check-calls");
    folder.write("calls.spv", &many_stores(2000, 1000));
    let ended = folder.spelter("run calls.spv --bind 0.0=zeros:8000 --check");
    assert_eq!(ended.status, 4, "{}", ended.stderr);
    let problem = "the kernel has more than 1048576 instructions when all calls are inlined";
    assert!(ended.stderr.contains(problem), "{}", ended.stderr);
}

/// A kernel with this many barriers, before each of which an invocation reads what another one wrote before the last.
fn many_barriers(count: u32) -> String {
    let mut text = "
        @group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> tile: array<u32, 64>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
            var sum = l;\n"
        .to_owned();
    for round in 0..count {
        let line = format!("sum += tile[l ^ {}u]; workgroupBarrier(); tile[l] = sum; workgroupBarrier();", round % 64);
        writeln!(text, "{line}").unwrap();
    }
    text + "data[l] = sum;\n}"
}

#[test]
fn a_kernel_with_thousands_of_barriers_is_checked() {
    let folder = Folder::with("check-barriers", "barriers.wgsl", &many_barriers(1000));
    let found = json(&folder, "run barriers.wgsl --bind 0.0=zeros:256 --check", 0);
    assert_eq!(found["findings"], serde_json::json!([]), "{found}");
}
