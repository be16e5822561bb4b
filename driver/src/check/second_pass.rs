//! The bound of what follows a dispatch: it runs again, and the axioms are asked. That may take far longer than the
//! dispatch did, and is no fault of the kernel, so it does not count against the time limit of the device. It has a
//! bound of its own instead, for all replays together; what they recorded until then is decided.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use spelter_locks::Mutex;
use spelter_shaders::check::observer::Observer;

use super::bounded::{Bounded, WorkLimit};

/// What the replays of a dispatch observe, at most.
const MAX_WORK: u64 = 1 << 28;

/// How long all of it may take beside some times the dispatch's own time: kernels that are observed little run as fast
/// as before.
const MAX_TIME: Duration = Duration::from_secs(20);
const TIMES: u32 = 4;

/// What is observed of a dispatch that was stopped, and may have no end, and how long it may run then: a program that
/// ends when its device is lost waits five seconds for reports.
const MAX_STOPPED_WORK: u64 = 1 << 21;
const MAX_STOPPED_TIME: Duration = Duration::from_secs(4);

/// The bound of all replays of a dispatch.
pub(super) struct SecondPass<'a> {
    running: Mutex<RunningPass>,
    /// The flag of the device.
    device: &'a AtomicU32,
    /// What they may yet observe.
    left: Cell<u64>,
    started: Instant,
    time: Duration,
}

/// What is to be stopped.
struct RunningPass {
    is_over: bool,
    /// The flag at which the kernel looks that runs now.
    stop: Arc<AtomicU32>,
}

/// Ends the pass, on any thread.
pub(super) struct End<'p>(&'p Mutex<RunningPass>);

impl<'a> SecondPass<'a> {
    /// For a dispatch that ended after so long.
    pub(super) fn of_ended(elapsed: Duration, device: &'a AtomicU32) -> Self {
        Self::new(MAX_WORK, MAX_TIME.saturating_add(elapsed.saturating_mul(TIMES)), device)
    }

    /// For a dispatch that was stopped after so long. The flag of the device is set.
    pub(super) fn of_stopped(elapsed: Duration) -> Self {
        static NEVER: AtomicU32 = AtomicU32::new(0);
        Self::new(MAX_STOPPED_WORK, elapsed.min(MAX_STOPPED_TIME), &NEVER)
    }

    fn new(work: u64, time: Duration, device: &'a AtomicU32) -> Self {
        let running = RunningPass { is_over: false, stop: Arc::default() };
        Self { running: Mutex::new(running), device, left: Cell::new(work), started: Instant::now(), time }
    }

    /// How long it may take.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// The flag that stops it, too.
    pub(super) fn device(&self) -> &'a AtomicU32 {
        self.device
    }

    /// Whether the device stopped it.
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: the flag orders no other memory.
        self.device.load(Ordering::Relaxed) != 0
    }

    /// Whether nothing may run again.
    pub(super) fn is_over(&self) -> bool {
        self.running.lock().is_over
    }

    /// Whether what was recorded has had as much time to be decided, too.
    pub(super) fn is_late(&self) -> bool {
        self.started.elapsed() > self.time.saturating_mul(2)
    }

    /// What ends it.
    pub(super) fn end(&self) -> End<'_> {
        End(&self.running)
    }

    /// A replay begins, which may observe so much.
    pub(super) fn begin(&self, limit: u64) -> Bound<'_> {
        let stop = Arc::new(AtomicU32::new(0));
        let mut running = self.running.lock();
        running.stop = Arc::clone(&stop);
        if running.is_over {
            // Relaxed: the flag orders no other memory.
            stop.store(1, Ordering::Relaxed);
        }
        drop(running);
        let limit = limit.min(self.left.get());
        Bound { pass: self, stop, limit, left: limit, calls: 0 }
    }
}

impl End<'_> {
    pub(super) fn now(&self) {
        let mut running = self.0.lock();
        running.is_over = true;
        // Relaxed: the flag orders no other memory.
        running.stop.store(1, Ordering::Relaxed);
    }
}

