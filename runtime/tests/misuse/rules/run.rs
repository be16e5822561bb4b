//! Dispatches, programs and devices.

use std::time::Duration;

use spelter::{Bind, Context, SamplerInfo, vk};

use super::{Case, DEVICE, GONE, KIND};
use crate::misuse::PUSH;

const ARRAY: &str = "enable wgpu_binding_array;
struct Words { w: array<u32> }
@group(0) @binding(0) var<storage, read> parts: binding_array<Words>;
@group(0) @binding(1) var<storage, read_write> to: u32;
@compute @workgroup_size(1) fn main() { to = parts[0].w[0] + parts[1].w[0]; }";

/// A combined image and sampler (`usampler2D` in GLSL).
const SAMPLED_INTEGERS: &str = "
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main \"main\"
    OpExecutionMode %main LocalSize 1 1 1
    OpDecorate %both DescriptorSet 0
    OpDecorate %both Binding 0
    %void = OpTypeVoid
    %signature = OpTypeFunction %void
    %uint = OpTypeInt 32 0
    %uint4 = OpTypeVector %uint 4
    %float = OpTypeFloat 32
    %float2 = OpTypeVector %float 2
    %zero = OpConstant %float 0
    %zeros = OpConstantComposite %float2 %zero %zero
    %image = OpTypeImage %uint 2D 0 0 0 1 Unknown
    %sampled = OpTypeSampledImage %image
    %pointer = OpTypePointer UniformConstant %sampled
    %both = OpVariable %pointer UniformConstant
    %main = OpFunction %void None %signature
    %label = OpLabel
    %loaded = OpLoad %sampled %both
    %texel = OpImageSampleExplicitLod %uint4 %loaded %zeros Lod %zero
    OpReturn
    OpFunctionEnd";

