//! Comparisons of lanes: the result is a mask, optionally under another mask.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::ir::Op;
use crate::simd::{Inst, InstData, Type, Value};

/// A comparison by an instruction and a predicate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    code: Code,
    predicate: u8,
    args: [Value; 2],
}

impl Comparison {
    /// The comparison of an operation on lanes.
    pub(super) fn of(op: Op, args: &[Value]) -> Option<Self> {
        let (code, predicate) = comparison(op)?;
        let last = args.get(1).unwrap_or(&args[0]);
        Some(Self { code, predicate, args: [args[0], *last] })
    }

    /// The negated comparison: predicates come in such pairs.
    pub(super) fn negated(self) -> Self {
        Self { predicate: self.predicate ^ 4, ..self }
    }

    /// The comparison with its operands exchanged: only the last one may be in memory.
    fn exchanged(self) -> Self {
        let [a, b] = self.args;
        let is_float = matches!(self.code, Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae);
        let predicate = match (is_float, self.predicate) {
            // Less and greater, ordered or not: float predicates have their own names.
            (true, 0x11) => 0x1e,
            (true, 0x12) => 0x1d,
            (true, 0x19) => 0x16,
            (true, 0x1a) => 0x15,
            (true, 0x15) => 0x1a,
            (true, 0x16) => 0x19,
            (true, 0x1d) => 0x12,
            (true, 0x1e) => 0x11,
            (false, 1) => 6,
            (false, 2) => 5,
            (false, 5) => 2,
            (false, 6) => 1,
            // Equal or not.
            (_, symmetric) => symmetric,
        };
        Self { predicate, args: [b, a], ..self }
    }
}

impl Select<'_, Avx512> {
    /// Merges a deferred comparison, or a deferred negation of one.
    pub(super) fn deferred_comparison(&mut self, mask: Value) -> Option<Comparison> {
        let (inst, data) = self.deferred_def(mask)?;
        let InstData::Pure { op, args } = data else { return None };
        let comparison = if *op == Op::LNot {
            self.deferred_comparison(args[0])?.negated()
        } else if self.kernel.ty(args[0]) == Type::V32 {
            Comparison::of(*op, args)?
        } else {
            return None;
        };
        self.deferred[inst] = 0;
        Some(comparison)
    }

    /// Emits a comparison, under the mask `among` if there is one.
    pub(super) fn compare_lanes(&mut self, inst: Inst, comparison: Comparison, among: Option<VReg>) -> Result {
        let [a, b] = comparison.args;
        let comparison = if self.is_memory(a) && !self.is_memory(b) { comparison.exchanged() } else { comparison };
        let Comparison { code, predicate, args: [a, b] } = comparison;
        let first = self.lanes(a)?;
        let second = if a == b { Source::Reg(first) } else { self.source(b)? };
        let result = self.define_lanes(inst);
        let mut build = Build::new(code).def(result, View::Mask).reads(first, View::Zmm);
        if let Some(among) = among {
            build = build.mask(among);
        }
        self.push_with(build, second, Some(predicate));
        Ok(())
    }
}

/// The instruction and its predicate.
fn comparison(op: Op) -> Option<(Code, u8)> {
    const SIGNED: Code = Code::EVEX_Vpcmpd_kr_k1_zmm_zmmm512b32_imm8;
    const UNSIGNED: Code = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
    const FLOAT: Code = Code::EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae;
    Some(match op {
        Op::IEq => (SIGNED, 0),
        Op::INe => (SIGNED, 4),
        Op::ULt => (UNSIGNED, 1),
        Op::ULe => (UNSIGNED, 2),
        Op::SLt => (SIGNED, 1),
        Op::SLe => (SIGNED, 2),
        // Those that raise no exception on quiet NaN; Q and S forms compare the same.
        Op::FOrdEq => (FLOAT, 0x00),
        Op::FOrdNe => (FLOAT, 0x0c),
        Op::FOrdLt => (FLOAT, 0x11),
        Op::FOrdLe => (FLOAT, 0x12),
        Op::FUnordEq => (FLOAT, 0x08),
        Op::FUnordNe => (FLOAT, 0x04),
        Op::FUnordLt => (FLOAT, 0x19),
        Op::FUnordLe => (FLOAT, 0x1a),
        // Unordered with itself.
        Op::IsNan => (FLOAT, 0x03),
        _ => return None,
    })
}
