//! A timeline of the workers and queues of all devices, in the format of `chrome://tracing` and Perfetto.
//!
//! It is written while the program runs, after each submission: many programs end without destroying their devices, and
//! some are killed. After each write the file is a complete list.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use spelter_driver::Observer;

use crate::context::Owner;
use crate::message;
use crate::options::Options;

/// A file without events; the offset of the first event; the text after the last one.
const EMPTY: &[u8] = b"[\n]\n";
const FIRST: u64 = 2;
const CLOSE: &str = "\n]\n";

/// Maximum bytes of events that wait for the end of a submission.
const WAITING: usize = 1 << 16;

/// The process's timeline.
#[derive(Debug)]
struct Timeline {
    start: Instant,
    path: PathBuf,
    devices: AtomicUsize,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: File,
    /// The offset of the next event: the end of the list.
    end: u64,
    /// Events that are not in the file yet, separated by commas.
    waiting: String,
    is_empty: bool,
    /// The error after which nothing more is written.
    failed: Option<String>,
}

impl Timeline {
    /// A file for this process only: if another process writes to `path`, the process number is added to the name.
    fn create(path: &Path) -> io::Result<Self> {
        let (file, path) = match own(path)? {
            Some(file) => (file, path.to_owned()),
            None => {
                let path = with_number(path);
                (own(&path)?.ok_or(io::ErrorKind::WouldBlock)?, path)
            }
        };
        file.set_len(0)?;
        file.write_all_at(EMPTY, 0)?;
        let written = Written { file, end: FIRST, waiting: String::new(), is_empty: true, failed: None };
        Ok(Self { start: Instant::now(), path, devices: AtomicUsize::new(0), written: Mutex::new(written) })
    }

    /// Adds an event in the format's JSON.
    fn add(&self, event: std::fmt::Arguments<'_>) {
        let mut written = self.written.lock();
        if written.failed.is_some() {
            return;
        }
        let comma = if std::mem::take(&mut written.is_empty) { "" } else { ",\n" };
        // Writing to a string cannot fail.
        let _ = write!(written.waiting, "{comma}{event}");
        if written.waiting.len() > WAITING {
            written.write();
        }
    }
}

impl Written {
    /// Writes the waiting events to the file.
    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let len = self.waiting.len() as u64;
        self.waiting.push_str(CLOSE);
        match self.file.write_all_at(self.waiting.as_bytes(), self.end) {
            Ok(()) => self.end += len,
            Err(error) => self.failed = Some(error.to_string()),
        }
        self.waiting.clear();
    }
}

/// Opens and locks the file; `None` if another process writes to it.
fn own(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// `a.json` → `a.PROCESS.json`.
fn with_number(path: &Path) -> PathBuf {
    let number = std::process::id().to_string();
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.display())),
        None => path.with_extension(number),
    }
}

/// The timeline of this process, if `SPELTER_TRACE` is set. Each device warns if it cannot be written.
fn timeline(owner: Owner) -> Option<Arc<Timeline>> {
    static TIMELINE: OnceLock<Result<Arc<Timeline>, String>> = OnceLock::new();
    let path = Options::get().trace.as_ref()?;
    let create = || Timeline::create(path).map(Arc::new).map_err(|error| error.to_string());
    match TIMELINE.get_or_init(create) {
        Ok(timeline) => Some(Arc::clone(timeline)),
        Err(error) => {
            unwritable(owner, path, error);
            None
        }
    }
}

/// Warns that the timeline cannot be written, which fails no call.
fn unwritable(owner: Owner, path: &Path, error: &str) {
    let text = format!("SPELTER_TRACE: the timeline {} cannot be written: {error}", path.display());
    message::warn(owner, "spelter-trace", text);
}

/// The events of a device on the timeline of its process.
#[derive(Debug)]
pub(crate) struct Trace {
    timeline: Arc<Timeline>,
    /// A suffix for the names of its rows: empty for the first device, which is the only one of most programs.
    suffix: String,
}

impl Trace {
    /// For a device of the instance, if the environment asks for a timeline.
    pub(crate) fn of_device(owner: Owner) -> Option<Self> {
        timeline(owner).map(Self::new)
    }

    fn new(timeline: Arc<Timeline>) -> Self {
        // Relaxed: the numbers only have to differ.
        let suffix = match timeline.devices.fetch_add(1, Ordering::Relaxed) {
            0 => String::new(),
            before => format!(" of device {}", before + 1),
        };
        Self { timeline, suffix }
    }

