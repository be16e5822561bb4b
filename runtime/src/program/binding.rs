//! The bindings that a program declares, and the check of slots against them.

use ash::vk;
use spelter_driver::ImageDeclaration;
use spelter_shaders::ir::{BindingData, BindingKind};

use crate::error::{Error, rule};
use crate::ids::{Access, Slot, SlotKind};
use crate::slot_state::SlotState;
use crate::view::Part;

/// A binding that a program declares.
///
/// ```
/// use spelter::BindingKind;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "struct Step { a: f32, b: vec3<f32> }
///      @group(2) @binding(5) var<uniform> step: Step;
///      @group(0) @binding(1) var<storage, read_write> to: f32;
///      @compute @workgroup_size(1) fn main() { to = step.a + step.b.z; }",
/// )?;
/// let [to, step] = program.bindings() else { panic!("two bindings") };
/// assert_eq!((to.group, to.binding, to.kind, to.read_only), (0, 1, BindingKind::StorageBuffer, false));
/// assert_eq!((step.group, step.kind, step.min_bytes), (2, BindingKind::UniformBuffer, 28));
/// assert_eq!(to.image, None); // for images: dimensions, numeric type, format
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    /// The descriptor set; `@group` in WGSL.
    pub group: u32,
    /// The binding in it.
    pub binding: u32,
    /// The kind of descriptor.
    pub kind: BindingKind,
    /// The number of elements of an array of descriptors; 1 for a single one.
    pub count: u32,
    /// The size of the fixed part of the block in bytes, without a runtime-sized array at its end. A dispatch needs a
    /// buffer of at least this size.
    pub min_bytes: u32,
    /// The size of an element of that array in bytes; 0 if there is no such array. A buffer may have no room for an
    /// element: the array is then empty.
    pub element_bytes: u32,
    /// Whether the program only reads it.
    pub read_only: bool,
    /// The view that the shader requires of an image or texel buffer. `None` for buffers and samplers, and if variables
    /// that share the binding require different views.
    pub image: Option<ImageDeclaration>,
}

impl BindingInfo {
    pub(crate) fn ty(&self) -> vk::DescriptorType {
        descriptor_type(self.kind)
    }

    /// The slots of the binding, one for each element.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        let (group, binding) = (self.group, self.binding);
        (0..self.count).map(move |element| Slot { group, binding, element })
    }

    /// The kind of slot that the binding needs.
    pub(crate) fn slot_kind(&self) -> SlotKind {
        SlotKind::of(self.kind)
    }

    /// Whether the state of a slot of the right kind fits: bytes, texels or an image, with a sampler for a combined
    /// image sampler, or null.
    pub(crate) fn takes(&self, bound: &SlotState) -> bool {
        match self.kind {
            _ if bound.is_null() => true,
            BindingKind::UniformBuffer | BindingKind::StorageBuffer => matches!(bound.part, Part::Bytes(_)),
            BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => {
                matches!(bound.part, Part::Texels(..))
            }
            BindingKind::SampledImage | BindingKind::StorageImage => matches!(bound.part, Part::Image(_)),
            BindingKind::CombinedImageSampler => matches!(bound.part, Part::Image(_)) && bound.sampler.is_some(),
            BindingKind::Sampler => bound.sampler.is_some(),
        }
    }

    /// Checks that a slot that fits has room for the fixed part of the block, or a view as the shader requires it.
    pub(crate) fn check(&self, slot: Slot, bound: &SlotState) -> Result<(), Error> {
        let view = match &bound.part {
            Part::Bytes(range) => {
                let (bytes, min_bytes) = (range.end - range.start, u64::from(self.min_bytes));
                if bytes < min_bytes {
                    let problem =
                        format!("{bytes} bytes of {}, the block needs at least {min_bytes}", bound.described());
                    return Err(Error::slot_rule(slot, problem, rule::BLOCK));
                }
                return Ok(());
            }
            Part::Texels(_, format) => (None, *format),
            Part::Image(part) => (Some(part.ty), part.format),
            Part::Nothing => return Ok(()),
        };
        let Some((rule, problem)) = self.image.and_then(|image| image.check(view.0, view.1).err()) else {
            return Ok(());
        };
        Err(Error::slot(slot, format!("{}: {problem} ({})", bound.described(), rule.id())))
    }

    /// Whether it is a plain buffer, without a view.
    pub(crate) fn takes_buffer(&self) -> bool {
        matches!(self.kind, BindingKind::UniformBuffer | BindingKind::StorageBuffer)
    }

    /// The kind of descriptor, for messages.
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

    /// The access of the program.
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
            element_bytes: data.element_bytes,
            read_only: data.read_only || data.kind == BindingKind::UniformBuffer,
            image: ImageDeclaration::of(data),
        }
    }
}

/// The Vulkan descriptor type of a kind of binding.
fn descriptor_type(kind: BindingKind) -> vk::DescriptorType {
    match kind {
        BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        BindingKind::Sampler => vk::DescriptorType::SAMPLER,
        BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        BindingKind::CombinedImageSampler => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        BindingKind::UniformTexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        BindingKind::StorageTexelBuffer => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    }
}
