//! The kernels of dispatches: each has one invocation for each word that it accesses.

use spelter_driver::vk::{self, DescriptorType};
use spelter_driver::{
    Binding, Buffer, BufferInfo, ComputePipeline, DescriptorImageInfo, DescriptorSet, DescriptorSetLayout,
    DescriptorSetLayoutInfo, Device, Error, ImageView, ImmutableSamplers, PipelineLayout, PushRange, SamplerInfo,
    Specialization,
};
use spelter_shaders::front::spvasm;

/// Values that are read decide about a store that never happens, so that no compiler may leave the read out.
const BUFFERS: &str = "
    struct Job { first: u32, target_word: u32, words: u32 }
    var<immediate> job: Job;
    @group(0) @binding(0) var<storage, read> input: array<u32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(64) fn read_words(@builtin(local_invocation_index) i: u32) {
        if (i < job.words && input[job.first + i] == 0xffffffffu) { output[0] = 1u; }
    }
    @compute @workgroup_size(64) fn write_words(@builtin(local_invocation_index) i: u32) {
        if (i < job.words) { output[job.target_word + i] = 1u; }
    }
    @compute @workgroup_size(64) fn move_words(@builtin(local_invocation_index) i: u32) {
        if (i < job.words) { output[job.target_word + i] = input[job.first + i]; }
    }
    @compute @workgroup_size(64) fn increment_words(@builtin(local_invocation_index) i: u32) {
        if (i < job.words) { output[job.target_word + i] += 1u; }
    }
    @compute @workgroup_size(1) fn nothing() {}";

const UNIFORM: &str = "
    struct Job { first: u32, target_word: u32, words: u32 }
    var<immediate> job: Job;
    @group(0) @binding(0) var<uniform> input: array<vec4<u32>, 16>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(16) fn uniforms(@builtin(local_invocation_index) i: u32) {
        if (4u * i < job.words && all(input[job.first / 4u + i] == vec4(0xffffffffu))) { output[0] = 1u; }
    }";

/// What is read as a uniform buffer and what is read as a storage buffer is one buffer.
const BOTH: &str = "
    struct Job { first: u32, target_word: u32, words: u32 }
    var<immediate> job: Job;
    @group(0) @binding(0) var<uniform> input: array<vec4<u32>, 16>;
    @group(0) @binding(1) var<storage, read_write> output: array<vec4<u32>>;
    @compute @workgroup_size(16) fn both(@builtin(local_invocation_index) i: u32) {
        if (4u * i < job.words) {
            let at = job.first / 4u + i;
            let uniform_words = input[at];
            let storage_words = output[at];
            if (all(uniform_words == vec4(0xffffffffu)) & all(storage_words == vec4(0xfffffffeu))) {
                output[0] = vec4(1u);
            }
        }
    }";

const ATOMIC: &str = "
    struct Job { first: u32, target_word: u32, words: u32 }
    var<immediate> job: Job;
    @group(0) @binding(0) var<storage, read_write> counters: array<atomic<u32>>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(64) fn add(@builtin(local_invocation_index) i: u32) {
        if (i < job.words) { atomicAdd(&counters[job.first + i], 1u); }
    }
    @compute @workgroup_size(1) fn append() {
        let at = atomicAdd(&counters[0], 1u);
        output[at] = 42u;
    }";

const STORAGE_READ: &str = "
    @group(0) @binding(0) var image: texture_storage_2d<r32float, read>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(1) fn ask_size() { if (textureDimensions(image).x == 7777u) { output[0] = 1u; } }
    @compute @workgroup_size(1) fn load_texel() { if (textureLoad(image, vec2(0, 0)).x == 7777.0) { output[0] = 1u; } }";

const STORAGE_WRITE: &str = "
    @group(0) @binding(0) var image: texture_storage_2d<r32float, write>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @compute @workgroup_size(1) fn store_texel() { textureStore(image, vec2(0, 0), vec4(0.5)); }";

const SAMPLED: &str = "
    @group(0) @binding(0) var image: texture_2d<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<u32>;
    @group(0) @binding(2) var nearest: sampler;
    @compute @workgroup_size(1) fn sample_one() {
        if (textureSampleLevel(image, nearest, vec2(0.0, 0.0), 0.0).x == 7777.0) { output[0] = 1u; }
    }";

