//! Cells of the shadow: which invocations accessed a word last, in 32 bits that compare in the order of time.
//!
//! `cell = epoch · 2^(b+1) | group · 2 | detailed`, where b is the bits of the workgroup size and one more. An *epoch*
//! stands for a part of a workgroup's execution; a new one begins at each barrier and release. Epochs rise through a
//! window, so a cell below the first epoch of a workgroup is one of an earlier workgroup, and one test tells whether a
//! cell is older than a barrier. A *group* is one invocation (below the rounded size), the invocations of one subgroup
//! (the rounded size plus its number) or those of the workgroup (all ones). Compiled code compares whole cells.

/// The agents that accessed a word, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cell(pub u32);

impl Cell {
    /// No access.
    pub(super) const EMPTY: Self = Self(0);

    /// The word's accesses are in its [history](super::history). It compares above every epoch and equals no
    /// invocation, so that no fast test takes it for settled.
    pub(super) const DETAILED: Self = Self(u32::MAX);
}

/// The invocations that a cell stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    /// The invocation with this local index.
    Invocation(u32),
    /// Invocations of the subgroup with this number.
    Subgroup(u32),
    /// Invocations of the workgroup.
    Workgroup,
}

/// The sizes of a dispatch, which determine how its cells are encoded. Machine code is compiled for this layout, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellLayout {
    /// Invocations of a workgroup.
    pub(super) workgroup_size: u32,
    /// Invocations of a subgroup.
    pub(super) subgroup_size: u32,
    /// The workgroup size, rounded up to a power of two.
    rounded: u32,
}

impl CellLayout {
    /// The difference of the bits of two invocations, or of two subgroups, that follow each other.
    pub(crate) const NEXT_GROUP: u32 = 2;

    pub(crate) fn new(workgroup_size: u32, subgroup_size: u32) -> Self {
        // The groups need three bits more than the limit of 2^16 invocations leaves of a cell at least.
        let workgroup_size = workgroup_size.clamp(1, 1 << 16);
        let rounded = workgroup_size.next_power_of_two();
        Self { workgroup_size, subgroup_size: subgroup_size.max(1), rounded }
    }

    /// The difference of two epochs that follow each other; the bits below are those of the group.
    pub(crate) fn unit(self) -> u32 {
        2 * Self::NEXT_GROUP * self.rounded
    }

    /// The bits of a cell that name its group, and the bit of detailed words.
    pub(crate) fn group_mask(self) -> u32 {
        self.unit() - 1
    }

    /// What a group adds to an epoch in a cell.
    pub(crate) fn group_bits(self, group: Group) -> u32 {
        let code = match group {
            Group::Invocation(local) => local.min(self.rounded - 1),
            Group::Subgroup(subgroup) => self.rounded + subgroup.min(self.rounded - 1),
            Group::Workgroup => 2 * self.rounded - 1,
        };
        code * Self::NEXT_GROUP
    }

    /// The cell of a group at an epoch.
    pub(super) fn cell(self, epoch: u32, group: Group) -> Cell {
        Cell(epoch | self.group_bits(group))
    }

    /// The group of a cell.
    pub(super) fn group(self, cell: Cell) -> Group {
        let code = (cell.0 & self.group_mask()) / Self::NEXT_GROUP;
        match code.checked_sub(self.rounded) {
            None => Group::Invocation(code),
            Some(subgroup) if subgroup + 1 == self.rounded => Group::Workgroup,
            Some(subgroup) => Group::Subgroup(subgroup),
        }
    }

    /// The epoch of a cell.
    pub(super) fn epoch(self, cell: Cell) -> u32 {
        cell.0 & !self.group_mask()
    }

    /// The subgroup of an invocation.
    pub(super) fn subgroup(self, local: u32) -> u32 {
        local / self.subgroup_size
    }

    /// The subgroup that contains the whole group, if one does.
    pub(super) fn subgroup_of(self, group: Group) -> Option<u32> {
        match group {
            Group::Invocation(local) => Some(self.subgroup(local)),
            Group::Subgroup(subgroup) => Some(subgroup),
            Group::Workgroup => None,
        }
    }

    /// The invocations of a group.
    pub(super) fn members(self, group: Group) -> std::ops::Range<u32> {
        match group {
            Group::Invocation(local) => local..local + 1,
            Group::Subgroup(subgroup) => {
                let first = subgroup.saturating_mul(self.subgroup_size).min(self.workgroup_size);
                first..first.saturating_add(self.subgroup_size).min(self.workgroup_size)
            }
            Group::Workgroup => 0..self.workgroup_size,
        }
    }

    /// The smallest group that contains both.
    pub(super) fn join(self, a: Group, b: Group) -> Group {
        match (self.subgroup_of(a), self.subgroup_of(b)) {
            _ if a == b => a,
            (Some(a), Some(b)) if a == b => Group::Subgroup(a),
            _ => Group::Workgroup,
        }
    }
}

/// A workgroup of a dispatch, as cells name it: its place in the order of execution.
pub(super) type Slot = u32;

