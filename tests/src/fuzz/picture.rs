//! Images: read-only ones, accessed at any coordinates; those in which each invocation owns a texel; and one on whose
//! texels all invocations perform atomics.

use spelter_shaders::image::{Class as Texels, DeclaredImage, Dim, Field, ImageOp, Kind as Does, LodOperand, Offsets};
use spelter_shaders::ir::{Access, AtomicOp, Binding, BufferSpace, InstData, Op, Place, Type, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::scope::{Kind, Level};

/// The images of a binding, which are declared alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pictures {
    pub(super) binding: Binding,
    pub(super) count: u32,
    pub(super) image: DeclaredImage,
    /// Texels in each dimension, then layers.
    pub(super) size: [u32; 4],
    pub(super) role: Role,
}

/// Uses of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Read-only.
    Read,
    /// Each invocation owns a texel.
    Own,
    /// All invocations perform one kind of atomic, with unused results.
    Count(AtomicOp),
}

impl Maker {
    /// An access to some image.
    pub(super) fn picture(&mut self) {
        if self.memory.pictures.is_empty() {
            return;
        }
        let all = self.memory.pictures.clone();
        let pictures = self.tape.of(&all);
        match pictures.role {
            Role::Read => self.look(pictures),
            Role::Own => self.own_texel(pictures),
            Role::Count(op) if self.options.atomics => self.count_texels(pictures, op),
            Role::Count(_) => {}
        }
    }

    /// An image of a binding.
    fn picture_of(&mut self, pictures: Pictures) -> Value {
        let index = match self.tape.pick(4) {
            _ if pictures.count == 1 => self.constant(0u32),
            0 | 1 => {
                let number = self.tape.pick(pictures.count);
                self.constant(number)
            }
            2 => {
                let value = self.value_at(Kind::Int, Level::Workgroup);
                self.op_with(Op::UMod, value, pictures.count)
            }
            _ => {
                self.mark(Feature::ImageDivergent);
                let value = self.value(Kind::Int);
                self.op_with(Op::UMod, value, pictures.count)
            }
        };
        let level = self.level(&[index]);
        let image = self.builder.push_value(InstData::Buffer { binding: pictures.binding, index }, Type::Buffer);
        self.scope.note(image, level);
        image
    }

    /// Reads texels of a read-only image.
    fn look(&mut self, pictures: Pictures) {
        let DeclaredImage { dim, arrayed, class, .. } = pictures.image;
        let does = match (dim, self.tape.pick(5)) {
            (Dim::Buffer, _) => Does::Read,
            (Dim::D2 | Dim::Cube, 4) => Does::Gather,
            (Dim::Cube, _) | (_, 2..) => Does::Sample,
            _ => Does::Read,
        };
        let mut op = ImageOp::new(does, dim, arrayed, class);
        op.dref = op.has_sampler() && class == Texels::Float && self.tape.chance(6);
        op.lod = match does {
            Does::Sample => self.tape.of(&[LodOperand::Lod, LodOperand::None, LodOperand::Lod, LodOperand::Grad]),
            Does::Read if dim != Dim::Buffer => self.tape.of(&[LodOperand::None, LodOperand::Lod]),
            _ => LodOperand::None,
        };
        op.offsets = match (dim, self.tape.pick(8)) {
            (Dim::Cube | Dim::Buffer, _) => Offsets::None,
            (_, 7) => Offsets::One,
            (Dim::D2, 6) if does == Does::Gather => Offsets::Four,
            _ => Offsets::None,
        };
        op.min_lod = does == Does::Sample && self.tape.chance(8);
        self.mark(if does == Does::Read { Feature::ImageRead } else { Feature::ImageSample });
        let image = self.picture_of(pictures);
        let sampler = op.has_sampler().then(|| if self.tape.chance(4) { self.picture_of(pictures) } else { image });
        let args = self.operands(&op, pictures);
        self.texel(op, image, sampler, &args, Level::Workgroup);
    }

