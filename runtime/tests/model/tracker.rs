//! The other side: the same steps by the tracker.

use std::ops::Range;

use spelter::{Bind, Buffer, Context, Error, MapFlags, Mapped, Program};

use crate::kernels;
use crate::reference::{Reference, Shown};
use crate::step::{CONTEXTS, Contents, Part, RESOURCES, Step, value};

pub(crate) struct Tracker {
    contexts: Vec<Context>,
    /// Has no slots: it counts what is left when the others are gone.
    watcher: Context,
    programs: Vec<Program>,
    handles: [Option<Buffer>; RESOURCES],
    persistent: Option<Mapped>,
}

fn bytes(words: &Range<u64>) -> Range<u64> {
    words.start * 4..words.end * 4
}

fn values(seed: u32, words: Range<u64>) -> Vec<u32> {
    words.map(|at| value(seed, at)).collect()
}

/// The words of a part of a buffer.
fn part_of(buffer: &Buffer, part: Part, aligned: bool) -> Range<u64> {
    part.of(buffer.size() / 4, aligned)
}

fn shown(result: Result<(), Error>) -> Shown {
    match result {
        Ok(()) => Shown::Nothing,
        Err(Error::DeviceLost(why)) => panic!("device lost: {why}"),
        Err(_) => Shown::Refused,
    }
}

fn words(result: Result<Vec<u32>, Error>) -> Shown {
    match result {
        Ok(words) => Shown::Words(words.into_iter().map(Some).collect()),
        Err(error) => shown(Err(error)),
    }
}

impl Tracker {
    pub(crate) fn new() -> Self {
        let watcher = Context::builder().workers(2).memory(64 << 20).poison(true).build().unwrap();
        let programs = kernels::texts().iter().map(|text| watcher.program_wgsl(text).unwrap()).collect();
        let contexts = (0..CONTEXTS).map(|_| watcher.sibling()).collect();
        Self { contexts, watcher, programs, handles: Default::default(), persistent: None }
    }

    pub(crate) fn read_all(&self, resource: usize) -> Shown {
        self.handles[resource].as_ref().map_or(Shown::Nothing, |buffer| words(self.watcher.read(buffer)))
    }

    /// Drops everything; how many objects are left.
    pub(crate) fn end(mut self) -> u64 {
        self.persistent = None;
        self.contexts.clear();
        self.handles = Default::default();
        self.watcher.stats().objects_alive()
    }

    fn finish_all(&self) {
        self.contexts.iter().for_each(|context| context.finish().unwrap());
    }

    pub(crate) fn step(&mut self, step: &Step, reference: &Reference) -> Shown {
        match step {
            Step::Create { resource, words, contents } => {
                let builder = self.watcher.buffer(words * 4).label(format!("resource {resource}"));
                let buffer = match contents {
                    Contents::Undefined => builder.build(),
                    Contents::Zero => builder.zeroed(),
                    Contents::Values(seed) => builder.holding(&values(*seed, 0..*words)),
                };
                self.handles[*resource] = Some(buffer.unwrap());
                Shown::Nothing
            }
            Step::Drop { resource } => {
                self.handles[*resource] = None;
                Shown::Nothing
            }
            Step::Destroy { resource } => {
                self.handles[*resource].iter().for_each(Buffer::destroy);
                Shown::Nothing
            }
            Step::Unbind { context, slot } => shown(self.contexts[*context].unbind((0, *slot as u32))),
            Step::Flush { context } => shown(self.contexts[*context].flush().map(drop)),
            Step::Finish { context } => shown(self.contexts[*context].finish()),
            Step::Dispatch { context, program, own } => self.dispatch(*context, *program, own),
            Step::Unpersist => shown(self.persistent.take().map_or(Ok(()), Mapped::unmap)),
            Step::Through { part, seed } => self.through(*part, *seed, reference),
            other => self.on_resource(other),
        }
    }

