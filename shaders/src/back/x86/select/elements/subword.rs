//! Strided sub-word elements (bytes or halves, stride up to 8 bytes). Each load is 16 bytes (a block) and covers the
//! elements of four lanes (stride up to 4), or of two; one byte shuffle then puts each component in its lanes. Nothing
//! past the last element is read, and nothing between elements is written.

use iced_x86::{Code, Instruction, Register};
use regalloc2::{Operand, VReg};
use smallvec::SmallVec;

use super::{GroupAddress, OperandSlots, Origins, StoreOperands, VectorSlots};
use crate::back::x86::Isa;
use crate::back::x86::encode::{Assembler, Regs};
use crate::back::x86::pool::PooledConstant;
use crate::back::x86::select::{Result, Select, VectorIsa};
use crate::back::x86::vcode::{Expand, InstKind};
use crate::simd::{Elements, LANES};

/// Bytes of a block.
const BLOCK: u32 = 16;

/// The `pshufb` index that yields 0.
const ZERO_BYTE: u8 = 0x80;

/// Lanes of a group.
const GROUP: u32 = 4;

/// The layout of elements: the sizes of a component and of an element, and the stride, in bytes.
#[derive(Clone, Copy, Debug)]
struct ComponentLayout {
    component_bytes: u32,
    bytes: u32,
    stride: u32,
    /// Whether elements are contiguous in memory.
    dense: bool,
}

impl ComponentLayout {
    fn new(elements: &Elements) -> Self {
        let (component_bytes, dense) = (elements.width.bytes(), elements.are_dense());
        Self {
            component_bytes,
            bytes: elements.limits.len() as u32 * component_bytes,
            stride: elements.stride(),
            dense,
        }
    }

    /// The layout in registers while elements are stored: elements that are not contiguous begin at multiples of 4.
    fn to_store(self) -> Self {
        let stride = if self.bytes <= 4 { 4 } else { 8 };
        if self.dense { self } else { Self { stride, ..self } }
    }

    /// Blocks per group.
    fn blocks(self) -> u32 {
        if self.stride <= 4 { 1 } else { 2 }
    }

    /// The lanes of a group whose elements are in a block.
    fn lanes(self, block: u32) -> std::ops::Range<u32> {
        let lanes = GROUP / self.blocks();
        block * lanes..(block + 1) * lanes
    }

    /// Byte offset of a block from the first element; clamped so that the last blocks end with the last element.
    fn start(self, group: u32, block: u32) -> u32 {
        let first = (GROUP * group + self.lanes(block).start) * self.stride;
        first.min((LANES - 1) * self.stride + self.bytes - BLOCK)
    }

    /// The byte shuffle that moves component `number` from a block to its lanes.
    fn load_order(self, number: u32, block: u32) -> [u32; 16] {
        std::array::from_fn(|lane| {
            let (group, within) = (lane as u32 / GROUP, lane as u32 % GROUP);
            let mut bytes = [ZERO_BYTE; 4];
            if self.lanes(block).contains(&within) {
                let first = lane as u32 * self.stride + number * self.component_bytes - self.start(group, block);
                (0..self.component_bytes).for_each(|byte| bytes[byte as usize] = (first + byte) as u8);
            }
            u32::from_le_bytes(bytes)
        })
    }

    /// The byte shuffle that moves component `number` from its lanes to its position in a block.
    fn store_order(self, number: u32, block: u32) -> [u32; 16] {
        let mut bytes = [ZERO_BYTE; BLOCK as usize];
        for (position, lane) in self.lanes(block).enumerate() {
            let at = position * self.stride as usize + (number * self.component_bytes) as usize;
            (0..self.component_bytes).for_each(|byte| bytes[at + byte as usize] = (4 * lane + byte) as u8);
        }
        std::array::from_fn(|word| {
            let at = word % 4 * 4;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        })
    }
}

