//! The batches of a context in order: the one that is being recorded, those in flight, and recycled ones.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::{CommandBuffer, Queue, SemaphoreSubmit, SubmitInfo, vk};

use super::{Batch, end_with_barrier};
use crate::error::Error;
use crate::events::{Event, EventLog};
use crate::holds::HeldBatches;
use crate::ids::Serial;
use crate::share::Share;
use crate::submission::{Clock, Submission, TimelinePoint};

/// Recycled batches that are kept.
const SPARE: usize = 8;

/// With more batches in flight than this, recording waits for the older half of them: a host that is far ahead of the
/// workers must not fill the memory with commands.
const MAX_IN_FLIGHT: usize = 256;

/// The batches of one context.
#[derive(Debug)]
pub(crate) struct Timeline {
    share: Arc<Share>,
    queue: Queue,
    clock: Arc<Clock>,
    recording: Option<Box<Batch>>,
    /// Submitted batches, with all objects that they own until their serials retire.
    in_flight: VecDeque<Box<Batch>>,
    #[expect(clippy::vec_box, reason = "batches go from list to list, and are large")]
    spare: Vec<Box<Batch>>,
    /// The error of a batch that could not be submitted. Its commands are lost, so every later result would be wrong.
    failed: Option<Error>,
    log: Arc<EventLog>,
}

impl Timeline {
    pub(crate) fn new(share: &Arc<Share>, queue: Queue, clock: &Arc<Clock>, log: &Arc<EventLog>) -> Self {
        Self {
            share: Arc::clone(share),
            queue,
            clock: Arc::clone(clock),
            recording: None,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            failed: None,
            log: Arc::clone(log),
        }
    }

    /// The batch that is being recorded. A long batch, or one that keeps much memory, is submitted first and a new one
    /// begun.
    pub(crate) fn batch(&mut self) -> Result<&mut Batch, Error> {
        let heavy = self.recording.as_ref().is_some_and(|batch| batch.retained_bytes > self.share.memory().budget / 4);
        if heavy {
            self.share.memory().counters.pressure_flushes.one();
        }
        if heavy || self.recording.as_ref().is_some_and(|batch| batch.is_long()) {
            self.flush()?;
        }
        if self.recording.is_none() {
            self.recording = Some(self.begin()?);
        }
        // It is `Some`: a failure has returned above.
        self.recording.as_deref_mut().ok_or_else(|| Error::OutOfMemory(String::new()))
    }

    fn begin(&mut self) -> Result<Box<Batch>, Error> {
        self.retire();
        let mut batch = self.spare.pop().unwrap_or_else(|| Box::new(Batch::new(self.share.device(), &self.log)));
        batch.begin(self.clock.submitted() + 1)?;
        batch.began = self.share.trace().map(|trace| trace.now());
        Ok(batch)
    }

    /// The batch that is being recorded, if any.
    pub(crate) fn open(&mut self) -> Option<&mut Batch> {
        self.recording.as_deref_mut()
    }

    /// Submits the recorded commands. Returns the serial of the last submitted batch, or 0 before the first.
    pub(crate) fn flush(&mut self) -> Result<Serial, Error> {
        self.flush_with(&[])
    }

    /// Like [`Timeline::flush`], with the program's own command buffers at the end of the batch. If they break a rule
    /// of the driver, which is the error then, the batch is submitted without them.
    pub(crate) fn flush_with(&mut self, own: &[&CommandBuffer]) -> Result<Serial, Error> {
        let mut refused = None;
        if let Some(mut batch) = self.recording.take() {
            batch.count(&self.share.memory().counters);
            let result = end_with_barrier(&batch.commands).and_then(|()| match self.submit(&batch, own) {
                Err(Error::Misuse(misuse)) if !own.is_empty() => {
                    refused = Some(Error::Misuse(misuse));
                    self.submit(&batch, &[])
                }
                result => result,
            });
            let submission = match &result {
                Ok(submission) => submission.clone(),
                Err(_) => {
                    // Other queues must not wait forever for a batch that never runs. If this fails the device is lost,
                    // and their waits fail too.
                    let _ = self.clock.queue.done.signal(batch.serial);
                    Submission::new(&self.queue, self.clock.queue.index, 0, None)
                }
            };
            self.clock.submit(batch.serial, submission);
            if result.is_ok() {
                batch.count_submitted(&self.share.memory().counters);
            }
            self.share.memory().counters.batches_submitted.one();
            self.log.note(|| Event::Submitted { batch: self.log.batch(batch.serial) });
            if let (Some(trace), Some(began), Ok(submission)) = (self.share.trace(), batch.began, &result) {
                trace.recorded((self.clock.id(), batch.serial), submission.id(), batch.recorded, began);
            }
            self.in_flight.push_back(batch);
            if let Err(error) = result {
                self.failed = Some(error);
            }
        }
        self.retire();
        match self.failed.clone().or(refused) {
            Some(error) => Err(error),
            None => Ok(self.clock.submitted()),
        }
    }

