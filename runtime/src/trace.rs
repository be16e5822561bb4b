//! The timeline: who did what when, as JSON that Perfetto and `chrome://tracing` open.
//!
//! Three processes with a track each for every member: contexts (batches being recorded, renames, waits), queues (batches
//! running) and workers (kernels and transfers). Times are microseconds since the trace began.

use std::io::{Result, Write};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use smallvec::{SmallVec, smallvec};
use spelter_driver::Observer;

use crate::stats::Stats;

/// Events that are kept; what comes later is counted and dropped.
const MOST_EVENTS: usize = 1 << 20;

/// Events that are written at a time.
const PIECE: usize = 1 << 10;

/// Processes of the trace, by their number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Contexts = 1,
    Queues = 2,
    Workers = 3,
}

/// What happened.
#[derive(Clone, Debug)]
struct Event {
    process: Process,
    track: u64,
    name: String,
    start: Instant,
    /// An instant has none.
    end: Option<Instant>,
    /// Whether others on its track begin during it and end after it: batches do. Viewers want the rest to nest.
    overlaps: bool,
    args: Value,
}

/// A timeline being kept.
#[derive(Debug)]
pub(crate) struct Trace {
    began: Instant,
    /// A leaf lock.
    events: Mutex<Events>,
}

#[derive(Debug, Default)]
struct Events {
    list: Vec<Event>,
    dropped: u64,
}

impl Trace {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), events: Mutex::default() })
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::now()
    }

    /// A context recorded a batch.
    pub(crate) fn recorded(&self, context: u64, serial: u64, commands: usize, start: Instant) {
        let (name, args) = (format!("record batch {serial}"), json!({ "commands": commands }));
        let end = Some(Instant::now());
        self.add(Event { process: Process::Contexts, track: context, name, start, end, overlaps: true, args });
    }

    /// Something that a context did in no time.
    pub(crate) fn instant(&self, context: u64, name: String) {
        let (start, args) = (Instant::now(), Value::Null);
        self.add(Event { process: Process::Contexts, track: context, name, start, end: None, overlaps: false, args });
    }

    /// Something that a context did since `start`: a wait, an upload.
    pub(crate) fn span(&self, context: u64, name: String, start: Instant, args: Value) {
        let end = Some(Instant::now());
        self.add(Event { process: Process::Contexts, track: context, name, start, end, overlaps: false, args });
    }

    fn add(&self, event: Event) {
        let mut events = self.events.lock();
        if events.list.len() < MOST_EVENTS {
            events.list.push(event);
        } else {
            events.dropped += 1;
        }
    }

    /// All of it, as one JSON object. Contexts and workers go on meanwhile; what they add later is left out.
    pub(crate) fn write(&self, stats: &Stats, to: &mut dyn Write) -> Result<()> {
        let events = self.events.lock();
        let (count, dropped) = (events.list.len(), events.dropped);
        let mut tracks: Vec<_> = events.list.iter().map(|event| (event.process as u64, event.track)).collect();
        drop(events);
        tracks.sort_unstable();
        tracks.dedup();
        let stats: serde_json::Map<_, _> = stats.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        let other = json!({ "stats": stats, "dropped": dropped });
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")?;
        let mut separator = "";
        let mut line = |value: &Value| -> Result<()> {
            write!(to, "{separator}\n{value}")?;
            separator = ",";
            Ok(())
        };
        for (process, name) in [(1, "contexts"), (2, "queues"), (3, "workers")] {
            line(&json!({ "ph": "M", "name": "process_name", "pid": process, "args": { "name": name } }))?;
            line(
                &json!({ "ph": "M", "name": "process_sort_index", "pid": process, "args": { "sort_index": process } }),
            )?;
        }
        for (process, track) in tracks {
            let name = format!("{} {track}", ["context", "queue", "worker"][process as usize - 1]);
            line(&json!({ "ph": "M", "name": "thread_name", "pid": process, "tid": track, "args": { "name": name } }))?;
        }
        for first in (0..count).step_by(PIECE) {
            // Events are only ever added.
            let piece = self.events.lock().list[first..count.min(first + PIECE)].to_vec();
            for (id, event) in (first..).zip(&piece) {
                self.json(id, event).iter().try_for_each(&mut line)?;
            }
        }
        to.write_all(b"\n]}\n")
    }

    /// An event of that number, as one or two of the format's.
    fn json(&self, id: usize, event: &Event) -> SmallVec<[Value; 2]> {
        let micros = |at: Instant| at.saturating_duration_since(self.began).as_nanos() as f64 / 1000.0;
        let (process, start) = (event.process as u64, micros(event.start));
        let mut values: SmallVec<[Value; 2]> = match event.end {
            Some(end) if event.overlaps => {
                let half = |ph: &str, at| json!({ "ph": ph, "cat": "batch", "id": id, "ts": micros(at) });
                smallvec![half("b", event.start), half("e", end)]
            }
            Some(end) => smallvec![json!({ "ph": "X", "ts": start, "dur": micros(end) - start })],
            None => smallvec![json!({ "ph": "i", "s": "t", "ts": start })],
        };
        for value in &mut values {
            value["name"] = event.name.as_str().into();
            value["pid"] = process.into();
            value["tid"] = event.track.into();
            if !event.args.is_null() {
                value["args"] = event.args.clone();
            }
        }
        values
    }
}

impl Observer for Trace {
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant) {
        let (name, args, track) = (what.to_owned(), json!({ "units": units }), worker as u64);
        self.add(Event { process: Process::Workers, track, name, start, end: Some(end), overlaps: false, args });
    }

    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant) {
        let (name, track) = (format!("batch {serial}"), queue as u64);
        let process = Process::Queues;
        self.add(Event { process, track, name, start, end: Some(end), overlaps: true, args: Value::Null });
    }
}
