//! The pipeline cache of a device: equal kernels are compiled once.
//!
//! The key of a kernel is the shader's text, the entry point, the values of the shader's specialization constants, and
//! whether the code takes a schedule. A device has one back end and one float mode, and a layout changes the code only
//! where it sizes arrays that the shader gives no size: pipelines with different layouts share code. (The model is
//! `VkPipelineCache`, but this cache belongs to the device.)
//!
//! The cache keeps nothing alive: an entry is removed with the last pipeline that uses its kernel, and the code is
//! freed then or with the last recording that uses it. A thread that creates a pipeline while another thread compiles
//! the same kernel waits for that. Errors are returned to the threads that wait, and are not cached.
//!
//! In a process that was forked from the device's, the functions here take no lock: a thread that does not exist there
//! may hold it.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use spelter_locks::Mutex;
use spelter_shaders::compile::Module;
use spelter_shaders::front::Blocks;
use spelter_shaders::ir::{BindingData, SampledPair};

use super::deferred::KernelCode;
use crate::error::Error;
use crate::exec::SourceLocations;
use crate::shader_source::ShaderSource;
use crate::sync::Loss;

/// Numbers of kernels that a device compiled, and that it did not have to compile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Kernels that were compiled or rejected.
    pub compiled: u64,
    /// Pipelines that share the kernel of an earlier pipeline.
    pub shared: u64,
    /// Kernels whose code was loaded from [`StoredKernels`](super::StoredKernels).
    pub stored: u64,
    /// Kernels that pipelines use now.
    pub alive: usize,
}

/// The number of elements that a pipeline layout gives a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BindingCount {
    pub(crate) set: u32,
    pub(crate) binding: u32,
    pub(crate) count: u32,
}

/// Identifies a kernel among those of its device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    source: Arc<ShaderSource>,
    entry: Arc<str>,
    constants: Arc<[(u32, u64)]>,
    /// Of all bindings, if the shader has arrays without a size.
    counts: Arc<[BindingCount]>,
    /// Whether the code takes the order of subgroups and lanes when it runs.
    takes_schedule: bool,
}

impl Key {
    /// Ignores values of constants that the shader does not have.
    pub(crate) fn new<'a>(
        source: &Arc<ShaderSource>,
        entry: &str,
        constants: impl IntoIterator<Item = (&'a u32, &'a u64)>,
    ) -> Self {
        let constants = constants.into_iter().map(|(&id, &bits)| (id, bits));
        let constants = constants.filter(|(id, _)| source.has_constant(*id)).collect();
        Self {
            source: Arc::clone(source),
            entry: entry.into(),
            constants,
            counts: Arc::default(),
            takes_schedule: false,
        }
    }

    /// The layouts of the shader's buffers and push constants; the shader is read again.
    pub(super) fn blocks(&self) -> Result<Blocks, Error> {
        Ok(self.source.module()?.blocks(&self.entry, &self.constants.iter().copied().collect())?)
    }

    /// The shader.
    pub(super) fn source(&self) -> &Arc<ShaderSource> {
        &self.source
    }

    /// A hash of the key that identifies the kernel across processes.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.source.digest());
        hasher.update(&(self.entry.len() as u64).to_le_bytes()).update(self.entry.as_bytes());
        hasher.update(&(self.constants.len() as u64).to_le_bytes());
        for (id, bits) in &*self.constants {
            hasher.update(&id.to_le_bytes()).update(&bits.to_le_bytes());
        }
        for BindingCount { set, binding, count } in &*self.counts {
            for number in [set, binding, count] {
                hasher.update(&number.to_le_bytes());
            }
        }
        hasher.update(&[self.takes_schedule.into()]);
        hasher.finalize().into()
    }

    /// The key of code that takes the order of subgroups and lanes when it runs, or does not.
    pub(crate) fn taking_schedule(self, takes_schedule: bool) -> Self {
        Self { takes_schedule, ..self }
    }

    /// The key with numbers of elements for arrays without a size.
    pub(crate) fn with_counts(self, counts: impl IntoIterator<Item = BindingCount>) -> Self {
        Self { counts: counts.into_iter().collect(), ..self }
    }
}

/// A compiled kernel, and its properties that pipelines need.
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<KernelCode>,
    pub(crate) workgroup_size: [u32; 3],
    pub(crate) bindings: Vec<BindingData>,
    pub(crate) pairs: Vec<SampledPair>,
    pub(crate) push_bytes: u32,
    /// Whether it accesses memory by device addresses.
    pub(crate) has_addresses: bool,
}

/// The cache of a device.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    inner: Mutex<PipelineCacheState>,
    /// The device's.
    loss: Arc<Loss>,
}

#[derive(Debug, Default)]
struct PipelineCacheState {
    entries: HashMap<Key, Weak<CacheEntry>>,
    compiled: u64,
    shared: u64,
    stored: u64,
}

/// Origin of the code of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled for this pipeline.
    Compiled,
    /// Shared with another pipeline.
    Shared,
    /// Loaded from [`StoredKernels`](super::StoredKernels).
    Stored,
}

