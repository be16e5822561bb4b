//! Commands that access the same memory without a dependency between them.
//!
//! The log follows the commands of all queues in the order in which they run. Of each command it knows the bytes that
//! were accessed: transfers by their regions, dispatches by what their invocations touched. Each access is compared
//! with the last ones to the same bytes (`memory.rs`): unless barriers, semaphores, fences or submissions order them
//! (`order.rs`) and carry the value from one to the other, they race. Nothing is estimated from descriptors.

mod between;
mod chain;
mod clean;
mod dispatch_runs;
mod events;
mod host;
mod kinds;
mod mapped;
mod marks;
mod memory;
mod order;
mod pairs;
mod race;
mod reason;
mod record;
mod repair;
mod repair_trial;
mod report;
mod runs;
mod scope;
mod sets;
mod signalled;
mod signals;
mod touched;
mod transfer;
mod trap;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use smallvec::SmallVec;
use spelter_locks::Mutex;
use spelter_shaders::check::observer::Invocation;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Site;

use super::checker::Checker;
use super::finding::Hazard;
use super::found_command::FoundCommand;
use super::names::{KernelNames, WorkgroupGrid};
use crate::exec::{Batch, CommandId, CommandLog, Recording, SubmissionId, Work};
use crate::memory::Closed;
use crate::sync::{Counter, FenceState};
use events::{SyncEvent, SyncLog};
pub(in crate::check) use kinds::Kinds;
use memory::{AccessId, Cell, Pages};
use order::{Order, Point};
use race::CommandAccesses;
use record::barriers;
use report::{CommandInfo, Missing};
use scope::{Accesses, Stage, Stages};
use sets::Sets;
use signalled::Signal;
use signals::Signals;
pub(in crate::check) use touched::{Both, Touched};
pub(in crate::check) use trap::Trap;

/// The commands of a device, and their dependencies.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    state: Mutex<LogState>,
    /// The command that runs, for findings about it alone. A leaf lock: they are reported with and without the other.
    running: Mutex<Option<Arc<FoundCommand>>>,
}

/// An access of a command, or of one of its instructions.
#[derive(Clone, Debug)]
struct AccessInfo {
    /// Index in the orders.
    order: u32,
    command: Arc<CommandInfo>,
    site: Option<Site>,
    /// The bytes of an atomic whose scope includes other commands.
    atomic: Option<u32>,
    /// An address that it accessed, and an invocation that did.
    example: Option<(u64, Invocation)>,
}

/// Orders that another access may share: of the queues, kinds of commands and reads and writes that take turns.
const RECENT_ORDERS: usize = 8;

/// When the host accessed memory, whether it wrote, and by which instruction.
type HostAccess = (u64, bool, Option<usize>);

/// The order after some accesses of a command, and a range that contains the memory that they touched.
#[derive(Debug)]
struct Ordered {
    order: Order,
    extent: Range<u64>,
}

#[derive(Debug, Default)]
struct LogState {
    events: SyncLog,
    signals: Signals,
    /// The events of the signals that the host has waited for.
    awaited: HashSet<u64, FixedState>,
    /// The event that submitted each batch that is not done.
    submitted: HashMap<SubmissionId, u64, FixedState>,
    cells: Pages<Cell>,
    sets: Sets,
    /// By [`AccessId`], from 1.
    accesses: Vec<AccessInfo>,
    orders: Vec<Ordered>,
    /// The last ones of them, which other accesses may share.
    recent: [u32; RECENT_ORDERS],
    /// The numbers of accesses and of pages at which the log is cleaned next.
    clean_at: (usize, usize),
    current: Option<Current>,
    /// The phase that each queue runs, and the next of its commands.
    positions: HashMap<usize, (CommandId, usize), FixedState>,
    /// Ranges that the host has mapped, and writes to them, or while there are any, that it has not waited for since.
    mapped: Vec<Range<u64>>,
    unread: Vec<AccessId>,
    /// The last access of the host, if nothing happened since: when, whether it writes, by which instruction.
    host: Option<(HostAccess, AccessId)>,
    /// Accesses whose races with the host were reported: by advices, or where the host's accesses are trapped.
    reported: HashSet<AccessId, FixedState>,
    /// Missing dependencies of which observers have not been informed.
    missing: Vec<Missing>,
}

