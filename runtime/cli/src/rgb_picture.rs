//! RGB pictures, saved as PNG: those of the gallery, and charts.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::failure::Failure;

/// A picture, row by row from the top, three bytes for each pixel.
pub(crate) struct RgbPicture {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

impl RgbPicture {
    /// Writes the picture as a PNG file.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let file = File::create(path).map_err(|error| Failure::file(path, error))?;
        let mut encoder = png::Encoder::new(BufWriter::new(file), self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let written = encoder.write_header().and_then(|mut writer| {
            writer.write_image_data(&self.bytes)?;
            writer.finish()
        });
        written.map_err(|error| Failure::file(path, error))
    }
}
