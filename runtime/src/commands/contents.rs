//! Contents of a command buffer: its commands, the resources that they name, and what was last recorded for the driver.
//!
//! The commands are divided into segments, each a command buffer of the driver. When a resource gets another object,
//! only the segments that name it are recorded again. Segments run one after the other, as if separated by a barrier;
//! so a segment ends where a barrier is needed anyway, if one is needed before it is too long.
//!
//! What is recorded belongs to no context: all contexts of the device submit the same driver's command buffers.

use std::ops::Range;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;
use spelter_driver::CommandBuffer as DriverCommands;

use super::CommandBuffer;
use super::command::{On, Open, Recorded};
use super::follow::Follows;
use crate::barrier::Use;
use crate::batch::CommandCounts;
use crate::context_state::ContextState;
use crate::error::Error;
use crate::events::Event;
use crate::ids::{Access, CommandBufferId, CommandKind, ObjectId, ResourceId};
use crate::object::ResourceObject;
use crate::recordings::{LostRecording, NamesObjects};
use crate::resource::Resource;
use crate::share::Share;
use crate::sync::Mutex;
use crate::valid::Ranges;

/// The largest number of ranges of a resource that are entered one by one. Beyond that the smallest gaps count as used,
/// which orders more than necessary and is right all the same.
const MAX_RANGES: usize = 16;

/// The end of a range of bytes that extends to the end of its buffer, whatever its size.
pub(super) const TO_END: u64 = u64::MAX;

/// A resource that commands name.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) resource: Arc<Resource>,
    /// The bytes or subresources that are read and not written. A range up to [`TO_END`] ends where the buffer ends.
    pub(super) reads: Ranges<MAX_RANGES>,
    /// Those that are written.
    pub(super) writes: Ranges<MAX_RANGES>,
    /// The segments that name it.
    pub(super) segments: SmallVec<[usize; 2]>,
}

/// A part of a command buffer, in order.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The segment with that number.
    Segment(usize),
    /// A timestamp with a label.
    Timestamp(Arc<str>),
    /// The commands that another command buffer has when this one is submitted.
    Execute(CommandBuffer),
}

/// Commands, and what was recorded for the driver.
pub(super) struct Contents {
    pub(super) share: Arc<Share>,
    /// This, for the table of objects.
    this: Weak<Self>,
    pub(super) id: CommandBufferId,
    pub(super) label: Option<Arc<str>>,
    pub(super) commands: Vec<Recorded>,
    pub(super) resources: Vec<Named>,
    /// The commands of each segment.
    pub(super) segments: Vec<Range<usize>>,
    pub(super) follows: Follows,
    pub(super) steps: Vec<Step>,
    /// By number of the segment, its commands.
    counts: Vec<CommandCounts>,
    /// The number of nested levels below this one, when it was recorded.
    pub(super) depth: u32,
    /// A leaf lock, except that the table of objects is locked under it.
    kept: Mutex<Arc<Kept>>,
}

/// What was recorded, with the objects that it names.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// By number of the resource; `None` if the resource has lost it since.
    pub(super) objects: Vec<Option<Arc<ResourceObject>>>,
    /// By number of the segment; `None` if it must be recorded again.
    pub(super) segments: Vec<Option<DriverCommands>>,
    is_complete: bool,
}

/// The parts of [`Contents`], while they are collected.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) label: Option<Arc<str>>,
    pub(super) commands: Vec<Recorded>,
    pub(super) resources: Vec<Named>,
    pub(super) segments: Vec<Range<usize>>,
    pub(super) steps: Vec<Step>,
    pub(super) follows: Follows,
    pub(super) depth: u32,
    /// By number of the resource.
    pub(super) objects: Vec<Arc<ResourceObject>>,
    /// By number of the segment.
    pub(super) recorded: Vec<Option<DriverCommands>>,
}

