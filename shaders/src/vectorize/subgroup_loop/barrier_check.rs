//! Checked mode: what a control barrier tells the observer, once for the workgroup, between the loop in which the
//! subgroups reach it and the next one. Where no invocation knows more than others, that is a new epoch, which machine
//! code takes itself (`check/offer.rs`).

use smallvec::SmallVec;

use super::SubgroupLoops;
use crate::check;
use crate::check::inline::state;
use crate::ir::{Kernel, Op, Site, Width};
use crate::simd::builder::Builder;
use crate::simd::{Address, BlockCall, CheckRoutine, ContextField, InstData, LANES, Routine, Type, Value};
use crate::vectorize::plans::Plans;

/// A control barrier with a check.
#[derive(Clone, Debug)]
pub(in crate::vectorize) struct BarrierCheck {
    site: Site,
    settled: Option<InlineBarrier>,
}

/// What machine code does of a barrier.
#[derive(Clone, Debug)]
struct InlineBarrier {
    /// The slice with the state.
    state: u32,
    /// The difference of two epochs that follow each other.
    unit: u32,
    /// The words that become the new epoch.
    words: SmallVec<[u32; 4]>,
}

impl BarrierCheck {
    pub(in crate::vectorize) fn new(kernel: &Kernel, plans: &Plans, site: Site) -> Self {
        let words = if plans.inline.is_empty() { None } else { check::words_of_barrier(&kernel.sites[site].action) };
        let settled = words.map(|words| InlineBarrier {
            state: plans.layout.descriptor_count + plans.inline.slices() - 1,
            unit: check::CellLayout::new(kernel.invocations(), LANES).unit(),
            words,
        });
        Self { site, settled }
    }

    /// Emits it for a workgroup whose last subgroup has these lanes.
    fn emit(&self, builder: &mut Builder, lanes: Value) {
        let [call, end] = [builder.create_block(), builder.create_block()];
        let enter = |builder: &mut Builder, block| {
            builder.switch_to(block);
            builder.kernel.blocks[block].exec = Some(lanes);
        };
        match &self.settled {
            None => builder.jump(call),
            Some(InlineBarrier { state, unit, words }) => {
                let buffer = builder.s32(*state);
                let base = builder.emit_one(InstData::BufferBase { buffer });
                let word = |word: u32| Address { base, index: None, scale: 1, disp: 4 * word.cast_signed() };
                let [epoch, last] = [state::EPOCH, state::LAST_EPOCH]
                    .map(|at| builder.emit_value(InstData::Load { ty: Type::S32, address: word(at) }));
                let next = builder.plus(epoch, *unit);
                let fits = builder.pure(Op::ULe, &[next, last]);
                let settled = builder.create_block();
                builder.branch(fits, settled, call);
                enter(builder, settled);
                for &at in words {
                    builder.emit(InstData::Store { width: Width::Word, address: word(at), value: next, mask: lanes });
                }
                builder.jump(end);
            }
        }
        enter(builder, call);
        let routine = Routine::Check(CheckRoutine::Barrier(self.site));
        let area = builder.emit_one(InstData::Context { field: ContextField::Calls });
        builder.call(routine, area, lanes);
        builder.jump(end);
        enter(builder, end);
    }
}

impl SubgroupLoops {
    /// The edge to a region by way of the check of the barrier before it. `lanes`: of the last subgroup.
    pub(super) fn by_way_of_check(
        &self,
        builder: &mut Builder,
        region: usize,
        lanes: Option<Value>,
        to: BlockCall,
    ) -> BlockCall {
        let (Some(check), Some(lanes)) = (&self.regions[region].check, lanes) else { return to };
        let here = builder.current();
        let block = builder.create_block();
        builder.switch_to(block);
        builder.kernel.blocks[block].exec = Some(lanes);
        check.emit(builder, lanes);
        builder.emit(InstData::Jump { to });
        builder.return_to(here);
        BlockCall::new(block)
    }
}
