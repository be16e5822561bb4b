//! Lines, dots and texts on a picture, with smooth edges.

use super::font::{self, HEIGHT, WIDTH};
use crate::rgb_picture::RgbPicture;

/// Red, green and blue.
pub(super) type Rgb = [u8; 3];

/// A white picture to draw on.
pub(super) struct Canvas {
    picture: RgbPicture,
}

/// How a text lies at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        let bytes = vec![255; width as usize * height as usize * 3];
        Self { picture: RgbPicture { width, height, bytes } }
    }

    pub(super) fn picture(self) -> RgbPicture {
        self.picture
    }

    /// Mixes a color into a pixel; a pixel outside of the picture is left out.
    fn blend(&mut self, x: i64, y: i64, color: Rgb, alpha: f64) {
        let (width, height) = (i64::from(self.picture.width), i64::from(self.picture.height));
        if !(0..width).contains(&x) || !(0..height).contains(&y) {
            return;
        }
        let at = (y * width + x) as usize * 3;
        for (channel, own) in self.picture.bytes[at..at + 3].iter_mut().zip(color) {
            *channel = (f64::from(*channel) * (1.0 - alpha) + f64::from(own) * alpha).round() as u8;
        }
    }

    /// A line of a width; with `dash`, in pieces of this many pixels.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, color: Rgb, dash: Option<f64>) {
        let ((x0, y0), (x1, y1)) = (from, to);
        let (dx, dy) = (x1 - x0, y1 - y0);
        let length = dx.hypot(dy).max(1e-9);
        let reach = width / 2.0 + 1.0;
        let columns = (x0.min(x1) - reach).floor() as i64..=(x0.max(x1) + reach).ceil() as i64;
        for x in columns {
            for y in (y0.min(y1) - reach).floor() as i64..=(y0.max(y1) + reach).ceil() as i64 {
                let (px, py) = (x as f64 + 0.5 - x0, y as f64 + 0.5 - y0);
                let along = ((px * dx + py * dy) / length).clamp(0.0, length);
                if dash.is_some_and(|dash| (along / dash) as i64 % 2 == 1) {
                    continue;
                }
                let distance = (px - along * dx / length).hypot(py - along * dy / length);
                let alpha = (width / 2.0 + 0.5 - distance).clamp(0.0, 1.0);
                if alpha > 0.0 {
                    self.blend(x, y, color, alpha);
                }
            }
        }
    }

    /// A filled circle.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, color: Rgb) {
        self.line(at, at, radius * 2.0, color, None);
    }

    /// A text of one line, its upper edge at `at`, in letters of `scale` times five by seven pixels.
    pub(super) fn text(&mut self, (x, y): (f64, f64), text: &str, align: Align, scale: usize, color: Rgb) {
        let advance = (WIDTH + 1) * scale;
        let width = (text.chars().count() * advance) as f64;
        let start = match align {
            Align::Left => x,
            Align::Center => x - width / 2.0,
            Align::Right => x - width,
        };
        for (number, c) in text.chars().enumerate() {
            let (left, rows) = (start.round() as i64 + (number * advance) as i64, font::glyph(c));
            for (row, column) in (0..HEIGHT * scale).flat_map(|row| (0..WIDTH * scale).map(move |column| (row, column)))
            {
                if rows[row / scale] >> (WIDTH - 1 - column / scale) & 1 == 1 {
                    self.blend(left + column as i64, y.round() as i64 + row as i64, color, 1.0);
                }
            }
        }
    }
}
