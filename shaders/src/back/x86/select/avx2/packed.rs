//! Packed bytes and halves of words.

use iced_x86::Code;

use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::ir::Op;
use crate::simd::Value;

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;

impl Select<'_, Avx2> {
    /// A packed operation; `None` for any other.
    pub(super) fn packed(&mut self, op: Op, args: &[Value]) -> Result<Option<RegisterPair>> {
        let code = match op {
            Op::BytesEven => {
                return self.interleave(Code::VEX_Vpsllw_ymm_ymm_imm8, [args[1], args[0]], 0x00ff_00ff).map(Some);
            }
            Op::BytesOdd => {
                return self.interleave(Code::VEX_Vpsrlw_ymm_ymm_imm8, [args[0], args[1]], 0xff00_ff00).map(Some);
            }
            Op::HalfFloat => {
                const HIGH_HALVES: u8 = 0xaa;
                let half = self.pair(args[0])?;
                let high = self.word(0x4b00_0000);
                let blend = Code::VEX_Vpblendw_ymm_ymm_ymmm256_imm8;
                return Ok(Some(self.op(blend, &[half], high, Some(HIGH_HALVES))));
            }
            Op::ByteProducts => Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256,
            Op::HalvesScale => Code::VEX_Vpmulhrsw_ymm_ymm_ymmm256,
            Op::HalvesMulHigh => Code::VEX_Vpmulhuw_ymm_ymm_ymmm256,
            Op::HalvesAdd => Code::VEX_Vpaddw_ymm_ymm_ymmm256,
            Op::HalvesSub => Code::VEX_Vpsubw_ymm_ymm_ymmm256,
            _ => return Ok(None),
        };
        let first = self.pair(args[0])?;
        let second = self.source(args[1])?;
        Ok(Some(self.op2(code, first, second)))
    }

    /// Shifts halves by a byte, which makes room for the bytes `kept` of another value.
    fn interleave(&mut self, shift: Code, [moved, other]: [Value; 2], kept: u32) -> Result<RegisterPair> {
        let moved = self.pair(moved)?;
        let shifted = self.shifted(shift, moved, 8);
        let others = self.with_word(AND, other, kept)?;
        Ok(self.op2(OR, shifted, others))
    }
}
