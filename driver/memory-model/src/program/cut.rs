//! Loops that the bound cuts: which of their iterations changed nothing, and which threads depend on code after the
//! cut.
//!
//! An iteration that returns to an instruction without having written memory or arrived at a barrier, and has set only
//! registers that are set again before they are used, has *repeated a state*: the thread behaves the same without it.
//! Removing its events from an execution gives an execution, since that only shrinks the relations of the model. It has
//! the same final state, and the same races among the remaining events.

use std::collections::BTreeSet;

use super::path::{End, paths};
use super::{BranchCondition, Expression, Instruction, InstructionKind, Operand, Program, Register, Thread, TooLarge};
use crate::event::Operation;

/// Number of disjoint iterations on `trail`, the indices of executed instructions, that repeated a state.
pub(super) fn repeats(thread: &Thread, trail: &[usize]) -> usize {
    let live = live(thread);
    let mut start = 0;
    let mut found = 0;
    for end in 0..trail.len() {
        // The previous visit suffices: iterations that began earlier changed at least as much.
        let mut changed = BTreeSet::new();
        for at in (start..end).rev() {
            let instruction = &thread.code[trail[at]];
            if has_effect(instruction) {
                break;
            }
            changed.extend(sets(instruction));
            if trail[at] == trail[end] {
                if changed.is_disjoint(&live[trail[end]]) {
                    found += 1;
                    start = end;
                }
                break;
            }
        }
    }
    found
}

/// The threads with a path that is cut without having repeated a state `repeats` times, each with the indices of the
/// cuts.
pub(crate) fn cuts(program: &Program, bound: u32, repeats: usize) -> Result<Vec<(usize, BTreeSet<usize>)>, TooLarge> {
    let mut cut = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        if !thread.branches() {
            continue;
        }
        let places = paths(thread, bound, true)?.into_iter().filter_map(|path| match path.end {
            End::Cut { at, repeated } if repeated < repeats => Some(at),
            _ => None,
        });
        let places: BTreeSet<_> = places.collect();
        if !places.is_empty() {
            cut.push((number, places));
        }
    }
    Ok(cut)
}

/// Whether `thread`, cut at `places`, may get there only because another thread reads what it writes afterwards, or
/// arrives at a barrier with it then: the model allows a read to read from a write that depends on the read's own
/// value.
pub(crate) fn may_depend_on_its_own_continuation(program: &Program, thread: usize, places: &BTreeSet<usize>) -> bool {
    let code = |thread: usize| &program.threads[thread].code;
    let after = reachable(code(thread), places);
    let mut open = vec![(thread, touched(after.iter().map(|&at| &code(thread)[at]), Operation::writes))];
    // The threads that its writes and barriers affect, transitively.
    let mut fed = vec![false; program.threads.len()];
    while let Some((from, written)) = open.pop() {
        for (other, fed) in fed.iter_mut().enumerate() {
            let comes = other != from && !*fed;
            if comes && !touched(code(other).iter(), Operation::reads).is_disjoint(&written) {
                *fed = true;
                open.push((other, touched(code(other).iter(), Operation::writes)));
            }
        }
    }
    fed[thread]
}

/// The objects of the operations that `picks` selects; `None` stands for control barriers.
fn touched<'a>(
    code: impl Iterator<Item = &'a Instruction>,
    picks: impl Fn(&Operation) -> bool,
) -> BTreeSet<Option<u32>> {
    let object = |operation: &Operation| match operation.access() {
        Some(access) if picks(operation) => Some(Some(access.location.object)),
        _ => operation.control_barrier().then_some(None),
    };
    code.filter_map(executed).filter_map(object).collect()
}

fn executed(instruction: &Instruction) -> Option<&Operation> {
    if let InstructionKind::Execute { operation, .. } = &instruction.kind { Some(operation) } else { None }
}

/// Whether other threads may observe that it ran.
fn has_effect(instruction: &Instruction) -> bool {
    matches!(instruction.kind, InstructionKind::Execute { barrier: Some(_), .. })
        || executed(instruction).is_some_and(|operation| operation.writes() || operation.control_barrier())
}

fn sets(instruction: &Instruction) -> Option<&Register> {
    match &instruction.kind {
        InstructionKind::Execute { operation, destination, .. } => destination.as_ref().filter(|_| operation.reads()),
        InstructionKind::Compute { destination, .. } => Some(destination),
        InstructionKind::Branch { .. } => None,
    }
}

fn successors(code: &[Instruction], at: usize) -> impl Iterator<Item = usize> {
    let (next, target) = match code[at].kind {
        InstructionKind::Branch { condition: None, target } => (None, Some(target)),
        InstructionKind::Branch { target, .. } => (Some(at + 1), Some(target)),
        _ => (Some(at + 1), None),
    };
    next.into_iter().chain(target)
}

/// The indices of instructions that are reachable from `from`.
fn reachable(code: &[Instruction], from: &BTreeSet<usize>) -> BTreeSet<usize> {
    let mut open: Vec<_> = from.iter().copied().collect();
    let mut found = BTreeSet::new();
    while let Some(at) = open.pop() {
        if at < code.len() && found.insert(at) {
            open.extend(successors(code, at));
        }
    }
    found
}

/// Liveness: for each instruction, the registers that may be used before they are set. At the thread's end all are
/// live, since a question may use them, and likewise at a barrier, where the thread may wait for ever.
fn live(thread: &Thread) -> Vec<BTreeSet<&Register>> {
    let code = &thread.code;
    let all: BTreeSet<_> = code.iter().filter_map(sets).chain(thread.registers.iter().map(|(name, _)| name)).collect();
    let mut live = vec![BTreeSet::new(); code.len() + 1];
    live[code.len()] = all.clone();
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..code.len()).rev() {
            let mut before: BTreeSet<&Register> =
                successors(code, at).flat_map(|next| live[next].iter().copied().collect::<Vec<_>>()).collect();
            if let Some(set) = sets(&code[at]) {
                before.remove(set);
            }
            used(&code[at], &mut before);
            if matches!(code[at].kind, InstructionKind::Execute { barrier: Some(_), .. }) {
                before.extend(&all);
            }
            if before != live[at] {
                live[at] = before;
                changed = true;
            }
        }
    }
    live
}

fn used<'a>(instruction: &'a Instruction, into: &mut BTreeSet<&'a Register>) {
    let mut operand = |operand: &'a Operand| {
        if let Operand::Register(register) = operand {
            into.insert(register);
        }
    };
    let mut expression = |value: &'a Expression| match value {
        Expression::Operand(only) => operand(only),
        Expression::Binary(_, left, right) => {
            operand(left);
            operand(right);
        }
    };
    match &instruction.kind {
        InstructionKind::Execute { value, .. } => value.iter().for_each(expression),
        InstructionKind::Compute { value, .. } => expression(value),
        InstructionKind::Branch { condition, .. } => {
            if let Some(BranchCondition { left, right, .. }) = condition {
                operand(left);
                operand(right);
            }
        }
    }
}
