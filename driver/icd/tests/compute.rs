//! Programs that compute through the C API.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common;
mod descriptors;

use crate::common::Gpu;
use ash::vk;

const SCALE: &str = "
    struct Push { factor: u32, }
    @group(0) @binding(0) var<storage, read> a: array<u32>;
    @group(0) @binding(1) var<storage, read_write> b: array<u32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&b) { b[id.x] = a[id.x] * 3u + b[id.x]; }
    }";

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;
const PLAIN: vk::DescriptorSetLayoutCreateFlags = vk::DescriptorSetLayoutCreateFlags::empty();

#[test]
fn a_kernel_reads_and_writes_mapped_memory() {
    let gpu = Gpu::new();
    let program = gpu.program(SCALE, &[STORAGE; 2], PLAIN);
    let (a, b) = (gpu.buffer(1000), gpu.buffer(1000));
    a.write(&(0..1000).collect::<Vec<_>>());
    b.write(&vec![7; 1000]);
    let pool = gpu.descriptor_pool();
    let set = gpu.set(pool, &program, &[&a, &b]);
    let commands = gpu.dispatch(program.pipeline, program.layout, set, 16);
    gpu.run(commands);
    assert_eq!(b.read(), (0..1000).map(|i| i * 3 + 7).collect::<Vec<u32>>());
    // The same command buffer is submitted again.
    gpu.run(commands);
    assert_eq!(b.read(), (0..1000).map(|i| i * 6 + 7).collect::<Vec<u32>>());
    unsafe { gpu.device.destroy_descriptor_pool(pool, None) };
    gpu.destroy_program(program);
    gpu.destroy_buffer(a);
    gpu.destroy_buffer(b);
}

#[test]
fn copies_fills_and_updates_agree() {
    let gpu = Gpu::new();
    let (a, b) = (gpu.buffer(64), gpu.buffer(64));
    let commands = gpu.record(|device, commands| unsafe {
        device.cmd_fill_buffer(commands, a.raw, 0, vk::WHOLE_SIZE, 5);
        let barrier = vk::MemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::ALL_TRANSFER)
            .src_access_mask(vk::AccessFlags2::TRANSFER_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags2::COPY)
            .dst_access_mask(vk::AccessFlags2::TRANSFER_WRITE | vk::AccessFlags2::TRANSFER_READ);
        let barriers = [barrier];
        let dependency = vk::DependencyInfo::default().memory_barriers(&barriers);
        device.cmd_pipeline_barrier2(commands, &dependency);
        device.cmd_update_buffer(commands, a.raw, 16, &[1, 0, 0, 0, 2, 0, 0, 0]);
        device.cmd_pipeline_barrier2(commands, &dependency);
        let regions = [vk::BufferCopy2::default().src_offset(8).dst_offset(0).size(32)];
        let copy = vk::CopyBufferInfo2::default().src_buffer(a.raw).dst_buffer(b.raw).regions(&regions);
        device.cmd_copy_buffer2(commands, &copy);
    });
    gpu.run(commands.unwrap());
    assert_eq!(b.read()[..9], [5, 5, 1, 2, 5, 5, 5, 5, 0]);
    gpu.destroy_buffer(a);
    gpu.destroy_buffer(b);
}