/// The command that runs.
#[derive(Clone, Debug)]
struct Current {
    info: Arc<CommandInfo>,
    queue: u32,
    submitted: u64,
}

/// An access to compare with earlier ones.
#[derive(Clone, Copy, Debug)]
struct Access {
    point: Point,
    id: AccessId,
}

impl Commands {
    /// The host waits successfully for a fence.
    pub(crate) fn waited_for_fence(&self, checker: &Checker, fence: &Arc<FenceState>) {
        let mut state = self.state.lock();
        let signals = state.signals.of_fence(fence);
        state.host_waits(checker, signals);
    }

    /// The host finds that a semaphore has a value, or more.
    pub(crate) fn waited_for_counter(&self, checker: &Checker, counter: &Arc<Counter>, value: u64) {
        let mut state = self.state.lock();
        let signals = state.signals.of_counter(counter, value).counted(checker);
        state.host_waits(checker, signals);
    }

    /// The host waits for all submissions of a queue.
    pub(crate) fn waited_for_queue(&self, checker: &Checker, queue: usize) {
        let mut state = self.state.lock();
        let signals = state.signals.of_queue(queue as u32);
        state.host_waits(checker, signals);
    }

    /// The host finds that a queue has done its submissions up to a serial.
    pub(crate) fn waited_for_submission(&self, checker: &Checker, queue: usize, serial: u64) {
        let mut state = self.state.lock();
        let signals = state.signals.of_submission(queue as u32, serial).counted(checker);
        state.host_waits(checker, signals);
    }

    /// The host maps a range of addresses, or ends the mapping.
    pub(in crate::check) fn maps(&self, checker: &Checker, range: Range<u64>, mapped: bool) {
        let mut state = self.state.lock();
        state.close_mapped(checker, &range, mapped);
        state.map(checker, range, mapped);
    }

    /// The host accesses a byte of a closed page. Returns how much of the page stays closed.
    pub(in crate::check) fn host_touches(
        &self,
        checker: &Checker,
        byte: u64,
        writes: bool,
        instruction: usize,
    ) -> Closed {
        self.state.lock().host_touches(checker, byte, writes, instruction)
    }

    /// The host signals a semaphore.
    pub(crate) fn host_signals(&self, counter: &Arc<Counter>, value: u64) {
        let mut state = self.state.lock();
        let submitted = state.events.push(SyncEvent::Submission { waits: Box::default() });
        let signal = state.signal(None, submitted, Stages::NONE);
        state.signals.counter_signalled(counter, value, signal);
    }

    /// The host sets an event.
    pub(crate) fn host_sets(&self, event: &Arc<Counter>) {
        let mut state = self.state.lock();
        let submitted = state.events.next();
        state.set_event(event, None, (submitted, Stages::of(Stage::Host)));
    }

    /// The host accesses memory.
    pub(in crate::check) fn host_accesses(&self, checker: &Checker, range: Range<u64>, writes: bool) {
        self.state.lock().host_access(checker, range, writes);
    }

    /// Whether the dispatch that runs is a command of a queue.
    pub(in crate::check) fn are_running(&self) -> bool {
        self.state.lock().current.is_some()
    }

    /// The command of a queue that runs.
    pub(in crate::check) fn running(&self) -> Option<Arc<FoundCommand>> {
        self.running.lock().clone()
    }

    /// The dispatch that runs has touched this memory.
    pub(in crate::check) fn touched(
        &self,
        checker: &Checker,
        names: &Arc<KernelNames>,
        (buffers, grid): (&[GuestSlice], WorkgroupGrid),
        touched: &Touched,
    ) {
        checker.count(|counts| counts.commands_forgotten += touched.lost);
        self.state.lock().touched(checker, names, (buffers, grid), touched);
        self.report_missing(checker);
    }

