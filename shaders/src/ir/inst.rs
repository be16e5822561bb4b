//! Instructions of the scalar IR, other than the pure operations of the op table.

use smallvec::SmallVec;

use super::{Access, AtomicOp, Binding, Block, Op, Place, Scope, Semantics, Site, SubgroupOp, Type, Value, Width};
use crate::image;

/// One instruction. It has at most one result, whose type follows from the data and from the operands' types.
#[derive(Clone, Debug, PartialEq)]
pub enum InstData {
    /// A constant: `const.i32 7`.
    Const {
        /// Type of the result.
        ty: Type,
        /// Its bits, as [`ScalarValue::to_bits`](super::ScalarValue::to_bits) gives them.
        bits: u64,
    },
    /// `iadd v1, v2`: an operation of the table, without memory access or side effect.
    Pure {
        /// The operation.
        op: Op,
        /// The operands of its signature.
        args: SmallVec<[Value; 4]>,
    },
    /// `select.i32 v0, v1, v2`: `v1` if the bool `v0` is true, else `v2`. Works on any type, `buffer` included.
    Select {
        /// The bool.
        condition: Value,
        /// Result if true.
        then: Value,
        /// Result if false.
        otherwise: Value,
    },
    /// A built-in of the invocation, as `i32`: `builtin global_invocation_id.0`.
    BuiltIn {
        /// The built-in.
        builtin: BuiltIn,
        /// Component 0 to 2; 0 for scalars.
        component: u8,
    },
    /// `element v0, v1 * 16`: `base + index * stride`, unsigned, clamped to `u32::MAX`, so that an out-of-range index
    /// never wraps around into the buffer.
    Element {
        /// Byte offset of the array, `i32`.
        base: Value,
        /// Index of the element, `i32`.
        index: Value,
        /// Array stride in bytes.
        stride: u32,
    },
    /// `buffer binding0[v1]`: the buffer of a descriptor; empty if the index is out of the array's range.
    Buffer {
        /// The binding.
        binding: Binding,
        /// Element of the binding's array, `i32`.
        index: Value,
    },
    /// `buffer_size v0`: the buffer's length in bytes as `i32`, clamped to `u32::MAX`.
    BufferSize {
        /// The range.
        buffer: Value,
    },
    /// `buffer_number v0`: a buffer as an `i32` that can be stored in memory; 0 is the empty buffer.
    BufferNumber {
        /// The range.
        buffer: Value,
    },
    /// `buffer_of v0`: the buffer with this number; the empty buffer for other numbers.
    BufferOf {
        /// A result of [`InstData::BufferNumber`].
        number: Value,
    },
    /// `buffer_at v0, v1`: the address range of device memory that contains an address (low word, high word), as a
    /// buffer; the empty buffer if none does.
    BufferAt {
        /// Bits 0 to 31 of the address.
        low: Value,
        /// Bits 32 to 63.
        high: Value,
    },
    /// `buffer_near v0, v1`: as [`InstData::BufferAt`], but the address may be that of any other active invocation of
    /// the subgroup: an access needs a check by [`InstData::Reaches`].
    BufferNear {
        /// Bits 0 to 31 of the address.
        low: Value,
        /// Bits 32 to 63.
        high: Value,
    },
    /// `buffer_offset v0, v1, v2`: offset in bytes of an address (low word, high word) from the start of a buffer,
    /// `u32::MAX` if that is more or negative; unspecified if the buffer is empty.
    BufferOffset {
        /// The range.
        buffer: Value,
        /// Bits 0 to 31 of the address.
        low: Value,
        /// Bits 32 to 63.
        high: Value,
    },
    /// `reaches v0 + v1`: a bool that is true only if an offset is less than a buffer's bytes. It may be false
    /// nevertheless, as where that is so for others of the subgroup that are here.
    Reaches {
        /// The range.
        buffer: Value,
        /// Bytes.
        offset: Value,
    },
    /// `image_field width v0`: a field of an image description as `i32`.
    ImageField {
        /// The image.
        image: Value,
        /// The field.
        field: image::Field,
    },
    /// `image.sample.2d.float.lod.0 v0, v1, v2, v3, v4`: a component of the result of an image instruction, or a write.
    /// Adjacent instructions with the same operands are done at once.
    Image {
        /// The operation.
        op: image::ImageOp,
        /// The image.
        image: Value,
        /// The sampler, if the instruction has one.
        sampler: Option<Value>,
        /// The operands that [`image::ImageOp::params`] lists.
        args: SmallVec<[Value; 4]>,
        /// Memory operands.
        access: Access,
    },
    /// `load.f32 storage v0 + v1`, `load.u16 storage v0 + v1`: 0 if out of bounds of the buffer or variable. Private
    /// memory has words only: at an offset that is not a multiple of 4, which the readers never make, a load gives any
    /// value, and a store changes any words of the variable.
    Load {
        /// Type of the result: `i32` for sub-word loads.
        ty: Type,
        /// Access width.
        width: Width,
        /// Where.
        place: Place,
        /// Memory operands.
        access: Access,
    },
    /// `store storage v0 + v1, v2`, `store.u16 storage v0 + v1, v2`: dropped if out of bounds of the buffer or
    /// variable.
    Store {
        /// Access width; the low bytes of the value are stored.
        width: Width,
        /// Where.
        place: Place,
        /// The value.
        value: Value,
        /// Memory operands.
        access: Access,
    },
    /// `atomic.iadd storage v0 + v1, v2 device relaxed`: the result is the old value, except for stores, which have
    /// none. Outside the buffer or variable, or at an offset that is not a multiple of 4 (of 2 for what is on halves),
    /// nothing happens and the result is 0.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Where.
        place: Place,
        /// Operand; absent for loads.
        value: Option<Value>,
        /// Comparator, for [`AtomicOp::CompareExchange`].
        comparator: Option<Value>,
        /// For 64 bits (`atomic64.iadd storage v0 + v1, v2, v3 …`, low words first): the high words of both operands.
        /// The result is the low word of the old value.
        wide: Option<[Option<Value>; 2]>,
        /// Scope.
        scope: Scope,
        /// Semantics; of a compare-exchange, those on success.
        semantics: Semantics,
        /// Semantics on failure of a compare-exchange; 0 for other operations.
        unequal: Semantics,
    },
    /// `clock device`: the low word of the time; [`InstData::HighWord`] has the high word.
    Clock {
        /// Scope in which the clock is common.
        scope: Scope,
    },
    /// `print message0, v0, v1, v2, …`: prints a message, with the invocation's global id and the words of the
    /// operands.
    Print {
        /// Index in [`Kernel::messages`](super::Kernel::messages).
        message: u32,
        /// `i32`.
        args: SmallVec<[Value; 4]>,
    },
    /// `high_word v0`: the high word of a 64-bit result whose low word is `v0`.
    HighWord {
        /// The result of the 64-bit atomic or clock.
        of: Value,
    },
    /// `subgroup.ballot v0`: a subgroup operation of the invocations that execute it together. Passes keep it in its
    /// block, and the block in its loops.
    Subgroup {
        /// The operation.
        op: SubgroupOp,
        /// The operands that [`SubgroupOp::params`] lists.
        args: SmallVec<[Value; 2]>,
    },
    /// `barrier workgroup workgroup acq_rel|workgroup`: `OpControlBarrier`.
    Barrier {
        /// The invocations that the barrier synchronizes.
        execution: Scope,
        /// Scope of the memory semantics.
        memory: Scope,
        /// Semantics.
        semantics: Semantics,
    },
    /// `fence device acq_rel|storage`: `OpMemoryBarrier`.
    Fence {
        /// Scope.
        scope: Scope,
        /// Semantics.
        semantics: Semantics,
    },
    /// `check site0 storage v0 + v1`, `check.u16 site0 var0 + v1`: checked mode observes an access to this memory,
    /// unless it is out of bounds.
    Check {
        /// The load or store.
        site: Site,
        /// Its memory, which other invocations share.
        place: Place,
        /// Access width.
        width: Width,
    },
    /// `check_image.read.2d.float.0 site1 v0, v1, v2`: checked mode observes the accesses of an image instruction with
    /// these operands to texels that are in the image.
    CheckImage {
        /// The image instruction.
        site: Site,
        /// The operation.
        op: image::ImageOp,
        /// The image.
        image: Value,
        /// The sampler, if the instruction has one.
        sampler: Option<Value>,
        /// The operands that [`image::ImageOp::params`] lists.
        args: SmallVec<[Value; 4]>,
    },
    /// `sync site2`: checked mode observes the fence or control barrier that follows.
    /// `sync site3 storage v0 + v1 bytes 4 wrote v2`: it observes the atomic that precedes, unless that is out of
    /// bounds or unaligned.
    Sync {
        /// The atomic, fence or barrier.
        site: Site,
        /// The memory of an atomic.
        place: Option<Place>,
        /// Bytes of an atomic's memory; 0 for fences and barriers.
        bytes: u32,
        /// Of a compare-exchange: a bool, whether it wrote.
        wrote: Option<Value>,
    },
    /// `jump block1(v0, v1)`.
    Jump {
        /// Target.
        to: BlockCall,
    },
    /// `branch v0, block1, block2(v3)`.
    Branch {
        /// The bool.
        condition: Value,
        /// Taken if true.
        then: BlockCall,
        /// Taken if false.
        otherwise: BlockCall,
    },
    /// `switch v0, block9 [1: block2, 5: block3(v1)]`.
    Switch {
        /// The `i32`.
        selector: Value,
        /// Taken when no case matches.
        default: BlockCall,
        /// Literals, all different, with their targets.
        cases: Vec<(u32, BlockCall)>,
    },
    /// Ends the invocation.
    Return,
    /// Never reached; if it is, it ends the invocation.
    Unreachable,
}

