//! The tracker's side: the same steps through the runtime.

use std::cell::Cell;
use std::ops::Range;

use spelter::{
    Action, Bind, BindingKind, Buffer, ClearColor, CommandBuffer, Context, DescriptorSet, Dispatch, Error, Image,
    ImagePart, MapFlags, Mapped, ObjectInfo, Outcome, Program, Recorder, SetBinding, Stats, vk,
};

use crate::model::kernels;
use crate::model::reference::{Reference, Shown};
use crate::model::shape::{self, SIZES, level_of};
use crate::model::step::{
    BUFFERS, Bound, COMMANDS, CONTEXTS, Contents, HUGE, IMAGES, Kind, LARGE, Part, Parts, Recorded, SETS, SLOTS, Step,
    value,
};
use crate::model::{IMAGES_RESIZED, MAPPED_IN_USE};

/// The size of a heap with room for everything, in bytes.
const HEAP: u64 = 64 << 20;
/// The size of a heap with room for a few large buffers only, in bytes.
const SMALL_HEAP: u64 = 3 << 20;

/// A device, with the objects that all random programs share.
pub(crate) struct Home {
    /// Has no slots: it counts the objects that are left when the other contexts are dropped.
    watcher: Context,
    programs: Vec<Program>,
    pub(crate) small: bool,
    /// The number of mappings without synchronization of buffers in use, of words that are not used.
    met: Cell<u64>,
    /// The number of images that got another size.
    resized: Cell<u64>,
}

impl Home {
    pub(crate) fn new(small: bool) -> Self {
        let heap = if small { SMALL_HEAP } else { HEAP };
        let watcher = Context::builder().workers(2).memory(heap).poison(true).build().unwrap();
        let programs = kernels::programs(&watcher);
        Self { watcher, programs, small, met: Cell::new(0), resized: Cell::new(0) }
    }

    pub(crate) fn stats(&self) -> Stats {
        self.watcher.stats()
    }

    /// What statistics do not count: mappings without synchronization of buffers in use, and images that got another
    /// size.
    pub(crate) fn counted(&self) -> [(&'static str, u64); 2] {
        [(MAPPED_IN_USE, self.met.get()), (IMAGES_RESIZED, self.resized.get())]
    }
}

pub(crate) struct Tracker<'a> {
    home: &'a Home,
    contexts: Vec<Context>,
    buffers: [Option<Buffer>; BUFFERS],
    images: [Option<Image>; IMAGES],
    sets: [Option<DescriptorSet>; SETS],
    commands: [Option<CommandBuffer>; COMMANDS],
    persistent: Option<Mapped>,
}

fn bytes(words: &Range<u64>) -> Range<u64> {
    words.start * 4..words.end * 4
}

fn values(seed: u32, words: Range<u64>) -> Vec<u32> {
    words.map(|at| value(seed, at)).collect()
}

/// The number of texels of all levels and layers of an image.
fn texels(image: &Image) -> u64 {
    let [width, height, _] = image.level_size(0);
    shape::texels([width, height])
}

/// The words of a part of a buffer.
fn part_of(buffer: &Buffer, part: Part) -> Range<u64> {
    part.of(buffer.size() / 4, false)
}

fn shown(result: Result<(), Error>) -> Shown {
    match result {
        Ok(()) => Shown::Nothing,
        Err(Error::DeviceLost(why)) => panic!("device lost: {why}"),
        Err(Error::OutOfMemory(_)) => Shown::Full,
        Err(_) => Shown::Refused,
    }
}

/// What the reference knows of a buffer before a call: whether unfinished commands may use it, whether no word of it is
/// defined, and whether it is mapped.
struct Known {
    busy: bool,
    undefined: bool,
    mapped: bool,
}

