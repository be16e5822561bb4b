//! The naive reference: each step is executed at once, on words that are defined or undefined.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use spelter::MapFlags;

use crate::model::commands::Commands;
use crate::model::kernels::{self, Word};
use crate::model::racy;
use crate::model::resource::{Handle, Resource, overlap};
use crate::model::shape::{Place, SIZES, TOO_SMALL, level_of, texels};
use crate::model::step::{
    BUFFERS, Bound, COMMANDS, CONTEXTS, Contents, Kind, Part, RESOURCES, SETS, SLOTS, Step, value,
};

/// The observable result of a step.
#[derive(Debug)]
pub(crate) enum Shown {
    /// Nothing that can be compared.
    Nothing,
    /// The call returned an error.
    Refused,
    /// The call failed for lack of memory, so it did nothing.
    Full,
    /// Words that were read.
    Words(Vec<Word>),
}

impl Shown {
    /// The words that are defined.
    pub(crate) fn defined(&self) -> impl Iterator<Item = u64> {
        let words = if let Self::Words(words) = self { &words[..] } else { &[] };
        (0..).zip(words).filter(|(_, word)| word.is_some()).map(|(at, _)| at)
    }

    /// Whether the tracker's result is correct; an undefined word may have any value.
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

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) resource: Handle,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

impl Slot {
    pub(crate) fn new(resource: &Handle, bound: Bound, kind: Kind) -> Self {
        Self { resource: Rc::clone(resource), place: bound.place(kind, resource.size()), kind }
    }

    /// What a dispatch sees; `None` if the resource is destroyed or has become too small.
    pub(crate) fn now(&self) -> Option<Seen> {
        let range = self.place.of(self.resource.size()).filter(|_| !self.resource.is_destroyed())?;
        Some(Seen { resource: Rc::clone(&self.resource), range })
    }
}

/// Words that a dispatch sees.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    resource: Handle,
    range: Range<u64>,
}

/// A descriptor set.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) slots: RefCell<[Option<Slot>; SLOTS]>,
    updatable: bool,
}

/// A persistent mapping.
#[derive(Debug)]
struct Persistent {
    resource: Handle,
    range: Range<u64>,
    flags: MapFlags,
}

#[derive(Debug, Default)]
pub(crate) struct Reference {
    pub(crate) handles: [Option<Handle>; RESOURCES],
    slots: [[Option<Slot>; SLOTS]; CONTEXTS],
    pub(crate) sets: [Option<Rc<Set>>; SETS],
    /// Those that contexts have bound.
    bound_sets: [Option<Rc<Set>>; CONTEXTS],
    persistent: Option<Persistent>,
    pub(crate) commands: [Option<Commands>; COMMANDS],
    /// The number of times that all contexts were finished.
    pub(crate) finished: u64,
}

/// The contents that a mapping with these flags discards.
fn discard(handle: &Handle, range: &Range<u64>, flags: MapFlags) {
    if flags.contains(MapFlags::DISCARD_WHOLE) {
        handle.forget(&(0..handle.size()));
    } else if flags.contains(MapFlags::DISCARD_RANGE) {
        handle.forget(range);
    }
}

/// The host reads words.
fn read(handle: &Handle, range: &Range<u64>) -> Shown {
    let words = handle.get(range);
    racy::reads(&words);
    Shown::Words(words)
}

/// A command copies words.
pub(crate) fn copy((from, range): (&Handle, &Range<u64>), (to, target): (&Handle, &Range<u64>)) {
    let words = from.get(range);
    racy::reads(&words);
    racy::overwrites(to, target);
    to.put(target.start, &words);
}

fn words(seed: u32, range: Range<u64>) -> Vec<Word> {
    range.map(|at| Some(value(seed, at))).collect()
}

impl Reference {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The words of the persistent mapping and its flags, while its resource is not destroyed.
    pub(crate) fn mapping(&self) -> Option<(u64, MapFlags)> {
        let live = self.persistent.as_ref().filter(|map| !map.resource.is_destroyed());
        live.map(|map| (map.range.end - map.range.start, map.flags))
    }

    /// Whether commands that may be unfinished use any of these words: then a mapping without synchronization must
    /// finish the contexts first.
    pub(crate) fn is_pending(&self, resource: usize, range: &Range<u64>) -> bool {
        self.handles[resource].as_ref().is_some_and(|handle| handle.is_pending(self.finished, range))
    }

    /// As [`Reference::is_pending`], for the persistent mapping.
    pub(crate) fn mapping_is_pending(&self) -> bool {
        self.persistent.as_ref().is_some_and(|map| map.resource.is_pending(self.finished, &map.range))
    }

    /// Whether any command that may be unfinished uses the resource.
    pub(crate) fn is_busy(&self, resource: usize) -> bool {
        self.is_pending(resource, &(0..u64::MAX))
    }

