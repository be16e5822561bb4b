//! SPIR-V's universal limits (specification, section 2.17), which every consumer must support.
//!
//! A module that exceeds one is rejected there, by the limit's name, so that memory and time for the later stages are
//! bounded.

use spirv::{Op, StorageClass};

use super::super::Error;
use super::body::{FunctionBody, Reachability};
use super::words::{Inst, Words, op_name};

const MEMBERS: usize = 16_383;
const SWITCH_PAIRS: usize = 16_383;
const PARAMETERS: usize = 255;
const INDEXES: usize = 255;
const GLOBAL_VARIABLES: usize = 65_535;
const LOCAL_VARIABLES: usize = 524_287;
const NESTING: u32 = 1023;

/// Checks each instruction and the number of variables against the limits.
pub(super) fn check(words: &Words) -> Result<(), Error> {
    let (mut globals, mut locals) = (0, 0);
    for inst in &words.insts {
        if inst.op == Op::Function {
            locals = 0;
        }
        if inst.op == Op::Variable {
            let local = words.operands(inst).first() == Some(&(StorageClass::Function as u32));
            let (count, max, of) = if local {
                (&mut locals, LOCAL_VARIABLES, "a function")
            } else {
                (&mut globals, GLOBAL_VARIABLES, "a module")
            };
            *count += 1;
            within(inst, *count, max, || format!("variables of {of}"))?;
        }
        let operands = words.operands(inst);
        match inst.op {
            Op::TypeStruct => within(inst, operands.len(), MEMBERS, || "members".into())?,
            Op::Switch => {
                let literal = operands.first().map_or(1, |&selector| words.literal_words(selector));
                let pairs = operands.len().saturating_sub(2) / (literal + 1);
                within(inst, pairs, SWITCH_PAIRS, || "pairs of literal and label".into())?;
            }
            Op::TypeFunction => within(inst, operands.len().saturating_sub(1), PARAMETERS, || "parameters".into())?,
            Op::FunctionCall => within(inst, operands.len().saturating_sub(1), PARAMETERS, || "arguments".into())?,
            Op::AccessChain | Op::InBoundsAccessChain | Op::CompositeExtract => {
                within(inst, operands.len().saturating_sub(1), INDEXES, || "indexes".into())?;
            }
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain | Op::CompositeInsert => {
                within(inst, operands.len().saturating_sub(2), INDEXES, || "indexes".into())?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn within(inst: &Inst, count: usize, max: usize, what: impl Fn() -> String) -> Result<(), Error> {
    if count <= max {
        return Ok(());
    }
    let message = format!("{}: {count} {}, SPIR-V's universal limit is {max}", op_name(inst.op), what());
    Err(Error { message, word: Some(inst.word as usize), line: None })
}

/// The nesting depth of constructs in a function; an error has the word of the first that is too deep.
pub(super) fn check_nesting(function: &FunctionBody) -> Result<(), (u32, String)> {
    let mut seen = vec![false; function.blocks.len()];
    let mut stack = vec![(0, 0)];
    while let Some((at, depth)) = stack.pop() {
        let Some(block) = function.blocks.get(at).filter(|block| block.reach == Reachability::Yes) else { continue };
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let Some(merge) = block.merge else {
            stack.extend(block.targets.iter().map(|target| (function.index[target], depth)));
            continue;
        };
        if depth >= NESTING {
            let message = format!("control flow nests deeper than {NESTING}, SPIR-V's universal limit");
            return Err((merge.word, message));
        }
        // The merge block belongs to the enclosing construct; it is visited before blocks inside branch to it.
        let inside = block.targets.iter().chain(block.merge_targets.iter().skip(1));
        let merge = block.merge_targets.first().map(|merge| function.index[merge]);
        stack.extend(
            inside
                .map(|target| function.index[target])
                .filter(|&target| Some(target) != merge)
                .map(|target| (target, depth + 1)),
        );
        stack.extend(merge.map(|merge| (merge, depth)));
    }
    Ok(())
}