pub(super) const CASES: &[Case] = &[
    (
        "a program is of the device",
        |s| s.context.dispatch(&s.theirs).groups([1, 1, 1]),
        "dispatch: \"main\" is a program of another context's device",
        DEVICE,
    ),
    (
        "a buffer has the kind of its slot",
        |s| s.with(1, Bind::uniform(&s.source)),
        "binding 0.1 (source): buffer `source` of 64 bytes is bound as a uniform buffer, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "an image is no buffer",
        |s| s.with(1, Bind::sampled(&s.sheet)),
        "binding 0.1 (source): image `sheet` of 4x4x1 R32_UINT is bound as a sampler view, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "a sampler is no buffer",
        |s| s.with(1, Bind::sampler(&s.context.sampler(&SamplerInfo::default())?)),
        "binding 0.1 (source): a sampler is bound as a sampler, \"main\" takes a storage buffer",
        KIND,
    ),
    (
        "texels are no image",
        |s| s.context.dispatch(&s.look).with((1, 0), Bind::texels(&s.source, vk::Format::R32_UINT)).groups([1, 1, 1]),
        "binding 1.0 (sheet): buffer `source` of 64 bytes is bound as a sampler view, \"main\" takes a sampled image",
        KIND,
    ),
    (
        "a dispatch binds what its program declares",
        |s| s.context.dispatch(&s.copy).bind(3, 9, &s.source).groups([1, 1, 1]),
        "binding 3.9: buffer `source` of 64 bytes: \"main\" does not use it; it uses 0.0, 0.1, 0.2",
        "(rule: a dispatch binds only what its program declares)",
    ),
    (
        "an element is one of the program's",
        |s| s.context.dispatch(&s.copy).bind_element(0, 1, 5, &s.source, 0..64).groups([1, 1, 1]),
        "binding 0.1 (source): buffer `source` of 64 bytes: it has 1 elements, there is no element 5",
        "(rule: a dispatch binds only what its program declares)",
    ),
    (
        "a dispatch uses nothing that is destroyed",
        |s| s.context.dispatch(&s.copy).bind(0, 1, &s.gone).groups([1, 1, 1]),
        "binding 0.1 (source): buffer `gone` of 64 bytes is destroyed",
        GONE,
    ),
    (
        "a dispatch's range lies in its buffer",
        |s| s.context.dispatch(&s.copy).bind_range(0, 1, &s.source, 0..65).groups([1, 1, 1]),
        "binding 0.1 (source): bytes 0..65 of buffer `source` of 64 bytes",
        "(VUID-VkDescriptorBufferInfo-range-00342)",
    ),
    (
        "push constants are as many as declared",
        |s| s.context.dispatch(&s.push).groups([1, 1, 1]),
        "push constants: \"main\" declares bytes 0..4, 0 bytes were given, bytes 0..4 are missing",
        "(VUID-vkCmdDispatch-maintenance4-08602)",
    ),
    (
        "workgroups are within the limits",
        |s| s.context.dispatch(&s.copy).groups([70_000, 1, 1]),
        "",
        "VUID-vkCmdDispatch-groupCountX-00386)",
    ),
    (
        "a buffer is as large as its block",
        |s| s.context.dispatch(&s.copy).bind_range(0, 0, &s.step, 16..28).groups([1, 1, 1]),
        "binding 0.0 (step): 12 bytes of buffer `step` of 64 bytes, the block needs at least 16",
        "(rule: a buffer has room for the fixed part of the block that it is bound for)",
    ),
    (
        "a buffer is no image",
        |s| s.context.dispatch(&s.look).bind(1, 0, &s.source).groups([1, 1, 1]),
        "binding 1.0 (sheet): buffer `source` of 64 bytes is bound as a buffer, \"main\" takes a sampled image",
        KIND,
    ),
    (
        "a view has the dimensions of the program",
        |s| s.look(0, Bind::sampled(s.sheet.level(0).as_type(vk::ImageViewType::TYPE_2D_ARRAY))),
        "binding 1.0 (sheet): image `sheet` of 4x4x1 R32_UINT: the view is TYPE_2D_ARRAY, the shader takes TYPE_2D",
        "(VUID-vkCmdDispatch-viewType-07752)",
    ),
    (
        "a view has the numbers of the program",
        |s| s.look(0, Bind::sampled(s.sheet.level(0).as_format(vk::Format::R32_SFLOAT))),
        "binding 1.0 (sheet): image `sheet` of 4x4x1 R32_UINT: texels of format R32_SFLOAT are floats, the shader takes unsigned integers",
        "(VUID-vkCmdDispatch-format-07753)",
    ),
    (
        "signed integers are other numbers",
        |s| s.look(0, Bind::sampled(s.sheet.level(0).as_format(vk::Format::R32_SINT))),
        "binding 1.0 (sheet): image `sheet` of 4x4x1 R32_UINT: texels of format R32_SINT are signed integers",
        "(VUID-vkCmdDispatch-format-07753)",
    ),
    (
        "a storage image has the format of the program",
        |s| s.look(1, Bind::storage_image(s.drawn.level(0).as_format(vk::Format::R16G16_UINT))),
        "binding 1.1 (drawn): image `drawn` of 4x4x1 R32_UINT: the format is R16G16_UINT, the shader states R32_UINT",
        "(Undefined-Value-StorageImage-FormatMismatch-ImageView)",
    ),
    (
        "a sampler compares where the program does",
        |s| s.sample([false, true]),
        "vkCmdDispatch: `main` samples set 0, binding 0 through the sampler of set 0, binding 1: the sampler compares",
        "(VkSamplerCreateInfo::compareEnable)",
    ),
    (
        "a program compares where the sampler does",
        |s| s.sample([true, false]),
        "vkCmdDispatch: `main` samples set 0, binding 0 through the sampler of set 0, binding 1: the shader compares",
        "(VkSamplerCreateInfo::compareEnable)",
    ),
    (
        "integers are not filtered",
        |s| {
            let program = s.context.program_spirv(&spelter_shaders::front::spvasm::assemble(SAMPLED_INTEGERS)?)?;
            let linear = SamplerInfo { mag_filter: vk::Filter::LINEAR, ..SamplerInfo::default() };
            let both = Bind::sampled(s.sheet.level(0)).with_sampler(&s.context.sampler(&linear)?);
            s.context.dispatch(&program).with((0, 0), both).groups([1, 1, 1])
        },
        "vkCmdDispatch: `main` samples set 0, binding 0: the sampler filters linearly, and texels of format R32_UINT",
        "(VUID-vkCmdDispatch-magFilter-04553)",
    ),
    (
        "constants are those of the shader",
        |s| s.context.program(PUSH).specialize(3, 1u32).build().map(drop),
        "specialization constant 3: the shader has no constant with this id; it has no constants",
        "",
    ),
    (
        "a device has memory",
        |_| Context::builder().memory(0).build().map(drop),
        "a device without memory: `memory` is 0 bytes",
        "",
    ),
    (
        "commands have time",
        |_| Context::builder().time_limit(Duration::ZERO).build().map(drop),
        "commands without time: `time_limit` is 0",
        "",
    ),
    (
        "an array of bindings has a size",
        |s| s.context.program(ARRAY).build().map(drop),
        "binding 0.0: the shader declares the array without a size: set it with `ProgramBuilder::array`",
        "",
    ),
    (
        "what is no array has one element",
        |s| s.context.program(ARRAY).array(0, 0, 2).array(0, 1, 2).build().map(drop),
        "binding 0.1: the shader declares no array there that can have 2 elements",
        "",
    ),
];
