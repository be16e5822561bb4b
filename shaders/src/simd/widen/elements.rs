//! Elements of two, three or four words that lanes access next to each other: the words of all lanes are loaded or
//! stored together, as rows, and brought to their lanes by shuffles.
//!
//! A word of an element at a time would be a gather. Loads of one element are done with the first of them, stores with
//! the last, as long as nothing between may touch the memory.

use foldhash::HashMap;
use smallvec::SmallVec;

use super::address::{Offset, Term};
use super::{Value, Widen};
use crate::analysis::{Patterns, Shape};
use crate::ir::{self, BufferSpace, Inst, InstData as Scalar, Place};
use crate::simd::InstData;

/// Groups that are looked at for one more member.
const MOST_OPEN: usize = 16;

/// What memory an element is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Buffer(ir::Value),
    Variable(ir::Variable),
}

/// The element that a word belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Element {
    root: Root,
    /// The index and the bytes of an element.
    index: Term,
    /// Bytes before element 0 that are known now.
    skip: u64,
    /// Bytes before element 0 that all lanes share.
    uniform: SmallVec<[Term; 2]>,
}

/// A part of an element, in the scalar IR.
#[derive(Clone, Debug)]
struct Group {
    element: Element,
    store: bool,
    /// Instructions in order, with the word that each accesses.
    members: SmallVec<[(Inst, usize); 4]>,
}

/// What to do at an instruction instead of an access of its own.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    /// Load all words of the group.
    Load(usize),
    /// It is done elsewhere.
    Elsewhere,
    /// Store all words of the group.
    Store(usize),
}

/// The groups of a block.
#[derive(Debug, Default)]
pub(super) struct Plans {
    groups: Vec<Group>,
    plans: HashMap<Inst, Plan>,
}

impl Plans {
    /// What to do at an instruction; `None`: what it says.
    pub(super) fn at(&self, inst: Inst) -> Option<Plan> {
        self.plans.get(&inst).cloned()
    }
}

