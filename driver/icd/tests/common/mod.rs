//! The driver as a program sees it: found through its exported function, called through `ash`.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part; a failing test panics")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; what the tests show is that misuse is not"
)]

use std::ffi::CStr;

use ash::vk;

/// `ash`'s entry over the driver's own.
pub(crate) fn entry() -> ash::Entry {
    let get_instance_proc_addr = vulkan_spelter::vk_icdGetInstanceProcAddr;
    unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) }
}

/// A device with all that there is enabled, its first queue, and a command pool.
pub(crate) struct Gpu {
    pub(crate) entry: ash::Entry,
    pub(crate) instance: ash::Instance,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    pub(crate) pool: vk::CommandPool,
}

/// A storage buffer with memory of its own, mapped.
pub(crate) struct Buffer {
    pub(crate) raw: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) mapped: *mut u32,
    pub(crate) words: usize,
}

/// A pipeline with its layouts.
pub(crate) struct Program {
    pub(crate) module: vk::ShaderModule,
    pub(crate) set_layout: vk::DescriptorSetLayout,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

/// Compiles WGSL to SPIR-V words.
pub(crate) fn spirv(wgsl: &str) -> Vec<u32> {
    let module = naga::front::wgsl::parse_str(wgsl).unwrap();
    let flags = naga::valid::ValidationFlags::all();
    let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(&module).unwrap();
    naga::back::spv::write_vec(&module, &info, &naga::back::spv::Options::default(), None).unwrap()
}

impl Gpu {
    pub(crate) fn new() -> Self {
        Self::with_extensions(&[])
    }

