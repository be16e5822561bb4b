//! Atomics on floats, on halves and on 64-bit words, lane by lane, on both instruction sets: compare-and-exchange
//! loops.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::super::Isa;
use super::super::atomic::{ACCUMULATOR, LaneLoop, LaneMemory};
use super::super::encode::{Assembler, Regs, conditional};
use super::super::vcode::{Expand, InstKind};
use super::registers::OperandSlots;
use super::{Result, Select, VectorIsa};
use crate::back::x86::lane_groups::VectorRegisters;
use crate::ir::AtomicOp;
use crate::simd::LaneAddress;

/// Offsets in the scratch area: indices, values, comparators and old values; high words are 64 bytes after the low
/// ones.
const INDEX_AT: i32 = 0;
const VALUE_AT: i32 = 64;
const COMPARATOR_AT: i32 = 192;
const RESULT_AT: i32 = 320;

/// Conversion immediate: round to nearest, ties to even.
const NEAREST: u32 = 0;

/// The canonical NaN of a double result.
const NAN: u64 = 0x7ff8_0000_0000_0000;

/// The operation and its operands. A vector is a register pair, the same register twice if it holds all 16 lanes.
pub(super) struct LaneAtomic<'a> {
    pub op: AtomicOp,
    pub lanes: &'a LaneAddress,
    /// The indices; then the words, each with its offset in the scratch area.
    pub index: [VReg; 2],
    pub words: SmallVec<[([VReg; 2], i32); 4]>,
    /// Whether the word has 64 bits.
    pub wide: bool,
    /// Whether other threads may access the word.
    pub lock: bool,
    /// The active lanes, a bit for each.
    pub bits: VReg,
    /// Registers of the old values: low words, then high ones.
    pub results: SmallVec<[VReg; 4]>,
}

/// Scratch-area offsets of the low and the high words of value and comparator.
pub(super) const PLACES: [[i32; 2]; 2] = [[VALUE_AT, VALUE_AT + 64], [COMPARATOR_AT, COMPARATOR_AT + 64]];

impl<V: VectorIsa> Select<'_, V> {
    pub(super) fn lane_atomic(&mut self, atomic: LaneAtomic<'_>) -> Result {
        let LaneAtomic { op, lanes, index, words, wide, lock, bits, results } = atomic;
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let order = self.lane_order();
        let mut operands = OperandSlots::default();
        let mut slot = |operand| operands.add(operand);
        let isa = V::ISA;
        let mut parts = |vector: [VReg; 2]| {
            let vector = vector.map(|half| slot(Operand::reg_use(half)));
            VectorRegisters { isa, vector, temp: 0 }
        };
        let kept = std::iter::once((parts(index), INDEX_AT))
            .chain(words.into_iter().map(|(vector, at)| (parts(vector), at)))
            .collect();
        let (base, bits) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(bits)));
        let old =
            slot(Operand::reg_fixed_def_at_start(self.code.vreg(RegClass::Int), PReg::new(ACCUMULATOR, RegClass::Int)));
        let temps = [(); 5].map(|()| slot(Operand::reg_temp(self.code.vreg(RegClass::Int))));
        let vectors = [(); 2].map(|()| slot(Operand::reg_temp(self.code.vreg(RegClass::Float))));
        let results = results.into_iter().map(|result| slot(Operand::reg_def_at_start(result))).collect();
        let order = order.map(|order| slot(Operand::reg_use(order)));
        self.code.scratch = true;
        self.code.floats |= op.is_float();
        let scale = lanes.scale;
        let sequence = LaneAtomicSequence {
            isa,
            op,
            wide,
            lock,
            kept,
            base,
            scale,
            disp,
            bits,
            order,
            old,
            temps,
            vectors,
            results,
        };
        self.code.push(InstKind::Sequence(Box::new(sequence)), &operands);
        Ok(())
    }
}

