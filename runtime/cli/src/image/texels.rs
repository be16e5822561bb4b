//! Texels from patterns and pictures, in the encoding of a format.

use spelter_shaders::image::{Class, Format, Numeric, decode, encode};

use super::format::name;
use super::{Contents, Picture};

/// The width of the squares of a checkerboard, in texels.
const SQUARE: u32 = 8;

/// The texels of a level in the order of memory, from a pattern: slice by slice, or layer by layer.
pub(crate) fn of_pattern(format: Format, size: [u32; 3], pattern: &Contents) -> Vec<u8> {
    let [width, height, slices] = size;
    let mut bytes = Vec::with_capacity(format.bytes() as usize * size.map(|n| n as usize).iter().product::<usize>());
    for z in 0..slices {
        for y in 0..height {
            for x in 0..width {
                let texel = match pattern {
                    Contents::Zeros | Contents::File(_) => [0; 4],
                    Contents::Gradient => gradient(format.class(), [x, y, z], size),
                    Contents::Checker => checker(format.class(), [x, y, z]),
                };
                let raw = if *pattern == Contents::Zeros { [0; 4] } else { encode(format, texel) };
                put(&mut bytes, format, raw);
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, format: Format, raw: [u32; 4]) {
    bytes.extend(raw.iter().flat_map(|word| word.to_le_bytes()).take(format.bytes() as usize));
}

fn gradient(class: Class, at: [u32; 3], size: [u32; 3]) -> [u32; 4] {
    if class != Class::Float {
        return [at[0], at[1], at[2], 1];
    }
    let part = |axis: usize| (at[axis] as f32 / (size[axis].max(2) - 1) as f32).to_bits();
    [part(0), part(1), part(2), 1f32.to_bits()]
}

fn checker(class: Class, at: [u32; 3]) -> [u32; 4] {
    let one = if class == Class::Float { 1f32.to_bits() } else { 1 };
    let odd = at.iter().map(|n| n / SQUARE).sum::<u32>() % 2;
    [odd * one, odd * one, odd * one, one]
}

/// The texels of a picture. Codes of the picture become the same codes of integer formats, and codes divided by the
/// largest one for others; formats with an sRGB encoding keep the codes, since pictures have that encoding.
///
/// # Errors
///
/// If an integer format cannot hold the picture's codes.
pub(crate) fn of_picture(format: Format, picture: &Picture) -> Result<Vec<u8>, String> {
    let largest = u32::MAX >> (32 - picture.bits);
    if format.class() != Class::Float {
        let sign = u8::from(format.class() == Class::Sint);
        let min_bits = format.channels().iter().map(|channel| channel.bits - sign).min().unwrap_or(0);
        if u32::from(min_bits) < picture.bits {
            let format = name(format);
            return Err(format!("{format} cannot hold the codes 0 to {largest} of the picture's channels"));
        }
    }
    let float = |code: u16| (f32::from(code) / largest as f32).to_bits();
    let linear = |[r, g, b, a]: [u16; 4]| {
        let eight = [r, g, b, a].map(|code| u32::from(code) >> (picture.bits - 8));
        let raw = eight[0] | eight[1] << 8 | eight[2] << 16 | eight[3] << 24;
        decode(Format::R8G8B8A8_SRGB, [raw, 0, 0, 0])
    };
    let mut bytes = Vec::with_capacity(picture.pixels.len() * format.bytes() as usize);
    for &pixel in &picture.pixels {
        let texel = match (format.class(), format.numeric()) {
            (Class::Uint | Class::Sint, _) => pixel.map(u32::from),
            (Class::Float, Numeric::Srgb) => linear(pixel),
            (Class::Float, _) => pixel.map(float),
        };
        put(&mut bytes, format, encode(format, texel));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let gradient = of_pattern(Format::R8G8B8A8_UNORM, [2, 2, 1], &Contents::Gradient);
        assert_eq!(gradient, [0, 0, 0, 255, 255, 0, 0, 255, 0, 255, 0, 255, 255, 255, 0, 255]);
        assert_eq!(of_pattern(Format::R8_UINT, [3, 1, 2], &Contents::Gradient), [0, 1, 2, 0, 1, 2]);
        let checker = of_pattern(Format::R8_UNORM, [16, 1, 1], &Contents::Checker);
        assert_eq!(checker, [[0; 8], [255; 8]].concat());
        assert_eq!(of_pattern(Format::R16_SFLOAT, [2, 1, 1], &Contents::Zeros), [0; 4]);
    }

    #[test]
    fn pictures_keep_their_codes() {
        let picture = Picture { size: [1, 1], bits: 8, pixels: vec![[10, 200, 30, 128]] };
        for format in [Format::R8G8B8A8_UNORM, Format::R8G8B8A8_SRGB, Format::R8G8B8A8_UINT] {
            assert_eq!(of_picture(format, &picture), Ok(vec![10, 200, 30, 128]), "{format:?}");
        }
        assert_eq!(of_picture(Format::B8G8R8A8_UNORM, &picture), Ok(vec![30, 200, 10, 128]));
        assert_eq!(of_picture(Format::R32_SFLOAT, &picture), Ok((10f32 / 255.0).to_le_bytes().to_vec()));
        assert!(of_picture(Format::R8G8B8A8_SINT, &picture).is_err());
        assert_eq!(of_picture(Format::R16_SINT, &picture), Ok(vec![10, 0]));
    }
}
