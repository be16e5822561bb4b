//! Kernels that outlive their process: machine code, authenticated by a keyed hash (ADR 10).
//!
//! The format is a head, one entry per kernel, found by the digest of its cache key, and a keyed hash ("seal") of
//! everything before it. A store is accepted only if the hash matches this user's key and the same build made it: an
//! altered, truncated, foreign or older store counts as empty. So a process that can make another run code from a store
//! knows the key, and could have sealed that code itself.
//!
//! # Safety
//!
//! [`MachineCode::load`] requires bytes that [`Code::store`] returned. The bytes in a [`StoredKernels`] are from
//! `Code::store` of this process, or from a sealed store, whose maker guarantees the same.

use std::collections::HashMap;
use std::sync::Arc;

use spelter_shaders::back::Code;
use spelter_shaders::back::bytes::{Reader, Writer};
use spelter_shaders::back::x86::MachineCode;
use spelter_shaders::compile::{Backend, Compiled};
use spelter_shaders::image::DeclaredImage;
use spelter_shaders::ir::{Binding, BindingData, BindingKind, SampledPair};

use super::ComputePipeline;
use super::cache::{CompiledKernel, Key};
use super::deferred::KernelCode;

/// A secret of the processes that may run each other's code: those of one user. It must not be known to anything else.
#[derive(Clone, Copy)]
pub struct SealKey(pub [u8; 32]);

/// Machine code of kernels, from this process and others.
#[derive(Clone, Debug, Default)]
pub struct StoredKernels {
    /// Key: back end and [`Key::digest`].
    all: HashMap<(Backend, [u8; 32]), Arc<[u8]>>,
}

const MAGIC: &[u8; 8] = b"SPELTERK";
/// Identifies the build: see `build.rs`.
const BUILD: &str = env!("SPELTER_BUILD");
const SEAL: usize = 32;
/// Maximum number of bytes of a store; further entries are left out.
const MAX_BYTES: usize = 256 << 20;

impl StoredKernels {
    /// Reads a store. Empty if the bytes are not complete, not sealed with `key`, or from another build.
    pub fn open(bytes: &[u8], key: &SealKey) -> Self {
        Self::try_open(bytes, key).unwrap_or_default()
    }

    fn try_open(bytes: &[u8], key: &SealKey) -> Option<Self> {
        let (body, seal) = bytes.split_at_checked(bytes.len().checked_sub(SEAL)?)?;
        // The seal comes first: nothing of the body is read before. The comparison is constant-time.
        let seal: [u8; SEAL] = seal.try_into().ok()?;
        if blake3::keyed_hash(&key.0, body) != blake3::Hash::from_bytes(seal) {
            return None;
        }
        let mut from = Reader(body);
        if from.take(MAGIC.len())? != MAGIC || from.bytes()? != BUILD.as_bytes() {
            return None;
        }
        let mut all = HashMap::new();
        for _ in 0..from.word()? {
            let backend = from.text()?.parse().ok();
            let digest = from.take(32)?.try_into().ok()?;
            let code = from.bytes()?;
            // Ignores kernels for back ends that this machine does not have.
            backend.map(|backend| all.insert((backend, digest), code.into()));
        }
        from.0.is_empty().then_some(Self { all })
    }

    /// The sealed store, in at most `max_bytes` bytes: kernels that do not fit are left out. `None` if not even an
    /// empty store fits.
    pub fn seal(&self, key: &SealKey, max_bytes: usize) -> Option<Vec<u8>> {
        let mut entries: Vec<_> = self.all.iter().collect();
        // Sorted, so that equal kernels give equal bytes.
        entries.sort_unstable_by_key(|((backend, digest), _)| (backend.name(), *digest));
        let (mut count, mut list) = (0u32, Writer::default());
        let head = MAGIC.len() + 8 + BUILD.len() + 4 + SEAL;
        for ((backend, digest), code) in entries {
            let whole = 8 + backend.name().len() + digest.len() + 8 + code.len();
            if head + list.0.len() + whole <= max_bytes.min(MAX_BYTES) {
                count += 1;
                list.text(backend.name());
                list.0.extend_from_slice(digest);
                list.bytes(code);
            }
        }
        let mut out = Writer(MAGIC.to_vec());
        out.text(BUILD);
        out.word(count);
        out.0.extend_from_slice(&list.0);
        let seal = blake3::keyed_hash(&key.0, &out.0);
        out.0.extend_from_slice(seal.as_bytes());
        (out.0.len() <= max_bytes).then_some(out.0)
    }