/// Register fields are slots.
#[derive(Debug)]
struct LaneAtomicSequence {
    isa: Isa,
    op: AtomicOp,
    wide: bool,
    lock: bool,
    /// Vectors and their offsets in the scratch area.
    kept: SmallVec<[(VectorRegisters, i32); 5]>,
    base: u8,
    scale: u8,
    disp: i32,
    bits: u8,
    /// Address of the order of lanes.
    order: Option<u8>,
    /// The accumulator.
    old: u8,
    /// The lane, its index, the mask of remaining lanes, the value, the new word.
    temps: [u8; 5],
    vectors: [u8; 2],
    results: SmallVec<[u8; 4]>,
}

/// Selects the 32-bit or the 64-bit opcode.
fn by_width(wide: bool, codes: [Code; 2]) -> Code {
    codes[usize::from(wide)]
}

impl LaneAtomicSequence {
    /// A general register at the operation's width.
    fn reg(&self, regs: Regs<'_>, slot: u8) -> Register {
        if self.wide { regs.gpr(slot) } else { regs.gpr32(slot) }
    }

    /// The current lane's word of a vector in the scratch area.
    fn word(&self, regs: Regs<'_>, at: i32) -> MemoryOperand {
        MemoryOperand::with_base_index_scale_displ_size(Register::RSP, regs.gpr(self.temps[0]), 4, i64::from(at), 1)
    }

    /// Loads the current lane's value; clobbers `temp` if it has two words.
    fn fetch(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32, to: u8, temp: u8) {
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(to), self.word(regs, at)));
        if self.wide {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(temp), self.word(regs, at + 64)));
            asm.put(Instruction::with2(Code::Shl_rm64_imm8, regs.gpr(temp), 32));
            asm.put(Instruction::with2(Code::Or_r64_rm64, regs.gpr(to), regs.gpr(temp)));
        }
    }

    fn exchange(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, memory: MemoryOperand, new: u8) {
        let (code, reg) = if self.op.is_half() {
            (Code::Cmpxchg_rm16_r16, regs.gpr16(new))
        } else {
            (by_width(self.wide, [Code::Cmpxchg_rm32_r32, Code::Cmpxchg_rm64_r64]), self.reg(regs, new))
        };
        asm.put(Instruction::with2(code, memory, reg).map(|mut instruction| {
            instruction.set_has_lock_prefix(self.lock);
            instruction
        }));
    }

    /// The operation on the lane's word; afterwards the accumulator holds the old value.
    fn operate(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [_, index, _, value, new] = self.temps;
        let place = LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp };
        let memory = place.at(regs.gpr(index));
        let load = by_width(self.wide, [Code::Mov_r32_rm32, Code::Mov_r64_rm64]);
        // A failed 16-bit exchange leaves the accumulator's upper bits zero.
        let load = if self.op.is_half() { Code::Movzx_r32_rm16 } else { load };
        if self.op == AtomicOp::CompareExchange {
            self.fetch(regs, asm, COMPARATOR_AT, self.old, new);
            return self.exchange(regs, asm, memory, value);
        }
        asm.put(Instruction::with2(load, self.reg(regs, self.old), memory));
        if self.op.is_load() {
            return;
        }
        let again = asm.label();
        asm.bind(again);
        self.combine(regs, asm, value, new);
        self.exchange(regs, asm, memory, new);
        asm.jump_if(ConditionCode::ne, again);
    }

    /// `new` becomes the new contents of the word.
    fn combine(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, value: u8, new: u8) {
        let [old, value, new] = [self.old, value, new].map(|slot| self.reg(regs, slot));
        let moved = by_width(self.wide, [Code::Mov_r32_rm32, Code::Mov_r64_rm64]);
        if self.op == AtomicOp::Sub {
            asm.put(Instruction::with2(moved, new, old));
            return asm.put(Instruction::with2(
                by_width(self.wide, [Code::Sub_r32_rm32, Code::Sub_r64_rm64]),
                new,
                value,
            ));
        }
        asm.put(Instruction::with2(moved, new, value));
        let condition = match self.op {
            AtomicOp::SMin => ConditionCode::l,
            AtomicOp::UMin => ConditionCode::b,
            AtomicOp::SMax => ConditionCode::g,
            AtomicOp::UMax => ConditionCode::a,
            op if op.is_float() => return self.combine_floats(regs, asm, [old, value, new]),
            op => {
                let codes = match op {
                    AtomicOp::Add => [Code::Add_r32_rm32, Code::Add_r64_rm64],
                    AtomicOp::And => [Code::And_r32_rm32, Code::And_r64_rm64],
                    AtomicOp::Or => [Code::Or_r32_rm32, Code::Or_r64_rm64],
                    AtomicOp::Xor => [Code::Xor_r32_rm32, Code::Xor_r64_rm64],
                    // Stores and exchanges.
                    _ => return,
                };
                return asm.put(Instruction::with2(by_width(self.wide, codes), new, old));
            }
        };
        asm.put(Instruction::with2(by_width(self.wide, [Code::Cmp_r32_rm32, Code::Cmp_r64_rm64]), old, value));
        let (_, dword, qword) = conditional(condition);
        asm.put(Instruction::with2(by_width(self.wide, [dword, qword]), new, old));
    }

    fn combine_floats(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, [old, value, new]: [Register; 3]) {
        let [first, second] = self.vectors.map(|slot| regs.xmm(slot));
        let codes = match self.isa {
            Isa::Avx512 => &EVEX,
            Isa::Avx2 => &VEX,
        };
        let codes = codes[usize::from(self.wide)];
        asm.put(Instruction::with2(codes.as_vector, first, value));
        asm.put(Instruction::with2(codes.as_vector, second, old));
        if self.op.is_half() {
            [first, second].into_iter().for_each(|reg| asm.put(Instruction::with2(codes.from_half, reg, reg)));
        }
        // `min` and `max` return the second operand if either is a NaN or both are zeros.
        let operation = match self.op {
            AtomicOp::FAdd | AtomicOp::FAddHalf | AtomicOp::HalfAdd => codes.add,
            AtomicOp::FMin | AtomicOp::HalfMin => codes.min,
            _ => codes.max,
        };
        asm.put(Instruction::with3(operation, first, first, second));
        if self.op.is_half() || self.op == AtomicOp::FAddHalf {
            asm.put(Instruction::with3(codes.to_half, first, first, NEAREST));
        }
        if self.op == AtomicOp::FAddHalf {
            asm.put(Instruction::with2(codes.from_half, first, first));
        }
        asm.put(Instruction::with2(codes.from_vector, new, first));
        let (_, dword, qword) = conditional(ConditionCode::p);
        if operation != codes.add {
            // If memory holds a NaN, the result is the value.
            asm.put(Instruction::with2(codes.compare, second, second));
            asm.put(Instruction::with2(by_width(self.wide, [dword, qword]), new, value));
        } else if self.wide {
            let number = asm.label();
            asm.put(Instruction::with2(codes.compare, first, first));
            asm.jump_if(ConditionCode::np, number);
            asm.put(Instruction::with2(Code::Mov_r64_imm64, new, NAN));
            asm.bind(number);
        }
    }
}

