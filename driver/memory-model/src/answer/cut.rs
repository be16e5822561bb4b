//! Whether the bound on loops hides executions: if it does, a search that found nothing is undecided.
//!
//! 1. A cut path hides nothing if enough of its iterations repeated a state (see `program/cut.rs`): any continuation is
//!    also one of a shorter path. For final states one such iteration is enough. Races need two: an access in such an
//!    iteration may itself race, and must then be kept.
//! 2. Any other cut hides executions if the cut path is part of one. It is enough to find an execution of the cut path
//!    with any paths of the other threads: those that the path does not depend on may behave differently once it
//!    continues, but they can continue, too. If the path may depend on what comes after the cut, it is assumed to be
//!    part of an execution.
//! 3. No cut hides a race if no two operations of the program conflict, as with atomics in each other's scopes.

use std::ops::ControlFlow;

use super::Options;
use crate::event::{Event, Trace};
use crate::program::{Program, TooLarge, combinations, cuts, may_depend_on_its_own_continuation};
use crate::relations::{Frame, conflicts};
use crate::row::Row;
use crate::search::{Statistics, resume};

/// What a search looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    FinalStates,
    Races,
}

/// Fails if the bound on loops may hide what is wanted. Adds the steps of its own searches to `spent`.
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
    if let Some((thread, _)) =
        cut.iter().find(|(thread, places)| may_depend_on_its_own_continuation(program, *thread, places))
    {
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
        // A search that guesses values may miss an execution.
        if found || statistics.guessed > 0 {
            return hidden(thread);
        }
    }
    Ok(())
}

/// Whether any two operations of the code conflict. Operations that do not conflict never race, however often they run.
fn may_race(program: &Program, options: &Options) -> bool {
    let agents = program.threads.iter().map(|thread| thread.agent).collect();
    let operations = program.operations().map(|((thread, _), operation)| (thread, operation.clone()));
    let events = operations.map(|(thread, operation)| Event::new(thread, operation)).collect();
    let trace = Trace { agents, events, ..Trace::default() };
    // Programs that are too long for a search are not examined: they count as conflicting.
    trace.len() > u128::LIMIT || conflicts(&Frame::<u128>::new(&trace, options.model)).iter().next().is_some()
}
