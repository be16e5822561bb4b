//! Event log of a [`Recorder`](super::Recorder): accesses of the candidate words, and all that synchronizes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cranelift_entity::PrimaryMap;
use spelter_memory_model::event::{Agent, Class, Classes, Location, Operation, Scope as MemoryScope};
use spelter_shaders::check::Candidate;
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::ir::{Site, SiteAction, SiteData};

use super::barrier_order::BarrierOrder;
use super::link_order::LinkOrder;
use super::operation::{operation, scope};
use super::slice::Undecided;

/// A word of memory, of four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
    /// Device memory: the address, a multiple of 4.
    Device(u64),
    /// Memory of one workgroup.
    Workgroup {
        /// The number of the dispatch in the window, from 0.
        dispatch: u32,
        /// The linear number of the workgroup in it.
        workgroup: u64,
        /// The offset, a multiple of 4.
        offset: u32,
    },
}

/// The word of a candidate.
pub(super) fn word(candidate: &Candidate) -> Word {
    match candidate.memory {
        Memory::Device(address) => Word::Device(address & !3),
        Memory::Workgroup(offset) => {
            Word::Workgroup { dispatch: 0, workgroup: candidate.second.invocation.workgroup, offset: offset & !3 }
        }
    }
}

/// A dispatch that is recorded.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The sites of its kernel.
    pub sites: Arc<PrimaryMap<Site, SiteData>>,
    /// Invocations of a subgroup: `SubgroupId` is `LocalInvocationIndex` divided by it.
    pub subgroup_size: u32,
    /// The number of the reference for each descriptor: those of one number are one reference, also of different
    /// dispatches. A descriptor beyond its end is a reference of this dispatch alone.
    pub references: Arc<[u32]>,
}

/// The number of a reference in a log that is the descriptor with this number in the dispatch's list; even, since those
/// of others are odd.
pub(super) fn reference(descriptor: u32) -> u32 {
    descriptor.wrapping_mul(2)
}

/// The number of the descriptor that a reference is, if it is one.
pub(super) fn descriptor(reference: u32) -> Option<u32> {
    reference.is_multiple_of(2).then_some(reference / 2)
}

/// An event of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Index(pub(super) u32);

/// An index, or none, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaybeIndex(u32);

impl MaybeIndex {
    pub(super) const NONE: Self = Self(u32::MAX);

    pub(super) fn get(self) -> Option<Index> {
        (self != Self::NONE).then_some(Index(self.0))
    }
}

impl From<Index> for MaybeIndex {
    fn from(Index(index): Index) -> Self {
        Self(index)
    }
}

/// A logged event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) thread: u32,
    pub(super) site: Site,
    /// Of an access: its object, first byte and length, and the number of its reference.
    pub(super) object: u32,
    pub(super) start: u64,
    pub(super) bytes: u32,
    pub(super) reference: u32,
    /// The event before it in its thread.
    pub(super) before: MaybeIndex,
    /// Of an atomic read: the atomic write of its bytes that it reads from. Neither values from before the window nor
    /// plain writes synchronize.
    pub(super) source: MaybeIndex,
    /// Of an atomic write: the atomic write before it of the same bytes through the same reference.
    pub(super) overwrites: MaybeIndex,
    /// The last one before it that has the same scope and is in the same instance of it.
    pub(super) follows: MaybeIndex,
    /// Of an atomic: index into [`Log::atomics`]. Of a barrier: index into [`Log::instances`], or `u32::MAX`.
    pub(super) which: u32,
    /// Whether an atomic wrote.
    pub(super) wrote: bool,
    /// Of a control barrier: whether the invocation has accessed nothing since its last release fence.
    pub(super) after_fence: bool,
}

