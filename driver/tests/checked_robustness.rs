//! Checked mode under strain: many threads, programs that never wait, a device that is lost, very many command buffers.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

use common::checked::{WAW, device, options, rules};
use common::{Kernel, STORAGE, Words, recorded};
use spelter_driver::check::{CheckOptions, CheckResults, Finding};
use spelter_driver::vk::{self, AccessFlags as A, CommandBufferUsageFlags as Flags, PipelineStageFlags as S};
use spelter_driver::{
    Chunk, CommandBuffer, CommandId, Device, DeviceMemory, DeviceOptions, Error, MemoryBarrier, Observer,
    SemaphoreSubmit, SubmissionId, SubmitInfo,
};

/// The size of the process in memory, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[cfg(not(target_os = "linux"))]
fn resident() -> u64 {
    0
}

fn transfer_barrier(command: &CommandBuffer) {
    let memory = [MemoryBarrier { src_access: A::TRANSFER_WRITE, dst_access: A::TRANSFER_WRITE }];
    command.pipeline_barrier(S::TRANSFER, S::TRANSFER, &memory, &[]).unwrap();
}

/// Each thread works on memory of its own, and on memory of all of them by atomics.
#[test]
fn many_threads_record_and_submit() {
    const THREADS: usize = 64;
    const ROUNDS: u32 = 8;
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> sum: atomic<u32>;
        @group(0) @binding(1) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(16) fn main(@builtin(local_invocation_index) i: u32) {
            atomicAdd(&sum, 1u);
            words[i] += 1u;
        }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1), (STORAGE, 1)], 0);
    let sum = Words::zeros(&device, 1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, kernel, sum) = (&device, &kernel, &sum);
            scope.spawn(move || {
                let words = Words::zeros(device, 16);
                let set = kernel.set(device, STORAGE, &[sum, &words]);
                let queue = &device.queues()[thread % 2];
                for _ in 0..ROUNDS {
                    let command = recorded(device, Flags::ONE_TIME_SUBMIT, |command| {
                        command.bind_pipeline(&kernel.pipeline).unwrap();
                        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
                        command.dispatch(1, 1, 1).unwrap();
                        let memory = [MemoryBarrier { src_access: A::SHADER_WRITE, dst_access: A::HOST_READ }];
                        command.pipeline_barrier(S::COMPUTE_SHADER, S::HOST, &memory, &[]).unwrap();
                    });
                    let fence = device.create_fence(false);
                    queue.submit(&[&command], Some(&fence)).unwrap();
                    assert!(fence.wait(None).unwrap());
                }
                assert_eq!(words.read(), [ROUNDS; 16]);
            });
        }
    });
    device.queues().iter().for_each(|queue| queue.wait_idle().unwrap());
    assert_eq!(device.take_findings(), []);
    let stats = device.check_stats();
    assert_eq!((stats.dispatches, stats.commands_forgotten), (THREADS as u64 * u64::from(ROUNDS), 0));
    assert_eq!(sum.read(), [THREADS as u32 * ROUNDS * 16]);
}

/// The threads share a buffer, and none waits for another.
#[test]
fn races_of_many_threads_are_found() {
    let device = device();
    let words = Words::zeros(&device, 16);
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (device, words) = (&device, &words);
            scope.spawn(move || {
                for _ in 0..4 {
                    let command = recorded(device, Flags::ONE_TIME_SUBMIT, |command| {
                        command.fill_buffer(&words.buffer, 0, vk::WHOLE_SIZE, thread).unwrap();
                    });
                    device.queues()[thread as usize % 2].submit(&[&command], None).unwrap();
                }
            });
        }
    });
    device.queues().iter().for_each(|queue| queue.wait_idle().unwrap());
    let found = device.take_findings();
    assert_eq!(rules(&found), [WAW; 2], "of one queue, and of two");
    // Of 256 fills each but the first races with the one before it, unless a thread saw that one end.
    let count: u64 = found.iter().map(|finding| finding.count).sum();
    assert!(count > 128, "{count}");
}

