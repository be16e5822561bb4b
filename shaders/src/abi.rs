//! Arguments of a kernel, filled by the driver and read by every back end.

use std::sync::atomic::AtomicU32;

use crate::guest::GuestSlice;
use crate::image::Descriptor;

/// Bytes of push constants that a device offers (`maxPushConstantsSize`).
pub const MAX_PUSH_BYTES: usize = 256;

/// Invocations in a subgroup (`subgroupSize`).
pub const SUBGROUP_SIZE: u32 = 16;

/// Workgroups that a dispatch may have in each dimension, its base included (`maxComputeWorkGroupCount`). Every
/// `WorkgroupId` is less; the compiler relies on it.
pub const MAX_WORKGROUPS: u32 = 65_535;

/// Everything about a dispatch that all its workgroups share.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DispatchArgs<'a> {
    /// One slice for each descriptor, flattened: `Kernel::bindings` in order, each with its array elements. Kernels
    /// that access memory by address get after those the address ranges that may be accessed, in the form that
    /// [`address_range_at`] expects.
    pub buffers: &'a [GuestSlice],
    /// Images and samplers, with the same indices as `buffers`; missing ones are [`Descriptor::NULL`]. The buffer of
    /// the same index is the image's memory.
    pub images: &'a [Descriptor],
    /// Push constants; bytes that were never pushed are 0.
    pub push: &'a [u8; MAX_PUSH_BYTES],
    /// `NumWorkgroups`, each at most [`MAX_WORKGROUPS`].
    pub num_workgroups: [u32; 3],
    /// Non-zero asks the kernel to end early. Polled between workgroups and at the back edges of loops that may run
    /// long; the driver sets it when the time limit has passed. Relaxed: it carries no data.
    pub stop: &'a AtomicU32,
}

/// Bytes from the start of an address range to the start of the next one of the same allocation. Ranges are twice as
/// long and overlap: at least `ADDRESS_RANGE_STEP - 64` bytes follow every address in the range that
/// [`address_range_at`] finds, and offsets fit 32 bits.
pub const ADDRESS_RANGE_STEP: u64 = 1 << 31;

/// Bytes of an address range, at most: an offset of 2³² - 1, aligned to words, is outside.
const MAX_ADDRESS_RANGE_BYTES: u64 = 2 * ADDRESS_RANGE_STEP - 64;

/// Splits disjoint allocations, in ascending order, into address ranges: kernels that access memory by address get them
/// after their descriptors.
pub fn address_ranges(allocations: impl IntoIterator<Item = GuestSlice>) -> impl Iterator<Item = GuestSlice> {
    allocations.into_iter().flat_map(|allocation| {
        let starts = (0..allocation.len().div_ceil(ADDRESS_RANGE_STEP)).map(|number| number * ADDRESS_RANGE_STEP);
        starts.map(move |start| allocation.slice(start, MAX_ADDRESS_RANGE_BYTES))
    })
}

/// Index of the address range that holds an address: the last one that starts at or before it. The first `descriptors`
/// entries of `buffers` are no address ranges.
pub fn address_range_at(buffers: &[GuestSlice], descriptors: usize, address: u64) -> Option<u32> {
    let ranges = buffers.get(descriptors..)?;
    let after = ranges.partition_point(|range| range.address() as u64 <= address);
    let range = ranges.get(after.checked_sub(1)?)?;
    (address - (range.address() as u64) < range.len()).then(|| (descriptors + after - 1) as u32)
}

/// Where a kernel was when it saw the stop flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Index of the SPIR-V word that the loop comes from; `None` if unknown.
    pub word: Option<u32>,
    /// The workgroup that ran.
    pub workgroup: [u32; 3],
    /// `GlobalInvocationId` of the first active invocation of the loop; `None` if unknown.
    pub invocation: Option<[u32; 3]>,
}

/// How a workgroup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All invocations returned.
    Done,
    /// The stop flag was seen; memory holds whatever was written until then.
    Stopped,
    /// No memory for the shared and private memory or the frame of a worker. The workgroup did not run.
    OutOfMemory,
}
