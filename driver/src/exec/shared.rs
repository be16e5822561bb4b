//! State that all threads of one executor share.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use spelter_locks::Computed;
use spelter_shaders::back::Scratch;
use spelter_shaders::host::{Host, Printer};
use spelter_shaders::schedule::Schedule;

use super::board::{Board, Job, Spawn};
use super::cost::Costs;
use super::dependency::CommandLog;
use super::observe::Observer;
use super::phase::{SharedPhase, member_of};
use super::plan::PhasePlan;
use super::queue::QueueState;
use super::watchdog::{Nap, watch};
use super::{ExecutorOptions, TimeLimit};
use crate::sync::primitives::Mutex;
use crate::sync::{Loss, Wake};

/// The right to run kernels, and the memory to do it with. There are as many slots as workers.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Index of the slot, below the number of workers.
    pub(super) number: usize,
    /// Memory of the kernels.
    pub(super) scratch: Scratch,
    /// A plan to reuse, for phases that are run alone.
    pub(super) plan: PhasePlan,
    /// Counter of kernel runs, to measure some of them.
    pub(super) count: u64,
}

/// The clock of kernels: nanoseconds since the first call.
fn nanoseconds() -> u64 {
    static START: Computed<Instant> = Computed::new();
    START.get_or_compute(Instant::now).elapsed().as_nanos() as u64
}

thread_local! {
    /// Number of slots that this thread holds. Such a thread must not wait for workers: they may wait for its slot.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Whether this thread holds a slot of any executor.
pub(super) fn holds_slot() -> bool {
    HELD.get() > 0
}

/// State of an executor; its threads keep it alive.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) board: Board<QueueState, SharedPhase, Box<Slot>>,
    pub(super) costs: Costs,
    pub(super) loss: Arc<Loss>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// For checked mode.
    pub(super) log: Option<Arc<dyn CommandLog>>,
    nap: Nap,
    workers: usize,
    time_limit: TimeLimit,
    schedule: Schedule,
    queues: Mutex<Vec<Weak<QueueState>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Shared {
    pub(super) fn new(
        options: &ExecutorOptions,
        observer: Option<Arc<dyn Observer>>,
        log: Option<Arc<dyn CommandLog>>,
        printer: Option<Printer>,
    ) -> Self {
        let (workers, time_limit) = (options.workers.max(1), options.time_limit);
        let host = Host { clock: nanoseconds, printer };
        let scratch = || Scratch { host: host.clone(), ..Scratch::default() };
        let slots =
            (0..workers).map(|number| Box::new(Slot { number, scratch: scratch(), ..Slot::default() })).collect();
        Self {
            board: Board::new(slots, idle_spin(workers)),
            costs: Costs::new(),
            loss: Arc::default(),
            observer,
            log,
            nap: Nap::new(),
            workers,
            time_limit,
            schedule: options.schedule,
            queues: Mutex::new(Vec::new()),
            threads: Mutex::new(Vec::new()),
        }
    }

    /// Number of threads that may run kernels at once.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    pub(super) fn time_limit(&self) -> TimeLimit {
        self.time_limit
    }

    pub(super) fn schedule(&self) -> Schedule {
        self.schedule
    }

    pub(super) fn nap(&self) -> &Nap {
        &self.nap
    }

    /// The queues that still exist.
    pub(super) fn queues(&self) -> Vec<Arc<QueueState>> {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.iter().filter_map(Weak::upgrade).collect()
    }

    /// Makes the watchdog check a queue.
    pub(super) fn register(&self, queue: &Arc<QueueState>) {
        self.queues.lock().push(Arc::downgrade(queue));
    }

    /// Loses the device: kernels end, waiting threads wake up, and suspended queues retire their batches.
    pub(super) fn lose(&self, why: String) {
        self.loss.lose(why);
        self.queues().into_iter().for_each(Wake::wake);
    }

    /// A slot, if one is free.
    pub(super) fn claim(self: &Arc<Self>) -> Option<SlotGuard> {
        self.board.claim().map(|slot| SlotGuard::new(self, slot))
    }

    /// Calls a conductor for a queue. `false` if no thread exists or can be started.
    pub(super) fn post(self: &Arc<Self>, queue: &Arc<QueueState>) -> bool {
        let spawn = self.board.post(queue);
        self.spawn(spawn)
    }

    /// Starts worker threads. `false` if that failed and there are none at all.
    pub(super) fn spawn(self: &Arc<Self>, Spawn(count): Spawn) -> bool {
        (0..count).all(|_| {
            let shared = Arc::clone(self);
            self.start("spelter-worker", move || work(&shared)) || self.board.spawn_failed()
        })
    }

    /// A conductor starts: the watchdog has to be awake until [`Nap::end`].
    pub(super) fn wake_watchdog(self: &Arc<Self>) {
        if self.nap.begin() {
            let shared = Arc::clone(self);
            if !self.start("spelter-watchdog", move || watch(&shared)) {
                self.nap.start_failed();
            }
        }
    }

    fn start(&self, name: &str, run: impl FnOnce() + Send + 'static) -> bool {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        thread.map(|thread| self.threads.lock().push(thread)).is_ok()
    }

    /// Lets all threads end when no work is left, and joins them unless they may be waiting for this thread.
    pub(super) fn shut(&self) {
        // A forked process has no threads to end, and locks may be held for ever. What the threads own leaks.
        if self.loss.is_forked() {
            return;
        }
        self.board.shut();
        self.nap.close();
        while !holds_slot() {
            let Some(thread) = self.threads.lock().pop() else { break };
            // Workers catch the panics of kernels and of what batches own; any other panic has been reported by its
            // thread.
            let _ = thread.join();
        }
    }
}

/// How long an idle worker spins: shorter if it would take a core from the others.
fn idle_spin(workers: usize) -> Duration {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Duration::from_micros(if workers < cores { 20 } else { 5 })
}

/// A slot in use; given back on drop.
#[derive(Debug)]
pub(super) struct SlotGuard {
    shared: Arc<Shared>,
    /// There until the drop.
    slot: Option<Box<Slot>>,
}

impl SlotGuard {
    fn new(shared: &Arc<Shared>, slot: Box<Slot>) -> Self {
        HELD.set(HELD.get() + 1);
        Self { shared: Arc::clone(shared), slot: Some(slot) }
    }

    /// The slot.
    pub(super) fn slot(&mut self) -> &mut Slot {
        self.slot.get_or_insert_default()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
        if let Some(slot) = self.slot.take() {
            let spawn = self.shared.board.release(slot);
            self.shared.spawn(spawn);
        }
    }
}

/// The main loop of a worker.
fn work(shared: &Arc<Shared>) {
    while let Some((job, slot, spawn)) = shared.board.next() {
        let mut held = SlotGuard::new(shared, slot);
        shared.spawn(spawn);
        match job {
            Job::Conduct(queue) => queue.serve(held.slot()),
            Job::Join(member) => member_of(shared, member, held.slot()),
        }
    }
}