/// A branch target with the arguments for its parameters.
pub type BlockCall = crate::ssa::BlockCall<Block, Value>;

/// Built-ins that differ between invocations or dispatches. `WorkgroupSize` is a constant and not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// `NumWorkgroups`.
    NumWorkgroups,
    /// `WorkgroupId`, the dispatch's base included.
    WorkgroupId,
    /// `LocalInvocationId`.
    LocalInvocationId,
    /// `GlobalInvocationId`.
    GlobalInvocationId,
    /// `LocalInvocationIndex`.
    LocalInvocationIndex,
    /// `NumSubgroups`.
    NumSubgroups,
    /// `SubgroupId`.
    SubgroupId,
    /// `SubgroupLocalInvocationId`.
    SubgroupLocalInvocationId,
}

/// The single list of operands, for both walks: `$iter` is `iter` or `iter_mut`, and `$place` walks a [`Place`].
macro_rules! walk_operands {
    ($data:ident, $visit:ident, $iter:ident, $place:ident) => {
        match $data {
            Self::Const { .. }
            | Self::BuiltIn { .. }
            | Self::Barrier { .. }
            | Self::Fence { .. }
            | Self::Return
            | Self::Unreachable => {}
            Self::Pure { args, .. } => args.$iter().for_each(&mut $visit),
            Self::Subgroup { args, .. } => args.$iter().for_each(&mut $visit),
            Self::Select { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(&mut $visit)
            }
            Self::Element { base, index, .. } => [base, index].into_iter().for_each(&mut $visit),
            Self::Buffer { index, .. } => $visit(index),
            Self::BufferSize { buffer } | Self::BufferNumber { buffer } => $visit(buffer),
            Self::BufferOf { number } => $visit(number),
            Self::BufferAt { low, high } | Self::BufferNear { low, high } => {
                [low, high].into_iter().for_each(&mut $visit)
            }
            Self::BufferOffset { buffer, low, high } => [buffer, low, high].into_iter().for_each(&mut $visit),
            Self::Reaches { buffer, offset } => [buffer, offset].into_iter().for_each(&mut $visit),
            Self::ImageField { image, .. } => $visit(image),
            Self::Image { image, sampler, args, .. } => {
                $visit(image);
                sampler.$iter().chain(args.$iter()).for_each(&mut $visit);
            }
            Self::Clock { .. } => {}
            Self::Print { args, .. } => args.$iter().for_each(&mut $visit),
            Self::HighWord { of } => $visit(of),
            Self::Load { place, .. } => place.$place(&mut $visit),
            Self::Store { place, value, .. } => {
                place.$place(&mut $visit);
                $visit(value);
            }
            Self::Atomic { place, value, comparator, wide, .. } => {
                place.$place(&mut $visit);
                value.$iter().chain(comparator).for_each(&mut $visit);
                wide.$iter().flatten().flatten().for_each(&mut $visit);
            }
            Self::Check { place, .. } => place.$place(&mut $visit),
            Self::CheckImage { image, sampler, args, .. } => {
                $visit(image);
                sampler.$iter().chain(args.$iter()).for_each(&mut $visit);
            }
            Self::Sync { place, wrote, .. } => {
                if let Some(place) = place {
                    place.$place(&mut $visit);
                }
                wrote.$iter().for_each(&mut $visit);
            }
            Self::Jump { to } => to.args.$iter().for_each(&mut $visit),
            Self::Branch { condition, then, otherwise } => {
                $visit(condition);
                then.args.$iter().chain(otherwise.args.$iter()).for_each(&mut $visit);
            }
            Self::Switch { selector, default, cases } => {
                $visit(selector);
                default.args.$iter().for_each(&mut $visit);
                cases.$iter().for_each(|(_, call)| call.args.$iter().for_each(&mut $visit));
            }
        }
    };
}
impl InstData {
    /// Whether the instruction ends its block.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Self::Jump { .. } | Self::Branch { .. } | Self::Switch { .. } | Self::Return | Self::Unreachable)
    }

    /// Whether the instruction must be kept even if its result is unused.
    pub fn has_effect(&self) -> bool {
        match self {
            Self::Load { access, .. } => access.volatile,
            Self::Image { op, access, .. } => op.kind == image::Kind::Write || access.volatile,
            Self::Store { .. }
            | Self::Atomic { .. }
            | Self::Barrier { .. }
            | Self::Fence { .. }
            | Self::Check { .. }
            | Self::CheckImage { .. }
            | Self::Sync { .. }
            | Self::Print { .. } => true,
            data => data.is_terminator(),
        }
    }

    /// Type of the result; `None` for instructions without one. `type_of` gives the types of operands: only a `select`
    /// needs one, and has that type.
    pub fn result_type(&self, type_of: impl FnOnce(Value) -> Option<Type>) -> Option<Type> {
        match self {
            Self::Const { ty, .. } | Self::Load { ty, .. } => Some(*ty),
            Self::Pure { op, .. } => Some(op.result()),
            Self::Select { then, .. } => type_of(*then),
            Self::BuiltIn { .. }
            | Self::Element { .. }
            | Self::BufferSize { .. }
            | Self::BufferNumber { .. }
            | Self::BufferOffset { .. }
            | Self::ImageField { .. }
            | Self::Clock { .. }
            | Self::HighWord { .. } => Some(Type::I32),
            Self::Image { op, .. } => op.result(),
            Self::Subgroup { op, .. } => Some(op.result()),
            Self::Buffer { .. } | Self::BufferOf { .. } | Self::BufferAt { .. } | Self::BufferNear { .. } => {
                Some(Type::Buffer)
            }
            Self::Reaches { .. } => Some(Type::Bool),
            Self::Atomic { op, .. } if op.is_store() => None,
            Self::Atomic { .. } => Some(Type::I32),
            Self::Store { .. }
            | Self::Print { .. }
            | Self::Barrier { .. }
            | Self::Fence { .. }
            | Self::Check { .. }
            | Self::CheckImage { .. }
            | Self::Sync { .. }
            | Self::Jump { .. }
            | Self::Branch { .. }
            | Self::Switch { .. }
            | Self::Return
            | Self::Unreachable => None,
        }
    }

    /// Calls `visit` with every value used, block arguments included, in the order they are printed.
    pub fn for_each_use(&self, mut visit: impl FnMut(Value)) {
        let mut visit = |value: &Value| visit(*value);
        walk_operands!(self, visit, iter, for_each_use);
    }

    /// Calls `visit` with a mutable reference to every value used.
    pub fn for_each_use_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        walk_operands!(self, visit, iter_mut, for_each_use_mut);
    }
}

crate::ssa::branches!();