impl<V: VectorIsa> Select<'_, V> {
    /// Loads sub-word elements into the registers of their components.
    pub(in crate::back::x86::select) fn load_subword_elements(
        &mut self,
        elements: &Elements,
        results: &[VReg],
    ) -> Result {
        let mut operands: OperandSlots = results.iter().map(|&result| Operand::reg_def_at_start(result)).collect();
        let address = self.group_address(elements, &mut operands)?;
        let vectors = self.vectors::<3>(&mut operands);
        let layout = ComponentLayout::new(elements);
        let orders = self.orders(elements, layout.blocks(), |number, block| layout.load_order(number, block));
        self.code.push(
            InstKind::Sequence(Box::new(LoadComponents { isa: V::ISA, address, layout, vectors, orders })),
            &operands,
        );
        Ok(())
    }

    /// Stores the registers of components as sub-word elements.
    pub(in crate::back::x86::select) fn store_subword_elements(
        &mut self,
        elements: &Elements,
        values: &[VReg],
        bits: Option<VReg>,
    ) -> Result {
        let StoreOperands { mut operands, bits, address } = self.store_operands(elements, values, bits)?;
        let vectors = self.vectors::<4>(&mut operands);
        let layout = ComponentLayout::new(elements).to_store();
        let orders = self.orders(elements, layout.blocks(), |number, block| layout.store_order(number, block));
        let store = StoreComponents { isa: V::ISA, address, layout, vectors, orders, bits };
        self.code.push(InstKind::Sequence(Box::new(store)), &operands);
        Ok(())
    }

    /// The shuffles of each component in each block.
    fn orders(
        &mut self,
        elements: &Elements,
        blocks: u32,
        order: impl Fn(u32, u32) -> [u32; 16],
    ) -> SmallVec<[PooledConstant; 8]> {
        let components = 0..elements.limits.len() as u32;
        let places = components.flat_map(|number| (0..blocks).map(move |block| (number, block)));
        places.map(|(number, block)| self.code.pool.vector(order(number, block))).collect()
    }
}

fn shuffle(isa: Isa) -> Code {
    match isa {
        Isa::Avx512 => Code::EVEX_Vpshufb_zmm_k1z_zmm_zmmm512,
        Isa::Avx2 => Code::VEX_Vpshufb_ymm_ymm_ymmm256,
    }
}

fn or(isa: Isa) -> Code {
    match isa {
        Isa::Avx512 => Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
        Isa::Avx2 => Code::VEX_Vpor_ymm_ymm_ymmm256,
    }
}

/// A load as one pseudo-instruction: it defines its first operands, one vector per component.
#[derive(Debug)]
struct LoadComponents {
    isa: Isa,
    address: GroupAddress,
    layout: ComponentLayout,
    /// The first of three temporary vector registers: the two blocks, and the shuffled second block.
    vectors: u8,
    orders: SmallVec<[PooledConstant; 8]>,
}

impl Expand for LoadComponents {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let words = VectorSlots { isa: self.isa, first: 0 };
        let codes = self.isa.codes();
        let temp = |number| regs.view(self.vectors + number, self.isa.view());
        self.address.check(regs, asm, Assembler::cold);
        let mut origins = Origins::default();
        let blocks = self.layout.blocks();
        for half in 0..words.halves() {
            for block in 0..blocks as u8 {
                for lane128 in 0..words.lanes128() {
                    let group = u32::from(half * words.lanes128() + lane128);
                    let bytes = self.layout.start(group, block.into()).cast_signed();
                    let memory = self.address.lane_at(regs, asm, &mut origins, 0, bytes);
                    asm.put(match lane128 {
                        0 => Instruction::with2(codes.load, regs.xmm(self.vectors + block), memory),
                        _ => Instruction::with4(codes.insert, temp(block), temp(block), memory, i32::from(lane128)),
                    });
                }
            }
            for number in 0..self.address.count() {
                let to = words.reg(regs, number, half);
                let order = usize::from(number) * blocks as usize;
                let first = asm.constant(self.orders[order].half(half), false);
                asm.put(Instruction::with3(shuffle(self.isa), to, temp(0), first));
                if blocks == 2 {
                    let second = asm.constant(self.orders[order + 1].half(half), false);
                    asm.put(Instruction::with3(shuffle(self.isa), temp(2), temp(1), second));
                    asm.put(Instruction::with3(or(self.isa), to, to, temp(2)));
                }
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.load_lanes(regs, asm, VectorSlots { isa: self.isa, first: 0 });
    }
}

/// A store as one pseudo-instruction: it stores its first operands, for all lanes or those whose bit is set.
#[derive(Debug)]
struct StoreComponents {
    isa: Isa,
    address: GroupAddress,
    /// The layout in registers.
    layout: ComponentLayout,
    /// The first of four temporary vector registers: the two blocks, a component, a 128-bit lane.
    vectors: u8,
    orders: SmallVec<[PooledConstant; 8]>,
    bits: Option<u8>,
}

impl StoreComponents {
    /// Combines the components of a block's lanes.
    fn combine_components(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, half: u8, block: u32) {
        let words = VectorSlots { isa: self.isa, first: 0 };
        let to = regs.view(self.vectors + block as u8, self.isa.view());
        let component = regs.view(self.vectors + 2, self.isa.view());
        for number in 0..self.address.count() {
            let order = u32::from(number) * self.layout.blocks() + block;
            let order = asm.constant(self.orders[order as usize].half(half), false);
            let from = words.reg(regs, number, half);
            let shuffled = if number == 0 { to } else { component };
            asm.put(Instruction::with3(shuffle(self.isa), shuffled, from, order));
            if number > 0 {
                asm.put(Instruction::with3(or(self.isa), to, to, component));
            }
        }
    }

