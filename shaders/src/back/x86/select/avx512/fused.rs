//! Two operations that merge into one instruction: rotations, and ternary logic.

use iced_x86::Code;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::ir::Op;
use crate::simd::{Inst, InstData, Value};

/// The truth tables of the three operands of ternary logic.
const TABLES: [u8; 3] = [0xf0, 0xcc, 0xaa];

impl Select<'_, Avx512> {
    /// Emits the operation merged with a deferred one, if there is an instruction for both.
    pub(super) fn fused(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result<bool> {
        if op == Op::Or && self.rotation(inst, args)? {
            return Ok(true);
        }
        if op == Op::And && self.bytes(inst, args)? {
            return Ok(true);
        }
        let Some(outer) = logic(op) else { return Ok(false) };
        for (inner, other) in [(args[0], args[1]), (args[1], args[0])] {
            let Some((deferred, InstData::Pure { op, args })) = self.deferred_def(inner) else { continue };
            let Some(inner) = logic(*op) else { continue };
            self.deferred[deferred] = 0;
            let [first, second] = self.both(args)?;
            let third = self.source(other)?;
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8);
            let build = build.modify(result, first, View::Zmm).reads(second, View::Zmm);
            let [a, b, c] = TABLES;
            self.push_with(build, third, Some(outer(inner(a, b), c)));
            return Ok(true);
        }
        Ok(false)
    }

    /// Whole bytes out of each word, shifted right by whole bytes.
    fn bytes(&mut self, inst: Inst, args: &[Value]) -> Result<bool> {
        for (word, mask) in [(args[0], args[1]), (args[1], args[0])] {
            let Some(mask) = self.constant(mask) else { continue };
            let Some((deferred, InstData::Pure { op: Op::LShr, args })) = self.deferred_def(word) else { continue };
            let Some(amount) = self.constant(args[1]).map(|amount| amount & 31) else { continue };
            let [mask, amount] = [mask as u32, amount as u32];
            if !amount.is_multiple_of(8) || !mask.to_le_bytes().into_iter().all(|byte| matches!(byte, 0 | 0xff)) {
                continue;
            }
            self.deferred[deferred] = 0;
            let word = self.lanes(args[0])?;
            // The indices are those of 16 bytes; the high bit yields 0.
            let order = self.code.pool.vector(std::array::from_fn(|lane| {
                let bytes: [u8; 4] = std::array::from_fn(|byte| {
                    let from = byte as u32 + amount / 8;
                    let is_there = mask >> (8 * byte) & 1 != 0 && from < 4;
                    if is_there { (4 * (lane as u32 % 4) + from) as u8 } else { 0x80 }
                });
                u32::from_le_bytes(bytes)
            }));
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512).def(result, View::Zmm);
            self.push_with(build.reads(word, View::Zmm), Source::Vector(order), None);
            return Ok(true);
        }
        Ok(false)
    }

    /// A rotation is two shifts of one value.
    fn rotation(&mut self, inst: Inst, args: &[Value]) -> Result<bool> {
        for (left, right) in [(args[0], args[1]), (args[1], args[0])] {
            let Some((shl, InstData::Pure { op: Op::Shl, args: left })) = self.deferred_def(left) else { continue };
            let Some((lshr, InstData::Pure { op: Op::LShr, args: right })) = self.deferred_def(right) else { continue };
            let (Some(up), Some(down)) = (self.constant(left[1]), self.constant(right[1])) else { continue };
            let one = self.uses.canonical(left[0]) == self.uses.canonical(right[0]);
            if !one || up.wrapping_add(down) & 31 != 0 || up & 31 == 0 {
                continue;
            }
            self.deferred[shl] = 0;
            self.deferred[lshr] = 0;
            let value = self.source(left[0])?;
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vprold_zmm_k1z_zmmm512b32_imm8).def(result, View::Zmm);
            self.push_with(build, value, Some(up as u8 & 31));
            return Ok(true);
        }
        Ok(false)
    }
}

fn logic(op: Op) -> Option<fn(u8, u8) -> u8> {
    match op {
        Op::And => Some(|a, b| a & b),
        Op::Or => Some(|a, b| a | b),
        Op::Xor => Some(|a, b| a ^ b),
        _ => None,
    }
}
