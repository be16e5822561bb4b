//! The physical device: the queries before a device is created.

pub(crate) mod extensions;
pub(crate) mod features;
pub(crate) mod formats;
pub(crate) mod limits;
pub(crate) mod memory_types;
pub(crate) mod properties;
mod structures;
pub(crate) mod versions;

use std::collections::HashSet;
use std::ffi::c_char;
use std::sync::Arc;

use ash::vk;

use crate::c::entry::entry_points;
use crate::c::{In, InOut, Out, OutChain, OutMany, fixed, list, list_chains};
use crate::current_call::Owner;
use crate::error::Error;
use crate::options::Options;
use crate::table::{Ref, object};
use features::Supported;
use formats::ImageQuery;
use properties::DeviceProperties;

entry_points! {
    PFN_vkGetPhysicalDeviceProperties(
        physical_device: vk::PhysicalDevice, p_properties: *mut vk::PhysicalDeviceProperties,
    ) => properties;
    PFN_vkGetPhysicalDeviceProperties2(
        physical_device: vk::PhysicalDevice, p_properties: *mut vk::PhysicalDeviceProperties2<'_>,
    ) => properties2;
    PFN_vkGetPhysicalDeviceFeatures(
        physical_device: vk::PhysicalDevice, p_features: *mut vk::PhysicalDeviceFeatures,
    ) => features;
    PFN_vkGetPhysicalDeviceFeatures2(
        physical_device: vk::PhysicalDevice, p_features: *mut vk::PhysicalDeviceFeatures2<'_>,
    ) => features2;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties(
        physical_device: vk::PhysicalDevice, p_queue_family_property_count: *mut u32,
        p_queue_family_properties: *mut vk::QueueFamilyProperties,
    ) => families;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties2(
        physical_device: vk::PhysicalDevice, p_queue_family_property_count: *mut u32,
        p_queue_family_properties: *mut vk::QueueFamilyProperties2<'_>,
    ) => families2;
    PFN_vkGetPhysicalDeviceMemoryProperties(
        physical_device: vk::PhysicalDevice, p_memory_properties: *mut vk::PhysicalDeviceMemoryProperties,
    ) => memory;
    PFN_vkGetPhysicalDeviceMemoryProperties2(
        physical_device: vk::PhysicalDevice, p_memory_properties: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
    ) => memory2;
    PFN_vkGetPhysicalDeviceFormatProperties(
        physical_device: vk::PhysicalDevice, format: vk::Format, p_format_properties: *mut vk::FormatProperties,
    ) => format_properties;
    PFN_vkGetPhysicalDeviceFormatProperties2(
        physical_device: vk::PhysicalDevice, format: vk::Format, p_format_properties: *mut vk::FormatProperties2<'_>,
    ) => format_properties2;
    PFN_vkGetPhysicalDeviceImageFormatProperties(
        physical_device: vk::PhysicalDevice, format: vk::Format, ty: vk::ImageType, tiling: vk::ImageTiling,
        usage: vk::ImageUsageFlags, flags: vk::ImageCreateFlags,
        p_image_format_properties: *mut vk::ImageFormatProperties,
    ) -> vk::Result => image_format;
    PFN_vkGetPhysicalDeviceImageFormatProperties2(
        physical_device: vk::PhysicalDevice, p_image_format_info: *const vk::PhysicalDeviceImageFormatInfo2<'_>,
        p_image_format_properties: *mut vk::ImageFormatProperties2<'_>,
    ) -> vk::Result => image_format2;
    PFN_vkGetPhysicalDeviceSparseImageFormatProperties(
        physical_device: vk::PhysicalDevice, format: vk::Format, ty: vk::ImageType, samples: vk::SampleCountFlags,
        usage: vk::ImageUsageFlags, tiling: vk::ImageTiling, p_property_count: *mut u32,
        p_properties: *mut vk::SparseImageFormatProperties,
    ) => sparse;
    PFN_vkGetPhysicalDeviceSparseImageFormatProperties2(
        physical_device: vk::PhysicalDevice, p_format_info: *const vk::PhysicalDeviceSparseImageFormatInfo2<'_>,
        p_property_count: *mut u32, p_properties: *mut vk::SparseImageFormatProperties2<'_>,
    ) => sparse2;
    PFN_vkGetPhysicalDeviceExternalBufferProperties(
        physical_device: vk::PhysicalDevice, p_external_buffer_info: *const vk::PhysicalDeviceExternalBufferInfo<'_>,
        p_external_buffer_properties: *mut vk::ExternalBufferProperties<'_>,
    ) => external_buffer;
    PFN_vkGetPhysicalDeviceExternalFenceProperties(
        physical_device: vk::PhysicalDevice, p_external_fence_info: *const vk::PhysicalDeviceExternalFenceInfo<'_>,
        p_external_fence_properties: *mut vk::ExternalFenceProperties<'_>,
    ) => external_fence;
    PFN_vkGetPhysicalDeviceExternalSemaphoreProperties(
        physical_device: vk::PhysicalDevice,
        p_external_semaphore_info: *const vk::PhysicalDeviceExternalSemaphoreInfo<'_>,
        p_external_semaphore_properties: *mut vk::ExternalSemaphoreProperties<'_>,
    ) => external_semaphore;
    PFN_vkEnumerateDeviceExtensionProperties(
        physical_device: vk::PhysicalDevice, p_layer_name: *const c_char, p_property_count: *mut u32,
        p_properties: *mut vk::ExtensionProperties,
    ) -> vk::Result => device_extensions;
    PFN_vkEnumerateDeviceLayerProperties(
        physical_device: vk::PhysicalDevice, p_property_count: *mut u32, p_properties: *mut vk::LayerProperties,
    ) -> vk::Result => device_layers;
    PFN_vkGetPhysicalDeviceToolProperties(
        physical_device: vk::PhysicalDevice, p_tool_count: *mut u32,
        p_tool_properties: *mut vk::PhysicalDeviceToolProperties<'_>,
    ) -> vk::Result => tools;
}

