//! Images: copies in and out, between images, by the host, and accesses by kernels.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use crate::common;
use crate::common::{Words, barrier, device, run};
use spelter_driver::vk::{self, ImageUsageFlags};
use spelter_driver::{ClearColor, Device, DeviceMemory, Error, HostRegion, Image, ImageInfo};

const ANY_USE: ImageUsageFlags = ImageUsageFlags::from_raw(
    ImageUsageFlags::TRANSFER_SRC.as_raw() | ImageUsageFlags::TRANSFER_DST.as_raw() | ImageUsageFlags::SAMPLED.as_raw(),
);

fn info(ty: vk::ImageType, format: vk::Format, [width, height, depth]: [u32; 3]) -> ImageInfo {
    ImageInfo {
        flags: vk::ImageCreateFlags::empty(),
        ty,
        format,
        extent: vk::Extent3D { width, height, depth },
        levels: 1,
        layers: 1,
        tiling: vk::ImageTiling::OPTIMAL,
        usage: ANY_USE,
    }
}

fn image(device: &Device, info: &ImageInfo) -> (Image, DeviceMemory) {
    let image = device.create_image(info).unwrap();
    let memory = device.allocate_memory(image.requirements().size, 0).unwrap();
    image.bind_memory(&memory, 0).unwrap();
    (image, memory)
}

fn layers(level: u32, base: u32, count: u32) -> vk::ImageSubresourceLayers {
    vk::ImageSubresourceLayers {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        mip_level: level,
        base_array_layer: base,
        layer_count: count,
    }
}

fn whole(level: u32, count: u32, [width, height, depth]: [u32; 3]) -> vk::BufferImageCopy {
    vk::BufferImageCopy {
        image_subresource: layers(level, 0, count),
        image_extent: vk::Extent3D { width, height, depth },
        ..Default::default()
    }
}

/// Words whose values are their indices.
fn numbered(count: u32) -> Vec<u32> {
    (0..count).map(|at| at.wrapping_mul(0x9e37_79b9)).collect()
}

#[test]
fn every_level_and_layer_keeps_its_texels() {
    let device = device();
    let shape = ImageInfo { levels: 3, layers: 5, ..info(vk::ImageType::TYPE_2D, vk::Format::R32_UINT, [13, 7, 1]) };
    let (image, _memory) = image(&device, &shape);
    let sizes = [[13, 7, 1], [6, 3, 1], [3, 1, 1]];
    let words: Vec<Vec<u32>> = sizes.iter().map(|[w, h, _]| numbered(w * h * 5)).collect();
    let sources: Vec<Words> = words.iter().map(|words| Words::new(&device, words)).collect();
    let targets: Vec<Words> = words.iter().map(|words| Words::zeros(&device, words.len())).collect();
    run(&device, |command| {
        for (level, source) in (0..).zip(&sources) {
            command.copy_buffer_to_image(&source.buffer, &image, &[whole(level, 5, sizes[level as usize])]).unwrap();
        }
        barrier(command);
        for (level, target) in (0..).zip(&targets) {
            command.copy_image_to_buffer(&image, &target.buffer, &[whole(level, 5, sizes[level as usize])]).unwrap();
        }
    });
    for (words, target) in words.iter().zip(&targets) {
        assert_eq!(*words, target.read());
    }
}

#[test]
fn rows_and_slices_of_buffers_may_be_longer_than_the_image() {
    let device = device();
    let (image, _memory) = image(&device, &info(vk::ImageType::TYPE_3D, vk::Format::R32_UINT, [4, 3, 2]));
    let words = numbered(6 * 5 * 2);
    let (source, target) = (Words::new(&device, &words), Words::zeros(&device, 4 * 3 * 2));
    let long = vk::BufferImageCopy { buffer_row_length: 6, buffer_image_height: 5, ..whole(0, 1, [4, 3, 2]) };
    run(&device, |command| {
        command.copy_buffer_to_image(&source.buffer, &image, &[long]).unwrap();
        barrier(command);
        command.copy_image_to_buffer(&image, &target.buffer, &[whole(0, 1, [4, 3, 2])]).unwrap();
    });
    let expected: Vec<u32> =
        (0..2).flat_map(|z| (0..3).flat_map(move |y| (0..4).map(move |x| (z * 5 + y) * 6 + x))).collect();
    assert_eq!(target.read(), expected.iter().map(|&at: &u32| words[at as usize]).collect::<Vec<_>>());
}

