//! Filters: texels are loaded, compared, swizzled and mixed.

use super::address::{PLACES, Span, linear, nearest, wrap};
use super::bytes;
use super::codes;
use super::cube;
use super::descriptor::{Compare, Filter, Sampler, TexelView};
use super::format::{Class, Numeric};
use super::texel::{decode, load_raw};
use crate::guest::GuestSlice;

/// How the bytes of texels are loaded.
pub(super) trait Fetch: Copy {
    /// Loads those at an offset in an image's memory.
    fn raw(self, memory: GuestSlice, offset: u64, bytes: u32) -> [u32; 4];
}

/// From memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromMemory;

impl Fetch for FromMemory {
    #[inline(always)]
    fn raw(self, memory: GuestSlice, offset: u64, bytes: u32) -> [u32; 4] {
        load_raw(memory, offset, bytes)
    }
}

/// From memory, telling the offset of each.
#[derive(Clone, Copy)]
pub(super) struct Telling<'a>(pub(super) &'a dyn Fn(u64));

impl Fetch for Telling<'_> {
    fn raw(self, memory: GuestSlice, offset: u64, bytes: u32) -> [u32; 4] {
        (self.0)(offset);
        load_raw(memory, offset, bytes)
    }
}

/// What a sample reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleSource<'a, F> {
    pub(super) fetch: F,
    pub(super) view: &'a TexelView,
    pub(super) sampler: &'a Sampler,
    /// Number of coordinates: 1 to 3.
    pub(super) dims: usize,
    /// The layer; of a cube array, the first layer of the cube.
    pub(super) layer: u32,
    /// A cube's face; coordinates past its edge lie on adjacent faces.
    pub(super) face: Option<u32>,
    /// Reference of a comparison.
    pub(super) reference: Option<f32>,
    /// Whether texels are loaded as codes, for linear filters.
    pub(super) codes: bool,
}

/// A texel as the shader sees it: the bits of floats or integers.
pub(super) type Texel = [u32; 4];

