//! Slices of long recordings: large workgroups, loops of barriers, tickets, spinning, budgets.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use spelter_driver::check::{
    AccessFilter, Candidate, Dispatch, Log, Purpose, Recorder, Undecided, Verdict, Word, confirm, slice, verdict,
};
use spelter_memory_model::Model;
use spelter_memory_model::event::Class;
use spelter_memory_model::repair::{self, Edit, Terms, TraceEdit, TraceEffort};
use spelter_shaders::check::observer::{Invocation, Memory, Observer, Target};
use spelter_shaders::ir::{AccessSite, AtomicOp, Scope, Semantics, Site, SiteAction, SiteData, StorageClass};

const UNIFORM: u32 = 0x40;
const WORKGROUP: u32 = 0x100;
/// AcquireRelease, MakeAvailable, MakeVisible.
const FULL: u32 = 0x8 | 0x2000 | 0x4000;

/// The instructions of a kernel.
#[derive(Default)]
struct Sites(PrimaryMap<Site, SiteData>);

impl Sites {
    fn add(&mut self, action: SiteAction) -> Site {
        self.0.push(SiteData { action, word: 0, inlined_at: Arc::new([]) })
    }

    /// A non-private load and store of a storage buffer.
    fn accesses(&mut self) -> (Site, Site) {
        let class = StorageClass::Uniform;
        let site = AccessSite { class, non_private: true, volatile: false, scope: None };
        (self.add(SiteAction::Read(site)), self.add(SiteAction::Write(site)))
    }

    fn atomic(&mut self, op: AtomicOp, semantics: u32) -> Site {
        let (class, scope, unequal) = (StorageClass::Uniform, Scope::Device, Semantics(0));
        self.add(SiteAction::Atomic { op, class, scope, semantics: Semantics(semantics), unequal })
    }

    fn fence(&mut self, scope: Scope, semantics: u32) -> Site {
        self.add(SiteAction::Fence { scope, semantics: Semantics(semantics) })
    }

    fn barrier(&mut self, semantics: u32) -> Site {
        let (execution, memory) = (Scope::Workgroup, Scope::Workgroup);
        self.add(SiteAction::Barrier { execution, memory, semantics: Semantics(semantics) })
    }
}

fn at(workgroup: u64, local: u32) -> Invocation {
    Invocation { workgroup, local }
}

fn word(number: u64) -> Target {
    Target { memory: Memory::Device(0x1000 + 4 * number), bytes: 4, reference: 0 }
}

fn candidate(number: u64) -> Candidate {
    let word = Word::Device(0x1000 + 4 * number);
    Candidate { word, first: AccessFilter::default(), second: AccessFilter::default() }
}

/// The log of a dispatch, with `words` as candidates.
fn record(sites: Sites, words: &[u64], budget: usize, run: impl FnOnce(&mut Recorder)) -> Log {
    let mut recorder = Recorder::new(words.iter().map(|&number| candidate(number).word), budget);
    recorder.begin(Dispatch { sites: sites.0.into(), subgroup_size: 16, references: [0].into() });
    run(&mut recorder);
    recorder.finish()
}

/// Number of events in the slice of the first and the last access of a word.
fn events(log: &Log, number: u64) -> usize {
    let accesses: Vec<_> = log.accesses(candidate(number).word).collect();
    slice(log, accesses[0].0, accesses[accesses.len() - 1].0, Purpose::Verdict).unwrap().trace.len()
}

/// One invocation writes a word, 200 barriers follow, another one reads it.
fn loop_of_barriers(semantics: u32, budget: usize) -> Log {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let barrier = sites.barrier(semantics);
    record(sites, &[0], budget, |observer| {
        for workgroup in 0..3 {
            if workgroup == 1 {
                observer.access(at(1, 3), write, word(0));
            }
            for _ in 0..200 {
                (0..128).for_each(|local| observer.arrive(at(workgroup, local), barrier));
                observer.release(workgroup, Scope::Workgroup, None);
            }
            if workgroup == 1 {
                observer.access(at(1, 100), read, word(0));
            }
        }
    })
}

