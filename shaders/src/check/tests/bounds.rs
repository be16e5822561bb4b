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
    let joins = test.detector.workgroup.joins.bytes();
    test.detector.enter(100);
    assert!(joins > 0 && test.detector.workgroup.joins.bytes() == joins);
    test.detector.workgroup.joins.clear();
    let without = test.detector.bytes();
    count(&mut test, update, 100..101);
    assert!(test.detector.bytes() >= without + test.detector.workgroup.joins.bytes());
    // What all of them released is known to the last one.
    (0..100).for_each(|workgroup| test.read(at(100, 1), word(8 * workgroup)));
    assert_eq!(test.found(), []);
    test.detector.settle();
    assert_eq!(test.detector.workgroup.joins.bytes(), 0);
}

#[test]
fn examples_for_which_there_is_no_memory_are_counted() {
    let given_up = |bytes: u64| {
        let mut sites = Sites::default();
        let [_, write] = sites.plain(StorageClass::Uniform, true);
        let limits = Limits { bytes, kinds: 1, examples: 4096 };
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
