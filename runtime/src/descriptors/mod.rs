//! Descriptor sets: which one stands for the state that a program finds bound, and where it is kept.

mod cache;
mod state;

pub(crate) use cache::SetCache;

use cache::CachedSet;
pub(crate) use state::{ProgramStates, check_mapped, missing, resolve};

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use spelter_driver::BufferInfo;

use crate::error::Error;
use crate::object::{ObjectId, ResourceObject};
use crate::program::BindingInfo;

/// What a descriptor holds, in numbers: equal if and only if the descriptors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// The object; 0 in a descriptor that was never written.
    object: u64,
    /// First byte and length.
    part: [u64; 2],
}

impl Key {
    pub(crate) fn new(object: ObjectId, range: &Range<u64>) -> Self {
        Self { object: object.0, part: [range.start, range.end - range.start] }
    }

    /// A share of the hash of a set, different for each place: shares are added up, so one place is exchanged in one
    /// step.
    fn hash(self, place: usize) -> u64 {
        let mut hash = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in [self.object, self.part[0], self.part[1]] {
            let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f;
            hash = (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(23);
        }
        hash
    }
}

/// A descriptor to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor<'a> {
    pub(crate) object: &'a Arc<ResourceObject>,
    pub(crate) range: &'a Range<u64>,
}

impl Descriptor<'_> {
    pub(crate) fn key(&self) -> Key {
        Key::new(self.object.id(), self.range)
    }

    fn info(&self) -> BufferInfo<'_> {
        let Range { start, end } = *self.range;
        BufferInfo { buffer: self.object.buffer(), offset: start, range: end - start }
    }
}

/// What the driver refuses, at the binding that the caller knows.
fn refused(binding: &BindingInfo, element: u32, error: spelter_driver::Error) -> Error {
    let spelter_driver::Error::Misuse(misuse) = error else { return error.into() };
    let at = if binding.count == 1 { String::new() } else { format!("element {element}: ") };
    Error::binding(binding.group, binding.binding, format!("{at}{} ({})", misuse.problem, misuse.vuid))
}

/// The Vulkan type of a kind of binding.
pub(crate) fn descriptor_type(kind: spelter_shaders::ir::BindingKind) -> vk::DescriptorType {
    match kind {
        spelter_shaders::ir::BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        spelter_shaders::ir::BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        spelter_shaders::ir::BindingKind::Sampler => vk::DescriptorType::SAMPLER,
        spelter_shaders::ir::BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        spelter_shaders::ir::BindingKind::CombinedImageSampler => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        spelter_shaders::ir::BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        spelter_shaders::ir::BindingKind::UniformTexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        spelter_shaders::ir::BindingKind::StorageTexelBuffer => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    }
}
