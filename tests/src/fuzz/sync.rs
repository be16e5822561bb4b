//! Barriers, fences and atomics.

use spelter_shaders::ir::{AtomicOp, BlockCall, BufferSpace, InstData, Merge, Op, Place, Scope as Reach, Semantics};

use super::feature::Feature;
use super::flow::Shape;
use super::layout::{Counter, CounterHome, CounterKind, Region, SLOTS};
use super::maker::Maker;
use super::scope::{Kind, Level};

/// `acq_rel|storage|workgroup`.
const ALL_MEMORY: Semantics = Semantics(0x8 | 0x40 | 0x100);

impl Maker {
    /// A barrier that the whole workgroup reaches.
    pub(super) fn workgroup_barrier(&mut self, semantics: Semantics) {
        debug_assert_eq!(self.ctx, Level::Workgroup);
        self.mark(Feature::BarrierWorkgroup);
        if self.memory.returned {
            self.mark(Feature::BarrierAfterReturn);
        }
        let is_loop = |shape: Shape| shape == Shape::Loop;
        if self.constructs.iter().any(|construct| is_loop(construct.shape)) {
            self.mark(Feature::BarrierInLoop);
        }
        if self.constructs.iter().any(|construct| !is_loop(construct.shape)) {
            self.mark(Feature::BarrierInBranch);
        }
        self.builder.push(InstData::Barrier { execution: Reach::Workgroup, memory: Reach::Workgroup, semantics });
    }

    fn subgroup_barrier(&mut self) {
        self.mark(Feature::BarrierSubgroup);
        let semantics = ALL_MEMORY;
        self.builder.push(InstData::Barrier { execution: Reach::Subgroup, memory: Reach::Subgroup, semantics });
    }

    /// Brings all phases to the state of the next place. Not in divergent control flow, where none changes.
    pub(super) fn settle(&mut self, phases: &[bool]) {
        if self.phases != phases {
            self.workgroup_barrier(ALL_MEMORY);
            self.phases = phases.to_vec();
        }
    }

    /// A barrier, a fence, or an exchange of values between invocations, as control flow allows.
    pub(super) fn synchronise(&mut self) {
        match (self.ctx, self.tape.pick(6)) {
            (_, 0) | (Level::Invocation, _) => self.fence(),
            (Level::Subgroup, 1) => self.subgroup_barrier(),
            (Level::Subgroup, _) | (_, 1) => self.subgroup_exchange(),
            (Level::Workgroup, 2) => {
                let semantics = self.tape.of(&[ALL_MEMORY, Semantics(0x108), Semantics(0)]);
                self.workgroup_barrier(semantics);
            }
            (Level::Workgroup, 3) => self.flip(),
            (Level::Workgroup, _) => self.exchange(),
        }
    }

    fn fence(&mut self) {
        self.mark(Feature::Fence);
        let (scope, semantics) = self.tape.of(&[
            (Reach::Device, Semantics(0x8 | 0x40)),
            (Reach::Workgroup, Semantics(0x108)),
            (Reach::Subgroup, Semantics(0x108)),
            (Reach::QueueFamily, Semantics(0x2 | 0x40)),
        ]);
        self.builder.push(InstData::Fence { scope, semantics });
    }

    /// Opens or closes a memory for several statements.
    fn flip(&mut self) {
        let mut phases = self.phases.clone();
        if !phases.is_empty() {
            let phase = self.tape.pick(phases.len() as u32) as usize;
            phases[phase] = !phases[phase];
            self.settle(&phases);
        }
    }

    fn regions(&self, open: bool) -> Vec<Region> {
        let regions = self.memory.regions.iter().copied();
        let fits = |region: &Region| if open { self.is_open(region.phase) } else { self.is_writable(region.phase) };
        regions.filter(|region| region.phase.is_some() && fits(region)).collect()
    }

