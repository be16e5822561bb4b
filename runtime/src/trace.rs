//! The timeline of contexts, queues and workers, as JSON for Perfetto and `chrome://tracing`.
//!
//! Three processes with one track for each member: contexts (recording of batches, renames, waits), queues (execution
//! of batches) and workers (kernels and transfers). Times are microseconds since the trace began.
//!
//! Viewers require the slices of a track to nest. Batches of a queue overlap, and so do calls of two threads in one
//! context: such a member gets another track, with the same name and a number, for slices that begin within a slice and
//! end after it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use spelter_driver::Observer;

use crate::stats::Stats;

/// TraceEvents that are kept; later ones are counted and dropped.
const MAX_EVENTS: usize = 1 << 20;

/// TraceEvents that are copied under one lock and then written.
const PIECE: usize = 1 << 10;

/// Processes of the trace, with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Process {
    Contexts = 1,
    Queues = 2,
    Workers = 3,
}

/// A slice or an instant.
#[derive(Clone, Debug)]
struct TraceEvent {
    process: Process,
    track: u64,
    name: String,
    start: Instant,
    /// `None` for an instant.
    end: Option<Instant>,
    args: Value,
}

/// A timeline that is being recorded.
#[derive(Debug)]
pub(crate) struct Trace {
    began: Instant,
    /// A leaf lock.
    events: Mutex<TraceEvents>,
}

#[derive(Debug, Default)]
struct TraceEvents {
    list: Vec<TraceEvent>,
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
        self.add(TraceEvent { process: Process::Contexts, track: context, name, start, end, args });
    }

    /// An instant of a context.
    pub(crate) fn instant(&self, context: u64, name: String) {
        let (start, args) = (Instant::now(), Value::Null);
        self.add(TraceEvent { process: Process::Contexts, track: context, name, start, end: None, args });
    }

    /// A slice of a context from `start` until now: a wait or an upload.
    pub(crate) fn span(&self, context: u64, name: String, start: Instant, args: Value) {
        let end = Some(Instant::now());
        self.add(TraceEvent { process: Process::Contexts, track: context, name, start, end, args });
    }

    fn add(&self, event: TraceEvent) {
        let mut events = self.events.lock();
        if events.list.len() < MAX_EVENTS {
            events.list.push(event);
        } else {
            events.dropped += 1;
        }
    }

    /// Writes all events as one JSON object. Contexts and workers continue meanwhile; events that they add later are
    /// left out.
    pub(crate) fn write(&self, stats: &Stats, to: &mut dyn Write) -> Result<()> {
        let events = self.events.lock();
        let (count, dropped) = (events.list.len(), events.dropped);
        let spans: Vec<_> = events.list.iter().map(Span::of).collect();
        drop(events);
        let (tracks, names) = arrange(&spans);
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
        for (tid, (process, name)) in (1..).zip(&names) {
            let meta =
                |what, args| json!({ "ph": "M", "name": what, "pid": *process as u64, "tid": tid, "args": args });
            line(&meta("thread_name", json!({ "name": name })))?;
            line(&meta("thread_sort_index", json!({ "sort_index": tid })))?;
        }
        for first in (0..count).step_by(PIECE) {
            // TraceEvents are only ever added.
            let piece = self.events.lock().list[first..count.min(first + PIECE)].to_vec();
            piece.iter().zip(&tracks[first..]).try_for_each(|(event, tid)| line(&self.json(event, *tid)))?;
        }
        to.write_all(b"\n]}\n")
    }

    /// An event, on a track.
    fn json(&self, event: &TraceEvent, tid: usize) -> Value {
        let micros = |at: Instant| at.saturating_duration_since(self.began).as_nanos() as f64 / 1000.0;
        let start = micros(event.start);
        let mut value = match event.end {
            Some(end) => json!({ "ph": "X", "ts": start, "dur": micros(end) - start }),
            None => json!({ "ph": "i", "s": "t", "ts": start }),
        };
        value["name"] = event.name.as_str().into();
        value["pid"] = (event.process as u64).into();
        value["tid"] = tid.into();
        if !event.args.is_null() {
            value["args"] = event.args.clone();
        }
        value
    }
}

