//! One test file: its dispatch through the C API and the check of its results.

use std::collections::BTreeMap;

use ash::vk;
use spelter_shaders::ir::{BindingKind, Kernel};
use spelter_tests::case::{Case, Slot};
use spelter_tests::{check, corpus};

use crate::gpu::{Buffer, Gpu};
use crate::program::{Program, block, program};
use crate::resources::{Made, bytes_of};

/// How descriptors are passed to the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Sets are written, then bound.
    Plain,
    /// Sets are bound, then written (`UPDATE_AFTER_BIND`).
    Late,
    /// As [`Mode::Late`], with inline uniform blocks in place of uniform buffers where they are small enough.
    Inline,
    /// The descriptors of the first set with bindings are pushed one by one, since only one set may have push
    /// descriptors.
    Pushed,
    /// The last binding of each set has more elements than the set (`VARIABLE_DESCRIPTOR_COUNT`).
    Variable,
    /// As [`Mode::Plain`], with imported memory of the program (`VK_EXT_external_memory_host`).
    Imported,
}

impl Mode {
    pub(crate) const ALL: [(&str, Self); 6] = [
        ("plain", Self::Plain),
        ("late", Self::Late),
        ("inline", Self::Inline),
        ("pushed", Self::Pushed),
        ("variable", Self::Variable),
        ("imported", Self::Imported),
    ];

    pub(crate) fn is_late(self) -> bool {
        [Self::Late, Self::Inline].contains(&self)
    }
}

/// Runs the case; the error lists the failed expectations.
pub(crate) fn run(gpu: &Gpu, case: &Case, mode: Mode) -> Result<(), String> {
    // Input that does not become SPIR-V is never passed to a driver.
    let Ok(words) = corpus::spirv(case) else { return case.error.as_ref().map(|_| ()).ok_or("no SPIR-V".into()) };
    let kernel = match (check::front(case), &case.error) {
        (Ok(kernel), None) => kernel,
        (Err(_), Some(_)) => return check_rejected(gpu, case, &words, mode),
        (front, error) => return Err(format!("{front:?} where {error:?} is expected")),
    };
    let made = Made::new(gpu, case, mode == Mode::Imported);
    let program = program(gpu, case, &kernel, &words, mode)?;
    let result = dispatch(gpu, case, &kernel, &made, &program, mode);
    made.destroy(gpu);
    program.destroy(gpu);
    result
}

/// Checks that a module is rejected when its pipeline is created, or before.
fn check_rejected(gpu: &Gpu, case: &Case, words: &[u32], mode: Mode) -> Result<(), String> {
    let bindings = BTreeMap::new();
    let Ok(program) = Program::new(gpu, case, words, &bindings, mode) else { return Ok(()) };
    program.destroy(gpu);
    Err("the pipeline was created".into())
}

