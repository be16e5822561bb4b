//! Values of reads and writes, once reads-from is known.
//!
//! A read returns what its source wrote, which may depend on the value of another read. If the dependency is cyclic,
//! any consistent value is possible: the model does not forbid values out of thin air.
//!
//! 1. A cycle of additions and multiplications has the solutions of its equation.
//! 2. A cycle of copies admits every value. The numbers of the program and its questions are tried, and one from each
//!    gap between them: comparisons with these numbers cannot distinguish other values.
//! 3. For other cycles, and if other values are computed from the copies, the same numbers are tried. There may be more
//!    solutions: then [`Solved::open`] is set, and a search that finds nothing is undecided.

use crate::program::{Binary, Instance, TooLarge, Value};
use crate::relations::Source;

/// The values of reads, by event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// For each event that reads, its value; `None` if its source writes no known value.
    pub read: Vec<Option<i64>>,
    /// Whether a value was guessed.
    pub out_of_thin_air: bool,
}

impl Values {
    /// The value that `event` writes.
    pub fn written(&self, instance: &Instance, event: usize) -> Option<i64> {
        instance.values[event].as_ref()?.evaluate(&mut |read| self.read[read])
    }

    /// The final value of a register of `thread`; 0 if it was never set, `None` if it was never set and the thread
    /// waits for ever.
    pub fn register(&self, instance: &Instance, thread: usize, register: &crate::program::Register) -> Option<i64> {
        match instance.registers.get(thread)?.get(register) {
            None => (!instance.waits[thread]).then_some(0),
            Some(value) => value.evaluate(&mut |read| self.read[read]),
        }
    }
}

/// The assignments of values to all reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Solved {
    /// More than one only if values depend on themselves.
    pub(super) solutions: Vec<Values>,
    /// Number of values that were tried for a read, if there may be other solutions; 0 if these are all.
    pub(super) open: u64,
}

/// Maximum number of guesses for one execution.
const MAX_GUESSES: u64 = 4096;

/// The value of a read, as far as it is known.
#[derive(Clone, Copy, PartialEq)]
enum ReadState {
    Unasked,
    /// Being computed: to need it again is a cycle.
    Computing,
    Known(Option<i64>),
}

struct Solver<'a> {
    instance: &'a Instance,
    sources: &'a [Option<Source>],
    states: Vec<ReadState>,
}

impl<'a> Solver<'a> {
    fn new(instance: &'a Instance, sources: &'a [Option<Source>]) -> Self {
        Self { instance, sources, states: vec![ReadState::Unasked; sources.len()] }
    }

    /// The value that `event` reads. `None` if it is not decided, depends on itself or has no value.
    fn read(&mut self, event: usize) -> Option<i64> {
        match self.states[event] {
            ReadState::Known(value) => return value,
            ReadState::Computing => return None,
            ReadState::Unasked => {}
        }
        self.states[event] = ReadState::Computing;
        let value = match self.sources[event] {
            None => None,
            Some(Source::Initial) => self.initial(event),
            Some(Source::Write(write)) => self.written(write),
        };
        self.states[event] = if value.is_some() { ReadState::Known(value) } else { ReadState::Unasked };
        value
    }

