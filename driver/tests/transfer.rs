//! Copies, fills and updates of buffers.
#![allow(clippy::unwrap_used)]

use spelter_driver::{Buffer, Device, DeviceMemory, DeviceOptions, vk};

fn device() -> Device {
    Device::new(DeviceOptions { workers: 2, heap_size: 64 << 20, ..DeviceOptions::default() }).unwrap()
}

/// A buffer with its own memory.
fn buffer(device: &Device, bytes: &[u8]) -> (Buffer, DeviceMemory) {
    let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
    let buffer = device.create_buffer(bytes.len() as u64, usage).unwrap();
    let memory = device.allocate_memory(buffer.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    memory.write(0, bytes).unwrap();
    (buffer, memory)
}

fn contents(buffer: &Buffer, memory: &DeviceMemory) -> Vec<u8> {
    let mut bytes = vec![0xEE; buffer.size() as usize];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

fn barrier(command: &spelter_driver::CommandBuffer) {
    let stages = vk::PipelineStageFlags::TRANSFER;
    command.pipeline_barrier(stages, stages, &[], &[]).unwrap();
}

#[test]
fn fill_copy_and_update_touch_their_bytes_only() {
    let device = device();
    let (a, a_memory) = buffer(&device, &[1; 22]);
    let (b, b_memory) = buffer(&device, &(0..16).collect::<Vec<u8>>());
    let command = device.create_command_pool().allocate();
    command.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
    command.fill_buffer(&a, 8, vk::WHOLE_SIZE, 0x0403_0201).unwrap();
    barrier(&command);
    let regions = [
        vk::BufferCopy { src_offset: 3, dst_offset: 0, size: 5 },
        vk::BufferCopy { src_offset: 0, dst_offset: 20, size: 2 },
    ];
    command.copy_buffer(&b, &a, &regions).unwrap();
    command.update_buffer(&a, 12, &[9, 8, 7, 6]).unwrap();
    barrier(&command);
    barrier(&command);
    command.copy_buffer(&a, &b, &[vk::BufferCopy { src_offset: 12, dst_offset: 15, size: 1 }]).unwrap();
    command.end().unwrap();
    device.queue().submit(&[&command], None).unwrap();
    device.queue().wait_idle().unwrap();
    // The last two bytes are less than a word: the fill does not write them, the copy does.
    let expected = [3, 4, 5, 6, 7, 1, 1, 1, 1, 2, 3, 4, 9, 8, 7, 6, 1, 2, 3, 4, 0, 1];
    assert_eq!(contents(&a, &a_memory), expected);
    assert_eq!(contents(&b, &b_memory), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 9]);
}

#[test]
fn a_recorded_command_keeps_what_it_uses() {
    let device = device();
    let queue = device.queue();
    let (to, to_memory) = buffer(&device, &[0; 8]);
    let command = {
        let (from, _) = buffer(&device, &[5; 8]);
        let command = device.create_command_pool().allocate();
        command.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
        command.copy_buffer(&from, &to, &[vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 8 }]).unwrap();
        command.end().unwrap();
        command
    };
    // Freed memory would be allocated again and read as zero.
    let _other = buffer(&device, &[7; 8]);
    drop(device);
    queue.submit(&[&command], None).unwrap();
    drop(command);
    queue.wait_idle().unwrap();
    assert_eq!(contents(&to, &to_memory), [5; 8]);
}
