//! Holds a kernel against the rules that every pass and back end relies on.
//!
//! First the shape of the control flow graph, then each instruction: its operands' types (`verify_inst`) and whether their
//! definitions come first; at last that lanes act only where they are on (`verify_lanes`) and that
//! scalars are made of lanes that hold a value (`verify_scalars`). `docs/simd.md` lists the rules.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::verify_inst::operand_types;
use super::verify_lanes::check_lanes;
use super::verify_loops::check_subgroup_loops;
use super::{Block, BlockData, Inst, InstData, Kernel, LANES, Type, Value, ValueDef};
use crate::analysis::Dominators;

/// The first rule found broken: always a bug of whoever made the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VerifyError {
    /// Where, if it is an instruction.
    pub inst: Option<Inst>,
    /// The rule and what breaks it; begins with the instruction's text.
    pub message: String,
}

pub(crate) type Result<T = ()> = std::result::Result<T, VerifyError>;

/// An error at no instruction in particular.
pub(crate) fn general<T>(message: String) -> Result<T> {
    Err(VerifyError { inst: None, message })
}

/// An error at an instruction.
pub(crate) fn broken<T>(kernel: &Kernel, inst: Inst, rule: impl std::fmt::Display) -> Result<T> {
    Err(VerifyError { inst: Some(inst), message: format!("`{}`: {rule}", kernel.display_inst(inst)) })
}

/// Checks the whole kernel. Takes `n log n` time in its size.
///
/// # Errors
///
/// The first rule found broken.
pub fn verify(kernel: &Kernel) -> Result {
    if !(1..=LANES).contains(&kernel.merged_workgroups) {
        return general(format!("{} workgroups cannot run merged_workgroups", kernel.merged_workgroups));
    }
    let mut verifier =
        Verifier { kernel, in_layout: EntitySet::new(), placed: SecondaryMap::new(), positions: SecondaryMap::new() };
    verifier.check_layout()?;
    verifier.place()?;
    verifier.check_targets()?;
    let dominators = Dominators::new(kernel);
    verifier.check_order(&dominators)?;
    for &block in &kernel.layout {
        verifier.check_exec(&dominators, block)?;
        for &inst in &kernel.blocks[block].insts {
            verifier.check_uses(&dominators, block, inst)?;
        }
    }
    check_subgroup_loops(kernel, &dominators)?;
    check_lanes(kernel, &dominators)
}

struct Verifier<'a> {
    kernel: &'a Kernel,
    in_layout: EntitySet<Block>,
    /// Block and position in the layout's order of every value's definition.
    placed: SecondaryMap<Value, Option<(Block, u32)>>,
    /// Position of every instruction.
    positions: SecondaryMap<Inst, u32>,
}

