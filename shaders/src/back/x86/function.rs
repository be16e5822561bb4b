//! Machine code with what calls it: its entry, the memory that it needs, the tables that it indexes.

use super::Isa;
use super::code_memory::CodeMemory;
use crate::abi;
use crate::check::InlineChecks;
use crate::check::inline::state;
use crate::host::Message;
use crate::simd::Routine;

/// Bytes of the state with which code settles accesses.
pub(super) const STATE_BYTES: usize = 4 * state::WORDS as usize;

/// The machine code of a kernel.
#[derive(Debug)]
pub(super) struct KernelFunction {
    pub memory: CodeMemory,
    /// Offset of its first instruction in the memory.
    pub entry: usize,
    pub needs: Needs,
    pub areas: Areas,
    /// Routines, indexed by the numbers in the code.
    pub routines: Vec<Routine>,
    /// Messages, indexed by the numbers in the code.
    pub messages: Vec<Message>,
    /// The memory to which the code checks accesses itself.
    pub inline: InlineChecks,
}

impl KernelFunction {
    /// Number of descriptors of the shader. Those of the checks follow them.
    pub(super) fn descriptors(&self) -> usize {
        self.needs.descriptors - self.inline.slices() as usize
    }
}

/// Memory that a kernel needs, and the number of descriptors that it names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub descriptors: usize,
    pub shared_bytes: usize,
    pub private_bytes: usize,
    pub frame_bytes: usize,
    pub call_bytes: usize,
    /// Subgroups, if the code takes their order and that of lanes; otherwise 0.
    pub subgroup_order: usize,
    /// Bytes of the worker's stack; 0 if the frame is on the caller's.
    pub stack_bytes: usize,
    /// Whether it reads image descriptors.
    pub images: bool,
    /// Whether it accesses the address ranges that follow the descriptors.
    pub address_ranges: bool,
    /// Whether the code contains the loop over a run of workgroups.
    pub workgroup_loop: bool,
    /// Workgroups merged into one execution, contiguous in x.
    pub merged_workgroups: u32,
    /// The size of each of the merged workgroups.
    pub workgroup_size: [u32; 3],
    pub isa: Isa,
}

/// The areas of scratch memory that a kernel uses, each aligned to a cache line: bytes from the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Areas {
    pub shared: usize,
    pub private: usize,
    pub frames: usize,
    pub calls: usize,
    pub subgroup_order: usize,
    pub lane_order: usize,
    pub state: usize,
    /// All of them.
    pub bytes: usize,
}

impl Areas {
    /// Lays out the areas. Computed when the code is made, since dispatches are many.
    pub(super) fn new(needs: &Needs, inline: &InlineChecks) -> Self {
        let mut areas = Self::default();
        let lanes = if needs.subgroup_order > 0 { abi::SUBGROUP_SIZE as usize } else { 0 };
        for (area, bytes) in [
            (&mut areas.shared, needs.shared_bytes),
            (&mut areas.private, needs.private_bytes),
            (&mut areas.frames, needs.frame_bytes),
            (&mut areas.calls, needs.call_bytes),
            (&mut areas.subgroup_order, needs.subgroup_order * size_of::<u32>()),
            (&mut areas.lane_order, lanes * size_of::<u32>()),
            (&mut areas.state, if inline.is_empty() { 0 } else { STATE_BYTES }),
        ] {
            *area = areas.bytes;
            areas.bytes = areas.bytes.saturating_add(bytes.saturating_add(63) & !63);
        }
        areas
    }
}
