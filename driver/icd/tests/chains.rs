//! Queries before a device is used: structure chains, enumerations, commands by name, versions.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common;
use crate::common::Gpu;
use ash::vk;
use vulkan_spelter::{
    vk_icdGetInstanceProcAddr, vk_icdGetPhysicalDeviceProcAddr, vk_icdNegotiateLoaderICDInterfaceVersion,
};

#[test]
fn the_loader_and_the_driver_agree_on_a_version() {
    let negotiate = |mut version: u32| {
        let result = unsafe { vk_icdNegotiateLoaderICDInterfaceVersion(&raw mut version) };
        (result, version)
    };
    assert_eq!(negotiate(5), (vk::Result::SUCCESS, 5));
    assert_eq!(negotiate(7), (vk::Result::SUCCESS, 7));
    assert_eq!(negotiate(9), (vk::Result::SUCCESS, 7));
    assert_eq!(negotiate(4).0, vk::Result::ERROR_INCOMPATIBLE_DRIVER);
    let null = unsafe { vk_icdNegotiateLoaderICDInterfaceVersion(std::ptr::null_mut()) };
    assert_eq!(null, vk::Result::ERROR_VALIDATION_FAILED_EXT);
}

#[test]
fn commands_are_found_where_they_belong() {
    let gpu = Gpu::new();
    let (none, instance) = (vk::Instance::null(), gpu.instance.handle());
    let of_instance =
        |instance, name: &std::ffi::CStr| unsafe { vk_icdGetInstanceProcAddr(instance, name.as_ptr()).is_some() };
    let of_device = |name: &std::ffi::CStr| unsafe {
        gpu.instance.get_device_proc_addr(gpu.device.handle(), name.as_ptr()).is_some()
    };
    assert!(of_instance(none, c"vkCreateInstance") && of_instance(none, c"vkEnumerateInstanceVersion"));
    assert!(!of_instance(none, c"vkCreateDevice") && of_instance(instance, c"vkCreateDevice"));
    // Old loaders reject drivers without these.
    for name in [c"vkGetPhysicalDeviceSparseImageFormatProperties", c"vkEnumerateDeviceLayerProperties"] {
        assert!(of_instance(instance, name));
        assert!(unsafe { vk_icdGetPhysicalDeviceProcAddr(instance, name.as_ptr()).is_some() });
    }
    assert!(unsafe { vk_icdGetPhysicalDeviceProcAddr(instance, c"vkCmdDispatch".as_ptr()).is_none() });
    assert!(of_device(c"vkCmdDispatch") && of_device(c"vkQueueSubmit2"));
    // The names of extension commands need their extension, even if the command is now in core.
    assert!(!of_device(c"vkQueueSubmit2KHR") && !of_device(c"vkGetBufferDeviceAddressKHR"));
    assert!(of_instance(instance, c"vkQueueSubmit2KHR"), "a device extension has it");
    assert!(of_instance(instance, c"vkCreateDebugUtilsMessengerEXT") && of_device(c"vkCmdBeginDebugUtilsLabelEXT"));
    assert!(!of_instance(instance, c"vkGetPhysicalDeviceFeatures2KHR"), "an instance extension that is not enabled");
    assert!(!of_device(c"vkCreateInstance") && !of_device(c"vkGetPhysicalDeviceProperties"));
    assert!(!of_device(c"vkNoSuchCommand") && !of_instance(instance, c"vkCreateSwapchainKHR"));
    // An extension that is not enabled has no commands.
    assert!(!of_device(c"vkCmdPushDescriptorSetKHR"));
    let pushes = Gpu::with_extensions(&[c"VK_KHR_push_descriptor"]);
    let found =
        unsafe { pushes.instance.get_device_proc_addr(pushes.device.handle(), c"vkCmdPushDescriptorSetKHR".as_ptr()) };
    assert!(found.is_some());
}

#[test]
fn lists_are_counted_then_filled() {
    let gpu = Gpu::new();
    let enumerate = gpu.instance.fp_v1_0().enumerate_device_extension_properties;
    let call = |count: &mut u32, to: *mut vk::ExtensionProperties| unsafe {
        enumerate(gpu.physical, std::ptr::null(), count, to)
    };
    let mut all = 0;
    assert_eq!(call(&mut all, std::ptr::null_mut()), vk::Result::SUCCESS);
    assert!(all > 20);
    let mut list = vec![vk::ExtensionProperties::default(); all as usize + 1];
    let mut count = all - 1;
    assert_eq!(call(&mut count, list.as_mut_ptr()), vk::Result::INCOMPLETE);
    assert_eq!(count, all - 1);
    assert!(list[all as usize - 1].extension_name_as_c_str().unwrap().is_empty(), "one element too many was written");
    let mut count = all + 1;
    assert_eq!(call(&mut count, list.as_mut_ptr()), vk::Result::SUCCESS);
    assert_eq!(count, all);
    let names: std::collections::BTreeSet<_> =
        list[..all as usize].iter().map(|e| e.extension_name_as_c_str().unwrap()).collect();
    assert_eq!(names.len(), all as usize, "a name is there twice");
}