    /// All invocations write, a barrier follows, and all read what others wrote.
    fn exchange(&mut self) {
        let regions = self.regions(false);
        if regions.is_empty() {
            return;
        }
        let region = self.tape.of(&regions);
        for _ in 0..self.tape.pick(3) + 1 {
            self.store_own(region);
        }
        let before = self.phases.clone();
        let mut phases = before.clone();
        if let Some(phase) = region.phase {
            phases[phase] = true;
        }
        self.settle(&phases);
        for _ in 0..self.tape.pick(4) + 1 {
            self.read_shown(region);
        }
        if self.tape.pick(3) < 2 {
            self.settle(&before);
        }
    }

    /// Reads memory that is open now.
    pub(super) fn shown(&mut self) {
        if let (true, Some(phase)) = (self.tape.pick(3) == 1, self.open_counter()) {
            return self.read_counter(phase);
        }
        let regions = self.regions(true);
        if regions.is_empty() {
            return self.read();
        }
        if self.constructs.iter().any(|construct| construct.shape == Shape::Loop) {
            self.mark(Feature::PhaseInLoop);
        }
        let region = self.tape.of(&regions);
        self.read_shown(region);
    }

    /// As `exchange`, within the subgroup.
    fn subgroup_exchange(&mut self) {
        let regions = self.regions(false);
        if regions.is_empty() {
            return self.subgroup_barrier();
        }
        let region = self.tape.of(&regions);
        self.store_own(region);
        self.subgroup_barrier();
        self.mark(Feature::SubgroupExchange);
        for _ in 0..self.tape.pick(2) + 1 {
            if let Some(place) = self.subgroup_place(region) {
                self.load(place, Level::Invocation);
            }
        }
        self.subgroup_barrier();
    }

    /// Memory in which invocations may write their own words now.
    pub(super) fn writable(&self) -> Vec<Region> {
        self.memory.regions.iter().copied().filter(|region| self.is_writable(region.phase)).collect()
    }

    /// Any atomic on an own word, on which no other invocation operates.
    pub(super) fn atomic_own(&mut self) {
        const OPS: [AtomicOp; 13] = [
            AtomicOp::Add,
            AtomicOp::Load,
            AtomicOp::Store,
            AtomicOp::Exchange,
            AtomicOp::CompareExchange,
            AtomicOp::Sub,
            AtomicOp::SMin,
            AtomicOp::UMin,
            AtomicOp::SMax,
            AtomicOp::UMax,
            AtomicOp::And,
            AtomicOp::Or,
            AtomicOp::Xor,
        ];
        let regions = self.writable();
        if regions.is_empty() {
            return;
        }
        self.mark(Feature::AtomicOwn);
        let region = self.tape.of(&regions);
        let place = self.own_place(region, true);
        let op = self.tape.of(&OPS);
        let value = (op != AtomicOp::Load).then(|| self.value(Kind::Int));
        let comparator = (op == AtomicOp::CompareExchange).then(|| self.comparator(place));
        if let Some(old) = self.atomic(op, place, value, comparator) {
            self.define(old, Kind::Int, Level::Invocation);
        }
    }

    /// A value that the word may hold.
    fn comparator(&mut self, place: Place) -> spelter_shaders::ir::Value {
        if self.tape.pick(2) == 0 {
            return self.builder.load(Kind::Int.ty(), place, Default::default());
        }
        self.value(Kind::Int)
    }

    /// An atomic that commutes with all other atomics on that memory. Its result is unused.
    pub(super) fn count(&mut self) {
        let counters = self.memory.counters.iter().copied().filter(|counter| self.is_writable(counter.phase));
        let counters: Vec<Counter> = counters.collect();
        if counters.is_empty() {
            return;
        }
        let counter = self.tape.of(&counters);
        match counter.kind {
            CounterKind::Any(op) => {
                let feature = match counter.home {
                    CounterHome::Variable(_) => Feature::AtomicShared,
                    CounterHome::Buffer(_) => Feature::AtomicCounter,
                };
                self.mark(feature);
                let place = self.counter_place(counter);
                let value = self.value(Kind::Int);
                self.atomic(op, place, Some(value), None);
            }
            CounterKind::Wide(op) => self.count_wide(counter, op),
            CounterKind::Ticket(number) => self.ticket(counter, number),
        }
    }

