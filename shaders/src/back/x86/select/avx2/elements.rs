//! Elements of two to four words by neighbouring lanes: a gather for each word, or stores lane by lane.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::CompileError;
use super::super::super::atomic::Atomic;
use super::Halves;
use super::atomic::Place;
use super::gather::LanePlace;
use super::operand::{Pair, Source};
use crate::ir::AtomicOp;
use crate::simd::{Inst, Value};

const ADD: Code = Code::VEX_Vpaddd_ymm_ymm_ymmm256;

/// Where the words of elements are.
struct Elements {
    base: VReg,
    disp: i32,
    /// Numbers of the elements and of their first words.
    elements: Pair,
    words: Pair,
}

impl Halves<'_, '_> {
    fn elements(&mut self, base: Value, index: Value, count: usize) -> Result<Elements, CompileError> {
        let (base, disp) = self.base(base, 0)?;
        let first = self.splat(index)?;
        let iota = self.table(std::array::from_fn(|lane| lane as u32));
        let elements = self.op2(ADD, first, iota);
        let twice = self.op2(ADD, elements, elements);
        let words = match count {
            2 => twice,
            3 => self.op2(ADD, twice, elements),
            _ => self.op2(ADD, twice, twice),
        };
        Ok(Elements { base, disp, elements, words })
    }

    /// Lanes whose element is below the limit: those for which the greater of both is not their element. The limit less one is
    /// no number where it is 0.
    fn below_limit(&mut self, elements: Pair, limit: Value) -> Result<Pair, CompileError> {
        let limit = self.splat(limit)?;
        let greater = self.op2(Code::VEX_Vpmaxud_ymm_ymm_ymmm256, limit, elements);
        let beyond = self.op2(Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, greater, elements);
        let all: Source = self.word(u32::MAX);
        Ok(self.op2(Code::VEX_Vpxor_ymm_ymm_ymmm256, beyond, all))
    }

    pub(super) fn load_elements(
        &mut self,
        inst: Inst,
        base: Value,
        index: Value,
        limits: &[Value],
    ) -> Result<(), CompileError> {
        let Elements { base, disp, elements, words } = self.elements(base, index, limits.len())?;
        for (number, &limit) in limits.iter().enumerate() {
            let mask = self.below_limit(elements, limit)?;
            let place = LanePlace { base, index: words, scale: 4, disp: disp + 4 * number as i32 };
            let word = self.gathered(place, mask);
            self.bind_nth(inst, number, word);
        }
        Ok(())
    }

    pub(super) fn store_elements(
        &mut self,
        base: Value,
        index: Value,
        limits: &[Value],
        values: &[Value],
        mask: Value,
    ) -> Result<(), CompileError> {
        let among = if self.is_all(mask) { None } else { Some(self.pair(mask)?) };
        let Elements { base, disp, elements, words } = self.elements(base, index, limits.len())?;
        let atomic = Atomic { op: AtomicOp::Store, lock: false, sequential: false, result: false };
        for (number, (&limit, &value)) in limits.iter().zip(values).enumerate() {
            let mut mask = self.below_limit(elements, limit)?;
            if let Some(among) = among {
                mask = self.lanes_and(mask, among);
            }
            let bits = self.lane_bits(mask);
            let place = Place { base, index: words, scale: 4, disp: disp + 4 * number as i32 };
            self.lanes_at(atomic, place, [Some(value), None], bits)?;
        }
        Ok(())
    }
}
