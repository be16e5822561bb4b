//! Checks that a sampler fits the image and the instruction that use it: a dispatch's rules for both together.
//!
//! If they are broken, the sample is computed all the same: Vulkan calls linear filters on formats without that feature
//! invalid, and lets the device decide whether sampler or instruction selects the comparison (the note at
//! `compareEnable`).

use ash::vk;
use spelter_shaders::image::Filter;
use spelter_shaders::ir::SampledPair;

use super::image::ImageWritten;
use super::set::{Contents, Written};
use crate::resource::format_properties;

/// A rule that an image and a sampler break together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleRule {
    /// A linear filter needs a format that supports linear filtering.
    Filter,
    /// Linear filtering between levels needs such a format, too.
    Levels,
    /// The sampler compares if and only if the instruction does.
    Compare,
}

/// The rule has no VUID: this is the structure member that it is about.
pub(crate) const COMPARE: &str = "VkSamplerCreateInfo::compareEnable";

/// Checks that the image in a slot may be sampled through the sampler in another. The error has the broken rule and the
/// problem. Slots that were never written pass.
pub(crate) fn check_sample(
    pair: &SampledPair,
    (images, image): (&Contents, usize),
    (samplers, sampler): (&Contents, usize),
) -> Result<(), (SampleRule, String)> {
    let (Some(image), Some(sampler)) = (images.written_image(image), samplers.written_image(sampler)) else {
        return Ok(());
    };
    let Some(compares) = sampler.compares else { return Ok(()) };
    if compares != pair.compares {
        let problem = if compares {
            "the sampler compares texels with a reference, and the shader's instruction has none"
        } else {
            "the shader compares texels with a reference, and the sampler does not compare"
        };
        return Err((SampleRule::Compare, problem.into()));
    }
    if !pair.filters || compares || image.descriptor.view.memory.is_empty() {
        return Ok(());
    }
    let format = vk::Format::from_raw(image.descriptor.view.format.vk());
    if format_properties(format).optimal.contains(vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR) {
        return Ok(());
    }
    let sampler = &sampler.descriptor.sampler;
    let problem = |what| format!("the sampler {what}, and texels of format {format:?} cannot be filtered linearly");
    if [sampler.mag, sampler.min].contains(&Filter::Linear) {
        return Err((SampleRule::Filter, problem("filters linearly")));
    }
    if sampler.mip == Filter::Linear {
        return Err((SampleRule::Levels, problem("filters linearly between levels")));
    }
    Ok(())
}

impl Contents {
    fn written_image(&self, slot: usize) -> Option<&ImageWritten> {
        match self.slots.get(slot) {
            Some(Some(Written::Image(written))) => Some(written),
            _ => None,
        }
    }
}
