//! Programs: a shader, an entry point and specialization constants, made ready to be dispatched.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use spelter_driver::{ComputePipeline, DescriptorSetLayout, Device, PipelineLayout, PushRange, SpecializedShader};
use spelter_shaders::front::ConstantType;
use spelter_shaders::ir::BindingData;

pub use spelter_shaders::front::SpecializationConstant;
pub use spelter_shaders::ir::BindingKind;

use crate::bindings::Bound;
use crate::context::Context;
use crate::descriptors::descriptor_type;
use crate::error::Error;
use crate::serial::Access;
use crate::share::Share;
use crate::slot::{Slot, SlotKind};
use crate::view::Part;

/// The text or words of a shader.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// WGSL text. Push constants are `var<immediate>` there.
    Wgsl(&'a str),
    /// SPIR-V words.
    Spirv(&'a [u32]),
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(text: &'a str) -> Self {
        Self::Wgsl(text)
    }
}

impl<'a> From<&'a [u32]> for Source<'a> {
    fn from(words: &'a [u32]) -> Self {
        Self::Spirv(words)
    }
}

/// An entry point ready to be dispatched. A handle: clones name the same program.
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    share: Arc<Share>,
    entry: String,
    workgroup_size: [u32; 3],
    push_bytes: u32,
    specialization: Vec<SpecializationConstant>,
    bindings: Vec<BindingInfo>,
    sets: Vec<SetLayout>,
    pipeline: ComputePipeline,
}

/// A binding that a program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    /// The descriptor set; `@group` in WGSL.
    pub group: u32,
    /// The binding in it.
    pub binding: u32,
    /// Storage or uniform.
    pub kind: BindingKind,
    /// Elements of an array of buffers; 1 for a single one.
    pub count: u32,
    /// Bytes that the fixed part of the block takes. A smaller buffer is legal: what lies beyond its end reads as 0.
    pub min_bytes: u32,
    /// The program only reads it.
    pub read_only: bool,
}

impl BindingInfo {
    pub(crate) fn ty(&self) -> vk::DescriptorType {
        descriptor_type(self.kind)
    }

    /// Its slots, one for each element.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let (group, binding) = (self.group, self.binding);
        (0..self.count).map(move |element| Slot { group, binding, element })
    }

    /// The kind of slot that fills it.
    pub(crate) fn slot_kind(&self) -> SlotKind {
        match self.kind {
            BindingKind::UniformBuffer => SlotKind::UniformBuffer,
            BindingKind::StorageBuffer => SlotKind::StorageBuffer,
            BindingKind::StorageImage | BindingKind::StorageTexelBuffer => SlotKind::StorageImage,
            BindingKind::SampledImage | BindingKind::CombinedImageSampler | BindingKind::UniformTexelBuffer => {
                SlotKind::SamplerView
            }
            BindingKind::Sampler => SlotKind::Sampler,
        }
    }

    /// Whether something bound in a slot of its kind fits: an image or texels, with a sampler if it takes both.
    pub(crate) fn takes(&self, bound: &Bound) -> bool {
        match self.kind {
            BindingKind::UniformBuffer | BindingKind::StorageBuffer => matches!(bound.part, Part::Bytes(_)),
            BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => {
                matches!(bound.part, Part::Texels(..))
            }
            BindingKind::SampledImage | BindingKind::StorageImage => matches!(bound.part, Part::Image(_)),
            BindingKind::CombinedImageSampler => matches!(bound.part, Part::Image(_)) && bound.sampler.is_some(),
            BindingKind::Sampler => bound.sampler.is_some(),
        }
    }

    /// Whether it takes a buffer as such.
    pub(crate) fn takes_buffer(&self) -> bool {
        matches!(self.kind, BindingKind::UniformBuffer | BindingKind::StorageBuffer)
    }

    /// What it takes, for messages.
    pub(crate) fn takes_name(&self) -> &'static str {
        match self.kind {
            BindingKind::UniformBuffer => "uniform buffer",
            BindingKind::StorageBuffer => "storage buffer",
            BindingKind::UniformTexelBuffer => "texel buffer",
            BindingKind::StorageTexelBuffer => "storage texel buffer",
            BindingKind::SampledImage => "sampled image",
            BindingKind::CombinedImageSampler => "sampled image with a sampler",
            BindingKind::StorageImage => "storage image",
            BindingKind::Sampler => "sampler",
        }
    }

    /// What the program does with it.
    pub(crate) fn access(&self) -> Access {
        if self.read_only || !self.slot_kind().can_write() { Access::Read } else { Access::Write }
    }
}

