//! Non-temporal stores: selects the buffers that a kernel only fills, with contiguous stores. If such a buffer is
//! larger than any cache, its lines are written non-temporally: they would not stay cached, and reading each line
//! before overwriting it would cost as much as writing it.
//!
//! Non-temporal stores are weakly ordered: [`Code::settle`](crate::back::Code::settle) orders them when a thread is
//! done. A kernel that releases its writes itself, by atomics or fences, has none.

use std::collections::HashMap;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::fast::RandomState;

use crate::simd::{InstData, Kernel, Row, Value};

/// Words from which a buffer counts as large: 32 MiB.
pub(in crate::back::x86) const MIN_NONTEMPORAL: u32 = 1 << 23;

/// Base addresses of buffers that are only filled.
#[derive(Debug, Default)]
pub(super) struct NontemporalStores(EntitySet<Value>);

impl NontemporalStores {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let insts = || kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts).copied();
        if kernel.releases {
            return Self::default();
        }
        let mut other_uses: SecondaryMap<Value, bool> = SecondaryMap::new();
        let mut descriptors: HashMap<Option<u64>, Vec<Value>, RandomState> = HashMap::default();
        for inst in insts() {
            let data = &kernel.insts[inst];
            let filled = match data {
                InstData::StoreRow { row, .. } => Some(row.base),
                _ => None,
            };
            data.for_each_use(|value| other_uses[value] |= Some(value) != filled);
            if let InstData::BufferBase { buffer } = data {
                descriptors.entry(kernel.constant(*buffer)).or_default().extend(&kernel.results[inst]);
            }
        }
        // A descriptor with an unknown number may alias any other.
        if descriptors.contains_key(&None) {
            return Self::default();
        }
        let filled = descriptors.into_values().filter(|bases| bases.iter().all(|&base| !other_uses[base]));
        let mut nontemporal = Self::default();
        nontemporal.0.extend(filled.flatten());
        nontemporal
    }

    /// Whether the row's buffer is accessed by contiguous stores only.
    pub(super) fn has(&self, row: &Row) -> bool {
        self.0.contains(row.base)
    }

    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }
}