#[test]
fn a_program_that_never_waits_is_checked_until_its_device_is_dropped() {
    let device = device();
    let words = Words::zeros(&device, 16);
    for round in 0..2000 {
        let command = recorded(&device, Flags::ONE_TIME_SUBMIT, |command| {
            transfer_barrier(command);
            command.fill_buffer(&words.buffer, 0, vk::WHOLE_SIZE, round).unwrap();
        });
        device.queue().submit(&[&command], None).unwrap();
    }
    // What has run by now is right: barriers order submissions of one queue.
    assert_eq!(device.take_findings(), []);
    drop((words, device));
}

#[test]
fn findings_outlive_the_loss_of_the_device() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(200), ..options() }).unwrap();
    let words = Words::zeros(&device, 16);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn forever() { while atomicLoad(&words[1]) != 77u {} }";
    let kernel = Kernel::named(&device, wgsl, "forever", &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let command = recorded(&device, Flags::empty(), |command| {
        command.fill_buffer(&words.buffer, 0, 16, 1).unwrap();
        command.fill_buffer(&words.buffer, 8, 16, 2).unwrap();
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let fence = device.create_fence(false);
    let submitted = device.queue().submit(&[&command], Some(&fence));
    assert!(matches!(submitted, Ok(_) | Err(Error::DeviceLost(_))), "{submitted:?}");
    assert!(matches!(fence.wait(None), Err(Error::DeviceLost(_))));
    assert!(device.is_lost());
    let found = device.take_findings();
    assert!(rules(&found).contains(&WAW), "{found:#?}");
    // The host may go on to use the memory, and the API.
    let _ = words.read();
    assert!(matches!(device.queue().submit(&[&command], None), Err(Error::DeviceLost(_))));
    let _ = device.take_findings();
}

/// The host waits now and then: nothing is forgotten, and memory does not grow.
#[test]
fn a_hundred_thousand_command_buffers_need_bounded_memory() {
    const COMMANDS: u32 = 100_000;
    let device = device();
    let words = Words::zeros(&device, 1024);
    let pool = device.create_command_pool();
    let run = |number: u32| {
        let command = pool.allocate();
        command.begin(Flags::ONE_TIME_SUBMIT).unwrap();
        transfer_barrier(&command);
        command.fill_buffer(&words.buffer, u64::from(number % 512) * 8, 8, number).unwrap();
        command.end().unwrap();
        device.queue().submit(&[&command], None).unwrap();
        if number % 1000 == 999 {
            device.queue().wait_idle().unwrap();
        }
    };
    (0..COMMANDS / 10).for_each(run);
    // Other tests of this process need memory for a while, too: one of three rounds is free of that.
    let mut rounds = (1..=3).map(|round| {
        let before = resident();
        (COMMANDS / 10..COMMANDS).for_each(run);
        (round, resident().saturating_sub(before))
    });
    let grown = rounds.find(|(round, grown)| *grown < 64 << 20 || *round == 3);
    device.queue().wait_idle().unwrap();
    assert_eq!(device.take_findings(), []);
    assert_eq!(device.check_stats().commands_forgotten, 0);
    let grown = grown.unwrap().1;
    assert!(grown < 64 << 20, "{grown} bytes since a tenth of the command buffers");
}

/// The host waits for each submission while the next one is on its way, and may read all: with a limit of some hundred
/// accesses, nothing that can still race is forgotten. Without barriers to the host its reads can race, and are.
#[test]
fn accesses_that_were_waited_for_are_dropped_while_others_run() {
    const SUBMISSIONS: u64 = 2000;
    let forgotten = |to_host: A| {
        let check = CheckOptions { memory: 1 << 20, log_accesses: 64, ..CheckOptions::default() };
        let device = Device::new(DeviceOptions { check: Some(check), ..options() }).unwrap();
        let words = Words::zeros(&device, SUBMISSIONS as usize);
        let mut last = None;
        for number in 0..SUBMISSIONS {
            let command = recorded(&device, Flags::ONE_TIME_SUBMIT, |command| {
                command.fill_buffer(&words.buffer, 4 * number, 4, number as u32).unwrap();
                let memory = [MemoryBarrier { src_access: A::TRANSFER_WRITE, dst_access: to_host }];
                command.pipeline_barrier(S::TRANSFER, S::HOST, &memory, &[]).unwrap();
            });
            let fence = device.create_fence(false);
            device.queue().submit(&[&command], Some(&fence)).unwrap();
            if let Some((fence, _)) = last.replace((fence, command)) {
                assert!(fence.wait(None).unwrap());
            }
        }
        device.queue().wait_idle().unwrap();
        assert_eq!(device.take_findings(), []);
        device.check_stats().commands_forgotten
    };
    assert_eq!(forgotten(A::HOST_READ), 0);
    assert!(forgotten(A::empty()) > 0);
}

/// Of a semaphore only the last signals are kept. A later signal stands for one that was forgotten, which is counted.
#[test]
fn a_wait_for_a_signal_that_was_forgotten_is_counted() {
    let device = device();
    let queues = device.queues();
    let words = Words::zeros(&device, 16);
    let fill = || recorded(&device, Flags::empty(), |command| command.fill_buffer(&words.buffer, 0, 64, 1).unwrap());
    let done = device.create_timeline_semaphore(0);
    let commands = [fill(), fill()];
    for value in 1..=8300 {
        let signals = [SemaphoreSubmit::new(&done, value)];
        let first = [&commands[0]];
        let commands = if value == 1 { &first[..] } else { &[] };
        queues[0].submit_all(&[SubmitInfo { waits: &[], commands, signals: &signals }], None).unwrap();
    }
    queues[0].wait_idle().unwrap();
    let wait = |value| {
        let waits = [SemaphoreSubmit::new(&done, value)];
        queues[1].submit_all(&[SubmitInfo { waits: &waits, commands: &[&commands[1]], signals: &[] }], None).unwrap();
        queues[1].wait_idle().unwrap();
        assert_eq!(device.take_findings(), [], "the program is right");
        device.check_stats()
    };
    assert_eq!(wait(8300).signals_forgotten, 0);
    let stats = wait(1);
    assert_eq!((stats.signals_forgotten, stats.is_partial()), (1, true));
}

/// The host never waits, and no command is ordered: what is kept has a limit, and what is forgotten is counted.
#[test]
fn commands_that_nothing_waits_for_are_forgotten_above_the_limit() {
    let options =
        DeviceOptions { check: Some(CheckOptions { memory: 1 << 20, ..CheckOptions::default() }), ..options() };
    let device = Device::new(options).unwrap();
    let words = Words::zeros(&device, 1 << 18);
    let pool = device.create_command_pool();
    for number in 0..200u64 {
        let command = pool.allocate();
        command.begin(Flags::ONE_TIME_SUBMIT).unwrap();
        for part in 0..256 {
            command.fill_buffer(&words.buffer, (part * 1024 + number * 4) % (1 << 20), 4, 1).unwrap();
        }
        command.end().unwrap();
        device.queue().submit(&[&command], None).unwrap();
    }
    device.queue().wait_idle().unwrap();
    assert!(device.check_stats().commands_forgotten > 0, "{:?}", device.check_stats());
}

/// What a dispatch may write is copied before it, as far as it was ever written: the copy of a large buffer of which a
/// dispatch uses some words is small, whatever the limit is, and a race in it is an error.
#[test]
fn a_large_buffer_of_which_little_is_used_is_not_copied() {
    const WORDS: u64 = 3 << 28;
    let device = Device::new(DeviceOptions { heap_size: 6 << 30, ..options() }).unwrap();
    let source = "
        @group(0) @binding(0) var<storage, read_write> o: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            o[id.x * 1024u] += 1u;
            o[7] = id.x;
        }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let buffer = device.create_buffer(WORDS * 4, common::ANY_USE).unwrap();
    let memory = device.allocate_memory(buffer.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    let words = Words { buffer, memory };
    words.memory.write(4096, &5u32.to_le_bytes()).unwrap();
    let set = kernel.set(&device, STORAGE, &[&words]);
    #[cfg(target_os = "linux")]
    let before = resident();
    common::run(&device, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(16, 1, 1).unwrap();
    });
    let found = device.take_findings();
    assert_eq!(rules(&found), [WAW]);
    assert_eq!(found[0].severity, spelter_driver::check::Severity::Error);
    let stats = device.check_stats();
    // Sixteen pages are written, of which one held something.
    assert!(stats.largest_copy <= 3 * 16 * 4096, "{stats:?}");
    #[cfg(target_os = "linux")]
    {
        let grown = resident().saturating_sub(before);
        assert!(grown < 256 << 20, "{grown} bytes");
    }
    let word = |at: u64| {
        let mut bytes = [0; 4];
        words.memory.read(4 * at, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    assert_eq!([word(0), word(1024), word(15 * 1024), word(7), word(16 * 1024)], [1, 6, 1, 15, 0]);
}

/// The kernel of one thread never ends, while others record and submit: each of them gets the error, none hangs, and
/// what was found until then stays.
#[test]
fn findings_outlive_the_loss_of_a_device_that_many_threads_use() {
    const THREADS: usize = 16;
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(200), ..options() }).unwrap();
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn forever() { while atomicLoad(&words[1]) != 77u {} }";
    let kernel = Kernel::named(&device, wgsl, "forever", &[(STORAGE, 1)], 0);
    let awaited = Words::zeros(&device, 4);
    let set = kernel.set(&device, STORAGE, &[&awaited]);
    let started = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, started) = (&device, &started);
            scope.spawn(move || {
                let words = Words::zeros(device, 16);
                let queue = &device.queues()[thread % 2];
                let submit = || {
                    // Two fills of the same bytes race.
                    let command = recorded(device, Flags::ONE_TIME_SUBMIT, |command| {
                        command.fill_buffer(&words.buffer, 0, 16, 1).unwrap();
                        command.fill_buffer(&words.buffer, 8, 16, 2).unwrap();
                    });
                    let fence = device.create_fence(false);
                    queue.submit(&[&command], Some(&fence))?;
                    fence.wait(None).map(|_| ())
                };
                submit().unwrap();
                started.wait();
                let error = loop {
                    if let Err(error) = submit() {
                        break error;
                    }
                };
                assert!(matches!(error, Error::DeviceLost(_)), "{error:?}");
            });
        }
        started.wait();
        let command = recorded(&device, Flags::empty(), |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        let submitted = device.queue().submit(&[&command], None);
        assert!(matches!(submitted, Ok(_) | Err(Error::DeviceLost(_))), "{submitted:?}");
    });
    assert!(device.is_lost());
    let found = device.take_findings();
    assert!(rules(&found).contains(&WAW), "{found:#?}");
}

