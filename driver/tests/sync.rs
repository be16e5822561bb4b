//! Semaphores and events, across queues and the host.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use crate::common::{COUNT, Kernel, STORAGE, Words, barrier, device, options, recorded};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{CommandBuffer, Device, DeviceOptions, Error, Fence, Semaphore, SemaphoreSubmit, SubmitInfo};

/// `words[at] = value`; may be submitted several times.
fn writes(device: &Device, words: &Words, at: u64, value: u32) -> CommandBuffer {
    recorded(device, Flags::SIMULTANEOUS_USE, |command| command.fill_buffer(&words.buffer, at * 4, 4, value).unwrap())
}

/// `words[to] = words[from]`.
fn copies(device: &Device, words: &Words, from: u64, to: u64) -> CommandBuffer {
    let region = spelter_driver::vk::BufferCopy { src_offset: from * 4, dst_offset: to * 4, size: 4 };
    recorded(device, Flags::SIMULTANEOUS_USE, |command| {
        command.copy_buffer(&words.buffer, &words.buffer, &[region]).unwrap();
    })
}

fn at(semaphore: &Semaphore, value: u64) -> SemaphoreSubmit<'_> {
    SemaphoreSubmit::new(semaphore, value)
}

#[test]
fn a_binary_semaphore_orders_two_queues_again_and_again() {
    let device = device();
    let [first, second] = &device.queues()[..] else { panic!("two queues") };
    let words = Words::zeros(&device, 2);
    let (there, back) = (device.create_semaphore(), device.create_semaphore());
    let copy = copies(&device, &words, 0, 1);
    for round in 1..=200 {
        let write = writes(&device, &words, 0, round);
        let waits = [at(&back, 0)];
        let waits = if round == 1 { &[][..] } else { &waits[..] };
        first.submit_all(&[SubmitInfo { waits, commands: &[&write], signals: &[at(&there, 0)] }], None).unwrap();
        let fence = device.create_fence(false);
        let copied = SubmitInfo { waits: &[at(&there, 0)], commands: &[&copy], signals: &[at(&back, 0)] };
        second.submit_all(&[copied], Some(&fence)).unwrap();
        if round % 50 == 0 {
            assert!(fence.wait(None).unwrap());
            assert_eq!(words.read(), [round, round]);
        }
    }
}

#[test]
fn a_timeline_may_be_waited_for_before_it_is_signalled() {
    let device = device();
    let [first, second] = &device.queues()[..] else { panic!("two queues") };
    let words = Words::zeros(&device, 4);
    let timeline = device.create_timeline_semaphore(5);
    let (a, b, c) = (copies(&device, &words, 0, 1), copies(&device, &words, 1, 2), copies(&device, &words, 2, 3));
    // In reverse order: the second queue is submitted first, and each step waits for one that is submitted later.
    let steps = [
        SubmitInfo { waits: &[at(&timeline, 7)], commands: &[&b], signals: &[at(&timeline, 8)] },
        SubmitInfo { waits: &[at(&timeline, 8)], commands: &[&c], signals: &[at(&timeline, 9)] },
    ];
    second.submit_all(&steps, None).unwrap();
    first
        .submit_all(&[SubmitInfo { waits: &[at(&timeline, 6)], commands: &[&a], signals: &[at(&timeline, 7)] }], None)
        .unwrap();
    assert!(!Semaphore::wait_all(&[(&timeline, 6)], Some(Duration::from_millis(5))).unwrap());
    assert_eq!((timeline.value().unwrap(), words.read()), (5, vec![0; 4]));
    let words = words.write(&[42, 0, 0, 0]);
    timeline.signal(6).unwrap();
    assert!(Semaphore::wait_all(&[(&timeline, 9)], None).unwrap());
    assert_eq!((timeline.value().unwrap(), words.read()), (9, vec![42; 4]));
}

#[test]
fn other_queues_work_while_one_waits_even_with_one_worker() {
    let device = Device::new(DeviceOptions { workers: 1, ..options() }).unwrap();
    let [first, second] = &device.queues()[..] else { panic!("two queues") };
    let words = Words::zeros(&device, 8);
    let timeline = device.create_timeline_semaphore(0);
    let copy = copies(&device, &words, 0, 1);
    let fence = device.create_fence(false);
    first.submit_all(&[SubmitInfo { waits: &[at(&timeline, 1)], commands: &[&copy], signals: &[] }], None).unwrap();
    first.submit(&[], Some(&fence)).unwrap();
    for value in 1..=100 {
        second.submit(&[&writes(&device, &words, 0, value)], None).unwrap();
    }
    second.wait_idle().unwrap();
    assert!(!fence.wait(Some(Duration::from_millis(1))).unwrap());
    assert_eq!(words.read()[..2], [100, 0]);
    timeline.signal(1).unwrap();
    first.wait_idle().unwrap();
    assert!(fence.is_signaled());
    assert_eq!(words.read()[..2], [100, 100]);
}

