//! Inline image reads: texels of level 0 at integer coordinates.

use smallvec::{SmallVec, smallvec};

use crate::analysis::Shape;
use crate::image::{codes, direct};
use crate::ir::{self, Op, Width};
use crate::simd::{InstData, LaneAddress, Row, Type, Value};
use crate::vectorize::access::word_array::WordArray;
use crate::vectorize::image::{Components, ShapedOperands, TexelVectors};
use crate::vectorize::state::Widen;

impl Widen<'_> {
    /// Some components of a texel. Decodes the formats of `direct` inline and calls the runtime for all others; `None`
    /// if the read always needs the call. Out-of-bounds texels are 0 before decoding.
    pub(in crate::vectorize) fn read_texel(
        &mut self,
        inst: ir::Inst,
        operands: &ShapedOperands,
        is_base_level: bool,
        components: &Components,
    ) -> Option<TexelVectors> {
        let ir::InstData::Image { op, .. } = &self.kernel.insts[inst] else { return None };
        if !direct::is_direct_read(op) || !self.plans.inline_samples.contains(inst) {
            return None;
        }
        let [(image, Shape::Uniform), _, ref rest @ ..] = operands[..] else { return None };
        let image = self.of_all_lanes(image);
        if self.is_no_descriptor(image) {
            return None;
        }
        self.cache.samples.emitted += 1;
        let source = self.source(image, op.arrayed);
        let rest: SmallVec<[Value; 4]> = rest.iter().map(|&(value, shape)| self.widened(value, shape)).collect();
        let mut inside = self.builder.constant(Type::Mask, crate::simd::builder::ALL);
        let dims = if op.arrayed { 3 } else { 2 };
        for (&coordinate, &size) in rest.iter().zip(&source.sizes[..dims]) {
            let size = self.builder.splat(size);
            let below = self.builder.pure(Op::ULt, &[coordinate, size]);
            inside = self.builder.and(inside, below);
        }
        let mut is_direct = source.is_direct;
        if !is_base_level {
            // Level 0 must be the only level.
            is_direct = self.builder.pure(Op::LAnd, &[is_direct, source.has_one_level]);
            let zero = self.builder.constant(Type::V32, 0);
            let is_there = self.builder.pure(Op::IEq, &[rest[dims], zero]);
            inside = self.builder.and(inside, is_there);
        }
        let here = self.builder.current();
        let [direct, row, gather, texel, unorm, float, call, end] =
            std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(is_direct, direct, call);
        self.begin(direct);
        let layer = op.arrayed.then(|| {
            let pitch = self.kept_in_lanes(source.layer_pitch);
            self.builder.pure(Op::IMul, &[rest[2], pitch])
        });
        let index = self.texel_index(&source, [rest[0], rest[1]], layer);
        let (first, scattered) = self.as_row(index);
        let outside = self.builder.pure(Op::LNot, &[inside]);
        let scattered = self.builder.or(scattered, outside);
        let scattered = self.builder.and(self.exec, scattered);
        let scattered = self.builder.any(scattered);
        self.builder.branch(scattered, gather, row);
        self.begin(row);
        let WordArray { base, limit } = source.rows[0];
        let words = Row { base, index: first, limit, width: Width::Word };
        let word = self.builder.emit_value(InstData::LoadRow { row: words });
        self.jump_with(texel, smallvec![word]);
        self.begin(gather);
        let mask = self.builder.and(self.exec, inside);
        let lanes = LaneAddress { base, index, scale: 4, disp: 0 };
        let word = self.builder.emit_value(InstData::Gather { lanes, mask });
        self.jump_with(texel, smallvec![word]);
        let word = self.builder.param(texel, Type::V32);
        self.begin(texel);
        self.builder.branch(source.is_float, float, unorm);
        self.begin(unorm);
        let numbers = components.iter().map(|&component| {
            let value = self.unorm_value(word, component);
            let value = self.builder.pure(Op::SIntToFloat, &[value]);
            self.quotient(value, codes::reciprocal(255.0))
        });
        let numbers = numbers.collect();
        self.jump_with(end, numbers);
        self.begin(float);
        let (zero, one) = (self.float(0.0), self.float(1.0));
        let numbers = components.iter().map(|component| [word, zero, zero, one][usize::from(component % 4)]).collect();
        self.jump_with(end, numbers);
        self.begin(call);
        let numbers = self.image_call(op, operands, components);
        self.jump_with(end, numbers);
        Some(self.join(here, end, components))
    }
}
