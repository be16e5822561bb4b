//! The recorder of a command buffer: what the closure of [`Context::record`] gets.
//!
//! Each command is checked and recorded for the driver at once, so the call that breaks a rule returns the error.
//! Barriers depend on the resources only, not on their objects, so they are decided here, once. They are decided
//! without regard to what is valid: a command that writes bytes for the first time overwrites data when the command
//! buffer is submitted again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use foldhash::fast::FixedState;
use smallvec::SmallVec;
use spelter_driver::ClearColor;

use super::command::{Command, DispatchCommand, Open, Recorded, Workgroups};
use super::contents::{Named, Parts, Step};
use super::{CommandBuffer, CommandBufferState, MAX_DEPTH};
use crate::barrier::{Fresh, Hazards};
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::context_state::ContextState;
use crate::dispatch::{Counts, Dispatch, INDIRECT_BYTES, RecordsDispatches};
use crate::error::{Error, rule};
use crate::ids::{Access, ObjectId, ResourceId};
use crate::image::{Image, ImagePart};
use crate::program::Program;
use crate::resource::Resource;
use crate::transfer::check_color;
use crate::valid::Ranges;

/// From this number of commands on, a segment ends where a barrier is needed.
const LONG: usize = 64;
/// The largest number of commands in a segment.
const LONGEST: usize = 512;

/// Records commands in a command buffer: see [`Context::record`]. Each call checks the command at once; a call that
/// fails records nothing.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (from, to) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
/// let commands = context.record(|commands| {
///     commands.copy(&from, 0, &to, 0, 8)?;
///     commands.fill_range(&from, 0..4, 9)
/// })?;
/// context.submit(&commands)?;
/// assert_eq!((context.read::<u32>(&from)?, context.read::<u32>(&to)?), (vec![9, 2], vec![1, 2]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recorder {
    context: Context,
    recording: Recording,
}

/// The commands so far.
#[derive(Default)]
struct Recording {
    parts: Parts,
    /// The command buffer that gets the commands, if it exists already.
    target: Option<Arc<CommandBufferState>>,
    /// The driver's command buffer for the segment that is being recorded, and its first command.
    open: Option<(Open, usize)>,
    hazards: Hazards,
    /// Whether the next command needs a barrier before it.
    barrier: bool,
    /// Whether the open segment names an object that was replaced since.
    stale: bool,
    numbers: HashMap<ResourceId, usize, FixedState>,
    label: Option<Arc<str>>,
}

/// A command's use of a part of a resource.
type PartUse<'a> = (&'a Arc<Resource>, Range<u64>, Access);

impl Recorder {
    pub(super) fn new(context: &Context, target: Option<&Arc<CommandBufferState>>) -> Self {
        Self { context: context.clone(), recording: Recording { target: target.cloned(), ..Recording::default() } }
    }

