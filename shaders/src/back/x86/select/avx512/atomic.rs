//! Atomics on contiguous words that no other thread accesses: a masked load, an operation and a masked store.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::super::vcode::{Build, Place, View};
use super::super::{Result, Select};
use super::Avx512;
use crate::simd::{Inst, Value};

impl Select<'_, Avx512> {
    pub(super) fn update_row(
        &mut self,
        inst: Option<Inst>,
        place: &Place,
        value: VReg,
        mask: Value,
        operation: Option<Code>,
    ) -> Result {
        let mask = self.lanes(mask)?;
        let old = match inst {
            Some(inst) => self.define_lanes(inst),
            None => self.lanes_reg(),
        };
        let load = Build::new(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512).def(old, View::Zmm);
        load.at(place).mask(mask).zeroing().push(&mut self.code);
        let mut new = value;
        if let Some(operation) = operation {
            new = self.lanes_reg();
            self.lanes3(operation, new, old, value);
        }
        let store = Build::new(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm).at(place).reads(new, View::Zmm);
        store.mask(mask).push(&mut self.code);
        Ok(())
    }
}
