//! Shader modules: read once, specialized by each pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use spelter_shaders::compile::Module;
use spelter_shaders::front::SpecializationConstant;
use spelter_shaders::ir::Kernel;

use crate::device::Device;
use crate::error::{Error, Misuse, require};

/// `SpecId` → the constant's 32 bits (`VkSpecializationInfo`). Ids that a module does not have are ignored.
pub type Specialization = BTreeMap<u32, u32>;

/// A shader module (`VkShaderModule`). A handle.
#[derive(Clone, Debug)]
pub struct ShaderModule {
    device: Device,
    module: Arc<Module>,
}

impl ShaderModule {
    pub(crate) fn from_spirv(device: &Device, words: &[u32]) -> Result<Self, Error> {
        let at = "vkCreateShaderModule";
        require(!words.is_empty(), at, "VUID-VkShaderModuleCreateInfo-codeSize-01085", || "codeSize is 0".into())?;
        Ok(Self { device: device.clone(), module: Arc::new(Module::from_spirv(words)?) })
    }

    pub(crate) fn from_wgsl(device: &Device, source: &str) -> Result<Self, Error> {
        Ok(Self { device: device.clone(), module: Arc::new(Module::from_wgsl(source)?) })
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.module.entry_points()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        self.module.specialization_constants()
    }

    /// One entry point with its constants set: what a pipeline is made of, and what tells which layout it needs.
    pub fn specialize(&self, entry: &str, specialization: &Specialization) -> Result<SpecializedShader, Error> {
        self.check_entry(entry)?;
        let kernel = self.module.kernel(entry, specialization)?;
        Ok(SpecializedShader { device: self.device.clone(), kernel: Arc::new(kernel) })
    }

    fn check_entry(&self, entry: &str) -> Result<(), Misuse> {
        let vuid = "VUID-VkPipelineShaderStageCreateInfo-pName-00707";
        require(self.entry_points().any(|name| name == entry), "vkCreateComputePipelines", vuid, || {
            let names: Vec<String> = self.entry_points().map(|name| format!("`{name}`")).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("no compute entry point `{entry}`; there is {there}")
        })
    }
}

/// An entry point of a shader module with its constants set (`VkPipelineShaderStageCreateInfo`). A handle.
#[derive(Clone, Debug)]
pub struct SpecializedShader {
    device: Device,
    kernel: Arc<Kernel>,
}

impl SpecializedShader {
    /// The kernel: name, workgroup size, bindings, push constants.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}