    fn on_resource(&mut self, step: &Step) -> Shown {
        let handle = |resource: &usize| self.handles[*resource].as_ref();
        match step {
            Step::Bind { context, slot, bound, uniform } => {
                let Some(buffer) = handle(&bound.resource) else { return Shown::Nothing };
                let slice = buffer.slice(bytes(&part_of(buffer, bound.part, true)));
                let bind = if *uniform { Bind::uniform(slice) } else { Bind::storage(slice) };
                shown(self.contexts[*context].bind((0, *slot as u32), bind))
            }
            Step::Write { context, resource, part, seed } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                let range = part_of(buffer, *part, false);
                shown(self.contexts[*context].write(buffer, range.start * 4, &values(*seed, range)))
            }
            Step::Upload { context, resource, words, seed } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                let words = 1 + words % (buffer.size() / 4);
                shown(self.contexts[*context].upload(buffer, &values(*seed, 0..words)))
            }
            Step::Copy { context, from, to, part, at } => {
                let (Some(from), Some(to)) = (handle(from), handle(to)) else { return Shown::Nothing };
                let range = part.of(from.size().min(to.size()) / 4, false);
                let len = range.end - range.start;
                let at = at % (to.size() / 4 - len + 1);
                shown(self.contexts[*context].copy(from, range.start * 4, to, at * 4, len * 4))
            }
            Step::Fill { context, resource, part, word } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                let range = bytes(&part_of(buffer, *part, false));
                shown(self.contexts[*context].fill_range(buffer, range, *word))
            }
            Step::Invalidate { context, resource } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                shown(self.contexts[*context].invalidate(buffer))
            }
            Step::Map { context, resource, part, flags, writes } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                self.map(&self.contexts[*context], buffer, *part, *flags, writes)
            }
            Step::Persist { context, resource, part } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                if self.persistent.is_some() {
                    // Nothing happens, but that a destroyed resource is refused.
                    return shown(self.contexts[*context].read_range::<u32>(buffer, 0..4).map(drop));
                }
                let range = bytes(&part_of(buffer, *part, false));
                let flags = MapFlags::READ | MapFlags::WRITE | MapFlags::PERSISTENT | MapFlags::COHERENT;
                match self.contexts[*context].map(buffer.slice(range), flags) {
                    Ok(map) => {
                        self.persistent = Some(map);
                        Shown::Nothing
                    }
                    Err(error) => shown(Err(error)),
                }
            }
            Step::Read { context, resource, part } => {
                let Some(buffer) = handle(resource) else { return Shown::Nothing };
                words(self.contexts[*context].read_range(buffer, bytes(&part_of(buffer, *part, false))))
            }
            _ => Shown::Nothing,
        }
    }

    fn map(&self, context: &Context, buffer: &Buffer, part: Part, flags: MapFlags, writes: &[(Part, u32)]) -> Shown {
        let range = part_of(buffer, part, false);
        if flags.contains(MapFlags::UNSYNCHRONIZED) {
            // The program's promise: commands and host do not meet.
            self.finish_all();
        }
        let map = match context.map(buffer.slice(bytes(&range)), flags) {
            Ok(map) => map,
            Err(error) => return shown(Err(error)),
        };
        let reads = flags.contains(MapFlags::READ);
        let before = reads.then(|| map.read::<u32>(0, (range.end - range.start) as usize));
        for (part, seed) in writes.iter().filter(|_| flags.contains(MapFlags::WRITE)) {
            let inside = part.of(range.end - range.start, false);
            map.write(inside.start * 4, &values(*seed, inside)).unwrap();
        }
        match (map.unmap(), before) {
            (Ok(()), Some(before)) => words(before),
            (result, _) => shown(result),
        }
    }

    fn through(&self, part: Part, seed: u32, reference: &Reference) -> Shown {
        let (Some(map), Some(len)) = (&self.persistent, reference.mapped_words()) else { return Shown::Nothing };
        // A persistent mapping is not synchronised: the program waits.
        self.finish_all();
        let before = map.read::<u32>(0, len as usize);
        let inside = part.of(len, false);
        map.write(inside.start * 4, &values(seed, inside)).unwrap();
        words(before)
    }

    fn dispatch(&self, context: usize, program: usize, own: &[Option<crate::step::Bound>; 3]) -> Shown {
        let mut dispatch = self.contexts[context].dispatch(&self.programs[program]);
        for (binding, own) in (0u32..).zip(own) {
            let Some(bound) = own else { continue };
            let Some(buffer) = &self.handles[bound.resource] else { return Shown::Nothing };
            dispatch = dispatch.bind_range(0, binding, buffer, bytes(&part_of(buffer, bound.part, true)));
        }
        // Enough for the largest buffer.
        shown(dispatch.invocations([5000, 1, 1]))
    }
}
