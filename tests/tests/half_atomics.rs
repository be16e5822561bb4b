//! Atomics on halves of any bits, in buffers and in workgroup memory, on every engine: compared with the nearest half,
//! found by a search among all halves.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_shaders::guest::GuestSlice;
use spelter_tests::engine;

/// Invocations, of three workgroups: an odd number, so that the buffer ends in the middle of a word.
const COUNT: usize = 3 * 15;

const TEXT: &str = "OpCapability Shader
OpCapability Float16
OpCapability StorageBuffer16BitAccess
OpCapability AtomicFloat16AddEXT
OpCapability AtomicFloat16MinMaxEXT
OpExtension \"SPV_EXT_shader_atomic_float16_add\"
OpExtension \"SPV_EXT_shader_atomic_float_min_max\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"main\" %id %lid
OpExecutionMode %main LocalSize 15 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %lid BuiltIn LocalInvocationIndex
OpDecorate %halves ArrayStride 2
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %slots DescriptorSet 0
OpDecorate %slots Binding 0
OpDecorate %values DescriptorSet 0
OpDecorate %values Binding 1
OpDecorate %olds DescriptorSet 0
OpDecorate %olds Binding 2
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%f16 = OpTypeFloat 16
%v3 = OpTypeVector %u32 3
%in3 = OpTypePointer Input %v3
%in1 = OpTypePointer Input %u32
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%c15 = OpConstant %u32 15
%halves = OpTypeRuntimeArray %f16
%block = OpTypeStruct %halves
%pb = OpTypePointer StorageBuffer %block
%p = OpTypePointer StorageBuffer %f16
%array = OpTypeArray %f16 %c15
%wb = OpTypePointer Workgroup %array
%wp = OpTypePointer Workgroup %f16
%shared = OpVariable %wb Workgroup
%slots = OpVariable %pb StorageBuffer
%values = OpVariable %pb StorageBuffer
%olds = OpVariable %pb StorageBuffer
%id = OpVariable %in3 Input
%lid = OpVariable %in1 Input
%main = OpFunction %void None %fn
%entry = OpLabel
%ip = OpAccessChain %in1 %id %c0
%i = OpLoad %u32 %ip
%l = OpLoad %u32 %lid
%slot = OpAccessChain %p %slots %c0 %i
%from = OpAccessChain %p %values %c0 %i
%to = OpAccessChain %p %olds %c0 %i
%value = OpLoad %f16 %from
BODYOpStore %to %old
OpReturn
OpFunctionEnd
";

/// The operation, and its place.
#[derive(Clone, Copy, Debug)]
struct What {
    op: &'static str,
    shared: bool,
}

impl What {
    fn text(self) -> String {
        let op = self.op;
        let body = if self.shared {
            format!(
                "%own = OpAccessChain %wp %shared %l
%first = OpAtomicLoad %f16 %slot %c1 %c0
OpAtomicStore %own %c2 %c0 %first
%old = {op} %f16 %own %c2 %c0 %value
%last = OpAtomicLoad %f16 %own %c2 %c0
OpAtomicStore %slot %c1 %c0 %last
"
            )
        } else {
            format!("%old = {op} %f16 %slot %c1 %c0 %value\n")
        };
        TEXT.replace("BODY", &body)
    }

    fn after(self, old: u16, value: u16) -> u16 {
        let [a, b] = [old, value].map(number);
        match self.op {
            "OpAtomicExchange" => value,
            "OpAtomicFAddEXT" => nearest(a + b),
            // Of a number and a NaN, the number.
            _ if b.is_nan() => old,
            _ if a.is_nan() => value,
            "OpAtomicFMinEXT" => {
                if b < a {
                    value
                } else {
                    old
                }
            }
            _ => {
                if b > a {
                    value
                } else {
                    old
                }
            }
        }
    }
}

/// The value of a half's bits.
fn number(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// The nearest half; ties to even.
fn nearest(number_wanted: f64) -> u16 {
    const INFINITE: u16 = 0x7c00;
    let sign = u16::from(number_wanted.is_sign_negative()) << 15;
    let size = number_wanted.abs();
    if size.is_nan() {
        return 0x7e00;
    }
    // Infinity stands for the number that would come next.
    let value = |bits: u16| if bits == INFINITE { 65536.0 } else { number(bits) };
    let (mut below, mut above) = (0, INFINITE);
    if size >= 65536.0 {
        return sign | INFINITE;
    }
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        *(if value(middle) <= size { &mut below } else { &mut above }) = middle;
    }
    let (down, up) = (size - value(below), value(above) - size);
    sign | if down < up || down == up && below.is_multiple_of(2) { below } else { above }
}

/// Whether both are equal, or both NaN.
fn same(a: u16, b: u16) -> bool {
    a == b || number(a).is_nan() && number(b).is_nan()
}

fn bits() -> impl Strategy<Value = Vec<u16>> {
    let any = prop_oneof![
        4 => any::<u16>(),
        // Near one, so that sums differ from the larger summand.
        4 => (0x3000..0x4800u16, any::<bool>()).prop_map(|(bits, negative)| bits | u16::from(negative) << 15),
        1 => prop::sample::select(vec![0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00]),
    ];
    prop::collection::vec(any, COUNT)
}

fn what() -> impl Strategy<Value = What> {
    let op = prop::sample::select(vec!["OpAtomicFAddEXT", "OpAtomicFMinEXT", "OpAtomicFMaxEXT", "OpAtomicExchange"]);
    (op, any::<bool>()).prop_map(|(op, shared)| What { op, shared })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn halves_are_rounded_once_and_leave_their_neighbours(what in what(), slots in bits(), values in bits()) {
        let module = Module::from_spirv(&spvasm::assemble(&what.text()).expect("it is a module")).expect("it is valid");
        let kernel = module.kernel("main", &BTreeMap::new()).expect("it has the entry point");
        for engine in engine::engines() {
            let buffers = [&slots, &values, &vec![0; COUNT]].map(|halves| {
                let slice = GuestSlice::leak(COUNT * 2);
                (0u64..).zip(halves.iter()).for_each(|(place, &half)| slice.store_u16(place * 2, half));
                slice
            });
            let args = DispatchArgs {
                buffers: &buffers,
                push: &[0; MAX_PUSH_BYTES],
                images: &[],
                num_workgroups: [3, 1, 1],
                stop: &AtomicU32::new(0),
            };
            engine::dispatch(&*(engine.prepare)(&kernel), &args, &mut Scratch::default());
            for (place, (&slot, &value)) in slots.iter().zip(&values).enumerate() {
                let [now, _, old] = buffers.map(|buffer| buffer.load_u16(place as u64 * 2));
                let wanted = what.after(slot, value);
                prop_assert!(same(now, wanted), "{}: {what:?} {slot:#x} {value:#x}: {now:#x}, not {wanted:#x}", engine.name);
                prop_assert!(same(old, slot), "{}: {what:?} of {slot:#x} gives {old:#x}", engine.name);
            }
        }
    }
}
