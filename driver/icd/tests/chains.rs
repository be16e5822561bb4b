//! What programs ask before they compute: chains, lists, names, versions.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod common;

use ash::vk;
use common::Gpu;
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
    // Old loaders refuse drivers without these.
    for name in [c"vkGetPhysicalDeviceSparseImageFormatProperties", c"vkEnumerateDeviceLayerProperties"] {
        assert!(of_instance(instance, name));
        assert!(unsafe { vk_icdGetPhysicalDeviceProcAddr(instance, name.as_ptr()).is_some() });
    }
    assert!(unsafe { vk_icdGetPhysicalDeviceProcAddr(instance, c"vkCmdDispatch".as_ptr()).is_none() });
    assert!(of_device(c"vkCmdDispatch") && of_device(c"vkQueueSubmit2"));
    // Names in extensions are theirs alone, whatever became of the command.
    assert!(!of_device(c"vkQueueSubmit2KHR") && !of_device(c"vkGetBufferDeviceAddressKHR"));
    assert!(of_instance(instance, c"vkQueueSubmit2KHR"), "there is a device extension that has it");
    assert!(of_instance(instance, c"vkCreateDebugUtilsMessengerEXT") && of_device(c"vkCmdBeginDebugUtilsLabelEXT"));
    assert!(!of_instance(instance, c"vkGetPhysicalDeviceFeatures2KHR"), "an instance extension that is not enabled");
    assert!(!of_device(c"vkCreateInstance") && !of_device(c"vkGetPhysicalDeviceProperties"));
    assert!(!of_device(c"vkNoSuchCommand") && !of_instance(instance, c"vkCreateSwapchainKHR"));
    // An extension that was not enabled has no commands.
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
    assert!(list[all as usize - 1].extension_name_as_c_str().unwrap().is_empty(), "one too many was written");
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
    // One that nobody here knows is left as it is.
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
fn formats_and_memory_keep_vulkans_rules() {
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
    let image = |format, usage| unsafe {
        let (ty, tiling) = (vk::ImageType::TYPE_2D, vk::ImageTiling::OPTIMAL);
        let none = vk::ImageCreateFlags::empty();
        gpu.instance.get_physical_device_image_format_properties(gpu.physical, format, ty, tiling, usage, none)
    };
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
}
