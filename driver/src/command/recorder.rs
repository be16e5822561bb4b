//! What recording builds, and the state that commands leave for those after them.

use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ash::vk::CommandBufferUsageFlags;
use foldhash::fast::FixedState;
use spelter_shaders::abi::MAX_PUSH_BYTES;

use super::CommandBuffer;
use super::dispatch_state::BoundSet;
use crate::descriptor::{Contents, WeakSet};
use crate::device::Device;
use crate::exec::{Bound, Condition, Phases, Recording, Work};
use crate::host_memory::{self, OutOfHostMemory};
use crate::memory::Allocation;
use crate::pipeline::{ComputePipeline, PipelineLayout};

/// A command buffer while it is recorded.
pub(super) struct Recorder {
    pub(super) device: Device,
    flags: CommandBufferUsageFlags,
    phases: Phases,
    /// What transfers are called, by phase and place in it.
    labels: BTreeMap<(usize, usize), Arc<str>>,
    kept: Kept,
    used: Vec<(WeakSet, Arc<Contents>)>,
    secondaries: Vec<Part>,
    /// Whether a submission has to look at descriptor sets again.
    late: bool,
    pub(super) pipeline: Option<ComputePipeline>,
    /// By set number.
    pub(super) bound: Vec<Option<BoundSet>>,
    pub(super) push: Arc<[u8; MAX_PUSH_BYTES]>,
    /// The layout that push constants were last set with.
    pub(super) push_layout: Option<PipelineLayout>,
    /// What must hold for dispatches to run.
    pub(super) condition: Option<Condition>,
    /// What commands are called, before the kernel's name or what they do.
    pub(super) label: Option<Arc<str>>,
    /// What the bound pipeline is called in place of the kernel's name.
    pub(super) kernel_name: Option<Arc<str>>,
    /// What the next dispatch finds, as long as nothing is bound or named anew. Push constants may be others.
    pub(super) found: Option<Arc<Bound>>,
}

/// Everything that the recording's slices point into, each once.
#[derive(Default)]
struct Kept {
    list: Vec<Arc<dyn Any + Send + Sync>>,
    seen: HashSet<usize, FixedState>,
}

/// What one command may keep alive, at most: two resources, or as many sets as a pipeline layout has.
const KEPT_BY_ONE: usize = 64;

/// Shorter lists grow by so little at a time that the allocator is not asked before.
const LARGE: usize = 1 << 12;

impl Kept {
    /// Makes room for what a command keeps alive.
    fn make_room(&mut self) -> Result<(), OutOfHostMemory> {
        if self.list.len() < LARGE {
            return Ok(());
        }
        host_memory::reserve(&mut self.list, KEPT_BY_ONE)?;
        let bytes = (self.seen.capacity() * 2 * size_of::<usize>()) as u64;
        self.seen.try_reserve(KEPT_BY_ONE).map_err(|_| OutOfHostMemory { bytes })
    }

    /// Whether it is new. What is kept keeps its address, so an address seen is the same thing.
    fn keep<T: Send + Sync + 'static>(&mut self, thing: &Arc<T>) -> bool {
        let new = self.seen.insert(Arc::as_ptr(thing).addr());
        if new {
            self.list.push(Arc::clone(thing) as Arc<dyn Any + Send + Sync>);
        }
        new
    }
}

/// A secondary command buffer that runs as a part of another, and what it had recorded then.
pub(super) type Part = (CommandBuffer, Arc<Recording>);

/// What a command buffer submits.
pub(super) struct Executable {
    pub(super) recording: Arc<Recording>,
    pub(super) flags: CommandBufferUsageFlags,
    used: Vec<(WeakSet, Arc<Contents>)>,
    pub(super) secondaries: Vec<Part>,
}

impl Executable {
    /// Whether a descriptor set was written since it was bound: Vulkan calls the command buffer invalid then.
    pub(super) fn is_stale(&self) -> bool {
        self.used.iter().any(|(set, contents)| set.changed_since(contents))
    }
}

impl Recorder {
    pub(super) fn new(device: &Device, flags: CommandBufferUsageFlags) -> Self {
        Self {
            device: device.clone(),
            flags,
            phases: Phases::default(),
            labels: BTreeMap::new(),
            kept: Kept::default(),
            used: Vec::new(),
            secondaries: Vec::new(),
            late: false,
            pipeline: None,
            bound: Vec::new(),
            push: Arc::new([0; MAX_PUSH_BYTES]),
            push_layout: None,
            condition: None,
            label: None,
            kernel_name: None,
            found: None,
        }
    }

    /// Makes room for so many commands and all that they keep alive. Each function that records begins with that, so that
    /// adding the command cannot fail.
    pub(super) fn make_room(&mut self, commands: usize) -> Result<(), OutOfHostMemory> {
        self.phases.make_room(commands)?;
        self.kept.make_room()?;
        if self.used.len() >= LARGE { host_memory::reserve(&mut self.used, KEPT_BY_ONE) } else { Ok(()) }
    }

    /// Adds a command to the current phase.
    pub(super) fn add(&mut self, work: Work) {
        self.late |= matches!(&work, Work::Dispatch(dispatch) if dispatch.bound.late.is_some());
        if let (Some(label), false) = (&self.label, matches!(work, Work::Dispatch(_))) {
            self.labels.insert((self.phases.len(), self.phases.open()), Arc::clone(label));
        }
        self.phases.push(work);
    }

    /// Ends the current phase, if anything is in it.
    pub(super) fn end_phase(&mut self) {
        self.phases.end();
    }

    /// Keeps memory alive as long as the recording is.
    pub(super) fn keep(&mut self, allocation: &Arc<Allocation>) {
        self.kept.keep(allocation);
    }

    /// Keeps what a set held alive, and remembers to ask whether it still holds that.
    pub(super) fn keep_set(&mut self, number: usize) {
        let Some(Some(bound)) = self.bound.get(number) else { return };
        // A late set may change, and what it holds then is kept by the submission.
        if self.kept.keep(&bound.contents) && !bound.late {
            self.used.push((bound.set.clone(), Arc::clone(&bound.contents)));
        }
    }

    /// Adds what a secondary command buffer recorded.
    pub(super) fn execute(
        &mut self,
        secondary: &CommandBuffer,
        recording: &Arc<Recording>,
    ) -> Result<(), OutOfHostMemory> {
        self.make_room(recording.phases.commands().len() + 1)?;
        self.end_phase();
        let before = self.phases.len();
        let moved =
            recording.labels.iter().map(|((phase, place), label)| ((before + phase, *place), Arc::clone(label)));
        self.labels.extend(moved);
        self.phases.append(&recording.phases);
        self.kept.keep(recording);
        self.late |= recording.late;
        self.secondaries.push((secondary.clone(), Arc::clone(recording)));
        Ok(())
    }

    /// Nothing is bound any more.
    pub(super) fn forget_state(&mut self) {
        (self.pipeline, self.push_layout, self.found) = (None, None, None);
        self.bound.clear();
    }

    pub(super) fn finish(mut self) -> Executable {
        self.end_phase();
        let Self { phases, labels, late, kept, flags, used, secondaries, .. } = self;
        let recording = Recording { phases, labels, keep_alive: kept.list, late };
        Executable { recording: Arc::new(recording), flags, used, secondaries }
    }
}
