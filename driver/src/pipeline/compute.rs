//! Compute pipelines: a kernel that was checked against the device's limits and the layout, and compiled.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use spelter_locks::Mutex;
use spelter_shaders::back::Code;
use spelter_shaders::compile::Backend;
use spelter_shaders::explain::{Explained, explain};
use spelter_shaders::front::Blocks;
use spelter_shaders::ir::{BindingData, Kernel, SampledPair};

use super::cache::{BindingCount, CacheStats, CompiledKernel, Key, Origin, SharedKernel};
use super::checks::{AT, SlotRange, check_private, check_push, check_workgroup, slot_range};
use super::deferred::KernelCode;
use super::stored::StoredKernels;
use super::{PipelineLayout, ShaderModule, ShaderStage, Specialization, SpecializedShader};
use crate::check::CheckedCode;
use crate::descriptor::LayoutEntry;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::exec::SourceLocations;
use crate::shader_source::ShaderSource;

/// A compute pipeline (`VkPipeline`), created as if with `DISPATCH_BASE`. A handle.
#[derive(Clone)]
pub struct ComputePipeline {
    inner: Arc<ComputePipelineInner>,
}

struct ComputePipelineInner {
    device: Device,
    layout: PipelineLayout,
    kernel: SharedKernel,
    slot_ranges: Vec<SlotRange>,
    remark: Option<Misuse>,
    /// Computed on first use.
    identity: OnceLock<u64>,
    debug_name: Mutex<Option<Arc<str>>>,
    module_name: Mutex<Option<Arc<str>>>,
}

impl Device {
    /// `vkCreateComputePipelines`: one entry point, specialized and compiled.
    ///
    /// Pipelines that exist at the same time share their code, whatever their layouts, if they have the same module
    /// words or text, entry point and values of specialization constants. The code lives until the last such pipeline
    /// and the last recording that uses it are dropped; nothing else keeps it.
    pub fn create_compute_pipeline(
        &self,
        module: &ShaderModule,
        entry: &str,
        specialization: &Specialization,
        layout: &PipelineLayout,
    ) -> Result<ComputePipeline, Error> {
        ComputePipeline::of_module(self, ShaderStage { module, entry, specialization }, layout)
    }

    /// As [`Device::create_compute_pipeline`], with kernels of another process: kernels in `stored` are not compiled.
    /// `None` if the kernel would have to be compiled and `may_compile` is false.
    pub fn create_compute_pipeline_stored(
        &self,
        stage: ShaderStage<'_>,
        layout: &PipelineLayout,
        stored: &StoredKernels,
        may_compile: bool,
    ) -> Result<Option<(ComputePipeline, Origin)>, Error> {
        ComputePipeline::of_stored(self, stage, layout, stored, may_compile)
    }

    /// The stages of a kernel's compilation to machine code, as texts and counts. Compiles it again.
    pub fn explain(&self, stage: ShaderStage<'_>, layout: &PipelineLayout) -> Result<Explained, Error> {
        ComputePipeline::explain(self, stage, layout)
    }

    /// `vkCreateComputePipelines` for a shader that is already specialized, for example to derive its layout.
    pub fn create_compute_pipeline_from(
        &self,
        shader: &SpecializedShader,
        layout: &PipelineLayout,
    ) -> Result<ComputePipeline, Error> {
        ComputePipeline::of_shader(self, shader, layout)
    }

    /// Statistics of compiled and shared pipelines.
    pub fn pipeline_cache_stats(&self) -> CacheStats {
        self.pipelines().stats()
    }
}

impl ComputePipeline {
    fn of_module(device: &Device, stage: ShaderStage<'_>, layout: &PipelineLayout) -> Result<Self, Error> {
        let key = Self::key_of(device, stage, layout)?;
        let compile = || compiled(device, Cow::Owned(stage.kernel()?), stage.module.source(), layout);
        Self::new(device, key, layout, || Ok((compile()?, Origin::Compiled))).map(|(made, _)| made)
    }

    /// As [`ComputePipeline::of_module`], but kernels in `stored` are not compiled. `None` if the kernel would have to
    /// be compiled and `may_compile` is false.
    fn of_stored(
        device: &Device,
        stage: ShaderStage<'_>,
        layout: &PipelineLayout,
        stored: &StoredKernels,
        may_compile: bool,
    ) -> Result<Option<(Self, Origin)>, Error> {
        let key = Self::key_of(device, stage, layout)?;
        let there = || device.pipelines().has(&key) || stored.has(&key, device.properties().backend);
        if !may_compile && !there() {
            return Ok(None);
        }
        let from = key.clone();
        let make = || match stored.get(&from, device.properties().backend) {
            Some(kernel) => Ok((kernel, Origin::Stored)),
            None => {
                let kernel = Cow::Owned(stage.kernel()?);
                Ok((compiled(device, kernel, stage.module.source(), layout)?, Origin::Compiled))
            }
        };
        Self::new(device, key, layout, make).map(Some)
    }