impl Contents {
    pub(super) fn new(share: &Arc<Share>, id: CommandBufferId, parts: Parts) -> Arc<Self> {
        let Parts { label, commands, resources, segments, steps, follows, depth, objects, recorded } = parts;
        let none = Kept { objects: vec![None; resources.len()], segments: Vec::new(), is_complete: false };
        let counts = segments.iter().map(|segment| counted(&commands[segment.clone()])).collect();
        let contents = Arc::new_cyclic(|this| Self {
            share: Arc::clone(share),
            this: Weak::clone(this),
            id,
            label,
            commands,
            resources,
            segments,
            follows,
            steps,
            counts,
            depth,
            kept: Mutex::new(Arc::new(none)),
        });
        let is_complete = recorded.iter().all(Option::is_some);
        let objects = objects.into_iter().map(Some).collect();
        contents.keep(&Arc::new(Kept { objects, segments: recorded, is_complete }));
        contents.drop_lost();
        contents
    }

    /// Drops what was recorded with objects that were lost before they were registered, for callers that do not enter
    /// the uses after that. The caller holds no lock.
    pub(super) fn drop_lost(&self) {
        let kept = self.kept();
        for (named, object) in self.resources.iter().zip(&kept.objects) {
            if let Some(object) = object.as_ref().filter(|object| !named.resource.state().has(object)) {
                drop(self.forget(object.id()));
            }
        }
    }

    /// The number of commands that name a resource.
    pub(super) fn count_of(&self, resource: ResourceId) -> usize {
        let number = self.resources.iter().position(|named| named.resource.id() == resource);
        number.map_or(0, |number| self.commands.iter().filter(|recorded| recorded.command.names(number)).count())
    }

    /// The numbers of commands in a segment.
    pub(super) fn counts(&self, segment: usize) -> CommandCounts {
        self.counts[segment]
    }

    /// The number of commands.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// What was recorded last.
    pub(super) fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.kept.lock())
    }

    /// Keeps what was recorded, and registers its objects.
    fn keep(&self, new: &Arc<Kept>) {
        let mut kept = self.kept.lock();
        let id = |object: &Option<Arc<ResourceObject>>| object.as_ref().map(|object| object.id());
        let changed = || kept.objects.iter().zip(&new.objects).map(|(a, b)| (id(a), id(b))).filter(|(a, b)| a != b);
        let this: Weak<dyn NamesObjects> = self.this.clone();
        self.share.recordings().remove(self.address(), changed().filter_map(|(before, _)| before));
        self.share.recordings().add(&this, changed().filter_map(|(_, now)| now));
        let old = std::mem::replace(&mut *kept, Arc::clone(new));
        drop(kept);
        drop(old); // after the lock
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Records the segments again whose resources have other objects now. Returns all that is to be submitted, and the
    /// number of commands that were recorded.
    pub(super) fn renew(&self, state: &mut ContextState) -> Result<(Arc<Kept>, u64), Error> {
        let old = self.kept();
        let mut segments = old.segments.clone();
        segments.resize(self.segments.len(), None);
        let mut objects = Vec::with_capacity(self.resources.len());
        for (number, (named, known)) in self.resources.iter().zip(&old.objects).enumerate() {
            let resource = &named.resource;
            // The place is looked up after an error only.
            let object = resource.object_for_recording("submit");
            let object = object.or_else(|_| resource.object_for_recording(&self.place_of(number)))?;
            if known.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &object)) {
                named.segments.iter().for_each(|segment| segments[*segment] = None);
                state.log.note(|| Event::Rerecorded {
                    commands: self.id,
                    resource: resource.id(),
                    object: object.id(),
                    count: named.segments.iter().map(|segment| self.segments[*segment].len()).sum(),
                });
            }
            objects.push(object);
        }
        let mut count = 0;
        for (segment, range) in segments.iter_mut().zip(&self.segments).filter(|(segment, _)| segment.is_none()) {
            let mut open = Open::new(state)?;
            for (number, command) in range.clone().zip(&self.commands[range.clone()]) {
                let place = || self.place(number);
                let on = On { place: Some(&place), resources: &self.resources, objects: &objects };
                open.record(state, command, on).map_err(|error| error.in_slot_at(place))?;
            }
            *segment = Some(open.finish()?);
            count += range.len() as u64;
        }
        let objects = objects.into_iter().map(Some).collect();
        let new = Arc::new(Kept { objects, segments, is_complete: true });
        self.keep(&new);
        Ok((new, count))
    }

    /// The place of a command in a submission, for messages.
    pub(super) fn place(&self, number: usize) -> String {
        let Recorded { kind, group, own, .. } = &self.commands[number];
        let own = own.as_ref().map(|own| format!(" `{own}`")).unwrap_or_default();
        let group = group.as_ref().map(|group| format!(" in group `{group}`")).unwrap_or_default();
        format!("submit: {}: command {number}, {kind}{own}{group}", described(self.label.as_deref()))
    }

    /// The place of the first command that names a resource.
    fn place_of(&self, resource: usize) -> String {
        let first = self.commands.iter().position(|recorded| recorded.command.names(resource));
        first.map_or_else(|| "submit".to_owned(), |number| self.place(number))
    }

    /// What a submission of this recording does with the objects.
    pub(super) fn uses<'a>(&'a self, kept: &'a Kept) -> impl Iterator<Item = Use<'a>> + Clone {
        let both = self.resources.iter().zip(&kept.objects);
        both.filter_map(|(named, object)| Some((named, object.as_ref()?))).flat_map(|(named, object)| {
            let reads = named.reads.iter().map(|range| (range, Access::Read));
            let all = reads.chain(named.writes.iter().map(|range| (range, Access::Write)));
            let cut = move |(Range { start, end }, access)| {
                let range = start..if end == TO_END { object.size() } else { end };
                (!range.is_empty()).then(|| Use::of(&named.resource, object, range, access))
            };
            all.filter_map(cut)
        })
    }
}