#[test]
fn chains_are_filled_and_stay_chains() {
    let gpu = Gpu::new();
    let mut v11 = vk::PhysicalDeviceVulkan11Properties::default();
    let mut v12 = vk::PhysicalDeviceVulkan12Properties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    // An unknown structure is left unchanged.
    let mut unknown = vk::PhysicalDeviceRayTracingPipelinePropertiesKHR::default().max_ray_recursion_depth(77);
    let mut all = vk::PhysicalDeviceProperties2::default()
        .push_next(&mut v11)
        .push_next(&mut unknown)
        .push_next(&mut subgroup)
        .push_next(&mut v12);
    unsafe { gpu.instance.get_physical_device_properties2(gpu.physical, &mut all) };
    let name = all.properties.device_name_as_c_str().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("Spelter"), "{name}");
    assert_eq!(all.properties.device_type, vk::PhysicalDeviceType::CPU);
    assert_eq!((v11.subgroup_size, subgroup.subgroup_size), (16, 16));
    assert_eq!(v11.subgroup_supported_operations, subgroup.supported_operations);
    assert_eq!(v12.driver_name_as_c_str(), Ok(c"spelter"));
    assert_eq!(v12.driver_id.as_raw(), 0, "the registry has no number for this driver, and another's would be wrong");
    assert_eq!(v12.conformance_version.major, 0, "no conformance is claimed");
    assert_eq!(unknown.max_ray_recursion_depth, 77);
    assert_eq!(v11.s_type, vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    assert!(v12.p_next.cast_const().cast() == &raw const subgroup);
}

#[test]
fn a_feature_has_one_value_in_all_structures() {
    let gpu = Gpu::new();
    let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut v12);
    unsafe { gpu.instance.get_physical_device_features2(gpu.physical, &mut all) };
    let core = unsafe { gpu.instance.get_physical_device_features(gpu.physical) };
    assert_eq!((core.shader_int64, core.geometry_shader), (all.features.shader_int64, 0));
    let mut timeline = vk::PhysicalDeviceTimelineSemaphoreFeatures::default();
    let mut bytes = vk::PhysicalDevice8BitStorageFeatures::default();
    let mut all = vk::PhysicalDeviceFeatures2::default().push_next(&mut timeline).push_next(&mut bytes);
    unsafe { gpu.instance.get_physical_device_features2(gpu.physical, &mut all) };
    assert_eq!(timeline.timeline_semaphore, v12.timeline_semaphore);
    assert_eq!(bytes.storage_push_constant8, v12.storage_push_constant8);
}

#[test]
fn formats_and_memory_types_are_as_vulkan_requires() {
    let gpu = Gpu::new();
    let memory = unsafe { gpu.instance.get_physical_device_memory_properties(gpu.physical) };
    let types = memory.memory_types_as_slice();
    for (index, ty) in types.iter().enumerate() {
        let later = |other: &vk::MemoryType| {
            ty.property_flags.contains(other.property_flags) && other.property_flags != ty.property_flags
        };
        assert!(!types[index + 1..].iter().any(later), "a type with fewer flags comes first");
    }
    let coherent = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    assert!(types.iter().any(|ty| ty.property_flags.contains(coherent)));
    let with_flags = |format, usage, flags| unsafe {
        let (ty, tiling) = (vk::ImageType::TYPE_2D, vk::ImageTiling::OPTIMAL);
        gpu.instance.get_physical_device_image_format_properties(gpu.physical, format, ty, tiling, usage, flags)
    };
    let image = |format, usage| with_flags(format, usage, vk::ImageCreateFlags::empty());
    let good = image(vk::Format::R32_SFLOAT, vk::ImageUsageFlags::STORAGE).unwrap();
    assert_eq!(good.sample_counts, vk::SampleCountFlags::TYPE_1);
    let unsupported = vk::Result::ERROR_FORMAT_NOT_SUPPORTED;
    for (format, usage) in [
        (vk::Format::R32_SFLOAT, vk::ImageUsageFlags::COLOR_ATTACHMENT),
        (vk::Format::ASTC_4X4_UNORM_BLOCK, vk::ImageUsageFlags::SAMPLED),
        (vk::Format::UNDEFINED, vk::ImageUsageFlags::SAMPLED),
    ] {
        assert_eq!(image(format, usage).map(|_| ()), Err(unsupported), "{format:?}");
    }
    // Shaders write sRGB images through a view of another format.
    let (srgb, storage) = (vk::Format::R8G8B8A8_SRGB, vk::ImageUsageFlags::STORAGE);
    let mutable = vk::ImageCreateFlags::MUTABLE_FORMAT;
    assert_eq!(with_flags(srgb, storage, mutable).map(|_| ()), Err(unsupported));
    assert!(with_flags(srgb, storage, mutable | vk::ImageCreateFlags::EXTENDED_USAGE).is_ok());
    let three = vk::Format::R8G8B8_SRGB;
    let extended = with_flags(three, storage, mutable | vk::ImageCreateFlags::EXTENDED_USAGE);
    assert_eq!(extended.map(|_| ()), Err(unsupported), "no format with three bytes has storage images");
}

