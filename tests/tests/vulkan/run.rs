//! One test file: its module, layouts, resources and dispatch, all through the C API.

use std::collections::BTreeMap;

use ash::vk;
use spelter_shaders::image::{Compare, Filter, Sampler, Swizzle, Wrap};
use spelter_shaders::ir::{BindingKind, Kernel};
use spelter_tests::case::{Case, Slot};
use spelter_tests::images::ImageDecl;
use spelter_tests::values::Word;
use spelter_tests::{check, corpus};

use crate::gpu::{Buffer, Gpu, Memory};

/// How descriptors get to the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Sets are written, then bound.
    Plain,
    /// Sets are bound, then written (`UPDATE_AFTER_BIND`).
    Late,
    /// As [`Mode::Late`], with inline uniform blocks in place of uniform buffers where they are small enough.
    Inline,
    /// Descriptors are pushed, one by one; those of the first set that has any, as Vulkan allows it for one.
    Pushed,
    /// The last binding of each set has more elements than the set (`VARIABLE_DESCRIPTOR_COUNT`).
    Variable,
    /// As [`Mode::Plain`], in memory of the program's (`VK_EXT_external_memory_host`).
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

    fn is_late(self) -> bool {
        [Self::Late, Self::Inline].contains(&self)
    }
}

/// Elements that a layout has more than its sets.
const MISSING: u32 = 3;

/// Runs the case; the error lists what is wrong.
pub(crate) fn run(gpu: &Gpu, case: &Case, mode: Mode) -> Result<(), String> {
    // What is no SPIR-V never gets to a driver.
    let Ok(words) = corpus::spirv(case) else { return case.error.as_ref().map(|_| ()).ok_or("no SPIR-V".into()) };
    let kernel = match (check::front(case), &case.error) {
        (Ok(kernel), None) => kernel,
        (Err(_), Some(_)) => return refused(gpu, case, &words, mode),
        (front, error) => return Err(format!("{front:?} where {error:?} is expected")),
    };
    let made = Made::new(gpu, case, mode == Mode::Imported);
    let program = program(gpu, case, &kernel, &words, mode)?;
    let result = dispatch(gpu, case, &kernel, &made, &program, mode);
    made.destroy(gpu);
    program.destroy(gpu);
    result
}

/// A module that must not be taken: neither as a module nor as a pipeline.
fn refused(gpu: &Gpu, case: &Case, words: &[u32], mode: Mode) -> Result<(), String> {
    let bindings = BTreeMap::new();
    let Ok(program) = Program::new(gpu, case, words, &bindings, mode) else { return Ok(()) };
    program.destroy(gpu);
    Err("a pipeline was made of it".into())
}

/// A pipeline with its layouts.
struct Program {
    module: vk::ShaderModule,
    sets: Vec<vk::DescriptorSetLayout>,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
}

/// Type and elements of each binding, by set and number.
type Bindings = BTreeMap<(u32, u32), (vk::DescriptorType, u32)>;

fn program(gpu: &Gpu, case: &Case, kernel: &Kernel, words: &[u32], mode: Mode) -> Result<Program, String> {
    let ty = |kind| match kind {
        BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        BindingKind::Sampler => vk::DescriptorType::SAMPLER,
        BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        BindingKind::CombinedImageSampler => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        BindingKind::UniformTexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        BindingKind::StorageTexelBuffer => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    };
    let mut bindings = Bindings::new();
    for data in kernel.bindings.values() {
        let slot = Slot { set: data.set, binding: data.binding, element: 0 };
        let inline = (mode == Mode::Inline && data.kind == BindingKind::UniformBuffer && data.count == 1)
            .then(|| block(case, slot))
            .flatten();
        let binding = match inline {
            Some(bytes) => (vk::DescriptorType::INLINE_UNIFORM_BLOCK, bytes),
            None => (ty(data.kind), data.count),
        };
        bindings.insert((data.set, data.binding), binding);
    }
    Program::new(gpu, case, words, &bindings, mode).map_err(|code| format!("the pipeline was refused: {code:?}"))
}

