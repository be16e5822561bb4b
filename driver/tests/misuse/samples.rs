//! Rules of dispatches for an image and a sampler together: filterable formats, and comparison in both or neither.

use spelter_driver::vk::{self, DescriptorType as D, Filter, Format, ImageViewType as V};
use spelter_driver::{
    CommandBuffer, DescriptorImageInfo, Device, DeviceOptions, Error, ImageInfo, ImageViewInfo, SamplerInfo,
};

use super::images::{bound, plain};
use super::views::recorded;
use super::{Rule, World};
use crate::common::{self, Kernel};

/// An image of integers at binding 0, sampled through the sampler at binding 1.
const INTEGERS: &str = "
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main \"main\"
    OpExecutionMode %main LocalSize 1 1 1
    OpDecorate %image DescriptorSet 0
    OpDecorate %image Binding 0
    OpDecorate %sampler DescriptorSet 0
    OpDecorate %sampler Binding 1
    %void = OpTypeVoid
    %signature = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %uint4 = OpTypeVector %uint 4
    %float = OpTypeFloat 32
    %float2 = OpTypeVector %float 2
    %zero = OpConstant %float 0
    %zeros = OpConstantComposite %float2 %zero %zero
    %image_type = OpTypeImage %uint 2D 0 0 0 1 Unknown
    %sampler_type = OpTypeSampler
    %both_type = OpTypeSampledImage %image_type
    %image_pointer = OpTypePointer UniformConstant %image_type
    %sampler_pointer = OpTypePointer UniformConstant %sampler_type
    %image = OpVariable %image_pointer UniformConstant
    %sampler = OpVariable %sampler_pointer UniformConstant
    %main = OpFunction %void None %signature
    %label = OpLabel
    %i = OpLoad %image_type %image
    %s = OpLoad %sampler_type %sampler
    %both = OpSampledImage %both_type %i %s
    %texel = OpImageSampleExplicitLod %uint4 %both %zeros Lod %zero
    OpReturn
    OpFunctionEnd";

fn integers(device: &Device) -> Kernel {
    let words = spelter_shaders::front::spvasm::assemble(INTEGERS).unwrap();
    let module = device.create_shader_module(&words).unwrap();
    let bindings = [(0, D::SAMPLED_IMAGE), (1, D::SAMPLER)];
    let bindings = bindings.map(|(binding, ty)| spelter_driver::Binding { binding, ty, count: 1 });
    let set_layout = device.create_descriptor_set_layout(&bindings).unwrap();
    let layout = device.create_pipeline_layout(&[&set_layout], &[]).unwrap();
    let pipeline = device.create_compute_pipeline(&module, "main", &Default::default(), &layout).unwrap();
    Kernel { set_layout, layout, pipeline }
}

/// A kernel with an image of this type at binding 0 and a sampler at binding 1, and an expression that uses both.
fn floats(device: &Device, [image, sampler, sample]: [&str; 3]) -> Kernel {
    let text = format!(
        "@group(0) @binding(0) var i: {image};
        @group(0) @binding(1) var s: {sampler};
        @group(0) @binding(2) var<storage, read_write> to: array<f32>;
        @compute @workgroup_size(1) fn main() {{ to[0] = {sample}; }}"
    );
    Kernel::new(device, &text, &[(D::SAMPLED_IMAGE, 1), (D::SAMPLER, 1), (D::STORAGE_BUFFER, 1)], 0)
}

fn plain_floats(device: &Device) -> Kernel {
    floats(device, ["texture_2d<f32>", "sampler", "textureSampleLevel(i, s, vec2(0.5), 0.0).x"])
}

fn compared(device: &Device) -> Kernel {
    floats(device, ["texture_depth_2d", "sampler_comparison", "textureSampleCompareLevel(i, s, vec2(0.5), 0.5)"])
}

