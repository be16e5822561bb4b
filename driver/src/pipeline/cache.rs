//! Pipelines that were created twice are compiled once.
//!
//! What a device compiles is found by the shader's text, the entry point and the values of the specialization constants
//! that the shader has. A device has one back end and one float mode, and the layout changes no code: pipelines with
//! different layouts share it. (The model is `VkPipelineCache`; this one belongs to the device.)
//!
//! The cache holds nothing alive: a kernel is forgotten with the last pipeline that uses it, and its code goes then or
//! with the last recording. Who creates a pipeline that another thread is compiling waits for that; errors are told to
//! those who wait, and then forgotten.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use spelter_shaders::ir::BindingData;

use super::deferred::KernelCode;
use crate::error::Error;

/// How often a device compiled, and how often it did not have to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Kernels that were compiled, or refused.
    pub compiled: u64,
    /// Pipelines that use a kernel which was compiled for another one.
    pub shared: u64,
    /// Kernels that pipelines use now.
    pub alive: usize,
}

/// The words or the text of a shader: equal ones make equal kernels.
#[derive(Debug)]
pub(crate) struct Source {
    text: Text,
    /// Computed once: texts are long.
    hash: u64,
    /// Specialization constants that can be set, in order.
    ids: Vec<u32>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Spirv(Box<[u32]>),
    Wgsl(Box<str>),
}

impl Source {
    pub(crate) fn new(text: Text, ids: impl Iterator<Item = u32>) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        let mut ids: Vec<u32> = ids.collect();
        ids.sort_unstable();
        Self { text, hash: hasher.finish(), ids }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What tells a kernel from others of its device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    source: Arc<Source>,
    entry: Arc<str>,
    constants: Arc<[(u32, u64)]>,
    /// Set, binding and elements, where the shader has arrays without a size.
    counts: Arc<[(u32, u32, u32)]>,
}

impl Key {
    /// Values of constants that the shader does not have make no difference.
    pub(crate) fn new<'a>(
        source: &Arc<Source>,
        entry: &str,
        constants: impl IntoIterator<Item = (&'a u32, &'a u64)>,
    ) -> Self {
        let constants = constants.into_iter().map(|(&id, &bits)| (id, bits));
        let constants = constants.filter(|(id, _)| source.ids.binary_search(id).is_ok()).collect();
        Self { source: Arc::clone(source), entry: entry.into(), constants, counts: Arc::default() }
    }
}

impl Key {
    /// Of the kernel whose arrays without a size have so many elements.
    pub(crate) fn with_counts(self, counts: impl IntoIterator<Item = (u32, u32, u32)>) -> Self {
        Self { counts: counts.into_iter().collect(), ..self }
    }
}

/// A kernel, compiled, with what pipelines have to know of it.
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    pub(crate) name: Arc<str>,
    pub(crate) code: Arc<KernelCode>,
    pub(crate) workgroup_size: [u32; 3],
    pub(crate) bindings: Vec<BindingData>,
    pub(crate) push_bytes: u32,
    /// Whether it accesses memory by addresses.
    pub(crate) has_addresses: bool,
}

/// The cache of a device.
#[derive(Debug, Default)]
pub(crate) struct PipelineCache {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Key, Weak<Entry>>,
    compiled: u64,
    shared: u64,
}

/// A kernel that pipelines share.
#[derive(Debug)]
pub(crate) struct Entry {
    key: Key,
    cache: Weak<PipelineCache>,
    kernel: OnceLock<Result<Arc<CompiledKernel>, Error>>,
}

impl PipelineCache {
    /// The kernel with this key: what is there, or what `compile` makes.
    pub(crate) fn get(
        self: &Arc<Self>,
        key: Key,
        compile: impl FnOnce() -> Result<CompiledKernel, Error>,
    ) -> Result<SharedKernel, Error> {
        let entry = self.entry(key);
        let mut compiles = false;
        let made = entry.kernel.get_or_init(|| {
            compiles = true;
            compile().map(Arc::new)
        });
        let made = made.clone();
        {
            let mut inner = self.inner.lock();
            inner.compiled += u64::from(compiles);
            inner.shared += u64::from(!compiles && made.is_ok());
        }
        made.map(|kernel| SharedKernel { kernel, _entry: entry })
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let inner = self.inner.lock();
        CacheStats { compiled: inner.compiled, shared: inner.shared, alive: inner.entries.len() }
    }

    fn entry(self: &Arc<Self>, key: Key) -> Arc<Entry> {
        let mut inner = self.inner.lock();
        if let Some(entry) = inner.entries.get(&key).and_then(Weak::upgrade) {
            return entry;
        }
        let entry = Arc::new(Entry { key: key.clone(), cache: Arc::downgrade(self), kernel: OnceLock::new() });
        inner.entries.insert(key, Arc::downgrade(&entry));
        entry
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Some(cache) = self.cache.upgrade() else { return };
        let mut inner = cache.inner.lock();
        // Somebody may have created the pipeline anew since the last handle went.
        if inner.entries.get(&self.key).is_some_and(|entry| entry.strong_count() == 0) {
            let removed = inner.entries.remove_entry(&self.key);
            drop(inner);
            drop(removed);
        }
    }
}

/// A kernel that others with the same key get, too, while there is this one.
#[derive(Debug)]
pub(crate) struct SharedKernel {
    kernel: Arc<CompiledKernel>,
    _entry: Arc<Entry>,
}

impl Deref for SharedKernel {
    type Target = CompiledKernel;

    fn deref(&self) -> &CompiledKernel {
        &self.kernel
    }
}