/// Bytes of a uniform buffer that may be an inline block.
fn block(case: &Case, slot: Slot) -> Option<u32> {
    let bytes = case.binds.get(&slot)?.len() as u32 * 4;
    (1..=4096).contains(&bytes).then_some(bytes)
}

impl Program {
    fn new(gpu: &Gpu, case: &Case, words: &[u32], bindings: &Bindings, mode: Mode) -> Result<Self, vk::Result> {
        let device = &gpu.device;
        unsafe {
            let module = device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None)?;
            let count = bindings.keys().map(|(set, _)| set + 1).max().unwrap_or(0);
            // Only one set may be pushed.
            let pushed = bindings.keys().map(|(set, _)| *set).min();
            let mode_of = |set| if mode == Mode::Pushed && Some(set) != pushed { Mode::Plain } else { mode };
            let sets: Vec<_> = (0..count).map(|set| set_layout(gpu, set, bindings, mode_of(set))).collect();
            let ranges = [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 128 }];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&ranges);
            let layout = device.create_pipeline_layout(&info, None)?;
            let (entries, data) = specialization(case);
            let constants = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
            let entry = case.entry.clone().unwrap_or_else(|| entry_point(words));
            let name = std::ffi::CString::new(entry).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&name)
                .specialization_info(&constants);
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
            let pipeline = device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
            let mut program = Self { module, sets, layout, pipeline: vk::Pipeline::null() };
            match pipeline {
                Ok(pipelines) => {
                    program.pipeline = pipelines[0];
                    Ok(program)
                }
                Err((_, code)) => {
                    program.destroy(gpu);
                    Err(code)
                }
            }
        }
    }

    fn destroy(&self, gpu: &Gpu) {
        unsafe {
            gpu.device.destroy_pipeline(self.pipeline, None);
            gpu.device.destroy_pipeline_layout(self.layout, None);
            self.sets.iter().for_each(|&set| gpu.device.destroy_descriptor_set_layout(set, None));
            gpu.device.destroy_shader_module(self.module, None);
        }
    }
}

fn set_layout(gpu: &Gpu, set: u32, bindings: &Bindings, mode: Mode) -> vk::DescriptorSetLayout {
    let own = bindings.iter().filter(|((of, _), _)| *of == set);
    let last = own.clone().map(|((_, binding), _)| *binding).max();
    let more = |binding: u32| if mode == Mode::Variable && Some(binding) == last { MISSING } else { 0 };
    let list: Vec<_> = own
        .map(|((_, binding), (ty, count))| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(*binding)
                .descriptor_type(*ty)
                .descriptor_count(*count + more(*binding))
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    use vk::{DescriptorBindingFlags as B, DescriptorSetLayoutCreateFlags as L};
    let late = if mode.is_late() { B::UPDATE_AFTER_BIND } else { B::empty() };
    let variable = |binding| if more(binding) > 0 { B::VARIABLE_DESCRIPTOR_COUNT } else { B::empty() };
    let flags: Vec<_> = list.iter().map(|b| B::PARTIALLY_BOUND | late | variable(b.binding)).collect();
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let of_layout = match mode {
        Mode::Late | Mode::Inline => L::UPDATE_AFTER_BIND_POOL,
        Mode::Pushed => L::PUSH_DESCRIPTOR_KHR,
        Mode::Plain | Mode::Variable | Mode::Imported => L::empty(),
    };
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&list).flags(of_layout).push_next(&mut flags);
    unsafe { gpu.device.create_descriptor_set_layout(&info, None).unwrap() }
}

/// The name of the first entry point.
fn entry_point(words: &[u32]) -> String {
    let module = spelter_shaders::compile::Module::from_spirv(words);
    module.ok().and_then(|module| module.entry_points().next().map(str::to_owned)).unwrap_or("main".into())
}

