//! Each rule of the detector: small executions that it must report, and others that it must not.

mod bounds;

use std::sync::Arc;

use cranelift_entity::PrimaryMap;

use super::observer::{Invocation, Memory, Observer as _, Target};
use super::*;
use crate::ir::{AccessSite, AtomicOp, Scope, Semantics, Site, SiteAction, SiteData, StorageClass};

const UNIFORM: u32 = 0x40;
const SHARED: u32 = 0x100;
const MADE: u32 = 0x6000;
const ACQUIRE: u32 = 0x2;
const RELEASE: u32 = 0x4;
const BOTH: u32 = 0x8;

/// Sites of a kernel.
#[derive(Default)]
struct Sites(PrimaryMap<Site, SiteData>);

impl Sites {
    fn add(&mut self, action: SiteAction) -> Site {
        self.0.push(SiteData { action, word: 0, inlined_at: Arc::new([]) })
    }

    fn plain(&mut self, class: StorageClass, non_private: bool) -> [Site; 2] {
        let access = AccessSite { class, non_private, volatile: false, scope: None };
        [self.add(SiteAction::Read(access)), self.add(SiteAction::Write(access))]
    }

    fn atomic(&mut self, op: AtomicOp, scope: Scope, semantics: u32) -> Site {
        let (class, unequal) = (StorageClass::Uniform, Semantics(0));
        self.add(SiteAction::Atomic { op, class, scope, semantics: Semantics(semantics), unequal })
    }

    fn fence(&mut self, scope: Scope, semantics: u32) -> Site {
        self.add(SiteAction::Fence { scope, semantics: Semantics(semantics) })
    }

    fn barrier(&mut self, execution: Scope, semantics: u32) -> Site {
        self.add(SiteAction::Barrier { execution, memory: execution, semantics: Semantics(semantics) })
    }
}

/// A detector with some sites that most tests use.
struct Test {
    detector: Detector,
    read: Site,
    write: Site,
}

const LAUNCH: Launch = Launch { workgroup_size: 32, subgroup_size: 16, vulkan_model: true };

fn at(workgroup: u64, local: u32) -> Invocation {
    Invocation { workgroup, local }
}

fn word(address: u64) -> Target {
    Target { memory: Memory::Device(address), bytes: 4, reference: 0 }
}

impl Test {
    fn new(make: impl FnOnce(&mut Sites)) -> Self {
        Self::with(Profile::Spec, LAUNCH, true, make)
    }

    fn with(profile: Profile, launch: Launch, non_private: bool, make: impl FnOnce(&mut Sites)) -> Self {
        let mut sites = Sites::default();
        let [read, write] = sites.plain(StorageClass::Uniform, non_private);
        make(&mut sites);
        Self { detector: Detector::new(&sites.0, launch, profile, Limits::default()), read, write }
    }

    fn read(&mut self, by: Invocation, target: Target) {
        self.detector.access(by, self.read, target);
    }

    fn write(&mut self, by: Invocation, target: Target) {
        self.detector.access(by, self.write, target);
    }

    /// All of the invocations arrive and go on.
    fn meet(&mut self, locals: std::ops::Range<u32>, site: Site, execution: Scope) {
        locals.clone().for_each(|local| self.detector.arrive(at(0, local), site));
        let subgroup = (execution == Scope::Subgroup).then_some(locals.start / 16);
        self.detector.release(0, execution, subgroup);
    }

    /// What was found: relation, distance, cause, count.
    fn found(&self) -> Vec<(Relation, Distance, Cause, u64)> {
        let kinds = self.detector.candidates().iter();
        kinds.map(|found| (found.kind.relation, found.kind.distance, found.kind.cause, found.count)).collect()
    }
}

