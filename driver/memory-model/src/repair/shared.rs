//! New control barriers in code that all threads of a program execute, as those of a shader do.
//!
//! A barrier for two racing accesses stands after the statement of one or before that of the other, in all threads:
//! every invocation of a workgroup has to execute it equally often. A statement is a line of the source.

use crate::event::Agent;
use crate::program::{Place, Program};

/// A place for a control barrier in code that all threads execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierPlace {
    /// Whether it is after the statement, or before it.
    pub after: bool,
    /// The statement.
    pub statement: Place,
    /// The insertions: threads, and the instructions before which the barrier is executed.
    pub(super) insertions: Vec<(usize, usize)>,
}

/// The place of a control barrier that orders an access before another; `None` if the invocations of a workgroup do not
/// execute either statement equally often.
pub fn barrier(program: &Program, first: (usize, usize), second: (usize, usize)) -> Option<BarrierPlace> {
    [(first, true), (second, false)].into_iter().find_map(|(access, after)| {
        let insertions = insertions(program, access, after)?;
        Some(BarrierPlace { after, statement: program.threads[access.0].code[access.1].place, insertions })
    })
}

fn insertions(program: &Program, (thread, at): (usize, usize), after: bool) -> Option<Vec<(usize, usize)>> {
    let source = *program.sources.get(thread)?.get(at)?;
    let mut all = Vec::new();
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for (number, own) in program.threads.iter().enumerate() {
        let executions = (0..own.code.len()).filter(|&at| program.sources[number][at] == source);
        let mut places: Vec<usize> = executions.map(|at| edge(program, (number, at), after)).collect();
        places.dedup();
        let Agent::Device { workgroup, .. } = own.agent else { return None };
        counts.push((workgroup, places.len()));
        all.extend(places.into_iter().map(|at| (number, at)));
    }
    let alike = |a: &(u32, usize)| counts.iter().all(|b| a.0 != b.0 || a.1 == b.1);
    (!all.is_empty() && counts.iter().all(alike)).then_some(all)
}

/// The end of the statement with this instruction, or its beginning.
fn edge(program: &Program, (thread, at): (usize, usize), after: bool) -> usize {
    let code = &program.threads[thread].code;
    let line = code[at].place.line;
    let same = |at: usize| line != 0 && code.get(at).is_some_and(|other| other.place.line == line);
    if after {
        let end = (at + 1..).find(|&next| !same(next));
        return end.unwrap_or(code.len());
    }
    (0..at).rev().find(|&before| !same(before)).map_or(0, |before| before + 1)
}
