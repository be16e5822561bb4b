//! Instrumented kernels that check the results of the range analysis, on which the removal of bounds checks depends.

use spelter_shaders::analysis::{Range, Ranges};
use spelter_shaders::ir::{
    Access, Binding, BindingKind, Block, BufferSpace, Inst, InstData, Kernel, Op, Place, Type, Value,
};

/// Stored by a kernel if the analysis was wrong about a value.
const WRONG: u32 = 0xbad0_bad0;

/// The kernel, with a test of every `i32` operand against its range at the use: if one is wrong, the first word of the
/// first storage buffer becomes `0xbad0bad0`. A kernel that writes no buffer is unchanged.
pub fn held(kernel: &Kernel) -> Kernel {
    let mut kernel = kernel.clone();
    let writable = |binding: &Binding| {
        kernel.bindings[*binding].kind == BindingKind::StorageBuffer && kernel.bindings[*binding].count > 0
    };
    let Some(binding) = kernel.bindings.keys().find(writable) else { return kernel };
    let ranges = Ranges::new(&kernel);
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        let old = std::mem::take(&mut kernel.blocks[block].insts);
        let mut writer = Writer { kernel: &mut kernel, insts: Vec::with_capacity(2 * old.len()) };
        for inst in old {
            let mut used = Vec::new();
            writer.kernel.insts[inst].for_each_use(|value| used.push(value));
            let wrong = used.into_iter().filter_map(|value| writer.is_wrong(&ranges, block, value)).collect();
            writer.store_if_any(binding, wrong);
            writer.insts.push(inst);
        }
        kernel.blocks[block].insts = writer.insts;
    }
    kernel
}

/// Appends instructions to a block that is being rewritten.
struct Writer<'k> {
    kernel: &'k mut Kernel,
    insts: Vec<Inst>,
}

impl Writer<'_> {
    fn push(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.kernel.insts.push(data);
        let value = self.kernel.define(inst, ty);
        self.insts.push(inst);
        value
    }

    fn constant(&mut self, bits: u32) -> Value {
        self.push(InstData::Const { ty: Type::I32, bits: u64::from(bits) }, Type::I32)
    }

    fn pure(&mut self, op: Op, args: &[Value]) -> Value {
        self.push(InstData::Pure { op, args: args.into() }, op.result())
    }

    /// Whether the value is outside of its range, as a `bool`; `None` if the range is unbounded.
    fn is_wrong(&mut self, ranges: &Ranges, block: Block, value: Value) -> Option<Value> {
        if self.kernel.ty(value) != Type::I32 || self.kernel.constant(value).is_some() {
            return None;
        }
        let range = ranges.at(block, value);
        if range == Range::ANY {
            return None;
        }
        let low = self.constant(range.low);
        let above = self.pure(Op::ISub, &[value, low]);
        let most = self.constant(range.high.wrapping_sub(range.low));
        let outside = self.pure(Op::ULt, &[most, above]);
        let multiple = 1u32.checked_shl(range.zeros.into()).unwrap_or(0);
        let bits = self.constant(multiple.wrapping_sub(1));
        let rest = self.pure(Op::And, &[value, bits]);
        let none = self.constant(0);
        let odd = self.pure(Op::INe, &[rest, none]);
        Some(self.pure(Op::LOr, &[outside, odd]))
    }

    /// Stores to the buffer's first word if one of these is true, otherwise beyond its end.
    fn store_if_any(&mut self, binding: Binding, wrong: Vec<Value>) {
        let Some(any) = wrong.into_iter().reduce(|a, b| self.pure(Op::LOr, &[a, b])) else { return };
        let zero = self.constant(0);
        let beyond = self.constant(u32::MAX - 3);
        let offset = self.push(InstData::Select { condition: any, then: zero, otherwise: beyond }, Type::I32);
        let buffer = self.push(InstData::Buffer { binding, index: zero }, Type::Buffer);
        let value = self.constant(WRONG);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
        let store = self.kernel.insts.push(InstData::Store {
            width: Default::default(),
            place,
            value,
            access: Access::default(),
        });
        self.insts.push(store);
    }
}