/// The global priority of all queues: the workers are threads with the default priority.
pub(crate) const PRIORITY: vk::QueueGlobalPriorityKHR = vk::QueueGlobalPriorityKHR::MEDIUM;

/// `VkPhysicalDevice`.
pub(crate) struct PhysicalDevice {
    pub(crate) options: &'static Options,
    pub(crate) properties: DeviceProperties,
    pub(crate) supported: Supported,
    /// The instance of the physical device, and its enabled extensions.
    pub(crate) owner: Owner,
    pub(crate) instance_extensions: Arc<HashSet<String>>,
    /// The minor version of Vulkan that the instance asked for.
    pub(crate) minor: u32,
}

object!(dispatchable PhysicalDevice: vk::PhysicalDevice, |physical| physical.owner);

impl PhysicalDevice {
    /// The physical device with the options of the environment, for a program with this engine.
    pub(crate) fn new(owner: Owner, instance_extensions: Arc<HashSet<String>>, minor: u32, engine: &str) -> Self {
        let options = Options::get();
        let (properties, supported) = (DeviceProperties::of(options), Supported::of(options, engine));
        Self { options, properties, supported, owner, instance_extensions, minor }
    }

    /// The only queue family.
    pub(crate) fn queue_family(&self) -> vk::QueueFamilyProperties {
        let graphics = if self.options.graphics { vk::QueueFlags::GRAPHICS } else { vk::QueueFlags::empty() };
        vk::QueueFamilyProperties {
            queue_flags: graphics | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER,
            queue_count: self.options.device.queues as u32,
            timestamp_valid_bits: 64,
            min_image_transfer_granularity: vk::Extent3D { width: 1, height: 1, depth: 1 },
        }
    }
}

fn properties(device: Ref<PhysicalDevice>, mut out: Out<'_, vk::PhysicalDeviceProperties>) -> Result<(), Error> {
    out.put(device.properties.core);
    Ok(())
}

