//! Loads and stores.
//!
//! `plan` decides once per kernel how each access is done. It and the files below know no emitter, and each uses only
//! those before it: `offset` decomposes byte offsets, `constant_offsets`, `segments` and `elements` say which words the
//! lanes have, `pattern` has one name for each of these, `cost` has what they cost, `candidates` lists those of an
//! access and chooses, `interleave` finds groups of accesses that may be done together. `in_bounds` proves that
//! accesses need no bounds check.
//!
//! The code is emitted by free functions, each file on those before it: `bounds` (regions of memory, bounds checks),
//! `target` (addresses of words and rows), `emit` (segments and constant offsets), `waterfall` (buffers that differ
//! between lanes), `subword` (8- and 16-bit accesses), `emit_groups` (interleave groups).

pub(super) mod bounds;
mod candidates;
mod constant_offsets;
pub(super) mod cost;
mod elements;
mod emit;
pub(super) mod emit_groups;
mod in_bounds;
mod interleave;
pub(super) mod offset;
pub(super) mod pattern;
pub(super) mod plan;
mod segments;
pub(super) mod subword;
pub(super) mod target;
pub(super) mod waterfall;
pub(super) mod word_array;

use self::bounds::MemoryRegion;
pub(super) use self::offset::is_private;
use self::plan::AccessPlan;
use self::target::{AccessTarget, uniform_address};
use super::state::Widen;
use crate::ir::{self, Place};
use crate::simd::{InstData, Type};

/// `load` of words.
pub(super) fn load(widen: &mut Widen<'_>, result: ir::Value, ty: ir::Type, place: &Place, plan: &AccessPlan) {
    let is_small = widen.plans.is_small_kernel || widen.plans.address_words.contains(result);
    // A waterfall loop merges vectors.
    let ty = if waterfall::divergent_buffer(widen, place).is_some() { ir::Type::F32 } else { ty };
    let value = waterfall::for_each_region(widen, place, plan, Some(Type::V32), |widen, region| match *place {
        Place::Variable { variable, .. } if is_private(widen.kernel, variable) => {
            let target = AccessTarget::private(widen, variable, &plan.offset);
            Some(target.load(&mut widen.builder, ty))
        }
        // Push constants are constant during a dispatch: loaded once, before the loops over subgroups and
        // workgroups, where that saves time.
        Place::Push { .. } if ty == ir::Type::I32 && plan.offset.lanes.is_empty() && is_small => {
            let address = uniform_address(widen, region, plan);
            Some(widen.builder.emit_one(InstData::Load { ty: Type::S32, address }))
        }
        _ => Some(emit::load_from(widen, region, plan, ty)),
    });
    if let Some(value) = value {
        widen.define_as(result, value);
    }
}

/// `store` of words.
pub(super) fn store(widen: &mut Widen<'_>, place: &Place, value: ir::Value, plan: &AccessPlan) {
    if waterfall::divergent_buffer(widen, place).is_some() {
        waterfall::prepare_terms(widen, &plan.offset);
        let stored = widen.vector(value);
        waterfall::for_each_region(widen, place, plan, None, |widen, region| {
            let target = AccessTarget::new(widen, region, plan);
            target.store(&mut widen.builder, stored, widen.exec);
            None
        });
        return;
    }
    let region = MemoryRegion::of_place(widen, place);
    match *place {
        Place::Push { .. } => {}
        Place::Variable { variable, .. } if is_private(widen.kernel, variable) => {
            let target = AccessTarget::private(widen, variable, &plan.offset);
            target.store_value(widen, value);
        }
        _ => emit::store_to(widen, region, plan, value),
    }
}
