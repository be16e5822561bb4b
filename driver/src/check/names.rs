//! Names for findings: instructions as lines of the source, invocations, and memory as bindings and variables.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use cranelift_entity::SecondaryMap;
use spelter_locks::Mutex;
use spelter_shaders::check::observer::{Invocation, Memory};
use spelter_shaders::compile::Module;
use spelter_shaders::front::{Blocks, DataLayout, Language};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{AtomicOp, BindingKind, InstData, Kernel, Scope, Site, SiteAction, VariableSpace};

use super::finding::{FoundAccess, FoundInvocation};
use super::found_memory::{FoundMemory, FoundPlace};
use crate::shader_source::ShaderSource;

/// The names of a kernel.
#[derive(Debug)]
pub(super) struct Names {
    name: Arc<str>,
    source: Arc<ShaderSource>,
    /// Read again for the first finding.
    module: OnceLock<Option<Module>>,
    /// Read for the first repair of an update.
    blocks: OnceLock<Option<Blocks>>,
    /// The texts of source files that findings have shown, by their names: thousands of findings may show one.
    texts: Mutex<HashMap<Arc<str>, Option<Arc<str>>>>,
}

impl Names {
    pub(super) fn new(kernel: &Kernel, source: &Arc<ShaderSource>) -> Self {
        let (module, blocks, texts) = Default::default();
        Self { name: kernel.name.as_str().into(), source: Arc::clone(source), module, blocks, texts }
    }

    fn module(&self) -> Option<&Module> {
        self.module.get_or_init(|| self.source.module().ok()).as_ref()
    }

    /// The text of a source file, if the module has it.
    fn text(&self, file: &Arc<str>) -> Option<Arc<str>> {
        let mut texts = self.texts.lock();
        if let Some(known) = texts.get(file) {
            return known.clone();
        }
        let text: Option<Arc<str>> = self.module()?.source_text(file).map(Arc::from);
        texts.insert(Arc::clone(file), text.clone());
        text
    }

