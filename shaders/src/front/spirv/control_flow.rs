//! Merge instructions and terminators.

use foldhash::HashSet;
use spirv::Op;

use super::super::Error;
use super::body::BasicBlock;
use super::composite::{Composite, expect_type};
use super::function::ReturnEffect;
use super::scalar::Scalar;
use super::translate::Translator;
use super::types::SpirvType;
use super::words::{Id, InstResult, operand};
use crate::ir::{self, Block, BlockCall, InstData, Merge, Value};

impl Translator<'_> {
    /// Terminates the current block with the translated terminator of a function's block.
    pub(super) fn terminate(&mut self, block: &BasicBlock) -> Result<(), Error> {
        let inst = &block.terminator;
        self.builder.set_origin(inst.word);
        self.end(block).map_err(|message| self.error(inst, &message))
    }

    fn end(&mut self, block: &BasicBlock) -> InstResult<()> {
        self.spend(0)?;
        let operands = self.sections.words.operands(&block.terminator);
        let data = match block.terminator.op {
            Op::Branch => InstData::Jump { to: self.edge(operand(operands, 0)?)? },
            Op::BranchConditional => {
                let condition = self.scalar(operand(operands, 0)?, Scalar::Bool)?;
                let then = self.edge(operand(operands, 1)?)?;
                let otherwise = self.edge(operand(operands, 2)?)?;
                if then == otherwise {
                    InstData::Jump { to: then }
                } else {
                    InstData::Branch { condition, then, otherwise }
                }
            }
            Op::Switch => self.switch(operands)?,
            Op::Return if !self.types.scalars(self.frame.function.result)?.is_empty() => {
                return Err("the function must return a value".into());
            }
            Op::Return => return self.leave(None),
            Op::ReturnValue if self.frame.result.is_some() => {
                if let Some(place) = self.frame.result.clone() {
                    self.return_by_reference(&place, operand(operands, 0)?)?;
                }
                return self.leave(None);
            }
            Op::ReturnValue => {
                let value = self.value(operand(operands, 0)?)?;
                expect_type(self.frame.function.result, value.ty)?;
                return self.leave(Some(value));
            }
            Op::Unreachable => InstData::Unreachable,
            _ => return Err("the instruction is not supported".into()),
        };
        if !self.frame.construct_is_open {
            self.open_construct(block)?;
        }
        self.builder.push(data);
        Ok(())
    }

    /// Annotates the current block with the construct that a function's block opens.
    pub(super) fn open_construct(&mut self, block: &BasicBlock) -> InstResult<()> {
        let merge = match *block.merge_targets.as_slice() {
            [] => return Ok(()),
            [merge] => Merge::Selection { merge: self.block(merge)? },
            [merge, continuing, ..] => Merge::Loop { merge: self.block(merge)?, continuing: self.block(continuing)? },
        };
        self.builder.set_merge(merge);
        Ok(())
    }

    fn block(&self, label: Id) -> InstResult<Block> {
        let index = self.frame.function.index.get(&label);
        index
            .and_then(|&index| self.frame.blocks[index])
            .ok_or_else(|| format!("%{label} is not a block of the function"))
    }

    fn switch(&mut self, operands: &[u32]) -> InstResult<InstData> {
        let selector = self.value(operand(operands, 0)?)?;
        let scalar = match self.types.get(selector.ty)?.ty {
            SpirvType::Scalar(scalar) if scalar.is_int() => scalar,
            _ => return Err("the selector is not an integer".into()),
        };
        let default = self.edge(operand(operands, 1)?)?;
        let words = scalar.words() as usize;
        let mut seen = HashSet::default();
        let mut cases: Vec<(u64, BlockCall)> = Vec::new();
        for case in operands[2..].chunks(words + 1) {
            let high = if words == 2 { operand(case, 1)? } else { 0 };
            let bits = u64::from(operand(case, 0)?) | u64::from(high) << 32;
            let literal = if scalar.bits() < 32 { bits & ((1 << scalar.bits()) - 1) } else { bits };
            if !seen.insert(literal) {
                return Err(format!("the literal {literal} appears twice"));
            }
            cases.push((literal, self.edge(operand(case, words)?)?));
        }
        let selector = match *selector.values {
            [low, high] => self.number_of_case(low, high, &mut cases),
            _ => selector.values[0],
        };
        let cases = cases.into_iter().map(|(literal, to)| (literal as u32, to)).collect();
        Ok(InstData::Switch { selector, default, cases })
    }

    /// Maps a 64-bit selector to the index of its case, which replaces the literal.
    fn number_of_case(&mut self, low: Value, high: Value, cases: &mut [(u64, BlockCall)]) -> Value {
        let mut number = self.builder.constant(u32::MAX);
        for (at, (literal, _)) in (0u32..).zip(cases.iter_mut()) {
            let (of_low, of_high) =
                (self.builder.constant(*literal as u32), self.builder.constant((*literal >> 32) as u32));
            let low = self.builder.pure(ir::Op::IEq, &[low, of_low]);
            let high = self.builder.pure(ir::Op::IEq, &[high, of_high]);
            let here = self.builder.pure(ir::Op::LAnd, &[low, high]);
            let at = self.builder.constant(at);
            number = self.builder.select(here, at, number);
        }
        for (at, (literal, _)) in (0u64..).zip(cases.iter_mut()) {
            *literal = at;
        }
        number
    }

    fn leave(&mut self, value: Option<Composite>) -> InstResult<()> {
        match &mut self.frame.exit {
            ReturnEffect::Kernel => {
                self.builder.push(InstData::Return);
            }
            ReturnEffect::GoOn(exit) => *exit = Some((self.builder.current(), value)),
            ReturnEffect::Join(join) => {
                let args = value.map(|value| value.values.iter().copied().collect()).unwrap_or_default();
                self.builder.push(InstData::Jump { to: BlockCall { block: *join, args } });
            }
        }
        Ok(())
    }
}
