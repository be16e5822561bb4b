//! Deferred compilation: a kernel is compiled after its pipeline was created, by a compiler thread of the device or by
//! the first thread that needs the code.
//!
//! All errors of a shader are found when the pipeline is created; compiling has none. So creating a pipeline costs only
//! the parsing, and pipelines that are created one after the other are compiled in parallel. The code is compiled once:
//! a thread that needs it meanwhile waits ([`OnceLock`]). A job holds a weak handle, so a kernel whose pipelines are
//! gone is not compiled. Jobs go through a channel, which ends with its sender.
//!
//! Compiling is given up when the device is lost, so that a command that waits for it ends by the time limit.
//!
//! In a process that was forked from the device's, nothing is compiled and no lock is taken: the thread that was
//! compiling does not exist there, and holds its locks, and the channel's, for ever. Code that was compiled before the
//! fork is available.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, bounded};
use spelter_locks::Mutex;
use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{Backend, Compiled, compile_within};
use spelter_shaders::ir::Kernel;
use spelter_shaders::work::Work;

use crate::check::{CheckedCode, KernelNames};
use crate::host_memory::Room;
use crate::sync::Loss;

/// Maximum number of queued jobs. Above it the creating thread compiles.
const MAX_WAITING: usize = 256;

/// The code of a kernel, compiled on first use or by a compiler thread.
pub(crate) struct KernelCode {
    /// The kernel to compile; replaced by an empty one afterwards, to free its memory.
    kernel: Mutex<Kernel>,
    wanted: Backend,
    compiled: OnceLock<CompiledCode>,
    /// The device's; `None` for code that is compiled already.
    loss: Option<Arc<Loss>>,
    /// Of checked mode, whose kernels have lines.
    names: Option<Arc<KernelNames>>,
}

struct CompiledCode {
    backend: Backend,
    fallback: Option<String>,
    code: Arc<dyn Code>,
}

impl From<Compiled> for CompiledCode {
    fn from(Compiled { code, backend, fallback }: Compiled) -> Self {
        Self { backend, fallback, code: code.into() }
    }
}

impl KernelCode {
    /// Code that is compiled already.
    pub(super) fn ready(compiled: Compiled) -> Arc<Self> {
        Arc::new(Self::of(compiled, None))
    }

    fn of(compiled: Compiled, names: Option<Arc<KernelNames>>) -> Self {
        let (wanted, compiled) = (compiled.backend, OnceLock::from(CompiledCode::from(compiled)));
        Self { kernel: Mutex::new(empty_kernel()), wanted, compiled, loss: None, names }
    }

    /// Code of checked mode.
    pub(super) fn checked(code: CheckedCode) -> Arc<Self> {
        let (backend, fallback) = (code.backend(), code.fallback().map(str::to_owned));
        let names = Some(Arc::clone(code.names()));
        Arc::new(Self::of(Compiled { code: Box::new(code), backend, fallback }, names))
    }

    /// The source line of a SPIR-V word, if this is code of checked mode.
    pub(super) fn checked_line(&self, word: u32) -> Option<String> {
        self.names.as_ref()?.line(word)
    }

    /// The back end that runs the kernel: the interpreter if the wanted one cannot.
    pub(crate) fn backend(&self) -> Backend {
        self.compiled().map_or(Backend::Interpreter, |compiled| compiled.backend)
    }

    /// Why that is not the wanted back end, if it is not.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.compiled().map_or(Some(NOT_COMPILED), |compiled| compiled.fallback.as_deref())
    }

    /// Compiles the kernel, unless it is compiled.
    pub(crate) fn compile(&self) {
        self.compiled();
    }

    /// The code if it is compiled, or else a stand-in that waits for it when it runs.
    pub(crate) fn code(self: &Arc<Self>) -> Arc<dyn Code> {
        match self.compiled.get() {
            Some(compiled) => Arc::clone(&compiled.code),
            None => Arc::clone(self) as Arc<dyn Code>,
        }
    }

    /// The compiled code; compiles if necessary. `None` if that would be necessary in a forked process.
    fn compiled(&self) -> Option<&CompiledCode> {
        let compiled = self.compiled.get();
        if compiled.is_some() || self.loss.as_ref().is_some_and(|loss| loss.is_forked()) {
            return compiled;
        }
        Some(self.compiled.get_or_init(|| {
            let mut kernel = self.kernel.lock();
            let compiled = compile_in_room(&kernel, self.wanted);
            *kernel = empty_kernel();
            compiled.into()
        }))
    }
}

/// The fallback reason in a forked process.
const NOT_COMPILED: &str = "this process was forked before the kernel was compiled";

/// Compiles if the host has enough memory. Compiling has no errors, so otherwise the kernel is interpreted.
fn compile_in_room(kernel: &Kernel, wanted: Backend) -> Compiled {
    compile_within(kernel, wanted, |bytes| Room::of(bytes).map_err(|refused| refused.to_string()))
}

/// Replaces a kernel that is not needed any more.
fn empty_kernel() -> Kernel {
    Kernel::new(String::new(), [1; 3])
}

