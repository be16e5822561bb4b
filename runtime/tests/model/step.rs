//! The steps of a random program. Numbers are reduced to the existing objects when a step is executed, so that every
//! program is possible; ranges are in words, and a texel is a word.

use std::ops::Range;

use proptest::prelude::*;
use spelter::MapFlags;

use crate::model::kernels::PROGRAMS;
use crate::model::shape::{Place, SIZES, TOO_SMALL, level_of};

/// The number of handles of buffers; they come first.
pub(crate) const BUFFERS: usize = 5;
/// The number of handles of images.
pub(crate) const IMAGES: usize = 2;
/// Handles of both.
pub(crate) const RESOURCES: usize = BUFFERS + IMAGES;
/// Contexts.
pub(crate) const CONTEXTS: usize = 3;
/// Handles of descriptor sets. Their layout has all slots.
pub(crate) const SETS: usize = 2;
/// Slots of each context, by binding: a uniform buffer, three storage buffers (the programs use two), a uniform and a
/// storage texel buffer, a sampled and a storage image.
pub(crate) const SLOTS: usize = 8;

/// Handles of command buffers.
pub(crate) const COMMANDS: usize = 3;

/// Words of a buffer that has memory of its own.
pub(crate) const LARGE: u64 = 5000;
/// Words of a buffer so large that a small heap has room for only a few.
pub(crate) const HUGE: u64 = 70_000;

/// The kinds of slots, with the part of a resource that they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uniform,
    Storage,
    Texels,
    StorageTexels,
    Sampled,
    StorageImage,
}

impl Kind {
    /// The kind that the programs declare at a binding.
    pub(crate) fn at(slot: usize) -> Self {
        match slot {
            0 => Self::Uniform,
            1..=3 => Self::Storage,
            4 => Self::Texels,
            5 => Self::StorageTexels,
            6 => Self::Sampled,
            _ => Self::StorageImage,
        }
    }

    pub(crate) fn is_image(self) -> bool {
        matches!(self, Self::Sampled | Self::StorageImage)
    }
}

/// Words of a buffer: begin and number, both reduced to the buffer's size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub start: u64,
    pub words: u64,
}

impl Part {
    /// The words, in a buffer of this number of words: at least one. Aligned to 4 words if they are to be bound.
    pub(crate) fn of(self, size: u64, aligned: bool) -> Range<u64> {
        let start = self.start % size;
        let start = if aligned { start & !3 } else { start };
        start..start + 1 + self.words % (size - start)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Contents {
    Undefined,
    Zero,
    Values(u32),
}

/// A part of a resource: words of a buffer, or a level of a layer of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub resource: usize,
    pub part: Part,
}

impl Bound {
    /// The handle, for a slot of that kind.
    pub(crate) fn handle(self, kind: Kind) -> usize {
        if kind.is_image() { self.image() } else { self.resource % BUFFERS }
    }

    /// The handle, if an image is meant.
    pub(crate) fn image(self) -> usize {
        BUFFERS + self.resource % IMAGES
    }

    /// The level and the layer, if an image is meant.
    pub(crate) fn subresource(self) -> (u32, u32) {
        ((self.part.start % 2) as u32, (self.part.words % 2) as u32)
    }

    /// The texels, if an image of this number of texels is meant.
    pub(crate) fn texels(self, size: u64) -> Range<u64> {
        let (level, layer) = self.subresource();
        level_of(size, level, layer)
    }

    /// Whether a slot shows the words up to the end of a buffer of this many words, whatever its later size.
    pub(crate) fn is_to_end(self, kind: Kind, size: u64) -> bool {
        matches!(self.place(kind, size), Place::ToEnd(_))
    }

    /// What a slot shows of a resource that has this number of words when it is bound.
    pub(crate) fn place(self, kind: Kind, size: u64) -> Place {
        match kind {
            Kind::Sampled | Kind::StorageImage => {
                let (level, layer) = self.subresource();
                Place::Level(level, layer)
            }
            // A uniform buffer has 64 KiB at most.
            Kind::Uniform => {
                let Range { start, end } = self.part.of(size, true);
                Place::Words(start..end.min(start + 16_384))
            }
            _ => match self.part.of(size, true) {
                words if words.end == size => Place::ToEnd(words.start),
                words => Place::Words(words),
            },
        }
    }

