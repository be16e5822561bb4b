//! Pipeline caches and pipeline creation feedback.
//!
//! A cache keeps the code of the pipelines that were created with it, so that equal ones are not compiled again. Its
//! data are a header and the sealed code (ADR 10): data that no process of this user with this build wrote are ignored.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use ash::vk::{self, Handle};
use spelter_driver as driver;
use spelter_locks::Mutex;

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
    /// Code as bytes. A leaf lock, as is the other: no thread compiles while it holds one.
    stored: Mutex<Arc<driver::StoredKernels>>,
    /// A pipeline for each code that is not among these bytes, by the driver's key: kept so that it is not compiled
    /// again.
    kept: Mutex<HashMap<usize, driver::ComputePipeline>>,
}

object!(PipelineCache: vk::PipelineCache);

/// Pipelines that a cache keeps; more are converted to bytes.
const MAX_PIPELINES: usize = 4096;

impl PipelineCache {
    /// The cached code, for the creation of a pipeline.
    pub(super) fn stored(&self) -> Arc<driver::StoredKernels> {
        Arc::clone(&self.stored.lock())
    }

    /// Adds the code of a pipeline, which may not be compiled yet. Returns whether it was cached already.
    pub(super) fn keep(&self, pipeline: &driver::ComputePipeline) -> bool {
        if self.stored().has_code_of(pipeline) {
            return true;
        }
        let (had, full) = {
            let mut kept = self.kept.lock();
            let had = kept.insert(pipeline.code_id(), pipeline.clone());
            (had, kept.len() > MAX_PIPELINES)
        };
        if full {
            self.shrink();
        }
        had.is_some()
    }

    /// All code as bytes; waits for compilations in progress. Copies only when the program asks for the data.
    fn collect(&self) -> Arc<driver::StoredKernels> {
        let kept: Vec<_> = self.kept.lock().values().cloned().collect();
        self.store(&kept)
    }

    /// Adds the code of pipelines to the bytes.
    fn store(&self, pipelines: &[driver::ComputePipeline]) -> Arc<driver::StoredKernels> {
        let mut new = driver::StoredKernels::default();
        pipelines.iter().for_each(|pipeline| new.keep(pipeline));
        let mut stored = self.stored.lock();
        if !new.is_empty() {
            Arc::make_mut(&mut stored).merge(&new);
        }
        Arc::clone(&stored)
    }

    /// Converts pipelines to bytes. Those without machine code are dropped: they are interpreted, and cheap to create
    /// again.
    fn shrink(&self) {
        let kept = std::mem::take(&mut *self.kept.lock());
        let kept: Vec<_> = kept.into_values().collect();
        self.store(&kept);
    }
}

/// The header of the data (`VkPipelineCacheHeaderVersionOne`): length, version, vendor, device, and the UUID of the
/// driver.
fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0..4].copy_from_slice(&(HEADER as u32).to_le_bytes());
    header[4..8].copy_from_slice(&vk::PipelineCacheHeaderVersion::ONE.as_raw().to_le_bytes());
    header[16..].copy_from_slice(&uuid(&Options::get().device.properties()));
    header
}

/// The length of the header in bytes.
const HEADER: usize = 32;

/// Data of another driver or version, or without a header, are ignored: Vulkan requires that this is no error.
fn create(
    _: Ref<Device>,
    info: In<'_, vk::PipelineCacheCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::PipelineCache>,
) -> Result<(), Error> {
    let sealed = info.bytes().get().strip_prefix(&header()).filter(|sealed| !sealed.is_empty());
    let stored = sealed
        .and_then(|sealed| Some(driver::StoredKernels::open(sealed, driver::SealKey::of_user()?)))
        .unwrap_or_default();
    out.put(PipelineCache { stored: Mutex::new(Arc::new(stored)), kept: Mutex::default() }.insert()?);
    Ok(())
}

fn destroy(_: Ref<Device>, cache: vk::PipelineCache, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    PipelineCache::remove(cache, "vkDestroyPipelineCache-pipelineCache").map(|_| ())
}

