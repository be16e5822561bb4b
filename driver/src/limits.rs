//! Limits of the device: one table, with the names of `VkPhysicalDeviceLimits`.
//!
//! Each value meets or exceeds the minimum of Vulkan 1.3. Where a larger value would cost nothing, the value is still
//! one that real devices have, so that a program which respects it here also runs on other devices.

use spelter_shaders::abi::{MAX_PUSH_BYTES, MAX_WORKGROUPS, SUBGROUP_SIZE};
use spelter_shaders::image::MAX_IMAGE_BYTES;

/// Limits of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// `maxBoundDescriptorSets`: sets in a pipeline layout.
    pub max_bound_descriptor_sets: u32,
    /// `maxPerSetDescriptors`: descriptors in a set layout.
    pub max_per_set_descriptors: u32,
    /// `maxPerStageDescriptorUniformBuffers` and `maxDescriptorSetUniformBuffers`: in a pipeline layout.
    pub max_descriptor_set_uniform_buffers: u32,
    /// `maxDescriptorSetUniformBuffersDynamic`: in a pipeline layout.
    pub max_descriptor_set_uniform_buffers_dynamic: u32,
    /// `maxPerStageDescriptorStorageBuffers` and `maxDescriptorSetStorageBuffers`: in a pipeline layout.
    pub max_descriptor_set_storage_buffers: u32,
    /// `maxDescriptorSetStorageBuffersDynamic`: in a pipeline layout.
    pub max_descriptor_set_storage_buffers_dynamic: u32,
    /// `maxUniformBufferRange`: bytes of a uniform descriptor.
    pub max_uniform_buffer_range: u32,
    /// `maxStorageBufferRange`: bytes of a storage descriptor.
    pub max_storage_buffer_range: u32,
    /// `minUniformBufferOffsetAlignment`: offsets of uniform descriptors are multiples of it.
    pub min_uniform_buffer_offset_alignment: u64,
    /// `minStorageBufferOffsetAlignment`: offsets of storage descriptors are multiples of it.
    pub min_storage_buffer_offset_alignment: u64,
    /// `maxPushConstantsSize` in bytes.
    pub max_push_constants_size: u32,
    /// `maxBufferSize` in bytes.
    pub max_buffer_size: u64,
    /// `maxComputeSharedMemorySize`: bytes of workgroup variables.
    pub max_compute_shared_memory_size: u32,
    /// `maxComputeWorkGroupCount`: workgroups of a dispatch in each dimension.
    pub max_compute_work_group_count: [u32; 3],
    /// `maxComputeWorkGroupSize`: invocations of a workgroup in each dimension.
    pub max_compute_work_group_size: [u32; 3],
    /// `maxComputeWorkGroupInvocations`: invocations of a workgroup.
    pub max_compute_work_group_invocations: u32,
    /// `subgroupSize`: invocations of a subgroup.
    pub subgroup_size: u32,
    /// `maxImageDimension1D` in texels.
    pub max_image_dimension_1d: u32,
    /// `maxImageDimension2D` and `maxImageDimensionCube` in texels.
    pub max_image_dimension_2d: u32,
    /// `maxImageDimension3D` in texels.
    pub max_image_dimension_3d: u32,
    /// `maxImageArrayLayers`.
    pub max_image_array_layers: u32,
    /// `maxResourceSize` of images, in bytes.
    pub max_image_bytes: u64,
    /// `maxTexelBufferElements`: texels of a texel buffer.
    pub max_texel_buffer_elements: u32,
    /// `minTexelBufferOffsetAlignment`: offsets of texel buffers are multiples of it.
    pub min_texel_buffer_offset_alignment: u64,
    /// `maxSamplerLodBias`.
    pub max_sampler_lod_bias: f32,
    /// `maxPerStageDescriptorSamplers` and `maxDescriptorSetSamplers`: in a pipeline layout.
    pub max_descriptor_set_samplers: u32,
    /// `maxPerStageDescriptorSampledImages` and `maxDescriptorSetSampledImages`: in a pipeline layout.
    pub max_descriptor_set_sampled_images: u32,
    /// `maxPerStageDescriptorStorageImages` and `maxDescriptorSetStorageImages`: in a pipeline layout.
    pub max_descriptor_set_storage_images: u32,
}

impl Limits {
    /// The limits of every device, without a device.
    pub const fn of_devices() -> &'static Self {
        &Self::DEVICE
    }

    /// The limits of every device.
    pub(crate) const DEVICE: Self = Self {
        max_bound_descriptor_sets: 8,
        // With updates after binding, Vulkan requires 500,000 descriptors of each type.
        max_per_set_descriptors: 1_000_000,
        max_descriptor_set_uniform_buffers: 4_096,
        max_descriptor_set_uniform_buffers_dynamic: 16,
        max_descriptor_set_storage_buffers: 1_000_000,
        max_descriptor_set_storage_buffers_dynamic: 16,
        max_uniform_buffer_range: 65_536,
        max_storage_buffer_range: u32::MAX,
        min_uniform_buffer_offset_alignment: 16,
        min_storage_buffer_offset_alignment: 16,
        max_push_constants_size: MAX_PUSH_BYTES as u32,
        max_buffer_size: 1 << 40,
        max_compute_shared_memory_size: 65_536,
        max_compute_work_group_count: [MAX_WORKGROUPS; 3],
        max_compute_work_group_size: [1024, 1024, 64],
        max_compute_work_group_invocations: 1024,
        subgroup_size: SUBGROUP_SIZE,
        max_image_dimension_1d: 16_384,
        max_image_dimension_2d: 16_384,
        max_image_dimension_3d: 2_048,
        max_image_array_layers: 2_048,
        max_image_bytes: MAX_IMAGE_BYTES,
        max_texel_buffer_elements: 1 << 27,
        min_texel_buffer_offset_alignment: 16,
        max_sampler_lod_bias: 16.0,
        max_descriptor_set_samplers: 1_000_000,
        max_descriptor_set_sampled_images: 1_000_000,
        max_descriptor_set_storage_images: 1_000_000,
    };
}
