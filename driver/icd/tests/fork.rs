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

use ash::{khr, vk};
use common::Gpu;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

/// The only test of its program: a child has no other tests' threads, whose locks would stay locked.
#[test]
fn a_forked_process_finds_the_device_lost_and_can_make_another() {
    let gpu = Gpu::with_extensions(&[khr::pipeline_executable_properties::NAME]);
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
    let cache = Cache::new(&gpu);
    // Some of them are compiled at this moment.
    let compiling = cache.pipelines(&gpu, 1..13);
    match unsafe { fork() } {
        0 => {
            let result = std::panic::catch_unwind(move || {
                in_the_child(&gpu, again, [done, open], timeline);
                cache.in_the_child(&gpu, &compiling);
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
    // The parent's device is what it was, and compiles what it had begun.
    let grew = cache.data(&gpu).len() > cache.before;
    // A machine that only interprets keeps nothing but the header.
    assert!(grew || cache.before == 32);
    cache.destroy(&gpu, &compiling);
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

/// A number that is nowhere else in a shader.
const MARK: u32 = 305_419_896;

/// A pipeline cache, and what makes pipelines of much code.
struct Cache {
    raw: vk::PipelineCache,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSetLayout,
    words: Vec<u32>,
    /// A pipeline that was compiled before the fork.
    ready: vk::Pipeline,
    /// Bytes that the cache had then.
    before: usize,
}

impl Cache {
    fn new(gpu: &Gpu) -> Self {
        let lines: String = (0..1500).map(|i| format!("a = (a * {}u) ^ (a >> {}u);\n", i * 7 + 3, i % 31)).collect();
        let words = common::spirv(&format!(
            "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
                var a = id.x + {MARK}u; {lines} o[id.x] = a; }}"
        ));
        let bindings = [vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .descriptor_count(1)
            .stage_flags(vk::ShaderStageFlags::COMPUTE)];
        unsafe {
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let set = gpu.device.create_descriptor_set_layout(&info, None).unwrap();
            let sets = [set];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            let layout = gpu.device.create_pipeline_layout(&info, None).unwrap();
            let raw = gpu.device.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None).unwrap();
            let mut cache = Self { raw, layout, set, words, ready: vk::Pipeline::null(), before: 0 };
            cache.ready = cache.pipelines(gpu, 0..1)[0];
            cache.before = cache.data(gpu).len();
            cache
        }
    }

    fn pipeline(&self, gpu: &Gpu, number: u32) -> Result<vk::Pipeline, vk::Result> {
        let mark = self.words.iter().position(|word| *word == MARK).unwrap();
        let mut words = self.words.clone();
        words[mark] = number;
        unsafe {
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = gpu.device.create_shader_module(&info, None).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.layout)];
            let made = gpu.device.create_compute_pipelines(self.raw, &info, None);
            gpu.device.destroy_shader_module(module, None);
            made.map(|made| made[0]).map_err(|(_, code)| code)
        }
    }

    fn pipelines(&self, gpu: &Gpu, numbers: std::ops::Range<u32>) -> Vec<vk::Pipeline> {
        numbers.map(|number| self.pipeline(gpu, number).unwrap()).collect()
    }

    fn data(&self, gpu: &Gpu) -> Vec<u8> {
        unsafe { gpu.device.get_pipeline_cache_data(self.raw).unwrap() }
    }

    /// What was compiled before the fork is there; what was not never comes, and no call waits for it.
    fn in_the_child(&self, gpu: &Gpu, compiling: &[vk::Pipeline]) {
        let executables = khr::pipeline_executable_properties::Device::new(&gpu.instance, &gpu.device);
        for &pipeline in compiling.iter().chain([&self.ready]) {
            let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
            assert_eq!(unsafe { executables.get_pipeline_executable_properties(&info) }.unwrap().len(), 1);
        }
        assert!(self.data(gpu).len() >= self.before);
        for number in [0, 1, 12, 100] {
            assert_eq!(self.pipeline(gpu, number), Err(vk::Result::ERROR_DEVICE_LOST));
        }
        unsafe {
            let copy = gpu.device.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None).unwrap();
            gpu.device.merge_pipeline_caches(copy, &[self.raw]).unwrap();
            gpu.device.destroy_pipeline_cache(copy, None);
        }
        self.destroy(gpu, compiling);
    }

    fn destroy(&self, gpu: &Gpu, pipelines: &[vk::Pipeline]) {
        unsafe {
            pipelines.iter().chain([&self.ready]).for_each(|&pipeline| gpu.device.destroy_pipeline(pipeline, None));
            gpu.device.destroy_pipeline_cache(self.raw, None);
            gpu.device.destroy_pipeline_layout(self.layout, None);
            gpu.device.destroy_descriptor_set_layout(self.set, None);
        }
    }
}
