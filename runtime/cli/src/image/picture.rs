//! Pictures: PNG files to pixels, and texels to PNG files.

use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::path::Path;

use spelter_shaders::image::{Class, Format, Numeric, decode};

use super::format::name;
use crate::failure::Failure;
use crate::file;

/// The largest PNG file, and the largest picture in memory, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// A picture: red, green, blue and alpha of each pixel, row by row from the top.
#[derive(Debug)]
pub(crate) struct Picture {
    /// Width and height.
    pub(crate) size: [u32; 2],
    /// Bits of a code: 8 or 16.
    pub(crate) bits: u32,
    /// Codes. Grey is equal in red, green and blue; without alpha it is the largest code.
    pub(crate) pixels: Vec<[u16; 4]>,
}

impl Picture {
    /// Reads a PNG file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = file::read(path, MAX_BYTES)?;
        decoded(&bytes).map_err(|problem| Failure::file(path, format!("not a PNG that can be read: {problem}")))
    }
}

fn decoded(file: &[u8]) -> Result<Picture, String> {
    let limits = png::Limits { bytes: MAX_BYTES as usize };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let size = reader.output_buffer_size().filter(|&size| size as u64 <= MAX_BYTES);
    let mut bytes = vec![0; size.ok_or("the picture is too large")?];
    let frame = reader.next_frame(&mut bytes).map_err(|error| error.to_string())?;
    bytes.truncate(frame.buffer_size());
    let bits = if frame.bit_depth == png::BitDepth::Sixteen { 16 } else { 8 };
    let each = frame.color_type.samples();
    let opaque = if bits == 16 { u16::MAX } else { u16::from(u8::MAX) };
    let pixels = bytes.chunks_exact(each * bits as usize / 8).map(|pixel| {
        // Codes of 16 bits begin with their high byte.
        let code = |at: usize| match bits {
            16 => u16::from(pixel[2 * at]) << 8 | u16::from(pixel[2 * at + 1]),
            _ => u16::from(pixel[at]),
        };
        match each {
            1 => [code(0), code(0), code(0), opaque],
            2 => [code(0), code(0), code(0), code(1)],
            3 => [code(0), code(1), code(2), opaque],
            _ => [code(0), code(1), code(2), code(3)],
        }
    });
    Ok(Picture { size: [frame.width, frame.height], bits, pixels: pixels.collect() })
}

/// Whether values outside of 0 to 1 were clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clamped(pub(crate) bool);

/// Writes texels as a PNG file: formats of one channel as grey, of two or three as RGB, of four as RGBA. Integers and
/// unsigned normalized values of up to 8 bits have codes of 8 bits; all others, signed normalized values too, have
/// codes of 16 bits. Floats and normalized values are clamped to 0 to 1.
///
/// # Errors
///
/// If an integer has no code, since it is negative or too large, or if the file cannot be written.
pub(crate) fn save(path: &Path, format: Format, [width, height]: [u32; 2], texels: &[u8]) -> Result<Clamped, Failure> {
    let wrong = |problem: String| Failure::file(path, problem);
    let widest = format.channels().iter().map(|channel| channel.bits).max().unwrap_or(8);
    let eight = widest <= 8 && format.numeric() != Numeric::Snorm;
    let channels =
        format.channels().iter().map(|channel| channel.channel).filter(|channel| *channel < 4).max().unwrap_or(0);
    let (color, shown) = match channels {
        0 => (png::ColorType::Grayscale, 1),
        1 | 2 => (png::ColorType::Rgb, 3),
        _ => (png::ColorType::Rgba, 4),
    };
    let mut bytes = Vec::with_capacity(width as usize * height as usize * shown * 2);
    let mut clamped = Clamped(false);
    for texel in texels.chunks_exact(format.bytes().max(1) as usize) {
        let mut raw = [0; 4];
        texel.iter().enumerate().for_each(|(at, &byte)| raw[at / 4] |= u32::from(byte) << (at % 4 * 8));
        for value in coded(format, raw).into_iter().take(shown) {
            let code = code(format, value, eight, &mut clamped).map_err(wrong)?;
            match eight {
                true => bytes.push(code as u8),
                false => bytes.extend(code.to_be_bytes()),
            }
        }
    }
    let file = File::create(path).map_err(|error| Failure::file(path, error))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_color(color);
    encoder.set_depth(if eight { png::BitDepth::Eight } else { png::BitDepth::Sixteen });
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&bytes)?;
        writer.finish()
    });
    written.map(|()| clamped).map_err(|error| Failure::file(path, error))
}

/// The components of a texel. Those of an sRGB encoding stay encoded, as in a picture.
fn coded(format: Format, raw: [u32; 4]) -> [u32; 4] {
    if format.numeric() != Numeric::Srgb {
        return decode(format, raw);
    }
    let mut texel = [0, 0, 0, 1f32.to_bits()];
    for channel in format.channels() {
        let code = raw[0] >> channel.shift & 0xff;
        texel[usize::from(channel.channel)] = (code as f32 / 255.0).to_bits();
    }
    texel
}

fn code(format: Format, value: u32, eight: bool, clamped: &mut Clamped) -> Result<u16, String> {
    let max_code = if eight { u16::from(u8::MAX) } else { u16::MAX };
    match format.class() {
        Class::Float => {
            let value = f32::from_bits(value);
            clamped.0 |= !(0.0..=1.0).contains(&value);
            // A NaN becomes 0.
            Ok((value.clamp(0.0, 1.0) * f32::from(max_code)).round() as u16)
        }
        Class::Uint | Class::Sint => u16::try_from(value).ok().filter(|code| *code <= max_code).ok_or_else(|| {
            let shown = match format.class() {
                Class::Sint => value.cast_signed().to_string(),
                _ => value.to_string(),
            };
            let format = name(format);
            format!("a PNG has codes from 0 to {max_code}, not the {shown} of a texel in {format}: use another extension for the bytes")
        }),
    }
}
