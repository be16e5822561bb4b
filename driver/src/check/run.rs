//! Runs a kernel in checked mode: a dispatch under the detector, and again for what the detector suspects.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile;

use super::code::CheckedCode;
use super::commands::{Both, Touched};
use super::dispatch::DispatchRun;
use super::names::WorkgroupGrid;
use super::progress::CountingObserver;
use super::record::Interrupted;
use super::repair::kept::TrialRuns;
use super::second_pass::SecondPass;

impl Code for CheckedCode {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        if self.checker.begin().is_none() {
            let compile = || compile::compile(self.kernel(), self.backend());
            return self.unchecked.get_or_init(compile).code.run_all(args, workgroups, scratch);
        }
        let options = &self.checker.options;
        let mut kept = self.checker.kept();
        let copied = kept.snapshot.take(self.needed_again(args), options.replay_memory);
        let bytes = kept.snapshot.bytes();
        self.checker.count(|counts| counts.largest_copy = counts.largest_copy.max(bytes));
        let detected = self.detected(args);
        let sites = &detected.kernel.sites;
        let mut detector = self.checker.detector(&mut kept, sites, self.launch());
        self.checker.progress.begin(args.num_workgroups.iter().map(|&count| u64::from(count)).product());
        let mut counted = CountingObserver::new(&mut detector, &self.checker.progress);
        let actions = sites.values().map(|site| &site.action);
        let kinds = Some(&self.kinds).filter(|kinds| kinds.meet(args.buffers));
        let mut touched = Touched::new(actions, kept.planes(), options.memory / 4)
            .updating(&detected.kernel.updates)
            .telling_apart(kinds);
        let mut both = Both { observer: &mut counted, touched: &mut touched };
        let began = Instant::now();
        let outcome = detected.code.run_observed(args, workgroups.clone(), scratch, &mut both);
        let grid = WorkgroupGrid { groups: args.num_workgroups, base: workgroups.base() };
        self.checker.commands().touched(&self.checker, &self.names, (args.buffers, grid), &touched);
        let snapshot = (copied && outcome != Outcome::OutOfMemory).then_some(&kept.snapshot);
        let (ended, elapsed) = (outcome == Outcome::Done, began.elapsed());
        self.trials.refill();
        let pass = if ended { SecondPass::of_ended(elapsed, args.stop) } else { SecondPass::of_stopped(elapsed) };
        let mut run = DispatchRun {
            code: self,
            args,
            workgroups,
            snapshot,
            ended,
            pass,
            observed: Cell::default(),
            is_large: Cell::default(),
            is_partial: Cell::default(),
            is_changed: Cell::default(),
            is_kept: false,
            trial_runs: TrialRuns::default(),
            repaired: RefCell::default(),
        };
        let interrupted = run.examine(&detector, &mut kept.after);
        kept.put(detector);
        self.checker.keep(kept);
        match interrupted {
            // The memory is not that after the dispatch.
            Some(Interrupted { outcome, at }) => {
                scratch.stopped = at;
                outcome
            }
            None => outcome,
        }
    }
}
