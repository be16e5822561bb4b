//! Random operations of the memory model, and the sites that an instrumented kernel has for them.
//!
//! The operations are chosen first and the sites follow from them, the inverse of what the recorder of checked mode
//! does.

use spelter_memory_model::event::{Access, Action, Class, Classes, Location, Operation, Scope};
use spelter_shaders::ir::{self, AccessSite, AtomicOp, Semantics, SiteAction, StorageClass};

use super::Effect;
use crate::mutate::Rng;

/// The rules of the language from which a module came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    /// Attributes as declared.
    Vulkan,
    /// The memory model GLSL450: some buffers are `Coherent`, the others are private.
    Glsl450,
    /// Every access is available and visible in the workgroup.
    Wgsl,
}

/// How a program's operations are chosen.
pub(super) struct Style {
    pub(super) rules: Rules,
    /// The chance in percent that an attribute is the strongest one instead of a random one.
    pub(super) strong: usize,
    pub(super) classes: Vec<Class>,
}

const SCOPES: [Scope; 7] = [
    Scope::Invocation,
    Scope::Subgroup,
    Scope::Subgroup,
    Scope::Workgroup,
    Scope::Workgroup,
    Scope::QueueFamily,
    Scope::Device,
];

impl Style {
    pub(super) fn random(rng: &mut Rng) -> Self {
        let sets: [&[Class]; 6] = [
            &[Class::Uniform],
            &[Class::Uniform],
            &[Class::Workgroup],
            &[Class::Uniform, Class::Workgroup],
            &[Class::Image, Class::Uniform],
            &[Class::Uniform, Class::Workgroup, Class::Image],
        ];
        Self {
            rules: rng.pick(&[Rules::Vulkan, Rules::Vulkan, Rules::Glsl450, Rules::Wgsl]),
            strong: rng.pick(&[40, 75, 90, 97, 100]),
            classes: sets[rng.below(sets.len())].to_vec(),
        }
    }

    pub(super) fn strongly(&self, rng: &mut Rng) -> bool {
        rng.below(100) < self.strong
    }

    fn scope(&self, rng: &mut Rng) -> Scope {
        if self.strongly(rng) { rng.pick(&[Scope::Workgroup, Scope::Device]) } else { rng.pick(&SCOPES) }
    }

    fn flag(&self, rng: &mut Rng) -> bool {
        self.strongly(rng) || rng.below(2) == 0
    }

    fn access(reads: bool, writes: bool, atomic: bool, class: Class) -> Access {
        Access {
            reads,
            writes,
            atomic,
            non_private: false,
            available: false,
            visible: false,
            class,
            reference: 0,
            location: Location::whole(0),
        }
    }

    /// A plain read or write.
    pub(super) fn plain(&self, rng: &mut Rng, writes: bool) -> (Effect, SiteAction) {
        let class = rng.pick(&self.classes);
        let coherent = self.rules != Rules::Glsl450 || class == Class::Workgroup || self.flag(rng);
        self.plain_of(rng, class, coherent, writes)
    }

    /// A plain read or write of memory of a class; by the rules of GLSL450 that memory is `coherent` or private.
    pub(super) fn plain_of(&self, rng: &mut Rng, class: Class, coherent: bool, writes: bool) -> (Effect, SiteAction) {
        let mut access = Self::access(!writes, writes, false, class);
        let mut scope = None;
        match self.rules {
            Rules::Vulkan => {
                access.non_private = self.flag(rng);
                if access.non_private && rng.below(2) == 0 {
                    scope = Some(self.scope(rng));
                }
            }
            Rules::Glsl450 if class != Class::Workgroup => {
                access.non_private = coherent;
                scope = access.non_private.then_some(Scope::QueueFamily);
            }
            Rules::Glsl450 | Rules::Wgsl => {
                access.non_private = true;
                scope = Some(Scope::Workgroup);
            }
        }
        access.available = writes && scope.is_some();
        access.visible = !writes && scope.is_some();
        let site = AccessSite {
            class: storage_class(class),
            non_private: access.non_private,
            volatile: rng.below(8) == 0,
            scope: scope.map(ir_scope),
        };
        let mut operation = Operation::new(Action::Access(access));
        operation.scope = scope;
        (Effect { operation, unequal: None }, if writes { SiteAction::Write(site) } else { SiteAction::Read(site) })
    }

    /// An atomic operation.
    pub(super) fn atomic(&self, rng: &mut Rng) -> (Effect, SiteAction) {
        self.atomic_of(rng, &self.classes)
    }

