//! Submission and waiting: fences, several queues and threads, reused command buffers, handles dropped early.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use crate::common::{COUNT, Kernel, STORAGE, Words, barrier, device, options, recorded, run};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{Binding, CommandBuffer, DescriptorSetLayoutInfo, Device, DeviceOptions, Error, Specialization};

/// Records `dispatches` that add 1 to each of four words, one after the other.
fn counting(device: &Device, words: &Words, flags: Flags, dispatches: usize) -> CommandBuffer {
    let kernel = Kernel::new(device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(device, STORAGE, &[words]);
    recorded(device, flags, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        for _ in 0..dispatches {
            command.dispatch(1, 1, 1).unwrap();
            barrier(command);
        }
    })
}

#[test]
fn a_fence_is_signalled_by_its_submission() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let command = counting(&device, &words, Flags::empty(), 3);
    let fence = device.create_fence(false);
    assert!(!fence.is_signaled());
    assert!(!fence.wait(Some(Duration::from_millis(1))).unwrap());
    for round in 1..=3 {
        device.queue().submit(&[&command], Some(&fence)).unwrap();
        assert!(fence.wait(None).unwrap());
        assert!(fence.is_signaled());
        assert_eq!(words.read(), [3 * round; 4]);
        fence.reset().unwrap();
        assert!(!fence.is_signaled());
    }
    assert!(device.create_fence(true).wait(None).unwrap());
}

#[test]
fn a_fence_without_commands_waits_for_earlier_submissions() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let command = counting(&device, &words, Flags::empty(), 300);
    let fence = device.create_fence(false);
    let first = device.queue().submit(&[&command], None).unwrap();
    let second = device.queue().submit(&[], Some(&fence)).unwrap();
    assert_eq!(second, first + 1);
    assert!(fence.wait(None).unwrap());
    assert_eq!(words.read(), [300; 4]);
    assert!(device.queue().retired() >= first);
}

#[test]
fn threads_submit_to_two_queues() {
    let device = device();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let device = device.clone();
            std::thread::spawn(move || {
                let words = Words::zeros(&device, 4);
                let command = counting(&device, &words, Flags::SIMULTANEOUS_USE, 5);
                let queue = device.queues()[index % 2].clone();
                let fence = device.create_fence(false);
                for _ in 0..20 {
                    queue.submit(&[&command, &command], None).unwrap();
                }
                queue.submit(&[&command], Some(&fence)).unwrap();
                assert!(fence.wait(None).unwrap());
                words.read()
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), [205; 4]);
    }
}

#[test]
fn a_command_buffer_is_recorded_again() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let command = device.create_command_pool().allocate();
    for value in 1..=3 {
        // The command buffer is initial in the first iteration, executable in the second, and reset in the third.
        command.begin(Flags::empty()).unwrap();
        command.fill_buffer(&words.buffer, 0, 16, value).unwrap();
        command.end().unwrap();
        device.queue().submit(&[&command], None).unwrap();
        device.queue().wait_idle().unwrap();
        assert_eq!(words.read(), [value; 4]);
        if value == 2 {
            command.reset().unwrap();
        }
    }
}

#[test]
fn a_set_may_be_written_again_when_nothing_recorded_uses_it() {
    let device = device();
    let (a, b) = (Words::zeros(&device, 4), Words::zeros(&device, 4));
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&a]);
    let command = device.create_command_pool().allocate();
    for words in [&a, &b, &b] {
        set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
        command.begin(Flags::empty()).unwrap();
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        command.end().unwrap();
        device.queue().submit(&[&command], None).unwrap();
        device.queue().wait_idle().unwrap();
    }
    assert_eq!((a.read(), b.read()), (vec![1; 4], vec![2; 4]));
}

#[test]
fn a_dropped_set_returns_its_share_to_the_pool() {
    let device = device();
    let layout = device.create_descriptor_set_layout(&[Binding { binding: 0, ty: STORAGE, count: 2 }]).unwrap();
    let pool = device.create_descriptor_pool(3, &[(STORAGE, 5)]).unwrap();
    let first = pool.allocate(&layout).unwrap();
    let second = pool.allocate(&layout).unwrap();
    let third = pool.allocate(&layout);
    assert!(matches!(third, Err(Error::OutOfPoolMemory(_))), "one of 5 descriptors is left: {third:?}");
    drop(first.clone());
    assert!(pool.allocate(&layout).is_err());
    drop(first);
    let third = pool.allocate(&layout).unwrap();
    let empty = device.create_descriptor_set_layout(&[]).unwrap();
    let _fourth = pool.allocate(&empty).unwrap();
    assert!(matches!(pool.allocate(&empty), Err(Error::OutOfPoolMemory(_))), "three sets are allocated");
    drop((second, third));
}

