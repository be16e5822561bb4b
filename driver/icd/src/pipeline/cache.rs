//! Pipeline caches, and what the creation of a pipeline cost.
//!
//! A cache keeps the pipelines that were created with it, so that equal ones are not compiled again. Its data are a header
//! and nothing else: code that came out of a file could be anybody's, and compiling takes a millisecond.

use std::ffi::c_void;
use std::time::Duration;

use ash::vk::{self, Handle};
use parking_lot::Mutex;
use spelter_driver as driver;

use crate::c::arrays::Feedback;
use crate::c::entry::entry_points;
use crate::c::{In, InOut, Many, Out, OutMany};
use crate::device::Device;
use crate::error::{Error, require};
use crate::options::Options;
use crate::physical_device::properties::uuid;
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreatePipelineCache(
        device: vk::Device, p_create_info: *const vk::PipelineCacheCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_pipeline_cache: *mut vk::PipelineCache,
    ) -> vk::Result => create;
    PFN_vkDestroyPipelineCache(
        device: vk::Device, pipeline_cache: vk::PipelineCache, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkGetPipelineCacheData(
        device: vk::Device, pipeline_cache: vk::PipelineCache, p_data_size: *mut usize, p_data: *mut c_void,
    ) -> vk::Result => data;
    PFN_vkMergePipelineCaches(
        device: vk::Device, dst_cache: vk::PipelineCache, src_cache_count: u32, p_src_caches: *const vk::PipelineCache,
    ) -> vk::Result => merge;
}

/// `VkPipelineCache`.
#[derive(Default)]
pub(crate) struct PipelineCache {
    kept: Mutex<Vec<driver::ComputePipeline>>,
}

object!(PipelineCache: vk::PipelineCache);

/// Pipelines that a cache keeps at most; then it forgets the oldest.
const MOST: usize = 16_384;

impl PipelineCache {
    pub(crate) fn keep(&self, pipeline: &driver::ComputePipeline) {
        let mut kept = self.kept.lock();
        if kept.len() >= MOST {
            kept.drain(..MOST / 2);
        }
        kept.push(pipeline.clone());
    }
}

/// The header of the data (`VkPipelineCacheHeaderVersionOne`): its length, version, vendor, device, and who made it.
fn header() -> [u8; 32] {
    let mut header = [0; 32];
    header[0..4].copy_from_slice(&32u32.to_le_bytes());
    header[4..8].copy_from_slice(&vk::PipelineCacheHeaderVersion::ONE.as_raw().to_le_bytes());
    header[16..].copy_from_slice(&uuid(&Options::get().device.properties()));
    header
}

/// Data of another driver, another version or nobody count as none: Vulkan wants that to be no error.
fn create(
    _: Ref<Device>,
    info: In<'_, vk::PipelineCacheCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::PipelineCache>,
) -> Result<(), Error> {
    let _nothing_to_take = info.bytes().get() == header();
    out.put(PipelineCache::default().insert());
    Ok(())
}

fn destroy(_: Ref<Device>, cache: vk::PipelineCache, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    PipelineCache::remove(cache, "vkDestroyPipelineCache-pipelineCache").map(|_| ())
}

fn data(
    _: Ref<Device>,
    _: Ref<PipelineCache>,
    mut size: InOut<'_, usize>,
    out: OutMany<'_, c_void>,
) -> Result<vk::Result, Error> {
    let header = header();
    if out.is_null() {
        size.put(header.len());
        return Ok(vk::Result::SUCCESS);
    }
    // Less than the header is worth nothing.
    if size.get() < header.len() {
        size.put(0);
        return Ok(vk::Result::INCOMPLETE);
    }
    out.put_bytes(header.len(), &header);
    size.put(header.len());
    Ok(vk::Result::SUCCESS)
}

fn merge(_: Ref<Device>, into: vk::PipelineCache, count: u32, from: Many<'_, vk::PipelineCache>) -> Result<(), Error> {
    let target = PipelineCache::get(into, "vkMergePipelineCaches-dstCache")?;
    for &source in from.of(count as usize).iter() {
        require(
            source.as_raw() != into.as_raw(),
            "vkMergePipelineCaches",
            "VUID-vkMergePipelineCaches-dstCache-00770",
            || "dstCache is among pSrcCaches".into(),
        )?;
        let kept = PipelineCache::get(source, "vkMergePipelineCaches-pSrcCaches")?.kept.lock().clone();
        kept.iter().for_each(|pipeline| target.keep(pipeline));
    }
    Ok(())
}

/// Whether somebody wants to know how long the creation takes: then it is not put off.
pub(super) fn is_asked(info: In<'_, vk::ComputePipelineCreateInfo<'_>>) -> bool {
    Feedback::of(info).is_some()
}

/// `VkPipelineCreationFeedbackCreateInfo`: how long it took, and whether the code was there already.
pub(super) fn tell(info: In<'_, vk::ComputePipelineCreateInfo<'_>>, took: Duration, hit: bool) {
    let Some(mut feedback) = Feedback::of(info) else { return };
    let mut flags = vk::PipelineCreationFeedbackFlags::VALID;
    if hit {
        flags |= vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT;
    }
    let duration = took.as_nanos().try_into().unwrap_or(u64::MAX);
    feedback.put(vk::PipelineCreationFeedback { flags, duration });
}