/// Enables every extension of the instance and of the device, and calls commands by their extension names.
#[test]
fn extension_commands_act_as_their_core_versions() {
    let entry = common::entry();
    let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_0);
    unsafe {
        let all = entry.enumerate_instance_extension_properties(None).unwrap();
        let names: Vec<_> = all.iter().map(|extension| extension.extension_name.as_ptr()).collect();
        let info = vk::InstanceCreateInfo::default().application_info(&app).enabled_extension_names(&names);
        let instance = entry.create_instance(&info, None).unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let groups = ash::khr::device_group_creation::Instance::new(&entry, &instance);
        let mut group = [vk::PhysicalDeviceGroupProperties::default()];
        groups.enumerate_physical_device_groups(&mut group).unwrap();
        assert_eq!((group[0].physical_device_count, group[0].physical_devices[0]), (1, physical));
        let asks = ash::khr::get_physical_device_properties2::Instance::new(&entry, &instance);
        let mut properties = vk::PhysicalDeviceProperties2::default();
        asks.get_physical_device_properties2(physical, &mut properties);
        let plain = instance.get_physical_device_properties(physical);
        assert_eq!(properties.properties.device_name_as_c_str(), plain.device_name_as_c_str());
        let mut features = vk::PhysicalDeviceFeatures2::default();
        asks.get_physical_device_features2(physical, &mut features);
        assert_eq!(features.features.shader_int64, vk::TRUE);
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default();
        asks.get_physical_device_memory_properties2(physical, &mut memory);
        assert_eq!(memory.memory_properties.memory_heap_count, 1);
        let mut wide = vk::FormatProperties3::default();
        let mut format = vk::FormatProperties2::default().push_next(&mut wide);
        asks.get_physical_device_format_properties2(physical, vk::Format::R32_SFLOAT, &mut format);
        let optimal = format.format_properties.optimal_tiling_features;
        let unformatted = vk::FormatFeatureFlags2::STORAGE_READ_WITHOUT_FORMAT;
        assert!(optimal.contains(vk::FormatFeatureFlags::STORAGE_IMAGE));
        assert!(wide.optimal_tiling_features.contains(vk::FormatFeatureFlags2::STORAGE_IMAGE | unformatted));
        let external = ash::khr::external_memory_capabilities::Instance::new(&entry, &instance);
        let imported = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        for (handle_type, wanted) in [
            (imported, vk::ExternalMemoryFeatureFlags::IMPORTABLE),
            (vk::ExternalMemoryHandleTypeFlags::OPAQUE_FD, vk::ExternalMemoryFeatureFlags::empty()),
        ] {
            let info = vk::PhysicalDeviceExternalBufferInfo::default()
                .usage(vk::BufferUsageFlags::STORAGE_BUFFER)
                .handle_type(handle_type);
            let mut reported = vk::ExternalBufferProperties::default();
            (external.fp().get_physical_device_external_buffer_properties_khr)(
                physical,
                &raw const info,
                &raw mut reported,
            );
            assert_eq!(reported.external_memory_properties.external_memory_features, wanted);
        }
        let ask = |name: &std::ffi::CStr| entry.get_instance_proc_addr(instance.handle(), name.as_ptr()).unwrap();
        let of_fences: vk::PFN_vkGetPhysicalDeviceExternalFenceProperties =
            std::mem::transmute::<unsafe extern "system" fn(), _>(ask(
                c"vkGetPhysicalDeviceExternalFencePropertiesKHR",
            ));
        let info =
            vk::PhysicalDeviceExternalFenceInfo::default().handle_type(vk::ExternalFenceHandleTypeFlags::SYNC_FD);
        let mut reported = vk::ExternalFenceProperties::default();
        of_fences(physical, &raw const info, &raw mut reported);
        assert!(reported.external_fence_features.is_empty(), "no fence can be exported");
        let of_semaphores: vk::PFN_vkGetPhysicalDeviceExternalSemaphoreProperties =
            std::mem::transmute::<unsafe extern "system" fn(), _>(ask(
                c"vkGetPhysicalDeviceExternalSemaphorePropertiesKHR",
            ));
        let info = vk::PhysicalDeviceExternalSemaphoreInfo::default()
            .handle_type(vk::ExternalSemaphoreHandleTypeFlags::SYNC_FD);
        let mut reported = vk::ExternalSemaphoreProperties::default();
        of_semaphores(physical, &raw const info, &raw mut reported);
        assert!(reported.external_semaphore_features.is_empty());
        let all = instance.enumerate_device_extension_properties(physical).unwrap();
        let names: Vec<_> = all.iter().map(|extension| extension.extension_name.as_ptr()).collect();
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&names);
        let device = instance.create_device(physical, &info, None).unwrap();
        let mut list = [vk::PhysicalDeviceToolProperties::default()];
        let mut count = 1;
        let ask = entry.get_instance_proc_addr(instance.handle(), c"vkGetPhysicalDeviceToolPropertiesEXT".as_ptr());
        let ask: vk::PFN_vkGetPhysicalDeviceToolProperties =
            std::mem::transmute::<unsafe extern "system" fn(), _>(ask.unwrap());
        assert_eq!(ask(physical, &raw mut count, list.as_mut_ptr()), vk::Result::SUCCESS);
        assert_eq!((count, list[0].name_as_c_str()), (1, Ok(c"spelter")));
        extensions_of_a_device(&instance, &device);
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
}

