//! Each dependency that the tracker records is needed: checked mode reports each one that is left out, of barriers
//! before commands and at the ends of recordings, and of waits for batches of other queues. Those that no two accesses
//! of the execution need (`execution.rs` decides it without checked mode) are counted, and leave it silent.

#![allow(clippy::print_stdout, reason = "the figures of docs/checked-mode-internals.md")]

mod execution;
mod program;

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::Error;
use program::{Shape, World};

/// What the tracker did, in order. Dependencies have numbers.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// A barrier before the next command of a batch or of a command buffer.
    Barrier(usize),
    /// The barrier that ends a batch or a segment of a command buffer.
    End(usize),
    /// The batch that is submitted next waits for a batch of another context.
    Wait { number: usize, batch: BatchOf },
    /// A batch was submitted to a queue.
    Submitted { batch: BatchOf, queue: usize, has_commands: bool, appends: bool },
}

/// A context, and the serial of a batch in it.
type BatchOf = (u64, u64);

#[derive(Debug, Default)]
struct Log {
    marks: Vec<Mark>,
    dependencies: usize,
    dropped: Option<usize>,
}

thread_local! {
    static LOG: RefCell<Log> = RefCell::default();
}

/// Logs a dependency; whether it is left out.
fn drops(mark: impl FnOnce(usize) -> Mark) -> bool {
    LOG.with_borrow_mut(|log| {
        let number = log.dependencies;
        log.dependencies += 1;
        log.marks.push(mark(number));
        log.dropped == Some(number)
    })
}

pub(super) fn drops_barrier() -> bool {
    drops(Mark::Barrier)
}

pub(super) fn drops_end() -> bool {
    drops(Mark::End)
}

pub(super) fn drops_wait(context: u64, serial: u64) -> bool {
    drops(|number| Mark::Wait { number, batch: (context, serial) })
}

pub(super) fn submitted(batch: BatchOf, queue: usize, has_commands: bool, appends: bool) {
    LOG.with_borrow_mut(|log| log.marks.push(Mark::Submitted { batch, queue, has_commands, appends }));
}

/// Begins a log in which the dependency with this number is left out.
fn begin(dropped: Option<usize>) {
    LOG.set(Log { dropped, ..Log::default() });
}

/// The marks since the last call.
fn take_marks() -> Vec<Mark> {
    LOG.with_borrow_mut(|log| std::mem::take(&mut log.marks))
}

/// Dependencies that were left out, one at a time, by kind.
#[derive(Debug, Default)]
struct Totals {
    reported: BTreeMap<&'static str, usize>,
    unneeded: BTreeMap<&'static str, usize>,
}

/// Runs random programs, first as they are, then without each one of their dependencies.
fn drop_each(shape: Shape, seeds: std::ops::Range<u64>) -> Result<Totals, Error> {
    let mut totals = Totals::default();
    for seed in seeds {
        let mut number = None;
        loop {
            let (execution, errors) = World::run(shape, seed, number)?;
            let races = execution.races(number);
            let what = format!("{shape:?}, seed {seed}, without {number:?}: {execution:?}");
            assert_eq!(races.is_some(), !errors.is_empty(), "{what}\n{races:?}\n{errors:#?}");
            if let Some(number) = number {
                let kind = execution.kind(number);
                let totals = if races.is_some() { &mut totals.reported } else { &mut totals.unneeded };
                *totals.entry(kind).or_default() += 1;
            } else {
                assert!(races.is_none(), "the program is wrong: {what}\n{races:?}");
            }
            let next = number.map_or(0, |number| number + 1);
            if next >= execution.dependencies() {
                break;
            }
            number = Some(next);
        }
    }
    println!("{shape:?}: {totals:?}");
    Ok(totals)
}

const PLAIN: Shape = Shape { contexts: 1, recordings: 0, images: false, replaces: false };

fn count(of: &BTreeMap<&'static str, usize>, kind: &str) -> usize {
    of.get(kind).copied().unwrap_or_default()
}

#[test]
fn barriers_between_commands_of_a_batch() -> Result<(), Error> {
    let Totals { reported, .. } = drop_each(PLAIN, 0..8)?;
    assert!(count(&reported, "barrier") > 30 && count(&reported, "end") > 4, "{reported:?}");
    Ok(())
}

#[test]
fn barriers_of_command_buffers_that_are_submitted_again() -> Result<(), Error> {
    let Totals { reported, .. } = drop_each(Shape { recordings: 2, ..PLAIN }, 0..8)?;
    assert!(count(&reported, "barrier") > 20 && count(&reported, "end") > 10, "{reported:?}");
    Ok(())
}

#[test]
fn barriers_of_command_buffers_that_are_recorded_again_for_new_storage() -> Result<(), Error> {
    let Totals { reported, .. } = drop_each(Shape { recordings: 2, replaces: true, ..PLAIN }, 0..8)?;
    assert!(count(&reported, "barrier") > 20 && count(&reported, "end") > 10, "{reported:?}");
    Ok(())
}

#[test]
fn barriers_between_regions_of_images() -> Result<(), Error> {
    let Totals { reported, unneeded } = drop_each(Shape { recordings: 1, images: true, ..PLAIN }, 0..12)?;
    assert!(count(&reported, "barrier") > 20, "{reported:?}");
    // The tracker knows subresources, not their regions.
    assert!(count(&unneeded, "barrier") > 0, "{unneeded:?}");
    Ok(())
}

#[test]
fn barriers_and_waits_of_two_contexts_on_two_queues() -> Result<(), Error> {
    let Totals { reported, .. } = drop_each(Shape { contexts: 2, recordings: 1, images: true, ..PLAIN }, 0..12)?;
    assert!(count(&reported, "wait") > 10 && count(&reported, "end") > 10, "{reported:?}");
    Ok(())
}