/// Makes a call and compares its outcome with the object before and after it, and with the reference. Idle objects are
/// replaced only if the call changes the size.
fn checked(
    object: impl Fn() -> Result<ObjectInfo, Error>,
    known: Option<Known>,
    resizes: bool,
    call: impl FnOnce() -> Result<Outcome, Error>,
) -> Shown {
    let (before, result) = (object(), call());
    let outcome = match (&result, before, object()) {
        (Ok(outcome), Ok(before), Ok(after)) => Some((outcome.action, before, after)),
        (Err(_), Ok(before), Ok(after)) => {
            assert_eq!((before.id, before.generation), (after.id, after.generation), "a call that failed");
            None
        }
        (result, ..) => {
            assert!(result.is_err(), "a destroyed resource: {result:?}");
            None
        }
    };
    if let Some((action, before, after)) = outcome {
        if let Action::Replaced { old, new } = action {
            assert_eq!((old, new), (before.id, after.id), "the objects of {result:?}");
            assert_eq!(after.generation, before.generation + 1, "{result:?}");
        } else {
            assert_eq!((before.id, before.generation), (after.id, after.generation), "the object after {action:?}");
        }
        if let Some(Known { busy, undefined, mapped }) = known {
            match action {
                Action::Replaced { .. } => assert!(busy || resizes, "idle, and replaced"),
                Action::Staged { .. } => assert!(busy, "idle, and staged"),
                Action::NothingValid => assert!(undefined, "defined words do not count as valid"),
                Action::Refused => assert!(mapped, "refused, and not mapped"),
                _ => {}
            }
        }
    }
    shown(result.map(|_| ()))
}

fn words(result: Result<Vec<u32>, Error>) -> Shown {
    match result {
        Ok(words) => Shown::Words(words.into_iter().map(Some).collect()),
        Err(error) => shown(Err(error)),
    }
}

fn binding_kind(kind: Kind) -> BindingKind {
    match kind {
        Kind::Uniform => BindingKind::UniformBuffer,
        Kind::Storage => BindingKind::StorageBuffer,
        Kind::Texels => BindingKind::UniformTexelBuffer,
        Kind::StorageTexels => BindingKind::StorageTexelBuffer,
        Kind::Sampled => BindingKind::SampledImage,
        Kind::StorageImage => BindingKind::StorageImage,
    }
}

fn parts(image: &Image, parts: Parts) -> ImagePart<'_> {
    let part = image.all();
    let part = parts.level.map_or(part.clone(), |level| part.levels(level..=level));
    parts.layer.map_or(part.clone(), |layer| part.layers(layer..=layer))
}

impl<'a> Tracker<'a> {
    pub(crate) fn new(home: &'a Home) -> Self {
        let contexts = (0..CONTEXTS).map(|_| home.watcher.sibling()).collect();
        Self {
            home,
            contexts,
            buffers: Default::default(),
            images: Default::default(),
            sets: Default::default(),
            commands: Default::default(),
            persistent: None,
        }
    }

    /// All words of a buffer, or the texels of an image.
    pub(crate) fn read_all(&self, which: usize) -> Shown {
        let watcher = &self.home.watcher;
        if let Some(buffer) = self.buffers.get(which) {
            return buffer.as_ref().map_or(Shown::Nothing, |buffer| words(watcher.read(buffer)));
        }
        let Some(image) = &self.images[which - BUFFERS] else { return Shown::Nothing };
        let levels = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let texels = levels.map(|(level, layer)| watcher.read_image::<u32>(image, level, layer));
        words(texels.into_iter().collect::<Result<Vec<_>, _>>().map(|levels| levels.concat()))
    }

    /// The words of a buffer, or texels of an image, that count as valid; `None` without a handle.
    pub(crate) fn valid(&self, which: usize) -> Vec<Range<u64>> {
        if let Some(buffer) = self.buffers.get(which) {
            let ranges = buffer.iter().flat_map(Buffer::valid_ranges);
            return ranges.map(|range| range.start / 4..range.end.div_ceil(4)).collect();
        }
        let Some(image) = &self.images[which - BUFFERS] else { return Vec::new() };
        let all = texels(image);
        image.valid_subresources().into_iter().map(|(level, layer)| level_of(all, level, layer)).collect()
    }

    /// Drops everything and returns the number of objects that are left.
    pub(crate) fn end(mut self) -> u64 {
        self.persistent = None;
        self.contexts.clear();
        self.commands = Default::default();
        (self.buffers, self.images, self.sets) = Default::default();
        self.home.watcher.stats().objects_alive()
    }

    pub(crate) fn finish_all(&self) {
        self.contexts.iter().for_each(|context| context.finish().unwrap());
    }

