//! What a kernel receives when it runs: filled by the driver, read by every back end.

use std::sync::atomic::AtomicU32;

use crate::guest::GuestSlice;
use crate::image::Descriptor;

/// Bytes of push constants that a device offers (`maxPushConstantsSize`).
pub const MAX_PUSH_BYTES: usize = 256;

/// Invocations in a subgroup (`subgroupSize`).
pub const SUBGROUP_SIZE: u32 = 16;

/// Workgroups that a dispatch may have in each dimension, its base included (`maxComputeWorkGroupCount`): every
/// `WorkgroupId` is below, and the compiler counts on it.
pub const MAX_WORKGROUPS: u32 = 65_535;

/// Everything about a dispatch that all its workgroups share.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DispatchArgs<'a> {
    /// One slice for each descriptor, flattened: `Kernel::bindings` in order, each with its array elements. After those, for
    /// kernels that go through addresses, the pieces of device memory that may be addressed, as [`piece_at`] wants them.
    pub buffers: &'a [GuestSlice],
    /// Images and samplers, by the same numbers; those that are missing are [`Descriptor::NULL`]. The buffer of that number
    /// is the image's memory.
    pub images: &'a [Descriptor],
    /// Push constants; bytes that were never pushed are 0.
    pub push: &'a [u8; MAX_PUSH_BYTES],
    /// `NumWorkgroups`, each at most [`MAX_WORKGROUPS`].
    pub num_workgroups: [u32; 3],
    /// Non-zero asks the kernel to end early. Polled at the back edges of loops that may take long, and between workgroups; the driver sets it when the time limit
    /// is over. Relaxed: it carries no data.
    pub stop: &'a AtomicU32,
}

/// Bytes from the beginning of a piece of device memory to the next one of the same range. Pieces are twice as long and
/// overlap, so that half as much lies behind every address in its piece, and offsets have 32 bits.
pub const PIECE: u64 = 1 << 31;

/// Bytes of the longest piece: an offset of 2³² - 1, aligned to words, is outside of it.
const MAX_PIECE_BYTES: u64 = 2 * PIECE - 64;

/// The pieces of disjoint ranges of memory, in ascending order: what kernels that go through addresses get after their
/// descriptors.
pub fn pieces(ranges: impl IntoIterator<Item = GuestSlice>) -> impl Iterator<Item = GuestSlice> {
    ranges.into_iter().flat_map(|range| {
        let starts = (0..range.len().div_ceil(PIECE)).map(|number| number * PIECE);
        starts.map(move |start| range.slice(start, MAX_PIECE_BYTES))
    })
}

/// The number in the list of the piece of memory in which an address lies: the last that begins at or before it. The first
/// `descriptors` are none.
pub fn piece_at(buffers: &[GuestSlice], descriptors: usize, address: u64) -> Option<u32> {
    let pieces = buffers.get(descriptors..)?;
    let after = pieces.partition_point(|piece| piece.address() as u64 <= address);
    let piece = pieces.get(after.checked_sub(1)?)?;
    (address - (piece.address() as u64) < piece.len()).then(|| (descriptors + after - 1) as u32)
}

/// Where a kernel was when it saw the stop flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Word of the module of SPIR-V that the loop is at; `None` for a loop of which that is not known.
    pub word: Option<u32>,
    /// The workgroup that ran.
    pub workgroup: [u32; 3],
    /// `GlobalInvocationId` of the first invocation that was in the loop, where that is known.
    pub invocation: Option<[u32; 3]>,
}

/// How a workgroup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All invocations returned.
    Done,
    /// The stop flag was seen; memory holds whatever was written until then.
    Stopped,
    /// There is no memory for what a worker needs: shared and private memory, or the frame. This workgroup did nothing.
    OutOfMemory,
}
