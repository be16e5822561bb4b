//! The whole pipeline on one page: text or words → module → kernel → code.

use std::collections::BTreeMap;

use crate::back::{Code, interp};
use crate::front::{Error, SpecializationConstant, spirv, wgsl};
use crate::ir::Kernel;

/// A module that was read and found valid as far as that is independent of entry point and specialization.
#[derive(Debug)]
pub enum Module {
    /// From SPIR-V words.
    Spirv(spirv::Module),
    /// From WGSL text.
    Wgsl(Box<wgsl::Module>),
}

impl Module {
    /// Reads a SPIR-V module.
    pub fn from_spirv(words: &[u32]) -> Result<Self, Error> {
        spirv::Module::parse(words).map(Self::Spirv)
    }

    /// Reads WGSL text; it becomes SPIR-V when a kernel is asked for, since overrides must be known by then.
    pub fn from_wgsl(source: &str) -> Result<Self, Error> {
        wgsl::Module::parse(source).map(|module| Self::Wgsl(Box::new(module)))
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = match self {
            Self::Spirv(module) => module.entry_points().collect(),
            Self::Wgsl(module) => module.entry_points().collect(),
        };
        names.into_iter()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        match self {
            Self::Spirv(module) => module.specialization_constants().collect(),
            Self::Wgsl(module) => module.specialization_constants().collect(),
        }
    }

    /// Specializes an entry point: the scalar IR, verified. `specialization` maps `SpecId` to the constant's 32 bits; ids
    /// that the module does not have are ignored, as Vulkan asks.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u32>) -> Result<Kernel, Error> {
        match self {
            Self::Spirv(module) => module.kernel(entry, specialization),
            Self::Wgsl(module) => module.kernel(entry, specialization),
        }
    }
}

/// Makes a kernel ready to run.
pub fn compile(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(interp::Program::new(kernel))
}