/// An invocation with logged events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thread {
    pub(super) dispatch: u32,
    pub(super) by: Invocation,
    /// The number of its workgroup in the log.
    pub(super) group: u32,
    /// The number of its subgroup in the log.
    pub(super) subgroup: u32,
    pub(super) last: MaybeIndex,
    /// Whether it has accessed nothing since its last release fence.
    pub(super) fenced: bool,
    /// Whether it has an atomic, or an access that makes memory available or visible.
    pub(super) active: bool,
    /// A hash of its fences and of the instances of barriers in which it takes part, in order.
    pub(super) waits: u64,
    /// Whether it is not active, and has the same fences and barriers as another invocation of its subgroup that is not
    /// marked so: whatever it may order between accesses of others, that one orders as well.
    pub(super) redundant: bool,
}

/// The bytes that atomics of one size access through one reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atomics {
    /// The scope of the atomic writes so far. Scopes that include all invocations that can access the bytes are one.
    pub(super) scope: MemoryScope,
    /// Whether they have several scopes. Otherwise those of an instance of the scope are mutually ordered, and no
    /// others are.
    pub(super) mixed: bool,
}

/// An instance of a control barrier.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub(super) members: Vec<Index>,
    /// The number of events before its release.
    pub(super) released: u32,
}

/// An access in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// The number of the dispatch in the window.
    pub dispatch: u32,
    /// The invocation.
    pub by: Invocation,
    /// Its instruction.
    pub site: Site,
    /// Where the bytes begin.
    pub memory: Memory,
    /// How many they are.
    pub bytes: u32,
    /// The number of its reference.
    pub reference: u32,
    /// Whether it writes.
    pub writes: bool,
}

/// The recording of a window of dispatches that nothing orders.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub(super) dispatches: Vec<Dispatch>,
    pub(super) entries: Vec<Entry>,
    pub(super) threads: Vec<Thread>,
    pub(super) atomics: Vec<Atomics>,
    pub(super) instances: Vec<Instance>,
    /// Accesses of each candidate word, in order.
    pub(super) words: BTreeMap<Word, Vec<Index>>,
    /// Whether events are missing at its end, because the budget was exceeded.
    pub(super) cut: bool,
    /// Why events are missing at its end, if the replay was stopped.
    pub(super) stopped: Option<Undecided>,
    /// Whether atomics are missing, since no release and no acquire is of their class.
    pub(super) lacks_atomics: bool,
    /// Whether the profile accepts idioms of compilers inside a workgroup, and whether [`Log::operation`] says what it
    /// takes operations for.
    pub(super) accepts: bool,
    pub(super) lenient: Cell<bool>,
    /// By class of memory, once it is known: [`Log::linked`].
    pub(super) linked: [OnceLock<Classes>; 4],
    /// Whether a barrier releases without making available, or acquires without making visible.
    pub(super) has_bare_barriers: bool,
    /// By class of memory, once they are known: for accesses that make their values available and visible themselves,
    /// the second ones.
    pub(super) barriers: [[OnceLock<BarrierOrder>; 2]; 4],
    /// The same for releases and acquires: as the model has them, and as the profile takes them.
    pub(super) links: [[OnceLock<Option<LinkOrder>>; 2]; 4],
}

impl Log {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Invocations of a subgroup.
    pub(super) fn subgroup_size(&self) -> u32 {
        self.dispatches.last().map_or(1, |dispatch| dispatch.subgroup_size).max(1)
    }

    /// The accesses of a candidate word, in order, each with the number of its event.
    pub fn accesses(&self, word: Word) -> impl Iterator<Item = (usize, Accessed)> {
        let accesses = self.words.get(&word).into_iter().flatten();
        accesses.map(|&index| (index.0 as usize, self.accessed(index)))
    }

    /// Whether it has all atomics, also those that order nothing.
    pub(super) fn has_all_atomics(&self) -> bool {
        !self.lacks_atomics
    }

    pub(super) fn entry(&self, Index(index): Index) -> &Entry {
        &self.entries[index as usize]
    }

    pub(super) fn thread(&self, index: Index) -> &Thread {
        &self.threads[self.entry(index).thread as usize]
    }

