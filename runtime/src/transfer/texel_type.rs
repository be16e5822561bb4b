//! Types of values that hold texels: an image of unsigned integers that is read as floats is a mistake, not data.

use std::any::type_name;

use spelter_shaders::image::{Format, Numeric};

use crate::error::{Error, rule};
use crate::image::Image;
use crate::layout::{ScalarType, scalar_of};

/// Checks that `T` can hold texels of an image, or parts of them. Its size divides that of a texel or is a multiple of
/// it. If it consists of numbers, these have the type of the format's channels, or are unsigned integers with the bits
/// of a channel or of a whole texel, or bytes. Of other types, such as structs, only the size is checked.
pub(super) fn check_texel_type<T>(what: &str, image: &Image) -> Result<(), Error> {
    let vk_format = image.info().format;
    let Some(format) = Format::from_vk(vk_format.as_raw()) else { return Ok(()) };
    let (size, texel) = (size_of::<T>() as u64, u64::from(format.bytes()));
    let fits = size > 0 && texel > 0 && (size.is_multiple_of(texel) || texel.is_multiple_of(size));
    let problem = if !fits {
        format!("of {size} bytes for texels of {texel} bytes")
    } else if scalar_of::<T>().is_some_and(|scalar| !holds(scalar, format)) {
        "for texels".to_owned()
    } else {
        return Ok(());
    };
    let (of, ty) = (image.resource().described(), type_name::<T>());
    Err(Error::range(format!("{what}: values of `{ty}` {problem} of {vk_format:?} of {of}"), rule::TEXEL))
}

/// Whether numbers of this type hold channels of the format, or their bits.
fn holds(scalar: ScalarType, format: Format) -> bool {
    let channels = format.channels();
    let first = channels.first().map_or(0, |channel| u32::from(channel.bits));
    // The bits of each channel, if all have as many: otherwise texels are packed.
    let bits = channels.iter().all(|channel| u32::from(channel.bits) == first).then_some(first);
    match scalar {
        ScalarType::Uint(wanted) => wanted == 8 || wanted == format.bytes() * 8 || bits == Some(wanted),
        ScalarType::Int(wanted) => {
            let signed = matches!(format.numeric(), Numeric::Sint | Numeric::Snorm | Numeric::Sscaled);
            signed && bits == Some(wanted)
        }
        ScalarType::Float(wanted) => format.numeric() == Numeric::Sfloat && bits == Some(wanted),
        ScalarType::Address => false,
    }
}

#[cfg(test)]
mod tests {
    use ash::vk;

    use super::*;

    #[test]
    fn numbers_hold_the_channels_of_their_formats() {
        let of = |format: vk::Format, scalar| holds(scalar, Format::from_vk(format.as_raw()).unwrap());
        use ScalarType::{Float, Int, Uint};
        use vk::Format as F;
        for (format, held) in [
            (F::R32_SFLOAT, &[Float(32), Uint(32), Uint(8)][..]),
            (F::R32G32B32A32_SFLOAT, &[Float(32), Uint(32), Uint(8)]),
            (F::R16G16_SFLOAT, &[Float(16), Uint(16), Uint(32), Uint(8)]),
            (F::R8G8B8A8_UNORM, &[Uint(8), Uint(32)]),
            (F::R8G8B8A8_SINT, &[Uint(8), Uint(32), Int(8)]),
            (F::R32_UINT, &[Uint(8), Uint(32)]),
            (F::R16_SNORM, &[Uint(8), Uint(16), Int(16)]),
            (F::A2B10G10R10_UNORM_PACK32, &[Uint(8), Uint(32)]),
            (F::D32_SFLOAT, &[Float(32), Uint(32), Uint(8)]),
        ] {
            for bits in [8, 16, 32, 64] {
                for scalar in [Uint(bits), Int(bits), Float(bits)] {
                    assert_eq!(of(format, scalar), held.contains(&scalar), "{format:?} {scalar}");
                }
            }
        }
    }
}
