//! The part of a timeline that one device fills: reports of its executor and of its host side become events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use spelter_locks::Mutex;

use super::dependencies::{Dependencies, TraceSlice};
use super::json::{Args, Row, TraceEvent};
use super::{Timeline, TraceEvents, Track};
use crate::exec::{Chunk, CommandId, Observer, SemaphoreSignal, SemaphoreWait, SubmissionId, SubmissionSize};
use crate::profile::{CommandSpan, CommandSpans};

/// Processes of a device, which is the order in which viewers show them.
const HOST: u64 = 1;
const QUEUES: u64 = 2;
const WORKERS: u64 = 3;
const PROCESSES: u64 = 3;

/// The part of a device. Reports of its executor arrive by [`Observer`]; its host side calls the other methods.
#[derive(Debug)]
pub struct DeviceTimeline {
    timeline: Arc<Timeline>,
    number: usize,
    /// Whether recordings are reported.
    records: bool,
    /// Locked before the timeline's events.
    state: Mutex<DeviceState>,
}

/// The track of the host on which a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTrack {
    /// A context, by its number: recordings of batches, which follow one another.
    Context(u64),
    /// The calling thread: its calls nest.
    Thread,
}

#[derive(Debug, Default)]
struct DeviceState {
    running: CommandSpans,
    /// Submissions that are in line or run.
    pending: BTreeMap<SubmissionId, SubmissionSize>,
    /// Submissions that ended before their submitter reported them.
    early: BTreeSet<SubmissionId>,
    /// Begin of submissions of which a part has run, and the time of their parts.
    parts: BTreeMap<SubmissionId, (Instant, Duration)>,
    threads: Vec<ThreadId>,
    /// Workers that run units of a phase.
    busy: u64,
    dependencies: Dependencies,
}

impl DeviceTimeline {
    pub(super) fn new(timeline: Arc<Timeline>, number: usize, records: bool) -> Self {
        let this = Self { timeline, number, records, state: Mutex::default() };
        // The first device is the only one of most programs.
        let suffix = if number == 0 { String::new() } else { format!(" of device {}", number + 1) };
        let mut events = this.timeline.events.lock();
        for (process, name) in [(HOST, "host"), (QUEUES, "queues"), (WORKERS, "workers")] {
            events.add(&TraceEvent::Name {
                process: this.pid(process),
                thread: None,
                name: &format!("{name}{suffix}"),
            });
        }
        drop(events);
        this
    }

    /// The timeline.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Adds a slice from `start` until now.
    pub fn slice(&self, track: HostTrack, name: &str, start: Instant, args: Args) {
        let track = self.host(track);
        self.add(HOST, track, ("host", name), (start, Instant::now()), args);
    }

    /// Adds the recording of a batch that became a submission, on the track of a context: an arrow leads from it to the
    /// submission.
    pub fn recorded(&self, context: u64, name: &str, submission: SubmissionId, start: Instant, args: Args) {
        let (begin, end) = (self.timeline.micros(start), self.timeline.micros(Instant::now()));
        let mut events = self.timeline.events.lock();
        let row = events.row(self.pid(HOST), Track::Context(context));
        events.add(&TraceEvent::Slice { row, category: "record", name, times: (begin, end), args });
        self.arrow(&mut events, row, 's', submission, begin);
    }

    /// Adds an instant of a context.
    pub fn instant(&self, context: u64, name: &str) {
        let at = self.timeline.micros(Instant::now());
        let mut events = self.timeline.events.lock();
        let row = events.row(self.pid(HOST), Track::Context(context));
        events.add(&TraceEvent::Instant { row, name, at });
    }

    /// Adds a label that the program gave a queue, from `start` until now: its times are those of the submitting
    /// thread.
    pub fn queue_label(&self, queue: usize, name: &str, start: Instant) {
        self.add(QUEUES, Track::Labels(queue), ("label", name), (start, Instant::now()), Args::new());
    }

    /// Names the tracks of a queue.
    pub fn name_queue(&self, queue: usize, name: &str) {
        let process = self.pid(QUEUES);
        let mut events = self.timeline.events.lock();
        for (track, name) in
            [(Track::Queue(queue, 0), name.to_owned()), (Track::Labels(queue), format!("labels of {name}"))]
        {
            let row = events.row(process, track);
            events.add(&TraceEvent::Name { process, thread: Some(row.thread), name: &name });
        }
    }

