//! Commands that access the same memory without a dependency between them.
//!
//! The log follows the commands of all queues in the order in which they run. Of each command it knows the bytes that
//! were accessed: transfers by their regions, dispatches by what their invocations touched. Each access is compared with
//! the last ones to the same bytes ([`memory`]): unless barriers, semaphores, fences or submissions order them ([`order`])
//! and carry the value from one to the other, they race. Nothing is estimated from descriptors.

mod memory;
mod order;
mod race;
mod report;
mod scope;
mod signals;
mod touched;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use smallvec::SmallVec;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Site;

use super::checker::Checker;
use super::finding::Hazard;
use super::names::KernelNames;
use crate::exec::{self, Batch, CommandId, CommandLog, Groups, Recording, SubmissionId, Work};
use crate::query::QueryCommand;
use crate::sync::{Counter, FenceState};
use memory::{AccessId, Cell, Pages, ReadSets};
use order::{Barrier, Event, Events, Order, Point};
use report::CommandInfo;
use scope::{Accesses, Side, Stage, Stages};
use signals::Signals;
pub(in crate::check) use touched::{Both, Touched};

/// Accesses and pages that are known before those that nothing can race with any more are dropped.
const MAX_ACCESSES: usize = 1 << 14;

/// Accesses that are kept at most: if more may still race, all are forgotten.
const MAX_LIVE: usize = 1 << 20;

/// The commands of a device, and their dependencies.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    state: Mutex<State>,
}

/// An access of a command, or of one of its instructions.
#[derive(Clone, Debug)]
struct AccessInfo {
    /// Index in the orders.
    order: u32,
    command: Arc<CommandInfo>,
    site: Option<Site>,
    /// Whether it is an atomic whose scope includes other commands.
    atomic: bool,
}

/// The order after some accesses of a command, and a range that contains the memory that they touched.
#[derive(Debug)]
struct Ordered {
    order: Order,
    extent: Range<u64>,
}

#[derive(Debug, Default)]
struct State {
    events: Events,
    signals: Signals,
    /// The signals that the host has waited for.
    awaited: HashSet<u64, FixedState>,
    /// The event that submitted each batch that is not done.
    submitted: HashMap<SubmissionId, u64, FixedState>,
    cells: Pages<Cell>,
    sets: ReadSets,
    /// By [`AccessId`], from 1.
    accesses: Vec<AccessInfo>,
    orders: Vec<Ordered>,
    /// The numbers of accesses and of pages at which the log is cleaned next.
    clean_at: (usize, usize),
    current: Option<Current>,
    /// The last access of the host, if nothing happened since.
    host: Option<(u64, bool, AccessId)>,
}

/// The command that runs.
#[derive(Clone, Debug)]
struct Current {
    info: Arc<CommandInfo>,
    queue: u32,
    submitted: u64,
}

/// An access to compare with earlier ones: where its order is, who makes it.
#[derive(Clone, Debug)]
struct Access {
    point: Point,
    id: AccessId,
}

impl Commands {
    /// The host waits successfully for a fence.
    pub(crate) fn waited_for_fence(&self, fence: &Arc<FenceState>) {
        let mut state = self.state.lock();
        let signals = state.signals.of_fence(fence);
        state.host_waits(signals);
    }

    /// The host finds that a semaphore has a value, or more.
    pub(crate) fn waited_for_counter(&self, counter: &Arc<Counter>, value: u64) {
        let mut state = self.state.lock();
        let signals = state.signals.of_counter(counter, value);
        state.host_waits(signals);
    }

    /// The host waits for all submissions of a queue.
    pub(crate) fn waited_for_queue(&self, queue: usize) {
        let mut state = self.state.lock();
        let signals = state.signals.of_queue(queue as u32);
        state.host_waits(signals);
    }

    /// The host finds that a queue has done its submissions up to a serial.
    pub(crate) fn waited_for_submission(&self, queue: usize, serial: u64) {
        let mut state = self.state.lock();
        let signals = state.signals.of_submission(queue as u32, serial);
        state.host_waits(signals);
    }

