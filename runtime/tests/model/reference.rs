//! The naive side: every step is done at once, on words that are defined or not.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use spelter::MapFlags;

use crate::kernels::{self, Word};
use crate::step::{CONTEXTS, Contents, Part, RESOURCES, SLOTS, Step, value};

/// What a step shows.
#[derive(Debug)]
pub(crate) enum Shown {
    /// Nothing that can be compared.
    Nothing,
    /// The call was refused.
    Refused,
    /// Words that were read.
    Words(Vec<Word>),
}

impl Shown {
    /// Whether what the tracker showed is right: where a word is not defined anything is.
    pub(crate) fn compare(&self, got: &Shown) -> Result<(), String> {
        match (self, got) {
            (Self::Nothing, Self::Nothing) | (Self::Refused, Self::Refused) => Ok(()),
            (Self::Words(wanted), Self::Words(got)) if wanted.len() == got.len() => {
                let wrong = wanted.iter().zip(got).position(|(wanted, got)| wanted.is_some() && wanted != got);
                match wrong {
                    Some(at) => Err(format!("word {at} of {}: {:x?}, not {:x?}", wanted.len(), got[at], wanted[at])),
                    None => Ok(()),
                }
            }
            _ => Err(format!("{got:x?}, not {self:x?}")),
        }
    }
}

/// A buffer.
#[derive(Debug)]
pub(crate) struct Resource {
    words: RefCell<Vec<Word>>,
    destroyed: RefCell<bool>,
}

type Handle = Rc<Resource>;

#[derive(Clone, Debug)]
struct Slot {
    resource: Handle,
    range: Range<u64>,
    uniform: bool,
}

/// A mapping that stays.
#[derive(Debug)]
struct Persistent {
    resource: Handle,
    range: Range<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    handles: [Option<Handle>; RESOURCES],
    slots: [[Option<Slot>; SLOTS]; CONTEXTS],
    persistent: Option<Persistent>,
}

impl Resource {
    fn size(&self) -> u64 {
        self.words.borrow().len() as u64
    }

    fn get(&self, range: &Range<u64>) -> Vec<Word> {
        self.words.borrow()[range.start as usize..range.end as usize].to_vec()
    }

    fn put(&self, at: u64, words: &[Word]) {
        self.words.borrow_mut()[at as usize..at as usize + words.len()].copy_from_slice(words);
    }

    fn forget(&self, range: &Range<u64>) {
        self.words.borrow_mut()[range.start as usize..range.end as usize].fill(None);
    }

    fn is_destroyed(&self) -> bool {
        *self.destroyed.borrow()
    }
}

fn overlap(a: (&Handle, &Range<u64>), b: (&Handle, &Range<u64>)) -> bool {
    Rc::ptr_eq(a.0, b.0) && a.1.start < b.1.end && b.1.start < a.1.end
}

impl Reference {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The words of the mapping that stays, while its resource is not destroyed.
    pub(crate) fn mapped_words(&self) -> Option<u64> {
        let live = self.persistent.as_ref().filter(|map| !map.resource.is_destroyed());
        live.map(|map| map.range.end - map.range.start)
    }