#[test]
fn of_many_barriers_few_are_needed() {
    let log = loop_of_barriers(FULL | UNIFORM, 1 << 26);
    assert!(matches!(confirm(&log, &candidate(0)), Verdict::Refuted));
    assert!(events(&log, 0) <= 6, "{}", events(&log, 0));
    assert_eq!(log.len(), 200 * 128 + 2, "the other workgroups are not needed");
    let Verdict::Confirmed(race) = confirm(&loop_of_barriers(FULL | WORKGROUP, 1 << 26), &candidate(0)) else {
        panic!("the barriers are for other memory");
    };
    assert_eq!((race.first.by, race.second.by), (at(1, 3), at(1, 100)));
}

/// A sum by halves in `size` words, as GLSL has it: each round ends with `memoryBarrierBuffer(); barrier();`, which
/// orders the buffer if `semantics` names it. The round `missing` has no barrier.
fn sum_by_halves(size: u32, semantics: u32, missing: Option<u32>) -> Log {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let fence = sites.fence(Scope::Device, FULL | WORKGROUP);
    let barrier = sites.barrier(semantics);
    record(sites, &[0, 1, 2], 1 << 28, |observer| {
        let meet = |observer: &mut Recorder| {
            (0..size).for_each(|local| {
                observer.fence(at(0, local), fence);
                observer.arrive(at(0, local), barrier);
            });
            observer.release(0, Scope::Workgroup, None);
        };
        (0..size).for_each(|local| observer.access(at(0, local), write, word(local.into())));
        meet(observer);
        for round in 1..=size.ilog2() {
            let half = size >> round;
            for local in 0..half {
                observer.access(at(0, local), read, word(local.into()));
                observer.access(at(0, local), read, word((local + half).into()));
                observer.access(at(0, local), write, word(local.into()));
            }
            if missing != Some(round) {
                meet(observer);
            }
        }
    })
}

#[test]
fn barriers_count_once_however_many_invocations_meet() {
    for size in [64, 256, 1024] {
        let right = sum_by_halves(size, FULL | UNIFORM, None);
        for number in 0..3 {
            let verdict = confirm(&right, &candidate(number));
            assert!(matches!(verdict, Verdict::Refuted), "{size}, word {number}: {verdict:?}");
        }
        // From the first write of a word to the last read: two events of each invocation for a barrier.
        let most = 2 + 4 * size.ilog2() as usize;
        assert!(events(&right, 1) <= most, "{size}: {} events, at most {most}", events(&right, 1));
        // Word 1 is read in the last round, by another invocation than the one that wrote it in the round before.
        let missing = sum_by_halves(size, FULL | UNIFORM, Some(size.ilog2() - 1));
        let Verdict::Confirmed(race) = confirm(&missing, &candidate(1)) else { panic!("{size}: nothing is missing") };
        assert_eq!((race.first.by, race.second.by), (at(0, 1), at(0, 0)));
        let Verdict::Confirmed(_) = confirm(&sum_by_halves(size, FULL | WORKGROUP, None), &candidate(1)) else {
            panic!("{size}: the barriers are for other memory");
        };
    }
}

/// An invocation writes a word, `rounds` of a fence and a barrier follow, another invocation reads it.
fn fenced_loop(rounds: u32, fence: u32, barrier: u32) -> Log {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let fence = sites.fence(Scope::Device, fence);
    let barrier = sites.barrier(barrier);
    record(sites, &[0], 1 << 28, |observer| {
        observer.access(at(0, 3), write, word(0));
        for _ in 0..rounds {
            (0..128).for_each(|local| {
                observer.fence(at(0, local), fence);
                observer.arrive(at(0, local), barrier);
            });
            observer.release(0, Scope::Workgroup, None);
        }
        observer.access(at(0, 100), read, word(0));
    })
}

#[test]
fn a_long_loop_is_decided_with_all_of_its_events() {
    let (fence, other) = (FULL | UNIFORM, FULL | WORKGROUP);
    let ordered = |rounds, fence, barrier| confirm(&fenced_loop(rounds, fence, barrier), &candidate(0));
    for rounds in [2, 20, 80, 300] {
        assert!(matches!(ordered(rounds, fence, other), Verdict::Refuted), "{rounds}");
    }
    // With one round, nothing acquires after the barrier.
    assert!(matches!(ordered(1, fence, other), Verdict::Confirmed(_)));
    for rounds in [1, 20, 24, 25, 80, 300] {
        let Verdict::Confirmed(race) = ordered(rounds, other, other) else { panic!("{rounds}: a race") };
        assert_eq!((race.first.by, race.second.by), (at(0, 3), at(0, 100)));
        assert!(race.slice.trace.len() <= 96);
    }
}