    pub(crate) fn with_extensions(extensions: &[&CStr]) -> Self {
        let entry = entry();
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let names = [c"VK_EXT_debug_utils".as_ptr(), c"VK_EXT_debug_report".as_ptr()];
        let info = vk::InstanceCreateInfo::default().application_info(&app).enabled_extension_names(&names);
        unsafe {
            let instance = entry.create_instance(&info, None).unwrap();
            let physical = instance.enumerate_physical_devices().unwrap()[0];
            let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
            let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
            let mut v13 = vk::PhysicalDeviceVulkan13Features::default();
            let mut features = vk::PhysicalDeviceFeatures2::default();
            features = features.push_next(&mut v11).push_next(&mut v12).push_next(&mut v13);
            instance.get_physical_device_features2(physical, &mut features);
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0, 0.5])];
            let names: Vec<_> = extensions.iter().map(|name| name.as_ptr()).collect();
            let info = vk::DeviceCreateInfo::default()
                .queue_create_infos(&queues)
                .enabled_extension_names(&names)
                .push_next(&mut features);
            let device = instance.create_device(physical, &info, None).unwrap();
            let queue = device.get_device_queue(0, 0);
            let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
            let info = vk::CommandPoolCreateInfo::default().flags(flags);
            let pool = device.create_command_pool(&info, None).unwrap();
            Self { entry, instance, physical, device, queue, pool }
        }
    }

    /// The type of memory with those properties that comes first.
    pub(crate) fn memory_type(&self, wanted: vk::MemoryPropertyFlags) -> u32 {
        let properties = unsafe { self.instance.get_physical_device_memory_properties(self.physical) };
        let types = properties.memory_types_as_slice();
        types.iter().position(|ty| ty.property_flags.contains(wanted)).unwrap() as u32
    }

    /// A buffer of so many words, all zero.
    pub(crate) fn buffer(&self, words: usize) -> Buffer {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::UNIFORM_BUFFER
            | vk::BufferUsageFlags::INDIRECT_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST;
        unsafe {
            let info = vk::BufferCreateInfo::default().size(words as u64 * 4).usage(usage);
            let raw = self.device.create_buffer(&info, None).unwrap();
            let needs = self.device.get_buffer_memory_requirements(raw);
            let flags = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(self.memory_type(flags));
            let memory = self.device.allocate_memory(&info, None).unwrap();
            self.device.bind_buffer_memory(raw, memory, 0).unwrap();
            let mapped = self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).unwrap();
            Buffer { raw, memory, mapped: mapped.cast(), words }
        }
    }

    /// A program whose set 0 has bindings of those types, with 16 bytes of push constants.
    pub(crate) fn program(
        &self,
        wgsl: &str,
        types: &[vk::DescriptorType],
        flags: vk::DescriptorSetLayoutCreateFlags,
    ) -> Program {
        let bindings: Vec<_> = (0..)
            .zip(types)
            .map(|(binding, &ty)| {
                let count = if ty == vk::DescriptorType::INLINE_UNIFORM_BLOCK { 16 } else { 1 };
                vk::DescriptorSetLayoutBinding::default()
                    .binding(binding)
                    .descriptor_type(ty)
                    .descriptor_count(count)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        unsafe {
            let words = spirv(wgsl);
            let info = vk::ShaderModuleCreateInfo::default().code(&words);
            let module = self.device.create_shader_module(&info, None).unwrap();
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
            let set_layout = self.device.create_descriptor_set_layout(&info, None).unwrap();
            let (layouts, ranges) = (
                [set_layout],
                [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 16 }],
            );
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&ranges);
            let layout = self.device.create_pipeline_layout(&info, None).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
            let cache = vk::PipelineCache::null();
            let pipeline = self.device.create_compute_pipelines(cache, &[info], None).unwrap()[0];
            Program { module, set_layout, layout, pipeline }
        }
    }

    /// A pool with room for a few sets of everything.
    pub(crate) fn descriptor_pool(&self) -> vk::DescriptorPool {
        let types = [
            vk::DescriptorType::STORAGE_BUFFER,
            vk::DescriptorType::UNIFORM_BUFFER,
            vk::DescriptorType::STORAGE_IMAGE,
            vk::DescriptorType::SAMPLED_IMAGE,
            vk::DescriptorType::SAMPLER,
        ];
        let mut sizes = types.map(|ty| vk::DescriptorPoolSize { ty, descriptor_count: 8 }).to_vec();
        let ty = vk::DescriptorType::INLINE_UNIFORM_BLOCK;
        sizes.push(vk::DescriptorPoolSize { ty, descriptor_count: 64 });
        let mut blocks = vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(4);
        let flags = vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET;
        let info =
            vk::DescriptorPoolCreateInfo::default().max_sets(4).pool_sizes(&sizes).flags(flags).push_next(&mut blocks);
        unsafe { self.device.create_descriptor_pool(&info, None).unwrap() }
    }

    /// A set of the program's layout with the buffers in it.
    pub(crate) fn set(&self, pool: vk::DescriptorPool, program: &Program, buffers: &[&Buffer]) -> vk::DescriptorSet {
        let layouts = [program.set_layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = unsafe { self.device.allocate_descriptor_sets(&info).unwrap()[0] };
        for (binding, buffer) in (0..).zip(buffers) {
            let infos = [vk::DescriptorBufferInfo { buffer: buffer.raw, offset: 0, range: vk::WHOLE_SIZE }];
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(binding)
                .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                .buffer_info(&infos);
            unsafe { self.device.update_descriptor_sets(&[write], &[]) };
        }
        set
    }

    /// A command buffer that was recorded.
    pub(crate) fn record(
        &self,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<vk::CommandBuffer, vk::Result> {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        unsafe {
            let commands = self.device.allocate_command_buffers(&info).unwrap()[0];
            self.device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
            record(&self.device, commands);
            self.device.end_command_buffer(commands).map(|()| commands)
        }
    }

    /// Submits and waits.
    pub(crate) fn run(&self, commands: vk::CommandBuffer) {
        let commands = [commands];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        unsafe {
            let fence = self.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
            self.device.queue_submit(self.queue, &[submit], fence).unwrap();
            self.device.wait_for_fences(&[fence], true, u64::MAX).unwrap();
            self.device.destroy_fence(fence, None);
        }
    }

    /// A flat image of one level, for transfers, with memory of its own.
    pub(crate) fn image(&self, format: vk::Format, extent: vk::Extent3D) -> (vk::Image, vk::DeviceMemory) {
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(extent)
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .usage(vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST);
        unsafe {
            let image = self.device.create_image(&info, None).unwrap();
            let needs = self.device.get_image_memory_requirements(image);
            let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
            let memory = self.device.allocate_memory(&info, None).unwrap();
            self.device.bind_image_memory(image, memory, 0).unwrap();
            (image, memory)
        }
    }

    pub(crate) fn destroy_buffer(&self, buffer: Buffer) {
        unsafe {
            self.device.destroy_buffer(buffer.raw, None);
            self.device.free_memory(buffer.memory, None);
        }
    }

    pub(crate) fn destroy_program(&self, program: Program) {
        unsafe {
            self.device.destroy_pipeline(program.pipeline, None);
            self.device.destroy_pipeline_layout(program.layout, None);
            self.device.destroy_descriptor_set_layout(program.set_layout, None);
            self.device.destroy_shader_module(program.module, None);
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        unsafe {
            self.device.destroy_command_pool(self.pool, None);
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }
}

impl Buffer {
    pub(crate) fn read(&self) -> Vec<u32> {
        (0..self.words).map(|index| unsafe { self.mapped.add(index).read_volatile() }).collect()
    }

    pub(crate) fn write(&self, words: &[u32]) {
        assert!(words.len() <= self.words);
        for (index, &word) in words.iter().enumerate() {
            unsafe { self.mapped.add(index).write_volatile(word) };
        }
    }
}
