//! Chooses the exits to unify and the location of each live-out value.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::{set, targets};
use crate::analysis::{Dominators, Loop, WalkStep, dominator_walk};
use crate::ir::{Block, Inst, Kernel, Type, Value};

/// Slots of one type that an exit uses, at most; other values are in private memory. Every exit edge passes all slots,
/// so the kernel's size would otherwise grow with exits times values.
pub(super) const MAX_SLOTS: usize = 8;

/// Location of a live-out value after the exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveOutLocation {
    /// Parameter of the new block, by index.
    Slot(usize),
    /// Word of private memory, by index: stored after the definition in the loop, loaded at the uses.
    Memory(usize),
}

/// The values that one exit passes.
#[derive(Default)]
pub(super) struct Exit {
    /// The slots for the parameters of its target.
    pub(super) params: SmallVec<[usize; 4]>,
    /// Values of the loop, in slots, that are used after this exit only.
    pub(super) own: SmallVec<[(Value, usize); 4]>,
    /// Number of its shared slots, by type.
    counts: HashMap<Type, usize>,
}

/// A use of live-out values outside the loop.
pub(super) struct LiveOutUse {
    pub(super) block: Block,
    pub(super) inst: Inst,
    /// The only exit block through which control reaches the use from the loop, if there is one.
    root: Option<Block>,
}

pub(super) struct ExitPlan {
    /// Blocks of the loop.
    pub(super) blocks: Vec<Block>,
    /// Targets of divergent exits; the order gives their indices.
    pub(super) targets: Vec<Block>,
    pub(super) exits: HashMap<Block, Exit>,
    /// Types of the slots.
    pub(super) slots: Vec<Type>,
    /// By type: the slots that exits share.
    shared: HashMap<Type, SmallVec<[usize; 8]>>,
    /// Values that several exits pass: the slot, and the exiting blocks in which the value is defined.
    pub(super) common: Vec<(Value, usize, EntitySet<Block>)>,
    /// The location of each live-out value that is replaced.
    pub(super) locations: HashMap<Value, LiveOutLocation>,
    /// Number of values in memory.
    pub(super) words: usize,
    /// Uses of values in `locations`.
    pub(super) uses: Vec<LiveOutUse>,
    /// The block of the loop that defines a value.
    defined: SecondaryMap<Value, Option<Block>>,
}

impl ExitPlan {
    /// Returns `None` if a buffer would have to be passed: neither slots nor memory hold buffers.
    pub(super) fn new(
        kernel: &Kernel,
        dominators: &Dominators,
        found: &Loop,
        divergent: &impl Fn(Block) -> bool,
    ) -> Option<Self> {
        let all = targets(kernel, found);
        let mut plan = Self {
            blocks: found.blocks.clone(),
            targets: all.iter().copied().filter(|&target| divergent(target)).collect(),
            exits: HashMap::default(),
            slots: Vec::new(),
            shared: HashMap::default(),
            common: Vec::new(),
            locations: HashMap::default(),
            words: 0,
            uses: Vec::new(),
            defined: SecondaryMap::new(),
        };
        for &target in &plan.targets.clone() {
            let mut exit = Exit::default();
            for &param in &kernel.blocks[target].params {
                let slot = plan.shared_slot(&mut exit, kernel.ty(param))?;
                exit.params.push(slot);
            }
            plan.exits.insert(target, exit);
        }
        plan.find_defined(kernel);
        plan.find_uses(kernel, dominators, &all);
        plan.place_values(kernel, dominators, all.len() > plan.targets.len())?;
        Some(plan)
    }

    fn find_defined(&mut self, kernel: &Kernel) {
        for &block in &self.blocks {
            let data = &kernel.blocks[block];
            let results = data.insts.iter().filter_map(|&inst| kernel.results[inst]);
            for value in data.params.iter().copied().chain(results) {
                self.defined[value] = Some(block);
            }
        }
    }

