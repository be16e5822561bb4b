//! Drops events that cannot change whether two accesses are ordered.
//!
//! Each rule keeps a subset of the execution whose orders are among those of the whole, so that what a slice orders is
//! ordered; and it drops only what another event that is kept does as well, so that what is ordered stays so:
//!
//! 1. Atomics stay if they carry a release that an acquire reads, or cover one of the two accesses by an availability
//!    or visibility operation. The last write before a read-modify-write that stays, and that is none itself, stays,
//!    too, if earlier ones stay: it ends their release sequences.
//! 2. An invocation that only waits at barriers and executes fences goes, if all of them, in this order, are also among
//!    those of another one of its subgroup that stays; so does one of the workgroup, if none of the subgroup's
//!    invocations does more, and no fence or barrier of theirs tells subgroups apart. So a slice has the barriers of
//!    the two invocations, not those of all that meet there.
//! 3. Of equal availability and visibility operations of an invocation with no synchronization in between, the first
//!    and the last stay; likewise of equal instances of barriers between two other events, and of equal fences.
//!
//! Why the second rule loses no order: let Q go, and let P stay for it. Map each event of Q to its like in P, and all
//! others to themselves. The image of an event has the same operation; images of events of one instance are of one
//! instance; and program order is kept. The image's agent is in the same instances of all scopes that matter: of all
//! for the same subgroup; else Q's own events have at least the workgroup's scope, as have all that include Q from
//! another subgroup, and within Q's subgroup nothing else is left, so that no chain of availability or visibility
//! operations has a step there in the subgroup's domain: such chains begin at the first access and end at the second.
//! So the image of an edge of synchronizes-with is one, unless both of its ends come to be of P; then the path through
//! them, which had entered Q or P by an acquire and leaves by a release, goes on from the one to the other in program
//! order. Therefore a path of happens-before from the first access to the second, or between operations that make
//! available and visible, has an image, and what is ordered stays ordered. The reverse holds as for any subset.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;
use spelter_memory_model::event::{Access, Action, Class, Location, Operation, Scope};

use super::log::{Index, Log};
use super::reach::{continues, precedes};
use super::slice::{Purpose, Undecided};

/// Read-modify-writes that are visited to find where a release sequence begins, at most.
const MAX_RUN: usize = 1 << 14;

/// Operations by event.
type OperationsByEvent = BTreeMap<Index, Operation>;

/// The events of `between` that a slice needs, in order; an error if they are more than `limit`.
pub(super) fn reduce(
    log: &Log,
    (first, second): (Index, Index),
    purpose: Purpose,
    between: &BTreeSet<Index>,
    limit: usize,
) -> Result<Vec<Index>, Undecided> {
    let operations: OperationsByEvent = between.iter().map(|&index| (index, log.operation(index))).collect();
    let pair = Pair { log, first, second, purpose, operations: &operations, limit };
    let synchronizing = pair.synchronizing()?;
    let mut kept: BTreeSet<Index> = [first, second].into();
    for (&index, operation) in &operations {
        // Whatever may order others is kept first; what follows removes those of which another one does the same.
        let meets = operation.control_barrier() && log.instance(index).is_some();
        let fence = matches!(operation.action, Action::Fence) && (operation.acquire || operation.release);
        if meets || fence || synchronizing.contains(&index) || pair.covers(operation) {
            kept.insert(index);
        }
    }
    pair.drop_members(&mut kept);
    pair.drop_repeated(&mut kept, &synchronizing);
    pair.drop_instances(&mut kept);
    if kept.len() > limit {
        return Err(Undecided::TooLarge);
    }
    // The ends do not count for the limit: without them a release sequence would be longer in the slice than it was.
    pair.add_ends(&mut kept)?;
    Ok(kept.into_iter().collect())
}

struct Pair<'a> {
    log: &'a Log,
    first: Index,
    second: Index,
    purpose: Purpose,
    operations: &'a OperationsByEvent,
    limit: usize,
}

/// Whether the elements of `part` are among those of `whole`, in this order.
fn is_part<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|element| whole.any(|other| other == element))
}

