//! Instructions of the SIMD form: a virtual ISA of 16 lanes with scalars beside.
//!
//! There is no hidden execution mask: whatever writes memory names the lanes for which it does. Everything else
//! computes in all lanes; what it yields in lanes that are off is of no account.

use smallvec::SmallVec;

use super::{Block, Field, Routine, Type, Value, WideOp};
use crate::image;
use crate::ir::{AtomicOp, Op, Width};

/// Lanes of a vector: the invocations of a subgroup.
pub const LANES: u32 = 16;

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InstData {
    /// `const.s32 7`: a constant; of a vector, the same in each lane; of a mask, a bit for each lane.
    Const {
        /// Type of the result.
        ty: Type,
        /// Its bits.
        bits: u64,
    },
    /// `lanes [0, 1, 2, …]`: a `v32` with a constant of its own in each lane.
    Lanes {
        /// Lane 0 first.
        values: Box<[u32; LANES as usize]>,
    },
    /// `undef.v32`: any bits. Stands where no lane looks.
    Undef {
        /// Type of the result.
        ty: Type,
    },
    /// An operation of the scalar IR's table that lowering leaves, on scalars or in each
    /// lane: `iadd v1, v2`. Operands are all scalars (`s1`, `s32`) or all vectors (`mask`, `v32`), and so is the result.
    /// Scalars hold integers and truth values only: an operation with a float operand or result is on vectors.
    Pure {
        /// Which one.
        op: Op,
        /// As many operands as the op's signature has.
        args: SmallVec<[Value; 4]>,
    },
    /// `select v0, v1, v2`: `v1` where `v0`, else `v2`. An `s1` selects between values of any type, a `mask` lane by lane.
    Select {
        /// `s1` or `mask`.
        condition: Value,
        /// Result where true.
        then: Value,
        /// Result where false.
        otherwise: Value,
    },
    /// `wide.add v0, v1`: 64-bit arithmetic.
    Wide {
        /// Which operation.
        op: WideOp,
        /// Its operands.
        args: SmallVec<[Value; 2]>,
    },
    /// `splat v0`: a scalar in each lane, `s32` to `v32` or `s1` to `mask`.
    Splat {
        /// The scalar.
        value: Value,
    },
    /// `extract v0, v1`: the `s32` in lane `v1` (0 to 15) of a `v32`.
    Extract {
        /// The vector.
        vector: Value,
        /// `s32`.
        lane: Value,
    },
    /// `pick v0, v1, [0, 17, …]`: in each lane the word of that lane of `v0`, or from 16 on of `v1`.
    Pick {
        /// Words 0 to 15.
        first: Value,
        /// Words 16 to 31.
        second: Value,
        /// The number of each lane's word.
        words: Box<[u8; LANES as usize]>,
    },
    /// `permute v0, v1`: in each lane the word of the lane of `v0` that `v1` names, modulo 16.
    Permute {
        /// The words, `v32`.
        vector: Value,
        /// Numbers of lanes, `v32`.
        lanes: Value,
    },
    /// `mask_bits v0`: a bit for each lane, lane 0 the lowest, as `s32`.
    MaskBits {
        /// The mask.
        mask: Value,
    },
    /// `first_lane v0`: number of the lowest lane that is on, as `s32`; 16 if none is.
    FirstLane {
        /// The mask.
        mask: Value,
    },
    /// `any v0`: whether a lane of the mask is on, as `s1`.
    Any {
        /// The mask.
        mask: Value,
    },
    /// `context workgroup_id.0`: a field of what the kernel was called with.
    Context {
        /// Which one.
        field: Field,
    },
    /// `buffer_base v0`: host address (`s64`) of the descriptor with that number (`s32`) in the flattened list; any
    /// address if there is none.
    BufferBase {
        /// The descriptor's number.
        buffer: Value,
    },
    /// `buffer_len v0`: its bytes as `s64`, at most `u32::MAX`; 0 if there is none.
    BufferLen {
        /// The descriptor's number.
        buffer: Value,
    },
    /// `buffer_at v0, v1`: number (`s32`) of the piece of device memory in which an address lies (low word, high word, both
    /// `s32`), `u32::MAX` if there is none.
    BufferAt {
        /// Bits 0 to 31 of the address.
        low: Value,
        /// Bits 32 to 63.
        high: Value,
    },
    /// `image_field width v0`: a field of the description of the image with that number; of any image if there is none.
    ImageField {
        /// The descriptor's number, `s32`.
        image: Value,
        /// Which field.
        field: image::Field,
    },
    /// `image.sample.2d.float.lod.0 v0 mask v1`, `call.buffer_at v0 mask v1`: calls a function. Its operands and results
    /// are rows of words, one for each lane, from the address on.
    Call {
        /// Which one.
        routine: Routine,
        /// Address of the rows, `s64`: [`Field::Calls`].
        area: Value,
        /// The lanes.
        mask: Value,
    },
    /// `load.s32 v0 + v1 * 4 + 8 if v1 < v2`: one 32-bit word, in each lane if the result is `v32`; 0 where the index is
    /// not below the limit.
    Load {
        /// `s32` or `v32`.
        ty: Type,
        /// Where.
        address: Address,
    },
    /// `store v0 + v1 * 4 + 8 if v1 < v2, v3 mask v4`: of the lanes that are on the last one's word.
    Store {
        /// Where.
        address: Address,
        /// `s32` or `v32`.
        value: Value,
        /// Lanes that store; nothing happens if none does.
        mask: Value,
    },
    /// `load_row v0 + v1 if < v2`: in lane `l` the word number `i = v1 + l` (modulo 2³²) from `v0` on; 0 where `i` is not
    /// below the limit.
    LoadRow {
        /// Where.
        row: Row,
    },
    /// `store_row v0 + v1 if < v2, v3 mask v4`: as [`InstData::LoadRow`]; dropped where `i` is not below the limit.
    StoreRow {
        /// Where.
        row: Row,
        /// `v32`.
        value: Value,
        /// Lanes that store.
        mask: Value,
    },
    /// `load_elements v0 + v1 if < [v2, v3]`: the words of each lane's element; as many results (`v32`) as there are limits.
    LoadElements {
        /// Where; words stand close to each other.
        elements: Box<Elements>,
    },
    /// `store_elements v0 + v1 * 16 if < [v2, v3], [v4, v5] mask v6`: as [`InstData::LoadElements`]; what is between the
    /// elements stays as it is.
    StoreElements {
        /// Where.
        elements: Box<Elements>,
        /// The words, `v32`.
        values: SmallVec<[Value; 4]>,
        /// Lanes that store.
        mask: Value,
    },
    /// `gather v0 + v1 * 4 + 8 mask v2`: a word for each lane that is on, 0 for the others.
    Gather {
        /// Where.
        lanes: LaneAddress,
        /// Lanes that load; their addresses are valid.
        mask: Value,
    },
    /// `gather_elements v0 + v1 masks [v2, v3]`: lane `l` loads 2 or 4 words next to each other, one result (`v32`) for each:
    /// word `k` is number `v1 + k` (modulo 2³²) of those at `v0` in lanes that are on in mask `k`, 0 in the others.
    GatherElements {
        /// Address of word 0, `s64`.
        base: Value,
        /// Number of each lane's first word, `v32`.
        index: Value,
        /// For each word the lanes that load it; their addresses are valid.
        masks: SmallVec<[Value; 4]>,
    },
    /// `scatter v0 + v1 * 4 + 8, v2 mask v3`: in order of the lanes, so the highest of those that share a word wins.
    /// `scatter.u8` and `scatter.u16` store the low part of each word, and touch nothing beside it.
    Scatter {
        /// How much of each word.
        width: Width,
        /// Where.
        lanes: LaneAddress,
        /// `v32`.
        value: Value,
        /// Lanes that store; their addresses are valid.
        mask: Value,
    },
    /// `atomic.iadd v0 + v1 * 4, v2 lock mask v3`: in order of the lanes. The result (`v32`) holds the old values and is 0 in
    /// lanes that are off; atomic stores have none.
    Atomic {
        /// What is done.
        op: AtomicOp,
        /// Where; aligned in lanes that are on.
        lanes: LaneAddress,
        /// Operand, `v32`; absent for loads.
        value: Option<Value>,
        /// What to compare with, `v32`, for [`AtomicOp::CompareExchange`].
        comparator: Option<Value>,
        /// For 64 bits (`atomic64.iadd`, low words first): the high words of both operands. Old values are two results then.
        wide: Option<[Option<Value>; 2]>,
        /// Whether other threads may touch the word meanwhile.
        lock: bool,
        /// Whether a store has to be sequentially consistent.
        sequential: bool,
        /// Lanes that take part; their addresses are valid.
        mask: Value,
    },
    /// `fence`: a sequentially consistent fence. Weaker ones are nothing on this machine, as memory operations stay in
    /// order.
    Fence,
    /// `frame_load.v32 v0 + 64`: what a `frame_store` of the same type put there.
    FrameLoad {
        /// Type of the result.
        ty: Type,
        /// Address of the frame, `s64`.
        frame: Value,
        /// Bytes from its beginning.
        at: u32,
    },
    /// `frame_store v0 + 64, v1`: keeps a value of any type; all lanes of it. Vectors take 64 bytes, masks and scalars 8.
    FrameStore {
        /// Address of the frame, `s64`.
        frame: Value,
        /// Bytes from its beginning.
        at: u32,
        /// The value.
        value: Value,
    },
    /// `zero v0, 256`: so many bytes (a multiple of 4) become 0.
    Zero {
        /// Address, `s64`.
        base: Value,
        /// How many bytes.
        bytes: u32,
    },
    /// `poll`: ends the kernel as stopped if the stop flag is set. Stands on every way around a loop that may be long.
    Poll {
        /// `at N`: the word of the module that the loop is at; 0 where there is none.
        at: u32,
        /// `v1 mask v2`: the subgroup's number and the lanes that go around, to tell which invocations they are.
        lanes: Option<[Value; 2]>,
    },
    /// `next_workgroup`: ends the kernel as done if this was the last workgroup of the row that it was called for, and as stopped if
    /// there are others but the stop flag is set. Else the context's `workgroup_id.0` is that of the next one from here on.
    NextWorkgroup,
    /// `jump block1(v0, v1)`.
    Jump {
        /// Target.
        to: BlockCall,
    },
    /// `branch v0, block1, block2(v3)`: for all lanes together.
    Branch {
        /// `s1`.
        condition: Value,
        /// Taken if true.
        then: BlockCall,
        /// Taken if false.
        otherwise: BlockCall,
    },
    /// `switch v0, block9 [1: block2, 5: block3(v1)]`: for all lanes together.
    Switch {
        /// `s32`.
        selector: Value,
        /// Taken when no case matches.
        default: BlockCall,
        /// Literals, all different, with their targets.
        cases: Vec<(u32, BlockCall)>,
    },
    /// The kernel is done: after one workgroup, unless [`InstData::NextWorkgroup`] stands in front.
    Return,
}

