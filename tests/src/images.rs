//! Images and samplers of test files: declaration, contents and read-back.
//!
//! | directive | meaning |
//! |---|---|
//! | `image 0.0: 2d r8g8b8a8_unorm 4x2 levels=2 layers=3 swizzle=bgr1` | an image; kinds are `1d`, `2d`, `3d`, `cube` |
//! | `texels 0.1: r32_uint` | the words bound there are a texel buffer |
//! | `sampler 0.2: linear mip=linear repeat border=white lod=0..4 bias=0.5 compare=less unnormalized` | a sampler |
//!
//! `bind` and `expect` of an image have its texels' bytes without gaps: level by level, in each layer by layer, row by
//! row.

use std::ops::Range;

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Compare, Extent, Filter, Format, Layout, Rows, Sampler, Swizzle, TexelView, Wrap};

/// An image as declared by a test.
#[derive(Clone, Copy, Debug)]
pub struct ImageDecl {
    /// Format of the texels.
    pub format: Format,
    /// Its size.
    pub extent: Extent,
    /// Whether it is a 3D image.
    pub volume: bool,
    /// The component mapping.
    pub swizzle: [Swizzle; 4],
}

/// The format with that name, case-insensitive.
pub fn format(name: &str) -> Result<Format, String> {
    let found = Format::NAMED.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
    found.map(|(_, format)| *format).ok_or_else(|| format!("`{name}` is no format with a name"))
}

impl ImageDecl {
    /// Parses the text after `image SLOT:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split_whitespace();
        let kind = parts.next().unwrap_or_default();
        let mut layers = match kind {
            "1d" | "2d" | "3d" => 1,
            "cube" => 6,
            _ => return Err(format!("`{kind}` is not 1d, 2d, 3d or cube")),
        };
        let format = format(parts.next().unwrap_or_default())?;
        let sizes = parts.next().unwrap_or_default();
        let mut size = [1; 3];
        for (to, part) in size.iter_mut().zip(sizes.split('x')) {
            *to = number(part)?;
        }
        let (mut levels, mut swizzle) = (1, Swizzle::IDENTITY);
        for part in parts {
            match part.split_once('=') {
                Some(("levels", count)) => levels = number(count)?,
                Some(("layers", count)) => layers = number(count)?,
                Some(("swizzle", letters)) => swizzle = letters_of(letters)?,
                _ => return Err(format!("`{part}` says nothing about an image")),
            }
        }
        Ok(Self { format, extent: Extent { size, levels, layers }, volume: kind == "3d", swizzle })
    }

    fn layout(&self) -> Result<Layout, String> {
        Layout::new(&self.extent, self.format.bytes(), Rows::Spread).ok_or_else(|| "the image is too large".into())
    }

    /// The rows of texels in order, as ranges of bytes of the image's memory.
    fn rows(&self) -> Result<Vec<Range<u64>>, String> {
        let layout = self.layout()?;
        let mut rows = Vec::new();
        for level in 0..self.extent.levels {
            let [width, height, depth] = self.extent.level(level).map(u64::from);
            let at = layout.levels[level as usize];
            for layer in 0..u64::from(self.extent.layers) {
                for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                    let first = layer * u64::from(layout.layer_pitch)
                        + u64::from(at.offset)
                        + z * u64::from(at.slice_pitch)
                        + y * u64::from(at.row_pitch);
                    rows.push(first..first + width * u64::from(self.format.bytes()));
                }
            }
        }
        Ok(rows)
    }

    /// Memory with those texels, 0 where there are too few, and a view of the whole image.
    pub fn fill(&self, bytes: &[u8]) -> Result<TexelView, String> {
        let layout = self.layout()?;
        let memory = GuestSlice::leak(layout.bytes as usize);
        let mut rest = bytes;
        for row in self.rows()? {
            let (now, later) = rest.split_at(rest.len().min((row.end - row.start) as usize));
            memory.write(row.start, now);
            rest = later;
        }
        if !rest.is_empty() {
            return Err(format!("{} bytes more than the image has", rest.len()));
        }
        let (levels, layers) = ([0, self.extent.levels], [0, self.extent.layers]);
        let view = TexelView::of_image(memory, self.format, &self.extent, &layout, levels, layers, self.volume);
        Ok(TexelView { swizzle: self.swizzle, ..view })
    }

    /// A view of one level of an image that a view shows as a whole.
    pub fn level(&self, whole: &TexelView, level: u32) -> Result<TexelView, String> {
        let (layout, layers) = (self.layout()?, [0, self.extent.layers]);
        Ok(TexelView::of_image(whole.memory, self.format, &self.extent, &layout, [level, 1], layers, self.volume))
    }

    /// The texels' bytes in order.
    pub fn read(&self, memory: GuestSlice) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        for row in self.rows()? {
            let mut texels = vec![0; (row.end - row.start) as usize];
            memory.read(row.start, &mut texels);
            bytes.extend(texels);
        }
        Ok(bytes)
    }
}

