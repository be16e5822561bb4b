//! The commands of a command buffer. They name resources by number, not objects, so they can be recorded again when a
//! resource has another object.

use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::{ClearColor, CommandBuffer, vk};

use crate::batch::{BindState, full_barrier};
use crate::bind::Bind;
use crate::context_state::ContextState;
use crate::descriptors::resolve;
use crate::error::Error;
use crate::object::ResourceObject;
use crate::program::Program;
use crate::slot_state::SlotState;

/// A command. Resources are numbers in the list of its command buffer.
#[derive(Debug)]
pub(super) enum Command {
    Dispatch(DispatchCommand),
    Copy { from: usize, to: usize, region: vk::BufferCopy },
    Fill { to: usize, offset: u64, bytes: u64, word: u32 },
    CopyImage { from: usize, to: usize, region: vk::ImageCopy },
    ClearImage { to: usize, color: ClearColor, range: vk::ImageSubresourceRange },
}

/// A dispatch, with all its bindings.
#[derive(Debug)]
pub(super) struct DispatchCommand {
    pub(super) program: Program,
    pub(super) push: SmallVec<[u8; 64]>,
    /// By group, the bindings in the layout's order, each with the number of its resource; a sampler has none.
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

    /// Records a command with these objects of the resources.
    pub(super) fn record(
        &mut self,
        state: &mut ContextState,
        recorded: &Recorded,
        objects: &[Arc<ResourceObject>],
    ) -> Result<(), Error> {
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
                self.dispatch(state, dispatch, objects)?;
                counters.dispatches.one();
                return Ok(());
            }
            Command::Copy { from, to, region } => {
                commands.copy_buffer(objects[*from].buffer()?, objects[*to].buffer()?, &[*region])?;
            }
            Command::Fill { to, offset, bytes, word } => {
                commands.fill_buffer(objects[*to].buffer()?, *offset, *bytes, *word)?;
            }
            Command::CopyImage { from, to, region } => {
                commands.copy_image(objects[*from].image()?, objects[*to].image()?, &[*region])?;
            }
            Command::ClearImage { to, color, range } => {
                commands.clear_color_image(objects[*to].image()?, *color, &[*range])?;
            }
        }
        counters.transfers.one();
        Ok(())
    }

    fn dispatch(
        &mut self,
        state: &mut ContextState,
        dispatch: &DispatchCommand,
        objects: &[Arc<ResourceObject>],
    ) -> Result<(), Error> {
        let share = Arc::clone(&state.share);
        let DispatchCommand { program, push, sets, workgroups } = dispatch;
        self.bound.bind_program(&self.commands, program, push)?;
        for (group, (layout, binds)) in (0u32..).zip(program.sets().iter().zip(sets)) {
            if binds.is_empty() {
                continue;
            }
            let over = |(bind, number): &(Bind, Option<usize>)| {
                SlotState::over(&share, bind, number.map(|number| &objects[number]))
            };
            let found = binds.iter().map(over).collect::<Result<SmallVec<[_; 4]>, _>>()?;
            let set = resolve(layout, &found, &mut state.sets, &share)?;
            if !self.bound.has_set(group, set.number) {
                self.bound.bind_set(&self.commands, program, group, &set.set, set.number)?;
            }
        }
        match *workgroups {
            Workgroups::Direct([x, y, z]) => self.commands.dispatch(x, y, z)?,
            Workgroups::Indirect(counts, offset) => {
                self.commands.dispatch_indirect(objects[counts].buffer()?, offset)?;
            }
        }
        Ok(())
    }
}