/// A kernel that pipelines share.
#[derive(Debug)]
pub(crate) struct CacheEntry {
    key: Key,
    cache: Weak<PipelineCache>,
    kernel: OnceLock<Result<Arc<CompiledKernel>, Error>>,
}

impl SourceLocations for CacheEntry {
    /// Parses the shader again, which is slow but happens at most once: for the reason of a loss.
    fn location(&self, word: u32) -> Option<String> {
        // Kernels of checked mode are read with lines: their words are not those of the text without.
        let line = |kernel: &Result<Arc<CompiledKernel>, Error>| kernel.as_ref().ok()?.code.checked_line(word);
        if let Some(line) = self.kernel.get().and_then(line) {
            return Some(line);
        }
        let module = self.key.source.module().ok()?;
        let is_spirv = matches!(module, Module::Spirv(_));
        let constants = self.key.constants.iter().copied().collect();
        match module.line_of(&self.key.entry, &constants, word) {
            Some(line) => Some(line.to_string()),
            None => is_spirv.then(|| format!("SPIR-V word {word}")),
        }
    }
}

impl PipelineCache {
    pub(crate) fn new(loss: &Arc<Loss>) -> Arc<Self> {
        Arc::new(Self { inner: Mutex::default(), loss: Arc::clone(loss) })
    }

    /// The kernel with this key: an existing one, or else the result of `make`. [`Error::DeviceLost`] in a forked
    /// process.
    pub(crate) fn get(
        self: &Arc<Self>,
        key: Key,
        make: impl FnOnce() -> Result<(CompiledKernel, Origin), Error>,
    ) -> Result<(SharedKernel, Origin), Error> {
        self.loss.check_not_forked()?;
        let entry = self.entry(key);
        // Without the cache's lock: only threads that need the same kernel wait for `make`.
        let mut origin = Origin::Shared;
        let made = entry.kernel.get_or_init(|| {
            let made = make();
            origin = made.as_ref().map_or(Origin::Compiled, |(_, origin)| *origin);
            made.map(|(kernel, _)| Arc::new(kernel))
        });
        let made = made.clone();
        {
            let mut inner = self.inner.lock();
            inner.compiled += u64::from(origin == Origin::Compiled);
            inner.stored += u64::from(origin == Origin::Stored);
            inner.shared += u64::from(origin == Origin::Shared && made.is_ok());
        }
        made.map(|kernel| (SharedKernel { kernel, entry }, origin))
    }

    /// Whether a pipeline uses the kernel with this key now.
    pub(crate) fn has(&self, key: &Key) -> bool {
        if self.loss.is_forked() {
            return false;
        }
        let entry = self.inner.lock().entries.get(key).and_then(Weak::upgrade);
        entry.is_some_and(|entry| matches!(entry.kernel.get(), Some(Ok(_))))
    }

    pub(crate) fn stats(&self) -> CacheStats {
        if self.loss.is_forked() {
            return CacheStats::default();
        }
        let inner = self.inner.lock();
        CacheStats { compiled: inner.compiled, shared: inner.shared, stored: inner.stored, alive: inner.entries.len() }
    }

    fn entry(self: &Arc<Self>, key: Key) -> Arc<CacheEntry> {
        let mut inner = self.inner.lock();
        if let Some(entry) = inner.entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        let entry = Arc::new(CacheEntry { key: key.clone(), cache: Arc::downgrade(self), kernel: OnceLock::new() });
        inner.entries.insert(key, Arc::downgrade(&entry));
        entry
    }
}

impl Drop for CacheEntry {
    fn drop(&mut self) {
        let Some(cache) = self.cache.upgrade().filter(|cache| !cache.loss.is_forked()) else { return };
        let mut inner = cache.inner.lock();
        // Another thread may have created the pipeline again since the last handle was dropped.
        if inner.entries.get(&self.key).is_some_and(|entry| entry.strong_count() == 0) {
            let removed = inner.entries.remove_entry(&self.key);
            // After the lock: the key may be the last owner of a long text.
            drop(inner);
            drop(removed);
        }
    }
}

/// A handle of a kernel: while one exists, pipelines with the same key share the kernel.
#[derive(Debug)]
pub(crate) struct SharedKernel {
    kernel: Arc<CompiledKernel>,
    entry: Arc<CacheEntry>,
}

impl SharedKernel {
    /// Equal for all handles of the same kernel.
    pub(super) fn id(&self) -> usize {
        Arc::as_ptr(&self.entry).addr()
    }

    /// Locations in the shader's source, available while a pipeline has the kernel.
    pub(super) fn source(&self) -> Weak<dyn SourceLocations> {
        let entry = Arc::clone(&self.entry) as Arc<dyn SourceLocations>;
        Arc::downgrade(&entry)
    }

    /// Its key in the cache.
    pub(super) fn key(&self) -> &Key {
        &self.entry.key
    }
}

impl Deref for SharedKernel {
    type Target = CompiledKernel;

    fn deref(&self) -> &CompiledKernel {
        &self.kernel
    }
}