impl From<&BindingData> for BindingInfo {
    fn from(data: &BindingData) -> Self {
        Self {
            group: data.set,
            binding: data.binding,
            kind: data.kind,
            count: data.count,
            min_bytes: data.min_bytes,
            read_only: data.read_only || data.kind == BindingKind::UniformBuffer,
        }
    }
}

/// The layout of one descriptor set, with its bindings in order.
#[derive(Debug)]
pub(crate) struct SetLayout {
    pub(crate) layout: DescriptorSetLayout,
    pub(crate) bindings: Vec<BindingInfo>,
}

impl Program {
    /// Name of the entry point.
    pub fn entry(&self) -> &str {
        &self.inner.entry
    }

    /// Invocations of a workgroup in each direction, specialized.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.inner.workgroup_size
    }

    /// Bytes of push constants that the program declares.
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    /// The bindings that the entry point uses, by group and binding.
    pub fn bindings(&self) -> &[BindingInfo] {
        &self.inner.bindings
    }

    /// The shader's specialization constants; in WGSL its overrides.
    pub fn specialization_constants(&self) -> &[SpecializationConstant] {
        &self.inner.specialization
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Whether the program was made by a context of that device.
    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.inner.share, share)
    }

    pub(crate) fn pipeline(&self) -> &ComputePipeline {
        &self.inner.pipeline
    }

    /// Layouts of sets 0, 1 …; one that the program does not use has no bindings.
    pub(crate) fn sets(&self) -> &[SetLayout] {
        &self.inner.sets
    }
}

/// Makes a [`Program`]: see [`Context::program`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ProgramBuilder<'a> {
    context: &'a Context,
    source: Source<'a>,
    entry: Option<&'a str>,
    constants: BTreeMap<u32, Constant>,
}

impl<'a> ProgramBuilder<'a> {
    pub(crate) fn new(context: &'a Context, source: Source<'a>) -> Self {
        Self { context, source, entry: None, constants: BTreeMap::new() }
    }

    /// Names the entry point. May be left out where the shader has only one.
    pub fn entry(mut self, name: &'a str) -> Self {
        self.entry = Some(name);
        self
    }

    /// Sets a specialization constant by its `SpecId`, in WGSL its `@id`. Ids that the shader does not have are ignored,
    /// as in Vulkan; a value of another type than the constant's is [`Error::Constant`], found by `build`.
    pub fn specialize(mut self, id: u32, value: impl Into<Constant>) -> Self {
        self.constants.insert(id, value.into());
        self
    }

    /// Reads, specializes and compiles the shader.
    ///
    /// [`Error::Shader`] if it is refused, [`Error::EntryPoint`] if it does not have the entry point, or has several
    /// and none was named.
    pub fn build(self) -> Result<Program, Error> {
        let device = self.context.device();
        let module = match self.source {
            Source::Wgsl(text) => device.create_shader_module_wgsl(text)?,
            Source::Spirv(words) => device.create_shader_module(words)?,
        };
        let entry = choose_entry(module.entry_points(), self.entry)?;
        let declared = module.specialization_constants();
        let bits = self.constants.iter().filter_map(|(&id, value)| {
            let constant = declared.iter().find(|constant| constant.id == Some(id))?;
            Some(value.bits_for(constant).map(|bits| (id, bits)))
        });
        let shader = module.specialize(&entry, &bits.collect::<Result<_, Error>>()?)?;
        create(self.context, entry, &shader, declared)
    }
}

/// The value of a specialization constant: `3u32.into()`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// Unsigned; also for an `i32` that has the value.
    U32(u32),
    /// Signed; also for a `u32` that has the value.
    I32(i32),
    /// Unsigned, of 64 bits; also for a signed constant that has the value.
    U64(u64),
    /// Float; also for a constant of 64 bits.
    F32(f32),
    /// Float of 64 bits.
    F64(f64),
    /// Boolean.
    Bool(bool),
}

impl Constant {
    /// The bits of the value for a constant, whose kind it must have; else [`Error::Constant`].
    pub fn bits_for(self, constant: &SpecializationConstant) -> Result<u64, Error> {
        let bits = match (constant.ty, self) {
            (ConstantType::Uint(width), Self::U32(value)) => within(u64::from(value), width),
            (ConstantType::Uint(width), Self::U64(value)) => within(value, width),
            (ConstantType::Uint(width), Self::I32(value)) => {
                u64::try_from(value).ok().and_then(|value| within(value, width))
            }
            (ConstantType::Int(width), Self::I32(value)) => signed(i64::from(value), width),
            (ConstantType::Int(width), Self::U32(value)) => signed(i64::from(value), width),
            (ConstantType::Int(width), Self::U64(value)) => {
                i64::try_from(value).ok().and_then(|value| signed(value, width))
            }
            (ConstantType::Float(32), Self::F32(value)) => Some(value.to_bits().into()),
            (ConstantType::Float(64), Self::F32(value)) => Some(f64::from(value).to_bits()),
            (ConstantType::Float(64), Self::F64(value)) => Some(value.to_bits()),
            (ConstantType::Bool, Self::Bool(value)) => Some(value.into()),
            _ => None,
        };
        bits.ok_or_else(|| Error::Constant(format!("{constant} cannot be {self}")))
    }
}