    /// The words, in a resource of this number of words.
    pub(crate) fn words(self, kind: Kind, size: u64) -> Range<u64> {
        self.place(kind, size).of(size).expect("the place is one of a resource of this size")
    }
}

/// Levels and layers of an image: all, or one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub level: Option<u32>,
    pub layer: Option<u32>,
}

impl Parts {
    /// The subresources, each as level and layer.
    pub(crate) fn subresources(self) -> impl Iterator<Item = (u32, u32)> {
        let is = |chosen: Option<u32>, one: u32| chosen.is_none_or(|chosen| chosen == one);
        let all = [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter();
        all.filter(move |(level, layer)| is(self.level, *level) && is(self.layer, *layer))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create {
        resource: usize,
        words: u64,
        contents: Contents,
    },
    CreateImage {
        image: usize,
    },
    Drop {
        resource: usize,
    },
    Destroy {
        resource: usize,
    },
    Bind {
        context: usize,
        slot: usize,
        bound: Bound,
        kind: Kind,
    },
    Unbind {
        context: usize,
        slot: usize,
    },
    /// Makes a set, with one of the slots left out.
    CreateSet {
        set: usize,
        bounds: [Bound; SLOTS],
        without: Option<usize>,
        updatable: bool,
    },
    WriteSet {
        set: usize,
        slot: usize,
        bound: Bound,
        kind: Kind,
    },
    DropSet {
        set: usize,
    },
    BindSet {
        context: usize,
        set: usize,
    },
    UnbindSet {
        context: usize,
    },
    Dispatch {
        context: usize,
        program: usize,
        set: Option<usize>,
        own: [Option<Bound>; 3],
        push: u32,
    },
    Write {
        context: usize,
        resource: usize,
        part: Part,
        seed: u32,
    },
    Upload {
        context: usize,
        resource: usize,
        words: u64,
        seed: u32,
    },
    Copy {
        context: usize,
        from: usize,
        to: usize,
        part: Part,
        at: u64,
    },
    Fill {
        context: usize,
        resource: usize,
        part: Part,
        word: u32,
    },
    Invalidate {
        context: usize,
        resource: usize,
    },
    Resize {
        context: usize,
        resource: usize,
        words: u64,
    },
    ResizeImage {
        context: usize,
        image: usize,
        size: [u32; 2],
    },
    Map {
        context: usize,
        resource: usize,
        part: Part,
        flags: MapFlags,
        writes: Vec<(Part, u32)>,
    },
    Persist {
        context: usize,
        resource: usize,
        part: Part,
        flags: MapFlags,
    },
    Through {
        part: Part,
        seed: u32,
    },
    Unpersist,
    Flush {
        context: usize,
    },
    Finish {
        context: usize,
    },
    Read {
        context: usize,
        resource: usize,
        part: Part,
    },
    WriteImage {
        context: usize,
        to: Bound,
        seed: u32,
    },
    ReadImage {
        context: usize,
        from: Bound,
    },
    CopyImage {
        context: usize,
        from: Bound,
        to: Bound,
    },
    ClearImage {
        context: usize,
        image: usize,
        part: Parts,
        word: u32,
    },
    InvalidateImage {
        context: usize,
        image: usize,
        part: Parts,
    },
    /// Records a command buffer: a new one, or the one that the handle has, if any, again.
    Record {
        context: usize,
        into: usize,
        again: bool,
        commands: Vec<Recorded>,
    },
    Submit {
        context: usize,
        commands: usize,
    },
    /// Drops the handle of a command buffer.
    Discard {
        commands: usize,
    },
}

/// A command of a command buffer.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    /// What it does not bind itself it takes from the set, as that is when the command is submitted.
    Dispatch {
        program: usize,
        set: Option<usize>,
        own: [Option<Bound>; 3],
        push: u32,
    },
    Copy {
        from: usize,
        to: usize,
        part: Part,
        at: u64,
    },
    Fill {
        resource: usize,
        part: Part,
        word: u32,
    },
    CopyImage {
        from: Bound,
        to: Bound,
    },
    ClearImage {
        image: usize,
        part: Parts,
        word: u32,
    },
    /// The command buffer of a handle below that of the one that is recorded, so none executes itself.
    Execute {
        commands: usize,
    },
}

impl Step {
    /// The step for a small heap: many buffers are so large that a few fill it.
    pub(crate) fn in_a_small_heap(self) -> Self {
        match self {
            Self::Create { resource, words, contents } if words % 3 == 0 || words == LARGE => {
                Self::Create { resource, words: HUGE, contents }
            }
            Self::Resize { context, resource, words } if words % 3 == 0 || words == LARGE => {
                Self::Resize { context, resource, words: HUGE }
            }
            step => step,
        }
    }

