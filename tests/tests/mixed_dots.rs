//! Dot products of halves with a sum (`SPV_VALVE_mixed_float_dot_product`) on every engine: products are exact, and
//! each sum is rounded once.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_shaders::guest::GuestSlice;
use spelter_tests::engine;

const COUNT: usize = 40;

/// The extension's instruction and capability are replaced by ones that assemblers know.
const TEXT: &str = "OpCapability Shader
OpCapability Float16
OpCapability Int8
OpExtension \"SPV_VALVE_mixed_float_dot_product\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %id
OpExecutionMode %main LocalSize 20 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %words ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %first DescriptorSet 0
OpDecorate %first Binding 0
OpDecorate %second DescriptorSet 0
OpDecorate %second Binding 1
OpDecorate %before DescriptorSet 0
OpDecorate %before Binding 2
OpDecorate %to DescriptorSet 0
OpDecorate %to Binding 3
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%f16 = OpTypeFloat 16
%f32 = OpTypeFloat 32
%half2 = OpTypeVector %f16 2
%v3 = OpTypeVector %u32 3
%in3 = OpTypePointer Input %v3
%in1 = OpTypePointer Input %u32
%c0 = OpConstant %u32 0
%words = OpTypeRuntimeArray %u32
%block = OpTypeStruct %words
%pb = OpTypePointer StorageBuffer %block
%p = OpTypePointer StorageBuffer %u32
%first = OpVariable %pb StorageBuffer
%second = OpVariable %pb StorageBuffer
%before = OpVariable %pb StorageBuffer
%to = OpVariable %pb StorageBuffer
%id = OpVariable %in3 Input
%main = OpFunction %void None %fn
%entry = OpLabel
%ip = OpAccessChain %in1 %id %c0
%i = OpLoad %u32 %ip
%pa = OpAccessChain %p %first %c0 %i
%pc = OpAccessChain %p %second %c0 %i
%ps = OpAccessChain %p %before %c0 %i
%pt = OpAccessChain %p %to %c0 %i
%wa = OpLoad %u32 %pa
%wc = OpLoad %u32 %pc
%ws = OpLoad %u32 %ps
%a = OpBitcast %half2 %wa
%b = OpBitcast %half2 %wc
%float = OpBitcast %f32 %ws
%sum = OpFConvert TYPE %float
%dot = OpSDotAccSat TYPE %a %b %sum
%wide = OpFConvert %f32 %dot
%bits = OpBitcast %u32 %wide
OpStore %pt %bits
OpReturn
OpFunctionEnd
";

const DOTS: u32 = 4453;
const INT8: u32 = 39;
const CAPABILITY: u32 = 17;

/// The module, with this capability and opcode.
fn words(ty: &str, capability: u32, opcode: u32) -> Vec<u32> {
    let mut words = spvasm::assemble(&TEXT.replace("TYPE", ty)).expect("it is a module");
    let mut at = 5;
    while at < words.len() {
        match words[at] {
            first if first == 2 << 16 | CAPABILITY && words[at + 1] == INT8 => words[at + 1] = capability,
            first if first == 6 << 16 | DOTS => words[at] = 6 << 16 | opcode,
            _ => {}
        }
        at += (words[at] >> 16) as usize;
    }
    words
}