fn data(
    _: Ref<Device>,
    cache: Ref<PipelineCache>,
    mut size: InOut<'_, usize>,
    out: OutMany<'_, c_void>,
) -> Result<vk::Result, Error> {
    let room = if out.is_null() { usize::MAX } else { size.get() };
    // Nothing less than the header is written.
    if room < HEADER {
        size.put(0);
        return Ok(vk::Result::INCOMPLETE);
    }
    let stored = cache.collect();
    let key = driver::SealKey::of_user();
    let whole = key.filter(|_| !stored.is_empty()).and_then(|key| stored.seal(key, usize::MAX)).unwrap_or_default();
    // If there is no room for all code, a part of it is sealed.
    let some = if whole.len() <= room - HEADER {
        whole.clone()
    } else {
        key.and_then(|key| stored.seal(key, room - HEADER)).unwrap_or_default()
    };
    let complete = some.len() == whole.len();
    let data = [&header()[..], &some].concat();
    size.put(data.len());
    out.put_bytes(data.len(), &data);
    Ok(if complete { vk::Result::SUCCESS } else { vk::Result::INCOMPLETE })
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
        let source = PipelineCache::get(source, "vkMergePipelineCaches-pSrcCaches")?;
        let (stored, kept) = (source.stored(), source.kept.lock().clone());
        Arc::make_mut(&mut target.stored.lock()).merge(&stored);
        for pipeline in kept.values() {
            target.keep(pipeline);
        }
    }
    Ok(())
}

/// Whether the program asks for creation feedback: then compilation is not deferred.
pub(super) fn is_asked(info: In<'_, vk::ComputePipelineCreateInfo<'_>>) -> bool {
    Feedback::of(info).is_some()
}

/// `VkPipelineCreationFeedbackCreateInfo`: the duration, and whether the code was cached.
pub(super) fn write_feedback(info: In<'_, vk::ComputePipelineCreateInfo<'_>>, took: Duration, hit: bool) {
    let Some(mut feedback) = Feedback::of(info) else { return };
    let mut flags = vk::PipelineCreationFeedbackFlags::VALID;
    if hit {
        flags |= vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT;
    }
    let duration = took.as_nanos().try_into().unwrap_or(u64::MAX);
    feedback.put(vk::PipelineCreationFeedback { flags, duration });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pipelines_are_cached_once_and_none_is_lost() {
        let options = driver::DeviceOptions { workers: 1, heap_size: 16 << 20, compilers: 1, ..Default::default() };
        let device = driver::Device::new(options).unwrap();
        let binding = driver::Binding { binding: 0, ty: vk::DescriptorType::STORAGE_BUFFER, count: 1 };
        let set = device.create_descriptor_set_layout(&[binding]).unwrap();
        let layout = device.create_pipeline_layout(&[&set], &[]).unwrap();
        let make = |number: u32| {
            let text = format!(
                "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
                 @compute @workgroup_size(1) fn main() {{ a[0] = {number}u; }}"
            );
            let module = device.create_shader_module_wgsl(&text).unwrap();
            device.create_compute_pipeline(&module, "main", &driver::Specialization::new(), &layout).unwrap()
        };
        let cache = PipelineCache::default();
        let one = make(1);
        assert!(!cache.keep(&one), "not cached before");
        assert!((0..100).all(|_| cache.keep(&make(1))));
        assert!(!cache.keep(&make(2)));
        assert_eq!(cache.kept.lock().len(), 2);
        let whole = cache.collect();
        if whole.is_empty() {
            return; // no machine code for this machine
        }
        assert_eq!(whole.len(), 2);
        // Code that was converted to bytes is found among them.
        cache.shrink();
        assert_eq!((cache.kept.lock().len(), cache.stored().len()), (0, 2));
        assert!(cache.keep(&one) && cache.keep(&make(2)));
        assert_eq!(cache.kept.lock().len(), 0);
    }
}