    /// Whether the step may fail for lack of memory, since it allocates.
    pub(crate) fn needs_memory(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::CreateImage { .. } | Self::Resize { .. } | Self::ResizeImage { .. })
    }
}

/// The value of a word that a write with this seed writes.
pub(crate) fn value(seed: u32, word: u64) -> u32 {
    (seed ^ word as u32).wrapping_mul(0x9e37_79b9)
}

fn part() -> impl Strategy<Value = Part> {
    (0..64u64, prop_oneof![0..8u64, Just(u64::MAX - 1), 0..64u64]).prop_map(|(start, words)| Part { start, words })
}

fn bound() -> impl Strategy<Value = Bound> {
    (0..RESOURCES, part()).prop_map(|(resource, part)| Bound { resource, part })
}

fn some() -> impl Strategy<Value = Parts> {
    let one = || proptest::option::weighted(0.6, 0..2u32);
    (one(), one()).prop_map(|(level, layer)| Parts { level, layer })
}

/// A slot and a kind: nearly always the kind that the programs declare there.
fn slot() -> impl Strategy<Value = (usize, Kind)> {
    let odd = proptest::option::weighted(0.04, 0..SLOTS);
    (0..SLOTS, odd).prop_map(|(slot, odd)| (slot, Kind::at(odd.unwrap_or(slot))))
}

fn access() -> impl Strategy<Value = MapFlags> {
    prop_oneof![
        Just(MapFlags::READ),
        Just(MapFlags::WRITE),
        Just(MapFlags::READ | MapFlags::WRITE),
        Just(MapFlags::WRITE | MapFlags::DISCARD_RANGE),
        Just(MapFlags::WRITE | MapFlags::DISCARD_WHOLE),
    ]
}

fn flags() -> impl Strategy<Value = MapFlags> {
    (access(), prop_oneof![3 => Just(MapFlags::empty()), 1 => Just(MapFlags::UNSYNCHRONIZED)]).prop_map(|(a, b)| a | b)
}

/// Flags of a persistent mapping.
fn persistent() -> impl Strategy<Value = MapFlags> {
    (access(), any::<bool>()).prop_map(|(access, coherent)| {
        let flags = access | MapFlags::PERSISTENT;
        if coherent { flags | MapFlags::COHERENT } else { flags }
    })
}

/// Numbers of contexts: one of them does most of the work, so that batches grow.
fn context() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![6 => Just(0usize), 1 => 1..CONTEXTS]
}

/// The size of an image: nearly always one that is possible.
fn size() -> impl Strategy<Value = [u32; 2]> {
    prop_oneof![12 => proptest::sample::select(SIZES.to_vec()), 1 => Just(TOO_SMALL)]
}

fn words() -> impl Strategy<Value = u64> + Clone {
    // Small ones share blocks; the last has its own memory.
    prop_oneof![8 => 1..64u64, 1 => Just(LARGE)]
}

