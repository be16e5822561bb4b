//! Broken valid usage: each case is an error with its valid-usage ID, and never a crash.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use crate::common::{Gpu, binding, rerun};
use ash::vk::{self, Handle};

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
fn a_failed_command_fails_the_recording() {
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
    // The device still works.
    let good = gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, a.raw, 0, 16, 3) });
    gpu.run(good.unwrap());
    assert_eq!(a.read(), [3; 4]);
    gpu.destroy_buffer(a);
}

#[test]
fn exhausted_pools_and_memory_have_their_own_codes() {
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
        let queries = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(u32::MAX);
        let result = gpu.device.create_query_pool(&queries, None);
        assert_eq!(result, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY), "64 GiB of timestamps");
    }
    gpu.destroy_program(program);
}

#[test]
fn templates_must_fit_their_layouts() {
    let gpu = Gpu::new();
    let program = gpu.program(TOUCH, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let entry =
        vk::DescriptorUpdateTemplateEntry { descriptor_count: 1, descriptor_type: STORAGE, ..Default::default() };
    let make = |layout, entry| {
        let entries = [entry];
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
            .descriptor_set_layout(layout);
        unsafe { gpu.device.create_descriptor_update_template(&info, None) }
    };
    type Entry = vk::DescriptorUpdateTemplateEntry;
    for wrong in [
        Entry { descriptor_count: u32::MAX, ..entry },
        Entry { dst_array_element: 1, ..entry },
        Entry { dst_binding: 7, ..entry },
        Entry { offset: usize::MAX - 3, stride: usize::MAX, descriptor_count: 2, ..entry },
        Entry { descriptor_type: vk::DescriptorType::from_raw(99), ..entry },
    ] {
        assert_eq!(make(program.set_layout, wrong), Err(WRONG), "{wrong:?}");
    }
    assert_eq!(make(vk::DescriptorSetLayout::null(), entry), Err(WRONG));
    // Unusual strides: descriptors are read at these offsets, aligned or not.
    let (a, pool) = (gpu.buffer(4), gpu.descriptor_pool());
    let template = make(program.set_layout, Entry { offset: 3, stride: 1, ..entry }).unwrap();
    let info = vk::DescriptorBufferInfo { buffer: a.raw, offset: 0, range: vk::WHOLE_SIZE };
    let mut data = [0u8; 64];
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const info).cast::<u8>(), data.as_mut_ptr().add(3), size_of_val(&info));
        let set = gpu.set(pool, &program, &[]);
        gpu.device.update_descriptor_set_with_template(set, template, data.as_ptr().cast());
        gpu.device.destroy_descriptor_update_template(template, None);
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_buffer(a);
    gpu.destroy_program(program);
}

#[test]
fn invalid_images_and_buffers_are_errors() {
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
fn invalid_mappings_are_errors() {
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
        let range = vk::MappedMemoryRange::default().memory(memory).offset(64).size(vk::WHOLE_SIZE);
        gpu.device.flush_mapped_memory_ranges(&[range]).unwrap();
        for outside in [range.offset(1 << 40), range.offset(0), range.offset(0).size(128), range.size(4096)] {
            assert_eq!(gpu.device.flush_mapped_memory_ranges(&[outside]), Err(WRONG), "not in the mapped bytes");
            assert_eq!(gpu.device.invalidate_mapped_memory_ranges(&[range, outside]), Err(WRONG));
        }
        gpu.device.unmap_memory(memory);
        gpu.device.unmap_memory(memory);
        assert_eq!(gpu.device.invalidate_mapped_memory_ranges(&[range]), Err(WRONG), "not mapped");
        gpu.device.free_memory(hidden, None);
        gpu.device.free_memory(memory, None);
    }
}

