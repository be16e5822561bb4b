//! Kernels on threads that flush denormals and round towards zero, a mode that programs in C may set: what is
//! compiled and computed there is what every other thread gets, and the thread finds its mode as it was.
//!
//! # Safety
//!
//! The two instructions read and write the control word of floats. Rust computes no float while the word is another
//! one.
#![cfg(target_arch = "x86_64")]

use std::arch::asm;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::{Backend, Module, compile};
use spelter_shaders::guest::GuestSlice;

/// Denormals are zeros, results that are denormal too; rounded towards zero; all exceptions masked.
const FOREIGN: u32 = 0x1f80 | 0x8000 | 0x0040 | 0x6000;
/// Exceptions that there were.
const FLAGS: u32 = 0x3f;

fn mode() -> u32 {
    let mut word = 0u32;
    // SAFETY: the instruction stores the control word in the variable.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
    word
}

fn set_mode(word: u32) {
    // SAFETY: all bits of the words that are written here exist on every x86-64 processor.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
}

/// `small` and `third` become constants when the kernel is read or optimised; the others are computed by the kernel.
const KERNEL: &str = "
    override scale: f32 = 0.01;
    @group(0) @binding(0) var<storage, read_write> words: array<f32>;
    @compute @workgroup_size(16) fn main(@builtin(local_invocation_id) id: vec3<u32>) {
        var small = 1e-37;
        small *= scale;
        var third = 100.0 * scale;
        third /= 3.0;
        let x = words[id.x];
        words[id.x] = select(x * 0.3, select(small, third, id.x == 1u), id.x < 2u);
    }";

fn input() -> Vec<f32> {
    (0..16).map(|place| if place % 2 == 0 { 1e-39 * place as f32 } else { 1.0 + place as f32 }).collect()
}

fn expected() -> Vec<u32> {
    let mut expected: Vec<f32> = input().iter().map(|x| x * 0.3).collect();
    (expected[0], expected[1]) = (1e-37 * 0.01, 100.0 * 0.01 / 3.0);
    expected.into_iter().map(f32::to_bits).collect()
}

/// Reads, compiles and runs the kernel; what it leaves.
fn run(backend: Backend, input: &[f32]) -> Vec<u32> {
    let module = Module::from_wgsl(KERNEL).expect("a module");
    let kernel = module.kernel("main", &BTreeMap::new()).expect("a kernel");
    let compiled = compile(&kernel, backend);
    assert_eq!(compiled.fallback, None);
    let buffer = GuestSlice::leak(64);
    for (place, value) in (0..).zip(input) {
        buffer.store_u32(place * 4, value.to_bits());
    }
    let args = DispatchArgs {
        buffers: &[buffer],
        push: &[0; MAX_PUSH_BYTES],
        images: &[],
        num_workgroups: [1, 1, 1],
        stop: &AtomicU32::new(0),
    };
    assert_eq!(compiled.code.run(&args, [0; 3], &mut Scratch::default()), Outcome::Done);
    (0..16).map(|place| buffer.load_u32(place * 4)).collect()
}

#[test]
fn the_callers_mode_changes_no_result_and_is_restored() {
    let (input, expected, usual) = (input(), expected(), mode());
    for backend in Backend::available() {
        assert_eq!(run(backend, &input), expected, "{backend}");
        set_mode(FOREIGN);
        let got = run(backend, &input);
        let after = mode();
        set_mode(usual);
        assert_eq!(got, expected, "{backend}");
        assert_eq!(after & !FLAGS, FOREIGN, "{backend}");
    }
}
