//! Features of Vulkan 1.4 that are supported as extensions (maintenance5, host image copies, global priorities), and
//! the two structures of the version itself.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common;
use std::ffi::c_void;

use crate::common::Gpu;
use ash::vk::{self, ImageLayout as L};

const WRONG: vk::Result = vk::Result::ERROR_VALIDATION_FAILED_EXT;
const EXTENT: vk::Extent3D = vk::Extent3D { width: 5, height: 3, depth: 1 };

fn layers(base: u32, count: u32) -> vk::ImageSubresourceLayers {
    let aspect_mask = vk::ImageAspectFlags::COLOR;
    vk::ImageSubresourceLayers { aspect_mask, mip_level: 0, base_array_layer: base, layer_count: count }
}

fn range() -> vk::ImageSubresourceRange {
    vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR).level_count(1).layer_count(2)
}

fn info() -> vk::ImageCreateInfo<'static> {
    vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(vk::Format::R32_UINT)
        .extent(EXTENT)
        .mip_levels(1)
        .array_layers(2)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::HOST_TRANSFER_EXT)
}

fn image(gpu: &Gpu, info: &vk::ImageCreateInfo<'_>) -> (vk::Image, vk::DeviceMemory) {
    unsafe {
        let image = gpu.device.create_image(info, None).unwrap();
        let needs = gpu.device.get_image_memory_requirements(image);
        let memory = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let memory = gpu.device.allocate_memory(&memory, None).unwrap();
        gpu.device.bind_image_memory(image, memory, 0).unwrap();
        (image, memory)
    }
}

fn destroy(gpu: &Gpu, (image, memory): (vk::Image, vk::DeviceMemory)) {
    unsafe {
        gpu.device.destroy_image(image, None);
        gpu.device.free_memory(memory, None);
    }
}

