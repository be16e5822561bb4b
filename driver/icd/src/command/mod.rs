//! Command pools and command buffers.

mod barrier;
mod bind;
mod dispatch;
mod event;
mod image;
mod scopes;
mod secondary;
mod transfer;

pub(crate) use image::plain_copy;

use std::collections::HashSet;
use std::sync::Arc;

use ash::vk;
use spelter_driver::{self as driver, host_memory};
use spelter_locks::{Mutex, MutexGuard};

use crate::c::emergency;
use crate::c::entry::{entry_points, exhausted};
use crate::c::{EntryPoint, In, Many, Out, OutMany};
use crate::descriptor::Pushed;
use crate::device::Device;
use crate::error::Error;
use crate::labels::Labels;
use crate::names;
use crate::table::{Object, Ref, object};

/// The chapters below this one.
pub(crate) const CHAPTERS: [&[EntryPoint]; 7] = [
    barrier::ENTRY_POINTS,
    bind::ENTRY_POINTS,
    dispatch::ENTRY_POINTS,
    event::ENTRY_POINTS,
    image::ENTRY_POINTS,
    secondary::ENTRY_POINTS,
    transfer::ENTRY_POINTS,
];

entry_points! {
    PFN_vkCreateCommandPool(
        device: vk::Device, p_create_info: *const vk::CommandPoolCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_command_pool: *mut vk::CommandPool,
    ) -> vk::Result => create_pool;
    PFN_vkDestroyCommandPool(
        device: vk::Device, command_pool: vk::CommandPool, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_pool;
    PFN_vkResetCommandPool(
        device: vk::Device, command_pool: vk::CommandPool, flags: vk::CommandPoolResetFlags,
    ) -> vk::Result => reset_pool;
    PFN_vkTrimCommandPool(
        device: vk::Device, command_pool: vk::CommandPool, flags: vk::CommandPoolTrimFlags,
    ) => trim_pool;
    PFN_vkAllocateCommandBuffers(
        device: vk::Device, p_allocate_info: *const vk::CommandBufferAllocateInfo<'_>,
        p_command_buffers: *mut vk::CommandBuffer,
    ) -> vk::Result => allocate;
    PFN_vkFreeCommandBuffers(
        device: vk::Device, command_pool: vk::CommandPool, command_buffer_count: u32,
        p_command_buffers: *const vk::CommandBuffer,
    ) => free;
    PFN_vkBeginCommandBuffer(
        command_buffer: vk::CommandBuffer, p_begin_info: *const vk::CommandBufferBeginInfo<'_>,
    ) -> vk::Result => begin;
    PFN_vkEndCommandBuffer(command_buffer: vk::CommandBuffer) -> vk::Result => end;
    PFN_vkResetCommandBuffer(
        command_buffer: vk::CommandBuffer, flags: vk::CommandBufferResetFlags,
    ) -> vk::Result => reset;
}

/// `VkCommandPool`.
pub(crate) struct CommandPool {
    driver: driver::CommandPool,
    buffers: Mutex<HashSet<vk::CommandBuffer>>,
}

object!(CommandPool: vk::CommandPool);

/// `VkCommandBuffer`.
pub(crate) struct CommandBuffer {
    pub(crate) driver: driver::CommandBuffer,
    pub(crate) device: Arc<Device>,
    /// The error of the first command that failed: the recording is invalid.
    failed: Mutex<Option<Error>>,
    pushed: Mutex<Option<Pushed>>,
    pub(crate) labels: Mutex<Labels>,
}

object!(dispatchable CommandBuffer: vk::CommandBuffer, |commands| commands.device.owner(), |commands, message| {
    message.command_labels = commands.labels.lock().open();
});

impl CommandBuffer {
    /// Records a command. If this fails, so does the end of the recording.
    pub(crate) fn add(&self, record: impl FnOnce(&driver::CommandBuffer) -> Result<(), Error>) -> Result<(), Error> {
        let room = emergency::is_reserved() || emergency::replenish();
        let recorded = if room { record(&self.driver) } else { Err(exhausted()) };
        recorded.inspect_err(|error| {
            self.failed.lock().get_or_insert_with(|| error.clone());
        })
    }

    /// The push descriptors of the recording.
    pub(crate) fn pushed(&self) -> MutexGuard<'_, Option<Pushed>> {
        self.pushed.lock()
    }

    fn forget(&self) {
        *self.failed.lock() = None;
        *self.pushed.lock() = None;
        *self.labels.lock() = Labels::default();
    }

    fn end(&self) -> Result<(), Error> {
        let ended = self.driver.end();
        if let Some(error) = self.failed.lock().take() {
            self.driver.reset()?;
            let code = error.code();
            return Err(Error::Code(code, format!("recording a command failed: {error}")));
        }
        Ok(ended?)
    }
}

