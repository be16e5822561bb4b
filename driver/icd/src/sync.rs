//! Synchronization and submission: fences, semaphores, events, queues.

use std::time::Duration;

use ash::vk;
use spelter_driver::{self as driver, host_memory};

use crate::c::entry::entry_points;
use crate::c::{In, Many, Out};
use crate::command::CommandBuffer;
use crate::device::{Device, Queue};
use crate::error::{Error, require};
use crate::findings::{self, Submitting};
use crate::table::{Maybe, Object, Ref, object};

entry_points! {
    PFN_vkCreateFence(
        device: vk::Device, p_create_info: *const vk::FenceCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_fence: *mut vk::Fence,
    ) -> vk::Result => create_fence;
    PFN_vkDestroyFence(
        device: vk::Device, fence: vk::Fence, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_fence;
    PFN_vkResetFences(device: vk::Device, fence_count: u32, p_fences: *const vk::Fence) -> vk::Result => reset_fences;
    PFN_vkGetFenceStatus(device: vk::Device, fence: vk::Fence) -> vk::Result => fence_status;
    PFN_vkWaitForFences(
        device: vk::Device, fence_count: u32, p_fences: *const vk::Fence, wait_all: vk::Bool32, timeout: u64,
    ) -> vk::Result => wait_for_fences;
    PFN_vkCreateSemaphore(
        device: vk::Device, p_create_info: *const vk::SemaphoreCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_semaphore: *mut vk::Semaphore,
    ) -> vk::Result => create_semaphore;
    PFN_vkDestroySemaphore(
        device: vk::Device, semaphore: vk::Semaphore, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_semaphore;
    PFN_vkGetSemaphoreCounterValue(
        device: vk::Device, semaphore: vk::Semaphore, p_value: *mut u64,
    ) -> vk::Result => counter_value;
    PFN_vkWaitSemaphores(
        device: vk::Device, p_wait_info: *const vk::SemaphoreWaitInfo<'_>, timeout: u64,
    ) -> vk::Result => wait_semaphores;
    PFN_vkSignalSemaphore(
        device: vk::Device, p_signal_info: *const vk::SemaphoreSignalInfo<'_>,
    ) -> vk::Result => signal_semaphore;
    PFN_vkCreateEvent(
        device: vk::Device, p_create_info: *const vk::EventCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_event: *mut vk::Event,
    ) -> vk::Result => create_event;
    PFN_vkDestroyEvent(
        device: vk::Device, event: vk::Event, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_event;
    PFN_vkGetEventStatus(device: vk::Device, event: vk::Event) -> vk::Result => event_status;
    PFN_vkSetEvent(device: vk::Device, event: vk::Event) -> vk::Result => set_event;
    PFN_vkResetEvent(device: vk::Device, event: vk::Event) -> vk::Result => reset_event;
    PFN_vkQueueSubmit(
        queue: vk::Queue, submit_count: u32, p_submits: *const vk::SubmitInfo<'_>, fence: vk::Fence,
    ) -> vk::Result => submit;
    PFN_vkQueueSubmit2(
        queue: vk::Queue, submit_count: u32, p_submits: *const vk::SubmitInfo2<'_>, fence: vk::Fence,
    ) -> vk::Result => submit2;
    PFN_vkQueueWaitIdle(queue: vk::Queue) -> vk::Result => wait_idle;
    PFN_vkQueueBindSparse(
        queue: vk::Queue, bind_info_count: u32, p_bind_info: *const vk::BindSparseInfo<'_>, fence: vk::Fence,
    ) -> vk::Result => bind_sparse;
}

/// `VkFence`.
pub(crate) struct Fence {
    driver: driver::Fence,
}

object!(Fence: vk::Fence);

/// `VkSemaphore`.
pub(crate) struct Semaphore {
    driver: driver::Semaphore,
}

object!(Semaphore: vk::Semaphore);

/// `VkEvent`.
pub(crate) struct Event {
    pub(crate) driver: driver::Event,
}

object!(Event: vk::Event);

/// A timeout in nanoseconds; `None` if it is infinite or longer than centuries.
fn duration(timeout: u64) -> Option<Duration> {
    (timeout < u64::MAX / 2).then(|| Duration::from_nanos(timeout))
}

fn in_time(done: bool) -> vk::Result {
    if done { vk::Result::SUCCESS } else { vk::Result::TIMEOUT }
}

fn create_fence(
    device: Ref<Device>,
    info: In<'_, vk::FenceCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Fence>,
) -> Result<(), Error> {
    let exported = info.next::<vk::ExportFenceCreateInfo<'_>>().map(|export| export.handle_types).unwrap_or_default();
    require(exported.is_empty(), "vkCreateFence", "VUID-VkExportFenceCreateInfo-handleTypes-01446", || {
        format!("fences cannot be exported: {exported:?}")
    })?;
    let signaled = info.flags.contains(vk::FenceCreateFlags::SIGNALED);
    out.put(Fence { driver: device.driver.create_fence(signaled) }.insert()?);
    Ok(())
}

fn destroy_fence(_: Ref<Device>, fence: vk::Fence, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Fence::remove(fence, "vkDestroyFence-fence").map(|_| ())
}

fn find_fences(count: u32, fences: Many<'_, vk::Fence>, at: &str) -> Result<Vec<Ref<Fence>>, Error> {
    host_memory::try_collect(fences.of(count as usize).iter().map(|&fence| Fence::get(fence, at)))
}

fn reset_fences(_: Ref<Device>, count: u32, fences: Many<'_, vk::Fence>) -> Result<(), Error> {
    for fence in find_fences(count, fences, "vkResetFences-pFences")? {
        fence.driver.reset()?;
    }
    Ok(())
}

fn fence_status(device: Ref<Device>, fence: Ref<Fence>) -> Result<vk::Result, Error> {
    if fence.driver.is_signaled() {
        Ok(vk::Result::SUCCESS)
    } else if device.driver.is_lost() {
        fence.driver.wait(Some(Duration::ZERO)).map(|_| vk::Result::NOT_READY).map_err(Error::from)
    } else {
        Ok(vk::Result::NOT_READY)
    }
}

fn wait_for_fences(
    _: Ref<Device>,
    count: u32,
    fences: Many<'_, vk::Fence>,
    all: vk::Bool32,
    timeout: u64,
) -> Result<vk::Result, Error> {
    let fences = find_fences(count, fences, "vkWaitForFences-pFences")?;
    if all == vk::FALSE && fences.len() > 1 {
        let fences = host_memory::collect(fences.iter().map(|fence| &fence.driver))?;
        return Ok(in_time(driver::Fence::wait_any(&fences, duration(timeout))?));
    }
    let (start, timeout) = (std::time::Instant::now(), duration(timeout));
    for fence in &fences {
        let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
        if !fence.driver.wait(left)? {
            return Ok(vk::Result::TIMEOUT);
        }
    }
    Ok(vk::Result::SUCCESS)
}

fn create_semaphore(
    device: Ref<Device>,
    info: In<'_, vk::SemaphoreCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Semaphore>,
) -> Result<(), Error> {
    let exported = info.next::<vk::ExportSemaphoreCreateInfo<'_>>();
    let exported = exported.map(|export| export.handle_types).unwrap_or_default();
    require(exported.is_empty(), "vkCreateSemaphore", "VUID-VkExportSemaphoreCreateInfo-handleTypes-01124", || {
        format!("semaphores cannot be exported: {exported:?}")
    })?;
    let kind = info.next::<vk::SemaphoreTypeCreateInfo<'_>>();
    let timeline = kind.filter(|kind| kind.semaphore_type == vk::SemaphoreType::TIMELINE);
    let driver = match timeline {
        Some(timeline) => device.driver.create_timeline_semaphore(timeline.initial_value),
        None => device.driver.create_semaphore(),
    };
    out.put(Semaphore { driver }.insert()?);
    Ok(())
}

fn destroy_semaphore(
    _: Ref<Device>,
    semaphore: vk::Semaphore,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    Semaphore::remove(semaphore, "vkDestroySemaphore-semaphore").map(|_| ())
}

fn counter_value(_: Ref<Device>, semaphore: Ref<Semaphore>, mut out: Out<'_, u64>) -> Result<(), Error> {
    out.put(semaphore.driver.value()?);
    Ok(())
}

fn wait_semaphores(_: Ref<Device>, info: In<'_, vk::SemaphoreWaitInfo<'_>>, timeout: u64) -> Result<vk::Result, Error> {
    let at = "VkSemaphoreWaitInfo-pSemaphores";
    let semaphores =
        host_memory::try_collect(info.semaphores().iter().map(|&semaphore| Semaphore::get(semaphore, at)))?;
    let values = info.values();
    let pairs = host_memory::collect(
        semaphores.iter().zip(values.iter()).map(|(semaphore, &value)| (&semaphore.driver, value)),
    )?;
    let any = info.flags.contains(vk::SemaphoreWaitFlags::ANY);
    let wait = if any { driver::Semaphore::wait_any } else { driver::Semaphore::wait_all };
    Ok(in_time(wait(&pairs, duration(timeout))?))
}

fn signal_semaphore(_: Ref<Device>, info: In<'_, vk::SemaphoreSignalInfo<'_>>) -> Result<(), Error> {
    let semaphore = Semaphore::get(info.semaphore, "VkSemaphoreSignalInfo-semaphore")?;
    Ok(semaphore.driver.signal(info.value)?)
}

fn create_event(
    device: Ref<Device>,
    _: In<'_, vk::EventCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Event>,
) -> Result<(), Error> {
    out.put(Event { driver: device.driver.create_event() }.insert()?);
    Ok(())
}

fn destroy_event(_: Ref<Device>, event: vk::Event, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Event::remove(event, "vkDestroyEvent-event").map(|_| ())
}

fn event_status(device: Ref<Device>, event: Ref<Event>) -> Result<vk::Result, Error> {
    device.driver.check_alive()?;
    Ok(if event.driver.is_set() { vk::Result::EVENT_SET } else { vk::Result::EVENT_RESET })
}

fn set_event(_: Ref<Device>, event: Ref<Event>) -> Result<(), Error> {
    event.driver.set();
    Ok(())
}

fn reset_event(_: Ref<Device>, event: Ref<Event>) -> Result<(), Error> {
    event.driver.reset();
    Ok(())
}

/// One submission, with its handles resolved to objects.
struct FoundSubmission {
    waits: Vec<FoundSemaphore>,
    commands: Vec<Ref<CommandBuffer>>,
    /// In checked mode, the handles of the command buffers.
    handles: Vec<vk::CommandBuffer>,
    signals: Vec<FoundSemaphore>,
}

/// A semaphore of a submission, its value, and its stages.
type FoundSemaphore = (Ref<Semaphore>, u64, vk::PipelineStageFlags2);

fn find_semaphores(
    handles: impl Iterator<Item = (vk::Semaphore, u64, vk::PipelineStageFlags2)>,
    at: &str,
) -> Result<Vec<FoundSemaphore>, Error> {
    host_memory::try_collect(handles.map(|(handle, value, stages)| Ok((Semaphore::get(handle, at)?, value, stages))))
}

impl FoundSubmission {
    fn of(info: In<'_, vk::SubmitInfo<'_>>) -> Result<Self, Error> {
        let timeline = info.next::<vk::TimelineSemaphoreSubmitInfo<'_>>();
        let value = |values: Option<&[u64]>, index| values.and_then(|values| values.get(index).copied()).unwrap_or(0);
        let (wait_values, signal_values) =
            (timeline.map(|t| t.wait_values().get()), timeline.map(|t| t.signal_values().get()));
        let (waits, signals) = (info.waits().get().iter().enumerate(), info.signals().get().iter().enumerate());
        let masks = info.wait_stages().get();
        // VkSubmitInfo signals after all stages.
        let all = vk::PipelineStageFlags2::ALL_COMMANDS;
        let stages =
            |index: usize| masks.get(index).map_or(all, |mask| vk::PipelineStageFlags2::from_raw(mask.as_raw().into()));
        let waits = waits.map(|(index, &handle)| (handle, value(wait_values, index), stages(index)));
        let signals = signals.map(|(index, &handle)| (handle, value(signal_values, index), all));
        let commands = info.commands().get().iter().copied();
        Self::find(waits, commands, signals)
    }

    fn of2(info: In<'_, vk::SubmitInfo2<'_>>) -> Result<Self, Error> {
        let one =
            |semaphore: &vk::SemaphoreSubmitInfo<'_>| (semaphore.semaphore, semaphore.value, semaphore.stage_mask);
        let commands = info.commands().get().iter().map(|command| command.command_buffer);
        Self::find(info.waits().get().iter().map(one), commands, info.signals().get().iter().map(one))
    }

    fn find(
        waits: impl Iterator<Item = (vk::Semaphore, u64, vk::PipelineStageFlags2)>,
        commands: impl Iterator<Item = vk::CommandBuffer>,
        signals: impl Iterator<Item = (vk::Semaphore, u64, vk::PipelineStageFlags2)>,
    ) -> Result<Self, Error> {
        let at = "VkSubmitInfo-pCommandBuffers";
        let (mut handles, checked) = (Vec::new(), findings::is_on());
        let commands = commands.inspect(|&handle| handles.extend(checked.then_some(handle)));
        Ok(Self {
            waits: find_semaphores(waits, "VkSubmitInfo-pWaitSemaphores")?,
            commands: host_memory::try_collect(commands.map(|handle| CommandBuffer::get(handle, at)))?,
            handles,
            signals: find_semaphores(signals, "VkSubmitInfo-pSignalSemaphores")?,
        })
    }
}

fn operations(found: &[FoundSemaphore]) -> Result<Vec<driver::SemaphoreSubmit<'_>>, Error> {
    let mut list = host_memory::list(found.len())?;
    list.extend(found.iter().map(|(found, value, stages)| driver::SemaphoreSubmit {
        semaphore: &found.driver,
        value: *value,
        stages: *stages,
    }));
    Ok(list)
}

fn submit_found(queue: &Queue, found: &[FoundSubmission], fence: Option<&Ref<Fence>>) -> Result<(), Error> {
    // The driver takes slices of references, so the objects are kept here for the call.
    let parts = host_memory::try_collect(found.iter().map(|found| {
        let commands = host_memory::collect(found.commands.iter().map(|command| &command.driver))?;
        Ok::<_, Error>((operations(&found.waits)?, commands, operations(&found.signals)?))
    }))?;
    let infos = parts.iter().map(|(waits, commands, signals)| driver::SubmitInfo { waits, commands, signals });
    let infos = host_memory::collect(infos)?;
    if infos.is_empty() && fence.is_none() {
        return Ok(());
    }
    let _handles = findings::is_on().then(|| Submitting::of(found.iter().map(|found| found.handles.clone())));
    queue.driver.submit_all(&infos, fence.map(|fence| &fence.driver))?;
    Ok(())
}

fn submit(
    queue: Ref<Queue>,
    count: u32,
    submits: Many<'_, vk::SubmitInfo<'_>>,
    fence: Maybe<Fence>,
) -> Result<(), Error> {
    let found = host_memory::try_collect(submits.of(count as usize).each().map(FoundSubmission::of))?;
    submit_found(&queue, &found, fence.0.as_ref())
}

fn submit2(
    queue: Ref<Queue>,
    count: u32,
    submits: Many<'_, vk::SubmitInfo2<'_>>,
    fence: Maybe<Fence>,
) -> Result<(), Error> {
    let found = host_memory::try_collect(submits.of(count as usize).each().map(FoundSubmission::of2))?;
    submit_found(&queue, &found, fence.0.as_ref())
}

fn wait_idle(queue: Ref<Queue>) -> Result<(), Error> {
    Ok(queue.driver.wait_idle()?)
}

/// There are no sparse resources to bind, but the fence is signalled.
fn bind_sparse(
    queue: Ref<Queue>,
    count: u32,
    _: Many<'_, vk::BindSparseInfo<'_>>,
    fence: Maybe<Fence>,
) -> Result<(), Error> {
    if count > 0 {
        let (problem, vuid) = ("the queue has no SPARSE_BINDING", "VUID-vkQueueBindSparse-queuetype");
        return Err(Error::misuse("vkQueueBindSparse", problem, vuid));
    }
    submit_found(&queue, &[], fence.0.as_ref())
}
