//! Interference between slots of a frame, from the slots' live ranges.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;

use super::{ContextSlots, Event, SlotCopy};
use crate::simd::Block;

/// 64-bit words of all slot sets together (2 MiB): kernels that need more keep a slot for each value.
const MAX_WORDS: usize = 1 << 18;

/// A set of slots, one bit for each.
type SlotSet = Vec<u64>;

/// The slots that copies connect, and which of them interfere.
pub(super) struct Conflicts {
    /// By offset in the frame: the slot's number in the sets.
    numbers: HashMap<u32, usize>,
    /// By slot: slots that are live at one of its stores. To be read in both directions.
    pairs: Vec<SlotSet>,
}

impl Conflicts {
    /// Finds which slots are live at each store. `None` if the sets would be too large.
    pub(super) fn find(slots: &ContextSlots<'_>, copies: &[SlotCopy]) -> Option<Self> {
        let mut numbers = HashMap::default();
        for copy in copies {
            for at in [copy.from, copy.to] {
                let next = numbers.len();
                numbers.entry(at).or_insert(next);
            }
        }
        let words = numbers.len().div_ceil(64);
        if (slots.kernel.layout.len() + numbers.len()) * words > MAX_WORDS {
            return None;
        }
        let mut conflicts = Self { pairs: vec![vec![0; words]; numbers.len()], numbers };
        let live_in = conflicts.live_in(slots, words);
        for &block in &slots.kernel.layout {
            let mut live = live_out(slots, &live_in, block, words);
            for event in slots.events(block).rev() {
                if let Event::Store(at) = event
                    && let Some(&slot) = conflicts.numbers.get(&at)
                {
                    add(&mut conflicts.pairs[slot], &live);
                }
                conflicts.step(&mut live, event);
            }
        }
        // Parameters of one block keep separate slots, since their stores may come in any order.
        for (index, copy) in copies.iter().enumerate() {
            let others = copies[index + 1..].iter().take_while(|other| other.block == copy.block);
            for other in others.filter(|other| other.param != copy.param) {
                let [one, other] = [copy.to, other.to].map(|at| conflicts.numbers[&at]);
                conflicts.pairs[one][other / 64] |= 1 << (other % 64);
            }
        }
        Some(conflicts)
    }

    /// Transfer function of liveness, backwards over an access.
    fn step(&self, live: &mut SlotSet, event: Event) {
        let (Event::Load(at) | Event::Store(at)) = event;
        let Some(&slot) = self.numbers.get(&at) else { return };
        match event {
            Event::Load(_) => live[slot / 64] |= 1 << (slot % 64),
            Event::Store(_) => live[slot / 64] &= !(1 << (slot % 64)),
        }
    }

    /// Live-in sets by block: the slots that are loaded before they are stored.
    fn live_in(&self, slots: &ContextSlots<'_>, words: usize) -> SecondaryMap<Block, SlotSet> {
        let mut live_in: SecondaryMap<Block, SlotSet> = SecondaryMap::with_default(vec![0; words]);
        let mut work: Vec<Block> = slots.kernel.layout.clone();
        let mut queued: EntitySet<Block> = EntitySet::new();
        queued.extend(work.iter().copied());
        while let Some(block) = work.pop() {
            queued.remove(block);
            let mut live = live_out(slots, &live_in, block, words);
            slots.events(block).rev().for_each(|event| self.step(&mut live, event));
            if live != live_in[block] {
                live_in[block] = live;
                work.extend(slots.predecessors[block].iter().copied().filter(|&from| queued.insert(from)));
            }
        }
        live_in
    }

    /// Merges slots that copies connect, unless they interfere. Returns the offsets of the slots that are given up,
    /// each with the offset that replaces it.
    pub(super) fn merge(&self, copies: &[SlotCopy]) -> HashMap<u32, u32> {
        let mut class: Vec<usize> = (0..self.numbers.len()).collect();
        for copy in copies {
            let [to, from] = [copy.to, copy.from].map(|at| class[self.numbers[&at]]);
            let interferes = |a: usize| (0..class.len()).any(|b| class[b] == from && self.interfere(a, b));
            if to == from || (0..class.len()).any(|a| class[a] == to && interferes(a)) {
                continue;
            }
            class.iter_mut().filter(|class| **class == from).for_each(|class| *class = to);
        }
        let mut offsets = vec![0; self.numbers.len()];
        self.numbers.iter().for_each(|(&at, &number)| offsets[number] = at);
        let merged = (0..class.len()).filter(|&slot| class[slot] != slot);
        merged.map(|slot| (offsets[slot], offsets[class[slot]])).collect()
    }

    fn interfere(&self, a: usize, b: usize) -> bool {
        self.pairs[a][b / 64] >> (b % 64) & 1 != 0 || self.pairs[b][a / 64] >> (a % 64) & 1 != 0
    }
}

/// Live-out set of a block: the slots that its successors load.
fn live_out(slots: &ContextSlots<'_>, live_in: &SecondaryMap<Block, SlotSet>, block: Block, words: usize) -> SlotSet {
    let mut live = vec![0; words];
    slots.successors[block].iter().for_each(|&next| add(&mut live, &live_in[next]));
    live
}

fn add(set: &mut SlotSet, other: &SlotSet) {
    set.iter_mut().zip(other).for_each(|(set, other)| *set |= other);
}
