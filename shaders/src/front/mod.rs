//! Front ends: SPIR-V is read by our own reader; WGSL and SPIR-V text become SPIR-V first.

mod error;
pub mod spirv;
pub mod spvasm;
pub mod wgsl;

pub use error::Error;