    /// The host signals a semaphore.
    pub(crate) fn host_signals(&self, counter: &Arc<Counter>, value: u64) {
        let mut state = self.state.lock();
        let submitted = state.events.push(Event::Submission);
        let signal = state.events.push(Event::Signal { queue: None, submitted, stages: Stages::NONE });
        state.signals.counter_signalled(counter, value, u32::MAX, signal);
    }

    /// The host accesses memory.
    pub(in crate::check) fn host_accesses(&self, checker: &Checker, range: Range<u64>, writes: bool) {
        self.state.lock().host_accesses(checker, range, writes);
    }

    /// The dispatch that runs has touched this memory.
    pub(in crate::check) fn touched(
        &self,
        checker: &Checker,
        names: &Arc<KernelNames>,
        buffers: &[GuestSlice],
        touched: &Touched,
    ) {
        checker.count(|counts| counts.accesses_not_checked += touched.lost);
        self.state.lock().touched(checker, names, buffers, touched);
    }

    /// A batch is submitted.
    fn submitted(&self, id: SubmissionId) {
        let mut state = self.state.lock();
        let event = state.events.push(Event::Submission);
        state.submitted.insert(id, event);
    }

    fn started(&self, id: SubmissionId, batch: &Batch) {
        let mut state = self.state.lock();
        let queue = Some(id.queue as u32);
        for ((counter, value), stages) in batch.waits.iter().zip(&batch.wait_stages) {
            let signals = state.signals.of_counter(counter, *value);
            let scope = exec::Scope { stages: *stages, access: Default::default() };
            state.events.push(Event::Wait { queue, stages: Side::destination(scope).stages, signals });
        }
    }

    fn phase(&self, checker: &Checker, id: CommandId, recording: &Recording) {
        let mut state = self.state.lock();
        let Some(&submitted) = state.submitted.get(&id.submission) else { return };
        let current = state.current(id, recording, submitted);
        let queue = current.queue;
        for dependency in recording.dependencies_at(id.phase, false) {
            state.transitions(checker, &current, &dependency.barriers);
            state.events.push(Event::Barrier { queue, submitted, barriers: barriers(&dependency.barriers) });
        }
        if let Some([Work::WaitEvents(events), ..]) = recording.phases.get(id.phase) {
            let signals: SmallVec<_> = events.iter().flat_map(|event| state.signals.of_counter(event, 1)).collect();
            for dependency in recording.dependencies_at(id.phase, true) {
                state.transitions(checker, &current, &dependency.barriers);
                let (signals, barriers) = (signals.clone(), barriers(&dependency.barriers));
                state.events.push(Event::WaitEvents { queue, signals, barriers });
            }
        }
    }

    fn command(&self, checker: &Checker, id: CommandId, recording: &Recording) {
        let mut state = self.state.lock();
        state.clean(checker);
        let Some(&submitted) = state.submitted.get(&id.submission) else { return };
        let current = state.current(id, recording, submitted);
        state.current = Some(current.clone());
        state.command(checker, &current, &recording.phases[id.phase][id.command], id, recording);
    }

    fn ended(&self, id: SubmissionId, batch: &Batch) {
        let mut state = self.state.lock();
        state.current = None;
        let Some(submitted) = state.submitted.remove(&id) else { return };
        let queue = id.queue as u32;
        let all = state.events.push(Event::Signal { queue: Some(queue), submitted, stages: Stages::COMMANDS });
        state.signals.batch_ended(id, all, batch.fence.as_ref());
        for ((counter, value), stages) in batch.signals.iter().zip(&batch.signal_stages) {
            let scope = exec::Scope { stages: *stages, access: Default::default() };
            let stages = Side::source(scope).stages;
            let signal = state.events.push(Event::Signal { queue: Some(queue), submitted, stages });
            state.signals.counter_signalled(counter, *value, queue, signal);
        }
    }
}

