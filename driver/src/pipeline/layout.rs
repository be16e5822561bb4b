//! Pipeline layouts and their compatibility (Vulkan, "Pipeline Layout Compatibility").

use std::sync::Arc;

use ash::vk::DescriptorType;

use crate::descriptor::DescriptorSetLayout;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

/// A range of push constants of the compute stage (`VkPushConstantRange`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PushRange {
    /// First byte, a multiple of 4.
    pub offset: u32,
    /// Size in bytes, a multiple of 4.
    pub size: u32,
}

/// The descriptor sets and push constants of a pipeline (`VkPipelineLayout`). A handle.
#[derive(Clone, Debug)]
pub struct PipelineLayout {
    inner: Arc<PipelineLayoutInner>,
}

#[derive(Debug)]
struct PipelineLayoutInner {
    device: Device,
    sets: Vec<DescriptorSetLayout>,
    push: Option<PushRange>,
}

impl Device {
    /// `vkCreatePipelineLayout`. The push constant ranges are those of the compute stage: Vulkan allows at most one.
    pub fn create_pipeline_layout(
        &self,
        sets: &[&DescriptorSetLayout],
        push: &[PushRange],
    ) -> Result<PipelineLayout, Error> {
        PipelineLayout::new(self, sets, push)
    }
}

impl PipelineLayout {
    fn new(device: &Device, sets: &[&DescriptorSetLayout], push: &[PushRange]) -> Result<Self, Error> {
        check_sets(device, sets)?;
        check_push(push)?;
        let sets = sets.iter().map(|&set| set.clone()).collect();
        Ok(Self { inner: Arc::new(PipelineLayoutInner { device: device.clone(), sets, push: push.first().copied() }) })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn sets(&self) -> &[DescriptorSetLayout] {
        &self.inner.sets
    }

    pub(crate) fn push(&self) -> Option<PushRange> {
        self.inner.push
    }

    /// Whether both are compatible for set `set` (Vulkan, "Pipeline Layout Compatibility").
    pub fn is_compatible(&self, other: &Self, set: u32) -> bool {
        self.compatible_for_set(other, set as usize)
    }

    /// Whether both are compatible for sets 0 to `set`: what was bound with one stays bound with the other.
    pub(crate) fn compatible_for_set(&self, other: &Self, set: usize) -> bool {
        self.is(other)
            || (self.inner.push == other.inner.push
                && self.inner.sets.len() > set
                && other.inner.sets.len() > set
                && self.inner.sets[..=set] == other.inner.sets[..=set])
    }

    /// Whether both are compatible for push constants.
    pub(crate) fn compatible_for_push(&self, other: &Self) -> bool {
        self.inner.push == other.inner.push
    }

    /// Whether both handles name the same layout.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

const AT: &str = "vkCreatePipelineLayout";

fn check_sets(device: &Device, sets: &[&DescriptorSetLayout]) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let max = limits.max_bound_descriptor_sets;
    require(sets.len() <= max as usize, AT, "VUID-VkPipelineLayoutCreateInfo-setLayoutCount-00286", || {
        format!("{} sets above maxBoundDescriptorSets {max}", sets.len())
    })?;
    for (at, set) in sets.iter().enumerate() {
        require(set.device().is(device), AT, "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter", || {
            format!("pSetLayouts[{at}] belongs to another device")
        })?;
    }
    let total = |types: &[DescriptorType]| {
        let entries = sets.iter().flat_map(|set| set.entries());
        entries.filter(|entry| types.contains(&entry.ty)).map(|entry| entry.count as u64).sum::<u64>()
    };
    let uniform = [DescriptorType::UNIFORM_BUFFER, DescriptorType::UNIFORM_BUFFER_DYNAMIC];
    let storage = [DescriptorType::STORAGE_BUFFER, DescriptorType::STORAGE_BUFFER_DYNAMIC];
    let rules = [
        (
            &uniform[1..],
            limits.max_descriptor_set_uniform_buffers_dynamic,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03030",
        ),
        (
            &storage[1..],
            limits.max_descriptor_set_storage_buffers_dynamic,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03032",
        ),
        (
            &uniform[..],
            limits.max_descriptor_set_uniform_buffers,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03017",
        ),
        (
            &storage[..],
            limits.max_descriptor_set_storage_buffers,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03018",
        ),
        (
            &[DescriptorType::SAMPLER, DescriptorType::COMBINED_IMAGE_SAMPLER],
            limits.max_descriptor_set_samplers,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03016",
        ),
        (
            &[
                DescriptorType::COMBINED_IMAGE_SAMPLER,
                DescriptorType::SAMPLED_IMAGE,
                DescriptorType::UNIFORM_TEXEL_BUFFER,
            ],
            limits.max_descriptor_set_sampled_images,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-06939",
        ),
        (
            &[DescriptorType::STORAGE_IMAGE, DescriptorType::STORAGE_TEXEL_BUFFER],
            limits.max_descriptor_set_storage_images,
            "VUID-VkPipelineLayoutCreateInfo-descriptorType-03020",
        ),
    ];
    for (types, max, vuid) in rules {
        let count = total(types);
        require(count <= u64::from(max), AT, vuid, || format!("{count} descriptors of {types:?} above {max}"))?;
    }
    Ok(())
}

fn check_push(push: &[PushRange]) -> Result<(), Misuse> {
    require(push.len() <= 1, AT, "VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292", || {
        format!("{} push constant ranges for the one stage", push.len())
    })?;
    let Some(&PushRange { offset, size }) = push.first() else { return Ok(()) };
    let (at, max) = ("pPushConstantRanges[0]", Limits::DEVICE.max_push_constants_size);
    require(offset < max, at, "VUID-VkPushConstantRange-offset-00294", || {
        format!("offset {offset} of maxPushConstantsSize {max}")
    })?;
    require(offset.is_multiple_of(4), at, "VUID-VkPushConstantRange-offset-00295", || {
        format!("offset {offset} is not a multiple of 4")
    })?;
    require(size > 0, at, "VUID-VkPushConstantRange-size-00296", || "size is 0".into())?;
    require(size.is_multiple_of(4), at, "VUID-VkPushConstantRange-size-00297", || {
        format!("size {size} is not a multiple of 4")
    })?;
    require(size <= max - offset, at, "VUID-VkPushConstantRange-size-00298", || {
        format!("size {size} at offset {offset} of maxPushConstantsSize {max}")
    })
}
