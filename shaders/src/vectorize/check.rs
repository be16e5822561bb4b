//! Checked mode: checks and syncs as calls, which tell an observer what the active lanes do. Most checks are settled
//! without one: see `inline_check/`.

use smallvec::{SmallVec, smallvec};

use super::access::plan::AccessPlan;
use super::image::ROW;
use super::state::Widen;
use crate::image::ImageOp;
use crate::ir::{self, Observed, ObservedVariable, Place, Scope, Site, SiteAction, Width};
use crate::simd::{CheckRoutine, ContextField, InstData, Routine, Value};

impl Widen<'_> {
    /// `check`: an access to memory that invocations share.
    pub(super) fn check(&mut self, site: Site, place: &Place, width: Width, plan: Option<&AccessPlan>) {
        if !self.inline_check(site, place, width, plan) {
            self.observe_place(Observed::access(site, width), place, None);
        }
    }

    /// `check_image`: the texels of an image instruction.
    pub(super) fn check_image(
        &mut self,
        site: Site,
        op: &ImageOp,
        (image, sampler): (ir::Value, Option<ir::Value>),
        args: &[ir::Value],
    ) {
        let operands = [image, sampler.unwrap_or(image)].into_iter().chain(args.iter().copied());
        let rows: SmallVec<[Value; 8]> = operands.map(|value| self.vector(value)).collect();
        self.observe(CheckRoutine::Image(site, *op), &rows, None);
    }

    /// `sync`: an atomic, a fence or a barrier.
    pub(super) fn sync(
        &mut self,
        site: Site,
        place: Option<&Place>,
        (bytes, plan): (u32, Option<&AccessPlan>),
        wrote: Option<ir::Value>,
    ) {
        let kernel = self.kernel;
        match (kernel.sites[site].action, place) {
            (SiteAction::Atomic { op, .. }, Some(place)) => {
                let what = Observed::atomic(site, op, bytes);
                if !self.inline_atomic(what, place, plan) {
                    self.observe_place(what, place, wrote);
                }
            }
            (SiteAction::Barrier { execution: Scope::Subgroup, .. }, _) => {
                self.observe(CheckRoutine::SubgroupBarrier(site), &[], None);
            }
            // One for all subgroups (`subgroup_loop/barrier_check.rs`).
            (SiteAction::Barrier { .. }, _) if self.has_regions() => self.pending_barrier = Some(site),
            (SiteAction::Barrier { .. }, _) => self.observe(CheckRoutine::Barrier(site), &[], None),
            _ => self.observe(CheckRoutine::Fence(site), &[], None),
        }
    }

    /// The byte offsets are numbers here, not terms of an address: the callee has bounds checks of its own.
    pub(super) fn observe_place(&mut self, what: Observed, place: &Place, wrote: Option<ir::Value>) {
        let (routine, rows): (_, SmallVec<[Value; 2]>) = match *place {
            Place::Buffer { buffer, offset, .. } => {
                (CheckRoutine::Buffer(what), smallvec![self.vector(buffer), self.vector(offset)])
            }
            Place::Variable { variable, offset } => {
                let first = self.plans.layout.variable_offsets[variable];
                let variable = ObservedVariable::new(self.kernel, variable, first);
                (CheckRoutine::Variable(what, variable), smallvec![self.vector(offset)])
            }
            // Push constants are not shared.
            Place::Push { .. } => return,
        };
        self.observe(routine, &rows, wrote);
    }

    fn observe(&mut self, routine: CheckRoutine, rows: &[Value], wrote: Option<ir::Value>) {
        let area = self.builder.emit_one(InstData::Context { field: ContextField::Calls });
        let active = self.builder.mask_bits(self.exec);
        let mut head: SmallVec<[(u32, Value); 3]> =
            smallvec![(CheckRoutine::ACTIVE, active), (CheckRoutine::SUBGROUP, self.subgroup.number)];
        if let Some(wrote) = wrote {
            let wrote = self.vector(wrote);
            let mask = self.builder.and(self.exec, wrote);
            head.push((CheckRoutine::WROTE, self.builder.mask_bits(mask)));
        }
        for (at, value) in head {
            self.builder.emit(InstData::FrameStore { frame: area, at, value });
        }
        for (row, &value) in (1..).zip(rows) {
            self.builder.emit(InstData::FrameStore { frame: area, at: row * ROW, value });
        }
        self.builder.call(Routine::Check(routine), area, self.exec);
    }
}
