//! The images of a program: of every format, kind and sampler.

use spelter_shaders::image::{Class, DeclaredImage, Dim, Extent, Format, Sampler, Swizzle};
use spelter_shaders::ir::{AtomicOp, BindingData, BindingKind};

use super::picture::{Pictures, Role};
use super::setup::Setup;
use super::texture::{COMPARES, FILTERS, SWIZZLES, Shape, Texture, WRAPS};

/// Formats that machine code reads without a call.
const DIRECT: [Format; 2] = [Format::R32_SFLOAT, Format::R8G8B8A8_UNORM];

/// Atomics that commute with themselves.
const COUNTING: [AtomicOp; 5] = [AtomicOp::Add, AtomicOp::UMax, AtomicOp::SMin, AtomicOp::Xor, AtomicOp::Or];

impl Setup {
    /// Declares images: some read-only ones, one with a texel per invocation, one for atomics.
    pub(super) fn pictures(&mut self) {
        for _ in 0..self.tape.pick(3) {
            self.read_pictures();
        }
        if self.tape.pick(3) > 0 {
            self.own_pictures();
        }
        if self.tape.chance(3) {
            let op = self.tape.of(&COUNTING);
            let size = [self.tape.of(&[4u32, 1, 17]), self.tape.of(&[1u32, 3]), 1, 1];
            let format = self.tape.of(&[Format::R32_UINT, Format::R32_SINT]);
            let image = DeclaredImage { dim: Dim::D2, arrayed: false, class: format.class(), format: Some(format) };
            self.declare(BindingKind::StorageImage, 1, image, size, Role::Count(op));
        }
    }

    fn read_pictures(&mut self) {
        let dim = self.tape.of(&[Dim::D2, Dim::D2, Dim::D1, Dim::D3, Dim::Cube, Dim::Buffer, Dim::D2]);
        let arrayed = !matches!(dim, Dim::D3 | Dim::Buffer) && self.tape.chance(3);
        let [width, height, depth] =
            self.tape.of(&[[20, 11, 3], [1, 1, 1], [5, 3, 7], [16, 16, 2], [33, 7, 1], [64, 64, 4]]);
        let layers = if arrayed { self.tape.of(&[1u32, 2, 3]) } else { 1 };
        let size = match dim {
            Dim::D1 => [width, 1, 1, layers],
            Dim::D2 => [width, height, 1, layers],
            Dim::D3 => [width, height, depth, 1],
            Dim::Cube => [height, height, 1, 6 * layers],
            Dim::Buffer => [width * height, 1, 1, 1],
        };
        let class = self.format().class();
        let image = DeclaredImage { dim, arrayed, class, format: None };
        let kind = if dim == Dim::Buffer { BindingKind::UniformTexelBuffer } else { BindingKind::CombinedImageSampler };
        let count = self.tape.of(&[1u32, 1, 2, 3]);
        self.declare(kind, count, image, size, Role::Read);
    }

    /// Images with a texel for each invocation, as far as they are large enough.
    fn own_pictures(&mut self) {
        let dim = self.tape.of(&[Dim::D2, Dim::D2, Dim::D1, Dim::D3, Dim::Buffer]);
        let arrayed = dim == Dim::D2 && self.tape.chance(3);
        let all = self.memory.invocations * self.memory.groups;
        let less = self.tape.of(&[0u32, 0, 1, all / 2]);
        let texels = all.saturating_sub(less).max(1);
        let width = self.tape.of(&[7u32, 16, 20, 64]).min(texels);
        let (rows, height) = (texels.div_ceil(width), self.tape.of(&[2u32, 5]));
        let size = match dim {
            Dim::D1 | Dim::Buffer => [texels, 1, 1, 1],
            _ if arrayed => [width, height, 1, rows.div_ceil(height)],
            Dim::D3 => [width, height, rows.div_ceil(height), 1],
            _ => [width, rows, 1, 1],
        };
        let class = self.format().class();
        let image = DeclaredImage { dim, arrayed, class, format: None };
        let kind = if dim == Dim::Buffer { BindingKind::StorageTexelBuffer } else { BindingKind::StorageImage };
        self.declare(kind, 1, image, size, Role::Own);
    }

    /// A random format, more often one that machine code reads without a call.
    fn format(&mut self) -> Format {
        if self.tape.pick(3) == 0 {
            return self.tape.of(&DIRECT);
        }
        let all: Vec<Format> = Format::all().collect();
        self.tape.of(&all)
    }

