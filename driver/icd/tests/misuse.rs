//! What broken rules do: an error with the rule, or a lost device. Never a crash.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod common;

use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use ash::vk::{self, Handle};
use common::Gpu;

const WRONG: vk::Result = vk::Result::ERROR_VALIDATION_FAILED_EXT;
const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;

const TOUCH: &str = "
    @group(0) @binding(0) var<storage, read_write> a: array<u32>;
    @compute @workgroup_size(1) fn main() { a[0] = 1u; }";

#[test]
fn stale_and_foreign_handles_are_errors() {
    let gpu = Gpu::new();
    let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    unsafe {
        let buffer = gpu.device.create_buffer(&info, None).unwrap();
        let memory = vk::MemoryAllocateInfo::default().allocation_size(64).memory_type_index(2);
        let memory = gpu.device.allocate_memory(&memory, None).unwrap();
        gpu.device.destroy_buffer(buffer, None);
        gpu.device.destroy_buffer(buffer, None);
        assert_eq!(gpu.device.bind_buffer_memory(buffer, memory, 0), Err(WRONG));
        // A handle of another type, and numbers that were never handles.
        for wrong in [memory.as_raw(), 1, u64::MAX] {
            assert_eq!(gpu.device.bind_buffer_memory(vk::Buffer::from_raw(wrong), memory, 0), Err(WRONG));
        }
        assert_eq!(gpu.device.get_fence_status(vk::Fence::null()), Err(WRONG));
        gpu.device.free_memory(memory, None);
        gpu.device.free_memory(memory, None);
        gpu.device.free_memory(vk::DeviceMemory::null(), None);
        let freed = gpu.record(|_, _| ()).unwrap();
        gpu.device.free_command_buffers(gpu.pool, &[freed]);
        let begin = vk::CommandBufferBeginInfo::default();
        assert_eq!(gpu.device.begin_command_buffer(freed, &begin), Err(WRONG));
        let commands = [freed];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        assert_eq!(gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()), Err(WRONG));
    }
}

#[test]
fn a_refused_command_fails_the_recording() {
    let gpu = Gpu::new();
    let a = gpu.buffer(4);
    // No pipeline, a copy out of bounds, a stale buffer.
    assert_eq!(gpu.record(|device, commands| unsafe { device.cmd_dispatch(commands, 1, 1, 1) }), Err(WRONG));
    let copy = gpu.record(|device, commands| unsafe {
        let region = vk::BufferCopy { src_offset: 0, dst_offset: 8, size: 16 };
        device.cmd_copy_buffer(commands, a.raw, a.raw, &[region]);
    });
    assert_eq!(copy, Err(WRONG));
    let stale = gpu.record(|device, commands| unsafe {
        device.cmd_fill_buffer(commands, vk::Buffer::from_raw(77), 0, 4, 0);
    });
    assert_eq!(stale, Err(WRONG));
    let huge = gpu.record(|device, commands| unsafe { device.cmd_dispatch(commands, u32::MAX, 1, 1) });
    assert_eq!(huge, Err(WRONG));
    // The device goes on.
    let good = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, a.raw, 0, 16, 3) });
    gpu.run(good.unwrap());
    assert_eq!(a.read(), [3; 4]);
    gpu.destroy_buffer(a);
}

