//! Sampling as Vulkan's chapter "Image Operations" writes it down, in 64-bit floats, slowly.
//!
//! Where a result jumps (nearest texels and levels, the change of filter at level 0), a place too close to the jump to
//! call has no answer.

use spelter_shaders::image::{Class, Compare, Dim, Filter, Format, Numeric, Sampler, Swizzle, Wrap, decode, load_raw};

use super::picture::Picture;

/// Closer than this to a jump, either side is right.
const CLOSE: f64 = 1e-3;

/// How far from the reference a sample may be. Coordinates are rounded to 24 bits before they are taken apart; weights
/// of channels of 8 bits have 8 bits, as the device says, in up to three dimensions.
pub(crate) fn tolerance(format: Format) -> f64 {
    let bytes = format.numeric() == Numeric::Unorm && format.channels().iter().all(|part| part.bits == 8);
    if bytes { 2e-3 + 3.0 / 512.0 } else { 2e-3 }
}

/// What is sampled where.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) picture: &'a Picture,
    pub(crate) sampler: &'a Sampler,
    /// Coordinates, the layer last.
    pub(crate) at: Vec<f64>,
    /// The shader's level of detail before the sampler's part.
    pub(crate) lod: f64,
    pub(crate) min_lod: f64,
    pub(crate) offset: [i64; 3],
    pub(crate) reference: Option<f64>,
}

type Color = [f64; 4];

/// Whether a number is too close to an integer.
fn close(x: f64) -> bool {
    (x - x.round()).abs() < CLOSE
}