    /// Adds the kernel of a pipeline, if it is machine code; waits until it is compiled. Adds nothing in a process that
    /// was forked before that.
    pub fn keep(&mut self, pipeline: &ComputePipeline) {
        let kernel = pipeline.kernel();
        let place = (kernel.code.backend(), kernel.key().digest());
        if !self.all.contains_key(&place)
            && let Some(bytes) = to_bytes(kernel)
        {
            self.all.insert(place, bytes.into());
        }
    }

    /// Whether it has the code of a pipeline. Does not wait.
    pub fn has_code_of(&self, pipeline: &ComputePipeline) -> bool {
        self.has(pipeline.kernel().key(), pipeline.device().properties().backend)
    }

    /// Adds the kernels of another store.
    pub fn merge(&mut self, other: &Self) {
        self.all.extend(other.all.iter().map(|(&place, code)| (place, Arc::clone(code))));
    }

    /// Number of kernels.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no kernels.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has(&self, key: &Key, backend: Backend) -> bool {
        !self.is_empty() && self.all.contains_key(&(backend, key.digest()))
    }

    /// The kernel with this key, ready to run.
    pub(super) fn get(&self, key: &Key, backend: Backend) -> Option<CompiledKernel> {
        if self.is_empty() {
            return None;
        }
        from_bytes(self.all.get(&(backend, key.digest()))?, backend)
    }
}

/// Encodes a kernel, if it is machine code.
fn to_bytes(kernel: &CompiledKernel) -> Option<Vec<u8>> {
    let code = kernel.code.store()?;
    let mut out = Writer::default();
    out.text(&kernel.name);
    for word in [kernel.workgroup_size.as_slice(), &[kernel.push_bytes, kernel.has_addresses.into()]].concat() {
        out.word(word);
    }
    out.word(kernel.bindings.len() as u32);
    for &BindingData { set, binding, kind, count, min_bytes, element_bytes, read_only, image } in &kernel.bindings {
        let kind = KINDS.iter().position(|&known| known == kind)? as u32;
        for word in [set, binding, kind, count, min_bytes, element_bytes, read_only.into()] {
            out.word(word);
        }
        out.text(&image.map(|image| image.name()).unwrap_or_default());
    }
    out.word(kernel.pairs.len() as u32);
    for pair in &kernel.pairs {
        for word in [pair.image.as_u32(), pair.sampler.as_u32(), pair.filters.into(), pair.compares.into()] {
            out.word(word);
        }
    }
    out.bytes(&code);
    Some(out.0)
}

/// Decodes a kernel from the result of [`to_bytes`].
fn from_bytes(bytes: &[u8], backend: Backend) -> Option<CompiledKernel> {
    let mut from = Reader(bytes);
    let name = from.text()?.into();
    let workgroup_size = [from.word()?, from.word()?, from.word()?];
    let (push_bytes, has_addresses) = (from.word()?, from.word()? != 0);
    let bindings = (0..from.word()?).map(|_| binding(&mut from)).collect::<Option<_>>()?;
    let pairs = (0..from.word()?).map(|_| pair(&mut from)).collect::<Option<_>>()?;
    // SAFETY: by this module's contract.
    let program = unsafe { MachineCode::load(from.bytes()?) }?;
    let code = KernelCode::ready(Compiled { code: Box::new(program), backend, fallback: None });
    Some(CompiledKernel { name, code, workgroup_size, bindings, pairs, push_bytes, has_addresses })
}

/// Kinds of bindings; their indices encode them.
const KINDS: [BindingKind; 8] = [
    BindingKind::StorageBuffer,
    BindingKind::UniformBuffer,
    BindingKind::Sampler,
    BindingKind::SampledImage,
    BindingKind::CombinedImageSampler,
    BindingKind::StorageImage,
    BindingKind::UniformTexelBuffer,
    BindingKind::StorageTexelBuffer,
];

fn binding(from: &mut Reader<'_>) -> Option<BindingData> {
    let (set, binding, kind) = (from.word()?, from.word()?, *KINDS.get(from.word()? as usize)?);
    let (count, min_bytes, element_bytes) = (from.word()?, from.word()?, from.word()?);
    let read_only = from.word()? != 0;
    let image = match from.text()? {
        "" => None,
        name => Some(DeclaredImage::from_name(name)?),
    };
    Some(BindingData { set, binding, kind, count, min_bytes, element_bytes, read_only, image })
}

fn pair(from: &mut Reader<'_>) -> Option<SampledPair> {
    let (image, sampler) = (Binding::from_u32(from.word()?), Binding::from_u32(from.word()?));
    Some(SampledPair { image, sampler, filters: from.word()? != 0, compares: from.word()? != 0 })
}

#[cfg(not(unix))]
impl SealKey {
    /// The key of the process's user: here there is no place for one.
    pub fn of_user() -> Option<&'static Self> {
        None
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(secret)")
    }
}
