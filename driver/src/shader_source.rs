//! The words or the text that a shader was made of: keys of kernels compare them, and checked mode reads them again.

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use spelter_shaders::compile::Module;

/// The words or the text of a shader: equal ones give equal kernels.
#[derive(Debug)]
pub(crate) struct ShaderSource {
    text: SourceText,
    /// Computed once: texts are long.
    hash: u64,
    /// Digest of the text, a part of the key of its kernels; computed on first use.
    digest: OnceLock<[u8; 32]>,
    /// Ids of the specialization constants, in ascending order.
    ids: Vec<u32>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum SourceText {
    Spirv(Box<[u32]>),
    /// With the name of its file, if the program gave one: kernels of equal texts in other files have other lines.
    Wgsl(Box<str>, Option<Box<str>>),
}

impl ShaderSource {
    /// The module, parsed again.
    pub(crate) fn module(&self) -> Result<Module, spelter_shaders::front::Error> {
        match &self.text {
            SourceText::Spirv(words) => Module::from_spirv(words),
            SourceText::Wgsl(text, None) => Module::from_wgsl(text),
            SourceText::Wgsl(text, Some(file)) => Module::from_wgsl_named(text, file),
        }
    }

    pub(crate) fn new(text: SourceText, ids: impl Iterator<Item = u32>) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        text.hash(&mut hasher);
        let mut ids: Vec<u32> = ids.collect();
        ids.sort_unstable();
        Self { text, hash: hasher.finish(), digest: OnceLock::new(), ids }
    }

    /// Whether it has a specialization constant with this id.
    pub(crate) fn has_constant(&self, id: u32) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// A hash of the words or the text that identifies them across processes.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| self.text.digest())
    }
}

impl SourceText {
    fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::Spirv(words) => words.iter().for_each(|word| {
                hasher.update(&word.to_le_bytes());
            }),
            Self::Wgsl(text, _) => {
                hasher.update(b"WGSL").update(text.as_bytes());
            }
        }
        hasher.finalize().into()
    }
}

impl PartialEq for ShaderSource {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for ShaderSource {}

impl Hash for ShaderSource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}
