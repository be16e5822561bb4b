//! Kernels in checked mode without a device: for tests that have kernels and memory, but no queue.

use std::ops::Range;
use std::sync::Arc;

use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code as _, Scratch, Workgroups};
use spelter_shaders::check::Launch;
use spelter_shaders::compile::{Backend, Checked};
use spelter_shaders::ir::Kernel;
use spelter_shaders::schedule::Schedule;

use super::{CheckOptions, CheckStats, CheckedCode, Checker, Finding};
use crate::shader_source::{ShaderSource, SourceText};

/// Runs kernels in checked mode by one back end. They share the memory of the detector.
#[derive(Debug)]
pub struct KernelChecker {
    checker: Arc<Checker>,
    backend: Backend,
}

impl KernelChecker {
    /// Kernels may settle accesses to memory at these addresses without a call, as on a device with that memory; with
    /// an empty range all accesses are calls.
    pub fn new(options: CheckOptions, backend: Backend, memory: Range<u64>) -> Self {
        Self { checker: Arc::new(Checker::new(options, Schedule::Ascending, memory, None, None)), backend }
    }

    /// Instruments a kernel. `words` are those of its module: reports quote source lines from it.
    pub fn kernel(&self, kernel: &Kernel, words: &[u32]) -> CheckedKernel {
        let source = Arc::new(ShaderSource::new(SourceText::Spirv(words.into()), std::iter::empty()));
        let code = CheckedCode::new(kernel, self.backend, &self.checker, &source);
        CheckedKernel { checker: Arc::clone(&self.checker), code }
    }
}

/// A kernel that runs in checked mode.
#[derive(Debug)]
pub struct CheckedKernel {
    checker: Arc<Checker>,
    code: CheckedCode,
}

impl CheckedKernel {
    /// Instruments a kernel for the interpreter ([`KernelChecker::kernel`]).
    pub fn new(kernel: &Kernel, words: &[u32], options: CheckOptions) -> Self {
        KernelChecker::new(options, Backend::Interpreter, 0..0).kernel(kernel, words)
    }

    /// Runs a dispatch. Returns how it ended, and the findings of this dispatch.
    pub fn run(&self, args: &DispatchArgs<'_>, workgroups: Workgroups) -> (Outcome, Vec<Finding>) {
        let outcome = self.code.run_all(args, workgroups, &mut Scratch::default());
        (outcome, self.checker.take())
    }

    /// The code that [`CheckedKernel::run`] runs under the detector.
    pub fn detected(&self, args: &DispatchArgs<'_>) -> &Checked {
        self.code.detected(args)
    }

    /// The code with all checks, which runs again for what the detector suspects. It executes invocations in the same
    /// order.
    pub fn replayed(&self) -> &Checked {
        self.code.all()
    }

    /// The size of its dispatches, for a detector.
    pub fn launch(&self) -> Launch {
        self.code.launch()
    }

    /// The counts of all dispatches of the checker so far.
    pub fn stats(&self) -> CheckStats {
        self.checker.stats()
    }
}