/// A number of so many bits.
fn within(value: u64, bits: u32) -> Option<u64> {
    (bits >= 64 || value >> bits == 0).then_some(value)
}

/// The bits of a number, if they are enough for it.
fn signed(value: i64, bits: u32) -> Option<u64> {
    let unused = 64u32.checked_sub(bits)?;
    (value << unused >> unused == value).then_some(value.cast_unsigned() << unused >> unused)
}

impl fmt::Display for Constant {
    /// As Rust writes the literal: `2`, `2.0`, `true`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U32(value) => write!(f, "{value}"),
            Self::I32(value) => write!(f, "{value}"),
            Self::U64(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:?}"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

macro_rules! constant_from {
    ($($ty:ident $variant:ident),*) => {
        $(impl From<$ty> for Constant {
            fn from(value: $ty) -> Self {
                Self::$variant(value)
            }
        })*
    };
}
constant_from!(u32 U32, i32 I32, u64 U64, f32 F32, bool Bool);

/// The entry point of that name among those of a shader; without a name, the only one. Else [`Error::EntryPoint`].
pub fn choose_entry<'a>(names: impl Iterator<Item = &'a str>, name: Option<&str>) -> Result<String, Error> {
    let names: Vec<&str> = names.collect();
    let list = names.join(", ");
    match (name, names.as_slice()) {
        (_, []) => Err(Error::EntryPoint("the shader has no compute entry point".into())),
        (Some(name), names) if names.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::EntryPoint(format!("no entry point {name:?}; the shader has {list}"))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Error::EntryPoint(format!("several entry points: name one of {list}"))),
    }
}

fn create(
    context: &Context,
    entry: String,
    shader: &SpecializedShader,
    specialization: Vec<SpecializationConstant>,
) -> Result<Program, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (device, kernel) = (context.device(), shader.kernel());
    let mut bindings: Vec<_> = kernel.bindings.values().map(BindingInfo::from).collect();
    bindings.sort_by_key(|b| (b.group, b.binding));
    let sets = set_layouts(device, &bindings)?;
    let layout = pipeline_layout(device, &sets, kernel.push_bytes)?;
    let pipeline = device.create_compute_pipeline_from(shader, &layout)?;
    let inner = Inner {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        share: Arc::clone(context.share()),
        entry,
        workgroup_size: kernel.workgroup_size,
        push_bytes: kernel.push_bytes,
        specialization,
        bindings,
        sets,
        pipeline,
    };
    Ok(Program { inner: Arc::new(inner) })
}

/// One layout for each set up to the last that the program uses.
fn set_layouts(device: &Device, bindings: &[BindingInfo]) -> Result<Vec<SetLayout>, Error> {
    let most = device.limits().max_bound_descriptor_sets;
    if let Some(binding) = bindings.iter().find(|b| b.group >= most) {
        let problem = format!("groups are numbered 0 to {}", most - 1);
        return Err(Error::binding(binding.group, binding.binding, problem));
    }
    let sets = bindings.iter().map(|b| b.group + 1).max().unwrap_or(0);
    (0..sets)
        .map(|set| {
            let bindings: Vec<_> = bindings.iter().filter(|b| b.group == set).copied().collect();
            let entries: Vec<_> = bindings
                .iter()
                .map(|b| spelter_driver::Binding { binding: b.binding, ty: b.ty(), count: b.count })
                .collect();
            Ok(SetLayout { layout: device.create_descriptor_set_layout(&entries)?, bindings })
        })
        .collect()
}

fn pipeline_layout(device: &Device, sets: &[SetLayout], push_bytes: u32) -> Result<PipelineLayout, Error> {
    let layouts: Vec<_> = sets.iter().map(|set| &set.layout).collect();
    let push = PushRange { offset: 0, size: push_bytes.next_multiple_of(4) };
    let push = if push_bytes == 0 { &[][..] } else { &[push][..] };
    Ok(device.create_pipeline_layout(&layouts, push)?)
}
