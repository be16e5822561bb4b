//! Programs with a small limit of address space: each call succeeds or returns an error, and none ends the process.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics; a child reports its end on standard output"
)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use ash::vk::{self, Handle};
use common::{binding, entry, long_kernel, marked, stage};

/// The environment variable with the task of a child.
const TASK: &str = "SPELTER_TEST_TASK";

/// The prefix of the last line of a child.
const END: &str = "ended:";

/// How a task ended: an error names the call that failed.
type End = Result<(), String>;

fn checked<T>(call: &str, result: Result<T, vk::Result>) -> Result<T, String> {
    result.map_err(|code| format!("{call}: {code:?}"))
}

/// A device whose creation may fail.
struct Made {
    instance: ash::Instance,
    device: ash::Device,
    queue: vk::Queue,
}

fn make() -> Result<Made, String> {
    unsafe {
        let names = [c"VK_EXT_debug_utils".as_ptr()];
        let info = vk::InstanceCreateInfo::default().enabled_extension_names(&names);
        let instance = checked("vkCreateInstance", entry().create_instance(&info, None))?;
        let physical = checked("vkEnumeratePhysicalDevices", instance.enumerate_physical_devices())?[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let device = checked("vkCreateDevice", instance.create_device(physical, &info, None))?;
        let queue = device.get_device_queue(0, 0);
        Ok(Made { instance, device, queue })
    }
}

fn storage_layout(made: &Made, count: u32) -> Result<vk::DescriptorSetLayout, String> {
    let bindings = [binding(0, vk::DescriptorType::STORAGE_BUFFER, count)];
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
    checked("vkCreateDescriptorSetLayout", unsafe { made.device.create_descriptor_set_layout(&info, None) })
}

/// Sets of a hundred thousand descriptors each, until there is no memory for more.
fn descriptors(made: &Made) -> End {
    let layout = storage_layout(made, 100_000)?;
    loop {
        let sizes =
            [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(1_000_000)];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(10).pool_sizes(&sizes);
        let pool = checked("vkCreateDescriptorPool", unsafe { made.device.create_descriptor_pool(&info, None) })?;
        let layouts = [layout; 10];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        checked("vkAllocateDescriptorSets", unsafe { made.device.allocate_descriptor_sets(&info) })?;
    }
}

/// A buffer with memory.
unsafe fn bound_buffer(device: &ash::Device) -> Result<vk::Buffer, String> {
    unsafe {
        let info = vk::BufferCreateInfo::default().size(1 << 16).usage(vk::BufferUsageFlags::TRANSFER_DST);
        let buffer = checked("vkCreateBuffer", device.create_buffer(&info, None))?;
        let needs = device.get_buffer_memory_requirements(buffer);
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let memory = checked("vkAllocateMemory", device.allocate_memory(&info, None))?;
        checked("vkBindBufferMemory", device.bind_buffer_memory(buffer, memory, 0))?;
        Ok(buffer)
    }
}

/// A command buffer that grows until there is no memory for it.
fn recording(made: &Made) -> End {
    let device = &made.device;
    unsafe {
        let pool = checked("vkCreateCommandPool", device.create_command_pool(&Default::default(), None))?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = checked("vkAllocateCommandBuffers", device.allocate_command_buffers(&info))?[0];
        let buffer = bound_buffer(device)?;
        let bytes = [7; 1 << 15];
        for round in 1.. {
            checked("vkBeginCommandBuffer", device.begin_command_buffer(commands, &Default::default()))?;
            for _ in 0..round * 1000 {
                device.cmd_update_buffer(commands, buffer, 0, &bytes);
                device.cmd_fill_buffer(commands, buffer, 0, 1 << 16, 1);
            }
            checked("vkEndCommandBuffer", device.end_command_buffer(commands))?;
        }
    }
    Ok(())
}

/// Objects of many kinds, until there is no memory for more.
fn objects(made: &Made) -> End {
    let device = &made.device;
    loop {
        unsafe {
            checked("vkCreateFence", device.create_fence(&Default::default(), None))?;
            checked("vkCreateSemaphore", device.create_semaphore(&Default::default(), None))?;
            checked("vkCreateEvent", device.create_event(&Default::default(), None))?;
            checked("vkCreateSampler", device.create_sampler(&Default::default(), None))?;
            let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(5000);
            checked("vkCreateQueryPool", device.create_query_pool(&info, None))?;
            let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
            checked("vkCreateBuffer", device.create_buffer(&info, None))?;
            checked("vkCreateCommandPool", device.create_command_pool(&Default::default(), None))?;
        }
    }
}

/// The smallest objects, of which most fit into memory.
fn events(made: &Made) -> End {
    loop {
        checked("vkCreateEvent", unsafe { made.device.create_event(&Default::default(), None) })?;
    }
}

/// Sets of one descriptor each, in one pool.
fn small_sets(made: &Made) -> End {
    let layouts = [storage_layout(made, 1)?];
    let most = 1 << 22;
    let sizes = [vk::DescriptorPoolSize::default().ty(vk::DescriptorType::STORAGE_BUFFER).descriptor_count(most)];
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(most).pool_sizes(&sizes);
    let pool = checked("vkCreateDescriptorPool", unsafe { made.device.create_descriptor_pool(&info, None) })?;
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    loop {
        checked("vkAllocateDescriptorSets", unsafe { made.device.allocate_descriptor_sets(&info) })?;
    }
}

/// Command buffers without commands, in one pool.
fn command_buffers(made: &Made) -> End {
    let device = &made.device;
    let pool = checked("vkCreateCommandPool", unsafe { device.create_command_pool(&Default::default(), None) })?;
    let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
    loop {
        if let Err(failed) = checked("vkAllocateCommandBuffers", unsafe { device.allocate_command_buffers(&info) }) {
            // Freeing all of them allocates nothing.
            unsafe { device.destroy_command_pool(pool, None) };
            return Err(failed);
        }
    }
}

/// Private data of handles without objects.
fn private_data(made: &Made) -> End {
    let info = vk::PrivateDataSlotCreateInfo::default();
    let slot = checked("vkCreatePrivateDataSlot", unsafe { made.device.create_private_data_slot(&info, None) })?;
    for number in 1.. {
        let set = unsafe { made.device.set_private_data(vk::Event::from_raw(number), slot, number) };
        checked("vkSetPrivateData", set)?;
    }
    Ok(())
}

/// Pipelines of a large shader, each with another constant, until there is no memory for more.
fn pipelines(made: &Made) -> End {
    let device = &made.device;
    let sets = [storage_layout(made, 1)?];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
    let layout = checked("vkCreatePipelineLayout", unsafe { device.create_pipeline_layout(&info, None) })?;
    // The WGSL front end is not under test: the text is compiled once, and each module has another number in it.
    let words = common::spirv(&long_kernel(400));
    for round in 0.. {
        unsafe {
            let own = marked(&words, round);
            let info = vk::ShaderModuleCreateInfo::default().code(&own);
            let module = checked("vkCreateShaderModule", device.create_shader_module(&info, None))?;
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage(module)).layout(layout)];
            let made = device.create_compute_pipelines(vk::PipelineCache::null(), &info, None);
            checked("vkCreateComputePipelines", made.map_err(|(_, code)| code))?;
        }
    }
    Ok(())
}

