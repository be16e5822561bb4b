//! Waterfall loops: an access whose buffer differs between lanes is done for one buffer after another.

use super::bounds::MemoryRegion;
use super::pattern::Offset;
use super::plan::AccessPlan;
use crate::analysis::Shape;
use crate::ir::{self, Op, Place};
use crate::simd::InstData;
use crate::simd::dominance::LoopSpan;
use crate::simd::ssa::Unwritten;
use crate::vectorize::{Type, Value, Widen};

impl Widen<'_> {
    /// Runs `access` with the memory of a place: once if the lanes agree about the buffer, else for one buffer after
    /// another. The results are of type `ty`.
    pub(in crate::vectorize) fn for_each_region(
        &mut self,
        place: &Place,
        plan: &AccessPlan,
        ty: Option<Type>,
        mut access: impl FnMut(&mut Self, MemoryRegion) -> Option<Value>,
    ) -> Option<Value> {
        let Some(buffer) = self.divergent_buffer(place) else {
            let region = self.region_of_place(place);
            return access(self, region);
        };
        self.prepare_terms(&plan.offset);
        self.for_each_buffer(buffer, ty, |widen, number, _| {
            let region = widen.descriptor(number);
            let value = access(widen, region)?;
            Some(widen.in_lanes(value))
        })
    }

    /// The buffer of a place, if it differs between lanes.
    pub(in crate::vectorize) fn divergent_buffer(&self, place: &Place) -> Option<ir::Value> {
        match *place {
            Place::Buffer { buffer, .. } => Some(buffer).filter(|&buffer| self.shape(buffer) != Shape::Uniform),
            _ => None,
        }
    }

    /// Waterfall loop over a buffer operand that differs between lanes. Each iteration takes the buffer of the first
    /// remaining lane and runs `each` with the descriptor's number and the mask of the lanes with that buffer. The
    /// results of type `ty` are merged by mask.
    pub(in crate::vectorize) fn for_each_buffer(
        &mut self,
        buffer: ir::Value,
        ty: Option<Type>,
        mut each: impl FnMut(&mut Self, Value, Value) -> Option<Value>,
    ) -> Option<Value> {
        let numbers = self.vector(buffer);
        let rest = self.builder.variables.declare(Type::Mask, Unwritten::Empty);
        let found = ty.map(|ty| self.builder.variables.declare(ty, Unwritten::Undef));
        let [top, body, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.variables.write(self.builder.current(), rest, self.exec);
        if let (Some(found), Some(ty)) = (found, ty) {
            let undef = self.builder.emit_one(InstData::Undef { ty });
            self.builder.variables.write(self.builder.current(), found, undef);
        }
        // The callers have read the values that the body uses in this block, which dominates the body.
        self.builder.jump(top);
        self.builder.switch_to(top);
        self.builder.variables.dominance.open_loop(top, LoopSpan::Within);
        self.note_exec();
        let left = self.builder.read(rest, top);
        let any = self.builder.emit_value(InstData::Any { mask: left });
        self.builder.branch(any, body, end);
        self.builder.switch_to(body);
        self.builder.seal(body);
        self.note_exec();
        let lane = self.builder.emit_value(InstData::FirstLane { mask: left });
        let number = self.builder.emit_value(InstData::Extract { vector: numbers, lane });
        let same = self.builder.splat(number);
        let same = self.builder.pure(Op::IEq, &[numbers, same]);
        let lanes = self.builder.and(left, same);
        let exec = std::mem::replace(&mut self.exec, lanes);
        let result = each(self, number, lanes);
        self.exec = exec;
        let last = self.builder.current();
        if let (Some(found), Some(result)) = (found, result) {
            let before = self.builder.read(found, last);
            let after = self.builder.select(lanes, result, before);
            self.builder.variables.write(last, found, after);
        }
        let after = self.builder.and_not(left, same);
        self.builder.variables.write(last, rest, after);
        self.builder.jump(top);
        self.builder.seal(top);
        self.builder.variables.dominance.close_loop();
        self.builder.switch_to(end);
        self.builder.seal(end);
        self.note_exec();
        found.map(|found| self.builder.read(found, end))
    }

    /// Reads the values of an offset's terms in the block before a waterfall loop that uses them.
    pub(in crate::vectorize) fn prepare_terms(&mut self, offset: &Offset) {
        for term in offset.terms() {
            self.get(term.value);
        }
    }
}
