//! Format features of images and texel buffers.

use ash::vk::{self, FormatFeatureFlags2};
use spelter_driver::{format_properties, view_features};

use crate::c::{In, OutChain};
use crate::error::Error;
use crate::options::Options;

/// The only format with attachments on devices that claim graphics. Its images have memory and views but no other use:
/// drawing to them fails.
pub(crate) const ATTACHMENT: vk::Format = vk::Format::D32_SFLOAT_S8_UINT;

/// `vkGetPhysicalDeviceFormatProperties`.
pub(super) fn of(format: vk::Format) -> vk::FormatProperties {
    features(format, Options::get().graphics)
}

/// Vulkan requires that devices with graphics have one depth/stencil attachment format, and Dawn aborts without one:
/// devices that claim graphics have [`ATTACHMENT`], whose images have no other use.
fn features(format: vk::Format, graphics: bool) -> vk::FormatProperties {
    let has = format_properties(format);
    let claimed = if graphics && format == ATTACHMENT {
        vk::FormatFeatureFlags::DEPTH_STENCIL_ATTACHMENT
    } else {
        vk::FormatFeatureFlags::empty()
    };
    vk::FormatProperties {
        linear_tiling_features: has.linear,
        optimal_tiling_features: has.optimal | claimed,
        buffer_features: has.buffer,
    }
}

/// `vkGetPhysicalDeviceFormatProperties2`.
pub(super) fn fill(format: vk::Format, out: &mut OutChain<'_, vk::FormatProperties2<'_>>) {
    let has = of(format);
    out.head(|all| all.format_properties = has);
    out.fill(|all: &mut vk::FormatProperties3<'_>| {
        let compares = compared(format);
        all.linear_tiling_features = wide(has.linear_tiling_features) | compares;
        all.optimal_tiling_features = wide(has.optimal_tiling_features) | compares;
        all.buffer_features = wide(has.buffer_features);
    });
}

/// Sampled depth formats support depth comparison, too.
fn compared(format: vk::Format) -> FormatFeatureFlags2 {
    let sampled = of(format).optimal_tiling_features.contains(vk::FormatFeatureFlags::SAMPLED_IMAGE);
    if sampled && matches!(format, vk::Format::D16_UNORM | vk::Format::D32_SFLOAT) {
        FormatFeatureFlags2::SAMPLED_IMAGE_DEPTH_COMPARISON
    } else {
        FormatFeatureFlags2::empty()
    }
}

/// The features with 64-bit flags: the lower bits are the same, and shaders may access storage images without a
/// declared format.
fn wide(features: vk::FormatFeatureFlags) -> FormatFeatureFlags2 {
    let mut wide = FormatFeatureFlags2::from_raw(features.as_raw().into());
    // Host copies support the formats of transfers.
    if features.contains(vk::FormatFeatureFlags::TRANSFER_SRC) {
        wide |= FormatFeatureFlags2::HOST_IMAGE_TRANSFER_EXT;
    }
    if features.intersects(vk::FormatFeatureFlags::STORAGE_IMAGE | vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER) {
        wide |= FormatFeatureFlags2::STORAGE_READ_WITHOUT_FORMAT | FormatFeatureFlags2::STORAGE_WRITE_WITHOUT_FORMAT;
    }
    wide
}

/// The image parameters of a format query.
pub(super) struct ImageQuery {
    pub(super) format: vk::Format,
    pub(super) ty: vk::ImageType,
    pub(super) tiling: vk::ImageTiling,
    pub(super) usage: vk::ImageUsageFlags,
    pub(super) flags: vk::ImageCreateFlags,
}

impl ImageQuery {
    pub(super) fn of(info: In<'_, vk::PhysicalDeviceImageFormatInfo2<'_>>) -> Self {
        Self { format: info.format, ty: info.ty, tiling: info.tiling, usage: info.usage, flags: info.flags }
    }

