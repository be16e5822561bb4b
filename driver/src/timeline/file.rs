//! A timeline as a file, which is written while the program runs, after each submission: many programs end without
//! destroying their devices, and some are killed. After each write the file is a complete list.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use spelter_locks::{Mutex, PerProcess};

use super::{DeviceTimeline, Timeline};
use crate::exec::{Chunk, CommandId, Observer, SemaphoreSignal, SemaphoreWait, SubmissionId, SubmissionSize};

/// A file without events; the offset of the first event; the text after the last one.
const EMPTY: &[u8] = b"[\n]\n";
const FIRST: u64 = 2;
const CLOSE: &str = "\n]\n";

/// Maximum bytes of events that wait for the end of a submission.
const WAITING: usize = 1 << 16;

/// A timeline and its file, of any number of devices.
#[derive(Debug)]
struct TimelineFile {
    timeline: Arc<Timeline>,
    path: PathBuf,
    written: Mutex<WrittenFile>,
}

#[derive(Debug)]
struct WrittenFile {
    file: File,
    /// The offset of the next event: the end of the list.
    end: u64,
    /// The error after which nothing more is written.
    failed: Option<String>,
}

impl WrittenFile {
    fn write(&mut self, text: &str, at: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(text.as_bytes())
    }
}

impl TimelineFile {
    /// The file of this process with this name, which its devices share. It stays open until the process ends, so that
    /// later devices add to it. The error of the first attempt is that of all.
    fn of_process(path: &Path) -> Result<Arc<Self>, String> {
        type Files = BTreeMap<PathBuf, Result<Arc<TimelineFile>, String>>;
        static FILES: PerProcess<Mutex<Files>> = PerProcess::new(Mutex::default);
        let mut files = FILES.get().lock();
        let create = || Self::create(path).map(Arc::new).map_err(|error| error.to_string());
        files.entry(path.to_owned()).or_insert_with(create).clone()
    }

    /// A file for this process only: if another process writes to `path`, the process number is added to the name.
    fn create(path: &Path) -> io::Result<Self> {
        let (mut file, path) = create_own(path)?;
        file.set_len(0)?;
        file.write_all(EMPTY)?;
        let written = Mutex::new(WrittenFile { file, end: FIRST, failed: None });
        Ok(Self { timeline: Timeline::new(), path, written })
    }

    /// Writes the events that wait to the file.
    fn write(&self) {
        let mut written = self.written.lock();
        let mut text = self.timeline.drain();
        if text.is_empty() || written.failed.is_some() {
            return;
        }
        if written.end > FIRST {
            text.insert_str(0, ",\n");
        }
        let len = text.len() as u64;
        text.push_str(CLOSE);
        let end = written.end;
        match written.write(&text, end) {
            Ok(()) => written.end += len,
            Err(error) => written.failed = Some(error.to_string()),
        }
    }
}

