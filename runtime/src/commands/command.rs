//! The commands of a command buffer. They name resources by number, not objects, so they can be recorded again when a
//! resource has another object.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::{ClearColor, CommandBuffer, vk};

use super::contents::Named;
use crate::batch::{BindState, full_barrier};
use crate::bind::Bind;
use crate::context_state::ContextState;
use crate::descriptors::{checked, resolve};
use crate::dispatch::INDIRECT_BYTES;
use crate::error::Error;
use crate::ids::Slot;
use crate::object::ResourceObject;
use crate::program::{BindingInfo, Program};
use crate::resource::Resource;
use crate::slot_state::SlotState;
use crate::transfer::{check_inside, copy_region};

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
        from: LevelNumber,
        to: LevelNumber,
    },
    ClearImage {
        to: usize,
        color: ClearColor,
        range: vk::ImageSubresourceRange,
    },
}

/// A level of a layer of an image: the number of its resource, level, layer.
pub(super) type LevelNumber = (usize, u32, u32);

/// A dispatch, with all its bindings.
#[derive(Debug)]
pub(super) struct DispatchCommand {
    pub(super) program: Program,
    pub(super) push: SmallVec<[u8; 64]>,
    /// By group, the bindings in the order of the layout's slots, each with the number of its resource; a sampler has
    /// none.
    pub(super) sets: Vec<Vec<(Bind, Option<usize>)>>,
    pub(super) workgroups: Workgroups,
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
    /// Whether a barrier comes before it.
    pub(super) barrier: bool,
    /// The names of the groups that it is in.
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
        self.commands.end()?;
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
                let range = range.clone().unwrap_or(0..on.objects[*to].size() & !3);
                on.check_inside("fill", *to, range.clone())?;
                if range.is_empty() {
                    return Ok(());
                }
                commands.fill_buffer(on.objects[*to].buffer()?, range.start, range.end - range.start, *word)?;
            }
            Command::CopyImage { from, to } => {
                let images = [on.objects[from.0].image()?, on.objects[to.0].image()?];
                let levels = [from, to].map(|(number, level, layer)| (on.resource(*number), *level, *layer));
                let region = copy_region(&on.called("copy"), levels, images.map(spelter_driver::Image::info))?;
                commands.copy_image(images[0], images[1], &[region])?;
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
        let DispatchCommand { program, push, sets, workgroups } = dispatch;
        self.bound.bind_program(&self.commands, program, push)?;
        for (group, (layout, binds)) in (0u32..).zip(program.sets().iter().zip(sets)) {
            if binds.is_empty() {
                continue;
            }
            let over = |((info, slot), (bind, number)): ((&BindingInfo, Slot), &(Bind, Option<usize>))| {
                let state = SlotState::over(slot, bind, number.map(|number| &on.objects[number]))?;
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
    /// The call that records, if it is not the command's own.
    pub(super) during: Option<&'a str>,
    pub(super) resources: &'a [Named],
    pub(super) objects: &'a [Arc<ResourceObject>],
}

impl<'a> On<'a> {
    fn resource(self, number: usize) -> &'a Resource {
        &self.resources[number].resource
    }

    /// The command, for messages.
    fn called(self, what: &str) -> String {
        self.during.map_or_else(|| what.to_owned(), |during| format!("{during}: {what}"))
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