#[test]
fn the_host_copies_from_and_to_images() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_host_image_copy"]);
    let host = ash::ext::host_image_copy::Device::new(&gpu.instance, &gpu.device);
    let words: Vec<u32> = (0..30).map(|word| 7 + 3 * word).collect();
    let (first, second) = (image(&gpu, &info()), image(&gpu, &info()));
    unsafe {
        let to_general = |image| {
            vk::HostImageLayoutTransitionInfoEXT::default()
                .image(image)
                .new_layout(L::GENERAL)
                .subresource_range(range())
        };
        host.transition_image_layout(&[to_general(first.0), to_general(second.0)]).unwrap();
        assert_eq!(host.transition_image_layout(&[to_general(first.0).new_layout(L::PRESENT_SRC_KHR)]), Err(WRONG));
        // One layer at a time: tightly packed, and with a row pitch.
        let up = |words: &[u32], layer| {
            vk::MemoryToImageCopyEXT::default()
                .host_pointer(words.as_ptr().cast())
                .image_subresource(layers(layer, 1))
                .image_extent(EXTENT)
        };
        let upload = |regions: &[vk::MemoryToImageCopyEXT<'_>], flags| {
            let info = vk::CopyMemoryToImageInfoEXT::default().dst_image(first.0).dst_image_layout(L::GENERAL);
            host.copy_memory_to_image(&info.regions(regions).flags(flags))
        };
        let wide: Vec<u32> = (0..3).flat_map(|y| words[15 + 5 * y..20 + 5 * y].iter().copied().chain([0; 3])).collect();
        let none = vk::HostImageCopyFlagsEXT::empty();
        upload(&[up(&words[..15], 0)], vk::HostImageCopyFlagsEXT::MEMCPY).unwrap();
        upload(&[up(&wide, 1).memory_row_length(8)], none).unwrap();
        // An invalid copy copies nothing.
        for (region, flags) in [
            (up(&words, 0).memory_row_length(8), vk::HostImageCopyFlagsEXT::MEMCPY),
            (up(&words, 0).image_extent(vk::Extent3D { width: 1, ..EXTENT }), vk::HostImageCopyFlagsEXT::MEMCPY),
            (up(&words, 2), none),
            (up(&words, 0).memory_row_length(4), none),
            (up(&words, 0).image_offset(vk::Offset3D { x: -1, y: 0, z: 0 }), none),
            (vk::MemoryToImageCopyEXT { p_host_pointer: std::ptr::null(), ..up(&words, 0) }, none),
        ] {
            assert_eq!(upload(&[up(&words[15..], 0), region], flags), Err(WRONG));
        }
        let regions =
            [vk::ImageCopy2::default().src_subresource(layers(0, 2)).dst_subresource(layers(0, 2)).extent(EXTENT)];
        let copy = vk::CopyImageToImageInfoEXT::default()
            .src_image(first.0)
            .src_image_layout(L::GENERAL)
            .dst_image(second.0)
            .dst_image_layout(L::GENERAL)
            .regions(&regions);
        host.copy_image_to_image(&copy).unwrap();
        let mut back = vec![0u32; 30];
        let down = vk::ImageToMemoryCopyEXT::default()
            .host_pointer(back.as_mut_ptr().cast::<c_void>())
            .image_subresource(layers(0, 2))
            .image_extent(EXTENT);
        let regions = [down];
        let info = vk::CopyImageToMemoryInfoEXT::default().src_image(second.0).src_image_layout(L::GENERAL);
        host.copy_image_to_memory(&info.regions(&regions)).unwrap();
        assert_eq!(back, words);
        let wrong = vk::CopyImageToMemoryInfoEXT::default().src_image(second.0).src_image_layout(L::UNDEFINED);
        assert_eq!(host.copy_image_to_memory(&wrong.regions(&regions)), Err(WRONG));
        // The texels are visible to queues, too.
        let out = gpu.buffer(30);
        let commands = gpu.record(|device, commands| {
            let region = vk::BufferImageCopy::default().image_subresource(layers(0, vk::REMAINING_ARRAY_LAYERS));
            let region = region.image_extent(EXTENT);
            device.cmd_copy_image_to_buffer(commands, second.0, L::GENERAL, out.raw, &[region]);
        });
        gpu.run(commands.unwrap());
        assert_eq!(out.read(), words);
        gpu.destroy_buffer(out);
        let mut size = vk::SubresourceHostMemcpySizeEXT::default();
        let mut layout = vk::SubresourceLayout2EXT::default().push_next(&mut size);
        let subresource = vk::ImageSubresource { aspect_mask: vk::ImageAspectFlags::COLOR, ..Default::default() };
        let of = vk::ImageSubresource2EXT::default().image_subresource(subresource);
        host.get_image_subresource_layout2(first.0, &of, &mut layout);
        assert_eq!(size.size, 15 * 4);
    }
    destroy(&gpu, first);
    destroy(&gpu, second);
}

#[test]
fn properties_of_host_copies_are_reported() {
    let gpu = Gpu::new();
    unsafe {
        let mut known = vk::PhysicalDeviceHostImageCopyPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut known);
        gpu.instance.get_physical_device_properties2(gpu.physical, &mut all);
        let count = known.copy_src_layout_count as usize;
        assert!(count > 3 && known.copy_dst_layout_count as usize == count);
        let (mut from, mut to) = (vec![L::UNDEFINED; count], vec![L::UNDEFINED; 2]);
        let mut known = vk::PhysicalDeviceHostImageCopyPropertiesEXT::default()
            .copy_src_layouts(&mut from)
            .copy_dst_layouts(&mut to);
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut known);
        gpu.instance.get_physical_device_properties2(gpu.physical, &mut all);
        assert_eq!((known.copy_src_layout_count as usize, known.copy_dst_layout_count), (count, 2));
        assert!(from.contains(&L::GENERAL) && from.contains(&L::SHADER_READ_ONLY_OPTIMAL) && from[..2] == to[..]);
        // Formats that queues can copy; the usage costs nothing.
        let mut wide = vk::FormatProperties3::default();
        let mut all = vk::FormatProperties2::default().push_next(&mut wide);
        gpu.instance.get_physical_device_format_properties2(gpu.physical, vk::Format::R32_UINT, &mut all);
        assert!(wide.optimal_tiling_features.contains(vk::FormatFeatureFlags2::HOST_IMAGE_TRANSFER_EXT));
        let mut cost = vk::HostImageCopyDevicePerformanceQueryEXT::default();
        let mut all = vk::ImageFormatProperties2::default().push_next(&mut cost);
        let question = vk::PhysicalDeviceImageFormatInfo2::default()
            .format(vk::Format::R32_UINT)
            .ty(vk::ImageType::TYPE_2D)
            .usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::HOST_TRANSFER_EXT);
        gpu.instance.get_physical_device_image_format_properties2(gpu.physical, &question, &mut all).unwrap();
        assert_eq!((cost.optimal_device_access, cost.identical_memory_layout), (vk::TRUE, vk::TRUE));
    }
}