    /// A builder for a dispatch of a program; [`Dispatch::groups`], [`Dispatch::invocations`] or [`Dispatch::indirect`]
    /// records it. The dispatch has all its bindings of its own: the slots of contexts do not matter to a command
    /// buffer. Errors are those of [`Context::dispatch`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let double = context.record(|commands| commands.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1]))?;
    /// for _ in 0..3 {
    ///     context.submit(&double)?;
    /// }
    /// assert_eq!(context.read::<u32>(&data)?, [8, 16, 24, 32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch<'a>(&'a mut self, program: &'a Program) -> Dispatch<'a> {
        Dispatch::recorded(&self.context, program, &mut self.recording)
    }

    /// Records a copy of `bytes` bytes from one buffer to another, or between disjoint ranges of one: see
    /// [`Context::copy`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (from, to) = (context.buffer_from(&[1u32, 2, 3])?, context.buffer_zeroed(8)?);
    /// let commands = context.record(|commands| commands.copy(&from, 4, &to, 0, 8))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&to)?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy(&mut self, from: &Buffer, start: u64, to: &Buffer, offset: u64, bytes: u64) -> Result<(), Error> {
        self.context.check_copy(from, start, to, offset, bytes)?;
        let (from, to) = (from.resource(), to.resource());
        let uses = [(from, start..start + bytes, Access::Read), (to, offset..offset + bytes, Access::Write)];
        let region = vk::BufferCopy { src_offset: start, dst_offset: offset, size: bytes };
        self.recording.add(&self.context, "copy", &uses, bytes > 0, |number| Command::Copy {
            from: number(from),
            to: number(to),
            region,
        })
    }

    /// Records a fill of the whole buffer with a repeated word: see [`Context::fill`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// let commands = context.record(|commands| commands.fill(&buffer, 9))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [9, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill(&mut self, buffer: &Buffer, word: u32) -> Result<(), Error> {
        self.fill_range(buffer, 0..buffer.size() & !3, word)
    }

    /// Records a fill of the bytes `range` of a buffer with a repeated word: see [`Context::fill_range`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(16)?;
    /// let commands = context.record(|commands| commands.fill_range(&buffer, 4..12, 7))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 7, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_range(&mut self, buffer: &Buffer, range: Range<u64>, word: u32) -> Result<(), Error> {
        self.context.check_fill(buffer, &range)?;
        let (offset, bytes) = (range.start, range.end - range.start);
        let to = buffer.resource();
        self.recording.add(&self.context, "fill", &[(to, range, Access::Write)], bytes > 0, |number| Command::Fill {
            to: number(to),
            offset,
            bytes,
            word,
        })
    }

    /// Records a copy of one level of one layer, `(image, level, layer)`, to a level of the same size: see
    /// [`Context::copy_image`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).layers(2).build()?;
    /// let commands = context.record(|commands| commands.copy_image((&image, 0, 0), (&image, 0, 1)))?;
    /// context.write_image(&image, 0, 0, &[7u32, 8])?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 1)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image(&mut self, from: (&Image, u32, u32), to: (&Image, u32, u32)) -> Result<(), Error> {
        let (source, target, region) = self.context.check_copy_image(from, to)?;
        let levels = [from, to].map(|(image, ..)| image.info().levels);
        let read = source.ranges(levels[0]).into_iter().map(|range| (from.0.resource(), range, Access::Read));
        let write = target.ranges(levels[1]).into_iter().map(|range| (to.0.resource(), range, Access::Write));
        // A level of a layer is one range.
        let uses: SmallVec<[PartUse<'_>; 2]> = read.chain(write).collect();
        self.recording.add(&self.context, "copy", &uses, true, |number| Command::CopyImage {
            from: number(from.0.resource()),
            to: number(to.0.resource()),
            region,
        })
    }

    /// Records a clear of levels and layers of an image to one colour: see [`Context::clear_image`].
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// let commands = context.record(|commands| commands.clear_image(&image, ClearColor::Uint([7, 0, 0, 0])))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear_image<'a>(&mut self, what: impl Into<ImagePart<'a>>, color: ClearColor) -> Result<(), Error> {
        let ImagePart { image, part } = what.into();
        self.context.check_part("clear", image, &part)?;
        check_color(image, image.resource().object_for_command("clear")?.image()?, color)?;
        let ranges = part.ranges(image.info().levels).into_iter();
        let uses: SmallVec<[_; 2]> = ranges.map(|range| (image.resource(), range, Access::Write)).collect();
        self.recording.add(&self.context, "clear", &uses, true, |number| Command::ClearImage {
            to: number(image.resource()),
            color,
            range: part.range(),
        })
    }

    /// Names the commands that the closure records, in timelines and in the reasons of a lost device. Groups nest:
    /// names are separated by `/`.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// let commands = context.record(|commands| {
    ///     commands.group("frame", |commands| {
    ///         commands.group("clear", |commands| commands.fill(&buffer, 9)) // `frame/clear`
    ///     })
    /// })?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [9, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn group<T>(&mut self, name: &str, record: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let outer = self.recording.label.clone();
        let inner = outer.as_ref().map_or_else(|| name.into(), |outer| format!("{outer}/{name}").into());
        self.recording.label = Some(inner);
        let result = record(self);
        self.recording.label = outer;
        result
    }

    /// Records a timestamp: the time when all commands before it are done. Each submission has its own, which its fence
    /// returns ([`Fence::timestamps`](crate::Fence::timestamps)).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(1 << 16)?;
    /// let commands = context.record(|commands| {
    ///     commands.timestamp("begin");
    ///     commands.fill(&buffer, 9)?;
    ///     commands.timestamp("end");
    ///     Ok(())
    /// })?;
    /// let times = context.submit(&commands)?.timestamps()?;
    /// assert_eq!((&*times[0].label, &*times[1].label), ("begin", "end"));
    /// assert!(times[0].nanoseconds <= times[1].nanoseconds);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamp(&mut self, label: &str) {
        self.recording.steps_on(Step::Timestamp(label.into()));
    }

    /// Executes another command buffer at this point: the commands that it has when this one is submitted.
    ///
    /// [`Error::Resource`] if it is of another device, if it executes the command buffer that is being recorded, or if
    /// it is nested too deep.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (a, b) = (context.buffer_zeroed(4)?, context.buffer_zeroed(4)?);
    /// let fill = context.record(|commands| commands.fill(&a, 3))?;
    /// let both = context.record(|commands| {
    ///     commands.execute(&fill)?;
    ///     commands.copy(&a, 0, &b, 0, 4)
    /// })?;
    /// context.submit(&both)?;
    /// assert_eq!(context.read::<u32>(&b)?, [3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn execute(&mut self, commands: &CommandBuffer) -> Result<(), Error> {
        commands.check_device("execute", self.context.share())?;
        if let Some(target) = &self.recording.target {
            commands.check_no_cycle(target)?;
        }
        let depth = commands.contents().depth + 1;
        if depth > MAX_DEPTH {
            return Err(Error::resource(format!("execute: {commands:?} is nested {depth} deep"), rule::NESTED));
        }
        self.recording.parts.depth = self.recording.parts.depth.max(depth);
        self.recording.steps_on(Step::Execute(commands.clone()));
        Ok(())
    }

    pub(super) fn finish(mut self) -> Parts {
        self.recording.close();
        let mut parts = self.recording.parts;
        for Named { reads, writes, .. } in &mut parts.resources {
            // A write is ordered against all that a read is ordered against.
            writes.iter().for_each(|range| reads.remove(range));
        }
        parts
    }
}

