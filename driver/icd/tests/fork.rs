//! A process that is forked from one with a device has none of the device's threads: there the device is lost, and no
//! call blocks forever.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod common;

use std::ffi::{c_int, c_uint};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::{self, Handle};
use ash::{ext, khr};
use common::{Gpu, Layout, long_kernel, marked, spirv};

/// Seconds after which the system ends a child that hangs.
const HANGS: c_uint = 60;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn alarm(seconds: c_uint) -> c_uint;
    fn _exit(status: c_int) -> !;
}

/// The only test of its program: threads of other tests could hold locks at the fork, which would stay locked in the
/// child.
#[test]
fn a_forked_process_loses_the_device_and_can_create_another() {
    const CHECK: &str = "SPELTER_CHECK";
    // The same in checked mode, before this process has threads.
    if std::env::var_os(CHECK).is_none() {
        let status = Command::new(std::env::current_exe().unwrap()).env(CHECK, "1").status().unwrap();
        assert!(status.success(), "in checked mode: {status}");
    }
    let gpu = Gpu::with_extensions(&[khr::pipeline_executable_properties::NAME]);
    let buffer = gpu.buffer(4);
    let fill = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, buffer.raw, 0, 16, 8) });
    // Now the workers and the watchdog exist.
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
    // Some of them are still being compiled.
    let compiling = cache.pipelines(&gpu, 1..13);
    match unsafe { fork() } {
        0 => {
            unsafe { alarm(HANGS) };
            let result = std::panic::catch_unwind(move || {
                in_the_child(&gpu, again, [done, open], timeline);
                cache.in_the_child(&gpu, &compiling);
                unsafe {
                    gpu.device.destroy_fence(done, None);
                    gpu.device.destroy_fence(open, None);
                    gpu.device.destroy_semaphore(timeline, None);
                }
                gpu.destroy_buffer(buffer);
                // The parent's device is destroyed here, too.
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
    forks_during_calls(&gpu);
    forks_that_make_devices();
    forks_while_compiling();
    // The parent's device still works, and completes its compilations.
    let grew = cache.data(&gpu).len() > cache.before;
    // Without machine code the data are only the header.
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

/// Forks while another thread creates and destroys fences. The lock of their table may be lost in the child: its calls
/// end all the same.
fn forks_during_calls(gpu: &Gpu) {
    const FORKS: u32 = 100;
    let (stop, device) = (AtomicBool::new(false), &gpu.device);
    let kept = unsafe { device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap() };
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: nothing else is read with it.
            while !stop.load(Ordering::Relaxed) {
                unsafe {
                    let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
                    device.destroy_fence(fence, None);
                }
            }
        });
        let ended = fork_each(FORKS, || unsafe {
            let _ = device.device_wait_idle();
            device.destroy_fence(kept, None);
        });
        stop.store(true, Ordering::Relaxed);
        ended
    });
    assert!(ended.iter().all(|&status| status == 0), "{ended:?}");
    unsafe { device.destroy_fence(kept, None) };
}

/// Forks this many times, one child after the other, and returns their statuses: 0 unless `in_child` panics or hangs.
fn fork_each(forks: u32, in_child: impl Fn()) -> Vec<c_int> {
    let fork_once = || match unsafe { fork() } {
        0 => unsafe {
            alarm(HANGS);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&in_child));
            _exit(result.is_err().into())
        },
        child => {
            let mut status = -1;
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            status
        }
    };
    (0..forks).map(|_| fork_once()).collect()
}

/// Each child makes a device of its own and destroys it, while the parent's threads sleep: the child must not use what
/// they wait in.
fn forks_that_make_devices() {
    const FORKS: u32 = 50;
    let make_one = || {
        let gpu = Gpu::new();
        let buffer = gpu.buffer(4);
        let fill = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, buffer.raw, 0, 16, 7) });
        gpu.run(fill.unwrap());
        let all = buffer.read().to_vec();
        gpu.destroy_buffer(buffer);
        all
    };
    let ended = fork_each(FORKS, || assert_eq!(make_one(), [7; 4]));
    assert!(ended.iter().all(|&status| status == 0), "{ended:?}");
    // And children of such a child.
    let ended = fork_each(3, || {
        assert_eq!(make_one(), [7; 4]);
        assert_eq!(fork_each(3, || assert_eq!(make_one(), [7; 4])), [0; 3]);
    });
    assert_eq!(ended, [0; 3]);
}