/// A branch target with the arguments for its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockCall {
    /// Target.
    pub block: Block,
    /// One value for each parameter of the target.
    pub args: SmallVec<[Value; 4]>,
}

/// An address that all lanes share: `base + index * scale + disp`, valid if `index < limit`, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Host address, `s64`.
    pub base: Value,
    /// Index and limit, both `s32` or both `s64`; without them the address is `base + disp` and valid.
    pub index: Option<(Value, Value)>,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Bytes.
    pub disp: i32,
}

/// Consecutive words: lane `l` has the one at `base + 4 * i` (or less, by the width), `i = index + l` modulo 2³², valid if
/// `i < limit`, unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Host address of word 0, `s64`.
    pub base: Value,
    /// Word of lane 0, `s32`.
    pub index: Value,
    /// Number of valid words, `s32`: at most 2³² bytes.
    pub limit: Value,
    /// Less than 4 bytes for a row of parts of words, which loads extend by zeros and stores cut off.
    pub width: Width,
}

/// Elements of one to four words, one for each lane at equal distances: `v0 + v1 if < [v2, v3]`, `v0 + v1 * 16 if < [v2, v3]`,
/// `v0 + v1 by 3 if < [v2, v3]`, `v0 + v1 strips 8 v4 * 16 if < [v2, v3]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Elements {
    /// Address of number 0, `s64`.
    pub base: Value,
    /// The number of lane 0, `s32`.
    pub index: Value,
    /// Lanes in strips, if not all 16 are in one.
    pub strips: Option<Strips>,
    /// What numbers count, and how far lanes are from each other.
    pub spacing: Spacing,
    /// For each word of an element what its number has to be below, unsigned, to be in bounds: `s32`. Others are loaded as 0
    /// and not stored.
    pub limits: SmallVec<[Value; 4]>,
    /// Less than 4 bytes for elements of parts of words, which loads extend by zeros and stores cut off.
    pub width: Width,
}

