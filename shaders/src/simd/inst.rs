//! Instructions of the SIMD IR: a virtual ISA with 16-lane vectors and scalars.
//!
//! There is no implicit execution mask: instructions that write memory have a mask operand. All other instructions
//! compute in all lanes; the result in an inactive lane is unspecified.

use smallvec::SmallVec;

use super::address::{Address, Elements, LaneAddress, Row};
use super::{Block, ContextField, Routine, Type, Value, WideOp};
use crate::image;
use crate::ir::{AtomicOp, Op, Width};

/// Lanes of a vector: the invocations of a subgroup.
pub const LANES: u32 = 16;

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InstData {
    /// `const.s32 7`: a constant; for a vector, the same in each lane; for a mask, a bit for each lane.
    Const {
        /// Type of the result.
        ty: Type,
        /// Its bits.
        bits: u64,
    },
    /// `lanes [0, 1, 2, …]`: a `v32` with a separate constant for each lane.
    Lanes {
        /// Lane 0 first.
        values: Box<[u32; LANES as usize]>,
    },
    /// `undef.v32`: unspecified bits, where no active lane uses the value.
    Undef {
        /// Type of the result.
        ty: Type,
    },
    /// `iadd v1, v2`: an operation of the scalar IR's table that remains after lowering. Operands and result are all
    /// scalars (`s1`, `s32`) or all vectors (`mask`, `v32`). Scalars are integers and booleans only: an operation with
    /// a float operand or result takes vectors.
    Pure {
        /// The operation.
        op: Op,
        /// The operands of its signature.
        args: SmallVec<[Value; 4]>,
    },
    /// `select v0, v1, v2`: `v1` where `v0`, else `v2`. An `s1` condition selects between values of any type, a `mask`
    /// lane by lane.
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
        /// The operation.
        op: WideOp,
        /// Its operands.
        args: SmallVec<[Value; 2]>,
    },
    /// `splat v0`: broadcasts a scalar to all lanes, `s32` to `v32` or `s1` to `mask`.
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
    /// `pick v0, v1, [0, 17, …]`: shuffle with constant indices. Each lane gets the word of that lane of `v0`, or, for
    /// indices 16 to 31, of `v1`.
    Pick {
        /// Words 0 to 15.
        first: Value,
        /// Words 16 to 31.
        second: Value,
        /// By lane: index of its word.
        words: Box<[u8; LANES as usize]>,
    },
    /// `permute v0, v1`: shuffle with variable indices. Each lane gets the word of lane `v1` (modulo 16) of `v0`.
    Permute {
        /// The words, `v32`.
        vector: Value,
        /// Lane indices, `v32`.
        lanes: Value,
    },
    /// `mask_bits v0`: a bit for each lane, lane 0 the lowest, as `s32`.
    MaskBits {
        /// The mask.
        mask: Value,
    },
    /// `first_lane v0`: number of the lowest active lane of the mask, as `s32`; 16 if the mask is empty.
    FirstLane {
        /// The mask.
        mask: Value,
    },
    /// `any v0`: whether the mask is not empty, as `s1`.
    Any {
        /// The mask.
        mask: Value,
    },
    /// `context workgroup_id.0`: a field of the context that the kernel is called with.
    Context {
        /// The field.
        field: ContextField,
    },
    /// `buffer_base v0`: host address (`s64`) of the buffer of a descriptor, by its index (`s32`) in the flattened
    /// list; an unspecified address if there is none.
    BufferBase {
        /// Index of the descriptor.
        buffer: Value,
    },
    /// `buffer_len v0`: size of that buffer in bytes as `s64`, at most `u32::MAX`; 0 if there is none.
    BufferLen {
        /// Index of the descriptor.
        buffer: Value,
    },
    /// `buffer_at v0, v1`: index (`s32`) of the address range of device memory that contains an address (low word, high
    /// word, both `s32`), `u32::MAX` if there is none.
    BufferAt {
        /// Bits 0 to 31 of the address.
        low: Value,
        /// Bits 32 to 63.
        high: Value,
    },
    /// `image_field width v0`: a field of an image description, by the index of its descriptor; of an unspecified image
    /// if there is none.
    ImageField {
        /// Index of the descriptor, `s32`.
        image: Value,
        /// The field.
        field: image::Field,
    },
    /// `image.sample.2d.float.lod.0 v0 mask v1`, `call.buffer_at v0 mask v1`: a libcall. Operands and results are rows
    /// of 16 words, one word for each lane, from the address on.
    Call {
        /// The function.
        routine: Routine,
        /// Address of the rows, `s64`: [`ContextField::Calls`].
        area: Value,
        /// Active lanes of the call.
        mask: Value,
    },
    /// `load.s32 v0 + v1 * 4 + 8 if v1 < v2`: loads one 32-bit word, broadcast if the result is `v32`; 0 if the index
    /// is not below the limit.
    Load {
        /// `s32` or `v32`.
        ty: Type,
        /// Where.
        address: Address,
    },
    /// `store v0 + v1 * 4 + 8 if v1 < v2, v3 mask v4`: stores one word, that of the highest active lane of the mask.
    /// `store.u8` stores its lowest byte.
    Store {
        /// A word or a byte.
        width: Width,
        /// Where.
        address: Address,
        /// `s32` or `v32`.
        value: Value,
        /// Lanes that store; no effect if it is empty.
        mask: Value,
    },
    /// `load_row v0 + v1 if < v2`: contiguous load. Lane `l` gets word `i = v1 + l` (modulo 2³²) from `v0` on; 0 if `i`
    /// is not below the limit.
    LoadRow {
        /// Where.
        row: Row,
    },
    /// `store_row v0 + v1 if < v2, v3 mask v4`: contiguous store; addresses as for [`InstData::LoadRow`]. Out-of-bounds
    /// lanes store nothing.
    StoreRow {
        /// Where.
        row: Row,
        /// `v32`.
        value: Value,
        /// Lanes that store.
        mask: Value,
    },
    /// `load_elements v0 + v1 if < [v2, v3]`: strided load of one element of 1 to 4 words for each lane; one result
    /// (`v32`) for each limit.
    LoadElements {
        /// Where.
        elements: Box<Elements>,
    },
    /// `store_elements v0 + v1 * 16 if < [v2, v3], [v4, v5] mask v6`: strided store; addresses as for
    /// [`InstData::LoadElements`]. Bytes between the elements keep their values.
    StoreElements {
        /// Where.
        elements: Box<Elements>,
        /// The words, `v32`.
        values: SmallVec<[Value; 4]>,
        /// Lanes that store.
        mask: Value,
    },
    /// `gather v0 + v1 * 4 + 8 mask v2`: loads a word for each active lane of the mask; the other lanes get 0.
    Gather {
        /// Where.
        lanes: LaneAddress,
        /// Lanes that load; their addresses are valid.
        mask: Value,
    },
    /// `gather_elements v0 + v1 masks [v2, v3]`: each lane loads 2 or 4 adjacent words, one result (`v32`) for each
    /// word. Word `k` is number `v1 + k` (modulo 2³²) from `v0` on in the active lanes of mask `k`, 0 in the others.
    GatherElements {
        /// Address of word 0, `s64`.
        base: Value,
        /// By lane: index of its first word, `v32`.
        index: Value,
        /// For each word the lanes that load it; their addresses are valid.
        masks: SmallVec<[Value; 4]>,
    },
    /// `scatter v0 + v1 * 4 + 8, v2 mask v3`: stores a word for each active lane, in lane order: of lanes with the same
    /// address the highest wins. `scatter.u8` and `scatter.u16` store the low byte or half-word only.
    Scatter {
        /// Bytes of each word that are stored.
        width: Width,
        /// Where.
        lanes: LaneAddress,
        /// `v32`.
        value: Value,
        /// Lanes that store; their addresses are valid.
        mask: Value,
    },
    /// `atomic.iadd v0 + v1 * 4, v2 lock mask v3`: an atomic operation for each active lane, in lane order. The result
    /// (`v32`) has the old values, and 0 in inactive lanes; atomic stores have no result.
    Atomic {
        /// The operation.
        op: AtomicOp,
        /// Where; aligned in active lanes.
        lanes: LaneAddress,
        /// Operand, `v32`; absent for loads.
        value: Option<Value>,
        /// Comparator, `v32`, for [`AtomicOp::CompareExchange`].
        comparator: Option<Value>,
        /// For 64 bits (`atomic64.iadd`, low words first): the high words of both operands. The old values are two
        /// results.
        wide: Option<[Option<Value>; 2]>,
        /// Whether other threads may access the word at the same time.
        lock: bool,
        /// Whether a store must be sequentially consistent.
        sequential: bool,
        /// Active lanes; their addresses are valid.
        mask: Value,
    },
    /// `fence`: a sequentially consistent fence. Weaker fences have no instruction: passes keep memory operations in
    /// order, and so do x86 processors, apart from store-to-load.
    Fence,
    /// `frame_load.v32 v0 + 64`: reloads the value that a `frame_store` of the same type has saved there.
    FrameLoad {
        /// Type of the result.
        ty: Type,
        /// Address of the context frame, `s64`.
        frame: Value,
        /// Offset in the frame, in bytes.
        at: u32,
    },
    /// `frame_store v0 + 64, v1`: saves all lanes of a value of any type. Vectors take 64 bytes, masks and scalars 8.
    FrameStore {
        /// Address of the context frame, `s64`.
        frame: Value,
        /// Offset in the frame, in bytes.
        at: u32,
        /// The value.
        value: Value,
    },
    /// `zero v0, 256`: sets a number of bytes (a multiple of 4) to 0.
    Zero {
        /// Address, `s64`.
        base: Value,
        /// Number of bytes.
        bytes: u32,
    },
    /// `poll`: ends the kernel as stopped if the stop flag is set. Executed in every iteration of a loop that may run
    /// long.
    Poll {
        /// `at N`: the word of the SPIR-V module where the loop is; 0 if there is none.
        at: u32,
        /// `v1 mask v2`: the subgroup's number and the lanes that iterate, to identify their invocations.
        lanes: Option<[Value; 2]>,
    },
    /// `next_workgroup`: advances the workgroup loop. Ends the kernel as done after the last workgroup of its row, as
    /// stopped if there are more but the stop flag is set; otherwise the context's `workgroup_id.0` becomes that of the
    /// next workgroup.
    NextWorkgroup,
    /// `jump block1(v0, v1)`.
    Jump {
        /// Target.
        to: BlockCall,
    },
    /// `branch v0, block1, block2(v3)`: a uniform branch.
    Branch {
        /// `s1`.
        condition: Value,
        /// Taken if true.
        then: BlockCall,
        /// Taken if false.
        otherwise: BlockCall,
    },
    /// `switch v0, block9 [1: block2, 5: block3(v1)]`: a uniform switch.
    Switch {
        /// `s32`.
        selector: Value,
        /// Taken when no case matches.
        default: BlockCall,
        /// Literals, all different, with their targets.
        cases: Vec<(u32, BlockCall)>,
    },
    /// Ends the kernel as done, after one workgroup. A workgroup loop has none: [`InstData::NextWorkgroup`] ends it.
    Return,
}

/// A branch target with the arguments for its parameters.
pub type BlockCall = crate::ssa::BlockCall<Block, Value>;

impl InstData {
    /// Whether the instruction ends its block.
    pub fn is_terminator(&self) -> bool {
        matches!(self, Self::Jump { .. } | Self::Branch { .. } | Self::Switch { .. } | Self::Return)
    }

    /// Whether the instruction stays although its results are unused.
    pub fn has_effect(&self) -> bool {
        self.is_terminator() || self.changes_memory() || matches!(self, Self::Poll { .. } | Self::NextWorkgroup)
    }

    /// Whether the instruction changes memory or orders accesses.
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
}

crate::ssa::branches!();

/// Type of a pure operation's result, on vectors or on scalars.
pub fn pure_result(op: Op, vector: bool) -> Type {
    match (op.result(), vector) {
        (crate::ir::Type::Bool, false) => Type::S1,
        (crate::ir::Type::Bool, true) => Type::Mask,
        (_, false) => Type::S32,
        (_, true) => Type::V32,
    }
}