fn properties2(
    device: Ref<PhysicalDevice>,
    mut out: OutChain<'_, vk::PhysicalDeviceProperties2<'_>>,
) -> Result<(), Error> {
    device.properties.fill(&mut out);
    Ok(())
}

fn features(device: Ref<PhysicalDevice>, mut out: Out<'_, vk::PhysicalDeviceFeatures>) -> Result<(), Error> {
    out.put(device.supported.core);
    Ok(())
}

fn features2(device: Ref<PhysicalDevice>, mut out: OutChain<'_, vk::PhysicalDeviceFeatures2<'_>>) -> Result<(), Error> {
    device.supported.fill(&mut out);
    Ok(())
}

fn families(
    device: Ref<PhysicalDevice>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::QueueFamilyProperties>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::once(device.queue_family())))
}

fn families2(
    device: Ref<PhysicalDevice>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::QueueFamilyProperties2<'_>>,
) -> Result<vk::Result, Error> {
    Ok(list_chains(count, out, std::iter::once(device.queue_family()), |chain: &mut OutChain<'_, _>, family| {
        chain.head(|all: &mut vk::QueueFamilyProperties2<'_>| all.queue_family_properties = family);
        chain.fill(|all: &mut vk::QueueFamilyGlobalPriorityPropertiesKHR<'_>| {
            all.priority_count = 1;
            all.priorities[0] = PRIORITY;
        });
    }))
}

fn memory(device: Ref<PhysicalDevice>, mut out: Out<'_, vk::PhysicalDeviceMemoryProperties>) -> Result<(), Error> {
    out.put(memory_types::properties(device.options.device.heap_size));
    Ok(())
}

fn memory2(
    device: Ref<PhysicalDevice>,
    mut out: OutChain<'_, vk::PhysicalDeviceMemoryProperties2<'_>>,
) -> Result<(), Error> {
    let size = device.options.device.heap_size;
    out.head(|all| all.memory_properties = memory_types::properties(size));
    out.fill(|budget: &mut vk::PhysicalDeviceMemoryBudgetPropertiesEXT<'_>| {
        let used = memory_types::bytes_in_use();
        (budget.heap_budget, budget.heap_usage) = ([0; _], [0; _]);
        budget.heap_budget[0] = size;
        budget.heap_usage[0] = used;
    });
    Ok(())
}

fn format_properties(
    _: Ref<PhysicalDevice>,
    format: vk::Format,
    mut out: Out<'_, vk::FormatProperties>,
) -> Result<(), Error> {
    out.put(formats::of(format));
    Ok(())
}

fn format_properties2(
    _: Ref<PhysicalDevice>,
    format: vk::Format,
    mut out: OutChain<'_, vk::FormatProperties2<'_>>,
) -> Result<(), Error> {
    formats::fill(format, &mut out);
    Ok(())
}

fn image_format(
    _: Ref<PhysicalDevice>,
    format: vk::Format,
    ty: vk::ImageType,
    tiling: vk::ImageTiling,
    usage: vk::ImageUsageFlags,
    flags: vk::ImageCreateFlags,
    mut out: Out<'_, vk::ImageFormatProperties>,
) -> Result<(), Error> {
    let properties = ImageQuery { format, ty, tiling, usage, flags }.properties();
    out.put(properties.clone().unwrap_or_default());
    properties.map(|_| ())
}

