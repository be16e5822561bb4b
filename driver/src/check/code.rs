//! A kernel in checked mode: its code for the detector and for replays, and what is known of it (`run.rs` runs it).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use cranelift_entity::EntitySet;
use spelter_locks::Mutex;
use spelter_shaders::abi::{self, DispatchArgs};
use spelter_shaders::check::{self, Launch, Profile};
use spelter_shaders::compile::{self, Backend, Checked, Checks, Compiled};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{Binding, InstData, Kernel, MemoryModel, Site, SiteAction, SiteData, SourceLine};

use super::Checker;
use super::commands::Kinds;
use super::names::{KernelNames, Names};
use super::noted::Noted;
use super::repair::budget::Budget;
use super::repair::kept::TrialKernels;
use super::settled::Settled;
use crate::shader_source::ShaderSource;

/// Variants of a kernel that are kept for replays.
const MAX_OBSERVED: usize = 4;

/// A kernel in checked mode.
pub(crate) struct CheckedCode {
    pub(super) checker: Arc<Checker>,
    pub(super) names: Arc<KernelNames>,
    /// Its kinds of accesses.
    pub(super) kinds: Arc<Kinds>,
    /// The kernel as it was read.
    kernel: Kernel,
    /// The bindings through which it writes.
    written: EntitySet<Binding>,
    /// The bindings from whose memory it reads.
    read: EntitySet<Binding>,
    /// For the detector, where others may have the memory of those.
    pub(super) needed: Checked,
    /// For the detector, where no other has: for dispatches of a device, and for others.
    apart: [OnceLock<Checked>; 2],
    /// For replays.
    all: OnceLock<Arc<Checked>>,
    /// For replays that need to know little: by the bindings whose accesses are observed.
    observed: Mutex<Vec<(Vec<Binding>, Arc<Checked>)>>,
    /// For dispatches that are not checked.
    pub(super) unchecked: OnceLock<Compiled>,
    /// What is known of the notes on it.
    pub(super) noted: Noted,
    /// The races of it that need no replay.
    pub(super) settled: Settled,
    /// The work of trials of repairs that is left.
    pub(super) trials: Budget,
    /// The changed kernels of those trials.
    pub(super) trial_kernels: TrialKernels,
}

impl CheckedCode {
    pub(crate) fn new(kernel: &Kernel, backend: Backend, checker: &Arc<Checker>, source: &Arc<ShaderSource>) -> Self {
        let needed = compile::compile_checked(kernel, backend, Checks::Needed);
        let names = KernelNames::new(Names::new(kernel, source), needed.kernel.clone());
        Self {
            checker: Arc::clone(checker),
            kinds: Arc::new(Kinds::new(&names)),
            names: Arc::new(names),
            kernel: kernel.clone(),
            written: check::written_bindings(kernel),
            read: check::read_bindings(kernel),
            needed,
            apart: Default::default(),
            all: OnceLock::new(),
            observed: Mutex::default(),
            unchecked: OnceLock::new(),
            noted: Noted::default(),
            settled: Settled::default(),
            trials: Budget::default(),
            trial_kernels: TrialKernels::default(),
        }
    }

    /// The names of the kernel.
    pub(crate) fn names(&self) -> &Arc<KernelNames> {
        &self.names
    }

    /// The back end that runs the kernel.
    pub(crate) fn backend(&self) -> Backend {
        self.needed.backend
    }

    /// Why that is not the device's back end, if it is not.
    pub(crate) fn fallback(&self) -> Option<&str> {
        self.needed.fallback.as_deref()
    }

    /// By the engine that found the candidates: another one interleaves invocations in another way.
    pub(super) fn all(&self) -> &Checked {
        self.all_shared()
    }

    pub(super) fn all_shared(&self) -> &Arc<Checked> {
        self.all.get_or_init(|| Arc::new(compile::compile_checked(&self.kernel, self.backend(), Checks::All)))
    }

    /// The code whose accesses to these bindings are observed, and nothing else; `None` if it would run on another
    /// engine.
    pub(super) fn observed_at(&self, bindings: &EntitySet<Binding>) -> Option<Arc<Checked>> {
        let key: Vec<Binding> = bindings.iter().collect();
        let mut known = self.observed.lock();
        let code = match known.iter().find(|(of, _)| *of == key) {
            Some((_, code)) => Arc::clone(code),
            None => {
                let code = Arc::new(compile::compile_checked_for(&self.kernel, self.backend(), bindings));
                if known.len() == MAX_OBSERVED {
                    known.remove(0);
                }
                known.push((key, Arc::clone(&code)));
                code
            }
        };
        (code.backend == self.backend()).then_some(code)
    }

