//! Results of vectorization besides the kernel.

/// The reason why a kernel cannot be vectorized: the interpreter has to run it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// How often parts of the vectorizer changed a kernel, by name.
pub type Changes = Vec<(&'static str, u64)>;
