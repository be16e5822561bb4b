//! Batches: commands that are recorded and submitted together and have one serial.
//!
//! A batch owns all objects that its commands use until its serial has retired; then it is recycled.

mod submission;
mod timeline;

pub(crate) use submission::{Clock, ContextQueue, First, Refusal, Submission, TimelinePoint};
pub(crate) use timeline::Timeline;

use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use smallvec::SmallVec;
use spelter_driver::{CommandBuffer, DescriptorSet, Device, MemoryBarrier};

use crate::barrier::{Fresh, Hazards, Touch, Use};
use crate::error::Error;
use crate::ids::Serial;
use crate::object::ResourceObject;
use crate::program::Program;
use crate::replace::{Added, CommandUse, WriterId};
use crate::resource::Resource;
use crate::stats::Counters;

/// Commands in a batch before it is submitted automatically, so that workers get work before a long list is complete.
const MAX_COMMANDS: usize = 1024;

/// Commands that are being recorded or in flight.
#[derive(Debug)]
pub(crate) struct Batch {
    serial: Serial,
    commands: CommandBuffer,
    recorded: usize,
    /// Batches of contexts on other queues that must be done before it starts.
    after: SmallVec<[TimelinePoint; 1]>,
    hazards: Hazards,
    objects: Vec<Arc<ResourceObject>>,
    /// Bytes of memory that are freed when it retires.
    retained_bytes: u64,
    state: BindState,
    /// Not yet added to the counters: atomics would slow down every dispatch.
    counts: Counts,
    /// Attempts to record a command.
    attempts: u32,
    began: Option<Instant>,
}

/// The result of noting a command's uses in a batch.
#[derive(Debug, Default)]
pub(crate) struct NotedUses<'a> {
    /// The uses that write only bytes without defined data.
    pub(crate) fresh: Fresh,
    /// The ranges that count as valid since.
    added: SmallVec<[(&'a Resource, Added); 1]>,
}

impl NotedUses<'_> {
    /// The command was refused: the ranges that it would have written are as valid as before. The caller locks none of
    /// the resources.
    pub(crate) fn take_back(self) {
        self.added.into_iter().rev().for_each(|(resource, added)| resource.state().take_back(added));
    }
}

/// Numbers of recorded commands.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    dispatches: u64,
    transfers: u64,
    barriers: u64,
}

/// The bind state of the command buffer, so that nothing is bound twice.
#[derive(Debug, Default)]
struct BindState {
    program: Option<u64>,
    sets: Vec<Option<u64>>,
    push: Vec<u8>,
    /// The number of the program's state, if the last command was its dispatch and the accesses since the last barrier
    /// are those of that dispatch.
    last: Option<u64>,
}

impl Batch {
    fn new(device: &Device) -> Self {
        Self {
            serial: 0,
            commands: device.create_command_pool().allocate(),
            recorded: 0,
            after: SmallVec::new(),
            hazards: Hazards::default(),
            objects: Vec::new(),
            retained_bytes: 0,
            state: BindState::default(),
            counts: Counts::default(),
            attempts: 0,
            began: None,
        }
    }

    fn begin(&mut self, serial: Serial) -> Result<(), Error> {
        self.commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        self.serial = serial;
        Ok(())
    }

    /// Clears the batch and drops all objects that it owned.
    fn reset(&mut self) {
        self.recorded = 0;
        self.after.clear();
        self.hazards.clear();
        self.objects.clear();
        self.retained_bytes = 0;
        self.state = BindState::default();
        self.began = None;
    }

    pub(crate) fn serial(&self) -> Serial {
        self.serial
    }

