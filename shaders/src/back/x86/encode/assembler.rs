//! Assembler: instructions through iced's encoder, branches and labels handled here.

use iced_x86::{
    Code, ConditionCode, Encoder, IcedError, Instruction, MemoryOperand, OpKind, Register, RoundingControl,
};

use super::super::pool::PooledConstant;
use super::super::vcode::{AddressingMode, Arg, Asm, Base, SCRATCH_BYTES, VCode};
use super::Regs;

/// A code position, possibly not bound yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Label(u32);

const UNBOUND: u32 = u32::MAX;

/// The code emitted so far. Addresses are relative to the beginning of the pool, which precedes the code.
pub(in super::super) struct Assembler<'a> {
    encoder: Encoder,
    code: &'a VCode,
    /// Address of the next byte.
    at: u32,
    start: u32,
    labels: Vec<u32>,
    /// Ends of 32-bit displacement fields, with their targets.
    fixups: Vec<(u32, Label)>,
    cold: Option<Label>,
    stopped: Label,
    stopped_at: Label,
    done: Label,
    /// Whether code jumps to `done`.
    ends: bool,
    error: Option<IcedError>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(code: &'a VCode, pool_bytes: usize) -> Self {
        let start = pool_bytes as u32;
        let mut encoder = Encoder::new(64);
        encoder.set_buffer(Vec::with_capacity(code.len() * 8 + 256));
        let mut asm = Self {
            encoder,
            code,
            at: start,
            start,
            labels: Vec::new(),
            fixups: Vec::new(),
            cold: None,
            stopped: Label(0),
            stopped_at: Label(0),
            done: Label(0),
            ends: false,
            error: None,
        };
        asm.stopped = asm.label();
        asm.stopped_at = asm.label();
        asm.done = asm.label();
        asm
    }

    /// The address of the next byte, from the beginning of the pool.
    pub(super) fn position(&self) -> u32 {
        self.at
    }

    /// Emits an instruction; the first encoding error is kept for [`Assembler::finish`].
    pub(in super::super) fn put(&mut self, instruction: Result<Instruction, IcedError>) {
        match instruction.and_then(|instruction| self.encoder.encode(&instruction, u64::from(self.at))) {
            Ok(bytes) => self.at += bytes as u32,
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }

    /// As [`Assembler::put`] under a mask; `zeroing` sets inactive lanes to 0, otherwise they are unchanged.
    pub(in super::super) fn put_masked(
        &mut self,
        mask: Register,
        zeroing: bool,
        instruction: Result<Instruction, IcedError>,
    ) {
        self.put(instruction.map(|mut instruction| {
            instruction.set_op_mask(mask);
            instruction.set_zeroing_masking(zeroing);
            instruction
        }));
    }

    /// Emits a template with its registers.
    pub(super) fn template(&mut self, asm: &Asm, regs: Regs<'_>) {
        let mut instruction = Instruction::default();
        instruction.set_code(asm.code);
        for (position, arg) in asm.args.iter().enumerate() {
            let position = position as u32;
            match *arg {
                Arg::None => break,
                Arg::Slot(slot, view) => {
                    instruction.set_op_kind(position, OpKind::Register);
                    instruction.set_op_register(position, regs.view(slot, view));
                }
                Arg::Memory => {
                    instruction.set_op_kind(position, OpKind::Memory);
                    self.address(&mut instruction, &asm.memory, regs);
                }
                Arg::Immediate(kind) => {
                    instruction.set_op_kind(position, kind);
                    set_immediate(&mut instruction, kind, asm.immediate);
                }
            }
        }
        if let Some(mask) = asm.mask {
            instruction.set_op_mask(regs.mask(mask));
            instruction.set_zeroing_masking(asm.zeroing);
        }
        if asm.rounds_down {
            instruction.set_rounding_control(RoundingControl::RoundDown);
        }
        self.put(Ok(instruction));
    }

    fn address(&self, instruction: &mut Instruction, memory: &AddressingMode, regs: Regs<'_>) {
        let (base, disp) = match memory.base {
            Base::Slot(slot) => (regs.gpr(slot), memory.disp),
            Base::Pool => (Register::RIP, self.code.pool.offset(memory.disp)),
        };
        instruction.set_memory_base(base);
        if let Some(index) = memory.index {
            instruction.set_memory_index(regs.gpr(index));
        }
        instruction.set_memory_index_scale(u32::from(memory.scale));
        instruction.set_memory_displacement64(i64::from(disp) as u64);
        instruction.set_memory_displ_size(u32::from(disp != 0 || base == Register::RIP));
        instruction.set_is_broadcast(memory.broadcast);
    }

    /// Memory operand for a word or vector of the pool.
    pub(in super::super) fn constant(&self, constant: PooledConstant, broadcast: bool) -> MemoryOperand {
        let at = i64::from(self.code.pool.offset(constant.disp()));
        MemoryOperand::new(Register::RIP, Register::None, 1, at, 1, broadcast, Register::None)
    }

    /// Memory operand in the scratch area on the stack.
    pub(in super::super) fn scratch(&self, at: i32, broadcast: bool) -> MemoryOperand {
        debug_assert!(self.code.scratch && at < SCRATCH_BYTES);
        MemoryOperand::new(Register::RSP, Register::None, 1, i64::from(at), 1, broadcast, Register::None)
    }

    pub(in super::super) fn label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    pub(in super::super) fn bind(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.at;
    }

    /// The label of the code that ends the kernel as stopped.
    pub(in super::super) fn stopped(&self) -> Label {
        self.stopped
    }

    /// As [`Assembler::stopped`], for code that has put the position into `rax`.
    pub(super) fn stopped_at(&self) -> Label {
        self.stopped_at
    }

    /// The label of the code that ends the kernel as done, for jumps from inside a sequence.
    pub(in super::super) fn done(&mut self) -> Label {
        self.ends = true;
        self.done
    }

    /// The label of [`Assembler::done`], if code leads there.
    pub(super) fn used_done(&self) -> Option<Label> {
        self.ends.then_some(self.done)
    }

    /// The label of the current sequence's cold part, which returns to the sequence's end.
    pub(in super::super) fn cold(&mut self) -> Label {
        let label = self.cold.unwrap_or_else(|| self.label());
        self.cold = Some(label);
        label
    }

    pub(super) fn take_cold(&mut self) -> Option<Label> {
        self.cold.take()
    }

    pub(in super::super) fn jump(&mut self, to: Label) {
        self.branch(to, 0xeb, &[0xe9]);
    }

    pub(in super::super) fn jump_if(&mut self, condition: ConditionCode, to: Label) {
        let number = condition_number(condition);
        self.branch(to, 0x70 | number, &[0x0f, 0x80 | number]);
    }

    pub(super) fn call(&mut self, to: Label) {
        self.bytes(&[0xe8, 0, 0, 0, 0]);
        self.fixups.push((self.at, to));
    }

    /// Short form if the target is bound and near.
    fn branch(&mut self, to: Label, short: u8, long: &[u8]) {
        let target = self.labels[to.0 as usize];
        if target != UNBOUND && self.at + 2 - target <= 128 {
            let distance = (target as i32 - self.at as i32 - 2) as u8;
            self.bytes(&[short, distance]);
            return;
        }
        self.bytes(long);
        self.bytes(&[0; 4]);
        self.fixups.push((self.at, to));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.encoder.write_u8(byte));
        self.at += bytes.len() as u32;
    }

    /// Patches all branches and returns the code.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, IcedError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let mut bytes = self.encoder.take_buffer();
        for (end, label) in self.fixups {
            let distance = self.labels[label.0 as usize].wrapping_sub(end);
            let field = (end - self.start) as usize;
            bytes[field - 4..field].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(bytes)
    }
}