#[test]
fn a_long_loop_of_operations_that_order_the_memory_but_not_these_two_is_undecided() {
    let verdict = |rounds| {
        let mut sites = Sites::default();
        let (read, write) = sites.accesses();
        let fence = sites.fence(Scope::Subgroup, FULL | UNIFORM);
        let barrier = sites.barrier(FULL | WORKGROUP);
        let log = record(sites, &[0], 1 << 28, |observer| {
            observer.access(at(0, 3), write, word(0));
            for _ in 0..rounds {
                (0..32).for_each(|local| {
                    observer.fence(at(0, local), fence);
                    observer.arrive(at(0, local), barrier);
                });
                observer.release(0, Scope::Workgroup, None);
            }
            observer.access(at(0, 20), read, word(0));
        });
        confirm(&log, &candidate(0))
    };
    assert!(matches!(verdict(40), Verdict::Confirmed(_)));
    assert!(matches!(verdict(300), Verdict::Undecided(Undecided::TooLarge)));
}

#[test]
fn any_number_of_barriers_for_other_memory_orders_nothing() {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let barrier = sites.barrier(FULL | WORKGROUP);
    let log = record(sites, &[0], 1 << 28, |observer| {
        observer.access(at(0, 3), write, word(0));
        for _ in 0..20_000 {
            (0..16).for_each(|local| observer.arrive(at(0, local), barrier));
            observer.release(0, Scope::Workgroup, None);
        }
        observer.access(at(0, 10), read, word(0));
    });
    let Verdict::Confirmed(race) = confirm(&log, &candidate(0)) else { panic!("the barriers are for other memory") };
    assert_eq!((race.first.by, race.second.by), (at(0, 3), at(0, 10)));
}

/// In each of `rounds` two invocations write a word in turn, with a barrier after each; at the end both write it.
fn turns(rounds: u32, ends: bool) -> Log {
    let mut sites = Sites::default();
    let (_, write) = sites.accesses();
    let barrier = sites.barrier(FULL | UNIFORM);
    let last = sites.accesses().1;
    record(sites, &[0, 1], 1 << 28, |observer| {
        if ends {
            // One that does nothing afterwards is at no barrier.
            observer.access(at(0, 15), write, word(1));
        }
        for round in 0..2 * rounds {
            observer.access(at(0, round % 2), write, word(0));
            let size = if ends { 15 } else { 16 };
            (0..size).for_each(|local| observer.arrive(at(0, local), barrier));
            observer.release(0, Scope::Workgroup, None);
        }
        (0..2).for_each(|local| observer.access(at(0, local), last, word(0)));
    })
}

#[test]
fn a_race_at_the_end_of_a_loop_of_very_many_barriers_is_confirmed() {
    for ends in [false, true] {
        let log = turns(8000, ends);
        let Verdict::Confirmed(race) = confirm(&log, &candidate(0)) else { panic!("they race") };
        let places = [race.first, race.second].map(|access| (access.by.local, access.site.as_u32()));
        assert_eq!(places, [(0, 4), (1, 4)]);
    }
}

#[test]
fn barriers_that_an_invocation_leaves_out_do_not_order_what_it_does() {
    // The invocation that is at none of the barriers reads the word at the end.
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let barrier = sites.barrier(FULL | UNIFORM);
    let log = record(sites, &[0], 1 << 20, |observer| {
        observer.access(at(0, 0), write, word(0));
        (0..4).for_each(|local| observer.arrive(at(0, local), barrier));
        observer.release(0, Scope::Workgroup, None);
        observer.access(at(0, 1), read, word(0));
        observer.access(at(0, 4), read, word(0));
    });
    let Verdict::Confirmed(race) = confirm(&log, &candidate(0)) else { panic!("they race") };
    assert_eq!((race.first.by, race.second.by), (at(0, 0), at(0, 4)));
}

