//! Operands: pairs of registers, constants in the pool, and instructions on both halves.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::pool::PooledConstant;
use super::super::super::vcode::{AddressingMode, Base, Build, View};
use super::super::{Result, Select};
use super::Avx2;
use crate::simd::{InstData, Value};

/// Registers of lanes 0 to 7 and 8 to 15.
pub(super) type RegisterPair = [VReg; 2];

/// The last operand of an instruction, unless it is an address.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Regs(RegisterPair),
    /// 16 lanes in the pool, and whether all are the same.
    Pool(PooledConstant, bool),
}

impl From<RegisterPair> for Source {
    fn from(pair: RegisterPair) -> Self {
        Self::Regs(pair)
    }
}

impl Source {
    /// Whether both halves are the same.
    fn same(self) -> bool {
        match self {
            Self::Regs([low, high]) => low == high,
            Self::Pool(_, same) => same,
        }
    }

    /// Adds one half's operand to an instruction.
    fn add(self, build: Build, half: usize) -> Build {
        match self {
            Self::Regs(pair) => build.reads(pair[half], View::Ymm),
            Self::Pool(constant, _) => {
                let disp = constant.disp() + 32 * half as i32;
                build.memory(AddressingMode { base: Base::Pool, index: None, scale: 1, disp, broadcast: false })
            }
        }
    }
}

/// How many instructions operations on these operands take.
fn halves(same: bool) -> usize {
    if same { 1 } else { 2 }
}

impl Select<'_, Avx2> {
    /// A value as the last operand of an instruction.
    pub(super) fn source(&mut self, value: Value) -> Result<Source> {
        if let Some(bits) = self.constant(value) {
            return Ok(self.word(bits as u32));
        }
        if let Some(InstData::Lanes { values }) = self.kernel.definition(self.uses.canonical(value)) {
            let values = **values;
            return Ok(self.table(values));
        }
        Ok(Source::Regs(self.pair(value)?))
    }

    /// A constant, the same in each lane.
    pub(super) fn word(&mut self, bits: u32) -> Source {
        Source::Pool(self.code.pool.vector([bits; 16]), true)
    }

    /// A constant for each lane.
    pub(super) fn table(&mut self, lanes: [u32; 16]) -> Source {
        Source::Pool(self.code.pool.vector(lanes), false)
    }

    fn results(&mut self, same: bool) -> RegisterPair {
        let low = self.lanes_reg();
        if same { [low, low] } else { [low, self.lanes_reg()] }
    }

    /// An instruction on both halves: its result first, then registers, a last operand, an immediate.
    pub(super) fn op(
        &mut self,
        code: Code,
        regs: &[RegisterPair],
        last: Source,
        immediate: Option<u8>,
    ) -> RegisterPair {
        let same = last.same() && regs.iter().all(|[low, high]| low == high);
        let results = self.results(same);
        for half in 0..halves(same) {
            let mut build = Build::new(code).def(results[half], View::Ymm);
            for pair in regs {
                build = build.reads(pair[half], View::Ymm);
            }
            build = last.add(build, half);
            if let Some(immediate) = immediate {
                build = build.imm8(immediate);
            }
            build.push(&mut self.code);
        }
        results
    }

    /// An instruction of two operands.
    pub(super) fn op2(&mut self, code: Code, a: RegisterPair, b: impl Into<Source>) -> RegisterPair {
        self.op(code, &[a], b.into(), None)
    }

    /// An instruction of one operand.
    pub(super) fn op1(&mut self, code: Code, a: impl Into<Source>) -> RegisterPair {
        self.op(code, &[], a.into(), None)
    }

    /// An instruction whose result reuses the register of its first operand.
    pub(super) fn modify_lanes(
        &mut self,
        code: Code,
        tied: RegisterPair,
        second: RegisterPair,
        last: Source,
    ) -> RegisterPair {
        let same = last.same() && tied[0] == tied[1] && second[0] == second[1];
        let results = self.results(same);
        for half in 0..halves(same) {
            let build = Build::new(code).modify(results[half], tied[half], View::Ymm).reads(second[half], View::Ymm);
            last.add(build, half).push(&mut self.code);
        }
        results
    }

    /// `then` in active lanes, else `otherwise`.
    pub(super) fn blend(&mut self, mask: RegisterPair, then: Source, otherwise: RegisterPair) -> RegisterPair {
        let same = then.same() && mask[0] == mask[1] && otherwise[0] == otherwise[1];
        let results = self.results(same);
        for half in 0..halves(same) {
            let build = Build::new(Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm).def(results[half], View::Ymm);
            let build = then.add(build.reads(otherwise[half], View::Ymm), half);
            build.reads(mask[half], View::Ymm).push(&mut self.code);
        }
        results
    }

    /// A constant in each lane of registers.
    pub(super) fn fill(&mut self, bits: u32) -> RegisterPair {
        let reg = self.lanes_reg();
        let own = |code| Build::new(code).def(reg, View::Ymm).again(0).again(0);
        let build = match bits {
            0 => own(Code::VEX_Vpxor_ymm_ymm_ymmm256),
            u32::MAX => own(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256),
            _ => {
                let disp = self.code.pool.word(bits).disp();
                let memory = AddressingMode { base: Base::Pool, index: None, scale: 1, disp, broadcast: false };
                Build::new(Code::VEX_Vbroadcastss_ymm_m32).def(reg, View::Ymm).memory(memory)
            }
        };
        build.push(&mut self.code);
        [reg, reg]
    }

    /// A constant for each lane in registers.
    pub(super) fn load_lanes(&mut self, lanes: [u32; 16]) -> RegisterPair {
        let table = self.table(lanes);
        self.op1(Code::VEX_Vmovaps_ymm_ymmm256, table)
    }

    /// Whether a value can be an operand in memory.
    pub(super) fn is_memory(&self, value: Value) -> bool {
        self.constant(value).is_some()
    }
}