    fn key_of(device: &Device, stage: ShaderStage<'_>, layout: &PipelineLayout) -> Result<Key, Error> {
        let ShaderStage { module, entry, specialization } = stage;
        check_devices(device, module.device(), layout)?;
        Ok(for_layout(module.key(entry, specialization), module.may_have_runtime_arrays(), layout))
    }

    /// Explains the compilation of the kernel that such a pipeline would have. Compiles it again.
    fn explain(device: &Device, stage: ShaderStage<'_>, layout: &PipelineLayout) -> Result<Explained, Error> {
        let kernel = for_device(device, sized(Cow::Owned(stage.kernel()?), layout));
        Ok(explain(&kernel, device.properties().backend))
    }

    fn of_shader(device: &Device, shader: &SpecializedShader, layout: &PipelineLayout) -> Result<Self, Error> {
        check_devices(device, shader.device(), layout)?;
        let key = for_layout(shader.key().clone(), shader.may_have_runtime_arrays(), layout);
        let source = shader.key().source();
        let make = || Ok((compiled(device, Cow::Borrowed(shader.kernel()), source, layout)?, Origin::Compiled));
        Self::new(device, key, layout, make).map(|(made, _)| made)
    }

    fn new(
        device: &Device,
        key: Key,
        layout: &PipelineLayout,
        make: impl FnOnce() -> Result<(CompiledKernel, Origin), Error>,
    ) -> Result<(Self, Origin), Error> {
        let (kernel, origin) = device.pipelines().get(key, make)?;
        let remark = check_push(kernel.push_bytes, layout.push()).err();
        if let Some(misuse) = remark.as_ref().filter(|_| device.is_strict()) {
            return Err(misuse.clone().into());
        }
        let slot_ranges =
            kernel.bindings.iter().map(|binding| slot_range(binding, layout)).collect::<Result<_, _>>()?;
        let identity = OnceLock::new();
        let inner = ComputePipelineInner {
            device: device.clone(),
            layout: layout.clone(),
            kernel,
            slot_ranges,
            remark,
            identity,
            debug_name: Mutex::default(),
            module_name: Mutex::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, origin))
    }

    /// A rule that shader and layout break although other drivers accept it: the shader has push constants outside the
    /// layout's range. They read as 0, since no command can set them. A strict device
    /// ([`DeviceOptions::strict`](crate::DeviceOptions::strict)) rejects such a pipeline.
    pub fn remark(&self) -> Option<&Misuse> {
        self.inner.remark.as_ref()
    }

    pub(super) fn kernel(&self) -> &SharedKernel {
        &self.inner.kernel
    }

    /// Identifies the code: equal for pipelines that share it, and unique while one of them exists.
    pub fn code_id(&self) -> usize {
        self.inner.kernel.id()
    }

    /// The name of the pipeline in findings of checked mode, of dispatches that are recorded from now on
    /// (`vkSetDebugUtilsObjectNameEXT`). An empty one is none.
    pub fn set_debug_name(&self, name: Option<&str>) {
        *self.inner.debug_name.lock() = name.filter(|name| !name.is_empty()).map(Into::into);
    }

    /// The name of its shader module, for suppressions of findings. An empty one is none.
    pub fn set_module_name(&self, name: Option<&str>) {
        *self.inner.module_name.lock() = name.filter(|name| !name.is_empty()).map(Into::into);
    }

    pub(crate) fn module_name(&self) -> Option<Arc<str>> {
        self.inner.module_name.lock().clone()
    }

    pub(crate) fn debug_name(&self) -> Option<Arc<str>> {
        self.inner.debug_name.lock().clone()
    }

    /// Identifies the kernel across processes: by the shader's text, the entry point and the specialization constants.
    pub fn identity(&self) -> u64 {
        *self.inner.identity.get_or_init(|| {
            let [a, b, c, d, e, f, g, h, ..] = self.inner.kernel.key().digest();
            u64::from_le_bytes([a, b, c, d, e, f, g, h])
        })
    }

    /// Workgroup size after specialization, in invocations.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.inner.kernel.workgroup_size
    }

    /// The back end that runs the kernel: the interpreter if the device's back end cannot. Waits until the code is
    /// compiled. In a process that was forked before that, the result is the interpreter.
    pub fn backend(&self) -> Backend {
        self.inner.kernel.code.backend()
    }

    /// Why [`ComputePipeline::backend`] is not the device's back end, if it is not. Waits as it does.
    pub fn fallback(&self) -> Option<&str> {
        self.inner.kernel.code.fallback()
    }

    /// The layouts of the shader's buffers and push constants: names, offsets and strides of members. The shader is
    /// read again for it. [`Error::Shader`] if that needs more memory than there is, or if a list of all members would
    /// be larger than 4 MiB.
    pub fn blocks(&self) -> Result<Blocks, Error> {
        self.inner.kernel.key().blocks()
    }

    /// Waits until the kernel is compiled, which a device with
    /// [`DeviceOptions::compilers`](crate::DeviceOptions::compilers) does after creation. In a forked process, returns
    /// at once.
    pub fn wait_compiled(&self) {
        self.inner.kernel.code.compile();
    }

    /// The layout that the pipeline was created with.
    pub fn layout(&self) -> &PipelineLayout {
        &self.inner.layout
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Whether both handles name the same pipeline.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.inner.kernel.name
    }

    pub(crate) fn code(&self) -> Arc<dyn Code> {
        self.inner.kernel.code.code()
    }

    /// Locations in the shader's source, available while the pipeline exists.
    pub(crate) fn source(&self) -> Weak<dyn SourceLocations> {
        self.inner.kernel.source()
    }

    /// The descriptor slots of the kernel's bindings, in the kernel's order.
    pub(crate) fn slot_ranges(&self) -> &[SlotRange] {
        &self.inner.slot_ranges
    }

    /// The pairs of image and sampler that the kernel uses together.
    pub(crate) fn pairs(&self) -> &[SampledPair] {
        &self.inner.kernel.pairs
    }

    /// Whether any binding is an image, a sampler or a texel buffer.
    pub(crate) fn has_images(&self) -> bool {
        self.inner.kernel.bindings.iter().any(|binding| binding.kind.is_image())
    }

    /// Whether the kernel accesses memory by device addresses.
    pub(crate) fn has_addresses(&self) -> bool {
        self.inner.kernel.has_addresses
    }

    /// Bytes of push constants that the kernel declares.
    pub(crate) fn push_bytes(&self) -> u32 {
        self.inner.kernel.push_bytes
    }
}