    /// A 128-bit lane of a block's register: in place if it is the lowest, else extracted into temporary 3.
    fn lane128(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, block: u32, lane128: u8) -> Register {
        let words = VectorSlots { isa: self.isa, first: 0 };
        words.lane128(regs, asm, self.vectors + block as u8, lane128, self.vectors + 3)
    }

    /// Stores a block of contiguous elements. A block of 12 bytes other than the last stores 16 bytes: the next block,
    /// stored later, overwrites the excess.
    fn store_contiguous(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        origins: &mut Origins,
        from: Register,
        first: u32,
    ) {
        let codes = self.isa.codes();
        let bytes = GROUP / self.layout.blocks() * self.layout.stride;
        let last = first * self.layout.stride + bytes == LANES * self.layout.stride;
        let at = (first * self.layout.stride).cast_signed();
        let memory = self.address.lane_at(regs, asm, origins, 0, at);
        if bytes > 8 && (bytes == BLOCK || !last) {
            return asm.put(Instruction::with2(codes.store, memory, from));
        }
        asm.put(Instruction::with2(codes.store_low, memory, from));
        if bytes > 8 {
            let memory = self.address.lane_at(regs, asm, origins, 0, at + 8);
            asm.put(Instruction::with3(codes.store_word, memory, from, 2));
        }
    }

    /// Stores one element of a block with gaps, in steps of 4, 2 and 1 bytes; `place` is its position in the block.
    fn store_strided(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        origins: &mut Origins,
        from: Register,
        lane: u32,
        place: u32,
    ) {
        let [by_twos, by_ones] = match self.isa {
            Isa::Avx512 => [Code::EVEX_Vpextrw_r32m16_xmm_imm8, Code::EVEX_Vpextrb_r32m8_xmm_imm8],
            Isa::Avx2 => [Code::VEX_Vpextrw_r32m16_xmm_imm8, Code::VEX_Vpextrb_r32m8_xmm_imm8],
        };
        let mut at = 0;
        while at < self.layout.bytes {
            let (code, size) = match self.layout.bytes - at {
                1 => (by_ones, 1),
                2 | 3 => (by_twos, 2),
                _ => (self.isa.codes().store_word, 4),
            };
            let memory = self.address.lane_at(regs, asm, origins, lane as u8, at.cast_signed());
            let number = (place * self.layout.stride + at) / size;
            asm.put(Instruction::with3(code, memory, from, number.cast_signed()));
            at += size;
        }
    }
}

impl Expand for StoreComponents {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.check_store(regs, asm, self.bits);
        let words = VectorSlots { isa: self.isa, first: 0 };
        let mut origins = Origins::default();
        for half in 0..words.halves() {
            (0..self.layout.blocks()).for_each(|block| self.combine_components(regs, asm, half, block));
            for lane128 in 0..words.lanes128() {
                let group = u32::from(half * words.lanes128() + lane128);
                for block in 0..self.layout.blocks() {
                    let from = self.lane128(regs, asm, block, lane128);
                    let lanes = self.layout.lanes(block);
                    if self.layout.dense {
                        self.store_contiguous(regs, asm, &mut origins, from, GROUP * group + lanes.start);
                        continue;
                    }
                    for (position, lane) in (0..).zip(lanes) {
                        self.store_strided(regs, asm, &mut origins, from, GROUP * group + lane, position);
                    }
                }
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.store_lanes(regs, asm, VectorSlots { isa: self.isa, first: 0 }, self.bits);
    }
}
