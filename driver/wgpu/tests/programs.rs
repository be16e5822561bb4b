//! A table of small programs, each with its result computed in Rust.

#![allow(clippy::unwrap_used, reason = "tests and their helpers")]

mod arithmetic;
mod atomics;
mod control;
mod memory;
mod subgroups;
mod types;
mod workgroups;

use crate::common::Gpu;

/// A program: a text, its buffers as bindings 0, 1, …, and what the last of them holds afterwards.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) source: String,
    pub(crate) buffers: Vec<Vec<u32>>,
    pub(crate) groups: [u32; 3],
    pub(crate) expected: Vec<u32>,
}

impl Program {
    /// The program with these declarations, too.
    pub(crate) fn with(mut self, declarations: &str) -> Self {
        self.source += declarations;
        self
    }
}

/// Number of invocations of [`each`].
pub(crate) const N: u32 = 64;

/// Words from which interesting values are made: small numbers, powers of two and their neighbours, random ones.
pub(crate) fn word(i: u32) -> u32 {
    match i {
        0..16 => i,
        16..32 => 1u32.rotate_left(i * 3) | (i % 2),
        32..48 => (1u32 << (i - 16)).wrapping_sub(1).wrapping_sub(i % 3),
        _ => i.wrapping_mul(0x9e37_79b9) ^ 0x5bd1_e995,
    }
}

/// A program that computes `expression` of each element `x` of type `from`, at index `i`, and the same in Rust, from
/// and to bits.
pub(crate) fn each(
    name: &'static str,
    [from, to]: [&str; 2],
    expression: &str,
    input: impl Fn(u32) -> u32,
    expected: impl Fn(u32, u32) -> u32,
) -> Program {
    let source = format!(
        "@group(0) @binding(0) var<storage, read> src: array<{from}>;
        @group(0) @binding(1) var<storage, read_write> to: array<{to}>;
        @compute @workgroup_size({N})
        fn main(@builtin(local_invocation_index) i: u32) {{ let x = src[i]; to[i] = {expression}; }}"
    );
    let inputs: Vec<_> = (0..N).map(input).collect();
    let expected = (0..).zip(&inputs).map(|(i, x)| expected(i, *x)).collect();
    Program { name, source, buffers: vec![inputs, vec![0; N as usize]], groups: [1, 1, 1], expected }
}

fn check(programs: Vec<Program>) {
    let gpu = Gpu::shared();
    for program in programs {
        let buffers: Vec<_> = program.buffers.iter().map(Vec::as_slice).collect();
        let results = gpu.run(&program.source, &buffers, program.groups);
        assert_eq!(*results.last().unwrap(), program.expected, "{}", program.name);
    }
}

#[test]
fn arithmetic() {
    check(arithmetic::programs());
}

#[test]
fn memory() {
    check(memory::programs());
}

#[test]
fn control_flow() {
    check(control::programs());
}

#[test]
fn workgroups() {
    check(workgroups::programs());
}

#[test]
fn atomics() {
    check(atomics::programs());
}

#[test]
fn wide_and_narrow_types() {
    check(types::programs());
}

#[test]
fn subgroups() {
    check(subgroups::programs());
}

/// All programs.
pub(crate) fn all() -> Vec<Program> {
    let families = [
        arithmetic::programs(),
        memory::programs(),
        control::programs(),
        workgroups::programs(),
        atomics::programs(),
        types::programs(),
        subgroups::programs(),
    ];
    families.into_iter().flatten().collect()
}

#[test]
fn the_table_is_long() {
    let count = all().len();
    assert!(count >= 60, "{count} programs");
}
