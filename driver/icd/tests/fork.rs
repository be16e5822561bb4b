//! A process that is forked from one with a device has none of the device's threads: there the device is lost, and no call waits
//! for what will not come.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod common;

use std::ffi::c_int;

use ash::vk;
use common::Gpu;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// The only test of its program: a child has no other tests' threads, whose locks would stay locked.
#[test]
fn a_forked_process_finds_the_device_lost_and_can_make_another() {
    let gpu = Gpu::new();
    let buffer = gpu.buffer(4);
    let fill = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, buffer.raw, 0, 16, 8) });
    // Workers and watchdog are there.
    gpu.run(fill.unwrap());
    let again = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, buffer.raw, 0, 16, 9) });
    let again = again.unwrap();
    let info = vk::FenceCreateInfo::default().flags(vk::FenceCreateFlags::SIGNALED);
    let done = unsafe { gpu.device.create_fence(&info, None).unwrap() };
    let open = unsafe { gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap() };
    let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
    let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
    let timeline = unsafe { gpu.device.create_semaphore(&info, None).unwrap() };
    match unsafe { fork() } {
        0 => {
            let result = std::panic::catch_unwind(move || {
                in_the_child(&gpu, again, [done, open], timeline);
                unsafe {
                    gpu.device.destroy_fence(done, None);
                    gpu.device.destroy_fence(open, None);
                    gpu.device.destroy_semaphore(timeline, None);
                }
                gpu.destroy_buffer(buffer);
                // The device of the parent's is destroyed here, too.
                drop(gpu);
                let own = Gpu::new();
                let buffer = own.buffer(4);
                let fill = own.record(|device, commands| unsafe {
                    device.cmd_fill_buffer(commands, buffer.raw, 0, 16, 7);
                });
                own.run(fill.unwrap());
                assert_eq!(buffer.read(), [7; 4]);
                own.destroy_buffer(buffer);
            });
            unsafe { _exit(result.is_err().into()) }
        }
        child => {
            assert!(child > 0);
            let mut status = -1;
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "the child failed");
        }
    }
    // The parent's device is what it was.
    gpu.run(again);
    assert_eq!(buffer.read(), [9; 4]);
    unsafe {
        gpu.device.destroy_fence(done, None);
        gpu.device.destroy_fence(open, None);
        gpu.device.destroy_semaphore(timeline, None);
    }
    gpu.destroy_buffer(buffer);
}

fn in_the_child(gpu: &Gpu, commands: vk::CommandBuffer, [done, open]: [vk::Fence; 2], timeline: vk::Semaphore) {
    let lost = Err(vk::Result::ERROR_DEVICE_LOST);
    let commands = [commands];
    let submit = vk::SubmitInfo::default().command_buffers(&commands);
    let (semaphores, values) = ([timeline], [1]);
    let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    unsafe {
        // What happened before is known.
        assert_eq!(gpu.device.wait_for_fences(&[done], true, u64::MAX), Ok(()));
        assert_eq!(gpu.device.get_fence_status(open), Err(vk::Result::ERROR_DEVICE_LOST));
        for timeout in [0, 1_000_000, u64::MAX] {
            assert_eq!(gpu.device.wait_for_fences(&[open], true, timeout), lost);
            assert_eq!(gpu.device.wait_for_fences(&[open, open], true, timeout), lost);
            assert_eq!(gpu.device.wait_semaphores(&wait, timeout), lost);
        }
        assert_eq!(gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()), lost);
        assert_eq!(gpu.device.queue_wait_idle(gpu.queue), lost);
        assert_eq!(gpu.device.device_wait_idle(), lost);
    }
}