#[test]
fn an_invocation_is_ordered_with_itself_and_with_no_other() {
    let mut test = Test::new(|_| {});
    for local in [0, 1] {
        test.write(at(0, local), word(4 * u64::from(local)));
        test.read(at(0, local), word(4 * u64::from(local)));
    }
    assert_eq!(test.found(), []);
    test.read(at(0, 1), word(0));
    test.write(at(0, 2), word(4));
    test.read(at(1, 0), word(0));
    let found = test.found();
    assert_eq!(found[0], (Relation::Raw, Distance::Workgroup, Cause::Unordered, 1));
    assert_eq!(found[1], (Relation::Waw, Distance::Workgroup, Cause::Unordered, 1));
    assert_eq!(found[2], (Relation::War, Distance::Workgroup, Cause::Unordered, 1));
    assert_eq!(found[3], (Relation::Raw, Distance::Dispatch, Cause::Unordered, 1));
    let example = test.detector.candidates()[0].examples[0];
    assert_eq!(example.first.agents, Agents::Invocation { command: 0, invocation: at(0, 0) });
    assert_eq!((example.second.invocation, example.memory), (at(0, 1), Memory::Device(0)));
}

#[test]
fn a_full_barrier_orders_its_workgroup_and_its_classes_only() {
    for (semantics, cause) in [
        (BOTH | UNIFORM | MADE, None),
        (BOTH | SHARED | MADE, Some(Cause::Barrier)),
        (RELEASE | UNIFORM | MADE, Some(Cause::Barrier)),
        (BOTH | UNIFORM | 0x2000, Some(Cause::Barrier)),
        (BOTH | UNIFORM | 0x4000, Some(Cause::Barrier)),
        (0, Some(Cause::Barrier)),
    ] {
        let mut barrier = None;
        let mut test = Test::new(|sites| barrier = Some(sites.barrier(Scope::Workgroup, semantics)));
        test.write(at(0, 0), word(0));
        test.meet(0..32, barrier.unwrap(), Scope::Workgroup);
        test.read(at(0, 31), word(0));
        let found: Vec<_> = test.found().iter().map(|found| found.2).collect();
        assert_eq!(found, Vec::from_iter(cause), "{semantics:x}");
        assert_eq!(test.detector.barriers(), []);
        test.read(at(1, 0), word(0));
        assert_eq!(test.found().len(), found.len() + 1, "other workgroups");
    }
}

#[test]
fn a_subgroup_barrier_orders_its_subgroup() {
    let mut barrier = None;
    let mut test = Test::new(|sites| barrier = Some(sites.barrier(Scope::Subgroup, BOTH | UNIFORM | MADE)));
    test.write(at(0, 0), word(0));
    test.meet(0..16, barrier.unwrap(), Scope::Subgroup);
    test.read(at(0, 15), word(0));
    assert_eq!(test.found(), []);
    // Readers of one subgroup are one group, which its barrier orders before a write.
    (0..16).for_each(|local| test.read(at(0, local), word(8)));
    test.meet(0..16, barrier.unwrap(), Scope::Subgroup);
    test.write(at(0, 3), word(8));
    assert_eq!(test.found(), []);
    test.read(at(0, 16), word(0));
    assert_eq!(test.found(), [(Relation::Raw, Distance::Workgroup, Cause::Unordered, 1)]);
}

#[test]
fn a_barrier_without_some_invocations_is_listed_and_orders_the_others() {
    let mut barrier = None;
    let mut test = Test::new(|sites| barrier = Some(sites.barrier(Scope::Workgroup, BOTH | UNIFORM | MADE)));
    test.write(at(0, 0), word(0));
    test.write(at(0, 20), word(4));
    test.detector.end(at(0, 20));
    let members: Vec<_> = (0..32).filter(|local| *local != 20).collect();
    members.iter().for_each(|local| test.detector.arrive(at(0, *local), barrier.unwrap()));
    test.detector.release(0, Scope::Workgroup, None);
    test.read(at(0, 31), word(0));
    assert_eq!(test.found(), []);
    test.read(at(0, 31), word(4));
    assert_eq!(test.found().len(), 1, "the one that ended did not release");
    let listed = test.detector.barriers();
    assert_eq!((listed.len(), listed[0].other), (1, (at(0, 20), None)));
}

#[test]
fn invocations_at_different_barriers_do_not_meet() {
    let mut barriers = Vec::new();
    let mut test = Test::new(|sites| {
        barriers = (0..2).map(|_| sites.barrier(Scope::Workgroup, BOTH | UNIFORM | MADE)).collect();
    });
    test.write(at(0, 0), word(0));
    (0..32).for_each(|local| test.detector.arrive(at(0, local), barriers[usize::from(local >= 16)]));
    test.detector.release(0, Scope::Workgroup, None);
    test.read(at(0, 5), word(0));
    assert_eq!(test.found(), []);
    test.read(at(0, 16), word(0));
    assert_eq!(test.found().len(), 1);
    assert_eq!(test.detector.barriers()[0].other, (at(0, 16), Some(barriers[1])));
}

