//! The registers assigned to an instruction's slots.

use iced_x86::Register;
use regalloc2::{Allocation, PReg, RegClass};

use super::super::vcode::View;

/// The registers of one instruction, indexed by slot.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Regs<'a>(pub(super) &'a [Allocation]);

impl Regs<'_> {
    fn number(self, slot: u8) -> u32 {
        // All operands require registers, so none is on the stack.
        self.0[slot as usize].as_reg().map_or(0, |reg| reg.hw_enc() as u32)
    }

    pub(in super::super) fn view(self, slot: u8, view: View) -> Register {
        match view {
            View::Byte => low_byte(self.number(slot)),
            View::Dword => self.gpr32(slot),
            View::Qword => self.gpr(slot),
            View::Xmm => self.xmm(slot),
            View::Ymm => self.ymm(slot),
            View::Zmm => self.zmm(slot),
            View::Mask => self.mask(slot),
        }
    }

    pub(in super::super) fn gpr(self, slot: u8) -> Register {
        Register::RAX + self.number(slot)
    }

    pub(in super::super) fn gpr32(self, slot: u8) -> Register {
        Register::EAX + self.number(slot)
    }

    pub(in super::super) fn gpr16(self, slot: u8) -> Register {
        Register::AX + self.number(slot)
    }

    pub(in super::super) fn xmm(self, slot: u8) -> Register {
        Register::XMM0 + self.number(slot)
    }

    pub(in super::super) fn ymm(self, slot: u8) -> Register {
        Register::YMM0 + self.number(slot)
    }

    pub(in super::super) fn zmm(self, slot: u8) -> Register {
        Register::ZMM0 + self.number(slot)
    }

    pub(in super::super) fn mask(self, slot: u8) -> Register {
        Register::K0 + self.number(slot)
    }
}

/// The low byte of general register `number`, as named with a REX prefix.
fn low_byte(number: u32) -> Register {
    const LOW: [Register; 8] = [
        Register::AL,
        Register::CL,
        Register::DL,
        Register::BL,
        Register::SPL,
        Register::BPL,
        Register::SIL,
        Register::DIL,
    ];
    LOW.get(number as usize).copied().unwrap_or(Register::R8L + number.saturating_sub(8))
}

/// A register in its full width.
pub(super) fn full(reg: PReg, vector: Register) -> Register {
    let number = reg.hw_enc() as u32;
    match reg.class() {
        RegClass::Int => Register::RAX + number,
        RegClass::Float => vector + number,
        RegClass::Vector => Register::K0 + number,
    }
}
