//! Names of formats: those of WGSL and WebGPU (`rgba8unorm`), and Vulkan's (`R8G8B8A8_UNORM`).

use spelter_shaders::image::{Format, Numeric};

use super::vulkan;

/// The format with that name.
pub(crate) fn parse(text: &str) -> Result<Format, String> {
    let vulkans = text.strip_prefix("VK_FORMAT_").unwrap_or(text);
    let found = Format::all()
        .find(|&format| short(format).is_some_and(|name| name == text) || format!("{:?}", vulkan(format)) == vulkans);
    found.ok_or_else(|| {
        format!(
            "{text:?} is not a format: use a name of WGSL or Vulkan for an uncompressed format, such as rgba8unorm, \
             r32float, depth32float or R8G8B8A8_UNORM"
        )
    })
}

/// The name for messages: WGSL's if there is one.
pub(crate) fn name(format: Format) -> String {
    short(format).unwrap_or_else(|| format!("{:?}", vulkan(format)))
}

/// The name in the manner of WGSL; `None` for formats whose channels have no order of bytes or words.
fn short(format: Format) -> Option<String> {
    match (format, format.channels()) {
        (Format::D16_UNORM, _) => return Some("depth16unorm".to_owned()),
        (Format::D32_SFLOAT, _) => return Some("depth32float".to_owned()),
        (Format::X8_D24_UNORM_PACK32, _) => return None,
        (Format::B10G11R11_UFLOAT_PACK32, _) => return Some("rg11b10ufloat".to_owned()),
        (Format::E5B9G9R9_UFLOAT_PACK32, _) => return Some("rgb9e5ufloat".to_owned()),
        _ => {}
    }
    let channels = format.channels();
    let letters: String = channels.iter().filter_map(|channel| "rgba".chars().nth(channel.channel.into())).collect();
    let bits: Vec<u8> = channels.iter().map(|channel| channel.bits).collect();
    let numeric = match format.numeric() {
        Numeric::Unorm => "unorm",
        Numeric::Snorm => "snorm",
        Numeric::Uscaled => "uscaled",
        Numeric::Sscaled => "sscaled",
        Numeric::Uint => "uint",
        Numeric::Sint => "sint",
        Numeric::Srgb => "unorm-srgb",
        Numeric::Sfloat => "float",
        Numeric::Ufloat | Numeric::SharedExponent => return None,
    };
    match bits[..] {
        [10, 10, 10, 2] => Some(format!("{}10a2{numeric}", &letters[..3])),
        [first, ..] if [8, 16, 32].contains(&first) && bits.iter().all(|&bits| bits == first) => {
            Some(format!("{letters}{first}{numeric}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_wgsl_and_of_vulkan() {
        for (name, format) in [
            ("rgba8unorm", Format::R8G8B8A8_UNORM),
            ("bgra8unorm-srgb", Format::B8G8R8A8_SRGB),
            ("r32float", Format::R32_SFLOAT),
            ("rg16sint", Format::R16G16_SINT),
            ("rgb10a2uint", Format::A2B10G10R10_UINT_PACK32),
            ("rg11b10ufloat", Format::B10G11R11_UFLOAT_PACK32),
            ("depth32float", Format::D32_SFLOAT),
            ("R8G8B8A8_UNORM", Format::R8G8B8A8_UNORM),
            ("VK_FORMAT_R5G6B5_UNORM_PACK16", Format::R5G6B5_UNORM_PACK16),
        ] {
            assert_eq!(parse(name), Ok(format), "{name}");
        }
        for wrong in ["", "rgba", "rgba9unorm", "RGBA8UNORM", "rgba8", "BC1_RGB_UNORM_BLOCK"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_format_has_a_name_that_reads_back() {
        for format in Format::all() {
            let read = parse(&name(format)).unwrap();
            assert_eq!(
                (read.bytes(), read.numeric(), read.channels()),
                (format.bytes(), format.numeric(), format.channels())
            );
        }
    }
}
