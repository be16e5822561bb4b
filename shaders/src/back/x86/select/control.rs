//! Blocks and branches.
//!
//! Critical edges, and branches with arguments among several targets, are split: the new block receives the allocator's
//! moves. It directly follows the branch in the layout, and is not emitted if it has no moves.

use cranelift_entity::SecondaryMap;
use iced_x86::{Code, OpKind};
use regalloc2::{self as ra, Operand, OperandConstraint, OperandKind, OperandPos};
use smallvec::SmallVec;

use super::super::vcode::{AddressRegisters, BlockCode, Build, Expand, InstKind, View};
use super::super::{call::offset, encode};
use super::{Result, Select, VectorIsa};
use crate::simd::{Block, BlockCall, InstData, Value};

/// Block numbers in the machine code.
#[derive(Debug, Default)]
pub(super) struct BlockNumbers {
    numbers: SecondaryMap<Block, u32>,
    preds: SecondaryMap<Block, u32>,
}

impl BlockNumbers {
    pub(super) fn number(&self, block: Block) -> usize {
        self.numbers[block] as usize
    }

    /// Whether the edge of a branch with several targets is split.
    fn is_split(&self, call: &BlockCall) -> bool {
        !call.args.is_empty() || self.preds[call.block] > 1
    }
}

impl<V: VectorIsa> Select<'_, V> {
    fn terminator_of(&self, block: Block) -> Option<&InstData> {
        self.kernel.blocks[block].insts.last().map(|&inst| &self.kernel.insts[inst])
    }

    /// Numbers the blocks, with each split edge's block directly after the branch, and assigns registers to parameters.
    pub(super) fn lay_out(&mut self) {
        let kernel = self.kernel;
        let mut edges = BlockNumbers::default();
        for &block in &kernel.layout {
            for call in self.terminator_of(block).map(InstData::targets).unwrap_or_default() {
                edges.preds[call.block] += 1;
            }
        }
        let mut next = 0;
        for &block in &kernel.layout {
            edges.numbers[block] = next;
            next += 1;
            let targets = self.terminator_of(block).map(InstData::targets).unwrap_or_default();
            if targets.len() > 1 {
                next += targets.iter().filter(|call| edges.is_split(call)).count() as u32;
            }
        }
        self.edges = edges;
        self.code.blocks.resize_with(next as usize, BlockCode::default);
        for &block in &kernel.layout {
            for &param in &kernel.blocks[block].params {
                let at = self.edges.number(block);
                if kernel.ty(param).is_vector() {
                    let regs = V::define(self, param);
                    self.code.blocks[at].params.extend_from_slice(regs.as_ref());
                    continue;
                }
                let reg = self.general();
                self.regs[param] = Some(reg);
                self.code.blocks[at].params.push(reg);
            }
        }
    }

    /// Emits a block's terminator and the blocks of its split edges.
    pub(super) fn terminator(&mut self, data: &InstData) -> Result {
        let at = self.edges.number(self.block);
        match data {
            InstData::Switch { default: to, cases, .. } if cases.is_empty() => {
                return self.terminator(&InstData::Jump { to: to.clone() });
            }
            InstData::Jump { to } => {
                let args = self.arguments(to)?;
                self.code.push(InstKind::Jump, &[]);
                self.finish_jump(at, to.block, args);
                return Ok(());
            }
            InstData::Return => {
                self.code.push(InstKind::Return, &[]);
                self.code.end(at);
                return Ok(());
            }
            InstData::Branch { condition, .. } => {
                let condition = self.condition(*condition)?;
                self.code.push(InstKind::Branch(condition), &[]);
            }
            InstData::Switch { selector, cases, .. } => {
                let selector = self.reg(*selector)?;
                let mut sorted: Vec<(u32, u32)> =
                    cases.iter().zip(1..).map(|(&(literal, _), number)| (literal, number)).collect();
                sorted.sort_unstable();
                self.code.push(InstKind::Switch(sorted.into()), &[Operand::reg_use(selector)]);
            }
            _ => unreachable!("not a terminator: {data:?}"),
        }
        self.code.end(at);
        self.split(at, &data.targets())
    }

    fn split(&mut self, at: usize, targets: &[&BlockCall]) -> Result {
        let mut next = at + 1;
        for call in targets {
            if !self.edges.is_split(call) {
                self.code.blocks[at].succs.push(ra::Block::new(self.edges.number(call.block)));
                continue;
            }
            self.code.blocks[at].succs.push(ra::Block::new(next));
            self.code.begin(next);
            let args = self.arguments(call)?;
            self.code.push(InstKind::Jump, &[]);
            self.finish_jump(next, call.block, args);
            next += 1;
        }
        Ok(())
    }

    fn finish_jump(&mut self, from: usize, to: Block, args: SmallVec<[ra::VReg; 4]>) {
        self.code.end(from);
        let block = &mut self.code.blocks[from];
        block.succs.push(ra::Block::new(self.edges.numbers[to] as usize));
        block.args = args;
    }

    fn arguments(&mut self, call: &BlockCall) -> Result<SmallVec<[ra::VReg; 4]>> {
        let mut regs = SmallVec::new();
        for &arg in &call.args {
            match self.kernel.ty(arg).is_vector() {
                true => regs.extend_from_slice(V::registers(self, arg)?.as_ref()),
                false => regs.push(self.reg(arg)?),
            }
        }
        Ok(regs)
    }

    /// Computes the predecessors.
    pub(super) fn link(&mut self) {
        for from in 0..self.code.blocks.len() {
            for to in self.code.blocks[from].succs.clone() {
                self.code.blocks[to.index()].preds.push(ra::Block::new(from));
            }
        }
    }

    /// Polls the stop flag: ends the kernel if it is set and reports the loop and the active lanes. The operands may be
    /// in registers or spill slots, since only the cold path reads them.
    pub(super) fn poll(&mut self, at: u32, lanes: Option<&[Value; 2]>) -> Result {
        let mut operands: SmallVec<[Operand; 3]> = SmallVec::new();
        let mut anywhere =
            |reg| operands.push(Operand::new(reg, OperandConstraint::Any, OperandKind::Use, OperandPos::Early));
        let (mut number, mut mask) = (Some(0), Some(0));
        if let Some(&[of_subgroup, active]) = lanes {
            (number, mask) = (self.constant(of_subgroup), self.constant(active));
            if number.is_none() {
                anywhere(self.reg(of_subgroup)?);
            }
            if mask.is_none() && self.kernel.ty(active).is_vector() {
                V::registers(self, active)?.as_ref().iter().copied().for_each(anywhere);
            } else if mask.is_none() {
                anywhere(self.reg(active)?);
            }
        }
        self.ask_to_stop();
        let [number, mask] = [number, mask].map(|constant| constant.map(|bits| bits as u16));
        self.code.push(InstKind::Poll { at, number, mask }, &operands);
        Ok(())
    }

    /// Ends the kernel between workgroups if the stop flag is set.
    fn poll_between(&mut self) {
        self.ask_to_stop();
        self.code.push(InstKind::Sequence(Box::new(LeaveIfStopped)), &[]);
    }

    /// Compares the stop flag with 0: the condition `ne` means stop.
    fn ask_to_stop(&mut self) {
        let flag = self.general();
        let place =
            AddressRegisters { base: self.context, index: None, scale: 1, disp: offset::STOP, broadcast: false };
        Build::new(Code::Mov_r64_rm64).def(flag, View::Qword).at(&place).push(&mut self.code);
        let place = AddressRegisters { base: flag, index: None, scale: 1, disp: 0, broadcast: false };
        Build::new(Code::Cmp_rm32_imm8).at(&place).imm(OpKind::Immediate8to32, 0).push(&mut self.code);
    }

    /// The workgroup loop's step: ends the kernel after the last workgroup of the row or if the stop flag is set.
    pub(super) fn next_workgroup(&mut self) {
        let [own, end] = [offset::WORKGROUP, offset::ROW_END].map(|disp| Self::at(self.context, disp));
        self.code.workgroup_loop = true;
        let [last, left] = [self.general(), self.general()];
        let merged_workgroups = self.kernel.merged_workgroups as i64;
        self.load_dword(last, &end);
        Build::new(Code::Sub_r32_rm32).modify(left, last, View::Dword).at(&own).push(&mut self.code);
        let build = Build::new(Code::Cmp_rm32_imm8).reads(left, View::Dword);
        build.imm(OpKind::Immediate8to32, merged_workgroups).push(&mut self.code);
        self.code.push(InstKind::Sequence(Box::new(LeaveIfDone)), &[]);
        let build = Build::new(Code::Add_rm32_imm8).at(&own);
        build.imm(OpKind::Immediate8to32, merged_workgroups).push(&mut self.code);
        self.poll_between();
    }
}

/// Returns as done if the flags say that no workgroup is left.
#[derive(Debug)]
struct LeaveIfDone;

impl Expand for LeaveIfDone {
    fn hot(&self, _: encode::Regs<'_>, asm: &mut encode::Assembler<'_>) {
        let done = asm.done();
        asm.jump_if(iced_x86::ConditionCode::be, done);
    }
}

/// Returns as stopped if the flags say that the stop flag is set.
#[derive(Debug)]
struct LeaveIfStopped;

impl Expand for LeaveIfStopped {
    fn hot(&self, _: encode::Regs<'_>, asm: &mut encode::Assembler<'_>) {
        let stopped = asm.stopped();
        asm.jump_if(iced_x86::ConditionCode::ne, stopped);
    }
}