    /// Notes that the batch uses these objects and owns them from now on. Written ranges count as valid until
    /// [`NotedUses::take_back`].
    ///
    /// Each use is entered under its resource's lock ([`Backing::enter`](crate::replace::Backing::enter)). A rename or
    /// a mapping decides under the same lock, so it sees the use and the valid bytes, or the command sees the new
    /// object or the mapping. At the end all objects are tested once more, so that the command uses one consistent
    /// state of all its resources.
    pub(crate) fn enter<'a>(
        &mut self,
        clock: &Arc<Clock>,
        uses: impl Iterator<Item = Use<'a>> + Clone,
    ) -> Result<NotedUses<'a>, Refusal> {
        let mut entries = NotedUses::default();
        match self.enter_each(clock, uses, &mut entries) {
            Ok(()) => Ok(entries),
            Err(refusal) => {
                entries.take_back();
                Err(refusal)
            }
        }
    }

    fn enter_each<'a>(
        &mut self,
        clock: &Arc<Clock>,
        uses: impl Iterator<Item = Use<'a>> + Clone,
        entries: &mut NotedUses<'a>,
    ) -> Result<(), Refusal> {
        self.attempts = self.attempts.wrapping_add(1);
        let (serial, writer) = (self.serial, WriterId(clock.id(), self.serial, self.attempts));
        let mut resources = 0;
        for (number, Use { object, resource, access, range, by }) in uses.clone().enumerate() {
            let first = match resource {
                None => object.usage.enter(clock, serial, access, false).map_err(Refusal::First)?,
                Some(resource) => {
                    resources += 1;
                    let mut state = resource.state();
                    let gate = resource.share().gate();
                    let entry = CommandUse { clock, serial, range: &range, access, by, writer, gate };
                    let entered = state.enter(object, entry)?;
                    drop(state);
                    entries.added.extend(entered.added.map(|added| (resource, added)));
                    if entered.fresh {
                        entries.fresh.note(number);
                    }
                    entered.first
                }
            };
            if first {
                self.objects.push(Arc::clone(object));
            }
        }
        // With several resources, an early one may have been replaced after it was entered.
        let has_changed = |u: Use<'_>| u.resource.is_some_and(|resource| !resource.state().has(u.object));
        if resources > 1 && uses.into_iter().any(has_changed) {
            return Err(Refusal::Again);
        }
        Ok(())
    }

    /// Puts a barrier before the next command if its accesses require one, and returns whether they did. `fresh`
    /// belongs to the same uses.
    pub(crate) fn order(&mut self, uses: impl Iterator<Item = Touch> + Clone, fresh: Fresh) -> Result<bool, Error> {
        // If the command is refused, a repetition of the dispatch before it must not skip the hazard test.
        self.state.last = None;
        let barrier = self.hazards.next(uses, fresh);
        if barrier {
            self.barrier()?;
        }
        Ok(barrier)
    }

    /// Records a full barrier: all commands before it are complete and their writes visible to all commands after it.
    pub(crate) fn barrier(&mut self) -> Result<(), Error> {
        let stages = vk::PipelineStageFlags::ALL_COMMANDS;
        let memory = MemoryBarrier {
            src_access: vk::AccessFlags::MEMORY_WRITE,
            dst_access: vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE,
        };
        self.counts.barriers += 1;
        Ok(self.commands.pipeline_barrier(stages, stages, &[memory], &[])?)
    }

    /// Records a command other than a dispatch.
    pub(crate) fn transfer(
        &mut self,
        command: impl FnOnce(&CommandBuffer) -> Result<(), spelter_driver::Error>,
    ) -> Result<(), Error> {
        self.state.last = None;
        command(&self.commands)?;
        self.counts.transfers += 1;
        self.recorded += 1;
        Ok(())
    }

    /// Records a dispatch of the bound state. `state` is its number if it may be repeated without another hazard test.
    pub(crate) fn dispatch(&mut self, groups: [u32; 3], state: Option<u64>) -> Result<(), Error> {
        self.commands.dispatch(groups[0], groups[1], groups[2])?;
        self.state.last = state;
        self.counts.dispatches += 1;
        self.recorded += 1;
        Ok(())
    }

    /// Adds the commands that were recorded since the last call to the counters.
    pub(crate) fn count(&mut self, counters: &Counters) {
        let Counts { dispatches, transfers, barriers } = std::mem::take(&mut self.counts);
        counters.dispatches.add(dispatches);
        counters.transfers.add(transfers);
        counters.barriers.add(barriers);
    }

    /// Whether the last command was the dispatch of this state.
    pub(crate) fn repeats(&self, state: u64) -> bool {
        self.state.last == Some(state)
    }

    /// Binds pipeline and push constants, unless they are bound.
    pub(crate) fn bind_program(&mut self, program: &Program, push: &[u8]) -> Result<(), Error> {
        if self.state.program != Some(program.id()) {
            self.state.program = None;
            self.commands.bind_pipeline(program.pipeline())?;
            if let Some(label) = program.label() {
                self.commands.set_kernel_name(Some(label))?;
            }
            // Layouts may differ: sets that were bound for another program may be disturbed.
            self.state.sets.clear();
            self.state.push.clear();
            self.state.program = Some(program.id());
        }
        if !push.is_empty() && self.state.push != push {
            self.commands.push_constants(program.pipeline().layout(), 0, push)?;
            self.state.push.clear();
            self.state.push.extend_from_slice(push);
        }
        Ok(())
    }

    /// Whether the program and its push constants are bound.
    pub(crate) fn has_program(&self, program: &Program, push: &[u8]) -> bool {
        self.state.program == Some(program.id()) && self.state.push == push
    }

    /// Whether the set with that number is bound.
    pub(crate) fn has_set(&self, group: u32, number: u64) -> bool {
        self.state.sets.get(group as usize).is_some_and(|bound| *bound == Some(number))
    }

    /// Binds a descriptor set, by its number in the cache. The program is bound already.
    pub(crate) fn bind_set(
        &mut self,
        program: &Program,
        group: u32,
        set: &DescriptorSet,
        number: u64,
    ) -> Result<(), Error> {
        self.state.last = None;
        self.commands.bind_descriptor_sets(program.pipeline().layout(), group, &[set], &[])?;
        let sets = &mut self.state.sets;
        if sets.len() <= group as usize {
            sets.resize(group as usize + 1, None);
        }
        sets[group as usize] = Some(number);
        Ok(())
    }

    /// Counts memory that only this batch keeps alive: a staging buffer or a replaced object.
    pub(crate) fn retain_bytes(&mut self, bytes: u64) {
        self.retained_bytes += bytes;
    }

    fn is_long(&self) -> bool {
        self.recorded >= MAX_COMMANDS
    }
}