    /// The limits of such an image, or `VK_ERROR_FORMAT_NOT_SUPPORTED`.
    pub(super) fn properties(&self) -> Result<vk::ImageFormatProperties, Error> {
        let unsupported = || Error::Quiet(vk::Result::ERROR_FORMAT_NOT_SUPPORTED);
        let has = of(self.format);
        let features = match self.tiling {
            vk::ImageTiling::LINEAR => has.linear_tiling_features,
            vk::ImageTiling::OPTIMAL => has.optimal_tiling_features,
            _ => return Err(unsupported()),
        };
        let allowed = vk::ImageCreateFlags::CUBE_COMPATIBLE
            | vk::ImageCreateFlags::MUTABLE_FORMAT
            | vk::ImageCreateFlags::EXTENDED_USAGE
            | vk::ImageCreateFlags::ALIAS;
        let extended = vk::ImageCreateFlags::MUTABLE_FORMAT | vk::ImageCreateFlags::EXTENDED_USAGE;
        let features = match features.is_empty() || !self.flags.contains(extended) {
            true => features,
            false => features | view_features(self.format),
        };
        if !allowed.contains(self.flags) || !usages(features).contains(self.usage) {
            return Err(unsupported());
        }
        let limits = spelter_driver::Limits::of_devices();
        let (one, two, three) =
            (limits.max_image_dimension_1d, limits.max_image_dimension_2d, limits.max_image_dimension_3d);
        let ([width, height, depth], layers) = match self.ty {
            vk::ImageType::TYPE_1D => ([one, 1, 1], limits.max_image_array_layers),
            vk::ImageType::TYPE_2D => ([two, two, 1], limits.max_image_array_layers),
            vk::ImageType::TYPE_3D => ([three; 3], 1),
            _ => return Err(unsupported()),
        };
        if self.flags.contains(vk::ImageCreateFlags::CUBE_COMPATIBLE) && self.ty != vk::ImageType::TYPE_2D {
            return Err(unsupported());
        }
        Ok(vk::ImageFormatProperties {
            max_extent: vk::Extent3D { width, height, depth },
            max_mip_levels: width.max(height).max(depth).ilog2() + 1,
            max_array_layers: layers,
            sample_counts: vk::SampleCountFlags::TYPE_1,
            max_resource_size: limits.max_image_bytes,
        })
    }
}

/// The image usages that these features permit.
fn usages(features: vk::FormatFeatureFlags) -> vk::ImageUsageFlags {
    use vk::{FormatFeatureFlags as F, ImageUsageFlags as U};
    let all = [
        (F::SAMPLED_IMAGE, U::SAMPLED),
        (F::STORAGE_IMAGE, U::STORAGE),
        (F::TRANSFER_SRC, U::TRANSFER_SRC),
        (F::TRANSFER_DST, U::TRANSFER_DST),
        (F::TRANSFER_SRC, U::HOST_TRANSFER_EXT),
        (F::DEPTH_STENCIL_ATTACHMENT, U::DEPTH_STENCIL_ATTACHMENT),
    ];
    all.into_iter().filter(|(feature, _)| features.contains(*feature)).fold(U::empty(), |all, (_, usage)| all | usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_claim_graphics_have_one_attachment_format() {
        let all = (0..=184).map(vk::Format::from_raw);
        let optimal = |format, graphics| features(format, graphics).optimal_tiling_features;
        let claimed: Vec<_> = all.filter(|&format| optimal(format, true) != optimal(format, false)).collect();
        assert_eq!(claimed, [vk::Format::D32_SFLOAT_S8_UINT]);
        // This process does not claim graphics.
        let usage = vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT;
        let (ty, tiling, flags) = (vk::ImageType::TYPE_2D, vk::ImageTiling::OPTIMAL, vk::ImageCreateFlags::empty());
        assert!(ImageQuery { format: claimed[0], ty, tiling, usage, flags }.properties().is_err());
        assert_eq!(usages(optimal(ATTACHMENT, true)), usage, "and no other usage");
    }
}