    /// Informs observers of missing dependencies. They may access memory, so that the log must not be locked.
    fn report_missing(&self, checker: &Checker) {
        let missing = std::mem::take(&mut self.state.lock().missing);
        missing.iter().for_each(|missing| checker.misses(missing.earlier, missing.later, missing.rule));
    }

    /// A batch is submitted.
    fn submitted(&self, id: SubmissionId, batch: &Batch) {
        let mut state = self.state.lock();
        let waits = batch.semaphore_stages.as_ref().map(|stages| stages.timeline_values.as_slice().into());
        let event = state.events.push(SyncEvent::Submission { waits: waits.unwrap_or_default() });
        state.submitted.insert(id, event);
    }

    fn started(&self, checker: &Checker, id: SubmissionId, batch: &Batch) {
        let mut state = self.state.lock();
        let queue = Some(id.queue as u32);
        let stages = batch.semaphore_stages.iter().flat_map(|stages| &stages.waits);
        for ((counter, value), stages) in batch.waits.iter().zip(stages) {
            let signals = state.signals.of_counter(counter, *value).counted(checker);
            state.events.push(SyncEvent::Wait { queue, stages: Stages::second_scope(*stages), signals });
        }
    }

    fn phase(&self, checker: &Checker, id: CommandId, recording: &Recording) {
        let mut state = self.state.lock();
        let Some(&submitted) = state.submitted.get(&id.submission) else { return };
        if let Some(phase) = id.phase.checked_sub(1) {
            state.skip(checker, CommandId { phase, ..id }, recording, submitted, usize::MAX);
        }
        let current = state.current(id, recording, submitted);
        let queue = current.queue;
        for dependency in recording.dependencies_at(id.phase, false) {
            state.transitions(checker, &current, &dependency.barriers, None);
            state.events.push(SyncEvent::Barrier { queue, submitted, barriers: barriers(&dependency.barriers) });
        }
        if let Some([Work::WaitEvents(events), ..]) = recording.phases.get(id.phase) {
            for dependency in recording.dependencies_at(id.phase, true) {
                let of = dependency.events.iter().flat_map(|places| &events[places.clone()]);
                let signals: SmallVec<_> = of.flat_map(|event| state.signals.of_event(event, queue)).collect();
                state.transitions(checker, &current, &dependency.barriers, Some(&signals));
                let barriers = barriers(&dependency.barriers);
                state.events.push(SyncEvent::WaitEvents { queue, signals, barriers });
            }
        }
    }

    fn command(&self, checker: &Checker, id: CommandId, recording: &Recording) {
        let mut state = self.state.lock();
        state.clean(checker);
        let Some(&submitted) = state.submitted.get(&id.submission) else { return };
        state.skip(checker, id, recording, submitted, id.command);
        let current = state.current(id, recording, submitted);
        state.current = Some(current.clone());
        *self.running.lock() = current.info.found();
        state.command(checker, &current, &recording.phases[id.phase][id.command], id, recording);
    }

    fn ended(&self, checker: &Checker, id: SubmissionId, batch: &Batch) {
        let mut state = self.state.lock();
        state.current = None;
        *self.running.lock() = None;
        let Some(submitted) = state.submitted.remove(&id) else { return };
        let queue = id.queue as u32;
        let all = state.signal(Some(queue), submitted, Stages::COMMANDS);
        state.signals.batch_ended(id, all, batch.fence.as_ref());
        let stages = batch.semaphore_stages.iter().flat_map(|stages| &stages.signals);
        for ((counter, value), stages) in batch.signals.iter().zip(stages) {
            let signal = state.signal(Some(queue), submitted, Stages::first_scope(*stages));
            state.signals.counter_signalled(counter, *value, signal);
        }
        state.clean(checker);
    }
}