    /// The operands of a read, a sample or a gather, in the order of [`ImageOp::params`].
    fn operands(&mut self, op: &ImageOp, pictures: Pictures) -> Vec<Value> {
        let dims = op.dim.coordinates();
        let mut args = Vec::new();
        let style = self.tape.pick(4);
        for dim in 0..dims + usize::from(op.arrayed) {
            let size = if dim == dims { pictures.size[3] } else { pictures.size[dim] };
            let is_layer = dim == dims;
            args.push(match (op.has_sampler(), is_layer) {
                (false, _) => self.texel_number(style, size),
                (true, false) => self.coordinate(style, size),
                (true, true) => {
                    let number = self.texel_number(style, size);
                    self.op(Op::SIntToFloat, &[number])
                }
            });
        }
        if op.dref {
            args.push(self.value(Kind::Float));
        }
        if op.kind == Does::Gather && !op.dref {
            let component = self.tape.pick(4);
            args.push(self.constant(component));
        }
        match op.lod {
            LodOperand::None => {}
            LodOperand::Lod if op.kind == Does::Read => {
                let level = self.tape.of(&[0u32, 0, 1, 2, 9]);
                args.push(self.constant(level));
            }
            LodOperand::Lod => args.push(match self.tape.pick(3) {
                2 => self.value(Kind::Float),
                _ => {
                    let level = self.tape.of(&[0.0f32, 0.0, 1.0, 0.5, -1.0, 7.25]);
                    self.constant(level)
                }
            }),
            LodOperand::Grad => {
                for _ in 0..2 * dims {
                    let step = self.tape.of(&[0.0f32, 0.01, 0.125, 1.0, -0.3]);
                    args.push(self.constant(step));
                }
            }
        }
        let offsets = match op.offsets {
            Offsets::None => 0,
            Offsets::One => dims,
            Offsets::Four => 8,
        };
        for _ in 0..offsets {
            let offset = self.tape.of(&[0i32, 1, -1, 7, -8]).cast_unsigned();
            args.push(self.constant(offset));
        }
        if op.min_lod {
            let least = self.tape.of(&[0.0f32, 0.75, 2.0]);
            args.push(self.constant(least));
        }
        args
    }

    /// A texel's index in a dimension: uniform, contiguous, or arbitrary; also beyond the edges.
    fn texel_number(&mut self, style: u32, size: u32) -> Value {
        match (style, self.tape.pick(4)) {
            (0, 0 | 1) => {
                self.mark(Feature::ImageUniform);
                let number = self.tape.pick(size + 1);
                self.constant(number)
            }
            (0, _) => {
                self.mark(Feature::ImageUniform);
                let value = self.value_at(Kind::Int, Level::Workgroup);
                self.op_with(Op::UMod, value, size + 1)
            }
            (1, _) => self.index().0,
            (2, _) => {
                self.mark(Feature::ImageAffine);
                let (lane, start) = (self.lane(), self.tape.pick(size + 1));
                self.op_with(Op::IAdd, lane, start)
            }
            _ => {
                let value = self.value(Kind::Int);
                self.op_with(Op::UMod, value, size + 2)
            }
        }
    }

    /// A coordinate of a sample, mostly near the image.
    fn coordinate(&mut self, style: u32, size: u32) -> Value {
        match (style, self.tape.pick(3)) {
            (0, 0) => {
                self.mark(Feature::ImageUniform);
                let at = self.tape.of(&[0.5f32, 0.0, 1.0, 0.3, -0.4, 2.7, 11.0]);
                self.constant(at)
            }
            (0, _) => {
                self.mark(Feature::ImageUniform);
                self.value_at(Kind::Float, Level::Workgroup)
            }
            (3, 0) => self.value(Kind::Float),
            _ => {
                let number = self.texel_number(style, size);
                let number = self.op_with(Op::And, number, 255);
                let float = self.op(Op::SIntToFloat, &[number]);
                let step = self.tape.of(&[1.0 / size as f32, 1.0, 0.125, 0.37 / size as f32]);
                let step = self.constant(step);
                let scaled = self.op(Op::FMul, &[float, step]);
                let start = self.tape.of(&[0.5 / size as f32, 0.0, 0.5, -0.2]);
                let start = self.constant(start);
                let sum = self.op(Op::FAdd, &[scaled, start]);
                self.number(sum)
            }
        }
    }

