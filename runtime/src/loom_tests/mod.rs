//! The protocols between threads under every interleaving that loom explores: the code of `serial.rs`, `journal.rs`,
//! `holds.rs`, `events.rs` and `callbacks.rs` here, that of `replace/backing.rs`, `gate.rs` and `memory/spares.rs` in
//! `replace/loom_tests.rs`, that of `set/place.rs` in `replace/loom_tests/sets.rs`, that of `recordings.rs` in
//! `replace/loom_commands.rs`, and that of `commands/current.rs` in `commands/loom_tests.rs`. A cell stands for an
//! object's bytes; loom reports two accesses to it that are not ordered. "What threads agree on" in the book's
//! architecture names the model of each rule.
//!
//!     RUSTFLAGS="--cfg loom" cargo test -p spelter --release --lib --target-dir target/loom loom_tests

mod callbacks;
mod contexts;
mod watch;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::ids::{ObjectId, Serial};
use crate::serial::{Clock, MustPrecede, Object, SubmittedBatch, TimelinePoint, Usage};

/// A submitted batch that the test retires.
#[derive(Clone, Debug)]
pub(crate) struct TestSubmission {
    queue: Arc<AtomicU64>,
    serial: u64,
    queue_index: usize,
}

impl SubmittedBatch for TestSubmission {
    type Queue = usize;

    fn is_over(&self) -> bool {
        self.queue.load(Ordering::Acquire) >= self.serial
    }

    fn precedes(&self, queue: &usize) -> bool {
        self.queue_index == *queue
    }
}

pub(crate) type TestClock = Arc<Clock<TestSubmission>>;

/// A context with a queue of its own.
pub(crate) struct TestContext {
    pub(crate) clock: TestClock,
    queue: Arc<AtomicU64>,
}

impl TestContext {
    pub(crate) fn new(number: u64) -> Self {
        Self { clock: Arc::new(Clock::new(number, number as usize)), queue: Arc::new(AtomicU64::new(0)) }
    }

    pub(crate) fn submit(&self, serial: Serial) {
        let submission = TestSubmission { queue: Arc::clone(&self.queue), serial, queue_index: self.clock.queue };
        self.clock.submit(serial, submission);
    }

    /// Retires a batch, as the driver does when it is done.
    pub(crate) fn retire(&self, serial: Serial) {
        self.queue.store(serial, Ordering::Release);
    }
}

/// An object: its usage and its bytes.
pub(crate) struct Stored {
    pub(crate) usage: Usage<TestSubmission>,
    bytes: UnsafeCell<u32>,
}

impl Object for Stored {
    type Submission = TestSubmission;

    fn id(&self) -> ObjectId {
        // Its address: tests compare only objects that are alive.
        ObjectId(std::ptr::from_ref(self).addr() as u64)
    }

    fn usage(&self) -> &Usage<TestSubmission> {
        &self.usage
    }
}

impl Stored {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { usage: Usage::default(), bytes: UnsafeCell::new(0) })
    }

    /// An access of a batch. Loom tests that it is ordered against other accesses.
    pub(crate) fn run(&self) {
        self.bytes.with_mut(|_| ());
    }
}

pub(crate) fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

pub(crate) fn done(first: MustPrecede<TestSubmission>) -> TimelinePoint<TestSubmission> {
    match first {
        MustPrecede::Done(point) => point,
        MustPrecede::Submitted(point) => panic!("{point:?} does not conflict"),
    }
}
