//! Events in command buffers. They order all commands, as barriers do; stages and accesses are only checked.

use ash::vk::{self, PipelineStageFlags as S, PipelineStageFlags2 as S2};
use spelter_driver::{self as driver, host_memory};

use super::CommandBuffer;
use super::barrier::{
    Old, SET_EVENT2, WAIT_EVENTS, WAIT_EVENTS2, check_dependency, with_dependencies, with_dependency,
};
use super::scopes::{Rules, Scope, check, check_no_host};
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::error::Error;
use crate::sync::Event;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdSetEvent(command_buffer: vk::CommandBuffer, event: vk::Event, stage_mask: S) => set;
    PFN_vkCmdResetEvent(command_buffer: vk::CommandBuffer, event: vk::Event, stage_mask: S) => reset;
    PFN_vkCmdWaitEvents(
        command_buffer: vk::CommandBuffer, event_count: u32, p_events: *const vk::Event, src_stage_mask: S,
        dst_stage_mask: S, memory_barrier_count: u32, p_memory_barriers: *const vk::MemoryBarrier<'_>,
        buffer_memory_barrier_count: u32, p_buffer_memory_barriers: *const vk::BufferMemoryBarrier<'_>,
        image_memory_barrier_count: u32, p_image_memory_barriers: *const vk::ImageMemoryBarrier<'_>,
    ) => wait;
    PFN_vkCmdSetEvent2(
        command_buffer: vk::CommandBuffer, event: vk::Event, p_dependency_info: *const vk::DependencyInfo<'_>,
    ) => set2;
    PFN_vkCmdResetEvent2(command_buffer: vk::CommandBuffer, event: vk::Event, stage_mask: S2) => reset2;
    PFN_vkCmdWaitEvents2(
        command_buffer: vk::CommandBuffer, event_count: u32, p_events: *const vk::Event,
        p_dependency_infos: *const vk::DependencyInfo<'_>,
    ) => wait2;
}

/// Checks the stages of an event, which must not include the host.
fn check_stages(stages: S2, call: &'static str, of_queue: &'static str, of_host: &'static str) {
    let of = Rules { call, name: "stageMask", stages: of_queue, access: "" };
    check(Scope { stages, access: vk::AccessFlags2::NONE, of });
    check_no_host(stages, call, "stageMask", of_host);
}

fn wide(stages: S) -> S2 {
    S2::from_raw(stages.as_raw().into())
}

fn set(commands: Ref<CommandBuffer>, event: vk::Event, stages: S) -> Result<(), Error> {
    let host = "VUID-vkCmdSetEvent-stageMask-01149";
    check_stages(wide(stages), "vkCmdSetEvent", "VUID-vkCmdSetEvent-stageMask-06457", host);
    let scope = driver::Barrier2 {
        src_stages: wide(stages),
        src_access: vk::AccessFlags2::NONE,
        dst_stages: S2::NONE,
        dst_access: vk::AccessFlags2::NONE,
        memory: driver::BarrierMemory::All,
        ownership: None,
    };
    commands.add(|into| Ok(into.set_event2(&Event::get(event, "vkCmdSetEvent-event")?.driver, &[scope])?))
}

fn set2(commands: Ref<CommandBuffer>, event: vk::Event, info: In<'_, vk::DependencyInfo<'_>>) -> Result<(), Error> {
    check_dependency(info, SET_EVENT2);
    let memory = info.memory().get().iter().map(|b| [b.src_stage_mask, b.dst_stage_mask]);
    let buffers = info.buffers().get().iter().map(|b| [b.src_stage_mask, b.dst_stage_mask]);
    let images = info.images().get().iter().map(|b| [b.src_stage_mask, b.dst_stage_mask]);
    for [src, dst] in memory.chain(buffers).chain(images) {
        check_no_host(src, "vkCmdSetEvent2", "srcStageMask", "VUID-vkCmdSetEvent2-srcStageMask-09391");
        check_no_host(dst, "vkCmdSetEvent2", "dstStageMask", "VUID-vkCmdSetEvent2-dstStageMask-09392");
    }
    commands.add(|into| {
        let event = Event::get(event, "vkCmdSetEvent2-event")?;
        with_dependency(info, |barriers| Ok(into.set_event2(&event.driver, barriers)?))
    })
}

fn reset(commands: Ref<CommandBuffer>, event: vk::Event, stages: S) -> Result<(), Error> {
    let host = "VUID-vkCmdResetEvent-stageMask-01153";
    check_stages(wide(stages), "vkCmdResetEvent", "VUID-vkCmdResetEvent-stageMask-06458", host);
    commands.add(|into| Ok(into.reset_event(&Event::get(event, "vkCmdResetEvent-event")?.driver)?))
}

fn reset2(commands: Ref<CommandBuffer>, event: vk::Event, stages: S2) -> Result<(), Error> {
    let host = "VUID-vkCmdResetEvent2-stageMask-03830";
    check_no_host(stages, "vkCmdResetEvent2", "stageMask", host);
    commands.add(|into| Ok(into.reset_event(&Event::get(event, "vkCmdResetEvent2-event")?.driver)?))
}

fn find(events: &[vk::Event]) -> Result<Vec<Ref<Event>>, Error> {
    host_memory::try_collect(events.iter().map(|&event| Event::get(event, "vkCmdWaitEvents-pEvents")))
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn wait(
    commands: Ref<CommandBuffer>,
    count: u32,
    events: Many<'_, vk::Event>,
    src: S,
    dst: S,
    memory_count: u32,
    memory: Many<'_, vk::MemoryBarrier<'_>>,
    buffer_count: u32,
    buffers: Many<'_, vk::BufferMemoryBarrier<'_>>,
    image_count: u32,
    images: Many<'_, vk::ImageMemoryBarrier<'_>>,
) -> Result<(), Error> {
    let old = Old::of([src, dst], (memory_count, memory), (buffer_count, buffers), (image_count, images));
    old.check(WAIT_EVENTS);
    let events = events.of(count as usize);
    commands.add(|into| {
        let events = find(&events)?;
        let events = host_memory::collect(events.iter().map(|event| &event.driver))?;
        old.with_barriers(|barriers| Ok(into.wait_events_with(&events, barriers)?))
    })
}

fn wait2(
    commands: Ref<CommandBuffer>,
    count: u32,
    events: Many<'_, vk::Event>,
    infos: Many<'_, vk::DependencyInfo<'_>>,
) -> Result<(), Error> {
    let infos = infos.of(count as usize);
    infos.each().for_each(|info| check_dependency(info, WAIT_EVENTS2));
    let events = events.of(count as usize);
    commands.add(|into| {
        let events = find(&events)?;
        with_dependencies(infos.each(), |lists| {
            let each = events.iter().zip(lists).map(|(event, barriers)| (&event.driver, &**barriers));
            Ok(into.wait_events2(&host_memory::collect(each)?)?)
        })
    })
}
