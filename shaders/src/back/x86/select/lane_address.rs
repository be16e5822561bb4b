//! An address for each lane, in the form that gathers take.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::vcode::{Build, View};
use super::{Result, Select, VectorIsa};
use crate::simd::LaneAddress;

/// An address for each lane, in registers.
pub(super) struct LaneAddressRegisters<V: VectorIsa> {
    pub base: VReg,
    pub index: V::Registers,
    pub scale: u8,
    pub disp: i32,
}

impl<V: VectorIsa> Select<'_, V> {
    /// Gathers have a signed index. In active lanes a scaled index is below 2³², so an index scaled by 2 or more is not
    /// negative. Another one is lowered by 2³¹, and the base is raised by as much.
    pub(super) fn lane_address(&mut self, lanes: &LaneAddress) -> Result<LaneAddressRegisters<V>> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = V::registers(self, lanes.index)?;
        if lanes.scale > 1 {
            return Ok(LaneAddressRegisters { base, index, scale: lanes.scale, disp });
        }
        let index = V::exclusive_or(self, index, 1 << 31);
        // Two displacements, as none of 2³¹ can be encoded.
        let [exact, half, whole] = std::array::from_fn(|_| self.general());
        for (from, to, disp) in [(base, exact, disp), (exact, half, 1 << 30), (half, whole, 1 << 30)] {
            Build::new(Code::Lea_r64_m).def(to, View::Qword).at(&Self::at(from, disp)).push(&mut self.code);
        }
        Ok(LaneAddressRegisters { base: whole, index, scale: 1, disp: 0 })
    }
}
