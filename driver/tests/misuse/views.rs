//! Rules of dispatches for views of images and texel buffers: a view matches the shader's declaration.

use spelter_driver::vk::{self, BufferUsageFlags, DescriptorType as D, Format, ImageViewType as V};
use spelter_driver::{
    CommandBuffer, DescriptorImageInfo, DescriptorSet, Device, DeviceOptions, Error, ImageInfo, ImageViewInfo,
};

use super::images::{bound, plain};
use super::{Rule, World};
use crate::common::{self, Kernel};

const SAMPLED: &str = "texture_2d<f32>";
const STORED: &str = "texture_storage_2d<r32float, write>";

/// A kernel that uses an image of this type.
fn kernel(device: &Device, image: &str, ty: D) -> Kernel {
    let text = format!(
        "@group(0) @binding(0) var image: {image};
        @compute @workgroup_size(1) fn main() {{ let size = textureDimensions(image); if size.x == 9u {{ workgroupBarrier(); }} }}"
    );
    Kernel::new(device, &text, &[(ty, 1)], 0)
}

/// Dispatches a kernel on a view of this type.
fn with(
    device: &Device,
    (image, ty): (&str, D),
    (view, format): (V, Format),
    command: impl FnOnce(&CommandBuffer) -> Result<(), Error>,
) -> Result<(), Error> {
    let info = ImageInfo { flags: vk::ImageCreateFlags::MUTABLE_FORMAT, layers: 1, levels: 1, ..plain() };
    let image_of = bound(device, &info);
    let components = vk::ComponentMapping::default();
    let range = vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        level_count: 1,
        layer_count: 1,
        ..Default::default()
    };
    let view =
        device.create_image_view(&ImageViewInfo { image: &image_of, ty: view, format, components, range }).unwrap();
    let kernel = kernel(device, image, ty);
    let set = device.create_descriptor_pool(1, &[(ty, 1)]).unwrap().allocate(&kernel.set_layout).unwrap();
    set.write_images(0, 0, ty, &[DescriptorImageInfo { sampler: None, view: Some(&view) }]).unwrap();
    recorded(device, &kernel, &set, command)
}

pub(super) fn recorded(
    device: &Device,
    kernel: &Kernel,
    set: &DescriptorSet,
    command: impl FnOnce(&CommandBuffer) -> Result<(), Error>,
) -> Result<(), Error> {
    let commands = device.create_command_pool().allocate();
    commands.begin(vk::CommandBufferUsageFlags::empty()).unwrap();
    commands.bind_pipeline(&kernel.pipeline).unwrap();
    commands.bind_descriptor_sets(&kernel.layout, 0, &[set], &[]).unwrap();
    let first = command(&commands);
    commands.end().unwrap();
    first
}

fn dispatch(commands: &CommandBuffer) -> Result<(), Error> {
    commands.dispatch(1, 1, 1)
}

/// The same for the other dispatch commands.
fn indirect(world: &World, image: &str, view: V) -> Result<(), Error> {
    let counts = &world.words.buffer;
    with(&world.device, (image, D::SAMPLED_IMAGE), (view, Format::R32_SFLOAT), |c| c.dispatch_indirect(counts, 0))
}

fn based(world: &World, image: &str, view: V) -> Result<(), Error> {
    let shown = (view, Format::R32_SFLOAT);
    with(&world.device, (image, D::SAMPLED_IMAGE), shown, |c| c.dispatch_base([0; 3], [1; 3]))
}

pub(super) const RULES: &[Rule] = &[
    ("VUID-vkCmdDispatch-viewType-07752", |w| {
        with(&w.device, ("texture_3d<f32>", D::SAMPLED_IMAGE), (V::TYPE_2D, Format::R32_SFLOAT), dispatch)
    }),
    ("VUID-vkCmdDispatch-viewType-07752", |w| {
        with(&w.device, (SAMPLED, D::SAMPLED_IMAGE), (V::TYPE_2D_ARRAY, Format::R32_SFLOAT), dispatch)
    }),
    ("VUID-vkCmdDispatchIndirect-viewType-07752", |w| indirect(w, "texture_2d_array<f32>", V::TYPE_2D)),
    ("VUID-vkCmdDispatchBase-viewType-07752", |w| based(w, "texture_3d<f32>", V::TYPE_2D)),
    ("VUID-vkCmdDispatch-format-07753", |w| {
        with(&w.device, ("texture_2d<u32>", D::SAMPLED_IMAGE), (V::TYPE_2D, Format::R32_SFLOAT), dispatch)
    }),
    ("VUID-vkCmdDispatch-format-07753", |w| {
        with(&w.device, ("texture_2d<u32>", D::SAMPLED_IMAGE), (V::TYPE_2D, Format::R32_SINT), dispatch)
    }),
    ("VUID-vkCmdDispatchIndirect-format-07753", |w| indirect(w, "texture_2d<u32>", V::TYPE_2D)),
    ("VUID-vkCmdDispatchBase-format-07753", |w| based(w, "texture_2d<i32>", V::TYPE_2D)),
    ("Undefined-Value-StorageImage-FormatMismatch-ImageView", |w| {
        with(&w.device, (STORED, D::STORAGE_IMAGE), (V::TYPE_2D, Format::R8G8B8A8_UNORM), dispatch)
    }),
];

