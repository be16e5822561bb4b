//! Features of objects rather than shaders: private data, subgroup sizes, depth layouts, updates of pending sets.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common::{Gpu, binding, stage};
use ash::vk;

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const PLAIN: vk::DescriptorSetLayoutCreateFlags = vk::DescriptorSetLayoutCreateFlags::empty();

#[test]
fn objects_have_private_data() {
    let gpu = Gpu::new();
    let (a, b) = (gpu.buffer(4), gpu.buffer(4));
    unsafe {
        let slots: Vec<_> = (0..2)
            .map(|_| gpu.device.create_private_data_slot(&vk::PrivateDataSlotCreateInfo::default(), None).unwrap())
            .collect();
        gpu.device.set_private_data(a.raw, slots[0], 7).unwrap();
        gpu.device.set_private_data(a.memory, slots[0], 8).unwrap();
        let get = |buffer, slot| gpu.device.get_private_data(buffer, slot);
        assert_eq!((get(a.raw, slots[0]), get(a.raw, slots[1]), get(b.raw, slots[0])), (7, 0, 0));
        assert_eq!(gpu.device.get_private_data(a.memory, slots[0]), 8);
        // Destroying the object removes them.
        let short = gpu.device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
        gpu.device.set_private_data(short, slots[1], 9).unwrap();
        assert_eq!(gpu.device.get_private_data(short, slots[1]), 9);
        gpu.device.destroy_fence(short, None);
        assert_eq!(gpu.device.get_private_data(short, slots[1]), 0);
        slots.iter().for_each(|&slot| gpu.device.destroy_private_data_slot(slot, None));
    }
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}

