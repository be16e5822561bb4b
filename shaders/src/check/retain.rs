//! Removes checks that a replay does not need: calls are most of what it costs.

use cranelift_entity::EntitySet;

use crate::ir::{Binding, InstData, Kernel, Place, Value};

/// Removes all checks and syncs of a kernel but those of accesses that may be to the memory of these bindings. A
/// pointer that is a value may be to any, if there are bindings.
pub fn keep_accesses(kernel: &mut Kernel, bindings: &EntitySet<Binding>) {
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        insts.retain(|&inst| match kernel.insts[inst] {
            InstData::Check { place, .. } => is_of(kernel, place, bindings),
            InstData::CheckImage { image, .. } => may_be(kernel, image, bindings),
            InstData::Sync { place, .. } => place.is_some_and(|place| is_of(kernel, place, bindings)),
            _ => true,
        });
        kernel.blocks[block].insts = insts;
    }
}

fn is_of(kernel: &Kernel, place: Place, bindings: &EntitySet<Binding>) -> bool {
    matches!(place, Place::Buffer { buffer, .. } if may_be(kernel, buffer, bindings))
}

fn may_be(kernel: &Kernel, memory: Value, bindings: &EntitySet<Binding>) -> bool {
    match kernel.definition(memory) {
        Some(&InstData::Buffer { binding, .. }) => bindings.contains(binding),
        _ => !bindings.is_empty(),
    }
}