/// Constants as Vulkan has them: 8 bytes each, of which the shader's type tells how many count. WGSL has its own already.
fn specialization(case: &Case) -> (Vec<vk::SpecializationMapEntry>, Vec<u8>) {
    if case.is_wgsl() {
        return Default::default();
    }
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (&constant_id, bits) in &case.specialization {
        entries.push(vk::SpecializationMapEntry { constant_id, offset: data.len() as u32, size: 8 });
        data.extend(bits.to_le_bytes());
    }
    (entries, data)
}

/// An image with its texels in a buffer, from where they come and to where they go.
struct Image {
    raw: vk::Image,
    memory: Memory,
    view: vk::ImageView,
    staging: Buffer,
    copies: Vec<vk::BufferImageCopy>,
}

/// The resources of a case.
struct Made {
    buffers: BTreeMap<Slot, Buffer>,
    images: BTreeMap<Slot, Image>,
    texels: BTreeMap<Slot, vk::BufferView>,
    samplers: BTreeMap<Slot, vk::Sampler>,
}

fn bytes_of(words: &[Word]) -> Vec<u8> {
    words.iter().flat_map(|word| word.bits.to_le_bytes()).collect()
}

impl Made {
    fn new(gpu: &Gpu, case: &Case, imported: bool) -> Self {
        let plain = case.binds.iter().filter(|(slot, _)| !case.images.contains_key(slot));
        let buffers: BTreeMap<_, _> =
            plain.map(|(slot, words)| (*slot, gpu.buffer(&bytes_of(words), imported))).collect();
        for [(slot, at), (of, offset)] in &case.addresses {
            buffers[slot].write(*at, &(gpu.address(&buffers[of]) + *offset as u64).to_le_bytes());
        }
        let images = case.images.iter();
        let images = images
            .map(|(slot, decl)| (*slot, image(gpu, decl, case.binds.get(slot), kind(case, slot), imported)))
            .collect();
        let texels = case.texels.iter().map(|(slot, format)| {
            let info = vk::BufferViewCreateInfo::default()
                .buffer(buffers[slot].raw)
                .format(vk::Format::from_raw(format.vk()))
                .range(vk::WHOLE_SIZE);
            (*slot, unsafe { gpu.device.create_buffer_view(&info, None).unwrap() })
        });
        let texels = texels.collect();
        let samplers = case.samplers.iter().map(|(slot, decl)| (*slot, sampler(gpu, decl))).collect();
        Self { buffers, images, texels, samplers }
    }

    fn destroy(&self, gpu: &Gpu) {
        unsafe {
            self.texels.values().for_each(|&view| gpu.device.destroy_buffer_view(view, None));
            self.samplers.values().for_each(|&sampler| gpu.device.destroy_sampler(sampler, None));
            for image in self.images.values() {
                gpu.device.destroy_image_view(image.view, None);
                gpu.device.destroy_image(image.raw, None);
                gpu.free(&image.memory);
                gpu.destroy(&image.staging);
            }
        }
        self.buffers.values().for_each(|buffer| gpu.destroy(buffer));
    }
}

/// What the text declares the image as.
fn kind(case: &Case, slot: &Slot) -> &'static str {
    let (set, binding, element) = (slot.set, slot.binding, slot.element);
    let declares = |kind: &&str| {
        let names = [format!("image {set}.{binding}: {kind}"), format!("image {set}.{binding}[{element}]: {kind}")];
        names.iter().any(|name| case.text.contains(name))
    };
    ["1d", "2d", "3d", "cube"].into_iter().find(declares).unwrap_or_default()
}

