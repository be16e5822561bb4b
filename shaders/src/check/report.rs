//! Lists of the detector: candidates for races, non-uniform barriers, and notes.

use super::candidate::{
    AddedCandidate, Agents, Candidate, CandidateKind, Cause, Distance, First, NonUniformBarrier, Note, NoteKind, Second,
};
use super::cells::{Cell, Group, Owner};
use super::detector::Detector;
use super::judge::{Now, Verdict};
use super::observer::Invocation;
use super::parts::Parts;
use super::record::place;
use super::words::relation;
use crate::ir::Site;

/// Non-uniform barriers and notes that are listed.
const MAX_LISTED: usize = 256;

impl Detector {
    /// Turns the findings of an access into candidates. The cell is at that address of workgroup or device memory.
    #[cold]
    pub(super) fn report(&mut self, by: Invocation, site: Site, now: &Now, (shared, cell, parts): (bool, u64, Parts)) {
        let command = self.epochs.command();
        let second = Second { command, invocation: by, site };
        let mut findings = std::mem::take(&mut self.findings);
        for (earlier, verdict) in findings.drain(..) {
            let Verdict::Racy(cause) = verdict else { continue };
            let agents = self.agents(earlier.cell);
            let distance = if cause == Cause::Command {
                Distance::Command
            } else if self.workgroup.is_own(earlier.cell, by.local) {
                Distance::Invocation
            } else if self.workgroup.owns(earlier.cell) {
                Distance::Workgroup
            } else {
                Distance::Dispatch
            };
            let relation = relation(&earlier, &now.access);
            let atomic = earlier.atomic.is_some();
            let common = earlier.mask & now.access.mask;
            let byte = common.trailing_zeros().min(3);
            let bytes = parts.bytes((common >> byte).trailing_ones());
            let memory = place(shared, parts.byte(cell + u64::from(byte)));
            let candidate = || Candidate { second, first: First { agents, atomic }, memory, bytes, relation, cause };
            let vague = earlier.cell.0 < self.forgotten || matches!(agents, Agents::Several { .. });
            let kind = CandidateKind { site, command, distance, atomic, relation, cause, vague };
            // Examples have memory that nothing else needs: an eighth of all.
            let has_room = self.candidates.bytes() < self.limits.bytes / 8 && self.candidates.bytes() < self.left();
            match self.candidates.add(kind, (self.limits, has_room), candidate) {
                AddedCandidate::Known => {}
                AddedCandidate::WithoutRoom => self.given_up.examples += 1,
                AddedCandidate::Dropped => self.given_up.candidates += 1,
            }
        }
        // Its memory serves the next findings.
        self.findings = findings;
    }

    /// The agents of a cell.
    fn agents(&self, cell: Cell) -> Agents {
        match self.epochs.owner(cell) {
            None => Agents::Several { command: 0 },
            Some((Owner::Command(command), _)) => Agents::Several { command },
            Some((Owner::Workgroup { command, slot }, layout)) => {
                let workgroup = self.epochs.workgroup_of(command, slot).unwrap_or(0);
                match layout.group(cell) {
                    Group::Invocation(local) => {
                        Agents::Invocation { command, invocation: Invocation { workgroup, local } }
                    }
                    Group::Subgroup(subgroup) => Agents::Subgroup { command, workgroup, subgroup },
                    Group::Workgroup => Agents::Workgroup { command, workgroup },
                }
            }
        }
    }

    #[cold]
    pub(super) fn note(&mut self, kind: NoteKind, invocation: Invocation, site: Site) {
        let command = self.epochs.command();
        let noted = self.notes.iter().any(|note| note.kind == kind && note.second.command == command);
        if !noted && self.notes.len() < MAX_LISTED {
            self.notes.push(Note { kind, second: Second { command, invocation, site } });
        }
    }

    /// Lists a control barrier that is not uniform, once for each pair of sites.
    #[cold]
    pub(super) fn non_uniform(&mut self, waits: u32, site: Site, (other, at): (u32, Option<Site>)) {
        let command = self.epochs.command();
        let invocation = |local| Invocation { workgroup: self.workgroup.workgroup, local };
        let found = NonUniformBarrier { command, site, waits: invocation(waits), other: (invocation(other), at) };
        let same = |old: &NonUniformBarrier| (old.command, old.site, old.other.1) == (command, site, at);
        if self.barriers.iter().any(same) {
            return;
        }
        if self.barriers.len() < MAX_LISTED { self.barriers.push(found) } else { self.given_up.barriers += 1 }
    }
}