    pub(super) fn data(&self, index: Index) -> &SiteData {
        &self.dispatches[self.thread(index).dispatch as usize].sites[self.entry(index).site]
    }

    /// The operation of an event.
    pub(super) fn operation(&self, index: Index) -> Operation {
        let entry = self.entry(index);
        let bytes = entry.start..entry.start + u64::from(entry.bytes);
        let place = (Location { object: entry.object, bytes }, entry.reference);
        let mut operation = operation(&self.data(index).action, entry.wrote, Some(place));
        if self.lenient.get() {
            self.accept(index, &mut operation);
        }
        operation
    }

    /// What the profile `common` takes an operation for: private accesses for non-private ones, and the acquire of a
    /// fence just before a control barrier for one of the barrier.
    fn accept(&self, index: Index, operation: &mut Operation) {
        if let Some(access) = operation.access_mut() {
            access.non_private = true;
        }
        let before = |index: Index| self.entry(index).before.get();
        let is_fence = |index: &Index| matches!(self.data(*index).action, SiteAction::Fence { .. });
        let fence = self.entry(index).after_fence.then(|| std::iter::successors(before(index), |at| before(*at)));
        let fence = fence.and_then(|mut earlier| earlier.find(is_fence)).map(|fence| self.operation(fence));
        if let Some(fence) = fence.filter(|fence| fence.acquire) {
            operation.semantics = fence.semantics.iter().fold(operation.semantics, Classes::with);
            operation.scope = operation.scope.max(fence.scope);
            operation.acquire = true;
            operation.make_visible |= fence.make_visible;
        }
    }

    /// Decides about two accesses as the profile `common` does, if it has another view of them.
    pub(super) fn leniently<T>(&self, pair: (Index, Index), decide: impl FnOnce() -> T) -> Option<T> {
        let near = self.thread(pair.0).group == self.thread(pair.1).group;
        (self.accepts && near).then(|| {
            self.lenient.set(true);
            let decided = decide();
            self.lenient.set(false);
            decided
        })
    }

    /// What holds for accesses of one workgroup in the profile.
    pub(super) fn by_profile<T>(&self, of: impl FnOnce() -> T) -> T {
        let before = self.lenient.replace(self.accepts);
        let result = of();
        self.lenient.set(before);
        result
    }

    /// The agent of a thread.
    pub(super) fn agent(&self, thread: u32) -> Agent {
        let Thread { group, subgroup, .. } = self.threads[thread as usize];
        Agent::Device { subgroup, workgroup: group, queue_family: 0, device: 0 }
    }

    /// The instance of a barrier; `None` if it was not released.
    pub(super) fn instance(&self, index: Index) -> Option<(u32, &Instance)> {
        let entry = self.entry(index);
        let barrier = matches!(self.data(index).action, SiteAction::Barrier { .. });
        let instance = self.instances.get(entry.which as usize).filter(|_| barrier)?;
        Some((entry.which, instance))
    }

    /// When an event happened: for barriers, when the invocations went on.
    pub(super) fn time(&self, index: Index) -> u32 {
        self.instance(index).map_or(index.0, |(_, instance)| instance.released)
    }

    /// Whether two atomics are mutually ordered.
    pub(super) fn mutual(&self, a: Index, b: Index) -> bool {
        let (x, y) = (self.entry(a), self.entry(b));
        let scope = |index: Index| match self.data(index).action {
            SiteAction::Atomic { scope: within, .. } => Some(scope(within)),
            _ => None,
        };
        let includes = |scope: Option<MemoryScope>| {
            let shares = |scope| x.thread == y.thread || self.agent(x.thread).shares(self.agent(y.thread), scope);
            scope.is_some_and(shares)
        };
        a != b && x.which == y.which && includes(scope(a)) && includes(scope(b))
    }