    /// Names the tracks of all workers, also of those that will run nothing.
    pub fn name_workers(&self, count: usize) {
        let mut events = self.timeline.events.lock();
        for worker in 0..count {
            events.row(self.pid(WORKERS), Track::Worker(worker));
        }
    }

    fn pid(&self, process: u64) -> u64 {
        self.number as u64 * PROCESSES + process
    }

    /// Adds an end of the arrow to a submission. Its number is unique, and exact in viewers that read numbers as
    /// doubles.
    fn arrow(&self, events: &mut TraceEvents, row: Row, phase: char, submission: SubmissionId, at: f64) {
        let id = (self.number as u64) << 44 | (submission.queue as u64) << 40 | submission.serial;
        events.add(&TraceEvent::Flow { row, phase, category: "flow", name: "submission", id, at });
    }

    fn host(&self, track: HostTrack) -> Track {
        match track {
            HostTrack::Context(id) => Track::Context(id),
            HostTrack::Thread => self.thread(&mut self.state.lock()),
        }
    }

    /// The track of the calling thread.
    fn thread(&self, state: &mut DeviceState) -> Track {
        let own = std::thread::current().id();
        let number = state.threads.iter().position(|thread| *thread == own).unwrap_or_else(|| {
            state.threads.push(own);
            state.threads.len() - 1
        });
        Track::Thread(number)
    }

    fn add(&self, process: u64, track: Track, what: (&str, &str), times: (Instant, Instant), args: Args) {
        let mut events = self.timeline.events.lock();
        self.put(&mut events, process, track, what, times, args);
    }

    fn put(
        &self,
        events: &mut TraceEvents,
        process: u64,
        track: Track,
        (category, name): (&str, &str),
        (start, end): (Instant, Instant),
        args: Args,
    ) {
        let times = (self.timeline.micros(start), self.timeline.micros(end));
        let row = events.row(self.pid(process), track);
        events.add(&TraceEvent::Slice { row, category, name, times, args });
    }

    /// Adds the counters of what waits.
    fn count_pending(&self, events: &mut TraceEvents, state: &DeviceState, queue: usize) {
        let at = self.timeline.micros(Instant::now());
        let depth = state.pending.keys().filter(|id| id.queue == queue).count() as u64;
        let bytes = state.pending.values().map(|size| size.bytes).fold(0, u64::saturating_add);
        let process = self.pid(QUEUES);
        events.add(&TraceEvent::Counter { process, name: &format!("depth of queue {queue}"), at, value: depth });
        events.add(&TraceEvent::Counter { process, name: "bytes pending", at, value: bytes });
    }

    /// Adds slices for the commands of a submission, each on the first track where it does not overlap another one.
    fn put_commands(
        &self,
        events: &mut TraceEvents,
        queue: usize,
        mut spans: Vec<CommandSpan>,
        dependencies: &mut Dependencies,
    ) {
        spans.sort_by_key(|span| (span.start, span.id));
        let mut ends: Vec<Instant> = Vec::new();
        for span in spans {
            let lane = ends.iter().position(|end| *end <= span.start).unwrap_or(ends.len());
            match ends.get_mut(lane) {
                Some(end) => *end = span.end,
                None => ends.push(span.end),
            }
            let mut args = Args::new();
            if let Some(dispatch) = span.dispatch {
                let [x, y, z] = dispatch.groups;
                args = args.raw("groups", &format!("[{x},{y},{z}]")).number("workgroups", span.units);
                args = args.text("pipeline", &format!("{:016x}", dispatch.pipeline));
            }
            let args = args.number("bytes", span.bytes).micros("busy_us", span.busy.as_nanos() as f64 / 1000.0);
            let args = args.number("chunks", span.chunks).number("submission", span.id.submission.serial);
            let category = if span.dispatch.is_some() { "dispatch" } else { "transfer" };
            let row = events.row(self.pid(QUEUES), Track::Queue(queue, lane));
            let times = (self.timeline.micros(span.start), self.timeline.micros(span.end));
            events.add(&TraceEvent::Slice { row, category, name: &span.name, times, args });
            dependencies.command_ran(span.id, TraceSlice { row, start: times.0, end: times.1 });
        }
    }
}

