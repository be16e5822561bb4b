//! The language from which a module was compiled, for messages in its words.

/// A language of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// SPIR-V itself, or a language whose words no message knows.
    Spirv,
    /// GLSL.
    Glsl,
    /// WGSL.
    Wgsl,
}
