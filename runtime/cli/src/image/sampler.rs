//! The value of `--sampler`: words for filters, addressing, comparison and levels of detail.

use std::str::FromStr;

use spelter::{SamplerInfo, vk};

/// The parameters of a sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SamplerOptions(pub(crate) SamplerInfo);

const FILTERS: [(&str, vk::Filter); 2] = [("nearest", vk::Filter::NEAREST), ("linear", vk::Filter::LINEAR)];

const MIP_MODES: [(&str, vk::SamplerMipmapMode); 2] =
    [("nearest", vk::SamplerMipmapMode::NEAREST), ("linear", vk::SamplerMipmapMode::LINEAR)];

const ADDRESSES: [(&str, vk::SamplerAddressMode); 5] = [
    ("clamp", vk::SamplerAddressMode::CLAMP_TO_EDGE),
    ("repeat", vk::SamplerAddressMode::REPEAT),
    ("mirror", vk::SamplerAddressMode::MIRRORED_REPEAT),
    ("mirror-clamp", vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE),
    ("border", vk::SamplerAddressMode::CLAMP_TO_BORDER),
];

const COMPARISONS: [(&str, vk::CompareOp); 8] = [
    ("never", vk::CompareOp::NEVER),
    ("less", vk::CompareOp::LESS),
    ("equal", vk::CompareOp::EQUAL),
    ("less-equal", vk::CompareOp::LESS_OR_EQUAL),
    ("greater", vk::CompareOp::GREATER),
    ("not-equal", vk::CompareOp::NOT_EQUAL),
    ("greater-equal", vk::CompareOp::GREATER_OR_EQUAL),
    ("always", vk::CompareOp::ALWAYS),
];

const BORDERS: [(&str, vk::BorderColor); 5] = [
    ("transparent", vk::BorderColor::FLOAT_TRANSPARENT_BLACK),
    ("black", vk::BorderColor::FLOAT_OPAQUE_BLACK),
    ("white", vk::BorderColor::FLOAT_OPAQUE_WHITE),
    ("int-black", vk::BorderColor::INT_OPAQUE_BLACK),
    ("int-white", vk::BorderColor::INT_OPAQUE_WHITE),
];

/// All words, for messages.
const WORDS: &str = "nearest, linear, mag=FILTER, min=FILTER, mip=FILTER, clamp, repeat, mirror, mirror-clamp, border, \
                     u=MODE, v=MODE, w=MODE, color=COLOR, compare=OP, lod=MIN..MAX, bias=NUMBER, texels";

impl FromStr for SamplerOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut info = SamplerInfo::default();
        let mut states_lod = false;
        for word in text.split(',') {
            let word = word.trim();
            match word.split_once('=') {
                None => plain(word, &mut info)?,
                Some(("lod", range)) => {
                    (info.min_lod, info.max_lod) = lod(range)?;
                    states_lod = true;
                }
                Some((name, value)) => set(name, value, &mut info)?,
            }
        }
        // Unnormalized coordinates allow no other level (VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01074).
        if info.unnormalized_coordinates && !states_lod {
            info.max_lod = 0.0;
        }
        Ok(Self(info))
    }
}

/// A word that is a filter, an address mode or `texels`.
fn plain(word: &str, info: &mut SamplerInfo) -> Result<(), String> {
    if let Some(filter) = find(&FILTERS, word) {
        (info.mag_filter, info.min_filter) = (filter, filter);
    } else if let Some(mode) = find(&ADDRESSES, word) {
        info.address_modes = [mode; 3];
    } else if word == "texels" {
        info.unnormalized_coordinates = true;
    } else {
        return Err(format!("{word:?} is not a word of a sampler: use {WORDS}"));
    }
    Ok(())
}

fn set(name: &str, value: &str, info: &mut SamplerInfo) -> Result<(), String> {
    match name {
        "mag" => info.mag_filter = one_of(name, &FILTERS, value)?,
        "min" => info.min_filter = one_of(name, &FILTERS, value)?,
        "mip" => info.mipmap_mode = one_of(name, &MIP_MODES, value)?,
        "u" => info.address_modes[0] = one_of(name, &ADDRESSES, value)?,
        "v" => info.address_modes[1] = one_of(name, &ADDRESSES, value)?,
        "w" => info.address_modes[2] = one_of(name, &ADDRESSES, value)?,
        "compare" => info.compare = Some(one_of(name, &COMPARISONS, value)?),
        "color" => info.border_color = one_of(name, &BORDERS, value)?,
        "bias" => info.mip_lod_bias = number(value)?,
        _ => return Err(format!("{name:?} is not a parameter of a sampler: use {WORDS}")),
    }
    Ok(())
}

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

fn one_of<T: Copy>(name: &str, table: &[(&str, T)], value: &str) -> Result<T, String> {
    find(table, value).ok_or_else(|| {
        let values: Vec<_> = table.iter().map(|entry| entry.0).collect();
        format!("{name}={value}: use one of {}", values.join(", "))
    })
}

fn lod(range: &str) -> Result<(f32, f32), String> {
    let (min, max) = range.split_once("..").ok_or_else(|| format!("lod={range}: use lod=MIN..MAX"))?;
    let max = if max.is_empty() { vk::LOD_CLAMP_NONE } else { number(max)? };
    Ok((number(min)?, max))
}

fn number(text: &str) -> Result<f32, String> {
    let number = text.parse().ok().filter(|number: &f32| number.is_finite());
    number.ok_or_else(|| format!("{text:?} is not a finite number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let parsed = |text: &str| text.parse::<SamplerOptions>().map(|options| options.0);
        assert_eq!(parsed("nearest"), Ok(SamplerInfo::default()));
        let info = parsed("linear,repeat,v=clamp,mip=linear,lod=1..2.5,bias=-1,compare=less-equal").unwrap();
        assert_eq!((info.mag_filter, info.min_filter), (vk::Filter::LINEAR, vk::Filter::LINEAR));
        let (repeat, clamp) = (vk::SamplerAddressMode::REPEAT, vk::SamplerAddressMode::CLAMP_TO_EDGE);
        assert_eq!(info.address_modes, [repeat, clamp, repeat]);
        assert_eq!((info.min_lod, info.max_lod, info.mip_lod_bias), (1.0, 2.5, -1.0));
        assert_eq!(info.compare, Some(vk::CompareOp::LESS_OR_EQUAL));
        assert_eq!(parsed("texels").unwrap().max_lod, 0.0);
    }

    #[test]
    fn refused() {
        for (text, part) in [
            ("", "\"\" is not a word of a sampler"),
            ("cubic", "\"cubic\" is not a word of a sampler: use nearest, linear"),
            ("mag=cubic", "mag=cubic: use one of nearest, linear"),
            ("size=3", "\"size\" is not a parameter of a sampler"),
            ("compare=<", "compare=<: use one of never, less"),
            ("lod=1", "use lod=MIN..MAX"),
            ("bias=x", "\"x\" is not a finite number"),
            ("bias=inf", "\"inf\" is not a finite number"),
        ] {
            let error = text.parse::<SamplerOptions>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
