//! Batches: commands that are recorded and submitted together and have one serial.
//!
//! A batch owns all objects that its commands use until its serial has retired; then it is recycled.

mod bind_state;
#[cfg(all(test, not(loom)))]
mod dropped_dependency_tests;
mod timeline;

pub(crate) use bind_state::BindState;
pub(crate) use timeline::Timeline;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use ash::vk;
use smallvec::SmallVec;
use spelter_driver::{Buffer, CommandBuffer, DescriptorSet, Device, MemoryBarrier};

use crate::barrier::{Fresh, Hazards, Touch, Use};
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::holds::HeldBatches;
use crate::ids::{CommandKind, Serial};
use crate::object::ResourceObject;
use crate::program::Program;
use crate::replace::{self, Added, CommandUse, WriterId};
use crate::resource::Resource;
use crate::stats::Counters;
use crate::submission::{Clock, Submission, TimelinePoint};

/// Commands in a batch before it is submitted automatically, so that workers get work before a long list is complete.
const MAX_COMMANDS: usize = 1024;

/// The reason why a command was not recorded.
pub(crate) type Refusal = replace::Refusal<Submission>;

/// Commands that are being recorded or in flight.
#[derive(Debug)]
pub(crate) struct Batch {
    serial: Serial,
    commands: CommandBuffer,
    recorded: usize,
    /// Batches of contexts on other queues that must be done before it starts.
    after: SmallVec<[TimelinePoint; 1]>,
    /// The hold that it starts after, in tests.
    hold: Option<Arc<HeldBatches>>,
    hazards: Hazards,
    objects: Vec<Arc<ResourceObject>>,
    /// Bytes of memory that are freed when it retires.
    retained_bytes: u64,
    bound: BindState,
    /// The number of the program's state, if the last command was its dispatch and may be repeated without another
    /// hazard test.
    last: Option<u64>,
    /// Whether commands have a label.
    labelled: bool,
    /// Command buffers that were recorded before, to run after the batch's own commands.
    appended: Vec<CommandBuffer>,
    /// Owners of what they use.
    owners: Vec<Arc<dyn Any + Send + Sync>>,
    /// Not yet added to the counters: atomics would slow down every dispatch.
    counts: CommandCounts,
    /// Commands so far, with those of appended command buffers.
    submits: CommandCounts,
    /// Attempts to record a command.
    attempts: u32,
    began: Option<Instant>,
    log: Arc<EventLog>,
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

/// Records a full barrier: all commands before it are complete and their writes visible to all commands after it.
pub(crate) fn full_barrier(commands: &CommandBuffer) -> Result<(), Error> {
    #[cfg(all(test, not(loom)))]
    if dropped_dependency_tests::drops_barrier() {
        return Ok(());
    }
    let stages = vk::PipelineStageFlags::ALL_COMMANDS;
    let memory = MemoryBarrier {
        src_access: vk::AccessFlags::MEMORY_WRITE,
        dst_access: vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE,
    };
    Ok(commands.pipeline_barrier(stages, stages, &[memory], &[])?)
}

/// Ends a recording: what it wrote is visible to the host, and to all that the queue runs later. The executor does so
/// in any case; Vulkan, and checked mode, ask for the dependency.
pub(crate) fn end_with_barrier(commands: &CommandBuffer) -> Result<(), Error> {
    #[cfg(all(test, not(loom)))]
    if dropped_dependency_tests::drops_end() {
        return Ok(commands.end()?);
    }
    let (src, dst) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::PipelineStageFlags::HOST);
    let memory = MemoryBarrier {
        src_access: vk::AccessFlags::MEMORY_WRITE,
        dst_access: vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE | vk::AccessFlags::HOST_READ,
    };
    commands.pipeline_barrier(src, src | dst, &[memory], &[])?;
    Ok(commands.end()?)
}

/// Numbers of commands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommandCounts {
    pub(crate) dispatches: u64,
    pub(crate) transfers: u64,
    pub(crate) barriers: u64,
}

impl std::ops::AddAssign for CommandCounts {
    fn add_assign(&mut self, other: Self) {
        self.dispatches += other.dispatches;
        self.transfers += other.transfers;
        self.barriers += other.barriers;
    }
}

