//! Secondary command buffers, timestamps, and host addresses.
#![allow(clippy::unwrap_used)]

use crate::common::{COUNT, Kernel, STORAGE, Words, barrier, device, recorded};
use spelter_driver::vk::{CommandBufferUsageFlags as Flags, QueryResultFlags, QueryType};
use spelter_driver::{CommandBuffer, Device, Error};

fn secondary(device: &Device, flags: Flags, record: impl FnOnce(&CommandBuffer)) -> CommandBuffer {
    let command = device.create_command_pool().allocate_secondary();
    command.begin(flags).unwrap();
    record(&command);
    command.end().unwrap();
    command
}

#[test]
fn secondary_command_buffers_run_where_they_are_executed() {
    let device = device();
    let words = Words::zeros(&device, 4);
    let kernel = Kernel::new(&device, COUNT, &[(STORAGE, 1)], 0);
    let set = kernel.set(&device, STORAGE, &[&words]);
    let count = secondary(&device, Flags::SIMULTANEOUS_USE, |command| {
        command.bind_pipeline(&kernel.pipeline).unwrap();
        command.bind_descriptor_sets(&kernel.layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
    });
    let primary = recorded(&device, Flags::SIMULTANEOUS_USE, |command| {
        command.fill_buffer(&words.buffer, 0, 16, 10).unwrap();
        barrier(command);
        command.execute_commands(&[&count, &count]).unwrap();
        barrier(command);
        command.execute_commands(&[&count]).unwrap();
        // State set by the secondary command buffer does not stay.
        assert!(matches!(command.dispatch(1, 1, 1), Err(Error::Misuse(_))));
    });
    device.queue().submit(&[&primary], None).unwrap();
    device.queue().wait_idle().unwrap();
    assert_eq!(words.read(), [13; 4]);
    // Resetting the secondary command buffer invalidates the primary one.
    count.reset().unwrap();
    let error = device.queue().submit(&[&primary], None).unwrap_err();
    assert!(error.to_string().contains("secondary"), "{error}");
}

#[test]
fn timestamps_are_nanoseconds_between_the_commands_around_them() {
    let device = device();
    let words = Words::zeros(&device, 1 << 20);
    let pool = device.create_query_pool(QueryType::TIMESTAMP, 4).unwrap();
    let results = Words::zeros(&device, 16);
    let start = std::time::Instant::now();
    let command = recorded(&device, Flags::empty(), |command| {
        command.reset_query_pool(&pool, 0, 4).unwrap();
        command.write_timestamp(&pool, 0).unwrap();
        command.fill_buffer(&words.buffer, 0, 4 << 20, 1).unwrap();
        command.write_timestamp(&pool, 1).unwrap();
        let flags = QueryResultFlags::TYPE_64 | QueryResultFlags::WITH_AVAILABILITY;
        command.copy_query_pool_results(&pool, 0, 4, &results.buffer, 0, 16, flags).unwrap();
    });
    device.queue().submit(&[&command], None).unwrap();
    let both = pool.results(0, 2, true).unwrap();
    let (before, after) = (both[0].unwrap(), both[1].unwrap());
    assert!(before < after, "4 MiB take time: {before}, {after}");
    assert!(u128::from(after - before) <= start.elapsed().as_nanos());
    assert_eq!(pool.results(2, 2, false).unwrap(), [None, None]);
    device.queue().wait_idle().unwrap();
    let written: Vec<u64> = results.read().chunks(2).map(|w| u64::from(w[1]) << 32 | u64::from(w[0])).collect();
    assert_eq!(written, [before, 1, after, 1, 0, 0, 0, 0]);
    pool.reset(0, 4).unwrap();
    assert_eq!(pool.results(0, 4, false).unwrap(), [None; 4]);
}

#[test]
fn the_host_address_of_memory_is_stable() {
    let device = device();
    let words = Words::new(&device, &[1, 2, 3]);
    let address = words.memory.host_address();
    assert!(
        !address.is_null() && address.addr().is_multiple_of(64 << 10),
        "an allocation begins with a granule: {address:?}"
    );
    assert_eq!(words.write(&[4, 5, 6]).memory.host_address(), address);
}