    pub(crate) fn step(&mut self, step: &Step, reference: &Reference) -> Shown {
        let watcher = &self.home.watcher;
        match step {
            Step::Create { resource, words, contents } => {
                let builder = watcher.buffer(words * 4).label(format!("resource {resource}"));
                let buffer = match contents {
                    Contents::Undefined => builder.build(),
                    Contents::Zero => builder.zeroed(),
                    Contents::Values(seed) => builder.holding(&values(*seed, 0..*words)),
                };
                shown(buffer.map(|buffer| self.buffers[*resource] = Some(buffer)))
            }
            Step::CreateImage { image } => {
                let [width, height] = SIZES[0];
                let made = watcher.image(vk::Format::R32_UINT, [width, height, 1]).levels(2).layers(2).build();
                shown(made.map(|made| self.images[*image] = Some(made)))
            }
            Step::Drop { resource } => {
                match self.buffers.get_mut(*resource) {
                    Some(buffer) => *buffer = None,
                    None => self.images[resource - BUFFERS] = None,
                }
                Shown::Nothing
            }
            Step::Destroy { resource } => {
                match self.buffers.get(*resource) {
                    Some(buffer) => buffer.iter().for_each(Buffer::destroy),
                    None => self.images[resource - BUFFERS].iter().for_each(Image::destroy),
                }
                Shown::Nothing
            }
            Step::Unbind { context, slot } => shown(self.contexts[*context].unbind((0, *slot as u32))),
            Step::Flush { context } => shown(self.contexts[*context].flush().map(drop)),
            Step::Finish { context } => shown(self.contexts[*context].finish()),
            Step::Dispatch { context, program, set, own, push } => {
                self.dispatch(*context, (*program, *push), *set, own).unwrap_or(Shown::Nothing)
            }
            Step::CreateSet { set, bounds, without, updatable } => {
                self.create_set(*set, (bounds, *without), *updatable).unwrap_or(Shown::Nothing)
            }
            Step::WriteSet { set, slot, bound, kind } => {
                let set = self.sets[*set].as_ref().zip(self.bind(*bound, *kind));
                set.map_or(Shown::Nothing, |(set, bind)| shown(set.write(*slot as u32, bind)))
            }
            Step::DropSet { set } => {
                self.sets[*set] = None;
                Shown::Nothing
            }
            Step::BindSet { context, set } => {
                self.sets[*set].as_ref().map_or(Shown::Nothing, |set| shown(self.contexts[*context].bind_set(0, set)))
            }
            Step::UnbindSet { context } => shown(self.contexts[*context].unbind_set(0)),
            Step::Record { context, into, again, commands } => self.record(*context, (*into, *again), commands),
            Step::Submit { context, commands } => match &self.commands[*commands] {
                Some(commands) => shown(self.contexts[*context].submit(commands).map(drop)),
                None => Shown::Nothing,
            },
            Step::Discard { commands } => {
                self.commands[*commands] = None;
                Shown::Nothing
            }
            Step::Unpersist => shown(self.persistent.take().map_or(Ok(()), Mapped::unmap)),
            Step::Through { part, seed } => self.through(*part, *seed, reference),
            other => self.on_buffer(other, reference).or_else(|| self.on_image(other)).unwrap_or(Shown::Nothing),
        }
    }

    /// The binding that a step means; `None` if there is no handle.
    fn bind(&self, bound: Bound, kind: Kind) -> Option<Bind> {
        if kind.is_image() {
            let (level, layer) = bound.subresource();
            let image = self.images[bound.image() - BUFFERS].as_ref()?;
            let part = image.level(level).layers(layer..=layer).as_type(vk::ImageViewType::TYPE_2D);
            return Some(if kind == Kind::Sampled { Bind::sampled(part) } else { Bind::storage_image(part) });
        }
        let buffer = self.buffers[bound.handle(kind)].as_ref()?;
        let words = buffer.size() / 4;
        let range = bytes(&bound.words(kind, words));
        let slice = if bound.is_to_end(kind, words) { buffer.slice(range.start..) } else { buffer.slice(range) };
        Some(match kind {
            Kind::Uniform => Bind::uniform(slice),
            Kind::Storage => Bind::storage(slice),
            Kind::Texels => Bind::texels(slice, vk::Format::R32_UINT),
            _ => Bind::storage_texels(slice, vk::Format::R32_UINT),
        })
    }

