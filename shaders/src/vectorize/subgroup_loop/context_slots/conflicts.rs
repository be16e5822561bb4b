//! Which places of a frame hold something at the same time.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;

use super::{Event, Move, Slots};
use crate::simd::Block;

/// Words of all sets of places together, at most: kernels that need more keep a place for each value.
const MAX_WORDS: usize = 1 << 18;

/// A set of places, a bit each.
type Set = Vec<u64>;

/// Places that may move, and which of them may not be one.
pub(super) struct Conflicts {
    numbers: HashMap<u32, usize>,
    pairs: Vec<Set>,
}

impl Conflicts {
    /// Finds what is alive where something is stored. `None` if that takes too long.
    pub(super) fn find(slots: &Slots<'_>, moves: &[Move]) -> Option<Self> {
        let mut numbers = HashMap::default();
        for found in moves {
            for at in [found.from, found.to] {
                let next = numbers.len();
                numbers.entry(at).or_insert(next);
            }
        }
        let words = numbers.len().div_ceil(64);
        if (slots.kernel.layout.len() + numbers.len()) * words > MAX_WORDS {
            return None;
        }
        let mut conflicts = Self { pairs: vec![vec![0; words]; numbers.len()], numbers };
        let alive = conflicts.alive(slots, words);
        for &block in &slots.kernel.layout {
            let mut live = after(slots, &alive, block, words);
            for event in slots.events(block).rev() {
                if let Event::Store(at) = event
                    && let Some(&slot) = conflicts.numbers.get(&at)
                {
                    add(&mut conflicts.pairs[slot], &live);
                }
                conflicts.step(&mut live, event);
            }
        }
        // Parameters of one block stay apart, since their stores may come in any order.
        for (place, found) in moves.iter().enumerate() {
            let others = moves[place + 1..].iter().take_while(|other| other.block == found.block);
            for other in others.filter(|other| other.param != found.param) {
                let [one, other] = [found.to, other.to].map(|at| conflicts.numbers[&at]);
                conflicts.pairs[one][other / 64] |= 1 << (other % 64);
            }
        }
        Some(conflicts)
    }

    /// What a way backwards over an event does to the places that are read later.
    fn step(&self, live: &mut Set, event: Event) {
        let (Event::Load(at) | Event::Store(at)) = event;
        let Some(&slot) = self.numbers.get(&at) else { return };
        match event {
            Event::Load(_) => live[slot / 64] |= 1 << (slot % 64),
            Event::Store(_) => live[slot / 64] &= !(1 << (slot % 64)),
        }
    }

    /// By block: the places that are read from its beginning on, before they are stored.
    fn alive(&self, slots: &Slots<'_>, words: usize) -> SecondaryMap<Block, Set> {
        let mut alive: SecondaryMap<Block, Set> = SecondaryMap::with_default(vec![0; words]);
        let mut work: Vec<Block> = slots.kernel.layout.clone();
        let mut waiting: EntitySet<Block> = EntitySet::new();
        waiting.extend(work.iter().copied());
        while let Some(block) = work.pop() {
            waiting.remove(block);
            let mut live = after(slots, &alive, block, words);
            slots.events(block).rev().for_each(|event| self.step(&mut live, event));
            if live != alive[block] {
                alive[block] = live;
                work.extend(slots.before[block].iter().copied().filter(|&before| waiting.insert(before)));
            }
        }
        alive
    }

    /// Makes one of places that go into each other and never hold two things. Gives those that go away, with what they become.
    pub(super) fn merge(&self, moves: &[Move]) -> HashMap<u32, u32> {
        let mut class: Vec<usize> = (0..self.numbers.len()).collect();
        for found in moves {
            let [to, from] = [found.to, found.from].map(|at| class[self.numbers[&at]]);
            let apart = |a: usize| (0..class.len()).any(|b| class[b] == from && self.apart(a, b));
            if to == from || (0..class.len()).any(|a| class[a] == to && apart(a)) {
                continue;
            }
            class.iter_mut().filter(|class| **class == from).for_each(|class| *class = to);
        }
        let mut places = vec![0; self.numbers.len()];
        self.numbers.iter().for_each(|(&at, &number)| places[number] = at);
        let gone = (0..class.len()).filter(|&slot| class[slot] != slot);
        gone.map(|slot| (places[slot], places[class[slot]])).collect()
    }

    fn apart(&self, a: usize, b: usize) -> bool {
        self.pairs[a][b / 64] >> (b % 64) & 1 != 0 || self.pairs[b][a / 64] >> (a % 64) & 1 != 0
    }
}

/// The places that are read after a block.
fn after(slots: &Slots<'_>, alive: &SecondaryMap<Block, Set>, block: Block, words: usize) -> Set {
    let mut live = vec![0; words];
    slots.next[block].iter().for_each(|&next| add(&mut live, &alive[next]));
    live
}

fn add(set: &mut Set, other: &Set) {
    set.iter_mut().zip(other).for_each(|(set, other)| *set |= other);
}