/// WGSL has no texel buffers.
const TEXELS: &str = "
OpCapability Shader
OpCapability ImageBuffer
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"texels\"
OpExecutionMode %main LocalSize 1 1 1
OpDecorate %texels DescriptorSet 0
OpDecorate %texels Binding 0
OpDecorate %texels NonWritable
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%i32 = OpTypeInt 32 1
%v4u = OpTypeVector %u32 4
%texels_type = OpTypeImage %u32 Buffer 0 0 0 2 R32ui
%to_texels = OpTypePointer UniformConstant %texels_type
%c0 = OpConstant %i32 0
%texels = OpVariable %to_texels UniformConstant
%main = OpFunction %void None %fn
%entry = OpLabel
%view = OpLoad %texels_type %texels
%value = OpImageRead %v4u %view %c0
OpReturn
OpFunctionEnd
";

/// WGSL has no plain accesses to atomics.
const MIXED: &str = "
OpCapability Shader
OpExtension \"SPV_KHR_storage_buffer_storage_class\"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main \"mixed\" %local
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %local BuiltIn LocalInvocationIndex
OpDecorate %words ArrayStride 4
OpDecorate %data Block
OpMemberDecorate %data 0 Offset 0
OpDecorate %buffer DescriptorSet 0
OpDecorate %buffer Binding 0
OpDecorate %job_type Block
OpMemberDecorate %job_type 0 Offset 0
OpMemberDecorate %job_type 1 Offset 4
OpMemberDecorate %job_type 2 Offset 8
%void = OpTypeVoid
%fn = OpTypeFunction %void
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%words = OpTypeRuntimeArray %u32
%data = OpTypeStruct %words
%job_type = OpTypeStruct %u32 %u32 %u32
%to_data = OpTypePointer StorageBuffer %data
%to_word = OpTypePointer StorageBuffer %u32
%to_job = OpTypePointer PushConstant %job_type
%to_constant = OpTypePointer PushConstant %u32
%to_input = OpTypePointer Input %u32
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%buffer = OpVariable %to_data StorageBuffer
%job = OpVariable %to_job PushConstant
%local = OpVariable %to_input Input
%main = OpFunction %void None %fn
%entry = OpLabel
%i = OpLoad %u32 %local
%to_count = OpAccessChain %to_constant %job %c2
%count = OpLoad %u32 %to_count
%acts = OpULessThan %bool %i %count
OpSelectionMerge %end None
OpBranchConditional %acts %then %end
%then = OpLabel
%to_first = OpAccessChain %to_constant %job %c0
%first = OpLoad %u32 %to_first
%at = OpIAdd %u32 %first %i
%word = OpAccessChain %to_word %buffer %c0 %at
";

/// What comes after [`MIXED`].
const RESTART: &str = "
OpStore %word %c0
%before = OpAtomicIAdd %u32 %word %c1 %c0 %c1
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
";

/// The same.
const DOUBLE: &str = "
%old = OpLoad %u32 %word
%before = OpAtomicIAdd %u32 %word %c1 %c0 %old
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
";

/// A kernel's entry point and the kind of its first binding; the second is a storage buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Read,
    Write,
    Move,
    Increment,
    Nothing,
    Uniform,
    Both,
    Add,
    Restart,
    Double,
    Append,
    Texels,
    Size,
    Load,
    Store,
    Sample,
}

impl Entry {
    /// Its name, the module's text in two parts, and the type of the first descriptor.
    fn parts(self) -> (&'static str, [&'static str; 2], DescriptorType) {
        let (name, text, ty) = match self {
            Self::Restart => return ("mixed", [MIXED, RESTART], DescriptorType::STORAGE_BUFFER),
            Self::Double => return ("mixed", [MIXED, DOUBLE], DescriptorType::STORAGE_BUFFER),
            Self::Read => ("read_words", BUFFERS, DescriptorType::STORAGE_BUFFER),
            Self::Write => ("write_words", BUFFERS, DescriptorType::STORAGE_BUFFER),
            Self::Move => ("move_words", BUFFERS, DescriptorType::STORAGE_BUFFER),
            Self::Increment => ("increment_words", BUFFERS, DescriptorType::STORAGE_BUFFER),
            Self::Nothing => ("nothing", BUFFERS, DescriptorType::STORAGE_BUFFER),
            Self::Uniform => ("uniforms", UNIFORM, DescriptorType::UNIFORM_BUFFER),
            Self::Both => ("both", BOTH, DescriptorType::UNIFORM_BUFFER),
            Self::Add => ("add", ATOMIC, DescriptorType::STORAGE_BUFFER),
            Self::Append => ("append", ATOMIC, DescriptorType::STORAGE_BUFFER),
            Self::Texels => ("texels", TEXELS, DescriptorType::STORAGE_TEXEL_BUFFER),
            Self::Size => ("ask_size", STORAGE_READ, DescriptorType::STORAGE_IMAGE),
            Self::Load => ("load_texel", STORAGE_READ, DescriptorType::STORAGE_IMAGE),
            Self::Store => ("store_texel", STORAGE_WRITE, DescriptorType::STORAGE_IMAGE),
            Self::Sample => ("sample_one", SAMPLED, DescriptorType::SAMPLED_IMAGE),
        };
        (name, [text, ""], ty)
    }
}

