//! The detector against the axioms: the races of an execution that it does not propose, and what it proposes in vain.

use spelter_shaders::check::observer::{Invocation, Memory, Observer, Target};
use spelter_shaders::check::{Agents, Candidate, Detector, Launch, Limits, Profile};
use spelter_shaders::ir::{Scope, Site};

use super::{Execution, Program, Schedule};

/// What the detector proposed for an execution, compared with the races that the axioms see in it.
#[derive(Clone, Debug, Default)]
pub struct Detection {
    /// Races of the execution.
    pub races: usize,
    /// Those whose later event has no candidate at a common byte: a defect of the detector.
    pub missed: Vec<(usize, usize)>,
    /// Those whose later event has such candidates, but the pairs that these name are no races.
    pub hidden: Vec<(usize, usize)>,
    /// Candidates.
    pub candidates: usize,
    /// Those that name no race, with the event, and are to be refuted.
    pub refuted: Vec<(usize, Candidate)>,
}

/// Bytes of records of a detector that forgets them again and again: of a few nodes.
const FORGETFUL: u64 = 400;

/// Tells the detector, and at which event it found each candidate.
struct Listener {
    detector: Detector,
    event: usize,
    /// Candidates of each kind so far.
    counts: Vec<usize>,
    found: Vec<(usize, Candidate)>,
}

impl Listener {
    fn after_event(&mut self) {
        let kinds = self.detector.candidates();
        self.counts.resize(kinds.len(), 0);
        for (kind, count) in kinds.iter().zip(&mut self.counts) {
            self.found.extend(kind.examples[*count..].iter().map(|candidate| (self.event, *candidate)));
            *count = kind.examples.len();
        }
        self.event += 1;
    }
}

impl Observer for Listener {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.detector.access(by, site, target);
        self.after_event();
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, wrote: bool) {
        self.detector.atomic(by, site, target, wrote);
        self.after_event();
    }

    fn fence(&mut self, by: Invocation, site: Site) {
        self.detector.fence(by, site);
        self.after_event();
    }

    fn arrive(&mut self, by: Invocation, site: Site) {
        self.detector.arrive(by, site);
        self.after_event();
    }

    fn release(&mut self, workgroup: u64, execution: Scope, subgroup: Option<u32>) {
        self.detector.release(workgroup, execution, subgroup);
    }

    fn end(&mut self, by: Invocation) {
        self.detector.end(by);
    }
}

impl Detection {
    /// Runs a program under a schedule.
    pub fn of(program: &Program, schedule: Schedule) -> (Self, Execution) {
        let launch = Launch {
            workgroup_size: program.shape.invocations,
            subgroup_size: program.shape.subgroup_size,
            vulkan_model: true,
        };
        // Some detectors forget what orders the accesses so far again and again.
        let records = if schedule.seed.is_multiple_of(4) { FORGETFUL } else { u64::MAX };
        let limits = Limits { bytes: 64 << 20, records, kinds: usize::MAX, examples: usize::MAX };
        let detector = Detector::new(&program.sites, launch, Profile::Spec, limits);
        let mut listener = Listener { detector, event: 0, counts: Vec::new(), found: Vec::new() };
        let execution = program.run(schedule, &mut listener);
        let found = listener.found;
        let races = execution.races();
        let names = |(at, candidate): &(usize, Candidate), first: usize, second: usize| {
            *at == second && execution.touches(first, candidate.memory) && execution.is_among(first, candidate)
        };
        let is_race = |candidate: &(usize, Candidate)| races.iter().any(|&(a, b)| names(candidate, a, b));
        let (confirmed, refuted): (Vec<_>, Vec<_>) = found.iter().copied().partition(is_race);
        // A candidate names one byte of a word; the other bytes of the word may have been accessed by others.
        let at = |list: &[(usize, Candidate)], first: usize, second: usize| {
            list.iter().any(|(event, candidate)| *event == second && execution.touches_word(first, candidate.memory))
        };
        let missing = |list: &[(usize, Candidate)]| {
            races.iter().copied().filter(|&(first, second)| !at(list, first, second)).collect::<Vec<_>>()
        };
        let missed = missing(&found);
        let mut hidden = missing(&confirmed);
        hidden.retain(|race| !missed.contains(race));
        (Self { races: races.len(), missed, hidden, candidates: found.len(), refuted }, execution)
    }
}

impl Execution {
    /// Whether the event accesses the byte.
    fn touches(&self, event: usize, memory: Memory) -> bool {
        self.targets[event].is_some_and(|target| match (target.memory, memory) {
            (Memory::Device(start), Memory::Device(at)) => at.wrapping_sub(start) < u64::from(target.bytes),
            (Memory::Workgroup(start), Memory::Workgroup(at)) => at.wrapping_sub(start) < target.bytes,
            _ => false,
        })
    }

    /// Whether the event accesses a byte of the word.
    pub(super) fn touches_word(&self, event: usize, memory: Memory) -> bool {
        (0..4).any(|byte| {
            self.touches(
                event,
                match memory {
                    Memory::Device(at) => Memory::Device((at & !3) + byte),
                    Memory::Workgroup(at) => Memory::Workgroup((at & !3) + byte as u32),
                },
            )
        })
    }

    /// Whether the event's agent is one of those that the candidate names for the earlier access.
    fn is_among(&self, event: usize, candidate: &Candidate) -> bool {
        let by = self.by[event];
        match candidate.first.agents {
            Agents::Invocation { invocation, .. } => invocation == by,
            Agents::Subgroup { workgroup, subgroup, .. } => {
                workgroup == by.workgroup && subgroup == by.local / self.subgroup_size
            }
            Agents::Workgroup { workgroup, .. } => workgroup == by.workgroup,
            Agents::Several { .. } => true,
        }
    }
}
