//! Checked mode: checks that machine code settles itself. The cells of an access's words are loaded, compared and
//! replaced as the detector would do (`check/rows.rs`). An access that these tests do not settle calls the observer.
//!
//! Three stages follow each other, each in blocks of its own. The first one knows the cases that are frequent and cost
//! little: of device memory that no access of the dispatch has touched, of workgroup memory what barriers order, and
//! reads that change no cell. The second one also knows accesses of the invocation itself. The third one
//! calls the observer.

mod cells;
pub(super) mod eligible;
mod privacy;

use self::eligible::{CheckedAccess, descriptor_of, first_slice, is_input, is_marked_atomic, plain};
use super::access::bounds::{LaneIndex, lane_index, uniform_part};
use super::access::pattern::AccessPattern;
use super::access::plan::AccessPlan;
use super::state::Widen;
use crate::check::inline::{first_cell_of_variable, state};
use crate::check::{CellLayout, Group};
use crate::ir::{Observed, ObservedKind, ObservedVariable, Op, Place, Site, SiteAction, StorageClass, Width};
use crate::simd::{Address, Block, BoundedIndex, InstData, LANES, LaneAddress, Row, Type, Value, WideOp};

/// The words of an access: the addresses of their cells and marks.
#[derive(Clone, Copy, Debug)]
struct CheckedWords {
    written: Value,
    read: Value,
    /// Where instructions are noted, a byte for each word.
    marks: Option<Value>,
    /// The index of the word, of the first lane's, or of each lane's.
    index: Value,
    /// Which of the lanes' words there are.
    set: WordSet,
}

/// Which words the lanes have, and what is in bounds.
#[derive(Clone, Copy, Debug)]
enum WordSet {
    /// One word for all lanes; the number of words in bounds.
    Same(Value),
    /// Consecutive words; the number of words in bounds.
    Contiguous(Value),
    /// A word for each lane, perhaps one for several; the lanes that are active and in bounds.
    PerLane(Value),
}

/// What an access replaces in the cells of its words.
#[derive(Clone, Copy, Debug)]
struct CellUpdate {
    old: Value,
    new: Value,
}

/// What cells are compared with: `s32`, or `v32` for a cell of each lane.
#[derive(Clone, Copy, Debug)]
struct CellBounds {
    /// Cells below are settled. 0 if the access makes its call in any case, or nothing is settled.
    settled_below: Value,
    /// The first epoch of the workgroup: its cells are from here on.
    first_epoch: Value,
    /// Cells of this workgroup below are ordered before this access.
    ordered_below: Value,
    /// The epoch of the last barrier of the workgroup, which does not order private accesses.
    barrier_epoch: Value,
    read_cells: ReadCells,
    groups: GroupCodes,
}

/// Cells of reads by several invocations, of the present epoch.
#[derive(Clone, Copy, Debug)]
struct ReadCells {
    subgroup: Value,
    workgroup: Value,
    several_workgroups: Value,
}

/// Groups of invocations as cells of this workgroup have them (`check/cells.rs`).
#[derive(Clone, Copy, Debug)]
struct GroupCodes {
    /// The bits of a cell that have the group.
    mask: Value,
    /// That of the first subgroup; those below are single invocations.
    first_subgroup: Value,
    /// That of the present subgroup.
    subgroup: Value,
}

