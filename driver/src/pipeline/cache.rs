//! Pipelines that were created twice are compiled once.
//!
//! What a device compiles is found by the shader's text, the entry point and the values of the specialization constants
//! that the shader has. A device has one back end and one float mode, and the layout changes no code: pipelines with
//! different layouts share it. (The model is `VkPipelineCache`; this one belongs to the device.)
//!
//! The cache holds nothing alive: a kernel is forgotten with the last pipeline that uses it, and its code goes then or
//! with the last recording. Who creates a pipeline that another thread is compiling waits for that; errors are told to
//! those who wait, and then forgotten.
//!
//! In a process that was forked from the one with the device, no lock is taken here: it may be held by a thread that is not there.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use spelter_shaders::compile::Module;
use spelter_shaders::ir::{BindingData, SampledPair};

use super::deferred::KernelCode;
use crate::error::Error;
use crate::exec::{Loss, Places};

/// How often a device compiled, and how often it did not have to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Kernels that were compiled, or refused.
    pub compiled: u64,
    /// Pipelines that use a kernel which was compiled for another one.
    pub shared: u64,
    /// Kernels whose code came out of a store.
    pub stored: u64,
    /// Kernels that pipelines use now.
    pub alive: usize,
}

/// The words or the text of a shader: equal ones make equal kernels.
#[derive(Debug)]
pub(crate) struct Source {
    text: Text,
    /// Computed once: texts are long.
    hash: u64,
    /// As [`Key::digest`] has it, computed when it is first asked for.
    digest: OnceLock<[u8; 32]>,
    /// Specialization constants that can be set, in order.
    ids: Vec<u32>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Spirv(Box<[u32]>),
    Wgsl(Box<str>),
}

impl Source {
    /// Length of the text.
    pub(super) fn bytes(&self) -> usize {
        match &self.text {
            Text::Spirv(words) => size_of_val(&**words),
            Text::Wgsl(text) => text.len(),
        }
    }

    pub(crate) fn new(text: Text, ids: impl Iterator<Item = u32>) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        let mut ids: Vec<u32> = ids.collect();
        ids.sort_unstable();
        Self { text, hash: hasher.finish(), digest: OnceLock::new(), ids }
    }
}

impl Text {
    fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::Spirv(words) => words.iter().for_each(|word| {
                hasher.update(&word.to_le_bytes());
            }),
            Self::Wgsl(text) => {
                hasher.update(b"WGSL").update(text.as_bytes());
            }
        }
        hasher.finalize().into()
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

    /// What tells the kernel from all others that there ever were, 32 bytes long.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let source = self.source.digest.get_or_init(|| self.source.text.digest());
        let mut hasher = blake3::Hasher::new();
        hasher.update(source);
        hasher.update(&(self.entry.len() as u64).to_le_bytes()).update(self.entry.as_bytes());
        hasher.update(&(self.constants.len() as u64).to_le_bytes());
        for (id, bits) in &*self.constants {
            hasher.update(&id.to_le_bytes()).update(&bits.to_le_bytes());
        }
        for (set, binding, count) in &*self.counts {
            for number in [set, binding, count] {
                hasher.update(&number.to_le_bytes());
            }
        }
        hasher.finalize().into()
    }

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
    pub(crate) pairs: Vec<SampledPair>,
    pub(crate) push_bytes: u32,
    /// Whether it accesses memory by addresses.
    pub(crate) has_addresses: bool,
}

/// The cache of a device.
#[derive(Debug)]
pub(crate) struct PipelineCache {
    inner: Mutex<Inner>,
    /// Of the device.
    loss: Arc<Loss>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Key, Weak<Entry>>,
    compiled: u64,
    shared: u64,
    stored: u64,
}

/// Where the code of a pipeline came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was compiled.
    Compiled,
    /// Another pipeline has it.
    Shared,
    /// A store had it.
    Stored,
}

/// A kernel that pipelines share.
#[derive(Debug)]
pub(crate) struct Entry {
    key: Key,
    cache: Weak<PipelineCache>,
    kernel: OnceLock<Result<Arc<CompiledKernel>, Error>>,
}

impl Places for Entry {
    /// Reads the shader once more: this is for the one message that a lost device has.
    fn place(&self, word: u32) -> Option<String> {
        let (module, is_spirv) = match &self.key.source.text {
            Text::Spirv(words) => (Module::from_spirv(words).ok()?, true),
            Text::Wgsl(text) => (Module::from_wgsl(text).ok()?, false),
        };
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

    /// The kernel with this key: what is there, or what `make` makes. [`Error::DeviceLost`] in a forked process.
    pub(crate) fn get(
        self: &Arc<Self>,
        key: Key,
        make: impl FnOnce() -> Result<(CompiledKernel, Origin), Error>,
    ) -> Result<(SharedKernel, Origin), Error> {
        self.loss.check_origin()?;
        let entry = self.entry(key);
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
        if self.loss.is_elsewhere() {
            return false;
        }
        let entry = self.inner.lock().entries.get(key).and_then(Weak::upgrade);
        entry.is_some_and(|entry| matches!(entry.kernel.get(), Some(Ok(_))))
    }

    pub(crate) fn stats(&self) -> CacheStats {
        if self.loss.is_elsewhere() {
            return CacheStats::default();
        }
        let inner = self.inner.lock();
        CacheStats { compiled: inner.compiled, shared: inner.shared, stored: inner.stored, alive: inner.entries.len() }
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
        let Some(cache) = self.cache.upgrade().filter(|cache| !cache.loss.is_elsewhere()) else { return };
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
    entry: Arc<Entry>,
}

impl SharedKernel {
    /// The same for all that share it.
    pub(super) fn id(&self) -> usize {
        Arc::as_ptr(&self.entry).addr()
    }

    /// Tells places in the shader, while a pipeline has the kernel.
    pub(super) fn source(&self) -> Weak<dyn Places> {
        let entry = Arc::clone(&self.entry) as Arc<dyn Places>;
        Arc::downgrade(&entry)
    }

    /// What it is found by.
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