#[test]
fn maintenance5_reports_layouts_of_images_that_are_not_created() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_maintenance5"]);
    let newer = ash::khr::maintenance5::Device::new(&gpu.instance, &gpu.device);
    let made = image(&gpu, &info());
    unsafe {
        let subresource =
            vk::ImageSubresource { aspect_mask: vk::ImageAspectFlags::COLOR, mip_level: 0, array_layer: 1 };
        let of = vk::ImageSubresource2KHR::default().image_subresource(subresource);
        let (mut one, mut other) = (vk::SubresourceLayout2KHR::default(), vk::SubresourceLayout2KHR::default());
        newer.get_image_subresource_layout2(made.0, &of, &mut one);
        let create = info();
        let info = vk::DeviceImageSubresourceInfoKHR::default().create_info(&create).subresource(&of);
        newer.get_device_image_subresource_layout(&info, &mut other);
        let (one, other) = (one.subresource_layout, other.subresource_layout);
        assert!(one.offset > 0 && one.size >= 60, "{one:?}");
        assert_eq!((one.offset, one.size, one.row_pitch), (other.offset, other.size, other.row_pitch));
        let area = newer.get_rendering_area_granularity(&vk::RenderingAreaInfoKHR::default());
        assert_eq!((area.width, area.height), (1, 1));
        // Graphics commands fail here, too.
        let index = gpu.record(|_, commands| {
            newer.cmd_bind_index_buffer2(commands, vk::Buffer::null(), 0, 4, vk::IndexType::UINT32);
        });
        assert_eq!(index, Err(vk::Result::ERROR_FEATURE_NOT_PRESENT));
    }
    destroy(&gpu, made);
}

#[test]
fn maintenance5_has_wider_flags() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_maintenance5"]);
    let source = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = 1234u; }";
    let program = gpu.program(source, &[vk::DescriptorType::STORAGE_BUFFER], Default::default());
    unsafe {
        // A pipeline that has to be compiled: no other has its constant.
        let words = common::spirv(&source.replace("1234u", "4321u"));
        let mut module = vk::ShaderModuleCreateInfo::default().code(&words);
        let mut flags = vk::PipelineCreateFlags2CreateInfoKHR::default()
            .flags(vk::PipelineCreateFlags2KHR::FAIL_ON_PIPELINE_COMPILE_REQUIRED);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .name(c"main")
            .push_next(&mut module);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(program.layout).push_next(&mut flags);
        let made = gpu.pipeline(vk::PipelineCache::null(), &info);
        assert_eq!(made, Err(vk::Result::PIPELINE_COMPILE_REQUIRED));
        // A view with fewer usages than its buffer, in a format that does not support all of them.
        let both = vk::BufferUsageFlags2KHR::UNIFORM_TEXEL_BUFFER | vk::BufferUsageFlags2KHR::STORAGE_TEXEL_BUFFER;
        let mut usage = vk::BufferUsageFlags2CreateInfoKHR::default().usage(both);
        let info = vk::BufferCreateInfo::default().size(64).push_next(&mut usage);
        let buffer = gpu.device.create_buffer(&info, None).unwrap();
        let memory = vk::MemoryAllocateInfo::default().allocation_size(64);
        let memory = gpu.device.allocate_memory(&memory, None).unwrap();
        gpu.device.bind_buffer_memory(buffer, memory, 0).unwrap();
        let view = |usage| {
            let mut usage = vk::BufferUsageFlags2CreateInfoKHR::default().usage(usage);
            let info = vk::BufferViewCreateInfo::default().buffer(buffer).range(vk::WHOLE_SIZE);
            let info = info.format(vk::Format::R5G6B5_UNORM_PACK16).push_next(&mut usage);
            gpu.device.create_buffer_view(&info, None)
        };
        let good = view(vk::BufferUsageFlags2KHR::UNIFORM_TEXEL_BUFFER).unwrap();
        assert_eq!(view(both), Err(WRONG), "storage is not supported for the format");
        assert_eq!(view(vk::BufferUsageFlags2KHR::TRANSFER_SRC), Err(WRONG));
        gpu.device.destroy_buffer_view(good, None);
        gpu.device.destroy_buffer(buffer, None);
        gpu.device.free_memory(memory, None);
    }
    gpu.destroy_program(program);
}

