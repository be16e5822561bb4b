//! Repairs as changes of a kernel as it was read: what the words of a repair say, applied literally.

use spelter_memory_model::event::{self, Class};
use spelter_memory_model::repair::Edit;
use spelter_shaders::front::Language;
use spelter_shaders::ir::{
    Access, AtomicOp, Binding, BindingKind, Block, BlockCall, Inst, InstData, Kernel, MemoryModel, Place, Scope,
    Semantics, SiteAction, SiteData, StorageClass, Type, Value, Variable, Width,
};

use super::place::{At, Text};
use crate::check::words::{AtomicRole, Sides};

/// A kernel that is being changed.
pub(super) struct Changed {
    pub(super) kernel: Kernel,
    language: Language,
    /// Where memory barriers at a control barrier are inserted.
    sides: Sides,
    pub(super) inserted: Vec<(At, InstData)>,
    /// Instructions on edges between blocks, each with the number of the inserted one whose twin it is.
    pub(super) on_edges: Vec<((Block, Block), usize)>,
    pub(super) removed: Vec<Inst>,
}

/// Words of inserted instructions are these and those above: no module has as many.
const INSERTED: u32 = 1 << 31;

/// Whether an instruction was inserted.
pub(super) fn is_inserted(word: u32) -> bool {
    word >= INSERTED
}

/// The class of what a site accesses.
pub(super) fn class_of(site: &SiteData) -> Class {
    match site.action.class() {
        Some(StorageClass::Workgroup) => Class::Workgroup,
        Some(StorageClass::Image) => Class::Image,
        _ => Class::Uniform,
    }
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
const FLAGS: u32 = Semantics::MAKE_AVAILABLE | Semantics::MAKE_VISIBLE;

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
    fence_of(kernel, &[class])
}

/// A memory barrier for some classes.
fn fence_of(kernel: &Kernel, classes: &[Class]) -> InstData {
    let scope = if kernel.memory_model == MemoryModel::Vulkan { Scope::QueueFamily } else { Scope::Device };
    let semantics = classes.iter().fold(0, |bits, class| bits | full(kernel, *class).0);
    InstData::Fence { scope, semantics: Semantics(semantics) }
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

/// What an atomic orders: it acquires or releases memory of these classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicOrder<'a> {
    pub(super) classes: &'a [Class],
    pub(super) acquires: bool,
}

