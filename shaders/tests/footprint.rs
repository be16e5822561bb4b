//! What a worker needs for a large kernel: its code, and the memory for frames, shared and private variables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::{Floats, Module, lower, lower_for, widen};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Kernel;

/// A workgroup of 256 invocations that mixes 16 values, fourteen times, each time after a barrier across which they
/// live.
fn large_kernel() -> String {
    let mut text = String::from(
        "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
        var<workgroup> shared_words: array<u32, 256>;
        @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) at: u32) {\n",
    );
    for value in 0..16 {
        let _ = writeln!(text, "var v{value} = words[at * 16u + {value}u];");
    }
    for round in 0..14 {
        for value in 0..16 {
            let (other, amount) = ((value + round + 1) % 16, (value * 7 + round) % 31 + 1);
            let _ = writeln!(text, "v{value} = (v{value} ^ v{other}) * {amount}u + (v{other} >> {amount}u);");
        }
        let _ = writeln!(text, "shared_words[at] = v{round}; workgroupBarrier();");
        let _ = writeln!(text, "v{round} += shared_words[at ^ {}u]; workgroupBarrier();", round + 1);
    }
    for value in 0..16 {
        let _ = writeln!(text, "words[at * 16u + {value}u] = v{value};");
    }
    text + "}"
}

#[test]
fn a_kernel_of_a_thousand_instructions_needs_less_than_a_megabyte() {
    let module = Module::from_wgsl(&large_kernel()).unwrap();
    let kernel = lower(&module.kernel("main", &BTreeMap::new()).unwrap(), Floats::FAST, |_, _| {});
    let instructions: usize = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    assert!((1000..1500).contains(&instructions), "{instructions} instructions");
    for isa in Isa::available() {
        let program = x86::compile(&widen(&kernel, isa).unwrap(), isa).unwrap();
        let args = DispatchArgs {
            buffers: &[GuestSlice::leak(256 * 16 * 4)],
            push: &[0; MAX_PUSH_BYTES],
            images: &[],
            num_workgroups: [1, 1, 1],
            stop: &AtomicU32::new(0),
        };
        let mut scratch = Scratch::default();
        assert_eq!(program.run(&args, [0; 3], &mut scratch), Outcome::Done);
        let frames = scratch.words.capacity() * 8;
        // 16 values of 256 invocations live across barriers: the frames are not empty.
        assert!(frames > 16 * 256 * 4, "{isa:?}: {frames} bytes of frames");
        let code = program.code_bytes();
        assert!(code + frames < 1 << 20, "{isa:?}: {code} bytes of code, {frames} of frames");
    }
}

#[test]
fn what_counts_is_how_long_a_kernel_is_when_it_is_optimised() {
    let text = "@compute @workgroup_size(1) fn main() {}";
    let text = Module::from_wgsl(text).unwrap().kernel("main", &BTreeMap::new()).unwrap().to_string();
    let with = |count: usize| {
        let lines: String = (0..count).map(|number| format!("    v{number} = const.i32 {number}\n")).collect();
        Kernel::parse(&text.replace("    return\n", &format!("{lines}    return\n"))).unwrap()
    };
    for isa in Isa::available() {
        let lowered = lower_for(&with(200_000), isa, |_, _| {}).unwrap();
        assert_eq!(lowered.blocks[lowered.layout[0]].insts.len(), 1, "they have no uses");
        let problem = lower_for(&with(600_000), isa, |_, _| {}).unwrap_err();
        assert_eq!(problem, "600002 instructions, as they are read, are more than 524288");
    }
}
