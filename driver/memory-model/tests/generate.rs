//! The generated programs: all of them, and each once.

use std::collections::BTreeSet;

use spelter_memory_model::event::Agent;
use spelter_memory_model::generate::{Bounds, programs};
use spelter_memory_model::program::Program;

/// Workgroups, each with its threads, each with its operations; the order of groups and threads is lost.
type Shape = Vec<Vec<Vec<u8>>>;

fn sorted(mut groups: Shape) -> Shape {
    groups.iter_mut().for_each(|threads| threads.sort());
    groups.sort();
    groups
}

/// Plain accesses of one location: which kinds there are, 0 to 3.
fn shape(program: &Program) -> Shape {
    let mut groups: Shape = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let Agent::Device { workgroup, .. } = thread.agent else { continue };
        let of_thread = program.operations().filter(|(place, _)| place.0 == number);
        let accesses = of_thread.filter_map(|(_, operation)| operation.access());
        let kinds = accesses.map(|access| 2 * u8::from(access.writes) + u8::from(access.non_private));
        groups.resize(groups.len().max(workgroup as usize + 1), Vec::new());
        groups[workgroup as usize].push(kinds.collect());
    }
    sorted(groups)
}

/// Every way to deal `events` operations to three threads, and the threads to workgroups.
fn expected(events: u32) -> BTreeSet<Shape> {
    let mut shapes = BTreeSet::new();
    for first in 1..events - 1 {
        for second in 1..events - first {
            for code in 0..4u32.pow(events) {
                let kinds: Vec<u8> = (0..events).map(|at| (code >> (2 * at) & 3) as u8).collect();
                let (a, rest) = kinds.split_at(first as usize);
                let (b, c) = rest.split_at(second as usize);
                let writes = |thread: &[u8]| thread.iter().any(|kind| kind & 2 != 0);
                if ![a, b, c].into_iter().any(writes) {
                    continue;
                }
                let [a, b, c] = [a, b, c].map(<[u8]>::to_vec);
                shapes.insert(sorted(vec![vec![a.clone(), b.clone(), c.clone()]]));
                shapes.insert(sorted(vec![vec![a.clone(), b.clone()], vec![c.clone()]]));
                shapes.insert(sorted(vec![vec![a.clone(), c.clone()], vec![b.clone()]]));
                shapes.insert(sorted(vec![vec![b.clone(), c.clone()], vec![a.clone()]]));
                shapes.insert(sorted(vec![vec![a], vec![b], vec![c]]));
            }
        }
    }
    shapes
}

#[test]
fn every_program_of_three_threads_is_generated_once() {
    for events in 3..=5 {
        let bounds = Bounds { threads: 3, events: events as usize, locations: 1, scopes: vec![], ..Bounds::default() };
        let mut found = BTreeSet::new();
        for program in programs(bounds) {
            assert!(found.insert(shape(&program)), "twice: {:?}", shape(&program));
        }
        assert_eq!(found, expected(events));
    }
}