impl Widen<'_> {
    /// A check that machine code settles if it can; false if this check is a call only.
    pub(super) fn inline_check(&mut self, site: Site, place: &Place, width: Width, plan: Option<&AccessPlan>) -> bool {
        let Some(plan) = plan.filter(|plan| plan.offset.is_multiple_of(width.bytes())) else { return false };
        let shared = matches!(place, Place::Variable { .. });
        let Some(checked) = plain(self.kernel, site, width, shared) else { return false };
        // Memory that is accessed in several widths has a cell for each word, and smaller accesses are calls.
        if self.grain(place) != Some(width.bytes()) {
            return false;
        }
        // Atomics give a word a history: no other binding hides a read, unless it is only read (`offer.rs`).
        let descriptor = descriptor_of(self.kernel, place, &|binding| self.plans.layout.descriptors[binding]);
        let checked = CheckedAccess {
            unread: !self.plans.checked_reads.have(self.kernel, place),
            only_reads: eligible::is_only_read(&self.plans.inline, descriptor),
            ..checked
        };
        let Some(mut words) = self.checked_words(checked, place, plan) else { return false };
        if let Some(marks) = words.marks {
            self.mark(site, &words, marks);
        }
        // Of several lanes that write one word none is settled, but often there is only one.
        if let (WordSet::Same(limit), true) = (words.set, checked.writes) {
            words = self.as_lanes(&words, limit);
        }
        // Operands are read here, since their values must dominate all later blocks.
        self.prepare_call(place);
        if !checked.writes && is_input(self.kernel, place) {
            self.call_once(Observed::access(site, width), place);
            return true;
        }
        match words.set {
            WordSet::Same(limit) => self.check_word(checked, &words, limit, place),
            WordSet::Contiguous(_) | WordSet::PerLane(_) => self.check_lanes(checked, &words, place),
        }
        true
    }

    /// The bytes that a cell of a place stands for, if it has cells.
    fn grain(&self, place: &Place) -> Option<u32> {
        let (kernel, plans) = (self.kernel, self.plans);
        match *place {
            Place::Variable { variable, .. } => {
                plans.inline.grain_of_variable(ObservedVariable::new(kernel, variable, 0).number)
            }
            _ => {
                let number = descriptor_of(kernel, place, &|binding| plans.layout.descriptors[binding])?;
                plans.inline.grain_of_descriptor(number)
            }
        }
    }

    /// The sync of an atomic that needs marks only; false if it is a call.
    pub(super) fn inline_atomic(&mut self, what: Observed, place: &Place, plan: Option<&AccessPlan>) -> bool {
        let Some(plan) = plan.filter(|plan| plan.offset.is_aligned()) else { return false };
        let (reads, writes) = match what.kind {
            ObservedKind::AtomicRead => (true, false),
            ObservedKind::AtomicWrite => {
                (!matches!(self.kernel.sites[what.site].action, SiteAction::Atomic { op, .. } if op.is_store()), true)
            }
            // It writes in some lanes.
            _ => return false,
        };
        if !is_marked_atomic(self.kernel, &self.plans.mutual_bindings, place) {
            return false;
        }
        for writes in [false, true].into_iter().filter(|&mark| if mark { writes } else { reads }) {
            let (site, width) = (what.site, Width::Word);
            let checked =
                CheckedAccess { site, width, writes, private: false, shared: false, unread: false, only_reads: false };
            let Some(words) = self.checked_words(checked, place, plan) else { return false };
            let Some(marks) = words.marks else { return false };
            self.mark(what.site, &words, marks);
        }
        self.prepare_call(place);
        self.call_once(what, place);
        true
    }

    /// Where the cells of an access are: one for each lane.
    fn checked_words(&mut self, checked: CheckedAccess, place: &Place, plan: &AccessPlan) -> Option<CheckedWords> {
        let (kernel, plans) = (self.kernel, self.plans);
        let (checks, layout) = (&plans.inline, &plans.layout);
        if checks.is_empty() {
            return None;
        }
        // The offset of the cell in the plane.
        let scale = 4 / checked.width.bytes();
        let offset = plan.offset.scaled(scale)?;
        let descriptors = layout.descriptor_count;
        let (first, before, bytes, marks) = match *place {
            Place::Variable { variable, .. } => {
                let first = descriptors + 4 * checks.descriptors.len() as u32;
                let before = first_cell_of_variable(layout.variable_offsets[variable].into(), scale);
                (first, before, Some(u64::from(scale) * u64::from(kernel.variables[variable].bytes)), None)
            }
            _ => {
                let number = descriptor_of(kernel, place, &|binding| layout.descriptors[binding])?;
                let first = first_slice(checks, descriptors, number)?;
                (first, 0, None, Some(first + if checked.writes { 2 } else { 3 }))
            }
        };
        let builder = &mut self.builder;
        let skip = builder.s64(before);
        let mut base = |slice: u32| {
            let buffer = builder.s32(slice);
            let base = builder.emit_one(InstData::BufferBase { buffer });
            builder.wide(WideOp::Add, &[base, skip])
        };
        let [mut written, mut read] = [base(first), base(first + 1)];
        let mut marks = marks.map(base);
        let buffer = builder.s32(first);
        let len = builder.emit_one(InstData::BufferLen { buffer });
        let mut len = builder.wide(WideOp::SubSat, &[len, skip]);
        if let Some(bytes) = bytes {
            let bytes = builder.s64(bytes);
            len = builder.wide(WideOp::Min, &[len, bytes]);
        }
        let two = builder.s64(2);
        let skip = uniform_part(self, &offset);
        let builder = &mut self.builder;
        let words = builder.wide(WideOp::Shr, &[skip, two]);
        if !matches!(plan.pattern(), AccessPattern::Uniform) {
            len = builder.wide(WideOp::SubSat, &[len, skip]);
            for base in [&mut written, &mut read] {
                *base = builder.wide(WideOp::Add, &[*base, skip]);
            }
            marks = marks.map(|marks| builder.wide(WideOp::Add, &[marks, words]));
            if let AccessPattern::Contiguous { index } = *plan.pattern() {
                let limit = builder.wide(WideOp::Shr, &[len, two]);
                let limit = builder.wide(WideOp::Truncate, &[limit]);
                let index = self.get(index);
                return Some(CheckedWords { written, read, marks, index, set: WordSet::Contiguous(limit) });
            }
            // Whole words: the unit of the index is one or two of them.
            let LaneIndex { index, scale, inside } = lane_index(self, &offset.lanes, len);
            let index = self.builder.times(index, u32::from(scale) / 4);
            let lanes = self.builder.and(self.exec, inside);
            return Some(CheckedWords { written, read, marks, index, set: WordSet::PerLane(lanes) });
        }
        // An index above all words stays above.
        let max = builder.s64(u32::MAX.into());
        let index = builder.wide(WideOp::Min, &[words, max]);
        let index = builder.wide(WideOp::Truncate, &[index]);
        let limit = builder.wide(WideOp::Shr, &[len, two]);
        let limit = builder.wide(WideOp::Truncate, &[limit]);
        Some(CheckedWords { written, read, marks, index, set: WordSet::Same(limit) })
    }

    /// The one word of all lanes as a word of each.
    fn as_lanes(&mut self, words: &CheckedWords, limit: Value) -> CheckedWords {
        let builder = &mut self.builder;
        let inside = builder.pure(Op::ULt, &[words.index, limit]);
        let inside = builder.splat(inside);
        let lanes = builder.and(self.exec, inside);
        let four = builder.s64(4);
        let skip = builder.wide(WideOp::Extend, &[words.index]);
        let skip = builder.wide(WideOp::Mul, &[skip, four]);
        let [written, read] = [words.written, words.read].map(|base| builder.wide(WideOp::Add, &[base, skip]));
        let index = builder.constant(Type::V32, 0);
        CheckedWords { written, read, index, set: WordSet::PerLane(lanes), ..*words }
    }

    /// Notes the instruction for the words that it accesses.
    fn mark(&mut self, site: Site, words: &CheckedWords, marks: Value) {
        let number = site.as_u32() + 1;
        let value = self.builder.constant(Type::V32, number.into());
        let (index, limit) = match words.set {
            WordSet::PerLane(mask) => {
                let lanes = LaneAddress { base: marks, index: words.index, scale: 1, disp: 0 };
                self.builder.emit(InstData::Scatter { width: Width::Byte, lanes, value, mask });
                return;
            }
            WordSet::Contiguous(limit) => (words.index, limit),
            WordSet::Same(limit) => {
                let address =
                    Address { base: marks, index: Some(BoundedIndex { index: words.index, limit }), scale: 1, disp: 0 };
                let value = self.builder.s32(number);
                self.builder.emit(InstData::Store { width: Width::Byte, address, value, mask: self.exec });
                return;
            }
        };
        let row = Row { base: marks, index, limit, width: Width::Byte };
        self.builder.emit(InstData::StoreRow { row, value, mask: self.exec });
    }

    fn state(&mut self, word: u32) -> Value {
        let slice = self.plans.layout.descriptor_count + self.plans.inline.slices() - 1;
        let buffer = self.builder.s32(slice);
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let address = Address { base, index: None, scale: 1, disp: 4 * word.cast_signed() };
        self.builder.emit_value(InstData::Load { ty: Type::S32, address })
    }

    /// Calls the observer if the instruction has made no call in this dispatch.
    fn call_once(&mut self, what: Observed, place: &Place) {
        let base = self.state(state::SITE_SETTLED_BELOW + what.site.as_u32());
        let known = self.is_not_zero(base);
        let [first, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.branch(known, end, first);
        self.enter_block(first);
        self.observe_place(what, place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    fn is_not_zero(&mut self, value: Value) -> Value {
        let zero = self.builder.s32(0);
        self.builder.pure(Op::INe, &[value, zero])
    }

    /// The number of the subgroup, times a constant.
    fn scaled_subgroup_number(&mut self, factor: u32) -> Value {
        let factor = self.builder.s32(factor);
        self.builder.pure(Op::IMul, &[self.subgroup.number, factor])
    }

    fn cell_layout(&self) -> CellLayout {
        CellLayout::new(self.kernel.invocations(), LANES)
    }

    /// The cell of the workgroup at an epoch.
    fn workgroup_cell(&mut self, epoch: Value) -> Value {
        let bits = self.cell_layout().group_bits(Group::Workgroup);
        self.builder.plus(epoch, bits)
    }

    fn bounds(&mut self, checked: CheckedAccess) -> CellBounds {
        let class = if checked.shared { StorageClass::Workgroup } else { StorageClass::Uniform };
        let first_epoch = self.state(state::FIRST_EPOCH);
        // Cells of earlier workgroups in workgroup memory are settled.
        let settled_below = match checked.shared {
            true => state::PRIVATE_SETTLED_BELOW,
            false => state::SITE_SETTLED_BELOW + checked.site.as_u32(),
        };
        let settled_below = self.state(settled_below);
        let barrier_epoch = self.state(state::ORDERED_BELOW + class as u32);
        // No barrier orders private accesses.
        let ordered_below = match (checked.private, checked.shared) {
            (false, _) => barrier_epoch,
            (true, false) => first_epoch,
            (true, true) => settled_below,
        };
        let epoch = self.state(state::EPOCH);
        let several_workgroups = self.state(state::SEVERAL_WORKGROUPS);
        let layout = self.cell_layout();
        let first_subgroup = layout.group_bits(Group::Subgroup(0));
        let group = self.scaled_subgroup_number(CellLayout::NEXT_GROUP);
        let group = self.builder.plus(group, first_subgroup);
        let subgroup = self.builder.pure(Op::IAdd, &[epoch, group]);
        let workgroup = self.workgroup_cell(epoch);
        let mask = self.builder.s32(layout.group_mask());
        let first_subgroup = self.builder.s32(first_subgroup);
        CellBounds {
            settled_below,
            first_epoch,
            ordered_below,
            barrier_epoch,
            read_cells: ReadCells { subgroup, workgroup, several_workgroups },
            groups: GroupCodes { mask, first_subgroup, subgroup: group },
        }
    }

    /// The same for a cell of each lane.
    fn splat_bounds(&mut self, bounds: &CellBounds) -> CellBounds {
        let mut splat = |value| self.builder.splat(value);
        CellBounds {
            settled_below: splat(bounds.settled_below),
            first_epoch: splat(bounds.first_epoch),
            ordered_below: splat(bounds.ordered_below),
            barrier_epoch: splat(bounds.barrier_epoch),
            read_cells: ReadCells {
                subgroup: splat(bounds.read_cells.subgroup),
                workgroup: splat(bounds.read_cells.workgroup),
                several_workgroups: splat(bounds.read_cells.several_workgroups),
            },
            groups: GroupCodes {
                mask: splat(bounds.groups.mask),
                first_subgroup: splat(bounds.groups.first_subgroup),
                subgroup: splat(bounds.groups.subgroup),
            },
        }
    }

    fn enter_block(&mut self, block: Block) {
        self.builder.switch_to(block);
        self.builder.seal(block);
        self.record_exec();
    }

    /// Reads the operands of the call in the block before those that may make it.
    fn prepare_call(&mut self, place: &Place) {
        if let Place::Buffer { buffer, .. } = *place {
            self.get(buffer);
        }
        self.get(place.offset());
    }
}
