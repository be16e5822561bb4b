//! Timelines of hosts, queues and workers, in Chrome's trace event format, for Perfetto and `chrome://tracing`.
//!
//! Each device has three processes: its host side (contexts, threads that submit, wait and write), its queues
//! (submissions, and within them a slice for each dispatch and transfer) and its workers (the chunks that each ran).
//! Counters show what waits, and arrows lead from the recording of a batch to its execution, and from a command to what
//! comes after it by a dependency (`dependencies.rs`).
//!
//! The format requires the slices of a track to nest. Submissions of a queue run one after another, and their commands
//! lie within them; commands that overlap get further tracks, `queue 0 (2)`. Calls of one thread nest.
//!
//! Events are text from the start, so that a file can be written while the program runs ([`Timeline::drain`]), or at
//! once at the end ([`Timeline::pieces`]).

mod dependencies;
mod device;
mod file;
mod json;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use spelter_locks::Mutex;

pub use device::{DeviceTimeline, HostTrack};
pub use file::{DeviceTimelineFile, create_own};
pub use json::Args;
use json::{Row, TraceEvent};

/// Events that are kept; later ones are counted and dropped.
const MAX_EVENTS: usize = 1 << 20;

/// Bytes of text in a piece.
const PIECE: usize = 64 << 10;

/// A timeline that is being recorded, of any number of devices.
#[derive(Debug)]
pub struct Timeline {
    began: Instant,
    devices: AtomicUsize,
    /// A leaf lock.
    events: Mutex<TraceEvents>,
}

#[derive(Debug, Default)]
struct TraceEvents {
    pieces: Vec<Arc<str>>,
    /// The piece that is being written: events, separated by commas.
    open: String,
    count: usize,
    dropped: u64,
    rows: BTreeMap<(u64, Track), u64>,
}

/// A track of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Context(u64),
    /// A thread of the host, by its number in the device.
    Thread(usize),
    /// A queue; the second number is 0 for submissions, and counts tracks of overlapping commands.
    Queue(usize, usize),
    /// What the program says about a queue.
    Labels(usize),
    Worker(usize),
}

impl Track {
    fn name(&self) -> String {
        match self {
            Self::Context(id) => format!("context {id}"),
            Self::Thread(number) => format!("thread {}", number + 1),
            Self::Queue(queue, 0) => format!("queue {queue}"),
            Self::Queue(queue, lane) => format!("queue {queue} ({})", lane + 1),
            Self::Labels(queue) => format!("labels of queue {queue}"),
            Self::Worker(worker) => format!("worker {worker}"),
        }
    }
}

impl Timeline {
    /// An empty timeline that begins now.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), devices: AtomicUsize::new(0), events: Mutex::default() })
    }

    /// The part of a device: an [`Observer`](crate::Observer) for
    /// [`Device::with_observer`](crate::Device::with_observer). With `records` the host side reports recordings
    /// ([`DeviceTimeline::recorded`]), and arrows to submissions begin there; else they begin at the call that submits.
    pub fn device(self: &Arc<Self>, records: bool) -> Arc<DeviceTimeline> {
        // Relaxed: the numbers only have to differ.
        let number = self.devices.fetch_add(1, Ordering::Relaxed);
        Arc::new(DeviceTimeline::new(Arc::clone(self), number, records))
    }

    /// All events so far as JSON objects, with commas between objects and between pieces left to the caller, and the
    /// number of events that were dropped. Threads continue meanwhile; events that they add later are left out.
    pub fn pieces(&self) -> (Vec<Arc<str>>, u64) {
        let mut events = self.events.lock();
        events.close();
        (events.pieces.clone(), events.dropped)
    }

    /// Removes and returns the events so far: JSON objects, separated by commas.
    pub fn drain(&self) -> String {
        let mut events = self.events.lock();
        events.close();
        events.count = 0;
        std::mem::take(&mut events.pieces).join(",\n")
    }

    /// Bytes of text that [`Timeline::drain`] would return, roughly.
    pub fn waiting(&self) -> usize {
        let events = self.events.lock();
        events.pieces.len() * PIECE + events.open.len()
    }

    /// Microseconds since the timeline began.
    fn micros(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.began).as_nanos() as f64 / 1000.0
    }
}

impl TraceEvents {
    fn add(&mut self, event: &TraceEvent<'_>) {
        if self.count >= MAX_EVENTS {
            self.dropped += 1;
            return;
        }
        self.count += 1;
        if !self.open.is_empty() {
            self.open.push_str(",\n");
        }
        event.print(&mut self.open);
        if self.open.len() >= PIECE {
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.pieces.push(std::mem::take(&mut self.open).into());
        }
    }

    /// The row of a track, which is named when it is first used.
    fn row(&mut self, process: u64, track: Track) -> Row {
        let (name, next) = (track.name(), self.rows.len() as u64 + 1);
        let thread = *self.rows.entry((process, track)).or_insert(next);
        if thread == next {
            self.add(&TraceEvent::Name { process, thread: Some(thread), name: &name });
        }
        Row { process, thread }
    }
}
