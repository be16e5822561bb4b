//! Shader modules: parsed once, specialized by each pipeline.

use std::collections::BTreeMap;
use std::sync::Arc;

use spelter_shaders::compile::{self, Module};
use spelter_shaders::front::wgsl::MeasuredText;
use spelter_shaders::front::{SpecializationConstant, room};
use spelter_shaders::ir::{Kernel, SourceLine};

use super::cache::Key;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory::{self, GrowingRoom, Room};
use crate::shader_source::{ShaderSource, SourceText};

/// `SpecId` → value of the constant, in the low bits (`VkSpecializationInfo`). Ids that a module does not have are
/// ignored.
pub type Specialization = BTreeMap<u32, u64>;

/// What a pipeline runs (`VkPipelineShaderStageCreateInfo`).
#[derive(Clone, Copy, Debug)]
pub struct ShaderStage<'a> {
    /// The module.
    pub module: &'a ShaderModule,
    /// Name of its entry point.
    pub entry: &'a str,
    /// Values of its specialization constants.
    pub specialization: &'a Specialization,
}

/// A shader module (`VkShaderModule`). A handle.
#[derive(Clone, Debug)]
pub struct ShaderModule {
    device: Device,
    module: Arc<Module>,
    source: Arc<ShaderSource>,
    /// Host memory for a kernel of it, at most.
    bytes_to_read: u64,
    remark: Option<Arc<Misuse>>,
}

impl ShaderStage<'_> {
    /// The kernel; the module is read again.
    pub(super) fn kernel(&self) -> Result<Kernel, Error> {
        self.module.kernel(self.entry, self.specialization)
    }
}

impl Device {
    /// `vkCreateShaderModule` from SPIR-V words.
    pub fn create_shader_module(&self, words: &[u32]) -> Result<ShaderModule, Error> {
        ShaderModule::from_spirv(self, words)
    }

    /// A shader module from WGSL text.
    pub fn create_shader_module_wgsl(&self, source: &str) -> Result<ShaderModule, Error> {
        ShaderModule::from_wgsl(self, source, None)
    }

    /// As [`Device::create_shader_module_wgsl`], with the name of the text's file, which messages and source lines
    /// then have.
    pub fn create_shader_module_wgsl_named(&self, source: &str, file: &str) -> Result<ShaderModule, Error> {
        ShaderModule::from_wgsl(self, source, Some(file))
    }
}

impl ShaderModule {
    fn from_spirv(device: &Device, words: &[u32]) -> Result<Self, Error> {
        let at = "vkCreateShaderModule";
        require(!words.is_empty(), at, "VUID-VkShaderModuleCreateInfo-codeSize-01085", || "codeSize is 0".into())?;
        let bytes = room::of_spirv(words);
        let _room = Room::of(bytes)?;
        let kept = host_memory::copied(words)?.into_boxed_slice();
        let module = Module::from_spirv(words)?;
        let remark = module.remark().map(|remark| Misuse::new(at, remark.error.to_string(), remark.vuid));
        match remark {
            Some(misuse) if device.is_strict() => Err(misuse.into()),
            remark => {
                Ok(Self { remark: remark.map(Arc::new), ..Self::new(device, module, SourceText::Spirv(kept), bytes) })
            }
        }
    }

    fn from_wgsl(device: &Device, source: &str, file: Option<&str>) -> Result<Self, Error> {
        let text = MeasuredText::new(source)?;
        let bytes = room::of_wgsl(text);
        let _room = Room::of(bytes)?;
        let module = Module::from_measured_wgsl(text, file)?;
        Ok(Self::new(device, module, SourceText::Wgsl(source.into(), file.map(Into::into)), bytes))
    }

    fn new(device: &Device, module: Module, text: SourceText, bytes_to_read: u64) -> Self {
        let keys = module.specialization_constants().into_iter().map(|constant| constant.key);
        let source = Arc::new(ShaderSource::new(text, keys));
        Self { device: device.clone(), module: Arc::new(module), source, bytes_to_read, remark: None }
    }

    /// A rule that the module breaks although other drivers accept it: an `OpExtension` is missing, or semantics are
    /// sequentially consistent. A strict device ([`DeviceOptions::strict`](crate::DeviceOptions::strict)) rejects such
    /// a module.
    pub fn remark(&self) -> Option<&Misuse> {
        self.remark.as_deref()
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.module.entry_points()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        self.module.specialization_constants()
    }

    /// Location in the text of the declaration for a set and a binding; `None` for SPIR-V.
    pub fn declared(&self, set: u32, binding: u32) -> Option<SourceLine> {
        self.module.declared(set, binding)
    }

    /// Specializes an entry point: for a pipeline, or to derive the layout that it needs.
    pub fn specialize(&self, entry: &str, specialization: &Specialization) -> Result<SpecializedShader, Error> {
        let kernel = Arc::new(self.kernel(entry, specialization)?);
        Ok(SpecializedShader { device: self.device.clone(), kernel, key: self.key(entry, specialization) })
    }

    pub(super) fn kernel(&self, entry: &str, specialization: &Specialization) -> Result<Kernel, Error> {
        self.check_entry(entry)?;
        let _room = Room::of(self.bytes_to_read)?;
        // Findings of checked mode have lines.
        let lines = self.device.is_checked();
        let growing = GrowingRoom::default();
        let kernel = self.module.kernel_within(entry, specialization, lines, &|bytes| growing.has(bytes));
        let kernel = growing.result(kernel.map_err(Error::from))?;
        // The interpreter needs at least this.
        let _more = Room::of(compile::bytes_to_interpret(&kernel))?;
        Ok(kernel)
    }

    /// Whether it may have arrays without a size, so that the compiled code depends on the layout.
    pub(super) fn may_have_runtime_arrays(&self) -> bool {
        self.module.may_have_runtime_arrays()
    }

    /// The cache key of a kernel of this module.
    pub(super) fn key(&self, entry: &str, specialization: &Specialization) -> Key {
        Key::new(&self.source, entry, specialization).taking_schedule(self.device.takes_schedule())
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn source(&self) -> &Arc<ShaderSource> {
        &self.source
    }

    fn check_entry(&self, entry: &str) -> Result<(), Misuse> {
        let vuid = "VUID-VkPipelineShaderStageCreateInfo-pName-00707";
        require(self.entry_points().any(|name| name == entry), "vkCreateComputePipelines", vuid, || {
            let names: Vec<String> = self.entry_points().map(|name| format!("`{name}`")).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            format!("no compute entry point `{entry}`; the module has {there}")
        })
    }
}

/// A specialized entry point of a shader module (`VkPipelineShaderStageCreateInfo`). A handle.
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

    /// Whether it may have arrays without a size, so that the compiled code depends on the layout.
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
