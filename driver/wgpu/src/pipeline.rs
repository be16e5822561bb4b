//! Compute pipelines and their caches.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use spelter_driver::{Device, SealKey, StoredKernels};
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

type Descriptor<'a> = ComputePipelineDescriptor<'a, PipelineLayout, ShaderModule, PipelineCache>;

impl ComputePipeline {
    pub(crate) fn new(device: &Device, descriptor: &Descriptor<'_>) -> Result<Self, PipelineError> {
        hint::of_profile();
        let (layout, entry) = (&descriptor.layout.raw, descriptor.stage.entry_point);
        let stage = descriptor.stage.module.stage(device, entry, descriptor.stage.constants)?;
        let raw = match descriptor.cache {
            Some(cache) => cache.pipeline(device, (&stage.module, entry, &stage.specialization), layout),
            None => device.create_compute_pipeline(&stage.module, entry, &stage.specialization, layout),
        };
        let label = descriptor.label.filter(|label| !label.is_empty()).map(Arc::from);
        Ok(Self { raw: raw.map_err(pipeline_error)?, has_immediates: descriptor.layout.has_immediates, label })
    }
}

impl PipelineCache {
    /// A cache with the code of these data, if the same user and build made them; empty otherwise.
    pub(crate) fn new(data: Option<&[u8]>) -> Self {
        let opened = data.and_then(|data| Some(StoredKernels::open(data, key()?)));
        Self(Arc::new(Mutex::new(opened.unwrap_or_default())))
    }

    /// The data; `None` where the user has no key.
    pub(crate) fn data(&self) -> Option<Vec<u8>> {
        let stored = self.0.lock().clone();
        stored.seal(key()?, MAX_DATA)
    }

    fn pipeline(
        &self,
        device: &Device,
        shader: (&spelter_driver::ShaderModule, &str, &spelter_driver::Specialization),
        layout: &spelter_driver::PipelineLayout,
    ) -> Result<spelter_driver::ComputePipeline, spelter_driver::Error> {
        // A copy: no lock is held while code is compiled.
        let stored = self.0.lock().clone();
        let made = device.create_compute_pipeline_stored(shader, layout, &stored, true)?;
        let pipeline = match made {
            Some((pipeline, _)) => pipeline,
            None => device.create_compute_pipeline(shader.0, shader.1, shader.2, layout)?,
        };
        self.0.lock().keep(&pipeline);
        Ok(pipeline)
    }
}

/// Identifies the data that this process can use: the end of the seal of an empty cache, which depends on the build and
/// on the user's key.
pub(crate) fn validation_key() -> Option<[u8; 16]> {
    static VALIDATION: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    let end = || StoredKernels::default().seal(key()?, MAX_DATA)?.last_chunk::<16>().copied();
    *VALIDATION.get_or_init(end)
}

/// The user's key for stored code (ADR 10).
#[cfg(unix)]
fn key() -> Option<&'static SealKey> {
    static KEY: OnceLock<Option<SealKey>> = OnceLock::new();
    KEY.get_or_init(|| SealKey::of_user(|name| std::env::var_os(name).filter(|value| !value.is_empty()))).as_ref()
}

/// Elsewhere there is no place for a key.
#[cfg(not(unix))]
fn key() -> Option<&'static SealKey> {
    None
}
