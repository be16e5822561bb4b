//! Commands while they are recorded: divided into segments, with the barriers that they need.
//!
//! Barriers depend on the resources only, not on their objects, so they are decided here, once. They are decided
//! without regard to what is valid: a command that writes bytes for the first time overwrites data when the command
//! buffer is submitted again. A use that extends to the end of its buffer has no end here, since the buffer may get
//! another size.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;

use super::CommandBufferState;
use super::command::{Command, DispatchCommand, On, Open, Recorded, Workgroups};
use super::contents::{Named, Parts, Step, TO_END};
use super::follow::{DispatchBindings, follow};
use crate::barrier::{Fresh, Hazards, Touch};
use crate::bind::Bind;
use crate::context::Context;
use crate::context_state::ContextState;
use crate::dispatch::{Counts, Dispatch, INDIRECT_BYTES, RecordsDispatches};
use crate::error::Error;
use crate::events::Event;
use crate::ids::{Access, CommandBufferId, CommandKind, ObjectId, ResourceId};
use crate::object::ResourceObject;
use crate::resource::Resource;
use crate::valid::Ranges;

/// From this number of commands on, a segment is split at the next barrier.
const MIN_SPLIT_COMMANDS: usize = 64;
/// The largest number of commands in a segment.
const MAX_SEGMENT_COMMANDS: usize = 512;

/// The commands so far.
pub(super) struct Recording {
    id: CommandBufferId,
    pub(super) parts: Parts,
    /// The command buffer that gets the commands, if it exists already.
    pub(super) target: Option<Arc<CommandBufferState>>,
    /// The names of the groups that the next command is in.
    pub(super) group: Option<Arc<str>>,
    /// The name of the next command.
    pub(super) own: Option<Arc<str>>,
    /// The driver's command buffer for the segment that is being recorded, and its first command.
    open: Option<(Open, usize)>,
    hazards: Hazards,
    /// Whether the open segment names an object that was replaced since.
    stale: bool,
    numbers: HashMap<ResourceId, usize, FixedState>,
}

/// A command's use of a part of a resource.
pub(super) type PartUse<'a> = (&'a Arc<Resource>, Range<u64>, Access);

/// The name of a group or dispatch in a group: `frame/blur`.
pub(super) fn within(outer: Option<&str>, name: &str) -> Arc<str> {
    outer.map_or_else(|| name.into(), |outer| format!("{outer}/{name}").into())
}

impl RecordsDispatches for Recording {
    fn dispatch(&mut self, dispatch: &Dispatch<'_>, counts: Counts<'_>) -> Result<(), Error> {
        let known = self.parts.follows.len();
        let follows = follow(&mut self.parts.follows, dispatch.group_sets());
        // A dispatch that is refused or runs nothing follows no set.
        let before = self.parts.commands.len();
        if let Some(label) = dispatch.own_label() {
            self.own = Some(label.into());
        }
        let result = self.dispatch_with(dispatch, counts, follows);
        self.own = None;
        if self.parts.commands.len() == before {
            self.parts.follows.truncate(known);
        }
        result
    }
}

