//! Helpers of the tests, which call the driver through its exported function and `ash`.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part; a failing test panics")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use std::ffi::CStr;
use std::process::Command;

use ash::vk;

/// The entry of `ash`, which calls the driver.
pub(crate) fn entry() -> ash::Entry {
    let get_instance_proc_addr = vulkan_spelter::vk_icdGetInstanceProcAddr;
    unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) }
}

/// A device with all features of Vulkan 1.3 that it supports, its first queue, and a command pool.
pub(crate) struct Gpu {
    pub(crate) entry: ash::Entry,
    pub(crate) instance: ash::Instance,
    pub(crate) physical: vk::PhysicalDevice,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
    pub(crate) pool: vk::CommandPool,
}

/// A buffer with its own mapped memory.
pub(crate) struct Buffer {
    pub(crate) raw: vk::Buffer,
    pub(crate) memory: vk::DeviceMemory,
    pub(crate) mapped: *mut u32,
    pub(crate) words: usize,
}

/// A compute pipeline with its layouts.
pub(crate) struct Program {
    pub(crate) module: vk::ShaderModule,
    pub(crate) set_layout: vk::DescriptorSetLayout,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

/// A descriptor set layout with a pipeline layout of this set.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) set: vk::DescriptorSetLayout,
    pub(crate) pipeline: vk::PipelineLayout,
}

/// A command that runs one test of the current program in another process.
pub(crate) fn rerun(program: impl AsRef<std::ffi::OsStr>, module: &str, test: &str) -> Command {
    let mut command = Command::new(program);
    // The path begins with the name of the test program, which the names of its tests lack.
    let name = module.split_once("::").map_or(test.to_string(), |(_, module)| format!("{module}::{test}"));
    command.args([&name, "--exact", "--nocapture"]);
    command
}

/// A number that is in no other place of a shader: [`marked`] replaces it, so that shaders differ.
pub(crate) const MARK: u32 = 305_419_896;

/// The words of a shader with another number in place of [`MARK`].
pub(crate) fn marked(words: &[u32], number: u32) -> Vec<u32> {
    words.iter().map(|&word| if word == MARK { number } else { word }).collect()
}

/// WGSL of a kernel with many lines and [`MARK`] in one of them, which takes long to compile.
pub(crate) fn long_kernel(lines: u32) -> String {
    let lines: String = (0..lines).map(|i| format!("a = (a * {}u) ^ (a >> {}u);\n", i * 7 + 3, i % 31)).collect();
    format!(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            var a = id.x + {MARK}u; {lines} o[id.x] = a; }}"
    )
}

/// A binding of a compute shader.
pub(crate) fn binding(number: u32, ty: vk::DescriptorType, count: u32) -> vk::DescriptorSetLayoutBinding<'static> {
    vk::DescriptorSetLayoutBinding::default()
        .binding(number)
        .descriptor_type(ty)
        .descriptor_count(count)
        .stage_flags(vk::ShaderStageFlags::COMPUTE)
}

