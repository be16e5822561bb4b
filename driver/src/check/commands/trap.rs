//! Traps on accesses of the host through mapped pointers: their pages are protected (`--host=trap`).
//!
//! Pages of mapped memory are closed when a command accesses them, for writes if the command reads, for all if it
//! writes. An access of the host to a closed page is compared as one of [`crate::DeviceMemory::read`] is. A page opens
//! when nothing in it races with the host any more, or what does was reported.

use std::ops::Range;
use std::sync::Arc;

use super::memory::PAGE;
use super::order::Point;
use super::race::CommandAccesses;
use super::report::CommandInfo;
use super::scope::{Accesses, Stage};
use super::{Access, Checker, LogState};
use crate::memory::{Closed, HostView, place_of};

/// Bytes that one instruction of the host accesses at most.
const MAX_INSTRUCTION_BYTES: u64 = 64;

/// The host's view of a heap.
#[derive(Debug)]
pub(in crate::check) struct Trap {
    pub(in crate::check) view: Arc<HostView>,
    /// The address of the heap for commands.
    pub(in crate::check) base: u64,
}

impl Trap {
    fn offsets(&self, range: &Range<u64>) -> Range<u64> {
        range.start.saturating_sub(self.base)..range.end.saturating_sub(self.base)
    }
}

impl LogState {
    /// Closes what commands access of mapped memory.
    pub(super) fn close(&self, checker: &Checker, list: &CommandAccesses<'_>) {
        let Some(trap) = &checker.trap else { return };
        list.each(|access, range| {
            if access.point.queue.is_none() {
                return;
            }
            let wanted = if access.point.access.writes() { Closed::ForAll } else { Closed::ForWrites };
            for mapped in &self.mapped {
                let both = range.start.max(mapped.start)..range.end.min(mapped.end);
                if both.start < both.end {
                    trap.view.close(trap.offsets(&both), wanted);
                }
            }
        });
    }

    /// Memory is mapped, or no longer.
    pub(super) fn close_mapped(&mut self, checker: &Checker, range: &Range<u64>, mapped: bool) {
        let Some(trap) = &checker.trap else { return };
        if !mapped {
            return trap.view.open(trap.offsets(range));
        }
        let mut page = range.start & !(PAGE - 1);
        while page < range.end {
            let wanted = self.closed(&(page..page + PAGE));
            if wanted != Closed::Open {
                trap.view.close(trap.offsets(&(page..page + PAGE)), wanted);
            }
            page += PAGE;
        }
    }

    /// The host accesses a byte of a closed page. Returns how much of the page stays closed.
    pub(super) fn host_touches(&mut self, checker: &Checker, byte: u64, writes: bool, instruction: usize) -> Closed {
        let now = self.by_host(checker, writes, Some(instruction));
        let cell = self.cells.at(byte);
        for id in self.accesses_of(cell) {
            let conflicts = writes || self.writes(id);
            if conflicts && self.lack(id, &now, &(byte..byte + 1)).is_some() {
                self.reported.insert(id);
            }
        }
        self.compare_all(checker, &CommandAccesses::one(now, byte..byte + 1));
        // How many bytes the instruction writes is not known: what it may write is the host's from now on, so that
        // nothing is reported in vain.
        let max = if writes { MAX_INSTRUCTION_BYTES } else { 1 };
        let end = (byte + max).min((byte & !(PAGE - 1)) + PAGE);
        self.place(checker, &CommandAccesses::one(now, byte..end));
        self.closed(&(byte & !(PAGE - 1)..(byte & !(PAGE - 1)) + PAGE))
    }

    /// An access that the host may make now.
    fn expected(&self, access: Accesses) -> Access {
        let submitted = self.events.next();
        Access { point: Point { queue: None, submitted, stage: Stage::Host, access }, id: 0 }
    }

    /// How much of a page must be closed to the host.
    fn closed(&mut self, page: &Range<u64>) -> Closed {
        let (read, write) = (self.expected(Accesses::HOST_READ), self.expected(Accesses::HOST_WRITE));
        let (mut closed, mut runs) = (Closed::Open, Vec::new());
        self.runs(page.clone(), &mut runs);
        for (run, cell) in runs {
            for id in self.accesses_of(cell) {
                if self.reported.contains(&id) {
                    continue;
                }
                if self.writes(id) && self.lack(id, &read, &run).is_some() {
                    return Closed::ForAll;
                }
                if self.lack(id, &write, &run).is_some() {
                    closed = Closed::ForWrites;
                }
            }
        }
        closed
    }
}

/// The host, where an instruction of it is known.
pub(super) fn host_at(instruction: Option<usize>) -> Arc<CommandInfo> {
    CommandInfo::host(instruction.map(place_of))
}