/// Which part of a window a cell belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A workgroup of the command.
    Workgroup { command: u32, slot: Slot },
    /// Several workgroups, of that command and perhaps of earlier ones.
    Command(u32),
}

/// The epochs of a command.
#[derive(Debug)]
struct Command {
    /// Its own epoch, which stands for several workgroups.
    first: u32,
    layout: CellLayout,
    /// The workgroups that ran, in order.
    workgroups: Vec<Run>,
}

/// Workgroups that follow each other, in number and in time, with equally many epochs each, as most do: a dispatch may
/// have more workgroups than there is memory for a table of them.
#[derive(Debug)]
struct Run {
    /// The first epoch of the first one.
    first: u32,
    /// From the first epoch of one to that of the next.
    step: u32,
    /// The first one's slot.
    slot: Slot,
    count: u32,
    /// The first one.
    workgroup: u64,
}

impl Run {
    /// Adds the next workgroup, if it is one of the run.
    fn extend(&mut self, first: u32, workgroup: u64) -> bool {
        let since = first - self.first;
        let fits = self.count == 1 || self.step.checked_mul(self.count) == Some(since);
        if !fits || workgroup != self.workgroup + u64::from(self.count) {
            return false;
        }
        if self.count == 1 {
            self.step = since;
        }
        self.count += 1;
        true
    }

    /// The slot of the workgroup that has this epoch, which is of the run.
    fn slot_at(&self, epoch: u32) -> Slot {
        self.slot + ((epoch - self.first) / self.step.max(1)).min(self.count - 1)
    }
}

/// Gives out epochs, and tells whose they are.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    next: u32,
    commands: Vec<Command>,
    /// Commands of this window before the first in `commands`.
    dropped: u32,
}

impl Epochs {
    /// Begins a command. False if the epochs do not suffice.
    pub(super) fn begin(&mut self, layout: CellLayout) -> bool {
        let unit = layout.unit();
        let Some(first) = self.next.max(1).checked_next_multiple_of(unit) else { return false };
        self.next = first;
        let Some(first) = self.take(unit) else { return false };
        self.commands.push(Command { first, layout, workgroups: Vec::new() });
        true
    }

    /// Whether a command has begun.
    pub(super) fn begun(&self) -> bool {
        !self.commands.is_empty()
    }

    /// Begins a workgroup of the last command: its slot and first epoch.
    pub(super) fn workgroup(&mut self, workgroup: u64) -> Option<(Slot, u32)> {
        let unit = self.commands.last()?.layout.unit();
        let first = self.take(unit)?;
        let runs = &mut self.commands.last_mut()?.workgroups;
        let slot = runs.last().map_or(0, |run| run.slot + run.count);
        if !runs.last_mut().is_some_and(|run| run.extend(first, workgroup)) {
            runs.push(Run { first, step: 0, slot, count: 1, workgroup });
        }
        Some((slot, first))
    }

    /// The next epoch for the same workgroup.
    pub(super) fn tick(&mut self) -> Option<u32> {
        let unit = self.commands.last()?.layout.unit();
        self.take(unit)
    }

    /// Takes the epochs of the present workgroup up to one that was not taken here.
    pub(super) fn advance(&mut self, epoch: u32, layout: CellLayout) {
        self.next = self.next.max(epoch.saturating_add(layout.unit()));
    }

    /// An epoch up to which those of a workgroup may be taken elsewhere.
    pub(super) fn last(&self, layout: CellLayout) -> u32 {
        u32::MAX - 4 * layout.unit()
    }

    fn take(&mut self, unit: u32) -> Option<u32> {
        // The highest epochs stay free: one is the bound "after everything", and `DETAILED` must be above all.
        let after = self.next.checked_add(unit).filter(|after| *after < u32::MAX - 2 * unit)?;
        Some(std::mem::replace(&mut self.next, after))
    }

    /// A bound above all cells so far.
    pub(super) fn bound(&self) -> u32 {
        self.next.max(1)
    }

    /// The epoch that stands for several workgroups.
    pub(super) fn several(&self) -> u32 {
        self.commands.last().map_or(0, |command| command.first)
    }

    /// The owner of a cell of this window, and the layout of its group.
    pub(super) fn owner(&self, cell: Cell) -> Option<(Owner, CellLayout)> {
        let at = self.commands.partition_point(|command| command.first <= cell.0).checked_sub(1)?;
        let command = &self.commands[at];
        let number = self.dropped + at as u32;
        let owner = match command.workgroups.partition_point(|run| run.first <= cell.0).checked_sub(1) {
            None => Owner::Command(number),
            Some(at) => Owner::Workgroup { command: number, slot: command.workgroups[at].slot_at(cell.0) },
        };
        Some((owner, command.layout))
    }

    /// The number of the present command in its window.
    pub(super) fn command(&self) -> u32 {
        (self.dropped + self.commands.len() as u32).saturating_sub(1)
    }

