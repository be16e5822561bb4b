//! Images: a stencil over a storage image and a blur by linear samples, compared with the same arithmetic over storage
//! buffers.

#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use spelter_driver::vk::{self, DescriptorType as D, ImageUsageFlags};
use spelter_driver::{
    Binding, BufferInfo, ClearColor, ComputePipeline, DescriptorImageInfo, DescriptorSet, Device, DeviceOptions, Error,
    Image, ImageInfo, ImageView, ImageViewInfo, PipelineLayout, SamplerInfo, Specialization,
};

const SIDE: u32 = 2048;

const STENCIL: &str = "
@group(0) @binding(0) var source: texture_storage_2d<r32float, read>;
@group(0) @binding(1) var result: texture_storage_2d<r32float, write>;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = vec2i(id.xy);
    let around = textureLoad(source, at + vec2(-1, 0)).x + textureLoad(source, at + vec2(1, 0)).x
        + textureLoad(source, at + vec2(0, -1)).x + textureLoad(source, at + vec2(0, 1)).x;
    textureStore(result, at, vec4(0.5 * textureLoad(source, at).x + 0.125 * around, 0.0, 0.0, 0.0));
}";

const BLUR: &str = include_str!("../kernels/blur.wgsl");

const BUFFERS: &str = "
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
const side = 2048u;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = id.y * side + id.x;
    let around = source[at - 1] + source[at + 1] + source[at - side] + source[at + side];
    result[at] = 0.5 * source[at] + 0.125 * around;
}";

/// A kernel with its descriptor set.
struct Bench {
    device: Device,
    layout: PipelineLayout,
    pipeline: ComputePipeline,
    set: DescriptorSet,
}

impl Bench {
    fn new(device: &Device, wgsl: &str, types: &[D]) -> Result<Self, Error> {
        let bindings: Vec<Binding> = (0..).zip(types).map(|(binding, &ty)| Binding { binding, ty, count: 1 }).collect();
        let set_layout = device.create_descriptor_set_layout(&bindings)?;
        let layout = device.create_pipeline_layout(&[&set_layout], &[])?;
        let module = device.create_shader_module_wgsl(wgsl)?;
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout)?;
        let sizes: Vec<_> = types.iter().map(|&ty| (ty, 1)).collect();
        let set = device.create_descriptor_pool(1, &sizes)?.allocate(&set_layout)?;
        Ok(Self { device: device.clone(), layout, pipeline, set })
    }

    /// Texels per second, of the fastest of several runs.
    fn measure(&self) -> Result<f64, Error> {
        let command = self.device.create_command_pool().allocate();
        command.begin(vk::CommandBufferUsageFlags::empty())?;
        command.bind_pipeline(&self.pipeline)?;
        command.bind_descriptor_sets(&self.layout, 0, &[&self.set], &[])?;
        command.dispatch(SIDE / 16, SIDE / 16, 1)?;
        command.end()?;
        let mut best = Duration::MAX;
        for _ in 0..20 {
            let start = Instant::now();
            self.device.queue().submit(&[&command], None)?;
            self.device.queue().wait_idle()?;
            best = best.min(start.elapsed());
        }
        Ok(f64::from(SIDE) * f64::from(SIDE) / best.as_secs_f64())
    }
}

fn image(device: &Device, format: vk::Format) -> Result<(Image, ImageView), Error> {
    let info = ImageInfo {
        flags: vk::ImageCreateFlags::empty(),
        ty: vk::ImageType::TYPE_2D,
        format,
        extent: vk::Extent3D { width: SIDE, height: SIDE, depth: 1 },
        levels: 1,
        layers: 1,
        tiling: vk::ImageTiling::OPTIMAL,
        usage: ImageUsageFlags::STORAGE | ImageUsageFlags::SAMPLED | ImageUsageFlags::TRANSFER_DST,
    };
    let image = device.create_image(&info)?;
    image.bind_memory(&device.allocate_memory(image.requirements().size, 0)?, 0)?;
    let range = vk::ImageSubresourceRange { level_count: 1, layer_count: 1, ..Default::default() };
    let command = device.create_command_pool().allocate();
    command.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
    command.clear_color_image(&image, ClearColor::Float([0.25, 0.5, 0.75, 1.0]), &[range])?;
    command.end()?;
    device.queue().submit(&[&command], None)?;
    device.queue().wait_idle()?;
    let (components, ty) = (vk::ComponentMapping::default(), vk::ImageViewType::TYPE_2D);
    let view = device.create_image_view(&ImageViewInfo { image: &image, ty, format, components, range })?;
    Ok((image, view))
}

fn images(device: &Device, wgsl: &str, source: D, format: vk::Format) -> Result<f64, Error> {
    let linear = SamplerInfo { mag_filter: vk::Filter::LINEAR, min_filter: vk::Filter::LINEAR, ..Default::default() };
    let sampler = device.create_sampler(&linear)?;
    let ((_one, from), (_two, to)) = (image(device, format)?, image(device, format)?);
    let types = [source, D::STORAGE_IMAGE, D::SAMPLER];
    let types = if source == D::SAMPLED_IMAGE { &types[..] } else { &types[..2] };
    let bench = Bench::new(device, wgsl, types)?;
    let of = |view| [DescriptorImageInfo { view: Some(view), sampler: None }];
    bench.set.write_images(0, 0, source, &of(&from))?;
    bench.set.write_images(1, 0, D::STORAGE_IMAGE, &of(&to))?;
    if source == D::SAMPLED_IMAGE {
        bench.set.write_images(2, 0, D::SAMPLER, &[DescriptorImageInfo { view: None, sampler: Some(&sampler) }])?;
    }
    bench.measure()
}

fn buffers(device: &Device) -> Result<f64, Error> {
    let bench = Bench::new(device, BUFFERS, &[D::STORAGE_BUFFER; 2])?;
    for binding in 0..2 {
        let size = u64::from(SIDE * SIDE) * 4;
        let buffer = device.create_buffer(size, vk::BufferUsageFlags::STORAGE_BUFFER)?;
        buffer.bind_memory(&device.allocate_memory(size, 0)?, 0)?;
        let info = BufferInfo { buffer: &buffer, offset: 0, range: vk::WHOLE_SIZE };
        bench.set.write(binding, 0, D::STORAGE_BUFFER, &[info])?;
    }
    bench.measure()
}

fn figures() -> Result<(), Error> {
    let device = Device::new(DeviceOptions::default())?;
    let plain = buffers(&device)?;
    let stencil = images(&device, STENCIL, D::STORAGE_IMAGE, vk::Format::R32_SFLOAT)?;
    let blur = images(&device, BLUR, D::SAMPLED_IMAGE, vk::Format::R8G8B8A8_UNORM)?;
    let millions = |texels: f64| texels / 1e6;
    println!("stencil over buffers: {:.0} million texels/s", millions(plain));
    println!("stencil over r32f images: {:.0} million texels/s, ratio {:.2}", millions(stencil), stencil / plain);
    println!("blur over rgba8, 5 linear samples each: {:.0} million texels/s", millions(blur));
    Ok(())
}

fn bench(_: &mut Criterion) {
    figures().expect("the device has what the bench uses");
}

criterion_group!(benches, bench);
criterion_main!(benches);