/// The interval of an event, and its member.
#[derive(Clone, Copy, Debug)]
struct Span {
    process: Process,
    member: u64,
    start: Instant,
    end: Instant,
}

impl Span {
    fn of(event: &TraceEvent) -> Self {
        let TraceEvent { process, track, start, end, .. } = event;
        Self { process: *process, member: *track, start: *start, end: end.unwrap_or(*start) }
    }
}

/// Assigns spans to tracks so that the spans of a track nest. Returns the number of each span's track, counted from 1
/// on, and the processes and names of the tracks.
fn arrange(spans: &[Span]) -> (Vec<usize>, Vec<(Process, String)>) {
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_unstable_by_key(|at| (spans[*at].start, Reverse(spans[*at].end)));
    // By member, its tracks, each with the ends of its open spans.
    let mut members: BTreeMap<(Process, u64), Vec<Vec<Instant>>> = BTreeMap::new();
    let mut lanes = vec![0; spans.len()];
    for at in order {
        let Span { process, member, start, end } = spans[at];
        let tracks = members.entry((process, member)).or_default();
        let takes = |open: &mut Vec<Instant>| {
            open.retain(|other| *other > start);
            open.last().is_none_or(|outer| end <= *outer)
        };
        lanes[at] = tracks.iter_mut().position(takes).unwrap_or(tracks.len());
        if lanes[at] == tracks.len() {
            tracks.push(Vec::new());
        }
        tracks[lanes[at]].push(end);
    }
    let (mut names, mut first) = (Vec::new(), BTreeMap::new());
    for ((process, member), tracks) in members {
        first.insert((process, member), names.len() + 1);
        let name = format!("{} {member}", ["context", "queue", "worker"][process as usize - 1]);
        let more = (2..=tracks.len()).map(|lane| (process, format!("{name} ({lane})")));
        names.push((process, name.clone()));
        names.extend(more);
    }
    let tracks = spans.iter().zip(lanes).map(|(span, lane)| first[&(span.process, span.member)] + lane);
    (tracks.collect(), names)
}

impl Observer for Trace {
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant) {
        let (name, args, track) = (what.to_owned(), json!({ "units": units }), worker as u64);
        self.add(TraceEvent { process: Process::Workers, track, name, start, end: Some(end), args });
    }

    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant) {
        let (name, track) = (format!("batch {serial}"), queue as u64);
        let process = Process::Queues;
        self.add(TraceEvent { process, track, name, start, end: Some(end), args: Value::Null });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Spans of a track nest, a member has a second track only if it needs one, and track numbers match the names.
        #[test]
        fn spans_of_a_track_nest(given in proptest::collection::vec((0..2u64, 0..30u64, 0..12u64), 1..40)) {
            let (began, process) = (Instant::now(), Process::Queues);
            let at = |time| began + Duration::from_nanos(time);
            let span = |(member, start, length)| Span { process, member, start: at(start), end: at(start + length) };
            let spans: Vec<Span> = given.into_iter().map(span).collect();
            let (tracks, names) = arrange(&spans);
            for (a, one) in spans.iter().zip(&tracks) {
                let name = format!("queue {}", a.member);
                prop_assert!(names[*one - 1].1.starts_with(&name));
                for (b, other) in spans.iter().zip(&tracks) {
                    let crosses = a.start < b.start && b.start < a.end && a.end < b.end;
                    prop_assert!(one != other || !crosses, "{a:?} and {b:?} on one track");
                }
            }
            let crossing = spans.iter().any(|a| spans.iter().any(|b| {
                a.member == b.member && a.start < b.start && b.start < a.end && a.end < b.end
            }));
            prop_assert_eq!(names.iter().any(|(_, name)| name.ends_with(')')), crossing);
        }
    }
}