#[test]
fn a_fence_for_the_subgroup_passes_order_on_only_to_it() {
    // Invocation 0 releases to its subgroup; one that acquires there may release to the whole workgroup.
    let verdict = |passes: u32| {
        let mut sites = Sites::default();
        let (read, write) = sites.accesses();
        let narrow = sites.fence(Scope::Subgroup, FULL | UNIFORM);
        let wide = sites.fence(Scope::Workgroup, FULL | UNIFORM);
        let barrier = sites.barrier(0);
        let log = record(sites, &[0], 1 << 24, |observer| {
            let meet = |observer: &mut Recorder| {
                (0..64).for_each(|local| observer.arrive(at(0, local), barrier));
                observer.release(0, Scope::Workgroup, None);
            };
            observer.access(at(0, 0), write, word(0));
            observer.fence(at(0, 0), narrow);
            meet(observer);
            (1..64).for_each(|local| observer.fence(at(0, local), if local == passes { wide } else { narrow }));
            meet(observer);
            observer.fence(at(0, 40), wide);
            observer.access(at(0, 40), read, word(0));
        });
        confirm(&log, &candidate(0))
    };
    assert!(matches!(verdict(1), Verdict::Refuted));
    // One of another subgroup acquires nothing.
    assert!(matches!(verdict(20), Verdict::Confirmed(_)));
    assert!(matches!(verdict(64), Verdict::Confirmed(_)));
}

#[test]
fn without_memory_for_the_log_nothing_is_decided() {
    let log = loop_of_barriers(FULL | UNIFORM, 1 << 16);
    assert!(matches!(confirm(&log, &candidate(0)), Verdict::Undecided(Undecided::Memory)));
    let log = loop_of_barriers(FULL | UNIFORM, 1 << 26);
    assert!(matches!(confirm(&log, &candidate(7)), Verdict::Undecided(Undecided::NotReproduced)));
}

/// Each workgroup writes its word and takes a ticket; the last one reads the word of the first.
fn tickets(semantics: u32) -> Log {
    tickets_of(1000, semantics)
}

fn tickets_of(workgroups: u64, semantics: u32) -> Log {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let ticket = sites.atomic(AtomicOp::Add, semantics);
    record(sites, &[1], 1 << 26, |observer| {
        for workgroup in 0..workgroups {
            observer.access(at(workgroup, 0), write, word(1 + workgroup));
            observer.atomic(at(workgroup, 0), ticket, word(0), true);
        }
        observer.access(at(workgroups - 1, 0), read, word(1));
    })
}

#[test]
fn the_slice_for_a_repair_has_the_first_ticket_of_a_long_chain() {
    // The tickets acquire and release, but other memory: all are in the log, and order nothing here.
    for workgroups in [2, 3, 40, 200] {
        let log = tickets_of(workgroups, FULL | WORKGROUP);
        assert_eq!(log.len() as u64, 2 + workgroups, "{workgroups}: with all tickets");
        let Verdict::Confirmed(race) = confirm(&log, &candidate(1)) else { panic!("{workgroups}: no race") };
        let slice = &race.slice;
        assert!(slice.trace.len() <= 96, "{workgroups}: {} events", slice.trace.len());
        let atomic = |event: &usize| slice.trace.operation(*event).atomic();
        let atomics: Vec<_> = (0..slice.trace.len()).filter(atomic).collect();
        let by = |event: usize| slice.events[event].by;
        assert_eq!(by(atomics[0]), at(0, 0), "{workgroups}");
        assert_eq!(by(atomics[atomics.len() - 1]), at(workgroups - 1, 0), "{workgroups}");
        // With it there is a repair: tickets that order this memory.
        let effort = TraceEffort { terms: Terms::Whole { atomics: true }, ..TraceEffort::default() };
        let found = repair::of_trace(&slice.trace, &slice.choice, slice.pair, Model::SPEC, effort).unwrap();
        let ticket = slice.trace.events[atomics[0]].site.unwrap();
        let orders = TraceEdit::Code(Edit::Order(ticket, Class::Uniform));
        assert!(found.repairs.contains(&vec![orders]), "{workgroups}: {:?}", found.repairs);
    }
}

