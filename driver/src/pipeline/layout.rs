//! Pipeline layouts, and when two of them are compatible (Vulkan, "Pipeline Layout Compatibility").

use std::sync::Arc;

use ash::vk::DescriptorType;

use crate::descriptor::DescriptorSetLayout;
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

/// Bytes of push constants that the compute stage sees (`VkPushConstantRange`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PushRange {
    /// First byte, a multiple of 4.
    pub offset: u32,
    /// Bytes, a multiple of 4.
    pub size: u32,
}

/// Which sets and push constants a pipeline takes (`VkPipelineLayout`). A handle.
#[derive(Clone, Debug)]
pub struct PipelineLayout {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    sets: Vec<DescriptorSetLayout>,
    push: Option<PushRange>,
}

impl PipelineLayout {
    pub(crate) fn new(device: &Device, sets: &[&DescriptorSetLayout], push: &[PushRange]) -> Result<Self, Error> {
        check_sets(device, sets)?;
        check_push(push)?;
        let sets = sets.iter().map(|&set| set.clone()).collect();
        Ok(Self { inner: Arc::new(Inner { device: device.clone(), sets, push: push.first().copied() }) })
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

    /// Whether what was bound with one may be used with the other, up to and with set `set`.
    pub(crate) fn compatible_for_set(&self, other: &Self, set: usize) -> bool {
        self.is(other)
            || (self.inner.push == other.inner.push
                && self.inner.sets.len() > set
                && other.inner.sets.len() > set
                && self.inner.sets[..=set] == other.inner.sets[..=set])
    }

    /// Whether push constants of one are those of the other.
    pub(crate) fn compatible_for_push(&self, other: &Self) -> bool {
        self.inner.push == other.inner.push
    }

    /// Whether both handles name one layout.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

const AT: &str = "vkCreatePipelineLayout";

fn check_sets(device: &Device, sets: &[&DescriptorSetLayout]) -> Result<(), Misuse> {
    let limits = Limits::DEVICE;
    let most = limits.max_bound_descriptor_sets;
    require(sets.len() <= most as usize, AT, "VUID-VkPipelineLayoutCreateInfo-setLayoutCount-00286", || {
        format!("{} sets above maxBoundDescriptorSets {most}", sets.len())
    })?;
    for (at, set) in sets.iter().enumerate() {
        require(set.device().is(device), AT, "VUID-VkPipelineLayoutCreateInfo-pSetLayouts-parameter", || {
            format!("pSetLayouts[{at}] is of another device")
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
    for (types, most, vuid) in rules {
        let count = total(types);
        require(count <= u64::from(most), AT, vuid, || format!("{count} descriptors of {types:?} above {most}"))?;
    }
    Ok(())
}

fn check_push(push: &[PushRange]) -> Result<(), Misuse> {
    require(push.len() <= 1, AT, "VUID-VkPipelineLayoutCreateInfo-pPushConstantRanges-00292", || {
        format!("{} push constant ranges for the one stage", push.len())
    })?;
    let Some(&PushRange { offset, size }) = push.first() else { return Ok(()) };
    let (at, most) = ("pPushConstantRanges[0]", Limits::DEVICE.max_push_constants_size);
    require(offset < most, at, "VUID-VkPushConstantRange-offset-00294", || {
        format!("offset {offset} of maxPushConstantsSize {most}")
    })?;
    require(offset.is_multiple_of(4), at, "VUID-VkPushConstantRange-offset-00295", || {
        format!("offset {offset} is no multiple of 4")
    })?;
    require(size > 0, at, "VUID-VkPushConstantRange-size-00296", || "size is 0".into())?;
    require(size.is_multiple_of(4), at, "VUID-VkPushConstantRange-size-00297", || {
        format!("size {size} is no multiple of 4")
    })?;
    require(size <= most - offset, at, "VUID-VkPushConstantRange-size-00298", || {
        format!("size {size} at offset {offset} of maxPushConstantsSize {most}")
    })
}
