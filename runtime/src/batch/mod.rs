//! Batches: commands recorded together, submitted together, and known by one serial.
//!
//! Serials of a context count up from 1. A batch owns all objects that its commands use until its serial has retired.

mod timeline;

pub(crate) use timeline::Timeline;

use std::sync::Arc;

use ash::vk;
use spelter_driver::{CommandBuffer, Device, MemoryBarrier};

use crate::barrier::Hazards;
use crate::descriptors::SetCache;
use crate::error::Error;
use crate::object::{Access, ResourceObject};

/// Commands in a batch before it is submitted without being asked: workers should not wait for a long list.
const MOST_COMMANDS: usize = 1024;

/// Commands being recorded.
#[derive(Debug)]
pub(crate) struct Batch {
    serial: u64,
    commands: CommandBuffer,
    recorded: usize,
    hazards: Hazards,
    objects: Vec<Arc<ResourceObject>>,
    pub(crate) sets: SetCache,
}

impl Batch {
    fn begin(device: &Device, serial: u64) -> Result<Self, Error> {
        let commands = device.create_command_pool().allocate();
        commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        let (hazards, sets) = (Hazards::default(), SetCache::default());
        Ok(Self { serial, commands, recorded: 0, hazards, objects: Vec::new(), sets })
    }

    /// The command buffer, for state that is not a command by itself: bound pipelines, sets, push constants.
    pub(crate) fn commands(&self) -> &CommandBuffer {
        &self.commands
    }

    /// Records one command, after a barrier if what it uses asks for one. If the command is refused the batch goes on
    /// without it.
    pub(crate) fn record(
        &mut self,
        uses: &[(&Arc<ResourceObject>, Access)],
        command: impl FnOnce(&CommandBuffer) -> Result<(), spelter_driver::Error>,
    ) -> Result<(), Error> {
        let ids: Vec<_> = uses.iter().map(|(object, access)| (object.id(), *access)).collect();
        if self.hazards.next(&ids) {
            full_barrier(&self.commands)?;
        }
        command(&self.commands)?;
        for &(object, access) in uses {
            object.used(self.serial, access);
            self.objects.push(Arc::clone(object));
        }
        self.recorded += 1;
        Ok(())
    }

    fn is_long(&self) -> bool {
        self.recorded >= MOST_COMMANDS
    }
}

/// Everything before it is done, and seen, by everything after it.
fn full_barrier(commands: &CommandBuffer) -> Result<(), Error> {
    let stages = vk::PipelineStageFlags::ALL_COMMANDS;
    let memory = MemoryBarrier {
        src_access: vk::AccessFlags::MEMORY_WRITE,
        dst_access: vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE,
    };
    Ok(commands.pipeline_barrier(stages, stages, &[memory], &[])?)
}