    /// An atomic operation on memory of one of some classes.
    pub(super) fn atomic_of(&self, rng: &mut Rng, classes: &[Class]) -> (Effect, SiteAction) {
        const OPS: [AtomicOp; 7] = [
            AtomicOp::Load,
            AtomicOp::Load,
            AtomicOp::Store,
            AtomicOp::Store,
            AtomicOp::Exchange,
            AtomicOp::Add,
            AtomicOp::CompareExchange,
        ];
        let op = rng.pick(&OPS);
        let class = rng.pick(classes);
        let scope = self.scope(rng);
        let (reads, writes) = (op != AtomicOp::Store, op != AtomicOp::Load);
        let mut operation = Operation::new(Action::Access(Self::access(reads, writes, true, class)));
        operation.scope = Some(scope);
        let failed = (op == AtomicOp::CompareExchange).then(|| {
            let mut failed = Operation::new(Action::Access(Self::access(true, false, true, class)));
            failed.scope = Some(scope);
            failed
        });
        let semantics = self.semantics(rng, &mut operation);
        let mut unequal = Semantics(0);
        let failed = failed.map(|mut failed| {
            unequal = self.semantics(rng, &mut failed);
            failed.complete();
            failed
        });
        operation.complete();
        let action = SiteAction::Atomic { op, class: storage_class(class), scope: ir_scope(scope), semantics, unequal };
        (Effect { operation, unequal: failed }, action)
    }

    /// A memory barrier.
    pub(super) fn fence(&self, rng: &mut Rng) -> (Effect, SiteAction) {
        let scope = self.scope(rng);
        let mut operation = Operation::new(Action::Fence);
        operation.scope = Some(scope);
        let semantics = self.semantics(rng, &mut operation);
        (Effect { operation, unequal: None }, SiteAction::Fence { scope: ir_scope(scope), semantics })
    }

    /// A control barrier.
    pub(super) fn barrier(&self, rng: &mut Rng, execution: Scope) -> (Effect, SiteAction) {
        let memory = if self.strongly(rng) { execution } else { self.scope(rng) };
        let mut operation = Operation::new(Action::ControlBarrier { execution });
        operation.scope = Some(memory);
        let semantics =
            if self.strongly(rng) || rng.below(2) == 0 { self.semantics(rng, &mut operation) } else { Semantics(0) };
        let action = SiteAction::Barrier { execution: ir_scope(execution), memory: ir_scope(memory), semantics };
        (Effect { operation, unequal: None }, action)
    }

    /// Chooses order, classes and flags, and returns the bits that say so. The bits may also have what takes no effect:
    /// classes without an order, an order without classes.
    fn semantics(&self, rng: &mut Rng, operation: &mut Operation) -> Semantics {
        let (reads, writes) = operation.access().map_or((true, true), |access| (access.reads, access.writes));
        let relaxed = operation.access().is_some() && rng.below(4) == 0;
        let order = if relaxed {
            0
        } else if self.strongly(rng) {
            3
        } else {
            rng.below(4)
        };
        let (acquire, release) = (order & 1 != 0 && reads, order & 2 != 0 && writes);
        let mut classes = Classes::NONE;
        for class in [Class::Uniform, Class::Workgroup, Class::Image] {
            let chosen = if self.strongly(rng) { self.classes.contains(&class) } else { rng.below(2) == 0 };
            classes = if chosen { classes.with(class) } else { classes };
        }
        let implied = self.rules != Rules::Vulkan;
        let available = release && (implied || self.flag(rng));
        let visible = acquire && (implied || self.flag(rng));
        if !classes.is_empty() && (acquire || release) {
            (operation.acquire, operation.release, operation.semantics) = (acquire, release, classes);
            (operation.make_available, operation.make_visible) = (available, visible);
        }
        let order = match (acquire, release) {
            (false, false) => 0,
            (true, false) => 0x2,
            (false, true) => 0x4,
            (true, true) => 0x8,
        };
        let class_bits = [(Class::Uniform, 0x40), (Class::Workgroup, 0x100), (Class::Image, 0x800)];
        let class_bits: u32 = class_bits.iter().filter(|(class, _)| classes.contains(*class)).map(|(_, bit)| bit).sum();
        Semantics(order | class_bits | u32::from(available) << 13 | u32::from(visible) << 14)
    }
}

fn storage_class(class: Class) -> StorageClass {
    match class {
        Class::Workgroup => StorageClass::Workgroup,
        Class::Image => StorageClass::Image,
        Class::Uniform | Class::Output => StorageClass::Uniform,
    }
}

pub(super) fn ir_scope(scope: Scope) -> ir::Scope {
    match scope {
        Scope::Invocation => ir::Scope::Invocation,
        Scope::Subgroup => ir::Scope::Subgroup,
        Scope::Workgroup => ir::Scope::Workgroup,
        Scope::QueueFamily => ir::Scope::QueueFamily,
        Scope::Device => ir::Scope::Device,
        Scope::CrossDevice => ir::Scope::CrossDevice,
    }
}