fn create_pool(
    device: Ref<Device>,
    info: In<'_, vk::CommandPoolCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::CommandPool>,
) -> Result<(), Error> {
    let family = info.queue_family_index;
    if family != 0 {
        let problem = format!("queueFamilyIndex {family} of 1 family");
        return Err(Error::misuse("vkCreateCommandPool", problem, "VUID-vkCreateCommandPool-queueFamilyIndex-01937"));
    }
    let pool = CommandPool { driver: device.driver.create_command_pool(), buffers: Mutex::default() };
    out.put(pool.insert()?);
    Ok(())
}

fn destroy_pool(_: Ref<Device>, pool: vk::CommandPool, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    let Some(pool) = CommandPool::remove(pool, "vkDestroyCommandPool-commandPool")? else { return Ok(()) };
    for buffer in pool.buffers.lock().drain() {
        CommandBuffer::remove(buffer, "vkDestroyCommandPool-commandPool")?;
    }
    Ok(())
}

fn reset_pool(_: Ref<Device>, pool: Ref<CommandPool>, _: vk::CommandPoolResetFlags) -> Result<(), Error> {
    let buffers = host_memory::collect(pool.buffers.lock().iter().copied())?;
    for buffer in buffers.into_iter().filter_map(CommandBuffer::find) {
        buffer.driver.reset()?;
        buffer.forget();
    }
    Ok(())
}

/// The pool keeps no memory that could be trimmed.
fn trim_pool(_: Ref<Device>, _: Ref<CommandPool>, _: vk::CommandPoolTrimFlags) -> Result<(), Error> {
    Ok(())
}

fn allocate(
    device: Ref<Device>,
    info: In<'_, vk::CommandBufferAllocateInfo<'_>>,
    out: OutMany<'_, vk::CommandBuffer>,
) -> Result<(), Error> {
    let pool = CommandPool::get(info.command_pool, "VkCommandBufferAllocateInfo-commandPool")?;
    let secondary = info.level == vk::CommandBufferLevel::SECONDARY;
    let new = |_| {
        let driver = if secondary { pool.driver.allocate_secondary() } else { pool.driver.allocate() };
        let (failed, pushed, labels) = Default::default();
        CommandBuffer { driver, device: device.share(), failed, pushed, labels }
    };
    let mut buffers = pool.buffers.lock();
    host_memory::reserve_set(&mut buffers, info.command_buffer_count as usize)?;
    let made = CommandBuffer::insert_all((0..info.command_buffer_count).map(new))?;
    buffers.extend(&made);
    out.put(made.len(), made);
    Ok(())
}

fn free(_: Ref<Device>, pool: Ref<CommandPool>, count: u32, buffers: Many<'_, vk::CommandBuffer>) -> Result<(), Error> {
    let mut result = Ok(());
    for &buffer in buffers.of(count as usize).iter() {
        pool.buffers.lock().remove(&buffer);
        let freed = CommandBuffer::remove(buffer, "vkFreeCommandBuffers-pCommandBuffers-00048").map(|_| ());
        result = result.and(freed);
    }
    result
}

fn begin(commands: Ref<CommandBuffer>, info: In<'_, vk::CommandBufferBeginInfo<'_>>) -> Result<(), Error> {
    // Secondary command buffers that continue a render pass record graphics, which fails by itself.
    let flags = info.flags & !vk::CommandBufferUsageFlags::RENDER_PASS_CONTINUE;
    commands.driver.begin(flags)?;
    commands.forget();
    Ok(())
}

fn end(commands: vk::CommandBuffer) -> Result<(), Error> {
    let found = CommandBuffer::get(commands, "vkEndCommandBuffer-commandBuffer")?;
    found.end().map_err(|error| match error {
        Error::Code(code, text) => Error::Code(code, format!("the command buffer{}: {text}", names::suffix(commands))),
        other => other,
    })
}

fn reset(commands: Ref<CommandBuffer>, _: vk::CommandBufferResetFlags) -> Result<(), Error> {
    commands.driver.reset()?;
    commands.forget();
    Ok(())
}