impl Widen<'_> {
    /// Finds the groups of a block.
    pub(super) fn plan_elements(&self, block: ir::Block) -> Plans {
        let mut plans = Plans::default();
        let mut open: Vec<usize> = Vec::new();
        for &inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[inst];
            let (place, store, steady) = match data {
                Scalar::Load { place, access, .. } => {
                    let steady =
                        matches!(place, Place::Push { .. } | Place::Buffer { space: BufferSpace::Uniform, .. });
                    (Some(place).filter(|_| !access.volatile), false, steady || self.is_own(place))
                }
                Scalar::Store { place, access, .. } => {
                    (Some(place).filter(|_| !access.volatile), true, self.is_own(place))
                }
                Scalar::Atomic { .. } | Scalar::Barrier { .. } | Scalar::Fence { .. } => (None, true, false),
                _ => continue,
            };
            let found = place.and_then(|place| self.element_of(place));
            let joined = found.clone().and_then(|(element, word)| {
                let fits = |&&group: &&usize| {
                    let group = &plans.groups[group];
                    group.store == store
                        && group.element == element
                        && (!store || group.members.iter().all(|m| m.1 != word))
                };
                open.iter().find(fits).copied().map(|group| (group, word))
            });
            if let Some((group, word)) = joined {
                // Other groups must not be open over a store; over a load, no group of stores may be.
                open.retain(|&other| other == group || !store && !plans.groups[other].store);
                plans.groups[group].members.push((inst, word));
                continue;
            }
            if !steady {
                open.retain(|&group| !store && !plans.groups[group].store);
            }
            if let Some((element, word)) = found {
                if open.len() == MOST_OPEN {
                    open.remove(0);
                }
                open.push(plans.groups.len());
                plans.groups.push(Group { element, store, members: SmallVec::from_slice(&[(inst, word)]) });
            }
        }
        plans.assign();
        plans
    }

    /// Whether only the invocation itself sees the memory.
    fn is_own(&self, place: &Place) -> bool {
        matches!(place, Place::Variable { variable, .. } if self.is_private(*variable))
    }

    /// The element that a place is a word of, if lanes access neighbours, and which word.
    fn element_of(&self, place: &Place) -> Option<(Element, usize)> {
        let root = match *place {
            Place::Buffer { buffer, .. } if self.shape(buffer) == Shape::Uniform => Root::Buffer(buffer),
            Place::Variable { variable, .. } if !self.is_private(variable) => Root::Variable(variable),
            _ => return None,
        };
        let Offset { constant, uniform, lanes } = self.offset(place.offset());
        let [index @ Term { value, stride: stride @ (8 | 12 | 16) }] = lanes[..] else { return None };
        if self.shape(value) != Shape::Pattern(Patterns::ROW) || !constant.is_multiple_of(4) {
            return None;
        }
        let word = constant % u64::from(stride) / 4;
        Some((Element { root, index, skip: constant - word * 4, uniform }, word as usize))
    }

    /// Loads all words of a group; what its instructions yield.
    pub(super) fn load_elements(&mut self, plans: &Plans, group: usize) {
        let Group { element, members, .. } = &plans.groups[group];
        let (base, index, limits) = self.element_address(element, members[0].0);
        let load = self.builder.emit(InstData::LoadElements { base, index, limits });
        let words = self.builder.kernel.results[load].clone();
        for &(inst, word) in members {
            if let Some(result) = self.kernel.results[inst] {
                self.define_as(result, words[word]);
            }
        }
    }

    /// Stores all words of a group.
    pub(super) fn store_elements(&mut self, plans: &Plans, group: usize) {
        let Group { element, members, .. } = &plans.groups[group];
        let (base, index, limits) = self.element_address(element, members[0].0);
        let mut stored: SmallVec<[(usize, Value); 4]> = SmallVec::new();
        for &(inst, word) in members {
            if let Scalar::Store { value, .. } = self.kernel.insts[inst] {
                stored.push((word, self.vector(value)));
            }
        }
        stored.sort_by_key(|entry| entry.0);
        let values = stored.into_iter().map(|entry| entry.1).collect();
        let mask = self.exec;
        self.builder.emit(InstData::StoreElements { base, index, limits, values, mask });
    }

    /// Address, index and limits of a group's element.
    fn element_address(&mut self, element: &Element, first: Inst) -> (Value, Value, SmallVec<[Value; 4]>) {
        let region = match &self.kernel.insts[first] {
            Scalar::Load { place, .. } | Scalar::Store { place, .. } => self.place_of(place).0,
            _ => unreachable!("a group has loads and stores only"),
        };
        let before = Offset { constant: element.skip, uniform: element.uniform.clone(), lanes: SmallVec::new() };
        let skip = self.uniform_part(&before);
        let region = self.skip(region, skip);
        let index = self.get(element.index.value);
        let stride = element.index.stride;
        let limits = (0..stride / 4)
            .map(|word| {
                let word = self.builder.s64(u64::from(word) * 4);
                let rest = self.skip(region, word);
                self.count(rest.len, stride)
            })
            .collect();
        (region.base, index, limits)
    }
}

impl Plans {
    fn assign(&mut self) {
        for (number, group) in self.groups.iter().enumerate() {
            let words = group.element.index.stride as usize / 4;
            let first = group.members[0].0;
            if !group.store {
                group.members.iter().for_each(|&(inst, _)| _ = self.plans.insert(inst, Plan::Elsewhere));
                self.plans.insert(first, Plan::Load(number));
            } else if group.members.len() == words {
                group.members.iter().for_each(|&(inst, _)| _ = self.plans.insert(inst, Plan::Elsewhere));
                if let Some(&(last, _)) = group.members.last() {
                    self.plans.insert(last, Plan::Store(number));
                }
            }
        }
    }
}