    /// A format of a class.
    fn format_of(&mut self, class: Class) -> Format {
        if class == Class::Float && self.tape.pick(3) == 0 {
            return self.tape.of(&DIRECT);
        }
        let all: Vec<Format> = Format::all().filter(|format| format.class() == class).collect();
        self.tape.of(&all)
    }

    fn declare(&mut self, kind: BindingKind, count: u32, image: DeclaredImage, size: [u32; 4], role: Role) {
        let [width, height, depth, layers] = size;
        for _ in 0..count {
            let format = match image.format {
                Some(format) => format,
                None => self.format_of(image.class),
            };
            let (extent, view) =
                self.levels(image.dim, Extent { size: [width, height, depth], levels: 1, layers }, role);
            let shape = match image.dim {
                Dim::D3 => Shape::Volume,
                Dim::Buffer => Shape::Buffer,
                _ => Shape::Flat,
            };
            let mut swizzle = Swizzle::IDENTITY;
            if role == Role::Read && self.tape.chance(4) {
                swizzle = swizzle.map(|_| self.tape.of(&SWIZZLES));
            }
            let sampler = self.sampler();
            let texture = Texture { buffer: self.buffers.len(), format, extent, view, shape, swizzle, sampler };
            let mut contents = self.contents(texture.bytes() as u32);
            contents.lead = 0;
            self.buffers.push(contents);
            self.textures.push(texture);
        }
        let number = self.kernel.bindings.len() as u32;
        let read_only = role == Role::Read;
        let data = BindingData { kind, count, read_only, image: Some(image), ..BindingData::storage(0, number) };
        let binding = self.kernel.bindings.push(data);
        self.memory.pictures.push(Pictures { binding, count, image, size, role });
    }

    /// Adds levels to an image, and says which of them the descriptor has: a read-only image is viewed as a whole or
    /// from a level on; an image that is written has the given size in the one level that is viewed.
    fn levels(&mut self, dim: Dim, mut extent: Extent, role: Role) -> (Extent, [u32; 2]) {
        if dim == Dim::Buffer {
            return (extent, [0, 1]);
        }
        if role == Role::Read {
            extent.levels = self.tape.of(&[1u32, 1, 2, 4]).min(extent.max_levels());
            let first = self.tape.of(&[0u32, 0, 1, 2]).min(extent.levels - 1);
            let rest = extent.levels - first;
            return (extent, [first, self.tape.of(&[rest, rest, 1])]);
        }
        let first = self.tape.of(&[0u32, 0, 0, 1, 1, 2]);
        for size in extent.size.iter_mut().take(dim.coordinates()) {
            *size = (*size << first) + self.tape.pick(1 << first);
        }
        extent.levels = (first + 1 + self.tape.pick(2)).min(extent.max_levels());
        (extent, [first, 1])
    }

    fn sampler(&mut self) -> Sampler {
        let filter = self.tape.of(&FILTERS);
        let wrap = self.tape.of(&WRAPS);
        let mut sampler = Sampler { mag: filter, min: filter, wrap: [wrap; 3], max_lod: 16.0, ..Sampler::DEFAULT };
        if self.tape.chance(3) {
            sampler.min = self.tape.of(&FILTERS);
            sampler.mip = self.tape.of(&FILTERS);
            sampler.wrap = sampler.wrap.map(|_| self.tape.of(&WRAPS));
            sampler.lod_bias = self.tape.of(&[0.0f32, 0.5, -2.0]);
            sampler.min_lod = self.tape.of(&[0.0f32, 1.0, 0.3]);
            sampler.max_lod = sampler.min_lod + self.tape.of(&[16.0f32, 0.0, 0.5]);
        }
        sampler.compare = self.tape.of(&COMPARES);
        sampler.unnormalized = self.tape.chance(8);
        let one = 1f32.to_bits();
        sampler.border = self.tape.of(&[[0; 4], [0, 0, 0, one], [one; 4], [0, 0, 0, 1], [1; 4]]);
        sampler
    }
}

#[cfg(test)]
mod tests {
    use crate::fuzz::{Options, Tape, generate};

    /// Read-only and other images are viewed from another level than the first, and read-only ones in several levels.
    #[test]
    fn views_of_levels_are_generated() {
        let mut found = [false; 3];
        for seed in 0..400 {
            let (generated, _) = generate(Tape::random(seed), Options::ALL);
            let program = generated.program;
            for texture in &program.textures {
                let [first, levels] = texture.view;
                assert!(first + levels <= texture.extent.levels, "{texture:?}");
                found[0] |= levels > 1;
                found[1] |= first > 0 && levels > 1;
                found[2] |= first > 0 && levels == 1;
            }
        }
        assert_eq!(found, [true; 3]);
    }
}