/// A device whose known races are counted.
fn counting_device() -> Device {
    let check = CheckOptions { count_known: true, ..CheckOptions::default() };
    Device::new(DeviceOptions { check: Some(check), ..options() }).unwrap()
}

/// A program that takes what was found after each dispatch and merges it, as the Vulkan driver does, gets the same
/// findings again without a repetition of each dispatch.
#[test]
fn what_the_program_has_taken_stays_known() {
    let device = counting_device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> o: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) { o[7] = id.x; }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let words = Words::zeros(&device, 16);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let dispatch = || {
        common::run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(4, 1, 1).unwrap();
        });
        // Each is of another command buffer.
        device.take_findings().into_iter().map(|finding| Finding { dispatch: None, ..finding }).collect::<Vec<_>>()
    };
    let first = dispatch();
    assert_eq!(rules(&first), [WAW]);
    assert!(!first[0].repairs.is_empty(), "{first:#?}");
    for _ in 1..20 {
        assert_eq!(dispatch(), first);
    }
    let stats = device.check_stats();
    // The first one shows something new, and four others show nothing new; then the second, fourth and eighth run
    // again. Each has two suspicions: of the first workgroup's write, and of several ones'.
    assert_eq!((stats.dispatches, stats.confirmed, stats.dispatches_repeated), (20, 40, 8));
}