    /// Draws a ticket, which is unique, and adds a function of it to the sum of all.
    fn ticket(&mut self, counter: Counter, number: u32) {
        // Always to the same word: the assignment of tickets is unspecified, their set is not.
        let Some(sum) = self.memory.sum else { return };
        self.mark(Feature::AtomicTicket);
        let (place, number) = (self.counter_place(counter), self.constant(number));
        let Some(old) = self.atomic(AtomicOp::Add, place, Some(number), None) else { return };
        let squared = self.op(Op::IMul, &[old, old]);
        let place = self.counter_word(sum, 0);
        self.atomic(AtomicOp::Add, place, Some(squared), None);
    }

    fn counter_word(&mut self, counter: Counter, word: u32) -> Place {
        let offset = self.constant(word * 4);
        Self::counter_at(counter, offset)
    }

    pub(super) fn counter_at(counter: Counter, offset: spelter_shaders::ir::Value) -> Place {
        match counter.home {
            CounterHome::Variable(variable) => Place::Variable { variable, offset },
            CounterHome::Buffer(buffer) => Place::Buffer { space: BufferSpace::Storage, buffer, offset },
        }
    }

    fn counter_place(&mut self, counter: Counter) -> Place {
        match self.tape.pick(5) {
            0 | 1 => {
                let word = self.tape.pick(counter.words);
                self.counter_word(counter, word)
            }
            2 | 3 => {
                let (index, _) = self.index();
                let word = self.op_with(Op::UMod, index, counter.words + 1);
                let base = self.constant(0u32);
                let offset = self.element(base, word, 4);
                Self::counter_at(counter, offset)
            }
            _ => {
                let offset = self.offset();
                Self::counter_at(counter, offset)
            }
        }
    }

    fn open_counter(&mut self) -> Option<Counter> {
        let counters = self.memory.counters.iter().copied().filter(|counter| self.is_open(counter.phase));
        let counters: Vec<Counter> = counters.collect();
        (!counters.is_empty()).then(|| self.tape.of(&counters))
    }

    fn read_counter(&mut self, counter: Counter) {
        self.mark(Feature::AtomicSharedRead);
        let place = self.counter_place(counter);
        let level = match place {
            Place::Variable { offset, .. } => self.level(&[offset]),
            _ => Level::Invocation,
        };
        if self.options.atomics
            && self.tape.pick(4) == 3
            && let Some(value) = self.atomic(AtomicOp::Load, place, None, None)
        {
            self.define(value, Kind::Int, level);
            return;
        }
        self.load(place, level);
    }

    /// One invocation stores a word that its workgroup owns.
    pub(super) fn leader(&mut self) {
        if self.memory.slots_taken == SLOTS - 4 {
            return;
        }
        let number = self.memory.slots_taken;
        self.memory.slots_taken += 1;
        let Some(local) = self.memory.local else { return };
        let leader = self.tape.pick(self.memory.invocations);
        let leader = self.constant(leader);
        let condition = self.op(Op::IEq, &[local, leader]);
        let [then, merge] = std::array::from_fn(|_| self.builder.create_block());
        let value = self.value(Kind::Int);
        self.builder.set_merge(Merge::Selection { merge });
        let (to, otherwise) = (BlockCall::new(then), BlockCall::new(merge));
        self.builder.push(InstData::Branch { condition, then: to, otherwise });
        self.builder.switch_to(then);
        self.mark(Feature::LeaderStore);
        let number = self.constant(number);
        if let Some(place) = self.slot(number) {
            self.builder.store(place, value, Default::default());
        }
        self.builder.push(InstData::Jump { to: BlockCall::new(merge) });
        self.builder.switch_to(merge);
    }
}
