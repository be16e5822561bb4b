//! The check of slots against the bindings that a program declares.

use ash::vk;
use spelter_driver::{ImageDeclaration, descriptor_type};
use spelter_shaders::ir::{BindingData, BindingKind};

use crate::error::{Error, rule};
use crate::ids::{Access, Slot, SlotKind};
use crate::slot_state::SlotState;
use crate::view::Part;

/// A binding of a program or of a set, as dispatches check it. [`BindingInfo`](crate::BindingInfo) documents the
/// fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) group: u32,
    pub(crate) binding: u32,
    pub(crate) kind: BindingKind,
    pub(crate) count: u32,
    pub(crate) min_bytes: u32,
    pub(crate) element_bytes: u32,
    pub(crate) read_only: bool,
    pub(crate) image: Option<ImageDeclaration>,
}

impl Declared {
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

impl From<&BindingData> for Declared {
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