fn with(
    device: &Device,
    kernel: &Kernel,
    (format, sampler): (Format, SamplerInfo),
    command: impl FnOnce(&CommandBuffer) -> Result<(), Error>,
) -> Result<(), Error> {
    let image = bound(device, &ImageInfo { format, layers: 1, levels: 1, ..plain() });
    let range = vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        level_count: 1,
        layer_count: 1,
        ..Default::default()
    };
    let (components, ty) = (vk::ComponentMapping::default(), V::TYPE_2D);
    let view = device.create_image_view(&ImageViewInfo { image: &image, ty, format, components, range }).unwrap();
    let sampler = device.create_sampler(&sampler).unwrap();
    let sizes = [(D::SAMPLED_IMAGE, 1), (D::SAMPLER, 1), (D::STORAGE_BUFFER, 1)];
    let set = device.create_descriptor_pool(1, &sizes).unwrap().allocate(&kernel.set_layout).unwrap();
    let (image, sampler) = (
        DescriptorImageInfo { sampler: None, view: Some(&view) },
        DescriptorImageInfo { sampler: Some(&sampler), view: None },
    );
    set.write_images(0, 0, D::SAMPLED_IMAGE, &[image]).unwrap();
    set.write_images(1, 0, D::SAMPLER, &[sampler]).unwrap();
    recorded(device, kernel, &set, command)
}

fn dispatch(commands: &CommandBuffer) -> Result<(), Error> {
    commands.dispatch(1, 1, 1)
}

fn linear() -> SamplerInfo {
    SamplerInfo { min_filter: Filter::LINEAR, ..Default::default() }
}

fn mixed() -> SamplerInfo {
    SamplerInfo { mipmap_mode: vk::SamplerMipmapMode::LINEAR, ..Default::default() }
}

fn comparing() -> SamplerInfo {
    SamplerInfo { compare: Some(vk::CompareOp::NEVER), ..linear() }
}

fn broken(
    world: &World,
    sampler: SamplerInfo,
    command: impl FnOnce(&CommandBuffer) -> Result<(), Error>,
) -> Result<(), Error> {
    with(&world.device, &integers(&world.device), (Format::R32_UINT, sampler), command)
}

pub(super) const RULES: &[Rule] = &[
    ("VUID-vkCmdDispatch-magFilter-04553", |w| broken(w, linear(), dispatch)),
    ("VUID-vkCmdDispatchBase-magFilter-04553", |w| broken(w, linear(), |c| c.dispatch_base([0; 3], [1; 3]))),
    ("VUID-vkCmdDispatchIndirect-magFilter-04553", |w| {
        broken(w, linear(), |c| c.dispatch_indirect(&w.words.buffer, 0))
    }),
    ("VUID-vkCmdDispatch-mipmapMode-04770", |w| broken(w, mixed(), dispatch)),
    ("VUID-vkCmdDispatchBase-mipmapMode-04770", |w| broken(w, mixed(), |c| c.dispatch_base([0; 3], [1; 3]))),
    ("VUID-vkCmdDispatchIndirect-mipmapMode-04770", |w| {
        broken(w, mixed(), |c| c.dispatch_indirect(&w.words.buffer, 0))
    }),
];

#[test]
fn a_sampler_and_an_instruction_agree_on_comparing() {
    let device = common::device();
    let problem = |kernel: &Kernel, sampler| match with(&device, kernel, (Format::R32_SFLOAT, sampler), dispatch) {
        Err(Error::Misuse(misuse)) => misuse.to_string(),
        other => panic!("{other:?}"),
    };
    let place = "vkCmdDispatch: `main` samples set 0, binding 0 through the sampler of set 0, binding 1";
    let rule = "(VkSamplerCreateInfo::compareEnable)";
    assert_eq!(
        problem(&plain_floats(&device), comparing()),
        format!("{place}: the sampler compares texels with a reference, and the shader's instruction has none {rule}")
    );
    assert_eq!(
        problem(&compared(&device), linear()),
        format!("{place}: the shader compares texels with a reference, and the sampler does not compare {rule}")
    );
}

#[test]
fn samplers_that_fit_are_not_refused() {
    let device = common::device();
    let nearest = SamplerInfo::default();
    with(&device, &integers(&device), (Format::R32_UINT, nearest), dispatch).unwrap();
    with(&device, &plain_floats(&device), (Format::R32_SFLOAT, linear()), dispatch).unwrap();
    with(&device, &plain_floats(&device), (Format::R8G8B8A8_UNORM, mixed()), dispatch).unwrap();
    with(&device, &compared(&device), (Format::R32_SFLOAT, comparing()), dispatch).unwrap();
}

/// A device that is not strict, as the Vulkan driver's, accepts what other drivers accept.
#[test]
fn a_device_that_is_not_strict_accepts_samplers_that_do_not_fit() {
    let device = Device::new(DeviceOptions { strict: false, ..common::options() }).unwrap();
    with(&device, &integers(&device), (Format::R32_UINT, linear()), dispatch).unwrap();
    with(&device, &compared(&device), (Format::R32_SFLOAT, linear()), dispatch).unwrap();
}
