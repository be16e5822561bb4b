//! Repairs as changes of a kernel as it was read: what the words of a repair say, applied literally.

use spelter_memory_model::event::{self, Class};
use spelter_memory_model::repair::Edit;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{
    Access, Binding, Inst, InstData, Kernel, MemoryModel, Place, Scope, Semantics, SiteData, Value, Variable,
};

use super::place::{At, Text};

/// A kernel that is being changed.
pub(super) struct Changed {
    pub(super) kernel: Kernel,
    language: Language,
    inserted: Vec<(At, InstData)>,
}

/// Words of inserted instructions are these and those above: no module has as many.
const INSERTED: u32 = 1 << 31;

/// Whether an instruction was inserted.
pub(super) fn is_inserted(word: u32) -> bool {
    word >= INSERTED
}

/// The bits of a class in memory semantics.
fn bit(class: Class) -> u32 {
    match class {
        Class::Uniform => 0x40,
        Class::Workgroup => 0x100,
        Class::Image => 0x800,
        Class::Output => 0x1000,
    }
}

const ACQUIRE: u32 = 0x2;
const RELEASE: u32 = 0x4;
const ACQUIRE_RELEASE: u32 = 0x8;

/// Acquire and release semantics for a class, with the flags if the module has to declare them.
fn full(kernel: &Kernel, class: Class) -> Semantics {
    let flags = match kernel.memory_model {
        MemoryModel::Vulkan => Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE,
        MemoryModel::Glsl450 | MemoryModel::Wgsl => 0,
    };
    Semantics(ACQUIRE_RELEASE | bit(class) | flags)
}

/// A control barrier of the workgroup for a class.
pub(super) fn barrier(kernel: &Kernel, class: Class) -> InstData {
    let semantics = full(kernel, class);
    InstData::Barrier { execution: Scope::Workgroup, memory: Scope::Workgroup, semantics }
}

/// A memory barrier for a class.
pub(super) fn fence(kernel: &Kernel, class: Class) -> InstData {
    let scope = if kernel.memory_model == MemoryModel::Vulkan { Scope::QueueFamily } else { Scope::Device };
    InstData::Fence { scope, semantics: full(kernel, class) }
}

fn scope(scope: event::Scope) -> Scope {
    match scope {
        event::Scope::Invocation => Scope::Invocation,
        event::Scope::Subgroup => Scope::Subgroup,
        event::Scope::Workgroup => Scope::Workgroup,
        event::Scope::QueueFamily => Scope::QueueFamily,
        event::Scope::Device => Scope::Device,
        event::Scope::CrossDevice => Scope::CrossDevice,
    }
}

/// What a memory instruction accesses, as far as declarations tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Binding(Binding),
    Variable(Variable),
}

fn binding(kernel: &Kernel, value: Value) -> Option<Declared> {
    match *kernel.definition(value)? {
        InstData::Buffer { binding, .. } => Some(Declared::Binding(binding)),
        _ => None,
    }
}

fn declared(kernel: &Kernel, inst: Inst) -> Option<Declared> {
    match kernel.insts[inst] {
        InstData::Load { place, .. } | InstData::Store { place, .. } | InstData::Atomic { place, .. } => match place {
            Place::Buffer { buffer, .. } => binding(kernel, buffer),
            Place::Variable { variable, .. } => Some(Declared::Variable(variable)),
            Place::Push { .. } => None,
        },
        InstData::Image { image, .. } => binding(kernel, image),
        _ => None,
    }
}

fn access_mut(data: &mut InstData) -> Option<&mut Access> {
    match data {
        InstData::Load { access, .. } | InstData::Store { access, .. } | InstData::Image { access, .. } => Some(access),
        _ => None,
    }
}

fn order(semantics: &mut Semantics, acquire: bool, release: bool) {
    let acquire = acquire || semantics.acquires();
    let release = release || semantics.releases();
    semantics.0 &= !(ACQUIRE | RELEASE | ACQUIRE_RELEASE | 0x10);
    semantics.0 |= match (acquire, release) {
        (true, true) => ACQUIRE_RELEASE,
        (true, false) => ACQUIRE,
        (false, true) => RELEASE,
        (false, false) => 0,
    };
}

impl Changed {
    pub(super) fn new(kernel: &Kernel, language: Language) -> Self {
        Self { kernel: kernel.clone(), language, inserted: Vec::new() }
    }

    /// Inserts instructions at a place of the kernel as it was read.
    pub(super) fn insert(&mut self, at: At, insts: impl IntoIterator<Item = InstData>) {
        self.inserted.extend(insts.into_iter().map(|inst| (at, inst)));
    }

    /// The kernel with all changes.
    pub(super) fn finish(mut self) -> Kernel {
        let kernel = &mut self.kernel;
        // From the end, so that indices stay valid; those of one place in their order.
        let mut inserted: Vec<_> = self.inserted.into_iter().enumerate().collect();
        inserted.sort_by_key(|(number, (at, _))| (*at, *number));
        for (number, (at, data)) in inserted.into_iter().rev() {
            let inst = kernel.insts.push(data);
            kernel.origins[inst] = INSERTED + number as u32;
            let block = kernel.layout[at.block];
            kernel.blocks[block].insts.insert(at.index, inst);
        }
        self.kernel
    }

