//! Valid-usage rules of a pipeline: the kernel's sizes against the limits, and its interface against the layout.

use ash::vk;
use spelter_shaders::ir::{BindingData, BindingKind, Kernel, VariableSpace};

use super::{PipelineLayout, PushRange};
use crate::descriptor::ImageDeclaration;
use crate::error::{Error, Misuse, TooMuchPrivate, require};
use crate::limits::Limits;

/// Maximum number of bytes of private memory of all invocations of a workgroup.
const MAX_PRIVATE: u64 = 256 << 20;

pub(super) const AT: &str = "vkCreateComputePipelines";

/// The descriptor slots of one binding of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotRange {
    pub(crate) set: usize,
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The binding, for messages.
    pub(crate) binding: u32,
    /// The shader's declaration, if the binding is a single image.
    pub(crate) image: Option<ImageDeclaration>,
}

/// Checks the kernel's workgroup against the limits, which are the same for all devices.
pub fn check_workgroup(kernel: &Kernel) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let size = kernel.workgroup_size;
    let vuids = ["VUID-RuntimeSpirv-x-06429", "VUID-RuntimeSpirv-y-06430", "VUID-RuntimeSpirv-z-06431"];
    for (dimension, vuid) in vuids.into_iter().enumerate() {
        let (has, max) = (size[dimension], limits.max_compute_work_group_size[dimension]);
        require(has <= max, AT, vuid, || format!("a workgroup of {size:?}: {has} above the limit {max}"))?;
    }
    // No overflow: each factor is at most 1024.
    let (all, max) = (size.iter().product::<u32>(), limits.max_compute_work_group_invocations);
    require(all <= max, AT, "VUID-RuntimeSpirv-x-06432", || {
        format!("a workgroup of {size:?}: {all} invocations above the limit {max}")
    })?;
    let (shared, max) = (bytes(kernel, VariableSpace::Workgroup), limits.max_compute_shared_memory_size);
    require(shared <= u64::from(max), AT, "VUID-RuntimeSpirv-Workgroup-06530", || {
        format!("{shared} bytes of workgroup memory above the limit {max}")
    })
}

/// Checks private memory, for which Vulkan has no limit.
pub(super) fn check_private(kernel: &Kernel) -> Result<(), Error> {
    let (bytes, invocations) = (bytes(kernel, VariableSpace::Private), kernel.invocations());
    let fits = bytes.saturating_mul(invocations.into()) <= MAX_PRIVATE;
    if fits { Ok(()) } else { Err(Error::TooMuchPrivate(TooMuchPrivate { bytes, invocations, limit: MAX_PRIVATE })) }
}

/// Bytes of a kernel's variables, which may add up to more than `u32` holds.
fn bytes(kernel: &Kernel, space: VariableSpace) -> u64 {
    let variables = kernel.variables.values().filter(|variable| variable.space == space);
    variables.map(|variable| u64::from(variable.bytes).next_multiple_of(16)).sum()
}

pub(super) fn check_push(bytes: u32, range: Option<PushRange>) -> Result<(), Misuse> {
    if bytes == 0 {
        return Ok(());
    }
    let range = range.ok_or_else(|| {
        let problem = format!("the shader has {bytes} bytes of push constants, the layout has none");
        Misuse::new(AT, problem, "VUID-VkComputePipelineCreateInfo-layout-07987")
    })?;
    let end = range.offset + range.size;
    require(bytes <= end, AT, "VUID-VkComputePipelineCreateInfo-layout-10069", || {
        format!("the shader has {bytes} bytes of push constants, the layout's range ends at {end}")
    })
}

/// The descriptor slots of a binding of the kernel, if shader and layout agree on it.
pub(super) fn slot_range(binding: &BindingData, layout: &PipelineLayout) -> Result<SlotRange, Misuse> {
    let &BindingData { set, binding: number, kind, count, .. } = binding;
    let place = format!("set {set}, binding {number}");
    let entry = layout.sets().get(set as usize).and_then(|layout| layout.entry(number)).ok_or_else(|| {
        let problem = format!("the shader uses {place}, which the layout does not have");
        Misuse::new(AT, problem, "VUID-VkComputePipelineCreateInfo-layout-07988")
    })?;
    require(fits(kind, entry.ty), AT, "VUID-VkComputePipelineCreateInfo-layout-07990", || {
        format!("{place} is a {} in the shader and {:?} in the layout", kind.description(), entry.ty)
    })?;
    require(count as usize <= entry.count, AT, "VUID-VkComputePipelineCreateInfo-layout-07991", || {
        format!("{place} has {count} elements in the shader and {} in the layout", entry.count)
    })?;
    // The elements of an array that a shader accesses are not known before it runs, so arrays are not checked.
    let image = if count == 1 { ImageDeclaration::of(binding) } else { None };
    Ok(SlotRange { set: set as usize, first: entry.first, count: count as usize, binding: number, image })
}

/// Whether a descriptor of this type matches the kind of binding that a shader declares.
fn fits(kind: BindingKind, ty: vk::DescriptorType) -> bool {
    use vk::DescriptorType as D;
    let other = match kind {
        BindingKind::StorageBuffer => Some(D::STORAGE_BUFFER_DYNAMIC),
        BindingKind::UniformBuffer => Some(D::UNIFORM_BUFFER_DYNAMIC),
        BindingKind::Sampler | BindingKind::SampledImage => Some(D::COMBINED_IMAGE_SAMPLER),
        _ => None,
    };
    ty == descriptor_type(kind) || Some(ty) == other
}

/// The type of descriptor that a shader's kind of binding takes. Layouts may have others instead: dynamic buffers, and
/// both halves of a combined image and sampler.
pub fn descriptor_type(kind: BindingKind) -> vk::DescriptorType {
    match kind {
        BindingKind::StorageBuffer => vk::DescriptorType::STORAGE_BUFFER,
        BindingKind::UniformBuffer => vk::DescriptorType::UNIFORM_BUFFER,
        BindingKind::Sampler => vk::DescriptorType::SAMPLER,
        BindingKind::SampledImage => vk::DescriptorType::SAMPLED_IMAGE,
        BindingKind::CombinedImageSampler => vk::DescriptorType::COMBINED_IMAGE_SAMPLER,
        BindingKind::StorageImage => vk::DescriptorType::STORAGE_IMAGE,
        BindingKind::UniformTexelBuffer => vk::DescriptorType::UNIFORM_TEXEL_BUFFER,
        BindingKind::StorageTexelBuffer => vk::DescriptorType::STORAGE_TEXEL_BUFFER,
    }
}
