//! A minimal Vulkan layer for the kernels, on the driver that the loader finds. Objects are not destroyed: each driver
//! has its own process, which ends.

#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; the bench keeps to the rules, as any program does"
)]

use std::time::{Duration, Instant};

use ash::vk::{self, DescriptorType as D};
use spelter_benches::Error;
use spelter_benches::measure::Stopwatch;
use spelter_shaders::front::wgsl::WgslModule;

/// How long a kernel is repeated.
const PERIOD: Duration = Duration::from_millis(1500);

/// A device with one queue.
pub(crate) struct Gpu {
    _library: libloading::Library,
    _instance: ash::Instance,
    device: ash::Device,
    queue: vk::Queue,
    pool: vk::CommandPool,
    memory: vk::PhysicalDeviceMemoryProperties,
    /// The driver's own name.
    pub(crate) name: String,
    /// Whether storage buffers may hold 16-bit floats.
    pub(crate) has_halves: bool,
}

/// A storage buffer that the host can access.
pub(crate) struct Buffer {
    raw: vk::Buffer,
    mapped: *mut u8,
    bytes: usize,
}

/// A square image of one level, in the general layout.
pub(crate) struct Image {
    raw: vk::Image,
    view: vk::ImageView,
    side: u32,
}

/// The contents of a binding of group 0, in order.
pub(crate) enum Bound<'a> {
    Buffer(&'a Buffer),
    Storage(&'a Image),
    Sampled(&'a Image),
    /// Linear filter, repeat address mode.
    Sampler,
}

/// A kernel with its descriptor set.
pub(crate) struct Program {
    pipeline: vk::Pipeline,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
}

/// One dispatch, with an optional word of push constants.
pub(crate) struct Step<'a> {
    pub(crate) program: &'a Program,
    pub(crate) groups: [u32; 2],
    pub(crate) push: Option<u32>,
}

impl Gpu {
    /// The first device of the loader's first driver.
    pub(crate) fn open() -> Result<Self, Error> {
        unsafe {
            let library = libloading::Library::new("libvulkan.so.1")?;
            let get_instance_proc_addr = *library.get::<vk::PFN_vkGetInstanceProcAddr>(b"vkGetInstanceProcAddr\0")?;
            let entry = ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr });
            let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let instance = entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&app), None)?;
            let physical = *instance.enumerate_physical_devices()?.first().ok_or("there is no device")?;
            let mut offered11 = vk::PhysicalDeviceVulkan11Features::default();
            let mut offered12 = vk::PhysicalDeviceVulkan12Features::default();
            let mut offered =
                vk::PhysicalDeviceFeatures2::default().push_next(&mut offered11).push_next(&mut offered12);
            instance.get_physical_device_features2(physical, &mut offered);
            let has_halves = offered11.storage_buffer16_bit_access == vk::TRUE
                && offered11.uniform_and_storage_buffer16_bit_access == vk::TRUE
                && offered12.shader_float16 == vk::TRUE;
            let mut used11 = vk::PhysicalDeviceVulkan11Features::default()
                .storage_buffer16_bit_access(has_halves)
                .uniform_and_storage_buffer16_bit_access(has_halves);
            let mut used12 = vk::PhysicalDeviceVulkan12Features::default().shader_float16(has_halves);
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
            let info = info.push_next(&mut used11).push_next(&mut used12);
            let device = instance.create_device(physical, &info, None)?;
            let properties = instance.get_physical_device_properties(physical);
            Ok(Self {
                queue: device.get_device_queue(0, 0),
                pool: device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None)?,
                memory: instance.get_physical_device_memory_properties(physical),
                name: properties.device_name_as_c_str()?.to_string_lossy().into_owned(),
                has_halves,
                device,
                _instance: instance,
                _library: library,
            })
        }
    }

    fn allocate(
        &self,
        needs: vk::MemoryRequirements,
        flags: vk::MemoryPropertyFlags,
    ) -> Result<vk::DeviceMemory, Error> {
        let types = self.memory.memory_types_as_slice().iter().enumerate();
        let mut fitting =
            types.filter(|(i, ty)| needs.memory_type_bits >> i & 1 == 1 && ty.property_flags.contains(flags));
        let (number, _) = fitting.next().ok_or("there is no such memory")?;
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(number as u32);
        Ok(unsafe { self.device.allocate_memory(&info, None)? })
    }

    /// Creates a buffer with these bytes.
    pub(crate) fn buffer(&self, bytes: &[u8]) -> Result<Buffer, Error> {
        use vk::{BufferUsageFlags as U, MemoryPropertyFlags as M};
        let usage = U::STORAGE_BUFFER | U::TRANSFER_SRC | U::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(bytes.len() as u64).usage(usage);
        unsafe {
            let raw = self.device.create_buffer(&info, None)?;
            let needs = self.device.get_buffer_memory_requirements(raw);
            let memory = self.allocate(needs, M::HOST_VISIBLE | M::HOST_COHERENT)?;
            self.device.bind_buffer_memory(raw, memory, 0)?;
            let mapped = self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())?;
            let buffer = Buffer { raw, mapped: mapped.cast(), bytes: bytes.len() };
            buffer.write(bytes);
            Ok(buffer)
        }
    }

    /// Creates an image with these texels, if there are any.
    pub(crate) fn image(&self, format: vk::Format, side: u32, texels: Option<&[u8]>) -> Result<Image, Error> {
        use vk::ImageUsageFlags as U;
        let used = if format == vk::Format::R32_SFLOAT { U::STORAGE } else { U::STORAGE | U::SAMPLED };
        let info = vk::ImageCreateInfo::default()
            .image_type(vk::ImageType::TYPE_2D)
            .format(format)
            .extent(vk::Extent3D { width: side, height: side, depth: 1 })
            .mip_levels(1)
            .array_layers(1)
            .samples(vk::SampleCountFlags::TYPE_1)
            .tiling(vk::ImageTiling::OPTIMAL)
            .usage(used | U::TRANSFER_SRC | U::TRANSFER_DST);
        let image = unsafe {
            let raw = self.device.create_image(&info, None)?;
            let needs = self.device.get_image_memory_requirements(raw);
            self.device.bind_image_memory(raw, self.allocate(needs, vk::MemoryPropertyFlags::DEVICE_LOCAL)?, 0)?;
            let info = vk::ImageViewCreateInfo::default()
                .image(raw)
                .view_type(vk::ImageViewType::TYPE_2D)
                .format(format)
                .subresource_range(WHOLE);
            Image { raw, view: self.device.create_image_view(&info, None)?, side }
        };
        let staging = texels.map(|texels| self.buffer(texels)).transpose()?;
        let commands = self.record(|device, commands| unsafe {
            let to_general = vk::ImageMemoryBarrier::default()
                .image(image.raw)
                .subresource_range(WHOLE)
                .new_layout(vk::ImageLayout::GENERAL)
                .dst_access_mask(vk::AccessFlags::MEMORY_WRITE);
            let (none, all) = (vk::DependencyFlags::empty(), vk::PipelineStageFlags::ALL_COMMANDS);
            device.cmd_pipeline_barrier(commands, all, all, none, &[], &[], &[to_general]);
            if let Some(staging) = &staging {
                let general = vk::ImageLayout::GENERAL;
                device.cmd_copy_buffer_to_image(commands, staging.raw, image.raw, general, &[image.all()]);
            }
        })?;
        self.run(commands)?;
        Ok(image)
    }

    /// Reads the image's texels back.
    pub(crate) fn texels(&self, image: &Image, bytes: usize) -> Result<Vec<u8>, Error> {
        let staging = self.buffer(&vec![0; bytes])?;
        let commands = self.record(|device, commands| unsafe {
            let general = vk::ImageLayout::GENERAL;
            device.cmd_copy_image_to_buffer(commands, image.raw, general, staging.raw, &[image.all()]);
        })?;
        self.run(commands)?;
        Ok(staging.read())
    }

    /// A WGSL kernel with the contents of its bindings.
    pub(crate) fn program(&self, text: &str, bound: &[Bound<'_>]) -> Result<Program, Error> {
        let words = WgslModule::parse(text)?.to_spirv("main", &Default::default())?;
        let stage_flags = vk::ShaderStageFlags::COMPUTE;
        let slot = |(binding, bound): (u32, &Bound<'_>)| {
            let slot = vk::DescriptorSetLayoutBinding::default().binding(binding).descriptor_count(1);
            slot.descriptor_type(bound.ty()).stage_flags(stage_flags)
        };
        let slots: Vec<_> = (0..).zip(bound).map(slot).collect();
        let sizes: Vec<_> =
            bound.iter().map(|bound| vk::DescriptorPoolSize { ty: bound.ty(), descriptor_count: 1 }).collect();
        unsafe {
            let module = self.device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&words), None)?;
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&slots);
            let layouts = [self.device.create_descriptor_set_layout(&info, None)?];
            let ranges = [vk::PushConstantRange { stage_flags, offset: 0, size: 4 }];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts).push_constant_ranges(&ranges);
            let layout = self.device.create_pipeline_layout(&info, None)?;
            let stage = vk::PipelineShaderStageCreateInfo::default().stage(stage_flags).module(module).name(c"main");
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
            let pipelines = self.device.create_compute_pipelines(vk::PipelineCache::null(), &info, None);
            let pipeline = *pipelines.map_err(|(_, error)| error)?.first().ok_or("there is no pipeline")?;
            let info = vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes);
            let pool = self.device.create_descriptor_pool(&info, None)?;
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            let set = *self.device.allocate_descriptor_sets(&info)?.first().ok_or("there is no set")?;
            for (binding, bound) in (0..).zip(bound) {
                self.bind(set, binding, bound)?;
            }
            Ok(Program { pipeline, layout, set })
        }
    }

    fn bind(&self, set: vk::DescriptorSet, binding: u32, bound: &Bound<'_>) -> Result<(), Error> {
        let mut buffers = [vk::DescriptorBufferInfo::default().range(vk::WHOLE_SIZE)];
        let mut images = [vk::DescriptorImageInfo::default().image_layout(vk::ImageLayout::GENERAL)];
        let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(bound.ty());
        let write = match bound {
            Bound::Buffer(buffer) => {
                buffers[0].buffer = buffer.raw;
                write.buffer_info(&buffers)
            }
            Bound::Storage(image) | Bound::Sampled(image) => {
                images[0].image_view = image.view;
                write.image_info(&images)
            }
            Bound::Sampler => {
                let linear = vk::Filter::LINEAR;
                let info = vk::SamplerCreateInfo::default().mag_filter(linear).min_filter(linear);
                let edge = vk::SamplerAddressMode::CLAMP_TO_EDGE;
                let info = info.address_mode_u(edge).address_mode_v(edge).address_mode_w(edge);
                images[0].sampler = unsafe { self.device.create_sampler(&info, None)? };
                write.image_info(&images)
            }
        };
        unsafe { self.device.update_descriptor_sets(&[write], &[]) };
        Ok(())
    }

    fn record(&self, fill: impl FnOnce(&ash::Device, vk::CommandBuffer)) -> Result<vk::CommandBuffer, Error> {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        unsafe {
            let commands = *self.device.allocate_command_buffers(&info)?.first().ok_or("there is no command buffer")?;
            self.device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default())?;
            fill(&self.device, commands);
            self.device.end_command_buffer(commands)?;
            Ok(commands)
        }
    }

    fn run(&self, commands: vk::CommandBuffer) -> Result<(), Error> {
        let commands = [commands];
        let submit = [vk::SubmitInfo::default().command_buffers(&commands)];
        unsafe {
            self.device.queue_submit(self.queue, &submit, vk::Fence::null())?;
            Ok(self.device.queue_wait_idle(self.queue)?)
        }
    }

    /// Records the steps, each ordered after the previous one, and runs them once.
    pub(crate) fn prepare(&self, steps: &[Step<'_>]) -> Result<vk::CommandBuffer, Error> {
        let commands = self.record(|device, commands| {
            for step in steps {
                let program = step.program;
                let point = vk::PipelineBindPoint::COMPUTE;
                let access = vk::AccessFlags::SHADER_READ | vk::AccessFlags::SHADER_WRITE;
                let ordered = vk::MemoryBarrier::default().src_access_mask(access).dst_access_mask(access);
                let (none, compute) = (vk::DependencyFlags::empty(), vk::PipelineStageFlags::COMPUTE_SHADER);
                unsafe {
                    device.cmd_bind_pipeline(commands, point, program.pipeline);
                    device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[program.set], &[]);
                    if let Some(word) = step.push {
                        let stages = vk::ShaderStageFlags::COMPUTE;
                        device.cmd_push_constants(commands, program.layout, stages, 0, &word.to_ne_bytes());
                    }
                    device.cmd_dispatch(commands, step.groups[0], step.groups[1], 1);
                    device.cmd_pipeline_barrier(commands, compute, compute, none, &[ordered], &[], &[]);
                }
            }
        })?;
        self.run(commands)?;
        Ok(commands)
    }

    /// Seconds of the fastest run, including submission and wait.
    pub(crate) fn time(&self, commands: vk::CommandBuffer) -> Result<f64, Error> {
        let (start, mut watch, mut result) = (Instant::now(), Stopwatch::default(), Ok(()));
        while start.elapsed() < PERIOD && result.is_ok() {
            watch.time(3, || {
                if result.is_ok() {
                    result = self.run(commands);
                }
            });
        }
        result.and_then(|()| watch.seconds().ok_or_else(|| "nothing was run".into()))
    }
}

const WHOLE: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

impl Image {
    fn all(&self) -> vk::BufferImageCopy {
        vk::BufferImageCopy::default()
            .image_subresource(vk::ImageSubresourceLayers {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                layer_count: 1,
                ..Default::default()
            })
            .image_extent(vk::Extent3D { width: self.side, height: self.side, depth: 1 })
    }
}

impl Bound<'_> {
    fn ty(&self) -> D {
        match self {
            Self::Buffer(_) => D::STORAGE_BUFFER,
            Self::Storage(_) => D::STORAGE_IMAGE,
            Self::Sampled(_) => D::SAMPLED_IMAGE,
            Self::Sampler => D::SAMPLER,
        }
    }
}

impl Buffer {
    pub(crate) fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        // No work is in flight: every submission was waited for.
        unsafe { self.mapped.copy_to_nonoverlapping(bytes.as_mut_ptr(), self.bytes) };
        bytes
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        let count = bytes.len().min(self.bytes);
        unsafe { self.mapped.copy_from_nonoverlapping(bytes.as_ptr(), count) };
    }
}