/// Opens and locks a file for this process only: if another process writes to `path`, the process number is added to
/// the name. Returns the name too.
pub fn create_own(path: &Path) -> io::Result<(File, PathBuf)> {
    match own(path)? {
        Some(file) => Ok((file, path.to_owned())),
        None => {
            let path = with_number(path);
            Ok((own(&path)?.ok_or(io::ErrorKind::WouldBlock)?, path))
        }
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

/// The events of a device on the timeline in a file: an [`Observer`] for
/// [`Device::with_observer`](crate::Device::with_observer).
#[derive(Debug)]
pub struct DeviceTimelineFile {
    file: Arc<TimelineFile>,
    device: Arc<DeviceTimeline>,
}

impl DeviceTimelineFile {
    /// For the next device of this process, whose devices share the file. If another process writes to a file of this
    /// name, the process number is added to the name. The error is a text that says why the file cannot be written.
    pub fn new(path: &Path) -> Result<Self, String> {
        TimelineFile::of_process(path).map(Self::on).map_err(|error| unwritable(path, &error))
    }

    fn on(file: Arc<TimelineFile>) -> Self {
        // Arrows begin where the program submits: a command buffer is recorded once and may be submitted often.
        let device = file.timeline.device(false);
        Self { file, device }
    }

    /// A label of a queue that ends now, on a row beside the queue's submissions: its times are those of the submitting
    /// thread.
    pub fn label(&self, queue: usize, name: &str, start: Instant) {
        self.device.queue_label(queue, name, start);
        self.file.write();
    }

    /// A label that was inserted into a queue: an event without a duration.
    pub fn mark(&self, queue: usize, name: &str) {
        self.device.queue_label(queue, name, Instant::now());
    }

    /// Names the rows of all workers.
    pub fn name_workers(&self, count: usize) {
        self.device.name_workers(count);
    }

    /// Names the rows of a queue.
    pub fn name_queue(&self, queue: usize, name: &str) {
        self.device.name_queue(queue, name);
    }

    /// Writes the remaining events of a device that ends. If the timeline could not be written, now or before, returns
    /// why.
    pub fn finish(&self) -> Result<(), String> {
        self.file.write();
        match &self.file.written.lock().failed {
            Some(error) => Err(unwritable(&self.file.path, error)),
            None => Ok(()),
        }
    }
}

/// Says that the timeline cannot be written.
fn unwritable(path: &Path, error: &str) -> String {
    format!("the timeline {} cannot be written: {error}", path.display())
}

impl Observer for DeviceTimelineFile {
    fn submitted(&self, submission: SubmissionId, size: SubmissionSize, start: Instant) {
        self.device.submitted(submission, size, start);
    }

    fn synchronized(&self, submission: SubmissionId, waits: &[SemaphoreWait], signals: &[SemaphoreSignal]) {
        self.device.synchronized(submission, waits, signals);
    }

    fn host_signals(&self, signal: SemaphoreSignal) {
        self.device.host_signals(signal);
    }

    fn sets_event(&self, command: Option<CommandId>, event: u64) {
        self.device.sets_event(command, event);
    }

    fn waited_for_events(&self, command: CommandId, events: &[u64]) {
        self.device.waited_for_events(command, events);
    }

    fn misses(&self, earlier: CommandId, later: CommandId, rule: &str) {
        self.device.misses(earlier, later, rule);
    }

    fn working(&self, worker: usize, busy: bool) {
        self.device.working(worker, busy);
    }

    fn worked(&self, chunk: &Chunk<'_>) {
        self.device.worked(chunk);
        if self.file.timeline.waiting() > WAITING {
            self.file.write();
        }
    }

    fn ran(&self, submission: SubmissionId, done: bool, start: Instant, end: Instant) {
        self.device.ran(submission, done, start, end);
        // Before the end of the submission is signalled, after which the program may exit.
        self.file.write();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("spelter-trace-{}-{name}.json", std::process::id()))
    }

    fn work(trace: &DeviceTimelineFile, name: &str, serial: u64) {
        let (now, submission) = (Instant::now(), SubmissionId { queue: 0, serial });
        let command = CommandId { submission, recording: 0, phase: 0, command: 0 };
        trace.worked(&Chunk { worker: 1, command, name, dispatch: None, bytes: 4, units: 3, start: now, end: now });
    }

    fn end(trace: &DeviceTimelineFile, serial: u64) {
        let now = Instant::now();
        trace.ran(SubmissionId { queue: 0, serial }, true, now, now);
    }

    #[test]
    fn the_file_is_always_a_complete_list() {
        let path = path("list");
        std::fs::write(&path, "something that is longer than an empty list".repeat(100)).unwrap();
        let file = Arc::new(TimelineFile::create(&path).unwrap());
        let read = || std::fs::read_to_string(&path).unwrap();
        let is_list = |text: &str| text.starts_with("[\n{") && text.ends_with("}\n]\n") && !text.contains(",\n]");
        assert_eq!(read(), "[\n]\n");
        let (first, second) = (DeviceTimelineFile::on(Arc::clone(&file)), DeviceTimelineFile::on(file));
        work(&first, "a \"kernel\"", 7);
        assert_eq!(read(), "[\n]\n", "events wait for their submission");
        end(&first, 7);
        let text = read();
        assert!(is_list(&text) && text.contains(r#""a \"kernel\"""#) && text.contains("submission 7"), "{text}");
        end(&second, 8);
        let text = read();
        assert!(is_list(&text) && text.contains("queues of device 2") && text.contains("submission 8"), "{text}");
        (0..2000).for_each(|_| work(&second, "many", 9));
        let text = read();
        assert!(is_list(&text) && text.contains("many"), "many events do not wait: {text}");
        second.file.write();
        assert!(is_list(&read()));
        assert_eq!(read().matches("\"many\"").count(), 2000);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn two_processes_write_two_files() {
        let path = path("shared");
        // A lock through another open file description acts as one of another process.
        let first = TimelineFile::create(&path).unwrap();
        let second = TimelineFile::create(&path).unwrap();
        assert_eq!(first.path, path);
        assert!(second.path != path && second.path.extension() == path.extension(), "{:?}", second.path);
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(&second.path).unwrap();
    }
}
