//! A kernel that never ends loses its device and does not end the process.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common::{Gpu, rerun};
use ash::vk;

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;

#[test]
fn an_endless_kernel_loses_only_its_device() {
    // In a separate process: the time limit comes from the environment.
    if std::env::var_os("SPELTER_TIME_LIMIT").is_none() {
        let test = "an_endless_kernel_loses_only_its_device";
        let mut again = rerun(std::env::current_exe().unwrap(), module_path!(), test);
        let ended = again.env("SPELTER_TIME_LIMIT", "0.2").output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{errors}");
        // The reason names the variable and the option that set the limit.
        let reason = "kernel `main` ran longer than the time limit of 200ms, which SPELTER_TIME_LIMIT \
            (`spelter exec --time-limit`) sets";
        assert!(errors.contains(reason), "{errors}");
        return;
    }
    let gpu = Gpu::new();
    let spin = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { while a[0] == 0u { a[1] = a[1] + 1u; } }";
    let program = gpu.program(spin, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let (a, pool) = (gpu.buffer(4), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    let commands = [gpu.dispatch(program.pipeline, program.layout, set, 1)];
    unsafe {
        let fence = gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        gpu.device.queue_submit(gpu.queue, &[submit], fence).unwrap();
        let lost = Err(vk::Result::ERROR_DEVICE_LOST);
        assert_eq!(gpu.device.wait_for_fences(&[fence], true, u64::MAX), lost);
        assert_eq!(gpu.device.queue_wait_idle(gpu.queue), lost);
        gpu.device.destroy_fence(fence, None);
    }
    // Another device is not lost.
    let other = Gpu::new();
    let c = other.buffer(4);
    let fill = other.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, c.raw, 0, 16, 8) });
    other.run(fill.unwrap());
    assert_eq!(c.read(), [8; 4]);
    other.destroy_buffer(c);
}
