//! Packed bytes and halves of words. Their instructions have no embedded broadcast, so constants are whole vectors.

use iced_x86::Code;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::ir::Op;
use crate::simd::{Inst, InstData, Value};

impl Select<'_, Avx512> {
    /// A packed operation; returns `false` for any other.
    pub(super) fn packed(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result<bool> {
        let code = match op {
            Op::BytesEven => {
                self.interleave(inst, Code::EVEX_Vpsllw_zmm_k1z_zmmm512_imm8, [args[1], args[0]], 0x00ff_00ff)?;
                return Ok(true);
            }
            Op::BytesOdd => {
                self.interleave(inst, Code::EVEX_Vpsrlw_zmm_k1z_zmmm512_imm8, [args[0], args[1]], 0xff00_ff00)?;
                return Ok(true);
            }
            Op::HalfFloat => {
                /// Truth table: of the operands, the first and the last, or the second.
                const AND_OR: u8 = 0xf0 & 0xaa | 0xcc;
                let half = self.lanes(args[0])?;
                let high = self.lanes_reg();
                self.set_lanes(high, 0x4b00_0000);
                let result = self.define_lanes(inst);
                let build = Build::new(Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8);
                let build = build.modify(result, half, View::Zmm).reads(high, View::Zmm);
                self.push_with(build, Source::Word(0xffff), Some(AND_OR));
                return Ok(true);
            }
            Op::ByteProducts => Code::EVEX_Vpmaddubsw_zmm_k1z_zmm_zmmm512,
            Op::HalvesScale => Code::EVEX_Vpmulhrsw_zmm_k1z_zmm_zmmm512,
            Op::HalvesMulHigh => Code::EVEX_Vpmulhuw_zmm_k1z_zmm_zmmm512,
            Op::HalvesAdd => Code::EVEX_Vpaddw_zmm_k1z_zmm_zmmm512,
            Op::HalvesSub => Code::EVEX_Vpsubw_zmm_k1z_zmm_zmmm512,
            _ => return Ok(false),
        };
        let first = self.lanes(args[0])?;
        let second = self.whole(args[1])?;
        let result = self.define_lanes(inst);
        self.push_with(Build::new(code).def(result, View::Zmm).reads(first, View::Zmm), second, None);
        Ok(true)
    }

    /// Shifts halves by a byte, which makes room for the bytes `kept` of another value.
    fn interleave(&mut self, inst: Inst, shift: Code, args: [Value; 2], kept: u32) -> Result {
        /// Truth table: of the operands, the first or both others.
        const FIRST_OR_BOTH: u8 = 0xf0 | 0xcc & 0xaa;
        let [moved, other] = self.both(&args)?;
        let shifted = self.lanes_reg();
        Build::new(shift).def(shifted, View::Zmm).reads(moved, View::Zmm).imm8(8).push(&mut self.code);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpternlogd_zmm_k1z_zmm_zmmm512b32_imm8);
        let build = build.modify(result, shifted, View::Zmm).reads(other, View::Zmm);
        self.push_with(build, Source::Word(kept), Some(FIRST_OR_BOTH));
        Ok(())
    }

    /// A value as an operand that is never a broadcast word.
    fn whole(&mut self, value: Value) -> Result<Source> {
        if let Some(bits) = self.constant(value) {
            return Ok(Source::Vector(self.code.pool.vector([bits as u32; 16])));
        }
        if let Some(InstData::Lanes { values }) = self.kernel.definition(self.uses.canonical(value)) {
            return Ok(Source::Vector(self.code.pool.vector(**values)));
        }
        Ok(Source::Reg(self.lanes(value)?))
    }
}