    /// Components of a texel as values; a combination of all of them is stored for comparison.
    fn texel(&mut self, op: ImageOp, image: Value, sampler: Option<Value>, args: &[Value], most: Level) {
        let level = self.level(args).min(self.level(&[image, sampler.unwrap_or(image)])).min(most);
        let (ty, access) = (op.component_type(), self.access());
        let components: &[u8] = self.tape.of(&[&[0u8, 1, 2, 3][..], &[0], &[3, 1], &[2, 0, 1, 0]]);
        let mut sum = self.constant(0x2545_f491_u32);
        let mut last = None;
        for &component in components {
            let op = ImageOp { component, ..op };
            let data = InstData::Image { op, image, sampler, args: args.iter().copied().collect(), access };
            let value = self.builder.push_value(data, ty);
            self.scope.note(value, level);
            let value = if ty == Type::F32 { self.number(value) } else { value };
            self.define(value, Kind::of(ty), level);
            let word = if ty == Type::F32 { self.op(Op::FloatBits, &[value]) } else { value };
            sum = self.op(Op::Xor, &[sum, word]);
            sum = self.op_with(Op::IMul, sum, 0x9e37_79b1);
            last = Some(value);
        }
        self.define(sum, Kind::Int, level);
        if let (Some(value), true) = (last, self.tape.pick(2) == 0) {
            let (op, other) = match ty {
                Type::F32 => (self.tape.of(&[Op::FOrdEq, Op::FUnordNe, Op::FOrdLt]), self.value_at(Kind::Float, level)),
                _ => (self.tape.of(&[Op::IEq, Op::INe, Op::ULt]), self.value_at(Kind::Int, level)),
            };
            let holds = self.op(op, &[value, other]);
            self.define(holds, Kind::Bool, level);
        }
        if self.tape.pick(3) == 0
            && let Some(region) = self.closed_region()
        {
            let place = self.own_place(region, true);
            self.builder.store(place, sum, Access::default());
        }
    }

    /// Reads or writes the invocation's own texel. Some have none: the image is too small.
    fn own_texel(&mut self, pictures: Pictures) {
        let Some(global) = self.memory.global else { return };
        let DeclaredImage { dim, arrayed, class, .. } = pictures.image;
        let [width, height, depth, _] = pictures.size;
        let mut args = vec![match dim {
            Dim::D1 | Dim::Buffer => global,
            _ => self.op_with(Op::UMod, global, width),
        }];
        if dim != Dim::D1 && dim != Dim::Buffer {
            let row = self.op_with(Op::UDiv, global, width);
            if dim == Dim::D3 || arrayed {
                args.push(self.op_with(Op::UMod, row, height));
                args.push(self.op_with(Op::UDiv, row, height));
            } else {
                args.push(row);
            }
        }
        debug_assert!(dim == Dim::D3 || depth == 1);
        let image = self.picture_of(pictures);
        if self.tape.pick(3) == 2 {
            self.mark(Feature::ImageOwn);
            self.texel(ImageOp::new(Does::Read, dim, arrayed, class), image, None, &args, Level::Invocation);
            return;
        }
        self.mark(Feature::ImageWrite);
        let op = ImageOp::new(Does::Write, dim, arrayed, class);
        for _ in 0..4 {
            let kind = Kind::of(op.component_type());
            args.push(self.value(kind));
        }
        let access = self.access();
        self.builder.push(InstData::Image { op, image, sampler: None, args: args.into_iter().collect(), access });
    }

    /// An atomic on any texel of a 2D image of words, as the reader emits it.
    fn count_texels(&mut self, pictures: Pictures, op: AtomicOp) {
        self.mark(Feature::ImageAtomic);
        let image = self.picture_of(pictures);
        let [width, height, ..] = pictures.size;
        let style = self.tape.pick(4);
        let [x, y] = [width, height].map(|size| {
            let number = self.texel_number(style, size);
            self.op_with(Op::UMod, number, size)
        });
        let level = self.level(&[image]);
        let pitch = self.builder.push_value(InstData::ImageField { image, field: Field::RowPitch }, Type::I32);
        self.scope.note(pitch, level);
        let row = self.op(Op::IMul, &[y, pitch]);
        let offset = self.element(row, x, 4);
        let value = self.value(Kind::Int);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer: image, offset };
        self.atomic(op, place, Some(value), None);
    }
}
