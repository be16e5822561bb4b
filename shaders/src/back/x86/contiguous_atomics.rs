//! Contiguous locked atomics, one word per lane: `cmpxchg16b` on four words at a time if all lanes are active and the
//! address is 16-byte aligned, otherwise lane by lane.
//!
//! Only for operations whose old values are unused. A failed exchange retries with the current contents.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::Isa;
use super::atomic::{Atomic, LaneMemory, Registers, VALUE_AT};
use super::encode::{Assembler, Regs};
use super::lane_groups::Parts;
use super::vcode::{Expand, Kind, VCode};
use crate::ir::AtomicOp;

/// Operands of the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContiguousAtomic {
    pub isa: Isa,
    pub atomic: Atomic,
    pub base: VReg,
    pub disp: i32,
    /// Index of lane 0's word, a scalar.
    pub index: VReg,
    /// The bits of the mask.
    pub bits: VReg,
    /// The lower and the upper half of the values; the same register twice if it holds all 16 lanes.
    pub value: [VReg; 2],
}

/// Whether the operation has a vector instruction for four words.
pub(super) fn has_form(op: AtomicOp) -> bool {
    code(Isa::Avx2, op).is_some()
}

fn code(isa: Isa, op: AtomicOp) -> Option<Code> {
    let [wide, narrow] = match op {
        AtomicOp::Add => [Code::EVEX_Vpaddd_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpaddd_xmm_xmm_xmmm128],
        AtomicOp::Sub => [Code::EVEX_Vpsubd_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpsubd_xmm_xmm_xmmm128],
        AtomicOp::SMin => [Code::EVEX_Vpminsd_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpminsd_xmm_xmm_xmmm128],
        AtomicOp::UMin => [Code::EVEX_Vpminud_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpminud_xmm_xmm_xmmm128],
        AtomicOp::SMax => [Code::EVEX_Vpmaxsd_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpmaxsd_xmm_xmm_xmmm128],
        AtomicOp::UMax => [Code::EVEX_Vpmaxud_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpmaxud_xmm_xmm_xmmm128],
        AtomicOp::And => [Code::EVEX_Vpandd_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpand_xmm_xmm_xmmm128],
        AtomicOp::Or => [Code::EVEX_Vpord_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpor_xmm_xmm_xmmm128],
        AtomicOp::Xor => [Code::EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32, Code::VEX_Vpxor_xmm_xmm_xmmm128],
        _ => return None,
    };
    Some(if isa == Isa::Avx512 { wide } else { narrow })
}

/// `rax`, `rcx`, `rdx`, `rbx`, the implicit operands of `cmpxchg16b`.
const FIXED: [usize; 4] = [0, 1, 2, 3];

/// Distances in bytes of write prefetches, this line's and some of the next subgroups'. Locked operations do not
/// overlap, so each line last written by another worker would otherwise be waited for separately: measured on a
/// histogram's 256 sums, a third of its time.
const PREFETCH_DISTANCES: [i64; 5] = [0, 64, 128, 256, 512];

impl ContiguousAtomic {
    pub(super) fn push(self, code: &mut VCode) {
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let value = self.value.map(|half| slot(Operand::reg_use(half)));
        let (base, index) = (slot(Operand::reg_use(self.base)), slot(Operand::reg_use(self.index)));
        let bits = slot(Operand::reg_use(self.bits));
        let fixed = FIXED.map(|number| {
            let reg = code.vreg(RegClass::Int);
            slot(Operand::reg_fixed_def_at_start(reg, PReg::new(number, RegClass::Int)))
        });
        let [address, left] = [0, 1].map(|_| slot(Operand::reg_temp(code.vreg(RegClass::Int))));
        let [part, words] = [0, 1].map(|_| slot(Operand::reg_temp(code.vreg(RegClass::Float))));
        let parts = Parts { isa: self.isa, vector: value, temp: part };
        let Self { isa, atomic, disp, .. } = self;
        let sequence = Sequence { isa, atomic, parts, base, disp, index, bits, fixed, address, left, words };
        code.scratch = true;
        code.push(Kind::Sequence(Box::new(sequence)), &operands);
    }
}

/// Fields of type `u8` are slots.
#[derive(Debug)]
struct Sequence {
    isa: Isa,
    atomic: Atomic,
    parts: Parts,
    base: u8,
    disp: i32,
    index: u8,
    bits: u8,
    fixed: [u8; 4],
    address: u8,
    left: u8,
    words: u8,
}

impl Expand for Sequence {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let address = regs.gpr(self.address);
        // Sign extension: an index that wrapped below 0 addresses the words before the base.
        asm.put(Instruction::with2(Code::Movsxd_r64_rm32, address, regs.gpr32(self.index)));
        let first = LaneMemory { base: regs.gpr(self.base), scale: 4, disp: self.disp }.at(address);
        asm.put(Instruction::with2(Code::Lea_r64_m, address, first));
        let cold = asm.cold();
        asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(self.bits), 0xffff));
        asm.jump_if(ConditionCode::ne, cold);
        asm.put(Instruction::with2(Code::Test_rm32_imm32, regs.gpr32(self.address), 15));
        asm.jump_if(ConditionCode::ne, cold);
        let Some(operation) = code(self.isa, self.atomic.op) else { return };
        for distance in PREFETCH_DISTANCES {
            let line = MemoryOperand::with_base_displ(address, distance);
            asm.put(Instruction::with1(Code::Prefetchw_m8, line));
        }
        let words = regs.xmm(self.words);
        let [rax, rcx, rdx, rbx] = self.fixed.map(|slot| regs.gpr(slot));
        for lane128 in 0..4 {
            let part = self.parts.lane128(regs, asm, lane128);
            let memory = MemoryOperand::with_base_displ_size(address, 16 * i64::from(lane128), 1);
            let again = asm.label();
            asm.bind(again);
            asm.put(Instruction::with2(self.parts.load(), words, memory));
            self.parts.split(asm, words, [rax, rdx]);
            asm.put(Instruction::with3(operation, words, words, part));
            self.parts.split(asm, words, [rbx, rcx]);
            asm.put(Instruction::with1(Code::Cmpxchg16b_m128, memory).map(|mut exchange| {
                exchange.set_has_lock_prefix(true);
                exchange
            }));
            asm.jump_if(ConditionCode::ne, again);
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [rax, rcx, rdx, rbx] = self.fixed.map(|slot| regs.gpr32(slot));
        let (left, lane) = (regs.gpr32(self.left), rcx.full_register());
        let (again, done) = (asm.label(), asm.label());
        self.parts.keep(regs, asm, VALUE_AT);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, left, regs.gpr32(self.bits)));
        asm.put(Instruction::with2(Code::Test_rm32_r32, left, left));
        asm.jump_if(ConditionCode::e, done);
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, rcx, left));
        let value = LaneMemory { base: Register::RSP, scale: 4, disp: VALUE_AT }.at(lane);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, rbx, value));
        let memory = LaneMemory { base: regs.gpr(self.address), scale: 4, disp: 0 }.at(lane);
        self.atomic.operate(asm, memory, Registers { old: rax, value: rbx, comparator: rdx });
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, left, left));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}