#[test]
fn fences_around_a_barrier_do_its_work() {
    let both = BOTH | UNIFORM | MADE;
    for (before, after, races) in [(both, both, 0), (both, 0, 1), (0, both, 1), (RELEASE | UNIFORM | MADE, both, 0)] {
        let mut used = Vec::new();
        let mut test = Test::new(|sites| {
            used = vec![
                sites.fence(Scope::Workgroup, before),
                sites.barrier(Scope::Workgroup, 0),
                sites.fence(Scope::Workgroup, after),
            ];
        });
        test.write(at(0, 0), word(0));
        (0..32).for_each(|local| test.detector.fence(at(0, local), used[0]));
        test.meet(0..32, used[1], Scope::Workgroup);
        (0..32).for_each(|local| test.detector.fence(at(0, local), used[2]));
        test.read(at(0, 9), word(0));
        assert_eq!(test.found().len(), races, "{before:x} {after:x}");
    }
}

/// One invocation writes and sets a flag, another one sees the flag and reads.
fn message(release: u32, acquire: u32, scope: Scope, reader: Invocation, target: Target) -> Test {
    let mut used = Vec::new();
    let mut test = Test::new(|sites| {
        used = vec![sites.atomic(AtomicOp::Store, scope, release), sites.atomic(AtomicOp::Load, scope, acquire)];
    });
    test.write(at(0, 0), word(0));
    test.detector.atomic(at(0, 0), used[0], word(64), true);
    test.detector.atomic(reader, used[1], word(64), false);
    test.read(reader, target);
    test
}

#[test]
fn a_flag_orders_what_both_sides_name() {
    let (release, acquire) = (RELEASE | UNIFORM | MADE, ACQUIRE | UNIFORM | MADE);
    assert_eq!(message(release, acquire, Scope::Device, at(1, 0), word(0)).found(), []);
    assert_eq!(message(release, acquire, Scope::Workgroup, at(0, 20), word(0)).found(), []);
    let unordered = [(Relation::Raw, Distance::Dispatch, Cause::Unordered, 1)];
    assert_eq!(message(0, acquire, Scope::Device, at(1, 0), word(0)).found(), unordered);
    assert_eq!(message(release, 0, Scope::Device, at(1, 0), word(0)).found(), unordered);
    assert_eq!(message(RELEASE | SHARED | MADE, acquire, Scope::Device, at(1, 0), word(0)).found(), unordered);
    // The flag itself races if its scope is too small.
    let narrow = message(release, acquire, Scope::Workgroup, at(1, 0), word(0));
    assert_eq!(narrow.found()[0], (Relation::Raw, Distance::Dispatch, Cause::Scope, 1));
    assert_eq!(narrow.found().len(), 2);
    // Another descriptor of the same buffer is another reference.
    let other = message(release, acquire, Scope::Device, at(1, 0), Target { reference: 1, ..word(0) });
    assert_eq!(other.found(), [(Relation::Raw, Distance::Dispatch, Cause::Reference, 1)]);
}

#[test]
fn read_modify_writes_continue_a_release_sequence_and_other_writes_cut_it() {
    for (op, cut) in [(Some(AtomicOp::Add), false), (Some(AtomicOp::Store), true), (None, true)] {
        let mut used = Vec::new();
        let mut test = Test::new(|sites| {
            used = vec![
                sites.atomic(AtomicOp::Store, Scope::Device, RELEASE | UNIFORM | MADE),
                sites.atomic(AtomicOp::Load, Scope::Device, ACQUIRE | UNIFORM | MADE),
                sites.atomic(op.unwrap_or(AtomicOp::Add), Scope::Device, 0),
            ];
        });
        test.write(at(0, 0), word(0));
        test.detector.atomic(at(0, 0), used[0], word(64), true);
        match op {
            Some(_) => test.detector.atomic(at(0, 1), used[2], word(64), true),
            None => test.write(at(0, 0), word(64)),
        }
        test.detector.atomic(at(0, 2), used[1], word(64), false);
        let before: u64 = test.found().iter().map(|found| found.3).sum();
        test.read(at(0, 2), word(0));
        assert_eq!(test.found().iter().map(|found| found.3).sum::<u64>() - before, u64::from(cut), "{op:?}");
    }
}

