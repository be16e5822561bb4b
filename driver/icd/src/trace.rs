//! A timeline of a device's workers and queues, in the format of `chrome://tracing` and Perfetto.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use parking_lot::Mutex;
use spelter_driver::Observer;

/// Remembers what was done.
#[derive(Debug)]
pub(crate) struct Trace {
    start: Instant,
    /// Events of the format, each followed by a comma.
    events: Mutex<String>,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), events: Mutex::default() }
    }

    fn event(&self, process: &str, thread: usize, name: &str, start: Instant, end: Instant) {
        let (at, long) = (start.saturating_duration_since(self.start), end.saturating_duration_since(start));
        let name = clean(name);
        let mut events = self.events.lock();
        // Writing to a string cannot fail.
        let _ = writeln!(
            events,
            r#"{{"ph":"X","pid":"{process}","tid":{thread},"name":"{name}","ts":{:.3},"dur":{:.3}}},"#,
            at.as_secs_f64() * 1e6,
            long.as_secs_f64() * 1e6,
        );
    }

    /// A label of a queue, which ends now: beside the queue's submissions, on the time of the program that submits.
    pub(crate) fn label(&self, queue: usize, name: &str, start: Instant) {
        self.event("labels of queues", queue, name, start, Instant::now());
    }

    /// A label of a queue that is a moment.
    pub(crate) fn mark(&self, queue: usize, name: &str) {
        let now = Instant::now();
        self.event("labels of queues", queue, name, now, now);
    }

    /// What the program calls a queue.
    pub(crate) fn name_queue(&self, queue: usize, name: &str) {
        let name = clean(name);
        for process in ["queues", "labels of queues"] {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.events.lock(),
                r#"{{"ph":"M","pid":"{process}","tid":{queue},"name":"thread_name","args":{{"name":"{name}"}}}},"#,
            );
        }
    }

    /// Writes the timeline into a file.
    pub(crate) fn save(&self, path: &Path) -> std::io::Result<()> {
        let events = self.events.lock();
        std::fs::write(path, format!("[\n{}\n]\n", events.trim_end().trim_end_matches(',')))
    }
}

/// A name as a part of the format.
fn clean(name: &str) -> String {
    name.replace(['"', '\\'], "'").replace(char::is_control, " ")
}

impl Observer for Trace {
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant) {
        self.event("workers", worker, &format!("{what} ({units})"), start, end);
    }

    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant) {
        self.event("queues", queue, &format!("submission {serial}"), start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_a_json_list() {
        let trace = Trace::new();
        let now = Instant::now();
        trace.worked(1, "a \"kernel\"", 3, now, now);
        trace.ran(0, 7, now, now);
        let path = std::env::temp_dir().join(format!("spelter-trace-{}.json", std::process::id()));
        trace.save(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
        assert!(text.contains("a 'kernel' (3)") && text.contains("submission 7"), "{text}");
    }
}
