//! Shaders and pipelines: modules, layouts, and compute pipelines.

mod cache;
mod executable;

use std::sync::Arc;
use std::time::Instant;

use ash::vk::{self, Handle};
use spelter_driver::{self as driver, host_memory};

use crate::c::entry::entry_points;
use crate::c::{EntryPoint, In, Many, Out, OutMany, Text};
use crate::descriptor::DescriptorSetLayout;
use crate::device::Device;
use crate::error::{Error, require};
use crate::message;
use crate::names;
use crate::table::{Maybe, Object, Ref, object};
pub(crate) use cache::PipelineCache;

/// The chapters below this one.
pub(crate) const CHAPTERS: [&[EntryPoint]; 2] = [cache::ENTRY_POINTS, executable::ENTRY_POINTS];

entry_points! {
    PFN_vkCreateShaderModule(
        device: vk::Device, p_create_info: *const vk::ShaderModuleCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_shader_module: *mut vk::ShaderModule,
    ) -> vk::Result => create_module;
    PFN_vkDestroyShaderModule(
        device: vk::Device, shader_module: vk::ShaderModule, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_module;
    PFN_vkCreatePipelineLayout(
        device: vk::Device, p_create_info: *const vk::PipelineLayoutCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_pipeline_layout: *mut vk::PipelineLayout,
    ) -> vk::Result => create_layout;
    PFN_vkDestroyPipelineLayout(
        device: vk::Device, pipeline_layout: vk::PipelineLayout, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_layout;
    PFN_vkCreateComputePipelines(
        device: vk::Device, pipeline_cache: vk::PipelineCache, create_info_count: u32,
        p_create_infos: *const vk::ComputePipelineCreateInfo<'_>, p_allocator: *const vk::AllocationCallbacks<'_>,
        p_pipelines: *mut vk::Pipeline,
    ) -> vk::Result => create_compute;
    PFN_vkCreateGraphicsPipelines(
        device: vk::Device, pipeline_cache: vk::PipelineCache, create_info_count: u32,
        p_create_infos: *const vk::GraphicsPipelineCreateInfo<'_>, p_allocator: *const vk::AllocationCallbacks<'_>,
        p_pipelines: *mut vk::Pipeline,
    ) -> vk::Result => create_graphics;
    PFN_vkDestroyPipeline(
        device: vk::Device, pipeline: vk::Pipeline, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
}

/// `VkShaderModule`.
pub(crate) struct ShaderModule {
    driver: driver::ShaderModule,
}

object!(ShaderModule: vk::ShaderModule);

/// `VkPipelineLayout`.
pub(crate) struct PipelineLayout {
    pub(crate) driver: driver::PipelineLayout,
    pub(crate) sets: Vec<Arc<DescriptorSetLayout>>,
}

object!(PipelineLayout: vk::PipelineLayout);

/// `VkPipeline`.
pub(crate) struct Pipeline {
    pub(crate) driver: driver::ComputePipeline,
    /// The internal representations, if the program asked for them when it created the pipeline.
    explained: Option<driver::Explained>,
}

object!(Pipeline: vk::Pipeline);

fn new_module(device: &Device, info: In<'_, vk::ShaderModuleCreateInfo<'_>>) -> Result<driver::ShaderModule, Error> {
    let size = info.code_size;
    require(size.is_multiple_of(4), "vkCreateShaderModule", "VUID-VkShaderModuleCreateInfo-codeSize-08735", || {
        format!("codeSize {size} is not a multiple of 4")
    })?;
    let module = device.driver.create_shader_module(&info.words())?;
    module.remark().inspect(|remark| message::remark("vkCreateShaderModule", remark));
    Ok(module)
}

fn create_module(
    device: Ref<Device>,
    info: In<'_, vk::ShaderModuleCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::ShaderModule>,
) -> Result<(), Error> {
    out.put(ShaderModule { driver: new_module(&device, info)? }.insert()?);
    Ok(())
}

fn destroy_module(
    _: Ref<Device>,
    module: vk::ShaderModule,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    ShaderModule::remove(module, "vkDestroyShaderModule-shaderModule").map(|_| ())
}

fn create_layout(
    device: Ref<Device>,
    info: In<'_, vk::PipelineLayoutCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::PipelineLayout>,
) -> Result<(), Error> {
    let at = "VkPipelineLayoutCreateInfo-pSetLayouts";
    let find = |&layout: &vk::DescriptorSetLayout| Ok::<_, Error>(DescriptorSetLayout::get(layout, at)?.share());
    let sets = host_memory::try_collect(info.layouts().iter().map(find))?;
    // Push constants of other stages are ignored.
    let compute = info.ranges().get().iter().filter(|range| range.stage_flags.contains(vk::ShaderStageFlags::COMPUTE));
    let ranges =
        host_memory::collect(compute.map(|range| driver::PushRange { offset: range.offset, size: range.size }))?;
    let vuid = "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-00293";
    require(sets.iter().filter(|set| set.pushed).count() <= 1, "vkCreatePipelineLayout", vuid, || {
        "more than one push descriptor set".into()
    })?;
    let layouts = host_memory::collect(sets.iter().map(|set| &set.driver))?;
    let driver = device.driver.create_pipeline_layout(&layouts, &ranges)?;
    out.put(PipelineLayout { driver, sets }.insert()?);
    Ok(())
}

fn destroy_layout(
    _: Ref<Device>,
    layout: vk::PipelineLayout,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    PipelineLayout::remove(layout, "vkDestroyPipelineLayout-pipelineLayout").map(|_| ())
}

fn create_compute(
    device: Ref<Device>,
    cache: Maybe<PipelineCache>,
    count: u32,
    infos: Many<'_, vk::ComputePipelineCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    out: OutMany<'_, vk::Pipeline>,
) -> Result<vk::Result, Error> {
    let mut made = host_memory::filled(vk::Pipeline::null(), count as usize)?;
    let mut result = Ok(vk::Result::SUCCESS);
    let infos = infos.of(count as usize);
    if infos.len() < made.len() {
        // The null array has been reported.
        result = Err(Error::Quiet(vk::Result::ERROR_VALIDATION_FAILED_EXT));
    }
    for (place, info) in made.iter_mut().zip(infos.each()) {
        let inserted = compute(&device, info, cache.0.as_deref())
            .and_then(|pipeline| Ok(pipeline.map(Pipeline::insert).transpose()?));
        match inserted {
            Ok(Some(pipeline)) => *place = pipeline,
            Ok(None) => result = result.and(Ok(vk::Result::PIPELINE_COMPILE_REQUIRED)),
            Err(error) => result = result.and(Err(error)),
        }
        let early = flags_of(info).contains(vk::PipelineCreateFlags::EARLY_RETURN_ON_FAILURE);
        if early && !matches!(result, Ok(vk::Result::SUCCESS)) {
            break;
        }
    }
    out.put(count as usize, made);
    result
}

/// Fails; the pipelines are set to null for programs that ignore the result.
fn create_graphics(
    _: Ref<Device>,
    _: vk::PipelineCache,
    count: u32,
    _: *const vk::GraphicsPipelineCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: OutMany<'_, vk::Pipeline>,
) -> Result<(), Error> {
    out.put(count as usize, std::iter::repeat(vk::Pipeline::null()));
    Err(Error::graphics("vkCreateGraphicsPipelines"))
}

/// The flags, from `VkPipelineCreateFlags2CreateInfo` if it is chained: its lower 32 bits mean the same, the upper ones
/// are ignored.
fn flags_of(info: In<'_, vk::ComputePipelineCreateInfo<'_>>) -> vk::PipelineCreateFlags {
    let wide = info.next::<vk::PipelineCreateFlags2CreateInfoKHR<'_>>();
    wide.map_or(info.flags, |wide| vk::PipelineCreateFlags::from_raw(wide.flags.as_raw() as u32))
}

/// Creates a pipeline; `None` if it would have to be compiled and the program does not permit that.
fn compute(
    device: &Device,
    info: In<'_, vk::ComputePipelineCreateInfo<'_>>,
    cache: Option<&PipelineCache>,
) -> Result<Option<Pipeline>, Error> {
    let (at, start) = ("vkCreateComputePipelines", Instant::now());
    let stage = info.stage();
    require(stage.stage == vk::ShaderStageFlags::COMPUTE, at, "VUID-VkComputePipelineCreateInfo-stage-00701", || {
        format!("stage {:?}", stage.stage)
    })?;
    let size = stage.next::<vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo<'_>>();
    if let Some(size) = size.map(|size| size.required_subgroup_size) {
        let only = driver::Limits::of_devices().subgroup_size;
        let vuid = "VUID-VkPipelineShaderStageRequiredSubgroupSizeCreateInfo-requiredSubgroupSize-02760";
        require(size == only, at, vuid, || format!("requiredSubgroupSize {size}, the only one is {only}"))?;
    }
    let module = if stage.module.is_null() {
        let inline = stage.next::<vk::ShaderModuleCreateInfo<'_>>().ok_or_else(|| {
            let vuid = "VUID-VkPipelineShaderStageCreateInfo-stage-06845";
            Error::misuse(at, "the stage has no module", vuid)
        })?;
        new_module(device, inline)?
    } else {
        ShaderModule::get(stage.module, "VkPipelineShaderStageCreateInfo-module")?.driver.clone()
    };
    let entry = stage.entry().map_or("", Text::as_str);
    let constants = stage.specialization().map(specialization).transpose()?.unwrap_or_default();
    let layout = PipelineLayout::get(info.layout, "VkComputePipelineCreateInfo-layout")?;
    let stored = cache.map(PipelineCache::stored).unwrap_or_default();
    let shader = driver::ShaderStage { module: &module, entry, specialization: &constants };
    let flags = flags_of(info);
    let may_compile = !flags.contains(vk::PipelineCreateFlags::FAIL_ON_PIPELINE_COMPILE_REQUIRED);
    let made = device.driver.create_compute_pipeline_stored(shader, &layout.driver, &stored, may_compile)?;
    let Some((driver, origin)) = made else { return Ok(None) };
    driver.set_module_name(names::get(vk::ObjectType::SHADER_MODULE, stage.module.as_raw()).as_deref());
    let had = cache.is_some_and(|cache| cache.keep(&driver));
    driver.remark().inspect(|remark| message::remark(at, remark));
    if cache::is_asked(info) {
        driver.wait_compiled();
    }
    // A hit in the application's cache; the device's own cache does not count.
    cache::write_feedback(info, start.elapsed(), had || (cache.is_some() && origin == driver::Origin::Stored));
    let captures =
        vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
    let explain = || device.driver.explain(shader, &layout.driver);
    let explained = flags.intersects(captures).then(explain).transpose()?;
    Ok(Some(Pipeline { driver, explained }))
}

/// Specialization constants by ID.
fn specialization(info: In<'_, vk::SpecializationInfo<'_>>) -> Result<driver::Specialization, Error> {
    let (at, bytes) = ("pSpecializationInfo", info.bytes());
    let mut constants = driver::Specialization::new();
    for entry in info.entries().iter() {
        let (offset, size) = (entry.offset as usize, entry.size);
        require(offset < bytes.len(), at, "VUID-VkSpecializationInfo-offset-00773", || {
            format!("offset {offset} in {} bytes", bytes.len())
        })?;
        require(size <= bytes.len() - offset, at, "VUID-VkSpecializationInfo-pMapEntries-00774", || {
            format!("{size} bytes at offset {offset} in {} bytes", bytes.len())
        })?;
        require([1, 2, 4, 8].contains(&size), at, "VUID-VkSpecializationMapEntry-constantID-00776", || {
            format!("constant {} of {size} bytes", entry.constant_id)
        })?;
        let mut word = [0; 8];
        word[..size].copy_from_slice(&bytes[offset..offset + size]);
        constants.insert(entry.constant_id, u64::from_le_bytes(word));
    }
    Ok(constants)
}

fn destroy(_: Ref<Device>, pipeline: vk::Pipeline, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Pipeline::remove(pipeline, "vkDestroyPipeline-pipeline").map(|_| ())
}
