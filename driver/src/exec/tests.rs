//! Tests of the executor through its interface, with kernels written in Rust.

#![cfg(not(loom))]

mod loss;
mod visit;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES, MAX_WORKGROUPS, Outcome};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::guest::GuestSlice;

use super::*;
use crate::error::DeviceError;
use crate::memory::{Allocation, Heap};
use crate::sync::FenceState;

/// A kernel that is a closure, and the maximum number of steps of a workgroup, if known.
struct Kernel<F>(F, Option<u64>);

impl<F> fmt::Debug for Kernel<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kernel")
    }
}

impl<F: Fn(&DispatchArgs<'_>, [u32; 3]) -> Outcome + Send + Sync> Code for Kernel<F> {
    fn run_all(&self, args: &DispatchArgs<'_>, mut workgroups: Workgroups, _: &mut Scratch) -> Outcome {
        workgroups.find_map(|at| Some(self.0(args, at)).filter(|&end| end != Outcome::Done)).unwrap_or(Outcome::Done)
    }

    fn max_steps(&self) -> Option<u64> {
        self.1
    }
}

fn kernel(run: impl Fn(&DispatchArgs<'_>, [u32; 3]) + Send + Sync + 'static) -> Arc<dyn Code> {
    bounded(None, run)
}

fn bounded(max_steps: Option<u64>, run: impl Fn(&DispatchArgs<'_>, [u32; 3]) + Send + Sync + 'static) -> Arc<dyn Code> {
    let run = move |args: &DispatchArgs<'_>, at| {
        run(args, at);
        Outcome::Done
    };
    Arc::new(Kernel(run, max_steps))
}

/// A kernel that runs until it is stopped.
fn endless() -> Arc<dyn Code> {
    let run = |args: &DispatchArgs<'_>, _| {
        while args.stop.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        Outcome::Stopped
    };
    Arc::new(Kernel(run, None))
}

fn dispatch(name: &str, code: &Arc<dyn Code>, buffers: &[GuestSlice], groups: Groups) -> Work {
    let state = DispatchState {
        name: name.into(),
        pipeline_name: None,
        module_name: None,
        code: Arc::clone(code),
        pipeline: 0,
        source: None,
        images: Arc::default(),
        late: None,
        buffers: buffers.into(),
        addresses: None,
        push: Arc::new([0; MAX_PUSH_BYTES]),
    };
    Work::Dispatch(DispatchWork { state: Arc::new(state), base: [0; 3], groups, condition: None })
}

fn one(name: &str, code: &Arc<dyn Code>) -> Work {
    dispatch(name, code, &[], Groups::Direct([1; 3]))
}

fn executor(workers: usize) -> Arc<Executor> {
    limited(workers, 60_000)
}

/// An executor whose commands may run for this many milliseconds.
fn limited(workers: usize, milliseconds: u64) -> Arc<Executor> {
    let time_limit = TimeLimit { limit: Duration::from_millis(milliseconds), set_by: "the test" };
    Executor::new(ExecutorOptions { workers, time_limit, schedule: Schedule::Ascending })
}

fn batch(executor: &Executor, phases: Vec<Vec<Work>>) -> (Batch, Arc<FenceState>) {
    let fence = Arc::new(FenceState::new(false, executor.loss()));
    let recordings = vec![Arc::new(Recording { phases: phases.into_iter().collect(), ..Recording::default() })];
    (Batch { recordings, fence: Some(Arc::clone(&fence)), ..Batch::default() }, fence)
}

fn memory(bytes: u64) -> Arc<Allocation> {
    Heap::new(bytes).unwrap().allocate(bytes).unwrap()
}

/// Adds 1 to the word at the workgroup's index.
fn count_up() -> Arc<dyn Code> {
    kernel(|args, [x, y, z]| {
        let [nx, ny, _] = args.num_workgroups.map(u64::from);
        let at = (u64::from(z) * ny + u64::from(y)) * nx + u64::from(x);
        args.buffers[0].atomic_u32(at * 4).unwrap().fetch_add(1, SeqCst);
    })
}

fn words(slice: GuestSlice) -> Vec<u32> {
    (0..slice.len() / 4).map(|i| slice.load_u32(i * 4)).collect()
}

#[test]
fn every_workgroup_runs_once_whatever_the_workers() {
    let code = count_up();
    for workers in [1, 2, 3, 8] {
        let executor = executor(workers);
        let queue = executor.queue();
        let memory = memory(4 * 30 * 20 * 10);
        for round in 1..=20 {
            let work = || dispatch("count", &code, &[memory.slice()], Groups::Direct([30, 20, 10]));
            let (batch, fence) = batch(&executor, vec![vec![work()], vec![work()]]);
            queue.submit(batch).unwrap();
            assert!(fence.wait(None).unwrap());
            assert!(words(memory.slice()).iter().all(|&word| word == round * 2));
        }
    }
}

