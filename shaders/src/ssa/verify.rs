//! The rules that both IRs share: layout, unique places of definitions, branch targets, and definitions that dominate
//! their uses. Each IR adds its own rules.

use std::fmt::Display;

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::{Dominators, Function, InstText, Instruction, Syntax, ValueDef};

/// The first violation of a rule: always a bug in the code that built the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VerifyError<Inst> {
    /// The instruction that breaks it, if it is one.
    pub inst: Option<Inst>,
    /// The rule and the violation; begins with the instruction's text.
    pub message: String,
}

pub(crate) type Result<K, T = ()> = std::result::Result<T, VerifyError<<K as Function>::Inst>>;

/// A violation that is not at a single instruction.
pub(crate) fn general<Inst, T>(message: String) -> std::result::Result<T, VerifyError<Inst>> {
    Err(VerifyError { inst: None, message })
}

/// A violation at an instruction.
pub(crate) fn broken<K: Syntax, T>(kernel: &K, inst: K::Inst, rule: impl Display) -> Result<K, T> {
    Err(VerifyError { inst: Some(inst), message: format!("`{}`: {rule}", InstText { kernel, inst }) })
}

/// Operands with their required types. Block arguments are not included.
pub(crate) type Operands<K> = SmallVec<[(<K as Function>::Value, <K as Function>::Type); 4]>;

/// The rules of one IR's instructions.
pub(crate) trait Rules: Syntax {
    /// Whether definitions must precede uses in layout order in unreachable blocks, too.
    const ORDERS_UNREACHABLE: bool;

    /// Types of an instruction's results. Operands may be missing from the kernel: that is reported later.
    fn result_types(&self, data: &Self::InstData) -> SmallVec<[Self::Type; 4]>;

    /// The types that an instruction's operands must have, or the rule that the instruction breaks in itself. All
    /// operands are in the kernel.
    fn operand_types(&self, data: &Self::InstData) -> std::result::Result<Operands<Self>, String>;
}

/// A kernel with a valid layout, valid places and valid branch targets.
pub(crate) struct Verifier<'a, K: Function> {
    kernel: &'a K,
    pub(crate) dominators: Dominators<K::Block>,
    positions: LayoutPositions<K>,
}

/// Positions of values and instructions in the layout.
struct LayoutPositions<K: Function> {
    /// Block and position of every value's definition.
    values: SecondaryMap<K::Value, Option<(K::Block, u32)>>,
    /// Position of every instruction.
    insts: SecondaryMap<K::Inst, u32>,
}

impl<'a, K: Rules> Verifier<'a, K> {
    /// Checks layout, places and branch targets. Takes `n log n` time in the kernel's size.
    pub(crate) fn new(kernel: &'a K) -> Result<K, Self> {
        let in_layout = check_layout(kernel)?;
        let positions = positions_of(kernel)?;
        check_targets(kernel, &in_layout)?;
        let dominators = Dominators::new(kernel);
        check_order(kernel, &dominators)?;
        Ok(Self { kernel, dominators, positions })
    }

    /// Checks the instructions of a block: operand types, and that the operands' definitions dominate them.
    pub(crate) fn check_block(&self, block: K::Block) -> Result<K> {
        let insts = self.kernel.block(block).map_or(&[][..], |(_, insts)| insts);
        insts.iter().try_for_each(|&inst| self.check_inst(block, inst))
    }

    fn check_inst(&self, block: K::Block, inst: K::Inst) -> Result<K> {
        let Some(data) = self.kernel.inst(inst) else { return Ok(()) };
        let mut result = Ok(());
        data.for_each_use(|value| {
            if result.is_ok() {
                result = self.check_use(block, inst, value);
            }
        });
        result?;
        let mut literals: Vec<u32> = data.cases().iter().map(|case| case.0).collect();
        literals.sort_unstable();
        if let Some(twice) = literals.windows(2).find(|pair| pair[0] == pair[1]) {
            return broken(self.kernel, inst, format_args!("case {} is there twice", twice[0]));
        }
        match self.kernel.operand_types(data) {
            Ok(types) => types.into_iter().try_for_each(|(value, ty)| expect(self.kernel, inst, value, ty)),
            Err(rule) => broken(self.kernel, inst, rule),
        }
    }

    /// Checks that the definition of `value` precedes `inst` on every path.
    fn check_use(&self, block: K::Block, inst: K::Inst, value: K::Value) -> Result<K> {
        let Some((defining, at)) = self.positions.values[value] else {
            return broken(self.kernel, inst, format_args!("{value} is not defined in the layout"));
        };
        let precedes = at < self.positions.insts[inst];
        let fits = match self.dominators.is_reachable(block) {
            true if defining == block => precedes,
            true => self.dominators.dominates(defining, block),
            false => precedes || !K::ORDERS_UNREACHABLE,
        };
        if fits { Ok(()) } else { broken(self.kernel, inst, format_args!("{value} does not dominate its use")) }
    }

    /// The block that defines a value, if it is in the layout.
    pub(crate) fn defining_block(&self, value: K::Value) -> Option<K::Block> {
        self.positions.values.get(value).copied().flatten().map(|(block, _)| block)
    }
}

