//! Shader modules: read once, specialized by each pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use spelter_shaders::compile::Module;

use crate::device::Device;
use crate::error::{Error, require};

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

    /// Ids of the specialization constants.
    pub fn specialization_ids(&self) -> impl Iterator<Item = u32> {
        self.module.specialization_ids()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn module(&self) -> &Module {
        &self.module
    }
}