    /// What every resource that has a handle and is not destroyed holds.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (usize, Shown)> {
        let live = |(which, handle): (usize, &Option<Handle>)| {
            let handle = handle.as_ref().filter(|handle| !handle.is_destroyed())?;
            Some((which, Shown::Words(handle.words.borrow().clone())))
        };
        self.handles.iter().enumerate().filter_map(live)
    }

    fn live(&self, resource: usize) -> Option<Result<&Handle, Shown>> {
        let handle = self.handles[resource].as_ref()?;
        Some(if handle.is_destroyed() { Err(Shown::Refused) } else { Ok(handle) })
    }

    pub(crate) fn step(&mut self, step: &Step) -> Shown {
        match step {
            Step::Create { resource, words, contents } => {
                let word = |at| match contents {
                    Contents::Undefined => None,
                    Contents::Zero => Some(0),
                    Contents::Values(seed) => Some(value(*seed, at)),
                };
                let words = RefCell::new((0..*words).map(word).collect());
                self.handles[*resource] = Some(Rc::new(Resource { words, destroyed: RefCell::new(false) }));
                Shown::Nothing
            }
            Step::Drop { resource } => {
                self.handles[*resource] = None;
                Shown::Nothing
            }
            Step::Destroy { resource } => {
                self.handles[*resource].iter().for_each(|handle| *handle.destroyed.borrow_mut() = true);
                Shown::Nothing
            }
            Step::Unbind { context, slot } => {
                self.slots[*context][*slot] = None;
                Shown::Nothing
            }
            Step::Dispatch { context, program, own } => self.dispatch(*context, *program, own),
            Step::Unpersist => {
                self.persistent = None;
                Shown::Nothing
            }
            Step::Through { part, seed } => self.through(*part, *seed),
            Step::Flush { .. } | Step::Finish { .. } => Shown::Nothing,
            other => self.on_resource(other).unwrap_or_else(|shown| shown),
        }
    }

    /// Steps that take a resource, which may not be there (nothing happens) or be destroyed (an error).
    fn on_resource(&mut self, step: &Step) -> Result<Shown, Shown> {
        let live = |resource: &usize| self.live(*resource).unwrap_or(Err(Shown::Nothing));
        match step {
            Step::Bind { context, slot, bound, uniform } => {
                let resource = Rc::clone(live(&bound.resource)?);
                let range = bound.part.of(resource.size(), true);
                self.slots[*context][*slot] = Some(Slot { resource, range, uniform: *uniform });
            }
            Step::Write { resource, part, seed, .. } => {
                let handle = live(resource)?;
                let range = part.of(handle.size(), false);
                let words: Vec<_> = range.clone().map(|at| Some(value(*seed, at))).collect();
                handle.put(range.start, &words);
            }
            Step::Upload { resource, words, seed, .. } => {
                let handle = live(resource)?;
                let words = 1 + words % handle.size();
                handle.forget(&(0..handle.size()));
                handle.put(0, &(0..words).map(|at| Some(value(*seed, at))).collect::<Vec<_>>());
            }
            Step::Copy { from, to, part, at, .. } => {
                if self.handles[*from].is_none() || self.handles[*to].is_none() {
                    return Ok(Shown::Nothing);
                }
                let (from, to) = (live(from)?, live(to)?);
                let range = part.of(from.size().min(to.size()), false);
                let at = at % (to.size() - (range.end - range.start) + 1);
                let target = at..at + range.end - range.start;
                if overlap((from, &range), (to, &target)) {
                    return Ok(Shown::Refused);
                }
                let words = from.get(&range);
                to.put(at, &words);
            }
            Step::Fill { resource, part, word, .. } => {
                let handle = live(resource)?;
                let range = part.of(handle.size(), false);
                handle.put(range.start, &vec![Some(*word); (range.end - range.start) as usize]);
            }
            Step::Invalidate { resource, .. } => {
                let handle = live(resource)?;
                handle.forget(&(0..handle.size()));
            }
            Step::Map { resource, part, flags, writes, .. } => {
                let handle = live(resource)?;
                let range = part.of(handle.size(), false);
                let mapped = self.persistent.as_ref();
                if mapped.is_some_and(|map| overlap((handle, &range), (&map.resource, &map.range))) {
                    return Ok(Shown::Refused);
                }
                if flags.contains(MapFlags::DISCARD_WHOLE) {
                    handle.forget(&(0..handle.size()));
                } else if flags.contains(MapFlags::DISCARD_RANGE) {
                    handle.forget(&range);
                }
                let before = handle.get(&range);
                for (part, seed) in writes.iter().filter(|_| flags.contains(MapFlags::WRITE)) {
                    let inside = part.of(range.end - range.start, false);
                    let words: Vec<_> = inside.clone().map(|at| Some(value(*seed, at))).collect();
                    handle.put(range.start + inside.start, &words);
                }
                if flags.contains(MapFlags::READ) {
                    return Ok(Shown::Words(before));
                }
            }
            Step::Persist { resource, part, .. } => {
                let handle = live(resource)?;
                if self.persistent.is_none() {
                    let range = part.of(handle.size(), false);
                    self.persistent = Some(Persistent { resource: Rc::clone(handle), range });
                }
            }
            Step::Read { resource, part, .. } => {
                let handle = live(resource)?;
                return Ok(Shown::Words(handle.get(&part.of(handle.size(), false))));
            }
            _ => {}
        }
        Ok(Shown::Nothing)
    }

    /// Reads the whole persistent mapping, then writes a part of it.
    fn through(&self, part: Part, seed: u32) -> Shown {
        let Some(Persistent { resource, range }) = &self.persistent else { return Shown::Nothing };
        if resource.is_destroyed() {
            return Shown::Nothing;
        }
        let before = resource.get(range);
        let inside = part.of(range.end - range.start, false);
        let words: Vec<_> = inside.clone().map(|at| Some(value(seed, at))).collect();
        resource.put(range.start + inside.start, &words);
        Shown::Words(before)
    }

    fn dispatch(&self, context: usize, program: usize, own: &[Option<crate::step::Bound>; 3]) -> Shown {
        if own.iter().flatten().any(|bound| self.handles[bound.resource].is_none()) {
            return Shown::Nothing;
        }
        let mut taken = Vec::new();
        for (binding, own) in own.iter().enumerate() {
            let found = match own {
                Some(bound) => {
                    let Some(handle) = &self.handles[bound.resource] else { return Shown::Nothing };
                    let range = bound.part.of(handle.size(), true);
                    Slot { resource: Rc::clone(handle), range, uniform: binding == 0 }
                }
                None => match &self.slots[context][binding] {
                    Some(slot) => slot.clone(),
                    None => return Shown::Refused,
                },
            };
            if found.uniform != (binding == 0) || found.resource.is_destroyed() {
                return Shown::Refused;
            }
            taken.push(found);
        }
        let [u, a, b] = &taken[..] else { return Shown::Refused };
        let word = u.resource.get(&u.range)[0];
        let (mut left, mut right) = (a.resource.get(&a.range), b.resource.get(&b.range));
        kernels::run(program, word, &mut left, &mut right);
        // Who writes what he also sees elsewhere gets anything.
        let meet = |x: &Slot, y: &Slot| overlap((&x.resource, &x.range), (&y.resource, &y.range));
        let a_writes = kernels::writes_a(program);
        let aliased = meet(b, a) || meet(b, u) || (a_writes && meet(a, u));
        if a_writes {
            a.resource.put(a.range.start, &left);
        }
        b.resource.put(b.range.start, &right);
        if aliased {
            [Some(b), a_writes.then_some(a)].into_iter().flatten().for_each(|slot| slot.resource.forget(&slot.range));
        }
        Shown::Nothing
    }
}
