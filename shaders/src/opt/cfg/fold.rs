//! Branch folding: terminators with a constant condition, or with equal targets.

use super::insert_before_end;
use super::members::Members;
use crate::ir::{Block, BlockCall, InstData, Kernel, Op, Type, Value};

/// A switch with at most this many literals for one target becomes comparisons.
const MAX_COMPARED_LITERALS: usize = 3;

/// Maximum number of branches folded in a kernel with subgroup operations: each check takes time linear in the kernel's
/// size.
const MAX_TRIES: usize = 256;

/// Replaces branches and switches by simpler terminators where fewer targets are left. Returns whether there were any.
pub(super) fn terminators(kernel: &mut Kernel) -> bool {
    let mut changed = false;
    let members = Members::new(kernel);
    let mut tries = MAX_TRIES;
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        while let Some(data) = folded(kernel, block)
            && let Some(last) = kernel.last_inst(block)
        {
            let removes = data.targets().len() < kernel.insts[last].targets().len();
            let before = std::mem::replace(&mut kernel.insts[last], data);
            if removes && let Some(members) = &members {
                tries = tries.saturating_sub(1);
                if tries == 0 || !members.are_kept(kernel) {
                    kernel.insts[last] = before;
                    break;
                }
            }
            changed = true;
        }
    }
    changed
}

/// The simpler terminator. Each replacement is simpler than the terminator before, so repetition ends.
fn folded(kernel: &mut Kernel, block: Block) -> Option<InstData> {
    let last = kernel.last_inst(block)?;
    match &kernel.insts[last] {
        InstData::Branch { condition, then, otherwise } => match kernel.constant(*condition) {
            Some(0) => Some(InstData::Jump { to: otherwise.clone() }),
            Some(_) => Some(InstData::Jump { to: then.clone() }),
            None if then.block == otherwise.block => {
                let (condition, then, otherwise) = (*condition, then.clone(), otherwise.clone());
                Some(InstData::Jump { to: selected(kernel, block, condition, then, &otherwise) })
            }
            None => None,
        },
        InstData::Switch { selector, default, cases } => match kernel.constant(*selector) {
            Some(bits) => {
                let taken = cases.iter().find(|case| u64::from(case.0) == bits).map_or(default, |case| &case.1);
                Some(InstData::Jump { to: taken.clone() })
            }
            None => {
                let (selector, default) = (*selector, default.clone());
                let cases: Vec<_> = cases.iter().filter(|case| case.1 != default).cloned().collect();
                switch(kernel, block, selector, default, cases)
            }
        },
        _ => None,
    }
}

/// One call that replaces two calls of the same block: arguments that differ are selected.
fn selected(
    kernel: &mut Kernel,
    block: Block,
    condition: Value,
    mut then: BlockCall,
    otherwise: &BlockCall,
) -> BlockCall {
    for (arg, &other) in then.args.iter_mut().zip(&otherwise.args) {
        if *arg != other {
            let ty = kernel.ty(*arg);
            let data = InstData::Select { condition, then: *arg, otherwise: other };
            *arg = insert_before_end(kernel, block, data, ty);
        }
    }
    then
}

/// A switch without the cases that equal the default.
fn switch(
    kernel: &mut Kernel,
    block: Block,
    selector: Value,
    default: BlockCall,
    cases: Vec<(u32, BlockCall)>,
) -> Option<InstData> {
    let Some((_, first)) = cases.first().cloned() else { return Some(InstData::Jump { to: default }) };
    if cases.iter().all(|case| case.1 == first)
        && let Some(condition) = is_one_of(kernel, block, selector, cases.iter().map(|case| case.0).collect())
    {
        return Some(InstData::Branch { condition, then: first, otherwise: default });
    }
    let last = kernel.last_inst(block)?;
    match &mut kernel.insts[last] {
        // A switch with fewer cases is still a switch: changed in position.
        InstData::Switch { cases: old, .. } if old.len() != cases.len() => *old = cases,
        _ => {}
    }
    None
}

/// Whether the selector is one of the literals, if one range check or few comparisons suffice.
fn is_one_of(kernel: &mut Kernel, block: Block, selector: Value, mut literals: Vec<u32>) -> Option<Value> {
    literals.sort_unstable();
    let (&first, &last) = (literals.first()?, literals.last()?);
    let ask = |kernel: &mut Kernel, op: Op, a, b| {
        let data = InstData::Pure { op, args: smallvec::smallvec![a, b] };
        insert_before_end(kernel, block, data, op.result())
    };
    if literals.len() > 1 && (last - first) as usize == literals.len() - 1 {
        let first = constant(kernel, block, first);
        let count = constant(kernel, block, literals.len() as u32);
        let distance = ask(kernel, Op::ISub, selector, first);
        return Some(ask(kernel, Op::ULt, distance, count));
    }
    if literals.len() > MAX_COMPARED_LITERALS {
        return None;
    }
    let mut any = None;
    for literal in literals {
        let literal = constant(kernel, block, literal);
        let equal = ask(kernel, Op::IEq, selector, literal);
        any = Some(any.map_or(equal, |any| ask(kernel, Op::LOr, any, equal)));
    }
    any
}

fn constant(kernel: &mut Kernel, block: Block, literal: u32) -> Value {
    insert_before_end(kernel, block, InstData::Const { ty: Type::I32, bits: u64::from(literal) }, Type::I32)
}