fn image(gpu: &Gpu, decl: &ImageDecl, words: Option<&Vec<Word>>, kind: &str, imported: bool) -> Image {
    let cube = kind == "cube";
    let (extent, format) = (decl.extent, vk::Format::from_raw(decl.format.vk()));
    let [width, height, depth] = extent.size;
    let flat = |array, single| if extent.layers > 1 { array } else { single };
    let (ty, view) = match () {
        () if kind == "1d" => {
            (vk::ImageType::TYPE_1D, flat(vk::ImageViewType::TYPE_1D_ARRAY, vk::ImageViewType::TYPE_1D))
        }
        () if decl.volume => (vk::ImageType::TYPE_3D, vk::ImageViewType::TYPE_3D),
        () if cube && extent.layers > 6 => (vk::ImageType::TYPE_2D, vk::ImageViewType::CUBE_ARRAY),
        () if cube => (vk::ImageType::TYPE_2D, vk::ImageViewType::CUBE),
        () => (vk::ImageType::TYPE_2D, flat(vk::ImageViewType::TYPE_2D_ARRAY, vk::ImageViewType::TYPE_2D)),
    };
    let flags = if cube { vk::ImageCreateFlags::CUBE_COMPATIBLE } else { vk::ImageCreateFlags::empty() };
    let depths = [vk::Format::D16_UNORM, vk::Format::D32_SFLOAT, vk::Format::X8_D24_UNORM_PACK32];
    let aspect_mask = if depths.contains(&format) { vk::ImageAspectFlags::DEPTH } else { vk::ImageAspectFlags::COLOR };
    let usage = vk::ImageUsageFlags::SAMPLED | vk::ImageUsageFlags::TRANSFER_SRC | vk::ImageUsageFlags::TRANSFER_DST;
    let device = &gpu.device;
    unsafe {
        let make = |usage| {
            let info = vk::ImageCreateInfo::default()
                .flags(flags)
                .image_type(ty)
                .format(format)
                .extent(vk::Extent3D { width, height, depth })
                .mip_levels(extent.levels)
                .array_layers(extent.layers)
                .samples(vk::SampleCountFlags::TYPE_1)
                .usage(usage);
            device.create_image(&info, None)
        };
        let raw = make(usage | vk::ImageUsageFlags::STORAGE).or_else(|_| make(usage)).unwrap();
        let memory = gpu.memory(device.get_image_memory_requirements(raw), imported);
        device.bind_image_memory(raw, memory.raw, 0).unwrap();
        let (mut copies, mut bytes) = (Vec::new(), 0);
        for mip_level in 0..extent.levels {
            let [width, height, depth] = extent.level(mip_level);
            let layers =
                vk::ImageSubresourceLayers { aspect_mask, mip_level, base_array_layer: 0, layer_count: extent.layers };
            let copy = vk::BufferImageCopy::default()
                .buffer_offset(bytes)
                .image_subresource(layers)
                .image_extent(vk::Extent3D { width, height, depth });
            copies.push(copy);
            bytes += u64::from(width * height * depth * extent.layers * decl.format.bytes());
        }
        let mut contents = words.map(|words| bytes_of(words)).unwrap_or_default();
        contents.resize(bytes.next_multiple_of(4) as usize, 0);
        let staging = gpu.buffer(&contents, imported);
        let range = vk::ImageSubresourceRange {
            aspect_mask,
            base_mip_level: 0,
            level_count: extent.levels,
            base_array_layer: 0,
            layer_count: extent.layers,
        };
        let swizzle = decl.swizzle.map(|swizzle| match swizzle {
            Swizzle::R => vk::ComponentSwizzle::R,
            Swizzle::G => vk::ComponentSwizzle::G,
            Swizzle::B => vk::ComponentSwizzle::B,
            Swizzle::A => vk::ComponentSwizzle::A,
            Swizzle::Zero => vk::ComponentSwizzle::ZERO,
            Swizzle::One => vk::ComponentSwizzle::ONE,
        });
        let components = vk::ComponentMapping { r: swizzle[0], g: swizzle[1], b: swizzle[2], a: swizzle[3] };
        let info = vk::ImageViewCreateInfo::default()
            .image(raw)
            .view_type(view)
            .format(format)
            .components(components)
            .subresource_range(range);
        let view = device.create_image_view(&info, None).unwrap();
        Image { raw, memory, view, staging, copies }
    }
}

