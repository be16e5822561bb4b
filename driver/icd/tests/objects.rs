//! Features that are about objects and not about shaders: private data, subgroup sizes, layouts of depth, sets that are pending.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

mod common;

use ash::vk;
use common::Gpu;

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
        slots.iter().for_each(|&slot| gpu.device.destroy_private_data_slot(slot, None));
    }
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}

#[test]
fn subgroups_are_full_and_of_the_size_that_is_required() {
    let gpu = Gpu::new();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(32) fn main(
            @builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
            @builtin(subgroup_invocation_id) lane: u32
        ) { a[i] = size * 100u + lane; }";
    let program = gpu.program(source, &[STORAGE], PLAIN);
    let make = |size| unsafe {
        let mut required =
            vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(size);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS)
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(program.module)
            .name(c"main")
            .push_next(&mut required);
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(program.layout);
        let made = gpu.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
        made.map(|made| made[0]).map_err(|(_, code)| code)
    };
    assert_eq!(make(8), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    let pipeline = make(16).unwrap();
    let (a, pool) = (gpu.buffer(32), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    let point = vk::PipelineBindPoint::COMPUTE;
    let commands = gpu.record(|device, commands| unsafe {
        device.cmd_bind_pipeline(commands, point, pipeline);
        device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
        device.cmd_dispatch(commands, 1, 1, 1);
    });
    gpu.run(commands.unwrap());
    assert_eq!(a.read(), (0..32).map(|i| 1600 + i % 16).collect::<Vec<_>>());
    unsafe {
        gpu.device.destroy_pipeline(pipeline, None);
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(a);
}

#[test]
fn depth_has_layouts_of_its_own() {
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
            // Of the depth alone, and back: no texel changes.
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
fn elements_that_nobody_uses_are_written_while_a_set_is_pending() {
    let gpu = Gpu::new();
    let source = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { a[i] += 5u; }";
    let program = gpu.program(source, &[STORAGE], PLAIN);
    let (a, b) = (gpu.buffer(4), gpu.buffer(4));
    unsafe {
        let binding = |number| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(number)
                .descriptor_type(STORAGE)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings = [binding(0), binding(1)];
        let unused = vk::DescriptorBindingFlags::UPDATE_UNUSED_WHILE_PENDING
            | vk::DescriptorBindingFlags::UPDATE_AFTER_BIND
            | vk::DescriptorBindingFlags::PARTIALLY_BOUND;
        let flags = [unused; 2];
        let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
        let info = vk::DescriptorSetLayoutCreateInfo::default()
            .bindings(&bindings)
            .flags(vk::DescriptorSetLayoutCreateFlags::UPDATE_AFTER_BIND_POOL)
            .push_next(&mut flags);
        let set_layout = gpu.device.create_descriptor_set_layout(&info, None).unwrap();
        let layouts = [set_layout];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        let layout = gpu.device.create_pipeline_layout(&info, None).unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(program.module)
            .name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        let pipeline = gpu.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None).unwrap()[0];
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
        let point = vk::PipelineBindPoint::COMPUTE;
        let commands = gpu
            .record(|device, commands| {
                device.cmd_bind_pipeline(commands, point, pipeline);
                device.cmd_bind_descriptor_sets(commands, point, layout, 0, &[set], &[]);
                device.cmd_dispatch(commands, 1, 1, 1);
            })
            .unwrap();
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
        gpu.device.destroy_semaphore(semaphore, None);
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.device.destroy_pipeline(pipeline, None);
        gpu.device.destroy_pipeline_layout(layout, None);
        gpu.device.destroy_descriptor_set_layout(set_layout, None);
    }
    gpu.destroy_program(program);
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}
