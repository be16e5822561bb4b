//! Rules of semaphores, events, queries, secondary command buffers, conditional dispatches and descriptor copies.

use spelter_driver::vk::{
    BufferUsageFlags, CommandBufferUsageFlags as Flags, DescriptorType, QueryResultFlags, QueryType,
};
use spelter_driver::{
    Binding, Buffer, CommandBuffer, DescriptorSetLayoutInfo, Error, Fence, QueryPool, Semaphore, SemaphoreSubmit,
    SubmitInfo,
};

use super::common::{COUNT, Kernel, STORAGE};
use super::{Rule, World};

fn submit(world: &World, waits: &[SemaphoreSubmit<'_>], signals: &[SemaphoreSubmit<'_>]) -> Result<(), Error> {
    world.device.queue().submit_all(&[SubmitInfo { waits, commands: &[], signals }], None).map(drop)
}

fn pool(world: &World) -> QueryPool {
    world.device.create_query_pool(QueryType::TIMESTAMP, 4).unwrap()
}

fn copy(world: &World, offset: u64, stride: u64, flags: QueryResultFlags) -> Result<(), Error> {
    world.command.copy_query_pool_results(&pool(world), 0, 4, &world.words.buffer, offset, stride, flags)
}

fn secondary(world: &World, flags: Flags) -> CommandBuffer {
    let command = world.device.create_command_pool().allocate_secondary();
    command.begin(flags).unwrap();
    command.end().unwrap();
    command
}

/// A buffer of two words with CONDITIONAL_RENDERING usage.
fn deciding(world: &World) -> Buffer {
    let buffer = world.device.create_buffer(8, BufferUsageFlags::CONDITIONAL_RENDERING_EXT).unwrap();
    buffer.bind_memory(&world.device.allocate_memory(64, 0).unwrap(), 0).unwrap();
    buffer
}

/// Calls `then` while a secondary command buffer is pending as part of one primary command buffer; another executes it,
/// too.
fn with_pending(
    world: &World,
    then: impl FnOnce(&CommandBuffer, &CommandBuffer) -> Result<(), Error>,
) -> Result<(), Error> {
    let (part, hold) = (secondary(world, Flags::empty()), world.device.create_timeline_semaphore(0));
    let primary = || {
        super::common::recorded(&world.device, Flags::empty(), |command| command.execute_commands(&[&part]).unwrap())
    };
    let (first, second) = (primary(), primary());
    let waits = [SemaphoreSubmit::new(&hold, 1)];
    let held = SubmitInfo { waits: &waits, commands: &[&first], signals: &[] };
    world.device.queue().submit_all(&[held], None).unwrap();
    let result = then(&part, &second);
    hold.signal(1).unwrap();
    world.device.queue().wait_idle().unwrap();
    result
}

