//! Code that is compiled after its pipeline was created: by a thread of the device, or by whoever needs it first.
//!
//! What can be wrong with a shader is known before: compiling has no errors. Creating a pipeline then costs what reading
//! costs, and pipelines that are created one after the other are compiled side by side. The code is made once: whoever comes
//! while it is made waits for it ([`OnceLock`]). A job holds nothing alive, so that pipelines which nobody has any more are
//! not compiled. Jobs, threads and the end of it all are under one lock; a thread sleeps on `work` only while there is no job
//! and no end, and both wake it.
//!
//! In a process that was forked from the one with the device, nothing is compiled and nothing is waited for: the thread that was
//! compiling is not there, and what it holds is held for ever. Code that was there before is there.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{Builder, JoinHandle};

use parking_lot::{Condvar, Mutex};
use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Code, Scratch, Workgroups};
use spelter_shaders::compile::{Backend, Compiled, compile_within};
use spelter_shaders::ir::Kernel;

use crate::exec::Loss;
use crate::host_memory::Room;

/// Jobs that wait at most; their creators compile what comes on top.
const MAX_WAITING: usize = 256;

/// The code of a kernel, now or later.
pub(crate) struct KernelCode {
    /// Until it is compiled; an empty one afterwards.
    kernel: Mutex<Kernel>,
    wanted: Backend,
    made: OnceLock<Made>,
    /// Of the device; none of code that is there already.
    loss: Option<Arc<Loss>>,
}

struct Made {
    backend: Backend,
    fallback: Option<String>,
    code: Arc<dyn Code>,
}

impl From<Compiled> for Made {
    fn from(Compiled { code, backend, fallback }: Compiled) -> Self {
        Self { backend, fallback, code: code.into() }
    }
}

impl KernelCode {
    /// Code that is there already.
    pub(super) fn ready(compiled: Compiled) -> Arc<Self> {
        let (wanted, made) = (compiled.backend, OnceLock::from(Made::from(compiled)));
        Arc::new(Self { kernel: Mutex::new(nothing()), wanted, made, loss: None })
    }

    /// What runs the kernel: the interpreter, where the wanted back end has no code for it.
    pub(crate) fn backend(&self) -> Backend {
        self.made().map_or(Backend::Interpreter, |made| made.backend)
    }

    /// Why that is not the back end that was wanted.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.made().map_or(Some(NOT_COMPILED), |made| made.fallback.as_deref())
    }

    /// Compiles, if nothing has.
    pub(crate) fn compile(&self) {
        self.made();
    }

    /// The code itself where it is there, and else something that waits for it when it is run.
    pub(crate) fn code(self: &Arc<Self>) -> Arc<dyn Code> {
        match self.made.get() {
            Some(made) => Arc::clone(&made.code),
            None => Arc::clone(self) as Arc<dyn Code>,
        }
    }

    /// What is made by now or by this call; nothing that would have to be made in a forked process.
    fn made(&self) -> Option<&Made> {
        let made = self.made.get();
        if made.is_some() || self.loss.as_ref().is_some_and(|loss| loss.is_elsewhere()) {
            return made;
        }
        Some(self.made.get_or_init(|| {
            let mut kernel = self.kernel.lock();
            let compiled = compile_in_room(&kernel, self.wanted);
            *kernel = nothing();
            compiled.into()
        }))
    }
}

/// Why a forked process has no machine code of a kernel.
const NOT_COMPILED: &str = "this process was forked before the kernel was compiled";

/// Compiles where the host has memory for it. Compiling has no errors, so a kernel is interpreted where it has not.
fn compile_in_room(kernel: &Kernel, wanted: Backend) -> Compiled {
    compile_within(kernel, wanted, |bytes| Room::of(bytes).map_err(|refused| refused.to_string()))
}

/// In place of a kernel that is not needed any more.
fn nothing() -> Kernel {
    Kernel::new(String::new(), [1; 3])
}

impl Code for KernelCode {
    fn run(&self, args: &DispatchArgs<'_>, workgroup: [u32; 3], scratch: &mut Scratch) -> Outcome {
        // A forked process runs nothing: its device is lost.
        self.made().map_or(Outcome::Stopped, |made| made.code.run(args, workgroup, scratch))
    }

    fn run_all(&self, args: &DispatchArgs<'_>, workgroups: Workgroups, scratch: &mut Scratch) -> Outcome {
        self.made().map_or(Outcome::Stopped, |made| made.code.run_all(args, workgroups, scratch))
    }

    fn max_steps(&self) -> Option<u64> {
        self.made.get()?.code.max_steps()
    }

    fn make_ready(&self) {
        if let Some(made) = self.made() {
            made.code.make_ready();
        }
    }

    fn settle(&self) {
        if let Some(made) = self.made() {
            made.code.settle();
        }
    }

    fn store(&self) -> Option<Vec<u8>> {
        self.made()?.code.store()
    }
}

impl fmt::Debug for KernelCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelCode").field("code", &self.made.get().map(|made| &made.code)).finish_non_exhaustive()
    }
}

/// The threads that compile for a device.
pub(crate) struct Compilers {
    shared: Arc<Shared>,
    /// Threads at most; without any, everything is compiled at once.
    most: usize,
    /// Of the device.
    loss: Arc<Loss>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Weak<KernelCode>>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    ended: bool,
}

impl Compilers {
    pub(crate) fn new(most: usize, loss: &Arc<Loss>) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), work: Condvar::new() });
        Self { shared, most, loss: Arc::clone(loss) }
    }

    /// The code of a kernel, compiled now or soon.
    pub(crate) fn code(&self, kernel: Cow<'_, Kernel>, wanted: Backend) -> Arc<KernelCode> {
        if self.most == 0 {
            return KernelCode::ready(compile_in_room(&kernel, wanted));
        }
        let kernel = Mutex::new(kernel.into_owned());
        let code = Arc::new(KernelCode { kernel, wanted, made: OnceLock::new(), loss: Some(Arc::clone(&self.loss)) });
        if !self.enqueue(&code) {
            code.compile();
        }
        code
    }

    fn enqueue(&self, code: &Arc<KernelCode>) -> bool {
        let mut state = self.shared.state.lock();
        if state.jobs.len() >= MAX_WAITING {
            return false;
        }
        if state.idle <= state.jobs.len() && state.threads.len() < self.most {
            let shared = Arc::clone(&self.shared);
            let name = format!("spelter compiler {}", state.threads.len());
            match Builder::new().name(name).spawn(move || shared.serve()) {
                Ok(thread) => state.threads.push(thread),
                Err(_) if state.threads.is_empty() => return false,
                Err(_) => {}
            }
        }
        state.jobs.push_back(Arc::downgrade(code));
        drop(state);
        self.shared.work.notify_one();
        true
    }
}

impl Drop for Compilers {
    fn drop(&mut self) {
        // In a process that was forked there are no threads to wait for.
        if self.loss.is_elsewhere() {
            return;
        }
        let threads = {
            let mut state = self.shared.state.lock();
            state.ended = true;
            state.jobs.clear();
            std::mem::take(&mut state.threads)
        };
        self.shared.work.notify_all();
        for thread in threads {
            // Its panics were caught.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(job) = self.next() {
            if let Some(code) = job.upgrade() {
                // Whoever needs the code meets the same panic, and knows for which call.
                let _ = catch_unwind(AssertUnwindSafe(|| code.compile()));
            }
        }
    }

    fn next(&self) -> Option<Weak<KernelCode>> {
        let mut state = self.state.lock();
        loop {
            if state.ended {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state.idle += 1;
            self.work.wait(&mut state);
            state.idle -= 1;
        }
    }
}