#[test]
fn fences_synchronize_through_relaxed_atomics() {
    let mut used = Vec::new();
    let mut test = Test::new(|sites| {
        used = vec![sites.fence(Scope::Device, BOTH | UNIFORM | MADE), sites.atomic(AtomicOp::Add, Scope::Device, 0)];
    });
    // The last of many workgroups reads what all of them wrote.
    const WORKGROUPS: u64 = 1000;
    for workgroup in 0..WORKGROUPS {
        test.write(at(workgroup, 0), word(4 * workgroup));
        test.detector.fence(at(workgroup, 0), used[0]);
        test.detector.atomic(at(workgroup, 0), used[1], word(1 << 20), true);
    }
    let last = at(WORKGROUPS - 1, 0);
    let mut early = test.detector.candidates().len();
    test.read(last, word(0));
    assert_eq!(test.detector.candidates().len(), early + 1, "before the fence nothing is acquired");
    early += 1;
    test.detector.fence(last, used[0]);
    (0..WORKGROUPS).for_each(|workgroup| test.read(last, word(4 * workgroup)));
    assert_eq!(test.detector.candidates().len(), early);
}

#[test]
fn atomics_of_other_sizes_or_plain_accesses_race_with_atomics() {
    let mut atomic = None;
    let mut test = Test::new(|sites| atomic = Some(sites.atomic(AtomicOp::Add, Scope::Device, 0)));
    let add = atomic.unwrap();
    for workgroup in 0..100 {
        test.detector.atomic(at(workgroup, 3), add, word(0), true);
    }
    assert_eq!(test.found(), []);
    test.detector.atomic(at(100, 0), add, Target { bytes: 8, ..word(0) }, true);
    assert_eq!(test.found()[0].2, Cause::Overlap);
    test.read(at(101, 0), word(0));
    assert!(test.found().iter().any(|found| (found.0, found.2) == (Relation::Raw, Cause::Unordered)));
}

#[test]
fn bytes_of_a_word_are_apart() {
    let mut test = Test::new(|_| {});
    let byte = |at: u64, bytes| Target { memory: Memory::Device(at), bytes, reference: 0 };
    (0..4).for_each(|local| test.write(at(0, local), byte(u64::from(local), 1)));
    test.read(at(0, 1), byte(1, 1));
    assert_eq!(test.found(), []);
    test.read(at(0, 1), byte(0, 2));
    let found = test.detector.candidates();
    assert_eq!((found.len(), found[0].examples[0].memory, found[0].examples[0].bytes), (1, Memory::Device(0), 1));
    test.write(at(0, 9), byte(2, 8));
    assert_eq!(test.detector.candidates()[1].examples[0].bytes, 1);
    assert_eq!(test.detector.candidates()[1].count, 2, "two bytes of two invocations");
}

#[test]
fn private_accesses_are_ordered_in_their_invocation_only() {
    for (profile, found) in [(Profile::Spec, 1), (Profile::Common, 0)] {
        let mut barrier = None;
        let make = |sites: &mut Sites| barrier = Some(sites.barrier(Scope::Workgroup, BOTH | UNIFORM | MADE));
        let mut test = Test::with(profile, LAUNCH, false, make);
        test.write(at(0, 0), word(0));
        test.read(at(0, 0), word(0));
        test.meet(0..32, barrier.unwrap(), Scope::Workgroup);
        test.read(at(0, 1), word(0));
        assert_eq!(test.found().len(), found, "{profile:?}");
        let notes: Vec<_> = test.detector.notes().iter().map(|note| note.kind).collect();
        assert_eq!(notes, Vec::from_iter((found == 0).then_some(NoteKind::Private)));
        test.read(at(1, 1), word(0));
        assert_eq!(test.found().len(), found + 1, "another workgroup");
    }
}