#[test]
fn the_host_waits_for_any_or_all_of_several_semaphores() {
    let device = device();
    let (a, b) = (device.create_timeline_semaphore(0), device.create_timeline_semaphore(0));
    let signals = [at(&b, 3)];
    device.queues()[1].submit_all(&[SubmitInfo { signals: &signals, ..SubmitInfo::default() }], None).unwrap();
    assert!(Semaphore::wait_any(&[(&a, 1), (&b, 3)], None).unwrap());
    assert!(!Semaphore::wait_all(&[(&a, 1), (&b, 3)], Some(Duration::ZERO)).unwrap());
    std::thread::scope(|scope| {
        let both = scope.spawn(|| Semaphore::wait_all(&[(&a, 1), (&b, 4)], Some(Duration::from_secs(600))));
        a.signal(1).unwrap();
        b.signal(4).unwrap();
        assert!(both.join().unwrap().unwrap());
    });
    let (never, soon) = (device.create_fence(false), device.create_fence(false));
    assert!(!Fence::wait_any(&[&never, &soon], Some(Duration::from_millis(1))).unwrap());
    std::thread::scope(|scope| {
        let any = scope.spawn(|| Fence::wait_any(&[&never, &soon], None));
        device.queue().submit(&[], Some(&soon)).unwrap();
        assert!(any.join().unwrap().unwrap());
    });
}

#[test]
fn a_lost_device_ends_suspended_queues_and_waiting_threads() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(50), ..options() }).unwrap();
    let [first, second] = &device.queues()[..] else { panic!("two queues") };
    let words = Words::zeros(&device, 1);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn forever() { while atomicLoad(&words[0]) == 0u {} }";
    let kernel = Kernel::named(&device, wgsl, "forever", &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let endless = recorded(&device, Flags::empty(), |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let (timeline, event, fence) =
        (device.create_timeline_semaphore(0), device.create_event(), device.create_fence(false));
    let waiting = recorded(&device, Flags::empty(), |command| command.wait_events(&[&event]).unwrap());
    let waits = [at(&timeline, 1)];
    first.submit_all(&[SubmitInfo { waits: &waits, commands: &[&waiting], signals: &[] }], Some(&fence)).unwrap();
    std::thread::scope(|scope| {
        let host = scope.spawn(|| Semaphore::wait_all(&[(&timeline, 1)], None));
        let idle = scope.spawn(|| first.wait_idle());
        // If the device is lost before the call returns, the call reports it.
        let _ = second.submit(&[&endless], None);
        assert!(matches!(fence.wait(None), Err(Error::DeviceLost(_))));
        assert!(matches!(host.join().unwrap(), Err(Error::DeviceLost(_))));
        assert!(matches!(idle.join().unwrap(), Err(Error::DeviceLost(_))));
    });
}

#[test]
fn events_let_a_command_buffer_wait_for_the_host_and_for_itself() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let (host, own) = (device.create_event(), device.create_event());
    let command = recorded(&device, Flags::SIMULTANEOUS_USE, |command| {
        let dispatch = || {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        };
        dispatch();
        command.set_event(&own).unwrap();
        command.wait_events(&[&own, &host]).unwrap();
        dispatch();
        command.reset_event(&own).unwrap();
        command.reset_event(&host).unwrap();
    });
    for round in 1..=3 {
        let fence = device.create_fence(false);
        device.queue().submit(&[&command], Some(&fence)).unwrap();
        assert!(!fence.wait(Some(Duration::from_millis(5))).unwrap());
        assert_eq!((words.read(), own.is_set()), (vec![round * 2 - 1; 4], true));
        host.set();
        assert!(fence.wait(None).unwrap());
        assert_eq!((words.read(), own.is_set(), host.is_set()), (vec![round * 2; 4], false, false));
    }
}

#[test]
fn a_failed_submission_leaves_its_semaphores_alone() {
    let device = device();
    let words = Words::zeros(&device, 1);
    let semaphore = device.create_semaphore();
    let (good, unrecorded) = (writes(&device, &words, 0, 1), device.create_command_pool().allocate());
    let submits = [
        SubmitInfo { waits: &[], commands: &[&good], signals: &[at(&semaphore, 0)] },
        SubmitInfo { waits: &[at(&semaphore, 0)], commands: &[&unrecorded], signals: &[] },
    ];
    assert!(matches!(device.queue().submit_all(&submits, None), Err(Error::Misuse(_))));
    device.queue().wait_idle().unwrap();
    assert_eq!(words.read(), [0], "nothing ran");
    let submits = [submits[0], SubmitInfo { commands: &[], ..submits[1] }];
    device.queue().submit_all(&submits, None).unwrap();
    device.queue().wait_idle().unwrap();
    assert_eq!(words.read(), [1]);
}

#[test]
fn threads_pass_a_token_through_many_queues() {
    let queues = 8;
    let device = Device::new(DeviceOptions { queues, ..options() }).unwrap();
    let words = Words::zeros(&device, 4);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let count = recorded(&device, Flags::SIMULTANEOUS_USE, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        barrier(command);
    });
    let (timeline, rounds) = (device.create_timeline_semaphore(0), 300);
    std::thread::scope(|scope| {
        for (number, queue) in (0u64..).zip(device.queues()) {
            let (timeline, count) = (&timeline, &count);
            scope.spawn(move || {
                for round in 0..rounds {
                    let step = round * queues as u64 + number;
                    let (waits, signals) = ([at(timeline, step)], [at(timeline, step + 1)]);
                    let submit = SubmitInfo { waits: &waits, commands: &[count], signals: &signals };
                    queue.submit_all(&[submit], None).unwrap();
                }
            });
        }
    });
    let all = rounds * queues as u64;
    assert!(Semaphore::wait_all(&[(&timeline, all)], None).unwrap());
    assert_eq!(words.read(), [all as u32; 4]);
}
