//! An engine that runs random kernels: under a watcher, under a detector that keeps all candidates, and as users do.

use std::sync::atomic::AtomicU32;

use cranelift_entity::SecondaryMap;
use spelter_driver::check::{CheckOptions, CheckedKernel, Finding, KernelChecker, Profile, Rule, Severity};
use spelter_shaders::abi::{DispatchArgs, Outcome};
use spelter_shaders::back::{Scratch, Workgroups};
use spelter_shaders::check::observer::{Invocation, Observer};
use spelter_shaders::check::{Candidate, Detector, Limits};
use spelter_shaders::compile::{Backend, Checked};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Descriptor, Extent, Format, Layout, Rows, TexelView};
use spelter_shaders::ir::{Kernel, Site};

use super::super::Execution;
use super::launch::{APART, FIRST, Launch, OVERLAP, TEXELS, line};
use super::text::OUT;
use super::watcher::{Room, Watcher, agent, instructions};
use super::{Home, RandomKernel, WORDS};

/// Where the sums are, and the end of all.
const SUMS: u64 = TEXELS + APART;
const BYTES: u64 = SUMS + APART;

/// The memory that all engines use, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceMemory(GuestSlice);

impl Default for DeviceMemory {
    fn default() -> Self {
        Self(GuestSlice::leak(BYTES as usize))
    }
}

impl DeviceMemory {
    pub(super) fn room(self) -> Room {
        Room { start: self.0.address() as u64, end: SUMS }
    }

    fn buffer(self, start: u64) -> GuestSlice {
        self.0.slice(start, 4 * u64::from(WORDS))
    }

    /// The buffers of a kernel, in the order of its descriptors.
    pub(super) fn buffers(self, kernel: &RandomKernel, compiled: &Kernel) -> Vec<GuestSlice> {
        compiled.bindings.values().map(|binding| self.buffer(start(kernel, binding.binding))).collect()
    }

    /// The images of a kernel, in the same order.
    fn images(self, kernel: &RandomKernel, compiled: &Kernel) -> Vec<Descriptor> {
        let image = |binding: u32| {
            let memory = self.buffer(start(kernel, binding));
            let view = if kernel.texel_buffer {
                TexelView::of_buffer(memory, Format::R32_UINT, WORDS)
            } else {
                let extent = Extent { size: [WORDS, 1, 1], levels: 1, layers: 1 };
                let layout = Layout::new(&extent, Format::R32_UINT.bytes(), Rows::Packed)?;
                TexelView::of_image(memory, Format::R32_UINT, &extent, &layout, [0, 1], [0, 1], false)
            };
            Some(Descriptor { view, ..Descriptor::NULL })
        };
        let bindings = compiled.bindings.values().map(|binding| binding.binding);
        let images = bindings.map(|binding| (binding == Home::Texels as u32).then(|| image(binding)).flatten());
        images.map(|image| image.unwrap_or(Descriptor::NULL)).collect()
    }

    fn clear(self) {
        [FIRST, FIRST + OVERLAP, APART, TEXELS, SUMS]
            .into_iter()
            .for_each(|start| self.buffer(start).fill(0, 4 * u64::from(WORDS), 0));
    }
}

/// Where the memory of a binding is.
fn start(kernel: &RandomKernel, binding: u32) -> u64 {
    let home = Home::ALL.into_iter().nth(binding as usize).filter(|_| binding < OUT);
    home.map_or(SUMS, |home| kernel.start(home))
}

/// An engine.
pub(super) struct Engine {
    pub(super) backend: Backend,
    memory: DeviceMemory,
    /// For the profiles `spec` and `common`, without repairs and with them.
    checkers: [[KernelChecker; 2]; 2],
    /// Its memory is kept.
    detector: Option<Detector>,
}

/// A kernel that is ready to run on an engine.
pub(super) struct Prepared {
    checked: CheckedKernel,
    buffers: Vec<GuestSlice>,
    images: Vec<Descriptor>,
    /// The instruction of each site, with all checks.
    known: SecondaryMap<Site, Option<Site>>,
}

/// A launch on an engine.
pub(super) struct Observed {
    pub(super) execution: Execution,
    pub(super) candidates: Vec<Candidate>,
    pub(super) errors: Vec<Reported>,
    /// Whether a suspicion was not decided.
    pub(super) undecided: bool,
    /// Whether machine code judged memory of several descriptors.
    pub(super) aliased: bool,
}

/// An error of checked mode: instructions and agents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reported {
    pub(super) lines: [u32; 2],
    pub(super) by: [Invocation; 2],
}

impl Engine {
    pub(super) fn new(backend: Backend, memory: DeviceMemory) -> Self {
        let addresses = memory.0.address() as u64..memory.0.address() as u64 + BYTES;
        let checkers = [Profile::Spec, Profile::Common].map(|profile| {
            [false, true].map(|repairs| {
                // The dispatches are small.
                let (memory, replay_memory) = (1 << 24, 1 << 24);
                let options = CheckOptions { profile, memory, replay_memory, repairs, ..CheckOptions::default() };
                KernelChecker::new(options, backend, addresses.clone())
            })
        });
        Self { backend, memory, checkers, detector: None }
    }

