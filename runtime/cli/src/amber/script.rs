//! A script that was read: what it declares, and the commands that it runs.

use std::collections::BTreeMap;

use spelter_driver::{SamplerInfo, vk};

use super::layout::Layout;
use super::number::Number;
use super::text::Place;
use super::types::Type;

/// A whole script. Declarations are named by their index from here on.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// What the device must offer, in order.
    pub(crate) needs: Vec<Need>,
    /// `SET ENGINE_DATA fence_timeout_ms`.
    pub(crate) fence_timeout_ms: Option<u32>,
    /// Path → text.
    pub(crate) virtual_files: BTreeMap<String, String>,
    /// `SHADER`.
    pub(crate) shaders: Vec<Shader>,
    /// `BUFFER` and `IMAGE`.
    pub(crate) buffers: Vec<Buffer>,
    /// `SAMPLER`.
    pub(crate) samplers: Vec<SamplerInfo>,
    /// `PIPELINE` and `DERIVE_PIPELINE`.
    pub(crate) pipelines: Vec<Pipeline>,
    /// In order.
    pub(crate) commands: Vec<Command>,
}

/// Something that a device may not offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// `DEVICE_FEATURE`.
    Feature(String),
    /// `DEVICE_PROPERTY`.
    Property(String),
    /// `DEVICE_EXTENSION`.
    DeviceExtension(String),
    /// `INSTANCE_EXTENSION`.
    InstanceExtension(String),
}

/// A compute shader.
#[derive(Debug)]
pub(crate) struct Shader {
    /// Its name.
    pub(crate) name: String,
    /// Where it is declared.
    pub(crate) at: Place,
    /// What its source is written in.
    pub(crate) language: Language,
    /// Its source.
    pub(crate) source: Source,
    /// `TARGET_ENV`.
    pub(crate) target: Option<String>,
}

/// What a shader is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// `GLSL`.
    Glsl,
    /// `HLSL`.
    Hlsl,
    /// `SPIRV-ASM`.
    Assembly,
    /// `SPIRV-HEX`.
    Hex,
    /// `SPIRV-BIN`.
    Binary,
}

/// Where a shader's source is.
#[derive(Debug)]
pub(crate) enum Source {
    /// In the script.
    Inline(String),
    /// In a file beside the script.
    File(String),
}

/// A buffer or an image. The bytes are what it holds before the first command.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Its name.
    pub(crate) name: String,
    /// Its data type.
    pub(crate) ty: Type,
    /// Where the scalars of an element lie.
    pub(crate) layout: Layout,
    /// Elements, or texels of level 0.
    pub(crate) count: usize,
    /// Contents.
    pub(crate) bytes: Vec<u8>,
    /// What it is as an image.
    pub(crate) image: Shape,
}

/// What a buffer is as an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Dimensions.
    pub(crate) ty: vk::ImageType,
    /// Width, height, depth. Those of a `BUFFER … FORMAT` are 0 until a pipeline that binds it says how large it renders.
    pub(crate) size: [u32; 3],
    /// Mip levels.
    pub(crate) levels: u32,
    /// Samples of a texel.
    pub(crate) samples: u32,
}

/// A compute pipeline.
#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    /// Its name.
    pub(crate) name: String,
    /// `ATTACH`.
    pub(crate) shader: Option<usize>,
    /// `ENTRY_POINT`.
    pub(crate) entry: String,
    /// `SPECIALIZE`: id → bits.
    pub(crate) specialization: BTreeMap<u32, u64>,
    /// `SHADER_OPTIMIZATION`: passes of `spirv-opt`.
    pub(crate) passes: Vec<String>,
    /// `SUBGROUP`.
    pub(crate) subgroup: Subgroup,
    /// `FRAMEBUFFER_SIZE`.
    pub(crate) render_size: [u32; 2],
    /// Set and binding → what is bound there.
    pub(crate) bindings: BTreeMap<(u32, u32), Bound>,
    /// `BIND BUFFER … AS push_constant`.
    pub(crate) push: Option<usize>,
}

/// `SUBGROUP`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subgroup {
    /// `REQUIRED_SIZE`; `MIN` and `MAX` are the device's.
    pub(crate) required: Option<SubgroupSize>,
}

