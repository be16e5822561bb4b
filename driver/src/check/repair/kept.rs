//! Cache of the trials of repairs. Many races of a kernel have the same repairs tried, as one barrier orders whatever
//! is before it and after it: each changed kernel is compiled once, and runs once for each setting of a
//! dispatch, whichever pair of instructions is asked about.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use foldhash::HashSet;
use spelter_locks::Mutex;
use spelter_shaders::abi::Outcome;
use spelter_shaders::check::{Candidate, Candidates, Detector, GivenUp, NonUniformBarrier};
use spelter_shaders::compile::{Backend, Checked};
use spelter_shaders::ir::Kernel;
use spelter_shaders::schedule::Schedule;

use crate::check::log::{Log, Word, word};

/// Changed kernels of a kernel that are kept, at most, and their instructions together.
const MAX_KERNELS: usize = 16;
const MAX_INSTRUCTIONS: usize = 1 << 16;

/// Runs of a dispatch that are kept, at most, and the events of each one's record.
const MAX_RUNS: usize = 16;
const MAX_EVENTS: usize = 1 << 17;

/// Bytes of these runs, at most: of what the detector found and of the records, beside the memory of the detector
/// ([`CheckOptions::memory`](crate::check::CheckOptions::memory)). The record of the last run counts from the next one
/// on.
const MAX_BYTES: usize = 16 << 20;

/// Runs of changed kernels with more suspicions than are kept, at most: where so much else races, others would not tell
/// more.
const MAX_OVERFLOWING: u32 = 6;

/// Kernels that were compiled for trials, the last used one at the end.
#[derive(Debug, Default)]
pub(in crate::check) struct TrialKernels(Mutex<Vec<TrialKernel>>);

#[derive(Debug)]
struct TrialKernel {
    /// As it was changed.
    kernel: Kernel,
    /// The back end that was asked for.
    backend: Backend,
    checked: Arc<Checked>,
}

impl TrialKernels {
    /// The code of a changed kernel, if it is known.
    pub(super) fn find(&self, kernel: &Kernel, backend: Backend) -> Option<Arc<Checked>> {
        let mut known = self.0.lock();
        let at = known.iter().rposition(|known| known.backend == backend && is_same(&known.kernel, kernel))?;
        let found = known.remove(at);
        let checked = Arc::clone(&found.checked);
        known.push(found);
        Some(checked)
    }

    /// Keeps the code of a changed kernel.
    pub(super) fn keep(&self, kernel: &Kernel, backend: Backend, checked: Checked) -> Arc<Checked> {
        let checked = Arc::new(checked);
        let mut known = self.0.lock();
        known.push(TrialKernel { kernel: kernel.clone(), backend, checked: Arc::clone(&checked) });
        let size = |known: &[TrialKernel]| known.iter().map(|known| known.kernel.size()).sum::<usize>();
        while known.len() > MAX_KERNELS || size(&known) > MAX_INSTRUCTIONS {
            known.remove(0);
        }
        checked
    }
}

/// Whether two changes of one kernel are the same: they have the same instructions, in the same places.
fn is_same(one: &Kernel, other: &Kernel) -> bool {
    let are_placed_alike = || one.layout.iter().all(|&block| one.blocks[block].insts == other.blocks[block].insts);
    let have_one_origin = || one.insts.keys().all(|inst| one.origins[inst] == other.origins[inst]);
    let have_one_schedule = one.takes_schedule == other.takes_schedule;
    have_one_schedule
        && one.layout == other.layout
        && are_placed_alike()
        && one.insts == other.insts
        && have_one_origin()
}

/// Runs of kernels in a dispatch.
#[derive(Default)]
pub(in crate::check) struct TrialRuns {
    /// The last used one is at the end.
    known: RefCell<Vec<Rc<TrialRun>>>,
    overflowing: Cell<u32>,
    /// Whether a changed kernel did not end in the opposite order.
    waits: Cell<bool>,
}

/// What of a dispatch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunPart {
    /// The workgroup that runs alone, if one does.
    pub(super) alone: Option<[u32; 3]>,
    pub(super) schedule: Schedule,
}

/// What the detector found in one run.
pub(super) struct TrialRun {
    pub(super) checked: Arc<Checked>,
    part: RunPart,
    /// With one of the first examples of each word.
    pub(super) candidates: Vec<Candidates>,
    pub(super) barriers: Vec<NonUniformBarrier>,
    /// Whether it came to its end, and that is all that may race.
    is_whole: bool,
    /// What was observed.
    pub(super) work: u64,
    /// The accesses to some words: pairs of one setting mostly are about the same.
    record: RefCell<Option<(BTreeSet<Word>, Rc<Log>)>>,
}