/// A short shader whose calls are written out as half a million instructions.
fn inlined_calls(made: &Made) -> End {
    let device = &made.device;
    let sets = [storage_layout(made, 1)?];
    let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
    let layout = checked("vkCreatePipelineLayout", unsafe { device.create_pipeline_layout(&info, None) })?;
    let products = "x *= a; ".repeat(28);
    let doubled: String =
        (1..15).map(|at| format!("fn f{at}(a: u32) -> u32 {{ return f{}(f{}(a)); }}\n", at - 1, at - 1)).collect();
    let words = common::spirv(&format!(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
        fn f0(a: u32) -> u32 {{ var x = a; {products} return x; }}
        {doubled}
        @compute @workgroup_size(1) fn main() {{ o[0] = f14(o[0]); }}"
    ));
    let info = vk::ShaderModuleCreateInfo::default().code(&words);
    unsafe {
        let module = checked("vkCreateShaderModule", device.create_shader_module(&info, None))?;
        let info = [vk::ComputePipelineCreateInfo::default().stage(stage(module)).layout(layout)];
        let made = device.create_compute_pipelines(vk::PipelineCache::null(), &info, None);
        checked("vkCreateComputePipelines", made.map_err(|(_, code)| code))?;
    }
    Ok(())
}

/// Submissions without waiting, until one fails or a hundred thousand were made.
fn submissions(made: &Made) -> End {
    let device = &made.device;
    unsafe {
        let pool = checked("vkCreateCommandPool", device.create_command_pool(&Default::default(), None))?;
        for _ in 0..100_000 {
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            let commands = checked("vkAllocateCommandBuffers", device.allocate_command_buffers(&info))?;
            checked("vkBeginCommandBuffer", device.begin_command_buffer(commands[0], &Default::default()))?;
            checked("vkEndCommandBuffer", device.end_command_buffer(commands[0]))?;
            let submits = [vk::SubmitInfo::default().command_buffers(&commands)];
            checked("vkQueueSubmit", device.queue_submit(made.queue, &submits, vk::Fence::null()))?;
        }
        checked("vkQueueWaitIdle", device.queue_wait_idle(made.queue))
    }
}

