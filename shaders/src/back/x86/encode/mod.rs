//! Code emission: registers into templates, templates into bytes.
//!
//! The image is the constant pool, then the code. Hot code is in block order; slow paths, as of out-of-bounds accesses,
//! follow the last block, so that the processor fetches straight-line code.

mod assembler;
mod float_mode;
mod frame;
mod moves;
mod preserve_all;
mod regs;
mod stop;

use iced_x86::{Code, ConditionCode, Instruction, Register};
use regalloc2::{self as ra, Edit, InstPosition, Output};

pub(super) use assembler::{Assembler, Label, conditional, negated};
pub(super) use regs::Regs;

use super::vcode::{Base, Check, CheckBound, InstKind, VCode, View};
use super::{CompileError, Isa};
use frame::Frame;

/// The finished image: `bytes` begins with the pool, the function is at `entry`.
#[derive(Debug)]
pub(super) struct Image {
    pub bytes: Vec<u8>,
    pub entry: usize,
    /// Bytes of the worker's stack that it needs.
    pub stack_bytes: usize,
    /// Where the origin of the code changes: offset in `bytes`, SPIR-V word. Empty without debug lines.
    pub origins: Vec<(u32, u32)>,
}

/// Out-of-line code of an instruction: its entry, and where it returns to.
struct Cold {
    inst: usize,
    entry: Label,
    back: Label,
}

struct Encode<'a> {
    code: &'a VCode,
    out: &'a Output,
    /// Index of the allocator's next move.
    edit: usize,
    asm: Assembler<'a>,
    frame: Frame,
    isa: Isa,
    labels: Vec<Label>,
    /// The block that each block stands for (jump threading): a block with only a jump stands for its target and is not
    /// emitted.
    stands_for: Vec<usize>,
    cold: Vec<Cold>,
    /// The stub for calls that preserve all registers, if there are any.
    keeper: Option<Label>,
    origins: Vec<(u32, u32)>,
}

/// Encodes a function after register allocation.
pub(super) fn encode(code: &VCode, out: &Output, isa: Isa) -> Result<Image, CompileError> {
    let mut bytes = code.pool.bytes();
    let entry = bytes.len();
    let mut asm = Assembler::new(code, entry);
    let frame = Frame::new(code, out)?;
    let stack_bytes = frame.stack_bytes();
    let labels = code.blocks.iter().map(|_| asm.label()).collect();
    let stands_for = thread_jumps(code, out);
    let (cold, keeper, origins) = (Vec::new(), None, Vec::new());
    let mut encode = Encode { code, out, edit: 0, asm, frame, isa, labels, stands_for, cold, keeper, origins };
    let modes = code.floats.then(|| float_mode::check(&mut encode.asm));
    encode.frame.enter(&mut encode.asm);
    encode.blocks();
    encode.cold_code();
    if let Some(keeper) = encode.keeper {
        preserve_all::write(&mut encode.asm, keeper, isa, &encode.frame);
    }
    if let Some(labels) = modes {
        float_mode::set_and_call(&mut encode.asm, labels);
    }
    let origins = encode.origins;
    bytes.extend(encode.asm.finish().map_err(|error| CompileError::Encoding(error.to_string()))?);
    Ok(Image { bytes, entry, stack_bytes, origins })
}

/// Jump threading: for each block the final target of its chain of empty blocks. Follows at most 4 steps; blocks that
/// split an edge form chains of length 1.
fn thread_jumps(code: &VCode, out: &Output) -> Vec<usize> {
    let edited = |inst: u32| {
        let at = out.edits.partition_point(|(point, _)| (point.inst().index() as u32) < inst);
        out.edits.get(at).is_some_and(|(point, _)| point.inst().index() as u32 == inst)
    };
    let next = |block: usize| {
        let data = &code.blocks[block];
        let empty = data.end == data.first + 1 && matches!(code.kind(data.first as usize), InstKind::Jump);
        (block != 0 && empty && !edited(data.first)).then(|| data.succs[0].index())
    };
    let last = |block: usize| {
        let mut at = block;
        for _ in 0..4 {
            match next(at) {
                Some(to) => at = to,
                None => return at,
            }
        }
        block
    };
    (0..code.blocks.len()).map(last).collect()
}

