//! Holds a kernel against the rules that every pass and back end relies on.
//!
//! First the tables, then the shape of the control flow graph, then each instruction: its operands' types (`verify_inst`)
//! and whether their definitions come first. Blocks that control never reaches may stay in the layout; there a definition
//! need not come before its use.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::verify_inst::operand_types;
use super::{Block, BlockData, Inst, InstData, Kernel, Merge, Type, Value, ValueDef, VariableSpace};
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

type Result<T = ()> = std::result::Result<T, VerifyError>;

/// An error at no instruction in particular.
fn general<T>(message: String) -> Result<T> {
    Err(VerifyError { inst: None, message })
}

/// Checks the whole kernel. Takes `n log n` time in its size.
///
/// # Errors
///
/// The first rule found broken.
pub fn verify(kernel: &Kernel) -> Result {
    check_tables(kernel)?;
    let mut verifier =
        Verifier { kernel, in_layout: EntitySet::new(), placed: SecondaryMap::new(), positions: SecondaryMap::new() };
    verifier.check_layout()?;
    verifier.place()?;
    verifier.check_targets()?;
    let dominators = Dominators::new(kernel);
    verifier.check_order(&dominators)?;
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            verifier.check_uses(&dominators, block, inst)?;
        }
    }
    Ok(())
}

/// Workgroup size, bindings and variables.
fn check_tables(kernel: &Kernel) -> Result {
    let invocations = kernel.workgroup_size.iter().try_fold(1u32, |product, &size| product.checked_mul(size));
    if invocations.is_none_or(|count| count == 0) {
        return general(format!("a workgroup of {:?} is empty or too large", kernel.workgroup_size));
    }
    for (variable, data) in &kernel.variables {
        if data.bytes % 4 != 0 {
            return general(format!("{variable}: {} bytes are no whole words", data.bytes));
        }
        let words = if data.space == VariableSpace::Constant { data.bytes as usize / 4 } else { 0 };
        if data.words.len() != words {
            return general(format!("{variable}: {} words are there for {words}", data.words.len()));
        }
    }
    for space in [VariableSpace::Workgroup, VariableSpace::Private, VariableSpace::Constant] {
        let sizes = kernel.variables.values().filter(|data| data.space == space).map(|data| u64::from(data.bytes) + 15);
        if u32::try_from(sizes.sum::<u64>()).is_err() {
            return general(format!("{} variables do not fit 4 GiB", space.name()));
        }
    }
    Ok(())
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
        Err(VerifyError { inst: Some(inst), message: format!("`{}`: {rule}", self.kernel.display_inst(inst)) })
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
            self.check_merge(block, data)?;
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
                self.place_result(block, inst, position)?;
            }
            if data.insts.last().is_none_or(|&last| !self.kernel.insts[last].is_terminator()) {
                return general(format!("{block} does not end with a terminator"));
            }
            position += 1;
        }
        Ok(())
    }

    fn check_merge(&self, block: Block, data: &BlockData) -> Result {
        let named = match data.merge {
            None => return Ok(()),
            Some(Merge::Selection { merge }) => [merge, merge],
            Some(Merge::Loop { merge, continuing }) => [merge, continuing],
        };
        match named.into_iter().find(|&named| !self.kernel.blocks.is_valid(named)) {
            Some(named) => general(format!("{block} merges in {named}, which is not in the kernel")),
            None => Ok(()),
        }
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

    fn place_result(&mut self, block: Block, inst: Inst, position: u32) -> Result {
        let data = &self.kernel.insts[inst];
        let ty = data.result_type(|operand| Some(self.kernel.values.get(operand)?.ty()));
        let (value, ty) = match (self.kernel.results[inst], ty) {
            (None, None) => return Ok(()),
            (Some(value), Some(ty)) => (value, ty),
            (Some(_), None) => return self.error(inst, "the instruction has no result"),
            (None, Some(_)) => return self.error(inst, "the instruction needs a result"),
        };
        match self.kernel.values.get(value) {
            Some(&ValueDef::Result { inst: of, ty: is }) if of == inst && is == ty => {}
            Some(&ValueDef::Result { inst: of, ty: is }) if of == inst => {
                return self.error(inst, format_args!("the result is {ty}, not {is}"));
            }
            _ => return self.error(inst, format_args!("the definition of {value} is elsewhere")),
        }
        self.placed[value] = Some((block, position));
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
    fn check_order(&self, dominators: &Dominators) -> Result {
        let mut seen = EntitySet::new();
        for &block in &self.kernel.layout {
            if let Some(idom) = dominators.idom(block).filter(|&idom| !seen.contains(idom)) {
                return general(format!("{block} comes before {idom}, which dominates it"));
            }
            seen.insert(block);
        }
        Ok(())
    }

    fn check_uses(&self, dominators: &Dominators, block: Block, inst: Inst) -> Result {
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

    /// The definition of `value` comes before `inst` on every way.
    fn check_use(&self, dominators: &Dominators, block: Block, inst: Inst, value: Value) -> Result {
        let Some((home, at)) = self.placed[value] else {
            return self.error(inst, format_args!("{value} is not defined in the layout"));
        };
        let first = if home == block { at < self.positions[inst] } else { dominators.dominates(home, block) };
        if first || !dominators.is_reachable(block) {
            return Ok(());
        }
        self.error(inst, format_args!("{value} does not dominate its use"))
    }
}