#[test]
fn a_part_of_a_release_sequence_of_many_tickets_refutes_a_race_and_does_not_confirm_one() {
    let all = tickets(FULL | UNIFORM);
    assert!(matches!(confirm(&all, &candidate(1)), Verdict::Refuted));
    let accesses: Vec<_> = all.accesses(candidate(1).word).map(|access| access.0).collect();
    assert_eq!(slice(&all, accesses[0], accesses[1], Purpose::Verdict).unwrap_err(), Undecided::TooLarge);
    // Tickets that release nothing are no part of a sequence.
    assert!(matches!(confirm(&tickets(0), &candidate(1)), Verdict::Confirmed(_)));
    // These order other memory: that no part of them orders this word proves nothing.
    let other = confirm(&tickets(FULL | WORKGROUP), &candidate(1));
    assert!(matches!(other, Verdict::Undecided(Undecided::TooLarge)));
}

#[test]
fn a_store_among_many_tickets_ends_their_release_sequence() {
    let verdict = |store: Option<u64>| {
        let mut sites = Sites::default();
        let (read, write) = sites.accesses();
        let release = sites.atomic(AtomicOp::Add, 0x4 | 0x2000 | UNIFORM);
        let relaxed = sites.atomic(AtomicOp::Add, 0);
        let overwrite = sites.atomic(AtomicOp::Store, 0);
        let acquire = sites.atomic(AtomicOp::Add, 0x2 | 0x4000 | UNIFORM);
        let log = record(sites, &[1], 1 << 26, |observer| {
            observer.access(at(0, 0), write, word(1));
            observer.atomic(at(0, 0), release, word(0), true);
            for workgroup in 1..1000 {
                let site = if store == Some(workgroup) { overwrite } else { relaxed };
                observer.atomic(at(workgroup, 0), site, word(0), true);
            }
            observer.atomic(at(1000, 0), acquire, word(0), true);
            observer.access(at(1000, 0), read, word(1));
        });
        confirm(&log, &candidate(1))
    };
    assert!(matches!(verdict(None), Verdict::Refuted));
    for store in [1, 2, 500, 998, 999] {
        assert!(!matches!(verdict(Some(store)), Verdict::Refuted), "{store}");
    }
}

#[test]
fn a_narrow_scope_of_a_counter_is_a_race_however_many_count() {
    let counter = |scope: Scope, groups: u64| {
        let mut sites = Sites::default();
        let (class, semantics, unequal) = (StorageClass::Uniform, Semantics(0), Semantics(0));
        let count = sites.add(SiteAction::Atomic { op: AtomicOp::Add, class, scope, semantics, unequal });
        let log = record(sites, &[0], 1 << 26, |observer| {
            for workgroup in 0..groups {
                (0..300).for_each(|local| observer.atomic(at(workgroup, local), count, word(0), true));
            }
        });
        confirm(&log, &candidate(0))
    };
    let Verdict::Confirmed(race) = counter(Scope::Workgroup, 2) else { panic!("two workgroups") };
    assert_eq!((race.first.by, race.second.by), (at(0, 0), at(1, 0)));
    let Verdict::Confirmed(race) = counter(Scope::Subgroup, 1) else { panic!("two subgroups") };
    assert_eq!((race.first.by, race.second.by), (at(0, 0), at(0, 16)));
    // No two of them conflict.
    for (scope, groups) in [(Scope::Workgroup, 1), (Scope::Device, 2)] {
        assert!(matches!(counter(scope, groups), Verdict::Undecided(Undecided::NotReproduced)));
    }
}

/// 600 invocations count in a word, and the last one writes it plainly. The last but one has a release fence before,
/// if `releases`, and the last one an acquire fence after its count, if `acquires`.
fn counted(releases: bool, acquires: bool) -> Log {
    let mut sites = Sites::default();
    let (_, write) = sites.accesses();
    let count = sites.atomic(AtomicOp::Add, 0);
    let fence = sites.fence(Scope::Device, FULL | UNIFORM);
    record(sites, &[0], 1 << 26, |observer| {
        for workgroup in 0..600 {
            let by = at(workgroup, 0);
            observer.atomic(by, count, word(0), true);
            if releases && workgroup == 0 {
                observer.fence(by, fence);
                observer.atomic(by, count, word(0), true);
            }
        }
        if acquires {
            observer.fence(at(599, 0), fence);
        }
        observer.access(at(599, 0), write, word(0));
    })
}