#[test]
fn a_region_of_layers_is_copied_to_slices() {
    let device = device();
    let array = ImageInfo { layers: 3, ..info(vk::ImageType::TYPE_2D, vk::Format::R8G8B8A8_UNORM, [8, 8, 1]) };
    let (from, _one) = image(&device, &array);
    let (to, _two) = image(&device, &info(vk::ImageType::TYPE_3D, vk::Format::R32_SFLOAT, [8, 8, 4]));
    let words = numbered(8 * 8 * 3);
    let (source, target) = (Words::new(&device, &words), Words::zeros(&device, 8 * 8 * 4));
    let region = vk::ImageCopy {
        src_subresource: layers(0, 1, 2),
        src_offset: vk::Offset3D { x: 2, y: 3, z: 0 },
        dst_subresource: layers(0, 0, 1),
        dst_offset: vk::Offset3D { x: 1, y: 0, z: 2 },
        extent: vk::Extent3D { width: 5, height: 4, depth: 2 },
    };
    run(&device, |command| {
        command.copy_buffer_to_image(&source.buffer, &from, &[whole(0, 3, [8, 8, 1])]).unwrap();
        let all = vk::ImageSubresourceRange { level_count: 1, layer_count: 1, ..Default::default() };
        command.clear_color_image(&to, ClearColor::Float([2.0, 0.0, 0.0, 0.0]), &[all]).unwrap();
        barrier(command);
        command.copy_image(&from, &to, &[region]).unwrap();
        barrier(command);
        command.copy_image_to_buffer(&to, &target.buffer, &[whole(0, 1, [8, 8, 4])]).unwrap();
    });
    let got = target.read();
    for (x, y, z) in (0..4).flat_map(|z| (0..8).flat_map(move |y| (0..8).map(move |x| (x, y, z)))) {
        let inside = (1..6).contains(&x) && y < 4 && z >= 2;
        let from = || words[(z - 2 + 1) * 64 + (y + 3) * 8 + x + 1];
        let expected = if inside { from() } else { 2f32.to_bits() };
        assert_eq!(got[z * 64 + y * 8 + x], expected, "at {x}, {y}, {z}");
    }
}

#[test]
fn the_subresource_layout_locates_the_texels_in_memory() {
    let device = device();
    let shape = ImageInfo {
        tiling: vk::ImageTiling::LINEAR,
        ..info(vk::ImageType::TYPE_2D, vk::Format::R16G16B16A16_SFLOAT, [5, 3, 1])
    };
    let (image, memory) = image(&device, &shape);
    let all = vk::ImageSubresourceRange { level_count: 1, layer_count: 1, ..Default::default() };
    run(&device, |command| {
        command.clear_color_image(&image, ClearColor::Float([1.0, -2.0, 0.5, 0.0]), &[all]).unwrap()
    });
    let layout = image.subresource_layout(0, 0);
    for y in 0..3 {
        let mut row = vec![0; 5 * 8];
        memory.read(layout.offset + y * layout.row_pitch, &mut row).unwrap();
        assert_eq!(row, [0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0x00, 0x00].repeat(5), "row {y}");
    }
    assert!(layout.offset + layout.size <= image.requirements().size);
}