impl Pair<'_> {
    fn thread_of(&self, index: Index) -> u32 {
        self.log.entry(index).thread
    }

    /// The atomics through which releases reach acquires.
    fn synchronizing(&self) -> Result<BTreeSet<Index>, Undecided> {
        // The last acquire barrier of each thread for each class, which all earlier atomic reads serve.
        let mut acquires: BTreeMap<(u32, Class), Index> = BTreeMap::new();
        for (&index, operation) in self.operations {
            if operation.memory_barrier() && operation.acquire {
                let thread = self.thread_of(index);
                acquires.extend(operation.semantics.iter().map(|class| ((thread, class), index)));
            }
        }
        let mut found = BTreeSet::new();
        let mut walked = BTreeSet::new();
        // A second read of one value by one instruction of a thread adds nothing to the first.
        let mut reads = BTreeSet::new();
        for (&index, operation) in self.operations {
            let Some(access) = operation.access().filter(|access| access.atomic && access.reads) else { continue };
            let thread = self.thread_of(index);
            let served = acquires.get(&(thread, access.class)).is_some_and(|&barrier| barrier > index);
            let repair = self.purpose == Purpose::Repair;
            let source = self.log.entry(index).source.get();
            let source = source.filter(|&write| repair || self.log.mutual(write, index));
            let Some(write) = source.filter(|write| self.operations.contains_key(write)) else { continue };
            let mut again = || !access.writes && !reads.insert((thread, write, self.log.entry(index).site));
            if !(operation.acquire || served || repair) || again() {
                continue;
            }
            found.insert(index);
            // The source, and the writes whose release sequences it continues.
            let mut open = vec![write];
            while let Some(write) = open.pop() {
                if walked.insert(write) {
                    found.insert(write);
                    let before = continues(self.log, write)?.into_iter();
                    open.extend(before.filter_map(|before| match self.purpose {
                        Purpose::Verdict => Some(before).filter(|before| self.operations.contains_key(before)),
                        // Of one path, read-modify-writes are left out in between.
                        Purpose::Repair => self.last_write(before),
                    }));
                }
            }
        }
        Ok(found)
    }

    /// The last write up to `write` of the same bytes through the same reference that is among the operations.
    fn last_write(&self, write: Index) -> Option<Index> {
        let which = |index: Index| (self.log.entry(index).which, self.log.entry(index).wrote);
        let mut earlier = self.operations.range(..=write).rev();
        let atomics = earlier.find(|&(&index, operation)| operation.atomic() && which(index) == which(write));
        atomics.map(|(&index, _)| index)
    }

    /// Whether an operation may make the first access available, or the second one's bytes visible to it.
    fn covers(&self, operation: &Operation) -> bool {
        let (first, second) = (&self.operations[&self.first], &self.operations[&self.second]);
        let (Some(x), Some(y)) = (first.access(), second.access()) else { return false };
        let bytes = x.location.bytes.start.max(y.location.bytes.start)..x.location.bytes.end.min(y.location.bytes.end);
        let common = Location { object: x.location.object, bytes };
        // What the access itself does already, as far or farther, need not be done again.
        let done = |by: &Operation, of: &Access, flag: bool| {
            flag && !of.atomic && !operation.atomic() && by.scope >= operation.scope
        };
        let through =
            |access: &Access, to: &Access| access.reference == to.reference && access.location.overlaps(&common);
        let by_access = |access: &Access| {
            x.writes && access.available && through(access, x) && !done(first, x, x.available)
                || y.reads && access.visible && through(access, y) && !done(second, y, y.visible)
        };
        operation.access().is_some_and(by_access)
            || x.writes && operation.make_available && operation.semantics.contains(x.class)
            || y.reads && operation.make_visible && operation.semantics.contains(y.class)
    }

    fn by_thread(&self, kept: &BTreeSet<Index>) -> BTreeMap<u32, Vec<Index>> {
        let mut threads: BTreeMap<u32, Vec<Index>> = BTreeMap::new();
        kept.iter().for_each(|&index| threads.entry(self.thread_of(index)).or_default().push(index));
        threads
    }

    /// The second rule: drops invocations whose fences and barriers others execute as well.
    fn drop_members(&self, kept: &mut BTreeSet<Index>) {
        let threads = self.by_thread(kept);
        // What an invocation does, but for memory: a path may pass through it by that.
        let step = |&index: &Index| (self.log.instance(index).map(|(which, _)| which), &self.operations[&index]);
        let steps: BTreeMap<u32, Vec<_>> =
            threads.iter().map(|(&thread, events)| (thread, events.iter().map(step).collect())).collect();
        let covered = |thread: u32, by: u32| is_part(&steps[&thread], &steps[&by]);
        let ends = [self.first, self.second].map(|index| self.thread_of(index));
        let passive = |thread: u32| {
            let synchronizes = |index: &Index| self.operations[index].access().is_none();
            !ends.contains(&thread) && threads[&thread].iter().all(synchronizes)
        };
        let wide = |thread: u32| {
            threads[&thread].iter().all(|index| {
                let operation = &self.operations[index];
                let execution = match operation.action {
                    Action::ControlBarrier { execution } => execution,
                    _ => Scope::Workgroup,
                };
                execution >= Scope::Workgroup && operation.scope >= Some(Scope::Workgroup)
            })
        };
        let numbers = |thread: u32| {
            let thread = &self.log.threads[thread as usize];
            (thread.group, thread.subgroup)
        };
        let mut order: Vec<u32> = threads.keys().copied().collect();
        order.sort_by_key(|&thread| (passive(thread), std::cmp::Reverse(steps[&thread].len()), thread));
        let mut stay: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
        for thread in order {
            let peers = stay.entry(numbers(thread)).or_default();
            if !passive(thread) || !peers.iter().any(|&peer| covered(thread, peer)) {
                peers.push(thread);
            }
        }
        // Subgroups without an invocation that does more than wait.
        let idle: Vec<_> = stay
            .iter()
            .filter(|(_, peers)| peers.iter().all(|&peer| passive(peer) && wide(peer)))
            .map(|(&number, _)| number)
            .collect();
        for number in idle {
            let others = stay.iter().filter(|(other, _)| other.0 == number.0 && **other != number);
            let others: Vec<u32> = others.flat_map(|(_, peers)| peers.iter().copied()).collect();
            if stay[&number].iter().all(|&thread| others.iter().any(|&other| covered(thread, other))) {
                stay.remove(&number);
            }
        }
        let stay: BTreeSet<u32> = stay.into_values().flatten().collect();
        kept.retain(|&index| stay.contains(&self.thread_of(index)));
    }

    /// The third rule within an invocation.
    fn drop_repeated(&self, kept: &mut BTreeSet<Index>, synchronizing: &BTreeSet<Index>) {
        for events in self.by_thread(kept).into_values() {
            let apart = |index: &Index| {
                let operation = &self.operations[index];
                let end = *index == self.first || *index == self.second;
                end || synchronizing.contains(index) || operation.access().is_none()
            };
            // Accesses that only cover, between two other events.
            for covering in events.split(apart) {
                let mut ends: HashMap<&Operation, (Index, Index)> = HashMap::default();
                for &index in covering {
                    ends.entry(&self.operations[&index]).and_modify(|ends| ends.1 = index).or_insert((index, index));
                }
                for &index in covering {
                    let (first, last) = ends[&self.operations[&index]];
                    if index != first && index != last {
                        kept.remove(&index);
                    }
                }
            }
            let equal_fences = |a: Index, b: Index| {
                let (a, b) = (&self.operations[&a], &self.operations[&b]);
                matches!(a.action, Action::Fence) && a == b
            };
            for three in events.windows(3) {
                if equal_fences(three[0], three[1]) && equal_fences(three[1], three[2]) {
                    kept.remove(&three[1]);
                }
            }
        }
    }

    /// The third rule for instances of barriers: of equal ones that follow each other with nothing in between, the
    /// first and the last stay.
    fn drop_instances(&self, kept: &mut BTreeSet<Index>) {
        let mut members: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut next: BTreeMap<u32, BTreeSet<Option<u32>>> = BTreeMap::new();
        for (thread, events) in self.by_thread(kept) {
            for (at, &index) in events.iter().enumerate() {
                let Some((which, _)) = self.log.instance(index) else { continue };
                members.entry(which).or_default().insert(thread);
                let after = events.get(at + 1).filter(|&&after| self.operations[&after] == self.operations[&index]);
                let after = after.and_then(|&after| self.log.instance(after)).map(|(which, _)| which);
                next.entry(which).or_default().insert(after);
            }
        }
        let follows = |which: u32| -> Option<u32> {
            let after = next.get(&which).filter(|after| after.len() == 1)?.first().copied().flatten()?;
            (members[&which] == members[&after]).then_some(after)
        };
        let second: BTreeSet<u32> = members.keys().filter_map(|&which| follows(which)).collect();
        let middle = |which: u32| second.contains(&which) && follows(which).is_some();
        kept.retain(|&index| !self.log.instance(index).is_some_and(|(which, _)| middle(which)));
    }

    /// The first write of the read-modify-writes up to `before` that follow each other and do not stay; `None` if the
    /// write that they continue stays.
    fn start_of_run(&self, before: Index, kept: &BTreeSet<Index>) -> Option<Index> {
        let mut start = before;
        for _ in 0..MAX_RUN {
            if kept.contains(&start) {
                return None;
            }
            match self.log.entry(start).follows.get() {
                Some(earlier) if self.log.is_run(earlier, start) => start = earlier,
                _ => return Some(start),
            }
        }
        // Too long: it is looked for from this one on, which then stays.
        Some(before)
    }

    /// Adds the writes that end a release sequence before a read-modify-write that stays.
    fn add_ends(&self, kept: &mut BTreeSet<Index>) -> Result<(), Undecided> {
        let atomic = |index: Index| self.log.operation(index).atomic();
        let mut open: Vec<_> = kept.iter().copied().filter(|&index| atomic(index)).collect();
        while let Some(index) = open.pop() {
            for before in continues(self.log, index)? {
                // Without an earlier atomic there is no release sequence that it ends.
                if !kept.range(..before).any(|&other| atomic(other)) {
                    continue;
                }
                let Some(before) = self.start_of_run(before, kept) else { continue };
                let mut earlier = false;
                for &other in kept.range(..before) {
                    earlier = earlier || atomic(other) && precedes(self.log, other, before)?;
                }
                if earlier && kept.insert(before) {
                    open.push(before);
                }
            }
            if kept.len() > self.limit {
                return Err(Undecided::TooLarge);
            }
        }
        Ok(())
    }
}
