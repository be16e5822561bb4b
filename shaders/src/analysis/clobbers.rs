//! The memory that a loop may change.
//!
//! Each variable has its own memory; storage buffers may alias. Barriers, fences and acquiring atomics make writes of
//! other invocations visible; racing writes without one of these need not become visible.

use cranelift_entity::EntitySet;

use super::Loops;
use crate::image::Kind;
use crate::ir::{Access, BufferSpace, InstData, Kernel, Place, Semantics, Variable, VariableSpace};

/// Effects of a loop on memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clobbers {
    /// The loop writes to a storage buffer or image.
    storage: bool,
    /// Writes of other invocations may become visible.
    others: bool,
    /// Variables that the loop writes, or that other invocations share if their writes may become visible.
    variables: EntitySet<Variable>,
}

impl Clobbers {
    /// The effects of each loop, inner loops included.
    pub(crate) fn of_loops(kernel: &Kernel, loops: &Loops) -> Vec<Self> {
        let mut all = vec![Self::default(); loops.all.len()];
        for &block in &kernel.layout {
            let Some(number) = loops.of(block) else { continue };
            for &inst in &kernel.blocks[block].insts {
                all[number].add(&kernel.insts[inst]);
            }
        }
        // Inner loops have greater numbers, so effects propagate outwards in one pass.
        for number in (0..all.len()).rev() {
            if all[number].others {
                let shared = kernel.variables.iter().filter(|(_, data)| data.space == VariableSpace::Workgroup);
                all[number].variables.extend(shared.map(|(variable, _)| variable));
            }
            if let Some(parent) = loops.all[number].parent {
                let inner = all[number].clone();
                let outer = &mut all[parent];
                outer.storage |= inner.storage;
                outer.others |= inner.others;
                outer.variables.extend(inner.variables.iter());
            }
        }
        all
    }

    fn add(&mut self, data: &InstData) {
        match data {
            InstData::Store { place, .. } => self.write(place),
            InstData::Atomic { place, semantics, unequal, .. } => {
                self.write(place);
                self.others |= acquires(*semantics) || acquires(*unequal);
            }
            InstData::Image { op, .. } if op.kind == Kind::Write => self.storage = true,
            InstData::Barrier { .. } | InstData::Fence { .. } => self.others = true,
            _ => {}
        }
    }

    fn write(&mut self, place: &Place) {
        match place {
            Place::Buffer { .. } => self.storage = true,
            Place::Variable { variable, .. } => _ = self.variables.insert(*variable),
            Place::Push { .. } => {}
        }
    }

    /// Whether a load may give another value in another iteration.
    pub(crate) fn may_change(&self, place: &Place, access: Access) -> bool {
        if access.volatile {
            return true;
        }
        match place {
            Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. } => false,
            // Invocations may wait for each other with coherent loads, with or without a forward progress guarantee.
            _ if access.non_private || access.available_visible.is_some() => true,
            Place::Buffer { .. } => self.storage || self.others,
            Place::Variable { variable, .. } => self.variables.contains(*variable),
        }
    }
}

/// Whether the semantics are acquire, acquire-release or sequentially consistent.
fn acquires(semantics: Semantics) -> bool {
    semantics.0 & (0x2 | 0x8 | 0x10) != 0
}
