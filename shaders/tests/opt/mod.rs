//! Optimisation passes at their boundary: a small text in, a small text out; and random kernels, which must leave the
//! same in memory before and after.

mod forward;
mod licm;
mod meld;
mod mem2reg;
mod ranges;
mod same_results;
mod speed;
mod unroll;

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::{Code, Scratch, interp::Program};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Kernel, verify};
use spelter_shaders::opt::Pass;

/// Parses and verifies the text of a kernel whose head is left out.
#[track_caller]
fn parse(body: &str) -> Kernel {
    let head = if body.trim_start().starts_with("kernel") { "" } else { HEAD };
    let text = format!("{head}{body}");
    let kernel = Kernel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{text}"));
    kernel
}

/// What the texts of tests may use.
const HEAD: &str = "kernel \"test\" 8, 1, 1
    push 16
    binding0 = storage 0.0[1] 0
    binding1 = storage 0.1[1] 0
    binding2 = uniform 0.2[1] 0
    var0 = workgroup 64 \"shared\"
    var1 = private 64 \"own\"
";

/// Holds what a pass makes of a kernel against the expected text. Both may leave out the head.
#[track_caller]
fn check(pass: Pass, before: &str, after: &str) {
    let mut kernel = parse(before);
    (pass.run)(&mut kernel);
    let (is, wanted) = (kernel.to_string(), parse(after).to_string());
    assert!(is == wanted, "after {}:\n{is}\nexpected:\n{wanted}", pass.name);
    verify(&kernel).unwrap_or_else(|error| panic!("{error}\n{kernel}"));
}

/// The words in the buffer after one workgroup has run on it; it stands at all bindings.
fn run(kernel: &Kernel, input: &[u32]) -> Vec<u32> {
    let buffer = buffer(input);
    run_on(kernel, &vec![buffer; kernel.bindings.len()]);
    words(buffer)
}

/// As [`run`], with a buffer for each binding.
fn run_with(kernel: &Kernel, inputs: &[&[u32]]) -> Vec<Vec<u32>> {
    let buffers: Vec<_> = inputs.iter().map(|input| buffer(input)).collect();
    run_on(kernel, &buffers);
    buffers.into_iter().map(words).collect()
}

fn buffer(input: &[u32]) -> GuestSlice {
    let slice = GuestSlice::leak(input.len() * 4);
    for (place, &word) in input.iter().enumerate() {
        slice.store_u32(place as u64 * 4, word);
    }
    slice
}

fn words(buffer: GuestSlice) -> Vec<u32> {
    (0..buffer.len() / 4).map(|place| buffer.load_u32(place * 4)).collect()
}

fn run_on(kernel: &Kernel, buffers: &[GuestSlice]) {
    let mut push = [0; MAX_PUSH_BYTES];
    for (place, byte) in push.iter_mut().enumerate() {
        *byte = place as u8;
    }
    let stop = AtomicU32::new(0);
    let args = DispatchArgs { buffers, push: &push, images: &[], num_workgroups: [7, 8, 9], stop: &stop };
    let outcome = Program::new(kernel).run(&args, [1, 2, 3], &mut Scratch::default());
    assert_eq!(outcome, Outcome::Done);
}
