//! `FILE PNG`: the texels of a picture, for formats with 8 bits per channel.

use std::io::Cursor;

use crate::amber::types::Type;

/// The memory limit of the decoder in bytes.
const MAX_BYTES: usize = 1 << 30;

/// A picture as texels of an image: width and height, and the bytes row by row from the top.
pub(super) struct PictureTexels {
    pub(super) size: [u32; 2],
    pub(super) bytes: Vec<u8>,
}

impl PictureTexels {
    /// Decodes a PNG file to texels of a type.
    ///
    /// # Errors
    ///
    /// If the type is not a format with 8 bits per channel, or the file is not a PNG.
    pub(super) fn read(file: &[u8], ty: &Type) -> Result<Self, String> {
        let order = channels(ty).ok_or("a picture fills formats with 8 bits in each channel only")?;
        let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), png::Limits { bytes: MAX_BYTES });
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let size = reader.output_buffer_size().filter(|&size| size <= MAX_BYTES);
        let mut bytes = vec![0; size.ok_or("the picture is too large")?];
        let frame = reader.next_frame(&mut bytes).map_err(|error| error.to_string())?;
        bytes.truncate(frame.buffer_size());
        let rgba = |pixel: &[u8]| match *pixel {
            [grey] => [grey, grey, grey, 255],
            [grey, alpha] => [grey, grey, grey, alpha],
            [red, green, blue] => [red, green, blue, 255],
            [red, green, blue, alpha, ..] => [red, green, blue, alpha],
            [] => [0; 4],
        };
        let pixels = bytes.chunks_exact(frame.color_type.samples()).map(rgba);
        let bytes = pixels.flat_map(|pixel| order.iter().map(move |&channel| pixel[channel])).collect();
        Ok(Self { size: [frame.width, frame.height], bytes })
    }
}

/// The channel (0 to 3 for red, green, blue, alpha) of each byte of a texel.
fn channels(ty: &Type) -> Option<Vec<usize>> {
    let Type::Texel(texel) = ty else { return None };
    let index = |name: char| "RGBA".find(name);
    let bytes =
        texel.bytes() as usize == texel.channels.len() && texel.channels.iter().all(|channel| channel.bits == 8);
    texel.channels.iter().map(|channel| index(channel.name)).collect::<Option<Vec<_>>>().filter(|_| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amber::texel::Texel;

    fn png(color: png::ColorType, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(color);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(data).expect("two pixels");
        writer.finish().expect("an end");
        file
    }

    fn texels(file: &[u8], format: &str) -> Result<Vec<u8>, String> {
        let ty = Type::Texel(Texel::named(format).expect("a format"));
        PictureTexels::read(file, &ty).map(|picture| {
            assert_eq!(picture.size, [2, 1]);
            picture.bytes
        })
    }

    #[test]
    fn channels_are_where_the_format_has_them() {
        let colours = png(png::ColorType::Rgb, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(texels(&colours, "R8G8B8A8_UNORM"), Ok(vec![1, 2, 3, 255, 4, 5, 6, 255]));
        assert_eq!(texels(&colours, "B8G8R8A8_UNORM"), Ok(vec![3, 2, 1, 255, 6, 5, 4, 255]));
        assert_eq!(texels(&colours, "R8G8_UINT"), Ok(vec![1, 2, 4, 5]));
        let greys = png(png::ColorType::GrayscaleAlpha, &[7, 8, 9, 10]);
        assert_eq!(texels(&greys, "R8G8B8A8_SRGB"), Ok(vec![7, 7, 7, 8, 9, 9, 9, 10]));
        assert!(texels(&colours, "R32G32B32A32_SFLOAT").is_err_and(|error| error.contains("8 bits")));
        assert!(texels(&colours[..40], "R8G8B8A8_UNORM").is_err());
        assert!(texels(b"GIF89a", "R8G8B8A8_UNORM").is_err());
    }
}
