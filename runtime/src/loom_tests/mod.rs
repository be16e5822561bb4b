//! The protocols between threads under every interleaving that loom can think of: the code of `serial.rs` and `journal.rs`
//! here, that of `replace/backing.rs`, `gate.rs` and `memory/spares.rs` in `replace/loom_tests.rs`, with a cell in place of
//! an object's bytes. Loom reports two accesses to it that nothing orders. "What threads agree on" in the book's
//! architecture names the model of each rule.
//!
//!     RUSTFLAGS="--cfg loom" cargo test -p spelter --release --lib --target-dir target/loom loom_tests

mod contexts;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use crate::object::ObjectId;
use crate::replace::Object;
use crate::serial::{Clock, First, Flight, Moment, Serial, Usage};

/// A batch of a queue that retires when the test says so.
#[derive(Clone, Debug)]
pub(crate) struct TestFlight {
    queue: Arc<AtomicU64>,
    serial: u64,
    line: usize,
}

impl Flight for TestFlight {
    type Line = usize;

    fn is_over(&self) -> bool {
        self.queue.load(Ordering::Acquire) >= self.serial
    }

    fn precedes(&self, line: &usize) -> bool {
        self.line == *line
    }
}

pub(crate) type TestClock = Arc<Clock<TestFlight>>;

/// A context with a queue of its own.
pub(crate) struct Line {
    pub(crate) clock: TestClock,
    queue: Arc<AtomicU64>,
}

impl Line {
    pub(crate) fn new(number: u64) -> Self {
        Self { clock: Arc::new(Clock::new(number, number as usize)), queue: Arc::new(AtomicU64::new(0)) }
    }

    pub(crate) fn submit(&self, serial: Serial) {
        let flight = TestFlight { queue: Arc::clone(&self.queue), serial, line: self.clock.line };
        self.clock.submit(serial, flight);
    }

    /// As the driver does when a batch is done.
    pub(crate) fn retire(&self, serial: Serial) {
        self.queue.store(serial, Ordering::Release);
    }
}

/// An object: how it is used, and its bytes.
pub(crate) struct Stored {
    pub(crate) usage: Usage<TestFlight>,
    bytes: UnsafeCell<u32>,
}

impl Object for Stored {
    type Flight = TestFlight;

    fn id(&self) -> ObjectId {
        ObjectId(0)
    }

    fn usage(&self) -> &Usage<TestFlight> {
        &self.usage
    }
}

impl Stored {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { usage: Usage::default(), bytes: UnsafeCell::new(0) })
    }

    /// What a batch does with it. Loom tests whether anything orders it against other accesses.
    pub(crate) fn run(&self) {
        self.bytes.with_mut(|_| ());
    }
}

pub(crate) fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

pub(crate) fn done(first: First<TestFlight>) -> Moment<TestFlight> {
    match first {
        First::Done(moment) => moment,
        First::Submitted(moment) => panic!("{moment:?} is in nobody's way"),
    }
}
