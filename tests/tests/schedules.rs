//! Schedules: kernels without data races compute the same in every order of workgroups, subgroups and lanes; kernels
//! that lack a barrier do not.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, Outcome};
use spelter_shaders::back::Scratch;
use spelter_shaders::compile::Module;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Kernel;
use spelter_shaders::schedule::Schedule;
use spelter_tests::case::Case;
use spelter_tests::engine::{self, Engine};
use spelter_tests::{check, corpus};

const SCHEDULES: [Schedule; 4] = [Schedule::Reverse, Schedule::Random(1), Schedule::Random(2), Schedule::Random(3)];

#[test]
fn the_test_files_compute_the_same_in_every_order() {
    let mut wrong = Vec::new();
    for path in corpus::files() {
        let (case, name) = (Case::read(&path).unwrap(), corpus::name(&path));
        if case.error.is_some() {
            continue;
        }
        if let Err(problem) = check::check_scheduled(&case, &SCHEDULES) {
            wrong.push(format!("{name}: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each invocation reads what the one of the subgroup before wrote. A barrier is missing between the two lines.
const BETWEEN_SUBGROUPS: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> tile: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        tile[i] = i + 1u;
        out[i] = tile[max(i, 16u) - 16u];
    }";

/// As [`BETWEEN_SUBGROUPS`], with a barrier before and after, in a loop.
const IN_REGIONS: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> tile: array<u32, 64>;
    @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
        for (var round = 0u; round < 3u; round++) {
            workgroupBarrier();
            tile[i] = i + 1u + round;
            out[i] = tile[max(i, 16u) - 16u] - round;
            workgroupBarrier();
        }
    }";

/// Each workgroup reads what the one before wrote.
const BETWEEN_WORKGROUPS: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @group(0) @binding(1) var<storage, read_write> tile: array<u32>;
    @compute @workgroup_size(16)
    fn main(@builtin(global_invocation_id) id: vec3u) {
        tile[id.x] = id.x + 1u;
        out[id.x] = tile[max(id.x, 16u) - 16u];
    }";

/// Each invocation reads what the one before wrote.
const BETWEEN_LANES: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> tile: array<u32, 16>;
    @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {
        tile[i] = i + 1u;
        out[i] = tile[max(i, 1u) - 1u];
    }";

/// Appends the indices of the odd invocations to a list, in the order in which they run.
const APPENDED: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    @group(0) @binding(1) var<storage, read_write> length: atomic<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
        if (id.x & 1u) == 1u { out[atomicAdd(&length, 1u)] = id.x; }
    }";

/// As [`APPENDED`], in workgroup memory, with the previous invocation's index in place of the number of earlier ones.
const CHAINED: &str = "
    @group(0) @binding(0) var<storage, read_write> out: array<u32>;
    var<workgroup> last: atomic<u32>;
    @compute @workgroup_size(40) fn main(@builtin(global_invocation_id) id: vec3u) {
        out[id.x] = atomicExchange(&last, id.x + 1u);
    }";

/// Runs a kernel and returns `words` of its first buffer.
fn run(engine: &Engine, source: &str, schedule: Schedule, groups: u32, words: usize) -> Vec<u32> {
    let kernel = Module::from_wgsl(source).unwrap().kernel("main", &BTreeMap::new()).unwrap();
    let kernel = Kernel { takes_schedule: schedule != Schedule::Ascending, ..kernel };
    let (out, other, stop) = (GuestSlice::leak(4 * words), GuestSlice::leak(4 * words), AtomicU32::new(0));
    let args = DispatchArgs {
        buffers: &[out, other],
        push: &[0; MAX_PUSH_BYTES],
        images: &[],
        num_workgroups: [groups, 1, 1],
        stop: &stop,
    };
    let outcome = engine::dispatch_scheduled(&*(engine.prepare)(&kernel), &args, schedule, &mut Scratch::default());
    assert_eq!(outcome, Outcome::Done);
    (0..words as u64).map(|at| out.load_u32(4 * at)).collect()
}

/// What the author of a kernel that reads `distance` invocations back meant.
fn meant(words: u32, distance: u32) -> Vec<u32> {
    (0..words).map(|i| i.max(distance) - distance + 1).collect()
}

#[test]
fn a_missing_barrier_is_found_on_every_engine() {
    for engine in engine::engines() {
        for (source, groups) in [(BETWEEN_SUBGROUPS, 1), (IN_REGIONS, 1), (BETWEEN_WORKGROUPS, 4)] {
            let meant = meant(64, 16);
            let is_right = |schedule| run(&engine, source, schedule, groups, 64) == meant;
            assert!(is_right(Schedule::Ascending), "{}: {source}", engine.name);
            assert!(!is_right(Schedule::Reverse), "{}: {source}", engine.name);
            assert!((0..4).any(|seed| !is_right(Schedule::Random(seed))), "{}: {source}", engine.name);
        }
    }
}

/// The limit of machine code: it runs the lanes of a subgroup in lockstep.
#[test]
fn a_barrier_that_is_missing_between_lanes_is_found_by_the_interpreter() {
    for engine in engine::engines() {
        let is_right = |schedule| run(&engine, BETWEEN_LANES, schedule, 1, 16) == meant(16, 1);
        let runs_lanes_in_lockstep = engine.is_compiled() && !engine.name.ends_with("held to its ranges");
        assert!(is_right(Schedule::Ascending), "{}", engine.name);
        assert_eq!(is_right(Schedule::Reverse), runs_lanes_in_lockstep, "{}", engine.name);
    }
}

#[test]
fn atomics_follow_the_order_of_workgroups_subgroups_and_lanes() {
    let engines = engine::engines();
    for engine in &engines {
        let descending: Vec<u32> = (0..96).map(|at| 191 - 2 * at).collect();
        assert_eq!(run(engine, APPENDED, Schedule::Reverse, 3, 96), descending, "{}", engine.name);
        let ascending: Vec<u32> = (0..96).map(|at| 2 * at + 1).collect();
        assert_eq!(run(engine, APPENDED, Schedule::Ascending, 3, 96), ascending, "{}", engine.name);
        for (source, words) in [(APPENDED, 96), (CHAINED, 120)] {
            for seed in 0..4 {
                let of = |engine| run(engine, source, Schedule::Random(seed), 3, words);
                assert_eq!(of(engine), of(&engines[0]), "{}, seed {seed}: {source}", engine.name);
                assert_ne!(of(engine), ascending, "seed {seed}");
            }
        }
    }
}