    fn submit(&self, batch: &Batch, own: &[&CommandBuffer]) -> Result<Submission, Error> {
        let fence = self.share.device().create_fence(false);
        let mut waits: SmallVec<[SemaphoreSubmit<'_>; 1]> = SmallVec::new();
        for TimelinePoint { clock, serial } in &batch.after {
            #[cfg(all(test, not(loom)))]
            if super::dropped_dependency_tests::drops_wait(clock.id(), *serial) {
                continue;
            }
            waits.push(SemaphoreSubmit::new(&clock.queue.done, *serial));
        }
        if let Some(hold) = &batch.hold {
            waits.push(SemaphoreSubmit::new(hold.semaphore(), 1));
        }
        let holds = if self.share.holds().any() { self.holds(batch) } else { Vec::new() };
        let signals = [SemaphoreSubmit::new(&self.clock.queue.done, batch.serial)];
        // The program's own command buffers may have no barrier at their end.
        let closing = if own.is_empty() { None } else { Some(self.closing()?) };
        let mut commands: SmallVec<[&CommandBuffer; 1]> = SmallVec::new();
        if !batch.is_empty() {
            commands.push(&batch.commands);
        }
        commands.extend(batch.appended.iter().chain(own.iter().copied()));
        commands.extend(&closing);
        let submit = SubmitInfo { waits: &waits, commands: &commands, signals: &signals };
        let serial = self.queue.submit_all(&[submit], Some(&fence))?;
        #[cfg(all(test, not(loom)))]
        super::dropped_dependency_tests::submitted(
            (self.clock.id(), batch.serial),
            self.clock.queue.index,
            !batch.is_empty(),
            !batch.appended.is_empty(),
        );
        Ok(Submission::new(&self.queue, self.clock.queue.index, serial, Some(fence)).held_by(holds))
    }

    /// A command buffer with nothing but the barrier that ends a batch.
    fn closing(&self) -> Result<CommandBuffer, Error> {
        let commands = self.share.device().create_command_pool().allocate();
        commands.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        end_with_barrier(&commands)?;
        Ok(commands)
    }

    /// The holds that keep back a batch that is about to be submitted: its own, those of earlier batches of its
    /// queue, and those of the batches that it comes after.
    fn holds(&self, batch: &Batch) -> Vec<Arc<HeldBatches>> {
        let (holds, queue) = (self.share.holds(), self.clock.queue.index);
        if let Some(hold) = &batch.hold {
            holds.add(queue, hold);
        }
        let mut all = holds.of(queue);
        for submission in batch.after.iter().filter_map(|point| point.clock.submission(point.serial)) {
            let others = submission.holds().iter().filter(|hold| hold.state.opened_by().is_none());
            all.extend(others.cloned());
        }
        all
    }

    /// Holds back what is recorded from now on; earlier commands are submitted.
    pub(crate) fn hold(&mut self, hold: &Arc<HeldBatches>) -> Result<(), Error> {
        self.flush()?;
        self.share.holds().note();
        self.batch()?.hold = Some(Arc::clone(hold));
        Ok(())
    }

    /// Makes later commands run after a submitted batch of a context on another queue. Commands recorded before do not
    /// wait: they are submitted first.
    pub(crate) fn order_after(&mut self, point: &TimelinePoint) -> Result<(), Error> {
        self.flush()?;
        self.batch()?.after.push(point.clone());
        self.clock.follow(&point.clock, point.serial);
        Ok(())
    }

    /// The batch to wait for before more commands are recorded, if too many are in flight.
    #[inline]
    pub(crate) fn too_far_ahead(&mut self) -> Option<Serial> {
        if self.in_flight.len() <= MAX_IN_FLIGHT { None } else { self.retire_to_limit() }
    }

    #[cold]
    fn retire_to_limit(&mut self) -> Option<Serial> {
        self.retire();
        let middle = self.in_flight.get(MAX_IN_FLIGHT / 2).filter(|_| self.in_flight.len() > MAX_IN_FLIGHT);
        middle.map(|batch| batch.serial)
    }

    /// Recycles the batches that have retired, and frees the objects that nothing else uses.
    pub(crate) fn retire(&mut self) {
        let retired = self.clock.retired();
        while let Some(mut batch) = self.in_flight.pop_front_if(|batch| batch.serial <= retired) {
            batch.reset();
            if self.spare.len() < SPARE {
                self.share.memory().counters.batches_recycled.one();
                self.spare.push(batch);
            }
        }
    }
}
