//! Memory of the checks in machine code, which settle most accesses without a call: the planes of the memory, and the
//! epochs with which cells are compared.
//!
//! They are slices after those of the kernel's descriptors: four planes for each descriptor with such checks, two for
//! workgroup memory, and the words of the state. An observer that offers none of it leaves all slices empty, and the
//! state says that no workgroup has begun: then no access is settled, and each makes its call.

use super::planes::GRANULE;
use crate::guest::GuestSlice;
use crate::ir::PLANES;

/// The slices of one dispatch.
#[derive(Clone, Debug)]
pub struct InlineMemory {
    /// The planes of each of the [checks' descriptors](crate::ir::InlineChecks::descriptors), in the order of
    /// [`Plane`](crate::ir::Plane).
    pub planes: Vec<[GuestSlice; PLANES as usize]>,
    /// The planes of workgroup memory: of writes and of reads.
    pub shared: [GuestSlice; 2],
    /// The words of the state.
    pub state: GuestSlice,
}

/// Bytes of workgroup memory that have planes.
pub(crate) const SHARED_BYTES: u64 = 1 << 20;

/// Where the planes of workgroup memory have the cells of variables with several for each word: after those of words
/// and the granule of the state.
pub(super) const SHARED_PARTS: u64 = SHARED_BYTES + GRANULE;

/// Where the cells of a variable begin in the planes of workgroup memory, if it has this many for each word.
pub(crate) fn first_cell_of_variable(first: u64, scale: u32) -> u64 {
    if scale == 1 { first } else { SHARED_PARTS + MAX_SCALE * first }
}

/// Cells for each word, at most.
pub(super) const MAX_SCALE: u64 = 4;

/// Words of the state: their numbers.
pub(crate) mod state {
    /// Cells of device memory below are settled; never 0.
    pub(crate) const SETTLED_BELOW: u32 = 0;
    /// The first epoch of the workgroup.
    pub(crate) const FIRST_EPOCH: u32 = 1;
    /// The present epoch of the workgroup.
    pub(crate) const EPOCH: u32 = 2;
    /// The cell of reads by several workgroups.
    pub(crate) const SEVERAL_WORKGROUPS: u32 = 3;
    /// For each class, the epoch below which the workgroup's own accesses are known to all of it.
    pub(crate) const ORDERED_BELOW: u32 = 4;
    /// All ones if a read after one by another invocation, which is not known to the whole workgroup, is not ordered
    /// after it for any invocation; otherwise 0.
    pub(crate) const READS_JOIN: u32 = 7;
    /// A barrier of the whole workgroup may take its epoch without a call up to here.
    pub(crate) const LAST_EPOCH: u32 = 8;
    /// Cells of workgroup memory below are settled for private accesses: [`FIRST_EPOCH`], or 0 if nothing is settled.
    pub(crate) const PRIVATE_SETTLED_BELOW: u32 = 9;
    /// From here on a word for each instruction: [`SETTLED_BELOW`] once it has made a call with an access to device
    /// memory. Its first access in a dispatch makes one, whatever its cells, so that observers know an invocation that
    /// executes it.
    pub(crate) const SITE_SETTLED_BELOW: u32 = 10;
    /// Words of the state.
    pub(crate) const WORDS: u32 = SITE_SETTLED_BELOW + super::MAX_SITES as u32;

    /// The words with which no access is settled, by their numbers; others are 0. Cells are 0 then, too.
    pub(crate) const NOTHING_SETTLED: [(u32, u32); 2] = [(FIRST_EPOCH, u32::MAX), (SEVERAL_WORKGROUPS, u32::MAX)];
}

impl InlineMemory {
    /// All slices, in order.
    pub fn slices(&self) -> impl Iterator<Item = GuestSlice> {
        self.planes.iter().flatten().copied().chain(self.shared).chain([self.state])
    }
}

/// Instructions that a byte can name, counted from 1: in kernels with more, checks are calls.
pub const MAX_SITES: usize = 254;