#[test]
fn any_number_of_relaxed_atomics_orders_nothing() {
    for (releases, acquires) in [(false, false), (true, false), (false, true)] {
        let log = counted(releases, acquires);
        let Verdict::Confirmed(race) = confirm(&log, &candidate(0)) else { panic!("{releases}, {acquires}: a race") };
        assert_eq!((race.first.by, race.second.by), (at(0, 0), at(599, 0)), "{releases}, {acquires}");
        let last = log.accesses(candidate(0).word).last().unwrap().0;
        assert_eq!(slice(&log, 0, last, Purpose::Verdict).unwrap().trace.len(), 2);
    }
    // With both fences the first count is ordered before the write, by hundreds of counts; others are not.
    let log = counted(true, true);
    let last = log.accesses(candidate(0).word).last().unwrap().0;
    assert_eq!(verdict(&log, 0, last), Ok(false));
    assert_eq!(verdict(&log, 4, last), Ok(true));
}

/// One workgroup writes a word and sets a flag, another one polls the flag.
fn polls(semantics: u32) -> Log {
    let mut sites = Sites::default();
    let (read, write) = sites.accesses();
    let set = sites.atomic(AtomicOp::Store, 0x4 | 0x2000 | UNIFORM);
    let poll = sites.atomic(AtomicOp::Load, semantics);
    record(sites, &[1], 1 << 26, |observer| {
        observer.access(at(0, 0), write, word(1));
        observer.atomic(at(0, 0), set, word(0), true);
        (0..1000).for_each(|_| observer.atomic(at(1, 0), poll, word(0), false));
        observer.access(at(1, 0), read, word(1));
    })
}

#[test]
fn of_many_polls_few_are_needed() {
    let log = polls(0x2 | 0x4000 | UNIFORM);
    assert!(matches!(confirm(&log, &candidate(1)), Verdict::Refuted));
    assert!(events(&log, 1) <= 6, "{}", events(&log, 1));
    assert!(matches!(confirm(&polls(0), &candidate(1)), Verdict::Confirmed(_)));
}

#[test]
fn a_plain_write_over_a_flag_passes_nothing_on() {
    let order = |overwritten: bool| {
        let mut sites = Sites::default();
        let (read, write) = sites.accesses();
        let set = sites.atomic(AtomicOp::Store, 0x4 | 0x2000 | UNIFORM);
        let poll = sites.atomic(AtomicOp::Load, 0x2 | 0x4000 | UNIFORM);
        let log = record(sites, &[1], 1 << 20, |observer| {
            observer.access(at(0, 0), write, word(1));
            observer.atomic(at(0, 0), set, word(0), true);
            if overwritten {
                observer.access(at(1, 0), write, word(0));
            }
            observer.atomic(at(2, 0), poll, word(0), false);
            observer.access(at(2, 0), read, word(1));
        });
        matches!(confirm(&log, &candidate(1)), Verdict::Refuted)
    };
    assert!(order(false) && !order(true));
}

#[test]
fn dispatches_of_a_window_meet_in_atomics_only() {
    let mut kernel = Sites::default();
    let (read, write) = kernel.accesses();
    let ticket = kernel.atomic(AtomicOp::Add, FULL | UNIFORM);
    let sites: Arc<_> = kernel.0.into();
    let verdict = |first: u32, second: u32| {
        let mut recorder = Recorder::new([candidate(1).word], 1 << 20);
        let dispatch =
            |number: u32| Dispatch { sites: Arc::clone(&sites), subgroup_size: 16, references: [number].into() };
        recorder.begin(dispatch(first));
        recorder.access(at(0, 0), write, word(1));
        recorder.atomic(at(0, 0), ticket, word(0), true);
        recorder.begin(dispatch(second));
        recorder.atomic(at(0, 0), ticket, word(0), true);
        recorder.access(at(0, 0), read, word(1));
        confirm(&recorder.finish(), &candidate(1))
    };
    assert!(matches!(verdict(4, 4), Verdict::Refuted));
    let Verdict::Confirmed(race) = verdict(4, 5) else { panic!("two references of the ticket are not in order") };
    assert_eq!((race.first.dispatch, race.second.dispatch), (0, 1));
}
