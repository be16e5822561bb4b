//! Records the accesses and dependencies of each command in the log when the command runs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::FixedState;
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::Site;

use super::dispatch_runs::DispatchRuns;
use super::events::{Barrier, SyncEvent};
use super::order::Point;
use super::pairs::SeenRaces;
use super::race::CommandAccesses;
use super::report::{self, CommandInfo};
use super::scope::{Accesses, Side, Stage, Stages};
use super::signalled::Signal;
use super::touched::Touched;
use super::transfer::{Transfer, transfers};
use super::{Access, Current, LogState};
use crate::check::checker::Checker;
use crate::check::names::{KernelNames, WorkgroupGrid};
use crate::exec::{self, CommandId, Recording, Work};
use crate::sync::Counter;

/// The barriers of a dependency as the log has them.
pub(super) fn barriers(of: &[exec::MemoryDependency]) -> Arc<[Barrier]> {
    let one = |barrier: &exec::MemoryDependency| Barrier {
        src: Side::source(barrier.src),
        dst: Side::destination(barrier.dst),
        memory: barrier.memory.clone(),
        ownership: barrier.ownership,
    };
    of.iter().map(one).collect()
}

impl LogState {
    /// The commands of a phase before this one that did not run: indirect dispatches without workgroups, which read
    /// their counts all the same.
    pub(super) fn skip(
        &mut self,
        checker: &Checker,
        id: CommandId,
        recording: &Recording,
        submitted: u64,
        before: usize,
    ) {
        let Some(commands) = recording.phases.get(id.phase) else { return };
        let phase = CommandId { command: 0, ..id };
        let position = self.positions.get(&id.submission.queue);
        let next = position.filter(|(known, _)| *known == phase).map_or(0, |(_, next)| *next);
        let before = before.min(commands.len());
        for (command, work) in commands.iter().enumerate().take(before).skip(next) {
            if let Work::Dispatch(_) = work {
                let id = CommandId { command, ..id };
                let current = self.current(id, recording, submitted);
                self.command(checker, &current, work, id, recording);
            }
        }
        self.positions.insert(id.submission.queue, (phase, before.max(next) + 1));
    }

    /// A transfer, an event command, or what the device reads for a dispatch before it starts.
    pub(super) fn command(
        &mut self,
        checker: &Checker,
        current: &Current,
        work: &Work,
        id: CommandId,
        recording: &Recording,
    ) {
        if let Work::Event { event, set: true } = work {
            let barriers = recording.dependencies_at(id.phase, true).flat_map(|dependency| &*dependency.barriers);
            let stages = barriers.fold(Stages::NONE, |all, barrier| all.or(Side::source(barrier.src).stages));
            self.set_event(event, Some(current.queue), (current.submitted, stages));
        }
        let mut all = CommandAccesses::default();
        for Transfer { ranges, stage, access } in transfers(work) {
            let point = Point { queue: Some(current.queue), submitted: current.submitted, stage, access };
            let order = self.order(point, extent(&ranges));
            let access_id = self.access(order, &current.info, None, None);
            all.add(Access { point, id: access_id }, ranges);
        }
        // The regions of a copy are one transfer.
        let place = |command| recording.phases.number(id.phase, command);
        let is_further = id.command.checked_sub(1).is_some_and(|before| place(before) == place(id.command));
        if !all.is_empty() && !is_further && !matches!(work, Work::Dispatch(_)) {
            checker.count(|counts| counts.transfers += 1);
        }
        self.accesses(checker, &all);
    }

    /// An event gets set by a queue, or by the host (`None`), after these stages. It has no effect on one that is set.
    pub(super) fn set_event(&mut self, event: &Arc<Counter>, queue: Option<u32>, (submitted, stages): (u64, Stages)) {
        if event.reached(1) {
            return;
        }
        let object = Arc::as_ptr(event).addr();
        let number = self.events.push(SyncEvent::Set { queue, object, submitted, stages });
        self.signals.counter_signalled(event, 1, Signal::new(number, queue, stages));
    }

