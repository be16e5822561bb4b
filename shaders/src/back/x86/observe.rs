//! Checked mode of machine code: turns the calls of a subgroup into the calls of an observer, lane by lane.
//!
//! All control barriers of such code are in uniform control flow, whatever invocations read (`vectorize/check.rs`): so
//! the whole workgroup meets at each, and one call tells of that.

use super::call::LaneOrder;
use crate::abi::{SUBGROUP_SIZE, address_range_at};
use crate::back::watch::Watch;
use crate::check::observer::Observer;
use crate::guest::GuestSlice;
use crate::image::Descriptor;
use crate::ir::{Observed, ObservedKind};
use crate::simd::CheckRoutine;

/// The dispatch's memory, as checks look it up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resources<'a> {
    pub(super) buffers: &'a [GuestSlice],
    /// How many of the buffers are descriptors; after them come address ranges.
    pub(super) descriptors: usize,
    pub(super) images: &'a [Descriptor],
}

/// The observer of the workgroup that runs.
pub(super) struct Monitor<'a> {
    watch: Watch<'a>,
    invocations: u32,
    lanes: LaneOrder,
    is_ascending: bool,
    /// Whether the code settles accesses itself.
    settles: bool,
}

impl<'a> Monitor<'a> {
    pub(super) fn new(observer: &'a mut dyn Observer, invocations: u32, settles: bool) -> Self {
        let lanes = std::array::from_fn(|lane| lane as u32);
        Self { watch: Watch::new(observer, 0), invocations, lanes, is_ascending: true, settles }
    }

    /// A workgroup begins; its lanes are in this order.
    pub(super) fn begin(&mut self, workgroup: u64, lanes: LaneOrder) {
        self.watch.begin(workgroup);
        if self.settles {
            self.watch.observer.begin(workgroup);
        }
        self.lanes = lanes;
        self.is_ascending = lanes.is_sorted();
    }

    /// The workgroup has ended.
    pub(super) fn end(&mut self) {
        self.watch.ends(self.invocations);
    }

    /// Calls the observer for a subgroup that executes a check; `rows` are the operands of the routine.
    #[inline(never)]
    pub(super) fn run(&mut self, routine: &CheckRoutine, resources: Resources<'_>, rows: &[[u32; 16]]) {
        // All invocations of the workgroup are at the barrier: the rows say nothing more.
        if let CheckRoutine::Barrier(site) = *routine {
            return self.watch.meet(site, self.invocations);
        }
        let Some((head, operands)) = rows.split_first() else { return };
        let word = |at: u32| head[at as usize / 4];
        let (active, subgroup) = (word(CheckRoutine::ACTIVE), word(CheckRoutine::SUBGROUP));
        let first = subgroup * SUBGROUP_SIZE;
        if self.together(routine, (first, active), resources, operands) {
            return;
        }
        let lanes = self.lanes.into_iter().filter(|lane| active >> lane & 1 != 0);
        let exchanged = |lane: u32| word(CheckRoutine::WROTE) >> lane & 1 != 0;
        match (routine, operands) {
            (&CheckRoutine::Buffer(what), [numbers, offsets]) => {
                for lane in lanes {
                    let (number, offset) = (numbers[lane as usize], offsets[lane as usize]);
                    self.buffer(first + lane, what, resources, (number, offset), exchanged(lane));
                }
            }
            (&CheckRoutine::Variable(what, variable), [offsets]) => {
                for lane in lanes {
                    if let Some(target) = what.in_variable(variable, offsets[lane as usize]) {
                        self.watch.access(first + lane, what, target, exchanged(lane));
                    }
                }
            }
            (CheckRoutine::Image(site, op), [images, samplers, args @ ..]) => {
                let find = |number: u32| resources.images.get(number as usize).unwrap_or(&Descriptor::NULL);
                for lane in lanes {
                    let at = lane as usize;
                    let args: smallvec::SmallVec<[u32; 16]> = args.iter().map(|row| row[at]).collect();
                    let what = (op, find(images[at]), find(samplers[at]));
                    self.watch.texels(first + lane, *site, what, &args, images[at]);
                }
            }
            (&CheckRoutine::Fence(site), _) => lanes.for_each(|lane| self.watch.fence(first + lane, site)),
            (&CheckRoutine::SubgroupBarrier(site), _) => {
                let group: smallvec::SmallVec<[u32; 16]> = lanes.map(|lane| first + lane).collect();
                self.watch.release_subgroup(site, &group, first..(first + SUBGROUP_SIZE).min(self.invocations));
            }
            _ => {}
        }
    }

    /// Tells of plain accesses in one call, if all are to one buffer or variable and in bounds. Whether it did.
    #[inline]
    fn together(
        &mut self,
        routine: &CheckRoutine,
        (first, active): (u32, u32),
        resources: Resources<'_>,
        operands: &[[u32; 16]],
    ) -> bool {
        let (&(CheckRoutine::Buffer(what) | CheckRoutine::Variable(what, _)), Some(offsets)) =
            (routine, operands.last())
        else {
            return false;
        };
        if what.kind != ObservedKind::Plain || active == 0 || !self.is_ascending {
            return false;
        }
        let active_masks: [u32; 16] = std::array::from_fn(|lane| 0u32.wrapping_sub(active >> lane & 1));
        let highest = (0..16).fold(0, |highest, lane| highest.max(offsets[lane] & active_masks[lane]));
        let (start, last) = match (routine, operands) {
            (&CheckRoutine::Variable(_, variable), _) => {
                (what.in_variable(variable, 0), what.in_variable(variable, highest))
            }
            (_, [numbers, _]) => {
                let number = numbers[active.trailing_zeros() as usize & 15];
                let differ = (0..16).fold(0, |differ, lane| differ | ((numbers[lane] ^ number) & active_masks[lane]));
                if differ != 0 || number as usize >= resources.descriptors {
                    return false;
                }
                let Some(&buffer) = resources.buffers.get(number as usize) else { return false };
                (what.in_buffer(buffer, number, 0), what.in_buffer(buffer, number, highest))
            }
            _ => return false,
        };
        let (Some(start), Some(_)) = (start, last) else { return false };
        self.watch.accesses((first, active as u16), what.site, start, offsets);
        true
    }

    fn buffer(
        &mut self,
        local: u32,
        what: Observed,
        resources: Resources<'_>,
        (number, offset): (u32, u32),
        exchanged: bool,
    ) {
        let Some(&buffer) = resources.buffers.get(number as usize) else { return };
        let Some(mut target) = what.in_buffer(buffer, number, offset) else { return };
        if number as usize >= resources.descriptors {
            // Address ranges overlap, and lanes share one: the reference is the one that holds the address.
            let address = (buffer.address() as u64).wrapping_add(offset.into());
            let range = address_range_at(resources.buffers, resources.descriptors, address);
            target.reference = range.unwrap_or(number);
        }
        self.watch.access(local, what, target, exchanged);
    }
}

impl std::fmt::Debug for Monitor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("invocations", &self.invocations).finish_non_exhaustive()
    }
}