/// A half that is an eighth of a small number, and that number as a float.
fn half(eighths: i32) -> (u16, f32) {
    let value = eighths as f32 / 8.0;
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127 + 15;
    let magnitude = if eighths == 0 { 0 } else { (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16 };
    (u16::from(eighths < 0) << 15 | magnitude, value)
}

/// The output of each engine.
fn results(words: &[u32], inputs: &[Vec<u32>; 3]) -> Vec<(&'static str, Vec<f32>)> {
    let module = Module::from_spirv(words).expect("it is valid");
    let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
    let run = |engine: &engine::Engine| {
        let [a, b, before] = inputs;
        let buffers = [a, b, before, &vec![0; COUNT]].map(|words| {
            let slice = GuestSlice::leak(COUNT * 4);
            (0u64..).zip(words).for_each(|(place, &word)| slice.write(place * 4, &word.to_le_bytes()));
            slice
        });
        let args = DispatchArgs {
            buffers: &buffers,
            push: &[0; MAX_PUSH_BYTES],
            images: &[],
            num_workgroups: [2, 1, 1],
            stop: &AtomicU32::new(0),
        };
        engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
        let result = |place: u64| {
            let mut word = [0; 4];
            buffers[3].read(place * 4, &mut word);
            f32::from_le_bytes(word)
        };
        (engine.name, (0..COUNT as u64).map(result).collect())
    };
    engine::engines().iter().map(run).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8) })]

    #[test]
    fn products_are_exact_and_sums_are_rounded(
        eighths in prop::collection::vec((-2047..2048i32, -2047..2048i32, -2047..2048i32, -2047..2048i32), COUNT),
        sums in prop::collection::vec(-1e6f32..1e6, COUNT),
    ) {
        let pack = |low: i32, high: i32| u32::from(half(low).0) | u32::from(half(high).0) << 16;
        let a = eighths.iter().map(|of| pack(of.0, of.1)).collect();
        let b = eighths.iter().map(|of| pack(of.2, of.3)).collect();
        let inputs = [a, b, sums.iter().map(|sum| sum.to_bits()).collect()];
        for (engine, got) in results(&words("%f32", 6912, 6916), &inputs) {
            for ((of, sum), got) in eighths.iter().zip(&sums).zip(got) {
                let [(_, a0), (_, a1), (_, b0), (_, b1)] = [of.0, of.1, of.2, of.3].map(half);
                let wanted = a1.mul_add(b1, a0.mul_add(b0, *sum));
                prop_assert_eq!(got.to_bits(), wanted.to_bits(), "{}: {} is not {}", engine, got, wanted);
            }
        }
    }
}

#[test]
fn sums_of_halves_are_halves() {
    // 1 x 1 + 2 x 3 + 4; 1/8 x 1/8, which vanishes beside 2,048; overflow.
    let cases = [(8, 16, 8, 24, 4.0, 11.0), (1, 0, 1, 0, 2048.0, 2048.0), (2047, 2047, 2047, 2047, 0.0, f32::INFINITY)];
    let pack = |low: i32, high: i32| u32::from(half(low).0) | u32::from(half(high).0) << 16;
    let fill = |of: &dyn Fn(usize) -> u32| (0..COUNT).map(|at| of(at % cases.len())).collect();
    let inputs = [
        fill(&|at| pack(cases[at].0, cases[at].1)),
        fill(&|at| pack(cases[at].2, cases[at].3)),
        fill(&|at| f32::to_bits(cases[at].4)),
    ];
    for (engine, got) in results(&words("%f16", 6913, 6917), &inputs) {
        for (at, got) in got.iter().enumerate() {
            assert_eq!(*got, cases[at % cases.len()].5, "{engine}: case {}", at % cases.len());
        }
    }
}

#[test]
fn other_types_are_refused() {
    let kernel = |words: &[u32]| Module::from_spirv(words).and_then(|module| module.kernel("main", &BTreeMap::new()));
    let shapes = kernel(&words("%f32", 6912, 6916));
    assert!(shapes.is_ok(), "{shapes:?}");
    // Vector sums; capabilities for unsupported types.
    let mut wrong = words("%f32", 6912, 6916);
    let at = (0..wrong.len()).find(|&at| wrong[at] == 6 << 16 | 6916).expect("it is there");
    wrong[at + 5] = wrong[at + 3];
    let error = kernel(&wrong).expect_err("a vector is no sum").to_string();
    assert!(error.contains("products of two vectors of two halves"), "{error}");
    let error = kernel(&words("%f32", 6914, 6916)).expect_err("other floats are not taken").to_string();
    assert!(error.contains("6914"), "{error}");
}

#[test]
fn an_instruction_has_the_accumulator_of_its_opcode() {
    for (ty, opcode, wanted) in [("%f16", 6916, "32-bit float"), ("%f32", 6917, "16-bit float")] {
        let module = Module::from_spirv(&words(ty, 6912, opcode));
        let error = module.and_then(|module| module.kernel("main", &BTreeMap::new())).expect_err("the types differ");
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
