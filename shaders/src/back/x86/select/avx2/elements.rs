//! Interleave groups, by 128-bit lanes.

use regalloc2::VReg;
use smallvec::SmallVec;

use super::super::{Result, Select};
use super::Avx2;
use crate::ir::Width;
use crate::simd::{Elements, Inst, Value};

impl Select<'_, Avx2> {
    pub(super) fn load_elements(&mut self, inst: Inst, elements: &Elements) -> Result {
        let mut results: SmallVec<[VReg; 8]> = SmallVec::new();
        for number in 0..elements.limits.len() {
            let result = [self.lanes_reg(), self.lanes_reg()];
            results.extend(result);
            self.bind_nth(inst, number, result);
        }
        match elements.width {
            Width::Word => self.load_by_lanes128(elements, &results),
            _ => self.load_subword_elements(elements, &results),
        }
    }

    pub(super) fn store_elements(&mut self, elements: &Elements, values: &[Value], mask: Value) -> Result {
        let mut stored: SmallVec<[VReg; 8]> = SmallVec::new();
        for &value in values {
            stored.extend(self.pair(value)?);
        }
        let bits = if self.is_all(mask) { None } else { Some(self.mask_bits(mask)?) };
        match elements.width {
            Width::Word => self.store_by_lanes128(elements, &stored, bits),
            _ => self.store_subword_elements(elements, &stored, bits),
        }
    }
}