fn dispatch(gpu: &Gpu, case: &Case, kernel: &Kernel, made: &Made, program: &Program, mode: Mode) -> Result<(), String> {
    let device = &gpu.device;
    let pool = descriptor_pool(gpu, mode);
    // The push descriptor set is not in the pool.
    let pushed = kernel.bindings.values().map(|data| data.set).min().filter(|_| mode == Mode::Pushed);
    let counts = counts(kernel, program.sets.len());
    let sets: Vec<_> = (0..)
        .zip(&program.sets)
        .map(|(number, &layout)| {
            let (layouts, counts) = ([layout], [counts[number as usize]]);
            let mut counts = vk::DescriptorSetVariableDescriptorCountAllocateInfo::default().descriptor_counts(&counts);
            let mut info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            if mode == Mode::Variable {
                info = info.push_next(&mut counts);
            }
            (Some(number) != pushed).then(|| unsafe { device.allocate_descriptor_sets(&info).unwrap()[0] })
        })
        .collect();
    let put_all = |put: &dyn Fn(u32, vk::WriteDescriptorSet<'_>)| {
        for data in kernel.bindings.values() {
            for element in 0..data.count {
                let slot = Slot { set: data.set, binding: data.binding, element };
                let bytes = (mode == Mode::Inline && data.count == 1).then(|| block(case, slot)).flatten();
                write(case, slot, data.kind, made, bytes.is_some(), &|write| put(data.set, write));
            }
        }
    };
    let update = |set: u32, write: vk::WriteDescriptorSet<'_>| unsafe {
        if let Some(set) = sets[set as usize] {
            device.update_descriptor_sets(&[write.dst_set(set)], &[]);
        }
    };
    if !mode.is_late() {
        put_all(&update);
    }
    let commands = record(gpu, case, made, program, &sets, &|commands| {
        let (point, layout) = (vk::PipelineBindPoint::COMPUTE, program.layout);
        put_all(&|set, write| {
            if Some(set) == pushed {
                unsafe { gpu.push.cmd_push_descriptor_set(commands, point, layout, set, &[write]) };
            }
        });
    });
    if mode.is_late() {
        put_all(&update);
    }
    unsafe {
        let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).unwrap();
        let list = [commands.1];
        let submit = vk::SubmitInfo::default().command_buffers(&list);
        device.queue_submit(*gpu.queue.lock().unwrap(), &[submit], fence).unwrap();
        device.wait_for_fences(&[fence], true, u64::MAX).unwrap();
        device.destroy_fence(fence, None);
        device.destroy_command_pool(commands.0, None);
        device.destroy_descriptor_pool(pool, None);
    }
    for [(slot, at), _] in &case.addresses {
        made.buffers[slot].write(*at, &[0; 8]);
    }
    let words =
        |bytes: Vec<u8>| bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let mut memory: check::Memory = made.buffers.iter().map(|(slot, buffer)| (*slot, words(buffer.read()))).collect();
    memory.extend(made.images.iter().map(|(slot, image)| (*slot, words(image.staging.read()))));
    // The values of clocks are not in the file.
    if case.text.contains("OpReadClockKHR") {
        return if memory.values().flatten().any(|&word| word != 0) { Ok(()) } else { Err("no time".into()) };
    }
    check::compare_roughly(case, "Vulkan", &memory)
}

/// The element count of the last binding of each set.
fn counts(kernel: &Kernel, sets: usize) -> Vec<u32> {
    let of = |set| kernel.bindings.values().filter(move |data| data.set as usize == set);
    (0..sets).map(|set| of(set).max_by_key(|data| data.binding).map_or(0, |data| data.count)).collect()
}

fn descriptor_pool(gpu: &Gpu, mode: Mode) -> vk::DescriptorPool {
    let types = [
        vk::DescriptorType::STORAGE_BUFFER,
        vk::DescriptorType::UNIFORM_BUFFER,
        vk::DescriptorType::SAMPLER,
        vk::DescriptorType::SAMPLED_IMAGE,
        vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        vk::DescriptorType::STORAGE_IMAGE,
        vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    ];
    let mut sizes = types.map(|ty| vk::DescriptorPoolSize { ty, descriptor_count: 256 }).to_vec();
    let ty = vk::DescriptorType::INLINE_UNIFORM_BLOCK;
    sizes.push(vk::DescriptorPoolSize { ty, descriptor_count: 1 << 16 });
    let mut blocks = vk::DescriptorPoolInlineUniformBlockCreateInfo::default().max_inline_uniform_block_bindings(16);
    let late = vk::DescriptorPoolCreateFlags::UPDATE_AFTER_BIND;
    let flags = if mode.is_late() { late } else { vk::DescriptorPoolCreateFlags::empty() };
    let info = vk::DescriptorPoolCreateInfo::default().max_sets(16).pool_sizes(&sizes).flags(flags);
    let info = info.push_next(&mut blocks);
    unsafe { gpu.device.create_descriptor_pool(&info, None).unwrap() }
}

