//! The scalar IR at its boundaries: text in and out, what the verifier refuses, what kernels leave in memory.

mod atomics;
mod barriers;
mod control;
mod convergence;
mod fold;
mod memory;
pub(crate) mod random;
mod text;
mod verify;

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::{Code, Scratch, interp::Program};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Kernel, verify};

/// Parses and verifies.
fn parse(text: &str) -> Kernel {
    let kernel = Kernel::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// Words in memory of their own.
fn buffer(words: &[u32]) -> GuestSlice {
    let slice = GuestSlice::leak(words.len() * 4);
    for (place, &word) in words.iter().enumerate() {
        slice.store_u32(place as u64 * 4, word);
    }
    slice
}

/// All words of a buffer.
fn words(buffer: GuestSlice) -> Vec<u32> {
    (0..buffer.len() / 4).map(|place| buffer.load_u32(place * 4)).collect()
}

/// Runs one workgroup.
fn run_on(kernel: &Kernel, buffers: &[GuestSlice], workgroup: [u32; 3], stop: bool) -> Outcome {
    let mut push = [0; MAX_PUSH_BYTES];
    for (place, byte) in push.iter_mut().enumerate() {
        *byte = place as u8;
    }
    let stop = AtomicU32::new(u32::from(stop));
    let args = DispatchArgs { buffers, push: &push, images: &[], num_workgroups: [7, 8, 9], stop: &stop };
    // What an earlier kernel left must not show.
    let mut scratch = Scratch { words: vec![0xdead_beef_dead_beef; 500], ..Scratch::default() };
    Program::new(kernel).run(&args, workgroup, &mut scratch)
}

/// What one workgroup makes of the words in `binding0`.
fn run(kernel: &Kernel, input: &[u32]) -> Vec<u32> {
    let buffer = buffer(input);
    assert_eq!(run_on(kernel, &[buffer], [0; 3], false), Outcome::Done);
    words(buffer)
}

/// Holds a kernel's text with `binding0` declared against what it makes of the words.
#[track_caller]
fn check(size: u32, body: &str, input: &[u32], expected: &[u32]) {
    let text = format!("kernel \"test\" {size}, 1, 1\nbinding0 = storage 0.0[1] 0\n{body}");
    assert_eq!(run(&parse(&text), input), expected, "{text}");
}