impl Question<'_> {
    fn size(&self, level: u32) -> [i64; 3] {
        self.picture.view.size.map(|size| i64::from((size >> level).max(1)))
    }

    fn is_float(&self) -> bool {
        self.picture.view.format.class() == Class::Float
    }

    fn layer(&self) -> Option<i64> {
        if !self.picture.arrayed {
            return Some(0);
        }
        let given = *self.at.last()?;
        let layers = i64::from(self.picture.view.layers) / if self.picture.dim == Dim::Cube { 6 } else { 1 };
        if close(given + 0.5) {
            return None;
        }
        Some((given.round() as i64).clamp(0, layers - 1))
    }

    /// A texel as numbers, compared and swizzled.
    fn texel(&self, level: u32, x: i64, y: i64, z: i64, layer: i64) -> Color {
        let view = &self.picture.view;
        let offset =
            view.texel(level, [x as u32, y as u32, z as u32], layer as u32).expect("the reference stays inside");
        let bits = decode(view.format, load_raw(view.memory, offset, view.format.bytes()));
        self.seen(bits.map(|word| self.number(word)))
    }

    fn number(&self, bits: u32) -> f64 {
        match self.picture.view.format.class() {
            Class::Float => f64::from(f32::from_bits(bits)),
            Class::Sint => f64::from(bits.cast_signed()),
            Class::Uint => f64::from(bits),
        }
    }

    fn seen(&self, texel: Color) -> Color {
        let texel = match self.reference {
            None => texel,
            Some(mut reference) => {
                if self.picture.view.format.numeric() == Numeric::Unorm {
                    reference = reference.clamp(0.0, 1.0);
                }
                let depth = texel[0];
                let holds = match self.sampler.compare {
                    Compare::Never => false,
                    Compare::Less => reference < depth,
                    Compare::Equal => reference == depth,
                    Compare::LessOrEqual => reference <= depth,
                    Compare::Greater => reference > depth,
                    Compare::NotEqual => reference != depth,
                    Compare::GreaterOrEqual => reference >= depth,
                    Compare::Always => true,
                };
                [f64::from(u8::from(holds)), 0.0, 0.0, 1.0]
            }
        };
        self.picture.view.swizzle.map(|swizzle| match swizzle {
            Swizzle::R => texel[0],
            Swizzle::G => texel[1],
            Swizzle::B => texel[2],
            Swizzle::A => texel[3],
            Swizzle::Zero => 0.0,
            Swizzle::One => 1.0,
        })
    }

    fn wrapped(&self, dim: usize, i: i64, size: i64) -> Option<i64> {
        let mirror = |n: i64| if n >= 0 { n } else { -(1 + n) };
        match self.sampler.wrap[dim] {
            Wrap::Repeat => Some(i.rem_euclid(size)),
            Wrap::MirroredRepeat => Some((size - 1) - mirror(i.rem_euclid(2 * size) - size)),
            Wrap::ClampToEdge => Some(i.clamp(0, size - 1)),
            Wrap::ClampToBorder => (0..size).contains(&i).then_some(i),
            Wrap::MirrorClampToEdge => Some(mirror(i).clamp(0, size - 1)),
        }
    }

    /// The border's colour, of the components that `VkFormat`'s names have: Vulkan's table "Border Texel Components
    /// After Replacement". What a format lacks is 0, alpha 1.
    fn border(&self) -> Color {
        let components = match self.picture.view.format.vk() {
            9..=15 | 70..=76 | 98..=100 | 124..=129 => 1,
            1 | 16..=22 | 77..=83 | 101..=103 => 2,
            4 | 5 | 23..=36 | 84..=90 | 104..=106 | 122 | 123 => 3,
            _ => 4,
        };
        let given = self.sampler.border.map(|bits| self.number(bits));
        // `A8_UNORM`
        if self.picture.view.format.vk() == 1_000_470_001 {
            return [0.0, 0.0, 0.0, given[3]];
        }
        std::array::from_fn(|channel| match channel {
            channel if channel < components => given[channel],
            3 => 1.0,
            _ => 0.0,
        })
    }

    /// The texel at integer coordinates of a flat image.
    fn flat(&self, level: u32, at: [i64; 3], layer: i64) -> Color {
        let size = self.size(level);
        let dims = self.picture.dim.coordinates();
        let mut place = [0; 3];
        for dim in 0..dims {
            match self.wrapped(dim, at[dim], size[dim]) {
                Some(i) => place[dim] = i,
                None => return self.seen(self.border()),
            }
        }
        self.texel(level, place[0], place[1], place[2], layer)
    }

    /// The answer; `None` too close to a jump.
    pub(crate) fn answer(&self) -> Option<Color> {
        let layer = self.layer()?;
        let sampler = self.sampler;
        if sampler.unnormalized {
            return self.level(sampler.mag, 0, layer);
        }
        let lod = (self.lod + f64::from(sampler.lod_bias)).clamp(
            f64::from(sampler.min_lod).max(self.min_lod).min(f64::from(sampler.max_lod)),
            f64::from(sampler.max_lod),
        );
        if lod.abs() < CLOSE && sampler.mag != sampler.min {
            return None;
        }
        let filter = if lod <= 0.0 { sampler.mag } else { sampler.min };
        let last = f64::from(self.picture.view.levels - 1);
        let level = lod.clamp(0.0, last);
        match sampler.mip {
            Filter::Nearest if close(level + 0.5) => None,
            Filter::Nearest => self.level(filter, (level + 0.5).ceil() as u32 - 1, layer),
            Filter::Linear if !self.is_float() && close(level) && level != 0.0 => None,
            Filter::Linear => {
                let low = level.floor();
                let first = self.level(filter, low as u32, layer)?;
                if !self.is_float() {
                    return Some(first);
                }
                let second = self.level(filter, (low + 1.0).min(last) as u32, layer)?;
                let part = level - low;
                Some([0, 1, 2, 3].map(|k| first[k] * (1.0 - part) + second[k] * part))
            }
        }
    }

    fn level(&self, filter: Filter, level: u32, layer: i64) -> Option<Color> {
        let nearest = filter == Filter::Nearest || !self.is_float();
        if self.picture.dim == Dim::Cube {
            return self.on_cube(nearest, level, layer);
        }
        let size = self.size(level);
        let dims = self.picture.dim.coordinates();
        let scale = |dim: usize| if self.sampler.unnormalized { 1.0 } else { size[dim] as f64 };
        let u: Vec<f64> = (0..dims).map(|dim| self.at[dim] * scale(dim)).collect();
        if nearest {
            if u.iter().any(|&u| close(u)) {
                return None;
            }
            let mut place = [0; 3];
            (0..dims).for_each(|dim| place[dim] = u[dim].floor() as i64 + self.offset[dim]);
            return Some(self.flat(level, place, layer));
        }
        let mut sum = [0.0; 4];
        for corner in 0..1 << dims {
            let (mut weight, mut place) = (1.0, [0; 3]);
            for dim in 0..dims {
                let first = (u[dim] - 0.5).floor();
                let part = u[dim] - 0.5 - first;
                let second = corner >> dim & 1;
                weight *= if second == 1 { part } else { 1.0 - part };
                place[dim] = first as i64 + second + self.offset[dim];
            }
            let texel = self.flat(level, place, layer);
            (0..4).for_each(|k| sum[k] += weight * texel[k]);
        }
        Some(sum)
    }

    fn on_cube(&self, nearest: bool, level: u32, layer: i64) -> Option<Color> {
        let (face, s, t) = face_of([self.at[0], self.at[1], self.at[2]])?;
        let n = self.size(level)[0];
        let (u, v) = (s * n as f64, t * n as f64);
        if nearest {
            if close(u) || close(v) {
                return None;
            }
            return Some(self.texel(level, u.floor() as i64, v.floor() as i64, 0, 6 * layer + face));
        }
        let (i, j) = ((u - 0.5).floor(), (v - 0.5).floor());
        let (a, b) = (u - 0.5 - i, v - 0.5 - j);
        let mut sum = [0.0; 4];
        for (x, y, weight) in
            [(0, 0, (1.0 - a) * (1.0 - b)), (1, 0, a * (1.0 - b)), (0, 1, (1.0 - a) * b), (1, 1, a * b)]
        {
            let texel = self.around(level, face, i as i64 + x, j as i64 + y, n, layer)?;
            (0..4).for_each(|k| sum[k] += weight * texel[k]);
        }
        Some(sum)
    }

    /// A texel on a face, beyond an edge by its direction, at a corner the mean of three.
    fn around(&self, level: u32, face: i64, i: i64, j: i64, n: i64, layer: i64) -> Option<Color> {
        let inside = |c: i64| (0..n).contains(&c);
        if !inside(i) && !inside(j) {
            let (x, y) = (i.clamp(0, n - 1), j.clamp(0, n - 1));
            let three = [(x, y), (i, y), (x, j)].map(|(i, j)| self.around(level, face, i, j, n, layer));
            let [a, b, c] = [three[0]?, three[1]?, three[2]?];
            return Some([0, 1, 2, 3].map(|k| (a[k] + b[k] + c[k]) / 3.0));
        }
        if inside(i) && inside(j) {
            return Some(self.texel(level, i, j, 0, 6 * layer + face));
        }
        let middle = |c: i64| 2.0 * (c as f64 + 0.5) / n as f64 - 1.0;
        let (face, s, t) = face_of(direction(face, middle(i), middle(j)))?;
        let place = |c: f64| ((c * n as f64).floor() as i64).clamp(0, n - 1);
        Some(self.texel(level, place(s), place(t), 0, 6 * layer + face))
    }
}