    /// Compiles a kernel.
    ///
    /// # Errors
    ///
    /// Its instructions have other attributes.
    pub(super) fn prepare(
        &self,
        kernel: &RandomKernel,
        (words, compiled): (&[u32], &Kernel),
        (profile, repairs): (Profile, bool),
    ) -> Result<Prepared, String> {
        let checker = &self.checkers[usize::from(profile == Profile::Common)][usize::from(repairs)];
        let checked = checker.kernel(compiled, words);
        let known = instructions(kernel, &checked.replayed().kernel)?;
        let (buffers, images) = (self.memory.buffers(kernel, compiled), self.memory.images(kernel, compiled));
        Ok(Prepared { checked, buffers, images, known })
    }

    /// Runs a launch.
    ///
    /// # Errors
    ///
    /// It did not run to its end, or is not the program's.
    pub(super) fn run(&mut self, kernel: &RandomKernel, ready: &Prepared, launch: &Launch) -> Result<Observed, String> {
        let stop = AtomicU32::new(0);
        let groups = [launch.program.shape.workgroups as u32, 1, 1];
        let args = DispatchArgs {
            buffers: &ready.buffers,
            images: &ready.images,
            push: &launch.push,
            num_workgroups: groups,
            stop: &stop,
        };
        let all = Workgroups::new(0..launch.program.shape.workgroups, groups, [0; 3]).scheduled(launch.schedule);
        let mut scratch = Scratch::default();
        let mut observe = |checked: &Checked, observer: &mut dyn Observer| {
            self.memory.clear();
            match checked.code.run_observed(&args, all.clone(), &mut scratch, observer) {
                Outcome::Done => Ok(()),
                other => Err(format!("ends as {other:?}")),
            }
        };
        let mut watcher = Watcher::new(kernel, &launch.program, &ready.known, self.memory.room());
        observe(ready.checked.replayed(), &mut watcher)?;
        let execution = watcher.finish()?;

        let detected = ready.checked.detected(&args);
        let mut detector = self.detector.take();
        match &mut detector {
            Some(detector) => detector.restart(&detected.kernel.sites, ready.checked.launch()),
            None => detector = Some(self.detector(detected, ready)),
        }
        let (mut candidates, mut aliased) = (Vec::new(), false);
        if let Some(detector) = &mut detector {
            observe(detected, detector)?;
            candidates.extend(detector.candidates().iter().flat_map(|kind| kind.examples.iter().copied()));
            aliased = detector.settles_aliases();
        }
        self.detector = detector;

        self.memory.clear();
        let (outcome, findings) = ready.checked.run(&args, all);
        if outcome != Outcome::Done {
            return Err(format!("ends as {outcome:?} in checked mode"));
        }
        let undecided = findings.iter().any(|finding| finding.severity == Severity::Warning);
        let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
        let mut errors = errors.map(|finding| reported(kernel, finding)).collect::<Result<Vec<_>, _>>()?;
        errors.sort();
        Ok(Observed { execution, candidates, errors, undecided, aliased })
    }

    /// A detector that keeps all candidates.
    fn detector(&self, checked: &Checked, ready: &Prepared) -> Detector {
        let limits = Limits { bytes: 1 << 24, kinds: usize::MAX, examples: usize::MAX, ..Limits::default() };
        let mut detector = Detector::new(&checked.kernel.sites, ready.checked.launch(), Profile::Spec, limits);
        let start = self.memory.0.address() as u64;
        detector.reserve(start..start + BYTES);
        detector
    }
}

impl Prepared {
    /// The back end that runs it.
    pub(super) fn backend(&self) -> Backend {
        self.checked.replayed().backend
    }
}

/// The instructions and agents of an error.
fn reported(kernel: &RandomKernel, finding: &Finding) -> Result<Reported, String> {
    let (Rule::Race(_), Some(first)) = (finding.rule, &finding.first) else { return Err(finding.to_string()) };
    let mut lines = [0; 2];
    let mut by = [Invocation { workgroup: 0, local: 0 }; 2];
    for (number, access) in [first, &finding.second].into_iter().enumerate() {
        let (Some(at), Some(invocation)) = (&access.line, access.invocation) else { return Err(finding.to_string()) };
        let invocation = Invocation { workgroup: invocation.workgroup[0].into(), local: invocation.local[0] };
        lines[number] = at.line;
        by[number] = agent(kernel, invocation).ok_or_else(|| finding.to_string())?;
    }
    Ok(Reported { lines, by })
}

impl Reported {
    /// Whether it is about these two events of an execution.
    pub(super) fn is_about(&self, execution: &Execution, (first, second): (usize, usize)) -> bool {
        let at = |event: usize| (line(execution.sites[event]), execution.by[event]);
        [at(first), at(second)] == [(self.lines[0], self.by[0]), (self.lines[1], self.by[1])]
    }
}