#[test]
fn subgroups_are_full_and_have_the_required_size() {
    let gpu = Gpu::new();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(32) fn main(
            @builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
            @builtin(subgroup_invocation_id) lane: u32
        ) { a[i] = size * 100u + lane; }";
    let program = gpu.program(source, &[STORAGE], PLAIN);
    let make = |size| {
        let mut required =
            vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(size);
        let stage = stage(program.module)
            .flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS)
            .push_next(&mut required);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(program.layout);
        gpu.pipeline(vk::PipelineCache::null(), &info)
    };
    assert_eq!(make(8), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    let pipeline = make(16).unwrap();
    let (a, pool) = (gpu.buffer(32), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    gpu.run(gpu.dispatch(pipeline, program.layout, set, 1));
    assert_eq!(a.read(), (0..32).map(|i| 1600 + i % 16).collect::<Vec<_>>());
    unsafe {
        gpu.device.destroy_pipeline(pipeline, None);
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(a);
}

#[test]
fn depth_has_separate_layouts() {
    let gpu = Gpu::new();
    let out = gpu.buffer(16);
    out.write(&[1.0f32.to_bits(); 16]);
    unsafe {
        let extent = vk::Extent3D { width: 4, height: 4, depth: 1 };
        let (image, memory) = gpu.image(vk::Format::D32_SFLOAT, extent);
        let depth = vk::ImageAspectFlags::DEPTH;
        let layers = vk::ImageSubresourceLayers { aspect_mask: depth, layer_count: 1, ..Default::default() };
        let range =
            vk::ImageSubresourceRange { aspect_mask: depth, level_count: 1, layer_count: 1, ..Default::default() };
        let region = vk::BufferImageCopy::default().image_subresource(layers).image_extent(extent);
        let (general, written) = (vk::ImageLayout::GENERAL, vk::ImageLayout::DEPTH_ATTACHMENT_OPTIMAL);
        let commands = gpu.record(|device, commands| {
            let barrier = |old, new| {
                let barriers = [vk::ImageMemoryBarrier::default()
                    .image(image)
                    .old_layout(old)
                    .new_layout(new)
                    .subresource_range(range)];
                let (all, none) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::DependencyFlags::empty());
                device.cmd_pipeline_barrier(commands, all, all, none, &[], &[], &barriers);
            };
            device.cmd_copy_buffer_to_image(commands, out.raw, image, general, &[region]);
            // To a layout of the depth aspect and back: no texel changes.
            barrier(general, written);
            barrier(written, vk::ImageLayout::DEPTH_READ_ONLY_OPTIMAL);
            barrier(vk::ImageLayout::DEPTH_READ_ONLY_OPTIMAL, general);
            device.cmd_fill_buffer(commands, out.raw, 0, vk::WHOLE_SIZE, 0);
            barrier(general, general);
            device.cmd_copy_image_to_buffer(commands, image, general, out.raw, &[region]);
        });
        gpu.run(commands.unwrap());
        gpu.device.destroy_image(image, None);
        gpu.device.free_memory(memory, None);
    }
    assert_eq!(out.read(), [1.0f32.to_bits(); 16]);
    gpu.destroy_buffer(out);
}

#[test]
fn unused_bindings_are_written_while_a_set_is_pending() {
    unused_elements(vk::DescriptorBindingFlags::UPDATE_AFTER_BIND | vk::DescriptorBindingFlags::PARTIALLY_BOUND);
    unused_elements(vk::DescriptorBindingFlags::empty());
}

fn unused_elements(more: vk::DescriptorBindingFlags) {
    let gpu = Gpu::new();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { a[i] += 5u; }";
    let program = gpu.program(source, &[STORAGE], PLAIN);
    let (a, b) = (gpu.buffer(4), gpu.buffer(4));
    unsafe {
        let bindings = [binding(0, STORAGE, 1), binding(1, STORAGE, 1)];
        let late = more.contains(vk::DescriptorBindingFlags::UPDATE_AFTER_BIND);
        let flags = [vk::DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING | more; 2];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default()
            .bindings(&bindings)
            .flags(if late { vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL } else { PLAIN })
            .push_next(&mut flags);
        let layout = gpu.layout(&info);
        let layouts = [layout.set];
        let info = vk::ComputePipelineCreateInfo::default().stage(stage(program.module)).layout(layout.pipeline);
        let pipeline = gpu.pipeline(vk::PipelineCache::null(), &info).unwrap();
        let sizes = [vk::DescriptorPoolSize { ty: STORAGE, descriptor_count: 2 }];
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(1)
            .pool_sizes(&sizes)
            .flags(vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND);
        let pool = gpu.device.create_descriptor_pool(&info, None).unwrap();
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = gpu.device.allocate_descriptor_sets(&info).unwrap()[0];
        let write = |binding, buffer| {
            let infos = [vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }];
            let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(STORAGE);
            gpu.device.update_descriptor_sets(&[write.buffer_info(&infos)], &[]);
        };
        write(0, a.raw);
        let commands = gpu.dispatch(pipeline, layout.pipeline, set, 1);
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let semaphore = gpu.device.create_semaphore(&info, None).unwrap();
        let waits = [vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(1)];
        let list = [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        let submit = vk::SubmitInfo2::default().wait_semaphore_infos(&waits).command_buffer_infos(&list);
        gpu.device.queue_submit2(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        // The set is pending; the shader uses its other binding.
        write(1, b.raw);
        let signal = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1);
        gpu.device.signal_semaphore(&signal).unwrap();
        gpu.device.queue_wait_idle(gpu.queue).unwrap();
        assert_eq!((a.read(), b.read()), (vec![5; 4], vec![0; 4]));
        // The command buffer is still valid.
        gpu.run(commands);
        assert_eq!((a.read(), b.read()), (vec![10; 4], vec![0; 4]));
        gpu.device.destroy_semaphore(semaphore, None);
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.device.destroy_pipeline(pipeline, None);
        gpu.destroy_layout(layout);
    }
    gpu.destroy_program(program);
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}

#[test]
fn the_last_inline_block_of_a_set_has_a_variable_size() {
    let gpu = Gpu::new();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<uniform> few: vec4<u32>;
        @group(0) @binding(2) var<uniform> many: array<vec4<u32>, 4>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { a[i] = few.y + many[i].x; }";
    let block = vk::DescriptorType::INLINE_UNIFORM_BLOCK;
    let program = gpu.program(source, &[STORAGE, block, block], PLAIN);
    let bindings = [binding(0, STORAGE, 1), binding(1, block, 16), binding(2, block, 64)];
    let none = vk::DescriptorBindingFlags::empty();
    let flags = [none, none, vk::DescriptorBindingFlags::VARIABLE_DESCRIPTOR_COUNT];
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).push_next(&mut flags);
    unsafe {
        let mut most = vk::DescriptorSetVariableDescriptorCountLayoutSupport::default();
        let mut support = vk::DescriptorSetLayoutSupport::default().push_next(&mut most);
        gpu.device.get_descriptor_set_layout_support(&info, &mut support);
        assert_eq!((support.supported, most.max_variable_descriptor_count), (vk::TRUE, 4096));
        let layout = gpu.layout(&info);
        let layouts = [layout.set];
        let info = vk::ComputePipelineCreateInfo::default().stage(stage(program.module)).layout(layout.pipeline);
        let pipeline = gpu.pipeline(vk::PipelineCache::null(), &info).unwrap();
        let (pool, a) = (gpu.descriptor_pool(), gpu.buffer(4));
        let allocate = |bytes| {
            let counts = [bytes];
            let mut counts = vk::DescriptorSetVariableDescriptorCountAllocateInfo::default().descriptor_counts(&counts);
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            gpu.device.allocate_descriptor_sets(&info.push_next(&mut counts)).map(|sets| sets[0])
        };
        for wrong in [68, 6] {
            assert_eq!(allocate(wrong), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT), "{wrong} bytes");
        }
        for (bytes, wanted) in [(32u32, [21, 22, 20, 20]), (0, [20; 4])] {
            let set = allocate(bytes).unwrap();
            let infos = [vk::DescriptorBufferInfo { buffer: a.raw, offset: 0, range: vk::WHOLE_SIZE }];
            let write = vk::WriteDescriptorSet::default().dst_set(set).descriptor_type(STORAGE).buffer_info(&infos);
            gpu.device.update_descriptor_sets(&[write], &[]);
            let fill = |binding, words: &[u32]| {
                let contents: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let mut data = vk::WriteDescriptorSetInlineUniformBlock::default().data(&contents);
                let write = vk::WriteDescriptorSet::default().dst_set(set).dst_binding(binding).descriptor_type(block);
                let mut write = write.push_next(&mut data);
                write.descriptor_count = contents.len() as u32;
                gpu.device.update_descriptor_sets(&[write], &[]);
            };
            fill(1, &[10, 20, 30, 40]);
            if bytes > 0 {
                fill(2, &[1, 0, 0, 0, 2, 0, 0, 0]);
            }
            gpu.run(gpu.dispatch(pipeline, layout.pipeline, set, 1));
            // Beyond its size in the set, the block reads as 0.
            assert_eq!(a.read(), wanted, "{bytes} bytes");
            gpu.device.free_descriptor_sets(pool, &[set]).unwrap();
        }
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.device.destroy_pipeline(pipeline, None);
        gpu.destroy_layout(layout);
        gpu.destroy_buffer(a);
    }
    gpu.destroy_program(program);
}

