//! A kernel in checked mode without a device: for tests that have kernels and memory, but no queue.

use std::sync::Arc;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code as _, Scratch, Workgroups};
use spelter_shaders::compile::Backend;
use spelter_shaders::ir::Kernel;
use spelter_shaders::schedule::Schedule;

use super::{CheckOptions, CheckStats, CheckedCode, Checker, Finding};
use crate::pipeline::{ShaderSource, SourceText};

/// A kernel that runs in checked mode.
#[derive(Debug)]
pub struct CheckedKernel {
    checker: Arc<Checker>,
    code: CheckedCode,
}

impl CheckedKernel {
    /// Instruments a kernel. `words` are those of its module: reports quote source lines from it.
    pub fn new(kernel: &Kernel, words: &[u32], options: CheckOptions) -> Self {
        let checker = Arc::new(Checker::new(options, Schedule::Ascending, 0..0, None));
        let source = Arc::new(ShaderSource::new(SourceText::Spirv(words.into()), std::iter::empty()));
        let code = CheckedCode::new(kernel, Backend::Interpreter, &checker, &source);
        Self { checker, code }
    }

    /// Runs a dispatch. Returns how it ended, and the findings of this dispatch.
    pub fn run(&self, args: &DispatchArgs<'_>, workgroups: Workgroups) -> (Outcome, Vec<Finding>) {
        let outcome = self.code.run_all(args, workgroups, &mut Scratch::default());
        (outcome, self.checker.take())
    }

    /// The counts of all dispatches so far.
    pub fn stats(&self) -> CheckStats {
        self.checker.stats()
    }
}