    /// Whether the persistent mapping is one of this resource.
    pub(crate) fn is_mapped(&self, resource: usize) -> bool {
        let handle = self.handles[resource].as_ref();
        self.persistent.as_ref().is_some_and(|map| handle.is_some_and(|handle| Rc::ptr_eq(handle, &map.resource)))
    }

    /// Whether no word of the resource is defined.
    pub(crate) fn is_undefined(&self, resource: usize) -> bool {
        self.handles[resource].as_ref().is_some_and(|handle| handle.is_undefined())
    }

    /// The contents of all resources that have a handle and are not destroyed.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (usize, Shown)> {
        let live = |(which, handle): (usize, &Option<Handle>)| {
            let handle = handle.as_ref().filter(|handle| !handle.is_destroyed())?;
            Some((which, Shown::Words(handle.get(&(0..handle.size())))))
        };
        self.handles.iter().enumerate().filter_map(live)
    }

    /// The resource of a handle. Without a handle the step does nothing; a destroyed resource is an error.
    pub(crate) fn live(&self, which: usize) -> Result<&Handle, Shown> {
        match &self.handles[which] {
            None => Err(Shown::Nothing),
            Some(handle) if handle.is_destroyed() => Err(Shown::Refused),
            Some(handle) => Ok(handle),
        }
    }

    /// A part of a resource, for a slot of that kind.
    fn slot(&self, bound: Bound, kind: Kind) -> Result<Slot, Shown> {
        Ok(Slot::new(self.live(bound.handle(kind))?, bound, kind))
    }

    pub(crate) fn both(&self, from: usize, to: usize) -> Result<[&Handle; 2], Shown> {
        if self.handles[from].is_none() || self.handles[to].is_none() {
            return Err(Shown::Nothing);
        }
        Ok([self.live(from)?, self.live(to)?])
    }

    pub(crate) fn step(&mut self, step: &Step) -> Shown {
        match step {
            Step::Create { resource, words: count, contents } => {
                let contents = match contents {
                    Contents::Undefined => vec![None; *count as usize],
                    Contents::Zero => vec![Some(0); *count as usize],
                    Contents::Values(seed) => words(*seed, 0..*count),
                };
                self.handles[*resource] = Some(Resource::new(contents));
                Shown::Nothing
            }
            Step::CreateImage { image } => {
                self.handles[BUFFERS + image] = Some(Resource::new(vec![None; texels(SIZES[0]) as usize]));
                Shown::Nothing
            }
            Step::Drop { resource } => {
                self.handles[*resource] = None;
                Shown::Nothing
            }
            Step::Destroy { resource } => {
                self.handles[*resource].iter().for_each(|handle| handle.destroy());
                Shown::Nothing
            }
            Step::Unbind { context, slot } => {
                self.slots[*context][*slot] = None;
                Shown::Nothing
            }
            Step::Unpersist => {
                self.persistent = None;
                Shown::Nothing
            }
            Step::Through { part, seed } => self.through(*part, *seed),
            Step::Flush { .. } | Step::Finish { .. } => Shown::Nothing,
            Step::Record { into, again, commands, .. } => self.record(*into, *again, commands),
            Step::Submit { commands, .. } => self.submit(*commands),
            Step::Discard { commands } => {
                self.commands[*commands] = None;
                Shown::Nothing
            }
            other => self.on_resource(other).unwrap_or_else(|shown| shown),
        }
    }

    /// Steps on resources, which may be absent or destroyed.
    fn on_resource(&mut self, step: &Step) -> Result<Shown, Shown> {
        match step {
            Step::Bind { context, slot, bound, kind } => {
                self.slots[*context][*slot] = Some(self.slot(*bound, *kind)?);
            }
            Step::CreateSet { set, bounds, without, updatable } => {
                let kept = || (0..SLOTS).filter(|slot| Some(*slot) != *without);
                if kept().any(|slot| self.handles[bounds[slot].handle(Kind::at(slot))].is_none()) {
                    return Ok(Shown::Nothing);
                }
                let mut slots: [Option<Slot>; SLOTS] = Default::default();
                for slot in kept() {
                    slots[slot] = Some(self.slot(bounds[slot], Kind::at(slot))?);
                }
                if without.is_some() && !updatable {
                    return Ok(Shown::Refused);
                }
                self.sets[*set] = Some(Rc::new(Set { slots: RefCell::new(slots), updatable: *updatable }));
            }
            Step::WriteSet { set, slot, bound, kind } => {
                let Some(set) = self.sets[*set].as_ref().filter(|_| self.handles[bound.handle(*kind)].is_some()) else {
                    return Ok(Shown::Nothing);
                };
                let state = self.slot(*bound, *kind)?;
                if !set.updatable || *kind != Kind::at(*slot) {
                    return Ok(Shown::Refused);
                }
                set.slots.borrow_mut()[*slot] = Some(state);
            }
            Step::DropSet { set } => self.sets[*set] = None,
            Step::BindSet { context, set } => {
                if let Some(set) = &self.sets[*set] {
                    self.bound_sets[*context] = Some(Rc::clone(set));
                }
            }
            Step::UnbindSet { context } => self.bound_sets[*context] = None,
            Step::Dispatch { context, program, set, own, push } => {
                self.dispatch(*context, (*program, *push), *set, own)?;
            }
            Step::Write { resource, part, seed, .. } => {
                let handle = self.live(*resource)?;
                let range = part.of(handle.size(), false);
                handle.use_words(self.finished, &range);
                handle.put(range.start, &words(*seed, range));
            }
            Step::Upload { resource, words: count, seed, .. } => {
                let handle = self.live(*resource)?;
                let count = 1 + count % handle.size();
                handle.use_words(self.finished, &(0..count));
                handle.forget(&(0..handle.size()));
                handle.put(0, &words(*seed, 0..count));
            }
            Step::Copy { from, to, part, at, .. } => {
                let [from, to] = self.both(*from, *to)?;
                let range = part.of(from.size().min(to.size()), false);
                let at = at % (to.size() - (range.end - range.start) + 1);
                let target = at..at + range.end - range.start;
                if overlap((from, &range), (to, &target)) {
                    return Ok(Shown::Refused);
                }
                from.use_words(self.finished, &range);
                to.use_words(self.finished, &target);
                copy((from, &range), (to, &target));
            }
            Step::Fill { resource, part, word, .. } => {
                let handle = self.live(*resource)?;
                let range = part.of(handle.size(), false);
                handle.use_words(self.finished, &range);
                handle.put(range.start, &vec![Some(*word); (range.end - range.start) as usize]);
            }
            Step::Invalidate { resource, .. } => {
                let handle = self.live(*resource)?;
                handle.forget(&(0..handle.size()));
            }
            Step::Resize { resource, words: count, .. } => {
                let handle = self.live(*resource)?;
                if self.is_mapped(*resource) {
                    return Ok(Shown::Refused);
                }
                handle.respecify(*count);
            }
            Step::Map { resource, part, flags, writes, .. } => return self.map(*resource, *part, *flags, writes),
            Step::Persist { resource, part, flags, .. } => {
                let handle = Rc::clone(self.live(*resource)?);
                let range = part.of(handle.size(), false);
                if self.persistent.is_none() {
                    discard(&handle, &range, *flags);
                    self.persistent = Some(Persistent { resource: handle, range, flags: *flags });
                }
            }
            Step::Read { resource, part, .. } => {
                let handle = self.live(*resource)?;
                return Ok(read(handle, &part.of(handle.size(), false)));
            }
            other => return self.on_image(other),
        }
        Ok(Shown::Nothing)
    }

    fn on_image(&self, step: &Step) -> Result<Shown, Shown> {
        match step {
            Step::WriteImage { to, seed, .. } => {
                let handle = self.live(to.image())?;
                let range = to.texels(handle.size());
                handle.put(range.start, &words(*seed, range));
            }
            Step::ReadImage { from, .. } => {
                let handle = self.live(from.image())?;
                return Ok(read(handle, &from.texels(handle.size())));
            }
            Step::CopyImage { from, to, .. } => {
                let [source, target] = self.both(from.image(), to.image())?;
                let (one, other) = (from.texels(source.size()), to.texels(target.size()));
                if one.end - one.start != other.end - other.start || overlap((source, &one), (target, &other)) {
                    return Ok(Shown::Refused);
                }
                copy((source, &one), (target, &other));
            }
            Step::ClearImage { image, part, word, .. } => {
                let handle = self.live(BUFFERS + image)?;
                for (level, layer) in part.subresources() {
                    let range = level_of(handle.size(), level, layer);
                    handle.put(range.start, &vec![Some(*word); (range.end - range.start) as usize]);
                }
            }
            Step::InvalidateImage { image, part, .. } => {
                let handle = self.live(BUFFERS + image)?;
                let all = part.subresources();
                all.for_each(|(level, layer)| handle.forget(&level_of(handle.size(), level, layer)));
            }
            Step::ResizeImage { image, size, .. } => {
                let handle = self.live(BUFFERS + image)?;
                if *size == TOO_SMALL {
                    return Ok(Shown::Refused);
                }
                handle.respecify(texels(*size));
            }
            _ => {}
        }
        Ok(Shown::Nothing)
    }

    fn map(&mut self, resource: usize, part: Part, flags: MapFlags, writes: &[(Part, u32)]) -> Result<Shown, Shown> {
        let handle = Rc::clone(self.live(resource)?);
        let handle = &handle;
        let range = part.of(handle.size(), false);
        if flags.contains(MapFlags::UNSYNCHRONIZED) && handle.is_pending(self.finished, &range) {
            self.finished += 1;
        }
        let mapped = self.persistent.as_ref();
        if mapped.is_some_and(|map| overlap((handle, &range), (&map.resource, &map.range))) {
            return Ok(Shown::Refused);
        }
        discard(handle, &range, flags);
        if flags.contains(MapFlags::WRITE) && !flags.contains(MapFlags::UNSYNCHRONIZED) {
            handle.use_words(self.finished, &range);
        }
        let before = handle.get(&range);
        for (part, seed) in writes.iter().filter(|_| flags.contains(MapFlags::WRITE)) {
            let inside = part.of(range.end - range.start, false);
            handle.put(range.start + inside.start, &words(*seed, inside));
        }
        Ok(if flags.contains(MapFlags::READ) { Shown::Words(before) } else { Shown::Nothing })
    }

    /// Reads the whole persistent mapping, then writes a part of it, as far as its flags allow it.
    fn through(&mut self, part: Part, seed: u32) -> Shown {
        let pending = self.mapping_is_pending();
        let Some(Persistent { resource, range, flags }) = &self.persistent else { return Shown::Nothing };
        if resource.is_destroyed() {
            return Shown::Nothing;
        }
        self.finished += u64::from(pending);
        let before = resource.get(range);
        let inside = part.of(range.end - range.start, false);
        if flags.contains(MapFlags::WRITE) {
            resource.put(range.start + inside.start, &words(seed, inside));
        }
        if flags.contains(MapFlags::READ) { Shown::Words(before) } else { Shown::Nothing }
    }

    fn dispatch(
        &self,
        context: usize,
        (program, push): (usize, u32),
        set: Option<usize>,
        own: &[Option<Bound>; 3],
    ) -> Result<(), Shown> {
        let mut takes = kernels::TAKES[program].iter().zip(own);
        if takes.any(|(take, own)| own.is_some_and(|bound| self.handles[bound.handle(take.kind)].is_none())) {
            return Err(Shown::Nothing);
        }
        let set = match set {
            Some(set) => Some(self.sets[set].as_ref().ok_or(Shown::Nothing)?),
            None => self.bound_sets[context].as_ref(),
        };
        let bound = |binding: usize| match set {
            Some(set) => set.slots.borrow()[binding].clone(),
            None => self.slots[context][binding].clone(),
        };
        let slots = self.taken(program, own, bound)?;
        let seen: Vec<Seen> = slots.iter().filter_map(Slot::now).collect();
        self.run(&seen, (program, push));
        Ok(())
    }

    /// What a dispatch takes: its own bindings, and for the others what is bound at their number.
    pub(crate) fn taken(
        &self,
        program: usize,
        own: &[Option<Bound>; 3],
        bound: impl Fn(usize) -> Option<Slot>,
    ) -> Result<Vec<Slot>, Shown> {
        let one = |(take, own): (&kernels::Taken, &Option<Bound>)| {
            let found = match own {
                Some(bound) => self.slot(*bound, take.kind)?,
                None => bound(take.binding as usize).ok_or(Shown::Refused)?,
            };
            let fits = found.kind == take.kind && found.now().is_some();
            fits.then_some(found).ok_or(Shown::Refused)
        };
        kernels::TAKES[program].iter().zip(own).map(one).collect()
    }

    /// Runs a program on these words.
    pub(crate) fn run(&self, slots: &[Seen], (program, push): (usize, u32)) {
        let takes = kernels::TAKES[program];
        slots.iter().for_each(|slot| slot.resource.use_words(self.finished, &slot.range));
        let mut taken: Vec<_> = slots.iter().map(|slot| slot.resource.get(&slot.range)).collect();
        slots.iter().for_each(|slot| racy::overwrites(&slot.resource, &slot.range));
        taken.iter().for_each(|words| racy::reads(words));
        kernels::run(program, &mut taken, push);
        let written = || slots.iter().enumerate().filter(|(at, _)| takes[*at].writes);
        written().for_each(|(at, slot)| slot.resource.put(slot.range.start, &taken[at]));
        // A write to words that another descriptor also shows has an undefined result.
        let meet = |x: &Seen, y: &Seen| overlap((&x.resource, &x.range), (&y.resource, &y.range));
        let is_seen_twice = |at: usize| slots.iter().enumerate().any(|(b, other)| b != at && meet(&slots[at], other));
        if written().any(|(at, _)| is_seen_twice(at)) {
            racy::races();
            written().for_each(|(_, slot)| slot.resource.forget(&slot.range));
        }
    }
}
