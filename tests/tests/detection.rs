//! The detector of data races against the axioms, on random programs: it misses no race, and seldom reports in vain.

use spelter_tests::checked::{Detection, Program, Schedule};

/// A small number; the program `races` runs more.
const PROGRAMS: u64 = 2000;

#[test]
fn no_race_of_an_execution_is_missed() {
    let (mut races, mut race_free, mut alarms) = (0, 0, 0);
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        for schedule in [Schedule::new(seed), Schedule::fine(seed)] {
            let (detection, _) = Detection::of(&program, schedule);
            assert_eq!(detection.missed, [], "seed {seed}, {schedule:?}");
            races += detection.races;
            race_free += u64::from(detection.races == 0);
            alarms += u64::from(detection.races == 0 && detection.candidates > 0);
        }
    }
    assert!(races > 10_000, "{races}");
    // Most candidates of race-free executions come from order that single accesses make.
    assert!(alarms * 4 < race_free, "{alarms} of {race_free} race-free executions have candidates");
}
