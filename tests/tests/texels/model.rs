//! Results of reads and samples, in 64-bit floats, according to the specification's chapter "Image Operations":
//! coordinates to texels, levels of detail, address modes, filters. Only the descriptions of images and samplers are
//! the driver's.

use spelter_shaders::image::{Filter, Sampler, Swizzle, Wrap};

use crate::texels::format::Format;

/// Precision of filter weights: `subTexelPrecisionBits` and `mipmapPrecisionBits`.
const PRECISION: f64 = 1.0 / 256.0;

/// Tolerance of floats, relative to the greatest texel of a mean.
const ROUNDING: f64 = 1e-5;

/// Distance of a coordinate from the next texel or level below which the result is not checked, without a filter.
const CLOSE: f64 = 1e-3;

/// An image with its texels.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) format: Format,
    /// Width, height and depth of level 0.
    pub(crate) size: [u32; 3],
    pub(crate) levels: u32,
    pub(crate) layers: u32,
    /// Level by level, in each layer by layer, row by row.
    pub(crate) bytes: Vec<u8>,
    pub(crate) swizzle: [Swizzle; 4],
    /// Dimensions of its coordinates.
    pub(crate) dims: usize,
}

/// The result: the number and its tolerance.
pub(crate) type Answer = [(f64, f64); 4];

/// Texels around a coordinate, with their weights.
type Footprint = Vec<([f64; 4], f64)>;