/// Parses the text after `sampler SLOT:`.
pub fn sampler(text: &str) -> Result<Sampler, String> {
    let mut sampler = Sampler { max_lod: 1000.0, ..Sampler::DEFAULT };
    for part in text.split_whitespace() {
        match part.split_once('=') {
            None if part == "unnormalized" => sampler.unnormalized = true,
            None => match (filter(part), wrap(part)) {
                (Some(filter), _) => (sampler.mag, sampler.min) = (filter, filter),
                (_, Some(wrap)) => sampler.wrap = [wrap; 3],
                _ => return Err(format!("`{part}` is neither a filter nor an address mode")),
            },
            Some((key, value)) => set(&mut sampler, key, value).ok_or_else(|| format!("`{part}` is no `{key}`"))?,
        }
    }
    Ok(sampler)
}

fn set(sampler: &mut Sampler, key: &str, value: &str) -> Option<()> {
    match key {
        "mag" => sampler.mag = filter(value)?,
        "min" => sampler.min = filter(value)?,
        "mip" => sampler.mip = filter(value)?,
        "bias" => sampler.lod_bias = value.parse().ok()?,
        "lod" => {
            let (low, high) = value.split_once("..")?;
            (sampler.min_lod, sampler.max_lod) = (low.parse().ok()?, high.parse().ok()?);
        }
        "wrap" => {
            for (to, name) in sampler.wrap.iter_mut().zip(value.split(',')) {
                *to = wrap(name)?;
            }
        }
        "border" => {
            let one = 1f32.to_bits();
            sampler.border = match value {
                "transparent" => [0; 4],
                "black" => [0, 0, 0, one],
                "white" => [one; 4],
                "int_black" => [0, 0, 0, 1],
                "int_white" => [1; 4],
                _ => return None,
            };
        }
        "compare" => {
            sampler.compare = match value {
                "never" => Compare::Never,
                "less" => Compare::Less,
                "equal" => Compare::Equal,
                "less_or_equal" => Compare::LessOrEqual,
                "greater" => Compare::Greater,
                "not_equal" => Compare::NotEqual,
                "greater_or_equal" => Compare::GreaterOrEqual,
                "always" => Compare::Always,
                _ => return None,
            };
        }
        _ => return None,
    }
    Some(())
}

fn filter(name: &str) -> Option<Filter> {
    match name {
        "nearest" => Some(Filter::Nearest),
        "linear" => Some(Filter::Linear),
        _ => None,
    }
}

fn wrap(name: &str) -> Option<Wrap> {
    match name {
        "repeat" => Some(Wrap::Repeat),
        "mirrored_repeat" => Some(Wrap::MirroredRepeat),
        "clamp_to_edge" => Some(Wrap::ClampToEdge),
        "clamp_to_border" => Some(Wrap::ClampToBorder),
        "mirror_clamp_to_edge" => Some(Wrap::MirrorClampToEdge),
        _ => None,
    }
}

fn letters_of(letters: &str) -> Result<[Swizzle; 4], String> {
    let mut swizzle = Swizzle::IDENTITY;
    for (to, letter) in swizzle.iter_mut().zip(letters.chars()) {
        *to = match letter {
            'r' => Swizzle::R,
            'g' => Swizzle::G,
            'b' => Swizzle::B,
            'a' => Swizzle::A,
            '0' => Swizzle::Zero,
            '1' => Swizzle::One,
            _ => return Err(format!("`{letter}` is not r, g, b, a, 0 or 1")),
        };
    }
    Ok(swizzle)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| format!("`{text}` is not a number above 0"))
}