    /// The kernel as it was read.
    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The ranges of memory that the kernel may write.
    pub(super) fn written<'a>(&'a self, args: &'a DispatchArgs<'_>) -> impl Iterator<Item = GuestSlice> + 'a {
        self.ranges(args).filter(|(_, written)| *written).map(|(range, _)| range)
    }

    pub(super) fn launch(&self) -> Launch {
        Launch {
            workgroup_size: self.kernel.invocations(),
            subgroup_size: abi::SUBGROUP_SIZE,
            vulkan_model: self.kernel.memory_model == MemoryModel::Vulkan,
        }
    }

    /// Whether the profile accepts idioms of compilers in the kernel: [`Profile::Common`].
    pub(super) fn accepts_idioms(&self) -> bool {
        let is_non_private = |site: &SiteData| match site.action {
            SiteAction::Read(access) | SiteAction::Write(access) => access.non_private,
            _ => false,
        };
        let any_non_private = self.all().kernel.sites.values().any(is_non_private);
        self.checker.options.profile == Profile::Common && (!self.launch().vulkan_model || !any_non_private)
    }

    /// The line of the kernel's return before an instruction, or before the call through which it was inlined, if there
    /// is one only. Returns of called functions end no invocation.
    pub(super) fn early_return(&self, site: Site) -> Option<&SourceLine> {
        let kernel = &self.kernel;
        let site = &self.needed.kernel.sites[site];
        // In terms of the entry point: a module may have its functions in any order.
        let before = site.inlined_at.first().copied().unwrap_or(site.word);
        let returns = kernel.insts.iter().filter(|(_, data)| matches!(data, InstData::Return));
        let words: BTreeSet<_> = returns.map(|(inst, _)| kernel.origins[inst]).collect();
        let mut early = words.into_iter().filter(|&word| word != 0 && word < before);
        let first = early.next()?;
        early.next().is_none().then(|| kernel.line_of_word(first))?
    }

    /// Each range of memory that the kernel may access, and whether it may write it.
    fn ranges<'a>(&'a self, args: &'a DispatchArgs<'_>) -> impl Iterator<Item = (GuestSlice, bool)> + 'a {
        let of_bindings = self.kernel.bindings.iter().flat_map(|(binding, data)| {
            let written = self.written.contains(binding);
            (0..data.count).map(move |_| written)
        });
        // After the descriptors come the ranges of device addresses.
        let all = of_bindings.chain(std::iter::repeat(true));
        args.buffers.iter().copied().zip(all)
    }

    /// The ranges that must have their contents again before the kernel runs again: those that it may write, and that
    /// share memory with one that it may read. It writes the others again, whatever they hold.
    pub(super) fn needed_again<'a>(&'a self, args: &'a DispatchArgs<'_>) -> impl Iterator<Item = GuestSlice> + 'a {
        let of_bindings = self.kernel.bindings.iter();
        let read = of_bindings
            .flat_map(|(binding, data)| (0..data.count).map(move |_| self.read.contains(binding)))
            .chain(std::iter::repeat(true));
        let bounds = |range: &GuestSlice| (range.address() as u64, range.address() as u64 + range.len());
        let inputs: Vec<_> =
            args.buffers.iter().zip(read).filter(|(_, read)| *read).map(|(range, _)| bounds(range)).collect();
        let is_read = move |range: &GuestSlice| {
            let (start, end) = bounds(range);
            inputs.iter().any(|input| input.0 < end && start < input.1)
        };
        self.written(args).filter(is_read)
    }

    /// The code for the detector. What a command of a device reads is of interest to later commands, too.
    pub(super) fn detected(&self, args: &DispatchArgs<'_>) -> &Checked {
        if are_apart(self.ranges(args)) {
            let [marked, unread] = &self.apart;
            let (apart, checks) = match self.checker.commands().are_running() {
                true => (marked, Checks::NeededMarked),
                false => (unread, Checks::NeededApart),
            };
            let apart = apart.get_or_init(|| compile::compile_checked(&self.kernel, self.backend(), checks));
            // The engine of the replays.
            if apart.backend == self.backend() {
                return apart;
            }
        }
        &self.needed
    }
}

/// Whether no range that is written shares memory with one that is not.
fn are_apart(ranges: impl Iterator<Item = (GuestSlice, bool)>) -> bool {
    let bounds = |range: GuestSlice| (range.address() as u64, range.address() as u64 + range.len());
    let (written, read): (Vec<_>, Vec<_>) = ranges.filter(|(range, _)| !range.is_empty()).partition(|range| range.1);
    let mut written: Vec<(u64, u64)> = written.into_iter().map(|(range, _)| bounds(range)).collect();
    written.sort_unstable();
    // The end of all that begin no later.
    let mut last = 0;
    written.iter_mut().for_each(|range| {
        last = last.max(range.1);
        range.1 = last;
    });
    read.into_iter().map(|(range, _)| bounds(range)).all(|(start, end)| {
        let before = written.partition_point(|range| range.0 < end);
        before.checked_sub(1).is_none_or(|at| written[at].1 <= start)
    })
}

impl fmt::Debug for CheckedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedCode").field("kernel", &self.kernel.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_apart_unless_an_output_overlaps_them() {
        let memory = GuestSlice::leak(256);
        let range = |start: u64, len: u64| memory.slice(start, len);
        let apart = |ranges: &[(GuestSlice, bool)]| are_apart(ranges.iter().copied());
        assert!(apart(&[(range(0, 64), true), (range(64, 64), false), (range(128, 64), true)]));
        assert!(apart(&[(range(0, 64), true), (range(32, 64), true), (range(96, 8), false)]));
        assert!(apart(&[(range(0, 64), false), (range(32, 64), false), (GuestSlice::EMPTY, true)]));
        assert!(!apart(&[(range(0, 64), true), (range(60, 64), false)]));
        assert!(!apart(&[(range(0, 200), true), (range(8, 8), true), (range(100, 8), false)]));
        assert!(!apart(&[(range(100, 8), true), (range(0, 200), false)]));
    }
}