/// Lanes in groups of 4 or 8: the numbers of each are so many more than those of the lanes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strips {
    /// Lanes of a strip.
    pub lanes: u8,
    /// How much the first number of a strip is above that of the strip before, modulo 2³², `s32`.
    pub step: Value,
}

/// How the elements of lanes follow each other. All sums are modulo 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spacing {
    /// `* 16`: numbers count elements of so many bytes, and lanes have one after the other. All words of an element have its
    /// number, and limits are none above the one before. It is not written where elements have no space between.
    Bytes(u32),
    /// `by 3`: numbers count words (or parts), lanes are so many from each other, and each word of an element has a number of its
    /// own, one more than that before.
    Words(u32),
}

/// An address for each lane: `base + index * scale + disp`, the index unsigned. In lanes that are on `index * scale` is
/// below 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneAddress {
    /// Host address, `s64`.
    pub base: Value,
    /// `v32`.
    pub index: Value,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// Bytes.
    pub disp: i32,
}

impl Elements {
    /// Bytes from the element of a lane to that of the next in its strip.
    pub fn stride(&self) -> u32 {
        match self.spacing {
            Spacing::Bytes(bytes) => bytes,
            Spacing::Words(words) => words.saturating_mul(self.width.bytes()),
        }
    }

    /// Whether there is no space between the elements.
    pub fn are_dense(&self) -> bool {
        self.stride() as usize == self.limits.len() * self.width.bytes() as usize
    }
}

