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
    /// One slice for each descriptor, flattened: `Kernel::bindings` in order, each with its array elements.
    pub buffers: &'a [GuestSlice],
    /// Images and samplers, by the same numbers; those that are missing are [`Descriptor::NULL`]. The buffer of that number
    /// is the image's memory.
    pub images: &'a [Descriptor],
    /// Push constants; bytes that were never pushed are 0.
    pub push: &'a [u8; MAX_PUSH_BYTES],
    /// `NumWorkgroups`, each at most [`MAX_WORKGROUPS`].
    pub num_workgroups: [u32; 3],
    /// Non-zero asks the kernel to end early. Polled at every loop's back edge; the driver sets it when the time limit
    /// is over. Relaxed: it carries no data.
    pub stop: &'a AtomicU32,
}

/// How a workgroup ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All invocations returned.
    Done,
    /// The stop flag was seen; memory holds whatever was written until then.
    Stopped,
}
