//! The timeline: who did what when, as JSON that Perfetto and `chrome://tracing` open.
//!
//! Three processes with a track each for every member: contexts (batches being recorded, renames, waits), queues (batches
//! running) and workers (kernels and transfers). Times are microseconds since the trace began.

use std::io::{Result, Write};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use spelter_driver::Observer;

use crate::stats::Stats;

/// Events that are kept; what comes later is counted and dropped.
const MOST_EVENTS: usize = 1 << 20;

/// Processes of the trace, by their number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    Contexts = 1,
    Queues = 2,
    Workers = 3,
}

/// What happened.
#[derive(Debug)]
struct Event {
    process: Process,
    track: u64,
    name: String,
    start: Instant,
    /// An instant has none.
    end: Option<Instant>,
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
        self.add(Event { process: Process::Contexts, track: context, name, start, end, args });
    }

    /// Something that a context did in no time.
    pub(crate) fn instant(&self, context: u64, name: String) {
        let (start, args) = (Instant::now(), Value::Null);
        self.add(Event { process: Process::Contexts, track: context, name, start, end: None, args });
    }

    /// Something that a context did since `start`: a wait, an upload.
    pub(crate) fn span(&self, context: u64, name: String, start: Instant, args: Value) {
        let end = Some(Instant::now());
        self.add(Event { process: Process::Contexts, track: context, name, start, end, args });
    }

    fn add(&self, event: Event) {
        let mut events = self.events.lock();
        if events.list.len() < MOST_EVENTS {
            events.list.push(event);
        } else {
            events.dropped += 1;
        }
    }

    /// All of it, as one JSON object.
    pub(crate) fn write(&self, stats: &Stats, to: &mut dyn Write) -> Result<()> {
        let events = self.events.lock();
        let stats: serde_json::Map<_, _> = stats.iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        write!(
            to,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{}",
            json!({ "stats": stats, "dropped": events.dropped })
        )?;
        write!(to, ",\"traceEvents\":[")?;
        let mut tracks: Vec<_> = events.list.iter().map(|event| (event.process as u64, event.track)).collect();
        tracks.sort_unstable();
        tracks.dedup();
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
        events.list.iter().try_for_each(|event| line(&self.json(event)))?;
        to.write_all(b"\n]}\n")
    }

    fn json(&self, event: &Event) -> Value {
        let micros = |at: Instant| at.saturating_duration_since(self.began).as_nanos() as f64 / 1000.0;
        let (process, start) = (event.process as u64, micros(event.start));
        let mut value = match event.end {
            Some(end) => json!({ "ph": "X", "ts": start, "dur": micros(end) - start }),
            None => json!({ "ph": "i", "s": "t", "ts": start }),
        };
        value["name"] = event.name.as_str().into();
        value["pid"] = process.into();
        value["tid"] = event.track.into();
        if !event.args.is_null() {
            value["args"] = event.args.clone();
        }
        value
    }
}

impl Observer for Trace {
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant) {
        let (name, args, track) = (what.to_owned(), json!({ "units": units }), worker as u64);
        self.add(Event { process: Process::Workers, track, name, start, end: Some(end), args });
    }

    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant) {
        let (name, track) = (format!("batch {serial}"), queue as u64);
        self.add(Event { process: Process::Queues, track, name, start, end: Some(end), args: Value::Null });
    }
}