    /// The classes in the semantics of the acquires and releases that may order two accesses: of operations without any
    /// of them, no path of inter-thread-happens-before from the one to the other has need.
    pub(super) fn linked(&self, accesses: [Index; 2]) -> Classes {
        let class = |index| self.operation(index).access().map(|access| access.class);
        let all = accesses.into_iter().filter_map(class);
        all.flat_map(|class| self.linked[class as usize].get_or_init(|| self.linked_to(class)).iter()).collect()
    }

    /// A step of happens-before is one for a set of storage classes, which all of its acquires and releases have, and
    /// which has a class of the event where it begins. That is an access of the class, or an operation with the class
    /// in its semantics, by which the next step may have another class.
    fn linked_to(&self, class: Class) -> Classes {
        let mut linked = Classes::NONE.with(class);
        let sites = self.dispatches.iter().flat_map(|dispatch| dispatch.sites.values());
        let operations = sites.flat_map(|site| [true, false].map(|wrote| operation(&site.action, wrote, None)));
        let mut others: Vec<_> = operations.filter(|operation| !operation.semantics.is_empty()).collect();
        loop {
            let before = others.len();
            others.retain(|operation| {
                let of = operation.access().map(|access| access.class);
                let links = of.into_iter().fold(operation.semantics, Classes::with).and(linked) != Classes::NONE;
                if links {
                    linked = operation.semantics.iter().fold(linked, Classes::with);
                }
                !links
            });
            if others.len() == before {
                return linked;
            }
        }
    }

    /// The barriers that order accesses to memory of a class, if the accesses make their values available and visible
    /// themselves or not. Of a finished log only.
    pub(super) fn barriers(&self, class: Class, themselves: bool) -> &BarrierOrder {
        let known = &self.barriers[class as usize][usize::from(themselves)];
        known.get_or_init(|| BarrierOrder::new(self, class, themselves))
    }

    /// The releases and acquires that order accesses to memory of a class; `None` if none does but by control barriers.
    /// Of a finished log only.
    pub(super) fn links(&self, class: Class, by_profile: bool) -> Option<&LinkOrder> {
        let known = &self.links[class as usize][usize::from(by_profile)];
        let of =
            || if by_profile { self.by_profile(|| LinkOrder::new(self, class)) } else { LinkOrder::new(self, class) };
        known.get_or_init(of).as_ref()
    }

    /// Whether an atomic or a memory barrier acquires memory of a class.
    pub(super) fn acquires_apart_from_barriers(&self, class: Class) -> bool {
        let sites = self.dispatches.iter().flat_map(|dispatch| dispatch.sites.values());
        let mut operations = sites.flat_map(|site| [true, false].map(|wrote| operation(&site.action, wrote, None)));
        operations.any(|of| of.acquire && !of.control_barrier() && of.semantics.contains(class))
    }

    /// Whether an atomic is a read-modify-write that wrote.
    pub(super) fn updates(&self, index: Index) -> bool {
        let reads = matches!(self.data(index).action, SiteAction::Atomic { op, .. } if !op.is_store());
        reads && self.entry(index).wrote
    }

    /// Whether `index` is a read-modify-write that directly follows the atomic write `before` in its modification
    /// order: it continues each release sequence that has `before`. Not known if scopes are mixed.
    pub(super) fn is_run(&self, before: Index, index: Index) -> bool {
        let entry = self.entry(index);
        self.updates(index)
            && entry.follows.get() == Some(before)
            && self.atomics.get(entry.which as usize).is_some_and(|atomics| !atomics.mixed)
    }

    /// An access, for reports.
    pub(super) fn accessed(&self, index: Index) -> Accessed {
        let (entry, thread) = (self.entry(index), self.thread(index));
        let memory =
            if entry.object == 0 { Memory::Device(entry.start) } else { Memory::Workgroup(entry.start as u32) };
        let writes = match self.data(index).action {
            SiteAction::Write(_) => true,
            SiteAction::Atomic { .. } => entry.wrote,
            _ => false,
        };
        let Entry { site, bytes, reference, .. } = *entry;
        Accessed { dispatch: thread.dispatch, by: thread.by, site, memory, bytes, reference, writes }
    }
}
