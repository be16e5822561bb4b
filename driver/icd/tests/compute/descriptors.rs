//! Descriptors that are written, copied, pushed, inline, by template, or null.

use ash::vk;

use super::common::Gpu;
use super::{PLAIN, SCALE, STORAGE};

#[test]
fn push_descriptors_templates_and_inline_blocks() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_push_descriptor"]);
    let add = "
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @group(0) @binding(1) var<uniform> b: vec4<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = a[0] + b.x + b.w; }";
    let block = vk::DescriptorType::INLINE_UNIFORM_BLOCK;
    let program = gpu.program(add, &[STORAGE, block], PLAIN);
    let (a, pool) = (gpu.buffer(4), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    let point = vk::PipelineBindPoint::COMPUTE;
    unsafe {
        let bytes: Vec<u8> = [10u32, 20, 30, 40].iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut data = vk::WriteDescriptorSetInlineUniformBlock::default().data(&bytes);
        let mut write =
            vk::WriteDescriptorSet::default().dst_set(set).dst_binding(1).descriptor_type(block).push_next(&mut data);
        write.descriptor_count = 16;
        gpu.device.update_descriptor_sets(&[write], &[]);
        gpu.run(gpu.dispatch(program.pipeline, program.layout, set, 1));
        assert_eq!(a.read()[0], 50);

        // The same with a template, whose data have another number for the inline block.
        let entries = [vk::DescriptorUpdateTemplateEntry {
            dst_binding: 1,
            dst_array_element: 0,
            descriptor_count: 16,
            descriptor_type: block,
            offset: 4,
            // Without meaning for an inline block.
            stride: usize::MAX,
        }];
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .descriptor_set_layout(program.set_layout);
        let template = gpu.device.create_descriptor_update_template(&info, None).unwrap();
        let words = [0u32, 1, 0, 0, 2];
        gpu.device.update_descriptor_set_with_template(set, template, words.as_ptr().cast());
        gpu.run(gpu.dispatch(program.pipeline, program.layout, set, 1));
        assert_eq!(a.read()[0], 53);
        gpu.device.destroy_descriptor_update_template(template, None);

        // Pushed descriptors: two dispatches of one recording see two buffers.
        let flags = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
        let pushed = gpu.program(SCALE, &[STORAGE; 2], flags);
        let (b, c) = (gpu.buffer(4), gpu.buffer(4));
        a.write(&[1, 2, 3, 4]);
        let push = ash::khr::push_descriptor::Device::new(&gpu.instance, &gpu.device);
        let commands = gpu.record(|device, commands| {
            device.cmd_bind_pipeline(commands, point, pushed.pipeline);
            let infos = [a.raw, b.raw, c.raw]
                .map(|buffer| [vk::DescriptorBufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }]);
            let write = |binding, info| {
                vk::WriteDescriptorSet::default().dst_binding(binding).descriptor_type(STORAGE).buffer_info(info)
            };
            push.cmd_push_descriptor_set(
                commands,
                point,
                pushed.layout,
                0,
                &[write(0, &infos[0]), write(1, &infos[1])],
            );
            device.cmd_dispatch(commands, 1, 1, 1);
            push.cmd_push_descriptor_set(commands, point, pushed.layout, 0, &[write(1, &infos[2])]);
            device.cmd_dispatch(commands, 1, 1, 1);
        });
        gpu.run(commands.unwrap());
        assert_eq!((b.read(), c.read()), (vec![3, 6, 9, 12], vec![3, 6, 9, 12]));
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.destroy_program(program);
        gpu.destroy_program(pushed);
        [a, b, c].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
    }
}

#[test]
fn copied_and_null_descriptors() {
    let gpu = Gpu::new();
    let program = gpu.program(SCALE, &[STORAGE; 2], PLAIN);
    let (a, b, pool) = (gpu.buffer(4), gpu.buffer(4), gpu.descriptor_pool());
    a.write(&[1, 2, 3, 4]);
    let (first, second) = (gpu.set(pool, &program, &[&a, &b]), gpu.set(pool, &program, &[]));
    let copy = |binding| {
        vk::CopyDescriptorSet::default()
            .src_set(first)
            .src_binding(binding)
            .dst_set(second)
            .dst_binding(binding)
            .descriptor_count(1)
    };
    unsafe { gpu.device.update_descriptor_sets(&[], &[copy(0), copy(1)]) };
    gpu.run(gpu.dispatch(program.pipeline, program.layout, second, 1));
    assert_eq!(b.read(), [3, 6, 9, 12]);
    // Reads through null descriptors return 0.
    let infos = [vk::DescriptorBufferInfo { buffer: vk::Buffer::null(), offset: 0, range: vk::WHOLE_SIZE }];
    let write = vk::WriteDescriptorSet::default().dst_set(second).descriptor_type(STORAGE).buffer_info(&infos);
    unsafe { gpu.device.update_descriptor_sets(&[write], &[]) };
    gpu.run(gpu.dispatch(program.pipeline, program.layout, second, 1));
    assert_eq!(b.read(), [3, 6, 9, 12]);
    unsafe { gpu.device.destroy_descriptor_pool(pool, None) };
    gpu.destroy_program(program);
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}

