//! Command buffers: recorded once, submitted any number of times. A submission uses the objects that the resources have
//! then, so a rename between two submissions is seen.
//!
//! Commands name resources (`command.rs`); what was recorded for the driver names objects (`contents.rs`). The driver's
//! command buffers are kept and submitted again as long as no resource of theirs has another object. Hazards between a
//! submission and what comes before it and after it need no look at its commands: the driver runs the command buffers
//! of a submission one after the other, as if separated by a full barrier.

mod command;
mod contents;
mod current;
mod follow;
#[cfg(all(test, loom))]
mod loom_tests;
mod recorder;
mod recording;
mod submit;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use recorder::Recorder;

use crate::batch::Refusal;
use crate::context::Context;
use crate::error::{Error, rule};
use crate::events::Event;
use crate::fence::Fence;
use crate::ids::{CommandBufferId, ResourceId};
use crate::named_by::NamedBy;
use crate::recordings::NamesResources;
use crate::share::{Member, Share};
use crate::submission::TimelinePoint;
use crate::timestamps::Timestamps;
use contents::{Contents, Parts, Step, described};
use current::{Current, reaches};
use submit::Plan;

/// The largest number of nested levels below a command buffer.
const MAX_DEPTH: u32 = 32;

/// Commands that were recorded ([`Context::record`]) and may be submitted any number of times ([`Context::submit`]), by
/// all contexts of the device, also while an earlier submission runs. A handle: clones refer to the same command
/// buffer.
///
/// It keeps its resources alive, but not their storage: each submission uses the storage that the resources have then.
/// What was recorded for the driver is used again as long as the storage is the same; if a resource was renamed, the
/// commands that name it, and some near them, are recorded again ([`Stats::commands_rerecorded`](crate::Stats),
/// [`Stats::commands_reused`](crate::Stats)). A destroyed resource is an error of the submission. After a write to a
/// descriptor set that a dispatch uses ([`DescriptorSet::write`](crate::DescriptorSet::write)), the next submission
/// records all commands of the command buffer again.
///
/// So is a resource that has become too small ([`Context::resize`]) for a part that a command names. A buffer that is
/// bound, or filled, without an end is used as far as it extends then.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (frame, sum) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
/// let program = context.program_wgsl(
///     "@group(0) @binding(0) var<storage, read> frame: u32;
///      @group(0) @binding(1) var<storage, read_write> sum: u32;
///      @compute @workgroup_size(1) fn main() { sum += frame; }",
/// )?;
/// let add = context.record(|commands| {
///     commands.dispatch(&program).bind(0, 0, &frame).bind(0, 1, &sum).groups([1, 1, 1])
/// })?;
/// for value in [1u32, 10, 100] {
///     context.upload(&frame, &[value])?; // in use by the last submission: it may get new storage
///     context.submit(&add)?;
/// }
/// assert_eq!(context.read::<u32>(&sum)?, [111]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CommandBuffer {
    inner: Arc<CommandBufferState>,
}

/// The shared part of a command buffer's handles.
pub(crate) struct CommandBufferState {
    id: CommandBufferId,
    share: Arc<Share>,
    contents: Current<Contents>,
}

impl Context {
    /// Records the commands of the closure in a new command buffer. Nothing runs until [`Context::submit`]. Calls of
    /// the closure on the context itself are no part of the command buffer.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (from, to) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
    /// let commands = context.record(|commands| {
    ///     commands.copy(&from, 0, &to, 4, 4)?;
    ///     commands.fill_range(&from, 0..4, 5)
    /// })?;
    /// context.submit(&commands)?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&to)?, [0, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(&self, record: impl FnOnce(&mut Recorder) -> Result<(), Error>) -> Result<CommandBuffer, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers only have to differ.
        let id = CommandBufferId(NEXT.fetch_add(1, Ordering::Relaxed));
        let mut recorder = Recorder::new(self, id, None);
        record(&mut recorder)?;
        let contents = Current::new(self.contents(id, recorder.finish()));
        let inner = Arc::new(CommandBufferState { id, share: Arc::clone(self.share()), contents });
        let listed: Weak<CommandBufferState> = Arc::downgrade(&inner);
        self.share().recordings().register(id, listed);
        Ok(CommandBuffer { inner })
    }

    /// Records a command buffer again: it gets the commands of the closure instead of those that it has. Submissions
    /// use the old ones until this returns, and after an error. Command buffers that execute this one execute the new
    /// commands when they are submitted next.
    ///
    /// [`Error::Resource`] if it is of another device, or if another call records it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let commands = context.record(|commands| commands.fill(&buffer, 1))?;
    /// let parent = context.record(|parent| parent.execute(&commands))?;
    /// context.rerecord(&commands, |commands| commands.fill(&buffer, 2))?;
    /// context.submit(&parent)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rerecord(
        &self,
        commands: &CommandBuffer,
        record: impl FnOnce(&mut Recorder) -> Result<(), Error>,
    ) -> Result<(), Error> {
        commands.check_device("record", self.share())?;
        let problem = || Error::resource(format!("record: {commands:?} is being recorded"), rule::RECORDING);
        let _exclusive = commands.inner.contents.exclusive().ok_or_else(problem)?;
        let mut recorder = Recorder::new(self, commands.inner.id, Some(&commands.inner));
        record(&mut recorder)?;
        let contents = self.contents(commands.inner.id, recorder.finish());
        // Of two threads that make two command buffers execute each other, the second one finds the cycle.
        let nesting = self.share().recordings().nesting.lock();
        for step in &contents.steps {
            if let Step::Execute(nested) = step {
                nested.check_no_cycle(&commands.inner)?;
            }
        }
        let old = commands.inner.contents.replace(contents);
        drop(nesting);
        drop(old); // when no lock is held
        Ok(())
    }

    fn contents(&self, id: CommandBufferId, parts: Parts) -> Arc<Contents> {
        self.share().memory().counters.command_buffers_recorded.one();
        Contents::new(self.share(), id, parts)
    }

    /// Submits all commands recorded in this context, then a command buffer, and returns at once. The fence is
    /// signalled when they are done. The commands of the command buffer come after all that this and other contexts
    /// recorded or submitted before, and before all that they record later, as far as they use the same resources.
    ///
    /// [`Error::Resource`] if the command buffer is of another device, or if one of its resources is destroyed or
    /// mapped; [`Error::DeviceLost`] on a lost device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let commands = context.record(|commands| commands.fill(&buffer, 7))?;
    /// context.submit(&commands)?.wait()?;
    /// let before = context.stats();
    /// context.submit(&commands)?;
    /// let done = context.stats().since(&before);
    /// assert_eq!((done.commands_reused, done.commands_rerecorded), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&self, commands: &CommandBuffer) -> Result<Fence, Error> {
        commands.check_device("submit", self.share())?;
        let plan = Plan::new(self, commands)?;
        let (timestamps, writes) = match plan.labels() {
            [] => (None, Vec::new()),
            labels => {
                let (timestamps, writes) = Timestamps::new(self.device(), labels.to_vec())?;
                (Some(Arc::new(timestamps)), writes)
            }
        };
        let mut checked = false;
        let submitted = self.inner().record(|state| {
            let submitted = plan.submit(state, &writes, checked);
            checked |= matches!(submitted, Err(Refusal::Again));
            submitted
        });
        let serial = submitted.inspect_err(|_| plan.drop_lost())?;
        self.inner().retire();
        let point = TimelinePoint { clock: Arc::clone(&self.inner().clock), serial };
        Ok(Fence::new(self.share(), point, &self.inner().log).with_timestamps(timestamps))
    }
}