#[test]
fn maintenance5_brings_two_formats() {
    let gpu = Gpu::new();
    for (format, bytes) in [(vk::Format::A8_UNORM_KHR, 1), (vk::Format::A1B5G5R5_UNORM_PACK16_KHR, 2)] {
        let wanted = vk::FormatFeatureFlags::SAMPLED_IMAGE
            | vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR
            | vk::FormatFeatureFlags::TRANSFER_SRC
            | vk::FormatFeatureFlags::TRANSFER_DST;
        let has = unsafe { gpu.instance.get_physical_device_format_properties(gpu.physical, format) };
        assert!(has.optimal_tiling_features.contains(wanted), "{format:?}");
        // The driver's internal number of the format is invalid.
        let info = info().format(format).usage(vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_DST);
        let made = image(&gpu, &info);
        let layout = unsafe { gpu.device.get_image_subresource_layout(made.0, Default::default()) };
        assert!(layout.row_pitch >= 5 * bytes, "{layout:?}");
        destroy(&gpu, made);
    }
    for number in 128..130 {
        let format = vk::Format::from_raw(number);
        let has = unsafe { gpu.instance.get_physical_device_format_properties(gpu.physical, format) };
        assert_eq!(has.optimal_tiling_features, vk::FormatFeatureFlags::empty(), "{format:?}");
    }
}

/// Whether a device of an instance of Vulkan 1.`minor`, with or without `maintenance5`, has a command.
fn has(minor: u32, maintenance5: bool, command: &std::ffi::CStr) -> bool {
    let entry = common::entry();
    let app = vk::ApplicationInfo::default().api_version(vk::make_api_version(0, 1, minor, 0));
    unsafe {
        let instance = entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&app), None).unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let mut features = vk::PhysicalDeviceMaintenance5FeaturesKHR::default().maintenance5(maintenance5);
        let names = [c"VK_KHR_maintenance5".as_ptr()];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names)
            .push_next(&mut features);
        let device = instance.create_device(physical, &info, None).unwrap();
        let found = instance.get_device_proc_addr(device.handle(), command.as_ptr()).is_some();
        device.destroy_device(None);
        instance.destroy_instance(None);
        found
    }
}

#[test]
fn maintenance5_hides_commands_that_are_newer_than_the_instance() {
    for (minor, command, hidden) in [
        (0, c"vkCmdDispatch", false),
        (0, c"vkTrimCommandPool", true),
        (1, c"vkTrimCommandPool", false),
        (2, c"vkQueueSubmit2", true),
        (3, c"vkQueueSubmit2", false),
        (1, c"vkResetQueryPool", true),
        (1, c"vkGetImageSubresourceLayout2KHR", false),
    ] {
        assert_eq!((has(minor, true, command), has(minor, false, command)), (!hidden, true), "{minor} {command:?}");
    }
}