#[test]
fn phases_do_not_overlap() {
    let executor = executor(4);
    let queue = executor.queue();
    let memory = memory(4);
    let phases = 200;
    let code = kernel(move |args, _| {
        // Sees all workgroups of earlier phases, and none of later ones.
        let before = args.buffers[0].atomic_u32(0).unwrap().fetch_add(1, SeqCst);
        let phase = args.buffers.len() as u32 - 1;
        assert_eq!(before / 50, phase);
    });
    let phase = |i: usize| {
        let mut buffers = vec![memory.slice()];
        buffers.resize(i + 1, GuestSlice::EMPTY);
        vec![dispatch("check", &code, &buffers, Groups::Direct([25, 2, 1]))]
    };
    let (batch, fence) = batch(&executor, (0..phases).map(phase).collect());
    queue.submit(batch).unwrap();
    assert_eq!(fence.wait(None), Ok(true));
    assert_eq!(memory.slice().load_u32(0), phases as u32 * 50);
}

#[test]
fn batches_of_a_queue_run_in_order_and_queues_beside_each_other() {
    let executor = executor(2);
    let memory = memory(64 << 10);
    std::thread::scope(|scope| {
        for q in 0..4 {
            let (executor, slice) = (&executor, memory.slice().slice(q * 1024, 4));
            scope.spawn(move || {
                let queue = executor.queue();
                for i in 0..500 {
                    let code = kernel(move |args, _| {
                        let word = args.buffers[0].atomic_u32(0).unwrap();
                        assert_eq!(word.swap(i + 1, SeqCst), i);
                    });
                    let (batch, fence) =
                        batch(executor, vec![vec![dispatch("next", &code, &[slice], Groups::Direct([1; 3]))]]);
                    assert_eq!(queue.submit(batch).unwrap(), u64::from(i) + 1);
                    if i % 7 == 0 {
                        assert_eq!(fence.wait(None), Ok(true));
                    } else if i % 7 == 1 {
                        assert_eq!(fence.wait(Some(Duration::MAX)), Ok(true));
                    } else if i % 7 == 2 {
                        queue.wait_idle().unwrap();
                        assert!(fence.is_signaled());
                    }
                }
                queue.wait_idle().unwrap();
                assert_eq!(queue.retired(), 500);
                assert_eq!(slice.load_u32(0), 500);
            });
        }
    });
}

#[test]
fn copies_fills_and_updates_move_every_byte() {
    let executor = executor(3);
    let queue = executor.queue();
    let size = 5 * (256 << 10) + 12;
    let (a, b) = (memory(size), memory(size));
    let bytes: Arc<[u8]> = (0..200).collect();
    let phases = vec![
        vec![Work::Fill { to: a.slice(), word: 0x0102_0304 }],
        vec![Work::Update { to: a.slice().slice(100, 1000), bytes: Arc::clone(&bytes) }],
        vec![Work::Copy { from: a.slice(), to: b.slice() }],
    ];
    let (batch, fence) = batch(&executor, phases);
    queue.submit(batch).unwrap();
    assert_eq!(fence.wait(None), Ok(true));
    let mut expect: Vec<u8> = [4, 3, 2, 1].repeat(size as usize / 4);
    expect[100..300].copy_from_slice(&bytes);
    let mut got = vec![0; size as usize];
    b.slice().read(0, &mut got);
    assert!(got == expect);
}

#[test]
fn indirect_sizes_are_read_when_the_phase_starts() {
    let executor = executor(2);
    let queue = executor.queue();
    let (sizes, counts) = (memory(12), memory(4 * 24));
    let code = count_up();
    let indirect = || vec![dispatch("indirect", &code, &[counts.slice()], Groups::Indirect(sizes.slice()))];
    let update = |groups: [u32; 3]| {
        let bytes = groups.iter().flat_map(|word| word.to_le_bytes()).collect();
        vec![Work::Update { to: sizes.slice(), bytes }]
    };
    let too_many = [MAX_WORKGROUPS + 1, 1, 1];
    let phases =
        vec![indirect(), update([2, 3, 4]), indirect(), update(too_many), indirect(), update([5, 0, 5]), indirect()];
    let (batch, fence) = batch(&executor, phases);
    queue.submit(batch).unwrap();
    assert_eq!(fence.wait(None), Ok(true));
    assert_eq!(words(counts.slice()), [1; 24]);
}

#[test]
fn a_base_is_added_to_the_workgroup() {
    let executor = executor(1);
    let queue = executor.queue();
    let memory = memory(12);
    let code = kernel(|args, at| (0..3).for_each(|i| args.buffers[0].store_u32(i * 4, at[i as usize])));
    let mut work = dispatch("base", &code, &[memory.slice()], Groups::Direct([1; 3]));
    if let Work::Dispatch(dispatch) = &mut work {
        dispatch.base = [7, 8, 9];
    }
    let (batch, fence) = batch(&executor, vec![vec![work]]);
    queue.submit(batch).unwrap();
    fence.wait(None).unwrap();
    assert_eq!(words(memory.slice()), [7, 8, 9]);
}