impl TrialRun {
    pub(super) fn new(
        checked: Arc<Checked>,
        part: RunPart,
        detector: &Detector,
        (outcome, work): (Outcome, u64),
    ) -> Self {
        // What the detector gave up may race. So may the words of examples for which it had no memory.
        let GivenUp { accesses, eras, records, candidates, examples, barriers } = detector.given_up();
        let is_whole = outcome == Outcome::Done && accesses + eras + records + candidates + examples + barriers == 0;
        // Nothing is asked about others.
        let (candidates, barriers) = if is_whole {
            (detector.candidates().iter().map(without_repetitions).collect(), detector.barriers().to_vec())
        } else {
            (Vec::new(), Vec::new())
        };
        Self { checked, part, candidates, barriers, is_whole, work, record: RefCell::default() }
    }

    /// The accesses to some words, recorded now if they are not known.
    pub(super) fn record(
        &self,
        words: BTreeSet<Word>,
        record: impl FnOnce(&BTreeSet<Word>) -> Option<Log>,
    ) -> Option<Rc<Log>> {
        if let Some((known, log)) = &*self.record.borrow()
            && *known == words
        {
            return Some(Rc::clone(log));
        }
        let log = Rc::new(record(&words)?);
        if log.len() <= MAX_EVENTS && self.bytes_found() + bytes_of_record(&words, &log) <= MAX_BYTES {
            *self.record.borrow_mut() = Some((words, Rc::clone(&log)));
        }
        Some(log)
    }

    /// What it takes, roughly.
    fn bytes(&self) -> usize {
        let record = self.record.borrow();
        self.bytes_found() + record.as_ref().map_or(0, |(words, log)| bytes_of_record(words, log))
    }

    fn bytes_found(&self) -> usize {
        let kind =
            |kind: &Candidates| size_of::<Candidates>() + size_of_val(&*kind.examples) + size_of_val(&*kind.later);
        self.candidates.iter().map(kind).sum::<usize>() + size_of_val(&*self.barriers)
    }
}

fn bytes_of_record(words: &BTreeSet<Word>, log: &Log) -> usize {
    let accesses: usize = log.words.values().map(|accesses| size_of_val(&**accesses)).sum();
    words.len() * size_of::<Word>() + size_of_val(&*log.entries) + size_of_val(&*log.threads) + accesses
}

/// A kind of suspicions, with what trials read of it: the words of its examples.
fn without_repetitions(kind: &Candidates) -> Candidates {
    let mut kind = kind.clone();
    keep_one_of_each_word(&mut kind.examples);
    kind
}

fn keep_one_of_each_word(examples: &mut Vec<Candidate>) {
    let mut words = HashSet::default();
    examples.retain(|example| words.insert(word(example)));
    examples.shrink_to_fit();
}

impl TrialRuns {
    /// Whether no more changed kernels are of use in the dispatch: too much races in those that ran.
    pub(super) fn is_hopeless(&self) -> bool {
        self.overflowing.get() >= MAX_OVERFLOWING
    }

    /// The run of a kernel in a setting: a known one, or that of now. `None` if not all of it is known.
    pub(super) fn run(
        &self,
        (checked, part): (&Arc<Checked>, RunPart),
        run: impl FnOnce() -> Option<TrialRun>,
    ) -> Option<Rc<TrialRun>> {
        let place = |known: &[Rc<TrialRun>]| {
            known.iter().rposition(|run| Arc::ptr_eq(&run.checked, checked) && run.part == part)
        };
        let at = place(&self.known.borrow());
        let run = match at {
            Some(at) => self.known.borrow_mut().remove(at),
            None => Rc::new(run()?),
        };
        if run.bytes() <= MAX_BYTES {
            let mut known = self.known.borrow_mut();
            known.push(Rc::clone(&run));
            let bytes = |known: &[Rc<TrialRun>]| known.iter().map(|run| run.bytes()).sum::<usize>();
            while known.len() > MAX_RUNS || bytes(&known) > MAX_BYTES {
                known.remove(0);
            }
        }
        run.is_whole.then_some(run)
    }

    /// Counts a run of a changed kernel with more suspicions than are kept.
    pub(super) fn overflowed(&self) {
        self.overflowing.set(self.overflowing.get() + 1);
    }

    /// Whether invocations wait for those that begin after them in the opposite order, so that nothing is known of it.
    pub(super) fn waits(&self) -> bool {
        self.waits.get()
    }

    /// A changed kernel did not end in the opposite order.
    pub(super) fn waited(&self) {
        self.waits.set(true);
    }
}

