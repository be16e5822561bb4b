//! A trial: a kernel in checked mode, in the orders of several seeds; and what the axioms say to a silent one.

use std::sync::atomic::AtomicU32;

use spelter_driver::check::{CheckOptions, CheckStats, CheckedKernel, Finding, Profile, Severity};
use spelter_shaders::abi::Outcome;
use spelter_shaders::back::Workgroups;
use spelter_shaders::ir::{Kernel, MemoryModel};
use spelter_shaders::schedule::Schedule;

use super::change::Mutant;
use super::oracle::{Answer, Oracle};
use super::subject::{Memory, Subject};
use crate::modules::memory::{Arena, SCALES};

/// What checked mode says to a kernel.
#[derive(Clone, Debug)]
pub struct Report {
    /// Seeds that ran to their end.
    pub seeds: u64,
    /// The first seed with an error, and its errors.
    pub reported: Option<(u64, Vec<Finding>)>,
    /// Warnings of the first seed that has some: what could not be decided.
    pub warnings: Vec<Finding>,
    /// Seeds that had to be stopped: endless loops.
    pub stopped: u64,
    /// All runs in numbers.
    pub stats: CheckStats,
}

/// What became of a mutant.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It was reported at this seed.
    Reported {
        /// The seed.
        seed: u64,
        /// The errors.
        findings: Vec<Finding>,
    },
    /// It was not, and the axioms call no execution racy: what was removed is redundant.
    Ordered {
        /// Whether there were warnings.
        warned: bool,
    },
    /// It was not, and it is racy by the letter of the model only: an idiom that the profile `common` accepts.
    Idiom,
    /// It was not, and the axioms call the execution of this seed racy: a defect of checked mode.
    Missed {
        /// The seed.
        seed: u64,
        /// Whether there were warnings.
        warned: bool,
    },
    /// Neither checked mode nor the axioms could decide.
    Undecided,
    /// It ran endlessly.
    Stopped,
}

impl Verdict {
    /// A name for lists.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reported { .. } => "reported",
            Self::Ordered { warned: false } => "ordered",
            Self::Ordered { warned: true } => "ordered with a warning",
            Self::Idiom => "idiom",
            Self::Missed { warned: false, .. } => "missed",
            Self::Missed { warned: true, .. } => "warning only",
            Self::Undecided => "undecided",
            Self::Stopped => "endless",
        }
    }
}

/// Runs kernels one after the other.
pub struct Bench<'a> {
    /// Memory for random contents.
    pub arena: Arena,
    /// Workgroups of kernels without settings.
    pub groups: [u32; 3],
    /// Set by a watchdog to stop a kernel that runs for too long.
    pub stop: &'a AtomicU32,
    /// Called before each run.
    pub begin: &'a dyn Fn(),
}

impl Bench<'_> {
    /// Runs a kernel of a subject until an error is reported, at most with `seeds` seeds.
    ///
    /// # Errors
    ///
    /// The subject has no memory for it.
    pub fn report(&self, subject: &Subject, kernel: &Kernel, words: &[u32], seeds: u64) -> Result<Report, String> {
        let code = CheckedKernel::new(kernel, words, CheckOptions { profile: profile(kernel), ..Default::default() });
        let mut report =
            Report { seeds: 0, reported: None, warnings: Vec::new(), stopped: 0, stats: CheckStats::default() };
        let mut known = None;
        for seed in 0..seeds {
            let memory = self.memory(subject, kernel, seed, &mut known)?;
            memory.load();
            (self.begin)();
            let args = memory.args(self.stop);
            let count = args.num_workgroups.iter().map(|&count| u64::from(count)).product();
            let workgroups = Workgroups::new(0..count, args.num_workgroups, [0; 3]).scheduled(schedule(seed));
            let (outcome, findings) = code.run(&args, workgroups);
            match outcome {
                Outcome::Done => report.seeds += 1,
                Outcome::Stopped => report.stopped += 1,
                Outcome::OutOfMemory => return Err("has no memory to run".into()),
            }
            let (errors, others): (Vec<_>, Vec<_>) =
                findings.into_iter().partition(|finding| finding.severity == Severity::Error);
            if report.warnings.is_empty() {
                report.warnings = others.into_iter().filter(|finding| finding.severity == Severity::Warning).collect();
            }
            if !errors.is_empty() {
                report.reported = Some((seed, errors));
                break;
            }
            // Endless in one order: the others would take as long.
            if report.stopped >= 2 {
                break;
            }
        }
        report.stats = code.stats();
        Ok(report)
    }

    /// What becomes of a mutant of a subject: whether it is reported within the first seeds, and, if not, what the
    /// axioms say to some of them.
    ///
    /// # Errors
    ///
    /// The module is rejected, or the subject has no memory for it.
    pub fn judge(&self, subject: &Subject, mutant: &Mutant, seeds: u64, axioms: u64) -> Result<Verdict, String> {
        let kernel = subject.kernel(&mutant.words)?;
        let Report { reported, warnings, stopped, .. } = self.report(subject, &kernel, &mutant.words, seeds)?;
        if let Some((seed, findings)) = reported {
            return Ok(Verdict::Reported { seed, findings });
        }
        if stopped > 0 {
            return Ok(Verdict::Stopped);
        }
        let warned = !warnings.is_empty();
        let (answer, seed) = self.axioms(subject, &kernel, axioms, true)?;
        Ok(match answer {
            Answer::Racy => Verdict::Missed { seed, warned },
            Answer::Undecided => Verdict::Undecided,
            Answer::Ordered => match self.axioms(subject, &kernel, axioms, false)?.0 {
                Answer::Racy => Verdict::Idiom,
                Answer::Undecided | Answer::Ordered => Verdict::Ordered { warned },
            },
        })
    }

    /// What the axioms say to the executions of a kernel in the orders of the seeds: the worst, and its seed.
    ///
    /// # Errors
    ///
    /// The subject has no memory for it.
    pub fn axioms(
        &self,
        subject: &Subject,
        kernel: &Kernel,
        seeds: u64,
        lenient: bool,
    ) -> Result<(Answer, u64), String> {
        let oracle = Oracle::new(kernel, lenient);
        let mut worst = (Answer::Ordered, 0);
        let mut known = None;
        for seed in 0..seeds {
            let memory = self.memory(subject, kernel, seed, &mut known)?;
            (self.begin)();
            let answer = oracle.answer(memory, schedule(seed), &memory.args(self.stop));
            if answer > worst.0 {
                worst = (answer, seed);
            }
            if answer == Answer::Racy {
                break;
            }
        }
        Ok(worst)
    }

    /// The memory of a seed; the same as before, if no seed has another.
    fn memory<'m>(
        &self,
        subject: &Subject,
        kernel: &Kernel,
        seed: u64,
        known: &'m mut Option<Memory>,
    ) -> Result<&'m Memory, String> {
        let memory = match known.take() {
            Some(memory) if !subject.is_random() => memory,
            _ => subject.memory(kernel, self.arena, seed % SCALES, self.groups)?,
        };
        Ok(known.insert(memory))
    }
}

/// Seed 0 is the order of an engine without a seed.
fn schedule(seed: u64) -> Schedule {
    if seed == 0 { Schedule::Ascending } else { Schedule::Random(seed) }
}

/// As the specification says, except for compilers whose idioms are races by its letter.
fn profile(kernel: &Kernel) -> Profile {
    if kernel.memory_model == MemoryModel::Vulkan { Profile::Spec } else { Profile::Common }
}
