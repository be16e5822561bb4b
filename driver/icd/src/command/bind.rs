//! Pipelines, sets and push constants that the commands after them use.

use ash::vk;
use std::ffi::c_void;

use super::CommandBuffer;
use crate::c::Many;
use crate::c::entry::entry_points;
use crate::descriptor::DescriptorSet;
use crate::error::Error;
use crate::pipeline::{Pipeline, PipelineLayout};
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdBindPipeline(
        command_buffer: vk::CommandBuffer, pipeline_bind_point: vk::PipelineBindPoint, pipeline: vk::Pipeline,
    ) => bind_pipeline;
    PFN_vkCmdBindDescriptorSets(
        command_buffer: vk::CommandBuffer, pipeline_bind_point: vk::PipelineBindPoint, layout: vk::PipelineLayout,
        first_set: u32, descriptor_set_count: u32, p_descriptor_sets: *const vk::DescriptorSet,
        dynamic_offset_count: u32, p_dynamic_offsets: *const u32,
    ) => sets;
    PFN_vkCmdPushConstants(
        command_buffer: vk::CommandBuffer, layout: vk::PipelineLayout, stage_flags: vk::ShaderStageFlags, offset: u32,
        size: u32, p_values: *const c_void,
    ) => push_constants;
}

fn bind_pipeline(
    commands: Ref<CommandBuffer>,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) -> Result<(), Error> {
    commands.add(|into| {
        if point != vk::PipelineBindPoint::COMPUTE {
            return Err(crate::graphics::refused("vkCmdBindPipeline"));
        }
        Ok(into.bind_pipeline(&Pipeline::get(pipeline, "vkCmdBindPipeline-pipeline")?.driver)?)
    })
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn sets(
    commands: Ref<CommandBuffer>,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    sets: Many<'_, vk::DescriptorSet>,
    offset_count: u32,
    offsets: Many<'_, u32>,
) -> Result<(), Error> {
    commands.add(|into| {
        // What is bound for graphics is never used.
        if point != vk::PipelineBindPoint::COMPUTE {
            return Ok(());
        }
        let layout = PipelineLayout::get(layout, "vkCmdBindDescriptorSets-layout")?;
        let at = "vkCmdBindDescriptorSets-pDescriptorSets";
        let find = |&set: &vk::DescriptorSet| DescriptorSet::get(set, at);
        let sets = sets.of(count as usize).iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let sets: Vec<_> = sets.iter().map(|set| &set.driver).collect();
        Ok(into.bind_descriptor_sets(&layout.driver, first, &sets, &offsets.of(offset_count as usize))?)
    })
}

fn push_constants(
    commands: Ref<CommandBuffer>,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    size: u32,
    values: Many<'_, c_void>,
) -> Result<(), Error> {
    commands.add(|into| {
        if !stages.contains(vk::ShaderStageFlags::COMPUTE) {
            return Ok(());
        }
        let layout = PipelineLayout::get(layout, "vkCmdPushConstants-layout")?;
        Ok(into.push_constants(&layout.driver, offset, values.bytes(size as usize))?)
    })
}