    /// Whether the binding of the second instruction could be replaced by that of the first one.
    pub(super) fn share_binding(&mut self, first: &SiteData, second: &SiteData) -> Option<()> {
        let of = |site: &SiteData| declared(&self.kernel, self.insts(site).first().copied()?);
        let (Declared::Binding(first), Declared::Binding(second)) = (of(first)?, of(second)?) else { return None };
        for data in self.kernel.insts.values_mut() {
            if let InstData::Buffer { binding, .. } = data
                && *binding == second
            {
                *binding = first;
            }
        }
        Some(())
    }

    fn insts(&self, site: &SiteData) -> Vec<Inst> {
        let text = Text::new(&self.kernel);
        let inst = |at: At| self.kernel.blocks[self.kernel.layout[at.block]].insts[at.index];
        text.of_site(site).into_iter().map(inst).collect()
    }

    /// Declares what the instructions access `coherent`: all instructions that access it are.
    pub(super) fn coherent(&mut self, sites: [&SiteData; 2]) {
        let own: Vec<Inst> = sites.iter().flat_map(|site| self.insts(site)).collect();
        let named: Vec<Declared> = own.iter().filter_map(|&inst| declared(&self.kernel, inst)).collect();
        let vulkan = self.kernel.memory_model == MemoryModel::Vulkan;
        for inst in self.kernel.insts.keys().collect::<Vec<_>>() {
            let is_named = declared(&self.kernel, inst).is_some_and(|declared| named.contains(&declared));
            if !(is_named || own.contains(&inst)) {
                continue;
            }
            if let Some(access) = access_mut(&mut self.kernel.insts[inst]) {
                access.non_private = true;
                if vulkan {
                    access.available_visible = Some(Scope::QueueFamily);
                }
            }
        }
    }

    /// Makes an edit of the memory model. `None` if it is none of a kernel, or has a place of its own.
    pub(super) fn edit(
        &mut self,
        edit: &Edit<event::Site>,
        site: &dyn Fn(event::Site) -> Option<SiteData>,
    ) -> Option<()> {
        let (one, other) = edit.places();
        let data = site(one)?;
        match *edit {
            Edit::Barrier(..) | Edit::Atomic(..) => return None,
            Edit::Coherent(..) => {
                self.coherent([&data, &site(other?)?]);
                return Some(());
            }
            Edit::Order(_, class) if self.language != Language::Spirv => {
                self.order_in_words(&data, class);
                return Some(());
            }
            _ => {}
        }
        let full = full(&self.kernel, Class::Uniform).0 & (Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE);
        for inst in self.insts(&data) {
            let data = &mut self.kernel.insts[inst];
            if let Some(access) = access_mut(data) {
                match *edit {
                    Edit::NonPrivate(_) => access.non_private = true,
                    Edit::Available(_, within) | Edit::Visible(_, within) => {
                        access.non_private = true;
                        access.available_visible = Some(scope(within));
                    }
                    _ => return None,
                }
                continue;
            }
            let (reads, writes) = match data {
                InstData::Atomic { op, .. } => (!op.is_store(), !op.is_load()),
                _ => (true, true),
            };
            let (InstData::Atomic { scope: within, semantics, .. }
            | InstData::Fence { scope: within, semantics }
            | InstData::Barrier { memory: within, semantics, .. }) = data
            else {
                return None;
            };
            match *edit {
                Edit::MakeAvailable(_) => semantics.0 |= Semantics::MAKE_AVAILABLE,
                Edit::MakeVisible(_) => semantics.0 |= Semantics::MAKE_VISIBLE,
                Edit::Semantics(_, class) => semantics.0 |= bit(class),
                Edit::Release(_, class) => {
                    order(semantics, false, true);
                    semantics.0 |= bit(class);
                }
                Edit::Acquire(_, class) => {
                    order(semantics, true, false);
                    semantics.0 |= bit(class);
                }
                Edit::Order(_, class) => {
                    order(semantics, reads, writes);
                    semantics.0 |= bit(class) | full;
                }
                Edit::Widen(_, wider) => *within = scope(wider),
                _ => return None,
            }
        }
        Some(())
    }

    /// The functions of a language by which an atomic or a barrier orders memory of a class, too.
    fn order_in_words(&mut self, site: &SiteData, class: Class) {
        let places = Text::new(&self.kernel).of_site(site);
        for at in places {
            let after = At { index: at.index + 1, ..at };
            if self.language == Language::Wgsl {
                let barrier = barrier(&self.kernel, class);
                self.insert(after, [barrier]);
            } else {
                let fence = fence(&self.kernel, class);
                self.insert(at, [fence.clone()]);
                self.insert(after, [fence]);
            }
        }
    }
}