    fn event(&self, process: &str, thread: usize, name: &str, start: Instant, end: Instant) {
        let at = start.saturating_duration_since(self.timeline.start);
        let long = end.saturating_duration_since(start);
        self.timeline.add(format_args!(
            r#"{{"ph":"X","pid":"{process}{}","tid":{thread},"name":"{}","ts":{:.3},"dur":{:.3}}}"#,
            self.suffix,
            clean(name),
            at.as_secs_f64() * 1e6,
            long.as_secs_f64() * 1e6,
        ));
    }

    /// A label of a queue that ends now, on a row beside the queue's submissions: its times are those of the submitting
    /// thread.
    pub(crate) fn label(&self, queue: usize, name: &str, start: Instant) {
        self.event("labels of queues", queue, name, start, Instant::now());
        self.write();
    }

    /// A label that was inserted into a queue: an event without a duration.
    pub(crate) fn mark(&self, queue: usize, name: &str) {
        let now = Instant::now();
        self.event("labels of queues", queue, name, now, now);
    }

    /// Names the rows of a queue.
    pub(crate) fn name_queue(&self, queue: usize, name: &str) {
        for process in ["queues", "labels of queues"] {
            self.timeline.add(format_args!(
                r#"{{"ph":"M","pid":"{process}{}","tid":{queue},"name":"thread_name","args":{{"name":"{}"}}}}"#,
                self.suffix,
                clean(name),
            ));
        }
    }

    fn write(&self) {
        self.timeline.written.lock().write();
    }

    /// Writes the remaining events of a destroyed device, and warns if the timeline could not be written.
    pub(crate) fn finish(&self, owner: Owner) {
        self.write();
        // Without the lock: a messenger may call Vulkan, which adds events.
        let failed = self.timeline.written.lock().failed.clone();
        if let Some(error) = failed {
            unwritable(owner, &self.timeline.path, &error);
        }
    }
}

/// A name that needs no escapes in JSON.
fn clean(name: &str) -> String {
    name.replace(['"', '\\'], "'").replace(char::is_control, " ")
}

impl Observer for Trace {
    fn worked(&self, worker: usize, what: &str, units: u64, start: Instant, end: Instant) {
        self.event("workers", worker, &format!("{what} ({units})"), start, end);
    }

    fn ran(&self, queue: usize, serial: u64, start: Instant, end: Instant) {
        self.event("queues", queue, &format!("submission {serial}"), start, end);
        // Before the end of the submission is signalled, after which the program may exit.
        self.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("spelter-trace-{}-{name}.json", std::process::id()))
    }

    #[test]
    fn the_file_is_always_a_complete_list() {
        let path = path("list");
        std::fs::write(&path, "something that is longer than an empty list").unwrap();
        let timeline = Arc::new(Timeline::create(&path).unwrap());
        let read = || std::fs::read_to_string(&path).unwrap();
        let is_list = |text: &str| text.starts_with("[\n{") && text.ends_with("}\n]\n") && !text.contains(",\n]");
        assert_eq!(read(), "[\n]\n");
        let (first, second) = (Trace::new(Arc::clone(&timeline)), Trace::new(timeline));
        let now = Instant::now();
        first.worked(1, "a \"kernel\"", 3, now, now);
        assert_eq!(read(), "[\n]\n", "events wait for their submission");
        first.ran(0, 7, now, now);
        let text = read();
        assert!(is_list(&text) && text.contains("a 'kernel' (3)") && text.contains("submission 7"), "{text}");
        second.ran(0, 8, now, now);
        let text = read();
        assert!(is_list(&text) && text.matches("\"ph\"").count() == 3, "{text}");
        assert!(text.contains("queues of device 2"), "{text}");
        (0..2000).for_each(|unit| second.worked(0, "many", unit, now, now));
        let text = read();
        assert!(is_list(&text) && text.contains("many (9)"), "many events do not wait: {text}");
        second.write();
        assert!(is_list(&read()) && read().contains("many (1999)"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn two_processes_write_two_files() {
        let path = path("shared");
        // A lock through another open file description acts as one of another process.
        let first = Timeline::create(&path).unwrap();
        let second = Timeline::create(&path).unwrap();
        assert_eq!(first.path, path);
        assert!(second.path != path && second.path.extension() == path.extension(), "{:?}", second.path);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&second.path).unwrap();
    }
}
