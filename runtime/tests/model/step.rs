//! The steps of a random program. Numbers are reduced to what is there when a step is taken, so that every program is
//! possible; ranges are in words.

use proptest::prelude::*;
use spelter::MapFlags;

/// Resources that handles are held of.
pub(crate) const RESOURCES: usize = 5;
/// Contexts.
pub(crate) const CONTEXTS: usize = 3;
/// Slots of each context: 0 is taken as a uniform buffer by the programs, the others as storage buffers.
pub(crate) const SLOTS: usize = 4;

/// Words of a buffer: where they begin and how many, both reduced to the buffer's size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub start: u64,
    pub words: u64,
}

impl Part {
    /// The words of a buffer of so many: at least one. Aligned to 4 words where it is to be bound.
    pub(crate) fn of(self, size: u64, aligned: bool) -> std::ops::Range<u64> {
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

/// A resource in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub resource: usize,
    pub part: Part,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create { resource: usize, words: u64, contents: Contents },
    Drop { resource: usize },
    Destroy { resource: usize },
    Bind { context: usize, slot: usize, bound: Bound, uniform: bool },
    Unbind { context: usize, slot: usize },
    Dispatch { context: usize, program: usize, own: [Option<Bound>; 3] },
    Write { context: usize, resource: usize, part: Part, seed: u32 },
    Upload { context: usize, resource: usize, words: u64, seed: u32 },
    Copy { context: usize, from: usize, to: usize, part: Part, at: u64 },
    Fill { context: usize, resource: usize, part: Part, word: u32 },
    Invalidate { context: usize, resource: usize },
    Map { context: usize, resource: usize, part: Part, flags: MapFlags, writes: Vec<(Part, u32)> },
    Persist { context: usize, resource: usize, part: Part },
    Through { part: Part, seed: u32 },
    Unpersist,
    Flush { context: usize },
    Finish { context: usize },
    Read { context: usize, resource: usize, part: Part },
}

/// What a write with that seed puts at a word.
pub(crate) fn value(seed: u32, word: u64) -> u32 {
    (seed ^ word as u32).wrapping_mul(0x9e37_79b9)
}

fn part() -> impl Strategy<Value = Part> {
    (0..64u64, prop_oneof![0..8u64, Just(u64::MAX - 1), 0..64u64]).prop_map(|(start, words)| Part { start, words })
}

fn bound() -> impl Strategy<Value = Bound> {
    (0..RESOURCES, part()).prop_map(|(resource, part)| Bound { resource, part })
}

fn flags() -> impl Strategy<Value = MapFlags> {
    let access = prop_oneof![
        Just(MapFlags::READ),
        Just(MapFlags::WRITE),
        Just(MapFlags::READ | MapFlags::WRITE),
        Just(MapFlags::WRITE | MapFlags::DISCARD_RANGE),
        Just(MapFlags::WRITE | MapFlags::DISCARD_WHOLE),
    ];
    (access, prop_oneof![5 => Just(MapFlags::empty()), 1 => Just(MapFlags::UNSYNCHRONIZED)]).prop_map(|(a, b)| a | b)
}

/// Any step; those that use the GPU's side are the most likely.
pub(crate) fn a_step() -> impl Strategy<Value = Step> {
    let (context, resource) = (0..CONTEXTS, 0..RESOURCES);
    // Small ones share blocks, the last has memory of its own.
    let words = prop_oneof![8 => 1..64u64, 1 => Just(5000u64)];
    let contents =
        prop_oneof![Just(Contents::Undefined), Just(Contents::Zero), any::<u32>().prop_map(Contents::Values)];
    prop_oneof![
        4 => (resource.clone(), words, contents)
            .prop_map(|(resource, words, contents)| Step::Create { resource, words, contents }),
        1 => resource.clone().prop_map(|resource| Step::Drop { resource }),
        1 => resource.clone().prop_map(|resource| Step::Destroy { resource }),
        8 => (context.clone(), 0..SLOTS, bound(), proptest::bool::weighted(0.05))
            .prop_map(|(context, slot, bound, odd)| Step::Bind { context, slot, bound, uniform: (slot == 0) != odd }),
        1 => (context.clone(), 0..SLOTS).prop_map(|(context, slot)| Step::Unbind { context, slot }),
        16 => (context.clone(), 0..3usize, proptest::array::uniform3(proptest::option::weighted(0.2, bound())))
            .prop_map(|(context, program, own)| Step::Dispatch { context, program, own }),
        6 => (context.clone(), resource.clone(), part(), any::<u32>())
            .prop_map(|(context, resource, part, seed)| Step::Write { context, resource, part, seed }),
        4 => (context.clone(), resource.clone(), 0..64u64, any::<u32>())
            .prop_map(|(context, resource, words, seed)| Step::Upload { context, resource, words, seed }),
        4 => (context.clone(), resource.clone(), resource.clone(), part(), any::<u64>())
            .prop_map(|(context, from, to, part, at)| Step::Copy { context, from, to, part, at }),
        2 => (context.clone(), resource.clone(), part(), any::<u32>())
            .prop_map(|(context, resource, part, word)| Step::Fill { context, resource, part, word }),
        4 => (context.clone(), resource.clone())
            .prop_map(|(context, resource)| Step::Invalidate { context, resource }),
        6 => (context.clone(), resource.clone(), part(), flags(), proptest::collection::vec((part(), any::<u32>()), 0..3))
            .prop_map(|(context, resource, part, flags, writes)| Step::Map { context, resource, part, flags, writes }),
        1 => (context.clone(), resource.clone(), part())
            .prop_map(|(context, resource, part)| Step::Persist { context, resource, part }),
        2 => (part(), any::<u32>()).prop_map(|(part, seed)| Step::Through { part, seed }),
        1 => Just(Step::Unpersist),
        2 => context.clone().prop_map(|context| Step::Flush { context }),
        1 => context.clone().prop_map(|context| Step::Finish { context }),
        6 => (context, resource, part())
            .prop_map(|(context, resource, part)| Step::Read { context, resource, part }),
    ]
}
