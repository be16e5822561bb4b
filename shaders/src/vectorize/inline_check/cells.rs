//! The tests of an access's cells: whether they settle it, and what they become.

use super::super::state::Widen;
use crate::check::CellLayout;
use crate::check::inline::state;
use crate::ir::{Observed, Op, Place, StorageClass, Width};
use crate::simd::{Address, Block, BoundedIndex, InstData, LANES, LaneAddress, Row, Type, Value};

use super::eligible::CheckedAccess;
use super::{CellBounds, CellUpdate, CheckedWords, GroupCodes, ReadCells, WordSet};

impl Widen<'_> {
    /// One word, which the active lanes read.
    pub(super) fn check_word(&mut self, checked: CheckedAccess, words: &CheckedWords, limit: Value, place: &Place) {
        let bounds = &self.bounds(checked);
        let load = |widen: &mut Self, base: Value| {
            let address = Address { base, index: Some(BoundedIndex { index: words.index, limit }), scale: 4, disp: 0 };
            widen.builder.emit_value(InstData::Load { ty: Type::S32, address })
        };
        let [written, read] = [words.written, words.read].map(|base| load(self, base));
        let fine = self.is_write_ordered(written, checked, bounds);
        let covered = self.has_read_of_lane(read, bounds);
        let [compare_reads, call, record, end] = std::array::from_fn(|_| self.builder.create_block());
        let may_settle = self.is_not_zero(bounds.settled_below);
        let fine = self.builder.pure(Op::LAnd, &[fine, may_settle]);
        let done = self.builder.pure(Op::LAnd, &[fine, covered]);
        self.builder.branch(done, end, compare_reads);
        self.enter_block(compare_reads);
        // Several lanes read: the word is the subgroup's, or that of the group of earlier reads, too.
        let ordered = self.is_ordered(read, checked, bounds);
        let joined = self.joined_cell(read, bounds);
        let new = self.builder.select(ordered, bounds.read_cells.subgroup, joined);
        let joins = self.reads_join();
        let apart = self.is_after_barrier(read, bounds);
        let joins = self.builder.pure(Op::LAnd, &[joins, apart]);
        let either = self.builder.pure(Op::LOr, &[ordered, joins]);
        let bits = self.builder.mask_bits(self.exec);
        let below = self.builder.plus(bits, u32::MAX);
        let rest = self.builder.pure(Op::And, &[bits, below]);
        let zero = self.builder.s32(0);
        let several = self.builder.pure(Op::INe, &[rest, zero]);
        let all = self.builder.pure(Op::LAnd, &[fine, either]);
        let all = self.builder.pure(Op::LAnd, &[all, several]);
        self.builder.branch(all, record, call);
        self.enter_block(record);
        let address =
            Address { base: words.read, index: Some(BoundedIndex { index: words.index, limit }), scale: 4, disp: 0 };
        self.builder.emit(InstData::Store { width: Width::Word, address, value: new, mask: self.exec });
        self.builder.jump(end);
        self.enter_block(call);
        self.observe_place(Observed::access(checked.site, checked.width), place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    /// A word for each lane.
    pub(super) fn check_lanes(&mut self, checked: CheckedAccess, words: &CheckedWords, place: &Place) {
        let written = self.load_cells(words, words.written);
        let read = match checked.unread {
            true => self.builder.constant(Type::V32, 0),
            false => self.load_cells(words, words.read),
        };
        // The cells of the lanes' own accesses.
        let lanes = Box::new(std::array::from_fn(|lane| CellLayout::NEXT_GROUP * lane as u32));
        let lanes = self.builder.emit_one(InstData::Lanes { values: lanes });
        let epoch = self.state(state::EPOCH);
        let first = self.scaled_subgroup_number(CellLayout::NEXT_GROUP * LANES);
        let first = self.builder.pure(Op::IAdd, &[epoch, first]);
        let first = self.builder.splat(first);
        let mine = self.builder.pure(Op::IAdd, &[first, lanes]);
        let [compare_all, call, record, record_all, end] = std::array::from_fn(|_| self.builder.create_block());
        // Of device memory most words were not accessed before, of workgroup memory before the last barrier.
        let below = match (checked.shared, checked.private) {
            (false, _) => state::SITE_SETTLED_BELOW + checked.site.as_u32(),
            (true, false) => state::ORDERED_BELOW + StorageClass::Workgroup as u32,
            (true, true) => state::PRIVATE_SETTLED_BELOW,
        };
        let below = self.state(below);
        let below = self.builder.splat(below);
        let (fine, new) = if checked.writes || !checked.shared {
            let latest = if checked.unread { written } else { self.builder.pure(Op::UMax, &[written, read]) };
            (self.builder.pure(Op::ULt, &[latest, below]), mine)
        } else {
            let fine = self.builder.pure(Op::ULt, &[written, below]);
            let ordered = self.builder.pure(Op::ULt, &[read, below]);
            let workgroup = self.workgroup_cell(epoch);
            let workgroup = self.builder.splat(workgroup);
            let covered = self.builder.pure(Op::IEq, &[read, workgroup]);
            let either = self.builder.pure(Op::LOr, &[ordered, covered]);
            (self.builder.pure(Op::LAnd, &[fine, either]), self.builder.select(covered, read, mine))
        };
        let open = self.builder.and_not(self.exec, fine);
        let open = self.builder.any(open);
        self.builder.branch(open, compare_all, record);
        self.enter_block(record);
        let old = if checked.writes { written } else { read };
        self.record(checked, words, CellUpdate { old, new }, !checked.shared || checked.unread, [call, end]);
        self.enter_block(compare_all);
        let bounds = self.bounds(checked);
        let wide = self.splat_bounds(&bounds);
        let group = self.builder.constant(Type::V32, self.cell_layout().group_mask().into());
        let settled = |widen: &mut Self, cell: Value| {
            let ordered = widen.is_ordered(cell, checked, &wide);
            let differs = widen.builder.pure(Op::Xor, &[cell, mine]);
            let differs = widen.builder.pure(Op::And, &[differs, group]);
            let zero = widen.builder.constant(Type::V32, 0);
            let own = widen.builder.pure(Op::IEq, &[differs, zero]);
            let present = widen.builder.pure(Op::ULe, &[wide.first_epoch, cell]);
            let own = widen.builder.pure(Op::LAnd, &[own, present]);
            widen.builder.pure(Op::LOr, &[ordered, own])
        };
        let of_writes =
            if checked.only_reads { self.is_write_ordered(written, checked, &wide) } else { settled(self, written) };
        let of_reads = settled(self, read);
        let (of_reads, new) = if checked.writes {
            (of_reads, mine)
        } else {
            // The cell becomes that of the smallest group that has the earlier reads, too, as if joined one by one.
            let joined = self.joined_cell(read, &wide);
            let new = self.builder.select(of_reads, mine, joined);
            let covered = self.has_read_of_lane(read, &wide);
            let joins = self.reads_join();
            let joins = self.builder.splat(joins);
            let apart = self.is_after_barrier(read, &wide);
            let joins = self.builder.pure(Op::LAnd, &[joins, apart]);
            let either = self.builder.pure(Op::LOr, &[covered, joins]);
            (self.builder.pure(Op::LOr, &[of_reads, either]), self.builder.select(covered, read, new))
        };
        let mut fine = self.builder.pure(Op::LAnd, &[of_writes, of_reads]);
        if !checked.shared {
            let zero = self.builder.constant(Type::V32, 0);
            let may_settle = self.builder.pure(Op::INe, &[wide.settled_below, zero]);
            fine = self.builder.pure(Op::LAnd, &[fine, may_settle]);
        }
        let open = self.builder.and_not(self.exec, fine);
        let open = self.builder.any(open);
        self.builder.branch(open, call, record_all);
        self.enter_block(record_all);
        self.record(checked, words, CellUpdate { old, new }, checked.unread, [call, end]);
        self.enter_block(call);
        self.observe_place(Observed::access(checked.site, checked.width), place, None);
        self.builder.jump(end);
        self.enter_block(end);
    }

    /// The cells of the lanes' words; 0 out of bounds.
    fn load_cells(&mut self, words: &CheckedWords, base: Value) -> Value {
        let load = match words.set {
            WordSet::Same(limit) | WordSet::Contiguous(limit) => {
                InstData::LoadRow { row: Row { base, index: words.index, limit, width: Width::Word } }
            }
            WordSet::PerLane(mask) => {
                InstData::Gather { lanes: LaneAddress { base, index: words.index, scale: 4, disp: 0 }, mask }
            }
        };
        self.builder.emit_value(load)
    }

    fn store_cells(&mut self, words: &CheckedWords, base: Value, value: Value) {
        let store = match words.set {
            WordSet::Same(limit) | WordSet::Contiguous(limit) => {
                let row = Row { base, index: words.index, limit, width: Width::Word };
                InstData::StoreRow { row, value, mask: self.exec }
            }
            WordSet::PerLane(mask) => {
                let lanes = LaneAddress { base, index: words.index, scale: 4, disp: 0 };
                InstData::Scatter { width: Width::Word, lanes, value, mask }
            }
        };
        self.builder.emit(store);
    }

    /// Replaces the cells, and goes on to the second block. After a write no read counts; `unread` if there are none,
    /// or the API settled all. If several lanes have one word, the cells stay as they were, and the first block is
    /// next.
    fn record(
        &mut self,
        checked: CheckedAccess,
        words: &CheckedWords,
        CellUpdate { old, new }: CellUpdate,
        unread: bool,
        [call, end]: [Block; 2],
    ) {
        let base = if checked.writes { words.written } else { words.read };
        self.store_cells(words, base, new);
        if let WordSet::PerLane(lanes) = words.set {
            // Of lanes with one word only one finds its own cell there.
            let found = self.load_cells(words, base);
            let differ = self.builder.pure(Op::INe, &[found, new]);
            let differ = self.builder.and(lanes, differ);
            let differ = self.builder.any(differ);
            let [restore, apart] = std::array::from_fn(|_| self.builder.create_block());
            self.builder.branch(differ, restore, apart);
            self.enter_block(restore);
            self.store_cells(words, base, old);
            self.builder.jump(call);
            self.enter_block(apart);
        }
        if checked.writes && !unread {
            let none = self.builder.constant(Type::V32, 0);
            self.store_cells(words, words.read, none);
        }
        self.builder.jump(end);
    }

    /// Whether the cell's access is ordered before the next access of every invocation of the workgroup.
    fn is_ordered(&mut self, cell: Value, checked: CheckedAccess, bounds: &CellBounds) -> Value {
        if checked.shared {
            return self.builder.pure(Op::ULt, &[cell, bounds.ordered_below]);
        }
        let before = self.builder.pure(Op::ULt, &[cell, bounds.settled_below]);
        let since = self.builder.pure(Op::ISub, &[cell, bounds.first_epoch]);
        let known = self.builder.pure(Op::ISub, &[bounds.ordered_below, bounds.first_epoch]);
        let known = self.builder.pure(Op::ULt, &[since, known]);
        self.builder.pure(Op::LOr, &[before, known])
    }

    /// The same of a write: through another reference, what orders it is outside of the dispatch.
    fn is_write_ordered(&mut self, cell: Value, checked: CheckedAccess, bounds: &CellBounds) -> Value {
        match checked.only_reads {
            true => self.builder.pure(Op::ULt, &[cell, bounds.settled_below]),
            false => self.is_ordered(cell, checked, bounds),
        }
    }

    /// Whether a cell of reads stands for a read of any lane, too.
    fn has_read_of_lane(&mut self, read: Value, bounds: &CellBounds) -> Value {
        let ReadCells { subgroup, workgroup, several_workgroups } = bounds.read_cells;
        let [subgroup, workgroup, several] =
            [subgroup, workgroup, several_workgroups].map(|cell| self.builder.pure(Op::IEq, &[read, cell]));
        let either = self.builder.pure(Op::LOr, &[subgroup, workgroup]);
        self.builder.pure(Op::LOr, &[either, several])
    }

    /// Whether no invocation has acquired anything, so that only barriers of the workgroup order reads.
    fn reads_join(&mut self) -> Value {
        let joins = self.state(state::READS_JOIN);
        self.is_not_zero(joins)
    }

    /// Whether the cell's reads are later than the last barrier: then a new read joins them and does not replace them.
    fn is_after_barrier(&mut self, read: Value, bounds: &CellBounds) -> Value {
        let since = self.builder.pure(Op::ISub, &[read, bounds.first_epoch]);
        let known = self.builder.pure(Op::ISub, &[bounds.barrier_epoch, bounds.first_epoch]);
        self.builder.pure(Op::ULe, &[known, since])
    }

    /// The cell of reads of this subgroup and of those that a cell stands for, which are not ordered.
    fn joined_cell(&mut self, read: Value, bounds: &CellBounds) -> Value {
        let GroupCodes { mask, first_subgroup, subgroup: own } = bounds.groups;
        let group = self.builder.pure(Op::And, &[read, mask]);
        // The subgroup of an invocation, as the group of it.
        let lanes = self.constant_like(read, (CellLayout::NEXT_GROUP * LANES).ilog2());
        let one = self.constant_like(read, CellLayout::NEXT_GROUP.ilog2());
        let subgroup = self.builder.pure(Op::LShr, &[group, lanes]);
        let subgroup = self.builder.pure(Op::Shl, &[subgroup, one]);
        let subgroup = self.builder.pure(Op::IAdd, &[subgroup, first_subgroup]);
        let is_invocation = self.builder.pure(Op::ULt, &[group, first_subgroup]);
        let subgroup = self.builder.select(is_invocation, subgroup, group);
        let same = self.builder.pure(Op::IEq, &[subgroup, own]);
        let near = self.builder.select(same, bounds.read_cells.subgroup, bounds.read_cells.workgroup);
        let is_near = self.builder.pure(Op::ULe, &[bounds.first_epoch, read]);
        self.builder.select(is_near, near, bounds.read_cells.several_workgroups)
    }

    /// A constant of the type of another value.
    fn constant_like(&mut self, value: Value, bits: u32) -> Value {
        let ty = self.builder.ty(value);
        self.builder.constant(ty, bits.into())
    }
}
