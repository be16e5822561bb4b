//! Image instructions as libcalls: rows of operands in, rows of results out.

use super::access::waterfall::for_each_buffer;
use smallvec::{SmallVec, smallvec};

use super::sample::selection::same_texel;
use super::state::Widen;
use crate::analysis::Shape;
use crate::image::{Field, ImageOp, Kind, LodOperand};
use crate::ir::{self, InstData as ScalarInst};
use crate::simd::{ContextField, InstData, LANES, Routine, Type, Value};

/// Bytes of a row of a call.
pub(super) const ROW: u32 = 4 * LANES;

/// Operands in their kept form: image, sampler, the others. In that form the blocks after a branch can use them, too.
pub(super) type ShapedOperands = SmallVec<[(Value, Shape); 8]>;

/// Indices of components, in order.
pub(super) type Components = SmallVec<[u8; 4]>;

/// The components of a texel.
pub(super) type TexelVectors = SmallVec<[Value; 4]>;

impl Widen<'_> {
    /// `image_field`: a field of an image description.
    pub(super) fn image_field(&mut self, result: ir::Value, image: ir::Value, field: Field) {
        if self.shape(image) == Shape::Uniform {
            let image = self.scalar(image);
            let value = self.builder.emit_one(InstData::ImageField { image, field });
            return self.define_as(result, value);
        }
        let value = for_each_buffer(self, image, Some(Type::V32), |widen, image, _| {
            let value = widen.builder.emit_one(InstData::ImageField { image, field });
            Some(widen.builder.splat(value))
        });
        if let Some(value) = value {
            self.define_as(result, value);
        }
    }

    /// An image instruction, together with the following ones that differ only in the component.
    pub(super) fn image(&mut self, block: ir::Block, inst: ir::Inst) {
        let ScalarInst::Image { op, image, sampler, args, .. } = &self.kernel.insts[inst] else { return };
        if self.kernel.results[inst].is_some_and(|result| self.is_defined(result)) {
            return;
        }
        let operands = [*image, sampler.unwrap_or(*image)].into_iter().chain(args.iter().copied());
        let operands: ShapedOperands = operands.map(|value| (self.get(value), self.shape(value))).collect();
        if op.kind == Kind::Write {
            self.image_call(op, &operands, &[]);
            return;
        }
        let results = self.components(block, inst);
        let mut components: Components = results.iter().map(|&(component, _)| component).collect();
        components.sort_unstable();
        components.dedup();
        let is_base_level =
            op.lod == LodOperand::None || args.last().is_some_and(|&lod| self.kernel.constant(lod) == Some(0));
        let texel = self.sample(inst, &operands, is_base_level, &components);
        let texel = texel.or_else(|| self.read_texel(inst, &operands, is_base_level, &components));
        let texel = texel.unwrap_or_else(|| self.image_call(op, &operands, &components));
        for (component, result) in results {
            let Some(at) = components.iter().position(|&other| other == component) else { continue };
            // Inactive lanes have no texel. A uniform component is broadcast to all lanes.
            let is_shared = self.uniformity.shape(result) == Shape::Uniform && !self.all_lanes_active();
            let value = if is_shared { self.of_active_lanes(texel[at]) } else { texel[at] };
            self.define_as(result, value);
        }
    }

    /// Emits the call of an image instruction; returns some components of its result.
    pub(super) fn image_call(&mut self, op: &ImageOp, operands: &ShapedOperands, components: &[u8]) -> TexelVectors {
        let area = self.builder.emit_one(InstData::Context { field: ContextField::Calls });
        let (on, off) = (self.builder.constant(Type::V32, u32::MAX.into()), self.builder.constant(Type::V32, 0));
        let lanes = self.builder.select(self.exec, on, off);
        let mut rows: SmallVec<[Value; 16]> = smallvec![lanes];
        for &(value, shape) in operands {
            rows.push(self.widened(value, shape));
        }
        for (row, &value) in (0..).zip(&rows) {
            let value = if self.builder.ty(value) == Type::V32 { value } else { self.builder.splat(value) };
            self.builder.emit(InstData::FrameStore { frame: area, at: row * ROW, value });
        }
        let routine = Routine::Image(ImageOp { component: 0, ..*op });
        self.builder.call(routine, area, self.exec);
        let results = rows.len() as u32;
        let load = |component| (results + u32::from(component)) * ROW;
        let loads =
            components.iter().map(|&component| InstData::FrameLoad { ty: Type::V32, frame: area, at: load(component) });
        loads.map(|load| self.builder.emit_value(load)).collect()
    }

    /// The components of an instruction's texel that are used.
    fn components(&self, block: ir::Block, inst: ir::Inst) -> SmallVec<[(u8, ir::Value); 4]> {
        let component = |&other: &ir::Inst| match &self.kernel.insts[other] {
            ScalarInst::Image { op, .. } => Some((op.component, self.kernel.results[other]?)),
            _ => None,
        };
        same_texel(self.kernel, block, inst).iter().filter_map(component).collect()
    }
}
