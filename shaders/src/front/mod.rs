//! Front ends: a SPIR-V reader; WGSL and SPIR-V text are first translated to SPIR-V.

mod convergence;
mod error;
pub mod room;
mod specialization;
pub mod spirv;
pub mod spvasm;
mod uniforms;
pub mod wgsl;

pub use convergence::preserve_convergence;
pub use error::{Error, Remark};
pub use specialization::{ConstantType, SpecializationConstant};
pub use uniforms::UniformScalar;