/// The bound of one replay.
pub(super) struct Bound<'p> {
    pass: &'p SecondPass<'p>,
    stop: Arc<AtomicU32>,
    limit: u64,
    left: u64,
    calls: u64,
}

impl Bound<'_> {
    /// The flag at which the kernel looks.
    pub(super) fn stop(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.stop)
    }

    /// The calls so far: of several invocations that do something together there is one.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// What was observed: a barrier of a workgroup counts for each of its invocations.
    pub(super) fn observed(&self) -> u64 {
        self.limit - self.left
    }

    /// An observer that stops the kernel when the work is done, or when the device stops.
    pub(super) fn observe<'o>(&'o mut self, observer: &'o mut dyn Observer) -> Bounded<'o, ReplayLimit<'o>> {
        let Self { pass, stop, left, calls, .. } = self;
        Bounded { observer, limit: ReplayLimit { left, calls }, stop, device: pass.device }
    }
}

impl Drop for Bound<'_> {
    fn drop(&mut self) {
        let left = self.pass.left.get() - self.observed();
        self.pass.left.set(left);
        if left == 0 {
            self.pass.end().now();
        }
    }
}

/// The limit of one replay, and of all.
pub(super) struct ReplayLimit<'o> {
    left: &'o mut u64,
    calls: &'o mut u64,
}

impl WorkLimit for ReplayLimit<'_> {
    #[inline]
    fn observe(&mut self, work: u64) -> bool {
        *self.calls += 1;
        *self.left = self.left.saturating_sub(work);
        *self.left > 0
    }
}

/// Whether a dispatch is being examined that has run already, for the watchdog. Relaxed: it orders no other memory, and
/// a change that is seen late makes a difference of one check of the watchdog's.
#[derive(Debug, Default)]
pub(super) struct Examining(AtomicBool);

impl Examining {
    pub(super) fn set(&self, examining: bool) {
        self.0.store(examining, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::check::observer::{Invocation, NoObserver};

    use super::*;

    /// How many observations it takes until the kernel is to stop.
    fn stops_after(bound: &mut Bound<'_>) -> Option<u32> {
        let stop = bound.stop();
        let mut nothing = NoObserver;
        let mut bounded = bound.observe(&mut nothing);
        (0..100).find(|_| {
            let is_set = stop.load(Ordering::Relaxed) != 0;
            bounded.end(Invocation { workgroup: 0, local: 0 });
            is_set
        })
    }

    #[test]
    fn a_replay_stops_at_its_limit_and_all_stop_at_that_of_the_pass() {
        let device = AtomicU32::new(0);
        let pass = SecondPass::new(12, Duration::ZERO, &device);
        assert_eq!(stops_after(&mut pass.begin(5)), Some(5));
        assert!(!pass.is_over());
        assert_eq!(stops_after(&mut pass.begin(u64::MAX)), Some(7));
        assert!(pass.is_over());
        assert_eq!(stops_after(&mut pass.begin(u64::MAX)), Some(0));
    }

    #[test]
    fn what_runs_and_what_comes_after_stops_when_the_pass_ends() {
        let device = AtomicU32::new(0);
        let pass = SecondPass::new(u64::MAX, Duration::ZERO, &device);
        let mut bound = pass.begin(u64::MAX);
        assert_eq!(stops_after(&mut bound), None);
        pass.end().now();
        assert_eq!(stops_after(&mut bound), Some(0));
        assert_eq!(stops_after(&mut pass.begin(9)), Some(0));
    }

    #[test]
    fn the_device_stops_a_replay() {
        let device = AtomicU32::new(1);
        let pass = SecondPass::new(u64::MAX, Duration::ZERO, &device);
        assert_eq!(stops_after(&mut pass.begin(u64::MAX)), Some(1));
        assert!(pass.is_stopped());
    }
}