#[test]
fn pools_and_memory_run_out_with_their_own_codes() {
    let gpu = Gpu::new();
    let program = gpu.program(TOUCH, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let (pool, layouts) = (gpu.descriptor_pool(), [program.set_layout; 5]);
    let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
    unsafe {
        assert_eq!(gpu.device.allocate_descriptor_sets(&info), Err(vk::Result::ERROR_OUT_OF_POOL_MEMORY));
        gpu.device.reset_descriptor_pool(pool, vk::DescriptorPoolResetFlags::empty()).unwrap();
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts[..4]);
        assert_eq!(gpu.device.allocate_descriptor_sets(&info).unwrap().len(), 4);
        for size in [1 << 50, u64::MAX] {
            let info = vk::MemoryAllocateInfo::default().allocation_size(size);
            let result = gpu.device.allocate_memory(&info, None);
            assert_eq!(result, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
        }
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_program(program);
}

#[test]
fn absurd_images_and_buffers() {
    let gpu = Gpu::new();
    let image = |width, height, depth, levels, samples| {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width, height, depth })
            .mip_levels(levels)
            .array_layers(1)
            .samples(samples)
            .usage(vk::ImageUsageFlags::STORAGE);
        unsafe { gpu.device.create_image(&info, None) }
    };
    let one = vk::SampleCountFlags::TYPE_1;
    let (most, four) = (u32::MAX, vk::SampleCountFlags::TYPE_4);
    for (width, height, depth, levels, samples) in
        [(most, most, 1, 1, one), (0, 1, 1, 1, one), (4, 4, 9, 1, one), (4, 4, 1, 99, one), (4, 4, 1, 1, four)]
    {
        assert_eq!(image(width, height, depth, levels, samples), Err(WRONG));
    }
    for size in [0, u64::MAX] {
        let info = vk::BufferCreateInfo::default().size(size).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        assert_eq!(unsafe { gpu.device.create_buffer(&info, None) }, Err(WRONG));
    }
}

#[test]
fn mappings_keep_their_rules() {
    let gpu = Gpu::new();
    let none = vk::MemoryMapFlags::empty();
    unsafe {
        let info = vk::MemoryAllocateInfo::default().allocation_size(4096);
        let hidden = gpu.device.allocate_memory(&info.memory_type_index(0), None).unwrap();
        assert_eq!(gpu.device.map_memory(hidden, 0, 4096, none), Err(WRONG), "not host-visible");
        let memory = gpu.device.allocate_memory(&info.memory_type_index(1), None).unwrap();
        for (offset, size) in [(4096, 1), (0, 4097), (0, 0), (u64::MAX, 1)] {
            assert_eq!(gpu.device.map_memory(memory, offset, size, none), Err(WRONG), "{offset} {size}");
        }
        gpu.device.map_memory(memory, 64, vk::WHOLE_SIZE, none).unwrap();
        assert_eq!(gpu.device.map_memory(memory, 0, 4, none), Err(WRONG), "mapped twice");
        let range = vk::MappedMemoryRange::default().memory(memory).size(vk::WHOLE_SIZE);
        gpu.device.flush_mapped_memory_ranges(&[range]).unwrap();
        assert_eq!(gpu.device.flush_mapped_memory_ranges(&[range.offset(1 << 40)]), Err(WRONG));
        gpu.device.unmap_memory(memory);
        gpu.device.unmap_memory(memory);
        assert_eq!(gpu.device.invalidate_mapped_memory_ranges(&[range]), Err(WRONG), "not mapped");
        gpu.device.free_memory(hidden, None);
        gpu.device.free_memory(memory, None);
    }
}

#[test]
fn hostile_shaders_and_cache_data() {
    let gpu = Gpu::new();
    unsafe {
        for words in [&[0u32][..], &[0x0723_0203, 0x10600, 0, 1, 0, 0xffff_ffff]] {
            let info = vk::ShaderModuleCreateInfo::default().code(words);
            assert!(gpu.device.create_shader_module(&info, None).is_err());
        }
        let mut info = vk::ShaderModuleCreateInfo::default().code(&[0x0723_0203]);
        info.code_size = 3;
        assert_eq!(gpu.device.create_shader_module(&info, None), Err(WRONG));
        let cache = gpu.device.create_pipeline_cache(&vk::PipelineCacheCreateInfo::default(), None).unwrap();
        let good = gpu.device.get_pipeline_cache_data(cache).unwrap();
        assert_eq!(good[..8], [32, 0, 0, 0, 1, 0, 0, 0], "length and version of the header");
        let mut bad = good.clone();
        bad[0..4].copy_from_slice(&u32::MAX.to_le_bytes());
        for data in [&[][..], &good, &bad, &good[..5], &[255; 4096]] {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            let other = gpu.device.create_pipeline_cache(&info, None).unwrap();
            gpu.device.merge_pipeline_caches(cache, &[other]).unwrap();
            gpu.device.destroy_pipeline_cache(other, None);
        }
        assert_eq!(gpu.device.merge_pipeline_caches(cache, &[cache]), Err(WRONG));
        gpu.device.destroy_pipeline_cache(cache, None);
    }
}

