//! Atomic adds, subtracts and loads at one uniform address whose old values are used: one atomic with the sum of the
//! active lanes' values; each lane's old value is the word's old value plus (for a subtraction, minus) its exclusive
//! prefix sum.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::back::x86::atomic::AtomicCode;
use crate::back::x86::vcode::{Build, View};
use crate::ir::AtomicOp;
use crate::simd::{Inst, LaneAddress, Value};

const ADD: Code = Code::VEX_Vpaddd_ymm_ymm_ymmm256;
const SUBTRACT: Code = Code::VEX_Vpsubd_ymm_ymm_ymmm256;
const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;

impl Select<'_, Avx2> {
    /// Additions, subtractions and loads; returns whether the operation is one of them.
    pub(super) fn scan(
        &mut self,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool> {
        if !matches!(atomic.op, AtomicOp::Add | AtomicOp::Sub | AtomicOp::Load) {
            return Ok(false);
        }
        let bits = self.mask_bits(mask)?;
        let active = self.pair(mask)?;
        let (before, sum) = match value {
            None => (None, bits),
            Some(value) => {
                let value = self.source(value)?;
                let masked = self.op2(AND, active, value);
                let (before, sum) = self.exclusive_scan(masked);
                (Some(before), sum)
            }
        };
        let Some(old) = self.emit_uniform_atomic(atomic, lanes, sum, bits)? else { return Ok(false) };
        // Only the lowest active lane has the old value; the others have 0.
        let old = self.fold(Code::VEX_Vpor_ymm_ymm_ymmm256, old);
        let mut result = [old, old];
        if let Some(before) = before {
            result = self.op2(if atomic.op == AtomicOp::Sub { SUBTRACT } else { ADD }, result, before);
        }
        let result = self.op2(AND, result, active);
        self.bind(inst, result);
        Ok(true)
    }

    /// An instruction on one register, with an immediate.
    fn moved(&mut self, code: Code, from: VReg, immediate: u8) -> VReg {
        let to = self.lanes_reg();
        let build = Build::new(code).def(to, View::Ymm).reads(from, View::Ymm);
        build.imm8(immediate).push(&mut self.code);
        to
    }

    /// The sums of the lanes of two registers.
    fn sum_of(&mut self, a: VReg, b: VReg) -> VReg {
        let sum = self.lanes_reg();
        Build::new(ADD).def(sum, View::Ymm).reads(a, View::Ymm).reads(b, View::Ymm).push(&mut self.code);
        sum
    }

    /// The exclusive prefix sums of the lanes' values, and the sum of all.
    fn exclusive_scan(&mut self, masked: RegisterPair) -> (RegisterPair, VReg) {
        let mut sums = masked.map(|half| {
            let mut sums = half;
            for bytes in [4, 8] {
                let moved = self.moved(Code::VEX_Vpslldq_ymm_ymm_imm8, sums, bytes);
                sums = self.sum_of(sums, moved);
            }
            // Adds the last sum of the lower 128-bit lane to the upper one, and 0 to the lower one.
            let upper = self.lanes_reg();
            let build = Build::new(Code::VEX_Vperm2i128_ymm_ymm_ymmm256_imm8).def(upper, View::Ymm);
            build.reads(sums, View::Ymm).reads(sums, View::Ymm).imm8(0x08).push(&mut self.code);
            let last = self.moved(Code::VEX_Vpshufd_ymm_ymmm256_imm8, upper, 0xff);
            self.sum_of(sums, last)
        });
        let upper = self.moved(Code::VEX_Vpermq_ymm_ymmm256_imm8, sums[0], 0xff);
        let last = self.moved(Code::VEX_Vpshufd_ymm_ymmm256_imm8, upper, 0xff);
        sums[1] = self.sum_of(sums[1], last);
        let before = self.op2(SUBTRACT, sums, masked);
        let upper = self.moved(Code::VEX_Vpermq_ymm_ymmm256_imm8, sums[1], 0xff);
        let sum = self.general();
        let build = Build::new(Code::VEX_Vpextrd_rm32_xmm_imm8).def(sum, View::Dword).reads(upper, View::Xmm);
        build.imm8(3).push(&mut self.code);
        (before, sum)
    }
}