impl Image {
    /// Width, height and depth of a level.
    pub(crate) fn extent(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| (size >> level).max(1))
    }

    /// An existing texel, before the swizzle.
    fn stored(&self, level: u32, layer: u32, [x, y, z]: [u32; 3]) -> [f64; 4] {
        let texels = |level: u32| self.extent(level).map(|size| size as usize).iter().product::<usize>();
        let before: usize = (0..level).map(|level| texels(level) * self.layers as usize).sum();
        let [width, height, _] = self.extent(level).map(|size| size as usize);
        let within = (z as usize * height + y as usize) * width + x as usize;
        let at = (before + layer as usize * texels(level) + within) * self.format.bytes;
        self.format.decode(&self.bytes[at..at + self.format.bytes])
    }

    fn swizzled(&self, texel: [f64; 4]) -> [f64; 4] {
        self.swizzle.map(|from| match from {
            Swizzle::R => texel[0],
            Swizzle::G => texel[1],
            Swizzle::B => texel[2],
            Swizzle::A => texel[3],
            Swizzle::Zero => 0.0,
            Swizzle::One => 1.0,
        })
    }

    /// A texel by integer coordinates. Outside of the image all bits are 0.
    pub(crate) fn read(&self, level: i32, layer: i32, at: [i32; 3]) -> Answer {
        let is_level = (0..self.levels.cast_signed()).contains(&level);
        let extent = self.extent(if is_level { level.cast_unsigned() } else { 0 });
        let is_inside = is_level
            && (0..self.layers.cast_signed()).contains(&layer)
            && at.iter().zip(extent).all(|(&at, size)| (0..size.cast_signed()).contains(&at));
        let texel = match is_inside {
            true => self.stored(level.cast_unsigned(), layer.cast_unsigned(), at.map(i32::cast_unsigned)),
            false => self.format.decode(&vec![0; self.format.bytes]),
        };
        self.swizzled(texel).map(|number| (number, ROUNDING * number.abs()))
    }

    /// A sample; `None` if rounding may select another texel, or if the specification leaves the border open.
    pub(crate) fn sample(
        &self,
        sampler: &Sampler,
        coordinates: [f64; 3],
        layer: f64,
        lod: f64,
        offset: [i32; 3],
    ) -> Option<Answer> {
        let layer = layer.round_ties_even().clamp(0.0, f64::from(self.layers - 1)) as u32;
        let lod = (lod + f64::from(sampler.lod_bias)).clamp(sampler.min_lod.into(), sampler.max_lod.into());
        let filter = if lod <= 0.0 { sampler.mag } else { sampler.min };
        if sampler.mag != sampler.min && lod.abs() < CLOSE && lod != 0.0 {
            return None;
        }
        let level = lod.clamp(0.0, f64::from(self.levels - 1));
        let mut all = Footprint::new();
        match sampler.mip {
            Filter::Nearest => {
                let nearest = (level + 0.5).ceil() - 1.0;
                if (level + 0.5).fract() < CLOSE && level != 0.0 {
                    return None;
                }
                self.add(&mut all, sampler, filter, nearest as u32, layer, coordinates, offset, 1.0)?;
            }
            Filter::Linear => {
                let (first, part) = (level.floor() as u32, level.fract());
                let second = (first + 1).min(self.levels - 1);
                self.add(&mut all, sampler, filter, first, layer, coordinates, offset, 1.0 - part)?;
                if part > 0.0 {
                    self.add(&mut all, sampler, filter, second, layer, coordinates, offset, part)?;
                }
            }
        }
        Some(self.mean(&all))
    }

    /// The four texels of a gather.
    pub(crate) fn gather(&self, sampler: &Sampler, at: [f64; 3], layer: f64, component: usize) -> Option<Answer> {
        let layer = layer.round_ties_even().clamp(0.0, f64::from(self.layers - 1)) as u32;
        let mut corners = Footprint::new();
        self.add(&mut corners, sampler, Filter::Linear, 0, layer, at, [0; 3], 1.0)?;
        // Weights are not used, but a gather depends on the side of a texel's centre.
        let middle = |dim: usize| (at[dim] * f64::from(self.size[dim]) - 0.5).fract().abs();
        if (0..2).any(|dim| middle(dim) < CLOSE || middle(dim) > 1.0 - CLOSE) {
            return None;
        }
        // Along x first; gathers begin at the lower left and go round.
        Some([2, 3, 1, 0].map(|corner| {
            let number = self.swizzled(corners[corner].0)[component];
            (number, ROUNDING * number.abs())
        }))
    }

    /// Adds the texels of a level around a coordinate.
    #[expect(clippy::too_many_arguments, reason = "they are the operands of a sample")]
    fn add(
        &self,
        all: &mut Footprint,
        sampler: &Sampler,
        filter: Filter,
        level: u32,
        layer: u32,
        coordinates: [f64; 3],
        offset: [i32; 3],
        weight: f64,
    ) -> Option<()> {
        let extent = self.extent(level);
        let mut spans: Vec<Vec<(i64, f64)>> = Vec::new();
        for dim in 0..self.dims {
            let size = if sampler.unnormalized { 1.0 } else { f64::from(extent[dim]) };
            let at = coordinates[dim] * size + f64::from(offset[dim]);
            spans.push(match filter {
                Filter::Nearest => {
                    if (at - at.round()).abs() < CLOSE {
                        return None;
                    }
                    vec![(at.floor() as i64, 1.0)]
                }
                Filter::Linear => {
                    let (first, part) = ((at - 0.5).floor(), (at - 0.5) - (at - 0.5).floor());
                    vec![(first as i64, 1.0 - part), (first as i64 + 1, part)]
                }
            });
        }
        spans.resize(3, vec![(0, 1.0)]);
        for &(z, of_z) in &spans[2] {
            for &(y, of_y) in &spans[1] {
                for &(x, of_x) in &spans[0] {
                    let mut texel = Some([0; 3]);
                    for (dim, at) in [x, y, z].into_iter().enumerate().take(self.dims) {
                        let at = wrap(sampler.wrap[dim], at, extent[dim].into());
                        texel = texel.zip(at).map(|(mut texel, at)| {
                            texel[dim] = at;
                            texel
                        });
                    }
                    let texel = match texel {
                        Some(texel) => self.stored(level, layer, texel),
                        None => self.border(sampler)?,
                    };
                    all.push((texel, weight * of_x * of_y * of_z));
                }
            }
        }
        Some(())
    }

    /// The border, if it is specified: the format has all channels, without a swizzle.
    fn border(&self, sampler: &Sampler) -> Option<[f64; 4]> {
        let is_plain = self.swizzle == Swizzle::IDENTITY && (0..4).all(|channel| self.format.has(channel));
        is_plain.then(|| match self.format.numeric() {
            "UINT" => sampler.border.map(f64::from),
            "SINT" => sampler.border.map(|bits| f64::from(bits.cast_signed())),
            _ => sampler.border.map(|bits| f64::from(f32::from_bits(bits))),
        })
    }

    /// The weighted mean, and its tolerance for weights of limited precision.
    fn mean(&self, all: &[([f64; 4], f64)]) -> Answer {
        let texels: Vec<([f64; 4], f64)> = all.iter().map(|&(texel, weight)| (self.swizzled(texel), weight)).collect();
        let mut answer = [(0.0, 0.0); 4];
        for (component, answer) in answer.iter_mut().enumerate() {
            let taken = || texels.iter().map(|(texel, _)| texel[component]);
            let (low, high) =
                taken().fold((f64::MAX, f64::MIN), |(low, high), number| (number.min(low), number.max(high)));
            let sum =
                texels.iter().filter(|(_, weight)| *weight > 0.0).map(|(texel, weight)| texel[component] * weight);
            // One step of the weight in each dimension, and between levels.
            let steps = if texels.len() > 1 { self.dims as f64 + 1.0 } else { 0.0 };
            let greatest = low.abs().max(high.abs());
            *answer = (sum.sum(), (high - low) * PRECISION * steps + greatest * ROUNDING);
        }
        answer
    }
}

/// "Wrapping Operation"; `None` for the border.
fn wrap(mode: Wrap, at: i64, size: i64) -> Option<u32> {
    let mirror = |n: i64| if n >= 0 { n } else { -(1 + n) };
    let texel = match mode {
        Wrap::Repeat => at.rem_euclid(size),
        Wrap::MirroredRepeat => (size - 1) - mirror(at.rem_euclid(2 * size) - size),
        Wrap::ClampToEdge => at.clamp(0, size - 1),
        Wrap::ClampToBorder => at.clamp(-1, size),
        Wrap::MirrorClampToEdge => mirror(at).clamp(0, size - 1),
    };
    (0..size).contains(&texel).then_some(texel as u32)
}