/// A kernel reads a sampled image through an immutable sampler, and writes a storage image and a storage texel buffer.
#[test]
fn kernels_access_images_through_descriptors() {
    use spelter_driver::vk::DescriptorType as D;
    use spelter_driver::{
        Binding, DescriptorImageInfo, DescriptorSetLayoutInfo, ImageViewInfo, ImmutableSamplers, SamplerInfo,
        Specialization,
    };
    const KERNEL: &str = "
        @group(0) @binding(0) var picture: texture_2d<f32>;
        @group(0) @binding(1) var mixed: sampler;
        @group(0) @binding(2) var result: texture_storage_2d<r32float, write>;
        @compute @workgroup_size(8, 2) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            let at = (vec2<f32>(id.xy) + vec2(1.0, 0.5)) / vec2<f32>(textureDimensions(picture));
            textureStore(result, vec2<i32>(id.xy), textureSampleLevel(picture, mixed, at, 0.0));
        }";
    let device = device();
    let storage = ImageUsageFlags::STORAGE;
    let shape =
        ImageInfo { usage: ANY_USE | storage, ..info(vk::ImageType::TYPE_2D, vk::Format::R32_SFLOAT, [4, 2, 1]) };
    let ((from, _one), (to, _two)) = (image(&device, &shape), image(&device, &shape));
    let view = |image| {
        let range = vk::ImageSubresourceRange { level_count: 1, layer_count: 1, ..Default::default() };
        let components = vk::ComponentMapping::default();
        let ty = vk::ImageViewType::TYPE_2D;
        device.create_image_view(&ImageViewInfo { image, ty, format: shape.format, components, range }).unwrap()
    };
    let linear = SamplerInfo { mag_filter: vk::Filter::LINEAR, min_filter: vk::Filter::LINEAR, ..Default::default() };
    let sampler = [device.create_sampler(&linear).unwrap()];
    let bindings = [(0, D::SAMPLED_IMAGE), (1, D::SAMPLER), (2, D::STORAGE_IMAGE)];
    let bindings = bindings.map(|(binding, ty)| Binding { binding, ty, count: 1 });
    let own = [ImmutableSamplers { binding: 1, samplers: &sampler }];
    let info = DescriptorSetLayoutInfo { bindings: &bindings, samplers: &own, ..Default::default() };
    let set_layout = device.create_descriptor_set_layout_from(&info).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    let module = device.create_shader_module_wgsl(KERNEL).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
    let sizes = bindings.map(|binding| (binding.ty, 1));
    let set = device.create_descriptor_pool(1, &sizes).unwrap().allocate(&set_layout).unwrap();
    let (from_view, to_view) = (view(&from), view(&to));
    let one = |view| [DescriptorImageInfo { view: Some(view), sampler: None }];
    set.write_images(0, 0, D::SAMPLED_IMAGE, &one(&from_view)).unwrap();
    set.write_images(2, 0, D::STORAGE_IMAGE, &one(&to_view)).unwrap();
    let texels = [0.0f32, 2.0, 4.0, 8.0, 100.0, 102.0, 104.0, 108.0].map(f32::to_bits);
    let (source, target) = (Words::new(&device, &texels), Words::zeros(&device, 8));
    run(&device, |command| {
        command.copy_buffer_to_image(&source.buffer, &from, &[whole(0, 1, [4, 2, 1])]).unwrap();
        barrier(command);
        command.bind_pipeline(&pipeline).unwrap();
        command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
        command.dispatch(1, 1, 1).unwrap();
        barrier(command);
        command.copy_image_to_buffer(&to, &target.buffer, &[whole(0, 1, [4, 2, 1])]).unwrap();
    });
    assert_eq!(target.read().map_floats(), [1.0, 3.0, 6.0, 8.0, 101.0, 103.0, 106.0, 108.0]);
}

