//! The batches of a context in order: one being recorded, those in flight, and those that are to be used again.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;
use spelter_driver::{Queue, SemaphoreSubmit, SubmitInfo};

use super::{Batch, Clock, Flight, Moment};
use crate::error::Error;
use crate::serial::Serial;
use crate::share::Share;

/// Recycled batches that are kept.
const SPARE: usize = 8;

/// Batches on their way beyond which who records more waits for the older half of them: a host that is far ahead of the workers
/// must not fill the memory with commands.
const MAX_IN_FLIGHT: usize = 256;

/// The batches of one context.
#[derive(Debug)]
pub(crate) struct Timeline {
    share: Arc<Share>,
    queue: Queue,
    clock: Arc<Clock>,
    recording: Option<Box<Batch>>,
    /// Submitted, with all they own until their serials retire.
    in_flight: VecDeque<Box<Batch>>,
    #[expect(clippy::vec_box, reason = "batches go from list to list, and are large")]
    spare: Vec<Box<Batch>>,
    /// Why a batch could not be submitted. Its commands are lost, so nothing after it can be right.
    failed: Option<Error>,
}

impl Timeline {
    pub(crate) fn new(share: &Arc<Share>, queue: Queue, clock: &Arc<Clock>) -> Self {
        Self {
            share: Arc::clone(share),
            queue,
            clock: Arc::clone(clock),
            recording: None,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            failed: None,
        }
    }

    /// The batch being recorded. A long one, or one that keeps much memory, is submitted first and a new one begun.
    pub(crate) fn batch(&mut self) -> Result<&mut Batch, Error> {
        let heavy = self.recording.as_ref().is_some_and(|batch| batch.owed > self.share.memory().budget / 4);
        if heavy {
            self.share.memory().counters.pressure_flushes.one();
        }
        if heavy || self.recording.as_ref().is_some_and(|batch| batch.is_long()) {
            self.flush()?;
        }
        if self.recording.is_none() {
            self.recording = Some(self.begin()?);
        }
        // There is one: a failure has returned above.
        self.recording.as_deref_mut().ok_or_else(|| Error::OutOfMemory(String::new()))
    }

    fn begin(&mut self) -> Result<Box<Batch>, Error> {
        self.retire();
        let mut batch = self.spare.pop().unwrap_or_else(|| Box::new(Batch::new(self.share.device())));
        batch.begin(self.clock.submitted() + 1)?;
        batch.began = self.share.trace().map(|trace| trace.now());
        Ok(batch)
    }

    /// The batch being recorded, if there is one.
    pub(crate) fn open(&mut self) -> Option<&mut Batch> {
        self.recording.as_deref_mut()
    }

    /// Submits what was recorded. The serial of the last batch that was submitted; 0 if none was yet.
    pub(crate) fn flush(&mut self) -> Result<Serial, Error> {
        if let Some(mut batch) = self.recording.take() {
            batch.count(&self.share.memory().counters);
            let result = self.submit(&batch);
            let flight = match &result {
                Ok(flight) => flight.clone(),
                Err(_) => {
                    // Nobody shall wait for what never comes. If this fails nobody can wait: the device is lost.
                    let _ = self.clock.line.done.signal(batch.serial);
                    Flight::new(&self.queue, self.clock.line.queue, 0, None)
                }
            };
            self.clock.submit(batch.serial, flight);
            self.share.memory().counters.batches_submitted.one();
            if let (Some(trace), Some(began)) = (self.share.trace(), batch.began) {
                trace.recorded(self.clock.id(), batch.serial, batch.recorded, began);
            }
            self.in_flight.push_back(batch);
            if let Err(error) = result {
                self.failed = Some(error);
            }
        }
        self.retire();
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.clock.submitted()),
        }
    }

    fn submit(&self, batch: &Batch) -> Result<Flight, Error> {
        batch.commands.end()?;
        let fence = self.share.device().create_fence(false);
        let mut waits: SmallVec<[SemaphoreSubmit<'_>; 1]> = SmallVec::new();
        for Moment { clock, serial } in &batch.after {
            waits.push(SemaphoreSubmit { semaphore: &clock.line.done, value: *serial });
        }
        let signals = [SemaphoreSubmit { semaphore: &self.clock.line.done, value: batch.serial }];
        let submit = SubmitInfo { waits: &waits, commands: &[&batch.commands], signals: &signals };
        let serial = self.queue.submit_all(&[submit], Some(&fence))?;
        Ok(Flight::new(&self.queue, self.clock.line.queue, serial, Some(fence)))
    }

    /// What is recorded from now on runs after a batch of a context on another queue, which was submitted. What was
    /// recorded before does not wait.
    pub(crate) fn come_after(&mut self, moment: &Moment) -> Result<(), Error> {
        self.flush()?;
        self.batch()?.after.push(moment.clone());
        self.clock.follow(&moment.clock, moment.serial);
        Ok(())
    }

    /// The batch to wait for before more is recorded, if too many are on their way.
    pub(crate) fn too_far_ahead(&mut self) -> Option<Serial> {
        if self.in_flight.len() <= MAX_IN_FLIGHT {
            return None;
        }
        self.retire();
        let middle = self.in_flight.get(MAX_IN_FLIGHT / 2).filter(|_| self.in_flight.len() > MAX_IN_FLIGHT);
        middle.map(|batch| batch.serial)
    }

    /// Recycles the batches that are done; what nothing else uses goes with them.
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