impl Encode<'_> {
    fn blocks(&mut self) {
        let written: Vec<usize> =
            (0..self.code.blocks.len()).filter(|&block| self.stands_for[block] == block).collect();
        for (position, &block) in written.iter().enumerate() {
            self.asm.bind(self.labels[block]);
            let (first, end) = (self.code.blocks[block].first as usize, self.code.blocks[block].end as usize);
            // Skips the moves of blocks that are not emitted.
            while self.out.edits.get(self.edit).is_some_and(|(point, _)| point.inst().index() < first) {
                self.edit += 1;
            }
            for inst in first..end {
                self.record_origin(inst);
                self.moves(inst, InstPosition::Before);
                self.inst(inst, block, written.get(position + 1).copied());
                self.moves(inst, InstPosition::After);
            }
        }
    }

    /// Notes where the code of another origin starts.
    fn record_origin(&mut self, inst: usize) {
        let origin = self.code.origin(inst);
        let last = self.origins.last().map_or(0, |&(_, origin)| origin);
        if origin != last {
            self.origins.push((self.asm.position(), origin));
        }
    }

    /// Emits the allocator's moves at a program point.
    fn moves(&mut self, inst: usize, position: InstPosition) {
        while let Some((point, Edit::Move { from, to })) = self.out.edits.get(self.edit) {
            if point.inst().index() != inst || point.pos() != position {
                return;
            }
            self.edit += 1;
            moves::write(*from, *to, self.isa, &self.frame, &mut self.asm);
        }
    }

    fn inst(&mut self, inst: usize, block: usize, next: Option<usize>) {
        let regs = Regs(self.out.inst_allocs(ra::Inst::new(inst)));
        match self.code.kind(inst) {
            InstKind::Define => {}
            InstKind::Asm(asm) => self.asm.template(asm, regs),
            InstKind::Checked(asm, check) => {
                let cold = self.asm.cold();
                self.check(*check, cold, regs);
                self.asm.template(asm, regs);
            }
            InstKind::Sequence(sequence) => sequence.hot(regs, &mut self.asm),
            InstKind::Call { routine, preserves_all: false } => self.call(*routine),
            InstKind::Call { routine, preserves_all: true } => {
                let keeper = *self.keeper.get_or_insert_with(|| self.asm.label());
                preserve_all::call(&mut self.asm, keeper, *routine);
            }
            InstKind::Jump => {
                let to = self.target(block, 0);
                if next == Some(to) || !self.repeat(to, next) {
                    self.jump(to, next);
                }
            }
            InstKind::Branch(condition) => self.branch(*condition, block, next),
            InstKind::Switch(cases) => {
                let selector = regs.gpr32(0);
                self.switch(selector, cases, block);
                self.jump(self.target(block, 0), next);
            }
            InstKind::Poll { .. } => {
                let cold = self.asm.cold();
                self.asm.jump_if(ConditionCode::ne, cold);
            }
            InstKind::Return => {
                self.asm.put(Ok(zero(Register::EAX)));
                self.frame.leave(&mut self.asm);
            }
        }
        if let Some(entry) = self.asm.take_cold() {
            let back = self.asm.label();
            self.asm.bind(back);
            self.cold.push(Cold { inst, entry, back });
        }
    }

    /// Calls a routine; its arguments are in their registers already. No vector register is live, so `vzeroupper`
    /// avoids the penalty that narrower vector code of the callee would pay.
    fn call(&mut self, routine: u32) {
        let asm = &mut self.asm;
        asm.put(Instruction::with2(Code::Mov_r32_imm32, Register::EDX, routine));
        asm.put(Ok(Instruction::with(Code::VEX_Vzeroupper)));
        self.frame.call(asm, (Register::RSP, 0));
        asm.put(Instruction::with2(Code::Test_rm32_r32, Register::EAX, Register::EAX));
        asm.jump_if(ConditionCode::ne, asm.stopped());
    }

    fn branch(&mut self, condition: ConditionCode, block: usize, next: Option<usize>) {
        let (then, otherwise) = (self.target(block, 0), self.target(block, 1));
        if next == Some(then) {
            self.asm.jump_if(negated(condition), self.labels[otherwise]);
        } else {
            self.asm.jump_if(condition, self.labels[then]);
            self.jump(otherwise, next);
        }
    }

    /// Duplicates a short block that ends in a branch instead of jumping to it (loop rotation): the loop then has one
    /// branch.
    fn repeat(&mut self, block: usize, next: Option<usize>) -> bool {
        const SHORT: u32 = 4;
        let (first, end) = (self.code.blocks[block].first, self.code.blocks[block].end);
        let (plain, last) = (first as usize..end as usize - 1, end as usize - 1);
        let InstKind::Branch(condition) = *self.code.kind(last) else { return false };
        if end - first > SHORT || !plain.clone().all(|inst| matches!(self.code.kind(inst), InstKind::Asm(_))) {
            return false;
        }
        let here = self.edit;
        self.edit = self.out.edits.partition_point(|(point, _)| point.inst().index() < plain.start);
        for inst in plain.start..=last {
            self.moves(inst, InstPosition::Before);
            if let InstKind::Asm(asm) = self.code.kind(inst) {
                self.asm.template(asm, Regs(self.out.inst_allocs(ra::Inst::new(inst))));
                self.moves(inst, InstPosition::After);
            }
        }
        self.edit = here;
        self.branch(condition, block, next);
        true
    }

    /// The block to emit for successor `number`.
    fn target(&self, block: usize, number: usize) -> usize {
        self.stands_for[self.code.blocks[block].succs[number].index()]
    }

    fn jump(&mut self, to: usize, next: Option<usize>) {
        if next != Some(to) {
            self.asm.jump(self.labels[to]);
        }
    }

    /// Jumps to `cold` unless the index is below the limit.
    fn check(&mut self, check: Check, cold: Label, regs: Regs<'_>) {
        let (by_reg, by_imm) = match check.view {
            View::Dword => (Code::Cmp_r32_rm32, Code::Cmp_rm32_imm32),
            _ => (Code::Cmp_r64_rm64, Code::Cmp_rm64_imm32),
        };
        let reg = |slot| regs.view(slot, check.view);
        let condition = match (check.index, check.limit) {
            (CheckBound::Slot(index), CheckBound::Slot(limit)) => {
                self.asm.put(Instruction::with2(by_reg, reg(index), reg(limit)));
                ConditionCode::ae
            }
            (CheckBound::Slot(index), CheckBound::Constant(limit)) => {
                self.asm.put(Instruction::with2(by_imm, reg(index), limit));
                ConditionCode::ae
            }
            (CheckBound::Constant(index), CheckBound::Slot(limit)) => {
                self.asm.put(Instruction::with2(by_imm, reg(limit), index));
                ConditionCode::be
            }
            (CheckBound::Constant(index), CheckBound::Constant(limit)) => {
                if index as u32 >= limit as u32 {
                    self.asm.jump(cold);
                }
                return;
            }
        };
        self.asm.jump_if(condition, cold);
    }

    /// Binary search among the sorted cases; falls through if no case matches.
    fn switch(&mut self, selector: Register, cases: &[(u32, u32)], block: usize) {
        let compare = |asm: &mut Assembler<'_>, value: u32| {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, selector, value.cast_signed()));
        };
        if cases.len() <= 4 {
            for &(value, number) in cases {
                compare(&mut self.asm, value);
                self.asm.jump_if(ConditionCode::e, self.labels[self.target(block, number as usize)]);
            }
            return;
        }
        let (low, high) = cases.split_at(cases.len() / 2);
        let (upper, done) = (self.asm.label(), self.asm.label());
        compare(&mut self.asm, high[0].0);
        self.asm.jump_if(ConditionCode::ae, upper);
        self.switch(selector, low, block);
        self.asm.jump(done);
        self.asm.bind(upper);
        self.switch(selector, high, block);
        self.asm.bind(done);
    }

    fn cold_code(&mut self) {
        for Cold { inst, entry, back } in std::mem::take(&mut self.cold) {
            self.asm.bind(entry);
            let allocs = self.out.inst_allocs(ra::Inst::new(inst));
            let regs = Regs(allocs);
            match self.code.kind(inst) {
                &InstKind::Poll { at, number, mask } => {
                    stop::write(&mut self.asm, (at, number, mask), allocs, self.isa, &self.frame);
                    continue;
                }
                InstKind::Checked(asm, _) => {
                    let mut zeros = *asm;
                    zeros.memory.base = Base::Pool;
                    zeros.memory.index = None;
                    zeros.memory.scale = 1;
                    zeros.memory.disp = self.code.zero_word.disp();
                    self.asm.template(&zeros, regs);
                }
                InstKind::Sequence(sequence) => sequence.cold(regs, &mut self.asm),
                _ => {}
            }
            self.asm.jump(back);
        }
        if let Some(done) = self.asm.used_done() {
            self.asm.bind(done);
            self.asm.put(Ok(zero(Register::EAX)));
            self.frame.leave(&mut self.asm);
        }
        self.asm.bind(self.asm.stopped());
        self.asm.put(Instruction::with2(Code::Mov_r32_imm32, Register::EAX, 1));
        self.asm.bind(self.asm.stopped_at());
        self.frame.leave(&mut self.asm);
    }
}

fn zero(reg: Register) -> Instruction {
    let mut instruction = Instruction::default();
    instruction.set_code(Code::Xor_r32_rm32);
    instruction.set_op0_register(reg);
    instruction.set_op1_register(reg);
    instruction
}