    /// The workgroup of a slot of a command of this window.
    pub(super) fn workgroup_of(&self, command: u32, slot: Slot) -> Option<u64> {
        let runs = &self.commands.get(command.checked_sub(self.dropped)? as usize)?.workgroups;
        let run = &runs[runs.partition_point(|run| run.slot <= slot).checked_sub(1)?];
        let after = slot - run.slot;
        (after < run.count).then(|| run.workgroup + u64::from(after))
    }

    /// Forgets the commands so far, whose cells are all settled.
    pub(super) fn settle(&mut self) {
        self.commands.clear();
        self.dropped = 0;
    }

    /// Begins again with the smallest epochs: no cell is left. Commands of the window keep their places.
    pub(super) fn restart(&mut self) {
        self.dropped += self.commands.len() as u32;
        self.commands.clear();
        self.next = 0;
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self) -> u64 {
        let runs: usize = self.commands.iter().map(|command| command.workgroups.capacity()).sum();
        (runs * size_of::<Run>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_all_kinds_are_encoded_in_a_cell() {
        for size in [1, 2, 16, 17, 64, 100, 1024] {
            let layout = CellLayout::new(size, 16);
            let epoch = 5 * layout.unit();
            for local in [0, size / 2, size - 1] {
                let cell = layout.cell(epoch, Group::Invocation(local));
                assert_eq!((layout.epoch(cell), layout.group(cell)), (epoch, Group::Invocation(local)));
                assert_eq!(cell.0 & 1, 0, "plain");
            }
            let all = layout.cell(epoch, Group::Workgroup);
            assert_eq!(layout.group(all), Group::Workgroup);
            let last = (size - 1) / 16;
            let some = layout.group(layout.cell(epoch, Group::Subgroup(last)));
            assert!(some == Group::Subgroup(last) || size == 1 && some == Group::Workgroup, "{size} {some:?}");
        }
        // 64 invocations leave 24 bits for epochs, as the design counts.
        assert_eq!(CellLayout::new(64, 16).unit(), 1 << 8);
    }

    #[test]
    fn numbers_tell_their_workgroup_through_commands_of_different_size() {
        let mut epochs = Epochs::default();
        let (small, large) = (CellLayout::new(4, 16), CellLayout::new(256, 16));
        assert!(epochs.begin(small));
        let (slot, first) = epochs.workgroup(7).unwrap();
        let later = epochs.tick().unwrap();
        assert!(epochs.begin(large));
        let (_, other) = epochs.workgroup(3).unwrap();
        assert!(first < later && later < other && slot == 0);
        let owner = |epochs: &Epochs, epoch| epochs.owner(Cell(epoch)).unwrap();
        assert_eq!(owner(&epochs, later), (Owner::Workgroup { command: 0, slot: 0 }, small));
        assert_eq!(owner(&epochs, other + 2), (Owner::Workgroup { command: 1, slot: 0 }, large));
        assert_eq!(owner(&epochs, epochs.several()), (Owner::Command(1), large));
        assert_eq!(epochs.workgroup_of(0, 0), Some(7));
    }

    #[test]
    fn workgroups_in_order_are_few_entries_and_each_is_found() {
        let layout = CellLayout::new(64, 16);
        let mut epochs = Epochs::default();
        assert!(epochs.begin(layout));
        let mut firsts = Vec::new();
        // Ascending ones without barriers and with three each, then some in another order.
        let ascending = (0..500).map(|workgroup| (workgroup, if workgroup < 250 { 0 } else { 3 }));
        for (workgroup, barriers) in ascending.chain([(900, 1), (700, 0), (701, 2), (702, 0), (5000, 0)]) {
            let (slot, first) = epochs.workgroup(workgroup).unwrap();
            assert_eq!(slot as usize, firsts.len());
            firsts.push((first, workgroup));
            let last = (0..barriers).map(|_| epochs.tick().unwrap()).last();
            for epoch in [first, last.unwrap_or(first)] {
                let cell = layout.cell(epoch, Group::Invocation(63));
                assert_eq!(epochs.owner(cell), Some((Owner::Workgroup { command: 0, slot }, layout)));
            }
        }
        for (slot, &(first, workgroup)) in (0..).zip(&firsts) {
            assert_eq!(epochs.owner(Cell(first)), Some((Owner::Workgroup { command: 0, slot }, layout)));
            assert_eq!(epochs.workgroup_of(0, slot), Some(workgroup));
        }
        assert_eq!(epochs.workgroup_of(0, firsts.len() as u32), None);
        assert!(epochs.bytes() < 500, "{}", epochs.bytes());
    }

    #[test]
    fn numbers_run_out_before_they_reach_the_mark_of_detailed_words() {
        let mut epochs = Epochs { next: u32::MAX - 5000, ..Epochs::default() };
        assert!(epochs.begin(CellLayout::new(64, 16)));
        let mut last = 0;
        while let Some(epoch) = epochs.tick() {
            last = epoch;
        }
        assert!(last > 0 && last | (256 - 1) < Cell::DETAILED.0);
        epochs.restart();
        assert!(epochs.begin(CellLayout::new(64, 16)));
        assert_eq!(epochs.command(), 1, "the window goes on");
    }
}