#[test]
fn timelines_order_queues_and_the_host() {
    let gpu = Gpu::new();
    let a = gpu.buffer(4);
    let fill = |word| gpu.record(|device, commands| unsafe { device.cmd_fill_buffer(commands, a.raw, 0, 16, word) });
    let (first, second) = (fill(1).unwrap(), fill(2).unwrap());
    unsafe {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let semaphore = gpu.device.create_semaphore(&info, None).unwrap();
        let other = gpu.device.get_device_queue(0, 1);
        let at = |value| [vk::SemaphoreSubmitInfo::default().semaphore(semaphore).value(value)];
        let of = |commands| [vk::CommandBufferSubmitInfo::default().command_buffer(commands)];
        // The second is submitted first and has to wait for the first, which waits for the host.
        let (wait, signal, commands) = (at(2), at(3), of(second));
        let submit = vk::SubmitInfo2::default().wait_semaphore_infos(&wait).signal_semaphore_infos(&signal);
        let submit = submit.command_buffer_infos(&commands);
        gpu.device.queue_submit2(other, &[submit], vk::Fence::null()).unwrap();
        let (wait, signal, commands) = (at(1), at(2), of(first));
        let submit = vk::SubmitInfo2::default().wait_semaphore_infos(&wait).signal_semaphore_infos(&signal);
        let submit = submit.command_buffer_infos(&commands);
        gpu.device.queue_submit2(gpu.queue, &[submit], vk::Fence::null()).unwrap();
        let (semaphores, values) = ([semaphore], [3]);
        let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        assert_eq!(gpu.device.wait_semaphores(&wait, 1_000_000), Err(vk::Result::TIMEOUT));
        assert_eq!(a.read()[0], 0);
        let signal = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(1);
        gpu.device.signal_semaphore(&signal).unwrap();
        gpu.device.wait_semaphores(&wait, u64::MAX).unwrap();
        assert_eq!(gpu.device.get_semaphore_counter_value(semaphore), Ok(3));
        assert_eq!(a.read()[0], 2);
        gpu.device.destroy_semaphore(semaphore, None);
    }
    gpu.destroy_buffer(a);
}

#[test]
fn timestamps_count_nanoseconds() {
    let gpu = Gpu::new();
    let a = gpu.buffer(1 << 20);
    unsafe {
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(2);
        let pool = gpu.device.create_query_pool(&info, None).unwrap();
        gpu.device.reset_query_pool(pool, 0, 2);
        let flags = vk::QueryResultFlags::TYPE_64;
        let mut values = [0u64; 2];
        assert_eq!(gpu.device.get_query_pool_results(pool, 0, &mut values, flags), Err(vk::Result::NOT_READY));
        let commands = gpu.record(|device, commands| {
            device.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, pool, 0);
            device.cmd_fill_buffer(commands, a.raw, 0, vk::WHOLE_SIZE, 9);
            device.cmd_write_timestamp2(commands, vk::PipelineStageFlags2::ALL_COMMANDS, pool, 1);
        });
        let start = std::time::Instant::now();
        gpu.run(commands.unwrap());
        let took = start.elapsed().as_nanos() as u64;
        gpu.device.get_query_pool_results(pool, 0, &mut values, flags | vk::QueryResultFlags::WAIT).unwrap();
        assert!(values[0] <= values[1] && values[1] - values[0] <= took, "{values:?} in {took} ns");
        gpu.device.destroy_query_pool(pool, None);
    }
    gpu.destroy_buffer(a);
}

#[test]
fn secondary_command_buffers_and_events() {
    let gpu = Gpu::new();
    let a = gpu.buffer(4);
    unsafe {
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(gpu.pool)
            .level(vk::CommandBufferLevel::SECONDARY)
            .command_buffer_count(1);
        let secondary = gpu.device.allocate_command_buffers(&info).unwrap()[0];
        let inheritance = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default().inheritance_info(&inheritance);
        gpu.device.begin_command_buffer(secondary, &info).unwrap();
        gpu.device.cmd_fill_buffer(secondary, a.raw, 0, 8, 4);
        gpu.device.end_command_buffer(secondary).unwrap();
        let event = gpu.device.create_event(&vk::EventCreateInfo::default(), None).unwrap();
        let stage = vk::PipelineStageFlags::ALL_COMMANDS;
        let commands = gpu.record(|device, commands| {
            device.cmd_execute_commands(commands, &[secondary]);
            device.cmd_set_event(commands, event, stage);
            device.cmd_wait_events(commands, &[event], stage, stage, &[], &[], &[]);
            device.cmd_fill_buffer(commands, a.raw, 8, 8, 6);
        });
        gpu.run(commands.unwrap());
        assert_eq!(gpu.device.get_event_status(event), Ok(true));
        gpu.device.destroy_event(event, None);
    }
    assert_eq!(a.read(), [4, 4, 6, 6]);
    gpu.destroy_buffer(a);
}