/// What the first descriptor of a dispatch is.
pub(super) enum First<'a> {
    Buffer(&'a Buffer),
    Image(&'a ImageView),
}

/// A pipeline with its layouts.
pub(super) struct Kernel {
    pub(super) pipeline: ComputePipeline,
    pub(super) layout: PipelineLayout,
    set_layout: DescriptorSetLayout,
    ty: DescriptorType,
}

impl Kernel {
    /// The kernel, compiled again under a name with a number: findings about two of them are two.
    pub(super) fn new(device: &Device, entry: Entry, number: usize) -> Result<Self, Error> {
        let (name, parts, ty) = entry.parts();
        let source = parts.concat();
        let mut bindings = vec![
            Binding { binding: 0, ty, count: 1 },
            Binding { binding: 1, ty: DescriptorType::STORAGE_BUFFER, count: 1 },
        ];
        let sampler = [device.create_sampler(&SamplerInfo::default())?];
        let mut samplers = Vec::new();
        if ty == DescriptorType::SAMPLED_IMAGE {
            bindings.push(Binding { binding: 2, ty: DescriptorType::SAMPLER, count: 1 });
            samplers.push(ImmutableSamplers { binding: 2, samplers: &sampler });
        }
        let info = DescriptorSetLayoutInfo { bindings: &bindings, samplers: &samplers, ..Default::default() };
        let set_layout = device.create_descriptor_set_layout_from(&info)?;
        let layout = device.create_pipeline_layout(&[&set_layout], &[PushRange { offset: 0, size: 12 }])?;
        let numbered = format!("{name}_{number}");
        let module = if source.starts_with("\nOpCapability") {
            let text = source.replace(&format!("\"{name}\""), &format!("\"{numbered}\""));
            device.create_shader_module(&spvasm::assemble(&text).unwrap_or_default())?
        } else {
            device.create_shader_module_wgsl(&source.replace(&format!("fn {name}("), &format!("fn {numbered}(")))?
        };
        let pipeline = device.create_compute_pipeline(&module, &numbered, &Specialization::new(), &layout)?;
        Ok(Self { pipeline, layout, set_layout, ty })
    }

    /// A set with these resources.
    pub(super) fn set(&self, device: &Device, first: First<'_>, second: &Buffer) -> Result<DescriptorSet, Error> {
        let mut sizes = vec![(self.ty, 1), (DescriptorType::STORAGE_BUFFER, 1)];
        if self.ty == DescriptorType::SAMPLED_IMAGE {
            sizes.push((DescriptorType::SAMPLER, 1));
        }
        let set = device.create_descriptor_pool(1, &sizes)?.allocate(&self.set_layout)?;
        match first {
            First::Buffer(buffer) if self.ty == DescriptorType::STORAGE_TEXEL_BUFFER => {
                let view = device.create_buffer_view(buffer, vk::Format::R32_UINT, 0, vk::WHOLE_SIZE)?;
                set.write_texel_buffers(0, 0, self.ty, &[&view])?;
            }
            First::Buffer(buffer) => {
                set.write(0, 0, self.ty, &[BufferInfo { buffer, offset: 0, range: vk::WHOLE_SIZE }])?;
            }
            First::Image(view) => {
                let info = DescriptorImageInfo { view: Some(view), sampler: None };
                set.write_images(0, 0, self.ty, &[info])?;
            }
        }
        let whole = BufferInfo { buffer: second, offset: 0, range: vk::WHOLE_SIZE };
        set.write(1, 0, DescriptorType::STORAGE_BUFFER, &[whole])?;
        Ok(set)
    }
}