/// `REQUIRED_SIZE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubgroupSize {
    /// That many invocations.
    Exactly(u32),
    /// `minSubgroupSize` or `maxSubgroupSize`.
    Any,
}

/// What is bound to a binding.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The descriptors' type.
    pub(crate) ty: vk::DescriptorType,
    /// One for each descriptor of the array.
    pub(crate) items: Vec<Item>,
}

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The buffer or image.
    pub(crate) buffer: Option<usize>,
    /// The sampler.
    pub(crate) sampler: Option<usize>,
    /// `BASE_MIP_LEVEL`.
    pub(crate) level: u32,
    /// `OFFSET`: dynamic.
    pub(crate) dynamic_offset: u32,
    /// `DESCRIPTOR_OFFSET`.
    pub(crate) offset: u64,
    /// `DESCRIPTOR_RANGE`.
    pub(crate) range: Option<u64>,
}

/// A command and where it stands.
#[derive(Debug)]
pub(crate) struct Command {
    /// Where.
    pub(crate) at: Place,
    /// What.
    pub(crate) what: Action,
}

/// What a command does.
#[derive(Debug)]
pub(crate) enum Action {
    /// `RUN` with so many workgroups.
    Run {
        /// The pipeline.
        pipeline: usize,
        /// Workgroups in each direction.
        groups: [u32; 3],
    },
    /// `COPY … TO …`.
    Copy {
        /// The source.
        from: usize,
        /// The target.
        to: usize,
    },
    /// `REPEAT`.
    Repeat(u32, Vec<Command>),
    /// `EXPECT … IDX …`.
    ExpectValues(ExpectValues),
    /// `EXPECT … IDX … SIZE … EQ_RGBA`.
    ExpectTexels(ExpectTexels),
    /// `EXPECT … EQ_BUFFER …` and its kin.
    ExpectBuffer(ExpectBuffer),
}

/// Values of a buffer from a byte on.
#[derive(Debug)]
pub(crate) struct ExpectValues {
    /// The buffer.
    pub(crate) buffer: usize,
    /// First byte.
    pub(crate) offset: u64,
    /// How values are compared.
    pub(crate) comparator: Comparator,
    /// The values.
    pub(crate) values: Vec<Number>,
    /// `TOLERANCE`; only with `EQ`.
    pub(crate) tolerances: Vec<Tolerance>,
}

/// How values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparator {
    /// `EQ`.
    Equal,
    /// `NE`.
    NotEqual,
    /// `LT`.
    Less,
    /// `LE`.
    LessOrEqual,
    /// `GT`.
    Greater,
    /// `GE`.
    GreaterOrEqual,
}

/// How far a value may be away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance {
    /// The distance, or hundredths of the expected value.
    pub(crate) value: f64,
    /// Which of both.
    pub(crate) percent: bool,
}

/// Texels of a rectangle that all have one colour.
#[derive(Debug)]
pub(crate) struct ExpectTexels {
    /// The image.
    pub(crate) buffer: usize,
    /// Left, top.
    pub(crate) origin: [u32; 2],
    /// Width, height.
    pub(crate) size: [u32; 2],
    /// Red, green, blue, and alpha with `EQ_RGBA`: from 0 to 255.
    pub(crate) color: Vec<u8>,
    /// `TOLERANCE`, of values from 0 to 1.
    pub(crate) tolerances: Vec<Tolerance>,
}

/// Two buffers that are alike.
#[derive(Debug)]
pub(crate) struct ExpectBuffer {
    /// One.
    pub(crate) left: usize,
    /// The other.
    pub(crate) right: usize,
    /// How alike.
    pub(crate) likeness: Likeness,
}

/// How alike two buffers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Likeness {
    /// `EQ_BUFFER`: to the last bit.
    Equal,
    /// `RMSE_BUFFER`: the root of the mean square of the differences is at most this.
    RootMeanSquare(f64),
    /// `EQ_HISTOGRAM_EMD_BUFFER`: the earth mover's distance of the channels' histograms is at most this.
    EarthMover(f64),
}
