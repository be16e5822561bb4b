//! Command buffers and their lifecycle: initial, recording, executable, pending (Vulkan, "Command Buffer Lifecycle").

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ash::vk;
use spelter_locks::{Mutex, MutexGuard};

use super::recorder::{CommandRecorder, Executable};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::exec::QueueState;

/// A pool of command buffers (`VkCommandPool` with `RESET_COMMAND_BUFFER`). A handle.
#[derive(Clone, Debug)]
pub struct CommandPool {
    device: Device,
}

impl Device {
    /// `vkCreateCommandPool`, with `RESET_COMMAND_BUFFER`.
    pub fn create_command_pool(&self) -> CommandPool {
        CommandPool::new(self)
    }
}

impl CommandPool {
    fn new(device: &Device) -> Self {
        Self { device: device.clone() }
    }

    /// `vkAllocateCommandBuffers`: a primary command buffer in the initial state.
    pub fn allocate(&self) -> CommandBuffer {
        self.allocate_at(false)
    }

    /// `vkAllocateCommandBuffers` with `VK_COMMAND_BUFFER_LEVEL_SECONDARY`: a command buffer for
    /// [`CommandBuffer::execute_commands`].
    pub fn allocate_secondary(&self) -> CommandBuffer {
        self.allocate_at(true)
    }

    fn allocate_at(&self, secondary: bool) -> CommandBuffer {
        let lifecycle = Mutex::new(Lifecycle { state: LifecycleState::Initial, entering: 0, submitted: Vec::new() });
        CommandBuffer {
            inner: Arc::new(CommandBufferState {
                device: self.device.clone(),
                secondary,
                debug_name: Mutex::default(),
                lifecycle,
            }),
        }
    }
}

/// A command buffer (`VkCommandBuffer`). A handle; its recording lives until it is recorded again, reset or dropped,
/// and all its submissions are done.
#[derive(Clone)]
pub struct CommandBuffer {
    inner: Arc<CommandBufferState>,
}

struct CommandBufferState {
    device: Device,
    secondary: bool,
    debug_name: Mutex<Option<Arc<str>>>,
    lifecycle: Mutex<Lifecycle>,
}

/// State of a command buffer, and its submissions.
pub(super) struct Lifecycle {
    pub(super) state: LifecycleState,
    /// Number of submissions that have begun and have no serial yet.
    pub(super) entering: usize,
    /// Submissions that may still be pending.
    pub(super) submitted: Vec<(Arc<QueueState>, u64)>,
}

/// The states of the specification, except pending ([`Lifecycle::is_pending`]).
pub(super) enum LifecycleState {
    Initial,
    Recording(Box<CommandRecorder>),
    Executable(Executable),
    /// Submitted with `ONE_TIME_SUBMIT`.
    Invalid,
}

impl LifecycleState {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Initial => "initial",
            Self::Recording(_) => "recording",
            Self::Executable(_) => "executable",
            Self::Invalid => "invalid",
        }
    }
}

impl Lifecycle {
    /// Whether a submission is pending. On a lost device none is.
    pub(super) fn is_pending(&mut self, device: &Device) -> bool {
        self.submitted.retain(|(queue, serial)| queue.retired() < *serial);
        (self.entering > 0 || !self.submitted.is_empty()) && !device.is_lost()
    }
}

impl CommandBuffer {
    /// `vkBeginCommandBuffer`: discards the previous recording.
    pub fn begin(&self, flags: vk::CommandBufferUsageFlags) -> Result<(), Error> {
        let (at, vuid) = ("vkBeginCommandBuffer", "VUID-vkBeginCommandBuffer-commandBuffer-00049");
        let both = vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT | vk::CommandBufferUsageFlags::SIMULTANEOUS_USE;
        require(!flags.contains(both), at, "VUID-vkBeginCommandBuffer-commandBuffer-02840", || {
            "flags has both ONE_TIME_SUBMIT and SIMULTANEOUS_USE".into()
        })?;
        let mut lifecycle = self.lifecycle();
        let recording = matches!(lifecycle.state, LifecycleState::Recording(_));
        require(!recording, at, vuid, || "the command buffer is being recorded".into())?;
        require(!lifecycle.is_pending(&self.inner.device), at, vuid, || "the command buffer is pending".into())?;
        lifecycle.state = LifecycleState::Recording(Box::new(CommandRecorder::new(&self.inner.device, flags)));
        Ok(())
    }

    /// `vkEndCommandBuffer`.
    pub fn end(&self) -> Result<(), Error> {
        let mut lifecycle = self.lifecycle();
        match std::mem::replace(&mut lifecycle.state, LifecycleState::Initial) {
            LifecycleState::Recording(recorder) => {
                lifecycle.state = LifecycleState::Executable(recorder.finish(self.inner.debug_name.lock().clone()));
                Ok(())
            }
            other => {
                lifecycle.state = other;
                let vuid = "VUID-vkEndCommandBuffer-commandBuffer-00059";
                Err(not_recording("vkEndCommandBuffer", vuid, &lifecycle.state).into())
            }
        }
    }

    /// `vkResetCommandBuffer`: returns to the initial state and releases all resources.
    pub fn reset(&self) -> Result<(), Error> {
        let mut lifecycle = self.lifecycle();
        let pending = lifecycle.is_pending(&self.inner.device);
        require(!pending, "vkResetCommandBuffer", "VUID-vkResetCommandBuffer-commandBuffer-00045", || {
            "the command buffer is pending".into()
        })?;
        lifecycle.state = LifecycleState::Initial;
        Ok(())
    }

    /// Names the command buffer in findings of checked mode, from the next recording that ends
    /// (`vkSetDebugUtilsObjectNameEXT`). An empty one is none.
    pub fn set_debug_name(&self, name: Option<&str>) {
        *self.inner.debug_name.lock() = name.filter(|name| !name.is_empty()).map(Into::into);
    }

    /// Whether it is a secondary command buffer, which runs only as a part of primary ones.
    pub fn is_secondary(&self) -> bool {
        self.inner.secondary
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(super) fn lifecycle(&self) -> MutexGuard<'_, Lifecycle> {
        self.inner.lifecycle.lock()
    }

    /// The recording, with memory reserved for one more command.
    pub(super) fn recorder(&self, at: &'static str, vuid: &'static str) -> Result<LockedRecorder<'_>, Error> {
        let lifecycle = self.lifecycle();
        if !matches!(lifecycle.state, LifecycleState::Recording(_)) {
            return Err(not_recording(at, vuid, &lifecycle.state).into());
        }
        let mut recorder = LockedRecorder(lifecycle);
        recorder.make_room(1)?;
        Ok(recorder)
    }
}

/// The recorder of a locked command buffer. The lock keeps it in the recording state.
pub(super) struct LockedRecorder<'a>(MutexGuard<'a, Lifecycle>);

impl Deref for LockedRecorder<'_> {
    type Target = CommandRecorder;

    fn deref(&self) -> &CommandRecorder {
        let LifecycleState::Recording(recorder) = &self.0.state else { unreachable!("made in the recording state") };
        recorder
    }
}

impl DerefMut for LockedRecorder<'_> {
    fn deref_mut(&mut self) -> &mut CommandRecorder {
        let LifecycleState::Recording(recorder) = &mut self.0.state else {
            unreachable!("made in the recording state")
        };
        recorder
    }
}

fn not_recording(at: &str, vuid: &'static str, state: &LifecycleState) -> Misuse {
    Misuse::new(at, format!("the command buffer is not being recorded: its state is {}", state.name()), vuid)
}

impl fmt::Debug for CommandBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandBuffer({})", self.lifecycle().state.name())
    }
}