    /// The first eight bytes of the module's digest.
    fn hash(&self) -> u64 {
        self.source.digest().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// An instruction that an invocation executed.
    pub(super) fn access_by(&self, kernel: &Kernel, site: Site, by: Invocation, grid: WorkgroupGrid) -> FoundAccess {
        let invocation = grid.invocation(by, kernel.workgroup_size);
        FoundAccess { invocation: Some(invocation), ..self.access(kernel, site) }
    }

    /// An instruction.
    fn access(&self, kernel: &Kernel, site: Site) -> FoundAccess {
        let data = &kernel.sites[site];
        let line = kernel.line_of_word(data.word).cloned();
        let source = line.as_ref().and_then(|line| self.text(&line.file));
        let inlined_at = data.inlined_at.iter().filter_map(|&word| kernel.line_of_word(word).cloned()).collect();
        FoundAccess {
            action: action(&data.action),
            kernel: Arc::clone(&self.name),
            module: self.hash(),
            line,
            inlined_at,
            word: data.word,
            source,
            ..FoundAccess::default()
        }
    }

    /// Bytes that two accesses of an invocation's workgroup have in common.
    pub(super) fn memory(&self, kernel: &Kernel, memory: Memory, bytes: u64, buffers: &[GuestSlice]) -> FoundMemory {
        match memory {
            Memory::Workgroup(offset) => variable(kernel, offset, bytes),
            Memory::Device(address) => self
                .descriptor(kernel, address, bytes, buffers)
                .unwrap_or(FoundMemory::new(FoundPlace::Address(address), 0..bytes)),
        }
    }

    /// Memory with the name of the workgroup variable that an instruction accesses: variables may share it.
    pub(super) fn as_accessed(&self, memory: FoundMemory, kernel: &Kernel, site: Site) -> FoundMemory {
        let named = || self.module()?.workgroup_variable(kernel.sites[site].word);
        let is_variable = matches!(memory.place, FoundPlace::Variable { .. });
        match is_variable.then(named).flatten() {
            Some(name) => FoundMemory { place: FoundPlace::Variable { name: name.into() }, ..memory },
            None => memory,
        }
    }

    /// The language of the kernel.
    pub(super) fn language(&self) -> Language {
        self.module().map_or(Language::Spirv, Module::language)
    }

    /// The names with which an expression of the source may begin that is a place in some memory: of its variables, and
    /// of the members of a block of GLSL without an instance name. Empty if they are not known.
    pub(super) fn roots(&self, place: &FoundPlace) -> Vec<String> {
        let (set, binding) = match place {
            FoundPlace::Variable { name } if !name.is_empty() => return vec![name.to_string()],
            FoundPlace::Descriptor { set, binding, .. } => (*set, *binding),
            _ => return Vec::new(),
        };
        let names = self.module().map(Module::binding_names).unwrap_or_default();
        let own = names.into_iter().filter(|&(of_set, of, _)| (of_set, of) == (set, binding));
        let mut roots: Vec<String> = own.map(|(.., name)| name).collect();
        if self.language() == Language::Glsl && roots.len() > 1 {
            // Of several blocks at one binding the members of one are known.
            return Vec::new();
        }
        if self.language() == Language::Glsl
            && let Some(DataLayout::Struct { name, members }) =
                self.blocks().and_then(|blocks| blocks.buffers.get(&(set, binding)))
            && roots.contains(name)
        {
            roots.extend(members.iter().map(|member| member.name.clone()));
        }
        roots
    }

    /// The layouts of the module's blocks.
    fn blocks(&self) -> Option<&Blocks> {
        let read = || self.module()?.blocks(&self.name, &BTreeMap::new()).ok();
        self.blocks.get_or_init(read).as_ref()
    }

    /// The descriptor with this index in a dispatch; `None` for memory at a device address.
    pub(super) fn place(&self, kernel: &Kernel, index: u32) -> Option<FoundPlace> {
        let mut first = 0;
        for data in kernel.bindings.values() {
            if (first..first + data.count).contains(&index) {
                let names = self.module().map(Module::binding_names).unwrap_or_default();
                let named = |(set, binding, _): &&(u32, u32, String)| (*set, *binding) == (data.set, data.binding);
                let name = names.iter().find(named).map(|(_, _, name)| name.as_str().into());
                let element = index - first;
                return Some(FoundPlace::Descriptor { set: data.set, binding: data.binding, element, name });
            }
            first += data.count;
        }
        None
    }

    /// Bytes at an address, through the descriptor with this index.
    pub(super) fn through(
        &self,
        kernel: &Kernel,
        index: u32,
        address: u64,
        bytes: u64,
        buffers: &[GuestSlice],
    ) -> Option<FoundMemory> {
        let buffer = buffers.get(index as usize)?;
        let start = buffer.address() as u64;
        if !(start..start.saturating_add(buffer.len())).contains(&address) {
            return None;
        }
        let place = self.place(kernel, index)?;
        Some(FoundMemory::new(place, address - start..address - start + bytes))
    }

    /// The first descriptor that contains an address.
    fn descriptor(&self, kernel: &Kernel, address: u64, bytes: u64, buffers: &[GuestSlice]) -> Option<FoundMemory> {
        (0..buffers.len() as u32).find_map(|index| self.through(kernel, index, address, bytes, buffers))
    }
}

/// A kernel with its names, for findings about its dispatches.
#[derive(Debug)]
pub(crate) struct KernelNames {
    pub(super) names: Names,
    pub(super) kernel: Kernel,
    /// The bytes of each atomic; 0 for what is none.
    atomic_bytes: SecondaryMap<Site, u32>,
}

impl KernelNames {
    /// Of a kernel that was compiled from a source, with its checks.
    pub(super) fn new(names: Names, kernel: Kernel) -> Self {
        let mut atomic_bytes = SecondaryMap::new();
        for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
            if let InstData::Sync { site, place: Some(_), bytes, .. } = kernel.insts[inst] {
                atomic_bytes[site] = bytes;
            }
        }
        Self { names, kernel, atomic_bytes }
    }

    /// The source line of a word of the module.
    pub(crate) fn line(&self, word: u32) -> Option<String> {
        self.kernel.line_of_word(word).map(ToString::to_string)
    }

    /// An instruction.
    pub(super) fn access(&self, site: Site) -> FoundAccess {
        self.names.access(&self.kernel, site)
    }