#[test]
fn images_are_cleared_and_copied_out() {
    let gpu = Gpu::new();
    let out = gpu.buffer(64);
    unsafe {
        let extent = vk::Extent3D { width: 8, height: 8, depth: 1 };
        let (image, memory) = gpu.image(vk::Format::R8G8B8A8_UNORM, extent);
        let range = vk::ImageSubresourceRange {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            base_mip_level: 0,
            level_count: 1,
            base_array_layer: 0,
            layer_count: 1,
        };
        let layers = vk::ImageSubresourceLayers {
            aspect_mask: vk::ImageAspectFlags::COLOR,
            mip_level: 0,
            base_array_layer: 0,
            layer_count: 1,
        };
        let general = vk::ImageLayout::GENERAL;
        let commands = gpu.record(|device, commands| {
            let color = vk::ClearColorValue { float32: [1.0, 0.0, 0.0, 1.0] };
            device.cmd_clear_color_image(commands, image, general, &color, &[range]);
            let barriers = [vk::ImageMemoryBarrier::default()
                .image(image)
                .old_layout(general)
                .new_layout(vk::ImageLayout::TRANSFER_SRC_OPTIMAL)
                .subresource_range(range)];
            let transfer = vk::PipelineStageFlags::TRANSFER;
            let none = vk::DependencyFlags::empty();
            device.cmd_pipeline_barrier(commands, transfer, transfer, none, &[], &[], &barriers);
            let region = vk::BufferImageCopy::default().image_subresource(layers).image_extent(extent);
            device.cmd_copy_image_to_buffer(commands, image, general, out.raw, &[region]);
        });
        gpu.run(commands.unwrap());
        gpu.device.destroy_image(image, None);
        gpu.device.free_memory(memory, None);
    }
    assert_eq!(out.read(), [0xff00_00ff; 64]);
    gpu.destroy_buffer(out);
}

#[test]
fn imported_memory_and_conditions() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_external_memory_host", c"VK_EXT_conditional_rendering"]);
    let conditional = ash::ext::conditional_rendering::Device::new(&gpu.instance, &gpu.device);
    let layout = std::alloc::Layout::from_size_align(4096, 4096).unwrap();
    let (program, a) = (gpu.program(SCALE, &[STORAGE; 2], PLAIN), gpu.buffer(4));
    unsafe {
        let pages = std::alloc::alloc_zeroed(layout);
        pages.cast::<u32>().write(5);
        let host = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let mut import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(host).host_pointer(pages.cast());
        let info = vk::MemoryAllocateInfo::default().allocation_size(4096).push_next(&mut import);
        let memory = gpu.device.allocate_memory(&info, None).unwrap();
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::CONDITIONAL_RENDERING_EXT;
        let raw = gpu.device.create_buffer(&vk::BufferCreateInfo::default().size(16).usage(usage), None).unwrap();
        gpu.device.bind_buffer_memory(raw, memory, 0).unwrap();
        let imported = common::Buffer { raw, memory, mapped: pages.cast(), words: 4 };
        let pool = gpu.descriptor_pool();
        let set = gpu.set(pool, &program, &[&imported, &a]);
        let point = vk::PipelineBindPoint::COMPUTE;
        // Word 0 is 5, so the first dispatch runs; word 1 is 0, so the second does not, and does if inverted.
        let commands = gpu.record(|device, commands| {
            device.cmd_bind_pipeline(commands, point, program.pipeline);
            device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
            for (offset, flags) in [
                (0, vk::ConditionalRenderingFlagsEXT::empty()),
                (4, vk::ConditionalRenderingFlagsEXT::empty()),
                (4, vk::ConditionalRenderingFlagsEXT::INVERTED),
            ] {
                let info = vk::ConditionalRenderingBeginInfoEXT::default().buffer(raw).offset(offset).flags(flags);
                (conditional.fp().cmd_begin_conditional_rendering_ext)(commands, &raw const info);
                device.cmd_dispatch(commands, 1, 1, 1);
                (conditional.fp().cmd_end_conditional_rendering_ext)(commands);
                let barriers = [vk::MemoryBarrier2::default()];
                device.cmd_pipeline_barrier2(commands, &vk::DependencyInfo::default().memory_barriers(&barriers));
            }
        });
        gpu.run(commands.unwrap());
        assert_eq!(a.read(), [30, 0, 0, 0]);
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.destroy_buffer(imported);
        std::alloc::dealloc(pages, layout);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(a);
}