impl Kept {
    /// Whether no object was lost since it was recorded, as far as is known.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl NamesObjects for Contents {
    fn forget(&self, object: ObjectId) -> Option<LostRecording> {
        let mut kept = self.kept.lock();
        let is_it = |known: &Option<Arc<ResourceObject>>| known.as_ref().is_some_and(|known| known.id() == object);
        let number = kept.objects.iter().position(is_it)?;
        // A batch in flight keeps its own.
        let kept = Arc::make_mut(&mut kept);
        kept.is_complete = false;
        let segments = self.resources[number].segments.iter();
        let segments: Vec<_> = segments.filter_map(|segment| kept.segments.get_mut(*segment)?.take()).collect();
        Some(Box::new((kept.objects[number].take(), segments)))
    }
}

impl Contents {
    fn take_nested(&mut self) -> impl Iterator<Item = CommandBuffer> {
        let nested = |step| if let Step::Execute(nested) = step { Some(nested) } else { None };
        std::mem::take(&mut self.steps).into_iter().filter_map(nested)
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        let kept = self.kept();
        let objects = kept.objects.iter().flatten().map(|object| object.id());
        self.share.recordings().remove(self.address(), objects);
        // One after the other, since command buffers that were recorded again may form a long chain.
        let mut nested: Vec<CommandBuffer> = self.take_nested().collect();
        while let Some(commands) = nested.pop() {
            if let Some(mut contents) = commands.into_contents().and_then(Arc::into_inner) {
                nested.extend(contents.take_nested());
            }
        }
    }
}

/// The numbers of commands that a submission runs. A fill of a buffer that has become empty counts too.
fn counted(commands: &[Recorded]) -> CommandCounts {
    let count = |is: &dyn Fn(&Recorded) -> bool| commands.iter().filter(|recorded| is(recorded)).count() as u64;
    let dispatches = count(&|recorded| recorded.kind == CommandKind::Dispatch);
    CommandCounts {
        dispatches,
        transfers: commands.len() as u64 - dispatches,
        barriers: count(&|recorded| recorded.barrier),
    }
}

/// "command buffer `label`", or "a command buffer".
pub(super) fn described(label: Option<&str>) -> String {
    label.map_or_else(|| "a command buffer".to_owned(), |label| format!("command buffer `{label}`"))
}

impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} commands", self.len())
    }
}