/// In one dispatch, each invocation writes its texel and, after a fence and a barrier, samples between the texels of
/// two others. Invocations see what any subgroup of their workgroup wrote.
#[test]
fn a_sample_after_a_fence_reads_what_the_kernel_wrote() {
    use spelter_driver::vk::DescriptorType as D;
    use spelter_driver::{
        Backend, Binding, DescriptorImageInfo, DescriptorSetLayoutInfo, DeviceOptions, ImageViewInfo,
        ImmutableSamplers, SamplerInfo, Specialization,
    };
    const KERNEL: &str = "
        @group(0) @binding(0) var written: texture_storage_2d<r32float, write>;
        @group(0) @binding(1) var read: texture_2d<f32>;
        @group(0) @binding(2) var mixed: sampler;
        @group(0) @binding(3) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(64)
        fn main(@builtin(local_invocation_index) x: u32, @builtin(workgroup_id) group: vec3<u32>) {
            textureStore(written, vec2(x, group.x), vec4(f32(x * x + group.x), 0.0, 0.0, 0.0));
            textureBarrier();
            workgroupBarrier();
            let other = 63u - x;
            let at = vec2((f32(other) + 1.0) / 64.0, (f32(group.x) + 0.5) / 3.0);
            words[group.x * 64u + x] = bitcast<u32>(textureSampleLevel(read, mixed, at, 0.0).x);
        }";
    for backend in Backend::available() {
        let device = Device::new(DeviceOptions { backend, ..common::options() }).unwrap();
        let usage = ANY_USE | ImageUsageFlags::STORAGE;
        let shape = ImageInfo { usage, ..info(vk::ImageType::TYPE_2D, vk::Format::R32_SFLOAT, [64, 3, 1]) };
        let (image, _memory) = image(&device, &shape);
        let range = vk::ImageSubresourceRange { level_count: 1, layer_count: 1, ..Default::default() };
        let (ty, components) = (vk::ImageViewType::TYPE_2D, vk::ComponentMapping::default());
        let view = ImageViewInfo { image: &image, ty, format: shape.format, components, range };
        let view = device.create_image_view(&view).unwrap();
        let linear = SamplerInfo {
            mag_filter: vk::Filter::LINEAR,
            min_filter: vk::Filter::LINEAR,
            address_modes: [vk::SamplerAddressMode::CLAMP_TO_EDGE; 3],
            ..Default::default()
        };
        let sampler = [device.create_sampler(&linear).unwrap()];
        let bindings = [(0, D::STORAGE_IMAGE), (1, D::SAMPLED_IMAGE), (2, D::SAMPLER), (3, common::STORAGE)];
        let bindings = bindings.map(|(binding, ty)| Binding { binding, ty, count: 1 });
        let own = [ImmutableSamplers { binding: 2, samplers: &sampler }];
        let info = DescriptorSetLayoutInfo { bindings: &bindings, samplers: &own, ..Default::default() };
        let set_layout = device.create_descriptor_set_layout_from(&info).unwrap();
        let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
        let module = device.create_shader_module_wgsl(KERNEL).unwrap();
        let pipeline = device.create_compute_pipeline(&module, "main", &Specialization::new(), &layout).unwrap();
        let sizes = bindings.map(|binding| (binding.ty, 1));
        let set = device.create_descriptor_pool(1, &sizes).unwrap().allocate(&set_layout).unwrap();
        let one = [DescriptorImageInfo { view: Some(&view), sampler: None }];
        set.write_images(0, 0, D::STORAGE_IMAGE, &one).unwrap();
        set.write_images(1, 0, D::SAMPLED_IMAGE, &one).unwrap();
        let words = Words::zeros(&device, 3 * 64);
        set.write(3, 0, common::STORAGE, &[words.whole()]).unwrap();
        run(&device, |command| {
            command.bind_pipeline(&pipeline).unwrap();
            command.bind_descriptor_sets(&layout, 0, &[&set], &[]).unwrap();
            command.dispatch(3, 1, 1).unwrap();
        });
        let expected: Vec<f32> = (0..3u32)
            .flat_map(|group| {
                (0..64u32).map(move |x| {
                    let texel = |at: u32| (at.min(63) * at.min(63) + group) as f32;
                    (texel(63 - x) + texel(64 - x)) / 2.0
                })
            })
            .collect();
        assert_eq!(words.read().map_floats(), expected, "{backend}");
    }
}

trait MapFloats {
    fn map_floats(&self) -> Vec<f32>;
}

impl MapFloats for Vec<u32> {
    fn map_floats(&self) -> Vec<f32> {
        self.iter().map(|&bits| f32::from_bits(bits)).collect()
    }
}