/// Barriers with a million buffers each.
fn barriers(made: &Made) -> End {
    let device = &made.device;
    unsafe {
        let buffer = bound_buffer(device)?;
        let barrier = vk::BufferMemoryBarrier::default().buffer(buffer).size(vk::WHOLE_SIZE);
        let mut barriers = Vec::new();
        // The program's own list does not fit the smallest limits.
        if barriers.try_reserve_exact(1_000_000).is_err() {
            return Ok(());
        }
        barriers.resize(1_000_000, barrier);
        let pool = checked("vkCreateCommandPool", device.create_command_pool(&Default::default(), None))?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = checked("vkAllocateCommandBuffers", device.allocate_command_buffers(&info))?[0];
        checked("vkBeginCommandBuffer", device.begin_command_buffer(commands, &Default::default()))?;
        let stage = vk::PipelineStageFlags::COMPUTE_SHADER;
        device.cmd_pipeline_barrier(commands, stage, stage, vk::DependencyFlags::empty(), &[], &barriers, &[]);
        checked("vkEndCommandBuffer", device.end_command_buffer(commands))
    }
}

/// Labels in labels, each with a name of a mebibyte.
fn labels(made: &Made) -> End {
    let device = &made.device;
    let instance = ash::ext::debug_utils::Device::new(&made.instance, device);
    let name = std::ffi::CString::new(vec![b'x'; 1 << 20]).unwrap();
    unsafe {
        let pool = checked("vkCreateCommandPool", device.create_command_pool(&Default::default(), None))?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = checked("vkAllocateCommandBuffers", device.allocate_command_buffers(&info))?[0];
        checked("vkBeginCommandBuffer", device.begin_command_buffer(commands, &Default::default()))?;
        for _ in 0..500 {
            instance.cmd_begin_debug_utils_label(commands, &vk::DebugUtilsLabelEXT::default().label_name(&name));
        }
        checked("vkEndCommandBuffer", device.end_command_buffer(commands))
    }
}

/// A task of a child with its device.
type Task = fn(&Made) -> End;

const TASKS: [(&str, Task); 12] = [
    ("descriptors", descriptors),
    ("recording", recording),
    ("objects", objects),
    ("events", events),
    ("small sets", small_sets),
    ("command buffers", command_buffers),
    ("private data", private_data),
    ("pipelines", pipelines),
    ("inlined calls", inlined_calls),
    ("submissions", submissions),
    ("barriers", barriers),
    ("labels", labels),
];

/// In the child: runs its task and reports its end. After an error, the device can still be waited for and destroyed.
fn child(task: &str) {
    let (_, run) = TASKS.iter().find(|(name, _)| *name == task).unwrap();
    let made = match make() {
        Ok(made) => made,
        Err(end) => return println!("{END} {end}"),
    };
    let end = run(&made).err().unwrap_or_else(|| "all done".to_owned());
    unsafe {
        let _ = made.device.device_wait_idle();
        made.device.destroy_device(None);
        made.instance.destroy_instance(None);
    }
    println!("{END} {end}");
}

#[test]
fn running_out_of_host_memory_is_an_error_and_never_ends_the_process() {
    let test = "running_out_of_host_memory_is_an_error_and_never_ends_the_process";
    if let Ok(task) = std::env::var(TASK) {
        return child(&task);
    }
    let mut out_of_memory = 0;
    for (task, _) in TASKS {
        for mebibytes in [150, 200, 300, 400] {
            // The limit holds for the child only: the shell sets it and becomes the child.
            let script = format!("ulimit -v {} && exec \"$0\" {test} --exact --nocapture", mebibytes << 10);
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
            let child = shell.env(TASK, task).env("SPELTER_WORKERS", "2").output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
            let at = format!("{task} with {mebibytes} MiB");
            assert_eq!(child.status.signal(), None, "{at}: a signal ended it\n{out}\n{err}");
            let end = out.lines().find_map(|line| line.split_once(END)).map(|(_, end)| end.trim());
            let end = end.unwrap_or_else(|| panic!("{at}: the child reported no end\n{out}\n{err}"));
            assert!(end == "all done" || end.contains("OUT_OF"), "{at}: {end}\n{err}");
            out_of_memory += usize::from(end.contains("OUT_OF_HOST_MEMORY"));
        }
    }
    assert!(out_of_memory > 0, "no limit was small enough for a call to fail");
}