#[test]
fn what_is_not_there_cannot_be_enabled() {
    let gpu = Gpu::new();
    let create = |info: vk::DeviceCreateInfo<'_>| unsafe { gpu.instance.create_device(gpu.physical, &info, None) };
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
    let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
    let names = [c"VK_KHR_swapchain".as_ptr()];
    assert_eq!(create(info.enabled_extension_names(&names)).err(), Some(vk::Result::ERROR_EXTENSION_NOT_PRESENT));
    let features = vk::PhysicalDeviceFeatures::default().geometry_shader(true);
    assert_eq!(create(info.enabled_features(&features)).err(), Some(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    let mut chained = vk::PhysicalDeviceVulkan11Features::default().multiview(true);
    assert_eq!(create(info.push_next(&mut chained)).err(), Some(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(1).queue_priorities(&[1.0])];
    assert_eq!(create(vk::DeviceCreateInfo::default().queue_create_infos(&queues)).err(), Some(WRONG));
    let bad = vk::InstanceCreateInfo::default();
    let names = [c"VK_KHR_surface".as_ptr()];
    let made = unsafe { gpu.entry.create_instance(&bad.enabled_extension_names(&names), None) };
    assert_eq!(made.err(), Some(vk::Result::ERROR_EXTENSION_NOT_PRESENT));
}

#[test]
fn graphics_is_refused() {
    let gpu = Gpu::new();
    let info = vk::GraphicsPipelineCreateInfo::default();
    unsafe {
        let made = gpu.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None);
        assert_eq!(made.map_err(|(_, code)| code), Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
        let rendering = vk::RenderingInfo::default();
        let commands = gpu.record(|device, commands| device.cmd_begin_rendering(commands, &rendering));
        assert_eq!(commands, Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
        assert!(gpu.device.create_render_pass(&vk::RenderPassCreateInfo::default(), None).is_err());
    }
}

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "system" fn listen(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    let (id, text) = unsafe { (CStr::from_ptr((*data).p_message_id_name), CStr::from_ptr((*data).p_message)) };
    SAID.lock().unwrap().push(format!("{} {}", id.to_string_lossy(), text.to_string_lossy()));
    vk::FALSE
}

#[test]
fn messengers_hear_the_rule() {
    let gpu = Gpu::new();
    let utils = ash::ext::debug_utils::Instance::new(&gpu.entry, &gpu.instance);
    let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(listen));
    unsafe {
        let messenger = utils.create_debug_utils_messenger(&info, None).unwrap();
        let info = vk::BufferCreateInfo::default().usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        assert!(gpu.device.create_buffer(&info, None).is_err());
        utils.destroy_debug_utils_messenger(messenger, None);
    }
    let said = SAID.lock().unwrap();
    let size = "VUID-VkBufferCreateInfo-size-00912";
    assert!(said.iter().any(|text| text.starts_with(size) && text.contains("vkCreateBuffer: size is 0")), "{said:?}");
}

#[test]
fn a_kernel_without_end_loses_the_device_only() {
    // In a process of its own: the time limit comes from the environment.
    if std::env::var_os("SPELTER_TIME_LIMIT").is_none() {
        let test = "a_kernel_without_end_loses_the_device_only";
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let again = again.args([test, "--exact"]).env("SPELTER_TIME_LIMIT", "0.2").env("SPELTER_QUIET", "1");
        assert!(again.output().unwrap().status.success());
        return;
    }
    let gpu = Gpu::new();
    let spin = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { while a[0] == 0u { a[1] = a[1] + 1u; } }";
    let program = gpu.program(spin, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let (a, pool) = (gpu.buffer(4), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    let point = vk::PipelineBindPoint::COMPUTE;
    let commands = gpu.record(|device, commands| unsafe {
        device.cmd_bind_pipeline(commands, point, program.pipeline);
        device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
        device.cmd_dispatch(commands, 1, 1, 1);
    });
    let commands = [commands.unwrap()];
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