    /// Makes a set; `None` if there is no handle of a resource.
    fn create_set(
        &mut self,
        set: usize,
        (bounds, without): (&[Bound; SLOTS], Option<usize>),
        updatable: bool,
    ) -> Option<Shown> {
        let binding = |slot: usize| SetBinding::new(slot as u32, binding_kind(Kind::at(slot)));
        let layout: Vec<_> = (0..SLOTS).map(binding).collect();
        let mut builder = self.home.watcher.descriptor_set_of(&layout);
        for slot in (0..SLOTS).filter(|slot| Some(*slot) != without) {
            builder = builder.with(slot as u32, self.bind(bounds[slot], Kind::at(slot))?);
        }
        let builder = if updatable { builder.updatable() } else { builder };
        Some(shown(builder.build().map(|made| self.sets[set] = Some(made))))
    }

    /// Steps on buffers; `None` if there is no handle, or if it is another step.
    fn on_buffer(&mut self, step: &Step, reference: &Reference) -> Option<Shown> {
        let handle = |resource: &usize| self.buffers[*resource].as_ref();
        Some(match step {
            Step::Bind { context, slot, bound, kind } => {
                shown(self.contexts[*context].bind((0, *slot as u32), self.bind(*bound, *kind)?))
            }
            Step::Write { context, resource, part, seed } => {
                let buffer = handle(resource)?;
                let range = part_of(buffer, *part);
                self.checked(*resource, reference, |buffer| {
                    self.contexts[*context].write(buffer, range.start * 4, &values(*seed, range))
                })?
            }
            Step::Upload { context, resource, words, seed } => {
                let buffer = handle(resource)?;
                let words = 1 + words % (buffer.size() / 4);
                self.checked(*resource, reference, |buffer| {
                    self.contexts[*context].upload(buffer, &values(*seed, 0..words))
                })?
            }
            Step::Copy { context, from, to, part, at } => {
                let (from, to) = (handle(from)?, handle(to)?);
                let range = part.of(from.size().min(to.size()) / 4, false);
                let len = range.end - range.start;
                let at = at % (to.size() / 4 - len + 1);
                shown(self.contexts[*context].copy(from, range.start * 4, to, at * 4, len * 4))
            }
            Step::Fill { context, resource, part, word } => {
                let buffer = handle(resource)?;
                let range = bytes(&part_of(buffer, *part));
                shown(self.contexts[*context].fill_range(buffer, range, *word))
            }
            Step::Invalidate { context, resource } => {
                self.checked(*resource, reference, |buffer| self.contexts[*context].invalidate(buffer))?
            }
            Step::Resize { context, resource, words } => {
                let buffer = handle(resource)?;
                let (bytes, known) = (words * 4, Self::known(*resource, reference));
                let resizes = bytes != buffer.size();
                let call = || self.contexts[*context].resize(buffer, bytes);
                let shown = checked(|| buffer.object(), Some(known), resizes, call);
                assert!(!matches!(shown, Shown::Nothing) || buffer.size() == bytes);
                shown
            }
            Step::Map { context, resource, part, flags, writes } => {
                let buffer = handle(resource)?;
                if flags.contains(MapFlags::UNSYNCHRONIZED) {
                    // The program guarantees that commands and host access different words.
                    if reference.is_pending(*resource, &part_of(buffer, *part)) {
                        self.finish_all();
                    } else {
                        self.home.met.set(self.home.met.get() + u64::from(reference.is_busy(*resource)));
                    }
                }
                self.map(&self.contexts[*context], buffer, *part, *flags, writes)
            }
            Step::Persist { context, resource, part, flags } => {
                let buffer = handle(resource)?;
                if self.persistent.is_some() {
                    // No effect, except that a destroyed resource is an error.
                    return Some(shown(self.contexts[*context].read_range::<u32>(buffer, 0..4).map(drop)));
                }
                let range = bytes(&part_of(buffer, *part));
                let map = self.contexts[*context].map(buffer.slice(range), *flags);
                shown(map.map(|map| self.persistent = Some(map)))
            }
            Step::Read { context, resource, part } => {
                let buffer = handle(resource)?;
                words(self.contexts[*context].read_range(buffer, bytes(&part_of(buffer, *part))))
            }
            _ => return None,
        })
    }

    fn known(resource: usize, reference: &Reference) -> Known {
        let (busy, undefined) = (reference.is_busy(resource), reference.is_undefined(resource));
        Known { busy, undefined, mapped: reference.is_mapped(resource) }
    }