    fn read_all(&mut self) {
        for event in (0..self.sources.len()).filter(|&event| self.sources[event].is_some()) {
            self.read(event);
        }
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

/// Whether no constraint is known to be violated.
pub(super) fn constraints_may_hold(instance: &Instance, sources: &[Option<Source>]) -> bool {
    let mut solver = Solver::new(instance, sources);
    instance.constraints.iter().all(|constraint| constraint.is_met(&mut |read| solver.read(read)) != Some(false))
}

/// The assignments of values to all reads.
///
/// # Errors
///
/// If cycles need too many guesses.
pub(super) fn solve(instance: &Instance, sources: &[Option<Source>]) -> Result<Solved, TooLarge> {
    let mut solver = Solver::new(instance, sources);
    solver.read_all();
    let mut solved = Solved::default();
    guess(&mut solver, false, &mut solved, &mut MAX_GUESSES.clone())?;
    Ok(solved)
}

/// Guesses the value of a read that depends on itself, and solves the rest.
fn guess(solver: &mut Solver<'_>, guessed: bool, solved: &mut Solved, left: &mut u64) -> Result<(), TooLarge> {
    let circular: Vec<_> = (0..solver.sources.len()).filter(|&event| is_cyclic(solver, event)).collect();
    let Some(&first) = circular.first() else {
        let read: Vec<_> =
            solver.states.iter().map(|state| if let ReadState::Known(value) = state { *value } else { None }).collect();
        let values = Values { read, out_of_thin_air: guessed };
        if is_solution(solver, &values) {
            solved.solutions.push(values);
        }
        return Ok(());
    };
    // A cycle whose equation can be solved comes before one whose cannot.
    let equation =
        circular.iter().find_map(|&event| Some((event, around(solver, event, event, solver.sources.len())?)));
    let event = equation.map_or(first, |equation| equation.0);
    let exact = equation.and_then(|equation| equation.1.fixed_points());
    let numbers = match exact {
        Some(Fixed::These(numbers)) => numbers,
        other => {
            let numbers = numbers(solver.instance);
            if other.is_none() || is_computed_with(solver.instance) {
                solved.open = solved.open.max(numbers.len() as u64);
            }
            numbers
        }
    };
    for value in numbers {
        *left = left.checked_sub(1).ok_or_else(|| {
            TooLarge::new("the values of an execution depend on themselves and take too many guesses", MAX_GUESSES)
        })?;
        let states = solver.states.clone();
        solver.states[event] = ReadState::Known(Some(value));
        solver.read_all();
        guess(solver, true, solved, left)?;
        solver.states = states;
    }
    Ok(())
}

/// Whether the value that `event` reads is unknown only because it depends on itself, or on other values that do.
fn is_cyclic(solver: &Solver<'_>, event: usize) -> bool {
    let mut path = vec![event];
    let mut seen = vec![false; solver.states.len()];
    while let Some(at) = path.pop() {
        if matches!(solver.states[at], ReadState::Known(_)) || std::mem::replace(&mut seen[at], true) {
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

/// `scale · v + offset`, in 64-bit arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Affine {
    scale: i64,
    offset: i64,
}

/// The fixed points of a cycle.
#[derive(Debug, PartialEq, Eq)]
enum Fixed {
    /// All values: the cycle only copies.
    All,
    These(Vec<i64>),
}

impl Affine {
    fn constant(offset: i64) -> Self {
        Self { scale: 0, offset }
    }

    fn apply(binary: Binary, a: Self, b: Self) -> Option<Self> {
        let (scale, offset) = match (binary, a.scale, b.scale) {
            (Binary::Add, ..) => (a.scale.wrapping_add(b.scale), a.offset.wrapping_add(b.offset)),
            (Binary::Sub, ..) => (a.scale.wrapping_sub(b.scale), a.offset.wrapping_sub(b.offset)),
            (Binary::Mul, 0, _) => (b.scale.wrapping_mul(a.offset), b.offset.wrapping_mul(a.offset)),
            (Binary::Mul, _, 0) => (a.scale.wrapping_mul(b.offset), a.offset.wrapping_mul(b.offset)),
            (_, 0, 0) => (0, binary.apply(a.offset, b.offset)),
            _ => return None,
        };
        Some(Self { scale, offset })
    }

    /// All `v` with `v = scale · v + offset`; `None` if there are too many to list.
    fn fixed_points(self) -> Option<Fixed> {
        let factor = self.scale.wrapping_sub(1);
        let wanted = self.offset.wrapping_neg();
        if factor == 0 {
            return Some(if wanted == 0 { Fixed::All } else { Fixed::These(vec![]) });
        }
        // Solves factor · v = wanted: divides both by the power of two in factor, then multiplies by the inverse of the
        // odd part.
        let twos = factor.trailing_zeros();
        if wanted != 0 && wanted.trailing_zeros() < twos {
            return Some(Fixed::These(vec![]));
        }
        if twos > 4 {
            return None;
        }
        let odd = (factor >> twos) as u64;
        let mut inverse = odd;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        let width = 64 - twos;
        let mask = u64::MAX >> twos;
        let min = ((wanted >> twos) as u64).wrapping_mul(inverse) & mask;
        let copies = 0..1u64 << twos;
        let all = copies.map(|copy| min.wrapping_add(if twos == 0 { 0 } else { copy << width }) as i64);
        Some(Fixed::These(all.collect()))
    }
}

/// The value that `event` reads as an affine function of the value that `unknown` reads; `None` if it is not known to
/// be one.
fn around(solver: &Solver<'_>, event: usize, unknown: usize, depth: usize) -> Option<Affine> {
    fn of(solver: &Solver<'_>, value: &Value, unknown: usize, depth: usize) -> Option<Affine> {
        match value {
            Value::Constant(number) => Some(Affine::constant(*number)),
            Value::Read(read) if *read == unknown => Some(Affine { scale: 1, offset: 0 }),
            Value::Read(read) => match solver.states[*read] {
                ReadState::Known(value) => value.map(Affine::constant),
                _ => around(solver, *read, unknown, depth.checked_sub(1)?),
            },
            Value::Binary(binary, a, b, _) => {
                Affine::apply(*binary, of(solver, a, unknown, depth)?, of(solver, b, unknown, depth)?)
            }
        }
    }
    let Some(Source::Write(write)) = solver.sources[event] else { return None };
    of(solver, solver.instance.values[write].as_ref()?, unknown, depth)
}

/// Whether any value of the instance is computed, not only a number or a copy.
fn is_computed_with(instance: &Instance) -> bool {
    let computed = |value: &Value| matches!(value, Value::Binary(..));
    instance.values.iter().flatten().any(computed)
        || instance.registers.iter().any(|registers| registers.values().any(computed))
        || instance.constraints.iter().any(|constraint| computed(&constraint.left) || computed(&constraint.right))
}

/// Whether every read has the value that its source writes, and every constraint is met as far as it is known.
pub(super) fn is_consistent(instance: &Instance, sources: &[Option<Source>], values: &Values) -> bool {
    let fits = |event: usize| match sources[event] {
        Some(Source::Write(write)) => values.written(instance, write) == values.read[event],
        _ => true,
    };
    (0..sources.len()).all(fits)
        && instance.constraints.iter().all(|constraint| constraint.is_met(&mut |read| values.read[read]) != Some(false))
}

fn is_solution(solver: &Solver<'_>, values: &Values) -> bool {
    is_consistent(solver.instance, solver.sources, values)
}

/// Candidates for guesses: the numbers of the program and its questions, and one from each gap between them.
pub(super) fn numbers(instance: &Instance) -> Vec<i64> {
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
    let below = numbers.iter().min().and_then(|min| min.checked_sub(1));
    let gaps: Vec<_> = numbers.iter().filter_map(|number| number.checked_add(1)).chain(below).collect();
    numbers.extend(gaps);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_points_are_all_values_that_fit() {
        let points = |scale, offset| Affine { scale, offset }.fixed_points();
        assert_eq!(points(1, 0), Some(Fixed::All));
        assert_eq!(points(1, 3), Some(Fixed::These(vec![])));
        assert_eq!(points(0, 7), Some(Fixed::These(vec![7])));
        assert_eq!(points(2, 0), Some(Fixed::These(vec![0])));
        // v = 10 - v: half of ten, and the same plus 2^63.
        assert_eq!(points(-1, 10), Some(Fixed::These(vec![5, 5 ^ i64::MIN])));
        assert_eq!(points(-1, 9), Some(Fixed::These(vec![])));
        for (scale, offset) in [(3, 8), (-7, 24), (5, -12), (9, 16), (-3, 0), (i64::MAX, 6)] {
            let Some(Fixed::These(found)) = points(scale, offset) else { panic!("{scale} {offset}") };
            assert!(!found.is_empty());
            for value in found {
                assert_eq!(value.wrapping_mul(scale).wrapping_add(offset), value, "{scale} {offset}");
            }
        }
    }
}
