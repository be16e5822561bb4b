//! Buffers that are only filled, small and large ones: lines of large ones are written by non-temporal stores.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::x86::{self, Isa};
use spelter_shaders::back::{Code, Scratch};
use spelter_shaders::compile::{Floats, Module, lower, widen};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir;

/// The first holds the number of words; the second takes what the invocation's number makes of it.
const FILL: &str = "
    @group(0) @binding(0) var<storage, read> count: array<u32>;
    @group(0) @binding(1) var<storage, read_write> out: array<u32>;
    @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        let i = id.y * 65536u + id.x;
        if i < count[0] { out[i] = i * 2654435761u + 1u; }
    }";

/// 36 MiB, and some that end in the middle of a row.
const WORDS: u32 = (36 << 18) + 5;

#[test]
fn every_word_is_written_and_no_other() {
    let module = Module::from_wgsl(FILL).unwrap();
    let kernel = lower(&module.kernel("main", &BTreeMap::new()).unwrap(), Floats::FAST, |_, _| {});
    let memory = GuestSlice::leak(4 * (WORDS as usize + 64));
    for isa in Isa::available() {
        let program = x86::compile(&widen(&kernel, isa).unwrap(), isa).unwrap();
        if isa == Isa::Avx512 {
            assert!(program.assembly().contains("vmovntps"), "{}", program.assembly());
        }
        // At the beginning of a line, and a word after it; a buffer larger than what is written, and one smaller.
        for (lead, room, count) in [(0_u64, WORDS, WORDS - 3), (1, WORDS, WORDS + 9), (0, 1000, 4096)] {
            (0..WORDS + 64).for_each(|at| memory.store_u32(4 * u64::from(at), 7));
            let first = (memory.address() as u64 / 4 + lead).wrapping_neg() % 16 + 2 * lead;
            let number = GuestSlice::leak(4);
            number.store_u32(0, count);
            let args = DispatchArgs {
                buffers: &[number, memory.slice(4 * first, 4 * u64::from(room))],
                images: &[],
                push: &[0; MAX_PUSH_BYTES],
                num_workgroups: [256, WORDS.div_ceil(65536), 1],
                stop: &AtomicU32::new(0),
            };
            let mut scratch = Scratch::default();
            for y in 0..args.num_workgroups[1] {
                (0..256).for_each(|x| _ = program.run(&args, [x, y, 0], &mut scratch));
            }
            program.settle();
            for at in 0..u64::from(WORDS) + 64 {
                let index = at.wrapping_sub(first) as u32;
                let inside = at >= first && index < room.min(count);
                let expected = if inside { index.wrapping_mul(2_654_435_761).wrapping_add(1) } else { 7 };
                assert_eq!(memory.load_u32(4 * at), expected, "{isa:?}: word {at}, buffer from {first}");
            }
        }
    }
}

#[test]
fn a_kernel_that_publishes_what_it_writes_writes_through_the_caches() {
    let module = Module::from_wgsl(FILL).unwrap();
    let kernel = lower(&module.kernel("main", &BTreeMap::new()).unwrap(), Floats::FAST, |_, _| {});
    let with = |fence: &str| {
        ir::Kernel::parse(&kernel.to_string().replace("\n    return\n", &format!("\n    {fence}\n    return\n")))
    };
    let is_nontemporal = |kernel: &ir::Kernel| {
        let program = x86::compile(&widen(kernel, Isa::Avx512).unwrap(), Isa::Avx512).unwrap();
        program.assembly().contains("vmovntps")
    };
    // What is compiled for a processor need not run on it.
    assert!(is_nontemporal(&kernel));
    assert!(is_nontemporal(&with("fence workgroup release|storage").unwrap()), "it publishes to its workgroup only");
    assert!(!is_nontemporal(&with("fence device release|storage").unwrap()));
    assert!(!is_nontemporal(&with("barrier workgroup queue_family acq_rel|storage").unwrap()));
}
