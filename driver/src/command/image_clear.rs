//! `vkCmdClearColorImage`: fills images with one color.

use std::sync::Arc;

use ash::vk;
use spelter_shaders::image::{Class, encode};

use super::CommandBuffer;
use super::image::texel_box;
use crate::error::{Error, Misuse, require};
use crate::exec::{ClearWork, Work};
use crate::resource::{Image, ImageRules};

const AT: &str = "vkCmdClearColorImage";

const CLEAR: ImageRules = ImageRules {
    at: "image",
    usage: vk::ImageUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdClearColorImage-image-00002",
    memory_vuid: "VUID-vkCmdClearColorImage-image-00003",
    parent_vuid: "VUID-vkCmdClearColorImage-commonparent",
};

/// A color (`VkClearColorValue`): red, green, blue, alpha, in the image's numeric class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClearColor {
    /// For formats that shaders read as floats.
    Float([f32; 4]),
    /// For signed integers.
    Sint([i32; 4]),
    /// For unsigned integers.
    Uint([u32; 4]),
}

impl ClearColor {
    /// The numeric class of its components.
    pub fn class(&self) -> Class {
        match self {
            Self::Float(_) => Class::Float,
            Self::Sint(_) => Class::Sint,
            Self::Uint(_) => Class::Uint,
        }
    }

    fn bits(self) -> [u32; 4] {
        match self {
            Self::Float(values) => values.map(f32::to_bits),
            Self::Sint(values) => values.map(i32::cast_unsigned),
            Self::Uint(values) => values,
        }
    }
}

impl CommandBuffer {
    /// `vkCmdClearColorImage`: fills levels and layers of an image with a color. A color of another class than the
    /// image's is stored bit for bit.
    pub fn clear_color_image(
        &self,
        image: &Image,
        color: ClearColor,
        ranges: &[vk::ImageSubresourceRange],
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(AT, "VUID-vkCmdClearColorImage-commandBuffer-recording")?;
        let target = image.checked(&recorder.device, &CLEAR)?;
        require(!image.format().is_depth(), AT, "VUID-vkCmdClearColorImage-image-00007", || {
            format!("the format {:?} has depth, not colour", image.info().format)
        })?;
        require(!ranges.is_empty(), AT, "VUID-vkCmdClearColorImage-rangeCount-arraylength", || {
            "rangeCount is 0".into()
        })?;
        let ranges = ranges.iter().map(|range| check_range(image, range)).collect::<Result<Vec<_>, _>>()?;
        let texel = texel(image, color);
        let all = ranges.into_iter().flat_map(|(levels, layers)| levels.map(move |level| (level, layers)));
        recorder.add_regions(all.map(|(level, layers)| {
            let size = image.extent().level(level);
            let texels = texel_box(image, level, layers, [0; 3], size);
            let row: Arc<[u8]> = texel.repeat(size[0] as usize).into();
            Work::Clear(Box::new(ClearWork { to: texels.grid, row }))
        }));
        recorder.keep(&target.allocation);
        Ok(())
    }
}

/// The bytes of one texel of that color.
fn texel(image: &Image, color: ClearColor) -> Vec<u8> {
    let format = image.format();
    let raw = encode(format, color.bits());
    raw.iter().flat_map(|word| word.to_le_bytes()).take(format.bytes() as usize).collect()
}

/// The levels, and the first layer and number of layers.
fn check_range(image: &Image, range: &vk::ImageSubresourceRange) -> Result<(std::ops::Range<u32>, [u32; 2]), Misuse> {
    let info = image.info();
    let (level, layer) = (range.base_mip_level, range.base_array_layer);
    require(level < info.levels, AT, "VUID-vkCmdClearColorImage-baseMipLevel-01470", || {
        format!("baseMipLevel {level} of {}", info.levels)
    })?;
    let left = info.levels - level;
    let levels = if range.level_count == vk::REMAINING_MIP_LEVELS { left } else { range.level_count };
    require(levels <= left, AT, "VUID-vkCmdClearColorImage-pRanges-01692", || {
        format!("{levels} levels from {level}, of {}", info.levels)
    })?;
    require(layer < info.layers, AT, "VUID-vkCmdClearColorImage-baseArrayLayer-01472", || {
        format!("baseArrayLayer {layer} of {}", info.layers)
    })?;
    let left = info.layers - layer;
    let layers = if range.layer_count == vk::REMAINING_ARRAY_LAYERS { left } else { range.layer_count };
    require(layers <= left, AT, "VUID-vkCmdClearColorImage-pRanges-01693", || {
        format!("{layers} layers from {layer}, of {}", info.layers)
    })?;
    Ok((level..level + levels, [layer, layers]))
}