impl RecordsDispatches for Recording {
    fn dispatch(&mut self, dispatch: &Dispatch<'_>, counts: Counts<'_>) -> Result<(), Error> {
        let (context, program) = (dispatch.context(), dispatch.program());
        let sets = dispatch.own_bindings()?;
        let mut uses: SmallVec<[PartUse<'_>; 8]> = SmallVec::new();
        for (bind, access) in sets.iter().flatten() {
            if let Some(resource) = &bind.resource {
                let ranges = bind.part.ranges(resource.template()).into_iter();
                uses.extend(ranges.map(|range| (resource, range, *access)));
            }
        }
        if let Counts::Indirect(buffer, offset) = counts {
            uses.push((buffer.resource(), offset..offset + INDIRECT_BYTES, Access::Read));
        }
        let push = SmallVec::from_slice(dispatch.pushed());
        self.add(context, "dispatch", &uses, true, |number| {
            let numbered = |(bind, _): &(Bind, Access)| (bind.clone(), bind.resource.as_deref().map(number));
            let sets = sets.iter().map(|set| set.iter().map(numbered).collect()).collect();
            let workgroups = match counts {
                Counts::Direct(groups) => Workgroups::Direct(groups),
                Counts::Indirect(buffer, offset) => Workgroups::Indirect(number(buffer.resource()), offset),
            };
            Command::Dispatch(DispatchCommand { program: program.clone(), push: push.clone(), sets, workgroups })
        })
    }
}

impl Recording {
    /// Adds a command that uses these parts of resources; `make` makes it from their numbers. A command that does
    /// nothing is only checked.
    fn add(
        &mut self,
        context: &Context,
        what: &str,
        uses: &[PartUse<'_>],
        does_something: bool,
        make: impl Fn(&dyn Fn(&Resource) -> usize) -> Command,
    ) -> Result<(), Error> {
        context.inner().record(|state| {
            uses.iter().try_for_each(|(resource, ..)| self.number(what, resource))?;
            if does_something {
                let numbers = &self.numbers;
                let command = make(&|resource| numbers.get(&resource.id()).copied().unwrap_or_default());
                self.record(state, uses, command)?;
            }
            Ok(())
        })
    }

    /// Gives a resource a number, and looks up its current object.
    fn number(&mut self, what: &str, resource: &Arc<Resource>) -> Result<(), Error> {
        let object = resource.object_for_recording(what)?;
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
        Ok(())
    }

    /// Records a command for the driver, after a barrier if it needs one.
    fn record(&mut self, state: &mut ContextState, uses: &[PartUse<'_>], command: Command) -> Result<(), Error> {
        // Resources take the place of objects: a resource has one object in a submission.
        let touches = uses.iter().map(|(resource, range, access)| (ObjectId(resource.id().0), range.clone(), *access));
        self.barrier |= self.hazards.next(touches.clone(), Fresh::default());
        let length = self.open.as_ref().map_or(0, |(_, first)| self.parts.commands.len() - first);
        if length >= LONGEST || (length >= LONG && self.barrier) {
            self.close();
            let _ = self.hazards.next(touches, Fresh::default());
        }
        if self.open.is_none() {
            self.open = Some((Open::new(state)?, self.parts.commands.len()));
            self.barrier = false;
        }
        let recorded = Recorded { command, barrier: self.barrier, label: self.label.clone() };
        // It is `Some`.
        let Some((open, _)) = &mut self.open else { return Ok(()) };
        open.record(state, &recorded, &self.parts.objects)?;
        self.barrier = false;
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
        self.barrier = false;
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

    /// Adds a step that is no segment.
    fn steps_on(&mut self, step: Step) {
        self.close();
        self.parts.steps.push(step);
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recording({} commands)", self.parts.commands.len())
    }
}