/// Each child compiles and runs a kernel on a device of its own while threads of the parent are in calls of all kinds:
/// whatever lock of the process they hold at the fork, the child must not wait for it, and what it makes is there.
fn forks_while_compiling() {
    const FORKS: u32 = 60;
    let words = spirv(&long_kernel(3));
    let (stop, gpu) = (AtomicBool::new(false), Gpu::with_extensions(&[khr::pipeline_executable_properties::NAME]));
    let layout = gpu.storage_layout();
    // Relaxed: nothing else is read with it.
    let goes_on = || !stop.load(Ordering::Relaxed);
    let ended = std::thread::scope(|scope| {
        // Threads of the driver compile, this one waits for them and drops the code.
        scope.spawn(|| {
            let executables = khr::pipeline_executable_properties::Device::new(&gpu.instance, &gpu.device);
            for number in (0..).take_while(|_| goes_on()) {
                let info = vk::ComputePipelineCreateInfo::default().layout(layout.pipeline);
                let made = gpu.pipeline_of(vk::PipelineCache::null(), &marked(&words, number), info).unwrap();
                let info = vk::PipelineInfoKHR::default().pipeline(made);
                unsafe {
                    executables.get_pipeline_executable_properties(&info).unwrap();
                    gpu.device.destroy_pipeline(made, None);
                }
            }
        });
        scope.spawn(|| {
            while goes_on() {
                talk(&gpu);
            }
        });
        scope.spawn(|| {
            while goes_on() {
                let commands = gpu.record(|_, _| ()).unwrap();
                unsafe { gpu.device.free_command_buffers(gpu.pool, &[commands]) };
            }
        });
        let ended = fork_each(FORKS, compile_and_run);
        stop.store(true, Ordering::Relaxed);
        ended
    });
    assert!(ended.iter().all(|&status| status == 0), "{ended:?}");
    gpu.destroy_layout(layout);
}

/// Names an object, prints a message, and sends another one to a messenger, which is gone afterwards.
fn talk(gpu: &Gpu) {
    let of_device = ext::debug_utils::Device::new(&gpu.instance, &gpu.device);
    let of_instance = ext::debug_utils::Instance::new(&gpu.entry, &gpu.instance);
    let mut heard = 0_u32;
    unsafe {
        let name = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(gpu.pool).object_name(c"pool");
        of_device.set_debug_utils_object_name(&name).unwrap();
        gpu.device.destroy_fence(vk::Fence::from_raw(1), None);
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(count))
            .user_data((&raw mut heard).cast());
        let messenger = of_instance.create_debug_utils_messenger(&info, None).unwrap();
        gpu.device.destroy_fence(vk::Fence::from_raw(1), None);
        of_instance.destroy_debug_utils_messenger(messenger, None);
    }
    assert_eq!(heard, 1);
}

unsafe extern "system" fn count(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    _: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    to: *mut std::ffi::c_void,
) -> vk::Bool32 {
    unsafe { *to.cast::<u32>() += 1 };
    vk::FALSE
}

/// Compiles a kernel on a new device, runs it and checks what it wrote.
fn compile_and_run() {
    let gpu = Gpu::new();
    let text = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { o[id.x] = id.x * 3u; }";
    let program = gpu.program(text, &[vk::DescriptorType::STORAGE_BUFFER], Default::default());
    let (buffer, pool) = (gpu.buffer(128), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&buffer]);
    gpu.run(gpu.dispatch(program.pipeline, program.layout, set, 2));
    assert!((0..).zip(buffer.read()).all(|(index, word)| word == index * 3));
    talk(&gpu);
    unsafe { gpu.device.destroy_descriptor_pool(pool, None) };
    gpu.destroy_buffer(buffer);
    gpu.destroy_program(program);
}

fn in_the_child(gpu: &Gpu, commands: vk::CommandBuffer, [done, open]: [vk::Fence; 2], timeline: vk::Semaphore) {
    let lost = Err(vk::Result::ERROR_DEVICE_LOST);
    let commands = [commands];
    let submit = vk::SubmitInfo::default().command_buffers(&commands);
    let (semaphores, values) = ([timeline], [1]);
    let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    unsafe {
        // Events before the fork are known.
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

/// A pipeline cache with pipelines of a long kernel.
struct Cache {
    raw: vk::PipelineCache,
    layout: Layout,
    words: Vec<u32>,
    /// A pipeline that was compiled before the fork.
    ready: vk::Pipeline,
    /// The size of the cache's data at that time.
    before: usize,
}

impl Cache {
    fn new(gpu: &Gpu) -> Self {
        let words = spirv(&long_kernel(1500));
        let layout = gpu.storage_layout();
        let info = vk::PipelineCacheCreateInfo::default();
        let raw = unsafe { gpu.device.create_pipeline_cache(&info, None).unwrap() };
        let mut cache = Self { raw, layout, words, ready: vk::Pipeline::null(), before: 0 };
        cache.ready = cache.pipelines(gpu, 0..1)[0];
        cache.before = cache.data(gpu).len();
        cache
    }

    fn pipeline(&self, gpu: &Gpu, number: u32) -> Result<vk::Pipeline, vk::Result> {
        let info = vk::ComputePipelineCreateInfo::default().layout(self.layout.pipeline);
        gpu.pipeline_of(self.raw, &marked(&self.words, number), info)
    }

    fn pipelines(&self, gpu: &Gpu, numbers: std::ops::Range<u32>) -> Vec<vk::Pipeline> {
        numbers.map(|number| self.pipeline(gpu, number).unwrap()).collect()
    }

    fn data(&self, gpu: &Gpu) -> Vec<u8> {
        unsafe { gpu.device.get_pipeline_cache_data(self.raw).unwrap() }
    }

    /// Code that was compiled before the fork is cached; other compilations never end, and no call waits for them.
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
        }
        gpu.destroy_layout(self.layout);
    }
}
