//! The findings of one device, with the objects of the program that they belong to.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ash::vk::{self, Handle};
use spelter_driver as driver;
use spelter_driver::check::{CheckResults, CheckStats, Finding};
use spelter_driver::{Chunk, Observer, SubmissionId, SubmissionSize};
use spelter_locks::Mutex;

use super::ANY;
use super::process::Process;
use crate::c::callback::{About, Message};
use crate::current_call::Owner;
use crate::device::Queue;
use crate::names;
use crate::options::Options;
use crate::pipeline::Pipeline;
use crate::table::Object;

/// Submissions whose command buffers are remembered: a message about an older one does not name its command buffer.
const MAX_SUBMISSIONS: usize = 1024;

thread_local! {
    /// The command buffers of the submissions that this thread makes now, in order.
    static SUBMITTING: RefCell<VecDeque<Vec<vk::CommandBuffer>>> = const { RefCell::new(VecDeque::new()) };
}

/// Whether devices are checked.
pub(crate) fn is_on() -> bool {
    Options::get().device.check.is_some()
}

/// The command buffers of submissions that a call makes now. Dropping it forgets them.
pub(crate) struct Submitting(());

impl Submitting {
    pub(crate) fn of(batches: impl Iterator<Item = Vec<vk::CommandBuffer>>) -> Self {
        SUBMITTING.set(batches.collect());
        Self(())
    }
}

impl Drop for Submitting {
    fn drop(&mut self) {
        // The thread may be ending, its locals destroyed.
        let _ = SUBMITTING.try_with(|batches| batches.borrow_mut().clear());
    }
}

/// The part of a submission in which something was found.
#[derive(Clone, Debug)]
pub(super) struct SubmissionPart {
    pub(super) submission: SubmissionId,
    /// The index of the command buffer, the labels around the dispatch, and the pipeline's number; `None` if it is only
    /// known that the submission has run.
    pub(super) dispatch: Option<(usize, Option<String>, u64)>,
}

/// Takes the findings of a device.
pub(crate) struct DeviceFindings {
    process: &'static Process,
    pub(super) owner: Owner,
    results: OnceLock<CheckResults>,
    queues: OnceLock<Vec<vk::Queue>>,
    submissions: Mutex<VecDeque<(SubmissionId, Vec<vk::CommandBuffer>)>>,
    /// Submissions that were made, less those that have run. A submission may have run before it is reported as made.
    open: AtomicI64,
}

impl DeviceFindings {
    /// For a device of the instance, if checked mode is on.
    pub(crate) fn of_device(owner: Owner) -> Option<Arc<Self>> {
        if !is_on() {
            return None;
        }
        let process = Process::current_or_new();
        ANY.store(true, Ordering::Relaxed);
        let (results, queues, submissions) = Default::default();
        Some(Arc::new(Self { process, owner, results, queues, submissions, open: AtomicI64::new(0) }))
    }

    /// The device exists, with these queues.
    pub(crate) fn started(self: &Arc<Self>, device: &driver::Device, queues: &[vk::Queue]) {
        if let Some(results) = device.check_results() {
            let _ = self.results.set(results);
            let _ = self.queues.set(queues.to_vec());
            self.process.add(self);
        }
    }

    /// The device is being destroyed: reports what is left.
    pub(crate) fn finish(self: &Arc<Self>) {
        if self.process.is_current() {
            self.process.remove(self);
            self.process.call_messengers(self.owner);
        }
    }

    /// Whether a submission has not run.
    pub(super) fn is_busy(&self) -> bool {
        // Acquire: pairs with the Release in `ran`, before which the findings were reported.
        self.open.load(Ordering::Acquire) > 0
    }

    /// Findings since the last call.
    pub(super) fn take(&self) -> Vec<Finding> {
        self.results.get().map(CheckResults::take).unwrap_or_default()
    }

    pub(super) fn stats(&self) -> CheckStats {
        self.results.get().map(CheckResults::stats).unwrap_or_default()
    }

    /// Adds the objects and labels of a place to a message.
    pub(super) fn describe(&self, place: &SubmissionPart, message: &mut Message) {
        let mut add = |ty, handle| message.objects.push(About { ty, handle, name: names::get(ty, handle) });
        let queue = self.queues.get().and_then(|queues| queues.get(place.submission.queue).copied());
        queue.inspect(|queue| add(vk::ObjectType::QUEUE, queue.as_raw()));
        if let Some((recording, labels, pipeline)) = &place.dispatch {
            let submissions = self.submissions.lock();
            let known = submissions.iter().rev().find(|(submission, _)| *submission == place.submission);
            let commands = known.and_then(|(_, commands)| commands.get(*recording).copied());
            drop(submissions);
            commands.inspect(|commands| add(vk::ObjectType::COMMAND_BUFFER, commands.as_raw()));
            let pipeline = Pipeline::table().key_of(|other| other.driver.identity() == *pipeline);
            pipeline.inspect(|&key| add(vk::ObjectType::PIPELINE, Pipeline::handle(key).as_raw()));
            message.command_labels = labels.as_deref().map(super::process::labels).unwrap_or_default();
        }
        if let Some(queue) = queue.and_then(Queue::find) {
            queue.describe(message);
        }
    }
}

impl Observer for DeviceFindings {
    fn submitted(&self, submission: SubmissionId, _: SubmissionSize, _: Instant) {
        // Relaxed: a count.
        self.open.fetch_add(1, Ordering::Relaxed);
        let commands = SUBMITTING.with_borrow_mut(VecDeque::pop_front);
        let mut submissions = self.submissions.lock();
        if submissions.len() == MAX_SUBMISSIONS {
            submissions.pop_front();
        }
        submissions.push_back((submission, commands.unwrap_or_default()));
    }

    fn worked(&self, chunk: &Chunk<'_>) {
        let Some(dispatch) = chunk.dispatch else { return };
        let findings = self.take();
        if !findings.is_empty() {
            // `LABEL: KERNEL`, as the driver names a dispatch with labels.
            let label = chunk.name.rsplit_once(": ").map(|(label, _)| label.to_owned());
            let dispatch = Some((chunk.command.recording, label, dispatch.pipeline));
            let place = SubmissionPart { submission: chunk.command.submission, dispatch };
            self.process.report(self, Some(&place), findings);
        }
    }

    fn ran(&self, submission: SubmissionId, done: bool, _: Instant, _: Instant) {
        let findings = if done { self.take() } else { Vec::new() };
        if !findings.is_empty() {
            // Before the end of the submission is signalled, after which the program may exit.
            self.process.report(self, Some(&SubmissionPart { submission, dispatch: None }), findings);
        }
        if done {
            // Release: pairs with the Acquire in `is_busy`.
            self.open.fetch_sub(1, Ordering::Release);
        }
    }
}

impl fmt::Debug for DeviceFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceFindings").field("owner", &self.owner).finish_non_exhaustive()
    }
}
