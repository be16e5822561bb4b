//! Reports of the executor's work to observers: for timelines and profiles.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

/// A submission: its queue, numbered from 0, and its number in the queue, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubmissionId {
    /// The index of the queue in its device.
    pub queue: usize,
    /// The serial, which counts up in each queue.
    pub serial: u64,
}

/// A command of a submission. Ids of one submission are in the order of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// The submission.
    pub submission: SubmissionId,
    /// The index of its command buffer in the submission.
    pub recording: usize,
    /// The index of its phase: commands between two barriers, which may overlap.
    pub phase: usize,
    /// Its index in the phase.
    pub command: usize,
}

/// What a submission holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubmissionSize {
    /// The number of commands.
    pub commands: usize,
    /// Bytes that are bound to its dispatches or moved by its transfers, all commands together.
    pub bytes: u64,
}

/// A wait for a semaphore, which has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreWait {
    /// The semaphore's number, which no other semaphore of the process has.
    pub semaphore: u64,
    /// The value that it waited for; of a binary semaphore, the number of its signal, counted from 1.
    pub value: u64,
}

/// A signal of a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SemaphoreSignal {
    /// The semaphore's number, which no other semaphore of the process has.
    pub semaphore: u64,
    /// Its value before the signal: waits for values up to this one ended without the signal.
    pub before: u64,
    /// The value that it gets; of a binary semaphore, the number of the signal, counted from 1.
    pub value: u64,
}

/// The dispatch that a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchInfo {
    /// Identifies the pipeline by its shader, entry point and specialization constants, in any process.
    pub pipeline: u64,
    /// Workgroups in each direction.
    pub groups: [u32; 3],
}

/// Units of a command that a worker ran: workgroups, or 256 KiB units of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The worker, numbered from 0.
    pub worker: usize,
    /// The command.
    pub command: CommandId,
    /// The kernel or the kind of transfer, after the label of the command buffer if there is one.
    pub name: &'a str,
    /// `None` for transfers.
    pub dispatch: Option<DispatchInfo>,
    /// Bytes that are bound to the whole dispatch or moved by the whole transfer.
    pub bytes: u64,
    /// The number of units of this chunk.
    pub units: u64,
    /// When the worker began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

/// Receives reports of what workers and queues did, on the threads that did it: it should be quick, and must not call
/// the device. Without an observer nothing is measured and nothing called.
pub trait Observer: Debug + Send + Sync {
    /// The calling thread submitted. The submission may run, or have ended, by now.
    fn submitted(&self, submission: SubmissionId, size: SubmissionSize, start: Instant) {
        let _ = (submission, size, start);
    }

    /// A worker, numbered from 0, begins (`busy`) or ends to run units of a phase.
    fn working(&self, worker: usize, busy: bool) {
        let _ = (worker, busy);
    }

    /// A worker ran units of one command.
    fn worked(&self, chunk: &Chunk<'_>);

    /// A queue ran a submission, or a part of it. All chunks of the part have been reported. `done` is false if another
    /// thread continues later: the submission waits, or takes longer than its submitter may work for it.
    fn ran(&self, submission: SubmissionId, done: bool, start: Instant, end: Instant);

    /// The semaphores of a submission that is done, if it has any, unless the device is lost. Called before
    /// [`Observer::ran`] for the same submission, and before the signals happen, so that each is reported before the
    /// waits that it ends.
    fn synchronized(&self, submission: SubmissionId, waits: &[SemaphoreWait], signals: &[SemaphoreSignal]) {
        let _ = (submission, waits, signals);
    }

    /// The host signals a semaphore: called before the signal happens.
    fn host_signals(&self, signal: SemaphoreSignal) {
        let _ = signal;
    }

    /// A command, or the host (`None`), sets an event that is not set, by a number that no other event of the process
    /// has: called before that happens.
    fn sets_event(&self, command: Option<CommandId>, event: u64) {
        let _ = (command, event);
    }

    /// A command has waited for these events: the commands after it run next. It is no [`Chunk`] itself.
    fn waited_for_events(&self, command: CommandId, events: &[u64]) {
        let _ = (command, events);
    }

    /// Checked mode finds that the program has no dependency from a command to a later one, which runs now, and lets a
    /// rule be broken by that. The log of commands is not locked meanwhile: the observer may access mapped memory.
    fn misses(&self, earlier: CommandId, later: CommandId, rule: &str) {
        let _ = (earlier, later, rule);
    }
}

/// Several observers of one device.
#[derive(Debug)]
pub struct Observers(pub Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn submitted(&self, submission: SubmissionId, size: SubmissionSize, start: Instant) {
        self.0.iter().for_each(|observer| observer.submitted(submission, size, start));
    }

    fn working(&self, worker: usize, busy: bool) {
        self.0.iter().for_each(|observer| observer.working(worker, busy));
    }

    fn worked(&self, chunk: &Chunk<'_>) {
        self.0.iter().for_each(|observer| observer.worked(chunk));
    }

    fn ran(&self, submission: SubmissionId, done: bool, start: Instant, end: Instant) {
        self.0.iter().for_each(|observer| observer.ran(submission, done, start, end));
    }

    fn synchronized(&self, submission: SubmissionId, waits: &[SemaphoreWait], signals: &[SemaphoreSignal]) {
        self.0.iter().for_each(|observer| observer.synchronized(submission, waits, signals));
    }

    fn host_signals(&self, signal: SemaphoreSignal) {
        self.0.iter().for_each(|observer| observer.host_signals(signal));
    }

    fn sets_event(&self, command: Option<CommandId>, event: u64) {
        self.0.iter().for_each(|observer| observer.sets_event(command, event));
    }

    fn waited_for_events(&self, command: CommandId, events: &[u64]) {
        self.0.iter().for_each(|observer| observer.waited_for_events(command, events));
    }

    fn misses(&self, earlier: CommandId, later: CommandId, rule: &str) {
        self.0.iter().for_each(|observer| observer.misses(earlier, later, rule));
    }
}
