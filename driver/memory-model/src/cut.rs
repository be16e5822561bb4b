//! Whether the bound on loops hides executions: then what was not found remains undecided.
//!
//! 1. A path that was cut hides nothing if enough of its iterations repeated a state (see `program/cut.rs`): whatever goes
//!    on from there does so from a shorter path, too. For final states one such iteration is enough. A race may be one of
//!    an access in such an iteration, which must stay then; so races need two.
//! 2. Any other cut hides executions if its path is part of one. The threads that the cut does not depend on may do
//!    something else then, but they can go on; so it is enough to look for an execution of the cut path with whatever paths
//!    of the others. Where the path may depend on what comes after the cut, it is taken to be part of one.
//! 3. No cut hides a race where no two operations of the program conflict, as with atomics in each other's scopes.

use std::ops::ControlFlow;

use crate::answer::Options;
use crate::event::{Event, Trace};
use crate::program::{Program, TooLarge, combinations, cuts, feeds_itself};
use crate::relations::{Frame, conflicts};
use crate::row::Row;
use crate::search::{Statistics, resume};

/// What is looked for in executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    FinalStates,
    Races,
}

/// Fails if the bound on loops hides executions. Steps count on from `spent`.
pub(crate) fn complete(program: &Program, options: &Options, wanted: Wanted, spent: &mut u64) -> Result<(), TooLarge> {
    let repeats = match wanted {
        Wanted::FinalStates => 1,
        Wanted::Races => 2,
    };
    let cut = cuts(program, options.unroll, repeats)?;
    let hidden = |thread: usize| {
        let what = format!("paths of thread {} were cut in a loop", program.threads[thread].name);
        Err(TooLarge::unroll(what, u64::from(options.unroll)))
    };
    if cut.is_empty() || wanted == Wanted::Races && !may_race(program, options) {
        return Ok(());
    }
    if let Some((thread, _)) = cut.iter().find(|(thread, places)| feeds_itself(program, *thread, places)) {
        return hidden(*thread);
    }
    let (instances, combinations) = combinations(program, options.unroll, true)?;
    let mut statistics = Statistics { steps: *spent + combinations, ..Statistics::default() };
    for instance in instances {
        let matters = |repeated: &Option<usize>| repeated.is_some_and(|repeated| repeated < repeats);
        let Some(thread) = instance.cut.iter().position(matters) else { continue };
        let mut found = false;
        statistics.steps += instance.trace.len() as u64;
        statistics = resume(&instance, options.model, options.limits, statistics, &mut |_| {
            found = true;
            ControlFlow::Break(())
        })?;
        *spent = statistics.steps;
        // What is guessed may miss an execution.
        if found || statistics.guessed > 0 {
            return hidden(thread);
        }
    }
    Ok(())
}

/// Whether two operations of the code conflict. However often they run, those that do not never race.
fn may_race(program: &Program, options: &Options) -> bool {
    let agents = program.threads.iter().map(|thread| thread.agent).collect();
    let operations = program.operations().map(|((thread, _), operation)| (thread, operation.clone()));
    let events = operations.map(|(thread, operation)| Event { thread, operation, instance: None }).collect();
    let trace = Trace { agents, events, ..Trace::default() };
    // What is too long for a search is not asked.
    trace.len() > u128::LIMIT || conflicts(&Frame::<u128>::new(&trace, options.model)).iter().next().is_some()
}
