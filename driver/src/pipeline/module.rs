//! Shader modules: read once, specialized by each pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use spelter_shaders::compile::Module;
use spelter_shaders::front::SpecializationConstant;
use spelter_shaders::ir::{Kernel, SourceLine};

use super::cache::{Key, Source, Text};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory::{self, OutOfHostMemory, Room};

/// `SpecId` → the constant's bits, of which as many count as its type has (`VkSpecializationInfo`). Ids that a module does not have are ignored.
pub type Specialization = BTreeMap<u32, u64>;

/// A shader module (`VkShaderModule`). A handle.
#[derive(Clone, Debug)]
pub struct ShaderModule {
    device: Device,
    module: Arc<Module>,
    source: Arc<Source>,
}

impl ShaderModule {
    pub(crate) fn from_spirv(device: &Device, words: &[u32]) -> Result<Self, Error> {
        let at = "vkCreateShaderModule";
        require(!words.is_empty(), at, "VUID-VkShaderModuleCreateInfo-codeSize-01085", || "codeSize is 0".into())?;
        let _room = room_to_read(size_of_val(words))?;
        let kept = host_memory::copied(words)?.into_boxed_slice();
        Ok(Self::new(device, Module::from_spirv(words)?, Text::Spirv(kept)))
    }

    pub(crate) fn from_wgsl(device: &Device, source: &str) -> Result<Self, Error> {
        let _room = room_to_read(source.len())?;
        Ok(Self::new(device, Module::from_wgsl(source)?, Text::Wgsl(source.into())))
    }

    fn new(device: &Device, module: Module, text: Text) -> Self {
        let ids = module.specialization_constants().into_iter().filter_map(|constant| constant.id);
        let source = Arc::new(Source::new(text, ids));
        Self { device: device.clone(), module: Arc::new(module), source }
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.module.entry_points()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        self.module.specialization_constants()
    }

    /// Where the text declares what is bound at a set and a number; `None` of SPIR-V.
    pub fn declared(&self, set: u32, binding: u32) -> Option<SourceLine> {
        self.module.declared(set, binding)
    }

    /// One entry point with its constants set: what a pipeline is made of, and what tells which layout it needs.
    pub fn specialize(&self, entry: &str, specialization: &Specialization) -> Result<SpecializedShader, Error> {
        let kernel = Arc::new(self.kernel(entry, specialization)?);
        Ok(SpecializedShader { device: self.device.clone(), kernel, key: self.key(entry, specialization) })
    }

    pub(super) fn kernel(&self, entry: &str, specialization: &Specialization) -> Result<Kernel, Error> {
        self.check_entry(entry)?;
        let _room = room_to_read(self.source.bytes())?;
        Ok(self.module.kernel_without_lines(entry, specialization)?)
    }

    /// Whether the layout is a part of what is compiled.
    pub(super) fn may_have_runtime_arrays(&self) -> bool {
        self.module.may_have_runtime_arrays()
    }

    /// What tells the kernel from those of other modules, entry points and constants.
    pub(super) fn key(&self, entry: &str, specialization: &Specialization) -> Key {
        Key::new(&self.source, entry, specialization)
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
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

/// Reading takes less than so many times the bytes of a module, in many small allocations.
const TIMES_TO_READ: u64 = 256;

/// Room for reading a module of so many bytes.
fn room_to_read(bytes: usize) -> Result<Room, OutOfHostMemory> {
    Room::of((bytes as u64).saturating_mul(TIMES_TO_READ).max(1 << 20))
}

/// An entry point of a shader module with its constants set (`VkPipelineShaderStageCreateInfo`). A handle.
#[derive(Clone, Debug)]
pub struct SpecializedShader {
    device: Device,
    kernel: Arc<Kernel>,
    key: Key,
}

impl SpecializedShader {
    /// The kernel: name, workgroup size, bindings, push constants.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Whether the layout is a part of what is compiled.
    pub(super) fn may_have_runtime_arrays(&self) -> bool {
        self.kernel.bindings.values().any(|data| data.count == 0)
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }
}