#[test]
fn what_fits_is_not_refused() {
    let device = common::device();
    for (image, ty, view, format) in [
        (SAMPLED, D::SAMPLED_IMAGE, V::TYPE_2D, Format::R32_SFLOAT),
        (SAMPLED, D::SAMPLED_IMAGE, V::TYPE_2D, Format::R8G8B8A8_UNORM),
        ("texture_2d_array<f32>", D::SAMPLED_IMAGE, V::TYPE_2D_ARRAY, Format::R8G8B8A8_SRGB),
        ("texture_2d<i32>", D::SAMPLED_IMAGE, V::TYPE_2D, Format::R32_SINT),
        ("texture_depth_2d", D::SAMPLED_IMAGE, V::TYPE_2D, Format::R32_SFLOAT),
        (STORED, D::STORAGE_IMAGE, V::TYPE_2D, Format::R32_SFLOAT),
        ("texture_storage_2d_array<rgba8uint, write>", D::STORAGE_IMAGE, V::TYPE_2D_ARRAY, Format::R8G8B8A8_UINT),
    ] {
        let result = with(&device, (image, ty), (view, format), dispatch);
        assert!(result.is_ok(), "{image} with {view:?} of {format:?}: {result:?}");
    }
}

/// A device that is not strict, as the Vulkan driver's, accepts what other drivers accept.
#[test]
fn a_device_that_is_not_strict_accepts_views_that_do_not_fit() {
    let device = Device::new(DeviceOptions { strict: false, ..common::options() }).unwrap();
    for (image, ty, format) in
        [("texture_3d<f32>", D::SAMPLED_IMAGE, Format::R32_UINT), (STORED, D::STORAGE_IMAGE, Format::R8G8B8A8_UNORM)]
    {
        with(&device, (image, ty), (V::TYPE_2D, format), dispatch).unwrap();
    }
}

#[test]
fn texels_of_buffers_are_held_against_the_shader() {
    const TEXELS: &str = "
        OpCapability Shader
        OpCapability SampledBuffer
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %table DescriptorSet 0
        OpDecorate %table Binding 0
        %void = OpTypeVoid
        %signature = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %uint4 = OpTypeVector %uint 4
        %zero = OpConstant %uint 0
        %texels = OpTypeImage %uint Buffer 0 0 0 1 Unknown
        %pointer = OpTypePointer UniformConstant %texels
        %table = OpVariable %pointer UniformConstant
        %main = OpFunction %void None %signature
        %label = OpLabel
        %image = OpLoad %texels %table
        %texel = OpImageFetch %uint4 %image %zero
        OpReturn
        OpFunctionEnd";
    let device = common::device();
    let words = spelter_shaders::front::spvasm::assemble(TEXELS).unwrap();
    let module = device.create_shader_module(&words).unwrap();
    let binding = spelter_driver::Binding { binding: 0, ty: D::UNIFORM_TEXEL_BUFFER, count: 1 };
    let set_layout = device.create_descriptor_set_layout(&[binding]).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Default::default(), &layout).unwrap();
    let kernel = Kernel { set_layout, layout, pipeline };
    let buffer = device.create_buffer(64, BufferUsageFlags::UNIFORM_TEXEL_BUFFER).unwrap();
    buffer.bind_memory(&device.allocate_memory(64, 0).unwrap(), 0).unwrap();
    let used = |format| {
        let view = device.create_buffer_view(&buffer, format, 0, 64).unwrap();
        let pool = device.create_descriptor_pool(1, &[(D::UNIFORM_TEXEL_BUFFER, 1)]).unwrap();
        let set = pool.allocate(&kernel.set_layout).unwrap();
        set.write_texel_buffers(0, 0, D::UNIFORM_TEXEL_BUFFER, &[&view]).unwrap();
        recorded(&device, &kernel, &set, dispatch)
    };
    used(Format::R8G8B8A8_UINT).unwrap();
    let Err(Error::Misuse(misuse)) = used(Format::R32_SFLOAT) else { panic!("floats for integers") };
    assert_eq!(misuse.vuid, "VUID-vkCmdDispatch-format-07753");
    let problem =
        "`main`, set 0, binding 0: texels of format R32_SFLOAT are floats, the shader takes unsigned integers";
    assert_eq!(misuse.problem, problem);
}
