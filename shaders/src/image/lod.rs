//! Levels of detail (Vulkan, "Level-of-Detail Operation").

use super::descriptor::{Filter, Sampler};

/// Level-of-detail bias of a sampler, at most (`maxSamplerLodBias`).
pub(super) const MAX_LOD_BIAS: f32 = 16.0;

/// The mip levels to read, and the filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Levels {
    /// The level, and the next one with its weight if two are mixed.
    pub(super) first: u32,
    pub(super) second: Option<(u32, f32)>,
    pub(super) filter: Filter,
}

/// Level of detail for derivatives of texel coordinates.
pub(super) fn of_derivatives(x: [f32; 3], y: [f32; 3]) -> f32 {
    let length = |d: [f32; 3]| (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]).sqrt();
    libm::log2f(length(x).max(length(y)))
}

/// The mip levels of a level of detail.
pub(super) fn select(sampler: &Sampler, lod: f32, min_lod: f32, levels: u32) -> Levels {
    if sampler.unnormalized {
        return Levels { first: 0, second: None, filter: sampler.mag };
    }
    let biased = lod + sampler.lod_bias.clamp(-MAX_LOD_BIAS, MAX_LOD_BIAS);
    // NaN becomes a bound; a sampler's bounds are ordered.
    let lod = biased.max(sampler.min_lod.max(min_lod)).min(sampler.max_lod);
    let filter = if lod <= 0.0 { sampler.mag } else { sampler.min };
    let last = levels.saturating_sub(1);
    let at = lod.clamp(0.0, last as f32);
    match sampler.mip {
        Filter::Nearest => Levels { first: ((at + 0.5).ceil() - 1.0).max(0.0) as u32, second: None, filter },
        Filter::Linear => {
            let first = at.floor();
            let weight = at - first;
            let next = (first as u32 + 1).min(last);
            Levels { first: first as u32, second: (weight > 0.0).then_some((next, weight)), filter }
        }
    }
}