fn set_immediate(instruction: &mut Instruction, kind: OpKind, value: i64) {
    match kind {
        OpKind::Immediate8 => instruction.set_immediate8(value as u8),
        OpKind::Immediate8to32 => instruction.set_immediate8to32(value as i32),
        OpKind::Immediate8to64 => instruction.set_immediate8to64(value),
        OpKind::Immediate32 => instruction.set_immediate32(value as u32),
        OpKind::Immediate32to64 => instruction.set_immediate32to64(value),
        _ => instruction.set_immediate64(value as u64),
    }
}

/// The condition's number in opcodes.
fn condition_number(condition: ConditionCode) -> u8 {
    match condition {
        ConditionCode::o => 0,
        ConditionCode::no => 1,
        ConditionCode::b => 2,
        ConditionCode::ae => 3,
        ConditionCode::e => 4,
        ConditionCode::ne => 5,
        ConditionCode::be => 6,
        ConditionCode::a => 7,
        ConditionCode::s => 8,
        ConditionCode::ns => 9,
        ConditionCode::p => 10,
        ConditionCode::np => 11,
        ConditionCode::l => 12,
        ConditionCode::ge => 13,
        ConditionCode::le => 14,
        ConditionCode::g => 15,
        ConditionCode::None => unreachable!("a branch without a condition is a jump"),
    }
}