impl Recording {
    fn dispatch_with(&mut self, dispatch: &Dispatch<'_>, counts: Counts<'_>, follows: bool) -> Result<(), Error> {
        let (context, program) = (dispatch.context(), dispatch.program());
        let sets = dispatch.own_bindings()?;
        let own = if follows { Some(dispatch.own_binds()?) } else { None };
        let mut uses: SmallVec<[PartUse<'_>; 8]> = SmallVec::new();
        for (bind, access) in sets.iter().flatten() {
            if let Some(resource) = &bind.resource {
                let ranges = bind.part.extended(bind.to_end, TO_END).ranges(&resource.template()).into_iter();
                uses.extend(ranges.map(|range| (resource, range, *access)));
            }
        }
        if let Counts::Indirect(buffer, offset) = counts {
            uses.push((buffer.resource(), offset..offset + INDIRECT_BYTES, Access::Read));
        }
        let push = SmallVec::from_slice(dispatch.pushed());
        self.add(context, CommandKind::Dispatch, &uses, !counts.run_nothing(), |number| {
            let numbered = |(bind, _): &(Bind, Access)| (bind.clone(), bind.resource.as_deref().map(number));
            let sets = sets.iter().map(|set| set.iter().map(numbered).collect()).collect();
            let workgroups = match counts {
                Counts::Direct(groups) => Workgroups::Direct(groups),
                Counts::Indirect(buffer, offset) => Workgroups::Indirect(number(buffer.resource()), offset),
            };
            let given =
                own.as_ref().map(|own| DispatchBindings { own: own.clone(), sets: dispatch.group_sets().clone() });
            let (program, push, given) = (program.clone(), push.clone(), given.map(Box::new));
            Command::Dispatch(DispatchCommand { program, push, sets, workgroups, given })
        })
    }

    pub(super) fn new(id: CommandBufferId, target: Option<&Arc<CommandBufferState>>) -> Self {
        Self {
            id,
            parts: Parts::default(),
            target: target.cloned(),
            group: None,
            own: None,
            open: None,
            hazards: Hazards::default(),
            stale: false,
            numbers: HashMap::default(),
        }
    }

    /// Adds a command that uses these parts of resources; `make` makes it from their numbers. A command that does
    /// nothing is only checked.
    pub(super) fn add(
        &mut self,
        context: &Context,
        kind: CommandKind,
        uses: &[PartUse<'_>],
        has_effect: bool,
        make: impl Fn(&dyn Fn(&Resource) -> usize) -> Command,
    ) -> Result<(), Error> {
        let what = kind.name();
        if !has_effect {
            return uses.iter().try_for_each(|(resource, ..)| resource.object_for_command(what).map(drop));
        }
        let object = |(resource, ..): &PartUse<'_>| resource.object_for_recording(what);
        let objects = uses.iter().map(object).collect::<Result<SmallVec<[_; 8]>, _>>()?;
        let known = self.parts.resources.len();
        uses.iter().zip(objects).for_each(|((resource, ..), object)| self.number(resource, object));
        let recorded = context.inner().record(|state| {
            // The uses have all resources of the command, so each has a number.
            let command = make(&|resource| self.numbers[&resource.id()]);
            Ok(self.record(state, kind, uses, command)?)
        });
        if recorded.is_err() {
            self.take_back(known);
        }
        recorded
    }

    /// A command was refused: the resources that it was the first to name, from the number `known` on, are not named.
    /// The caller holds no lock.
    fn take_back(&mut self, known: usize) {
        self.parts.objects.truncate(known);
        for Named { resource, .. } in self.parts.resources.drain(known..) {
            self.numbers.remove(&resource.id());
        }
    }

    /// Gives a resource a number, and notes its current object.
    fn number(&mut self, resource: &Arc<Resource>, object: Arc<ResourceObject>) {
        let next = self.parts.resources.len();
        let number = *self.numbers.entry(resource.id()).or_insert(next);
        if number == next {
            let (resource, segments) = (Arc::clone(resource), SmallVec::new());
            let (reads, writes) = (Ranges::new(), Ranges::new());
            self.parts.resources.push(Named { resource, reads, writes, segments });
            self.parts.objects.push(object);
        } else if !Arc::ptr_eq(&self.parts.objects[number], &object) {
            // Replaced since: segments that name the old object are recorded again by a submission.
            self.parts.objects[number] = object;
            for segment in &self.parts.resources[number].segments {
                if let Some(recorded) = self.parts.recorded.get_mut(*segment) {
                    *recorded = None;
                }
            }
            if self.parts.resources[number].segments.contains(&self.parts.recorded.len()) {
                self.stale = true;
            }
        }
    }

    /// Records a command for the driver, after a barrier if it needs one. After an error it has no part in the hazards.
    fn record(
        &mut self,
        state: &mut ContextState,
        kind: CommandKind,
        uses: &[PartUse<'_>],
        command: Command,
    ) -> Result<(), Error> {
        // Hazards are keyed by object: a resource has exactly one object in a submission.
        let touches = uses.iter().map(|(resource, range, access)| Touch {
            object: ObjectId(resource.id().0),
            range: range.clone(),
            access: *access,
        });
        let conflict = self.hazards.conflict(touches.clone(), Fresh::default()).and_then(|number| uses.get(number));
        let mut barrier = conflict.is_some();
        let length = self.open.as_ref().map_or(0, |(_, first)| self.parts.commands.len() - first);
        if length >= MAX_SEGMENT_COMMANDS || (length >= MIN_SPLIT_COMMANDS && barrier) {
            self.close();
            barrier = false;
        }
        if self.open.is_none() {
            self.open = Some((Open::new(state)?, self.parts.commands.len()));
            self.stale = false;
        }
        let (group, own) = (self.group.clone(), self.own.clone());
        let label = own.as_ref().map(|own| within(group.as_deref(), own)).or_else(|| group.clone());
        let recorded = Recorded { command, kind, barrier, group, own, label };
        // Always `Some`: opened above if it was not.
        let Some((open, _)) = &mut self.open else { return Ok(()) };
        let on = On { place: None, resources: &self.parts.resources, objects: &self.parts.objects };
        open.record(state, &recorded, on)?;
        if barrier {
            self.hazards.clear();
        }
        self.hazards.add(touches);
        if let Some((resource, range, _)) = conflict {
            let (commands, number) = (self.id, self.parts.commands.len());
            let (resource, range) = (resource.id(), range.clone());
            state.log.note(|| Event::BarrierRecorded { commands, number, command: kind, resource, range });
        }
        self.parts.commands.push(recorded);
        let segment = self.parts.segments.len();
        for (resource, range, access) in uses {
            let Some(number) = self.numbers.get(&resource.id()) else { continue };
            let named = &mut self.parts.resources[*number];
            let ranges = if access.writes() { &mut named.writes } else { &mut named.reads };
            ranges.add(range.clone());
            if named.segments.last() != Some(&segment) {
                named.segments.push(segment);
            }
        }
        Ok(())
    }

    /// Ends the segment that is being recorded. What follows comes after it, as if separated by a barrier.
    fn close(&mut self) {
        self.hazards.clear();
        let Some((open, first)) = self.open.take() else { return };
        let commands = first..self.parts.commands.len();
        if commands.is_empty() {
            return;
        }
        // What is missing is recorded by the first submission, which reports errors.
        let recorded = if std::mem::take(&mut self.stale) { None } else { open.finish().ok() };
        self.parts.steps.push(Step::Segment(self.parts.segments.len()));
        self.parts.segments.push(commands);
        self.parts.recorded.push(recorded);
    }

    /// Ends the recording.
    pub(super) fn finish(mut self) -> Parts {
        self.close();
        for Named { reads, writes, .. } in &mut self.parts.resources {
            // A write is ordered against all that a read is ordered against.
            writes.iter().for_each(|range| reads.remove(range));
        }
        self.parts
    }

    /// Adds a step that is no segment.
    pub(super) fn add_step(&mut self, step: Step) {
        self.close();
        self.parts.steps.push(step);
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording({} commands)", self.parts.commands.len())
    }
}