    /// A call on a buffer, with its outcome checked; `None` if there is no handle.
    fn checked(
        &self,
        resource: usize,
        reference: &Reference,
        call: impl FnOnce(&Buffer) -> Result<Outcome, Error>,
    ) -> Option<Shown> {
        let buffer = self.buffers[resource].as_ref()?;
        Some(checked(|| buffer.object(), Some(Self::known(resource, reference)), false, || call(buffer)))
    }

    /// Steps on images; `None` if there is no handle, or if it is another step.
    fn on_image(&self, step: &Step) -> Option<Shown> {
        let named = |bound: &Bound| self.images[bound.image() - BUFFERS].as_ref();
        Some(match step {
            Step::WriteImage { context, to, seed } => {
                let (image, (level, layer)) = (named(to)?, to.subresource());
                let texels = values(*seed, to.texels(texels(image)));
                let call = || self.contexts[*context].write_image(image, level, layer, &texels);
                checked(|| image.object(), None, false, call)
            }
            Step::ReadImage { context, from } => {
                let (image, (level, layer)) = (named(from)?, from.subresource());
                words(self.contexts[*context].read_image(image, level, layer))
            }
            Step::CopyImage { context, from, to } => {
                let [from, to] = [(named(from)?, from.subresource()), (named(to)?, to.subresource())];
                let flat = |(image, (level, layer)): (_, (u32, u32))| (image, level, layer);
                shown(self.contexts[*context].copy_image(flat(from), flat(to)))
            }
            Step::ClearImage { context, image, part, word } => {
                let image = self.images[*image].as_ref()?;
                shown(self.contexts[*context].clear_image(parts(image, *part), ClearColor::Uint([*word; 4])))
            }
            Step::InvalidateImage { context, image, part } => {
                let image = self.images[*image].as_ref()?;
                let call = || self.contexts[*context].invalidate_image(parts(image, *part));
                checked(|| image.object(), None, false, call)
            }
            Step::ResizeImage { context, image, size: [width, height] } => {
                let image = self.images[*image].as_ref()?;
                let (before, wanted) = (image.level_size(0), [*width, *height, 1]);
                let call = || self.contexts[*context].resize_image(image, wanted);
                let shown = checked(|| image.object(), None, before != wanted, call);
                let done = matches!(shown, Shown::Nothing);
                assert_eq!(image.level_size(0), if done { wanted } else { before }, "the size after a respecification");
                self.home.resized.set(self.home.resized.get() + u64::from(done && before != wanted));
                shown
            }
            _ => return None,
        })
    }

    fn map(&self, context: &Context, buffer: &Buffer, part: Part, flags: MapFlags, writes: &[(Part, u32)]) -> Shown {
        let range = part_of(buffer, part);
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
        let (Some(map), Some((len, flags))) = (&self.persistent, reference.mapping()) else { return Shown::Nothing };
        // A persistent mapping is not synchronized: the program waits if a command uses those words.
        if reference.mapping_is_pending() {
            self.finish_all();
        }
        let reads = flags.contains(MapFlags::READ);
        let before = reads.then(|| map.read::<u32>(0, len as usize));
        let inside = part.of(len, false);
        let written = map.write(inside.start * 4, &values(seed, inside));
        assert_eq!(written.is_ok(), flags.contains(MapFlags::WRITE), "{written:?}");
        before.map_or(Shown::Nothing, words)
    }

    fn dispatch(
        &self,
        context: usize,
        (program, push): (usize, u32),
        set: Option<usize>,
        own: &[Option<Bound>; 3],
    ) -> Option<Shown> {
        let mut dispatch = self.contexts[context].dispatch(&self.home.programs[program]);
        if let Some(set) = set {
            dispatch = dispatch.set(0, self.sets[set].as_ref()?);
        }
        Some(shown(self.bound(dispatch, (program, push), own)?.invocations(self.invocations())))
    }

    /// Enough invocations for the largest buffer.
    fn invocations(&self) -> [u32; 3] {
        [if self.home.small { HUGE } else { LARGE } as u32, 1, 1]
    }

