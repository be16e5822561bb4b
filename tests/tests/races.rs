//! Kernels with data races, or that send subgroups to different barriers, which Vulkan leaves undefined: they must
//! end, and access only their own memory, whatever ran on the worker before.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::guest::GuestSlice;
use spelter_tests::engine::{self, Engine};

/// Fills all memory that the kernels of a worker share with a number.
const DIRTY: &str = "
    @group(0) @binding(0) var<storage, read> number: array<u32>;
    @group(0) @binding(1) var<storage, read_write> out: array<u32>;
    var<workgroup> all: array<u32, 4096>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        for (var at = i; at < 4096u; at += 64u) { all[at] = number[0]; }
        workgroupBarrier();
        out[i] = all[4095u - i];
    }";

/// The first subgroup reads 0 and stops at the first barrier; the others read what it wrote and stop at the second.
const RACE: &str = "
    @group(0) @binding(0) var<storage, read> flag: array<u32>;
    @group(0) @binding(1) var<storage, read_write> again: array<u32>;
    @group(0) @binding(2) var<storage, read_write> out: array<u32>;
    @group(0) @binding(3) var<storage, read> data: array<u32>;
    var<workgroup> tile: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        let seen = flag[0];
        again[0] = 1u;
        if seen == 0u {
            workgroupBarrier();
            out[i] = 7u;
        } else {
            let x = data[i];
            let at = x & 63u;
            workgroupBarrier();
            tile[at] = x;
            out[i] = x;
        }
    }";

/// As [`RACE`], in a loop: subgroups would leave it in different iterations.
const LOOP: &str = "
    @group(0) @binding(0) var<storage, read> flag: array<u32>;
    @group(0) @binding(1) var<storage, read_write> again: array<u32>;
    @group(0) @binding(2) var<storage, read_write> out: array<u32>;
    @group(0) @binding(3) var<storage, read> data: array<u32>;
    var<workgroup> tile: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        var rounds = 0u;
        while rounds < 5u && flag[0] == rounds {
            let at = data[i] & 63u;
            again[0] += 1u;
            workgroupBarrier();
            tile[at] = i;
            rounds++;
        }
        let at = data[i] & 63u;
        workgroupBarrier();
        tile[at] = rounds;
        out[i] = 7u;
    }";

fn run(engine: &Engine, source: &str, buffers: &[GuestSlice], scratch: &mut Scratch) {
    let module = Module::from_wgsl(source).unwrap();
    let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
    let stop = AtomicU32::new(0);
    let args = DispatchArgs { buffers, push: &[0; MAX_PUSH_BYTES], images: &[], num_workgroups: [1; 3], stop: &stop };
    engine::dispatch(&*(engine.prepare)(&kernel), &args, scratch);
}

#[test]
fn invocations_do_not_continue_from_a_barrier_that_they_did_not_reach() {
    for engine in engine::engines() {
        for number in [1000, 600_000_000, 1_073_741_823, 2_147_483_648, 3_000_000_000_u32] {
            for source in [RACE, LOOP] {
                let mut scratch = Scratch::default();
                let [given, filled, flag, out, data] = [4, 256, 4, 256, 256].map(GuestSlice::leak);
                given.store_u32(0, number);
                (0..64).for_each(|i| data.store_u32(4 * i, i as u32));
                run(&engine, DIRTY, &[given, filled], &mut scratch);
                run(&engine, source, &[flag, flag, out, data], &mut scratch);
                for i in 0..64 {
                    let found = out.load_u32(4 * i);
                    assert!([0, 7, i as u32].contains(&found), "{}: {found} at {i}", engine.name);
                }
            }
        }
    }
}