fn sampler(gpu: &Gpu, decl: &Sampler) -> vk::Sampler {
    let filter = |filter| if filter == Filter::Linear { vk::Filter::LINEAR } else { vk::Filter::NEAREST };
    let mode = |wrap| match wrap {
        Wrap::Repeat => vk::SamplerAddressMode::REPEAT,
        Wrap::MirroredRepeat => vk::SamplerAddressMode::MIRRORED_REPEAT,
        Wrap::ClampToEdge => vk::SamplerAddressMode::CLAMP_TO_EDGE,
        Wrap::ClampToBorder => vk::SamplerAddressMode::CLAMP_TO_BORDER,
        Wrap::MirrorClampToEdge => vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE,
    };
    let compare = match decl.compare {
        Compare::Never => vk::CompareOp::NEVER,
        Compare::Less => vk::CompareOp::LESS,
        Compare::Equal => vk::CompareOp::EQUAL,
        Compare::LessOrEqual => vk::CompareOp::LESS_OR_EQUAL,
        Compare::Greater => vk::CompareOp::GREATER,
        Compare::NotEqual => vk::CompareOp::NOT_EQUAL,
        Compare::GreaterOrEqual => vk::CompareOp::GREATER_OR_EQUAL,
        Compare::Always => vk::CompareOp::ALWAYS,
    };
    let one = 1f32.to_bits();
    let borders = [
        ([one; 4], vk::BorderColor::FLOAT_OPAQUE_WHITE),
        ([0, 0, 0, one], vk::BorderColor::FLOAT_OPAQUE_BLACK),
        ([1; 4], vk::BorderColor::INT_OPAQUE_WHITE),
        ([0, 0, 0, 1], vk::BorderColor::INT_OPAQUE_BLACK),
    ];
    let border = borders.into_iter().find(|(bits, _)| *bits == decl.border);
    let border = border.map_or(vk::BorderColor::FLOAT_TRANSPARENT_BLACK, |(_, border)| border);
    let mip = if decl.mip == Filter::Linear { vk::SamplerMipmapMode::LINEAR } else { vk::SamplerMipmapMode::NEAREST };
    let max_lod = if decl.unnormalized { 0.0 } else { decl.max_lod };
    let info = vk::SamplerCreateInfo::default()
        .mag_filter(filter(decl.mag))
        .min_filter(filter(decl.min))
        .mipmap_mode(mip)
        .address_mode_u(mode(decl.wrap[0]))
        .address_mode_v(mode(decl.wrap[1]))
        .address_mode_w(mode(decl.wrap[2]))
        .mip_lod_bias(decl.lod_bias)
        .compare_enable(decl.compare != Compare::Never)
        .compare_op(compare)
        .min_lod(decl.min_lod)
        .max_lod(max_lod)
        .border_color(border)
        .unnormalized_coordinates(decl.unnormalized);
    unsafe { gpu.device.create_sampler(&info, None).unwrap() }
}

fn dispatch(gpu: &Gpu, case: &Case, kernel: &Kernel, made: &Made, program: &Program, mode: Mode) -> Result<(), String> {
    let device = &gpu.device;
    let pool = descriptor_pool(gpu, mode);
    // The set that is pushed is none of a pool's.
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
    // What a clock tells is not what the file says, which has none.
    if case.text.contains("OpReadClockKHR") {
        return if memory.values().flatten().any(|&word| word != 0) { Ok(()) } else { Err("no time".into()) };
    }
    check::compare_roughly(case, "Vulkan", &memory)
}

/// Elements of the last binding of each set.
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

/// Writes what the case has for a slot; a slot that it leaves out stays as it is.
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

/// Images filled, the dispatch, images read.
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