impl CommandLog for Checker {
    fn submitted(&self, id: SubmissionId, _: &Batch) {
        self.commands().submitted(id);
    }

    fn started(&self, id: SubmissionId, batch: &Batch) {
        self.commands().started(id, batch);
    }

    fn phase(&self, id: CommandId, recording: &Recording) {
        self.commands().phase(self, id, recording);
    }

    fn command(&self, id: CommandId, recording: &Recording) {
        self.commands().command(self, id, recording);
    }

    fn ended(&self, id: SubmissionId, batch: &Batch) {
        self.commands().ended(id, batch);
    }
}

fn barriers(of: &[exec::Barrier]) -> Arc<[Barrier]> {
    let one = |barrier: &exec::Barrier| Barrier {
        src: Side::source(barrier.src),
        dst: Side::destination(barrier.dst),
        memory: barrier.memory.clone(),
    };
    of.iter().map(one).collect()
}

impl State {
    fn host_waits(&mut self, mut signals: SmallVec<[u64; 2]>) {
        signals.retain(|signal| self.awaited.insert(*signal));
        if !signals.is_empty() {
            self.events.push(Event::Wait { queue: None, stages: Stages::NONE, signals });
        }
    }

    fn current(&self, id: CommandId, recording: &Recording, submitted: u64) -> Current {
        let info = Arc::new(CommandInfo::new(id, recording));
        Current { info, queue: id.submission.queue as u32, submitted }
    }

    /// A new access of a command; those of one command and kind share an order.
    fn access(&mut self, order: u32, command: &Arc<CommandInfo>, site: Option<Site>, atomic: bool) -> AccessId {
        self.accesses.push(AccessInfo { order, command: Arc::clone(command), site, atomic });
        self.accesses.len() as AccessId
    }

    fn order(&mut self, point: Point, extent: Range<u64>) -> u32 {
        self.orders.push(Ordered { order: Order::new(point, self.events.next()), extent });
        (self.orders.len() - 1) as u32
    }

    fn host_accesses(&mut self, checker: &Checker, range: Range<u64>, writes: bool) {
        if range.is_empty() {
            return;
        }
        self.clean(checker);
        let access = if writes { Accesses::HOST_WRITE } else { Accesses::HOST_READ };
        let now = self.events.next();
        let point = Point { queue: None, submitted: now, stage: Stage::Host, access };
        let id = match self.host {
            // It has no memory that a barrier could concern, so that its extent is of no use.
            Some((then, wrote, id)) if (then, wrote) == (now, writes) => id,
            _ => {
                let order = self.order(point, 0..u64::MAX);
                let id = self.access(order, &CommandInfo::host(), None, false);
                self.host = Some((now, writes, id));
                id
            }
        };
        self.accesses(checker, &Access { point, id }, range);
    }