    /// A dispatch with its push constants and its own bindings; `None` if there is no handle.
    fn bound<'d>(
        &self,
        mut dispatch: Dispatch<'d>,
        (program, push): (usize, u32),
        own: &[Option<Bound>; 3],
    ) -> Option<Dispatch<'d>> {
        if program == kernels::PUSHES {
            dispatch = dispatch.push(&push);
        }
        for (take, own) in kernels::TAKES[program].iter().zip(own) {
            let Some(bound) = own else { continue };
            dispatch = match take.kind {
                Kind::Uniform | Kind::Storage => {
                    let buffer = self.buffers[bound.handle(take.kind)].as_ref()?;
                    let words = buffer.size() / 4;
                    if bound.is_to_end(take.kind, words) {
                        // A command buffer follows the size of the buffer.
                        dispatch.with((0, take.binding), self.bind(*bound, take.kind)?)
                    } else {
                        dispatch.bind_range(0, take.binding, buffer, bytes(&bound.words(take.kind, words)))
                    }
                }
                kind => dispatch.with((0, take.binding), self.bind(*bound, kind)?),
            };
        }
        Some(dispatch)
    }

    /// Records a command buffer; nothing if a handle is missing.
    fn record(&mut self, context: usize, (into, again): (usize, bool), commands: &[Recorded]) -> Shown {
        let mut missing = commands.iter().any(|command| self.lacks(into, command));
        if missing {
            return Shown::Nothing;
        }
        let record = |recorder: &mut Recorder| {
            commands.iter().try_for_each(|command| {
                self.command(recorder, command).unwrap_or_else(|| {
                    missing = true;
                    Ok(())
                })
            })
        };
        let context = &self.contexts[context];
        let recorded = match &self.commands[into] {
            Some(known) if again => context.rerecord(known, record).map(|()| None),
            _ => context.record(record).map(Some),
        };
        assert!(!missing, "all handles are there");
        shown(recorded.map(|new| {
            if let Some(new) = new {
                self.commands[into] = Some(new);
            }
        }))
    }

    /// Whether a handle of the command is missing.
    fn lacks(&self, into: usize, command: &Recorded) -> bool {
        let image = |bound: &Bound| self.images[bound.image() - BUFFERS].is_none();
        match command {
            Recorded::Dispatch { program, set, own, .. } => {
                let mut own = kernels::TAKES[*program].iter().zip(own);
                set.is_some_and(|set| self.sets[set].is_none())
                    || own.any(|(take, own)| own.is_some_and(|bound| self.bind(bound, take.kind).is_none()))
            }
            Recorded::Copy { from, to, .. } => self.buffers[*from].is_none() || self.buffers[*to].is_none(),
            Recorded::Fill { resource, .. } => self.buffers[*resource].is_none(),
            Recorded::CopyImage { from, to } => image(from) || image(to),
            Recorded::ClearImage { image, .. } => self.images[*image].is_none(),
            Recorded::Execute { commands } => *commands >= into || self.commands[*commands].is_none(),
        }
    }

    fn command(&self, recorder: &mut Recorder, command: &Recorded) -> Option<Result<(), Error>> {
        let buffer = |which: &usize| self.buffers[*which].as_ref();
        let named = |bound: &Bound| Some((self.images[bound.image() - BUFFERS].as_ref()?, bound.subresource()));
        Some(match command {
            Recorded::Dispatch { program, set, own, push } => {
                let mut dispatch = recorder.dispatch(&self.home.programs[*program]);
                if let Some(set) = set {
                    dispatch = dispatch.set(0, self.sets[*set].as_ref()?);
                }
                self.bound(dispatch, (*program, *push), own)?.invocations(self.invocations())
            }
            Recorded::Copy { from, to, part, at } => {
                let (from, to) = (buffer(from)?, buffer(to)?);
                let range = part.of(from.size().min(to.size()) / 4, false);
                let len = range.end - range.start;
                recorder.copy(from, range.start * 4, to, at % (to.size() / 4 - len + 1) * 4, len * 4)
            }
            Recorded::Fill { resource, part, word } => {
                let buffer = buffer(resource)?;
                recorder.fill_range(buffer, bytes(&part_of(buffer, *part)), *word)
            }
            Recorded::CopyImage { from, to } => {
                let [from, to] = [named(from)?, named(to)?];
                let flat = |(image, (level, layer)): (_, (u32, u32))| (image, level, layer);
                recorder.copy_image(flat(from), flat(to))
            }
            Recorded::ClearImage { image, part, word } => {
                recorder.clear_image(parts(self.images[*image].as_ref()?, *part), ClearColor::Uint([*word; 4]))
            }
            Recorded::Execute { commands } => recorder.execute(self.commands[*commands].as_ref()?),
        })
    }
}
