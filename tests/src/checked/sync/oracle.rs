//! The axioms without the detector: words that invocations share are recorded, and each is decided.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cranelift_entity::PrimaryMap;
use spelter_driver::check::{AccessFilter, Candidate, Dispatch, Recorder, Undecided, Verdict, Word, confirm};
use spelter_shaders::abi::{DispatchArgs, Outcome, SUBGROUP_SIZE};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::{Invocation, Memory, Observer, Target};
use spelter_shaders::compile::{Backend, Checked, Checks, compile_checked};
use spelter_shaders::ir::{AtomicOp, Kernel, MemoryModel, Scope, Site, SiteAction, SiteData};
use spelter_shaders::schedule::Schedule;

use super::Memory as Contents;

/// Words that are decided, at most: of more, these many are taken at equal distances.
const MAX_WORDS: usize = 4096;

/// Bytes of a recording.
const BUDGET: usize = 1 << 28;

/// What the axioms say to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// Every pair of conflicting accesses is ordered.
    Ordered,
    /// Some pairs could not be decided, and no other one races.
    Undecided,
    /// Two accesses race.
    Racy,
}

/// A kernel whose executions the axioms judge.
#[derive(Debug)]
pub(super) struct Oracle {
    all: Checked,
    /// Plain accesses count as non-private, as in the detector's lenient profile.
    lenient: bool,
}

impl Oracle {
    /// Instruments a kernel. If it is `lenient`, private accesses count as non-private in modules that the profile
    /// `common` does so for.
    pub(super) fn new(kernel: &Kernel, lenient: bool) -> Self {
        let all = compile_checked(kernel, Backend::Interpreter, Checks::All);
        let plain = |action: SiteAction| match action {
            SiteAction::Read(site) | SiteAction::Write(site) => Some(site),
            _ => None,
        };
        let none = !all.kernel.sites.values().filter_map(|site| plain(site.action)).any(|site| site.non_private);
        let lenient = lenient && (kernel.memory_model != MemoryModel::Vulkan || none);
        Self { all, lenient }
    }

    /// What the axioms say to the execution in the order of a schedule.
    pub(super) fn answer(&self, contents: &Contents, schedule: Schedule, args: &DispatchArgs<'_>) -> Answer {
        let mut shared = Shared { sites: &self.all.kernel.sites, words: HashMap::new() };
        if self.run(contents, schedule, args, &mut shared) != Outcome::Done {
            return Answer::Undecided;
        }
        let all = shared.conflicts();
        let words: Vec<Word> = all.iter().copied().step_by(all.len().div_ceil(MAX_WORDS).max(1)).collect();
        let mut recorder = Recorder::new(words.iter().copied(), BUDGET);
        recorder.begin(Dispatch {
            sites: Arc::new(self.sites()),
            subgroup_size: SUBGROUP_SIZE,
            references: (0..args.buffers.len() as u32).collect(),
        });
        if self.run(contents, schedule, args, &mut recorder) != Outcome::Done {
            return Answer::Undecided;
        }
        let log = recorder.finish();
        let mut answer = Answer::Ordered;
        for &word in &words {
            let candidate = Candidate { word, first: AccessFilter::default(), second: AccessFilter::default() };
            match confirm(&log, &candidate) {
                Verdict::Confirmed(_) => return Answer::Racy,
                // The accesses of the word conflict in no byte.
                Verdict::Refuted | Verdict::Undecided(Undecided::NotReproduced) => {}
                Verdict::Undecided(_) => answer = answer.max(Answer::Undecided),
            }
        }
        answer
    }

    fn sites(&self) -> PrimaryMap<Site, SiteData> {
        let mut sites = self.all.kernel.sites.clone();
        for site in sites.values_mut().filter(|_| self.lenient) {
            if let SiteAction::Read(access) | SiteAction::Write(access) = &mut site.action {
                access.non_private = true;
            }
        }
        sites
    }

    fn run(
        &self,
        contents: &Contents,
        schedule: Schedule,
        args: &DispatchArgs<'_>,
        observer: &mut dyn Observer,
    ) -> Outcome {
        contents.load();
        let count = args.num_workgroups.iter().map(|&count| u64::from(count)).product();
        let workgroups = Workgroups::new(0..count, args.num_workgroups, [0; 3]).scheduled(schedule);
        self.all.code.run_observed(args, workgroups, &mut Scratch::default(), observer)
    }
}

/// The words of an execution.
struct Shared<'a> {
    sites: &'a PrimaryMap<Site, SiteData>,
    words: HashMap<Word, Use>,
}

/// How a word is used.
struct Use {
    first: Invocation,
    several: bool,
    written: bool,
}

impl Shared<'_> {
    fn touch(&mut self, by: Invocation, site: Site, target: Target) {
        let writes = match self.sites[site].action {
            SiteAction::Write(_) => true,
            SiteAction::Atomic { op, .. } => op != AtomicOp::Load,
            _ => false,
        };
        let first = match target.memory {
            Memory::Device(address) => address,
            Memory::Workgroup(offset) => offset.into(),
        };
        for at in (first & !3..first + u64::from(target.bytes.max(1))).step_by(4) {
            let word = match target.memory {
                Memory::Device(_) => Word::Device(at),
                Memory::Workgroup(_) => Word::Workgroup { dispatch: 0, workgroup: by.workgroup, offset: at as u32 },
            };
            let known = self.words.entry(word).or_insert(Use { first: by, several: false, written: false });
            known.several |= known.first != by;
            known.written |= writes;
        }
    }

    /// The words that several invocations access and one writes, in order.
    fn conflicts(&self) -> BTreeSet<Word> {
        let shared = self.words.iter().filter(|(_, used)| used.several && used.written);
        shared.map(|(word, _)| *word).collect()
    }
}

impl Observer for Shared<'_> {
    fn access(&mut self, by: Invocation, site: Site, target: Target) {
        self.touch(by, site, target);
    }

    fn atomic(&mut self, by: Invocation, site: Site, target: Target, _: bool) {
        self.touch(by, site, target);
    }

    fn fence(&mut self, _: Invocation, _: Site) {}

    fn arrive(&mut self, _: Invocation, _: Site) {}

    fn release(&mut self, _: u64, _: Scope, _: Option<u32>) {}

    fn end(&mut self, _: Invocation) {}
}