#[test]
fn newer_commands_act_as_older_ones() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_maintenance6", c"VK_KHR_map_memory2", c"VK_KHR_push_descriptor"]);
    let newer = ash::khr::maintenance6::Device::new(&gpu.instance, &gpu.device);
    let maps = ash::khr::map_memory2::Device::new(&gpu.instance, &gpu.device);
    let add = "
        var<immediate> step: u32;
        @group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = a[0] + step; }";
    let compute = vk::ShaderStageFlags::COMPUTE;
    let (program, pool) = (gpu.program(add, &[STORAGE], PLAIN), gpu.descriptor_pool());
    let pushed = gpu.program(add, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR);
    unsafe {
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER;
        let raw = gpu.device.create_buffer(&vk::BufferCreateInfo::default().size(16).usage(usage), None).unwrap();
        let info = vk::MemoryAllocateInfo::default().allocation_size(64).memory_type_index(2);
        let memory = gpu.device.allocate_memory(&info, None).unwrap();
        // Each binding has its own result.
        let (mut good, mut bad) = (vk::Result::NOT_READY, vk::Result::NOT_READY);
        {
            let mut first = vk::BindMemoryStatusKHR::default().result(&mut good);
            let mut second = vk::BindMemoryStatusKHR::default().result(&mut bad);
            let bind = vk::BindBufferMemoryInfo::default().buffer(raw).memory(memory);
            let infos = [bind.push_next(&mut first), bind.push_next(&mut second)];
            assert_eq!(gpu.device.bind_buffer_memory2(&infos), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        }
        assert_eq!((good, bad), (vk::Result::SUCCESS, vk::Result::ERROR_VALIDATION_FAILED_EXT));
        let info = vk::MemoryMapInfoKHR::default().memory(memory).size(vk::WHOLE_SIZE);
        let (handle, mut mapped) = (gpu.device.handle(), std::ptr::null_mut());
        (maps.fp().map_memory2_khr)(handle, &raw const info, &raw mut mapped).result().unwrap();
        let buffer = common::Buffer { raw, memory, mapped: mapped.cast(), words: 4 };
        let set = gpu.set(pool, &program, &[&buffer]);
        let infos = [vk::DescriptorBufferInfo { buffer: raw, offset: 0, range: vk::WHOLE_SIZE }];
        let write = vk::WriteDescriptorSet::default().descriptor_type(STORAGE).buffer_info(&infos);
        let entries = [vk::DescriptorUpdateTemplateEntry {
            dst_binding: 0,
            dst_array_element: 0,
            descriptor_count: 1,
            descriptor_type: STORAGE,
            offset: 0,
            stride: 0,
        }];
        let info = vk::DescriptorUpdateTemplateCreateInfo::default()
            .descriptor_update_entries(&entries)
            .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
            .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
            .pipeline_layout(pushed.layout);
        let template = gpu.device.create_descriptor_update_template(&info, None).unwrap();
        let commands = gpu.record(|device, commands| {
            let dispatch = |program: &common::Program, step: u32| {
                device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, program.pipeline);
                let bytes = step.to_le_bytes();
                let info =
                    vk::PushConstantsInfoKHR::default().layout(program.layout).stage_flags(compute).values(&bytes);
                newer.cmd_push_constants2(commands, &info);
                device.cmd_dispatch(commands, 1, 1, 1);
                let barriers = [vk::MemoryBarrier2::default()];
                device.cmd_pipeline_barrier2(commands, &vk::DependencyInfo::default().memory_barriers(&barriers));
            };
            let sets = [set];
            let info = vk::BindDescriptorSetsInfoKHR::default();
            let info = info.stage_flags(compute).layout(program.layout).descriptor_sets(&sets);
            newer.cmd_bind_descriptor_sets2(commands, &info);
            dispatch(&program, 1);
            let writes = [write];
            let info = vk::PushDescriptorSetInfoKHR::default();
            let info = info.stage_flags(compute).layout(pushed.layout).descriptor_writes(&writes);
            newer.cmd_push_descriptor_set2(commands, &info);
            dispatch(&pushed, 20);
            let mut info = vk::PushDescriptorSetWithTemplateInfoKHR::default()
                .descriptor_update_template(template)
                .layout(pushed.layout);
            info.p_data = infos.as_ptr().cast();
            newer.cmd_push_descriptor_set_with_template2(commands, &info);
            dispatch(&pushed, 300);
        });
        gpu.run(commands.unwrap());
        assert_eq!(buffer.read()[0], 321);
        let info = vk::MemoryUnmapInfoKHR::default().memory(memory);
        let unmap = || (maps.fp().unmap_memory2_khr)(handle, &raw const info);
        assert_eq!(unmap(), vk::Result::SUCCESS);
        assert_eq!(unmap(), vk::Result::ERROR_VALIDATION_FAILED_EXT, "not mapped");
        gpu.device.destroy_descriptor_update_template(template, None);
        gpu.device.destroy_descriptor_pool(pool, None);
        gpu.destroy_buffer(buffer);
    }
    gpu.destroy_program(program);
    gpu.destroy_program(pushed);
}

