//! Recordings and batches.
//!
//! A batch is a list of recordings, a recording a list of phases, a phase a list of commands that may overlap. All of
//! it is immutable, so every submission of a command buffer and every worker that runs it share one recording.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use ash::vk::PipelineStageFlags2;

use super::dependency::Dependency;
use super::phases::Phases;
use crate::sync::{FenceState, Target};

/// The commands of a command buffer: immutable, shared by every submission of it.
#[derive(Default)]
pub(crate) struct Recording {
    /// Run in order, each after the one before has ended.
    pub(crate) phases: Phases,
    /// The program's labels of transfers, by phase and index in it; for timelines. Names of dispatches include their
    /// label.
    pub(crate) labels: BTreeMap<(usize, usize), Arc<str>>,
    /// What the program's barriers and events depend on, in the order of recording; empty unless the device checks.
    pub(crate) dependencies: Vec<Dependency>,
    /// The program's name of the command buffer; `None` unless the device checks.
    pub(crate) debug_name: Option<Arc<str>>,
    /// Owners of the memory that slices in `phases` point into.
    pub(crate) keep_alive: Vec<Arc<dyn Any + Send + Sync>>,
    /// Whether a dispatch has descriptors that a submission has to read again.
    pub(crate) late: bool,
}

impl Recording {
    /// The name of a command in timelines.
    pub(crate) fn name(&self, phase: usize, command: usize) -> Cow<'_, str> {
        let name = self.phases[phase][command].name();
        match self.labels.get(&(phase, command)) {
            Some(label) => format!("{label}: {name}").into(),
            None => name.into(),
        }
    }

    /// The name of a command, or of the end.
    pub(crate) fn name_of(&self, phase: usize, command: usize) -> Cow<'_, str> {
        match self.phases.get(phase) {
            Some(commands) if command < commands.len() => self.name(phase, command),
            _ => "end".into(),
        }
    }

    /// The barriers before a phase, or those of the event command that the phase is.
    pub(crate) fn dependencies_at(&self, phase: usize, of_event: bool) -> impl Iterator<Item = &Dependency> {
        let first = self.dependencies.partition_point(|dependency| dependency.phase < phase);
        let here = self.dependencies[first..].iter().take_while(move |dependency| dependency.phase == phase);
        here.filter(move |dependency| dependency.events.is_some() == of_event)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("phases", &self.phases).field("keep_alive", &self.keep_alive.len()).finish()
    }
}

/// One submission. Its serial counts up per queue; semaphores and fence are signalled when it has retired.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Semaphore values that must be reached before it starts.
    pub(crate) waits: Vec<Target>,
    /// Run one after the other, as if separated by a barrier.
    pub(crate) recordings: Vec<Arc<Recording>>,
    /// Semaphore values to raise at the end, unless the device is lost.
    pub(crate) signals: Vec<Target>,
    /// The stages of both; `None` unless the device checks.
    pub(crate) semaphore_stages: Option<Box<SemaphoreStages>>,
    /// Signalled at the end, or settled with the error of a lost device.
    pub(crate) fence: Option<Arc<FenceState>>,
}

/// The stage masks of a submission's semaphores, and their values.
#[derive(Debug, Default)]
pub(crate) struct SemaphoreStages {
    /// The stages that wait for each of [`Batch::waits`].
    pub(crate) waits: Vec<PipelineStageFlags2>,
    /// The values of timeline semaphores among these; `None` is a binary semaphore.
    pub(crate) timeline_values: Vec<Option<u64>>,
    /// The stages after which each of [`Batch::signals`] is signalled.
    pub(crate) signals: Vec<PipelineStageFlags2>,
}