#[test]
fn memory_is_exhausted_and_freed() {
    let device = Device::new(DeviceOptions { heap_size: 16 << 20, ..options() }).unwrap();
    let size = device.memory_heaps()[0].size;
    let half = device.allocate_memory(size / 2, 0).unwrap();
    assert_eq!(device.allocate_memory(size, 0).unwrap_err(), Error::OutOfMemory);
    drop(half);
    let all = device.allocate_memory(size, 0).unwrap();
    all.write(size - 1, &[1]).unwrap();
    all.read(size, &mut []).unwrap();
}

#[test]
fn handles_drop_in_any_order() {
    // Each bit of `order` selects whether a handle drops before or after the submission.
    for order in 0..64u32 {
        let device = device();
        let words = Words::zeros(&device, 4);
        let memory = words.memory.clone();
        let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
        let pool = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap();
        let set = pool.allocate(&kernel.set_layout).unwrap();
        set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
        let command = recorded(&device, Flags::empty(), |command| {
            command.bind_pipeline(&kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        let (queue, fence) = (device.queue(), device.create_fence(false));
        let mut early: Vec<Box<dyn std::any::Any>> = Vec::new();
        let mut late = Vec::new();
        let handles: [Box<dyn std::any::Any>; 6] = [
            Box::new(device),
            Box::new(words),
            Box::new(kernel),
            Box::new(pool),
            Box::new(set),
            Box::new(memory.clone()),
        ];
        for (bit, handle) in handles.into_iter().enumerate() {
            if order >> bit & 1 == 0 { &mut early } else { &mut late }.push(handle);
        }
        drop(early);
        queue.submit(&[&command], Some(&fence)).unwrap();
        drop((command, queue));
        drop(late);
        assert!(fence.wait(None).unwrap());
        let mut first = [0];
        memory.read(0, &mut first).unwrap();
        assert_eq!(first, [1], "order {order:#b}");
    }
}

#[test]
fn a_device_may_be_dropped_while_its_work_runs() {
    for _ in 0..20 {
        let device = device();
        let words = Words::zeros(&device, 4);
        let command = counting(&device, &words, Flags::empty(), 50);
        device.queue().submit(&[&command], None).unwrap();
    }
}

#[test]
fn ten_thousand_dispatches_in_one_command_buffer() {
    let device = device();
    let words = Words::zeros(&device, 4);
    run(&device, |command| {
        let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
        let set = kernel.set(&device, STORAGE, &[&words]);
        command.bind_pipeline(&kernel.pipeline).unwrap();
        for _ in 0..10_000 {
            command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
            barrier(command);
        }
    });
    assert_eq!(words.read(), [10_000; 4]);
}

#[test]
fn a_set_may_be_updated_after_binding_if_its_layout_allows_it() {
    let device = device();
    let (first, second) = (Words::zeros(&device, 4), Words::zeros(&device, 4));
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let bindings = [Binding { binding: 0, ty: STORAGE, count: 1 }];
    let info = DescriptorSetLayoutInfo { bindings: &bindings, update_after_bind: true, ..Default::default() };
    let set_layout = device.create_descriptor_set_layout_from(&info).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    let module = device.create_shader_module_wgsl(COUNT).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    let set = device.create_descriptor_pool(1, &[(STORAGE, 1)]).unwrap().allocate(&set_layout).unwrap();
    let record = |command: &CommandBuffer| {
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        barrier(command);
        command.dispatch(1, 1, 1).unwrap();
    };
    let part = device.create_command_pool().allocate_secondary();
    part.begin(Flags::SIMULTANEOUS_USE).unwrap();
    record(&part);
    part.end().unwrap();
    let command = recorded(&device, Flags::SIMULTANEOUS_USE, |command| {
        record(command);
        command.execute_commands(&[&part]).unwrap();
    });
    // Nothing was written before it was bound.
    for words in [&first, &second, &second] {
        set.write(0, 0, STORAGE, &[words.whole()]).unwrap();
        device.queue().submit(&[&command], None).unwrap();
    }
    device.queue().wait_idle().unwrap();
    assert_eq!((first.read(), second.read()), (vec![4; 4], vec![8; 4]));
    // The flag is part of the layout: a set of one layout is not compatible with the other.
    assert_ne!(kernel.set_layout, set_layout);
}