impl CommandBuffer {
    /// The number of its commands, without those of nested command buffers.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// assert_eq!(context.record(|commands| commands.fill(&buffer, 7))?.command_count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_count(&self) -> usize {
        self.contents().len()
    }

    /// Its identity.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// let commands = context.record(|commands| commands.fill(&buffer, 1))?;
    /// let id = commands.id();
    /// context.rerecord(&commands, |commands| commands.fill(&buffer, 2))?;
    /// assert_eq!(commands.id(), id);
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> CommandBufferId {
        self.inner.id
    }

    /// Its label ([`Recorder::label`]), for messages. It is recorded with the commands, so another recording may change
    /// it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let commands = context.record(|_| Ok(()))?;
    /// assert_eq!(commands.label(), None);
    /// context.rerecord(&commands, |commands| {
    ///     commands.label("frame");
    ///     Ok(())
    /// })?;
    /// assert_eq!(commands.label().as_deref(), Some("frame"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(&self) -> Option<String> {
        self.contents().label.as_deref().map(str::to_owned)
    }

    fn contents(&self) -> Arc<Contents> {
        self.inner.contents.get()
    }

    /// What it holds, recorded again if a descriptor set of its commands was written since. The caller holds no lock.
    fn current(&self, context: &Context) -> Result<Arc<Contents>, Error> {
        loop {
            let contents = self.contents();
            if !contents.is_outdated() {
                return Ok(contents);
            }
            let new = Contents::new(&self.inner.share, self.inner.id, contents.again(context)?);
            // Otherwise another call has recorded it meanwhile.
            if self.inner.contents.renew(&contents, &new) {
                let (commands, count) = (self.inner.id, new.len());
                context.share().memory().counters.commands_rerecorded.add(count as u64);
                context.inner().log.note(|| Event::RecordedForSets { commands, count });
                return Ok(new);
            }
        }
    }

    /// What it holds, if this is its last handle.
    fn into_contents(self) -> Option<Arc<Contents>> {
        let state = Arc::into_inner(self.inner)?;
        let contents = state.contents.get();
        drop(state);
        Some(contents)
    }

    fn check_device(&self, what: &str, share: &Arc<Share>) -> Result<(), Error> {
        if Arc::ptr_eq(&self.inner.share, share) {
            return Ok(());
        }
        Err(Error::resource(format!("{what}: {self:?} is of another context's device"), rule::DEVICE))
    }

    /// Checks that it does not execute `target`, directly or through others, and is not `target`.
    fn check_no_cycle(&self, target: &Arc<CommandBufferState>) -> Result<(), Error> {
        let is_target = |commands: &Self| Arc::ptr_eq(&commands.inner, target);
        let executed = |step: &Step| if let Step::Execute(nested) = step { Some(nested.clone()) } else { None };
        let nested = |commands: &Self| commands.contents().steps.iter().filter_map(executed).collect();
        if reaches(self.clone(), is_target, |commands| Arc::as_ptr(&commands.inner), nested) {
            return Err(Error::resource(format!("execute: {self:?} executes the one that is recorded"), rule::CYCLE));
        }
        Ok(())
    }
}

impl fmt::Debug for CommandBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = self.contents();
        let (what, count) = (described(contents.label.as_deref()), contents.len());
        write!(f, "{what} of {count} command{}", if count == 1 { "" } else { "s" })
    }
}

impl NamesResources for CommandBufferState {
    fn named_by(&self, resource: ResourceId) -> Option<NamedBy> {
        let contents = self.contents.get();
        let count = contents.count_of(resource);
        let label = contents.label.as_deref().map(str::to_owned);
        (count > 0).then_some(NamedBy::Commands { commands: self.id, label, count })
    }
}

impl Drop for CommandBufferState {
    fn drop(&mut self) {
        self.share.recordings().unregister(self.id);
    }
}