/// The detector suspects the same in each dispatch, while the earlier access is that of another line from the seventh
/// one on.
#[test]
fn a_race_of_another_line_is_found_among_known_ones() {
    let device = counting_device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> o: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            if id.x != 0u { o[16] = o[8]; return; }
            let mode = o[0];
            if mode < 6u {
                o[8] = 1u;
            } else {
                o[8] = 2u;
            }
            o[0] = mode + 1u;
        }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let words = Words::zeros(&device, 128);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let mut lines = std::collections::BTreeSet::new();
    for _ in 0..12 {
        common::run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(2, 1, 1).unwrap();
        });
        let place = |finding: Finding| finding.first.and_then(|first| first.line).map(|line| line.line);
        lines.extend(device.take_findings().into_iter().filter_map(place));
    }
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), [7, 9]);
}

/// What a program takes is of the dispatches since it took the last ones: of the same suspicion, another dispatch may
/// have another race.
#[test]
fn what_is_taken_raced_in_the_dispatches_since_then() {
    let device = device();
    let source = "
        @group(0) @binding(0) var<storage, read_write> o: array<u32>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
            if id.x != 0u { o[16] = o[8]; return; }
            let mode = o[0];
            if mode % 2u == 0u {
                o[8] = 1u;
            } else {
                o[8] = 2u;
            }
            o[0] = mode + 1u;
        }";
    let kernel = Kernel::new(&device, source, &[(STORAGE, 1)], 0);
    let words = Words::zeros(&device, 128);
    let set = kernel.set(&device, STORAGE, &[&words]);
    for mode in 0..12 {
        common::run(&device, |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(2, 1, 1).unwrap();
        });
        let place = |finding: Finding| finding.first.and_then(|first| first.line).map(|line| line.line);
        let lines: Vec<_> = device.take_findings().into_iter().filter_map(place).collect();
        assert_eq!(lines, [if mode % 2 == 0 { 7 } else { 9 }], "dispatch {mode}");
    }
}