/// Scalar floating-point opcodes.
#[derive(Clone, Copy)]
struct FloatOpcodes {
    as_vector: Code,
    from_vector: Code,
    add: Code,
    min: Code,
    max: Code,
    compare: Code,
    from_half: Code,
    to_half: Code,
}

/// For 32 bits, then for 64.
const VEX: [FloatOpcodes; 2] = [
    FloatOpcodes {
        as_vector: Code::VEX_Vmovd_xmm_rm32,
        from_vector: Code::VEX_Vmovd_rm32_xmm,
        add: Code::VEX_Vaddss_xmm_xmm_xmmm32,
        min: Code::VEX_Vminss_xmm_xmm_xmmm32,
        max: Code::VEX_Vmaxss_xmm_xmm_xmmm32,
        compare: Code::VEX_Vucomiss_xmm_xmmm32,
        from_half: Code::VEX_Vcvtph2ps_xmm_xmmm64,
        to_half: Code::VEX_Vcvtps2ph_xmmm64_xmm_imm8,
    },
    FloatOpcodes {
        as_vector: Code::VEX_Vmovq_xmm_rm64,
        from_vector: Code::VEX_Vmovq_rm64_xmm,
        add: Code::VEX_Vaddsd_xmm_xmm_xmmm64,
        min: Code::VEX_Vminsd_xmm_xmm_xmmm64,
        max: Code::VEX_Vmaxsd_xmm_xmm_xmmm64,
        compare: Code::VEX_Vucomisd_xmm_xmmm64,
        from_half: Code::VEX_Vcvtph2ps_xmm_xmmm64,
        to_half: Code::VEX_Vcvtps2ph_xmmm64_xmm_imm8,
    },
];