/// The face that a direction meets, and where: Vulkan's table, row by row. `None` close to an edge.
fn face_of([x, y, z]: [f64; 3]) -> Option<(i64, f64, f64)> {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    let mut sizes = [ax, ay, az];
    sizes.sort_by(f64::total_cmp);
    if sizes[2] - sizes[1] < 1e-6 * sizes[2] || sizes[2] < 1e-6 {
        return None;
    }
    let (face, s, t, major) = if az > ax && az > ay {
        if z > 0.0 { (4, x, -y, az) } else { (5, -x, -y, az) }
    } else if ay > ax {
        if y > 0.0 { (2, x, z, ay) } else { (3, x, -z, ay) }
    } else if x > 0.0 {
        (0, -z, -y, ax)
    } else {
        (1, z, -y, ax)
    };
    Some((face, 0.5 * s / major + 0.5, 0.5 * t / major + 0.5))
}

/// The direction to a place on a face, -1 to 1, or beyond.
fn direction(face: i64, s: f64, t: f64) -> [f64; 3] {
    match face {
        0 => [1.0, -t, -s],
        1 => [-1.0, -t, s],
        2 => [s, 1.0, t],
        3 => [s, -1.0, -t],
        4 => [s, -t, 1.0],
        _ => [-s, -t, -1.0],
    }
}
