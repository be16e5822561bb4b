//! A kernel that runs too long costs its device, not the process and not the devices beside it.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{COUNT, Kernel, STORAGE, Words, options, recorded, run};
use spelter_driver::vk::CommandBufferUsageFlags as Flags;
use spelter_driver::{CommandBuffer, Device, DeviceOptions, Error};

/// A command buffer with a kernel that never ends by itself.
fn endless(device: &Device) -> CommandBuffer {
    let words = Words::zeros(device, 1);
    let wgsl = "
        @group(0) @binding(0) var<storage, read_write> words: array<atomic<u32>>;
        @compute @workgroup_size(1) fn forever() { while atomicLoad(&words[0]) == 0u {} }";
    let kernel = Kernel::named(device, wgsl, "forever", &[(STORAGE, 1)], 0);
    let set = kernel.set(device, STORAGE, &[&words]);
    recorded(device, Flags::SIMULTANEOUS_USE, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(4, 1, 1).unwrap();
    })
}

#[test]
fn a_kernel_without_end_loses_its_device_and_no_other() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(50), ..options() }).unwrap();
    let other = common::device();
    let command = endless(&device);
    let (fence, unused) = (device.create_fence(false), device.create_fence(false));
    // Where the device is lost before the call returns, it says so at once.
    let submitted = device.queue().submit(&[&command], Some(&fence));
    assert!(matches!(submitted, Ok(_) | Err(Error::DeviceLost(_))), "{submitted:?}");
    let lost = fence.wait(None).unwrap_err();
    assert!(matches!(&lost, Error::DeviceLost(why) if why.contains("forever")), "{lost}");

    assert!(device.is_lost());
    let is_lost = |result: Result<(), Error>| assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    is_lost(device.queue().wait_idle());
    is_lost(device.queues()[1].wait_idle());
    is_lost(device.queues()[1].submit(&[&command], None).map(drop));
    is_lost(device.queue().submit(&[], Some(&unused)).map(drop));
    is_lost(unused.wait(None).map(drop));
    is_lost(fence.wait(Some(Duration::ZERO)).map(drop));
    // Nothing is pending on a lost device.
    command.reset().unwrap();
    fence.reset().unwrap();

    let words = Words::zeros(&other, 4);
    let kernel = Kernel::new(&other, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&other, STORAGE, &[&words]);
    run(&other, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    assert_eq!(words.read(), [1; 4]);
}

#[test]
fn a_loss_ends_waits_for_fences_that_no_submission_has() {
    let device = Device::new(DeviceOptions { time_limit: Duration::from_millis(50), ..options() }).unwrap();
    let (later, never) = (device.create_fence(false), device.create_fence(false));
    let command = endless(&device);
    let is_lost = |result: Result<bool, Error>| assert!(matches!(result, Err(Error::DeviceLost(_))), "{result:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| is_lost(later.wait(None)));
        scope.spawn(|| is_lost(never.wait(None)));
        scope.spawn(|| is_lost(never.wait(Some(Duration::from_secs(1 << 20)))));
        let _ = device.queue().submit(&[&command], None);
        assert!(device.queue().wait_idle().is_err());
        let late = device.queue().submit(&[], Some(&later));
        assert!(matches!(late, Err(Error::DeviceLost(_))), "{late:?}");
    });
    // A reset does not bring the device back.
    never.reset().unwrap();
    is_lost(never.wait(None));
}