#[cfg(test)]
mod tests {
    use spelter_shaders::abi::DispatchArgs;
    use spelter_shaders::back::{ObservedCode, Scratch, Workgroups};
    use spelter_shaders::check::observer::{Invocation, Memory, Observer};
    use spelter_shaders::check::{Agents, Cause, First, Relation, Second};
    use spelter_shaders::ir::Site;

    use super::*;

    #[derive(Debug)]
    struct NoCode;

    impl ObservedCode for NoCode {
        fn run_observed(&self, _: &DispatchArgs<'_>, _: Workgroups, _: &mut Scratch, _: &mut dyn Observer) -> Outcome {
            Outcome::Done
        }
    }

    fn kernel() -> Arc<Checked> {
        let kernel = Kernel::new("k", [1; 3]);
        Arc::new(Checked { code: Box::new(NoCode), kernel, backend: Backend::Interpreter, fallback: None })
    }

    fn invocation() -> Invocation {
        Invocation { workgroup: 0, local: 0 }
    }

    fn part(alone: Option<[u32; 3]>) -> RunPart {
        RunPart { alone, schedule: Schedule::Ascending }
    }

    /// A run that found this many bytes, or fewer.
    fn found(checked: &Arc<Checked>, part: RunPart, bytes: usize) -> TrialRun {
        let other = (invocation(), None);
        let barrier = NonUniformBarrier { command: 0, site: Site::from_u32(0), waits: invocation(), other };
        let barriers = vec![barrier; bytes / size_of::<NonUniformBarrier>()];
        let (checked, record) = (Arc::clone(checked), RefCell::default());
        TrialRun { checked, part, candidates: Vec::new(), barriers, is_whole: true, work: 0, record }
    }

    /// Whether a kernel runs again, since its run is not known.
    fn runs(known: &TrialRuns, of: (&Arc<Checked>, RunPart), bytes: usize) -> bool {
        let ran = Cell::new(false);
        let run = known.run(of, || {
            ran.set(true);
            Some(found(of.0, of.1, bytes))
        });
        assert!(run.is_some());
        ran.get()
    }

    #[test]
    fn a_run_of_the_same_kernel_and_workgroup_in_the_same_order_is_found_again() {
        let (known, one, other) = (TrialRuns::default(), kernel(), kernel());
        let all = part(None);
        let reverse = RunPart { schedule: Schedule::Reverse, ..all };
        let alone = |id| (&one, part(Some(id)));
        let settings = [(&one, all), alone([0; 3]), alone([1, 0, 0]), (&other, all), (&one, reverse)];
        assert_eq!(settings.map(|of| runs(&known, of, 64)), [true; 5]);
        assert_eq!(settings.map(|of| runs(&known, of, 64)), [false; 5]);
    }

    #[test]
    fn the_runs_that_were_used_last_are_kept_within_the_memory() {
        let (known, kernels) = (TrialRuns::default(), [(); 4].map(|()| kernel()));
        let [a, b, c, d] = kernels.each_ref().map(|kernel| (kernel, part(None)));
        let third = MAX_BYTES / 3;
        assert!(runs(&known, a, third) && runs(&known, b, third) && runs(&known, c, third));
        assert!(!runs(&known, a, third), "it is the last used one now");
        assert!(runs(&known, d, third));
        assert!(!runs(&known, c, third) && !runs(&known, a, third) && !runs(&known, d, third));
        assert!(runs(&known, b, third), "the first one is dropped");
        // One that is too large is not kept, and takes no other's place.
        assert!(runs(&known, c, 2 * MAX_BYTES) && runs(&known, c, 2 * MAX_BYTES));
        assert!(!runs(&known, a, third) && !runs(&known, d, third) && !runs(&known, b, third));
        assert!(known.known.borrow().iter().map(|run| run.bytes()).sum::<usize>() <= MAX_BYTES);
    }

    #[test]
    fn a_run_has_one_example_of_each_word() {
        let example = |memory, workgroup| Candidate {
            second: Second { command: 0, invocation: Invocation { workgroup, local: 1 }, site: Site::from_u32(0) },
            first: First { agents: Agents::Invocation { command: 0, invocation: invocation() }, atomic: false },
            memory,
            bytes: 1,
            relation: Relation::Waw,
            cause: Cause::Unordered,
        };
        let mut examples: Vec<Candidate> = [(Memory::Device(4), 0), (Memory::Device(6), 1), (Memory::Device(8), 0)]
            .into_iter()
            .chain([(Memory::Workgroup(4), 0), (Memory::Workgroup(4), 1), (Memory::Workgroup(5), 1)])
            .map(|(memory, workgroup)| example(memory, workgroup))
            .collect();
        let first: Vec<Candidate> = [0, 2, 3, 4].map(|at| examples[at]).into();
        keep_one_of_each_word(&mut examples);
        assert_eq!(examples, first);
    }
}
