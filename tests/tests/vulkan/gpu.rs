//! The driver through its exported function, with all supported features and extensions enabled.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use ash::vk;

/// An instance, a device and a queue.
pub(crate) struct Gpu {
    pub(crate) entry: ash::Entry,
    pub(crate) instance: ash::Instance,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) push: ash::khr::push_descriptor::Device,
    pub(crate) queue: std::sync::Mutex<vk::Queue>,
}

/// Host-visible memory.
pub(crate) struct Memory {
    pub(crate) raw: vk::DeviceMemory,
    pub(crate) mapped: *mut u8,
    /// The program's own memory, if it was imported.
    own: Option<Layout>,
}

/// The alignment in bytes of imported memory and its size.
const PAGE: usize = 4096;

/// A buffer with all usages and its own memory.
pub(crate) struct Buffer {
    pub(crate) raw: vk::Buffer,
    pub(crate) memory: Memory,
    pub(crate) bytes: usize,
}

impl Gpu {
    pub(crate) fn new() -> Self {
        let get_instance_proc_addr = vulkan_spelter::vk_icdGetInstanceProcAddr;
        let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) };
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        unsafe {
            let names = [c"VK_EXT_debug_utils".as_ptr()];
            let info = vk::InstanceCreateInfo::default().application_info(&app).enabled_extension_names(&names);
            let instance = entry.create_instance(&info, None).unwrap();
            let physical = instance.enumerate_physical_devices().unwrap()[0];
            let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
            let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
            let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
            let mut float = vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT::default();
            let mut float2 = vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT::default();
            let mut robust = vk::PhysicalDeviceRobustness2FeaturesEXT::default();
            let mut layout = vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR::default();
            let mut hints = vk::PhysicalDeviceShaderExpectAssumeFeaturesKHR::default();
            let mut clock = vk::PhysicalDeviceShaderClockFeaturesKHR::default();
            let mut rotate = vk::PhysicalDeviceShaderSubgroupRotateFeaturesKHR::default();
            let mut reconvergence = vk::PhysicalDeviceShaderMaximalReconvergenceFeaturesKHR::default();
            let mut uniform_flow = vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR::default();
            let mut features = vk::PhysicalDeviceFeatures2::default()
                .push_next(&mut v11)
                .push_next(&mut v12)
                .push_next(&mut v13)
                .push_next(&mut float)
                .push_next(&mut float2)
                .push_next(&mut robust)
                .push_next(&mut layout)
                .push_next(&mut hints)
                .push_next(&mut clock)
                .push_next(&mut rotate)
                .push_next(&mut reconvergence)
                .push_next(&mut uniform_flow);
            instance.get_physical_device_features2(physical, &mut features);
            let extensions = instance.enumerate_device_extension_properties(physical).unwrap();
            let names: Vec<_> = extensions.iter().map(|extension| extension.extension_name.as_ptr()).collect();
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&names)
                .push_next(&mut features);
            let device = instance.create_device(physical, &info, None).unwrap();
            let queue = std::sync::Mutex::new(device.get_device_queue(0, 0));
            let push = ash::khr::push_descriptor::Device::new(&instance, &device);
            Self { entry, instance, physical, device, push, queue }
        }
    }

    /// Allocates memory, or imports memory of the program.
    pub(crate) fn memory(&self, needs: vk::MemoryRequirements, imported: bool) -> Memory {
        let types = unsafe { self.instance.get_physical_device_memory_properties(self.physical) };
        let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let ty = types.memory_types_as_slice().iter().position(|ty| ty.property_flags.contains(wanted)).unwrap();
        let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
        let info = vk::MemoryAllocateInfo::default().memory_type_index(ty as u32).push_next(&mut flags);
        if imported {
            let layout = Layout::from_size_align((needs.size as usize).next_multiple_of(PAGE), PAGE).unwrap();
            let mapped = unsafe { alloc_zeroed(layout) };
            let host = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
            let mut import =
                vk::ImportMemoryHostPointerInfoEXT::default().handle_type(host).host_pointer(mapped.cast());
            let info = info.allocation_size(layout.size() as u64).push_next(&mut import);
            let raw = unsafe { self.device.allocate_memory(&info, None).unwrap() };
            return Memory { raw, mapped, own: Some(layout) };
        }
        let info = info.allocation_size(needs.size);
        unsafe {
            let raw = self.device.allocate_memory(&info, None).unwrap();
            let mapped = self.device.map_memory(raw, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap();
            Memory { raw, mapped: mapped.cast(), own: None }
        }
    }

    pub(crate) fn buffer(&self, contents: &[u8], imported: bool) -> Buffer {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER
            | vk::BufferUsageFlags::UNIFORM_TEXEL_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let bytes = contents.len();
        let info = vk::BufferCreateInfo::default().size(bytes.max(1) as u64).usage(usage);
        unsafe {
            let raw = self.device.create_buffer(&info, None).unwrap();
            let memory = self.memory(self.device.get_buffer_memory_requirements(raw), imported);
            self.device.bind_buffer_memory(raw, memory.raw, 0).unwrap();
            let buffer = Buffer { raw, memory, bytes };
            buffer.write(0, contents);
            buffer
        }
    }

    pub(crate) fn address(&self, buffer: &Buffer) -> u64 {
        let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.raw);
        unsafe { self.device.get_buffer_device_address(&info) }
    }

    pub(crate) fn destroy(&self, buffer: &Buffer) {
        unsafe {
            self.device.destroy_buffer(buffer.raw, None);
        }
        self.free(&buffer.memory);
    }

    pub(crate) fn free(&self, memory: &Memory) {
        unsafe { self.device.free_memory(memory.raw, None) };
        if let Some(layout) = memory.own {
            unsafe { dealloc(memory.mapped, layout) };
        }
    }
}

impl Buffer {
    pub(crate) fn write(&self, at: usize, contents: &[u8]) {
        assert!(at + contents.len() <= self.bytes);
        for (index, &byte) in contents.iter().enumerate() {
            unsafe { self.memory.mapped.add(at + index).write_volatile(byte) };
        }
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        (0..self.bytes).map(|index| unsafe { self.memory.mapped.add(index).read_volatile() }).collect()
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}
