//! Shuffles: constant ones, which are often faster than a permutation, and permutations by a vector.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{Build, View};
use super::super::moves::order;
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::simd::Value;

impl Select<'_, Avx2> {
    /// Words of two vectors: each of their four halves is shuffled, and its lanes are blended into the result.
    pub(super) fn pick(&mut self, first: Value, second: Value, words: &[u8; 16]) -> Result<RegisterPair> {
        let ([a, b], [c, d]) = (self.pair(first)?, self.pair(second)?);
        let same = [first, second].map(|vector| self.constant(vector).is_some());
        let mut indices = None;
        Ok(std::array::from_fn(|half| {
            let own = &words[8 * half..8 * half + 8];
            let mut found = None;
            for (number, source) in (0..).zip([a, b, c, d]) {
                let lanes: u8 = (0..8).filter(|&lane| own[lane] / 8 == number).map(|lane| 1 << lane).sum();
                if lanes == 0 {
                    continue;
                }
                let moved = if same[usize::from(number / 2)] {
                    source
                } else {
                    self.moved_words(source, own, lanes).unwrap_or_else(|| {
                        let indices =
                            *indices.get_or_insert_with(|| self.load_lanes(words.map(|word| u32::from(word % 8))));
                        self.permuted(source, indices[half])
                    })
                };
                found = Some(match found {
                    None => moved,
                    Some(before) => {
                        let both = self.lanes_reg();
                        let build = Build::new(Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8).def(both, View::Ymm);
                        let build = build.reads(before, View::Ymm).reads(moved, View::Ymm);
                        build.imm8(lanes).push(&mut self.code);
                        both
                    }
                });
            }
            found.unwrap_or(a)
        }))
    }

    /// The words of a half in the lanes given, if that takes no permutation by a vector.
    fn moved_words(&mut self, source: VReg, words: &[u8], lanes: u8) -> Option<VReg> {
        let all = |fits: &dyn Fn(u8, u8) -> bool| {
            (0..8).filter(|lane| lanes >> lane & 1 != 0).all(|lane| fits(lane, words[usize::from(lane)] % 8))
        };
        if all(&|lane, word| lane == word) {
            return Some(source);
        }
        if all(&|lane, word| lane ^ 4 == word) {
            let moved = self.lanes_reg();
            let build = Build::new(Code::VEX_Vpermq_ymm_ymmm256_imm8).def(moved, View::Ymm);
            build.reads(source, View::Ymm).imm8(order([2, 3, 0, 1])).push(&mut self.code);
            return Some(moved);
        }
        // The same words in both 128-bit lanes, as far as they are used.
        let mut from = [None; 4];
        for lane in (0..8).filter(|lane| lanes >> lane & 1 != 0) {
            let word = words[usize::from(lane)] % 8;
            if word / 4 != lane / 4 || *from[usize::from(lane % 4)].get_or_insert(word % 4) != word % 4 {
                return None;
            }
        }
        let moved = self.lanes_reg();
        let build = Build::new(Code::VEX_Vpshufd_ymm_ymmm256_imm8).def(moved, View::Ymm);
        build.reads(source, View::Ymm).imm8(order(from.map(|word| word.unwrap_or(0)))).push(&mut self.code);
        Some(moved)
    }

    fn permuted(&mut self, source: VReg, index: VReg) -> VReg {
        let moved = self.lanes_reg();
        let build = Build::new(Code::VEX_Vpermd_ymm_ymm_ymmm256).def(moved, View::Ymm);
        build.reads(index, View::Ymm).reads(source, View::Ymm).push(&mut self.code);
        moved
    }

    /// Each lane names a lane, modulo 16, whose word it gets: one of two permuted halves is selected.
    pub(super) fn permute(&mut self, vector: Value, lanes: Value) -> Result<RegisterPair> {
        let (vector, lanes) = (self.pair(vector)?, self.pair(lanes)?);
        let [low, high] = vector.map(|half| lanes.map(|index| self.permuted(half, index)));
        let upper = self.shifted(Code::VEX_Vpslld_ymm_ymm_imm8, lanes, 28);
        Ok(self.blend(upper, high.into(), low))
    }
}
