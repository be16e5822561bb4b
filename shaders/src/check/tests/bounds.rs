//! What the detector keeps stays within its memory, and what it gives up for that is counted.

use super::*;

/// Invocations of workgroups from `first` on update two counters one after the other, each with release and acquire.
fn count(test: &mut Test, update: Site, workgroups: std::ops::Range<u64>) {
    for by in workgroups.flat_map(|workgroup| [at(workgroup, 0), at(workgroup, 1)]) {
        test.write(by, word(8 * by.workgroup + 4 * u64::from(by.local)));
        for counter in [1 << 30, (1 << 30) + 4] {
            test.detector.atomic(by, update, word(counter), true);
        }
    }
}

#[test]
fn known_joins_outlast_their_workgroup_and_are_memory() {
    let mut update = None;
    let mut test = Test::new(|sites| {
        update = Some(sites.atomic(AtomicOp::Add, Scope::Device, BOTH | UNIFORM | MADE));
    });
    let update = update.expect("a site");
    count(&mut test, update, 0..100);
    let nodes = test.detector.workgroup.nodes.bytes();
    test.detector.enter(100);
    assert!(nodes > 0 && test.detector.workgroup.nodes.bytes() == nodes);
    test.detector.workgroup.nodes.clear();
    let without = test.detector.bytes();
    count(&mut test, update, 100..101);
    assert!(test.detector.bytes() >= without + test.detector.workgroup.nodes.bytes());
    // What all of them released is known to the last one.
    (0..100).for_each(|workgroup| test.read(at(100, 1), word(8 * workgroup)));
    assert_eq!(test.found(), []);
    test.detector.settle();
    assert_eq!(test.detector.workgroup.nodes.bytes(), 0);
}

#[test]
fn examples_for_which_there_is_no_memory_are_counted() {
    let given_up = |bytes: u64| {
        let mut sites = Sites::default();
        let [_, write] = sites.plain(StorageClass::Uniform, true);
        let limits = Limits { bytes, kinds: 1, examples: 4096, ..Limits::default() };
        let mut detector = Detector::new(&sites.0, LAUNCH, Profile::Spec, limits);
        for at_word in 0..4000 {
            (0..2).for_each(|local| detector.access(at(0, local), write, word(4 * at_word)));
        }
        let GivenUp { accesses, examples, .. } = detector.given_up();
        assert_eq!((accesses, detector.candidates()[0].count), (0, 4000));
        assert_eq!(detector.candidates()[0].examples.len() as u64 + examples, 4000);
        examples
    };
    assert_eq!(given_up(Limits::default().bytes), 0);
    assert!((1..4000).contains(&given_up(Limits::MIN_BYTES)));
}

const LOCATIONS: u64 = 200;

/// Invocations of workgroups from `first` on update two of many counters each, with release and acquire: what a
/// location knows of the latest workgroups differs from what others know.
fn gossip(test: &mut Test, update: Site, workgroups: std::ops::Range<u64>) {
    for by in workgroups.flat_map(|workgroup| [at(workgroup, 0), at(workgroup, 1)]) {
        let number = 2 * by.workgroup + u64::from(by.local);
        test.write(by, word(4 * number));
        let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for _ in 0..2 {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            test.detector.atomic(by, update, word((1 << 30) + 4 * ((random >> 33) % LOCATIONS)), true);
        }
    }
}

/// A test of invocations that update counters.
fn updates(limits: Limits) -> (Test, Site) {
    let mut update = None;
    let mut test = Test::new(|sites| {
        update = Some(sites.atomic(AtomicOp::Add, Scope::Device, BOTH | UNIFORM | MADE));
    });
    test.detector.limits = limits;
    (test, update.expect("a site"))
}

#[test]
fn records_of_many_locations_take_time_and_memory_by_the_number_of_updates() {
    let (mut test, update) = updates(Limits::default());
    let mut done = 0;
    let [_, (made, bytes), (made_later, bytes_later)] = [1_000, 2_000, 3_000].map(|until| {
        let before = test.detector.workgroup.nodes.made;
        gossip(&mut test, update, done..until);
        done = until;
        test.detector.workgroup.nodes.collect();
        (test.detector.workgroup.nodes.made - before, test.detector.workgroup.nodes.bytes())
    });
    assert!(made_later < made * 5 / 4, "{made} joins of branches, {made_later} for as many more");
    assert!(bytes_later < bytes * 5 / 4, "{bytes} bytes of records, {bytes_later} later");
    assert_eq!((test.found(), test.detector.given_up()), (Vec::new(), GivenUp::default()));
}

#[test]
fn records_without_memory_are_forgotten() {
    let limits = Limits { bytes: 4 << 20, ..Limits::default() };
    let (mut test, update) = updates(limits);
    for part in 0..20 {
        gossip(&mut test, update, 100 * part..100 * part + 100);
        let (bytes, records) = (test.detector.bytes(), test.detector.workgroup.nodes.bytes());
        assert!(bytes <= limits.bytes && records <= limits.bytes / 4, "{records} bytes of records, {bytes} in all");
    }
    let given_up = test.detector.given_up();
    assert!(given_up.records > 0 && given_up.accesses == 0, "{given_up:?}");
    // What was ordered is a candidate, and what is ordered from here on is not.
    let [first, second] = [at(5_000, 0), at(5_001, 0)];
    let counter = word(1 << 29);
    test.write(first, word(1 << 20));
    test.detector.atomic(first, update, counter, true);
    test.detector.atomic(second, update, counter, true);
    test.read(second, word(1 << 20));
    assert_eq!(test.found(), []);
    // The new kinds tell the one from the other.
    test.read(at(5_002, 0), word(1 << 20));
    test.read(second, word(0));
    let kinds: Vec<_> = test.detector.candidates().iter().map(|kind| (kind.kind.vague, kind.count)).collect();
    assert_eq!(kinds, [(false, 1), (true, 1)]);
}

#[test]
fn records_give_way_to_the_shadow() {
    let limits = Limits { bytes: 4 << 20, ..Limits::default() };
    let given_up = |updates_first: bool| {
        let (mut test, update) = updates(limits);
        if updates_first {
            gossip(&mut test, update, 0..300);
            assert!(test.detector.workgroup.nodes.bytes() > limits.bytes / 8);
        }
        (0..42).for_each(|page| test.write(at(5_000, 0), word((page << 16) + (1 << 24))));
        test.detector.given_up()
    };
    assert_eq!([given_up(false), given_up(true)].map(|given_up| given_up.accesses), [0, 0]);
}

#[test]
fn known_joins_are_not_made_again_once_memory_is_used_up() {
    let (mut test, update) = updates(Limits { bytes: 2 << 20, ..Limits::default() });
    count(&mut test, update, 0..2);
    assert!(test.detector.workgroup.nodes.has_known());
    (0..100).for_each(|page| test.write(at(0, 0), word(page << 16)));
    assert!(test.detector.given_up().accesses > 0);
    let before = test.detector.workgroup.nodes.made;
    count(&mut test, update, 2..200);
    assert!(test.detector.workgroup.nodes.made > before && !test.detector.workgroup.nodes.has_known());
    assert!(test.detector.bytes() <= test.detector.limits.bytes * 17 / 16);
}
