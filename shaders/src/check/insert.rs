//! Inserts the checks of checked mode into a kernel as it was read.
//!
//! Before each load, store and image instruction on memory that invocations share comes a check of that memory, before
//! each fence and control barrier and after each atomic a sync. Uniform buffers are checked for what other commands
//! write to them, and for what they have in common with storage buffers. Private memory, push constants and constant
//! tables cannot change while other invocations access them. All have effects, so passes keep each where it is,
//! whatever they make of the access itself.

use std::collections::HashMap;
use std::sync::Arc;

use crate::image::Kind;
use crate::ir::{
    AtomicOp, BufferSpace, CallPath, Inst, InstData, Kernel, Op, Place, Scope, Site, SiteAction, SiteData,
    StorageClass, Type, Value, VariableSpace, Width,
};

/// Inserts all checks. The kernel must not have been optimised, since sites are instructions of the module.
pub fn insert(kernel: &mut Kernel) {
    let mut inserter = Inserter { kernel, sites: HashMap::new(), paths: HashMap::new(), insts: Vec::new() };
    for number in 0..inserter.kernel.layout.len() {
        inserter.block(number);
    }
}

struct Inserter<'k> {
    kernel: &'k mut Kernel,
    /// Scalars of one load or store of the module, and what several paths do by one instruction, have one site.
    sites: HashMap<(u32, Option<CallPath>, SiteAction), Site>,
    paths: HashMap<CallPath, Arc<[u32]>>,
    /// The instructions of the block so far.
    insts: Vec<Inst>,
}