impl fmt::Debug for ComputePipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputePipeline(`{}` {:?})", self.name(), self.workgroup_size())
    }
}

fn check_devices(device: &Device, shader: &Device, layout: &PipelineLayout) -> Result<(), Misuse> {
    let same = shader.is(device) && layout.device().is(device);
    require(same, AT, "VUID-VkComputePipelineCreateInfo-commonparent", || "objects of another device".into())
}

/// Checks the kernel against the device's limits and compiles it.
fn compiled(
    device: &Device,
    kernel: Cow<'_, Kernel>,
    source: &Arc<ShaderSource>,
    layout: &PipelineLayout,
) -> Result<CompiledKernel, Error> {
    check_workgroup(&kernel)?;
    check_private(&kernel)?;
    let kernel = for_device(device, sized(kernel, layout));
    let (name, workgroup_size, push_bytes) = (kernel.name.as_str().into(), kernel.workgroup_size, kernel.push_bytes);
    let (bindings, has_addresses) = (kernel.bindings.values().cloned().collect(), kernel.has_addresses());
    let pairs = kernel.sampled_pairs();
    let code = match device.checker() {
        Some(checker) => {
            let backend = device.properties().backend;
            KernelCode::checked(CheckedCode::new(&kernel, backend, checker, source))
        }
        None => device.compilers().code(kernel, device.properties().backend),
    };
    Ok(CompiledKernel { name, code, workgroup_size, bindings, pairs, push_bytes, has_addresses })
}

/// The kernel with the layout's number of elements for each array that the shader gives no size.
fn sized<'k>(mut kernel: Cow<'k, Kernel>, layout: &PipelineLayout) -> Cow<'k, Kernel> {
    if kernel.bindings.values().any(|data| data.count == 0) {
        kernel.to_mut().size_runtime_arrays(|data| elements(layout, data));
    }
    kernel
}

/// The kernel to be compiled as the device runs it.
fn for_device<'k>(device: &Device, mut kernel: Cow<'k, Kernel>) -> Cow<'k, Kernel> {
    if device.takes_schedule() {
        kernel.to_mut().takes_schedule = true;
    }
    kernel
}

/// Number of elements of a binding in a layout.
fn elements(layout: &PipelineLayout, data: &BindingData) -> u32 {
    let entry = layout.sets().get(data.set as usize).and_then(|set| set.entry(data.binding));
    entry.map_or(0, |entry| entry.count as u32)
}

/// The key of a kernel with this layout: includes the layout's array sizes if the shader may have arrays without a
/// size.
fn for_layout(key: Key, may_have_runtime_arrays: bool, layout: &PipelineLayout) -> Key {
    if may_have_runtime_arrays { key.with_counts(counts(layout)) } else { key }
}

/// The numbers of elements of all bindings of a layout.
fn counts(layout: &PipelineLayout) -> impl Iterator<Item = BindingCount> {
    (0..).zip(layout.sets()).flat_map(|(number, set)| {
        let count =
            move |entry: &LayoutEntry| BindingCount { set: number, binding: entry.binding, count: entry.count as u32 };
        set.entries().iter().map(count)
    })
}