#[test]
fn a_timeout_is_kept_while_a_kernel_runs() {
    let executor = executor(1);
    let queue = executor.queue();
    let go = Arc::new(AtomicBool::new(false));
    let wait = Arc::clone(&go);
    let code = kernel(move |_, _| {
        while !wait.load(SeqCst) {
            std::thread::yield_now();
        }
    });
    let (batch, fence) = batch(&executor, vec![vec![one("wait", &code)]]);
    queue.submit(batch).unwrap();
    assert_eq!(fence.wait(Some(Duration::ZERO)), Ok(false));
    assert_eq!(fence.wait(Some(Duration::from_millis(5))), Ok(false));
    assert_eq!(queue.retired(), 0);
    go.store(true, SeqCst);
    assert_eq!(fence.wait(Some(Duration::MAX)), Ok(true));
    assert_eq!(queue.retired(), 1);
}

#[test]
fn a_retired_batch_owns_nothing() {
    let executor = executor(2);
    let queue = executor.queue();
    let owned = Arc::new(0u8);
    let code = kernel(|_, _| ());
    for _ in 0..200 {
        let phases = [[dispatch("many", &code, &[], Groups::Direct([64, 1, 1]))]].into_iter().collect();
        let fence = Arc::new(FenceState::new(false, executor.loss()));
        let recording =
            Arc::new(Recording { phases, keep_alive: vec![Arc::clone(&owned) as _], ..Recording::default() });
        queue
            .submit(Batch { recordings: vec![recording], fence: Some(Arc::clone(&fence)), ..Batch::default() })
            .unwrap();
        fence.wait(None).unwrap();
        assert_eq!(Arc::strong_count(&owned), 1);
    }
}

#[test]
fn dropping_the_executor_waits_for_its_batches() {
    let done = Arc::new(AtomicUsize::new(0));
    let executor = executor(2);
    let queue = executor.queue();
    for _ in 0..5 {
        let done = Arc::clone(&done);
        let code = kernel(move |_, _| {
            std::thread::sleep(Duration::from_millis(2));
            done.fetch_add(1, SeqCst);
        });
        queue.submit(batch(&executor, vec![vec![one("slow", &code)]]).0).unwrap();
    }
    drop(executor);
    assert_eq!(done.load(SeqCst), 5);
    assert!(matches!(queue.submit(Batch::default()), Err(DeviceError::DeviceLost(_))));
}

#[test]
fn the_last_handle_may_drop_inside_a_batch() {
    for _ in 0..20 {
        let executor = executor(2);
        let queue = executor.queue();
        let fence = Arc::new(FenceState::new(false, executor.loss()));
        let slow = kernel(|_, _| std::thread::sleep(Duration::from_millis(1)));
        let recording = Recording {
            phases: [[dispatch("slow", &slow, &[], Groups::Direct([4, 1, 1]))]].into_iter().collect(),
            keep_alive: vec![executor as _],
            ..Recording::default()
        };
        queue
            .submit(Batch {
                recordings: vec![Arc::new(recording)],
                fence: Some(Arc::clone(&fence)),
                ..Batch::default()
            })
            .unwrap();
        drop(queue);
        assert_eq!(fence.wait(Some(Duration::MAX)), Ok(true));
    }
}

#[test]
fn two_workers_run_at_once_and_never_more() {
    let executor = executor(2);
    let (now, max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let code = kernel({
        let (now, max) = (Arc::clone(&now), Arc::clone(&max));
        move |_, _| {
            max.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            std::thread::sleep(Duration::from_micros(300));
            now.fetch_sub(1, SeqCst);
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let queue = executor.queue();
                for _ in 0..10 {
                    let groups = Groups::Direct([8, 1, 1]);
                    let (batch, fence) = batch(&executor, vec![vec![dispatch("count", &code, &[], groups)]]);
                    queue.submit(batch).unwrap();
                    fence.wait(None).unwrap();
                }
            });
        }
    });
    assert_eq!(max.load(SeqCst), 2);
}

#[test]
fn a_fence_is_used_again_after_a_reset() {
    let executor = executor(2);
    let queue = executor.queue();
    let fence = Arc::new(FenceState::new(true, executor.loss()));
    let runs = Arc::new(AtomicU64::new(0));
    let code = kernel({
        let runs = Arc::clone(&runs);
        move |_, _| {
            runs.fetch_add(1, SeqCst);
        }
    });
    let phases = [[one("again", &code)]].into_iter().collect();
    let recording = Arc::new(Recording { phases, ..Recording::default() });
    for i in 1..=1000 {
        assert!(fence.is_signaled());
        fence.reset();
        assert!(!fence.is_signaled());
        let batch =
            Batch { recordings: vec![Arc::clone(&recording)], fence: Some(Arc::clone(&fence)), ..Batch::default() };
        assert_eq!(queue.submit(batch), Ok(i));
        assert_eq!(fence.wait(None), Ok(true));
        assert_eq!(runs.load(SeqCst), i);
    }
}
