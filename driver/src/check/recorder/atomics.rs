//! The atomics of a replay: what each reads from, and its place in the modification order of its location.

use foldhash::HashMap;
use spelter_memory_model::event::Scope as MemoryScope;
use spelter_shaders::ir::{SiteAction, StorageClass};

use super::{AccessedMemory, Recorder};
use crate::check::log::{Atomics, Entry, Index, MaybeIndex};
use crate::check::operation::scope;

/// The last write of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastWrite {
    /// None in the window that matters: nothing, or a plain write.
    Plain,
    Atomic(Index),
}

/// An instance of a scope that orders atomics of one location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ScopeInstance {
    /// The location's index into [`Log::atomics`].
    location: u32,
    scope: MemoryScope,
    number: u32,
}

/// The atomics of one kind of memory.
#[derive(Debug, Default)]
pub(super) struct Atomic {
    /// Indices into [`Log::atomics`].
    locations: HashMap<AccessedMemory, u32>,
    /// The last writes of the bytes of each word that an atomic wrote, by object and number of the word.
    writers: HashMap<(u32, u64), [LastWrite; 4]>,
    /// The last write with a scope in each instance of the scope.
    last_in: HashMap<ScopeInstance, Index>,
}

impl Atomic {
    /// The bytes that it takes.
    pub(super) fn used(&self) -> usize {
        self.locations.len() * 48 + self.writers.len() * 64 + self.last_in.len() * 24
    }
}

impl Recorder {
    fn atomic_memory(&mut self, object: u32) -> &mut Atomic {
        if object == 0 { &mut self.device } else { &mut self.shared }
    }

    /// Notes a write that no acquire can read from.
    pub(super) fn overwrite(&mut self, AccessedMemory { object, start, bytes, .. }: AccessedMemory) {
        let memory = self.atomic_memory(object);
        if memory.writers.is_empty() {
            return;
        }
        for byte in start..start.saturating_add(bytes.into()) {
            if let Some(word) = memory.writers.get_mut(&(object, byte / 4)) {
                word[(byte % 4) as usize] = LastWrite::Plain;
            }
        }
    }

    /// Notes the atomic's source and its place among the atomic writes of its bytes.
    pub(super) fn order(&mut self, index: Index, action: SiteAction) {
        let SiteAction::Atomic { class, scope: within, .. } = action else { return };
        let entry = *self.log.entry(index);
        let Entry { object, start, bytes, reference, .. } = entry;
        let key = AccessedMemory { object, start, bytes, reference };
        let free = self.log.atomics.len() as u32;
        let memory = self.atomic_memory(entry.object);
        let which = *memory.locations.entry(key).or_insert(free);
        let bytes = entry.start..entry.start.saturating_add(entry.bytes.into());
        let writer = |byte: u64| {
            memory.writers.get(&(entry.object, byte / 4)).map_or(LastWrite::Plain, |word| word[(byte % 4) as usize])
        };
        let mut sources = bytes.clone().map(writer);
        let source = match sources.next() {
            Some(LastWrite::Atomic(write)) if sources.all(|other| other == LastWrite::Atomic(write)) => write.into(),
            _ => MaybeIndex::NONE,
        };
        if entry.wrote {
            for byte in bytes {
                let word = memory.writers.entry((entry.object, byte / 4)).or_insert([LastWrite::Plain; 4]);
                word[(byte % 4) as usize] = LastWrite::Atomic(index);
            }
        }
        let all = if class == StorageClass::Workgroup { MemoryScope::Workgroup } else { MemoryScope::QueueFamily };
        let scope = scope(within).min(all);
        if which == free {
            self.log.atomics.push(Atomics { scope, mixed: false });
            self.last_writes.push(MaybeIndex::NONE);
        }
        let slot = &mut self.log.entries[index.0 as usize];
        slot.which = which;
        slot.source = source;
        if entry.wrote {
            slot.overwrites = std::mem::replace(&mut self.last_writes[which as usize], index.into());
            let first = slot.overwrites == MaybeIndex::NONE;
            let atomics = &mut self.log.atomics[which as usize];
            // Reads are in no modification order: their scopes do not matter to it.
            atomics.mixed |= !first && atomics.scope != scope;
            atomics.scope = scope;
            let thread = &self.log.threads[entry.thread as usize];
            let instance = match scope {
                MemoryScope::Invocation => entry.thread,
                MemoryScope::Subgroup => thread.subgroup,
                MemoryScope::Workgroup => thread.group,
                _ => 0,
            };
            let memory = if entry.object == 0 { &mut self.device } else { &mut self.shared };
            if let Some(before) =
                memory.last_in.insert(ScopeInstance { location: which, scope, number: instance }, index)
            {
                slot.follows = before.into();
            }
            // Another workgroup may read it.
            if entry.object == 0 {
                self.keep();
            }
        }
    }
}
