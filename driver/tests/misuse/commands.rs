//! Rules of the command buffer lifecycle, of bindings and of dispatches.

use spelter_driver::vk::{CommandBufferUsageFlags, DescriptorType};
use spelter_driver::{Binding, DescriptorSet, Error, PipelineLayout};

use super::common::{Kernel, STORAGE, Words};
use super::{PUSHER, Rule, World};

const DYNAMIC_STORAGE: DescriptorType = DescriptorType::STORAGE_BUFFER_DYNAMIC;
const DYNAMIC_UNIFORM: DescriptorType = DescriptorType::UNIFORM_BUFFER_DYNAMIC;

/// A layout with one binding, and a set of it that was written with bytes 16 to 48 of a buffer of 256 bytes, or with
/// the whole buffer.
fn dynamic(world: &World, ty: DescriptorType, whole: bool) -> (PipelineLayout, DescriptorSet) {
    let layout = world.device.create_descriptor_set_layout(&[Binding { binding: 0, ty, count: 1 }]).unwrap();
    let set = world.device.create_descriptor_pool(1, &[(ty, 1)]).unwrap().allocate(&layout).unwrap();
    let info = if whole { world.words.whole() } else { world.words.part(16, 32) };
    set.write(0, 0, ty, &[info]).unwrap();
    (world.device.create_pipeline_layout(&[&layout], &[]).unwrap(), set)
}

fn bind_at(world: &World, ty: DescriptorType, whole: bool, offset: u32) -> Result<(), Error> {
    let (layout, set) = dynamic(world, ty, whole);
    world.command.bind_descriptor_sets(&layout, 0, &[&set], &[offset])
}

fn push(world: &World, offset: u32, bytes: usize) -> Result<(), Error> {
    world.command.push_constants(&world.push_layout(128), offset, &vec![0; bytes])
}

/// Binds pipeline and push constants, but no set.
fn without_set(world: &World) {
    let ready = world.ready();
    world.command.bind_pipeline(&ready.kernel.pipeline).unwrap();
    world.command.push_constants(&ready.kernel.layout, 0, &[0; 4]).unwrap();
}

fn without_push(world: &World) {
    let ready = world.ready();
    world.command.bind_pipeline(&ready.kernel.pipeline).unwrap();
    world.command.bind_descriptor_sets(&ready.kernel.layout, 0, &[&ready.set], &[]).unwrap();
}

fn indirect(world: &World, offset: u64) -> Result<(), Error> {
    let _ready = world.all_bound();
    world.command.dispatch_indirect(&world.words.buffer, offset)
}

fn base(world: &World, base: [u32; 3], groups: [u32; 3]) -> Result<(), Error> {
    let _ready = world.all_bound();
    world.command.dispatch_base(base, groups)
}

fn direct(world: &World, [x, y, z]: [u32; 3]) -> Result<(), Error> {
    let _ready = world.all_bound();
    world.command.dispatch(x, y, z)
}

