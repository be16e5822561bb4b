//! The questions of a race detector about a slice of a run, of 64, 96 and 124 events: is this pair of accesses a race
//! (with the derivation of all relations), why, and what prevents it?

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use spelter_memory_model::Model;
use spelter_memory_model::event::Class;
use spelter_memory_model::explain;
use spelter_memory_model::names::Numbers;
use spelter_memory_model::relations::{Choice, Frame};
use spelter_memory_model::repair::{self, TraceEffort};
use spelter_memory_model::slice::Slice;
use traces::Recorded;

#[path = "../tests/common/traces.rs"]
mod traces;

fn choice(recorded: &Recorded) -> Choice<u128> {
    Choice::recorded(recorded.sources.clone(), &[]).expect("it has at most 128 events")
}

fn is_race(recorded: &Recorded, choice: &Choice<u128>) -> bool {
    let slice = Slice::new(&recorded.trace, choice, Model::SPEC).expect("it is a slice");
    slice.is_race(recorded.pair.0, recorded.pair.1)
}

/// A kind of slice, with its name and as a function of the number of events.
type Shape = (&'static str, fn(usize) -> Recorded);

/// Slices whose pair is ordered: by a barrier, by several, by a chain of flags through all threads.
fn ordered(criterion: &mut Criterion) {
    let shapes: [Shape; 3] = [
        ("neighbours", |events| traces::neighbours(events / 3, 8, Class::Uniform)),
        ("rounds", traces::rounds),
        ("relay", traces::relay),
    ];
    for (name, shape) in shapes {
        let mut group = criterion.benchmark_group(name);
        for events in [64, 96, 124] {
            let recorded = shape(events);
            let choice = choice(&recorded);
            assert!(!is_race(&recorded, &choice), "{name}: the pair is ordered");
            group.bench_with_input(BenchmarkId::new("is a race", events), &recorded, |bencher, recorded| {
                bencher.iter(|| is_race(black_box(recorded), &choice));
            });
            group.bench_with_input(BenchmarkId::new("frame", events), &recorded, |bencher, recorded| {
                bencher.iter(|| Frame::<u128>::new(black_box(&recorded.trace), Model::SPEC));
            });
        }
        group.finish();
    }
}

/// A slice whose barrier has the wrong storage class.
fn racing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wrong class");
    group.sample_size(10);
    for events in [64, 96, 124] {
        let recorded = traces::neighbours(events / 3, 8, Class::Workgroup);
        let choice = choice(&recorded);
        let (trace, pair) = (&recorded.trace, recorded.pair);
        let repair = || repair::of_trace(trace, &choice, pair, Model::SPEC, TraceEffort::default());
        assert!(is_race(&recorded, &choice) && !repair().expect("it is a slice").repairs.is_empty());
        group.bench_function(BenchmarkId::new("explain", events), |bencher| {
            bencher.iter(|| explain::of_trace(trace, &choice, pair, Model::SPEC, &Numbers(trace)));
        });
        group.bench_function(BenchmarkId::new("repair", events), |bencher| bencher.iter(repair));
    }
    group.finish();
}

criterion_group!(benches, ordered, racing);
criterion_main!(benches);