impl Observer for DeviceTimeline {
    fn submitted(&self, submission: SubmissionId, size: SubmissionSize, start: Instant) {
        let mut state = self.state.lock();
        let track = self.thread(&mut state);
        let mut events = self.timeline.events.lock();
        let (begin, end) = (self.timeline.micros(start), self.timeline.micros(Instant::now()));
        let row = events.row(self.pid(HOST), track);
        let name = format!("submit {}", submission.serial);
        let args = Args::new().number("queue", submission.queue as u64).number("commands", size.commands as u64);
        let args = args.number("bytes", size.bytes);
        events.add(&TraceEvent::Slice { row, category: "submit", name: &name, times: (begin, end), args });
        let phase = if self.records { 't' } else { 's' };
        self.arrow(&mut events, row, phase, submission, begin);
        if !state.early.remove(&submission) {
            state.pending.insert(submission, size);
            self.count_pending(&mut events, &state, submission.queue);
        }
    }

    fn synchronized(&self, submission: SubmissionId, waits: &[SemaphoreWait], signals: &[SemaphoreSignal]) {
        self.state.lock().dependencies.synchronized(submission, waits, signals);
    }

    fn host_signals(&self, signal: SemaphoreSignal) {
        self.state.lock().dependencies.host_signals(signal);
    }

    fn sets_event(&self, command: Option<CommandId>, event: u64) {
        self.state.lock().dependencies.sets_event(command, event);
    }

    fn waited_for_events(&self, command: CommandId, events: &[u64]) {
        self.state.lock().dependencies.waited_for_events(command, events);
    }

    fn misses(&self, earlier: CommandId, later: CommandId, rule: &str) {
        self.state.lock().dependencies.misses(earlier, later, rule);
    }

    fn working(&self, _: usize, busy: bool) {
        let mut state = self.state.lock();
        state.busy = if busy { state.busy + 1 } else { state.busy.saturating_sub(1) };
        let (process, value) = (self.pid(WORKERS), state.busy);
        let mut events = self.timeline.events.lock();
        // The time is read under the lock, so that counters are in the order of their times.
        let at = self.timeline.micros(Instant::now());
        events.add(&TraceEvent::Counter { process, name: "busy workers", at, value });
    }

    fn worked(&self, chunk: &Chunk<'_>) {
        let mut state = self.state.lock();
        state.running.add(chunk);
        let args = Args::new().number("units", chunk.units).number("queue", chunk.command.submission.queue as u64);
        let args = args.number("submission", chunk.command.submission.serial);
        let mut events = self.timeline.events.lock();
        let (track, what) = (Track::Worker(chunk.worker), ("chunk", chunk.name));
        self.put(&mut events, WORKERS, track, what, (chunk.start, chunk.end), args);
    }

    fn ran(&self, submission: SubmissionId, done: bool, start: Instant, end: Instant) {
        let mut state = self.state.lock();
        let part = state.parts.entry(submission).or_insert((start, Duration::ZERO));
        part.1 += end.saturating_duration_since(start);
        if !done {
            return;
        }
        let Some((start, ran)) = state.parts.remove(&submission) else { return };
        let spans = state.running.take(submission);
        let mut events = self.timeline.events.lock();
        let (row, begin) =
            (events.row(self.pid(QUEUES), Track::Queue(submission.queue, 0)), self.timeline.micros(start));
        let args = Args::new().number("commands", spans.len() as u64);
        let args = args.micros("ran_us", ran.as_nanos() as f64 / 1000.0);
        let (name, times) = (format!("submission {}", submission.serial), (begin, self.timeline.micros(end)));
        events.add(&TraceEvent::Slice { row, category: "submission", name: &name, times, args });
        self.arrow(&mut events, row, 'f', submission, begin);
        state.dependencies.submission_ran(submission, TraceSlice { row, start: times.0, end: times.1 });
        self.put_commands(&mut events, submission.queue, spans, &mut state.dependencies);
        for edge in state.dependencies.take(submission) {
            edge.draw(&mut events, self.number);
        }
        if state.pending.remove(&submission).is_none() {
            state.early.insert(submission);
        } else {
            self.count_pending(&mut events, &state, submission.queue);
        }
    }
}