#[test]
fn queues_have_one_global_priority() {
    let gpu = Gpu::new();
    type P = vk::QueueGlobalPriorityKHR;
    unsafe {
        let mut priorities = vk::QueueFamilyGlobalPriorityPropertiesKHR::default();
        let mut families = [vk::QueueFamilyProperties2::default().push_next(&mut priorities)];
        gpu.instance.get_physical_device_queue_family_properties2(gpu.physical, &mut families);
        assert_eq!(priorities.priorities[..priorities.priority_count as usize], [P::MEDIUM]);
        for (priority, wanted) in
            [(P::MEDIUM, None), (P::REALTIME, Some(vk::Result::ERROR_NOT_PERMITTED_KHR)), (P::from_raw(3), Some(WRONG))]
        {
            let mut asked = vk::DeviceQueueGlobalPriorityCreateInfoKHR::default().global_priority(priority);
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0]).push_next(&mut asked)];
            let names = [c"VK_KHR_global_priority".as_ptr()];
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&names);
            let made = gpu.instance.create_device(gpu.physical, &info, None);
            assert_eq!(made.as_ref().err().copied(), wanted, "{priority:?}");
            made.into_iter().for_each(|device| device.destroy_device(None));
        }
    }
}

/// A structure of Vulkan 1.4: its `sType` and `pNext`, then words.
#[repr(C)]
struct Raw<const N: usize> {
    s_type: vk::StructureType,
    p_next: *mut c_void,
    words: [u32; N],
}

#[test]
fn the_structures_of_version_1_4_are_filled() {
    let gpu = Gpu::new();
    unsafe {
        let mut maintenance6 = vk::PhysicalDeviceMaintenance6FeaturesKHR::default();
        let next = (&raw mut maintenance6).cast();
        let mut features = Raw { s_type: vk::StructureType::from_raw(55), p_next: next, words: [7; 22] };
        let mut all = vk::PhysicalDeviceFeatures2 { p_next: (&raw mut features).cast(), ..Default::default() };
        gpu.instance.get_physical_device_features2(gpu.physical, &mut all);
        let on: Vec<usize> = (0..21).filter(|&word| features.words[word] == 1).collect();
        // In the registry's order, from globalPriorityQuery to pushDescriptor; the last word is padding.
        assert_eq!(on, [0, 1, 2, 4, 15, 16, 18, 19, 20]);
        assert!(features.words[21] == 7 && features.words[..21].iter().all(|&word| word < 2));
        assert_eq!((maintenance6.maintenance6, features.p_next), (vk::TRUE, next));
        // 19 words from lineSubPixelPrecisionBits, two counts with their lists, 16 bytes, a flag.
        let mut properties =
            Raw { s_type: vk::StructureType::from_raw(56), p_next: std::ptr::null_mut(), words: [0; 32] };
        let mut push = vk::PhysicalDevicePushDescriptorPropertiesKHR::default();
        properties.p_next = (&raw mut push).cast();
        let mut all = vk::PhysicalDeviceProperties2 { p_next: (&raw mut properties).cast(), ..Default::default() };
        gpu.instance.get_physical_device_properties2(gpu.physical, &mut all);
        let words = properties.words;
        assert_eq!(words[3], push.max_push_descriptors, "maxPushDescriptors");
        assert_eq!(words[13], 1, "maxCombinedImageSamplerDescriptorCount");
        assert_eq!(words[15], vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2.as_raw().cast_unsigned());
        assert!(words[19] > 3 && words[19] == words[22], "as many layouts to copy from as to");
        assert_eq!(words[30], vk::TRUE, "identicalMemoryTypeRequirements");
        // Features that are not supported cannot be enabled through any structure.
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        for (word, wanted) in [(16, None), (3, Some(vk::Result::ERROR_FEATURE_NOT_PRESENT))] {
            let mut words = [0; 22];
            words[word] = vk::TRUE;
            let mut asked = Raw { s_type: vk::StructureType::from_raw(55), p_next: std::ptr::null_mut(), words };
            let mut info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
            info.p_next = (&raw mut asked).cast();
            let made = gpu.instance.create_device(gpu.physical, &info, None);
            assert_eq!(made.as_ref().err().copied(), wanted, "{word}");
            made.into_iter().for_each(|device| device.destroy_device(None));
        }
    }
}
