//! Front ends: SPIR-V is read by our own reader; WGSL becomes SPIR-V first.

mod error;
pub mod spirv;
pub mod wgsl;

pub use error::Error;
