//! Front ends: SPIR-V is read by our own reader; WGSL and SPIR-V text become SPIR-V first.

mod error;
mod specialization;
pub mod spirv;
pub mod spvasm;
pub mod wgsl;

pub use error::Error;
pub use specialization::{ConstantType, SpecializationConstant};
