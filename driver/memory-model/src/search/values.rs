//! What is read and written, once it is known who reads from whom.
//!
//! A read holds what its source wrote, which may depend on what another event read. Where that goes in a circle, any
//! value that fits is possible: the model does not forbid values out of thin air. Such values are guessed from the
//! numbers of the program.

use crate::program::{Instance, Value};
use crate::relations::Source;

/// What is read, by event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// For each event that reads, the value; `None` if its source writes no known value.
    pub read: Vec<Option<i64>>,
    /// Whether a value was guessed.
    pub out_of_thin_air: bool,
}

impl Values {
    /// What `event` writes.
    pub fn written(&self, instance: &Instance, event: usize) -> Option<i64> {
        instance.values[event].as_ref()?.evaluate(&mut |read| self.read[read])
    }

    /// What a register of `thread` holds at the end; 0 if it was never set, nothing if the thread waits for ever.
    pub fn register(&self, instance: &Instance, thread: usize, register: &crate::program::Register) -> Option<i64> {
        match instance.registers.get(thread)?.get(register) {
            None => (!instance.waits[thread]).then_some(0),
            Some(value) => value.evaluate(&mut |read| self.read[read]),
        }
    }
}

/// A read's value as far as it is known.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Unasked,
    /// Being asked for: to ask again is a circle.
    Asked,
    Known(Option<i64>),
}

struct Solver<'a> {
    instance: &'a Instance,
    sources: &'a [Option<Source>],
    states: Vec<State>,
}

impl<'a> Solver<'a> {
    fn new(instance: &'a Instance, sources: &'a [Option<Source>]) -> Self {
        Self { instance, sources, states: vec![State::Unasked; sources.len()] }
    }

    /// What `event` reads. `None` if that is not decided, goes in a circle or has no value.
    fn read(&mut self, event: usize) -> Option<i64> {
        match self.states[event] {
            State::Known(value) => return value,
            State::Asked => return None,
            State::Unasked => {}
        }
        self.states[event] = State::Asked;
        let value = match self.sources[event] {
            None => None,
            Some(Source::Initial) => self.initial(event),
            Some(Source::Write(write)) => self.written(write),
        };
        self.states[event] = if value.is_some() { State::Known(value) } else { State::Unasked };
        value
    }

    fn initial(&self, event: usize) -> Option<i64> {
        let object = self.instance.trace.operation(event).access()?.location.object;
        self.instance.initial.get(object as usize).copied()
    }

    fn written(&mut self, write: usize) -> Option<i64> {
        let instance = self.instance;
        instance.values[write].as_ref()?.evaluate(&mut |read| self.read(read))
    }
}

/// Whether no constraint is known to be broken.
pub(super) fn constraints_may_hold(instance: &Instance, sources: &[Option<Source>]) -> bool {
    let mut solver = Solver::new(instance, sources);
    instance.constraints.iter().all(|constraint| constraint.is_met(&mut |read| solver.read(read)) != Some(false))
}

/// The ways to give values to all reads; several only where values go in circles.
pub(super) fn solve(instance: &Instance, sources: &[Option<Source>]) -> Vec<Values> {
    let mut solver = Solver::new(instance, sources);
    let reads: Vec<_> = (0..sources.len()).filter(|&event| sources[event].is_some()).collect();
    reads.iter().for_each(|&event| {
        solver.read(event);
    });
    let mut solutions = Vec::new();
    guess(&mut solver, &reads, false, &mut solutions, &mut 4096);
    solutions
}

/// Guesses the first read that goes in a circle, and solves the rest.
fn guess(solver: &mut Solver<'_>, reads: &[usize], guessed: bool, solutions: &mut Vec<Values>, tries: &mut u32) {
    let circular = reads.iter().copied().find(|&event| goes_in_a_circle(solver, event));
    let Some(event) = circular else {
        let read: Vec<_> =
            solver.states.iter().map(|state| if let State::Known(value) = state { *value } else { None }).collect();
        let values = Values { read, out_of_thin_air: guessed };
        if is_solution(solver, &values) {
            solutions.push(values);
        }
        return;
    };
    for value in numbers(solver.instance) {
        if *tries == 0 {
            return;
        }
        *tries -= 1;
        let states = solver.states.clone();
        solver.states[event] = State::Known(Some(value));
        reads.iter().for_each(|&event| {
            solver.read(event);
        });
        guess(solver, reads, true, solutions, tries);
        solver.states = states;
    }
}

/// Whether what `event` reads is unknown only because it depends on itself or on others that do.
fn goes_in_a_circle(solver: &Solver<'_>, event: usize) -> bool {
    let mut path = vec![event];
    let mut seen = vec![false; solver.states.len()];
    while let Some(at) = path.pop() {
        if matches!(solver.states[at], State::Known(_)) || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let Some(Source::Write(write)) = solver.sources[at] else { continue };
        let Some(value) = &solver.instance.values[write] else { continue };
        let mut back = false;
        value.reads(&mut |read| {
            back |= read == event;
            path.push(read);
        });
        if back {
            return true;
        }
    }
    false
}

/// Whether every read holds what its source writes, and every constraint is met as far as it is known.
fn is_solution(solver: &Solver<'_>, values: &Values) -> bool {
    let instance = solver.instance;
    let fits = |event: usize| match solver.sources[event] {
        Some(Source::Write(write)) => values.written(instance, write) == values.read[event],
        _ => true,
    };
    (0..solver.sources.len()).all(fits)
        && instance.constraints.iter().all(|constraint| constraint.is_met(&mut |read| values.read[read]) != Some(false))
}

/// The numbers that a guess may be.
fn numbers(instance: &Instance) -> Vec<i64> {
    fn collect(value: &Value, into: &mut Vec<i64>) {
        match value {
            Value::Constant(number) => into.push(*number),
            Value::Read(_) => {}
            Value::Binary(_, a, b, _) => {
                collect(a, into);
                collect(b, into);
            }
        }
    }
    let mut numbers = instance.initial.clone();
    numbers.extend([0, 1]);
    numbers.extend(&instance.guesses);
    instance.values.iter().flatten().for_each(|value| collect(value, &mut numbers));
    for constraint in &instance.constraints {
        collect(&constraint.left, &mut numbers);
        collect(&constraint.right, &mut numbers);
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers.truncate(16);
    numbers
}
