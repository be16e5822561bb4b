//! Compute pipelines: a kernel that fits the device and the layout, made ready to run.

use std::fmt;
use std::sync::Arc;

use spelter_shaders::back::Code;
use spelter_shaders::compile::{Backend, compile};
use spelter_shaders::ir::{BindingData, BindingKind, Kernel, VariableSpace};

use super::{PipelineLayout, PushRange, SpecializedShader};
use crate::descriptor::is_uniform;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

/// The most bytes of private memory that the invocations of a workgroup may need together.
const MOST_PRIVATE: u64 = 256 << 20;

/// A compute pipeline (`VkPipeline`), created as if with `DISPATCH_BASE`. A handle.
#[derive(Clone)]
pub struct ComputePipeline {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    layout: PipelineLayout,
    name: Arc<str>,
    backend: Backend,
    code: Arc<dyn Code>,
    workgroup_size: [u32; 3],
    takes: Vec<Taken>,
    push_bytes: u32,
}

/// A run of slots that the kernel takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) set: usize,
    pub(crate) first: usize,
    pub(crate) count: usize,
}

impl ComputePipeline {
    pub(crate) fn new(device: &Device, shader: &SpecializedShader, layout: &PipelineLayout) -> Result<Self, Error> {
        let at = "vkCreateComputePipelines";
        let same = shader.device().is(device) && layout.device().is(device);
        require(same, at, "VUID-VkComputePipelineCreateInfo-commonparent", || "objects of another device".into())?;
        let kernel = shader.kernel();
        check_size(at, kernel)?;
        check_private(kernel)?;
        check_push(at, kernel, layout.push())?;
        let takes = kernel.bindings.values().map(|binding| take(at, binding, layout)).collect::<Result<_, _>>()?;
        let compiled = compile(kernel, device.properties().backend);
        let inner = Inner {
            device: device.clone(),
            layout: layout.clone(),
            name: kernel.name.as_str().into(),
            backend: compiled.backend,
            code: compiled.code.into(),
            workgroup_size: kernel.workgroup_size,
            takes,
            push_bytes: kernel.push_bytes,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Invocations of a workgroup in each dimension, specialized.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.inner.workgroup_size
    }

    /// What runs the kernel: the interpreter, where the device's back end has no code for it.
    pub fn backend(&self) -> Backend {
        self.inner.backend
    }

    /// The layout that the pipeline was created with.
    pub fn layout(&self) -> &PipelineLayout {
        &self.inner.layout
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Whether both handles name one pipeline.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.inner.name
    }

    pub(crate) fn code(&self) -> &Arc<dyn Code> {
        &self.inner.code
    }

    /// The slots behind the kernel's bindings, in the kernel's order.
    pub(crate) fn takes(&self) -> &[Taken] {
        &self.inner.takes
    }

    /// Bytes of push constants that the kernel declares.
    pub(crate) fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }
}

impl fmt::Debug for ComputePipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ComputePipeline(`{}` {:?})", self.inner.name, self.inner.workgroup_size)
    }
}

fn check_size(at: &str, kernel: &Kernel) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let size = kernel.workgroup_size;
    let vuids = ["VUID-RuntimeSpirv-x-06429", "VUID-RuntimeSpirv-y-06430", "VUID-RuntimeSpirv-z-06431"];
    for (dimension, vuid) in vuids.into_iter().enumerate() {
        let (has, most) = (size[dimension], limits.max_compute_work_group_size[dimension]);
        require(has <= most, at, vuid, || format!("a workgroup of {size:?}: {has} above the limit {most}"))?;
    }
    // Each factor is below 2^10 or so by now.
    let (all, most) = (size.iter().product::<u32>(), limits.max_compute_work_group_invocations);
    require(all <= most, at, "VUID-RuntimeSpirv-x-06432", || {
        format!("a workgroup of {size:?}: {all} invocations above the limit {most}")
    })?;
    let (shared, most) = (bytes(kernel, VariableSpace::Workgroup), limits.max_compute_shared_memory_size);
    require(shared <= u64::from(most), at, "VUID-RuntimeSpirv-Workgroup-06530", || {
        format!("{shared} bytes of workgroup memory above the limit {most}")
    })
}

/// Vulkan has no limit for private memory, but a machine has.
fn check_private(kernel: &Kernel) -> Result<(), Error> {
    let all = bytes(kernel, VariableSpace::Private).saturating_mul(kernel.invocations().into());
    if all <= MOST_PRIVATE { Ok(()) } else { Err(Error::OutOfMemory) }
}

/// Bytes of a kernel's variables, which may add up to more than `u32` holds.
fn bytes(kernel: &Kernel, space: VariableSpace) -> u64 {
    let variables = kernel.variables.values().filter(|variable| variable.space == space);
    variables.map(|variable| u64::from(variable.bytes).next_multiple_of(16)).sum()
}

fn check_push(at: &str, kernel: &Kernel, range: Option<PushRange>) -> Result<(), Misuse> {
    if kernel.push_bytes == 0 {
        return Ok(());
    }
    let range = range.ok_or_else(|| {
        let problem = format!("the shader has {} bytes of push constants, the layout none", kernel.push_bytes);
        Misuse::new(at, problem, "VUID-VkComputePipelineCreateInfo-layout-07987")
    })?;
    let end = range.offset + range.size;
    require(kernel.push_bytes <= end, at, "VUID-VkComputePipelineCreateInfo-layout-10069", || {
        format!("the shader has {} bytes of push constants, the layout's range ends at {end}", kernel.push_bytes)
    })
}

/// The slots behind a binding of the kernel, if the layout has them.
fn take(at: &str, binding: &BindingData, layout: &PipelineLayout) -> Result<Taken, Misuse> {
    let &BindingData { set, binding: number, kind, count, .. } = binding;
    let place = format!("set {set}, binding {number}");
    let entry = layout.sets().get(set as usize).and_then(|layout| layout.entry(number)).ok_or_else(|| {
        let problem = format!("the shader uses {place}, which the layout does not have");
        Misuse::new(at, problem, "VUID-VkComputePipelineCreateInfo-layout-07988")
    })?;
    let uniform = kind == BindingKind::UniformBuffer;
    require(uniform == is_uniform(entry.ty), at, "VUID-VkComputePipelineCreateInfo-layout-07990", || {
        format!("{place} is a {} in the shader and {:?} in the layout", kind_name(kind), entry.ty)
    })?;
    require(count as usize <= entry.count, at, "VUID-VkComputePipelineCreateInfo-layout-07991", || {
        format!("{place} has {count} elements in the shader and {} in the layout", entry.count)
    })?;
    Ok(Taken { set: set as usize, first: entry.first, count: count as usize })
}

fn kind_name(kind: BindingKind) -> &'static str {
    match kind {
        BindingKind::StorageBuffer => "storage buffer",
        BindingKind::UniformBuffer => "uniform buffer",
    }
}