    /// What a transfer, or the command processor for a dispatch, accesses.
    fn command(&mut self, checker: &Checker, current: &Current, work: &Work, id: CommandId, recording: &Recording) {
        let of = |slice: &GuestSlice, len: u64| {
            let start = slice.address() as u64;
            start..start.saturating_add(slice.len().min(len))
        };
        let rows = |grid: &exec::Grid, bytes: u64| -> Vec<Range<u64>> {
            let start = grid.slice.address() as u64;
            let mut list: Vec<Range<u64>> = Vec::new();
            for row in 0..grid.rows {
                let at = start.saturating_add(grid.at(row));
                match list.last_mut() {
                    Some(last) if last.end == at => last.end = at.saturating_add(bytes),
                    _ => list.push(at..at.saturating_add(bytes)),
                }
            }
            list
        };
        let (read, write) = (Accesses::TRANSFER_READ, Accesses::TRANSFER_WRITE);
        let mut list: Vec<(Vec<Range<u64>>, Stage, Accesses)> = Vec::new();
        match work {
            Work::Dispatch(dispatch) => {
                if let Groups::Indirect(slice) = &dispatch.groups {
                    list.push((vec![of(slice, 12)], Stage::DrawIndirect, Accesses::INDIRECT_READ));
                }
            }
            Work::Copy { from, to } => {
                list.push((vec![of(from, to.len())], Stage::Copy, read));
                list.push((vec![of(to, from.len())], Stage::Copy, write));
            }
            Work::Fill { to, .. } => list.push((vec![of(to, to.len() & !3)], Stage::Clear, write)),
            Work::Update { to, bytes } => list.push((vec![of(to, bytes.len() as u64)], Stage::Clear, write)),
            Work::Rows(work) => {
                let from = exec::Grid { rows: work.to.rows, ..work.from };
                list.push((rows(&from, work.row_bytes), Stage::Copy, read));
                list.push((rows(&work.to, work.row_bytes), Stage::Copy, write));
            }
            Work::Clear(work) => list.push((rows(&work.to, work.row.len() as u64), Stage::Clear, write)),
            Work::Query(query) => {
                if let QueryCommand::Copy { .. } = &query.what {
                    list.push((query.written(), Stage::Copy, write));
                }
            }
            Work::Event { event, set } => {
                if *set {
                    self.set_event(event, current, id, recording);
                }
            }
            Work::WaitEvents(_) => {}
        }
        for (ranges, stage, access) in list {
            let ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
            let extent = extent(&ranges);
            let point = Point { queue: Some(current.queue), submitted: current.submitted, stage, access };
            let order = self.order(point, extent);
            let id = self.access(order, &current.info, None, false);
            for range in ranges {
                self.accesses(checker, &Access { point, id }, range);
            }
        }
    }

    /// `vkCmdSetEvent`: the first scopes of its dependencies.
    fn set_event(&mut self, event: &Arc<Counter>, current: &Current, id: CommandId, recording: &Recording) {
        let barriers = recording.dependencies_at(id.phase, true).flat_map(|dependency| &*dependency.barriers);
        let stages = barriers.fold(Stages::NONE, |all, barrier| all.or(Side::source(barrier.src).stages));
        let (queue, submitted) = (Some(current.queue), current.submitted);
        let signal = self.events.push(Event::Signal { queue, submitted, stages });
        self.signals.counter_signalled(event, 1, current.queue, signal);
    }

    /// Layout transitions read and write the memory of their images, between the scopes of their barriers.
    fn transitions(&mut self, checker: &Checker, current: &Current, of: &[exec::Barrier]) {
        for barrier in of.iter().filter(|barrier| barrier.transition) {
            let Some(ranges) = &barrier.memory else { continue };
            // It comes after what the first scope has, as if a command of the stages of the second scope did it.
            let one = barriers(std::slice::from_ref(barrier));
            let (queue, submitted) = (current.queue, current.submitted);
            self.events.push(Event::Barrier { queue, submitted, barriers: one.clone() });
            let Some(stage) = one[0].dst.stages.iter().next() else { continue };
            let access = Accesses::TRANSFER_WRITE;
            let point = Point { queue: Some(queue), submitted, stage, access };
            let order = self.order(point, extent(ranges));
            self.orders[order as usize].order.comes_before_all_of(queue, &one[0].dst);
            let info = CommandInfo::transition(&current.info);
            let id = self.access(order, &Arc::new(info), None, false);
            for range in ranges.iter() {
                self.transition(checker, &Access { point, id }, range.clone());
            }
        }
    }

