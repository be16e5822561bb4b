//! The batches of a context in order: one being recorded, those in flight, and the serial up to which all are done.

use std::collections::VecDeque;

use spelter_driver::{Device, Fence, Queue};

use super::Batch;
use crate::error::Error;

/// The batches of one context.
#[derive(Debug)]
pub(crate) struct Timeline {
    device: Device,
    queue: Queue,
    /// Serial of the batch being recorded, or of the next one.
    serial: u64,
    recording: Option<Batch>,
    in_flight: VecDeque<InFlight>,
    /// Why a batch could not be submitted. Its commands are lost, so nothing after it can be right.
    failed: Option<Error>,
}

/// A submitted batch, kept with all it owns until its fence is signalled.
#[derive(Debug)]
struct InFlight {
    batch: Batch,
    fence: Fence,
}

impl Timeline {
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            queue: device.queue(),
            serial: 1,
            recording: None,
            in_flight: VecDeque::new(),
            failed: None,
        }
    }

    /// The batch being recorded; a long one is submitted first and a new one begun.
    pub(crate) fn batch(&mut self) -> Result<&mut Batch, Error> {
        if self.recording.as_ref().is_some_and(Batch::is_long) {
            self.flush()?;
        }
        let batch = match self.recording.take() {
            Some(batch) => batch,
            None => Batch::begin(&self.device, self.serial)?,
        };
        Ok(self.recording.insert(batch))
    }

    /// Submits what was recorded. The serial of the last batch that was submitted; 0 if none was yet.
    pub(crate) fn flush(&mut self) -> Result<u64, Error> {
        self.retire();
        if let Some(batch) = self.recording.take() {
            self.serial += 1;
            match self.submit(&batch) {
                Ok(fence) => self.in_flight.push_back(InFlight { batch, fence }),
                Err(error) => self.failed = Some(error),
            }
        }
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(self.serial - 1),
        }
    }

    fn submit(&self, batch: &Batch) -> Result<Fence, Error> {
        batch.commands.end()?;
        let fence = self.device.create_fence(false);
        self.queue.submit(&[&batch.commands], Some(&fence))?;
        Ok(fence)
    }

    /// Submits what was recorded if the batch `serial` is among it. The fences to wait for, without holding the
    /// timeline, until it has retired.
    pub(crate) fn fences_until(&mut self, serial: u64) -> Result<Vec<Fence>, Error> {
        if serial >= self.serial || self.failed.is_some() {
            self.flush()?;
        }
        let until = self.in_flight.iter().take_while(|flight| flight.batch.serial <= serial);
        Ok(until.map(|flight| flight.fence.clone()).collect())
    }

    /// Drops the batches that are done, and with them what nothing else uses any more.
    pub(crate) fn retire(&mut self) {
        while self.in_flight.front().is_some_and(|flight| flight.fence.is_signaled()) {
            self.in_flight.pop_front();
        }
    }
}
