//! Merges and terminators.

use foldhash::HashSet;
use spirv::Op;

use super::super::Error;
use super::body::BasicBlock;
use super::composite::{Composite, expect_type};
use super::function::Exit;
use super::translate::Translator;
use super::types::Scalar;
use super::words::{Checked, Id, operand};
use crate::ir::{Block, BlockCall, InstData, Merge};

impl Translator<'_> {
    /// Ends the current block as a block of the function ends.
    pub(super) fn terminate(&mut self, block: &BasicBlock) -> Result<(), Error> {
        let inst = &block.terminator;
        self.builder.set_origin(inst.word);
        self.end(block).map_err(|message| self.error(inst, &message))
    }

    fn end(&mut self, block: &BasicBlock) -> Checked<()> {
        self.spend(0)?;
        let operands = self.sections.words.operands(&block.terminator);
        let data = match block.terminator.op {
            Op::Branch => InstData::Jump { to: self.edge(operand(operands, 0)?)? },
            Op::BranchConditional => {
                let condition = self.scalar(operand(operands, 0)?, Scalar::Bool)?;
                let then = self.edge(operand(operands, 1)?)?;
                InstData::Branch { condition, then, otherwise: self.edge(operand(operands, 2)?)? }
            }
            Op::Switch => self.switch(operands)?,
            Op::Return => return self.leave(None),
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

    /// Says in the current block which construct the block of the function opens.
    pub(super) fn open_construct(&mut self, block: &BasicBlock) -> Checked<()> {
        let merge = match *block.merge_targets.as_slice() {
            [] => return Ok(()),
            [merge] => Merge::Selection { merge: self.block(merge)? },
            [merge, continuing, ..] => Merge::Loop { merge: self.block(merge)?, continuing: self.block(continuing)? },
        };
        self.builder.set_merge(merge);
        Ok(())
    }

    fn block(&self, label: Id) -> Checked<Block> {
        let index = self.frame.function.index.get(&label);
        index.and_then(|&index| self.frame.blocks[index]).ok_or_else(|| format!("%{label} is no block of the function"))
    }

    fn switch(&mut self, operands: &[u32]) -> Checked<InstData> {
        let selector = self.integer(operand(operands, 0)?)?;
        let default = self.edge(operand(operands, 1)?)?;
        let mut seen = HashSet::default();
        let mut cases = Vec::new();
        for pair in operands[2..].chunks(2) {
            let (literal, label) = (operand(pair, 0)?, operand(pair, 1)?);
            if !seen.insert(literal) {
                return Err(format!("the literal {literal} stands twice"));
            }
            cases.push((literal, self.edge(label)?));
        }
        Ok(InstData::Switch { selector, default, cases })
    }

    fn leave(&mut self, value: Option<Composite>) -> Checked<()> {
        let result = self.frame.function.result;
        if value.is_none() && !self.types.scalars(result)?.is_empty() {
            return Err("the function must return a value".into());
        }
        match &mut self.frame.exit {
            Exit::Kernel => {
                self.builder.push(InstData::Return);
            }
            Exit::GoOn(exit) => *exit = Some((self.builder.current(), value)),
            Exit::Join(join) => {
                let args = value.map(|value| value.values.iter().copied().collect()).unwrap_or_default();
                self.builder.push(InstData::Jump { to: BlockCall { block: *join, args } });
            }
        }
        Ok(())
    }
}