    /// An instruction that an invocation executed.
    pub(super) fn access_by(&self, site: Site, by: Invocation, grid: WorkgroupGrid) -> FoundAccess {
        self.names.access_by(&self.kernel, site, by, grid)
    }

    /// The first descriptor of a dispatch that contains an address.
    pub(super) fn descriptor(&self, address: u64, bytes: u64, buffers: &[GuestSlice]) -> Option<FoundMemory> {
        self.names.descriptor(&self.kernel, address, bytes, buffers)
    }

    /// The kind of a descriptor, by its index in a dispatch; `None` for memory at a device address.
    pub(super) fn binding_kind(&self, reference: u32) -> Option<BindingKind> {
        let mut first = 0;
        self.kernel.bindings.values().find_map(|data| {
            let has = (first..first + data.count).contains(&reference);
            first += data.count;
            has.then_some(data.kind)
        })
    }

    /// Whether an instruction is an atomic whose scope includes other commands.
    pub(super) fn is_atomic(&self, site: Site) -> bool {
        let action = &self.kernel.sites[site].action;
        matches!(action, SiteAction::Atomic { scope: Scope::QueueFamily | Scope::Device | Scope::CrossDevice, .. })
    }

    /// The bytes of such an atomic.
    pub(super) fn atomic_bytes(&self, site: Site) -> Option<u32> {
        self.is_atomic(site).then(|| self.atomic_bytes[site])
    }
}

/// The workgroups of a dispatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkgroupGrid {
    /// Workgroups in each direction.
    pub(super) groups: [u32; 3],
    /// The id of the first.
    pub(super) base: [u32; 3],
}

impl WorkgroupGrid {
    /// The ids of an invocation.
    pub(super) fn invocation(self, by: Invocation, workgroup_size: [u32; 3]) -> FoundInvocation {
        let local = position(by.local.into(), workgroup_size);
        FoundInvocation { workgroup: self.workgroup(by.workgroup), local }
    }

    /// The id of the workgroup with this linear number.
    pub(super) fn workgroup(self, number: u64) -> [u32; 3] {
        let position = position(number, self.groups);
        std::array::from_fn(|axis| position[axis].wrapping_add(self.base[axis]))
    }
}

/// The position with this linear number: x fastest.
fn position(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}

/// The workgroup variable at an offset in workgroup memory, where variables are packed at multiples of 16 bytes.
fn variable(kernel: &Kernel, offset: u32, bytes: u64) -> FoundMemory {
    let mut start = 0;
    for data in kernel.variables.values().filter(|data| data.space == VariableSpace::Workgroup) {
        if (start..start + data.bytes).contains(&offset) {
            let within = u64::from(offset - start);
            let place = FoundPlace::Variable { name: data.name.as_str().into() };
            return FoundMemory::new(place, within..within + bytes);
        }
        start += data.bytes.next_multiple_of(16);
    }
    FoundMemory::new(FoundPlace::Variable { name: "".into() }, offset.into()..u64::from(offset) + bytes)
}

/// What an instruction does, in a word or two.
fn action(action: &SiteAction) -> String {
    match action {
        SiteAction::Read(_) => "read".to_owned(),
        SiteAction::Write(_) => "write".to_owned(),
        SiteAction::Atomic { op: AtomicOp::Load | AtomicOp::HalfLoad, .. } => "atomic read".to_owned(),
        SiteAction::Atomic { op: AtomicOp::Store | AtomicOp::HalfStore, .. } => "atomic write".to_owned(),
        SiteAction::Atomic { .. } => "atomic update".to_owned(),
        SiteAction::Fence { .. } => "memory barrier".to_owned(),
        SiteAction::Barrier { execution: Scope::Subgroup, .. } => "subgroup barrier".to_owned(),
        SiteAction::Barrier { .. } => "barrier".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ids() {
        let grid = WorkgroupGrid { groups: [4, 3, 2], base: [10, 0, 0] };
        assert_eq!(grid.workgroup(0), [10, 0, 0]);
        assert_eq!(grid.workgroup(4 * 3 + 4 + 2), [12, 1, 1]);
    }
}