#[test]
fn image_views_have_the_formats_of_the_image_format_list() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_image_format_list", c"VK_KHR_maintenance2"]);
    let formats = [vk::Format::R8G8B8A8_UNORM, vk::Format::R32_UINT];
    let mut list = vk::ImageFormatListCreateInfo::default().view_formats(&formats);
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::STORAGE;
    let info = vk::ImageCreateInfo::default()
        .flags(vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE)
        .image_type(vk::ImageType::TYPE_2D)
        .format(formats[0])
        .extent(vk::Extent3D { width: 4, height: 4, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(usage)
        .push_next(&mut list);
    unsafe {
        let image = gpu.device.create_image(&info, None).unwrap();
        let needs = gpu.device.get_image_memory_requirements(image);
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let memory = gpu.device.allocate_memory(&info, None).unwrap();
        gpu.device.bind_image_memory(image, memory, 0).unwrap();
        let view = |format| {
            let mut usage = vk::ImageViewUsageCreateInfo::default().usage(vk::ImageUsageFlags::STORAGE);
            let range = vk::ImageSubresourceRange {
                aspect_mask: vk::ImageAspectFlags::COLOR,
                level_count: 1,
                layer_count: 1,
                ..Default::default()
            };
            let info = vk::ImageViewCreateInfo::default()
                .image(image)
                .view_type(vk::ImageViewType::TYPE_2D)
                .format(format)
                .subresource_range(range)
                .push_next(&mut usage);
            gpu.device.create_image_view(&info, None)
        };
        for format in formats {
            gpu.device.destroy_image_view(view(format).unwrap(), None);
        }
        let wrong = Err(vk::Result::ERROR_VALIDATION_FAILED_EXT);
        assert_eq!(view(vk::Format::R32G32_SFLOAT), wrong, "texels of another size");
        gpu.device.destroy_image(image, None);
        gpu.device.free_memory(memory, None);
    }
}