#[test]
fn malformed_shaders_and_cache_data_are_handled() {
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
fn unsupported_features_and_extensions_cannot_be_enabled() {
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
fn graphics_commands_fail() {
    let gpu = Gpu::new();
    let info = vk::GraphicsPipelineCreateInfo::default();
    unsafe {
        let made = gpu.device.create_graphics_pipelines(vk::PipelineCache::null(), &[info], None);
        assert_eq!(made.map_err(|(_, code)| code), Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
        // The handles are null, too.
        let create = gpu.device.fp_v1_0().create_graphics_pipelines;
        let (infos, mut made) = ([info; 2], [vk::Pipeline::from_raw(77); 2]);
        let (none, out) = (vk::PipelineCache::null(), made.as_mut_ptr());
        let result = create(gpu.device.handle(), none, 2, infos.as_ptr(), std::ptr::null(), out);
        assert_eq!((result, made), (vk::Result::ERROR_FEATURE_NOT_PRESENT, [vk::Pipeline::null(); 2]));
        let rendering = vk::RenderingInfo::default();
        let commands = gpu.record(|device, commands| device.cmd_begin_rendering(commands, &rendering));
        assert_eq!(commands, Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
        assert!(gpu.device.create_render_pass(&vk::RenderPassCreateInfo::default(), None).is_err());
    }
}

#[test]
fn invalid_layouts_and_sets_are_errors() {
    use vk::{DescriptorBindingFlags as B, DescriptorSetLayoutCreateFlags as L, DescriptorType as D};
    let gpu = Gpu::with_extensions(&[c"VK_KHR_push_descriptor"]);
    let create = |flags, bindings: &[vk::DescriptorSetLayoutBinding<'_>], of_bindings: &[B]| unsafe {
        let mut chained = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(of_bindings);
        let info = vk::DescriptorSetLayoutCreateInfo::default().flags(flags).bindings(bindings).push_next(&mut chained);
        gpu.device.create_descriptor_set_layout(&info, None)
    };
    let (two, plain) = ([binding(0, STORAGE, 1), binding(1, STORAGE, 1)], L::empty());
    for (what, flags, bindings, of_bindings) in [
        ("flags of fewer bindings", plain, &two[..], &[B::empty()][..]),
        ("update after bind in a layout without it", plain, &two, &[B::UPDATE_AFTER_BIND, B::empty()]),
        ("a variable count before the last", plain, &two, &[B::VARIABLE_DESCRIPTOR_COUNT, B::empty()]),
        ("a dynamic push descriptor", L::PUSH_DESCRIPTOR_KHR, &[binding(0, D::STORAGE_BUFFER_DYNAMIC, 1)], &[]),
        ("an inline block as push descriptor", L::PUSH_DESCRIPTOR_KHR, &[binding(0, D::INLINE_UNIFORM_BLOCK, 4)], &[]),
        ("too many push descriptors", L::PUSH_DESCRIPTOR_KHR, &[binding(0, STORAGE, 257)], &[]),
    ] {
        assert_eq!(create(flags, bindings, of_bindings), Err(WRONG), "{what}");
    }
    unsafe {
        let (plain, pushed) = (create(plain, &two, &[]).unwrap(), create(L::PUSH_DESCRIPTOR_KHR, &two, &[]).unwrap());
        let layout = |sets: &[_]| {
            gpu.device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default().set_layouts(sets), None)
        };
        assert_eq!(layout(&[pushed, pushed]), Err(WRONG), "two push descriptor sets");
        let (pool, layouts) = (gpu.descriptor_pool(), [pushed]);
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        assert_eq!(gpu.device.allocate_descriptor_sets(&info), Err(WRONG), "allocating a push descriptor set");
        let (a, of_plain) = (gpu.buffer(4), layout(&[plain]).unwrap());
        let push = ash::khr::push_descriptor::Device::new(&gpu.instance, &gpu.device);
        let infos = [vk::DescriptorBufferInfo { buffer: a.raw, offset: 0, range: vk::WHOLE_SIZE }];
        let write = vk::WriteDescriptorSet::default().descriptor_type(STORAGE).buffer_info(&infos);
        let compute = vk::PipelineBindPoint::COMPUTE;
        let recorded = gpu.record(|_, commands| push.cmd_push_descriptor_set(commands, compute, of_plain, 0, &[write]));
        assert_eq!(recorded, Err(WRONG), "pushing into a set without push descriptors");
        gpu.device.destroy_pipeline_layout(of_plain, None);
        gpu.device.destroy_descriptor_pool(pool, None);
        [plain, pushed].into_iter().for_each(|layout| gpu.device.destroy_descriptor_set_layout(layout, None));
        gpu.destroy_buffer(a);
    }
}

#[test]
fn invalid_imports_of_host_memory_are_errors() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_external_memory_host"]);
    let host = ash::ext::external_memory_host::Device::new(&gpu.instance, &gpu.device);
    let pages = std::alloc::Layout::from_size_align(4096, 4096).unwrap();
    use vk::ExternalMemoryHandleTypeFlags as H;
    unsafe {
        let at = std::alloc::alloc_zeroed(pages);
        let ask = |handle_type, pointer: *mut u8| {
            let mut properties = vk::MemoryHostPointerPropertiesEXT::default();
            let ask = host.fp().get_memory_host_pointer_properties_ext;
            let code = ask(gpu.device.handle(), handle_type, pointer.cast(), &raw mut properties);
            code.result().map(|()| properties.memory_type_bits)
        };
        let import = |handle_type, pointer: *mut u8| {
            let mut import =
                vk::ImportMemoryHostPointerInfoEXT::default().handle_type(handle_type).host_pointer(pointer.cast());
            let info = vk::MemoryAllocateInfo::default().allocation_size(4096).push_next(&mut import);
            gpu.device.allocate_memory(&info, None)
        };
        assert_eq!(ask(H::HOST_ALLOCATION_EXT, at), Ok(0b111));
        let foreign = vk::Result::ERROR_INVALID_EXTERNAL_HANDLE;
        for (handle_type, pointer, code) in [
            (H::OPAQUE_FD, at, WRONG),
            (H::HOST_MAPPED_FOREIGN_MEMORY_EXT, at, foreign),
            (H::HOST_ALLOCATION_EXT, at.wrapping_add(64), WRONG),
            (H::HOST_ALLOCATION_EXT, std::ptr::null_mut(), WRONG),
        ] {
            assert_eq!(ask(handle_type, pointer), Err(code), "{handle_type:?} {pointer:?}");
            assert_eq!(import(handle_type, pointer), Err(code), "{handle_type:?} {pointer:?}");
        }
        let memory = import(H::HOST_ALLOCATION_EXT, at).unwrap();
        gpu.device.free_memory(memory, None);
        std::alloc::dealloc(at, pages);
    }
}

#[test]
fn exports_to_other_devices_are_errors() {
    let gpu =
        Gpu::with_extensions(&[c"VK_KHR_external_fence", c"VK_KHR_external_semaphore", c"VK_KHR_external_memory"]);
    unsafe {
        let mut export = vk::ExportFenceCreateInfo::default().handle_types(vk::ExternalFenceHandleTypeFlags::SYNC_FD);
        let made = gpu.device.create_fence(&vk::FenceCreateInfo::default().push_next(&mut export), None);
        assert_eq!(made, Err(WRONG));
        let handle_types = vk::ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;
        let mut export = vk::ExportSemaphoreCreateInfo::default().handle_types(handle_types);
        let made = gpu.device.create_semaphore(&vk::SemaphoreCreateInfo::default().push_next(&mut export), None);
        assert_eq!(made, Err(WRONG));
        let fd = vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD;
        let mut export = vk::ExportMemoryAllocateInfo::default().handle_types(fd);
        let info = vk::MemoryAllocateInfo::default().allocation_size(64).push_next(&mut export);
        assert_eq!(gpu.device.allocate_memory(&info, None), Err(WRONG));
        let mut external = vk::ExternalMemoryBufferCreateInfo::default().handle_types(fd);
        let info = vk::BufferCreateInfo::default().size(64).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        assert_eq!(gpu.device.create_buffer(&info.push_next(&mut external), None), Err(WRONG));
        let mut external = vk::ExternalMemoryImageCreateInfo::default().handle_types(fd);
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(vk::Format::R8G8B8A8_UNORM)
            .extent(vk::Extent3D { width: 4, height: 4, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::STORAGE);
        assert_eq!(gpu.device.create_image(&info.push_next(&mut external), None), Err(WRONG));
    }
}

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "system" fn listen(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    let (id, text) = unsafe { (CStr::from_ptr((*data).p_message_id_name), CStr::from_ptr((*data).p_message)) };
    MESSAGES.lock().unwrap().push(format!("{} {}", id.to_string_lossy(), text.to_string_lossy()));
    vk::FALSE
}

#[test]
fn messengers_get_the_valid_usage_id() {
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
    let messages = MESSAGES.lock().unwrap();
    let size = "VUID-VkBufferCreateInfo-size-00912";
    assert!(
        messages.iter().any(|text| text.starts_with(size) && text.contains("vkCreateBuffer: size is 0")),
        "{messages:?}"
    );
}

/// Pools that are too large for any machine fail, and no table has the size that a program requests.
#[test]
fn pools_are_bounded() {
    let gpu = Gpu::new();
    let pool = |sets: u32, descriptors: u32| {
        let sizes = [vk::DescriptorPoolSize { ty: STORAGE, descriptor_count: descriptors }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        unsafe { gpu.device.create_descriptor_pool(&info, None) }
    };
    let memory =
        |result| matches!(result, Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
    assert!(memory(pool(u32::MAX, 1)));
    assert!(memory(pool(1, u32::MAX)));
    assert!(memory(pool(30, 30_000_000)));
    let large = pool(1 << 16, 1 << 22).unwrap();
    unsafe { gpu.device.destroy_descriptor_pool(large, None) };
}

/// A wait for no device or queue, which most drivers do not survive, is an error that says what is missing.
#[test]
fn waiting_for_nothing_says_so() {
    // In a separate process: messages without an object reach the listeners of all instances.
    let child = "SPELTER_TEST_NULL";
    if std::env::var_os(child).is_none() {
        let ended = rerun(std::env::current_exe().unwrap(), module_path!(), "waiting_for_nothing_says_so")
            .env(child, "1")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{errors}");
        for needed in
            ["vkDeviceWaitIdle: device is wrong: VK_NULL_HANDLE where a DEVICE is needed", "a QUEUE is needed"]
        {
            assert!(errors.contains(needed), "{errors}");
        }
        return;
    }
    let gpu = Gpu::new();
    let calls = gpu.device.fp_v1_0();
    assert_eq!(unsafe { (calls.device_wait_idle)(vk::Device::null()) }, WRONG);
    assert_eq!(unsafe { (calls.queue_wait_idle)(vk::Queue::null()) }, WRONG);
}
