//! Pairs of images and samplers that a kernel samples with: Vulkan's rules for dispatches are about such pairs.

use crate::image::Kind;

use super::{Binding, InstData, Kernel, Value, ValueDef};

/// An image and a sampler that are operands of one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledPair {
    /// The image's binding.
    pub image: Binding,
    /// The sampler's binding; equal to the image's for a combined descriptor.
    pub sampler: Binding,
    /// Whether the sampler's filters matter: gathers read the same texels with any filter.
    pub filters: bool,
    /// Whether texels are compared with a reference.
    pub compares: bool,
}

impl Kernel {
    /// All such pairs, each once.
    pub fn sampled_pairs(&self) -> Vec<SampledPair> {
        let mut pairs = Vec::new();
        for inst in self.layout.iter().flat_map(|&block| &self.blocks[block].insts) {
            let &InstData::Image { op, image, sampler: Some(sampler), .. } = &self.insts[*inst] else { continue };
            let (Some(image), Some(sampler)) = (self.binding_of(image), self.binding_of(sampler)) else { continue };
            let pair = SampledPair { image, sampler, filters: op.kind == Kind::Sample, compares: op.dref };
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs
    }

    /// The binding of a descriptor, if known.
    fn binding_of(&self, descriptor: Value) -> Option<Binding> {
        let ValueDef::Result { inst, .. } = self.values[descriptor] else { return None };
        match self.insts[inst] {
            InstData::Buffer { binding, .. } => Some(binding),
            _ => None,
        }
    }
}
