//! The recorder: the commands of a recording, and the state that commands set for later ones.

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
use crate::exec::{Condition, Dependency, DispatchState, Phases, Recording, Work};
use crate::host_memory::{self, OutOfHostMemory};
use crate::memory::Allocation;
use crate::pipeline::{ComputePipeline, PipelineLayout};

/// A command buffer while it is recorded.
pub(super) struct CommandRecorder {
    pub(super) device: Device,
    flags: CommandBufferUsageFlags,
    phases: Phases,
    /// Labels of transfers, by phase and index in it.
    labels: BTreeMap<(usize, usize), Arc<str>>,
    /// What barriers and events depend on, if the device checks.
    pub(super) dependencies: Vec<Dependency>,
    kept: KeptAlive,
    used: Vec<(WeakSet, Arc<Contents>)>,
    secondaries: Vec<ExecutedSecondary>,
    /// Whether a submission has to resolve descriptor sets again.
    late: bool,
    pub(super) pipeline: Option<ComputePipeline>,
    /// By set number.
    pub(super) bound_sets: Vec<Option<BoundSet>>,
    pub(super) push: Arc<[u8; MAX_PUSH_BYTES]>,
    /// The layout that push constants were last set with.
    pub(super) push_layout: Option<PipelineLayout>,
    /// The condition for dispatches to run.
    pub(super) condition: Option<Condition>,
    /// Label of commands, put before the kernel's name or the kind of transfer.
    pub(super) label: Option<Arc<str>>,
    /// Name of the bound pipeline, in place of the kernel's.
    pub(super) kernel_name: Option<Arc<str>>,
    /// Cached state for the next dispatch, valid until a binding or a name changes. Push constants may differ.
    pub(super) dispatch_state: Option<Arc<DispatchState>>,
}

/// Owners of the memory that the recording's slices point into, each once.
#[derive(Default)]
struct KeptAlive {
    list: Vec<Arc<dyn Any + Send + Sync>>,
    seen: HashSet<usize, FixedState>,
}

/// Maximum number of objects that one command keeps alive: two resources, or the sets of a pipeline layout.
const KEPT_BY_ONE: usize = 64;

/// Shorter lists are not reserved explicitly: they grow by amounts for which an allocation does not fail.
const MIN_RESERVED: usize = 1 << 12;

impl KeptAlive {
    /// Reserves memory for what one command keeps alive.
    fn make_room(&mut self) -> Result<(), OutOfHostMemory> {
        if self.list.len() < MIN_RESERVED {
            return Ok(());
        }
        host_memory::reserve(&mut self.list, KEPT_BY_ONE)?;
        let bytes = (self.seen.capacity() * 2 * size_of::<usize>()) as u64;
        self.seen.try_reserve(KEPT_BY_ONE).map_err(|_| OutOfHostMemory { bytes })
    }

    /// Adds an object; whether it is new. Objects kept alive keep their address, so equal addresses mean the same
    /// object.
    fn keep<T: Send + Sync + 'static>(&mut self, thing: &Arc<T>) -> bool {
        let new = self.seen.insert(Arc::as_ptr(thing).addr());
        if new {
            self.list.push(Arc::clone(thing) as Arc<dyn Any + Send + Sync>);
        }
        new
    }
}

/// A secondary command buffer that a primary one executes, and its recording at that time.
pub(super) type ExecutedSecondary = (CommandBuffer, Arc<Recording>);

/// The result of recording, to be submitted.
pub(super) struct Executable {
    pub(super) recording: Arc<Recording>,
    pub(super) flags: CommandBufferUsageFlags,
    used: Vec<(WeakSet, Arc<Contents>)>,
    pub(super) secondaries: Vec<ExecutedSecondary>,
}

impl Executable {
    /// Whether a descriptor set was written since it was bound: Vulkan then calls the command buffer invalid.
    pub(super) fn is_stale(&self) -> bool {
        self.used.iter().any(|(set, contents)| set.changed_since(contents))
    }
}