impl Inserter<'_> {
    fn block(&mut self, number: usize) {
        let block = self.kernel.layout[number];
        let old = std::mem::take(&mut self.kernel.blocks[block].insts);
        self.insts = Vec::with_capacity(old.len() * 2);
        for inst in old {
            self.before(inst);
            self.insts.push(inst);
            self.after(inst);
        }
        self.kernel.blocks[block].insts = std::mem::take(&mut self.insts);
    }

    /// Checks of plain accesses, fences and barriers.
    fn before(&mut self, inst: Inst) {
        let model = self.kernel.memory_model;
        match self.kernel.insts[inst] {
            InstData::Load { place, width, access, .. } => {
                if let Some(class) = class_of(self.kernel, &place) {
                    self.check(inst, SiteAction::Read(model.access(class, access)), place, width);
                }
            }
            InstData::Store { place, width, access, .. } => {
                if let Some(class) = class_of(self.kernel, &place) {
                    self.check(inst, SiteAction::Write(model.access(class, access)), place, width);
                }
            }
            InstData::Image { .. } if self.is_same_image_access(inst) => {}
            InstData::Image { op, image, sampler, ref args, access } => {
                let args = args.clone();
                let access = model.access(StorageClass::Image, access);
                let action = if op.kind == Kind::Write { SiteAction::Write(access) } else { SiteAction::Read(access) };
                let site = self.site(inst, action);
                self.push(inst, InstData::CheckImage { site, op, image, sampler, args });
            }
            InstData::Fence { scope, semantics } => {
                let semantics = model.semantics(semantics);
                self.wait(inst, SiteAction::Fence { scope, semantics });
            }
            InstData::Barrier { execution, memory, semantics } => {
                let (scope, semantics) = (model.barrier_scope(memory), model.semantics(semantics));
                let action = match execution {
                    // It waits for no other.
                    Scope::Invocation => SiteAction::Fence { scope, semantics },
                    _ => SiteAction::Barrier { execution, memory: scope, semantics },
                };
                self.wait(inst, action);
            }
            _ => {}
        }
    }

    /// Syncs of atomics.
    fn after(&mut self, inst: Inst) {
        let model = self.kernel.memory_model;
        let InstData::Atomic { op, place, comparator, wide, scope, semantics, unequal, .. } = self.kernel.insts[inst]
        else {
            return;
        };
        let Some(class) = class_of(self.kernel, &place) else { return };
        let (semantics, unequal) = (model.semantics(semantics), model.semantics(unequal));
        let site = self.site(inst, SiteAction::Atomic { op, class, scope, semantics, unequal });
        let wrote = comparator.filter(|_| op == AtomicOp::CompareExchange).map(|comparator| {
            let old = self.kernel.results[inst].unwrap_or_else(|| self.kernel.define(inst, Type::I32));
            let same = self.pure(inst, Op::IEq, [old, comparator]);
            match wide.and_then(|[_, high]| high) {
                None => same,
                Some(comparator) => {
                    let high = self.push(inst, InstData::HighWord { of: old });
                    let high = self.kernel.define(high, Type::I32);
                    let same_high = self.pure(inst, Op::IEq, [high, comparator]);
                    self.pure(inst, Op::LAnd, [same, same_high])
                }
            }
        });
        let bytes = match wide {
            Some(_) => 8,
            None if op.is_half() => 2,
            None => 4,
        };
        self.push(inst, InstData::Sync { site, place: Some(place), bytes, wrote });
    }

    /// Whether an image instruction gives another component of what the instruction before it reads.
    fn is_same_image_access(&self, inst: Inst) -> bool {
        let Some(&before) = self.insts.last() else { return false };
        let mut other = self.kernel.insts[inst].clone();
        let (InstData::Image { op: first, .. }, InstData::Image { op, .. }) = (&self.kernel.insts[before], &mut other)
        else {
            return false;
        };
        op.component = first.component;
        op.kind != Kind::Write && other == self.kernel.insts[before]
    }

    fn check(&mut self, inst: Inst, action: SiteAction, place: Place, width: Width) {
        let site = self.site(inst, action);
        self.push(inst, InstData::Check { site, place, width });
    }

    fn wait(&mut self, inst: Inst, action: SiteAction) {
        let site = self.site(inst, action);
        self.push(inst, InstData::Sync { site, place: None, bytes: 0, wrote: None });
    }

    fn pure(&mut self, inst: Inst, op: Op, args: [Value; 2]) -> Value {
        let pure = self.push(inst, InstData::Pure { op, args: args.as_slice().into() });
        self.kernel.define(pure, op.result())
    }

    /// Appends an instruction that comes from where `inst` does.
    fn push(&mut self, inst: Inst, data: InstData) -> Inst {
        let new = self.kernel.insts.push(data);
        self.kernel.origins[new] = self.kernel.origins[inst];
        if let Some(path) = self.kernel.inlined_at[inst] {
            self.kernel.inlined_at[new] = Some(path);
        }
        self.insts.push(new);
        new
    }

    fn site(&mut self, inst: Inst, action: SiteAction) -> Site {
        let (word, path) = (self.kernel.origins[inst], self.kernel.inlined_at[inst]);
        let known = self.sites.get(&(word, path, action)).copied();
        // Of a kernel that was not read from a module, each instruction has a site of its own.
        if let Some(site) = known.filter(|_| word != 0) {
            return site;
        }
        let words = |path| self.paths.entry(path).or_insert_with(|| self.kernel.words_of_calls(inst).into()).clone();
        let inlined_at = path.map_or_else(|| Arc::from([]), words);
        let site = self.kernel.sites.push(SiteData { action, word, inlined_at });
        self.sites.insert((word, path, action), site);
        site
    }
}

/// The class of a place that other invocations may access; `None` for memory that only this one writes, or none.
fn class_of(kernel: &Kernel, place: &Place) -> Option<StorageClass> {
    match *place {
        Place::Push { .. } => None,
        Place::Buffer { space: BufferSpace::Uniform, .. } => Some(StorageClass::Uniform),
        Place::Variable { variable, .. } => {
            (kernel.variables[variable].space == VariableSpace::Workgroup).then_some(StorageClass::Workgroup)
        }
        // Images are no values in SPIR-V: those of a texel access are descriptors.
        Place::Buffer { space: BufferSpace::Storage, buffer, .. } => match kernel.definition(buffer) {
            Some(&InstData::Buffer { binding, .. }) if kernel.bindings[binding].kind.is_image() => {
                Some(StorageClass::Image)
            }
            _ => Some(StorageClass::Uniform),
        },
    }
}
