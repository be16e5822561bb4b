//! Pipeline executables (`VK_KHR_pipeline_executable_properties`): each pipeline has one, with statistics and with the
//! internal representations on the way to machine code. Pipelines that were created without the flags for these have
//! only their sizes.

use ash::vk::{self, PipelineExecutableStatisticFormatKHR as F};

use super::Pipeline;
use crate::c::arrays::put_text;
use crate::c::entry::entry_points;
use crate::c::{In, InOut, OutChain, OutMany, fixed, list_chains};
use crate::device::Device;
use crate::error::{Error, require};
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkGetPipelineExecutablePropertiesKHR(
        device: vk::Device, p_pipeline_info: *const vk::PipelineInfoKHR<'_>, p_executable_count: *mut u32,
        p_properties: *mut vk::PipelineExecutablePropertiesKHR<'_>,
    ) -> vk::Result => properties;
    PFN_vkGetPipelineExecutableStatisticsKHR(
        device: vk::Device, p_executable_info: *const vk::PipelineExecutableInfoKHR<'_>, p_statistic_count: *mut u32,
        p_statistics: *mut vk::PipelineExecutableStatisticKHR<'_>,
    ) -> vk::Result => statistics;
    PFN_vkGetPipelineExecutableInternalRepresentationsKHR(
        device: vk::Device, p_executable_info: *const vk::PipelineExecutableInfoKHR<'_>,
        p_internal_representation_count: *mut u32,
        p_internal_representations: *mut vk::PipelineExecutableInternalRepresentationKHR<'_>,
    ) -> vk::Result => representations;
}

fn properties(
    _: Ref<Device>,
    info: In<'_, vk::PipelineInfoKHR<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PipelineExecutablePropertiesKHR<'_>>,
) -> Result<vk::Result, Error> {
    let pipeline = Pipeline::get(info.pipeline, "VkPipelineInfoKHR-pipeline")?;
    Ok(list_chains(count, out, std::iter::once(pipeline), |chain: &mut OutChain<'_, _>, pipeline| {
        chain.head(|executable: &mut vk::PipelineExecutablePropertiesKHR<'_>| {
            executable.stages = vk::ShaderStageFlags::COMPUTE;
            executable.name = fixed("kernel");
            executable.description = fixed(&match pipeline.driver.fallback() {
                Some(reason) => format!("interpreted, since there is no machine code: {reason}"),
                None => format!("a kernel for {}", pipeline.driver.backend()),
            });
            executable.subgroup_size = spelter_driver::Limits::of_devices().subgroup_size;
        });
    }))
}

/// Checks the executable's index, which must be 0.
fn executable(info: In<'_, vk::PipelineExecutableInfoKHR<'_>>) -> Result<Ref<Pipeline>, Error> {
    let (at, index) = ("VkPipelineExecutableInfoKHR", info.executable_index);
    require(index == 0, at, "VUID-VkPipelineExecutableInfoKHR-executableIndex-03275", || {
        format!("executableIndex {index} of 1")
    })?;
    Pipeline::get(info.pipeline, "VkPipelineExecutableInfoKHR-pipeline")
}

fn statistics(
    _: Ref<Device>,
    info: In<'_, vk::PipelineExecutableInfoKHR<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PipelineExecutableStatisticKHR<'_>>,
) -> Result<vk::Result, Error> {
    let pipeline = executable(info)?;
    let [x, y, z] = pipeline.driver.workgroup_size();
    let what = "invocations of a workgroup, specialized";
    let mut all: Vec<(&str, &str, u64)> = vec![
        ("workgroup x", what, x.into()),
        ("workgroup y", what, y.into()),
        ("workgroup z", what, z.into()),
        ("subgroup size", "invocations that run together", spelter_driver::Limits::of_devices().subgroup_size.into()),
    ];
    all.extend(pipeline.explained.iter().flat_map(|explained| &explained.statistics));
    Ok(list_chains(count, out, all.into_iter(), |chain: &mut OutChain<'_, _>, (name, description, value)| {
        chain.head(|statistic: &mut vk::PipelineExecutableStatisticKHR<'_>| {
            statistic.name = fixed(name);
            statistic.description = fixed(description);
            statistic.format = F::UINT64;
            statistic.value = vk::PipelineExecutableStatisticValueKHR { u64: value };
        });
    }))
}

/// The internal representations of the kernel, as texts.
fn representations(
    _: Ref<Device>,
    info: In<'_, vk::PipelineExecutableInfoKHR<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PipelineExecutableInternalRepresentationKHR<'_>>,
) -> Result<vk::Result, Error> {
    let pipeline = executable(info)?;
    let explained = pipeline.explained.as_ref();
    let all = explained.map_or([("", "", ""); 3], |explained| {
        [
            ("scalar IR", "one invocation: static single assignment, optimised and lowered", &*explained.scalar),
            ("SIMD form", "16 invocations: instructions with masks", &explained.simd),
            ("assembly", "machine code, Intel syntax, constants last", &explained.assembly),
        ]
    });
    let all: Vec<_> = all.into_iter().filter(|(.., text)| !text.is_empty()).collect();
    let mut whole = true;
    let listed = list_chains(count, out, all.into_iter(), |chain: &mut OutChain<'_, _>, (name, description, text)| {
        chain.head(|form: &mut vk::PipelineExecutableInternalRepresentationKHR<'_>| {
            form.name = fixed(name);
            form.description = fixed(description);
            whole &= put_text(form, text);
        });
    });
    Ok(if whole { listed } else { vk::Result::INCOMPLETE })
}