/// An inner box of texels, with gaps between rows and slices in host memory: a queue reads what the host copied in, and
/// the host reads what a queue copied in. Bytes in the gaps keep their values.
#[test]
fn the_host_copies_what_queues_copy() {
    let device = device();
    let usage = ANY_USE | ImageUsageFlags::HOST_TRANSFER_EXT;
    for (ty, size, count) in [(vk::ImageType::TYPE_2D, [13, 7, 1], 3), (vk::ImageType::TYPE_3D, [6, 5, 4], 1)] {
        let info = ImageInfo { layers: count, levels: 2, usage, ..info(ty, vk::Format::R16G16_UINT, size) };
        let (image, _memory) = image(&device, &info);
        let offset = vk::Offset3D { x: 2, y: 1, z: if count == 1 { 1 } else { 0 } };
        let depth = if count == 1 { 2 } else { 1 };
        let (row_length, image_height) = (6, 5);
        let region = HostRegion {
            row_length,
            image_height,
            subresource: layers(0, 0, count),
            offset,
            extent: vk::Extent3D { width: 4, height: 3, depth },
        };
        let slices = depth * count;
        let rows = image.rows_from_host(&device, &region).unwrap();
        // The last row ends with its last texel.
        let words = ((slices - 1) * image_height + 2) * row_length + 4;
        assert_eq!(rows.bytes(), u64::from(words) * 4);
        let host = numbered(words);
        let bytes: Vec<u8> = host.iter().flat_map(|word| word.to_le_bytes()).collect();
        rows.write(&bytes);
        let out = Words::zeros(&device, 4 * 3 * 4 * 4);
        let whole = vk::BufferImageCopy {
            image_subresource: region.subresource,
            image_offset: offset,
            image_extent: region.extent,
            ..Default::default()
        };
        run(&device, |command| command.copy_image_to_buffer(&image, &out.buffer, &[whole]).unwrap());
        let texel = |slice: u32, y: u32, x: u32| host[((slice * image_height + y) * row_length + x) as usize];
        let wanted: Vec<u32> = (0..slices)
            .flat_map(|slice| (0..3).flat_map(move |y| (0..4).map(move |x| (slice, y, x))))
            .map(|(slice, y, x)| texel(slice, y, x))
            .collect();
        assert_eq!(out.read()[..wanted.len()], wanted, "{ty:?}");
        let mut back = vec![0xaa; bytes.len()];
        let rows = image.rows_to_host(&device, &region).unwrap();
        rows.read(|at, row| back[at..at + row.len()].copy_from_slice(row));
        for (at, (&was, &is)) in bytes.iter().zip(&back).enumerate() {
            let in_gap = at / 4 % row_length as usize >= 4 || at / 4 / row_length as usize % image_height as usize >= 3;
            assert_eq!(is, if in_gap { 0xaa } else { was }, "{ty:?}: byte {at}");
        }
        // From image to image, to another offset.
        let (other, _other_memory) = self::image(&device, &info);
        let copy = vk::ImageCopy {
            src_subresource: region.subresource,
            src_offset: offset,
            dst_subresource: region.subresource,
            dst_offset: vk::Offset3D { x: 1, y: 0, z: 0 },
            extent: region.extent,
        };
        image.copy_on_host(&device, &other, &[copy]).unwrap();
        let moved = HostRegion { offset: copy.dst_offset, row_length: 0, image_height: 0, ..region };
        let mut found = Vec::new();
        other.rows_to_host(&device, &moved).unwrap().read(|_, row| {
            found.extend(row.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())));
        });
        assert_eq!(found, wanted, "{ty:?}");
    }
}

#[test]
fn an_image_above_the_maximum_size_is_out_of_memory() {
    let max = 16_384;
    let info = info(vk::ImageType::TYPE_2D, vk::Format::R32G32B32A32_SFLOAT, [max, max, 1]);
    assert!(
        matches!(device().create_image(&info), Err(Error::OutOfMemory)),
        "no rule limits the total number of bytes"
    );
}
