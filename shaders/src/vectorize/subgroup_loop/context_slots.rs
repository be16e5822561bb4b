//! Coalesces the slots in the subgroup's frame of a loop-carried value and of the value that replaces it after a
//! barrier.
//!
//! A sum that a loop with barriers carries is two values: the header's parameter, and the argument of the back edge.
//! With a slot for each, it would be copied from one to the other in every iteration. If their live ranges do not
//! overlap, they share a slot: the back edge's argument is in it already, and only edges with other arguments store to
//! it.

mod conflicts;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::{HashMap, HashSet};
use smallvec::SmallVec;

use self::conflicts::Conflicts;
use super::ParallelRegion;
use crate::simd::{Block, Inst, InstData, Kernel, Type, Value};

/// Coalesces slots of vectors in the frame at address `frame`, of which `bytes` are in use. Returns the bytes that
/// remain in use. The kernel's blocks are those of one subgroup, so each region's stop is a predecessor of the region.
/// `uniform` has the slots that hold one value in all lanes: code reads their inactive lanes, so only slots with that
/// property may replace them.
pub(super) fn share(
    kernel: &mut Kernel,
    regions: &[ParallelRegion],
    frame: Value,
    bytes: u32,
    uniform: HashSet<u32>,
) -> u32 {
    let mut slots = ContextSlots {
        kernel,
        frame,
        uniform,
        successors: SecondaryMap::new(),
        predecessors: SecondaryMap::new(),
        loads: HashMap::default(),
    };
    if !slots.find_loads() {
        return bytes;
    }
    slots.connect(regions);
    let copies = slots.copies();
    if copies.is_empty() {
        return bytes;
    }
    let Some(conflicts) = Conflicts::find(&slots, &copies) else { return bytes };
    let merged = conflicts.merge(&copies);
    if merged.is_empty() {
        return bytes;
    }
    slots.relocate(&merged);
    let offset = |at: u32| merged.get(&at).copied().unwrap_or(at);
    for copy in copies.iter().filter(|copy| offset(copy.from) == offset(copy.to)) {
        slots.store_on_edges(copy.block, copy.param);
    }
    slots.compact()
}

/// A block parameter that is stored in the slot at offset `to`, with an argument that was loaded from the slot at
/// `from`.
#[derive(Clone, Copy, Debug)]
struct SlotCopy {
    block: Block,
    param: usize,
    to: u32,
    from: u32,
}

/// An access to the slot at a byte offset in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Load(u32),
    Store(u32),
}

/// A kernel and its accesses to the frame.
struct ContextSlots<'k> {
    kernel: &'k mut Kernel,
    frame: Value,
    /// Slots that hold one value in all lanes.
    uniform: HashSet<u32>,
    /// The control flow of a subgroup, with the edges over barriers.
    successors: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    predecessors: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    /// By vector that is loaded from the frame: the block of the load.
    loads: HashMap<Value, Block>,
}