#[test]
fn all_pipelines_are_robust() {
    let gpu = Gpu::with_extensions(&[c"VK_EXT_pipeline_robustness"]);
    let mut robustness = vk::PhysicalDevicePipelineRobustnessPropertiesEXT::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut robustness);
    unsafe { gpu.instance.get_physical_device_properties2(gpu.physical, &mut all) };
    assert_eq!(
        robustness.default_robustness_storage_buffers,
        vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2
    );
    // Far beyond the four words of each buffer.
    let source = "
        @group(0) @binding(0) var<storage, read> a: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            b[i + b[0] * 4000u] = 5u;
            b[i] = a[i + b[1] * 1000u] + 1u;
        }";
    let (program, pool) = (gpu.program(source, &[STORAGE; 2], PLAIN), gpu.descriptor_pool());
    let (a, b) = (gpu.buffer(4), gpu.buffer(4));
    for buffers in [
        vk::PipelineRobustnessBufferBehaviorEXT::DISABLED,
        vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS,
        vk::PipelineRobustnessBufferBehaviorEXT::ROBUST_BUFFER_ACCESS_2,
    ] {
        a.write(&[7; 4]);
        b.write(&[1; 4]);
        let mut robustness = vk::PipelineRobustnessCreateInfoEXT::default().storage_buffers(buffers);
        unsafe {
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(program.module)
                .name(c"main");
            let info =
                vk::ComputePipelineCreateInfo::default().stage(stage).layout(program.layout).push_next(&mut robustness);
            let pipeline = gpu.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None).unwrap()[0];
            let set = gpu.set(pool, &program, &[&a, &b]);
            let commands = gpu.record(|device, commands| {
                let point = vk::PipelineBindPoint::COMPUTE;
                device.cmd_bind_pipeline(commands, point, pipeline);
                device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
                device.cmd_dispatch(commands, 1, 1, 1);
            });
            gpu.run(commands.unwrap());
            assert_eq!(b.read(), [1; 4], "{buffers:?}: nothing is read or written out of bounds");
            gpu.device.destroy_pipeline(pipeline, None);
        }
    }
    unsafe { gpu.device.destroy_descriptor_pool(pool, None) };
    gpu.destroy_program(program);
    [a, b].into_iter().for_each(|buffer| gpu.destroy_buffer(buffer));
}