/// As [`VEX`], with access to registers 16 to 31.
const EVEX: [FloatOpcodes; 2] = [
    FloatOpcodes {
        as_vector: Code::EVEX_Vmovd_xmm_rm32,
        from_vector: Code::EVEX_Vmovd_rm32_xmm,
        add: Code::EVEX_Vaddss_xmm_k1z_xmm_xmmm32_er,
        min: Code::EVEX_Vminss_xmm_k1z_xmm_xmmm32_sae,
        max: Code::EVEX_Vmaxss_xmm_k1z_xmm_xmmm32_sae,
        compare: Code::EVEX_Vucomiss_xmm_xmmm32_sae,
        from_half: Code::EVEX_Vcvtph2ps_xmm_k1z_xmmm64,
        to_half: Code::EVEX_Vcvtps2ph_xmmm64_k1z_xmm_imm8,
    },
    FloatOpcodes {
        as_vector: Code::EVEX_Vmovq_xmm_rm64,
        from_vector: Code::EVEX_Vmovq_rm64_xmm,
        add: Code::EVEX_Vaddsd_xmm_k1z_xmm_xmmm64_er,
        min: Code::EVEX_Vminsd_xmm_k1z_xmm_xmmm64_sae,
        max: Code::EVEX_Vmaxsd_xmm_k1z_xmm_xmmm64_sae,
        compare: Code::EVEX_Vucomisd_xmm_xmmm64_sae,
        from_half: Code::EVEX_Vcvtph2ps_xmm_k1z_xmmm64,
        to_half: Code::EVEX_Vcvtps2ph_xmmm64_k1z_xmm_imm8,
    },
];

impl Expand for LaneAtomicSequence {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [lane, index, left, value, temp] = self.temps;
        for &(parts, at) in &self.kept {
            parts.keep(regs, asm, at);
        }
        self.clear_results(regs, asm);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(left), regs.gpr32(self.bits)));
        let order = self.order.map(|order| regs.gpr(order));
        let lanes = LaneLoop { bits: regs.gpr32(self.bits), left: regs.gpr32(left), lane: regs.gpr32(lane), order };
        lanes.write(asm, |asm| {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), self.word(regs, INDEX_AT)));
            if !self.op.is_load() {
                self.fetch(regs, asm, VALUE_AT, value, temp);
            }
            self.operate(regs, asm);
            if !self.results.is_empty() {
                asm.put(Instruction::with2(Code::Mov_rm32_r32, self.word(regs, RESULT_AT), regs.gpr32(self.old)));
                if self.wide {
                    asm.put(Instruction::with2(Code::Shr_rm64_imm8, regs.gpr(self.old), 32));
                    let high = self.word(regs, RESULT_AT + 64);
                    asm.put(Instruction::with2(Code::Mov_rm32_r32, high, regs.gpr32(self.old)));
                }
            }
        });
        self.each_result(regs, asm, |asm, reg, at| {
            let from = asm.scratch(at, false);
            asm.put(Instruction::with2(self.isa.vectors().load, reg, from));
        });
    }
}

impl LaneAtomicSequence {
    fn clear_results(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.each_result(regs, asm, |asm, reg, at| {
            let to = asm.scratch(at, false);
            asm.put(Instruction::with3(self.isa.vectors().xor, reg, reg, reg));
            asm.put(Instruction::with2(self.isa.vectors().store, to, reg));
        });
    }

    /// Calls `each` with every result register and its offset in the scratch area.
    fn each_result(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, each: impl Fn(&mut Assembler<'_>, Register, i32)) {
        for (number, &slot) in (0..).zip(&self.results) {
            each(asm, regs.view(slot, self.isa.view()), RESULT_AT + number * self.isa.vector_bytes());
        }
    }
}
