//! Loads and stores.
//!
//! `plan` decides once per kernel how each access is done: `pattern` and `segments` classify the words that the lanes
//! have, `interleave` finds groups of accesses that are done together, and `cost` chooses. Then `emit` and
//! `emit_groups` emit the code, `target` and `bounds` its addresses and bounds checks; `subword` handles 8- and 16-bit
//! accesses, and `waterfall` accesses whose buffer differs between lanes.

pub(super) mod bounds;
mod cost;
mod emit;
mod emit_groups;
mod interleave;
pub(super) mod pattern;
pub(super) mod plan;
mod segments;
mod subword;
pub(super) mod target;
mod waterfall;

use self::interleave::is_private;
use self::plan::AccessPlan;
use self::target::Target;
use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, Place, Width};
use crate::simd::InstData;

impl Widen<'_> {
    /// `load` of words.
    pub(super) fn load(&mut self, result: ir::Value, ty: ir::Type, place: &Place, plan: &AccessPlan) {
        let is_small = self.plans.is_small_kernel || self.plans.address_words.contains(result);
        // A waterfall loop merges vectors.
        let ty = if self.divergent_buffer(place).is_some() { ir::Type::F32 } else { ty };
        let value = self.for_each_region(place, plan, Some(Type::V32), |widen, region| match *place {
            Place::Variable { variable, .. } if widen.is_private(variable) => {
                let target = widen.private(variable, &plan.offset);
                Some(widen.load_target(target, ty))
            }
            // Push constants are constant during a dispatch: loaded once, before the loops over subgroups and
            // workgroups, where that saves time.
            Place::Push { .. } if ty == ir::Type::I32 && plan.offset.lanes.is_empty() && is_small => {
                let address = widen.word(region, plan);
                Some(widen.builder.emit_one(InstData::Load { ty: Type::S32, address }))
            }
            _ => Some(widen.load_from(region, plan, ty)),
        });
        if let Some(value) = value {
            self.define_as(result, value);
        }
    }

    /// `store` of words.
    pub(super) fn store(&mut self, place: &Place, value: ir::Value, plan: &AccessPlan) {
        if self.divergent_buffer(place).is_some() {
            self.prepare_terms(&plan.offset);
            let stored = self.vector(value);
            self.for_each_region(place, plan, None, |widen, region| {
                let target = widen.target(region, plan);
                widen.store_target(target, stored);
                None
            });
            return;
        }
        let region = self.region_of_place(place);
        match *place {
            Place::Push { .. } => {}
            Place::Variable { variable, .. } if self.is_private(variable) => {
                let target = self.private(variable, &plan.offset);
                self.store_value(target, value);
            }
            _ => self.store_to(region, plan, value),
        }
    }

    /// Stores a value in the form that the target needs.
    fn store_value(&mut self, target: Target, value: ir::Value) {
        let value = match target {
            Target::Word(_) if self.shape(value) == Shape::Uniform => self.get(value),
            _ => self.vector(value),
        };
        self.store_target(target, value);
    }

    pub(super) fn in_lanes(&mut self, value: Value) -> Value {
        if self.builder.ty(value).is_vector() { value } else { self.builder.splat(value) }
    }

    pub(super) fn is_private(&self, variable: ir::Variable) -> bool {
        is_private(self.kernel, variable)
    }

    pub(super) fn load_target(&mut self, target: Target, ty: ir::Type) -> Value {
        let ty = if ty == ir::Type::I32 { Type::S32 } else { Type::V32 };
        match target {
            Target::Word(address) => self.builder.emit_value(InstData::Load { ty, address }),
            Target::Row(row) => self.builder.emit_value(InstData::LoadRow { row }),
            Target::Lanes(lanes, mask) => self.builder.emit_value(InstData::Gather { lanes, mask }),
        }
    }

    pub(super) fn store_target(&mut self, target: Target, value: Value) {
        let mask = self.exec;
        match target {
            Target::Word(address) => self.builder.emit(InstData::Store { address, value, mask }),
            Target::Row(row) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::StoreRow { row, value, mask })
            }
            Target::Lanes(lanes, mask) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::Scatter { width: Width::Word, lanes, value, mask })
            }
        };
    }
}