impl AtomicOrder<'_> {
    const RELAXED: Self = AtomicOrder { classes: &[], acquires: false };
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
        let (inserted, on_edges, removed) = Default::default();
        Self { kernel: kernel.clone(), language, sides: Sides::Both, inserted, on_edges, removed }
    }

    /// The same, with memory barriers on these sides of control barriers.
    pub(super) fn on(self, sides: Sides) -> Self {
        Self { sides, ..self }
    }

    /// Inserts instructions at a place of the kernel as it was read.
    pub(super) fn insert(&mut self, at: At, insts: impl IntoIterator<Item = InstData>) {
        self.inserted.extend(insts.into_iter().map(|inst| (at, inst)));
    }

    /// Inserts instructions at a place, and on edges that lead past it: invocations meet there as at one instruction.
    pub(super) fn insert_around(
        &mut self,
        at: At,
        edges: &[(usize, usize)],
        insts: impl IntoIterator<Item = InstData>,
    ) {
        let block = |position: usize| self.kernel.layout[position];
        let edges: Vec<_> = edges.iter().map(|&(from, to)| (block(from), block(to))).collect();
        let start = self.inserted.len();
        self.insert(at, insts);
        let twins = start..self.inserted.len();
        self.on_edges.extend(edges.iter().flat_map(|&edge| twins.clone().map(move |number| (edge, number))));
    }

    /// Removes the instruction at a place of the kernel as it was read.
    pub(super) fn remove(&mut self, at: At) {
        self.removed.push(self.kernel.blocks[self.kernel.layout[at.block]].insts[at.index]);
    }

    /// Replaces each edge by a block with the instructions that are on it.
    fn split_edges(&mut self) {
        let mut edges: Vec<_> = self.on_edges.iter().map(|(edge, _)| *edge).collect();
        edges.dedup();
        let kernel = &mut self.kernel;
        // Those that come to the places meet them in the order of the text.
        self.on_edges.sort_by_key(|(_, number)| (self.inserted[*number].0, *number));
        for (from, to) in edges {
            let Some(&end) = kernel.blocks[from].insts.last() else { continue };
            let calls = kernel.insts[end].targets().iter().filter(|call| call.block == to).count();
            for _ in 0..calls {
                let new = kernel.blocks.push(Default::default());
                let own = self.on_edges.iter().filter(|(edge, _)| *edge == (from, to));
                for &(_, number) in own {
                    let inst = kernel.insts.push(self.inserted[number].1.clone());
                    kernel.origins[inst] = INSERTED + number as u32;
                    kernel.blocks[new].insts.push(inst);
                }
                let mut targets = kernel.insts[end].targets_mut();
                let Some(call) = targets.iter_mut().find(|call| call.block == to) else { continue };
                let old = std::mem::replace(&mut **call, BlockCall { block: new, args: Default::default() });
                drop(targets);
                let jump = kernel.insts.push(InstData::Jump { to: old });
                kernel.blocks[new].insts.push(jump);
                let place = kernel.layout.iter().position(|&block| block == to).unwrap_or(kernel.layout.len());
                kernel.layout.insert(place, new);
            }
        }
    }

    /// The kernel with all changes.
    pub(super) fn finish(mut self) -> Kernel {
        let kernel = &mut self.kernel;
        // From the end, so that indices stay valid; those of one place in their order.
        let mut inserted: Vec<_> = self.inserted.iter().enumerate().collect();
        inserted.sort_by_key(|(number, (at, _))| (*at, *number));
        for (number, (at, data)) in inserted.into_iter().rev() {
            let inst = kernel.insts.push(data.clone());
            kernel.origins[inst] = INSERTED + number as u32;
            let block = kernel.layout[at.block];
            kernel.blocks[block].insts.insert(at.index, inst);
        }
        for &block in &kernel.layout {
            kernel.blocks[block].insts.retain(|inst| !self.removed.contains(inst));
        }
        self.split_edges();
        self.kernel
    }

    /// Whether the binding of the second instruction could be replaced by that of the first one: both are buffers,
    /// texel buffers or images, whose elements have one size. An index would mean another address otherwise.
    pub(super) fn share_binding(&mut self, first: &SiteData, second: &SiteData) -> Option<()> {
        let of = |site: &SiteData| declared(&self.kernel, self.insts(site).first().copied()?);
        let (Declared::Binding(first), Declared::Binding(second)) = (of(first)?, of(second)?) else { return None };
        let kind = |binding| {
            let data = &self.kernel.bindings[binding];
            (resource(data.kind), data.element_bytes)
        };
        if kind(first) != kind(second) {
            return None;
        }
        for data in self.kernel.insts.values_mut() {
            if let InstData::Buffer { binding, .. } = data
                && *binding == second
            {
                *binding = first;
            }
        }
        Some(())
    }

    /// Whether a kernel may write through the binding of an instruction; so it may through what has no binding.
    pub(super) fn is_writable(&self, site: &SiteData) -> bool {
        let inst = self.insts(site).first().copied();
        match inst.and_then(|inst| declared(&self.kernel, inst)) {
            Some(Declared::Binding(binding)) => {
                let data = &self.kernel.bindings[binding];
                let is_storage = matches!(
                    data.kind,
                    BindingKind::StorageBuffer | BindingKind::StorageImage | BindingKind::StorageTexelBuffer
                );
                is_storage && !data.read_only
            }
            _ => true,
        }
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

    /// Makes an access atomic, as far as it is one of an integer of 32 bits. `None` if it is none.
    pub(super) fn atomic(&mut self, site: &SiteData, within: event::Scope, order: AtomicOrder<'_>) -> Option<()> {
        let [inst] = self.insts(site)[..] else { return None };
        let flags = full(&self.kernel, Class::Uniform).0 & FLAGS;
        let added = match order.classes {
            [] => 0,
            classes => {
                let (order, flag) = match order.acquires {
                    true => (ACQUIRE, Semantics::MAKE_VISIBLE),
                    false => (RELEASE, Semantics::MAKE_AVAILABLE),
                };
                classes.iter().fold(order | flags & flag, |bits, class| bits | bit(*class))
            }
        };
        let (op, place, value) = match &mut self.kernel.insts[inst] {
            InstData::Load { ty: Type::I32, width: Width::Word, place, .. } => (AtomicOp::Load, *place, None),
            InstData::Store { width: Width::Word, place, value, .. } => (AtomicOp::Store, *place, Some(*value)),
            InstData::Atomic { semantics, .. } => {
                if added != 0 {
                    self::order(semantics, order.acquires, !order.acquires);
                    semantics.0 |= added & !(ACQUIRE | RELEASE);
                }
                return Some(());
            }
            _ => return None,
        };
        if value.is_some_and(|value| self.kernel.ty(value) != Type::I32) {
            return None;
        }
        let (semantics, unequal) = (Semantics(added), Semantics(0));
        let (comparator, wide, scope) = (None, None, scope(within));
        self.kernel.insts[inst] = InstData::Atomic { op, place, value, comparator, wide, scope, semantics, unequal };
        Some(())
    }

    /// Makes an edit of the memory model. `None` if the edit concerns the API, or is applied elsewhere.
    pub(super) fn edit(
        &mut self,
        edit: &Edit<event::Site>,
        site: &dyn Fn(event::Site) -> Option<SiteData>,
    ) -> Option<()> {
        let (one, other) = edit.places();
        let data = site(one)?;
        match *edit {
            // Its place is not an instruction: `place.rs` finds one.
            Edit::Barrier(..) => return None,
            Edit::Atomic(_, _, within) => {
                self.atomic(&data, within, AtomicOrder::RELAXED)?;
                return if other == Some(one) {
                    Some(())
                } else {
                    self.atomic(&site(other?)?, within, AtomicOrder::RELAXED)
                };
            }
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
        let full = full(&self.kernel, Class::Uniform).0 & FLAGS;
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
            // A fence or barrier acquires and releases for the accesses around it.
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

    /// Gives an atomic of GLSL arguments by which it orders memory of a class, too; with the flags of availability and
    /// visibility, or without them.
    pub(super) fn arguments(&mut self, site: &SiteData, class: Class, role: AtomicRole, with_flags: bool) {
        let needed = full(&self.kernel, class).0 & FLAGS;
        let within = if needed == 0 { Scope::Device } else { Scope::QueueFamily };
        let flags = if with_flags { needed } else { 0 };
        for inst in self.insts(site) {
            let InstData::Atomic { op, scope, semantics, unequal, .. } = &mut self.kernel.insts[inst] else { continue };
            *scope = within;
            order(semantics, role.acquires, role.releases);
            let visible = if role.acquires { Semantics::MAKE_VISIBLE } else { 0 };
            let available = if role.releases { Semantics::MAKE_AVAILABLE } else { 0 };
            semantics.0 |= bit(class) | flags & (visible | available);
            if *op == AtomicOp::CompareExchange && role.acquires {
                order(unequal, true, false);
                unequal.0 |= bit(class) | flags & visible;
            }
        }
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
                // A memory barrier and an atomic synchronize only if it is for the memory of the atomic, too.
                let all = [Class::Uniform, Class::Workgroup, Class::Image];
                let other = matches!(site.action, SiteAction::Atomic { .. }) && class_of(site) != class;
                let fence = fence_of(&self.kernel, if other { &all[..] } else { std::slice::from_ref(&class) });
                let is_barrier = matches!(site.action, SiteAction::Barrier { .. });
                self.fences(at, &fence, if is_barrier { self.sides } else { Sides::Both });
            }
        }
    }

    /// Memory barriers for a class at a control barrier of GLSL.
    pub(super) fn complete(&mut self, barrier: At, class: Class) {
        self.fences(barrier, &fence(&self.kernel, class), self.sides);
    }

    fn fences(&mut self, at: At, fence: &InstData, sides: Sides) {
        if sides != Sides::After {
            self.insert(at, [fence.clone()]);
        }
        if sides != Sides::Before {
            self.insert(At { index: at.index + 1, ..at }, [fence.clone()]);
        }
    }
}
/// What an instruction accesses through descriptors of a kind.
fn resource(kind: BindingKind) -> &'static str {
    match kind {
        BindingKind::StorageBuffer | BindingKind::UniformBuffer => "buffer",
        BindingKind::StorageTexelBuffer | BindingKind::UniformTexelBuffer => "texel buffer",
        _ => "image",
    }
}