/// An observer may have the results of the device that it observes, as that of the Vulkan driver has.
#[test]
fn an_observer_with_results_ends_with_its_device() {
    #[derive(Debug, Default)]
    struct WithResults(OnceLock<CheckResults>);

    impl Observer for WithResults {
        fn worked(&self, _: &Chunk<'_>) {}

        fn ran(&self, _: SubmissionId, _: bool, _: Instant, _: Instant) {}
    }

    let observer = Arc::new(WithResults::default());
    let device = Device::with_observer(options(), Arc::clone(&observer) as Arc<dyn Observer>).unwrap();
    observer.0.set(device.check_results().unwrap()).unwrap();
    let ended = Arc::downgrade(&observer);
    drop((device, observer));
    assert!(ended.upgrade().is_none());
}

/// An access of the host is compared with those of commands, also while an observer is informed of a race.
#[test]
fn an_observer_of_a_missing_dependency_may_read_memory() {
    #[derive(Debug, Default)]
    struct Reads {
        memory: Mutex<Option<DeviceMemory>>,
        missing: Mutex<Vec<String>>,
    }

    impl Observer for Reads {
        fn worked(&self, _: &Chunk<'_>) {}

        fn ran(&self, _: SubmissionId, _: bool, _: Instant, _: Instant) {}

        fn misses(&self, earlier: CommandId, later: CommandId, rule: &str) {
            let memory = self.memory.lock().unwrap().clone().unwrap();
            memory.read(0, &mut [0; 4]).unwrap();
            assert!(earlier < later);
            self.missing.lock().unwrap().push(rule.to_owned());
        }
    }

    let observer = Arc::new(Reads::default());
    let device = Device::with_observer(options(), Arc::clone(&observer) as Arc<dyn Observer>).unwrap();
    let words = Words::zeros(&device, 16);
    *observer.memory.lock().unwrap() = Some(words.memory.clone());
    common::run(&device, |command| {
        (1..=2).for_each(|word| command.fill_buffer(&words.buffer, 0, vk::WHOLE_SIZE, word).unwrap());
    });
    // The memory has a handle of the device, which has the observer.
    *observer.memory.lock().unwrap() = None;
    assert_eq!(*observer.missing.lock().unwrap(), [WAW.to_string()]);
    assert!(rules(&device.take_findings()).contains(&WAW));
}
