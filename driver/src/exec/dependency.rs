//! Dependencies as the program gives them: stages, accesses, ranges. The executor needs none of that, since each
//! barrier ends a phase; checked mode tells from it what the program may rely on.

use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;

use ash::vk::{self, AccessFlags2, PipelineStageFlags2};

use super::observe::{CommandId, SubmissionId};
use super::recording::{Batch, Recording};

/// A synchronization scope and an access scope (Vulkan, "Execution and Memory Dependencies").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) stages: PipelineStageFlags2,
    pub(crate) access: AccessFlags2,
}

/// The two queue families of a queue family ownership transfer (Vulkan, "Queue Family Ownership Transfer"). Devices of
/// this driver have one family, so that the other one is outside of the device, and the transfer has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnershipTransfer {
    /// `srcQueueFamilyIndex`.
    pub src: u32,
    /// `dstQueueFamilyIndex`.
    pub dst: u32,
}

impl OwnershipTransfer {
    /// The transfer of a barrier with these families: none if they are equal.
    pub fn of(src: u32, dst: u32) -> Option<Self> {
        (src != dst).then_some(Self { src, dst })
    }
}

/// `queue family 0 to VK_QUEUE_FAMILY_EXTERNAL`.
impl fmt::Display for OwnershipTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |family| match family {
            vk::QUEUE_FAMILY_IGNORED => "VK_QUEUE_FAMILY_IGNORED".to_owned(),
            vk::QUEUE_FAMILY_EXTERNAL => "VK_QUEUE_FAMILY_EXTERNAL".to_owned(),
            vk::QUEUE_FAMILY_FOREIGN_EXT => "VK_QUEUE_FAMILY_FOREIGN_EXT".to_owned(),
            number => format!("queue family {number}"),
        };
        write!(f, "{} to {}", name(self.src), name(self.dst))
    }
}

/// A memory dependency, or an execution dependency if its access scopes are empty.
#[derive(Clone, Debug)]
pub(crate) struct MemoryDependency {
    pub(crate) src: Scope,
    pub(crate) dst: Scope,
    /// Addresses that the access scopes are limited to; `None` is all memory.
    pub(crate) memory: Option<Arc<[Range<u64>]>>,
    /// Whether an image layout transition accesses that memory between the two scopes.
    pub(crate) transition: bool,
    /// Whether it also is a queue family ownership transfer of that memory.
    pub(crate) ownership: Option<OwnershipTransfer>,
}

/// The barriers of one command, by its place in a recording.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    /// A pipeline barrier comes before this phase; the scopes of an event command belong to this phase, which is that
    /// command.
    pub(crate) phase: usize,
    /// Of an event command, the places of its events that they are for; `None` is a pipeline barrier.
    pub(crate) events: Option<Range<usize>>,
    pub(crate) barriers: Arc<[MemoryDependency]>,
}

/// Receives what the executor does with batches, in the order in which it happens: for checked mode, which has one
/// worker. Calls must not reach the executor again.
pub(crate) trait CommandLog: Debug + Send + Sync {
    /// The host submits a batch: called before it can start.
    fn submitted(&self, id: SubmissionId, batch: &Batch);

    /// The semaphores that a batch waits for have their values. May be called again for a batch that was left.
    fn started(&self, id: SubmissionId, batch: &Batch);

    /// A phase comes next, or the end of the recording if there is no such phase.
    fn phase(&self, id: CommandId, recording: &Recording);

    /// A command of the phase runs now, with as many workgroups if it is a dispatch.
    fn command(&self, id: CommandId, recording: &Recording);

    /// The batch is done: its semaphores and its fence are about to be signalled.
    fn ended(&self, id: SubmissionId, batch: &Batch);

    /// Whether the dispatch that runs has done its work, and is being examined: that has a bound of its own.
    fn is_examining(&self) -> bool;
}