impl Code for KernelCode {
    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        // In a forked process the device is lost, so nothing runs.
        self.compiled().map_or(Outcome::Stopped, |compiled| compiled.code.run_all(args, workgroups, scratch))
    }

    fn max_steps(&self) -> Option<u64> {
        self.compiled.get()?.code.max_steps()
    }

    fn make_ready(&self) {
        if let Some(compiled) = self.compiled() {
            compiled.code.make_ready();
        }
    }

    fn settle(&self) {
        if let Some(compiled) = self.compiled() {
            compiled.code.settle();
        }
    }

    fn store(&self) -> Option<Vec<u8>> {
        self.compiled()?.code.store()
    }
}

impl fmt::Debug for KernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelCode")
            .field("code", &self.compiled.get().map(|compiled| &compiled.code))
            .finish_non_exhaustive()
    }
}

/// The compiler threads of a device, started on demand.
pub(crate) struct Compilers {
    /// `None` only during the drop. Not dropped in a forked process, since that takes the channel's lock.
    jobs: Option<Jobs>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Maximum number of threads. With 0 the creating thread compiles.
    max_threads: usize,
    /// The device's.
    loss: Arc<Loss>,
}

/// Both ends of the channel of jobs; threads have further receivers.
struct Jobs {
    sender: Sender<Weak<KernelCode>>,
    receiver: Receiver<Weak<KernelCode>>,
}

impl Compilers {
    pub(crate) fn new(max_threads: usize, loss: &Arc<Loss>) -> Self {
        let (sender, receiver) = bounded(MAX_WAITING);
        Self { jobs: Some(Jobs { sender, receiver }), threads: Mutex::default(), max_threads, loss: Arc::clone(loss) }
    }

    /// The code of a kernel: compiled now, or queued.
    pub(crate) fn code(&self, kernel: Cow<'_, Kernel>, wanted: Backend) -> Arc<KernelCode> {
        if self.max_threads == 0 {
            return KernelCode::ready(compile_in_room(&kernel, wanted));
        }
        let (mut kernel, loss) = (kernel.into_owned(), Arc::clone(&self.loss));
        // Threads that wait for the code of a lost device wait no longer.
        kernel.work = Work::cancelled_by(move || loss.is_lost());
        let kernel = Mutex::new(kernel);
        let code = Arc::new(KernelCode {
            kernel,
            wanted,
            compiled: OnceLock::new(),
            loss: Some(Arc::clone(&self.loss)),
            names: None,
        });
        if !self.enqueue(&code) {
            code.compile();
        }
        code
    }

    fn enqueue(&self, code: &Arc<KernelCode>) -> bool {
        let Some(jobs) = &self.jobs else { return false };
        // An error: the channel is full.
        if jobs.sender.try_send(Arc::downgrade(code)).is_err() {
            return false;
        }
        let mut threads = self.threads.lock();
        // While a job waits, all threads are at work, or about to take it: then one thread more than needed starts.
        if threads.len() < self.max_threads && !jobs.receiver.is_empty() {
            let jobs = jobs.receiver.clone();
            let name = format!("spelter compiler {}", threads.len());
            if let Ok(thread) = Builder::new().name(name).spawn(move || serve(&jobs)) {
                threads.push(thread);
            }
        }
        // Without threads the job stays in the channel: it is only a weak handle.
        !threads.is_empty()
    }
}

impl Drop for Compilers {
    fn drop(&mut self) {
        let jobs = self.jobs.take();
        // A forked process has no threads to join.
        if self.loss.is_forked() {
            std::mem::forget(jobs);
            return;
        }
        // What waits is not compiled any more: threads find the channel empty, and without a sender.
        jobs.iter().for_each(|jobs| while jobs.receiver.try_recv().is_ok() {});
        drop(jobs);
        for thread in self.threads.get_mut().drain(..) {
            // Cannot fail: `serve` catches panics.
            let _ = thread.join();
        }
    }
}

/// The main loop of a compiler thread.
fn serve(jobs: &Receiver<Weak<KernelCode>>) {
    for job in jobs {
        if let Some(code) = job.upgrade() {
            // The thread that needs the code gets the same panic, and reports it.
            let _ = catch_unwind(AssertUnwindSafe(|| code.compile()));
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use std::collections::BTreeMap;

    use spelter_shaders::compile::Module;

    use super::*;

    #[test]
    fn nothing_is_compiled_for_a_lost_device() {
        let module = Module::from_wgsl("@compute @workgroup_size(64) fn main() {}").unwrap();
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
        let loss = Arc::new(Loss::default());
        let compilers = Compilers::new(1, &loss);
        let code = compilers.code(Cow::Borrowed(&kernel), Backend::best());
        assert_eq!(code.fallback(), None);
        loss.lose("as a test".to_owned());
        let code = compilers.code(Cow::Borrowed(&kernel), Backend::best());
        code.compile();
        let cancelled = (Backend::best() != Backend::Interpreter).then_some("compiling it was cancelled");
        assert_eq!((code.backend(), code.fallback()), (Backend::Interpreter, cancelled));
    }
}