/// The negated condition.
pub(in super::super) fn negated(condition: ConditionCode) -> ConditionCode {
    const ALL: [ConditionCode; 16] = [
        ConditionCode::o,
        ConditionCode::no,
        ConditionCode::b,
        ConditionCode::ae,
        ConditionCode::e,
        ConditionCode::ne,
        ConditionCode::be,
        ConditionCode::a,
        ConditionCode::s,
        ConditionCode::ns,
        ConditionCode::p,
        ConditionCode::np,
        ConditionCode::l,
        ConditionCode::ge,
        ConditionCode::le,
        ConditionCode::g,
    ];
    ALL[usize::from(condition_number(condition) ^ 1)]
}

/// `setcc`, 32-bit `cmovcc` and 64-bit `cmovcc` of a condition.
pub(in super::super) fn conditional(condition: ConditionCode) -> (Code, Code, Code) {
    match condition_number(condition) {
        0 => (Code::Seto_rm8, Code::Cmovo_r32_rm32, Code::Cmovo_r64_rm64),
        1 => (Code::Setno_rm8, Code::Cmovno_r32_rm32, Code::Cmovno_r64_rm64),
        2 => (Code::Setb_rm8, Code::Cmovb_r32_rm32, Code::Cmovb_r64_rm64),
        3 => (Code::Setae_rm8, Code::Cmovae_r32_rm32, Code::Cmovae_r64_rm64),
        4 => (Code::Sete_rm8, Code::Cmove_r32_rm32, Code::Cmove_r64_rm64),
        5 => (Code::Setne_rm8, Code::Cmovne_r32_rm32, Code::Cmovne_r64_rm64),
        6 => (Code::Setbe_rm8, Code::Cmovbe_r32_rm32, Code::Cmovbe_r64_rm64),
        7 => (Code::Seta_rm8, Code::Cmova_r32_rm32, Code::Cmova_r64_rm64),
        8 => (Code::Sets_rm8, Code::Cmovs_r32_rm32, Code::Cmovs_r64_rm64),
        9 => (Code::Setns_rm8, Code::Cmovns_r32_rm32, Code::Cmovns_r64_rm64),
        10 => (Code::Setp_rm8, Code::Cmovp_r32_rm32, Code::Cmovp_r64_rm64),
        11 => (Code::Setnp_rm8, Code::Cmovnp_r32_rm32, Code::Cmovnp_r64_rm64),
        12 => (Code::Setl_rm8, Code::Cmovl_r32_rm32, Code::Cmovl_r64_rm64),
        13 => (Code::Setge_rm8, Code::Cmovge_r32_rm32, Code::Cmovge_r64_rm64),
        14 => (Code::Setle_rm8, Code::Cmovle_r32_rm32, Code::Cmovle_r64_rm64),
        _ => (Code::Setg_rm8, Code::Cmovg_r32_rm32, Code::Cmovg_r64_rm64),
    }
}
