//! What trials of repairs keep for each other. Many races of a kernel have the same repairs tried, as one barrier
//! orders whatever is before it and after it: each changed kernel is compiled once, and runs once for each setting of a
//! dispatch, whichever pair of instructions is asked about.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::abi::Outcome;
use spelter_shaders::check::{Candidates, Detector, NonUniformBarrier};
use spelter_shaders::compile::{Backend, Checked};
use spelter_shaders::ir::Kernel;

use crate::check::log::{Log, Word};

/// Changed kernels of a kernel that are kept, at most, and their instructions together.
const MAX_KERNELS: usize = 16;
const MAX_INSTRUCTIONS: usize = 1 << 16;

/// Runs of a dispatch that are kept, at most, and the events of each one's record.
const MAX_RUNS: usize = 16;
const MAX_EVENTS: usize = 1 << 17;

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
    one.layout == other.layout && are_placed_alike() && one.insts == other.insts && have_one_origin()
}

/// Runs of kernels in a dispatch.
#[derive(Default)]
pub(in crate::check) struct TrialRuns {
    /// The last used one is at the end.
    known: RefCell<Vec<Rc<TrialRun>>>,
    overflowing: Cell<u32>,
}

/// What the detector found in one run.
pub(super) struct TrialRun {
    pub(super) checked: Arc<Checked>,
    /// The workgroup that ran alone, if one did.
    alone: Option<[u32; 3]>,
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
        alone: Option<[u32; 3]>,
        detector: &Detector,
        (outcome, work): (Outcome, u64),
    ) -> Self {
        // What the detector gave up may race.
        let given_up = detector.given_up();
        let is_whole = outcome == Outcome::Done && given_up.accesses + given_up.eras + given_up.candidates == 0;
        let (candidates, barriers) = (detector.candidates().to_vec(), detector.barriers().to_vec());
        Self { checked, alone, candidates, barriers, is_whole, work, record: RefCell::default() }
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
        if log.len() <= MAX_EVENTS {
            *self.record.borrow_mut() = Some((words, Rc::clone(&log)));
        }
        Some(log)
    }
}

impl TrialRuns {
    /// Whether no more changed kernels are of use in the dispatch: too much races in those that ran.
    pub(super) fn is_hopeless(&self) -> bool {
        self.overflowing.get() >= MAX_OVERFLOWING
    }

    /// The run of a kernel in a setting: a known one, or that of now. `None` if not all of it is known.
    pub(super) fn run(
        &self,
        (checked, alone): (&Arc<Checked>, Option<[u32; 3]>),
        run: impl FnOnce() -> Option<TrialRun>,
    ) -> Option<Rc<TrialRun>> {
        let place = |known: &[Rc<TrialRun>]| {
            known.iter().rposition(|run| Arc::ptr_eq(&run.checked, checked) && run.alone == alone)
        };
        let at = place(&self.known.borrow());
        let run = match at {
            Some(at) => self.known.borrow_mut().remove(at),
            None => Rc::new(run()?),
        };
        let mut known = self.known.borrow_mut();
        if known.len() == MAX_RUNS {
            known.remove(0);
        }
        known.push(Rc::clone(&run));
        run.is_whole.then_some(run)
    }

    /// Counts a run of a changed kernel with more suspicions than are kept.
    pub(super) fn overflowed(&self) {
        self.overflowing.set(self.overflowing.get() + 1);
    }
}
