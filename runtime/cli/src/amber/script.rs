//! A parsed script: its declarations and commands.

use std::collections::BTreeMap;

use spelter_driver::{SamplerInfo, vk};

use super::layout::Layout;
use super::number::Number;
use super::text::SourcePosition;
use super::types::Type;

/// A whole script. Declarations are referred to by index.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// The features that the device must offer, in order.
    pub(crate) needs: Vec<Need>,
    /// `SET ENGINE_DATA fence_timeout_ms`.
    pub(crate) fence_timeout_ms: Option<u32>,
    /// Path → text.
    pub(crate) virtual_files: BTreeMap<String, String>,
    /// `SHADER`.
    pub(crate) shaders: Vec<AmberShader>,
    /// `BUFFER` and `IMAGE`.
    pub(crate) buffers: Vec<Buffer>,
    /// `SAMPLER`.
    pub(crate) samplers: Vec<SamplerInfo>,
    /// `PIPELINE` and `DERIVE_PIPELINE`.
    pub(crate) pipelines: Vec<Pipeline>,
    /// In order.
    pub(crate) commands: Vec<AmberCommand>,
}

impl Script {
    /// The files of its shaders, as it names them.
    pub(crate) fn shader_files(&self) -> impl Iterator<Item = &str> {
        self.shaders.iter().filter_map(|shader| match &shader.source {
            AmberSource::File(path) => Some(path.as_str()),
            AmberSource::Inline(_) => None,
        })
    }
}

/// A feature that a device may lack.
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
pub(crate) struct AmberShader {
    /// Its name.
    pub(crate) name: String,
    /// The place of its declaration.
    pub(crate) at: SourcePosition,
    /// The language of its source.
    pub(crate) language: AmberLanguage,
    /// Its source.
    pub(crate) source: AmberSource,
    /// Where the lines of its source are.
    pub(crate) lines: SourceLines,
    /// `TARGET_ENV`.
    pub(crate) target: Option<String>,
}

/// The language of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AmberLanguage {
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

/// The source of a shader.
#[derive(Debug)]
pub(crate) enum AmberSource {
    /// In the script.
    Inline(String),
    /// In a file next to the script.
    File(String),
}

/// Where the lines of a shader's source are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceLines {
    /// In the script, after this line.
    Script(u32),
    /// In this file, from its first line on.
    File(String),
}

/// A buffer or an image, with its initial contents.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// Its name.
    pub(crate) name: String,
    /// Its data type.
    pub(crate) ty: Type,
    /// The layout of an element.
    pub(crate) layout: Layout,
    /// The number of elements, or of texels of level 0.
    pub(crate) count: usize,
    /// Contents.
    pub(crate) bytes: Vec<u8>,
    /// Its shape as an image.
    pub(crate) image: Shape,
}

/// The shape of a buffer as an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Dimensions.
    pub(crate) ty: vk::ImageType,
    /// Width, height, depth. Width and height of a `BUFFER … FORMAT` are 0 until a pipeline binds it; then they are the
    /// pipeline's framebuffer size.
    pub(crate) size: [u32; 3],
    /// Mip levels.
    pub(crate) levels: u32,
    /// The number of samples per texel.
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
    /// Set and binding → descriptors.
    pub(crate) bindings: BTreeMap<(u32, u32), BoundDescriptors>,
    /// `BIND BUFFER … AS push_constant`.
    pub(crate) push: Option<usize>,
}

/// `SUBGROUP`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subgroup {
    /// `REQUIRED_SIZE`.
    pub(crate) required: Option<SubgroupSize>,
}

/// `REQUIRED_SIZE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubgroupSize {
    /// This number of invocations.
    Exactly(u32),
    /// `MIN` or `MAX`: `minSubgroupSize` or `maxSubgroupSize`, which are equal here.
    Any,
}

/// The descriptors of a binding.
#[derive(Clone, Debug)]
pub(crate) struct BoundDescriptors {
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

/// A command and its place.
#[derive(Debug)]
pub(crate) struct AmberCommand {
    /// Its place.
    pub(crate) at: SourcePosition,
    /// Its action.
    pub(crate) what: Action,
}

/// The action of a command.
#[derive(Debug)]
pub(crate) enum Action {
    /// `RUN` with this number of workgroups.
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
    Repeat(u32, Vec<AmberCommand>),
    /// `EXPECT … IDX …`.
    ExpectValues(ExpectValues),
    /// `EXPECT … IDX … SIZE … EQ_RGBA`.
    ExpectTexels(ExpectTexels),
    /// `EXPECT … EQ_BUFFER …`, `RMSE_BUFFER` or `EQ_HISTOGRAM_EMD_BUFFER`.
    ExpectBuffer(ExpectBuffer),
}

/// Values of a buffer from a byte on.
#[derive(Debug)]
pub(crate) struct ExpectValues {
    /// The buffer.
    pub(crate) buffer: usize,
    /// First byte.
    pub(crate) offset: u64,
    /// The comparison.
    pub(crate) comparator: Comparator,
    /// The values.
    pub(crate) values: Vec<Number>,
    /// `TOLERANCE`; only with `EQ`.
    pub(crate) tolerances: Vec<Tolerance>,
}

/// A comparison of values.
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

/// The largest difference of two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerance {
    /// The difference, or a percentage of the expected value.
    pub(crate) value: f64,
    /// Whether it is a percentage.
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

/// An expectation that two buffers are equal or similar.
#[derive(Debug)]
pub(crate) struct ExpectBuffer {
    /// One.
    pub(crate) left: usize,
    /// The other.
    pub(crate) right: usize,
    /// The measure of similarity.
    pub(crate) likeness: Likeness,
}

/// The measure of similarity of two buffers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Likeness {
    /// `EQ_BUFFER`: equal bit by bit.
    Equal,
    /// `RMSE_BUFFER`: the root of the mean square of the differences is at most this.
    RootMeanSquare(f64),
    /// `EQ_HISTOGRAM_EMD_BUFFER`: the earth mover's distance of the channels' histograms is at most this.
    EarthMover(f64),
}
