//! The whole pipeline on one page: text or words → module → kernel → code.

use std::collections::BTreeMap;

use crate::back::{Code, interp};
use crate::front::{Error, spirv, wgsl};
use crate::ir::Kernel;

/// A module that was read and found valid as far as that is independent of entry point and specialization.
#[derive(Debug)]
pub struct Module {
    spirv: spirv::Module,
}

impl Module {
    /// Reads a SPIR-V module.
    pub fn from_spirv(words: &[u32]) -> Result<Self, Error> {
        Ok(Self { spirv: spirv::Module::parse(words)? })
    }

    /// Reads WGSL text: parsed and validated by naga, written as SPIR-V, then read as that.
    pub fn from_wgsl(source: &str) -> Result<Self, Error> {
        Self::from_spirv(&wgsl::to_spirv(source)?)
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.spirv.entry_points()
    }

    /// The ids of specialization constants (`SpecId`), in the module's order.
    pub fn specialization_ids(&self) -> impl Iterator<Item = u32> {
        self.spirv.specialization_ids()
    }

    /// Specializes an entry point: the scalar IR, verified. `specialization` maps `SpecId` to the constant's 32 bits; ids
    /// that the module does not have are ignored, as Vulkan asks.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u32>) -> Result<Kernel, Error> {
        self.spirv.kernel(entry, specialization)
    }
}

/// Makes a kernel ready to run.
pub fn compile(kernel: &Kernel) -> Box<dyn Code> {
    Box::new(interp::Program::new(kernel))
}