impl CommandRecorder {
    pub(super) fn new(device: &Device, flags: CommandBufferUsageFlags) -> Self {
        Self {
            device: device.clone(),
            flags,
            phases: Phases::default(),
            labels: BTreeMap::new(),
            dependencies: Vec::new(),
            kept: KeptAlive::default(),
            used: Vec::new(),
            secondaries: Vec::new(),
            late: false,
            pipeline: None,
            bound_sets: Vec::new(),
            push: Arc::new([0; MAX_PUSH_BYTES]),
            push_layout: None,
            condition: None,
            label: None,
            kernel_name: None,
            dispatch_state: None,
        }
    }

    /// Reserves memory for a call of this many commands and all that they keep alive. Each recording function calls it
    /// first, so that adding the commands cannot fail.
    pub(super) fn make_room(&mut self, commands: usize) -> Result<(), OutOfHostMemory> {
        self.phases.make_room(commands)?;
        self.kept.make_room()?;
        if self.used.len() >= MIN_RESERVED { host_memory::reserve(&mut self.used, KEPT_BY_ONE) } else { Ok(()) }
    }

    /// Adds a command to the current phase.
    pub(super) fn add(&mut self, work: Work) {
        self.late |= matches!(&work, Work::Dispatch(dispatch) if dispatch.state.late.is_some());
        if let (Some(label), false) = (&self.label, matches!(work, Work::Dispatch(_))) {
            self.labels.insert((self.phases.len(), self.phases.open()), Arc::clone(label));
        }
        self.phases.push(work);
    }

    /// Adds the regions of one transfer to the current phase.
    pub(super) fn add_regions(&mut self, regions: impl Iterator<Item = Work>) {
        let first = self.phases.open();
        self.phases.push_call(regions);
        if let Some(label) = &self.label {
            let phase = self.phases.len();
            self.labels.extend((first..self.phases.open()).map(|place| ((phase, place), Arc::clone(label))));
        }
    }

    /// Ends the current phase, if it has commands.
    pub(super) fn end_phase(&mut self) {
        self.phases.end();
    }

    /// Number of the phase that the next command after a barrier belongs to.
    pub(super) fn next_phase(&self) -> usize {
        self.phases.len()
    }

    /// Keeps memory alive as long as the recording.
    pub(super) fn keep(&mut self, allocation: &Arc<Allocation>) {
        self.kept.keep(allocation);
    }

    /// Keeps the contents of a set alive, and notes them to detect a later write (`is_stale`).
    pub(super) fn keep_set(&mut self, number: usize) {
        let Some(Some(bound)) = self.bound_sets.get(number) else { return };
        // A late set may change: the submission keeps its contents at that time.
        if self.kept.keep(&bound.contents) && !bound.late {
            self.used.push((bound.set.clone(), Arc::clone(&bound.contents)));
        }
    }

    /// Adds the commands of a secondary command buffer.
    pub(super) fn execute(
        &mut self,
        secondary: &CommandBuffer,
        recording: &Arc<Recording>,
    ) -> Result<(), OutOfHostMemory> {
        self.make_room(1)?;
        self.phases.make_room_for(&recording.phases)?;
        self.end_phase();
        let before = self.phases.len();
        let moved =
            recording.labels.iter().map(|((phase, place), label)| ((before + phase, *place), Arc::clone(label)));
        self.labels.extend(moved);
        let moved = recording.dependencies.iter().cloned();
        self.dependencies.extend(moved.map(|of| Dependency { phase: before + of.phase, ..of }));
        self.phases.append(&recording.phases);
        self.kept.keep(recording);
        self.late |= recording.late;
        self.secondaries.push((secondary.clone(), Arc::clone(recording)));
        Ok(())
    }

    /// Unbinds everything.
    pub(super) fn forget_state(&mut self) {
        (self.pipeline, self.push_layout, self.dispatch_state) = (None, None, None);
        self.bound_sets.clear();
    }

    pub(super) fn finish(mut self, debug_name: Option<Arc<str>>) -> Executable {
        self.end_phase();
        let Self { phases, labels, dependencies, late, kept, flags, used, secondaries, .. } = self;
        let debug_name = debug_name.filter(|_| self.device.is_checked());
        let recording = Recording { phases, labels, dependencies, debug_name, keep_alive: kept.list, late };
        Executable { recording: Arc::new(recording), flags, used, secondaries }
    }
}