impl Batch {
    fn new(device: &Device, log: &Arc<EventLog>) -> Self {
        Self {
            serial: 0,
            commands: device.create_command_pool().allocate(),
            recorded: 0,
            after: SmallVec::new(),
            hold: None,
            log: Arc::clone(log),
            hazards: Hazards::default(),
            objects: Vec::new(),
            retained_bytes: 0,
            bound: BindState::default(),
            last: None,
            labelled: false,
            appended: Vec::new(),
            owners: Vec::new(),
            counts: CommandCounts::default(),
            submits: CommandCounts::default(),
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
        self.hold = None;
        self.hazards.clear();
        self.objects.clear();
        self.retained_bytes = 0;
        self.bound.clear();
        self.last = None;
        self.labelled = false;
        self.submits = CommandCounts::default();
        self.appended.clear();
        self.owners.clear();
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
        for (number, Use { object, resource, access, range, origin }) in uses.clone().enumerate() {
            let first = match resource {
                None => object.usage.enter(clock, serial, access, false).map_err(Refusal::MustPrecede)?,
                Some(resource) => {
                    resources += 1;
                    let mut state = resource.state();
                    let gate = resource.share().gate();
                    let entry = CommandUse { clock, serial, range: &range, access, origin, writer, gate };
                    let entered = state.enter(object, entry).map_err(|refusal| refusal.about(resource.id()))?;
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
    pub(crate) fn order(
        &mut self,
        command: CommandKind,
        mut uses: impl Iterator<Item = Touch> + Clone,
        fresh: Fresh,
    ) -> Result<bool, Error> {
        // If the command is refused, a repetition of the dispatch before it must not skip the hazard test.
        self.last = None;
        let conflict = self.hazards.next(uses.clone(), fresh);
        if let Some(number) = conflict {
            self.barrier(command, || uses.nth(number))?;
        }
        Ok(conflict.is_some())
    }

    /// Records a full barrier before a command: all commands before it are complete and their writes visible to all
    /// commands after it. `reason` gives the access that needs it, for the log.
    pub(crate) fn barrier(
        &mut self,
        command: CommandKind,
        reason: impl FnOnce() -> Option<Touch>,
    ) -> Result<(), Error> {
        self.counts.barriers += 1;
        self.log.note(|| {
            let (resource, range) = reason().map_or((None, 0..0), |Touch { object: id, range, .. }| {
                // Entered, so the batch owns it.
                let owned = self.objects.iter().rev().find(|object| object.id() == id);
                (owned.and_then(|object| object.owner()), range)
            });
            Event::Barrier { batch: self.log.batch(self.serial), command, resource, range }
        });
        full_barrier(&self.commands)
    }

    /// Records a command other than a dispatch.
    pub(crate) fn transfer(
        &mut self,
        command: impl FnOnce(&CommandBuffer) -> Result<(), spelter_driver::Error>,
    ) -> Result<(), Error> {
        self.last = None;
        command(&self.commands)?;
        self.counts.transfers += 1;
        self.recorded += 1;
        Ok(())
    }

    /// Names the next command in timelines; the name holds until another call. Nothing is recorded for `None` at first.
    pub(crate) fn label_next(&mut self, label: Option<&str>) -> Result<(), Error> {
        if std::mem::replace(&mut self.labelled, label.is_some()) || label.is_some() {
            self.commands.set_label(label)?;
        }
        Ok(())
    }

    /// Records a dispatch of the bound state. `state` is its number if it may be repeated without another hazard test:
    /// if it only reads, as then repetitions need no barrier; or if a barrier comes directly before it. Then `hazards`
    /// are its accesses alone, and remain so when each repetition comes after a barrier of its own.
    pub(crate) fn dispatch(&mut self, groups: [u32; 3], state: Option<u64>) -> Result<(), Error> {
        self.commands.dispatch(groups[0], groups[1], groups[2])?;
        self.last = state;
        self.counts.dispatches += 1;
        self.recorded += 1;
        Ok(())
    }

    /// Records a dispatch of the bound state whose number of workgroups is in a buffer.
    pub(crate) fn dispatch_indirect(&mut self, counts: &Buffer, offset: u64) -> Result<(), Error> {
        self.commands.dispatch_indirect(counts, offset)?;
        self.counts.dispatches += 1;
        self.recorded += 1;
        Ok(())
    }

    /// Adds the commands that were recorded since the last call to the counters.
    pub(crate) fn count(&mut self, counters: &Counters) {
        let counts = std::mem::take(&mut self.counts);
        self.submits += counts;
        let CommandCounts { dispatches, transfers, barriers } = counts;
        counters.dispatches.add(dispatches);
        counters.transfers.add(transfers);
        counters.barriers.add(barriers);
    }

    /// Adds the commands of the batch to the counters of what was submitted. They are all counted by now.
    fn count_submitted(&mut self, counters: &Counters) {
        let CommandCounts { dispatches, transfers, barriers } = std::mem::take(&mut self.submits);
        counters.dispatches_submitted.add(dispatches);
        counters.transfers_submitted.add(transfers);
        counters.barriers_submitted.add(barriers);
    }

    /// Whether the last command was the dispatch of this state.
    pub(crate) fn repeats(&self, state: u64) -> bool {
        self.last == Some(state)
    }

    /// Binds pipeline and push constants, unless they are bound.
    pub(crate) fn bind_program(&mut self, program: &Program, push: &[u8]) -> Result<(), Error> {
        self.bound.bind_program(&self.commands, program, push)
    }

    /// Whether the program and its push constants are bound.
    pub(crate) fn has_program(&self, program: &Program, push: &[u8]) -> bool {
        self.bound.has_program(program, push)
    }

    /// Whether the set with that number is bound.
    pub(crate) fn has_set(&self, group: u32, number: u64) -> bool {
        self.bound.has_set(group, number)
    }

    /// Binds a descriptor set, by its number in the cache. The program is bound already.
    pub(crate) fn bind_set(
        &mut self,
        program: &Program,
        group: u32,
        set: &DescriptorSet,
        number: u64,
    ) -> Result<(), Error> {
        self.last = None;
        self.bound.bind_set(&self.commands, program, group, set, number)
    }

    /// Adds command buffers that run after the batch's own commands, as if separated by a barrier, and that `owners`
    /// keep valid. Nothing is recorded in the batch after this.
    pub(crate) fn append(
        &mut self,
        commands: impl Iterator<Item = CommandBuffer>,
        owners: impl Iterator<Item = Arc<dyn Any + Send + Sync>>,
        counts: CommandCounts,
    ) {
        self.submits += counts;
        self.appended.extend(commands);
        self.owners.extend(owners);
    }

    /// Counts memory that only this batch keeps alive: a staging buffer or a replaced object.
    pub(crate) fn retain_bytes(&mut self, bytes: u64) {
        self.retained_bytes += bytes;
    }

    /// Whether it has no commands of its own.
    fn is_empty(&self) -> bool {
        self.recorded == 0
    }

    fn is_long(&self) -> bool {
        self.recorded >= MAX_COMMANDS
    }
}