/// A program of steps. Most programs begin with all slots bound.
pub(crate) fn a_program(length: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let sizes = proptest::collection::vec(words(), BUFFERS);
    let slots = proptest::collection::vec(bound(), CONTEXTS * SLOTS);
    let sets = proptest::collection::vec(proptest::array::uniform8(bound()), SETS);
    let begin = proptest::option::weighted(0.9, (sizes, slots, sets, any::<u32>()));
    (begin, proptest::collection::vec(a_step(), length)).prop_map(|(begin, steps)| {
        let Some((sizes, slots, sets, seed)) = begin else { return steps };
        let buffer = |(resource, words)| Step::Create { resource, words, contents: Contents::Values(seed) };
        let level = |image: usize| {
            let part = Part { start: image as u64, words: u64::from(seed) };
            Step::WriteImage { context: 0, to: Bound { resource: image, part }, seed }
        };
        let bind = |(at, bound): (usize, Bound)| {
            let (context, slot) = (at / SLOTS, at % SLOTS);
            Step::Bind { context, slot, bound, kind: Kind::at(slot) }
        };
        let mut all: Vec<Step> = sizes.into_iter().enumerate().map(buffer).collect();
        all.extend((0..IMAGES).map(|image| Step::CreateImage { image }));
        all.extend((0..IMAGES).map(level));
        all.extend(slots.into_iter().enumerate().map(bind));
        let set = |(set, bounds)| Step::CreateSet { set, bounds, without: None, updatable: set > 0 };
        all.extend(sets.into_iter().enumerate().map(set));
        all.extend(steps);
        all
    })
}

/// Any step; commands are the most likely.
fn a_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => a_common_step(),
        8 => a_step_of_buffers(),
        4 => a_step_of_images(),
        3 => a_step_of_sets(),
        6 => a_step_of_commands(),
    ]
}

/// What a dispatch binds itself.
fn own() -> impl Strategy<Value = [Option<Bound>; 3]> {
    proptest::array::uniform3(proptest::option::weighted(0.25, bound()))
}

fn a_common_step() -> impl Strategy<Value = Step> {
    let (context, resource) = (context(), 0..BUFFERS);
    let contents =
        prop_oneof![Just(Contents::Undefined), Just(Contents::Zero), any::<u32>().prop_map(Contents::Values)];
    prop_oneof![
        5 => (resource.clone(), words(), contents)
            .prop_map(|(resource, words, contents)| Step::Create { resource, words, contents }),
        1 => (0..RESOURCES).prop_map(|resource| Step::Drop { resource }),
        1 => (0..RESOURCES).prop_map(|resource| Step::Destroy { resource }),
        16 => (context.clone(), slot(), bound())
            .prop_map(|(context, (slot, kind), bound)| Step::Bind { context, slot, bound, kind }),
        1 => (context.clone(), 0..SLOTS).prop_map(|(context, slot)| Step::Unbind { context, slot }),
        24 => (context.clone(), 0..PROGRAMS, proptest::option::weighted(0.3, 0..SETS), own(), 0..3u32)
            .prop_map(|(context, program, set, own, push)| Step::Dispatch { context, program, set, own, push }),
        4 => (context.clone(), resource.clone())
            .prop_map(|(context, resource)| Step::Invalidate { context, resource }),
        2 => (context.clone(), resource, words())
            .prop_map(|(context, resource, words)| Step::Resize { context, resource, words }),
        2 => context.clone().prop_map(|context| Step::Flush { context }),
        1 => context.prop_map(|context| Step::Finish { context }),
    ]
}

fn a_step_of_buffers() -> impl Strategy<Value = Step> {
    let (context, resource) = (context(), 0..BUFFERS);
    prop_oneof![
        6 => (context.clone(), resource.clone(), part(), any::<u32>())
            .prop_map(|(context, resource, part, seed)| Step::Write { context, resource, part, seed }),
        4 => (context.clone(), resource.clone(), 0..64u64, any::<u32>())
            .prop_map(|(context, resource, words, seed)| Step::Upload { context, resource, words, seed }),
        4 => (context.clone(), resource.clone(), resource.clone(), part(), any::<u64>())
            .prop_map(|(context, from, to, part, at)| Step::Copy { context, from, to, part, at }),
        2 => (context.clone(), resource.clone(), part(), any::<u32>())
            .prop_map(|(context, resource, part, word)| Step::Fill { context, resource, part, word }),
        6 => (context.clone(), resource.clone(), part(), flags(), proptest::collection::vec((part(), any::<u32>()), 0..3))
            .prop_map(|(context, resource, part, flags, writes)| Step::Map { context, resource, part, flags, writes }),
        1 => (context.clone(), resource.clone(), part(), persistent())
            .prop_map(|(context, resource, part, flags)| Step::Persist { context, resource, part, flags }),
        2 => (part(), any::<u32>()).prop_map(|(part, seed)| Step::Through { part, seed }),
        1 => Just(Step::Unpersist),
        6 => (context, resource, part())
            .prop_map(|(context, resource, part)| Step::Read { context, resource, part }),
    ]
}

