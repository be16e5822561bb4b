//! Events of checked mode while a kernel runs, in the order in which they happen: one interface for every back end on
//! one side, and for the detector and the recorder of replays on the other.

use super::inline::InlineMemory;
use crate::guest::GuestSlice;
use crate::ir::{InlineChecks, Scope, Site};

/// An invocation of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Invocation {
    /// Linear number of its workgroup in the dispatch: x fastest, then y, then z, without the dispatch's base.
    pub workgroup: u64,
    /// `LocalInvocationIndex`.
    pub local: u32,
}

/// The memory that an access touches, bounds already checked: accesses out of bounds are dropped and not observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where it begins.
    pub memory: Memory,
    /// Bytes.
    pub bytes: u32,
    /// The reference of the memory model: index of the descriptor in
    /// [`DispatchArgs::buffers`](crate::abi::DispatchArgs::buffers), or the number of the workgroup variable among
    /// those.
    pub reference: u32,
}

/// A place in memory that several invocations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// Device memory: the host's address of a byte of a buffer or of a texel.
    Device(u64),
    /// Workgroup memory of the invocation's workgroup: offset in bytes, variables packed as
    /// [`Kernel::shared_bytes`](crate::ir::Kernel::shared_bytes) has them.
    Workgroup(u32),
}

/// The invocations of a subgroup that execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Linear number of the workgroup.
    pub workgroup: u64,
    /// Local index of lane 0.
    pub first: u32,
    /// A bit for each lane.
    pub active: u16,
}

impl Lanes {
    /// The invocations, ascending.
    pub fn invocations(self) -> impl Iterator<Item = Invocation> {
        let lanes = (0..16).filter(move |lane| self.active >> lane & 1 != 0);
        lanes.map(move |lane| Invocation { workgroup: self.workgroup, local: self.first + lane })
    }

    /// Calls `access` with each invocation, ascending, and its memory: that of lane `l` is `offsets[l]` bytes after
    /// `target`.
    pub fn each(self, target: Target, offsets: &[u32; 16], mut access: impl FnMut(Invocation, Target)) {
        for lane in (0..16).filter(|lane| self.active >> lane & 1 != 0) {
            let offset = offsets[lane as usize];
            let memory = match target.memory {
                Memory::Device(address) => Memory::Device(address.wrapping_add(offset.into())),
                Memory::Workgroup(first) => Memory::Workgroup(first.wrapping_add(offset)),
            };
            let by = Invocation { workgroup: self.workgroup, local: self.first + lane };
            access(by, Target { memory, ..target });
        }
    }
}

/// A control barrier that invocations of its scope went past, or that they wait at together with another one: the
/// barrier is not in uniform control flow. Of a subgroup's barrier the invocations that are in the tangle go on, as
/// maximal reconvergence defines; of a workgroup's all that wait, although SPIR-V leaves that undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivergentBarrier<'a> {
    /// Execution scope of the barrier.
    pub execution: Scope,
    /// The invocations that go on, ascending, each with the site of the barrier at which it waits.
    pub waiting: &'a [(Invocation, Site)],
    /// Other invocations of that scope, ascending: they have ended, or wait elsewhere.
    pub missing: &'a [Invocation],
}

/// Listens to a dispatch. Calls come from one thread, and workgroups follow each other: a workgroup's calls are not
/// interleaved with those of another.
pub trait Observer {
    /// A dispatch begins, in which machine code may settle accesses to this memory itself; `buffers` are the slices of
    /// the descriptors. Without an answer, which is the default, all accesses are observed.
    fn inline(&mut self, checks: &InlineChecks, buffers: &[GuestSlice]) -> Option<InlineMemory> {
        let _ = (checks, buffers);
        None
    }

    /// A workgroup begins. Called only after an answer of [`Observer::inline`].
    fn begin(&mut self, workgroup: u64) {
        let _ = workgroup;
    }

    /// A plain read or write.
    fn access(&mut self, by: Invocation, site: Site, target: Target);

    /// Plain accesses of several invocations by one instruction: lane `l` accesses the memory `offsets[l]` bytes after
    /// `target`. By default it is as many calls of [`Observer::access`].
    fn accesses(&mut self, by: Lanes, site: Site, target: Target, offsets: &[u32; 16]) {
        by.each(target, offsets, |by, target| self.access(by, site, target));
    }

    /// An atomic operation that was carried out; `wrote` is false for loads and for a compare-exchange that failed.
    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool);

    /// A memory barrier.
    fn fence(&mut self, by: Invocation, site: Site);

    /// The invocation waits at a control barrier.
    fn arrive(&mut self, by: Invocation, site: Site);

    /// All invocations of the workgroup, which has this many, wait at one control barrier of it, and go on. By default
    /// it is as many calls of [`Observer::arrive`], and one of [`Observer::release`].
    fn meet(&mut self, workgroup: u64, site: Site, invocations: u32) {
        (0..invocations).for_each(|local| self.arrive(Invocation { workgroup, local }, site));
        self.release(workgroup, Scope::Workgroup, None);
    }

    /// Called before [`Observer::release`] of a barrier in divergent control flow: an error without further evidence.
    fn divergent_barrier(&mut self, barrier: DivergentBarrier<'_>) {
        let _ = barrier;
    }

    /// The invocations of this workgroup, or of the subgroup with this number in it, that have arrived at a control
    /// barrier with that execution scope go on. Invocations that have ended are not waited for.
    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>);

    /// The invocation ends.
    fn end(&mut self, by: Invocation);

    /// All invocations of the workgroup, which has this many, end. By default it is as many calls of [`Observer::end`].
    fn ends(&mut self, workgroup: u64, invocations: u32) {
        (0..invocations).for_each(|local| self.end(Invocation { workgroup, local }));
    }
}

/// Methods of an `Observer` that only call the same method of the observer in a field.
#[macro_export]
macro_rules! forward_observer {
    ($inner:ident: $(fn $method:ident($($name:ident: $ty:ty),*) $(-> $result:ty)?;)+) => {$(
        fn $method(&mut self, $($name: $ty),*) $(-> $result)? {
            self.$inner.$method($($name),*)
        }
    )+};
}

/// An observer that does nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn access(&mut self, _: Invocation, _: Site, _: Target) {}
    fn atomic(&mut self, _: Invocation, _: Site, _: Target, _: bool) {}
    fn fence(&mut self, _: Invocation, _: Site) {}
    fn arrive(&mut self, _: Invocation, _: Site) {}
    fn meet(&mut self, _: u64, _: Site, _: u32) {}
    fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}
    fn end(&mut self, _: Invocation) {}
    fn ends(&mut self, _: u64, _: u32) {}
}