fn image_format2(
    _: Ref<PhysicalDevice>,
    info: In<'_, vk::PhysicalDeviceImageFormatInfo2<'_>>,
    mut out: OutChain<'_, vk::ImageFormatProperties2<'_>>,
) -> Result<(), Error> {
    let mut properties = ImageQuery::of(info).properties();
    let external = info.next::<vk::PhysicalDeviceExternalImageFormatInfo<'_>>();
    let of = external.map(|external| external.handle_type).unwrap_or_default();
    if !of.is_empty() && of != memory_types::IMPORTED {
        properties = Err(Error::Quiet(vk::Result::ERROR_FORMAT_NOT_SUPPORTED));
    }
    out.head(|all| all.image_format_properties = properties.clone().unwrap_or_default());
    out.fill(|copies: &mut vk::HostImageCopyDevicePerformanceQueryEXT<'_>| {
        // The usage does not change how an image is stored.
        (copies.optimal_device_access, copies.identical_memory_layout) = (vk::TRUE, vk::TRUE);
    });
    out.fill(|external: &mut vk::ExternalImageFormatProperties<'_>| {
        external.external_memory_properties = of_imports(of);
    });
    properties.map(|_| ())
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn sparse(
    _: Ref<PhysicalDevice>,
    _: vk::Format,
    _: vk::ImageType,
    _: vk::SampleCountFlags,
    _: vk::ImageUsageFlags,
    _: vk::ImageTiling,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::SparseImageFormatProperties>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

fn sparse2(
    _: Ref<PhysicalDevice>,
    _: In<'_, vk::PhysicalDeviceSparseImageFormatInfo2<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::SparseImageFormatProperties2<'_>>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

/// The properties of an external handle type: only host allocations can be imported.
fn of_imports(handle_type: vk::ExternalMemoryHandleTypeFlags) -> vk::ExternalMemoryProperties {
    let mut properties = vk::ExternalMemoryProperties::default();
    if handle_type == memory_types::IMPORTED {
        properties.external_memory_features = vk::ExternalMemoryFeatureFlags::IMPORTABLE;
        properties.compatible_handle_types = handle_type;
    }
    properties
}

fn external_buffer(
    _: Ref<PhysicalDevice>,
    info: In<'_, vk::PhysicalDeviceExternalBufferInfo<'_>>,
    mut out: OutChain<'_, vk::ExternalBufferProperties<'_>>,
) -> Result<(), Error> {
    out.head(|all| all.external_memory_properties = of_imports(info.handle_type));
    Ok(())
}

fn external_fence(
    _: Ref<PhysicalDevice>,
    _: In<'_, vk::PhysicalDeviceExternalFenceInfo<'_>>,
    mut out: OutChain<'_, vk::ExternalFenceProperties<'_>>,
) -> Result<(), Error> {
    out.head(|all| {
        all.export_from_imported_handle_types = Default::default();
        all.compatible_handle_types = Default::default();
        all.external_fence_features = Default::default();
    });
    Ok(())
}

fn external_semaphore(
    _: Ref<PhysicalDevice>,
    _: In<'_, vk::PhysicalDeviceExternalSemaphoreInfo<'_>>,
    mut out: OutChain<'_, vk::ExternalSemaphoreProperties<'_>>,
) -> Result<(), Error> {
    out.head(|all| {
        all.export_from_imported_handle_types = Default::default();
        all.compatible_handle_types = Default::default();
        all.external_semaphore_features = Default::default();
    });
    Ok(())
}

fn device_extensions(
    device: Ref<PhysicalDevice>,
    _layer: *const c_char,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::ExtensionProperties>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, extensions::list(extensions::of_device(device.options))))
}

fn device_layers(
    _: Ref<PhysicalDevice>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::LayerProperties>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

/// The driver itself counts as a tool: it validates, and traces with `SPELTER_TRACE`.
fn tools(
    device: Ref<PhysicalDevice>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PhysicalDeviceToolProperties<'_>>,
) -> Result<vk::Result, Error> {
    let mut purposes = vk::ToolPurposeFlags::VALIDATION;
    if device.options.trace.is_some() {
        purposes |= vk::ToolPurposeFlags::TRACING | vk::ToolPurposeFlags::PROFILING;
    }
    Ok(list_chains(count, out, std::iter::once(purposes), |chain: &mut OutChain<'_, _>, purposes| {
        chain.head(|tool: &mut vk::PhysicalDeviceToolProperties<'_>| {
            tool.name = fixed("spelter");
            tool.version = fixed(env!("CARGO_PKG_VERSION"));
            tool.purposes = purposes;
            tool.description = fixed("checks Vulkan's valid usage while it runs programs on CPU workers");
            tool.layer = fixed("");
        });
    }))
}