    /// Collects the uses outside the loop, each with the exit block that dominates it, if only the loop leads to that
    /// block.
    fn find_uses(&mut self, kernel: &Kernel, dominators: &Dominators, targets: &[Block]) {
        let inside = set(&self.blocks);
        let mut roots: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
        let mut only_from_inside = set(targets);
        for &block in kernel.layout.iter().filter(|&&block| !inside.contains(block)) {
            let Some(&last) = kernel.blocks[block].insts.last() else { continue };
            kernel.insts[last].targets().iter().for_each(|call| {
                only_from_inside.remove(call.block);
            });
        }
        for step in dominator_walk(kernel, dominators) {
            let WalkStep::Enter(block) = step else { continue };
            if inside.contains(block) {
                continue;
            }
            let above = dominators.idom(block).filter(|&above| !inside.contains(above));
            roots[block] = match above {
                Some(above) => roots[above],
                None => only_from_inside.contains(block).then_some(block),
            };
            for &inst in &kernel.blocks[block].insts {
                let mut is_use = false;
                kernel.insts[inst].for_each_use(|value| is_use |= self.defined[value].is_some());
                if is_use {
                    self.uses.push(LiveOutUse { block, inst, root: roots[block] });
                }
            }
        }
    }

    /// Chooses a location for each value that is used after the exits and does not dominate all of them. `kept`: some
    /// exits are not unified.
    fn place_values(&mut self, kernel: &Kernel, dominators: &Dominators, kept: bool) -> Option<()> {
        let sources = self.sources(kernel);
        let top = sources.iter().copied().reduce(|one, other| meet(dominators, one, other))?;
        let exits = &self.exits;
        // Exit blocks that keep their edges use the loop's values directly.
        self.uses.retain(|found| found.root.is_none_or(|root| exits.contains_key(&root)));
        // By value: the exit block that dominates all its uses, and whether some uses are dominated by none.
        let mut roots: HashMap<Value, (Option<Block>, bool)> = HashMap::default();
        let mut order = Vec::new();
        for &LiveOutUse { inst, root, .. } in &self.uses {
            kernel.insts[inst].for_each_use(|value| {
                let Some(block) = self.defined[value] else { return };
                if dominators.dominates(block, top) {
                    return;
                }
                let (common, joined) = roots.entry(value).or_insert_with(|| {
                    order.push(value);
                    (root, false)
                });
                *common = common.filter(|&block| Some(block) == root);
                *joined |= root.is_none();
            });
        }
        for value in order {
            let ty = kernel.ty(value);
            let slot = match roots[&value] {
                (Some(target), _) => {
                    let mut exit = self.exits.remove(&target)?;
                    let slot = self.shared_slot(&mut exit, ty);
                    exit.own.extend(slot.map(|slot| (value, slot)));
                    self.exits.insert(target, exit);
                    slot
                }
                // At a join, some paths may not have passed through the new block.
                (None, joined) => {
                    (self.common.len() < MAX_SLOTS && !(joined && kept) && ty != Type::Buffer).then(|| {
                        let defining = self.defined[value];
                        let mut known = EntitySet::new();
                        let is_known =
                            |&block: &Block| defining.is_some_and(|defining| dominators.dominates(defining, block));
                        known.extend(sources.iter().copied().filter(is_known));
                        self.slots.push(ty);
                        self.common.push((value, self.slots.len() - 1, known));
                        self.slots.len() - 1
                    })
                }
            };
            let location = match slot {
                Some(slot) => LiveOutLocation::Slot(slot),
                None if ty == Type::Buffer => return None,
                None => {
                    self.words += 1;
                    LiveOutLocation::Memory(self.words - 1)
                }
            };
            self.locations.insert(value, location);
        }
        Some(())
    }

    /// Blocks of the loop with an exit that is unified.
    fn sources(&self, kernel: &Kernel) -> Vec<Block> {
        let leaves = |block: &Block| {
            let last = kernel.blocks[*block].insts.last();
            last.is_some_and(|&last| {
                kernel.insts[last].targets().iter().any(|call| self.exits.contains_key(&call.block))
            })
        };
        self.blocks.iter().copied().filter(leaves).collect()
    }

    /// The next shared slot of an exit for a type; `None` if it has the maximum number already.
    fn shared_slot(&mut self, exit: &mut Exit, ty: Type) -> Option<usize> {
        let count = exit.counts.entry(ty).or_default();
        if *count == MAX_SLOTS || ty == Type::Buffer {
            return None;
        }
        let slots = self.shared.entry(ty).or_default();
        if *count == slots.len() {
            slots.push(self.slots.len());
            self.slots.push(ty);
        }
        *count += 1;
        Some(slots[*count - 1])
    }
}

/// Nearest common dominator.
fn meet(dominators: &Dominators, mut one: Block, other: Block) -> Block {
    while !dominators.dominates(one, other) {
        match dominators.idom(one) {
            Some(above) => one = above,
            None => break,
        }
    }
    one
}