impl ContextSlots<'_> {
    /// The access of an instruction to a slot.
    fn event(&self, inst: Inst) -> Option<Event> {
        match self.kernel.insts[inst] {
            InstData::FrameLoad { frame, at, .. } if frame == self.frame => Some(Event::Load(at)),
            InstData::FrameStore { frame, at, .. } if frame == self.frame => Some(Event::Store(at)),
            _ => None,
        }
    }

    fn events(&self, block: Block) -> impl DoubleEndedIterator<Item = Event> {
        self.kernel.blocks[block].insts.iter().filter_map(|&inst| self.event(inst))
    }

    /// Finds the loads of vectors. Returns whether there are any.
    fn find_loads(&mut self) -> bool {
        for &block in &self.kernel.layout {
            for &inst in &self.kernel.blocks[block].insts {
                if let (Some(Event::Load(_)), &[value]) = (self.event(inst), &self.kernel.results[inst][..])
                    && self.kernel.ty(value) == Type::V32
                {
                    self.loads.insert(value, block);
                }
            }
        }
        !self.loads.is_empty()
    }

    /// Fills in successors and predecessors.
    fn connect(&mut self, regions: &[ParallelRegion]) {
        for &block in &self.kernel.layout {
            self.successors[block].extend(self.kernel.targets(block).iter().map(|call| call.block));
        }
        for region in regions {
            if let Some(stop) = region.stop {
                self.successors[stop].push(region.block);
            }
        }
        for &block in &self.kernel.layout {
            for &next in &self.successors[block] {
                if !self.predecessors[next].contains(&block) {
                    self.predecessors[next].push(block);
                }
            }
        }
    }

    /// The offset of the slot that a vector was loaded from.
    fn origin(&self, value: Value) -> Option<u32> {
        match self.kernel.definition(value) {
            Some(&InstData::FrameLoad { at, .. }) if self.loads.contains_key(&value) => Some(at),
            _ => None,
        }
    }

    /// The store of a parameter in its own block, with the slot's offset. It must be the block's first access to the
    /// slot.
    fn store_of(&self, block: Block, param: Value) -> Option<(usize, u32)> {
        let insts = &self.kernel.blocks[block].insts;
        let is_store = |&inst: &Inst| match self.kernel.insts[inst] {
            InstData::FrameStore { value, .. } => value == param && self.event(inst).is_some(),
            _ => false,
        };
        let index = insts.iter().position(is_store)?;
        let Event::Store(at) = self.event(insts[index])? else { return None };
        let earlier = insts[..index].iter().filter_map(|&inst| self.event(inst));
        let untouched = earlier.into_iter().all(|event| event != Event::Load(at) && event != Event::Store(at));
        untouched.then_some((index, at))
    }

    /// The edges into a block: the predecessor and the arguments of each.
    fn calls_of(&self, block: Block) -> SmallVec<[(Block, SmallVec<[Value; 4]>); 4]> {
        let mut calls = SmallVec::new();
        for &from in &self.predecessors[block] {
            calls.extend(
                self.kernel
                    .targets(from)
                    .iter()
                    .filter(|call| call.block == block)
                    .map(|call| (from, call.args.clone())),
            );
        }
        calls
    }

    /// All parameters that are vectors and are stored in a slot, with arguments from other slots.
    fn copies(&self) -> Vec<SlotCopy> {
        let mut copies: Vec<SlotCopy> = Vec::new();
        for &block in &self.kernel.layout {
            let mut calls = None;
            for (param, &value) in self.kernel.blocks[block].params.iter().enumerate() {
                if self.kernel.ty(value) != Type::V32 {
                    continue;
                }
                let Some((_, to)) = self.store_of(block, value) else { continue };
                for (_, args) in calls.get_or_insert_with(|| self.calls_of(block)) {
                    let is_alike = |from: &u32| self.uniform.contains(from) == self.uniform.contains(&to);
                    if let Some(from) = self.origin(args[param]).filter(|&from| from != to).filter(is_alike) {
                        copies.push(SlotCopy { block, param, to, from });
                    }
                }
            }
        }
        copies
    }

    /// Replaces slot offsets.
    fn relocate(&mut self, offsets: &HashMap<u32, u32>) {
        let frame = self.frame;
        for data in self.kernel.insts.values_mut() {
            if let InstData::FrameLoad { frame: of, at, .. } | InstData::FrameStore { frame: of, at, .. } = data
                && *of == frame
                && let Some(&offset) = offsets.get(at)
            {
                *at = offset;
            }
        }
    }

    /// Moves the store of a parameter from its block to the predecessors with an argument that is not in the slot yet.
    /// Changes nothing if such a predecessor has several successors.
    fn store_on_edges(&mut self, block: Block, param: usize) {
        let Some((index, at)) = self.store_of(block, self.kernel.blocks[block].params[param]) else { return };
        let calls = self.calls_of(block).into_iter().map(|(from, args)| (from, args[param]));
        let missing: SmallVec<[(Block, Value); 4]> =
            calls.filter(|&(from, value)| !self.holds(value, at, from)).collect();
        if missing.iter().any(|&(from, _)| self.successors[from].len() != 1) {
            return;
        }
        self.kernel.blocks[block].insts.remove(index);
        for (from, value) in missing {
            if matches!(self.kernel.definition(value), Some(InstData::Undef { .. })) {
                continue;
            }
            let inst = self.kernel.insts.push(InstData::FrameStore { frame: self.frame, at, value });
            let insts = &mut self.kernel.blocks[from].insts;
            insts.insert(insts.len().saturating_sub(1), inst);
        }
    }

    /// Whether the slot at `at` holds a value at the end of the block `end`: the value was loaded from it, and no store
    /// to it is on a path from the load.
    fn holds(&self, value: Value, at: u32, end: Block) -> bool {
        let (Some(from), Some(&loading)) = (self.origin(value), self.loads.get(&value)) else { return false };
        if from != at {
            return false;
        }
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut work = vec![end];
        while let Some(block) = work.pop() {
            if !seen.insert(block) {
                continue;
            }
            let insts = &self.kernel.blocks[block].insts;
            let since = if block == loading {
                insts.iter().position(|&inst| self.kernel.results[inst].first() == Some(&value)).unwrap_or(0)
            } else {
                work.extend(&self.predecessors[block]);
                0
            };
            if insts[since..].iter().any(|&inst| self.event(inst) == Some(Event::Store(at))) {
                return false;
            }
        }
        true
    }

    /// Removes the gaps between slots. Returns the bytes in use.
    fn compact(&mut self) -> u32 {
        let mut sizes: Vec<(u32, u32)> = Vec::new();
        for &block in &self.kernel.layout {
            for &inst in &self.kernel.blocks[block].insts {
                let ty = match self.kernel.insts[inst] {
                    InstData::FrameStore { value, .. } => self.kernel.ty(value),
                    InstData::FrameLoad { ty, .. } => ty,
                    _ => continue,
                };
                if let Some(Event::Load(at) | Event::Store(at)) = self.event(inst) {
                    sizes.push((at, ty.frame_bytes()));
                }
            }
        }
        sizes.sort_unstable();
        sizes.dedup();
        let mut bytes = 0u32;
        let mut offsets = HashMap::default();
        for (at, size) in sizes {
            let offset = bytes.next_multiple_of(size);
            offsets.insert(at, offset);
            bytes = offset + size;
        }
        self.relocate(&offsets);
        bytes
    }
}
