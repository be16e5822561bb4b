//! The commands of a command buffer. They name resources by number, not objects, so they can be recorded again when a
//! resource has another object.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::{ClearColor, CommandBuffer, vk};

use super::contents::Named;
use super::follow::DispatchBindings;
use crate::batch::{BindState, end_with_barrier, full_barrier};
use crate::bind::Bind;
use crate::context_state::ContextState;
use crate::descriptors::{checked, resolve};
use crate::dispatch::INDIRECT_BYTES;
use crate::error::{Error, rule};
use crate::ids::{CommandKind, Slot};
use crate::object::ResourceObject;
use crate::program::{Declared, Program};
use crate::resource::Resource;
use crate::slot_state::SlotState;
use crate::transfer::{Direction, LevelOf, TexelArea, check_inside, copy_region, extent};

/// A command. Resources are numbers in the list of its command buffer.
#[derive(Debug)]
pub(super) enum Command {
    Dispatch(DispatchCommand),
    Copy {
        from: usize,
        to: usize,
        region: vk::BufferCopy,
    },
    /// Without a range it fills all whole words of the buffer, whatever its size.
    Fill {
        to: usize,
        range: Option<Range<u64>>,
        word: u32,
    },
    CopyImage {
        from: LevelOf<usize>,
        to: LevelOf<usize>,
    },
    /// Texels between a buffer, from an offset on, and an image whose level has this size.
    CopyTexels {
        direction: Direction,
        buffer: (usize, u64),
        image: usize,
        area: TexelArea,
        size: vk::Extent3D,
    },
    ClearImage {
        to: usize,
        color: ClearColor,
        range: vk::ImageSubresourceRange,
    },
}

impl Command {
    /// Whether it names the resource with that number.
    pub(super) fn names(&self, resource: usize) -> bool {
        match self {
            Self::Dispatch(dispatch) => {
                let in_set = dispatch.sets.iter().flatten().any(|(_, number)| *number == Some(resource));
                in_set || matches!(dispatch.workgroups, Workgroups::Indirect(counts, _) if counts == resource)
            }
            Self::Copy { from, to, .. } => [*from, *to].contains(&resource),
            Self::CopyImage { from, to } => [from.of, to.of].contains(&resource),
            Self::CopyTexels { buffer, image, .. } => [buffer.0, *image].contains(&resource),
            Self::Fill { to, .. } | Self::ClearImage { to, .. } => *to == resource,
        }
    }
}

/// A dispatch, with all its bindings.
#[derive(Debug)]
pub(super) struct DispatchCommand {
    pub(super) program: Program,
    pub(super) push: SmallVec<[u8; 64]>,
    /// By group, the bindings in the order of the layout's slots, each with the number of its resource; a sampler has
    /// none.
    pub(super) sets: Vec<Vec<(Bind, Option<usize>)>>,
    pub(super) workgroups: Workgroups,
    /// What it was given, if it takes descriptors from updatable sets.
    pub(super) given: Option<Box<DispatchBindings>>,
}

/// The number of workgroups of a dispatch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Workgroups {
    Direct([u32; 3]),
    /// In a resource, at this offset.
    Indirect(usize, u64),
}

/// A command as it is recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) command: Command,
    pub(super) kind: CommandKind,
    /// Whether a barrier comes before it.
    pub(super) barrier: bool,
    /// The names of the groups that it is in.
    pub(super) group: Option<Arc<str>>,
    /// Its own name.
    pub(super) own: Option<Arc<str>>,
    /// All these names, for the driver.
    pub(super) label: Option<Arc<str>>,
}

/// A driver's command buffer while commands are recorded in it.
pub(super) struct Open {
    commands: CommandBuffer,
    bound: BindState,
    label: Option<Arc<str>>,
}

impl Open {
    pub(super) fn new(state: &ContextState) -> Result<Self, Error> {
        let commands = state.share.device().create_command_pool().allocate();
        // It may be submitted again, on any queue, while it runs.
        commands.begin(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE)?;
        Ok(Self { commands, bound: BindState::default(), label: None })
    }

    /// Ends the recording.
    pub(super) fn finish(self) -> Result<CommandBuffer, Error> {
        end_with_barrier(&self.commands)?;
        Ok(self.commands)
    }