/// Checks that the layout names existing blocks, each once, and that the entry has no parameters. Returns the set of
/// blocks.
fn check_layout<K: Rules>(kernel: &K) -> Result<K, EntitySet<K::Block>> {
    let Some(&entry) = kernel.layout().first() else { return general("the kernel has no entry block".into()) };
    let mut in_layout = EntitySet::new();
    for &block in kernel.layout() {
        if kernel.block(block).is_none() {
            return general(format!("{block} is in the layout but not in the kernel"));
        }
        if !in_layout.insert(block) {
            return general(format!("{block} is in the layout twice"));
        }
    }
    if kernel.block(entry).is_some_and(|(params, _)| !params.is_empty()) {
        return general(format!("the entry {entry} has parameters"));
    }
    Ok(in_layout)
}

/// Checks that every parameter, instruction and result is in one place, and that the tables agree with it.
fn positions_of<K: Rules>(kernel: &K) -> Result<K, LayoutPositions<K>> {
    let mut positions = LayoutPositions { values: SecondaryMap::new(), insts: SecondaryMap::new() };
    let mut seen = EntitySet::new();
    let mut position = 0;
    for &block in kernel.layout() {
        let Some((params, insts)) = kernel.block(block) else { continue };
        for (index, &param) in params.iter().enumerate() {
            match kernel.value(param) {
                Some(ValueDef::Param { block: of, index: at, .. }) if of == block && at as usize == index => {}
                _ => return general(format!("{param} is a parameter of {block}, but its definition does not say so")),
            }
            positions.values[param] = Some((block, position));
        }
        for &inst in insts {
            position += 1;
            let Some(data) = kernel.inst(inst) else {
                return general(format!("{inst} in {block} is not in the kernel"));
            };
            if !seen.insert(inst) {
                return broken(kernel, inst, "the instruction has two places");
            }
            positions.insts[inst] = position;
            if data.is_terminator() && insts.last() != Some(&inst) {
                return broken(kernel, inst, "a terminator is not at the end of its block");
            }
            check_results(kernel, inst, data)?;
            kernel.results(inst).iter().for_each(|&value| positions.values[value] = Some((block, position)));
        }
        let last = insts.last().and_then(|&last| kernel.inst(last));
        if !last.is_some_and(Instruction::is_terminator) {
            return general(format!("{block} does not end with a terminator"));
        }
        position += 1;
    }
    Ok(positions)
}

/// Checks that an instruction has the results of its operation, and that their definitions agree.
fn check_results<K: Rules>(kernel: &K, inst: K::Inst, data: &K::InstData) -> Result<K> {
    let (results, types) = (kernel.results(inst), kernel.result_types(data));
    if results.len() != types.len() {
        let (wants, has) = (types.len(), results.len());
        return broken(kernel, inst, format_args!("the instruction has {wants} results, not {has}"));
    }
    for (position, (&value, ty)) in results.iter().zip(types).enumerate() {
        match kernel.value(value) {
            Some(ValueDef::Result { inst: of, index, ty: is }) if of == inst && index as usize == position => {
                if is != ty {
                    return broken(kernel, inst, format_args!("{value} is {ty}, not {is}"));
                }
            }
            _ => return broken(kernel, inst, format_args!("the definition of {value} is elsewhere")),
        }
    }
    Ok(())
}

/// Checks that branches target blocks of the layout other than the entry, with an argument of the right type for each
/// parameter.
fn check_targets<K: Rules>(kernel: &K, in_layout: &EntitySet<K::Block>) -> Result<K> {
    let entry = kernel.layout().first();
    let blocks = kernel.layout().iter().filter_map(|&block| kernel.block(block));
    for inst in blocks.filter_map(|(_, insts)| insts.last().copied()) {
        for call in kernel.inst(inst).map(Instruction::targets).unwrap_or_default() {
            let params = match kernel.block(call.block) {
                Some((params, _)) if in_layout.contains(call.block) => params,
                _ => return broken(kernel, inst, format_args!("{} is not in the layout", call.block)),
            };
            if Some(&call.block) == entry {
                return broken(kernel, inst, "the entry has no predecessors");
            }
            if params.len() != call.args.len() {
                let (wants, has) = (params.len(), call.args.len());
                return broken(kernel, inst, format_args!("{} takes {wants} arguments, not {has}", call.block));
            }
            for (&param, &arg) in params.iter().zip(&call.args) {
                let ty = kernel.value(param).map(ValueDef::ty);
                ty.map_or(Ok(()), |ty| expect(kernel, inst, arg, ty))?;
            }
        }
    }
    Ok(())
}

/// Checks that blocks come after their dominators, so that definitions precede uses.
fn check_order<K: Rules>(kernel: &K, dominators: &Dominators<K::Block>) -> Result<K> {
    let mut seen = EntitySet::new();
    for &block in kernel.layout() {
        if let Some(idom) = dominators.idom(block).filter(|&idom| !seen.contains(idom)) {
            return general(format!("{block} comes before {idom}, which dominates it"));
        }
        seen.insert(block);
    }
    Ok(())
}

/// Checks the type of an operand.
fn expect<K: Rules>(kernel: &K, inst: K::Inst, value: K::Value, ty: K::Type) -> Result<K> {
    match kernel.value(value).map(ValueDef::ty) {
        Some(is) if is == ty => Ok(()),
        Some(is) => broken(kernel, inst, format_args!("{value} is {is}, not {ty}")),
        None => broken(kernel, inst, format_args!("{value} is not in the kernel")),
    }
}
