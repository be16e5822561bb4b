//! A dispatch of very many invocations in checked mode: what the detector keeps depends on the words that they access,
//! and not on how many invocations there are.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome, SUBGROUP_SIZE};
use spelter_shaders::back::x86::Isa;
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::Invocation;
use spelter_shaders::check::{Detector, GivenUp, Launch, Limits, Profile, Relation};
use spelter_shaders::compile::{Backend, Checked, Checks, Module, compile_checked};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::MemoryModel;

const SIZE: u32 = 256;

/// The least memory with which something is checked, for 100 M invocations.
const LIMITS: Limits = Limits { bytes: Limits::MIN_BYTES, records: u64::MAX, kinds: 16, examples: 8 };
const GROUPS: u32 = 400_000;

/// All invocations read words of the buffer, and the very last one writes one.
fn checked(isa: Isa, written: u32) -> Checked {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size({SIZE}) fn main(
            @builtin(local_invocation_index) i: u32,
            @builtin(workgroup_id) w: vec3u,
            @builtin(num_workgroups) n: vec3u,
        ) {{
            if a[i] == 7u || (w.x + 1u == n.x && i == {SIZE}u - 1u) {{ a[{written}] = 1u; }}
        }}"
    );
    let kernel = Module::from_wgsl(&text).unwrap().kernel("main", &Default::default()).unwrap();
    compile_checked(&kernel, Backend::X86(isa), Checks::Needed)
}

/// The detector after a dispatch.
fn detect(checked: &Checked, groups: u32) -> Detector {
    let memory = GuestSlice::leak(8 * SIZE as usize);
    let vulkan_model = checked.kernel.memory_model == MemoryModel::Vulkan;
    let launch = Launch { workgroup_size: SIZE, subgroup_size: SUBGROUP_SIZE, vulkan_model };
    let mut detector = Detector::new(&checked.kernel.sites, launch, Profile::Common, LIMITS);
    let start = memory.address() as u64;
    detector.reserve(start..start + memory.len()).unwrap();
    let stop = AtomicU32::new(0);
    let args = DispatchArgs {
        buffers: &[memory],
        images: &[],
        push: &[0; MAX_PUSH_BYTES],
        num_workgroups: [groups, 1, 1],
        stop: &stop,
    };
    let all = Workgroups::new(0..groups.into(), args.num_workgroups, [0; 3]);
    let outcome = checked.code.run_observed(&args, all, &mut Scratch::default(), &mut detector);
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(memory.load_u32(4 * u64::from(SIZE - 1)) + memory.load_u32(4 * u64::from(SIZE)), 1);
    detector
}

#[test]
fn a_hundred_million_invocations_take_no_more_memory_than_few() {
    for isa in Isa::available() {
        let silent = checked(isa, SIZE);
        let [few, many] = [2, GROUPS].map(|groups| detect(&silent, groups));
        assert!(many.candidates().is_empty(), "{:#?}", many.candidates());
        let (few, bytes) = (few.bytes(), many.bytes());
        assert!(bytes <= LIMITS.bytes && bytes < few + 4096, "{few} bytes, and {bytes} of very many");
        assert_eq!(GivenUp { eras: 0, ..many.given_up() }, GivenUp::default());
    }
}

#[test]
fn the_last_one_of_a_hundred_million_invocations_races_with_the_others() {
    for isa in Isa::available() {
        let many = detect(&checked(isa, SIZE - 1), GROUPS);
        let [kind] = many.candidates() else { panic!("{:#?}", many.candidates()) };
        let last = Invocation { workgroup: u64::from(GROUPS) - 1, local: SIZE - 1 };
        assert_eq!((kind.kind.relation, kind.count, kind.examples[0].second.invocation), (Relation::War, 1, last));
        assert!(many.bytes() <= LIMITS.bytes, "{} bytes", many.bytes());
    }
}
