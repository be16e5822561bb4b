//! Front ends: a SPIR-V reader; WGSL and SPIR-V text are first translated to SPIR-V.

mod convergence;
mod data_layout;
mod error;
mod language;
pub mod room;
mod specialization;
pub mod spirv;
pub mod spvasm;
pub mod wgsl;

pub use convergence::preserve_convergence;
pub use data_layout::{Blocks, DataLayout, DataMember, PlacedScalar, ScalarType};
pub use error::{Error, Remark};
pub use language::Language;
pub use specialization::{ConstantType, SpecializationConstant};
