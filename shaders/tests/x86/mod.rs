//! The x86-64 back end at its boundary: SIMD text in, contents of buffers out.
//!
//! Each test runs on every instruction set that the machine has. A machine without AVX-512 fails the first test here,
//! so that untested code does not pass unnoticed; `SPELTER_WITHOUT_AVX512=1` says that this is known.

mod atomics;
mod control;
mod interleave;
mod memory;
mod nontemporal;
mod ops;
mod prefetch;
mod programs;
mod stack;
mod strided;

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::x86::{Isa, MachineCode, compile};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::simd::Kernel;

#[test]
fn the_machine_has_the_instruction_sets() {
    let known = std::env::var_os("SPELTER_WITHOUT_AVX512").is_some();
    let found = Isa::available().any(|isa| isa == Isa::Avx512);
    assert!(found || known, "no AVX-512 here: most of the back end goes untested");
}

fn parse(text: &str) -> Kernel {
    Kernel::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Words in memory of their own.
fn buffer(words: &[u32]) -> GuestSlice {
    let slice = GuestSlice::leak(words.len() * 4);
    for (place, &word) in words.iter().enumerate() {
        slice.store_u32(place as u64 * 4, word);
    }
    slice
}

fn words(buffer: GuestSlice) -> Vec<u32> {
    (0..buffer.len() / 4).map(|place| buffer.load_u32(place * 4)).collect()
}

fn run_program(program: &MachineCode, buffers: &[GuestSlice], workgroup: [u32; 3], stop: bool) -> Outcome {
    let push: [u8; MAX_PUSH_BYTES] = std::array::from_fn(|place| place as u8);
    let stop = AtomicU32::new(u32::from(stop));
    let args = DispatchArgs { buffers, push: &push, images: &[], num_workgroups: [7, 8, 9], stop: &stop };
    let mut scratch = Scratch { words: vec![0xdead_beef_dead_beef; 3], ..Scratch::default() };
    program.run(&args, workgroup, &mut scratch)
}

/// The instruction sets that kernels are run on.
fn engines() -> Vec<Isa> {
    Isa::available().collect()
}

/// What one workgroup leaves in copies of the buffers, on each instruction set; all have to agree.
#[track_caller]
fn run(text: &str, buffers: &[&[u32]]) -> Vec<Vec<u32>> {
    // The only operations that not every instruction set has.
    let on_exponents = ["significand", "exponent", "scale"].iter().any(|op| text.contains(op));
    let isas = engines().into_iter().filter(|&isa| isa == Isa::Avx512 || !on_exponents);
    let results: Vec<Vec<Vec<u32>>> = isas.map(|isa| run_on(isa, text, buffers)).collect();
    if let [first, others @ ..] = &results[..] {
        others.iter().for_each(|other| assert_eq!(first, other, "{text}"));
    }
    results.into_iter().next().unwrap_or_else(|| buffers.iter().map(|words| words.to_vec()).collect())
}

/// What one workgroup leaves in copies of the buffers.
#[track_caller]
fn run_on(isa: Isa, text: &str, buffers: &[&[u32]]) -> Vec<Vec<u32>> {
    let program = compile(&parse(text), isa).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let slices: Vec<GuestSlice> = buffers.iter().map(|words| buffer(words)).collect();
    assert_eq!(run_program(&program, &slices, [3, 4, 5], false), Outcome::Done);
    slices.into_iter().map(words).collect()
}

/// A kernel on buffer 0, as it is afterwards. `v0` is its address, `v1` the number of its words.
#[track_caller]
fn check(body: &str, input: &[u32], expected: &[u32]) {
    let text = format!("{}{body}\n    return\n", head(1));
    if engines().is_empty() {
        return;
    }
    assert_eq!(run(&text, &[input])[0], expected, "{text}");
}

/// The beginning of a kernel with `count` buffers: address and words of buffer `i` are `v{2i}` and `v{2i+1}`.
fn head(count: u32) -> String {
    let mut text = format!("simd kernel \"test\"\ndescriptors {count}\n\nblock0:\n    v990 = const.s64 2\n");
    for number in 0..count {
        let (base, len) = (number * 2, number * 2 + 1);
        text += &format!(
            "    v{n} = const.s32 {number}\n    v{base} = buffer_base v{n}\n    v{b} = buffer_len v{n}\n    v{w} = wide.shr v{b}, v990\n    v{len} = wide.truncate v{w}\n",
            n = 900 + number,
            b = 920 + number,
            w = 940 + number,
        );
    }
    text
}