/// Writes ignore the handles of immutable samplers, which may be invalid.
#[test]
fn writes_ignore_the_handles_of_immutable_samplers() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_push_descriptor"]);
    let point = vk::PipelineBindPoint::COMPUTE;
    let sampler = vk::DescriptorType::SAMPLER;
    unsafe {
        let own = [gpu.device.create_sampler(&vk::SamplerCreateInfo::default(), None).unwrap(); 2];
        let bindings = [
            vk::DescriptorSetLayoutBinding::default()
                .descriptor_type(sampler)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
                .immutable_samplers(&own),
            vk::DescriptorSetLayoutBinding::default()
                .binding(1)
                .descriptor_type(STORAGE)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE),
        ];
        let layout_of = |flags| {
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings).flags(flags);
            let set_layout = gpu.device.create_descriptor_set_layout(&info, None).unwrap();
            let layouts = [set_layout];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
            (set_layout, gpu.device.create_pipeline_layout(&info, None).unwrap())
        };
        // An invalid address: reading it would crash.
        let nowhere = std::ptr::without_provenance::<vk::DescriptorImageInfo>(8);
        let write = |nowhere| {
            let mut write = vk::WriteDescriptorSet::default().descriptor_type(sampler).dst_array_element(1);
            (write.descriptor_count, write.p_image_info) = (1, nowhere);
            write
        };
        let entries = [vk::DescriptorUpdateTemplateEntry {
            dst_binding: 0,
            dst_array_element: 0,
            descriptor_count: 2,
            descriptor_type: sampler,
            offset: 1 << 40,
            stride: 24,
        }];
        let (set_layout, layout) = layout_of(vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
            .pipeline_bind_point(point)
            .pipeline_layout(layout);
        let template = gpu.device.create_descriptor_update_template(&info, None).unwrap();
        let push = ash::khr::push_descriptor::Device::new(&gpu.instance, &gpu.device);
        let data = 0u64;
        let commands = gpu.record(|_, commands| {
            push.cmd_push_descriptor_set(commands, point, layout, 0, &[write(nowhere)]);
            push.cmd_push_descriptor_set(commands, point, layout, 0, &[write(std::ptr::null())]);
            push.cmd_push_descriptor_set_with_template(commands, template, layout, 0, (&raw const data).cast());
        });
        gpu.run(commands.unwrap());
        // There are two samplers, and no third.
        let beyond = gpu.record(|_, commands| {
            let write = write(nowhere).dst_array_element(2);
            push.cmd_push_descriptor_set(commands, point, layout, 0, &[write]);
        });
        assert_eq!(beyond, Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        gpu.device.destroy_descriptor_update_template(template, None);
        gpu.device.destroy_pipeline_layout(layout, None);
        gpu.device.destroy_descriptor_set_layout(set_layout, None);

        // The same in sets of a pool, by writes and by templates.
        let (set_layout, layout) = layout_of(PLAIN);
        let pool = gpu.descriptor_pool();
        let layouts = [set_layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        let set = gpu.device.allocate_descriptor_sets(&info).unwrap()[0];
        gpu.device.update_descriptor_sets(&[write(nowhere).dst_set(set)], &[]);
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .descriptor_set_layout(set_layout);
        let template = gpu.device.create_descriptor_update_template(&info, None).unwrap();
        gpu.device.update_descriptor_set_with_template(set, template, (&raw const data).cast());
        gpu.device.destroy_descriptor_update_template(template, None);
        gpu.device.destroy_pipeline_layout(layout, None);
        gpu.device.destroy_descriptor_set_layout(set_layout, None);
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.device.destroy_sampler(own[0], None);
    }
}
