//! `SAMPLER`.

use spelter_driver::{SamplerInfo, vk};

use super::{Parser, declare};
use crate::amber::Stop;
use crate::amber::text::Word;

impl Parser<'_> {
    pub(super) fn sampler(&mut self) -> Result<(), Stop> {
        let name = self.cursor.expect("the sampler's name")?;
        // The defaults of AmberScript differ from Vulkan's.
        let mut info =
            SamplerInfo { address_modes: [vk::SamplerAddressMode::REPEAT; 3], max_lod: 1.0, ..SamplerInfo::default() };
        let (mut compares, mut compare) = (false, vk::CompareOp::NEVER);
        while let Some(word) = self.cursor.word() {
            match word.text {
                "MAG_FILTER" => info.mag_filter = self.one_of(&FILTERS)?,
                "MIN_FILTER" => info.min_filter = self.one_of(&FILTERS)?,
                "ADDRESS_MODE_U" => info.address_modes[0] = self.one_of(&ADDRESS_MODES)?,
                "ADDRESS_MODE_V" => info.address_modes[1] = self.one_of(&ADDRESS_MODES)?,
                "ADDRESS_MODE_W" => info.address_modes[2] = self.one_of(&ADDRESS_MODES)?,
                "BORDER_COLOR" => info.border_color = self.one_of(&BORDER_COLORS)?,
                "MIN_LOD" => info.min_lod = self.number("a level of detail")?.real() as f32,
                "MAX_LOD" => info.max_lod = self.number("a level of detail")?.real() as f32,
                "NORMALIZED_COORDS" => info.unnormalized_coordinates = false,
                "UNNORMALIZED_COORDS" => info.unnormalized_coordinates = true,
                "COMPARE" => compares = self.switch()?,
                "COMPARE_OP" => compare = self.one_of(&COMPARE_OPS)?,
                text => return Err(word.fail(format!("unexpected `{text}` in a sampler"))),
            }
        }
        if info.unnormalized_coordinates {
            (info.min_lod, info.max_lod) = (0.0, 0.0);
        }
        info.compare = compares.then_some(compare);
        declare(&mut self.names.samplers, "sampler", name, self.script.samplers.len())?;
        self.script.samplers.push(info);
        Ok(())
    }

    /// The value for a name in a list.
    fn one_of<T: Copy>(&mut self, list: &[(&str, T)]) -> Result<T, Stop> {
        let names = || list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let word: Word<'_> = self.cursor.expect("a name")?;
        let found = list.iter().find(|(name, _)| *name == word.text).map(|(_, value)| *value);
        found.ok_or_else(|| word.fail(format!("expected one of {}, found `{}`", names(), word.text)))
    }
}

const FILTERS: [(&str, vk::Filter); 2] = [("nearest", vk::Filter::NEAREST), ("linear", vk::Filter::LINEAR)];

const ADDRESS_MODES: [(&str, vk::SamplerAddressMode); 5] = [
    ("repeat", vk::SamplerAddressMode::REPEAT),
    ("mirrored_repeat", vk::SamplerAddressMode::MIRRORED_REPEAT),
    ("clamp_to_edge", vk::SamplerAddressMode::CLAMP_TO_EDGE),
    ("clamp_to_border", vk::SamplerAddressMode::CLAMP_TO_BORDER),
    ("mirrored_clamp_to_edge", vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE),
];

const BORDER_COLORS: [(&str, vk::BorderColor); 6] = [
    ("float_transparent_black", vk::BorderColor::FLOAT_TRANSPARENT_BLACK),
    ("int_transparent_black", vk::BorderColor::INT_TRANSPARENT_BLACK),
    ("float_opaque_black", vk::BorderColor::FLOAT_OPAQUE_BLACK),
    ("int_opaque_black", vk::BorderColor::INT_OPAQUE_BLACK),
    ("float_opaque_white", vk::BorderColor::FLOAT_OPAQUE_WHITE),
    ("int_opaque_white", vk::BorderColor::INT_OPAQUE_WHITE),
];

const COMPARE_OPS: [(&str, vk::CompareOp); 8] = [
    ("never", vk::CompareOp::NEVER),
    ("less", vk::CompareOp::LESS),
    ("equal", vk::CompareOp::EQUAL),
    ("less_or_equal", vk::CompareOp::LESS_OR_EQUAL),
    ("greater", vk::CompareOp::GREATER),
    ("not_equal", vk::CompareOp::NOT_EQUAL),
    ("greater_or_equal", vk::CompareOp::GREATER_OR_EQUAL),
    ("always", vk::CompareOp::ALWAYS),
];
