//! Compute pipelines and their caches.

use std::sync::Arc;

use spelter_driver::{Device, SealKey, ShaderStage, StoredKernels};
use spelter_locks::{Computed, Mutex, PerProcess};
use wgpu_hal::{ComputePipelineDescriptor, PipelineError};

use crate::binding::PipelineLayout;
use crate::hint;
use crate::shader::{ShaderModule, pipeline_error};

/// A compute pipeline. A handle.
#[derive(Clone, Debug)]
pub struct ComputePipeline {
    pub(crate) raw: spelter_driver::ComputePipeline,
    pub(crate) has_immediates: bool,
    /// The label, for messages and timelines: entry points are often called `main`.
    pub(crate) label: Option<Arc<str>>,
}

/// Machine code that outlives the process. A handle.
#[derive(Clone, Debug, Default)]
pub struct PipelineCache(Arc<Mutex<StoredKernels>>);

/// Maximum number of bytes of a cache's data.
const MAX_DATA: usize = 256 << 20;

type PipelineDescriptor<'a> = ComputePipelineDescriptor<'a, PipelineLayout, ShaderModule, PipelineCache>;

impl ComputePipeline {
    pub(crate) fn new(device: &Device, descriptor: &PipelineDescriptor<'_>) -> Result<Self, PipelineError> {
        hint::of_profile();
        let (layout, entry) = (&descriptor.layout.raw, descriptor.stage.entry_point);
        let made = descriptor.stage.module.stage(device, entry, descriptor.stage.constants)?;
        let stage = ShaderStage { module: &made.module, entry, specialization: &made.specialization };
        let raw = compiled(device, stage, layout, descriptor.cache);
        let label = descriptor.label.filter(|label| !label.is_empty()).map(Arc::from);
        Ok(Self { raw: raw.map_err(pipeline_error)?, has_immediates: descriptor.layout.has_immediates, label })
    }
}

impl PipelineCache {
    /// A cache with the code of these data, if the same user and build made them; empty otherwise.
    pub(crate) fn new(data: Option<&[u8]>) -> Self {
        let opened = data.and_then(|data| Some(StoredKernels::open(data, SealKey::of_user()?)));
        Self(Arc::new(Mutex::new(opened.unwrap_or_default())))
    }

    /// The data; `None` where the user has no key.
    pub(crate) fn data(&self) -> Option<Vec<u8>> {
        let stored = self.0.lock().clone();
        stored.seal(SealKey::of_user()?, MAX_DATA)
    }
}

/// Code of this process's kernels, for its other devices: a program of tests opens a device for each of its tests, and
/// wgpu creates two pipelines of its own with each.
static KERNELS: PerProcess<Mutex<StoredKernels>> = PerProcess::inheriting(Mutex::default, Mutex::inherit);

/// Number of kernels that are kept for other devices, at most.
const MAX_KEPT: usize = 256;

/// A pipeline, of the code of an earlier device or of a cache if one has it.
fn compiled(
    device: &Device,
    stage: ShaderStage<'_>,
    layout: &spelter_driver::PipelineLayout,
    cache: Option<&PipelineCache>,
) -> Result<spelter_driver::ComputePipeline, spelter_driver::Error> {
    let kept = KERNELS.get();
    // A copy: no lock is held while code is compiled.
    let mut stored = kept.lock().clone();
    if let Some(cache) = cache {
        stored.merge(&cache.0.lock());
    }
    let made = device.create_compute_pipeline_stored(stage, layout, &stored, true)?;
    let (pipeline, _) = made.unwrap_or_else(|| unreachable!("the kernel may be compiled"));
    if let Some(cache) = cache {
        cache.0.lock().keep(&pipeline);
    }
    let mut kept = kept.lock();
    if kept.len() < MAX_KEPT {
        kept.keep(&pipeline);
    }
    Ok(pipeline)
}

/// Identifies the data that this process can use: the end of the seal of an empty cache, which depends on the build and
/// on the user's key.
pub(crate) fn validation_key() -> Option<[u8; 16]> {
    static VALIDATION: Computed<Option<[u8; 16]>> = Computed::new();
    let end = || StoredKernels::default().seal(SealKey::of_user()?, MAX_DATA)?.last_chunk::<16>().copied();
    *VALIDATION.get_or_compute(end)
}

#[cfg(test)]
mod tests {
    use spelter_driver::{DeviceOptions, Specialization};

    use super::*;

    #[test]
    fn sealed_data_are_read_and_altered_ones_are_not() {
        let device =
            Device::new(DeviceOptions { workers: 1, heap_size: 64 << 20, ..DeviceOptions::default() }).unwrap();
        let module = device.create_shader_module_wgsl("@compute @workgroup_size(7) fn main() {}").unwrap();
        let layout = device.create_pipeline_layout(&[], &[]).unwrap();
        let cache = PipelineCache::new(None);
        let constants = Specialization::new();
        let stage = ShaderStage { module: &module, entry: "main", specialization: &constants };
        compiled(&device, stage, &layout, Some(&cache)).unwrap();
        // Where the user has no key there are no data, and where kernels are interpreted they have no code.
        let Some(mut data) = cache.data() else { return assert_eq!(validation_key(), None) };
        let kernels = cache.0.lock().len();
        assert_eq!(PipelineCache::new(Some(&data)).0.lock().len(), kernels);
        *data.last_mut().unwrap() ^= 1;
        assert_eq!(PipelineCache::new(Some(&data)).0.lock().len(), 0);
    }

    #[test]
    fn another_device_gets_the_code_of_the_first() {
        let stats = [(); 2].map(|()| {
            let options = DeviceOptions { workers: 1, heap_size: 64 << 20, ..DeviceOptions::default() };
            let device = Device::new(options).unwrap();
            let module = device.create_shader_module_wgsl("@compute @workgroup_size(9) fn main() {}").unwrap();
            let layout = device.create_pipeline_layout(&[], &[]).unwrap();
            let constants = Specialization::new();
            let stage = ShaderStage { module: &module, entry: "main", specialization: &constants };
            compiled(&device, stage, &layout, None).unwrap();
            device.pipeline_cache_stats()
        });
        assert_eq!(stats[0].compiled, 1);
        let is_code = spelter_driver::Backend::best().name() != "interpreter";
        assert_eq!(stats[1].stored, u64::from(is_code));
    }
}