pub(crate) const RULES: &[Rule] = &[
    ("VUID-VkDescriptorSetLayoutCreateInfo-descriptorType-03001", |w| {
        let bindings = [Binding { binding: 0, ty: DescriptorType::STORAGE_BUFFER_DYNAMIC, count: 1 }];
        let info = DescriptorSetLayoutInfo { bindings: &bindings, update_after_bind: true, ..Default::default() };
        w.device.create_descriptor_set_layout_from(&info).map(drop)
    }),
    ("VUID-VkCopyDescriptorSet-commonparent", |w| {
        let kernel = Kernel::new(&w.other, COUNT, &[(STORAGE, 1)], 0);
        let foreign = kernel.set(&w.other, STORAGE, &[&w.foreign]);
        w.ready().set.copy([0, 0], &foreign, [0, 0], 1)
    }),
    ("VUID-VkCopyDescriptorSet-srcBinding-00345", |w| {
        let set = w.ready().set;
        set.copy([0, 0], &set, [9, 0], 1)
    }),
    ("VUID-VkSubmitInfo-commonparent", |w| submit(w, &[], &[SemaphoreSubmit::new(&w.other.create_semaphore(), 0)])),
    ("VUID-vkQueueSubmit2-semaphore-03873", |w| {
        submit(w, &[SemaphoreSubmit::new(&w.device.create_semaphore(), 0)], &[])
    }),
    ("VUID-vkQueueSubmit2-semaphore-03868", |w| {
        let semaphore = &w.device.create_semaphore();
        submit(w, &[], &[SemaphoreSubmit::new(semaphore, 0), SemaphoreSubmit::new(semaphore, 0)])
    }),
    ("VUID-VkSubmitInfo2-semaphore-03882", |w| {
        submit(w, &[], &[SemaphoreSubmit::new(&w.device.create_timeline_semaphore(3), 3)])
    }),
    ("VUID-vkGetSemaphoreCounterValue-semaphore-03255", |w| w.device.create_semaphore().value().map(drop)),
    ("VUID-VkSemaphoreSignalInfo-semaphore-03257", |w| w.device.create_semaphore().signal(1)),
    ("VUID-VkSemaphoreSignalInfo-value-03258", |w| w.device.create_timeline_semaphore(2).signal(2)),
    ("VUID-VkSemaphoreWaitInfo-pSemaphores-03256", |w| {
        Semaphore::wait_all(&[(&w.device.create_semaphore(), 0)], None).map(drop)
    }),
    ("VUID-VkSemaphoreWaitInfo-pSemaphores-parameter", |w| {
        let (a, b) = (w.device.create_timeline_semaphore(0), w.other.create_timeline_semaphore(0));
        Semaphore::wait_any(&[(&a, 0), (&b, 0)], None).map(drop)
    }),
    ("VUID-vkWaitForFences-pFences-parent", |w| {
        Fence::wait_any(&[&w.device.create_fence(true), &w.other.create_fence(true)], None).map(drop)
    }),
    ("VUID-vkCmdSetEvent-commandBuffer-recording", |w| w.idle.set_event(&w.device.create_event())),
    ("VUID-vkCmdResetEvent-commandBuffer-recording", |w| w.idle.reset_event(&w.device.create_event())),
    ("VUID-vkCmdSetEvent-commonparent", |w| w.command.set_event(&w.other.create_event())),
    ("VUID-vkCmdWaitEvents-commandBuffer-recording", |w| w.idle.wait_events(&[&w.device.create_event()])),
    ("VUID-vkCmdWaitEvents-eventCount-arraylength", |w| w.command.wait_events(&[])),
    ("VUID-vkCmdWaitEvents-commonparent", |w| w.command.wait_events(&[&w.other.create_event()])),
    ("VUID-VkQueryPoolCreateInfo-queryCount-02763", |w| w.device.create_query_pool(QueryType::TIMESTAMP, 0).map(drop)),
    ("VUID-VkQueryPoolCreateInfo-queryType-parameter", |w| {
        w.device.create_query_pool(QueryType::OCCLUSION, 1).map(drop)
    }),
    ("VUID-vkResetQueryPool-firstQuery-09436", |w| pool(w).reset(4, 0)),
    ("VUID-vkResetQueryPool-firstQuery-09437", |w| pool(w).reset(3, 2)),
    ("VUID-vkGetQueryPoolResults-firstQuery-09436", |w| pool(w).results(4, 1, false).map(drop)),
    ("VUID-vkGetQueryPoolResults-firstQuery-09437", |w| pool(w).results(2, u32::MAX, false).map(drop)),
    ("VUID-vkCmdWriteTimestamp-query-04904", |w| w.command.write_timestamp(&pool(w), 4)),
    ("VUID-vkCmdResetQueryPool-firstQuery-09436", |w| w.command.reset_query_pool(&pool(w), 9, 1)),
    ("VUID-vkCmdResetQueryPool-firstQuery-09437", |w| w.command.reset_query_pool(&pool(w), 0, 5)),
    ("VUID-vkCmdResetQueryPool-commandBuffer-recording", |w| w.idle.reset_query_pool(&pool(w), 0, 1)),
    ("VUID-vkCmdResetQueryPool-commonparent", |w| {
        w.command.reset_query_pool(&w.other.create_query_pool(QueryType::TIMESTAMP, 1)?, 0, 1)
    }),
    ("VUID-vkCmdCopyQueryPoolResults-commandBuffer-recording", |w| {
        let none = QueryResultFlags::empty();
        w.idle.copy_query_pool_results(&pool(w), 0, 1, &w.words.buffer, 0, 4, none)
    }),
    ("VUID-vkCmdCopyQueryPoolResults-firstQuery-09436", |w| {
        let none = QueryResultFlags::empty();
        w.command.copy_query_pool_results(&pool(w), 4, 1, &w.words.buffer, 0, 4, none)
    }),
    ("VUID-vkCmdCopyQueryPoolResults-firstQuery-09437", |w| {
        let none = QueryResultFlags::empty();
        w.command.copy_query_pool_results(&pool(w), 1, 4, &w.words.buffer, 0, 4, none)
    }),
    ("VUID-vkCmdCopyQueryPoolResults-commonparent", |w| {
        let none = QueryResultFlags::empty();
        w.command.copy_query_pool_results(&pool(w), 0, 1, &w.foreign.buffer, 0, 4, none)
    }),
    ("VUID-vkCmdCopyQueryPoolResults-dstBuffer-00825", |w| {
        let usage = BufferUsageFlags::STORAGE_BUFFER;
        let buffer = w.device.create_buffer(64, usage)?;
        w.command.copy_query_pool_results(&pool(w), 0, 1, &buffer, 0, 4, QueryResultFlags::empty())
    }),
    ("VUID-vkCmdCopyQueryPoolResults-dstBuffer-00826", |w| {
        w.command.copy_query_pool_results(&pool(w), 0, 1, &w.unbound, 0, 4, QueryResultFlags::empty())
    }),
    ("VUID-vkCmdCopyQueryPoolResults-dstOffset-00819", |w| copy(w, 256, 4, QueryResultFlags::empty())),
    ("VUID-vkCmdCopyQueryPoolResults-flags-00822", |w| copy(w, 0, 6, QueryResultFlags::empty())),
    ("VUID-vkCmdCopyQueryPoolResults-flags-00823", |w| copy(w, 4, 8, QueryResultFlags::TYPE_64)),
    ("VUID-vkCmdCopyQueryPoolResults-dstBuffer-00824", |w| copy(w, 0, 1 << 62, QueryResultFlags::TYPE_64)),
    ("VUID-vkCmdExecuteCommands-commandBuffer-09375", |w| {
        let outer = w.device.create_command_pool().allocate_secondary();
        outer.begin(Flags::empty())?;
        outer.execute_commands(&[&secondary(w, Flags::empty())])
    }),
    ("VUID-vkCmdExecuteCommands-commandBufferCount-arraylength", |w| w.command.execute_commands(&[])),
    ("VUID-vkCmdExecuteCommands-commonparent", |w| {
        w.command.execute_commands(&[&w.other.create_command_pool().allocate_secondary()])
    }),
    ("VUID-vkCmdExecuteCommands-commandBuffer-recording", |w| {
        w.idle.execute_commands(&[&secondary(w, Flags::empty())])
    }),
    ("VUID-vkCmdExecuteCommands-pCommandBuffers-00088", |w| w.command.execute_commands(&[&w.idle])),
    ("VUID-vkCmdExecuteCommands-pCommandBuffers-00089", |w| {
        w.command.execute_commands(&[&w.device.create_command_pool().allocate_secondary()])
    }),
    ("VUID-vkCmdExecuteCommands-pCommandBuffers-00091", |w| {
        with_pending(w, |part, _| w.command.execute_commands(&[part]))
    }),
    ("VUID-vkQueueSubmit-pCommandBuffers-00073", |w| {
        with_pending(w, |_, second| w.device.queues()[1].submit(&[second], None).map(drop))
    }),
    ("VUID-vkCmdBeginConditionalRenderingEXT-commandBuffer-recording", |w| {
        w.idle.begin_conditional(&deciding(w), 0, false)
    }),
    ("VUID-vkCmdEndConditionalRenderingEXT-commandBuffer-recording", |w| w.idle.end_conditional()),
    ("VUID-vkCmdBeginConditionalRenderingEXT-None-01980", |w| {
        w.command.begin_conditional(&deciding(w), 0, false)?;
        w.command.begin_conditional(&deciding(w), 0, false)
    }),
    ("VUID-vkCmdEndConditionalRenderingEXT-None-01985", |w| w.command.end_conditional()),
    ("VUID-VkConditionalRenderingBeginInfoEXT-buffer-parameter", |w| {
        w.command.begin_conditional(&w.foreign.buffer, 0, false)
    }),
    ("VUID-VkConditionalRenderingBeginInfoEXT-buffer-01982", |w| {
        w.command.begin_conditional(&w.words.buffer, 0, false)
    }),
    ("VUID-VkConditionalRenderingBeginInfoEXT-buffer-01981", |w| {
        let buffer = w.device.create_buffer(8, BufferUsageFlags::CONDITIONAL_RENDERING_EXT)?;
        w.command.begin_conditional(&buffer, 0, false)
    }),
    ("VUID-VkConditionalRenderingBeginInfoEXT-offset-01984", |w| w.command.begin_conditional(&deciding(w), 2, false)),
    ("VUID-VkConditionalRenderingBeginInfoEXT-offset-01983", |w| w.command.begin_conditional(&deciding(w), 8, false)),
    ("VUID-VkSubmitInfo-pCommandBuffers-00075", |w| {
        w.device.queue().submit(&[&secondary(w, Flags::empty())], None).map(drop)
    }),
];