fn extensions_of_a_device(instance: &ash::Instance, device: &ash::Device) {
    unsafe {
        let usage = vk::BufferUsageFlags::TRANSFER_DST;
        let buffer = device.create_buffer(&vk::BufferCreateInfo::default().size(64).usage(usage), None).unwrap();
        let needs = ash::khr::get_memory_requirements2::Device::new(instance, device);
        let mut dedicated = vk::MemoryDedicatedRequirements::default();
        let mut reported = vk::MemoryRequirements2::default().push_next(&mut dedicated);
        let info = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer);
        needs.get_buffer_memory_requirements2(&info, &mut reported);
        let reported = reported.memory_requirements;
        assert_eq!((reported.size, dedicated.requires_dedicated_allocation), (64, vk::FALSE));
        let mut own = vk::MemoryDedicatedAllocateInfo::default().buffer(buffer);
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(reported.size).memory_type_index(2).push_next(&mut own);
        let memory = device.allocate_memory(&info, None).unwrap();
        let binds = ash::khr::bind_memory2::Device::new(instance, device);
        let info = vk::BindBufferMemoryInfo::default().buffer(buffer).memory(memory);
        (binds.fp().bind_buffer_memory2_khr)(device.handle(), 1, &raw const info).result().unwrap();
        assert!(device.bind_buffer_memory(buffer, memory, 0).is_err(), "already bound");
        let query = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(1);
        let query = device.create_query_pool(&query, None).unwrap();
        let resets = ash::ext::host_query_reset::Device::new(instance, device);
        (resets.fp().reset_query_pool_ext)(device.handle(), query, 0, 1);
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        let trims = ash::khr::maintenance1::Device::new(instance, device);
        trims.trim_command_pool(pool, vk::CommandPoolTrimFlags::empty());
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).unwrap();
        let group = ash::khr::device_group::Device::new(instance, device);
        assert!(group.get_device_group_peer_memory_features(0, 0, 0).contains(vk::PeerMemoryFeatureFlags::COPY_DST));
        device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
        group.cmd_set_device_mask(commands[0], 1);
        device.cmd_fill_buffer(commands[0], buffer, 0, 64, 7);
        device.end_command_buffer(commands[0]).unwrap();
        let queue = device.get_device_queue(0, 0);
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        device.queue_submit(queue, &[submit], vk::Fence::null()).unwrap();
        device.queue_wait_idle(queue).unwrap();
        let mapped = device.map_memory(memory, 0, 64, vk::MemoryMapFlags::empty()).unwrap();
        assert_eq!(mapped.cast::<u32>().read_volatile(), 7);
        device.destroy_query_pool(query, None);
        device.destroy_command_pool(pool, None);
        device.destroy_buffer(buffer, None);
        device.free_memory(memory, None);
    }
}

