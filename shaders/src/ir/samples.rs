//! Which images a kernel samples through which samplers: rules of dispatches are about such pairs.

use crate::image::Kind;

use super::{Binding, InstData, Kernel, Value, ValueDef};

/// An image and a sampler that one instruction takes both of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledPair {
    /// The image's binding.
    pub image: Binding,
    /// The sampler's; the same where a descriptor is both.
    pub sampler: Binding,
    /// Whether the sampler's filters count: gathers take the same texels whatever they are.
    pub filters: bool,
    /// Whether texels are compared with a reference.
    pub compares: bool,
}

impl Kernel {
    /// The pairs that instructions sample, each once.
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

    /// The binding that a descriptor comes from, where that is one.
    fn binding_of(&self, descriptor: Value) -> Option<Binding> {
        let ValueDef::Result { inst, .. } = self.values[descriptor] else { return None };
        match self.insts[inst] {
            InstData::Buffer { binding, .. } => Some(binding),
            _ => None,
        }
    }
}
