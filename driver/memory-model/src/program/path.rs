//! The paths through one thread: the directions of its branches, and the constraints that they put on the values of
//! reads.
//!
//! A branch on the value of a read continues in both directions, each with a constraint. Loops are bounded: if an
//! instruction would run more often than the user's bound, the path is cut there.

use std::collections::BTreeMap;

use super::cut::repeats;
use super::{
    Barrier, BranchCondition, Comparison, Expression, InstructionKind, Operand, Register, Thread, TooLarge, Value,
};

/// A constraint of a path on the values of its reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The comparison of the two sides.
    pub comparison: Comparison,
    /// The left side.
    pub left: Value,
    /// The right side.
    pub right: Value,
    /// Whether the comparison must hold.
    pub holds: bool,
}

impl Constraint {
    /// Whether it is met, if `read` knows enough.
    pub fn is_met(&self, read: &mut impl FnMut(usize) -> Option<i64>) -> Option<bool> {
        Some(self.comparison.holds(self.left.evaluate(read)?, self.right.evaluate(read)?) == self.holds)
    }
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The thread ended.
    Finished,
    /// The bound on loops was reached.
    Cut {
        /// Index of the instruction before which it was cut.
        at: usize,
        /// Number of earlier iterations that repeated a state.
        repeated: usize,
    },
    /// The last event is a control barrier that does not open.
    Waiting,
}

/// A step of a path that is an event.
#[derive(Clone, Debug)]
pub(super) struct PathEvent {
    /// The index into the thread's code.
    pub(super) at: usize,
    /// The value that is written. Reads are numbered by the steps of this path.
    pub(super) value: Option<Value>,
    /// For static control barriers: the number of earlier arrivals of this thread.
    pub(super) round: u32,
}

/// A path through a thread.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) steps: Vec<PathEvent>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) registers: BTreeMap<Register, Value>,
    pub(super) end: End,
}

const MAX_PATHS: usize = 4096;
const MAX_STEPS: usize = 1 << 12;
const MAX_VALUE: u32 = 1 << 10;

struct PathState {
    path: Path,
    at: usize,
    runs: Vec<u32>,
    rounds: BTreeMap<u32, u32>,
    /// Indices of the executed instructions.
    trail: Vec<usize>,
}

/// The paths through `thread`; without those that are cut or wait at a barrier without a quorum, unless `unfinished`.
pub(super) fn paths(thread: &Thread, bound: u32, unfinished: bool) -> Result<Vec<Path>, TooLarge> {
    let registers = thread.registers.iter().map(|(register, value)| (register.clone(), Value::Constant(*value)));
    let path = Path { steps: vec![], constraints: vec![], registers: registers.collect(), end: End::Finished };
    let start = PathState { path, at: 0, runs: vec![0; thread.code.len()], rounds: BTreeMap::new(), trail: vec![] };
    let mut open = vec![start];
    let mut found: Vec<Path> = Vec::new();
    while let Some(state) = open.pop() {
        walk(thread, state, bound, unfinished, &mut open, &mut found)?;
        if found.len() + open.len() > MAX_PATHS {
            let what = format!("thread {} has more than {MAX_PATHS} paths", thread.name);
            return Err(TooLarge::new(what, MAX_PATHS as u64));
        }
    }
    Ok(found)
}

fn walk(
    thread: &Thread,
    mut state: PathState,
    bound: u32,
    unfinished: bool,
    open: &mut Vec<PathState>,
    found: &mut Vec<Path>,
) -> Result<(), TooLarge> {
    while let Some(instruction) = thread.code.get(state.at) {
        state.trail.push(state.at);
        if state.runs[state.at] == bound {
            state.path.end = End::Cut { at: state.at, repeated: repeats(thread, &state.trail) };
            break;
        }
        if state.trail.len() > MAX_STEPS {
            let what = format!("a path of thread {} has more than {MAX_STEPS} instructions", thread.name);
            return Err(TooLarge::new(what, MAX_STEPS as u64));
        }
        state.runs[state.at] += 1;
        let next = state.at + 1;
        match &instruction.kind {
            InstructionKind::Execute { operation, destination, value, barrier } => {
                let step = state.path.steps.len();
                let value = value.as_ref().map(|value| evaluate(value, &state.path.registers, step));
                check_size(thread, value.as_ref())?;
                let mut round = 0;
                if let Some(Barrier::Static { id, .. }) = barrier {
                    let met = state.rounds.entry(*id).or_insert(0);
                    round = *met;
                    *met += 1;
                }
                state.path.steps.push(PathEvent { at: state.at, value, round });
                if let Some(destination) = destination.as_ref().filter(|_| operation.reads()) {
                    // The number is not known yet: the search chooses the write.
                    state.path.registers.insert(destination.clone(), Value::Read(step));
                }
                let quorum = matches!(barrier, Some(Barrier::Static { quorum: Some(_), .. }));
                // A path of its own ends here: that of a thread which waits for others that never come.
                if quorum || unfinished && matches!(barrier, Some(Barrier::Static { .. })) {
                    found.push(Path { end: End::Waiting, ..state.path.clone() });
                }
            }
            InstructionKind::Compute { destination, value } => {
                let value = evaluate(value, &state.path.registers, usize::MAX);
                check_size(thread, Some(&value))?;
                state.path.registers.insert(destination.clone(), value);
            }
            InstructionKind::Branch { condition: None, target } => {
                state.at = *target;
                continue;
            }
            InstructionKind::Branch { condition: Some(BranchCondition { comparison, left, right }), target } => {
                let left = operand(left, &state.path.registers, usize::MAX);
                let right = operand(right, &state.path.registers, usize::MAX);
                if let (Value::Constant(left), Value::Constant(right)) = (&left, &right) {
                    state.at = if comparison.holds(*left, *right) { *target } else { next };
                    continue;
                }
                // Both ways are paths; the values of reads decide which of them an execution takes.
                let mut taken = PathState {
                    path: state.path.clone(),
                    at: *target,
                    runs: state.runs.clone(),
                    rounds: state.rounds.clone(),
                    trail: state.trail.clone(),
                };
                let constraint =
                    |holds| Constraint { comparison: *comparison, left: left.clone(), right: right.clone(), holds };
                taken.path.constraints.push(constraint(true));
                state.path.constraints.push(constraint(false));
                open.push(taken);
            }
        }
        state.at = next;
    }
    if state.path.end == End::Finished || unfinished {
        found.push(state.path);
    }
    Ok(())
}

fn check_size(thread: &Thread, value: Option<&Value>) -> Result<(), TooLarge> {
    match value {
        Some(value) if value.size() > MAX_VALUE => {
            let what = format!("a value of thread {} has {} parts", thread.name, value.size());
            Err(TooLarge::new(what, u64::from(MAX_VALUE)))
        }
        _ => Ok(()),
    }
}

fn operand(operand: &Operand, registers: &BTreeMap<Register, Value>, own: usize) -> Value {
    match operand {
        Operand::Constant(value) => Value::Constant(*value),
        Operand::Register(register) => registers.get(register).cloned().unwrap_or(Value::Constant(0)),
        Operand::Read => Value::Read(own),
    }
}

fn evaluate(expression: &Expression, registers: &BTreeMap<Register, Value>, own: usize) -> Value {
    match expression {
        Expression::Operand(only) => operand(only, registers, own),
        Expression::Binary(binary, left, right) => {
            Value::binary(*binary, operand(left, registers, own), operand(right, registers, own))
        }
    }
}