impl<F: Fetch> SampleSource<'_, F> {
    /// The value 1 in the texels' class.
    fn one(&self) -> u32 {
        if self.view.format.class() == Class::Float { 1f32.to_bits() } else { 1 }
    }

    /// A texel of the view; 0 outside the view.
    pub(super) fn load(&self, level: u32, at: [u32; 3], layer: u32) -> Texel {
        let (view, bytes) = (self.view, self.view.format.bytes());
        let raw = match view.texel(level, at, layer) {
            Some(offset) => self.fetch.raw(view.memory, offset, bytes),
            None => [0; 4],
        };
        if self.codes {
            return codes::of_texel(view.format, raw).map(f32::to_bits);
        }
        self.seen(decode(view.format, raw))
    }

    /// Applies the comparison and the swizzle.
    fn seen(&self, texel: Texel) -> Texel {
        let texel = match self.reference {
            None => texel,
            Some(reference) => {
                let holds = compare(self.sampler.compare, self.clamped(reference), f32::from_bits(texel[0]));
                [if holds { 1f32.to_bits() } else { 0 }, 0, 0, 1f32.to_bits()]
            }
        };
        let one = self.one();
        self.view.swizzle.map(|swizzle| swizzle.of(texel, one))
    }

    /// The reference, clamped to the range of normalised formats.
    fn clamped(&self, reference: f32) -> f32 {
        if self.view.format.numeric() == Numeric::Unorm { reference.clamp(0.0, 1.0) } else { reference }
    }

    /// The border colour, reduced to the format's channels like a texel ("Texel Replacement", then "Conversion to
    /// RGBA").
    fn border(&self) -> Texel {
        let parts = self.view.format.channels();
        let mut texel = [0, 0, 0, self.one()];
        for part in parts.iter().filter(|part| part.channel < 4) {
            texel[usize::from(part.channel)] = self.sampler.border[usize::from(part.channel)];
        }
        if self.codes {
            return codes::encode(self.view.format, texel.map(f32::from_bits)).map(f32::to_bits);
        }
        self.seen(texel)
    }

    /// The texel at integer coordinates that may be outside the image.
    fn wrapped(&self, level: u32, at: [i32; 3]) -> Texel {
        let size = self.view.level_size(level);
        if let Some(face) = self.face {
            return match cube::seamless(face, at[0], at[1], size[0]) {
                Some((face, x, y)) => self.load(level, [x, y, 0], self.layer + face),
                None => self.corner(level, face, at, size[0]),
            };
        }
        let mut texel = [0; 3];
        for dim in 0..self.dims {
            match wrap(self.sampler.wrap[dim], at[dim], size[dim]) {
                Some(place) => texel[dim] = place,
                None => return self.border(),
            }
        }
        self.load(level, texel, self.layer)
    }

    /// Three texels meet at a cube's corner: their mean.
    fn corner(&self, level: u32, face: u32, at: [i32; 3], size: u32) -> Texel {
        let max = size.cast_signed() - 1;
        let [x, y] = [at[0].clamp(0, max), at[1].clamp(0, max)];
        let [a, b, c] = [[x, y], [at[0], y], [x, at[1]]].map(|[x, y]| self.fetch_near(level, face, x, y, size));
        let mean = |k: usize| (f32::from_bits(a[k]) + f32::from_bits(b[k]) + f32::from_bits(c[k])) / 3.0;
        if self.view.format.class() == Class::Float { [0, 1, 2, 3].map(|k| mean(k).to_bits()) } else { a }
    }

    fn fetch_near(&self, level: u32, face: u32, x: i32, y: i32, size: u32) -> Texel {
        match cube::seamless(face, x, y, size) {
            Some((face, x, y)) => self.load(level, [x, y, 0], self.layer + face),
            None => [0; 4],
        }
    }

    /// The size of a level in texels: converts normalised coordinates.
    fn scale(&self, level: u32) -> [f32; 3] {
        if self.sampler.unnormalized { [1.0; 3] } else { self.view.level_size(level).map(|size| size as f32) }
    }

    /// Samples one level.
    pub(super) fn sample(&self, filter: Filter, level: u32, coordinates: [f32; 3], offset: [i32; 3]) -> Texel {
        let scale = self.scale(level);
        if filter == Filter::Nearest || self.view.format.class() != Class::Float {
            let size = self.view.level_size(level);
            let near = [0, 1, 2].map(|dim| {
                let texel = nearest(coordinates[dim] * scale[dim], offset[dim]);
                // Nearest coordinates on a cube's face stay on it.
                if self.face.is_some() { texel.clamp(0, size[dim].cast_signed() - 1) } else { texel }
            });
            return self.wrapped(level, near);
        }
        let spans = |middle| [0, 1, 2].map(|dim| linear(coordinates[dim], scale[dim], middle, offset[dim]));
        if self.reference.is_none() && bytes::mixes(self.view.format) {
            return self.sample_bytes(level, &spans(bytes::MIDDLE));
        }
        let spans = spans(PLACES / 2.0);
        if self.reference.is_some() || !codes::mixes(self.view.format) {
            return self.mix(level, &spans, self.dims, [0; 3]);
        }
        let mean = Self { codes: true, ..*self }.mix(level, &spans, self.dims, [0; 3]);
        self.seen(codes::decode(self.view.format, mean.map(f32::from_bits)).map(f32::to_bits))
    }

    /// A linear sample of 8-bit channels.
    fn sample_bytes(&self, level: u32, spans: &[Span; 3]) -> Texel {
        let means = Self { codes: true, ..*self }.mix_bytes(level, spans, self.dims, [0; 3]);
        let mut texel = [0, 0, 0, self.one()];
        for part in self.view.format.channels().iter().filter(|part| part.channel < 4) {
            let channel = usize::from(part.channel);
            texel[channel] = bytes::decode(means[channel]).to_bits();
        }
        self.seen(texel)
    }

    /// Like [`SampleSource::mix`], for 8-bit codes.
    fn mix_bytes(&self, level: u32, spans: &[Span; 3], dim: usize, mut at: [i32; 3]) -> [i32; 4] {
        let Some(dim) = dim.checked_sub(1) else {
            return self.wrapped(level, at).map(|code| bytes::code(f32::from_bits(code)));
        };
        let span = spans[dim];
        at[dim] = span.first;
        let first = self.mix_bytes(level, spans, dim, at);
        at[dim] = span.first.saturating_add(1);
        let second = self.mix_bytes(level, spans, dim, at);
        let (weight, mix) = (bytes::weight(span, dim), if dim == 0 { bytes::along_row } else { bytes::between });
        [0, 1, 2, 3].map(|k| mix(first[k], second[k], weight))
    }

    /// The mix of the surrounding texels, along x first.
    fn mix(&self, level: u32, spans: &[Span; 3], dim: usize, mut at: [i32; 3]) -> Texel {
        let Some(dim) = dim.checked_sub(1) else { return self.wrapped(level, at) };
        at[dim] = spans[dim].first;
        let first = self.mix(level, spans, dim, at);
        at[dim] = spans[dim].first.saturating_add(1);
        let second = self.mix(level, spans, dim, at);
        if self.codes {
            let mean = |k: usize| codes::mean(f32::from_bits(first[k]), f32::from_bits(second[k]), spans[dim].weight());
            return [0, 1, 2, 3].map(|k| mean(k).to_bits());
        }
        lerp(first, second, spans[dim].weight())
    }

    /// The four texels of a linear filter in `OpImageGather`'s order.
    pub(super) fn footprint(&self, coordinates: [f32; 3], offset: [i32; 3]) -> [Texel; 4] {
        let scale = self.scale(0);
        let [x, y] = [0, 1].map(|dim| linear(coordinates[dim], scale[dim], PLACES / 2.0, offset[dim]).first);
        let (right, below) = (x.saturating_add(1), y.saturating_add(1));
        [[x, below], [right, below], [right, y], [x, y]].map(|[x, y]| self.wrapped(0, [x, y, 0]))
    }
}

/// Mixes `a` and `b` by weight; an operand of weight 0 is ignored even if it is not finite.
pub(super) fn lerp(a: Texel, b: Texel, weight: f32) -> Texel {
    [0, 1, 2, 3].map(|k| mixed(f32::from_bits(a[k]), f32::from_bits(b[k]), weight).to_bits())
}

/// One channel of [`lerp`].
#[inline(always)]
pub(super) fn mixed(a: f32, b: f32, weight: f32) -> f32 {
    if weight == 0.0 { a } else { b.mul_add(weight, a * (1.0 - weight)) }
}

fn compare(how: Compare, reference: f32, depth: f32) -> bool {
    match how {
        Compare::Never => false,
        Compare::Less => reference < depth,
        Compare::Equal => reference == depth,
        Compare::LessOrEqual => reference <= depth,
        Compare::Greater => reference > depth,
        Compare::NotEqual => reference != depth,
        Compare::GreaterOrEqual => reference >= depth,
        Compare::Always => true,
    }
}