    /// What a dispatch touched.
    fn touched(&mut self, checker: &Checker, names: &Arc<KernelNames>, buffers: &[GuestSlice], touched: &Touched) {
        let Some(current) = self.current.clone() else { return };
        let info = Arc::new(current.info.of_kernel(names, buffers));
        let mut runs = Vec::new();
        touched.runs(|range, touch| runs.push((range, touch)));
        let whole = runs.iter().map(|(range, _)| range.clone());
        let extent = whole.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)).unwrap_or(0..0);
        let mut orders: HashMap<Accesses, u32, FixedState> = HashMap::default();
        let mut ids: HashMap<(Site, bool), Access, FixedState> = HashMap::default();
        for (range, touch) in runs {
            for (site, writes) in [(touch.read(), false), (touch.write(), true)] {
                let Some(site) = site else { continue };
                let access = match ids.get(&(site, writes)) {
                    Some(access) => access.clone(),
                    None => {
                        let access = report::access_type(names, touched.reference(site), writes);
                        let (queue, submitted) = (Some(current.queue), current.submitted);
                        let point = Point { queue, submitted, stage: Stage::ComputeShader, access };
                        let order = match orders.get(&access) {
                            Some(order) => *order,
                            None => self.order(point, extent.clone()),
                        };
                        orders.insert(access, order);
                        let id = self.access(order, &info, Some(site), names.is_atomic(site));
                        let access = Access { point, id };
                        ids.insert((site, writes), access.clone());
                        access
                    }
                };
                self.accesses(checker, &access, range.clone());
            }
        }
    }

    /// Drops accesses that nothing can race with any more, and the dependencies that none follows.
    fn clean(&mut self, checker: &Checker) {
        let (accesses, pages) = self.clean_at;
        if self.accesses.len() < accesses.max(MAX_ACCESSES) && self.cells.len() < pages.max(MAX_ACCESSES) {
            return;
        }
        self.host = None;
        let Self { events, orders, accesses, cells, sets, .. } = self;
        let pending = !self.submitted.is_empty();
        for ordered in &mut *orders {
            ordered.order.follow(events, &ordered.extent);
        }
        // What is submitted already was perhaps submitted before the host knew of an access.
        let live = |id: AccessId| {
            let access = &accesses[id as usize - 1];
            pending || !orders[access.order as usize].order.is_settled()
        };
        let mut numbers: HashMap<AccessId, AccessId, FixedState> = HashMap::default();
        let mut kept = Vec::new();
        let mut number = |id: AccessId| {
            if id == 0 || !live(id) {
                return 0;
            }
            *numbers.entry(id).or_insert_with(|| {
                kept.push(accesses[id as usize - 1].clone());
                kept.len() as AccessId
            })
        };
        let mut new_sets = ReadSets::default();
        cells.change(|cell| {
            let reads: Vec<_> = sets.get(cell.reads).iter().map(|&id| number(id)).filter(|&id| id != 0).collect();
            Cell { write: number(cell.write), reads: new_sets.number(reads.into()) }
        });
        let mut order_numbers: HashMap<u32, u32, FixedState> = HashMap::default();
        let mut old: Vec<_> = std::mem::take(orders).into_iter().map(Some).collect();
        for access in &mut kept {
            let new = order_numbers.entry(access.order).or_insert_with(|| {
                orders.extend(old[access.order as usize].take());
                (orders.len() - 1) as u32
            });
            access.order = *new;
        }
        (*accesses, *sets) = (kept, new_sets);
        if accesses.len() > MAX_LIVE || cells.bytes() > checker.options.memory / 4 {
            checker.count(|counts| counts.commands_forgotten += accesses.len() as u64);
            (*cells, *sets) = (Pages::default(), ReadSets::default());
            accesses.clear();
            orders.clear();
        }
        self.clean_at = (2 * accesses.len(), 2 * cells.len());
        let first = orders.iter().map(|ordered| ordered.order.next()).min().unwrap_or(events.next());
        events.drop_before(first);
        self.signals.clean(events.first());
        self.awaited.retain(|signal| *signal >= first);
    }
}

fn extent(ranges: &[Range<u64>]) -> Range<u64> {
    let start = ranges.iter().map(|range| range.start).min().unwrap_or(0);
    start..ranges.iter().map(|range| range.end).max().unwrap_or(0)
}
