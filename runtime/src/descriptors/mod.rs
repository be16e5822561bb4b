//! Descriptor sets: which one stands for the state that a program finds bound, and where it is kept.

mod cache;
mod state;

pub(crate) use cache::SetCache;

use cache::CachedSet;
pub(crate) use state::{ProgramStates, check_mapped, checked, resolve, used, wrong_kind};

use ash::vk;
use spelter_driver::Sampler;

use crate::error::Error;
use crate::program::BindingInfo;
use crate::slot_state::SlotState;

/// What a descriptor holds, in numbers: equal if and only if the descriptors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    /// The object; 0 in a descriptor that was never written, or is a sampler.
    object: u64,
    /// What of it, and how.
    part: [u64; 3],
    /// The sampler, by a number that no other has.
    sampler: u64,
}

impl Key {
    fn of(bound: &SlotState) -> Self {
        Self {
            object: bound.object.as_ref().map_or(0, |object| object.id().0),
            part: bound.part.words(),
            sampler: bound.sampler.as_ref().map_or(0, Sampler::number),
        }
    }

    /// A share of the hash of a set, different for each place: shares are added up, so one place is exchanged in one
    /// step.
    fn hash(self, place: usize) -> u64 {
        let mut hash = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for word in [self.object, self.part[0], self.part[1], self.part[2], self.sampler] {
            let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f;
            hash = (product as u64) ^ (product >> 64) as u64 ^ word.rotate_left(23);
        }
        hash
    }
}

/// What the driver refuses, at the binding that the caller knows.
fn refused(binding: &BindingInfo, element: u32, bound: &SlotState, error: spelter_driver::Error) -> Error {
    let spelter_driver::Error::Misuse(misuse) = error else { return error.into() };
    let at = if binding.count == 1 { String::new() } else { format!("element {element}: ") };
    let what = bound.described();
    Error::binding(binding.group, binding.binding, format!("{at}{what}: {} ({})", misuse.problem, misuse.vuid))
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