impl Verifier<'_> {
    fn error<T>(&self, inst: Inst, rule: impl std::fmt::Display) -> Result<T> {
        broken(self.kernel, inst, rule)
    }

    /// The layout names blocks, each once; the entry takes no parameters.
    fn check_layout(&mut self) -> Result {
        let Some(&entry) = self.kernel.layout.first() else { return general("the kernel has no entry block".into()) };
        for &block in &self.kernel.layout {
            if !self.kernel.blocks.is_valid(block) {
                return general(format!("{block} is in the layout but not in the kernel"));
            }
            if !self.in_layout.insert(block) {
                return general(format!("{block} is in the layout twice"));
            }
        }
        if !self.kernel.blocks[entry].params.is_empty() {
            return general(format!("the entry {entry} has parameters"));
        }
        Ok(())
    }

    /// Every parameter, instruction and result has one place, and tables and places agree.
    fn place(&mut self) -> Result {
        let mut seen = EntitySet::new();
        let mut position = 0;
        for &block in &self.kernel.layout {
            let data = &self.kernel.blocks[block];
            for (index, &param) in data.params.iter().enumerate() {
                self.place_param(block, index as u32, param, position)?;
            }
            for &inst in &data.insts {
                position += 1;
                if !self.kernel.insts.is_valid(inst) {
                    return general(format!("{inst} in {block} is not in the kernel"));
                }
                if !seen.insert(inst) {
                    return self.error(inst, "the instruction has two places");
                }
                self.positions[inst] = position;
                self.check_end(data, inst)?;
                self.place_results(block, inst, position)?;
            }
            if data.insts.last().is_none_or(|&last| !self.kernel.insts[last].is_terminator()) {
                return general(format!("{block} does not end with a terminator"));
            }
            position += 1;
        }
        Ok(())
    }

    fn check_end(&self, data: &BlockData, inst: Inst) -> Result {
        if self.kernel.insts[inst].is_terminator() && data.insts.last() != Some(&inst) {
            return self.error(inst, "a terminator stands before the end of its block");
        }
        Ok(())
    }

    fn place_param(&mut self, block: Block, index: u32, param: Value, position: u32) -> Result {
        match self.kernel.values.get(param) {
            Some(&ValueDef::Param { block: of, index: at, .. }) if of == block && at == index => {}
            _ => return general(format!("{param} is a parameter of {block}, but its definition does not say so")),
        }
        self.placed[param] = Some((block, position));
        Ok(())
    }

    fn place_results(&mut self, block: Block, inst: Inst, position: u32) -> Result {
        // Operands that are not in the kernel are told later, with the other rules for operands.
        let type_of = |operand| self.kernel.values.get(operand).map_or(Type::V32, |def| def.ty());
        let types = self.kernel.insts[inst].result_types(type_of);
        let results = &self.kernel.results[inst];
        if results.len() != types.len() {
            let (wants, has) = (types.len(), results.len());
            return self.error(inst, format_args!("the instruction has {wants} results, not {has}"));
        }
        for (place, (&value, ty)) in results.iter().zip(types).enumerate() {
            match self.kernel.values.get(value) {
                Some(&ValueDef::Result { inst: of, index, ty: is }) if of == inst && index == place as u32 => {
                    if is != ty {
                        return self.error(inst, format_args!("{value} is {ty}, not {is}"));
                    }
                }
                _ => return self.error(inst, format_args!("the definition of {value} is elsewhere")),
            }
            self.placed[value] = Some((block, position));
        }
        Ok(())
    }

    /// Branches go to blocks of the layout, never to the entry, with an argument of the right type for each parameter.
    fn check_targets(&self) -> Result {
        let entry = self.kernel.layout[0];
        for inst in self.kernel.layout.iter().filter_map(|&block| self.kernel.blocks[block].insts.last().copied()) {
            for call in self.kernel.insts[inst].targets() {
                if !self.in_layout.contains(call.block) {
                    return self.error(inst, format_args!("{} is not in the layout", call.block));
                }
                if call.block == entry {
                    return self.error(inst, "the entry has no predecessors");
                }
                let params = &self.kernel.blocks[call.block].params;
                if params.len() != call.args.len() {
                    let (wants, has) = (params.len(), call.args.len());
                    return self.error(inst, format_args!("{} takes {wants} arguments, not {has}", call.block));
                }
                for (&param, &arg) in params.iter().zip(&call.args) {
                    self.expect(inst, arg, self.kernel.ty(param))?;
                }
            }
        }
        Ok(())
    }

    /// Blocks come after those that dominate them, so that definitions come before uses.
    fn check_order(&self, dominators: &Dominators<Block>) -> Result {
        let mut seen = EntitySet::new();
        for &block in &self.kernel.layout {
            if let Some(idom) = dominators.idom(block).filter(|&idom| !seen.contains(idom)) {
                return general(format!("{block} comes before {idom}, which dominates it"));
            }
            seen.insert(block);
        }
        Ok(())
    }

    /// The execution mask is a mask, from the block itself or from one that dominates it.
    fn check_exec(&self, dominators: &Dominators<Block>, block: Block) -> Result {
        let Some(exec) = self.kernel.blocks[block].exec else { return Ok(()) };
        let Some(Some((home, _))) = self.placed.get(exec).filter(|_| self.kernel.values.is_valid(exec)) else {
            return general(format!("{exec}, the execution mask of {block}, is not defined in the layout"));
        };
        let ty = self.kernel.ty(exec);
        if ty != Type::Mask {
            return general(format!("{exec}, the execution mask of {block}, is {ty}"));
        }
        if dominators.is_reachable(block) && !dominators.dominates(*home, block) {
            return general(format!("{exec}, the execution mask of {block}, does not dominate it"));
        }
        Ok(())
    }

    fn check_uses(&self, dominators: &Dominators<Block>, block: Block, inst: Inst) -> Result {
        let data = &self.kernel.insts[inst];
        let mut result = Ok(());
        data.for_each_use(|value| {
            if result.is_ok() {
                result = self.check_use(dominators, block, inst, value);
            }
        });
        result?;
        if let InstData::Switch { cases, .. } = data {
            let mut literals: Vec<u32> = cases.iter().map(|case| case.0).collect();
            literals.sort_unstable();
            if let Some(twice) = literals.windows(2).find(|pair| pair[0] == pair[1]) {
                return self.error(inst, format_args!("case {} is there twice", twice[0]));
            }
        }
        match operand_types(self.kernel, data) {
            Ok(types) => types.into_iter().try_for_each(|(value, ty)| self.expect(inst, value, ty)),
            Err(rule) => self.error(inst, rule),
        }
    }

    /// An operand has that type.
    fn expect(&self, inst: Inst, value: Value, ty: Type) -> Result {
        match self.kernel.values.get(value).map(|def| def.ty()) {
            Some(is) if is == ty => Ok(()),
            Some(is) => self.error(inst, format_args!("{value} is {is}, not {ty}")),
            None => self.error(inst, format_args!("{value} is not in the kernel")),
        }
    }

    /// The definition of `value` comes before `inst` on every way; where control never comes, in the layout.
    fn check_use(&self, dominators: &Dominators<Block>, block: Block, inst: Inst, value: Value) -> Result {
        let Some((home, at)) = self.placed[value] else {
            return self.error(inst, format_args!("{value} is not defined in the layout"));
        };
        let first = if home == block || !dominators.is_reachable(block) {
            at < self.positions[inst]
        } else {
            dominators.dominates(home, block)
        };
        if first { Ok(()) } else { self.error(inst, format_args!("{value} does not dominate its use")) }
    }
}