    /// Layout transitions read and write the memory of their images, between the scopes of their barriers: those of a
    /// pipeline barrier, or of a wait for events that were set by these signals.
    pub(super) fn transitions(
        &mut self,
        checker: &Checker,
        current: &Current,
        of: &[exec::MemoryDependency],
        signals: Option<&[Signal]>,
    ) {
        for barrier in of.iter().filter(|barrier| barrier.transition) {
            let Some(ranges) = &barrier.memory else { continue };
            // It comes after what the first scope has, and before what the second scope has.
            let Barrier { src, dst, memory, .. } = barriers(std::slice::from_ref(barrier))[0].clone();
            let (queue, submitted, access) = (current.queue, current.submitted, Accesses::TRANSFER_WRITE);
            let itself = Barrier::new(src, Side::of(Stage::LayoutTransition, Accesses::NONE), memory);
            let barriers = [itself].into();
            let number = self.events.push(match signals {
                None => SyncEvent::Barrier { queue, submitted, barriers },
                Some(signals) => SyncEvent::WaitEvents { queue, signals: signals.into(), barriers },
            });
            let point = Point { queue: Some(queue), submitted, stage: Stage::LayoutTransition, access };
            let order = self.order(point, extent(ranges.iter()));
            self.orders[order as usize].order.comes_before_all_of(number, queue, &dst);
            let info = CommandInfo::transition(&current.info);
            let id = self.access(order, &Arc::new(info), None, None);
            let mut seen = SeenRaces::default();
            for range in ranges.iter() {
                self.transition(checker, &Access { point, id }, range.clone(), &mut seen);
            }
            self.report_races(checker, &seen);
        }
    }

    /// What a dispatch touched.
    pub(super) fn touched(
        &mut self,
        checker: &Checker,
        names: &Arc<KernelNames>,
        (buffers, grid): (&[GuestSlice], WorkgroupGrid),
        touched: &Touched,
    ) {
        let runs = DispatchRuns::new(touched);
        let Some(current) = self.current.clone() else { return };
        let info = Arc::new(current.info.of_kernel(names, buffers, grid));
        let extent = runs.extent();
        let mut orders: HashMap<Accesses, u32, FixedState> = HashMap::default();
        let mut known: HashMap<(Site, bool), Access, FixedState> = HashMap::default();
        let mut access = |site, writes| {
            *known.entry((site, writes)).or_insert_with(|| {
                let access = report::access_type(names, touched.reference(site), writes);
                let (queue, submitted) = (Some(current.queue), current.submitted);
                let point = Point { queue, submitted, stage: Stage::ComputeShader, access };
                // Dependencies know stages and types of access, not instructions: one order for all of a type.
                let order = *orders.entry(access).or_insert_with(|| self.order(point, extent.clone()));
                let id = self.access(order, &info, Some(site), names.atomic_bytes(site));
                self.accesses[id as usize - 1].example = touched.example(site);
                Access { point, id }
            })
        };
        let lists = runs.touches().iter().map(|touch| {
            // An instruction that writes may stand for a load, too (`Kernel::updates`): the read is the first of the
            // two.
            let updates = touch.write().filter(|&site| touch.read().is_none() && touched.is_update(site));
            let sites = [(touch.read().or(updates), false), (touch.write(), true)];
            sites.into_iter().filter_map(|(site, writes)| Some(access(site?, writes))).collect()
        });
        let all = CommandAccesses::of_dispatch(lists.collect(), &runs);
        self.accesses(checker, &all);
    }
}

/// A range that contains all of these.
pub(super) fn extent<'a>(ranges: impl IntoIterator<Item = &'a Range<u64>>) -> Range<u64> {
    ranges.into_iter().cloned().reduce(|all, range| all.start.min(range.start)..all.end.max(range.end)).unwrap_or(0..0)
}
