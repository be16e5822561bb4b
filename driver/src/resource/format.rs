//! Supported uses of each format (`VkFormatProperties`).

use ash::vk::{self, FormatFeatureFlags as F};
use spelter_shaders::image::{Class, Format, Numeric};

use crate::device::Device;

/// Features that the device supports with a format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatProperties {
    /// For images of linear tiling.
    pub linear: F,
    /// For images of optimal tiling.
    pub optimal: F,
    /// For texel buffers.
    pub buffer: F,
}

impl Device {
    /// `vkGetPhysicalDeviceFormatProperties`.
    pub fn format_properties(&self, format: vk::Format) -> FormatProperties {
        properties(format)
    }
}

/// The format that Vulkan's enum names, if it is supported.
pub(crate) fn format_of(format: vk::Format) -> Option<Format> {
    Format::from_vk(format.as_raw())
}

/// Features that every device supports with a format (`vkGetPhysicalDeviceFormatProperties`): none for an unknown
/// format.
pub fn properties(format: vk::Format) -> FormatProperties {
    let Some(known) = format_of(format) else { return FormatProperties::default() };
    let mut image = F::SAMPLED_IMAGE | F::TRANSFER_SRC | F::TRANSFER_DST;
    if known.class() == Class::Float {
        image |= F::SAMPLED_IMAGE_FILTER_LINEAR;
    }
    let mut buffer = F::empty();
    if !known.is_depth() && known.numeric() != Numeric::Srgb {
        buffer |= F::UNIFORM_TEXEL_BUFFER;
    }
    if is_storage(known) {
        image |= F::STORAGE_IMAGE;
        buffer |= F::STORAGE_TEXEL_BUFFER;
    }
    if [Format::R32_UINT, Format::R32_SINT, Format::R32_SFLOAT].contains(&known) {
        image |= F::STORAGE_IMAGE_ATOMIC;
        buffer |= F::STORAGE_TEXEL_BUFFER_ATOMIC;
    }
    FormatProperties { linear: image, optimal: image, buffer }
}

/// Features that some view of a mutable image of this format has (`VK_IMAGE_CREATE_EXTENDED_USAGE_BIT`): views have any
/// format with texels of the same size.
pub fn view_features(format: vk::Format) -> F {
    let Some(known) = format_of(format) else { return F::empty() };
    let all = (1..=LAST_CORE_FORMAT).filter_map(Format::from_vk);
    let has_storage = !known.is_depth() && all.filter(|other| other.bytes() == known.bytes()).any(is_storage);
    let storage = if has_storage { F::STORAGE_IMAGE } else { F::empty() };
    properties(format).optimal | storage
}

/// The last of the formats of Vulkan 1.0, which are numbered from 0.
const LAST_CORE_FORMAT: i32 = vk::Format::ASTC_12X12_SRGB_BLOCK.as_raw();

/// Formats of storage images: those that SPIR-V names, the packed formats with equal texels, and B8G8R8A8_UNORM, which
/// window systems use.
fn is_storage(format: Format) -> bool {
    let channels = format.channels().len();
    let packed = [Format::A2B10G10R10_UNORM_PACK32, Format::A2B10G10R10_UINT_PACK32, Format::B10G11R11_UFLOAT_PACK32];
    let plain = channels != 3 && format.channels().iter().all(|part| part.bits >= 8 && part.bits.is_power_of_two());
    let ordered = format.channels().iter().zip(0..).all(|(part, number)| part.channel == number);
    let numbers =
        matches!(format.numeric(), Numeric::Unorm | Numeric::Snorm | Numeric::Uint | Numeric::Sint | Numeric::Sfloat);
    let depth = format.is_depth() || format.vk() == vk::Format::S8_UINT.as_raw();
    packed.contains(&format) || format == Format::B8G8R8A8_UNORM || plain && ordered && numbers && !depth
}
