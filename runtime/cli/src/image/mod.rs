//! Images and samplers of the command line: their options, texels from patterns and files, and pictures.

mod format;
mod picture;
mod sampler;
mod source;
mod texels;

pub(crate) use picture::Clamped;
pub(crate) use sampler::SamplerOptions;
pub(crate) use source::{Contents, Source};

use spelter::vk;
use spelter_shaders::image::Format;

pub(crate) use format::{name as format_name, parse as format};
pub(crate) use picture::{Picture, save};
pub(crate) use texels::{of_pattern, of_picture};

/// The Vulkan format with the same number.
pub(crate) fn vulkan(format: Format) -> vk::Format {
    vk::Format::from_raw(format.vk())
}

/// The format of an image that the device supports.
pub(crate) fn known(format: vk::Format) -> Option<Format> {
    Format::from_vk(format.as_raw())
}