/// Writes the descriptor of a slot; slots without a resource in the case are left unwritten.
fn write(
    case: &Case,
    slot: Slot,
    kind: BindingKind,
    made: &Made,
    inline: bool,
    put: &dyn Fn(vk::WriteDescriptorSet<'_>),
) {
    let whole = |buffer: &Buffer| [vk::DescriptorBufferInfo { buffer: buffer.raw, offset: 0, range: vk::WHOLE_SIZE }];
    let sampler = made.samplers.get(&slot).copied().unwrap_or_default();
    let image_view = made.images.get(&slot).map(|image| image.view).unwrap_or_default();
    let images = [vk::DescriptorImageInfo { sampler, image_view, image_layout: vk::ImageLayout::GENERAL }];
    let buffers = made.buffers.get(&slot).filter(|buffer| buffer.bytes > 0).map(whole);
    let views = made.texels.get(&slot).map(|&view| [view]);
    let base = vk::WriteDescriptorSet::default().dst_binding(slot.binding).dst_array_element(slot.element);
    if inline && kind == BindingKind::UniformBuffer {
        let bytes = case.binds.get(&slot).map(|words| bytes_of(words)).unwrap_or_default();
        let mut data = vk::WriteDescriptorSetInlineUniformBlock::default().data(&bytes);
        let mut write = base.descriptor_type(vk::DescriptorType::INLINE_UNIFORM_BLOCK).push_next(&mut data);
        write.descriptor_count = bytes.len() as u32;
        return put(write);
    }
    let there = image_view != vk::ImageView::null();
    let write = match (kind, &buffers, &views) {
        (BindingKind::StorageBuffer, Some(info), _) => {
            base.descriptor_type(vk::DescriptorType::STORAGE_BUFFER).buffer_info(info)
        }
        (BindingKind::UniformBuffer, Some(info), _) => {
            base.descriptor_type(vk::DescriptorType::UNIFORM_BUFFER).buffer_info(info)
        }
        (BindingKind::UniformTexelBuffer, _, Some(views)) => {
            base.descriptor_type(vk::DescriptorType::UNIFORM_TEXEL_BUFFER).texel_buffer_view(views)
        }
        (BindingKind::StorageTexelBuffer, _, Some(views)) => {
            base.descriptor_type(vk::DescriptorType::STORAGE_TEXEL_BUFFER).texel_buffer_view(views)
        }
        (BindingKind::Sampler, ..) if sampler != vk::Sampler::null() => {
            base.descriptor_type(vk::DescriptorType::SAMPLER).image_info(&images)
        }
        (BindingKind::SampledImage, ..) if there => {
            base.descriptor_type(vk::DescriptorType::SAMPLED_IMAGE).image_info(&images)
        }
        (BindingKind::StorageImage, ..) if there => {
            base.descriptor_type(vk::DescriptorType::STORAGE_IMAGE).image_info(&images)
        }
        (BindingKind::CombinedImageSampler, ..) if there => {
            base.descriptor_type(vk::DescriptorType::COMBINED_IMAGE_SAMPLER).image_info(&images)
        }
        _ => return,
    };
    put(write);
}

/// Records the uploads to images, the dispatch, and the downloads.
fn record(
    gpu: &Gpu,
    case: &Case,
    made: &Made,
    program: &Program,
    sets: &[Option<vk::DescriptorSet>],
    push: &dyn Fn(vk::CommandBuffer),
) -> (vk::CommandPool, vk::CommandBuffer) {
    let device = &gpu.device;
    let point = vk::PipelineBindPoint::COMPUTE;
    let general = vk::ImageLayout::GENERAL;
    let barrier = |commands| unsafe {
        let (all, none) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::DependencyFlags::empty());
        let access = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let memory = [vk::MemoryBarrier::default().src_access_mask(access).dst_access_mask(access)];
        device.cmd_pipeline_barrier(commands, all, all, none, &memory, &[], &[]);
    };
    unsafe {
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).unwrap()[0];
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
        for image in made.images.values() {
            device.cmd_copy_buffer_to_image(commands, image.staging.raw, image.raw, general, &image.copies);
        }
        barrier(commands);
        device.cmd_bind_pipeline(commands, point, program.pipeline);
        let bind =
            |first, sets: &[_]| device.cmd_bind_descriptor_sets(commands, point, program.layout, first, sets, &[]);
        match sets.iter().copied().collect::<Option<Vec<_>>>() {
            Some(all) if all.is_empty() => {}
            Some(all) => bind(0, &all),
            None => (0..).zip(sets).for_each(|(number, set)| set.iter().for_each(|&set| bind(number, &[set]))),
        }
        push(commands);
        let mut push = bytes_of(&case.push);
        push.resize(128, 0);
        device.cmd_push_constants(commands, program.layout, vk::ShaderStageFlags::COMPUTE, 0, &push);
        let [x, y, z] = case.groups;
        device.cmd_dispatch(commands, x, y, z);
        barrier(commands);
        for image in made.images.values() {
            device.cmd_copy_image_to_buffer(commands, image.raw, general, image.staging.raw, &image.copies);
        }
        device.end_command_buffer(commands).unwrap();
        (pool, commands)
    }
}
