//! Values that become each other over a barrier share a place in the subgroup's frame.
//!
//! A sum that a loop with barriers carries is two values: what the loop's header has, and what goes back to it after the barrier.
//! With a place each, it would be copied from one to the other on every trip. Where nobody needs the one any more once the other is
//! stored, one place does for both: what comes back over the barrier lies there already, and only the ways that bring something else
//! to the header store it.

mod conflicts;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use self::conflicts::Conflicts;
use super::Part;
use crate::simd::{Inst, InstData, Kernel};
use crate::vectorize::{Block, Type, Value};

/// Lets vectors share places in the frame at address `frame`, of which `bytes` are in use. Gives the bytes that remain. The
/// kernel's blocks are those of one subgroup: where a part's stop ends, the part begins.
pub(in crate::vectorize) fn share(kernel: &mut Kernel, parts: &[Part], frame: Value, bytes: u32) -> u32 {
    let mut slots =
        Slots { kernel, frame, next: SecondaryMap::new(), before: SecondaryMap::new(), loads: HashMap::default() };
    if !slots.find_loads() {
        return bytes;
    }
    slots.connect(parts);
    let moves = slots.moves();
    if moves.is_empty() {
        return bytes;
    }
    let Some(conflicts) = Conflicts::find(&slots, &moves) else { return bytes };
    let homes = conflicts.merge(&moves);
    if homes.is_empty() {
        return bytes;
    }
    slots.rename(&homes);
    let home = |at: u32| homes.get(&at).copied().unwrap_or(at);
    for found in moves.iter().filter(|found| home(found.from) == home(found.to)) {
        slots.store_on_the_way(found.block, found.param);
    }
    slots.close_up()
}

/// A parameter that is kept at `to`, and comes from `from` on some way.
#[derive(Clone, Copy, Debug)]
struct Move {
    block: Block,
    param: usize,
    to: u32,
    from: u32,
}

/// What happens to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Load(u32),
    Store(u32),
}

struct Slots<'k> {
    kernel: &'k mut Kernel,
    frame: Value,
    /// Where a subgroup goes from a block, over barriers, too.
    next: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    before: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    /// The blocks in which vectors are loaded from the frame.
    loads: HashMap<Value, Block>,
}

impl Slots<'_> {
    /// What an instruction does to a place.
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

    /// Notes where vectors are loaded. Whether any are.
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

    fn connect(&mut self, parts: &[Part]) {
        for &block in &self.kernel.layout {
            self.next[block].extend(self.kernel.targets(block).iter().map(|call| call.block));
        }
        for part in parts {
            if let Some(stop) = part.stop {
                self.next[stop].push(part.block);
            }
        }
        for &block in &self.kernel.layout {
            for &next in &self.next[block] {
                if !self.before[next].contains(&block) {
                    self.before[next].push(block);
                }
            }
        }
    }

    /// The place that a vector was loaded from.
    fn origin(&self, value: Value) -> Option<u32> {
        match self.kernel.definition(value) {
            Some(&InstData::FrameLoad { at, .. }) if self.loads.contains_key(&value) => Some(at),
            _ => None,
        }
    }

    /// The store that keeps a parameter in its own block, before anything else is done to its place.
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

    /// Ways into a block, with what they pass.
    fn calls_of(&self, block: Block) -> SmallVec<[(Block, SmallVec<[Value; 4]>); 4]> {
        let mut calls = SmallVec::new();
        for &from in &self.before[block] {
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

    /// All vectors that are parameters, are kept, and come from another place.
    fn moves(&self) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        for &block in &self.kernel.layout {
            let mut calls = None;
            for (param, &value) in self.kernel.blocks[block].params.iter().enumerate() {
                if self.kernel.ty(value) != Type::V32 {
                    continue;
                }
                let Some((_, to)) = self.store_of(block, value) else { continue };
                for (_, args) in calls.get_or_insert_with(|| self.calls_of(block)) {
                    if let Some(from) = self.origin(args[param]).filter(|&from| from != to) {
                        moves.push(Move { block, param, to, from });
                    }
                }
            }
        }
        moves
    }

    fn rename(&mut self, homes: &HashMap<u32, u32>) {
        let frame = self.frame;
        for data in self.kernel.insts.values_mut() {
            if let InstData::FrameLoad { frame: of, at, .. } | InstData::FrameStore { frame: of, at, .. } = data
                && *of == frame
                && let Some(&home) = homes.get(at)
            {
                *at = home;
            }
        }
    }

    /// Stores a parameter where control comes with something that is not in its place yet, instead of in its block. Leaves it
    /// as it is if such a way could lead elsewhere.
    fn store_on_the_way(&mut self, block: Block, param: usize) {
        let Some((index, at)) = self.store_of(block, self.kernel.blocks[block].params[param]) else { return };
        let calls = self.calls_of(block).into_iter().map(|(from, args)| (from, args[param]));
        let missing: SmallVec<[(Block, Value); 4]> =
            calls.filter(|&(from, value)| !self.is_there(value, at, from)).collect();
        if missing.iter().any(|&(from, _)| self.next[from].len() != 1) {
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

    /// Whether a place holds a value at a block's end: it was loaded from there, and nothing was stored since.
    fn is_there(&self, value: Value, at: u32, end: Block) -> bool {
        let (Some(from), Some(&home)) = (self.origin(value), self.loads.get(&value)) else { return false };
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
            let since = if block == home {
                insts.iter().position(|&inst| self.kernel.results[inst].first() == Some(&value)).unwrap_or(0)
            } else {
                work.extend(&self.before[block]);
                0
            };
            if insts[since..].iter().any(|&inst| self.event(inst) == Some(Event::Store(at))) {
                return false;
            }
        }
        true
    }

    /// Closes the gaps between places. Gives the bytes in use.
    fn close_up(&mut self) -> u32 {
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
        let mut homes = HashMap::default();
        for (at, size) in sizes {
            let home = bytes.next_multiple_of(size);
            homes.insert(at, home);
            bytes = home + size;
        }
        self.rename(&homes);
        bytes
    }
}