    /// Records a command with these objects of the resources. Each use is checked against the size that the object has:
    /// a resource may have been respecified since the command was first checked. After an error nothing of the command
    /// is recorded, but a barrier.
    pub(super) fn record(&mut self, state: &mut ContextState, recorded: &Recorded, on: On<'_>) -> Result<(), Error> {
        let share = Arc::clone(&state.share);
        let counters = &share.memory().counters;
        if recorded.barrier {
            full_barrier(&self.commands)?;
            counters.barriers.one();
        }
        // Labels are state of the driver's command buffer; most commands have that of the one before.
        if self.label != recorded.label {
            self.commands.set_label(recorded.label.as_deref())?;
            self.label.clone_from(&recorded.label);
        }
        let commands = &self.commands;
        match &recorded.command {
            Command::Dispatch(dispatch) => {
                self.dispatch(state, dispatch, on)?;
                counters.dispatches.one();
                return Ok(());
            }
            Command::Copy { from, to, region } => {
                let vk::BufferCopy { src_offset, dst_offset, size } = *region;
                on.check_inside("copy", *from, src_offset..src_offset + size)?;
                on.check_inside("copy", *to, dst_offset..dst_offset + size)?;
                commands.copy_buffer(on.objects[*from].buffer()?, on.objects[*to].buffer()?, &[*region])?;
            }
            Command::Fill { to, range, word } => {
                // A whole buffer is as large as its present object; fills are of whole words.
                let range = range.clone().unwrap_or(0..on.objects[*to].size() & !3);
                on.check_inside("fill", *to, range.clone())?;
                if range.is_empty() {
                    return Ok(());
                }
                commands.fill_buffer(on.objects[*to].buffer()?, range.start, range.end - range.start, *word)?;
            }
            Command::CopyImage { from, to } => {
                let images = [on.objects[from.of].image()?, on.objects[to.of].image()?];
                let levels = [from, to].map(|level| level.map(|number| on.resource(number)));
                let region = copy_region(&on.called("copy"), levels, images.map(spelter_driver::Image::info))?;
                commands.copy_image(images[0], images[1], &[region])?;
            }
            Command::CopyTexels { direction, buffer: (buffer, offset), image: number, area, size } => {
                let image = on.objects[*number].image()?;
                let found = extent(image.info(), area.level);
                let described = || on.resource(*number).described();
                // The number of bytes in the buffer depends on it, which the program cannot know after a
                // respecification.
                if area.follows_the_size() && found != *size {
                    let [was, is] =
                        [*size, found].map(|vk::Extent3D { width, height, depth }| format!("{width}x{height}x{depth}"));
                    let (what, level, of) = (on.called("copy"), area.level, described());
                    let problem = format!("{what}: level {level} of {of} has {is} texels, and had {was}");
                    return Err(Error::range(problem, rule::COPY_RECORDED));
                }
                let texels = (image.info(), image.texel_bytes());
                let (region, bytes) = area.placed(&on.called("copy"), described, texels, *offset)?;
                on.check_inside("copy", *buffer, *offset..offset.saturating_add(bytes))?;
                direction.record(commands, (on.objects[*buffer].buffer()?, image), region)?;
            }
            Command::ClearImage { to, color, range } => {
                commands.clear_color_image(on.objects[*to].image()?, *color, &[*range])?;
            }
        }
        counters.transfers.one();
        Ok(())
    }

    fn dispatch(&mut self, state: &mut ContextState, dispatch: &DispatchCommand, on: On<'_>) -> Result<(), Error> {
        let share = Arc::clone(&state.share);
        let DispatchCommand { program, push, sets, workgroups, .. } = dispatch;
        self.bound.bind_program(&self.commands, program, push)?;
        for (group, (layout, binds)) in (0u32..).zip(program.sets().iter().zip(sets)) {
            if binds.is_empty() {
                continue;
            }
            let over = |((info, slot), (bind, number)): ((&Declared, Slot), &(Bind, Option<usize>))| {
                let state = SlotState::with_object(slot, bind, number.map(|number| &on.objects[number]))?;
                checked(program, slot, *info, Some(&state))?;
                Ok(state)
            };
            let slots = layout.bindings.iter().flat_map(|info| info.slots().map(move |slot| (info, slot)));
            let found = slots.zip(binds).map(over).collect::<Result<SmallVec<[_; 4]>, Error>>()?;
            let set = resolve(layout, &found, &mut state.sets, &share)?;
            if !self.bound.has_set(group, set.number) {
                self.bound.bind_set(&self.commands, program, group, &set.set, set.number)?;
            }
        }
        match *workgroups {
            Workgroups::Direct([x, y, z]) => self.commands.dispatch(x, y, z)?,
            Workgroups::Indirect(counts, offset) => {
                on.check_inside("dispatch", counts, offset..offset + INDIRECT_BYTES)?;
                self.commands.dispatch_indirect(on.objects[counts].buffer()?, offset)?;
            }
        }
        Ok(())
    }
}

/// What a command is recorded on: by number, resources and their objects.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    /// Gives the place of the command, for messages, if the call that records is not the command's own.
    pub(super) place: Option<&'a dyn Fn() -> String>,
    pub(super) resources: &'a [Named],
    pub(super) objects: &'a [Arc<ResourceObject>],
}

impl<'a> On<'a> {
    fn resource(self, number: usize) -> &'a Resource {
        &self.resources[number].resource
    }

    /// The command, for messages.
    fn called(self, what: &str) -> String {
        self.place.map_or_else(|| what.to_owned(), |place| place())
    }

    /// Checks that bytes lie in the object of a buffer.
    fn check_inside(self, what: &str, number: usize, range: Range<u64>) -> Result<(), Error> {
        let object = &self.objects[number];
        if range.end <= object.size() {
            return Ok(());
        }
        check_inside(&self.called(what), self.resource(number), object, &range)
    }
}