/// The compute stage with the entry point `main` of a module.
pub(crate) fn stage(module: vk::ShaderModule) -> vk::PipelineShaderStageCreateInfo<'static> {
    vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).module(module).name(c"main")
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

    /// The first memory type with these properties.
    pub(crate) fn memory_type(&self, wanted: vk::MemoryPropertyFlags) -> u32 {
        let properties = unsafe { self.instance.get_physical_device_memory_properties(self.physical) };
        let types = properties.memory_types_as_slice();
        types.iter().position(|ty| ty.property_flags.contains(wanted)).unwrap() as u32
    }

    /// A buffer of `words` words, all zero.
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

    /// A program whose set 0 has bindings of these types, with 16 bytes of push constants.
    pub(crate) fn program(
        &self,
        wgsl: &str,
        types: &[vk::DescriptorType],
        flags: vk::DescriptorSetLayoutCreateFlags,
    ) -> Program {
        let bindings: Vec<_> = (0..)
            .zip(types)
            .map(|(number, &ty)| {
                let count = if ty == vk::DescriptorType::INLINE_UNIFORM_BLOCK { 16 } else { 1 };
                binding(number, ty, count)
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
            let info = vk::ComputePipelineCreateInfo::default().stage(stage(module)).layout(layout);
            let pipeline = self.pipeline(vk::PipelineCache::null(), &info).unwrap();
            Program { module, set_layout, layout, pipeline }
        }
    }

    /// The layouts of one set with one storage buffer.
    pub(crate) fn storage_layout(&self) -> Layout {
        let bindings = [binding(0, vk::DescriptorType::STORAGE_BUFFER, 1)];
        self.layout(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings))
    }

    /// A set layout, and the pipeline layout of this set.
    pub(crate) fn layout(&self, info: &vk::DescriptorSetLayoutCreateInfo<'_>) -> Layout {
        unsafe {
            let set = self.device.create_descriptor_set_layout(info, None).unwrap();
            let sets = [set];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            Layout { set, pipeline: self.device.create_pipeline_layout(&info, None).unwrap() }
        }
    }

    /// One pipeline. `VK_PIPELINE_COMPILE_REQUIRED` is an error, as in `ash`.
    pub(crate) fn pipeline(
        &self,
        cache: vk::PipelineCache,
        info: &vk::ComputePipelineCreateInfo<'_>,
    ) -> Result<vk::Pipeline, vk::Result> {
        let made = unsafe { self.device.create_compute_pipelines(cache, std::slice::from_ref(info), None) };
        made.map(|made| made[0]).map_err(|(_, code)| code)
    }

    /// A pipeline of a shader whose module is destroyed.
    pub(crate) fn pipeline_of(
        &self,
        cache: vk::PipelineCache,
        words: &[u32],
        info: vk::ComputePipelineCreateInfo<'_>,
    ) -> Result<vk::Pipeline, vk::Result> {
        unsafe {
            let module = self.device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None);
            let module = module.unwrap();
            let made = self.pipeline(cache, &info.stage(stage(module)));
            self.device.destroy_shader_module(module, None);
            made
        }
    }

    /// A command buffer with one dispatch of a pipeline with one set.
    pub(crate) fn dispatch(
        &self,
        pipeline: vk::Pipeline,
        layout: vk::PipelineLayout,
        set: vk::DescriptorSet,
        groups: u32,
    ) -> vk::CommandBuffer {
        let point = vk::PipelineBindPoint::COMPUTE;
        let commands = self.record(|device, commands| unsafe {
            device.cmd_bind_pipeline(commands, point, pipeline);
            device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
            device.cmd_dispatch(commands, groups, 1, 1);
        });
        commands.unwrap()
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

    /// A set of the program's layout with the buffers as its bindings.
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

    /// Makes visible to the host what earlier commands wrote.
    pub(crate) fn make_visible_to_the_host(&self, commands: vk::CommandBuffer) {
        let (src, dst) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::PipelineStageFlags::HOST);
        let memory = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ);
        unsafe { self.device.cmd_pipeline_barrier(commands, src, dst, Default::default(), &[memory], &[], &[]) };
    }

    /// Records a command buffer. What its commands write is visible to the host.
    pub(crate) fn record(
        &self,
        record: impl FnOnce(&ash::Device, vk::CommandBuffer),
    ) -> Result<vk::CommandBuffer, vk::Result> {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        unsafe {
            let commands = self.device.allocate_command_buffers(&info).unwrap()[0];
            self.device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
            record(&self.device, commands);
            self.make_visible_to_the_host(commands);
            self.device.end_command_buffer(commands).map(|()| commands)
        }
    }

    /// Submits the command buffer and waits for its end.
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

    /// A 2D image of one level for transfers, with its memory.
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

    pub(crate) fn destroy_layout(&self, layout: Layout) {
        unsafe {
            self.device.destroy_pipeline_layout(layout.pipeline, None);
            self.device.destroy_descriptor_set_layout(layout.set, None);
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