pub(crate) const RULES: &[Rule] = &[
    ("VUID-vkBeginCommandBuffer-commandBuffer-00049", |w| w.command.begin(CommandBufferUsageFlags::empty())),
    ("VUID-vkBeginCommandBuffer-commandBuffer-02840", |w| {
        w.idle.begin(CommandBufferUsageFlags::ONE_TIME_SUBMIT | CommandBufferUsageFlags::SIMULTANEOUS_USE)
    }),
    ("VUID-vkEndCommandBuffer-commandBuffer-00059", |w| w.idle.end()),
    ("VUID-vkQueueSubmit-pCommandBuffers-00070", |w| {
        let ready = w.ready();
        let command = super::common::recorded(&w.device, CommandBufferUsageFlags::empty(), |command| {
            command.bind_pipeline(&ready.kernel.pipeline).unwrap();
            command.bind_descriptor_sets(&ready.kernel.layout, 0, &[&ready.set], &[]).unwrap();
            command.push_constants(&ready.kernel.layout, 0, &[0; 4]).unwrap();
            command.dispatch(1, 1, 1).unwrap();
        });
        w.device.queue().submit(&[&command], None)?;
        w.device.queue().wait_idle()?;
        ready.set.write(0, 0, STORAGE, &[w.words.whole()])?;
        w.device.queue().submit(&[&command], None).map(drop)
    }),
    ("VUID-vkCmdBindPipeline-commandBuffer-recording", |w| w.idle.bind_pipeline(&w.ready().kernel.pipeline)),
    ("VUID-vkCmdBindPipeline-commonparent", |w| {
        let kernel = Kernel::new(&w.other, PUSHER, &[(STORAGE, 1)], 4);
        w.command.bind_pipeline(&kernel.pipeline)
    }),
    ("VUID-vkCmdBindDescriptorSets-commandBuffer-recording", |w| {
        let (layout, set) = dynamic(w, STORAGE, true);
        w.idle.bind_descriptor_sets(&layout, 0, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-commonparent", |w| {
        let (_, set) = dynamic(w, STORAGE, true);
        w.command.bind_descriptor_sets(&w.other.create_pipeline_layout(&[], &[]).unwrap(), 0, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-commonparent", |w| {
        let (layout, _) = dynamic(w, STORAGE, true);
        let (_, set) = dynamic(&World::new(), STORAGE, true);
        w.command.bind_descriptor_sets(&layout, 0, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-descriptorSetCount-arraylength", |w| {
        w.command.bind_descriptor_sets(&dynamic(w, STORAGE, true).0, 0, &[], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-firstSet-00360", |w| {
        let (layout, set) = dynamic(w, STORAGE, true);
        w.command.bind_descriptor_sets(&layout, u32::MAX, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-pDescriptorSets-00358", |w| {
        let (layout, _) = dynamic(w, STORAGE, true);
        let (_, set) = dynamic(w, DescriptorType::UNIFORM_BUFFER, true);
        w.command.bind_descriptor_sets(&layout, 0, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-dynamicOffsetCount-00359", |w| {
        let (layout, set) = dynamic(w, DYNAMIC_STORAGE, false);
        w.command.bind_descriptor_sets(&layout, 0, &[&set], &[])
    }),
    ("VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01971", |w| bind_at(w, DYNAMIC_UNIFORM, false, 8)),
    ("VUID-vkCmdBindDescriptorSets-pDynamicOffsets-01972", |w| bind_at(w, DYNAMIC_STORAGE, false, 4)),
    ("VUID-vkCmdBindDescriptorSets-pDescriptorSets-01979", |w| bind_at(w, DYNAMIC_STORAGE, false, 224)),
    ("VUID-vkCmdBindDescriptorSets-pDescriptorSets-06715", |w| bind_at(w, DYNAMIC_STORAGE, true, 16)),
    ("VUID-vkCmdBeginDebugUtilsLabelEXT-commandBuffer-recording", |w| w.idle.set_label(Some("a label"))),
    ("VUID-vkCmdPushConstants-commandBuffer-recording", |w| w.idle.push_constants(&w.push_layout(4), 0, &[0; 4])),
    ("VUID-vkCmdPushConstants-commonparent", |w| {
        w.command.push_constants(&w.other.create_pipeline_layout(&[], &[]).unwrap(), 0, &[0; 4])
    }),
    ("VUID-vkCmdPushConstants-offset-00368", |w| push(w, 2, 4)),
    ("VUID-vkCmdPushConstants-offset-00370", |w| push(w, 256, 4)),
    ("VUID-vkCmdPushConstants-size-arraylength", |w| push(w, 0, 0)),
    ("VUID-vkCmdPushConstants-size-00369", |w| push(w, 0, 3)),
    ("VUID-vkCmdPushConstants-size-00371", |w| push(w, 4, 256)),
    ("VUID-vkCmdPushConstants-offset-01795", |w| push(w, 124, 8)),
    ("VUID-vkCmdDispatch-commandBuffer-recording", |w| w.idle.dispatch(1, 1, 1)),
    ("VUID-vkCmdDispatch-groupCountX-00386", |w| direct(w, [65_536, 1, 1])),
    ("VUID-vkCmdDispatch-groupCountY-00387", |w| direct(w, [1, 65_536, 1])),
    ("VUID-vkCmdDispatch-groupCountZ-00388", |w| direct(w, [1, 1, u32::MAX])),
    ("VUID-vkCmdDispatch-None-08606", |w| w.command.dispatch(1, 1, 1)),
    ("VUID-vkCmdDispatch-None-08600", |w| {
        without_set(w);
        w.command.dispatch(1, 1, 1)
    }),
    ("VUID-vkCmdDispatch-None-08600", |w| {
        // The push ranges differ, so the layouts are not compatible for any set.
        without_set(w);
        let (layout, set) = dynamic(w, STORAGE, true);
        w.command.bind_descriptor_sets(&layout, 0, &[&set], &[])?;
        w.command.dispatch(1, 1, 1)
    }),
    ("VUID-vkCmdDispatch-None-08600", |w| {
        // Binding set 1 with a layout of another set 0 disturbs the set 0 that is bound.
        let ready = w.all_bound();
        let storage = Binding { binding: 0, ty: STORAGE, count: 2 };
        let other = w.device.create_descriptor_set_layout(&[storage]).unwrap();
        let push = [spelter_driver::PushRange { offset: 0, size: 4 }];
        let layout = w.device.create_pipeline_layout(&[&other, &ready.kernel.set_layout], &push).unwrap();
        w.command.bind_descriptor_sets(&layout, 1, &[&ready.set], &[])?;
        w.command.dispatch(1, 1, 1)
    }),
    ("VUID-vkCmdDispatch-None-08601", |w| {
        without_push(w);
        w.command.dispatch(1, 1, 1)
    }),
    ("VUID-vkCmdDispatch-None-08601", |w| {
        without_push(w);
        w.command.push_constants(&w.push_layout(8), 0, &[0; 4])?;
        w.command.dispatch(1, 1, 1)
    }),
    ("VUID-vkCmdDispatchBase-commandBuffer-recording", |w| w.idle.dispatch_base([0; 3], [1; 3])),
    ("VUID-vkCmdDispatchBase-baseGroupX-00421", |w| base(w, [65_535, 0, 0], [0, 1, 1])),
    ("VUID-vkCmdDispatchBase-baseGroupX-00422", |w| base(w, [0, 65_535, 0], [1, 0, 1])),
    ("VUID-vkCmdDispatchBase-baseGroupZ-00423", |w| base(w, [0, 0, u32::MAX], [1, 1, 1])),
    ("VUID-vkCmdDispatchBase-groupCountX-00424", |w| base(w, [65_534, 0, 0], [2, 1, 1])),
    ("VUID-vkCmdDispatchBase-groupCountY-00425", |w| base(w, [0, 1, 0], [1, 65_535, 1])),
    ("VUID-vkCmdDispatchBase-groupCountZ-00426", |w| base(w, [0, 0, 1], [1, 1, u32::MAX])),
    ("VUID-vkCmdDispatchBase-None-08606", |w| w.command.dispatch_base([0; 3], [1; 3])),
    ("VUID-vkCmdDispatchBase-None-08600", |w| {
        without_set(w);
        w.command.dispatch_base([0; 3], [1; 3])
    }),
    ("VUID-vkCmdDispatchBase-None-08601", |w| {
        without_push(w);
        w.command.dispatch_base([0; 3], [1; 3])
    }),
    ("VUID-vkCmdDispatchIndirect-commandBuffer-recording", |w| w.idle.dispatch_indirect(&w.words.buffer, 0)),
    ("VUID-vkCmdDispatchIndirect-commonparent", |w| w.command.dispatch_indirect(&w.foreign.buffer, 0)),
    ("VUID-vkCmdDispatchIndirect-buffer-02708", |w| w.command.dispatch_indirect(&w.unbound, 0)),
    ("VUID-vkCmdDispatchIndirect-buffer-02709", |w| {
        let buffer = w.device.create_buffer(16, spelter_driver::vk::BufferUsageFlags::STORAGE_BUFFER)?;
        w.command.dispatch_indirect(&buffer, 0)
    }),
    ("VUID-vkCmdDispatchIndirect-offset-02710", |w| indirect(w, 2)),
    ("VUID-vkCmdDispatchIndirect-offset-00407", |w| indirect(w, 248)),
    ("VUID-vkCmdDispatchIndirect-offset-00407", |w| indirect(w, u64::MAX - 3)),
    ("VUID-vkCmdDispatchIndirect-None-08606", |w| w.command.dispatch_indirect(&w.words.buffer, 0)),
    ("VUID-vkCmdDispatchIndirect-None-08600", |w| {
        without_set(w);
        w.command.dispatch_indirect(&w.words.buffer, 0)
    }),
    ("VUID-vkCmdDispatchIndirect-None-08601", |w| {
        without_push(w);
        w.command.dispatch_indirect(&Words::zeros(&w.device, 3).buffer, 0)
    }),
];
