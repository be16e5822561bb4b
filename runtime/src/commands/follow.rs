//! Command buffers that follow descriptor sets: the first submission after a write to a set of theirs records them
//! again.
//!
//! What a set names decides which resources the commands use, and so their barriers and segments. So all commands are
//! recorded again, by the calls that recorded them first. Vulkan has no command buffers that could be kept here: a set
//! that is updated makes those that bind it invalid, unless it is updated after binding
//! (VUID-vkUpdateDescriptorSets-None-03047).

use std::ops::Range;

use ash::vk;

use super::command::{Command, DispatchCommand, Workgroups};
use super::contents::{Contents, Parts, Step};
use super::recorder::Recorder;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::Error;
use crate::ids::Slot;
use crate::image::Image;
use crate::set::{DescriptorSet, GroupSets};
use crate::transfer::TexelRegion;

/// What a dispatch was given that takes descriptors from updatable sets.
#[derive(Debug)]
pub(super) struct DispatchBindings {
    pub(super) own: Vec<(Slot, Bind)>,
    pub(super) sets: GroupSets,
}

/// The updatable sets of commands, each with the number of its writes when the first of them was recorded.
pub(super) type Follows = Vec<(DescriptorSet, u64)>;

/// Adds the updatable sets of a dispatch. To be called before the dispatch looks at them.
pub(super) fn follow(follows: &mut Follows, sets: &GroupSets) -> bool {
    let mut any = false;
    for (_, set) in sets.iter().filter(|(_, set)| set.is_updatable()) {
        any = true;
        if follows.iter().all(|(known, _)| known.id() != set.id()) {
            follows.push((set.clone(), set.inner().writes()));
        }
    }
    any
}

impl Contents {
    /// Whether a set of its commands was written since they were recorded.
    pub(super) fn is_outdated(&self) -> bool {
        self.follows.iter().any(|(set, writes)| set.inner().writes() != *writes)
    }

    /// Records all commands again, with what their sets name now. The caller holds no lock.
    pub(super) fn again(&self, context: &Context) -> Result<Parts, Error> {
        let mut recorder = Recorder::new(context, self.id, None);
        (recorder.recording.parts.label, recorder.recording.parts.depth) = (self.label.clone(), self.depth);
        for step in &self.steps {
            let Step::Segment(segment) = step else {
                recorder.recording.add_step(step.clone());
                continue;
            };
            for number in self.segments[*segment].clone() {
                let recorded = &self.commands[number];
                recorder.recording.group.clone_from(&recorded.group);
                recorder.recording.own.clone_from(&recorded.own);
                let result = self.repeat(&mut recorder, &recorded.command);
                result.map_err(|error| error.within(|| self.place(number)))?;
            }
        }
        Ok(recorder.finish())
    }

    fn repeat(&self, recorder: &mut Recorder, command: &Command) -> Result<(), Error> {
        let buffer = |number: usize| Buffer::of(&self.resources[number].resource);
        let image = |number: usize| Image::of(&self.resources[number].resource);
        match command {
            Command::Dispatch(dispatch) => self.repeat_dispatch(recorder, dispatch),
            Command::Copy { from, to, region } => {
                let vk::BufferCopy { src_offset, dst_offset, size } = *region;
                recorder.copy(&buffer(*from), src_offset, &buffer(*to), dst_offset, size)
            }
            Command::Fill { to, range: None, word } => recorder.fill(&buffer(*to), *word),
            Command::Fill { to, range: Some(range), word } => recorder.fill_range(&buffer(*to), range.clone(), *word),
            Command::CopyImage { from, to } => {
                recorder.copy_image((&image(from.of), from.level, from.layer), (&image(to.of), to.level, to.layer))
            }
            Command::CopyTexels { direction, buffer: (bytes, offset), image: texels, area, size } => {
                let region = TexelRegion { image: &image(*texels), area: *area };
                recorder.copy_texels(*direction, (&buffer(*bytes), *offset), region, Some(*size))
            }
            Command::ClearImage { to, color, range } => {
                let numbers = |first: u32, count: u32| -> Range<u32> { first..first + count };
                let levels = numbers(range.base_mip_level, range.level_count);
                let layers = numbers(range.base_array_layer, range.layer_count);
                recorder.clear_image(image(*to).all().levels(levels).layers(layers), *color)
            }
        }
    }

    fn repeat_dispatch(&self, recorder: &mut Recorder, command: &DispatchCommand) -> Result<(), Error> {
        let DispatchCommand { program, push, sets, workgroups, given } = command;
        let mut dispatch = recorder.dispatch(program);
        match given {
            Some(given) => {
                dispatch = given.own.iter().fold(dispatch, |all, (slot, bind)| all.with(*slot, bind.clone()));
                dispatch = given.sets.iter().fold(dispatch, |all, (group, set)| all.set(*group, set));
            }
            None => {
                for (layout, binds) in program.sets().iter().zip(sets) {
                    let slots = layout.bindings.iter().flat_map(|info| info.slots());
                    dispatch = slots.zip(binds).fold(dispatch, |all, (slot, (bind, _))| all.with(slot, bind.clone()));
                }
            }
        }
        dispatch = push.iter().fold(dispatch, |all, byte| all.push(byte));
        match *workgroups {
            Workgroups::Direct(groups) => dispatch.groups(groups),
            Workgroups::Indirect(counts, offset) => {
                dispatch.indirect(&Buffer::of(&self.resources[counts].resource), offset)
            }
        }
    }
}