#[test]
fn the_memory_budget_includes_usage() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_memory_budget"]);
    let ask = || {
        let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
        let mut memory = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
        unsafe { gpu.instance.get_physical_device_memory_properties2(gpu.physical, &mut memory) };
        (budget.heap_budget[0], budget.heap_usage[0])
    };
    let (size, info) = (64 << 20, vk::MemoryAllocateInfo::default());
    let memory = unsafe { gpu.device.allocate_memory(&info.allocation_size(size), None).unwrap() };
    let (budget, usage) = ask();
    // Other tests of this program may use memory, too.
    assert!(usage >= size && budget >= usage, "{usage} of {budget}");
    unsafe { gpu.device.free_memory(memory, None) };
    assert!(ask().1 < usage);
}

#[test]
fn clocks_are_read_together() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_calibrated_timestamps", c"VK_EXT_calibrated_timestamps"]);
    let (entry, instance) = (&gpu.entry, &gpu.instance);
    unsafe {
        let ask = |name: &std::ffi::CStr| entry.get_instance_proc_addr(instance.handle(), name.as_ptr()).unwrap();
        let of = |name: &std::ffi::CStr| instance.get_device_proc_addr(gpu.device.handle(), name.as_ptr()).unwrap();
        for (domains, read) in [
            (c"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR", c"vkGetCalibratedTimestampsKHR"),
            (c"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", c"vkGetCalibratedTimestampsEXT"),
        ] {
            let domains: vk::PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR =
                std::mem::transmute::<unsafe extern "system" fn(), _>(ask(domains));
            let read: vk::PFN_vkGetCalibratedTimestampsKHR =
                std::mem::transmute::<unsafe extern "system" fn(), _>(of(read));
            let mut list = [vk::TimeDomainKHR::default(); 4];
            let mut count = 4;
            assert_eq!(domains(gpu.physical, &raw mut count, list.as_mut_ptr()), vk::Result::SUCCESS);
            assert_eq!(list[..count as usize], [vk::TimeDomainKHR::DEVICE, vk::TimeDomainKHR::CLOCK_MONOTONIC]);
            let infos = [0, 1].map(|index| vk::CalibratedTimestampInfoKHR::default().time_domain(list[index]));
            let look = || {
                let (mut times, mut deviation) = ([0u64; 2], u64::MAX);
                let device = gpu.device.handle();
                let result = read(device, 2, infos.as_ptr(), times.as_mut_ptr(), &raw mut deviation);
                (result, times, deviation)
            };
            let (first, pause) = (look(), std::time::Duration::from_millis(5));
            std::thread::sleep(pause);
            let second = look();
            assert_eq!((first.0, second.0), (vk::Result::SUCCESS, vk::Result::SUCCESS));
            let passed = second.1[0] - first.1[0];
            assert!(passed >= 5_000_000 && first.1[0].abs_diff(first.1[1]) <= first.2, "{first:?} {second:?}");
            let wrong = [vk::CalibratedTimestampInfoKHR::default().time_domain(vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW)];
            let (mut time, mut deviation) = (0, 0);
            let result = read(gpu.device.handle(), 1, wrong.as_ptr(), &raw mut time, &raw mut deviation);
            assert_eq!(result, vk::Result::ERROR_VALIDATION_FAILED_EXT);
        }
    }
}

#[test]
fn texel_buffers_have_the_reported_alignment() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_texel_buffer_alignment"]);
    let mut alignment = vk::PhysicalDeviceTexelBufferAlignmentProperties::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut alignment);
    unsafe { gpu.instance.get_physical_device_properties2(gpu.physical, &mut all) };
    let limit = all.properties.limits.min_texel_buffer_offset_alignment;
    let step = alignment.storage_texel_buffer_offset_alignment_bytes;
    assert!(step > 0 && step <= limit && alignment.uniform_texel_buffer_offset_alignment_bytes <= limit);
    let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER);
    unsafe {
        let buffer = gpu.device.create_buffer(&info, None).unwrap();
        let needs = gpu.device.get_buffer_memory_requirements(buffer);
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let memory = gpu.device.allocate_memory(&info, None).unwrap();
        gpu.device.bind_buffer_memory(buffer, memory, 0).unwrap();
        let view = |offset| {
            let info = vk::BufferViewCreateInfo::default().buffer(buffer).format(vk::Format::R32_UINT);
            gpu.device.create_buffer_view(&info.offset(offset).range(64), None)
        };
        gpu.device.destroy_buffer_view(view(step).unwrap(), None);
        assert_eq!(view(step / 2), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        gpu.device.destroy_buffer(buffer, None);
        gpu.device.free_memory(memory, None);
    }
}