impl BlockCall {
    /// A target without arguments.
    pub fn new(block: Block) -> Self {
        Self { block, args: SmallVec::new() }
    }
}

impl InstData {
    /// Whether the instruction ends its block.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Self::Jump { .. } | Self::Branch { .. } | Self::Switch { .. } | Self::Return)
    }

    /// Whether the instruction changes memory, or orders what others do there.
    pub fn changes_memory(&self) -> bool {
        matches!(
            self,
            Self::Store { .. }
                | Self::StoreRow { .. }
                | Self::StoreElements { .. }
                | Self::Scatter { .. }
                | Self::Atomic { .. }
                | Self::Fence
                | Self::FrameStore { .. }
                | Self::Call { .. }
                | Self::Zero { .. }
        )
    }

    /// Targets of a terminator, in the order they are printed; empty for other instructions.
    pub fn targets(&self) -> SmallVec<[&BlockCall; 2]> {
        match self {
            Self::Jump { to } => smallvec::smallvec![to],
            Self::Branch { then, otherwise, .. } => smallvec::smallvec![then, otherwise],
            Self::Switch { default, cases, .. } => {
                std::iter::once(default).chain(cases.iter().map(|(_, call)| call)).collect()
            }
            _ => SmallVec::new(),
        }
    }

    /// The target at that place of [`InstData::targets`], without a walk over the others.
    pub fn target(&self, number: usize) -> Option<&BlockCall> {
        match self {
            Self::Jump { to } => (number == 0).then_some(to),
            Self::Branch { then, otherwise, .. } => [then, otherwise].get(number).copied(),
            Self::Switch { default, cases, .. } => match number.checked_sub(1) {
                None => Some(default),
                Some(case) => cases.get(case).map(|(_, call)| call),
            },
            _ => None,
        }
    }

    /// As [`InstData::targets`], to be changed.
    pub fn targets_mut(&mut self) -> SmallVec<[&mut BlockCall; 2]> {
        match self {
            Self::Jump { to } => smallvec::smallvec![to],
            Self::Branch { then, otherwise, .. } => smallvec::smallvec![then, otherwise],
            Self::Switch { default, cases, .. } => {
                std::iter::once(default).chain(cases.iter_mut().map(|(_, call)| call)).collect()
            }
            _ => SmallVec::new(),
        }
    }
}

/// Type of a pure operation's result, on vectors or on scalars.
pub fn pure_result(op: Op, vector: bool) -> Type {
    match (op.result(), vector) {
        (crate::ir::Type::Bool, false) => Type::S1,
        (crate::ir::Type::Bool, true) => Type::Mask,
        (_, false) => Type::S32,
        (_, true) => Type::V32,
    }
}