fn a_step_of_images() -> impl Strategy<Value = Step> {
    let (context, image) = (context(), 0..IMAGES);
    prop_oneof![
        3 => image.clone().prop_map(|image| Step::CreateImage { image }),
        6 => (context.clone(), bound(), any::<u32>())
            .prop_map(|(context, to, seed)| Step::WriteImage { context, to, seed }),
        4 => (context.clone(), bound()).prop_map(|(context, from)| Step::ReadImage { context, from }),
        4 => (context.clone(), bound(), bound())
            .prop_map(|(context, from, to)| Step::CopyImage { context, from, to }),
        2 => (context.clone(), image.clone(), some(), any::<u32>())
            .prop_map(|(context, image, part, word)| Step::ClearImage { context, image, part, word }),
        5 => (context.clone(), image.clone(), some())
            .prop_map(|(context, image, part)| Step::InvalidateImage { context, image, part }),
        3 => (context, image, size()).prop_map(|(context, image, size)| Step::ResizeImage { context, image, size }),
    ]
}

fn a_step_of_sets() -> impl Strategy<Value = Step> {
    let without = || proptest::option::weighted(0.1, 0..SLOTS);
    prop_oneof![
        4 => (0..SETS, proptest::array::uniform8(bound()), without(), proptest::bool::weighted(0.7))
            .prop_map(|(set, bounds, without, updatable)| Step::CreateSet { set, bounds, without, updatable }),
        8 => (0..SETS, slot(), bound())
            .prop_map(|(set, (slot, kind), bound)| Step::WriteSet { set, slot, bound, kind }),
        1 => (0..SETS).prop_map(|set| Step::DropSet { set }),
        2 => (context(), 0..SETS).prop_map(|(context, set)| Step::BindSet { context, set }),
        2 => context().prop_map(|context| Step::UnbindSet { context }),
    ]
}

fn a_step_of_commands() -> impl Strategy<Value = Step> {
    let commands = proptest::collection::vec(a_command(), 0..8);
    prop_oneof![
        4 => (context(), 0..COMMANDS, any::<bool>(), commands)
            .prop_map(|(context, into, again, commands)| Step::Record { context, into, again, commands }),
        10 => (context(), 0..COMMANDS).prop_map(|(context, commands)| Step::Submit { context, commands }),
        1 => (0..COMMANDS).prop_map(|commands| Step::Discard { commands }),
    ]
}

fn a_command() -> impl Strategy<Value = Recorded> {
    prop_oneof![
        6 => (0..PROGRAMS, proptest::array::uniform3(bound()), 0..3u32)
            .prop_map(|(program, own, push)| Recorded::Dispatch { program, set: None, own: own.map(Some), push }),
        3 => (0..PROGRAMS, proptest::option::weighted(0.95, 0..SETS), own(), 0..3u32)
            .prop_map(|(program, set, own, push)| Recorded::Dispatch { program, set, own, push }),
        3 => (0..BUFFERS, 0..BUFFERS, part(), any::<u64>())
            .prop_map(|(from, to, part, at)| Recorded::Copy { from, to, part, at }),
        3 => (0..BUFFERS, part(), any::<u32>())
            .prop_map(|(resource, part, word)| Recorded::Fill { resource, part, word }),
        1 => (bound(), bound()).prop_map(|(from, to)| Recorded::CopyImage { from, to }),
        1 => (0..IMAGES, some(), any::<u32>())
            .prop_map(|(image, part, word)| Recorded::ClearImage { image, part, word }),
        1 => (0..COMMANDS).prop_map(|commands| Recorded::Execute { commands }),
    ]
}
