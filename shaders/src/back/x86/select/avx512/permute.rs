//! Shuffles: constant ones, which are often faster than a permutation, and permutations by a vector.

use iced_x86::Code;

use super::super::super::vcode::{Build, View};
use super::super::moves::{of_lanes128, within_lanes128};
use super::super::{Result, Select};
use super::Avx512;
use crate::simd::{Inst, Value};

impl Select<'_, Avx512> {
    pub(super) fn pick(&mut self, inst: Inst, first: Value, second: Value, words: &[u8; 16]) -> Result {
        if let Some(amount) = shift(words) {
            let [low, high] = self.both(&[second, first])?;
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8).def(result, View::Zmm);
            build.reads(high, View::Zmm).reads(low, View::Zmm).imm8(amount).push(&mut self.code);
            return Ok(());
        }
        if words.iter().all(|&word| word < 16) {
            return self.pick_of_one(inst, first, words);
        }
        let [a, b] = self.both(&[first, second])?;
        let index = self.pick_index(words);
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32).modify(result, index, View::Zmm);
        build.reads(a, View::Zmm).reads(b, View::Zmm).push(&mut self.code);
        Ok(())
    }

    fn pick_of_one(&mut self, inst: Inst, vector: Value, words: &[u8; 16]) -> Result {
        let vector = self.lanes(vector)?;
        if let Some(order) = within_lanes128(words) {
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8).def(result, View::Zmm);
            build.reads(vector, View::Zmm).imm8(order).push(&mut self.code);
        } else if let Some(order) = of_lanes128(words) {
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vshufi32x4_zmm_k1z_zmm_zmmm512b32_imm8).def(result, View::Zmm);
            build.reads(vector, View::Zmm).reads(vector, View::Zmm).imm8(order).push(&mut self.code);
        } else {
            let index = self.pick_index(words);
            let result = self.define_lanes(inst);
            self.lanes3(Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, result, index, vector);
        }
        Ok(())
    }

    fn pick_index(&mut self, words: &[u8; 16]) -> regalloc2::VReg {
        let index = self.lanes_reg();
        let constant = self.code.pool.vector(words.map(u32::from));
        let build = Build::new(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512).def(index, View::Zmm);
        build.memory(Self::pool_vector(constant)).push(&mut self.code);
        index
    }

    pub(super) fn permute(&mut self, inst: Inst, vector: Value, lanes: Value) -> Result {
        let [vector, lanes] = self.both(&[vector, lanes])?;
        let result = self.define_lanes(inst);
        self.lanes3(Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, result, lanes, vector);
        Ok(())
    }
}

/// The number of words by which the concatenation of both vectors is shifted right.
fn shift(words: &[u8; 16]) -> Option<u8> {
    let amount = words[0].checked_sub(16).filter(|&amount| amount > 0)?;
    let fits = |lane: usize| {
        words[lane] == if lane as u8 + amount < 16 { lane as u8 + amount + 16 } else { lane as u8 + amount - 16 }
    };
    (0..16).all(fits).then_some(amount)
}