impl CommandLog for Checker {
    fn submitted(&self, id: SubmissionId, batch: &Batch) {
        self.commands().submitted(id, batch);
    }

    fn started(&self, id: SubmissionId, batch: &Batch) {
        self.commands().started(self, id, batch);
    }

    fn phase(&self, id: CommandId, recording: &Recording) {
        self.commands().phase(self, id, recording);
        self.commands().report_missing(self);
    }

    fn command(&self, id: CommandId, recording: &Recording) {
        self.commands().command(self, id, recording);
        self.commands().report_missing(self);
    }

    fn ended(&self, id: SubmissionId, batch: &Batch) {
        self.commands().ended(self, id, batch);
    }

    fn is_examining(&self) -> bool {
        self.examining.get()
    }
}

impl LogState {
    fn host_waits(&mut self, checker: &Checker, mut signals: SmallVec<[Signal; 2]>) {
        signals.retain(|signal| self.awaited.insert(signal.event));
        if !signals.is_empty() {
            self.events.push(SyncEvent::Wait { queue: None, stages: Stages::NONE, signals });
            self.advise(checker);
        }
    }

    /// A semaphore or a fence is signalled after these stages.
    fn signal(&mut self, queue: Option<u32>, submitted: u64, stages: Stages) -> Signal {
        Signal::new(self.events.push(SyncEvent::Signal { queue, submitted, stages }), queue, stages)
    }

    fn current(&self, id: CommandId, recording: &Recording, submitted: u64) -> Current {
        let info = Arc::new(CommandInfo::new(id, recording));
        Current { info, queue: id.submission.queue as u32, submitted }
    }

    /// A new access of a command; those of one command and kind share an order.
    fn access(&mut self, order: u32, command: &Arc<CommandInfo>, site: Option<Site>, atomic: Option<u32>) -> AccessId {
        self.accesses.push(AccessInfo { order, command: Arc::clone(command), site, atomic, example: None });
        let id = self.accesses.len() as AccessId;
        let at = self.orders[order as usize].order.at;
        if !self.mapped.is_empty() && at.queue.is_some() && at.access.writes() {
            self.unread.push(id);
        }
        id
    }

    /// An order for accesses that happen now: those between the same dependencies share one if they are alike.
    fn order(&mut self, point: Point, extent: Range<u64>) -> u32 {
        let next = self.events.next();
        let known =
            self.recent.iter().copied().find(|&order| {
                self.orders.get(order as usize).is_some_and(|ordered| ordered.order.is_of(&point, next))
            });
        if let Some(order) = known {
            let both = &mut self.orders[order as usize].extent;
            *both = both.start.min(extent.start)..both.end.max(extent.end);
            return order;
        }
        self.orders.push(Ordered { order: Order::new(point, next), extent });
        let order = (self.orders.len() - 1) as u32;
        self.recent.rotate_right(1);
        self.recent[0] = order;
        order
    }

    /// The host accesses memory.
    fn host_access(&mut self, checker: &Checker, range: Range<u64>, writes: bool) {
        if !range.is_empty() {
            let access = self.by_host(checker, writes, None);
            self.accesses(checker, &CommandAccesses::one(access, range));
        }
    }

    /// An access of the host that happens now, by an instruction of the program if it is known.
    fn by_host(&mut self, checker: &Checker, writes: bool, instruction: Option<usize>) -> Access {
        self.clean(checker);
        let access = if writes { Accesses::HOST_WRITE } else { Accesses::HOST_READ };
        let now = self.events.next();
        let point = Point { queue: None, submitted: now, stage: Stage::Host, access };
        let key = (now, writes, instruction);
        let id = match self.host {
            // It has no memory that a barrier could concern, so that its extent is of no use.
            Some((known, id)) if known == key => id,
            _ => {
                let order = self.order(point, 0..u64::MAX);
                let id = self.access(order, &trap::host_at(instruction), None, None);
                self.host = Some((key, id));
                id
            }
        };
        Access { point, id }
    }
}