#[test]
fn what_an_access_superseded_is_not_ordered_before_a_private_one() {
    let (mut barrier, mut private) = (None, None);
    let mut test = Test::new(|sites| {
        barrier = Some(sites.barrier(Scope::Workgroup, BOTH | UNIFORM | MADE));
        private = Some(sites.plain(StorageClass::Uniform, false)[0]);
    });
    test.write(at(0, 0), word(0));
    test.meet(0..32, barrier.unwrap(), Scope::Workgroup);
    test.write(at(0, 1), word(0));
    test.read(at(0, 1), word(0));
    assert_eq!(test.found(), []);
    test.detector.access(at(0, 1), private.unwrap(), word(0));
    assert_eq!(test.found(), [(Relation::Raw, Distance::Invocation, Cause::Private, 1)]);
}

#[test]
fn an_atomic_supersedes_no_atomic_of_another_reference() {
    let (mut load, mut exchange, mut barrier) = (None, None, None);
    let mut test = Test::new(|sites| {
        load = Some(sites.atomic(AtomicOp::Load, Scope::Device, 0));
        exchange = Some(sites.atomic(AtomicOp::Exchange, Scope::Device, 0));
        barrier = Some(sites.barrier(Scope::Subgroup, BOTH | UNIFORM | MADE));
    });
    let other = Target { reference: 1, ..word(0) };
    test.detector.atomic(at(0, 0), load.unwrap(), other, false);
    test.meet(0..16, barrier.unwrap(), Scope::Subgroup);
    test.detector.atomic(at(0, 1), load.unwrap(), word(0), false);
    // Mutually ordered with the second load, and with the first one not at all.
    test.detector.atomic(at(0, 16), exchange.unwrap(), word(0), true);
    assert_eq!(test.found(), [(Relation::War, Distance::Workgroup, Cause::Unordered, 1)]);
}

#[test]
fn the_idiom_of_a_fence_before_a_barrier_is_a_note_in_the_common_profile() {
    for (profile, found) in [(Profile::Spec, 1), (Profile::Common, 0)] {
        let mut used = Vec::new();
        let launch = Launch { vulkan_model: false, ..LAUNCH };
        let mut test = Test::with(profile, launch, true, |sites| {
            used = vec![
                sites.fence(Scope::Device, BOTH | UNIFORM | MADE),
                sites.barrier(Scope::Workgroup, BOTH | SHARED | MADE),
            ];
        });
        test.write(at(0, 0), word(0));
        (0..32).for_each(|local| test.detector.fence(at(0, local), used[0]));
        test.meet(0..32, used[1], Scope::Workgroup);
        test.read(at(0, 1), word(0));
        assert_eq!(test.found().len(), found, "{profile:?}");
        let notes: Vec<_> = test.detector.notes().iter().map(|note| note.kind).collect();
        assert_eq!(notes, Vec::from_iter((found == 0).then_some(NoteKind::AcquireBeforeBarrier)));
    }
}

#[test]
fn workgroup_memory_is_new_in_each_workgroup() {
    let mut used = [Site::from_u32(0); 2];
    let mut test = Test::new(|sites| used = sites.plain(StorageClass::Workgroup, true));
    let shared = Target { memory: Memory::Workgroup(8), bytes: 4, reference: 0 };
    for workgroup in 0..3 {
        test.detector.access(at(workgroup, 1), used[1], shared);
    }
    assert_eq!(test.found(), []);
    test.detector.access(at(2, 0), used[0], shared);
    assert_eq!(test.found(), [(Relation::Raw, Distance::Workgroup, Cause::Unordered, 1)]);
}

#[test]
fn dispatches_of_a_window_race_until_the_api_orders_them() {
    let mut sites = Sites::default();
    let [read, write] = sites.plain(StorageClass::Uniform, true);
    let mut detector = Detector::new(&sites.0, LAUNCH, Profile::Spec, Limits::default());
    detector.access(at(0, 0), write, word(0));
    detector.dispatch(&sites.0, Launch { workgroup_size: 1, ..LAUNCH });
    detector.access(at(0, 0), read, word(0));
    let found = detector.candidates()[0].clone();
    assert_eq!((found.kind.distance, found.kind.cause), (Distance::Command, Cause::Command));
    assert_eq!(found.examples[0].first.agents, Agents::Invocation { command: 0, invocation: at(0, 0) });
    assert_eq!(found.examples[0].second.command, 1);
    detector.settle();
    detector.dispatch(&sites.0, LAUNCH);
    detector.access(at(0, 1), write, word(0));
    assert_eq!(detector.candidates().len(), 1);
}

