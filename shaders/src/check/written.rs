//! The bindings through which a kernel writes, and the checks that are not needed for the others.
//!
//! Where no binding that the kernel writes shares memory with one that it only reads, no access to the latter can race:
//! most inputs need no checks. Whether they share memory is known for each dispatch.

use cranelift_entity::EntitySet;

use crate::image;
use crate::ir::{Binding, BindingKind, InstData, Kernel, Place, SiteAction, Value};

/// The bindings through which the kernel may write.
pub fn written_bindings(kernel: &Kernel) -> EntitySet<Binding> {
    let mut written = EntitySet::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let memory = match kernel.insts[inst] {
            InstData::Store { place: Place::Buffer { buffer, .. }, .. } => buffer,
            InstData::Atomic { op, place: Place::Buffer { buffer, .. }, .. } if !op.is_load() => buffer,
            InstData::Image { op, image, .. } if op.kind == image::Kind::Write => image,
            _ => continue,
        };
        match binding_of(kernel, memory) {
            Some(binding) => _ = written.insert(binding),
            None => {
                // A pointer that is a value: any of those that shaders can write.
                let writable = |kind| {
                    matches!(
                        kind,
                        BindingKind::StorageBuffer | BindingKind::StorageImage | BindingKind::StorageTexelBuffer
                    )
                };
                let all = kernel.bindings.iter().filter(|(_, data)| writable(data.kind) && !data.read_only);
                written.extend(all.map(|(binding, _)| binding));
            }
        }
    }
    written
}

/// The bindings from whose memory the kernel may read: what another one holds does not matter to it.
pub fn read_bindings(kernel: &Kernel) -> EntitySet<Binding> {
    let mut read = EntitySet::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let memory = match kernel.insts[inst] {
            InstData::Load { place: Place::Buffer { buffer, .. }, .. } => buffer,
            InstData::Atomic { op, place: Place::Buffer { buffer, .. }, .. } if !op.is_store() => buffer,
            InstData::Image { op, image, .. } if op.kind != image::Kind::Write => image,
            _ => continue,
        };
        match binding_of(kernel, memory) {
            Some(binding) => _ = read.insert(binding),
            None => read.extend(kernel.bindings.keys()),
        }
    }
    read
}

/// Removes the checks of reads through bindings that the kernel does not write.
pub fn drop_unwritten(kernel: &mut Kernel) {
    let written = written_bindings(kernel);
    for number in 0..kernel.layout.len() {
        let block = kernel.layout[number];
        let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
        insts.retain(|&inst| {
            let (site, memory) = match kernel.insts[inst] {
                InstData::Check { site, place: Place::Buffer { buffer, .. }, .. } => (site, buffer),
                InstData::CheckImage { site, image, .. } => (site, image),
                _ => return true,
            };
            let reads = matches!(kernel.sites[site].action, SiteAction::Read(_));
            !reads || binding_of(kernel, memory).is_none_or(|binding| written.contains(binding))
        });
        kernel.blocks[block].insts = insts;
    }
}

/// The binding of a buffer or an image, if it is known.
pub(super) fn binding_of(kernel: &Kernel, memory: Value) -> Option<Binding> {
    match kernel.definition(memory) {
        Some(&InstData::Buffer { binding, .. }) => Some(binding),
        _ => None,
    }
}
