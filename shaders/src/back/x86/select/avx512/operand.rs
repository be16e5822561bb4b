//! The last operand of a vector instruction: a register, a constant in the pool, or a word in memory for all lanes.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::pool::PooledConstant;
use super::super::super::vcode::{AddressRegisters, AddressingMode, Base, Build, View};
use super::super::memory::CheckedAddress;
use super::super::{Result, Select};
use super::Avx512;
use crate::simd::{InstData, Type, Value};

/// The operand's location.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Reg(VReg),
    /// A constant, the same in each lane.
    Word(u32),
    /// A constant of 16 lanes.
    Vector(PooledConstant),
    /// A deferred load.
    Load(CheckedAddress),
}

impl Select<'_, Avx512> {
    /// A value as the last operand of an instruction.
    pub(super) fn source(&mut self, value: Value) -> Result<Source> {
        if let Some(bits) = self.constant(value) {
            return Ok(Source::Word(bits as u32));
        }
        if let Some((inst, InstData::Load { ty: Type::V32, address })) = self.deferred_def(value) {
            self.deferred[inst] = 0;
            let checked = self.address(address)?;
            let place = AddressRegisters { broadcast: true, ..checked.place };
            return Ok(Source::Load(CheckedAddress { place, ..checked }));
        }
        if let Some(InstData::Lanes { values }) = self.kernel.definition(self.uses.canonical(value)) {
            return Ok(Source::Vector(self.code.pool.vector(**values)));
        }
        Ok(Source::Reg(self.lanes(value)?))
    }

    /// A word of the pool, broadcast to all lanes.
    pub(super) fn pool_word(&mut self, bits: u32) -> AddressingMode {
        let disp = self.code.pool.word(bits).disp();
        AddressingMode { base: Base::Pool, index: None, scale: 1, disp, broadcast: true }
    }

    pub(super) fn pool_vector(constant: PooledConstant) -> AddressingMode {
        AddressingMode { base: Base::Pool, index: None, scale: 1, disp: constant.disp(), broadcast: false }
    }

    /// Adds the operand, then an immediate if there is one, and emits the instruction.
    pub(super) fn push_with(&mut self, build: Build, source: Source, immediate: Option<u8>) {
        let end = |build: Build| match immediate {
            Some(immediate) => build.imm8(immediate),
            None => build,
        };
        match source {
            Source::Reg(reg) => end(build.reads(reg, View::Zmm)).push(&mut self.code),
            Source::Word(bits) => {
                let memory = self.pool_word(bits);
                end(build.memory(memory)).push(&mut self.code);
            }
            Source::Vector(constant) => end(build.memory(Self::pool_vector(constant))).push(&mut self.code),
            Source::Load(checked) => self.push_checked(end(build.at(&checked.place)), &checked),
        }
    }

    /// Sets all lanes of a register to a constant.
    pub(in super::super) fn set_lanes(&mut self, reg: VReg, bits: u32) {
        if bits == 0 {
            // The short form zeroes the whole register.
            let build = Build::new(Code::EVEX_Vpxord_xmm_k1z_xmm_xmmm128b32).def(reg, View::Xmm).again(0).again(0);
            build.push(&mut self.code);
            return;
        }
        let memory = AddressingMode { broadcast: false, ..self.pool_word(bits) };
        Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32).def(reg, View::Zmm).memory(memory).push(&mut self.code);
    }

    /// Materializes a constant for each lane in a new register.
    pub(in super::super) fn constant_lanes(&mut self, values: [u32; 16]) -> VReg {
        let reg = self.lanes_reg();
        self.load_constant_lanes(reg, values);
        reg
    }

    pub(super) fn load_constant_lanes(&mut self, reg: VReg, values: [u32; 16]) {
        let memory = Self::pool_vector(self.code.pool.vector(values));
        Build::new(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512).def(reg, View::Zmm).memory(memory).push(&mut self.code);
    }
}