#[test]
fn what_does_not_fit_is_counted() {
    let mut sites = Sites::default();
    let [_, write] = sites.plain(StorageClass::Uniform, true);
    let limits = Limits { bytes: 1 << 20, kinds: 1, examples: 2, ..Limits::default() };
    let mut detector = Detector::new(&sites.0, LAUNCH, Profile::Spec, limits);
    for page in 0..100 {
        for local in 0..2 {
            detector.access(at(0, local), write, word(page << 16));
        }
    }
    assert!(detector.bytes() <= limits.bytes && detector.given_up().accesses > 0);
    let found = &detector.candidates()[0];
    assert_eq!(found.examples.len(), 2);
    // All others, as long as they are few.
    assert_eq!(found.later.len() as u64 + 2, found.count);
    // Of two other kinds, each of which counts once: after a workgroup, and after several ones.
    (0..3).for_each(|_| detector.access(at(1, 0), write, word(0)));
    assert_eq!(detector.given_up().candidates, 2);
}

#[test]
fn later_examples_are_at_equal_distances() {
    let mut sites = Sites::default();
    let [_, write] = sites.plain(StorageClass::Uniform, true);
    let mut detector = Detector::new(&sites.0, LAUNCH, Profile::Spec, Limits::default());
    for at_word in 0..10_000 {
        (0..2).for_each(|local| detector.access(at(0, local), write, word(4 * at_word)));
    }
    let found = &detector.candidates()[0];
    let word_of = |candidate: &Candidate| match candidate.memory {
        Memory::Device(address) => address / 4,
        Memory::Workgroup(offset) => u64::from(offset) / 4,
    };
    let words: Vec<u64> = found.later.iter().map(word_of).collect();
    assert!((252..=504).contains(&words.len()), "{words:?}");
    let gaps: Vec<u64> = words.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().max() <= gaps.iter().min().map(|least| 2 * least).as_ref(), "{gaps:?}");
    assert!(words.last().is_some_and(|last| *last >= 9_000), "{words:?}");
}

#[test]
fn accesses_race_with_those_before_the_epochs_ran_out() {
    let mut used = [Site::from_u32(0); 2];
    let mut barrier = Site::from_u32(0);
    // Workgroups of this size leave 2¹⁴ epochs.
    let launch = Launch { workgroup_size: 1 << 16, ..LAUNCH };
    let mut test = Test::with(Profile::Spec, launch, true, |sites| {
        used = sites.plain(StorageClass::Workgroup, true);
        barrier = sites.barrier(Scope::Workgroup, BOTH | SHARED | UNIFORM | MADE);
    });
    let shared = |at| Target { memory: Memory::Workgroup(at), bytes: 4, reference: 1 };
    let atomic_word = Target { bytes: 2, ..word(8) };
    test.write(at(0, 0), word(0));
    test.write(at(0, 0), atomic_word);
    test.detector.settle();
    test.write(at(1, 0), word(4));
    test.write(at(1, 0), atomic_word);
    test.detector.access(at(1, 0), used[1], shared(0));
    let mut meets = 0;
    while test.detector.given_up().eras == 0 {
        test.detector.access(at(1, 0), used[1], shared(4));
        test.detector.meet(1, barrier, 1 << 16);
        meets += 1;
    }
    assert!(meets > 1000 && test.found().is_empty());
    // What was settled is.
    test.write(at(1, 5), word(0));
    assert_eq!(test.found(), []);
    // The barrier at which they ran out comes after the accesses.
    test.detector.access(at(1, 5), used[0], shared(0));
    test.write(at(2, 0), word(4));
    test.write(at(2, 0), atomic_word);
    let found = test.found();
    assert!(found.contains(&(Relation::Waw, Distance::Dispatch, Cause::Unordered, 2)), "{found:?}");
    assert_eq!(found.iter().map(|found| found.3).sum::<u64>(), 2, "{found:?}");
}
